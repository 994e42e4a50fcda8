"""Training of a ranker by the published recipe: pairs of texts made once, on disk,
and a training that is resumed only as it was begun.

In each epoch, each step gives one random right text and five wrong ones, each drawn from all of them; a step without
wrong texts gives six right ones. Source: Mind2Web (2306.06070; released code, src/candidate_generation at 1b7c323).
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from seeact_offline.dataset import Shard, Split, canonical_split, open_split
from seeact_offline.files import hub
from seeact_offline.files.options import ABOVE_0, POSITIVE, SEED, option
from seeact_offline.files.whole import replace_text
from seeact_offline.ranking.rankers import checkpoint_folder, is_on_hub
from seeact_offline.ranking.stage import extent
from seeact_offline.ranking.texts import TEXT_VERSION, ranker_input
from seeact_offline.ranking.trainable import (
    RankerError,
    SmallModel,
    TrialGroup,
    build_small,
    folder_digest,
    model_scores,
    open_base,
    report_trial,
    train_tokenizer,
)
from seeact_offline.records import DatasetError, InputError, RowError, Step
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted
from seeact_offline.training.checks import check_gpu, check_installed, n_processes
from seeact_offline.training.trainer import (
    CHECKPOINTS,
    DATA,
    check_out,
    checked_log,
    claim_out,
    is_main_process,
    last_checkpoint,
    prepare_torch,
    prepared_once,
    reporting,
    room_to_write,
    save_once,
    shared_arguments,
)
from seeact_offline.training.training_rows import RowCounts, StepRows, left_out, open_rows, parts_of, prepare, prepared

OF_MACHINE = frozenset({"accumulate", "bf16", "threads"})
"""Settings that would not change the weights in exact arithmetic."""
PADDED_TOGETHER = 8
"""Pairs of like length that a CPU takes at once: half of a random batch of 32 would be padding.
A GPU takes a batch whole."""
RESULT = "training.json"
SECONDS = "seconds"
"""The file beside the checkpoints with the seconds of training so far."""
TRIED, TRIED_STEPS = "cross_task", 30
"""The split on which the ranker is tried after each epoch, and so many of its steps."""
OPTIONS, RECIPE = "options", "recipe"
"""Groups of options."""


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The recipe of a training. The defaults are the published ones."""

    # fmt: off
    epochs: int = option(5, "{default} as published", group=RECIPE, number=POSITIVE, metavar="N")
    negatives: int = option(
        5, "a step and epoch; {default} as published", group=RECIPE, number=POSITIVE, metavar="N"
    )
    """Uniformly, besides one random positive."""
    distinct_negatives: bool = option(
        False, "draw no negative twice in an epoch, and none that reads like a positive; as published both happen",
        group=RECIPE, read=bool,
    )
    """Steps without another negative are left out. As published, a step without any gives positives in their place."""
    batch: int = option(
        32, "pairs, over all devices; {default} as published", group=RECIPE, number=POSITIVE, metavar="N"
    )
    """Pairs a step of the optimizer."""
    accumulate: int = option(
        1, "parts of a device's share of a batch; {default}", group=RECIPE, number=POSITIVE, metavar="N"
    )
    """Their gradients add up to one step."""
    learning_rate: float = option(3e-5, "3e-5 as published", group=RECIPE, number=ABOVE_0, metavar="X")
    weight_decay: float = 0.01
    clip: float = 1.0
    """Largest norm of the gradients."""
    warmup_epochs: float = 0.5
    """The learning rate rises linearly for so many epochs, less than all; then it falls linearly to 0."""
    max_tokens: int = option(512, "of a pair; {default} as published", group=RECIPE, number=POSITIVE, metavar="N")
    """Special ones included; longer pairs lose the end of their longer text."""
    pair_order: str = option(
        "text-query", "{default} as published; written into the config",
        group=RECIPE, choices=("query-text", "text-query"),
    )
    """The text that comes first. It is read from the config for scoring."""
    bf16: bool | None = option(None, "compute in bfloat16 (default: on a GPU)", group=RECIPE, read=bool)
    seed: int = option(0, "{default} unless given", group=RECIPE, number=SEED, metavar="N")
    threads: int | None = option(None, "of torch", group=RECIPE, number=POSITIVE, metavar="N")
    # fmt: on

    def check(self) -> None:
        """Raises InputError for a batch that the processes cannot share evenly, and for a warmup without end."""
        parts = n_processes() * self.accumulate
        if self.batch % parts:
            wanted = f"a number that divides into {parts} parts, one for each device and accumulated batch"
            raise InputError("batch", wanted, str(self.batch))
        if not 0 <= self.warmup_epochs < self.epochs:
            raise InputError("warmup_epochs", f"less than {self.epochs} epochs", str(self.warmup_epochs))


