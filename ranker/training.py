"""Trains a cross-encoder by the published recipe, with transformers' Trainer.

`TrainingSettings()` is the recipe of Mind2Web (2306.06070, and its released code, commit 1b7c323). `SMALL` is the same for
`ranker.small_model`, but with the learning rate that random weights need, and with shorter pairs. In each epoch, each query gives
one random right text and five wrong ones, each drawn from all of them. A query without wrong texts gives six right ones.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import os
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ranker.checkpoint import PairOrder, open_base
from ranker.errors import RankerError

CHECKPOINTS = "checkpoints"
"""The folder of an unfinished training's last epoch."""
PADDED_TOGETHER = 8
"""Pairs of like length that a CPU takes at once: half of a random batch of 32 would be padding. A GPU takes a batch whole."""
RECORD = "training.json"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The recipe of a training. The defaults are the published ones."""

    epochs: int = 5
    negatives: int = 5
    """Drawn per group and epoch, uniformly, besides one random positive."""
    distinct_negatives: bool = False
    """Draw no negative twice in an epoch, and leave out those that read like a positive, and groups without another one.
    As published, a negative may be drawn twice, and a group without any gives positives in their place."""
    batch: int = 32
    """Pairs a step of the optimizer, over all devices."""
    accumulate: int = 1
    """Parts of a device's share of a batch, whose gradients add up to one step."""
    learning_rate: float = 3e-5
    weight_decay: float = 0.01
    clip: float = 1.0
    """Largest norm of the gradients."""
    warmup_epochs: float = 0.5
    """The learning rate rises linearly for so many epochs, less than all; then it falls linearly to 0."""
    max_tokens: int = 512
    """Tokens of a pair, including special ones; longer pairs lose the end of their longer text."""
    pair_order: PairOrder = "text-query"
    """The text that comes first. Written into the checkpoint's config, and read from there for scoring."""
    bf16: bool | None = None
    """Compute in bfloat16; None: on a GPU that has it."""
    seed: int = 0
    threads: int | None = None
    """CPU threads of torch; None: torch's default."""

    def check(self) -> None:
        """Raises RankerError for a batch that the processes cannot share evenly, and for a warmup without end."""
        parts = _n_processes() * self.accumulate
        if self.batch % parts:
            wanted = f"a number that divides into {parts} parts, one for each device and accumulated batch"
            raise RankerError("batch", wanted, str(self.batch))
        if not 0 <= self.warmup_epochs < self.epochs:
            raise RankerError("warmup_epochs", f"less than {self.epochs} epochs", str(self.warmup_epochs))


SMALL = TrainingSettings(learning_rate=5e-4, max_tokens=256)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The outcome of a training."""

    folder: Path
    history: tuple[Mapping[str, float], ...]
    """The Trainer's log."""
    seconds: float
    """Seconds since it was begun or resumed."""
    groups: int
    """Groups that were trained on."""


# --- pairs ---


@dataclass(frozen=True, slots=True)
class PairGroup:
    """A query, the texts that belong to it, and other texts from the same page."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        return self.positives + self.negatives

    def trainable(self, distinct: bool) -> PairGroup | None:
        """The group that pairs are drawn from; None where it gives none.

        `distinct`: without negatives that read like a positive, whose pairs would be labelled both ways, and with at least one other.
        """
        if not distinct or not self.positives:
            return self if self.positives else None
        positives = set(self.positives)
        negatives = tuple(text for text in self.negatives if text not in positives)
        return dataclasses.replace(self, negatives=negatives) if negatives else None


class Groups(Protocol):
    """A sequence of groups, which may be read one at a time."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> PairGroup: ...


class Pair(NamedTuple):
    """One training example."""

    query: str
    text: str
    target: float
    """1 if the text belongs to the query, else 0."""


class EpochPairs:
    """A map-style data set whose pairs are drawn anew each epoch, only from the seed, the epoch and the group's position."""

    def __init__(self, groups: Groups, negatives: int, seed: int, distinct: bool = False) -> None:
        """`negatives`: how many are drawn per group and epoch. `distinct`: none twice; a group with fewer gives all of them."""
        self._groups, self._negatives, self._seed, self._distinct = groups, negatives, seed, distinct
        self._epoch = -1
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """`epoch`: from 0."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._pairs = [
                pair
                for place in range(len(self._groups))
                for pair in self._draw(self._groups[place], random.Random(f"{self._seed}/{epoch}/{place}"))
            ]

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, place: int) -> Pair:
        return self._pairs[place]

    def _draw(self, group: PairGroup, chance: random.Random) -> list[Pair]:
        right = [chance.choice(group.positives)]
        wrong: list[str] = []
        if self._distinct:
            wrong = chance.sample(group.negatives, min(self._negatives, len(group.negatives)))
        elif group.negatives:
            wrong = chance.choices(group.negatives, k=self._negatives)
        else:
            right += chance.choices(group.positives, k=self._negatives)
        return [*(Pair(group.query, text, 1.0) for text in right), *(Pair(group.query, text, 0.0) for text in wrong)]


# --- training ---


def train(
    groups: Groups,
    out: Path,
    settings: TrainingSettings,
    *,
    base: str | Path,
    checkpoint: Path | None = None,
    begin: Callable[[int, int], None] = lambda total, done: None,
    advance: Callable[[], None] = lambda: None,
    tell: Callable[[str], None] = lambda text: None,
    check: Callable[[Sequence[Mapping[str, float]], str | None], None] = lambda history, best: None,
) -> TrainingResult:
    """Trains a checkpoint with one logit into the folder `out`, with its tokenizer, and `pair_order` in its config.

    `groups`: at least one, and each as `PairGroup.trainable` leaves it. `base`: a checkpoint's folder. `checkpoint`: one of an
    earlier call, under CHECKPOINTS in `out`, that the training continues from. `begin` is called with the optimizer's steps and those done
    before, `advance` after each step, `tell` with a few lines per epoch, `check` with the Trainer's log and its best checkpoint before the model is saved: where
    that raises, the checkpoints stay. Raises RankerError.
    """
    settings.check()
    started = time.monotonic()
    _prepare_torch(settings)
    try:
        model, tokenizer = open_base(base)
    except RankerError as error:
        raise RankerError("base", error.expected, error.got) from error
    model.config.pair_order = settings.pair_order
    pairs = EpochPairs(groups, settings.negatives, settings.seed, settings.distinct_negatives)
    trainer = _make_trainer(model, tokenizer, pairs, settings, out)
    trainer.add_callback(_make_callback(pairs, begin, advance, tell))
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    check(trainer.state.log_history, trainer.state.best_model_checkpoint)
    result = TrainingResult(out, tuple(trainer.state.log_history), time.monotonic() - started, len(groups))
    if trainer.is_world_process_zero():
        _save(trainer.model, tokenizer, result, settings)
        _drop_checkpoints(out)
    return result


def _n_processes() -> int:
    """Processes that train together, as the launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _prepare_torch(settings: TrainingSettings) -> None:
    import torch
    from transformers import set_seed
    from transformers.utils import logging

    logging.disable_progress_bar()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    set_seed(settings.seed)


