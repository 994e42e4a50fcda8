"""One run's folder as the viewer reads it: what is listed of every step in memory, the rest line by line when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from seeact_offline.files.formats import FormatError, decoded, read_json, typed
from seeact_offline.files.journal import Journal
from seeact_offline.files.named import SMALL, read_regular
from seeact_offline.records import CallRecord, InputError, Prediction, StepKey, Truth
from seeact_offline.runs.config import UNGROUNDED
from seeact_offline.runs.folder import RunFolder, read_prediction, read_target
from seeact_offline.scoring.answers import Answers
from seeact_offline.scoring.protocols import Protocol, find_protocol
from seeact_offline.scoring.step_scores import rows, score_steps
from seeact_offline.scoring.waterfall import LEFT_OUT

FILES = ("manifest.json", "predictions.jsonl", "targets.jsonl", "calls.jsonl", "steps.jsonl", "results.json")
SCORED_AT_ONCE = 500
"""Steps of an unfinished run that are in memory with all that was said."""
T = TypeVar("T")
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
S = TypeVar("S", bound=msgspec.Struct)


class _Settings(msgspec.Struct):
    """Settings of a manifest, as far as they are shown or say what was asked; one of an earlier version says less."""

    dataset: str | None = None
    split: str | None = None
    dataset_fingerprint: str | None = None
    grounding: str | None = None
    model: str | None = None
    ranker: str | None = None
    protocol: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    tasks: list[str] | None = None
    no_image: bool | None = None


class _Replies(msgspec.Struct):
    """Where a run's replies come from."""

    replies: int
    from_store: int
    oldest: Annotated[str, msgspec.Meta(max_length=10)] | None
    sent: int
    spent_usd: float | None


class _Manifest(msgspec.Struct):
    """`manifest.json`, as far as it is looked at."""

    settings: _Settings | None = None
    replies: _Replies | None = None
    identity: dict[str, Any] | None = None
    packages: dict[str, Any] | None = None


class _Figure(msgspec.Struct):
    macro: float | None = None
    ci95: tuple[float, float] | None = None


class _Cost(msgspec.Struct):
    cost_usd: float | None = 0.0


class _Results(msgspec.Struct):
    """`results.json`, as far as it is shown."""

    grounding: str | None = None
    model: str | None = None
    split: str | None = None
    protocol: str | None = None
    ranker: str | None = None
    element_accuracy: _Figure | None = None
    operation_f1: _Figure | None = None
    step_success_rate: _Figure | None = None
    task_success_rate: dict[str, float | None] | None = None
    usage: _Cost | None = None
    complete: bool = True


class Target(msgspec.Struct, frozen=True):
    """What was right, as `steps.jsonl` has it."""

    op: str = ""
    value: str = ""
    element_ids: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    """What was predicted, as `steps.jsonl` has it."""

    element_id: str | None = None
    op: str = ""
    value: str = ""


class Row(msgspec.Struct, frozen=True):
    """A line of `steps.jsonl`, as far as it is shown. What earlier versions lack is not known."""

    annotation_id: str
    action_uid: str
    outcome: str
    person_cause: str | None = None
    operation_f1: Share | None = None
    element: Share | None = None
    success: Share | None = None
    best_rank: int | None = None
    failure: str | None = None
    task: str = ""
    website: str = ""
    domain: str = ""
    n_actions: int = 0
    n_before: int = 0
    n_candidates: int = 0
    target: Target = Target()
    predicted: Answer = Answer()

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)


class _Said(msgspec.Struct):
    """A line of `predictions.jsonl`, as far as it is listed."""

    annotation_id: str
    action_uid: str
    usage: _Cost = msgspec.field(default_factory=_Cost)
    ran: bool = True
    failure: str | None = None

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)


