"""What was right at each step, as a run keeps it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.dataset import load_steps
from seeact_offline.files.formats import FormatError
from seeact_offline.pages.dom import Page
from seeact_offline.records import Box, InputError, RowError, Truth
from seeact_offline.runs.folder import RunFolder, read_target, target_line
from seeact_offline.runs.prepare import target_of

texts = st.text(max_size=8)
ids = st.frozensets(texts, max_size=3)
truths = st.builds(
    Truth,
    annotation_id=texts,
    action_uid=texts,
    op=texts,
    value=texts,
    original_op=texts,
    positives=ids,
    boxes=st.lists(st.builds(Box, *[st.floats(0, 5000)] * 4), max_size=2).map(tuple),
    website=texts,
    domain=texts,
    target=st.none() | texts,
    picture_size=st.none() | st.tuples(st.integers(1, 9), st.integers(1, 9)),
    n_actions=st.integers(0, 30),
    n_before=st.integers(0, 30),
    n_candidates=st.integers(0, 900),
    kin=st.dictionaries(st.sampled_from(["same_text", "overlapping", "neighbour"]), ids, max_size=3),
)


@given(truths)
def test_what_is_written_is_read_again(truth: Truth) -> None:
    assert read_target(target_line(truth)) == truth


def test_a_target_knows_the_picture_and_the_page() -> None:
    step = next(step for step in load_steps("sample", "cross_task") if step.truth.positives)
    truth = target_of(step, lambda: Page(step.cleaned_html))
    assert truth.picture_size is not None
    assert truth.picture_size[0] == 1280
    assert truth.kin["neighbour"]
    assert (truth.n_candidates, truth.n_before) == (len(step.candidates), len(step.history))


def test_a_page_that_cannot_be_read_leaves_the_kin_unknown() -> None:
    step = next(iter(load_steps("sample", "cross_task")))

    def unreadable() -> Page:
        raise RowError("bad_html", "it is none")

    assert target_of(step, unreadable).kin == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"annotation_id": 1}'])
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        read_target(text)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "targets.jsonl").write_text(json.dumps({"annotation_id": "t"}) + "\n")
    with pytest.raises(InputError, match=r"line 1 of .*targets\.jsonl"):
        RunFolder(tmp_path).load_targets()


def test_a_run_from_before_has_no_targets(tmp_path: Path) -> None:
    assert RunFolder(tmp_path).load_targets() == {}
