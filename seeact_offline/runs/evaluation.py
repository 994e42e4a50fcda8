"""A split through ranking, grounding and scoring, into a run directory: what the command, notebooks and tests all call."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from seeact_offline.dataset import Split, canonical_split, open_split
from seeact_offline.dataset.lint import read_findings
from seeact_offline.engines.asking import Answered, ask_step
from seeact_offline.files.markdown import printable
from seeact_offline.files.places import cache_folder
from seeact_offline.grounding import Grounding, Order
from seeact_offline.grounding.strategies import notes
from seeact_offline.models import (
    ModelOptions,
    Price,
    ignored_options,
    image_rule,
    is_free,
    is_known,
    model_identity,
    model_name,
    open_model,
    reports_cost,
)
from seeact_offline.models.breaker import ENOUGH
from seeact_offline.models.budget import Budget, Ledger, priced
from seeact_offline.models.image_tokens import TILES
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import Scores
from seeact_offline.records import (
    ImageFormat,
    InputError,
    Model,
    ModelStopped,
    Prediction,
    Step,
    StepKey,
    StepScore,
    Truth,
)
from seeact_offline.runs.charging import replies_of, sent_usage
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import Made, Manifest, RunFolder
from seeact_offline.runs.groundings import name_of, open_strategy
from seeact_offline.runs.pricing import names_server, quote_of
from seeact_offline.runs.ranking import RankConfig, RankingStage, ranking_stage
from seeact_offline.runs.run import Run
from seeact_offline.runs.runner import run as run_steps
from seeact_offline.runs.selection import asked_of, extent
from seeact_offline.runs.targets import target_of
from seeact_offline.runs.turn1 import ReplySource
from seeact_offline.runs.watch import Steps, Watch
from seeact_offline.scoring.protocols import Protocol, find_protocol
from seeact_offline.scoring.report import counted, replies_in_words, report
from seeact_offline.scoring.results import assemble
from seeact_offline.scoring.step_scores import score_step

REPLIES = "replies.sqlite"
T = TypeVar("T")


def evaluate(config: EvalConfig | None = None, *, watch: Watch | None = None, **options: Any) -> Run:
    """Runs a model over the steps of a split and scores it, as the command `eval` does; the run is in its `out` folder.

    `options` are fields of `EvalConfig`, which win over `config`; `watch` hears how it goes. A run that was stopped goes on
    from its folder and asks for nothing twice. Works inside a running event loop (Jupyter) too.

    Raises InputError for what cannot be used. A step that fails is a counted failure of the results, never an exception.
    """
    config, watch = (config or EvalConfig()).changed(**options), watch or Watch()
    job = open_job(config, watch)
    out = RunFolder(config.out or default_out(config, name_of(config), job.settings["model"]))
    out.check(job.identity)
    with out.alone(), spending(config, out) as budget:
        return _evaluate(config, job, out, budget, watch)


def _evaluate(config: EvalConfig, job: Job, out: RunFolder, budget: Budget, watch: Watch) -> Run:
    """The run in its folder, where no other is at work."""
    state = State(done=done_before(job, out, config))
    asked = asked_of(config, job.split, state.done)
    state.done = {key: prediction for key, prediction in state.done.items() if key not in asked}
    options = model_options(config, out, budget, run_id(job, out))
    model = open_model(config.model, options)
    job = with_dropped(job, dropped_before(out))
    # not before the model is known to be usable: a mistyped one must not claim the folder
    out.claim(job.manifest)
    watch.begun(config.dataset)
    if remark := out.version_remark():
        watch.note(remark)
    watch.note(f"{extent(job.split, job.settings['dataset'])}, model {job.settings['model']}, out {out.path}")
    if state.done:
        done = "step is done already and is not", "steps are done already and are not"
        watch.note(f"{counted(len(state.done), *done)} asked again")
    remarks = getattr(model, "remarks", ())
    for remark in remarks:
        watch.note(remark)
    for name in ignored_options(config.model, model_options(config)):
        watch.note(f"{job.settings['model']} ignores {name}")
    scores = None if job.ranking is None else job.ranking.scores()
    with rare_collections():
        complete = run_coroutine(_ask(config, job, scores, model, options, out, state, asked, budget, watch))
        if not complete and not state.done:
            raise budget.too_small()
        repeats = _ask_repeats(config, job, scores, options, out, budget, watch) if complete else Repeats(False)
    for remark in getattr(model, "remarks", ()):
        if remark not in remarks:
            watch.note(remark)
    dropped = sorted(state.dropped.union(getattr(model, "dropped", ())))
    if dropped:
        watch.note(f"the server does not take {', '.join(dropped)}, which therefore went unsent")
        job = with_dropped(job, dropped)
    replies = note_replies(job, out, [*state.done.values(), *repeats.predictions], budget)
    if replies and asked:
        watch.note(replies_in_words(replies))
    complete = repeats.complete and state.done.keys() >= frozenset(job.split.keys)
    reached = write_predictions(job, out, state) if config.predict_only else write_results(job, out, state, complete)
    failed = sum(not prediction.ran for prediction in repeats.predictions)
    return Run(out.path, failed_repeats=failed, n_left=len(job.split.keys) - reached)


def note_replies(job: Job, out: RunFolder, predictions: Iterable[Prediction], budget: Budget) -> dict[str, Any] | None:
    """Notes in the manifest where the run's replies come from; returns it, None for a model whose replies are not kept."""
    replies = replies_of(predictions, budget.known)
    out.claim(job.with_replies(replies))
    return replies


