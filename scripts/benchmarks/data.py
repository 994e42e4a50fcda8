"""A made-up data set of real size: pages of 500 elements, full screenshots, scores and recorded replies."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.measuring import SEED

N_ELEMENTS = 500
HTML_CHARS = 100_000
PICTURE_SIZE = (1280, 5000)
# rows of noise in a picture, so that its file is about as big as a real one (0.76 MB)
NOISE_ROWS = 600
N_PICTURES = 8
STEPS_PER_TASK = 8
# of a first turn
REPLY_CHARS = 2000


def make_data(n: int, folder: Path) -> None:
    """Writes a data set of `n` steps, its scores and its replies into `folder`."""
    from tests.pages import write_parquet

    write_parquet(_noting(real_size_rows(n), folder), folder / "data" / "test_task-00000-of-00001.parquet")


def real_size_rows(n: int) -> Iterator[dict[str, Any]]:
    """`n` rows, task by task."""
    from tests.pages import synthetic_rows

    pictures = [_picture(i) for i in range(N_PICTURES)]
    tasks = -(-n // STEPS_PER_TASK)
    rows = synthetic_rows(tasks, STEPS_PER_TASK, N_ELEMENTS, SEED, html_size=HTML_CHARS)
    for i, row in zip(range(n), rows, strict=False):
        # what follows a picture's end is ignored, but keeps parquet from storing equal pictures once
        yield {**row, "screenshot": {"bytes": pictures[i % N_PICTURES] + str(i).encode(), "path": None}}


def candidate_ids(row: dict[str, Any]) -> list[str]:
    """The node ids of a row's candidates, positives first."""
    return [json.loads(c)["backend_node_id"] for c in (*row["pos_candidates"], *row["neg_candidates"])]


def _picture(number: int) -> bytes:
    """A PNG file of a real page's size in pixels and in bytes: a grey page with a strip of noise."""
    from PIL import Image

    width, height = PICTURE_SIZE
    page = Image.new("L", PICTURE_SIZE, 255 - number)
    noise = Random(f"{SEED}/{number}").randbytes(width * NOISE_ROWS)
    page.paste(Image.frombytes("L", (width, NOISE_ROWS), noise), (0, height // 2))
    out = io.BytesIO()
    page.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _noting(rows: Iterator[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    """Passes rows on; leaves `scores.parquet` and `replies.jsonl` for them."""
    from seeact_offline.ranking import ScoreRow, write_scores
    from seeact_offline.records import StepKey

    scores: list[ScoreRow] = []
    with (folder / "replies.jsonl").open("w", encoding="utf-8") as replies:
        for number, row in enumerate(rows):
            key = StepKey(row["annotation_id"], row["action_uid"])
            drawn = sorted((Random(f"{SEED}/{key}/{node}").random(), node) for node in candidate_ids(row))[::-1]
            scores += (ScoreRow(key, node, score, rank) for rank, (score, node) in enumerate(drawn))
            replies.write(json.dumps({**key._asdict(), "groups": _replies(number)}) + "\n")
            yield row
    write_scores(folder / "scores.parquet", scores)


def _replies(number: int) -> list[dict[str, Any]]:
    """Three groups, of which one picks an element, every fourth step two, so that a final round follows."""
    letters = ["C", "D" if number % 4 == 0 else "R", "R", "B"]
    plan = ("I look at the page and then at what was done before. " * REPLY_CHARS)[:REPLY_CHARS]
    return [
        {"group": group, "replies": [plan, f"The element fits.\n\nELEMENT: {letter}\nACTION: CLICK\nVALUE: None"]}
        for group, letter in enumerate(letters)
    ]
