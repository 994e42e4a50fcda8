"""Pages that never settle, and pages that reach for what the user did not name, in the real browser."""

from __future__ import annotations

import http.server
import io
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from seeact_offline.dataset.writing import to_row, write_hub_parquet
from seeact_offline.recorder import Recorder, RecordOptions, browser, load_script
from seeact_offline.recorder.browser import NAMES
from seeact_offline.recorder.script import TaskScript
from seeact_offline.records import InputError, StepError
from tests.seeact_offline.recorder.test_browser import PAGE, write_script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not any(map(shutil.which, NAMES)), reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
    ),
    pytest.mark.timeout(180),
]


class Site:
    """A local server that answers every path, and remembers them; `/away` redirects elsewhere."""

    def __init__(self, page: str = "<body style='background: #f00'>secret", away: str = "") -> None:
        self.asked: list[str] = []
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                self.send_response(302 if self.path.startswith("/away") else 200)
                if self.path.startswith("/away"):
                    self.send_header("Location", away)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(page.encode())

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Site:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def allowed():
    with Site() as site:
        yield site


@pytest.fixture(scope="module")
def recorder(allowed):
    options = RecordOptions(picture="png", timeout_s=20.0, deadline_s=8.0, allow_origins=(allowed.url,))
    with Recorder(options) as open_recorder:
        yield open_recorder


# Pages that never settle


CLICK = {"op": "CLICK", "selector": "h1"}
UNSETTLED = {
    "fonts": "<script>Object.defineProperty(document, 'fonts', {value: {ready: new Promise(() => {})}})</script>",
    "frames": "<script>window.requestAnimationFrame = () => 0</script>",
}
ENDLESS = {
    "while it loads": "<script>while (true);</script>",
    "once it has loaded": "<script>onload = () => setTimeout(() => { while (true); }, 100)</script>",
    "when clicked": "<style>#blue { display: none }</style><script>onclick = () => { while (true); }</script>",
    "with nothing to wait for": "<script>document.fonts.ready.then = () => 0; window.setTimeout = () => 0; Promise.race = () => new Promise(() => {})</script>",
}  # fmt: skip


@pytest.mark.parametrize("script", UNSETTLED.values(), ids=UNSETTLED)
def test_a_page_whose_fonts_or_frames_never_come_is_recorded_all_the_same(
    recorder, tmp_path, monkeypatch, script
) -> None:
    monkeypatch.setattr(browser, "REST_S", 1.0)
    task = load_script(write_script(tmp_path, [CLICK], PAGE + script))[0]
    assert len(recorder.record(task)) == 1


@pytest.mark.parametrize(
    "when", [pytest.param(when, marks=[] if when == "when clicked" else pytest.mark.nightly) for when in ENDLESS]
)
def test_a_page_that_never_ends_fails_its_step_and_the_next_task_is_recorded(
    recorder, tmp_path, monkeypatch, when
) -> None:
    monkeypatch.setattr(recorder, "_options", replace(recorder._options, deadline_s=4.0))
    with pytest.raises(StepError, match=r"step [12] of 2 of task 'Try everything': not done within 4 s$"):
        recorder.record(load_script(write_script(tmp_path / "hangs", [CLICK, CLICK], PAGE + ENDLESS[when]))[0])
    assert len(recorder.record(load_script(write_script(tmp_path / "next", [CLICK]))[0])) == 1


# What a page can reach


def probes(url: str) -> str:
    """A page that tries to reach another origin in every way that a page has."""
    socket = url.replace("http:", "ws:")
    by_name = url.replace("127.0.0.1", "localhost")
    return f"""<body><h1>Shop</h1><img src="{url}/img"><iframe src="{url}/frame"></iframe><iframe src="/away"></iframe>
    <link rel=stylesheet href="{url}/css"><link rel=preload as=fetch href="{url}/preload"><iframe src="{by_name}/name"></iframe>
    <script src="{url}/js"></script><object data="{url}/object"></object><form action="{url}/form" target=f></form><iframe name=f></iframe>
    <script>fetch("{url}/fetch", {{mode: "no-cors"}}).catch(() => 0); navigator.sendBeacon("{url}/beacon"); new WebSocket("{socket}/ws");
    new Worker(URL.createObjectURL(new Blob(["fetch('{url}/worker', {{mode: 'no-cors'}})"]))); window.open("{url}/popup");
    new EventSource("{url}/events"); document.forms[0].submit()</script>"""


