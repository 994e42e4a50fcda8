"""Asking again: the steps that failed, or some that are named, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import seeact_offline as so
from seeact_offline.records import CallError, Completion, InputError
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Sample, make_sample

REPLY = "ELEMENT: A\nACTION: CLICK\nVALUE: None"


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return make_sample(tmp_path / "data", list(synthetic_rows(2, 3, 8, seed=7)))


class Listening:
    """A model that notes which steps it is asked about, and cannot answer some."""

    def __init__(self, down: tuple[str, ...] = ()) -> None:
        self.asked: list[str] = []
        self.down = down

    async def complete(self, request) -> Completion:
        self.asked.append(str(request.key))
        if str(request.key) in self.down:
            raise CallError("timeout", "too late")
        return Completion(REPLY)

    async def aclose(self) -> None:
        """Nothing is open."""


def run(sample: Sample, out: Path, model: object, **options: object) -> so.Run:
    return so.evaluate(
        dataset=str(sample.dataset), scores=sample.scores, top_k=4, group_size=4, out=out, model=model, **options
    )


def ids(run: so.Run) -> list[str]:
    return [str(prediction.key) for prediction in run.predictions()]


def test_only_the_steps_that_failed_are_asked_again(sample: Sample, tmp_path: Path) -> None:
    some = run(sample, tmp_path / "run", Listening(), limit=1)
    down = (ids(some)[1],)
    (tmp_path / "run" / "predictions.jsonl").unlink()
    run(sample, tmp_path / "run", Listening(down), limit=1)
    again = Listening()
    done = run(sample, tmp_path / "run", again, retry_failed=True)
    assert set(again.asked) == set(down)
    assert done.n_failed == 0
    assert not done.results["complete"]


def test_a_named_step_is_asked_again_though_it_was_answered(sample: Sample, tmp_path: Path) -> None:
    first = run(sample, tmp_path / "run", Listening())
    before = (tmp_path / "run" / "predictions.jsonl").read_bytes()
    again = Listening()
    done = run(sample, tmp_path / "run", again, step=ids(first)[2])
    assert set(again.asked) == {ids(first)[2]}
    assert done.results["complete"]
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == before


def test_steps_can_be_named_in_a_file(sample: Sample, tmp_path: Path) -> None:
    wanted = ids(run(sample, tmp_path / "run", Listening()))[:2]
    (tmp_path / "steps.txt").write_text("\n".join([*wanted, ""]))
    again = Listening()
    run(sample, tmp_path / "other", again, step=f"@{tmp_path / 'steps.txt'}")
    assert set(again.asked) == set(wanted)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("nowhere_x", "step: expected ids of steps of cross_task, got 1 of which it has none, nowhere_x first"),
        (" , ", "step: expected at least one id"),
        ("@/nowhere", "step: expected a file with the id of a step a line"),
    ],
)
def test_a_step_that_there_is_not_is_refused(sample: Sample, tmp_path: Path, step: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(sample, tmp_path / "run", Listening(), step=step)


def test_names_and_failures_are_not_asked_for_together(sample: Sample, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^use `step` or `retry_failed`, not both$"):
        run(sample, tmp_path / "run", Listening(), step="x", retry_failed=True)


def test_a_run_may_be_left_unscored_and_scored_later(sample: Sample, tmp_path: Path) -> None:
    run(sample, tmp_path / "run", Listening(), predict_only=True)
    assert not (tmp_path / "run" / "results.json").exists()
    run(sample, tmp_path / "whole", Listening())
    names = ("predictions.jsonl", "targets.jsonl")
    for name in names:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_words_of_ones_own_are_in_the_manifest(sample: Sample, tmp_path: Path) -> None:
    done = run(sample, tmp_path / "run", Listening(), tags=["b", "a"], metadata={"who": "me"}, label="mine")
    assert done.manifest["settings"]["tags"] == ["a", "b"]
    assert done.manifest["settings"]["label"] == "mine"
    assert done.results["metadata"] == {"who": "me"}
