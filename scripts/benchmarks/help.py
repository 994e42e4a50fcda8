"""`eval --help` answers at once, because it loads no heavy package."""

from __future__ import annotations

import argparse
import statistics

from benchmarks.frame import ROOT, Line, run_python, timed

HEAVY = ("torch", "transformers", "datasets", "pandas", "openai", "supervision", "cv2", "matplotlib")
HELP = f"""
import runpy, sys
sys.argv = ['eval.py', '--help']
try:
    runpy.run_path({str(ROOT / "scripts" / "eval.py")!r}, run_name='__main__')
except SystemExit:
    print('\\n', *sys.modules)
"""


def measure(options: argparse.Namespace) -> list[Line]:
    runs = [timed(lambda: run_python(HELP)) for _ in range(5)]
    loaded = {*HEAVY} & {*runs[0].result.splitlines()[-1].split()}
    print(f"heavy modules loaded by --help: {', '.join(sorted(loaded)) or 'none'} (of {', '.join(HEAVY)})")
    return [
        Line("eval --help, median of 5", statistics.median(run.wall_s for run in runs), "s", at_most=0.5),
        Line("heavy modules loaded by --help", len(loaded), "", at_most=1),
    ]
