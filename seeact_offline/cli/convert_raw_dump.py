"""`convert-raw-dump`: Mind2Web task files joined with the screenshots of the raw dump, as parquet in the hub's layout."""

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
"""Problems of a name that are told one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dump", type=Path, metavar="DUMP_DIR", help="holds ANNOTATION_ID/processed/screenshot.json, at once or in task/"
    )
    parser.add_argument(
        "tasks", type=Path, metavar="TASKS_DIR", help="holds Mind2Web's JSON files, in folders by split"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the data set; parquet goes to DIR/data")
    parser.add_argument("--split", metavar="NAME", help="of all the files (default: what their folder is called)")


def run(args: argparse.Namespace) -> int:
    for name, folder in (("DUMP_DIR", args.dump), ("TASKS_DIR", args.tasks)):
        if not folder.is_dir():
            raise InputError(name, "a folder", repr(str(folder)))
    reports = convert(args.dump, args.tasks, args.out, args.split, _Teller())
    say(_summary(reports))
    return 1 if any(report.problems for report in reports) else 0


class _Teller:
    """Tells the first problems of each name as they come, so that a hundred thousand of them stay readable."""

    def __init__(self) -> None:
        self._told: Counter[str] = Counter()

    def __call__(self, problem: Problem) -> None:
        self._told[problem.name] += 1
        if self._told[problem.name] <= NAMED:
            note(" ".join(str(problem).split()))
        elif self._told[problem.name] == NAMED + 1:
            note(f"{problem.name}: further ones are only counted")


def _summary(reports: Sequence[SplitReport]) -> str:
    header = ("split", "tasks", "rows", "with screenshot", "problems", "file")
    rows = [
        (
            r.split,
            str(r.tasks),
            str(r.rows),
            str(r.pictures),
            str(sum(r.problems.values())),
            markdown.cell(r.path or "-"),
        )
        for r in reports
    ]
    return "\n\n".join([markdown.table(header, rows), *_problems(reports)])


def _problems(reports: Sequence[SplitReport]) -> list[str]:
    rows = [
        (report.split, name, str(report.problems[name]), meaning)
        for report in reports
        for name, meaning in PROBLEMS.items()
        if report.problems.get(name)
    ]
    return [markdown.table(("split", "problem", "count", "meaning"), rows)] if rows else []
