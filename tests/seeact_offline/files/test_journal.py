"""Appended lines are read back, and only the next writer cuts off a line torn by a crash."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.files.whole import Journal, Line

TORN = {
    "without its end": b"[3",
    "NUL bytes after the last line": b"\0" * 100,
    "NUL bytes in place of its end": b"[3, \0\0\0",
    "NUL bytes in place of its beginning": b"\0\0\0]\n",
    "NUL bytes and an end": b"\0" * 100 + b"\n",
}
each_torn = pytest.mark.parametrize("torn", TORN.values(), ids=TORN.keys())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "journal.jsonl"


@pytest.fixture
def journal(path: Path) -> Journal:
    """A closed journal of two whole lines."""
    with Journal(path) as made:
        made.append("[1]")
        made.append('["zwei"]')
    return made


def texts(journal: Journal) -> list[str]:
    return [line.text for line in journal.lines()]


def test_lines_are_numbered_from_1_and_say_where_they_begin(journal: Journal) -> None:
    assert list(journal.lines()) == [Line(1, 0, "[1]"), Line(2, 4, '["zwei"]')]


@given(st.lists(st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs"]), max_size=9)))
def test_each_line_is_read_back_where_append_said_it_begins(tmp_path_factory: pytest.TempPathFactory, lines) -> None:
    with Journal(tmp_path_factory.mktemp("run") / "journal.jsonl") as journal:
        offsets = [journal.append(line) for line in lines]
        assert [journal.at(offset) for offset in offsets] == lines
    assert [(line.offset, line.text) for line in journal.lines()] == list(zip(offsets, lines, strict=True))


def test_offsets_go_on_where_an_earlier_writer_stopped(journal: Journal) -> None:
    with journal:
        assert journal.append("[3]") == len('[1]\n["zwei"]\n')


def test_a_line_is_with_the_operating_system_before_append_returns(path: Path) -> None:
    with Journal(path) as journal:
        journal.append("[1]")
        assert path.read_bytes() == b"[1]\n"
        assert texts(Journal(path)) == ["[1]"]


def test_there_are_no_lines_where_there_is_no_file(path: Path) -> None:
    assert list(Journal(path).lines()) == []
    assert not path.parent.exists()


@each_torn
def test_a_torn_last_line_is_cut_off_by_the_next_writer(journal: Journal, torn: bytes) -> None:
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + torn)
    with journal:
        assert journal.path.read_bytes() == whole


@each_torn
def test_readers_leave_a_torn_line_out_and_the_file_alone(journal: Journal, torn: bytes) -> None:
    """A live run may be writing it."""
    journal.path.write_bytes(journal.path.read_bytes() + torn)
    before = journal.path.read_bytes()
    assert texts(journal) == ["[1]", '["zwei"]']
    assert journal.path.read_bytes() == before


@each_torn
def test_a_file_torn_in_its_only_line_is_begun_anew(path: Path, torn: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(torn)
    with Journal(path) as journal:
        journal.append("[1]")
    assert path.read_bytes() == b"[1]\n"


def test_damage_before_the_last_line_is_for_the_reader_to_judge(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"[1\0]\n\xff\n[3]\n")
    with Journal(path) as journal:
        assert texts(journal) == ["[1\0]", "\ufffd", "[3]"]


def test_a_text_of_two_lines_is_refused(journal: Journal) -> None:
    with journal, pytest.raises(ValueError, match="expected one line"):
        journal.append("[1,\n2]")


def test_nothing_is_appended_to_a_closed_journal(journal: Journal) -> None:
    with pytest.raises(RuntimeError, match=r"journal\.jsonl closed"):
        journal.append("[3]")


def test_what_cannot_be_opened_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), Journal(tmp_path):
        pass
    with pytest.raises(IsADirectoryError):
        list(Journal(tmp_path).lines())


@pytest.mark.parametrize(
    "code",
    [
        "from seeact_offline.files.whole import Journal\nwith Journal(path) as journal: journal.append('x' * 5000)",
        "from seeact_offline.files.whole import replace_text\nreplace_text(path, 'x' * 5000)",
    ],
)
def test_a_disk_without_room_names_the_file(path: Path, code: str) -> None:
    # a limit on files fails as a full disk does: in the writing of an open file, whose error has no path
    path.parent.mkdir()
    program = f"from pathlib import Path\npath = Path({str(path)!r})\ntry:\n exec({code!r})\nexcept OSError as error:\n print(error.filename)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
    )
    assert done.stdout.strip() == str(path)
