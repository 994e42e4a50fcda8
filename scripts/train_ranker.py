"""Train a ranker on the steps of a split by the published recipe; without a GPU, the small one.

python scripts/train_ranker.py --dataset sample --split train --small --out runs/ranker
torchrun --nproc-per-node 4 scripts/train_ranker.py --dataset osunlp/Multimodal-Mind2Web --out runs/deberta
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["train-ranker", *sys.argv[1:]]))
