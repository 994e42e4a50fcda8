"""Options, each declared once: the field of a configuration holds the type and the default, its metadata all the rest.

The command line, files for `--config` and `help(evaluate)` are made from these fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from seeact_offline.records import InputError

OPTION = "option"
"""Key of the metadata."""


@dataclass(frozen=True, slots=True)
class Number:
    """The numbers that an option takes."""

    kind: type[int] | type[float]
    least: float
    words: str
    """The numbers in words, for errors."""
    most: float = sys.float_info.max

    def has(self, value: object) -> bool:
        # in Python, a whole number is also a number with a fraction
        return isinstance(value, (int, self.kind)) and self.least <= value <= self.most

    def read(self, text: str) -> Any:
        """Raises ValueError."""
        try:
            value = self.kind(text)
        except ValueError:
            value = None
        if not self.has(value):
            raise ValueError(f"expected {self.words}, got {text}")
        return value


POSITIVE = Number(int, 1, "a whole number of at least 1")
COUNT = Number(int, 0, "a whole number of at least 0")
SEED = Number(int, 0, "a whole number from 0 to 4,294,967,295", most=2**32 - 1)
"""Numpy's generators take no larger one."""
ABOVE_0 = Number(float, sys.float_info.min, "a number above 0")
FROM_0 = Number(float, 0.0, "a number of at least 0")
SHARE = Number(float, 0.0, "a share from 0 to 1, such as 0.3", most=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Describes an option beside its field's name, type and default."""

    help: str
    """`{default}` stands for the default, `{known}` for what `known` says."""
    group: str
    """Title of the options that it is listed with."""
    metavar: str | None = None
    known: Callable[[], str] | None = None
    """Names that the option takes; asked when a help is printed, as that may load every provider or grounding."""
    choices: tuple[object, ...] = ()
    """Values that it may have; empty: any."""
    number: Number | None = None
    read: Callable[[str], Any] = str
    """A text as the value. Raises ValueError. `bool`: a switch, which takes no text."""
    gather: Callable[[list[Any]], Any] | None = None
    """Values as one, of an option that may be repeated."""
    flags: tuple[str, ...] = ()
    """Names on the command line; empty: the field's name."""
    is_basic: bool = False
    """The short help shows it."""
    is_refusable: bool = False
    """Servers may refuse it."""
    decides_questions: bool = False
    """A model is asked otherwise under another value."""

    def flags_of(self, name: str) -> tuple[str, ...]:
        return self.flags or (f"--{name.replace('_', '-')}",)

    def check(self, name: str, value: object) -> None:
        """Raises InputError for a value that is not among `choices` or `number`."""
        if self.choices and value not in self.choices:
            raise InputError(name, f"one of {', '.join(map(str, self.choices))}", repr(value))
        if self.number is not None and value is not None and not self.number.has(value):
            raise InputError(name, self.number.words, repr(value))


def option(default: Any, help: str, *, group: str, **words: Any) -> Any:
    """Declares a field that is an option. A type as the default makes an empty one for each configuration."""
    metadata = {OPTION: Words(help=help, group=group, **words)}
    if isinstance(default, type):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def words_of(config: type) -> dict[str, Words]:
    """Finds the options of a configuration, by field."""
    return {known.name: known.metadata[OPTION] for known in fields(config) if OPTION in known.metadata}


def names_in(config: type, group: str) -> list[str]:
    """Names the fields of a group."""
    return [name for name, words in words_of(config).items() if words.group == group]


def defaults_of(config: type) -> dict[str, Any]:
    """Returns the default of each field."""
    return {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(config)
    }


def help_of(config: type, name: str) -> str:
    """Returns the help of an option, in which `{known}` may be left."""
    default = defaults_of(config)[name]
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    return words_of(config)[name].help.replace("{default}", shown)
