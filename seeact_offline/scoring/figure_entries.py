"""The figures of `results.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from seeact_offline.records import Metric
from seeact_offline.scoring.rules import Protocol


@dataclass(frozen=True, slots=True)
class ResultsFigure(Metric):
    """A metric of `results.json`."""

    quoted: str | msgspec.UnsetType = msgspec.UNSET
    """The average that a protocol from outside the package quotes; not in the file for a protocol of this package."""

    @property
    def named(self) -> dict[str, Any]:
        """The entry of `results.json`."""
        return dict(msgspec.to_builtins(self))


class SecondFigure(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of a run where other right answers count too."""

    n_steps: int
    """Steps that count and have another right answer."""
    n_gained: int
    """Steps that succeed by another right answer and not by the annotated one; without elements, whose operation is
    right by one alone."""
    of_file: int = 0
    """Steps among them that a file names."""
    element_accuracy: ResultsFigure | None
    """None, as is `step_success_rate`, for a run that asks for no element."""
    operation_f1: ResultsFigure
    step_success_rate: ResultsFigure | None


def figure_entries(figures: Mapping[str, Metric | None], protocol: Protocol) -> dict[str, Any]:
    """Figures as `results.json` has them, by name."""
    return {
        name: figure
        and ResultsFigure(**asdict(figure), quoted=protocol.average_of(name) if protocol.code else msgspec.UNSET)
        for name, figure in figures.items()
    }
