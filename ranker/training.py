"""Training a cross-encoder from groups of texts, on transformers' Trainer.

The Trainer, not sentence-transformers': the pairs have to be drawn anew each epoch and judged page by page, which either
would need written, and this one is there already wherever the ranker runs. `TrainingSettings()` is the published recipe
(Mind2Web, 2306.06070, and its released code, commit 1b7c323); `SMALL` trains `ranker.small` from scratch on a laptop.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ranker.checkpoint import PairOrder, open_base
from ranker.errors import RankerError
from ranker.pairs import EpochPairs, Example, PairEncoder, PairGroup, TokenSwap
from ranker.processes import n_processes
from ranker.small import SmallModel, build_small
from ranker.synonyms import NONE, Synonyms

__all__ = ["SMALL", "PairGroup", "SmallModel", "TrainingResult", "TrainingSettings", "check", "train"]

RECALL_AT = (1, 3, 5, 10, 20, 50)
CHECKPOINTS = "checkpoints"
RECORD = "training.json"


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How a ranker is trained. The defaults are the published recipe."""

    epochs: int = 5
    negatives: int = 5
    # drawn for each group and epoch, uniformly, beside one random positive
    hard_negatives: int = 0
    # so many of them are those that the model, at the start of the epoch, takes for right most firmly
    batch: int = 32
    # pairs on each device and step; whole groups where loss is "group"
    accumulate: int = 1
    # batches whose gradients add up to one step
    learning_rate: float = 3e-5
    weight_decay: float = 0.01
    beta2: float = 0.999
    # of AdamW
    clip: float = 1.0
    warmup_epochs: float = 0.5
    # the learning rate rises linearly for so long, then falls linearly to 0
    max_tokens: int = 512
    pair_order: PairOrder = "query-text"
    loss: Literal["pair", "group"] = "pair"
    # pair: binary cross-entropy of each; group: cross-entropy over the group of a draw
    sharpness: float = 1.0
    # what logits are multiplied by before the cross-entropy of a group
    answer_weight: float = 1.0
    # of this loss, where there are others beside it
    teacher_weight: float = 1.0
    # of the squared distance from a lesson's scores, where groups have lessons
    swap_share: float = 0.0
    # share of the draws in which rarer tokens change places
    swap_kept: int = 200
    # so many of the commonest words never do
    swap_spelt: float = 0.0
    # share of the words swapped that become two or three short tokens
    length_parts: int = 1
    # a batch goes through the model in so many parts, sorted by length: less padding
    bf16: bool = False
    patience: int | None = None
    # epochs without a better `best_by` before training stops; None: it goes on to the end
    best_by: str = "recall@10"
    # what decides which epoch is kept, where groups are held out
    eval_tokens: int = 16_384
    # in a batch of scoring, padding counted
    seed: int = 0
    threads: int | None = None
    # of torch; None: as torch likes


