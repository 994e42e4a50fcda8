"""The open web, on websites that this machine serves under names of their own: tasks without a check, and whose verdict they have."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.cli.browse import _ask_verdict
from seeact_offline.live.episodes import Episode
from seeact_offline.live.running import LiveRun, browse
from seeact_offline.recorder.browser import CLOCK
from seeact_offline.recorder.origins import REACHES_ALL, BrowserOptions, environment_proxy
from seeact_offline.recorder.script import load_tasks
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.watch import Watch
from seeact_offline.trajectories import Trajectory, TrajectoryStep, write_trajectories
from seeact_offline.trajectories.judge_runs import judge
from seeact_offline.viewer.server import serving
from seeact_offline.viewer.trajectory_site import TrajectorySite
from tests.scripted import Scripted
from tests.seeact_offline.conftest import Cli
from tests.seeact_offline.live.sites import REAL_BROWSER
from tests.seeact_offline.live.websites import SECRET, Websites, websites, write_login, write_tasks
from tests.seeact_offline.viewer.browsing import chromium, open_tab
from tests.seeact_offline.viewer.conftest import ask, read_json

SAYS = '<tool_call>\n{"name": "computer_use", "arguments": %s}\n</tool_call>'
ACCEPT, SLOW, NEWS, PAY = (
    SAYS % json.dumps({"action": "left_click", "coordinate": [40, y]}) for y in (215, 50, 90, 130)
)
END = SAYS % '{"action": "terminate", "status": "success"}'


@pytest.fixture(scope="module")
def web() -> Iterator[Websites]:
    with websites() as sites:
        yield sites


def run(script: Path, out: Path, *replies: str, allow: Sequence[str] = ("*",), **options: Any) -> LiveRun:
    config = EvalConfig(agent="qwen2.5-vl", model=Scripted(*replies), out=out, concurrency=1)
    return browse(str(script), config=config, allow_origins=allow, **options)


class Notes(Watch):
    """Remembers what a run says."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def first_trajectory(run: LiveRun) -> dict[str, Any]:
    return json.loads((run.path / "trajectories.jsonl").read_text().splitlines()[0])


def first_page(run: LiveRun) -> str:
    """The first page that was asked about, cleaned."""
    return json.loads((run.path / "rows.jsonl").read_text().splitlines()[0])["cleaned_html"]


