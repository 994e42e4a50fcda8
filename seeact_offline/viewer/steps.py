"""`step/KEY.json`: one step with its page, what each run's model was sent and said, and what was right.

What cannot be had is null and said in `problems`; a step can be looked at whatever is missing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec

from seeact_offline.files.formats import FormatError
from seeact_offline.grounding import Grounding, PreparedStep
from seeact_offline.grounding.conversation import Question
from seeact_offline.pages.dom import TEXT, Page
from seeact_offline.pages.screenshots import PagePicture, group_crop
from seeact_offline.records import (
    CallRecord,
    Candidate,
    CropBox,
    InputError,
    Operation,
    Picture,
    Prediction,
    Reply,
    RowError,
    SeeActError,
    Step,
    StepKey,
    Truth,
    letter,
)
from seeact_offline.runs.ranking import kept_before
from seeact_offline.runs.runner import prepare
from seeact_offline.viewer.asked import open_grounding, questions_of, ranked
from seeact_offline.viewer.data import Data
from seeact_offline.viewer.index import OUTCOMES, step_name
from seeact_offline.viewer.pictures import parts_of
from seeact_offline.viewer.runs import Answer, Row, Target, ViewedRun

if TYPE_CHECKING:
    from PIL import Image

    from seeact_offline.ranking import FileScores

LETTERED = frozenset({"choice", "attributes"})
"""Groundings whose options are always letters."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a run asked."""

    grounding: Grounding | None
    problem: str = ""
    """Why that cannot be told."""


@dataclass(frozen=True)
class Shown:
    """A run, and where its pages and prompts come from."""

    name: str
    run: ViewedRun
    data: Data | None = None
    data_problem: str | None = None
    """Why there are no data, in a sentence."""
    n_steps: int | None = None
    """How many steps an unfinished run is to have; None where that is not known."""

    @cached_property
    def asking(self) -> Asking:
        try:
            return Asking(open_grounding(self.run.manifest))
        except SeeActError as error:
            return Asking(None, str(error))
        except Exception as error:
            # a manifest that another program wrote must not keep the step from being looked at
            return Asking(None, f"{type(error).__name__}: {error}")

    @cached_property
    def scores(self) -> FileScores | None:
        """What its ranker gave each candidate, where that is kept on this machine."""
        digest = (self.run.manifest.get("identity") or {}).get("scores_digest")
        return None if self.data is None or not isinstance(digest, str) else kept_before(self.data.split, digest)


