"""`stats`: the figures of the paper's Table 1, and how like real pages and tasks a data set is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.summary import LIKENESS, DatasetStats, dataset_profile, dataset_stats, step_figures
from seeact_offline.models.tokens import count_words, full_size_visual_tokens, visual_tokens
from seeact_offline.records import Box, Candidate, Operation, Step
from seeact_offline.scoring.paper_tables import paper_table
from tests.conftest import SHARED_DATA
from tests.pages import Stored, picture, synthetic_rows, write_parquet


def stats_of(rows: Iterable[Mapping[str, Any]], folder: Path) -> DatasetStats:
    path = write_parquet(rows, folder / "train-00000-of-00001.parquet")
    return dataset_stats(load_steps(path, "train"), "train", count_words)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1024, 1024), 765),
        ((2048, 4096), 1105),
        # the two examples that OpenAI's guide works out
        ((1280, 7412), 765),
        ((512, 512), 255),
        ((513, 512), 425),
        ((1, 100_000), 765),
    ],
)
def test_visual_tokens_follow_the_published_rule(size: tuple[int, int], tokens: int) -> None:
    assert visual_tokens(size) == tokens


def test_no_picture_reaches_the_papers_figures_by_the_published_rule() -> None:
    sizes = [(width, height) for width in range(1, 4200, 61) for height in range(1, 12000, 173)]
    assert max(map(visual_tokens, sizes)) == 1445


def test_full_size_tokens_are_those_of_the_page_as_it_is() -> None:
    assert full_size_visual_tokens((1280, 7412)) == 3 * 15 * 170 + 85


def test_real_step_gives_the_figures_of_its_page(shared_step: Path) -> None:
    stats = dataset_stats(load_steps(shared_step, "cross_domain"), "cross_domain", count_words)
    assert (stats.tasks, stats.steps, stats.elements_a_page) == (1, 1, 468)
    assert (stats.visual_tokens, stats.visual_tokens_at_full_size) == (765, 7735)


def test_counts_tasks_sites_and_averages(tmp_path: Path) -> None:
    stats = stats_of(synthetic_rows(8, 3, 12, seed=1), tmp_path)
    assert (stats.tasks, stats.steps, stats.actions_a_task) == (8, 24, 3)
    assert (stats.domains, stats.subdomains, stats.websites, stats.elements_a_page) == (3, 3, 7, 12)


def test_html_tokens_are_those_of_the_named_tokenizer(tmp_path: Path) -> None:
    path = write_parquet(synthetic_rows(2, 1, 5, seed=1), tmp_path / "train.parquet")
    pages = [step.cleaned_html for step in load_steps(path, "train")]
    stats = dataset_stats(load_steps(path, "train"), "train", len)
    assert stats.html_tokens_a_page == sum(map(len, pages)) / 2


def test_words_are_letters_digits_by_three_and_single_marks() -> None:
    assert count_words('<a id="12345">Zürich now_</a>') == len('< a id = " 123 45 " > Zürich now _ < / a >'.split())


def test_no_picture_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Image.Image) -> None:
        raise AssertionError("decoded")

    rows = list(synthetic_rows(1, 2, 5, seed=1))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", refuse)
    assert stats_of(rows, tmp_path).visual_tokens is not None


def test_faulty_rows_are_counted_by_name_and_kept(tmp_path: Path) -> None:
    rows = list(synthetic_rows(1, 3, 5, seed=1))
    rows[0]["screenshot"] = None
    rows[1]["screenshot"] = {"bytes": b"no picture", "path": None}
    rows[1]["operation"] = "{}"
    stats = stats_of(rows, tmp_path)
    assert stats.faults == {"no_screenshot": 1, "bad_screenshot": 1, "bad_operation": 1}
    assert (stats.steps, stats.faulty_rows) == (3, 2)


def test_average_over_nothing_is_none(tmp_path: Path) -> None:
    rows = [{**row, "screenshot": None, "cleaned_html": ""} for row in synthetic_rows(1, 1, 5, seed=1)]
    stats = stats_of(rows, tmp_path)
    assert (stats.html_tokens_a_page, stats.visual_tokens, stats.visual_tokens_at_full_size) == (None, None, None)


def test_empty_data_set_has_no_averages() -> None:
    stats = dataset_stats([], "train", count_words)
    assert (stats.tasks, stats.actions_a_task, stats.elements_a_page) == (0, None, None)


def test_shipped_table_is_the_papers() -> None:
    if not (SHARED_DATA / "paper_tables.json").is_file():
        pytest.skip("the paper's tables are not here: ../shared/data/paper_tables.json does not exist")
    table = json.loads((SHARED_DATA / "paper_tables.json").read_text())["table1"]
    names = table.pop("columns")
    assert paper_table(1)["splits"] == {split: dict(zip(names, values, strict=True)) for split, values in table.items()}


# --- likeness ---

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
    assert dataset_profile(map(step_figures, three_tasks())) == {
        "elements_a_page": 14 * 4 / 15,
        "page_height": 2000,
        "boxes_off_page": 5 / 9,
        "tasks_of_1_to_4_actions": 2 / 3,
        "tasks_of_10_or_more_actions": 1 / 3,
        "select": 1 / 15,
        "several_positives": 1 / 15,
        "no_positive": 1 / 15,
        "link_targets": 3 / 15,
        "targets_below_1000_px": 2 / 15,
        "task_words": (4 + 7 + 4) / 3,
        "targets_sharing_a_word": 2 / 15,
    }


def test_real_page_has_the_height_and_the_boxes_off_page_of_the_real_column(shared_step: Path) -> None:
    profile = dataset_profile(map(step_figures, load_steps(shared_step, "cross_domain")))
    assert (profile["elements_a_page"], profile["page_height"]) == (468, 7412)
    assert profile["boxes_off_page"] == pytest.approx(LIKENESS["boxes_off_page"].low, abs=0.005)


def test_row_without_a_readable_page_or_picture_counts_with_the_rest() -> None:
    row = replace(step("red", right(LINK, top=1001)), cleaned_html="<a", screenshot=Stored(b"no picture"))
    profile = dataset_profile([step_figures(row)])
    assert (profile["elements_a_page"], profile["link_targets"], profile["targets_below_1000_px"]) == (1, 1, 1)
    assert (profile["page_height"], profile["boxes_off_page"], profile["targets_sharing_a_word"]) == (None, None, 0)


def test_no_picture_is_decoded_for_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Image.Image) -> None:
        raise AssertionError("decoded")

    rows = three_tasks()
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", refuse)
    assert dataset_profile(map(step_figures, rows))["page_height"] == 2000


def test_empty_data_set_has_no_likeness() -> None:
    assert set(dataset_profile([]).values()) == {None}
