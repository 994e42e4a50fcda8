"""The rules of two released evaluators by name, and a set without their slips.

| slip of VisualWebArena's code | `corrected` |
|---|---|
| `<` and `>` hold for equality | they do not |
| a fuzzy match's ` |OR| ` on a page asks for all | asks for any |
| of several queries about pictures the last one counts | all count |
| the judgement of an unachievable task replaces the other parts' score | is one part |
| after `required_values` an exact match sees the number | sees the answer |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import msgspec

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.formats import FormatError, typed, unescape_html
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import CropBox, Message, RowError
from seeact_offline.trajectories.answer_rules import (
    OR,
    THRESHOLD,
    Ask,
    Entries,
    Unscored,
    answers_question,
    checked_text,
    clean,
    clean_stripped,
    entries,
    exact_match,
    exact_match_stripped,
    fuzzy_match,
    includes_anywhere,
    is_similar,
    must_exclude,
    must_include,
    must_include_webarena,
    one_of,
    required_values,
    required_values_strict,
    ua_match,
    url_match,
    url_match_by_parts,
    whole_number,
)  # fmt: skip
from seeact_offline.trajectories.locators import EXPRESSIONS, locate
from seeact_offline.trajectories.task_states import TaskState

NOT_ACHIEVABLE = "N/A"
T = TypeVar("T", bound=msgspec.Struct)


class Target(msgspec.Struct, frozen=True):
    """A part of `program_html`: where to look, and for what."""

    url: str
    """A URL, or `last`."""
    required_contents: Mapping[str, Any]
    locator: str = ""
    prep_actions: Any = None


class Question(msgspec.Struct, frozen=True):
    """A question about pictures, and the text that an answer has to hold."""

    question: str
    answer: str


class PictureQuery(msgspec.Struct, frozen=True):
    """A part of `page_image_query`."""

    eval_image_url: str
    eval_image_class: str = ""
    eval_vqa: tuple[Question, ...] = ()
    eval_fuzzy_image_match: str | None = None
    ssim_threshold: float = THRESHOLD


@dataclass(frozen=True, kw_only=True)
class RuleSet:
    """The functions of one evaluator, by the names that task files give them; also as `rules["exact_match"]`.

    Functions take the answer (or address) first and the reference second, and return 1.0 for a pass, else 0.0.

    >>> [RULES[name].exact_match(" Vienna ", "vienna") for name in ("visualwebarena", "webarena")]
    [0.0, 1.0]
    >>> RULES["visualwebarena"].must_include("It costs 25 euros", ["25"])
    1.0
    """

    name: str
    clean: Callable[[str], str] = clean
    exact_match: Callable[[str | int, str], float] = exact_match
    must_include: Callable[[str, Entries], float] = must_include
    must_exclude: Callable[[str, Entries], float] = must_exclude
    one_of: Callable[[str, Entries], float] = one_of
    required_values: Callable[[str | int, Entries], float] = required_values
    fuzzy_match: Callable[[str, str, str, Ask], float] = fuzzy_match
    ua_match: Callable[[str, str, str, Ask], float] = ua_match
    url_match: Callable[[str, str, str | None], float] = url_match
    page_includes: Callable[[str, Entries], float] = must_include
    """`must_include` on the content of a page."""
    evaluators: tuple[str, ...] = ("string_match", "url_match", "program_html", "page_image_query")
    answer_rules: tuple[str, ...] = (
        "exact_match", "required_values", "must_include", "must_exclude", "one_of", "fuzzy_match",
    )  # fmt: skip
    page_rules: tuple[str, ...] = ("exact_match", "must_include", "must_exclude", "required_values", "fuzzy_match")
    """Rules for pages; the first one that a target names counts."""
    unescapes_pages: bool = False
    """Entities of HTML in a page's content become characters."""
    has_slips: bool = True
    """True: as released; False: without the slips of the table above."""

    def __getitem__(self, name: str) -> Callable[..., float]:
        return getattr(self, name)  # type: ignore[no-any-return]

    def string_match(self, answer: str, references: Mapping[str, Any], intent: str, note: str, ask: Ask) -> float:
        """The product of all rules on an answer, in the order of the task file.
        `note`: the reason of an unachievable task.

        Raises Unscored, and what `ask` raises.
        """
        score, text = 1.0, self.clean(answer)
        compared: str | int = text
        for name, value in references.items():
            if name not in self.answer_rules:
                raise Unscored("unsupported_evaluator", f"{self.name} has no {name}")
            if name == "fuzzy_match":
                score = self._fuzzy(score, compared, value, intent, note, ask)
            elif name == "exact_match":
                score *= self.exact_match(compared, checked_text(value))
            elif name in ("one_of", "required_values"):
                # they clean the answer themselves, and once
                score *= self[name](answer, _listed(value))
                number = whole_number(answer) if name == "required_values" and self.has_slips else None
                compared = compared if number is None else number
            else:
                score *= self[name](text, _listed(value))
        return score

    def _fuzzy(self, score: float, compared: str | int, value: object, intent: str, note: str, ask: Ask) -> float:
        """The score after a fuzzy match, which for an unachievable task may be an exact one."""
        answer = str(compared)
        if value != NOT_ACHIEVABLE:
            for reference in _listed(value):
                score = score and score * self.fuzzy_match(answer, reference, intent, ask)
            return score
        exact = self.exact_match(answer, NOT_ACHIEVABLE)
        if score * exact == 1.0:
            return 1.0
        if self.has_slips:
            return self.ua_match(answer, note, intent, ask)
        return score and score * (exact or self.ua_match(answer, note, intent, ask))

    def program_html(self, state: TaskState, targets: Sequence[Mapping[str, Any]], ask: Ask) -> float:
        """The product over all targets of what their locators find on stored pages.
        Raises Unscored, and what `ask` raises."""
        return product([partial(self._target, state, target, ask) for target in targets])

    def _target(self, state: TaskState, fields: Mapping[str, Any], ask: Ask) -> float:
        target = _typed(fields, Target)
        required = target.required_contents
        rule = next((rule for rule in self.page_rules if rule in required), None)
        if rule is None:
            raise Unscored("bad_task", f"expected one of {', '.join(self.page_rules)}, got {sorted(required)!r:.60}")
        # the released code acts on the page before it evaluates an expression, never before other locators
        if target.prep_actions and target.locator.startswith(EXPRESSIONS):
            raise Unscored("unsupported_locator", "the task acts on the page before it looks")
        text = locate(state.page(target.url), target.locator)
        if text is None:
            return 0.0
        content, value = unescape_html(text) if self.unescapes_pages else text, required[rule]
        if rule == "exact_match":
            return self.exact_match(content, checked_text(value))
        if rule == "fuzzy_match":
            references = checked_text(value).split(OR)
            verdicts = [self.fuzzy_match(content, reference, "NOT USED", ask) for reference in references]
            return float(all(verdicts) if self.has_slips else any(verdicts))
        wanted = _listed(value)
        if rule == "must_include":
            return self.page_includes(content, wanted)
        if rule == "must_exclude" and any(OR in entry for entry in wanted):
            # the released code stops at it, on pages alone
            raise Unscored("bad_task", f"expected must_exclude without{OR}, got {value!r:.60}")
        if rule == "required_values" and self.clean(content) != content.lower():
            # quotes of an answer are removed, those of a page are not, and a quoted text is no number
            return 0.0
        return self[rule](content, wanted)

    def page_image_query(self, state: TaskState, queries: Sequence[Mapping[str, Any]], ask: Ask) -> float:
        """Scores queries about the pictures of stored pages. A page without a picture fails.
        Raises Unscored, and what `ask` raises."""
        scores: list[float] = []
        for query in (_typed(fields, PictureQuery) for fields in queries):
            pictures = _pictures(state, query)
            if not pictures:
                return 0.0
            scores.append(_picture_query(state, query, pictures, ask))
        if self.has_slips:
            return scores[-1] if scores else 1.0
        return float(all(scores))


