"""Tasks recorded: one `StepRecord` an action, and the folder in which they are kept.

Each finished task is a line on disk, so that a stopped recording is resumed; the data set is made of them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import structs

from seeact_offline.dataset import SPLITS, canonical_split
from seeact_offline.dataset.recorded import FINAL_SCREENSHOT, RECORDED_COLUMNS, Check, Condition, FinalState, PageState
from seeact_offline.dataset.writing import ElementRecord, StepRecord, to_row, write_hub_parquet
from seeact_offline.files.whole import Journal
from seeact_offline.pages.screenshots import open_picture
from seeact_offline.recorder.browser import (
    INIT,
    Chromium,
    ConditionResult,
    Deadline,
    accepts_dialog,
    answer_dialog,
    carry_out,
    evaluate,
    find,
    find_chromium,
    fresh_page,
    same_box,
    settle,
)
from seeact_offline.recorder.cleaning import Node, candidate_attributes, clean, cleaned_html, raw_html, xml_text
from seeact_offline.recorder.observing import MEASURE, STYLES, accessibility_tree, layout, snapshot_tree
from seeact_offline.recorder.origins import Origin, served
from seeact_offline.recorder.script import Action, TaskScript
from seeact_offline.records import Box, InputError, StepError

if TYPE_CHECKING:
    from PIL import Image
    from playwright.sync_api import CDPSession, Locator, Page

NAME_CHARS = 80
"""Most characters of an element's name in an action text."""
NAMELESS_ROLES = frozenset(
    {"", "generic", "none", "presentation", "StaticText", "LabelText", "Canvas", "Iframe", "ignored"}
)
"""Accessibility roles that add nothing to the tag."""
_FALLBACK_NAME = """(el) =>
  el.getAttribute('aria-label') || (el.tagName === 'SELECT' ? '' : el.innerText) || el.placeholder || el.title ||
  el.name || ''"""
"""The name of an element that the accessibility tree does not name; the text of a list would be all its options."""
PARTIAL = "recording.partial.jsonl"
"""A file in the data set's folder until every task of the script is recorded."""
MOST_COLOURS = 256


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Options of a recording."""

    browser: str | None = None
    """Path of a Chromium; None: the first one on the PATH."""
    picture: str = "jpeg"
    """jpeg, webp, png or tiff."""
    quality: int = 80
    """Quality of jpeg and webp, 1 to 100."""
    colours: int = 256
    """Number of colours that a tiff keeps, the most frequent ones, 1 to 256."""
    raw_html: bool = True
    """False leaves the column empty to save space."""
    timeout_s: float = 15.0
    """Seconds for an element to appear, and for a page to load."""
    deadline_s: float = 45.0
    """Seconds for a step as a whole; then the browser is killed and the task fails."""
    allow_origins: tuple[str, ...] = ()
    """Origins besides that of the task's start to which pages may send requests,
    as `https://host` or `http://host:port`."""
    fonts: Path | None = None
    """A fontconfig file that chooses the fonts; None: the system's."""


class RecordFailed(StepError):
    """A task that could not be recorded to its end; `steps` are those before the one that failed."""

    def __init__(self, detail: str, steps: Sequence[StepRecord]) -> None:
        super().__init__("record_failed", detail)
        self.steps = steps


