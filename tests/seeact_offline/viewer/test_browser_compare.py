"""Two runs and more beside each other in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from seeact_offline.files.markdown import percent
from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Visit, chromium, visiting

pytestmark = REAL_BROWSER
N = 20


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    with toy_site.serve(toy_site.write_site(tmp_path_factory.mktemp("site") / "toy", n=N, n_runs=2)) as address:
        yield address


@pytest.fixture
def visit(browser, url) -> Iterator[Visit]:
    with visiting(browser, url) as one:
        yield one


def right(run: int, row: int) -> bool:
    return toy_site.outcome_of(run, row) == "success"


def shown(visit: Visit) -> list[str]:
    return [
        str(key) for key in visit.page.locator(".window .row").evaluate_all("rows => rows.map(row => row.dataset.key)")
    ]


def keys(rows: list[int]) -> list[str]:
    return [toy_site.key_of(row) for row in rows]


def test_disagreements_come_first(visit) -> None:
    visit.list()
    disagreeing = {row for row in range(N) if right(0, row) != right(1, row)}
    assert set(shown(visit)[: len(disagreeing)]) == set(keys(sorted(disagreeing)))
    assert visit.faults == []


def test_the_paired_difference_and_its_interval_stand_on_top(visit) -> None:
    visit.list()
    told = " ".join(visit.page.locator(".pairs").inner_text().split())
    for wanted in ("A − B, step success rate", "−4.0", "−10.0 to +2.0", "0.210", "–, fewer than 6 tasks 0.500"):
        assert wanted in told


def test_figures_are_rounded_as_the_report_rounds_them(visit) -> None:
    fractions = [k / n for n in (3, 7, 16, 77, 80, 400, 2000) for k in range(n + 1)]
    fractions += [1 - one for one in fractions] + [-one for one in fractions]
    rounded = "async (all) => { const { percent } = await import('./dom.js'); return all.map((one) => percent(one)); }"
    assert visit.list().evaluate(rounded, fractions) == [percent(one) for one in fractions]


def test_a_right_b_wrong_can_be_asked_for(visit) -> None:
    page = visit.list()
    page.locator("[data-facet=agreement] label", has_text="A right, B wrong").click()
    assert shown(visit) == keys([row for row in range(N) if right(0, row) and not right(1, row)])


def test_all_disagreements_can_be_asked_for_at_once(visit) -> None:
    page = visit.list()
    page.get_by_role("button", name="all disagreements").click()
    assert set(shown(visit)) == set(keys([row for row in range(N) if right(0, row) != right(1, row)]))


def test_each_run_has_an_outcome_filter_of_its_own(visit) -> None:
    visit.list("?f.outcome=success&f.outcome.B=ranker_miss&sort=task")
    assert shown(visit) == keys(
        [row for row in range(N) if right(0, row) and toy_site.outcome_of(1, row) == "ranker_miss"]
    )


def test_another_run_can_be_made_the_first(visit) -> None:
    page = visit.list()
    page.get_by_role("button", name="make A").click()
    page.locator("[data-facet=agreement] label", has_text="A right, B wrong").click()
    assert shown(visit) == keys([row for row in range(N) if right(1, row) and not right(0, row)])


def test_a_run_can_be_taken_away(visit) -> None:
    page = visit.list()
    page.get_by_label("Show run-1").uncheck()
    assert page.locator("[role=columnheader]", has_text="B:").count() == 0
    assert shown(visit) == keys(list(range(N)))


def test_a_step_has_a_column_for_each_run(visit) -> None:
    page = visit.step(toy_site.key_of(1))
    boxes = [page.locator(f".answer[data-run={letter}]").bounding_box() for letter in "AB"]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert sorted(visit.texts("g.box.choice text")) == ["choice of A", "choice of B"]


def test_d_goes_to_the_next_disagreement(visit) -> None:
    page = visit.step(toy_site.key_of(0), "?sort=task")
    page.keyboard.press("d")
    page.wait_for_url(f"**{toy_site.key_of(1)}*")
    page.keyboard.press("d")
    page.wait_for_url(f"**{toy_site.key_of(3)}*")


def test_a_step_that_a_run_lacks_is_said(browser, tmp_path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=4, n_runs=2)
    index = json.loads((site / "index.json").read_text())
    cells = index["cells"][1]
    cells["outcome"]["row"][2] = cells["failure"]["row"][2] = -1
    for name in ("element", "f1", "success", "rank", "cost"):
        cells[name][2] = None
    index["comparison"] = {"pairs": [], "problem": "run-1 lacks a step."}
    (site / "index.json").write_text(json.dumps(index))
    path = site / "step" / f"{toy_site.key_of(2)}.json"
    step = json.loads(path.read_text())
    step["runs"][1] = None
    path.write_text(json.dumps(step))
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        page = visit.list()
        assert "run-1 lacks a step." in page.locator(".pairs").inner_text()
        assert "not there" in page.locator(f"[data-key='{toy_site.key_of(2)}']").inner_text()
        visit.step(toy_site.key_of(2))
        assert "This run has no such step." in page.locator(".answer[data-run=B]").inner_text()
        assert visit.faults == []


def test_three_runs_are_listed_too(browser, tmp_path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=8, n_runs=3)
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        page = visit.list()
        assert page.locator("[role=columnheader]", has_text="C: outcome").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_on_a_phone_the_runs_stand_below_each_other(browser, url) -> None:
    with visiting(browser, url, width=400) as visit:
        page = visit.step(toy_site.key_of(1))
        boxes = [page.locator(f".answer[data-run={letter}]").bounding_box() for letter in "AB"]
        assert boxes[0]["x"] == boxes[1]["x"]
        assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
