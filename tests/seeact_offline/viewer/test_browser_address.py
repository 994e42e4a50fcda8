"""The address holds everything: a link shows the same again, and the browser's own buttons work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Visit, chromium, visiting

pytestmark = REAL_BROWSER


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> Iterator[str]:
    with toy_site.serve(toy_site.write_site(tmp_path_factory.mktemp("site") / "toy", n_runs=2)) as address:
        yield address


@pytest.fixture
def visit(browser, url) -> Iterator[Visit]:
    with visiting(browser, url) as one:
        yield one


def seen(visit: Visit) -> list[str]:
    """What the list shows, in words."""
    return [
        visit.page.locator(".found").inner_text(),
        *visit.texts(".filter-chip"),
        *visit.texts("[aria-sort$=scending]"),
        *visit.texts(".window .row"),
    ]


def test_a_link_shows_the_same_list_again(visit, browser) -> None:
    page = visit.list()
    page.get_by_role("button", name="all disagreements").click()
    page.locator("[data-facet='outcome.B'] label", has_text="ranker miss").click()
    page.locator("[role=columnheader] button", has_text="Website").click()
    page.locator(".search").fill("lisbon")
    page.wait_for_url("**q=lisbon*")
    with visiting(browser, page.url) as other:
        other.page.goto(page.url)
        other.page.wait_for_selector(".window .row")
        assert seen(other) == seen(visit)


def test_a_link_shows_the_same_step_and_group_again(visit, browser) -> None:
    page = visit.step(toy_site.key_of(1), "?run=run-1")
    page.keyboard.press("g")
    page.wait_for_url("**group=A0*")
    with visiting(browser, page.url) as other:
        other.page.goto(page.url)
        other.page.wait_for_selector("g.box.offered")
        assert other.texts("g.box.offered text") == visit.texts("g.box.offered text") == list("ABCDEFGH")
        assert other.page.locator(".answer").count() == 1


def test_runs_of_the_address_are_shown_in_its_order(visit) -> None:
    page = visit.step(toy_site.key_of(1), "?run=run-1&run=run-0")
    assert "run-1" in page.locator(".answer[data-run=A] h2").inner_text()


def test_back_and_forward_walk_through_filters_and_steps(visit) -> None:
    page = visit.list()
    everything = seen(visit)
    page.locator("[data-facet=outcome] label", has_text="wrong op").click()
    filtered = seen(visit)
    page.locator(".window .row a").first.click()
    page.wait_for_selector(".answer")
    page.go_back()
    page.wait_for_selector(".window .row")
    assert seen(visit) == filtered
    page.go_back()
    visit.until("!location.hash.includes('outcome')")
    assert seen(visit) == everything
    page.go_forward()
    page.go_forward()
    page.wait_for_selector(".answer")


def test_the_list_is_where_it_was_on_the_way_back(browser, tmp_path) -> None:
    site = toy_site.write_site(tmp_path / "site", n=400)
    with toy_site.serve(site) as url, visiting(browser, url) as visit:
        page = visit.list()
        page.evaluate("window.scrollTo(0, 9000)")
        visit.until("document.querySelector('.window .row').getAttribute('aria-rowindex') > 100")
        row = page.locator(".window .row").nth(15)
        key = row.get_attribute("data-key")
        row.locator("a").click()
        page.wait_for_selector(".answer")
        page.keyboard.press("Escape")
        page.wait_for_selector(".window .row")
        assert page.evaluate("scrollY") == pytest.approx(9000, abs=600)
        assert page.evaluate("document.activeElement.closest('.row')?.dataset.key") == key


def test_an_address_with_nonsense_shows_the_list(visit) -> None:
    page = visit.list("?run=nobody&sort=nothing&f.colour=red&min.cost=x&max.rank=&group=Z9")
    assert page.locator(".found").inner_text() == "20 of 20 steps"
    assert visit.faults == []


def test_the_token_is_taken_out_of_the_address_and_kept(visit) -> None:
    visit.page.goto(f"{visit.url}#token=secret-1")
    visit.page.wait_for_selector(".window .row")
    assert "secret" not in visit.page.url
    assert visit.page.evaluate("sessionStorage.getItem('seeact-token')") == "secret-1"
