"""The sentences of errors."""

from __future__ import annotations

import argparse
import pickle

import pytest

from seeact_offline.cli.command import format_error
from seeact_offline.records import InputError, ModelSpecError


@pytest.fixture
def verb() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    for option in ("--top-k", "--step", "--retry-failed"):
        parser.add_argument(option)
    return parser


@pytest.mark.parametrize(
    ("error", "library", "command"),
    [
        (InputError("top_k", "1", "0"), "top_k: expected 1, got 0", "--top-k: expected 1, got 0"),
        (
            InputError("step", sentence="use `step` or `retry_failed`, not both"),
            "use `step` or `retry_failed`, not both",
            "use --step or --retry-failed, not both",
        ),
        (InputError("steps", sentence="`steps` needs `source`"), "`steps` needs `source`", "--step needs source"),
        (InputError("step", sentence="cannot read step: /a/`b c`"), *["cannot read step: /a/`b c`"] * 2),
    ],
)
def test_arguments_are_named_as_options_by_the_command_alone(
    error: InputError, library: str, command: str, verb: argparse.ArgumentParser
) -> None:
    assert (str(error), format_error(error, verb)) == (library, command)


def test_a_whole_sentence_is_kept_by_pickling_and_renaming() -> None:
    error = ModelSpecError("model", sentence="`model` cannot be asked; name another")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error.renamed("judge")) == "`judge` cannot be asked; name another"
