"""Training questions, against the slow way of making them, and how they are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import Split, open_split
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.pages.dom import Page
from seeact_offline.prompting import PromptPack
from seeact_offline.ranking import write_scores
from seeact_offline.ranking.score_files import ScoreRow
from seeact_offline.records import InputError, PromptError, ScoreFileError
from seeact_offline.training.mindact_rows import (
    Draw,
    Encoder,
    MultiChoice,
    check_pack,
    check_tokenizer,
    draw,
    example,
    pool_of,
)
from seeact_offline.training.recipe import Recipe
from seeact_offline.training.training_rows import (
    HELD_OUT,
    EpochRows,
    LengthGroupedOrder,
    RowCounts,
    check_scores,
    held_out_tasks,
    open_rows,
    parts_of,
    prepare,
)
from tests.reference import multichoice_data as slow
from tests.seeact_offline.training.conftest import rows_of, write_dataset

RECIPE = Recipe(epochs=2, draws=3, held_out=0)


@pytest.fixture(scope="module")
def pack() -> PromptPack:
    return open_pack("seeact", "mindact", variant="seq2seq")


def made_in(folder: Path, split: Split, maker: MultiChoice, processes: int = 1) -> RowCounts:
    return prepare(parts_of(split), maker, folder, {"seed": maker.recipe.seed}, processes)


def texts(folder: Path, tokenizer: Any, epoch: int) -> list[tuple[str, str]]:
    """Questions and answers as they were, by decoding."""
    rows = EpochRows(open_rows(folder), epoch)
    return [
        tuple(tokenizer.decode(row[name], skip_special_tokens=True) for name in ("input_ids", "labels"))
        for row in map(rows.__getitem__, range(len(rows)))
    ]


def write_ranks(path: Path, split: Split, ranks: Mapping[str, int] | None = None) -> Path:
    """A score file: elements rank in the row's order."""
    rows = [
        ScoreRow(step.key, candidate.backend_node_id, -float(place), place)
        for step in split.steps()
        for place, candidate in enumerate(step.candidates)
    ]
    write_scores(path, rows)
    return path


def test_questions_and_answers_are_those_of_the_slow_way(
    tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack
) -> None:
    made = made_in(tmp_path, train_split, MultiChoice(RECIPE, pack, tokenizer))
    expected = [pair for step in train_split.steps() for pair in slow.questions(step, pack.turn1, 0, 2, 3)]
    per_epoch = [texts(tmp_path, tokenizer, epoch) for epoch in range(2)]
    steps = len(expected) // 6
    found = [pair for n in range(steps) for epoch in range(2) for pair in per_epoch[epoch][3 * n : 3 * n + 3]]
    assert found == expected
    assert (made.steps, made.questions) == (steps, len(expected))


def test_real_pages_too(pack: PromptPack) -> None:
    steps = [step for step in open_split("sample", "train", limit=3).steps() if step.truth.positives]
    for step in steps[::4]:
        page, pool = Page(step.cleaned_html), pool_of(step)
        examples = [example(pack, step, page, draw(pool, Recipe(), 0, number)) for number in range(2)]
        assert [(one.question, one.answer) for one in examples] == slow.questions(step, pack.turn1, 0, 1, 2)


def test_page_and_question_are_cut_separately_as_the_tokenizer_would(
    train_split: Split, tokenizer: Any, pack: PromptPack
) -> None:
    step = next(iter(train_split.steps()))
    one = example(pack, step, Page(step.cleaned_html), draw(pool_of(step), Recipe(), 0, 0))
    for limits in ((512, 512), (20, 512), (512, 30), (7, 9)):
        recipe = Recipe(max_context=limits[0], max_question=limits[1])
        (row,) = Encoder(tokenizer, recipe).rows([one])
        assert row.input_ids == slow.tokens(tokenizer, one.question, len(one.context), *limits)


def test_a_question_that_is_not_cut_has_the_tokens_with_which_it_is_asked(tokenizer: Any, pack: PromptPack) -> None:
    step = next(step for step in open_split("sample", "train", limit=1).steps() if step.truth.positives)
    one = example(pack, step, Page(step.cleaned_html), draw(pool_of(step), Recipe(), 0, 0))
    (row,) = Encoder(tokenizer, Recipe(max_context=16_384, max_question=16_384)).rows([one])
    assert row.input_ids == tokenizer(one.question)["input_ids"]
    assert row.cuts == ()