def product(parts: Sequence[Callable[[], float]]) -> float:
    """The product of parts: 0 if any is 0, whatever the others.
    Raises the first part's Unscored where the others leave it open."""
    problem: Unscored | None = None
    for part in parts:
        try:
            if part() == 0.0:
                return 0.0
        except Unscored as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return 1.0


def _pictures(state: TaskState, query: PictureQuery) -> list[bytes]:
    """The pictures of the page that a query is about. Raises Unscored."""
    page, locator = state.page(query.eval_image_url), query.eval_image_class
    if locator.strip() and not locator.startswith("."):
        raise Unscored("unsupported_locator", f"{locator!r:.80}")
    images = [image for element in page.select(locator if locator.strip() else "img") for image in element.iter("img")]
    sources = [image.get("src") for image in images]
    return [state.picture(source, page) for source in sources if source is not None]


def _picture_query(state: TaskState, query: PictureQuery, pictures: Sequence[bytes], ask: Ask) -> float:
    if not query.eval_vqa and query.eval_fuzzy_image_match is None:
        raise Unscored("bad_task", "expected eval_vqa or eval_fuzzy_image_match, got neither")

    def about(prompt: str, picture: bytes) -> str:
        page = PagePicture(StoredScreenshot(picture))
        try:
            return ask((Message("user", prompt, page.crop(CropBox(0, 0, *page.size))),))
        except RowError as error:
            raise Unscored("missing_picture", error.detail) from None

    passes = [answers_question(pictures, question.question, question.answer, about) for question in query.eval_vqa]
    if query.eval_fuzzy_image_match is not None:
        wanted = [state.picture(source) for source in query.eval_fuzzy_image_match.split(OR)]
        pairs = [(picture, other) for other in wanted for picture in pictures]
        passes.append(float(any(is_similar(picture, other, query.ssim_threshold) for picture, other in pairs)))
    return float(all(passes))


def _listed(value: Any) -> Sequence[str]:
    """References that a task file gives as a list.
    Raises Unscored `bad_task`, also for a text, at which the released code stops."""
    if isinstance(value, str):
        raise Unscored("bad_task", f"expected a list of texts, got {value!r:.60}")
    return entries(value)


def _typed(fields: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return typed(fields, kind)
    except FormatError as error:
        raise Unscored("bad_task", str(error)) from None


VISUALWEBARENA = RuleSet(name="visualwebarena")
WEBARENA = RuleSet(
    name="webarena",
    clean=clean_stripped,
    exact_match=exact_match_stripped,
    must_include=must_include_webarena,
    url_match=url_match_by_parts,
    page_includes=includes_anywhere,
    evaluators=("string_match", "url_match", "program_html"),
    answer_rules=("exact_match", "must_include", "fuzzy_match"),
    page_rules=("exact_match", "must_include"),
    unescapes_pages=True,
)
CORRECTED = replace(
    VISUALWEBARENA, name="corrected", required_values=required_values_strict, has_slips=False
)  # fmt: skip
RULES: Mapping[str, RuleSet] = {rules.name: rules for rules in (VISUALWEBARENA, WEBARENA, CORRECTED)}
"""Every rule set by its name."""
