"""Nothing is lost, doubled or attributed wrongly, whatever the server does and however often the run is killed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.frame import Line, scratch_folder

FAULTY_SHARE = 0.3
FAULTY_TASKS, KILLED_TASKS, FEW_TASKS = 100, 30, 12
"""Tasks of three steps each."""
KILLS = 10
BILLS, CAP_USD, RESTARTS = 6, 1.0, 5
"""Runs with a cost limit, the limit, and the kills of each run."""
PILOTS = (2, 10)


def measure(options: argparse.Namespace) -> list[Line]:
    """Injects faults and kills, limits costs, runs pilots and rivals, and searches files for the key."""
    return list(_lines(options.dir))


def _lines(scratch_in: Path | None) -> Iterator[Line]:
    from tests import campaigns

    def run(campaign: Any, *given: Any) -> Any:
        with scratch_folder(scratch_in) as scratch:
            return campaign(scratch, *given)

    seen = run(campaigns.fault_campaign, FAULTY_TASKS, FAULTY_SHARE)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(seen.faults.items()))
    # a refused connection counts once, because nobody sees how many calls met it
    print(f"faults: {seen.n_steps} steps, {seen.requests} requests, {seen.faults.total()} faults: {kinds}")
    print(f"named failures: {dict(seen.failed) or 'none'}")
    yield Line("faults: steps that end right", 100 * seen.right / seen.n_steps, "%", at_least=95)
    yield Line("faults: named failures", seen.failed.total(), "steps")
    yield Line("faults: lost", seen.lost, "steps", at_most=1)
    yield Line("faults: doubled", seen.doubled, "steps", at_most=1)
    yield Line("faults: attributed wrongly", seen.wrong, "steps", at_most=1)

    seen = run(campaigns.kill_campaign, KILLED_TASKS, KILLS)
    print(f"kills: {seen.kills} of a run of {seen.calls_in_peace} calls, at most {seen.in_flight} calls in flight")
    yield Line("kills: predictions identical", float(seen.identical), "", at_least=0.5)
    yield Line("kills: calls completed once more", seen.again, "calls", at_most=seen.in_flight + 1)

    bill = partial(run, campaigns.bill_campaign, FEW_TASKS, CAP_USD, RESTARTS)
    bills = [bill(seed, FAULTY_SHARE) for seed in range(BILLS)]
    shares = [seen.billed / seen.cap for seen in bills]
    print(f"cost limits: {BILLS} runs of {RESTARTS} kills; billed {min(shares):.0%} to {max(shares):.0%} of the limit")
    yield Line("cost limits: runs billed beyond", sum(share > 1 for share in shares), "runs", at_most=1)

    pilots = run(campaigns.pilot_campaign, FEW_TASKS, PILOTS)
    print(f"pilots of {PILOTS} tasks, then all: {pilots.calls} calls, {pilots.needed} needed")
    yield Line("pilots: calls paid again", pilots.again, "calls", at_most=1)

    rivals = run(campaigns.rival_campaign, FEW_TASKS)
    paid = rivals.payments
    print(f"two processes: {paid.calls} calls, {paid.needed} needed; the second: {rivals.refused}")
    yield Line("two processes: calls paid again", paid.again, "calls", at_most=1)
    yield Line("two processes: refusals", float(bool(rivals.refused)), "", at_least=0.5)

    found = run(campaigns.secret_campaign, FEW_TASKS)
    print(f"the key was found in: {', '.join(found) or 'nothing'}")
    yield Line("secrets: places with the key", len(found), "files", at_most=1)
