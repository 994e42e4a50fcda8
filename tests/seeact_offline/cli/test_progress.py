"""What a run that is not on a terminal says of how far it is."""

from __future__ import annotations

import pytest

from seeact_offline.cli import progress
from seeact_offline.cli.progress import StepProgress


def lines(capsys: pytest.CaptureFixture[str], steps: int, resumed: int = 0) -> list[str]:
    """Each line up to the rate."""
    with StepProgress(3, "cross_task") as bar:
        for place in range(steps):
            bar.advance("", resumed=place < resumed)
    return [line.partition("  ")[0] for line in capsys.readouterr().err.splitlines()]


def test_it_ends_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, 3) == ["cross_task: 3/3 steps"]


def test_the_last_line_is_not_said_twice(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", -1.0)
    assert lines(capsys, 3) == [f"cross_task: {n}/3 steps" for n in (1, 2, 3)]


def test_what_was_done_before_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines(capsys, 3, resumed=3) == []
