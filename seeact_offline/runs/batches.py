"""`eval --batch`: a run whose calls are files. Each pass over the split answers what it can from the
store of paid replies, and writes what is missing into the next wave: turn 1 of all groups of all steps,
then turn 2, then the final rounds.

A step that has all of its replies goes into the run's folder as that of a live run does; a pass that finds nothing
missing ends the run, and its files are those of a live run with the same replies.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

import msgspec

from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import read_regular
from seeact_offline.files.redaction import redact_values
from seeact_offline.files.whole import replace_text
from seeact_offline.models.batch import BatchApi, BatchCodec, BatchModel, PendingRequest, read_result
from seeact_offline.models.budget import Budget
from seeact_offline.models.failures import Failure, scrubbed
from seeact_offline.models.http_client import MAX_REPLY_BYTES
from seeact_offline.models.provider import ModelOptions
from seeact_offline.models.reply_cache import ReplyStore
from seeact_offline.records import InputError, RowError, Step
from seeact_offline.runs.ask import RunState, StepAnswer, ask_step, ask_steps, run_coroutine
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import write_results
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.runs.opening import OpenRun, open_run, run_folder
from seeact_offline.runs.paid_folder import paid_folder
from seeact_offline.runs.run import Run
from seeact_offline.runs.watch import Watch
from seeact_offline.runs.waves import BatchFolder, Closing, Shard, ShardLimits, Wave, WaveWriter, result_lines

BatchAction = Literal["export", "import", "submit"]
BATCH_ACTIONS: tuple[BatchAction, ...] = get_args(BatchAction)
MOST_PROBLEMS = 20
"""Lines that are described; all are counted."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The outcome of one call."""

    folder: Path
    wave: int | None = None
    """Number of the wave that was written or read; None where there is none."""
    files: tuple[Path, ...] = ()
    """Files of requests written now."""
    requests: int = 0
    """Requests written now."""
    turns: Mapping[str, int] = field(default_factory=dict)
    """Number of requests by the turn that they ask: `turn 1`, `turn 2`."""
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
    """Requests of the wave without a line in any file of replies."""
    given_up: int = 0
    """Requests among `failed` that are not asked again, as the server would refuse them again: their steps fail."""
    odd: Mapping[str, int] = field(default_factory=dict)
    """Lines that were of no use: `unknown` (of no wave of this folder), `duplicate`, `malformed`."""
    problems: tuple[str, ...] = ()
    """Descriptions of some of the above: file, line, finding."""
    dropped: tuple[str, ...] = ()
    """Parameters of ours that the server refused: the next wave comes without them."""
    run: Run | None = None
    """The finished run; None while replies are missing."""

    @property
    def progress(self) -> bool:
        """True if another wave would differ. New replies alone do not tell: a call that
        was killed may have read them."""
        return bool(self.answered or self.given_up or self.dropped)

    @property
    def text(self) -> str:
        """The report for people, a line or more."""
        lines = []
        if self.files:
            turns = ", ".join(f"{count} of {name}" for name, count in sorted(self.turns.items()))
            lines.append(
                f"wave {self.wave}: {self.requests} requests ({turns})"
                f" of {self.steps_waiting} steps in {len(self.files)} file{'s' * (len(self.files) > 1)},"
                f" {self.files[0]}{' first' * (len(self.files) > 1)}"
            )
        elif self.run is None:
            lines.append(
                f"wave {self.wave}: {self.read} new replies, {self.known} known before,"
                f" {sum(self.failed.values())} failed, {self.lost} missing"
            )
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
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> BatchReport:
    """One action on the batches of a run, which lie in `folder`. Any of them may be killed and called again.

    export: writes what is missing as the next wave, or ends the run where nothing is. import: reads the files
    of replies into the store of paid replies. submit: drives a server's batches, wave after wave, until the run
    has ended or a wave brings nothing.

    Raises InputError; ModelStopped where the server answers nothing.
    """
    watch, batches = watch or Watch(), BatchFolder(Path(folder))
    if action not in BATCH_ACTIONS:
        raise InputError("batch", f"one of {', '.join(BATCH_ACTIONS)}", repr(action))
    for name, usual in (("repeats", 0), ("max_cost", None), ("engine", "local")):
        if getattr(config, name) != usual:
            raise InputError(name, sentence=f"`{name}` cannot be combined with `batch`; remove it")
    out = run_folder(config)
    model = model_settings(config, out)
    if second := config.find_strategy().second_model(config.grounding_options):
        raise InputError(
            second.option, sentence=f"`batch` cannot ask the model of `{second.option}`; give a file of {second.option}"
        )
    # before a folder is made: a mistyped model must not claim one
    BatchCodec(model.spec, model.options)
    with batches.alone():
        if action == "import":
            return _import(model, out, batches)
        run = open_run(config, watch)
        # steps that wait for replies are no errors of the model
        run = replace(run, asking=replace(run.asking, fail_on_error=None))
        if action == "export":
            return _export(run, batches, watch, limits or ShardLimits())
        return _submit(run, batches, watch, limits or ShardLimits(), sleep)


