"""One training question: its texts, from the functions that ask it, and its tokens, cut as published.

The page's markup and the rest of the question are cut separately, each at its end. A context whose cut loses the target is
counted: such a question cannot be answered from what is left of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seeact_offline.grounding.mindact import STYLES, answer_text, option_letter, question_text
from seeact_offline.models.hf_loading import control_tokens, harmless
from seeact_offline.pages.dom import Page
from seeact_offline.prompting import PromptPack
from seeact_offline.records import InputError, PromptError, Step, letter
from seeact_offline.training.draws import Draw
from seeact_offline.training.recipe import Recipe

HTML = "{{html}}"


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
    """Raises RowError for a candidate that is not in the page."""
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


CUTS = {
    "contexts_cut": "page's markup cut at its limit",
    "questions_cut": "rest of the question cut at its limit",
    "targets_lost_in_context": "the cut took the right element out of the markup",
    "targets_lost_in_question": "the cut took the right option out of the question",
}
"""Kinds of cuts -> their meaning."""


class Encoder:
    """Words to tokens, with a text-to-text tokenizer."""

    def __init__(self, tokenizer: Any, recipe: Recipe) -> None:
        self._tokenizer, self._recipe = tokenizer, recipe
        self._special = control_tokens(tokenizer)

    def rows(self, examples: Sequence[Example]) -> Iterator[Row]:
        """One row an example, in order."""
        contexts = self._encoded([one.context for one in examples])
        rests = self._encoded([one.rest for one in examples])
        answers = self._encoded([one.answer for one in examples])
        end = [self._tokenizer.eos_token_id]
        # one token of the question is the end of the text
        most, room = self._recipe.max_context, self._recipe.max_question - 1
        for one, context, rest, answer in zip(examples, contexts, rests, answers, strict=True):
            cuts = [*self._context_cuts(one, context, most), *self._question_cuts(one, rest, room)]
            ids = context.ids[:most] + rest.ids[:room] + end
            yield Row(ids, answer.ids + end, tuple(cuts))

    def _encoded(self, texts: Sequence[str]) -> Sequence[Any]:
        """Tokens as in the questions of `hf/`."""
        plain = [harmless(text, self._special) for text in texts]
        encodings: Sequence[Any] = self._tokenizer(plain, add_special_tokens=False).encodings
        return encodings

    def _context_cuts(self, one: Example, encoding: Any, most: int) -> Iterator[str]:
        if len(encoding.ids) > most:
            yield "contexts_cut"
            if one.place is not None:
                # an element is written with its tag and number first
                opening = " ".join(one.options[one.place].split()[:2])
                found = harmless(one.context, self._special).find(opening)
                if found < 0 or found + len(opening) > encoding.offsets[most - 1][1]:
                    yield "targets_lost_in_context"

    def _question_cuts(self, one: Example, encoding: Any, room: int) -> Iterator[str]:
        if len(encoding.ids) > room:
            yield "questions_cut"
            if one.place is not None:
                option = f"\n{option_letter(one.place)}. "
                if harmless(one.rest, self._special).rfind(option) + len(option) >= encoding.offsets[room - 1][1]:
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
    for one in letters:
        written = tokenizer(f"{one}.", add_special_tokens=False)["input_ids"]
        if tokenizer.decode(written, skip_special_tokens=True).strip()[: len(one)] != one:
            wanted = f"a tokenizer that can write the letters A to {letters[-1]}"
            raise InputError("base", wanted, f"one that cannot write {one}")


def cut_counts(rows: Sequence[Row]) -> Counter[str]:
    """Number of rows with each of CUTS."""
    return Counter(name for row in rows for name in row.cuts)
