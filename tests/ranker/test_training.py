"""Training on made-up pairs: a few seconds on one thread."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from transformers import DebertaV2Config

from ranker.errors import RankerError
from ranker.pairs import EpochPairs, Lesson, PairEncoder, PairGroup, TokenSwap
from ranker.sharing import N_TYPES
from ranker.synonyms import Synonyms
from ranker.training import SmallModel, TrainingSettings, ranks_to_metrics, train
from tests.together import run_together

TINY = SmallModel(vocab_size=400, hidden_size=32, layers=2, heads=2, intermediate_size=32, max_tokens=64, dropout=0.0)
QUICK = TrainingSettings(
    epochs=2, negatives=3, batch=4, learning_rate=3e-3, max_tokens=64, loss="group", seed=1, threads=1
)
WORDS = "amber birch cedar dune ember fjord grove heath inlet jetty".split()


def groups(n: int = 12) -> list[PairGroup]:
    """The right text is a button, the wrong ones are not."""
    return [
        PairGroup(f"find {WORDS[i % 10]}", (f"button {WORDS[(i + 3) % 10]}",), tuple(f"div {w}" for w in WORDS[:6]))
        for i in range(n)
    ]


@pytest.fixture(scope="module")
def encoder() -> PairEncoder:
    from ranker.tokenizer import train_tokenizer

    texts = [text for group in groups() for text in (group.query, *group.texts)]
    return PairEncoder(train_tokenizer(texts, 400, 64), DebertaV2Config(type_vocab_size=2), "query-text", 64)


def ids(encoder: PairEncoder, text: str) -> list[int]:
    return encoder.text(text).ids


def drawn(encoder: PairEncoder, epoch: int = 0, seed: int = 0, grouped: bool = False) -> EpochPairs:
    pairs = EpochPairs(groups(), encoder, negatives=5, seed=seed, grouped=grouped)
    pairs.set_epoch(epoch)
    return pairs


def test_defaults_are_the_published_recipe() -> None:
    recipe = TrainingSettings()
    assert (recipe.epochs, recipe.negatives, recipe.batch, recipe.learning_rate) == (5, 5, 32, 3e-5)
    assert (recipe.weight_decay, recipe.clip, recipe.warmup_epochs, recipe.max_tokens) == (0.01, 1.0, 0.5, 512)
    assert (recipe.loss, recipe.hard_negatives, recipe.pair_order) == ("pair", 0, "query-text")


def test_each_group_gives_one_positive_and_five_negatives_an_epoch(encoder: PairEncoder) -> None:
    pairs = drawn(encoder)
    labels = Counter(pairs[i].targets for i in range(len(pairs)))
    assert labels == {(1.0,): 12, (0.0,): 60}


def test_draws_depend_on_seed_and_epoch_alone(encoder: PairEncoder) -> None:
    def rows(epoch: int, seed: int) -> list[object]:
        pairs = drawn(encoder, epoch, seed)
        return [pairs[i] for i in range(len(pairs))]

    assert rows(1, 0) == rows(1, 0)
    assert rows(1, 0) != rows(2, 0)
    assert rows(1, 0) != rows(1, 1)


def test_hard_negatives_take_the_place_of_uniform_ones(encoder: PairEncoder) -> None:
    pairs = drawn(encoder, grouped=True)
    pairs.set_hard({0: ("div birch", "div cedar")})
    pairs.set_epoch(1)
    hard = [encoder.row("find amber", text) for text in ("div birch", "div cedar")]
    assert list(pairs[0].rows[1:3]) == hard
    assert len(pairs[0].rows) == 6


def test_swap_is_one_to_one_and_keeps_common_tokens(encoder: PairEncoder) -> None:
    disguise = TokenSwap(groups(), encoder, kept=3).disguise(7)
    everything = list(range(len(encoder.tokenizer)))
    assert sorted(disguise.of(everything)) == everything
    assert disguise.of(everything) != everything
    for word in ("find", "button", "div"):
        assert disguise.of(ids(encoder, word)) == ids(encoder, word)


def test_disguised_numbers_are_numbers(encoder: PairEncoder) -> None:
    disguise = TokenSwap(groups(), encoder, kept=3).disguise(7)
    numbers = ids(encoder, " ".join(map(str, range(100))))
    assert len(numbers) == 100
    assert sorted(disguise.of(numbers)) == sorted(numbers)
    assert disguise.of(numbers) != numbers


def test_a_share_of_the_words_is_spelt_out_alike_wherever_they_stand(encoder: PairEncoder) -> None:
    disguise = TokenSwap(groups(), encoder, kept=3, spelt=1.0).disguise(7)
    moved = [word for word in WORDS if disguise.of(ids(encoder, word)) != ids(encoder, word)]
    assert moved
    assert all(len(disguise.of(ids(encoder, word))) in {2, 3} for word in moved)
    row = encoder.row(f"find {moved[0]}", f"button {moved[0]}", disguise)
    spelt = disguise.of(ids(encoder, moved[0]))
    assert row.ids[2 : 2 + len(spelt)] == row.ids[-1 - len(spelt) : -1]


def test_words_that_are_meant_are_never_disguised(encoder: PairEncoder) -> None:
    disguise = TokenSwap(groups(), encoder, kept=3, spelt=1.0, meant=WORDS).disguise(7)
    assert all(disguise.of(ids(encoder, word)) == ids(encoder, word) for word in WORDS)


def test_a_disguise_leaves_what_is_shared(encoder: PairEncoder) -> None:
    sharing = PairEncoder(
        encoder.tokenizer, DebertaV2Config(shared_words=True, type_vocab_size=N_TYPES), "query-text", 64
    )
    disguise = TokenSwap(groups(), sharing, kept=3, spelt=1.0).disguise(7)
    moved = next(word for word in WORDS if len(disguise.of(ids(sharing, word))) > 1)
    pair = f"find {moved}", f"button {moved}"
    plain, row = sharing.row(*pair), sharing.row(*pair, disguise)
    assert len(row.ids) > len(plain.ids)
    assert list(dict.fromkeys(row.types)) == list(dict.fromkeys(plain.types))
    assert len(set(plain.types)) == 5, "expected a type for the frame, both words of the query and both of the text"


def taught(encoder: PairEncoder, swap_share: float = 0.0) -> EpochPairs:
    lessons = []
    for group in groups():
        texts = sorted(set(group.texts))
        scores = np.array([float(len(text)) for text in texts], dtype=np.float32)
        lesson = Lesson({text: i for i, text in enumerate(texts)}, scores, -scores)
        lessons.append(PairGroup(group.query, (), tuple(texts), lesson))
    swap = TokenSwap(groups(), encoder, kept=3)
    return EpochPairs(lessons, encoder, negatives=3, seed=0, grouped=True, swap=swap, swap_share=swap_share)


def test_a_lesson_without_an_answer_gives_as_many_texts_and_their_scores(encoder: PairEncoder) -> None:
    example = taught(encoder, swap_share=1.0)[0]
    assert len(example.rows) == 4
    assert example.targets == (0.0,) * 4
    assert example.taught is not None
    assert set(example.taught.tolist()) <= {float(len(text)) for text in groups()[0].texts}


def test_texts_that_are_not_disguised_have_scores_of_their_own(encoder: PairEncoder) -> None:
    example = taught(encoder)[0]
    assert example.taught is not None
    assert (example.taught < 0).all()


def test_text_is_cut_and_query_is_not(encoder: PairEncoder) -> None:
    row = encoder.row("find amber", "div " * 200)
    assert len(row.ids) == 64
    assert row.split == len(ids(encoder, "find amber"))


def test_query_that_leaves_no_room_is_refused(encoder: PairEncoder) -> None:
    with pytest.raises(RankerError, match="max_tokens: expected room"):
        encoder.row("find " * 60, "div amber")


def test_recall_and_mrr_of_ranks() -> None:
    metrics = ranks_to_metrics([0, 4, 60])
    assert metrics["recall@1"] == pytest.approx(1 / 3)
    assert metrics["recall@5"] == pytest.approx(2 / 3)
    assert metrics["mrr"] == pytest.approx((1 + 1 / 5 + 1 / 61) / 3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ranker") / "trained"
    train(groups(), out, dataclasses.replace(QUICK, epochs=6), base=TINY, held_out=groups(3))
    return out


def test_trained_ranker_scores_as_it_was_taught(trained: Path) -> None:
    from ranker.cross_encoder import CrossEncoderRanker

    scores = CrossEncoderRanker(trained, device="cpu").score("find amber", ["div ember", "button ember"])
    assert scores[1] > scores[0]


def test_config_says_the_pair_order(trained: Path) -> None:
    assert json.loads((trained / "config.json").read_text())["pair_order"] == "query-text"


def test_config_says_what_the_texts_are_like(trained: Path, tmp_path: Path) -> None:
    assert json.loads((trained / "config.json").read_text())["text_form"] == "plain"
    train(groups(), tmp_path, dataclasses.replace(QUICK, epochs=1), base=TINY, text_form="placed")
    assert json.loads((tmp_path / "config.json").read_text())["text_form"] == "placed"


def test_record_holds_settings_and_recall_of_each_epoch(trained: Path) -> None:
    record = json.loads((trained / "training.json").read_text())
    assert record["settings"]["epochs"] == 6
    assert len([entry for entry in record["history"] if "eval_recall@10" in entry]) == 6


def test_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    for name in ("one", "two"):
        train(groups(4), tmp_path / name, QUICK, base=TINY)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_training_starts_from_a_checkpoint_with_pair_loss_and_hard_negatives(trained: Path, tmp_path: Path) -> None:
    settings = dataclasses.replace(QUICK, loss="pair", hard_negatives=2, accumulate=2)
    result = train(groups(4), tmp_path / "again", settings, base=trained)
    assert result.groups == 4
    assert (tmp_path / "again" / "model.safetensors").is_file()


def test_resume_goes_on_from_the_last_epoch(tmp_path: Path) -> None:
    out = tmp_path / "ranker"
    train(groups(4), out, QUICK, base=TINY)
    result = train(groups(4), out, dataclasses.replace(QUICK, epochs=3), base=TINY, resume=True)
    assert [entry["epoch"] for entry in result.history if "loss" in entry] == [1.0, 2.0, 3.0]


def test_groups_without_positives_are_dropped(tmp_path: Path) -> None:
    empty = PairGroup("find amber", (), ("div amber",))
    result = train([*groups(4), empty], tmp_path / "ranker", dataclasses.replace(QUICK, epochs=1), base=TINY)
    assert result.groups == 4


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hard_negatives": 9}, "hard_negatives: expected at most negatives"),
        ({"best_by": "luck"}, "best_by: expected one of"),
        ({"patience": 2}, "patience: expected held-out groups"),
    ],
)
def test_wrong_settings_are_one_sentence(settings: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(RankerError, match=sentence):
        train(groups(4), tmp_path / "ranker", dataclasses.replace(QUICK, **settings), base=TINY)


def test_no_usable_group_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RankerError, match="groups: expected at least one"):
        train([PairGroup("find amber", (), ("div amber",))], tmp_path / "ranker", QUICK, base=TINY)


def test_a_trained_folder_is_not_overwritten(trained: Path) -> None:
    with pytest.raises(RankerError, match="out: expected a folder without a model"):
        train(groups(4), trained, QUICK, base=TINY)


def test_a_ranker_from_scratch_reads_synonyms_as_one(tmp_path: Path) -> None:
    from ranker.cross_encoder import CrossEncoderRanker

    train(groups(4), tmp_path / "out", QUICK, base=TINY, synonyms=Synonyms({"find": "seek"}))

    encoded = CrossEncoderRanker(tmp_path / "out", device="cpu").encode(
        [("find amber", ["div amber"]), ("seek amber", ["div amber"])]
    )
    assert len(encoded.rows) == 1


def test_a_lesson_is_learnt(tmp_path: Path) -> None:
    """Nothing but a teacher says which text is better: there are no answers at all."""
    from ranker.cross_encoder import CrossEncoderRanker

    texts = ("div dune", "div birch", "div ember")
    scores = np.array([0.0, 0.0, 2.0], dtype=np.float32)
    lesson = Lesson({text: i for i, text in enumerate(texts)}, scores, scores)
    lessons = [PairGroup(f"find {word}", (), texts, lesson) for word in WORDS]
    settings = dataclasses.replace(QUICK, epochs=25, negatives=2, bf16=True)

    train(lessons, tmp_path / "ranker", settings, base=TINY)

    found = CrossEncoderRanker(tmp_path / "ranker", device="cpu").score("find amber", texts)
    assert found[2] > max(found[:2]) + 1


def test_two_processes_learn_lessons_as_one_does_from_batches_twice_as_large(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    from tests.ranker import train_lessons

    train_lessons.run(str(tmp_path / "one"), batch=4)
    run_together(2, "-m", "tests.ranker.train_lessons", tmp_path / "two", "2")

    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    # the gradient of a key's bias is nothing but rounding
    assert all(np.allclose(one[name], two[name], atol=1e-5) for name in one if name.endswith(".weight"))
