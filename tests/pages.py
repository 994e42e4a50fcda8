"""Synthetic data sets in the hub's layout, for tests and the benchmark: made-up pages, real files and pictures."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from xml.sax.saxutils import quoteattr

from PIL import Image

TEXT_COLUMNS = (
    "action_uid",
    "raw_html",
    "cleaned_html",
    "operation",
    "website",
    "domain",
    "subdomain",
    "annotation_id",
    "confirmed_task",
    "target_action_index",
    "target_action_reprs",
)
LIST_COLUMNS = ("pos_candidates", "neg_candidates", "action_reprs")
PAGE_WIDTH = 1280
LINE_HEIGHT = 30
"""An element a line, so that a page of 240 elements is as tall as a real one."""
ACTIONS = {"button": "CLICK", "a": "CLICK", "input": "TYPE", "select": "SELECT"}
WORDS = "search flight hotel cheap blue shoes cart zip code date guests review photographer ticket rental menu".split()


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a made-up page."""

    node_id: str
    """A multiple of 10; the nodes around and inside it take the next numbers."""
    tag: str
    label: str
    top: int

    @property
    def html(self) -> str:
        around, inside = int(self.node_id) + 1, int(self.node_id) + 2
        text = f'<text backend_node_id="{inside}">{self.label}</text>'
        node = f'<{self.tag} backend_node_id="{self.node_id}" aria_label={quoteattr(self.label)}>{text}</{self.tag}>'
        return f'<div backend_node_id="{around}">{node}</div>'

    @property
    def candidate(self) -> str:
        """As the hub stores it: JSON in a string, with `attributes` once more JSON in a string."""
        attributes = {
            "backend_node_id": self.node_id,
            "bounding_box_rect": f"20,{self.top},200.5,{LINE_HEIGHT - 6}",
            "class": "item row-item pv2 br-right",
            "aria_label": self.label,
            "is_clickable": "true",
        }
        return json.dumps({"attributes": json.dumps(attributes), "backend_node_id": self.node_id, "tag": self.tag})

    @property
    def value(self) -> str:
        return {"input": self.label, "select": self.label.split()[0]}.get(self.tag, "")

    @property
    def action(self) -> str:
        tail = f": {self.value}" if self.value else ""
        return f"[{self.tag}]  {self.label} -> {ACTIONS[self.tag]}{tail}"


def synthetic_rows(
    n_tasks: int, steps_per_task: int, n_elements: int, seed: int, *, html_size: int = 0, raw_html_size: int = 0
) -> Iterator[dict[str, Any]]:
    """Rows of the hub's layout, task by task, steps in order. The same arguments give the same rows.

    Each page has `n_elements` candidates, one of them right; `html_size` and `raw_html_size` are the least numbers of
    characters of the two HTML columns. The picture of a page shows a line for every element.
    """
    for task in range(n_tasks):
        pages = [_page(Random(f"{seed}/{task}/{step}"), n_elements) for step in range(steps_per_task)]
        targets = [Random(f"{seed}/{task}/{step}/target").randrange(n_elements) for step in range(steps_per_task)]
        actions = [page[target].action for page, target in zip(pages, targets, strict=True)]
        for step, (page, target) in enumerate(zip(pages, targets, strict=True)):
            yield {
                **_task_fields(task, seed, page[target].label),
                "action_uid": f"uid-{seed}-{task}-{step}",
                "raw_html": "<!-- raw -->".ljust(raw_html_size, "r"),
                "cleaned_html": _html(page, html_size),
                **_target_fields(page, target),
                "screenshot": {"bytes": picture(PAGE_WIDTH, n_elements * LINE_HEIGHT, task % 200), "path": None},
                "action_reprs": actions,
                "target_action_index": str(step),
                "target_action_reprs": actions[step],
            }


