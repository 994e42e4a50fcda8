"""A small checkpoint for all tests, and one to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.lazily import torch
from tests.ranker.test_cross_encoder import make_checkpoint


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("deberta"))


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint that a test may spoil."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))
