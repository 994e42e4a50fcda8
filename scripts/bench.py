"""Measure speed and memory on made-up data; every such claim of this project is a line that this prints.

python scripts/bench.py help | steps | describe | sample | stream | lint | marks | ranker | all
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# the checkout this script lies in: it needs the tests' page generator and reference implementation
sys.path.insert(0, str(ROOT))

HEAVY = ("torch", "transformers", "datasets", "pandas", "openai", "supervision", "cv2", "matplotlib")
N_ELEMENTS = 500
HTML_CHARS = 100_000
PICTURE_SIZE = (1280, 5000)
NOISE_ROWS = 600
# of a picture, so that its file is about as big as a real one (0.76 MB)
N_PICTURES = 8
STEPS_PER_TASK = 8
REPLY_CHARS = 2000
# of a first turn
TOP = 50
# candidates that go on to the model
PAGES_A_TURN = 5
BF16_PEAK = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12, "A10": 125e12}
# dense operations a second, from the makers' data sheets
SEED = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, and what it must be."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def missed(self) -> bool:
        too_low = self.at_least is not None and self.value <= self.at_least
        return too_low or (self.at_most is not None and self.value >= self.at_most)

    def __str__(self) -> str:
        bar = f"over {self.at_least:g}" if self.at_least is not None else ""
        bar = f"under {self.at_most:g}" if self.at_most is not None else bar
        verdict = "MISSED" if self.missed else "ok" if bar else ""
        return f"{self.name:<40}{self.value:>12,.3f} {self.unit:<9}{bar:<12}{verdict}".rstrip()


@dataclass(frozen=True, slots=True)
class Measured:
    """What one `eval` in a process of its own took."""

    n_steps: int
    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class RankerPage:
    """What a ranker reads of one step."""

    query: str
    texts: tuple[str, ...]


Scorer = Callable[[Sequence[RankerPage]], list[Any]]
# the scores of each page's texts


@dataclass(frozen=True, slots=True)
class Timed:
    """Scores of some pages, and what they took."""

    scores: list[Any]
    wall_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Turn:
    """The same pages scored in two ways, one after the other."""

    usual: Timed
    fast: Timed


def bench_help(args: argparse.Namespace) -> list[Line]:
    """How long `eval --help` takes, and how many heavy packages it loads."""
    command = [sys.executable, str(ROOT / "scripts" / "eval.py"), "--help"]
    median = statistics.median(_took(lambda: _check_run(command)) for _ in range(5))
    loaded = [name for name in _modules_after_help() if name in HEAVY]
    print(f"heavy modules loaded by --help: {', '.join(loaded) or 'none'} (of {', '.join(HEAVY)})")
    return [
        Line("eval --help, median of 5", median, "s", at_most=1.0),
        Line("heavy modules loaded by --help", len(loaded), "", at_most=1),
    ]


def bench_steps(args: argparse.Namespace) -> list[Line]:
    """Steps a second and peak memory of `eval` through recorded replies; pages and pictures of real size.

    A run of one task gives the start-up, one of a quarter of the steps how memory grows. On a machine that has other work to
    do, processor time tells more than wall time.
    """
    if args.dir is not None:
        args.dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="seeact-bench-", dir=args.dir) as scratch:
        tiny, quarter, full = (_measured(Path(scratch), n) for n in (STEPS_PER_TASK, args.n // 4, args.n))
    work_s = full.wall_s - tiny.wall_s
    growth = (full.peak_bytes - quarter.peak_bytes) / (full.n_steps - quarter.n_steps)
    print(
        f"steps: {full.n_steps} of {N_ELEMENTS} elements, cleaned_html {HTML_CHARS:,} characters, "
        f"screenshot {PICTURE_SIZE[0]}x{PICTURE_SIZE[1]}, 3 groups of two turns, every fourth step a final round"
    )
    return [
        Line("steps a second, whole command", full.n_steps / full.wall_s, "1/s", at_least=100),
        Line("steps a second, without start-up", (full.n_steps - tiny.n_steps) / work_s, "1/s"),
        Line("steps a second of processor time", full.n_steps / full.cpu_s, "1/s"),
        Line("wall time, whole command", full.wall_s, "s"),
        Line("processor time, whole command", full.cpu_s, "s"),
        Line("start-up (a run of one task)", tiny.wall_s, "s"),
        Line("peak memory", full.peak_bytes / 1e6, "MB", at_most=1000),
        Line(f"peak memory of {quarter.n_steps} steps", quarter.peak_bytes / 1e6, "MB"),
        Line("growth of peak memory", growth / 1e3, "kB/step"),
    ]


def bench_describe(args: argparse.Namespace) -> list[Line]:
    """The fast description of every candidate of a page against the slow reference, equal to the byte.

    The reference's parsing is not counted, though it parses for every candidate; ours, once a page, is.
    """
    from seeact_offline.dom import Page

    # not an import statement: the reference has no types, and a type checker would follow it
    reference = importlib.import_module("tests.reference.dom")
    row = next(_rows(1))
    html = row["cleaned_html"]
    ids = [json.loads(c)["backend_node_id"] for c in (*row["pos_candidates"], *row["neg_candidates"])]

    def fast() -> list[str]:
        page = Page(html)
        return [page.ranker_text(node) for node in ids]

    expected: list[str] = []
    # processor time: other work on the machine, which may hit only one of the two, does not count
    slow_s = _took(lambda: expected.extend(reference.ranker_text(html, node) for node in ids), time.process_time)
    slow_s = slow_s / len(ids) - min(_took(lambda: reference.parse(html), time.process_time) for _ in range(5))
    fast_s = min(_took(fast, time.process_time) for _ in range(3)) / len(ids)
    differing = sum(ours != theirs for ours, theirs in zip(fast(), expected, strict=True))
    print(f"describe: page of {len(ids)} candidates, {len(html):,} characters")
    return [
        Line("reference, a candidate", slow_s * 1e3, "ms"),
        Line("ours, a candidate", fast_s * 1e3, "ms"),
        Line("times faster than the reference", slow_s / fast_s, "x", at_least=20),
        Line("texts that differ", differing, "", at_most=1),
    ]


def bench_scoring(args: argparse.Namespace) -> list[Line]:
    """Scoring against sentence-transformers at its defaults.

    Both score the same candidates with the same checkpoint on the same device: DeBERTa-v3-base's shape, random weights.
    """
    from sentence_transformers import CrossEncoder

    from ranker import CrossEncoderRanker

    pages = _ranker_pages(args)
    with tempfile.TemporaryDirectory(prefix="seeact-bench-", dir=args.dir) as scratch:
        _write_checkpoint(Path(scratch))
        theirs, ours = CrossEncoder(scratch), CrossEncoderRanker(scratch, dtype=args.dtype, exact_top=TOP)

    def usual(batch: Sequence[RankerPage]) -> list[Any]:
        flat = theirs.predict([(page.query, text) for page in batch for text in page.texts])
        ends = itertools.accumulate(len(page.texts) for page in batch)
        return [flat[end - len(page.texts) : end] for end, page in zip(ends, batch, strict=True)]

    def fast(batch: Sequence[RankerPage]) -> list[Any]:
        return ours.score_many([(page.query, page.texts) for page in batch])

    turns = _take_turns(pages, usual, fast)
    _print_settings(pages, turns, ours)
    return _scoring_lines(pages, turns, ours)


def _ranker_pages(args: argparse.Namespace) -> list[RankerPage]:
    """Steps drawn from the sample's test splits, and those of `--also`; of each as many candidates as asked for."""
    from seeact_offline.dataset import TEST_SPLITS, load_steps
    from seeact_offline.ranking import candidate_texts, ranker_query

    steps = [step for split in TEST_SPLITS for step in load_steps("sample", split)]
    steps = Random(SEED).sample(steps, min(args.ranker_steps, len(steps)))
    steps += list(load_steps(*args.also)) if args.also else []
    pages = []
    for step in steps:
        texts = list(candidate_texts(step).values())
        n = min(args.candidates or len(texts), len(texts))
        pages.append(RankerPage(ranker_query(step), tuple(Random(str(step.key)).sample(texts, n))))
    return pages


