"""Synthetic data of real size: a data set with scores and recorded replies, and finished runs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.frame import SEED

if TYPE_CHECKING:
    from seeact_offline.records import Kinship, Prediction, Reply, Truth

N_ELEMENTS = 500
HTML_CHARS = 100_000
PICTURE_SIZE = (1280, 5000)
NOISE_ROWS = 600
"""Rows of noise in a picture, which make its file about as large as a real one (0.76 MB)."""
N_PICTURES = 8
STEPS_PER_TASK = 8
GROUPS, GROUP_SIZE = 3, 17
LONGEST_TASK = 25
PLAN = ("I look at the page and then at what was done before. " * 40)[:2000]
"""The reply to a first turn."""
WORDS = "book the flight to Paris on 12 May for two adults and choose a window seat near the exit".split()
KIN: tuple[Kinship, ...] = ("same_text", "overlapping", "neighbour", "clicks_positive", "clicks_target")
RUN_SETTINGS: dict[str, Any] = {
    "split": "cross_domain", "grounding": "choice", "model": "made-up", "ranker": "bm25", "protocol": "seeact",
    "merge": "final-round", "top_k": 50, "group_size": GROUP_SIZE, "seed": SEED, "limit": None, "dataset": "made-up",
    "dataset_fingerprint": "made-up",
}  # fmt: skip


# --- a data set ---


def real_size_rows(n: int) -> Iterator[dict[str, Any]]:
    """`n` rows, task by task."""
    from tests.pages import synthetic_rows

    pictures = [_picture(i) for i in range(N_PICTURES)]
    tasks = -(-n // STEPS_PER_TASK)
    rows = synthetic_rows(tasks, STEPS_PER_TASK, N_ELEMENTS, SEED, html_size=HTML_CHARS)
    for i, row in zip(range(n), rows, strict=False):
        # bytes after a picture's end are ignored, but keep parquet from storing equal pictures once
        yield {**row, "screenshot": {"bytes": pictures[i % N_PICTURES] + str(i).encode(), "path": None}}


def candidate_ids(row: dict[str, Any]) -> list[str]:
    """The node ids of a row's candidates, positives first."""
    return [json.loads(c)["backend_node_id"] for c in (*row["pos_candidates"], *row["neg_candidates"])]