@dataclass(frozen=True)
class OpenedPage:
    """A step's row of the data set, read as far as it can be."""

    step: Step

    @cached_property
    def page(self) -> Page | None:
        try:
            return Page(self.step.cleaned_html)
        except RowError:
            return None

    @cached_property
    def picture(self) -> PagePicture | None:
        try:
            picture = PagePicture(self.step.screenshot) if self.step.screenshot is not None else None
            return picture if picture is not None and picture.size else None
        except RowError:
            return None

    def prepared(self, said: Prediction, grounding: Grounding) -> PreparedStep:
        """As the run had it. Raises StepError."""
        prepared = prepare(self.step, None, 0, grounding.form.image)
        # one picture for all, so that it is decoded once
        return replace(prepared, picture=self.picture or prepared.picture, ranked=ranked(said))

    @property
    def problems(self) -> list[str]:
        return [f"The row has a fault, {fault.name}: {fault.detail}." for fault in self.step.faults]

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """The first words of each candidate, as groups of choices have them."""
        page = self.page
        if page is None:
            return {}
        ids = [node for node in dict.fromkeys(c.backend_node_id for c in self.step.candidates) if node in page.ids]
        try:
            page.check_describable(ids)
            return dict(page.describe_group(ids).choices) if ids else {}
        except RowError:
            return {}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Where each element is: `html > body > div:2 > a`, the number telling it from siblings of the same tag."""
        if self.page is None:
            return {}
        nodes = list(self.page.nodes())
        alike = Counter((node.parent, node.tag) for node in nodes)
        before: Counter[tuple[int, str]] = Counter()
        written: list[str] = []
        found: dict[str, str] = {}
        for node in nodes:
            kind = node.parent, node.tag
            before[kind] += 1
            own = f"{node.tag}:{before[kind]}" if alike[kind] > 1 else node.tag
            written.append(f"{written[node.parent]} > {own}" if node.parent >= 0 else own)
            if node.backend_node_id and node.tag != TEXT:
                found.setdefault(node.backend_node_id, written[-1])
        return found


@dataclass(frozen=True)
class OpenedStep:
    """A step as files."""

    json: dict[str, Any]
    images: Mapping[str, Callable[[], Image.Image]] = field(default_factory=dict)
    """Name of each picture -> how its pixels are had; raises RowError."""


def open_step(key: StepKey, shown: Sequence[Shown], tasks: Mapping[str, str]) -> OpenedStep:
    """`shown`: all runs, whether they have the step or not. `tasks`: texts of tasks, where they are known."""
    making = _Making(key, shown)
    return OpenedStep(making.json(tasks), making.images)


class _Making:
    """One step on its way to being shown, with what is found wrong and the pictures that are named on the way."""

    def __init__(self, key: StepKey, shown: Sequence[Shown]) -> None:
        self._key, self._shown = key, shown
        self._problems: list[str] = []
        self.images: dict[str, Callable[[], Image.Image]] = {}
        # of elements, as a model was sent them
        self._texts: dict[str, str] = {}
        self._pages = self._open_pages()
        self._page = next((page for page in self._pages.values() if page is not None), None)
        self._told = [self._read(one) for one in shown]

    def json(self, tasks: Mapping[str, str]) -> dict[str, Any]:
        key, step = self._key, None if self._page is None else self._page.step
        self._problems += [one.data_problem for one in self._shown if step is None and one.data_problem is not None]
        self._problems += [] if self._page is None else self._page.problems
        row = next((one.row for one in self._told if one.row is not None), None)
        truth = next((one.truth for one in self._told if one.truth is not None), None if step is None else step.truth)
        runs = [None if one.is_missing else self._run(one) for one in self._told]
        return {
            "key": step_name(key),
            **key._asdict(),
            "task": tasks.get(key.annotation_id, "") if step is None else step.task,
            "history": [] if step is None else list(step.history),
            "website": _first("website", step, row, truth),
            "domain": _first("domain", step, row, truth),
            "subdomain": _first("subdomain", step),
            "index": step.index if step is not None else row.n_before if row is not None else 0,
            "n_actions": step.n_actions if step is not None else row.n_actions if row is not None else 0,
            "truth": _truth(truth, row),
            "picture": self._picture(),
            "elements": self._elements(truth.positives if truth is not None else frozenset()),
            "runs": runs,
            "problems": list(dict.fromkeys(self._problems)),
        }

    # --- what is read ---

    def _open_pages(self) -> dict[int, OpenedPage | None]:
        """The step in each data set of the runs, by the object's identity; None where it is not in there."""
        pages: dict[int, OpenedPage | None] = {}
        for one in self._shown:
            if one.data is not None and id(one.data) not in pages:
                try:
                    step = one.data.step(self._key)
                    pages[id(one.data)] = None if step is None else OpenedPage(step)
                    if step is None and self._key in one.run.rows:
                        self._problems.append(f"The data set of {one.name} does not have this step.")
                except InputError as error:
                    pages[id(one.data)] = None
                    self._problems.append(f"The data set of {one.name} cannot be read: {error}.")
        return pages

    def _read(self, shown: Shown) -> _Told:
        run, key = shown.run, self._key
        try:
            return _Told(shown, run.rows.get(key), run.prediction(key), run.truth(key), run.calls_of(key))
        except (FormatError, OSError) as error:
            self._problems.append(f"The files of {shown.name} have changed while they were looked at: {error}.")
            return _Told(shown, run.rows.get(key))

    def _name_image(self, key: str, pixels: Callable[[], Image.Image]) -> str:
        """`key`: the same for the same picture."""
        name = f"img/{step_name(self._key)}-{hashlib.sha256(key.encode()).hexdigest()[:12]}.webp"
        self.images[name] = pixels
        return name

    # --- the page ---

    def _picture(self) -> dict[str, Any] | None:
        picture = None if self._page is None else self._page.picture
        if picture is None:
            return None
        width, height = picture.size
        parts = [
            {
                "top": box.y0,
                "height": box.y1 - box.y0,
                "src": self._name_image(f"{picture.digest} part {box}", partial(picture.part, box)),
            }
            for box in parts_of(picture.size)
        ]
        return {"width": width, "height": height, "parts": parts}

    def _elements(self, positives: frozenset[str]) -> list[dict[str, Any]]:
        """What is right, what was picked, what was offered by rank, then all others as the row lists them."""
        said = [one.prediction for one in self._told if one.prediction is not None]
        listed = {} if self._page is None else {c.backend_node_id: c for c in self._page.step.candidates}
        right = [node for node in listed if node in positives] or sorted(positives)
        picked = [one.element_id for one in said] + [group.element_id for one in said for group in one.groups]
        ranked_ids = [node for one in said for node in one.ranked]
        offered = [node for one in said for group in one.groups for node in group.offered]
        order = next((one.ranked for one in said if one.ranked), ())
        ranks = {node: rank for rank, node in enumerate(order)}
        scores = self._scores()
        return [
            {
                **self._described(node, listed.get(node)),
                "rank": ranks.get(node),
                "score": scores.get(node),
                "positive": node in positives,
            }
            for node in dict.fromkeys([*right, *picked, *ranked_ids, *offered, *listed])
            if node is not None
        ]

    def _scores(self) -> dict[str, float]:
        """Of the first run that has some."""
        for told in self._told:
            page, kept = self._pages.get(id(told.shown.data)), told.shown.scores
            found = None if page is None or kept is None else kept.of(page.step)
            if found:
                return {node: score for node, (score, _) in found.items()}
        return {}

    def _described(self, node: str, candidate: Candidate | None) -> dict[str, Any]:
        page = self._page
        return {
            "id": node,
            "tag": candidate.tag if candidate is not None else "",
            "box": list(candidate.box) if candidate is not None and candidate.box is not None else None,
            "text": self._texts.get(node) or (page.descriptions.get(node, "") if page is not None else ""),
            "path": page.paths.get(node, "") if page is not None else "",
        }

    # --- the runs ---

    def _run(self, told: _Told) -> dict[str, Any]:
        row, said, name = told.row, told.prediction, told.shown.name
        if said is None:
            self._problems.append(f"{name} does not keep what was said at this step.")
        return {
            "outcome": row.outcome if row is not None else None,
            "cause": _cause(row),
            "element": None if row is None or row.element is None else int(row.element),
            "f1": None if row is None else row.operation_f1,
            "success": None if row is None or row.success is None else int(row.success),
            "rank": None if row is None else row.best_rank,
            **(_said(said) if said is not None else {**NOTHING_SAID, **_scored(row)}),
            "groups": [] if said is None else self._groups(told, said),
        }

    def _groups(self, told: _Told, said: Prediction) -> list[dict[str, Any]]:
        page = self._pages.get(id(told.shown.data))
        asked = {} if page is None else self._asked(told.shown, said, page)
        return [
            {
                **_reply(group, told.calls),
                **(self._sent(asked[place], group) if place in asked else _not_told(told.shown, group, page)),
            }
            for place, group in enumerate(said.groups)
        ]

    def _asked(self, shown: Shown, said: Prediction, page: OpenedPage) -> dict[int, Question]:
        """Place of each group -> what was asked there, as far as it can be told."""
        if not said.groups:
            return {}
        why, found = shown.asking.problem, {}
        if shown.asking.grounding is not None:
            try:
                found = questions_of(shown.asking.grounding, page.prepared(said, shown.asking.grounding), said)
            except SeeActError as error:
                why = str(error)
            except Exception as error:
                # a page or a prediction that we never met must not keep the step from being looked at
                why = f"{type(error).__name__}: {error}"
        lacking = ", ".join(str(one.group) for place, one in enumerate(said.groups) if place not in found)
        if lacking:
            because = f": {why}" if why else ""
            self._problems.append(f"What {shown.name} sent with group {lacking} cannot be put together again{because}.")
        return found

    def _sent(self, question: Question, group: Reply) -> dict[str, Any]:
        """The turns that were sent: those answered, and the one that the model declined."""
        n = min(len(question.turns), len(group.replies) + 1)
        pictures = [*question.pictures, *[None] * n][:n]
        for node, text in zip(question.offered, question.texts, strict=False):
            self._texts.setdefault(node, text)
        return {
            "labels": list(question.labels) or _letters(group),
            "crop": _cut_from(next((picture for picture in pictures if picture is not None), None)),
            "system": question.system or None,
            "examples": [{"role": one.role, "text": one.text} for one in question.examples],
            "prompts": list(question.turns[:n]),
            "images": [None if one is None else self._name_image(one.key, _pixels(one)) for one in pictures],
        }


