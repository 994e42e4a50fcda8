"""`ablate-markup`: `ablate --over markup` by its older name."""

from __future__ import annotations

import argparse

from seeact_offline.cli import ablate

run = ablate.run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    ablate.add_arguments_of(parser, ["markup"])
    parser.set_defaults(over="markup")
