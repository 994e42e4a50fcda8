"""Values of JSON become typed ones; what is wrong with one is a sentence that names field, expectation and finding."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

import msgspec
import pytest

from seeact_offline.files.formats import FormatError, read_json, typed, unescape_html


class Part(msgspec.Struct, forbid_unknown_fields=True):
    number: int
    texts: tuple[str, ...] = ()


class Whole(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    parts: list[Part]
    counts: dict[str, int] = {}
    share: float | None = None

    def __post_init__(self) -> None:
        if self.name == "nobody":
            raise FormatError("somebody's name", "'nobody'")


GOOD = '"name": "x", "parts": []'


def read(text: str) -> Whole:
    return typed(read_json(text), Whole)


def test_a_value_is_read_with_its_defaults() -> None:
    assert read('{"name": "x", "parts": [{"number": 3}], "later": 1}') == Whole("x", [Part(3, ())])


def test_lone_surrogates_are_read_as_they_are() -> None:
    assert read('{"name": "\\ud83d", "parts": [], "counts": {"\\udc00": 1}}') == Whole("\ud83d", [], {"\udc00": 1})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("3", "expected an object, got 3"),
        ("{}", "expected the fields name, parts, got none"),
        ('{"name": "x"}', "expected the fields name, parts, got 'name'"),
        ('{"name": "", "parts": []}', "expected name to be a text of length >= 1, got ''"),
        ('{"name": null, "parts": []}', "expected name to be a text, got None"),
        ('{"name": "nobody", "parts": []}', "expected somebody's name, got 'nobody'"),
        ('{"name": "x", "parts": {}}', "expected parts to be a list, got {}"),
        ('{"name": "x", "parts": [1]}', "expected parts[0] to be an object, got 1"),
        ('{"name": "x", "parts": [{"number": 1}, {}]}', "expected the field number in parts[1], got none"),
        ('{"name": "x", "parts": [{"number": 1, "x": 2}]}', "expected no field x in parts[0], got 'number, x'"),
        ('{"name": "x", "parts": [{"number": true}]}', "expected parts[0].number to be a whole number, got True"),
        (
            '{"name": "x", "parts": [{"number": 1, "texts": ["", 2]}]}',
            "expected parts[0].texts[1] to be a text, got 2",
        ),
        (f'{{{GOOD}, "counts": {{"a.b": "c"}}}}', "expected counts[...] to be a whole number, got a text"),
        (f'{{{GOOD}, "share": "half"}}', "expected share to be a number or null, got 'half'"),
        (f'{{{GOOD}, "x\\ud83d": 1}}', r"expected a field's name without lone surrogates, got 'x\ud83d'"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(text)
    assert str(caught.value) == sentence == f"expected {caught.value.expected}, got {caught.value.got}"


def test_a_field_too_many_is_told_with_those_that_are_expected() -> None:
    with pytest.raises(
        FormatError, match=r"^expected exactly the fields number, and perhaps texts, got 'number, x\\n'$"
    ):
        typed({"number": 1, "x\n": 2}, Part)


@pytest.mark.parametrize("text", ["{torn", b"{\xff", "", "[" * 100_000])
def test_what_is_no_json_is_shown_in_short(text: str | bytes) -> None:
    with pytest.raises(FormatError, match=r"^expected a JSON object, got '.{0,80}$"):
        read_json(text)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(FormatError) as caught:
        read(f'{{{GOOD}, "share": "{"x" * 1000}"}}')
    assert len(str(caught.value)) < 150


RACE = """
from __future__ import annotations
import threading, time
import subprocess
import sys
from typing import Annotated
import msgspec
from seeact_offline.files.formats import {reader}

def slow_limit():
    time.sleep(0.3)
    return msgspec.Meta(ge=0)

class Inner(msgspec.Struct):
    number: Annotated[int, slow_limit()]

class Row(msgspec.Struct):
    inner: Inner
    name: str

threads = [threading.Thread(target=lambda: print({reader}({value}, Row).name + "\\n", end="")) for _ in range(3)]
for thread in threads:
    thread.start()
    time.sleep(0.05)
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize(
    ("reader", "value"),
    [("typed", {"inner": {"number": 1}, "name": "a"}), ("decoded", '{"inner": {"number": 1}, "name": "a"}')],
)
def test_threads_that_read_a_type_for_the_first_time_do_not_end_the_program(reader: str, value: object) -> None:
    script = RACE.format(reader=reader, value=repr(value))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    # a segmentation fault, as msgspec shows an unfinished description to other threads
    assert (done.returncode, done.stdout.split()) == (0, ["a", "a", "a"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a &amp; b&nbsp;c &#65;&#x42; &#0067; &no", "a & b\xa0c AB C &no"),
        ("&#" + "9" * 4301 + ";.", "\ufffd."),
        ("&#" + "0" * 5000 + "65.", "A."),
        ("&#x" + "f" * 5000 + ";.", "\ufffd."),
        ("&#;&#x;&#0;", "&#;&#x;\ufffd"),
    ],
)  # fmt: skip
def test_entities_are_read_whatever_their_numbers(written: str, meant: str) -> None:
    assert unescape_html(written) == meant
