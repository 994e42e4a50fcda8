"""The command that installs optional packages where the user stands.

The project is not on PyPI, so that no command may name it as a package: anybody could register that name.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = _ROOT if (_ROOT / "Makefile").is_file() and (_ROOT / "pyproject.toml").is_file() else None
"""The folder of the checkout that this program runs from; None if it was installed from a wheel."""


def install_command(extra: str = "") -> str:
    """Returns the command that installs the packages of an extra; without one, those that every run needs.

    A checkout is installed again with the extra; beside a wheel the packages are named.
    """
    packages = _packages(extra)
    if CHECKOUT is not None:
        packages = ["-e", f"{_shown(CHECKOUT)}[{extra}]" if extra else _shown(CHECKOUT)]
    # the interpreter's own pip: another on the path may install elsewhere
    return shlex.join([_shown(Path(sys.executable)), "-m", "pip", "install", *packages])


def _packages(extra: str) -> list[str]:
    # loads all of email, and every command imports this module
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = [line.partition(";") for line in requires("seeact-offline") or []]
    except PackageNotFoundError:
        return []
    return [name.strip() for name, _, marker in lines if (f"'{extra}'" in marker if extra else "extra" not in marker)]


def _shown(path: Path) -> str:
    """The path from here if it lies below, else in full."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
