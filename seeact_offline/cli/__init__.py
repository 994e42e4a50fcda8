"""The command `seeact-offline`; a file a verb."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb and returns the exit status, as `command.main` says."""
    try:
        from seeact_offline.cli import command
    except ModuleNotFoundError as error:
        from seeact_offline.files.extras import missing_package

        # without its packages not even the module that prints can be loaded
        print(f"error: {missing_package(error)}", file=sys.stderr)
        return 2
    return command.main(argv)
