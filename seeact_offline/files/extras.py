"""Packages that are missing, and the command that installs them where the user stands.

The project is not on PyPI, so that no command may name it as a package: anybody could register that name.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = _ROOT if (_ROOT / "Makefile").is_file() and (_ROOT / "pyproject.toml").is_file() else None
"""The folder of the checkout that this program runs from; None if it was installed from a wheel."""

EXTRAS = {
    "cssselect": "rewards",
    "skimage": "rewards",
    "datasets": "data",
    "fsspec": "data",
    "huggingface_hub": "data",
    "inspect_ai": "inspect",
    "matplotlib": "figures",
    "shtab": "completion",
    "pandas": "data",
    "supervision": "marks",
    "torch": "hf",
    "transformers": "hf",
}
"""Optional packages, and the extra that installs each."""


def missing_package(error: ModuleNotFoundError) -> str:
    """Returns the sentence that says how to install the package. Raises the error for a module of this project."""
    package = (error.name or "").partition(".")[0]
    if package in ("seeact_offline", "ranker", ""):
        raise error
    if package in EXTRAS:
        return f"this needs the package {package}: run {install_command(EXTRAS[package])}"
    steps = "`make eval` once, then .venv/bin/python" if CHECKOUT else install_command()
    return f"the package {error.name} is not installed for {sys.executable}: run {steps}"


def install_command(extra: str = "") -> str:
    """Returns the command that installs the packages of an extra; without one, those that every run needs.

    A checkout is installed again with the extra; beside a wheel the packages are named.
    """
    packages = _packages(extra)
    if CHECKOUT is not None:
        packages = ["-e", f"{_shown(CHECKOUT)}[{extra}]" if extra else _shown(CHECKOUT)]
    # the interpreter's own pip: another on the path may install elsewhere
    return shlex.join([_shown(Path(sys.executable)), "-m", "pip", "install", *packages])


def torchvision_command() -> str:
    """Returns the command that installs the torchvision of the torch that is installed, and leaves torch as it is."""
    from importlib.metadata import version

    # a build for other processors has an index of its own; PyPI's torch names none
    release, _, build = version("torch").partition("+")
    has_index = re.fullmatch(r"cpu|xpu|cu\d+|rocm[\d.]+", build)
    index = ["--index-url", f"https://download.pytorch.org/whl/{build}"] if has_index else []
    pip = shlex.join([_shown(Path(sys.executable)), "-m", "pip"])
    # pip would keep one of the same version and another build
    return (
        f"{pip} uninstall -y torchvision && {pip} {shlex.join(['install', f'torch=={release}', 'torchvision', *index])}"
    )


def hide_broken_torchvision() -> None:
    """Makes transformers do without a torchvision that cannot be imported. Has no effect once transformers is imported.

    transformers looks only whether it is installed, and then imports it for models that need none, too.
    """
    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    # of another build than torch, it fails in the middle of its own code, and nobody has listed how
    except Exception:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        # so Python marks a module that is not to be had
        sys.modules["torchvision"] = None  # type: ignore[assignment]


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
