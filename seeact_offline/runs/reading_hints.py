"""A run whose replies cannot be read, or whose places are in other numbers: what would read them. A format mismatch is no silent 0."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from seeact_offline.agents import GROUNDERS, GUI_MODELS, find_agent
from seeact_offline.files.markdown import one_line, percent
from seeact_offline.records import CallError, InputError, Prediction, ShownPicture, Truth
from seeact_offline.replies.final_answer import PARSE_FAILURES
from seeact_offline.scoring.report import counted

MANY_UNREADABLE = 1 / 3
"""Share of the replies beyond which a mismatch is likely."""
MOST_MISSED, ENOUGH_PLACES = 0.9, 10
"""Share of the places beside every candidate beyond which a mismatch is likely, and the places that it takes."""
MOST_TRIED, MOST_PLACED = 50, 200
"""Replies that other agents are tried on, and places that other frames are."""
QUOTED = 160
"""Characters of a reply that are quoted."""
_REMEDIES = {
    "truncated": "Replies did not fit in --max-tokens: it is too small, or thinking used it up.",
    "empty_reply": "Replies had no text: the model said nothing, or thinking used --max-tokens up.",
    "refused": "The model or a content filter declined to answer.",
}
"""For each way in which a model declines."""


@dataclass(frozen=True, slots=True)
class ReadingHint:
    """A likely fault in the reading of a run, and what to do."""

    n_replies: int
    failures: Mapping[str, int]
    """Counts of those among `unreadable_failures`, and of replies in which the model declined."""
    n_places: int
    n_missed: int
    """Places beside every candidate."""
    quoted: str
    """The beginning of a reply, or what is known of one that has no text, on one line."""
    agents: tuple[str, ...] = ()
    """Agents that would read more, all alike."""
    found: str = ""
    """The share that they would read, or have right, in words."""
    grounds: bool = False
    """True where the replies are a grounder's, which is asked about what a planner describes."""
    can_fit: bool = True
    """False where the replies are in no agent's language, or could be read but for those in which the model declined."""

    @property
    def n_unreadable(self) -> int:
        return sum(self.failures.values())

    @property
    def is_mostly_unreadable(self) -> bool:
        """True where more than half of the replies cannot be read."""
        return 2 * self.n_unreadable > self.n_replies

    def command(self, run: str | Path) -> str:
        """The command that scores the same replies as the first of `agents`. `run`: the folder."""
        return shlex.join(["seeact-offline", "score", str(run), "--agent", self.agents[0], "--out", "DIR"])

    def sentences(self, run: str | Path = "RUN") -> list[str]:
        """The finding, a reply, and the remedy."""
        names = ", ".join(f"{name} {n:,}" for name, n in sorted(self.failures.items()))
        found = []
        if self.n_unreadable > MANY_UNREADABLE * self.n_replies:
            found.append(
                f"{self.n_unreadable:,} of {counted(self.n_replies, 'reply', 'replies')} cannot be read ({names})."
            )
        if _is_missed(self.n_missed, self.n_places):
            found.append(f"{self.n_missed:,} of {counted(self.n_places, 'place')} lie on no candidate.")
        found.append(f"One reply: {self.quoted}")
        found += [
            text for name, text in _REMEDIES.items() if self.failures.get(name, 0) > MANY_UNREADABLE * self.n_replies
        ]
        if self.agents:
            remedy = f"ask with --grounder-agent {shlex.quote(self.agents[0])}" if self.grounds else self.command(run)
            found.append(f"Read as {', '.join(self.agents)}: {self.found}. To score them so: {remedy}")
        elif self.can_fit:
            found.append("No other agent here reads more of them: docs/agents.md says how to declare one.")
        return found


def _is_missed(n_missed: int, n_places: int) -> bool:
    return n_places >= ENOUGH_PLACES and n_missed > MOST_MISSED * n_places


@cache
def unreadable_failures() -> frozenset[str]:
    """Failures of replies that name no element in a form that is read. Another act than CLICK, TYPE and SELECT was read."""
    from seeact_offline.replies.points import POINT_FAILURES

    named = {"no_act", "unknown_act", "no_marks", "no_place", "format_error", *PARSE_FAILURES, *POINT_FAILURES}
    return frozenset(named - {"unknown_action", "missing_value", "point_outside"})


