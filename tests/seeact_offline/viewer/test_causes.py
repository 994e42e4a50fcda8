"""The file of causes that a person gives in the browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from seeact_offline.records import InputError, Prediction, Reply, StepKey
from seeact_offline.scoring.human_causes import AnswerId, HumanCause, answer_digest, read_causes
from seeact_offline.viewer.causes import Causes

KEY = StepKey("task", "step")
SAID = Prediction(KEY, (Reply(0, ("1",), ("A",), "1", "CLICK", ""),), "1", "CLICK", "")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "causes.jsonl"


def test_a_cause_is_kept_as_scoring_reads_it(path: Path) -> None:
    causes = Causes(path, "Ann")
    relabelled = {"cause": "wrong_annotation", "note": "both do", "annotator": "Ann"}
    body = {"run": 0, "cause": "wrong_annotation", "note": "both do"}
    assert causes.post(KEY, SAID, body) == (200, {"saved": True, "relabelled": relabelled})
    assert causes.of(KEY, SAID) == relabelled
    assert read_causes(path) == {AnswerId(KEY, answer_digest(SAID)): HumanCause("wrong_annotation", "both do", "Ann")}


def test_two_answers_to_a_step_have_causes_of_their_own(path: Path) -> None:
    causes, other = Causes(path), replace(SAID, element_id=None)
    causes.post(KEY, SAID, {"cause": "wrong_op"})
    causes.post(KEY, other, {"cause": "no_element"})
    assert [causes.of(KEY, one)["cause"] for one in (SAID, other)] == ["wrong_op", "no_element"]


def test_a_cause_can_be_forgotten(path: Path) -> None:
    causes = Causes(path)
    causes.post(KEY, SAID, {"cause": "wrong_op"})
    assert causes.post(KEY, SAID, {"cause": None}) == (200, {"saved": True, "relabelled": None})
    assert read_causes(path) == {}


def test_a_file_is_gone_on_with(path: Path) -> None:
    first = Causes(path)
    first.post(KEY, SAID, {"cause": "wrong_op"})
    first.close()
    assert Causes(path).of(KEY, SAID) == {"cause": "wrong_op", "note": "", "annotator": ""}


@pytest.mark.parametrize("body", [{"cause": "success"}, {"cause": 1}, {}, {"cause": "wrong_op", "more": 1}])
def test_what_is_no_cause_is_refused_and_nothing_is_written(path: Path, body: dict[str, object]) -> None:
    status, answer = Causes(path).post(KEY, SAID, body)
    assert (status, path.exists()) == (400, False)
    assert answer["error"].startswith("expected ")


def test_a_file_of_something_else_is_refused_and_let_go(path: Path) -> None:
    path.write_text("{}\n")
    with pytest.raises(InputError, match=r"^causes: "):
        Causes(path)
    path.write_text("")
    Causes(path).close()
