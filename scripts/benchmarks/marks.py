"""The largest group is marked on the picture, and a page searched by attributes, in a blink."""

from __future__ import annotations

import argparse

from benchmarks.frame import Line, timed

# marks on the picture
LARGEST_GROUP = 17


def measure(options: argparse.Namespace) -> list[Line]:
    """Marks the largest group of the split's largest page and searches that page by attributes; best of ten, warm."""
    from seeact_offline.dataset import load_steps
    from seeact_offline.grounding.annotation import MarkedCrop
    from seeact_offline.pages.dom import Page
    from seeact_offline.pages.marks import Marks, mark_labels
    from seeact_offline.pages.outlines import visible
    from seeact_offline.pages.screenshots import PagePicture, group_crop
    from seeact_offline.pages.search import PageSearch

    steps = load_steps(*(options.also or ("sample", "cross_website")))
    step = max(steps, key=lambda step: len(step.candidates))
    if step.screenshot is None:
        raise SystemExit(f"marks: expected a screenshot, step {step.key} has none")
    picture, page = PagePicture(step.screenshot), Page(step.cleaned_html)
    boxes = [box for c in step.candidates if c.box and (box := visible(c.box, picture.size))]
    # as tall as a group can be: every seventeenth part of the page has one
    boxes = sorted(boxes, key=lambda box: box.y)[:: max(1, len(boxes) // LARGEST_GROUP)][:LARGEST_GROUP]
    crop = picture.crop(group_crop(boxes, picture.size))
    marks = MarkedCrop(crop, boxes, mark_labels("number", len(boxes)), Marks())
    crop.image()

    def search() -> None:
        PageSearch(page.nodes(), [c.backend_node_id for c in step.candidates]).find("BUTTON", "show all of the results")

    group = f"{len(boxes)} marks on {crop.size[0]} x {crop.size[1]}"
    marking_s = min(timed(marks.image).wall_s for _ in range(10))
    searching_s = min(timed(search).wall_s for _ in range(10))
    n_elements = sum(1 for _ in page.nodes())
    return [
        Line(f"marking a group ({group}), best of 10", 1000 * marking_s, "ms", at_most=150),
        Line(f"a first search by attributes ({n_elements} elements), best of 10", 1000 * searching_s, "ms", at_most=20),
    ]
