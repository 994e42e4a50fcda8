"""Objects by name that load when they are chosen: the package's own (`Doors`), and those that people add without editing it: `FILE.py:NAME`, or
an entry point of an installed package.

Loading one of the latter runs its code with the rights of the run, as importing a package does.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections import UserDict
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from seeact_offline.files.named import read_named
from seeact_offline.records import InputError

_FILE_AND_NAME = re.compile(r"(?P<file>.+\.py):(?P<name>[^\W\d]\w*)", re.DOTALL)
DIGEST_CHARS = 16
_PREFIX = "_seeact_"
PACKAGE = Path(__file__).resolve().parents[1]


class Doors(UserDict[Any, Any]):
    """Objects of this package by name, each loaded when it is first looked up. Those of rooms that were deleted are left out.

    >>> rules = Doors({"usual": "seeact_offline.merging:merge"})
    >>> rules["usual"].__name__
    'merge'
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        """`places`: name -> `MODULE:NAME`."""
        super().__init__({name: place for name, place in places.items() if has_room(place)})

    def __getitem__(self, name: Any) -> Any:
        value = self.data[name]
        if isinstance(value, str):
            value = self.data[name] = load_place(value)
        return value


def has_room(place: str) -> bool:
    """Tells whether the module of a `MODULE:NAME` of this package is there; loads nothing."""
    path = PACKAGE.parent.joinpath(*place.partition(":")[0].split("."))
    return path.is_dir() or path.with_name(f"{path.name}.py").is_file()


def load_place(place: str) -> Any:
    """Loads the object that `MODULE:NAME` names."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class Extension:
    """An object from outside the package."""

    value: Any
    name: str
    """Its name in runs: `FILE.py:NAME` without folders, or the entry point's name."""
    digest: str
    """Digest of the file that holds it: changed code is another extension. Files that it imports do not count."""


def load_named(spec: str, group: str, argument: str) -> Extension | None:
    """Loads `FILE.py:NAME`, or the entry point of this name in `group`; None where `spec` is neither.

    Raises InputError about `argument` where the file or the name in it is missing, or its code does not load.
    """
    if found := _FILE_AND_NAME.fullmatch(spec):
        path, name = Path(os.path.expanduser(found["file"])), found["name"]
        module, digest = _load_file(path, argument)
        if not hasattr(module, name):
            raise InputError(argument, f"the name of an object in {path}", name)
        return Extension(getattr(module, name), f"{path.name}:{name}", digest)
    point = next(iter(entry_points(group=group, name=spec)), None)
    if point is None:
        return None
    try:
        value = point.load()
        file = Path(str(sys.modules[point.module].__file__))
        return Extension(value, point.name, hashlib.sha256(file.read_bytes()).hexdigest()[:DIGEST_CHARS])
    # a user's code may raise anything
    except Exception as error:
        raise _does_not_load(argument, f"the entry point {point.name} ({point.value})", error) from error


def entry_point_names(group: str) -> list[str]:
    """Names that installed packages add to this group, in alphabetical order."""
    return sorted(entry_points(group=group).names)


def loaded_modules() -> list[ModuleType]:
    """Modules that were made from files. No other process can import them: one that pickles must send their code."""
    return [module for name, module in sys.modules.items() if name.startswith(_PREFIX)]


def _load_file(path: Path, argument: str) -> tuple[ModuleType, str]:
    """The module and the digest of its code; the same module while the file does not change."""
    code = read_named(argument, path)
    digest = hashlib.sha256(code).hexdigest()[:DIGEST_CHARS]
    # the place counts as well: equal files in two folders may read different files beside them
    place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    title = f"{_PREFIX}{path.stem}_{place}_{digest}"
    if title in sys.modules:
        return sys.modules[title], digest
    module = ModuleType(title)
    module.__file__ = str(path)
    # dataclasses look their module up while they are made
    sys.modules[title] = module
    try:
        exec(compile(code, str(path), "exec"), module.__dict__)
    # a user's code may raise anything
    except Exception as error:
        del sys.modules[title]
        raise _does_not_load(argument, str(path), error) from error
    return module, digest


def _does_not_load(argument: str, what: str, error: Exception) -> InputError:
    # anybody's code fails in any way
    said = next(iter(str(error).splitlines()), "")
    return InputError(argument, sentence=f"cannot load {what}: {type(error).__name__}: {said}"[:400])
