"""Named faults of the rows of a data set, found before a run meets them.

Some faults show when the row is read (`Step.faults`); the others need the page, the picture, the rest of the task, or
other rows. Nothing here raises because of a row's content.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from seeact_offline.dataset.split import Split
from seeact_offline.files.named import read_rows
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Candidate, Fault, RowError, Step, StepKey

FAULTS = {
    "no_screenshot": "the row has no picture",
    "bad_screenshot": "the picture cannot be decoded",
    "blank_screenshot": "the picture is all of one colour, or nearly so",
    "missing_box": "a candidate has no bounding box",
    "bad_box": "a bounding box is not four numbers of a page",
    "empty_box": "a candidate's box has no area",
    "box_off_page": "a candidate's box lies wholly outside the picture",
    "box_beyond_image": "a candidate's box reaches beyond the picture",
    "bad_html": "cleaned_html is empty or not well-formed",
    "page_too_large": "cleaned_html is too large to be described",
    "target_not_in_html": "an annotated target is not in cleaned_html",
    "missing_candidate": "another candidate is not in cleaned_html",
    "no_positive": "the row lists no annotated target",
    "no_candidates": "the row lists no candidate at all",
    "duplicate_id": "an id stands for two elements",
    "action_text_mismatch": "the action's text and the operation disagree",
    "missing_value": "TYPE or SELECT without a value",
    "history_gap": "an earlier action of the task has no text",
    "missing_steps": "steps of the task are not in the data",
    "out_of_order": "the rows of the task are stored in another order than its steps",
    "near_duplicate": "another row shows the same step of the same task",
    "duplicate_step": "another row has the same ids",
    "bad_target_index": "target_action_index is not a place in the task",
    "bad_operation": "the operation cannot be read",
    "bad_candidates": "a candidate cannot be read",
    "missing_field": "a field that every row needs is empty",
    "bad_text": "a text holds half of a surrogate pair",
    "text_too_long": "task, actions and operation are longer than anybody reads",
}
EDGE = 2.0
"""Page pixels by which a box may reach beyond the edge, because browsers round layouts."""
UNIFORM_SHARE = 0.995
"""Share of a picture's pixels in one colour that makes it blank."""
TOLERANCE = 8
"""Largest difference, of 255, between colours that count as one."""
SIMILAR = 0.9
"""Share of common words from which two pages count as the same."""
BLANK_BYTES = {"PNG": 0.02, "WEBP": 0.002}
"""File bytes per pixel that no picture of one colour takes, by format."""
DECODED_PIXELS = 1_500_000
"""Pictures up to this size are always decoded."""
SAMPLED_WIDTH = 160
"""Pixels of width to which a picture is reduced before its colours are counted."""

# as the data set writes an action: `[button]  Go -> CLICK`, `[textbox]  City -> TYPE: Rome`
_ACTION = re.compile(r"^.*-> ?([A-Z]+)(?:: ?(.*))?$", re.DOTALL)
# the texts between tags: attributes and ids differ between two visits of one page
_WORD = re.compile(r">([^<]+)<")


@dataclass(frozen=True, slots=True)
class Finding:
    """All faults of one row."""

    key: StepKey
    split: str
    faults: tuple[Fault, ...]


def lint_split(split: Split) -> Iterator[tuple[Step, list[Fault]]]:
    """Yields each step of a split with its faults."""
    repeats = _Repeats()
    for steps in split.steps_by_task():
        task_faults = list(_task_faults(steps, split.row_positions))
        for step in steps:
            yield step, [*lint_step(step), *task_faults, *repeats.faults(step)]


def lint_step(step: Step) -> list[Fault]:
    """Returns the faults that one row shows by itself, at most one of each name."""
    faults = [*step.faults, *_candidate_faults(step), *_action_faults(step)]
    size = None
    if step.screenshot is not None:
        picture = PagePicture(step.screenshot)
        try:
            size = picture.size
            faults += _picture_faults(picture)
        except RowError as error:
            faults.append(Fault(error.name, error.detail))
    faults += _box_faults(step.candidates, size)
    faults += _page_faults(step)
    # reversed: of several faults of one name the first is kept
    return list({fault.name: fault for fault in reversed(faults)}.values())[::-1]


