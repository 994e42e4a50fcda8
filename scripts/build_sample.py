"""Rebuild the bundled sample: record the tasks of its sites in headless Chromium.

python scripts/build_sample.py [--site NAME ...] [--out DIR] [--scores | --checks]
"""

import argparse
import sys
from pathlib import Path


def main() -> None:
    from seeact_offline.cli.progress import TerminalWatch
    from seeact_offline.ranking.stage import ship_scores
    from seeact_offline.recorder.sample_building import build, site_names, write_checks
    from seeact_offline.sample import DATA, SCORES

    parser = argparse.ArgumentParser(description="Rebuild the bundled sample from the pages of its sites.")
    parser.add_argument("--site", action="append", help="only this site; may be given several times")
    parser.add_argument("--out", type=Path, default=DATA, help="data set folder to write (default: the bundled one)")
    parser.add_argument("--workers", type=int, default=2, help="sites at once (default: %(default)s)")
    parser.add_argument("--scores", action="store_true", help="record nothing; only rank what is there")
    parser.add_argument("--checks", action="store_true", help="record nothing; only write what the tasks change")
    args = parser.parse_args()
    if args.checks:
        write_checks(args.site or site_names(), print)
        return
    if not args.scores:
        build(args.site or site_names(), args.out, print, args.workers)
    if args.scores or args.out == DATA:
        for path in ship_scores(SCORES, TerminalWatch()):
            print(path)


if __name__ == "__main__":
    # the checkout this script lies in, whether it is installed or not
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    try:
        main()
    except ModuleNotFoundError as error:
        from seeact_offline.files.extras import missing_package

        print(f"error: {missing_package(error)}", file=sys.stderr)
        raise SystemExit(2) from None
