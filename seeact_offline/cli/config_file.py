"""Options from elsewhere than the command line, which wins where both name one: the file of `--config`, and for those
of the model variables, of the process or of the file `.env`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.files.formats import short
from seeact_offline.files.named import read_settings
from seeact_offline.records import InputError, did_you_mean

if TYPE_CHECKING:
    from seeact_offline.grounding.strategy import Strategy


def apply_config(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Makes the file's values the parser's defaults. Raises InputError for an unknown option, an unreadable file, and
    options that exclude each other, be both in the file or one of them typed."""
    path = _named(words).config
    if path is None:
        # the parser says that its value is missing
        return
    values = read_settings("config", path)
    options = {name.lstrip("-"): action for action in parser._actions for name in action.option_strings}
    named: dict[str, str] = {}
    for name, value in values.items():
        action = options.get(str(name).replace("_", "-"))
        if action is None or action.dest in {"config", "help", "batch"}:
            hint = did_you_mean(str(name).replace("_", "-"), ", ".join(options))
            raise InputError("config", f"options of this command in {path}", f"{short(name)}{hint}")
        converted = _converted(action, value, path)
        parser.set_defaults(**{action.dest: converted})
        action.required = False
        if converted is not False:
            named[action.dest] = f"`{action.dest}` in {path}"
    _check_exclusions(parser, named, words)


def apply_variables(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Makes the values of SEEACT_MODEL, SEEACT_BASE_URL and so on the parser's defaults; options that are typed win.
    Returns the assignments as a shell takes them, each with a blank behind it. Raises InputError for a value that the
    option does not take, and ModelSpecError for an address of `.env` where the key is the environment's."""
    from seeact_offline.models.address import check_key_goes_with, variable

    typed, taken = {word.partition("=")[0] for word in words}, ""
    for action in parser._actions:
        name = getattr(action, "variable", "")
        if not name or typed & {*action.option_strings} or not (text := variable(name)):
            continue
        if name.endswith("BASE_URL"):
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


def _check_exclusions(parser: argparse.ArgumentParser, named: Mapping[str, str], words: Sequence[str]) -> None:
    """Refuses options that exclude each other, as the parser does, which looks at what is typed alone. `named`:
    the file's options, in words."""
    typed = {word.partition("=")[0] for word in words}
    for group in parser._mutually_exclusive_groups:
        exclusive = {}
        for action in group._group_actions:
            # what is typed wins where both name the same
            if typed & {*action.option_strings}:
                exclusive[action.dest] = f"`{action.dest}`"
            elif action.dest in named:
                exclusive[action.dest] = named[action.dest]
        if len(exclusive) > 1:
            first, second, *_ = exclusive.values()
            raise InputError("config", sentence=f"use {first} or {second}, not both")
        if exclusive:
            group.required = False


def load_strategies(words: Sequence[str]) -> list[Strategy]:
    """Loads the groundings and the agent that the words or their configuration file name, whose
    options are options of the verb.

    Raises InputError.
    """
    from seeact_offline.grounding.strategies import find_strategy

    named = _named(words)
    in_file = {} if named.config is None else read_settings("config", named.config)
    groundings, agent = named.grounding or in_file.get("grounding"), named.agent or in_file.get("agent")
    strategies = [find_strategy(name.strip()) for name in str(groundings or "").split(",") if name]
    with suppress(InputError):
        # `eval` says what is wrong with an agent
        strategies += [find_strategy(str(agent))] if agent else []
    return strategies


def option_names(strategies: Sequence[Strategy]) -> frozenset[str]:
    """The names of the options that these strategies use and not all others."""
    names = {option.name for strategy in strategies for option in strategy.options}
    names |= {name for strategy in strategies for name in strategy.grouping_options}
    return frozenset(names | ({"batching"} if any(strategy.is_grouped for strategy in strategies) else set()))


def _named(words: Sequence[str]) -> argparse.Namespace:
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config", nargs="?", type=Path)
    finder.add_argument("--grounding", nargs="?")
    finder.add_argument("--agent", nargs="?")
    return finder.parse_known_args(list(words))[0]


def _converted(action: argparse.Action, value: Any, path: Path) -> Any:
    if isinstance(action.const, bool):
        if not isinstance(value, bool):
            raise InputError("config", f"true or false for {action.dest} in {path}", repr(value))
        return value
    try:
        converted = action.type(str(value)) if callable(action.type) else str(value)
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise InputError("config", f"a value of {action.dest} in {path}", f"{value!r:.100}: {error}") from None
    if action.choices is not None and converted not in action.choices:
        named = ", ".join(map(str, action.choices))
        raise InputError("config", f"one of {named} for {action.dest} in {path}", short(value))
    return converted
