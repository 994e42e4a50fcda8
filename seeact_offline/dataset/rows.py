"""One raw row -> one `Step`. The only place that knows the names of a row's fields.

A bad row never raises: its faults are in `Step.faults`, at most one of each name, so that a run can count them and
continue.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ..files.formats import FormatError, check_other_answer, read_json, typed
from ..files.named import read_regular
from ..records import OPERATIONS, Box, Candidate, Fault, Operation, OtherAnswer, RowError, Step, StepKey
from .recorded import FINAL_SCREENSHOT, RecordedColumns

Row = Mapping[str, object]

RAW_HTML = "raw_html"
ORDER_COLUMNS = ("annotation_id", "action_uid", "target_action_index")
"""The columns that put rows in order."""
LIGHT_COLUMNS = (*ORDER_COLUMNS, "confirmed_task", "website", "domain", "operation", "action_reprs")
"""The columns that tell data sets apart without reading a picture or a page."""
REQUIRED_COLUMNS = (*LIGHT_COLUMNS, "cleaned_html", "pos_candidates", "neg_candidates", "screenshot")
OPTIONAL_COLUMNS = ("subdomain", "target_action_reprs")
ALSO_RIGHT = "also_right"
"""The column of other right answers, which no released data set has."""

MAX_PICTURE_BYTES = 100_000_000
"""Bytes of an encoded screenshot; released ones have a few million."""
MAX_TEXT_CHARACTERS = 1_000_000
"""Characters of a row's task, actions and operation together; released ones have a few thousand."""
MAX_PIXEL = 1e9
"""Largest number in a box, of either sign. Browsers lay out no further than 2**25 pixels, and sums and areas stay
finite."""


@dataclass(frozen=True)
class StoredScreenshot:
    """A picture as its row stores it; `read` resolves base64 and paths."""

    content: bytes | str | None = field(repr=False)
    """The file's bytes, its base64 text, or None if there is only a path."""
    path: str | None = None
    """Relative to `folder`."""
    folder: Path | None = None
    """The only folder in which pictures are opened; None if no file may be opened."""

    def read(self) -> bytes:
        """The encoded image file. Raises RowError `bad_screenshot` when it cannot be read or is too large."""
        if self.content is None:
            return self._read_path()
        try:
            data = self.content if isinstance(self.content, bytes) else decode_base64(self.content)
        except ValueError as error:
            raise RowError("bad_screenshot", f"not base64: {_short(self.content)}") from error
        if len(data) > MAX_PICTURE_BYTES:
            raise RowError("bad_screenshot", f"the picture has more than {MAX_PICTURE_BYTES:,} bytes")
        return data

    def _repr_jpeg_(self) -> bytes | None:
        """Shows a JPEG in a notebook."""
        content = self.read()
        return content if content.startswith(b"\xff\xd8") else None

    def _repr_png_(self) -> bytes | None:
        """Shows any other picture in a notebook, as PNG."""
        content = self.read()
        if content.startswith(b"\xff\xd8"):
            return None
        from ..pages.screenshots import PagePicture, encode

        return encode(PagePicture(self).pixels)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the encoded file, in hex."""
        return hashlib.sha256(self.read()).hexdigest()

    def _read_path(self) -> bytes:
        if self.folder is None or not self.path:
            raise RowError("bad_screenshot", f"there are no bytes, and no folder in which to look for {self.path!r}")
        try:
            full = (self.folder / self.path).resolve()
            if not full.is_relative_to(self.folder.resolve()):
                raise RowError("bad_screenshot", f"path {self.path!r} leads out of the data set's folder")
            return read_regular(full, MAX_PICTURE_BYTES)
        except (OSError, ValueError, RuntimeError) as error:
            # RuntimeError: links in a circle
            raise RowError("bad_screenshot", f"path {self.path!r} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class RowPosition:
    """The place of a row in its source, and in its task as the row states it."""

    key: StepKey
    index: int | None
    """Position in the task from 0; None when it cannot be read."""
    position: int
    """Position of the row in its source, from 0."""
    repeats: str | None = None
    """The earlier row with the same key; None if there is none."""

    @property
    def step_key(self) -> StepKey:
        """The key, made unique for a row that repeats another's, so that no file mixes them up."""
        if self.repeats is None:
            return self.key
        return StepKey(self.key.annotation_id, f"{self.key.action_uid}#row{self.position}")


class FaultLog:
    """Collects the faults of one row: the first detail of each name, and the number of further ones."""

    def __init__(self) -> None:
        self._details: dict[str, list[str]] = {}

    def add(self, name: str, detail: str) -> None:
        self._details.setdefault(name, []).append(detail)

    def faults(self) -> tuple[Fault, ...]:
        return tuple(
            Fault(name, f"{first} (and {len(more)} more)" if more else first)
            for name, (first, *more) in self._details.items()
        )