@dataclass(frozen=True)
class _Told:
    """What a run's own files say of a step."""

    shown: Shown
    row: Row | None
    prediction: Prediction | None = None
    truth: Truth | None = None
    calls: Mapping[tuple[int, int], CallRecord] = field(default_factory=dict)

    @property
    def is_missing(self) -> bool:
        return self.row is None and self.prediction is None


NOTHING_SAID: dict[str, Any] = {"detail": "", "ran": False, "notes": {}, "usage": None}
"""Of a run that keeps its scores alone."""


def _scored(row: Row | None) -> dict[str, Any]:
    """What a run's scores say of its answer."""
    answer = Answer() if row is None else row.predicted
    return {"predicted": {**msgspec.structs.asdict(answer), "point": None}, "failure": row and row.failure}


def _first(name: str, *sources: Step | Row | Truth | None) -> str:
    """Of the first source that has such a text."""
    return next((text for one in sources if (text := getattr(one, name, ""))), "")


def _truth(truth: Truth | None, row: Row | None) -> dict[str, Any]:
    if truth is not None:
        operation, positives, target = truth.operation, truth.positives, truth.target
    else:
        kept = Target() if row is None else row.target
        operation, positives, target = Operation(kept.op, kept.value), frozenset(kept.element_ids), None
    return {**asdict(operation), "target": target, "positives": sorted(positives)}


