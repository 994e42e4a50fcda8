"""The grounding strategies as options: which options each has, and what they open."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.grounding import MAX_SIDE, Form, Grounding, Order
from seeact_offline.prompting import PromptPack, load_pack
from seeact_offline.records import InputError

if TYPE_CHECKING:
    from seeact_offline.marking import MarkKind, MarkPosition, Marks
    from seeact_offline.pointing import Coordinates

GROUNDINGS = ("choice", "annotation", "attributes", "pixel", "oracle")
BATCHINGS = ("per-group", "shared-turn1")
UNGROUNDED = "ungrounded"
# what results name a run that asks for no element
MARK_KINDS: tuple[MarkKind, ...] = ("number", "letter", "double-letter")
MARK_POSITIONS: tuple[MarkPosition, ...] = (
    "bottom-left", "bottom-center", "bottom-right", "top-left", "top-center", "top-right", "center",
)  # fmt: skip
COORDINATES: tuple[Coordinates, ...] = ("absolute", "fraction", "per-mille")
# as in `marking` and `pointing`, which are not imported for `--help`

GROUPED = frozenset({"choice", "annotation"})
WITHOUT_PICTURE = frozenset({"choice", "attributes", "oracle", UNGROUNDED})
PLANS = frozenset({"oracle", UNGROUNDED})
# these ask turn 1 only


def add_arguments(asked: argparse._ActionsContainer) -> None:
    """An option that only some groundings have is None unless it is given."""
    asked.add_argument(
        "--turns", type=int, choices=(1, 2), default=2, help="1: both turns in one message (default: %(default)s)"
    )
    asked.add_argument("--no-image", action="store_true", help="pruned HTML in the picture's place")
    add_picture_argument(asked)
    asked.add_argument(
        "--batching", choices=BATCHINGS, default=BATCHINGS[0],
        help="choice, annotation: turn 1 for every group, or once a step on the whole page (default: %(default)s)",
    )  # fmt: skip
    asked.add_argument("--marks", choices=MARK_KINDS, help="annotation: kind of label (default: number)")
    asked.add_argument(
        "--mark-position", choices=MARK_POSITIONS, help="annotation: where a label goes (default: bottom-left)"
    )
    asked.add_argument(
        "--mark-turn1", action="store_true", default=None, help="annotation: the marked picture in turn 1 too"
    )
    asked.add_argument(
        "--fuzzy-threshold", type=_percent, metavar="PERCENT", help="attributes: how alike two texts must be at least"
    )
    asked.add_argument("--coordinates", choices=COORDINATES, help="pixel: how a place is written (default: absolute)")
    asked.add_argument("--oracle-file", type=Path, metavar="FILE", help="oracle: the elements a person chose, JSONL")
    asked.add_argument("--ungrounded", action="store_true", help="turn 1 only: score its operation and value alone")


def add_picture_argument(asked: argparse._ActionsContainer) -> None:
    asked.add_argument(
        "--max-image-side", type=_side, default=MAX_SIDE, metavar="N",
        help="longest side of a picture sent, in pixels; larger ones are made smaller (default: %(default)s)",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Opened:
    """A strategy, and what identifies it."""

    grounding: Grounding
    identity: dict[str, Any]
    # for the manifest: all that its questions depend on; what was not asked for differently is left out
    shown: dict[str, Any]
    # the options beyond the usual ones, as results name them


def name_of(args: argparse.Namespace) -> str:
    """What results call the strategy."""
    return UNGROUNDED if args.ungrounded else str(args.grounding)


def open_strategy(args: argparse.Namespace, order: Order | None = None) -> Opened:
    """Raises InputError for an option that the strategy does not have, or that another one rules out."""
    name = name_of(args)
    _check(args, name)
    form = Form(
        turns=args.turns,
        image=not args.no_image,
        shared_turn1=args.batching == "shared-turn1",
        order=order,
        max_side=args.max_image_side,
    )
    pack = _pack(args, name, form)
    grounding, own = _OPENERS[name](args, pack, form)
    extra = _beyond_the_usual(args) | own
    identity = {"grounding": name, **_groups(args, grounding), "prompts_digest": pack.digest, **extra}
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


def _check(args: argparse.Namespace, name: str) -> None:
    for option, owners in _OWN.items():
        if getattr(args, option) is not None and name not in owners:
            raise InputError(f"{_flag(option)}: expected --grounding {' or '.join(owners)}, got {_got(args)}")
    if args.ungrounded and args.grounding != "choice":
        raise InputError(f"--ungrounded: expected no --grounding beside it, got {args.grounding}")
    if name == "oracle" and args.oracle_file is None:
        raise InputError("--grounding oracle: expected --oracle-file FILE as well, got none")
    _check_form(args, name)


def _check_form(args: argparse.Namespace, name: str) -> None:
    grouped = f"--grounding {' or '.join(sorted(GROUPED))}"
    if args.no_image and name not in WITHOUT_PICTURE:
        raise InputError(f"--no-image: expected --grounding choice or attributes, got {name}, which needs a picture")
    if args.turns == 1 and name in PLANS:
        raise InputError(f"--turns: expected 2 with {_got(args)}, which asks the first turn only, got 1")
    if args.batching != BATCHINGS[0] and name not in GROUPED:
        raise InputError(f"--batching: expected {grouped} with {args.batching}, got {_got(args)}")
    if args.batching != BATCHINGS[0] and args.turns == 1:
        raise InputError(f"--batching: expected --turns 2 with {args.batching}, got 1")
    if args.batching != BATCHINGS[0] and args.mark_turn1:
        raise InputError(
            f"--mark-turn1: expected --batching {BATCHINGS[0]}, got {args.batching}, whose turn 1 is the page"
        )
    if getattr(args, "shuffle_groups", 0) and name not in GROUPED:
        raise InputError(f"--shuffle-groups: expected {grouped}, got {_got(args)}, which has no groups")


def _got(args: argparse.Namespace) -> str:
    return "--ungrounded" if args.ungrounded else f"--grounding {args.grounding}"


def _flag(option: str) -> str:
    return f"--{option.replace('_', '-')}"


# --- opening ---


def _pack(args: argparse.Namespace, name: str, form: Form) -> PromptPack:
    return load_pack(args.prompts, name, turns=form.turns, image=form.image)


def _beyond_the_usual(args: argparse.Namespace) -> dict[str, Any]:
    """Only what differs from the usual, so that runs from before these options go on."""
    usual = {"turns": 2, "no_image": False, "max_image_side": MAX_SIDE, "batching": BATCHINGS[0]}
    return {option: getattr(args, option) for option, value in usual.items() if getattr(args, option) != value}


def _groups(args: argparse.Namespace, grounding: Grounding) -> dict[str, Any]:
    return {"group_size": args.group_size, "merge": args.merge} if grounding.needs_ranking else {}


Opener = Callable[[argparse.Namespace, PromptPack, Form], tuple[Grounding, dict[str, Any]]]


def _choice(args: argparse.Namespace, pack: PromptPack, form: Form) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.choice import ChoiceGrounding

    return ChoiceGrounding(pack, args.group_size, args.merge, form), {}


def _annotation(args: argparse.Namespace, pack: PromptPack, form: Form) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.annotation import AnnotationGrounding

    marks = open_marks(args)
    own = {"marks": marks.kind, "mark_position": marks.position, "mark_turn1": marks.in_turn1}
    return AnnotationGrounding(pack, args.group_size, args.merge, form, marks), own


def open_marks(args: argparse.Namespace) -> Marks:
    """As asked for, else the paper's usual ones."""
    from seeact_offline.marking import Marks

    kind: MarkKind = args.marks or MARK_KINDS[0]
    position: MarkPosition = args.mark_position or MARK_POSITIONS[0]
    return Marks(kind, position, bool(args.mark_turn1))


