"""Our agents in BrowserGym's environments and AgentLab's studies, without importing either but for the set of actions.

The interface is BrowserGym's (experiments/agent.py: `action_set`, `obs_preprocessor`, `get_action`) and AgentLab's (agents/agent_args.py).
The page comes from the observation alone, so no column `layout` is there: WebVoyager's marks know no cursor and no covering. The
benchmark's own limit of steps holds, not the agent's.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar, TypeVar

from seeact_offline.grounding.conversation import Session
from seeact_offline.live.acting import ActFailed
from seeact_offline.live.episodes import ORACLE, RANDOM
from seeact_offline.live.gym_pages import GymPage, calls, page_of_observation, task_of
from seeact_offline.live.pages import NodeKey
from seeact_offline.live.running import acting_grounding, rules_of
from seeact_offline.live.speakers import Move, history_line, outcome, speaker_of
from seeact_offline.live.stop_rules import ANSWERED, STOPPED
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.groundings import live_scores
from seeact_offline.runs.model_settings import model_settings
from seeact_offline.runs.open import safe_name
from seeact_offline.runs.prepare import prepare

LOG = logging.getLogger(__name__)
ACTIONS = ("chat", "infeas", "bid", "coord", "nav", "tab")
"""BrowserGym's subsets of actions that the agents' deeds need: more than some benchmarks' own."""
NO_LIMIT = 1_000_000
Options = tuple[tuple[str, Any], ...]
T = TypeVar("T")


def gym_agent_args(**options: Any) -> GymAgentArgs:
    """An agent for AgentLab's `Study`, and for a loop of your own. `options`: fields of `EvalConfig`: agent, model, cost, `out`.

    >>> gym_agent_args(agent="webvoyager", model="builtin/lexical").agent_name
    'webvoyager~lexical'
    """
    config = _config(tuple(sorted(options.items())))
    name = f"{config.find_strategy().title}~{str(config.model).rpartition('/')[2]}"
    return GymAgentArgs(tuple(sorted(options.items())), name)


@dataclass(unsafe_hash=True)
class GymAgentArgs:
    """Names an agent, and makes one for an episode. Can be hashed and pickled as far as the options can."""

    options: Options
    agent_name: str
    use_raw_page_output: ClassVar[bool] = False
    """False: the environment is asked for observations, and not Playwright's page."""

    def make_agent(self) -> GymAgent:
        """An agent for one episode. Raises InputError for options that cannot be used, and where another process works in the same folder."""
        return GymAgent(_Model.of(self.options))

    def set_reproducibility_mode(self) -> None:
        """Sets the temperature to 0."""
        self.options = tuple(sorted({**dict(self.options), "temperature": 0.0}.items()))

    def set_benchmark(self, benchmark: Any, demo_mode: Any) -> None:
        """Changes nothing: the agents and their actions are the same on each benchmark."""

    def prepare(self) -> None:
        """Raises InputError for options that cannot be used."""
        config = _config(self.options)
        acting_grounding(config)
        model_settings(config, _folder(config)).check_limit()

    def close(self) -> None:
        """Closes this process's model, which the end of the process does too."""
        _Model.close(self.options)