def done_before(job: Job, out: RunFolder, config: EvalConfig) -> dict[StepKey, Prediction]:
    """What the folder holds. Raises InputError where it holds some that are not asked for now, which
    would be lost."""
    known = {} if is_asked_anew(config) else out.load()
    lost = sorted(known.keys() - frozenset(job.split.keys))
    if lost:
        wanted = f"at least the steps that {out.path} holds"
        raise InputError(
            "limit" if config.task_ids is None else "tasks",
            wanted,
            f"{len(lost)} less, {lost[0]} first; name another folder",
        )
    return known


def is_asked_anew(config: EvalConfig) -> bool:
    """Whether what an earlier run was told says nothing: the model is a function of which nobody knows whether it has changed."""
    is_function = callable(config.model) and not hasattr(config.model, "complete")
    return is_function and not is_known(config.model) and config.step is None and not config.retry_failed


@dataclass(frozen=True)
class Job:
    """What is to be done, opened and checked."""

    split: Split
    ranking: RankingStage | None
    """None where nothing is ranked."""
    grounding: Grounding
    protocol: Protocol
    identity: dict[str, Any]
    """What predictions depend on."""
    settings: dict[str, Any]
    """What the results name."""
    flagged: frozenset[StepKey] | None = None
    """Steps without which the figures are given too; None where that was not asked for."""
    made: Made | None = None

    @property
    def manifest(self) -> Manifest:
        return self.with_replies(None)

    def with_replies(self, replies: dict[str, Any] | None) -> Manifest:
        return Manifest(identity=self.identity, settings=self.settings, made=self.made, replies=replies)


@dataclass
class State:
    """What has been done."""

    done: dict[StepKey, Prediction]
    truths: dict[StepKey, Truth] = field(default_factory=dict)
    """Of every step met so far, in data set order."""
    dropped: set[str] = field(default_factory=set)
    """Parameters that the server has refused."""


def open_job(config: EvalConfig, watch: Watch) -> Job:
    """Raises InputError for a field that cannot be used."""
    protocol = find_protocol(config.protocol, grounded=not config.ungrounded)
    if config.max_cost is not None and config.engine == "ray":
        raise InputError("max_cost", "engine local, where every call is counted before it is made", "ray")
    if config.max_cost is not None and quote_of(config) is None and not reports_cost(config.model):
        got = f"neither, for {model_name(config.model)}"
        raise InputError("max_cost", "a price, or a model that reports what its calls cost", got)
    opened = open_strategy(config)
    split = open_split(config.dataset, config.split, limit=config.limit, tasks=config.task_ids)
    _note_unknown_tasks(config, split, watch)
    ranking = _ranking(config, opened.grounding, split, watch)
    flagged = None if config.exclude_flagged is None else read_findings(config.exclude_flagged) & frozenset(split.keys)
    ranked = {} if ranking is None else {"scores_digest": ranking.digest, "top_k": config.top_k}
    selected = {} if config.task_ids is None else {"tasks": list(config.task_ids)}
    reply_source = opened.reply_source or ReplySource(model_name(config.model), str(config.prompts))
    asked = (
        {"model": reply_source.model} if opened.reply_source else model_identity(config.model, model_options(config))
    )
    identity = {
        "split": split.name, "dataset_fingerprint": split.fingerprint, "data_digest": split.content_digest, **ranked,
        **opened.identity, **asked, "seed": config.seed,
        **({"ask_equal": True} if config.ask_equal and not is_free(config.model) else {}),
    }  # fmt: skip
    grouped = {"merge": config.merge, "top_k": config.top_k, "group_size": config.group_size}
    settings = {
        "split": split.name, "grounding": name_of(config), "model": reply_source.model,
        "ranker": None if ranking is None else _ranker_named(config), "protocol": protocol.name, "prompts": reply_source.prompts,
        **(grouped if ranking is not None else dict.fromkeys(grouped)),
        "seed": config.seed, "limit": config.limit, "dataset": dataset_name(config.dataset),
        "dataset_fingerprint": split.fingerprint, **selected, **opened.shown, **_own_words(config),
    }  # fmt: skip
    return Job(
        split, ranking, opened.grounding, protocol, identity, settings, flagged, _made(config, asked.get("base_url"))
    )


