"""Compare verdicts of judges with labels, with intervals over tasks.

python scripts/agreement.py runs/judged --labels labels.csv
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["agreement", *sys.argv[1:]]))
