"""Compare ways of marking elements on the picture over the same steps; leaves Table 5 and a run for each row in --out.

python scripts/ablate_markup.py --split cross_task --model builtin/oracle
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["ablate-markup", *sys.argv[1:]]))
