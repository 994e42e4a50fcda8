"""Makes the documentation's pictures of the viewer: `make pictures`, or `python -m tests.pictures`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import seeact_offline as so
from seeact_offline.viewer.server import serving
from seeact_offline.viewer.site import Site
from seeact_offline.viewer.site_files import static_files
from tests.seeact_offline.viewer.browsing import chromium, open_tab

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
DIGEST = FOLDER / "pictures.json"
"""Holds the digest of what the pictures were made from."""
GROUNDINGS = ("choice", "attributes")
SIZE = {"width": 1280, "height": 800}


def source_digest() -> str:
    """The digest of the viewer's page, and of this file, which chooses what is shown."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name, file in static_files().items():
        digest.update(name.encode() + file.content)
    return digest.hexdigest()


def make_pictures(folder: Path) -> None:
    """Writes `viewer.png`, a step of one run, and `viewer-two-runs.png`, the list of two."""
    with tempfile.TemporaryDirectory() as place:
        runs = [
            so.evaluate(split="cross_website", grounding=grounding, out=Path(place) / f"lexical-{grounding}").path
            for grounding in GROUNDINGS
        ]
        with chromium() as browser:
            for name, shown in (("viewer", runs[:1]), ("viewer-two-runs", runs)):
                with serving(Site(shown)) as address, open_tab(browser, address.link) as tab:
                    tab.page.set_viewport_size(SIZE)
                    tab.page.goto(address.link)
                    # the runs are checked, too
                    tab.page.wait_for_selector(".check.good, .check.part, .check.bad")
                    tab.page.wait_for_selector(".window .row")
                    if name == "viewer":
                        tab.page.locator("[data-facet=outcome] input[value=wrong_element]").check()
                        tab.page.keyboard.press("f")
                        tab.page.keyboard.press("Enter")
                        tab.until("[...document.images].some(one => one.closest('.stage') && one.naturalWidth)")
                    tab.page.wait_for_timeout(1500)
                    tab.page.screenshot(path=folder / f"{name}.png")


if __name__ == "__main__":
    make_pictures(FOLDER)
    DIGEST.write_text(json.dumps({"made_from": source_digest()}) + "\n")
    print(f"viewer.png, viewer-two-runs.png and {DIGEST.name} in {FOLDER}")
