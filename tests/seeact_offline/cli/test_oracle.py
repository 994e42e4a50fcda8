"""A person's answers bound to the texts of a finished run: `--grounding oracle --replay-turn1 RUN`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import seeact_offline as so
from seeact_offline.records import Message
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import without_ignored
from tests.seeact_offline.conftest import Cli, Outcome, Sample, contents, read_json

SMALL = {"split": "cross_task", "top_k": 6, "group_size": 3}


def planner(messages: Sequence[Message]) -> str:
    """Says something else to every question."""
    if len(messages) == 4:
        return "ELEMENT: A\nACTION: CLICK\nVALUE: None"
    said = " ".join(f"{m.text} {m.picture.key if m.picture else ''}" for m in messages)
    return f" The plan {hashlib.sha256(said.encode()).hexdigest()}.\n"


@pytest.fixture
def judged(sample: Sample, tmp_path: Path) -> Path:
    """A finished run whose groups share one turn 1 a step."""
    return planned(sample, tmp_path / "judged", batching="shared-turn1")


def planned(sample: Sample, out: Path, **options: object) -> Path:
    return so.evaluate(
        without_ignored(EvalConfig.of(dataset=sample.dataset, scores=sample.scores, out=out, **SMALL | options)),
        model=planner,
    ).path


def oracle_file(sample: Sample, run: Path, path: Path, bound: bool = True) -> Path:
    """What a person says who is always right of the run's texts, made as docs/oracle.md says."""
    calls = so.load_run(run).to_pandas("calls").query("group == 0 and turn == 1")
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in calls.reply]
    of_step = dict(zip(calls.action_uid, digests, strict=True))
    lines = []
    for step in so.load_steps(sample.dataset, "cross_task"):
        right = next(c.backend_node_id for c in step.candidates if c.is_positive)
        answer = {"element_id": right, "op": step.operation.op, "value": step.operation.value}
        digest = {"turn1_sha256": of_step[step.action_uid]} if bound else {}
        lines.append(json.dumps(step.key._asdict() | answer | digest) + "\n")
    path.write_text("".join(lines))
    return path


def turn1_texts(run: Path) -> dict[str, str]:
    return {str(p.key): p.groups[0].replies[0] for p in so.load_run(run).predictions()}


def ground(cli: Cli, sample: Sample, run: Path, answers: Path, out: Path, *words: object) -> Outcome:
    given = ("--dataset", sample.dataset, "--split", "cross_task", "--grounding", "oracle", "--oracle-file", answers)
    return cli("eval", *given, "--replay-turn1", run, "--out", out, *words)


def test_the_texts_of_a_finished_run_are_grounded_and_no_model_is_asked(
    cli: Cli, sample: Sample, judged: Path, tmp_path: Path
) -> None:
    answers = oracle_file(sample, judged, tmp_path / "answers.jsonl")
    outcome = ground(cli, sample, judged, answers, tmp_path / "run")
    assert outcome.status == 0, outcome.err
    results = read_json(tmp_path / "run" / "results.json")
    assert results["step_success_rate"]["macro"] == 1.0
    assert results["element_accuracy"] == results["ceiling"]
    assert (results["usage"]["calls"], results["notes"], results["failures"]) == (0, {}, {})
    assert results["model"] == read_json(judged / "results.json")["model"] == f"python/{__name__}.planner"
    assert turn1_texts(tmp_path / "run") == turn1_texts(judged)


def test_answers_to_other_texts_are_counted_by_name(cli: Cli, sample: Sample, judged: Path, tmp_path: Path) -> None:
    other = planned(sample, tmp_path / "other", ungrounded=True, no_image=True)
    answers = oracle_file(sample, other, tmp_path / "answers.jsonl")
    assert ground(cli, sample, judged, answers, tmp_path / "run").status == 1
    assert read_json(tmp_path / "run" / "results.json")["failures"] == {"oracle_of_another_text": 12}


def test_the_report_says_that_answers_are_not_bound(cli: Cli, sample: Sample, judged: Path, tmp_path: Path) -> None:
    answers = oracle_file(sample, judged, tmp_path / "answers.jsonl", bound=False)
    outcome = ground(cli, sample, judged, answers, tmp_path / "run")
    assert outcome.status == 0
    assert read_json(tmp_path / "run" / "results.json")["notes"] == {"oracle_unbound": 12}
    assert "nobody knows which turn-1 text" in (tmp_path / "run" / "report.md").read_text()


def test_another_recording_is_another_run(cli: Cli, sample: Sample, judged: Path, tmp_path: Path) -> None:
    answers = oracle_file(sample, judged, tmp_path / "answers.jsonl")
    ground(cli, sample, judged, answers, tmp_path / "run")
    before = contents(tmp_path / "run")
    other = planned(sample, tmp_path / "other", grounding="pixel")
    assert "turn1_digest" in ground(cli, sample, other, answers, tmp_path / "run").error
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("options", "words", "complaint"),
    [
        ({}, (), "name a run that asked turn 1 once a step"),
        ({"grounding": "attributes", "turns": 1}, (), "asked both turns in one message; name a run that asked two"),
        ({"ungrounded": True}, ("--model", "openai/gpt-4o"), "--model cannot be combined with --replay-turn1"),
        ({"ungrounded": True}, ("--no-image",), "--no-image cannot be combined with --replay-turn1"),
    ],
)
def test_what_cannot_be_replayed_is_refused_in_one_sentence(
    cli: Cli, tall_sample: Sample, tmp_path: Path, options: dict[str, object], words: Sequence[str], complaint: str
) -> None:
    (tmp_path / "answers.jsonl").touch()
    run = planned(tall_sample, tmp_path / "judged", **options)
    outcome = ground(cli, tall_sample, run, tmp_path / "answers.jsonl", tmp_path / "run", *words)
    assert complaint in outcome.error
    assert not (tmp_path / "run").exists()


def test_a_folder_without_a_finished_run_is_refused(cli: Cli, sample: Sample, judged: Path, tmp_path: Path) -> None:
    answers = oracle_file(sample, judged, tmp_path / "answers.jsonl")
    (judged / "results.json").unlink()
    error = ground(cli, sample, judged, answers, tmp_path / "run").error
    assert f"{judged} has no results.json; finish the run, or score it" in error