def write_parquet(rows: Iterable[Mapping[str, Any]], path: Path, row_group_size: int = 100) -> Path:
    """A parquet file as the hub has it, written row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = hub_schema()
    rows = iter(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema) as writer:
        while chunk := [dict(row) for row in islice(rows, row_group_size)]:
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema), row_group_size=row_group_size)
    return path


def write_jsonl(rows: Iterable[Mapping[str, Any]], path: Path) -> Path:
    """The same rows as JSONL; pictures given as bytes become base64."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps({**row, "screenshot": _jsonable(row.get("screenshot"))}) + "\n")
    return path


def hub_schema() -> Any:
    """The hub's Arrow schema, with the note that tells `datasets` which column is a picture."""
    import pyarrow as pa

    text: dict[str, Any] = {"dtype": "string", "_type": "Value"}
    features: dict[str, Any] = dict.fromkeys(TEXT_COLUMNS, text)
    features |= {name: {"feature": text, "_type": "List"} for name in LIST_COLUMNS}
    features["screenshot"] = {"_type": "Image"}
    fields = [(name, pa.string()) for name in TEXT_COLUMNS]
    fields += [(name, pa.list_(pa.string())) for name in LIST_COLUMNS]
    fields.append(("screenshot", pa.struct([("bytes", pa.binary()), ("path", pa.string())])))
    return pa.schema(fields, metadata={"huggingface": json.dumps({"info": {"features": features}})})


@lru_cache(maxsize=8)
class Stored:
    """A screenshot, as a step holds it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data


def picture(width: int, height: int, shade: int) -> bytes:
    """A small PNG file: a grey page with a darker line every `LINE_HEIGHT`."""
    image = Image.new("L", (width, max(height, 1)), 255 - shade)
    for top in range(0, height, LINE_HEIGHT):
        image.paste(64, (20, top, 220, top + LINE_HEIGHT - 6))
    file = io.BytesIO()
    image.save(file, format="PNG", compress_level=1)
    return file.getvalue()


def _page(random: Random, n_elements: int) -> list[Element]:
    ids = random.sample(range(1000, 1000 + 100 * n_elements, 10), n_elements)
    tags = random.choices(tuple(ACTIONS), k=n_elements)
    return [
        Element(str(node_id), tag, " ".join(random.choices(WORDS, k=2)), line * LINE_HEIGHT)
        for line, (node_id, tag) in enumerate(zip(ids, tags, strict=True))
    ]


def _task_fields(task: int, seed: int, label: str) -> dict[str, str]:
    return {
        "annotation_id": f"task-{seed}-{task}",
        "confirmed_task": f"Use the {label} of site {task % 7}",
        "website": f"site{task % 7}",
        "domain": ("Travel", "Shopping", "Service")[task % 3],
        "subdomain": "General",
    }


def _target_fields(page: list[Element], target: int) -> dict[str, Any]:
    op = ACTIONS[page[target].tag]
    return {
        "operation": json.dumps({"op": op, "original_op": op, "value": page[target].value}),
        "pos_candidates": [page[target].candidate],
        "neg_candidates": [element.candidate for place, element in enumerate(page) if place != target],
    }


def _html(page: list[Element], size: int) -> str:
    """A well-formed page, made long enough by paragraphs that are no candidates."""
    items = "".join(element.html for element in page)
    count = -(-max(size - len(items), 0) // len(_paragraph(0)))
    filler = "".join(map(_paragraph, range(count)))
    return f'<html backend_node_id="1"><body backend_node_id="2">{items}{filler}</body></html>'


def _paragraph(number: int) -> str:
    return (
        f'<p backend_node_id="{10**8 + number}"><text backend_node_id="{10**9 + number}">{" ".join(WORDS)}</text></p>'
    )


def _jsonable(screenshot: Any) -> Any:
    if isinstance(screenshot, Mapping) and isinstance(screenshot.get("bytes"), bytes):
        return {**screenshot, "bytes": base64.b64encode(screenshot["bytes"]).decode()}
    return screenshot
