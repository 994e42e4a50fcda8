"""List the runs of a folder by status, date, model and figures.

python scripts/runs.py runs
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["runs", *sys.argv[1:]]))