def _cause(row: Row | None) -> str:
    return "not scored yet" if row is None else OUTCOMES.get(row.outcome, row.outcome.replace("_", " "))


def _said(said: Prediction) -> dict[str, Any]:
    point = None if said.point is None else list(said.point)
    return {
        "predicted": {"element_id": said.element_id, "op": said.op, "value": said.value, "point": point},
        "failure": said.failure,
        "detail": said.detail,
        "ran": said.ran,
        "notes": dict(said.notes),
        "usage": said.usage.named,
    }


def _reply(group: Reply, calls: Mapping[tuple[int, int], CallRecord]) -> dict[str, Any]:
    took = [calls.get((group.group, turn)) for turn in range(1, len(group.replies) + 1)]
    return {
        "group": group.group,
        "final": group.is_final_round,
        "offered": list(group.offered),
        "replies": list(group.replies),
        "parsed": {name: getattr(group, name) for name in ("element_id", "op", "value", "failure", "detail")},
        "calls": [None if record is None else asdict(record) for record in took],
    }


def _not_told(shown: Shown, group: Reply, page: OpenedPage | None) -> dict[str, Any]:
    """The crop is around what was offered; nothing is said to have been sent."""
    grounding = shown.run.settings.get("grounding")
    return {
        "labels": _letters(group) if grounding in LETTERED else [],
        "crop": None if page is None or shown.run.settings.get("no_image") else _around(group, page),
        "system": None,
        "examples": [],
        "prompts": None,
        "images": [None for _ in group.replies],
    }


def _letters(group: Reply) -> list[str]:
    return [letter(place) for place in range(len(group.offered))]


def _around(group: Reply, page: OpenedPage) -> list[int] | None:
    offered = frozenset(group.offered)
    boxes = [c.box for c in page.step.candidates if c.backend_node_id in offered and c.box is not None]
    return list(group_crop(boxes, page.picture.size)) if boxes and page.picture is not None else None


def _cut_from(picture: Picture | None) -> list[int] | None:
    """Page pixels that the picture shows."""
    # a marked picture says what it is a crop of
    box: CropBox | None = getattr(getattr(picture, "crop", picture), "box", None)
    return None if box is None else list(box)


def _pixels(picture: Picture) -> Callable[[], Image.Image]:
    pixels: Callable[[], Image.Image] = picture.image  # type: ignore[attr-defined]
    return pixels
