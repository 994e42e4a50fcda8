"""`step/KEY.json`: one step with its page, the right answer, and each run's questions and replies.

Parts that cannot be read are null, and `problems` gives the reasons; the rest of the step is shown all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from seeact_offline.files.formats import FormatError
from seeact_offline.grounding.conversation import PastQuestion
from seeact_offline.grounding.strategies import STRATEGIES
from seeact_offline.pages.dom import TEXT, Page
from seeact_offline.pages.screenshots import PagePicture, group_crop, shown_box
from seeact_offline.records import (
    CallRecord,
    Candidate,
    InputError,
    Operation,
    Prediction,
    RankedCandidate,
    Reply,
    RowError,
    Step,
    StepKey,
    Truth,
    letter,
)
from seeact_offline.results.reading_again import rebuild_questions
from seeact_offline.runs.prepare import prepare
from seeact_offline.scoring.results import AnswerEntry, StepRow, TargetEntry
from seeact_offline.viewer.index import OUTCOMES
from seeact_offline.viewer.run_data import RunEntry, reason_of
from seeact_offline.viewer.site_files import StepFiles, image_name, picture_json, step_name

if TYPE_CHECKING:
    from PIL import Image

NO_PREDICTION: dict[str, Any] = {"detail": "", "ran": False, "notes": {}, "usage": None}
"""Fields of a run that keeps its scores alone."""


@dataclass(frozen=True)
class StepPage:
    """A step with its page and picture; None for each that cannot be read."""

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

    @property
    def problems(self) -> list[str]:
        return [f"The row has a fault, {fault.name}: {fault.detail}." for fault in self.step.faults]

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """The candidates by node, in the order of the row."""
        return {c.backend_node_id: c for c in self.step.candidates}

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """The first words of each candidate, as groups of choices have them."""
        page = self.page
        ids = [] if page is None else [node for node in self.candidates if node in page.ids]
        if page is None or not ids:
            return {}
        try:
            page.check_describable(ids)
            return dict(page.describe_group(ids).choices)
        except RowError:
            return {}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place of each element: `html > body > div:2 > a`; the number tells it from siblings of the same tag."""
        if self.page is None:
            return {}
        nodes = list(self.page.nodes())
        alike = Counter((node.parent, node.tag) for node in nodes)
        before: Counter[tuple[int, str]] = Counter()
        written: list[str] = []
        paths: dict[str, str] = {}
        for node in nodes:
            kind = node.parent, node.tag
            before[kind] += 1
            own = f"{node.tag}:{before[kind]}" if alike[kind] > 1 else node.tag
            written.append(f"{written[node.parent]} > {own}" if node.parent >= 0 else own)
            if node.backend_node_id and node.tag != TEXT:
                paths.setdefault(node.backend_node_id, written[-1])
        return paths

    def element(self, node: str, text: str = "") -> dict[str, Any]:
        """An element as JSON. `text`: its description, where a better one is known than the page's own."""
        candidate = self.candidates.get(node)
        return {
            "id": node,
            "tag": candidate.tag if candidate is not None else "",
            "box": list(candidate.box) if candidate is not None and candidate.box is not None else None,
            "text": text or self.descriptions.get(node, ""),
            "path": self.paths.get(node, ""),
        }

    def picture_json(self, images: dict[str, Callable[[], Image.Image]]) -> dict[str, Any] | None:
        """The picture in parts as JSON; None where it cannot be read. Adds the pixels of each part to `images`."""
        return None if self.picture is None else picture_json(self.step.key, self.picture, images)


@dataclass(frozen=True)
class _RunStep:
    """One step in a run's own files."""

    entry: RunEntry
    row: StepRow | None
    prediction: Prediction | None = None
    truth: Truth | None = None
    calls: Mapping[tuple[int, int], CallRecord] = field(default_factory=dict)


def open_step(key: StepKey, entries: Sequence[RunEntry], tasks: Mapping[str, str]) -> StepFiles:
    """`entries`: all runs, with the step or without. `tasks`: texts of tasks, where they are known."""
    builder = _StepBuilder(key, entries)
    return StepFiles(builder.json(tasks), builder.images)


