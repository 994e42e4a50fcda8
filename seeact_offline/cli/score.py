"""`score`: the finished predictions of a run again, under this or another protocol. Asks no model and needs no scores."""

from __future__ import annotations

import argparse
from pathlib import Path

from seeact_offline import scoring, tables
from seeact_offline.cli.evaluate import add_spread, score_all
from seeact_offline.cli.output import note, printable, say
from seeact_offline.cli.strategies import UNGROUNDED
from seeact_offline.dataset import fingerprint, load_steps
from seeact_offline.protocols import find_protocol
from seeact_offline.records import InputError
from seeact_offline.runlog import RunDirectory, read_manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run directory")
    parser.add_argument("--protocol", metavar="NAME", help="scoring rules: seeact or mindact (default: the run's)")
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID", help="where the run's data are now (default: where they were)"
    )
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="where scores and report go (default: the run directory)"
    )


def run(args: argparse.Namespace) -> int:
    settings = read_manifest(args.out)["settings"]
    protocol = find_protocol(args.protocol or settings["protocol"], grounded=settings.get("grounding") != UNGROUNDED)
    dataset, split = args.dataset or settings["dataset"], settings["split"]
    if fingerprint(dataset, split) != settings["dataset_fingerprint"]:
        raise InputError(f"--dataset: expected the data that {args.out} was run on, found other rows in {dataset}")
    known = RunDirectory(args.out).load()
    truths = [step.truth for step in load_steps(dataset, split, limit=settings["limit"])]
    reached = [truth for truth in truths if truth.key in known]
    if len(reached) < len(truths):
        note(f"{len(truths) - len(reached)} of {len(truths)} steps have no prediction and are left out")
    predictions = [known[truth.key] for truth in reached]
    scores, results = score_all(predictions, reached, protocol, settings)
    results["complete"] = len(reached) == len(truths)
    add_spread(results, args.out, reached, protocol)
    rows = scoring.rows(scores, predictions, reached)
    out = args.to or args.out
    out.mkdir(parents=True, exist_ok=True)
    RunDirectory(out).write_scores(rows, results, printable(tables.report(results, rows)))
    say(tables.short(results))
    return 1 if any(not p.ran for p in predictions) or not results["complete"] else 0
