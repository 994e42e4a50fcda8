"""Plays that must not pass, on the bundled sites and on a page of one's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.recorder.browser import NAMES
from seeact_offline.recorder.proving import (
    EXTRA,
    FALSE_VALUE,
    LEFT_OUT,
    PLAY,
    REPEATED,
    RIGHT,
    STOPPED,
    UNDONE,
    Prover,
    false_text,
    harm_of,
    mutants,
)
from seeact_offline.recorder.sample_building import OPTIONS, site_tasks
from seeact_offline.recorder.script import load_script
from tests.seeact_offline.conftest import Cli

needs_browser = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, NAMES)), reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
    ),
    pytest.mark.timeout(240),
]
PAGE = """<!doctype html><title>Shop</title><input id=name><select id=size><option>Small</option><option>Large</option></select>
<button id=tea onclick="n++; draw()">Tea</button><button id=buy onclick="bought = true; draw()">Buy</button><p id=out></p>
<script>let n = 0, bought = false;
const draw = () => { out.textContent = bought ? 'Bought' : n; };
document.getElementById('name').onchange = (e) => { document.title = e.target.value; };</script>"""
STEPS = [
    {"op": "TYPE", "selector": "#name", "value": "Ann"},
    {"op": "SELECT", "selector": "#size", "value": "Large"},
    {"op": "CLICK", "selector": "#tea"},
    {"op": "CLICK", "selector": "#buy"},
]


# Playwright cannot be opened twice in a thread: the command opens it too
@pytest.fixture(scope="class")
def prover() -> Iterator[Prover]:
    with Prover(OPTIONS) as opened:
        yield opened


def write_script(folder: Path, check: list[dict[str, str]]) -> Path:
    (folder / "index.html").write_text(PAGE)
    task = {"task": "Buy large tea as Ann", "check": check, "steps": STEPS}
    path = folder / "tasks.json"
    path.write_text(json.dumps({"website": "tiny", "serve": ".", "start": "index.html", "tasks": [task]}))
    return path


def test_each_act_is_left_out_each_value_falsified_and_an_act_added(tmp_path: Path) -> None:
    (task,) = load_script(write_script(tmp_path, [{"selector": "#out", "text": "Bought"}]))
    kinds = [play.kind for play in mutants(task, task)]
    assert kinds == [LEFT_OUT, FALSE_VALUE, LEFT_OUT, FALSE_VALUE, LEFT_OUT, LEFT_OUT, REPEATED, EXTRA, STOPPED]


def test_a_last_value_is_undone(tmp_path: Path) -> None:
    (task,) = load_script(write_script(tmp_path, [{"selector": "#out", "text": "Bought"}]))
    *_, undone, _ = mutants(replace(task, actions=task.actions[:1]))
    assert (undone.kind, [act.operation.value for act in undone.actions]) == (UNDONE, ["Ann", ""])


@pytest.mark.parametrize(
    ("text", "false"), [("Ann", "Ano"), ("555-0199", "555-0190"), ("Zoë Z.", "Zoë a."), ("!", "!a")]
)
def test_a_false_text_has_the_form_of_the_right_one(text: str, false: str) -> None:
    assert false_text(text) == false


@pytest.mark.parametrize(
    ("site", "words"),
    [
        pytest.param("vellamere", "Put 50 dollars toward the MRI", marks=pytest.mark.nightly),
        pytest.param("marrowick", "Search the library catalog for Salt Orchard", marks=pytest.mark.nightly),
        ("brindlefix", ""),
        pytest.param("rolequay", "Apply to Juniper & Rye", marks=pytest.mark.nightly),
    ],
)
class TestOnTheBundledSites:
    pytestmark = needs_browser

    def test_a_task_passes_as_recorded_and_on_a_detour_and_with_nothing_wrong(
        self, prover: Prover, site: str, words: str
    ) -> None:
        tasks = site_tasks(site)
        task = next(task for task in tasks if task.task.startswith(words))
        outcomes = prover.prove(task, harm_of(task, tasks))
        assert outcomes[0].play.kind == PLAY
        assert [outcome.play for outcome in outcomes if outcome.play.kind in RIGHT and not outcome.passes] == []
        assert [outcome.play for outcome in outcomes if outcome.is_weakness] == []
        missing = [outcome for outcome in outcomes if outcome.play.kind in (LEFT_OUT, FALSE_VALUE, STOPPED)]
        assert len(missing) > len(task.actions)
        assert [outcome.play for outcome in missing if outcome.passes] == []


class TestOfAUser:
    pytestmark = needs_browser

    def test_a_check_of_one_text_is_named_with_the_plays_that_it_passes(self, cli: Cli, tmp_path: Path) -> None:
        script = write_script(tmp_path, [{"selector": "#out", "text": "Bought"}])
        outcome = cli("record", script, "--out", tmp_path / "data", "--prove")
        assert outcome.status == 1
        assert "holds too early: an act left out 1 TYPE #name" in outcome.err
        assert "a false value 2 SELECT #size" in outcome.err
        assert "an act left out 4" not in outcome.err
        assert "1 check that a wrong play passes" in outcome.out

    @pytest.mark.nightly
    def test_a_check_of_all_that_counts_is_not(self, cli: Cli, tmp_path: Path) -> None:
        checks = [{"selector": "#out", "text": "Bought"}, {"selector": "#name", "value": "Ann"}]
        script = write_script(tmp_path, [*checks, {"selector": "#size", "value": "Large"}])
        content = json.loads(script.read_text())
        content["tasks"][0]["steps"].pop(2)
        script.write_text(json.dumps(content))
        outcome = cli("record", script, "--out", tmp_path / "data", "--prove")
        assert (outcome.status, "0 checks that a wrong play passes" in outcome.out) == (0, True)