def _write_checkpoint(folder: Path) -> None:
    """Its tokenizer is learnt from the texts of the sample's train split."""
    from seeact_offline.dataset import load_steps
    from seeact_offline.ranking import candidate_texts, ranker_query
    from tests.ranker.base_size import write_base_size

    steps = list(load_steps("sample", "train"))
    write_base_size(folder, {text for step in steps for text in (ranker_query(step), *candidate_texts(step).values())})


def _take_turns(pages: Sequence[RankerPage], usual: Scorer, fast: Scorer) -> list[Turn]:
    """A few pages a turn, the usual way and ours, so that other work on the machine hits both."""
    for warm_up in (usual, fast):
        warm_up([RankerPage(pages[0].query, pages[0].texts[:2])])
    turns = []
    for start in range(0, len(pages), PAGES_A_TURN):
        batch = pages[start : start + PAGES_A_TURN]
        turns.append(Turn(_timed(usual, batch), _timed(fast, batch)))
        print(f"ranker: {start + len(batch)} of {len(pages)} steps", file=sys.stderr)
    return turns


def _timed(score: Scorer, batch: Sequence[RankerPage]) -> Timed:
    wall, processor = time.perf_counter(), time.process_time()
    scores = score(batch)
    return Timed(scores, time.perf_counter() - wall, time.process_time() - processor)


