"""Step results of SeeClick's and ShowUI's evaluations as runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from seeact_offline.importers.importing import ImportedRun, ImportFiles, import_run
from seeact_offline.records import InputError
from tests.recut_data import SIZE, TASKS, action, task, write_seeclick, write_showui
from tests.reference import step_results

CLICK = '{"action_type": 4, "click_point": (0.20,0.18)}'
SHOWUI_CLICK = "{'action': 'CLICK', 'value': None, 'position': [0.2, 0.18]}"


def imported(tmp_path: Path, format: str, file: Any, tasks: Sequence[Any] = TASKS, **options: Any) -> ImportedRun:
    path = tmp_path / "results.json"
    path.write_text(file if isinstance(file, str) else json.dumps(file, indent=4))
    data = (write_showui if "showui" in (format, options.get("agent")) else write_seeclick)(tmp_path / "set", tasks)
    return import_run(
        ImportFiles(run=path), out=tmp_path / "run", format=format, dataset=data, split="cross_website", **options
    )


def result(task: str, uid: str, sentence: Any, **more: Any) -> dict[str, Any]:
    """A step result with the fields that both evaluations write."""
    return {"annot_id": task, "img_path": f"/images/{task}-{uid}.jpg", "instruction": "Buy", "sentence": sentence,
            "Op_match": False, "Ele_match": False, "Op_F1": [0, 4], **more}  # fmt: skip


def of_showui(task: str, uid: str, sentence: Any, **more: Any) -> dict[str, Any]:
    return {**result(task, uid, [sentence]), "split": "test_website", "anno_id": 0, **more} | {"annot_id": None}


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


ONE = result("a-1", "u-0", CLICK)
ONE_OF_SHOWUI = without(of_showui("a-1", "u-0", SHOWUI_CLICK), "annot_id")
SHAPES: dict[str, tuple[str, Any]] = {
    "episodes": ("seeclick", [[ONE], []]),
    "a list": ("seeclick", [ONE]),
    "a line each": ("seeclick", f"{json.dumps(ONE)}\n{json.dumps(result('b-2', 'u-0', CLICK))}\n"),
    "pred for sentence": ("seeclick", [without(ONE, "sentence") | {"pred": CLICK}]),
    "a prediction that is no text": ("seeclick", [without(ONE, "sentence") | {"pred": {"action_type": 4, "click_point": [0.2, 0.18]}}]),
    "the step's id for its picture": ("seeclick", [without(ONE, "img_path") | {"action_uid": "u-0"}]),
    "a path of Windows": ("seeclick", [ONE | {"img_path": r"D:\images\a-1-u-0.jpg"}]),
    "by split and number": ("showui", {"test_website": {"0": [ONE_OF_SHOWUI], "1": []}}),
    "a text for a batch": ("showui", [ONE_OF_SHOWUI | {"sentence": SHOWUI_CLICK}]),
    "ids in meta": ("showui", [ONE_OF_SHOWUI | {"img_path": "x.jpg", "meta": {"annot_id": "a-1", "action_uid": "u-0"}}]),
}  # fmt: skip


@pytest.mark.parametrize(("format", "file"), SHAPES.values(), ids=SHAPES)
def test_a_result_is_found_in_any_shape(format: str, file: Any, tmp_path: Path) -> None:
    first = imported(tmp_path, format, file).run.predictions()[0]
    assert (first.op, first.point, first.element_id) == ("CLICK", pytest.approx((80.0, 36.0)), "box")


def reply(random: Random, act: dict[str, Any], text: str, format: str) -> str:
    """A reply of a model that is right more often than not, or not in its format at all."""
    op = act["operation"]["op"] if random.random() < 0.75 else random.choice(["CLICK", "TYPE", "SELECT"])
    box = act["bbox"]
    x, y = (
        (box[one] + box[length] * random.choice([0, 0.5, 1])) / side
        for one, length, side in zip("xy", ("width", "height"), SIZE, strict=True)
    )
    x, y = (x, y) if random.random() < 0.7 else (random.uniform(0, 1.05), random.random())
    value = (
        act["operation"]["value"]
        if random.random() < 0.6
        else random.choice(["", "york NEW", "other", 'q"q', "it's", r"b\n", "5"])
    )
    if format == "seeclick":
        kind = random.choice(
            [step_results.CODES[op]] * 12 + [5, f"{step_results.CODES[op]}.0", f'"{step_results.CODES[op]}"']
        )
        place = random.choice(
            [f"({x:.2f},{y:.2f})"] * 10
            + [f"[{x:.3f}, {y:.3f}]", f"({x:.2f},{y:.2f},1)", "None", f'"{x:.2f}"', f"({x:.2f})"]
        )
        said = random.choice([f', "value": "{value}"'] * 8 + [', "value": 5', ""]) if op != "CLICK" else ""
        made = f'{{"action_type": {kind}, "click_point": {place}{said}}}'
    else:
        name = text.partition("]  ")[2].partition(" ->")[0] if random.random() < 0.5 else value
        said = random.choice([f"'{name}'"] * 6 + ["None"])
        kind = random.choice([op] * 12 + ["HOVER", "click"])
        made = f"{{'action': '{kind}', 'value': {said}, 'position': {random.choice([f'[{x:.2f}, {y:.2f}]'] * 9 + ['None', '[1.2.3, 0]'])}}}"
    return random.choice([made] * 16 + [f"Sure: {made}", f" {made}\n", made * 2, made[:-3], ""])


def random_tasks(random: Random) -> list[dict[str, Any]]:
    tasks = []
    for n in range(60):
        acts, texts = [], []
        for i in range(5):
            op = random.choice(["CLICK", "TYPE", "SELECT"])
            value = (
                random.choice(["New York", "two", "5 stars", r"a\nb", "it's", "", 'a "b"', "Économy class"])
                if op != "CLICK"
                else ""
            )
            box = (random.uniform(0, 300), random.uniform(0, 150), random.uniform(3, 90), random.uniform(3, 40))
            recorded = random.choice(["HOVER", "ENTER", op]) if op == "CLICK" else op
            acts.append(action(f"u-{i}", op, value, box, recorded))
            texts.append(random.choice([f"[link]  Thing {i} -> {op}", f"[link]  -> {op}", op]))
        tasks.append(task(f"t-{n}", *acts, texts=texts))
    return tasks


@pytest.mark.slow
@pytest.mark.parametrize("is_raw", [False, True], ids=["results", "replies"])
@pytest.mark.parametrize("agent", ["seeclick", "showui"])
def test_three_hundred_replies_earn_what_the_released_evaluation_gives(
    agent: str, is_raw: bool, tmp_path: Path
) -> None:
    random = Random(agent)
    tasks = random_tasks(random)
    texts, expected = {}, {}
    for one in tasks:
        for act, text in zip(one["actions"], one["action_reprs"], strict=True):
            key = (one["annotation_id"], act["action_uid"])
            texts[key] = said = reply(random, act, text, agent)
            earned = (
                step_results.seeclick(said, act, SIZE)
                if agent == "seeclick"
                else step_results.showui(said, act, SIZE, text)
            )
            expected[key] = (
                (None, None, None) if earned is None else (*earned, float(earned.element and earned.f1 == 1))
            )
    if is_raw:
        rows = [{"annotation_id": task, "action_uid": uid, "reply": said} for (task, uid), said in texts.items()]
        run = imported(tmp_path, "replies", "\n".join(map(json.dumps, rows)), tasks, agent=agent, strict=True).run
    else:
        run = imported(tmp_path, agent, [result(*key, said) for key, said in texts.items()], tasks).run
    steps = map(json.loads, (run.path / "steps.jsonl").read_text().splitlines())
    scores = {
        (s["annotation_id"], s["action_uid"]): tuple(s[name] for name in ("element", "operation_f1", "success"))
        for s in steps
    }
    assert scores.keys() == expected.keys()
    assert {
        key: (scores[key], wanted) for key, wanted in expected.items() if scores[key] != pytest.approx(wanted)
    } == {}
    assert len(set(expected.values())) > 6


def test_a_step_without_box_or_picture_is_in_no_figure(tmp_path: Path) -> None:
    tasks = [task("a-1", action("u-0", "CLICK"), action("u-1", "CLICK", box=None), action("lost-2", "CLICK"))]
    rows = [result("a-1", uid, CLICK) for uid in ("u-0", "u-1", "lost-2")]
    results = imported(tmp_path, "seeclick", [rows], tasks).run.results
    assert (results["n_steps"], results["left_out"], results["element_accuracy"]["micro"]) == (1, 2, 1.0)


@pytest.mark.parametrize(
    ("file", "notes"),
    [
        ([ONE, ONE], {"duplicate_step": 1}),
        ([ONE, result("a-1", "u-9", CLICK)], {"unknown_step": 1}),
        ([ONE, without(ONE, "img_path")], {"bad_row": 1}),
        ([ONE, ONE | {"annot_id": "", "img_path": "one-of-three.jpg"}], {"bad_row": 1}),
        (f'{json.dumps(ONE)}\n{{"annot_id"', {"torn_line": 1}),
        (f"{json.dumps(ONE)}\nnothing\n", {"bad_row": 1}),
    ],
    ids=str,
)
def test_what_cannot_be_read_is_left_out_and_counted(file: Any, notes: dict[str, int], tmp_path: Path) -> None:
    assert imported(tmp_path, "seeclick", file).run.results["notes"] == notes


@pytest.mark.parametrize("format", ["seeclick", "showui"])
@pytest.mark.parametrize(
    "file", [[], {}, "", "nothing", [{"annot_id": "a-1"}], [{"annotation_id": "a", "action_uid": "b", "op": "CLICK"}]]
)
def test_a_file_without_results_is_refused(format: str, file: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected step results with img_path"):
        imported(tmp_path, format, file)
    assert not (tmp_path / "run").exists()
