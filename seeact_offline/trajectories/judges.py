"""Judges: what a model is asked about a trajectory, and what its replies decide. The wording is a prompt pack's.

`webvoyager` and `openwebvoyager` do as the released code does (MinorJerry/WebVoyager at 5a78967,
evaluation/auto_eval.py; MinorJerry/OpenWebVoyager at e907cef, exploration_feedback.py), and so do `agenttrek` and
`autonomouseval`, which users know by their release in OSU-NLP-Group/Online-Mind2Web (at ccdeb0d,
src/methods/agenttrek_eval.py and automomous_eval.py). `strict` sees the actions too and needs no answer. `webjudge`
asks in three steps, as Online-Mind2Web's WebJudge (arXiv 2504.01382, section 4): points that must hold, the relevance
of each screenshot, verdict. `webjudge-keypoints` asks for a verdict on each point, as appendix B.1 there,
of which no code is released.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.prompting import Placeholders, fill
from seeact_offline.records import CropBox, Message, Picture, RowError
from seeact_offline.trajectories.judgements import NO_ANSWER, NO_VERDICT
from seeact_offline.trajectories.trajectory import Trajectory
from seeact_offline.trajectories.verdict_rules import read_points, read_verdict

Call = Callable[[tuple[Message, ...]], Awaitable[str]]
"""Asks the model: messages -> the text of its reply.
Raises CallError, and RowError for a picture that cannot be read."""
RELEVANT = 3
"""Least score, of 1 to 5, of a screenshot that `webjudge` shows for its verdict."""
_SCORE = re.compile(
    r"(?P<own>^[ \t*_`\"'#>{(\[|•–-]{0,12}(?:[0-9]{1,3}[.)][ \t*_`]{0,4})?(?:(?:final|overall|relevance)\s)?)?"
    r"score\s{0,3}(?:\([^()\n]{1,30}\))?(?P<stated>[\s*_`\"]{0,6}[:：])?\W{0,12}"
    r"(?:(?:is|of)\b\W{1,6})?(?P<score>[1-5])(?:\.[0-9]+)?(?![0-9])",
    re.IGNORECASE | re.MULTILINE,
)
"""A score such as `Score: 4`, `**Score:** **4**.` and `Score (1-5): 4`;
of 4.5 and of 4-5 the first number counts. `own`: it begins its line."""
_NO_ANSWER = "(none)"


@dataclass(frozen=True, slots=True)
class Case:
    """A trajectory to judge, and the pictures to show of it."""

    trajectory: Trajectory
    k: int | None
    """Number of screenshots asked for, which may be more than there are; None: all."""
    max_side: int
    """Pixels of the longest side of a picture sent."""

    def pictures(self) -> tuple[Picture, ...]:
        """Opens the last screenshots, oldest first.
        Raises RowError for one that cannot be read, and where there is none."""
        shots = self.trajectory.screenshots
        if not shots:
            raise RowError("no_screenshot", "the trajectory has no screenshot")
        pages = [PagePicture(shot) for shot in (shots if self.k is None else shots[-self.k :])]
        return tuple(page.crop(CropBox(0, 0, *page.size), self.max_side) for page in pages)

    @property
    def actions(self) -> str:
        """The actions, one per line, numbered."""
        return "\n".join(f"{n}. {text}" for n, text in enumerate(self.trajectory.actions, 1)) or _NO_ANSWER

    @property
    def thoughts_and_actions(self) -> str:
        """Each action behind the thought that led to it, numbered, with an empty line between two;
        empty lines within become a blank."""
        acted = [step for step in self.trajectory.steps if step.action]
        texts = [(step.thought.replace("\n\n", " "), step.action.replace("\n\n", " ")) for step in acted]
        lines = [f"Thought {n}: {thought}\nAction {n}: {action}" for n, (thought, action) in enumerate(texts, 1)]
        return "\n\n".join(lines) or _NO_ANSWER


@dataclass(frozen=True, slots=True)
class Ruling:
    """A judge's decision."""

    verdict: bool | None
    outcome: str
    """See `Judgement`."""
    reply: str = ""
    detail: str = ""
    n_pictures: int = 0


@dataclass(frozen=True, slots=True)
class Judge:
    """The declaration of a judge."""

    templates: Mapping[str, Placeholders]
    """Files of the prompt pack, and what they may hold."""
    decide: Callable[[Case, Mapping[str, str], Call], Awaitable[Ruling]]
    """Decides from a case, the texts of `templates` and the model."""
    k: str = "all"
    """Screenshots that are shown where nothing is asked for."""
    # as the released code of WebVoyager asks its judge
    max_tokens: int = 1000
    seed: int = 42
    declined_is_failure: bool = False
    """A model that refuses to judge means a failure, where others give no verdict."""