def script_at(folder: Path, url: str) -> Path:
    return write_script(folder, [CLICK], start=url)


def test_no_request_reaches_another_origin(recorder, tmp_path) -> None:
    with Site() as other, Site(probes(other.url), f"{other.url}/redirected") as named:
        recorder.record(load_script(script_at(tmp_path, f"{named.url}/page"))[0])
        assert ("/page" in named.asked, "/away" in named.asked, other.asked) == (True, True, [])
        assert other.url in recorder.refused


def test_an_origin_that_is_allowed_is_reached(recorder, allowed, tmp_path) -> None:
    with Site(probes(allowed.url), f"{allowed.url}/redirected") as named:
        recorder.record(load_script(script_at(tmp_path, f"{named.url}/page"))[0])
    assert {"/img", "/frame", "/redirected", "/css", "/js", "/fetch", "/ws", "/worker"} <= set(allowed.asked)
    assert "/name" not in allowed.asked


@pytest.mark.parametrize(
    "origin", ["", "localhost", "file:///etc", "http://", "ftp://a", "http://a b", "http://a,MAP%20*", "http://*"]
)
def test_what_is_no_origin_is_refused_by_name(origin: str) -> None:
    with pytest.raises(InputError, match="allow_origin: expected a URL of http or https with a host, got"):
        Recorder(RecordOptions(allow_origins=(origin,)))


@pytest.fixture(params=["file", "folder"])
def reaching(request, tmp_path) -> TaskScript:
    """A task whose page tries to show files that lie elsewhere."""
    red = "<body style='background: #f00; height: 999px'>secret"
    (tmp_path / "secret.html").write_text(red)
    site = tmp_path / "site"
    (site / "more").mkdir(parents=True)
    (site / "linked.html").symlink_to(tmp_path / "secret.html")
    (site / "up").symlink_to(tmp_path)
    (site / "more" / "index.htm").symlink_to(tmp_path / "secret.html")
    os.mkfifo(site / "pipe.html")
    places = [
        (tmp_path / "secret.html").as_uri(), "file:///etc/passwd", "../secret.html", "..%2fsecret.html", "linked.html",
        "up/secret.html", "more/", "pipe.html",
    ]  # fmt: skip
    frames = "".join(f'<iframe src="{place}"></iframe><embed src="{place}">' for place in places)
    start = {"file": "index.html", "folder": "."}[request.param]
    return load_script(write_script(site, [CLICK], f"<body><h1>Shop</h1>{frames}", start=start))[0]


def test_no_file_outside_the_folder_is_shown(recorder, reaching) -> None:
    picture = Image.open(io.BytesIO(recorder.record(reaching)[0].screenshot)).convert("RGB")
    assert (255, 0, 0) not in {colour for _, colour in picture.getcolors(1 << 24)}


@pytest.mark.parametrize("route", ["", "#/route"])
def test_a_file_is_recorded_with_what_lies_beside_it(recorder, tmp_path, route) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a page.html").write_text("<body><h1>Shop</h1><script src='x.js'></script>")
    (tmp_path / "sub" / "real.js").write_text("document.body.append(`Beside it, at (${location.hash})`)")
    (tmp_path / "sub" / "x.js").symlink_to(tmp_path / "sub" / "real.js")
    start = f"sub/a page.html{route}"
    task = load_script(write_script(tmp_path, [CLICK], start=start))[0]
    assert f"Beside it, at ({route})" in recorder.record(task)[0].cleaned_html


def test_half_a_character_on_a_page_can_be_written(recorder, tmp_path) -> None:
    page = PAGE + "<script>document.querySelector('h1').append(String.fromCharCode(0xd800))</script>"
    record = recorder.record(load_script(write_script(tmp_path, [CLICK], page))[0])[0]
    assert write_hub_parquet([to_row(record)], tmp_path / "data" / "train-00000-of-00001.parquet") == 1
