"""Small campaigns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.campaigns import (
    FAULTS,
    Asking,
    bill_campaign,
    ended,
    fates,
    fault_campaign,
    kill_campaign,
    make_steps,
    secret_campaign,
    slow_server,
)

pytestmark = pytest.mark.slow


def test_steps_end_right_or_as_named_failures_when_three_requests_of_ten_fail(tmp_path: Path) -> None:
    seen = fault_campaign(tmp_path, n_tasks=10, first_pause_s=0.05)
    assert (seen.n_steps, seen.lost, seen.doubled, seen.wrong) == (30, 0, 0, 0), seen
    assert seen.right + seen.failed.total() == 30
    assert seen.right >= 28, seen.failed
    assert seen.faults.keys() > FAULTS.keys()


@pytest.mark.nightly
def test_a_run_killed_at_random_moments_ends_up_the_same(tmp_path: Path) -> None:
    seen = kill_campaign(tmp_path, n_tasks=3, kills=4)
    assert seen.kills > 0
    assert seen.identical
    assert seen.again <= seen.in_flight


@pytest.mark.nightly
def test_a_run_with_a_cost_limit_is_never_billed_more(tmp_path: Path) -> None:
    """Nor with three faults in ten requests, and kills: paid replies that were lost, and those of unfinished steps, count."""
    seen = bill_campaign(tmp_path, n_tasks=4, cap=0.3, kills=2, first_pause_s=0.05)
    assert seen.kills > 0
    assert 0.15 < seen.billed <= seen.cap


def test_a_key_that_the_server_repeats_is_nowhere(tmp_path: Path) -> None:
    assert secret_campaign(tmp_path, n_tasks=3) == []


def test_a_campaign_would_find_what_went_wrong() -> None:
    """Steps that are lost, doubled, or hold the reply of another."""

    def line(name: str, reply: str, failure: str | None = None) -> dict:
        groups = [{"group": 0, "replies": [reply], "failure": None}]
        return {"annotation_id": name, "action_uid": "1", "groups": groups, "failure": failure, "usage": {}}

    expected = [line(name, f"reply {name}") for name in "abcde"]
    got = [
        line("a", "reply a"),
        line("a", "reply a"),
        line("b", "reply c"),
        line("d", "reply e", "timeout"),
        line("e", "reply e", "timeout"),
    ]
    seen = fates(expected, got, Counter(), 0)
    assert (seen.right, seen.lost, seen.doubled, seen.wrong) == (1, 1, 1, 2)
    assert seen.failed == Counter(timeout=1)


def test_two_processes_may_fill_one_store_at_once(tmp_path: Path) -> None:
    """Each ends as if it were alone, and a third that comes later pays nothing."""
    data = make_steps(tmp_path / "data", 3)
    asking = Asking(data, tmp_path / "cache", concurrency=4)
    with slow_server(0.02) as server:
        with asking.start(server, tmp_path / "one") as one, asking.start(server, tmp_path / "two") as two:
            assert (ended(one).status, ended(two).status) == (0, 0)
        paid = server.n_completed
        assert asking.run(server, tmp_path / "three").status == 0
        assert server.n_completed == paid
    runs = [(tmp_path / name / "predictions.jsonl").read_bytes() for name in ("one", "two", "three")]
    assert len(set(runs)) == 1
