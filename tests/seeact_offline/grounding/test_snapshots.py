"""What each strategy asks, as a whole: of a step of the sample in full, of the real step by digest.

After a change that was meant: SNAPSHOTS=write python -m pytest tests/seeact_offline/grounding/test_snapshots.py
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding.conversation import Question
from seeact_offline.ranking import LiveScores, Scores, open_ranker, read_scores
from seeact_offline.records import Picture, Step
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import open_strategy

FOLDER = Path(__file__).parents[1] / "snapshots" / "questions"
WAYS: dict[str, dict[str, Any]] = {
    "choice": {},
    "choice-one-turn": {"turns": 1},
    "choice-no-image": {"no_image": True},
    "choice-one-turn-no-image": {"turns": 1, "no_image": True},
    "choice-shared-turn1": {"batching": "shared-turn1"},
    "annotation": {"grounding": "annotation"},
    "annotation-letters-in-turn1": {"grounding": "annotation", "marks": "letter", "mark_turn1": True},
    "attributes": {"grounding": "attributes"},
    "attributes-no-image": {"grounding": "attributes", "no_image": True},
    "pixel": {"grounding": "pixel"},
    "pixel-fraction": {"grounding": "pixel", "coordinates": "fraction"},
    "pixel-per-mille": {"grounding": "pixel", "coordinates": "per-mille"},
    "ungrounded": {"ungrounded": True},
}


def asked(options: dict[str, Any], step: Step, scores: Scores, k: int) -> list[Question]:
    grounding = open_strategy(EvalConfig().changed(**options)).grounding
    prepared = prepare(step, scores if grounding.needs_ranking else None, k, grounding.form.image)
    return grounding.questions(prepared)


def same(name: str, text: str) -> None:
    path = FOLDER / name
    if os.environ.get("SNAPSHOTS") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def pictured(picture: Picture | None) -> str:
    """What is shown, without the digest of the file: the same pixels may be stored in other bytes."""
    if picture is None:
        return "no picture"
    crop = getattr(picture, "crop", picture)
    marks = " ".join(getattr(picture, "labels", ()))
    return f"page pixels {tuple(crop.box)} shown {crop.size[0]}x{crop.size[1]}" + (f", marks {marks}" if marks else "")


def in_full(questions: list[Question]) -> Iterator[str]:
    for question in questions:
        yield f"===== question {question.index}: offered {' '.join(question.offered) or 'nothing'}\n"
        yield f"--- system\n{question.system}\n"
        for turn, (text, picture) in enumerate(zip(question.turns, question.pictures, strict=True), 1):
            yield f"--- turn {turn}, {pictured(picture)}\n{text}\n"
        for text in question.ideal:
            yield f"--- ideal\n{text}\n"


def by_digest(questions: list[Question]) -> Iterator[str]:
    for question in questions:
        yield f"question {question.index}: {len(question.offered)} offered {digest(' '.join(question.offered))}\n"
        yield f"  system {digest(question.system)}\n"
        for turn, (text, picture) in enumerate(zip(question.turns, question.pictures, strict=True), 1):
            yield f"  turn {turn} {digest(text)}, {pictured(picture)}\n"
        for text in question.ideal:
            yield f"  ideal {digest(text)}\n"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.fixture(scope="module")
def sample_step() -> Step:
    """The second step of a task, so that there is a history."""
    return next(step for step in load_steps("sample", "cross_task") if step.index == 1)


@pytest.fixture(scope="module")
def live() -> Scores:
    return LiveScores(open_ranker("bm25"))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_asked_of_the_samples_step_is_as_it_was_read(way: str, sample_step: Step, live: Scores) -> None:
    grouped = way.startswith(("choice", "annotation"))
    options = {"group_size": 5} | WAYS[way] if grouped else WAYS[way]
    same(f"sample-{way}.txt", "".join(in_full(asked(options, sample_step, live, 8))))


@pytest.mark.parametrize("way", WAYS)
def test_what_is_asked_of_the_real_step_is_as_it_was_read(way: str, shared_step: Path) -> None:
    step = next(load_steps(shared_step, "cross_domain"))
    scores = read_scores(shared_step / "scores_all_data.pkl")
    same(f"real-{way}.txt", "".join(by_digest(asked(WAYS[way], step, scores, 50))))
