"""The run directory: what a run was asked to do, and what it has done so far.

`manifest.json` is written first; `predictions.jsonl` grows as steps finish, in any order, and is put into data set order at
the end, so that a finished run's files are the same bytes whatever the concurrency and however often it was killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from seeact_offline.files.redaction import redact, redact_values
from seeact_offline.records import InputError, Prediction, Reply, StepKey, Usage

SETTINGS = frozenset({"split", "dataset", "dataset_fingerprint", "limit", "protocol", "merge", "top_k", "seed"})
"""What scoring a run again needs of its manifest."""
FLAGGED = "flagged.jsonl"
PACKAGES = ("seeact-offline", "lxml", "numpy", "pyarrow", "pillow", "openai", "datasets", "torch", "transformers")


class RunDirectory:
    """One `--out` folder. Use as a context manager: the predictions file is open for appending inside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    @property
    def predictions(self) -> Path:
        return self.path / "predictions.jsonl"

    @property
    def calls(self) -> Path:
        """The cache of paid calls."""
        return self.path / "calls.sqlite"

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    def check(self, identity: Mapping[str, Any]) -> None:
        """Makes the folder; raises InputError where that cannot be, or where it holds a run of another configuration."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"--out: expected a folder that can be made, got {self.path}: {error.strerror}") from None
        if self.manifest.exists():
            _check_same(_read_manifest(self.manifest)["identity"], json.loads(json.dumps(identity)), self.path)
        elif self.predictions.exists():
            raise InputError(f"--out: {self.path} holds predictions without a manifest.json; name another folder")

    def claim(self, identity: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Writes the manifest; where one of the same configuration is there, only settings that have changed.

        `identity`: everything that predictions depend on. `settings`: what else is worth recording. Raises InputError.
        """
        self.check(identity)
        if self.manifest.exists():
            _write_json(self.manifest, {**_read_manifest(self.manifest), "settings": settings})
        else:
            _write_json(self.manifest, {"schema": 1, "identity": identity, "settings": settings, **_environment()})

    def load(self) -> dict[StepKey, Prediction]:
        """Predictions so far, without a last line that a crash has torn. Raises InputError for other damage."""
        if not self.predictions.exists():
            return {}
        data = self.predictions.read_bytes()
        lines = data[: _whole(data)].decode(errors="replace").splitlines()
        read = [_read_line(line, number, self.predictions) for number, line in enumerate(lines, 1)]
        return {prediction.key: prediction for prediction in read}

    def __enter__(self) -> RunDirectory:
        # only who writes may repair: to others a torn line may be one that a live run is writing
        _cut_torn_line(self.predictions)
        self._file = self.predictions.open("a", encoding="utf-8", newline="\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def append(self, prediction: Prediction) -> None:
        """Adds one line and hands it to the operating system before it returns."""
        if self._file is None:
            raise RuntimeError("the run directory is not open")
        self._file.write(prediction_line(prediction))
        self._file.flush()

    def finish(
        self,
        predictions: Iterable[Prediction],
        steps: Sequence[Mapping[str, Any]],
        results: Mapping[str, Any],
        report: str,
    ) -> None:
        """Puts the predictions into order and writes scores, results and report; a file that would not change is left alone."""
        _replace(self.predictions, "".join(map(prediction_line, predictions)))
        self.write_scores(steps, results, report)

    def write_scores(self, steps: Sequence[Mapping[str, Any]], results: Mapping[str, Any], report: str) -> None:
        _replace(self.path / "steps.jsonl", "".join(map(_line, steps)))
        _write_json(self.path / "results.json", results)
        _replace(self.path / "report.md", redact(report))

    def remember_flagged(self, keys: frozenset[StepKey] | None) -> None:
        """Notes the steps without which the figures were given too, so that scoring again gives them too."""
        if keys is None:
            (self.path / FLAGGED).unlink(missing_ok=True)
        else:
            _replace(self.path / FLAGGED, "".join(_line(key._asdict()) for key in sorted(keys)))

    def flagged(self) -> frozenset[StepKey] | None:
        """What `remember_flagged` noted; None for a run that did not ask."""
        path = self.path / FLAGGED
        if not path.exists():
            return None
        return frozenset(StepKey(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines())

    def write(self, name: str, text: str) -> None:
        """One more file of the run, whole or not at all."""
        _replace(self.path / name, redact(text))


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run. Raises InputError when there is none."""
    manifest = path / "manifest.json"
    if not manifest.is_file():
        raise InputError(f"--out: expected a folder of a finished run with a manifest.json, got {path}")
    content = _read_manifest(manifest)
    if not set(content.get("settings") or ()) >= SETTINGS:
        raise InputError(f"--out: {manifest} does not say how its run was set up")
    return content


def prediction_line(prediction: Prediction) -> str:
    """One line of `predictions.jsonl`."""
    row = {
        "annotation_id": prediction.key.annotation_id,
        "action_uid": prediction.key.action_uid,
        "element_id": prediction.element_id,
        "op": prediction.op,
        "value": prediction.value,
        "failure": prediction.failure,
        "detail": prediction.detail,
        "ran": prediction.ran,
        "usage": asdict(prediction.usage),
        "ranked": prediction.ranked,
        "groups": [asdict(group) for group in prediction.groups],
        **_where_set(prediction),
    }
    return _line(row)


def _where_set(prediction: Prediction) -> dict[str, Any]:
    """What only some groundings give: a line of the others looks as it did before these fields were thought of."""
    fields: dict[str, Any] = {}
    if prediction.point is not None:
        fields["point"] = prediction.point
    if prediction.notes:
        fields["notes"] = dict(prediction.notes)
    if prediction.reachable is not None:
        fields["reachable"] = prediction.reachable
    return fields


def read_prediction(row: Mapping[str, Any]) -> Prediction:
    """The reverse of `prediction_line`, from the parsed line. Raises KeyError, TypeError or ValueError."""
    groups = tuple(
        Reply(**{**group, "offered": tuple(group["offered"]), "replies": tuple(group["replies"])})
        for group in row["groups"]
    )
    return Prediction(
        key=StepKey(row["annotation_id"], row["action_uid"]),
        groups=groups,
        element_id=row["element_id"],
        op=row["op"],
        value=row["value"],
        ranked=tuple(row["ranked"]),
        usage=Usage(**row["usage"]),
        failure=row["failure"],
        detail=row["detail"],
        ran=row["ran"],
        point=_point(row.get("point")),
        notes=tuple(sorted((str(name), int(count)) for name, count in dict(row.get("notes", {})).items())),
        reachable=row.get("reachable"),
    )


def _point(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    x, y = value
    return float(x), float(y)


def _read_line(line: str, number: int, path: Path) -> Prediction:
    try:
        return read_prediction(json.loads(line))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"--out: line {number} of {path} is no prediction of ours: {error!r:.100}") from None


def _read_manifest(manifest: Path) -> dict[str, Any]:
    try:
        content = json.loads(manifest.read_text())
        known = isinstance(content["identity"], dict)
    except (ValueError, KeyError, TypeError, OSError):
        known = False
    if not known:
        raise InputError(f"--out: {manifest} is no manifest of ours")
    return dict(content)


def _cut_torn_line(path: Path) -> None:
    data = path.read_bytes() if path.exists() else b""
    if _whole(data) < len(data):
        os.truncate(path, _whole(data))


def _whole(data: bytes) -> int:
    """Bytes up to the last line that a crash has torn: it has no end, or holds NUL bytes where power was lost."""
    last = data.rfind(b"\n", 0, -1) + 1
    return len(data) if data.endswith(b"\n") and b"\0" not in data[last:] else last


def _check_same(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if differing:
        name = differing[0]
        raise InputError(
            f"--out: {path} holds a run of another configuration ({', '.join(differing)} differ: {name} was {old.get(name)!r:.80}"
            f" and is now {new.get(name)!r:.80}); name another folder"
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
    return json.dumps(redact_values(row)) + "\n"


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    _replace(path, json.dumps(redact_values(value), indent=2) + "\n")


def _replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all; the same text leaves the file as it is."""
    data = text.encode("utf-8", errors="backslashreplace")
    if path.exists() and path.read_bytes() == data:
        return
    draft = path.with_name(path.name + ".tmp")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