class _Repeats:
    """Finds repeated steps: the same task, history and action on nearly the same page."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, tuple[str, ...], str], list[tuple[StepKey, frozenset[str]]]] = {}

    def faults(self, step: Step) -> Iterator[Fault]:
        action = step.action_text or step.operation.text
        task = " ".join(re.findall(r"\w+", step.task.lower()))
        same = self._seen.setdefault((task, step.history, action), [])
        words = frozenset(_WORD.findall(step.cleaned_html))
        for key, other in same:
            if len(words & other) / max(len(words | other), 1) >= SIMILAR:
                yield Fault("near_duplicate", f"like {key}")
                break
        same.append((step.key, words))


def _task_faults(steps: Sequence[Step], positions: Mapping[StepKey, int]) -> Iterator[Fault]:
    indices = [
        step.index for step in steps if not any(f.name in {"bad_target_index", "duplicate_step"} for f in step.faults)
    ]
    missing = sorted(set(range(max(indices, default=-1) + 1)) - set(indices))
    # some tasks lack the text of their last action, so more steps than texts are no fault
    missing += range(max(indices, default=-1) + 1, max((step.n_actions for step in steps), default=0))
    if missing:
        yield Fault(
            "missing_steps", f"step {missing[0]} of {max(missing[-1], *indices, 0) + 1} and {len(missing) - 1} more"
        )
    stored = [positions[step.key] for step in steps if step.key in positions]
    if stored != sorted(stored):
        yield Fault("out_of_order", f"{len(stored)} rows")


def _candidate_faults(step: Step) -> Iterator[Fault]:
    if not step.candidates:
        yield Fault("no_candidates", "")
    elif not step.truth.positives:
        yield Fault("no_positive", f"among {len(step.candidates)} candidates")
    if not any(fault.name == "bad_box" for fault in step.faults):
        yield from _about("missing_box", [c for c in step.candidates if c.box is None])


def _action_faults(step: Step) -> Iterator[Fault]:
    operation = step.operation
    if operation.op in {"TYPE", "SELECT"} and not operation.value:
        yield Fault("missing_value", f"{operation.op} without a value")
    gap = next((i for i, text in enumerate(step.history) if not text.strip()), None)
    if gap is not None:
        yield Fault("history_gap", f"action {gap} of {len(step.history)} before this step has no text")
    read = _ACTION.match(step.action_text)
    operations = {operation.op, operation.original_op} - {""}
    agrees = read and (not operations or (read[1] in operations and (read[2] or "").strip() == operation.value.strip()))
    if step.action_text and not agrees:
        yield Fault("action_text_mismatch", f"{step.action_text[-60:]!r} beside {operation.text[:60]!r}")


def _picture_faults(picture: PagePicture) -> Iterator[Fault]:
    picture.check_whole()
    # a JPEG decodes quickly at a reduced size, and so does a small picture; a large other one is decoded only if its file is
    # small enough for a blank picture
    width, height = picture.size
    is_large = picture.format != "JPEG" and width * height > DECODED_PIXELS
    if is_large and picture.bytes_per_pixel > BLANK_BYTES.get(picture.format, math.inf):
        return
    small = picture.reduced(SAMPLED_WIDTH)
    total = small.width * small.height
    counted = small.getcolors(total) or []
    _, commonest = max(counted, key=lambda pair: pair[0])
    near = sum(n for n, colour in counted if _close(colour, commonest))
    if near >= UNIFORM_SHARE * total:
        yield Fault("blank_screenshot", f"{100 * near / total:.1f} % of the picture is of one colour")


def _close(colour: object, other: object) -> bool:
    if not isinstance(colour, tuple) or not isinstance(other, tuple):
        return colour == other
    return all(abs(a - b) <= TOLERANCE for a, b in zip(colour, other, strict=True))


def _box_faults(candidates: Sequence[Candidate], size: tuple[int, int] | None) -> Iterator[Fault]:
    boxed = [(c, c.box) for c in candidates if c.box is not None]
    yield from _about("empty_box", [c for c, box in boxed if box.w <= 0 or box.h <= 0])
    if size is None:
        return
    right, bottom = (side + EDGE for side in size)
    yield from _about("box_off_page", [c for c, box in boxed if box.is_off(size)])
    beyond = [
        c
        for c, box in boxed
        if not box.is_off(size) and (min(box.x, box.y) < -EDGE or box.right > right or box.bottom > bottom)
    ]
    yield from _about("box_beyond_image", beyond)


def _page_faults(step: Step) -> Iterator[Fault]:
    if not step.cleaned_html:
        return
    try:
        page = Page(step.cleaned_html)
    except RowError as error:
        yield Fault(error.name, error.detail)
        return
    ids, twice = page.ids, page.duplicate_ids
    try:
        page.check_describable(c.backend_node_id for c in step.candidates if c.backend_node_id in ids)
    except RowError as error:
        yield Fault(error.name, error.detail)
    absent = [c for c in step.candidates if c.backend_node_id not in ids]
    yield from _about("target_not_in_html", [c for c in absent if c.is_positive])
    yield from _about("missing_candidate", [c for c in absent if not c.is_positive])
    yield from _about("duplicate_id", [c for c in step.candidates if c.backend_node_id in twice])


def _about(name: str, candidates: Sequence[Candidate]) -> Iterator[Fault]:
    """The fault of these candidates; none where there is none of them."""
    if candidates:
        targets, first = sum(c.is_positive for c in candidates), candidates[0]
        box = "" if first.box is None else f" at {', '.join(f'{v:g}' for v in first.box)}"
        yield Fault(
            name, f"{len(candidates)} candidates, {targets} of them targets, first {first.backend_node_id}{box}"
        )


def finding_line(finding: Finding) -> str:
    """Formats one line of the file of findings."""
    faults = [asdict(fault) for fault in finding.faults]
    return json.dumps({**finding.key._asdict(), "split": finding.split, "faults": faults}) + "\n"


class _FindingLine(msgspec.Struct):
    """The fields of a line that are read."""

    annotation_id: str
    action_uid: str


def read_findings(path: Path) -> frozenset[StepKey]:
    """Reads the keys of the rows that a file of findings lists. Raises InputError."""
    return frozenset(
        StepKey(row.annotation_id, row.action_uid) for row, _ in read_rows("exclude_flagged", path, _FindingLine)
    )


def count_by_fault(findings: Iterable[Finding]) -> dict[str, Counter[str]]:
    """Counts rows: fault name -> split -> number."""
    table: dict[str, Counter[str]] = {}
    for finding in findings:
        for fault in finding.faults:
            table.setdefault(fault.name, Counter())[finding.split] += 1
    return {name: table[name] for name in FAULTS if name in table}
