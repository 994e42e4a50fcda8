"""Other people's predictions. A new format is a module that declares an `Importer`, and a line here."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from seeact_offline.files.extensions import Doors
from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import UTF_16, open_regular
from seeact_offline.importers.importer import NOTES, ImportedAnswers, Importer, Source, WrongFormat
from seeact_offline.records import InputError

IMPORTERS: Mapping[str, Importer] = Doors(
    {
        "seeact": "seeact_offline.importers.seeact:IMPORTER",
        "mindact": "seeact_offline.importers.mindact_outputs:IMPORTER",
        "uground": "seeact_offline.importers.uground:IMPORTER",
        "seeclick": "seeact_offline.importers.step_results:SEECLICK",
        "showui": "seeact_offline.importers.step_results:SHOWUI",
        "replies": "seeact_offline.importers.raw_replies:IMPORTER",
        "table": "seeact_offline.importers.answer_table:IMPORTER",
    }
)
BEGINNING = 4_000_000
"""Bytes of a file that are looked at to tell its format."""


def notes() -> dict[str, str]:
    """The counts of imports, with their meanings."""
    meanings = dict(NOTES)
    for importer in IMPORTERS.values():
        meanings |= importer.notes
    return meanings


def read(importer: Importer, sources: Mapping[str, Source], **options: Any) -> ImportedAnswers:
    """Reads the files. Raises InputError; for a file of another format it names the one that it looks like."""
    for source in sources.values():
        check_exists(source)
    try:
        return importer.read(sources, **options)
    except WrongFormat as error:
        looks, got = looks_like(error.source.path), f"{error.source.path} {error.found}".strip()
        if not error.found or looks not in (None, importer):
            got += f", which looks like {f'{looks.what} (--format {looks.name})' if looks else 'no format known here'}"
        raise InputError(error.source.argument, error.wanted, got) from None


def check_exists(source: Source) -> None:
    """Raises InputError for a source that does not exist."""
    if not source.path.exists():
        raise InputError(source.argument, sentence=f"{source.path} does not exist")


def looks_like(path: Path) -> Importer | None:
    """Finds the format of a file or folder by its beginning, else by the ending of a table's name; None if none is
    known."""
    first = _beginning(path)
    match = next((importer for importer in IMPORTERS.values() if importer.looks(first)), None)
    return match or (IMPORTERS["table"] if path.suffix.lower() in (".csv", ".tsv") else None)


def _beginning(path: Path) -> Any:
    """The first JSON value of a file, of a list its first entry; as a tuple, the cells of a line that is no JSON; a
    folder's names."""
    if path.is_dir():
        inside = [child for child in path.iterdir() if child.is_dir()]
        return frozenset(child.name for folder in (path, *islice(sorted(inside), 1)) for child in folder.iterdir())
    try:
        with open_regular(path) as file:
            first = file.read(BEGINNING)
    except OSError as error:
        raise InputError("run", sentence=f"cannot read {path}: {error.strerror}") from None
    begun = first.decode("utf-16" if first.startswith(UTF_16) else "utf-8-sig", errors="replace").lstrip()
    line = begun.partition("\n")[0]
    if begun.startswith("["):
        # only its beginning may have been read
        with suppress(ValueError, RecursionError):
            return json.JSONDecoder().raw_decode(begun[1:].lstrip())[0]
        return None
    if begun.startswith(("{", '"')):
        with suppress(FormatError):
            value = read_json(line)
            return read_json(value) if isinstance(value, str) else value
    try:
        return tuple(next(csv.reader([line]), []))
    except csv.Error:
        return None
