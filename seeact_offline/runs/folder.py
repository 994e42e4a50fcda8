"""A run's folder: the one place that reads and writes its files.

`manifest.json` is written first; `predictions.jsonl` grows as steps finish, in any order, and is put into data set order at
the end, so that a finished run's files are the same bytes whatever the concurrency and however often it was killed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
from filelock import FileLock, Timeout

from seeact_offline.files.formats import FormatError, check_other_answer, decoded, read_json, typed
from seeact_offline.files.markdown import printable
from seeact_offline.files.named import read_regular
from seeact_offline.files.redaction import redact, redact_values
from seeact_offline.files.whole import Journal, replace_text
from seeact_offline.records import Call, CallRecord, InputError, KeyedRow, Prediction, Reply, StepKey, Truth
from seeact_offline.scoring.report import how_it_was_run
from seeact_offline.scoring.results import Results, StepRow

FLAGGED = "flagged.jsonl"
LOCK = ".lock"
REPEAT = "shuffled-"
"""Beginning of the names of repeats' folders."""
SCHEMA = 1
"""The version of the manifest's layout."""
DATA = frozenset({"dataset_fingerprint", "data_digest"})
"""Parts of an identity that describe the data."""
PACKAGES = ("seeact-offline", "lxml", "numpy", "pyarrow", "pillow", "openai", "datasets", "torch", "transformers")
T = TypeVar("T")


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
            replace_text(self.manifest, _json({**self.content(), **manifest.lines}))
            return
        made = {} if manifest.made is None else {"made": msgspec.to_builtins(manifest.made)}
        begun = {"schema": SCHEMA, "identity": manifest.identity, **manifest.lines, **made}
        # both are read once: what is installed or checked out while this process runs is not what it has loaded
        loaded = {"python": sys.version.split()[0], "packages": _versions(), "git_commit": _git_commit()}
        replace_text(self.manifest, _json(begun | loaded))

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
            self._timings.append(_line({**place, **_row(call.record)}))
        for node, caption in prediction.captions.items():
            if not self._captions.is_open:
                self._open.enter_context(self._captions)
            self._captions.append(_line({**prediction.key._asdict(), "backend_node_id": node, "caption": caption}))
        self._targets.append(target_line(truth))
        self._journal.append(prediction_line(prediction))

    def load(self, with_calls: bool = False) -> dict[StepKey, Prediction]:
        """Predictions so far, without a last line that a crash has torn, and without their `calls` unless asked for.
        Raises InputError for other damage."""
        done: dict[StepKey, Prediction] = {}
        calls = self.load_calls() if with_calls else {}
        for prediction in read_lines(self._journal, read_prediction, "which is no prediction of ours"):
            if of_step := calls.get(prediction.key):
                prediction = msgspec.structs.replace(prediction, calls=tuple(of_step))
            done[prediction.key] = prediction
        return done

    def load_targets(self) -> dict[StepKey, Truth]:
        """The right answers so far; empty for a run from before they were kept. Raises InputError for damage."""
        truths: dict[StepKey, Truth] = {}
        for truth in read_lines(self._targets, read_target, "which says of no step what was right"):
            truths[truth.key] = truth
        return truths

    def load_calls(self) -> dict[StepKey, list[Call]]:
        """The calls of each step when it was last asked. Raises InputError for damage."""
        calls: dict[StepKey, list[Call]] = {}
        for key, call in read_lines(self._timings, read_call, "which says of no call what it took"):
            of_step = calls.setdefault(key, [])
            if any((earlier.group, earlier.turn) == (call.group, call.turn) for earlier in of_step):
                # the step was asked again
                of_step.clear()
            of_step.append(call)
        return calls

    # --- at the end ---

    def order(self, predictions: Iterable[Prediction], truths: Iterable[Truth]) -> None:
        """Writes predictions and targets anew, in this order; a file that would not change is left alone."""
        predictions = list(predictions)
        replace_text(self.predictions, _lines(map(prediction_line, predictions)))
        replace_text(self.targets, _lines(map(target_line, truths)))
        if self.captions.exists():
            # a step that was asked again has new ones
            captions = {
                (row["annotation_id"], row["action_uid"], row["backend_node_id"]): row
                for row in map(json.loads, (line.text for line in self._captions.lines()))
            }
            places = {prediction.key: place for place, prediction in enumerate(predictions)}
            rows = sorted(
                captions.values(),
                key=lambda row: places.get(StepKey(row["annotation_id"], row["action_uid"]), len(places)),
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
                keys.add(typed(read_json(line), KeyedRow).key)
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
        repeats = [self.repeat(number).load() for number in sorted(int(n) for n in numbers if n.isdecimal())]
        return [[done[truth.key] for truth in truths] for done in repeats if all(truth.key in done for truth in truths)]


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


def read_lines(journal: Journal, read: Callable[[str], T], otherwise: str = "", argument: str = "out") -> Iterator[T]:
    """The content of each whole line; none where there is no file. `otherwise`: says what a line is that cannot be
    read. Raises InputError of this argument for such a line."""
    for line in journal.lines():
        try:
            content = read(line.text)
        except FormatError as error:
            where = f"line {line.number} of {journal.path}{otherwise and f', {otherwise}'}"
            raise InputError(argument, error.expected, f"{error.got} in {where}") from None
        yield content


# --- lines, as they are written and read ---


LEFT_OUT = {
    Prediction: {"point", "notes", "reachable", "element_text", "stage"},
    Reply: {"shown"},
    Truth: {"also_right"},
}
"""Fields that a row lacks where they are not set. All others are always there."""
OWN_FILES = {"calls.jsonl", "captions.jsonl"}
"""Fields of `Prediction` that are no part of its row."""


def _row(record: msgspec.Struct) -> dict[str, Any]:
    """The row of a record: its fields, in their order."""
    left_out = LEFT_OUT.get(type(record), ())
    fields = zip(record.__struct_encode_fields__, msgspec.structs.astuple(record), strict=True)
    return {name: value for name, value in fields if name not in left_out or value not in (None, "", (), {})}


def prediction_line(prediction: Prediction) -> str:
    """The JSON of one line of `predictions.jsonl`."""
    row = _row(prediction) | {"usage": prediction.usage.named}
    return _line({name: value for name, value in row.items() if name not in OWN_FILES})


def read_prediction(text: str) -> Prediction:
    """Reverses `prediction_line`. Raises FormatError."""
    return Prediction(**msgspec.structs.asdict(decoded(text, _WholePrediction)))


def target_line(truth: Truth) -> str:
    """The JSON of one line of `targets.jsonl`."""
    return _line(_row(truth))


def read_target(text: str) -> Truth:
    """Reverses `target_line`. Raises FormatError."""
    truth = decoded(text, Truth)
    for answer in truth.also_right:
        check_other_answer(answer)
    return truth


def read_call(text: str) -> tuple[StepKey, Call]:
    """A line of `calls.jsonl`. Raises FormatError."""
    place = decoded(text, _CallPlace)
    return place.key, Call(place.group, place.turn, decoded(text, CallRecord))


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


class _CallPlace(KeyedRow, frozen=True):
    """The place of a call in a run, and what is known of every call."""

    group: int
    turn: int
    attempts: int
    seconds: float


_WholePrediction = msgspec.defstruct(
    "_WholePrediction",
    [
        (field.name, field.type)
        for field in msgspec.structs.fields(Prediction)
        if field.encode_name not in LEFT_OUT[Prediction] | OWN_FILES
    ],
    bases=(Prediction,),
    kw_only=True,
)
"""All that a line never lacks. Of these, `Prediction` has defaults for those who make one."""


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
    for number, row in enumerate(read_lines(journal, partial(decoded, kind=StepRow), argument="runs"), 1):
        key = row.key
        if key in steps:
            raise InputError("runs", "every step once", f"{key} again in line {number} of {journal.path}")
        steps[key] = row
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
        words = ["git", "-C", str(root), "rev-parse", "--show-toplevel", "HEAD"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.split("\n")
    return lines[1] if done.returncode == 0 and Path(lines[0]).resolve() == root else None


def _line(row: Mapping[str, Any]) -> str:
    # ASCII only: a lone surrogate in a model's text must not stop the file from being written
    return _ENCODER.encode(redact_values(row))


# a record as its row, and a set as a sorted list
_ENCODER = json.JSONEncoder(
    default=lambda value: redact_values(sorted(value) if isinstance(value, frozenset) else _row(value))
)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(redact_values(value), indent=2) + "\n"
