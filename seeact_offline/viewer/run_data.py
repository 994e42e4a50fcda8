"""A run's folder as the viewer reads it: the list of steps in memory, everything else line by line when it is asked
for."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from seeact_offline.dataset import Shard, Split, open_split
from seeact_offline.dataset.rows import LIGHT_COLUMNS, RowPosition, read_step
from seeact_offline.dataset.split import find_split, is_on_hub
from seeact_offline.files.formats import decoded, read_json, typed
from seeact_offline.files.named import SMALL, open_regular, read_regular
from seeact_offline.files.whole import Journal
from seeact_offline.records import (
    CallRecord,
    DatasetError,
    InputError,
    KeyedRow,
    Prediction,
    SeeActError,
    Step,
    StepKey,
    Truth,
)
from seeact_offline.runs.folder import RunFolder, read_call, read_prediction, read_steps, read_target, worded
from seeact_offline.sample import DATA as SAMPLE
from seeact_offline.scoring.protocols import PROTOCOLS, Protocol, find_protocol
from seeact_offline.scoring.results import Results, StepRow
from seeact_offline.scoring.waterfall import LEFT_OUT

if TYPE_CHECKING:
    from seeact_offline.grounding import Grounding
    from seeact_offline.ranking import FileScores

FILES = (
    "manifest.json", "predictions.jsonl", "targets.jsonl", "calls.jsonl", "spending.jsonl", "steps.jsonl",
    "results.json",
)  # fmt: skip
COUNTED_AT_ONCE = 1 << 17
SCORED_AT_ONCE = 500
"""Steps of an unfinished run that are in memory with all their replies."""
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
_HEAD = re.compile(r'\{"annotation_id": "([^"\\]*)", "action_uid": "([^"\\]*)"')


class _Settings(msgspec.Struct):
    """Settings of a manifest that the viewer uses. An imported run has fewer."""

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
    """Origin of a run's replies."""

    replies: int
    from_store: int
    oldest: Annotated[str, msgspec.Meta(max_length=10)] | None
    sent: int
    spent_usd: float | None


class _Manifest(msgspec.Struct):
    """The parts of `manifest.json` that the viewer uses."""

    settings: _Settings | None = None
    replies: _Replies | None = None
    identity: dict[str, Any] | None = None
    packages: dict[str, Any] | None = None


class _Cost(msgspec.Struct):
    cost_usd: float | None = 0.0


class _PredictionHead(KeyedRow, frozen=True):
    """The parts of a line of `predictions.jsonl` that the list uses."""

    usage: _Cost = msgspec.field(default_factory=_Cost)
    ran: bool = True
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an unfinished run."""

    done: int
    failed: int
    """Steps of `done` that failed to run."""
    figures: Mapping[str, float | None]
    """`element_accuracy`, `operation_f1`, `step_success`: over the steps so far, as the protocol averages them."""
    cost_usd: float | None
    failures: Mapping[str, int]


@dataclass(frozen=True)
class RunSnapshot:
    """A run as it was when its files were read."""

    path: Path
    manifest: Mapping[str, Any]
    results: Results | None
    """None for an unfinished run."""
    rows: Mapping[StepKey, StepRow]
    """The scored steps, in the order of the file."""
    costs: Mapping[StepKey, float | None]
    """USD of each step that has a prediction."""
    predictions: Mapping[StepKey, int] | None = None
    """Byte at which a step's prediction begins; None: found once a step is opened."""
    targets: Mapping[StepKey, int] | None = None
    """The same of its right answer."""
    written: tuple[int, int] = (0, 0)
    """Inode and bytes of `predictions.jsonl` before it was read."""
    progress: Progress | None = None
    problems: tuple[str, ...] = ()
    is_readable: bool = True
    """False: nothing else is known, and `problems` says why."""

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.manifest.get("settings") or {}

    @property
    def date(self) -> str:
        """The beginning of the run; after every date where its manifest has none."""
        made = self.manifest.get("made")
        date = made.get("date") if isinstance(made, dict) else None
        return date if isinstance(date, str) else "~"

    def prediction(self, key: StepKey) -> Prediction | None:
        """Raises FormatError, InputError, OSError where the file is damaged or has changed meanwhile."""
        offset = self._predictions.get(key)
        return None if offset is None else read_prediction(Journal(self.path / "predictions.jsonl").at(offset))

    def truth(self, key: StepKey) -> Truth | None:
        """None where the run does not keep it. Raises as `prediction` does."""
        offset = self._targets.get(key)
        return None if offset is None else read_target(Journal(self.path / "targets.jsonl").at(offset))

    def calls_of(self, key: StepKey) -> dict[tuple[int, int], CallRecord]:
        """(group, turn) -> its call. Raises as `prediction` does."""
        journal = Journal(self.path / "calls.jsonl")
        calls = [read_call(journal.at(offset))[1] for offset in self._calls.get(key, ())]
        return {(call.group, call.turn): call.record for call in calls}

    @cached_property
    def _predictions(self) -> Mapping[StepKey, int]:
        return dict(self._offsets("predictions.jsonl")) if self.predictions is None else self.predictions

    @cached_property
    def _targets(self) -> Mapping[StepKey, int]:
        return dict(self._offsets("targets.jsonl")) if self.targets is None else self.targets

    @cached_property
    def _calls(self) -> Mapping[StepKey, Sequence[int]]:
        calls: dict[StepKey, list[int]] = {}
        for key, offset in self._offsets("calls.jsonl"):
            calls.setdefault(key, []).append(offset)
        return calls

    def _offsets(self, name: str) -> Iterable[tuple[StepKey, int]]:
        return _offsets(self.path / name) if self.is_readable else ()