def _print_settings(pages: Sequence[RankerPage], turns: Sequence[Turn], ours: Any) -> None:
    import numpy as np
    import sentence_transformers
    import torch

    texts = [len(page.texts) for page in pages]
    found = [score for turn in turns for scores in turn.fast.scores for score in scores]
    print(
        f"ranker: {_processor_name()}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"sentence-transformers {sentence_transformers.__version__}\n"
        f"ranker: 12 layers x 768, 12 heads, vocabulary 128,100, random weights; scores spread by {np.std(found):.2f}\n"
        f"ranker: {len(pages)} steps of {min(texts)} to {max(texts)} candidates, {sum(texts)} pairs, "
        f"{len({(page.query, text) for page in pages for text in page.texts})} of them distinct; "
        f"ours: {ours.device}, {ours.dtype}; theirs: CrossEncoder.predict at its defaults"
    )


def _scoring_lines(pages: Sequence[RankerPage], turns: Sequence[Turn], ours: Any) -> list[Line]:
    n = sum(len(page.texts) for page in pages)
    usual_s, fast_s = sum(turn.usual.wall_s for turn in turns), sum(turn.fast.wall_s for turn in turns)
    usual_cpu_s, fast_cpu_s = sum(turn.usual.cpu_s for turn in turns), sum(turn.fast.cpu_s for turn in turns)
    usual = [scores for turn in turns for scores in turn.usual.scores]
    fast = [scores for turn in turns for scores in turn.fast.scores]
    same = sum(_top(page, a) == _top(page, b) for page, a, b in zip(pages, usual, fast, strict=True))
    return [
        Line("sentence-transformers, pairs a second", n / usual_s, "1/s"),
        Line("ours, pairs a second", n / fast_s, "1/s"),
        Line("times faster at scoring", usual_s / fast_s, "x", at_least=3),
        Line("the same in processor time", usual_cpu_s / fast_cpu_s, "x"),
        Line(f"same {TOP} best, % of {len(pages)} steps", 100 * same / len(pages), "%", at_least=99),
        Line("pairs scored a second time", 100 * ours.settled / n, "%"),
        *_gpu_lines(pages, fast_s, ours),
    ]


def _gpu_lines(pages: Sequence[RankerPage], took_s: float, ours: Any) -> list[Line]:
    """How much of the card's bf16 peak is used; the work is what the first pass needs, without padding."""
    import torch

    peak = next((flops for name, flops in BF16_PEAK.items() if name in _processor_name()), None)
    if not torch.cuda.is_available() or peak is None:
        return []
    lengths = [len(row.ids) for row in ours.encode([(page.query, page.texts) for page in pages]).rows]
    flops = sum(12 * (2 * 12 * 768**2 * length + 12 * 768 * length**2) for length in lengths)
    return [Line("share of the card's bf16 peak", 100 * flops / took_s / peak, "%")]


def _top(page: RankerPage, scores: Any) -> list[str]:
    """The texts of the best candidates: which of two candidates with equal texts is in is left to chance by theirs."""
    order = sorted(range(len(page.texts)), key=lambda place: -scores[place])
    return sorted(page.texts[place] for place in order[:TOP])


def _processor_name() -> str:
    """Of what torch works on."""
    import torch

    if torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    formats = [name for name in ("avx512f", "avx512_bf16", "amx_bf16") if any(name in line.split() for line in lines)]
    return " ".join([next(named, platform.processor()), *formats])


