r"""Fine-tune a baseline of the paper by the published recipe; without a GPU, the small one, or tiny ones.

python scripts/finetune.py --small --out runs/flan-t5-small
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["finetune", *sys.argv[1:]]))
