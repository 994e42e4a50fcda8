"""What a baseline declares of itself, and what it is asked for: one `Baseline` a module, listed in `finetune.baselines`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from seeact_offline.dataset import TEST_SPLITS, Split
from seeact_offline.finetune import BASELINES
from seeact_offline.finetune.recipe import SMALL, Recipe, Running
from seeact_offline.finetune.small_t5 import SmallT5
from seeact_offline.finetune.training_rows import QuestionMaker
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch


@dataclass(frozen=True, slots=True)
class FineTuning:
    """What is asked for. The defaults are the baseline's own, on the bundled sample."""

    out: Path
    baseline: str = "flan-t5"
    """One of `baselines.BASELINES`."""
    base: str | SmallT5 | None = None
    """A model's folder or hub id, or the shape of a T5 that begins with random weights; None: the baseline's. See `resolved_base`."""
    dataset: Any = "sample"
    split: str = "train"
    limit: int | None = None
    """Only the first so many tasks."""
    scores: Path | None = None
    """A score file of the train split: for `hard_negatives`, and for questions about whole groups of ranked candidates."""
    prompts: str = "seeact"
    recipe: Recipe | None = None
    """None: the baseline's. See `resolved_recipe`."""
    running: Running = field(default_factory=Running)
    own: Mapping[str, Any] = field(default_factory=dict)
    """Options that not every baseline has, by name."""
    resume: bool = False
    processes: int = 1
    """That prepare the data."""
    test_data: Any | None = None
    """Whose test splits no training step may be from, and on which the model is evaluated; None: `dataset`."""
    evaluate: tuple[str, ...] = TEST_SPLITS
    """Splits of the full evaluation at the end."""
    eval_ranker: str | None = None
    eval_scores: Path | None = None
    """What ranks their candidates."""
    eval_limit: int | None = None
    command: str = ""
    """For the card."""

    @property
    def resolved_base(self) -> str | SmallT5:
        """The base, or the baseline's own. Raises InputError where there is none."""
        found = find_baseline(self.baseline).base if self.base is None else self.base
        if found is None:
            raise InputError("base", f"a model's folder or hub id, as {self.baseline} has no usual one", "none")
        return found

    @property
    def resolved_recipe(self) -> Recipe:
        """The recipe, or the baseline's own."""
        if self.recipe is not None:
            return self.recipe
        return SMALL if isinstance(self.base, SmallT5) else find_baseline(self.baseline).recipe


class OpenBaseline(Protocol):
    """A baseline that was checked and is about to be trained. Nothing has been written for it yet."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What its weights depend on, beside recipe and data, as JSON can hold it."""

    @property
    def evaluation(self) -> Mapping[str, Any]:
        """Fields of `EvalConfig`: how the trained model is asked."""

    def maker(self, held_out: frozenset[str], watch: Watch) -> QuestionMaker:
        """What makes its questions; first makes, in the folder, what that needs. `held_out`: tasks not trained on."""

    def trainer(self, maker: Any, table: Any, tell: Callable[[str], None]) -> Any:
        """A Trainer of transformers, with the model. `maker`: its own. `table`: all rows that it made, as a `datasets.Dataset`.
        `tell` is called with a line a log."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """All that the rest of the program knows of one."""

    title: str
    """What its model cards call it."""
    base: str | None
    """A hub id: what training starts from unless it is named; None: it must be."""
    open: Callable[[FineTuning, Split], OpenBaseline]
    """Raises InputError for what cannot be used, before anything is written."""
    learns: str
    """For the card: what it was trained to do, behind `to`."""
    limits: str
    """For the card: what its questions leave out."""
    tag: str
    """Its task, as the hub calls it."""
    recipe: Recipe = field(default_factory=Recipe)
    """Unless others are given."""
    ignores: frozenset[str] = frozenset()
    """Fields of the recipe that it takes no notice of, and which may therefore not be given."""
    own: tuple[str, ...] = ()
    """Its own options."""
    starts_small: bool = False
    """Whether it can start from the shape of a small T5."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """That not all baselines need, each with the extra that installs it."""
    remarks: tuple[str, ...] = ()
    """For the card: what a reader of its figures must know."""


def find_baseline(name: str) -> Baseline:
    """Raises InputError."""
    if name not in BASELINES:
        raise InputError("baseline", f"one of {', '.join(BASELINES)}", name)
    found: Baseline = import_module(f"seeact_offline.finetune.{BASELINES[name]}").BASELINE
    return found
