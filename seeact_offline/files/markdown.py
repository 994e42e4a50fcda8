"""Text for people: Markdown tables that read well as plain text too, and other people's text made harmless."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence

from seeact_offline.files.redaction import redact


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its columns padded so that it reads well as plain text too."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in (header, *rows)
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def percent(value: float | None) -> str:
    """A fraction in percent to one decimal: the one rounding of all figures. Fractions that differ in a float's last digits alone,
    like 0.0125 and 1 - 0.9875, read alike; an exact half goes to the even digit."""
    # + 0.0: no negative zero
    return "-" if value is None else f"{round(100 * value, 9) + 0.0:.1f}"


def cell(text: object) -> str:
    """Any text as harmless Markdown: one line, no markup, no HTML."""
    return "".join("\\" + c if c in "\\`*[]|#" else c for c in html.escape(one_line(text), quote=False))


def one_line(text: object) -> str:
    """Any text on one line, without invisible characters."""
    visible = "".join(c for c in str(text) if c.isprintable() or c.isspace())
    return " ".join(visible.split())


def printable(text: str) -> str:
    """The text without secrets, with control, format and surrogate characters made visible so that none can steer a terminal."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"} else f"\\u{ord(c):04x}"
        for c in redact(text)
    )