# --- one question ---


def _answer(trajectory: Trajectory, marks: str) -> str | None:
    """The text of the ANSWER that ends the trajectory, looked for in the whole last message as the released code does
    (auto_eval.py:55-62), or the answer of one in another language; None for no answer.
    Raises ValueError for an ANSWER without a text."""
    last = next((step for step in reversed(trajectory.steps) if step.action or step.reply), None)
    message = "" if last is None else last.reply or last.told
    if "Action: ANSWER" not in message:
        return None if last is not None and last.reply else trajectory.answer
    match = re.search(rf"ANSWER[{marks}]+\[?(.[^\]]*)", message)
    if match is None:
        raise ValueError(f"no text behind ANSWER in {message!r:.100}")
    return match[1].strip()


def _by_answer(judge: str, marks: str, states_k: bool) -> Callable[[Case, Mapping[str, str], Call], Awaitable[Ruling]]:
    """Asks once, about the answer and the last screenshots.

    `marks`: characters that may stand between ANSWER and its text. `states_k`: the number asked for is stated, even
    where there are fewer screenshots.
    """

    async def decide(case: Case, texts: Mapping[str, str], call: Call) -> Ruling:
        try:
            answer = _answer(case.trajectory, marks)
        except ValueError as error:
            return Ruling(None, "unreadable_answer", detail=str(error))
        if answer is None:
            return Ruling(False, NO_ANSWER)
        values = {"task": case.trajectory.task, "answer": answer}
        if states_k and case.k is not None:
            values["count"] = str(case.k)
        return await _ask(judge, "judge-webvoyager", case, texts, values, call)

    return decide


async def _strict(case: Case, texts: Mapping[str, str], call: Call) -> Ruling:
    trajectory = case.trajectory
    answer = _NO_ANSWER if trajectory.answer is None else trajectory.answer
    values = {"task": trajectory.task, "answer": answer, "actions": case.actions}
    return await _ask("strict", "judge-strict", case, texts, values, call)


async def _ask(
    judge: str, stem: str, case: Case, texts: Mapping[str, str], values: Mapping[str, str], call: Call
) -> Ruling:
    """Sends text, screenshots and closing question as messages of the user. The text states the number of screenshots
    that are shown, unless `values` has one."""
    pictures = await asyncio.to_thread(case.pictures)
    system, turn1, turn2 = (texts[f"{stem}.{turn}.txt"] for turn in ("system", "turn1", "turn2"))
    shown = _with_pictures(fill(turn1, {"count": str(len(pictures)), **values}), pictures)
    reply = await call((Message("system", system), *shown, Message("user", turn2)))
    return _ruling(judge, reply, len(pictures))


def _by_status(judge: str) -> Callable[[Case, Mapping[str, str], Call], Awaitable[Ruling]]:
    """Asks once, without a closing question; the answer to the user is not shown."""

    async def decide(case: Case, texts: Mapping[str, str], call: Call) -> Ruling:
        pictures = await asyncio.to_thread(case.pictures)
        system, turn1 = (texts[f"judge-{judge}.{turn}.txt"] for turn in ("system", "turn1"))
        actions = case.thoughts_and_actions if judge == "agenttrek" else case.actions
        values = {"task": case.trajectory.task, "actions": actions}
        reply = await call((Message("system", system), *_with_pictures(fill(turn1, values), pictures)))
        return _ruling(judge, reply, len(pictures))

    return decide


def _with_pictures(text: str, pictures: Sequence[Picture]) -> tuple[Message, ...]:
    first = pictures[0] if pictures else None
    return Message("user", text, first), *(Message("user", "", picture) for picture in pictures[1:])


def _ruling(judge: str, reply: str, n_pictures: int) -> Ruling:
    verdict = read_verdict(reply, judge)
    return Ruling(verdict, NO_VERDICT if verdict is None else "verdict", reply, n_pictures=n_pictures)


# --- points, relevance, verdict ---


def _score(remark: str) -> int:
    """The last score that begins its line, else the last with a colon, else the last; 0 where there is none."""
    scores = sorted(_SCORE.finditer(remark), key=lambda match: (match["own"] is not None, match["stated"] is not None))
    return int(scores[-1]["score"]) if scores else 0


