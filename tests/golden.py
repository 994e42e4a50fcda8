"""Golden files: commands carried out in a fresh folder, and a SHA-256 of all that they write, without what differs by nature.

    python -m tests.golden DIR                                # carry out, write DIR/golden.json
    python -m tests.golden DIR2 --against DIR/golden.json     # and list what differs; exit status 1 if anything does

The commands stand in `golden.yaml`. Each works in its own folder, `DIR/played/NAME`, with a cache of its own, names the files of another as
`../OTHER/...`, and begins once that one has ended. `DIR/clean` holds the texts that are hashed,
`DIR/seconds.txt` the processor's time of each.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import multiprocessing
import os
import re
import shlex
import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from string import Template
from typing import Any

import yaml

REPO = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_suffix(".yaml")
LOADED = [
    "seeact_offline.cli",
    "tests.golden_steps",
    "numpy",
    "lxml.etree",
    "PIL.Image",
    "pyarrow.parquet",
    "matplotlib.figure",
]
"""Imported once, in the process from which those of the commands are forked."""
UNHASHED = (".lock", "-shm", "-wal")
"""Endings of files that hold nothing of their own."""
UNORDERED = {"calls.jsonl", "spending.jsonl"}
"""Names of files whose lines stand in the order in which calls end."""
DIFFERS = [(re.compile(pattern), text) for pattern, text in (
    (r'("(?:run|git_commit|python)": ?)"[0-9a-f.]+"', r'\1"*"'),
    (r'("(?:seconds|date|model_s|browser_s)": ?)("[^"]*"|[\d.e-]+)', r"\1*"),
    (r'"packages": \{[^}]*\}', '"packages": *'),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?", "*"),
    # a stored reply's days, and the digest of a row that holds the run's id
    (r"'(\d{4}-\d\d-\d\d|[0-9a-f]{16})'", "'*'"),
    (r"\b[0-9a-f]{40}\b", "*"),
    (r"(?m)^(\| (?:Python|seeact-offline) +\|) [\d.]+", r"\1 *"),
    # a table is as wide as the command and the paths in it
    (r" {2,}\|", " |"),
    (r"-{4,}", "---"),
    (r" --concurrency \d+", ""),
    (r"(?m)^.*\d+/\d+ .*\d/s .*\n", ""),
    (r"(?m)^\d+( steps are done already)", r"*\1"),
)]  # fmt: skip
"""What differs by nature in a text, and what stands for it."""


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the table."""

    group: str
    name: str
    steps: tuple[tuple[str, ...], ...]
    """Words behind `seeact-offline`, or behind the `@` of a function of `golden_steps`."""

    @property
    def needs(self) -> set[str]:
        """Names of the commands whose files it reads."""
        return set(re.findall(r"\.\./([\w.@+-]+)", " ".join(word for step in self.steps for word in step)))


def read_table(table: Mapping[str, Any], **values: str) -> Iterator[Command]:
    """Yields the commands in the table's order."""
    for name, text in table["words"].items():
        values[name] = Template(text).substitute(values)
    for group in [name for name in table if name != "words"]:
        for names, text in table[group].items():
            for name in str(names).split(","):
                words = Template(text).substitute(values).replace("%", name.rpartition("@")[0] or name)
                yield Command(group, name, tuple(tuple(shlex.split(step)) for step in words.split(" ; ")))


def chosen(commands: Sequence[Command], names: Sequence[str]) -> list[Command]:
    """The commands of these names or groups, each behind those whose files it names."""
    named, order = {command.name: command for command in commands}, dict[str, Command]()

    def add(command: Command) -> None:
        for need in sorted(command.needs - order.keys()):
            add(named[need])
        order[command.name] = command

    for command in commands:
        if {command.name, command.group} & {*names}:
            add(command)
    return list(order.values())


def carry_out(command: Command, folder: Path) -> None:
    """Carries out a command in its own folder, `folder/played/NAME`, and cleans what it has written there into `folder/clean/NAME`."""
    work = folder / "played" / command.name
    work.mkdir(parents=True)
    os.chdir(work)
    os.environ["SEEACT_CACHE"] = str(folder / "caches" / command.name)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    for step in command.steps:
        status = _status(step)
        with open("status", "a") as file:
            file.write(f"{status} ")
    for name in files_of(work):
        path = folder / "clean" / command.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(cleaned(work / name, folder))
    with open(folder / "seconds.txt", "a") as file:
        file.write(f"{sum(os.times()[:4]):6.1f} {command.name}\n")


def _status(step: Sequence[str]) -> int | str:
    from seeact_offline.cli import main
    from tests import golden_steps

    try:
        return getattr(golden_steps, step[0][1:])(*step[1:]) or 0 if step[0][0] == "@" else main(step)
    except SystemExit as error:
        return error.code or 0
    except Exception as error:
        print(f"{step[0]}: {type(error).__name__}: {error}", file=sys.stderr)
        return type(error).__name__