class TestInABrowser:
    pytestmark = REAL_BROWSER

    def test_a_website_with_a_banner_a_slow_server_a_popup_and_a_redirect(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Pay", "start": web.at()})
        watch = Notes()
        live = run(tasks, tmp_path / "run", SLOW, ACCEPT, NEWS, SAYS % '{"action": "wait"}', END, watch=watch)
        assert [REACHES_ALL in text for text in watch.notes] == [False, True]
        told = [(step.get("action", ""), step["address"]) for step in first_trajectory(live)["steps"]]
        assert [address for _, address in told][:3] == [web.at()] * 3
        assert told[3][1] == web.at("/", "news.localhost")
        assert told[2][0].endswith("; tab 2 opened")
        (one,) = live.episodes
        assert (one.website, one.done, one.verdict_by, one.reached) == ("shop.localhost", None, "", None)
        assert (live.n_failed, live.results.n_unjudged, live.results.verdicts, live.results.success.macro) == (
            0,
            1,
            {},
            None,
        )
        assert (
            "Verdicts: none; without one: 1, which count neither as success nor as failure."
            in (live.path / "report.md").read_text()
        )

    def test_a_page_that_is_slow_to_answer_and_a_redirect_are_waited_for(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Pay", "start": web.at()})
        live = run(tasks, tmp_path / "slow", ACCEPT, SLOW, END)
        assert first_trajectory(live)["steps"][2]["address"] == web.at("/slow")
        live = run(tasks, tmp_path / "pay", ACCEPT, PAY, END)
        assert first_trajectory(live)["steps"][2]["address"] == web.at("/", "pay.localhost")

    def test_a_redirect_to_an_origin_that_was_not_named_is_told(self, web: Websites, tmp_path: Path) -> None:
        allow = [web.at()]
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Pay", "start": web.at()})
        live = run(tasks, tmp_path / "run", ACCEPT, PAY, END, allow=allow)
        refused = f"the address {web.at('/', 'pay.localhost')} is refused, as its origin was not named"
        assert first_trajectory(live)["steps"][1]["action"].endswith(f"; {refused}")
        tasks = write_tasks(tmp_path / "other.json", {"task": "Pay", "start": web.at("/pay")})
        (one,) = run(tasks, tmp_path / "start", allow=allow).episodes
        assert (one.end, one.detail.startswith(refused)) == ("error", True)
        assert not any("pay.localhost" in address for address in web.asked[-3:])

    def test_settings_reach_the_page_and_the_manifest(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Tell", "start": web.at("/me")})
        settings = BrowserOptions(user_agent="Tester/1", locale="de-DE", geolocation=(40.5, -74.0))
        live = run(tasks, tmp_path / "run", END, browser_options=settings, keep_rows=True)
        # the time is the world's
        assert f"Tester/1 | de-DE | 40.5,-74 | {datetime.now(UTC):%Y-%m-}" in first_page(live)
        written = json.loads((live.path / "manifest.json").read_text())["settings"]["browser"]
        assert written == {"user_agent": "Tester/1", "locale": "de-DE", "geolocation": [40.5, -74.0]}

    def test_time_stands_still_where_not_any_address_is_allowed(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Tell", "start": web.at("/me")})
        live = run(tasks, tmp_path / "run", END, allow=[web.at()], keep_rows=True)
        assert f"nowhere | {CLOCK[:10]}" in first_page(live)

    def test_a_stored_login_is_used_and_written_nowhere(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Look", "start": web.at("/account")})
        login = BrowserOptions(storage_state=write_login(tmp_path / "login.json"))
        live = run(tasks, tmp_path / "run", END, browser_options=login, keep_rows=True)
        assert "Hello Ann" in first_page(live)
        assert first_trajectory(live)["steps"][0]["address"] == web.at("/account?session=***")
        files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
        assert len(files) > 5
        assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []

    def test_a_trace_is_kept_for_playwrights_viewer(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path / "tasks.json", {"id": "a", "task": "Look", "start": web.at("/account")})
        run(tasks, tmp_path / "run", END, browser_options=BrowserOptions(trace=True))
        with zipfile.ZipFile(tmp_path / "run" / "traces" / "a.zip") as trace:
            first = json.loads(trace.read("trace.trace").splitlines()[0])
            assert (first["type"], first["browserName"]) == ("context-options", "chromium")
            assert any(web.at("/account").encode() in trace.read(name) for name in trace.namelist())

    def test_a_proxy_of_the_environment_is_used(
        self, web: Websites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{web.port}")
        tasks = write_tasks(tmp_path / "tasks.json", {"task": "Look", "start": "http://shop.example/"})
        live = run(tasks, tmp_path / "run", END)
        assert (live.episodes[0].end, "http://shop.example/" in web.asked) == ("stopped", True)

    def test_a_person_is_asked_once_at_the_end_and_has_the_verdict(self, web: Websites, tmp_path: Path) -> None:
        tasks = write_tasks(
            tmp_path / "tasks.json",
            *({"id": name, "task": f"Task {name}", "start": web.at("/account")} for name in "abc"),
        )
        asked: list[tuple[str, str]] = []

        def person(episode: Episode) -> bool | None:
            asked.append((episode.task.task, episode.last_address))
            return {"a": True, "b": False}.get(episode.task.annotation_id)

        live = run(tasks, tmp_path / "run", END, END, END, ask_verdict=person, annotator="Ann")
        assert asked == [(f"Task {name}", web.at("/account")) for name in "abc"]
        assert [(one.done, one.verdict_by) for one in live.episodes] == [
            (True, "person"),
            (False, "person"),
            (None, ""),
        ]
        assert (live.results.verdicts, live.results.success.macro, live.results.n_unjudged) == ({"person": 2}, 0.5, 1)
        assert "verdicts" not in first_trajectory(live)
        again = run(tasks, tmp_path / "run", ask_verdict=person, annotator="Ann")
        assert (len(asked), again.episodes) == (3, live.episodes)
        assert [json.loads(line)["judge"] for line in (live.path / "people.jsonl").read_text().splitlines()] == [
            "Ann"
        ] * 2

    def test_without_a_check_a_person_judges_in_the_viewer_and_a_judge_by_name(
        self, web: Websites, tmp_path: Path
    ) -> None:
        tasks = write_tasks(
            tmp_path / "tasks.json",
            *({"id": name, "task": f"Task {name}", "start": web.at("/account")} for name in "ab"),
        )
        folder = run(tasks, tmp_path / "run", END, END).path
        with (
            chromium() as browser,
            serving(TrajectorySite([folder], "Ann")) as address,
            open_tab(browser, address.link) as tab,
        ):
            tab.page.goto(address.link)
            tab.page.click("text=Task a")
            tab.page.get_by_label("Reason").fill("Hello is there")
            tab.page.get_by_role("button", name="Success", exact=True).click()
            tab.until("document.querySelector('.judge [role=status]').textContent === 'Saved.'")
            assert tab.texts(".verdicts li")[0].split("\n")[0].endswith("Ann: success label")
            assert tab.faults == []
        by_person = run(tasks, tmp_path / "run")
        assert [(one.done, one.verdict_by) for one in by_person.episodes] == [(True, "person"), (None, "")]

        replies = ["1. Open the account", "Reasoning: it shows.\nScore: 5", "Thoughts: no.\nStatus: failure"] * 2
        config = EvalConfig(model=Scripted(*replies), out=tmp_path / "judged", concurrency=1)
        judged = judge(folder, judge="webjudge", config=config)
        assert [one.verdict for one in judged.judgements] == [False, False]
        # a person's verdict is the label that the judge is compared with
        assert [(one.trajectory, one.judge, one.verdict) for one in judged.labels] == [("a", "Ann", True)]
        by_both = run(tasks, tmp_path / "run", judged=tmp_path / "judged")
        assert by_both.results.verdicts == {"person": 1, "judge webjudge": 1}
        assert by_both.results.success.macro == 0.5
        assert "Verdicts: person 1, judge webjudge 1." in (folder / "report.md").read_text()


# --- without a browser ---


def test_the_viewers_server_takes_verdicts_from_its_own_page_alone(tmp_path: Path) -> None:
    folder = _run_folder(tmp_path)
    site = TrajectorySite([folder], "Ann")
    episode, tried_again = read_json(site, "index.json")["episodes"]
    path = f"/verdict/{episode['key']}"
    with serving(site) as address:
        own = {
            "Origin": f"http://127.0.0.1:{address.port}", "X_Seeact_Token": address.token, "Content_Type": "application/json",
        }  # fmt: skip
        answers = [
            ask(address, path, "POST", json.dumps(body).encode(), **headers).status
            for body, headers in (
                ({"success": True}, {**own, "X_Seeact_Token": "another"}),
                ({"success": "yes"}, own),
                ({"success": False, "note": "no"}, own),
            )
        ]
    assert answers == [403, 400, 200]
    (line,) = (folder / "people.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "trajectory": "a", "judge": "Ann", "verdict": False, "detail": "no", "source": "person",
    }  # fmt: skip
    assert read_json(site, f"episode/{episode['key']}.json")["verdicts"][0]["by"] == "Ann"
    assert site.post(path.removeprefix("/"), {"success": None})[0] == 200
    assert (folder / "people.jsonl").read_text() == ""
    assert site.post(f"verdict/{tried_again['key']}", {"success": True})[0] == 404
    # nobody may write into a copy for others
    assert TrajectorySite([folder]).post(path.removeprefix("/"), {"success": True})[0] == 404


def _run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    write_trajectories(
        folder, [Trajectory(name, name, f"Task {name}", (TrajectoryStep("Click [3]"),)) for name in "ab"]
    )
    ends = {"a": "stopped", "b": "error"}
    lines = [json.dumps({"annotation_id": name, "end": end}) for name, end in ends.items()]
    (folder / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("tasks", "starts"),
    [
        (
            [
                {"website": "https://us.trip.example/?locale=en-us", "task_id": "1", "confirmed_task": "Book"},
                {"website": "drugs.example", "task_id": "2", "confirmed_task": "Read"},
            ],
            [("us.trip.example", "https://us.trip.example/?locale=en-us"), ("drugs.example", "https://drugs.example")],
        ),
        (
            [
                {
                    "task_id": "1_110325", "confirmed_task": "Book", "website": "https://www.a.example/", "reference_length": 5,
                    "level": "easy",
                },
            ],
            [("www.a.example", "https://www.a.example/")],
        ),
    ],
    ids=["SeeAct", "Online-Mind2Web"],
)  # fmt: skip
def test_published_tasks_are_read(tasks: list[dict[str, Any]], starts: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    read = load_tasks(path)
    assert [(task.annotation_id, task.task) for task in read] == [
        (task["task_id"], task["confirmed_task"]) for task in tasks
    ]
    assert [(task.website, task.start) for task in read] == starts
    assert not any(task.actions or task.check for task in read)


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        (
            [{"task_id": "1", "confirmed_task": "Book"}],
            "expected the fields task_id, confirmed_task, website, got 'task_id, confirmed_task' in task 0 of",
        ),
        (
            [{"task_id": "1", "confirmed_task": "Book", "website": "drugs"}],
            "a URL or a host under 'website', got 'drugs'",
        ),
        ([{"task_id": "1", "confirmed_task": "A", "website": "a.example"}] * 2, "expected every task_id once, got '1'"),
    ],
)
def test_a_wrong_published_task_is_named(tasks: list[dict[str, Any]], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(InputError, match=sentence):
        run(tmp_path / "tasks.json", tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"headed": True}, "`headed` needs a display"),
        ({"storage_state": "login", "trace": True}, "cannot be combined with `storage_state`"),
        (
            {"storage_state": "broken"},
            "storage_state: expected Playwright's storage state, .*, got something else in ",
        ),
    ],
)
def test_settings_that_cannot_be_used_are_refused_without_their_secrets(
    settings: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    tasks = write_tasks(tmp_path / "tasks.json", {"task": "Look", "start": "http://shop.example/"})
    write_login(tmp_path / "login")
    (tmp_path / "broken").write_text(json.dumps({"cookies": [{"value": SECRET}]}))
    named = {name: tmp_path / value if isinstance(value, str) else value for name, value in settings.items()}
    with pytest.raises(InputError, match=sentence) as refused:
        run(tasks, tmp_path / "run", browser_options=BrowserOptions(**named))
    assert SECRET not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_the_proxy_has_its_login_and_the_hosts_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    assert environment_proxy() is None
    monkeypatch.setenv("HTTPS_PROXY", "http://ann:p%40ss@proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert environment_proxy() == {
        "server": "http://proxy.example:3128", "bypass": "127.0.0.1,inside.example", "username": "ann", "password": "p@ss",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "verdict"), [("y\n", True), (" N \n", False), ("\n", None), ("perhaps\ny\n", True), ("\x04", None)]
)
def test_the_terminal_asks_for_a_verdict(
    lines: str,
    verdict: bool | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (task,) = load_tasks(write_tasks(tmp_path / "tasks.json", {"task": "Buy", "start": "http://shop.example/"}))
    person, terminal = os.openpty()
    os.write(person, lines.encode())
    with os.fdopen(person, "wb"), os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert (
            _ask_verdict(Episode(task, end="answered", answer="Yes", last_address="http://shop.example/x")) is verdict
        )
    assert "Buy\nEnded (answered) on http://shop.example/x\nAnswer: Yes" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--verdict", "ask"), "--verdict asks in a terminal, and standard input is none"),
        (("--verdict", "nowhere"), "--verdict: expected "),
        (("--annotator", "Ann"), "--annotator needs --verdict ask"),
        (("--geolocation", "95,0"), "expected LAT,LON in degrees, such as 40.7,-74.0, got 95,0"),
        (("--model", "builtin/oracle"), "builtin/oracle needs steps; task 'Look' has none"),
    ],
)
def test_what_does_not_go_together_is_said(words: tuple[str, ...], sentence: str, tmp_path: Path, cli: Cli) -> None:
    tasks = write_tasks(tmp_path / "tasks.json", {"task": "Look", "start": "http://shop.example/"})
    options = ("--allow-origin", "*", "--agent", "webvoyager", "--out", tmp_path / "run")
    assert sentence in cli("browse", tasks, *options, *words).error
    assert not (tmp_path / "run").exists()
