"""Several judges of the same trajectories."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.cli import main
from seeact_offline.trajectories.judge_agreement import agreements, judge_panel
from seeact_offline.trajectories.judgements import Judgement
from tests.reference.agreement import kappa, tau_b


def row(trajectory: str, verdict: bool | None, judge: str = "", **fields) -> Judgement:
    return Judgement(trajectory=trajectory, verdict=verdict, judge=judge, **fields)


said = st.lists(
    st.tuples(*[st.sampled_from([True, False, None])] * 3, st.sampled_from([True, False, None])),
    min_size=1,
    max_size=10,
)
"""The verdicts of three judges and the label of each trajectory."""


@given(said)
def test_figures_are_those_of_the_trajectories_that_all_have_judged(rows: list[tuple[bool | None, ...]]) -> None:
    verdicts = [row(f"{i}", one[j], "abc"[j]) for i, one in enumerate(rows) for j in range(3)]
    labels = [row(f"{i}", one[3], task=f"t{i // 2}", agent=f"agent{i % 3}") for i, one in enumerate(rows)]
    found = judge_panel(verdicts, labels)
    shared = [(i, one) for i, one in enumerate(rows) if None not in one]
    if not all(any(None not in (one[j], one[3]) for one in rows) for j in range(3)):
        # a judge of nothing that is labelled leaves the others their panel
        assert found is None or len(found.judges) == 2
        return
    if not shared:
        assert found is None
        return
    columns = [[one[j] for _, one in shared] for j in range(4)]
    assert found.n_trajectories == len(shared)
    assert found.n_left_out == sum(one[3] is not None for one in rows) - len(shared)
    assert [one.success_rate.value for one in (*found.judges, found.labels)] == [
        pytest.approx(sum(column) / len(shared)) for column in columns
    ]
    for judge, column in zip(found.judges, columns, strict=False):
        wanted = kappa(column, columns[3])
        assert judge.kappa.kappa == (None if wanted is None else pytest.approx(wanted))
    for pair, (a, b) in zip(found.pairs, combinations(range(3), 2), strict=True):
        wanted = kappa(columns[a], columns[b])
        assert (pair.first, pair.second) == (a, b)
        assert pair.kappa.kappa == (None if wanted is None else pytest.approx(wanted))
    agents = sorted({f"agent{i % 3}" for i, _ in shared})
    for judge, column in zip((*found.judges, found.labels), columns, strict=True):
        rates = {}
        for agent in agents:
            own = [verdict for (i, _), verdict in zip(shared, column, strict=True) if f"agent{i % 3}" == agent]
            rates[agent] = sum(own) / len(own)
        places = {agent: 1 + sum(other > rate for other in rates.values()) for agent, rate in rates.items()}
        assert judge.places == (places if len(agents) > 1 else {})
        if judge is not found.labels and len(agents) > 1:
            by_labels = [-found.labels.places[agent] for agent in agents]
            wanted = tau_b([rates[agent] for agent in agents], by_labels)
            assert judge.tau is None if wanted is None else judge.tau.value == pytest.approx(wanted)


def test_kappas_have_the_intervals_of_the_judges_own_rows() -> None:
    verdicts = [row(f"{i}", i % 3 < 2, "a") for i in range(40)] + [row(f"{i}", i % 4 < 2, "b") for i in range(40)]
    labels = [row(f"{i}", i % 5 < 3, task=f"t{i // 4}") for i in range(40)]
    panel, own = judge_panel(verdicts, labels), agreements(verdicts, labels)
    for judge, one in zip(panel.judges, own.judges, strict=True):
        assert (judge.kappa.kappa, judge.kappa.ci95) == (pytest.approx(one.kappa.value), one.kappa.ci95)
    low, high = panel.pairs[0].kappa.ci95
    assert low < panel.pairs[0].kappa.kappa < high


def test_repeats_count_by_their_majority() -> None:
    repeats = {"x": (True, True, False), "y": (True, False), "z": (False, None, False)}
    verdicts = [row(one, verdict, "a", repeat=n) for one, some in repeats.items() for n, verdict in enumerate(some, 1)]
    verdicts += [row(one, True, "b") for one in repeats]
    panel = judge_panel(verdicts, [row(one, True) for one in repeats])
    assert (panel.n_trajectories, panel.n_left_out, panel.judges[0].success_rate.value) == (2, 1, 0.5)


def test_a_judgement_without_a_verdict_may_count_as_a_failure() -> None:
    verdicts = [row("x", None, "a"), row("x", True, "b"), row("y", True, "a"), row("y", True, "b")]
    labels = [row("x", False), row("y", True)]
    assert judge_panel(verdicts, labels).n_trajectories == 1
    panel = judge_panel(verdicts, labels, no_verdict="failure")
    assert [one.success_rate.value for one in panel.judges] == [0.5, 1.0]


def test_one_judge_has_no_panel() -> None:
    assert judge_panel([row("x", True, "a")], [row("x", True)]) is None


def test_the_table_has_a_letter_for_each_judge_and_a_row_for_the_labels(tmp_path: Path, capsys) -> None:
    rows = [
        {"trajectory": f"{agent}{i}", "task": f"t{i}", "agent": agent, "judge": judge, "verdict": (i + shift) % 3 > skip, "calls": 1, "cost_usd": 0.5}
        for i in range(12) for agent, shift in (("good", 0), ("bad", 1)) for judge, skip in (("strict", 0), ("webjudge", 1))
    ]  # fmt: skip
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    labels = [f"{agent}{i},{int(i % 2 == 0 or agent == 'good')}" for i in range(12) for agent in ("good", "bad")]
    (tmp_path / "l.csv").write_text("\n".join(["trajectory,label", *labels]))
    out = tmp_path / "all.json"
    assert main(["agreement", str(tmp_path / "v.jsonl"), "--labels", str(tmp_path / "l.csv"), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    table = text[text.index("## The same trajectories under every judge") :].split("## ")[1].splitlines()
    header = [cell.strip() for cell in table[2].split("|")[1:-1]]
    assert header == [
        "judge", "model", "k", "success", "kappa with labels", "kappa with A", "kappa with B", "place of good", "place of bad",
        "tau-b with labels", "USD a verdict",
    ]  # fmt: skip
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[4:7]]
    assert [line[0] for line in cells] == ["A: strict", "B: webjudge", "labels"]
    # the diagonal is empty, and the matrix the same on both sides of it
    assert (cells[0][5], cells[1][6], cells[0][6]) == ("-", "-", cells[1][5])
    assert [cells[2][5], cells[2][6]] == [cells[0][4], cells[1][4]]
    assert ([line[-1] for line in cells], cells[2][7:9]) == (["0.5", "0.5", "-"], ["1", "2"])
    assert json.loads(out.read_text())["panel"]["n_trajectories"] == 24
