"""The commands that install what is missing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from seeact_offline.files import extras

REPO = Path(extras.__file__).parents[2]
TEXTS = [
    path for path in REPO.rglob("*") if path.suffix in (".py", ".md", ".ipynb", ".toml") or path.name == "Makefile"
]


@pytest.mark.parametrize(("below", "named"), [("", ".[marks]"), ("docs", f"{REPO}[marks]")])
def test_a_checkout_is_installed_again_with_the_extra(below: str, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPO / below)
    assert extras.install_command("marks").endswith(f"-m pip install -e '{named}'")


def test_without_a_checkout_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "CHECKOUT", None)
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["numpy>=1", "a>=2; extra == 'x'", "b; extra == 'y'"])
    assert extras.install_command("x").endswith("-m pip install 'a>=2'")
    assert extras.install_command().endswith("-m pip install 'numpy>=1'")


def test_no_text_installs_the_project_by_its_name() -> None:
    # it is not on PyPI, where anybody could register it
    assert tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]["name"] == "seeact-offline"
    by_name = re.compile(r"pip install (?:-\S+ )*['\"\\]*seeact-offline(?!\S*\.whl)")
    texts = {path: path.read_text("utf-8") for path in TEXTS if not path.relative_to(REPO).parts[0].startswith(".")}
    assert [str(path.relative_to(REPO)) for path, text in texts.items() if by_name.search(text)] == []
