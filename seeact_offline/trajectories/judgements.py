"""Judgements of trajectories, by models and by people: one row each, in JSONL or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from seeact_offline.files.formats import FormatError, decoded, read_json, typed
from seeact_offline.files.known_files import VERDICTS
from seeact_offline.files.named import LARGE, read_text
from seeact_offline.records import InputError
from seeact_offline.trajectories.foreign_folders import open_trajectories
from seeact_offline.trajectories.stored_verdicts import PERSON, StoredVerdict, people_rows, results_row, stored_rows
from seeact_offline.trajectories.trajectory import Trajectory, Verdict
from seeact_offline.trajectories.trajectory_files import PEOPLE

LABELS = "labels.jsonl"
"""The labels in a folder of `judge`, beside VERDICTS."""
NO_VERDICT = "no_verdict"
"""The outcome of a reply without a verdict."""
NO_ANSWER = "no_answer"
"""The outcome of a trajectory that fails without a call, as it has no answer to judge."""
CONSTRUCTED = "constructed"
"""The `source` of labels that are wrong or right by construction."""
WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "1", "1.0", "yes", "success", "successful", "pass", "passed"), True),
    **dict.fromkeys(
        ("false", "0", "0.0", "no", "not success", "failure", "fail", "failed", "unsuccessful", "unsuccesful"), False
    ),
    **dict.fromkeys(("", "none", "null", "nan", "n/a", "unsure"), None),
}
"""Words that a file may have for a verdict, in lower case."""
NAMES = {
    **dict.fromkeys(("trajectory_id", "id"), "trajectory"),
    **dict.fromkeys(("label", "success", "trajectory_success"), "verdict"),
    **dict.fromkeys(("annotator", "annotator_id", "annotator_name"), "judge"),
    **dict.fromkeys(("model_name", "agent_name"), "agent"),
    "task_id": "task",
}
"""Other files' names of the fields of a verdict, the surest first. Our own name counts for more."""
_OTHER_VERDICT = re.compile(rf'"(?:{"|".join(name for name, ours in NAMES.items() if ours == "verdict")})"\s*:')
_RESULT = '"predicted_label"'
"""A key in each line of Online-Mind2Web's results."""
_OF_BENCHMARK = ("benchmark", "agent", "task")
"""Columns that name a trajectory together, as in AgentRewardBench's `annotations.csv`."""
_NUMBERS = {
    **dict.fromkeys(("repeat", "n_pictures", "calls", "prompt_tokens", "completion_tokens"), int),
    **dict.fromkeys(("cost_usd", "seconds"), float),
}
"""Fields that are numbers, which a CSV holds as text."""
MOST = 10**15
"""Largest number of a judgement: sums of a file's numbers stay exact."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judgement of one trajectory, with its verdict if it has one."""

    trajectory: str
    verdict: bool | None
    """True for success; None where there is no verdict, for the reason that `outcome` names."""
    judge: str = ""
    """The judge's rules, or the person."""
    model: str = ""
    """The model that was asked; empty for people."""
    k: str = ""
    """Number of last screenshots that were shown, or `all`."""
    repeat: int = 1
    task: str = ""
    """Id of the task; trajectories of one task are alike, so intervals draw tasks. Empty: the trajectory is its own."""
    agent: str = ""
    """The maker of the trajectory."""
    source: str = ""
    """Source of a label, such as `people` or `constructed`; empty for a model's."""
    outcome: str = "verdict"
    """`verdict`; or why there was no call (`no_answer`), or no verdict (`no_verdict`, or the name of a failure)."""
    detail: str = ""
    reply: str = ""
    n_pictures: int = 0
    """Screenshots that were sent."""
    calls: int = 0
    cost_usd: float | None = None
    """None where the price is not known."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    digest: str = ""
    """Digest of the trajectory's texts, so that a changed one is judged again."""
    ran: bool = True
    """False where the call failed; the same command asks again."""

    def __post_init__(self) -> None:
        if not self.trajectory:
            raise FormatError("trajectory to be the id of a trajectory", "an empty text")
        for name in _NUMBERS:
            value = getattr(self, name)
            if value is not None and not 0 <= value <= MOST:
                raise FormatError(f"{name} to be a number from 0 to {MOST:.0e}", f"{value!s:.40}")

    @property
    def line(self) -> str:
        """The verdict as a line of JSONL."""
        # a reply may hold lone surrogates, which msgspec does not write
        return json.dumps(msgspec.to_builtins(self))


