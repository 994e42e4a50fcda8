"""Work that the processes of one training share, where `torchrun` started several."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def n_processes() -> int:
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    return 1 if alone else int(_state().num_processes)


def share_out(work: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
    """What `work` makes of each item, in order. Each process does its share, and all get everything.

    Every process must come here, with equal items.
    """
    n = n_processes()
    if n == 1:
        return [work(item) for item in items]
    from accelerate.utils import gather_object

    shares = gather_object([[work(item) for item in items[_state().process_index :: n]]])
    return [shares[place % n][place // n] for place in range(len(items))]


def part() -> None:
    """For the end of a program: processes that end without a farewell are aborted now and then."""
    if n_processes() > 1:
        _state().destroy_process_group()


def _state() -> Any:
    """Of this process among the others; where they have not met yet, they do now."""
    import torch
    from accelerate import PartialState

    return PartialState(cpu=not torch.cuda.is_available())
