"""Views that compare: figures of filtered steps, many runs, a task's steps, differences of replies, charts, copies."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.scoring import aggregate
from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Tab, open_tab
from tests.seeact_offline.viewer.toy_site import key_of, outcome_of

pytestmark = [pytest.mark.slow, *REAL_BROWSER]
N = 40
WRONG = 1
"""The row of a step with a wrong element."""


@pytest.fixture(scope="module")
def url(toy_url: Callable[..., str]) -> str:
    return toy_url(n=N, n_runs=2)


@pytest.fixture(scope="module")
def five(browser: Any, toy_url: Callable[..., str]) -> Iterator[Tab]:
    """Five runs in a window of 1280 x 800."""
    with open_tab(browser, toy_url(n=N, n_runs=5)) as tab:
        tab.page.set_viewport_size({"width": 1280, "height": 800})
        yield tab


def called(tab: Tab, module: str, call: str, *values: Any) -> Any:
    """The values of a function of a module of the page, for each of these arguments."""
    return tab.page.evaluate(
        f"async (all) => {{ const m = await import('./{module}'); return all.map((one) => m.{call}); }}", list(values)
    )


# --- figures of the filtered steps ---


def made_up_tasks(seed: int) -> list[list[float]]:
    rng = random.Random(seed)
    rate, isF1 = rng.choice([0.0, 0.1, 0.5, 1.0]), seed % 3 == 0
    draw: Callable[[], float] = (lambda: round(rng.random(), 3)) if isF1 else (lambda: float(rng.random() < rate))
    return [[draw() for _ in range(rng.randint(1, 9))] for _ in range(rng.randint(2, 60))]


def test_intervals_are_those_of_the_report(tab: Tab) -> None:
    tab.list()
    drawn = [*map(made_up_tasks, range(40)), [[1.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.0]] * 9 + [[1.0]]]
    found = called(tab, "figures.js", "estimateOf(one.tasks, one.average)", *(
        {"tasks": tasks, "average": average} for tasks in drawn for average in ("macro", "micro")
    ))  # fmt: skip
    for tasks, (macro, micro) in zip(drawn, zip(found[::2], found[1::2], strict=True), strict=True):
        named = {str(number): values for number, values in enumerate(tasks)}
        metric, of_micro = aggregate.metric(named), aggregate.micro_interval(named)
        assert macro["value"] == pytest.approx(metric.macro)
        assert micro["value"] == pytest.approx(metric.micro)
        assert macro["ci95"] == pytest.approx(metric.ci95, abs=1e-7)
        assert micro["ci95"] == pytest.approx(of_micro.ci95, abs=1e-7)


def test_figures_are_of_the_steps_that_pass_the_filters(tab: Tab) -> None:
    page = tab.list("?f.website=booknest")
    rows = [row for row in range(N) if row // 4 % 3 == 1]
    tasks: dict[int, list[bool]] = {}
    for row in rows:
        tasks.setdefault(row // 4, []).append(outcome_of(0, row) == "success")
    macro = sum(sum(one) / len(one) for one in tasks.values()) / len(tasks)
    assert f"{100 * macro:.1f} %" in page.locator(".brief").first.inner_text()
    page.locator(".filtered > summary").click()
    page.locator(".filtered table").wait_for()
    page.locator("[data-facet=website] input[value=booknest]").uncheck()
    assert set(tab.texts(".filtered .wide:nth-child(2) tbody th")) == {"avelora 16", "booknest 12", "cinemaro 12"}
    assert tab.faults == []


# --- search ---


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("?within=replies&run=run-0&q=wrong_op+element", [row for row in range(N) if outcome_of(0, row) == "wrong_op"]),
        ("?within=replies&q=%22VALUE%3A+None+wrong_op%22", [row for row in range(N) if "wrong_op" in (outcome_of(0, row), outcome_of(1, row))]),
        ("?within=prompts&q=use%3F+1&f.website=booknest", [row for row in range(N) if row // 4 % 3 == 1]),
        ("?within=prompts&q=nowhere+Lisbon", []),
    ],
)  # fmt: skip
def test_replies_and_prompts_are_searched(tab: Tab, query: str, rows: list[int]) -> None:
    page = tab.list(f"{query}&sort=task")
    found = f"{len(rows)} of {N} steps"
    tab.until(f"document.querySelector('.found').innerText === '{found}'")
    assert tab.keys() == [key_of(row) for row in rows]
    assert page.get_by_label("Search in").input_value() in query
    assert tab.faults == []


def test_a_step_opens_where_the_search_is_found(tab: Tab) -> None:
    page = tab.step(key_of(WRONG), "?within=replies&q=search+BUTTON")
    tab.until("CSS.highlights.get('found')?.size >= 2")
    assert page.locator(".conversation[data-run=A] .group[open]").count() == 2


# --- many runs ---


def test_the_list_of_five_runs_starts_above_the_fold_and_keeps_its_widths(five: Tab) -> None:
    page = five.list()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    first = page.locator(".window .row").first.bounding_box()
    filters = page.locator(".filters").bounding_box()
    assert first is not None
    assert filters is not None
    assert (first["y"] + first["height"] < 800, filters["width"]) == (True, 232)
    assert page.locator(".window .row").first.locator(".chip").count() == 5


@pytest.mark.parametrize("width", [400, 1280])
def test_the_figures_of_ten_runs_scroll_beside_their_names(
    browser: Any, toy_url: Callable[..., str], width: int
) -> None:
    with open_tab(browser, toy_url(n=N, n_runs=10), width=width) as tab:
        page = tab.list()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        rows = page.locator(".runs tbody tr")
        assert rows.count() == 10
        box = page.get_by_role("group", name="Figures of the runs")
        assert box.evaluate("one => one.scrollHeight <= one.clientHeight")
        box.evaluate("one => one.scrollTo(one.scrollWidth, 0)")
        name, last = (rows.last.locator(one).bounding_box() for one in ("th", "td:last-child"))
        assert name is not None
        assert last is not None
        assert name["x"] >= 0
        assert last["x"] + last["width"] <= width
        page.locator(".settings > summary").click()
        assert page.locator(".settings td").evaluate_all("all => Math.min(...all.map((one) => one.offsetWidth))") >= 120
        assert tab.faults == []


def test_five_runs_are_tabs_of_a_step(five: Tab) -> None:
    page = five.step(key_of(WRONG))
    assert page.locator(".answer").count() == 1
    page.get_by_role("tab").nth(2).click()
    assert page.locator(".answer").get_attribute("data-run") == "C"
    page.keyboard.press("ArrowRight")
    assert page.locator(".answer").get_attribute("data-run") == "D"
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    page.keyboard.press("g")
    assert page.locator(".conversation").get_attribute("data-run") == "A"
    assert five.faults == []


# --- the matrix of steps by runs ---

ELEVEN, STEPS = 11, 1000
SOLVERS = [sum(outcome_of(run, row) == "success" for run in range(ELEVEN)) for row in range(STEPS)]


@pytest.fixture
def eleven(browser: Any, toy_url: Callable[..., str]) -> Callable[[int], Any]:
    """Eleven runs of 1,000 steps in a window of a width."""
    return lambda width: open_tab(browser, toy_url(n=STEPS, n_runs=ELEVEN), width=width)


@pytest.mark.parametrize("width", [1280, 400])
def test_a_matrix_of_eleven_runs_fits_the_window(eleven: Callable[[int], Any], width: int) -> None:
    with eleven(width) as tab:
        page = tab.list("?sort=task")
        page.get_by_role("button", name="Matrix").click()
        tab.until("document.querySelectorAll('.matrix .window .row').length > 20")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.texts(".matrix .head .cell.outcome") == list("ABCDEFGHIJK")
        row = page.locator(f".window .row[data-key='{key_of(WRONG)}']")
        marks = row.locator(".square").evaluate_all("all => all.map(one => one.textContent)")
        assert marks == ["✓" if outcome_of(run, WRONG) == "success" else "✗" for run in range(ELEVEN)]
        # marks lie beside each other, large enough to be told apart, and inside the row
        boxes = [row.locator(".square").nth(run).bounding_box() for run in range(ELEVEN)]
        assert all(box["width"] >= 18 and abs(box["y"] - boxes[0]["y"]) < 1 for box in boxes)
        assert boxes[-1]["x"] + boxes[-1]["width"] <= width
        assert row.locator(".cell.task").bounding_box()["width"] >= 80
        assert row.locator(".square").first.get_attribute("title") == "A: wrong element"
        assert tab.faults == []


def test_a_matrix_sorts_and_filters_by_who_solves_a_step(eleven: Callable[[int], Any]) -> None:
    with eleven(1280) as tab:
        page = tab.list("?view=matrix&sort=-solvers")
        tab.until("document.querySelectorAll('.matrix .window .row').length > 20")
        most = [row for row in range(STEPS) if SOLVERS[row] == max(SOLVERS)]
        assert tab.keys()[:10] == [key_of(row) for row in most[:10]]
        page.locator(".head .cell.outcome button").nth(2).click()
        assert "sort=outcome.C" in page.evaluate("location.hash")
        page.locator("[data-facet=solvers] input[value='0']").check()
        none = SOLVERS.count(0)
        tab.until(f"document.querySelector('.found').innerText === '{none} of 1,000 steps'")
        assert page.locator(".window .square.good").count() == 0
        # the address holds it all
        page.reload()
        page.wait_for_selector(".matrix")
        tab.until(f"document.querySelector('.found').innerText === '{none} of 1,000 steps'")
        page.get_by_role("button", name="Matrix").click()
        page.wait_for_selector(".table:not(.matrix)")
        assert tab.faults == []


def test_steps_that_one_run_alone_solves_are_a_filter(tab: Tab, toy_url: Callable[..., str]) -> None:
    tab.url = toy_url(n=N, n_runs=3)
    tab.list("?view=matrix&f.alone=C&sort=task")
    alone = [row for row in range(N) if [outcome_of(run, row) == "success" for run in range(3)] == [False, False, True]]
    assert tab.keys() == [key_of(row) for row in alone]
    assert "C: run-2" in " ".join(tab.texts("[data-facet=alone] .option"))


def test_of_hundreds_of_values_the_most_frequent_are_filters_in_their_order(tab: Tab) -> None:
    tab.list()
    facet = "{id: 'a', title: 'A', values: [...'pqrst'], row: one, label: (value) => value, meanings: {}, most: 3}"
    app = f"{{table: {{facets: [{facet}], columns: [], runs: [0]}}, index: {{runs: [{{name: 'run'}}]}}}}"
    (found,) = called(
        tab,
        "filters.js",
        f"Filters && ((panel) => [[...panel.querySelectorAll('.option .name')].map((name) => name.textContent), panel.querySelector('p').textContent])(new m.Filters({app}).element)",
        [0, 1, 1, 2, 3, 3, 3, 4, 4],
    )
    assert found == [["q", "s", "t"], "2 more, of fewer steps"]


def test_two_runs_have_no_matrix(tab: Tab) -> None:
    page = tab.list("?view=matrix")
    assert page.locator(".matrix, .matrix-switch, [data-facet=solvers]").count() == 0


def test_a_filter_stays_under_the_pointer(tab: Tab, toy_url: Callable[..., str]) -> None:
    tab.url = toy_url(n=400)
    page = tab.list()
    page.evaluate("scrollTo(0, 9000)")
    tab.until("document.querySelector('.window .row').getAttribute('aria-rowindex') > 100")
    box = page.locator("[data-facet=domain] input").first
    box.scroll_into_view_if_needed()
    before = box.bounding_box()
    for _ in range(2):
        box.click()
        page.wait_for_timeout(50)
        assert box.bounding_box() == pytest.approx(before, abs=1)
        assert page.evaluate("document.activeElement.name") == "domain"
    other = page.locator("[data-facet=op] input").nth(1)
    before = other.bounding_box()
    page.locator("[data-facet=website] input").first.click()
    assert other.bounding_box() == pytest.approx(before, abs=1)


# --- a step ---


def overlaps(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] < b[2] - 1 and b[0] < a[2] - 1 and a[1] < b[3] - 1 and b[1] < a[3] - 1


def test_target_and_choice_are_in_sight_and_no_label_lies_on_another_or_on_its_element(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    tab.until("[...document.images].filter(i => i.closest('.stage')).every(i => i.complete && i.naturalWidth)")
    corners = "all => all.map(one => one.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    view = page.locator(".scroller").evaluate_all(corners)[0]
    assert view[3] <= 860
    for kind in ("target", "choice"):
        left, top, right, bottom = page.locator(f"g.box.{kind} .line").first.evaluate_all(corners)[0]
        assert view[0] <= left < right <= view[2]
        assert view[1] <= top < bottom <= min(view[3], 860)
    page.keyboard.press("g")
    labels = page.locator("g.label .plate").evaluate_all(corners)
    own = page.locator("g.box.target .line").evaluate_all(corners)[0]
    assert len(labels) == 11
    assert [(a, b) for i, a in enumerate(labels) for b in labels[:i] if overlaps(a, b)] == []
    assert not any(overlaps(own, one) for one in labels)


def test_focus_stays_on_the_way_to_the_next_step(tab: Tab) -> None:
    page = tab.step(key_of(WRONG), "?sort=task")
    page.get_by_label("Next step (j)").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{key_of(WRONG + 1)}*")
    tab.until("document.activeElement.getAttribute('aria-label') === 'Next step (j)'")
    page.get_by_label("Other candidates").check()
    assert page.evaluate("document.activeElement.type") == "checkbox"


def test_a_task_is_a_strip_of_its_steps_with_pictures(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    assert [text.split()[0] for text in tab.texts(".film li")] == ["1", "2", "3", "4"]
    page.locator(".film input").check()
    tab.until("document.querySelectorAll('.thumb .box.target').length === 4")
    page.locator(".film a").nth(2).click()
    page.wait_for_url(f"**{key_of(2)}*")
    tab.until("document.querySelector('.film [aria-current]')?.innerText.startsWith('3')")
    assert tab.faults == []


TEXTS = [
    ("", ""), ("a b", "a b"), ("ELEMENT: B\nACTION: CLICK", "ELEMENT: C\nACTION: CLICK"), ("x", ""), ("", "x y"),
    ("the quick fox " * 400, "the slow fox " * 400), ("\u202ehidden \U0001f600", "\U0001f600 hidden"), ("a " * 9000, "b " * 9000),
]  # fmt: skip


def test_a_difference_leads_from_one_text_to_the_other(tab: Tab) -> None:
    tab.list()
    for (before, after), pieces in zip(TEXTS, called(tab, "replies.js", "difference(...one)", *TEXTS), strict=True):
        assert "".join(one["text"] for one in pieces if one["kind"] != "ins") == before
        assert "".join(one["text"] for one in pieces if one["kind"] != "del") == after
    changed = called(tab, "replies.js", "difference(...one)", TEXTS[2])[0]
    assert [one["text"] for one in changed if one["kind"] != "same"] == [" B", " C"]


def test_two_replies_are_compared_on_the_step_page(tab: Tab) -> None:
    page = tab.step(key_of(WRONG))
    page.locator(".difference > summary").click()
    tab.until("document.querySelector('.difference').innerText.includes('The two are the same.')")
    page.get_by_label("From the reply").select_option("0")
    assert tab.texts(".difference pre del") == ["The search button."]
    assert tab.texts(".difference pre ins")[0].startswith("ELEMENT: B")


def test_ids_commands_and_prompts_are_copied(browser: Any, url: str) -> None:
    with open_tab(browser, url, permissions=["clipboard-read", "clipboard-write"]) as tab:
        page = tab.step(key_of(WRONG))
        command = "seeact-offline show --dataset sample --split cross_task --grounding choice --top-k 10 --step task-0_action-1"
        for name, text in (("Copy id", "task-0_action-1"), ("Copy show command", command), ("Copy prompt", "Which element is the next one to use? 1")):  # fmt: skip
            page.get_by_role("button", name=name).and_(page.locator(":visible")).first.click()
            tab.until("[...document.querySelectorAll('.copier')].some(one => one.innerText.includes('Copied'))")
            assert page.evaluate("navigator.clipboard.readText()") == text
            page.wait_for_timeout(20)
            page.evaluate("document.querySelectorAll('.copier [role=status]').forEach(one => one.replaceChildren())")


# --- whole runs ---


@pytest.mark.parametrize("width", [400, 1280])
def test_no_label_of_a_chart_is_clipped(browser: Any, tmp_path: Path, width: int) -> None:
    loss = {"steps": 12345, "macro": 0.2, "micro": 0.2}
    site = toy_site.write_site(tmp_path / "site", n=8, n_runs=5)
    index = json.loads((site / "index.json").read_text())
    for run in index["runs"]:
        run["results"]["waterfall"] = {"no_positive": loss, "ranker_miss": loss, "right_element_in_another_group": loss}
    (site / "index.json").write_text(json.dumps(index))
    with toy_site.serve(site) as url, open_tab(browser, url, width=width) as tab:
        page = tab.list()
        page.locator(".charts > summary").click()
        page.wait_for_selector(".chart")
        clipped = """all => all.filter((one) => {
          const [own, chart] = [one, one.closest("svg")].map((node) => node.getBoundingClientRect());
          return own.left < chart.left - 1 || own.right > chart.right + 1 || own.bottom > chart.bottom + 2;
        }).map((one) => one.textContent)"""
        assert page.locator(".chart text").count() > 40
        assert page.locator(".chart text").evaluate_all(clipped) == []
        # nothing scrolls inside: all of a chart is on the page
        assert page.locator(".chart-row").evaluate("one => one.scrollHeight <= one.clientHeight")


def test_charts_and_settings_stand_above_the_list(tab: Tab) -> None:
    page = tab.list()
    page.locator(".charts > summary").click()
    tab.until("document.querySelector('.charts').textContent.includes('ceiling 80.0')")
    told = page.locator(".charts").text_content() or ""
    for wanted in ("not offered by the ranker (4)", "−20.0", "ceiling 80.0", "A B 80.0 %"):
        assert wanted in told
    page.locator(".settings > summary").click()
    page.locator(".settings .differs-here").first.wait_for()
    assert tab.texts(".settings .differs-here")[0].split() == ["top", "k", "10", "50"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert tab.faults == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_borders_of_controls_stand_out(tab: Tab, theme: str) -> None:
    page = tab.list()
    page.get_by_label("Theme").select_option(theme)
    colours = page.locator(".search").evaluate(
        "one => [getComputedStyle(one).borderTopColor, getComputedStyle(one).backgroundColor, getComputedStyle(document.documentElement).backgroundColor]"
    )
    edge, *grounds = (luminance(one) for one in colours)
    assert all((max(edge, one) + 0.05) / (min(edge, one) + 0.05) >= 3 for one in grounds)


def luminance(colour: str) -> float:
    """Of WCAG 2, from `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
