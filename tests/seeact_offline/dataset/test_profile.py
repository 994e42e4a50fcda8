"""`stats --profile`: how like real pages and tasks a data set is."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.profile import REAL, DatasetProfile, dataset_profile, step_figures
from seeact_offline.records import Box, Candidate, Operation, Step
from tests.pages import Stored, picture

PAGE = """<html backend_node_id="1"><a backend_node_id="2"><text backend_node_id="3">Red SHOES</text></a>
<div backend_node_id="4" role="link" aria_label="Go to cart"/><button backend_node_id="5">Go</button>
<input backend_node_id="6" type="text" aria_label="Coupon"/></html>"""
LINK = Candidate("2", "a", Box(0, 0, 100, 20), is_positive=False)
ROLE_LINK = Candidate("4", "div", Box(-100, 0, 100, 20), is_positive=False)
BUTTON = Candidate("5", "button", None, is_positive=False)
FIELD = Candidate("6", "input", Box(1280, 0, 5, 5), is_positive=False)


def right(candidate: Candidate, top: float | None = None) -> Candidate:
    return replace(candidate, is_positive=True, box=candidate.box if top is None else Box(0, top, 9, 9))


def step(task: str, *candidates: Candidate, op: str = "CLICK", height: int = 0) -> Step:
    return Step(
        annotation_id=task,
        action_uid="u",
        task=task,
        history=(),
        website="w",
        domain="d",
        cleaned_html=PAGE,
        operation=Operation(op),
        candidates=candidates,
        screenshot=Stored(picture(1280, height, 0)) if height else None,
    )


def three_tasks() -> list[Step]:
    """Tasks of 1, 4 and 10 steps."""
    shoes, cart, button = "Buy the red shoes", "Put it in my cart, please now", "Go on 12 times"
    return [
        # off page: ROLE_LINK ends at the left edge, FIELD begins at the right one
        step(shoes, right(LINK, top=1001), ROLE_LINK, BUTTON, FIELD, height=3000),
        # off page: FIELD
        step(cart, right(ROLE_LINK, top=1000), LINK, BUTTON, FIELD, height=2000),
        step(cart, right(BUTTON), right(LINK), ROLE_LINK, FIELD),
        step(cart, op="SELECT"),
        # off page: FIELD below the picture, and ROLE_LINK
        step(cart, right(FIELD, top=5000), LINK, ROLE_LINK, BUTTON, op="TYPE", height=1000),
        step(button, right(LINK), ROLE_LINK, BUTTON, FIELD),
        *[step(button, right(BUTTON), LINK, ROLE_LINK, FIELD)] * 9,
    ]


def test_each_figure_is_the_one_counted_by_hand() -> None:
    assert dataset_profile(map(step_figures, three_tasks())) == DatasetProfile(
        elements_a_page=14 * 4 / 15,
        page_height=2000,
        boxes_off_page=5 / 9,
        tasks_of_1_to_4_actions=2 / 3,
        tasks_of_10_or_more_actions=1 / 3,
        select=1 / 15,
        several_positives=1 / 15,
        no_positive=1 / 15,
        link_targets=3 / 15,
        targets_below_1000_px=2 / 15,
        task_words=(4 + 7 + 4) / 3,
        targets_sharing_a_word=2 / 15,
    )


def test_real_page_has_the_height_and_the_boxes_off_page_of_the_real_column(shared_step: Path) -> None:
    profile = dataset_profile(map(step_figures, load_steps(shared_step, "cross_domain")))
    assert (profile.elements_a_page, profile.page_height) == (468, 7412)
    assert profile.boxes_off_page == pytest.approx(REAL["boxes_off_page"].low, abs=0.005)


def test_row_without_a_readable_page_or_picture_counts_with_the_rest() -> None:
    row = replace(step("red", right(LINK, top=1001)), cleaned_html="<a", screenshot=Stored(b"no picture"))
    profile = dataset_profile([step_figures(row)])
    assert (profile.elements_a_page, profile.link_targets, profile.targets_below_1000_px) == (1, 1, 1)
    assert (profile.page_height, profile.boxes_off_page, profile.targets_sharing_a_word) == (None, None, 0)


def test_no_picture_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Image.Image) -> None:
        raise AssertionError("decoded")

    rows = three_tasks()
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", refuse)
    assert dataset_profile(map(step_figures, rows)).page_height == 2000


def test_empty_data_set_has_no_figures() -> None:
    assert set(asdict(dataset_profile([])).values()) == {None}
