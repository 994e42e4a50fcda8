"""Trajectories judged through a real server."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import seeact_offline as so
from seeact_offline.cli import main
from seeact_offline.dataset.rows import StoredScreenshot
from seeact_offline.records import InputError, RowError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.trajectories import Trajectory, TrajectoryStep, Verdict, open_trajectories, write_trajectories
from seeact_offline.trajectories.judge_runs import JudgedFolder, find_trajectories, judge
from seeact_offline.trajectories.judges import JUDGES, Case
from seeact_offline.trajectories.recorded_tasks import run_trajectories
from tests.chat_server import Answer, ChatServer, Script


def screenshot(shade: int) -> StoredScreenshot:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, 0, 0)).save(file, "PNG")
    return StoredScreenshot(file.getvalue())


def trajectory(
    name: str, *actions: str, answer: str | None = None, thought: str = "", label: bool = True
) -> Trajectory:
    steps = tuple(TrajectoryStep(one, thought, None, screenshot(10 * n)) for n, one in enumerate(actions))
    verdicts = (Verdict("ann", label, "person"),)
    return Trajectory(name, f"task of {name}", f"Buy {name}", steps, answer, verdicts, agent="agent")


DONE = trajectory("a", "Click [3]", "Type [4]; tea", "ANSWER; [It costs 3 [EUR]]")
SILENT = trajectory("b", "Click [3]", "Click [5]", label=False)


def judged(
    folder: Path, reply: Script, *trajectories: Trajectory, **options: Any
) -> tuple[JudgedFolder, list[dict[str, Any]]]:
    """The folder of verdicts, and the bodies of the requests."""
    write_trajectories(folder / "in", trajectories or (DONE, SILENT))
    with ChatServer(reply) as server:
        more = {"base_url": server.base_url, "max_retries": 0} | options.pop("config", {})
        config = EvalConfig(model="openai/judge", out=folder / "out", **more)
        found = judge(folder / "in", config=config, **options)
        return found, list(server.requests)


def parts(body: dict[str, Any]) -> list[str]:
    """The texts of the user's message, a picture as `#`."""
    (message,) = [one for one in body["messages"] if one["role"] == "user"]
    return [part.get("text", "#") for part in message["content"]]


@pytest.mark.parametrize(
    ("name", "k", "shown", "stated"),
    [
        ("webvoyager", "2", 2, "2"),
        # the released code states the number asked for, whatever there is
        ("webvoyager", "15", 3, "15"),
        ("webvoyager", "all", 3, "3"),
        ("openwebvoyager", "15", 3, "3"),
        ("strict", "15", 3, "3"),
    ],
)
def test_the_judge_is_shown_task_answer_and_last_screenshots(
    tmp_path: Path, name: str, k: str, shown: int, stated: str
) -> None:
    found, (body,) = judged(tmp_path, lambda body: "All there. SUCCESS", DONE, judge=name, k=[k])
    text, *pictures, request = parts(body)
    assert text.startswith("Task: Buy a\n")
    assert f"Screenshots that follow: {stated}" in text
    assert (pictures, request) == (["#"] * shown, "What is your verdict?")
    # of a strict judge's answer nothing is cut off
    assert ("Final response: It costs 3 [EUR\n" in text) == (name != "strict")
    assert (body["messages"][0]["role"], body["temperature"], body["max_tokens"], body["seed"]) == (
        "system",
        0,
        1000,
        42,
    )
    (one,) = found.judgements
    assert (one.verdict, one.outcome, one.k, one.n_pictures, one.calls) == (True, "verdict", k, shown, 1)