def read_judgements(path: Path, argument: Literal["verdicts", "labels"]) -> list[Judgement]:
    """Reads verdicts or labels from a JSONL or CSV file, from the folder of `judge`, from what another program has
    stored (`stored_verdicts`), or from trajectories that hold them.

    Trajectories hold verdicts of models, and labels of all others. The last of several rows of the same trajectory,
    judge, model, k and repeat counts. Raises InputError about `argument` that names the line.
    """
    if path.is_dir():
        own = path / (VERDICTS if argument == "verdicts" else LABELS)
        if not own.is_file():
            if argument == "verdicts" and (others := stored_rows(path, argument)) is not None:
                return _last_of_each((number, _foreign(row)) for number, row in enumerate(others))
            try:
                trajectories = open_trajectories(path)
            except InputError as error:
                if error.sentence:
                    raise error.renamed(argument) from None
                raise InputError(argument, f"{own.name}, or {error.expected}", error.got) from None
            stored = (labels_of if argument == "labels" else verdicts_of)(trajectories)
            if not stored:
                raise InputError(argument, f"trajectories that hold {argument}", f"none in {path}")
            return stored
        path = own
    text = read_text(argument, path, "a JSONL or CSV file of verdicts, or a folder of `judge`", largest=LARGE)
    rows = _csv_rows(text) if path.suffix.lower() == ".csv" else _json_rows(text, path)
    try:
        judgements = _last_of_each(rows)
    except _LineError as error:
        raise InputError(argument, error.expected, f"{error.got} in line {error.line} of {path}") from None
    if not judgements:
        raise InputError(argument, "at least one verdict", f"none in {path}")
    return judgements


def _last_of_each(rows: Iterable[tuple[int, Judgement]]) -> list[Judgement]:
    latest: dict[tuple[str, ...], Judgement] = {}
    for _, row in rows:
        key = (row.trajectory, row.judge, row.model, row.k, str(row.repeat))
        # ordered by the last row
        latest.pop(key, None)
        latest[key] = row
    return list(latest.values())


def _foreign(stored: StoredVerdict, source: str = "") -> Judgement:
    outcome = "api_error" if stored.failed else "verdict" if stored.verdict is not None else NO_VERDICT
    return Judgement(
        trajectory=stored.trajectory, verdict=stored.verdict, judge=stored.judge, model=stored.model, task=stored.task,
        agent=stored.agent,
        source=source, outcome=outcome, detail=stored.failed[:300], reply=stored.reply,
        calls=int(stored.prompt_tokens > 0),
        prompt_tokens=stored.prompt_tokens, completion_tokens=stored.completion_tokens, ran=not stored.failed,
    )  # fmt: skip


def verdicts_of(trajectories: Iterable[Trajectory]) -> list[Judgement]:
    """The verdicts of models that trajectories hold, and, where people have labelled them, of programs."""
    return [
        _stored(trajectory, verdict)
        for trajectory in trajectories
        for verdict in trajectory.verdicts
        if verdict.origin == "model" or (verdict.origin == "check" and _labellers(trajectory) == "person")
    ]


def labels_of(trajectories: Iterable[Trajectory]) -> list[Judgement]:
    """The labels that trajectories hold: people's, or else by construction, or else by programs."""
    return [
        _stored(trajectory, verdict)
        for trajectory in trajectories
        for verdict in trajectory.verdicts
        if verdict.origin == _labellers(trajectory)
    ]


