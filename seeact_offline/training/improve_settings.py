"""The options of `improve`: one field each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from seeact_offline.dataset import TEST_SPLITS
from seeact_offline.models.bills import Price
from seeact_offline.models.prices import PriceTable
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.web_agent_tuning import ASKED, BASELINE

Train = Callable[[Any, Sequence[Path], Path], Any]
"""Trains a model on files of dialogues, into a folder, and returns the trained one. Called again with the same arguments where a killed
`improve` resumes."""
ORACLE = "builtin/oracle"
LEAST = {
    "cycles": 1,
    "attempts": 1,
    "max_turns": 1,
    "together": 1,
    "limit": 1,
    "eval_limit": 1,
    "temperature": 0,
    "max_cost": 0,
}
"""Fields that are numbers, and how small each may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImproveConfig:
    """Everything that decides the cycles. The defaults are OpenWebVoyager's, but for the trainer's, which are for one GPU."""

    model: Any = None
    """`hf/REPO_OR_DIR`, whose weights are trained; with `train`, anything that `eval` takes as a model."""
    out: Path | None = None
    """The folder of all cycles."""
    train: Train | None = None
    """Another way of training than `finetune --baseline web-agent`."""
    dataset: Any = "sample"
    limit: int | None = None
    """Number of train tasks, the first ones; None: all."""
    test_data: Any = None
    """Data whose test splits are asked after each cycle and never trained on; None: `dataset`."""

    imitate: Path | None = None
    """A run of the agent over the train split whose answered tasks are imitated, right or not; None: the recorded actions."""
    thoughts: Path | None = None
    """A run over the train split whose thoughts recorded actions are told with; None: a neutral line."""
    cycles: int = 3
    attempts: int = 5
    """Most attempts at a task in a cycle."""
    temperature: float = 1.2
    """Temperature of attempts; test splits are asked at 0."""
    max_turns: int = 5
    """Most questions a step."""
    guided: bool = False
    """True: as many attempts more for the tasks of hard websites."""
    judge: Any = None
    """The model that accepts attempts, as `judge --judge strict --k 3` asks it; None: the scorer does, where all steps are right."""
    judge_base_url: str | None = None
    price: Price | PriceTable | str | None = None
    """The judge's, as `EvalConfig.price`."""
    max_cost: float | None = None
    """USD that the judge's calls never exceed, those of all cycles together."""

    recipe: Recipe = BASELINE.recipe
    running: Running = field(default_factory=Running)
    together: int = 8
    """Questions asked at once."""
    processes: int = 1
    """Processes that prepare the training's data."""
    evaluate: tuple[str, ...] = TEST_SPLITS
    eval_limit: int | None = None
    """Number of tasks of each test split, the first ones; None: all."""
    command: str | None = None
    """The command line, for the manifest."""

    def __post_init__(self) -> None:
        """Raises InputError for a value that a field cannot have."""
        if self.model is None:
            raise InputError("model", sentence="name a `model`, hf/REPO_OR_DIR")
        if self.train is None and not (isinstance(self.model, str) and self.model.startswith("hf/")):
            raise InputError("model", "hf/REPO_OR_DIR, whose weights can be trained", str(self.model))
        if self.out is None:
            raise InputError("out", sentence="name a folder with `out`")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(name, f"a number of at least {least}", str(value))
        for name in ("price", "max_cost"):
            if getattr(self, name) is not None and self.judge is None:
                raise InputError(name, sentence=f"`{name}` needs `judge`, whose calls cost money")
        if unknown := [name for name in self.evaluate if name not in TEST_SPLITS]:
            raise InputError("evaluate", f"some of {', '.join(TEST_SPLITS)}", unknown[0])
        for name in ("out", "imitate", "thoughts"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))

    @classmethod
    def of(cls, config: ImproveConfig | None, options: dict[str, Any]) -> ImproveConfig:
        """`options` win over `config`. Raises InputError; TypeError for an unknown name."""
        known = [one.name for one in fields(cls)]
        if unknown := sorted(options.keys() - set(known)):
            near = get_close_matches(unknown[0], known, 1)
            raise TypeError(f"no option of improve is named {unknown[0]}{f': did you mean {near[0]}?' if near else ''}")
        return cls(**options) if config is None else replace(config, **options)

    def judging(self, out: Path, max_cost: float | None) -> EvalConfig:
        """The judge of attempts. Raises InputError for a price that is none."""
        return EvalConfig(model=self.judge, base_url=self.judge_base_url, price=self.price, max_cost=max_cost, out=out)

    def asking(self, model: Any, **more: Any) -> EvalConfig:
        """The agent with this model on the train split. `more`: other fields of `EvalConfig`."""
        usual: dict[str, Any] = {
            # the oracle's replies are not generated
            **(ASKED if model != ORACLE else {"agent": ASKED["agent"]}),
            "dataset": self.dataset,
            "split": "train",
            "limit": self.limit,
            "model": model,
            "max_turns": self.max_turns,
            "concurrency": self.together,
            "seed": self.recipe.seed,
            # another model has the same name after each training
            "cache": "off",
            "command": self.command,
        }
        if isinstance(model, str) and model.startswith("hf/"):
            usual["model_args"] = {"batch_size": self.together}
        if self.thoughts is not None and more.get("split", "train") == "train":
            usual["thoughts"] = self.thoughts
        return EvalConfig.of(**{**usual, **more})
