"""Trajectories come back from their folder as they were written; a hostile folder gives no file from outside."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.records import Fault, InputError, RowError
from seeact_offline.trajectories import Trajectory, TrajectoryStep, Verdict, read_trajectories, write_trajectories

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
FULL = Trajectory(
    id="a/1",
    task_id="a",
    task="Find a \u2028 flight \ud800",
    steps=(
        TrajectoryStep("Click [3]", "Thought.", "http://a.test/", StoredScreenshot(PNG)),
        TrajectoryStep("", screenshot=StoredScreenshot(PNG)),
        TrajectoryStep("", screenshot=None),
        TrajectoryStep("Wait", reply="Action:  Wait"),
    ),
    answer="",
    verdicts=(Verdict("annotator-1", True, "person", "seen"), Verdict("webvoyager", None, "model")),
    agent="gpt",
    website="a",
    constructed="cut",
    faults=(Fault("bad_trajectory", "why"),),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def test_what_is_written_is_read(folder: Path) -> None:
    written = [FULL, Trajectory("b/1", "b", "")]
    assert write_trajectories(folder, iter(written)) == 2
    read = list(read_trajectories(folder))
    assert read == written
    assert [shot.read() for shot in read[0].screenshots] == [PNG, PNG]
    assert len(list((folder / "pictures").iterdir())) == 1


def test_picture_that_cannot_be_read_is_a_fault(folder: Path) -> None:
    bad = replace(FULL, faults=(), steps=(TrajectoryStep("a", screenshot=StoredScreenshot(None, "no.png", folder)),))
    write_trajectories(folder, [bad])
    (read,) = read_trajectories(folder)
    assert [fault.name for fault in read.faults] == ["bad_screenshot"]
    assert read.screenshots == ()


@pytest.mark.parametrize("name", ["../secret.png", "/etc/hostname", "pictures/link.png", "pictures", "a\0b"])
def test_picture_outside_of_the_folder_is_refused(folder: Path, name: str) -> None:
    write_trajectories(folder, [])
    (folder.parent / "secret.png").write_bytes(PNG)
    (folder / "pictures/link.png").symlink_to(folder.parent / "secret.png")
    step = TrajectoryStep("a", screenshot=StoredScreenshot(PNG))
    write_trajectories(folder, [replace(FULL, task="t", steps=(step,))])
    file = folder / "trajectories.jsonl"
    stored = next(path.name for path in (folder / "pictures").iterdir() if path.name != "link.png")
    escaped = name.replace("\0", "\\u0000")
    file.write_text(file.read_text().replace(f"pictures/{stored}", escaped))
    (read,) = read_trajectories(folder)
    with pytest.raises(RowError, match="bad_screenshot"):
        read.screenshots[0].read()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("[1]\n", "expected"),
        ('{"id": "a"}\n', "task_id"),
        ('{"id": "a", "task_id": "a", "task": ""}\n' * 2, "every id once"),
        ('{"id": "a", "task_id": "a", "task": "", "schema": 2}\n', "line 1"),
    ],
)
def test_line_that_is_no_trajectory_is_named(folder: Path, lines: str, message: str) -> None:
    folder.mkdir()
    (folder / "trajectories.jsonl").write_text(lines)
    with pytest.raises(InputError, match=message):
        list(read_trajectories(folder))


def test_a_last_line_without_a_line_feed_counts(tmp_path: Path) -> None:
    """It used to be taken for a torn one, and the last trajectory was lost without a word."""
    rows = [json.dumps({"id": name, "task_id": name, "task": "Buy"}) for name in "ab"]
    (tmp_path / "trajectories.jsonl").write_text("\n\n".join(rows), "utf-8-sig")
    assert [one.id for one in read_trajectories(tmp_path)] == ["a", "b"]
