"""MindAct's multi-choice questions as training data, with or without the part of the page that each is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seeact_offline.dataset import Shard, Split
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.pages.dom import Page
from seeact_offline.prompting import PromptPack
from seeact_offline.ranking import check_candidates, top_k
from seeact_offline.ranking.pipeline import HARMLESS
from seeact_offline.records import InputError, RowError, Step, StepError
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.draws import HELD_OUT, Pool, draw, pool_of
from seeact_offline.training.examples import Encoder, check_pack, cut_counts, example
from seeact_offline.training.page_pictures import PLACE, open_pictures, place_columns, span_of
from seeact_offline.training.recipe import NEW_TOKENS, Recipe
from seeact_offline.training.training_rows import EPOCH, RowCounts, StepRows, check_scores, map_in_order, open_scores

HELD_OUT_DRAWS = 2
"""Questions of each step of the tasks held out."""
TOKENS = (("input_ids", pa.list_(pa.int32())), ("labels", pa.list_(pa.int32())))
TOGETHER = 32
"""Questions asked at once, while the trained model is evaluated."""

LEARNS = "choose the next element among five and say what is done there (MindAct, [2306.06070](https://arxiv.org/abs/2306.06070))"
CUT = "It was trained on questions whose page and rest were each cut at the limits above."
"""The card's sentences of purpose and of limits."""


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
                yield StepRows(RowCounts(left_out=Counter([error.name])))

    def words(self, part: Shard) -> list[str]:
        """A question with its answer of each training step, for a tokenizer to learn from."""
        found = []
        for step in part.steps():
            if step.annotation_id in self.held_out:
                continue
            try:
                page, pool = self._usable(step)
                one = example(self.pack, step, page, draw(pool, self.recipe, 0, 0))
            except StepError:
                continue
            found.append(f"{one.question}\n{one.answer}")
        return found

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
            ranks = {one.backend_node_id: one.rank for one in ranked}
        return page, pool_of(step, ranks, self.recipe.hard_negatives)

    def _step_rows(self, encoder: Encoder, step: Step, page: Page, pool: Pool) -> StepRows:
        """All questions of a step. Raises RowError for a candidate that is not in the page."""
        recipe, held_out = self.recipe, step.annotation_id in self.held_out
        if held_out:
            epochs = [HELD_OUT] * HELD_OUT_DRAWS
            draws = [draw(pool, recipe, HELD_OUT, number) for number in range(HELD_OUT_DRAWS)]
        else:
            epochs = [epoch for epoch in range(recipe.epochs) for _ in range(recipe.draws)]
            draws = [draw(pool, recipe, epoch, n) for epoch in range(recipe.epochs) for n in range(recipe.draws)]
        rows = list(encoder.rows([example(self.pack, step, page, drawn) for drawn in draws]))
        columns: list[Any] = [epochs, [row.input_ids for row in rows], [row.labels for row in rows]]
        if self.pictures is not None:
            columns += place_columns(step, [drawn.ids for drawn in draws])
        batch = pa.record_batch(columns, schema=self.schema)
        if held_out:
            return StepRows(RowCounts(held_out_steps=1), batch)
        return StepRows(RowCounts(steps=1, questions=len(rows), cuts=cut_counts(rows)), batch)


def words_of(parts: Sequence[Shard], maker: MultiChoice, processes: int) -> list[str]:
    """The words of all parts, in order."""
    return [text for texts in map_in_order(maker.words, parts, processes) for text in texts]


def open_multichoice(asked: FineTuning, split: Split) -> MultiChoice:
    """The questions without a tokenizer. Raises PromptError for prompts that cannot be cut apart, and InputError for a score file that
    lacks steps, or that is not asked for."""
    recipe = asked.resolved_recipe
    pack = open_pack(asked.prompts, "mindact", variant="seq2seq")
    check_pack(pack)
    if (asked.scores is None) != (recipe.hard_negatives is None):
        missing, given = ("scores", "hard_negatives") if asked.scores is None else ("hard_negatives", "scores")
        raise InputError(missing, sentence=f"`{given}` needs `{missing}`")
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
