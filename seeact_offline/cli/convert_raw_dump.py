"""`convert-raw-dump`: Mind2Web task files joined with the screenshots of the raw dump,
as parquet in the hub's layout."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from seeact_offline.cli.output import note, say
from seeact_offline.dataset.raw_dump import PROBLEMS, Problem, SplitReport, convert
from seeact_offline.files import markdown
from seeact_offline.records import InputError

NAMED = 20
"""Problems of a name that are printed one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dump", type=Path, metavar="DUMP_DIR",
        help="folder with ANNOTATION_ID/processed/screenshot.json, directly or in task/",
    )  # fmt: skip
    parser.add_argument(
        "tasks", type=Path, metavar="TASKS_DIR", help="folder with Mind2Web's JSON files, in folders by split"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="data set to write; parquet files go to DIR/data"
    )
    parser.add_argument("--split", metavar="NAME", help="split of all files (default: the name of their folder)")


def run(args: argparse.Namespace) -> int:
    for name, folder in (("DUMP_DIR", args.dump), ("TASKS_DIR", args.tasks)):
        if not folder.is_dir():
            raise InputError(name, "a folder", repr(str(folder)))
    reports = convert(args.dump, args.tasks, args.out, args.split, _ProblemPrinter())
    say(_summary(reports))
    return 1 if any(report.problems for report in reports) else 0


class _ProblemPrinter:
    """Prints the first problems of each name as they come, so that a hundred thousand of them stay readable."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def __call__(self, problem: Problem) -> None:
        self._counts[problem.name] += 1
        if self._counts[problem.name] <= NAMED:
            note(" ".join(str(problem).split()))
        elif self._counts[problem.name] == NAMED + 1:
            note(f"{problem.name}: further ones are only counted")


def _summary(reports: Sequence[SplitReport]) -> str:
    header = ("split", "tasks", "rows", "with screenshot", "problems", "file")
    rows = [
        (r.split, *map(str, (r.tasks, r.rows, r.pictures, sum(r.problems.values()))), markdown.cell(r.path or "-"))
        for r in reports
    ]
    problems = [
        (report.split, name, str(report.problems[name]), meaning)
        for report in reports
        for name, meaning in PROBLEMS.items()
        if report.problems.get(name)
    ]
    tables = [markdown.table(header, rows)]
    tables += [markdown.table(("split", "problem", "count", "meaning"), problems)] if problems else []
    return "\n\n".join(tables)
