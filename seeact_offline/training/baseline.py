"""The declaration of a baseline (one `Baseline` a module, listed in `training.BASELINES`),
and the options of a fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from seeact_offline.dataset import TEST_SPLITS, Split
from seeact_offline.files.options import POSITIVE, option
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch
from seeact_offline.training import BASELINES
from seeact_offline.training.recipe import RECIPES, SMALL, PublishedRecipe, Recipe, Running, SmallBase, names, splits

if TYPE_CHECKING:
    from seeact_offline.training.training_rows import QuestionMaker

PROMPTS = "seeact"
"""The prompts where none are named: ours."""
TRAINING, EVALUATION = "options", "evaluation at the end"
"""Groups of options."""


@dataclass(frozen=True, slots=True)
class FineTuning:
    """The options of a fine-tuning. The defaults are the baseline's own, on the bundled sample."""

    # fmt: off
    out: Path = option(MISSING, "folder of the trained model", group=TRAINING, read=Path, metavar="DIR")
    baseline: str = option(
        "flan-t5", "what is trained (default: {default})", group=TRAINING, choices=tuple(BASELINES), is_basic=True
    )
    base: str | SmallBase | None = option(
        None,
        "model to start from (default: google/flan-t5-base, Salesforce/blip2-flan-t5-xl; for vlm and web-agent there is"
        " none)",
        group=TRAINING, metavar="DIR|HUB_ID", is_basic=True,
    )
    """A folder, a hub id, or the shape of a base with random weights; None: the baseline's. See `resolved_base`."""
    dataset: Any = "sample"
    split: str = "train"
    limit: int | None = None
    """Number of tasks, the first ones; None: all."""
    scores: Path | None = option(
        None, "of the train split: for --hard-negatives, and vlm",
        group=TRAINING, read=Path, metavar="FILE", is_basic=True,
    )
    """Ranks for `hard_negatives`, and for questions about whole groups of ranked candidates."""
    prompts: str = option(
        PROMPTS, "prompt pack (default: {default}; with --recipe none)", group=TRAINING, metavar="NAME|DIR"
    )
    recipe: Recipe | None = None
    """None: the published one's or the baseline's. See `resolved_recipe`."""
    published: str | None = option(
        None, "all of a published one that belongs together; options given beside it win, and are named",
        group=TRAINING, choices=tuple(RECIPES), flags=("--recipe",), is_basic=True,
    )
    """It decides what is not given."""
    running: Running = field(default_factory=Running)
    own: Mapping[str, Any] = field(default_factory=dict)
    """Given fields of `OwnOptions`, by name."""
    resume: bool = option(False, "resume from the last checkpoint in --out", group=TRAINING, read=bool, is_basic=True)
    processes: int = option(1, "that prepare the data", group=TRAINING, number=POSITIVE, metavar="N")
    test_data: Any | None = option(
        None, "whose test splits count (default: --dataset)", group=EVALUATION, metavar="DIR|HUB_ID"
    )
    """No training step may be from them."""
    evaluate: tuple[str, ...] = option(
        TEST_SPLITS, "asked as a whole; none for none (default: the three test splits)",
        group=EVALUATION, read=splits, metavar="SPLIT[,SPLIT]", is_basic=True,
    )
    """Splits that the data lacks are left out of the default three."""
    eval_ranker: str | None = option(
        None, "ranks their candidates, and vlm's questions", group=EVALUATION, metavar="NAME|DIR"
    )
    eval_scores: Path | None = option(None, "a score file instead", group=EVALUATION, read=Path, metavar="FILE")
    eval_limit: int | None = option(
        None, "only the first N tasks of each", group=EVALUATION, number=POSITIVE, metavar="N"
    )
    command: str = ""
    """Command line, for the card."""
    # fmt: on

    @property
    def resolved_base(self) -> str | SmallBase:
        """The base, or the baseline's own. Raises InputError where there is none."""
        base = find_baseline(self.baseline).base if self.base is None else self.base
        if base is None:
            raise InputError("base", sentence=f"{self.baseline} needs `base`, a model's folder or hub id")
        return base

    @property
    def resolved_recipe(self) -> Recipe:
        """The recipe, or the baseline's own."""
        if self.recipe is not None:
            return self.recipe
        if self.published is not None:
            return RECIPES[self.published].recipe
        baseline = find_baseline(self.baseline)
        if not isinstance(self.base, SmallBase):
            return baseline.recipe
        return replace(baseline.recipe, **{name: SMALL[name] for name in SMALL.keys() - baseline.ignores})

    @property
    def resolved_ranker(self) -> str | None:
        """The ranker of the evaluation; None: that of a score file, or the usual one."""
        if self.eval_scores is not None:
            return None
        published = self.published_recipe()
        return self.eval_ranker or (None if published is None else published.ranker)

    def published_recipe(self) -> PublishedRecipe | None:
        """The published recipe, if one is named. Raises InputError for a baseline that it is not for."""
        if self.published is None:
            return None
        if self.published not in RECIPES:
            raise InputError("recipe", f"one of {', '.join(RECIPES)}", self.published)
        recipe = RECIPES[self.published]
        if self.baseline not in recipe.baselines:
            of = " and ".join(recipe.baselines)
            raise InputError("recipe", sentence=f"`recipe` {self.published} is one of {of}, not of {self.baseline}")
        return recipe


