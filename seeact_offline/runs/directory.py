"""The run directory: what a run was asked to do, and what it has done so far.

`manifest.json` is written first; `predictions.jsonl` grows as steps finish, in any order, and is put into data set order at
the end, so that a finished run's files are the same bytes whatever the concurrency and however often it was killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.files.formats import FormatError, decoded, read_json, typed
from seeact_offline.files.journal import Journal
from seeact_offline.files.markdown import printable
from seeact_offline.files.named import read_regular
from seeact_offline.files.redaction import redact, redact_values
from seeact_offline.files.whole import replace_text
from seeact_offline.records import Call, CallRecord, InputError, Prediction, Reply, StepKey, Truth, Usage
from seeact_offline.runs.targets import read_target, target_line
from seeact_offline.scoring.report import how_it_was_run
from seeact_offline.scoring.results import Results
from seeact_offline.scoring.step_scores import StepRow

FLAGGED = "flagged.jsonl"
LOCK = ".lock"
SELECTION = frozenset({"limit", "tasks"})
"""What says only which steps are asked: identities of earlier versions hold it too."""
SCHEMA = 1
"""The version of the manifest's layout."""
LATER = frozenset({"data_digest", "code"})
"""Parts of an identity that manifests of earlier versions lack."""
DATA = frozenset({"dataset_fingerprint", "data_digest"})
"""What the manifest says of the data."""
PACKAGES = ("seeact-offline", "lxml", "numpy", "pyarrow", "pillow", "openai", "datasets", "torch", "transformers")


