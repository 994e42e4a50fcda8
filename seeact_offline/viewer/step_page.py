"""A step's row of the data set, read as far as it can be, and what every view shows of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Any

from seeact_offline.pages.dom import TEXT, Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.records import Candidate, CropBox, RowError, Step, StepKey

if TYPE_CHECKING:
    from PIL import Image

PART_HEIGHT = 2048
"""Most pixels from the top of a part of a page to its bottom: the first is seen before the others are encoded."""


def step_name(key: StepKey) -> str:
    """Name of a step in names of files: 16 hexadecimal digits."""
    return hashlib.sha256(str(key).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def image_name(key: StepKey, content: str) -> str:
    """Name of a picture of a step. `content`: the same for the same picture."""
    return f"img/{step_name(key)}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.webp"


def page_parts(size: tuple[int, int]) -> list[CropBox]:
    """A page of this width and height from its top down, in parts of about the same height."""
    width, height = size
    n = max(1, ceil(height / PART_HEIGHT))
    cuts = [round(height * i / n) for i in range(n + 1)]
    return [CropBox(0, top, width, bottom) for top, bottom in pairwise(cuts)]


@dataclass(frozen=True)
class StepPage:
    """A step with its page and picture; None for each that cannot be read."""

    step: Step

    @cached_property
    def page(self) -> Page | None:
        try:
            return Page(self.step.cleaned_html)
        except RowError:
            return None

    @cached_property
    def picture(self) -> PagePicture | None:
        try:
            picture = PagePicture(self.step.screenshot) if self.step.screenshot is not None else None
            return picture if picture is not None and picture.size else None
        except RowError:
            return None

    @property
    def problems(self) -> list[str]:
        return [f"The row has a fault, {fault.name}: {fault.detail}." for fault in self.step.faults]

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """The candidates by node, in the order of the row."""
        return {c.backend_node_id: c for c in self.step.candidates}

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """The first words of each candidate, as groups of choices have them."""
        page = self.page
        ids = [] if page is None else [node for node in self.candidates if node in page.ids]
        if page is None or not ids:
            return {}
        try:
            page.check_describable(ids)
            return dict(page.describe_group(ids).choices)
        except RowError:
            return {}

    @cached_property
    def paths(self) -> dict[str, str]:
        """Place of each element: `html > body > div:2 > a`; the number tells it from siblings of the same tag."""
        if self.page is None:
            return {}
        nodes = list(self.page.nodes())
        alike = Counter((node.parent, node.tag) for node in nodes)
        before: Counter[tuple[int, str]] = Counter()
        written: list[str] = []
        found: dict[str, str] = {}
        for node in nodes:
            kind = node.parent, node.tag
            before[kind] += 1
            own = f"{node.tag}:{before[kind]}" if alike[kind] > 1 else node.tag
            written.append(f"{written[node.parent]} > {own}" if node.parent >= 0 else own)
            if node.backend_node_id and node.tag != TEXT:
                found.setdefault(node.backend_node_id, written[-1])
        return found

    def element(self, node: str, text: str = "") -> dict[str, Any]:
        """An element as JSON. `text`: its description, where a better one is known than the page's own."""
        candidate = self.candidates.get(node)
        return {
            "id": node,
            "tag": candidate.tag if candidate is not None else "",
            "box": list(candidate.box) if candidate is not None and candidate.box is not None else None,
            "text": text or self.descriptions.get(node, ""),
            "path": self.paths.get(node, ""),
        }

    def picture_json(self, images: dict[str, Callable[[], Image.Image]]) -> dict[str, Any] | None:
        """The picture in parts as JSON; None where it cannot be read. Adds the pixels of each part to `images`."""
        return None if self.picture is None else picture_json(self.step.key, self.picture, images)


def picture_json(key: StepKey, picture: PagePicture, images: dict[str, Callable[[], Image.Image]]) -> dict[str, Any]:
    """A picture in parts as JSON. Adds the pixels of each part to `images`. Raises RowError for one that cannot be read."""
    width, height = picture.size
    parts = []
    for box in page_parts(picture.size):
        name = image_name(key, f"{picture.digest} part {box}")
        images[name] = partial(picture.part, box)
        parts.append({"top": box.y0, "height": box.y1 - box.y0, "src": name})
    return {"width": width, "height": height, "parts": parts}
