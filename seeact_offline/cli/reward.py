"""`reward`: scores finished tasks of VisualWebArena's or WebArena's task files by programs over
answers, addresses and stored pages."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from pathlib import Path

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.files.whole import replace_text
from seeact_offline.models import model_name, usage
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig

SITES = ("CLASSIFIEDS", "REDDIT", "SHOPPING", "SHOPPING_ADMIN", "GITLAB", "WIKIPEDIA", "MAP", "HOMEPAGE")
"""Sites of the task files: `__NAME__` in a file is replaced by the environment variable
of this name, where it is set."""
REWARDS = "rewards.jsonl"
MAX_TOKENS = 768


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config", type=Path, required=True, metavar="TASKS.json",
        help=f"task file: a list of tasks; __NAME__ in it is replaced by $NAME ({', '.join(SITES)})",
    )  # fmt: skip
    parser.add_argument(
        "--answers", type=Path, required=True, metavar="FILE",
        help="JSONL file of task_id, answer and perhaps the last page's address",
    )  # fmt: skip
    parser.add_argument("--states", type=Path, metavar="DIR", help="folder of stored pages: TASK_ID/state.json")
    parser.add_argument(
        "--model", metavar="PROVIDER/NAME", help=f"model that judges what a program cannot: {usage()} (default: none)"
    )
    parser.add_argument("--base-url", metavar="URL", help="URL of an OpenAI-compatible server")
    parser.add_argument(
        "--max-cost", type=options.positive_float, metavar="USD", help="stop before the model costs more than this"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help=f"folder for {REWARDS} (default: none; runs/reward-... with --model)"
    )


def run(args: argparse.Namespace) -> int:
    # not before they are needed, so that --help stays quick
    from seeact_offline.runs.folder import RunFolder
    from seeact_offline.runs.model_settings import model_settings
    from seeact_offline.runs.opening import safe_name
    from seeact_offline.trajectories.rewarding import reasons, reward_files

    sites = {name: os.environ[name].rstrip("/") for name in SITES if os.environ.get(name)}
    out = args.out
    if args.model is None:
        for name in ("base_url", "max_cost"):
            if getattr(args, name) is not None:
                raise InputError(name, sentence=f"`{name}` needs `model`")
    elif out is None:
        out = Path("runs") / "-".join(map(safe_name, ("reward", args.config.stem, model_name(args.model))))
    with ExitStack() as stack:
        model = None
        if args.model is not None:
            folder = RunFolder(out)
            config = EvalConfig(
                model=args.model, base_url=args.base_url, max_cost=args.max_cost, max_tokens=MAX_TOKENS, out=out
            )
            settings = model_settings(config, folder)
            settings.check_limit()
            stack.enter_context(folder.alone())
            model = settings.open(stack.enter_context(settings.spending(folder)))
        rewards = reward_files(args.config, args.answers, args.states, model=model, sites=sites)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        replace_text(out / REWARDS, "".join(f"{line}\n" for line in rewards.lines()))
    say(rewards.table.markdown())
    for name, meaning in reasons(rewards).items():
        say(f"- {name}: {meaning}")
    say("\nTasks whose score depends on the rules:\n" if rewards.differences else "\nNo score depends on the rules.")
    for line in rewards.differences:
        say(f"- {line}")
    if out is not None:
        note(f"task by task in {out / REWARDS}")
    return 1 if rewards.failed else 0
