"""The grounding strategies by name: which options each has, and what they open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seeact_offline.grounding import MAX_SIDE, Grounding, Order, QuestionOptions
from seeact_offline.prompting import PromptPack, load_pack
from seeact_offline.records import InputError
from seeact_offline.runs.config import BATCHINGS, COORDINATES, MARK_KINDS, MARK_POSITIONS, UNGROUNDED, EvalConfig

if TYPE_CHECKING:
    from seeact_offline.pages.marks import Marks

GROUPED = frozenset({"choice", "annotation"})
WITHOUT_PICTURE = frozenset({"choice", "attributes", "oracle", UNGROUNDED})
PLANS = frozenset({"oracle", UNGROUNDED})
"""These ask turn 1 only."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A strategy, and what identifies it."""

    grounding: Grounding
    identity: dict[str, Any]
    """For the manifest: all that its questions depend on; what was not asked for differently is left out."""
    shown: dict[str, Any]
    """The options beyond the usual ones, as results name them."""


def name_of(config: EvalConfig) -> str:
    """What results call the strategy."""
    return UNGROUNDED if config.ungrounded else str(config.grounding)


def open_strategy(config: EvalConfig, order: Order | None = None) -> Opened:
    """Raises InputError for an option that the strategy does not have, or that another one rules out."""
    name = name_of(config)
    _check(config, name)
    form = QuestionOptions(
        turns=config.turns,
        image=not config.no_image,
        shared_turn1=config.batching == "shared-turn1",
        order=order,
        max_side=config.max_image_side,
    )
    pack = _pack(config, name, form)
    grounding, own = _OPENERS[name](config, pack, form)
    extra = _beyond_the_usual(config) | own
    identity = {"grounding": name, **_groups(config, grounding), "prompts_digest": pack.digest, **extra}
    return Opened(grounding, identity, extra)


# --- which options go together ---

_OWN = {
    "marks": ("annotation",),
    "mark_position": ("annotation",),
    "mark_turn1": ("annotation",),
    "fuzzy_threshold": ("attributes",),
    "coordinates": ("pixel",),
    "oracle_file": ("oracle",),
}


def _check(config: EvalConfig, name: str) -> None:
    for option, owners in _OWN.items():
        if getattr(config, option) is not None and name not in owners:
            raise InputError(f"{_flag(option)}: expected --grounding {' or '.join(owners)}, got {_got(config)}")
    if config.ungrounded and config.grounding != "choice":
        raise InputError(f"--ungrounded: expected no --grounding beside it, got {config.grounding}")
    if name == "oracle" and config.oracle_file is None:
        raise InputError("--grounding oracle: expected --oracle-file FILE as well, got none")
    _check_form(config, name)


def _check_form(config: EvalConfig, name: str) -> None:
    grouped = f"--grounding {' or '.join(sorted(GROUPED))}"
    if config.no_image and name not in WITHOUT_PICTURE:
        raise InputError(f"--no-image: expected --grounding choice or attributes, got {name}, which needs a picture")
    if config.turns == 1 and name in PLANS:
        raise InputError(f"--turns: expected 2 with {_got(config)}, which asks the first turn only, got 1")
    if config.batching != BATCHINGS[0] and name not in GROUPED:
        raise InputError(f"--batching: expected {grouped} with {config.batching}, got {_got(config)}")
    if config.batching != BATCHINGS[0] and config.turns == 1:
        raise InputError(f"--batching: expected --turns 2 with {config.batching}, got 1")
    if config.batching != BATCHINGS[0] and config.mark_turn1:
        raise InputError(
            f"--mark-turn1: expected --batching {BATCHINGS[0]}, got {config.batching}, whose turn 1 is the page"
        )
    if config.shuffle_groups and name not in GROUPED:
        raise InputError(f"--shuffle-groups: expected {grouped}, got {_got(config)}, which has no groups")


def _got(config: EvalConfig) -> str:
    return "--ungrounded" if config.ungrounded else f"--grounding {config.grounding}"


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


# --- opening ---


def _pack(config: EvalConfig, name: str, form: QuestionOptions) -> PromptPack:
    return load_pack(config.prompts, name, turns=form.turns, image=form.image)


def _beyond_the_usual(config: EvalConfig) -> dict[str, Any]:
    """Only what differs from the usual, so that runs from before these options go on."""
    usual = {"turns": 2, "no_image": False, "max_image_side": MAX_SIDE, "batching": BATCHINGS[0]}
    return {option: getattr(config, option) for option, value in usual.items() if getattr(config, option) != value}


def _groups(config: EvalConfig, grounding: Grounding) -> dict[str, Any]:
    return {"group_size": config.group_size, "merge": config.merge} if grounding.needs_ranking else {}


Opener = Callable[[EvalConfig, PromptPack, QuestionOptions], tuple[Grounding, dict[str, Any]]]


def _choice(config: EvalConfig, pack: PromptPack, form: QuestionOptions) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.choice import ChoiceGrounding

    return ChoiceGrounding(pack, config.group_size, config.merge, form), {}


def _annotation(config: EvalConfig, pack: PromptPack, form: QuestionOptions) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.annotation import AnnotationGrounding

    marks = open_marks(config)
    own = {"marks": marks.kind, "mark_position": marks.position, "mark_turn1": marks.in_turn1}
    return AnnotationGrounding(pack, config.group_size, config.merge, form, marks), own


def open_marks(config: EvalConfig) -> Marks:
    """As asked for, else the paper's usual ones."""
    from seeact_offline.pages.marks import Marks

    return Marks(config.marks or MARK_KINDS[0], config.mark_position or MARK_POSITIONS[0], bool(config.mark_turn1))


def _attributes(config: EvalConfig, pack: PromptPack, form: QuestionOptions) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.attributes import AttributesGrounding
    from seeact_offline.pages.search import FUZZY_THRESHOLD

    threshold = FUZZY_THRESHOLD if config.fuzzy_threshold is None else config.fuzzy_threshold
    choices = _pack(config, "choice", form)
    own = {"fuzzy_threshold": threshold, "choice_prompts_digest": choices.digest}
    return AttributesGrounding(pack, choices, form, threshold), own


def _pixel(config: EvalConfig, pack: PromptPack, form: QuestionOptions) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.pixel import PixelGrounding

    coordinates = config.coordinates or COORDINATES[0]
    return PixelGrounding(pack, form, coordinates), {"coordinates": coordinates}


def _oracle(config: EvalConfig, pack: PromptPack, form: QuestionOptions) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.oracle import OracleGrounding, read_answers
    from seeact_offline.ranking import file_digest

    # as `_check` has seen to
    assert config.oracle_file is not None
    answers = read_answers(config.oracle_file)
    return OracleGrounding(pack, form, answers), {"oracle_digest": file_digest(config.oracle_file)}


def _ungrounded(config: EvalConfig, pack: PromptPack, form: QuestionOptions) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.ungrounded import UngroundedGrounding

    return UngroundedGrounding(pack, form), {}


_OPENERS: Mapping[str, Opener] = {
    "choice": _choice,
    "annotation": _annotation,
    "attributes": _attributes,
    "pixel": _pixel,
    "oracle": _oracle,
    UNGROUNDED: _ungrounded,
}
