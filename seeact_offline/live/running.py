"""Episodes over tasks, in a folder: the same store of replies, budget, locks and loop as a run over recorded steps."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seeact_offline.agents.gui_agent import AgentGrounding
from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.digest import file_digest
from seeact_offline.files.known_files import EPISODES, LINES
from seeact_offline.files.redaction import redact
from seeact_offline.files.whole import Journal, replace_text
from seeact_offline.grounding import Grounding
from seeact_offline.live.acting_places import (
    BUNDLED,
    MINIWOB,
    SEEDS,
    STEPS,
    SUBMIT,
    Miniwob,
    Place,
    html_folder,
    live_tasks,
    miniwob_episodes,
)
from seeact_offline.live.episode_results import (
    ERROR,
    RULES,
    SEEACT,
    STATE,
    EpisodeLine,
    LiveResults,
    StopRules,
    read_episodes,
    report,
    summarise,
)
from seeact_offline.live.episodes import (
    DEADLINE_S,
    ORACLE,
    RANDOM,
    AskVerdict,
    Confirm,
    Episode,
    EpisodeOptions,
    run_episode,
)
from seeact_offline.live.speakers import Speaker, speaker_of
from seeact_offline.models import model_name
from seeact_offline.ranking import Scores
from seeact_offline.recorder.browser import Chromium, find_chromium
from seeact_offline.recorder.origins import ANYWHERE, REACHES_ALL, BrowserOptions, Origin, origins_of, served
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError, Model
from seeact_offline.runs.ask import ask_a_person, run_coroutine
from seeact_offline.runs.config import SEEACT as SEEACT_AGENT
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import Made, Manifest, RunFolder
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.runs.opening import safe_name
from seeact_offline.runs.paid_folder import PaidFolder, paid_folder
from seeact_offline.runs.strategy_opening import live_scores, open_strategy, without_ignored
from seeact_offline.runs.watch import Watch
from seeact_offline.sample import FONTS
from seeact_offline.trajectories import Trajectory, TrajectoryStep, Verdict
from seeact_offline.trajectories.judgements import later_verdicts, verdicts_of_judge
from seeact_offline.trajectories.trajectory_files import (
    NOBODY,
    keep_verdict,
    read_trajectories,
    write_trajectories,
)

ROWS = "rows.jsonl"
"""The rows of finished episodes, where they are kept; of an episode that was tried again also those of earlier
commands."""
ATTEMPT = "trajectories"
"""Folder of the trajectories of single episodes, until all are there."""
TRACES = "traces"
"""Folder of Playwright's traces, where they are kept."""
_BUILTIN = "builtin/"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A folder of episodes."""

    path: Path
    episodes: tuple[EpisodeLine, ...]
    """Episodes in the order of the tasks, as far as the budget lasted."""
    results: LiveResults
    n_left: int
    """Tasks that the budget left over."""
    spent_usd: float | None

    @property
    def n_failed(self) -> int:
        """Episodes that the browser or a server ended; the same command tries them again."""
        return sum(episode.end == ERROR for episode in self.episodes)


def browse(
    source: str = BUNDLED, *, config: EvalConfig | None = None, seeds: int | None = None, max_steps: int | None = None,
    unaided: bool = False, allow_origins: Sequence[str] = (), browser: str | None = None,
    browser_options: BrowserOptions | None = None, keep_rows: bool = False, deadline_s: float = DEADLINE_S,
    confirm: Confirm | None = None, ask_verdict: AskVerdict | None = None, annotator: str = NOBODY,
    judged: Path | None = None, watch: Watch | None = None, **options: Any,
) -> LiveRun:  # fmt: skip
    """Lets an agent act on the tasks of a source, as the command `browse` does.

    `source`: `sites`, the bundled ones, `miniwob`, or a file of tasks. `seeds`: episodes a task of `miniwob` (default:
    5). `options` are fields of `EvalConfig`, which win over `config`; `concurrency` is the number of browsers (default:
    1). `max_steps`: in place of the agent's own limit, or the 10 of `miniwob`. `unaided`: the oracle gets no help where
    its language has no words for the recorded act. `allow_origins`: origins besides that of a served folder, `*` for
    any address. `keep_rows`: every page that was asked about is a row of `rows.jsonl`, a data set that `eval` reads.
    `deadline_s`: seconds for a step without the model's time; then the browser is killed and the episode begun anew.
    `confirm`: is given each act (a `Proposal`) before it is carried out, and returns `accept`, `reject` (the agent is
    told as of an act that failed) or `end`, which ends the episode. `ask_verdict`: is given each `Episode` of a task
    without a check, and returns whether it was done, as a verdict of `annotator`. `judged`: a folder of `judge` whose
    verdicts such tasks have where people give none. A folder that holds episodes is resumed. Raises InputError for what
    cannot be used.
    """
    config, watch = (config or EvalConfig(concurrency=1)).changed(**options), watch or Watch()
    pilot = {f"{_BUILTIN}{builtin}": builtin for builtin in (ORACLE, RANDOM, SUBMIT)}.get(str(config.model), "")
    is_miniwob, web = source == MINIWOB, browser_options or BrowserOptions()
    _check(config, pilot, is_miniwob, seeds, unaided, confirm or ask_verdict, web, judged)
    asked = replace(config, model=f"{_BUILTIN}{ORACLE}") if pilot in (RANDOM, SUBMIT) else config
    grounding, identity = acting_grounding(asked)
    allowed = origins_of(allow_origins, "allow_origin")
    drawn = miniwob_episodes(config, seeds, pilot == ORACLE) if is_miniwob else None
    tasks = drawn or live_tasks(source, config, allowed, pilot == ORACLE)
    path, name = find_chromium(browser), f"{_BUILTIN}{pilot}" if pilot else None
    steps = STEPS if is_miniwob and max_steps is None else max_steps
    rules = replace(rules_of(config), **({} if steps is None else {"steps": steps}))
    settings = model_settings(asked, folder := _folder(source, config, name))
    settings.check_limit()
    own = {"unaided": unaided, "confirm": confirm is not None, "browser": web.identity}
    limits = {"rules": msgspec.to_builtins(rules), **{name: value for name, value in own.items() if value}}
    manifest = _manifest(source, config, identity, settings, name, limits, seeds or SEEDS)
    pages = served("", html_folder() if is_miniwob else None)
    with paid_folder(folder, manifest.identity, settings, watch) as paid, pages as base:
        scores = live_scores(asked) if grounding.needs_ranking else None
        place = Miniwob(base, pilot == SUBMIT) if is_miniwob else Place()
        agent = config.find_strategy().title
        watch.note(f"{len(tasks)} tasks, agent {agent}, model {name or settings.name}, out {folder.path}")
        shared = EpisodeOptions(
            rules=rules, place=place, pilot=ORACLE if pilot == SUBMIT else pilot, helped=not unaided, seed=config.seed,
            top_k=config.top_k, needs_picture=grounding.form.image, allowed=allowed, deadline_s=deadline_s,
            keep_rows=keep_rows, confirm=confirm, ask_verdict=ask_verdict, browser=web, traces=folder.path / TRACES,
        )  # fmt: skip
        speaker = partial(speaker_of, grounding, asked.find_strategy().turn2 is not None)
        run = _Run(tasks, speaker, scores, shared, path, paid, manifest, annotator, judged)
        return run.finished(config.concurrency)


def _folder(source: str, config: EvalConfig, name: str | None) -> RunFolder:
    model, split = (name or model_name(config.model)).split("/")[-2:], [config.split] * (source != MINIWOB)
    names = ["browse", Path(source).stem, *split, config.find_strategy().title, *model]
    return RunFolder(config.out or Path("runs") / "-".join(map(safe_name, names)))


def _check(
    config: EvalConfig, pilot: str, is_miniwob: bool, seeds: int | None, unaided: bool, asks: object,
    web: BrowserOptions, judged: Path | None,
) -> None:  # fmt: skip
    """Raises InputError for options that do not go together."""
    if not is_miniwob and seeds is not None:
        raise InputError("seeds", sentence=f"`seeds` need `{MINIWOB}`, whose pages are drawn by them")
    if not is_miniwob and pilot == SUBMIT:
        raise InputError("model", sentence=f"{_BUILTIN}{SUBMIT} needs `{MINIWOB}`")
    if config.scores is not None:
        raise InputError("scores", sentence="`scores` belong to recorded steps; name a `ranker`")
    if unaided and pilot != ORACLE:
        raise InputError("unaided", sentence="`unaided` needs model builtin/oracle, the only one that is helped")
    if asks and config.concurrency > 1:
        raise InputError("concurrency", sentence="a person is asked about one browser; remove `concurrency`")
    web.check()
    if judged is not None:
        verdicts_of_judge(judged)


def rules_of(config: EvalConfig) -> StopRules:
    """The rules of the agent that a configuration names."""
    return SEEACT if config.agent == SEEACT_AGENT else RULES.get(config.agent, StopRules())


def acting_grounding(config: EvalConfig) -> tuple[Grounding, dict[str, Any]]:
    """The grounding, and what identifies it. Raises InputError for one without a language for acting."""
    if config.strategy_name == "oracle" or config.own("replay_turn1") is not None or config.ungrounded:
        name = "ungrounded" if config.ungrounded else config.grounding
        raise InputError("grounding", sentence=f"{name} answers about recorded steps, and has no language for acting")
    opened = open_strategy(without_ignored(config), is_live=True)
    grounding = opened.grounding
    if isinstance(grounding, AgentGrounding) and grounding.agent.speaks == {"CLICK"}:
        raise InputError("agent", sentence=f"`agent` {opened.name} finds places, and has no language for acting")
    if grounding.earlier and isinstance(grounding, AgentGrounding) and config.own("history_pictures"):
        why = "`history_pictures` cannot be combined with `browse`: the past is told in words"
        raise InputError("history_pictures", sentence=why)
    return grounding, opened.identity


def _manifest(
    source: str, config: EvalConfig, identity: Mapping[str, Any], settings: ModelSettings, name: str | None,
    limits: Mapping[str, Any], n_seeds: int,
) -> Manifest:  # fmt: skip
    own: dict[str, Any] = {}
    if source == MINIWOB:
        own = {"miniwob": version(MINIWOB), "seeds": n_seeds}
    elif source != BUNDLED:
        own = {"tasks_digest": file_digest(Path(source))}
    asked = {"model": name} if name else settings.source.identity(settings.options)
    shown = {
        "places": source, **({"seeds": n_seeds} if source == MINIWOB else {"split": config.split}),
        "agent": config.find_strategy().title, "model": name or settings.name, "seed": config.seed,
        "limit": config.limit, **({} if config.sample is None else {"sample": config.sample}), **limits,
    }  # fmt: skip
    made = Made(
        uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds"), config.command, config.temperature,
        config.max_tokens, asked.get("base_url"), settings.asks_each,
    )  # fmt: skip
    full_identity = {"places": source, **own, **identity, **asked, "seed": config.seed, **limits}
    return Manifest(identity=full_identity, settings=shown, made=made)


class _Lane(Chromium):
    """A browser in a thread of its own, which must stay in the thread where it was begun."""

    def __init__(self, path: str, options: EpisodeOptions) -> None:
        super().__init__(path, FONTS, options.browser.headed)
        self.thread, self._allowed = ThreadPoolExecutor(1), options.allowed
        self.port = 0
        """The port of the last start; 0 before there is one."""

    def browser(self, start: str) -> Any:
        """A browser that reaches the origin of this address and those that were named. Raises InputError."""
        origin = Origin.of(start, "start")
        self.port = origin.port
        return self.reaching(self._allowed | {origin})


@dataclass(slots=True)
class _Run:
    tasks: Sequence[TaskScript]
    speaker: Callable[[], Speaker]
    scores: Scores | None
    options: EpisodeOptions
    path: str
    """The browser's program."""
    paid: PaidFolder
    manifest: Manifest
    annotator: str
    judged: Path | None

    def finished(self, n_browsers: int) -> LiveRun:
        """Runs the episodes that the folder does not hold, and writes its results. Raises OutOfBudget where not one
        could be begun."""
        folder = self.paid.folder
        lines = read_episodes(folder.path)
        model = self.paid.open_model(self.manifest)
        if ANYWHERE in self.options.allowed:
            self.paid.watch.note(REACHES_ALL)
        complete = run_coroutine(self._episodes(lines, model, n_browsers))
        self.paid.note_once(model.remarks)
        wanted = [task.annotation_id for task in self.tasks]
        if not complete and not any(name in lines for name in wanted):
            raise self.paid.budget.too_small()
        later = later_verdicts(folder.path, self.judged)
        every = {name: lines[name].with_verdict(later.get(name)) for name in [*wanted, *lines] if name in lines}
        kept = [every[name] for name in wanted if name in every]
        results = self._write(kept, every)
        return LiveRun(folder.path, tuple(kept), results, len(wanted) - len(kept), self.paid.budget.known)

    async def _episodes(self, lines: dict[str, EpisodeLine], model: Model, n_browsers: int) -> bool:
        """Runs the episodes that have no line, or ended in an error, and adds theirs; False where the budget left some
        over."""
        folder, watch = self.paid.folder.path, self.paid.watch
        loop, stopped = asyncio.get_running_loop(), threading.Event()
        journal, rows = Journal(folder / EPISODES), Journal(folder / ROWS)
        # an episode that is drawn twice is run once
        wanted = {task.annotation_id: task for task in self.tasks}
        ended = {name: line for name, line in lines.items() if line.end != ERROR}
        lanes = [_Lane(self.path, self.options) for _ in range(min(n_browsers, len(wanted.keys() - ended.keys())))]
        free: asyncio.Queue[_Lane] = asyncio.Queue()
        for lane in lanes:
            free.put_nowait(lane)

        async def work(task: TaskScript) -> Episode:
            lane = await free.get()
            try:
                return await loop.run_in_executor(lane.thread, self._episode, task, lane, model, loop, stopped)
            finally:
                free.put_nowait(lane)

        def keep(episode: Episode) -> None:
            self._keep(episode, rows)
            line = lines[episode.task.annotation_id] = _line(episode)
            journal.append(msgspec.json.encode(line).decode())
            watch.spent(self.paid.budget.known)
            progress.advance(line.end)

        with_rows = rows if self.options.keep_rows else nullcontext()
        try:
            with journal, with_rows, watch.counting(len(wanted), "browse", "episodes") as progress:
                return await self.paid.ask_left(wanted, ended, work, keep, progress, max(1, len(lanes)))
        except asyncio.CancelledError:
            # Ctrl-C in a terminal has ended Playwright's driver too; nobody need read what it leaves behind
            logging.getLogger("asyncio").setLevel(logging.CRITICAL)
            warnings.filterwarnings("ignore", "coroutine .* was never awaited")
            raise
        finally:
            stopped.set()
            for lane in lanes:
                await loop.run_in_executor(lane.thread, lane.close)
                lane.thread.shutdown()
            await model.aclose()

    def _keep(self, episode: Episode, rows: Journal) -> None:
        folder, name = self.paid.folder.path, episode.task.annotation_id
        # in a folder of its own, so that a killed run loses none that it finished
        agent = f"{self.manifest.settings['agent']}~{self.manifest.settings['model']}"
        write_trajectories(folder / ATTEMPT / safe_name(name), [trajectory_of(episode, agent)])
        if episode.by_person is not None:
            keep_verdict(folder, name, self.annotator, episode.by_person)
        for row in episode.rows:
            rows.append(redact(json.dumps(row, default=lambda data: base64.b64encode(data).decode())))

    def _write(self, kept: Sequence[EpisodeLine], every: Mapping[str, EpisodeLine]) -> LiveResults:
        """Writes the files of finished episodes. `kept`: those asked for. `every`: those of earlier commands too, which
        stay."""
        folder, settings = self.paid.folder.path, self.manifest.settings
        replace_text(folder / EPISODES, "".join(f"{msgspec.json.encode(line).decode()}\n" for line in every.values()))
        # the trajectories of all episodes in one file, in their order
        parts = [path for name in every if ((path := folder / ATTEMPT / safe_name(name)) / LINES).is_file()]
        write_trajectories(folder, chain.from_iterable(map(read_trajectories, parts)))
        is_helped = settings["model"] == f"{_BUILTIN}{ORACLE}" and self.options.helped
        results = summarise(kept, settings, is_helped, isinstance(self.options.place, Miniwob))
        replace_text(folder / "results.json", json.dumps(msgspec.to_builtins(results), indent=2) + "\n")
        replace_text(folder / "report.md", report(results, kept))
        return results

    def _episode(
        self, task: TaskScript, lane: _Lane, model: Model, loop: asyncio.AbstractEventLoop, stopped: threading.Event
    ) -> Episode:
        def ask(work: Coroutine[Any, Any, T]) -> T:
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        confirm, verdict = self.options.confirm, self.options.ask_verdict
        options = replace(
            self.options,
            confirm=confirm and partial(ask_a_person, confirm, stopped, "end"),
            ask_verdict=verdict and partial(ask_a_person, verdict, stopped, None),
        )
        return run_episode(task, lane.browser, self.speaker, self.scores, model, ask, options, lane.port)


