"""Verdicts that other programs have stored."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seeact_offline.cli import main
from seeact_offline.records import InputError
from seeact_offline.trajectories.judgements import read_judgements
from seeact_offline.trajectories.stored_verdicts import judgment_verdict

RESULTS = "WebJudge_Online_Mind2Web_eval_o4-mini_score_threshold_3_auto_eval_results.json"
PEOPLE = [
    {"task_id": "t1", "confirmed_task": "Buy tea", "Agent-E_human_label": "1", "SeeAct_human_label": "0"},
    {"task_id": "t2", "confirmed_task": "Buy milk", "Agent-E_human_label": "2", "SeeAct_human_label": 1},
]


def result(task: str, label: int | None) -> str:
    """A line of results, as the released program writes it beside all of the trajectory."""
    said = {"response": "Status: success", "predicted_label": label}
    row = {"task": "Buy tea", "task_id": task, "action_history": ["CLICK"], "evaluation_details": said}
    return json.dumps({**row, "predicted_label": label}) + "\n"


def test_results_of_online_mind2web_are_verdicts_of_the_judge_and_model_in_the_files_name(tmp_path: Path) -> None:
    path = tmp_path / "SeeAct" / RESULTS
    path.parent.mkdir()
    # a file grows when it is resumed, so that the last line counts
    path.write_text(result("t1", 0) + "\n" + result("t2", 0) + result("t1", 1))
    for source in (path, path.parent, tmp_path):
        found = read_judgements(source, "verdicts")
        assert [(one.trajectory, one.verdict, one.task, one.agent) for one in found] == [
            ("SeeAct/t2", False, "t2", "SeeAct"), ("SeeAct/t1", True, "t1", "SeeAct"),
        ]  # fmt: skip
        assert {(one.judge, one.model, one.calls) for one in found} == {("WebJudge_Online_Mind2Web_eval", "o4-mini", 0)}


def test_peoples_labels_of_online_mind2web_are_of_every_agent(tmp_path: Path) -> None:
    (tmp_path / "human_label.json").write_text(json.dumps(PEOPLE))
    found = read_judgements(tmp_path / "human_label.json", "labels")
    assert [(one.trajectory, one.verdict, one.source) for one in found] == [
        ("Agent-E/t1", True, "person"), ("SeeAct/t1", False, "person"), ("Agent-E/t2", None, "person"), ("SeeAct/t2", True, "person"),
    ]  # fmt: skip


def reply(text: str | None, **more: Any) -> dict[str, Any]:
    choices = [] if text is None else [{"message": {"content": text, "role": "assistant"}}]
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return {"judge_model_name": "gpt", "response": {"choices": choices, "usage": usage}, **more}


def write_judgments(folder: Path) -> None:
    rewards = {"trajectory_info": {"summary_info": {"cum_reward": 1.0}}}
    files = {
        "aer/wa.1.json": reply('Thoughts: fine.\nStatus: "success"'),
        "nnetnav/wa.1.json": reply("Thought: near.\nReward: 3"),
        "gpt-4o-screen/wa.1.json": reply("<reasoning>done</reasoning><success>Successful</success>"),
        "gpt-4o-screen/wa.2.json": reply(None),
        "gpt-4o-screen/wa.3_error.json": {"error": "too long", "chat_messages": {}},
        "functional/wa.1.json": {"judge_model_name": "judge", **rewards},
    }
    for name, content in files.items():
        path = folder / "webarena" / "agent-a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))


def test_judgments_of_agent_reward_bench_are_read_by_the_rules_of_their_judges(tmp_path: Path) -> None:
    write_judgments(tmp_path)
    found = {(one.judge, one.task): one for one in read_judgements(tmp_path, "verdicts")}
    assert {key: (one.verdict, one.outcome, one.ran) for key, one in found.items()} == {
        ("aer", "wa.1"): (True, "verdict", True),
        ("functional", "wa.1"): (True, "verdict", True),
        ("gpt-4o-screen", "wa.1"): (True, "verdict", True),
        ("gpt-4o-screen", "wa.2"): (None, "no_verdict", True),
        ("gpt-4o-screen", "wa.3"): (None, "api_error", False),
        ("nnetnav", "wa.1"): (False, "verdict", True),
    }
    one = found["aer", "wa.1"]
    assert (one.trajectory, one.agent, one.model) == ("webarena/agent-a/wa.1", "agent-a", "gpt")
    assert (one.calls, one.prompt_tokens, one.completion_tokens) == (1, 20, 5)
    assert found["functional", "wa.1"].calls == 0


def test_annotations_of_agent_reward_bench_are_labels_of_the_same_trajectories(tmp_path: Path, capsys) -> None:
    write_judgments(tmp_path / "judgments")
    csv = "benchmark,task_id,model_name,trajectory_success\n" + "".join(
        f"webarena,wa.1,agent-a,{word}\n" for word in ("Successful", "Unsuccessful", "Successful", "Unsure")
    )
    (tmp_path / "annotations.csv").write_text(csv)
    found = read_judgements(tmp_path / "annotations.csv", "labels")
    assert [(one.trajectory, one.verdict, one.judge) for one in found] == [
        ("webarena/agent-a/wa.1", verdict, f"annotator-{n}") for n, verdict in enumerate((True, False, True, None), 1)
    ]
    assert main(["agreement", str(tmp_path / "judgments"), "--labels", str(tmp_path / "annotations.csv")]) == 0
    assert "## The same trajectories under every judge" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("judge", "text", "verdict"),
    [
        ("aer", "Status: failure\nStatus: success", True), ("aer", "status: success", None), ("aerv", "Status: Unsuccessful.", False),
        ("nnetnav", "Reward: 4", True), ("nnetnav", "Reward: five", None), ("nnetnav", "Reward: 5\nReward: 1", None), ("nnetnav", "", None),
        ("qwen", "<success>Unsuccessful</success>", False), ("qwen", "<success> maybe </success>", None),
        ("webjudge", 'Thoughts: no.\n\nStatus: "failure"', False), ("webjudge", "Status: success", True), ("webjudge", "done", None),
    ],
)  # fmt: skip
def test_a_stored_reply_is_read_by_the_rules_of_its_judge(judge: str, text: str, verdict: bool | None) -> None:
    assert judgment_verdict(text, judge) is verdict


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        (f"a/{RESULTS}", result("t1", 7), "predicted_label to be 0 or 1, got 7 in line 1"),
        (f"a/{RESULTS}", '{"task_id": 3, "predicted_label": 1}\n', "task_id.* in line 1"),
        (f"a/{RESULTS}", '{"predicted_label": 1}\n', "task_id.* in line 1"),
        ("human_label.json", '[{"a_human_label": "1"}]', "task_id in entry 0"),
        ("human_label.json", '[{"task_id": "t", "a_human_label": "yes"}]', "a_human_label of t to be 0, 1 or 2, got 'yes'"),
    ],
)  # fmt: skip
def test_files_that_are_none_are_refused_by_their_line(tmp_path: Path, name: str, text: str, wanted: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with pytest.raises(InputError, match=wanted):
        read_judgements(path, "labels")


def test_a_judgment_that_cannot_be_read_is_a_failed_call(tmp_path: Path) -> None:
    write_judgments(tmp_path)
    bad = tmp_path / "webarena/agent-a/nnetnav/wa.2.json"
    bad.write_text("{")
    found = next(one for one in read_judgements(tmp_path, "verdicts") if (one.judge, one.task) == ("nnetnav", "wa.2"))
    assert (found.ran, found.verdict) == (False, None)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**18) | st.floats() | st.text(max_size=5) | st.sampled_from(["1", "Status: success"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([
        "task_id", "predicted_label", "evaluation_details", "response", "choices", "message", "content", "usage", "prompt_tokens",
        "judge_model_name", "error", "trajectory_info", "summary_info", "cum_reward", "a_human_label", "trajectory", "verdict", "judge",
    ]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
written = values.map(json.dumps) | st.lists(values.map(json.dumps), max_size=3).map("\n".join) | st.text(max_size=30)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=written)
def test_fuzzed_files_are_read_or_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    files = (f"o/{RESULTS}", "human_label.json", "v.jsonl", "v.csv", "j/b/a/nnetnav/t.json", "j/b/a/qwen/t.json")
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, errors="replace")
        for argument in ("verdicts", "labels"):
            with suppress(InputError):
                found = read_judgements(tmp_path / "j" if name.startswith("j/") else path, argument)
                assert all(one.verdict in (True, False, None) and one.trajectory for one in found)
