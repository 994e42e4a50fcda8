"""Nothing is lost, doubled or attributed wrongly, whatever the server does and however often the run is killed."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measuring import Line, scratch_folder

FAULTY_SHARE = 0.3
FAULTY_TASKS, KILLED_TASKS, FEW_TASKS = 100, 30, 12
"""Of three steps each."""
KILLS = 20
BILLS, CAP_USD, RESTARTS = 20, 1.0, 5
"""Runs with a cost limit, the limit, and how often each is killed."""
PILOTS = (2, 10)


def bench_campaign(scratch_in: Path | None) -> list[Line]:
    """Faults in three requests of ten; kills at random moments; cost limits; pilots; two processes on one folder; a search for the key."""
    return [
        *_faults(scratch_in),
        *_kills(scratch_in),
        *_bills(scratch_in),
        *_paid_once(scratch_in),
        *_secrets(scratch_in),
    ]


def _faults(scratch_in: Path | None) -> list[Line]:
    from tests.campaigns import fault_campaign

    with scratch_folder(scratch_in) as scratch:
        seen = fault_campaign(scratch, FAULTY_TASKS, FAULTY_SHARE)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(seen.faults.items()))
    # moments in which no connection was taken are counted as one each, for nobody sees how many calls they met
    print(f"faults: {seen.n_steps} steps, {seen.requests} requests, {seen.faults.total()} faults: {kinds}")
    print(f"named failures: {dict(seen.failed) or 'none'}")
    return [
        Line("faults: steps that end right", 100 * seen.right / seen.n_steps, "%", at_least=95),
        Line("faults: named failures", seen.failed.total(), "steps"),
        Line("faults: lost", seen.lost, "steps", at_most=1),
        Line("faults: doubled", seen.doubled, "steps", at_most=1),
        Line("faults: attributed wrongly", seen.wrong, "steps", at_most=1),
    ]


def _kills(scratch_in: Path | None) -> list[Line]:
    from tests.campaigns import kill_campaign

    with scratch_folder(scratch_in) as scratch:
        seen = kill_campaign(scratch, KILLED_TASKS, KILLS)
    print(
        f"kills: {seen.kills} of a run of {seen.calls_in_peace} calls, at most {seen.in_flight} in flight at the kills"
    )
    return [
        Line("kills: predictions identical", float(seen.identical), "", at_least=0.5),
        Line("kills: calls completed once more", seen.again, "calls", at_most=seen.in_flight + 1),
    ]


def _bills(scratch_in: Path | None) -> list[Line]:
    from tests.campaigns import bill_campaign

    shares = []
    for seed in range(BILLS):
        with scratch_folder(scratch_in) as scratch:
            seen = bill_campaign(scratch, FEW_TASKS, CAP_USD, RESTARTS, seed, FAULTY_SHARE)
        shares.append(seen.billed / seen.cap)
    print(
        f"cost limits: {BILLS} runs of {RESTARTS} kills each; billed {min(shares):.0%} to {max(shares):.0%} of the limit"
    )
    return [Line("cost limits: runs billed beyond", sum(share > 1 for share in shares), "runs", at_most=1)]


def _paid_once(scratch_in: Path | None) -> list[Line]:
    from tests.campaigns import pilot_campaign, rival_campaign

    with scratch_folder(scratch_in) as scratch:
        pilots = pilot_campaign(scratch, FEW_TASKS, PILOTS)
    with scratch_folder(scratch_in) as scratch:
        rivals = rival_campaign(scratch, FEW_TASKS)
    print(f"pilots of {PILOTS} tasks, then all: {pilots.calls} calls, {pilots.needed} needed")
    print(
        f"two processes: {rivals.payments.calls} calls, {rivals.payments.needed} needed; the second: {rivals.refused}"
    )
    return [
        Line("pilots: calls paid again", pilots.again, "calls", at_most=1),
        Line("two processes: calls paid again", rivals.payments.again, "calls", at_most=1),
        Line("two processes: refusals", float(bool(rivals.refused)), "", at_least=0.5),
    ]


def _secrets(scratch_in: Path | None) -> list[Line]:
    from tests.campaigns import secret_campaign

    with scratch_folder(scratch_in) as scratch:
        found = secret_campaign(scratch, FEW_TASKS)
    print(f"the key was found in: {', '.join(found) or 'nothing'}")
    return [Line("secrets: places with the key", len(found), "files", at_most=1)]
