"""Files of judgements and labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeact_offline.records import InputError
from seeact_offline.trajectories import Trajectory, Verdict, write_trajectories
from seeact_offline.trajectories.judgements import Judgement, read_judgements


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.jsonl", '{"trajectory": "x", "verdict": true}\n', [("x", True, "")]),
        ("a.jsonl", '{"trajectory": 3, "label": "Unsuccessful", "annotator": "p"}\n', [("3", False, "p")]),
        ("a.csv", "id,success,annotator_id,task_id\nx,1,p,t\ny,no,,t\nz,,p,t\n", [("x", True, "p"), ("y", False, ""), ("z", None, "p")]),
        ("a.csv", 'trajectory,verdict,reply\nx,true,"two\nlines"\n', [("x", True, "")]),
        # the last one counts
        ("a.csv", "trajectory,label\nx,1\ny,1\nx,0\n", [("y", True, ""), ("x", False, "")]),
        # a number of the row is no trajectory
        ("a.csv", "id,trajectory_id,label\n7,x,1\n", [("x", True, "")]),
        ("a.jsonl", '{"trajectory": "x", "id": 7, "label": true}\n', [("x", True, "")]),
        # as tables are often written: blanks, and whole numbers of a column with gaps
        ("a.csv", "trajectory, label, repeat, calls\n x , 1 ,2.0,3\n", [("x", True, "")]),
    ],
)  # fmt: skip
def test_verdicts_are_read_from_jsonl_and_csv(tmp_path: Path, name: str, text: str, wanted: list[object]) -> None:
    (tmp_path / name).write_text(text)
    assert [(one.trajectory, one.verdict, one.judge) for one in read_judgements(tmp_path / name, "labels")] == wanted


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("a.jsonl", '{"trajectory": "x"}\n', "verdict.* in line 1"),
        ("a.jsonl", '{"trajectory": "x", "verdict": true}\n{"trajectory": "y", "verdict": "maybe"}\n', "'maybe' in line 2"),
        ("a.jsonl", "[1]\n", "line 1"),
        ("a.jsonl", '{"trajectory": "", "verdict": true}\n', "id of a trajectory"),
        ("a.jsonl", '{"trajectory": "x", "verdict": true, "cost_usd": -1}\n', "cost_usd to be a number from 0"),
        ("a.jsonl", '{"trajectory": "x", "verdict": true, "cost_usd": 1e308}\n', "cost_usd to be a number from 0"),
        ("a.jsonl", '{"trajectory": "x", "verdict": true, "calls": -1}\n', "calls to be a number from 0"),
        ("a.csv", "trajectory,label,prompt_tokens\nx,1,-5\n", "prompt_tokens to be a number from 0 .* in line 2"),
        ("a.csv", "trajectory,score\nx,1\n", "the columns trajectory and verdict"),
        ("a.csv", "trajectory,label,repeat\nx,1,two\n", "repeat to be a number, got 'two' in line 2"),
        ("a.csv", "trajectory,label\n", "at least one verdict"),
        # a judge's verdict beside a person's label
        ("a.csv", "trajectory,verdict,label\nx,1,0\n", "one column of verdicts, got verdict and label"),
        ("a.jsonl", '{"trajectory": "x", "verdict": true, "label": false}\n', "verdict True and label False in line 1"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused_by_its_line(tmp_path: Path, name: str, text: str, wanted: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=wanted):
        read_judgements(tmp_path / name, "labels")


def test_a_line_is_read_as_it_was_written(tmp_path: Path) -> None:
    one = Judgement(
        trajectory="x", verdict=None, judge="strict", k="3", outcome="no_verdict", reply="\ud800 <b>", cost_usd=0.1
    )
    (tmp_path / "verdicts.jsonl").write_text(one.line + "\n")
    assert read_judgements(tmp_path, "verdicts") == [one]


def test_trajectories_hold_verdicts_of_models_and_labels_of_others(tmp_path: Path) -> None:
    said = (Verdict("ann", True, "person"), Verdict("aer", False, "model"))
    write_trajectories(tmp_path, [Trajectory("x", "t", "Buy", verdicts=said, agent="a")])
    (label,), (verdict,) = read_judgements(tmp_path, "labels"), read_judgements(tmp_path, "verdicts")
    assert (label.judge, label.verdict, label.source, label.agent, label.task) == ("ann", True, "person", "a", "t")
    assert (verdict.judge, verdict.verdict) == ("aer", False)
