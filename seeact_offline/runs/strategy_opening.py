"""The grounding strategy that a run asks for: its options checked against each other, and opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from seeact_offline.dataset import Split
from seeact_offline.dataset.split import is_recut
from seeact_offline.files.formats import FormatError, typed
from seeact_offline.grounding import MAX_SIDE, Grounding, Order, QuestionOptions
from seeact_offline.grounding.conversation import Question
from seeact_offline.grounding.strategies import STRATEGIES, agents, groundings, open_pack, own_options
from seeact_offline.grounding.strategy import GROUPING_OPTIONS, Strategy, StrategyInputs
from seeact_offline.prompting import live_ending, only_with
from seeact_offline.ranking import LiveScores, Scores, read_scores
from seeact_offline.records import InputError, Step, UnusedOption
from seeact_offline.runs.config import BATCHINGS, SEEACT, EvalConfig
from seeact_offline.runs.folder import read_manifest
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.run import load_run

GROUPING: dict[str, Any] = {field.name: field.default for field in fields(EvalConfig) if field.name in GROUPING_OPTIONS}
"""Options of which a strategy uses those that it declares, and their defaults."""

_NAMED = ("group_size", "merge")
"""Options that a run's identity holds with its strategy; `top_k` stands there with the ranking."""


OF_REQUESTS = ("model", "prompts", "no_image", "max_image_side")
"""Fields that say who is asked and what; a model's own options have no effect and are remarked on as with any model."""


class ReplySource(msgspec.Struct, frozen=True):
    """The origin of the texts, as a run's manifest has it."""

    model: str
    prompts: str
    turns: int = 2


@dataclass(frozen=True, slots=True)
class OpenedStrategy:
    """A strategy, and what identifies it."""

    name: str
    """Its name in results."""
    grounding: Grounding
    identity: dict[str, Any]
    """Everything that its questions depend on, for the manifest; omits options at their defaults."""
    shown: dict[str, Any]
    """The options that differ from their defaults, as results name them."""
    reply_source: ReplySource | None = None
    """The finished run whose turn-1 texts it grounds; None where a model is asked."""


def open_strategy(config: EvalConfig, order: Order | None = None, is_live: bool = False) -> OpenedStrategy:
    """`is_live`: a second turn offers the actions of a live page too. Raises InputError for an option that the strategy
    does not use, or that another one rules out."""
    strategy = config.find_strategy()
    title = strategy.title
    for name in strategy.ignored_options:
        if getattr(config, name) != GROUPING[name]:
            raise UnusedOption(name, f"grounding {title}", str(getattr(config, name)))
    _check(config, strategy)
    form = QuestionOptions(
        turns=config.turns,
        image=not config.no_image,
        shared_turn1=config.batching == "shared-turn1",
        order=Order(config.seed, 0) if order is None and strategy.always_shuffled else order,
        max_side=config.max_image_side,
    )
    own = _own_options(config, strategy)
    pack_of = partial(open_pack, config.prompts, turns=form.turns, image=form.image)
    pack = pack_of(config.strategy_name, variant=strategy.variant(own, form))
    if is_live and pack.turn2:
        pack = pack.ending(live_ending(config.prompts))
    opened = strategy.open(StrategyInputs(pack, form, config.group_size, config.merge, own, pack_of))
    # only what differs from the usual: a run is the same whatever options it leaves alone
    usual = {"turns": 2, "no_image": False, "max_image_side": MAX_SIDE, "batching": BATCHINGS[0]}
    unusual = {name: getattr(config, name) for name, value in usual.items() if getattr(config, name) != value}
    extra = unusual | dict(opened.identity)
    reply_source = None if opened.replayed is None else reply_source_of(opened.replayed, config)
    prompts = {"prompts_digest": pack.digest} if reply_source is None else {}
    used = {name: getattr(config, name) if name in strategy.grouping_options else None for name in _NAMED}
    grouped = used if opened.grounding.needs_ranking else {}
    code = {"grounding_digest": strategy.digest} if strategy.digest else {}
    identity = {"grounding": title, **code, **grouped, **prompts, **extra}
    shown = {name: value for name, value in used.items() if value is None} | extra
    return OpenedStrategy(title, opened.grounding, identity, shown, reply_source)


def check_pages(config: EvalConfig, split: Split) -> None:
    """Raises InputError for a split without pages where the strategy needs them, or is to be told without a picture."""
    if config.find_strategy().needs_page or config.no_image:
        name, title = ("agent", config.agent) if config.agent != SEEACT else ("grounding", config.grounding)
        split.check_pages(name, "`no_image`" if config.no_image else f"`{name}` {title}")


def check_ranking(config: EvalConfig) -> None:
    """Raises InputError for data without a ranking that was chosen, where the grounding needs one. Data of pictures
    alone is refused once it is open, by a sentence of its own."""
    if config.scores is None and open_strategy(config).grounding.needs_ranking and not is_recut(config.dataset):
        config.check_chosen()