def _line(episode: Episode) -> EpisodeLine:
    usage, steps = episode.usage, episode.steps
    verdict = None if episode.end == ERROR else episode.done
    return EpisodeLine(
        annotation_id=episode.task.annotation_id, task=episode.task.task, website=episode.task.website,
        domain=episode.task.domain, end=episode.end, done=verdict, verdict_by="" if verdict is None else STATE,
        reached=None if episode.end == ERROR else episode.reached,
        raw_reward=None if episode.end == ERROR else episode.raw_reward, n_steps=len(steps),
        n_unreadable=sum(bool(step.failure) for step in steps),
        n_failed_acts=sum(bool(step.problem) and not step.failure for step in steps), n_helped=episode.n_helped,
        detail=episode.detail, answer=episode.answer, attempts=episode.attempts, calls=usage.calls,
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, cost_usd=usage.cost_usd,
        model_s=round(episode.model_s, 3), browser_s=round(episode.browser_s, 3),
    )  # fmt: skip


def trajectory_of(episode: Episode, agent: str) -> Trajectory:
    """The episode as a trajectory, whose label is the page's state, where that is checked."""
    steps = [
        TrajectoryStep(
            "; ".join(filter(None, (step.action or f"({step.failure})", step.outcome))),
            step.thought, step.address, StoredScreenshot(step.png), step.reply, step.place,
        )
        for step in episode.steps
    ]  # fmt: skip
    if episode.last_png is not None:
        steps.append(TrajectoryStep("", "", episode.last_address, StoredScreenshot(episode.last_png)))
    verdict = Verdict(STATE, episode.done if episode.end != ERROR else None, "check", episode.end)
    return Trajectory(
        id=episode.task.annotation_id, task_id=episode.task.annotation_id, task=episode.task.task, steps=tuple(steps),
        answer=episode.answer, verdicts=(verdict,) if episode.done is not None or episode.end == ERROR else (),
        agent=agent, website=episode.task.website,
    )  # fmt: skip
