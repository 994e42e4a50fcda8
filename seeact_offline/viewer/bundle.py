"""A site as a folder of files, which any web server can serve, without a program behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from seeact_offline.files.whole import write_whole
from seeact_offline.records import InputError
from seeact_offline.viewer.site import Site, json_file
from seeact_offline.viewer.without_data import bare_names, index_without_paths, step_without_paths

MARK = "bundle.json"
"""Lists the files of a bundle, so that it can be written anew and nothing else is ever removed."""
ROBOTS = "User-agent: *\nDisallow: /\n"
_OURS = re.compile(r"(?:[\w-]+\.(?:html|css|js|svg|json|txt))|(?:step/[0-9a-f]{16}\.json)|(?:img/[0-9a-f-]+\.webp)")


def write_bundle(site: Site, out: Path) -> int:
    """Writes all of the site's files, which then name no path of this machine, and `robots.txt`; how many there are.

    Raises InputError for a folder of something else.
    """
    old, bare = _old(out), dict[str, str]()
    # marked first, so that one that was interrupted can be written anew
    _mark(out, old)
    names = []
    for name in site.names():
        file = site.get(name)
        if file is not None:
            content = file.content
            if name == "index.json":
                index = json.loads(content)
                bare, content = bare_names(index), json_file(index_without_paths(index)).content
            elif name.endswith(".json"):
                content = json_file(step_without_paths(json.loads(content), bare)).content
            _write(out / name, content)
            names.append(name)
    _write(out / "robots.txt", ROBOTS.encode())
    names.append("robots.txt")
    for name in old - set(names):
        (out / name).unlink(missing_ok=True)
    _mark(out, names)
    return len(names)


def _mark(out: Path, names: Iterable[str]) -> None:
    _write(out / MARK, json.dumps({"schema": 1, "files": sorted(names)}, indent=1).encode())


def _old(out: Path) -> set[str]:
    """The files of the bundle that is in the folder. Raises InputError."""
    if out.exists() and not out.is_dir():
        raise InputError("bundle", "a folder", f"the file {out}")
    if not out.exists() or not any(out.iterdir()):
        return set()
    try:
        named: Any = json.loads((out / MARK).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, LookupError, TypeError):
        raise InputError(
            "bundle", "a new folder, an empty one, or one with a bundle", f"{out} with other files"
        ) from None
    return set(_ours(named)) if isinstance(named, list) else set()


def _ours(names: Iterable[object]) -> list[str]:
    """Only what a bundle may have written: the list might not be from us."""
    return [name for name in names if isinstance(name, str) and _OURS.fullmatch(name)]


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda draft: draft.write_bytes(content))
