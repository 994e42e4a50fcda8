"""Compare ways of marking, or a web agent's observations, over the same steps; leaves a table and a run for
each row in --out.

python scripts/ablate.py --over markup --split cross_task --model builtin/oracle
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["ablate", *sys.argv[1:]]))
