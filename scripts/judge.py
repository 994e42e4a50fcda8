"""Ask a model whether trajectories have done their tasks.

python scripts/judge.py trajectories --judge strict --model openai/gpt-4o
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["judge", *sys.argv[1:]]))
