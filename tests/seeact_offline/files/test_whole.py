"""A file is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeact_offline.files.whole import replace_text, write_whole


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.txt"


def test_the_old_file_stays_until_the_new_one_is_whole(path: Path) -> None:
    path.write_text("old")

    def write(draft: Path) -> None:
        draft.write_text("new")
        assert path.read_text() == "old"
        assert draft.parent == path.parent

    write_whole(path, write)
    assert path.read_text() == "new"


def test_what_the_writer_returns_is_given_back(path: Path) -> None:
    assert write_whole(path, lambda draft: draft.write_text("four")) == 4


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_what_was_there_and_no_draft(path: Path, error: type[BaseException]) -> None:
    path.write_text("old")

    def write(draft: Path) -> None:
        draft.write_text("half of the")
        raise error

    with pytest.raises(error):
        write_whole(path, write)
    assert {file.name: file.read_text() for file in path.parent.iterdir()} == {"file.txt": "old"}


def test_a_write_that_makes_no_draft_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(path, lambda draft: None)


def test_no_draft_is_left_beside_the_file(path: Path) -> None:
    replace_text(path, "new")
    assert list(path.parent.iterdir()) == [path]


def test_the_same_text_leaves_the_file_as_it_is(path: Path) -> None:
    replace_text(path, "text")
    before = path.stat()
    replace_text(path, "text")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_another_text_takes_its_place(path: Path) -> None:
    replace_text(path, "text")
    replace_text(path, "other")
    assert path.read_text() == "other"


def test_texts_are_utf_8_with_newlines_as_they_are_and_lone_surrogates_escaped(path: Path) -> None:
    replace_text(path, "ä\n\ud83d\r\n")
    assert path.read_bytes() == b"\xc3\xa4\n\\ud83d\r\n"
