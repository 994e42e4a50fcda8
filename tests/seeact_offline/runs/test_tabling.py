"""What a table shows of run folders: which cell a run fills, what stands beside it, what is marked and what is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.records import InputError
from seeact_offline.runs import tabling
from seeact_offline.runs.tabling import SPLITS, tabulate
from seeact_offline.scoring.inference import wilson
from tests.conftest import SHARED_DATA
from tests.finished_runs import figure, make_run


def three_splits(folder: Path, **results: object) -> list[Path]:
    return [make_run(folder / split, split=split, **results) for split in SPLITS]  # type: ignore[arg-type]


# --- which cell a run fills ---


def test_a_method_is_a_row_and_its_splits_are_in_the_papers_order(tmp_path: Path) -> None:
    made = tabulate(2, [*reversed(three_splits(tmp_path))])
    assert [row["method"] for row in made["rows"]] == ["choice, openai/gpt-4-vision-preview"]
    assert list(made["rows"][0]["cells"]) == list(SPLITS)


def test_a_folder_of_runs_is_its_runs_by_name_or_as_its_grid_lists_them(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / name, model=f"openai/{name}")
    assert [path.name for path in tabling.find_runs([tmp_path])] == ["a", "b"]
    (tmp_path / "grid.json").write_text(json.dumps({"cells": [{"folder": "b"}, {"folder": "a"}, {"folder": "gone"}]}))
    assert [path.name for path in tabling.find_runs([tmp_path])] == ["b", "a"]


def test_a_run_named_twice_is_there_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    assert len(tabulate(2, [run, tmp_path])["runs"]) == 1


def test_folders_without_results_are_named(tmp_path: Path) -> None:
    make_run(tmp_path / "a")
    (make_run(tmp_path / "b") / "results.json").unlink()
    assert tabulate(2, [tmp_path], tmp_path)["notes"] == ["Without results yet, and not in the table: b."]


def test_runs_of_one_method_are_parted_by_the_settings_that_differ(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / merge, merge=merge) for merge in ("first", "single")]
    assert [row["method"].rpartition(", ")[2] for row in tabulate(2, runs)["rows"]] == ["merge first", "merge single"]


def of_seeds(folder: Path, shares: dict[int, float], **results: object) -> list[Path]:
    folder.mkdir(exist_ok=True)
    return [
        make_run(folder / str(seed), step_sr=share, settings={"seed": seed}, **results)
        for seed, share in shares.items()
    ]  # type: ignore[arg-type]


def test_runs_that_differ_in_their_seed_alone_are_one_row(tmp_path: Path) -> None:
    shares = {0: 0.25, 1: 0.5, 7: 0.6}
    runs = of_seeds(tmp_path, shares)
    (row,) = tabulate(2, runs, tmp_path)["rows"]
    cell, found = row["cells"]["cross_task"], row["cells"]["cross_task"]["step_success_rate"]
    assert (row["method"], row["runs"]) == ("choice, openai/gpt-4-vision-preview", {"cross_task": ["0", "1", "7"]})
    assert (found["value"], found["sd"], found["n_runs"]) == pytest.approx((0.45, stdev(shares.values()), 3))
    assert (found["ci95"], cell["n_steps"], cell["not_run"]) == (None, 4, 3)


@pytest.mark.parametrize(
    ("other", "rows"), [({}, 1), ({"merge": "single"}, 2), ({"model": "b"}, 2)], ids=["the seed alone", "a setting too", "the model too"]
)  # fmt: skip
def test_runs_that_differ_in_more_than_their_seed_are_rows_of_their_own(
    tmp_path: Path, other: dict[str, object], rows: int
) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", settings={"seed": 1}, **other)]  # type: ignore[arg-type]
    assert len(tabulate(2, runs)["rows"]) == rows


@pytest.mark.parametrize("other", [{"steps": 3}, {"dataset_fingerprint": "beef"}], ids=["steps", "data"])
def test_seeds_over_other_steps_or_data_are_no_row(tmp_path: Path, other: dict[str, object]) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", settings={"seed": 1}, **other)]  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^runs: expected runs of one cell over the same steps"):
        tabulate(2, runs)


def test_whole_tasks_are_pooled_for_each_seed(tmp_path: Path) -> None:
    done = {0: 0.5, 1: 1.0}
    runs = [
        make_run(
            tmp_path / f"{split}{seed}", split=split, task_success_rate={"offline0": share, "offline1": 1.0},
            settings={"seed": seed},
        )
        for split in SPLITS
        for seed, share in done.items()
    ]  # fmt: skip
    cell = tabulate(4, runs)["rows"][0]["cells"]["pooled"]
    assert (cell["n_tasks"], cell["offline0"]["value"], cell["offline0"]["n_runs"]) == (6, 0.75, 2)
    with pytest.raises(InputError, match=r"^runs: expected runs of the same seeds on every split of a row"):
        tabulate(4, runs[:-1])


def test_settings_of_all_runs_are_said_once(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / merge, merge=merge) for merge in ("first", "single")]
    settings = tabulate(2, runs)["settings"]
    assert (settings["ranker"], settings["protocol"], settings["seed"]) == ("bm25", "seeact", 0)
    assert not {"merge", "grounding", "model", "split"} & settings.keys()


# --- websites and domains ---


def test_a_website_is_averaged_as_the_protocol_does(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    cells = tabulate(2, [run], by="website")["rows"][0]["cells"]
    assert list(cells) == ["cross_task, amazon", "cross_task, not known"]
    amazon, unknown = cells.values()
    assert (amazon["n_tasks"], amazon["n_steps"]) == (1, 2)
    assert [unknown[name]["value"] for name in tabling.METRICS] == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("protocol", ["seeact", "inspect-evals", "seeclick", "uground"])
def test_one_website_has_the_figures_that_the_run_has(tmp_path: Path, protocol: str) -> None:
    """All steps are of one domain, so its figures are those of `results.json`."""
    run = so.evaluate(
        dataset="sample", split="cross_task", limit=2, model="builtin/lexical", protocol=protocol, out=tmp_path / "run"
    )
    lines = [json.loads(line) | {"domain": "one"} for line in (run.path / "steps.jsonl").read_text().splitlines()]
    (run.path / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (whole,), (part,) = (tabulate(2, [run.path], by=by)["rows"][0]["cells"].values() for by in (None, "domain"))
    for name in tabling.METRICS:
        for value in ("value", "ci95", "se"):
            assert part[name][value] == pytest.approx(whole[name][value])
    assert (part["n_tasks"], part["n_steps"], part["left_out"]) == tuple(
        whole[size] for size in ("n_tasks", "n_steps", "left_out")
    )


@pytest.mark.parametrize(("number", "options"), [(4, {"by": "website"}), (5, {"by": "domain"}), (1, {"stderr": True})])
def test_options_of_other_tables_are_refused(tmp_path: Path, number: int, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^{next(iter(options))}: expected"):
        tabulate(number, [make_run(tmp_path / "a")], **options)


def test_two_runs_for_one_cell_are_refused(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(InputError, match=r"^runs: expected one run a cell of the table, got .*a and .*b, both choice"):
        tabulate(2, runs)


def test_whole_tasks_are_pooled_so_that_each_counts_the_same(tmp_path: Path) -> None:
    sizes = {"cross_task": (4, 0.5), "cross_website": (2, 0.0), "cross_domain": (4, 0.25)}
    runs = [
        make_run(tmp_path / split, split=split, n_tasks=n, task_success_rate={"offline0": share, "offline1": 1.0})
        for split, (n, share) in sizes.items()
    ]
    cell = tabulate(4, runs)["rows"][0]["cells"]["pooled"]
    assert (cell["n_tasks"], cell["offline0"]["macro"], cell["offline1"]["macro"]) == (10, 0.3, 1.0)
    assert cell["offline0"]["ci95"] == list(wilson(0.3, 10))


def test_a_run_without_elements_has_no_figure_for_them(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "a", element_accuracy=None, step_success_rate=None,
        task_success_rate={"offline0": None, "offline1": None},
    )  # fmt: skip
    cells = tabulate(2, [run])["rows"][0]["cells"]["cross_task"]
    assert (cells["element_accuracy"], cells["operation_f1"]["macro"], cells["step_success_rate"]) == (None, 0.75, None)
    assert tabulate(4, [run])["rows"][0]["cells"]["pooled"]["offline0"] is None


# --- the average that a protocol quotes ---

AVERAGES = [("seeact", "macro", "macro"), ("inspect-evals", "micro", "micro"), ("seeclick", "micro", "macro"), ("showui", "macro", "macro")]  # fmt: skip
"""Protocol, what it quotes of Element Accuracy and Step SR, and of Operation F1."""
BY_AVERAGE = {"macro": {"value": 0.131, "se": 0.05}, "micro": {"value": 0.143, "se": 0.04}}


def of_two_averages(folder: Path, protocol: str, **results: object) -> Path:
    metrics = dict.fromkeys(tabling.METRICS, figure(0.131, micro=0.143))
    lost = {"ranker_miss": {"steps": 3, "macro": 0.869, "micro": 0.857}}
    return make_run(folder, protocol=protocol, waterfall=lost, **(metrics | results))  # type: ignore[arg-type]


@pytest.mark.parametrize(("protocol", "element", "f1"), AVERAGES, ids=[name for name, _, _ in AVERAGES])
def test_a_figure_is_the_average_that_its_protocol_quotes(tmp_path: Path, protocol: str, element: str, f1: str) -> None:
    run = of_two_averages(tmp_path / "a", protocol)
    cell = tabulate(2, [run])["rows"][0]["cells"]["cross_task"]
    for name, average in (("element_accuracy", element), ("operation_f1", f1), ("step_success_rate", element)):
        value = BY_AVERAGE[average]["value"]
        quoted = {"average": average, **BY_AVERAGE[average], "ci95": (value - 0.1, value + 0.1)}
        assert {key: cell[name][key] for key in quoted} == quoted
    assert tabling.cost([run])["runs"][0]["step_success_rate"]["value"] == BY_AVERAGE[element]["value"]
    assert tabling.waterfall([run])["rest"] == pytest.approx(BY_AVERAGE[element]["value"])


def test_results_from_before_the_micro_interval_was_kept_have_none(tmp_path: Path) -> None:
    old = {name: value for name, value in figure(0.1, micro=0.2).items() if not name.startswith("micro_")}
    run = of_two_averages(tmp_path / "a", "inspect-evals", step_success_rate=old)
    found = tabulate(3, [run])["rows"][0]["cells"]["cross_task"]["step_success_rate"]
    assert (found["value"], found["ci95"], found["se"]) == (0.2, None, None)


def test_the_best_way_of_marking_is_the_best_by_the_quoted_average(tmp_path: Path) -> None:
    shares = {"a": figure(0.2, micro=0.4), "b": figure(0.3, micro=0.1)}
    runs = [
        marked(tmp_path / name, kind, protocol="inspect-evals", step_success_rate=shares[name])
        for name, kind in (("a", "number"), ("b", "letter"))
    ]
    assert tabulate(5, runs, tmp_path)["best"] == "a"


def test_difficulty_averages_as_the_protocol_does(tmp_path: Path) -> None:
    """Four steps of two tasks in one band: one task is right in 1 of 3, the other in 1 of 1."""
    run = make_run(tmp_path / "a", protocol="inspect-evals")
    lines = [
        {"annotation_id": f"t{i == 3:d}", "action_uid": f"s{i}", "outcome": "success", "n_actions": 3, "success": float(i in (0, 3)), "best_rank": 0, "operation_f1": 1.0, "target": {}}
        for i in range(4)
    ]  # fmt: skip
    (run / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    band = tabling.difficulty([run])["runs"][0]["bands"]["1-4"]
    assert (band["average"], band["value"], band["macro"]) == ("micro", 0.5, pytest.approx(2 / 3))


# --- the paper beside it ---


@pytest.mark.parametrize("number", [2, 3])
def test_the_papers_row_of_the_same_grounding_and_model_is_beside_ours(tmp_path: Path, number: int) -> None:
    row = tabulate(number, [make_run(tmp_path / "a")])["rows"][0]
    assert row["paper"]["figures"]["cross_task"][-1] == {2: 40.2, 3: 39.1}[number]


@pytest.mark.parametrize(
    "other",
    [{"model": "openai/gpt-4o"}, {"grounding": "pixel"}, {"dataset": "sample"}, {"no_image": True}],
    ids=["model", "grounding", "data", "picture"],
)
def test_nothing_of_the_paper_is_beside_a_run_that_is_not_the_same(tmp_path: Path, other: dict[str, object]) -> None:
    assert tabulate(2, [make_run(tmp_path / "a", **other)])["rows"][0]["paper"] is None  # type: ignore[arg-type]


def test_the_papers_pool_is_beside_ours_only_over_all_three_splits(tmp_path: Path) -> None:
    runs = three_splits(tmp_path)
    assert tabulate(4, runs)["rows"][0]["paper"]["figures"]["pooled"] == [3.3, 12.2, 37.8]
    assert tabulate(4, runs[:2])["rows"][0]["paper"] is None


def test_the_papers_figures_are_those_of_the_shared_file() -> None:
    path = SHARED_DATA / "paper_tables.json"
    if not path.is_file():
        pytest.skip("the paper's tables are not here: ../shared/data/paper_tables.json, beside the checkout")
    shared = json.loads(path.read_text())
    rows = {number: tabling.paper_table(number)["rows"] for number in (2, 3, 4)}
    assert {row["method"]: [row["figures"][split] for split in SPLITS] for row in rows[2]} == shared["table2"]
    of_groundings = {row["grounding"]: [row["figures"][split][0] for split in SPLITS] for row in rows[3]}
    assert of_groundings == shared["table3_step_success_rate_30_tasks"]
    of_tasks = {row["method"]: row["figures"]["pooled"] for row in rows[4]}
    assert of_tasks == {name: row for name, row in shared["table4_whole_task"].items() if name != "columns"}


# --- what parts runs ---


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"protocol": "mindact"}, "Scored by different protocols"),
        ({"dataset_fingerprint": "beef"}, "Of different data on cross_task: f00d: a; beef: b."),
        ({"steps": 3}, "Over different steps of cross_task: a (4); b (3)."),
        ({"complete": False}, "Not all steps that were asked for: b."),
    ],
    ids=["protocol", "data", "steps", "cost limit"],
)
def test_runs_that_do_not_compare_are_marked(tmp_path: Path, other: dict[str, object], said: str) -> None:
    runs = [make_run(tmp_path / "a"), make_run(tmp_path / "b", model="openai/b", **other)]  # type: ignore[arg-type]
    assert any(note.startswith(said) for note in tabulate(2, runs, tmp_path)["notes"])


def test_runs_over_the_same_steps_are_not_marked(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, model=name) for name in ("a", "b")]
    assert tabulate(2, runs)["notes"] == []


def test_other_pools_are_marked(tmp_path: Path) -> None:
    runs = [*three_splits(tmp_path / "a"), make_run(tmp_path / "b", model="b")]
    assert any(note.startswith("Pooled over different splits") for note in tabulate(4, runs)["notes"])


# --- where it comes from ---


def test_every_run_is_named_with_the_hash_of_its_results(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "a")
    source = tabulate(2, [run], tmp_path)["runs"][0]
    assert source["run"] == "runs/a"
    assert source["results_sha256"] == hashlib.sha256((run / "results.json").read_bytes()).hexdigest()
    assert (source["dataset_fingerprint"], source["protocol"], source["seed"]) == ("f00d", "seeact", 0)


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"split": "cross_task"}'])
def test_results_that_are_none_are_one_sentence(tmp_path: Path, spoilt: str) -> None:
    run = make_run(tmp_path / "a")
    (run / "results.json").write_text(spoilt)
    with pytest.raises(InputError, match=r"^runs: expected .*results\.json"):
        tabulate(2, [run])


def test_steps_that_are_none_are_one_sentence(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    (run / "steps.jsonl").write_text('{"annotation_id": 1}\n')
    with pytest.raises(InputError, match=r"^runs: expected annotation_id to be a text, got 1 in line 1"):
        tabulate(2, [run])


def test_a_folder_of_no_runs_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^runs: expected a run folder with a results\.json, or a folder of such"):
        tabulate(2, [tmp_path])


# --- Table 5 ---


def marked(folder: Path, kind: str, **results: object) -> Path:
    marks = {"marks": kind, "mark_position": "bottom-left", "mark_turn1": None}
    return make_run(folder, grounding="annotation", **marks, **results)  # type: ignore[arg-type]


def test_runs_by_annotation_are_rows_of_table_5(tmp_path: Path) -> None:
    runs = [marked(tmp_path / "a", "number"), marked(tmp_path / "b", "letter", step_sr=0.75)]
    made = tabulate(5, runs, tmp_path)
    assert [(row["kind"], row["turn1"], row["failed_steps"]) for row in made["rows"]] == [
        ("number", "plain", 1),
        ("letter", "plain", 1),
    ]
    assert (made["best"], made["rows"][0]["paper"]["step_success_rate"]) == ("b", 0.243)
    assert made["usage"]["calls"] == 20


@pytest.mark.parametrize(
    ("other", "expected"),
    [({"model": "b"}, "runs of one model"), ({"split": "cross_domain"}, "runs of one split"), ({"steps": 3}, "runs over the same steps")],
)  # fmt: skip
def test_table_5_refuses_runs_that_do_not_compare(tmp_path: Path, other: dict[str, object], expected: str) -> None:
    runs = [marked(tmp_path / "a", "number"), marked(tmp_path / "b", "letter", **other)]
    with pytest.raises(InputError, match=f"^runs: expected {expected}"):
        tabulate(5, runs)


def test_table_5_refuses_other_groundings(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^runs: expected runs by annotation"):
        tabulate(5, [make_run(tmp_path / "a")])


# --- figures ---


def test_difficulty_parts_tasks_by_their_actions(tmp_path: Path) -> None:
    found = tabling.difficulty([make_run(tmp_path / "a")])
    assert found["bands"] == ["1-4", "5-9"]
    bands = found["runs"][0]["bands"]
    assert [(bands[band]["n_tasks"], bands[band]["macro"]) for band in found["bands"]] == [(1, 0.5), (1, 0.0)]


def test_difficulty_needs_to_know_the_actions(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    lines = [json.loads(line) | {"n_actions": 0} for line in (run / "steps.jsonl").read_text().splitlines()]
    (run / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match="n_actions"):
        tabling.difficulty([run])


def test_the_waterfall_ends_at_step_sr(tmp_path: Path) -> None:
    found = tabling.waterfall([make_run(tmp_path / "a", step_sr=0.25)])
    assert (found["losses"], found["rest"]) == ([{"cause": "ranker_miss", "share": 0.75, "steps": 3}], 0.25)


def test_the_waterfall_is_of_one_run(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, model=name) for name in ("a", "b")]
    with pytest.raises(InputError, match="one run"):
        tabling.waterfall(runs)


def test_recall_counts_steps_without_a_right_element_and_draws_one_ranking_once(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, model=name) for name in ("a", "b")]
    assert tabling.recall(runs)["curves"] == [{"label": "bm25, cross_task", "recall": [0.0, 0.25, 0.5, 0.75, 0.75]}]


def test_cost_is_in_calls_unless_every_price_is_known(tmp_path: Path) -> None:
    usage = {"calls": 10, "cost_usd": 3.0}
    runs = [
        make_run(tmp_path / "a", usage=usage),
        make_run(tmp_path / "b", model="b", usage=usage | {"cost_usd": None}),
    ]
    assert [(found["unit"], found["runs"][0]["a_task"]) for found in (tabling.cost(runs[:1]), tabling.cost(runs))] == [
        ("cost_usd", 1.5),
        ("calls", 5.0),
    ]


def test_intervals_are_those_of_the_results(tmp_path: Path) -> None:
    cell = tabulate(3, [make_run(tmp_path / "a", step_success_rate=figure(0.4, "bootstrap"))])["rows"][0]["cells"]
    assert list(cell["cross_task"]["step_success_rate"]["ci95"]) == figure(0.4)["ci95"]
