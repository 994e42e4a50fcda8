"""Folders of runs on another machine (`s3://`, `hf://`, ...), which are read as a copy of their records."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from seeact_offline.records import InputError

RECORDS = (".json", ".jsonl", ".md")
"""Endings of the files that readers of runs need; pictures, models and stores of replies stay where they are."""


def readable_folder(text: str) -> Path:
    """A copy of the records below a URL that fsspec reads, which is removed when the program ends.

    Raises InputError for a URL that cannot be read, or has no records.
    """
    import fsspec

    try:
        system, root = fsspec.url_to_fs(text)
        paths = [path for path in system.find(root) if path.endswith(RECORDS)]
        target = Path(tempfile.mkdtemp(prefix="seeact-"))
        atexit.register(shutil.rmtree, target, ignore_errors=True)
        for path in paths:
            parts = PurePosixPath(path).relative_to(root).parts
            # a name of another machine must not lead out of the folder
            if ".." not in parts:
                copy = target.joinpath(PurePosixPath(root).name, *parts)
                copy.parent.mkdir(parents=True, exist_ok=True)
                system.get_file(path, str(copy))
    # each kind of storage has errors of its own
    except Exception as error:
        raise InputError("runs", sentence=f"cannot read {text}: {type(error).__name__}: {error}") from None
    if not paths:
        raise InputError("runs", sentence=f"{text} holds no run: no file there ends in {', '.join(RECORDS)}")
    return target / PurePosixPath(root).name
