"""SeeAct's `prediction-*.jsonl` with the `queries.jsonl` beside it: one folder per step, or a folder of such folders.

A query is one group of choices; a prediction says of one group, by its number, what the model replied. A step is known
by its queries (`annotation_id`, `action_uid`), else by its folder's name. Rules that merge groups were never released:
the first group with a pick decides, and the results say what the other rule makes of the same replies.

Queries of all strategies list choices, which attributes ignores (`element_attributes.py` writes those of the first
group). So the strategy is that of the file's name, which is the experiment (`prompts.py`, `generate_prompt`); else
attributes where most prompts or replies have an ELEMENT TYPE. Source: SeeAct's released `src/offline_experiment.py`,
`src/data_utils/prompts.py` at 1477420.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seeact_offline.files.formats import as_number
from seeact_offline.importers.importer import Answer, ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.importers.reading import SourceRow, SourceRows, json_or_none, json_rows, step_of, text
from seeact_offline.merging import merge
from seeact_offline.records import InputError, MergeRule, Prediction, Reply, Truth, letter
from seeact_offline.replies import parse_grounding_reply

QUERIES = "queries.jsonl"
MERGE: MergeRule = "first"
EXPERIMENTS = {
    "text": "choice", "text_choice": "choice", "4api": "choice",
    "image_annotation": "annotation", "2api": "annotation",
    "element_attributes": "attributes", "3api": "attributes",
}  # fmt: skip
"""The released code's names of experiments, with our strategies."""
NOTES = {
    "no_choices": "groups whose query lists no choices, so that no element can be told",
    "unanswered_group": "groups without a prediction",
    "unknown_group": "predictions of a group that the queries do not have; left out",
    "duplicate_group": "further predictions of a group that has one; the first counts",
}


def read(sources: Mapping[str, Source], grounding: str | None = None) -> ImportedAnswers:
    """Reads SeeAct's predictions. `grounding`: the strategy of the replies; None: the files tell it."""
    files = _prediction_files(sources["run"])
    steps = [_read_step(file) for file in files]
    groups = [group for step in steps for group in step.groups]
    described = "attributes" if 2 * sum(group.names_type for group in groups) > len(groups) else "choice"
    strategy = grounding or EXPERIMENTS.get(files[0].stem.removeprefix("prediction-")) or described
    answers: dict[str, Answer] = {}
    problems = [problem for step in steps for problem in step.problems]
    # ranks of some steps say nothing of all
    has_ranks = all(step.ranked for step in steps if step.groups)
    for step in steps:
        if step.key in answers:
            problems.append(Problem("duplicate_step", f"{step.key} again in {step.where}"))
        elif step.groups:
            answers[step.key] = partial(_answer, step, strategy, step.ranked if has_ranks else ())
        else:
            problems.append(Problem("bad_row", f"{step.where}: no prediction can be read"))
    return ImportedAnswers(answers, problems, {"merge": MERGE, "strategy": strategy})


def _prediction_files(source: Source) -> list[Path]:
    """The files of predictions, one per step. Raises InputError where a folder holds those of several experiments."""
    path = source.path
    if path.is_file():
        if not any("multichoice_id" in row.values for row in _objects(path).rows):
            raise WrongFormat(source, "predictions of SeeAct, with multichoice_id and gpt_output")
        if not path.with_name(QUERIES).is_file():
            raise InputError(source.argument, sentence=f"{path} has no {QUERIES} beside it; name predictions that have")
        return [path]
    files = sorted(path.glob("prediction-*.jsonl")) or sorted(path.glob("*/prediction-*.jsonl"))
    if not files:
        raise WrongFormat(source, "prediction-*.jsonl, at once or in a folder a step")
    names = sorted({file.name for file in files})
    if len(names) > 1:
        raise InputError(source.argument, "predictions of one experiment", f"{' and '.join(names[:3])} in {path}")
    return files


@dataclass(frozen=True, slots=True)
class _Group:
    """One group's query with the replies to it."""

    place: int
    offered: tuple[str, ...]
    texts: tuple[str, ...]
    """Replies, one per turn."""
    names_type: bool
    """True if prompt or reply name the element's type, as only attributes has it."""


@dataclass(frozen=True, slots=True)
class _Step:
    key: str
    where: str
    groups: tuple[_Group, ...]
    """Groups with an answer."""
    n_queries: int
    ranked: tuple[str, ...]
    """Elements offered, best first; empty where the queries give no ranks."""
    problems: tuple[Problem, ...]


