"""Other people's predictions as a run of ours: a run folder that is scored, compared and tabulated like any other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import msgspec

from seeact_offline.agents import Answer, find_agent
from seeact_offline.agents.gui_agent import landed
from seeact_offline.dataset import Split, open_split
from seeact_offline.files.digest import file_digest
from seeact_offline.grounding.attributes import match_notes, page_search
from seeact_offline.grounding.strategies import UNGROUNDED
from seeact_offline.importers import IMPORTERS, check_exists, looks_like, read
from seeact_offline.importers import notes as meanings
from seeact_offline.importers.answer_table import doubt
from seeact_offline.importers.better_reading import geometry_of
from seeact_offline.importers.importer import ImportedAnswers, Importer, Problem, Source
from seeact_offline.merging import merge
from seeact_offline.pages.dom import Page
from seeact_offline.pages.pointing import element_at
from seeact_offline.records import OPERATIONS, Box, InputError, Prediction, RowError, Step, Truth
from seeact_offline.replies import parse_grounding_reply
from seeact_offline.results.recompute import FinishedRun, report_of
from seeact_offline.runs.config import own_words
from seeact_offline.runs.folder import Made, Manifest, RunFolder, read_manifest
from seeact_offline.runs.prepare import target_of
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.protocols import find_protocol
from seeact_offline.scoring.report import counted
from seeact_offline.scoring.results import IMPORT_NOTES

NO_ANSWER = "no_answer"
"""The failure of a step that the files do not answer."""
SHOWN = 3
"""Problems of a name that are told one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFiles:
    """The files to import. UGround has samples, a plan and perhaps answers; every other format one file or folder."""

    run: Path | None = None
    samples: Path | None = None
    plan: Path | None = None
    answers: Path | None = None

    def given(self) -> dict[str, Source]:
        named = {"run": self.run, "samples": self.samples, "plan": self.plan, "answers": self.answers}
        return {name: Source(name, path) for name, path in named.items() if path is not None}


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """The run that predictions have become."""

    run: Run
    covered: tuple[str, ...]
    """Names of the notes that cover more than half of its steps, so that a mistake in the import is likely."""


