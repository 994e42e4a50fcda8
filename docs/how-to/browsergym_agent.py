"""An agent of seeact-offline in BrowserGym's environments and AgentLab's studies; see browsergym.md. Copy this file and change it as you like.

BrowserGym asks for `action_set`, `obs_preprocessor` and `get_action` (experiments/agent.py), AgentLab for the class of arguments
(agents/agent_args.py).
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit

from seeact_offline.dataset.recorded import PageState
from seeact_offline.grounding.conversation import Session
from seeact_offline.live.acting import FORMATTED, SCROLL, ActFailed, Deed, entry_like, keys_of
from seeact_offline.live.pages import NodeKey, PageView, page_view
from seeact_offline.live.running import acting_grounding, rules_of
from seeact_offline.live.speakers import history_line, outcome, speaker_of
from seeact_offline.recorder.cleaning import Node, xml_text
from seeact_offline.recorder.observing import accessibility_tree, snapshot_tree
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import Box
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.model_settings import model_settings
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import live_scores

ACTIONS = ("chat", "infeas", "bid", "coord", "nav", "tab")
"""BrowserGym's subsets of actions that the agents need."""
MARKS = ("bid", "browsergym_", "aria-roledescription")
"""Attributes that BrowserGym writes on the page."""
FIELDS = frozenset({"select", "input", "textarea", "button"})
SELECT_ALL = "Meta+a" if sys.platform == "darwin" else "Control+a"
NO_LIMIT = 1_000_000
"""Steps: the benchmark's own limit holds."""


@dataclass(unsafe_hash=True)
class GymAgentArgs:
    """Names an agent for a `Study`, and makes one for each episode. `options`: those of `so.evaluate`, as pairs."""

    options: tuple[tuple[str, Any], ...]
    agent_name: str
    use_raw_page_output: ClassVar[bool] = False

    @classmethod
    def of(cls, **options: Any) -> GymAgentArgs:
        config = EvalConfig.of(**options)
        name = f"{config.find_strategy().title}~{str(config.model).rpartition('/')[2]}"
        return cls(tuple(sorted(options.items())), name)

    def make_agent(self) -> GymAgent:
        return GymAgent(open_model(self.options))

    def set_reproducibility_mode(self) -> None:
        self.options = tuple(sorted({**dict(self.options), "temperature": 0.0}.items()))

    def set_benchmark(self, benchmark: Any, demo_mode: Any) -> None: ...

    def prepare(self) -> None: ...

    def close(self) -> None: ...


class OpenModel:
    """A model for all episodes of this process, with one budget."""

    def __init__(self, config: EvalConfig) -> None:
        self.config, self.grounding = config, acting_grounding(config)[0]
        folder = RunFolder(config.out or Path("runs/gym"))
        settings = model_settings(config, folder)
        settings.check_limit()
        self.scores = live_scores(config) if self.grounding.needs_ranking else None
        # the folder stays locked until the process ends
        opened = ExitStack()
        opened.enter_context(folder.alone())
        self.model = settings.open(opened.enter_context(settings.spending(folder)))
        # a loop of its own: Playwright's runs in this thread
        self._opened, self._loop = opened, asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@cache
def open_model(options: tuple[tuple[str, Any], ...]) -> OpenModel:
    return OpenModel(EvalConfig.of(**dict(options)))