SMALL = TrainingSettings(learning_rate=5e-4, max_tokens=256)
"""The same for random weights, which need a higher learning rate, and with shorter pairs."""


@dataclass(frozen=True, slots=True)
class RankerTraining:
    """The options of a ranker's training."""

    out: Path = option(MISSING, "folder of the trained checkpoint", group=OPTIONS, read=Path, metavar="DIR")
    base: str | SmallModel = option(
        "microsoft/deberta-v3-base", "model to start from (default: {default})", group=OPTIONS, metavar="DIR|HUB_ID"
    )
    """A checkpoint's folder or hub id, or the shape of a model that begins with random weights."""
    dataset: Any = "sample"
    split: str = "train"
    limit: int | None = None
    """Number of tasks, the first ones; None: all."""
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    resume: bool = option(False, "resume from the last finished epoch in --out", group=OPTIONS, read=bool)
    processes: int = option(1, "that prepare the texts", group=OPTIONS, number=POSITIVE, metavar="N")


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """The outcome of a training."""

    folder: Path
    history: tuple[Mapping[str, float], ...]
    """The Trainer's log."""
    seconds: float
    """Seconds of the whole training, including those before it was resumed."""
    groups: int
    """Steps that were trained on."""


# --- texts and pairs ---


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

        `distinct`: without negatives that read like a positive, whose pairs would be labelled both ways,
        and with at least one other.
        """
        if not distinct or not self.positives:
            return self if self.positives else None
        positives = set(self.positives)
        negatives = tuple(text for text in self.negatives if text not in positives)
        return replace(self, negatives=negatives) if negatives else None


class Pair(NamedTuple):
    """One training example."""

    query: str
    text: str
    target: float
    """1 if the text belongs to the query, else 0."""


class EpochPairs:
    """A map-style data set whose pairs are drawn anew each epoch, only from the seed,
    the epoch and the group's position."""

    def __init__(self, groups: Sequence[PairGroup], negatives: int, seed: int, distinct: bool = False) -> None:
        """`negatives`: how many are drawn per group and epoch. `distinct`: none twice;
        a group with fewer gives all of them."""
        self._groups, self._negatives, self._seed, self._distinct = groups, negatives, seed, distinct
        self._epoch = -1
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Draws the pairs of an epoch, counted from 0."""
        if epoch != self._epoch:
            self._epoch = epoch
            self._pairs = [
                pair
                for place, group in enumerate(self._groups)
                for pair in self._draw(group, random.Random(f"{self._seed}/{epoch}/{place}"))
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


def to_group(step: Step) -> PairGroup:
    """The texts of the step's candidates, positive and negative. Raises RowError for a page without texts of all."""
    inputs = ranker_input(step)
    right = [inputs.texts[c.backend_node_id] for c in step.candidates if c.is_positive]
    wrong = [inputs.texts[c.backend_node_id] for c in step.candidates if not c.is_positive]
    return PairGroup(inputs.query, tuple(right), tuple(wrong))