def read_step(
    row: Row, place: RowPosition, folder: Path | None = None, raw_html: bool = False, has_page: bool = True
) -> Step:
    """Reads the step of a row. Never raises because of the row's content: see `Step.faults`. `has_page`: False for a
    row that is not meant to have HTML."""
    log = FaultLog()
    actions = row.get("action_reprs")
    if place.repeats is not None:
        log.add("duplicate_step", f"{place.key} is also {place.repeats}")
    for name in ("annotation_id", "action_uid", "confirmed_task"):
        if not as_text(row.get(name)):
            log.add("missing_field", f"{name} is null or empty")
    history, html = _history(row, log), as_text(row.get("cleaned_html"))
    if has_page and not html.strip():
        log.add("bad_html", "cleaned_html is null or empty")
    step = Step(
        annotation_id=place.step_key.annotation_id,
        action_uid=place.step_key.action_uid,
        task=as_text(row.get("confirmed_task")),
        history=history,
        website=as_text(row.get("website")),
        domain=as_text(row.get("domain")),
        cleaned_html=html,
        operation=_operation(row.get("operation"), log),
        candidates=_candidates(row, log),
        screenshot=_screenshot(row.get("screenshot"), folder, log),
        index=place.index or 0,
        subdomain=as_text(row.get("subdomain")),
        raw_html=as_text(row.get(RAW_HTML)) if raw_html else None,
        action_text=_action_text(row, place.index),
        n_actions=len(actions) if isinstance(actions, (list, tuple)) else 0,
        recorded=RecordedColumns.of(row, _stored_picture(row.get(FINAL_SCREENSHOT), None)),
        also_right=_also_right(row.get(ALSO_RIGHT), log),
    )
    _check_texts(step, log)
    return replace(step, faults=log.faults())


def _check_texts(step: Step, log: FaultLog) -> None:
    """Checks that text to be hashed, sent or stored is valid UTF-8 and of readable length."""
    operation = (step.operation.op, step.operation.value, step.operation.original_op)
    texts = {
        "annotation_id or action_uid": step.key,
        "confirmed_task": (step.task,),
        "action_reprs": (*step.history, step.action_text),
        "website or domain": (step.website, step.domain, step.subdomain),
        "operation": operation,
        "cleaned_html": (step.cleaned_html,),
    }
    for name, held in texts.items():
        _check_text(name, "".join(held), log)
    length = sum(map(len, (step.task, *step.history, *operation)))
    if length > MAX_TEXT_CHARACTERS:
        log.add(
            "text_too_long",
            f"{length:,} characters of task, actions and operation, expected {MAX_TEXT_CHARACTERS:,} at most",
        )


def _check_text(name: str, text: str, log: FaultLog) -> None:
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError as error:
        log.add("bad_text", f"{name}: half of a surrogate pair, {text[error.start]!a}, is no character")


def row_key(row: Row) -> StepKey:
    return StepKey(as_text(row.get("annotation_id")), as_text(row.get("action_uid")))


def read_index(value: object) -> int | None:
    """Reads a position from 0, a number or its digits; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        digits = value.strip()
        value = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def as_text(value: object) -> str:
    """Turns null into the empty text and a number into its digits."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def parse_box(rect: object) -> Box | None:
    """`"x,y,w,h"` or four numbers; None unless it is exactly four numbers within MAX_PIXEL."""
    parts: Sequence[Any] = ()
    # float() reads "1_0" as 10, which no page ever wrote
    if isinstance(rect, str) and "_" not in rect:
        parts = rect.split(",")
    elif isinstance(rect, (list, tuple)) and not any(isinstance(part, (bool, str)) for part in rect):
        parts = rect
    if len(parts) != 4:
        return None
    try:
        x, y, w, h = map(float, parts)
    except (TypeError, ValueError, OverflowError):
        return None
    # comparisons with NaN are false
    top = MAX_PIXEL
    return Box(x, y, w, h) if abs(x) <= top and abs(y) <= top and abs(w) <= top and abs(h) <= top else None


def _candidates(row: Row, log: FaultLog) -> tuple[Candidate, ...]:
    candidates: list[Candidate] = []
    for name, is_positive in (("pos_candidates", True), ("neg_candidates", False)):
        raw = row.get(name)
        if not isinstance(raw, (list, tuple)):
            log.add("bad_candidates", f"{name} is no list: {_short(raw)}")
            continue
        read = (_plain_candidate(item, is_positive) or _candidate(item, name, is_positive, log) for item in raw)
        candidates += [candidate for candidate in read if candidate is not None]
    ids = [candidate.backend_node_id for candidate in candidates]
    if len(set(ids)) < len(ids):
        for node_id, count in Counter(ids).items():
            if count > 1:
                log.add("duplicate_id", f"backend_node_id {_short(node_id)} occurs {count} times")
    return tuple(candidates)


class _Listed(msgspec.Struct):
    """A candidate in the form of the released data."""

    backend_node_id: str
    tag: str
    attributes: str


class _Attributes(msgspec.Struct):
    bounding_box_rect: str
    is_clickable: str | bool | None = None


_decode_listed = msgspec.json.Decoder(_Listed).decode
_decode_attributes = msgspec.json.Decoder(_Attributes).decode


