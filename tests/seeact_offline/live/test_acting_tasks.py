"""What cannot be acted on is refused in one sentence, before a browser starts and before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.live.running import browse
from seeact_offline.records import Completion, InputError, Model, Request
from seeact_offline.runs.config import EvalConfig
from tests.seeact_offline.live.sites import write_site


class Unasked(Model):
    async def complete(self, request: Request) -> Completion:
        raise AssertionError("nobody is to be asked")


def act(script: Path, out: Path, unaided: bool = False, **options: Any) -> None:
    browse(
        str(script),
        config=EvalConfig.of(**{"agent": "qwen2.5-vl", "model": Unasked(), "out": out, **options}),
        unaided=unaided,
    )


@pytest.mark.parametrize(
    ("task", "options", "sentence"),
    [
        (
            {"start": "http://example.com/", "serve": None},
            {},
            "starts on http://example.com; name it by `allow_origin` to act there",
        ),
        (
            {},
            {"agent": "seeact", "grounding": "oracle"},
            "oracle answers about recorded steps, and has no language for acting",
        ),
        ({}, {"unaided": True}, "`unaided` needs model builtin/oracle"),
        ({}, {"tasks": ["no-such-id"]}, "1 that no task has, no-such-id first"),
    ],
)
def test_what_cannot_be_acted_on_is_refused_before_a_browser_starts(
    task: dict[str, Any], options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    script = write_site(tmp_path / "site")
    content = json.loads(script.read_text())
    content |= task
    script.write_text(json.dumps(content))
    with pytest.raises(InputError, match=sentence):
        act(script, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_a_source_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="places: expected sites, miniwob, or a file of tasks"):
        act(tmp_path / "no.json", tmp_path / "run")
