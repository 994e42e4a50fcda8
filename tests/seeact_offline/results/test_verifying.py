"""A run's files checked against each other, the data and the stored replies: an untouched run is verified, an edited one is not."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError
from seeact_offline.results.recompute import rescore
from seeact_offline.results.verifying import verify, verify_files
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.run import Run
from seeact_offline.scoring.human_causes import answer_digest
from tests.pages import synthetic_rows, write_parquet

SMALL = {"dataset": "sample", "split": "cross_task", "limit": 1}
HUGE = 10**400
Row = dict[str, Any]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One task of the sample, by textual choices; some of its steps fail."""
    return evaluate(**SMALL, out=tmp_path_factory.mktemp("asked") / "run").path


@pytest.fixture
def run(asked: Path, tmp_path: Path) -> Path:
    """A copy to be edited."""
    return Path(shutil.copytree(asked, tmp_path / "run"))


def edit_json(path: Path, change: Callable[[Row], object]) -> None:
    row = json.loads(path.read_text("utf-8"))
    change(row)
    path.write_text(json.dumps(row, indent=2) + "\n", "utf-8")


def edit_line(path: Path, change: Callable[[Row], object], place: int = 0) -> None:
    lines = path.read_text("utf-8").splitlines()
    row = json.loads(lines[place])
    change(row)
    path.write_text("".join(f"{line}\n" for line in [*lines[:place], json.dumps(row), *lines[place + 1 :]]), "utf-8")


def drop_line(path: Path) -> None:
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")


@pytest.mark.slow
def test_an_untouched_run_is_verified_with_its_data(asked: Path) -> None:
    found = verify(asked, dataset="sample")
    assert (found.status, found.differences, found.not_proved) == ("verified", (), ())


def test_without_its_pages_it_is_verified_in_part(asked: Path) -> None:
    found = verify(asked)
    assert (found.status, found.differences) == ("verified in part", ())
    assert "--dataset" in found.not_proved[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"agent": "webvoyager", "model": "builtin/oracle"},
        {"agent": "visualwebarena", "model": "builtin/oracle"},
        {"agent": "uitars", "model": "builtin/oracle"},
        {"grounding": "annotation", "model": "builtin/oracle"},
        {"grounding": "attributes"},
        {"grounding": "pixel", "model": "builtin/oracle"},
        {"grounding": "mindact"},
        {"ungrounded": True},
        {"batching": "shared-turn1"},
        {"merge": "first", "repeats": 1},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_so_is_one_of_any_strategy(options: dict[str, Any], tmp_path: Path) -> None:
    done = evaluate(**SMALL, **options, out=tmp_path / "run")
    found = verify(done.path, dataset="sample")
    assert (found.status, found.differences, found.not_proved) == ("verified", (), ())
    assert verify(done.path).differences == ()


@pytest.mark.slow
def test_so_is_one_that_was_scored_under_another_protocol(run: Path) -> None:
    rescore(run, protocol="seeclick")
    assert verify(run, dataset="sample").status == "verified"


def test_so_is_one_of_which_steps_are_missing_as_it_says(run: Path) -> None:
    drop_line(run / "predictions.jsonl")
    rescore(run)
    assert verify(run, dataset="sample").status == "verified"