def write_split(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    """Writes the rows as a split, with random scores in `scores.parquet` and replies in `replies.jsonl`."""
    from seeact_offline.ranking import ScoreRow, write_scores
    from seeact_offline.records import StepKey
    from tests.pages import write_parquet

    scores: list[ScoreRow] = []
    replies: list[str] = []

    def pass_on() -> Iterator[dict[str, Any]]:
        for number, row in enumerate(rows):
            key = StepKey(row["annotation_id"], row["action_uid"])
            drawn = sorted((Random(f"{SEED}/{key}/{node}").random(), node) for node in candidate_ids(row))[::-1]
            scores.extend(ScoreRow(key, node, score, rank) for rank, (score, node) in enumerate(drawn))
            # one group of three picks an element, in every fourth step two, so that a final round follows
            finals = [_final(letter) for letter in ("C", "D" if number % 4 == 0 else "R", "R", "B")]
            groups = [{"group": group, "replies": [PLAN, final]} for group, final in enumerate(finals)]
            replies.append(json.dumps({**key._asdict(), "groups": groups}) + "\n")
            yield row

    write_parquet(pass_on(), folder / "data" / "test_task-00000-of-00001.parquet")
    write_scores(folder / "scores.parquet", scores)
    (folder / "replies.jsonl").write_text("".join(replies))


def _final(letter: str, op: str = "CLICK", value: str = "") -> str:
    return f"The element fits.\n\nELEMENT: {letter}\nACTION: {op}\nVALUE: {value or 'None'}"


def _picture(number: int) -> bytes:
    """A PNG file with the pixels and bytes of a real page: a grey page with a strip of noise."""
    from PIL import Image

    width, height = PICTURE_SIZE
    page = Image.new("L", PICTURE_SIZE, 255 - number)
    noise = Random(f"{SEED}/{number}").randbytes(width * NOISE_ROWS)
    page.paste(Image.frombytes("L", (width, NOISE_ROWS), noise), (0, height // 2))
    out = io.BytesIO()
    page.save(out, "PNG", compress_level=1)
    return out.getvalue()


# --- a finished run ---


def write_run(folder: Path, n_steps: int, skill: float = 0.4) -> None:
    """Writes a finished run. `skill`: share of steps whose element and operation are right, if the target is ranked."""
    from seeact_offline.runs.folder import Manifest, RunFolder
    from seeact_offline.scoring.protocols import PROTOCOLS
    from seeact_offline.scoring.results import assemble

    truths: list[Truth] = []
    drawn, task = Random(SEED), 0
    while len(truths) < n_steps:
        n_actions = drawn.randint(1, LONGEST_TASK)
        steps = range(min(n_actions, n_steps - len(truths)))
        truths += [_truth(f"task-{task:05}", place, n_actions) for place in steps]
        task += 1
    predictions = [_prediction(truth, skill) for truth in truths]
    made = assemble(predictions, truths, PROTOCOLS["seeact"], RUN_SETTINGS, complete=True)
    out = RunFolder(folder)
    out.claim(Manifest(identity={"split": RUN_SETTINGS["split"], "model": folder.name}, settings=RUN_SETTINGS))
    out.order(predictions, truths)
    out.write_scores(made.rows, made.results, "")


def _truth(task: str, place: int, n_actions: int) -> Truth:
    from seeact_offline.records import Box, Operation, StepKey, Truth

    key = StepKey(task, f"step-{place:02}")
    drawn = Random(f"{SEED}/{key}")
    op = drawn.choice(["CLICK", "CLICK", "CLICK", "TYPE", "SELECT"])
    value = "" if op == "CLICK" else " ".join(drawn.sample(WORDS, drawn.randint(1, 4)))
    target = str(drawn.randrange(N_ELEMENTS))
    like = {name: frozenset(str(drawn.randrange(N_ELEMENTS)) for _ in range(4)) - {target} for name in KIN}
    return Truth(
        key=key,
        operation=Operation(op, value, op),
        positives=frozenset({target}),
        boxes=(Box(drawn.uniform(0, 1200), drawn.uniform(0, 4800), 80.0, 24.0),),
        website=f"site{drawn.randrange(137)}",
        domain=f"domain{drawn.randrange(5)}",
        target=target,
        picture_size=PICTURE_SIZE,
        n_actions=n_actions,
        n_before=place,
        n_candidates=N_ELEMENTS,
        kin=like,
    )


def _prediction(truth: Truth, skill: float) -> Prediction:
    """The target is ranked in five steps of six; a wrong step has a wrong element, operation or value."""
    from seeact_offline.records import Prediction, Usage

    drawn = Random(f"{SEED}/{skill}/{truth.key}")
    others = [str(node) for node in drawn.sample(range(N_ELEMENTS), GROUPS * GROUP_SIZE) if str(node) != truth.target]
    ranked = tuple((sorted(truth.positives) if drawn.random() < 5 / 6 else []) + others)[:50]
    is_right = drawn.random() < skill and truth.target in ranked
    picked = truth.target if is_right else drawn.choice([*ranked, None])
    op = truth.operation.op if is_right or drawn.random() < 0.8 else "CLICK"
    value = truth.operation.value if is_right or drawn.random() < 0.5 else drawn.choice(WORDS)
    groups = tuple(_group(number, ranked, picked, op, value) for number in range(GROUPS))
    usage = Usage(calls=2 * GROUPS, prompt_tokens=12_000, completion_tokens=1_500, image_tokens=6_000, cost_usd=0.05)
    return Prediction(truth.key, groups, picked, op, value, ranked=ranked, usage=usage)


def _group(number: int, ranked: tuple[str, ...], picked: str | None, op: str, value: str) -> Reply:
    from seeact_offline.records import Reply

    offered = ranked[number * GROUP_SIZE : (number + 1) * GROUP_SIZE]
    pick = picked if picked in offered else None
    letter = chr(ord("A") + offered.index(pick)) if pick is not None else "R"
    return Reply(number, offered, (PLAN, _final(letter, op, value)), pick, op, value)
