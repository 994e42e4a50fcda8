"""The bundled sample: big enough, small enough, cut like the data set, without a fault that is not meant, and rebuilt by its script."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seeact_offline.dataset import SPLITS, load_steps, open_split
from seeact_offline.dataset.lint import lint_split
from seeact_offline.dataset.recorded import RECORDED_COLUMNS, Check
from seeact_offline.dataset.summary import dataset_profile, step_figures
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.recorder.browser import NAMES
from seeact_offline.recorder.sample_building import INCOMPLETE, ORIGIN, site_names
from seeact_offline.recorder.script import TaskScript, load_script
from seeact_offline.records import Step
from seeact_offline.sample import DATA, ROOT, SITES

MOST_BYTES = 25_000_000
TESTS = ("cross_task", "cross_website", "cross_domain")
PROFILE = {
    "elements_a_page": (450, 650),
    "page_height": (4000, 7000),
    "boxes_off_page": (0.1, 0.3),
    "tasks_of_1_to_4_actions": (0.25, 0.4),
    "tasks_of_10_or_more_actions": (0.1, 0.25),
    "select": (0.03, 0.07),
    "several_positives": (0.01, 0.06),
    "no_positive": (0.04, 0.07),
    "link_targets": (0.14, 0.27),
    "targets_below_1000_px": (0.1, 0.16),
    "task_words": (12, 16),
    "targets_sharing_a_word": (0.45, 0.55),
}
"""Least and most of each figure in a test split: those of the real data, and a little more."""


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Step]]:
    return {split: list(load_steps("sample", split)) for split in SPLITS}


def test_the_sample_is_under_its_size() -> None:
    assert sum(path.stat().st_size for path in ROOT.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.slow
def test_there_are_enough_steps_tasks_sites_and_domains(splits) -> None:
    assert len(splits["train"]) >= 400
    for split in TESTS:
        assert len(splits[split]) >= 180
        assert len({step.annotation_id for step in splits[split]}) >= 30
    every = [step for steps in splits.values() for step in steps]
    assert len({step.website for step in every}) >= 14
    assert len({step.domain for step in every}) >= 5


def test_splits_are_cut_as_in_the_data_set(splits) -> None:
    sites = {split: {step.website for step in steps} for split, steps in splits.items()}
    domains = {split: {step.domain for step in steps} for split, steps in splits.items()}
    assert sites["cross_task"] <= sites["train"]
    assert not sites["cross_website"] & sites["train"]
    assert domains["cross_website"] <= domains["train"]
    assert not domains["cross_domain"] & domains["train"]


def test_no_task_is_in_two_splits(splits) -> None:
    tasks = {split: {step.task for step in steps} for split, steps in splits.items()}
    assert sum(map(len, tasks.values())) == len(set().union(*tasks.values()))


def test_no_train_task_does_most_of_what_a_cross_task_one_does() -> None:
    for site in site_names():
        tasks = load_script(SITES / site / "tasks.yaml")
        trained = [doings(task) for task in tasks if task.split == "train"]
        for task in tasks:
            if task.split == "cross_task":
                assert max(len(doings(task) & each) / len(doings(task)) for each in trained) <= 0.5, task.task


def doings(task: TaskScript) -> set[tuple[str, str, str]]:
    """What it does to which elements, as its script says it."""
    return {(action.operation.op, action.operation.value, action.selector.replace('"', "'")) for action in task.actions}


def test_pages_are_as_wide_as_real_ones_and_a_few_are_small_or_without_a_picture(splits) -> None:
    every = [step for steps in splits.values() for step in steps]
    drawn = [step for step in every if step.screenshot is not None]
    assert {PagePicture(step.screenshot).size[0] for step in drawn} == {1280}
    assert 0 < len(every) - len(drawn) < 0.01 * len(every)
    for steps in splits.values():
        assert 0 < sum(len(step.candidates) < 50 for step in steps) < 0.05 * len(steps)


def test_every_task_passes_its_check_at_its_end_and_never_before(splits) -> None:
    for steps in splits.values():
        for task, rows in itertools.groupby(steps, key=lambda step: step.annotation_id):
            checks = [step.recorded.read(Check) for step in rows]
            assert [all(check.before) for check in checks] == [False] * len(checks), task
            assert checks[-1].after is not None, task
            assert all(checks[-1].after), task


@pytest.mark.slow
@pytest.mark.parametrize("split", TESTS)
def test_profile_is_within_its_bounds(splits, split: str) -> None:
    profile = dataset_profile(map(step_figures, splits[split]))
    assert profile.keys() == PROFILE.keys()
    assert {name: profile[name] for name, (low, high) in PROFILE.items() if not low <= profile[name] <= high} == {}


def test_all_operations_occur_in_every_split(splits) -> None:
    for steps in splits.values():
        assert Counter(step.operation.op for step in steps).keys() == {"CLICK", "TYPE", "SELECT"}


def test_what_was_typed_is_on_a_later_page(splits) -> None:
    """Not on every one: a search field may be gone after the next click."""
    typed = seen = 0
    for steps in splits.values():
        by_task = defaultdict(list)
        for step in steps:
            by_task[step.annotation_id].append(step)
        for task in by_task.values():
            for step, following in itertools.pairwise(task):
                if step.operation.op == "TYPE" and step.truth.positives:
                    typed += 1
                    seen += step.operation.value.split()[0] in following.cleaned_html
    assert seen / typed > 0.9


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("split", [pytest.param("train", marks=pytest.mark.nightly), *TESTS])
def test_lint_finds_what_is_meant_and_nothing_else(split: str) -> None:
    found = Counter(fault.name for _, faults in lint_split(open_split("sample", split)) for fault in faults)
    meant = {"no_positive", "box_off_page", "box_beyond_image"} | ({"no_screenshot"} if split in INCOMPLETE else set())
    # a sign-in page of train is nearly empty
    assert found.keys() - {"blank_screenshot"} == meant
    assert found["blank_screenshot"] == (2 if split == "train" else 0)


def test_the_files_are_in_the_hubs_layout(shared_step) -> None:
    real = pq.read_schema(next((shared_step / "data").glob("*.parquet")))
    for path in (DATA / "data").glob("*.parquet"):
        ours = pq.read_schema(path)
        types = {field.name: field.type for field in ours if field.name not in RECORDED_COLUMNS}
        assert types == {field.name: field.type for field in real}


needs_browser = pytest.mark.skipif(
    not any(map(shutil.which, NAMES)), reason=f"no Chromium: none of {', '.join(NAMES)} is on the PATH"
)


@pytest.mark.slow
@needs_browser
@pytest.mark.timeout(300)
def test_a_site_recorded_again_is_the_one_in_the_sample(tmp_path: Path) -> None:
    from seeact_offline.recorder import Recorder
    from seeact_offline.recorder.sample_building import OPTIONS, record_site

    with Recorder(OPTIONS) as recorder:
        version = recorder.version
    if version != json.loads((DATA / ORIGIN).read_text())["browser"]:
        pytest.skip(
            f"the sample was drawn by another browser than {version}, which lays pages out a little differently"
        )
    again = record_site("brindlefix", tasks=2)["cross_domain"]
    stored = pq.read_table(DATA / "data" / "test_domain-00000-of-00001.parquet").to_pylist()
    by_uid = {row["action_uid"]: row for row in stored}
    for row in again:
        kept = by_uid[row["action_uid"]]
        assert {name for name in kept if row[name] != kept[name]} == set()


def test_every_site_has_its_pages_and_tasks() -> None:
    assert all((SITES / name / file).is_file() for name in site_names() for file in ("index.html", "tasks.yaml"))


def test_pages_load_nothing_from_elsewhere() -> None:
    text = "".join(path.read_text() for path in SITES.rglob("*") if path.suffix in {".html", ".js", ".css"})
    links = [line for line in text.splitlines() if "http://" in line or "https://" in line]
    assert [line for line in links if "www.w3.org" not in line] == []
