"""Judges against labels."""

from __future__ import annotations

import json
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seeact_offline.cli import main
from seeact_offline.records import InputError
from seeact_offline.scoring.inference import draws
from seeact_offline.trajectories.judge_agreement import agreements, kendall_tau
from seeact_offline.trajectories.judgements import Judgement
from tests.reference.agreement import fleiss, kappa, tau_b


def judged(trajectory: int, verdict: bool | None, repeat: int = 1, **fields) -> Judgement:
    return Judgement(trajectory=f"{trajectory}", verdict=verdict, repeat=repeat, **{"judge": "strict", **fields})


def labelled(labels) -> list[Judgement]:
    return [
        Judgement(trajectory=f"{number}", verdict=label, judge="ann", task=f"t{number // 2}")
        for number, label in enumerate(labels)
    ]


PUBLISHED = {
    "1": (143, 226, 0.753, 0.51),
    "2": (166, 239, 0.797, 0.59),
    "3": (163, 244, 0.813, 0.62),
    "all": (175, 256, 0.853, 0.70),
}
"""WebVoyager's table 2: successes by the judge and agreements among 300, then agreement and kappa."""


@pytest.mark.parametrize("k", PUBLISHED)
@pytest.mark.parametrize("n_people", [169, 171])
def test_the_published_agreement_follows_from_its_counts(k: str, n_people: int) -> None:
    """The people's number of successes is not published; about 170, and odd by the counts' parity."""
    by_judge, same, share, wanted = PUBLISHED[k]
    missed = (n_people - by_judge + 300 - same) // 2
    added = 300 - same - missed
    labels = [Judgement(trajectory=str(i), verdict=i < n_people) for i in range(300)]
    verdicts = [judged(i, missed <= i < n_people + added, k=k) for i in range(300)]
    (found,) = agreements(verdicts, labels).judges
    assert (found.success_rate.value, found.agreement.value) == (by_judge / 300, same / 300)
    assert (round(found.agreement.value, 3), round(found.kappa.value, 2)) == (share, wanted)


repeats = st.lists(st.lists(st.sampled_from([True, False, None]), min_size=3, max_size=3), min_size=1, max_size=8)


@example(said=[[None, None, None]], labels=[True] * 8, policy="left-out")
@given(
    said=repeats,
    labels=st.lists(st.booleans(), min_size=8, max_size=8),
    policy=st.sampled_from(["left-out", "failure"]),
)
def test_figures_are_those_of_their_definitions(said, labels: list[bool], policy) -> None:
    verdicts = [judged(i, one, r) for i, ones in enumerate(said) for r, one in enumerate(ones)]
    (found,) = agreements(verdicts, labelled(labels), no_verdict=policy).judges
    known = [[one if policy == "left-out" else bool(one) for one in ones] for ones in said]
    pairs = [(one, labels[i]) for i, ones in enumerate(known) for one in ones if one is not None]

    def share(of, where=lambda said, label: True) -> float | None:
        counted = [of(*pair) for pair in pairs if where(*pair)]
        return sum(counted) / len(counted) if counted else None

    flips = [a != b for ones in known for a, b in combinations([one for one in ones if one is not None], 2)]
    whole = [ones for ones in known if None not in ones]
    wanted = {
        "success_rate": share(lambda said, label: said),
        "label_rate": share(lambda said, label: label),
        "agreement": share(lambda said, label: said == label),
        "precision": share(lambda said, label: label, lambda said, label: said),
        "recall": share(lambda said, label: said, lambda said, label: label),
        "negative_predictive_value": share(lambda said, label: not label, lambda said, label: not said),
        "kappa": kappa(*zip(*pairs, strict=True)) if pairs else None,
        "flips": sum(flips) / len(flips) if flips else None,
        "repeats_kappa": fleiss(whole) if whole else None,
    }
    for name, value in wanted.items():
        figure = getattr(found, name)
        assert (figure and figure.value) == (None if value is None else pytest.approx(value, abs=1e-9)), name
        if figure and figure.ci95:
            assert figure.ci95[0] - 1e-6 <= figure.value <= figure.ci95[1] + 1e-6 or name in ("kappa", "repeats_kappa")
    assert sum(found.cells) == found.n_verdicts == len(pairs)
    assert sum(found.no_verdict.values()) == sum(one is None for ones in said for one in ones)


