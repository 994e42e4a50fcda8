"""Trajectories judged by a model, in a folder: the same loop, store of replies,
budget and locks as a run over steps."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from seeact_offline.dataset.split import draw_tasks
from seeact_offline.files.formats import decoded
from seeact_offline.files.known_files import VERDICTS
from seeact_offline.files.whole import Journal, replace_text
from seeact_offline.models import model_name
from seeact_offline.prompting import load_template
from seeact_offline.records import CallError, InputError, Message, Model, Request, RowError, SeeActError, StepKey, Usage
from seeact_offline.runs.ask import run_coroutine
from seeact_offline.runs.config import MOST_REPEATS, EvalConfig
from seeact_offline.runs.folder import Made, Manifest, RunFolder, read_lines
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.runs.opening import safe_name, selected_split
from seeact_offline.runs.paid_folder import PaidFolder, paid_folder
from seeact_offline.runs.watch import Watch
from seeact_offline.trajectories.foreign_folders import open_trajectories
from seeact_offline.trajectories.judgements import LABELS, Judgement, labels_of
from seeact_offline.trajectories.judges import JUDGES, Case, Judge, Ruling
from seeact_offline.trajectories.recorded_tasks import constructed_trajectories, recorded_trajectories, run_trajectories
from seeact_offline.trajectories.trajectory import Trajectory

ALL = "all"
"""The k of all screenshots."""


class Item(NamedTuple):
    """One judgement to make."""

    trajectory: Trajectory
    k: str
    repeat: int

    @property
    def key(self) -> tuple[str, str, int]:
        return self.trajectory.id, self.k, self.repeat


@dataclass(frozen=True, slots=True)
class JudgedFolder:
    """A folder of verdicts."""

    path: Path
    judgements: tuple[Judgement, ...]
    """Judgements in order of trajectory, k and repeat: those that were asked for, as far as the budget lasted."""
    labels: tuple[Judgement, ...]
    """Verdicts of others than models that the trajectories hold."""
    n_left: int
    """Judgements that the budget left over."""
    spent_usd: float | None
    """USD that all commands on this folder have spent, as its ledger says; None where that is not known."""

    @property
    def n_failed(self) -> int:
        """Calls that failed; the same command asks again."""
        return sum(not judgement.ran for judgement in self.judgements)


def judge(
    source: str | Path,
    *,
    judge: str = "strict",
    k: Sequence[str] = (),
    repeats: int = 1,
    constructed: bool = False,
    config: EvalConfig | None = None,
    watch: Watch | None = None,
) -> JudgedFolder:
    """Asks a model whether trajectories have done their tasks, as the command `judge` does.

    `source`: a folder of trajectories, a run of `eval`, or a data set whose recorded tasks are judged. `k`: numbers of
    last screenshots, or `all`; empty for the judge's own. `constructed`: right trajectories and their damaged copies
    are judged. `config`: model, prompts, split, limit and sample, cost and `out`. A folder that holds verdicts is
    resumed. Raises InputError for what cannot be used.
    """
    config, watch = config or EvalConfig(), watch or Watch()
    if judge not in JUDGES:
        raise InputError("judge", f"one of {', '.join(JUDGES)}", repr(judge))
    if repeats > MOST_REPEATS:
        raise InputError("repeats", f"at most {MOST_REPEATS:,}", f"{repeats:,}")
    kind, ks = JUDGES[judge], _checked(k or (JUDGES[judge].k,))
    config = replace(
        config,
        max_tokens=config.max_tokens if _is_given(config, "max_tokens") else kind.max_tokens,
        seed=config.seed if _is_given(config, "seed") else kind.seed,
        # equal requests of two repeats are two
        ask_equal=config.ask_equal or repeats > 1,
    )
    texts = {file: load_template(config.prompts, file, rule) for file, rule in kind.templates.items()}
    names = ["judge", judge, Path(source).name, *model_name(config.model).split("/")[-2:]]
    out = config.out or Path("runs") / "-".join(map(safe_name, names))
    folder = RunFolder(out)
    settings = model_settings(config, folder)
    settings.check_limit()
    trajectories = find_trajectories(source, config, constructed)
    manifest = _manifest(judge, source, texts, settings, config)
    with paid_folder(folder, manifest.identity, settings, watch) as paid:
        run = _JudgeRun(judge, kind, texts, settings.name, config.max_image_side)
        items = [
            Item(trajectory, n, repeat) for trajectory in trajectories for n in ks for repeat in range(1, repeats + 1)
        ]
        labels = labels_of(trajectories)
        watch.note(
            f"{len(trajectories)} trajectories, {len(items)} judgements by {judge}, model {settings.name}, out {out}"
        )
        return _judge_all(run, items, labels, manifest, paid, config.concurrency)


def _is_given(config: EvalConfig, name: str) -> bool:
    return name in config.typed or getattr(config, name) != getattr(EvalConfig(), name)


def _checked(k: Sequence[str]) -> tuple[str, ...]:
    """Each k once. Raises InputError for one that is neither a number from 1 nor `all`."""
    for number in k:
        if number != ALL and not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number) >= 1):
            raise InputError("k", f"numbers from 1, or {ALL}", repr(number))
    return tuple(dict.fromkeys(number if number == ALL else str(int(number)) for number in k))


def find_trajectories(source: str | Path, config: EvalConfig, constructed: bool = False) -> list[Trajectory]:
    """The trajectories of a folder, a run, or a data set's recorded tasks. Raises InputError where there are none."""
    path = Path(source)
    folders = (path, path / "data")
    if not path.exists() and str(source) != "sample":
        wanted = "a folder of trajectories, a scored run, a data set's folder or file, or sample"
        raise InputError("source", wanted, f"{str(source)!r}: there is no such folder or file")
    if next(path.glob("*/predictions.jsonl"), None) is not None and not (path / "predictions.jsonl").is_file():
        raise InputError("source", sentence=f"{path} holds several runs; name one")
    try:
        if (path / "manifest.json").is_file() and (path / "predictions.jsonl").is_file():
            stream: Iterable[Trajectory] = run_trajectories(path)
        elif (
            str(source) == "sample" or path.is_file() or any(next(folder.glob("*.parquet"), None) for folder in folders)
        ):
            split = selected_split(replace(config, dataset=str(source), tasks=None))
            stream = recorded_trajectories(split.steps())
        else:
            stream = open_trajectories(path)
    except InputError as error:
        name = "source" if error.argument in ("dataset", "trajectories") else error.argument
        raise error.renamed(name) from None
    trajectories = list(stream)
    if constructed:
        trajectories = list(constructed_trajectories(trajectories, config.seed))
    if config.limit is not None:
        tasks = list(dict.fromkeys(trajectory.task_id for trajectory in trajectories))[: config.limit]
        trajectories = [trajectory for trajectory in trajectories if trajectory.task_id in tasks]
    if config.sample is not None:
        websites = {trajectory.task_id: trajectory.website for trajectory in reversed(trajectories)}
        drawn = set(draw_tasks(websites, config.sample, config.seed))
        trajectories = [trajectory for trajectory in trajectories if trajectory.task_id in drawn]
    if not trajectories:
        raise InputError("source", "at least one trajectory", f"none in {source}")
    return trajectories