def _made(config: EvalConfig, base_url: str | None) -> Made:
    return Made(
        run=uuid.uuid4().hex,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        command=config.command,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        base_url=base_url,
        ask_equal=model_options(config).asks_each or is_free(config.model),
    )


def _own_words(config: EvalConfig) -> dict[str, Any]:
    words = {"tags": sorted(set(config.tags)), "metadata": dict(sorted(config.metadata.items()))}
    return {name: value for name, value in words.items() if value}


def _ranking(config: EvalConfig, grounding: Grounding, split: Split, watch: Watch) -> RankingStage | None:
    """None, and a remark where scores were named, for a grounding that ranks nothing. Raises InputError."""
    if grounding.needs_ranking:
        return ranking_stage(config, split, watch)
    if config.scores is not None:
        watch.note(f"the score file {config.scores} is not read: this grounding ranks nothing")
    return None


def _ranker_named(config: EvalConfig) -> str:
    """What made the ranks, as results name it."""
    return f"scores/{config.scores.name}" if config.scores is not None else RankConfig.of(config).ranker_name


def _note_unknown_tasks(config: EvalConfig, split: Split, watch: Watch) -> None:
    """Raises InputError where none of the tasks asked for is in the split."""
    if config.task_ids is None:
        return
    unknown = sorted(set(config.task_ids) - set(split.tasks))
    if not split.tasks:
        raise InputError(
            "tasks",
            f"ids of tasks of {config.split}",
            f"{len(config.task_ids)} of which it has none, {unknown[0]} first",
        )
    if unknown and config.limit is None:
        watch.note(
            f"{len(unknown)} of {len(config.task_ids)} tasks asked for are not in {config.split}, {unknown[0]} first"
        )


def dataset_name(dataset: object) -> str:
    """The data set as results name it: the path or id, or an object's kind."""
    return str(dataset) if isinstance(dataset, str | Path) else f"a {type(dataset).__name__}"


def dropped_before(out: RunFolder) -> Collection[str]:
    """Parameters that the server has refused so far."""
    begun = out.begun()
    return () if begun is None else begun.settings.get("dropped_parameters", ())


def with_dropped(job: Job, dropped: Collection[str]) -> Job:
    """The job whose settings say which parameters the server would not take."""
    known = sorted({*job.settings.get("dropped_parameters", ()), *dropped})
    return replace(job, settings=job.settings | {"dropped_parameters": known}) if known else job


def run_id(job: Job, out: RunFolder) -> str:
    """Tells the run from all others, and is the same whenever it is resumed; empty for one of an earlier version."""
    begun = out.begun()
    made = job.made if begun is None else begun.made
    return "" if made is None else made.run


@contextmanager
def spending(config: EvalConfig, out: RunFolder) -> Iterator[Budget]:
    """The budget of the run, with all that its ledger says it has spent. A run of an earlier version has no ledger: its answered
    steps count, and those of the runs in its folder. Raises InputError."""
    price, rule = price_of_run(config), image_rule(config.model) or TILES
    with Ledger(out.ledger, price) as ledger:
        budget = Budget(
            config.max_cost, price, config.max_tokens, lambda size: rule.count(size, config.image_detail), ledger
        )
        if ledger.is_new and not is_free(config.model):
            folders = [out.path, *(path.parent for path in out.path.glob("*/predictions.jsonl"))]
            done = (one for folder in folders for one in RunFolder(folder).load().values())
            budget.add(sum(priced(one.usage, price).cost_usd or 0.0 for one in done))
        yield budget


