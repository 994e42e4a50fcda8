"""The recipe of a baseline that answers multi-choice questions. The defaults are those that MindAct published for
FLAN-T5; for BLIP-2 none are published, and it takes the same.

Source: Mind2Web (arXiv 2306.06070) and its released code, commit 1b7c323.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from seeact_offline.dataset import SPLITS, TEST_SPLITS
from seeact_offline.files.options import ABOVE_0, COUNT, FROM_0, POSITIVE, SEED, Number, option, words_of
from seeact_offline.ranking.rankers import PUBLISHED
from seeact_offline.records import InputError

RECIPE, MACHINE = "recipe", "machine"
"""Groups of options."""

THREADS = Number(int, 1, "a whole number from 1 to 1,024", most=1024)
"""With some thousands, a system may start no more, and the first library that needs one fails."""
TOKENS = Number(int, 2, "a whole number from 2 to 16,384", most=16_384)
"""A T5's attention grows with the square: of a question of 16,384 tokens,
a layer of FLAN-T5-base takes 13 GB for it."""
NEW_TOKENS = 50
"""Most tokens of an answer, in evaluation."""
HARD_SHARE = 0.8
"""Share of the draws with `hard_negatives` whose wrong elements are ranked under k.
The others have the rest of the page."""


def names(text: str) -> tuple[str, ...]:
    """Reads names with commas between them; `none` is none."""
    return tuple(name.strip() for name in text.split(",") if name.strip() and name.strip() != "none")


def splits(text: str) -> tuple[str, ...]:
    """Reads test splits by their usual names or the hub's. Raises ValueError.

    >>> splits("cross_task,test_domain")
    ('cross_task', 'cross_domain')
    """
    usual = {SPLITS[name]: name for name in TEST_SPLITS}
    chosen = tuple(usual.get(name, name) for name in names(text))
    wrong = [name for name in chosen if name not in TEST_SPLITS]
    if wrong:
        raise ValueError(f"expected some of {', '.join(TEST_SPLITS)}, or none, got {wrong[0]}")
    return chosen


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides the weights besides the data, the model to start from and the machine."""

    # fmt: off
    epochs: int = option(5, "{default} as MindAct published", group=RECIPE, number=POSITIVE, metavar="N", is_basic=True)
    draws: int = option(10, "questions a step and epoch; {default}", group=RECIPE, number=POSITIVE, metavar="N")
    choices: int = option(
        5, "elements a question; {default} as MindAct published", group=RECIPE, number=POSITIVE, metavar="N"
    )
    none_share: float = option(0.2, "of questions with answer A; {default}", group=RECIPE, number=FROM_0, metavar="X")
    """Share of the questions without the right element, whose answer is `A.`."""
    hard_negatives: int | None = option(
        None, "wrong elements are those ranked under K", group=RECIPE, number=POSITIVE, metavar="K"
    )
    """Decides HARD_SHARE of the draws. None: all are uniform over the page, as published."""
    held_out: float = option(
        0.0, "share of the tasks not trained on; {default}", group=RECIPE, number=FROM_0, metavar="X"
    )
    """They are asked about during training."""
    batch: int = option(32, "questions, over all devices; {default}", group=RECIPE, number=POSITIVE, metavar="N")
    """Questions a step of the optimizer."""
    learning_rate: float = option(5e-5, "{default} as MindAct published", group=RECIPE, number=ABOVE_0, metavar="X")
    """Falls linearly to 0."""
    warmup: float = option(0.0, "share of the steps; {default}; vlm 0.03", group=RECIPE, number=FROM_0, metavar="X")
    """Share of the steps over which the learning rate rises first."""
    weight_decay: float = option(0.0, "{default} as MindAct published", group=RECIPE, number=FROM_0, metavar="X")
    clip: float = 1.0
    """Largest norm of the gradients."""
    max_context: int = option(512, "tokens of a page; {default}", group=RECIPE, number=TOKENS, metavar="N")
    """The end of longer markup is cut off."""
    max_question: int = option(512, "of the rest of a question; {default}", group=RECIPE, number=TOKENS, metavar="N")
    lora: int | None = option(
        None, "train matrices of this rank, by peft; vlm 16", group=RECIPE, number=POSITIVE, metavar="RANK"
    )
    """The weights themselves are then held in bfloat16 on a GPU."""
    quantised: bool | None = option(
        None, "with --lora: NF4 weights by bitsandbytes, on a GPU", group=RECIPE, read=bool
    )
    """QLoRA: arXiv 2305.14314."""
    optimizer: str | None = option(
        None, "adafactor, adamw_bnb_8bit or another of transformers; AdamW", group=RECIPE, metavar="NAME"
    )
    group_by_length: bool | None = option(
        None, "batches of questions of like length: less padding", group=RECIPE, read=bool
    )
    seed: int = option(0, "{default} unless given", group=RECIPE, number=SEED, metavar="N")
    # fmt: on

    def __post_init__(self) -> None:
        """Raises InputError for a field out of its range."""
        for name in ("none_share", "held_out", "warmup"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(name, "a share from 0 to less than 1", str(getattr(self, name)))
        for name, words in words_of(Recipe).items():
            words.check(name, getattr(self, name))
        if self.quantised and self.lora is None:
            raise InputError(
                "quantised", sentence="`quantised` needs `lora`, as 4-bit weights are not trained themselves"
            )
        if not 2 <= self.choices <= 5:
            raise InputError("choices", "2 to 5, as answers are read up to F", str(self.choices))


@dataclass(frozen=True, slots=True)
class PublishedRecipe:
    """All that belongs together for figures that were published: training, and the evaluation at its end."""

    recipe: Recipe
    baselines: tuple[str, ...]
    """Baselines that it is for."""
    pack: str
    """The kind of `import-prompts` that makes its wording."""
    ranker: str
    """Ranks the candidates of the evaluation."""
    input_tokens: str
    """`max_input_tokens` of the evaluation."""


RECIPES = MappingProxyType(
    {"mindact-released": PublishedRecipe(Recipe(), ("flan-t5", "blip2"), "mindact", PUBLISHED, "512+512")}
)
"""By name. Source: as above."""

SMALL: dict[str, Any] = {"draws": 4, "batch": 8, "learning_rate": 1e-3}
"""Fields of a recipe for random weights, which need more and larger steps: 2,930 on the sample,
in ten minutes on two cores."""


@dataclass(frozen=True, slots=True)
class SmallBase:
    """The shape of a small base: FLAN-T5 (gated feed-forward layers) with fewer and narrower layers.

    A BLIP-2 holds such a T5; its other parts, and a LLaVA's, have the width and depth of the encoder.
    """

    vocab_size: int = 4000
    """Most tokens, some for roles and pictures aside."""
    d_model: int = 96
    d_kv: int = 32
    d_ff: int = 192
    heads: int = 3
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.0
    """None: in so short a training each question is seen once."""

    @property
    def layers(self) -> dict[str, int]:
        """Gives width, depth and heads by the names that parts for pictures, and Llama, have for them."""
        return {
            "hidden_size": self.d_model,
            "intermediate_size": self.d_ff,
            "num_hidden_layers": self.encoder_layers,
            "num_attention_heads": self.heads,
        }


@dataclass(frozen=True, slots=True)
class Running:
    """Settings of the machine. In exact arithmetic, and without dropout, none of them would change the weights."""

    # fmt: off
    per_device: int | None = option(None, "questions at once on a device", group=MACHINE, number=POSITIVE, metavar="N")
    """Their gradients add up to a batch; None: as many as a GPU's share, or a few on a CPU."""
    bf16: bool | None = option(None, "compute in bfloat16 (default: on a GPU)", group=MACHINE, read=bool)
    gradient_checkpointing: bool = option(False, "recompute activations", group=MACHINE, read=bool)
    save_every: int | None = option(None, "checkpoints; an epoch", group=MACHINE, number=POSITIVE, metavar="STEPS")
    """Steps of the optimizer between checkpoints, and between evaluations."""
    log_every: int = option(10, "{default} unless given", group=MACHINE, number=POSITIVE, metavar="STEPS")
    loader_workers: int | None = option(
        None, "processes that load batches; a few with a GPU", group=MACHINE, number=COUNT, metavar="N"
    )
    """None on a CPU, where they would take the model's cores."""
    attention: str | None = option(
        None, "eager, sdpa, flash_attention_2; as the model has it", group=MACHINE, metavar="NAME"
    )
    threads: int | None = option(None, "of torch", group=MACHINE, number=THREADS, metavar="N")
    report_to: tuple[str, ...] = option(
        (), "tensorboard, wandb, mlflow, trackio", group=MACHINE, read=names, metavar="NAME[,NAME]"
    )
    # fmt: on

    def each(self, batch: int, devices: int, most: int | None = None) -> int:
        """Questions at once on each of `devices`; unless it is given, at most `most`. Raises InputError."""
        if batch % devices:
            raise InputError("batch", f"a number that {devices} devices share evenly", str(batch))
        share = batch // devices
        per_device = self.per_device or next(n for n in range(min(share, most or share), 0, -1) if share % n == 0)
        if share % per_device:
            raise InputError("per_device", f"a number that divides the {share} of each device", str(per_device))
        return per_device

    def accumulate(self, batch: int, devices: int, most: int | None = None) -> int:
        """Batches of a device whose gradients add up to one step of the optimizer. Raises InputError."""
        return batch // (devices * self.each(batch, devices, most))
