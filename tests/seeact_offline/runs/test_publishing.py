"""What may be published of a run."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml

import seeact_offline as so
from seeact_offline.records import InputError
from seeact_offline.runs.publishing import STEP_FIELDS
from seeact_offline.sample import DATA
from tests.lazily import huggingface_hub
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import make_sample

HUB_ID = "osunlp/Multimodal-Mind2Web"
SECRET_PLAN = "I will look for the cheapest flight"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> so.Run:
    folder = tmp_path_factory.mktemp("runs")
    sample = make_sample(folder, list(synthetic_rows(3, 2, 8, seed=7)))
    out = folder / "mine"

    def model(_: object) -> str:
        return f"{SECRET_PLAN}\nELEMENT: A\nACTION: TYPE\nVALUE: my own words"

    return so.evaluate(dataset=sample.dataset, split="cross_task", scores=sample.scores, model=model, out=out)


def test_the_hubs_own_reader_reads_the_entries(run: so.Run, tmp_path: Path) -> None:
    made = run.export(tmp_path, HUB_ID)
    assert made.entries == tmp_path / ".eval_results" / "seeact-offline.yaml"
    entries = huggingface_hub.parse_eval_result_entries(yaml.safe_load(made.entries.read_text()))
    found = {entry.task_id: entry for entry in entries}
    entry = found["cross_task/operation_f1"]
    assert {entry.dataset_id for entry in entries} == {HUB_ID}
    assert entry.value == round(100 * run.results["operation_f1"]["macro"], 2)
    assert "3 tasks, 6 steps" in str(entry.notes)
    assert found["cross_task/offline0"].value == round(100 * run.results["task_success_rate"]["offline0"], 2)


@pytest.mark.parametrize(("protocol", "average"), [("seeact", "macro"), ("inspect-evals", "micro")])
def test_an_entry_is_the_average_that_the_protocol_quotes(
    run: so.Run, tmp_path: Path, protocol: str, average: str
) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    found = {"macro": 0.131, "micro": 0.143, "ci95": [0.1, 0.2], "micro_ci95": [0.11, 0.21], "method": "korn-graubard"}
    results = run.results | {"protocol": protocol, "step_success_rate": found}
    (tmp_path / "run" / "results.json").write_text(json.dumps(results))
    entries = yaml.safe_load(so.Run(tmp_path / "run").export(tmp_path / "out", HUB_ID).entries.read_text())
    entry = next(one for one in entries if one["dataset"]["task_id"] == "cross_task/step_success_rate")
    assert entry["value"] == round(100 * found[average], 2)
    interval = "10.00 to 20.00" if average == "macro" else "11.00 to 21.00"
    assert f"{average} average; 95 % interval {interval}; " in entry["notes"]


def test_a_step_has_its_score_and_the_hash_of_its_prediction(run: so.Run, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in run.export(tmp_path, HUB_ID).steps.read_text().splitlines()]
    predictions = (run.path / "predictions.jsonl").read_bytes().splitlines()
    assert [row["prediction_sha256"] for row in rows] == [hashlib.sha256(line).hexdigest() for line in predictions]
    assert all(set(row) == {*STEP_FIELDS, "prediction_sha256"} for row in rows)


def test_nothing_that_was_said_is_in_the_files(run: so.Run, tmp_path: Path) -> None:
    made = run.export(tmp_path, HUB_ID)
    text = made.entries.read_text() + made.steps.read_text()
    assert SECRET_PLAN in (run.path / "predictions.jsonl").read_text()
    for said in (SECRET_PLAN, "my own words", "VALUE"):
        assert said not in text


def test_the_same_run_gives_the_same_bytes(run: so.Run, tmp_path: Path) -> None:
    first, second = run.export(tmp_path / "a", HUB_ID), run.export(tmp_path / "b", HUB_ID)
    assert first.entries.read_bytes() == second.entries.read_bytes()
    assert first.steps.read_bytes() == second.steps.read_bytes()


def test_data_that_are_not_on_the_hub_need_an_id(run: so.Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dataset_id"):
        run.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("copied", [False, True], ids=["by its name", "a renamed copy"])
def test_steps_of_the_bundled_sample_are_no_other_data_sets(tmp_path: Path, copied: bool) -> None:
    data: Path | str = "sample"
    if copied:
        data = tmp_path / "mind2web"
        shutil.copytree(DATA, data)
    run = so.evaluate(dataset=data, split="cross_task", limit=1, ranker="bm25", out=tmp_path / "run")
    with pytest.raises(InputError, match=r"dataset_id: expected .* steps of the bundled sample"):
        run.export(tmp_path / "out", HUB_ID)
    assert not (tmp_path / "out").exists()


def test_a_score_without_its_prediction_is_refused(run: so.Run, tmp_path: Path) -> None:
    for name in ("results.json", "steps.jsonl", "predictions.jsonl"):
        (tmp_path / name).write_bytes((run.path / name).read_bytes())
    lines = (tmp_path / "predictions.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "predictions.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(InputError, match="a prediction for every step"):
        so.Run(tmp_path).export(tmp_path / "out", HUB_ID)
