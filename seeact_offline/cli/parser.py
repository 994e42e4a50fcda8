"""The command line's parser: help in layers, and errors in one sentence with the name that was probably meant.

An option is `basic` where it is declared. The help of a verb with many options shows these, its required options and
those of the strategy that the words name; `--help all` shows every option.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from seeact_offline.cli.output import fail, say
from seeact_offline.files.extras import missing_package
from seeact_offline.files.options import COUNT
from seeact_offline.records import InputError, did_you_mean

if TYPE_CHECKING:
    from seeact_offline.grounding.strategy import Strategy

T = TypeVar("T")
MANY = 30
"""A verb with at most so many options shows them all."""
MOST_NAMED = 4
"""Most strategies that the help of an option or an error names; more are all agents, or nearly all."""


class Parser(argparse.ArgumentParser):
    """Reports wrong usage in one sentence. Options have no abbreviations, because `--config`
    is looked up by its full name."""

    shown: frozenset[str] = frozenset()
    """Names of options that the short help shows besides declared basic ones: the verb's own, the named strategy's."""
    strategies: Sequence[Strategy] | None = ()
    """Strategies that the words name, whose own options are added; None: all."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": _Formatter, **kwargs, "add_help": False})
        text = "show this help; `--help all`: every option"
        self.add_argument("-h", "--help", nargs="?", action=_Help, default=argparse.SUPPRESS, metavar="all", help=text)

    def error(self, message: str) -> NoReturn:
        """Exits with `--option: expected ..., got ...`, the nearest name where there is
        one, else a pointer to the help."""
        # `argument -h/--help: ...`: the long name alone
        text = re.sub(r"^argument (?:-\w/)?([^\s/:]+)\S*:", r"\1:", message)
        expectation = re.search(r"expected (.*), got (.*)", text)
        hint = did_you_mean(expectation[2], expectation[1]) if expectation else ""
        self.exit(fail(text + (hint or f"; see {self.prog} --help")))

    def unknown(self, words: Sequence[str]) -> NoReturn:
        """Exits for words that the verb does not know."""
        word = next((option for option in words if option.startswith("-")), words[0]).partition("=")[0]
        if not word.startswith("-"):
            self.error(f"unexpected argument {word}")
        if "--grounding" in self._option_string_actions:
            # only now, as this loads all groundings
            from seeact_offline.grounding.strategies import own_options

            _, owners = own_options().get(word.removeprefix("--").replace("-", "_"), (None, ()))
            if owners:
                alone = " and ".join(owners) if len(owners) <= MOST_NAMED else "GUI models"
                self.exit(fail(f"{word} is an option of {alone} alone: name one with --grounding or --agent"))
        options = ", ".join(name for action in self._actions for name in action.option_strings if name.startswith("--"))
        hint = did_you_mean(word, options)
        self.exit(fail(f"there is no option {word}{hint or f'; see {self.prog} --help'}"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"expected one of {', '.join(map(str, action.choices))}, got {value}")

    def short_help(self) -> str:
        """Formats the help without the options that few people need."""
        formatter = self._get_formatter()
        positionals = [action for action in self._actions if not action.option_strings]
        names = {str(action.metavar or action.dest): action.nargs for action in positionals}
        words = (name if nargs is None else f"[{name} ...]" for name, nargs in names.items())
        formatter.add_usage(" ".join(["%(prog)s [options]", *words]), [], [])
        formatter.add_text(self.description)
        for group in self._action_groups:
            shown = [action for action in group._group_actions if self._is_shown(action)]
            formatter.start_section(group.title)
            formatter.add_arguments(shown)
            formatter.end_section()
        named = " or ".join(
            f"{option} NAME" for option in ("--grounding", "--agent") if option in self._option_string_actions
        )
        of_strategy = f"; {named} --help: its own" if named else ""
        formatter.add_text(f"--help all: all {len(self._actions)} options{of_strategy}; {self.epilog}")
        return formatter.format_help()

    def _is_shown(self, action: argparse.Action) -> bool:
        return (
            action.required
            or not action.option_strings
            or isinstance(action, _Help)
            or getattr(action, "is_basic", False)
            or action.dest in self.shown
        )


def run_folder(text: str) -> Path:
    """Reads the name of a folder of runs, here or at a URL (`files.remote.readable_folder`)."""
    if "://" not in text:
        return Path(text)
    from seeact_offline.files.remote import readable_folder

    try:
        return readable_folder(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.sentence) from None
    except ModuleNotFoundError as error:
        raise argparse.ArgumentTypeError(missing_package(error)) from None


def reader(read: Callable[[str], T]) -> Callable[[str], T]:
    """Returns a type for argparse, whose errors are the sentences of the ValueErrors."""

    def read_text(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read_text


count: Callable[[str], int] = reader(COUNT.read)


class _Formatter(argparse.HelpFormatter):
    """Writes `-h, --help [all]`: the value once."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _Help(argparse.Action):
    """Prints the short help of a verb with many options; `all`: every option."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        is_short = isinstance(parser, Parser) and len(parser._actions) > MANY and values != "all"
        text = parser.short_help() if is_short else parser.format_help()  # type: ignore[attr-defined]
        say(text.removesuffix("\n"))
        parser.exit()