EDITS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a figure": (
        "results.json: step_success_rate.macro is 0.695",
        lambda run: edit_json(run / "results.json", lambda row: row["step_success_rate"].update(macro=0.695)),
    ),
    "a count of failures": (
        "results.json: n_not_run is 1",
        lambda run: edit_json(run / "results.json", lambda row: row.update(n_not_run=1)),
    ),
    "an entry that scoring does not give": (
        "results.json: bonus is 1, which scoring again does not give",
        lambda run: edit_json(run / "results.json", lambda row: row.update(bonus=1)),
    ),
    "the model's name": (
        "results.json: model is",
        lambda run: edit_json(run / "results.json", lambda row: row.update(model="openai/gpt-9")),
    ),
    "the protocol left out": (
        "results.json: protocol is missing",
        lambda run: edit_json(run / "results.json", lambda row: row.pop("protocol")),
    ),
    "a protocol that is no text": (
        "results.json: protocol is nan",
        lambda run: edit_json(run / "results.json", lambda row: row.update(protocol=float("nan"))),
    ),
    "a protocol that neither the package nor the manifest names": (
        "results.json: protocol is 'mine.py:x'",
        lambda run: edit_json(run / "results.json", lambda row: row.update(protocol="mine.py:x")),
    ),
    "the same of a run whose own protocol is not at hand": (
        "results.json: protocol is 'mine.py:y', in manifest.json 'mine.py:x'",
        lambda run: [
            edit_json(run / "manifest.json", lambda row: row["settings"].update(protocol="mine.py:x")),
            edit_json(run / "results.json", lambda row: row.update(protocol="mine.py:y")),
        ],
    ),
    "a figure too large for any number": (
        "results.json: step_success_rate.macro is 1000",
        lambda run: edit_json(run / "results.json", lambda row: row["step_success_rate"].update(macro=HUGE)),
    ),
    "a bound too large for any number": (
        "results.json: task_success_ci95.offline1[0] is 1000",
        lambda run: edit_json(
            run / "results.json", lambda row: row["task_success_ci95"]["offline1"].__setitem__(0, HUGE)
        ),
    ),
    "a step's score too large for any number": (
        "steps.jsonl: line 1: element is 1000",
        lambda run: edit_line(run / "steps.jsonl", lambda row: row.update(element=HUGE)),
    ),
    "a seed too large for any number": (
        "manifest.json: settings.seed is 1000",
        lambda run: edit_json(run / "manifest.json", lambda row: row["settings"].update(seed=HUGE)),
    ),
    "a size too large for any number": (
        "targets.jsonl: ",
        lambda run: edit_line(run / "targets.jsonl", lambda row: row.update(n_actions=HUGE)),
    ),
    "a box too large for any number": (
        "targets.jsonl",
        lambda run: edit_line(run / "targets.jsonl", lambda row: row.update(boxes=[[0, 0, HUGE, 1]])),
    ),
    "a scored step": (
        "steps.jsonl: line 1: outcome is",
        lambda run: edit_line(run / "steps.jsonl", lambda row: row.update(outcome="x")),
    ),
    "the report": (
        "report.md: line",
        lambda run: (run / "report.md").write_text((run / "report.md").read_text("utf-8").replace("macro", "micro")),
    ),
    "a right answer": (
        "in the data",
        lambda run: edit_line(run / "targets.jsonl", lambda row: row.update(value="x")),
    ),
    "the right elements": (
        "positives is",
        lambda run: edit_line(run / "targets.jsonl", lambda row: row.update(positives=["1"])),
    ),
    "a step of another data set": (
        "is no step of the data",
        lambda run: [
            edit_line(run / name, lambda row: row.update(action_uid="x"))
            for name in ("targets.jsonl", "predictions.jsonl")
        ],
    ),
    "lost predictions": ("n_not_run", lambda run: drop_line(run / "predictions.jsonl")),
    "lost steps": (
        "1 step of the data missing",
        lambda run: [drop_line(run / name) for name in ("targets.jsonl", "predictions.jsonl")],
    ),
    "an answer": (
        "its replies say",
        lambda run: edit_line(run / "predictions.jsonl", lambda row: row.update(op="SELECT", value="x")),
    ),
    "a group's answer": (
        "group 0: op is 'SELECT', its replies say",
        lambda run: edit_line(run / "predictions.jsonl", lambda row: row["groups"][0].update(op="SELECT")),
    ),
    "a reply": (
        "its replies say",
        lambda run: edit_line(
            run / "predictions.jsonl",
            lambda row: row["groups"][0]["replies"].__setitem__(-1, "ELEMENT: B\nACTION: SELECT\nVALUE: x"),
        ),
    ),
    "a step twice": (
        "predictions.jsonl: 1 line of steps that another line is of",
        lambda run: (run / "predictions.jsonl").write_text(
            (text := (run / "predictions.jsonl").read_text("utf-8")) + text.splitlines(keepends=True)[0]
        ),
    ),
    "a lost right answer": ("lacks the right answer of 1 predictions", lambda run: drop_line(run / "targets.jsonl")),
    "a damaged line": (
        "predictions.jsonl:",
        lambda run: (run / "predictions.jsonl").write_text("{}\n" + (run / "predictions.jsonl").read_text("utf-8")),
    ),
    "the data's fingerprint": (
        "manifest.json: settings.dataset_fingerprint",
        lambda run: edit_json(
            run / "manifest.json", lambda row: row["settings"].update(dataset_fingerprint="0123456789abcdef")
        ),
    ),
}


@pytest.mark.parametrize(("named", "edit"), EDITS.values(), ids=EDITS.keys())
def test_an_edited_run_is_not_verified_and_the_edit_is_named(
    run: Path, named: str, edit: Callable[[Path], object]
) -> None:
    edit(run)
    found = verify(run)
    assert found.status == "not verified"
    assert any(named in one for one in found.differences), found.differences


