"""Where an episode takes place, and its tasks: the bundled sites, a task script of the user's own, and MiniWoB++.

MiniWoB++'s pages are those of the package `miniwob`, as BrowserGym's benchmark `miniwob` sets them up. Sources (ServiceNow/BrowserGym
9e779f0): order in a page, window and reward, browsergym/miniwob base.py; tasks, seeds and steps, browsergym/experiments
benchmark/configs.py and utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urljoin

import numpy as np

from seeact_offline.agents.screens import Size
from seeact_offline.dataset import TEST_SPLITS, canonical_split
from seeact_offline.dataset.split import draw_tasks
from seeact_offline.files.extras import install_command
from seeact_offline.live.pages import LiveSession
from seeact_offline.recorder.origins import ANYWHERE, Origin, served
from seeact_offline.recorder.sample_building import site_names, site_tasks
from seeact_offline.recorder.script import Action, TaskScript, load_tasks
from seeact_offline.records import InputError, Operation
from seeact_offline.runs.config import EvalConfig

BUNDLED = "sites"
"""Names the bundled sites."""
MINIWOB = "miniwob"
"""Names the source."""
LEFT_OUT = frozenset({"button-delay", "chase-circle", "hover-shape", "moving-items", "simon-says"})
"""Pages that are no task of the benchmark."""
SEEDS = 5
"""Episodes a task."""
STEPS = 10
"""Most steps of an episode."""
BENCHMARK_SEED = 42
SEED_MAX = 2 ^ 32
"""34: an exclusive or in the released code, which draws all seeds below it."""
PAGE_SEED_MAX = 1_000_000
EPISODE_MS = 1_000_000
"""The page's own limit, which no agent meets."""
SUBMIT = "submit"
"""Names the model that presses the submit button at once."""
SUBMIT_BUTTON = ':is(button, input[type=submit], input[type=button]):text-matches("^\\\\s*(submit|ok)\\\\s*$", "i") >> visible=true >> nth=0'


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on a page as it is now."""

    done: bool | None
    """None for a task without a check."""
    is_over: bool = False
    """True if the page has ended the episode by itself."""
    raw_reward: float | None = None
    """The page's own reward; None where it gives none."""


class Place:
    """Sites whose state is checked: the bundled ones, and those of a task script."""

    size: Size | None = None
    """Size of the window; None: the agent's own."""
    clock_runs = False
    """False: the time stands still."""

    def address(self, task: TaskScript, port: int = 0) -> AbstractContextManager[str]:
        """The address to open while the context lasts. `port`: where a folder is served if that is free, so that a browser that reaches this
        origin alone can be kept."""
        return served(task.start, task.served, port)

    def begin(self, session: LiveSession) -> TaskScript:
        """Begins the task on the page that was opened, and returns it as the agent is told it. Raises InputError for a task that is done already."""
        session.rest()
        if session.task.is_checked and session.is_done():
            task = f"{session.task.task!r:.100}"
            raise InputError("tasks", sentence=f"the check of task {task} holds before the first act; make it stricter")
        return session.task

    def judge(self, session: LiveSession) -> Judgement:
        """Raises Playwright's Error where the state cannot be found out."""
        return Judgement(session.is_done() if session.task.is_checked else None)


# --- tasks ---


