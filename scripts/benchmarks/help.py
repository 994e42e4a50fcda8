"""`eval --help` answers at once, for it loads no heavy package."""

from __future__ import annotations

import statistics
import sys

from benchmarks.measuring import ROOT, Line, check_run, timed

HEAVY = ("torch", "transformers", "datasets", "pandas", "openai", "supervision", "cv2", "matplotlib")
EVAL = str(ROOT / "scripts" / "eval.py")
MODULES_AFTER_HELP = f"""
import runpy, sys
sys.argv = ['eval.py', '--help']
try:
    runpy.run_path({EVAL!r}, run_name='__main__')
except SystemExit:
    print('\\n', *sys.modules)
"""


def bench_help() -> list[Line]:
    """How long `eval --help` takes, and how many heavy packages it loads."""
    median = statistics.median(timed(lambda: check_run([sys.executable, EVAL, "--help"])).wall_s for _ in range(5))
    modules = check_run([sys.executable, "-c", MODULES_AFTER_HELP]).splitlines()[-1].split()
    loaded = [name for name in modules if name in HEAVY]
    print(f"heavy modules loaded by --help: {', '.join(loaded) or 'none'} (of {', '.join(HEAVY)})")
    return [
        Line("eval --help, median of 5", median, "s", at_most=1.0),
        Line("heavy modules loaded by --help", len(loaded), "", at_most=1),
    ]