@dataclass(frozen=True, slots=True)
class GroupTexts:
    """Makes the rows of a part's steps: the texts of their candidates."""

    distinct: bool
    """True: see `distinct_negatives`."""

    @property
    def schema(self) -> pa.Schema:
        texts = pa.list_(pa.string())
        return pa.schema([("step", pa.string()), ("query", pa.string()), ("positives", texts), ("negatives", texts)])

    def steps(self, part: Shard) -> Iterator[StepRows]:
        for step in part.steps():
            try:
                group = to_group(step).trainable(self.distinct)
            except RowError as error:
                yield left_out(error.name)
                continue
            if group is None:
                yield left_out("no_negative" if step.truth.positives else "no_positive")
            else:
                columns = [[str(step.key)], [group.query], [group.positives], [group.negatives]]
                yield StepRows(RowCounts(steps=1), pa.record_batch(columns, schema=self.schema))


class StoredGroups(Sequence[PairGroup]):
    """The groups of a prepared folder in the split's order, read one at a time from files that are memory-mapped."""

    def __init__(self, folder: Path, split: Split) -> None:
        rows = open_rows(folder)
        places = {key: place for place, key in enumerate(rows.data.column("step").to_pylist())}
        # a file's rows need not be in the order of their tasks
        self._rows = rows.select([places[key] for key in map(str, split.keys) if key in places])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        row = self._rows[place]
        return PairGroup(row["query"], tuple(row["positives"]), tuple(row["negatives"]))


# --- the command ---


def train_ranker(asked: RankerTraining, watch: Watch | None = None) -> TrainingResult:
    """Trains a ranker on a split. Steps that cannot be learnt from are counted.

    Raises InputError for what cannot be used.
    """
    watch, settings, folder = watch or Watch(), asked.settings, asked.out / DATA
    watch.note(f"training a ranker on {asked.split} of {asked.dataset}, into {asked.out}")
    check_installed("train-ranker")
    if settings.bf16:
        check_gpu("bf16")
    with _refusals():
        settings.check()
        split = open_split(asked.dataset, asked.split, limit=asked.limit)
        identity = _identity(asked, split)
        check_out(asked.out, identity, asked.resume)
        if isinstance(asked.base, str) and is_main_process():
            watch.note(f"opening {asked.base}")
            open_base(_base_folder(asked.base))
        watch.note(f"preparing the texts of {extent(split)}")
        with room_to_write(asked.out), prepared_once(asked.out, lambda: prepared(folder, identity) is not None):
            claim_out(asked.out, identity)
            with watch.counting(len(split.keys), "preparing texts", "steps") as listener:
                maker = GroupTexts(settings.distinct_negatives)
                made = prepare(parts_of(split), maker, folder, identity, asked.processes, listener)
        watch.note(f"{counted(made.steps, 'step')} to train on; left out: {made.reasons}")
        if not made.steps:
            sentence = f"no step of {asked.split} gives pairs to train on; name another `split`"
            raise InputError("split", sentence=sentence)
        groups = StoredGroups(folder, split)
        base = _base_folder(asked.base) if isinstance(asked.base, str) else _small_base(asked, identity, groups, watch)
        trial = _read_trial(asked, watch) if is_main_process() else []
        watch.note("loading the model")
        with room_to_write(asked.out, CHECKPOINTS):
            result = train(
                groups, asked.out, settings, base=base, watch=watch, trial=trial,
                checkpoint=last_checkpoint(asked.out) if asked.resume else None,
            )  # fmt: skip
    if is_main_process():
        # nothing is left to resume
        shutil.rmtree(folder, ignore_errors=True)
    return result


@contextmanager
def _refusals() -> Iterator[None]:
    """Turns what the ranker refuses into an InputError."""
    try:
        yield
    except RankerError as error:
        argument = "base" if error.argument == "model" else error.argument
        raise InputError(argument, error.expected, error.got) from error


