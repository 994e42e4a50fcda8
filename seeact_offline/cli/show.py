"""`show`: one step exactly as a model would see it, with its pictures as files."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.evaluate import config_of
from seeact_offline.cli.output import say
from seeact_offline.cli.watching import Told
from seeact_offline.dataset import Split, open_split
from seeact_offline.grounding import Prepared
from seeact_offline.grounding.asking import Question
from seeact_offline.ranking import Scores, ranker_query, top_k
from seeact_offline.records import InputError, Picture, RankedCandidate, Step, StepError
from seeact_offline.runs.groundings import open_strategy
from seeact_offline.runs.runner import prepare
from seeact_offline.runs.scores import ranking_stage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    options.add_question_arguments(parser)
    parser.add_argument(
        "--step",
        default="0",
        metavar="N|ID",
        help="number in the split from 0, or ANNOTATION_ID_ACTION_UID (default: 0)",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the pictures go (default: runs/show/STEP)")


def run(args: argparse.Namespace) -> int:
    config = config_of(args)
    grounding = open_strategy(config).grounding
    step, task = _find(open_split(args.dataset, args.split, limit=args.limit), args.step)
    scores = ranking_stage(config, task, Told()).scores() if grounding.needs_ranking else None
    try:
        prepared = prepare(step, scores, args.top_k, grounding.form.image)
        questions = grounding.questions(prepared)
        pictures = _write_pictures(questions, step, args.out)
        shown = _shown(prepared, questions, pictures, _ranking(step, scores))
    except StepError as error:
        raise InputError("step", "one that can be shown", f"{step.key}: {error}") from None
    print(json.dumps(shown, indent=2)) if args.json else _print_text(step, shown)
    return 0


def _find(split: Split, named: str) -> tuple[Step, Split]:
    """The step, and its task."""
    for n, key in enumerate(split.keys):
        if named in {str(n), str(key), key.action_uid}:
            task = split.only([key.annotation_id])
            return next(step for step in task.steps() if step.key == key), task
    raise InputError("step", f"a number under {len(split.keys)} or the id of a step of {split.name}", named)


def _ranking(step: Step, scores: Scores | None) -> tuple[RankedCandidate, ...]:
    """All of the step's candidates, best first; none where nothing is ranked."""
    return () if scores is None else top_k(step, scores, len(step.candidates))


@dataclass(frozen=True, slots=True)
class _Shown:
    """A turn's picture, and the file that it was written to."""

    picture: Picture
    path: Path


Pictures = list[tuple[_Shown | None, ...]]
"""Of each question, turn by turn."""


def _write_pictures(questions: list[Question], step: Step, out: Path | None) -> Pictures:
    """One file a picture: `group-0.png` with turn 1, `group-0-turn2.png` where turn 2 shows another."""
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in str(step.key))
    folder = out or Path("runs") / "show" / safe
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_write_turns(question, folder) for question in questions]
    except OSError as error:
        raise InputError("out", "a folder for pictures", f"{folder}: {error.strerror}") from None


def _write_turns(question: Question, folder: Path) -> tuple[_Shown | None, ...]:
    shown: list[_Shown | None] = []
    for turn, picture in enumerate(question.pictures, 1):
        if picture is None:
            shown.append(None)
            continue
        name = f"group-{question.index}{'' if turn == 1 else f'-turn{turn}'}.png"
        (folder / name).write_bytes(picture.png())
        shown.append(_Shown(picture, folder / name))
    return tuple(shown)


def _shown(
    prepared: Prepared, questions: list[Question], pictures: Pictures, ranking: tuple[RankedCandidate, ...]
) -> dict[str, Any]:
    """`candidates` are all of the step's, best first; those ranked under --top-k are offered."""
    page = prepared.page
    return {
        "query": ranker_query(prepared.step),
        "candidates": [
            {"id": c.backend_node_id, "text": page.ranker_text(c.backend_node_id), "score": c.score, "rank": c.rank}
            for c in ranking
        ],
        "groups": [_group(question, shown) for question, shown in zip(questions, pictures, strict=True)],
    }


def _group(question: Question, pictures: tuple[_Shown | None, ...]) -> dict[str, Any]:
    """`choices` are ids with their texts, or with their marks. `crop` and `image` are those of turn 1, null where it shows no
    picture; a picture of turn 2 follows as `image_turn2`."""
    first, *later = pictures
    texts = question.texts or question.labels
    group: dict[str, Any] = {
        "choices": [list(choice) for choice in zip(question.offered, texts, strict=True)],
        "crop": _cut_from(first),
        "system": question.system,
        "turns": list(question.turns),
        "image": None if first is None else str(first.path),
    }
    return group | {f"image_turn{turn}": str(one.path) for turn, one in enumerate(later, 2) if one is not None}


def _cut_from(shown: _Shown | None) -> list[int] | None:
    """Page pixels that the picture shows."""
    box = getattr(shown.picture, "box", None) if shown else None
    return None if box is None else list(box)


def _print_text(step: Step, shown: dict[str, Any]) -> None:
    say(f"step {step.key}\n\n== ranker query\n{shown['query']}")
    if shown["candidates"]:
        say(f"\n== {len(shown['candidates'])} candidates, the first ten")
    for candidate in shown["candidates"][:10]:
        target = candidate["text"].split("\ntarget: ", 1)[-1]
        say(f"{candidate['rank']:3d}  {candidate['score']:.4f}  {candidate['id']}  {target[:100]}")
    for i, group in enumerate(shown["groups"]):
        pictures = [group[name] for name in ("image", "image_turn2") if group.get(name)]
        said = f"picture {' and '.join(pictures)}, page pixels {group['crop']}" if pictures else "no picture"
        say(f"\n== group {i}: {len(group['choices'])} choices, {said}")
        say(f"-- system\n{group['system']}")
        for turn, text in enumerate(group["turns"], 1):
            say(f"-- turn {turn}\n{text}")