def test_the_interval_of_kappa_draws_tasks_with_their_trajectories() -> None:
    said, labels = [True, False, True, True, False, True], [True, True, False, True, False, True]
    (found,) = agreements([judged(i, one) for i, one in enumerate(said)], labelled(labels)).judges
    kappas = []
    for draw in draws(3, 0).tolist():
        rows = [i for task, times in enumerate(draw) for _ in range(times) for i in (2 * task, 2 * task + 1)]
        kappas.append(kappa([said[i] for i in rows], [labels[i] for i in rows]))
    known = [one for one in kappas if one is not None]
    assert found.kappa.ci95 == pytest.approx(np.quantile(known, [0.025, 0.975]), abs=1e-8)


def test_several_people_count_by_majority_and_have_their_own_kappa() -> None:
    said = {"a": (True, True, False), "b": (False, False, False), "c": (True, True, True), "d": (True, False)}
    labels = [
        Judgement(trajectory=one, verdict=label, judge=f"p{n}")
        for one, given in said.items()
        for n, label in enumerate(given)
    ]
    found = agreements([Judgement(trajectory=one, verdict=True) for one in said], labels)
    assert (found.n_labels, found.n_split, found.n_people, found.people_kappa.n) == (3, 1, 3, 3)
    assert found.people_kappa.value == pytest.approx(fleiss([said["a"], said["b"], said["c"]]))
    assert found.judges[0].cells == (2, 1, 0, 0)
    assert found.judges[0].n_unlabelled == 1


values = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=6)


@given(values)
def test_kendalls_tau_is_that_of_its_definition(pairs) -> None:
    one, other = (np.array([column], dtype=float) for column in zip(*pairs, strict=True))
    found, wanted = kendall_tau(one, other)[0], tau_b(one[0], other[0])
    assert np.isnan(found) if wanted is None else found == pytest.approx(wanted)


def test_agents_are_ranked_by_the_judge_and_by_labels() -> None:
    rates = {"good": (0.9, 0.5), "middle": (0.6, 0.6), "bad": (0.1, 0.2)}
    verdicts, labels = [], []
    for agent, (by_judge, by_labels) in rates.items():
        for n in range(10):
            place = {"trajectory": f"{agent}{n}", "task": f"t{n}", "agent": agent}
            verdicts.append(Judgement(verdict=n < 10 * by_judge, **place))
            labels.append(Judgement(verdict=n < 10 * by_labels, **place))
    ranking = agreements(verdicts, labels).judges[0].ranking
    assert [(one.agent, one.n, one.by_judge, one.by_labels) for one in ranking.agents] == [
        (agent, 10, pytest.approx(judge), pytest.approx(label)) for agent, (judge, label) in rates.items()
    ]
    assert ranking.tau.value == pytest.approx(1 / 3)
    assert (0.8 < ranking.stability <= 1, ranking.best_kept) == (True, 1.0)


def test_failed_calls_are_counted_and_left_out() -> None:
    verdicts = [judged(0, True, calls=1, cost_usd=0.02), judged(1, None, ran=False, outcome="timeout"), judged(9, True)]
    (found,) = agreements(verdicts, labelled([True, True, False]), no_verdict="failure").judges
    assert (found.n_verdicts, found.failed, found.n_unlabelled, found.n_missing, found.cost_per_verdict) == (
        1,
        1,
        1,
        1,
        0.02,
    )


