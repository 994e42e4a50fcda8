"""The list of steps in a real browser."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Visit, chromium, visiting

pytestmark = REAL_BROWSER
N, MANY = 20, 15_000
FIRST_TASK = "a[href^='#/step/']"


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    with toy_site.serve(toy_site.write_site(tmp_path_factory.mktemp("site") / "toy", n=N)) as address:
        yield address


@pytest.fixture(scope="module")
def long_url(tmp_path_factory) -> Iterator[str]:
    with toy_site.serve(toy_site.write_site(tmp_path_factory.mktemp("site") / "long", n=MANY, steps=1)) as address:
        yield address


@pytest.fixture
def visit(browser, url) -> Iterator[Visit]:
    with visiting(browser, url) as one:
        yield one


@pytest.fixture
def long_visit(browser, long_url) -> Iterator[Visit]:
    with visiting(browser, long_url) as one:
        yield one


def outcomes() -> list[str]:
    return [toy_site.outcome_of(0, row) for row in range(N)]


def shown(visit: Visit) -> list[str]:
    """The keys of the steps in the list, from top to bottom."""
    keys = "rows => rows.map(row => [row.getAttribute('aria-rowindex'), row.dataset.key])"
    found = visit.page.locator(".window .row").evaluate_all(keys)
    return [key for _, key in sorted(found, key=lambda one: int(one[0]))]


def test_every_step_is_listed_in_the_order_of_the_data(visit) -> None:
    visit.list()
    assert shown(visit) == [toy_site.key_of(row) for row in range(N)]


def test_an_ordinary_list_gives_no_report_and_no_error(visit) -> None:
    visit.list()
    assert visit.faults == []


def test_rows_in_the_document_stay_few_however_many_steps_there_are(long_visit) -> None:
    page = long_visit.list()
    assert page.locator(".window .row").count() <= 45
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight / 2)")
    long_visit.until("document.querySelector('.window .row').getAttribute('aria-rowindex') > 5000")
    assert page.locator(".window .row").count() <= 45


def test_the_scrollbar_leads_to_the_last_step(long_visit) -> None:
    page = long_visit.list()
    page.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_selector(f"[data-key='{toy_site.key_of(MANY - 1)}']")
    assert page.locator(f"[data-key='{toy_site.key_of(MANY - 1)}']").is_visible()


def test_a_filter_shows_its_steps_alone(visit) -> None:
    page = visit.list()
    page.locator("[data-facet=outcome] label", has_text="wrong element").click()
    assert shown(visit) == [
        toy_site.key_of(row) for row, outcome in enumerate(outcomes()) if outcome == "wrong_element"
    ]
    assert page.locator(".found").inner_text() == f"{outcomes().count('wrong_element')} of {N} steps"


def test_counts_beside_a_filter_are_those_given_the_other_filters(visit) -> None:
    page = visit.list("?f.outcome=wrong_element")
    found = dict(line.split("\n") for line in visit.texts("[data-facet=op] .option:visible"))
    wrong = [row for row, outcome in enumerate(outcomes()) if outcome == "wrong_element"]
    assert found == {
        op: str(count) for op in toy_site.OPS if (count := sum(toy_site.OPS[row % 3] == op for row in wrong))
    }
    # its own values keep theirs, so that another can be chosen
    assert page.locator("[data-facet=outcome] label", has_text="success").inner_text().split("\n")[-1] == str(
        outcomes().count("success")
    )


def test_two_filters_hold_together(visit) -> None:
    visit.list("?f.outcome=wrong_element&f.outcome=wrong_op&f.website=booknest")
    wanted = [
        row
        for row, one in enumerate(outcomes())
        if one in ("wrong_element", "wrong_op") and row // toy_site.PER_TASK % 3 == 1
    ]
    assert shown(visit) == [toy_site.key_of(row) for row in wanted]


def test_free_text_finds_tasks_websites_and_ids(visit) -> None:
    page = visit.list()
    page.keyboard.press("/")
    page.keyboard.type("LISBON task-3")
    page.wait_for_url("**q=LISBON+task-3")
    assert shown(visit) == [toy_site.key_of(row) for row in range(12, 16)]
    page.locator(".search").fill("action-7")
    page.wait_for_url("**q=action-7")
    assert shown(visit) == [toy_site.key_of(7)]


def test_cost_is_filtered_by_least_and_most(visit) -> None:
    page = visit.list()
    page.get_by_label("Cost, least").fill("0.004")
    page.get_by_label("Cost, most").fill("0.005")
    page.get_by_label("Cost, most").press("Enter")
    page.wait_for_url("**max.cost=0.005*")
    assert shown(visit) == [toy_site.key_of(row) for row in range(N) if row % 10 in (4, 5)]


def test_rank_filters_by_bands(visit) -> None:
    visit.list("?f.rank=5%E2%80%939")
    wanted = [row for row in range(N) if 5 <= row * 7 % 50 <= 9]
    assert shown(visit) == [toy_site.key_of(row) for row in wanted]


def test_a_column_sorts_both_ways_and_back(visit) -> None:
    page = visit.list()
    by_rank = sorted(range(N), key=lambda row: row * 7 % 50)
    head = page.locator("[role=columnheader] button", has_text="Rank")
    head.click()
    assert shown(visit) == [toy_site.key_of(row) for row in by_rank]
    assert page.locator("[role=columnheader]", has_text="Rank").get_attribute("aria-sort") == "ascending"
    head.click()
    assert shown(visit) == [toy_site.key_of(row) for row in reversed(by_rank)]
    head.click()
    assert shown(visit) == [toy_site.key_of(row) for row in range(N)]


def test_the_csv_holds_what_is_shown(visit) -> None:
    page = visit.list("?f.outcome=wrong_op&sort=-rank")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV of these steps").click()
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    wanted = sorted((row for row, one in enumerate(outcomes()) if one == "wrong_op"), key=lambda row: -(row * 7 % 50))
    assert [row["action_uid"] for row in rows] == [f"action-{row}" for row in wanted]
    assert {row["outcome"] for row in rows} == {"wrong_op"}


def test_a_task_without_words_is_called_by_its_id(browser, tmp_path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=4)
    index = json.loads((site / "index.json").read_text())
    index["tasks"]["texts"] = [""]
    index["numbers"] |= {"n_actions": [0] * 4, "n_before": [0] * 4}
    (site / "index.json").write_text(json.dumps(index))
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        visit.list()
        assert set(visit.texts(".window .cell.task")) == {"Task task-0, words not known"}
        assert set(visit.texts(".window .cell.index")) == {"–"}


def test_csv_cells_that_a_spreadsheet_would_run_get_an_apostrophe(browser, tmp_path) -> None:
    site = toy_site.write_site(
        tmp_path / "site", n=4, texts=toy_site.Texts(task='=HYPERLINK("http://evil.example", "x")')
    )
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        page = visit.list()
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV of these steps").click()
        rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text())))
    assert rows[0]["task"] == '\'=HYPERLINK("http://evil.example", "x") 0'


def test_figures_protocol_and_the_word_on_the_sample_stand_on_top(visit) -> None:
    visit.list()
    told = visit.page.locator(".summary").inner_text()
    for wanted in ("25.0 %", "15.0 to 35.0", "protocol seeact", "not the paper's"):
        assert wanted in told


def test_j_and_k_move_and_enter_opens(visit) -> None:
    page = visit.list()
    for key in ("j", "j", "k", "j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".answer")
    assert f"#/step/{toy_site.key_of(1)}" in page.url


def test_f_goes_to_the_next_failure(visit) -> None:
    page = visit.list()
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.closest('.row').dataset.key") == toy_site.key_of(1)


def test_the_question_mark_opens_help_and_escape_closes_it(visit) -> None:
    page = visit.list()
    page.keyboard.press("?")
    assert "next step on which runs disagree" in page.locator("dialog[open]").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("dialog").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_chosen_and_kept(visit, theme) -> None:
    page = visit.list()
    page.get_by_label("Theme").select_option(theme)
    page.reload()
    page.wait_for_selector(".window .row")
    red = page.evaluate("Number(getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/)[0])")
    assert (red > 200) == (theme == "light")


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_nothing_sticks_out_sideways(browser, url, width) -> None:
    with visiting(browser, url, width=width) as visit:
        page = visit.list()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert all(
            box["x"] + box["width"] <= width for one in page.locator(".chip").all() if (box := one.bounding_box())
        )


def test_on_a_phone_the_filters_wait_behind_their_name(browser, url) -> None:
    with visiting(browser, url, width=400) as visit:
        page = visit.list()
        assert not page.locator("[data-facet=outcome]").is_visible()
        page.locator("summary", has_text="Filters").click()
        page.locator("[data-facet=outcome] label", has_text="wrong op").click()
        assert page.locator(".found").inner_text() == f"{outcomes().count('wrong_op')} of {N} steps"


def test_a_run_that_goes_on_is_followed(browser, tmp_path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=8)
    index = json.loads((site / "index.json").read_text())
    running = {
        "done": 3,
        "of": 8,
        "failed": 1,
        "element_accuracy": 0.5,
        "operation_f1": None,
        "step_success": 0.25,
        "cost_usd": 0.5,
        "failures": {"no_reply": 1},
    }
    index["runs"][0] |= {"finished": False, "results": None, "progress": running}
    (site / "index.json").write_text(json.dumps(index))
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        page = visit.list()
        told = page.locator(".progress").inner_text()
        assert "3 of 8 steps done, 1 failed to run" in told
        assert "no reply 1" in told
        running["done"] = 5
        (site / "index.json").write_text(json.dumps(index))
        visit.until("document.querySelector('.progress').innerText.includes('5 of 8')")
