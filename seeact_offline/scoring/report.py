"""Finished results as text for people. Computes nothing: every figure stands in `results.json` or `steps.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seeact_offline.files.markdown import cell, percent, table

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
HOW_ASKED = (
    "turns", "no_image", "max_image_side", "batching", "marks", "mark_position", "mark_turn1", "fuzzy_threshold",
    "coordinates", "oracle_digest", "shuffled",
)  # fmt: skip
"""Settings that only some runs have."""
OUTCOMES_WITHOUT_ELEMENT = OUTCOMES | {
    "success": "right operation",
    "wrong_op": "wrong operation",
    "wrong_value": "right operation, wrong value",
}
"""Of a run that asks for no element."""
NOTES = {
    "box_not_drawn": "a candidate's box has no area or lies outside of the page",
    "picture_resized": "a picture was made smaller to be sent; places on it are mapped back",
    "reply_reused": "a reply to the same question, paid for by another row of the table or by another group",
    "found_exact": "attributes: the text as written is on an element",
    "found_normalised": "attributes: but for case, signs and spaces the text is on an element",
    "found_contained": "attributes: the text is part of an element's",
    "found_fuzzy": "attributes: the text is like an element's",
    "several_matches": "attributes: more than one element fits, so that the model was asked to choose",
    "matches_left_out": "attributes: matches beyond those that were offered",
    "no_match": "attributes: no element fits",
    "target_without_text": "attributes: the right element has no text to find it by",
    "target_not_found": "attributes: its own type and text lead to another element",
    "point_off_elements": "the model pointed at a place where no candidate is",
    "target_finer_than_coordinates": "no whole number (or third decimal of a fraction) lies on the right element",
}
LISTED = 50
"""Failed steps that the report lists."""


def report(results: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> str:
    """`report.md` from `results.json` and the lines of `steps.jsonl`."""
    sections = [
        f"# {cell(results['grounding'])} on {cell(results['split'])}\n\n{_settings(results)}",
        _figures(results),
        _without_flagged(results),
        _tasks_and_recall(results),
        _counts("Where steps are lost", "outcome", results["waterfall"], _meanings(results)),
        _counts("Steps with a failure", "failure", results["failures"], {}),
        _counts("Replies that could not be read", "failure", results["reply_failures"], {}),
        _counts("Worth knowing", "what", results.get("notes") or {}, NOTES),
        _spread(results),
        _orders(results),
        _batching(results),
        _usage(results["usage"]),
        _failed_steps(steps),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def short(results: Mapping[str, Any]) -> str:
    """What `eval` and `score` print: the figures, where steps are lost, and failures."""
    head = f"{results['grounding']} on {results['split']}: {results['n_steps']} steps of {results['n_tasks']} tasks, protocol {results['protocol']}"
    sections = [
        head,
        _figures(results),
        _without_flagged(results),
        _tasks_and_recall(results).partition("\n\n")[2],
        _counts("", "outcome", results["waterfall"], _meanings(results)),
        _counts("", "failure", results["failures"], {}),
        _counts("", "worth knowing", results.get("notes") or {}, NOTES),
        _usage(results["usage"]).partition("\n\n")[2],
    ]
    return "\n\n".join(section for section in sections if section)


def _settings(results: Mapping[str, Any]) -> str:
    names = (
        "model",
        "ranker",
        "prompts",
        "merge",
        "top_k",
        "group_size",
        *HOW_ASKED,
        "protocol",
        "seed",
        "dataset",
        "dataset_fingerprint",
    )
    rows = [(name, cell(results[name])) for name in names if results.get(name) is not None]
    rows += [("tasks", str(results["n_tasks"])), ("steps", str(results["n_steps"]))]
    return table(("setting", "value"), rows)


def _figures(results: Mapping[str, Any]) -> str:
    named = METRICS if results.get("point_accuracy") is None else (*METRICS, ("point_accuracy", "Point in box"))
    rows = [(title, *_cells(results[name])) for name, title in named]
    note = "Percent. Macro: mean over tasks of the task's mean, with its 95 % bootstrap interval over tasks. Micro: mean over steps."
    if results["n_tasks"] < 2:
        note += " One task says nothing of how tasks vary, so the interval is everything."
    if results["element_accuracy"] is None:
        note += " No element was asked for, so that only the operation is scored."
    figures = table(("metric", "macro", "95 % interval", "micro"), rows) + "\n\n" + note
    return "\n\n".join(part for part in (figures, _ceiling(results)) if part)


def _cells(value: Mapping[str, Any] | None) -> tuple[str, str, str]:
    """A figure's macro average, interval and micro average."""
    if value is None:
        return "-", "-", "-"
    low, high = value["ci95"]
    return percent(value["macro"]), f"{percent(low)} to {percent(high)}", percent(value["micro"])


def _ceiling(results: Mapping[str, Any]) -> str:
    """How much of the gap to a perfect score is the grounding's own."""
    ceiling = results.get("ceiling")
    if ceiling is None or results["element_accuracy"] is None:
        return ""
    return (
        f"Of 100 %, the grounding itself, with the ranker where it has one, allows answers that know the right element"
        f" {percent(ceiling['macro'])} % Element Accuracy (micro {percent(ceiling['micro'])} %): {percent(1 - ceiling['macro'])} points"
        " of the gap to a perfect score are its own, not the model's. Steps that were never answered count as its own."
    )


