"""Episodes over tasks, in a folder: the same store of replies, budget, locks and loop as a run over recorded steps."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.digest import file_digest
from seeact_offline.files.extras import install_command
from seeact_offline.files.formats import decoded
from seeact_offline.files.journal import Journal
from seeact_offline.files.whole import replace_text
from seeact_offline.grounding import Grounding
from seeact_offline.grounding.gui_agent import AgentGrounding
from seeact_offline.live.acting_places import Place
from seeact_offline.live.acting_tasks import BUNDLED, live_tasks, miniwob_episodes
from seeact_offline.live.episode_results import EpisodeLine, LiveResults, report, summarise
from seeact_offline.live.episodes import (
    DEADLINE_S,
    ORACLE,
    RANDOM,
    Confirm,
    Decision,
    Episode,
    EpisodeOptions,
    Proposal,
    run_episode,
)
from seeact_offline.live.miniwob import MINIWOB, SEEDS, STEPS, SUBMIT, Miniwob, html_folder, miniwob_version
from seeact_offline.live.speakers import speaker_of
from seeact_offline.live.stop_rules import ERROR, RULES, SEEACT, StopRules
from seeact_offline.models import model_name
from seeact_offline.models.budget import Budget
from seeact_offline.ranking import Scores
from seeact_offline.recorder.browser import find_chromium, launch
from seeact_offline.recorder.origins import Origin, served
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError, Model
from seeact_offline.runs.ask import ask_each, run_coroutine
from seeact_offline.runs.config import SEEACT as SEEACT_AGENT
from seeact_offline.runs.config import EvalConfig, names_options
from seeact_offline.runs.folder import Made, Manifest, RunFolder, worded
from seeact_offline.runs.groundings import open_strategy, without_ignored
from seeact_offline.runs.model_settings import ModelSettings, model_settings
from seeact_offline.runs.open import safe_name
from seeact_offline.runs.ranking import live_scores
from seeact_offline.runs.watch import Watch
from seeact_offline.sample import FONTS
from seeact_offline.trajectories import Trajectory, TrajectoryStep, Verdict
from seeact_offline.trajectories.trajectory_files import LINES, PICTURES, read_trajectories, write_trajectories

EPISODES = "episodes.jsonl"
ROWS = "rows.jsonl"
"""The rows of finished episodes, where they are kept; of an episode that was tried again also those of earlier commands."""
ATTEMPT = "trajectories"
"""Folder of the trajectories of single episodes, until all are there."""
STATE = "state"
"""The name of the verdict that the page's state gives."""
_BUILTIN = "builtin/"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LiveRun:
    """A folder of episodes."""

    path: Path
    episodes: tuple[EpisodeLine, ...]
    """In the order of the tasks, as far as the budget lasted."""
    results: LiveResults
    n_left: int
    """Tasks that the budget left over."""
    spent_usd: float | None

    @property
    def n_failed(self) -> int:
        """Episodes that ended without a verdict; the same command tries them again."""
        return sum(not one.has_verdict for one in self.episodes)