@pytest.mark.parametrize(
    ("name", "one", "verdict", "outcome"),
    [
        ("webvoyager", SILENT, False, "no_answer"),
        ("openwebvoyager", SILENT, False, "no_answer"),
        # the answer is looked for before the pictures
        ("webvoyager", Trajectory("x", "x", "Buy"), False, "no_answer"),
        ("webvoyager", trajectory("x", "ANSWER: tea"), None, "unreadable_answer"),
        ("strict", Trajectory("x", "x", "Buy", answer="tea"), None, "no_screenshot"),
        ("strict", Trajectory("x", "x", "Buy", (TrajectoryStep("Wait", screenshot=StoredScreenshot(b"no picture")),)), None, "bad_screenshot"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_has_a_named_outcome_without_a_call(
    tmp_path: Path, name: str, one: Trajectory, verdict: bool | None, outcome: str
) -> None:
    found, bodies = judged(tmp_path, lambda body: "SUCCESS", one, judge=name)
    assert [(ruling.verdict, ruling.outcome, ruling.ran) for ruling in found.judgements] == [(verdict, outcome, True)]
    assert bodies == []


@pytest.mark.parametrize(
    ("name", "reply", "verdict", "outcome", "ran"),
    [
        ("strict", "I cannot tell.", None, "no_verdict", True),
        ("openwebvoyager", "I cannot tell.", False, "verdict", True),
        ("strict", Answer(refusal="no"), None, "refused", True),
        ("openwebvoyager", Answer(refusal="no"), False, "refused", True),
        ("strict", Answer("out of order", status=400), None, "bad_request", False),
    ],
)  # fmt: skip
def test_a_reply_without_a_verdict_has_a_named_outcome(
    tmp_path: Path, name: str, reply: Answer | str, verdict: bool | None, outcome: str, ran: bool
) -> None:
    answers = iter([reply, "SUCCESS", "SUCCESS"])
    # one call of two fails: where each does, the run stops
    found, _ = judged(
        tmp_path,
        lambda body: next(answers),
        DONE,
        trajectory("c", "ANSWER; tea"),
        judge=name,
        config={"concurrency": 1},
    )
    first = found.judgements[0]
    assert (first.verdict, first.outcome, first.ran) == (verdict, outcome, ran)
    assert found.n_failed == (not ran)


@pytest.mark.parametrize(("marks", "found"), [("; ", True), (": ", False), (":\n", False), ("; [", True)])
def test_the_answer_is_read_as_the_released_code_does(tmp_path: Path, marks: str, found: bool) -> None:
    one = trajectory("x", f"ANSWER{marks}tea] and more", thought="no such word")
    for number, name in enumerate(["webvoyager", "openwebvoyager"]):
        judgement = judged(tmp_path / str(number), lambda body: "SUCCESS", one, judge=name)[0].judgements[0]
        assert (judgement.outcome == "verdict") is (found or name == "openwebvoyager")
    bodies = judged(
        tmp_path / "c",
        lambda body: "SUCCESS",
        trajectory("x", "ANSWER; tea", thought="ANSWER; soup"),
        judge="webvoyager",
    )[1]
    assert "Final response: soup\nAction: ANSWER; tea" in parts(bodies[0])[0]


@pytest.mark.parametrize("name", ["webvoyager", "openwebvoyager"])
@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ("Thought: Found.\nAction: ANSWER; [tea]", "verdict"),
        ("Thought: Found.\n\nAction: ANSWER; [tea]", "verdict"),
        ("Action: ANSWER; [tea]", "verdict"),
        ("Thought: Found. Action: ANSWER; [tea]\nAction: Wait", "verdict"),
        ("Thought: Found.\nAction:ANSWER; [tea]", "no_answer"),
        ("Thought: Found.\nAction:  ANSWER; [tea]", "no_answer"),
        ("Thought: Found.\nAction:\nANSWER; [tea]", "no_answer"),
        ("Thought: Found.\nAction: answer; [tea]", "no_answer"),
        ("ANSWER; [tea]", "no_answer"),
    ],
)
def test_an_answer_is_one_behind_action_and_one_blank(tmp_path: Path, name: str, reply: str, outcome: str) -> None:
    task = tmp_path / "run/taskShop--0"
    task.mkdir(parents=True)
    (task / "screenshot1.png").write_bytes(screenshot(1).read())
    first = "Now given a task: Buy tea. Please interact with http://a.test/ and get the answer."
    messages = [("system", ""), ("user", first), ("assistant", reply)]
    (task / "interact_messages.json").write_text(
        json.dumps([{"role": role, "content": content} for role, content in messages])
    )
    found, asked = judged(tmp_path, lambda body: "SUCCESS", *open_trajectories(tmp_path / "run"), judge=name)
    assert [(one.outcome, one.verdict) for one in found.judgements] == [(outcome, outcome == "verdict")]
    assert len(asked) == (outcome == "verdict")


def test_repeats_are_each_asked_and_a_finished_folder_asks_nothing(tmp_path: Path) -> None:
    replies = iter(["SUCCESS", "NOT SUCCESS", "SUCCESS", "SUCCESS", "NOT SUCCESS", "NOT SUCCESS"])
    write_trajectories(tmp_path / "in", [DONE])
    with ChatServer(lambda body: next(replies)) as server:
        config = EvalConfig(model="openai/judge", base_url=server.base_url, concurrency=1, out=tmp_path / "out")
        found = judge(tmp_path / "in", k=["1", "all"], repeats=3, config=config)
        assert [(one.k, one.repeat, one.verdict) for one in found.judgements] == [
            ("1", 1, True), ("1", 2, False), ("1", 3, True), ("all", 1, True), ("all", 2, False), ("all", 3, False),
        ]  # fmt: skip
        before = (tmp_path / "out" / "verdicts.jsonl").read_bytes()
        # what is not asked for now stays in the file
        assert len(judge(tmp_path / "in", k=["1"], config=config).judgements) == 1
        again = judge(tmp_path / "in", k=["1", "all"], repeats=3, config=config)
        assert (again.judgements, len(server.requests)) == (found.judgements, 6)
    assert (tmp_path / "out" / "verdicts.jsonl").read_bytes() == before


def test_a_killed_run_resumes_and_failed_calls_are_asked_again(tmp_path: Path) -> None:
    server_reply = {"fails": True, "asked": 0}

    def reply(body: dict[str, Any]) -> Answer | str:
        server_reply["asked"] += 1
        return Answer("busy", status=400) if server_reply["fails"] and "Buy c" in json.dumps(body) else "SUCCESS"

    write_trajectories(tmp_path / "in", [DONE, SILENT, trajectory("c", "Wait")])
    with ChatServer(reply) as server:
        config = EvalConfig(
            model="openai/judge", base_url=server.base_url, max_retries=0, concurrency=1, out=tmp_path / "out"
        )
        assert judge(tmp_path / "in", config=config).n_failed == 1
        # a torn last line, as a crash leaves it
        path = tmp_path / "out" / "verdicts.jsonl"
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[:1]) + lines[1][:40])
        server_reply["fails"], asked = False, server_reply["asked"]
        found = judge(tmp_path / "in", config=config)
        # the second one's reply was paid for and is in the store
        assert (server_reply["asked"] - asked, found.n_failed, len(found.judgements)) == (1, 0, 3)
        # another task under the same id is judged anew
        write_trajectories(tmp_path / "in", [DONE, trajectory("b", "Wait", "Click [5]"), trajectory("c", "Wait")])
        asked = server_reply["asked"]
        assert judge(tmp_path / "in", config=config).n_failed == 0
        assert server_reply["asked"] == asked + 1
        with pytest.raises(InputError, match="out"):
            judge(tmp_path / "in", judge="webvoyager", config=config)


