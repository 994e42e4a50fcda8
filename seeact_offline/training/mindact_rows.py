"""MindAct's multi-choice questions as training data, with or without the part of the page that each is about.

Every draw of elements follows from the seed, the step, the epoch and its number alone: a `random` module's generator
seeded by a text gives the same draws on every machine. The page's markup and the rest of a question are cut separately,
each at its end. A context whose cut loses the target is counted:
such a question cannot be answered from what is left of it.

Source: Mind2Web's released training code, commit 1b7c323.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seeact_offline.dataset import Shard, Split
from seeact_offline.grounding.mindact import STYLES, answer_text, option_letter, question_text
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.models.hf_loading import control_tokens, harmless
from seeact_offline.pages.dom import Page
from seeact_offline.prompting import PromptPack
from seeact_offline.ranking import check_candidates, top_k
from seeact_offline.ranking.pipeline import HARMLESS
from seeact_offline.records import InputError, PromptError, RowError, Step, StepError, StepKey, letter
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.recipe import HARD_SHARE, NEW_TOKENS, Recipe
from seeact_offline.training.training_rows import (
    EPOCH,
    HELD_OUT,
    PLACE,
    RowCounts,
    StepRows,
    check_scores,
    left_out,
    map_in_order,
    open_pictures,
    open_scores,
    place_columns,
    span_of,
)

HELD_OUT_DRAWS = 2
"""Questions of each step of the tasks held out."""
TOKENS = (("input_ids", pa.list_(pa.int32())), ("labels", pa.list_(pa.int32())))
TOGETHER = 32
"""Questions asked at once, while the trained model is evaluated."""

LEARNS = (
    "choose the next element among five and say what is done there"
    " (MindAct, [2306.06070](https://arxiv.org/abs/2306.06070))"
)
CUT = "It was trained on questions whose page and rest were each cut at the limits above."
"""The card's sentences of purpose and of limits."""
HTML = "{{html}}"


# --- draws ---


@dataclass(frozen=True, slots=True)
class Pool:
    """A step's candidates, by id, in the row's order."""

    key: StepKey
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    hard: tuple[str, ...] = ()
    """Elements of `wrong` that are ranked under k; empty if all count alike."""

    @property
    def easy(self) -> tuple[str, ...]:
        """Elements of `wrong` that are not `hard`."""
        hard = frozenset(self.hard)
        return tuple(node for node in self.wrong if node not in hard)


@dataclass(frozen=True, slots=True)
class Draw:
    """The elements of one question."""

    ids: tuple[str, ...]
    right: str | None
    """The element to be named; None: none of them."""


def pool_of(step: Step, ranks: Mapping[str, int] | None = None, under: int | None = None) -> Pool:
    """The candidates of a step. `ranks`: from 0, by id; `under`: wrong elements of lower ranks are hard."""
    right = tuple(c.backend_node_id for c in step.candidates if c.is_positive)
    wrong = tuple(c.backend_node_id for c in step.candidates if not c.is_positive)
    hard = tuple(node for node in wrong if ranks[node] < under) if ranks is not None and under is not None else ()
    return Pool(step.key, right, wrong, hard)


def draw(pool: Pool, recipe: Recipe, epoch: int, number: int) -> Draw:
    """Draws the elements of a question. `epoch` from 0, or HELD_OUT; `number` from 0. The step has a right element."""
    chance = random.Random(f"{recipe.seed}\n{pool.key}\n{epoch}\n{number}")
    wrong = pool.wrong
    if recipe.hard_negatives is not None:
        first, other = (pool.hard, pool.easy) if chance.random() < HARD_SHARE else (pool.easy, pool.hard)
        wrong = first or other
    if wrong and chance.random() < recipe.none_share:
        return Draw(tuple(chance.sample(wrong, min(recipe.choices, len(wrong)))), None)
    right = chance.choice(pool.right)
    return Draw((right, *chance.sample(wrong, min(recipe.choices - 1, len(wrong)))), right)


# --- a question ---


@dataclass(frozen=True, slots=True)
class Example:
    """A question with its answer, in words."""

    context: str
    """The page's markup, with which the question begins."""
    rest: str
    """The text after it."""
    answer: str
    options: tuple[str, ...]
    """Texts of the elements, from B."""
    place: int | None
    """Place of the right option, from 0; None: none of them."""

    @property
    def question(self) -> str:
        """The whole question, exactly as a model is asked."""
        return self.context + self.rest


