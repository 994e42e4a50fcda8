"""When an episode of each agent ends, besides its own words.

Sources: WebVoyager's and OpenWebVoyager's `max_iter` of their scripts, VisualWebArena's `early_stop` (run.py), SeeAct's `max_op` and
`max_continuous_no_op` (src/config/online_exp.toml), which is tested before an action is carried out. The limit of GUI models is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ANSWERED, STOPPED, OVER, LIMIT = "answered", "stopped", "over", "limit"
UNREADABLE, REPEATED, NO_OP, ERROR = "unreadable", "repeated", "no_op", "error"
ENDS = (ANSWERED, STOPPED, OVER, LIMIT, UNREADABLE, REPEATED, NO_OP, ERROR)
"""Names of ends. An error is the browser's or a server's, and no verdict."""
MEANINGS = {
    ANSWERED: "the agent gave a final answer",
    STOPPED: "the agent said that it was done; of the oracle without help also: its language has no words for the next act",
    OVER: "the page ended the task by itself, solved or failed",
    LIMIT: "the most steps of its rules",
    UNREADABLE: "three replies in a row without an action",
    REPEATED: "the same action several times in a row",
    NO_OP: "two steps in a row without an action that could be carried out",
    ERROR: "the browser or the model's server failed, after retries: no verdict",
}


@dataclass(frozen=True, slots=True)
class StopRules:
    """An agent's rules."""

    steps: int = 15
    """Questions about a new view, those whose reply could not be read among them."""
    unreadable: int | None = 3
    """Replies in a row that hold no action."""
    same: int | None = None
    """Equal actions in a row."""
    typed: int | None = None
    """Texts typed into one element."""
    no_op: int | None = None
    """Steps in a row without an action that could be carried out."""

    def end(self, said: Sequence[str | None], done: Sequence[bool]) -> str | None:
        """The end that the steps so far lead to; None for none. `said`: each step's action, None where there is none. `done`: whether it was
        carried out."""
        last = said[-1] if said else None
        if self.unreadable and len(said) >= self.unreadable and not any(said[-self.unreadable :]):
            return UNREADABLE
        if self.same and last and len(said) >= self.same and all(one == last for one in said[-self.same :]):
            return REPEATED
        if self.typed and last and last.startswith("type") and sum(one == last for one in said) >= self.typed:
            return REPEATED
        if self.no_op and len(done) >= self.no_op and not any(done[-self.no_op :]):
            return NO_OP
        return LIMIT if len(said) >= self.steps else None


SEEACT = StopRules(steps=29, unreadable=None, no_op=2)
RULES = {
    "webvoyager": StopRules(unreadable=None),
    "webvoyager-text": StopRules(unreadable=None),
    "openwebvoyager": StopRules(unreadable=None),
    "visualwebarena": StopRules(steps=30, same=5, typed=5),
}
"""Agent -> its rules; GUI models have the defaults, SeeAct's strategies `SEEACT`."""
