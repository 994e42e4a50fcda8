"""The files of a finished run checked against each other, its data set and its stored replies.
Asks no model and writes nothing.

Figures follow from predictions and right answers; right answers from the data; predictions from the replies and the
pages. What nothing here follows from cannot be proved: docs/statistics.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from seeact_offline.dataset import Split, open_split
from seeact_offline.dataset.split import with_earlier
from seeact_offline.files.formats import FormatError, read_json, short
from seeact_offline.files.named import read_regular
from seeact_offline.files.whole import Journal
from seeact_offline.grounding import Grounding
from seeact_offline.grounding.groups import GroupStrategy
from seeact_offline.pages.dom import Page
from seeact_offline.ranking.stage import kept_before
from seeact_offline.records import InputError, Prediction, Truth
from seeact_offline.results.reading_again import Mismatch, open_grounding, reread, reread_groups
from seeact_offline.results.recompute import FinishedRun, open_finished, report_of, with_opinions
from seeact_offline.runs.ask import run_coroutine
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.folder import RunFolder, read_manifest, read_target, target_line
from seeact_offline.runs.prepare import target_of
from seeact_offline.scoring.protocols import known_protocols
from seeact_offline.scoring.report import NO_PREDICTION, counted

Status = Literal["verified", "verified in part", "not verified"]
SHOWN = 20
"""Differences of a file that are named one by one."""
SAME = 1e-9
"""Figures that differ by less are equal: another machine's processor may round the last digits otherwise."""
OF_PAGES = ("n_candidates", "kin", "picture_size", "element_text", "also_right")
"""Fields of a target for which its page, picture or all candidates have to be read."""
_HEAVY = frozenset({"cleaned_html", "raw_html", "neg_candidates", "screenshot"})
_TWICE = ("split", "dataset_fingerprint", "seed", "top_k")
"""Settings that a manifest's identity holds too."""
_OF_PEOPLE = {
    "causes_by_person": ("causes_by_person", "waterfall"),
    "oracle": ("annotation_errors",),
    "also_right": ("also_right",),
}
"""Entries of the results that depend on a file beside the run."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of a check."""

    differences: tuple[str, ...]
    """Differences from what the other files say, a sentence each."""
    not_proved: tuple[str, ...]
    """Claims that could not be checked, each with the reason."""

    @property
    def status(self) -> Status:
        if self.differences:
            return "not verified"
        return "verified in part" if self.not_proved else "verified"


class _Findings:
    """Gathers differences by the file that they are in, and what could not be proved."""

    def __init__(self) -> None:
        self.by_file: dict[str, list[str]] = {}
        self.not_proved: list[str] = []

    def add(self, file: str, differences: Iterable[str]) -> None:
        self.by_file.setdefault(file, []).extend(differences)

    def outcome(self) -> Verification:
        differences: list[str] = []
        for file, problems in self.by_file.items():
            differences += [f"{file}: {problem}" for problem in problems[:SHOWN]]
            if len(problems) > SHOWN:
                differences.append(f"{file}: {len(problems) - SHOWN:,} more")
        return Verification(tuple(differences), tuple(self.not_proved))


def verify(run: Path, *, dataset: Any = None, protocol: str | None = None, **opinions: Path | None) -> Verification:
    """Checks a run as `score --check` does.

    `dataset`: the data set, whose pages are read too, which takes as long as preparing a run; None: that of the
    manifest, where it is on this machine, without its pages. `protocol` and `opinions` (see `with_opinions`): as the
    run was scored with; None: as its results say, and what depends on a file is not proved. Raises InputError for files
    that cannot be read, and for other data.
    """
    split, problem = _data(run, dataset)
    return verify_files(run, split, problem, pages=dataset is not None, protocol=protocol, **opinions)


