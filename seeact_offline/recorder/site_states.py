"""The state of a bundled site, and the check of a task by it: what the recorded acts change, value by value.

A site's script keeps its state (`siteState` of each site); `state.js` adds the fields that were filled in. A check is made by playing the
recorded acts, and lies beside the tasks in `checks.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import json

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATE = (Path(__file__).parent / "state.js").read_text(encoding="utf-8")
"""A script that must run before the page's own."""
CHECKS = "checks.json"
"""File of a site's checks: task -> its changes."""
Value = str | int | float | bool
Changes = Mapping[str, Value | None]
"""Path -> the value after it; None where there is no value any more."""


def read_state(page: Page) -> dict[str, Value]:
    """The state of a page now, by path; empty for a page without `STATE`."""
    text = page.evaluate("() => window.__readState ? window.__readState() : '{}'")
    return flatten(json.decode(text))


def flatten(state: object) -> dict[str, Value]:
    """Path -> value. The order of a list does not count: its elements are paths, and their number the value. Values that are empty (false, 0, "", null) count as
    none, so that a switch that was put on and off again has not changed.

    >>> flatten({"cart": ["tea", "tea", {"id": 3}], "view": "home", "gift": False})
    {'cart["tea"]': 2, 'cart[{"id":3}]': 1, 'view': 'home'}
    """
    return dict(_leaves("", state))


def _leaves(path: str, value: object) -> Iterator[tuple[str, Value]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        elements = Counter(json.encode(element, order="sorted").decode() for element in value)
        for element, number in elements.items():
            yield f"{path}[{element}]", number
    elif value:
        assert isinstance(value, str | int | float)
        yield path, value


@dataclass(frozen=True, slots=True)
class Free:
    """Paths of a state whose value may vary, as patterns (`order.id`, `cart.*`)."""

    paths: tuple[str, ...] = ()
    """Do not count at all."""
    own_words: tuple[str, ...] = ()
    """Any text will do, but some."""


NOTHING_FREE = Free()


def changes(
    before: Mapping[str, Value], after: Mapping[str, Value], free: Free = NOTHING_FREE
) -> dict[str, Value | None]:
    """Differences between two states, sorted by path."""
    changed = {}
    for path in sorted(before.keys() | after.keys()):
        value = after.get(path)
        if value != before.get(path) and not any(fnmatchcase(path, pattern) for pattern in free.paths):
            changed[path] = True if value and any(fnmatchcase(path, pattern) for pattern in free.own_words) else value
    return changed


def load_checks(folder: Path) -> dict[str, dict[str, Value | None]]:
    """Task's id -> its changes, of the site in this folder."""
    path = folder / CHECKS
    checks: dict[str, dict[str, Any]] = json.decode(path.read_bytes())
    return checks
