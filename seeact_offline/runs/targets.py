"""What was right at each step, kept with the run: `targets.jsonl`. So a run is scored again without its data set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import msgspec

from seeact_offline.files.formats import decoded
from seeact_offline.files.redaction import redact_values
from seeact_offline.pages.dom import Page
from seeact_offline.pages.kinship import find_kin
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Box, Kinship, Operation, RowError, Step, StepKey, Truth

LONGEST = 80
"""Characters of an element's text."""


def target_of(step: Step, read: Callable[[], Page]) -> Truth:
    """`step.truth` with what its picture and page add, as far as they can be read; `read` gives the page."""
    size = _picture_size(step)
    truth = step.truth
    try:
        near = find_kin(read(), step.candidates, size)
        words = element_text(read(), truth.target)
    except Exception:
        # a page that we never met must not end a run; that this step could not be asked is said in its prediction
        near, words = {}, ""
    return replace(truth, picture_size=size, kin=near, element_text=words)


def element_text(page: Page, node: str | None) -> str:
    """What the page says of an element, in at most LONGEST characters; empty for none and for one that is not on it."""
    if node is None or node not in page.ids:
        return ""
    written = page.ranker_text(node).split("\ntarget: ", 1)[-1].replace(" id=0", "", 1)
    words = " ".join(written.removeprefix("(").removesuffix(")").split())
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}..."


def _picture_size(step: Step) -> tuple[int, int] | None:
    try:
        return None if step.screenshot is None else PagePicture(step.screenshot).size
    except RowError:
        return None


def target_line(truth: Truth) -> str:
    """The JSON of one line of `targets.jsonl`."""
    operation = truth.operation
    row: dict[str, Any] = {
        **truth.key._asdict(),
        "website": truth.website,
        "domain": truth.domain,
        "op": operation.op,
        "value": operation.value,
        "original_op": operation.original_op,
        "target": truth.target,
        "positives": sorted(truth.positives),
        "boxes": truth.boxes,
        "picture_size": truth.picture_size,
        "n_actions": truth.n_actions,
        "n_before": truth.n_before,
        "n_candidates": truth.n_candidates,
        "kin": {kinship: sorted(ids) for kinship, ids in truth.kin.items()},
        "task": truth.task,
        "index": truth.index,
        "split": truth.split,
        "element_text": truth.element_text,
        "action_text": truth.action_text,
        "positives_in_order": truth.positives_in_order,
    }
    return json.dumps(redact_values(row))


class _TargetLine(msgspec.Struct):
    """A line of `targets.jsonl`."""

    annotation_id: str
    action_uid: str
    op: str
    value: str
    positives: frozenset[str]
    website: str = ""
    domain: str = ""
    original_op: str = ""
    target: str | None = None
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    picture_size: tuple[int, int] | None = None
    n_actions: int = 0
    n_before: int = 0
    n_candidates: int = 0
    kin: dict[str, frozenset[str]] = {}
    task: str = ""
    index: int | None = None
    split: str = ""
    element_text: str = ""
    action_text: str = ""
    positives_in_order: tuple[str, ...] = ()


def read_target(text: str) -> Truth:
    """The reverse of `target_line`. Raises FormatError."""
    line = decoded(text, _TargetLine)
    return Truth(
        key=StepKey(line.annotation_id, line.action_uid),
        operation=Operation(line.op, line.value, line.original_op),
        positives=line.positives,
        boxes=tuple(Box(*box) for box in line.boxes),
        website=line.website,
        domain=line.domain,
        target=line.target,
        picture_size=line.picture_size,
        n_actions=line.n_actions,
        n_before=line.n_before,
        n_candidates=line.n_candidates,
        kin=cast("dict[Kinship, frozenset[str]]", line.kin),
        task=line.task,
        index=line.index,
        split=line.split,
        element_text=line.element_text,
        action_text=line.action_text,
        positives_in_order=line.positives_in_order,
    )
