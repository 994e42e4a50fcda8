"""Runs over recorded steps in the browser: their list, and each step with every run's questions and answers.

Names: those of the page itself, `index.json`, `checks.json`, `replies.json`, `step/KEY.json` and `img/NAME.webp`.
Posts: `cause/KEY`, `also/KEY`.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seeact_offline.files.formats import FormatError
from seeact_offline.records import InputError, Prediction, StepKey
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.scoring.waterfall import HUMAN_CAUSES
from seeact_offline.viewer.index import compared, index_json, keys_of
from seeact_offline.viewer.run_data import DataSets, RunEntry, RunSnapshot, read_run, read_runs, stamp
from seeact_offline.viewer.site_files import File, StepFiles, StepSite, json_file

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from seeact_offline.dataset import Split
    from seeact_offline.viewer.notes import AlsoRightNotes, CauseNotes, Response

CHECKS = "checks.json"
"""Asked for once the page stands: a large run takes seconds to check."""
MANY_STEPS = 2000
"""Steps from which on a check has a process of its own: it takes some 30 MB a thousand."""
RELOAD_AFTER = 2.0
"""Seconds between two readings of files that change."""


@dataclass(frozen=True)
class _State:
    """All runs as they were when their files were last read."""

    stamps: tuple[object, ...]
    entries: tuple[RunEntry, ...]
    index: File
    comparison: Mapping[str, Any] | None
    keys: Mapping[str, StepKey]
    """The steps by name."""
    texts: Mapping[str, str]
    """The task of each `annotation_id`."""


class Site(StepSite):
    """Runs to be looked at."""

    folder = "step"

    def __init__(
        self,
        runs: Sequence[str | Path],
        *,
        baseline: str | Path | None = None,
        dataset: Any = None,
        causes: CauseNotes | None = None,
        also_right: AlsoRightNotes | None = None,
    ) -> None:
        """`baseline`: the run among `runs` that stands first, with which the others are compared; None: the oldest by
        its manifest. `dataset`: path or id of the data of the runs; None: those in their manifests. `causes`: a person's causes of
        loss. `also_right`: answers that a person finds right too.

        A run that cannot be read is shown as a sentence beside the others. Raises InputError where none can be read.
        """
        super().__init__()
        self._causes, self._also_right = causes, also_right
        self._lock = threading.RLock()
        self._checking = threading.Lock()
        self._checks: dict[str, tuple[object, dict[str, Any] | None]] = {}
        paths = [Path(run) for run in runs]
        stamps = {path: stamp(path) for path in paths}
        with rare_collections():
            named = [*zip(read_runs(paths), _names(paths), strict=True)]
            wanted = None if baseline is None else Path(baseline).resolve()
            first = min(named, key=lambda pair: (pair[0].path.resolve() != wanted, pair[0].date))
            named.sort(key=lambda pair: pair is not first)
            self._paths = [run.path for run, _ in named]
            self._data = DataSets(dataset)
            entries = tuple(self._data.entry(run, name) for run, name in named)
            self.is_sample = all(entry.is_sample for entry in entries)
            self._state = self._build(tuple(stamps[path] for path in self._paths), entries)
        self._read_at = time.monotonic()
        self._is_listed = threading.Event()

    @property
    def data_problems(self) -> list[str]:
        """Sentences on runs whose data cannot be opened, as far as is known."""
        return [entry.data_problem for entry in self._state.entries if entry.data_problem is not None]

    def prepare(self) -> list[str]:
        """Opens the first step once the list was asked for, so that others open at once. Returns the problems that
        this finds with the data."""
        known = self.data_problems
        self._is_listed.wait()
        # a step that cannot be opened says so to the request for it
        with suppress(Exception):
            self.step(next(iter(self._state.keys.values())))
        problems = [problem for problem in self.data_problems if problem not in known]
        if problems:
            with self._lock:
                self._state = self._build(self._state.stamps, self._state.entries, self._state.comparison)
        return problems

    def keys(self) -> Mapping[str, StepKey]:
        return self._fresh_state().keys

    def tables(self) -> Mapping[str, Callable[[], Any]]:
        state = self._fresh_state()
        return {
            "index.json": lambda: self._list(state),
            CHECKS: lambda: self._checked(state),
            # what the list searches
            "replies.json": lambda: {
                name: [_reply_text(entry.run, key) for entry in state.entries] for name, key in state.keys.items()
            },
        }

    def _list(self, state: _State) -> File:
        self._is_listed.set()
        return state.index

    def open_step(self, key: StepKey) -> StepFiles:
        from seeact_offline.viewer.step_json import open_step

        return open_step(key, self._state.entries, self._state.texts)

    def step_json(self, key: StepKey) -> dict[str, Any]:
        step = self.step(key).json
        runs = [
            None if run is None else {**run, **self._note(entry.run, key)}
            for entry, run in zip(self._state.entries, step["runs"], strict=True)
        ]
        return {**step, "runs": runs}

    def post(self, name: str, body: Mapping[str, Any]) -> Response:
        """Saves a person's cause of loss of a step of a run, or that its answer is right too."""
        folder, _, step = name.partition("/")
        key, place = self._state.keys.get(step), body.get("run", 0)
        notes = {"cause": self._causes, "also": self._also_right}.get(folder)
        if notes is None or key is None:
            return 404, {"error": "there is nothing to write here; start with --causes FILE or --also-right FILE"}
        entries = self._state.entries
        is_run = type(place) is int and 0 <= place < len(entries)
        prediction = _prediction(entries[place].run, key) if is_run else None
        if prediction is None:
            return 400, {"error": "run has to be the number of a run that has this step, from 0"}
        response = notes.post(prediction, body)
        if notes is self._also_right:
            # the list shows causes alone
            return response
        with self._lock:
            self._state = self._build(self._state.stamps, self._state.entries, self._state.comparison)
        return response

    def close(self) -> None:
        """Releases the files of a person's notes."""
        for notes in (self._causes, self._also_right):
            if notes is not None:
                notes.close()

    def _note(self, run: RunSnapshot, key: StepKey) -> dict[str, Any]:
        """A person's notes on this run: the cause of loss from the file of causes, else from the scores, and whether
        the answer is right too."""
        row, note, digest, is_right = run.rows.get(key), None, None, None
        is_noted = self._causes is not None or self._also_right is not None
        if is_noted and (prediction := _prediction(run, key)) is not None:
            from seeact_offline.scoring.human_causes import answer_digest

            digest = answer_digest(prediction)
            note = None if self._causes is None else self._causes.on(prediction)
            if self._also_right is not None and prediction.element_id is not None:
                is_right = self._also_right.on(prediction)
        if note is None and row is not None and row.person_cause is not None:
            note = {"cause": row.person_cause, "note": "", "annotator": ""}
        return {"relabelled": note, "answer_sha256": digest, "also_right": is_right}

    def _checked(self, state: _State) -> dict[str, Any]:
        """The check of each finished run, as `score --check` makes it without pages; a run that has not changed is not
        checked again."""
        with self._checking:
            for mark, entry in zip(state.stamps, state.entries, strict=True):
                if self._checks.get(entry.name, (None, None))[0] != mark:
                    self._checks[entry.name] = mark, _check(entry)
            return {"runs": [self._checks[entry.name][1] for entry in state.entries]}

    # --- runs that are not finished ---

    def _fresh_state(self) -> _State:
        is_due = time.monotonic() - self._read_at > RELOAD_AFTER
        # while one request reads the files, the others are answered with what was read before
        if is_due and self._lock.acquire(blocking=False):
            try:
                stamps = tuple(map(stamp, self._paths))
                if stamps != self._state.stamps:
                    self._reload(stamps)
                self._read_at = time.monotonic()
            finally:
                self._lock.release()
        return self._state

    def _reload(self, stamps: tuple[object, ...]) -> None:
        """Reads the runs that have changed. One with a file that is being written stays as it was read before."""
        read_stamps, entries = list(self._state.stamps), list(self._state.entries)
        for place, entry in enumerate(self._state.entries):
            if stamps[place] != read_stamps[place]:
                try:
                    run = read_run(entry.run.path, entry.run)
                except InputError:
                    continue
                read_stamps[place] = stamps[place]
                entries[place] = replace(entry, run=run) if entry.run.is_readable else self._data.entry(run, entry.name)
        self._state = self._build(tuple(read_stamps), tuple(entries))
        self.forget_steps()

    def _build(
        self, stamps: tuple[object, ...], entries: tuple[RunEntry, ...], comparison: Mapping[str, Any] | None = None
    ) -> _State:
        """`comparison`: of the same runs, where it is known."""
        runs = [entry.run for entry in entries]
        texts = {row.annotation_id: row.task for run in runs for row in run.rows.values() if row.task}
        keys = keys_of(runs)
        if any(key.annotation_id not in texts for key in keys.values()):
            for entry in entries:
                texts |= {} if entry.data is None else entry.data.tasks
        comparison = comparison or compared(runs)
        noted = frozenset[StepKey]() if self._causes is None else self._causes.keys
        notes = [{key: self._note(run, key)["relabelled"] for key in noted & run.costs.keys()} for run in runs]
        persons = [{key: note["cause"] for key, note in some.items() if note is not None} for some in notes]
        index = index_json(entries, keys, texts, comparison, persons)
        index |= {"is_sample": self.is_sample, "causes": None if self._causes is None else dict(HUMAN_CAUSES)}
        return _State(stamps, entries, json_file(index), comparison, keys, texts)


