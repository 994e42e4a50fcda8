"""What a person says that steps were lost to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

import seeact_offline as so
from seeact_offline.records import InputError, Prediction, Reply, StepKey, StepScore
from seeact_offline.results.recompute import rescore
from seeact_offline.scoring.human_causes import (
    AnswerId,
    HumanCause,
    answer_digest,
    cause_line,
    read_causes,
    relabelled,
)
from seeact_offline.scoring.waterfall import HUMAN_CAUSES, LEFT_OUT, NO_ROW
from tests.pages import synthetic_rows, write_parquet

KEY = StepKey("task", "step")
SAID = Prediction(*KEY, "1", "CLICK", "", groups=(Reply(0, ("1", "2"), ("I would click.", "A"), "1", "CLICK", ""),))
JUDGED = AnswerId(KEY, answer_digest(SAID))


def score(outcome: str) -> StepScore:
    return StepScore(KEY, 0.0, 0.5, 0.0, outcome)


def written(folder: Path, *lines: str) -> Path:
    path = folder / "causes.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.mark.parametrize("said", [HumanCause("wrong_annotation", "both do \ud83d", "Ann"), HumanCause("wrong_op")])
def test_a_cause_that_is_written_reads_back(tmp_path: Path, said: HumanCause) -> None:
    assert read_causes(written(tmp_path, cause_line(JUDGED, said))) == {JUDGED: said}


def test_a_persons_cause_stands_beside_the_computed_one() -> None:
    found = relabelled([score("wrong_element")], [SAID], {JUDGED: HumanCause("wrong_annotation")})
    assert [(one.outcome, one.person_cause) for one in found.scores] == [("wrong_element", "wrong_annotation")]
    assert found.counts == {"used": 1, "changed": 1, "not_lost": 0}


def test_the_same_cause_as_computed_is_used_and_changes_nothing() -> None:
    found = relabelled([score("wrong_element")], [SAID], {JUDGED: HumanCause("wrong_element")})
    assert found.counts == {"used": 1, "changed": 0, "not_lost": 0}


@pytest.mark.parametrize("outcome", ["success", LEFT_OUT])
def test_a_step_that_is_not_lost_stays_as_it_is(outcome: str) -> None:
    found = relabelled([score(outcome)], [SAID], {JUDGED: HumanCause("wrong_op")})
    assert (found.scores, found.counts) == ([score(outcome)], {"used": 0, "changed": 0, "not_lost": 1})


@pytest.mark.parametrize(
    "other",
    [
        replace(SAID, element_id="2"),
        replace(SAID, value="x"),
        replace(SAID, failure="refused"),
        replace(SAID, groups=(replace(SAID.groups[0], replies=("I would type.", "A")),)),
    ],
)
def test_a_cause_is_not_taken_for_another_answer(other: Prediction) -> None:
    found = relabelled([score("wrong_element")], [other], {JUDGED: HumanCause("wrong_op")})
    assert (found.scores, found.counts["used"]) == ([score("wrong_element")], 0)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", r"expected an object, got \[1\] in line 2 of"),
        (
            cause_line(JUDGED, HumanCause("success")),
            "expected cause to be one of data_fault, .*, wrong_annotation, got 'success'",
        ),
        (
            cause_line(JUDGED, HumanCause("wrong_op")),
            "expected each answer once, got that of task_step again in line 2",
        ),
        (cause_line(JUDGED._replace(answer_sha256=""), HumanCause("wrong_op")), "expected answer_sha256 to be a text"),
    ],
)
def test_a_wrong_line_is_refused_in_one_sentence(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=f"^causes: {message}"):
        read_causes(written(tmp_path, cause_line(JUDGED, HumanCause("wrong_op")), line))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^cannot read "):
        read_causes(tmp_path / "none")


def test_the_missing_row_is_no_cause_that_a_person_sees() -> None:
    assert NO_ROW not in HUMAN_CAUSES


def test_the_waterfall_has_the_persons_causes_and_says_so(tmp_path: Path) -> None:
    write_parquet(list(synthetic_rows(3, 2, 8, seed=3)), tmp_path / "data" / "test_task-0.parquet")
    run = so.evaluate(
        dataset=tmp_path, split="cross_task", ranker="bm25", model="builtin/lexical", out=tmp_path / "run"
    )
    lost = [row for row in run.to_pandas("steps").to_dict("records") if row["outcome"] != "success"]
    said = {p.key: p for p in run.predictions()}[StepKey(lost[0]["annotation_id"], lost[0]["action_uid"])]
    other = AnswerId(StepKey("another", "step"), "0" * 64)
    causes = written(
        tmp_path,
        cause_line(AnswerId(said.key, answer_digest(said)), HumanCause("wrong_annotation")),
        cause_line(other, HumanCause("wrong_op")),
    )
    again = rescore(run.path, causes=causes, out=tmp_path / "again")
    assert again.results["waterfall"]["wrong_annotation"]["steps"] == 1
    assert again.results["causes_by_person"] == {"used": 1, "changed": 1, "not_lost": 0, "of_other_answers": 1}
    shares = sum(one["micro"] for one in again.results["waterfall"].values())
    assert shares == pytest.approx(1 - again.results["step_success_rate"]["micro"])
    assert "1 cause is a person's, 1 of them other than computed." in again.report()
    assert "Of the file not used: 1 about other answers than this run's." in again.report()
    same = again.results.keys() - {"waterfall", "causes_by_person"}
    assert {name: again.results[name] for name in same} == {name: run.results[name] for name in same}


def test_rows_and_report_have_both_causes(tmp_path: Path) -> None:
    """A cause of `data_fault` made of an answered step one that was never asked, in the rows and all that reads them."""
    write_parquet(list(synthetic_rows(3, 2, 8, seed=3)), tmp_path / "data" / "test_task-0.parquet")
    run = so.evaluate(
        dataset=tmp_path, split="cross_task", ranker="bm25", model="builtin/lexical", out=tmp_path / "run"
    )
    said = {p.key: p for p in run.predictions()}
    lost = next(row for row in run.to_pandas("steps").to_dict("records") if row["outcome"] != "success")
    judged = AnswerId(key := StepKey(lost["annotation_id"], lost["action_uid"]), answer_digest(said[key]))
    causes = written(tmp_path, cause_line(judged, HumanCause("data_fault")))
    again = rescore(run.path, causes=causes, out=tmp_path / "again")
    rows = {
        one.path: list(map(json.loads, (one.path / "steps.jsonl").read_text().splitlines())) for one in (run, again)
    }
    persons = [row.pop("person_cause", None) for row in rows[again.path]]
    assert rows[again.path] == rows[run.path]
    assert [cause for cause in persons if cause] == ["data_fault"]
    assert f"{lost['outcome']}; a person: data_fault" in again.report()