def test_a_page_that_spells_out_a_special_token_does_not_end_the_text(tokenizer: Any, pack: PromptPack) -> None:
    step = next(step for step in open_split("sample", "train", limit=1).steps() if step.truth.positives)
    told = replace(step, task="write </s> and <pad> here")
    one = example(pack, told, Page(step.cleaned_html), draw(pool_of(step), Recipe(), 0, 0))
    (row,) = Encoder(tokenizer, Recipe(max_context=16_384, max_question=16_384)).rows([one])
    assert row.input_ids.count(tokenizer.eos_token_id) == 1
    assert tokenizer.pad_token_id not in row.input_ids


def test_cuts_that_lose_the_target_are_counted(train_split: Split, tokenizer: Any, pack: PromptPack) -> None:
    step = next(iter(train_split.steps()))
    page, right = Page(step.cleaned_html), step.candidates[0].backend_node_id
    one = example(pack, step, page, Draw(tuple(c.backend_node_id for c in step.candidates[:5]), right))
    opening = " ".join(one.options[one.place or 0].split()[:2])
    until = len(
        tokenizer(one.context[: one.context.find(opening) + len(opening)], add_special_tokens=False)["input_ids"]
    )
    kept, lost = (next(Encoder(tokenizer, Recipe(max_context=n)).rows([one])).cuts for n in (until + 1, until - 3))
    assert kept == ("contexts_cut",)
    assert lost == ("contexts_cut", "targets_lost_in_context")
    whole = len(tokenizer(one.rest)["input_ids"])
    asked = [next(Encoder(tokenizer, Recipe(max_question=n)).rows([one])).cuts for n in (whole, whole - 1, 12)]
    assert asked == [(), ("questions_cut",), ("questions_cut", "targets_lost_in_question")]


def test_cuts_reach_the_counts(tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack) -> None:
    made = made_in(tmp_path, train_split, MultiChoice(replace(RECIPE, max_context=8, max_question=12), pack, tokenizer))
    assert made.cuts["contexts_cut"] == made.cuts["questions_cut"] == made.questions
    assert 0 < made.cuts["targets_lost_in_context"] <= made.questions


def test_hard_negatives_come_from_the_score_file(
    tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack
) -> None:
    scores = write_ranks(tmp_path / "scores.parquet", train_split)
    recipe = replace(RECIPE, hard_negatives=3, none_share=0.0)
    hard = MultiChoice(recipe, pack, tokenizer, scores)
    made_in(tmp_path / "hard", train_split, hard)
    offered = {"hard": 0, "easy": 0}
    for step, (question, _) in zip(train_split.steps(), texts(tmp_path / "hard", tokenizer, 0)[::3], strict=True):
        # under 3 are the right one and the first two wrong ones
        page, pool = Page(step.cleaned_html), pool_of(step)
        wrong = draw(replace(pool, hard=pool.wrong[:2]), recipe, 0, 0)
        assert example(pack, step, page, wrong).question == question
        offered["hard" if set(wrong.ids) <= {*pool.right, *pool.wrong[:2]} else "easy"] += 1
    assert offered["hard"] > offered["easy"]
    made_in(tmp_path / "any", train_split, MultiChoice(replace(recipe, hard_negatives=None), pack, tokenizer))
    assert texts(tmp_path / "any", tokenizer, 0) != texts(tmp_path / "hard", tokenizer, 0)


@pytest.mark.slow
def test_any_number_of_processes_leaves_the_same_files(
    tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seeact_offline.training.training_rows.PART_ROWS", 3)
    for processes in (1, 2):
        made_in(tmp_path / str(processes), train_split, MultiChoice(RECIPE, pack, tokenizer), processes)
    one, two = (sorted((tmp_path / name).iterdir()) for name in ("1", "2"))
    assert [path.name for path in one] == [path.name for path in two]
    assert len(one) == 4
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]