def verify_files(
    run: Path,
    split: Split | None,
    problem: str = "",
    *,
    pages: bool = False,
    protocol: str | None = None,
    **opinions: Path | None,
) -> Verification:
    """`verify` with data that are opened already. `split`: the run's own rows; None: there are
    none, for this reason (`problem`).

    Loads no code that a file names.
    """
    findings = _Findings()
    with rare_collections():
        manifest = read_manifest(run)
        settings, identity = manifest.settings, manifest.identity
        findings.add(
            "manifest.json",
            [
                f"settings.{name} is {short(settings[name])}, identity.{name} {short(identity[name])}"
                for name in _TWICE
                if name in settings and name in identity and settings[name] != identity[name]
            ],
        )
        kept = RunFolder(run).targets.is_file() and RunFolder(run).predictions.is_file()
        if not kept:
            findings.not_proved.append("the figures: the folder keeps no predictions, or no right answers")
            return findings.outcome()
        try:
            finished = open_finished(run, opens_data=False)
        except InputError as error:
            findings.add("predictions.jsonl", [str(error)])
            return findings.outcome()
        for journal in (RunFolder(run).predictions, RunFolder(run).targets):
            again = sum(1 for _ in Journal(journal).lines()) - len(finished.truths)
            if again > 0:
                findings.add(journal.name, [f"{counted(again, 'line')} of steps that another line is of"])
        _check_scores(run, finished, findings, protocol, opinions)
        if split is None:
            findings.not_proved.append(f"that right answers and steps are those of the data: {problem}")
        else:
            keys, in_run = frozenset(split.keys), {truth.key for truth in finished.truths}
            missing, is_whole = sorted(keys - in_run), _results(run).get("complete")
            is_partial = finished.settings.get("answered_only") or finished.settings.get("format") == "uground"
            findings.add("targets.jsonl", [f"{key} is no step of the data" for key in sorted(in_run - keys)])
            if missing and is_whole and not is_partial:
                n_missing = counted(len(missing), "step")
                findings.add("targets.jsonl", [f"{n_missing} of the data missing, {missing[0]} first"])
        try:
            grounding = open_grounding(RunFolder(run).content(), run / "captions.jsonl")
        except Exception as error:
            # a manifest of another program or version must not keep the figures from being checked
            findings.not_proved.append(f"that predictions are what the replies say: {error}")
            grounding = None
        if split is not None and pages:
            run_coroutine(_check_pages(run, split, finished, grounding, findings))
        else:
            if split is not None:
                findings.add("targets.jsonl", _light_differences(split, {t.key: t for t in finished.truths}))
                findings.not_proved.append(
                    "what pages say of right answers and answers: --dataset names the data to read"
                )
            _check_replies(finished, grounding, findings)
    return findings.outcome()


# --- the data ---


def _data(run: Path, dataset: Any) -> tuple[Split | None, str]:
    """The data set of a run, or the reason why there is none. Raises InputError where it was named."""
    settings = read_manifest(run).settings
    source = settings.get("dataset") if dataset is None else dataset
    if dataset is None and not (source == "sample" or (isinstance(source, str) and source and Path(source).exists())):
        return None, f"{source} is not on this machine; --dataset names it"
    try:
        split = open_split(source, settings["split"], limit=settings["limit"], tasks=settings.get("tasks"))
        if split.fingerprint == settings["dataset_fingerprint"]:
            return split, ""
    except InputError:
        if dataset is not None:
            raise
        return None, f"{source} cannot be opened; --dataset names the data"
    if dataset is not None:
        raise InputError(
            "dataset", sentence=f"{source} has other rows than {run} was run on; name its data with `dataset`"
        )
    return None, f"{source} holds other rows now; --dataset names the data"


def _light_differences(split: Split, truths: Mapping[Any, Truth]) -> Iterator[str]:
    """Right answers that are not those of the data, as far as these say without pages."""
    for shard in split.shards():
        light = tuple(name for name in shard.columns if name not in _HEAVY)
        for step in replace(shard, columns=light).steps():
            if step.key in truths:
                yield from _target_differences(truths[step.key], step.truth, OF_PAGES)


