"""Trajectories in the browser: the list and its filters, a task as a strip of its pages, and texts that stay texts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.records import Box, Fault
from seeact_offline.runs.config import EvalConfig
from seeact_offline.trajectories import Trajectory, TrajectoryStep, Verdict, write_trajectories
from seeact_offline.trajectories.judge_runs import judge
from seeact_offline.viewer.server import serving
from seeact_offline.viewer.trajectory_site import TrajectorySite
from seeact_offline.viewer.whole_tasks import CHANGED, MISSING
from tests.pages import picture
from tests.seeact_offline.conftest import Cli
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Tab, open_tab
from tests.seeact_offline.viewer.conftest import ask, read_json

IN_A_BROWSER = [pytest.mark.slow, *REAL_BROWSER]
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202eevil"
PICTURE = StoredScreenshot(picture(400, 3000, 200))


def trajectory(name: str, success: bool | None, **more: Any) -> Trajectory:
    steps = (
        TrajectoryStep("Click [3]", "So.", "/a.html", PICTURE, "the whole reply", Box(40, 2500, 100, 30)),
        TrajectoryStep("click (9, 9); not carried out: nothing there", "", "/b.html", PICTURE, "", Box(9, 9, 0, 0)),
        TrajectoryStep("", "", "/c.html", PICTURE),
    )
    verdicts = (Verdict("state", success, "check", "answered"), Verdict("webvoyager", True, "model"))
    known = {"task": f"Task {name}", "steps": steps, "verdicts": verdicts, "website": "shop", "agent": "webvoyager~m"}
    return Trajectory(name, name, **{**known, **more})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of `browse` as its files have it, and a task whose texts are hostile."""
    path = tmp_path_factory.mktemp("runs") / "live"
    hostile = trajectory(
        "c", None, task=HOSTILE, website=HOSTILE, agent=HOSTILE, answer=HOSTILE, verdicts=(Verdict(HOSTILE, True, "model", HOSTILE),),
        steps=(TrajectoryStep(HOSTILE, HOSTILE, HOSTILE, None, HOSTILE, Box(1e9, -5, float(2**40), 3)),), faults=(Fault("bad", HOSTILE),),
    )  # fmt: skip
    write_trajectories(path, [trajectory("a", True, answer="It is done."), trajectory("b", False), hostile])
    ends = {"a": "answered", "b": "limit", "c": HOSTILE}
    lines = [
        {"annotation_id": name, "end": end, "cost_usd": 0.25, "calls": 2, "detail": ""} for name, end in ends.items()
    ]
    (path / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = {"places": "sites", "agent": "webvoyager", "model": "m", "split": "cross_task"}
    (path / "manifest.json").write_text(json.dumps({"settings": settings}))
    return path


@pytest.fixture
def opened(browser: Any, folder: Path) -> Iterator[Tab]:
    with serving(TrajectorySite([folder])) as address, open_tab(browser, address.url, width=400) as tab:
        tab.page.goto(address.url)
        tab.page.wait_for_selector("tbody tr")
        yield tab


class TestInABrowser:
    pytestmark = IN_A_BROWSER

    def test_the_list_is_filtered_by_end_and_verdict(self, opened: Tab) -> None:
        assert opened.texts("tbody .task")[:2] == ["Task b", "Task a"]
        opened.page.select_option("select[name=end]", "limit")
        assert opened.texts("tbody .task") == ["Task b"]
        opened.page.select_option("select[name=end]", "")
        opened.page.select_option("select[name=verdict]", "state: success")
        assert opened.texts("tbody .task") == ["Task a"]
        # the filter stays in the address, and with the task that is opened
        opened.page.click("tbody a")
        opened.page.wait_for_selector(".frames")
        assert opened.texts("nav .faint") == ["1 of 1"]

    def test_a_live_run_begins_with_its_success_rate(self, opened: Tab) -> None:
        assert opened.texts(".live") == ["50.0 % success 9.5 to 90.5, 2 tasks · webvoyager · m · cross_task · live"]

    def test_keys_go_through_the_tasks_and_an_empty_search_is_cleared(self, opened: Tab) -> None:
        page = opened.page
        page.keyboard.press("j")
        page.keyboard.press("j")
        assert page.evaluate("document.activeElement.textContent") == "Task a"
        page.keyboard.press("Enter")
        page.wait_for_selector(".frames")
        page.keyboard.press("Escape")
        page.wait_for_selector("tbody.tasks")
        page.keyboard.press("/")
        page.keyboard.type("zeppelin")
        assert opened.texts(".empty") == ["No task holds “zeppelin”. Clear the search"]
        page.get_by_role("button", name="Clear the search").click()
        assert len(opened.texts("tbody .task")) == 3

    def test_a_task_is_a_strip_of_its_pages_with_the_place_acted_on(self, opened: Tab) -> None:
        opened.page.click("text=Task a")
        opened.page.wait_for_selector(".frames")
        assert opened.texts(".frame h2") == [
            "1Click [3]",
            "2click (9, 9); not carried out: nothing there",
            "3the last page",
        ]
        assert opened.page.locator(".frame").nth(1).locator("h2").get_attribute("class") == "no"
        box = opened.page.locator(".frame").first.locator("rect.line")
        assert [box.get_attribute(name) for name in ("x", "y", "width", "height")] == ["40", "2500", "100", "30"]
        assert opened.page.locator(".frame").nth(1).locator("circle.line").count() == 2
        # a long page is shown where it was acted on
        opened.until("document.querySelector('.sight').scrollTop > 500")
        opened.until("[...document.querySelectorAll('.sight img')].some((one) => one.naturalWidth === 400)")
        assert "It is done." in opened.texts(".answer")[0]
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
        assert opened.faults == []

    def test_hostile_texts_stay_texts(self, opened: Tab) -> None:
        opened.page.locator("tbody a").nth(2).click()
        opened.page.wait_for_selector(".frames")
        shown = "\n".join(opened.texts("main"))
        assert shown.count("<script>alert(2)</script>⟨U+202E⟩evil") >= 6
        assert opened.page.locator("main img, main script").count() == 0
        assert opened.faults == []

    def test_disagreements_come_first_and_a_task_shows_the_replies(
        self, browser: Any, two_judges: tuple[Path, Path, Path]
    ) -> None:
        with serving(TrajectorySite(two_judges[1:])) as address, open_tab(browser, address.url, width=400) as tab:
            tab.page.goto(address.url)
            tab.page.wait_for_selector("tbody tr")
            assert tab.texts("tbody .task") == ["Task b", "Task c", "Task a"]
            assert tab.texts(".judges tbody tr")[1].split() == ["strict", "3", "0", "0", "66.7", "%", "2", "of", "3"]
            tab.page.select_option("select[name=agreement]", "differs from the label")
            assert tab.page.locator("h1").count() == 1
            tab.page.click("text=Task b")
            tab.page.wait_for_selector(".frames")
            assert tab.texts(".verdicts pre") == [
                "All is done.\nSUCCESS",
                "Status: failure",
            ]
            assert tab.page.locator("h1").count() == 1
            assert tab.faults == []


def test_nothing_is_served_but_what_is_there(folder: Path) -> None:
    site = TrajectorySite([folder])
    key = read_json(site, "index.json")["episodes"][0]["key"]
    with serving(site) as address:
        status = {
            name: ask(address, f"/{name}").status
            for name in (f"episode/{key}.json", "episode/../manifest.json", "img/x.webp")
        }
    assert status == {f"episode/{key}.json": 200, "episode/../manifest.json": 404, "img/x.webp": 404}


def test_a_run_that_is_not_finished_shows_its_finished_episodes(tmp_path: Path) -> None:
    write_trajectories(tmp_path / "trajectories" / "b", [trajectory("b", None)])
    assert [one["task"] for one in read_json(TrajectorySite([tmp_path]), "index.json")["episodes"]] == ["Task b"]


def test_a_copy_for_others_is_whole_and_of_the_bundled_websites_alone(folder: Path, tmp_path: Path, cli: Cli) -> None:
    assert cli("view", folder, "--bundle", tmp_path / "site").status == 0
    index = json.loads((tmp_path / "site" / "index.json").read_text())
    for one in index["episodes"]:
        frames = json.loads((tmp_path / "site" / "episode" / f"{one['key']}.json").read_text())["frames"]
        parts = [part["src"] for frame in frames if frame["picture"] for part in frame["picture"]["parts"]]
        assert all((tmp_path / "site" / part).is_file() for part in parts)
    write_trajectories(tmp_path / "own", [trajectory("a", True)])
    assert "add --with-data" in cli("view", tmp_path / "own", "--bundle", tmp_path / "other").error
    assert cli("view", tmp_path / "own", "--bundle", tmp_path / "other", "--with-data").status == 0


@pytest.mark.slow
def test_recorded_steps_and_their_options_do_not_go_with_trajectories(
    folder: Path, sample_run: Path, tmp_path: Path, cli: Cli
) -> None:
    outcome = cli("view", folder, sample_run, "--bundle", tmp_path / "site")
    assert f"whole tasks have a page of their own: seeact-offline view {folder}" in outcome.err
    assert json.loads((tmp_path / "site" / "index.json").read_text())["mode"] == "runs"
    assert "is of recorded steps" in cli("view", folder, "--dataset", "sample").error


# --- judged ---


def judged(folder: Path, out: Path, name: str, replies: Mapping[str, str], **options: Any) -> Path:
    """A folder of `judge` with a reply for each task."""

    async def model(messages: Sequence[Any]) -> str:
        text = "\n".join(one.text for one in messages)
        return next(reply for task, reply in replies.items() if f"Task {task}" in text)

    judge(folder, judge=name, config=EvalConfig(model=model, out=out), **options)
    return out


@pytest.fixture(scope="module")
def two_judges(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Trajectories that a person labelled, and the verdicts of two judges on them: they part on b, and both differ from the label of c."""
    path = tmp_path_factory.mktemp("judged")
    verdicts = [("a", True), ("b", True), ("c", False)]
    labelled = [trajectory(name, None, verdicts=(Verdict("Ann", ok, "person"),)) for name, ok in verdicts]
    write_trajectories(path / "own", labelled)
    yes, no = "Status: success", "Status: failure"
    first = judged(path / "own", path / "first", "strict", dict.fromkeys("abc", "All is done.\nSUCCESS"))
    second = judged(path / "own", path / "second", "agenttrek", {"a": yes, "b": no, "c": yes})
    return path / "own", first, second


def test_verdicts_of_several_judges_stand_beside_the_labels(two_judges: tuple[Path, Path, Path]) -> None:
    _, first, second = two_judges
    site = TrajectorySite([first, second])
    episodes = read_json(site, "index.json")["episodes"]
    assert [[(v["by"], v["success"], v["label"]) for v in one["verdicts"]] for one in episodes] == [
        [("Ann", True, True), ("strict", True, False), ("agenttrek", True, False)],
        [("Ann", True, True), ("strict", True, False), ("agenttrek", False, False)],
        [("Ann", False, True), ("strict", True, False), ("agenttrek", True, False)],
    ]
    episode = read_json(site, f"episode/{episodes[1]['key']}.json")
    assert [one.get("reply", "") for one in episode["verdicts"]][1:] == [
        "All is done.\nSUCCESS",
        "Status: failure",
    ]
    assert [frame["picture"] is not None for frame in episode["frames"]] == [True] * 3
    assert episode["problems"] == []


def test_verdicts_are_shown_without_their_trajectories_until_these_are_named(
    two_judges: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    own, first, _ = two_judges
    verdicts, moved = shutil.copytree(first, tmp_path / "verdicts"), shutil.copytree(own, tmp_path / "moved")
    manifest = json.loads((verdicts / "manifest.json").read_text())
    manifest["settings"]["source"] = "nowhere/own"
    (verdicts / "manifest.json").write_text(json.dumps(manifest))

    def opened(*folders: Path) -> tuple[list[str], int]:
        site = TrajectorySite(folders)
        (*_, last) = read_json(site, "index.json")["episodes"]
        episode = read_json(site, f"episode/{last['key']}.json")
        return [*site.problems.values(), *episode["problems"]], len(episode["frames"])

    problems, n_frames = opened(verdicts)
    assert (n_frames, "name the folder of its trajectories" in problems[0], problems[1]) == (0, True, MISSING)
    assert opened(verdicts, moved) == ([], 3)
    assert str(tmp_path) not in TrajectorySite([verdicts]).get("index.json").content.decode()  # type: ignore[union-attr]


def test_constructed_copies_and_changed_trajectories_are_told(tmp_path: Path) -> None:
    write_trajectories(tmp_path / "own", [trajectory("a", True), trajectory("b", True)])
    reply = dict.fromkeys("ab", "SUCCESS")
    judged(tmp_path / "own", tmp_path / "out", "strict", reply, constructed=True)
    site = TrajectorySite([tmp_path / "out"])
    ids = {one["id"]: one["key"] for one in read_json(site, "index.json")["episodes"]}
    assert {"a", "a~cut", "b~other_task"} <= ids.keys()
    assert read_json(site, f"episode/{ids['a~cut']}.json")["problems"] == ["It was made from a real one: cut."]
    write_trajectories(tmp_path / "own", [trajectory("a", True, answer="Another."), trajectory("b", True)])
    site = TrajectorySite([tmp_path / "out"])
    assert read_json(site, f"episode/{ids['a']}.json")["problems"] == [CHANGED]