def test_what_could_not_be_asked_and_faults_of_ours_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They used to stay without a verdict."""
    said = [("user", "Now given a task: Buy. Please interact with x"), ("assistant", "Action: ANSWER; [done]")]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "interact_messages.json").write_text(json.dumps([{"role": who, "content": text} for who, text in said]))
    picture = folder / "screenshot1.png"
    picture.write_bytes(b"no picture")
    with ChatServer(lambda body: "SUCCESS") as server:
        config = EvalConfig(model="openai/judge", base_url=server.base_url, out=tmp_path / "out")
        (unread,) = judge(folder, config=config).judgements
        picture.write_bytes(screenshot(0).read())
        with monkeypatch.context() as patch:
            patch.setattr(Case, "pictures", lambda case: 1 / 0)
            (faulty,) = judge(folder, config=config).judgements
        (again,) = judge(folder, config=config).judgements
    assert [(one.outcome, one.ran) for one in (unread, faulty)] == [("bad_screenshot", True), ("internal_error", False)]
    assert again.verdict is True


def test_the_cost_limit_is_kept(tmp_path: Path) -> None:
    many = [trajectory(f"t{n}", "Wait") for n in range(12)]
    found, bodies = judged(
        tmp_path,
        lambda body: "SUCCESS",
        *many,
        config={"price": "1,10000", "max_cost": 1.1, "max_tokens": 10, "concurrency": 1},
    )
    assert found.n_left == 12 - len(found.judgements) > 0
    assert len(bodies) == len(found.judgements) > 0
    assert sum(one.cost_usd or 0.0 for one in found.judgements) <= 1.1


@pytest.mark.parametrize(
    "spelling",
    [
        "**Score: {}**", "**Score:** **{}**.", "Score (1-5): {}/5", "Score of {}.0", "2. **Score**: {}", "I give it a score of {}",
        # what is said of other scores, or stands on the page
        "Score: {}. A score of 4 would need the cart.", "A score of 4 would need the cart. Score: {}. So no score of 1.",
        "Score: {}\nThe review score: 4.8, score: 1", "Score: {}-4",
    ],
)  # fmt: skip
def test_webjudge_shows_the_screenshots_that_matter(tmp_path: Path, spelling: str) -> None:
    def reply(body: dict[str, Any]) -> str:
        text = json.dumps(body["messages"])
        if "List the points" in text:
            return "1. tea"
        if "give a score" in text:
            scores.append(len(scores))
            return f"It shows tea.\n{spelling.format(5 if len(scores) == 2 else 2)}"
        return "The form was never sent.\nStatus: failure"

    scores: list[int] = []
    found, bodies = judged(tmp_path, reply, DONE, judge="webjudge", config={"concurrency": 1})
    (one,) = found.judgements
    assert (one.verdict, one.outcome, one.n_pictures, one.calls) == (False, "verdict", 1, 5)
    text, picture = parts(bodies[-1])
    assert picture == "#"
    assert f"1. It shows tea. {' '.join(spelling.format(5).split())}" in text
    assert "2. Type [4]; tea" in text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("agenttrek", "Thought 1: Look  again\nAction 1: Click [3]\n\nThought 2: Look  again\nAction 2: Wait\n\nThe picture"),
        ("autonomouseval", "1. Click [3]\n2. Wait\n\nThe picture"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("reply", "verdict", "outcome"),
    [
        ('Thoughts: done.\nStatus: "success"', True, "verdict"),
        ("Status: unsuccessful", True, "verdict"),
        ("Status: failure\nStatus: success", False, "verdict"),
        ("I cannot tell.", False, "verdict"),
        (Answer(refusal="no"), False, "refused"),
    ],
)
def test_judges_of_the_last_page_ask_once_and_read_as_released(
    tmp_path: Path, name: str, told: str, reply: Answer | str, verdict: bool, outcome: str
) -> None:
    one = trajectory("x", "Click [3]", "Wait", answer="tea", thought="Look\n\nagain")
    # the last page, to which no action belongs
    one = replace(one, steps=(*one.steps, TrajectoryStep(screenshot=screenshot(9))))
    found, (body,) = judged(tmp_path, lambda body: reply, one, judge=name)
    text, picture = parts(body)
    assert (told.replace("Look  again", "Look again") in text, picture, "tea" in text) == (True, "#", False)
    (ruling,) = found.judgements
    assert (ruling.verdict, ruling.outcome, ruling.k) == (verdict, outcome, "1")


@pytest.mark.parametrize(
    ("replies", "verdict"),
    [
        (("success", "success"), True),
        (("success", "failure"), False),
        (("unclear", "failure"), False),
        (("success", "unclear"), None),
    ],
)
def test_webjudge_by_key_points_asks_about_each_and_needs_all(
    tmp_path: Path, replies: tuple[str, str], verdict: bool | None
) -> None:
    def reply(body: dict[str, Any]) -> str:
        text = json.dumps(body["messages"])
        if "List the points" in text:
            return "1. tea\n2. cheapest"
        if "give a score" in text:
            return "Score: 4"
        return f"Status: {replies['cheapest' in text]}"

    found, bodies = judged(tmp_path, reply, DONE, judge="webjudge-keypoints", config={"concurrency": 1})
    (one,) = found.judgements
    assert (one.verdict, one.outcome) == (verdict, "no_verdict" if verdict is None else "verdict")
    # points, three screenshots, and a verdict for each point
    assert (one.calls, one.n_pictures) == (1 + 3 + 2, 3)
    assert [parts(body)[1:] for body in bodies[-2:]] == [["#", "#", "#"]] * 2
    assert "\n\nPoint 2: cheapest\nStatus: " in one.reply


def test_webjudge_by_key_points_has_no_verdict_without_points(tmp_path: Path) -> None:
    found, _ = judged(tmp_path, lambda body: "1.", DONE, judge="webjudge-keypoints")
    assert [(one.verdict, one.outcome) for one in found.judgements] == [(None, "no_verdict")]


@pytest.mark.slow
def test_recorded_tasks_and_their_damaged_copies_are_judged_against_their_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the sample, through a server that finds whatever it is told."""
    out = tmp_path / "out"
    with ChatServer(lambda body: "SUCCESS") as server:
        words = [
            "--model",
            "openai/judge",
            "--base-url",
            server.base_url,
            "--limit",
            "3",
            "--k",
            "1",
            "--out",
            str(out),
        ]
        assert main(["judge", "sample", *words]) == 0
        assert "labels from check" in capsys.readouterr().out
        assert main(["judge", "sample", *words, "--constructed"]) == 0
    printed = capsys.readouterr().out
    assert "Labels are constructed" in printed
    assert main(["agreement", str(out)]) == 0
    found = [json.loads(line) for line in (out / "labels.jsonl").read_text().splitlines()]
    assert {one["source"] for one in found} == {"constructed"}
    assert sum(one["verdict"] for one in found) == 3


