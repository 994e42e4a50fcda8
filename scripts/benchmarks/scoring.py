"""A whole benchmark's worth of finished predictions is scored under all rules, and compared, in three seconds."""

from __future__ import annotations

import resource
import statistics
import sys
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import ROOT, SEED, Line, check_run, scratch_folder, timed

if TYPE_CHECKING:
    from seeact_offline.records import Kinship, Prediction, Reply, Truth

GROUPS, GROUP_SIZE, N_CANDIDATES = 3, 17, 500
# of a first turn
REPLY_CHARS = 2000
LONGEST_TASK = 25
WORDS = "book the flight to Paris on 12 May for two adults and choose a window seat near the exit".split()
KIN: tuple[Kinship, ...] = ("same_text", "overlapping", "neighbour", "clicks_positive", "clicks_target")
SETTINGS: dict[str, Any] = {
    "split": "cross_domain", "grounding": "choice", "model": "made-up", "ranker": "bm25", "protocol": "seeact",
    "merge": "final-round", "top_k": 50, "group_size": GROUP_SIZE, "seed": SEED, "limit": None, "dataset": "made-up",
    "dataset_fingerprint": "made-up",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Child:
    """What a command took in a process of its own."""

    wall_s: float
    peak_mb: float


def bench_scoring(n_steps: int, scratch_in: Path | None) -> list[Line]:
    """Two made-up runs over the same `n_steps` steps, scored again and compared, each command in a process of its own."""
    from seeact_offline.scoring.protocols import PROTOCOLS

    with scratch_folder(scratch_in) as scratch:
        runs = [scratch / "better", scratch / "worse"]
        for run, skill in zip(runs, (0.45, 0.40), strict=True):
            make_run(run, n_steps, skill)
        size = (runs[0] / "predictions.jsonl").stat().st_size
        print(f"scoring: {n_steps} steps, predictions.jsonl of {size / 1e6:.0f} MB a run, {len(PROTOCOLS)} protocols")
        scored = _child("score", str(runs[0]), "--protocol", ",".join(PROTOCOLS))
        compared = _child("compare", *map(str, runs))
    helped = statistics.median(_child("score", "--help").wall_s for _ in range(5))
    return [
        Line("score under all protocols", scored.wall_s, "s", at_most=3.0),
        Line("score under all protocols, peak", scored.peak_mb, "MB", at_most=700),
        Line("compare", compared.wall_s, "s", at_most=3.0),
        Line("compare, peak", compared.peak_mb, "MB", at_most=700),
        Line("score --help, median of 5", helped, "s", at_most=0.5),
    ]


def _child(verb: str, *words: str) -> Child:
    """Raises CalledProcessError when the command's status is not 0."""
    # a fresh process, for the peak of children is that of the largest one so far
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(_measured, ([sys.executable, str(ROOT / "scripts" / f"{verb}.py"), *words],))


def _measured(command: list[str]) -> Child:
    wall_s = timed(lambda: check_run(command)).wall_s
    return Child(wall_s, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def make_run(folder: Path, n_steps: int, skill: float) -> None:
    """Writes a finished run. `skill`: share of steps whose element and operation are right, where they can be."""
    from seeact_offline.runs.folder import Manifest, RunFolder
    from seeact_offline.scoring.protocols import PROTOCOLS
    from seeact_offline.scoring.results import assemble

    truths = _truths(n_steps)
    predictions = [_prediction(truth, skill) for truth in truths]
    made = assemble(predictions, truths, PROTOCOLS["seeact"], SETTINGS, complete=True)
    out = RunFolder(folder)
    out.claim(Manifest(identity={"split": SETTINGS["split"], "model": folder.name}, settings=SETTINGS))
    out.order(predictions, truths)
    out.write_scores(made.rows, made.results, "")


def _truths(n_steps: int) -> list[Truth]:
    """Task by task, each of 1 to LONGEST_TASK steps: over a thousand tasks in 15,000 steps."""
    found: list[Truth] = []
    drawn, task = Random(SEED), 0
    while len(found) < n_steps:
        n_actions = drawn.randint(1, LONGEST_TASK)
        steps = range(min(n_actions, n_steps - len(found)))
        found += [_truth(f"task-{task:05}", place, n_actions) for place in steps]
        task += 1
    return found


def _truth(task: str, place: int, n_actions: int) -> Truth:
    from seeact_offline.records import Box, Operation, StepKey, Truth

    key = StepKey(task, f"step-{place:02}")
    drawn = Random(f"{SEED}/{key}")
    op = drawn.choice(["CLICK", "CLICK", "CLICK", "TYPE", "SELECT"])
    value = "" if op == "CLICK" else " ".join(drawn.sample(WORDS, drawn.randint(1, 4)))
    target = str(drawn.randrange(N_CANDIDATES))
    like = {name: frozenset(str(drawn.randrange(N_CANDIDATES)) for _ in range(4)) - {target} for name in KIN}
    return Truth(
        key=key,
        operation=Operation(op, value, op),
        positives=frozenset({target}),
        boxes=(Box(drawn.uniform(0, 1200), drawn.uniform(0, 4800), 80.0, 24.0),),
        website=f"site-{drawn.randrange(70)}",
        domain=f"domain-{drawn.randrange(5)}",
        target=target,
        picture_size=(1280, 5000),
        n_actions=n_actions,
        n_before=place,
        n_candidates=N_CANDIDATES,
        kin=like,
    )


def _prediction(truth: Truth, skill: float) -> Prediction:
    """The positive is among the ranked in five steps of six; a wrong step misses by element, operation or value."""
    from seeact_offline.records import Prediction, Usage

    drawn = Random(f"{SEED}/{skill}/{truth.key}")
    others = [str(node) for node in drawn.sample(range(N_CANDIDATES), GROUPS * GROUP_SIZE) if str(node) != truth.target]
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
    plan = ("I look at the page and then at what was done before. " * REPLY_CHARS)[:REPLY_CHARS]
    return Reply(number, offered, (plan, f"ELEMENT: {letter}\nACTION: {op}\nVALUE: {value or 'None'}"), pick, op, value)
