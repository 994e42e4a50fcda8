"""Output to the terminal. Page text and model text are untrusted: control characters and secrets are replaced."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TextIO, cast

from seeact_offline.files.hub import Listener
from seeact_offline.files.markdown import printable

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_ERROR = 2000
"""Largest error in characters: its names and values may have any length."""

LINE_EVERY_S = 10.0
"""Between the lines that stand for a bar."""


class LastingStream:
    """A standard stream that outlives its reader: once it cannot be written (a closed
    pipe, a full disk), text is dropped.

    A run is worth more than its output, so printing never ends it.
    """

    def __init__(self, stream: TextIO) -> None:
        self.error: OSError | None = None
        """The reason why text is dropped; None while it is printed."""
        self._stream = stream
        self.is_quiet = False
        """True where remarks and progress are left out."""

    def isatty(self) -> bool:
        return self._stream.isatty() and not self.is_quiet

    def write(self, text: str) -> int:
        if self.error is None:
            try:
                self._stream.write(text)
            except UnicodeEncodeError as error:
                # an encoding that lacks some of a page's characters, such as cp1252
                self.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
            except OSError as error:
                self._give_up(error)
        return len(text)

    def flush(self) -> None:
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._give_up(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _give_up(self, error: OSError) -> None:
        self.error = error
        with suppress(OSError, ValueError):
            # the stream's buffer must not raise again when the interpreter flushes it at exit
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, self._stream.fileno())
            os.close(devnull)


@contextmanager
def lasting_output() -> Iterator[None]:
    """Makes the standard streams lasting inside. Reports lost output at the end, unless its reader has left."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        # a stream that was closed before we began is None
        streams = [LastingStream(stream or nowhere) for stream in before]
        sys.stdout, sys.stderr = (cast(TextIO, stream) for stream in streams)
        try:
            yield
        finally:
            sys.stdout.flush()
            if (error := streams[0].error) is not None and error.errno != errno.EPIPE:
                note(f"standard output could not be written: {error.strerror}")
            sys.stderr.flush()
            sys.stdout, sys.stderr = before


def say(text: str = "") -> None:
    """Prints text to standard output."""
    print(printable(text))


def note(text: str) -> None:
    """Prints a remark to standard error."""
    if not (isinstance(sys.stderr, LastingStream) and sys.stderr.is_quiet):
        print(printable(text), file=sys.stderr, flush=True)


def silence(is_quiet: bool) -> None:
    """Leaves out remarks and progress, where the command's streams are in place."""
    if isinstance(sys.stderr, LastingStream):
        sys.stderr.is_quiet = is_quiet


def fail(text: str) -> int:
    """Prints an error in one sentence to standard error, a long one without its middle; returns the exit status 2."""
    # secrets first: half of one would not be recognised
    sentence = " ".join(printable(text).split())
    half = LONGEST_ERROR // 2
    short = sentence if len(sentence) <= LONGEST_ERROR else f"{sentence[:half]} [...] {sentence[-half:]}"
    print(f"error: {short}", file=sys.stderr, flush=True)
    return 2


@lru_cache(1)
def live_console() -> Console:
    """The terminal of live lines: on one of its own each would overwrite the others."""
    from rich.console import Console

    return Console(stderr=True)


class Downloads(Listener):
    """Shows each file that is fetched from the hub: a live bar on a terminal, plain lines elsewhere."""

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
