"""Let an agent act in headless Chromium, and judge it by the page's state.

python scripts/browse.py sites --agent webvoyager --model builtin/oracle --limit 5
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["browse", *sys.argv[1:]]))
