"""Fixtures that several test modules share."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings

from seeact_offline.files import redaction
from tests.hub_server import HubServer

REPO = Path(__file__).resolve().parents[1]
SHARED_DATA = REPO.parent / "shared" / "data"
QUICK_S, OVERTIME = 2.0, "overtime"
"""Seconds of the processor from which on a test is to be marked as slow, and their name in a report."""

# A slow machine must not turn a passing property into a failing one; in CI every run tries the same examples.
settings.register_profile("project", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True)
settings.load_profile("project")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with the files of few tests, which take longest: a process that is left with one at the end works alone."""
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: tests[item.path])


_too_long: dict[str, float] = {}
"""Tests over `QUICK_S` that are not marked as slow, and their seconds, in the process that runs them."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Measures the processor's time, that of processes which the test has waited for included: it depends little on what else runs."""
    began = sum(os.times()[:4])
    yield
    seconds = sum(os.times()[:4]) - began
    if seconds > QUICK_S and item.get_closest_marker("slow") is None:
        item.user_properties.append((OVERTIME, seconds))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, seconds in report.user_properties:
        if name == OVERTIME:
            _too_long[report.nodeid] = float(str(seconds))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names what makes `make quick` slow. A note and no failure, as another machine may be the reason."""
    for test, seconds in sorted(_too_long.items()):
        terminalreporter.write_line(f"over {QUICK_S:g} s and not marked as slow: {test}, {seconds:.1f} s")


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


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A hub of this test's own, for its client in this process."""
    from huggingface_hub import constants

    from seeact_offline.files import hub as client

    with HubServer() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
        monkeypatch.setattr(client, "ANSWER_S", 1.0)
        yield server
    client._open_repo.cache_clear()
    client._unreachable.cache_clear()


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test hides is not hidden from the next."""
    monkeypatch.setattr(redaction, "_hidden", set())
