"""Progress of downloads from the hub: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seeact_offline.cli.output import note
from seeact_offline.files.hub import Listener

LINE_EVERY_S = 10.0


class Downloads(Listener):
    """Shows each file that is fetched."""

    def note(self, text: str) -> None:
        note(text)

    @contextmanager
    def fetching(self, name: str, n_bytes: int, is_ahead: bool) -> Iterator[Callable[[int], None]]:
        if not sys.stderr.isatty():
            yield _lines(name, n_bytes)
        elif is_ahead:
            # the steps that are asked meanwhile have the bar
            yield lambda n_more: None
        else:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
            from rich.progress import TransferSpeedColumn as SpeedColumn

            name_column = TextColumn("fetching {task.description}", markup=False)
            columns = name_column, BarColumn(), DownloadColumn(), SpeedColumn(), TimeRemainingColumn()
            with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
                task = bar.add_task(name.rpartition("/")[2], total=n_bytes)
                yield lambda n_more: bar.advance(task, n_more)


def _lines(name: str, n_bytes: int) -> Callable[[int], None]:
    """Prints a line at the beginning, and others while a large file takes its time."""
    note(f"fetching {name}, {_megabytes(n_bytes)}")
    began = last = time.monotonic()
    done = 0

    def hear(n_more: int) -> None:
        nonlocal last, done
        done += n_more
        now = time.monotonic()
        if now - last > LINE_EVERY_S and done:
            last, rate = now, done / (now - began)
            left = f"{(n_bytes - done) / rate:.0f} s left"
            note(f"{name}: {_megabytes(done)} of {_megabytes(n_bytes)}  {_megabytes(rate)}/s  {left}")

    return hear


def _megabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:.1f} MB"
