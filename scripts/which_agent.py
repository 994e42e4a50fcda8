"""Name the agent whose language and frame fit a file of replies.

python scripts/which_agent.py replies.jsonl --dataset DIR --split cross_website
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["which-agent", *sys.argv[1:]]))
