"""The official score file, a pickle: `{"scores"|"ranks": {"<annotation_id>_<action_uid>": {backend_node_id: x}}}`.

A pickle is a program. It can run code, ask for gigabytes of memory, or hash a tuple of tuples forever, but not with the
opcodes that dictionaries, texts and numbers need. So one regular expression matches all opcodes before the first one is
run. That takes two fifths as long as running them; `pickletools.genops` would take ten times as long.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Iterable
from itertools import filterfalse, islice
from pathlib import Path
from typing import Any, NamedTuple

from seeact_offline.files.named import read_regular
from seeact_offline.records import ScoreFileError

# GLOBAL, INST and STACK_GLOBAL are left to the unpickler, which names what they ask for
IMPORTS = b"ci\x93"
STOP = b"."
LONGEST_TEXT = 255
"""Bytes; the two ids that make up a step's key have 36 each."""
SHOWN = 100
"""Characters that an error quotes at most."""


class Numbers(NamedTuple):
    """The numbers in one of the two tables. A rank is an int: 3.0 is refused just as 1.5 is. Booleans are not
    numbers."""

    types: frozenset[type]
    valid: Callable[[Any], bool]
    words: str


class Problem(NamedTuple):
    """A fault of a table."""

    expected: str
    got: str


TABLES = {
    "scores": Numbers(frozenset({int, float}), math.isfinite, "finite numbers"),
    "ranks": Numbers(frozenset({int}), (0).__le__, "whole numbers from 0"),
}


def read_tables(path: Path) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """Scores and ranks; ranks are empty if the file has none. Raises ScoreFileError.

    If a key is given twice, the last value counts, as in any dictionary.
    """
    content = load_plain_pickle(path)
    if not isinstance(content, dict) or not isinstance(content.get("scores"), dict):
        raise ScoreFileError("scores", "a pickle with a dictionary under 'scores'", f"{_shape(content)} in {path}")
    scores, ranks = content["scores"], content.get("ranks", {})
    for name, table in (("scores", scores), ("ranks", ranks)):
        problem = _table_problem(table, TABLES[name])
        if problem:
            raise ScoreFileError("scores", problem.expected, f"{problem.got} under {name!r} in {path}")
    return scores, ranks


