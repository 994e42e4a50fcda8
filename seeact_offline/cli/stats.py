"""`stats`: the SeeAct paper's Table 1 for any data set, beside the paper's own figures,
or its likeness to real data."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.output import say
from seeact_offline.dataset import load_steps
from seeact_offline.dataset.summary import LIKENESS, DatasetStats, dataset_profile, dataset_stats, step_figures
from seeact_offline.files import markdown
from seeact_offline.ranking.tokenizers import Tokenizer, open_tokenizer
from seeact_offline.scoring.paper_tables import paper_table
from seeact_offline.scoring.report import counted

COUNTS = ("tasks", "steps", "domains", "subdomains", "websites")
AVERAGES = {
    "actions_a_task": "actions a task",
    "elements_a_page": "elements a page",
    "html_tokens_a_page": "HTML tokens",
    "visual_tokens": "visual tokens",
    "visual_tokens_at_full_size": "visual tokens at full size",
}
NOTES = (
    "HTML tokens: of cleaned_html, by the tokenizer {tokenizer}; figures by different tokenizers do not compare.",
    "Visual tokens: OpenAI's published rule: fitted into 2048 px, shortest side to 768 px,"
    " 170 for each tile of 512 px, and 85. It gives at most 1,445,"
    " so that the paper's figures are reached only at full size, without the two downscales.",
    "Subdomains are what the paper calls domains.",
)
WORDS_NOTE = "Words are runs of letters, up to three digits, and single marks: a stand-in that needs no download."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser, with_defaults=True)
    options.each_split(parser)
    figures = parser.add_mutually_exclusive_group()
    figures.add_argument(
        "--profile", action="store_true",
        help="show how like real pages and tasks the data are, beside the real figures",
    )  # fmt: skip
    figures.add_argument(
        "--tokenizer", default="words", metavar="NAME",
        help="words, tiktoken:ENCODING or hf:DIR_OR_ID (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(args: argparse.Namespace) -> int:
    dataset, tokenizer = args.dataset, open_tokenizer(args.tokenizer)
    # a file that names no split goes by its own name
    steps = {
        Path(dataset).stem if split == options.ALL else split: load_steps(dataset, split, limit=args.limit)
        for split in options.splits_of(dataset, args.split)
    }
    if args.profile:
        profiles = {name: dataset_profile(map(step_figures, rows)) for name, rows in steps.items()}
        ranges = {name: [figure.low, figure.high] for name, figure in LIKENESS.items()}
        say(json.dumps({"splits": profiles, "real": ranges}, indent=2) if args.json else profile_table(profiles))
        return 0
    stats = [dataset_stats(rows, name, tokenizer.count) for name, rows in steps.items()]
    # no figure of the paper stands beside the bundled sample
    paper = {} if dataset == "sample" else paper_table(1)["splits"]
    if args.json:
        splits = {of.split: {**dataclasses.asdict(of), "paper": paper.get(of.split)} for of in stats}
        say(json.dumps({"dataset": dataset, "tokenizer": tokenizer.name, "splits": splits}, indent=2))
    else:
        say(_as_text(stats, tokenizer, paper))
    return 0


def profile_table(profiles: Mapping[str, Mapping[str, float | None]]) -> str:
    """A row a figure, a column a split, and the real figures beside."""
    rows = []
    for name, real in LIKENESS.items():
        values = [profile[name] for profile in profiles.values()]
        scale, unit = (100, " %") if real.is_share else (1, "")
        ends = dict.fromkeys(f"{end * scale:,.0f}" for end in (real.low, real.high))
        remark = f" ({real.remark})" if real.remark else ""
        shown = [_average(v) if v is None or not real.is_share else f"{markdown.percent(v)} %" for v in values]
        rows.append([real.title, *shown, "-".join(ends) + unit + remark])
    return markdown.table(("figure", *map(markdown.cell, profiles), "real (paper, published rows)"), rows)


def _as_text(all_stats: list[DatasetStats], tokenizer: Tokenizer, paper: Mapping[str, Mapping[str, Any]]) -> str:
    rows = []
    notes = [note.format(tokenizer=markdown.cell(tokenizer.name)) for note in NOTES]
    notes += [WORDS_NOTE] if tokenizer.name == "words" else []
    for stats in all_stats:
        split = markdown.cell(stats.split)
        counts = [f"{getattr(stats, name):,}" for name in COUNTS]
        rows.append([split, *counts, *(_average(getattr(stats, name)) for name in AVERAGES)])
        if theirs := paper.get(stats.split):
            counts = [f"{theirs['tasks']:,}", "-", "-", str(theirs["domains"]), str(theirs["websites"])]
            averages = [theirs[f"avg_{name}"] for name in ("actions", "elements", "html_tokens", "visual_tokens")]
            averages.insert(3, None)
            rows.append([f"{stats.split}, paper", *counts, *map(_average, averages)])
        if stats.faulty_rows:
            names = ", ".join(f"{name} {count}" for name, count in stats.faults.items())
            of = counted(stats.steps, "row")
            notes.append(f"{split}: {stats.faulty_rows} of {of} with faults ({names}); they are counted all the same.")
    table = markdown.table(("split", *COUNTS, *AVERAGES.values()), rows)
    return "\n\n".join([table, "\n".join(notes)])


def _average(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"