class _StepBuilder:
    """One step while it is built, with the problems and the pictures found so far."""

    def __init__(self, key: StepKey, entries: Sequence[RunEntry]) -> None:
        self._key, self._entries = key, entries
        self._problems: list[str] = []
        self.images: dict[str, Callable[[], Image.Image]] = {}
        # of elements, as a model was sent them
        self._texts: dict[str, str] = {}
        self._pages = self._open_pages()
        self._page = next((page for page in self._pages.values() if page is not None), None)
        self._runs = [self._read(entry) for entry in entries]

    def json(self, tasks: Mapping[str, str]) -> dict[str, Any]:
        key, step = self._key, None if self._page is None else self._page.step
        self._problems += [
            entry.data_problem for entry in self._entries if step is None and entry.data_problem is not None
        ]
        self._problems += [] if self._page is None else self._page.problems
        row = next((run.row for run in self._runs if run.row is not None), None)
        truth = next((run.truth for run in self._runs if run.truth is not None), None if step is None else step.truth)
        # these name problems, pictures and texts, which are listed below
        runs = [None if run.row is None and run.prediction is None else self._run(run) for run in self._runs]
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
            "picture": None if self._page is None else self._page.picture_json(self.images),
            "elements": self._elements(truth.positives if truth is not None else frozenset()),
            "runs": runs,
            "problems": list(dict.fromkeys(self._problems)),
        }

    # --- reading ---

    def _open_pages(self) -> dict[int, StepPage | None]:
        """The step in each data set of the runs, by the object's identity; None where it is not in there."""
        pages: dict[int, StepPage | None] = {}
        for entry in self._entries:
            if entry.data is not None and id(entry.data) not in pages:
                step = None
                try:
                    step = entry.data.step(self._key)
                    if step is None and self._key in entry.run.rows:
                        self._problems.append(f"The data set of {entry.name} does not have this step.")
                except InputError as error:
                    self._problems.append(f"The data set of {entry.name} cannot be read: {error}.")
                pages[id(entry.data)] = None if step is None else StepPage(step)
        return pages

    def _read(self, entry: RunEntry) -> _RunStep:
        run, key = entry.run, self._key
        try:
            return _RunStep(entry, run.rows.get(key), run.prediction(key), run.truth(key), run.calls_of(key))
        except (FormatError, InputError, OSError) as error:
            self._problems.append(f"The files of {entry.name} cannot be read: {error}.")
            return _RunStep(entry, run.rows.get(key))

    # --- elements ---

    def _elements(self, positives: frozenset[str]) -> list[dict[str, Any]]:
        """The right ones, the choices, those offered by rank, then all others as the row lists them."""
        predictions = [run.prediction for run in self._runs if run.prediction is not None]
        # without a page, no question was rebuilt that would describe an element
        page, unknown = self._page, {"id": "", "tag": "", "box": None, "text": "", "path": ""}
        listed = {} if page is None else page.candidates
        right = [node for node in listed if node in positives] or sorted(positives)
        chosen = [prediction.element_id for prediction in predictions]
        chosen += [group.element_id for prediction in predictions for group in prediction.groups]
        ranked = [node for prediction in predictions for node in prediction.ranked]
        offered = [node for prediction in predictions for group in prediction.groups for node in group.offered]
        order = next((prediction.ranked for prediction in predictions if prediction.ranked), ())
        ranks = {node: rank for rank, node in enumerate(order)}
        scores = self._scores()
        return [
            {
                **(page.element(node, self._texts.get(node, "")) if page is not None else unknown | {"id": node}),
                "rank": ranks.get(node),
                "score": scores.get(node),
                "positive": node in positives,
            }
            for node in dict.fromkeys([*right, *chosen, *ranked, *offered, *listed])
            if node is not None
        ]

    def _scores(self) -> dict[str, float]:
        """The scores of the first run that has some."""
        for run in self._runs:
            page, kept = self._pages.get(id(run.entry.data)), run.entry.scores
            scores = None if page is None or kept is None else kept.of(page.step)
            if scores:
                return {node: score for node, (score, _) in scores.items()}
        return {}

    # --- runs ---

    def _run(self, run_step: _RunStep) -> dict[str, Any]:
        row, prediction = run_step.row, run_step.prediction
        if prediction is None:
            self._problems.append(f"{run_step.entry.name} does not keep the model's replies at this step.")
        cause = "not scored yet" if row is None else OUTCOMES.get(row.outcome, row.outcome.replace("_", " "))
        return {
            "outcome": row.outcome if row is not None else None,
            "cause": cause,
            "element": None if row is None or row.element is None else int(row.element),
            "f1": None if row is None else row.operation_f1,
            "success": None if row is None or row.success is None else int(row.success),
            "rank": None if row is None else row.best_rank,
            **(_scored_answer(row) if prediction is None else _answer(prediction)),
            "groups": [] if prediction is None else self._groups(run_step, prediction),
        }

    def _groups(self, run_step: _RunStep, prediction: Prediction) -> list[dict[str, Any]]:
        page = self._pages.get(id(run_step.entry.data))
        questions = {} if page is None else self._questions(run_step.entry, prediction, page)
        return [
            {
                **_reply(group, run_step.calls),
                **(
                    self._sent(questions[place], group)
                    if place in questions
                    else _not_known(run_step.entry, group, page)
                ),
            }
            for place, group in enumerate(prediction.groups)
        ]

    def _questions(self, entry: RunEntry, prediction: Prediction, page: StepPage) -> dict[int, PastQuestion]:
        """Place of each group -> its question, where it can be rebuilt."""
        grounding, questions = entry.grounding, dict[int, PastQuestion]()
        why = grounding if isinstance(grounding, str) else ""
        if not isinstance(grounding, str) and prediction.groups:
            try:
                n_earlier = grounding.earlier
                earlier = () if entry.data is None else entry.data.earlier(self._key, n_earlier)
                prepared = prepare(replace(page.step, earlier=earlier), None, 0, grounding.form.image)
                # predictions keep the order of the ranking, and no scores; one picture for all runs is decoded once
                ranked = tuple(RankedCandidate(node, 0.0, rank) for rank, node in enumerate(prediction.ranked))
                prepared = replace(prepared, picture=page.picture or prepared.picture, ranked=ranked)
                questions = rebuild_questions(grounding, prepared, prediction)
            except Exception as error:
                # an unforeseen page or prediction must not keep the step from being looked at
                why = reason_of(error)
        lacking = ", ".join(
            str(group.group + 1) for place, group in enumerate(prediction.groups) if place not in questions
        )
        if lacking:
            because = f": {why}" if why else ""
            self._problems.append(f"What {entry.name} sent with group {lacking} cannot be put together again{because}.")
        return questions

    def _sent(self, past: PastQuestion, group: Reply) -> dict[str, Any]:
        """The turns that were sent: those answered, and the one that the model declined."""
        question = past.question
        n = min(len(question.turns), len(group.replies) + 1)
        pictures = [*question.pictures, *[None] * n][:n]
        for node, text in zip(question.offered, question.texts, strict=False):
            self._texts.setdefault(node, text)
        return {
            "labels": list(question.labels) or _letters(group),
            "crop": shown_box(next((picture for picture in pictures if picture is not None), None)) or past.part,
            "window": past.part,
            "act": past.act,
            "system": question.system or None,
            "examples": [
                {"role": example.role, "text": example.text, "image": self._image(example.picture)}
                for example in question.examples
            ],
            "prompts": list(question.turns[:n]),
            "images": [self._image(picture) for picture in pictures],
        }

    def _image(self, picture: Any) -> str | None:
        """The name under which a `Picture` is shown; None for none."""
        if picture is None:
            return None
        name = image_name(self._key, picture.key)
        self.images[name] = picture.image
        return name


