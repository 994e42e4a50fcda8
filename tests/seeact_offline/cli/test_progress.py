"""What a run that is not on a terminal says of how far it is."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from seeact_offline.cli import progress
from seeact_offline.cli.progress import StepProgress, Tally, duration, fitting_bar
from seeact_offline.records import Prediction, Reply, StepKey, StepScore


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


def drawn(width: int) -> str:
    """The live line of a run in the middle, on a terminal of this width."""
    screen = io.StringIO()
    with fitting_bar(Console(file=screen, width=width, force_terminal=True, color_system=None)) as bar:
        figures = "failed 1  unreadable 2  micro step 30.2  ele 45.5  op 60.3"
        bar.add_task("cross_task", total=77, completed=12, rate="1.2/s", left="1 min 05 s left", figures=figures)
        bar.refresh()
    (line,) = {line.rstrip() for line in screen.getvalue().split("\n") if "12/77" in line}
    return line.rpartition("\r")[2].replace("\x1b[2K", "").replace("\x1b[?25l", "")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_count_rate_and_time_left_are_there_whatever_the_width(width: int) -> None:
    line = drawn(width)
    assert len(line) <= width
    assert all(part in line for part in ("12/77", "1.2/s", "1 min 05 s left"))


@pytest.mark.parametrize(("width", "parts"), [(40, 0), (80, 3), (100, 4), (120, 5)])
def test_the_bar_goes_before_the_figures_and_the_last_figure_first(width: int, parts: int) -> None:
    kept = ["failed 1", "unreadable 2", "step 30.2", "op 60.3", "\u2501"]
    assert [part in drawn(width) for part in kept] == [place < parts for place in range(5)]


def test_durations_read_as_people_say_them() -> None:
    assert [duration(s) for s in (0.4, 59.4, 65, 3599, 7290)] == [
        "0 s",
        "59 s",
        "1 min 05 s",
        "59 min 59 s",
        "2 h 01 min",
    ]


def counted(*replies: str | None, element: float | None = 1.0) -> str:
    """The figures after a step with replies of these failures, and one whose call failed."""
    tally, key = Tally(), StepKey("a", "b")
    groups = tuple(Reply(place, (), (), None, "", "", failure) for place, failure in enumerate(replies))
    score = StepScore(key, element, 1.0, element, "success")
    tally.add(Prediction(*key, "1", "CLICK", "", groups=groups), score)
    lost = StepScore(key, None if element is None else 0.0, 0.0, None if element is None else 0.0, "call_failed")
    tally.add(Prediction(*key, None, "", "", failure="timeout", ran=False), lost)
    return tally.text


def test_the_figures_of_a_running_run_name_their_average_and_count_unreadable_replies() -> None:
    assert counted() == "failed 1  micro step 50.0  ele 50.0  op 50.0"
    assert counted(element=None) == "failed 1  micro op 50.0"
    failures = ("no_final_answer", None, "refused", "scrolled", "missing_value")
    assert counted(*failures) == "failed 1  unreadable 2  micro step 50.0  ele 50.0  op 50.0"
