"""`seeact_offline.evaluate` as people call it in a terminal or a notebook: with progress,
and a word on steps that failed."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from seeact_offline.cli.output import note
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.records import Prediction
from seeact_offline.runs.config import EvalConfig, options_in_words
from seeact_offline.runs.evaluate import evaluate as run_evaluation
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import NOT_THE_PAPERS, counted


class Shown(Enum):
    """The default of `watch`."""

    IF_SEEN = "progress in a terminal or a notebook"


def evaluate(config: EvalConfig | None = None, *, watch: Watch | Shown | None = Shown.IF_SEEN, **options: Any) -> Run:
    """Runs a model over the steps of a split and scores it, as the command `eval` does; the run is in its `out` folder.

    `options` are fields of `EvalConfig`, which win over `config`; `watch` hears of progress (default: it is shown in a
    terminal or a notebook), None is silence. A run that was stopped resumes from its folder and asks for nothing twice.
    Works inside a running event loop (Jupyter) too.

    Raises InputError for what cannot be used. A step that fails is a counted failure of
    the results, never an exception.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     run = evaluate(limit=1, grounding="pixel", model="builtin/oracle", out=folder, watch=None)
    ...     print(len(run.predictions()), f"{run.record.step_success_rate.macro:.3f}")
    7 0.857
    """
    is_default = isinstance(watch, Shown)
    heard = None if isinstance(watch, Shown) else watch
    # somebody looks on at a terminal, and in a notebook of IPython's
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if is_default and (sys.stderr.isatty() or shell is not None):
        heard = _NotebookWatch()
    run = run_evaluation(config, watch=heard, **options)
    if is_default and (remark := _failures(run.predictions())):
        note(remark)
    return run


# where people ask for help, each option stands with its meaning: as declared, so that the two cannot differ
evaluate.__doc__ = f"{evaluate.__doc__}\n{options_in_words()}"


class _NotebookWatch(TerminalWatch):
    """Prints to standard error alone: a notebook's standard output is its author's."""

    def begun(self, dataset: object) -> None:
        if dataset == "sample":
            note(NOT_THE_PAPERS)


def _failures(predictions: list[Prediction]) -> str:
    """`3 of 9 steps failed to run, first ID: api_error: ValueError: ... (3 times)`; empty for none."""
    failed = [prediction for prediction in predictions if prediction.has_failed]
    if not failed:
        return ""
    first = failed[0]
    alike = sum((prediction.failure, prediction.detail) == (first.failure, first.detail) for prediction in failed)
    return (
        f"{len(failed)} of {counted(len(predictions), 'step')} failed to run and count as wrong,"
        f" {alike} of them as the first, {first.key}: {first.failure}: {first.detail}"
    )
