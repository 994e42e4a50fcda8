"""Slow, obvious making of MindAct's training questions: parse, prune and write the page anew for every single draw.

An independent statement of Mind2Web's released training code, commit 1b7c323: nothing is shared with the fast one but
the wording of the question, which is the prompt pack's, and the seed of a draw, which decides what `random` gives.
"""

from __future__ import annotations

import random

from tests.reference.dom import describe_group

LETTERS = "BCDEF"


def questions(step, turn1, seed, epochs, draws, none_share=0.2):
    """[(question, answer)] of one step, epoch after epoch. `turn1`: the template of the question."""
    right = [c.backend_node_id for c in step.candidates if c.is_positive]
    wrong = [c.backend_node_id for c in step.candidates if not c.is_positive]
    found = []
    for epoch in range(epochs):
        for number in range(draws):
            chance = random.Random(f"{seed}\n{step.annotation_id}_{step.action_uid}\n{epoch}\n{number}")
            if wrong and chance.random() < none_share:
                named, ids = None, chance.sample(wrong, min(5, len(wrong)))
            else:
                named = chance.choice(right)
                ids = [named, *chance.sample(wrong, min(4, len(wrong)))]
            found.append(one(step, turn1, ids, named))
    return found


def one(step, turn1, ids, named):
    """The question about these elements, and its answer."""
    html, choices = describe_group(step.cleaned_html, ids, "parentheses")
    options = "".join(f"{letter}. {text}\n" for letter, (_, text) in zip(LETTERS, choices, strict=False))
    history = "\n".join(step.history[-5:]) or "None"
    question = turn1
    for name, value in (
        ("{{choices}}", "\0choices\0"),
        ("{{task}}", "\0task\0"),
        ("{{history_lines|None}}", "\0history\0"),
        ("{{html}}", "\0html\0"),
    ):
        question = question.replace(name, value)
    for name, value in (("choices", options), ("task", step.task), ("history", history), ("html", html)):
        question = question.replace(f"\0{name}\0", value)
    if named is None:
        return question, "A."
    letter = LETTERS[[node for node, _ in choices].index(named)]
    value = "" if step.operation.op == "CLICK" else f"Value: {step.operation.value}"
    return question, f"{letter}.\nAction: {step.operation.op}\n{value}"


def tokens(tokenizer, question, html_length, max_context, max_question):
    """The page and the rest cut separately, as the tokenizer's own truncation does it."""
    page, rest = question[:html_length], question[html_length:]
    first = tokenizer(page, truncation=True, max_length=max_context, add_special_tokens=False)
    second = tokenizer(rest, truncation=True, max_length=max_question, add_special_tokens=True)
    return first["input_ids"] + second["input_ids"]
