"""Slow, obvious scoring by each published evaluator: one long function a profile, nothing shared with the fast rules.

A step earns (element right, Operation F1, step right), or None where it is left out. Figures are fractions.
"""

from __future__ import annotations

import re
from ast import literal_eval
from fractions import Fraction
from random import Random
from warnings import catch_warnings, simplefilter

from msgspec.structs import replace

from seeact_offline.records import Prediction, Truth
from tests.reference.metrics import operation_f1

Earned = tuple[bool, Fraction, bool] | None
NOTHING = (False, Fraction(0), False)


def seeact(said: Prediction, right: Truth) -> Earned:
    if not said.ran:
        return NOTHING
    element = said.element_id in right.positives
    texts = []
    for one in (said.operation, right.operation):
        texts.append(one.op if one.op == "CLICK" else f"{one.op} {one.value}")
    f1 = operation_f1(*texts)
    return element, f1, element and f1 == 1


def mindact(said: Prediction, right: Truth) -> Earned:
    if not said.ran or said.element_id is None:
        return NOTHING
    right_ones = [n for n in right.positives if not said.ranked or n in said.ranked]
    if not right_ones:
        return NOTHING
    element = said.element_id in right_ones
    wanted = right.operation.op
    if wanted != "CLICK":
        wanted += " " + (right.operation.value.strip().split("\n") or [""])[0]
    f1 = operation_f1(f"{said.op} {said.value}", wanted)
    return element, f1, element and f1 == 1


def uground(said: Prediction, right: Truth) -> Earned:
    if not said.ran:
        return NOTHING
    if said.point is not None:
        x, y = said.point
        element = any(b.x <= x <= b.x + b.w and b.y <= y <= b.y + b.h for b in right.boxes)
    elif right.boxes:
        element = said.element_id in right.positives or said.element_id in right.kin.get("clicks_positive", ())
    else:
        element = False
    predicted = said.op.lower() if said.value.lower() == "none" else f"{said.op.lower()} {said.value.lower()}"
    wanted = f"{right.operation.op} {right.operation.value}".lower()
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    f1 = operation_f1(*(" ".join(word for word in text.split() if word not in marks) for text in (predicted, wanted)))
    return element, f1, element and f1 == 1


def seeclick(said: Prediction, right: Truth) -> Earned:
    kind = number(right, recorded=True)
    # the evaluator writes its reference between double quotes, reads it again, and skips the step where it cannot
    value = right.operation.value
    if kind != "4":
        try:
            with catch_warnings():
                simplefilter("ignore")
                value = literal_eval('{"x": "' + value + '"}')["x"]
        except (SyntaxError, ValueError):
            return None
    return pointing(said, right, kind, value)


def showui(said: Prediction, right: Truth) -> Earned:
    value: str | None = right.operation.value
    if right.operation.op == "SELECT" and right.action_text:
        value = name_of_element(right.action_text)
    # an action of another name is looked up in vain
    known = said if said.op in ("CLICK", "TYPE", "SELECT") else replace(said, op="")
    return pointing(known, right, number(right, recorded=False), value)