def _codec(model: ModelSettings, batches: BatchFolder) -> BatchCodec:
    closings = batches.closings()
    return BatchCodec(model.spec, model.options, closings[-1].refused if closings else ())


# --- export ---


@dataclass(frozen=True, slots=True)
class _PendingAnswer(StepAnswer):
    """An answer that waits for replies, if it has lines."""

    lines: tuple[tuple[PendingRequest, bytes], ...] = ()
    """Requests of the step that have no reply."""


def _export(run: OpenRun, batches: BatchFolder, watch: Watch, limits: ShardLimits) -> BatchReport:
    codec = _codec(run.model, batches)
    with paid_folder(run.folder, run.manifest.identity, run.model, watch) as paid:
        run = run.with_dropped(codec.dropped)
        run.folder.claim(run.manifest)
        assert run.model.options.cache is not None
        replies = ReplyStore(run.model.options.cache, str(codec.identity["model"]), run.id)
        for remark in replies.remarks:
            watch.note(remark)
        number = _next(batches)
        writer = WaveWriter(batches.path / f"wave-{number}", number, limits)
        try:
            state = RunState.of(run)
            watch.begun(run.manifest.settings["dataset"])
            given_up = {key: failure for closing in batches.closings() for key, failure in closing.failed.items()}
            waiting = _ask(run, state, BatchModel(codec, replies, given_up), codec, writer, watch)
            wave = writer.finish(codec.url, codec.identity)
        finally:
            writer.close()
            replies.close()
        if wave is None:
            paid.note_replies(run.manifest, state.done.values(), is_said=False)
            reached = write_results(run, state, state.is_complete(run), is_scored=not run.predict_only)
            return BatchReport(batches.path, run=Run(run.folder.path, n_left=len(run.split.keys) - reached))
    files = tuple(wave.path / shard.file for shard in wave.file.shards)
    return BatchReport(batches.path, wave.number, files, writer.requests, dict(writer.turns), steps_waiting=waiting)


def _next(batches: BatchFolder) -> int:
    """The number of the wave to write: a new one, or the last one again where nobody has
    carried it out. Raises InputError."""
    waves = batches.waves()
    if not waves or waves[-1].is_closed:
        return waves[-1].number + 1 if waves else 1
    last = waves[-1]
    if last.submitted.exists():
        raise InputError("batch", sentence=f"{last.path} is submitted already; submit again to resume it")
    came = next((path for path in batches.results([last]) if path.parent == last.path), None)
    if came is not None:
        raise InputError("batch", sentence=f"import {came} first")
    return last.number


def _ask(run: OpenRun, state: RunState, model: BatchModel, codec: BatchCodec, writer: WaveWriter, watch: Watch) -> int:
    """Asks in data set order, so that a wave is the same bytes whatever the
    concurrency. Returns how many steps wait."""
    scores, waiting = run.scores(), 0

    async def ask(step: Step) -> _PendingAnswer:
        answer = await ask_step(step, scores, model, grounding=run.grounding, top_k=run.asking.top_k)
        prediction, lines, fault = answer.prediction, [], None
        for missing in model.missing(step.key):
            # a picture that cannot be encoded is in no wave: the step fails as in a live run, once the others are
            # answered
            try:
                lines.append((missing, await codec.line(missing.key, missing.request)))
            except RowError as error:
                fault = fault or error
        if fault is not None:
            prediction = msgspec.structs.replace(
                prediction, failure=fault.name, detail=fault.detail, failed_in=fault.stage
            )
        return _PendingAnswer(prediction, answer.truth, lines=tuple(lines))

    def accept(answer: _PendingAnswer) -> bool:
        nonlocal waiting
        for missing, line in answer.lines:
            writer.add(missing, line)
        waiting += bool(answer.lines)
        return not answer.lines

    run_coroutine(ask_steps(run, state, ask, watch, accept=accept, in_order=True))
    return waiting


# --- import ---