class RunDirectory:
    """One folder of a run. Use as a context manager: the predictions file is open for appending inside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_ours = False
        # whether `check` has made the folder
        self._journal = Journal(path / "predictions.jsonl")
        self._targets = Journal(path / "targets.jsonl")
        self._timings = Journal(path / "calls.jsonl")
        self._open = ExitStack()

    @property
    def predictions(self) -> Path:
        return self._journal.path

    @property
    def targets(self) -> Path:
        """What was right."""
        return self._targets.path

    @property
    def calls(self) -> Path:
        """The cache of paid calls."""
        return self.path / "calls.sqlite"

    @property
    def ledger(self) -> Path:
        """What the run may have spent, attempt by attempt."""
        return self.path / "spending.jsonl"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    def check(self, identity: Mapping[str, Any]) -> None:
        """Makes the folder; raises InputError where that cannot be, or where it holds a run of another configuration."""
        try:
            self._is_ours = self._is_ours or not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError("out", "a folder that can be made", f"{self.path}: {error.strerror}") from None
        if self.manifest.exists():
            _check_same(_read_manifest(self.manifest)["identity"], json.loads(json.dumps(identity)), self.path)
        elif self.predictions.exists():
            got = f"none beside the predictions in {self.path}; name another folder"
            raise InputError("out", "a manifest.json", got)

    def claim(
        self,
        identity: Mapping[str, Any],
        settings: Mapping[str, Any],
        made: Mapping[str, Any] | None = None,
        replies: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes the manifest; where one of the same configuration is there, only settings that have changed.

        `identity`: everything that predictions depend on. `settings`: what else is worth recording. `made`: when and by which
        command the run was begun, and how it asks; that of the beginning stays. `replies`: where its replies
        come from. Raises InputError.
        """
        self.check(identity)
        now = {"settings": settings, **({"replies": replies} if replies else {})}
        if self.manifest.exists():
            _write_json(self.manifest, {**_read_manifest(self.manifest), **now})
        else:
            begun = {"made": made} if made else {}
            _write_json(
                self.manifest,
                {
                    "schema": SCHEMA,
                    "identity": identity,
                    **now,
                    **begun,
                    **_environment(),
                },
            )

    def version_remark(self) -> str | None:
        """A remark where another version of this package began the run; None for the same one. Raises InputError."""
        began = (_read_manifest(self.manifest).get("packages") or {}).get(PACKAGES[0])
        now = _environment()["packages"].get(PACKAGES[0])
        return (
            None
            if began in (None, now)
            else f"{PACKAGES[0]} {began} began the run in {self.path}, and {now} resumes it"
        )

    def settings(self) -> dict[str, Any]:
        """Those of the manifest; empty where there is none yet. Raises InputError."""
        return dict(_read_manifest(self.manifest).get("settings") or {}) if self.manifest.exists() else {}

    def made(self) -> dict[str, Any]:
        """When and by which command the run was begun; empty where that was not noted, or it is still to begin. Raises InputError."""
        return dict(_read_manifest(self.manifest).get("made") or {}) if self.manifest.exists() else {}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other runs out of this folder inside. Raises InputError where one is at work in it.

        A folder that was made for a run and has nothing in it at the end, as the run could not begin, goes again.
        """
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            got = f"{self.path}, into which another process is writing; wait for it, or name another folder"
            raise InputError("out", "a folder of one run at a time", got) from None
        except (NotImplementedError, OSError) as error:
            got = f"{self.path}: {error}; name a folder on a disk of this machine"
            raise InputError("out", "a folder on a file system that can lock files", got) from None
        try:
            yield
        finally:
            lock.release()
            if self._is_ours:
                self._drop_empty()

    def _drop_empty(self) -> None:
        if all(path.name == LOCK for path in self.path.iterdir()):
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()

    def load(self) -> dict[StepKey, Prediction]:
        """Predictions so far, without a last line that a crash has torn. Raises InputError for other damage."""
        done: dict[StepKey, Prediction] = {}
        calls = self.load_calls()
        for line in self._journal.lines():
            with _worded(f"line {line.number} of {self.predictions}, which is no prediction of ours"):
                prediction = read_prediction(line.text)
            done[prediction.key] = replace(prediction, calls=tuple(calls.get(prediction.key, ())))
        return done

    def load_targets(self) -> dict[StepKey, Truth]:
        """What was right at the steps so far; empty for a run from before it was kept. Raises InputError for damage."""
        found: dict[StepKey, Truth] = {}
        for line in self._targets.lines():
            with _worded(f"line {line.number} of {self.targets}, which says of no step what was right"):
                truth = read_target(line.text)
            found[truth.key] = truth
        return found

    @property
    def timings(self) -> Path:
        """What each call took: one line a call, in the order in which steps ended."""
        return self._timings.path

    def load_calls(self) -> dict[StepKey, list[Call]]:
        """The calls of each step when it was last asked. Raises InputError for damage."""
        found: dict[StepKey, list[Call]] = {}
        for line in self._timings.lines():
            with _worded(f"line {line.number} of {self.timings}, which says of no call what it took"):
                call = decoded(line.text, _CallLine)
            calls = found.setdefault(call.key, [])
            if any((one.group, one.turn) == (call.group, call.turn) for one in calls):
                # the step was asked again
                calls.clear()
            calls.append(Call(call.group, call.turn, call.record))
        return found

    def __enter__(self) -> RunDirectory:
        for journal in (self._journal, self._targets):
            self._open.enter_context(journal)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def append(self, prediction: Prediction, truth: Truth) -> None:
        """Adds a line to each file and hands it to the operating system before it returns."""
        for call in prediction.calls:
            if not self._timings.is_open:
                self._open.enter_context(self._timings)
            self._timings.append(_call_line(prediction.key, call))
        self._targets.append(target_line(truth))
        self._journal.append(prediction_line(prediction))

    def finish(
        self,
        predictions: Iterable[Prediction],
        truths: Iterable[Truth],
        steps: Sequence[Mapping[str, Any]],
        results: Mapping[str, Any],
        report: str,
    ) -> None:
        """Puts predictions and targets into order and writes scores, results and report; a file that would not change is left alone."""
        self.order(predictions, truths)
        self.write_scores(steps, results, report)

    def order(self, predictions: Iterable[Prediction], truths: Iterable[Truth]) -> None:
        """Writes predictions and targets anew, in this order."""
        replace_text(self.predictions, _lines(map(prediction_line, predictions)))
        replace_text(self.targets, _lines(map(target_line, truths)))

    def write_scores(self, steps: Sequence[Mapping[str, Any]], results: Mapping[str, Any], report: str) -> None:
        replace_text(self.path / "steps.jsonl", _lines(map(_line, steps)))
        _write_json(self.path / "results.json", results)
        how = how_it_was_run(_read_manifest(self.manifest)) if self.manifest.exists() else ""
        replace_text(self.path / "report.md", redact(report + printable(how)))

    def remember_flagged(self, keys: frozenset[StepKey] | None) -> None:
        """Notes the steps without which the figures were given too, so that scoring again gives them too."""
        if keys is None:
            (self.path / FLAGGED).unlink(missing_ok=True)
        else:
            replace_text(self.path / FLAGGED, _lines(_line(key._asdict()) for key in sorted(keys)))

    def flagged(self) -> frozenset[StepKey] | None:
        """What `remember_flagged` noted; None for a run that did not ask."""
        path = self.path / FLAGGED
        if not path.exists():
            return None
        keys = set()
        for number, line in enumerate(read_regular(path).splitlines(), 1):
            with _worded(f"line {number} of {path}, which names no step"):
                keys.add(typed(read_json(line), _KeyLine).key)
        return frozenset(keys)

    def write(self, name: str, text: str) -> None:
        """One more file of the run, whole or not at all."""
        replace_text(self.path / name, redact(text))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run. Raises InputError when there is none."""
    manifest = path / "manifest.json"
    if not manifest.is_file():
        raise InputError("out", "a folder of a finished run with a manifest.json", str(path))
    content = _read_manifest(manifest)
    with _worded(f"{manifest}, which does not say how its run was set up"):
        typed(content.get("settings") or {}, _Settings)
    return content


