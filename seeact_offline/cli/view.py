"""`view`: runs in the browser, or as a folder of files; and the page on which a person grounds."""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from seeact_offline.cli import options
from seeact_offline.cli.output import note, say
from seeact_offline.records import InputError

if TYPE_CHECKING:
    from seeact_offline.viewer.annotating import Annotating
    from seeact_offline.viewer.server import Served
    from seeact_offline.viewer.site import Site

LOOPBACK = "127.0.0.1"
ONLY_FOR = {
    "annotate": ("out", "second"),
    "bundle": ("with_data",),
}
"""Options that mean something beside another one alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", type=Path, nargs="*", metavar="RUN", help="run directories, finished or not; several stand side by side"
    )
    parser.add_argument(
        "--dataset",
        metavar="DIR|FILE|HUB_ID",
        help="where the data of the runs are now (default: where the runs had them)",
    )
    parser.add_argument(
        "--causes", type=Path, metavar="FILE",
        help="let a person say what a step was lost to, and keep it in this file (see `score --causes`)",
    )  # fmt: skip
    served = parser.add_argument_group("the server")
    served.add_argument("--port", type=options.count, default=0, metavar="N", help="default: any that is free")
    served.add_argument(
        "--host", default=LOOPBACK,
        help="a name or an address of this machine; on any but the default, whoever reaches it can look (default: %(default)s)",
    )  # fmt: skip
    served.add_argument("--no-browser", action="store_true", help="only print the link")
    bundle = parser.add_argument_group("as files")
    bundle.add_argument(
        "--bundle", type=Path, metavar="DIR", help="write a folder that any web server can serve, and serve nothing"
    )
    bundle.add_argument(
        "--with-data", action="store_true",
        help="with tasks, pages, pictures, prompts and replies, which are left out of data other than the sample;"
        " Mind2Web's test sets must not be published",
    )  # fmt: skip
    person = parser.add_argument_group("grounding by a person")
    person.add_argument("--annotate", type=Path, metavar="RUN", help="a finished run whose turn-1 texts are judged")
    person.add_argument("--out", type=Path, metavar="FILE", help="the answers, as --oracle-file reads them")
    person.add_argument("--annotator", metavar="NAME", help="who judges, here or with --causes")
    person.add_argument("--second", type=Path, metavar="FILE", help="another person's answers, to see the agreement")


def run(args: argparse.Namespace) -> int:
    _check(args)
    if args.annotate is not None:
        with closing(_annotating(args)) as page:
            return _serve(page, args)
    with closing(_site(args)) as site:
        return _serve(site, args) if args.bundle is None else _write(site, args.bundle)


def _check(args: argparse.Namespace) -> None:
    """Raises InputError for options that do not go together."""
    if bool(args.runs) == (args.annotate is not None):
        got = "none" if args.annotate is None else "both"
        raise InputError("runs", "runs to look at, or --annotate RUN", got)
    for name, dependent in ONLY_FOR.items():
        given = [one for one in dependent if getattr(args, one)]
        if given and getattr(args, name) is None:
            raise InputError(given[0], f"--{name} beside it", "none")
    if args.annotator and args.annotate is None and args.causes is None:
        raise InputError("annotator", "--annotate or --causes beside it", "none")
    if args.annotate is not None:
        for name in ("bundle", "causes"):
            if getattr(args, name) is not None:
                raise InputError(name, "runs to look at", "--annotate")
        if args.out is None:
            raise InputError("out", "a file for the answers", "none")


def _site(args: argparse.Namespace) -> Site:
    # not before it is needed, so that --help stays quick
    from seeact_offline.viewer.site import Site

    causes = None
    if args.causes is not None:
        from seeact_offline.viewer.causes import Causes

        causes = Causes(args.causes, args.annotator or "")
    return Site(args.runs, dataset=args.dataset, publish=args.bundle is not None and not args.with_data, causes=causes)


def _annotating(args: argparse.Namespace) -> Annotating:
    from seeact_offline.viewer.annotating import Annotating

    return Annotating(args.annotate, args.out, annotator=args.annotator or "", second=args.second, dataset=args.dataset)


def _write(site: Site, out: Path) -> int:
    from seeact_offline.viewer.bundle import write_bundle
    from seeact_offline.viewer.without_data import LEFT_OUT

    n = write_bundle(site, out)
    say(f"{n} files in {out}; look at them with: python -m http.server --directory {out}")
    if not site.with_data:
        note(f"{LEFT_OUT} --with-data puts them in.")
    return 0


def _serve(site: Served, args: argparse.Namespace) -> int:
    """Until it is interrupted."""
    from seeact_offline.viewer.server import serving

    if args.host != LOOPBACK:
        note(f"warning: whoever can reach {args.host} can look at everything here; the default is {LOOPBACK}")
    try:
        with serving(site, host=args.host, port=args.port) as address:
            say(address.link)
            # whoever started it may be reading the link from a pipe
            sys.stdout.flush()
            note("Ctrl-C ends it")
            if not args.no_browser:
                _open_browser(address.link)
            threading.Event().wait()
    except KeyboardInterrupt:
        pass
    return 0


def _open_browser(link: str) -> None:
    """Unless there is none, or only one that would take over this terminal."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is not webbrowser.GenericBrowser:
        browser.open(link)