def live_tasks(
    source: str, config: EvalConfig, allowed: frozenset[Origin] = frozenset(), is_recorded: bool = False
) -> list[TaskScript]:
    """The tasks of a source that the configuration selects, in the order of their scripts. `allowed`: origins that the user named. `is_recorded`:
    only tasks with recorded acts will do. Raises InputError for a source without tasks, and for a task that cannot be acted on."""
    if source == BUNDLED:
        every = [task for name in site_names() for task in site_tasks(name)]
    elif Path(source).is_file():
        every = load_tasks(Path(source))
    else:
        raise InputError("places", f"{BUNDLED}, {MINIWOB}, or a file of tasks", repr(source))
    split = canonical_split(config.split)
    splits = TEST_SPLITS if split == "all" else (split,)
    # a file of one's own need not name splits
    named = [task for task in every if canonical_split(task.split) in splits] if source == BUNDLED else every
    tasks = _selected(named, config)
    if not tasks:
        raise InputError("split", f"a split of {source} with tasks", config.split)
    for task in tasks:
        if is_recorded and not task.actions:
            raise InputError("model", sentence=f"builtin/oracle needs steps; task {task.task!r:.80} has none")
        is_reached = task.served or task.start.startswith("file:") or ANYWHERE in allowed
        if not is_reached and (origin := Origin.of(task.start, "places")) not in allowed:
            sentence = f"task {task.task!r:.80} starts on {origin}; name it by `allow_origin` to act there"
            raise InputError("allow_origin", sentence=sentence)
    return tasks


def miniwob_episodes(config: EvalConfig, n_seeds: int | None, is_recorded: bool) -> list[TaskScript]:
    """The episodes of MiniWoB++ that the configuration selects by their tasks; `n_seeds` of each. One that is drawn twice stands twice.

    `is_recorded`: only tasks with recorded acts will do. Raises InputError for an unknown task, and where the pages are not installed.
    """
    folder = html_folder()
    names = names_of_tasks(folder)
    every = [
        TaskScript(
            annotation_id=name, task=name, split="test", website=name, domain="MiniWoB++", subdomain="", start=f"miniwob/{name}.html",
            served=folder, actions=(),
        )
        for name in names
    ]  # fmt: skip
    tasks = _selected(every, config)
    if is_recorded and any(task.annotation_id not in RECIPES for task in tasks):
        sentence = f"builtin/oracle has recorded acts for {', '.join(RECIPES)} alone; name some of them by `tasks`"
        raise InputError("tasks", sentence=sentence)
    seeds = seeds_of_tasks(names, n_seeds or SEEDS)
    # `click-tab.17` is the task with seed 17
    return [
        replace(task, annotation_id=f"{task.annotation_id}.{seed}")
        for task in tasks
        for seed in seeds[task.annotation_id]
    ]


def _selected(tasks: Sequence[TaskScript], config: EvalConfig) -> list[TaskScript]:
    """The tasks that `tasks`, `limit` and `sample` leave. Raises InputError for an id that no task has."""
    known = {task.annotation_id: task for task in tasks}
    wanted = config.task_ids
    if wanted is not None:
        unknown = [name for name in wanted if name not in known]
        if unknown:
            raise InputError("tasks", "ids of tasks", f"{len(unknown)} that no task has, {unknown[0]} first")
        known = {name: task for name, task in known.items() if name in wanted}
    if config.sample is not None:
        drawn = set(draw_tasks({name: task.website for name, task in known.items()}, config.sample, config.seed))
        known = {name: task for name, task in known.items() if name in drawn}
    return [*known.values()][: config.limit]


# --- MiniWoB++ ---


@dataclass(frozen=True, slots=True)
class Recipe:
    """Recorded acts that follow from a goal."""

    goal: str
    """Regular expression; its groups are the fields of selectors and values."""
    acts: tuple[tuple[str, str, str], ...]
    """Operation, selector and value of each."""

    def actions(self, goal: str) -> tuple[Action, ...]:
        """Raises ValueError for a goal that it does not know."""
        match = re.fullmatch(self.goal, goal)
        if match is None:
            raise ValueError(goal)
        named = [
            (op, selector.format(*match.groups()), value.format(*match.groups())) for op, selector, value in self.acts
        ]
        return tuple(Action(Operation(op, value, op), selector, None) for op, selector, value in named)


