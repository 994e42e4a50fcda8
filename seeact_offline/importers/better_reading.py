"""Agents in whose language, or in whose numbers, more of a run's replies can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from seeact_offline.agents import GROUNDERS, GUI_MODELS, Unreadable, find_agent
from seeact_offline.agents.agent_fit import RawReply, agent_fits
from seeact_offline.agents.frame_fit import WrittenPlace, better_frame
from seeact_offline.agents.reply_pictures import PARTS, SIZES
from seeact_offline.agents.screens import Shown
from seeact_offline.files.markdown import percent
from seeact_offline.pages.screenshots import MOST_STRETCHED
from seeact_offline.records import InputError, Prediction, ShownPicture, Truth
from seeact_offline.runs.reading_hints import BetterReading
from seeact_offline.scoring.report import counted

MOST_TRIED, MOST_PLACED = 50, 200
"""Replies that other agents are tried on, and places that other frames are."""


def better_reading(
    pairs: Sequence[tuple[Prediction, Truth]],
    placed: Sequence[tuple[Prediction, Truth]],
    settings: Mapping[str, Any],
    is_certain: bool,
) -> BetterReading:
    """The agents that read more of a run's replies, or place more of them on the right element.

    `placed`: those of `pairs` with a place that may be in other numbers. `settings`: the manifest's. `is_certain`: True
    if replies cannot be read, or places lie beside every candidate.
    """
    own = str(settings.get("agent", settings.get("grounding")))
    grounds = own in GUI_MODELS and GUI_MODELS[own].grounder is not None
    agents, share = tuple[str, ...](), ""
    if placed:
        # only agents that are known here have a name in another frame
        with suppress(InputError):
            agents, share = _in_other_numbers(placed, own, settings)
    # a place in an agent's numbers has its picture; what a planner describes has none
    can_fit = is_certain and not grounds and any(prediction.groups[-1].shown for prediction, _ in pairs)
    if can_fit and not agents:
        agents, share = _fitting(pairs, own, settings)
    return BetterReading(agents, share, grounds, can_fit)


def _in_other_numbers(
    pairs: Sequence[tuple[Prediction, Truth]], own: str, settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], str]:
    """The agent that reads as the run's own, but in the frame that the places tell, and how many it has right. `pairs`:
    those with a place. `own`: the run's agent. Raises InputError for one that is not known here."""
    name = str(settings.get("grounder_agent") or (own in GUI_MODELS and GUI_MODELS[own].grounder) or own)
    if ".py:" in name:
        # code that a run names is not loaded: the run may be anybody's
        return (), ""
    reader = find_agent(name)[0]
    places: list[WrittenPlace] = []
    for prediction, truth in pairs[:: -(-len(pairs) // MOST_PLACED)]:
        picture = prediction.groups[-1].shown
        if picture is None or truth.picture_size is None or not truth.boxes:
            continue
        shown = Shown(truth.picture_size, picture.sent, picture.part)
        with suppress(Unreadable):
            acts = reader.read(prediction.groups[-1].replies[-1])
            point = reader.fold.fold(acts)[0].point
            if point is not None and max(shown.sent) <= MOST_STRETCHED * min(shown.sent):
                is_right = prediction.point is not None and any(box.contains(*prediction.point) for box in truth.boxes)
                places.append(WrittenPlace(point, shown, truth.boxes, is_right))
    agent = better_frame(places, reader)
    if agent is None:
        return (), ""
    n_right, n_now = sum(place.hits(agent.frame) for place in places), sum(place.is_right for place in places)
    right = f"{n_right:,} of {counted(len(places), 'place')} in the box of the right element, not {n_now:,}"
    numbers, own_numbers = (frame.describe(places[0].shown.sent) for frame in (agent.frame, reader.frame))
    return (agent.name,), f"{right}, as they count {numbers} and not {own_numbers}"


def _fitting(
    pairs: Sequence[tuple[Prediction, Truth]], own: str, settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], str]:
    """The agents that read more of the replies or place more of them, and how much."""
    tried = pairs[:: -(-len(pairs) // MOST_TRIED)]
    fits = agent_fits(
        RawReply(
            prediction.groups[-1].replies[-1], geometry_of(prediction, truth, settings), truth.picture_size, truth.boxes
        )
        for prediction, truth in tried
    )
    best, now = fits.best, fits.row_of(own)
    is_strict = bool(settings.get("strict") or settings.get("strict_reading"))
    if best is None:
        return (), ""
    is_ahead = now is None or (best.element or 0.0, best.read) > (now.element or 0.0, now.read)
    if not is_ahead and not is_strict:
        return (), ""
    right = "" if best.element is None else f", {percent(best.element)} % with a place on the right element"
    return best.agents, f"{percent(best.read)} % of {counted(len(tried), 'reply', 'replies')} tried{right}"


def geometry_of(prediction: Prediction, truth: Truth | None, settings: Mapping[str, Any]) -> dict[str, int]:
    """The picture that the last reply of a run to a step is about, as columns of imported replies. `settings`: the
    manifest's."""
    shown = prediction.groups[-1].shown if prediction.groups else None
    if shown is None or ("format" in settings and _is_by_rule(shown, truth, settings.get("agent"))):
        return {}
    return dict(zip((*SIZES, *PARTS), (*shown.sent, *shown.part), strict=True))


def _is_by_rule(shown: ShownPicture, truth: Truth | None, agent: object) -> bool:
    """Tells whether the picture is as the agent's own rule makes it, where an import did not say: another agent has
    another rule."""
    page = None if truth is None else truth.picture_size
    known_agent = GUI_MODELS.get(agent) or GROUNDERS.get(agent)
    if known_agent is None or page is None or shown.part != (0, 0, *page):
        return False
    with suppress(ValueError):
        return bool(known_agent.view.resize.apply(page) == shown.sent)
    return shown.sent == page