def uipro(said: Prediction, right: Truth) -> Earned:
    kind = {"4": "CLICK", "2": "SELECT", "3": "TYPE"}.get(number(right, recorded=True) or "", "")
    looked_at = replace(said, value="-") if said.op in ("TYPE", "SELECT") and not said.value else said
    judged = seeclick(looked_at, right)
    if judged is None or not said.ran:
        return judged
    value = right.operation.value
    if kind != "CLICK":
        value = literal_eval('{"x": "' + value + '"}')["x"]
    bags = []
    for op, words in ((said.op, said.value), (kind, value)):
        text = {"TYPE": "inputtext"}.get(op, op.lower()) + (" " + words.lower() if op in ("TYPE", "SELECT") else "")
        kept = "".join(one for one in text if one not in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
        bags.append([word for word in re.split(r"\b(?:a|an|the)\b|\s", kept) if word])
    left = list(bags[1])
    shared = [word for word in bags[0] if word in left and (left.remove(word) or True)]
    f1 = Fraction(2 * len(shared), len(bags[0]) + len(bags[1])) if shared else Fraction(0)
    return judged[0], f1, judged[0] and f1 == 1


def name_of_element(text: str) -> str | None:
    """Between the bracket that ends the element's kind and the arrow, without the white space around it."""
    for i, mark in enumerate(text):
        rest = text[i + 1 :]
        spaces = len(rest) - len(rest.lstrip()) if mark == "]" else 0
        for start in range(spaces, 0, -1):
            for end in range(start, len(rest)):
                if rest[end].isspace() and rest[end:].lstrip().startswith("->"):
                    return rest[start:end]
    return None


def pointing(said: Prediction, right: Truth, kind: str | None, value: str | None) -> Earned:
    if not right.positives or not right.boxes or right.picture_size is None:
        return None
    is_beyond = said.failure == "point_outside"
    if not said.ran or (said.element_id is None and said.point is None and not is_beyond):
        return NOTHING
    width, height = right.picture_size
    box = right.boxes[0]
    if said.point is not None:
        x, y = round(said.point[0] / width, 12), round(said.point[1] / height, 12)
        across = round(box.x / width, 3) <= x <= round((box.x + box.w) / width, 3)
        element = across and round(box.y / height, 3) <= y <= round((box.y + box.h) / height, 3)
    else:
        element = said.element_id == right.target or said.element_id in right.kin.get("clicks_target", ())
    if not said.op or (said.op in ("TYPE", "SELECT") and said.value == "") or value is None:
        # a reference without a name is looked at only where it is a SELECT
        return element, Fraction(0), False
    predicted = {"CLICK": "4", "SELECT": "2 ", "TYPE": "3 "}.get(said.op, said.op)
    if said.op in ("TYPE", "SELECT"):
        predicted += said.value.lower()
    wanted = "4" if kind == "4" else f"{kind} {value.lower()}"
    f1 = operation_f1(predicted, wanted)
    return element, f1, element and f1 == 1


def synapse(said: Prediction, right: Truth) -> Earned:
    if not said.ran or not right.positives:
        return NOTHING
    if said.ranked and not any(n in said.ranked for n in right.positives):
        return NOTHING
    element = said.element_id is not None and said.element_id == right.target
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    texts = []
    for one in (said.operation, right.operation):
        known = one.op if one.op in ("CLICK", "TYPE", "SELECT") else ""
        text = "CLICK" if one.op == "CLICK" else f"{known} {one.value}"
        texts.append(" ".join(word for word in text.split() if word not in marks))
    actions = []
    for one, target in ((said.operation, said.element_id), (right.operation, right.target)):
        actions.append(f"{one.op} [{target}]" + ("" if one.op == "CLICK" else f" [{one.value}]"))
    return element, operation_f1(*texts), right.target is not None and actions[0] == actions[1]


def inspect_evals(said: Prediction, right: Truth) -> Earned:
    # the letters: A for none, then the positives and the best negatives in an order that the step's name seeds
    if not right.positives:
        wanted = ["A"]
    elif len(right.positives) == 1 or not right.positives_in_order:
        wanted = list(right.positives)
    else:
        choices = list(right.positives_in_order)[:5]
        while len(choices) < min(5, right.n_candidates):
            choices.append("a negative")
        Random(f"{right.key.annotation_id}_{right.key.action_uid}").shuffle(choices)
        wanted = [choice for choice in choices if choice in right.positives][-1:]
    picked = said.element_id
    if picked is None and said.ran and said.failure is None and said.point is None:
        picked = "A"
    if not said.ran or picked is None:
        return NOTHING
    element = picked in wanted
    if picked == "A" or wanted == ["A"]:
        return element, Fraction(int(element)), element
    op, value = right.operation.op, right.operation.value
    if op == "CLICK":
        f1 = Fraction(int(said.op == "CLICK"))
    elif said.op not in ("TYPE", "SELECT") or not said.value.strip():
        f1 = Fraction(0)
    else:
        if value and not value.strip():
            value = "None"
        marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
        texts = [f"{said.op} {said.value}", f"{op} {value}"]
        f1 = operation_f1(*(" ".join(word for word in text.split() if word not in marks) for text in texts))
    return element, f1, element and f1 == 1


def screensuite(said: Prediction, right: Truth) -> Earned:
    if not right.positives or not right.boxes or right.picture_size is None:
        return None
    values = entries(said, right)
    click = values[0] == 1
    return click, sum(values, Fraction(0)) / len(values), all(value == 1 for value in values)


def entries(said: Prediction, right: Truth) -> list[Fraction]:
    """What a step adds to screensuite's average: its click, and for a TYPE the mean of click and text."""
    box = right.boxes[0]
    if not said.ran:
        click = 0
    elif said.point is not None:
        x, y = said.point
        click = int(box.x <= x <= box.x + box.w and box.y <= y <= box.y + box.h)
    else:
        named = said.element_id
        click = int(named is not None and (named == right.target or named in right.kin.get("clicks_target", ())))
    if right.operation.op != "TYPE":
        return [Fraction(click)]
    typed = int(said.ran and said.op == "TYPE" and said.operation.value.lower() == right.operation.value.lower())
    return [Fraction(click), Fraction(click + typed, 2)]


def readable(said: Prediction) -> Prediction:
    """A reply that could not be read names nothing."""
    return said if said.failure in (None, "point_outside") else replace(said, element_id=None, point=None)


def before_a_bad_page(said: list[Prediction], right: list[Truth]) -> tuple[list[Prediction], list[Truth]]:
    """The steps of each task up to the first whose picture is missing or whose box is not all on it."""
    bad = []
    for one in right:
        if one.picture_size is None:
            bad.append(one)
        elif one.boxes:
            box, (width, height) = one.boxes[0], one.picture_size
            if min(box.x, box.y) < 0 or box.x + box.w > width or box.y + box.h > height:
                bad.append(one)
    kept = []
    for p, one in zip(said, right, strict=True):
        task = [other.index for other in bad if other.key.annotation_id == one.key.annotation_id]
        if all(one.index < index for index in task):
            kept.append((p, one))
    return [p for p, _ in kept], [one for _, one in kept]


SCORES = {
    "seeact": seeact,
    "mindact": mindact,
    "uground": uground,
    "seeclick": seeclick,
    "showui": showui,
    "uipro": uipro,
    "synapse": synapse,
    "inspect-evals": inspect_evals,
    "screensuite": screensuite,
}


def number(right: Truth, recorded: bool) -> str | None:
    name = right.operation.original_op if recorded and right.operation.original_op else right.operation.op
    return {"CLICK": "4", "HOVER": "4", "ENTER": "4", "SELECT": "2", "TYPE": "3"}.get(name)


def headlines(name: str, said: list[Prediction], right: list[Truth]) -> tuple[Fraction, Fraction, Fraction]:
    """Element Accuracy, Operation F1 and Step SR as the evaluator quotes them; 0 over nothing."""
    kept = earnings(name, said, right)
    figures = []
    for column in range(3):
        tasks = by_task(name, kept, column)
        kinds: dict[str | None, list[Fraction]] = {}
        for one, scores in kept:
            kinds.setdefault(number(one, recorded=name in ("seeclick", "uipro")), []).append(Fraction(scores[column]))
        kinds.pop(None, None)
        if name in ("seeclick", "showui", "uipro") and column == 1:
            figures.append(mean([mean(values) for values in kinds.values()]))
        elif name == "screensuite" and column == 1:
            answers = {p.key: readable(p) for p in said}
            figures.append(mean([value for one, _ in kept for value in entries(answers[one.key], one)]))
        elif name in ("inspect-evals", "seeclick", "showui", "uipro", "screensuite"):
            # ShowUI's macro average is over episodes of one step
            figures.append(mean([value for values in tasks.values() for value in values]))
        else:
            figures.append(mean([mean(values) for values in tasks.values()]))
    return figures[0], figures[1], figures[2]


def offline(name: str, said: list[Prediction], right: list[Truth], allowed: int) -> Fraction:
    """Share of tasks with at most so many failing steps."""
    tasks = by_task(name, earnings(name, said, right), 2)
    return mean([Fraction(int(values.count(Fraction(0)) <= allowed)) for values in tasks.values()])


def earnings(name: str, said: list[Prediction], right: list[Truth]) -> list[tuple[Truth, tuple[bool, Fraction, bool]]]:
    """The steps that are not left out, with what each earns."""
    said = [readable(one) for one in said]
    if name == "screensuite":
        said, right = before_a_bad_page(said, right)
    earned = [(one, SCORES[name](p, one)) for p, one in zip(said, right, strict=True)]
    return [(one, scores) for one, scores in earned if scores is not None]


def by_task(name: str, kept: list[tuple[Truth, tuple[bool, Fraction, bool]]], column: int) -> dict[str, list[Fraction]]:
    """One metric's values; UGround's with a 0 for each action that has no row."""
    tasks: dict[str, list[Fraction]] = {}
    lengths: dict[str, int] = {}
    for one, scores in kept:
        tasks.setdefault(one.key.annotation_id, []).append(Fraction(scores[column]))
        lengths[one.key.annotation_id] = one.n_actions
    for task, values in tasks.items():
        while name == "uground" and len(values) < lengths[task]:
            values.append(Fraction(0))
    return tasks


def mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values) if values else Fraction(0)
