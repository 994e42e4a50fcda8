"""Rank a page's elements, ask a multimodal model for the next action, ground its answer, score it.

    import seeact_offline as so
    run = so.evaluate(
        dataset="sample", split="cross_website", grounding="choice", model="builtin/lexical", out="runs/a"
    )
    run.to_pandas("steps").groupby("website").success.mean()

The names below are loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seeact_offline.cli.interactive import evaluate
    from seeact_offline.dataset import load_steps
    from seeact_offline.ranking.stage import rank
    from seeact_offline.results.comparing import compare
    from seeact_offline.runs.config import EvalConfig
    from seeact_offline.runs.run import Run, load_run
    from seeact_offline.runs.strategy_opening import questions

__all__ = [
    "EvalConfig",
    "Run",
    "__version__",
    "browse",
    "compare",
    "evaluate",
    "improve",
    "load_run",
    "load_steps",
    "questions",
    "rank",
]
__version__ = "0.1.0"

_MODULES = {
    "EvalConfig": "runs.config",
    "Run": "runs.run",
    "browse": "live.running",
    "compare": "results.comparing",
    "evaluate": "cli.interactive",
    "improve": "training.cycles",
    "load_run": "runs.run",
    "load_steps": "dataset",
    "questions": "runs.strategy_opening",
    "rank": "ranking.stage",
}


def __getattr__(name: str) -> Any:
    """Fetches a public name from its module. Raises AttributeError for any other."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