@names_options
def browse(
    source: str = BUNDLED,
    *,
    config: EvalConfig | None = None,
    seeds: int | None = None,
    max_steps: int | None = None,
    unaided: bool = False,
    allow_origins: Sequence[str] = (),
    browser: str | None = None,
    keep_rows: bool = False,
    deadline_s: float = DEADLINE_S,
    confirm: Confirm | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> LiveRun:
    """Lets an agent act on the tasks of a source, as the command `browse` does.

    `source`: `sites`, the bundled ones, `miniwob`, or a file of tasks. `seeds`: episodes a task of `miniwob` (default: 5). `options` are fields
    of `EvalConfig`, which win over `config`: agent, model, split, tasks, cost and `out`; `concurrency` is the number of browsers (default: 1).
    `max_steps`: in place of the agent's own limit, or the 10 of `miniwob`. `unaided`: the oracle gets no help where its language has no words
    for the recorded act. `keep_rows`: every page that was asked about is a row of `rows.jsonl`, a data set that `eval` reads. `deadline_s`:
    seconds for a step without the model's time; then the browser is killed and the episode begun anew. `confirm`: is given each act (a `Proposal`) before it is carried out, and returns
    `accept`, `reject` (the agent is told as of an act that failed) or `end`, which ends the episode. A folder that holds episodes is
    resumed. Raises InputError for what cannot be used.
    """
    config, watch = (config or EvalConfig(concurrency=1)).changed(**options), watch or Watch()
    pilot = {f"{_BUILTIN}{one}": one for one in (ORACLE, RANDOM, SUBMIT)}.get(str(config.model), "")
    is_miniwob = source == MINIWOB
    _check(config, pilot, is_miniwob, seeds, unaided, confirm is not None)
    asked = replace(config, model=f"{_BUILTIN}{ORACLE}") if pilot in (RANDOM, SUBMIT) else config
    grounding, identity = acting_grounding(asked)
    allowed = frozenset(Origin.of(url, "allow_origin") for url in allow_origins)
    tasks = miniwob_episodes(config, seeds, pilot == ORACLE) if is_miniwob else live_tasks(source, config, allowed)
    path = find_chromium(browser)
    agent = config.strategy_title
    rules = rules_of(config)
    steps = STEPS if is_miniwob and max_steps is None else max_steps
    if steps is not None:
        rules = replace(rules, steps=steps)
    name = f"{_BUILTIN}{pilot}" if pilot else None
    names = [
        "browse",
        Path(source).stem,
        *([] if is_miniwob else [config.split]),
        agent,
        *(name or model_name(config.model)).split("/")[-2:],
    ]
    folder = RunFolder(config.out or Path("runs") / "-".join(map(safe_name, names)))
    settings = model_settings(asked, folder)
    settings.check_limit()
    manifest = _manifest(source, config, identity, settings, name, rules, unaided, confirm is not None, seeds or SEEDS)
    folder.check(manifest.identity)
    shared = EpisodeOptions(
        rules=rules,
        pilot=ORACLE if pilot == SUBMIT else pilot,
        helped=not unaided,
        seed=config.seed,
        top_k=config.top_k,
        needs_picture=grounding.form.image,
        allowed=allowed,
        deadline_s=deadline_s,
        keep_rows=keep_rows,
        confirm=confirm,
    )
    scores = live_scores(asked) if grounding.needs_ranking else None
    with folder.alone(), settings.spending(folder) as budget, _place(is_miniwob, pilot) as place:
        watch.note(f"{len(tasks)} tasks, agent {agent}, model {name or settings.name}, out {folder.path}")
        run = _Run(
            tasks,
            grounding,
            asked.strategy.turn2 is not None,
            scores,
            settings,
            replace(shared, place=place),
            path,
            watch,
        )
        return run.into(folder, manifest, budget, config.concurrency)


def _check(config: EvalConfig, pilot: str, is_miniwob: bool, seeds: int | None, unaided: bool, confirms: bool) -> None:
    """Raises InputError for options that do not go together."""
    if not is_miniwob and seeds is not None:
        raise InputError("seeds", sentence=f"`seeds` need `{MINIWOB}`, whose pages are drawn by them")
    if not is_miniwob and pilot == SUBMIT:
        raise InputError("model", sentence=f"{_BUILTIN}{SUBMIT} needs `{MINIWOB}`")
    if config.scores is not None:
        raise InputError("scores", sentence="`scores` belong to recorded steps; name a `ranker`")
    if unaided and pilot != ORACLE:
        raise InputError("unaided", sentence="`unaided` needs model builtin/oracle, the only one that is helped")
    if confirms and config.concurrency > 1:
        raise InputError("confirm", sentence="`confirm` asks one person, about one browser; remove `concurrency`")


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
        raise InputError(
            "history_pictures",
            sentence="`history_pictures` cannot be combined with `browse`: the past is told in words",
        )
    return grounding, opened.identity


@contextmanager
def _place(is_miniwob: bool, pilot: str) -> Iterator[Place]:
    if not is_miniwob:
        yield Place()
        return
    with served("", html_folder()) as base:
        yield Miniwob(base, pilot == SUBMIT)


def _manifest(
    source: str, config: EvalConfig, identity: Mapping[str, Any], settings: ModelSettings, name: str | None, rules: StopRules,
    unaided: bool, confirmed: bool, n_seeds: int,
) -> Manifest:  # fmt: skip
    own: dict[str, Any] = {}
    if source == MINIWOB:
        own = {"miniwob": miniwob_version(), "seeds": n_seeds}
    elif source != BUNDLED:
        own = {"tasks_digest": file_digest(Path(source))}
    asked = {"model": name} if name else settings.source.identity(settings.options)
    limits = (
        {"rules": msgspec.to_builtins(rules)}
        | ({"unaided": True} if unaided else {})
        | ({"confirm": True} if confirmed else {})
    )
    shown = {
        "places": source, **({"seeds": n_seeds} if source == MINIWOB else {"split": config.split}), "agent": config.strategy_title, "model": name or settings.name, "seed": config.seed,
        "limit": config.limit, **({} if config.sample is None else {"sample": config.sample}), **limits,
    }  # fmt: skip
    made = Made(
        uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="seconds"), config.command, config.temperature,
        config.max_tokens, asked.get("base_url"), settings.asks_each,
    )  # fmt: skip
    known = {"places": source, **own, **identity, **asked, "seed": config.seed, **limits}
    return Manifest(identity=known, settings=shown, made=made)