def _labellers(trajectory: Trajectory) -> str | None:
    origins = {verdict.origin for verdict in trajectory.verdicts}
    return next((origin for origin in ("person", CONSTRUCTED, "check") if origin in origins), None)


def _stored(trajectory: Trajectory, verdict: Verdict) -> Judgement:
    return Judgement(
        trajectory=trajectory.id, verdict=verdict.success, judge=verdict.by, task=trajectory.task_id,
        agent=trajectory.agent, source=verdict.origin,
        detail=verdict.detail, outcome="verdict" if verdict.success is not None else NO_VERDICT,
    )  # fmt: skip


class _LineError(Exception):
    """A line that is no verdict."""

    def __init__(self, line: int, error: FormatError) -> None:
        super().__init__(str(error))
        self.line, self.expected, self.got = line, error.expected, error.got


def _json_rows(text: str, path: Path) -> Iterator[tuple[int, Judgement]]:
    if text.lstrip()[:1] == "[" and PERSON in text:
        try:
            yield from ((1, _foreign(stored, "person")) for stored in people_rows(text))
        except FormatError as error:
            raise _LineError(1, error) from None
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield number, _foreign(results_row(line, path)) if _RESULT in line else _decoded(line)
            except FormatError as error:
                raise _LineError(number, error) from None


def _decoded(line: str) -> Judgement:
    try:
        if _OTHER_VERDICT.search(line) is None:
            return decoded(line, Judgement)
    except FormatError:
        # other names, or other words for a verdict
        pass
    row = read_json(line)
    return typed(_renamed(row) if isinstance(row, dict) else row, Judgement)


