"""MiniWoB++ as a place where agents act: the pages of the package `miniwob`, as BrowserGym's benchmark `miniwob` sets them up.

Sources (ServiceNow/BrowserGym 9e779f0): order in a page, window and reward, browsergym/miniwob base.py; tasks, seeds and steps,
browsergym/experiments benchmark/configs.py and utils.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urljoin

import numpy as np

from seeact_offline.files.extras import install_command
from seeact_offline.live.acting_places import Judgement, Place
from seeact_offline.live.pages import LiveSession
from seeact_offline.recorder.script import Action, TaskScript
from seeact_offline.records import InputError, Operation

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


def miniwob_version() -> str:
    return version(MINIWOB)


def task_scripts(folder: Path) -> list[TaskScript]:
    """The tasks, without a seed."""
    return [
        TaskScript(
            annotation_id=name, task=name, split="test", website=name, domain="MiniWoB++", subdomain="", start=f"miniwob/{name}.html",
            served=folder, actions=(),
        )
        for name in names_of_tasks(folder)
    ]  # fmt: skip


def episodes_of(tasks: Sequence[TaskScript], folder: Path, n_seeds: int) -> list[TaskScript]:
    """The episodes of these tasks; `click-tab.17` is the task with seed 17. One that is drawn twice stands twice."""
    seeds = seeds_of_tasks(names_of_tasks(folder), n_seeds)
    return [
        replace(task, annotation_id=f"{task.annotation_id}.{seed}")
        for task in tasks
        for seed in seeds[task.annotation_id]
    ]


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
