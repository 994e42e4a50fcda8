"""Grounding by a person in the browser: the texts of a finished run to be judged, and the file of the answers.

What the browser is sent says of a step what a person needs to judge the text: task, history, page and turn-1 text. It never
says what is right, what was picked, or how elements were ranked. Another annotator's answer is sent for steps alone that this
one has answered otherwise.

Names beside the page's own: `index.json`, `annotate/KEY.json`, `img/NAME.webp`, and `agreement.json` where there is a second
file. Posts: `annotate/KEY` and `annotate/undo`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec

from seeact_offline.files.formats import FormatError, short, typed
from seeact_offline.grounding.oracle import PersonAnswer, answer_line, read_answers, read_turn1, turn1_sha256
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import OPERATIONS, CropBox, InputError, RowError, StepKey
from seeact_offline.replies.next_action import parse_next_action
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import read_manifest
from seeact_offline.runs.turn1 import reply_source_of
from seeact_offline.scoring.agreement import ElementLabel, Kappa, agreement, differ
from seeact_offline.viewer.data import open_data
from seeact_offline.viewer.durable import DurableLines
from seeact_offline.viewer.index import step_name
from seeact_offline.viewer.pictures import Kept, parts_of, webp
from seeact_offline.viewer.site import MIME, File, json_file, static_files
from seeact_offline.viewer.steps import OpenedPage

UNDO = "annotate/undo"
OPENED = 3
"""Steps whose pages are kept in memory."""
LONGEST_VALUE = 10_000


class _Said(msgspec.Struct, forbid_unknown_fields=True):
    """An answer as the page sends it."""

    turn1_sha256: str
    """Of the text that was on the page."""
    element_id: str | None = None
    op: str = ""
    value: Annotated[str, msgspec.Meta(max_length=LONGEST_VALUE)] = ""
    skip: bool = False
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e7)] | None = None

    def __post_init__(self) -> None:
        if self.op not in (*OPERATIONS, ""):
            raise FormatError(f"op to be {', '.join(OPERATIONS)} or empty", short(self.op))


@dataclass(frozen=True, slots=True)
class _Before:
    """What a step was before it was changed last."""

    key: StepKey
    answer: PersonAnswer | None
    skipped: bool


class Annotating:
    """One annotator's file about one run's texts. Any thread may use it; close it when done."""

    def __init__(
        self, run: Path, out: Path, *, annotator: str = "", second: Path | None = None, dataset: Any = None
    ) -> None:
        """`dataset`: where the run's data are now, else where the run had them.

        Raises InputError: no finished run with one turn 1 a step, other data, or a file of somebody else or about other texts.
        """
        self._run, self._lock = run, threading.Lock()
        self._texts = _texts(run)
        self._data = open_data(read_manifest(run).settings, dataset)
        self._by_name = {step_name(key): key for key in self._texts}
        self._second = {} if second is None else self._checked(_read("second", second), "second", second)
        self._has_second = second is not None
        self._file: DurableLines[StepKey] = DurableLines(out, "out")
        try:
            # under the lock, as another program may have been writing until now
            self._answers = self._checked(_read("out", out) if out.exists() else {}, "out", out)
            self.annotator = _annotator(annotator, self._answers, out)
        except InputError:
            self.close()
            raise
        self._file.load({key: answer_line(key, answer) for key, answer in self._answers.items()})
        self._skipped: dict[StepKey, None] = {}
        self._undo: list[_Before] = []
        self._opened: OrderedDict[StepKey, OpenedPage] = OrderedDict()
        self._images = Kept()

    def close(self) -> None:
        self._file.close()

    # --- what is served ---

    def names(self) -> Iterator[str]:
        """All but pictures, whose number is in each step's file."""
        yield from self._static
        yield "index.json"
        if self._has_second:
            yield "agreement.json"
        yield from (f"annotate/{name}.json" for name in self._by_name)

    def get(self, name: str) -> File | None:
        if name in self._static:
            return self._static[name]
        with self._lock:
            if name == "index.json":
                return json_file(self._index())
            if name == "agreement.json" and self._has_second:
                return json_file(self._agreement())
            folder, _, rest = name.partition("/")
            if folder == "annotate" and rest.endswith(".json"):
                key = self._by_name.get(rest.removesuffix(".json"))
                return None if key is None else json_file(self._step(key))
            return self._image(rest) if folder == "img" else None

    @cached_property
    def _static(self) -> dict[str, File]:
        return static_files()

    def _index(self) -> dict[str, Any]:
        keys = list(self._texts)
        ids = list(dict.fromkeys(key.annotation_id for key in keys))
        place = {annotation_id: i for i, annotation_id in enumerate(ids)}
        tasks = self._data.tasks
        return {
            "schema": 1,
            "mode": "annotate",
            "title": f"What the texts of {self._run.resolve().name} mean",
            "annotator": self.annotator,
            "out": self._file.path.name,
            "run": str(self._run),
            "second": self._has_second,
            "n": len(keys),
            "keys": list(self._by_name),
            "tasks": {
                "annotation_ids": ids,
                "texts": [tasks.get(one, "") for one in ids],
                "row": [place[key.annotation_id] for key in keys],
            },
            "done": {step_name(key): state for key in keys if (state := self._state(key)) is not None},
            "seconds": {
                step_name(key): answer.seconds for key, answer in self._answers.items() if answer.seconds is not None
            },
        }

    def _state(self, key: StepKey) -> str | None:
        answer = self._answers.get(key)
        if answer is not None:
            return "none" if answer.element_id is None else "answered"
        return "skipped" if key in self._skipped else None

    def _step(self, key: StepKey) -> dict[str, Any]:
        text, problems = self._texts[key], ["The data set has no row of this step."]
        try:
            page = self._page(key)
        except InputError as error:
            page, problems = None, [f"The data set cannot be read: {error}."]
        plan, answer = parse_next_action(text), self._answers.get(key)
        return {
            "key": step_name(key),
            "annotation_id": key.annotation_id,
            "action_uid": key.action_uid,
            "task": page.step.task if page else "",
            "history": list(page.step.history) if page else [],
            "website": page.step.website if page else "",
            "domain": page.step.domain if page else "",
            "picture": self._picture(key, page) if page else None,
            "elements": _elements(page) if page else [],
            "turn1": text,
            "turn1_sha256": turn1_sha256(text),
            "plan": {"op": plan.op, "value": plan.value},
            "answer": None if answer is None else _meant(answer)._asdict(),
            "other": self._other(key, answer),
            "problems": page.problems if page else problems,
        }

    def _other(self, key: StepKey, answer: PersonAnswer | None) -> dict[str, Any] | None:
        """The second's answer where this one's is another."""
        other = self._second.get(key)
        if answer is None or other is None or not differ(_meant(answer), _meant(other)):
            return None
        return {"annotator": other.annotator, **_meant(other)._asdict()}

    def _page(self, key: StepKey) -> OpenedPage | None:
        if key not in self._opened:
            step = self._data.step(key)
            if step is None:
                return None
            self._opened[key] = OpenedPage(step)
        self._opened.move_to_end(key)
        while len(self._opened) > OPENED:
            self._opened.popitem(last=False)
        return self._opened[key]

    @staticmethod
    def _picture(key: StepKey, page: OpenedPage) -> dict[str, Any] | None:
        if page.picture is None:
            return None
        width, height = page.picture.size
        parts = [
            {"top": box.y0, "height": box.y1 - box.y0, "src": f"img/{name}"}
            for name, box in _parts(key, page.picture).items()
        ]
        return {"width": width, "height": height, "parts": parts}

    def _image(self, name: str) -> File | None:
        known = self._images.get(name)
        if known is None:
            key = self._by_name.get(name.partition("-")[0])
            page = self._page(key) if key is not None else None
            picture = page.picture if page is not None else None
            parts = _parts(key, picture) if key is not None and picture is not None else {}
            if picture is None or name not in parts:
                return None
            try:
                known = webp(picture.part(parts[name]))
            except RowError:
                return None
            self._images.put(name, known)
        return File(known, MIME[".webp"])

    def _agreement(self) -> dict[str, Any]:
        """The names of figures are those of `scoring.agreement.Agreement`; `agreement`, `kappa` and `ci95` are of the element."""
        first, second = ({key: _meant(one) for key, one in some.items()} for some in (self._answers, self._second))
        found = agreement(first, second)
        figures = {name: _figures(getattr(found, name)) for name in ("element", "found", "operation")}
        return {
            "n_both": found.n_both,
            "n_tasks": found.n_tasks,
            "n_first": len(first),
            "n_second": len(second),
            "annotators": [self.annotator, next((one.annotator for one in self._second.values()), "")],
            **figures["element"],
            **figures,
            "disagreements": [step_name(key) for key in found.disagreements],
        }

    # --- what is said ---

    def post(self, name: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and what is answered. It is 200 only once the answer is on disk, and 409 for one about another text."""
        with self._lock:
            try:
                if name == UNDO:
                    return self._take_back()
                folder, _, rest = name.partition("/")
                key = self._by_name.get(rest) if folder == "annotate" else None
                return (404, {"error": "no such step"}) if key is None else self._say(key, typed(body, _Said))
            except FormatError as error:
                return 400, {"error": f"expected {error.expected}, got {error.got}"}
            except OSError as error:
                return 500, {"error": f"nothing was saved: {self._file.path.name} cannot be written: {error.strerror}"}
            except InputError as error:
                return 500, {"error": f"nothing was saved: {error}"}

    def _say(self, key: StepKey, said: _Said) -> tuple[int, dict[str, Any]]:
        digest = turn1_sha256(self._texts[key])
        if said.turn1_sha256 != digest:
            return 409, {"error": "the page shows another text than this step has here; load it again"}
        before = _Before(key, self._answers.get(key), key in self._skipped)
        if said.skip:
            # not kept in the file, which has answers alone: a step that was skipped comes again the next time
            self._change(key, None, skipped=True)
        else:
            page = self._page(key)
            known = {c.backend_node_id for c in page.step.candidates} if page is not None else set()
            if said.element_id is not None and said.element_id not in known:
                raise FormatError("element_id to be null or a candidate of the step", short(said.element_id))
            value = "" if said.op in ("CLICK", "") else said.value
            seconds = None if said.seconds is None else round(said.seconds, 1)
            answer = PersonAnswer(said.element_id, said.op, value, digest, self.annotator, seconds)
            self._change(key, answer)
        self._undo.append(before)
        return 200, {"saved": not said.skip, "done": {step_name(key): self._state(key)}}

    def _change(self, key: StepKey, answer: PersonAnswer | None, *, skipped: bool = False) -> None:
        """On disk first. Raises OSError, and then nothing has changed."""
        if answer is not None:
            self._file.put(key, answer_line(key, answer))
            self._answers.pop(key, None)
            self._answers[key] = answer
        elif key in self._answers:
            self._file.drop(key)
            del self._answers[key]
        self._skipped.pop(key, None)
        if skipped:
            self._skipped[key] = None

    def _take_back(self) -> tuple[int, dict[str, Any]]:
        """What was said last; after a restart the last answers of the file, one by one."""
        last = next(iter(self._undo[-1:]), None) or next(
            (_Before(k, None, False) for k in reversed(self._answers)), None
        )
        if last is None:
            return 200, {"undone": None, "done": {}}
        self._change(last.key, last.answer, skipped=last.skipped)
        self._undo = self._undo[:-1]
        return 200, {"undone": step_name(last.key), "done": {step_name(last.key): self._state(last.key)}}

    # --- opening ---

    def _checked(self, answers: dict[StepKey, PersonAnswer], argument: str, path: Path) -> dict[StepKey, PersonAnswer]:
        """Raises InputError for answers about other texts, which would be mixed up with those about these."""
        for key, answer in answers.items():
            if key not in self._texts:
                raise InputError(argument, f"answers about steps of {self._run}", f"{key} in {path}")
            if answer.turn1_sha256 != turn1_sha256(self._texts[key]):
                about = "no text that it names" if answer.turn1_sha256 is None else "another text"
                raise InputError(
                    argument, f"answers about the texts of {self._run}", f"one of {key} about {about} in {path}"
                )
        return answers


def _texts(run: Path) -> dict[StepKey, str]:
    """Step -> the one turn-1 text, in the run's order; steps where the model declined have none. Raises InputError."""
    try:
        reply_source_of(run, EvalConfig())
        talks = read_turn1(run)
    except InputError as error:
        raise InputError("annotate", error.expected, error.got) from None
    texts = {key: talk.texts[0] for key, talk in talks.items() if talk.texts}
    if not texts:
        raise InputError("annotate", "a run with turn-1 texts", f"{run}, which holds none")
    return texts


def _read(argument: str, path: Path) -> dict[StepKey, PersonAnswer]:
    try:
        return read_answers(path)
    except InputError as error:
        raise InputError(argument, error.expected, error.got) from None


def _annotator(named: str, answers: Mapping[StepKey, PersonAnswer], out: Path) -> str:
    """Whoever goes on with a file is the one who began it. Raises InputError."""
    known = {answer.annotator for answer in answers.values()}
    others = sorted(known - {named}) if named else []
    if others:
        raise InputError(
            "annotator", f"{others[0] or 'nobody'}, whose answers {out} holds", f"{named}; name another file"
        )
    return named or next(iter(sorted(known, reverse=True)), "")


# --- parts of a step ---


def _parts(key: StepKey, picture: PagePicture) -> dict[str, CropBox]:
    """Name of each part of the page's picture, which changes with the picture, and what it shows."""
    boxes = parts_of(picture.size)
    return {f"{step_name(key)}-{picture.digest[:12]}-{number}.webp": box for number, box in enumerate(boxes)}


def _meant(answer: PersonAnswer) -> ElementLabel:
    return ElementLabel(answer.element_id, answer.op, answer.value)


def _elements(page: OpenedPage) -> list[dict[str, Any]]:
    """All candidates in the order of the page, so that nothing tells the right one."""
    order = {node.backend_node_id: place for place, node in enumerate(page.page.nodes())} if page.page else {}
    candidates = {c.backend_node_id: c for c in page.step.candidates}.values()
    return [
        {
            "id": c.backend_node_id,
            "tag": c.tag,
            "box": None if c.box is None else list(c.box),
            "text": page.descriptions.get(c.backend_node_id, ""),
            "path": page.paths.get(c.backend_node_id, ""),
        }
        for c in sorted(candidates, key=lambda c: (order.get(c.backend_node_id, len(order)), c.backend_node_id))
    ]


def _figures(kappa: Kappa | None) -> dict[str, Any]:
    if kappa is None:
        return {"agreement": None, "kappa": None, "ci95": None}
    return asdict(kappa) | {"ci95": None if kappa.ci95 is None else list(kappa.ci95)}
