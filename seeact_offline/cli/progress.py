"""Progress of a run: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from seeact_offline.cli.output import LINE_EVERY_S, live_console, note, say
from seeact_offline.files.markdown import percent
from seeact_offline.records import Prediction, StepScore
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import NOT_THE_PAPERS
from seeact_offline.scoring.waterfall import is_unreadable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, TaskID

GAP = "  "
"""Stands between figures."""
BAR = 10, 40
"""Fewest and most characters of the bar."""


@dataclass
class Tally:
    """Running figures over the steps done so far (micro averages)."""

    n: int = 0
    elements: float = 0.0
    f1: float = 0.0
    successes: float = 0.0
    failed: int = 0
    unreadable: int = 0
    """Replies that could not be read, or were refused."""
    asks_elements: bool = True
    """False in runs that score only the operation."""
    spent_usd: float | None = None
    """USD that the run has spent so far; None where that is not known."""

    def add(self, prediction: Prediction, score: StepScore) -> None:
        self.n += 1
        self.asks_elements = score.element is not None
        self.elements += score.element or 0.0
        self.f1 += score.operation_f1 or 0.0
        self.successes += score.success or 0.0
        self.failed += prediction.has_failed
        self.unreadable += sum(is_unreadable(reply.failure) for reply in prediction.groups)

    @property
    def text(self) -> str:
        if not self.n:
            return ""
        element, f1, success = (percent(total / self.n) for total in (self.elements, self.f1, self.successes))
        # the first are kept longest on a narrow terminal
        parts = [
            f"failed {self.failed}" if self.failed else "",
            f"unreadable {self.unreadable}" if self.unreadable else "",
            *((f"micro step {success}", f"ele {element}", f"op {f1}") if self.asks_elements else (f"micro op {f1}",)),
            f"${self.spent_usd:.2f}" if self.spent_usd else "",
        ]
        return GAP.join(filter(None, parts))


class StepProgress:
    """Counts steps; a context manager. Resumed steps do not count towards the rate."""

    def __init__(self, total: int, label: str, unit: str = "steps") -> None:
        self._total = total
        self._label = label
        self._unit = unit
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began = self._last_line_s = time.monotonic()
        # steps done, those not resumed, and those done when the last line was written
        self._done = self._fresh = self._printed = 0
        self._figures = ""

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = fitting_bar()
            self._bar.start()
            self._task = self._bar.add_task(self._label, total=self._total, rate="", left="", figures="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._fresh and self._printed < self._done:
            self._line()

    def advance(self, figures: str, resumed: bool = False, n: int = 1) -> None:
        """Counts `n` more steps and shows the `figures` so far."""
        self._figures = figures
        self._done += n
        self._fresh += n * (not resumed)
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=n, rate=f"{self._rate():.1f}/s", left=self._left(), figures=figures)
        elif not resumed and time.monotonic() - self._last_line_s > LINE_EVERY_S:
            self._line()

    def _rate(self) -> float:
        return self._fresh / max(time.monotonic() - self._began, 1e-9)

    def _left(self) -> str:
        """Returns the time left at this rate; empty without a rate."""
        rate = self._rate()
        return f"{duration((self._total - self._done) / rate)} left" if rate else ""

    def _line(self) -> None:
        self._last_line_s, self._printed = time.monotonic(), self._done
        rate, left = f"{self._rate():.1f}/s", self._left() or "0 s left"
        note(f"{self._label}: {self._done}/{self._total} {self._unit}  {rate}  {left}  {self._figures}".rstrip())


class RunProgress(StepProgress):
    """Progress of a run over predictions."""

    def __init__(self, total: int, label: str) -> None:
        super().__init__(total, label)
        self.tally = Tally()

    def add(self, prediction: Prediction, score: StepScore, resumed: bool = False) -> None:
        self.tally.add(prediction, score)
        self.advance(self.tally.text, resumed)


class TerminalWatch(Watch):
    """Prints the progress and remarks of a run to the terminal."""

    def __init__(self) -> None:
        self._progress: RunProgress | None = None

    def begun(self, dataset: object) -> None:
        if dataset == "sample":
            say(NOT_THE_PAPERS)

    def note(self, text: str) -> None:
        note(text)

    def spent(self, usd: float | None) -> None:
        if self._progress is not None:
            self._progress.tally.spent_usd = usd

    def steps(self, total: int, label: str) -> RunProgress:
        self._progress = RunProgress(total, label)
        return self._progress

    def ranking(self, total: int, label: str) -> StepProgress:
        return StepProgress(total, label)

    def counting(self, total: int, label: str, unit: str) -> StepProgress:
        return StepProgress(total, label, unit)


def duration(seconds: float) -> str:
    """Formats a duration: `8 s`, `2 min 05 s`, `3 h 12 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def fitting_bar(console: Console | None = None) -> Progress:
    """Makes a live line that never wraps: a narrow terminal drops the bar, then the figures from the last on, then the
    label; count, rate and time left stay. `console`: default standard error."""
    from rich.progress import BarColumn, Progress, RenderableColumn, TextColumn
    from rich.text import Text

    def text(name: str) -> ProgressColumn:
        return TextColumn(f"{{task.fields[{name}]}}", markup=False)

    class Fitting(Progress):
        def make_tasks_table(self, tasks: Any) -> Any:
            task = next(iter(tasks), None)
            if task is not None:
                self.columns = chosen(task.description, f"{task.completed:.0f}/{task.total:.0f}", task.fields)
            return super().make_tasks_table(tasks)

    def chosen(label: str, count: str, texts: dict[str, str]) -> tuple[ProgressColumn, ...]:
        columns: dict[str, ProgressColumn] = {
            "label": TextColumn("{task.description}", markup=False),
            "bar": BarColumn(),
            "count": TextColumn("{task.completed:.0f}/{task.total:.0f}", markup=False),
            **{name: text(name) for name in ("rate", "left")},
            "figures": RenderableColumn(),
        }
        figures = texts["figures"].split(GAP)
        widths = {"label": len(label), "bar": BAR[0], "count": len(count), **{name: len(texts[name]) for name in texts}}
        kept = [name for name in columns if name == "bar" or widths[name]]
        for least in ("bar", "figures", "label"):
            # a space after each column: some terminals wrap in the last one
            while least in kept and sum(widths[name] + 1 for name in kept) > progress.console.width:
                if least == "figures" and len(figures) > 1:
                    widths[least] -= len(GAP + figures.pop())
                else:
                    kept.remove(least)
        columns["figures"] = RenderableColumn(Text(GAP.join(figures)))
        if "bar" in kept:
            spare = progress.console.width - sum(widths[name] + 1 for name in kept)
            columns["bar"] = BarColumn(min(BAR[1], BAR[0] + spare))
        return tuple(columns[name] for name in kept)

    progress = Fitting(console=console or live_console())
    return progress
