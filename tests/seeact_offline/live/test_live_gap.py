"""Table 4 of episodes beside runs of `eval`: whose figures stand in a pair, over which tasks, and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.live.live_gap import NO_REPRODUCTION, UNAIDED
from seeact_offline.records import InputError
from seeact_offline.scoring.inference import mcnemar_p, sign_flip_p
from seeact_offline.scoring.paper_tables import paper_table
from seeact_offline.tables import build_table
from seeact_offline.tables.document import ENDINGS
from tests.finished_runs import make_run
from tests.seeact_offline.conftest import Cli

AGENT, MODEL = "webvoyager", "openai/m"
Step = tuple[bool, str, str]
"""Success, operation and outcome."""
RIGHT: Step = (True, "CLICK", "success")
MISSED: Step = (False, "TYPE", "ranker_miss")
WRONG: Step = (False, "SELECT", "wrong_value")
TASKS: Mapping[str, Sequence[Step]] = {
    "whole": [RIGHT, RIGHT], "one off": [RIGHT, WRONG], "first off": [MISSED, WRONG], "all off": [WRONG, MISSED, MISSED],
    "never tried": [RIGHT],
}  # fmt: skip
EPISODES: Mapping[str, Mapping[str, Any]] = {
    "whole": {"done": False, "reached": True}, "one off": {"done": True, "reached": True},
    "first off": {"done": True, "reached": True}, "all off": {"done": False, "reached": False},
    "failed": {"done": None, "reached": None, "end": "error"}, "no rows": {"done": True, "reached": True},
}  # fmt: skip


def offline(folder: Path, tasks: Mapping[str, Sequence[Step]] = TASKS, split: str = "cross_task", **more: Any) -> Path:
    run = make_run(folder, grounding=AGENT, model=MODEL, split=split, **more)
    lines = [
        {
            "annotation_id": task, "action_uid": f"{task} {n}", "outcome": outcome, "operation_f1": 1.0, "element": 1.0, "success": float(right),
            "n_before": n, "n_actions": len(steps), "target": {"op": op},
        }
        for task, steps in tasks.items()
        for n, (right, op, outcome) in enumerate(steps)
    ]  # fmt: skip
    (run / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run


def live(folder: Path, episodes: Mapping[str, Mapping[str, Any]] = EPISODES, **settings: Any) -> Path:
    folder.mkdir(parents=True)
    named = {"agent": AGENT, "model": MODEL, "split": "all", "places": "sites", **settings}
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "identity": {}, "settings": named}))
    (folder / "results.json").write_text("{}")
    facts = {"task": "t", "website": "w", "domain": "d", "end": "stopped", "n_steps": 1}
    lines = [{"annotation_id": task, **facts, **one} for task, one in episodes.items()]
    (folder / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def values(paths: Sequence[Path], base: Path) -> dict[str, str]:
    """The line of the CSV of one pair."""
    (line,) = csv.DictReader(build_table(4, paths, base).text("csv").splitlines())
    return line


def test_every_figure_is_over_the_tasks_that_both_have(tmp_path: Path) -> None:
    line = values([live(tmp_path / "live"), offline(tmp_path / "off")], tmp_path)
    # four tasks: whole, one off, first off, all off
    expected = {
        "n_tasks": "4", "n_without_an_episode": "1", "n_without_recorded_steps": "2", "n_without_a_verdict": "0", "offline0": "0.25",
        "offline1": "0.5", "live": "0.5", "reached": "0.75", "live_not_offline0": "2", "offline0_not_live": "1", "p_offline0": "1.0",
        "live_not_offline1": "1", "offline1_not_live": "1",
    }  # fmt: skip
    assert {name: line[name] for name in expected} == expected


@given(st.lists(st.tuples(st.lists(st.booleans(), min_size=1, max_size=4), st.booleans()), min_size=1, max_size=12))
def test_a_pair_counts_as_slow_counting_does(tasks: list[tuple[list[bool], bool]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        steps = {f"t{n}": [RIGHT if right else WRONG for right in rights] for n, (rights, _) in enumerate(tasks)}
        ends = {f"t{n}": {"done": done, "reached": done} for n, (_, done) in enumerate(tasks)}
        line = values([live(folder / "live", ends), offline(folder / "off", steps)], folder)
    for allowed, figure in enumerate(("offline0", "offline1")):
        offline_done = [rights.count(False) <= allowed for rights, _ in tasks]
        live_done = [done for _, done in tasks]
        pairs = list(zip(live_done, offline_done, strict=True))
        assert float(line[figure]) == pytest.approx(sum(offline_done) / len(tasks))
        assert float(line["live"]) == pytest.approx(sum(live_done) / len(tasks))
        assert int(line[f"live_not_{figure}"]) == pairs.count((True, False))
        assert int(line[f"{figure}_not_live"]) == pairs.count((False, True))
        # the exact test of random signs, with all patterns of signs tried
        differences = np.array([float(a) - float(b) for a, b in pairs])
        assert float(line[f"p_{figure}"]) == pytest.approx(sign_flip_p(differences))


@pytest.mark.parametrize(("counts", "p"), [((0, 0), 1.0), ((1, 1), 1.0), ((0, 6), 2 / 64), ((2, 8), 112 / 1024)])
def test_mcnemars_p_is_that_of_the_binomial(counts: tuple[int, int], p: float) -> None:
    assert mcnemar_p(*counts) == mcnemar_p(*counts[::-1]) == pytest.approx(p)


def test_what_was_solved_live_and_lost_offline_is_told_by_its_first_failing_step(tmp_path: Path) -> None:
    losses = build_table(4, [live(tmp_path / "live"), offline(tmp_path / "off")], tmp_path).tables[2]
    assert [row[1:4] for row in losses.rows] == [("SELECT", "wrong_value", 1), ("TYPE", "ranker_miss", 1)]


def test_a_success_with_help_counts_as_none_and_a_note_says_so(tmp_path: Path) -> None:
    helped = {task: {**one, "n_helped": int(task == "one off")} for task, one in EPISODES.items()}
    paths = [live(tmp_path / "live", helped), offline(tmp_path / "off")]
    assert (values(paths, tmp_path)["live"], values(paths, tmp_path)["reached"]) == ("0.25", "0.5")
    assert UNAIDED in build_table(4, paths, tmp_path).tables[0].notes


def test_runs_of_several_splits_are_one_pair_and_folders_of_runs_are_paired_by_agent_and_model(tmp_path: Path) -> None:
    for split, part in (("cross_task", {"whole", "one off"}), ("cross_domain", {"first off"})):
        offline(tmp_path / "runs" / split, {task: TASKS[task] for task in part}, split)
    live(tmp_path / "runs" / "live")
    live(tmp_path / "runs" / "other", {"t1": {"end": "limit", "done": False, "reached": False}}, model="openai/n")
    make_run(tmp_path / "runs" / "off other", grounding=AGENT, model="openai/n")
    page = build_table(4, [tmp_path / "runs"], tmp_path).tables[0]
    assert [(row[0], row[5]) for row in page.rows] == [(f"{AGENT}, {MODEL}", 3), (f"{AGENT}, openai/n", 1)]


def test_the_papers_rows_stand_in_a_table_of_their_own_and_never_below_the_samples(tmp_path: Path) -> None:
    episodes, names = live(tmp_path / "live"), {row["method"] for row in paper_table(4)["rows"]}
    document = build_table(4, [episodes, offline(tmp_path / "off")], tmp_path)
    *own, papers = document.tables
    assert {row[0] for row in papers.rows} == names
    assert not names & {row[0] for table in own for row in table.rows}
    assert NO_REPRODUCTION in own[0].notes
    sample = build_table(4, [episodes, offline(tmp_path / "sample", settings={"dataset": "sample"})], tmp_path)
    for text in (document.text("csv"), document.text("latex"), sample.text("markdown"), sample.text("html")):
        assert not any(name in text for name in names)


def test_a_table_in_any_format_is_checked(tmp_path: Path, cli: Cli) -> None:
    paths = [live(tmp_path / "live"), offline(tmp_path / "off")]
    assert cli("tables", "--table", "4", *paths, "--out", tmp_path / "t").status == 0
    for form, ending in ENDINGS.items():
        path = tmp_path / "t" / f"table4{ending}"
        assert cli("tables", "--check", path).status == 0, form
        old, new = ("0.75", "0.5") if form == "csv" else ("75.0", "50.0")
        path.write_text(path.read_text().replace(old, new))
        assert cli("tables", "--check", path).status == 1, form


def test_what_has_no_partner_is_refused_in_one_sentence(tmp_path: Path) -> None:
    episodes, run = live(tmp_path / "live"), offline(tmp_path / "off")
    same = offline(tmp_path / "same", settings={"seed": 1})
    other = live(tmp_path / "other", model="openai/n")
    far = offline(tmp_path / "far", {"elsewhere": [RIGHT]})
    refused = {
        "only episodes: live": [episodes],
        "other is of webvoyager, openai/n, and no run of eval is": [other, run],
        "live and far have no task with a verdict in common": [episodes, far],
        "off and same are both of webvoyager, openai/m on cross_task; name one": [episodes, run, same],
    }
    for words, paths in refused.items():
        with pytest.raises(InputError, match=words):
            build_table(4, paths, tmp_path)
    with pytest.raises(InputError, match="stand in table 4 alone"):
        build_table(2, [episodes], tmp_path)
