"""Notes on disk: nothing that was called saved is lost, and no file is half written, of another kind or in use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seeact_offline.grounding.oracle import read_answers
from seeact_offline.records import InputError, OtherAnswer, Prediction, Reply, StepKey
from seeact_offline.scoring.also_right import OtherAnswerLine, read_also_right
from seeact_offline.scoring.human_causes import AnswerId, HumanCause, answer_digest, read_causes
from seeact_offline.viewer.notes import AlsoRightNotes, CauseNotes

KEY = StepKey("task", "step")
ANSWER = Prediction(*KEY, "1", "CLICK", "", groups=(Reply(0, ("1",), ("A",), "1", "CLICK", ""),))
OTHER = replace(ANSWER, element_id=None)
SAVING = """
import sys
from pathlib import Path
from seeact_offline.viewer.notes import NoteFile
notes = NoteFile(Path(sys.argv[1]), "out", lambda path: {}, lambda key, line: line)
for number in range(10**9):
    key = number % 50
    line = '{"annotation_id": "t", "action_uid": "%d", "element_id": null, "op": "", "value": "%s"}' % (key, "x" * 20000)
    notes.keep(key, line)
    print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "causes.jsonl"


@pytest.fixture
def notes(path: Path) -> Iterator[CauseNotes]:
    notes = CauseNotes(path, "Ann")
    yield notes
    notes.close()


def post(notes: CauseNotes, answer: Prediction = ANSWER, **body: Any) -> tuple[int, dict[str, Any]]:
    return notes.post(answer, {"answer_sha256": answer_digest(answer), "cause": "wrong_op"} | body)


def test_a_cause_is_kept_as_scoring_reads_it_and_can_be_removed(path: Path, notes: CauseNotes) -> None:
    relabelled = {"cause": "wrong_annotation", "note": "both do", "annotator": "Ann"}
    status, answer = post(notes, cause="wrong_annotation", note="both do", run=0)
    assert (status, answer, notes.on(ANSWER)) == (200, {"saved": True, "relabelled": relabelled}, relabelled)
    assert read_causes(path) == {AnswerId(KEY, answer_digest(ANSWER)): HumanCause("wrong_annotation", "both do", "Ann")}
    assert post(notes, cause=None) == (200, {"saved": True, "relabelled": None})
    assert read_causes(path) == {}


def test_two_answers_to_a_step_have_causes_of_their_own_which_stay(path: Path, notes: CauseNotes) -> None:
    post(notes)
    post(notes, OTHER, cause="no_element")
    notes.close()
    again = CauseNotes(path)
    assert [again.on(one) for one in (ANSWER, OTHER)] == [
        {"cause": cause, "note": "", "annotator": "Ann"} for cause in ("wrong_op", "no_element")
    ]
    again.close()


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"cause": "success"}, 400, "expected cause to be one of"),
        ({"cause": 1}, 400, "expected cause to be a text or null"),
        ({"more": 1}, 400, "expected exactly the fields"),
        ({"note": "x" * 2001}, 400, "expected note to be"),
        ({"answer_sha256": 7}, 400, "expected answer_sha256 to be a text"),
        ({"answer_sha256": answer_digest(OTHER)}, 409, "the page shows another answer than this step has here"),
    ],
)
def test_a_wrong_post_is_refused_and_changes_nothing(
    path: Path, notes: CauseNotes, body: dict[str, Any], status: int, said: str
) -> None:
    found, answer = post(notes, **body)
    assert (found, path.exists()) == (status, False)
    assert answer["error"].startswith(said)


def test_a_full_disk_is_said_and_nothing_counts_as_saved(
    path: Path, notes: CauseNotes, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(notes)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        found = [post(notes, OTHER), post(notes, cause=None), post(notes, cause="no_element")]
    error = "nothing was saved: causes.jsonl cannot be written: No space left on device"
    assert found == [(500, {"error": error})] * 3
    assert path.read_bytes() == before
    assert [notes.on(one) and notes.on(one)["cause"] for one in (ANSWER, OTHER)] == ["wrong_op", None]


def test_a_file_of_something_else_is_refused_and_released(path: Path) -> None:
    path.write_text("{}\n")
    with pytest.raises(InputError, match=r"^causes: "):
        CauseNotes(path)
    path.write_text("")
    CauseNotes(path).close()


def test_a_file_is_written_by_one_program_at_a_time(path: Path, notes: CauseNotes) -> None:
    with pytest.raises(InputError, match=r"^another program is writing "):
        CauseNotes(path)
    notes.close()
    CauseNotes(path).close()


def test_a_link_stays_a_link(path: Path, notes: CauseNotes, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "real.jsonl")
    linked = CauseNotes(link)
    post(linked)
    linked.close()
    assert (link.is_symlink(), len(read_causes(tmp_path / "real.jsonl"))) == (True, 1)


@pytest.mark.slow
def test_a_killed_server_leaves_a_whole_file_with_all_that_it_called_saved_and_no_lock(path: Path) -> None:
    for _ in range(3):
        path.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-c", SAVING, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(20)]
            process.send_signal(signal.SIGKILL)
            said += process.stdout.readlines()
        whole = [line for line in said if line.endswith("\n")]
        assert {key.action_uid for key in read_answers(path)} >= {str(int(line) % 50) for line in whole}
    path.unlink()
    CauseNotes(path).close()


# --- answers that are right too ---


@pytest.fixture
def marks(path: Path) -> Iterator[AlsoRightNotes]:
    """A file in which a person has already written another answer to the step."""
    other = OtherAnswerLine(*KEY, (OtherAnswer(("9",)),), "by hand")
    path.write_text(other.line + "\n")
    marks = AlsoRightNotes(path, "Ann")
    yield marks
    marks.close()


def mark(marks: AlsoRightNotes, answer: Prediction, right: object, **body: Any) -> tuple[int, dict[str, Any]]:
    return marks.post(answer, {"answer_sha256": answer_digest(answer), "right": right} | body)


def test_a_mark_is_kept_as_scoring_reads_it_and_leaves_others_of_the_step(path: Path, marks: AlsoRightNotes) -> None:
    assert marks.on(ANSWER) is False
    assert mark(marks, ANSWER, True, run=0) == (200, {"saved": True, "also_right": True})
    (line,) = read_also_right(path).values()
    assert line.also_right == (OtherAnswer(("9",)), OtherAnswer(("1",), "CLICK", ""))
    assert (line.note, line.annotator) == ("by hand", "Ann")
    # an equal answer of another run is marked too, another one is not
    assert (marks.on(replace(ANSWER, groups=())), marks.on(replace(ANSWER, op="TYPE"))) == (True, False)
    assert mark(marks, ANSWER, False) == (200, {"saved": True, "also_right": False})
    assert [one.also_right for one in read_also_right(path).values()] == [(OtherAnswer(("9",)),)]


@pytest.mark.parametrize(
    ("answer", "right", "body", "status"),
    [
        (OTHER, True, {}, 400),
        (ANSWER, "yes", {}, 400),
        (ANSWER, True, {"answer_sha256": "0" * 64}, 409),
        (ANSWER, True, {"more": 1}, 400),
    ],
)
def test_what_is_no_mark_of_the_answer_is_refused(
    path: Path, marks: AlsoRightNotes, answer: Prediction, right: object, body: dict[str, Any], status: int
) -> None:
    before = path.read_bytes()
    assert mark(marks, answer, right, **body)[0] == status
    assert path.read_bytes() == before
