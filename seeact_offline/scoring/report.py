"""Finished results as text for people. Computes nothing: every figure comes from `results.json` or `steps.jsonl`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from seeact_offline.files.markdown import cell, percent
from seeact_offline.files.table import Table
from seeact_offline.records import Summary

METRICS = (
    ("element_accuracy", "Element Accuracy"),
    ("operation_f1", "Operation F1"),
    ("step_success_rate", "Step SR"),
)
OUTCOMES = {
    "success": "right element, right operation",
    "not_run": "never answered: bad row, no scores, or no reply",
    "no_positive": "the page has no right element",
    "ranker_miss": "the right element was not among those offered",
    "out_of_reach": "the grounding leads even the right answer elsewhere",
    "unreadable_reply": "the answer could not be read",
    "no_element": "the model chose none of those offered",
    "wrong_element": "the model chose another element",
    "wrong_op": "right element, wrong operation",
    "wrong_value": "right element and operation, wrong value",
}
SETTINGS = (
    "model", "ranker", "prompts", "merge", "top_k", "group_size",
    "turns", "no_image", "max_image_side", "batching", "marks", "mark_position", "mark_turn1", "fuzzy_threshold",
    "coordinates", "oracle_digest", "turn1_digest", "shuffled",
    "protocol", "seed", "dataset", "dataset_fingerprint",
)  # fmt: skip
"""In the report's order; any others come after them. A setting that is None does not apply to the run."""
NOT_LISTED = frozenset({"split", "grounding", "limit", "choice_prompts_digest"})
"""Settings that the report does not list: two are its title, the numbers of tasks and steps say more than the limit, and
the last is a digest beside `prompts`, meant for the manifest."""
NO_SETTINGS = frozenset(field.name for field in fields(Summary)) | {
    "schema", "complete", "without_flagged", "shuffle_spread", "merge_spread", "batching_price",
}  # fmt: skip
"""The entries of `results.json` that are not settings."""
LONGEST = 80
"""Characters of a long value that are shown."""
OUTCOMES_WITHOUT_ELEMENT = OUTCOMES | {
    "success": "right operation",
    "wrong_op": "wrong operation",
    "wrong_value": "right operation, wrong value",
}
"""For a run that asks for no element."""
UNKNOWN: Mapping[str, str] = {}
"""No meanings: each note is printed by its name alone."""
LISTED = 50
"""Failed steps that the report lists."""


def report(results: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], notes: Mapping[str, str] = UNKNOWN) -> str:
    """`report.md` from `results.json` and the lines of `steps.jsonl`. `notes`: what each note means."""
    tables = [
        _settings(results),
        _figures(results),
        _without_flagged(results),
        _whole_tasks(results),
        _recall(results),
        _counts("Where steps are lost", "outcome", results["waterfall"], _meanings(results)),
        _counts("Steps with a failure", "failure", results["failures"], {}),
        _counts("Replies that could not be read", "failure", results["reply_failures"], {}),
        _counts("Worth knowing", "what", results.get("notes") or {}, notes),
        _spread(results),
        _orders(results),
        _batching(results),
        _usage(results["usage"]),
        _failed_steps(steps),
    ]
    title = f"# {cell(results['grounding'])} on {cell(results['split'])}"
    paragraphs = [title, *(one.markdown() for one in tables if one is not None), *_not_listed(steps)]
    return "\n\n".join(paragraphs) + "\n"


def short(results: Mapping[str, Any], notes: Mapping[str, str] = UNKNOWN) -> str:
    """What `eval` and `score` print: the figures, where steps are lost, and failures. `notes`: what each note means."""
    head = f"{results['grounding']} on {results['split']}: {results['n_steps']} steps of {results['n_tasks']} tasks, protocol {results['protocol']}"
    tables = [
        _figures(results),
        _without_flagged(results),
        _whole_tasks(results),
        _recall(results),
        _counts("", "outcome", results["waterfall"], _meanings(results)),
        _counts("", "failure", results["failures"], {}),
        _counts("", "worth knowing", results.get("notes") or {}, notes),
        _usage(results["usage"]),
    ]
    return "\n\n".join([head, *(replace(one, title="").markdown() for one in tables if one is not None)])