class _Lane:
    """A thread with its own Playwright and browser, which must stay in the thread where they were begun."""

    def __init__(self, path: str, fonts: Path | None, allowed: frozenset[Origin]) -> None:
        self.thread = ThreadPoolExecutor(1)
        self._path, self._fonts, self._allowed = path, fonts, allowed
        self._playwright: Any = None
        self._browser: Any = None
        self._reachable: frozenset[Origin] = frozenset()
        self.port = 0
        """The port of the last start; 0 before there is one."""

    def browser(self, start: str) -> Any:
        """A browser that reaches the origin of this address and those that were named. Raises InputError."""
        if self._playwright is None:
            try:
                from playwright.sync_api import sync_playwright
            except ImportError:
                hint = install_command("record")
                raise InputError("browser", sentence=f"a live page needs the package playwright: run {hint}") from None
            self._playwright = sync_playwright().start()
        origin = Origin.of(start, "start")
        wanted, self.port = self._allowed | {origin}, origin.port
        if self._browser is None or wanted != self._reachable or not self._browser.is_connected():
            if self._browser is not None:
                self._browser.close()
            self._browser = launch(self._playwright, self._path, wanted, self._fonts)
            self._reachable = wanted
        return self._browser

    def close(self) -> None:
        if self._playwright is None:
            return
        from playwright.sync_api import Error

        # Ctrl-C in a terminal has ended Playwright's driver too
        with suppress(Error):
            if self._browser is not None:
                self._browser.close()
            self._playwright.stop()