def import_run(
    files: ImportFiles,
    *,
    out: Path,
    format: str | None = None,
    dataset: Any = None,
    split: str | None = None,
    protocol: str | None = None,
    answered_only: bool = False,
    points: str | None = None,
    grounding: str | None = None,
    agent: str | None = None,
    strict: bool = False,
    label: str | None = None,
    tags: Collection[str] = (),
    metadata: Mapping[str, str] = MappingProxyType({}),
    date: str | None = None,
    command: str | None = None,
    watch: Watch | None = None,
) -> ImportedRun:
    """Writes a run folder of the predictions in `files`, scored. Nothing that it cannot read ends it: it is left out,
    counted and told.

    `format`: a name of IMPORTERS; None: by the look of the file. `dataset`, `split`: where it says what is right, for
    formats that do not say it themselves; steps join by `annotation_id` and `action_uid`. `protocol`: the format's own
    unless given. `answered_only`: leave out steps without an answer, which fail otherwise. `points`, `grounding`: see
    the tables and SeeAct's files among the importers; None: pixels that are doubted where they look like shares, and
    the strategy that the files tell. `label`, `tags`, `metadata`: as of `evaluate`. `date`: the day, or the moment, on
    which the model answered, in ISO's form; None: now. `command`: as the manifest names it.

    Raises InputError.
    """
    made = Made(date=_moment(date), command=command)
    importer = _importer(format, files)
    own = find_agent(agent)[0].protocol if agent and "agent" in importer.options else importer.protocol
    rules = find_protocol(protocol or own)
    sources = _sources(importer, files)
    options = {"points": points, "grounding": grounding, "agent": agent, "strict": strict or None}
    named_options = {name: value for name, value in options.items() if value is not None}
    for name in named_options:
        if name not in importer.options:
            takes = [other.name for other in IMPORTERS.values() if name in other.options]
            raise InputError(name, sentence=f"`{name}` needs `format` {' or '.join(takes)}")
    imported = read(importer, sources, **named_options)
    joined = _joined(imported, importer, dataset, split, answered_only)
    problems = [
        *imported.problems,
        *joined.problems,
        *(doubt(joined.predictions, joined.truths) if "points" in importer.options and not points else []),
    ]
    digests = {name: file_digest(source.path) for name, source in sources.items() if source.path.is_file()}
    settings = {
        "split": joined.split, "grounding": agent or importer.name if imported.is_grounded else UNGROUNDED,
        "model": f"imported/{_title(sources)}{' (answered only)' if answered_only else ''}", "ranker": None,
        "protocol": rules.name, "prompts": None,
        "merge": None, "top_k": None, "group_size": None, "seed": 0, "limit": None,
        "dataset": joined.dataset or str(sources["samples"].path),
        "dataset_fingerprint": joined.fingerprint or digests["samples"][:16],
        "format": importer.name, **named_options, **imported.settings,
        **({"answered_only": True} if answered_only else {}), **own_words(label, tags, metadata),
        IMPORT_NOTES: dict(sorted(Counter(problem.name for problem in problems).items())),
    }  # fmt: skip
    identity = {"imported": importer.name, "files": digests or _title(sources)} | {
        name: settings[name]
        for name in ("split", "dataset_fingerprint", *named_options, "agent_digest", "answered_only")
        if name in settings
    }
    note_meanings = meanings()
    about = [Problem(name, str(p.key)) for p in joined.predictions for name in p.notes if name in note_meanings]
    watch = watch or Watch()
    _note_problems([*problems, *about], note_meanings, watch)
    if joined.n_missing:
        treated = "left out" if answered_only else f"failures ({NO_ANSWER})"
        watch.note(
            f"{counted(joined.n_missing, 'step')} of {joined.dataset} ({joined.split}) without an answer: {treated}"
        )
    finished = FinishedRun(settings, joined.predictions, joined.truths, complete=answered_only or not joined.n_missing)
    scored = finished.score(finished.protocol(rules.name))
    folder = RunFolder(out)
    folder.claim(Manifest(identity=identity, settings=settings, made=made))
    folder.order(finished.predictions, finished.truths)
    folder.write_scores(scored.rows, scored.results, report_of(scored, finished))
    covering = Counter(problem.name for problem in [*problems, *about] if problem.of_step)
    most = tuple(name for name, n in sorted(covering.items()) if 2 * n > len(joined.predictions))
    for name in most:
        watch.note(f"{name} covers more than half of the steps: these figures are hardly of the model")
    return ImportedRun(Run(out), most)


