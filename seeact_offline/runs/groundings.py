"""The grounding strategy that a run asks for: its options checked against each other, and opened."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from seeact_offline.grounding import MAX_SIDE, Grounding, Order, QuestionOptions
from seeact_offline.grounding.strategies import STRATEGIES, open_pack, own_options
from seeact_offline.grounding.strategy import Strategy, StrategyInputs
from seeact_offline.prompting import PromptPack, only_with
from seeact_offline.records import InputError
from seeact_offline.runs.config import BATCHINGS, UNGROUNDED, EvalConfig
from seeact_offline.runs.turn1 import ReplySource, reply_source_of

GROUPING: dict[str, Any] = {
    field.name: field.default for field in fields(EvalConfig) if field.name in ("top_k", "group_size", "merge")
}
"""Options of which a strategy without groups takes no notice, and their usual values."""


@dataclass(frozen=True, slots=True)
class OpenedStrategy:
    """A strategy, and what identifies it."""

    grounding: Grounding
    identity: dict[str, Any]
    """For the manifest: all that its questions depend on; what was not asked for differently is left out."""
    shown: dict[str, Any]
    """The options beyond the usual ones, as results name them."""
    reply_source: ReplySource | None = None
    """Whose turn-1 texts it grounds, where those of a finished run are taken and no model is asked."""


def name_of(config: EvalConfig) -> str:
    """What results call the strategy."""
    return UNGROUNDED if config.ungrounded else str(config.grounding)


def open_strategy(config: EvalConfig, order: Order | None = None) -> OpenedStrategy:
    """Raises InputError for an option that the strategy does not have or takes no notice of, or that another one rules out."""
    opened = _opened(config, order)
    named = next((name for name in _unheeded(opened) if getattr(config, name) != GROUPING[name]), None)
    if named is not None:
        expected = f"the usual {GROUPING[named]} with grounding {name_of(config)}, which takes no notice of it"
        raise InputError(named, expected, str(getattr(config, named)))
    return opened


def heeded(config: EvalConfig) -> EvalConfig:
    """The configuration, with those options as usual of which its strategy takes no notice. Raises InputError as `open_strategy`."""
    return replace(config, **{name: GROUPING[name] for name in _unheeded(_opened(config, None))})


def _unheeded(opened: OpenedStrategy) -> list[str]:
    """Of GROUPING: all where nothing is ranked, else what the strategy says that it has none of."""
    ranks = opened.grounding.needs_ranking
    return [name for name in GROUPING if not ranks or opened.identity.get(name, GROUPING[name]) is None]


def _opened(config: EvalConfig, order: Order | None) -> OpenedStrategy:
    strategy = STRATEGIES[name_of(config)]
    _check_own_options(config, strategy)
    _check_form(config, strategy)
    form = QuestionOptions(
        turns=config.turns,
        image=not config.no_image,
        shared_turn1=config.batching == "shared-turn1",
        order=Order(config.seed, 0) if order is None and strategy.always_shuffled else order,
        max_side=config.max_image_side,
    )

    own = _own_options(config, strategy)

    def pack_of(name: str) -> PromptPack:
        variant = STRATEGIES[name].variant(own, form) if name == strategy.name else ""
        return open_pack(config.prompts, name, turns=form.turns, image=form.image, variant=variant)

    pack = pack_of(strategy.name)
    opened = strategy.open(StrategyInputs(pack, form, config.group_size, config.merge, own, pack_of))
    extra = _beyond_the_usual(config) | dict(opened.identity)
    reply_source = None if opened.replayed is None else reply_source_of(opened.replayed, config)
    prompts = {"prompts_digest": pack.digest} if reply_source is None else {}
    identity = {"grounding": strategy.name, **_groups(config, opened.grounding), **prompts, **extra}
    return OpenedStrategy(opened.grounding, identity, extra, reply_source)


def _own_options(config: EvalConfig, strategy: Strategy) -> dict[str, Any]:
    """As given, else as the prompts want them, else as they usually are. Raises InputError for what the prompts do not fit."""
    fitting = only_with(config.prompts, strategy.name)
    own: dict[str, Any] = {}
    for option in strategy.options:
        given = config.own(option.name)
        usual = option.default if option.of_model is None else option.of_model(config.model)
        own[option.name] = fitting.get(option.name, usual) if given is None else given
        if own[option.name] != fitting.get(option.name, own[option.name]):
            raise InputError(
                option.name,
                f"{fitting[option.name]}, the only one that the prompts of {config.prompts} fit",
                str(given),
            )
    return own


def _check_own_options(config: EvalConfig, strategy: Strategy) -> None:
    for name, (_, owners) in own_options().items():
        if config.own(name) is not None and strategy.name not in owners:
            raise InputError(name, f"grounding {' or '.join(owners)}", strategy.name)
    unknown = config.grounding_options.keys() - own_options().keys()
    if unknown:
        raise InputError("grounding_options", "options of a grounding", min(unknown))
    if config.ungrounded and config.grounding != "choice":
        raise InputError("ungrounded", "no grounding beside it", config.grounding)


def _check_form(config: EvalConfig, strategy: Strategy) -> None:
    grouped = f"grounding {' or '.join(name for name, other in sorted(STRATEGIES.items()) if other.is_grouped)}"
    if config.no_image and strategy.needs_picture:
        raise InputError("no_image", "grounding choice or attributes", f"{strategy.name}, which needs a picture")
    if config.turns == 1 and strategy.turn2 is None:
        raise InputError("turns", f"2 with {strategy.name}, which asks the first turn only", "1")
    if config.batching != BATCHINGS[0] and not strategy.is_grouped:
        raise InputError("batching", f"{grouped} with {config.batching}", strategy.name)
    if config.batching != BATCHINGS[0] and config.turns == 1:
        raise InputError("batching", f"turns 2 with {config.batching}", "1")
    if config.batching != BATCHINGS[0] and config.mark_turn1:
        raise InputError("mark_turn1", f"batching {BATCHINGS[0]}", f"{config.batching}, whose turn 1 is the page")
    if config.shuffle_groups and not strategy.is_grouped:
        raise InputError("shuffle_groups", grouped, f"{strategy.name}, which has no groups")


def _beyond_the_usual(config: EvalConfig) -> dict[str, Any]:
    """Only what differs from the usual, so that runs from before these options go on."""
    usual = {"turns": 2, "no_image": False, "max_image_side": MAX_SIDE, "batching": BATCHINGS[0]}
    return {option: getattr(config, option) for option, value in usual.items() if getattr(config, option) != value}


def _groups(config: EvalConfig, grounding: Grounding) -> dict[str, Any]:
    return {"group_size": config.group_size, "merge": config.merge} if grounding.needs_ranking else {}
