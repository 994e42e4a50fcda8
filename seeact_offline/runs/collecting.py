"""Python's garbage collector, kept out of the way of work on very many objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OF_PAGES, OF_SCORES = 50_000, 1_000_000
"""Objects between two collections: some ten steps with their pages, or a large run's predictions."""


@contextmanager
def rare_collections(objects: int = OF_PAGES) -> Iterator[None]:
    """A step is thousands of objects without a cycle: by default Python would search all of memory every few steps.
    `objects`: between two collections."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(objects)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
