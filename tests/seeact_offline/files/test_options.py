"""Options that are declared once: what the command, Python and the documents say of them."""

from __future__ import annotations

import argparse
from dataclasses import fields

import pytest

import seeact_offline as so
from seeact_offline.cli import eval as eval_verb
from seeact_offline.cli.parser import Parser
from seeact_offline.files.options import words_of
from seeact_offline.records import InputError
from seeact_offline.runs.config import REFUSABLE, EvalConfig

NO_OPTION = {"grounding_options", "typed", "command"}
"""Fields that a run fills in."""


@pytest.fixture
def actions() -> dict[str, argparse.Action]:
    parser = Parser()
    eval_verb.add_arguments(parser)
    return {action.dest: action for action in parser._actions}


def test_every_field_is_an_option_of_eval_whose_default_it_alone_holds(actions: dict[str, argparse.Action]) -> None:
    names = {field.name for field in fields(EvalConfig)} - NO_OPTION
    assert names == words_of(EvalConfig).keys()
    assert {name for name in names if actions[name].default != argparse.SUPPRESS} == set()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("top_k", 0, "a whole number of at least 1"),
        ("top_k", 1.5, "a whole number of at least 1"),
        ("timeout", 0, "a number above 0"),
        ("fail_on_error", 2.0, "a share from 0 to 1"),
        ("score_workers", 0, "a whole number of at least 1"),
        ("max_image_side", 200_000, "a whole number from 16 to 100000"),
        ("merge", "frist", "one of "),
        ("backend", "torch", "one of "),
    ],
)
def test_python_refuses_what_the_command_refuses(
    actions: dict[str, argparse.Action], name: str, value: object, words: str
) -> None:
    with pytest.raises(InputError, match=f"{name}: expected {words}"):
        EvalConfig(**{name: value})
    action = actions[name]
    if action.choices:
        assert value not in action.choices
    else:
        assert callable(action.type)
        with pytest.raises(argparse.ArgumentTypeError, match=f"expected {words}"):
            action.type(str(value))


def test_only_what_was_given_reaches_the_configuration() -> None:
    parser = Parser()
    eval_verb.add_arguments(parser)
    parser.set_defaults(verb_parser=parser)
    args = parser.parse_args(["--seed", "0", "--metadata", "a=b", "-M", "top_p=0.5", "--max-input-tokens", "1+2"])
    config = eval_verb.config_of(args)
    assert config.typed == {"seed"}
    assert config.metadata == {"a": "b"}
    assert config.model_args == {"top_p": 0.5, "max_input_tokens": "1+2"}
    assert config == EvalConfig().changed(seed=0, metadata=config.metadata, model_args=config.model_args)


def test_servers_may_refuse_these() -> None:
    assert frozenset({"temperature", "max_tokens", "image_detail", "seed"}) == REFUSABLE


def test_the_docstring_of_evaluate_says_what_each_option_is() -> None:
    for name in words_of(EvalConfig):
        assert f"\n    {name}: " in (so.evaluate.__doc__ or "")
