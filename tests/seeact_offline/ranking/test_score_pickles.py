"""Score files that are torn, or made to do harm: each is one sentence, and soon."""

from __future__ import annotations

import os
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seeact_offline.ranking import read_scores, schema
from seeact_offline.records import Operation, ScoreFileError, Step

STEP = Step("task", "step", "do it", (), "site", "domain", "<a/>", Operation("CLICK"), (), None)
NAME = "task_step"
GOOD = {"scores": {NAME: {"8": 0.5, "9": -1.5}}, "ranks": {NAME: {"8": 0, "9": 300}}}

# A tuple of two empty ones, that one twice in the next, and so on: 2**20 of them to whoever goes through it.
# Another 20 would take weeks, in which no timeout interrupts the hashing: what counts is that none is made.
DEEP = b")" + b"2\x86" * 20
"""A frame of 4 exabytes, an integer beyond all floats."""
DAMAGES = (b"\x95" + b"\xff" * 7 + b"\x3f", b"\x8a\xff" + b"\x7f" * 255)


def text(value: str) -> bytes:
    """An opcode that gives the text."""
    data = value.encode()
    return b"\x8c" + bytes([len(data)]) + data


def table(step: bytes, candidate: bytes, score: bytes) -> bytes:
    """A pickle of one score; the three are given as opcodes."""
    return b"\x80\x04}" + text("scores") + b"}" + step + b"}" + candidate + score + b"sss."


def with_score(score: bytes) -> bytes:
    return table(text(NAME), text("8"), score)


def error_of(path: Path, data: bytes) -> str:
    """What is said of a score file with these bytes."""
    path.write_bytes(data)
    with pytest.raises(ScoreFileError, match=r"^scores: expected") as caught:
        read_scores(path)
    return str(caught.value)


def refusal(tmp_path: Path, content: object) -> str:
    return error_of(tmp_path / "s.pkl", pickle.dumps(content))


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "s.pkl").write_bytes(pickle.dumps(GOOD, protocol))
    assert read_scores(tmp_path / "s.pkl").of(STEP) == {"8": (0.5, 0), "9": (-1.5, 300)}


@pytest.mark.parametrize(
    "data",
    [
        b"(dp0\nS'scores'\np1\n(dp2\nS'task_step'\np3\n(dp4\nS'8'\np5\nF0.5\nsss.",
        b"\x80\x02}q\x01U\x06scoresq\x02}q\x03U\x09task_stepq\x04}q\x05U\x018G?\xe0\x00\x00\x00\x00\x00\x00sss.",
    ],
)
def test_pickles_of_python_2_are_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.pkl").write_bytes(data)
    assert read_scores(tmp_path / "s.pkl").of(STEP) == {"8": (0.5, None)}


# --- opcodes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [table(DEEP, text("8"), b"K\x01"), table(text(NAME), DEEP, b"K\x01"), with_score(DEEP)],
    ids=["step", "candidate", "score"],
)
def test_tuples_shared_many_levels_deep_are_refused_before_one_is_made(tmp_path: Path, data: bytes) -> None:
    assert "EMPTY_TUPLE at byte" in error_of(tmp_path / "s.pkl", data)


NOT_NEEDED = {
    "EMPTY_LIST": b"]",
    "FROZENSET": b"\x91",
    "DUP": b"2",
    "SHORT_BINBYTES": b"C\x018",
    "EXT1": b"\x82\x01",
    "BINPERSID": b"Q",
    "0xff": b"\xff",
    # 8 bytes are enough for any integer of 64 bits
    "LONG1": b"\x8a\x09" + bytes(9),
    "LONG4": b"\x8b\x01\x00\x00\x00\x01",
    "LONG": b"L" + b"1" * 400 + b"L\n",
    "INT": b"I" + b"1" * 5000 + b"\n",
    "BINUNICODE": b"X\x00\x01\x00\x00" + b"8" * 256,
    "UNICODE": b"V" + b"8" * 256 + b"\n",
    # as the 16-millionth value of a file that is shorter
    "LONG_BINPUT": b"r\x00\x00\x00\x01",
    "PUT": b"p9999999\n",
}


@pytest.mark.parametrize("name", NOT_NEEDED)
def test_an_opcode_that_scores_do_not_need_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    before = table(text(NAME), text("8"), b"K\x01").removesuffix(b"sss.")
    error = error_of(tmp_path / "s.pkl", before + NOT_NEEDED[name] + b"sss.")
    assert f" {name} at byte {len(before)} " in error


def test_bytes_after_the_end_are_refused(tmp_path: Path) -> None:
    assert "STOP at byte" in error_of(tmp_path / "s.pkl", pickle.dumps(GOOD) + b".")


def test_a_frame_that_ends_within_an_opcode_is_read_as_it_was_checked(tmp_path: Path) -> None:
    row = b"".join(text(f"{n:06}") + b"G" + bytes(8) for n in range(30_000))
    body = b"}" + text("scores") + b"}" + text(NAME) + b"}(" + row + b"uss."
    # that is, within the number of a candidate
    frame = body.index(text("020000")) + 12
    (tmp_path / "s.pkl").write_bytes(b"\x80\x04\x95" + frame.to_bytes(8, "little") + body)
    assert len(read_scores(tmp_path / "s.pkl").of(STEP) or ()) == 30_000


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_damaged_anywhere_is_read_or_refused(tmp_path: Path, protocol: int) -> None:
    whole, errors = pickle.dumps(GOOD, protocol), []
    for place, inserted in product(range(len(whole)), DAMAGES):
        (tmp_path / "s.pkl").write_bytes(whole[:place] + inserted + whole[place:])
        try:
            read_scores(tmp_path / "s.pkl").of(STEP)
        except ScoreFileError as error:
            errors.append(str(error))
    assert errors
    assert [error for error in errors if len(error.encode().splitlines()) != 1] == []


