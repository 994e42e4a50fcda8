"""`lint-data`: lists the faults of a data set by name and split, and row by row; shows how like real data it is."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.cli.stats import profile_table
from seeact_offline.dataset import open_split
from seeact_offline.dataset.lint import FAULTS, Finding, count_by_fault, finding_line, lint_split
from seeact_offline.dataset.summary import StepFigures, dataset_profile, step_figures
from seeact_offline.files.markdown import table
from seeact_offline.records import InputError
from seeact_offline.scoring.report import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser, with_defaults=True)
    options.each_split(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSONL file of findings, a line a faulty row")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if any row has a fault")


def run(args: argparse.Namespace) -> int:
    dataset = args.dataset
    figures: dict[str, list[StepFigures]] = {name: [] for name in options.splits_of(dataset, args.split)}
    findings: list[Finding] = []
    for name, of_split in figures.items():
        for step, faults in lint_split(open_split(dataset, name, limit=args.limit)):
            of_split.append(step_figures(step))
            if faults:
                findings.append(Finding(step.key, name, tuple(faults)))
    if args.out is not None:
        try:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.write_text("".join(map(finding_line, findings)), encoding="utf-8")
        except OSError as error:
            raise InputError("out", sentence=f"cannot write {args.out}: {error.strerror}") from None
    rows = {name: len(of_split) for name, of_split in figures.items()}
    say(_table(findings, rows))
    say("\n" + profile_table({name: dataset_profile(of_split) for name, of_split in figures.items()}))
    flagged = len(findings)
    note(
        f"{flagged} of {counted(sum(rows.values()), 'row has', 'rows have')} a fault"
        + (f"; row by row in {args.out}" if args.out else "")
    )
    return 1 if args.strict and flagged else 0


def _table(findings: list[Finding], rows: dict[str, int]) -> str:
    counts = count_by_fault(findings)
    body = [(name, *(str(by_split[split]) for split in rows), FAULTS[name]) for name, by_split in counts.items()]
    clean = {split: n - sum(finding.split == split for finding in findings) for split, n in rows.items()}
    totals = [("rows", *map(str, rows.values()), ""), ("rows without a fault", *map(str, clean.values()), "")]
    return table(("fault", *rows, "meaning"), [*body, *totals])