class Recorder:
    """Records tasks. A context manager that keeps Playwright running while it is open."""

    def __init__(self, options: RecordOptions) -> None:
        """Raises InputError with the command that installs a missing browser."""
        self._options = options
        self._allowed = frozenset(Origin.of(url, "allow_origin") for url in options.allow_origins)
        self._chromium = Chromium(find_chromium(options.browser), options.fonts)
        self.refused: set[str] = set()
        """Origins to which pages could not send their requests, so far."""

    def __enter__(self) -> Recorder:
        self._browser = self._chromium.reaching(self._allowed)
        return self

    def __exit__(self, *_: object) -> None:
        self._chromium.close()

    @property
    def version(self) -> str:
        """The browser's version."""
        return str(self._browser.version)

    def record(self, task: TaskScript) -> list[StepRecord]:
        """All steps of one task, in a fresh profile. Raises RecordFailed naming the failed step, counted from 1."""
        with served(task.start, task.served) as start:
            self._browser = self._chromium.reaching(self._allowed | {Origin.of(start, "start")})
            try:
                with Deadline(self._browser, self._options.deadline_s) as deadline:
                    return self._steps(task, start, deadline)
            except RecursionError:
                raise StepError("record_failed", f"task {task.task!r:.100}: a page that is nested too deeply") from None

    def _note_refused(self, url: str) -> None:
        with suppress(InputError):
            origin = Origin.of(url, "start")
            self.refused |= set() if origin in self._chromium.reachable else {str(origin)}

    def _steps(self, task: TaskScript, start: str, deadline: Deadline) -> list[StepRecord]:
        from playwright.sync_api import Error

        states: list[_PageState] = []
        number = 0
        try:
            with fresh_page(self._browser, INIT) as page:
                page.context.on("requestfailed", lambda request: self._note_refused(request.url))
                page.on("dialog", lambda dialog: answer_dialog(dialog, accepts_dialog(dialog, task)))
                page.set_default_timeout(1000 * self._options.timeout_s)
                session = page.context.new_cdp_session(page)
                page.goto(start)
                for number in range(len(task.actions)):
                    action = task.actions[number]
                    states.append(self._state(page, session, action, task.check))
                    carry_out(find(page, action), action)
                    deadline.restart()
                final = self._capture(page, session, task.check)
            for condition, result in zip(task.check, final.checked, strict=True):
                if not result.holds:
                    reason = f"expected {condition} after it, got {str(result.found)[:100] or 'nothing'}"
                    raise StepError("check_failed", reason)
        except (Error, StepError) as error:
            reason = error.detail if isinstance(error, StepError) else " ".join(error.message.split())[:300]
            if deadline.passed:
                reason = f"not done within {self._options.deadline_s:g} s"
            refused = f"; no requests were sent to {', '.join(sorted(self.refused))[:200]}" if self.refused else ""
            place = f"step {min(number + 1, len(task.actions))} of {len(task.actions)} of task {task.task!r:.100}"
            is_check = isinstance(error, StepError) and error.name == "check_failed"
            done = [] if is_check else self._records(task, start, states[:number], None)
            raise RecordFailed(f"{place}: {reason}{refused}", done) from None
        return self._records(task, start, states, final)

    def _records(
        self, task: TaskScript, start: str, states: Sequence[_PageState], final: _Capture | None
    ) -> list[StepRecord]:
        """The rows of these pages. `final`: the page after the last action."""
        # numbered by first appearance: a node keeps its id from page to page, but the browser's own numbers depend on
        # timing
        ids: dict[int, int] = {}
        for capture in [*(state.capture for state in states), *([final] if final else [])]:
            for node in capture.tree.walk():
                node.backend_node_id = ids.setdefault(node.backend_node_id, len(ids) + 1)
        for state in states:
            state.hit[:] = [ids.get(node, -1) for node in state.hit]
        # the port of a folder that is served here is another one each time
        base = "" if start == task.start else urlunsplit((*urlsplit(start)[:2], "", "", ""))
        actions = tuple(state.action_text for state in states)
        finals = [*[None] * (len(states) - 1), final]
        return [
            self._record(task, i, state, actions, self._recorded(task, state.capture, finals[i], ids, base))
            for i, state in enumerate(states)
        ]

    def _capture(self, page: Page, session: CDPSession, check: tuple[Condition, ...]) -> _Capture:
        """The page at rest, scrolled to its top."""
        settle(page)
        page.evaluate("() => scrollTo(0, 0)")
        return _Capture(
            picture=page.screenshot(full_page=True, animations="disabled", caret="hide", type="png"),
            tree=snapshot_tree(session.send("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)})),
            checked=tuple(evaluate(page, condition) for condition in check),
            state=PageState(page.url, *page.evaluate("() => [[innerWidth, innerHeight], [scrollX, scrollY]]")),
            measured=page.evaluate(MEASURE),
            accessible=session.send("Accessibility.getFullAXTree")["nodes"],
        )

    def _state(self, page: Page, session: CDPSession, action: Action, check: tuple[Condition, ...]) -> _PageState:
        """The page before the action, and the elements that the action hits."""
        capture = self._capture(page, session, check)
        if check and all(capture.holds):
            raise StepError("check_failed", "expected a check that does not hold before this action, got one that does")
        target = find(page, action)
        target.scroll_into_view_if_needed()
        hit = [] if action.frame else same_box(target, session)
        return _PageState(capture, hit, action_text(target, session, hit, action))

    def _recorded(
        self, task: TaskScript, capture: _Capture, final: _Capture | None, ids: Mapping[int, int], base: str
    ) -> dict[str, object]:
        """The optional columns of a step. `final`: the page after the task's last action, for that step alone."""
        made: dict[str, object] = {
            "page_state": structs.replace(capture.state, address=capture.state.address.removeprefix(base)),
            "layout": layout(capture.tree, capture.measured),
            "accessibility_tree": accessibility_tree(capture.accessible, ids, base),
        }
        if task.check:
            made["check"] = Check(task.check, capture.holds, final.holds if final else None)
        columns: dict[str, object] = dict.fromkeys(RECORDED_COLUMNS)
        if final:
            encoded, size = _encode(final.picture, self._options)
            page = cleaned_html(clean(final.tree, Box(0, 0, *size)))
            made["final_state"] = FinalState(final.state.address.removeprefix(base), page, task.answer)
            columns[FINAL_SCREENSHOT] = {"bytes": encoded, "path": None}
        return columns | {name: msgspec.json.encode(value).decode() for name, value in made.items()}

    def _record(
        self, task: TaskScript, index: int, state: _PageState, actions: tuple[str, ...], recorded: Mapping[str, object]
    ) -> StepRecord:
        encoded, size = _encode(state.capture.picture, self._options)
        page = clean(state.capture.tree, Box(0, 0, *size))
        return StepRecord(
            annotation_id=task.annotation_id, action_uid=task.action_uid(index), task=task.task, website=task.website,
            domain=task.domain, subdomain=task.subdomain, index=index, actions=actions,
            operation=task.actions[index].operation,
            raw_html=raw_html(state.capture.tree) if self._options.raw_html else "", cleaned_html=cleaned_html(page),
            elements=tuple(element_records(page, state.hit)), screenshot=encoded, recorded=recorded,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Capture:
    """A page as it is at one time."""

    picture: bytes
    """PNG of the whole page."""
    tree: Node
    checked: tuple[ConditionResult, ...]
    """Result of each condition of the task's check."""
    state: PageState
    """State with the whole address."""
    measured: list[dict[str, Any]]
    accessible: list[dict[str, Any]]

    @property
    def holds(self) -> tuple[bool, ...]:
        return tuple(result.holds for result in self.checked)


@dataclass(frozen=True, slots=True)
class _PageState:
    """One page before an action."""

    capture: _Capture
    hit: list[int]
    """Backend node ids that the action hits, the element acted on first; empty inside a frame."""
    action_text: str


def action_text(target: Locator, session: CDPSession, hit: list[int], action: Action) -> str:
    """`[role]  name -> OP: value`, as in the data set."""
    role = name = ""
    if hit:
        asked = {"backendNodeId": hit[0], "fetchRelatives": False}
        node: dict[str, Any] = next(iter(session.send("Accessibility.getPartialAXTree", asked)["nodes"]), {})
        role, name = (str(node.get(field, {}).get("value", "")) for field in ("role", "name"))
    if role in NAMELESS_ROLES:
        role = str(target.evaluate("(el) => el.tagName.toLowerCase()"))
    name = name or str(target.evaluate(_FALLBACK_NAME))
    value = f": {action.operation.value}" if action.operation.value else ""
    return f"[{role}]  {xml_text(name)[:NAME_CHARS].strip()} -> {action.operation.original_op}{value}"


def element_records(page: Node, hit: list[int]) -> Iterator[ElementRecord]:
    """Every element of the cleaned page as a candidate, in document order; the elements hit are the positives."""
    places = {node: place for place, node in enumerate(hit)}
    first_hit = True
    for node in page.walk():
        if not node.tag or node.box is None:
            continue
        is_positive = node.backend_node_id in places
        yield ElementRecord(
            backend_node_id=str(node.backend_node_id),
            tag=node.tag,
            box=node.box,
            attributes=candidate_attributes(node),
            is_positive=is_positive,
            is_original=places.get(node.backend_node_id) == 0,
            is_top_level=is_positive and first_hit,
        )
        first_hit = first_hit and not is_positive


def _encode(png: bytes, options: RecordOptions) -> tuple[bytes, tuple[int, int]]:
    """The picture in the format asked for, and its size in pixels."""
    picture = open_picture(png).convert("RGB")
    if options.picture == "png":
        return png, picture.size
    out = io.BytesIO()
    if options.picture == "tiff":
        in_few_colours(picture, options.colours).save(out, "TIFF", compression="packbits")
        return out.getvalue(), picture.size
    settings: dict[str, Any] = {"method": 6} if options.picture == "webp" else {"optimize": True}
    picture.save(out, options.picture.upper(), quality=options.quality, **settings)
    return out.getvalue(), picture.size


def in_few_colours(picture: Image.Image, n: int) -> Image.Image:
    """The RGB picture in its `n` most frequent colours, 1 to 256, as a picture with a palette: a page's flat colours
    stay exact, while a median cut would mix them. Any other colour becomes the nearest of these;
    colours less than four steps apart may become one.

    A colour has the same number in every picture, unless two colours want the same one. So the parts that two pictures
    share are the same bytes once their runs are packed,
    and a compressed column of them takes a fifth of what WebP files take.
    """
    from PIL import Image

    counted = picture.getcolors(picture.width * picture.height) or []
    frequent = sorted(counted, key=lambda pair: (-pair[0], pair[1]))[:n]
    colours = [cast("tuple[int, int, int]", colour) for _, colour in frequent]
    palette = Image.new("P", (1, 1))
    palette.putpalette(bytes(value for colour in colours for value in colour))
    by_number: dict[int, tuple[int, int, int]] = {}
    for colour in colours:
        red, green, blue = colour
        number = (7 * red + 31 * green + 101 * blue) % MOST_COLOURS
        while number in by_number:
            number = (number + 1) % MOST_COLOURS
        by_number[number] = colour
    flat = picture.quantize(palette=palette, dither=Image.Dither.NONE)
    flat = flat.point([*by_number, *[0] * (MOST_COLOURS - len(by_number))])
    flat.putpalette(bytes(value for number in range(MOST_COLOURS) for value in by_number.get(number, (0, 0, 0))))
    return flat


# --- the folder ---


class RecordingFolder:
    """The tasks of one script, recorded into one folder. A context manager, open for keeping tasks inside."""

    def __init__(self, out: Path, tasks: Sequence[TaskScript], options: RecordOptions, force: bool = False) -> None:
        """`force`: records all tasks over those in the folder.
        Raises InputError for a folder that holds anything but a recording of these tasks."""
        self._out, self._tasks, self._options, self._force = out, tasks, options, force
        self._splits = {task.annotation_id: canonical_split(task.split) for task in tasks}
        if not SPLITS.keys() >= set(self._splits.values()):
            raise InputError("split", f"one of {', '.join(SPLITS)}", "all")
        self._journal = Journal(out / PARTIAL)
        self._places, self._begun = ({}, {}) if force else self._find_kept()
        """The byte at which the line of each finished task begins, and of each that stopped at a step, by its key."""

    def __enter__(self) -> RecordingFolder:
        if self._force:
            self._journal.path.unlink(missing_ok=True)
        self._journal.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.__exit__()

    def __contains__(self, task: TaskScript) -> bool:
        """Tells whether the task is recorded as the script has it, and with these options."""
        return self._key(task) in self._places

    def keep(self, task: TaskScript, steps: Sequence[StepRecord], is_whole: bool = True) -> None:
        """Writes a task to disk. `is_whole`: False for one that stopped at a step,
        which is recorded again the next time."""
        rows = [_with_pictures(to_row(step), lambda content: base64.b64encode(content).decode()) for step in steps]
        line = {"annotation_id": task.annotation_id, "key": self._key(task), "rows": rows}
        places, mark = (self._places, {}) if is_whole else (self._begun, {"stopped": True})
        places[self._key(task)] = self._journal.append(json.dumps(line | mark))

    def write(self) -> dict[Path, int]:
        """Writes the tasks recorded so far as a data set. File of each split -> its steps.
        Removes their lines once all are recorded."""
        written = {}
        recorded = [task for task in self._tasks if self._place(task) is not None]
        for split in dict.fromkeys(self._splits[task.annotation_id] for task in recorded):
            path = self._out / "data" / f"{SPLITS[split]}-00000-of-00001.parquet"
            written[path] = write_hub_parquet(self._rows(split), path)
        if all(task in self for task in self._tasks):
            self._journal.__exit__()
            self._journal.path.unlink()
        return written

    def _rows(self, split: str) -> Iterator[dict[str, Any]]:
        for task in self._tasks:
            place = self._place(task)
            if place is not None and self._splits[task.annotation_id] == split:
                line = json.loads(self._journal.at(place))
                yield from (_with_pictures(row, base64.b64decode) for row in line["rows"])

    def _place(self, task: TaskScript) -> int | None:
        """The byte at which the task's line begins; None where no step of it is recorded."""
        return self._places.get(self._key(task), self._begun.get(self._key(task)))

    def _find_kept(self) -> tuple[dict[str, int], dict[str, int]]:
        """Key of each finished task, and of each that stopped at a step -> the byte at which its line begins."""
        out = self._out
        if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not self._journal.path.is_file())):
            raise InputError("out", sentence=f"{out} holds something already; name a new folder, or use `force`")
        places: dict[str, int] = {}
        begun: dict[str, int] = {}
        own_tasks = {task.annotation_id for task in self._tasks}
        for line in self._journal.lines():
            try:
                entry = json.loads(line.text)
                kept = begun if entry.get("stopped") else places
                kept[str(entry["key"])], name = line.offset, entry["annotation_id"]
            except (ValueError, TypeError, KeyError, AttributeError):
                why = f"line {line.number} of {self._journal.path} is damaged"
                raise InputError("out", sentence=f"{why}; name a new folder, or use `force`") from None
            if name not in own_tasks:
                why = f"{out} holds another script's task {name}"
                raise InputError("out", sentence=f"{why}; name a new folder, or use `force`")
        return places, begun

    def _key(self, task: TaskScript) -> str:
        return hashlib.sha256(repr((task, self._options)).encode("utf-8", "backslashreplace")).hexdigest()


def _with_pictures(row: dict[str, Any], change: Any) -> dict[str, Any]:
    """The row with the bytes of its pictures changed."""
    pictures = {name: row[name] for name in ("screenshot", FINAL_SCREENSHOT) if row.get(name)}
    return row | {name: picture | {"bytes": change(picture["bytes"])} for name, picture in pictures.items()}