@dataclass(frozen=True, slots=True)
class OwnOptions:
    """Options that one baseline alone has."""

    side: int | None = option(
        None, "of pictures (default: as the base)", group="of blip2 alone", number=POSITIVE, metavar="PIXELS"
    )
    language: str | None = option(
        None, "a fine-tuned T5 to start the language part from", group="of blip2 alone", metavar="DIR|HUB_ID"
    )
    max_pixels: int | None = option(
        None, "of a picture (default: as the base)", group="of vlm alone", number=POSITIVE, metavar="N"
    )
    dialogues: tuple[Path, ...] | None = option(
        None, "what it learns from, as `improve` writes it", group="of web-agent alone", metavar="FILE[,FILE]",
        read=lambda text: tuple(map(Path, names(text))),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TrainedSettings:
    """The settings of a trained model: its base's, but for the entries that training changes."""

    base: Path
    """The base's folder."""
    name: str
    """The base's folder or hub id, for an adapter;
    empty where the adapter is not the base's, which training has changed besides."""
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Entries of the parts of `config.json`, by part."""
    pictures: Mapping[str, Any] = field(default_factory=dict)
    """Entries of the processor of pictures."""
    chat_template: str | None = None
    """None: the base's."""


class OpenBaseline(Protocol):
    """A baseline that is checked and ready to be trained. Nothing has been written for it yet."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that its weights depend on besides recipe and data, as JSON can hold it."""

    @property
    def settings(self) -> TrainedSettings:
        """The settings of the model that training leaves."""

    def maker(self, held_out: frozenset[str], watch: Watch) -> QuestionMaker:
        """Writes the files that its questions need, and returns their maker. `held_out`: tasks not trained on."""

    def trainer(self, maker: Any, table: Any) -> Any:
        """A Trainer of transformers, with the model. `maker`: its own. `table`: all rows that it made, as a
        `datasets.Dataset`.
        Called again after a batch did not fit in memory: the model is the base's each time."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A baseline as the rest of the program knows it."""

    title: str
    """Its name on model cards."""
    base: str | None
    """Hub id of the default base; None: a base must be named."""
    open: Callable[[FineTuning, Split], OpenBaseline]
    """Raises InputError for unusable options, before anything is written."""
    load: Callable[[FineTuning], Any]
    """Loads the base's model as it is before it is trained. Raises InputError."""
    evaluation: Callable[[FineTuning], Mapping[str, Any]]
    """Gives the fields of `EvalConfig` with which the trained model is asked."""
    small: Callable[[SmallBase, Any], tuple[Any, Any]]
    """Builds a small model with random weights for a tokenizer of `train_tokenizer`;
    and its own tokenizer or processor."""
    learns: str
    """Its purpose for the card, behind `to`."""
    limits: str
    """Sentence for the card about the parts that its questions leave out."""
    tag: str
    """Its task, as the hub calls it."""
    recipe: Recipe = field(default_factory=Recipe)
    """Settings where no others are given."""
    ignores: frozenset[str] = frozenset()
    """Fields of the recipe that it does not use, and which may therefore not be given."""
    own: tuple[str, ...] = ()
    """Its own options."""
    check_own: Callable[[FineTuning], object] = lambda _: None
    """Raises InputError for what its own options lack, before a base is opened or made."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Packages that not all baselines need, each with the extra that installs it."""
    remarks: tuple[str, ...] = ()
    """Remarks for the card that a reader of its figures must know."""


def find_baseline(name: str) -> Baseline:
    """The baseline of this name. Raises InputError for an unknown one."""
    if name not in BASELINES:
        raise InputError("baseline", f"one of {', '.join(BASELINES)}", name)
    baseline: Baseline = import_module(f"seeact_offline.training.{BASELINES[name]}").BASELINE
    return baseline