def test_what_is_prepared_is_not_prepared_again(
    tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack
) -> None:
    maker = MultiChoice(RECIPE, pack, tokenizer)
    made = made_in(tmp_path, train_split, maker)
    before = (tmp_path / "part-00000.arrow").stat().st_mtime_ns
    assert made_in(tmp_path, train_split, maker) == made
    assert (tmp_path / "part-00000.arrow").stat().st_mtime_ns == before
    made_in(tmp_path, train_split, replace(maker, recipe=replace(RECIPE, seed=1)))
    assert (tmp_path / "part-00000.arrow").stat().st_mtime_ns != before


def test_batches_by_length_hold_each_question_of_their_epoch_once(
    tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack
) -> None:
    maker = MultiChoice(replace(RECIPE, draws=20), pack, tokenizer)
    made_in(tmp_path, train_split, maker)
    rows = EpochRows(open_rows(tmp_path), batch=4)
    order = LengthGroupedOrder(rows, 4, seed=0)
    orders = []
    for epoch in (0, 1):
        rows.begin_epoch(epoch)
        lengths = [len(rows[place]["input_ids"]) for place in range(len(rows))]
        assert rows.lengths() == lengths
        orders.append(list(order))
        assert sorted(orders[-1]) == list(range(len(order)))
        assert padded(lengths, orders[-1]) < padded(lengths, range(len(order)))
    assert orders[0] != orders[1]
    assert list(order) == orders[1]


def padded(lengths: Sequence[int], order: Sequence[int]) -> int:
    """Tokens of all batches of four, each as long as its longest question."""
    return sum(4 * max(lengths[place] for place in order[at : at + 4]) for at in range(0, len(order), 4))


def test_held_out_tasks_are_not_trained_on(
    tmp_path: Path, train_split: Split, tokenizer: Any, pack: PromptPack
) -> None:
    recipe = replace(RECIPE, held_out=0.1)
    held_out = held_out_tasks(train_split, recipe)
    made = made_in(tmp_path, train_split, MultiChoice(recipe, pack, tokenizer, held_out=held_out))
    (task,) = held_out
    words = {step.task for step in train_split.steps() if step.annotation_id == task}
    trained = [question for epoch in range(2) for question, _ in texts(tmp_path, tokenizer, epoch)]
    asked = [question for question, _ in texts(tmp_path, tokenizer, HELD_OUT)]
    assert (made.held_out_steps, len(asked)) == (2, 4)
    assert all(any(f"Task: {one}\n" in question for one in words) for question in asked)
    assert not any(f"Task: {one}\n" in question for one in words for question in trained)


def test_steps_that_cannot_be_learnt_from_are_counted(tmp_path: Path, tokenizer: Any, pack: PromptPack) -> None:
    rows = list(rows_of("train"))
    rows[0] = {**rows[0], "pos_candidates": []}
    rows[1] = {**rows[1], "cleaned_html": "<html"}
    rows[2] = {**rows[2], "operation": "press"}
    split = open_split(write_dataset(tmp_path / "d", train=rows), "train")
    made = made_in(tmp_path / "out", split, MultiChoice(RECIPE, pack, tokenizer))
    assert made.left_out == {"no_positive": 1, "bad_html": 1, "bad_operation": 1}
    assert made.steps == len(rows) - 3


def test_a_score_file_without_the_train_split_is_refused(tmp_path: Path, dataset: Path, train_split: Split) -> None:
    scores = write_ranks(tmp_path / "scores.parquet", open_split(dataset, "cross_task"))
    with pytest.raises(ScoreFileError, match="scores of all 8 steps of train, got 0 in"):
        check_scores(scores, train_split)


def test_a_tokenizer_that_cannot_write_the_letters_is_refused() -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {
        token: number for number, token in enumerate(["<pad>", "</s>", "<unk>", ".", "A", "B", "C", "D", "E"])
    }
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Punctuation()
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    with pytest.raises(InputError, match="cannot write F"):
        check_tokenizer(PreTrainedTokenizerFast(tokenizer_object=core, **special))


def test_prompts_that_do_not_begin_with_the_page_are_refused(pack: PromptPack) -> None:
    with pytest.raises(PromptError, match="at the head of"):
        check_pack(replace(pack, turn1=f"Look: {pack.turn1}"))


def test_held_out_share_that_leaves_nothing_is_refused(train_split: Split) -> None:
    with pytest.raises(InputError, match="held_out"):
        held_out_tasks(train_split, Recipe(held_out=0.9))
