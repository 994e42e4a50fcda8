"""`ablate-markup`: `ablate --over markup` by its older name."""

from __future__ import annotations

from seeact_offline.cli import ablate
from seeact_offline.cli.parser import Parser

run = ablate.run


def add_arguments(parser: Parser) -> None:
    ablate.add_arguments_of(parser, ["markup"])
    parser.set_defaults(over="markup")
