"""A run's folder: the one place that reads and writes its files.

`manifest.json` is written first; `predictions.jsonl` grows as steps finish, in any order, and is put into data set order at
the end, so that a finished run's files are the same bytes whatever the concurrency and however often it was killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Self, cast

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.files.formats import FormatError, decoded, read_json, typed
from seeact_offline.files.markdown import printable
from seeact_offline.files.named import read_regular
from seeact_offline.files.redaction import redact, redact_values
from seeact_offline.files.whole import Journal, replace_text
from seeact_offline.records import (
    Box,
    Call,
    CallRecord,
    InputError,
    Kinship,
    Operation,
    OtherAnswer,
    Prediction,
    Reply,
    ShownPicture,
    Stage,
    StepKey,
    Truth,
    Usage,
)
from seeact_offline.scoring.report import how_it_was_run
from seeact_offline.scoring.results import Results
from seeact_offline.scoring.step_scores import StepRow

FLAGGED = "flagged.jsonl"
LOCK = ".lock"
REPEAT = "shuffled-"
"""Beginning of the names of repeats' folders."""
SCHEMA = 1
"""The version of the manifest's layout."""
DATA = frozenset({"dataset_fingerprint", "data_digest"})
"""Parts of an identity that describe the data."""
PACKAGES = ("seeact-offline", "lxml", "numpy", "pyarrow", "pillow", "openai", "datasets", "torch", "transformers")


