"""Compare finished runs, paired by step and clustered by task.

python scripts/compare.py runs/a runs/b
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["compare", *sys.argv[1:]]))
