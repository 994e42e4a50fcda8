"""Steps of golden commands beside those of the program: small files for it to read, made of runs' files, and a run that is killed.

Each is called with words in the command's own folder. They know the formats that `docs/formats.md` has, and nothing of the package.
"""

from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.recut_data import TASKS, write_seeclick, write_showui

MODELS = '''
import hashlib
from seeact_offline.records import JPEG_95

def heard(messages):
    """Replies with a digest of all that is sent, and with a choice that follows from it."""
    digest = hashlib.sha256()
    for message in messages:
        digest.update(f"{message.role}: {message.text}\\n".encode())
        digest.update(message.picture.encoded(JPEG_95) if message.picture else b"")
    name = digest.hexdigest()
    return f"{name}\\n\\nELEMENT: {'ABCDE'[int(name, 16) % 5]}\\nACTION: CLICK\\nVALUE: None"

def verdict(messages):
    """The same as verdicts, in the words of every judge."""
    name = heard(messages)[:64]
    good = int(name, 16) % 3
    return f"{name}\\n1. Key point\\nScore: {good + 3}\\nStatus: {'success' if good else 'failure'}\\n{'' if good else 'NOT '}SUCCESS"
'''
STRICT = """
from dataclasses import replace
from seeact_offline.scoring import rules
from seeact_offline.scoring.protocols import PROTOCOLS
STRICT = replace(PROTOCOLS["seeact"], name="strict", element=rules.first_positive, success=rules.same_text)
"""
UGROUND = {
    "annotation_id": "t", "website": "w", "domain": "d", "operation": "TYPE", "value": "10203", "bbox": [[10, 900, 20, 30]],
    "previous_actions": ["x", "y"], "total_steps": 3, "split": "task", "target_blocks": {"1": [[10, 100, 20, 30]]},
}  # fmt: skip
REWARDS: list[dict[str, Any]] = [
    {"eval_types": ["string_match"], "reference_answers": {"must_include": ["blue |OR| red"], "exact_match": "red"}},
    {"eval_types": ["url_match"], "reference_url": "http://shop.test:7770/cart"},
    {"eval_types": ["program_html"], "program_html": [
        {"url": "last", "locator": "document.title", "required_contents": {"exact_match": "Cart"}}]},
    {"eval_types": ["program_html"], "program_html": [
        {"url": "last", "locator": "func:shopping_get_x()", "required_contents": {"exact_match": "Cart"}}]},
    {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["forty"]}},
]  # fmt: skip
SCRIPT = """
website: notes
domain: Tools
start: notes.html
tasks:
- task: Add a blue note that says water the plants
  steps:
  - {op: SELECT, selector: 'select[name=colour]', value: Blue}
  - {op: TYPE, selector: '#t', value: water the plants}
  - {op: CLICK, selector: 'text=Add note'}
  check:
  - {selector: li, text: water the plants}
"""
PAGE = """<h1>Notes</h1>
<select name="colour"><option>Red</option><option>Blue</option></select> <input id="t" placeholder="What is to be done?">
<button onclick="list.append(Object.assign(document.createElement('li'), {textContent: t.value}))">Add note</button><ul id="list"></ul>
"""


def inputs() -> None:
    """Models and a protocol in files."""
    Path("models.py").write_text(MODELS)
    Path("strict.py").write_text(STRICT)


def kill(lines: str, *words: str) -> None:
    """Carries a command out in a process of its own, and kills it (-9) once its predictions have so many lines."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seeact_offline", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    predictions = Path("out/predictions.jsonl")
    while process.poll() is None and (not predictions.exists() or predictions.read_bytes().count(b"\n") < int(lines)):
        time.sleep(0.005)
    process.kill()
    print("killed" if process.wait() < 0 else "ended before it was killed")


def same(other: str) -> None:
    """Says which files of `out` are not those of another run, but for what differs by nature."""
    from tests.golden import cleaned, files_of

    for name in sorted(files_of(Path(other)) | files_of(Path("out"))):
        ours, theirs = (
            cleaned(path) if (path := folder / name).exists() else None for folder in (Path("out"), Path(other))
        )
        print("same" if ours == theirs else "NOT THE SAME", name)


def people(run: str) -> None:
    """A person's reading of each turn-1 text: the right element, and every third time none."""
    rows = []
    for number, (step, truth) in enumerate(zip(_rows(run, "predictions"), _truths(run), strict=True)):
        text = step["groups"][0]["replies"][0]
        answer = {
            "element_id": _target(truth) if number % 3 else None,
            "op": step["op"],
            "value": step["value"],
            "annotator": "NAME",
        }
        rows.append(_ids(step) | answer | {"turn1_sha256": hashlib.sha256(text.encode()).hexdigest()})
    _write("people.jsonl", rows)


