"""No reader of replies takes more than linear time over a megabyte of text that was made to slow it."""

from __future__ import annotations

import argparse
import random

from benchmarks.frame import Line

TEXTS = 2
"""Texts a reader, drawn for each one."""
LARGEST = 1 << 20
"""Characters."""


def measure(options: argparse.Namespace) -> list[Line]:
    """Reads each text at a megabyte and at half of it."""
    from tests.growth import MOST, growth, readers, texts

    worst, where, n_read = 0.0, "", 0
    for name, reader in readers().items():
        of_reader = texts(reader)
        for text in random.Random(name).sample(of_reader, min(TEXTS, len(of_reader))):
            ratio = growth(reader.read, text, LARGEST)
            n_read += 1
            if ratio > worst:
                worst, where = ratio, f"{name}, {text!r}"[:120]
    print(f"{n_read} texts; time grew most with: {where}")
    return [Line("growth of time, 0.5 to 1 MB of text", worst, "times", at_most=MOST)]
