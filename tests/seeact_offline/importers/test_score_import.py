"""`score` on predictions of other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.dataset import load_steps
from seeact_offline.grounding.attributes import page_search
from seeact_offline.pages.dom import Page
from seeact_offline.pages.screenshots import PagePicture
from seeact_offline.pages.search import descriptions
from seeact_offline.records import Step
from seeact_offline.tables.figure_data import over_time
from tests.seeact_offline.conftest import Cli, Sample, contents, read_json, read_lines
from tests.seeact_offline.importers.files import write_lines
from tests.seeact_offline.importers.test_uground import ANSWER, PLAN, SAMPLE

RUN = ["manifest.json", "predictions.jsonl", "report.md", "results.json", "steps.jsonl", "targets.jsonl"]


@pytest.fixture
def steps(sample: Sample) -> list[Step]:
    return list(load_steps(sample.dataset, "cross_task"))


def right(step: Step, **changed: Any) -> dict[str, Any]:
    """The row of a table that answers the step right, with these cells changed."""
    truth = step.truth
    ids = {"annotation_id": step.annotation_id, "action_uid": step.action_uid}
    operation = {"op": truth.operation.op, "value": truth.operation.value}
    return {**ids, "element_id": truth.target, **operation, **changed}


def table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def data(sample: Sample) -> list[str]:
    return ["--dataset", str(sample.dataset), "--split", "cross_task"]


# --- a table ---


def test_right_answers_are_right(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [right(step) for step in steps])
    outcome = cli("score", path, *data, "--out", tmp_path / "run")
    assert outcome.status == 0
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == RUN
    results = read_json(tmp_path / "run" / "results.json")
    assert results["step_success_rate"]["macro"] == 1
    assert (results["protocol"], results["grounding"], results["model"]) == ("seeact", "table", "imported/a.csv")
    assert (results["complete"], results["notes"]) == (True, {})


def test_a_place_is_the_element_there(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    boxes = [next(c.box for c in step.candidates if c.is_positive) for step in steps]
    rows = [right(step, box=f"{box.x},{box.y},{box.w},{box.h}") for step, box in zip(steps, boxes, strict=True) if box]
    path = table(tmp_path / "a.csv", [{name: row[name] for name in row if name != "element_id"} for row in rows])
    cli("score", path, *data, "--out", tmp_path / "run")
    lines = read_lines(tmp_path / "run" / "steps.jsonl")
    assert [line["point_in_box"] for line in lines] == [1.0] * len(steps)
    assert all(line["predicted"]["element_id"] for line in lines)


def test_what_was_left_out_is_told_counted_and_reported(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    first, second, third, *others = steps
    rows = [right(step) for step in others]
    rows += [
        right(first, element_id="no such"),
        right(second, element_id=None, point="-5,3"),
        right(third, point="nan,1"),
    ]
    rows += [right(first), right(first, action_uid="unknown"), {"op": "CLICK"}]
    path = write_lines(tmp_path / "a.jsonl", rows)
    with path.open("a") as file:
        file.write(json.dumps(right(first))[:30])
    outcome = cli("score", path, *data, "--out", tmp_path / "run")
    named = {
        "bad_point": 1, "bad_row": 1, "duplicate_step": 1, "negative_point": 1, "torn_line": 1, "unknown_element": 1,
        "unknown_step": 1,
    }  # fmt: skip
    assert read_json(tmp_path / "run" / "results.json")["notes"] == named
    report = (tmp_path / "run" / "report.md").read_text()
    for name in named:
        assert f"| {name} " in report
    for name in ("bad_row", "duplicate_step", "torn_line", "unknown_step"):
        assert f"{name}: 1 " in outcome.err
    assert f"{first.annotation_id}_unknown" in outcome.err


def test_steps_without_a_row_are_said(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [right(step) for step in steps[:5]])
    outcome = cli("score", path, *data, "--out", tmp_path / "run")
    assert outcome.status == 1
    assert f"{len(steps) - 5} steps" in outcome.err
    assert read_json(tmp_path / "run" / "results.json")["complete"] is False


def test_leaving_out_hard_steps_raises_no_figure(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    """It did: figures were averages over the answered steps."""
    hard, *easy = steps
    for name, rows in (("all", [right(hard, element_id="0"), *map(right, easy)]), ("easy", list(map(right, easy)))):
        cli("score", table(tmp_path / f"{name}.csv", rows), *data, "--out", tmp_path / name)
    whole, cut = (read_json(tmp_path / name / "results.json") for name in ("all", "easy"))
    assert cut["step_success_rate"] == whole["step_success_rate"]
    assert (cut["n_steps"], cut["failures"], cut["n_not_run"]) == (len(steps), {"no_answer": 1}, 1)
    assert cli("score", tmp_path / "easy").status == 1


def test_a_scored_file_has_its_date_and_the_users_own_words_like_a_run_of_eval(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    """Weekly scores of replies had no date, so `tables --over-time` refused them."""
    path = table(tmp_path / "a.csv", [right(step) for step in steps])
    words = ["--tags", "nightly", "--metadata", "step=1000"]
    for week, day in (("one", "2026-11-23"), ("two", "2026-11-30T01:30+02:00")):
        assert cli("score", path, *data, *words, "--label", week, "--date", day, "--out", tmp_path / week).status == 0
    manifest = read_json(tmp_path / "two" / "manifest.json")
    assert manifest["made"]["date"] == "2026-11-29T23:30:00+00:00"
    assert "seeact-offline score" in manifest["made"]["command"]
    assert {"label": "two", "tags": ["nightly"], "metadata": {"step": "1000"}}.items() <= manifest["settings"].items()
    report = (tmp_path / "two" / "report.md").read_text()
    assert ("2026-11-29" in report, "temperature" in report) == (True, False)
    (line,) = over_time([tmp_path / "one", tmp_path / "two"])["lines"]
    assert (line["label"], [point["label"] for point in line["points"]]) == ("nightly", ["one", "two"])
    assert cli("tables", "--over-time", tmp_path / "one", tmp_path / "two", "--out", tmp_path / "time.svg").status == 0
    assert cli("score", path, *data, "--date", "Monday", "--out", tmp_path / "three").status == 2


def test_answered_steps_alone_are_scored_where_asked_for(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    path = table(tmp_path / "a.csv", [right(step) for step in steps[:5]])
    outcome = cli("score", path, *data, "--answered-only", "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    assert (outcome.status, results["complete"]) == (0, True)
    assert (results["n_steps"], results["step_success_rate"]["micro"], results["failures"]) == (5, 1, {})
    assert (results["answered_only"], results["model"]) == (True, "imported/a.csv (answered only)")
    assert "imported/a.csv (answered only)" in cli("tables", "--table", 2, tmp_path / "run").out


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"element_id": "no such"}, "unknown_element"),
        ({"op": "HOVER"}, "other_operation"),
        ({"point": "?"}, "bad_point"),
    ],
)
@pytest.mark.parametrize(("n", "status"), [(6, 0), (7, 1)])
def test_a_note_on_more_than_half_of_the_steps_is_no_success(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path, changed: dict[str, str], note: str, n: int, status: int
) -> None:  # fmt: skip
    assert len(steps) == 12
    rows = [right(step, **{"point": ""} | (changed if i < n else {})) for i, step in enumerate(steps)]
    outcome = cli("score", table(tmp_path / "a.csv", rows), *data, "--out", tmp_path / "run")
    assert outcome.status == status
    assert f"{note}: {n} " in outcome.err
    assert (f"{note} covers more than half of the steps" in outcome.err) == bool(status)


@pytest.mark.parametrize(("unit", "scale"), [("fraction", 1), ("per-mille", 1000)])
def test_points_that_are_shares_of_the_page_are_said_and_read(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path, unit: str, scale: int
) -> None:
    middles = []
    for step in steps:
        picture = PagePicture(step.screenshot) if step.screenshot else None
        box = next(c.box for c in step.candidates if c.is_positive)
        assert picture
        assert box
        (width, height), (x, y) = picture.size, (box.x + box.w / 2, box.y + box.h / 2)
        middles.append({"element_id": "", "point": f"{x / width * scale},{y / height * scale}"})
    path = table(tmp_path / "a.csv", [right(step, **place) for step, place in zip(steps, middles, strict=True)])
    taken_for_pixels = cli("score", path, *data, "--out", tmp_path / "pixels")
    assert taken_for_pixels.status == 1
    assert f"--points {unit}" in taken_for_pixels.err
    assert cli("score", path, *data, "--points", "pixels", "--out", tmp_path / "sure").status == 0
    assert cli("score", path, *data, "--points", unit, "--out", tmp_path / "run").status == 0
    assert read_json(tmp_path / "run" / "results.json")["point_accuracy"]["micro"] == 1


def test_importing_again_changes_no_byte(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    words = ["score", table(tmp_path / "a.csv", [right(step) for step in steps]), *data, "--out", tmp_path / "run"]
    cli(*words)
    before = contents(tmp_path / "run")
    assert cli(*words).status == 0
    assert contents(tmp_path / "run") == before


def test_other_predictions_do_not_replace_a_run(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [right(step) for step in steps])
    cli("score", path, *data, "--out", tmp_path / "run")
    table(path, [right(step, op="TYPE") for step in steps])
    assert (
        f"{tmp_path / 'run'} holds a run of another configuration"
        in cli("score", path, *data, "--out", tmp_path / "run").error
    )


def test_an_imported_run_is_scored_again_as_any_other(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    rows = [*(right(step) for step in steps), right(steps[0])]
    cli("score", table(tmp_path / "a.csv", rows), *data, "--out", tmp_path / "run")
    before = contents(tmp_path / "run")
    assert cli("score", tmp_path / "run").status == 0
    assert contents(tmp_path / "run") == before
    assert cli("score", tmp_path / "run", "--protocol", "mindact", "--out", tmp_path / "again").status == 0
    assert read_json(tmp_path / "again" / "results.json")["notes"] == {"duplicate_step": 1}


def test_several_protocols_of_a_file_are_told_apart(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    path = table(tmp_path / "a.csv", [right(step) for step in steps])
    outcome = cli("score", path, *data, "--protocol", "mindact,seeact", "--out", tmp_path / "run")
    assert "From mindact to seeact" in outcome.out
    assert read_json(tmp_path / "run" / "results.json")["protocol"] == "mindact"
    assert read_json(tmp_path / "run" / "seeact" / "results.json")["protocol"] == "seeact"


def test_texts_of_a_table_do_not_reach_the_report_as_markup(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    rows = [right(step, value="<script>|x\x1b[2J\ud800") for step in steps]
    cli("score", write_lines(tmp_path / "a.jsonl", rows), *data, "--out", tmp_path / "run")
    report = (tmp_path / "run" / "report.md").read_text()
    assert "<script>" not in report
    assert "\x1b" not in report


# --- MindAct and SeeAct ---


def test_mindact_files_are_scored_by_mindact(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path) -> None:
    path = tmp_path / "x_predictions_top50.json"
    path.write_text(
        json.dumps([[str(s.key), s.truth.target, s.truth.operation.text] for s in steps[:-1]] + [["q_q", "", ""]])
    )
    cli("score", path, *data, "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["protocol"], results["n_succeeded"]) == ("mindact", len(steps) - 1)
    assert results["notes"] == {"unknown_step": 1}


def test_seeact_files_show_what_another_merge_rule_gives(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path
) -> None:
    for step in steps:
        folder, target = tmp_path / "files" / str(step.key), step.truth.target
        final = f"ELEMENT: A\nACTION: {step.truth.operation.op}\nVALUE: {step.truth.operation.value or 'None'}"
        ranks = [{"backend_node_id": c.backend_node_id, "rank": i} for i, c in enumerate(step.candidates)]
        other = next(c.backend_node_id for c in step.candidates if not c.is_positive)
        queries = [{"choices": [[node, ""]], "neg_candidates": ranks} for node in (other, target)]
        write_lines(folder / "queries.jsonl", queries)
        write_lines(
            folder / "prediction-x.jsonl",
            [{"multichoice_id": i, "gpt_output": ["I see.", final]} for i in range(2)],
        )
    assert cli("score", tmp_path / "files", *data, "--out", tmp_path / "run").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert results["element_accuracy"]["micro"] == 0
    assert results["merge_spread"]["best-rank"]["element_accuracy"] == 1
    assert results["merge_spread"]["best-rank"]["step_success_rate"] == 1


@pytest.mark.parametrize("told", ["reply", "name", "option"])
def test_attributes_of_seeact_are_looked_for_on_the_page(
    cli: Cli, steps: list[Step], data: list[str], tmp_path: Path, told: str
) -> None:
    """They were read as choices, so that no element was ever right. The released queries list choices all the same."""
    others = ["--grounding", "attributes"] if told == "option" else []
    for step in steps:
        page = page_search(Page(step.cleaned_html), step.candidates, None)
        best = next(iter(descriptions(page, step.truth.positives)))
        kind = f"TYPE: {best.type}" if told != "option" else "KIND: BUTTON"
        final = f"ELEMENT: the one\nELEMENT {kind}\nELEMENT TEXT: {best.text}\nACTION: {step.truth.operation.op}"
        folder = tmp_path / "files" / str(step.key)
        write_lines(folder / "queries.jsonl", [{"choices": [[c.backend_node_id, ""] for c in step.candidates[:3]]}])
        name = "prediction-3api.jsonl" if told == "name" else "prediction-x.jsonl"
        reply = f"{final}\nVALUE: {step.truth.operation.value or 'None'}"
        write_lines(folder / name, [{"multichoice_id": 0, "gpt_output": ["I see.", reply]}])
    assert cli("score", tmp_path / "files", *others, *data, "--out", tmp_path / "run").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert results["strategy"] == "attributes"
    assert results["element_accuracy"]["micro"] + results["notes"].get("several_matches", 0) / len(steps) == 1
    assert results["element_accuracy"]["micro"] > 0.5


# --- UGround ---


@pytest.fixture
def uground(tmp_path: Path) -> dict[str, Path]:
    return {
        "samples": write_lines(tmp_path / "samples.jsonl", [SAMPLE, SAMPLE | {"action_uid": "b", "value": "x"}]),
        "plan": write_lines(tmp_path / "plan.jsonl", [PLAN, PLAN | {"action_uid": "b", "gpt_action": "SCROLL DOWN"}]),
        "answers": write_lines(tmp_path / "answers.jsonl", [ANSWER, ANSWER | {"id": "t_b"}]),
    }


def test_uground_is_scored_with_answers(cli: Cli, uground: dict[str, Path], tmp_path: Path) -> None:
    """Two of three actions have a row; both elements are right, one operation shares no word with what was right."""
    words = [word for name, path in uground.items() for word in (f"--{name}", path)]
    outcome = cli("score", "--format", "uground", *words, "--protocol", "uground", "--out", tmp_path / "run")
    assert outcome.status == 0
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == RUN
    results = read_json(tmp_path / "run" / "results.json")
    assert results["element_accuracy"]["macro"] == pytest.approx(2 / 3)
    assert results["operation_f1"]["macro"] == pytest.approx(1 / 3)
    assert results["step_success_rate"]["macro"] == pytest.approx(1 / 3)
    assert (results["split"], results["grounding"]) == ("cross_task", "uground")
    assert results["notes"] == {"other_operation": 1}
    assert cli("score", tmp_path / "run").status == 0


def test_uground_without_answers_scores_the_operation_only(cli: Cli, uground: dict[str, Path], tmp_path: Path) -> None:
    words = ["--samples", uground["samples"], "--plan", uground["plan"]]
    assert cli("score", "--format", "uground", *words, "--out", tmp_path / "run").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert results["element_accuracy"] is None
    assert results["operation_f1"]["macro"] == pytest.approx(1 / 3)
    assert results["grounding"] == "ungrounded"


# --- what cannot be imported ---


HEADER = "annotation_id,action_uid,op,value"


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (HEADER.replace(",", ";"), "columns separated by commas, got {} with semicolons between the columns annotation_id, action_uid, op, value"),
        (HEADER.replace(",", "\t"), "columns separated by commas, got {} with tabs between the columns annotation_id, action_uid, op, value"),
        (f"{HEADER},OP", "a table that names each column once, got {} with the columns annotation_id, action_uid, op, value, op"),
        ("annotation_id,action_uid,element_id", "a table with the column op, got {} with the columns annotation_id, action_uid, element_id"),
        ("uid,op", "a table with the columns annotation_id and action_uid, got {} with the columns uid, op"),
        (HEADER.encode("utf-16"), "UTF-8 text, got {}, which is UTF-16"),
        (HEADER.encode("utf-16-le"), "UTF-8 text, got {}, which is UTF-16"),
        (None, "{} does not exist; name a run's folder, or predictions of another program"),
        ("", "a table with the columns annotation_id and action_uid and op, got {} without any"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", [(), ("--format", "table")])
def test_a_table_that_cannot_be_read_is_refused_with_its_columns(
    cli: Cli, data: list[str], tmp_path: Path, content: str | bytes | None, error: str, words: tuple[str, ...]
) -> None:
    path = tmp_path / "a.csv"
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    found = cli("score", path, *words, *data, "--out", tmp_path / "run").error
    assert found.removeprefix("error: ").removeprefix("run: expected ") == error.format(path)


@pytest.mark.parametrize("left", ["--dataset", "--split", "--out"])
def test_what_is_needed_is_named(cli: Cli, steps: list[Step], data: list[str], tmp_path: Path, left: str) -> None:
    words = [*data, "--out", str(tmp_path / "run")]
    at = words.index(left)
    error = cli(
        "score", table(tmp_path / "a.csv", [right(step) for step in steps]), *words[:at], *words[at + 2 :]
    ).error
    assert left in error


def test_a_file_of_another_format_says_which(cli: Cli, data: list[str], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [PLAN])
    error = cli("score", path, "--format", "mindact", *data, "--out", tmp_path / "run").error
    assert "looks like a file of UGround (--format uground)" in error


def test_a_file_of_no_format_is_refused(cli: Cli, data: list[str], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.txt", ["hello"])
    assert "run: expected a folder with a manifest.json" in cli("score", path, *data, "--out", tmp_path / "run").error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--samples", "x"], "name a --format: "),
        (["--format", "uground"], "a file of UGround cannot be read without "),
        (["--format", "table", "--samples", "x"], "a table of answers cannot be read without run"),
    ],
)
def test_files_of_a_format_are_asked_for(cli: Cli, tmp_path: Path, words: list[str], sentence: str) -> None:
    assert sentence in cli("score", *words, "--out", tmp_path / "run").error
