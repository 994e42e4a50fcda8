"""A configuration resolved into everything that a run needs. Nothing after `open_run` takes a configuration."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from seeact_offline.dataset import Split, canonical_split, open_split
from seeact_offline.files.named import read_text
from seeact_offline.grounding import Grounding, Order
from seeact_offline.models import model_name
from seeact_offline.models.provider import is_function
from seeact_offline.ranking import Scores
from seeact_offline.ranking.stage import LOCAL, RankingStage, Workers, dataset_name, ranking_stage
from seeact_offline.records import InputError, Prediction, StepKey
from seeact_offline.runs.config import EvalConfig, own_words
from seeact_offline.runs.folder import Made, Manifest, RunFolder
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.runs.strategy_opening import OpenedStrategy, check_pages, check_ranking, open_strategy
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.protocols import Protocol, find_protocol


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The steps to ask, how many at once, and where."""

    top_k: int
    """Candidates that a step is prepared with."""
    concurrency: int
    """Most steps under way."""
    fail_on_error: float | None
    """The run stops once more than this share (0 to 1) of its steps ends in an error of
    the model; None: never for that."""
    workers: Workers | None = None
    """Those of an engine, with a model each; None: this process asks."""
    engine: str = LOCAL
    named: frozenset[StepKey] | None = None
    """Steps to ask, answered before or not; None: those without an answer."""
    retry_failed: bool = False
    """Asks only the steps that failed to run before."""
    anew: bool = False
    """Answers of an earlier run are not used: nobody knows whether the model has changed."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is opened and checked."""

    split: Split
    ranking: RankingStage | None
    """None where nothing is ranked."""
    grounding: Grounding
    repeats: tuple[Grounding, ...]
    """The grounding in other orders of groups and choices, one per repeat."""
    model: ModelSettings
    protocol: Protocol
    folder: RunFolder
    manifest: Manifest
    asking: AskOptions
    flagged: frozenset[StepKey] | None = None
    """Steps without which the figures are given too; None: not asked for."""
    predict_only: bool = False
    """Nothing is scored; `score` does so later."""
    estimate_remark: str = ""
    """A sentence on what the grounding's number of calls depends on; empty for none."""

    def repeat(self, number: int) -> OpenRun:
        """The same steps in another order, in a folder of its own; `number` from 1."""
        mark = {"shuffled": number}
        return replace(
            self,
            grounding=self.repeats[number - 1],
            repeats=(),
            folder=self.folder.repeat(number),
            manifest=self.manifest.changed(identity=mark, settings=mark),
            flagged=None,
        )

    def scores(self) -> Scores | None:
        """Ranks what is not ranked yet; None where nothing is ranked. Raises InputError."""
        return None if self.ranking is None else self.ranking.scores()

    def known(self) -> dict[StepKey, Prediction]:
        """The predictions that the folder holds. Raises InputError where some are of steps that are not asked for now,
        which would be lost."""
        predictions = {} if self.asking.anew else self.folder.load(with_calls=True)
        lost = sorted(predictions.keys() - frozenset(self.split.keys))
        if lost:
            name = next((name for name in ("sample", "tasks") if name in self.manifest.settings), "limit")
            raise InputError(
                name,
                sentence=f"{self.folder.path} holds {len(lost)} steps that `{name}` leaves out,"
                f" {lost[0]} first; name another folder",
            )
        return predictions

    def to_ask(self, predictions: Mapping[StepKey, Prediction]) -> frozenset[StepKey]:
        """The steps to ask, given what the folder holds."""
        if self.asking.named is not None:
            return self.asking.named
        failed = frozenset(key for key, prediction in predictions.items() if prediction.has_failed)
        return failed if self.asking.retry_failed else failed | (frozenset(self.split.keys) - predictions.keys())

    @property
    def id(self) -> str:
        """Tells the run from all others, and is the same whenever it is resumed."""
        made = (self.folder.begun() or self.manifest).made
        return "" if made is None else made.run

    def with_dropped(self, dropped: Iterable[str]) -> OpenRun:
        """The run whose settings say which parameters the server refuses, with those that it has refused before."""
        begun = self.folder.begun()
        before = () if begun is None else begun.settings.get("dropped_parameters", ())
        parameters = sorted({*before, *self.manifest.settings.get("dropped_parameters", ()), *dropped})
        changed = self.manifest.changed(settings={"dropped_parameters": parameters}) if parameters else self.manifest
        return replace(self, manifest=changed)


