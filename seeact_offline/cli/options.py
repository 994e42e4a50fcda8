"""Options that several verbs share, and what they name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from seeact_offline.cli.parser import MOST_NAMED, Parser, reader
from seeact_offline.dataset import SPLITS, TEST_SPLITS, canonical_split, open_split
from seeact_offline.files.digest import PREFIX
from seeact_offline.files.options import ABOVE_0, POSITIVE, defaults_of, help_of, names_in, words_of
from seeact_offline.grounding.strategies import UNGROUNDED, find_strategy, own_options
from seeact_offline.grounding.strategy import Option
from seeact_offline.ranking.stage import DATA, EXECUTION, RANKING, RankConfig
from seeact_offline.records import DatasetError, InputError
from seeact_offline.runs.config import MODEL, QUESTIONS, EvalConfig

ALL = "all"


class _Known:
    """Names that an option takes; looked up when a help is printed."""

    def __init__(self, names: Callable[[], str]) -> None:
        self._names = names

    def __str__(self) -> str:
        return self._names()


positive_int: Callable[[str], int] = reader(POSITIVE.read)
positive_float: Callable[[str], float] = reader(ABOVE_0.read)


class Several(argparse.Action):
    """An option that may be repeated; its first value replaces the default."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        seen = getattr(namespace, "_given_several", {})
        seen.setdefault(self.dest, []).append(values)
        namespace._given_several = seen
        setattr(namespace, self.dest, list(seen[self.dest]))


def add_fields(
    to: argparse._ActionsContainer,
    config: type,
    *names: str,
    with_defaults: bool = False,
    is_basic: bool | None = None,
    **changes: Any,
) -> dict[str, argparse.Action]:
    """Adds options that a configuration declares, which are arguments if they were given. `with_defaults`: in any case,
    for verbs without this configuration. `is_basic` and `changes` differ from what is declared."""
    declared, defaults = words_of(config), defaults_of(config)
    added = {}
    for name in names:
        words = declared[name]
        settings: dict[str, Any] = {
            "dest": name,
            "default": defaults[name] if with_defaults else argparse.SUPPRESS,
            "help": (words.help if with_defaults else help_of(config, name))
            .replace("{default}", "%(default)s")
            .replace("{known}", "%(known)s"),
        }
        if words.read is bool:
            settings["action"] = "store_true"
        else:
            read = words.read if words.number is None else words.number.read
            settings |= {"type": read if isinstance(read, type) else reader(read), "metavar": words.metavar}
            settings["choices"] = words.choices or None
        if words.gather is not None:
            settings["action"] = Several
        action = to.add_argument(*words.flags_of(name), **settings | changes)
        action.is_basic = words.is_basic if is_basic is None else is_basic  # type: ignore[attr-defined]
        # SEEACT_CACHE is the folder of all caches
        if words.group == MODEL and words.read is not bool and words.gather is None and name != "cache":
            action.variable = f"{PREFIX}{name.upper()}"  # type: ignore[attr-defined]
        if words.known is not None:
            action.known = _Known(words.known)  # type: ignore[attr-defined]
        added[name] = action
    return added


def given(args: argparse.Namespace, config: type) -> dict[str, Any]:
    """Collects the fields of a configuration that were given."""
    values = {field.name: getattr(args, field.name) for field in fields(config) if hasattr(args, field.name)}
    for name, words in words_of(config).items():
        if words.gather is not None and name in values:
            values[name] = words.gather(values[name])
    return values


def add_data_arguments(parser: argparse.ArgumentParser, with_defaults: bool = False) -> argparse._ArgumentGroup:
    """Adds the options of the data; returns their group."""
    data = parser.add_argument_group(DATA)
    add_fields(data, RankConfig, *names_in(RankConfig, DATA), with_defaults=with_defaults)
    return data


def each_split(parser: argparse.ArgumentParser) -> None:
    """Makes a verb without --split use every split that exists, train included."""
    parser.set_defaults(split=None)
    for action in parser._actions:
        if action.dest == "split":
            action.help = (
                "train, cross_task, cross_website, cross_domain, or all: the three test splits"
                " (default: every split that exists)"
            )


def splits_of(dataset: str, split: str | None) -> tuple[str, ...]:
    """Returns the splits that `split` names; None means all that exist. Raises DatasetError if there are none."""
    if split is not None:
        name = canonical_split(split)
        return TEST_SPLITS if name == ALL and not Path(dataset).is_file() else (name,)
    if Path(dataset).is_file():
        try:
            return (canonical_split(Path(dataset).stem.split("-")[0]),)
        except DatasetError:
            return (ALL,)
    present, missing = [], None
    for name in SPLITS:
        try:
            open_split(dataset, name)
            present.append(name)
        except DatasetError as error:
            if error.argument != "split":
                raise
            missing = error
    if not present and missing is not None:
        raise missing
    return tuple(present)


def add_asked_data(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the data that a model is asked about."""
    add_fields(add_data_arguments(parser), EvalConfig, "sample", "tasks")


def add_question_arguments(parser: Parser, several: bool = False) -> None:
    """Adds the options that determine a model's questions. `several`: allow more than one grounding."""
    asked = parser.add_argument_group(RANKING)
    add_group_arguments(parser, asked)
    if several:
        added = add_fields(
            asked,
            EvalConfig,
            "grounding",
            type=lambda text: tuple(dict.fromkeys(_grounding(name.strip()) for name in text.split(","))),
            metavar="NAME[,NAME]",
        )
        added["grounding"].help = f"{added['grounding'].help}; several make a grid"
    else:
        add_fields(asked, EvalConfig, "grounding", type=_grounding)
    add_fields(asked, EvalConfig, "agent")
    questions = parser.add_argument_group(QUESTIONS)
    add_fields(questions, EvalConfig, *(name for name in names_in(EvalConfig, QUESTIONS) if name != "ungrounded"))
    for option, owners in own_options(parser.strategies).values():
        add_own(questions, option, ", ".join(owners) if len(owners) <= MOST_NAMED else "agents")
    add_fields(questions, EvalConfig, "ungrounded")


def add_own(asked: argparse._ActionsContainer, option: Option, owners: str) -> None:
    """Adds an option that only these strategies have; it is None unless given."""
    name, purpose = f"--{option.name.replace('_', '-')}", f"{owners}: {option.help}"
    if option.read is bool:
        action = asked.add_argument(name, action="store_true", default=None, help=purpose)
    elif option.choices:
        action = asked.add_argument(name, choices=option.choices, help=purpose)
    else:
        action = asked.add_argument(name, type=reader(option.read), metavar=option.metavar, help=purpose)
    action.is_own = True  # type: ignore[attr-defined]


def _grounding(text: str) -> str:
    if text == UNGROUNDED:
        names = words_of(EvalConfig)["grounding"].known
        assert names is not None
        raise argparse.ArgumentTypeError(f"expected one of {names()}, got {text}; {UNGROUNDED} is an option of its own")
    try:
        find_strategy(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.problem) from None
    return text


def add_group_arguments(parser: Parser, asked: argparse._ActionsContainer) -> None:
    """Adds the options that determine the candidates of a question and its wording."""
    parser.shown |= {"config"}
    names = [name for name in names_in(EvalConfig, RANKING) if name not in ("grounding", "agent")]
    add_fields(asked, EvalConfig, *names)
    asked.add_argument(
        "--config", type=Path, metavar="FILE.yaml", help="read options from this file; typed ones override it"
    )


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the engine that ranks and asks."""
    names = names_in(RankConfig, EXECUTION)
    add_fields(parser.add_argument_group(EXECUTION), RankConfig, *names)
