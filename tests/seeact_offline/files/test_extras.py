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


@pytest.mark.parametrize(
    ("torch", "wanted"),
    [
        ("2.13.0+cpu", " install torch==2.13.0 torchvision --index-url https://download.pytorch.org/whl/cpu"),
        ("2.13.0+cu130", " install torch==2.13.0 torchvision --index-url https://download.pytorch.org/whl/cu130"),
        ("2.13.0", " install torch==2.13.0 torchvision"),
        ("2.14.0a0+git1234", " install torch==2.14.0a0 torchvision"),
    ],
)
def test_torchvision_is_that_of_the_torch_that_is_there(
    torch: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", {"torch": torch}.__getitem__)
    assert extras.torchvision_command().endswith(wanted)


def test_no_text_installs_the_project_by_its_name() -> None:
    # it is not on PyPI, where anybody could register it
    assert tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]["name"] == "seeact-offline"
    by_name = re.compile(r"pip install (?:-\S+ )*['\"\\]*seeact-offline(?!\S*\.whl)")
    texts = {path: path.read_text("utf-8") for path in TEXTS if not path.relative_to(REPO).parts[0].startswith(".")}
    assert [str(path.relative_to(REPO)) for path, text in texts.items() if by_name.search(text)] == []