@dataclass
class _ReplyReader:
    """Reads files of replies into the store of paid replies."""

    keys: frozenset[str]
    """Keys of all requests that were ever written."""
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
    """Keys among `failed` that would be refused again."""
    odd: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Reads a file of replies into the store. Raises InputError for a file that cannot be read, or a
        store that cannot be written."""
        try:
            for number, line in result_lines(path):
                if line is None or line.strip():
                    self._read_line(f"line {number} of {path.name}", line)
        except OSError as error:
            raise InputError("batch", sentence=f"cannot read {path}: {error.strerror}") from None

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
            self.answered.add(result.key)
            self.failed.pop(result.key, None)
            if self.replies.get(result.key) is None:
                self.budget.add(kept.usage.cost_usd or 0.0)
                self.replies.put(result.key, kept)
                self.new += 1
            else:
                self.known += 1
        elif isinstance(result.outcome, Failure) and result.key not in self.answered:
            self._note_failure(where, result.key, result.outcome)

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


def _import(model: ModelSettings, out: RunFolder, batches: BatchFolder) -> BatchReport:
    """Reads every file of replies, those of earlier waves too: replies that are known already are
    counted, and left as they are."""
    waves, codec = batches.waves(), _codec(model, batches)
    if not waves:
        raise InputError("batch", sentence=f"{batches.path} holds no exported wave; export one first")
    last, dropped_before = waves[-1], codec.dropped
    _check_identity(codec, last)
    keys = frozenset(key for wave in waves for key in wave.request_keys())
    assert model.options.cache is not None
    replies = ReplyStore(model.options.cache, str(codec.identity["model"]), out.run_id)
    try:
        with model.spending(out) as budget:
            reader = _ReplyReader(keys, replies, budget, codec, codec.ever_sent)
            for path in batches.results(waves):
                reader.read(path)
        left = [key for key in last.request_keys() if key not in reader.answered and replies.get(key) is None]
    finally:
        replies.close()
    failed = {key: reader.failed[key] for key in left if key in reader.failed}
    given_up = {key: failure for key, failure in failed.items() if key in reader.lasting}
    lost = len(left) - len(failed)
    counts = {"read": reader.new, "known": reader.known, "failed": len(failed), "lost": lost}
    last.close(Closing(given_up, [*codec.refused], counts))
    return BatchReport(
        batches.path, last.number, read=reader.new, known=reader.known, lost=lost, given_up=len(given_up),
        answered=last.file.requests - len(left), failed=dict(Counter(name for name, _ in failed.values())),
        odd=dict(reader.odd), problems=tuple(reader.problems), dropped=codec.dropped[len(dropped_before) :],
    )  # fmt: skip


def _check_identity(codec: BatchCodec, wave: Wave) -> None:
    now = json.loads(json.dumps(redact_values(dict(codec.identity))))
    differing = sorted(name for name in {*now, *wave.file.identity} if now.get(name) != wave.file.identity.get(name))
    if differing:
        name = differing[0]
        raise InputError(
            "batch",
            sentence=f"{wave.path} was exported with another {name}, {wave.file.identity.get(name)!r:.80} where it is"
            f" now {now.get(name)!r:.80}; name another folder",
        )


# --- submit ---


def _submit(
    run: OpenRun, batches: BatchFolder, watch: Watch, limits: ShardLimits, sleep: Callable[[float], Awaitable[None]]
) -> BatchReport:
    while True:
        waves = batches.waves()
        if not (waves and waves[-1].submitted.exists() and not waves[-1].is_closed):
            report = _export(run, batches, watch, limits)
            if not report.files:
                return report
            watch.note(report.text)
        last = batches.waves()[-1]
        _check_identity(_codec(run.model, batches), last)
        run_coroutine(_drive(last, run.model.options, watch, sleep))
        report = _import(run.model, run.folder, batches)
        if not report.progress:
            return report
        watch.note(report.text)


async def _drive(wave: Wave, options: ModelOptions, watch: Watch, sleep: Callable[[float], Awaitable[None]]) -> None:
    """Sends all files of a wave, waits for their batches, and fetches their outcome. Each call
    is noted before and after it."""
    noted = SubmissionRecord(wave)
    async with aclosing(BatchApi(options, sleep)) as api:
        for shard in wave.file.shards:
            path = wave.check(shard)
            if noted.of(shard, "name") is None:
                # a file of the same content may have been sent before, and its batch have failed
                noted.put(shard, "name", f"seeact-{uuid.uuid4().hex}.jsonl")
            if noted.of(shard, "file") is None:
                name, is_tried = noted.of(shard, "name") or "", noted.tries(shard, "upload")
                noted.put(shard, "file", await api.upload(path, name, is_tried))
            if noted.of(shard, "batch") is None:
                file, is_tried = noted.of(shard, "file") or "", noted.tries(shard, "begin")
                noted.put(shard, "batch", await api.begin(file, wave.file.url, is_tried))
                watch.note(f"{shard.file}: batch {noted.of(shard, 'batch')} of {shard.requests} requests")
        for shard in wave.file.shards:
            if noted.of(shard, "ended") is None:
                batch = await api.wait(noted.of(shard, "batch") or "")
                for kind, file in batch.files.items():
                    path = wave.path / shard.file.replace("requests", kind)
                    await api.download(file, path, shard.requests * MAX_REPLY_BYTES)
                noted.put(shard, "ended", batch.status)
                watch.note(f"{shard.file}: {batch.status}{': ' * bool(batch.why)}{batch.why}")


class SubmissionRecord:
    """`submitted.json`: what has been sent of a wave, file by file. Holds no secret."""

    def __init__(self, wave: Wave) -> None:
        """Raises InputError."""
        self._path = wave.submitted
        self._noted: dict[str, dict[str, str]] = {}
        if self._path.exists():
            try:
                self._noted = {str(name): dict(noted) for name, noted in read_json(read_regular(self._path)).items()}
            except (FormatError, AttributeError, TypeError, ValueError):
                raise InputError(
                    "batch",
                    sentence=f"{self._path} does not hold what was sent of the wave; restore it,"
                    " or export to another folder",
                ) from None

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
