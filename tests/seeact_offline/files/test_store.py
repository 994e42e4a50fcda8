"""Texts by key are committed at once and never returned changed."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from seeact_offline.files.store import Store
from seeact_offline.records import InputError

TEXTS = {f"key {n}": f"{n} " * 30 for n in range(40)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "cache.sqlite"


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    with closing(Store(path, "cache")) as store:
        yield store


@pytest.fixture
def filled(path: Path) -> Path:
    with opened(path) as store:
        for key, text in TEXTS.items():
            store.put(key, text)
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


def text_of(store: Store, key: str) -> str | None:
    found = store.get(key)
    return None if found is None else found.text


def contents(path: Path) -> dict[str, str | None]:
    with opened(path) as store:
        return {key: text_of(store, key) for key in TEXTS}


def texts_of(path: Path) -> dict[str, str]:
    """The texts that the file still has."""
    return {key: text for key, text in contents(path).items() if text is not None}


def test_texts_are_kept(filled: Path) -> None:
    assert contents(filled) == TEXTS


def test_there_is_nothing_for_a_key_that_was_never_put(filled: Path) -> None:
    with opened(filled) as store:
        assert store.get("other") is None


def test_a_later_text_takes_the_place_of_an_earlier_one(path: Path) -> None:
    with opened(path) as store:
        store.put("key", "one")
        store.put("key", "zwei ä")
        assert text_of(store, "key") == "zwei ä"


def test_a_text_is_there_for_others_before_the_store_is_closed(path: Path) -> None:
    with opened(path) as store:
        store.put("key", "text")
        with opened(path) as other:
            assert text_of(other, "key") == "text"


def test_table_and_columns_are_those_of_files_that_users_have(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as db:
        key, text, checksum = db.execute("SELECT key, completion, checksum FROM completions LIMIT 1").fetchone()
    assert (key, text, checksum) == ("key 0", TEXTS["key 0"], "a3eee41066122fb7")


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot use .* as a SQLite file of this program") as caught:
        Store(tmp_path, "cache")
    assert f"cannot use {tmp_path} as" in str(caught.value)


def test_a_file_that_cannot_be_written_any_more_is_named(filled: Path) -> None:
    with opened(filled) as store:
        change(filled, "DROP TABLE completions")
        with pytest.raises(InputError, match=r"^cannot use .*cache\.sqlite .*: no such table"):
            store.put("key", "text")


@pytest.mark.slow
def test_no_flipped_bit_changes_a_text_or_locks_the_file(filled: Path) -> None:
    """It changed one in 6 of 40 trials, and locked all in 24 of 60; most texts outlive it, whatever the place."""
    good = filled.read_bytes()
    rng = random.Random(18)
    kept = []
    for _ in range(120):
        damaged = bytearray(good)
        damaged[rng.randrange(len(good))] ^= 1 << rng.randrange(8)
        filled.write_bytes(damaged)
        left = texts_of(filled)
        assert left.items() <= TEXTS.items()
        kept.append(len(left))
        for other in filled.parent.iterdir():
            other.unlink()
    assert sum(kept) > 0.9 * 120 * len(TEXTS)
    assert min(kept) < len(TEXTS)


def test_what_can_be_read_of_a_torn_file_is_kept_and_the_file_put_aside(filled: Path) -> None:
    torn = filled.read_bytes()[:-5000]
    filled.write_bytes(torn)
    with opened(filled) as store:
        assert "cache.sqlite was damaged" in store.remark
    assert 0 < len(texts_of(filled)) < len(TEXTS)
    (aside,) = filled.parent.glob("cache.sqlite.damaged-*")
    assert aside.read_bytes() == torn


def test_a_file_of_another_kind_is_put_aside(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database " * 500)
    with opened(path) as store:
        store.put("key", "text")
    (aside,) = path.parent.glob("cache.sqlite.damaged-*")
    assert aside.read_bytes() == b"no database " * 500


def test_a_damaged_text_is_gone_and_counted(filled: Path) -> None:
    change(filled, "UPDATE completions SET completion = replace(completion, '7 7', '8 7')")
    with opened(filled) as store:
        assert (store.get("key 7"), store.damaged) == (None, 1)
        assert (store.get("key 7"), store.damaged) == (None, 1)
        assert text_of(store, "key 9") == TEXTS["key 9"]


@pytest.mark.parametrize("column", ["checksum", "about", "made", "used"])
def test_a_file_of_an_earlier_version_is_refused(filled: Path, column: str) -> None:
    change(filled, f"ALTER TABLE completions DROP COLUMN {column}")
    with pytest.raises(InputError, match=f"an earlier development version, without {column}; remove it"):
        contents(filled)


@pytest.mark.parametrize("n", [1, 100, 4096, 9000])
def test_nul_bytes_after_the_end_lose_no_text(filled: Path, n: int) -> None:
    with filled.open("ab") as file:
        file.write(b"\0" * n)
    assert contents(filled) == TEXTS


# --- what it holds ---


def test_texts_are_counted_by_what_they_are_about(path: Path) -> None:
    with opened(path) as store:
        for key, about in (("a", "one"), ("b", "two"), ("c", "two")):
            store.put(key, "text", about)
        assert [(held.about, held.texts, held.characters) for held in store.summaries()] == [
            ("one", 1, 4),
            ("two", 2, 8),
        ]


def test_only_texts_that_were_last_used_before_a_day_are_dropped(path: Path) -> None:
    with opened(path) as store:
        for key in "abcd":
            store.put(key, "text")
    change(path, "UPDATE completions SET made = '2001-01-01', used = '2001-01-01' WHERE key IN ('a', 'd')")
    change(path, "UPDATE completions SET made = NULL, used = NULL WHERE key = 'b'")
    with opened(path) as store:
        assert text_of(store, "d") == "text"
        assert store.drop("2001-01-02") == 2
        assert [text_of(store, key) for key in "abcd"] == [None, None, "text", "text"]


def test_texts_about_one_thing_can_be_dropped(path: Path) -> None:
    with opened(path) as store:
        for key in ("one", "two"):
            store.put(key, "text", key)
        assert store.drop(about="one") == 1
        assert [text_of(store, key) for key in ("one", "two")] == [None, "text"]


def test_the_day_of_a_text_is_known(path: Path) -> None:
    with opened(path) as store:
        store.put("key", "text")
    change(path, "UPDATE completions SET made = '2001-01-01'")
    with opened(path) as store:
        found = store.get("key")
    assert found is not None
    assert found.made == "2001-01-01"


def test_all_texts_can_be_dropped(filled: Path) -> None:
    with opened(filled) as store:
        assert store.drop() == len(TEXTS)
        assert store.summaries() == []


def test_a_text_whose_checksum_is_gone_is_damaged(filled: Path) -> None:
    change(filled, "UPDATE completions SET checksum = NULL WHERE key = 'key 7'")
    with opened(filled) as store:
        assert (store.get("key 7"), store.damaged) == (None, 1)


# --- claims ---


def test_a_key_is_one_programs_until_it_is_released(path: Path) -> None:
    with opened(path) as one, opened(path) as two:
        assert (one.claim("a"), two.claim("a"), two.claim("b")) == (True, False, True)
        one.release("a")
        assert two.claim("a")


def test_a_claim_ends_with_its_store(path: Path) -> None:
    with opened(path) as one:
        with opened(path) as two:
            assert two.claim("a")
        assert one.claim("a")
    assert not list(path.parent.glob("*.lock"))


def test_a_claim_ends_with_a_program_that_is_killed(path: Path, repo: Path) -> None:
    script = (
        "import os, pathlib, signal; from seeact_offline.files.store import Store; "
        f"Store(pathlib.Path({str(path)!r}), 'cache').claim('a'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", script], cwd=repo, check=False)
    assert len(list(path.parent.glob("*.lock"))) == 1
    with opened(path) as store:
        assert store.claim("a")
    assert not list(path.parent.glob("*.lock"))


@pytest.mark.slow
def test_programs_may_open_a_new_file_at_once(tmp_path: Path, repo: Path) -> None:
    opening = """
import sys, time
from pathlib import Path
from seeact_offline.files.store import Store
for number in range(80):
    time.sleep(max(0, float(sys.argv[2]) + number / 40 - time.time()))
    store = Store(Path(sys.argv[1]) / f"{number}.sqlite", "cache")
    store.put("key", "text")
    store.close()
"""
    words = [sys.executable, "-c", opening, str(tmp_path), str(time.time() + 2)]
    programs = [subprocess.Popen(words, cwd=repo, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    assert [program.communicate(timeout=60)[1] for program in programs] == [""] * 3


def test_a_network_file_system_gets_no_write_ahead_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeact_offline.files.store._file_system", lambda path: "nfs4")
    with opened(path) as store:
        store.put("key", "text")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_the_file_system_of_a_path_is_known() -> None:
    from seeact_offline.files.store import _file_system

    assert _file_system(Path("/proc/self/maps")) == "proc"
