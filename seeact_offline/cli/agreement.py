"""`agreement`: compares stored verdicts of judges with labels. Asks no model and needs no trajectories."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from seeact_offline.cli.output import say
from seeact_offline.files.markdown import printable
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.records import InputError
from seeact_offline.tables import figures
from seeact_offline.tables.document import ENDINGS, TableDocument
from seeact_offline.trajectories.agreement_tables import agreement_document, draw_agreement, panel_table
from seeact_offline.trajectories.judge_agreement import NO_VERDICT, Agreements, Panel, agreements, judge_panel
from seeact_offline.trajectories.judgements import LABELS, Judgement, read_judgements

FORMS = {ending: form for form, ending in ENDINGS.items()}
ALL = (".json", *FORMS, *figures.ENDINGS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "verdicts", type=Path, nargs="+", metavar="VERDICTS",
        help="folders of `judge`, JSONL or CSV files of verdicts, or trajectories that hold verdicts of models",
    )  # fmt: skip
    parser.add_argument(
        "--labels",
        type=Path,
        metavar="LABELS",
        help="a JSONL or CSV file of labels, or trajectories that hold labels (default: those in the folders of "
        "`judge`)",
    )
    parser.add_argument(
        "--no-verdict", choices=NO_VERDICT, default=NO_VERDICT[0],
        help="judgements without a verdict: left out and counted, or failures (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of resamples (default: %(default)s)")
    parser.add_argument(
        "--out", type=Path, metavar="FILE|DIR",
        help=f"also write it to a file, ending in {', '.join(ALL)}; all into a folder",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    is_folder = args.out is not None and (args.out.is_dir() or not args.out.suffix)
    if args.out is not None and not is_folder and args.out.suffix not in ALL:
        raise InputError("out", f"a file ending in {', '.join(ALL)}, or a folder", str(args.out))
    verdicts = [judgement for path in args.verdicts for judgement in read_judgements(path, "verdicts")]
    labels = read_judgements(args.labels, "labels") if args.labels else _labels_of_folders(args.verdicts)
    agreement = agreements(verdicts, labels, no_verdict=args.no_verdict, seed=args.seed)
    panel = judge_panel(verdicts, labels, no_verdict=args.no_verdict, seed=args.seed)
    document = agreement_document(agreement, panel)
    say(document.markdown().removesuffix("\n"))
    if args.out is not None:
        paths = (
            [args.out / f"agreement{ending}" for ending in ALL if ending not in (".pdf", ".svg")]
            if is_folder
            else [args.out]
        )
        paths[0].parent.mkdir(parents=True, exist_ok=True)
        for path in paths:
            _write(path, agreement, panel, document)
            say(f"Written: {path}")
    return 0


def _labels_of_folders(verdicts: Sequence[Path]) -> list[Judgement]:
    """The labels that folders of `judge` hold; those that several share count once. Raises InputError for none."""
    folders = [path for path in verdicts if (path / LABELS).is_file()]
    if not folders:
        raise InputError("labels", sentence="no folder of verdicts holds labels; name them with --labels")
    labels = [label for path in folders for label in read_judgements(path, "labels")]
    return list({(label.trajectory, label.judge, label.source): label for label in labels}.values())


def _write(path: Path, agreement: Agreements, panel: Panel | None, document: TableDocument) -> None:
    if path.suffix in figures.ENDINGS:
        picture = figures.drawn(draw_agreement, asdict(agreement), path.suffix)
        write_whole(path, lambda draft: draft.write_bytes(picture))
    elif path.suffix == ".json":
        together = {} if panel is None else {"panel": asdict(panel)}
        replace_text(path, json.dumps({**asdict(agreement), **together}, indent=2) + "\n")
    else:
        text = document.text(FORMS[path.suffix], standalone=path.suffix == ".html")
        # LaTeX has the first table of a document alone
        also = f"\n{panel_table(panel).latex()}" if panel is not None and path.suffix == ".tex" else ""
        replace_text(path, printable(text + also))