def read_results(path: Path) -> Results:
    """The results of the run in a folder. Raises InputError where there are none."""
    results = path / "results.json"
    try:
        return decoded(read_regular(results), Results)
    except FormatError as error:
        raise InputError("runs", error.expected, f"{error.got} in {results}") from None
    except OSError:
        raise InputError(
            "runs", "folders of finished runs, with results.json", f"no {results} that can be read"
        ) from None


def read_steps(path: Path) -> dict[StepKey, StepRow]:
    """The scored steps of the run in a folder, in the file's order. Raises InputError, also for a step that is there twice."""
    steps: dict[StepKey, StepRow] = {}
    journal = Journal(path / "steps.jsonl")
    if not journal.path.is_file():
        got = f"no {journal.path}; finish the run, or score it"
        raise InputError("runs", "folders of finished runs, with steps.jsonl", got)
    for line in journal.lines():
        try:
            row = decoded(line.text, StepRow)
        except FormatError as error:
            raise InputError("runs", error.expected, f"{error.got} in line {line.number} of {journal.path}") from None
        if row.key in steps:
            raise InputError("runs", "every step once", f"{row.key} again in line {line.number} of {journal.path}")
        steps[row.key] = row
    return steps


def prediction_line(prediction: Prediction) -> str:
    """The JSON of one line of `predictions.jsonl`."""
    row = {
        "annotation_id": prediction.key.annotation_id,
        "action_uid": prediction.key.action_uid,
        "element_id": prediction.element_id,
        "op": prediction.op,
        "value": prediction.value,
        "failure": prediction.failure,
        "detail": prediction.detail,
        "ran": prediction.ran,
        "usage": prediction.usage.named,
        "ranked": prediction.ranked,
        "groups": [asdict(group) for group in prediction.groups],
        **_where_set(prediction),
    }
    return _line(row)


def _call_line(key: StepKey, call: Call) -> str:
    return _line({**key._asdict(), "group": call.group, "turn": call.turn, **asdict(call.record)})


def _where_set(prediction: Prediction) -> dict[str, Any]:
    """What only some groundings give: a line of the others looks as it did before these fields were thought of."""
    fields: dict[str, Any] = {}
    if prediction.point is not None:
        fields["point"] = prediction.point
    if prediction.notes:
        fields["notes"] = dict(prediction.notes)
    if prediction.reachable is not None:
        fields["reachable"] = prediction.reachable
    if prediction.element_text:
        fields["element_text"] = prediction.element_text
    return fields


class _KeyLine(msgspec.Struct):
    """A line that names a step."""

    annotation_id: str
    action_uid: str

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)