def open_run(config: EvalConfig, watch: Watch) -> OpenRun:
    """Opens everything that a run needs, and sends nothing. Raises InputError for a field that cannot be used."""
    protocol = find_protocol(config.protocol or config.find_strategy().protocol, grounded=not config.ungrounded)
    opened = open_strategy(config)
    source = opened.reply_source
    folder = run_folder(config, source.model if source else None)
    model = model_settings(config, folder)
    if config.max_cost is not None and config.engine != LOCAL:
        raise InputError(
            "max_cost", sentence="`max_cost` needs `engine` local, where every call is counted before it is made"
        )
    model.check_limit()
    if config.grounder is not None and not opened.grounding.asks_grounder:
        raise InputError("grounder", sentence="`grounder` needs an agent that describes elements, such as uground")
    check_ranking(config)
    split = selected_split(config)
    check_pages(config, split)
    if config.task_ids is not None:
        unknown = sorted(set(config.task_ids) - set(split.tasks))
        if not split.tasks:
            got = f"{len(config.task_ids)} of which it has none, {unknown[0]} first"
            raise InputError("tasks", f"ids of tasks of {config.split}", got)
        if unknown and config.limit is None and config.sample is None:
            missing = f"{len(unknown)} of {len(config.task_ids)} tasks asked for are not in {config.split}"
            watch.note(f"{missing}, {unknown[0]} first")
    asking = _ask_options(config, split, model)
    ranking = None
    if opened.grounding.needs_ranking:
        # pages of other tasks may not even be on this machine
        asked = split if asking.named is None else split.only({key.annotation_id for key in asking.named})
        ranking = ranking_stage(config, config.scores, asked, watch)
    elif config.scores is not None:
        watch.note(f"the score file {config.scores} is not read: this grounding ranks nothing")
    manifest = _manifest(config, split, ranking, opened, protocol, model)
    if config.out is None:
        folder = numbered_folder(folder, lambda candidate: candidate.suits(manifest.identity, split.keys), watch)
        model = model_settings(config, folder)
    flagged = None
    if config.exclude_flagged is not None:
        from seeact_offline.dataset.lint import read_findings

        flagged = read_findings(config.exclude_flagged) & {*split.keys}
    orders = [Order(config.seed, number) for number in range(1, config.repeats + 1)]
    return OpenRun(
        split=split,
        ranking=ranking,
        grounding=opened.grounding,
        repeats=tuple(open_strategy(config, order).grounding for order in orders),
        model=model,
        protocol=protocol,
        folder=folder,
        manifest=manifest,
        asking=asking,
        flagged=flagged,
        predict_only=config.predict_only,
        estimate_remark=config.find_strategy().estimate_remark,
    )


def selected_split(config: EvalConfig) -> Split:
    """Opens the split with the tasks that the configuration takes. Raises DatasetError."""
    split = open_split(config.dataset, config.split, limit=config.limit, tasks=config.task_ids)
    return split if config.sample is None else split.drawn(config.sample, config.seed)


def run_folder(config: EvalConfig, model: str | None = None, what: str | None = None) -> RunFolder:
    """The folder that the configuration names, else one below `runs/` in the working
    folder whose name tells runs apart.

    `model`, `what`: in this name, instead of the configuration's model and grounding.
    """
    if config.out is not None:
        return RunFolder(config.out)
    names = [Path(dataset_name(config.dataset)).name, canonical_split(config.split)]
    names += [what or config.find_strategy().title]
    names += (model or model_name(config.model)).split("/")[-2:]
    return RunFolder(Path("runs") / "-".join(map(safe_name, names)))


def numbered_folder(named: RunFolder, suits: Callable[[RunFolder], bool], watch: Watch) -> RunFolder:
    """The first that suits of the folder, and of `-2`, `-3`, ... beside it; says so where it is another one."""
    if suits(named):
        return named
    beside = (RunFolder(named.path.with_name(f"{named.path.name}-{number}")) for number in count(2))
    folder = next(candidate for candidate in beside if suits(candidate))
    watch.note(f"{named.path} holds a run of another configuration or of more steps: this one goes to {folder.path}")
    return folder


