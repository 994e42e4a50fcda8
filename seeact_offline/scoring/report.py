"""Finished results as text for people. Computes nothing: every figure comes from `results.json` or `steps.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from seeact_offline.files.markdown import cell, one_line, percent
from seeact_offline.files.table import Table
from seeact_offline.records import Metric
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.protocols import PROTOCOLS
from seeact_offline.scoring.rules import sentence
from seeact_offline.scoring.waterfall import (
    ANNOTATION_ERRORS,
    BY_EYE,
    CAUSES,
    KINDS,
    LEFT_OUT,
    SUCCESS,
    WHAT_IF,
    is_unreadable,
)

if TYPE_CHECKING:
    from seeact_offline.scoring.results import Results

SETTINGS = (
    "model", "ranker", "prompts", "merge", "top_k", "group_size",
    "turns", "no_image", "max_image_side", "batching", "marks", "mark_position", "mark_turn1", "fuzzy_threshold",
    "coordinates", "oracle_digest", "turn1_digest", "shuffled",
    "protocol", "seed", "dataset", "dataset_fingerprint",
)  # fmt: skip
"""Settings in the report's order; any others come after them. A setting that is None does not apply to the run."""
NOT_LISTED = frozenset({"split", "grounding", "limit", "choice_prompts_digest"})
"""Settings that the report does not list: two are its title, the numbers of tasks and steps say more than the limit,
and the last is a digest for the manifest."""
LONGEST = 80
"""Characters of a long value that are shown."""
SUCCEEDED = "right element, right operation"
SUCCEEDED_WITHOUT_ELEMENT = "right operation"
CAUSES_WITHOUT_ELEMENT = {
    **CAUSES,
    "wrong_op": "wrong operation",
    "missing_value": "right operation, no value where one is needed",
    "wrong_value": "right operation, wrong value",
}
"""Meanings of causes for a run that asks for no element."""
METHODS = {
    "korn-graubard": "Korn and Graubard's on the effective number of steps",
    "wilson": "Wilson's on the number of tasks",
}
"""Methods for intervals, in words."""
AVERAGES = {"macro": "mean over tasks of the task's mean", "micro": "mean over steps"}
AVERAGED = {
    "episode": "Tasks",
    "entries_of_f1": "Operation F1",
    "length": "Tasks",
    "groups": "Element Accuracy and Step SR",
    "groups_of_f1": "Operation F1",
    "headline": "Element Accuracy and Step SR",
    "headline_of_f1": "Operation F1",
}
"""Rules of averaging, by the field of a protocol, with the figures that each concerns."""
FAULTS = {
    "no_screenshot": "without a screenshot",
    "bad_screenshot": "with a screenshot that cannot be read",
    "bad_html": "with HTML that cannot be read",
    "page_too_large": "with too large a page",
    "no_candidates": "without candidates",
    "bad_candidates": "with candidates that cannot be read",
    "bad_operation": "with an operation that cannot be read",
    "duplicate_id": "with an id of two elements",
    "duplicate_step": "with the ids of another row",
    "no_scores": "without scores",
    "no_answer": "without an answer",
}
"""Common faults of rows, in words."""
POPULATIONS = {
    "oracle_right": "steps that the oracle grounding gets right and this run wrong",
    "wrong": (
        "all wrong steps whose page has a right element; with a run of the oracle beside it, only those that it gets"
        " right would count"
    ),
}
"""The populations of `annotation_errors`."""
UNKNOWN: Mapping[str, str] = {}
"""No meanings: each note is printed by its name alone."""
LISTED = 50
"""Failed steps that the report lists."""
VERY_FEW_TASKS = 10
NOT_THE_PAPERS = (
    "These figures are of the bundled sample, fictional websites made to try the program; they are not the paper's."
)
NO_PREDICTION = "no_prediction"
"""The failure of a step that the run has no line of."""
NOT_REPORTED = "not reported"
TOKENS = ("prompt", "completion", "image")


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 step`, `1,234 steps`. `plural`: where it is not `noun` with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def size_in_words(n_steps: int, n_tasks: int | None) -> str:
    """`209 steps of 32 tasks`. `n_tasks`: None: not counted."""
    return counted(n_steps, "step") + ("" if n_tasks is None else f" of {counted(n_tasks, 'task')}")


class Extent(NamedTuple):
    """The part of a data set that a figure is of."""

    dataset: object
    split: str
    n_steps: int
    n_tasks: int | None
    """None: not counted."""


def data_in_words(extents: Sequence[Extent]) -> str:
    """`bundled sample (fictional websites), cross_task: 209 steps of 32 tasks`. A data set's path is named by its last
    part."""
    by_dataset: dict[str, dict[str, None]] = {}
    for extent in extents:
        name = "bundled sample (fictional websites)" if extent.dataset == "sample" else str(extent.dataset)
        name = Path(name).name if Path(name).is_absolute() else name
        by_dataset.setdefault(name, {})[f"{extent.split}: {size_in_words(extent.n_steps, extent.n_tasks)}"] = None
    return "; ".join(f"{name}, {'; '.join(sizes)}" for name, sizes in by_dataset.items())


def first_tasks(limit: int) -> str:
    """The tasks that a limit leaves."""
    return "the first task" if limit == 1 else f"the first {limit:,} tasks"


def none_answered(lost: Mapping[str, Any], n_steps: int) -> str:
    """`lost`: as `results.unanswered` gives it."""
    end = f"{lost['failure']} at {lost['steps']:,} of {counted(n_steps, 'step')}"
    return f"no step was answered: {end}, first: {one_line(lost['detail'])}"


def incomplete_in_words(results: Results) -> list[str]:
    """A sentence on what is missing of a run that was asked here; none for a complete one."""
    n_steps = counted(results.n_steps + results.left_out, "step")
    if n := results.failures.get(NO_PREDICTION):
        return [f"Not complete: {n:,} of {n_steps} have no prediction and count as wrong."]
    if results.complete or results.unanswered or results.format:
        return []
    return [f"Not complete: the run has other steps or repeats, which are not among these {n_steps}."]


def faults_in_words(faults: Mapping[str, int], left_out: int = 0) -> list[str]:
    """`1 row without a screenshot counts as wrong.`, a sentence for each kind of fault that kept rows from being asked.
    `left_out`: steps that the protocol leaves out."""
    end = "as wrong, unless the protocol leaves it out." if left_out else "as wrong."
    return [
        f"{counted(n, 'row')} {FAULTS.get(name, f'at fault ({name})')} {'counts' if n == 1 else 'count'} {end}"
        for name, n in faults.items()
    ]


@dataclass(frozen=True, slots=True)
class ReportInput:
    """The finished run that a report is about."""

    results: Results
    steps: Sequence[Mapping[str, Any]] = ()
    """The lines of `steps.jsonl`."""
    notes: Mapping[str, str] = field(default_factory=lambda: UNKNOWN)
    """The meaning of each note."""
    hints: Sequence[str] = ()
    """Sentences, plain text."""

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """The steps that count and did not succeed."""
        return [step for step in self.steps if step["outcome"] not in (SUCCESS, LEFT_OUT)]


Section: TypeAlias = Callable[[ReportInput], "Table | str | None"]
"""A part of a report: a table, text that is Markdown already, or nothing."""


def report(
    results: Results, steps: Sequence[Mapping[str, Any]], notes: Mapping[str, str] = UNKNOWN, hints: Sequence[str] = ()
) -> str:
    """`report.md` from `results.json` and the lines of `steps.jsonl`. `notes`: the meaning of each note. `hints`:
    sentences, plain text."""
    return _joined(REPORT, ReportInput(results, steps, notes, hints)) + "\n"


def short(results: Results, notes: Mapping[str, str] = UNKNOWN) -> str:
    """The output of `eval --verbose` and `score`: the figures, the causes of loss, and failures. `notes`: the meaning
    of each note."""
    return _joined(SHORT, ReportInput(results, notes=notes), titles=False)


def _joined(sections: Sequence[Section], run: ReportInput, titles: bool = True) -> str:
    parts = [part for section in sections if (part := section(run))]
    tables = (part if titles or isinstance(part, str) else replace(part, title="") for part in parts)
    return "\n\n".join(part if isinstance(part, str) else part.markdown() for part in tables)


def replies_in_words(replies: Mapping[str, Any]) -> str:
    """`608 of 608 replies from the store, oldest 2026-11-16; 0 sent, 0 USD spent`."""
    oldest = f", oldest {replies['oldest']}" if replies["oldest"] else ""
    spent = replies["spent_usd"]
    cost = "cost not known" if spent is None else f"{f'{spent:.4f}' if spent else 0} USD spent"
    return f"{replies['from_store']} of {replies['replies']} replies from the store{oldest}; {replies['sent']} sent, {cost}"


def how_it_was_run(manifest: Mapping[str, Any]) -> str:
    """The end of `report.md`, from `manifest.json`. An imported run asked no model of ours."""
    made = manifest.get("made")
    if not made:
        return ""
    settings = manifest.get("settings") or {}
    limit, sample = settings.get("limit"), settings.get("sample")
    drawn = f"{counted(sample or 0, 'task')} drawn at random in equal shares by website, seed {settings.get('seed')}"
    rows = [
        ("date", made["date"]),
        ("command", made["command"] or "none: asked for in Python"),
        *(_how_it_asked(made) if made["run"] else ()),
        *([("replies", replies_in_words(replies))] if (replies := manifest.get("replies")) else []),
        ("limit", "none" if limit is None else first_tasks(limit)),
        *([("sample", drawn)] if sample is not None else []),
        ("Python", manifest.get("python", "not known")),
        ("seeact-offline", (manifest.get("packages") or {}).get("seeact-offline", "not known")),
        ("git commit", manifest.get("git_commit") or "not known"),
    ]
    return "\n" + Table(title="How it was run", header=("what", "value"), rows=rows).markdown() + "\n"


def _how_it_asked(made: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("temperature", made["temperature"]),
        ("max tokens of a reply", made["max_tokens"]),
        ("base URL", made["base_url"] or "the provider's own"),
        ("equal requests", "each asked" if made.get("ask_equal", True) else "asked once"),
    ]


def headline_text(results: Results) -> str:
    """The end of `eval`: the quoted figures with their intervals, the failures, and the cost."""
    lines = [f"{_head(ReportInput(results))}, {results.model}"]
    quoted = [(METRICS[name], quote) for name, quote in results.headlines.items()]
    rows = [(title, percent(quote["value"]), _interval(quote["ci95"]), quote["average"]) for title, quote in quoted]
    lines += ["", Table(header=("metric", "%", "95 % interval", "average"), rows=rows).markdown(), ""]
    if parts := _by_split(ReportInput(results)):
        lines += [replace(parts, title="", notes=[]).markdown(), ""]
    lines += incomplete_in_words(results)
    if lost := results.unanswered:
        lines.append(f"Caution: {none_answered(lost, results.n_steps)}")
    if results.n_tasks < VERY_FEW_TASKS:
        lines.append(f"Caution: {counted(results.n_tasks, 'task')} only, too few to tell methods apart.")
    faults = results.data_faults
    lines += faults_in_words(faults, results.left_out)
    if failures := {name: n for name, n in results.failures.items() if name not in faults}:
        lines.append(f"Failures: {', '.join(f'{name} {n:,}' for name, n in failures.items())}")
    usage = results.usage
    tokens = [f"{usage[f'{kind}_tokens']:,} {kind} tokens" for kind in TOKENS if usage[f"{kind}_tokens"]]
    return "\n".join(
        [*lines, f"{', '.join([counted(usage['calls'], 'call'), *tokens])}, {_usd(usage['cost_usd'])} USD"]
    )


# --- sections of text ---


def _remarks(run: ReportInput) -> str:
    remarks = [NOT_THE_PAPERS] if run.results.dataset == "sample" else []
    faults = faults_in_words(run.results.data_faults, run.results.left_out)
    return "\n\n".join([*remarks, *([" ".join(faults)] if faults else []), *map(cell, run.hints)])


def _head(run: ReportInput) -> str:
    results = run.results
    size = size_in_words(results.n_steps, results.n_tasks)
    return f"{results.grounding} on {results.split}: {size}, protocol {results.protocol}"


# --- sections of figures ---


def _settings(run: ReportInput) -> Table:
    results = run.results
    settings = results.settings
    rows = [(name, settings[name]) for name in SETTINGS if settings.get(name) is not None]
    for name, value in settings.items():
        if value is not None and name not in {*SETTINGS, *NOT_LISTED}:
            is_nested = isinstance(value, Mapping | list | tuple)
            text = json.dumps(value, ensure_ascii=False) if is_nested else str(value)
            rows.append((name, text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."))
    rows += [("tasks", results.n_tasks), ("steps", results.n_steps)]
    return Table(header=("setting", "value"), rows=rows)


def _figures(run: ReportInput) -> Table:
    results = run.results
    named = [*METRICS.items()]
    if results.point_accuracy is not None:
        named.append(("point_accuracy", "Point in box"))
    rows = [(title, *_cells(results.figure(name)), _average(results, name)) for name, title in named]
    for rule, figure in results.element_by_rule.items():
        quoted = results.quoted("element_accuracy", figure)["average"]
        rows.append((f"{METRICS['element_accuracy']}, {rule}", *_cells(figure), quoted))
    note = f"Percent. Macro: {AVERAGES['macro']}. Micro: {AVERAGES['micro']}."
    # one task says nothing of how tasks vary
    is_known = results.n_tasks > 1
    note += f"{averaging(results.protocol)} Intervals: {METHODS['korn-graubard'] if is_known else 'everything, for one task'}."
    if results.left_out:
        left_out = counted(results.left_out, "step: it is", "steps: they are")
        note += f" The protocol leaves out {left_out} in no figure."
    protocol = PROTOCOLS.get(results.protocol, PROTOCOLS["seeact"])
    for unknown in protocol.unknowns.values():
        if n := results.unknowns.get(unknown.__name__):
            about = sentence(unknown)
            note += f" {unknown.__name__}, {counted(n, 'step')}: {about[0].lower()}{about[1:]}."
    if results.element_by_rule:
        note += (
            " Strict: the element named, whatever lies at its place, is a positive. Lenient: it is right either way,"
            " or lies around or inside of a positive, or has its centre in the box of one."
        )
    if results.element_accuracy is None:
        note += " No element was asked for, so that only the operation is scored."
    notes = []
    if lost := results.unanswered:
        notes.append(f"Caution: {none_answered(lost, results.n_steps)}")
    if results.n_tasks < VERY_FEW_TASKS:
        few = counted(results.n_tasks, "task")
        notes.append(f"Caution: {few} only. Too few to tell methods apart: another draw may well give other figures.")
    header = ("metric", "macro", "95 % interval", "micro", "95 % interval", "quoted")
    return Table(header=header, rows=rows, notes=[*notes, note, *_ceiling(results)])


def _by_split(run: ReportInput) -> Table | None:
    """The averages that the protocol quotes of each split, of a run over several."""
    results, parts = run.results, run.results.by_split
    if not parts:
        return None
    named = [(name, title) for name, title in METRICS.items() if results.figure(name) is not None]
    rows = []
    for split, part in parts.items():
        figures = [(name, part.figure(name)) for name, _ in named]
        quoted = [results.quoted(name, figure) for name, figure in figures if figure is not None]
        cells = [f"{percent(quote['value'])} {quote['average']} ({_interval(quote['ci95'])})" for quote in quoted]
        rows.append((split, part.n_tasks, part.n_steps, *cells))
    header = ("split", "tasks", "steps", *(title for _, title in named))
    note = "Percent. The averages that the protocol quotes, with their 95 % intervals."
    return Table(title="Each split", header=header, rows=rows, notes=[note])


def _average(results: Results, name: str) -> str:
    """The name of the average that the protocol quotes."""
    figure = results.figure(name)
    return "-" if figure is None else str(results.quoted(name, figure)["average"])


def averaging(name: str) -> str:
    """The averages that the protocol takes in another way than the default one, in its rules' words."""
    default, protocol = PROTOCOLS["seeact"], PROTOCOLS.get(name, PROTOCOLS["seeact"])
    rules = [(title, getattr(protocol, field), getattr(default, field)) for field, title in AVERAGED.items()]
    texts = [(title, sentence(rule)) for title, rule, other in rules if rule is not other]
    return "".join(f" {title}: {words[:1].lower()}{words[1:]}." for title, words in texts)


def _cells(value: Metric | None) -> tuple[str, str, str, str]:
    """A figure's macro and micro average, each with its interval."""
    if value is None:
        return "-", "-", "-", "-"
    return percent(value.macro), _interval(value.ci95), percent(value.micro), _interval(value.micro_ci95)


def _interval(bounds: Sequence[float] | None) -> str:
    return "-" if bounds is None else f"{percent(bounds[0])} to {percent(bounds[1])}"


def _ceiling(results: Results) -> list[str]:
    """The part of the gap to a perfect score that is due to the grounding itself, if that is known."""
    ceiling = results.ceiling
    if ceiling is None or results.element_accuracy is None:
        return []
    lost_by = "the grounding itself loses" if results.ranker is None else "ranker and grounding lose"
    shares = {"macro": ceiling.macro, "micro": ceiling.micro}
    quoted = shares.pop(results.quoted("ceiling", ceiling)["average"])
    ((other, rest),) = shares.items()
    return [
        f"A perfect model would reach {percent(quoted)} % Element Accuracy ({other} {percent(rest)} %):"
        f" {lost_by} the other {percent(1 - quoted)} points. Rows at fault count among these."
    ]


def _without_flagged(run: ReportInput) -> Table | None:
    rest = run.results.without_flagged
    if rest is None:
        return None
    rows = [(title, cells[0], cells[2]) for name, title in METRICS.items() for cells in [_cells(rest.figure(name))]]
    note = f"Without the {counted(rest.n_flagged or 0, 'flagged step')}: {size_in_words(rest.n_steps, rest.n_tasks)}."
    return Table(header=("metric", "macro", "micro"), rows=rows, notes=[note])


def _whole_tasks(run: ReportInput) -> Table:
    done, bounds = run.results.task_success_rate, run.results.task_success_ci95
    named = {"offline0": "no failing step (Offline 0)", "offline1": "at most one (Offline 1)"}
    rows = [(title, percent(done[name]), _interval(bounds[name])) for name, title in named.items()]
    title = "Whole tasks" if _recall(run) is None else "Whole tasks and ranker"
    return Table(title=title, header=("whole task", "%", "95 % interval (Wilson)"), rows=rows)


def _recall(run: ReportInput) -> Table | None:
    """None if nothing was ranked."""
    recall = run.results.recall_at_k
    if all(value is None for value in recall.values()):
        return None
    note = f"Recall over all {counted(run.results.n_steps, 'step')}; steps without a right candidate count as misses."
    return Table(
        header=[f"recall@{k}" for k in recall], rows=[[percent(value) for value in recall.values()]], notes=[note]
    )


def _waterfall(run: ReportInput) -> Table | None:
    """The losses from all steps to those that succeed. None for a run without steps."""
    results = run.results
    lost, done = results.waterfall, results.step_success_rate
    n_lost = sum(loss["steps"] for loss in lost.values())
    if not n_lost + results.n_succeeded:
        return None
    meanings = {**(CAUSES if done else CAUSES_WITHOUT_ELEMENT), **BY_EYE}
    causes = [*(cause for cause in meanings if cause in lost), *sorted(lost.keys() - meanings.keys())]
    columns = []
    for kind in ("macro", "micro"):
        shares = [lost[cause][kind] for cause in causes]
        end = (done.macro if kind == "macro" else done.micro) if done else 1.0 - sum(shares)
        columns.append([percent(1.0), *(f"-{percent(share)}" for share in shares), percent(end)])
    n_steps = [n_lost + results.n_succeeded, *(lost[cause]["steps"] for cause in causes), results.n_succeeded]
    names = ["all steps", *causes, SUCCESS if done else "right operation"]
    words = ["", *(meanings.get(cause, "") for cause in causes), SUCCEEDED if done else SUCCEEDED_WITHOUT_ELEMENT]
    rows = list(zip(names, n_steps, *columns, words, strict=True))
    note = "Points of Step SR" if done else "Points of the share of steps with the right operation"
    note += " that each cause costs, the first in this order that a failing step has."
    note += " Macro and micro as above, each rounded by itself."
    header = ("cause", "steps", "macro", "micro", "meaning")
    return Table(title="Where steps are lost", header=header, rows=rows, notes=[note, *_by_person(results)])


def _also_right(run: ReportInput) -> Table | None:
    second = run.results.also_right
    if second is None:
        return None
    rows = []
    for metric, title in METRICS.items():
        first, figure = run.results.figure(metric), getattr(second, metric)
        if first is not None and figure is not None:
            macro = percent(first.macro), percent(figure.macro), _interval(figure.ci95)
            rows.append((title, *macro, percent(first.micro), percent(figure.micro)))
    note = (
        f"{counted(second.n_steps, 'step has', 'steps have')} other right answers, by which {second.n_gained} more"
        " succeed. They count here alone: all other figures are of the annotated answers."
    )
    header = (
        "metric",
        "macro, annotated",
        "macro, others too",
        "95 % interval",
        "micro, annotated",
        "micro, others too",
    )
    return Table(title="With other right answers", header=header, rows=rows, notes=[note])


def _by_person(results: Results) -> list[str]:
    """The numbers of causes that a person gave."""
    counts = results.causes_by_person
    if counts is None:
        return []
    note = f"{counted(counts['used'], 'cause is', 'causes are')} a person's, {counts['changed']} of them other than computed."
    unused = {"not_lost": "of steps that were not lost", "of_other_answers": "about other answers than this run's"}
    left = [f"{counts[name]} {words}" for name, words in unused.items() if counts[name]]
    return [note + (f" Of the file not used: {', '.join(left)}." if left else "")]


def _what_if(run: ReportInput) -> Table | None:
    supposed = run.results.what_if
    if not supposed:
        return None
    rows = [
        (meaning, supposed[name]["steps"], percent(supposed[name]["macro"]), percent(supposed[name]["micro"]), name)
        for name, meaning in WHAT_IF.items()
        if name in supposed
    ]
    note = "Step SR, all else as it was; steps: those that the supposition concerns."
    if run.results.step_success_rate is None:
        note = note.replace("Step SR", "Share of steps with the right operation")
    header = ("what if", "steps", "macro", "micro", "name")
    return Table(title="What if", header=header, rows=rows, notes=[note])


def _annotation_errors(run: ReportInput) -> Table | None:
    errors = run.results.annotation_errors
    if errors is None or not errors["n_groups"]:
        return None
    rows = [(name, errors[name], meaning) for name, meaning in ANNOTATION_ERRORS.items()]
    note = f"Pictures of {counted(errors['n_steps'], 'step')} ({POPULATIONS[errors['population']]}), each by itself,"
    note += " before any merging."
    return Table(title="Errors of annotation", header=("error", "pictures", "meaning"), rows=rows, notes=[note])


def _budget(run: ReportInput) -> Table | None:
    budget = run.results.ranker_budget
    if budget is None:
        return None
    rows = [
        (
            estimate["k"],
            percent(estimate["bound"]["macro"]),
            percent(estimate["bound"]["micro"]),
            estimate["groups"],
            f"{estimate['calls']:,.0f}",
            f"{estimate['prompt_tokens']:,.0f}" if estimate["prompt_tokens"] else NOT_REPORTED,
            _usd(estimate["cost_usd"]),
        )
        for estimate in budget
    ]
    note = (
        "Bound: the Step SR that no model can exceed with so few candidates. Calls, tokens and cost are estimates:"
        " each step's own, by the number of groups that so many candidates make. Which steps a model would then get"
        " right, this run cannot tell."
    )
    header = ("k", "bound, macro", "bound, micro", "groups", "calls, about", "prompt tokens, about", "cost, USD, about")
    return Table(title="Ranker budget", header=header, rows=rows, notes=[note])


def _usd(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:.4f}"


def _counts(
    title: str,
    header: str,
    counts_of: Callable[[Results], Mapping[str, int]],
    meanings_of: Callable[[ReportInput], Mapping[str, str]] = lambda run: UNKNOWN,
) -> Section:
    """A section of counts: those with a meaning in the order of the meanings, then the others by name."""

    def section(run: ReportInput) -> Table | None:
        counts, meanings = counts_of(run.results), meanings_of(run)
        if not counts:
            return None
        names = [*(name for name in meanings if name in counts), *sorted(counts.keys() - meanings.keys())]
        if not meanings:
            return Table(title=title, header=(header, "count"), rows=[(name, counts[name]) for name in names])
        rows = [(name, counts[name], meanings.get(name, "")) for name in names]
        return Table(title=title, header=(header, "count", "meaning"), rows=rows)

    return section


def _replies(results: Results, *, unreadable: bool) -> dict[str, int]:
    """Failures of replies that could not be read, or that were read to their end."""
    return {name: n for name, n in results.reply_failures.items() if is_unreadable(name) is unreadable}


def _spread(run: ReportInput) -> Table | None:
    spread = run.results.merge_spread
    if len(spread) < 2:
        return None
    return Table(
        title="Merge rules on the same replies",
        header=("rule", *(f"{title}, {_average(run.results, name)}" for name, title in METRICS.items())),
        rows=[(rule, *(percent(values[name]) for name in METRICS)) for rule, values in spread.items()],
        notes=["No rule for merging the groups' answers was ever published; these rules read the same replies."],
    )


def _orders(run: ReportInput) -> Table | None:
    spread = run.results.shuffle_spread
    if spread is None:
        return None
    rows = [
        (METRICS[name], quoted["average"], *map(percent, (quoted["value"], value["min"], value["max"], value["sd"])))
        for name, quoted in run.results.headlines.items()
        if (value := spread.get(name))
    ]
    runs = counted(spread["n_orders"], "run")
    note = f"Lowest, highest and standard deviation are of {runs}, each with groups and choices in a random order of its own."
    header = ("metric", "average", "page order", "lowest", "highest", "sd")
    return Table(title="Order of groups and choices", header=header, rows=rows, notes=[note])


def _batching(run: ReportInput) -> Table | None:
    price = run.results.batching_price
    if price is None:
        return None
    rows = []
    for name, title in (("shared-turn1", "turn 1 once a step (this run)"), ("per-group", "turn 1 for every group")):
        tokens = price[name]["estimated_prompt_tokens"]
        amount = "not known" if tokens is None else f"{tokens:,.1f}"
        rows.append((title, f"{price[name]['calls']:,.1f}", amount))
    note = (
        f"Means over {counted(price['n_steps'], 'step')}. Prompt tokens are estimates by one rule for both (words of"
        " the text, OpenAI's tiles of the pictures), with the shared reply in the place of each group's own."
    )
    header = ("protocol", "calls a step", "prompt tokens a step, about")
    return Table(title="What a shared turn 1 saves", header=header, rows=rows, notes=[note])


def _usage(run: ReportInput) -> Table:
    usage = run.results.usage
    # no call is without tokens: a sum of 0 is one that no server reported
    tokens = {kind: usage[f"{kind}_tokens"] or (NOT_REPORTED if usage["calls"] else 0) for kind in TOKENS}
    rows = [("calls", usage["calls"]), *((f"{kind} tokens", amount) for kind, amount in tokens.items())]
    unreported = usage.get("unreported", 0)
    note = f"Of {counted(unreported, 'call')} the server did not say what was used."
    rows.append(("cost, USD", _usd(usage["cost_usd"])))
    return Table(title="Usage", header=("what", "amount"), rows=rows, notes=[note] if unreported else [])


def _failed_steps(run: ReportInput) -> Table | None:
    """The first LISTED of them."""
    rows = [
        (
            f"{step['annotation_id']}_{step['action_uid']}",
            f"{step['outcome']}; a person: {step['person_cause']}" if "person_cause" in step else step["outcome"],
            step["failure"] or "-",
            _element(step["predicted"], [step["predicted"]["element_id"] or "none"]),
            _element(step["target"], step["target"]["element_ids"][:3] or ["none"]),
        )
        for step in run.failed[:LISTED]
    ]
    header = ("step", "outcome", "failure", "predicted", "right")
    return Table(title="Steps that failed", header=header, rows=rows) if rows else None


def _element(answer: Mapping[str, Any], ids: Sequence[str]) -> str:
    """The operation, and the element in its own words where the run has kept them, else by its ids alone."""
    done = f"{answer['op']} {answer['value']}".strip()[:LONGEST]
    words = " ".join(answer.get("element_text", "").split())
    return f"{done}: {words[:LONGEST]} ({' or '.join(ids)})" if words else f"{' or '.join(ids)} {done}"


FIGURES: tuple[Section, ...] = (
    _figures,
    _by_split,
    _without_flagged,
    # the recall has no title of its own: that of the whole tasks names both
    _whole_tasks,
    _recall,
    _also_right,
    _waterfall,
)
_FAILURES = _counts("Steps with a failure", "failure", lambda results: results.failures)
REPORT: tuple[Section, ...] = (
    lambda run: "\n\n".join(f"**{text}**" for text in incomplete_in_words(run.results)),
    lambda run: f"# {cell(run.results.grounding)} on {cell(run.results.split)}",
    _remarks,
    _settings,
    *FIGURES,
    _counts("Wrong elements", "kind", lambda results: results.wrong_element, lambda run: KINDS),
    _annotation_errors,
    _what_if,
    _budget,
    _FAILURES,
    _counts("Replies that could not be read", "failure", partial(_replies, unreadable=True)),
    _counts(
        "Replies that were read and lack an act, a place on the picture or a value",
        "failure",
        partial(_replies, unreadable=False),
    ),
    _counts("Worth knowing", "what", lambda results: results.notes, lambda run: run.notes),
    _spread,
    _orders,
    _batching,
    _usage,
    _failed_steps,
    lambda run: f"{n_more} more in `steps.jsonl`." if (n_more := len(run.failed) - LISTED) > 0 else "",
)
"""The parts of `report.md`, from top to bottom."""
SHORT: tuple[Section, ...] = (
    _head,
    lambda run: "\n\n".join(
        [*incomplete_in_words(run.results), *faults_in_words(run.results.data_faults, run.results.left_out)]
    ),
    *FIGURES,
    _counts("", "wrong element", lambda results: results.wrong_element, lambda run: KINDS),
    _what_if,
    _FAILURES,
    _counts("", "worth knowing", lambda results: results.notes, lambda run: run.notes),
    _usage,
)
"""The parts of what the terminal shows."""