class _Named(msgspec.Struct):
    """A line that is about a step."""

    annotation_id: str
    action_uid: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an unfinished run is."""

    done: int
    failed: int
    """Of `done`, those that failed to run."""
    figures: Mapping[str, float | None]
    """`element_accuracy`, `operation_f1`, `step_success`: over the steps so far, as the protocol averages them."""
    cost_usd: float | None
    failures: Mapping[str, int]


@dataclass(frozen=True)
class ViewedRun:
    """A run as it was when its files were looked at."""

    path: Path
    manifest: Mapping[str, Any]
    results: Mapping[str, Any] | None
    """None for an unfinished run."""
    rows: Mapping[StepKey, Row]
    """In the order of the file."""
    costs: Mapping[StepKey, float | None]
    """USD of each step that has a prediction."""
    said: Mapping[StepKey, int]
    """Byte at which a step's prediction begins; `right` and `calls` likewise."""
    right: Mapping[StepKey, int]
    calls: Mapping[StepKey, Sequence[int]]
    progress: Progress | None = None
    problems: tuple[str, ...] = ()
    is_readable: bool = True
    """Otherwise nothing is known of it, and `problems` says why."""

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.manifest.get("settings") or {}

    def prediction(self, key: StepKey) -> Prediction | None:
        """Raises FormatError, OSError where the file has changed meanwhile."""
        return _line_at(self.path / "predictions.jsonl", self.said.get(key), read_prediction)

    def truth(self, key: StepKey) -> Truth | None:
        """None where the run does not say what was right. Raises as `prediction` does."""
        return _line_at(self.path / "targets.jsonl", self.right.get(key), read_target)

    def calls_of(self, key: StepKey) -> dict[tuple[int, int], CallRecord]:
        """(group, turn) -> what the call took. Raises as `prediction` does."""
        path = self.path / "calls.jsonl"
        lines = [decoded(Journal(path).at(at), _Call) for at in self.calls.get(key, ())]
        return {(line.group, line.turn): CallRecord(line.attempts, line.seconds, line.request_id) for line in lines}


class _Call(msgspec.Struct):
    """A line of `calls.jsonl`."""

    group: int
    turn: int
    attempts: int
    seconds: float
    request_id: str | None = None


