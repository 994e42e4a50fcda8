"""Show exactly what the model would be sent for one step.

python scripts/show.py --split cross_website --step 2
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["show", *sys.argv[1:]]))