class GymAgent:
    """An agent in one episode."""

    def __init__(self, model: OpenModel) -> None:
        self._model, self._speaker = model, speaker_of(model.grounding, model.config.find_strategy().turn2 is not None)
        self._rules = replace(rules_of(model.config), steps=NO_LIMIT)
        self._history: list[str] = []
        self._said: list[str | None] = []
        self._carried: list[bool] = []
        self._numbers: dict[NodeKey, int] = {}
        self._home = self._end = ""

    @cached_property
    def action_set(self) -> Any:
        from browsergym.core.action.highlevel import HighLevelActionSet

        return HighLevelActionSet(list(ACTIONS), multiaction=True, retry_with_force=True)

    def obs_preprocessor(self, observation: dict[str, Any]) -> dict[str, Any]:
        # Playwright's page cannot be pickled
        return {name: value for name, value in observation.items() if name != "page"}

    def get_action(self, observation: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """The next calls; None where the agent has ended."""
        self._home = self._home or observation["url"]
        if self._carried and self._carried[-1] and observation["last_action_error"]:
            self._carried[-1] = False
            self._tell(observation["last_action_error"].strip().partition("\n")[0][:200])
        self._end = self._end or self._rules.end(self._said, self._carried) or ""
        if self._end:
            return None, {"extra_info": {"end": self._end}}
        page = GymPage(observation, self._numbers, f"gym-{len(self._said)}", self._history, self._home)
        model, step = self._model, page.view.step()
        prepared = prepare(step, model.scores, model.config.top_k, model.grounding.form.image)
        session = Session(model.model, step.key)
        move = model.run(self._speaker.ask(session, prepared, page.view, None, False))
        action, problem = "noop()", move.failure or ""
        if move.failure is None:
            self._end = next((deed.kind for deed in move.deeds if deed.kind in ("stop", "answer")), "")
            try:
                action = "\n".join(call for deed in move.deeds for call in page.calls(deed))
            except ActFailed as error:
                problem = str(error)
            self._history.append(history_line(page.view, move))
            self._tell(problem)
        self._said.append(move.said or None)
        self._carried.append(not problem)
        usage = session.usage
        stats = {"calls": usage.calls, "cost_usd": usage.cost_usd}
        return action, {"think": move.thought, "stats": stats, "extra_info": {"reply": move.reply, "problem": problem}}

    def _tell(self, problem: str) -> None:
        if problem:
            self._speaker.hear(outcome(problem))
            self._history[-1] += f"; {outcome(problem)}"


class GymPage:
    """An observation as a row, and BrowserGym's calls for what an agent does there. Points and boxes are in the picture's pixels."""

    def __init__(
        self, observation: dict[str, Any], numbers: dict[NodeKey, int], uid: str, history: list[str], home: str
    ) -> None:
        """`numbers`: the ids that elements of this episode have; new ones are added."""
        from PIL import Image

        file, picture = io.BytesIO(), Image.fromarray(observation["screenshot"])
        picture.save(file, "PNG")
        document, tab = observation["dom_object"]["documents"][0], int(observation["active_page_index"][0])
        # the first box is the window's; MiniWoB's pictures are half as large again
        _, _, width, height = document["layout"]["bounds"][0]
        scale = picture.width / width
        left, top = document["scrollOffsetX"], document["scrollOffsetY"]
        self.tree, ids, self.bids = snapshot_tree(observation["dom_object"]), {}, {}
        for node in self.tree.walk():
            key = NodeKey(tab, node.backend_node_id)
            ids[key.backend] = node.backend_node_id = numbers.setdefault(key, len(numbers) + 1)
            if box := node.box:
                node.box = Box((box.x - left) * scale, (box.y - top) * scale, box.w * scale, box.h * scale)
            if "bid" in node.attributes:
                self.bids[node.backend_node_id] = node.attributes["bid"]
                kept = {name: value for name, value in node.attributes.items() if not name.startswith(MARKS)}
                # what a field holds was written over its `value`, and is known besides
                if node.tag in ("input", "textarea", "select"):
                    kept.pop("value", None)
                node.attributes = kept
        address, self._home = observation["url"], home
        words = "\n".join(part["text"] for part in observation["goal_object"] if part["type"] == "text")
        site = urlsplit(address).hostname or "page"
        task = TaskScript("gym", words, "test", site, "", "", start=address, served=None, actions=())
        made = {
            "page_state": PageState(
                address, (round(width * scale), round(height * scale)), (left * scale, top * scale)
            ),
            "accessibility_tree": accessibility_tree(observation["axtree_object"]["nodes"], ids, ""),
        }
        png, size = file.getvalue(), picture.size
        self.view: PageView = page_view(task, uid, history, self.tree, png, size, made, address, numbers, tab)

    def calls(self, deed: Deed) -> Iterator[str]:
        """Raises ActFailed."""
        kind, text = deed.kind, deed.text.strip()
        named, element = self._element(deed)
        options = [] if element is None else [one for one in element.walk() if one.tag == "option"]
        if element is not None and element.tag == "select" and kind in ("click", "type", "select"):
            bid, labels = self.bids[element.backend_node_id], list(map(label_of, options))
            if named is not None and named.tag == "option":
                yield call("select_option", bid, label_of(named))
            elif kind == "click":
                yield call("focus", bid)
            else:
                yield call("select_option", bid, labels[entry_like(labels, text)])
        elif kind in ("click", "select", "double", "right", "hover"):
            yield self._pointing(deed, named)
        elif kind in ("type", "clear"):
            if element is not None and element.attributes.get("type") in FORMATTED:
                yield call("fill", self.bids[element.backend_node_id], text)
            else:
                if deed.point is not None or named is not None:
                    yield self._pointing(replace(deed, kind="click"), named)
                yield call("keyboard_press", SELECT_ALL)
                yield call("keyboard_type", text) if kind == "type" and text else call("keyboard_press", "Backspace")
            if deed.extra.get("enter") or deed.text.endswith("\n"):
                yield call("keyboard_press", "Enter")
        elif kind == "press":
            yield call("keyboard_press", keys_of(deed))
        elif kind == "scroll":
            way, size = str(deed.extra.get("direction") or text or "down"), float(deed.extra.get("pixels") or SCROLL)
            x, y = {"left": (-size, 0.0), "right": (size, 0.0), "up": (0.0, -size)}.get(way, (0.0, size))
            yield call("scroll_at", *(deed.point or (self.view.size[0] / 2, self.view.size[1] / 2)), x, y)
        elif kind == "drag" and deed.point is not None and "to" in deed.extra:
            yield call("mouse_drag_and_drop", *deed.point, *deed.extra["to"])
        elif kind == "back":
            yield "go_forward()" if "forward" in (text, deed.extra.get("direction")) else "go_back()"
        elif kind == "goto":
            yield call("goto", urljoin(self.view.address, text) if text else self._home)
        elif kind == "tab" and (text in ("new", "close") or text.isdecimal()):
            yield {"new": "new_tab()", "close": "tab_close()"}.get(text) or call("tab_focus", int(text))
        elif kind in ("stop", "answer"):
            yield call("report_infeasible" if text.lower() == "n/a" else "send_msg_to_user", text or "done")
        elif kind in ("wait", "zoom"):
            yield "noop()"
        else:
            raise ActFailed(f"an act {kind!r} cannot be carried out here")

    def _pointing(self, deed: Deed, named: Node | None) -> str:
        by_bid, by_place = {"double": ("dblclick", "mouse_dblclick"), "hover": ("hover", "mouse_move")}.get(
            deed.kind, ("click", "mouse_click")
        )
        button = ("right",) if deed.kind == "right" else ()
        if named is not None:
            return call(by_bid, self.bids[named.backend_node_id], *button)
        if deed.point is None:
            raise ActFailed("expected a place")
        return call(by_place, *deed.point, *button)

    def _element(self, deed: Deed) -> tuple[Node | None, Node | None]:
        """The element that a deed names, and the list or field that it acts on, as far as that is known."""
        marked = [one for one in self.tree.walk() if one.backend_node_id in self.bids]
        number = None if deed.node is None else self.view.ids.get(deed.node)
        named = next((one for one in marked if one.backend_node_id == number), None)
        if named is not None:
            lists = (one for one in marked if one.tag == "select" and any(below is named for below in one.walk()))
            return named, next(lists, named)
        at = (one for one in marked if deed.point and one.tag in FIELDS and one.box and one.box.contains(*deed.point))
        # the last one is drawn above the others
        return None, next(iter([*at][::-1]), None)


def label_of(option: Node) -> str:
    return option.attributes.get("label") or xml_text("".join(below.text for below in option.walk()))


def call(name: str, *values: object) -> str:
    """A call as BrowserGym reads it."""
    written = (repr(round(value, 1) if isinstance(value, float) else value) for value in values)
    return f"{name}({', '.join(written)})"
