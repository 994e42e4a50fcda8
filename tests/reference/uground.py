"""UGround's figures straight from its files, step by step as its evaluator goes: nothing shared with the importer or the rules."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

METRICS = ("element", "f1", "success")
Row = Mapping[str, Any]


def macro(
    samples: Sequence[Row], plans: Sequence[Row], answers: Sequence[Row], pad: bool = True
) -> dict[str, Fraction]:
    """The mean over tasks of each metric's mean; `pad`: a task counts 0 for each action that has no sample."""
    tasks = _tasks(samples, plans, answers, pad)
    means = [{m: sum(s[m] for s in steps) / Fraction(len(steps)) for m in METRICS} for steps in tasks.values()]
    return {m: sum((mean[m] for mean in means), Fraction(0)) / len(means) for m in METRICS}


def offline(samples: Sequence[Row], plans: Sequence[Row], answers: Sequence[Row], allowed: int) -> Fraction:
    """The share of tasks with at most this many errors, among which are the actions that have no sample."""
    errors = [sum(s["success"] == 0 for s in steps) for steps in _tasks(samples, plans, answers, pad=True).values()]
    return Fraction(sum(n <= allowed for n in errors), len(errors))


def _tasks(
    samples: Sequence[Row], plans: Sequence[Row], answers: Sequence[Row], pad: bool
) -> dict[str, list[dict[str, Fraction]]]:
    tasks: dict[str, list[dict[str, Fraction]]] = {}
    lengths: dict[str, int] = {}
    for sample in samples:
        tasks.setdefault(sample["annotation_id"], []).append(_step(sample, plans, answers))
        lengths[sample["annotation_id"]] = sample["total_steps"]
    for task, steps in tasks.items():
        while pad and len(steps) < lengths[task]:
            steps.append(dict.fromkeys(METRICS, Fraction(0)))
    return tasks


def _step(sample: Row, plans: Sequence[Row], answers: Sequence[Row]) -> dict[str, Fraction]:
    plan = next((p for p in plans if _key(p) == _key(sample)), None)
    if plan is None:
        return dict.fromkeys(METRICS, Fraction(0))
    said = plan["gpt_action"].lower()
    if plan["gpt_value"].lower() != "none":
        said += " " + plan["gpt_value"].lower()
    f1 = _f1(_words(said), _words(f"{sample['operation']} {sample['value']}".lower()))
    element = Fraction(_hits(sample, plan, answers))
    return {"element": element, "f1": f1, "success": Fraction(int(f1 == 1 and element == 1))}


def _hits(sample: Row, plan: Row, answers: Sequence[Row]) -> bool:
    if str(plan["ans_block"]) not in sample["target_blocks"] or plan["description"] in ("", "None"):
        return False
    answer = next((a for a in answers if a["id"] == "_".join(_key(sample))), None)
    if answer is None:
        return False
    x, y = (float(part) / answer["scale"] for part in answer["output"].strip("()[]").split(", "))
    return any(left <= x <= left + w and top <= y <= top + h for left, top, w, h in answer["bbox"])


def _key(row: Row) -> tuple[str, str]:
    return row["annotation_id"], row["action_uid"]


def _words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(text.split()) if word not in string.punctuation]


def _f1(said: list[str], wanted: list[str]) -> Fraction:
    if not said and not wanted:
        return Fraction(1)
    return Fraction(2 * sum(word in wanted for word in said), len(said) + len(wanted))