def check_pack(pack: PromptPack) -> None:
    """Raises PromptError for prompts whose question does not begin with the page, which could not be cut apart."""
    if not pack.turn1.startswith(HTML):
        wanted = f"{HTML} at the head of mindact.turn1.seq2seq.txt of the pack {pack.name!r}"
        raise PromptError("prompts", wanted, repr(pack.turn1[:40]))


def example(pack: PromptPack, step: Step, page: Page, drawn: Draw) -> Example:
    """Words a question. Raises RowError for a candidate that is not in the page."""
    group = page.describe_group(drawn.ids, STYLES["seq2seq"])
    ids = [choice.backend_node_id for choice in group.choices]
    options = tuple(choice.text for choice in group.choices)
    text = question_text(pack, group.html, options, step.task, step.history)
    place = None if drawn.right is None else ids.index(drawn.right)
    answer = answer_text("seq2seq", place, step.operation)
    return Example(group.html, text[len(group.html) :], answer, options, place)


@dataclass(frozen=True, slots=True)
class Row:
    """A question with its answer, in tokens."""

    input_ids: list[int]
    labels: list[int]
    cuts: tuple[str, ...]
    """Names of CUTS."""


class Encoder:
    """Words to tokens, with a text-to-text tokenizer."""

    def __init__(self, tokenizer: Any, recipe: Recipe) -> None:
        self._tokenizer, self._recipe = tokenizer, recipe
        self._special = control_tokens(tokenizer)

    def rows(self, examples: Sequence[Example]) -> Iterator[Row]:
        """One row an example, in order."""
        contexts = self._encoded([question.context for question in examples])
        rests = self._encoded([question.rest for question in examples])
        answers = self._encoded([question.answer for question in examples])
        end = [self._tokenizer.eos_token_id]
        # one token of the question is the end of the text
        most, room = self._recipe.max_context, self._recipe.max_question - 1
        for question, context, rest, answer in zip(examples, contexts, rests, answers, strict=True):
            cuts = [*self._context_cuts(question, context, most), *self._question_cuts(question, rest, room)]
            ids = context.ids[:most] + rest.ids[:room] + end
            yield Row(ids, answer.ids + end, tuple(cuts))

    def _encoded(self, texts: Sequence[str]) -> Sequence[Any]:
        """Tokens as in the questions of `hf/`."""
        plain = [harmless(text, self._special) for text in texts]
        encodings: Sequence[Any] = self._tokenizer(plain, add_special_tokens=False).encodings
        return encodings

    def _context_cuts(self, question: Example, encoding: Any, most: int) -> Iterator[str]:
        if len(encoding.ids) > most:
            yield "contexts_cut"
            if question.place is not None:
                # an element is written with its tag and number first
                opening = " ".join(question.options[question.place].split()[:2])
                place = harmless(question.context, self._special).find(opening)
                if place < 0 or place + len(opening) > encoding.offsets[most - 1][1]:
                    yield "targets_lost_in_context"

    def _question_cuts(self, question: Example, encoding: Any, room: int) -> Iterator[str]:
        if len(encoding.ids) > room:
            yield "questions_cut"
            if question.place is not None:
                option = f"\n{option_letter(question.place)}. "
                if harmless(question.rest, self._special).rfind(option) + len(option) >= encoding.offsets[room - 1][1]:
                    yield "targets_lost_in_question"


