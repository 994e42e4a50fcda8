"""The finished run behind `--replay-turn1`: its texts are grounded, and no model is asked."""

from __future__ import annotations

from pathlib import Path

import msgspec

from seeact_offline.files.formats import FormatError, typed
from seeact_offline.models import model_name
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.folder import read_manifest
from seeact_offline.runs.run import load_run

OF_REQUESTS = ("model", "prompts", "no_image", "max_image_side")
"""Fields that say who is asked and what; a model's own options have no effect and are remarked on as with any model."""


class ReplySource(msgspec.Struct, frozen=True):
    """The origin of the texts, as a run's manifest has it."""

    model: str
    prompts: str
    turns: int = 2


def reply_source_of(run: Path, config: EvalConfig) -> ReplySource:
    """Raises InputError: no finished run, one whose turn 1 has no reply of its own, or a request that would not be made."""
    usual = EvalConfig()
    for name in OF_REQUESTS:
        given = getattr(config, name)
        if given != getattr(usual, name):
            got = model_name(given) if name == "model" else str(given)
            raise InputError(name, "none with the turn-1 texts of a finished run, for which no model is asked", got)
    try:
        reply_source = typed(read_manifest(load_run(run).path).settings, ReplySource)
    except InputError as error:
        raise InputError("replay_turn1", error.expected, error.got) from None
    except FormatError as error:
        raise InputError("replay_turn1", error.expected, f"{error.got} in the manifest of {run}") from None
    if reply_source.turns != 2:
        raise InputError("replay_turn1", "a run that asked two turns", f"{run}, which asked both in one message")
    return reply_source
