"""`show`: one step exactly as it would be sent to a model, with its pictures as files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from seeact_offline.cli import options
from seeact_offline.cli.eval import config_of
from seeact_offline.cli.output import say
from seeact_offline.cli.parser import Parser
from seeact_offline.cli.progress import TerminalWatch
from seeact_offline.cli.shown_files import (
    PicturePaths,
    Pictures,
    SentPicture,
    boxes_format,
    write_boxes,
    write_pictures,
)
from seeact_offline.dataset import Split, open_split
from seeact_offline.dataset.split import with_earlier
from seeact_offline.grounding import PreparedStep
from seeact_offline.grounding.conversation import Question
from seeact_offline.pages.screenshots import shown_box
from seeact_offline.ranking import ranker_query, top_k
from seeact_offline.ranking.stage import ranking_stage
from seeact_offline.records import ImageFormat, InputError, RankedCandidate, Step, StepError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import check_pages, check_ranking, open_strategy
from seeact_offline.scoring.report import counted

TARGET = "\ntarget: "
"""Begins the element's own line in a ranker's text."""


def add_arguments(parser: Parser) -> None:
    options.add_data_arguments(parser)
    options.add_question_arguments(parser)
    parser.add_argument(
        "--step", default="0", metavar="N|ID",
        help="number in the split from 0, or ANNOTATION_ID_ACTION_UID (default: 0)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="machine-readable output")
    parser.shown |= {"step", "json", "picture", "boxes", "out"}
    pictures = parser.add_argument_group("pictures")
    pictures.add_argument(
        "--picture", type=Path, metavar="FILE",
        help="write the picture exactly as it is sent; of several groups FILE-0, FILE-1, ...",
    )  # fmt: skip
    pictures.add_argument(
        "--boxes", type=Path, metavar="FILE",
        help="write the page with all candidates: the right ones green,"
        " the others offered red with their ranks, the rest blue",
    )  # fmt: skip
    pictures.add_argument(
        "--out", type=Path, metavar="DIR",
        help="folder for the pictures as sent (default: runs/show/STEP, or none with --picture)",
    )  # fmt: skip
    options.add_fields(pictures, EvalConfig, "image_format", "image_detail")


def run(args: argparse.Namespace) -> int:
    config = config_of(args)
    grounding = open_strategy(config).grounding
    check_ranking(config)
    split = open_split(config.dataset, config.split, limit=config.limit)
    check_pages(config, split)
    step, task = _find(split, args.step, grounding.earlier)
    paths = _picture_paths(args, config, step)
    stage = ranking_stage(config, config.scores, task, TerminalWatch()) if grounding.needs_ranking else None
    scores = None if stage is None else stage.scores()
    try:
        prepared = prepare(step, scores, config.top_k, grounding.form.image)
        questions = grounding.questions(prepared)
        pictures = write_pictures(questions, paths)
        ranking = () if scores is None else top_k(step, scores, len(step.candidates))
        shown = _shown(prepared, questions, pictures, ranking)
        if args.boxes is not None:
            shown["boxes"] = {"image": str(args.boxes), "unseen": write_boxes(prepared, args.boxes)}
    except StepError as error:
        raise InputError("step", sentence=f"{step.key} cannot be shown: {error}") from None
    print(json.dumps(shown, indent=2)) if args.json else _print_text(prepared, shown, pictures, config)
    return 0


def _picture_paths(args: argparse.Namespace, config: EvalConfig, step: Step) -> PicturePaths:
    """Names the files of pictures. Raises InputError for files that cannot be written, before anything is ranked."""
    if args.boxes is not None:
        boxes_format(args.boxes)
    if args.picture is not None and config.no_image:
        raise InputError("picture", sentence="`picture` cannot be combined with `no_image`")
    safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in str(step.key))
    default = None if args.picture is not None else Path("runs") / "show" / safe
    return PicturePaths(args.out or default, args.picture, ImageFormat.read(config.image_format))


def _find(split: Split, named: str, earlier: int) -> tuple[Step, Split]:
    """The step, with so many earlier ones, and its task."""
    for n, key in enumerate(split.keys):
        if named in {str(n), str(key), key.action_uid}:
            task = split.only([key.annotation_id])
            return next(step for step in with_earlier(task.steps(), earlier) if step.key == key), task
    raise InputError("step", f"a number under {len(split.keys)} or the id of a step of {split.name}", named)


def _shown(
    prepared: PreparedStep, questions: list[Question], pictures: Pictures, ranking: tuple[RankedCandidate, ...]
) -> dict[str, Any]:
    """The step as JSON. `ranking`: all candidates, best first; those ranked under --top-k are offered."""
    page = prepared.page
    return {
        "query": ranker_query(prepared.step),
        "candidates": [
            {"id": c.backend_node_id, "text": page.ranker_text(c.backend_node_id), "score": c.score, "rank": c.rank}
            for c in ranking
        ],
        "groups": [_group(question, shown) for question, shown in zip(questions, pictures, strict=True)],
    }


def _group(question: Question, pictures: tuple[SentPicture | None, ...]) -> dict[str, Any]:
    """`choices` are ids with their texts, or with their marks. `crop` and `image` are those of turn 1, null where it
    shows no picture; a picture of turn 2 follows as `image_turn2`."""
    first, *later = pictures
    texts = question.texts or question.labels
    group: dict[str, Any] = {
        "choices": [list(choice) for choice in zip(question.offered, texts, strict=True)],
        "crop": shown_box(None if first is None else first.picture),
        "system": question.system,
        "turns": list(question.turns),
        "image": None if first is None else str(first.path),
    }
    if question.examples:
        group["examples"] = [{"role": example.role, "text": example.text} for example in question.examples]
    return group | {
        f"image_turn{turn}": str(picture.path) for turn, picture in enumerate(later, 2) if picture is not None
    }


def _print_text(prepared: PreparedStep, shown: dict[str, Any], pictures: Pictures, config: EvalConfig) -> None:
    say(f"step {prepared.step.key}\n\n== ranker query\n{shown['query']}")
    if shown["candidates"]:
        n = len(shown["candidates"])
        say(f"\n== {counted(n, 'candidate')}{', the first ten' if n > 10 else ''}")
    for candidate in shown["candidates"][:10]:
        target = candidate["text"].split(TARGET, 1)[-1]
        say(f"{candidate['rank']:3d}  {candidate['score']:.4f}  {candidate['id']}  {target[:100]}")
    _print_right(prepared, shown)
    systems = list(dict.fromkeys(group["system"] for group in shown["groups"] if group["system"]))
    if len(systems) == 1:
        say(f"\n== system, of every group\n{systems[0]}")
    firsts = {group["turns"][0] for group in shown["groups"]}
    is_shared = len(firsts) == 1 < len(shown["groups"])
    if is_shared:
        say(f"\n== turn 1, of every group\n{firsts.pop()}")
    for i, (group, sent) in enumerate(zip(shown["groups"], pictures, strict=True)):
        descriptions = []
        for shown_picture in (picture for picture in sent if picture is not None):
            size = getattr(shown_picture.picture, "size", None)
            pixels = "" if size is None else f"{size[0]} x {size[1]} px, "
            coded = f"{config.image_format}, {shown_picture.n_bytes / 1000:,.0f} kB, detail {config.image_detail}"
            descriptions.append(f"picture {shown_picture.path} ({pixels}{coded})")
        where = f"{' and '.join(descriptions)}, page pixels {group['crop']}" if descriptions else "no picture"
        say(f"\n== group {i}: {counted(len(group['choices']), 'choice')}, {where}")
        if group["system"] and len(systems) > 1:
            say(f"-- system\n{group['system']}")
        for example in group.get("examples", ()):
            say(f"-- example, {example['role']}\n{example['text']}")
        for turn, text in list(enumerate(group["turns"], 1))[is_shared:]:
            say(f"-- turn {turn}\n{text}")
    if "boxes" in shown:
        image, unseen = shown["boxes"]["image"], shown["boxes"]["unseen"]
        say(f"\n== boxes {image}: green the right elements, red with their ranks the others offered, blue the rest")
        if unseen:
            say(f"not drawn: {counted(unseen, 'candidate')} without any area on the page")


def _print_right(prepared: PreparedStep, shown: dict[str, Any]) -> None:
    """Names the right elements with their ranks, and says whether they are offered."""
    ranks = {candidate["id"]: candidate["rank"] for candidate in shown["candidates"]}
    offered = {choice for group in shown["groups"] for choice, _ in group["choices"]}
    right = [candidate.backend_node_id for candidate in prepared.step.candidates if candidate.is_positive]
    say(f"\n== right element{'' if right else ': none on this page'}")
    for element in right:
        place = (
            f"rank {ranks[element]}, {'' if element in offered else 'not '}offered"
            if element in ranks
            else "nothing is ranked"
        )
        step = prepared.step
        words = prepared.page.ranker_text(element).split(TARGET, 1)[-1] if step.has_page else step.action_text
        say(f"{element}  {place}  {words[:100]}")
