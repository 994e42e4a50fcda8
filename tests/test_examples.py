"""The examples in docstrings (`>>>`) come out as written, and load no heavy package."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from importlib import import_module

import pytest

from tests.documents import REPO

EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)
FILES = [
    path.relative_to(REPO) for room in ("seeact_offline", "ranker") for path in sorted((REPO / room).rglob("*.py"))
]
MODULES = [
    ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    for path in FILES
    if EXAMPLE.search((REPO / path).read_text(encoding="utf-8"))
]
HEAVY = ("torch", "transformers", "datasets", "cv2", "ray", "playwright", "pandas", "matplotlib")
LEAST = 20


def examples(module: str) -> list[doctest.DocTest]:
    return [found for found in doctest.DocTestFinder().find(import_module(module)) if found.examples]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_come_out_as_written(module: str) -> None:
    runner = doctest.DocTestRunner()
    for example in examples(module):
        said: list[str] = []
        assert runner.run(example, out=said.append).failed == 0, "".join(said)


def test_public_functions_and_classes_have_examples() -> None:
    assert sum(len(examples(module)) for module in MODULES) >= LEAST


@pytest.mark.slow
def test_the_modules_of_the_examples_load_no_heavy_package() -> None:
    asked = f"import {', '.join(MODULES)}, sys; print(*sorted({{*{HEAVY}}} & {{*sys.modules}}))"
    assert subprocess.check_output([sys.executable, "-c", asked], cwd=REPO, text=True).split() == []
