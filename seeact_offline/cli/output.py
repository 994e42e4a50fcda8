"""What reaches the terminal. Page text and model text are untrusted: neither control characters nor secrets pass."""

from __future__ import annotations

import sys

from seeact_offline.files.markdown import printable


def say(text: str = "") -> None:
    """One piece of output on standard output."""
    print(printable(text))


def note(text: str) -> None:
    """One remark on standard error."""
    print(printable(text), file=sys.stderr, flush=True)


def fail(text: str) -> int:
    """An error in one sentence on standard error; returns the exit status 2."""
    note(f"error: {' '.join(text.split())}")
    return 2
