"""What a run tells, on the terminal."""

from __future__ import annotations

from seeact_offline.cli.output import note, say
from seeact_offline.cli.progress import RunProgress, StepProgress
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import NOT_THE_PAPERS

__all__ = ["NOT_THE_PAPERS", "Told"]


class Told(Watch):
    """Says it all."""

    def begun(self, dataset: object) -> None:
        if dataset == "sample":
            say(NOT_THE_PAPERS)

    def note(self, text: str) -> None:
        note(text)

    def steps(self, total: int, label: str) -> RunProgress:
        return RunProgress(total, label)

    def ranking(self, total: int, label: str) -> StepProgress:
        return StepProgress(total, label)