@pytest.mark.parametrize(
    ("verdicts", "labels", "wanted"),
    [
        ([judged(7, True)], labelled([True]), "labels of the judged trajectories"),
        ([judged(0, True)], labelled([None]), "no label"),
        ([judged(0, True, task="t9")], labelled([True]), "one task a trajectory"),
        ([judged(0, True), judged(0, False)], labelled([True]), "one verdict"),
    ],
)
def test_what_cannot_be_compared_is_refused(verdicts, labels, wanted: str) -> None:
    with pytest.raises(InputError, match=wanted):
        agreements(verdicts, labels)


@pytest.mark.slow
def test_stored_verdicts_of_1302_trajectories_under_seven_judges_are_scored_in_five_seconds(
    tmp_path: Path, capsys
) -> None:
    rng = np.random.default_rng(0)
    names, truth = [f"t{i // 4}-{i % 4}" for i in range(1302)], rng.random(1302) < 0.3
    with (tmp_path / "v.jsonl").open("w") as file:
        for judge in "abcdefg":
            for i, name in enumerate(names):
                row = {
                    "trajectory": name,
                    "task": f"t{i // 4}",
                    "agent": f"agent{i % 4}",
                    "judge": judge,
                    "calls": 1,
                    "cost_usd": 0.01,
                }
                file.write(json.dumps(row | {"verdict": bool(truth[i]) ^ bool(rng.random() < 0.2)}) + "\n")
    rows = [f"{name},{'Successful' if label else 'Unsuccessful'}" for name, label in zip(names, truth, strict=True)]
    (tmp_path / "l.csv").write_text("\n".join(["trajectory_id,trajectory_success", *rows]))
    began = time.process_time()
    files = [str(tmp_path / "v.jsonl"), "--labels", str(tmp_path / "l.csv")]
    assert main(["agreement", *files, "--out", str(tmp_path / "a.tex")]) == 0
    assert time.process_time() - began < 5
    out = capsys.readouterr().out
    assert "1,302 labelled trajectories" in out
    assert "Agents by c" in out
    assert "## The same trajectories under every judge" in out
    assert (tmp_path / "a.tex").read_text().count("\\begin{tabular}") == 2


def test_every_folder_named_is_a_judge_and_labels_are_those_that_they_hold(tmp_path: Path, capsys) -> None:
    """The second folder was taken as the labels, as it held some, and its judge left out without a word."""
    for judge in ("strict", "webjudge"):
        (tmp_path / judge).mkdir()
        row = {"trajectory": "a", "verdict": True, "calls": 1}
        (tmp_path / judge / "verdicts.jsonl").write_text(json.dumps(row | {"judge": judge}))
        (tmp_path / judge / "labels.jsonl").write_text(json.dumps(row | {"source": "people"}))
    assert (
        main(["agreement", str(tmp_path / "strict"), str(tmp_path / "webjudge"), "--out", str(tmp_path / "a.json")])
        == 0
    )
    document = json.loads((tmp_path / "a.json").read_text())
    assert [figures["judge"] for figures in document["judges"]] == ["strict", "webjudge"]
    assert main(["agreement", str(tmp_path / "strict" / "verdicts.jsonl")]) == 2
    assert "name them with --labels" in capsys.readouterr().err


@pytest.mark.parametrize("ending", [".json", ".md", ".csv", ".html", ".png"])
def test_the_command_writes_the_form_that_the_file_ends_in(tmp_path: Path, ending: str) -> None:
    rows = [
        '{"trajectory": "<b>", "verdict": true, "judge": "<i>"}',
        '{"trajectory": "c", "verdict": null, "outcome": "refused"}',
    ]
    (tmp_path / "v.jsonl").write_text("\n".join(rows))
    (tmp_path / "l.csv").write_text("trajectory,label,source\n<b>,1,constructed\nc,0,constructed\n")
    out = tmp_path / f"a{ending}"
    assert main(["agreement", str(tmp_path / "v.jsonl"), "--labels", str(tmp_path / "l.csv"), "--out", str(out)]) == 0
    if ending == ".md":
        assert "Labels are constructed" in out.read_text()
        assert "<i>" not in out.read_text()
    assert out.stat().st_size > 100
