"""Training of a ranker: texts made once, on disk, and a training that is resumed only as it was begun."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import pyarrow as pa

from seeact_offline.dataset import Shard, Split, canonical_split, open_split
from seeact_offline.files import hub
from seeact_offline.ranking.pair_groups import (
    PairGroup,
    RankerError,
    SmallModel,
    TrainingResult,
    TrainingSettings,
    TrialGroup,
    build_small,
    folder_digest,
    open_base,
    to_group,
    to_trial,
    train,
    train_tokenizer,
)
from seeact_offline.ranking.rankers import checkpoint_folder, is_on_hub
from seeact_offline.ranking.stage import extent
from seeact_offline.ranking.texts import TEXT_VERSION
from seeact_offline.records import DatasetError, InputError, RowError
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import counted
from seeact_offline.training.checks import check_bf16, check_installed
from seeact_offline.training.progress import TrainingProgress
from seeact_offline.training.trainer import (
    CHECKPOINTS,
    DATA,
    check_loss,
    check_out,
    claim_out,
    is_main_process,
    last_checkpoint,
    prepared_once,
    room_to_write,
    save_once,
)
from seeact_offline.training.training_rows import RowCounts, StepRows, open_rows, parts_of, prepare, prepared

BASE = "microsoft/deberta-v3-base"
TRIED, TRIED_STEPS = "cross_task", 30
"""The split on which the ranker is tried after each epoch, and so many of its steps."""
OF_MACHINE = frozenset({"accumulate", "bf16", "threads"})
"""Settings that would not change the weights in exact arithmetic."""


@dataclass(frozen=True, slots=True)
class RankerTraining:
    """The options of a ranker's training."""

    out: Path
    base: str | SmallModel = BASE
    """A checkpoint's folder or hub id, or the shape of a model that begins with random weights."""
    dataset: Any = "sample"
    split: str = "train"
    limit: int | None = None
    """Number of tasks, the first ones; None: all."""
    settings: TrainingSettings = field(default_factory=TrainingSettings)
    resume: bool = False
    processes: int = 1
    """Processes that prepare the texts."""


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
                yield StepRows(RowCounts(left_out=Counter([error.name])))
                continue
            if group is None:
                yield StepRows(RowCounts(left_out=Counter(["no_negative" if step.truth.positives else "no_positive"])))
                continue
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
        check_bf16()
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
        with room_to_write(asked.out, CHECKPOINTS), TrainingProgress(watch) as progress:

            def begin(total: int, done: int) -> None:
                watch.note(f"training: {counted(total - done, 'step')} of the optimizer")
                progress.begin(total, done)

            result = train(
                groups, asked.out, settings, base=base, checkpoint=last_checkpoint(asked.out) if asked.resume else None,
                begin=begin, advance=progress.advance, tell=watch.note, check=check_loss,
                trial=trial,
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


def _read_trial(asked: RankerTraining, watch: Watch) -> list[TrialGroup]:
    """Steps of a test split, spread evenly over it; none where the data has no such split or it is the one trained on."""
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
