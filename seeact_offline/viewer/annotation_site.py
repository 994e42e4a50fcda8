"""Grounding by a person in the browser: the texts of a finished run to be judged, and the file of the answers.

The browser is sent what a person needs to judge a text: task, history, page and turn-1 text. It is never sent the right answer, the
run's choice or the ranking. Another annotator's answer is sent only for steps that this one has answered otherwise.

Names: those of the page itself, `index.json`, `annotate/KEY.json`, `img/NAME.webp`, and `agreement.json` where there is a second
file. Posts: `annotate/KEY` and `annotate/undo`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from seeact_offline.files.formats import FormatError, short, typed
from seeact_offline.grounding.oracle import PersonAnswer, answer_line, read_answers, read_turn1, turn1_sha256
from seeact_offline.records import OPERATIONS, InputError, StepKey
from seeact_offline.replies.next_action import parse_next_action
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import read_manifest
from seeact_offline.runs.strategy_opening import reply_source_of
from seeact_offline.scoring.agreement import ElementLabel, agreement, differ
from seeact_offline.viewer.index import tasks_json
from seeact_offline.viewer.notes import NoteFile, Response, StaleNote
from seeact_offline.viewer.run_data import open_data
from seeact_offline.viewer.site_files import StepFiles, StepSite, step_name
from seeact_offline.viewer.step_json import StepPage

UNDO = "annotate/undo"
LONGEST_VALUE = 10_000


class _AnswerPost(msgspec.Struct, forbid_unknown_fields=True):
    """An answer as the page sends it."""

    turn1_sha256: str
    """Digest of the text that the page showed."""
    element_id: str | None = None
    op: str = ""
    value: Annotated[str, msgspec.Meta(max_length=LONGEST_VALUE)] = ""
    skip: bool = False
    seconds: Annotated[float, msgspec.Meta(ge=0, le=1e7)] | None = None

    def __post_init__(self) -> None:
        if self.op not in (*OPERATIONS, ""):
            raise FormatError(f"op to be {', '.join(OPERATIONS)} or empty", short(self.op))


class _Undo(NamedTuple):
    """State of a step before its last change."""

    key: StepKey
    answer: PersonAnswer | None
    skipped: bool = False


class AnnotationSite(StepSite):
    """One annotator's file about one run's texts. Close it when done."""

    folder = "annotate"

    def __init__(
        self, run: Path, out: Path, *, annotator: str = "", second: Path | None = None, dataset: Any = None
    ) -> None:
        """`dataset`: path or id of the run's data; None: the one in its manifest.

        Raises InputError: no finished run with one turn 1 a step, other data, or a file of another annotator or about other texts.
        """
        super().__init__()
        self._run = run
        self._texts = _texts(run)
        self._data = open_data(read_manifest(run).settings, dataset)
        self._by_name = {step_name(key): key for key in self._texts}
        self._second = None if second is None else self._read("second", second)
        self._file: NoteFile[StepKey, PersonAnswer] = NoteFile(
            out, "out", lambda path: self._read("out", path), answer_line
        )
        try:
            self.annotator = _annotator(annotator, self._file.notes, out)
        except InputError:
            self.close()
            raise
        # not in the file, which has answers alone: a skipped step comes again the next time
        self._skipped: set[StepKey] = set()
        self._undo: list[_Undo] = []

    def close(self) -> None:
        self._file.close()

    # --- files ---

    def keys(self) -> Mapping[str, StepKey]:
        return self._by_name

    def tables(self) -> Mapping[str, Callable[[], Any]]:
        second = self._second
        compared = {} if second is None else {"agreement.json": lambda: self._agreement(second)}
        return {"index.json": self._index, **compared}

    def _index(self) -> dict[str, Any]:
        answers = self._file.notes
        return {
            "schema": 1,
            "mode": "annotate",
            "title": f"Meaning of the texts of {self._run.resolve().name}",
            "annotator": self.annotator,
            "out": self._file.path.name,
            "run": str(self._run),
            "second": self._second is not None,
            "n": len(self._texts),
            "keys": list(self._by_name),
            "tasks": tasks_json(self._texts, self._data.tasks),
            "done": {step_name(key): state for key in self._texts if (state := self._state(key)) is not None},
            "seconds": {step_name(key): one.seconds for key, one in answers.items() if one.seconds is not None},
        }

    def _state(self, key: StepKey) -> str | None:
        answer = self._file.notes.get(key)
        if answer is not None:
            return "none" if answer.element_id is None else "answered"
        return "skipped" if key in self._skipped else None

    def step_json(self, key: StepKey) -> dict[str, Any]:
        answer, other = self._file.notes.get(key), (self._second or {}).get(key)
        differs = answer is not None and other is not None and differ(_meaning(answer), _meaning(other))
        return {
            **self.step(key).json,
            "answer": None if answer is None else _meaning(answer)._asdict(),
            "other": {"annotator": other.annotator, **_meaning(other)._asdict()} if other and differs else None,
        }

    def open_step(self, key: StepKey) -> StepFiles:
        page, problems = None, ["The data set has no row of this step."]
        try:
            step = self._data.step(key)
        except InputError as error:
            step, problems = None, [f"The data set cannot be read: {error}."]
        elements: list[str] = []
        if step is not None:
            page = StepPage(step)
            problems = page.problems
            # in the order of the page, which does not give the right one away
            order = {node.backend_node_id: place for place, node in enumerate(page.page.nodes())} if page.page else {}
            elements = sorted(page.candidates, key=lambda one: (order.get(one, len(order)), one))
        text, images = self._texts[key], dict[str, Any]()
        plan = parse_next_action(text)
        return StepFiles(
            {
                "key": step_name(key),
                "annotation_id": key.annotation_id,
                "action_uid": key.action_uid,
                "task": step.task if step else "",
                "history": list(step.history) if step else [],
                "website": step.website if step else "",
                "domain": step.domain if step else "",
                "picture": page.picture_json(images) if page else None,
                "elements": [page.element(one) for one in elements] if page else [],
                "turn1": text,
                "turn1_sha256": turn1_sha256(text),
                "plan": {"op": plan.op, "value": plan.value},
                "problems": problems,
            },
            images,
        )

    def _agreement(self, others: Mapping[StepKey, PersonAnswer]) -> dict[str, Any]:
        """Figures as `scoring.agreement.Agreement` names them; those outside of the three parts are of the element."""
        first, second = ({key: _meaning(one) for key, one in some.items()} for some in (self._file.notes, others))
        found = agreement(first, second)
        nothing = dict.fromkeys(("agreement", "kappa", "ci95"))
        parts = {name: getattr(found, name) for name in ("element", "found", "operation")}
        figures = {name: nothing if part is None else asdict(part) for name, part in parts.items()}
        return {
            "n_both": found.n_both,
            "n_tasks": found.n_tasks,
            "n_first": len(first),
            "n_second": len(second),
            "annotators": [self.annotator, next((one.annotator for one in others.values()), "")],
            **figures["element"],
            **figures,
            "disagreements": [step_name(key) for key in found.disagreements],
        }

    # --- posts ---

    def post(self, name: str, body: Mapping[str, Any]) -> Response:
        """Saves, skips or takes back an answer."""
        if name == UNDO:
            return self._file.saving(self._take_back)
        folder, _, rest = name.partition("/")
        key = self._by_name.get(rest) if folder == "annotate" else None
        if key is None:
            return 404, {"error": "no such step"}
        return self._file.saving(lambda: self._save(key, typed(body, _AnswerPost)))

    def _save(self, key: StepKey, sent: _AnswerPost) -> Response:
        digest, answer = turn1_sha256(self._texts[key]), None
        if sent.turn1_sha256 != digest:
            raise StaleNote("text")
        if not sent.skip:
            known = {one["id"] for one in self.step(key).json["elements"]}
            if sent.element_id is not None and sent.element_id not in known:
                raise FormatError("element_id to be null or a candidate of the step", short(sent.element_id))
            value = "" if sent.op in ("CLICK", "") else sent.value
            seconds = None if sent.seconds is None else round(sent.seconds, 1)
            answer = PersonAnswer(sent.element_id, sent.op, value, digest, self.annotator, seconds)
        before = _Undo(key, self._file.notes.get(key), key in self._skipped)
        self._change(_Undo(key, answer, sent.skip))
        self._undo.append(before)
        return 200, {"saved": not sent.skip, "done": {step_name(key): self._state(key)}}

    def _change(self, to: _Undo) -> None:
        """Brings a step into this state. Raises OSError, and then nothing has changed."""
        self._file.keep(to.key, to.answer)
        (self._skipped.add if to.skipped else self._skipped.discard)(to.key)

    def _take_back(self) -> Response:
        """Undoes the last change; after a restart the last answers of the file, one by one."""
        before = self._undo or [_Undo(key, None) for key in self._file.notes]
        if not before:
            return 200, {"undone": None, "done": {}}
        last = before[-1]
        self._change(last)
        self._undo = self._undo[:-1]
        return 200, {"undone": step_name(last.key), "done": {step_name(last.key): self._state(last.key)}}

    # --- opening ---

    def _read(self, argument: str, path: Path) -> dict[StepKey, PersonAnswer]:
        """The answers of a file. Raises InputError for answers about other texts, which would be mixed up with these."""
        try:
            answers = read_answers(path)
        except InputError as error:
            raise error.renamed(argument) from None
        for key, answer in answers.items():
            if key not in self._texts:
                raise InputError(argument, f"answers about steps of {self._run}", f"{key} in {path}")
            if answer.turn1_sha256 != turn1_sha256(self._texts[key]):
                about = "no text that it names" if answer.turn1_sha256 is None else "another text"
                got = f"one of {key} about {about} in {path}"
                raise InputError(argument, f"answers about the texts of {self._run}", got)
        return answers


def _texts(run: Path) -> dict[StepKey, str]:
    """Step -> its one turn-1 text, in the run's order, without steps where the model declined. Raises InputError."""
    try:
        reply_source_of(run, EvalConfig())
        talks = read_turn1(run)
    except InputError as error:
        raise error.renamed("annotate") from None
    texts = {key: talk.texts[0] for key, talk in talks.items() if talk.texts}
    if not texts:
        raise InputError("annotate", sentence=f"{run} holds no turn-1 texts; name a run that asked two turns")
    return texts


def _annotator(named: str, answers: Mapping[StepKey, PersonAnswer], out: Path) -> str:
    """The one who began the file resumes it. Raises InputError for another."""
    known = sorted({answer.annotator for answer in answers.values()})
    others = [one for one in known if named and one != named]
    if others:
        raise InputError(
            "annotator", sentence=f"{out} holds answers of {others[0] or 'nobody'}, not of {named}; name another file"
        )
    return named or next(reversed(known), "")


def _meaning(answer: PersonAnswer) -> ElementLabel:
    return ElementLabel(answer.element_id, answer.op, answer.value)
