"""A split of any size is read in a few hundred megabytes, and its `raw_html` not at all."""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

from benchmarks.frame import ROOT, SEED, Line, run_python, scratch_folder

N_ROWS = 4_000
"""As many as the largest test split has."""
READ = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from seeact_offline.dataset import load_steps
began = time.perf_counter()
seen = sum(len(step.cleaned_html) + len(step.screenshot.read()) for step in load_steps(sys.argv[1], 'cross_task'))
peak = int(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))) * 1024
print(peak, seen, time.perf_counter() - began)
"""


def measure(options: argparse.Namespace) -> list[Line]:
    """Reads rows of 1 MB HTML and 1 MB picture in a process of its own.

    Every byte of `raw_html` in the file is overwritten first, so that reading one would fail.
    """
    from tests.pages import synthetic_rows, write_parquet

    noise = Random(SEED).randbytes(1 << 15)
    # pages and pictures repeat themselves, so that the file stays small and is soon written
    pages = list(synthetic_rows(10, 10, 10, SEED, html_size=1_000_000, raw_html_size=1_000_000))
    rows = (
        {
            **pages[i % len(pages)],
            "annotation_id": f"task-{i // 10}",
            "screenshot": {"bytes": (f"{i}".encode() + noise) * 32, "path": None},
        }
        for i in range(N_ROWS)
    )
    with scratch_folder(options.dir) as scratch:
        path = scratch / "data" / "test_task-00000-of-00001.parquet"
        write_parquet(rows, path)
        spoiled = _spoil(path, "raw_html")
        peak, seen, took_s = run_python(READ, scratch).split()
    print(f"stream: {N_ROWS} rows, {spoiled / 1e6:.1f} MB of raw_html overwritten, {int(seen) / 1e9:.1f} GB seen")
    return [
        Line(f"peak memory of reading {N_ROWS:,} rows", int(peak) / 1e6, "MB", at_most=600),
        Line("rows a second", N_ROWS / float(took_s), "1/s"),
    ]


def _spoil(path: Path, column: str) -> int:
    """Overwrites the stored values of a parquet column; returns the number of bytes."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    place = file.schema_arrow.names.index(column)
    spoiled = 0
    with path.open("r+b") as out:
        for group in range(file.metadata.num_row_groups):
            chunk = file.metadata.row_group(group).column(place)
            out.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
            out.write(b"\xff" * chunk.total_compressed_size)
            spoiled += chunk.total_compressed_size
    return spoiled
