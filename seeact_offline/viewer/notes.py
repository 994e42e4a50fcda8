"""People's notes on steps: one line of JSON a note, in a file that `eval` or `score` reads.

Every change replaces the whole file, so that readers see a whole file at any moment and no crash leaves half of one. With 15,000
lines that takes less time than a person's next thought. A note that the page sends names its step and the digest of the text that
the page showed, so that none is taken for a note on another text.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.files.formats import FormatError, check_other_answer, typed
from seeact_offline.files.whole import write_whole
from seeact_offline.records import InputError, OtherAnswer, Prediction, StepKey
from seeact_offline.scoring.also_right import OtherAnswerLine, read_also_right
from seeact_offline.scoring.human_causes import (
    AnswerId,
    HumanCause,
    answer_digest,
    cause_line,
    check_cause,
    read_causes,
)

K = TypeVar("K", bound=Hashable)
N = TypeVar("N")
Response = tuple[int, dict[str, Any]]
"""Status and JSON of an answer to a post."""


class StaleNote(Exception):
    """The note is about another text than the step has."""


class NoteFile(Generic[K, N]):
    """Notes in the order in which they were last changed. Keeps other programs off the file until it is closed."""

    def __init__(
        self, path: Path, argument: str, read: Callable[[Path], dict[K, N]], line: Callable[[K, N], str]
    ) -> None:
        """`argument`: name of the path in errors. `read`: the notes of a file. `line`: the JSON of one note.

        Raises InputError for a file that cannot be read or written, or is in use.
        """
        # a link stays a link: its target is replaced
        self.path = path.resolve()
        self._line = line
        self._threads = threading.Lock()
        self._programs = FileLock(self.path.with_name(f".{self.path.name}.lock"))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._programs.acquire(blocking=False)
        except Timeout:
            raise InputError(
                argument, sentence=f"another program is writing {path}; wait for it, or name another file"
            ) from None
        except (NotImplementedError, OSError) as error:
            raise InputError(argument, sentence=f"cannot write {path}: {error}") from None
        try:
            # not before the lock is held: another program may have been writing until now
            self.notes: Mapping[K, N] = read(path) if path.exists() else {}
        except InputError:
            self.close()
            raise
        self._lines = {key: line(key, note) for key, note in self.notes.items()}

    def close(self) -> None:
        self._programs.release()

    def keep(self, key: K, note: N | None) -> None:
        """Adds a note, or moves a changed one to the end; None removes it. Raises OSError, and then nothing has changed."""
        if note is None and key not in self.notes:
            return
        lines = {k: text for k, text in self._lines.items() if k != key}
        notes = {k: other for k, other in self.notes.items() if k != key}
        if note is not None:
            lines[key], notes[key] = self._line(key, note), note
        self._write(lines)
        self.notes = notes

    def saving(self, change: Callable[[], Response]) -> Response:
        """Makes a change that the page asked for. Its status is 200 only once the change is on disk."""
        try:
            with self._threads:
                return change()
        except StaleNote as stale:
            return 409, {"error": f"the page shows another {stale} than this step has here; load it again"}
        except FormatError as error:
            return 400, {"error": f"expected {error.expected}, got {error.got}"}
        except OSError as error:
            return 500, {"error": f"nothing was saved: {self.path.name} cannot be written: {error.strerror}"}
        except InputError as error:
            return 500, {"error": f"nothing was saved: {error}"}

    def _write(self, lines: dict[K, str]) -> None:
        data = "".join(f"{line}\n" for line in lines.values()).encode()
        write_whole(self.path, lambda draft: draft.write_bytes(data))
        _sync_folder(self.path.parent)
        self._lines = lines


def _sync_folder(folder: Path) -> None:
    """Keeps a power cut from bringing the old file back."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except OSError:
        # some systems cannot open folders; they keep names without it
        return
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class _CausePost(msgspec.Struct, forbid_unknown_fields=True):
    """A cause as the page sends it; null removes the note."""

    cause: str | None
    answer_sha256: str
    """Digest of the answer that the page showed."""
    run: int = 0
    """Place of the run among those shown."""
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""

    def __post_init__(self) -> None:
        if self.cause is not None:
            check_cause(self.cause)


class CauseNotes(NoteFile[AnswerId, HumanCause]):
    """One person's causes of loss, in a file that `score --causes` reads. Any thread may use it; close it when done."""

    def __init__(self, path: Path, annotator: str = "") -> None:
        """Raises InputError for a file that cannot be read or written, or is in use."""
        super().__init__(path, "causes", read_causes, cause_line)
        self._annotator = annotator

    @property
    def keys(self) -> frozenset[StepKey]:
        """Steps with a note on any answer."""
        return frozenset(judged.key for judged in self.notes)

    def on(self, prediction: Prediction) -> dict[str, str] | None:
        """`cause`, `note` and `annotator` of this answer; None where it has no note."""
        note = self.notes.get(AnswerId(prediction.key, answer_digest(prediction)))
        return None if note is None else {"cause": note.cause, "note": note.note, "annotator": note.annotator}

    def post(self, prediction: Prediction, body: Mapping[str, Any]) -> Response:
        """Saves `cause` and `note`, or removes the note where `cause` is null."""

        def change() -> Response:
            sent, judged = typed(body, _CausePost), AnswerId(prediction.key, answer_digest(prediction))
            if sent.answer_sha256 != judged.answer_sha256:
                raise StaleNote("answer")
            note = None if sent.cause is None else HumanCause(sent.cause, sent.note, self._annotator)
            self.keep(judged, note)
            return 200, {"saved": True, "relabelled": self.on(prediction)}

        return self.saving(change)


class _AlsoRightPost(msgspec.Struct, forbid_unknown_fields=True):
    """A mark as the page sends it."""

    right: bool
    """False removes the mark."""
    answer_sha256: str
    """Digest of the answer that the page showed."""
    run: int = 0
    """Place of the run among those shown."""


class AlsoRightNotes(NoteFile[StepKey, OtherAnswerLine]):
    """Answers that a person finds as right as the annotated one, in a file that `score --also-right` reads. Any thread may use it; close it
    when done."""

    def __init__(self, path: Path, annotator: str = "") -> None:
        """Raises InputError for a file that cannot be read or written, or is in use."""
        super().__init__(path, "also_right", read_also_right, lambda _, line: line.line)
        self._annotator = annotator

    def on(self, prediction: Prediction) -> bool:
        """True where this answer is marked."""
        line = self.notes.get(prediction.key)
        return line is not None and _entry(prediction) in line.also_right

    def post(self, prediction: Prediction, body: Mapping[str, Any]) -> Response:
        """Marks the element and operation of the answer as right too, or removes that mark. Other marks of the step stay."""

        def change() -> Response:
            sent = typed(body, _AlsoRightPost)
            if sent.answer_sha256 != answer_digest(prediction):
                raise StaleNote("answer")
            entry, key = _entry(prediction), prediction.key
            if entry is None:
                raise FormatError("an answer that names an element", "none")
            line = self.notes.get(key) or OtherAnswerLine(*key, ())
            marked = tuple(one for one in line.also_right if one != entry) + ((entry,) if sent.right else ())
            annotator = self._annotator or line.annotator
            self.keep(key, OtherAnswerLine(*key, marked, line.note, annotator) if marked else None)
            return 200, {"saved": True, "also_right": self.on(prediction)}

        return self.saving(change)


def _entry(prediction: Prediction) -> OtherAnswer | None:
    """None for an answer without an element."""
    if prediction.element_id is None:
        return None
    return check_other_answer(OtherAnswer((prediction.element_id,), prediction.op, prediction.value))