class _Run:
    def __init__(
        self, tasks: Sequence[TaskScript], grounding: Grounding, has_further: bool, scores: Scores | None, settings: ModelSettings,
        options: EpisodeOptions, path: str, watch: Watch,
    ) -> None:  # fmt: skip
        self._has_further = has_further
        self._tasks, self._grounding, self._scores, self._settings = tasks, grounding, scores, settings
        self._stopped = threading.Event()
        confirm = options.confirm and partial(_asked_of_a_person, options.confirm, self._stopped)
        self._options, self._path, self._watch = replace(options, confirm=confirm), path, watch

    def into(self, folder: RunFolder, manifest: Manifest, budget: Budget, n_browsers: int) -> LiveRun:
        """Runs the episodes that the folder does not hold, and writes its results. Raises OutOfBudget where not one could be begun."""
        journal = Journal(folder.path / EPISODES)
        done = _episodes_of(journal)
        rows = Journal(folder.path / ROWS)
        # an episode that is drawn twice is run once
        tasks = [*{task.annotation_id: task for task in self._tasks}.values()]
        left = [task for task in tasks if not _is_done(done.get(task.annotation_id))]
        pays = (folder.content().get("made") if folder.manifest.exists() else msgspec.to_builtins(manifest.made)) or {}
        model = self._settings.open(budget, pays.get("run", ""))
        folder.claim(manifest)

        async def ask() -> bool:
            lanes = [_Lane(self._path, FONTS, self._options.allowed) for _ in range(min(n_browsers, len(left)))]
            free: asyncio.Queue[_Lane] = asyncio.Queue()
            for lane in lanes:
                free.put_nowait(lane)
            loop = asyncio.get_running_loop()

            async def work(task: TaskScript) -> Episode:
                lane = await free.get()
                try:
                    return await loop.run_in_executor(lane.thread, self._episode, task, lane, model, loop)
                finally:
                    free.put_nowait(lane)

            def keep(episode: Episode) -> None:
                _keep_trajectory(folder.path, episode, manifest.settings)
                for row in episode.rows:
                    rows.append(json.dumps(_with_base64(row)))
                line = _line(episode)
                journal.append(msgspec.json.encode(line).decode())
                done[line.annotation_id] = line
                self._watch.spent(budget.known)
                progress.advance(line.end)

            try:
                with (
                    journal,
                    rows if self._options.keep_rows else nullcontext(),
                    self._watch.counting(len(tasks), "browse", "episodes") as progress,
                ):
                    for _ in range(len(tasks) - len(left)):
                        progress.advance("", resumed=True)
                    return await ask_each(left, work, keep, max(1, len(lanes)), has_room=budget.has_room)
            finally:
                self._stopped.set()
                for lane in lanes:
                    await loop.run_in_executor(lane.thread, lane.close)
                    lane.thread.shutdown()
                await model.aclose()

        complete = run_coroutine(ask()) if left else True
        for remark in model.remarks:
            self._watch.note(remark)
        wanted = [task.annotation_id for task in self._tasks]
        kept = [done[name] for name in wanted if name in done]
        if not kept and not complete:
            raise budget.too_small()
        results = self._write(
            folder.path, manifest, kept, {name: done[name] for name in [*wanted, *done] if name in done}
        )
        return LiveRun(folder.path, tuple(kept), results, len(wanted) - len(kept), budget.known)

    def _write(
        self, folder: Path, manifest: Manifest, kept: Sequence[EpisodeLine], every: Mapping[str, EpisodeLine]
    ) -> LiveResults:
        """Writes the files of finished episodes. `kept`: those asked for. `every`: those of earlier commands too, which stay."""
        replace_text(folder / EPISODES, "".join(f"{msgspec.json.encode(one).decode()}\n" for one in every.values()))
        _gather(folder, [*every])
        is_helped = manifest.settings["model"] == f"{_BUILTIN}{ORACLE}" and self._options.helped
        results = summarise(kept, manifest.settings, is_helped, isinstance(self._options.place, Miniwob))
        replace_text(folder / "results.json", json.dumps(msgspec.to_builtins(results), indent=2) + "\n")
        replace_text(folder / "report.md", report(results, kept))
        return results

    def _episode(self, task: TaskScript, lane: _Lane, model: Model, loop: asyncio.AbstractEventLoop) -> Episode:
        def ask(work: Coroutine[Any, Any, T]) -> T:
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        make: Callable[[], Any] = lambda: speaker_of(self._grounding, self._has_further)  # noqa: E731
        return run_episode(task, lane.browser, make, self._scores, model, ask, self._options, lane.port)