def _identity(asked: RankerTraining, split: Split) -> dict[str, Any]:
    """All that the weights depend on; machine and versions aside."""
    return {
        **{name: value for name, value in asdict(asked.settings).items() if name not in OF_MACHINE},
        "base": folder_digest(_base_folder(asked.base)) if isinstance(asked.base, str) else asdict(asked.base),
        "dataset_fingerprint": split.fingerprint,
        "dataset_version": split.content_digest,
        "limit": asked.limit,
        "text_version": TEXT_VERSION,
    }


def _base_folder(name: str) -> Path:
    """The folder of a base, on the hub or here. Raises InputError."""
    with hub.errors_as(InputError, "base"):
        return checkpoint_folder(name) if is_on_hub(name) else Path(name).expanduser()


def _small_base(asked: RankerTraining, identity: Mapping[str, Any], groups: StoredGroups, watch: Watch) -> Path:
    """The folder of a model with random weights, whose tokenizer learns from the texts."""
    shape = asked.base
    assert isinstance(shape, SmallModel)
    folder = asked.out / DATA / f"base-{sha256(json.dumps(identity).encode()).hexdigest()[:16]}"

    def make() -> tuple[Any, Any]:
        watch.note("training a tokenizer on the texts")
        texts = (text for group in groups for text in (group.query, *group.texts))
        tokenizer = train_tokenizer(texts, shape.vocab_size, shape.max_tokens)
        return build_small(shape, tokenizer), tokenizer

    save_once(folder, asked.out, asked.settings.seed, make)
    return folder


def to_trial(step: Step) -> TrialGroup:
    """The texts of the step's candidates in document order, and which are right."""
    inputs = ranker_input(step)
    nodes = sorted(inputs.texts, key=lambda node: inputs.places[node])
    right = frozenset(place for place, node in enumerate(nodes) if node in step.truth.positives)
    return TrialGroup(inputs.query, tuple(inputs.texts[node] for node in nodes), right)