def _attributes(args: argparse.Namespace, pack: PromptPack, form: Form) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.attributes import AttributesGrounding
    from seeact_offline.searching import FUZZY_THRESHOLD

    threshold = FUZZY_THRESHOLD if args.fuzzy_threshold is None else args.fuzzy_threshold
    choices = _pack(args, "choice", form)
    own = {"fuzzy_threshold": threshold, "choice_prompts_digest": choices.digest}
    return AttributesGrounding(pack, choices, form, threshold), own


def _pixel(args: argparse.Namespace, pack: PromptPack, form: Form) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.pixel import PixelGrounding

    coordinates: Coordinates = args.coordinates or COORDINATES[0]
    return PixelGrounding(pack, form, coordinates), {"coordinates": coordinates}


def _oracle(args: argparse.Namespace, pack: PromptPack, form: Form) -> tuple[Grounding, dict[str, Any]]:
    from seeact_offline.grounding.oracle import OracleGrounding, read_answers
    from seeact_offline.ranking import file_digest

    answers = read_answers(args.oracle_file)
    return OracleGrounding(pack, form, answers), {"oracle_digest": file_digest(args.oracle_file)}


def _ungrounded(args: argparse.Namespace, pack: PromptPack, form: Form) -> tuple[Grounding, dict[str, Any]]:
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


def _side(text: str) -> int:
    return int(_within(text, 16, 100_000, whole=True))


def _percent(text: str) -> float:
    return _within(text, 0, 100)


def _within(text: str, least: int, most: int, whole: bool = False) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        kind = "whole number" if whole else "number"
        raise argparse.ArgumentTypeError(f"expected a {kind} from {least} to {most}, got {text}")
    return value