class Made(msgspec.Struct, frozen=True):
    """The date and command with which a run was begun, and how it asks."""

    run: str = ""
    """Tells the run from all others; empty for one that asked no model of ours."""
    date: str = ""
    command: str | None = None
    temperature: float = 0.0
    max_tokens: int = 4096
    base_url: str | None = None
    ask_equal: bool = True


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json`, in two parts: the identity, on which predictions depend, and what else is worth recording."""

    identity: dict[str, Any]
    settings: dict[str, Any]
    """The run, as results name it."""
    made: Made | None = None
    replies: dict[str, Any] | None = None
    """Sources of the replies, as `model_settings.replies_of` counts them."""

    def changed(
        self, *, identity: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> Manifest:
        """Adds these entries to the identity and to the settings."""
        return msgspec.structs.replace(
            self, identity={**self.identity, **(identity or {})}, settings={**self.settings, **(settings or {})}
        )

    def with_replies(self, replies: dict[str, Any] | None) -> Manifest:
        return msgspec.structs.replace(self, replies=replies)

    @property
    def lines(self) -> dict[str, Any]:
        """The parts that may change while a run is in its folder."""
        return {"settings": self.settings, **({"replies": self.replies} if self.replies else {})}


class RunFolder:
    """One folder of a run. Use as a context manager: the predictions file is open for appending inside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "manifest.json"
        self.predictions = path / "predictions.jsonl"
        self.targets = path / "targets.jsonl"
        """The right answers of the steps reached."""
        self.timings = path / "calls.jsonl"
        """One line a call, in the order in which steps ended: its attempts, duration and usage."""
        self.calls = path / "calls.sqlite"
        """The store of paid replies of this run alone."""
        self.ledger = path / "spending.jsonl"
        """The money that the run may have spent, attempt by attempt."""
        # whether `check` has made the folder
        self._is_ours = False
        self.captions = path / "captions.jsonl"
        """The captions that were shown, as `--captions` reads them."""
        self._captions = Journal(self.captions)
        self._journal, self._targets = Journal(self.predictions), Journal(self.targets)
        self._timings = Journal(self.timings)
        self._open = ExitStack()

    # --- the manifest ---

    def check(self, identity: Mapping[str, Any]) -> None:
        """Makes the folder; raises InputError where that cannot be, or where it holds a run of another configuration."""
        try:
            self._is_ours = self._is_ours or not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                "out", sentence=f"cannot make the folder {self.path}: {error.strerror}; name another for `out`"
            ) from None
        if self.manifest.exists():
            _check_same(self.content()["identity"], json.loads(json.dumps(identity)), self.path)
        elif orphans := self._orphans:
            raise InputError(
                "out", sentence=f"{self.path} holds {orphans} without a manifest.json; name another folder for `out`"
            )

    @property
    def _orphans(self) -> str:
        """The files of a run in a folder without its manifest, as `score --out` leaves results; empty for none."""
        if self.predictions.exists():
            return "predictions"
        return "results" if (self.path / "results.json").exists() else ""

    def suits(self, identity: Mapping[str, Any], keys: Collection[StepKey]) -> bool:
        """True where a run of this identity over these steps could be in the folder: it holds no other, and no other steps."""
        if not self.manifest.exists():
            return not self._orphans
        try:
            _check_same(self.content()["identity"], json.loads(json.dumps(identity)), self.path)
            return self.load().keys() <= frozenset(keys)
        except InputError:
            return False

    def claim(self, manifest: Manifest) -> None:
        """Writes the manifest. Where one of the same identity is there, only its settings and the source of its replies
        change: when and how the run was begun stays. Raises InputError."""
        self.check(manifest.identity)
        if self.manifest.exists():
            _write_json(self.manifest, {**self.content(), **manifest.lines})
            return
        made = {} if manifest.made is None else {"made": msgspec.to_builtins(manifest.made)}
        begun = {"schema": SCHEMA, "identity": manifest.identity, **manifest.lines, **made, **_environment()}
        _write_json(self.manifest, begun)

    def begun(self) -> Manifest | None:
        """The manifest that is there; None before there is one. Raises InputError."""
        return read_manifest(self.path) if self.manifest.exists() else None

    def version_remark(self) -> str | None:
        """A remark where another version of this package began the run; None for the same one. Raises InputError."""
        began = (self.content().get("packages") or {}).get(PACKAGES[0])
        now = _versions().get(PACKAGES[0])
        is_same = began in (None, now)
        return None if is_same else f"{PACKAGES[0]} {began} began the run in {self.path}, and {now} resumes it"

    def content(self) -> dict[str, Any]:
        """Everything in `manifest.json`, including additions of later versions. Raises InputError."""
        with worded(f"{self.manifest}, which is no manifest of ours"):
            content = read_json(read_regular(self.manifest))
            schema = typed(content, _AnyManifest).schema
        if schema != SCHEMA:
            got = f"schema {schema} in {self.manifest}, of another version"
            raise InputError("out", f"a manifest of schema {SCHEMA}", got)
        return dict(content)

    @property
    def run_id(self) -> str:
        """The id of the run that began the folder, of whatever kind; empty where nobody has. Raises InputError."""
        made = self.content().get("made") if self.manifest.exists() else None
        return str(made.get("run", "")) if isinstance(made, dict) else ""

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps other runs out of this folder inside. Raises InputError where one is at work in it.

        A folder that was made for a run is removed again if it is empty at the end, as the run could not begin.
        """
        lock = FileLock(self.path / LOCK)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise InputError(
                "out", sentence=f"another process is writing into {self.path}; wait for it, or name another folder"
            ) from None
        except (NotImplementedError, OSError) as error:
            raise InputError(
                "out", sentence=f"cannot lock {self.path}: {error}; name a folder on a disk of this machine"
            ) from None
        try:
            yield
        finally:
            lock.release()
            if self._is_ours and all(path.name == LOCK for path in self.path.iterdir()):
                (self.path / LOCK).unlink(missing_ok=True)
                self.path.rmdir()

    # --- steps as they finish ---

    def __enter__(self) -> Self:
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
            place = {**prediction.key._asdict(), "group": call.group, "turn": call.turn}
            self._timings.append(_line({**place, **asdict(call.record)}))
        for node, caption in prediction.captions.items():
            if not self._captions.is_open:
                self._open.enter_context(self._captions)
            self._captions.append(_line({**prediction.key._asdict(), "backend_node_id": node, "caption": caption}))
        self._targets.append(target_line(truth))
        self._journal.append(prediction_line(prediction))

    def load(self) -> dict[StepKey, Prediction]:
        """Predictions so far, without a last line that a crash has torn. Raises InputError for other damage."""
        done: dict[StepKey, Prediction] = {}
        calls = self.load_calls()
        for line in self._journal.lines():
            with worded(f"line {line.number} of {self.predictions}, which is no prediction of ours"):
                prediction = read_prediction(line.text)
            of_step = calls.get(prediction.key)
            done[prediction.key] = replace(prediction, calls=tuple(of_step)) if of_step else prediction
        return done

    def load_targets(self) -> dict[StepKey, Truth]:
        """The right answers so far; empty for a run from before they were kept. Raises InputError for damage."""
        found: dict[StepKey, Truth] = {}
        for line in self._targets.lines():
            with worded(f"line {line.number} of {self.targets}, which says of no step what was right"):
                truth = read_target(line.text)
            found[truth.key] = truth
        return found

    def load_calls(self) -> dict[StepKey, list[Call]]:
        """The calls of each step when it was last asked. Raises InputError for damage."""
        found: dict[StepKey, list[Call]] = {}
        for line in self._timings.lines():
            with worded(f"line {line.number} of {self.timings}, which says of no call what it took"):
                call = decoded(line.text, CallLine)
            calls = found.setdefault(call.key, [])
            if any((one.group, one.turn) == (call.group, call.turn) for one in calls):
                # the step was asked again
                calls.clear()
            calls.append(Call(call.group, call.turn, call.record))
        return found

    # --- at the end ---

    def order(self, predictions: Iterable[Prediction], truths: Iterable[Truth]) -> None:
        """Writes predictions and targets anew, in this order; a file that would not change is left alone."""
        predictions = list(predictions)
        replace_text(self.predictions, _lines(map(prediction_line, predictions)))
        replace_text(self.targets, _lines(map(target_line, truths)))
        if self.captions.exists():
            # a step that was asked again has new ones
            told = {
                (row["annotation_id"], row["action_uid"], row["backend_node_id"]): row
                for row in map(json.loads, (line.text for line in self._captions.lines()))
            }
            places = {prediction.key: place for place, prediction in enumerate(predictions)}
            rows = sorted(
                told.values(),
                key=lambda row: places.get(KeyLine(row["annotation_id"], row["action_uid"]).key, len(places)),
            )
            replace_text(self.captions, _lines(map(_line, rows)))

    def write_scores(self, steps: Sequence[Mapping[str, Any]], results: Results, report: str) -> None:
        """Writes scores, results and report; a file that would not change is left alone."""
        for name, text in self.score_files(steps, results, report).items():
            replace_text(self.path / name, text)

    def score_files(self, steps: Sequence[Mapping[str, Any]], results: Results, report: str) -> dict[str, str]:
        """The files that `write_scores` writes, by name."""
        how = ""
        if self.manifest.exists():
            content = self.content()
            with worded(f"{self.manifest}, which does not say how its run was set up"):
                # whatever it lacks has its default
                made = content.get("made") and msgspec.to_builtins(typed(content["made"], Made))
            how = how_it_was_run({**content, "made": made})
        return {
            "steps.jsonl": _lines(map(_line, steps)),
            "results.json": _json(results.entries),
            "report.md": redact(report + printable(how)),
        }

    def remember_flagged(self, keys: frozenset[StepKey] | None) -> None:
        """Notes the steps without which the figures were given too, so that scoring again gives them too."""
        if keys is None:
            (self.path / FLAGGED).unlink(missing_ok=True)
        else:
            replace_text(self.path / FLAGGED, _lines(_line(key._asdict()) for key in sorted(keys)))

    def flagged(self) -> frozenset[StepKey] | None:
        """The steps that `remember_flagged` noted; None for a run that did not ask."""
        path = self.path / FLAGGED
        if not path.exists():
            return None
        keys = set()
        for number, line in enumerate(read_regular(path).splitlines(), 1):
            with worded(f"line {number} of {path}, which names no step"):
                keys.add(typed(read_json(line), KeyLine).key)
        return frozenset(keys)

    def write(self, name: str, text: str) -> None:
        """One more file of the run, whole or not at all."""
        replace_text(self.path / name, redact(text))

    # --- repeats in other orders ---

    def repeat(self, number: int) -> RunFolder:
        """The folder of the run's repeat in another order; `number` from 1."""
        return RunFolder(self.path / f"{REPEAT}{number}")

    def finished_repeats(self, truths: Sequence[Truth]) -> list[list[Prediction]]:
        """The predictions of every repeat that has one for each of these steps, in order of number."""
        numbers = [path.name.removeprefix(REPEAT) for path in self.path.glob(f"{REPEAT}*")]
        found = [self.repeat(number).load() for number in sorted(int(n) for n in numbers if n.isdecimal())]
        return [[done[truth.key] for truth in truths] for done in found if all(truth.key in done for truth in truths)]


def check_no_run(out: Path) -> None:
    """Raises InputError for the folder of a run, or of results alone, into which nothing else is to be written."""
    if any((out / name).exists() for name in ("manifest.json", "results.json")):
        raise InputError("out", sentence=f"{out} holds a run; name another folder for `out`")


def read_manifest(run: Path) -> Manifest:
    """Reads the manifest of a run. Raises InputError when there is none."""
    folder = RunFolder(run)
    if not folder.manifest.is_file():
        raise InputError("out", sentence=f"{run} has no manifest.json; name the folder of a finished run")
    content = folder.content()
    with worded(f"{folder.manifest}, which does not say how its run was set up"):
        typed(content.get("settings") or {}, _Settings)
        return typed({**content, "settings": content.get("settings") or {}}, Manifest)


@contextmanager
def worded(where: str, argument: str = "out") -> Iterator[None]:
    """Turns what cannot be read inside into an InputError of this argument that ends with `where`."""
    try:
        yield
    except FormatError as error:
        raise InputError(argument, error.expected, f"{error.got} in {where}") from None
    except OSError as error:
        raise InputError(
            argument, sentence=f"cannot read {error.filename or where}: {error.strerror or error}"
        ) from None


# --- lines, as they are written and read ---


def prediction_line(prediction: Prediction) -> str:
    """The JSON of one line of `predictions.jsonl`; omits optional fields that are not set."""
    by_name = replace(prediction, failed_in=None).stage
    optional = {
        "point": prediction.point,
        "notes": dict(prediction.notes) or None,
        "reachable": prediction.reachable,
        "element_text": prediction.element_text or None,
        "stage": None if prediction.stage == by_name else prediction.stage,
    }
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
        "groups": [_group_row(group) for group in prediction.groups],
        **{name: value for name, value in optional.items() if value is not None},
    }
    return _line(row)


def _group_row(group: Reply) -> dict[str, Any]:
    row = asdict(group)
    return row if group.shown is not None else {name: value for name, value in row.items() if name != "shown"}


def read_prediction(text: str) -> Prediction:
    """Reverses `prediction_line`. Raises FormatError."""
    line = decoded(text, _PredictionLine)
    return Prediction(
        key=line.key,
        groups=tuple(Reply(*msgspec.structs.astuple(group)) for group in line.groups),
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
        failed_in=line.stage,
    )


def target_line(truth: Truth) -> str:
    """The JSON of one line of `targets.jsonl`."""
    operation = truth.operation
    row = {
        **truth.key._asdict(),
        "website": truth.website,
        "domain": truth.domain,
        "op": operation.op,
        "value": operation.value,
        "original_op": operation.original_op,
        "target": truth.target,
        "positives": sorted(truth.positives),
        "boxes": truth.boxes,
        "picture_size": truth.picture_size,
        "n_actions": truth.n_actions,
        "n_before": truth.n_before,
        "n_candidates": truth.n_candidates,
        "kin": {kinship: sorted(ids) for kinship, ids in truth.kin.items()},
        "task": truth.task,
        "index": truth.index,
        "split": truth.split,
        "element_text": truth.element_text,
        "action_text": truth.action_text,
        "positives_in_order": truth.positives_in_order,
        **({"also_right": [asdict(one) for one in truth.also_right]} if truth.also_right else {}),
    }
    return _line(row)


def read_target(text: str) -> Truth:
    """Reverses `target_line`. Raises FormatError."""
    line = decoded(text, _TargetLine)
    return Truth(
        key=line.key,
        operation=Operation(line.op, line.value, line.original_op),
        boxes=tuple(Box(*box) for box in line.boxes),
        kin=cast("dict[Kinship, frozenset[str]]", line.kin),
        also_right=tuple(map(_other_answer, line.also_right)),
        **{name: getattr(line, name) for name in _ALIKE},
    )


def _other_answer(entry: dict[str, Any]) -> OtherAnswer:
    # most runs have none
    from seeact_offline.files.formats import OtherAnswerEntry

    return typed(entry, OtherAnswerEntry).answer


class _AnyManifest(msgspec.Struct):
    """The parts of `manifest.json` that every version has."""

    identity: dict[str, Any]
    settings: dict[str, Any] | None = None
    schema: int = SCHEMA
    packages: dict[str, Any] = {}


class _Settings(msgspec.Struct):
    """The settings that scoring a run again needs."""

    split: str
    dataset: str
    dataset_fingerprint: str
    limit: int | None
    protocol: str
    merge: str | None
    top_k: int | None
    seed: int


class KeyLine(msgspec.Struct, frozen=True):
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


class CallLine(KeyLine, frozen=True):
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
    finish_reason: str | None = None

    @property
    def record(self) -> CallRecord:
        usage = None if self.usage is None else self.usage.read
        return CallRecord(
            self.attempts,
            self.seconds,
            self.request_id,
            self.asked,
            self.reused,
            self.from_store,
            usage,
            self.finish_reason,
        )


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    """`Reply` as a line holds it, with the same fields in the same order."""

    group: int
    offered: tuple[str, ...]
    replies: tuple[str, ...]
    element_id: str | None
    op: str
    value: str
    failure: str | None = None
    detail: str = ""
    is_final_round: bool = False
    shown: ShownPicture | None = None


class _PredictionLine(KeyLine, frozen=True):
    """A line of `predictions.jsonl`. Ignores what a later version adds, though not inside of groups and usage."""

    groups: tuple[_Group, ...]
    element_id: str | None
    op: str
    value: str
    ranked: tuple[str, ...]
    usage: _Usage
    failure: str | None
    detail: str
    ran: bool
    point: tuple[float, float] | None = None
    notes: dict[str, int] = {}
    reachable: bool | None = None
    element_text: str = ""
    stage: Stage | None = None


class _TargetLine(KeyLine, frozen=True):
    """A line of `targets.jsonl`."""

    op: str
    value: str
    positives: frozenset[str]
    website: str = ""
    domain: str = ""
    original_op: str = ""
    target: str | None = None
    boxes: tuple[tuple[float, float, float, float], ...] = ()
    picture_size: tuple[int, int] | None = None
    n_actions: int = 0
    n_before: int = 0
    n_candidates: int = 0
    kin: dict[str, frozenset[str]] = {}
    task: str = ""
    index: int | None = None
    split: str = ""
    element_text: str = ""
    action_text: str = ""
    positives_in_order: tuple[str, ...] = ()
    also_right: tuple[dict[str, Any], ...] = ()


_ALIKE = tuple(
    {*_TargetLine.__struct_fields__}
    - {"annotation_id", "action_uid", "op", "value", "original_op", "boxes", "kin", "also_right"}
)
"""Fields that `Truth` holds in the same form."""


# --- the scored run ---


def read_results(run: Path) -> Results:
    """The figures of a scored run. Raises InputError where there are none."""
    path = run / "results.json"
    try:
        return Results.read(read_json(read_regular(path)))
    except FormatError as error:
        raise InputError("runs", error.expected, f"{error.got} in {path}") from None
    except OSError:
        raise InputError(
            "runs", sentence=f"{run} has no results.json that can be read; finish the run, or score it"
        ) from None


def read_steps(run: Path) -> dict[StepKey, StepRow]:
    """The scored steps of a run, in the file's order. Raises InputError, also for a step that is there twice."""
    steps: dict[StepKey, StepRow] = {}
    journal = Journal(run / "steps.jsonl")
    if not journal.path.is_file():
        raise InputError("runs", sentence=f"{run} has no steps.jsonl; finish the run, or score it")
    for line in journal.lines():
        with worded(f"line {line.number} of {journal.path}", "runs"):
            row = decoded(line.text, StepRow)
        if row.key in steps:
            raise InputError("runs", "every step once", f"{row.key} again in line {line.number} of {journal.path}")
        steps[row.key] = row
    return steps


# --- helpers ---


def _check_same(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if differing and DATA.issuperset(differing) and not old.keys() >= DATA:
        got = f"one of an earlier development version in {path}, without {' or '.join(sorted(DATA - old.keys()))}; name another folder"
        raise InputError("out", "a run of this version", got)
    if differing and DATA.issuperset(differing):
        raise InputError(
            "dataset",
            sentence=f"the run in {path} began with other rows, pages or pictures; name another folder for `out`",
        )
    if differing:
        name = differing[0]
        raise InputError(
            "out",
            sentence=f"{path} holds a run of another configuration ({', '.join(differing)} differ: {name} was"
            f" {old.get(name)!r:.80} and is now {new.get(name)!r:.80}); name another folder for `out`",
        )


def _environment() -> dict[str, Any]:
    # both are read once: what is installed or checked out while this process runs is not what it has loaded
    return {"python": sys.version.split()[0], "packages": _versions(), "git_commit": _git_commit()}


@cache
def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions


@cache
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
    replace_text(path, _json(value))


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(redact_values(value), indent=2) + "\n"
