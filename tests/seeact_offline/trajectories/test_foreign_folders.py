"""Folders of WebVoyager, Online-Mind2Web and AgentRewardBench become trajectories; what is hostile or broken in them ends nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError, RowError
from seeact_offline.trajectories import Trajectory, Verdict, open_trajectories
from seeact_offline.trajectories.judgements import read_judgements

PNG = b"\x89PNG\r\n\x1a\n"


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def voyager(root: Path) -> Path:
    """Two replies and three pictures, of which the second is missing after a format error."""
    task = root / "taskGitHub--3"
    part = [{"type": "text", "text": "Observation: list"}, {"type": "image_url", "image_url": {"url": "data:"}}]
    write(task / "interact_messages.json", [
        {"role": "system", "content": "Thought: Action:"},
        {"role": "user", "content": "Now given a task: Find a\nproject.  Please interact with https://github.test/ and get the answer.Observation: x"},
        {"role": "assistant", "content": "Thought: Search.\n\nAction: Click [5]"},
        {"role": "user", "content": "The format is wrong."},
        {"role": "assistant", "content": "Click [6]"},
        {"role": "user", "content": part},
        {"role": "assistant", "content": "Thought: Found.\nAction: ANSWER; [it has 63 stars]"},
    ])  # fmt: skip
    for name in ("screenshot1.png", "screenshot3.png", "screenshot10.png", "screenshot1_no_box.png"):
        write(task / name, PNG + name.encode())
    return root


def mind2web(root: Path, version: int) -> Path:
    task = root / "a1"
    result: dict[str, Any] = {"task": "Buy", "task_id": "a1", "action_history": ["<a> -> CLICK", "<b> -> TYPE: x"]}
    if version == 1:
        result |= {"thoughts": ["one", None], "final_result_response": "Done.", "input_image_paths": None}
        names = ["0_full.png", "2_x.png", "10_x.png"]
    else:
        names = ["0000.png", "0001.png", "0002.png"]
        steps = [
            ("<a> -> CLICK", "one", "http://a.test/"),
            ("<b> -> TYPE: x", None, None),
            ("TASK_COMPLETE", "end", ""),
        ]
        result |= {"schema_version": "online-mind2web-v2", "agent_final_answer": "Done.", "reference_length": 2}
        result["action_history"] = [
            {"step": i, "action": a, "thought": t, "url": u, "screenshot": names[i], "action_status": None}
            for i, (a, t, u) in enumerate(steps)
        ]
    write(task / "result.json", result)
    for name in names:
        write(task / "trajectory" / name, PNG + name.encode())
    return root


def reward_bench(root: Path) -> Path:
    for agent, reward in (("gpt", 1.0), ("llama", 0.0)):
        steps = [
            {"num": 0, "action": "click('a51')", "reasoning": "Look.", "url": "http://s.test/", "axtree": "x" * 1000,
             "screenshot_path": f"trajectories/screenshots/webarena/{agent}/webarena.7/0.png"},
            {"num": 1, "action": 'send_msg_to_user("It\'s 5\\n\\d")', "reasoning": None, "url": "http://s.test/b",
             "screenshot_path": f"trajectories/screenshots/webarena/{agent}/webarena.7/1.png"},
            {"num": 2, "action": None, "reasoning": None, "url": None, "screenshot_path": None},
        ]  # fmt: skip
        file = {"benchmark": "webarena", "agent": agent, "goal": "How many?", "valid": True, "steps": steps}
        file["summary_info"] = {"cum_reward": reward, "n_steps": 2}
        write(root / f"cleaned/webarena/{agent}/{agent}_on_webarena/webarena.7.json", file)
        for i in range(2):
            write(root / f"screenshots/webarena/{agent}/webarena.7/{i}.png", PNG + agent.encode())
    rows = ["annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_looping",
            "A,webarena,webarena.7,gpt,Successful,No", " H,webarena,webarena.7,gpt,Unsuccessful,No",
            "B,webarena,webarena.7,llama,Unsure,No", "B,webarena,webarena.8,llama,Successful,No"]  # fmt: skip
    write(root / "annotations.csv", "\n".join(rows).encode())
    return root


def told(trajectory: Trajectory) -> list[tuple[str, str, str | None, bytes | None]]:
    return [
        (step.action, step.thought, step.address, step.screenshot.read()[8:] if step.screenshot else None)
        for step in trajectory.steps
    ]


def test_webvoyager_folder(tmp_path: Path) -> None:
    (read,) = open_trajectories(voyager(tmp_path))
    assert (read.id, read.task_id, read.website) == ("taskGitHub--3", "GitHub--3", "GitHub")
    assert (read.task, read.answer, read.faults) == ("Find a\nproject.", "it has 63 stars", ())
    assert told(read) == [
        ("Click [5]", "Search.", "https://github.test/", b"screenshot1.png"),
        ("Click [6]", "", None, None),
        ("ANSWER; [it has 63 stars]", "Found.", None, b"screenshot3.png"),
        ("", "", None, b"screenshot10.png"),
    ]


def test_replies_of_a_webvoyager_folder_keep_their_spacing(tmp_path: Path) -> None:
    (read,) = open_trajectories(voyager(tmp_path))
    assert [step.reply for step in read.steps] == ["Thought: Search.\n\nAction: Click [5]", "Click [6]", "", ""]


def test_pictures_of_a_webvoyager_folder_may_count_from_0(tmp_path: Path) -> None:
    write(voyager(tmp_path) / "taskGitHub--3/screenshot0.png", PNG + b"first")
    (read,) = open_trajectories(tmp_path)
    assert [shot.read()[8:] for shot in read.screenshots][:2] == [b"first", b"screenshot1.png"]
    assert read.actions[0] == "Click [5]"


def test_hidden_files_of_an_archive_are_no_part_of_a_folder(tmp_path: Path) -> None:
    root = mind2web(tmp_path / "m", 1)
    write(root / "a1/trajectory/._0_full.png", b"notes")
    assert next(open_trajectories(root)).screenshots[0].read()[8:] == b"0_full.png"
    bench = reward_bench(tmp_path / "b")
    write(bench / "cleaned/webarena/gpt/gpt_on_webarena/._webarena.7.json", b"notes")
    assert [read.faults for read in open_trajectories(bench)] == [(), ()]


def test_people_without_names_are_several(tmp_path: Path) -> None:
    root = reward_bench(tmp_path)
    text = (root / "annotations.csv").read_text().replace("A,webarena", ",webarena").replace(" H,webarena", ",webarena")
    (root / "annotations.csv").write_text(text)
    first = next(open_trajectories(root))
    assert [(v.by, v.success) for v in first.verdicts][:2] == [("annotator-1", True), ("annotator-2", False)]


@pytest.mark.parametrize("version", [1, 2])
def test_online_mind2web_folder(tmp_path: Path, version: int) -> None:
    (read,) = open_trajectories(mind2web(tmp_path, version))
    assert (read.id, read.task_id, read.task, read.answer) == ("a1", "a1", "Buy", "Done.")
    assert read.actions == ("<a> -> CLICK", "<b> -> TYPE: x")
    assert [step.thought for step in read.steps] == ["one", "", "" if version == 1 else "end"]
    pictures = [b"0_full.png", b"2_x.png", b"10_x.png"] if version == 1 else [b"0000.png", b"0001.png", b"0002.png"]
    assert [shot.read()[8:] for shot in read.screenshots] == pictures
    assert read.steps[0].address == (None if version == 1 else "http://a.test/")


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        # a picture that was not taken, where the run counts from 1 or from 0
        (["1_a.png", "3_a.png", "4_a.png"], ["1_a.png", None, "3_a.png", "4_a.png"]),
        (["0_a.png", "2_a.png"], ["0_a.png", None, "2_a.png"]),
        (["1_a.png"], ["1_a.png", None, None]),
        # numbers that are not those of steps
        (["1700000009.png", "1700000010.png"], ["1700000009.png", "1700000010.png", None]),
        (["0_a.png", "0_b.png", "1_a.png"], ["0_a.png", "0_b.png", "1_a.png"]),
        ([], [None, None, None]),
    ],
)
def test_pictures_belong_to_the_step_of_their_number(tmp_path: Path, names: list[str], steps: list[str | None]) -> None:
    write(tmp_path / "a1/result.json", {"task": "Buy", "action_history": ["CLICK"] * 3})
    (tmp_path / "a1/trajectory").mkdir()
    for name in names:
        write(tmp_path / "a1/trajectory" / name, PNG + name.encode())
    (read,) = open_trajectories(tmp_path)
    assert [shot and shot.decode() for _, _, _, shot in told(read)] == steps


@pytest.mark.parametrize(("score", "success"), [(100, True), (0, False), (60, None)])
def test_online_mind2web_folder_without_pictures_keeps_the_verdict_of_its_judge(
    tmp_path: Path, score: int, success: bool | None
) -> None:
    judge = {"score": score, "reasoning": "Seen in step 3."}
    write(
        tmp_path / "a1/result.json", {"task_id": "a1", "task": "Buy", "final_result_response": "Done.", "judge": judge}
    )
    (read,) = open_trajectories(tmp_path)
    assert (read.task, read.answer, read.steps, read.faults) == ("Buy", "Done.", (), ())
    assert read.verdicts == (Verdict("judge", success, "model", "Seen in step 3."),)
    (verdict,) = read_judgements(tmp_path, "verdicts")
    assert (verdict.trajectory, verdict.task, verdict.judge, verdict.verdict) == ("a1", "a1", "judge", success)


SEEACT: dict[str, tuple[dict[str, Any], list[str]]] = {
    # two questions in the second step, and none in the third, in which a person took over
    "script": (
        {"confirmed_task": "Buy", "task_id": "t7", "success_or_not": "1", "num_step": 3, "exit_by": "No elements"},
        ["image_inputs/1_0_crop.jpg", "image_inputs/2_0_crop.jpg", "image_inputs/2_1_crop.jpg"],
    ),
    "package": (
        {"task": ["Sell", "Buy"], "num_step": 3},
        ["screenshots/screen_1.png", "screenshots/screen_2.png", "screenshots/screen_4.png"],
    ),
}


@pytest.mark.parametrize(
    ("form", "shots", "verdicts"),
    [
        (
            "script",
            [b"image_inputs/1_0_crop.jpg", b"image_inputs/2_1_crop.jpg", None],
            [("annotator-1", True, "person")],
        ),
        ("package", [b"screenshots/screen_1.png", b"screenshots/screen_2.png", None, b"screenshots/screen_4.png"], []),
    ],
)
def test_online_run_of_seeact(
    tmp_path: Path, form: str, shots: list[bytes | None], verdicts: list[tuple[str, bool, str]]
) -> None:
    result, names = SEEACT[form]
    actions = ["[a] Shop -> CLICK", "[input] Search -> TYPE: x", "Human intervention"]
    write(tmp_path / "t7/result.json", {**result, "website": "https://s.test/", "action_history": actions})
    for name in names:
        write(tmp_path / "t7" / name, PNG + name.encode())
    (read,) = open_trajectories(tmp_path)
    assert (read.task_id, read.task, read.website, read.answer) == ("t7", "Buy", "https://s.test/", None)
    assert read.actions == tuple(actions)
    assert [shot for _, _, _, shot in told(read)] == shots
    assert [(one.by, one.success, one.origin) for one in read.verdicts] == verdicts


@pytest.mark.parametrize(("said", "verdicts"), [("", []), ("0", [False]), (1, [True]), (None, []), ("perhaps", [])])
def test_a_person_may_have_left_the_verdict_on_a_run_of_seeact_open(
    tmp_path: Path, said: Any, verdicts: list[bool]
) -> None:
    write(tmp_path / "t7/result.json", {"confirmed_task": "Buy", "success_or_not": said})
    (read,) = open_trajectories(tmp_path)
    assert [one.success for one in read.verdicts] == verdicts


def test_agent_reward_bench_folder_with_the_verdicts_of_people(tmp_path: Path) -> None:
    first, second = open_trajectories(reward_bench(tmp_path))
    assert (first.id, first.task_id) == ("webarena/gpt/gpt_on_webarena/webarena.7", "webarena.7")
    assert (first.agent, first.website, first.task, first.answer) == ("gpt", "webarena", "How many?", "It's 5\n\\d")
    assert told(first)[0] == ("click('a51')", "Look.", "http://s.test/", b"gpt")
    verdicts = [(v.by, v.success, v.origin) for v in first.verdicts]
    assert verdicts == [("A", True, "person"), ("H", False, "person"), ("functional", True, "check")]
    assert [(v.by, v.success) for v in second.verdicts] == [("B", None), ("functional", False)]


def test_labels_may_lie_elsewhere(tmp_path: Path) -> None:
    root = reward_bench(tmp_path / "root")
    labels = (root / "annotations.csv").rename(tmp_path / "people.csv")
    assert [len(t.verdicts) for t in open_trajectories(root)] == [1, 1]
    assert [len(t.verdicts) for t in open_trajectories(root, labels)] == [3, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "benchmark"),
        ("benchmark,task_id,model_name,trajectory_success\na,b,c,perhaps\n", "perhaps.*line 2"),
        (
            f"benchmark,task_id,model_name,trajectory_success\na,b,{'c' * 200_000},yes\n",
            "expected CSV, got field larger",
        ),
    ],
)
def test_labels_that_cannot_be_used_are_refused(tmp_path: Path, text: str, message: str) -> None:
    root = reward_bench(tmp_path)
    (root / "annotations.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        list(open_trajectories(root))


BROKEN: dict[str, tuple[Callable[[Path], Path], str, Any]] = {
    "no JSON": (voyager, "taskGitHub--3/interact_messages.json", b"{"),
    "no messages": (voyager, "taskGitHub--3/interact_messages.json", []),
    "messages that are numbers": (voyager, "taskGitHub--3/interact_messages.json", [1]),
    "deep": (voyager, "taskGitHub--3/interact_messages.json", b"[" * 5000 + b"]" * 5000),
    "no task": (lambda root: mind2web(root, 1), "a1/result.json", {"action_history": []}),
    "version 2 without steps": (
        lambda root: mind2web(root, 2),
        "a1/result.json",
        {"schema_version": "online-mind2web-v2", "task": "t", "task_id": "a1"},
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_trajectory_has_a_fault_and_the_others_are_read(tmp_path: Path, case: str) -> None:
    make, name, content = BROKEN[case]
    root = make(tmp_path)
    good = (root / name).read_bytes()
    write(root / name, content)
    write(root / "z" / Path(name).name, good)
    (root / "z" / "trajectory").mkdir()
    bad, fine = open_trajectories(root)
    assert [fault.name for fault in bad.faults] == ["bad_trajectory"]
    assert not fine.faults
    assert fine.task


@pytest.mark.parametrize("name", ["../../secret.png", "/etc/hostname"])
def test_picture_that_a_file_names_outside_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path / "secret.png", PNG)
    root = mind2web(tmp_path / "root", 2)
    path = root / "a1/result.json"
    path.write_text(path.read_text().replace("0000.png", f"../../{name}" if name[0] == "." else name))
    (read,) = open_trajectories(root)
    with pytest.raises(RowError, match="bad_screenshot"):
        read.screenshots[0].read()


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    outside = voyager(tmp_path / "outside")
    root = voyager(tmp_path / "root")
    shot, messages = root / "taskGitHub--3/screenshot1.png", root / "x/interact_messages.json"
    shot.unlink()
    shot.symlink_to(outside / "taskGitHub--3/screenshot1.png")
    messages.parent.mkdir()
    messages.symlink_to(outside / "taskGitHub--3/interact_messages.json")
    (root / "y").symlink_to(outside)
    real, linked = open_trajectories(root)
    with pytest.raises(RowError, match="leads out"):
        real.screenshots[0].read()
    assert [fault.name for fault in linked.faults] == ["bad_trajectory"]


def test_folder_of_no_known_format_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="trajectories: expected a folder"):
            open_trajectories(folder)
