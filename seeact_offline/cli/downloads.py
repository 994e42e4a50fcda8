"""Progress of downloads from the hub: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from seeact_offline.cli.output import live_console, note
from seeact_offline.files.hub import Listener

LINE_EVERY_S = 10.0


class Downloads(Listener):
    """Shows each file that is fetched."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def note(self, text: str) -> None:
        note(text)

    @contextmanager
    def fetching(self, name: str, n_bytes: int, is_ahead: bool) -> Iterator[Callable[[int], None]]:
        if not sys.stderr.isatty():
            # one that is waited for may have been begun ahead
            if name not in self._named:
                note(f"fetching {name}, {_megabytes(n_bytes)}")
            self._named.add(name)
            yield _lines(name, n_bytes)
        elif is_ahead:
            # the steps that are asked meanwhile have the bar
            yield lambda n_more: None
        else:
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
            from rich.progress import TransferSpeedColumn as SpeedColumn

            name_column = TextColumn("fetching {task.description}", markup=False)
            columns = name_column, BarColumn(), DownloadColumn(), SpeedColumn(), TimeRemainingColumn()
            with Progress(*columns, console=live_console(), transient=True) as bar:
                task = bar.add_task(name.rpartition("/")[2], total=n_bytes)
                yield lambda n_more: bar.advance(task, n_more)


def _lines(name: str, n_bytes: int) -> Callable[[int], None]:
    """Prints lines while a large file takes its time."""
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
