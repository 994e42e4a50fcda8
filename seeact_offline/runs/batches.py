"""`eval --batch`: a run whose calls are files. Each pass over the split answers what it can from the store of paid replies, and
writes what is missing into the next wave: turn 1 of all groups of all steps, then turn 2, then the final rounds.

A step that has all of its replies goes into the run directory as that of a live run does; a pass that finds nothing missing
ends the run, and its files are those of a live run with the same replies.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import read_regular
from seeact_offline.files.redaction import redact_values
from seeact_offline.files.whole import replace_text
from seeact_offline.grounding.conversation import in_thread
from seeact_offline.models import model_name
from seeact_offline.models.batch import BatchCodec, BatchModel, PendingRequest, read_result
from seeact_offline.models.batch_api import BatchApi, BatchState
from seeact_offline.models.budget import Budget
from seeact_offline.models.failures import Failure, scrubbed
from seeact_offline.models.http_client import MAX_REPLY_BYTES
from seeact_offline.models.reply_cache import CachedReply, ReplyStore
from seeact_offline.pages.dom import Page
from seeact_offline.ranking import Scores
from seeact_offline.records import InputError, Prediction, RowError, Step, StepKey
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluation import (
    Job,
    State,
    default_out,
    done_before,
    dropped_before,
    model_options,
    note_replies,
    open_job,
    reply_store,
    run_coroutine,
    run_id,
    score,
    spending,
    with_dropped,
    write_predictions,
    write_results,
)
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.groundings import name_of
from seeact_offline.runs.run import Run
from seeact_offline.runs.runner import answer, preparing
from seeact_offline.runs.selection import asked_of
from seeact_offline.runs.targets import target_of
from seeact_offline.runs.watch import Steps, Watch
from seeact_offline.runs.waves import BatchFolder, Closing, Shard, ShardLimits, Wave, WaveWriter, result_lines

BatchAction = Literal["export", "import", "submit"]
BATCH_ACTIONS: tuple[BatchAction, ...] = get_args(BatchAction)
MOST_PROBLEMS = 20
"""Lines that are described; all are counted."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one call came to."""

    folder: Path
    wave: int | None = None
    """The one that was written or read; None where there is none."""
    files: tuple[Path, ...] = ()
    """Of requests, written now."""
    requests: int = 0
    """Written now."""
    turns: Mapping[str, int] = field(default_factory=dict)
    """Those by what they ask: `turn 1`, `turn 2`."""
    steps_waiting: int = 0
    read: int = 0
    """Replies that are new in the store, those among them with which the model declined."""
    known: int = 0
    """Replies that the store had already."""
    answered: int = 0
    """Requests of the wave that have a reply now."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Requests of the wave that came back without a reply, by the failure's name."""
    lost: int = 0
    """Requests of the wave of which nothing came back."""
    given_up: int = 0
    """Those of `failed` that are not asked again, as the server would refuse them again: their steps fail."""
    odd: Mapping[str, int] = field(default_factory=dict)
    """Lines that were of no use: `unknown` (of no wave of this folder), `duplicate`, `malformed`."""
    problems: tuple[str, ...] = ()
    """Some of the above in words: file, line, what was found."""
    dropped: tuple[str, ...] = ()
    """Parameters of ours that the server refused: the next wave comes without them."""
    run: Run | None = None
    """The finished run; None while replies are missing."""

    @property
    def progress(self) -> bool:
        """Whether another wave would be another one. New replies alone do not tell: a call that was killed may have read them."""
        return bool(self.answered or self.given_up or self.dropped)

    @property
    def text(self) -> str:
        """For people: a line or more."""
        lines = []
        if self.files:
            turns = ", ".join(f"{count} of {name}" for name, count in sorted(self.turns.items()))
            lines.append(
                f"wave {self.wave}: {self.requests} requests ({turns}) of {self.steps_waiting} steps in {len(self.files)}"
                f" file{'s' * (len(self.files) > 1)}, {self.files[0]}{' first' * (len(self.files) > 1)}"
            )
        elif self.run is None:
            found = f"{self.read} new replies, {self.known} known before, {sum(self.failed.values())} failed, {self.lost} missing"
            lines.append(f"wave {self.wave}: {found}")
            lines += [f"{count} x {name}" for name, count in sorted(self.failed.items())]
        lines += [f"{count} lines {name}" for name, count in sorted(self.odd.items())]
        if self.dropped:
            lines.append(f"the server refuses {', '.join(self.dropped)}: left out from the next wave on")
        return "\n".join([*lines, *self.problems])


