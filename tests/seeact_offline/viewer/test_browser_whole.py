"""Ways through the whole viewer: a person's cause of loss, and a bundle under another web server."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.results.recompute import rescore
from seeact_offline.viewer.bundle import write_bundle
from seeact_offline.viewer.notes import AlsoRightNotes, CauseNotes
from seeact_offline.viewer.server import serving
from seeact_offline.viewer.site import Site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, open_tab

pytestmark = [pytest.mark.slow, *REAL_BROWSER]


def test_a_cause_that_a_person_names_is_kept_and_counted(browser: Any, sample_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "causes.jsonl"
    with (
        closing(Site([sample_run], causes=CauseNotes(file, "Ann"))) as site,
        serving(site) as address,
        open_tab(browser, address.link) as tab,
    ):
        page = tab.page
        page.goto(address.link)
        page.wait_for_selector(".results")
        page.keyboard.press("f")
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer")
        page.locator(".relabel summary").click()
        page.locator(".relabel select").select_option("wrong_annotation")
        page.locator(".relabel input").fill("both buttons do it")
        page.locator(".relabel button").click()
        tab.until("document.querySelector('.relabel [role=status]').textContent === 'Saved.'")
        assert tab.texts(".answer .cause")[1] == "by a person: wrong annotation, Ann: both buttons do it"
        page.keyboard.press("Escape")
        page.locator("[data-facet=person] input[value=wrong_annotation]").check()
        tab.until("document.querySelectorAll('.window .row').length === 1")
        (outcome,) = tab.texts(".window .cell.outcome")
        assert outcome.splitlines()[-1] == "by a person: wrong annotation"
        with page.expect_download() as download:
            page.get_by_role("button", name="CSV of these steps").click()
        (row,) = csv.DictReader(Path(download.value.path()).read_text().splitlines())
        assert (row["person_cause"], row["outcome"] != row["person_cause"]) == ("wrong_annotation", True)
        assert tab.faults == []
    (line,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (line["cause"], line["note"], line["annotator"]) == ("wrong_annotation", "both buttons do it", "Ann")
    counted = rescore(sample_run, causes=file, out=tmp_path / "scored").results
    assert counted["waterfall"]["wrong_annotation"]["steps"] == 1


def test_an_answer_that_a_person_marks_is_kept_and_counted_in_a_second_figure(
    browser: Any, sample_run: Path, tmp_path: Path
) -> None:
    file = tmp_path / "also.jsonl"
    with (
        closing(Site([sample_run], also_right=AlsoRightNotes(file, "Ann"))) as site,
        serving(site) as address,
        open_tab(browser, address.link) as tab,
    ):
        page = tab.page
        page.goto(address.link)
        page.wait_for_selector(".results")
        page.locator("[data-facet=outcome] input[value=wrong_element]").check()
        page.locator(".window .row a").first.click()
        page.get_by_label("This answer is right too").check()
        tab.until("document.querySelector('.also-right [role=status]').textContent.startsWith('Saved.')")
        assert tab.faults == []
    (line,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (len(line["also_right"]), line["annotator"]) == (1, "Ann")
    second = rescore(sample_run, also_right=file, out=tmp_path / "scored").results["also_right"]
    assert second["n_gained"] == 1


def test_a_bundle_is_shown_by_another_web_server(browser: Any, other_run: Path, tmp_path: Path) -> None:
    write_bundle(Site([other_run]), tmp_path / "bundle")
    with _http_server(tmp_path / "bundle") as url, open_tab(browser, url) as tab:
        page = tab.list()
        assert page.locator(".window .row").count() > 0
        page.locator(".window .row a").first.click()
        page.wait_for_selector(".answer")
        tab.until("[...document.images].some(one => one.closest('.stage') && one.naturalWidth)")
        assert tab.faults == []


@contextmanager
def _http_server(folder: Path) -> Iterator[str]:
    words = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield re.search(r"http://\S+/", process.stdout.readline())[0]  # type: ignore[index]
        finally:
            process.terminate()