def stamp(run: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """Changes whenever one of the run's files does."""
    return tuple(_stamp(run / name) for name in FILES)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_runs(paths: Sequence[Path]) -> list[ViewedRun]:
    """One that cannot be read says so in a sentence. Raises InputError where none can be."""
    runs, errors = [], []
    for path in paths:
        try:
            runs.append(read_run(path))
        except InputError as error:
            errors.append(error)
            problem = f"This run cannot be read: {error}."
            runs.append(ViewedRun(path, {}, None, {}, {}, {}, {}, {}, problems=(problem,), is_readable=False))
    if len(errors) == len(runs) and errors:
        raise errors[0]
    return runs


def read_run(path: Path) -> ViewedRun:
    """Raises InputError for a folder that is no run, and for files of it that are none or too large."""
    try:
        return _read(path)
    except OSError as error:
        raise InputError("runs", "files of a run", f"{error.filename or path}: {error.strerror}") from None


def _read(path: Path) -> ViewedRun:
    manifest, results = _manifest(path), _results(path / "results.json")
    said = list(_lines(path / "predictions.jsonl", _Said))
    run = ViewedRun(
        path=path,
        manifest=manifest,
        results=results,
        rows={},
        costs={one.key: one.usage.cost_usd for _, one in said},
        said={one.key: offset for offset, one in said},
        right={_key(one): offset for offset, one in _lines(path / "targets.jsonl", _Named)},
        calls=_all_offsets(path / "calls.jsonl"),
    )
    scored = {row.key: row for _, row in _lines(path / "steps.jsonl", Row)} if results is not None else {}
    if results is None or not run.said.keys() <= scored.keys():
        try:
            return _unfinished(run, {one.key: one for _, one in said})
        except FormatError as error:
            raise InputError("runs", error.expected, f"{error.got} in {path / 'predictions.jsonl'}") from None
    lacking = (
        () if results.get("complete", True) else ("Not complete: some steps were never asked, or none was answered.",)
    )
    return replace(run, rows=scored, problems=lacking)


def _manifest(path: Path) -> dict[str, Any]:
    """Raises OSError; InputError where there is none, and for what is no manifest of ours."""
    found = _object(path / "manifest.json", _Manifest)
    if found is None:
        raise InputError("runs", "a folder of a run with a manifest.json", str(path))
    return found


def _results(path: Path) -> dict[str, Any] | None:
    """None where there are none yet. Raises OSError, and InputError for a file that is no results of ours."""
    return _object(path, _Results)


def _object(path: Path, kind: type[msgspec.Struct]) -> dict[str, Any] | None:
    """All of a small file, checked as far as `kind` goes; None where there is none. Raises OSError, InputError."""
    try:
        found = read_json(read_regular(path, SMALL))
        typed(found, kind)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except FormatError as error:
        raise InputError("runs", error.expected, f"{error.got} in {path}") from None
    return dict(found)


def _lines(path: Path, kind: type[S]) -> Iterator[tuple[int, S]]:
    """Each whole line with the byte at which it begins; none where there is no file. Raises InputError."""
    for line in Journal(path).lines():
        try:
            yield line.offset, decoded(line.text, kind)
        except FormatError as error:
            raise InputError("runs", error.expected, f"{error.got} in line {line.number} of {path}") from None


def _key(line: _Named) -> StepKey:
    return StepKey(line.annotation_id, line.action_uid)


def _all_offsets(path: Path) -> dict[StepKey, list[int]]:
    found: dict[StepKey, list[int]] = {}
    for offset, line in _lines(path, _Named):
        found.setdefault(_key(line), []).append(offset)
    return found


def _line_at(path: Path, offset: int | None, read: Callable[[str], T]) -> T | None:
    return None if offset is None else read(Journal(path).at(offset))


# --- unfinished ---


def _unfinished(run: ViewedRun, said: Mapping[StepKey, _Said]) -> ViewedRun:
    """With its steps so far scored under its own protocol."""
    truths = RunFolder(run.path).load_targets()
    protocol = find_protocol(run.settings.get("protocol") or "", grounded=run.settings.get("grounding") != UNGROUNDED)
    known = [key for key in run.said if key in truths]
    scored = {row.key: row for row in _scored(run, known, truths, protocol)}
    costs = run.costs.values()
    progress = Progress(
        done=len(said),
        failed=sum(not one.ran for one in said.values()),
        figures=_averages(list(scored.values()), truths, protocol),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        failures=dict(sorted(Counter(one.failure for one in said.values() if one.failure).items())),
    )
    lacking = len(said) - len(known)
    problem = f"Of {lacking} steps the run does not keep what was right: they are shown when it is scored."
    return replace(run, results=None, rows=scored, progress=progress, problems=(problem,) if lacking else ())


def _scored(
    run: ViewedRun, keys: Sequence[StepKey], truths: Mapping[StepKey, Truth], protocol: Protocol
) -> Iterator[Row]:
    left = iter(keys)
    while some := list(islice(left, SCORED_AT_ONCE)):
        predictions = [found for key in some if (found := run.prediction(key)) is not None]
        right = [truths[prediction.key] for prediction in predictions]
        scores = score_steps(Answers(predictions, right), protocol)
        for row in rows(scores, predictions, right):
            yield typed(row, Row)


def _averages(scored: Sequence[Row], truths: Mapping[StepKey, Truth], protocol: Protocol) -> dict[str, float | None]:
    counted = [row for row in scored if row.outcome != LEFT_OUT]
    if not counted:
        return dict.fromkeys(("element_accuracy", "operation_f1", "step_success"))
    right = [truths[row.key] for row in counted]
    average, of_f1 = protocol.averaging(right), protocol.averaging_of_f1(right)
    grounded, quoted = protocol.element is not None, protocol.headline
    return {
        "element_accuracy": quoted(*average.points([row.element or 0.0 for row in counted])) if grounded else None,
        "operation_f1": protocol.headline_of_f1(*of_f1.points([row.operation_f1 or 0.0 for row in counted])),
        "step_success": quoted(*average.points([row.success or 0.0 for row in counted])) if grounded else None,
    }