def _target_differences(stored: Truth, fresh: Truth, ignored: Iterable[str] = ()) -> Iterator[str]:
    names = [name for name in Truth.__struct_fields__ if name not in {*ignored}]
    if all(getattr(stored, name) == getattr(fresh, name) for name in names):
        return
    # secrets are blotted out in files
    fresh = read_target(target_line(fresh))
    for name in names:
        if getattr(stored, name) != getattr(fresh, name):
            yield f"{stored.key}: {name} is {short(getattr(stored, name))}, in the data {short(getattr(fresh, name))}"


# --- replies ---


def _check_replies(finished: FinishedRun, grounding: Grounding | None, findings: _Findings) -> None:
    """Reads the replies again, as far as that takes no page."""
    if grounding is None:
        return
    if not isinstance(grounding, GroupStrategy):
        findings.not_proved.append("that predictions are what the replies say, for which pages are needed")
        return
    for prediction in finished.predictions:
        if prediction.failure != NO_PREDICTION:
            findings.add("predictions.jsonl", map(partial(_sentence, prediction), reread_groups(prediction, grounding)))


def _sentence(prediction: Prediction, mismatch: Mismatch) -> str:
    return f"{prediction.key}: {mismatch.field} is {short(mismatch.stored)}, its replies say {short(mismatch.read)}"


async def _check_pages(
    run: Path, split: Split, finished: FinishedRun, grounding: Grounding | None, findings: _Findings
) -> None:
    """Reads every page: right answers, and what each prediction's replies come to on it."""
    manifest = read_manifest(run)
    digest, top_k = manifest.identity.get("scores_digest"), manifest.settings.get("top_k") or 0
    scores = kept_before(replace(split, limit=None, wanted=None), digest) if isinstance(digest, str) else None
    if scores is None and any(prediction.ranked for prediction in finished.predictions):
        findings.not_proved.append("the ranks of candidates: the ranker's scores are not on this machine")
    if manifest.identity.get("data_digest") not in (None, split.content_digest):
        findings.add("manifest.json", ["identity.data_digest is that of other pages or pictures"])
    answered = {
        truth.key: (truth, prediction) for truth, prediction in zip(finished.truths, finished.predictions, strict=True)
    }
    for step in with_earlier(split.steps(), 0 if grounding is None else grounding.earlier):
        if step.key not in answered:
            continue
        truth, prediction = answered[step.key]
        fresh = target_of(step, partial(Page, step.cleaned_html))
        findings.add("targets.jsonl", _target_differences(truth, fresh))
        if grounding is None or prediction.failure in (NO_PREDICTION, "internal_error"):
            continue
        mismatches = await reread(prediction, step, grounding, scores, top_k)
        findings.add("predictions.jsonl", map(partial(_sentence, prediction), mismatches))


# --- figures ---


def _results(run: Path) -> dict[str, Any]:
    try:
        return dict(read_json(read_regular(run / "results.json")))
    except (OSError, FormatError, TypeError, ValueError):
        raise InputError("run", sentence=f"{run} has no results.json that can be read; score it first") from None


