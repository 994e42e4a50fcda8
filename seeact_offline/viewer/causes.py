"""What a person says in the browser that steps were lost to, kept in a file that `score --causes` reads."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from seeact_offline.files.formats import FormatError, typed
from seeact_offline.records import InputError, Prediction, StepKey
from seeact_offline.scoring.human_causes import (
    AnswerId,
    HumanCause,
    answer_digest,
    cause_line,
    check_cause,
    read_causes,
)
from seeact_offline.viewer.durable import DurableLines


class _Said(msgspec.Struct, forbid_unknown_fields=True):
    """What the page sends of a step; `run` says of which run, for whoever looks the prediction up."""

    cause: str | None
    run: int = 0
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""

    def __post_init__(self) -> None:
        if self.cause is not None:
            check_cause(self.cause)


class Causes:
    """A file of causes. Any thread may use it; close it when done."""

    def __init__(self, path: Path, annotator: str = "") -> None:
        """Raises InputError for a file that cannot be read or written, or that another program is writing."""
        self._annotator, self._lock = annotator, threading.Lock()
        self._file: DurableLines[AnswerId] = DurableLines(path, "causes")
        try:
            self._causes = read_causes(path) if path.exists() else {}
        except InputError:
            self.close()
            raise
        self._file.load({judged: cause_line(judged, said) for judged, said in self._causes.items()})

    def close(self) -> None:
        self._file.close()

    @property
    def keys(self) -> frozenset[StepKey]:
        """The steps of which something is said, whatever the answer."""
        return frozenset(judged.key for judged in self._causes)

    def of(self, key: StepKey, prediction: Prediction) -> dict[str, str] | None:
        """`cause`, `note` and `annotator` of this answer; None where nobody said anything."""
        said = self._causes.get(AnswerId(key, answer_digest(prediction)))
        return None if said is None else {"cause": said.cause, "note": said.note, "annotator": said.annotator}

    def post(self, key: StepKey, prediction: Prediction, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Keeps `cause` and `note`, or forgets them where `cause` is null. The status and what is answered: 200 only once it is on
        disk."""
        try:
            said = typed(body, _Said)
            with self._lock:
                self._keep(AnswerId(key, answer_digest(prediction)), said)
        except FormatError as error:
            return 400, {"error": f"expected {error.expected}, got {error.got}"}
        except OSError as error:
            return 500, {"error": f"nothing was saved: {self._file.path.name} cannot be written: {error.strerror}"}
        return 200, {"saved": True, "relabelled": self.of(key, prediction)}

    def _keep(self, judged: AnswerId, said: _Said) -> None:
        if said.cause is not None:
            kept = HumanCause(said.cause, said.note, self._annotator)
            self._file.put(judged, cause_line(judged, kept))
            self._causes[judged] = kept
        elif judged in self._causes:
            self._file.drop(judged)
            del self._causes[judged]