def _read_trial(asked: RankerTraining, watch: Watch) -> list[TrialGroup]:
    """Steps of a test split, spread evenly over it;
    none where the data has no such split or it is the one trained on."""
    split: Split | None = None
    if canonical_split(asked.split) == "train":
        with suppress(DatasetError):
            split = open_split(asked.dataset, TRIED, limit=asked.limit)
    if split is None:
        watch.note(f"the ranker is not tried while it trains: that takes the splits train and {TRIED}")
        return []
    tried = frozenset(split.keys[:: -(-len(split.keys) // TRIED_STEPS)])
    parts = [replace(part, places=tuple(p for p in part.places if p.step_key in tried)) for part in split.shards()]
    steps = [step for part in parts for step in part.steps()]
    trial = [to_trial(step) for step in steps if step.candidates and step.cleaned_html]
    watch.note(f"tried after each epoch on {counted(len(trial), 'step')} of {TRIED}, alone and fused with bm25")
    return trial


# --- training ---


def train(
    groups: Sequence[PairGroup], out: Path, settings: TrainingSettings, *, base: Path, watch: Watch, checkpoint: Path | None = None,
    trial: Sequence[TrialGroup] = (),
) -> TrainingResult:  # fmt: skip
    """Trains a checkpoint with one logit into the folder `out`, with its tokenizer, and `pair_order` in its config.

    `groups`: at least one, and each as `PairGroup.trainable` leaves it. `base`: a checkpoint's folder. `checkpoint`:
    one of an earlier call, in `out`, that the training continues from. `trial`: groups that are not trained on, whose
    recall is told after each epoch. Raises RankerError, and Diverged, which leaves the checkpoints.
    """
    import transformers

    started = time.monotonic()
    if checkpoint is not None:
        # as if the earlier call had never ended
        with suppress(OSError, ValueError):
            started -= float((out / CHECKPOINTS / SECONDS).read_text("utf-8"))
    prepare_torch(settings.seed, settings.threads)
    model, tokenizer = open_base(base)
    model.config.pair_order = settings.pair_order
    pairs = EpochPairs(groups, settings.negatives, settings.seed, settings.distinct_negatives)
    trainer = _make_trainer(model, tokenizer, pairs, settings, out)
    score = partial(
        model_scores, trainer.model, tokenizer,
        max_tokens=settings.max_tokens, query_first=settings.pair_order == "query-text",
    )  # fmt: skip

    class EachEpoch(transformers.TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            watch.note(f"training: {counted(state.max_steps - state.global_step, 'step')} of the optimizer")

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            pairs.set_epoch(round(state.epoch or 0))

        def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if trial and state.is_world_process_zero:
                watch.note(report_trial(score, trial))

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            numbers = [f"{name} {value:.4g}" for name, value in logs.items() if isinstance(value, int | float)]
            watch.note(", ".join(numbers))

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.is_world_process_zero:
                (out / CHECKPOINTS / SECONDS).write_text(f"{time.monotonic() - started:.1f}\n", "utf-8")

    trainer.add_callback(EachEpoch())
    with reporting(trainer, watch):
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    history = checked_log(trainer)
    result = TrainingResult(out, history, time.monotonic() - started, len(groups))
    if is_main_process():
        trainer.model.save_pretrained(out)
        tokenizer.save_pretrained(out)
        record = {
            "settings": asdict(settings),
            "groups": result.groups,
            "seconds": round(result.seconds, 1),
            "history": history,
        }
        replace_text(out / RESULT, json.dumps(record, indent=2) + "\n")
        # a tracker's files stay
        for path in (out / CHECKPOINTS).glob("checkpoint-*"):
            shutil.rmtree(path)
        (out / CHECKPOINTS / SECONDS).unlink(missing_ok=True)
        if (out / CHECKPOINTS).is_dir() and not any((out / CHECKPOINTS).iterdir()):
            (out / CHECKPOINTS).rmdir()
    return result


def _make_trainer(model: Any, tokenizer: Any, pairs: EpochPairs, settings: TrainingSettings, out: Path) -> Any:
    import torch
    import transformers

    class PairTrainer(transformers.Trainer):  # type: ignore[misc]
        def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            from torch.nn.functional import binary_cross_entropy_with_logits

            targets = torch.cat([rows.pop("targets") for rows in inputs["rows"]])
            logits = torch.cat([model(**rows).logits[:, 0] for rows in inputs["rows"]])
            return binary_cross_entropy_with_logits(logits.float(), targets)

    cuda = torch.cuda.is_available()
    # Ampere and later, which have tf32 too
    is_new = cuda and torch.cuda.is_bf16_supported(including_emulation=False)
    arguments = transformers.TrainingArguments(
        **shared_arguments(out, settings, cuda),
        per_device_train_batch_size=settings.batch // (n_processes() * settings.accumulate),
        gradient_accumulation_steps=settings.accumulate,
        warmup_steps=settings.warmup_epochs / settings.epochs,
        bf16=is_new if settings.bf16 is None else settings.bf16,
        tf32=True if is_new else None,
        save_strategy="epoch",
        save_total_limit=1,
        logging_strategy="epoch",
        report_to=["tensorboard"] if find_spec("tensorboard") else [],
        label_names=["targets"],
    )
    together = settings.batch if cuda else PADDED_TOGETHER
    collator = partial(collate, tokenizer=tokenizer, settings=settings, together=together)
    return PairTrainer(model=model, args=arguments, train_dataset=pairs, data_collator=collator)


def collate(pairs: Sequence[Pair], tokenizer: Any, settings: TrainingSettings, together: int) -> dict[str, Any]:
    """A batch as `rows`: lists of `together` pairs, shortest first,
    each with the model's inputs and their `targets`."""
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
