"""Options of the model from variables: SEEACT_MODEL, SEEACT_BASE_URL and so on, of the
process or of the file `.env`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence

from seeact_offline.models.address import variable
from seeact_offline.records import InputError


def apply_variables(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Makes the variables' values the parser's defaults; options that are typed win. Returns the assignments as a shell
    takes them, each with a blank behind it. Raises InputError for a value that the option does not take, and
    ModelSpecError for an address of `.env` where the key is the environment's."""
    typed, taken = {word.partition("=")[0] for word in words}, ""
    for action in parser._actions:
        name = getattr(action, "variable", "")
        if not name or typed & {*action.option_strings} or not (text := variable(name)):
            continue
        if name.endswith("BASE_URL"):
            from seeact_offline.models.address import check_key_goes_with

            check_key_goes_with(name)
        try:
            value = action.type(text) if callable(action.type) else text
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            raise InputError(name, sentence=f"{name}: {error}") from None
        if action.choices is not None and value not in action.choices:
            raise InputError(name, f"one of {', '.join(map(str, action.choices))}", text)
        parser.set_defaults(**{action.dest: value})
        action.required = False
        taken += f"{name}={shlex.quote(text)} "
    return taken
