"""The state in which an agent left a task: address, pages and pictures, stored in a folder a task.

`DIR/TASK_ID/state.json`: `{"address": URL, "html": FILE, "pages": {URL: FILE}, "pictures": {SRC: FILE}}`, each
optional; files lie in the same folder. `html` is the last page, `pages` are others that the task opens, `pictures`
those that pages or the task name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin

import msgspec

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.files.formats import FormatError, decoded
from seeact_offline.files.named import read_regular
from seeact_offline.records import InputError, RowError
from seeact_offline.trajectories.answer_rules import Unscored
from seeact_offline.trajectories.locators import MAX_CHARACTERS, StoredPage

STATE = "state.json"
MAX_PICTURE_BYTES = 100_000_000


class _StateFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`state.json`."""

    address: str | None = None
    html: str | None = None
    pages: Mapping[str, str] = {}
    pictures: Mapping[str, str] = {}


@dataclass(frozen=True)
class TaskState:
    """The state after the last action. Files are read when they are used, and from the state's folders only."""

    address: str | None = None
    html: str | None = field(default=None, repr=False)
    """The last page; None where it was not stored."""
    folder: Path | None = None
    pages: Mapping[str, str] = field(default_factory=dict)
    """URL -> file of the folder."""
    pictures: Mapping[str, str] = field(default_factory=dict)
    """Address of a picture, as a page or the task writes it or in full -> file of the folder."""
    references: Path | None = None
    """Folder of the task file, in which its own pictures are looked for; None for none."""
    fault: str | None = None
    """The reason for which its file cannot be used; None for a good one."""
    _opened: dict[str, StoredPage] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Pages that were asked for: all rule sets look at the same."""

    def page(self, url: str) -> StoredPage:
        """The page at a URL, or the last one for `last`.
        Raises Unscored `no_state`, `missing_page` or `unsupported_address`."""
        if url not in self._opened:
            if url == "last":
                if self.html is None:
                    raise Unscored("no_state", "the last page was not stored")
                page = StoredPage(self.address or "", self.html)
            elif url.startswith("func"):
                raise Unscored("unsupported_address", f"{url!r:.80}")
            elif url not in self.pages or self.folder is None:
                raise Unscored("missing_page", f"{url!r:.80}")
            else:
                page = StoredPage(url, _text(self.folder, self.pages[url]))
            self._opened[url] = page
        return self._opened[url]

    def picture(self, source: str, page: StoredPage | None = None) -> bytes:
        """The file of a picture that a page or the task names. Raises Unscored `missing_picture`."""
        if source.startswith("data:"):
            try:
                return StoredScreenshot(source).read()
            except RowError as error:
                raise Unscored("missing_picture", error.detail) from None
        try:
            full = urljoin(page.address, source) if page is not None else source
        except ValueError:
            full = source
        for name in (source, full):
            if name in self.pictures and self.folder is not None:
                return _bytes(self.folder, self.pictures[name], MAX_PICTURE_BYTES, "missing_picture")
        if page is None and self.references is not None and "://" not in source:
            return _bytes(self.references, source, MAX_PICTURE_BYTES, "missing_picture")
        raise Unscored("missing_picture", f"{source!r:.80}")


def read_state(folder: Path, references: Path | None = None) -> TaskState | None:
    """Reads the state in a task's folder; None where there is none.
    Raises InputError for a file that does not say it."""
    path = folder / STATE
    if not path.is_file():
        return None
    try:
        file = decoded(_bytes(folder, STATE, MAX_CHARACTERS, "no_state"), _StateFile)
        html = None if file.html is None else _text(folder, file.html)
    except FormatError as error:
        raise InputError("states", error.expected, f"{error.got} in {path}") from None
    except Unscored as error:
        raise InputError("states", "files of the same folder", f"{error.detail} in {path}") from None
    return TaskState(file.address, html, folder, file.pages, file.pictures, references)


def _text(folder: Path, name: str) -> str:
    return _bytes(folder, name, 4 * MAX_CHARACTERS, "missing_page").decode("utf-8", "replace")


def _bytes(folder: Path, name: str, largest: int, missing: str) -> bytes:
    """Reads a file below a folder. Raises Unscored of this name, also for a path or link that leads out of it."""
    try:
        path = (folder / name).resolve(strict=True)
        if not path.is_relative_to(folder.resolve()):
            raise Unscored(missing, f"{name!r:.80} leads out of {folder}")
        return read_regular(path, largest)
    except (OSError, ValueError, RuntimeError) as error:
        raise Unscored(missing, f"{name!r:.80}: {getattr(error, 'strerror', None) or error}") from None