async def _evidence(case: Case, texts: Mapping[str, str], call: Call) -> tuple[Mapping[str, str], tuple[Picture, ...]]:
    """WebJudge's first two steps: the placeholders of the text that asks for a verdict, `points` among them, the
    model's reply about those that must hold, and the screenshots of enough relevance."""
    points_text, relevance_text = texts[_POINTS], texts[_RELEVANCE]
    trajectory, pictures = case.trajectory, await asyncio.to_thread(case.pictures)
    points = await call((Message("user", fill(points_text, {"task": trajectory.task})),))
    placeholders = {"task": trajectory.task, "points": points}
    shown: list[tuple[Picture, str]] = []
    for picture in pictures:
        remark = await call((Message("user", fill(relevance_text, placeholders), picture),))
        if _score(remark) >= RELEVANT:
            shown.append((picture, remark))
    values = placeholders | {
        "actions": case.actions,
        "answer": _NO_ANSWER if trajectory.answer is None else trajectory.answer,
        "count": str(len(shown)),
        "remarks": "\n".join(f"{n}. {' '.join(remark.split())}" for n, (_, remark) in enumerate(shown, 1))
        or _NO_ANSWER,
    }
    return values, tuple(picture for picture, _ in shown)


async def _webjudge(case: Case, texts: Mapping[str, str], call: Call) -> Ruling:
    values, pictures = await _evidence(case, texts, call)
    reply = await call(_with_pictures(fill(texts[_VERDICT], values), pictures))
    return _ruling("webjudge", reply, len(pictures))


async def _webjudge_keypoints(case: Case, texts: Mapping[str, str], call: Call) -> Ruling:
    """All points must be met. One that is missed decides, even where the reply to another has no verdict."""
    values, pictures = await _evidence(case, texts, call)
    replies, verdicts = [], []
    for number, point in enumerate(read_points(values["points"]), 1):
        reply = await call(_with_pictures(fill(texts[_KEYPOINT], {**values, "point": point}), pictures))
        verdicts.append(read_verdict(reply, "webjudge-keypoints"))
        replies.append(f"Point {number}: {point}\n{reply}")
    verdict = False if False in verdicts else True if verdicts and None not in verdicts else None
    outcome = NO_VERDICT if verdict is None else "verdict"
    return Ruling(verdict, outcome, "\n\n".join(replies), n_pictures=len(pictures))


def _fields(*names: str) -> Placeholders:
    """These placeholders, each required."""
    return Placeholders(names, tuple((name,) for name in names))


def _files(stem: str, *names: str) -> dict[str, Placeholders]:
    return {
        f"{stem}.system.txt": Placeholders(),
        f"{stem}.turn1.txt": _fields(*names),
        f"{stem}.turn2.txt": Placeholders(),
    }


_WEBVOYAGER = _files("judge-webvoyager", "task", "answer", "count")
_POINTS, _RELEVANCE, _VERDICT, _KEYPOINT = (
    f"judge-webjudge.{name}.txt" for name in ("points", "relevance", "verdict", "keypoint")
)
_SHOWN = ("actions", "answer", "remarks", "count")
_EVIDENCE = {_POINTS: _fields("task"), _RELEVANCE: _fields("task", "points")}
_WEBJUDGE = _EVIDENCE | {_VERDICT: Placeholders(("task", "points", *_SHOWN), (("task",), ("points",), ("actions",)))}
_KEYPOINTS = _EVIDENCE | {
    _KEYPOINT: Placeholders(("task", "point", "points", *_SHOWN), (("task",), ("point",), ("actions",)))
}
JUDGES: dict[str, Judge] = {
    "webvoyager": Judge(_WEBVOYAGER, _by_answer("webvoyager", "; ", states_k=True)),
    "openwebvoyager": Judge(
        _WEBVOYAGER, _by_answer("openwebvoyager", r":; \n", states_k=False), k="3", declined_is_failure=True
    ),
    "strict": Judge(_files("judge-strict", "task", "answer", "actions", "count"), _strict),
    "webjudge": Judge(_WEBJUDGE, _webjudge),
    "webjudge-keypoints": Judge(_KEYPOINTS, _webjudge_keypoints),
    **{
        name: Judge(
            {f"judge-{name}.system.txt": Placeholders(), f"judge-{name}.turn1.txt": _fields("task", "actions")},
            _by_status(name), k="1", declined_is_failure=True,
        )
        for name in ("agenttrek", "autonomouseval")
    },
}  # fmt: skip
"""The judges, by name. To add one, write its `decide`, its reading in `verdict_rules`, and a line here."""
