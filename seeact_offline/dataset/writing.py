"""Recorded steps -> rows and files in the hub's layout. The counterpart of `rows`, with the same field names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from seeact_offline.dataset.recorded import FINAL_SCREENSHOT, RECORDED_COLUMNS
from seeact_offline.files.whole import write_whole
from seeact_offline.records import Box, Operation

CANDIDATE_MARK = {"data_pw_testid_buckeye_candidate": "1"}
"""An attribute of every candidate in the released data."""
COLUMNS = (
    "action_uid", "raw_html", "cleaned_html", "operation", "pos_candidates", "neg_candidates", "website", "domain",
    "subdomain", "annotation_id", "confirmed_task", "screenshot", "action_reprs", "target_action_index",
    "target_action_reprs",
)  # fmt: skip
ROWS_AT_ONCE = 32
"""Rows of a row group, which limits the memory that writing takes."""
COMPRESSION_LEVEL = 19


@dataclass(frozen=True, slots=True)
class ElementRecord:
    """One element of a page, as a candidate of a row."""

    backend_node_id: str
    tag: str
    box: Box
    attributes: Mapping[str, str]
    """HTML attributes besides the id and the box."""
    is_positive: bool = False
    is_original: bool = False
    """True for the element of the action itself."""
    is_top_level: bool = False
    """True for the outermost element that counts as a target."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One action on one page, with everything that a row needs."""

    annotation_id: str
    action_uid: str
    task: str
    website: str
    domain: str
    subdomain: str
    index: int
    """Place in the task, from 0."""
    actions: tuple[str, ...]
    """Texts of all actions of the task."""
    operation: Operation
    raw_html: str
    cleaned_html: str
    elements: tuple[ElementRecord, ...]
    """The page's elements in document order."""
    screenshot: bytes | None
    """An encoded image file."""
    recorded: Mapping[str, object] = field(default_factory=dict)
    """The recorder's own columns: name -> content."""


def to_row(step: StepRecord) -> dict[str, Any]:
    """Returns the step as a row of the hub's layout: nested JSON in strings, positives and negatives apart."""
    operation = {"op": step.operation.op, "original_op": step.operation.original_op, "value": step.operation.value}
    return {
        "action_uid": step.action_uid,
        "raw_html": step.raw_html,
        "cleaned_html": step.cleaned_html,
        "operation": json.dumps(operation),
        "pos_candidates": [_candidate(e) for e in step.elements if e.is_positive],
        "neg_candidates": [_candidate(e) for e in step.elements if not e.is_positive],
        "website": step.website,
        "domain": step.domain,
        "subdomain": step.subdomain,
        "annotation_id": step.annotation_id,
        "confirmed_task": step.task,
        "screenshot": None if step.screenshot is None else {"bytes": step.screenshot, "path": None},
        "action_reprs": list(step.actions),
        "target_action_index": str(step.index),
        "target_action_reprs": step.actions[step.index],
        **step.recorded,
    }


def write_hub_parquet(rows: Iterable[Mapping[str, Any]], path: Path, rows_at_once: int = ROWS_AT_ONCE) -> int:
    """Writes rows as one parquet file of the hub's schema, `rows_at_once` a row group; returns the number of rows."""
    left = iter(rows)
    groups = iter(lambda: list(islice(left, rows_at_once)), [])
    # with a page as large as a row group, one row's HTML is written as a difference to the last one's
    return write_row_groups(
        groups, path, compression="zstd", compression_level=COMPRESSION_LEVEL, data_page_size=1 << 26
    )


def write_row_groups(groups: Iterable[Sequence[Mapping[str, Any]]], path: Path, **options: Any) -> int:
    """Writes a parquet file of the hub's schema and the first row's recorder columns, whole or not at all; returns the
    number of rows. `options`: ParquetWriter's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    left = iter(groups)
    first = next(left, [])
    schema = hub_schema([name for name in RECORDED_COLUMNS if first and name in first[0]])

    def write(draft: Path) -> int:
        written = 0
        with pq.ParquetWriter(draft, schema, **options) as writer:
            for group in chain([first] if first else [], left):
                writer.write_table(pa.Table.from_pylist([dict(row) for row in group], schema=schema))
                written += len(group)
        return written

    path.parent.mkdir(parents=True, exist_ok=True)
    return write_whole(path, write)


def hub_schema(recorded: Sequence[str] = ()) -> Any:
    """The Arrow schema of the hub's parquet, with the note that tells `datasets` which column is a picture. `recorded`:
    columns of the recorder to add."""
    import pyarrow as pa

    names = (*COLUMNS, *recorded)
    texts, picture = pa.list_(pa.string()), pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    types = {
        "pos_candidates": texts,
        "neg_candidates": texts,
        "action_reprs": texts,
        "screenshot": picture,
        FINAL_SCREENSHOT: picture,
    }
    text = {"dtype": "string", "_type": "Value"}
    notes = {texts: {"feature": text, "_type": "List"}, picture: {"_type": "Image"}}
    features = {name: notes.get(types.get(name), text) for name in names}
    fields = [(name, types.get(name, pa.string())) for name in names]
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


def _candidate(element: ElementRecord) -> str:
    node_id = element.backend_node_id
    box = ",".join(str(int(value)) if value == int(value) else repr(float(value)) for value in element.box)
    attributes = {"backend_node_id": node_id, "bounding_box_rect": box, **element.attributes, **CANDIDATE_MARK}
    fields: dict[str, Any] = {"attributes": json.dumps(attributes), "backend_node_id": node_id, "tag": element.tag}
    if element.is_positive:
        fields |= {"is_original_target": element.is_original, "is_top_level_target": element.is_top_level}
    return json.dumps(fields)