def price_of_run(config: EvalConfig) -> Price | None:
    """None where it is not known."""
    quote = quote_of(config)
    return None if quote is None else quote.price


def model_options(
    config: EvalConfig, out: RunFolder | None = None, budget: Budget | None = None, run_id: str = ""
) -> ModelOptions:
    """`out`: where paid replies are kept; None: nowhere."""
    return ModelOptions(
        base_url=config.base_url,
        max_tokens=config.max_tokens,
        temperature=config.temperature,
        image_detail=config.image_detail,
        image_format=ImageFormat.read(config.image_format),
        timeout_s=config.timeout,
        max_retries=config.max_retries,
        max_wait_s=config.max_wait,
        fail_on_error=config.fail_on_error,
        concurrency=config.concurrency,
        rpm=config.rpm,
        tpm=config.tpm,
        model_args=config.model_args,
        typed=config.typed,
        cache=None if out is None else reply_store(config, out),
        ask_equal=config.ask_equal,
        run=run_id,
        model_version=config.model_version,
        budget=budget,
        price=price_of_run(config),
        seed=config.seed,
    )


def reply_store(config: EvalConfig, out: RunFolder) -> Path:
    """The file of paid replies: the user's, so that no other run pays for one again, or the run's own. Unless a folder is named,
    it is the run's own where another run is to ask anew: a model that answers by chance, a server on which other weights may have
    the same name, an object that does not say what it is. So it is where the user's folder cannot be written."""
    if config.cache not in ("off", None):
        return Path(config.cache) / REPLIES
    if config.cache == "off" or config.temperature or names_server(config) or not is_known(config.model):
        return out.calls
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return out.calls
    return folder / REPLIES if os.access(folder, os.W_OK) else out.calls


def default_out(config: EvalConfig, what: str, model: str | None = None) -> Path:
    """A name that tells runs apart, below `runs/` in the working folder. `model`: its name, the configuration's unless given."""
    names = [Path(dataset_name(config.dataset)).name, canonical_split(config.split), what]
    names += (model or model_name(config.model)).split("/")[-2:]
    safe = ["".join(c if c.isalnum() or c in "._" else "-" for c in word) for word in names]
    return Path("runs") / "-".join(safe)


async def _ask(
    config: EvalConfig,
    job: Job,
    scores: Scores | None,
    model: Model,
    options: ModelOptions,
    out: RunFolder,
    state: State,
    asked: Collection[StepKey],
    budget: Budget,
    watch: Watch,
) -> bool:
    """Asks these steps. False when the cost limit left some over."""

    async def work(step: Step) -> Prediction:
        # before it asks, so that what others have answered by then is kept
        stop_on_errors(config, state.done.values(), ENOUGH)
        answered = await ask(step)
        state.truths[step.key] = answered.truth
        state.dropped.update(answered.dropped)
        return answered.prediction

    def finished(prediction: Prediction) -> None:
        if engine == "ray":
            # its workers cannot write to the ledger
            budget.add(sent_usage(prediction).cost_usd or 0.0)
        out.append(prediction, state.truths[prediction.key])
        state.done[prediction.key] = prediction
        progress.add(prediction, score(job, state, prediction))

    # no Ray is started for nothing
    engine = config.engine if asked else "local"
    try:
        async with _asking(engine, config, job, scores, model, options, watch) as ask:
            with out, watch.steps(len(job.split.keys), str(job.settings["split"])) as progress:
                steps = _open_steps(job, state, asked, out.load_targets(), progress)
                complete = await run_steps(steps, work, finished, config.concurrency, budget.has_room)
                for _ in steps:
                    # what an earlier run has done beyond the first step left over stays in the files
                    pass
                stop_on_errors(config, state.done.values())
                return complete
    finally:
        await model.aclose()


def stop_on_errors(config: EvalConfig, done: Collection[Prediction], enough: int = 0) -> None:
    """Raises ModelStopped where more than `fail_on_error` of the steps that were put to the model, or of `enough` steps where
    there are fewer, ended in an error of the model."""
    if config.fail_on_error is None:
        return
    asked = [prediction for prediction in done if prediction.ran or prediction.stage != "row"]
    failed = [prediction for prediction in asked if not prediction.ran]
    if len(failed) > config.fail_on_error * max(len(asked), enough):
        share = f"at most {config.fail_on_error:.0%} of steps to end in an error, not {len(failed)} of {len(asked)}"
        raise ModelStopped("model", share, f"{failed[0].failure}: {failed[0].detail}")


