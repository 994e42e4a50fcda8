"""Everything that the viewer shows, as files by name: made when they are asked for, by the server and by a bundle alike.

A name is looked up among those that there are; no part of it ever becomes a path.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from seeact_offline.files.formats import FormatError
from seeact_offline.records import InputError, Prediction, RowError, StepKey
from seeact_offline.scoring.waterfall import HUMAN_CAUSES
from seeact_offline.viewer.causes import Causes
from seeact_offline.viewer.data import Data, open_data
from seeact_offline.viewer.index import Tasks, compared, index_json, keys_of, step_name
from seeact_offline.viewer.pictures import Kept, webp
from seeact_offline.viewer.runs import ViewedRun, read_run, read_runs, stamp
from seeact_offline.viewer.steps import OpenedStep, Shown, open_step
from seeact_offline.viewer.without_data import index_without_data, step_without_data

MIME = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".webp": "image/webp",
    ".txt": "text/plain; charset=utf-8",
}
OPENED = 3
"""Steps whose pages are kept in memory."""
PATIENCE = 2.0
"""Seconds between two readings of files that change."""


@dataclass(frozen=True, slots=True)
class File:
    """What stands under a name."""

    content: bytes
    mime: str


def static_files() -> dict[str, File]:
    """The page itself: HTML, style sheets and scripts, by name."""
    folder = files("seeact_offline.viewer") / "static"
    found = {one.name: one for one in folder.iterdir() if one.is_file()}
    return {
        name: File(found[name].read_bytes(), MIME[Path(name).suffix])
        for name in sorted(found)
        if Path(name).suffix in MIME
    }


def json_file(value: object) -> File:
    # ASCII only: half of a surrogate pair in a model's text must not keep the file from being written
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        # numbers that are none, of a file that another program wrote; browsers know no word for them
        known = json.loads(json.dumps(value), parse_constant=lambda _: None)
        text = json.dumps(known, separators=(",", ":"))
    return File(text.encode(), MIME[".json"])


@dataclass(frozen=True)
class _State:
    """All runs as they were when their files were last looked at."""

    stamps: tuple[object, ...]
    shown: tuple[Shown, ...]
    index: File
    comparison: Mapping[str, Any] | None
    keys: Mapping[str, StepKey]
    """By the step's name."""
    texts: Mapping[str, str]
    """Of tasks, by `annotation_id`."""


