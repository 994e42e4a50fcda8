"""Each planted fault is found, and a clean row has none."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from seeact_offline.dataset import open_split
from seeact_offline.dataset.lint import FAULTS, Finding, count_by_fault, lint_split
from seeact_offline.dataset.rows import MAX_TEXT_CHARACTERS
from seeact_offline.pages.dom import MAX_TAGS
from seeact_offline.records import Fault
from tests.pages import synthetic_rows, write_parquet

N_STEPS = 3
Row = dict[str, Any]


@pytest.fixture(scope="module")
def clean_rows() -> list[Row]:
    return [dict(row) for row in synthetic_rows(1, N_STEPS, 12, seed=5)]


def findings(rows: list[Row], folder: Path) -> list[list[Fault]]:
    """The faults of each row, in step order."""
    write_parquet(rows, folder / "data" / "test_task-00000-of-00001.parquet")
    return [faults for _, faults in lint_split(open_split(folder, "cross_task"))]


def names(rows: list[Row], folder: Path) -> list[set[str]]:
    return [{fault.name for fault in faults} for faults in findings(rows, folder)]


def edited_candidate(row: Row, side: str, place: int, **changes: Any) -> Row:
    """The row with fields of one candidate, or of its attributes, changed; None takes a field away."""
    listed = list(row[side])
    candidate = json.loads(listed[place])
    attributes = json.loads(candidate["attributes"])
    for name, value in changes.items():
        target = candidate if name in candidate else attributes
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value
    listed[place] = json.dumps({**candidate, "attributes": json.dumps(attributes)})
    return {**row, side: listed}


def boxed(row: Row, rect: str | None) -> Row:
    return edited_candidate(row, "neg_candidates", 0, bounding_box_rect=rect)


def stored(image: Image.Image, kind: str = "PNG") -> Row:
    out = io.BytesIO()
    image.save(out, kind)
    return {"bytes": out.getvalue(), "path": None}


def operation(row: Row, **fields: str) -> str:
    return json.dumps({**json.loads(row["operation"]), **fields})


PLANTED: dict[str, Callable[[Row], Row]] = {
    "no_screenshot": lambda row: {**row, "screenshot": None},
    "bad_screenshot": lambda row: {**row, "screenshot": {"bytes": b"no picture", "path": None}},
    "blank_screenshot": lambda row: {**row, "screenshot": stored(Image.new("L", (1280, 400), 255))},
    "missing_box": lambda row: boxed(row, None),
    "bad_box": lambda row: boxed(row, "1,2,three,4"),
    "empty_box": lambda row: boxed(row, "10,10,0,20"),
    "box_off_page": lambda row: boxed(row, "5000,10,20,20"),
    "box_beyond_image": lambda row: boxed(row, "1200,10,200,20"),
    "bad_html": lambda row: {**row, "cleaned_html": row["cleaned_html"] + "<"},
    "target_not_in_html": lambda row: edited_candidate(row, "pos_candidates", 0, backend_node_id="999999"),
    "missing_candidate": lambda row: edited_candidate(row, "neg_candidates", 0, backend_node_id="999999"),
    "no_positive": lambda row: {**row, "pos_candidates": [], "neg_candidates": row["neg_candidates"] + row["pos_candidates"]},
    "no_candidates": lambda row: {**row, "pos_candidates": [], "neg_candidates": []},
    "duplicate_id": lambda row: {**row, "neg_candidates": [*row["neg_candidates"], row["neg_candidates"][0]]},
    "action_text_mismatch": lambda row: {**row, "target_action_reprs": "[button]  Other -> SELECT: something"},
    "missing_value": lambda row: {
        **row, "operation": operation(row, op="TYPE", original_op="TYPE", value=""), "target_action_reprs": "[input]  x -> TYPE"
    },
    "history_gap": lambda row: {**row, "action_reprs": ["", *row["action_reprs"][1:]]},
    "bad_target_index": lambda row: {**row, "target_action_index": "77"},
    "bad_operation": lambda row: {**row, "operation": "{"},
    "bad_candidates": lambda row: {**row, "neg_candidates": [*row["neg_candidates"], "{"]},
    "missing_field": lambda row: {**row, "confirmed_task": None},
    "bad_text": lambda row: edited_candidate(row, "neg_candidates", 0, tag="a\ud83d"),
    "text_too_long": lambda row: {**row, "confirmed_task": "w " * MAX_TEXT_CHARACTERS},
    "page_too_large": lambda row: {**row, "cleaned_html": row["cleaned_html"].replace("</body>", "<p/>" * MAX_TAGS + "</body>")},
}  # fmt: skip


def test_a_clean_row_has_no_fault(clean_rows, tmp_path) -> None:
    assert names(clean_rows, tmp_path) == [set()] * N_STEPS


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found_in_its_row_alone(clean_rows, tmp_path, name: str) -> None:
    found = names([*clean_rows[:-1], PLANTED[name](clean_rows[-1])], tmp_path)
    planted = next(faults for faults in found if name in faults)
    assert sum(name in faults for faults in found) == 1
    beside = {"no_candidates": {"missing_steps"}, "bad_target_index": {"missing_steps"}}.get(name, set())
    assert planted - beside == {name}


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ([0, 2], [{"missing_steps"}] * 2),
        ([1, 0, 2], [{"out_of_order"}] * N_STEPS),
        ([0, 1, 2, 2], [set()] * N_STEPS + [{"duplicate_step", "near_duplicate"}]),
    ],
)
def test_steps_that_are_missing_misplaced_or_repeated_are_found(
    clean_rows, tmp_path, order: list[int], found: list[set[str]]
) -> None:
    assert names([clean_rows[place] for place in order], tmp_path) == found


def test_a_task_under_another_id_is_a_near_duplicate(clean_rows, tmp_path) -> None:
    again = [
        {**row, "annotation_id": "other", "confirmed_task": row["confirmed_task"].upper() + "!"} for row in clean_rows
    ]
    assert names([*clean_rows, *again], tmp_path) == [set()] * N_STEPS + [{"near_duplicate"}] * N_STEPS


def test_the_same_action_later_in_a_task_is_no_duplicate(clean_rows, tmp_path) -> None:
    action = clean_rows[0]["action_reprs"][0]
    task = [
        {
            **clean_rows[0],
            "action_uid": str(i),
            "target_action_index": str(i),
            "action_reprs": [action] * 2,
            "target_action_reprs": action,
        }
        for i in range(2)
    ]
    assert names(task, tmp_path) == [set()] * 2


def striped(size: tuple[int, int], colour: int, stripe: int, every: int, height: int, right: int) -> Image.Image:
    """A page of one colour with stripes of another."""
    page = Image.new("L", size, colour)
    for y in range(0, size[1], every):
        page.paste(stripe, (0, y, right, y + height))
    return page.convert("RGB")


def noisy() -> Image.Image:
    return Image.effect_noise((1280, 700), 3).point(lambda value: value + 100).convert("RGB")


PICTURES: dict[str, tuple[Callable[[], Image.Image], list[str], bool]] = {
    "small and of one colour": (lambda: Image.new("RGB", (1280, 700), (254, 254, 255)), ["PNG", "JPEG", "WEBP"], True),
    "tall and of one colour": (lambda: Image.new("RGB", (1280, 3000), (254, 254, 255)), ["PNG", "JPEG", "WEBP"], True),
    "nearly of one colour": (lambda: striped((1280, 400), 250, 246, 400, 200, 1280), ["PNG"], True),
    "noise on one colour": (noisy, ["JPEG"], True),
    "tall with text": (lambda: striped((1280, 3000), 255, 20, 60, 14, 360), ["PNG", "JPEG", "WEBP"], False),
}


@pytest.mark.parametrize(
    ("make", "kind", "is_blank"),
    [(make, kind, blank) for make, kinds, blank in PICTURES.values() for kind in kinds],
    ids=[f"{name} {kind}" for name, (_, kinds, _) in PICTURES.items() for kind in kinds],
)
def test_a_blank_page_is_found_in_every_format_and_size(
    clean_rows, tmp_path, make: Callable[[], Image.Image], kind: str, is_blank: bool
) -> None:
    (found,) = names([{**clean_rows[0], "screenshot": stored(make(), kind)}], tmp_path)
    assert ("blank_screenshot" in found) is is_blank


def test_every_fault_is_planted_or_has_a_test_of_its_own() -> None:
    assert FAULTS.keys() - PLANTED.keys() == {"missing_steps", "out_of_order", "near_duplicate", "duplicate_step"}


def test_a_detail_says_how_many_and_whether_targets_are_among_them(clean_rows, tmp_path) -> None:
    row = edited_candidate(clean_rows[-1], "pos_candidates", 0, bounding_box_rect="10,10,0,20")
    fault = findings([*clean_rows[:-1], row], tmp_path)[-1][0]
    assert (fault.name, fault.detail[:33]) == ("empty_box", "1 candidates, 1 of them targets, ")


def test_rows_are_counted_by_fault_and_split() -> None:
    from seeact_offline.records import StepKey

    two = [Finding(StepKey("a", str(i)), "cross_task", (Fault("no_positive", ""),)) for i in range(2)]
    assert count_by_fault(two) == {"no_positive": {"cross_task": 2}}