def run_batch(
    config: EvalConfig,
    action: BatchAction,
    folder: Path,
    watch: Watch | None = None,
    *,
    limits: ShardLimits | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> BatchReport:
    """One action on the batches of a run, which lie in `folder`. Any of them may be killed and called again.

    export: writes what is missing as the next wave, or ends the run where nothing is. import: reads what came back into the
    store of paid replies. submit: drives a server's batches, wave after wave, until the run has ended or a wave brings nothing.

    Raises InputError; ModelStopped where the server answers nothing.
    """
    watch, folder = watch or Watch(), Path(folder)
    if action not in BATCH_ACTIONS:
        raise InputError("batch", f"one of {', '.join(BATCH_ACTIONS)}", repr(action))
    for name, usual in (("repeats", 0), ("max_cost", None), ("engine", "local")):
        if getattr(config, name) != usual:
            raise InputError(name, f"{usual or 'none'} with batch", str(getattr(config, name)))
    batches = BatchFolder(folder)
    # before a folder is made: a mistyped model must not claim one
    BatchCodec(config.model, model_options(config))
    with batches.alone():
        if action == "export":
            return _export(config, batches, watch, limits or ShardLimits())
        if action == "import":
            return _import(config, batches)
        return _submit(config, batches, watch, limits or ShardLimits(), sleep)


def _codec(config: EvalConfig, batches: BatchFolder) -> BatchCodec:
    closings = batches.closings()
    return BatchCodec(config.model, model_options(config), closings[-1].refusals if closings else ())


def _out(config: EvalConfig) -> RunFolder:
    return RunFolder(config.out or default_out(config, name_of(config), model_name(config.model)))


# --- export ---


@dataclass(frozen=True, slots=True)
class _Asked:
    """One step of a pass."""

    step: Step
    prediction: Prediction
    lines: tuple[tuple[PendingRequest, bytes], ...]
    """Its requests without a reply."""


def _export(config: EvalConfig, batches: BatchFolder, watch: Watch, limits: ShardLimits) -> BatchReport:
    job = open_job(config, watch)
    out = RunFolder(config.out or default_out(config, name_of(config), job.settings["model"]))
    out.check(job.identity)
    codec = _codec(config, batches)
    with out.alone():
        # as a live run names them, and those that a live run has named in this folder
        job = with_dropped(job, [*dropped_before(out), *codec.dropped])
        out.claim(job.manifest)
        replies = ReplyStore(reply_store(config, out), str(codec.identity["model"]), run_id(job, out))
        for remark in replies.remarks:
            watch.note(remark)
        writer = batches.writer(_next(batches), limits)
        try:
            state, waiting = _pass(config, job, out, codec, replies, _given_up(batches), writer, watch)
            wave = writer.finish(codec.url, codec.identity)
        finally:
            writer.close()
            replies.close()
        if wave is None:
            return BatchReport(batches.path, run=_ended(config, job, out, state))
    files = tuple(wave.path / shard.file for shard in wave.file.shards)
    return BatchReport(batches.path, wave.number, files, writer.requests, dict(writer.turns), steps_waiting=waiting)


def _ended(config: EvalConfig, job: Job, out: RunFolder, state: State) -> Run:
    """The run, none of whose replies is missing."""
    complete = state.done.keys() >= frozenset(job.split.keys)
    with spending(config, out) as budget:
        note_replies(job, out, state.done.values(), budget)
    reached = write_predictions(job, out, state) if config.predict_only else write_results(job, out, state, complete)
    return Run(out.path, n_left=len(job.split.keys) - reached)


def _next(batches: BatchFolder) -> int:
    """The number of the wave to write: a new one, or the last one again where nobody has carried it out. Raises InputError."""
    waves = batches.waves()
    if not waves or waves[-1].is_closed:
        return waves[-1].number + 1 if waves else 1
    last = waves[-1]
    if last.submitted.exists():
        raise InputError(
            "batch", "no wave under way", f"{last.path}, which is submitted; submit again to go on with it"
        )
    came = next((path for path in batches.results([last]) if path.parent == last.path), None)
    if came is not None:
        raise InputError("batch", "replies that are imported", f"{came}, which is not; import it first")
    return last.number


def _given_up(batches: BatchFolder) -> dict[str, tuple[str, str]]:
    return {key: said for closing in batches.closings() for key, said in closing.failed.items()}


def _pass(
    config: EvalConfig,
    job: Job,
    out: RunFolder,
    codec: BatchCodec,
    replies: ReplyStore,
    given_up: Mapping[str, tuple[str, str]],
    writer: WaveWriter,
    watch: Watch,
) -> tuple[State, int]:
    """The steps that are to be asked: what is known of all now, and how many wait for replies."""
    state = State(done=done_before(job, out, config))
    asked = asked_of(config, job.split, state.done)
    state.done = {key: prediction for key, prediction in state.done.items() if key not in asked}
    watch.begun(config.dataset)
    model = BatchModel(codec, replies, given_up)
    scores = None if job.ranking is None else job.ranking.scores()
    with rare_collections():
        waiting = run_coroutine(_ask(config, job, scores, model, codec, out, state, asked, writer, watch))
    return state, waiting


async def _ask(
    config: EvalConfig,
    job: Job,
    scores: Scores | None,
    model: BatchModel,
    codec: BatchCodec,
    out: RunFolder,
    state: State,
    asked_for: Collection[StepKey],
    writer: WaveWriter,
    watch: Watch,
) -> int:
    """In data set order, so that a wave is the same bytes whatever the concurrency. How many steps wait."""

    async def work(step: Step) -> _Asked:
        ready = preparing(step, scores, config.top_k, job.grounding)
        prediction = await answer(step, ready, job.grounding, model)
        state.truths[step.key] = await in_thread(target_of, step, lambda: ready().page)
        return await _with_lines(step, prediction, model.missing(step.key), codec)

    waiting = 0
    with out, watch.steps(len(job.split.keys), str(job.settings["split"])) as progress:
        async for asked in in_order(_left(job, out, state, asked_for, progress), work, config.concurrency):
            for missing, line in asked.lines:
                await in_thread(writer.add, missing, line)
            if asked.lines:
                waiting += 1
                continue
            out.append(asked.prediction, state.truths[asked.step.key])
            state.done[asked.step.key] = asked.prediction
            progress.add(asked.prediction, score(job, state, asked.prediction))
    return waiting


async def _with_lines(
    step: Step, prediction: Prediction, missing: Iterable[PendingRequest], codec: BatchCodec
) -> _Asked:
    """The step with its requests. One whose picture cannot be encoded is in no wave: the step fails as in a live run, once the
    others are answered."""
    lines, fault = [], None
    for one in missing:
        try:
            lines.append((one, await codec.line(one.key, one.request)))
        except RowError as error:
            fault = fault or error
    if fault is not None:
        prediction = replace(prediction, failure=fault.name, detail=fault.detail, failed_in=fault.stage)
    return _Asked(step, prediction, tuple(lines))


def _left(job: Job, out: RunFolder, state: State, asked: Collection[StepKey], progress: Steps) -> Iterable[Step]:
    """Streams the split, notes what was right, and gives the steps to be asked."""
    known = out.load_targets()
    for step in job.split.steps():
        state.truths[step.key] = step.truth
        if step.key in asked:
            yield step
        elif step.key in state.done:
            state.truths[step.key] = known.get(step.key) or target_of(step, partial(Page, step.cleaned_html))
            progress.add(state.done[step.key], score(job, state, state.done[step.key]), resumed=True)


async def in_order(
    given: Iterable[Step], work: Callable[[Step], Coroutine[Any, Any, T]], at_once: int
) -> AsyncIterator[T]:
    """What `work` makes of each, in their order, at most so many at once."""
    tasks: deque[asyncio.Task[T]] = deque()
    source = iter(given)
    try:
        while (step := await in_thread(next, source, None)) is not None:
            tasks.append(asyncio.ensure_future(work(step)))
            if len(tasks) >= at_once:
                yield await tasks.popleft()
        while tasks:
            yield await tasks.popleft()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# --- import ---


@dataclass
class _Reader:
    """Reads files of what came back into the store of paid replies."""

    keys: frozenset[str]
    """Of all requests that were ever written."""
    replies: ReplyStore
    budget: Budget
    codec: BatchCodec
    sent: tuple[str, ...]
    """Names of the parameters that the requests may have held."""
    new: int = 0
    """Replies that are new in the store."""
    known: int = 0
    """Replies that it had."""
    answered: set[str] = field(default_factory=set)
    """Keys with a reply among the lines read."""
    failed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Keys without one -> the last failure's name, what was said."""
    lasting: set[str] = field(default_factory=set)
    """Those of `failed` that would be refused again."""
    odd: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Raises InputError for a file that cannot be read, or a store that cannot be written."""
        try:
            for number, line in result_lines(path):
                if line is None or line.strip():
                    self._read_line(f"line {number} of {path.name}", line)
        except OSError as error:
            raise InputError("batch", "a file that can be read", f"{path}: {error.strerror}") from None

    def _read_line(self, where: str, line: bytes | None) -> None:
        try:
            if line is None:
                raise ValueError("longer than any reply may be")
            result = read_result(line, self.codec)
        except ValueError as error:
            cut = "" if line is None or line.endswith(b"\n") else ", cut short"
            self._count_odd("malformed", f"{where}{cut}: {error}")
            return
        kept = result.kept
        if result.key not in self.keys:
            self._count_odd("unknown", f"{where}: {result.key[:80]}")
        elif result.key in self.answered and kept is not None:
            self._count_odd("duplicate", f"{where}: {result.key}")
        elif kept is not None:
            self._keep(result.key, kept)
        elif isinstance(result.outcome, Failure) and result.key not in self.answered:
            self._note_failure(where, result.key, result.outcome)

    def _keep(self, key: str, kept: CachedReply) -> None:
        self.answered.add(key)
        self.failed.pop(key, None)
        if self.replies.get(key) is None:
            self.budget.add(kept.usage.cost_usd or 0.0)
            self.replies.put(key, kept)
            self.new += 1
        else:
            self.known += 1

    def _note_failure(self, where: str, key: str, failure: Failure) -> None:
        if key not in self.failed:
            self._describe(f"{failure.name}: {where}: {failure.detail}")
        self.failed[key] = failure.name, failure.detail
        # asked without that parameter, it may well be answered
        gives_way = self.codec.give_way(self.sent, failure)
        refused = failure.name == "bad_request" and not failure.hopeless and not gives_way
        (self.lasting.add if refused else self.lasting.discard)(key)

    def _count_odd(self, kind: str, text: str) -> None:
        self.odd[kind] += 1
        self._describe(f"{kind}: {text}")

    def _describe(self, text: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(scrubbed(text))


def _import(config: EvalConfig, batches: BatchFolder) -> BatchReport:
    """Reads every file that came back, those of earlier waves too: what is known already is counted, and left as it is."""
    waves, codec = batches.waves(), _codec(config, batches)
    if not waves:
        raise InputError("batch", "a folder with an exported wave", str(batches.path))
    last, dropped_before = waves[-1], codec.dropped
    _check_identity(codec, last)
    keys, out = frozenset(key for wave in waves for key in wave.request_keys()), _out(config)
    replies = ReplyStore(
        reply_store(config, out),
        str(codec.identity["model"]),
        begun.made.run if (begun := out.begun()) and begun.made else "",
    )
    try:
        with spending(config, out) as budget:
            reader = _Reader(keys, replies, budget, codec, codec.ever_sent)
            for path in batches.results(waves):
                reader.read(path)
        left = [key for key in last.request_keys() if key not in reader.answered and replies.get(key) is None]
    finally:
        replies.close()
    failed = {key: reader.failed[key] for key in left if key in reader.failed}
    given_up = {key: said for key, said in failed.items() if key in reader.lasting}
    lost = len(left) - len(failed)
    counts = {"read": reader.new, "known": reader.known, "failed": len(failed), "lost": lost}
    last.close(Closing(given_up, [dict(refusal) for refusal in codec.refusals], counts))
    return BatchReport(
        batches.path,
        last.number,
        read=reader.new,
        known=reader.known,
        answered=last.file.requests - len(left),
        failed=dict(Counter(name for name, _ in failed.values())),
        lost=lost,
        given_up=len(given_up),
        odd=dict(reader.odd),
        problems=tuple(reader.problems),
        dropped=codec.dropped[len(dropped_before) :],
    )


def _check_identity(codec: BatchCodec, wave: Wave) -> None:
    now = json.loads(json.dumps(redact_values(dict(codec.identity))))
    differing = sorted(name for name in {*now, *wave.file.identity} if now.get(name) != wave.file.identity.get(name))
    if differing:
        name = differing[0]
        raise InputError(
            "batch",
            "waves of this model and these settings",
            f"{wave.path}, where {name} was {wave.file.identity.get(name)!r:.80} and is now {now.get(name)!r:.80}",
        )


# --- submit ---


def _submit(
    config: EvalConfig, batches: BatchFolder, watch: Watch, limits: ShardLimits, sleep: Callable[[float], None]
) -> BatchReport:
    with BatchApi(model_options(config), sleep) as api:
        while True:
            waves = batches.waves()
            if not (waves and waves[-1].submitted.exists() and not waves[-1].is_closed):
                report = _export(config, batches, watch, limits)
                if not report.files:
                    return report
                watch.note(report.text)
            last = batches.waves()[-1]
            _check_identity(_codec(config, batches), last)
            _drive(last, api, watch)
            report = _import(config, batches)
            if not report.progress:
                return report
            watch.note(report.text)


def _drive(wave: Wave, api: BatchApi, watch: Watch) -> None:
    """Sends all files of a wave, waits for their batches, and fetches what came of them. What it is about to do, and what it has
    done, is noted before and after each call."""
    noted = Submitted(wave)
    for shard in wave.file.shards:
        path = wave.check(shard)
        if noted.of(shard, "name") is None:
            # a file of the same content may have been sent before, and its batch have failed
            noted.put(shard, "name", f"seeact-{uuid.uuid4().hex}.jsonl")
        if noted.of(shard, "file") is None:
            name, tried = noted.of(shard, "name") or "", noted.tries(shard, "upload")
            noted.put(shard, "file", api.upload(path, name, tried))
        if noted.of(shard, "batch") is None:
            noted.put(
                shard, "batch", api.begin(noted.of(shard, "file") or "", wave.file.url, noted.tries(shard, "begin"))
            )
            watch.note(f"{shard.file}: batch {noted.of(shard, 'batch')} of {shard.requests} requests")
    for shard in wave.file.shards:
        if noted.of(shard, "ended") is None:
            state = api.wait(noted.of(shard, "batch") or "")
            _fetch(wave, shard, state, api)
            noted.put(shard, "ended", state.status)
            watch.note(f"{shard.file}: {state.status}{': ' * bool(state.why)}{state.why}")


def _fetch(wave: Wave, shard: Shard, state: BatchState, api: BatchApi) -> None:
    for kind, file_id in (("output", state.output_file), ("errors", state.error_file)):
        if file_id is not None:
            path = wave.path / shard.file.replace("requests", kind)
            api.download(file_id, path, shard.requests * MAX_REPLY_BYTES)


class Submitted:
    """`submitted.json`: what has been sent of a wave, file by file. Holds no secret."""

    def __init__(self, wave: Wave) -> None:
        """Raises InputError."""
        self._path = wave.submitted
        self._noted: dict[str, dict[str, str]] = {}
        if self._path.exists():
            try:
                self._noted = {str(name): dict(noted) for name, noted in read_json(read_regular(self._path)).items()}
            except (FormatError, AttributeError, TypeError, ValueError):
                raise InputError("batch", "what was sent of the wave", f"another content of {self._path}") from None

    def of(self, shard: Shard, what: str) -> str | None:
        return self._noted.get(shard.file, {}).get(what)

    def put(self, shard: Shard, what: str, value: str) -> None:
        self._noted.setdefault(shard.file, {})[what] = value
        replace_text(self._path, json.dumps(redact_values(self._noted), indent=2) + "\n")

    def tries(self, shard: Shard, what: str) -> bool:
        """Notes that something is about to be done; whether it was so before, so that it may be done already."""
        before = self.of(shard, what) is not None
        self.put(shard, what, "begun")
        return before