@asynccontextmanager
async def _asking(
    engine: str,
    config: EvalConfig,
    job: Job,
    scores: Scores | None,
    model: Model,
    options: ModelOptions,
    watch: Watch,
) -> AsyncIterator[Callable[[Step], Coroutine[Any, Any, Answered]]]:
    """What asks a step: the model, or those of Ray's workers, opened with the same options. Raises InputError."""
    if engine == "local":
        yield lambda step: ask_step(step, scores, config.top_k, job.grounding, model)
        return
    from seeact_offline.engines.ray import Workers
    from seeact_offline.engines.ray_asking import Asking, open_asking

    workers = Workers(config.address, config.score_workers, gpus_each=config.gpus_per_worker)
    asking = Asking(config.model, replace(options, budget=None), job.grounding, config.top_k)
    async with open_asking(asking, workers) as opened:
        watch.note(f"Ray: {opened.askers}")
        yield lambda step: opened.ask(step, scores)


def _open_steps(
    job: Job, state: State, asked: Collection[StepKey], known: Mapping[StepKey, Truth], progress: Steps
) -> Iterator[Step]:
    """Streams the split, notes what was right, and gives the steps to be asked. `known`: what was noted before."""
    for step in job.split.steps():
        state.truths[step.key] = step.truth
        if step.key in asked:
            yield step
        elif step.key in state.done:
            state.truths[step.key] = known.get(step.key) or target_of(step, partial(Page, step.cleaned_html))
            progress.add(state.done[step.key], score(job, state, state.done[step.key]), resumed=True)


@dataclass(frozen=True, slots=True)
class Repeats:
    """What runs of the same steps in other orders came to."""

    complete: bool
    """Whether the cost limit left no step over."""
    predictions: Sequence[Prediction] = ()


def _ask_repeats(
    config: EvalConfig,
    job: Job,
    scores: Scores | None,
    options: ModelOptions,
    out: RunFolder,
    budget: Budget,
    watch: Watch,
) -> Repeats:
    """The same steps in other orders, each in a folder of its own. Budget and kept replies are those of the first order."""
    predictions: list[Prediction] = []
    for number in range(1, config.shuffle_groups + 1):
        again, folder = _repeat(config, job, number), out.repeat(number)
        folder.claim(again.manifest)
        known = State(done=done_before(again, folder, config))
        asked = asked_of(config, job.split, known.done)
        known.done = {key: prediction for key, prediction in known.done.items() if key not in asked}
        watch.note(f"order {number} of {config.shuffle_groups}: {counted(len(asked), 'step')} to ask")
        model = open_model(config.model, options)
        complete = run_coroutine(_ask(config, again, scores, model, options, folder, known, asked, budget, watch))
        write_results(again, folder, known, complete)
        predictions += known.done.values()
        if not complete:
            return Repeats(False, predictions)
    return Repeats(True, predictions)


def _repeat(config: EvalConfig, job: Job, number: int) -> Job:
    opened = open_strategy(config, Order(config.seed, number))
    mark = {"shuffled": number}
    identity, settings = job.identity | mark, job.settings | mark
    return replace(job, grounding=opened.grounding, identity=identity, settings=settings, flagged=None)


def score(job: Job, state: State, prediction: Prediction) -> StepScore:
    return score_step(prediction, state.truths[prediction.key], job.protocol)


def write_predictions(job: Job, out: RunFolder, state: State) -> int:
    """Puts what was reached into order, unscored; returns how many steps that were."""
    order = [key for key in job.split.keys if key in state.done and key in state.truths]
    out.order([state.done[key] for key in order], [state.truths[key] for key in order])
    return len(order)


def write_results(job: Job, out: RunFolder, state: State, complete: bool) -> int:
    """Scores what was reached and writes all files of the run; returns how many steps that were."""
    order = [key for key in job.split.keys if key in state.done and key in state.truths]
    predictions, truths = [state.done[key] for key in order], [state.truths[key] for key in order]
    made = assemble(
        predictions,
        truths,
        job.protocol,
        job.settings,
        complete=complete,
        flagged=job.flagged,
        orders=out.finished_repeats(truths),
    )
    out.order(predictions, truths)
    out.write_scores(made.rows, made.results, printable(report(made.results, made.rows, notes())))
    out.remember_flagged(job.flagged)
    return len(order)


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Runs it to its end, in a thread of its own where this one has a running event loop already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
