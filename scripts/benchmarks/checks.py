"""The checks of the bundled tasks refuse plays with something wrong in them."""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

from benchmarks.frame import Line
from seeact_offline.recorder.proving import PLAY, RIGHT, Outcome, Prover, harm_of
from seeact_offline.recorder.sample_building import OPTIONS, site_names, site_tasks


class SiteProof(NamedTuple):
    """The plays of a site."""

    site: str
    n_wrong: int
    """Wrong plays."""
    passing: list[Outcome]
    """Wrong plays that pass on another page."""
    redundant: list[Outcome]
    """Wrong plays that pass on the page of the recorded play."""
    refused: list[Outcome]
    """Right plays that do not pass."""
    n_detoured: int
    """Tasks with a detour that passes."""


def measure(options: argparse.Namespace) -> list[Line]:
    """Plays every task of every site as it was recorded, and with each thing wrong in turn."""
    names = options.site or site_names()
    proofs: list[SiteProof] = []
    print("| site | wrong plays | pass | redundant | tasks that pass on a detour |\n|---|---|---|---|---|")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for proof in pool.map(_prove, names):
            proofs.append(proof)
            counts = (proof.n_wrong, len(proof.passing), len(proof.redundant), proof.n_detoured)
            print(f"| {proof.site} | {' | '.join(map(str, counts))} |", flush=True)
    for proof in proofs:
        titled = {
            "PASSES": proof.passing,
            "redundant, the page is the same": proof.redundant,
            "a right play that does not pass": proof.refused,
        }
        for title, outcomes in titled.items():
            for outcome in outcomes:
                play = f"{outcome.play.kind}: {outcome.play.detail:.80}"
                print(f"{proof.site}: {outcome.task.task:.60}: {play}: {title}")
    plays, passing = sum(proof.n_wrong for proof in proofs), sum(len(proof.passing) for proof in proofs)
    refused = sum(outcome.play.kind == PLAY for proof in proofs for outcome in proof.refused)
    return [
        Line("recorded plays that do not pass", refused, "", at_most=1),
        Line(f"wrong plays that pass, of {plays}", 100 * passing / plays, "%", at_most=2),
        Line("redundant acts", sum(len(proof.redundant) for proof in proofs), ""),
        Line("least tasks of a site on a detour", min(proof.n_detoured for proof in proofs), "", at_least=2),
    ]


def _prove(name: str) -> SiteProof:
    tasks = site_tasks(name)
    with Prover(OPTIONS) as prover:
        outcomes = [outcome for task in tasks for outcome in prover.prove(task, harm_of(task, tasks))]
    wrong = [outcome for outcome in outcomes if outcome.play.kind not in RIGHT]
    right = [outcome for outcome in outcomes if outcome.play.kind in RIGHT]
    return SiteProof(
        name,
        len(wrong),
        [outcome for outcome in wrong if outcome.is_weakness],
        [outcome for outcome in wrong if outcome.passes and outcome.is_same],
        [outcome for outcome in right if not outcome.passes],
        len({outcome.task.task for outcome in right if outcome.passes and outcome.play.kind != PLAY}),
    )
