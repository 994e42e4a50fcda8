"""Recording with the real browser: what a row holds, and that it sits where it should."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path
from typing import Any, TypeVar

import pytest
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.recorded import (
    RECORDED_COLUMNS,
    AccessibilityTree,
    Check,
    ElementLayout,
    FinalState,
    Layout,
    PageState,
)
from seeact_offline.dataset.writing import to_row, write_hub_parquet
from seeact_offline.recorder import Recorder, RecordFailed, RecordOptions, load_script
from seeact_offline.recorder.browser import NAMES
from seeact_offline.records import InputError, Operation, Step, StepError
from tests.pages import synthetic_rows, write_parquet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, NAMES)), reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
    ),
    pytest.mark.timeout(180),
]

T = TypeVar("T")
PAGE = """<!doctype html><html><head><title>T</title><style>
body { margin: 0; font: 16px sans-serif; height: 1500px } * { box-sizing: border-box } h1 { margin: 0 }
#blue { position: absolute; left: 100px; top: 900px; width: 200px; height: 60px; background: #00f; border: 0; color: #00f }
canvas { position: absolute; left: 0; top: 1200px; background: #ddd }
</style></head><body>
<h1>Shop</h1>
<label>Zip code <input name="zip" placeholder="Zip" oninput="document.querySelector('h1').textContent = 'Zip ' + this.value"></label>
<select name="size"><option>Small</option><option>Large</option></select>
<div class="wrap"><a href="#x"><span>Open</span> <b>now</b></a></div>
<button id="blue" onclick="this.textContent = 'done ' + Math.random() + Date.now()">Press</button>
<p style="display: none">secret</p>
<iframe srcdoc="<button>Inside</button>" width="200" height="60"></iframe>
<canvas width="50" height="50" onclick="document.querySelector('h1').textContent = 'canvas'"></canvas>
<ul><li><button class="s">Schedule</button></li><li><button class="s">Schedule</button></li></ul>
</body></html>"""

STEPS = [
    {"op": "TYPE", "selector": "input[name=zip]", "value": "10203"},
    {"op": "SELECT", "selector": "select", "value": "Large"},
    {"op": "CLICK", "selector": "a span"},
    {"op": "CLICK", "selector": "#blue"},
    {"op": "CLICK", "selector": "button", "frame": "iframe"},
    {"op": "CLICK", "selector": "canvas"},
    {"op": "CLICK", "selector": ".s >> nth=1"},
    {"op": "HOVER", "selector": "h1"},
]


def write_script(folder: Path, steps: list[dict[str, Any]], page: str = PAGE, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.html").write_text(page)
    tasks = [{"task": "Try everything", "split": "cross_website", "steps": steps}]
    content = {"website": "tiny", "domain": "Shopping", "start": "index.html", "tasks": tasks, **changes}
    path = folder / "script.json"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture(scope="module")
def recorder():
    with Recorder(RecordOptions(picture="png", timeout_s=5.0)) as open_recorder:
        yield open_recorder


@pytest.fixture(scope="module")
def records(recorder, tmp_path_factory):
    return recorder.record(load_script(write_script(tmp_path_factory.mktemp("page"), STEPS))[0])


@pytest.fixture(scope="module")
def steps(records, tmp_path_factory) -> list[Step]:
    """The recording, written and read back as any data set."""
    folder = tmp_path_factory.mktemp("recorded")
    write_hub_parquet(map(to_row, records), folder / "data" / "test_website-00000-of-00001.parquet")
    return list(load_steps(folder, "cross_website"))


def targets(step: Step) -> list[str]:
    return sorted(c.tag for c in step.candidates if c.is_positive)


def test_every_row_reads_back_without_a_fault(steps) -> None:
    assert [step.faults for step in steps] == [()] * len(STEPS)


def test_operations_are_those_of_the_script(steps) -> None:
    assert [step.operation.op for step in steps] == ["TYPE", "SELECT", *["CLICK"] * 6]
    assert steps[-1].operation == Operation("CLICK", "", "HOVER")


def test_action_texts_have_the_form_of_the_data_set(steps) -> None:
    assert [step.action_text for step in steps] == [
        "[textbox]  Zip code -> TYPE: 10203",
        "[combobox]  size -> SELECT: Large",
        "[span]  Open -> CLICK",
        "[button]  Press -> CLICK",
        "[button]  Inside -> CLICK",
        "[canvas]   -> CLICK",
        "[button]  Schedule -> CLICK",
        "[heading]  canvas -> HOVER",
    ]


def test_a_picture_shows_the_page_before_the_action_from_top_to_bottom(steps) -> None:
    picture = Image.open(io.BytesIO(steps[0].screenshot.read()))
    assert (picture.size, "Zip 10203" in steps[0].cleaned_html) == ((1280, 1500), False)
    assert "Zip 10203" in steps[1].cleaned_html


def test_what_was_typed_and_selected_is_in_the_next_rows_html(steps) -> None:
    assert 'input_value="10203"' in steps[1].cleaned_html
    assert 'option_selected="true"' in steps[2].cleaned_html.split("Large")[0].splitlines()[-2]


def test_a_box_sits_on_its_element_in_the_picture(steps) -> None:
    step = steps[3]
    (box,) = [c.box for c in step.candidates if c.is_positive]
    picture = Image.open(io.BytesIO(step.screenshot.read())).convert("RGB")
    assert tuple(box) == (100, 900, 200, 60)
    corners = [(100, 900), (299, 900), (100, 959), (299, 959)]
    assert {picture.getpixel(corner) for corner in corners} == {(0, 0, 255)}
    assert {picture.getpixel(outside) for outside in [(99, 900), (300, 959), (100, 960)]} == {(255, 255, 255)}


def test_the_right_elements_are_the_one_acted_on_and_those_of_the_same_box(recorder, steps, tmp_path) -> None:
    assert targets(steps[2]) == ["span"]
    same = "<div role=listitem><a href='#x' style='display: block'><b style='display: block'>Whole</b></a></div>"
    (step,) = recorder.record(load_script(write_script(tmp_path, [{"op": "CLICK", "selector": "a"}], same))[0])
    assert [e.tag for e in step.elements if e.is_positive] == ["div", "a", "b"]
    # of two look-alikes the one that was clicked; nothing of a frame or a canvas
    assert targets(steps[6]).count("button") == 1
    assert (targets(steps[4]), targets(steps[5])) == ([], [])


def test_every_element_of_the_cleaned_page_is_a_candidate(steps) -> None:
    from seeact_offline.pages.dom import Page

    for step in steps:
        assert {c.backend_node_id for c in step.candidates} == Page(step.cleaned_html).ids


def test_hidden_content_is_left_out_of_the_cleaned_page_only(records) -> None:
    assert "secret" not in records[0].cleaned_html
    assert "secret" in records[0].raw_html


def test_recording_again_gives_the_same_bytes(recorder, records, tmp_path) -> None:
    page = tmp_path / "again"
    again = recorder.record(load_script(write_script(page, STEPS))[0])
    for first, second in zip(map(to_row, records), map(to_row, again), strict=True):
        assert {name for name in first if first[name] != second[name]} == set()


def test_a_served_folder_is_recorded(recorder, tmp_path) -> None:
    page = PAGE.replace("<h1>Shop", "<script src='/x.js'></script><h1>Shop")
    path = write_script(tmp_path, [{"op": "CLICK", "selector": "h1"}], page, start=".")
    (tmp_path / "x.js").write_text(
        "document.title = 'served'; window.addEventListener('load', () => document.body.prepend('From the server'))"
    )
    assert "From the server" in recorder.record(load_script(path)[0])[0].cleaned_html


def record_checked(
    recorder: Recorder, folder: Path, steps: list[dict[str, Any]], check: list[dict[str, Any]]
) -> list[Step]:
    task = {"task": "Try it", "split": "cross_website", "steps": steps, "check": check}
    records = recorder.record(load_script(write_script(folder, [], tasks=[task]))[0])
    write_hub_parquet(map(to_row, records), folder / "data" / "test_website-00000-of-00001.parquet")
    return list(load_steps(folder, "cross_website"))


@pytest.mark.parametrize(
    "condition",
    [
        {"url": "index.html#x"},
        {"selector": "a", "visible": True},
        {"selector": "#blue", "visible": False},
        {"selector": "h1", "text": "Zip  102"},
        {"selector": "button", "text": "Schedule"},
        {"selector": "input", "value": "10203"},
        {"selector": "select", "value": "Large"},
    ],
)
def test_each_kind_of_condition_can_hold(recorder, tmp_path, condition) -> None:
    folder = tmp_path
    steps = [{"op": "SELECT", "selector": "select", "value": "Large"}, *[STEPS[2], STEPS[0]]]
    page = PAGE.replace('oninput="', "oninput=\"document.querySelector('#blue').style.display = 'none'; ")
    task = {
        "task": "Try it",
        "split": "cross_website",
        "steps": steps,
        "check": [condition, {"selector": "h1", "text": "Zip"}],
    }
    records = recorder.record(load_script(write_script(folder, [], page, tasks=[task]))[0])
    assert json.loads(str(records[-1].recorded["check"]))["after"] == [True, True]


def test_a_check_is_written_with_what_holds_around_each_action(recorder, tmp_path) -> None:
    check = [{"selector": "h1", "text": "Zip 1"}, {"selector": "select", "value": "Large"}]
    steps = record_checked(recorder, tmp_path, STEPS[:2], check)
    checks = [step.recorded.read(Check) for step in steps if step.recorded]
    assert [(one.before, one.after) for one in checks if one] == [((False, False), None), ((True, False), (True, True))]
    assert [json.loads(str(one)) for one in checks[0].conditions] == check


def test_a_task_without_a_check_has_none(steps) -> None:
    assert {step.recorded and step.recorded.read(Check) for step in steps} == {None}


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ([{"url": "#y"}], 'step 2 of 2 of task \'Try it\': expected {"url":"#y"} after it, got /index.html#x'),
        ([{"selector": "h1", "text": "Zap"}], 'expected {.*"text":"Zap"} after it, got \\[\'Zip 10203\'\\]'),
        ([{"selector": "h2", "visible": True}], "expected {.*} after it, got 0 visible elements"),
        ([{"selector": "input", "value": "102"}], "expected {.*} after it, got \\['10203'\\]"),
        (
            [{"selector": "h1", "text": "Zip"}],
            "step 2 of 2 of task 'Try it': expected a check that does not hold before this action",
        ),
        (
            [{"selector": "h1", "visible": True}],
            "step 1 of 2 of task 'Try it': expected a check that does not hold before this action",
        ),
    ],
)
def test_a_check_that_does_not_tell_the_finished_task_apart_is_named(recorder, tmp_path, check, message) -> None:
    with pytest.raises(StepError, match=message) as error:
        record_checked(recorder, tmp_path, [STEPS[0], STEPS[2]], check)
    assert error.value.name == "record_failed"


LAYOUT_PAGE = """<!doctype html><style>
body { margin: 0; font: 16px sans-serif; height: 3000px; width: 1280px }
div, button, nav { position: absolute; margin: 0; padding: 0; border: 0; width: 100px; height: 40px }
a { font: 16px/20px monospace }
</style><body id="body">
<nav id="bar" style="position: fixed; top: 0; left: 0; width: 1280px; height: 60px">bar</nav>
<div id="under" style="top: 10px; z-index: -1">under the bar</div>
<button id="seen" style="top: 100px">Seen</button>
<div id="low" style="top: 1440px; cursor: pointer">below a window's upper edge</div>
<div id="hidden" style="top: 200px; visibility: hidden">hidden</div>
<div id="off" style="left: -500px">off the page</div>
<div id="none" style="display: none">none</div>
<div style="top: 300px; width: 60px"><a id="link" href="#x">wrapped over lines</a></div>
<section></section>
<script>
document.querySelector('section').attachShadow({mode: 'open'}).innerHTML = `<i id="shadow" style="position: absolute; left: 0; top: 500px">in a shadow</i>`;
let n = 0;
addEventListener('scroll', () => { document.title = 'scrolled ' + ++n; document.querySelector('#seen').title = 'told' });
</script>"""


@pytest.fixture(scope="module")
def laid_out(recorder, tmp_path_factory) -> Step:
    script = write_script(tmp_path_factory.mktemp("layout"), [{"op": "CLICK", "selector": "#seen"}], LAYOUT_PAGE)
    records = recorder.record(load_script(script)[0])
    folder = tmp_path_factory.mktemp("laid_out")
    write_hub_parquet(map(to_row, records), folder / "data" / "test_website-00000-of-00001.parquet")
    (step,) = load_steps(folder, "cross_website", raw_html=True)
    return step


def read(step: Step, kind: type[T]) -> T:
    assert step.recorded is not None
    found = step.recorded.read(kind)
    assert found is not None
    return found


def layout_of(step: Step, name: str) -> ElementLayout | None:
    """The layout of the element with this id in the original page."""
    (node_id,) = re.findall(rf'<\w+ id="{name}"[^>]* backend_node_id="(\d+)"', step.raw_html or "")
    return next((one for one in read(step, Layout).elements if one.id == node_id), None)


@pytest.mark.parametrize(
    ("name", "corners"),
    [
        ("seen", [(0, 100)]),
        ("off", [(-500, 0)]),
        ("link", [(0, 300), (0, 320), (0, 340)]),
        ("shadow", [(0, 500)]),
    ],
)
def test_each_rectangle_of_an_element_is_written(laid_out, name: str, corners: list[tuple[int, int]]) -> None:
    found = layout_of(laid_out, name)
    assert found is not None
    assert [(rect.box.x, rect.box.y) for rect in found.rects] == corners


def test_an_element_without_a_rectangle_is_left_out(laid_out) -> None:
    assert layout_of(laid_out, "none") is None


@pytest.mark.parametrize(
    ("name", "on_top"),
    [("seen", "seen"), ("under", "bar"), ("low", "low"), ("hidden", "body"), ("shadow", "shadow"), ("off", None)],
)
def test_the_element_on_top_of_a_rectangle_is_named(laid_out, name: str, on_top: str | None) -> None:
    own, top = layout_of(laid_out, name), layout_of(laid_out, on_top) if on_top else None
    assert own is not None
    assert [rect.on_top for rect in own.rects] == [top and top.id]


def test_cursor_and_visibility_are_as_computed(laid_out) -> None:
    found = {mark: layout_of(laid_out, mark) for mark in ("seen", "low", "hidden")}
    assert {mark: (one.cursor, one.visibility) for mark, one in found.items() if one} == {
        "seen": ("default", "visible"),
        "low": ("pointer", "visible"),
        "hidden": ("auto", "hidden"),
    }


def test_a_page_is_not_told_that_it_was_scrolled_to_be_measured(laid_out) -> None:
    assert "told" not in read(laid_out, FinalState).cleaned_html


def test_the_accessibility_tree_has_the_rows_ids_and_no_ignored_nodes(steps) -> None:
    nodes = read(steps[1], AccessibilityTree).nodes
    field = next(node for node in nodes if node.role == "textbox")
    assert (field.name, field.value, field.properties["focused"]) == ("Zip code", "10203", True)
    assert f'<input backend_node_id="{field.id}"' in steps[1].cleaned_html
    assert (nodes[0].role, nodes[0].depth) == ("RootWebArea", 0)
    assert {node.role for node in nodes} & {"none", "InlineTextBox"} == set()
    assert next(node for node in nodes if node.role == "link").properties["url"] == "/index.html#x"


def test_an_address_has_no_port_of_the_recorder(steps) -> None:
    assert read(steps[0], PageState) == PageState("/index.html", (1280, 720), (0, 0))
    assert read(steps[3], PageState).address == "/index.html#x"


def test_the_page_after_the_last_action_is_in_the_last_row_alone(recorder, tmp_path) -> None:
    task = {"task": "Try it", "split": "cross_website", "steps": STEPS[:2], "answer": "10203"}
    records = recorder.record(load_script(write_script(tmp_path, [], tasks=[task]))[0])
    write_hub_parquet(map(to_row, records), tmp_path / "data" / "test_website-00000-of-00001.parquet")
    first, last = load_steps(tmp_path, "cross_website")
    assert (first.recorded.read(FinalState), first.recorded.final_screenshot) == (None, None)
    final = read(last, FinalState)
    assert (final.address, final.answer, 'input_value="10203"' in final.cleaned_html) == ("/index.html", "10203", True)
    assert Image.open(io.BytesIO(last.recorded.final_screenshot.read())).size == (1280, 1500)
    ids = re.findall(r'<h1 backend_node_id="(\d+)"', last.cleaned_html + final.cleaned_html)
    assert len(set(ids)) == 1


def test_the_hubs_columns_are_unchanged_for_datasets(records, tmp_path) -> None:
    import datasets

    path = tmp_path / "test_website-00000-of-00001.parquet"
    write_hub_parquet(map(to_row, records), path)
    write_parquet(synthetic_rows(1, 1, 3, seed=1), tmp_path / "hub.parquet")
    ours, hub = (
        datasets.load_dataset("parquet", data_files=str(one), split="train", cache_dir=str(tmp_path / "cache")).features
        for one in (path, tmp_path / "hub.parquet")
    )
    assert {name: ours[name] for name in hub} == dict(hub)
    assert set(ours) - set(hub) == set(RECORDED_COLUMNS)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"op": "CLICK", "selector": ".s"}], "expected one visible element for .s, found 2"),
        ([{"op": "SELECT", "selector": "select", "value": "Huge"}], "step 1 of 1 of task"),
        ([{"op": "CLICK", "selector": "h1"}, {"op": "CLICK", "selector": ".s"}], "step 2 of 2 of task"),
    ],
)
def test_a_step_that_cannot_be_carried_out_is_named(recorder, tmp_path, steps, message) -> None:
    with pytest.raises(RecordFailed, match=message) as error:
        recorder.record(load_script(write_script(tmp_path, steps))[0])
    assert [step.operation.op for step in error.value.steps] == ["CLICK"] * (len(steps) - 1)


def test_a_missing_browser_says_how_to_install_one() -> None:
    with pytest.raises(InputError, match=r"no browser found at no-such-browser; .*apt-get install chromium"):
        Recorder(RecordOptions(browser="no-such-browser"))
