"""Score finished tasks of VisualWebArena or WebArena by programs over answers, addresses and stored pages.

python scripts/reward.py --config tasks.json --answers answers.jsonl --states states
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["reward", *sys.argv[1:]]))