def stamp(run: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """A value that changes whenever one of the run's files does."""
    return tuple(_file_stamp(run / name) for name in FILES)


def _file_stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def read_runs(paths: Sequence[Path]) -> list[RunSnapshot]:
    """All runs; one that cannot be read says so in a sentence. Raises InputError where none can be read."""
    runs, errors = [], []
    for path in paths:
        try:
            runs.append(read_run(path))
        except InputError as error:
            errors.append(error)
            problem = f"This run cannot be read: {error}."
            runs.append(RunSnapshot(path, {}, None, {}, {}, problems=(problem,), is_readable=False))
    if errors and len(errors) == len(runs):
        raise errors[0]
    return runs


def read_run(path: Path, before: RunSnapshot | None = None) -> RunSnapshot:
    """`before`: the same run as it was read earlier, whose steps are not scored again.

    Raises InputError for a folder without a run, and for files of it that are malformed or too large.
    """
    with worded(str(path), "runs"):
        return _read(path, before)


def _read(path: Path, before: RunSnapshot | None) -> RunSnapshot:
    manifest_json, results_json = _small(path / "manifest.json"), _small(path / "results.json")
    with worded(str(path / "results.json"), "runs"):
        results = None if results_json is None else Results.read(read_json(results_json))
    with worded(str(path / ("results.json" if manifest_json is None else "manifest.json")), "runs"):
        if manifest_json is not None:
            content = read_json(manifest_json)
        elif results is not None:
            # `score --out` writes no manifest: its results name the settings
            content = {"settings": dict(results.settings)}
        else:
            raise InputError("runs", sentence=f"{path} has no manifest.json; name the folder of a run")
        typed(content, _Manifest)
    for name in ("targets.jsonl", "calls.jsonl"):
        # a file of something else is found out at once; the other lines are read once a step is opened
        next(_lines(path / name, KeyedRow), None)
    is_scored = results is not None and os.path.lexists(path / "steps.jsonl")
    scored = read_steps(path) if is_scored else {}
    run = RunSnapshot(path, dict(content), results, scored, {})
    if results is not None:
        problems = () if results.complete else ("Not complete: some steps were never asked, or none was answered.",)
        run = replace(run, problems=problems)
        # with as many lines as steps, the scores say all that the list needs
        if len(scored) == _n_lines(path / "predictions.jsonl"):
            return replace(run, costs={key: row.cost_usd for key, row in scored.items()})
    inode, _, size = _file_stamp(path / "predictions.jsonl") or (0, 0, 0)
    heads = list(_lines(path / "predictions.jsonl", _PredictionHead))
    run = replace(
        run,
        costs={head.key: head.usage.cost_usd for _, head in heads},
        predictions={head.key: offset for offset, head in heads},
        written=(inode, size),
    )
    if results is None or not run.costs.keys() <= scored.keys():
        run = replace(run, targets=dict(_offsets(path / "targets.jsonl")))
        with worded(str(path / "predictions.jsonl"), "runs"):
            return _unfinished(run, {head.key: head for _, head in heads}, _scored_before(run, before))
    return run


def _n_lines(path: Path) -> int:
    """The number of whole lines; -1 where there is no file. Raises InputError."""
    if not os.path.lexists(path):
        return -1
    with worded(str(path), "runs"), open_regular(path) as file:
        return sum(piece.count(b"\n") for piece in iter(partial(file.read, COUNTED_AT_ONCE), b""))


def _small(path: Path) -> bytes | None:
    """None where there is no file. Raises OSError, InputError."""
    try:
        return read_regular(path, SMALL)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _offsets(path: Path) -> Iterator[tuple[StepKey, int]]:
    """The step of each line, and the byte at which it begins; none where there is no file. Raises InputError,
    OSError."""
    head, key = None, StepKey("", "")
    for line in Journal(path).lines():
        # lines as they are written need not be parsed, and those of a step follow each other
        if head is None or not line.text.startswith(head[0]):
            head = _HEAD.match(line.text)
            if head is not None:
                key = StepKey(*head.groups())
            else:
                with worded(f"line {line.number} of {path}", "runs"):
                    key = decoded(line.text, KeyedRow).key
        yield key, line.offset


def _lines(path: Path, kind: type[S]) -> Iterator[tuple[int, S]]:
    """Each whole line with the byte at which it begins; none where there is no file. Raises InputError."""
    for line in Journal(path).lines():
        with worded(f"line {line.number} of {path}", "runs"):
            record = decoded(line.text, kind)
        yield line.offset, record


# --- unfinished ---


def _scored_before(run: RunSnapshot, before: RunSnapshot | None) -> Mapping[StepKey, StepRow]:
    """The rows of the steps whose lines are the same as before: a file that has only grown keeps its lines."""
    if before is None or before.results is not None or before.manifest != run.manifest:
        return {}
    (inode, size), (old_inode, old_size) = run.written, before.written
    if inode != old_inode or size < old_size:
        return {}
    return {
        key: before.rows[key]
        for key, offset in run._predictions.items()
        if key in before.rows
        and before._predictions.get(key) == offset
        and before._targets.get(key) == run._targets.get(key)
    }


def _unfinished(
    run: RunSnapshot, heads: Mapping[StepKey, _PredictionHead], rows: Mapping[StepKey, StepRow]
) -> RunSnapshot:
    """The run with its steps so far scored under its own protocol. `rows`: those that are scored already."""
    truths = RunFolder(run.path).load_targets()
    name = run.settings.get("protocol") or ""
    if name not in PROTOCOLS:
        # to look at a run must not load code that its manifest names
        raise InputError("runs", f"a run under one of {', '.join(PROTOCOLS)}", name)
    from seeact_offline.grounding.strategies import UNGROUNDED

    protocol = find_protocol(name, grounded=run.settings.get("grounding") != UNGROUNDED)
    keys = [key for key in run.costs if key in truths]
    new = {row.key: row for row in _score(run, [key for key in keys if key not in rows], truths, protocol)}
    scored = {key: row for key in keys if (row := rows.get(key) or new.get(key)) is not None}
    costs = run.costs.values()
    from seeact_offline.runs.costs import run_cost

    try:
        cost = run_cost(RunFolder(run.path), None if None in costs else sum(cost or 0.0 for cost in costs))
    except InputError as error:
        raise error.renamed("runs") from None
    progress = Progress(
        done=len(heads),
        failed=sum(not head.ran for head in heads.values()),
        figures=_averages(list(scored.values()), truths, protocol),
        cost_usd=cost,
        failures=dict(sorted(Counter(head.failure for head in heads.values() if head.failure).items())),
    )
    lacking = len(heads) - len(keys)
    problem = f"The run does not keep the right answers of {lacking} steps: they are shown once it is scored."
    return replace(run, results=None, rows=scored, progress=progress, problems=(problem,) if lacking else ())


def _score(
    run: RunSnapshot, keys: Sequence[StepKey], truths: Mapping[StepKey, Truth], protocol: Protocol
) -> Iterator[StepRow]:
    from seeact_offline.scoring.labelled_predictions import LabelledPredictions
    from seeact_offline.scoring.step_scores import rows, score_steps

    for start in range(0, len(keys), SCORED_AT_ONCE):
        some = keys[start : start + SCORED_AT_ONCE]
        predictions = [prediction for key in some if (prediction := run.prediction(key)) is not None]
        right = [truths[prediction.key] for prediction in predictions]
        scores = score_steps(LabelledPredictions(predictions, right), protocol)
        for row in rows(scores, predictions, right):
            yield typed(row, StepRow)


def _averages(
    scored: Sequence[StepRow], truths: Mapping[StepKey, Truth], protocol: Protocol
) -> dict[str, float | None]:
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


# --- data of runs: any one step is opened without reading its split ---


@dataclass(frozen=True)
class RunData:
    """One split, without its pages and pictures."""

    split: Split
    places: Mapping[StepKey, tuple[Shard, RowPosition]]
    """Place of each step's row."""

    @cached_property
    def tasks(self) -> Mapping[str, str]:
        """`annotation_id` -> the task in words."""
        return {step.annotation_id: step.task for step in _first_steps(self.split.shards(pictures=True))}

    def step(self, key: StepKey) -> Step | None:
        """None for a step that the split does not have. Raises DatasetError."""
        place = self.places.get(key)
        return None if place is None else _step_at(*place)

    def earlier(self, key: StepKey, most: int) -> tuple[Step, ...]:
        """Up to `most` steps of the task that come right before this one. Raises DatasetError."""
        task = [step_key for step_key in self.places if step_key.annotation_id == key.annotation_id]
        before = task[: task.index(key)] if key in task and most else []
        return tuple(_step_at(*self.places[step_key]) for step_key in before[-most:])

    def selected(self, settings: Mapping[str, Any]) -> Split:
        """The split under a run's limit or choice of tasks."""
        return replace(self.split, limit=settings.get("limit"), wanted=settings.get("tasks"))


def open_data(settings: Mapping[str, Any], dataset: Any = None) -> RunData:
    """The data of a run. `settings`: its manifest's; `dataset`: path or id of the data, else the one in the settings.

    Reads no page and no picture. Raises InputError, also for other rows than the run's.
    """
    named = settings.get("dataset") if dataset is None else dataset
    split = open_split(named, str(settings.get("split")))
    if split.fingerprint != settings.get("dataset_fingerprint"):
        raise DatasetError("dataset", "the data that the run was made on", f"other rows in {named}")
    shards = split.shards(pictures=True)
    return RunData(split, {place.step_key: (shard, place) for shard in shards for place in shard.places})


def _first_steps(shards: Sequence[Shard]) -> Iterator[Step]:
    """One step of each task, without its page."""
    seen: set[str] = set()
    for shard in shards:
        wanted: dict[int, RowPosition] = {}
        for place in shard.places:
            if place.key.annotation_id not in seen:
                seen.add(place.key.annotation_id)
                wanted[place.position - shard.start] = place
        for position, row in enumerate(shard.source.light(LIGHT_COLUMNS) if wanted else ()):
            if position in wanted:
                yield read_step(row, wanted[position])


def _step_at(shard: Shard, place: RowPosition) -> Step:
    """Reads one row."""
    return next(replace(shard, places=(place,)).steps())


class DataSource:
    """The data set of a run, which is opened when it is first asked for."""

    def __init__(self, settings: Mapping[str, Any], named: Any) -> None:
        """`named`: path or id of the data."""
        self._settings, self._named = settings, named
        self._data: RunData | None = None
        self._lock = threading.Lock()
        self.problem: str | None = None
        """The reason why it cannot be opened, once that is known."""
        if not is_on_hub(named):
            # without its columns, which take a library that is slow to load
            self._try(lambda: find_split(named, str(settings.get("split"))))

    @property
    def data(self) -> RunData | None:
        """None where they cannot be opened, for which `problem` is the reason."""
        with self._lock:
            if self._data is None and self.problem is None:
                self._data = self._try(lambda: open_data(self._settings, self._named))
            return self._data

    def _try(self, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except InputError as error:
            self.problem = str(error)
        except OSError as error:
            self.problem = error.strerror or "it cannot be opened"
        return None


# --- runs ---


@dataclass(frozen=True)
class RunEntry:
    """A run, and its data set."""

    name: str
    run: RunSnapshot
    source: DataSource | None = None
    """None for a run that cannot be read."""

    @property
    def data(self) -> RunData | None:
        """Opens the data set."""
        return None if self.source is None else self.source.data

    @property
    def data_problem(self) -> str | None:
        """The reason why there are no data, in a sentence, as far as is known: until `data` is asked for, a data set
        that is there counts as good."""
        if self.source is None or self.source.problem is None:
            return None
        return (
            f"Pages, pictures, prompts and earlier actions of {self.name} cannot be shown: {self.source.problem}; "
            "name the data with `view --dataset DIR`."
        )

    @cached_property
    def is_sample(self) -> bool:
        """True for the rows of the bundled sample, also in another folder."""
        try:
            sample = find_split(SAMPLE, str(self.run.settings.get("split")))
            return sample.fingerprint == self.run.settings.get("dataset_fingerprint") and self.data is not None
        except InputError:
            return False

    @cached_property
    def grounding(self) -> Grounding | str:
        """The strategy that asked; or why its questions cannot be rebuilt."""
        from seeact_offline.results.reading_again import open_grounding

        try:
            return open_grounding(self.run.manifest, self.run.path / "captions.jsonl")
        except Exception as error:
            # a manifest that another program wrote must not keep the step from being looked at
            return reason_of(error)

    @cached_property
    def scores(self) -> FileScores | None:
        """The ranker's score of each candidate, where this machine still has them."""
        from seeact_offline.ranking.stage import kept_before

        digest = (self.run.manifest.get("identity") or {}).get("scores_digest")
        return None if self.data is None or not isinstance(digest, str) else kept_before(self.data.split, digest)


def reason_of(error: Exception) -> str:
    """A sentence on an error, which names the type of an unforeseen one."""
    return str(error) if isinstance(error, SeeActError) else f"{type(error).__name__}: {error}"


def at_hand(folder: Path, source: str) -> Path | None:
    """The path that a folder's manifest names: as it stands, or from a folder above its own; None where there is
    nothing."""
    if source in ("", "sample"):
        return None
    bases = (Path(), *folder.resolve().parents)
    # unlike a path's own method, this takes names that no system can have
    return next((base / source for base in bases if os.path.exists(base / source)), None)


class DataSets:
    """The data sets of runs, each opened once."""

    def __init__(self, dataset: Any) -> None:
        """`dataset`: path or id of the data of all runs; None: those in their manifests."""
        self._dataset = dataset
        self._sources: dict[tuple[str, ...], DataSource] = {}

    def entry(self, run: RunSnapshot, name: str) -> RunEntry:
        """The run with its data."""
        if not run.is_readable:
            return RunEntry(name, run)
        named = run.settings.get("dataset") if self._dataset is None else self._dataset
        path = at_hand(run.path, named) if self._dataset is None and isinstance(named, str) else None
        named = named if path is None else str(path)
        about = (str(named), *(str(run.settings.get(setting)) for setting in ("split", "dataset_fingerprint")))
        if about not in self._sources:
            self._sources[about] = DataSource(run.settings, named)
        return RunEntry(name, run, self._sources[about])