def _settings(results: Mapping[str, Any]) -> Table:
    others = [name for name in results if name not in {*SETTINGS, *NOT_LISTED, *NO_SETTINGS}]
    rows = [(name, results[name]) for name in SETTINGS if results.get(name) is not None]
    rows += [(name, _in_passing(results[name])) for name in others if results[name] is not None]
    rows += [("tasks", results["n_tasks"]), ("steps", results["n_steps"])]
    return Table(header=("setting", "value"), rows=rows)


def _in_passing(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list | tuple) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _figures(results: Mapping[str, Any]) -> Table:
    named = METRICS if results.get("point_accuracy") is None else (*METRICS, ("point_accuracy", "Point in box"))
    rows = [(title, *_cells(results[name])) for name, title in named]
    note = "Percent. Macro: mean over tasks of the task's mean, with its 95 % bootstrap interval over tasks. Micro: mean over steps."
    if results["n_tasks"] < 2:
        note += " One task says nothing of how tasks vary, so the interval is everything."
    if results["element_accuracy"] is None:
        note += " No element was asked for, so that only the operation is scored."
    return Table(header=("metric", "macro", "95 % interval", "micro"), rows=rows, notes=[note, *_ceiling(results)])


def _cells(value: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """A figure's macro average, interval and micro average."""
    if value is None:
        return "-", "-", "-"
    low, high = value["ci95"]
    return percent(value["macro"]), f"{percent(low)} to {percent(high)}", percent(value["micro"])


def _ceiling(results: Mapping[str, Any]) -> list[str]:
    """How much of the gap to a perfect score is due to the grounding itself, if that is known."""
    ceiling = results.get("ceiling")
    if ceiling is None or results["element_accuracy"] is None:
        return []
    return [
        f"Of 100 %, the grounding itself, with the ranker where it has one, allows answers that know the right element"
        f" {percent(ceiling['macro'])} % Element Accuracy (micro {percent(ceiling['micro'])} %): {percent(1 - ceiling['macro'])} points"
        " of the gap to a perfect score are its own, not the model's. Steps that were never answered count as its own."
    ]


def _without_flagged(results: Mapping[str, Any]) -> Table | None:
    rest = results.get("without_flagged")
    if rest is None:
        return None
    rows = [(title, cells[0], cells[2]) for name, title in METRICS for cells in [_cells(rest[name])]]
    note = f"Without the {rest['n_flagged']} flagged steps: {rest['n_steps']} steps of {rest['n_tasks']} tasks."
    return Table(header=("metric", "macro", "micro"), rows=rows, notes=[note])


def _whole_tasks(results: Mapping[str, Any]) -> Table:
    done = results["task_success_rate"]
    rows = [
        ("no failing step (Offline 0)", percent(done["offline0"])),
        ("at most one (Offline 1)", percent(done["offline1"])),
    ]
    title = "Whole tasks" if _recall(results) is None else "Whole tasks and ranker"
    return Table(title=title, header=("whole task", "%"), rows=rows)


def _recall(results: Mapping[str, Any]) -> Table | None:
    """None if nothing was ranked."""
    recall = results["recall_at_k"]
    if all(value is None for value in recall.values()):
        return None
    return Table(header=[f"recall@{k}" for k in recall], rows=[[percent(value) for value in recall.values()]])


def _meanings(results: Mapping[str, Any]) -> Mapping[str, str]:
    """Meanings of the outcomes, with fewer claims if no element was asked for."""
    return OUTCOMES_WITHOUT_ELEMENT if results["element_accuracy"] is None else OUTCOMES


def _counts(title: str, name: str, counts: Mapping[str, int], meanings: Mapping[str, str]) -> Table | None:
    """Counts with a meaning in the order of the meanings, then the others by name."""
    if not counts:
        return None
    names = [*(one for one in meanings if one in counts), *sorted(counts.keys() - meanings.keys())]
    if not meanings:
        return Table(title=title, header=(name, "count"), rows=[(one, counts[one]) for one in names])
    rows = [(one, counts[one], meanings.get(one, "")) for one in names]
    return Table(title=title, header=(name, "count", "meaning"), rows=rows)


def _spread(results: Mapping[str, Any]) -> Table | None:
    spread = results.get("merge_spread") or {}
    if len(spread) < 2:
        return None
    return Table(
        title="Merge rules on the same replies",
        header=("rule", *(title for _, title in METRICS)),
        rows=[(rule, *(percent(values[name]) for name, _ in METRICS)) for rule, values in spread.items()],
        notes=["No rule for merging the groups' answers was ever published; these rules read the same replies."],
    )


def _orders(results: Mapping[str, Any]) -> Table | None:
    spread = results.get("shuffle_spread")
    if spread is None:
        return None
    rows = [
        (title, *(percent(one) for one in (results[name]["macro"], value["min"], value["max"], value["sd"])))
        for name, title in METRICS
        if (value := spread.get(name)) and results[name]
    ]
    note = f"Macro averages. Lowest, highest and standard deviation are of {spread['n_orders']} runs, each with groups and choices in a random order of its own."
    header = ("metric", "page order", "lowest", "highest", "sd")
    return Table(title="Order of groups and choices", header=header, rows=rows, notes=[note])


def _batching(results: Mapping[str, Any]) -> Table | None:
    price = results.get("batching_price")
    if price is None:
        return None
    rows = [
        (title, _amount(price[name]["calls"]), _amount(price[name]["estimated_prompt_tokens"]))
        for name, title in (("shared-turn1", "turn 1 once a step (this run)"), ("per-group", "turn 1 for every group"))
    ]
    note = (
        f"Means over {price['n_steps']} steps. Prompt tokens are estimates by one rule for both (words of the text, OpenAI's tiles of"
        " the pictures), with the shared reply in the place of each group's own."
    )
    header = ("protocol", "calls a step", "prompt tokens a step, about")
    return Table(title="What a shared turn 1 saves", header=header, rows=rows, notes=[note])


def _amount(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.1f}"


def _usage(usage: Mapping[str, Any]) -> Table:
    cost = "not known" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f}"
    rows = [
        ("calls", usage["calls"]),
        ("prompt tokens", usage["prompt_tokens"]),
        ("completion tokens", usage["completion_tokens"]),
        ("image tokens", usage["image_tokens"]),
        ("cost, USD", cost),
    ]
    return Table(title="Usage", header=("what", "amount"), rows=rows)


def _failed_steps(steps: Sequence[Mapping[str, Any]]) -> Table | None:
    """The first LISTED of them."""
    rows = [
        (
            f"{s['annotation_id']}_{s['action_uid']}",
            s["outcome"],
            s["failure"] or "-",
            _said(s["predicted"]),
            _wanted(s["target"]),
        )
        for s in _failed(steps)[:LISTED]
    ]
    header = ("step", "outcome", "failure", "predicted", "right")
    return Table(title="Steps that failed", header=header, rows=rows) if rows else None


def _not_listed(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    left = len(_failed(steps)) - LISTED
    return [f"{left} more in `steps.jsonl`."] if left > 0 else []


def _failed(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [step for step in steps if step["outcome"] != "success"]


def _said(predicted: Mapping[str, Any]) -> str:
    return f"{predicted['element_id'] or 'none'} {predicted['op']} {predicted['value']}"[:LONGEST]


def _wanted(target: Mapping[str, Any]) -> str:
    return f"{' or '.join(target['element_ids'][:3]) or 'none'} {target['op']} {target['value']}"[:LONGEST]