class _Usage(msgspec.Struct, forbid_unknown_fields=True):
    """`Usage` as a line holds it."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    image_tokens: int = 0
    # a whole number stays one, so that the line is written again as it was
    cost_usd: int | float | None = 0.0
    unreported: int = 0

    @property
    def read(self) -> Usage:
        return Usage(**msgspec.structs.asdict(self))


class _CallLine(_KeyLine):
    """A line of `calls.jsonl`."""

    group: int
    turn: int
    attempts: int
    seconds: float
    request_id: str | None = None
    asked: str = ""
    reused: bool = False
    from_store: str | None = None
    usage: _Usage | None = None

    @property
    def record(self) -> CallRecord:
        usage = None if self.usage is None else self.usage.read
        return CallRecord(self.attempts, self.seconds, self.request_id, self.asked, self.reused, self.from_store, usage)


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    """`Reply` as a line holds it."""

    group: int
    offered: tuple[str, ...]
    replies: tuple[str, ...]
    element_id: str | None
    op: str
    value: str
    failure: str | None = None
    detail: str = ""
    is_final_round: bool = False


class _PredictionLine(_KeyLine):
    """A line of `predictions.jsonl`. What a later version adds is left out, though not inside of groups and usage."""

    groups: tuple[_Group, ...]
    element_id: str | None
    op: str
    value: str
    ranked: tuple[str, ...]
    usage: _Usage
    failure: str | None
    detail: str
    ran: bool
    # as in `_where_set`
    point: tuple[float, float] | None = None
    notes: dict[str, int] = {}
    reachable: bool | None = None
    element_text: str = ""


class _Manifest(msgspec.Struct):
    """What `manifest.json` has to hold."""

    identity: dict[str, Any]
    settings: dict[str, Any] | None = None
    schema: int = SCHEMA
    packages: dict[str, Any] = {}


class _Settings(msgspec.Struct):
    """What scoring a run again needs of its manifest."""

    split: str
    dataset: str
    dataset_fingerprint: str
    limit: int | None
    protocol: str
    merge: str | None
    top_k: int | None
    seed: int


def read_prediction(text: str) -> Prediction:
    """The reverse of `prediction_line`. Raises FormatError."""
    line = decoded(text, _PredictionLine)
    return Prediction(
        key=line.key,
        groups=tuple(Reply(**msgspec.structs.asdict(group)) for group in line.groups),
        element_id=line.element_id,
        op=line.op,
        value=line.value,
        ranked=line.ranked,
        usage=line.usage.read,
        failure=line.failure,
        detail=line.detail,
        ran=line.ran,
        point=line.point,
        notes=tuple(sorted(line.notes.items())),
        reachable=line.reachable,
        element_text=line.element_text,
    )


def _read_manifest(manifest: Path) -> dict[str, Any]:
    """All that it holds, checked as far as `_Manifest` goes."""
    with _worded(f"{manifest}, which is no manifest of ours"):
        content = read_json(read_regular(manifest))
        schema = typed(content, _Manifest).schema
    if schema != SCHEMA:
        raise InputError("out", f"a manifest of schema {SCHEMA}", f"schema {schema} in {manifest}, of another version")
    return dict(content)


@contextmanager
def _worded(where: str) -> Iterator[None]:
    """What cannot be read inside becomes an InputError that ends with `where`."""
    try:
        yield
    except FormatError as error:
        raise InputError("out", error.expected, f"{error.got} in {where}") from None
    except OSError as error:
        raise InputError("out", "a readable file", f"{where}: {error}") from None


def _check_same(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    compared = {*old, *new} - SELECTION - (LATER - old.keys())
    differing = sorted(name for name in compared if old.get(name) != new.get(name))
    if differing and DATA.issuperset(differing):
        got = (
            f"other rows, pages or pictures than those with which the run in {path} began; name another folder for out"
        )
        raise InputError("dataset", "the data of this run", got)
    if differing:
        name = differing[0]
        raise InputError(
            "out",
            "a run of this configuration",
            f"{path} with one of another configuration ({', '.join(differing)} differ: {name} was {old.get(name)!r:.80}"
            f" and is now {new.get(name)!r:.80}); name another folder",
        )


def _environment() -> dict[str, Any]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {"python": sys.version.split()[0], "packages": versions, "git_commit": _git_commit()}


def _git_commit() -> str | None:
    """The commit of this project's checkout, or None when it is installed without one."""
    try:
        root = Path(__file__).resolve().parents[2]
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--show-toplevel", "HEAD"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.split("\n")
    return lines[1] if done.returncode == 0 and Path(lines[0]).resolve() == root else None


def _line(row: Mapping[str, Any]) -> str:
    # ASCII only: a lone surrogate in a model's text must not stop the file from being written
    return json.dumps(redact_values(row))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    replace_text(path, json.dumps(redact_values(value), indent=2) + "\n")
