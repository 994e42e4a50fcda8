"""Differences between two states of a site, by looking every value up in both of them: nothing shared with the package."""

from __future__ import annotations

import json
from typing import Any

Path = tuple[str, ...]


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Every value with the names that lead to it; an element of a list leads to the value True, once for each time that it is there."""
    if isinstance(value, dict):
        return [leaf for name in value for leaf in leaves(value[name], (*path, name))]
    if isinstance(value, list):
        return [((*path, "in the list", json.dumps(element, sort_keys=True)), True) for element in value]
    return [(path, value)] if value not in (None, False, 0, "") else []


def differ(before: dict[str, Any], after: dict[str, Any]) -> set[Path]:
    """The names of all values that are not the same, or not as often, in both."""
    old, new = leaves(before), leaves(after)
    return {leaf[0] for leaf in old + new if old.count(leaf) != new.count(leaf)}