def bench_marks(args: argparse.Namespace) -> list[Line]:
    """Marking the largest group of the largest page, and searching that page by attributes; best of ten, warm."""
    from seeact_offline.dom import Page
    from seeact_offline.grounding.annotation import MarkedCrop
    from seeact_offline.marking import mark_labels, visible
    from seeact_offline.screenshots import PagePicture, group_crop
    from seeact_offline.searching import PageSearch

    step = max(_marked_steps(args), key=lambda step: len(step.candidates))
    picture, page = PagePicture(_screenshot(step)), Page(step.cleaned_html)
    boxes = [box for c in step.candidates if c.box and (box := visible(c.box, picture.size))]
    # as tall as a group can be: every seventeenth part of the page has one
    boxes = sorted(boxes, key=lambda box: box.y)[:: max(1, len(boxes) // 17)][:17]
    crop = picture.crop(group_crop(boxes, picture.size))
    marks = MarkedCrop(crop, boxes, mark_labels("number", len(boxes)), "bottom-left")
    crop.image()

    def search() -> None:
        PageSearch(page.nodes(), [c.backend_node_id for c in step.candidates]).find("BUTTON", "show all of the results")

    names = f"{len(boxes)} marks on {crop.size[0]} x {crop.size[1]}", f"{sum(1 for _ in page.nodes())} elements"
    return [
        Line(
            f"marking a group ({names[0]}), best of 10",
            1000 * min(_took(marks.image) for _ in range(10)),
            "ms",
            at_most=150,
        ),
        Line(
            f"a first search by attributes ({names[1]}), best of 10",
            1000 * min(_took(search) for _ in range(10)),
            "ms",
            at_most=20,
        ),
    ]


def _marked_steps(args: argparse.Namespace) -> Iterator[Any]:
    from seeact_offline import load_steps

    yield from load_steps(*(args.also or ("sample", "cross_website")))


def _screenshot(step: Any) -> Any:
    if step.screenshot is None:
        raise SystemExit(f"bench: expected a screenshot, step {step.key} has none")
    return step.screenshot


def bench_sample(args: argparse.Namespace) -> list[Line]:
    """Loading each split of the bundled sample, pictures not decoded; best of 5 in this process, imports done."""
    from seeact_offline.dataset import SPLITS, load_steps

    lines = []
    for split in SPLITS:
        took = min(_took(lambda split=split: list(load_steps("sample", split))) for _ in range(5))  # type: ignore[misc]
        n = sum(1 for _ in load_steps("sample", split))
        lines.append(Line(f"load sample {split} ({n} steps)", took, "s", at_most=0.5))
    return lines


STREAM = """
import resource, sys, time
from seeact_offline.dataset import load_steps
began = time.perf_counter()
seen = sum(len(step.cleaned_html) + len(step.screenshot.read()) for step in load_steps(sys.argv[1], 'cross_task'))
peak = int(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))) * 1024
print(peak, seen, time.perf_counter() - began)
"""


def bench_stream(args: argparse.Namespace) -> list[Line]:
    """10,000 rows of 1 MB HTML and 1 MB picture, read in a process of its own. Every byte of `raw_html` in the file is
    overwritten before, so that reading one would fail."""
    n = 10_000
    with tempfile.TemporaryDirectory(prefix="seeact-bench-", dir=args.dir) as scratch:
        path = Path(scratch) / "data" / "test_task-00000-of-00001.parquet"
        _write_large(path, n)
        spoiled = _spoil(path, "raw_html")
        answer = _check_run([sys.executable, "-c", STREAM, scratch]).split()
    print(
        f"stream: {n} rows, {path.name}, {spoiled / 1e6:.1f} MB of raw_html overwritten, {int(answer[1]) / 1e9:.1f} GB seen"
    )
    return [
        Line("peak memory of reading 10,000 rows", int(answer[0]) / 1e6, "MB", at_most=600),
        Line("rows a second", n / float(answer[2]), "1/s"),
    ]


def bench_lint(args: argparse.Namespace) -> list[Line]:
    """Linting the bundled sample on one core, rows read and pictures decoded."""
    from seeact_offline.dataset import TEST_SPLITS, load_tasks, row_positions
    from seeact_offline.lint import Duplicates, lint_task

    def lint() -> int:
        n, duplicates = 0, Duplicates()
        for split in TEST_SPLITS:
            positions = row_positions("sample", split)
            for steps in load_tasks("sample", split):
                for step, _ in lint_task(steps, positions):
                    duplicates.fault(step)
                    n += 1
        return n

    counts: list[int] = []
    took = _took(lambda: counts.append(lint()), time.process_time)
    return [Line(f"rows linted a second of a core ({counts[0]} rows)", counts[0] / took, "1/s", at_least=50)]


def _write_large(path: Path, n: int) -> None:
    """Rows of a megabyte of HTML and one of picture; both repeat themselves, so that the file stays small."""
    from tests.pages import synthetic_rows, write_parquet

    noise = Random(SEED).randbytes(1 << 15)
    rows = synthetic_rows(-(-n // 10), 10, 10, SEED, html_size=1_000_000, raw_html_size=1_000_000)
    pictures = (
        {**row, "screenshot": {"bytes": (str(i).encode() + noise) * 32, "path": None}} for i, row in enumerate(rows)
    )
    write_parquet(pictures, path)


def _spoil(path: Path, column: str) -> int:
    """Overwrites what a parquet file stores of a column; returns how many bytes that were."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    place = file.schema_arrow.names.index(column)
    spoiled = 0
    with path.open("r+b") as out:
        for group in range(file.metadata.num_row_groups):
            chunk = file.metadata.row_group(group).column(place)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            out.seek(start)
            out.write(b"\xff" * chunk.total_compressed_size)
            spoiled += chunk.total_compressed_size
    return spoiled


def make_data(n: int, folder: Path) -> None:
    """Writes a data set of `n` steps, its scores and its replies into `folder`."""
    from tests.pages import write_parquet

    write_parquet(_noting(_rows(n), folder), folder / "data" / "test_task-00000-of-00001.parquet")


def _rows(n: int) -> Iterator[dict[str, Any]]:
    """`n` rows of real size, task by task."""
    from tests.pages import synthetic_rows

    pictures = [_picture(i) for i in range(N_PICTURES)]
    tasks = -(-n // STEPS_PER_TASK)
    rows = synthetic_rows(tasks, STEPS_PER_TASK, N_ELEMENTS, SEED, html_size=HTML_CHARS)
    for i, row in zip(range(n), rows, strict=False):
        # what follows a picture's end is ignored, but keeps parquet from storing equal pictures once
        yield {**row, "screenshot": {"bytes": pictures[i % N_PICTURES] + str(i).encode(), "path": None}}


def _picture(number: int) -> bytes:
    """A PNG file of a real page's size in pixels and in bytes: a grey page with a strip of noise."""
    import io

    from PIL import Image

    width, height = PICTURE_SIZE
    page = Image.new("L", PICTURE_SIZE, 255 - number)
    noise = Random(f"{SEED}/{number}").randbytes(width * NOISE_ROWS)
    page.paste(Image.frombytes("L", (width, NOISE_ROWS), noise), (0, height // 2))
    out = io.BytesIO()
    page.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _noting(rows: Iterator[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    """Passes rows on; leaves `scores.parquet` and `replies.jsonl` for them."""
    from seeact_offline.ranking import ScoreRow, write_scores
    from seeact_offline.records import StepKey

    scores: list[ScoreRow] = []
    with (folder / "replies.jsonl").open("w", encoding="utf-8") as replies:
        for number, row in enumerate(rows):
            key = StepKey(row["annotation_id"], row["action_uid"])
            ids = [json.loads(c)["backend_node_id"] for c in (*row["pos_candidates"], *row["neg_candidates"])]
            drawn = sorted((Random(f"{SEED}/{key}/{node}").random(), node) for node in ids)[::-1]
            scores += (ScoreRow(key, node, score, rank) for rank, (score, node) in enumerate(drawn))
            replies.write(json.dumps({**key._asdict(), "groups": _replies(number)}) + "\n")
            yield row
    write_scores(folder / "scores.parquet", scores)


def _replies(number: int) -> list[dict[str, Any]]:
    """Three groups, of which one picks an element, every fourth step two, so that a final round follows."""
    letters = ["C", "D" if number % 4 == 0 else "R", "R", "B"]
    plan = ("I look at the page and then at what was done before. " * REPLY_CHARS)[:REPLY_CHARS]
    return [
        {"group": group, "replies": [plan, f"The element fits.\n\nELEMENT: {letter}\nACTION: CLICK\nVALUE: None"]}
        for group, letter in enumerate(letters)
    ]


EVAL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from seeact_offline.cli import main
status = main(['eval', *sys.argv[2:]])
peak = next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))
print(peak, file=open(sys.argv[1], 'w'))
raise SystemExit(status)
"""


def _measured(scratch: Path, n: int) -> Measured:
    """One `eval` over `n` steps, from nothing to the report. Raises SystemExit when a step did not run."""
    folder, out = scratch / f"{n}", scratch / f"run-{n}"
    folder.mkdir()
    this = [sys.executable, str(Path(__file__).resolve())]
    _check_run([*this, "make-data", "--n", str(n), "--dir", str(folder)])
    words = f"--split cross_task --dataset {folder} --scores {folder / 'scores.parquet'} --out {out}".split()
    peak = folder / "peak"
    command = [sys.executable, "-c", EVAL, str(peak), *words, "--model", f"replay/{folder / 'replies.jsonl'}"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    # wait4 and not RUSAGE_CHILDREN, which would count the process that made the data. Its ru_maxrss is no use either: it starts
    # from the peak of the process that forked
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - began
    results = json.loads((out / "results.json").read_text()) if status == 0 else {}
    if results.get("n_steps") != n or results["failures"] or results["reply_failures"]:
        raise SystemExit(f"eval over {n} steps: expected status 0 and no failure, got status {status} and {results}")
    return Measured(n, wall_s, used.ru_utime + used.ru_stime, int(peak.read_text()) * 1024)


def _modules_after_help() -> list[str]:
    code = (
        "import runpy, sys; sys.argv = ['eval.py', '--help']\n"
        f"try: runpy.run_path({str(ROOT / 'scripts' / 'eval.py')!r}, run_name='__main__')\n"
        "except SystemExit: print('\\n', *sys.modules)"
    )
    return _check_run([sys.executable, "-c", code]).splitlines()[-1].split()


def _check_run(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def _took(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    began = clock()
    work()
    return clock() - began


COMMANDS: dict[str, Sequence[Callable[[argparse.Namespace], list[Line]]]] = {
    "help": (bench_help,),
    "steps": (bench_steps,),
    "describe": (bench_describe,),
    "sample": (bench_sample,),
    "stream": (bench_stream,),
    "lint": (bench_lint,),
    "marks": (bench_marks,),
    "ranker": (bench_describe, bench_scoring),
    "all": (
        bench_help,
        bench_describe,
        bench_marks,
        bench_sample,
        bench_lint,
        bench_stream,
        bench_steps,
        bench_scoring,
    ),
}
# a later benchmark is a function above and a line here


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Speed and memory on made-up data; exit status 1 when a bar is missed."
    )
    parser.add_argument("what", choices=[*COMMANDS, "make-data"])
    parser.add_argument("--n", type=int, default=2000, help="steps: how many (default: %(default)s)")
    parser.add_argument(
        "--dir", type=Path, help="steps, stream: folder for some 3 GB of scratch files (default: the system's)"
    )
    parser.add_argument("--ranker-steps", type=int, default=20, help="ranker: steps (default: %(default)s)")
    parser.add_argument(
        "--candidates", type=int, default=60, help="ranker: of each step; 0 for all (default: %(default)s)"
    )
    parser.add_argument(
        "--also",
        nargs=2,
        metavar=("DATASET", "SPLIT"),
        help="ranker: steps to score beside those; marks: in their place",
    )
    parser.add_argument("--dtype", default="mixed", help="ranker: of ours (default: %(default)s)")
    args = parser.parse_args()
    if args.what == "make-data":
        make_data(args.n, args.dir)
        return 0
    load = f"load {os.getloadavg()[0]:.1f} before"
    print(f"{platform.platform()}, {os.cpu_count()} cores, {load}, Python {platform.python_version()}")
    lines = [line for command in COMMANDS[args.what] for line in command(args)]
    print(f"\n{'figure':<40}{'value':>12} {'unit':<9}bar", *lines, sep="\n")
    return int(any(line.missed for line in lines))


if __name__ == "__main__":
    raise SystemExit(main())
