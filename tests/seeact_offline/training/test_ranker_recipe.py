"""Training on made-up pairs: a few seconds on one thread."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ranker.small_model import SmallModel, build_small, train_tokenizer
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch
from seeact_offline.training.ranker_tuning import (
    SMALL,
    EpochPairs,
    Pair,
    PairGroup,
    TrainingResult,
    TrainingSettings,
    collate,
    train,
)
from tests.together import run_together

pytestmark = pytest.mark.slow

TINY = SmallModel(vocab_size=400, hidden_size=32, layers=2, heads=2, intermediate_size=32, max_tokens=64, dropout=0.0)
QUICK = TrainingSettings(epochs=2, negatives=3, batch=4, learning_rate=3e-3, max_tokens=64, seed=1, threads=1)
WORDS = "amber birch cedar dune ember fjord grove heath inlet jetty".split()


def groups(n: int = 12) -> list[PairGroup]:
    """The right text is a button, the wrong ones are not."""
    return [
        PairGroup(f"find {WORDS[i % 10]}", (f"button {WORDS[(i + 3) % 10]}",), tuple(f"div {w}" for w in WORDS[:6]))
        for i in range(n)
    ]


def drawn(epoch: int = 0, seed: int = 0) -> list[Pair]:
    pairs = EpochPairs(groups(), negatives=5, seed=seed)
    pairs.set_epoch(epoch)
    return listed(pairs)


def listed(pairs: EpochPairs) -> list[Pair]:
    return [pairs[place] for place in range(len(pairs))]


def weights(folder: Path) -> dict[str, np.ndarray]:
    from safetensors.numpy import load_file

    found: dict[str, np.ndarray] = load_file(folder / "model.safetensors")
    return found


def losses(history: Any) -> list[float]:
    return [entry["loss"] for entry in history if "loss" in entry]


# The recipe


def test_defaults_are_the_published_recipe() -> None:
    recipe = TrainingSettings()
    assert (recipe.epochs, recipe.negatives, recipe.batch, recipe.learning_rate) == (5, 5, 32, 3e-5)
    assert (recipe.weight_decay, recipe.clip, recipe.warmup_epochs, recipe.max_tokens) == (0.01, 1.0, 0.5, 512)
    assert (recipe.accumulate, recipe.pair_order, recipe.distinct_negatives) == (1, "text-query", False)


def test_the_small_ones_recipe_is_the_published_one_but_for_rate_and_length() -> None:
    assert dataclasses.replace(SMALL, learning_rate=3e-5, max_tokens=512) == TrainingSettings()


def test_each_group_gives_one_positive_and_five_negatives_an_epoch() -> None:
    assert [pair.target for pair in drawn()] == [1.0, *[0.0] * 5] * 12


def test_as_published_a_negative_is_drawn_again_and_again() -> None:
    """Five of three, so that one at least comes twice; over many epochs each equally often."""
    group = PairGroup("find", ("button",), ("div", "span", "p"))
    pairs = EpochPairs([group], negatives=5, seed=0)
    seen: Counter[str] = Counter()
    for epoch in range(400):
        pairs.set_epoch(epoch)
        seen += Counter(pair.text for pair in listed(pairs))
        assert [pair.target for pair in listed(pairs)] == [1.0, *[0.0] * 5]
    assert seen["button"] == 400
    assert all(abs(seen[text] / 2000 - 1 / 3) < 0.05 for text in group.negatives)


def test_as_published_a_group_without_negatives_gives_positives_alone() -> None:
    pairs = listed(EpochPairs([PairGroup("find", ("one", "two"), ())], negatives=5, seed=0))
    assert [pair.target for pair in pairs] == [1.0] * 6
    assert {pair.text for pair in pairs} == {"one", "two"}


def test_distinct_negatives_are_not_drawn_twice_in_an_epoch() -> None:
    group = groups(1)[0]
    wrong = [pair.text for pair in listed(EpochPairs([group], 5, 0, distinct=True)) if not pair.target]
    assert len(set(wrong)) == 5
    assert set(wrong) < set(group.negatives)


def test_of_fewer_distinct_negatives_all_are_drawn() -> None:
    assert len(EpochPairs([PairGroup("find", ("button",), ("div", "span"))], 5, 0, distinct=True)) == 3


def test_every_positive_has_its_turn() -> None:
    pairs = EpochPairs([PairGroup("find", ("one", "two"), ("div",))], negatives=5, seed=0)
    seen = set()
    for epoch in range(20):
        pairs.set_epoch(epoch)
        seen.add(pairs[0].text)
    assert seen == {"one", "two"}


def test_draws_depend_on_seed_and_epoch_alone() -> None:
    assert drawn(1, 0) == drawn(1, 0)
    assert drawn(1, 0) != drawn(2, 0)
    assert drawn(1, 0) != drawn(1, 1)


# Batches


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer([text for group in groups() for text in (group.query, *group.texts)], 400, 64)


PAIRS = [Pair("find birch", "div", 0.0), Pair("find amber", "button dune", 1.0)]
"""Shortest first."""


@pytest.mark.parametrize(("order", "turned"), [("query-text", 1), ("text-query", -1)])
def test_a_batch_holds_the_pairs_in_the_order_asked_for(tokenizer: Any, order: Any, turned: int) -> None:
    (batch,) = collate(PAIRS, tokenizer, dataclasses.replace(QUICK, pair_order=order), together=2)["rows"]
    for row, pair in zip(batch["input_ids"].tolist(), PAIRS, strict=True):
        expected = tokenizer(*(pair.query, pair.text)[::turned])["input_ids"]
        assert row == expected + [tokenizer.pad_token_id] * (len(row) - len(expected))


def test_a_batch_says_what_is_padding_and_what_is_right(tokenizer: Any) -> None:
    (batch,) = collate(PAIRS, tokenizer, QUICK, together=2)["rows"]
    lengths = [len(tokenizer(pair.query, pair.text)["input_ids"]) for pair in PAIRS]
    assert batch["attention_mask"].sum(1).tolist() == lengths
    assert batch["targets"].tolist() == [0.0, 1.0]


def test_pairs_of_like_length_are_padded_together(tokenizer: Any) -> None:
    texts = ["div " * n for n in (9, 1, 8, 2)]
    rows = collate([Pair("find", text, 0.0) for text in texts], tokenizer, QUICK, together=2)["rows"]
    assert [[len(row) - row.count(tokenizer.pad_token_id) for row in some["input_ids"].tolist()] for some in rows] == [
        [len(tokenizer("find", "div " * n)["input_ids"]) for n in some] for some in ((1, 2), (8, 9))
    ]


def test_a_long_pair_loses_the_end_of_its_longer_text(tokenizer: Any) -> None:
    (batch,) = collate(
        [Pair("find amber", "div birch " * 100, 0.0)],
        tokenizer,
        dataclasses.replace(QUICK, pair_order="query-text"),
        together=2,
    )["rows"]
    row = batch["input_ids"][0].tolist()
    whole = tokenizer("find amber", "div birch " * 100)["input_ids"]
    assert row == [*whole[:63], tokenizer.sep_token_id]


# Training


@pytest.fixture(scope="module")
def base(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with random weights."""
    import torch

    folder = tmp_path_factory.mktemp("ranker") / "base"
    with torch.random.fork_rng():
        torch.manual_seed(1)
        build_small(TINY, tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ranker") / "trained"
    train(groups(), out, dataclasses.replace(QUICK, epochs=6), base=base, watch=Watch())
    return out


class Heard(Watch):
    """Keeps what a training tells, and counts its steps. `limit`: notes of logs after which it is ended."""

    def __init__(self, limit: int | None = None) -> None:
        self.lines: list[str] = []
        self.total = self.before = self.after = 0
        self.limit = limit

    def note(self, text: str) -> None:
        if text.startswith("training: "):
            return
        self.lines.append(text)
        if len(self.lines) == self.limit:
            raise KeyboardInterrupt

    def counting(self, total: int, label: str, unit: str) -> Any:
        self.total = total
        return nullcontext(self)

    def advance(self, figures: str, resumed: bool = False, n: int = 1) -> None:
        self.before += resumed
        self.after += not resumed


class Trained(NamedTuple):
    """A training of a few steps, and what it told meanwhile."""

    result: TrainingResult
    heard: Heard


@pytest.fixture(scope="module")
def quick(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    out, heard = tmp_path_factory.mktemp("ranker") / "quick", Heard()
    settings = dataclasses.replace(QUICK, learning_rate=6e-3)
    return Trained(train(groups(4), out, settings, base=base, watch=heard), heard)


def test_trained_ranker_scores_right_texts_higher(trained: Path) -> None:
    from ranker.cross_encoder import CrossEncoderRanker

    scores = CrossEncoderRanker(trained, device="cpu").score("find amber", ["div ember", "button ember"])
    assert scores[1] > scores[0]


def test_the_ranker_reads_the_order_it_was_trained_in(base: Path, trained: Path, tmp_path: Path) -> None:
    from ranker.cross_encoder import CrossEncoderRanker

    train(groups(4), tmp_path, dataclasses.replace(QUICK, epochs=1, pair_order="query-text"), base=base, watch=Watch())
    orders = [CrossEncoderRanker(folder, device="cpu").pair_order for folder in (trained, tmp_path)]
    assert orders == ["text-query", "query-text"]


def test_record_holds_settings_and_loss_of_the_first_step_and_each_epoch(trained: Path) -> None:
    record = json.loads((trained / "training.json").read_text())
    assert (record["settings"]["epochs"], record["groups"]) == (6, 12)
    assert len(losses(record["history"])) == 1 + 6


def test_the_first_step_and_each_epoch_are_told_in_one_line(quick: Trained) -> None:
    assert [line.startswith("loss ") for line in quick.heard.lines] == [True, True, True, False]
    assert not any("\n" in line for line in quick.heard.lines)


def test_each_step_is_counted(quick: Trained) -> None:
    assert (quick.heard.before, quick.heard.after) == (0, quick.heard.total)


def test_the_learning_rate_rises_for_half_an_epoch_and_falls_to_0(quick: Trained) -> None:
    """16 pairs an epoch: of eight steps two rise, six fall."""
    # of the last step of each epoch
    rates = [entry["learning_rate"] for entry in quick.result.history[1:] if "learning_rate" in entry]
    assert rates == pytest.approx([5e-3, 1e-3])


def test_the_end_of_a_training_leaves_no_checkpoints(quick: Trained) -> None:
    assert not (quick.result.folder / "checkpoints").exists()


def test_same_seed_gives_the_same_weights(quick: Trained, base: Path, tmp_path: Path) -> None:
    train(groups(4), tmp_path, dataclasses.replace(QUICK, learning_rate=6e-3), base=base, watch=Watch())
    one, two = weights(quick.result.folder), weights(tmp_path)
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_loss_is_the_binary_cross_entropy_of_each_pair(base: Path, tmp_path: Path) -> None:
    """Of one batch in two parts, at a learning rate that leaves the weights as they are."""
    from ranker.cross_encoder import CrossEncoderRanker

    settings = dataclasses.replace(QUICK, epochs=1, learning_rate=1e-12, batch=12)
    result = train(groups(3), tmp_path, settings, base=base, watch=Watch())
    pairs = listed(EpochPairs(groups(3), settings.negatives, settings.seed))
    ranker = CrossEncoderRanker(tmp_path, device="cpu")
    scores = np.array([ranker.score(pair.query, [pair.text])[0] for pair in pairs], dtype=float)
    right = 1 / (1 + np.exp(-scores))
    expected = -np.mean([np.log(p if pair.target else 1 - p) for p, pair in zip(right, pairs, strict=True)])
    assert losses(result.history) == [pytest.approx(expected, abs=1e-4)]


def test_training_starts_from_a_checkpoint(trained: Path, tmp_path: Path) -> None:
    settings = dataclasses.replace(QUICK, accumulate=2, learning_rate=1e-12)
    result = train(groups(4), tmp_path / "again", settings, base=trained, watch=Watch())
    assert result.groups == 4
    before, after = weights(trained), weights(tmp_path / "again")
    assert before.keys() == after.keys()
    assert all(np.allclose(before[name], after[name], atol=1e-6) for name in before)


def test_resume_goes_on_from_the_last_epoch(base: Path, tmp_path: Path) -> None:
    out, settings, heard = tmp_path / "ranker", dataclasses.replace(QUICK, epochs=3), Heard()
    # in the middle of what it tells of its second epoch, so that only the first is kept; its first step is told too
    with pytest.raises(KeyboardInterrupt):
        train(groups(4), out, settings, base=base, watch=Heard(limit=3))
    (out / "checkpoints" / "seconds").write_text("1000.0")
    (checkpoint,) = (out / "checkpoints").glob("checkpoint-*")
    result = train(groups(4), out, settings, base=base, watch=heard, checkpoint=checkpoint)
    assert [entry["epoch"] for entry in result.history if "loss" in entry][1:] == [1.0, 2.0, 3.0]
    assert 1000 < result.seconds < 1100
    assert (heard.before, heard.after) == (heard.total // 3, heard.total // 3 * 2)


@pytest.mark.parametrize(
    ("positives", "negatives", "as_published", "distinct"),
    [
        ((), ("div",), None, None),
        (("button",), (), (), None),
        (("button",), ("button",), ("button",), None),
        (("button",), ("button", "div"), ("button", "div"), ("div",)),
    ],
)
def test_a_group_that_gives_no_pairs_is_not_trained_on(
    positives: tuple[str, ...], negatives: tuple[str, ...], as_published: Any, distinct: Any
) -> None:
    """One without a positive; with distinct negatives also one that has none but twins of a positive, or none at all."""
    group = PairGroup("find", positives, negatives)
    trainable = [group.trainable(is_distinct) for is_distinct in (False, True)]
    assert [kept and kept.negatives for kept in trainable] == [as_published, distinct]


def test_a_warmup_without_end_is_refused() -> None:
    with pytest.raises(InputError, match=r"warmup_epochs: expected less than 2 epochs, got 2\.5"):
        dataclasses.replace(QUICK, warmup_epochs=2.5).check()


def test_two_processes_train_as_one_does(base: Path, tmp_path: Path) -> None:
    from tests.seeact_offline.training import train_pairs

    train_pairs.run(base, tmp_path / "one", batch=8)
    run_together(2, "-m", "tests.seeact_offline.training.train_pairs", base, tmp_path / "two", "8")

    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    # the gradient of a key's bias is nothing but rounding
    assert all(np.allclose(one[name], two[name], atol=1e-5) for name in one if name.endswith(".weight"))
