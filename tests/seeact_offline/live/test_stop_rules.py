"""Rules that end an episode, and the figures of episodes, without a browser."""

from __future__ import annotations

import pytest

from seeact_offline.live.episode_results import RULES, SEEACT, EpisodeLine, StopRules, summarise

A, B = "click [1]", "click [2]"


@pytest.mark.parametrize(
    ("rules", "said", "done", "end"),
    [
        (StopRules(), [A], [True], None),
        (StopRules(steps=2), [A, B], [True, True], "limit"),
        (StopRules(), [None, None, None], [False] * 3, "unreadable"),
        (StopRules(), [None, A, None, None], [False, True, False, False], None),
        (RULES["webvoyager"], [None] * 14, [False] * 14, None),
        (RULES["webvoyager"], [None] * 15, [False] * 15, "limit"),
        (RULES["visualwebarena"], [A] * 5, [True] * 5, "repeated"),
        (RULES["visualwebarena"], [A, B, A, A, A, A], [True] * 6, None),
        (RULES["visualwebarena"], ["type [3] [x] [1]", A] * 4 + ["type [3] [x] [1]"], [True] * 9, "repeated"),
        (SEEACT, [A, None, B], [True, False, False], "no_op"),
        (SEEACT, [A, None, B], [False, True, False], None),
        # its thirtieth step is asked about, and not carried out
        (SEEACT, [A, B] * 14 + [A], [True] * 29, "limit"),
    ],
)
def test_each_agents_rules_end_its_episode(
    rules: StopRules, said: list[str | None], done: list[bool], end: str | None
) -> None:
    assert rules.end(said, done) == end


def episode(name: str, end: str = "stopped", done: bool | None = True, **more: object) -> EpisodeLine:
    return EpisodeLine(name, "Buy it", "tiny", "Shopping", end, done, done, 2, **more)  # type: ignore[arg-type]


def test_an_error_is_counted_by_its_name_and_is_no_zero() -> None:
    lines = [episode("a"), episode("b", done=False, end="limit"), episode("c", end="error", done=None)]
    results = summarise(lines, {}, is_helped=False)
    assert (results.n_tasks, results.n_verdicts, results.success.macro) == (3, 2, 0.5)
    assert results.ends == {"stopped": 1, "limit": 1, "error": 1}
    assert results.unaided is None


def test_a_success_with_help_is_none_unaided() -> None:
    results = summarise([episode("a", n_helped=1), episode("b")], {}, is_helped=True)
    assert results.unaided is not None
    assert (results.success.macro, results.unaided.macro) == (1.0, 0.5)


def test_without_a_verdict_there_is_no_figure() -> None:
    figure = summarise([episode("a", end="error", done=None)], {}, is_helped=False).success
    assert (figure.macro, figure.ci95) == (None, None)