def _answer(step: _Step, strategy: str, ranked: tuple[str, ...], truth: Truth) -> Prediction:
    groups = tuple(_reply(group, strategy) for group in step.groups)
    ranked = () if strategy == "attributes" else ranked
    decided = merge(groups, MERGE, ranked)
    notes = {
        "no_choices": sum(not group.offered for group in groups) if strategy != "attributes" else 0,
        "unanswered_group": step.n_queries - len(groups),
    }
    return Prediction(
        *truth.key,
        groups=groups,
        element_id=decided.element_id,
        op=decided.op,
        value=decided.value,
        ranked=ranked,
        failure=decided.failure,
        detail=decided.detail,
        notes={name: n for name, n in sorted(notes.items()) if n},
    )


def _read_step(file: Path) -> _Step:
    queries = _objects(file.with_name(QUERIES))
    predictions = _objects(file)
    key = next((key for row in queries.rows if (key := step_of(row.values))), file.parent.name)
    rows, problems = _answered(predictions.rows, len(queries.rows))
    groups = tuple(
        _Group(place, _offered(query.values), _texts(rows[place]), _has_element_type(rows[place]))
        for place, query in enumerate(queries.rows)
        if place in rows
    )
    return _Step(
        key=key,
        where=f"{file.parent.name}/{file.name}",
        groups=groups,
        n_queries=len(queries.rows),
        ranked=_ranked(queries.rows, [node for group in groups for node in group.offered]),
        problems=(*queries.problems, *predictions.problems, *problems),
    )


def _objects(file: Path) -> SourceRows:
    """The objects of its lines; a line may be a JSON text that itself holds JSON."""
    folder = f"{file.parent.name}/{file.name}"
    table = json_rows(Source("run", file), lambda row: folder, unwrap=True)
    return SourceRows(
        [SourceRow(row.key, row.where.replace(file.name, folder), row.values) for row in table.rows],
        [Problem(problem.name, problem.where.replace(file.name, folder)) for problem in table.problems],
    )


def _answered(rows: Sequence[SourceRow], n_groups: int) -> tuple[dict[int, SourceRow], list[Problem]]:
    """Group -> its prediction."""
    by_group: dict[int, SourceRow] = {}
    problems = []
    for row in rows:
        group = as_number(row.values.get("multichoice_id"))
        if group is None or not _texts(row):
            problems.append(Problem("bad_row", row.where))
        elif group not in range(n_groups):
            problems.append(Problem("unknown_group", row.where))
        elif int(group) in by_group:
            problems.append(Problem("duplicate_group", row.where))
        else:
            by_group[int(group)] = row
    return by_group, problems


def _texts(row: SourceRow, name: str = "gpt_output") -> tuple[str, ...]:
    written = row.values.get(name)
    return tuple(map(text, written)) if isinstance(written, list) else (text(written),) if written else ()


def _has_element_type(row: SourceRow) -> bool:
    return any("ELEMENT TYPE" in words.upper() for words in (*_texts(row), *_texts(row, "prompt")))


def _offered(query: Mapping[str, Any]) -> tuple[str, ...]:
    choices = query.get("choices")
    if not isinstance(choices, list):
        return ()
    return tuple(text(choice[0]) for choice in choices if isinstance(choice, list) and choice)


def _reply(group: _Group, strategy: str) -> Reply:
    """The element of attributes is not known before its page is searched."""
    offered, texts = () if strategy == "attributes" else group.offered, group.texts
    read = parse_grounding_reply(texts[-1], strategy, len(offered), labels=[letter(i) for i in range(len(offered))])
    element = None if read.choice is None else offered[read.choice]
    detail = f"the reply ends {texts[-1].strip()[-80:]!r}" if read.failure else ""
    return Reply(group.place, offered, texts, element, read.op, read.value, read.failure, detail)


def _ranked(queries: Sequence[SourceRow], offered: Sequence[str]) -> tuple[str, ...]:
    """Everything offered by the ranks that the queries give; empty where one has none."""
    ranks: dict[str, float] = {}
    for query in queries:
        for name in ("pos_candidates", "neg_candidates"):
            for entry in query.values.get(name) or ():
                candidate = _candidate(entry)
                rank = as_number(candidate.get("rank"))
                if rank is not None:
                    ranks[text(candidate.get("backend_node_id"))] = rank
    several = tuple(dict.fromkeys(offered))
    return tuple(sorted(several, key=ranks.__getitem__)) if all(node in ranks for node in several) else ()


def _candidate(value: object) -> Mapping[str, Any]:
    """A candidate, which in some files is a text of JSON."""
    candidate = json_or_none(value) if isinstance(value, str) else value
    return candidate if isinstance(candidate, dict) else {}


def _looks(first: Any) -> bool:
    if isinstance(first, frozenset):
        return any(name == QUERIES or name.startswith("prediction-") for name in first)
    return isinstance(first, dict) and ("multichoice_id" in first or "confirmed_task" in first)


IMPORTER = Importer(
    name="seeact",
    what="SeeAct's predictions with their queries",
    protocol="seeact",
    read=read,
    looks=_looks,
    options=("grounding",),
    notes=NOTES,
)
