"""Raw replies of GUI models as runs."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

import seeact_offline as so
from seeact_offline.agents import AGENTS
from seeact_offline.importers.importing import ImportedRun, ImportFiles, import_run
from seeact_offline.importers.reading import reply_text
from seeact_offline.records import InputError, Step, StepKey
from seeact_offline.runs.batches import run_batch
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.strategy_opening import without_ignored
from seeact_offline.sample import DATA


def written(path: Path, rows: list[dict[str, Any]]) -> ImportFiles:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ImportFiles(run=path)


def imported(
    dataset: Path, tmp_path: Path, rows: list[dict[str, Any]], agent: str = "qwen3-vl", **options: Any
) -> ImportedRun:
    files, where = written(tmp_path / "replies.jsonl", rows), {"dataset": dataset, "split": "cross_website"}
    return import_run(files, out=tmp_path / "run", format="replies", agent=agent, **where, **options)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first tasks of a split of the sample, as a data set of their own."""
    tasks = {step.annotation_id for step in so.load_steps("sample", "cross_website", limit=4)}
    folder = tmp_path_factory.mktemp("data")
    for path in (DATA / "data").glob("test_website-*.parquet"):
        pq.write_table(pq.read_table(path, filters=[("annotation_id", "in", tasks)]), folder / path.name)
    return folder


@pytest.fixture(scope="module")
def step(dataset: Path) -> Step:
    """The first of them."""
    return next(so.load_steps(dataset, "cross_website"))


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["qwen2.5-vl", "uitars", "aguvis", "seeclick", "osatlas"])
def test_replies_score_as_if_the_agent_had_been_asked_here(dataset: Path, agent: str, tmp_path: Path) -> None:
    asked = so.evaluate(
        dataset=dataset, split="cross_website", agent=agent, model="builtin/oracle", out=tmp_path / "asked"
    )
    rows = [
        {**prediction.key._asdict(), "reply": prediction.groups[-1].replies[-1]} for prediction in asked.predictions()
    ]
    run = imported(dataset, tmp_path, rows, agent).run
    for metric in ("element_accuracy", "operation_f1", "step_success_rate"):
        assert run.results[metric] == asked.results[metric]


CALL = '{"action": "left_click", "coordinate": [1, 2]}'
TURN = {"role": "assistant", "content": CALL}
TOOL = {"function": {"name": "computer_use", "arguments": CALL}}


@pytest.mark.parametrize(
    "reply",
    [
        CALL,
        json.loads(CALL),
        [CALL],
        [{"type": "text", "text": CALL}],
        {"choices": [{"index": 0, "message": TURN}]},
        {"choices": [{"index": 0, "message": {**TURN, "content": None, "tool_calls": [TOOL]}}]},
        {
            "output": [
                {"type": "reasoning", "summary": []},
                {**TURN, "content": [{"type": "output_text", "text": CALL}]},
            ]
        },
        {**TURN, "content": [{"type": "thinking", "thinking": "2"}, {"type": "tool_use", "input": json.loads(CALL)}]},
        {"model": "m", "message": TURN},
        [{"role": "user", "content": "?"}, {**TURN, "content": "wait()"}, {"role": "user", "content": "?"}, TURN],
    ],
)
def test_a_reply_may_be_all_that_a_server_gave(reply: Any) -> None:
    texts = [json.dumps(reply)] if "role" in json.dumps(reply) else []
    for written in (reply, *texts):
        acts = AGENTS["qwen3-vl"].read(reply_text(written))
        assert [(act.kind, act.place) for act in acts] == [("click", (1, 2))]


@pytest.mark.slow
def test_exported_requests_are_answered_elsewhere_and_scored_from_a_file(dataset: Path, tmp_path: Path) -> None:
    agent = "qwen2.5-vl"
    first = {"dataset": dataset, "agent": agent, "split": "cross_website", "limit": 3}
    oracle = so.evaluate(model="builtin/oracle", out=tmp_path / "oracle", **first)
    said = {prediction.key: prediction.groups[-1] for prediction in oracle.predictions()}
    config = EvalConfig.of(
        model="openai/m", base_url="http://localhost:9/v1", cache="off", out=tmp_path / "asked", **first
    )
    (file,) = run_batch(without_ignored(config), "export", tmp_path / "batches").files
    index = [json.loads(line) for line in (file.parent / "index.jsonl").read_text().splitlines()]
    steps = {line["id"]: StepKey(line["annotation_id"], line["action_uid"]) for line in index}
    rows = []
    for request in map(json.loads, file.read_text().splitlines()):
        group = said[steps[request["custom_id"]]]
        (picture,) = [part for part in request["body"]["messages"][-1]["content"] if part["type"] == "image_url"]
        _, _, encoded = picture["image_url"]["url"].partition("base64,")
        assert Image.open(io.BytesIO(base64.b64decode(encoded))).size == group.shown.sent
        rows.append({**steps[request["custom_id"]]._asdict(), "reply": group.replies[-1]})
    scored = imported(dataset, tmp_path, rows, agent, answered_only=True).run
    assert len(rows) == scored.results["n_steps"] == oracle.results["n_steps"]
    for metric in ("element_accuracy", "operation_f1", "step_success_rate"):
        assert scored.results[metric] == oracle.results[metric]


@pytest.mark.slow
def test_a_picture_of_a_part_of_the_page_counts_from_its_corner(dataset: Path, step: Step, tmp_path: Path) -> None:
    reply = {**step.key._asdict(), "reply": '{"arguments": {"action": "left_click", "coordinate": [500, 500]}}'}
    part = {"width": 640, "height": 400, "left": 0, "top": 800, "right": 1280, "bottom": 1600}
    points = [
        imported(dataset, tmp_path / name, [reply | more]).run.predictions()[0].point
        for name, more in (
            ("part", part),
            ("offset", {"width": 1280, "height": 800, "left": 0, "top": 800}),
            ("top", {"width": 1280, "height": 800, "top": 800}),
        )
        if not (tmp_path / name).mkdir()
    ]
    assert points == [(640.0, 1200.0)] * 3


@pytest.mark.slow
def test_a_corner_that_is_no_number_is_counted(dataset: Path, step: Step, tmp_path: Path) -> None:
    reply = {**step.key._asdict(), "reply": '{"action": "left_click", "coordinate": [5, 5]}', "left": -5, "top": 800}
    assert imported(dataset, tmp_path, [reply]).run.results["notes"]["bad_geometry"] == 1


@pytest.mark.slow
def test_a_block_without_its_corner_is_counted(dataset: Path, step: Step, tmp_path: Path) -> None:
    found = imported(
        dataset,
        tmp_path,
        [{**step.key._asdict(), "reply": '{"action": "left_click", "coordinate": [5, 5]}'}],
        "anthropic",
    )
    assert found.run.results["notes"]["no_offset"] == 1


@pytest.mark.parametrize(("agent", "said"), [("qwen", "got 'qwen'"), (None, "needs `agent`")])
def test_the_agent_has_to_be_named(dataset: Path, agent: str | None, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        imported(dataset, tmp_path, [{"annotation_id": "a", "action_uid": "b", "reply": "x"}], agent)  # type: ignore[arg-type]
    assert raised.value.argument == "agent"
    assert said in str(raised.value)