def _first(name: str, *sources: Step | StepRow | Truth | None) -> str:
    """This text of the first source that has it."""
    return next((text for source in sources if (text := getattr(source, name, ""))), "")


def _truth(truth: Truth | None, row: StepRow | None) -> dict[str, Any]:
    if truth is not None:
        operation, positives, target = truth.operation, truth.positives, truth.target
    else:
        scored = TargetEntry() if row is None else row.target
        operation, positives, target = Operation(scored.op, scored.value), frozenset(scored.element_ids), None
    return {**msgspec.structs.asdict(operation), "target": target, "positives": sorted(positives)}


def _scored_answer(row: StepRow | None) -> dict[str, Any]:
    """The answer as scores hold it."""
    answer = AnswerEntry() if row is None else row.predicted
    return {
        **NO_PREDICTION,
        "predicted": {**msgspec.structs.asdict(answer), "point": None},
        "failure": row and row.failure,
    }


def _answer(prediction: Prediction) -> dict[str, Any]:
    point = None if prediction.point is None else list(prediction.point)
    return {
        "predicted": {
            "element_id": prediction.element_id,
            "op": prediction.op,
            "value": prediction.value,
            "point": point,
        },
        "failure": prediction.failure,
        "detail": prediction.detail,
        "ran": prediction.ran,
        "notes": prediction.notes,
        "usage": prediction.usage.named,
    }


def _reply(group: Reply, calls: Mapping[tuple[int, int], CallRecord]) -> dict[str, Any]:
    records = [calls.get((group.group, turn)) for turn in range(1, len(group.replies) + 1)]
    return {
        "group": group.group,
        "final": group.is_final_round,
        "offered": list(group.offered),
        "replies": list(group.replies),
        "parsed": {name: getattr(group, name) for name in ("element_id", "op", "value", "failure", "detail")},
        "calls": [None if record is None else msgspec.to_builtins(record) for record in records],
    }


def _not_known(entry: RunEntry, group: Reply, page: StepPage | None) -> dict[str, Any]:
    """A question that cannot be rebuilt: labels and crop as they follow from what was offered, and no text."""
    strategy, crop = STRATEGIES.get(entry.run.settings.get("grounding") or ""), None
    if page is not None and not entry.run.settings.get("no_image"):
        offered = [page.candidates[node] for node in group.offered if node in page.candidates]
        boxes = [candidate.box for candidate in offered if candidate.box is not None]
        crop = list(group_crop(boxes, page.picture.size)) if boxes and page.picture is not None else None
    return {
        "labels": _letters(group) if strategy is not None and strategy.is_lettered else [],
        "crop": crop if group.shown is None else list(group.shown.part),
        "window": None,
        "act": "",
        "system": None,
        "examples": [],
        "prompts": None,
        "images": [None for _ in group.replies],
    }


def _letters(group: Reply) -> list[str]:
    return [letter(place) for place in range(len(group.offered))]
