"""Verdicts that are given on episodes once they have ended: by people, or by a judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seeact_offline.records import InputError
from seeact_offline.trajectories.judge_agreement import by_judge, labels_by_person, majority
from seeact_offline.trajectories.judgements import read_judgements
from seeact_offline.trajectories.people import PEOPLE

PERSON = "person"


@dataclass(frozen=True, slots=True)
class LaterVerdict:
    """A verdict, and whose it is: `person`, or `judge` with its name."""

    by: str
    success: bool


def later_verdicts(folder: Path, judged: Path | None = None) -> dict[str, LaterVerdict]:
    """Trajectory -> verdict, of `judged`, a folder of `judge`, and of people, who count for more. Several people count by their majority; an
    even split is no verdict. Raises InputError about `verdict`."""
    verdicts = {} if judged is None else verdicts_of_judge(judged)
    if (folder / PEOPLE).is_file() and (folder / PEOPLE).stat().st_size:
        people = labels_by_person(read_judgements(folder / PEOPLE, "labels"))
        verdicts |= {name: LaterVerdict(PERSON, success) for name, success in majority(people).items()}
    return verdicts


def verdicts_of_judge(judged: Path) -> dict[str, LaterVerdict]:
    """The verdicts of a folder of `judge`, repeats by their majority. Raises InputError about `verdict` for several judges, and for a folder
    that cannot be read."""
    try:
        judges = by_judge(read_judgements(judged, "verdicts"))
    except InputError as error:
        raise error.renamed("verdict") from None
    if len(judges) > 1:
        sentence = f"{judged} holds verdicts of {len(judges)} judges; name a folder of a single judge"
        raise InputError("verdict", sentence=sentence)
    repeats: dict[str, dict[str, bool]] = {}
    for one in judges[0]:
        if one.verdict is not None:
            repeats.setdefault(one.trajectory, {})[str(one.repeat)] = one.verdict
    return {name: LaterVerdict(f"judge {judges[0][0].judge}", success) for name, success in majority(repeats).items()}
