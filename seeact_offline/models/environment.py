"""The variables that name a server, its key and options of a model: those of the process, else of the file `.env` in the working folder.

Of the file only NAMES and what begins with PREFIX are read, and it never overrides the process. A folder may be somebody else's, so its file cannot send
a key of the process to a server of its own: see `address.find_server`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from seeact_offline.files.named import read_named
from seeact_offline.files.places import PREFIX
from seeact_offline.records import InputError

NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY")
LONGEST_FILE = 100_000
"""Bytes; of a longer one nothing is read."""
LONGEST_LINE = 4_000
_LINE = re.compile(
    r"""\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>.*?))\s*(?:(?<=\s)\#.*)?"""
)
"""`NAME=value`, the value bare or in quotes, perhaps with `export` before it and a comment after a blank."""


def variable(name: str) -> str:
    """Returns the value without blanks around it; empty where it is set nowhere."""
    return os.environ.get(name, "").strip() or from_file(name)


def from_file(name: str) -> str:
    """The value in `.env`; empty where that file has none, or where the process has one already."""
    if not (name in NAMES or name.startswith(PREFIX)) or os.environ.get(name, "").strip():
        return ""
    try:
        lines = read_named(".env", Path(".env"), largest=LONGEST_FILE).decode("utf-8", "replace").splitlines()
    except InputError:
        return ""
    matches = [_LINE.fullmatch(line) for line in lines if len(line) <= LONGEST_LINE]
    found = [match for match in matches if match is not None and match["name"] == name]
    return (found[-1]["double"] or found[-1]["single"] or found[-1]["bare"] or "").strip() if found else ""