_SUBMITS = ("CLICK", "#subbtn", "")
RECIPES: Mapping[str, Recipe] = {
    "click-button": Recipe(r'Click on the "(.+)" button\.', (("CLICK", '#area button:text-is("{0}") >> nth=0', ""),)),
    "click-dialog": Recipe(r"Close the dialog .*", (("CLICK", ".ui-dialog-titlebar-close", ""),)),
    "click-link": Recipe(r'Click on the link "(.+)"\.', (("CLICK", '.alink:text-is("{0}") >> nth=0', ""),)),
    "click-tab": Recipe(r"Click on Tab #(\d)\.", (("CLICK", 'a[href="#tabs-{0}"]', ""),)),
    "click-test": Recipe(r"Click the button\.", (_SUBMITS,)),
    "click-test-2": Recipe(r"Click button ONE\.", (_SUBMITS,)),
    "enter-text": Recipe(r'Enter "(.+)" into the text field and press Submit\.', (("TYPE", "#tt", "{0}"), _SUBMITS)),
    "focus-text": Recipe(r"Focus into the textbox\.", (("CLICK", "#tt", ""),)),
}
"""Tasks that builtin/oracle knows."""

_PAGE = (Path(__file__).parent / "miniwob.js").read_text(encoding="utf-8")


def html_folder() -> Path:
    """The folder of the pages. The package is found and not imported, as it would import others. Raises InputError where it is not installed."""
    spec = find_spec(MINIWOB)
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (folder := Path(place) / "html").is_dir():
            return folder
    raise InputError("places", sentence=f"miniwob needs the package miniwob: run {install_command('live')}")


def names_of_tasks(folder: Path) -> list[str]:
    """The tasks of the benchmark, in its order."""
    return sorted({path.stem for path in (folder / "miniwob").glob("*.html")} - LEFT_OUT)


def seeds_of_tasks(names: Sequence[str], n: int) -> dict[str, list[int]]:
    """Task -> its first `n` seeds. The benchmark draws five for all tasks in order, and a seed may come twice; more are drawn in further rounds.

    >>> seeds_of_tasks(["ascending-numbers", "bisect-angle"], 5)["ascending-numbers"]
    [28, 14, 7, 20, 18]
    """
    stream = np.random.RandomState(BENCHMARK_SEED)
    rounds = [stream.randint(0, SEED_MAX, size=(len(names), SEEDS)) for _ in range(-(-n // SEEDS))]
    return dict(zip(names, np.hstack(rounds)[:, :n].tolist(), strict=True))


def page_seed(seed: int) -> int:
    """The seed of the page's own random numbers."""
    return int(np.random.RandomState(seed).randint(0, PAGE_SEED_MAX))


class Miniwob(Place):
    """The pages, served at one address as long as a run lasts, so that a browser can be kept."""

    size = (332, 214)
    clock_runs = True

    def __init__(self, base: str, presses_submit: bool = False) -> None:
        """`base`: address of the folder. `presses_submit`: the recorded act of every task is to press its submit button."""
        self._base, self._presses_submit = base, presses_submit

    def address(self, task: TaskScript, port: int = 0) -> AbstractContextManager[str]:
        return nullcontext(urljoin(self._base, task.start))

    def begin(self, session: LiveSession) -> TaskScript:
        name, _, seed = session.task.annotation_id.rpartition(".")
        session.page.evaluate(_PAGE, ["begin", page_seed(int(seed)), EPISODE_MS])
        session.page.wait_for_function("() => WOB_TASK_READY")
        goal: str = session.page.evaluate(_PAGE, ["goal"])
        actions: tuple[Action, ...] = ()
        if self._presses_submit:
            if session.page.locator(SUBMIT_BUTTON).count():
                actions = (Action(Operation("CLICK", "", "CLICK"), SUBMIT_BUTTON, None),)
        elif name in RECIPES:
            actions = RECIPES[name].actions(goal)
        return replace(session.task, task=goal, actions=actions)

    def judge(self, session: LiveSession) -> Judgement:
        """A raw reward above 0 is a success. Another page, tab or address ends the episode without one."""
        if session.tab != 0 or session.page.url != session.start:
            return Judgement(False, True, 0.0)
        found = session.tried(lambda: session.page.evaluate(_PAGE, ["reward"]))
        if found is None:
            return Judgement(False, True, 0.0)
        raw, is_over = found
        return Judgement(raw > 0, is_over, raw)
