"""A training that ends itself by SIGKILL in the middle: `python killed.py DATASET OUT`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

    from seeact_offline.training.tuning import fine_tune
    from tests.seeact_offline.training.test_flan_t5 import KilledAt, asked

    at_once = KilledAt(13, lambda: os.kill(os.getpid(), signal.SIGKILL))
    fine_tune(asked(Path(sys.argv[1]), Path(sys.argv[2])), at_once)
