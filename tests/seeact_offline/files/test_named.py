"""Files that a user names: whatever is there, it is read within limits, or one sentence says what is wrong with it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from seeact_offline.files.formats import DEEPEST, MOST_CHARS, FormatError, decoded, read_json, read_yaml
from seeact_offline.files.named import open_regular, read_named, read_regular, read_rows, read_settings, read_text
from seeact_offline.records import InputError, PromptError


def _socket(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _link(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


NO_FILES: dict[str, Callable[[Path], Path]] = {
    "a pipe": _pipe,
    "a folder": _folder,
    "a socket": _socket,
    "an endless device": lambda path: Path("/dev/zero"),
    "a link to it": _link,
    "nothing": lambda path: path,
    "a name with NUL": lambda path: path.with_name("a\0b"),
    "a name too long": lambda path: path.with_name("a" * 5000),
}


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES.keys())
def test_what_is_no_regular_file_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = make(tmp_path / "it")
    with pytest.raises(PromptError) as caught:
        read_named("prompts", path, "a prompt", kind=PromptError)
    assert str(caught.value).startswith(f"prompts: expected a prompt, got {path}: ")
    with pytest.raises(OSError, match=re.escape(str(caught.value).rpartition(": ")[2])):
        open_regular(path)


def test_the_limit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"x" * 1001)
    assert len(read_regular(path, 1001)) == 1001
    with pytest.raises(InputError, match="more than 1,000 bytes"):
        read_named("run", path, largest=1000)


def test_a_file_of_holes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "it").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match=re.escape("more than 16,777,216 bytes")):
        read_named("run", tmp_path / "it")


@pytest.mark.parametrize(("content", "text"), [(b"\xef\xbb\xbfa\xc3\xa9", "aé"), (b"", "")])
def test_text_is_utf_8_without_its_mark(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "it").write_bytes(content)
    assert read_text("run", tmp_path / "it") == text


@pytest.mark.parametrize(
    ("content", "got"),
    [
        ("aé".encode("utf-16"), "{}, which is UTF-16"),
        ("ab".encode("utf-16-be"), "{}, which is UTF-16"),
        (b"a\xff", "the byte 0xff in {}"),
    ],
)
def test_text_in_another_encoding_is_refused(tmp_path: Path, content: bytes, got: str) -> None:
    (tmp_path / "it").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_text("run", tmp_path / "it")
    assert str(caught.value) == f"run: expected UTF-8 text, got {got.format(tmp_path / 'it')}"


# --- JSON, YAML ---


class Line(msgspec.Struct, forbid_unknown_fields=True):
    n: float = 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[" * 5000, "expected a JSON object, got '[[["),
        ("[" * 500 + "]" * 500, f"expected JSON nested at most {DEEPEST} times, got more"),
        ('{"n": ' + "9" * 5000 + "}", 'expected a JSON object, got \'{"n": 999'),
        ('{"n": ' + "9" * 400 + "}", "Number out of range"),
        ('{"n": "x"}', "expected n to be a number, got 'x'"),
        ('{"n": 1', "expected a JSON object"),
    ],
)
def test_a_line_of_rows_that_cannot_be_read_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "it").write_text(f'{{"n": 1}}\n\n{line}\n')
    rows = read_rows("causes", tmp_path / "it", Line)
    assert next(rows) == (Line(1), f"line 1 of {tmp_path / 'it'}")
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        list(rows)
    assert str(caught.value).endswith(f"in line 3 of {tmp_path / 'it'}")


def _nested(open: str, close: str, n: int = DEEPEST) -> str:
    return open * n + close * n


@pytest.mark.parametrize("read", [read_json, read_yaml])
def test_values_may_be_nested_up_to_the_limit(read: Callable[[str], object]) -> None:
    assert repr(read(_nested("[", "]"))) == _nested("[", "]")
    with pytest.raises(FormatError, match="nested at most"):
        read(f"[{_nested('[', ']')}]")


def test_an_unknown_field_that_is_too_deep_is_one_sentence() -> None:
    with pytest.raises(FormatError, match="expected a JSON object"):
        decoded(f'{{"n": 1, "more": {_nested("[", "]", 5000)}}}', msgspec.defstruct("Open", [("n", int)]))


def _bomb(first: str, layer: Callable[[str], str], n: int = 12) -> str:
    layers = (f"a{i}: &a{i} {layer(','.join([f'*a{i - 1}'] * 9))}\n" for i in range(1, n))
    return f"a0: &a0 {first}\n{''.join(layers)}"


YAMLS = {
    "deep in a flow": ("[" * 400_000, "nested at most"),
    "deep in blocks": ("- " * 200_000, "nested at most"),
    "deep by aliases": (_bomb("[1]", lambda parts: f"[{parts.partition(',')[0]}]", 300), "nested at most"),
    "aliases of aliases": (_bomb("[x, x]", lambda parts: f"[{parts}]"), "with aliases written out"),
    "merges of merges": (_bomb("{x: 1}", lambda parts: f"{{<<: [{parts}]}}"), "with aliases written out"),
    "a long text many times": (f"a: &a {'y' * 90_000}\nb: [{', '.join(['*a'] * 99)}]", "with aliases written out"),
    "itself": ("&a [*a]", "aliases of values before them"),
    "digits": (f"a: {'1' * 5000}", "numbers of at most 1,000 characters"),
    "hexadecimal digits": (f"a: 0x{'f' * 50_000}", "numbers of at most 1,000 characters"),
    "digits of base 60": (f"a: 1{':1' * 100_000}", "numbers of at most 1,000 characters"),
    "a large fraction of base 60": (f"a: 1{':1' * 400}.5", "expected YAML"),
    "no digits": ("a: 0x_", "expected YAML"),
    "no date": ("a: 2001-99-99", "expected YAML"),
    "a wrong tag": ("a: !!timestamp x", "YAML without tags"),
    "a tag that runs code": ("a: !!python/object/apply:os.system [ls]", "YAML without tags"),
    "a list as a name": ("? [a]\n: b", "expected YAML"),
    "a merge of a number": ("<<: 3", "expected YAML"),
    "two documents": ("a: 1\n---\nb: 1", "expected YAML"),
    "a control character": ("a: \0", "expected YAML"),
}


@pytest.mark.parametrize(("text", "said"), YAMLS.values(), ids=YAMLS.keys())
@pytest.mark.parametrize("is_fast", [True, False])
def test_yaml_that_cannot_be_used_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, text: str, said: str, is_fast: bool
) -> None:
    import yaml

    if not is_fast:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    with pytest.raises(FormatError, match=said) as caught:
        read_yaml(text)
    assert len(str(caught.value)) < 400


def test_aliases_merges_dates_and_long_texts_are_read(tmp_path: Path) -> None:
    long = "1 and " + "x" * (MOST_CHARS // 8)
    (tmp_path / "it.yaml").write_text(f"a: &a {{x: 1}}\nb: {{<<: *a, y: [*a]}}\nc: {long}\nd: '{'1' * 2000}'\n")
    found = read_settings("config", tmp_path / "it.yaml")
    assert (found["b"], found["c"], found["d"]) == ({"x": 1, "y": [{"x": 1}]}, long, "1" * 2000)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("it.json", '{"a": 1}', None),
        ("it.json", "a: 1", "expected a JSON object"),
        ("it.yaml", "\ufeffa: 1", None),
        ("it.yaml", "[1]", "expected names and values, got a list in"),
        ("it.yaml", "", "expected names and values, got a NoneType in"),
        ("it.json", '{"b": [{"a\\u0000": 1}]}', r"expected texts without NUL and lone surrogates, got 'a\x00' in"),
        ("it.yaml", '"\\ud800": 1', r"expected"),
        ("it.yaml", "a: " + "x" * (1 << 20), "more than 1,048,576 bytes"),
    ],
)
def test_settings_are_names_and_values(tmp_path: Path, name: str, text: str, said: str | None) -> None:
    (tmp_path / name).write_text(text)
    if said is None:
        assert read_settings("config", tmp_path / name) == {"a": 1}
        return
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        read_settings("config", tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_folder_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