SMALL = TrainingSettings(
    epochs=14,
    negatives=23,
    batch=8,
    learning_rate=1e-3,
    weight_decay=0.05,
    beta2=0.98,
    max_tokens=128,
    loss="group",
    sharpness=2.0,
    answer_weight=0.3,
    swap_share=0.5,
    swap_kept=60,
    swap_spelt=0.5,
    length_parts=3,
    bf16=True,
)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What a training leaves."""

    folder: Path
    metrics: Mapping[str, float]
    # recall@k and MRR of the held-out groups by the model kept; empty where none were held out
    history: tuple[Mapping[str, float], ...]
    # what the Trainer logged
    seconds: float
    groups: int
    # trained on: those with a positive and a negative


def train(
    groups: Sequence[PairGroup],
    out: str | Path,
    settings: TrainingSettings | None = None,
    *,
    base: str | Path | SmallModel = "microsoft/deberta-v3-base",
    synonyms: Synonyms = NONE,
    text_form: str = "plain",
    held_out: Sequence[PairGroup] = (),
    resume: bool = False,
    tell: Callable[[str], None] = lambda text: None,
) -> TrainingResult:
    """Trains a checkpoint with one logit into the folder `out`, with its tokenizer, and `pair_order` and `text_form` in its config.

    `base`: a checkpoint's folder or hub id, or the shape of a small one to train from scratch, tokenizer and all, from the
    texts of `groups`; then words that are `synonyms` are read as one. `text_form`: what the texts are like, in a word that
    tells whoever scores. Groups without a positive or a negative are dropped. `resume` goes on from the last epoch in `out`.
    `tell` hears of each epoch, in one line.
    """
    settings = settings or TrainingSettings()
    out, started = Path(out), time.monotonic()
    used = [group for group in map(_without_equals, groups) if (group.positives or group.lesson) and group.negatives]
    check(settings, out, judged=bool(held_out), resume=resume)
    if not used:
        raise RankerError("groups: expected at least one with a positive and a negative text, got none")
    _prepare_torch(settings)
    model, tokenizer = _open_base(base, groups, settings, synonyms)
    model.config.pair_order = settings.pair_order
    model.config.text_form = text_form
    encoder = PairEncoder(tokenizer, model.config, settings.pair_order, settings.max_tokens)
    encoder.learn((*used, *held_out))
    swap = None
    if settings.swap_share:
        swap = TokenSwap(used, encoder, settings.swap_kept, settings.swap_spelt, synonyms.words)
    trainer = _make_trainer(model, encoder, used, swap, [g for g in held_out if g.positives], settings, out, tell)
    trainer.train(resume_from_checkpoint=_last_checkpoint(out) if resume else None)
    metrics = trainer.measure() if held_out else {}
    result = TrainingResult(out, metrics, tuple(trainer.state.log_history), time.monotonic() - started, _n_steps(used))
    if trainer.is_world_process_zero():
        _save(trainer.model, tokenizer, result, settings)
    return result


def _without_equals(group: PairGroup) -> PairGroup:
    """A negative that reads like a positive teaches nothing but doubt."""
    positives = set(group.positives)
    negatives = tuple(text for text in group.negatives if text not in positives)
    return dataclasses.replace(group, negatives=negatives)


def _n_steps(groups: Sequence[PairGroup]) -> int:
    return sum(bool(group.positives) for group in groups)


def ranks_to_metrics(ranks: Sequence[int]) -> dict[str, float]:
    """Recall@k and MRR from the rank, from 0, of the best positive of each group."""
    n = max(1, len(ranks))
    found = {f"recall@{k}": sum(rank < k for rank in ranks) / n for k in RECALL_AT}
    return found | {"mrr": sum(1 / (rank + 1) for rank in ranks) / n}


def check(settings: TrainingSettings, out: str | Path, *, judged: bool, resume: bool) -> None:
    """Raises RankerError for what `train` would refuse whatever the groups. `judged`: whether groups are held out."""
    out = Path(out)
    if settings.hard_negatives > settings.negatives:
        raise RankerError(
            f"hard_negatives: expected at most negatives ({settings.negatives}), got {settings.hard_negatives}"
        )
    if settings.patience is not None and not judged:
        raise RankerError("patience: expected held-out groups to stop by, got none")
    known = list(ranks_to_metrics([]))
    if settings.best_by not in known:
        raise RankerError(f"best_by: expected one of {', '.join(known)}, got {settings.best_by}")
    if (out / "model.safetensors").exists() and not resume:
        raise RankerError(f"out: expected a folder without a model, {out} holds one already")
    if resume and _last_checkpoint(out) is None:
        raise RankerError(f"resume: expected a checkpoint under {out / CHECKPOINTS}, found none")


def _prepare_torch(settings: TrainingSettings) -> None:
    import torch
    from transformers import set_seed
    from transformers.utils import logging

    logging.disable_progress_bar()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    set_seed(settings.seed)


def _open_base(
    base: str | Path | SmallModel, groups: Sequence[PairGroup], settings: TrainingSettings, synonyms: Synonyms
) -> tuple[Any, Any]:
    """The model to start from, in fp32, and its tokenizer."""
    if isinstance(base, SmallModel):
        from ranker.tokenizer import train_tokenizer

        texts = (text for group in groups for text in (group.query, *group.texts))
        tokenizer = train_tokenizer(texts, base.vocab_size, base.max_tokens, synonyms)
        return build_small(base, tokenizer), tokenizer
    try:
        return open_base(base)
    except RankerError as error:
        raise RankerError(
            f"base: expected a folder or hub id of a model and its tokenizer, {str(error).removeprefix('model: ')}"
        ) from error


def _make_trainer(
    model: Any,
    encoder: PairEncoder,
    groups: Sequence[PairGroup],
    swap: TokenSwap | None,
    held_out: Sequence[PairGroup],
    settings: TrainingSettings,
    out: Path,
    tell: Callable[[str], None],
) -> Any:
    from ranker.group_trainer import make_trainer

    pairs = EpochPairs(
        groups,
        encoder,
        negatives=settings.negatives,
        seed=settings.seed,
        grouped=settings.loss == "group",
        swap=swap,
        swap_share=settings.swap_share,
    )
    arguments = _arguments(settings, out / CHECKPOINTS, len(pairs), bool(held_out))
    return make_trainer(model, arguments, pairs, encoder, held_out, settings, tell)


def _arguments(settings: TrainingSettings, folder: Path, n_items: int, judged: bool) -> Any:
    import torch
    from transformers import TrainingArguments

    cuda = torch.cuda.is_available()
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta2=settings.beta2,
        max_grad_norm=settings.clip,
        lr_scheduler_type="linear",
        warmup_steps=_warmup_steps(settings, n_items),
        bf16=settings.bf16,
        seed=settings.seed,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        eval_strategy="epoch" if judged else "no",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=judged,
        metric_for_best_model=f"eval_{settings.best_by}" if judged else None,
        greater_is_better=True if judged else None,
        logging_strategy="epoch",
        report_to=["tensorboard"] if importlib.util.find_spec("tensorboard") else [],
        disable_tqdm=True,
        remove_unused_columns=False,
        label_names=["targets"],
        ddp_find_unused_parameters=False,
    )


def _warmup_steps(settings: TrainingSettings, n_items: int) -> int:
    together = settings.batch * settings.accumulate * n_processes()
    return round(settings.warmup_epochs * math.ceil(n_items / together))


def _last_checkpoint(out: Path) -> str | None:
    """The folder of the last epoch that was finished and saved."""
    from transformers.trainer_utils import get_last_checkpoint

    folder = out / CHECKPOINTS
    return get_last_checkpoint(str(folder)) if folder.is_dir() else None


def _save(model: Any, tokenizer: Any, result: TrainingResult, settings: TrainingSettings) -> None:
    model.save_pretrained(result.folder)
    tokenizer.save_pretrained(result.folder)
    record = {
        "settings": dataclasses.asdict(settings),
        "groups": result.groups,
        "seconds": round(result.seconds, 1),
        "held_out": dict(result.metrics),
        "history": [dict(entry) for entry in result.history],
    }
    (result.folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")


def collate(examples: Sequence[Example], encoder: PairEncoder, parts: int) -> dict[str, Any]:
    """A batch: its rows in `parts` sorted by length, the place of each row in the flat order, targets and group sizes.

    Where the groups have lessons, also the teacher's score of each row.
    """
    import torch

    rows = [row for example in examples for row in example.rows]
    order = sorted(range(len(rows)), key=lambda place: -len(rows[place].ids))
    size = math.ceil(len(rows) / parts)
    chunks = [order[start : start + size] for start in range(0, len(order), size)]
    return {
        "parts": [encoder.tensors([rows[place] for place in chunk]) for chunk in chunks],
        "order": torch.tensor(order),
        "targets": torch.tensor([target for example in examples for target in example.targets]),
        "sizes": [len(example.rows) for example in examples],
        **_taught(examples),
    }


def _taught(examples: Sequence[Example]) -> dict[str, Any]:
    import torch

    scores = [example.taught for example in examples if example.taught is not None]
    return {"taught": torch.from_numpy(np.concatenate(scores))} if len(scores) == len(examples) else {}
