"""The cycles with a scripted model, whose accuracy grows with what it has been trained on: every figure is computed by hand."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.models.budget import Ledger
from seeact_offline.records import Completion, InputError, Message, ModelStopped, Request, StepKey, Usage
from seeact_offline.runs.watch import Watch
from seeact_offline.training.attempts import Attempt, tasks_of_hard_websites
from seeact_offline.training.cycles import ImproveConfig, Improvement, _Improving
from seeact_offline.trajectories.dialogue_files import read_dialogues
from seeact_offline.web_agents.systems import THOUGHT
from tests.pages import synthetic_rows
from tests.seeact_offline.training.conftest import rows_of, write_dataset

NEVER = 9
NEED = {"task-0-0": (1, 1), "task-0-1": (1, 2), "task-0-2": (3, 2), "task-0-3": (NEVER, 1)}
"""Train task -> the attempt from which each of its steps is right, for a model that has learnt from recorded actions alone; each six
attempts learnt from make it one earlier. A step at NEVER is answered in no form that can be read."""
WRONG = "Thought: a guess\nAction: Click [1]"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("improving"))


@pytest.fixture(scope="module")
def right(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[StepKey, str]:
    """The right reply at every step of all splits."""
    found = {}
    for split in ("train", "all"):
        out = tmp_path_factory.mktemp("oracle")
        run = so.evaluate(
            dataset=dataset, split=split, agent="openwebvoyager", model="builtin/oracle", out=out, watch=None
        )
        found |= {one.key: one.groups[0].replies[0] for one in run.predictions()}
    return found


class Learner:
    """Answers a step rightly from some attempt on, which comes earlier with every six actions of its own that it was trained on.

    As a judge it accepts nothing.
    """

    def __init__(self, right: Mapping[StepKey, str], skill: int = 0) -> None:
        self.right, self.skill = right, skill
        self.asked: Counter[StepKey] = Counter()

    async def complete(self, request: Request) -> Completion:
        key = request.key
        if key not in self.right:
            return Completion("NOT SUCCESS", Usage(calls=1))
        self.asked[key] += request.group == 0
        index = int(key.action_uid.rpartition("-")[2])
        need = NEED[key.annotation_id][index] if key.annotation_id in NEED else 2 + index - self.asked[key]
        if need == NEVER:
            return Completion("I would click there.", Usage(calls=1))
        is_right = self.asked[key] + self.skill > need
        return Completion(self.right[key] if is_right else WRONG, Usage(calls=1))

    async def aclose(self) -> None:
        pass


def learnt(model: Learner, files: Sequence[Path], out: Path) -> Learner:
    own = [line for file in files for line in read_dialogues(file) if line.source != "gold"]
    return Learner(model.right, 1 + len(own) // 6)


class Heard(Watch):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def improved(out: Path, dataset: Any, right: Mapping[StepKey, str], **options: Any) -> Improvement:
    usual = {"model": Learner(right), "train": learnt, "cycles": 2, "attempts": 3, "together": 1, "max_turns": 2}
    return so.improve(**{**usual, "out": out, "dataset": dataset, **options})


@pytest.fixture(scope="module")
def done(dataset: Path, right: Mapping[StepKey, str], tmp_path_factory: pytest.TempPathFactory) -> Improvement:
    return improved(tmp_path_factory.mktemp("improved") / "out", dataset, right)


# --- the figures ---


def values(found: Sequence[Mapping[str, Any]]) -> list[float]:
    return [one["value"] for one in found]


@pytest.mark.slow
def test_s_at_k_counts_tasks_and_pass_at_k_counts_steps(done: Improvement) -> None:
    """Cycle 1: attempt 1 has all of task 0, the first step of 1 and the last of 3; attempt 2 the rest of 1 and the last step of 2;
    attempt 3 all of 2. The six actions learnt make every attempt of cycle 2 what the next one was in cycle 1."""
    one, two = (cycle["exploration"] for cycle in done.results["cycles"][1:])
    assert values(one["s_at"]) == [1 / 4, 2 / 4, 3 / 4]
    assert values(one["pass_at"]) == [4 / 8, 6 / 8, 7 / 8]
    assert values(two["s_at"]) == [2 / 4, 3 / 4, 3 / 4]
    assert values(two["pass_at"]) == [6 / 8, 7 / 8, 7 / 8]
    for found in (one, two):
        assert (found["accepted_tasks"], found["accepted_turns"]) == (3, 6)
        # one task has a step that is never answered in a readable form
        assert found["completed_at_1"]["value"] == 3 / 4
        for share in (*found["s_at"], *found["pass_at"], found["completed_at_1"]):
            assert share["ci95"][0] <= share["value"] <= share["ci95"][1]


def test_a_task_is_attempted_until_it_is_accepted_and_not_again(done: Improvement) -> None:
    one, two = (cycle["exploration"]["attempts"] for cycle in done.results["cycles"][1:])
    assert [(attempt["tasks"], attempt["accepted"]) for attempt in one] == [(4, 1), (3, 1), (2, 1)]
    assert [(attempt["tasks"], attempt["accepted"]) for attempt in two] == [(4, 2), (2, 1), (1, 0)]


def test_each_attempt_draws_with_a_seed_of_its_own(done: Improvement) -> None:
    runs = [so.load_run(path.parent) for path in sorted(done.path.glob("cycle-*/attempts/*/manifest.json"))]
    assert len({run.manifest["settings"]["seed"] for run in runs}) == len(runs) == 6


def test_the_test_splits_follow_each_cycle_with_the_control_and_the_differences(done: Improvement) -> None:
    """The first step is right after imitation, the second once own attempts were learnt from, which the control never does."""
    for split in ("cross_task", "cross_website", "cross_domain"):
        tests = [cycle["tests"][split] for cycle in done.results["cycles"]]
        assert [found["model"]["step_success_rate"]["value"] for found in tests] == [0.5, 1.0, 1.0]
        assert [found["control"]["step_success_rate"]["value"] for found in tests[1:]] == [0.5, 0.5]
        gaps = [{name: gap["step_success_rate"]["value"] for name, gap in found["minus"].items()} for found in tests]
        assert gaps == [{}, {"previous": 0.5, "control": 0.5}, {"previous": 0.0, "control": 0.5}]
    report = (done.path / "report.md").read_text()
    assert "## Differences, paired by step: the model after the cycle minus its baseline\n" in report
    for row in ("cycle 1 - cycle 0", "cycle 1 - control", "cycle 2 - cycle 1", "cycle 2 - control"):
        assert report.count(f"| {row} ") == 3


def test_the_control_has_as_many_items_as_the_cycle_and_gold_alone(done: Improvement) -> None:
    for cycle in (1, 2):
        lines = list(read_dialogues(done.path / f"cycle-{cycle}" / "data" / "control.jsonl"))
        assert len(lines) == 8 + 6
        assert {line.source for line in lines} == {"gold"}
        # each recorded action once, six of them twice
        assert sorted(Counter(line.id for line in lines).values()) == [1] * 2 + [2] * 6
        assert all((done.path / f"cycle-{cycle}" / "data" / name).is_file() for line in lines for name in line.images)


def test_the_report_names_what_its_figures_are_not(done: Improvement) -> None:
    report = done.report()
    assert report.splitlines()[2].startswith("Offline:")
    assert "| 1     | 4     | 25.0 (0.2 to 86.8) | 50.0 (3.9 to 96.1)  | 75.0 (13.2 to 99.8) | 3 (6) " in report
    assert "F@1" not in report
    assert (done.path / "improvement.png").read_bytes().startswith(b"\x89PNG")


# --- feedback ---


@pytest.mark.slow
def test_a_judge_accepts_what_the_scorer_would_not_and_the_model_itself_is_remarked_on(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    model = Learner(right)

    async def lenient(messages: Sequence[Message]) -> str:
        return "It is done.\nSUCCESS"

    found = improved(tmp_path / "a", dataset, right, cycles=1, evaluate=(), judge=lenient)
    assert found.results["feedback"].startswith("judge ")
    assert values(found.results["cycles"][1]["exploration"]["s_at"]) == [1.0] * 3
    # of accepted attempts, steps without an action are not learnt from
    assert found.results["cycles"][1]["exploration"]["accepted_turns"] == 7
    assert found.results["remarks"] == []
    found = improved(tmp_path / "b", dataset, right, model=model, judge=model, cycles=1, evaluate=())
    assert "The judge is the model itself" in found.report()


@pytest.mark.parametrize(("n_solved", "is_hard"), [(0, True), (1, True), (2, False), (5, False)])
def test_a_website_is_hard_below_forty_per_cent(n_solved: int, is_hard: bool) -> None:
    websites = {f"{site}-{n}": site for site in ("easy", "asked") for n in range(5)}
    asked: Any = SimpleNamespace(tasks={task: [SimpleNamespace(website=site)] for task, site in websites.items()})
    solved = [f"easy-{n}" for n in range(3)] + [f"asked-{n}" for n in range(n_solved)]
    attempts = [Attempt(number, asked, frozenset(solved[number::2])) for number in range(2)]
    hard = {f"asked-{n}" for n in range(5)} if is_hard else set()
    assert tasks_of_hard_websites(attempts) == hard


@pytest.mark.parametrize(
    ("judge", "is_own"),
    [
        ("hf/models/tiny", True),
        ("hf/./models/../models/tiny", True),
        ("hf/runs/out/cycle-1/model", True),
        ("openai/models/tiny", True),
        ("hf/models/other", False),
        ("openai/gpt-4o", False),
    ],
)
def test_a_judge_that_is_the_model_under_another_spelling_is_remarked_on(
    judge: str, is_own: bool, dataset: Path
) -> None:
    config = ImproveConfig(model="hf/models/tiny", judge=judge, train=learnt, dataset=dataset, out=Path("runs/out"))
    assert any("model itself" in remark for remark in _Improving(config, Watch()).remarks) is is_own


@pytest.mark.slow
def test_guided_attempts_are_more_for_hard_websites_alone(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    watch = Heard()
    found = improved(tmp_path, dataset, right, cycles=1, attempts=1, guided=True, evaluate=(), watch=watch)
    explored = found.results["cycles"][1]["exploration"]
    # none is accepted beyond K in these figures, but in the training set
    assert values(explored["s_at"]) == [1 / 4]
    assert [one["number"] for one in explored["attempts"]] == [1, 2]
    assert explored["accepted_tasks"] == 2
    assert any("1 of 4 tasks accepted within 1 attempt, 1 more of hard websites" in note for note in watch.notes)


@pytest.mark.slow
def test_a_model_that_never_answers_in_the_form_ends_a_cycle_with_nothing_accepted(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    async def chatty(messages: Sequence[Message]) -> str:
        return "Sure! I would click."

    watch = Heard()
    found = improved(
        tmp_path,
        dataset,
        right,
        model=chatty,
        train=lambda model, files, out: model,
        cycles=1,
        evaluate=(),
        watch=watch,
    )
    explored = found.results["cycles"][1]["exploration"]
    assert (explored["accepted_tasks"], explored["completed_at_1"]["value"]) == (0, 0.0)
    assert watch.notes[0].startswith("Offline:")
    assert "teacher forcing" in watch.notes[0]
    (said,) = [note for note in watch.notes if "accepted within" in note]
    assert said.startswith("cycle 1: 0 of 4 tasks accepted within 3 attempts")
    assert "in the agent's form" in said


@pytest.mark.slow
def test_calls_that_fail_are_named_and_no_wrong_answers(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    async def down(messages: Sequence[Message]) -> str:
        raise OSError("no power")

    found = improved(
        tmp_path, dataset, right, model=down, train=lambda model, files, out: model, cycles=1, attempts=1, evaluate=()
    )
    assert "Cycle 1: 8 steps failed to run and count as wrong." in found.report()


class FailsOnce(Learner):
    """Fails at task 0 while it is told to, and stops everything at the third attempt."""

    is_down = True

    async def complete(self, request: Request) -> Completion:
        if self.is_down and request.key.annotation_id == "task-0-0":
            raise OSError("no power")
        if self.is_down and request.group == 0 and self.asked[request.key] == 2:
            raise KeyboardInterrupt
        return await super().complete(request)


@pytest.mark.slow
@pytest.mark.parametrize("judged", [False, True])
def test_a_cycle_whose_calls_failed_resumes_with_the_attempts_that_it_has_made(
    judged: bool, dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    """Steps that failed were asked again, and attempt 2, made at the tasks that were left without them, was refused."""
    model = FailsOnce(right, skill=1)

    calls = itertools.count()

    async def judge(messages: Sequence[Message]) -> str:
        if model.is_down and next(calls) % 2:
            raise OSError("no power")
        return "NOT SUCCESS" if model.is_down else "SUCCESS"

    options: dict[str, Any] = {"cycles": 1, "evaluate": (), "model": model, "train": lambda model, files, out: model}
    options["judge"] = judge if judged else None
    with pytest.raises(KeyboardInterrupt):
        improved(tmp_path, dataset, right, **options)
    model.is_down = False
    found = improved(tmp_path, dataset, right, **options)
    accepted = [one["accepted"] for one in found.results["cycles"][1]["exploration"]["attempts"]]
    assert accepted == ([0, 0, 4] if judged else [0, 1, 2])
    # and once more, with nothing left to ask
    assert improved(tmp_path, dataset, right, **options).results == found.results


async def strict(messages: Sequence[Message]) -> str:
    return "word " * 200 + "\nNOT SUCCESS"


@pytest.mark.slow
def test_what_the_judge_costs_is_limited_over_all_cycles_and_more_money_resumes(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"judge": strict, "cycles": 2, "evaluate": (), "price": "0,1000", "attempts": 2}
    problem = r"`max_cost` is too little for the judge: 1.0, of which \d\.\d+ are spent; with more the same command"
    with pytest.raises(InputError, match=problem):
        improved(tmp_path / "a", dataset, right, **options, max_cost=1.0)
    found = improved(tmp_path / "a", dataset, right, **options, max_cost=100)
    cost = found.results["judge_cost_usd"]
    assert cost > 1.0
    assert cost == sum(Ledger(file).spent for file in found.path.glob("cycle-*/judged/*/spending.jsonl"))
    assert f"Spent on the judge: {cost:.4f} USD." in found.report()
    # the kept replies of all its folders count where their ledgers are lost
    for file in found.path.glob("cycle-*/judged/*/spending.jsonl"):
        file.write_bytes(b"")
    again = improved(tmp_path / "a", dataset, right, **options, max_cost=100)
    assert again.results["judge_cost_usd"] == pytest.approx(cost)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"max_cost": 1.0}, "`max_cost` needs `judge`, whose calls cost money"),
        ({"price": "1,1"}, "`price` needs `judge`, whose calls cost money"),
        ({"judge": strict, "max_cost": 1.0}, "`max_cost` needs a `price`, or a model that reports what its calls cost"),
        ({"judge": strict, "max_cost": -1.0}, "max_cost: expected a number above 0, got -1.0"),
        ({"judge": strict, "price": "one"}, "price: expected "),
    ],
)  # fmt: skip
def test_a_limit_that_cannot_be_kept_is_refused_before_anything_is_asked(
    options: dict[str, Any], problem: str, dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        improved(tmp_path / "out", dataset, right, **options)
    assert str(error.value).startswith(problem)
    assert not (tmp_path / "out").exists()


def test_a_judge_that_never_answers_stops_the_cycle(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    async def down(messages: Sequence[Message]) -> str:
        raise OSError("no power")

    with pytest.raises(ModelStopped, match="judge: expected a judge that answers, got none of 4 judgements"):
        improved(tmp_path, dataset, right, judge=down, cycles=1, evaluate=())
    assert not (tmp_path / "cycle-1" / "accepted").exists()


@pytest.mark.slow
def test_completed_at_1_counts_actions_in_the_form_that_leave_the_page(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    async def leaving(messages: Sequence[Message]) -> str:
        return "Thought: not here\nAction: GoBack"

    found = improved(
        tmp_path,
        dataset,
        right,
        model=leaving,
        train=lambda model, files, out: model,
        cycles=1,
        attempts=1,
        evaluate=(),
    )
    explored = found.results["cycles"][1]["exploration"]
    assert (explored["completed_at_1"]["value"], explored["accepted_tasks"]) == (1.0, 0)
    assert values(explored["pass_at"]) == [0.0]


# --- what is refused ---


def test_test_tasks_and_their_websites_never_enter(right: Mapping[StepKey, str], dataset: Path, tmp_path: Path) -> None:
    rows = list(rows_of("train"))
    for name, changed, named in (
        ("task", {"test_task": rows}, "task-0-0"),
        ("website", {"test_website": [{**row, "annotation_id": "other"} for row in rows[:2]]}, "train-"),
    ):
        (tmp_path / name).mkdir()
        with pytest.raises(InputError, match=named):
            improved(tmp_path / "out", write_dataset(tmp_path / name, **changed), right)
    run = so.evaluate(
        dataset=dataset,
        split="cross_task",
        agent="openwebvoyager",
        model="builtin/oracle",
        out=tmp_path / "run",
        watch=None,
    )
    with pytest.raises(
        InputError, match=r"imitate: expected steps of the 4 tasks of train alone, got 2 others, task task-1-0"
    ):
        improved(tmp_path / "out", dataset, right, imitate=run.path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "openai/gpt-4o", "train": None}, "model: expected hf/REPO_OR_DIR, whose weights can be trained"),
        ({"attempts": 0}, "attempts: expected a whole number of at least 1"),
        ({"evaluate": ("train",)}, "evaluate: expected some of"),
    ],
)
def test_options_that_cannot_be_used_are_refused_by_name(
    options: Mapping[str, Any], message: str, dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        improved(tmp_path / "out", dataset, right, **options)


def test_another_configuration_is_refused_and_more_cycles_are_not(
    done: Improvement, dataset: Path, right: Mapping[StepKey, str]
) -> None:
    with pytest.raises(InputError, match=r"temperature was 1\.2 and is now 0\.5"):
        improved(done.path, dataset, right, temperature=0.5)


# --- what is imitated ---


@pytest.mark.slow
def test_an_item_shows_the_last_three_pictures_and_the_last_tree(right: Mapping[StepKey, str], tmp_path: Path) -> None:
    data = write_dataset(tmp_path, train=list(synthetic_rows(1, 5, 9, seed=4)))

    async def mute(messages: Sequence[Message]) -> str:
        return "-"

    options: dict[str, Any] = {"model": mute, "train": lambda model, files, out: model, "max_turns": 1}
    found = improved(tmp_path / "out", data, right, cycles=1, attempts=1, evaluate=(), **options)
    lines = list(read_dialogues(found.path / "cycle-0" / "data" / "gold.jsonl"))
    assert [len(line.images) for line in lines] == [1, 2, 3, 3, 3]
    for n_before, line in enumerate(lines):
        *before, shown, reply = line.conversations
        assert [one.by for one in before].count("gpt") == n_before
        assert "\n[1] " in shown.value
        assert not any("\n[1] " in one.value for one in before)
        assert reply.value.startswith(f"Thought: {THOUGHT}")


@pytest.mark.slow
def test_an_imitated_run_is_told_with_its_own_replies_and_its_model_named(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    run = so.evaluate(
        dataset=dataset,
        split="train",
        agent="openwebvoyager",
        model=Learner(right, skill=1),
        out=tmp_path / "run",
        watch=None,
    )
    found = improved(tmp_path / "out", dataset, right, imitate=run.path, cycles=1, attempts=1, evaluate=())
    assert "Learner, with its own thoughts; steps left out" in found.report()
    lines = list(read_dialogues(found.path / "cycle-0" / "data" / "imitation.jsonl"))
    # finished tasks, right or not: the one with a step in no readable form is not among them
    assert {line.annotation_id for line in lines} == {"task-0-0", "task-0-1", "task-0-2"}
    assert any(line.conversations[-1].value == WRONG for line in lines)
    assert all(line.source.endswith("Learner") for line in lines)
    assert found.results["imitation"]["source"].endswith("Learner")


@pytest.mark.slow
def test_a_limit_takes_its_tasks_of_a_run_over_all_and_a_run_without_actions_is_refused_by_name(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    for name, replies in (("right", right), ("mute", dict.fromkeys(right, "Sure."))):
        so.evaluate(
            dataset=dataset, split="train", agent="openwebvoyager", model=Learner(replies, skill=NEVER), out=tmp_path / name, watch=None
        )  # fmt: skip
    few: dict[str, Any] = {"cycles": 1, "attempts": 1, "evaluate": (), "limit": 1}
    found = improved(tmp_path / "out", dataset, right, imitate=tmp_path / "right", **few)
    assert found.results["imitation"]["tasks"] == 1
    with pytest.raises(InputError, match="imitate: expected train steps that can be imitated, got none"):
        improved(tmp_path / "none", dataset, right, imitate=tmp_path / "mute", **few)


@pytest.mark.slow
def test_recorded_actions_can_be_told_with_thoughts_of_a_named_model(
    dataset: Path, right: Mapping[StepKey, str], tmp_path: Path
) -> None:
    run = so.evaluate(
        dataset=dataset, split="train", agent="openwebvoyager", model=Learner(dict.fromkeys(right, WRONG)), out=tmp_path / "run",
        watch=None,
    )  # fmt: skip
    found = improved(tmp_path / "out", dataset, right, thoughts=run.path, cycles=1, attempts=1, evaluate=())
    lines = list(read_dialogues(found.path / "cycle-0" / "data" / "gold.jsonl"))
    told = [line for line in lines if line.thoughts != "none"]
    assert told
    assert all(line.thoughts.endswith("Learner") for line in told)
    assert all(line.conversations[-1].value.startswith("Thought: a guess\n") for line in told)
    assert {line.conversations[-1].value.rpartition("Action: ")[2] for line in lines} == {
        reply.rpartition("Action: ")[2] for key, reply in right.items() if key.annotation_id in NEED
    }
