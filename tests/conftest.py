"""Fixtures that several test modules share."""

from __future__ import annotations

import gc
import os
from collections import Counter
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings

from seeact_offline.files import redaction

REPO = Path(__file__).resolve().parents[1]
SHARED_DATA = REPO.parent / "shared" / "data"

# A slow machine must not turn a passing property into a failing one; in CI every run tries the same examples.
settings.register_profile("project", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("project")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the files of few tests, which take longest: a process that is left with one at the end works alone."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: tests[item.path])


def pytest_collection_finish() -> None:
    """Leaves what the imports of all files have made out of garbage collections, and makes full ones rare: with torch and transformers
    loaded each takes over half a second, a sixth of the time of quick tests."""
    gc.freeze()
    gc.set_threshold(10_000, 10, 50)


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout."""
    return REPO


@pytest.fixture(scope="session")
def shared_step() -> Path:
    """Folder with one real step: parquet under `data/`, scores, recorded replies and golden files."""
    folder = SHARED_DATA / "seeact_step"
    if not folder.is_dir():
        pytest.skip("the real step is not here: ../shared/data/seeact_step, beside the checkout, does not exist")
    return folder


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all tests' caches. `mktemp` counts the folders beside a new one each time, so they do not lie beside each other."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def own_cache(caches: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own for every test: none reads or fills the user's."""
    folder = Path(mkdtemp(dir=caches))
    monkeypatch.setenv("SEEACT_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test hides is not hidden from the next."""
    monkeypatch.setattr(redaction, "_hidden", set())