def _manifest(
    judge: str, source: str | Path, texts: Mapping[str, str], settings: ModelSettings, config: EvalConfig
) -> Manifest:
    digest = hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()
    identity = {
        "judge": judge, "prompts_digest": digest, **settings.source.identity(settings.options), "seed": config.seed,
        "max_image_side": config.max_image_side,
    }  # fmt: skip
    shown = {
        "judge": judge,
        "model": settings.name,
        "source": str(source),
        "prompts": str(config.prompts),
        "seed": config.seed,
        **({} if config.sample is None else {"sample": config.sample}),
    }
    made = Made(
        uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds"), config.command, config.temperature,
        config.max_tokens, identity.get("base_url"), settings.asks_each,
    )  # fmt: skip
    return Manifest(identity=identity, settings=shown, made=made)


def _judge_all(
    run: _JudgeRun,
    items: Sequence[Item],
    labels: Sequence[Judgement],
    manifest: Manifest,
    paid: PaidFolder,
    concurrency: int,
) -> JudgedFolder:
    folder, watch = paid.folder, paid.watch
    verdicts = folder.path / VERDICTS
    journal, kept = Journal(verdicts), {}
    for judgement in read_lines(journal, partial(decoded, kind=Judgement), "which is no judgement"):
        kept[_key(judgement)] = judgement
    digests = {item.trajectory.id: trajectory_digest(item.trajectory) for item in items}
    # without a verdict or a call nothing was paid, and the pictures may be there by now
    done = {
        key: judgement
        for key, judgement in kept.items()
        if judgement.ran
        and (judgement.verdict is not None or judgement.calls)
        and digests.get(judgement.trajectory) == judgement.digest
    }
    wanted = {item.key: item for item in items}
    model = paid.open_model(manifest)

    async def ask() -> bool:
        def keep(judgement: Judgement) -> None:
            journal.append(judgement.line)
            done[_key(judgement)] = judgement
            progress.advance(judgement.outcome)

        try:
            with journal, watch.counting(len(wanted), f"judge {run.name}", "judgements") as progress:
                return await paid.ask_left(
                    wanted, done, lambda item: run.judge(item, model), keep, progress, concurrency
                )
        finally:
            await model.aclose()

    complete = run_coroutine(ask())
    paid.note_once(model.remarks)
    paid.note_dropped(model.dropped)
    judged = [done[key] for key in wanted if key in done]
    if not judged and not complete:
        raise paid.budget.too_small()
    # judgements of an earlier command that are not asked for now stay
    others = [judgement for key, judgement in kept.items() if key not in wanted]
    replace_text(verdicts, "".join(f"{judgement.line}\n" for judgement in [*judged, *others]))
    replace_text(folder.path / LABELS, "".join(f"{label.line}\n" for label in labels))
    return JudgedFolder(folder.path, tuple(judged), tuple(labels), len(wanted) - len(judged), paid.budget.known)


