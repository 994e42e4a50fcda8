"""The list of steps in a real browser: of one run, of several, on a phone; and addresses that show the same again."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.files.markdown import percent
from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Tab, open_tab
from tests.seeact_offline.viewer.toy_site import key_of, outcome_of

pytestmark = [pytest.mark.slow, *REAL_BROWSER]
N, MANY = 20, 15_000
OUTCOMES = [outcome_of(0, row) for row in range(N)]
WRONG = [row for row in range(N) if OUTCOMES[row] == "wrong_element"]
RANKS = [row * 7 % 50 for row in range(N)]
RIGHT = [{row for row in range(N) if outcome_of(run, row) == "success"} for run in range(2)]
DISAGREEING = sorted(RIGHT[0] ^ RIGHT[1])


@pytest.fixture(scope="module")
def url(toy_url: Callable[..., str]) -> str:
    return toy_url(n=N)


@pytest.fixture
def two_runs(tab: Tab, toy_url: Callable[..., str]) -> Tab:
    tab.url = toy_url(n=N, n_runs=2)
    return tab


@pytest.fixture
def long_list(tab: Tab, toy_url: Callable[..., str]) -> Tab:
    tab.url = toy_url(n=MANY, steps=1)
    return tab


def keys(rows: Any) -> list[str]:
    return [key_of(row) for row in rows]


def csv_rows(page: Any) -> list[dict[str, str]]:
    """The rows of the file that the button saves."""
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV of these steps").click()
    return list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))


# --- one run ---


def test_every_step_is_listed_in_the_order_of_the_data_below_the_figures(tab: Tab) -> None:
    page = tab.list()
    assert (tab.keys(), tab.faults) == (keys(range(N)), [])
    summary = page.locator(".summary").inner_text()
    assert [one for one in ("25.0 %", "15.0 to 35.0", "protocol seeact", "not the paper's") if one not in summary] == []


def test_rows_in_the_document_stay_few_and_the_scrollbar_leads_to_the_last(long_list: Tab) -> None:
    page = long_list.list()
    assert page.locator(".window .row").count() <= 45
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight / 2)")
    long_list.until("document.querySelector('.window .row').getAttribute('aria-rowindex') > 5000")
    assert page.locator(".window .row").count() <= 45
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_selector(f"[data-key='{key_of(MANY - 1)}']")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("?f.outcome=wrong_element", WRONG),
        (
            "?f.outcome=wrong_element&f.outcome=wrong_op&f.website=booknest",
            [row for row in range(N) if OUTCOMES[row] in ("wrong_element", "wrong_op") and row // 4 % 3 == 1],
        ),
        ("?f.rank=6%E2%80%9310", [row for row in range(N) if 5 <= RANKS[row] <= 9]),
        ("?min.cost=0.004&max.cost=0.005", [row for row in range(N) if row % 10 in (4, 5)]),
        ("?q=LISBON+task-3", range(12, 16)),
        ("?q=action-7", [7]),
        ("?sort=-rank", sorted(range(N), key=lambda row: -RANKS[row])),
        ("?run=nobody&sort=nothing&f.colour=red&min.cost=x&max.rank=&group=Z9", range(N)),
    ],
)
def test_an_address_filters_and_sorts(tab: Tab, query: str, rows: Any) -> None:
    page = tab.list(query)
    assert (tab.keys(), tab.faults) == (keys(rows), [])
    assert page.locator(".found").inner_text() == f"{len(rows)} of {N} steps"


def test_filters_search_and_costs_are_set_by_hand_and_stand_in_the_address(tab: Tab) -> None:
    page = tab.list()
    page.locator("[data-facet=outcome] label", has_text="wrong element").click()
    assert tab.keys() == keys(WRONG)
    page.keyboard.press("/")
    page.keyboard.type("LISBON task-3")
    page.wait_for_url("**q=LISBON+task-3*")
    page.get_by_label("Cost, least").fill("0.004")
    page.get_by_label("Cost, most").fill("0.005")
    page.get_by_label("Cost, most").press("Enter")
    page.wait_for_url("**max.cost=0.005*")
    assert tab.keys() == keys(row for row in WRONG if 12 <= row < 16 and row % 10 in (4, 5))


def test_counts_beside_a_filter_are_those_given_the_other_filters(tab: Tab) -> None:
    page = tab.list("?f.outcome=wrong_element")
    found = dict(line.split("\n") for line in tab.texts("[data-facet=op] .option:visible"))
    counts = {op: sum(toy_site.OPS[row % 3] == op for row in WRONG) for op in toy_site.OPS}
    assert found == {op: str(count) for op, count in counts.items() if count}
    # its own values keep theirs, so that another can be chosen
    success = page.locator("[data-facet=outcome] label", has_text="success").inner_text()
    assert success.split("\n")[-1] == str(OUTCOMES.count("success"))


def test_a_column_sorts_both_ways_and_back(tab: Tab) -> None:
    page = tab.list()
    by_rank = sorted(range(N), key=lambda row: RANKS[row])
    head = page.locator("[role=columnheader] button", has_text="Rank")
    for rows, order in ((by_rank, "ascending"), (by_rank[::-1], "descending"), (range(N), "none")):
        head.click()
        assert tab.keys() == keys(rows)
        assert page.locator("[role=columnheader]", has_text="Rank").get_attribute("aria-sort") == order


def test_the_csv_holds_the_rows_that_are_shown(tab: Tab) -> None:
    rows = csv_rows(tab.list("?f.outcome=wrong_op&sort=-rank"))
    wanted = sorted((row for row in range(N) if OUTCOMES[row] == "wrong_op"), key=lambda row: -RANKS[row])
    assert [row["action_uid"] for row in rows] == [f"action-{row}" for row in wanted]
    assert {row["outcome"] for row in rows} == {"wrong_op"}


def test_csv_cells_that_a_spreadsheet_would_run_get_an_apostrophe(tab: Tab, tmp_path: Path) -> None:
    formula = '=HYPERLINK("http://evil.example", "x")'
    site = toy_site.write_site(tmp_path / "site", n=4, texts=toy_site.Texts(task=formula))
    with toy_site.serve(site) as tab.url:
        assert csv_rows(tab.list())[0]["task"] == f"'{formula} 0"


def test_a_task_without_words_is_called_by_its_id(tab: Tab, tmp_path: Path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=4)
    index = json.loads((site / "index.json").read_text())
    index["tasks"]["texts"] = [""]
    index["numbers"] |= {"n_actions": [0] * 4, "n_before": [0] * 4}
    (site / "index.json").write_text(json.dumps(index))
    with toy_site.serve(site) as tab.url:
        tab.list()
        assert set(tab.texts(".window .cell.task")) == {"Task task-0, words not known"}
        assert set(tab.texts(".window .cell.index")) == {"–"}


def test_keys_move_open_and_help(tab: Tab) -> None:
    page = tab.list()
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.closest('.row').dataset.key") == key_of(1)
    page.keyboard.press("?")
    assert "next step on which runs disagree" in page.locator("dialog[open]").inner_text()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    for key in ("j", "k", "k", "j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".answer")
    assert f"#/step/{key_of(1)}" in page.url


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_chosen_and_kept(tab: Tab, theme: str) -> None:
    page = tab.list()
    page.get_by_label("Theme").select_option(theme)
    page.reload()
    page.wait_for_selector(".window .row")
    red = page.evaluate("Number(getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0])")
    assert (red > 200) == (theme == "light")


def test_a_run_that_is_not_finished_is_followed(tab: Tab, tmp_path: Path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=8)
    index = json.loads((site / "index.json").read_text())
    figures = {"element_accuracy": 0.5, "operation_f1": None, "step_success": 0.25}
    running = {"done": 3, "of": 8, "failed": 1, **figures, "cost_usd": 0.5, "failures": {"no_reply": 1}}
    index["runs"][0] |= {"finished": False, "results": None, "progress": running}
    (site / "index.json").write_text(json.dumps(index))
    with toy_site.serve(site) as tab.url:
        told = tab.list().locator(".progress").inner_text()
        assert "3 of 8 steps done, 1 failed to run" in told
        assert "no reply 1" in told
        running["done"] = 5
        (site / "index.json").write_text(json.dumps(index))
        tab.until("document.querySelector('.progress').innerText.includes('5 of 8')")


# --- the width of the window ---


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_sticks_out_sideways(browser: Any, toy_url: Callable[..., str], width: int) -> None:
    with open_tab(browser, toy_url(n=N), width=width) as tab:
        page = tab.list()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        rights = page.locator(".chip").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        assert max(rights) <= width
        # on a phone, the filters wait behind their name
        assert page.locator("[data-facet=outcome]").is_visible() == (width > 400)
        if width == 400:
            page.locator("summary", has_text="Filters").click()
            page.locator("[data-facet=outcome] label", has_text="wrong op").click()
            assert page.locator(".found").inner_text() == f"{OUTCOMES.count('wrong_op')} of {N} steps"


# --- several runs ---


def test_disagreements_come_first_below_the_paired_differences(two_runs: Tab) -> None:
    page = two_runs.list()
    assert set(two_runs.keys()[: len(DISAGREEING)]) == set(keys(DISAGREEING))
    told = " ".join(page.locator(".pairs").inner_text().split())
    for wanted in ("B − A, Step SR", "−4.0", "−10.0 to +2.0", "0.210", "–, fewer than 6 tasks 0.500"):
        assert wanted in told
    assert two_runs.faults == []


@pytest.mark.parametrize("width", [400, 1280])
def test_step_sr_and_its_change_come_first_and_are_in_sight(
    browser: Any, toy_url: Callable[..., str], width: int
) -> None:
    with open_tab(browser, toy_url(n=N, n_runs=2), width=width) as tab:
        page = tab.list()
        assert tab.texts(".runs thead th")[:4] == ["Run", "Step SR", "Change", "Element Accuracy"]
        assert [" ".join(text.split()) for text in tab.texts(".runs tbody td:nth-child(3)")] == [
            "baseline",
            "−4.0 −10.0 to +2.0",
        ]
        right = page.locator(".runs tbody td:nth-child(3)").nth(1).locator(".interval").bounding_box()
        assert right is not None
        assert right["x"] + right["width"] <= width
        assert "Step SR" in tab.page.locator(".pairs tbody th").first.text_content()


def test_long_names_keep_their_ends(tab: Tab) -> None:
    cut = "async (name) => { const { shortName } = await import('./dom.js'); return shortName(name, 20); }"
    page = tab.list()
    assert page.evaluate(cut, "seeact-choice-cross-task-top-10") == "seeact-c…-task-top-10"
    assert page.evaluate(cut, "seeact-choice-top-10") == "seeact-choice-top-10"


def test_numbers_in_names_are_sorted_by_value_and_missing_names_last(tab: Tab, tmp_path: Path) -> None:
    websites = ["shop-10", None, "shop-7", "shop-100"]
    coded = {name: toy_site.coded(websites) for name in ("website", "domain", "op")}
    site = toy_site.write_site(tmp_path / "site", n=4, coded=coded)
    with toy_site.serve(site) as tab.url:
        tab.list("?sort=website")
        assert tab.keys() == keys([2, 0, 3, 1])


def test_a_search_that_finds_nothing_says_so_and_is_cleared(tab: Tab) -> None:
    page = tab.list("?q=zeppelin&f.op=CLICK")
    assert tab.texts(".empty") == ["No step holds “zeppelin”. Clear the search"]
    page.get_by_role("button", name="Clear the search").click()
    assert tab.keys() == keys(row for row in range(N) if row % 3 == 0)


def test_keys_go_through_runs_filters_and_websites(two_runs: Tab) -> None:
    page = two_runs.list()
    focused = "document.activeElement.textContent || document.activeElement.value"
    page.locator(".runs tbody a").first.focus()
    page.keyboard.press("j")
    assert page.evaluate(focused) == "run-1"
    page.keyboard.press("Enter")
    two_runs.until("document.querySelectorAll('.runs tr:not(.unshown) .letter').length === 1")
    two_runs.list()
    page.locator("[data-facet=op] input").first.focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert two_runs.texts(".chips button")[0].startswith("Operation: SELECT")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.className") == "search"
    two_runs.list("?q=Lisbon")
    page.locator(".filtered summary").first.click()
    page.locator(".filtered .figures").nth(1).locator("a").first.focus()
    page.keyboard.press("j")
    website = page.evaluate(focused)
    page.keyboard.press("Enter")
    two_runs.until(f"location.hash.includes('f.website={website}')")


def test_figures_are_rounded_as_the_report_rounds_them(tab: Tab) -> None:
    fractions = [k / n for n in (3, 7, 16, 77, 80, 400, 2000) for k in range(n + 1)]
    fractions += [1 - one for one in fractions] + [-one for one in fractions]
    rounded = "async (all) => { const { percent } = await import('./dom.js'); return all.map((one) => percent(one)); }"
    assert tab.list().evaluate(rounded, fractions) == [percent(one) for one in fractions]


def test_runs_are_filtered_by_their_agreement_and_outcomes(two_runs: Tab) -> None:
    page = two_runs.list()
    page.get_by_role("button", name="all disagreements").click()
    assert set(two_runs.keys()) == set(keys(DISAGREEING))
    two_runs.list("?f.outcome=success&f.outcome.B=ranker_miss&sort=task")
    assert two_runs.keys() == keys(row for row in sorted(RIGHT[0]) if outcome_of(1, row) == "ranker_miss")


def test_another_run_is_made_the_first_or_taken_away(two_runs: Tab) -> None:
    page = two_runs.list()
    for first, second in (RIGHT, RIGHT[::-1]):
        page.locator("[data-facet=agreement] label", has_text="A right, B wrong").click()
        assert two_runs.keys() == keys(sorted(first - second))
        page.get_by_role("button", name="make A").click()
    page.get_by_label("Show run-1").uncheck()
    assert page.locator("[role=columnheader]", has_text="B:").count() == 0
    assert two_runs.keys() == keys(range(N))


def test_a_step_that_a_run_lacks_is_said(tab: Tab, tmp_path: Path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=4, n_runs=2)
    index = json.loads((site / "index.json").read_text())
    cells = index["cells"][1]
    cells["outcome"]["row"][2] = cells["failure"]["row"][2] = -1
    for name in ("element", "f1", "success", "rank", "cost"):
        cells[name][2] = None
    index["comparison"] = {"pairs": [], "problem": "run-1 lacks a step."}
    (site / "index.json").write_text(json.dumps(index))
    path = site / "step" / f"{key_of(2)}.json"
    step = json.loads(path.read_text())
    step["runs"][1] = None
    path.write_text(json.dumps(step))
    with toy_site.serve(site) as tab.url:
        page = tab.list()
        assert "run-1 lacks a step." in page.locator(".pairs").inner_text()
        assert "not there" in page.locator(f"[data-key='{key_of(2)}']").inner_text()
        tab.step(key_of(2))
        assert "This run has no such step." in page.locator(".answer[data-run=B]").inner_text()
        assert tab.faults == []


def test_three_runs_are_listed_too(tab: Tab, toy_url: Callable[..., str]) -> None:
    tab.url = toy_url(n=8, n_runs=3)
    page = tab.list()
    assert page.locator("[role=columnheader]", has_text="C: outcome").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


# --- addresses ---


def seen(tab: Tab) -> list[str]:
    """The list in words."""
    return [
        text for one in (".found", ".filter-chip", "[aria-sort$=scending]", ".window .row") for text in tab.texts(one)
    ]


def test_a_link_shows_the_same_list_again(two_runs: Tab, browser: Any) -> None:
    page = two_runs.list()
    page.get_by_role("button", name="all disagreements").click()
    page.locator("[data-facet='outcome.B'] label", has_text="not offered by the ranker").click()
    page.locator("[role=columnheader] button", has_text="Website").click()
    page.locator(".search").fill("lisbon")
    page.wait_for_url("**q=lisbon*")
    with open_tab(browser, page.url) as other:
        other.page.goto(page.url)
        other.page.wait_for_selector(".window .row")
        assert seen(other) == seen(two_runs)


def test_a_link_shows_the_same_step_group_and_runs_again(two_runs: Tab, browser: Any) -> None:
    page = two_runs.step(key_of(1), "?run=run-1")
    page.keyboard.press("g")
    page.wait_for_url("**group=A0*")
    with open_tab(browser, page.url) as other:
        other.page.goto(page.url)
        other.page.wait_for_selector("g.box.offered")
        assert other.texts("g.label.offered text") == two_runs.texts("g.label.offered text") == list("ABCDEFGH")
        assert other.page.locator(".answer").count() == 1
    two_runs.step(key_of(1), "?run=run-1&run=run-0")
    assert "run-1" in page.locator(".answer[data-run=A] h2").inner_text()


def test_back_and_forward_walk_through_filters_and_steps(tab: Tab) -> None:
    page = tab.list()
    everything = seen(tab)
    page.locator("[data-facet=outcome] label", has_text="wrong op").click()
    filtered = seen(tab)
    page.locator(".window .row a").first.click()
    page.wait_for_selector(".answer")
    page.go_back()
    page.wait_for_selector(".window .row")
    assert seen(tab) == filtered
    page.go_back()
    tab.until("!location.hash.includes('outcome')")
    assert seen(tab) == everything
    page.go_forward()
    page.go_forward()
    page.wait_for_selector(".answer")


def test_the_list_is_where_it_was_on_the_way_back(tab: Tab, toy_url: Callable[..., str]) -> None:
    tab.url = toy_url(n=400)
    page = tab.list()
    page.evaluate("window.scrollTo(0, 9000)")
    tab.until("document.querySelector('.window .row').getAttribute('aria-rowindex') > 100")
    row = page.locator(".window .row").nth(15)
    key = row.get_attribute("data-key")
    row.locator("a").click()
    page.wait_for_selector(".answer")
    page.keyboard.press("Escape")
    page.wait_for_selector(".window .row")
    assert page.evaluate("scrollY") == pytest.approx(9000, abs=600)
    assert page.evaluate("document.activeElement.closest('.row')?.dataset.key") == key


def test_the_token_is_taken_out_of_the_address_and_kept(tab: Tab) -> None:
    tab.page.goto(f"{tab.url}#token=secret-1")
    tab.page.wait_for_selector(".window .row")
    assert "secret" not in tab.page.url
    assert tab.page.evaluate("sessionStorage.getItem('seeact-token')") == "secret-1"
