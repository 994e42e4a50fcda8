"""`view`: runs in the browser, or as a folder of files; and the page on which a person grounds."""

from __future__ import annotations

import argparse
import shlex
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli.output import note, say
from seeact_offline.cli.parser import count, run_folder
from seeact_offline.cli.progress import StepProgress
from seeact_offline.files.digest import RUNS
from seeact_offline.records import InputError
from seeact_offline.scoring.report import counted

if TYPE_CHECKING:
    from seeact_offline.viewer.site import Site
    from seeact_offline.viewer.site_files import StepSite
    from seeact_offline.viewer.trajectory_site import TrajectorySite

# pages and replies are nobody else's unless the user opens them to the network
LOOPBACK = "127.0.0.1"
LAST_PORT = 65535
LARGE = 8 << 20
"""Bytes of predictions that take more than a moment to read."""
NEEDS = {"out": ("annotate",), "second": ("annotate",), "with_data": ("bundle",)}
"""Options that mean something only with one of these."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", type=run_folder, nargs="*", metavar="RUN",
        help="runs, finished or not, folders of runs, of trajectories, or of judge;"
        " several stand side by side (default: all in runs/)",
    )  # fmt: skip
    parser.add_argument(
        "--dataset", metavar="DIR|FILE|HUB_ID",
        help="the data of the runs, where they have moved (default: those named in the runs)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", type=Path, metavar="RUN", help="the run that the others are compared with (default: the oldest)"
    )
    parser.add_argument(
        "--causes", type=Path, metavar="FILE",
        help="let a person give causes of loss, and keep them in this file (see `score --causes`)",
    )  # fmt: skip
    parser.add_argument(
        "--also-right", type=Path, metavar="FILE",
        help="let a person mark answers that are as right as the annotated one,"
        " and keep them in this file (see `score --also-right`)",
    )  # fmt: skip
    served = parser.add_argument_group("the server")
    served.add_argument("--port", type=count, default=0, metavar="N", help="default: any that is free")
    served.add_argument(
        "--host", default=LOOPBACK,
        help="a name or an address of this machine; on any but the default,"
        " everyone who reaches it can look (default: %(default)s)",
    )  # fmt: skip
    served.add_argument("--no-browser", action="store_true", help="only print the link")
    bundle = parser.add_argument_group("as files")
    bundle.add_argument(
        "--bundle", type=Path, metavar="DIR", help="write a folder that any web server can serve, and serve nothing"
    )
    bundle.add_argument(
        "--with-data", action="store_true",
        help="include tasks, pages, pictures, prompts and replies, which are left out of data other than the sample;"
        " Mind2Web's test sets must not be published",
    )  # fmt: skip
    person = parser.add_argument_group("grounding by a person")
    person.add_argument("--annotate", type=Path, metavar="RUN", help="a finished run; a person judges its turn-1 texts")
    person.add_argument("--out", type=Path, metavar="FILE", help="the answers, as --oracle-file reads them")
    person.add_argument(
        "--annotator", metavar="NAME",
        help="the person, here, with --causes or --also-right, and for verdicts on episodes of browse",
    )  # fmt: skip
    person.add_argument("--second", type=Path, metavar="FILE", help="another person's answers, to show the agreement")


def run(args: argparse.Namespace) -> int:
    # not before they are needed, so that --help stays quick
    from seeact_offline.viewer.folders import sort_folders

    if not args.runs and args.annotate is None and sort_folders([RUNS]).is_shown:
        args.runs = [RUNS]
    _check(args)
    if args.annotate is not None:
        from seeact_offline.viewer.annotation_site import AnnotationSite

        options = {"annotator": args.annotator or "", "second": args.second, "dataset": args.dataset}
        with closing(AnnotationSite(args.annotate, args.out, **options)) as person:
            return _serve(person, args)
    sorted_folders = sort_folders(args.runs)
    if not sorted_folders.is_shown:
        raise InputError("runs", sentence=next(iter(sorted_folders.problems)))
    for problem in sorted_folders.problems:
        note(problem)
    if not sorted_folders.runs:
        return _whole_tasks(sorted_folders.whole_tasks, args)
    if sorted_folders.whole_tasks:
        named = " ".join(shlex.quote(str(path)) for path in sorted_folders.whole_tasks)
        note(f"whole tasks have a page of their own: seeact-offline view {named}")
    from seeact_offline.viewer.site import Site

    if args.annotator and args.causes is None and args.also_right is None:
        raise InputError(
            "annotator", sentence="`annotator` needs `annotate`, `causes`, `also_right` or episodes of `browse`"
        )
    runs = [*sorted_folders.runs]
    if args.baseline is not None and args.baseline.resolve() not in {folder.resolve() for folder in runs}:
        runs.insert(0, args.baseline)
    # of a finished run the list reads the scores alone
    written = [folder / "predictions.jsonl" for folder in runs if not (folder / "results.json").is_file()]
    n_bytes = sum(path.stat().st_size for path in written if path.is_file())
    if n_bytes > LARGE:
        note(f"reading {n_bytes / 1e6:,.0f} MB of {counted(len(written), 'unfinished run')}")
    causes = also_right = None
    if args.causes or args.also_right:
        from seeact_offline.viewer.notes import AlsoRightNotes, CauseNotes

        causes = None if args.causes is None else CauseNotes(args.causes, args.annotator or "")
        also_right = None if args.also_right is None else AlsoRightNotes(args.also_right, args.annotator or "")
    with closing(
        Site(runs, baseline=args.baseline, dataset=args.dataset, causes=causes, also_right=also_right)
    ) as site:
        for problem in site.data_problems:
            note(problem)
        return _serve(site, args) if args.bundle is None else _write(site, args)


def _whole_tasks(folders: Sequence[Path], args: argparse.Namespace) -> int:
    """Serves the page of whole tasks. Raises InputError for options of recorded steps."""
    from seeact_offline.trajectories.trajectory_files import NOBODY
    from seeact_offline.viewer.trajectory_site import TrajectorySite

    for name in ("baseline", "dataset", "causes", "also_right"):
        if getattr(args, name) is not None:
            raise InputError(name, sentence=f"`{name}` is of recorded steps; trajectories have none")
    site = TrajectorySite(folders, (args.annotator or NOBODY) if args.bundle is None else None)
    for folder, why in site.problems.items():
        note(f"{folder} {why}")
    return _serve(site, args) if args.bundle is None else _write(site, args)


def _check(args: argparse.Namespace) -> None:
    """Raises InputError for options that do not go together."""
    if bool(args.runs) == (args.annotate is not None):
        raise InputError(
            "runs",
            sentence="use runs or `annotate`, not both" if args.runs else "name runs to look at, or `annotate` RUN",
        )
    if args.port > LAST_PORT:
        raise InputError("port", f"0 to {LAST_PORT}", str(args.port))
    for name, needed in NEEDS.items():
        if getattr(args, name) and all(getattr(args, option) is None for option in needed):
            raise InputError(name, sentence=f"`{name}` needs {' or '.join(f'`{option}`' for option in needed)}")
    for name in ("baseline", "bundle", "causes", "also_right"):
        if args.annotate is not None and getattr(args, name) is not None:
            raise InputError(name, sentence=f"`{name}` cannot be combined with `annotate`")
    if args.annotate is not None and args.out is None:
        raise InputError("out", sentence="`annotate` needs `out`, a file for the answers")


def _write(site: Site | TrajectorySite, args: argparse.Namespace) -> int:
    from seeact_offline.viewer.bundle import LEFT_OUT, write_bundle

    steps = f"{site.folder}/"
    with StepProgress(len(site.keys()), str(args.bundle)) as progress:
        # a step's file comes before its pictures
        n = write_bundle(
            site, args.bundle, with_data=args.with_data,
            heard=lambda name: progress.advance("") if name.startswith(steps) else None,
        )  # fmt: skip
    say(f"{n} files in {args.bundle}; look at them with: python -m http.server --directory {args.bundle}")
    if not (args.with_data or site.is_sample):
        note(f"{LEFT_OUT} --with-data puts them in.")
    return 0


def _serve(site: StepSite, args: argparse.Namespace) -> int:
    """Serves until it is interrupted."""
    from seeact_offline.viewer.server import serving

    if args.host != LOOPBACK:
        note(f"warning: everyone who can reach {args.host} can look at everything here; the default is {LOOPBACK}")
    try:
        with serving(site, host=args.host, port=args.port) as address:
            say(address.link)
            # the link may be read from a pipe
            sys.stdout.flush()
            note("Ctrl-C ends it")
            if not args.no_browser:
                _open_browser(address.link)
            # not here, where Ctrl-C may come while a library loads, which would swallow it
            threading.Thread(target=lambda: [*map(note, site.prepare())], daemon=True).start()
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    return 0


def _open_browser(link: str) -> None:
    """Does nothing where there is no browser, or only one that would take over this terminal."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(link)