def check_tokenizer(tokenizer: Any) -> None:
    """Raises InputError for a tokenizer that cannot write the answers' letters, or cannot say where it cut a text."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError("base", "a tokenizer of the package tokenizers (tokenizer.json)", type(tokenizer).__name__)
    if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
        raise InputError("base", "a tokenizer with tokens that end and pad a text", "one without")
    check_letters(tokenizer, 6)


def check_letters(tokenizer: Any, n: int) -> None:
    """Raises InputError for a tokenizer that cannot write the first so many letters."""
    letters = [letter(place) for place in range(n)]
    for sign in letters:
        written = tokenizer(f"{sign}.", add_special_tokens=False)["input_ids"]
        if tokenizer.decode(written, skip_special_tokens=True).strip()[: len(sign)] != sign:
            wanted = f"a tokenizer that can write the letters A to {letters[-1]}"
            raise InputError("base", wanted, f"one that cannot write {sign}")


# --- all questions ---


@dataclass(frozen=True, slots=True)
class MultiChoice:
    """Makes the questions of a recipe."""

    recipe: Recipe
    pack: PromptPack
    tokenizer: Any = None
    """None if words alone are wanted."""
    scores: Path | None = None
    """Score file of the ranks, with `hard_negatives`."""
    held_out: frozenset[str] = frozenset()
    """Tasks that are not trained on."""
    pictures: Path | None = None
    """The folder of `kept_pictures`, for questions that show parts of pages."""

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([EPOCH, *TOKENS, *(() if self.pictures is None else PLACE)])

    def steps(self, part: Shard) -> Iterator[StepRows]:
        encoder = Encoder(self.tokenizer, self.recipe)
        for step in part.steps():
            try:
                page, pool = self._usable(step)
                yield self._step_rows(encoder, step, page, pool)
            except StepError as error:
                yield left_out(error.name)

    def words(self, part: Shard) -> list[str]:
        """A question with its answer of each training step, for a tokenizer to learn from."""
        words = []
        for step in part.steps():
            if step.annotation_id in self.held_out:
                continue
            try:
                page, pool = self._usable(step)
                question = example(self.pack, step, page, draw(pool, self.recipe, 0, 0))
            except StepError:
                continue
            words.append(f"{question.question}\n{question.answer}")
        return words

    def _usable(self, step: Step) -> tuple[Page, Pool]:
        """Raises StepError for a step that nothing can be learnt from."""
        fault = next((fault for fault in step.faults if fault.name not in HARMLESS - {"bad_operation"}), None)
        if fault is not None:
            raise RowError(fault.name, fault.detail)
        if not step.truth.positives:
            raise RowError("no_positive")
        if self.pictures is not None:
            if step.key not in open_pictures(self.pictures):
                raise RowError("no_screenshot")
            # any candidate may be drawn: each needs its box
            span_of(step, [candidate.backend_node_id for candidate in step.candidates])
        page = Page(step.cleaned_html)
        check_candidates(step, page)
        ranks = None
        if self.scores is not None:
            ranked = top_k(step, open_scores(self.scores), len(step.candidates))
            ranks = {candidate.backend_node_id: candidate.rank for candidate in ranked}
        return page, pool_of(step, ranks, self.recipe.hard_negatives)

    def _step_rows(self, encoder: Encoder, step: Step, page: Page, pool: Pool) -> StepRows:
        """All questions of a step. Raises RowError for a candidate that is not in the page."""
        recipe, held_out = self.recipe, step.annotation_id in self.held_out
        epochs, n_draws = ([HELD_OUT], HELD_OUT_DRAWS) if held_out else ([*range(recipe.epochs)], recipe.draws)
        draws = [draw(pool, recipe, epoch, number) for epoch in epochs for number in range(n_draws)]
        rows = list(encoder.rows([example(self.pack, step, page, drawn) for drawn in draws]))
        of_draws = [epoch for epoch in epochs for _ in range(n_draws)]
        columns: list[Any] = [of_draws, [row.input_ids for row in rows], [row.labels for row in rows]]
        if self.pictures is not None:
            columns += place_columns(step, [drawn.ids for drawn in draws])
        batch = pa.record_batch(columns, schema=self.schema)
        if held_out:
            return StepRows(RowCounts(held_out_steps=1), batch)
        return StepRows(
            RowCounts(steps=1, questions=len(rows), cuts=Counter(name for row in rows for name in row.cuts)), batch
        )


def words_of(parts: Sequence[Shard], maker: MultiChoice, processes: int) -> list[str]:
    """The words of all parts, in order."""
    return [text for texts in map_in_order(maker.words, parts, processes) for text in texts]


def open_multichoice(asked: FineTuning, split: Split) -> MultiChoice:
    """The questions without a tokenizer. Raises PromptError for prompts that cannot be cut apart, and InputError for a
    score file that lacks steps, or that is not asked for."""
    recipe = asked.resolved_recipe
    pack = open_pack(asked.prompts, "mindact", variant="seq2seq")
    check_pack(pack)
    if (asked.scores is None) != (recipe.hard_negatives is None):
        missing, present = ("scores", "hard_negatives") if asked.scores is None else ("hard_negatives", "scores")
        raise InputError(missing, sentence=f"`{present}` needs `{missing}`")
    if asked.scores is not None:
        check_scores(asked.scores, split)
    return MultiChoice(recipe, pack, None, asked.scores)


def evaluation_fields(asked: FineTuning) -> dict[str, Any]:
    """Fields of `EvalConfig`: the full elimination, with as many choices as were trained on."""
    published = asked.published_recipe()
    cut = {} if published is None else {"max_input_tokens": published.input_tokens}
    return {
        "grounding": "mindact",
        "grounding_options": {"layout": "seq2seq"},
        "group_size": asked.resolved_recipe.choices,
        "protocol": "mindact",
        "model_args": {"batch_size": TOGETHER, **cut},
        "concurrency": TOGETHER,
        "max_tokens": NEW_TOKENS,
    }
