r"""Improve an agent from its own attempts, offline: recorded train tasks, teacher-forced steps.

python scripts/improve.py --model hf/Qwen/Qwen2.5-VL-3B-Instruct --dataset DIR --out runs/improved
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from seeact_offline.cli import main

    raise SystemExit(main(["improve", *sys.argv[1:]]))