def _check_scores(
    run: Path, finished: FinishedRun, findings: _Findings, protocol: str | None, opinions: Mapping[str, Path | None]
) -> None:
    """Scores the run again, and compares all files that scoring writes."""
    results = _results(run)
    try:
        # the protocol that the results name, if it is of this package; else the run's own
        named = results.get("protocol")
        is_known = isinstance(named, str) and named in known_protocols()
        rules = finished.protocol(protocol or (named if is_known else None))
    except InputError as error:
        own = finished.settings["protocol"]
        if not protocol and named != own:
            findings.add("results.json", [f"protocol is {short(named)}, in manifest.json {short(own)}"])
        findings.not_proved.append(f"the figures, whose rules are not of this package: {error}")
        return
    finished = with_opinions(finished, **opinions)
    try:
        made = finished.score(rules)
    except Exception as error:
        # whatever an edited file holds: that it cannot be scored is a difference too
        findings.add("predictions.jsonl", [f"it cannot be scored: {type(error).__name__}: {error}"])
        return
    files = RunFolder(run).score_files(made.rows, made.results, report_of(made, finished))
    left_out: set[str] = set()
    if "causes_by_person" in results and opinions.get("causes") is None:
        left_out.update(_OF_PEOPLE["causes_by_person"])
        findings.not_proved.append("causes of loss that a person gave: --causes names their file")
    second = results.get("also_right")
    if isinstance(second, Mapping) and second.get("of_file") and opinions.get("also_right") is None:
        left_out.update(_OF_PEOPLE["also_right"])
        findings.not_proved.append("figures with other right answers of a file: --also-right names it")
    errors = results.get("annotation_errors")
    if isinstance(errors, Mapping) and errors.get("population") == "oracle_right" and opinions.get("oracle") is None:
        left_out.update(_OF_PEOPLE["oracle"])
        findings.not_proved.append("errors of annotation where the oracle is right: --oracle names its run")
    for name, text in files.items():
        try:
            stored = read_regular(run / name).decode("utf-8")
        except (OSError, ValueError):
            findings.add(name, ["it is missing, or cannot be read"])
            continue
        if stored == text:
            continue
        if name == "results.json":
            fresh = {key: value for key, value in json.loads(text).items() if key not in left_out}
            shown = {key: value for key, value in results.items() if key not in left_out}
            findings.add(name, _differences(shown, fresh, ""))
        elif name == "steps.jsonl":
            findings.add(name, _row_differences(stored, text, {"person_cause"} if left_out else set()))
        elif not left_out:
            findings.add(name, _line_differences(stored, text))


def _differences(stored: Any, fresh: Any, place: str) -> Iterator[str]:
    """Entries that differ, each by its place, such as `step_success_rate.macro`."""
    if isinstance(stored, dict) and isinstance(fresh, dict):
        for name in {**fresh, **stored}:
            inner = f"{place}.{name}" if place else str(name)
            if name not in stored:
                yield f"{inner} is missing, scored again it is {short(fresh[name])}"
            elif name not in fresh:
                yield f"{inner} is {short(stored[name])}, which scoring again does not give"
            else:
                yield from _differences(stored[name], fresh[name], inner)
    elif isinstance(stored, list) and isinstance(fresh, list) and len(stored) == len(fresh):
        for number, (old, new) in enumerate(zip(stored, fresh, strict=True)):
            yield from _differences(old, new, f"{place}[{number}]")
    elif not _alike(stored, fresh):
        yield f"{place} is {short(stored)}, scored again it is {short(fresh)}"


def _alike(stored: Any, fresh: Any) -> bool:
    if {type(stored), type(fresh)} in ({float}, {int, float}):
        try:
            return math.isclose(stored, fresh, rel_tol=SAME, abs_tol=SAME)
        except OverflowError:
            # a whole number that is no float
            return False
    return type(stored) is type(fresh) and bool(stored == fresh)


def _row_differences(stored: str, fresh: str, ignored: set[str]) -> Iterator[str]:
    old, new = stored.splitlines(), fresh.splitlines()
    if len(old) != len(new):
        yield f"{counted(len(old), 'line')}, scored again {len(new):,}"
    for number, (was, now) in enumerate(zip(old, new, strict=False), 1):
        if was == now:
            continue
        try:
            row, again = read_json(was), json.loads(now)
        except FormatError as error:
            yield f"line {number}: {error}"
            continue
        for name in ignored:
            row.pop(name, None), again.pop(name, None)
        yield from (f"line {number}: {difference}" for difference in _differences(row, again, ""))


def _line_differences(stored: str, fresh: str) -> Iterator[str]:
    old, new = stored.split("\n"), fresh.split("\n")
    for number, (was, now) in enumerate(zip(old, new, strict=False), 1):
        if was != now:
            yield f"line {number} is {short(was)}, scored again it is {short(now)}"
            return
    yield f"{counted(len(old), 'line')}, scored again {len(new):,}"