class Site:
    """Runs to be looked at. Any thread may ask."""

    def __init__(
        self, runs: Sequence[str | Path], *, dataset: Any = None, publish: bool = False, causes: Causes | None = None
    ) -> None:
        """`dataset`: where the data of the runs are now; None: where the runs had them. `publish`: data other than the sample
        are left out. `causes`: what a person says of steps' causes of loss.

        A run that cannot be read is shown as a sentence beside the others. Raises InputError where none can be.
        """
        self._paths = [Path(run) for run in runs]
        self._names = _names(self._paths)
        self._static = static_files()
        self._causes = causes
        self._kept = Kept()
        self._lock = threading.RLock()
        self._opened: OrderedDict[StepKey, OpenedStep] = OrderedDict()
        stamps = tuple(map(stamp, self._paths))
        self._data = _DataSets(dataset)
        read = read_runs(self._paths)
        shown = tuple(self._data.shown(run, name) for run, name in zip(read, self._names, strict=True))
        self.is_sample = all(one.data is not None and one.data.is_sample for one in shown)
        self.with_data = self.is_sample or not publish
        self._state = self._made(stamps, shown)
        self._looked = time.monotonic()

    def names(self) -> Iterator[str]:
        """Every name under which there is something, `index.html` first; steps are opened on the way."""
        yield from sorted(self._static, key=lambda name: (name != "index.html", name))
        yield "index.json"
        for name, key in list(self._state.keys.items()):
            yield f"step/{name}.json"
            if self.with_data:
                yield from self._step(key).images

    def get(self, name: str) -> File | None:
        """None where there is nothing under this name."""
        if name in self._static:
            return self._static[name]
        state = self._fresh()
        if name == "index.json":
            return state.index
        folder, _, rest = name.partition("/")
        kept = self._kept.get(name)
        if kept is not None:
            return File(kept, MIME[Path(name).suffix])
        if folder == "step" and rest.endswith(".json"):
            return self._keep(name, self._step_file(state.keys.get(rest.removesuffix(".json"))))
        if folder == "img" and self.with_data:
            return self._keep(name, self._image(name, state.keys.get(rest.partition("-")[0])))
        return None

    def post(self, name: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """A person's word on what a step of a run was lost to: the status, and what is answered."""
        folder, _, step = name.partition("/")
        key, place = self._state.keys.get(step), body.get("run", 0)
        if self._causes is None or folder != "cause" or key is None:
            return 404, {"error": "there is nothing to write here; start with --causes FILE"}
        shown = self._state.shown
        is_run = type(place) is int and 0 <= place < len(shown)
        prediction = _prediction(shown[place].run, key) if is_run else None
        if prediction is None:
            return 400, {"error": "run has to be the number of a run that has this step, from 0"}
        answer = self._causes.post(key, prediction, body)
        with self._lock:
            self._state = self._made(self._state.stamps, self._state.shown, self._state.comparison)
            self._kept.clear()
        return answer

    def close(self) -> None:
        """Lets go of the file of causes."""
        if self._causes is not None:
            self._causes.close()

    def _keep(self, name: str, file: File | None) -> File | None:
        if file is not None:
            self._kept.put(name, file.content)
        return file

    def _step_file(self, key: StepKey | None) -> File | None:
        if key is None:
            return None
        found = self._step(key).json
        runs = [
            None if run is None else {**run, "relabelled": self._relabelled(one.run, key)}
            for one, run in zip(self._state.shown, found["runs"], strict=True)
        ]
        step = {**found, "runs": runs}
        return json_file(step if self.with_data else step_without_data(step))

    def _relabelled(self, run: ViewedRun, key: StepKey) -> dict[str, str] | None:
        """What a person says that this run lost the step to: in the file of causes, else when the run was scored."""
        prediction = None if self._causes is None else _prediction(run, key)
        said = None if self._causes is None or prediction is None else self._causes.of(key, prediction)
        row = run.rows.get(key)
        if said is None and row is not None and row.person_cause is not None:
            return {"cause": row.person_cause, "note": "", "annotator": ""}
        return said

    def _persons(self, run: ViewedRun) -> dict[StepKey, str]:
        """Causes of loss in the file of causes that are about answers of this run."""
        keys = frozenset[StepKey]() if self._causes is None else self._causes.keys & run.said.keys()
        return {key: said["cause"] for key in keys if (said := self._relabelled(run, key)) is not None}

    def _image(self, name: str, key: StepKey | None) -> File | None:
        pixels = None if key is None else self._step(key).images.get(name)
        if pixels is None:
            return None
        try:
            # one at a time: a page is decoded once for all of its parts
            with self._lock:
                image = pixels()
        except RowError:
            return None
        return File(webp(image), MIME[".webp"])

    def _step(self, key: StepKey) -> OpenedStep:
        with self._lock:
            found = self._opened.pop(key, None) or open_step(key, self._state.shown, self._state.texts)
            self._opened[key] = found
            while len(self._opened) > OPENED:
                self._opened.popitem(last=False)
        return found

    # --- what changes while a run goes on ---

    def _fresh(self) -> _State:
        with self._lock:
            if time.monotonic() - self._looked > PATIENCE:
                stamps = tuple(map(stamp, self._paths))
                if stamps != self._state.stamps:
                    self._look_again(stamps)
                self._looked = time.monotonic()
            return self._state

    def _look_again(self, stamps: tuple[object, ...]) -> None:
        """Of a run of which a file is just being written, what was seen before stays."""
        kept, shown = list(self._state.stamps), list(self._state.shown)
        for place, one in enumerate(self._state.shown):
            if stamps[place] != kept[place]:
                try:
                    run = read_run(one.run.path)
                except InputError:
                    continue
                kept[place] = stamps[place]
                known = one.run.is_readable
                shown[place] = replace(one, run=run) if known else self._data.shown(run, one.name)
        self._state = self._made(tuple(kept), tuple(shown))
        self._opened.clear()
        self._kept.clear()

    def _made(
        self, stamps: tuple[object, ...], shown: tuple[Shown, ...], comparison: Mapping[str, Any] | None = None
    ) -> _State:
        """`comparison`: of the same runs, where it is known."""
        runs = [one.run for one in shown]
        texts = _texts(shown)
        tasks = Tasks(texts, [one.n_steps for one in shown], [_problems(one) for one in shown])
        comparison = comparison or compared(runs)
        index = index_json(
            runs,
            self._names,
            tasks,
            is_sample=self.is_sample,
            with_data=self.with_data,
            comparison=comparison,
            persons=[self._persons(run) for run in runs],
        )
        index["causes"] = None if self._causes is None else dict(HUMAN_CAUSES)
        file = json_file(index if self.with_data else index_without_data(index))
        return _State(stamps, shown, file, comparison, {step_name(key): key for key in keys_of(runs)}, texts)


def _texts(shown: Sequence[Shown]) -> dict[str, str]:
    """Of tasks: as the data have them, else as they were scored."""
    texts = {row.annotation_id: row.task for one in shown for row in one.run.rows.values() if row.task}
    for one in shown:
        texts |= {} if one.data is None else one.data.tasks
    return texts


def _prediction(run: ViewedRun, key: StepKey) -> Prediction | None:
    """None where the run lacks the step, or its file is being written anew."""
    try:
        return run.prediction(key)
    except (FormatError, OSError):
        return None


def _names(paths: Sequence[Path]) -> list[str]:
    """Each folder's name, or its whole path where two have the same. Raises InputError for one folder twice."""
    whole = [path.resolve() for path in paths]
    twice = [str(path) for path in whole if whole.count(path) > 1]
    if twice:
        raise InputError("runs", "different runs", f"{twice[0]} twice")
    names = [path.name for path in whole]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


class _DataSets:
    """The data behind runs, opened once for all runs on the same."""

    def __init__(self, dataset: Any) -> None:
        """`dataset`: where they are now; None: where the runs had them."""
        self._dataset = dataset
        self._opened: dict[tuple[str, ...], Data | str] = {}

    def shown(self, run: ViewedRun, name: str) -> Shown:
        """The run with its data, or why it has none."""
        if not run.is_readable:
            return Shown(name, run)
        about = tuple(str(run.settings.get(one)) for one in ("dataset", "split", "dataset_fingerprint"))
        if about not in self._opened:
            self._opened[about] = self._open(run.settings)
        found = self._opened[about]
        if isinstance(found, str):
            problem = f"Pages, pictures, prompts and earlier actions of {name} cannot be shown: {found}."
            return Shown(name, run, None, problem)
        return Shown(name, run, found, None, _n_steps(run, found))

    def _open(self, settings: Mapping[str, Any]) -> Data | str:
        try:
            return open_data(settings, self._dataset)
        except InputError as error:
            return str(error)
        except OSError as error:
            return error.strerror or "it cannot be opened"


def _n_steps(run: ViewedRun, data: Data) -> int | None:
    """How many an unfinished run is to have."""
    return None if run.progress is None else data.count(run.settings.get("limit"), run.settings.get("tasks"))


def _problems(shown: Shown) -> list[str]:
    return [] if shown.data_problem is None else [shown.data_problem]
