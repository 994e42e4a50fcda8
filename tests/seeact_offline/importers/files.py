"""Files of other programs, made small."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seeact_offline.importers import IMPORTERS, read
from seeact_offline.importers.importer import ImportedAnswers, Source
from seeact_offline.records import Prediction, Truth


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def read_as(name: str, **paths: Path) -> ImportedAnswers:
    return read(IMPORTERS[name], {argument: Source(argument, path) for argument, path in paths.items()})


def said(found: ImportedAnswers, step: str, **truth: Any) -> Prediction:
    """What the file says of the step `A_B`."""
    given = {"op": "CLICK", "value": "", "positives": frozenset({"7"})} | truth
    return found.answers[step](Truth(*step.split("_"), **given))


def problems(found: ImportedAnswers) -> list[str]:
    return sorted(problem.name for problem in found.problems)