def reading_hint(
    predictions: Sequence[Prediction], truths: Sequence[Truth], settings: Mapping[str, Any]
) -> ReadingHint | None:
    """None where most replies can be read, and some places lie on candidates. `truths`: of the same steps. `settings`: the manifest's."""
    pairs = [
        (prediction, truth)
        for prediction, truth in zip(predictions, truths, strict=True)
        if prediction.ran and prediction.groups and prediction.groups[-1].replies and not _has_declined(prediction)
    ]
    declined = [one for one in predictions if _has_declined(one)]
    n_replies = len(pairs) + len(declined)
    failed = [one for one, _ in pairs if one.failure is not None and one.element_id is None]
    unread = [one for one in failed if one.failure in unreadable_failures()]
    failures = Counter(one.failure for one in [*unread, *declined])
    places = [(one, truth) for one, truth in pairs if one.point is not None or one.failure == "point_outside"]
    missed = [one for one, _ in places if one.element_id is None]
    wrong = [one for one, truth in places if one.element_id not in truth.positives]
    # where the model declined more often than it was not understood, no other agent reads more
    is_unread = len(unread) > max(MANY_UNREADABLE * len(pairs), len(declined))
    is_certain = is_unread or _is_missed(len(missed), len(places))
    is_declined = bool(declined) and failures.total() > MANY_UNREADABLE * n_replies
    own = str(settings.get("agent", settings.get("grounding")))
    grounds = own in GUI_MODELS and GUI_MODELS[own].grounder is not None
    agents, found = tuple[str, ...](), ""
    if not is_unread and 2 * len(wrong) > len(places) >= ENOUGH_PLACES:
        # only agents that are known here have a name in another frame
        with suppress(InputError):
            agents, found = _in_other_numbers(places, own, settings)
    # a place in an agent's numbers has its picture; what a planner describes has none
    can_fit = is_certain and not grounds and any(one.groups[-1].shown for one, _ in pairs)
    if can_fit and not agents:
        agents, found = _fitting(pairs, own, settings)
    if not agents and not is_certain and not is_declined:
        return None
    read = (unread or missed or wrong) if agents or is_certain else []
    return ReadingHint(
        n_replies=n_replies,
        failures={str(name): n for name, n in failures.items()},
        n_places=len(places),
        n_missed=len(missed),
        quoted=_quoted(read[0].groups[-1].replies[-1] if read else declined[0].detail),
        agents=agents,
        found=found,
        grounds=grounds,
        can_fit=can_fit,
    )


def _has_declined(prediction: Prediction) -> bool:
    return prediction.ran and prediction.failure in CallError.ANSWERED


def _quoted(reply: str) -> str:
    line = one_line(reply[: 20 * QUOTED])
    return (line if len(line) <= QUOTED else f"{line[:QUOTED]} ...") or "(empty)"


def _in_other_numbers(
    pairs: Sequence[tuple[Prediction, Truth]], own: str, settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], str]:
    """The agent that reads as the run's own, but in the frame that the places tell, and how many it has right. `pairs`: those with a place.
    `own`: the run's agent. Raises InputError for one that is not known here."""
    from seeact_offline.agents import Unreadable
    from seeact_offline.agents.screens import Shown
    from seeact_offline.pages.screenshots import MOST_STRETCHED
    from seeact_offline.runs.frame_fit import WrittenPlace, better_frame

    name = str(settings.get("grounder_agent") or (own in GUI_MODELS and GUI_MODELS[own].grounder) or own)
    if ".py:" in name:
        # code that a run names is not loaded: the run may be anybody's
        return (), ""
    reader = find_agent(name)[0]
    places: list[WrittenPlace] = []
    for one, truth in pairs[:: -(-len(pairs) // MOST_PLACED)]:
        picture = one.groups[-1].shown
        if picture is None or truth.picture_size is None or not truth.boxes:
            continue
        shown = Shown(truth.picture_size, picture.sent, picture.part)
        with suppress(Unreadable):
            acts = reader.read(one.groups[-1].replies[-1])
            point = reader.fold.fold(acts)[0].point
            if point is not None and max(shown.sent) <= MOST_STRETCHED * min(shown.sent):
                is_right = one.point is not None and any(box.contains(*one.point) for box in truth.boxes)
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
    from seeact_offline.runs.agent_fit import RawReply, agent_fits

    tried = pairs[:: -(-len(pairs) // MOST_TRIED)]
    fits = agent_fits(
        RawReply(one.groups[-1].replies[-1], geometry_of(one, truth, settings), truth.picture_size, truth.boxes)
        for one, truth in tried
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
    """The picture that the last reply of a run to a step is about, as columns of imported replies. `settings`: the manifest's."""
    shown = prediction.groups[-1].shown if prediction.groups else None
    if shown is None or ("format" in settings and _is_by_rule(shown, truth, settings.get("agent"))):
        return {}
    from seeact_offline.scoring.importers.raw_replies import PARTS, SIZES

    return dict(zip((*SIZES, *PARTS), (*shown.sent, *shown.part), strict=True))


def _is_by_rule(shown: ShownPicture, truth: Truth | None, agent: object) -> bool:
    """Tells whether the picture is as the agent's own rule makes it, where an import did not say: another agent has another rule."""
    page = None if truth is None else truth.picture_size
    known = GUI_MODELS.get(agent) or GROUNDERS.get(agent)
    if known is None or page is None or shown.part != (0, 0, *page):
        return False
    with suppress(ValueError):
        return bool(known.view.resize.apply(page) == shown.sent)
    return shown.sent == page


def hint_of_run(run: Path) -> ReadingHint | None:
    """The hint of a run in its folder."""
    from seeact_offline.runs.folder import RunFolder, read_manifest

    folder = RunFolder(run)
    predictions, targets = folder.load(), folder.load_targets()
    known = [key for key in predictions if key in targets]
    return reading_hint(
        [predictions[key] for key in known], [targets[key] for key in known], read_manifest(run).settings
    )
