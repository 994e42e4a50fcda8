"""A split of any size is read in some hundred megabytes, and its `raw_html` not at all."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from benchmarks.measuring import ROOT, SEED, Line, check_run, scratch_folder

N_ROWS = 10_000
READ = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from seeact_offline.dataset import load_steps
began = time.perf_counter()
seen = sum(len(step.cleaned_html) + len(step.screenshot.read()) for step in load_steps(sys.argv[1], 'cross_task'))
peak = int(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))) * 1024
print(peak, seen, time.perf_counter() - began)
"""


def bench_stream(scratch_in: Path | None) -> list[Line]:
    """10,000 rows of 1 MB HTML and 1 MB picture, read in a process of its own.

    Every byte of `raw_html` in the file is overwritten before, so that reading one would fail.
    """
    with scratch_folder(scratch_in) as scratch:
        path = scratch / "data" / "test_task-00000-of-00001.parquet"
        _write_large(path, N_ROWS)
        spoiled = _spoil(path, "raw_html")
        peak, seen, took_s = check_run([sys.executable, "-c", READ, str(scratch)]).split()
    print(
        f"stream: {N_ROWS} rows, {path.name}, {spoiled / 1e6:.1f} MB of raw_html overwritten, {int(seen) / 1e9:.1f} GB seen"
    )
    return [
        Line("peak memory of reading 10,000 rows", int(peak) / 1e6, "MB", at_most=600),
        Line("rows a second", N_ROWS / float(took_s), "1/s"),
    ]


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
