"""Declares a grounding strategy: one `Strategy` a module, listed in `grounding.strategies`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from seeact_offline.grounding import Grounding, QuestionOptions
from seeact_offline.prompting import Placeholders, PromptPack
from seeact_offline.records import MergeRule


@dataclass(frozen=True, slots=True)
class Option:
    """An option that only one strategy has."""

    name: str
    """Name in Python; the command writes dashes."""
    help: str
    default: Any = None
    """Value where the option is not given."""
    of_model: Callable[[Any], Any] | None = None
    """Model, as users name it -> value where the option is not given; comes before
    `default`. None: the same for all."""
    choices: tuple[str, ...] = ()
    """Values that it may have; empty: any that `read` takes."""
    read: Callable[[str], Any] = str
    """A text as the value. Raises ValueError. `bool`: a switch, which takes no text."""
    metavar: str | None = None


STRICT_READING = Option(
    "strict_reading", "read replies as the released code does, with its accidents", False, read=bool
)
"""An option of strategies whose replies released code reads."""


def whole(text: str) -> int:
    """Reads a whole number of at least 0. Raises ValueError."""
    if not text.isdecimal():
        raise ValueError(f"expected a whole number of at least 0, got {text}")
    return int(text)


def percent(text: str) -> float:
    """Reads a number from 0 to 100. Raises ValueError."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ValueError(f"expected a number from 0 to 100, got {text}")
    return value


GroupingOption = Literal["top_k", "group_size", "merge"]
GROUPING_OPTIONS: tuple[GroupingOption, ...] = get_args(GroupingOption)
"""Options of every run that decide how candidates are grouped; a strategy declares which of them it uses."""


@dataclass(frozen=True, slots=True)
class StrategyInputs:
    """Inputs that a strategy is opened with."""

    pack: PromptPack
    """Its templates."""
    form: QuestionOptions
    group_size: int
    merge: MergeRule
    own: Mapping[str, Any]
    """Its options by name, as given or as they are by default."""
    pack_of: Callable[[str | Strategy], PromptPack]
    """The templates of another strategy."""


@dataclass(frozen=True, slots=True)
class StrategyInstance:
    """A strategy that can be asked."""

    grounding: Grounding
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Settings that its questions and answers depend on, besides those of all strategies. Results show them."""
    replayed: Path | None = None
    """The finished run whose turn-1 texts it grounds; no model is asked then."""


@dataclass(frozen=True, slots=True)
class SecondModel:
    """A model that a strategy asks besides the run's own."""

    role: str
    """Its name in manifests, such as `grounder`."""
    option: str
    """The option that names it, for errors."""
    spec: Any
    """As `find_model` takes it."""
    base_url: str | None


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy's declaration: the rest of the program knows nothing else of it."""

    name: str
    """Name in its prompt files; users call it so too, if it belongs to this package."""
    open: Callable[[StrategyInputs], StrategyInstance]
    """Raises InputError for options that do not go together."""
    turn2: Placeholders | None
    """Placeholders of its second turn; None: it asks the first turn only, and any strategy's prompt serves it."""
    turn1: tuple[str, ...] = ()
    """Placeholders that its first turn may hold, beside those of every strategy."""
    variant: Callable[[Mapping[str, Any], QuestionOptions], str] = lambda own, form: ""
    """Own options and form -> ending of the prompt files that fit them better than the usual ones; empty for none."""
    options: tuple[Option, ...] = ()
    second_model: Callable[[Mapping[str, Any]], SecondModel | None] = lambda own: None
    """Own options, as given -> the model that they name; None: they name none."""
    grouping_options: tuple[GroupingOption, ...] = ()
    """Grouping options that it uses; the others are refused. A strategy that ranks uses `top_k` at least."""
    shares_prompts: bool = True
    """True if prompt files that serve every grounding serve it too."""
    always_shuffled: bool = False
    """True if its candidates have a seeded order even where none is asked for."""
    is_grouped: bool = False
    """True if candidates are offered in groups, whose order can be shuffled and which can share a first turn."""
    is_lettered: bool = False
    """True if the elements of a group are always named by letters, in the order in which they are offered."""
    protocol: str = "seeact"
    """The scoring rules where no others are named."""
    needs_picture: bool = False
    needs_page: bool = True
    """False if it asks about the picture alone, where a picture is shown: its questions
    use neither HTML nor candidates."""
    is_human: bool = False
    """True if a person names its elements, so that its accuracy is that of the texts."""
    estimate_remark: str = ""
    """Stands below an estimate of its calls; empty: nothing is worth saying."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Everything that it counts beside failures, and what each count means."""
    prompt: str = ""
    """Template of its first turn where the prompt pack has none."""
    label: str = ""
    """Names it in results where it comes from outside the package, as `FILE.py:NAME`; set on loading."""
    digest: str = ""
    """Identifies the code of one from outside the package; set on loading."""

    @property
    def title(self) -> str:
        """Its name in results."""
        return self.label or self.name

    @property
    def ignored_options(self) -> list[GroupingOption]:
        """Grouping options that it does not use."""
        return [name for name in GROUPING_OPTIONS if name not in self.grouping_options]


@runtime_checkable
class HasStrategy(Protocol):
    """An object that a strategy can be made of, as agents are."""

    def as_strategy(self) -> Strategy:
        """Makes the strategy that asks it."""