def _without_flagged(results: Mapping[str, Any]) -> str:
    rest = results.get("without_flagged")
    if rest is None:
        return ""
    rows = [(title, cells[0], cells[2]) for name, title in METRICS for cells in [_cells(rest[name])]]
    note = f"Without the {rest['n_flagged']} flagged steps: {rest['n_steps']} steps of {rest['n_tasks']} tasks."
    return table(("metric", "macro", "micro"), rows) + "\n\n" + note


def _tasks_and_recall(results: Mapping[str, Any]) -> str:
    done = results["task_success_rate"]
    recall = results["recall_at_k"]
    whole = table(
        ("whole task", "%"),
        [
            ("no failing step (Offline 0)", percent(done["offline0"])),
            ("at most one (Offline 1)", percent(done["offline1"])),
        ],
    )
    if all(value is None for value in recall.values()):
        return f"## Whole tasks\n\n{whole}"
    ranker = table([f"recall@{k}" for k in recall], [[percent(value) for value in recall.values()]])
    return f"## Whole tasks and ranker\n\n{whole}\n\n{ranker}"


def _meanings(results: Mapping[str, Any]) -> Mapping[str, str]:
    """Of the outcomes: without an element to choose they say less."""
    return OUTCOMES_WITHOUT_ELEMENT if results["element_accuracy"] is None else OUTCOMES


def _counts(title: str, name: str, counts: Mapping[str, int], meanings: Mapping[str, str]) -> str:
    if not counts or (meanings and not counts.keys() & meanings.keys()):
        return ""
    if meanings:
        header: tuple[str, ...] = (name, "count", "meaning")
        rows: list[tuple[str, ...]] = [
            (cell(key), str(counts[key]), meaning) for key, meaning in meanings.items() if key in counts
        ]
    else:
        header = (name, "count")
        rows = [(cell(key), str(count)) for key, count in sorted(counts.items())]
    return (f"## {title}\n\n" if title else "") + table(header, rows)


def _spread(results: Mapping[str, Any]) -> str:
    spread = results.get("merge_spread") or {}
    if len(spread) < 2:
        return ""
    rows = [(rule, *(percent(values[name]) for name, _ in METRICS)) for rule, values in spread.items()]
    note = "No rule for merging the groups' answers was ever published; these rules read the same replies."
    return (
        "## Merge rules on the same replies\n\n"
        + table(("rule", *(title for _, title in METRICS)), rows)
        + "\n\n"
        + note
    )


def _orders(results: Mapping[str, Any]) -> str:
    spread = results.get("shuffle_spread")
    if spread is None:
        return ""
    rows = [
        (title, *(percent(one) for one in (results[name]["macro"], value["min"], value["max"], value["sd"])))
        for name, title in METRICS
        if (value := spread.get(name)) and results[name]
    ]
    note = f"Macro averages. Lowest, highest and standard deviation are of {spread['n_orders']} runs, each with groups and choices in a random order of its own."
    header = ("metric", "page order", "lowest", "highest", "sd")
    return "## Order of groups and choices\n\n" + table(header, rows) + "\n\n" + note


def _batching(results: Mapping[str, Any]) -> str:
    price = results.get("batching_price")
    if price is None:
        return ""
    rows = [
        (title, _amount(price[name]["calls"]), _amount(price[name]["estimated_prompt_tokens"]))
        for name, title in (("shared-turn1", "turn 1 once a step (this run)"), ("per-group", "turn 1 for every group"))
    ]
    note = (
        f"Means over {price['n_steps']} steps. Prompt tokens are estimates by one rule for both (words of the text, OpenAI's tiles of"
        " the pictures), with the shared reply in the place of each group's own."
    )
    header = ("protocol", "calls a step", "prompt tokens a step, about")
    return "## What a shared turn 1 saves\n\n" + table(header, rows) + "\n\n" + note


def _amount(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.1f}"


def _usage(usage: Mapping[str, Any]) -> str:
    cost = "not known" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f}"
    rows = [
        ("calls", str(usage["calls"])),
        ("prompt tokens", str(usage["prompt_tokens"])),
        ("completion tokens", str(usage["completion_tokens"])),
    ]
    rows += [("image tokens", str(usage["image_tokens"])), ("cost, USD", cost)]
    return "## Usage\n\n" + table(("what", "amount"), rows)


def _failed_steps(steps: Sequence[Mapping[str, Any]]) -> str:
    failed = [step for step in steps if step["outcome"] != "success"]
    if not failed:
        return ""
    rows = [
        (
            cell(f"{s['annotation_id']}_{s['action_uid']}"),
            s["outcome"],
            cell(s["failure"] or "-"),
            _said(s["predicted"]),
            _wanted(s["target"]),
        )
        for s in failed[:LISTED]
    ]
    more = f"\n\n{len(failed) - LISTED} more in `steps.jsonl`." if len(failed) > LISTED else ""
    return "## Steps that failed\n\n" + table(("step", "outcome", "failure", "predicted", "right"), rows) + more


def _said(predicted: Mapping[str, Any]) -> str:
    return cell(f"{predicted['element_id'] or 'none'} {predicted['op']} {predicted['value']}"[:80])


def _wanted(target: Mapping[str, Any]) -> str:
    return cell(f"{' or '.join(target['element_ids'][:3]) or 'none'} {target['op']} {target['value']}"[:80])