def _check(entry: RunEntry) -> dict[str, Any] | None:
    """None for a run without results."""
    run = entry.run
    if run.results is None:
        return None
    split = None if entry.data is None else entry.data.selected(run.settings)
    asked = run.path, split, entry.data_problem or "its data are not at hand"
    return _verify(*asked) if len(run.rows) < MANY_STEPS else _in_process(_verify, *asked)


def _verify(run: Path, split: Split | None, problem: str) -> dict[str, Any]:
    from seeact_offline.results.verifying import verify_files

    try:
        verification = verify_files(run, split, problem)
    except (InputError, OSError) as error:
        return {"status": "not verified", "differences": [str(error)], "not_proved": []}
    return {
        "status": verification.status,
        "differences": verification.differences,
        "not_proved": verification.not_proved,
    }


def _in_process(work: Callable[..., dict[str, Any]], *arguments: object) -> dict[str, Any]:
    """Returns the result of a function from a process of its own, whose memory goes back, and beside which steps are
    opened as quickly as before."""
    from multiprocessing import get_context

    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, work, *arguments), daemon=True)
    process.start()
    sender.close()
    try:
        result: dict[str, Any] = receiver.recv()
    except EOFError:
        result = {"status": "not verified", "differences": ["the check was ended from outside"], "not_proved": []}
    process.join()
    return result


def _send(sender: Connection, work: Callable[..., dict[str, Any]], *arguments: object) -> None:
    # Ctrl-C is for the process that waits
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sender.send(work(*arguments))


def _reply_text(run: RunSnapshot, key: StepKey) -> str:
    """The replies of a run to a step; empty where it has none."""
    prediction = _prediction(run, key)
    return "" if prediction is None else "\n".join(reply for group in prediction.groups for reply in group.replies)


def _prediction(run: RunSnapshot, key: StepKey) -> Prediction | None:
    """None where the run lacks the step, or its file is being written anew."""
    try:
        return run.prediction(key)
    except (FormatError, InputError, OSError):
        return None


def _names(paths: Sequence[Path]) -> list[str]:
    """Each folder's name, or its whole path where two have the same. Raises InputError for one folder twice."""
    whole = [path.resolve() for path in paths]
    twice = [str(path) for path in whole if whole.count(path) > 1]
    if twice:
        raise InputError("runs", sentence=f"{twice[0]} is named twice; name different runs")
    names = [path.name for path in whole]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
