"""A site as the viewer's server has it, written from made-up steps, and a server with the viewer's own headers.

The front end is tested against it without any run; what is on it is known to the last element.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

import seeact_offline

STATIC = Path(seeact_offline.__file__).parent / "viewer" / "static"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
WIDTH, HEIGHT, PART = 1280, 2600, 1500
OUTCOMES = {
    "success": "right",
    "ranker_miss": "the right element was not among those ranked under k",
    "unreadable_reply": "the answer could not be read, or was refused",
    "wrong_element": "the model chose another element",
    "wrong_op": "right element, wrong operation",
}
FAILURES = {"no_choice": "the reply names no choice"}
PATTERNS = (
    ("success", "wrong_element", "wrong_op", "success", "unreadable_reply"),
    ("success", "success", "wrong_op", "ranker_miss", "wrong_element"),
    ("wrong_element", "success", "success", "success", "unreadable_reply"),
)
"""Each run's outcomes, over and over."""
WEBSITES = (("avelora", "Travel"), ("booknest", "Shopping"), ("cinemaro", "Entertainment"))
OPS = ("CLICK", "TYPE", "SELECT")
PER_TASK = 4


@dataclass(frozen=True, slots=True)
class Texts:
    """Untrusted texts, by place."""

    task: str = "Find a flight to Lisbon"
    element: str = "Search flights"
    prompt: str = "Which element is the next one to use?"
    reply: str = "ELEMENT: B\nACTION: CLICK\nVALUE: None"
    act: str = ""
    """The action read from a reply; empty for questions that are no windows of a web agent."""


def key_of(row: int) -> str:
    annotation, action = f"task-{row // PER_TASK}", f"action-{row}"
    return hashlib.sha256(f"{annotation}_{action}".encode()).hexdigest()[:16]


def outcome_of(run: int, row: int) -> str:
    pattern = PATTERNS[run % len(PATTERNS)]
    return pattern[row % len(pattern)]


def task_of(row: int, texts: Texts) -> str:
    return f"{texts.task} {row // PER_TASK}"


# --- files ---


def write_site(
    folder: Path, *, n: int = 20, n_runs: int = 1, texts: Texts | None = None, steps: int | None = None, **index: Any
) -> Path:
    """`steps`: how many of the steps have a file (usually all); `index`: entries of `index.json` instead of the usual ones."""
    texts = texts or Texts()
    (folder / "step").mkdir(parents=True)
    (folder / "img").mkdir()
    _write_picture(folder / "img")
    (folder / "index.json").write_text(json.dumps(_index(n, n_runs, texts) | index))
    replies = {
        key_of(row): [f"{texts.reply} {outcome_of(run, row)}" for run in range(n_runs)]
        for row in range(n if steps is None else steps)
    }
    (folder / "replies.json").write_text(json.dumps(replies))
    check = {"status": "verified in part", "differences": [], "not_proved": [texts.task]}
    (folder / "checks.json").write_text(json.dumps({"runs": [check] * n_runs}))
    for row in range(n if steps is None else steps):
        (folder / "step" / f"{key_of(row)}.json").write_text(json.dumps(_step(row, n_runs, texts)))
    return folder


def _write_picture(folder: Path) -> None:
    page = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(page)
    draw.rectangle((0, 0, WIDTH, 90), fill="#20304a")
    for number in range(24):
        x, y, width, height = box_of(number)
        draw.rectangle((x, y, x + width, y + height), fill="#e6ebf3", outline="#9aa7bd")
        draw.text((x + 10, y + 10), f"Element {number}", fill="#223")
    for number, top in enumerate(range(0, HEIGHT, PART)):
        page.crop((0, top, WIDTH, min(HEIGHT, top + PART))).save(folder / f"page-{number}.webp", quality=80)
    page.crop((0, 0, WIDTH, 720)).save(folder / "sent.webp", quality=80)