def _make_trainer(model: Any, tokenizer: Any, pairs: EpochPairs, settings: TrainingSettings, out: Path) -> Any:
    import torch
    import transformers

    class PairTrainer(transformers.Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            from torch.nn.functional import binary_cross_entropy_with_logits

            targets = torch.cat([rows.pop("targets") for rows in inputs["rows"]])
            logits = torch.cat([model(**rows).logits[:, 0] for rows in inputs["rows"]])
            return binary_cross_entropy_with_logits(logits.float(), targets)

    together = settings.batch if torch.cuda.is_available() else PADDED_TOGETHER
    trainer = PairTrainer(
        model=model,
        args=_arguments(settings, out / CHECKPOINTS),
        train_dataset=pairs,
        data_collator=partial(collate, tokenizer=tokenizer, settings=settings, together=together),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


def _make_callback(
    pairs: EpochPairs, begin: Callable[[int, int], None], advance: Callable[[], None], tell: Callable[[str], None]
) -> Any:
    """A callback of the Trainer that draws each epoch's pairs, and reports progress."""
    import transformers

    class Callback(transformers.TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                begin(state.max_steps, state.global_step)

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            pairs.set_epoch(round(state.epoch or 0))

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                advance()

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            stop_without_loss(control, logs)
            if state.is_world_process_zero:
                tell(", ".join(f"{name} {value:.4g}" for name, value in logs.items() if isinstance(value, int | float)))

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            mark_best(args, state)

    return Callback()


def stop_without_loss(control: Any, logs: Mapping[str, float]) -> None:
    """Ends a training whose loss is no number, and stays none."""
    control.should_training_stop |= not math.isfinite(logs.get("loss", 0.0))


def mark_best(args: Any, state: Any) -> None:
    """Lets the checkpoint just saved outlive those after it if its loss is the lowest."""
    losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
    if losses and (state.best_metric is None or losses[-1] < state.best_metric):
        state.best_metric = losses[-1]
        state.best_model_checkpoint = str(Path(args.output_dir) / f"checkpoint-{state.global_step}")


def collate(pairs: Sequence[Pair], tokenizer: Any, settings: TrainingSettings, together: int) -> dict[str, Any]:
    """A batch as `rows`: lists of `together` pairs, shortest first, each with the model's inputs and their `targets`."""
    import torch

    ordered = sorted(pairs, key=lambda pair: len(pair.query) + len(pair.text))
    rows = []
    for at in range(0, len(ordered), together):
        part = ordered[at : at + together]
        texts = [pair.query for pair in part], [pair.text for pair in part]
        first, second = texts if settings.pair_order == "query-text" else texts[::-1]
        inputs = tokenizer(
            first, second, truncation=True, max_length=settings.max_tokens, padding=True, return_tensors="pt"
        )
        rows.append({**inputs, "targets": torch.tensor([pair.target for pair in part])})
    return {"rows": rows}


def _arguments(settings: TrainingSettings, folder: Path) -> Any:
    import torch
    from transformers import TrainingArguments

    cuda = torch.cuda.is_available()
    # Ampere and later, which have tf32 too
    is_new = cuda and torch.cuda.is_bf16_supported(including_emulation=False)
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch // (_n_processes() * settings.accumulate),
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip,
        lr_scheduler_type="linear",
        # A number below 1 is a share of all steps.
        warmup_steps=settings.warmup_epochs / settings.epochs,
        bf16=is_new if settings.bf16 is None else settings.bf16,
        tf32=True if is_new else None,
        seed=settings.seed,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        save_strategy="epoch",
        save_total_limit=1,
        logging_strategy="epoch",
        logging_first_step=True,
        logging_nan_inf_filter=False,
        report_to=["tensorboard"] if importlib.util.find_spec("tensorboard") else [],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["targets"],
        ddp_find_unused_parameters=False,
    )


def _drop_checkpoints(out: Path) -> None:
    """Keeps a tracker's files."""
    folder = out / CHECKPOINTS
    for checkpoint in folder.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _save(model: Any, tokenizer: Any, result: TrainingResult, settings: TrainingSettings) -> None:
    model.save_pretrained(result.folder)
    tokenizer.save_pretrained(result.folder)
    record = {
        "settings": dataclasses.asdict(settings),
        "groups": result.groups,
        "seconds": round(result.seconds, 1),
        "history": [dict(entry) for entry in result.history],
    }
    (result.folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
