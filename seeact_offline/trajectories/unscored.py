"""Reasons that keep a task from being scored: names that are counted, never a 0."""

from __future__ import annotations

from collections.abc import Mapping

from seeact_offline.records import SeeActError

REASONS: Mapping[str, str] = {
    "no_answer": "the answers have none for this task",
    "no_state": "the states have no address or page for this task",
    "bad_state": "the state of this task cannot be read",
    "missing_page": "the states lack a page that the task opens",
    "missing_picture": "the states lack a picture of the page or of the task",
    "unsupported_locator": "the element is found by code that needs a browser",
    "unsupported_address": "the address of the page is computed by code that needs a site",
    "unsupported_evaluator": "the rule set has no such evaluator",
    "no_model": "a model has to judge it, and none is given",
    "no_verdict": "the model's reply holds none of the words that are looked for",
    "call_failed": "the model gave no answer",
    "program_failed": "the task's program cannot be applied to this answer or page",
    "bad_task": "the task does not say what to look for",
}
"""Name -> meaning."""


class Unscored(SeeActError):
    """A part of a task cannot be scored. `name` is one of REASONS, `detail` one sentence about it."""

    def __init__(self, name: str, detail: str = "") -> None:
        super().__init__(f"{name}: {detail}" if detail else name)
        self.name, self.detail = name, detail