@pytest.mark.skipif(not os.path.isfile("/proc/self/mem"), reason="no file here whose beginning cannot be read")
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.pkl").symlink_to("/proc/self/mem")
    with pytest.raises(ScoreFileError, match="cannot be read"):
        read_scores(tmp_path / "s.pkl")


def test_a_name_too_long_for_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScoreFileError, match="got no file at"):
        read_scores(tmp_path / ("s" * 300))


# --- what it holds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [True, None, {}])
def test_a_score_that_is_no_number_is_refused_by_its_type(tmp_path: Path, score: object) -> None:
    assert f"expected finite numbers, got a {type(score).__name__} for step 'task_step' under 'scores'" in refusal(
        tmp_path, {"scores": {NAME: {"8": score}}}
    )


@pytest.mark.parametrize("rank", [1.5, 3.0, True, None, "1", -1])
def test_a_rank_that_is_no_whole_number_from_0_is_refused(tmp_path: Path, rank: object) -> None:
    error = refusal(tmp_path, {**GOOD, "ranks": {NAME: {"8": 0, "9": rank}}})
    assert "expected whole numbers from 0, got" in error
    assert error.endswith("under 'ranks' in " + str(tmp_path / "s.pkl"))


@pytest.mark.parametrize("ranks", [None, 5, 0, False, ""])
def test_ranks_that_are_no_dictionary_are_refused(tmp_path: Path, ranks: object) -> None:
    found = f"expected a dictionary of steps, got a {type(ranks).__name__} under 'ranks'"
    assert found in refusal(tmp_path, {**GOOD, "ranks": ranks})


@pytest.mark.parametrize("key", [1, 0.5, True, None])
def test_a_step_that_is_no_text_is_refused(tmp_path: Path, key: object) -> None:
    assert f"the names of steps, got a {type(key).__name__}" in refusal(tmp_path, {"scores": {key: {"8": 0.5}}})


@pytest.mark.parametrize("key", [1, 0.5, True, None])
def test_a_candidate_that_is_no_text_is_refused(tmp_path: Path, key: object) -> None:
    assert f"the ids of candidates, got a {type(key).__name__}" in refusal(tmp_path, {"scores": {NAME: {key: 0.5}}})


def test_what_an_error_quotes_can_be_printed(tmp_path: Path) -> None:
    nameless = table(b"\x8c\x03\xed\xa0\x80", text("8"), b"N")
    assert r"for step '\ud800'" in error_of(tmp_path / "s.pkl", nameless)


@pytest.mark.timeout(20)
def test_a_row_that_many_steps_share_is_looked_at_once(tmp_path: Path) -> None:
    row = {str(n): 0.5 for n in range(20_000)}
    (tmp_path / "s.pkl").write_bytes(pickle.dumps({"scores": {str(n): row for n in range(100_000)}}))
    assert len(read_scores(tmp_path / "s.pkl").keys) == 100_000


@pytest.mark.timeout(10)
def test_dictionaries_shared_forty_deep_are_refused_by_their_type(tmp_path: Path) -> None:
    nested: dict[str, object] = {}
    for _ in range(40):
        nested = {"a": nested, "b": nested}
    assert "got a dict for step" in refusal(tmp_path, {"scores": {NAME: {"8": nested}}})


# --- parquet ---------------------------------------------------------------------------------------------------------

COLUMNS = dict(zip(schema().names, (["task"], ["step"], ["8"], [0.5], [0]), strict=True))
"""One text of one byte, which UTF-8 has not."""
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")]
)


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("score", [True], "score holds bool"),
        ("rank", [True], "rank holds bool"),
        ("rank", pa.array([1], pa.date32()), "rank holds date32"),
        ("rank", [-1], "expected ranks from 0, got -1"),
        ("annotation_id", NOT_UTF8, "UTF8"),
        ("annotation_id", [b"\xff"], "UTF8"),
        ("backend_node_id", NOT_UTF8, "UTF8"),
    ],
)
def test_a_column_of_other_values_is_refused(tmp_path: Path, column: str, values: object, said: str) -> None:
    pq.write_table(pa.table({**COLUMNS, column: values}), tmp_path / "s.parquet")
    with pytest.raises(ScoreFileError, match=said):
        read_scores(tmp_path / "s.parquet")


def test_keys_that_are_not_said_to_be_text_are_read_as_such(tmp_path: Path) -> None:
    pq.write_table(pa.table({**COLUMNS, "annotation_id": [b"task"]}), tmp_path / "s.parquet")
    assert read_scores(tmp_path / "s.parquet").of(STEP) == {"8": (0.5, 0)}


@pytest.mark.parametrize(
    "metadata",
    [
        b'{"a":' * 100_000,
        b'{"dataset_fingerprint": 1, "split": [], "limit": {}, "ranker_digest": 2, "text_version": "", "ranker": 3, "texts_truncated": 4}',
    ],
    ids=["deep", "other types"],
)
def test_metadata_that_are_not_ours_say_nothing(tmp_path: Path, metadata: bytes) -> None:
    made = pa.table(COLUMNS).replace_schema_metadata({b"seeact_offline": metadata})
    pq.write_table(made, tmp_path / "s.parquet")
    assert read_scores(tmp_path / "s.parquet").origin is None