def _key(judgement: Judgement) -> tuple[str, str, int]:
    return judgement.trajectory, judgement.k, judgement.repeat


def trajectory_digest(one: Trajectory) -> str:
    """Tells whether a stored verdict is on the same trajectory, but for its pictures."""
    actions = [[step.action, step.thought, step.reply] for step in one.steps]
    content = json.dumps([one.task, actions, one.answer, len(one.screenshots)])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class _JudgeRun:
    """A judge and how it is asked."""

    name: str
    kind: Judge
    texts: Mapping[str, str]
    model: str
    max_side: int

    async def judge(self, item: Item, model: Model) -> Judgement:
        """Makes one judgement. Raises only what must stop the run."""
        trajectory, began = item.trajectory, time.monotonic()
        usage, ran = Usage(), True
        place = int(item.k) if item.k != ALL else 0

        async def call(messages: tuple[Message, ...]) -> str:
            nonlocal usage
            key = StepKey(trajectory.id, f"judge-{self.name}")
            completion = await model.complete(Request(messages, key, group=place, turn=item.repeat))
            usage += completion.usage
            return completion.text

        try:
            if trajectory.faults:
                raise RowError(trajectory.faults[0].name, trajectory.faults[0].detail)
            case = Case(trajectory, place or None, self.max_side)
            ruling = await self.kind.decide(case, self.texts, call)
        except CallError as error:
            usage, ran = usage + error.usage, error.answered
            is_failure = self.kind.declined_is_failure and error.name == "refused"
            ruling = Ruling(False if is_failure else None, error.name, detail=error.detail[:300])
        except RowError as error:
            ruling = Ruling(None, error.name, detail=error.detail[:300])
        except SeeActError:
            raise
        except Exception as error:
            # a trajectory that we never met must not end a run that others have paid for
            ran, ruling = False, Ruling(None, "internal_error", detail=f"{type(error).__name__}: {error}"[:300])
        return Judgement(
            trajectory=trajectory.id, verdict=ruling.verdict, judge=self.name, model=self.model, k=item.k,
            repeat=item.repeat,
            task=trajectory.task_id, agent=trajectory.agent, outcome=ruling.outcome, detail=ruling.detail,
            reply=ruling.reply,
            n_pictures=ruling.n_pictures, calls=usage.calls, cost_usd=usage.cost_usd if usage.calls else None,
            prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens,
            seconds=round(time.monotonic() - began, 3), ran=ran, digest=trajectory_digest(trajectory),
        )  # fmt: skip