def test_labels_without_a_verdict_end_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unsure = replace(SILENT, verdicts=(Verdict("ann", None, "person"),))
    write_trajectories(tmp_path / "in", [unsure])
    with ChatServer(lambda body: "SUCCESS") as server:
        words = ["--model", "openai/judge", "--base-url", server.base_url, "--out", str(tmp_path / "out")]
        assert main(["judge", str(tmp_path / "in"), *words]) == 0
    said = capsys.readouterr()
    assert "no agreement: expected labels" in said.err
    assert "verdicts.jsonl" in said.out


def test_trajectories_without_an_answer_have_no_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their labels agreed with verdicts for which nothing was asked: 93.8 % of a run of the sample."""
    labelled = replace(SILENT, verdicts=(Verdict("ann", False, "person"),))
    write_trajectories(tmp_path / "in", [labelled])
    with ChatServer(lambda body: "SUCCESS") as server:
        words = ["--model", "openai/judge", "--base-url", server.base_url, "--out", str(tmp_path / "out")]
        assert main(["judge", str(tmp_path / "in"), "--judge", "webvoyager", *words]) == 0
    assert server.requests == []
    said = capsys.readouterr()
    assert "no call was made: no_answer 1; --judge strict needs no answer" in said.err
    assert "| agreement" not in said.out
    assert main(["agreement", str(tmp_path / "out"), "--labels", str(tmp_path / "in")]) == 2
    assert "verdicts: expected a verdict on an answer" in capsys.readouterr().err


def test_a_sample_of_trajectories_has_whole_tasks_in_equal_shares_by_website(tmp_path: Path) -> None:
    known = [
        replace(SILENT, id=f"{task}-{n}", task_id=task, website=task[0])
        for task in ("a1", "a2", "a3", "b1", "b2")
        for n in range(2)
    ]
    write_trajectories(tmp_path / "in", known)
    found = find_trajectories(tmp_path / "in", EvalConfig(sample=2, seed=42))
    assert sorted(one.website for one in found) == ["a", "a", "b", "b"]
    assert len({one.task_id for one in found}) == 2
    assert len(find_trajectories("sample", EvalConfig(split="cross_website", sample=2, seed=42))) == 2


@pytest.mark.slow
def test_a_run_is_judged_up_to_its_first_wrong_step(tmp_path: Path) -> None:
    run = so.evaluate(model="builtin/lexical", limit=2, ranker="bm25", out=tmp_path / "run")
    wrong: dict[str, int] = {}
    for row in run.to_pandas("steps").to_dict("records"):
        wrong.setdefault(row["annotation_id"], 0)
        wrong[row["annotation_id"]] += row["success"] != 1.0
    with ChatServer(lambda body: "NOT SUCCESS") as server:
        config = EvalConfig(model="openai/judge", base_url=server.base_url, out=tmp_path / "out")
        found = judge(run.path, k=["1"], config=config)
    assert {(one.task, one.verdict) for one in found.labels} == {(task, not steps) for task, steps in wrong.items()}
    assert {one.agent for one in found.judgements} == {"builtin/lexical"}


@pytest.mark.slow
def test_a_step_that_the_protocol_leaves_out_is_not_wrong(tmp_path: Path) -> None:
    run = so.evaluate(model="builtin/oracle", limit=1, ranker="bm25", top_k=1000, out=tmp_path / "run")
    steps = run.path / "steps.jsonl"
    rows = [json.loads(line) for line in steps.read_text().splitlines()]
    for row in rows:
        row["success"] = 1.0
    (whole,) = _of_scores(run.path, rows)
    rows[0] |= {"outcome": "left_out", "success": None}
    (unknown,) = _of_scores(run.path, rows)
    rows[1]["success"] = 0.0
    (wrong,) = _of_scores(run.path, rows)
    assert [one.verdicts[0].success for one in (whole, unknown, wrong)] == [True, None, False]
    assert [len(one.actions) for one in (whole, unknown, wrong)] == [len(rows), len(rows), 2]


def _of_scores(run: Path, rows: list[dict[str, Any]]) -> list[Trajectory]:
    (run / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return list(run_trajectories(run))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"judge": "nobody"}, "judge: expected one of webvoyager"),
        ({"k": ["0"]}, "k: expected numbers from 1"),
        ({"k": ["three"]}, "k: expected numbers from 1"),
        (
            {"config": EvalConfig(model="openai/x", base_url="https://api.openai.com/v1", max_cost=1.0)},
            "`max_cost` needs a `price`",
        ),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, Any], wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trajectories(tmp_path / "in", [DONE])
    with pytest.raises(InputError, match=wanted):
        judge(tmp_path / "in", **options)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("nowhere", "source: expected a folder of trajectories, .* got 'nowhere': there is no such folder or file$"),
        ("sampel", "did you mean sample"),
        ("notes.txt", "source: expected a .parquet, .jsonl or .json file"),
        ("empty", "source: expected a folder with trajectories.jsonl, .* got none of them in empty"),
        ("runs", "^runs holds several runs; name one$"),
    ],
)
def test_a_source_of_another_kind_is_refused_by_name(
    tmp_path: Path, source: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("empty", "runs/one"):
        Path(folder).mkdir(parents=True)
    Path("notes.txt").touch()
    Path("runs/one/predictions.jsonl").touch()
    Path("runs/one/manifest.json").write_text("{}")
    with pytest.raises(InputError, match=wanted):
        judge(source)


def test_every_judge_has_its_wording_in_the_shipped_pack() -> None:
    from seeact_offline.prompting import load_template

    for one in JUDGES.values():
        assert all(load_template("seeact", file, rule) for file, rule in one.templates.items())


def test_an_empty_id_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    write_trajectories(tmp_path / "in", [DONE])
    lines = tmp_path / "in" / "trajectories.jsonl"
    lines.write_text(lines.read_text() + json.dumps({"id": "", "task_id": "t", "task": "Buy"}) + "\n")
    with pytest.raises(InputError, match="expected an id, got an empty one in line 2"):
        judge(
            tmp_path / "in", config=EvalConfig(model="openai/judge", base_url="http://127.0.0.1:9", out=tmp_path / "o")
        )


def test_ids_that_no_file_can_hold_are_named(tmp_path: Path) -> None:
    found, bodies = judged(tmp_path, lambda body: "Status: success", DONE, replace(SILENT, id="b\ud800"))
    first, second = found.judgements
    assert (first.calls, len(bodies)) == (1, 1)
    assert (second.trajectory, second.outcome) == ("b\\ud800", "bad_trajectory")
    assert "in UTF-8" in second.detail


def test_a_folder_whose_name_is_not_utf_8_is_named(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "in") + b"/task\xff--1"))
    folder.mkdir(parents=True)
    (folder / "interact_messages.json").write_text('[{"role": "user", "content": "Now given a task: Buy tea"}]')
    (one,) = open_trajectories(tmp_path / "in")
    assert (one.id, one.faults[0].name) == ("task\\udcff--1", "bad_trajectory")


def test_links_in_a_circle_are_a_bad_screenshot(tmp_path: Path) -> None:
    (tmp_path / "a.png").symlink_to("a.png")
    with pytest.raises(RowError, match="cannot be read"):
        StoredScreenshot(None, "a.png", tmp_path).read()


def test_more_repeats_than_anyone_needs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="repeats: expected at most 1,000, got 1,000,000,000"):
        judge(tmp_path, repeats=10**9)
    with pytest.raises(InputError, match="repeats: expected at most 1,000"):
        EvalConfig(repeats=10**9)