def test_what_a_manifest_does_not_say_of_how_a_run_was_made_has_its_default(run: Path) -> None:
    edit_json(run / "manifest.json", lambda row: [row["made"].pop(name) for name in ("base_url", "temperature")])
    assert verify(run).differences == ()
    rescore(run)
    assert "| temperature" in (run / "report.md").read_text("utf-8")


@pytest.mark.parametrize("named", ["a right answer", "an answer", "lost steps"])
def test_scoring_an_edited_run_again_does_not_hide_it(run: Path, named: str) -> None:
    EDITS[named][1](run)
    rescore(run)
    assert verify(run).status == "not verified"


PAGES: dict[str, tuple[str, Callable[[Row], object]]] = {
    "kin": ("targets.jsonl", lambda row: row["kin"].update(same_text=["1"])),
    "size": ("targets.jsonl", lambda row: row.update(picture_size=[1, 1])),
    "text": ("targets.jsonl", lambda row: row.update(element_text="x")),
    "candidates": ("targets.jsonl", lambda row: row.update(n_candidates=1)),
    "offered": ("predictions.jsonl", lambda row: row["groups"][0]["offered"].reverse()),
    "ranks": ("predictions.jsonl", lambda row: row["ranked"].reverse()),
    "reachable": ("predictions.jsonl", lambda row: row.update(reachable=not row["reachable"])),
    "notes": ("predictions.jsonl", lambda row: row.update(notes={"group_off_picture": 3})),
}


@pytest.mark.slow
@pytest.mark.parametrize(("file", "change"), PAGES.values(), ids=PAGES.keys())
def test_what_pages_say_is_checked_with_the_data_named(run: Path, file: str, change: Callable[[Row], object]) -> None:
    edit_line(run / file, change)
    rescore(run)
    found = verify(run, dataset="sample")
    assert any(one.startswith(file) for one in found.differences), found.differences


@pytest.mark.slow
def test_an_agents_answer_is_read_again_on_its_page(tmp_path: Path) -> None:
    done = evaluate(**SMALL, agent="webvoyager", model="builtin/oracle", out=tmp_path / "run").path
    edit_line(done / "predictions.jsonl", lambda row: row.update(element_id="1", op="SELECT"))
    rescore(done)
    assert verify(done).status == "verified in part"
    assert any("its replies say" in one for one in verify(done, dataset="sample").differences)


def test_data_that_are_not_at_hand_are_said_to_prove_nothing(run: Path) -> None:
    edit_json(run / "manifest.json", lambda row: row["settings"].update(dataset="/nowhere"))
    rescore(run)
    found = verify(run)
    assert (found.status, found.differences) == ("verified in part", ())
    assert "/nowhere is not on this machine" in found.not_proved[0]


def test_other_data_that_are_named_are_refused(run: Path, tmp_path: Path) -> None:
    write_parquet(synthetic_rows(1, 1, 4, seed=1), tmp_path / "data" / "test_task-00000-of-00001.parquet")
    with pytest.raises(InputError, match=r"has other rows than .* was run on; name its data with `dataset`"):
        verify(run, dataset=tmp_path)


@pytest.mark.slow
def test_causes_of_a_person_are_proved_by_their_file_alone(run: Path, tmp_path: Path) -> None:
    lost = {row["action_uid"] for row in Run(run).to_pandas().to_dict("records") if row["outcome"] != "success"}
    prediction = next(one for one in Run(run).predictions() if one.key.action_uid in lost)
    causes = tmp_path / "causes.jsonl"
    row = {**prediction.key._asdict(), "answer_sha256": answer_digest(prediction), "cause": "wrong_annotation"}
    causes.write_text(json.dumps(row) + "\n")
    rescore(run, causes=causes)
    found = verify(run, dataset="sample")
    assert (found.status, found.differences) == ("verified in part", ())
    assert "--causes" in found.not_proved[0]
    assert verify(run, dataset="sample", causes=causes).status == "verified"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_large_run_takes_seconds(run: Path, tmp_path: Path) -> None:
    """3,000 steps, and time in proportion to them."""

    def times(n: int) -> float:
        folder = Path(shutil.copytree(run, tmp_path / str(n)))
        for name in ("predictions.jsonl", "targets.jsonl"):
            rows = [json.loads(line) for line in (run / name).read_text("utf-8").splitlines()]
            lines = [json.dumps({**row, "annotation_id": f"{k}"}) for k in range(n // len(rows)) for row in rows]
            (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        rescore(folder)
        began = time.process_time()
        assert verify_files(folder, None, "none are named").differences == ()
        return time.process_time() - began

    assert times(3000) < 10