def variant_of(run: OpenRun, config: EvalConfig, folder: RunFolder) -> OpenRun:
    """The same steps and ranking by another grounding, or another second model. `folder`:
    where all such runs keep replies.

    Raises InputError.
    """
    opened, model = open_strategy(config), model_settings(config, folder)
    own = _manifest(config, run.split, run.ranking, opened, run.protocol, model)
    manifest = Manifest(identity=own.identity, settings=own.settings, made=run.manifest.made)
    return replace(run, grounding=opened.grounding, model=model, manifest=manifest)


def safe_name(text: str) -> str:
    """The text as a part of a file's name."""
    return "".join(c if c.isalnum() or c in "._" else "-" for c in text)


def _manifest(
    config: EvalConfig,
    split: Split,
    ranking: RankingStage | None,
    opened: OpenedStrategy,
    protocol: Protocol,
    model: ModelSettings,
) -> Manifest:
    source = opened.reply_source
    asked = {"model": source.model} if source else model.source.identity(model.options)
    ranked = {} if ranking is None else {"scores_digest": ranking.digest, "top_k": config.top_k}
    identity = {
        "split": split.name, "dataset_fingerprint": split.fingerprint, "data_digest": split.content_digest, **ranked,
        **opened.identity, **asked, "seed": config.seed,
        **({"ask_equal": True} if config.ask_equal and not model.is_free else {}),
    }  # fmt: skip
    second = model.grounder
    if second is not None:
        identity[second.role] = second.source.identity(second.options)
    ranker = None
    if ranking is not None:
        ranker = f"scores/{config.scores.name}" if config.scores is not None else config.pinned_ranker
    grouped = {"merge": config.merge, "top_k": config.top_k, "group_size": config.group_size}
    settings = {
        "split": split.name, "grounding": opened.name, "model": source.model if source else model.name,
        "ranker": ranker, "protocol": protocol.name,
        "prompts": source.prompts if source else str(config.prompts),
        **(grouped if ranking is not None else dict.fromkeys(grouped)),
        "seed": config.seed, "limit": config.limit, "dataset": dataset_name(split.dataset),
        "dataset_fingerprint": split.fingerprint,
        **({} if config.sample is None else {"sample": config.sample}),
        **({} if split.wanted is None else {"tasks": sorted(split.wanted)}),
        **({} if second is None else {second.role: second.name}), **opened.shown,
        **own_words(config.label, config.tags, config.metadata),
    }  # fmt: skip
    made = Made(
        run=uuid.uuid4().hex, date=datetime.now(UTC).isoformat(timespec="seconds"), command=config.command,
        temperature=config.temperature, max_tokens=config.max_tokens, base_url=asked.get("base_url"),
        ask_equal=model.asks_each,
    )  # fmt: skip
    return Manifest(identity=identity, settings=settings, made=made)


def _ask_options(config: EvalConfig, split: Split, model: ModelSettings) -> AskOptions:
    """Reads how steps are asked, and which. Raises InputError for a step that is not in the split, and for a file of
    ids that cannot be read."""
    named, ids = None, config.step
    if ids is not None:
        keys = {str(key): key for key in split.keys}
        if isinstance(ids, str):
            wanted = "a file with the id of a step a line"
            ids = read_text("step", Path(ids[1:]), wanted).splitlines() if ids[:1] == "@" else ids.split(",")
        ids = tuple(dict.fromkeys(text.strip() for text in ids if text.strip()))
        if not ids:
            raise InputError("step", "at least one id of a step, annotation_id_action_uid", "none")
        unknown = [name for name in ids if name not in keys]
        if unknown:
            got = f"{len(unknown)} of which it has none, {unknown[0]} first"
            raise InputError("step", f"ids of steps of {split.name}", got)
        named = frozenset(keys[name] for name in ids)
    workers = None
    if config.engine != LOCAL:
        workers = Workers(config.address, config.score_workers, gpus_each=config.gpus_per_worker)
    is_new = is_function(config.model) and not model.source.provider.is_known
    return AskOptions(
        **{name: getattr(config, name) for name in ("top_k", "fail_on_error", "engine", "retry_failed")},
        concurrency=model.options.concurrency, workers=workers, named=named,
        anew=is_new and named is None and not config.retry_failed,
    )  # fmt: skip