def import_replies_of(
    run: Path,
    *,
    out: Path,
    agent: str,
    dataset: Any = None,
    protocol: str | None = None,
    strict: bool = False,
    watch: Watch | None = None,
    **about: Any,
) -> ImportedRun:
    """Writes a run of the last replies of another run, read in an agent's language. Steps that the other one does not
    have are left out; those without a reply fail. `dataset`: where its data are now; None: as kept with the run. `about`:
    `label`, `tags`, `metadata`, `date` and `command` of `import_run`. Raises InputError, for a run without replies among others."""
    settings, predictions, truths = read_manifest(run).settings, RunFolder(run).load(), RunFolder(run).load_targets()
    rows = [
        {
            **prediction.key._asdict(),
            "reply": prediction.groups[-1].replies[-1] if prediction.groups and prediction.groups[-1].replies else "",
        }
        | geometry_of(prediction, truths.get(key), settings)
        for key, prediction in predictions.items()
    ]
    if not any(row["reply"] for row in rows):
        raise InputError("run", sentence=f"{run} holds no replies")
    is_part = any(settings.get(name) is not None for name in ("limit", "sample", "tasks", "answered_only"))
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{run.resolve().name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return import_run(
            ImportFiles(run=file), out=out, format="replies", dataset=dataset or settings["dataset"],
            split=settings["split"], protocol=protocol, answered_only=is_part, agent=agent, strict=strict, watch=watch, **about,
        )  # fmt: skip


def _moment(date: str | None) -> str:
    """A day or a moment as manifests have it, in UTC. Raises InputError."""
    try:
        moment = datetime.now(UTC) if date is None else datetime.fromisoformat(date)
    except ValueError:
        raise InputError("date", "a day or a moment, such as 2026-11-29 or 2026-11-29T18:30+01:00", str(date)) from None
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")


# --- importer and files ---


def _importer(format: str | None, files: ImportFiles) -> Importer:
    if format is not None and format not in IMPORTERS:
        raise InputError("format", f"one of {', '.join(IMPORTERS)}", format)
    if format is not None:
        return IMPORTERS[format]
    if files.run is None:
        raise InputError("format", sentence=f"name a `format`: {', '.join(IMPORTERS)}")
    check_exists(Source("run", files.run))
    importer = looks_like(files.run)
    if importer is None:
        formats = ", ".join(importer.what for importer in IMPORTERS.values())
        raise InputError("run", f"a folder with a manifest.json, or {formats}", str(files.run))
    return importer


def _sources(importer: Importer, files: ImportFiles) -> dict[str, Source]:
    sources = files.given()
    for name in importer.needs:
        if name not in sources:
            raise InputError(name, sentence=f"{importer.what} cannot be read without `{name}`")
    for name in sources:
        if name not in (*importer.needs, *importer.takes):
            takes = ", ".join((*importer.needs, *importer.takes))
            raise InputError(name, sentence=f"`format` {importer.name} uses {takes}, not `{name}`; remove it")
    return sources


def _title(sources: Mapping[str, Source]) -> str:
    """The name of the file that the predictions are in."""
    return next(sources[name].path.name for name in ("run", "plan") if name in sources)


# --- joining ---


@dataclass(frozen=True)
class _JoinedSteps:
    """Predictions with their truths, in order."""

    predictions: Sequence[Prediction]
    truths: Sequence[Truth]
    problems: Sequence[Problem]
    n_missing: int = 0
    """Steps of the data set without an answer."""
    split: str = ""
    dataset: str = ""
    """Empty, like the fingerprint, where the files say themselves what is right."""
    fingerprint: str = ""


def _joined(
    imported: ImportedAnswers, importer: Importer, dataset: Any, split: str | None, answered_only: bool
) -> _JoinedSteps:
    """The answers with their truths, from the files themselves or the data set. Raises InputError."""
    if imported.truths is not None:
        if answered_only:
            raise InputError(
                "answered_only",
                sentence=f"`answered_only` needs a format whose steps are those of a data set, which {importer.name} "
                "is not",
            )
        predictions = [_noted(imported.answers[str(truth.key)](truth)) for truth in imported.truths]
        return _JoinedSteps(predictions, imported.truths, (), split=str(imported.settings.get("split", "")))
    for name, value in (("dataset", dataset), ("split", split)):
        if value is None:
            raise InputError(
                name, sentence=f"{importer.what} cannot be scored without `{name}`, which says what is right"
            )
    return _from_data(imported, open_split(dataset, str(split)), answered_only)


def _note_problems(problems: Sequence[Problem], note_meanings: Mapping[str, str], watch: Watch) -> None:
    """Notes the problems of each name, with their number and the first places."""
    by_name: dict[str, list[str]] = {}
    for problem in problems:
        by_name.setdefault(problem.name, []).append(problem.where)
    for name, where in sorted(by_name.items()):
        more = ", ..." if len(where) > SHOWN else ""
        watch.note(f"{name}: {len(where)} {note_meanings.get(name, '')} ({'; '.join(where[:SHOWN])}{more})")


def _from_data(imported: ImportedAnswers, split: Split, answered_only: bool) -> _JoinedSteps:
    """The steps of the data set in its order."""
    split_keys = {str(key) for key in split.keys}
    unknown = [Problem("unknown_step", key) for key in imported.answers if key not in split_keys]
    is_described = imported.settings.get("strategy") == "attributes"
    predictions, truths = [], []
    is_pointed = "agent" in imported.settings
    answered = {key for key in split.keys if str(key) in imported.answers}
    for step in split.steps(answered if answered_only else None):
        page = cache(partial(Page, step.cleaned_html))
        truth = target_of(step, page)
        detail = "the file holds no answer to this step"
        prediction = Prediction(*truth.key, None, "", "", failure=NO_ANSWER, detail=detail, ran=False)
        if answer := imported.answers.get(str(step.key)):
            prediction = answer(truth)
        if is_described:
            prediction = _searched(prediction, step, page, truth)
        if is_pointed:
            prediction = _landed(prediction, step, page)
        if answered_only and prediction.failure == NO_ANSWER:
            continue
        predictions.append(_noted(_on_page(prediction, step, page), step))
        truths.append(truth)
    return _JoinedSteps(
        predictions=predictions,
        truths=truths,
        problems=unknown,
        n_missing=len(split_keys - imported.answers.keys()),
        split=split.name,
        dataset=str(split.dataset),
        fingerprint=split.fingerprint,
    )


def _searched(prediction: Prediction, step: Step, page: Callable[[], Page], truth: Truth) -> Prediction:
    """The first element that a reply describes, by the search of our own attributes grounding.

    Of several elements that fit none is taken: the released code would ask again which is meant.
    """
    try:
        search = page_search(page(), step.candidates, truth.picture_size)
    except RowError as error:
        return msgspec.structs.replace(prediction, failure=error.name, detail=error.detail)
    notes = Counter(prediction.notes)
    groups = []
    for group in prediction.groups:
        described = parse_grounding_reply(group.replies[-1], "attributes", 0)
        matches = search.find(described.element_type, described.element_text)
        notes.update(match_notes(described, matches))
        groups.append(msgspec.structs.replace(group, element_id=matches.ids[0] if len(matches.ids) == 1 else None))
    if not groups:
        return prediction
    decided = merge(groups, "first", ())
    return msgspec.structs.replace(
        prediction,
        groups=tuple(groups),
        element_id=decided.element_id,
        op=decided.op,
        value=decided.value,
        failure=decided.failure,
        detail=decided.detail,
        notes=dict(sorted((+notes).items())),
    )


def _landed(prediction: Prediction, step: Step, page: Callable[[], Page]) -> Prediction:
    """The element at an agent's place, as when the agent is asked here. A page that cannot be read is left to
    `_on_page`."""
    with suppress(RowError):
        answer = Answer(prediction.op, prediction.value, prediction.point)
        element, answer = landed(step, page(), answer)
        return msgspec.structs.replace(prediction, element_id=element, op=answer.op, value=answer.value)
    return prediction


def _on_page(prediction: Prediction, step: Step, page: Callable[[], Page]) -> Prediction:
    """An answer that is a place and no element gets the smallest element there, as in pixel grounding.

    Where the page cannot be read, elements of equal size go in the order of the row.
    """
    if prediction.point is None or prediction.element_id is not None:
        return prediction
    boxes: list[tuple[str, Box]] = [(c.backend_node_id, c.box) for c in step.candidates if c.box is not None]
    # as for what is like the right element: an unforeseen page must not end an import
    with suppress(Exception):
        boxes.sort(key=lambda entry: page().position(entry[0]))
    return msgspec.structs.replace(prediction, element_id=element_at(prediction.point, boxes))


def _noted(prediction: Prediction, step: Step | None = None) -> Prediction:
    """Adds notes on what is odd in any format. `step`: given where its page is known."""
    element, point = prediction.element_id, prediction.point
    is_unknown = step is not None and element not in {None, *(c.backend_node_id for c in step.candidates)}
    odd = {
        "unknown_element": is_unknown,
        "negative_point": point is not None and min(point) < 0,
        "other_operation": bool(prediction.op) and prediction.op not in OPERATIONS,
    }
    added = {name: 1 for name, is_so in odd.items() if is_so}
    if not added:
        return prediction
    return msgspec.structs.replace(prediction, notes=dict(sorted({**prediction.notes, **added}.items())))