def _asked_of_a_person(confirm: Confirm, stopped: threading.Event, proposal: Proposal) -> Decision:
    """Asks in a thread of its own, so that a run that is stopped need not wait for an answer."""
    answer: Future[Decision] = Future()

    def ask() -> None:
        try:
            answer.set_result(confirm(proposal))
        # a person's function may raise anything, Ctrl-C included: it goes to the thread that waits
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    while not answer.done() and not stopped.is_set():
        with suppress(TimeoutError):
            answer.exception(timeout=0.2)
    return answer.result() if answer.done() else "end"


def _with_base64(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "screenshot": {"bytes": base64.b64encode(row["screenshot"]["bytes"]).decode(), "path": None}}


def _episodes_of(journal: Journal) -> dict[str, EpisodeLine]:
    """The episodes of earlier commands, by id. Raises InputError for a line that is none."""
    done: dict[str, EpisodeLine] = {}
    for line in journal.lines():
        with worded(f"line {line.number} of {journal.path}, which is no episode"):
            one = decoded(line.text, EpisodeLine)
        done[one.annotation_id] = one
    return done


def _is_done(line: EpisodeLine | None) -> bool:
    return line is not None and line.end != ERROR


def _line(episode: Episode) -> EpisodeLine:
    usage, steps = episode.usage, episode.steps
    verdict = None if episode.end == ERROR else episode.done
    return EpisodeLine(
        annotation_id=episode.task.annotation_id, task=episode.task.task, website=episode.task.website, domain=episode.task.domain,
        end=episode.end, done=verdict, reached=None if episode.end == ERROR else episode.reached,
        raw_reward=None if episode.end == ERROR else episode.raw_reward, n_steps=len(steps),
        n_unreadable=sum(bool(step.failure) for step in steps), n_failed_acts=sum(bool(step.problem) and not step.failure for step in steps),
        n_helped=episode.n_helped, detail=episode.detail, answer=episode.answer, attempts=episode.attempts, calls=usage.calls,
        prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens, cost_usd=usage.cost_usd,
        model_s=round(episode.model_s, 3), browser_s=round(episode.browser_s, 3),
    )  # fmt: skip


def trajectory_of(episode: Episode, agent: str) -> Trajectory:
    """The episode as a trajectory, whose label is the page's state."""
    steps = [
        TrajectoryStep(
            "; ".join(filter(None, (step.action or f"({step.failure})", *_told(step.problem, step.events)))),
            step.thought, step.address, StoredScreenshot(step.png), step.reply, step.place,
        )
        for step in episode.steps
    ]  # fmt: skip
    if episode.last_png is not None:
        steps.append(TrajectoryStep("", "", episode.last_address, StoredScreenshot(episode.last_png)))
    verdict = Verdict(STATE, episode.done if episode.end != ERROR else None, "check", episode.end)
    return Trajectory(
        id=episode.task.annotation_id, task_id=episode.task.annotation_id, task=episode.task.task, steps=tuple(steps),
        answer=episode.answer, verdicts=(verdict,), agent=agent, website=episode.task.website,
    )  # fmt: skip


def _told(problem: str, events: Sequence[str]) -> list[str]:
    return [*([f"not carried out: {problem}"] if problem else []), *events]


def _keep_trajectory(folder: Path, episode: Episode, settings: Mapping[str, Any]) -> None:
    """Writes it into a folder of its own, so that a killed run loses none that it finished."""
    agent = f"{settings['agent']}~{settings['model']}"
    write_trajectories(folder / ATTEMPT / safe_name(episode.task.annotation_id), [trajectory_of(episode, agent)])


def _gather(folder: Path, ids: Sequence[str]) -> None:
    """Writes all trajectories into one file, in the order of the episodes."""
    parts = [folder / ATTEMPT / safe_name(name) for name in ids]
    write_trajectories(folder, (one for part in parts if (part / LINES).is_file() for one in read_trajectories(part)))
    assert (folder / PICTURES).is_dir()
