"""Objects from outside the package: found by file or entry point, refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from seeact_offline.files.extensions import entry_point_names, load_named, loaded_modules
from seeact_offline.records import InputError

GROUP = "seeact_offline.tests"


def test_an_object_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import dataclasses\n\n\n@dataclasses.dataclass\nclass Thing:\n    size: int = 3\n")
    found = load_named(f"{file}:Thing", GROUP, "model")
    assert found is not None
    assert (found.value().size, found.name) == (3, "mine.py:Thing")
    assert load_named(f"{file}:Thing", GROUP, "model") == found


def test_changed_code_has_another_digest(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    digests = set()
    for code in ("thing = 1", "thing = 2"):
        file.write_text(code)
        found = load_named(f"{file}:thing", GROUP, "model")
        assert found is not None
        assert found.value == int(code[-1])
        digests.add(found.digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        (None, "thing", "cannot read {file}: No such file or directory"),
        ("thing = 1", "other", "model: expected the name of an object in {file}, got other"),
        ("1 / 0", "thing", "cannot load {file}: ZeroDivisionError: division by zero"),
        ("thing =", "thing", "cannot load {file}: SyntaxError: invalid syntax (mine.py, line 1)"),
    ],
    ids=["no file", "no such name", "code that fails", "no Python"],
)  # fmt: skip
def test_what_does_not_load_is_refused(tmp_path: Path, code: str | None, name: str, said: str) -> None:
    file = tmp_path / "mine.py"
    if code is not None:
        file.write_text(code)
    with pytest.raises(InputError) as raised:
        load_named(f"{file}:{name}", GROUP, "model")
    assert str(raised.value) == said.format(file=file)


def test_an_entry_point_of_an_installed_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "their-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\ntheirs = their_module:thing\nbroken = no_such_module:thing\n")
    (tmp_path / "their_module.py").write_text("thing = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = load_named("theirs", GROUP, "grounding")
    assert found is not None
    assert (found.value, found.name) == (7, "theirs")
    assert entry_point_names(GROUP) == ["broken", "theirs"]
    with pytest.raises(InputError, match="cannot load the entry point broken"):
        load_named("broken", GROUP, "grounding")


@pytest.mark.parametrize("spec", ["choice", "openai/gpt-4o", "mine.txt:thing", "mine.py", "mine.py:", "mine.py:2x", ""])
def test_other_texts_name_no_extension(spec: str) -> None:
    assert load_named(spec, GROUP, "model") is None


def test_modules_made_from_files_are_known_to_those_that_send_code_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "sent.py").write_text("class Sent:\n    pass\n")
    found = load_named(f"{tmp_path / 'sent.py'}:Sent", "seeact_offline.groundings", "grounding")
    assert found is not None
    assert found.value.__module__ in {module.__name__ for module in loaded_modules()}