def table(run: str) -> None:
    """A CSV of a run's answers."""
    with open("answers.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["annotation_id", "action_uid", "op", "value", "element_id"])
        writer.writerows(
            [*_ids(step).values(), step["op"], step["value"], step["element_id"]] for step in _rows(run, "predictions")
        )


def seeact(run: str) -> None:
    """A run's replies in SeeAct's files."""
    for number, step in enumerate(_rows(run, "predictions")):
        groups = [group for group in step["groups"] if not group["is_final_round"]]
        choices = [[[node, f"<a> {node}"] for node in group["offered"]] for group in groups]
        _write(
            f"theirs/{number}/queries.jsonl",
            [_ids(step) | {"confirmed_task": "x", "choices": group} for group in choices],
        )
        answers = [
            {"multichoice_id": group["group"], "gpt_output": group["replies"], "prompt": ["", "", ""]}
            for group in groups
        ]
        _write(f"theirs/{number}/prediction-4api.jsonl", answers)


def mindact(run: str) -> None:
    """A run's rounds in MindAct's file of outputs."""
    outputs = []
    for step in _rows(run, "predictions"):
        rounds = [
            [g["offered"], ["<html>", "what?", [[node, "<a>"] for node in g["offered"]]], g["replies"][-1]]
            for g in step["groups"]
        ]
        outputs.append(["_".join(_ids(step).values()), rounds])
    Path("test_website_outputs_top50.json").write_text(json.dumps(outputs))


def uground() -> None:
    """Samples, plans and answers of UGround, three steps of which one has no plan."""
    samples = [UGROUND | {"action_uid": uid} for uid in "abc"]
    plan = {"annotation_id": "t", "ans_block": 1, "gpt_action": "TYPE", "gpt_value": "10203", "description": "a field"}
    _write("samples.jsonl", samples)
    _write("plan.jsonl", [plan | {"action_uid": uid} for uid in "ab"])
    answer = {"bbox": [[10, 100, 20, 30]], "scale": 1.05}
    _write(
        "answers.jsonl", [answer | {"id": "t_a", "output": "(21, 115.5)"}, answer | {"id": "t_b", "output": "(1, 2)"}]
    )


def recut(layout: str) -> None:
    """SeeClick's or ShowUI's data set, and step results: a click at the same place everywhere."""
    (write_seeclick if layout == "seeclick" else write_showui)(Path("set"))
    click: object = '{"action_type": 4, "click_point": (0.20,0.18)}'
    if layout == "showui":
        click = ["{'action': 'CLICK', 'value': None, 'position': [0.2, 0.18]}"]
    steps = [(task["annotation_id"], action["action_uid"]) for task in TASKS for action in task["actions"]]
    rows = [{"img_path": f"/images/{task}-{uid}.jpg", "sentence": click, "Op_F1": [0, 4]} for task, uid in steps]
    split = {"split": "test_website", "anno_id": 0} if layout == "showui" else {}
    Path("results.json").write_text(json.dumps([row | split for row in rows]))


def replies(run: str) -> None:
    """A run's last replies as raw replies."""
    _write(
        "replies.jsonl",
        [_ids(step) | {"reply": step["groups"][-1]["replies"][-1]} for step in _rows(run, "predictions")],
    )


def reply(waves: str) -> None:
    """Answers the last wave of a folder of batches, each request with a choice that follows from its text, and in the second none to every third."""
    wave = max(Path(waves).glob("wave-*"), key=lambda path: int(path.name.removeprefix("wave-")))
    for file in sorted(wave.glob("requests-*.jsonl")):
        answers = []
        for number, line in enumerate(file.read_text().splitlines()):
            letter = "ABCDE"[int(hashlib.sha256(line.encode()).hexdigest(), 16) % 5]
            message = {"role": "assistant", "content": f"I look.\nELEMENT: {letter}\nACTION: CLICK\nVALUE: None"}
            body = {
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 3},
            }
            if number % 3 != 2 or wave.name != "wave-2":
                answers.append(
                    {
                        "custom_id": json.loads(line)["custom_id"],
                        "response": {"status_code": 200, "body": body},
                        "error": None,
                    }
                )
        _write(str(wave / file.name.replace("requests", "output")), answers)


def dump() -> None:
    """A raw dump of two tasks, of which one lacks its pictures."""
    from tests.seeact_offline.dataset.test_raw_dump import Dump, make_task

    made = Dump(Path())
    made.add("train/train_0.json", [make_task("pie"), make_task("bun", 3)])
    made.screen("bun", [])


def tasks() -> None:
    """Tasks of VisualWebArena's kind, their answers, and pages that they look at."""
    Path("tasks.json").write_text(
        json.dumps([{"task_id": i, "intent": "How many?", "eval": rule} for i, rule in enumerate(REWARDS)])
    )
    _write(
        "answers.jsonl",
        [{"task_id": i, "answer": "red", "address": "http://shop.test:7770/cart/"} for i in range(len(REWARDS))],
    )
    for name in ("2", "3"):
        _write(f"states/{name}/state.json", [{"address": "http://x.test/", "html": "last.html"}])
        Path(f"states/{name}/last.html").write_text("<title>Cart</title>")


def script() -> None:
    """A page, and a script of one task on it."""
    Path("tasks.yaml").write_text(SCRIPT)
    Path("notes.html").write_text(PAGE)


def _rows(run: str, name: str) -> list[Any]:
    return [json.loads(line) for line in Path(run, f"{name}.jsonl").read_text().splitlines()]


def _truths(run: str) -> list[Any]:
    truths = {tuple(_ids(row).values()): row for row in _rows(run, "targets")}
    return [truths[tuple(_ids(row).values())] for row in _rows(run, "predictions")]


def _target(truth: Any) -> Any:
    return truth["target"]


def _ids(row: Any) -> dict[str, str]:
    return {name: row[name] for name in ("annotation_id", "action_uid")}


def _write(path: str, rows: Iterable[Any]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