def box_of(number: int) -> tuple[int, int, int, int]:
    return 60 + 400 * (number % 3), 130 + 300 * (number // 3), 320, 60


def coded(values: Sequence[str | None]) -> dict[str, Any]:
    known = sorted({value for value in values if value is not None})
    return {"values": known, "row": [-1 if value is None else known.index(value) for value in values]}


def _index(n: int, n_runs: int, texts: Texts) -> dict[str, Any]:
    n_tasks = -(-n // PER_TASK)
    return {
        "schema": 1, "title": "toy", "mode": "runs", "is_sample": True, "with_data": True,
        "runs": [_run(run, n) for run in range(n_runs)],
        "n": n, "keys": [key_of(row) for row in range(n)], "action_uids": [f"action-{row}" for row in range(n)],
        "tasks": {
            "annotation_ids": [f"task-{task}" for task in range(n_tasks)],
            "texts": [task_of(task * PER_TASK, texts) for task in range(n_tasks)],
            "row": [row // PER_TASK for row in range(n)],
        },
        "coded": {
            "website": coded([WEBSITES[row // PER_TASK % 3][0] for row in range(n)]),
            "domain": coded([WEBSITES[row // PER_TASK % 3][1] for row in range(n)]),
            "op": coded([OPS[row % 3] for row in range(n)]),
        },
        "numbers": {"n_actions": [PER_TASK] * n, "n_before": [row % PER_TASK for row in range(n)], "n_candidates": [24] * n},
        "cells": [_cells(run, n) for run in range(n_runs)],
        "comparison": _comparison(n, n_tasks, n_runs) if n_runs > 1 else None,
        "outcomes": OUTCOMES, "failures": FAILURES,
    }  # fmt: skip


def _headline(value: float) -> dict[str, Any]:
    return {"average": "macro", "value": value, "ci95": [value - 0.1, value + 0.1], "se": 0.05}


def _run(run: int, n: int) -> dict[str, Any]:
    return {
        "name": f"run-{run}", "grounding": "choice", "model": "builtin/lexical", "split": "cross_task", "protocol": "seeact",
        "ranker": "bundled", "finished": True,
        "settings": {"dataset": "sample", "split": "cross_task", "grounding": "choice", "top_k": 50 if run else 10, "tasks": ["it's"]}, "progress": None, "problems": [],
        "headlines": {
            "element_accuracy": _headline(0.5), "operation_f1": _headline(0.75), "step_success_rate": _headline(0.25),
        },
        "results": {
            "n_steps": n, "task_success_rate": {"offline0": 0.1, "offline1": 0.2}, "ceiling": {"macro": 0.8, "micro": 0.75},
            "recall_at_k": {"1": 0.2, "5": 0.5, "50": 0.8, "100": None},
            "waterfall": {"ranker_miss": {"steps": 4, "macro": 0.2, "micro": 0.25}, "wrong_element": {"steps": 8, "macro": 0.55, "micro": 0.5}},
            "usage": {"calls": 2 * n, "cost_usd": 0.5},
        },
    }  # fmt: skip


def _cells(run: int, n: int) -> dict[str, Any]:
    outcomes = [outcome_of(run, row) for row in range(n)]
    return {
        "outcome": coded(outcomes),
        "failure": coded(["no_choice" if outcome == "unreadable_reply" else None for outcome in outcomes]),
        "element": [int(outcome in ("success", "wrong_op")) for outcome in outcomes],
        "f1": [0.0 if outcome == "unreadable_reply" else 1.0 for outcome in outcomes],
        "success": [int(outcome == "success") for outcome in outcomes],
        "rank": [None if outcome == "ranker_miss" else row * 7 % 50 for row, outcome in enumerate(outcomes)],
        "cost": [round(0.001 * (row % 10), 4) for row in range(n)],
    }


def _comparison(n: int, n_tasks: int, n_runs: int) -> dict[str, Any]:
    gap = {"difference": -0.04, "ci95": [-0.1, 0.02], "p": 0.21, "n_steps": n, "n_tasks": n_tasks}
    # as where fewer than six tasks have such steps
    metrics = {"step_success_rate": gap, "operation_f1": gap | {"ci95": None, "p": 0.5}}
    return {
        "pairs": [{"a": 0, "b": run, "metrics": metrics} for run in range(1, n_runs)],
        "problem": None,
    }


def _step(row: int, n_runs: int, texts: Texts) -> dict[str, Any]:
    ids = [f"e{number}" for number in range(24)]
    # nested, and smaller than its neighbour: the innermost is to be found first
    inner = {
        "id": "inner",
        "tag": "span",
        "box": [100, 140, 80, 30],
        "text": "Inner",
        "path": "html > body > a > span",
        "rank": 23,
        "score": 0.01,
        "positive": False,
    }
    elements = [
        {"id": one, "tag": "a", "box": list(box_of(number)), "text": f"{texts.element} {number}", "path": f"html > body > div:{number} > a",
         "rank": number, "score": 1 - number / 30, "positive": number == 1}
        for number, one in enumerate(ids)
    ]  # fmt: skip
    return {
        "key": key_of(row), "annotation_id": f"task-{row // PER_TASK}", "action_uid": f"action-{row}", "task": task_of(row, texts),
        "history": [f"[link]  {texts.element} -> CLICK"] * (row % PER_TASK), "website": "avelora", "domain": "Travel", "subdomain": "Airlines",
        "index": row % PER_TASK, "n_actions": PER_TASK,
        "truth": {"op": "CLICK", "original_op": "HOVER", "value": "", "target": "e1", "positives": ["e1"]},
        "picture": {"width": WIDTH, "height": HEIGHT, "parts": [
            {"top": top, "height": min(PART, HEIGHT - top), "src": f"img/page-{number}.webp"} for number, top in enumerate(range(0, HEIGHT, PART))
        ]},
        "elements": [elements[1], elements[2], *elements[:1], *elements[3:], inner],
        "runs": [_answer(run, row, ids, texts) for run in range(n_runs)],
        "problems": [],
    }  # fmt: skip


def _answer(run: int, row: int, ids: list[str], texts: Texts) -> dict[str, Any]:
    outcome = outcome_of(run, row)
    chosen = "e1" if outcome in ("success", "wrong_op") else None if outcome == "unreadable_reply" else "e2"
    failure = "no_choice" if outcome == "unreadable_reply" else None
    parsed = {"element_id": chosen, "op": "CLICK", "value": "", "failure": failure, "detail": ""}
    told = [
        {"role": "user", "text": texts.prompt, "image": "img/sent.webp"},
        {"role": "assistant", "text": texts.reply, "image": None},
    ]
    groups = [
        {"window": [0, 600 * number, WIDTH, 600 * number + 720] if texts.act else None, "act": texts.act, "examples": told if texts.act else [],
         "group": number, "final": False, "offered": offered, "labels": [chr(65 + place) for place in range(len(offered))],
         "crop": [0, 600 * number, WIDTH, 600 * number + 720], "system": "You use websites for people.",
         "prompts": [f"{texts.prompt} {number}", "So which one?"], "images": ["img/sent.webp", None],
         "replies": ["The search button.", texts.reply], "parsed": parsed,
         "calls": [{"attempts": 1, "seconds": 2.31, "request_id": "req-1"}, None]}
        for number, offered in enumerate((ids[:8], ids[8:16]))
    ]  # fmt: skip
    return {
        "outcome": outcome, "cause": OUTCOMES[outcome], "element": int(chosen == "e1"), "f1": 0.5, "success": int(outcome == "success"), "rank": 1,
        "predicted": {"element_id": chosen, "op": "CLICK", "value": "", "point": None}, "failure": failure, "detail": "", "ran": True,
        "notes": {"tie_at_group_cut": 1}, "usage": {"calls": 4, "prompt_tokens": 1200, "completion_tokens": 80, "image_tokens": 700, "cost_usd": 0.0123},
        "groups": groups,
    }  # fmt: skip


# --- serving ---


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the site, else the viewer's own, with the header that the viewer sends."""

    def __init__(self, *args: Any, site: Path, static: Path, policy: str | None, **kwargs: Any) -> None:
        self.site, self.static, self.policy = site, static, policy
        super().__init__(*args, **kwargs)

    def translate_path(self, path: str) -> str:
        name = path.split("?")[0].lstrip("/") or "index.html"
        return str(next((at / name for at in (self.site, self.static) if (at / name).is_file()), self.site / name))

    def end_headers(self) -> None:
        if self.policy is not None:
            self.send_header("Content-Security-Policy", self.policy)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@contextmanager
def serve(site: Path, static: Path = STATIC, policy: str | None = CSP) -> Iterator[str]:
    """The address of the site, while it is served."""
    handler = functools.partial(_Handler, site=site, static=static, policy=policy)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def static_with(folder: Path, name: str, change: Callable[[str], str]) -> Path:
    """A copy of the front end with one file changed."""
    shutil.copytree(STATIC, folder)
    path = folder / name
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")
    return folder
