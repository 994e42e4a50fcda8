"""`evaluate`, as a notebook calls it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.files.markdown import cell
from seeact_offline.records import (
    JPEG_95,
    CallError,
    Completion,
    InputError,
    Message,
    ModelSpecError,
    ModelStopped,
    Request,
)
from seeact_offline.results.recompute import rescore
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.watch import Watch
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample, cli, contents, make_sample

__all__ = ["cli"]
FINAL = "ELEMENT: A\nACTION: CLICK\nVALUE: None"
SMALL = {"split": "cross_task", "top_k": 6, "group_size": 3}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 8, seed=7)))


def first(messages: Sequence[Message]) -> str:
    """A model in one line."""
    return FINAL


async def first_later(messages: Sequence[Message]) -> str:
    await asyncio.sleep(0)
    return FINAL


class First:
    def __init__(self) -> None:
        self.closed = False

    async def complete(self, request: Request) -> Completion:
        return Completion(FINAL)

    async def aclose(self) -> None:
        self.closed = True


def failing(messages: Sequence[Message]) -> str:
    raise RuntimeError("out of luck with Bearer sk-123456")


async def failing_later(messages: Sequence[Message]) -> str:
    raise KeyError("choices")


def at_its_end(messages: Sequence[Message]) -> str:
    return next(iter(()))


@dataclass
class Erring:
    """Meets `error` at every second step, or at all of them, and answers the others."""

    error: Exception | Any
    """Raised, or returned where it is no exception."""
    every: int = 1
    asked: int = 0

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        if int(request.key.action_uid.rpartition("-")[2]) % self.every:
            return Completion(FINAL)
        if isinstance(self.error, Exception):
            raise self.error
        return self.error

    async def aclose(self) -> None:
        pass


def run(sample: Sample, out: Path, /, **options: Any) -> so.Run:
    given = {**SMALL, "dataset": sample.dataset, "scores": sample.scores, "model": first, **options}
    return so.evaluate(out=out, **given)


def test_the_run_is_its_folder(sample: Sample, tmp_path: Path) -> None:
    found = run(sample, tmp_path / "run")
    assert found.path == tmp_path / "run"
    assert found.results == json.loads((tmp_path / "run" / "results.json").read_text())
    assert found.report() == (tmp_path / "run" / "report.md").read_text()
    assert so.load_run(tmp_path / "run").results == found.results


def test_it_says_nothing_of_its_own(sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(sample, tmp_path / "run")
    assert capsys.readouterr() == ("", "")


def test_who_watches_hears_of_every_step(sample: Sample, tmp_path: Path) -> None:
    heard: list[str] = []

    class Listening(Watch):
        def note(self, text: str) -> None:
            heard.append(text)

        def begun(self, dataset: object) -> None:
            heard.append(f"begun {dataset}")

    run(sample, tmp_path / "run", watch=Listening())
    assert heard[0] == f"begun {sample.dataset}"
    assert heard[1].startswith("6 steps of")


@pytest.mark.parametrize("model", [first, first_later, lambda messages: FINAL, First()])
def test_any_function_or_object_is_a_model_and_is_not_closed(sample: Sample, tmp_path: Path, model: Any) -> None:
    found = run(sample, tmp_path / "run", model=model)
    assert not getattr(model, "closed", False)
    assert found.n_failed == 0
    assert found.results["usage"]["calls"] >= 0
    assert {group.replies[-1] for p in found.predictions() for group in p.groups} == {FINAL}
    assert found.results["model"].startswith("python/")


def test_a_function_sees_what_any_model_sees(sample: Sample, tmp_path: Path) -> None:
    asked: list[Sequence[Message]] = []

    def listening(messages: Sequence[Message]) -> str:
        asked.append(messages)
        return FINAL

    run(sample, tmp_path / "run", model=listening, concurrency=1, limit=1)
    assert [message.role for message in asked[0]] == ["system", "user"]
    assert [message.role for message in asked[1]] == ["system", "user", "assistant", "user"]
    assert asked[0][1].picture is not None


def test_a_function_encodes_the_pictures_as_it_likes(sample: Sample, tmp_path: Path) -> None:
    heads: list[bytes] = []

    def looking(messages: Sequence[Message]) -> str:
        if messages[1].picture is not None:
            heads.extend((messages[1].picture.encoded()[:4], messages[1].picture.encoded(JPEG_95)[:2]))
        return FINAL

    assert run(sample, tmp_path / "run", model=looking, concurrency=1, limit=1).n_failed == 0
    assert heads[:2] == [b"\x89PNG", b"\xff\xd8"]


def test_a_function_that_fails_is_a_counted_failure(sample: Sample, tmp_path: Path) -> None:
    found = run(sample, tmp_path / "run", model=failing)
    assert (found.n_failed, found.results["n_not_run"]) == (6, 6)
    # what the ranker lost, it lost before anybody was asked
    assert {cause: one["steps"] for cause, one in found.results["waterfall"].items()} == {
        "ranker_miss": 3,
        "call_failed": 3,
    }
    assert found.to_pandas("steps").detail[0] == "RuntimeError: out of luck with Bearer***"


ERRORS = {
    "a function": (failing, "model_error", "RuntimeError: out of luck with Bearer***"),
    "a coroutine": (failing_later, "model_error", "KeyError: 'choices'"),
    "a function that is at its end": (at_its_end, "model_error", "RuntimeError: the function raised StopIteration"),
    "an object": (Erring(TimeoutError("too late")), "model_error", "TimeoutError: too late"),
    "a group of errors": (Erring(ExceptionGroup("all", [OSError()])), "model_error", "ExceptionGroup: all (1 sub-exception)"),
    "a text for a completion": (Erring("ELEMENT: A"), "api_error", "expected a Completion from the model, got a str"),
    "nothing": (Erring(None), "api_error", "expected a Completion from the model, got a NoneType"),
    "no text": (Erring(Completion(None)), "api_error", "expected a text from the model, got a NoneType"),  # type: ignore[arg-type]
    "a failure that it names": (Erring(CallError("timeout", "no reply")), "timeout", "no reply"),
}  # fmt: skip


@pytest.mark.parametrize(("model", "name", "detail"), ERRORS.values(), ids=ERRORS.keys())
def test_a_run_in_which_no_step_was_answered_says_so(
    sample: Sample, tmp_path: Path, model: Any, name: str, detail: str
) -> None:
    found = run(sample, tmp_path / "run", model=model)
    assert found.results["failures"] == {name: 6}
    assert not found.results["complete"]
    assert found.results["unanswered"] == {"failure": name, "steps": 6, "detail": detail}
    assert f"Caution: no step was answered: {name} at 6 of 6 steps, first: {cell(detail)}" in found.report()


@pytest.mark.parametrize("every", [[2], [1, 2]], ids=["at once", "at last"])
def test_one_answer_makes_a_run_complete(sample: Sample, tmp_path: Path, every: list[int]) -> None:
    model = Erring(RuntimeError("out of luck"))
    for model.every in every:
        found = run(sample, tmp_path / "run", model=model)
    assert (found.n_failed, found.results["complete"], "unanswered" in found.results) == (3, True, False)
    assert "no step was answered" not in found.report()


@pytest.mark.parametrize(("share", "stops"), [(0.0, True), (0.49, True), (0.5, False), (None, False)])
def test_more_errors_of_the_model_than_allowed_stop_the_run(
    sample: Sample, tmp_path: Path, share: float | None, stops: bool
) -> None:
    given = {"model": Erring(RuntimeError("out of luck"), every=2), "fail_on_error": share, "concurrency": 1}
    if not stops:
        assert run(sample, tmp_path / "run", **given).n_failed == 3
        return
    with pytest.raises(ModelStopped, match=r"model_error: RuntimeError: out of luck$") as caught:
        run(sample, tmp_path / "run", **given)
    assert (
        caught.value.expected
        == f"at most {share:.0%} of steps to end in an error, not {'1 of 1' if share == 0 else '3 of 6'}"
    )


def test_a_run_that_stops_asks_no_further_step_and_keeps_what_was_answered(tmp_path: Path) -> None:
    many = make_sample(tmp_path, list(synthetic_rows(20, 2, 8, seed=7)))
    model = Erring(RuntimeError("out of luck"), every=2)
    with pytest.raises(ModelStopped, match="at most 30% of steps to end in an error, not 4 of 7"):
        run(many, tmp_path / "run", model=model, fail_on_error=0.3, concurrency=1)
    assert sum(one.ran for one in RunFolder(tmp_path / "run").load().values()) == 3


def test_steps_that_are_at_fault_are_no_errors_of_the_model(tmp_path: Path) -> None:
    rows = list(synthetic_rows(2, 2, 8, seed=7))
    broken = [{**row, "cleaned_html": ""} if i < 3 else row for i, row in enumerate(rows)]
    found = run(make_sample(tmp_path, broken, rows), tmp_path / "run", fail_on_error=0.0)
    assert (found.n_failed, found.results["waterfall"]["data_fault"]["steps"]) == (0, 3)


@pytest.mark.parametrize("given", [5, None, ["openai/x"]])
def test_what_is_no_model_is_refused(sample: Sample, tmp_path: Path, given: object) -> None:
    with pytest.raises(
        ModelSpecError, match=r"^model: expected PROVIDER/NAME, FILE\.py:NAME, an object with `complete` or a function"
    ):
        run(sample, tmp_path / "run", model=given)


def test_it_runs_inside_a_running_event_loop(sample: Sample, tmp_path: Path) -> None:
    async def cell() -> so.Run:
        return run(sample, tmp_path / "run", model=first_later)

    assert asyncio.run(cell()).results["n_steps"] == 6


def test_the_same_call_goes_on_and_asks_for_nothing_twice(sample: Sample, tmp_path: Path) -> None:
    asked: list[int] = []

    def counting(messages: Sequence[Message]) -> str:
        asked.append(1)
        return FINAL

    before = run(sample, tmp_path / "run", model=counting).results
    n = len(asked)
    assert run(sample, tmp_path / "run", model=counting).results == before
    assert len(asked) == n


def test_a_folder_of_another_configuration_is_refused(sample: Sample, tmp_path: Path) -> None:
    run(sample, tmp_path / "run")
    with pytest.raises(InputError, match="merge differ"):
        run(sample, tmp_path / "run", merge="first")


def test_options_win_over_a_configuration(sample: Sample, tmp_path: Path) -> None:
    config = so.EvalConfig(
        dataset=sample.dataset, scores=sample.scores, model=first, merge="first", out=tmp_path / "run", **SMALL
    )
    assert so.evaluate(config, merge="best-rank").results["merge"] == "best-rank"


@pytest.mark.parametrize(
    ("name", "value"),
    [("grounding", "taste"), ("merge", "coin"), ("turns", 3), ("top_k", 0), ("limit", "two")],
)
def test_a_value_that_a_field_cannot_have_is_named(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{name}: expected"):
        so.EvalConfig().changed(**{name: value})


def test_the_command_and_the_function_leave_the_same_predictions(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--top-k", 6, "--group-size", 3, "--out", tmp_path / "command")
    assert cli("eval", *sample.words, *words).status == 0
    run(sample, tmp_path / "function", model="builtin/lexical")
    assert contents(tmp_path / "function", RESULT_FILES) == contents(tmp_path / "command", RESULT_FILES)


# --- which tasks -----------------------------------------------------------------------------------------------------


def ids(run: so.Run) -> list[str]:
    return sorted({p.key.annotation_id for p in run.predictions()})


def test_only_the_tasks_listed_are_asked(sample: Sample, tmp_path: Path) -> None:
    wanted = ["task-7-2", "task-7-0"]
    (tmp_path / "tasks.txt").write_text("\n".join([*wanted, "", " task-7-0 "]))
    by_file = run(sample, tmp_path / "file", tasks=tmp_path / "tasks.txt")
    by_ids = run(sample, tmp_path / "ids", tasks=wanted)
    by_names = run(sample, tmp_path / "names", tasks="task-7-2,task-7-0")
    assert ids(by_file) == ids(by_ids) == ids(by_names) == sorted(wanted)
    assert by_file.results == by_ids.results


def test_limit_counts_the_tasks_listed(sample: Sample, tmp_path: Path) -> None:
    assert ids(run(sample, tmp_path / "run", tasks=["task-7-2", "task-7-1"], limit=1)) == ["task-7-1"]


def test_a_sample_is_recorded_scored_again_and_grows(sample: Sample, tmp_path: Path) -> None:
    few = run(sample, tmp_path / "run", sample=2, seed=3)
    drawn = ids(few)
    settings = json.loads((few.path / "manifest.json").read_text())["settings"]
    assert (settings["sample"], settings["limit"], settings["tasks"]) == (2, None, drawn)
    said = "2 tasks drawn at random in equal shares by website, seed 3"
    assert said in (few.path / "report.md").read_text()
    assert (
        rescore(few.path, dataset=sample.dataset, out=tmp_path / "again").results["n_steps"] == few.results["n_steps"]
    )
    more = run(sample, tmp_path / "run", sample=3, seed=3)
    assert set(drawn) < set(ids(more))
    with pytest.raises(InputError, match=r"holds \d+ steps that `sample` leaves out"):
        run(sample, tmp_path / "run", sample=1, seed=3)


def test_a_sample_and_a_limit_are_not_both_taken() -> None:
    with pytest.raises(InputError, match="use `sample` or `limit`, not both"):
        so.EvalConfig(sample=2, limit=2)


def test_a_run_that_would_lose_what_its_folder_holds_is_refused(sample: Sample, tmp_path: Path) -> None:
    run(sample, tmp_path / "run", tasks=["task-7-1"])
    with pytest.raises(
        InputError, match=r"holds \d steps that `tasks` leaves out, task-7-1_uid-7-1-0 first; name another folder"
    ):
        run(sample, tmp_path / "run", tasks=["task-7-2"])


def test_a_pilot_grows_into_the_whole_run_and_asks_nothing_twice(sample: Sample, tmp_path: Path) -> None:
    asked = []

    def listening(messages) -> str:
        asked.append(messages)
        return "ELEMENT: A\nACTION: CLICK\nVALUE: None"

    grown = [run(sample, tmp_path / "run", model=listening, limit=limit) for limit in (1, 2, None)][-1]
    in_pieces = len(asked)
    at_once = run(sample, tmp_path / "whole", model=listening, cache="off")
    assert len(asked) - in_pieces == in_pieces
    assert grown.results == at_once.results
    assert (grown.path / "predictions.jsonl").read_bytes() == (at_once.path / "predictions.jsonl").read_bytes()


def test_a_folder_in_which_another_run_is_at_work_is_refused(sample: Sample, tmp_path: Path) -> None:
    asked = []

    def second(messages) -> str:
        asked.append(messages)
        if len(asked) == 1:
            with pytest.raises(InputError, match=r"another process is writing into .*; wait for it"):
                run(sample, tmp_path / "run", model=second)
        return "ELEMENT: A\nACTION: CLICK\nVALUE: None"

    assert run(sample, tmp_path / "run", model=second, concurrency=1).n_failed == 0


def test_a_run_of_some_tasks_is_scored_again_as_it_was(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    before = run(sample, tmp_path / "run", tasks=["task-7-1"]).results
    assert cli("score", tmp_path / "run").status == 0
    assert so.load_run(tmp_path / "run").results == before


@pytest.mark.parametrize("given", [["nowhere"], []])
def test_tasks_that_are_not_there_are_refused(sample: Sample, tmp_path: Path, given: list[str]) -> None:
    with pytest.raises(InputError, match=r"^tasks: expected"):
        run(sample, tmp_path / "run", tasks=given)


def test_the_command_names_a_task_file_that_is_not_there(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    assert "--tasks: expected a file" in cli("eval", *sample.words, "--tasks", tmp_path / "absent").error


# --- as tables -------------------------------------------------------------------------------------------------------


def test_steps_as_a_table_have_their_website(sample: Sample, tmp_path: Path) -> None:
    steps = run(sample, tmp_path / "run").to_pandas("steps")
    assert len(steps) == 6
    assert set(steps.columns) >= {"annotation_id", "action_uid", "website", "domain", "element", "success", "outcome"}
    assert steps.groupby("website").success.mean().between(0, 1).all()
    assert set(steps.predicted_op) <= {"CLICK", ""}


def test_groups_and_calls_as_tables(sample: Sample, tmp_path: Path) -> None:
    found = run(sample, tmp_path / "run")
    groups, calls = found.to_pandas("groups"), found.to_pandas("calls")
    assert len(groups) == sum(len(p.groups) for p in found.predictions())
    assert len(calls) == 2 * len(groups)
    assert set(calls.turn) == {1, 2}
    assert set(calls.reply) == {FINAL}


def test_the_data_set_has_the_steps_of_the_table(sample: Sample, tmp_path: Path) -> None:
    made = run(sample, tmp_path / "run")
    found, table = made.to_dataset(), made.to_pandas("steps")
    assert found.column_names == list(table.columns)
    assert found["success"][:] == list(table.success)
    assert found["target_element_ids"][:] == [list(ids) for ids in table.target_element_ids]


def test_an_unknown_table_is_refused(sample: Sample, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected one of steps, groups, calls"):
        run(sample, tmp_path / "run").to_pandas("tasks")  # type: ignore[arg-type]


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_a_run_is_refused(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "results.json").write_text("{}")
    with pytest.raises(InputError, match=r"manifest\.json"):
        so.load_run(tmp_path)


# --- beside it -------------------------------------------------------------------------------------------------------


def test_questions_are_what_the_model_is_sent(sample: Sample, tmp_path: Path) -> None:
    asked: list[str] = []

    def listening(messages: Sequence[Message]) -> str:
        asked.append(messages[-1].text)
        return FINAL

    run(sample, tmp_path / "run", model=listening, concurrency=1, limit=1, ask_equal=True)
    step = next(so.load_steps(sample.dataset, "cross_task"))
    shown = so.questions(step, scores=sample.scores, top_k=6, group_size=3)
    assert [turn for question in shown for turn in question.turns] == asked[: 2 * len(shown)]


def test_a_file_of_demonstrations_may_be_named_by_a_text(sample: Sample, tmp_path: Path) -> None:
    step = next(so.load_steps(sample.dataset, "cross_task"))
    path = tmp_path / "examples.json"
    path.write_text(
        '{"demonstrations": [{"html": "<mine/>", "task": "T", "history": [], "choices": ["x"], "answer": "A"}]}'
    )
    shown = [
        so.questions(step, scores=sample.scores, top_k=6, grounding="mindact", layout="chat", demonstrations=given)[0]
        for given in (str(path), path)
    ]
    assert "<mine/>" in shown[0].examples[0].text
    assert shown[0] == shown[1]


def test_a_text_that_an_option_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"^mark_padding: expected a value of this option, got 'ten'"):
        so.EvalConfig(grounding="annotation", grounding_options={"mark_padding": "ten"})


def test_rank_leaves_a_score_file_that_evaluate_reads(sample: Sample, tmp_path: Path) -> None:
    from seeact_offline.ranking.stage import RankConfig

    ranking = so.rank(RankConfig(dataset=sample.dataset, ranker="bm25"), tmp_path / "scores.parquet")
    assert 0 <= ranking.results["recall_at_k"]["5"] <= 1
    found = run(sample, tmp_path / "run", scores=tmp_path / "scores.parquet")
    assert found.results["ranker"] == "scores/scores.parquet"


def test_scoring_again_keeps_the_figures_without_flagged_steps(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    """`score` dropped them once."""
    step = next(so.load_steps(sample.dataset, "cross_task"))
    findings = tmp_path / "findings.jsonl"
    findings.write_text(json.dumps({**step.key._asdict(), "split": "cross_task", "faults": []}) + "\n")
    before = run(sample, tmp_path / "run", exclude_flagged=findings).results
    findings.unlink()
    assert before["without_flagged"]["n_flagged"] == 1
    assert cli("score", tmp_path / "run").status == 0
    assert so.load_run(tmp_path / "run").results == before


@pytest.mark.slow
def test_help_says_what_evaluate_does(repo: Path) -> None:
    code = "import seeact_offline as so; help(so.evaluate); help(so.EvalConfig)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=repo, check=True)
    assert "as the command `eval` does" in done.stdout
    for shown in ("grounding: 'str' = 'choice'", "limit: 'int | None' = None", "\n    top_k: number of candidates"):
        assert shown in done.stdout


@pytest.mark.parametrize(
    ("wrong", "said"), [("modle", "named modle: did you mean model"), ("mark", "did you mean marks"), ("x", "named x$")]
)
def test_a_wrong_name_says_which_one_was_meant(wrong: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        so.evaluate(**{wrong: 1})


def test_an_option_of_one_grounding_is_taken_like_a_field() -> None:
    config = so.EvalConfig.of(grounding="annotation", marks="number")
    assert config == so.EvalConfig(grounding="annotation", grounding_options={"marks": "number"})
    assert config.own("marks") == "number"
