"""A run whose replies cannot be read, or whose places are in other numbers: what would read them. A
format mismatch is no silent 0."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from seeact_offline.files.extensions import Doors
from seeact_offline.files.markdown import one_line
from seeact_offline.records import CallError, Prediction, Truth
from seeact_offline.replies.final_answer import PARSE_FAILURES
from seeact_offline.runs.folder import RunFolder, read_manifest
from seeact_offline.scoring.report import counted

MANY_UNREADABLE = 1 / 3
"""Share of the replies beyond which a mismatch is likely."""
MOST_MISSED, ENOUGH_PLACES = 0.9, 10
"""Share of the places beside every candidate beyond which a mismatch is likely, and the places that it takes."""
QUOTED = 160
"""Characters of a reply that are quoted."""
_REMEDIES = {
    "truncated": "Replies did not fit in --max-tokens: it is too small, or thinking used it up.",
    "empty_reply": "Replies had no text: the model said nothing, or thinking used --max-tokens up.",
    "refused": "The model or a content filter declined to answer.",
}
"""For each way in which a model declines."""


@dataclass(frozen=True, slots=True)
class BetterReading:
    """Agents in whose language or numbers more of a run's replies can be read."""

    agents: tuple[str, ...] = ()
    """All alike; the first is recommended."""
    share: str = ""
    """The share that they would read, or have right, in words."""
    grounds: bool = False
    """True where the replies are a grounder's, which is asked about what a planner describes."""
    can_fit: bool = False
    """False where the replies are in no agent's language, or could be read but for
    those in which the model declined."""


BETTER_READINGS = Doors({"importers": "seeact_offline.importers.better_reading:better_reading"})
"""Functions of predictions with truths, of those whose places may be in other numbers, of the manifest's settings, and
of whether replies cannot be read. The room that reads replies again brings one."""


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
    better: BetterReading = BetterReading()

    @property
    def n_unreadable(self) -> int:
        return sum(self.failures.values())

    @property
    def is_mostly_unreadable(self) -> bool:
        """True where more than half of the replies cannot be read."""
        return 2 * self.n_unreadable > self.n_replies

    def command(self, run: str | Path) -> str:
        """The command that scores the same replies as the first of `agents`. `run`: the folder."""
        return shlex.join(["seeact-offline", "score", str(run), "--agent", self.better.agents[0], "--out", "DIR"])

    def sentences(self, run: str | Path = "RUN") -> list[str]:
        """The finding, a reply, and the remedy."""
        names = ", ".join(f"{name} {n:,}" for name, n in sorted(self.failures.items()))
        lines = []
        if self.n_unreadable > MANY_UNREADABLE * self.n_replies:
            lines.append(
                f"{self.n_unreadable:,} of {counted(self.n_replies, 'reply', 'replies')} cannot be read ({names})."
            )
        if _is_missed(self.n_missed, self.n_places):
            lines.append(f"{self.n_missed:,} of {counted(self.n_places, 'place')} lie on no candidate.")
        lines.append(f"One reply: {self.quoted}")
        lines += [
            text for name, text in _REMEDIES.items() if self.failures.get(name, 0) > MANY_UNREADABLE * self.n_replies
        ]
        if self.better.agents:
            remedy = (
                f"ask with --grounder-agent {shlex.quote(self.better.agents[0])}"
                if self.better.grounds
                else self.command(run)
            )
            lines.append(f"Read as {', '.join(self.better.agents)}: {self.better.share}. To score them so: {remedy}")
        elif self.better.can_fit:
            lines.append("No other agent here reads more of them: docs/agents.md says how to declare one.")
        return lines


def _is_missed(n_missed: int, n_places: int) -> bool:
    return n_places >= ENOUGH_PLACES and n_missed > MOST_MISSED * n_places


@cache
def unreadable_failures() -> frozenset[str]:
    """Failures of replies that name no element in a form that is read. Another act than
    CLICK, TYPE and SELECT was read."""
    from seeact_offline.replies.points import POINT_FAILURES

    named = {"no_act", "unknown_act", "no_marks", "no_place", "format_error", *PARSE_FAILURES, *POINT_FAILURES}
    return frozenset(named - {"unknown_action", "missing_value", "point_outside"})


def reading_hint(
    predictions: Sequence[Prediction], truths: Sequence[Truth], settings: Mapping[str, Any]
) -> ReadingHint | None:
    """Looks for the reason of unreadable or misplaced replies. None where most replies can be read, and some places lie
    on candidates. `truths`: of the same steps. `settings`: the manifest's."""
    pairs = [
        (prediction, truth)
        for prediction, truth in zip(predictions, truths, strict=True)
        if prediction.ran and prediction.groups and prediction.groups[-1].replies and not _has_declined(prediction)
    ]
    declined = [prediction for prediction in predictions if _has_declined(prediction)]
    n_replies = len(pairs) + len(declined)
    failed = [prediction for prediction, _ in pairs if prediction.failure is not None and prediction.element_id is None]
    unread = [prediction for prediction in failed if prediction.failure in unreadable_failures()]
    failures = Counter(prediction.failure for prediction in [*unread, *declined])
    places = [
        (prediction, truth)
        for prediction, truth in pairs
        if prediction.point is not None or prediction.failure == "point_outside"
    ]
    missed = [prediction for prediction, _ in places if prediction.element_id is None]
    wrong = [prediction for prediction, truth in places if prediction.element_id not in truth.positives]
    # where the model declined more often than it was not understood, no other agent reads more
    is_unread = len(unread) > max(MANY_UNREADABLE * len(pairs), len(declined))
    is_certain = is_unread or _is_missed(len(missed), len(places))
    is_declined = bool(declined) and failures.total() > MANY_UNREADABLE * n_replies
    may_misplace = not is_unread and 2 * len(wrong) > len(places) >= ENOUGH_PLACES
    better = BetterReading()
    if "importers" in BETTER_READINGS and (is_certain or may_misplace):
        better = BETTER_READINGS["importers"](pairs, places if may_misplace else (), settings, is_certain)
    if not better.agents and not is_certain and not is_declined:
        return None
    read = (unread or missed or wrong) if better.agents or is_certain else []
    line = one_line((read[0].groups[-1].replies[-1] if read else declined[0].detail)[: 20 * QUOTED])
    return ReadingHint(
        n_replies=n_replies,
        failures={str(name): n for name, n in failures.items()},
        n_places=len(places),
        n_missed=len(missed),
        quoted=(line if len(line) <= QUOTED else f"{line[:QUOTED]} ...") or "(empty)",
        better=better,
    )


def _has_declined(prediction: Prediction) -> bool:
    return prediction.ran and prediction.failure in CallError.ANSWERED


def hint_of_run(run: Path) -> ReadingHint | None:
    """The hint of a run in its folder."""
    folder = RunFolder(run)
    predictions, targets = folder.load(), folder.load_targets()
    keys = [key for key in predictions if key in targets]
    return reading_hint([predictions[key] for key in keys], [targets[key] for key in keys], read_manifest(run).settings)