def _plain_candidate(raw: object, is_positive: bool) -> Candidate | None:
    """Reads a faultless candidate in the released form quickly, because a row has hundreds; None for any other."""
    if not isinstance(raw, str):
        return None
    try:
        listed = _decode_listed(raw)
        attributes = _decode_attributes(listed.attributes)
        box = parse_box(attributes.bounding_box_rect)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if box is None or not listed.backend_node_id:
        return None
    return Candidate(listed.backend_node_id, listed.tag, box, is_positive, _is_yes(attributes.is_clickable))


def _candidate(raw: object, name: str, is_positive: bool, log: FaultLog) -> Candidate | None:
    data = _json_object(raw)
    if data is None:
        log.add("bad_candidates", f"{name} has an entry that is no JSON object: {_short(raw)}")
        return None
    node_id = data.get("backend_node_id")
    if not isinstance(node_id, (str, int)) or isinstance(node_id, bool) or node_id == "":
        log.add("bad_candidates", f"{name} has an entry without backend_node_id: {_short(raw)}")
        return None
    node_id, tag = str(node_id), as_text(data.get("tag"))
    _check_text(f"an entry of {name}", node_id + tag, log)
    raw_attributes = data.get("attributes")
    attributes = {} if raw_attributes is None else _json_object(raw_attributes)
    if attributes is None:
        log.add("bad_candidates", f"attributes of {_short(node_id)} are no JSON object: {_short(raw_attributes)}")
        attributes = {}
    rect = attributes.get("bounding_box_rect")
    box = None if rect is None else parse_box(rect)
    if box is None and rect is not None:
        log.add("bad_box", f"backend_node_id {_short(node_id)} has {_short(rect)}")
    return Candidate(node_id, tag, box, is_positive, _is_yes(attributes.get("is_clickable")))


def _is_yes(value: object) -> bool:
    return value is True or value == "true"


def _operation(raw: object, log: FaultLog) -> Operation:
    data = _json_object(raw)
    if data is None:
        log.add("bad_operation", f"no JSON object: {_short(raw)}")
        return Operation("")
    op = data.get("op")
    is_known = isinstance(op, str) and op in OPERATIONS
    if not is_known:
        log.add("bad_operation", f"op is {_short(op)}, not one of {', '.join(OPERATIONS)}")
    return Operation(as_text(op) if is_known else "", as_text(data.get("value")), as_text(data.get("original_op")))


def _also_right(raw: object, log: FaultLog) -> tuple[OtherAnswer, ...]:
    """Other right answers, a list or its JSON text; null and the empty text for none."""
    if raw is None or raw == "":
        return ()
    try:
        entries = read_json(raw) if isinstance(raw, str) else raw
        if not isinstance(entries, (list, tuple)):
            raise FormatError("a list", _short(entries))
        return tuple(check_other_answer(typed(entry, OtherAnswer)) for entry in entries)
    except FormatError as error:
        log.add("bad_operation", f"{ALSO_RIGHT}: {error}")
        return ()


def _history(row: Row, log: FaultLog) -> tuple[str, ...]:
    """Returns the actions before this one; a model must not know later ones."""
    actions, raw = row.get("action_reprs"), row.get("target_action_index")
    index = read_index(raw)
    if not isinstance(actions, (list, tuple)):
        log.add("missing_field", f"action_reprs is no list: {_short(actions)}")
    elif index is not None and index <= len(actions):
        return tuple(as_text(action) for action in actions[:index])
    if index is None:
        log.add("bad_target_index", f"target_action_index is {_short(raw)}")
    elif isinstance(actions, (list, tuple)):
        log.add("bad_target_index", f"target_action_index is {index}, with {len(actions)} actions")
    return ()


def _action_text(row: Row, index: int | None) -> str:
    """Returns the text of this step's own action: from its row, else from the task's list."""
    actions = row.get("action_reprs")
    own = as_text(row.get("target_action_reprs"))
    if own or index is None or not isinstance(actions, (list, tuple)) or index >= len(actions):
        return own
    return as_text(actions[index])


def _screenshot(raw: object, folder: Path | None, log: FaultLog) -> StoredScreenshot | None:
    picture = _stored_picture(raw, folder)
    if picture is None:
        log.add("no_screenshot", "screenshot is null")
    return picture


def _stored_picture(raw: object, folder: Path | None) -> StoredScreenshot | None:
    content, path = (raw.get("bytes"), raw.get("path")) if isinstance(raw, Mapping) else (raw, None)
    if isinstance(content, (bytearray, memoryview)):
        content = bytes(content)
    if not content and not path:
        return None
    stored = content if isinstance(content, (bytes, str)) and content else None
    return StoredScreenshot(stored, as_text(path) or None, folder)


def _json_object(raw: object) -> dict[str, object] | None:
    """Returns a JSON object, given decoded or as text; None for anything else."""
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            return None
    return raw if isinstance(raw, dict) else None


def decode_base64(text: str) -> bytes:
    """Decodes base64 text, with white space or as a data URL. Raises ValueError."""
    if text.startswith("data:"):
        text = text.partition(",")[2]
    return base64.b64decode("".join(text.split()), validate=True)


def _short(value: object, width: int = 60) -> str:
    text = repr(value[: width + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= width else f"{text[:width]}..."