class GymAgent:
    """An agent in one episode."""

    def __init__(self, model: _Model) -> None:
        self._model, self._speaker = model, speaker_of(model.grounding, model.config.find_strategy().turn2 is not None)
        self._rules = replace(rules_of(model.config), steps=NO_LIMIT)
        self._history: list[str] = []
        self._said: list[str | None] = []
        self._carried: list[bool] = []
        self._numbers: dict[NodeKey, int] = {}
        self._home = self._end = ""
        self._remarks: set[str] = set()

    @cached_property
    def action_set(self) -> Any:
        """BrowserGym's set of the actions that its calls name; `to_python_code` is the environment's `action_mapping`."""
        from browsergym.core.action.highlevel import HighLevelActionSet

        return HighLevelActionSet(list(ACTIONS), multiaction=True, retry_with_force=True)

    def obs_preprocessor(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """The observation without a page of Playwright, which cannot be pickled."""
        return {name: one for name, one in observation.items() if name != "page"}

    def get_action(self, observation: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """The next calls; None where the agent has ended. Raises StepError where the model's server fails, OutOfBudget and InputError."""
        self._home = self._home or observation["url"]
        if self._carried and observation["last_action_error"] and self._carried[-1]:
            self._carried[-1] = False
            self._tell(observation["last_action_error"].strip().partition("\n")[0][:200])
        self._end = self._end or self._rules.end(self._said, self._carried) or ""
        if self._end:
            return None, {"extra_info": {"end": self._end}}
        task, n_pictures = task_of(observation)
        uid = f"gym-{len(self._said)}"
        page = page_of_observation(observation, self._numbers, uid, task, self._history)
        self._remark(page, n_pictures)
        model, step = self._model, page.view.step()
        prepared = prepare(step, model.scores, model.config.top_k, model.grounding.form.image)
        session = Session(model.model, step.key)
        move = model.run(self._speaker.ask(session, prepared, page.view, None, False))
        action, problem = self._calls(page, move)
        self._said.append(move.said or None)
        self._carried.append(not problem)
        if move.failure is None:
            self._history.append(history_line(page.view, move))
            self._tell(problem)
        usage = session.usage
        stats = {
            "calls": usage.calls, "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens,
            "cost_usd": usage.cost_usd,
        }  # fmt: skip
        told = {"reply": move.reply, "action": move.said, "problem": problem}
        return action, {"think": move.thought, "stats": stats, "extra_info": told}

    def _calls(self, page: GymPage, move: Move) -> tuple[str, str]:
        """The calls, and why the move cannot be carried out, or nothing."""
        if move.failure is not None:
            return "noop()", move.failure
        kinds = [deed.kind for deed in move.deeds]
        ends = next((at for at, kind in enumerate(kinds) if kind in ("stop", "answer")), None)
        if ends is not None:
            self._end = ANSWERED if kinds[ends] == "answer" else STOPPED
        try:
            return calls(page, move.deeds[: None if ends is None else ends + 1], self._home), ""
        except ActFailed as error:
            return "noop()", str(error)

    def _tell(self, problem: str) -> None:
        """Tells the agent why its last action was not carried out, if it was not."""
        if problem:
            self._speaker.hear(outcome(problem))
            self._history[-1] += f"; {outcome(problem)}"

    def _remark(self, page: GymPage, n_pictures: int) -> None:
        """Says once an episode what makes it another task than it should be."""
        width, height = page.view.size
        remarks = {
            "lost": page.lost and f"{page.lost:.0f} of the picture's {height} rows are no longer in the browser's window, and a click there"
            " meets nothing: this Chromium makes its window lower when BrowserGym takes a picture; use the one that Playwright installs",
            "size": not self._speaker.whole and width > self._speaker.size[0]
            and f"the window is {width} pixels wide, and the agent sees the left {self._speaker.size[0]}",
            "pictures": n_pictures and f"{n_pictures} pictures of the task are not shown",
        }  # fmt: skip
        for name, text in remarks.items():
            if text and name not in self._remarks:
                LOG.warning(text)
                self._remarks.add(name)


class _Model:
    """A model that is open for all episodes of this process, with one budget, in an event loop of its own."""

    _opened: ClassVar[dict[Options, _Model]] = {}

    def __init__(self, options: Options) -> None:
        self.config = _config(options)
        self.grounding, _ = acting_grounding(self.config)
        folder = _folder(self.config)
        settings = model_settings(self.config, folder)
        settings.check_limit()
        self.scores = live_scores(self.config) if self.grounding.needs_ranking else None
        with ExitStack() as opened:
            opened.enter_context(folder.alone())
            self.model = settings.open(opened.enter_context(settings.spending(folder)))
            self._loop = asyncio.new_event_loop()
            thread = Thread(target=self._loop.run_forever, daemon=True)
            thread.start()
            # the last one is called first
            opened.callback(self._loop.close)
            opened.callback(thread.join)
            opened.callback(self._loop.call_soon_threadsafe, self._loop.stop)
            opened.callback(lambda: self.run(self.model.aclose()))
            self._resources = opened.pop_all()

    @classmethod
    def of(cls, options: Options) -> _Model:
        if options not in cls._opened:
            cls._opened[options] = cls(options)
            atexit.register(cls.close, options)
        return cls._opened[options]

    @classmethod
    def close(cls, options: Options) -> None:
        if (opened := cls._opened.pop(options, None)) is not None:
            opened._resources.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def _config(options: Options) -> EvalConfig:
    config = EvalConfig.of(**dict(options))
    if config.model in (f"builtin/{ORACLE}", f"builtin/{RANDOM}"):
        raise InputError("model", sentence=f"{config.model} needs a task of `browse`; name another model")
    return config


def _folder(config: EvalConfig) -> RunFolder:
    names = ("gym", config.find_strategy().title, str(config.model))
    return RunFolder(config.out or Path("runs") / "-".join(safe_name(name) for name in names))