def files_of(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(UNHASHED)
    }


def cleaned(path: Path, folder: Path = REPO) -> str:
    """A file as text, without what differs by nature: rows of a database or a parquet file, the digest of a picture's pixels or of other bytes."""
    if path.suffix in {".sqlite", ".db"}:
        with sqlite3.connect(path) as database:
            tables = [
                name
                for (name,) in database.execute("select name from sqlite_master where type = 'table' order by name")
            ]
            text = "\n".join(
                f"{name} {row}"
                for name in tables
                for row in sorted(map(repr, database.execute(f'select * from "{name}"')))
            )
    elif path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        text = "\n".join([str(table.schema.metadata), *(json.dumps(row, default=_digest) for row in table.to_pylist())])
    elif path.suffix in {".png", ".jpg", ".jpeg", ".webp"}:
        from PIL import Image

        with Image.open(path) as image:
            text = f"{image.mode} {image.size} {_digest(image.tobytes())}"
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            text = _digest(path.read_bytes())
    text = text.replace(str(folder), "<folder>").replace(str(REPO), "<repo>")
    for pattern, replacement in DIFFERS:
        text = pattern.sub(replacement, text)
    return "".join(sorted(text.splitlines(keepends=True))) if path.name in UNORDERED else text


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def run_all(commands: Sequence[Command], folder: Path, jobs: int) -> None:
    """Carries out all commands, so many at once, each in a process of its own and after those whose files it names."""
    for name in [name for name in os.environ if name.startswith(("SEEACT_", "OPENAI_"))]:
        del os.environ[name]
    os.environ |= {
        "PYTHONPATH": str(REPO),
        "COLUMNS": "100",
        "TZ": "UTC",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(LOADED)
    ended: dict[str, Future[None]] = {}

    def run(command: Command) -> None:
        for need in command.needs:
            ended[need].result()
        process = processes.Process(target=carry_out, args=(command, folder))
        process.start()
        process.join()

    with ThreadPoolExecutor(jobs) as pool:
        for command in commands:
            ended[command.name] = pool.submit(run, command)


def golden_of(folder: Path) -> dict[str, dict[str, str]]:
    """The exit statuses of each command, and the digest of each cleaned file."""
    clean = folder / "clean"
    texts = {name: (clean / name).read_text() for name in sorted(files_of(clean))}
    status = {path.parent.name: path.read_text().strip() for path in sorted(clean.glob("*/status"))}
    return {"status": status, "files": {name: _digest(text.encode()) for name, text in texts.items()}}


def differences(ours: Path, theirs: Path) -> Iterator[str]:
    """Yields each file of our commands that is not the same, with the first lines that differ."""
    golden = [json.loads(path.read_text()) for path in (ours, theirs)]
    new, old = (
        {name: digest for name, digest in one["files"].items() if name.split("/")[0] in golden[0]["status"]}
        for one in golden
    )
    for name in sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name)):
        # a JSON value a line: lines of files are long
        before, after = (
            re.sub(r',(?=["{ ])', ",\n", path.read_text()).splitlines()
            if (path := side.parent / "clean" / name).exists()
            else []
            for side in (theirs, ours)
        )
        kind = "gone" if name not in new else "new" if name not in old else "differs"
        yield "\n".join(
            [
                f"{kind}: {name}",
                *(line[:300] for line in islice(difflib.unified_diff(before, after, lineterm="", n=1), 2, 16)),
            ]
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR", help="new or empty")
    parser.add_argument(
        "--against", type=Path, metavar="GOLDEN.json", help="of another tree; its cleaned texts stand beside it"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="GROUP|NAME",
        help="core, real, torch, browser, or a command and those that it needs (default: core, real)",
    )
    parser.add_argument("--real", type=Path, metavar="DIR", help="folder of real data, for the group real")
    parser.add_argument("--concurrency", default="4", help="of the commands that ask a model")
    parser.add_argument("--jobs", type=int, default=2, help="commands at once")
    args = parser.parse_args()
    folder = args.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    real = args.real and args.real.resolve()
    table = yaml.safe_load(TABLE.read_text())
    commands = chosen(
        list(read_table(table, concurrency=args.concurrency, real=str(real))), args.only or ["core", "real"]
    )
    began = time.monotonic()
    run_all([command for command in commands if real or command.group != "real"], folder, args.jobs)
    golden = golden_of(folder)
    (folder / "golden.json").write_text(json.dumps(golden, indent=1))
    print(
        f"{len(golden['status'])} commands, {len(golden['files'])} files, {time.monotonic() - began:.0f} s: {folder / 'golden.json'}"
    )
    found = list(differences(folder / "golden.json", args.against)) if args.against else []
    print("\n\n".join(found) or "no differences" if args.against else "", end="\n" if args.against else "")
    return bool(found)


if __name__ == "__main__":
    raise SystemExit(main())
