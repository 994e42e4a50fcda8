"""Training of a ranker: texts made once, on disk, and a training that is resumed only as it was begun."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa

from seeact_offline.dataset import Shard, Split, open_split
from seeact_offline.files import hub
from seeact_offline.ranking.pair_groups import (
    PairGroup,
    RankerError,
    SmallModel,
    TrainingResult,
    TrainingSettings,
    build_small,
    folder_digest,
    open_base,
    to_group,
    train,
    train_tokenizer,
)
from seeact_offline.ranking.rankers import checkpoint_folder, is_on_hub
from seeact_offline.ranking.texts import TEXT_VERSION
from seeact_offline.records import InputError, RowError
from seeact_offline.runs.options import ABOVE_0, POSITIVE, SEED, option
from seeact_offline.runs.selection import extent
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted
from seeact_offline.training.checks import check_gpu, check_installed
from seeact_offline.training.trainer import (
    CHECKPOINTS,
    DATA,
    TrainingProgress,
    check_loss,
    check_out,
    claim_out,
    is_main_process,
    last_checkpoint,
    prepared_once,
    room_to_write,
    save_once,
)
from seeact_offline.training.training_rows import RowCounts, StepRows, left_out, open_rows, parts_of, prepare, prepared

OF_MACHINE = frozenset({"accumulate", "bf16", "threads"})
"""Settings that would not change the weights in exact arithmetic."""


@dataclass(frozen=True, slots=True)
class RankerTraining:
    """The options of a ranker's training."""

    out: Path = option(MISSING, "folder of the trained checkpoint", group="options", read=Path, metavar="DIR")
    base: str | SmallModel = option(
        "microsoft/deberta-v3-base", "model to start from (default: {default})", group="options", metavar="DIR|HUB_ID"
    )
    """A checkpoint's folder or hub id, or the shape of a model that begins with random weights."""
    dataset: Any = "sample"
    split: str = "train"
    limit: int | None = None
    """Number of tasks, the first ones; None: all."""
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    resume: bool = option(False, "resume from the last finished epoch in --out", group="options", read=bool)
    processes: int = option(1, "that prepare the texts", group="options", number=POSITIVE, metavar="N")


@dataclass(frozen=True, slots=True)
class RankerRecipe:
    """The options that change the fields of `TrainingSettings` with their names."""

    # fmt: off
    epochs: int | None = option(None, "5 as published", group="recipe", number=POSITIVE, metavar="N")
    negatives: int | None = option(None, "a step and epoch; 5 as published", group="recipe", number=POSITIVE, metavar="N")
    distinct_negatives: bool | None = option(
        None, "draw no negative twice in an epoch, and none that reads like a positive; as published both happen",
        group="recipe", read=bool,
    )
    batch: int | None = option(None, "pairs, over all devices; 32 as published", group="recipe", number=POSITIVE, metavar="N")
    accumulate: int | None = option(
        None, "parts of a device's share of a batch; 1", group="recipe", number=POSITIVE, metavar="N"
    )
    learning_rate: float | None = option(None, "3e-5 as published", group="recipe", number=ABOVE_0, metavar="X")
    max_tokens: int | None = option(None, "of a pair; 512 as published", group="recipe", number=POSITIVE, metavar="N")
    pair_order: str | None = option(
        None, "text-query as published; written into the config", group="recipe", choices=("query-text", "text-query")
    )
    bf16: bool | None = option(None, "compute in bfloat16 (default: on a GPU)", group="recipe", read=bool)
    seed: int | None = option(None, "0 unless given", group="recipe", number=SEED, metavar="N")
    threads: int | None = option(None, "of torch", group="recipe", number=POSITIVE, metavar="N")
    # fmt: on


@dataclass(frozen=True, slots=True)
class GroupTexts:
    """Makes the rows of a part's steps: the texts of their candidates."""

    distinct: bool
    """As `distinct_negatives`."""

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


class StoredGroups:
    """The groups of a prepared folder in the split's order, read one at a time from files that are memory-mapped."""

    def __init__(self, folder: Path, split: Split) -> None:
        rows = open_rows(folder)
        places = {key: place for place, key in enumerate(rows.data.column("step").to_pylist())}
        # a file's rows need not be in the order of their tasks
        self._rows = rows.select([places[key] for key in map(str, split.keys) if key in places])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> PairGroup:
        row = self._rows[place]
        return PairGroup(row["query"], tuple(row["positives"]), tuple(row["negatives"]))


def train_ranker(asked: RankerTraining, watch: Watch | None = None) -> TrainingResult:
    """Raises InputError for what cannot be used. Steps that cannot be learnt from are counted."""
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
        watch.note("loading the model")
        with room_to_write(asked.out, CHECKPOINTS), TrainingProgress(watch) as progress:

            def begin(total: int, done: int) -> None:
                watch.note(f"training: {counted(total - done, 'step')} of the optimizer")
                progress.begin(total, done)

            result = train(
                groups, asked.out, settings, base=base, checkpoint=last_checkpoint(asked.out) if asked.resume else None,
                begin=begin, advance=progress.advance, tell=watch.note, check=check_loss,
            )  # fmt: skip
    if is_main_process():
        # nothing is left to resume
        rmtree(folder, ignore_errors=True)
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
        texts = (text for place in range(len(groups)) for text in (groups[place].query, *groups[place].texts))
        tokenizer = train_tokenizer(texts, shape.vocab_size, shape.max_tokens)
        return build_small(shape, tokenizer), tokenizer

    save_once(folder, asked.out, asked.settings.seed, make)
    return folder
