"""What reaches the terminal. Page text and model text are untrusted: neither control characters nor secrets pass."""

from __future__ import annotations

import sys
import unicodedata

from seeact_offline.redaction import redact


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


def printable(text: str) -> str:
    """The text without secrets; control, format and surrogate characters made visible, so that none can steer a terminal."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else f"\\u{ord(c):04x}"
        for c in redact(text)
    )
