"""What MiniWoB++ gives an agent that knows nothing: measured figures of two models without a network, a task each.

`miniwob_baselines.json` holds, for each model, the command that was run and, of each task, the shares of its five episodes with a raw
reward above 0 and of at least 1, from `by_website` and `raw_1_by_website` of that run's results.json.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

_FILE = Path(__file__).parent / "miniwob_baselines.json"


class BaselineFigure(msgspec.Struct, frozen=True):
    """Means over tasks."""

    success: float
    success_raw_1: float


class _Measured(msgspec.Struct, frozen=True):
    command: str
    tasks: Mapping[str, tuple[float, float]]


@cache
def _measured() -> Mapping[str, _Measured]:
    return msgspec.json.decode(_FILE.read_bytes(), type=dict[str, _Measured])


def baselines(tasks: Collection[str]) -> dict[str, BaselineFigure]:
    """Model -> its figures over these tasks. Raises KeyError for an unknown task.

    >>> baselines(["click-test"])["builtin/submit"].success
    0.0
    """
    found = {}
    for model, measured in _measured().items():
        success, full = np.mean([measured.tasks[name] for name in tasks], axis=0)
        found[model] = BaselineFigure(round(float(success), 9), round(float(full), 9))
    return found