def load_plain_pickle(path: Path) -> object:
    """Reads dictionaries, texts, 64-bit numbers, booleans and None; never runs a pickle's code. Raises
    ScoreFileError."""
    try:
        data = read_regular(path)
        _check_opcodes(data)
        return _PlainUnpickler(_WholeFile(data)).load()
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        AttributeError,
        OverflowError,
        MemoryError,
        OSError,
    ) as error:
        wanted = "a pickle of plain dictionaries, texts and numbers"
        raise ScoreFileError("scores", wanted, f"{path}, which cannot be read as one: {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """An error's message on one line, shortened."""
    return " ".join(str(error).split())[:200] or type(error).__name__


class _PlainUnpickler(pickle.Unpickler):
    """Refuses everything that would import a name."""

    def find_class(self, module: str, name: str) -> Any:
        asked = f"{module[:SHOWN]}.{name[:SHOWN]}"
        raise pickle.UnpicklingError(f"it asks for {asked!r}, and only plain containers and numbers are admitted")


class _WholeFile(io.BytesIO):
    """Shows the whole rest of the file at the first look.

    An unpickler that sees a file bit by bit loses the rest of an opcode that the end of a frame cuts in two. It would
    then run other opcodes than those that were checked.
    """

    def peek(self, size: int = 0) -> bytes:
        return self.getvalue()[self.tell() :]


def _check_opcodes(data: bytes) -> None:
    """Raises UnpicklingError at the first opcode that a score file does not need. Those in `IMPORTS` are let
    through."""
    match = _opcodes(len(data)).match(data)
    end = match.end() if match else 0
    if end == len(data):
        raise pickle.UnpicklingError(f"it ends at byte {end}, before STOP")
    if data[end : end + 2] == STOP or data[end] in IMPORTS:
        return
    name = next((opcode.name for opcode in pickletools.opcodes if opcode.code == chr(data[end])), f"{data[end]:#04x}")
    raise pickle.UnpicklingError(
        f"{name} at byte {end} has no place there, or its argument is cut off or out of bounds"
    )


def _opcodes(size: int) -> re.Pattern[bytes]:
    """Matches opcodes of a score file of `size` bytes as far as they go, each with its whole argument.

    Every alternative begins with another byte, so there is only one way to match, and `*+` remembers no other.
    """
    opcodes = (
        # in protocol 4, most are one of these
        _counted(rb"\x8c", LONGEST_TEXT),
        rb"\x94|G.{8}|h.|j.{4}|K.|M..",
        # in protocols 1 to 3, these
        _counted(b"X", LONGEST_TEXT, width=4),
        b"q.|r" + _number_up_to(size, width=4),
        # PROTO and FRAME; MARK and the opcodes of dictionaries; NEWTRUE, NEWFALSE and NONE
        rb"\x80[\x00-\x05]|\x95.{8}|[(}dus]|[\x88\x89N]",
        # BININT, LONG1
        b"J.{4}|" + _counted(rb"\x8a", 8),
        # the texts of Python 2, and those of protocol 0
        _counted(b"U", LONGEST_TEXT),
        rb"S[^\n\\]{0,%d}+\n|V[^\n]{0,%d}+\n" % (LONGEST_TEXT, LONGEST_TEXT),
        # the rest of protocol 0
        rb"F[^\n]{1,32}+\n|I-?[0-9]{1,19}\n|L-?[0-9]{1,19}L?\n|g[0-9]{1,19}\n",
        b"p" + _digits_up_to(size) + rb"\n",
    )
    return re.compile(b"(?s:" + b"|".join(opcodes) + b")*+")


def _counted(opcode: bytes, longest: int, width: int = 1) -> bytes:
    """An opcode whose argument begins with its own length, in `width` bytes."""
    lengths = (re.escape(n.to_bytes(width, "little")) + b".{%d}" % n for n in range(longest + 1))
    return opcode + b"(?:" + b"|".join(lengths) + b")"


def _number_up_to(size: int, width: int) -> bytes:
    """Little-endian bytes of a number up to about `size`, at most twice as large.

    A memo index is never larger than the file. The unpickler makes its table as long as the largest index.
    """
    digits = min(size, 256**width - 1).to_bytes(width, "little").rstrip(b"\x00") or b"\x00"
    top = b"[\\x00-\\x%02x]" % digits[-1]
    return b"." * (len(digits) - 1) + top + rb"\x00" * (width - len(digits))


def _digits_up_to(size: int) -> bytes:
    """The same as decimal digits."""
    digits = str(size)
    return b"(?:[0-9]{0,%d}|[0-%d][0-9]{%d})" % (len(digits) - 1, int(digits[0]), len(digits) - 1)


def _table_problem(table: object, numbers: Numbers) -> Problem | None:
    """Checks each row once, however many steps share it."""
    if not isinstance(table, dict):
        return Problem("a dictionary of steps", _shape(table))
    if stranger := _other_than({str}, table):
        return Problem("texts as the names of steps", f"a {stranger}")
    rows = {id(row): (step, row) for step, row in table.items()}
    problems = ((step, _row_problem(row, numbers)) for step, row in rows.values())
    return next((Problem(p.expected, f"{p.got} for step {step[:SHOWN]!r}") for step, p in problems if p), None)


def _row_problem(row: object, numbers: Numbers) -> Problem | None:
    if not isinstance(row, dict):
        return Problem("a dictionary of candidates", _shape(row))
    if stranger := _other_than({str}, row):
        return Problem("texts as the ids of candidates", f"a {stranger}")
    if stranger := _other_than(numbers.types, row.values()):
        return Problem(numbers.words, f"a {stranger}")
    wrong = next(filterfalse(numbers.valid, row.values()), None)
    return None if wrong is None else Problem(numbers.words, str(wrong))


def _other_than(types: set[type] | frozenset[type], values: Iterable[object]) -> str:
    """The name of a type that is not one of these; empty if there is none."""
    return min((other.__name__ for other in set(map(type, values)) - types), default="")


def _shape(value: object) -> str:
    """A value's type, because its contents may be too large to print."""
    if not isinstance(value, dict):
        return f"a {type(value).__name__}"
    return f"a dict with keys {[str(key)[:SHOWN] for key in islice(value, 5)]}"