def live_scores(config: EvalConfig) -> Scores:
    """Scores for a step that is in no split: from the score file, or made on request and not kept. Raises
    InputError."""
    check_ranking(config)
    return LiveScores(config.open_ranker()) if config.scores is None else read_scores(config.scores)


def questions(step: Step, config: EvalConfig | None = None, **options: Any) -> list[Question]:
    """The first questions of a step, one per group: texts of their turns, pictures, and what is offered.

    `options` are fields of `EvalConfig`, which win over `config`. Raises InputError, and RowError for a step at fault.

    >>> from seeact_offline import load_steps
    >>> (question,) = questions(next(load_steps("sample", "train")), grounding="pixel")
    >>> len(question.turns), "one-way business class flight" in question.turns[0]
    (2, True)
    """
    config = EvalConfig.of(config, **options)
    grounding = open_strategy(config).grounding
    scores = live_scores(config) if grounding.needs_ranking else None
    return grounding.questions(prepare(step, scores, config.top_k, grounding.form.image))


def without_ignored(config: EvalConfig) -> EvalConfig:
    """The configuration with the options that its strategy ignores reset to their defaults."""
    return replace(config, **{name: GROUPING[name] for name in config.find_strategy().ignored_options})


def _check(config: EvalConfig, strategy: Strategy) -> None:
    """Raises InputError for options that do not go together."""
    own = {option.name for option in strategy.options}
    for name in [name for name in config.grounding_options if config.own(name) is not None and name not in own]:
        if name not in own_options():
            raise InputError("grounding_options", "options of a grounding", name)
        raise InputError(name, sentence=f"`{name}` needs {_chosen(own_options()[name][1])}")
    if config.ungrounded and config.grounding != "choice":
        raise InputError("ungrounded", sentence=f"`ungrounded` cannot be combined with `grounding` {config.grounding}")
    if config.no_image and strategy.needs_picture:
        others = [name for name in groundings() if not STRATEGIES[name].needs_picture]
        raise InputError(
            "no_image",
            sentence=f"`no_image` cannot be combined with {_chosen([strategy.name])},"
            f" which needs a picture; use {_chosen(others)}",
        )
    if config.turns == 1 and strategy.turn2 is None:
        raise InputError(
            "turns",
            sentence=f"`turns` 1 cannot be combined with {_chosen([strategy.name])}, which asks the first turn only",
        )
    if config.batching != BATCHINGS[0] and not strategy.is_grouped:
        raise InputError("batching", sentence=f"`batching` {config.batching} needs {_grouped()}")
    if config.batching != BATCHINGS[0] and config.turns == 1:
        raise InputError("batching", sentence=f"`batching` {config.batching} needs `turns` 2")
    if config.repeats and not strategy.is_grouped:
        raise InputError("repeats", sentence=f"`repeats` needs {_grouped()}")


def _chosen(names: Sequence[str]) -> str:
    """The option, and its value, that chooses one of these strategies."""
    return f"`{'agent' if names[0] in agents() else 'grounding'}` {' or '.join(names)}"


def _grouped() -> str:
    return _chosen([name for name, other in sorted(STRATEGIES.items()) if other.is_grouped])


def _own_options(config: EvalConfig, strategy: Strategy) -> dict[str, Any]:
    """The strategy's own options as given, else as the prompts want them, else their defaults. Raises InputError for a
    value that the prompts do not fit."""
    fitting = only_with(config.prompts, strategy.name)
    own: dict[str, Any] = {}
    for option in strategy.options:
        value = config.own(option.name)
        usual = option.default if option.of_model is None else option.of_model(config.model)
        own[option.name] = fitting.get(option.name, usual) if value is None else value
        if own[option.name] != fitting.get(option.name, own[option.name]):
            raise InputError(
                option.name,
                sentence=f"`{option.name}` {value} does not fit the prompts of"
                f" {config.prompts}; use {fitting[option.name]}",
            )
    return own


def reply_source_of(run: Path, config: EvalConfig) -> ReplySource:
    """The run behind `--replay-turn1`, whose texts are grounded without asking a model.

    Raises InputError for no finished run, for one whose turn 1 has no reply of its own, and for a
    request that would not be made."""
    usual = EvalConfig()
    for name in OF_REQUESTS:
        value = getattr(config, name)
        if value != getattr(usual, name):
            raise InputError(
                name, sentence=f"`{name}` cannot be combined with `replay_turn1`, for which no model is asked"
            )
    try:
        reply_source = typed(read_manifest(load_run(run).path).settings, ReplySource)
    except InputError as error:
        raise error.renamed("replay_turn1") from None
    except FormatError as error:
        raise InputError("replay_turn1", error.expected, f"{error.got} in the manifest of {run}") from None
    if reply_source.turns != 2:
        raise InputError("replay_turn1", sentence=f"{run} asked both turns in one message; name a run that asked two")
    return reply_source