def _csv_rows(text: str) -> Iterator[tuple[int, Judgement]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        header = {NAMES.get(name, name) for name in names}
        named_together = "trajectory" not in header and header.issuperset(_OF_BENCHMARK)
        if not header.issuperset(("verdict", *(() if named_together else ("trajectory",)))):
            raise _LineError(1, FormatError("the columns trajectory and verdict", ", ".join(sorted(header)) or "none"))
        if len(verdicts := [name for name in names if NAMES.get(name, name) == "verdict"]) > 1:
            raise _LineError(1, FormatError("one column of verdicts", " and ".join(verdicts)))
        labelled: Counter[str] = Counter()
        for row in reader:
            try:
                # a cell beyond the header has the name None
                cells = {name.strip(): cell.strip() for name, cell in row.items() if name is not None and cell}
                cells = {name: cell for name, cell in cells.items() if cell}
                for name, kind in _NUMBERS.items():
                    if name in cells:
                        cells[name] = _number(name, cells[name], kind)
                made = {"verdict": None, **_renamed(cells)}
                if named_together:
                    made["trajectory"] = "/".join(made.get(name, "") for name in _OF_BENCHMARK)
                    labelled[made["trajectory"]] += 1
                    # several people without a name are several
                    made.setdefault("judge", f"annotator-{labelled[made['trajectory']]}")
                    made.setdefault("source", "person")
                yield reader.line_num, typed(made, Judgement)
            except FormatError as error:
                raise _LineError(reader.line_num, error) from None
    except csv.Error as error:
        raise _LineError(reader.line_num, FormatError("CSV", str(error))) from None


def _number(name: str, text: str, kind: type) -> Any:
    try:
        # a table's column with gaps has 2.0 for 2
        return kind(text.removesuffix(".0")) if kind is int else kind(text)
    except ValueError:
        raise FormatError(f"{name} to be a number", repr(text)) from None


def _verdict(entry: Any) -> bool | None:
    word = "" if entry is None else " ".join(str(entry).split()).lower()
    if word not in WORDS:
        raise FormatError("verdict to be true, false or null", repr(entry)[:80])
    return WORDS[word]


def _renamed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with our names of its fields, and with true, false or None for its verdict. Raises FormatError."""
    made = {name: value for name, value in row.items() if name not in NAMES}
    for name, ours in NAMES.items():
        if name in row and ours != "verdict":
            made.setdefault(ours, row[name])
    verdicts = {name: _verdict(row[name]) for name in row if NAMES.get(name, name) == "verdict"}
    if len(set(verdicts.values())) > 1:
        # a judge's verdict and a person's label of the same line must not be taken for each other
        raise FormatError("one verdict a line", " and ".join(f"{name} {verdict}" for name, verdict in verdicts.items()))
    for verdict in verdicts.values():
        made["verdict"] = verdict
    # ids and k may be written as numbers
    for name in ("trajectory", "judge", "k", "task", "agent"):
        if isinstance(made.get(name), int) and not isinstance(made[name], bool):
            made[name] = str(made[name])
    if isinstance(made.get("ran"), str):
        made["ran"] = WORDS.get(made["ran"].lower()) is not False
    return made


def by_judge(verdicts: Iterable[Judgement]) -> list[list[Judgement]]:
    """The verdicts of each judge (rules, model and k), judges by name; k as numbers, `all` last."""
    judged: dict[tuple[str, str, str], list[Judgement]] = {}
    for judgement in verdicts:
        judged.setdefault((judgement.judge, judgement.model, judgement.k), []).append(judgement)

    def order(judge: tuple[str, str, str]) -> tuple[str, str, float, str]:
        rules, model, k = judge
        # a number of any length
        return rules, model, float(k) if k.isdecimal() else math.inf, k

    return [judged[judge] for judge in sorted(judged, key=order)]


def labels_by_person(labels: Iterable[Judgement]) -> dict[str, dict[str, bool]]:
    """Trajectory -> person -> label; labels of unsure people are left out."""
    people: dict[str, dict[str, bool]] = {}
    for label in labels:
        if label.verdict is not None:
            people.setdefault(label.trajectory, {})[label.judge] = label.verdict
    return people


def majority(people: Mapping[str, Mapping[str, bool]]) -> dict[str, bool]:
    """The label that most people give each trajectory; those on which they are split evenly are left out."""
    return {
        trajectory: 2 * sum(votes.values()) > len(votes)
        for trajectory, votes in people.items()
        if 2 * sum(votes.values()) != len(votes)
    }


def majority_of_repeats(judgements: Iterable[Judgement]) -> dict[str, bool]:
    """The verdict of most repeats of one judge on each trajectory."""
    return majority(
        labels_by_person(msgspec.structs.replace(verdict, judge=str(verdict.repeat)) for verdict in judgements)
    )


# --- verdicts on episodes that have ended ---


@dataclass(frozen=True, slots=True)
class LaterVerdict:
    """A verdict, and whose it is: `person`, or `judge` with its name."""

    by: str
    success: bool


def later_verdicts(folder: Path, judged: Path | None = None) -> dict[str, LaterVerdict]:
    """Trajectory -> verdict, of `judged`, a folder of `judge`, and of people, who count for more. Several people count
    by their majority; an even split is no verdict. Raises InputError about `verdict`."""
    verdicts = {} if judged is None else verdicts_of_judge(judged)
    if (folder / PEOPLE).is_file() and (folder / PEOPLE).stat().st_size:
        people = labels_by_person(read_judgements(folder / PEOPLE, "labels"))
        verdicts |= {name: LaterVerdict("person", success) for name, success in majority(people).items()}
    return verdicts


def verdicts_of_judge(judged: Path) -> dict[str, LaterVerdict]:
    """The verdicts of a folder of `judge`, repeats by their majority. Raises InputError about `verdict` for several
    judges, and for a folder that cannot be read."""
    try:
        judges = by_judge(read_judgements(judged, "verdicts"))
    except InputError as error:
        raise error.renamed("verdict") from None
    if len(judges) > 1:
        sentence = f"{judged} holds verdicts of {len(judges)} judges; name a folder of a single judge"
        raise InputError("verdict", sentence=sentence)
    by = f"judge {judges[0][0].judge}"
    return {name: LaterVerdict(by, success) for name, success in majority_of_repeats(judges[0]).items()}
