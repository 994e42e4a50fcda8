"""Notebooks run, and print what stands in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lazily import nbformat
from tests.notebooks import PATHS, executed, texts

pytestmark = pytest.mark.slow

LARGEST = 600_000
"""Bytes of a notebook with its outputs."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_stands_in_it(path: Path) -> None:
    stored = texts(nbformat.read(path, as_version=4))
    assert stored
    assert list(map(settled, texts(executed(path)))) == list(map(settled, stored)), "run: make notebooks"


def settled(text: str) -> str:
    """Without what differs between two executions: addresses in memory and temporary folders. Digests of results are the same."""
    return re.sub(r"0x[0-9a-f]+|/tmp/\w+", "...", text)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_small(path: Path) -> None:
    assert path.stat().st_size <= LARGEST
