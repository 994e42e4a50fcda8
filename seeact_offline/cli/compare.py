"""`compare`: compares finished runs, paired by step and clustered by task. Asks no model and needs no data set."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import run_folder
from seeact_offline.files.markdown import printable
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.records import InputError
from seeact_offline.runs.folder import read_results
from seeact_offline.scoring.overlap import FEWEST_RUNS
from seeact_offline.scoring.paired import BREAKDOWNS
from seeact_offline.tables import figures
from seeact_offline.tables.comparison_figure import draw_comparison
from seeact_offline.tables.table_input import run_folders

if TYPE_CHECKING:
    from seeact_offline.scoring.comparison import Comparison

ENDINGS = (".json", ".md", ".tex", *figures.ENDINGS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", type=run_folder, nargs="*", metavar="RUN",
        help="runs, or a grid's folder; the first is the baseline, which is subtracted from each other",
    )  # fmt: skip
    parser.add_argument(
        "--group", type=Path, nargs="+", action="append", default=[], metavar="RUN",
        help="runs that are compared as their mean, such as the seeds of a method;"
        " repeat the option, the baseline first",
    )  # fmt: skip
    parser.add_argument(
        "--by", type=lambda text: [name.strip() for name in text.split(",")], default=[], metavar="NAME[,NAME...]",
        help=f"break down by {', '.join(BREAKDOWNS)}",
    )  # fmt: skip
    parser.add_argument("--intersect", action="store_true", help="compare only the steps that all runs have")
    parser.add_argument(
        "--detect", type=float, default=5.0, metavar="POINTS",
        help="compute the number of tasks that would show a difference of so many points (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of resamples and signs (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE",
        help=f"also write it to a file, ending in {', '.join(ENDINGS)}; a picture needs {FEWEST_RUNS} runs or more",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from seeact_offline.results.comparing import compare

    if args.out is not None and args.out.suffix not in ENDINGS:
        raise InputError("out", f"a file ending in {', '.join(ENDINGS)}", str(args.out))
    if args.group and args.runs:
        raise InputError("group", sentence="use `group` or runs, not both; a run by itself is a `group` of one")
    if len(args.group) == 1:
        raise InputError("group", sentence="name two `group` or more")
    compared: list[Sequence[Path | list[Path]]] = [args.group] if args.group else [*_by_split(args.runs)]
    if args.out is not None and len(compared) > 1:
        raise InputError("out", sentence=f"`out` needs runs of one split, and these are of {len(compared)}")
    for runs in compared:
        comparison = compare(*runs, by=args.by, intersect=args.intersect, detect=args.detect, seed=args.seed)
        if args.out is not None:
            _write(args.out, comparison)
        say(comparison.report())
    return 0


def _write(path: Path, comparison: Comparison) -> None:
    if path.suffix in figures.ENDINGS and comparison.overlap is None:
        raise InputError("out", sentence=f"a picture as `out` needs {FEWEST_RUNS} runs or more, and no `group`")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in figures.ENDINGS:
        picture = figures.drawn(draw_comparison, comparison.to_dict(), path.suffix)
        write_whole(path, lambda draft: draft.write_bytes(picture))
    elif path.suffix == ".json":
        replace_text(path, json.dumps(comparison.to_dict(), indent=2) + "\n")
    else:
        page = (
            comparison.report() if path.suffix == ".md" else "\n".join(table.latex() for table in comparison.tables())
        )
        replace_text(path, printable(page))


def _by_split(paths: Sequence[Path]) -> list[list[Path]]:
    """The runs that are named; where a folder of runs is among them, those of each split apart.

    An unfinished run in such a folder is left out with a note, and so is one that is alone in its split.
    """
    folders = {path: run_folders(path) for path in paths}
    if all(folders_inside in ([], [path]) for path, folders_inside in folders.items()):
        return [list(paths)]
    splits: dict[str, list[Path]] = {}
    for path, folders_inside in folders.items():
        for folder in folders_inside or [path]:
            if folder != path and not (folder / "results.json").is_file():
                note(f"{folder} is left out: it has no results yet")
            else:
                splits.setdefault(read_results(folder).split, []).append(folder)
    alone = [runs[0] for runs in splits.values() if len(runs) == 1]
    if len(alone) == len(splits):
        # refused as any single run is
        return [alone[:1]]
    for folder in alone:
        note(f"{folder} is left out: no other run is of its split")
    return [runs for runs in splits.values() if len(runs) > 1]
