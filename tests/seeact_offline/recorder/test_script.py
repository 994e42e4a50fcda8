"""Task scripts: what is accepted, and one sentence for what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.recorder import load_script
from seeact_offline.records import InputError, Operation


def script(folder: Path, **changes: Any) -> Path:
    (folder / "page.html").write_text("<p>hi</p>")
    step = {"op": "CLICK", "selector": "p"}
    content = {
        "website": "site",
        "domain": "Travel",
        "start": "page.html",
        "tasks": [{"task": "Do it", "steps": [step]}],
        **changes,
    }
    path = folder / "script.json"
    path.write_text(json.dumps({name: value for name, value in content.items() if value is not None}))
    return path


def with_step(folder: Path, **step: Any) -> Path:
    return script(folder, tasks=[{"task": "Do it", "steps": [step]}])


def with_check(check: object) -> dict[str, Any]:
    return {"tasks": [{"task": "Do it", "steps": [{"op": "CLICK", "selector": "p"}], "check": check}]}


def test_a_task_has_its_site_start_and_actions(tmp_path) -> None:
    (task,) = load_script(script(tmp_path))
    assert (task.website, task.split, task.start) == ("site", "train", (tmp_path / "page.html").as_uri())
    assert (task.actions[0].operation, task.actions[0].selector) == (Operation("CLICK", "", "CLICK"), "p")


def test_a_task_may_have_a_check_of_its_last_page(tmp_path) -> None:
    check = [{"url": "#done"}, {"selector": "p", "text": "hi"}, {"selector": "p", "visible": False}]
    (task,) = load_script(script(tmp_path, **with_check(check)))
    assert [json.loads(str(condition)) for condition in task.check] == check


def test_ids_depend_on_site_and_sentence_alone(tmp_path) -> None:
    first, again = load_script(script(tmp_path))[0], load_script(script(tmp_path, domain="Shopping"))[0]
    assert (first.annotation_id, first.action_uid(1)) == (again.annotation_id, again.action_uid(1))


def test_hovering_and_pressing_enter_are_recorded_as_clicks(tmp_path) -> None:
    task = load_script(with_step(tmp_path, op="enter", selector="p"))[0]
    assert task.actions[0].operation == Operation("CLICK", "", "ENTER")


def test_a_yaml_key_on_is_the_selector(tmp_path) -> None:
    (tmp_path / "page.html").write_text("")
    path = tmp_path / "s.yaml"
    path.write_text("website: s\nstart: page.html\ntasks:\n- task: t\n  steps:\n  - {op: CLICK, on: 'a.b'}\n")
    assert load_script(path)[0].actions[0].selector == "a.b"


@pytest.mark.parametrize(
    ("start", "found"),
    [(".", "index.html"), ("https://example.org/x", "https://example.org/x"), ("page.html#deals", "{page}#deals")],
)
def test_a_task_starts_in_a_served_folder_at_a_url_or_in_a_file(tmp_path, start: str, found: str) -> None:
    task = load_script(script(tmp_path, start=start))[0]
    assert task.start == found.format(page=(tmp_path / "page.html").as_uri())
    assert task.served == (tmp_path if start == "." else None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": []}, "script: expected a list of tasks under 'tasks' in .*, got \\[\\]$"),
        ({"tasks": ["x"]}, "script: expected names and values for task 0 of .*, got a str$"),
        (
            {"start": "nowhere.html"},
            "expected 'start' to be a URL, an HTML file or a folder, got nothing at .*nowhere.html",
        ),
        ({"website": None}, "expected a text under 'website' in .*, got None"),
        ({"tasks": [{"task": "x", "steps": []}]}, "expected a list of steps in task 0 of .*, got \\[\\]$"),
        (with_check("done"), "expected a list of conditions under 'check' in task 0 of .*, got 'done'$"),
        (with_check([]), "expected a list of conditions under 'check' in task 0 of .*, got \\[\\]$"),
        (with_check(["done"]), "expected an object, got 'done' in condition 0 of task 0 of "),
        (
            with_check([{"url": "#a"}, {"url": 1}]),
            "expected url to be a text or null, got 1 in condition 1 of task 0 of ",
        ),
        (with_check([{"url": ""}]), "expected url to be .*, got '' in condition 0 of task 0 of "),
        (with_check([{"path": "#a"}]), "expected no fields but url, selector, text, value, visible, got 'path' in "),
        (
            with_check([{"selector": "p"}]),
            "expected either url, or selector and one of text, value and visible, got {'sel",
        ),
        (with_check([{"text": "a"}]), "expected either url, or selector and one of "),
        (with_check([{"url": "#a", "selector": "p", "text": "a"}]), "expected either url, or selector and one of "),
        (with_check([{"selector": "p", "text": "a", "value": "b"}]), "expected either url, or selector and one of "),
        (
            {"tasks": [{"task": "x", "answer": 5, "steps": [{"op": "CLICK", "selector": "p"}]}]},
            "expected a text under 'answer' in task 0 of .*, got 5$",
        ),
        (
            {"tasks": [{"task": "x", "dialogs": True, "steps": [{"op": "CLICK", "selector": "p"}]}]},
            "expected 'dialogs' to be accept or dismiss in task 0 of .*, got True$",
        ),
        ({"serve": "nowhere"}, "expected 'serve' to be a folder, got none at .*nowhere"),
    ],
)
def test_a_wrong_script_is_named(tmp_path, changes, message) -> None:
    with pytest.raises(InputError, match=message):
        load_script(script(tmp_path, **changes))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"op": "DRAG", "selector": "p"}, "script: expected 'op' to be one of CLICK.*, got 'DRAG'"),
        ({"op": "TYPE", "selector": "p"}, "expected a 'value' for TYPE"),
        ({"op": "CLICK", "selector": "p", "value": "x"}, "expected no 'value' for CLICK"),
        ({"op": "CLICK"}, "expected a text under 'selector'"),
    ],
)
def test_a_wrong_step_is_named(tmp_path, step, message) -> None:
    with pytest.raises(InputError, match=message):
        load_script(with_step(tmp_path, **step))


def test_a_file_that_is_no_script_is_named(tmp_path) -> None:
    (tmp_path / "s.yaml").write_text("[")
    with pytest.raises(InputError, match=r"script: expected YAML, got .* in .*s.yaml"):
        load_script(tmp_path / "s.yaml")
