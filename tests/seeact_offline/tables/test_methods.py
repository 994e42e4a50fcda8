"""Tables 2 to 4: which cell a run fills, what stands beside it, what is marked and what is refused."""

from __future__ import annotations

import csv
import hashlib
import html
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.records import InputError
from seeact_offline.scoring import aggregate
from seeact_offline.scoring.inference import wilson
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.paper_tables import paper_table
from seeact_offline.scoring.report import NOT_THE_PAPERS
from seeact_offline.tables import build_table
from seeact_offline.tables.document import ENDINGS, Form
from seeact_offline.tables.methods import SPLITS, MethodFigures, MethodTable, method_table
from seeact_offline.tables.table_input import TableInput, find_runs
from tests.conftest import SHARED_DATA
from tests.finished_runs import figure, make_run


def table(number: int, runs: list[Path], base: Path | None = None, by: str | None = None) -> MethodTable:
    return method_table(TableInput(str(number), runs, base or Path.cwd(), by=by))


def first_cell(number: int, runs: list[Path], by: str | None = None) -> MethodFigures:
    return table(number, runs, by=by).cells[0]


def notes(number: int, runs: list[Path], base: Path) -> str:
    """The notes below the first table of the page."""
    return "\n".join(build_table(number, runs, base).tables[0].notes)


def three_splits(folder: Path, **results: Any) -> list[Path]:
    return [make_run(folder / split, split=split, **results) for split in SPLITS]


def two_runs(folder: Path, settings: dict[str, Any] | None = None, **other: Any) -> list[Path]:
    """The second differs from the first in this alone."""
    return [make_run(folder / "a"), make_run(folder / "b", settings=settings, **other)]


# --- which cell a run fills ---


def test_a_method_is_a_row_and_its_splits_are_in_the_papers_order(tmp_path: Path) -> None:
    (row,) = table(2, [*reversed(three_splits(tmp_path))]).rows
    assert (row.method, list(row.cells)) == ("choice, openai/gpt-4-vision-preview", list(SPLITS))


@pytest.mark.parametrize("listed", [None, "grid.json", "table.json"])
def test_a_folder_of_runs_is_its_runs_by_name_or_as_its_list_has_them(tmp_path: Path, listed: str | None) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / name, model=f"openai/{name}")
    if listed:
        entries = [{"folder": name} for name in ("b", "a", "gone")]
        (tmp_path / listed).write_text(json.dumps({"cells" if listed == "grid.json" else "rows": entries}))
    assert [path.name for path in find_runs([tmp_path])] == (["b", "a"] if listed else ["a", "b"])


def test_a_trained_model_is_the_runs_of_its_evaluation_and_without_one_is_named(tmp_path: Path) -> None:
    for name in ("evaluated", "plain"):
        (tmp_path / name / "training").mkdir(parents=True)
        (tmp_path / name / "training/record.json").write_text("{}")
    run = make_run(tmp_path / "evaluated/evaluation/cross_task")
    assert find_runs([tmp_path / "evaluated", tmp_path / "plain"]) == [run]
    with pytest.raises(InputError, match="plain holds a model that was not evaluated; run `eval --model hf/"):
        find_runs([tmp_path / "plain"])


def test_a_run_named_twice_is_there_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    assert len(TableInput("2", [run, tmp_path], tmp_path).runs) == 1


def test_folders_without_results_are_named(tmp_path: Path) -> None:
    _, unfinished = two_runs(tmp_path)
    (unfinished / "results.json").unlink()
    assert "Without results yet, and not in the table: b." in notes(2, [tmp_path], tmp_path)


def test_runs_of_one_method_are_parted_by_the_settings_that_differ(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / merge, merge=merge) for merge in ("first", "single")]
    made = table(2, runs)
    assert [row.method.rpartition(", ")[2] for row in made.rows] == ["merge first", "merge single"]
    assert (made.settings["ranker"], made.settings["protocol"], made.settings["seed"]) == ("bm25", "seeact", 0)
    assert not {"merge", "grounding", "model", "split"} & made.settings.keys()


def test_runs_that_differ_in_their_seed_alone_are_one_row(tmp_path: Path) -> None:
    shares = {0: 0.25, 1: 0.5, 7: 0.6}
    runs = [make_run(tmp_path / str(seed), step_sr=one, settings={"seed": seed}) for seed, one in shares.items()]
    (row,) = table(2, runs, tmp_path).rows
    cell, found = row.cells["cross_task"], row.cells["cross_task"].figures["step_success_rate"]
    assert found is not None
    assert (row.method, [*cell.run_names]) == ("choice, openai/gpt-4-vision-preview", ["0", "1", "7"])
    assert (found.value, found.sd, found.n_runs) == pytest.approx((0.45, stdev(shares.values()), 3))
    assert (cell.n_steps, cell.not_run, cell.n_seeds) == (4, 3, 3)


def with_success(run: Path, successes: Sequence[float]) -> Path:
    lines = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    changed = [line | {"success": success} for line, success in zip(lines, successes, strict=True)]
    (run / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in changed))
    return run


SEEDS = {0: (1, 0, 0, 0), 1: (1, 1, 0, 1), 7: (0, 1, 0, 0)}
"""Success of four steps by turns of two tasks, by seed."""


def three_seeds(folder: Path, **more: Any) -> list[Path]:
    return [
        with_success(make_run(folder / str(seed), step_sr=sum(steps) / 4, settings={"seed": seed}, **more), steps)
        for seed, steps in SEEDS.items()
    ]


@pytest.mark.parametrize("by", [None, "domain"])
def test_a_pooled_row_has_an_interval_over_tasks_with_its_seeds_within_them(tmp_path: Path, by: str | None) -> None:
    """It had "sd 6.5, n 3" in the interval's place."""
    found = first_cell(2, three_seeds(tmp_path), by=by).figures["step_success_rate"]
    # the tasks' steps, each a mean over seeds
    expected = aggregate.metric({"t0": [2 / 3, 0.0], "t1": [2 / 3, 1 / 3]})
    assert found is not None
    assert (found.value, found.se) == (pytest.approx(expected.macro), pytest.approx(expected.se))
    assert found.ci95 == pytest.approx(expected.ci95)
    assert (found.sd, found.n_runs) == (pytest.approx(stdev([0.25, 0.75, 0.25])), 3)


@pytest.mark.parametrize("form", ENDINGS)
def test_sd_has_a_column_of_its_own(tmp_path: Path, form: Form) -> None:
    made = build_table(3, three_seeds(tmp_path), tmp_path)
    text = made.text(form)
    assert "sd 2" not in text
    if form == "csv":
        (row,) = csv.DictReader(text.splitlines())
        assert (row["n_runs"], round(float(row["sd"]), 3), row["interval"]) == ("3", 0.289, "korn-graubard")
        return
    ours, header = made.figures if form == "latex" else made.tables[0], ["sd"]
    assert ours is not None
    column = list(ours.header).index(*header)
    assert ours.rows[0][column] == "28.9"
    assert "41.7" in ours.rows[0][column - 2 if form == "latex" else column - 1]
    assert "sd: sample standard deviation of the seeds' own figures" in " ".join(ours.notes)


def test_no_column_of_sd_stands_where_every_row_is_one_run(tmp_path: Path) -> None:
    assert "sd" not in build_table(2, [make_run(tmp_path / "a")], tmp_path).tables[0].header


@pytest.mark.parametrize(("other", "rows"), [({}, 1), ({"merge": "single"}, 2), ({"model": "b"}, 2)])
def test_runs_that_differ_in_more_than_their_seed_are_rows_of_their_own(
    tmp_path: Path, other: dict[str, Any], rows: int
) -> None:
    assert len(table(2, two_runs(tmp_path, settings={"seed": 1}, **other)).rows) == rows


@pytest.mark.parametrize("other", [{"steps": 3}, {"dataset_fingerprint": "beef"}], ids=["steps", "data"])
def test_seeds_over_other_steps_or_data_are_no_row(tmp_path: Path, other: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^runs: expected runs of one cell over the same steps"):
        table(2, two_runs(tmp_path, settings={"seed": 1}, **other))


def test_whole_tasks_are_pooled_for_each_seed(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path / f"{split}{seed}", split=split, task_success_rate={"offline0": share, "offline1": 1.0},
            settings={"seed": seed},
        )
        for split in SPLITS
        for seed, share in {0: 0.5, 1: 1.0}.items()
    ]  # fmt: skip
    cell = first_cell(4, runs)
    found = cell.figures["offline0"]
    assert found is not None
    assert (cell.n_tasks, found.value, found.n_runs) == (6, 0.75, 2)
    # each split has two tasks, of which every seed fails both
    assert found.ci95 == aggregate.metric({str(task): [0.0, 0.0] for task in range(6)}).ci95
    with pytest.raises(InputError, match=r"^runs: expected runs of the same seeds on every split of a row"):
        table(4, runs[:-1])


WEEKS = {"first": "2026-03-02", "last": "2026-03-16", "middle": "2026-03-09"}


def weekly(folder: Path, **more: Any) -> list[Path]:
    """Three runs with one tag that differ in their date alone."""
    return [
        make_run(folder / name, date=f"{day}T09:00:00+00:00", settings={"tags": ["weekly"]}, **more)
        for name, day in WEEKS.items()
    ]


@pytest.mark.parametrize(
    ("which", "name", "left"),
    [
        ("newest", "last", "the newest stands here. Left out: first, middle."),
        ("oldest", "first", "the oldest stands here. Left out: last, middle."),
        ("2026-03-09", "middle", "the newest until 2026-03-09 stands here. Left out: first, last."),
    ],
)
def test_of_one_tag_over_weeks_one_run_stands_in_the_table(tmp_path: Path, which: str, name: str, left: str) -> None:
    """Table 2 ended with "expected one run a cell"."""
    made = build_table(2, weekly(tmp_path), tmp_path, which=which)
    assert made.provenance is not None
    assert [run["run"] for run in made.provenance.runs] == [name]
    assert left in "\n".join(made.tables[0].notes)


@pytest.mark.parametrize("which", ["latest", "2026-02-01"])
def test_a_choice_that_no_run_meets_is_refused(tmp_path: Path, which: str) -> None:
    with pytest.raises(InputError, match=r"^which: "):
        build_table(2, weekly(tmp_path), tmp_path, which=which)


def test_a_label_names_a_row(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, settings={"label": name}) for name in ("step 1000", "step 2000")]
    assert [row.method for row in table(2, runs).rows] == ["step 1000", "step 2000"]


def test_one_label_of_two_methods_does_not_hide_them(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, model=name, settings={"label": "mine"}) for name in ("a", "b")]
    assert [row.method for row in table(2, runs).rows] == ["mine, choice, a", "mine, choice, b"]


def test_metadata_names_a_row_by_its_entries_that_differ(tmp_path: Path) -> None:
    """It read "metadata {'checkpoint': '1000'}"."""
    texts = ({"checkpoint": "1000", "who": "me"}, {"checkpoint": "2000", "who": "me"}, None)
    runs = [make_run(tmp_path / str(n), settings={"metadata": one}) for n, one in enumerate(texts)]
    method = "choice, openai/gpt-4-vision-preview"
    assert [row.method for row in table(2, runs[:2]).rows] == [f"{method}, checkpoint {n}" for n in (1000, 2000)]
    assert table(2, runs[1:]).rows[1].method == method


def test_two_runs_for_one_cell_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^two runs share a cell: .*a and .*b, both choice"):
        table(2, two_runs(tmp_path))


def test_whole_tasks_are_pooled_so_that_each_counts_the_same(tmp_path: Path) -> None:
    sizes = {"cross_task": (4, 0.5), "cross_website": (2, 0.0), "cross_domain": (4, 0.25)}
    runs = [
        make_run(tmp_path / split, split=split, n_tasks=n, task_success_rate={"offline0": share, "offline1": 1.0})
        for split, (n, share) in sizes.items()
    ]
    cell = first_cell(4, runs)
    shares = [figure.macro for figure in cell.figures.values() if figure]
    assert (cell.n_tasks, shares) == (10, [0.3, 1.0])
    assert cell.figures["offline0"] is not None
    assert cell.figures["offline0"].ci95 == wilson(0.3, 10)


def test_a_run_without_elements_has_no_figure_for_them(tmp_path: Path) -> None:
    nothing = {"element_accuracy": None, "step_success_rate": None}
    run = make_run(tmp_path / "a", **nothing, task_success_rate={"offline0": None, "offline1": None})
    found = first_cell(2, [run]).figures
    assert [name for name, one in found.items() if one is None] == list(nothing)
    assert first_cell(4, [run]).figures["offline0"] is None


# --- websites and domains ---


def test_a_website_is_averaged_as_the_protocol_does(tmp_path: Path) -> None:
    cells = table(2, [make_run(tmp_path / "a")], by="website").rows[0].cells
    assert list(cells) == ["cross_task, amazon", "cross_task, not known"]
    amazon, unknown = cells.values()
    assert (amazon.n_tasks, amazon.n_steps) == (1, 2)
    assert [figure.value for figure in unknown.figures.values() if figure] == [1.0, 0.5, 0.5]


@pytest.mark.parametrize("protocol", ["seeact", "inspect-evals", "seeclick", "uground"])
def test_one_website_has_the_figures_that_the_run_has(tmp_path: Path, protocol: str) -> None:
    """All steps are of one domain, so its figures are those of `results.json`."""
    run = so.evaluate(
        dataset="sample", split="cross_task", limit=2, model="builtin/lexical", protocol=protocol, out=tmp_path / "run"
    )
    lines = [json.loads(line) | {"domain": "one"} for line in (run.path / "steps.jsonl").read_text().splitlines()]
    (run.path / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    whole, part = (first_cell(2, [run.path], by=by) for by in (None, "domain"))
    for name in METRICS:
        for value in ("value", "ci95", "se"):
            assert getattr(part.figures[name], value) == pytest.approx(getattr(whole.figures[name], value))
    assert (part.n_tasks, part.n_steps, part.left_out) == (whole.n_tasks, whole.n_steps, whole.left_out)


@pytest.mark.parametrize(
    ("number", "options"), [(4, {"by": "website"}), (5, {"by": "domain"}), (1, {"stderr": True}), (2, {"dataset": "x"})]
)
def test_options_of_other_tables_are_refused(tmp_path: Path, number: int, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"^`{next(iter(options))}` needs `table` "):
        build_table(number, [make_run(tmp_path / "a")], **options)


# --- the average that a protocol quotes ---

AVERAGES = [("seeact", "macro", "macro"), ("inspect-evals", "micro", "micro"), ("seeclick", "micro", "macro"), ("showui", "macro", "macro")]  # fmt: skip
"""Protocol, its average of Element Accuracy and Step SR, and of Operation F1."""
BY_AVERAGE = {"macro": (0.131, 0.05), "micro": (0.143, 0.04)}


@pytest.mark.parametrize(("protocol", "element", "f1"), AVERAGES, ids=[name for name, _, _ in AVERAGES])
def test_a_figure_is_the_average_that_its_protocol_quotes(tmp_path: Path, protocol: str, element: str, f1: str) -> None:
    run = make_run(tmp_path / "a", protocol=protocol, **dict.fromkeys(METRICS, figure(0.131, micro=0.143)))
    found = first_cell(2, [run]).figures
    for name, average in (("element_accuracy", element), ("operation_f1", f1), ("step_success_rate", element)):
        one, (value, se) = found[name], BY_AVERAGE[average]
        assert one is not None
        assert (one.average, one.value, one.se, one.ci95) == (average, value, se, (value - 0.1, value + 0.1))


def test_results_from_before_the_micro_interval_was_kept_have_none(tmp_path: Path) -> None:
    old = {name: value for name, value in figure(0.1, micro=0.2).items() if not name.startswith("micro_")}
    run = make_run(tmp_path / "a", protocol="inspect-evals", step_success_rate=old)
    found = first_cell(3, [run]).figures["step_success_rate"]
    assert found is not None
    assert (found.value, found.ci95, found.se) == (0.2, None, None)


# --- the paper beside it ---


@pytest.mark.parametrize(("number", "figure_of_paper"), [(2, 40.2), (3, 39.1)])
def test_the_papers_row_of_the_same_grounding_and_model_is_beside_ours(
    tmp_path: Path, number: int, figure_of_paper: float
) -> None:
    paper = table(number, [make_run(tmp_path / "a")]).rows[0].paper
    assert paper is not None
    assert paper["figures"]["cross_task"][-1] == figure_of_paper


@pytest.mark.parametrize(
    "other", [{"model": "openai/gpt-4o"}, {"grounding": "pixel"}, {"dataset": "sample"}, {"no_image": True}]
)
def test_nothing_of_the_paper_is_beside_a_run_that_is_not_the_same(tmp_path: Path, other: dict[str, Any]) -> None:
    assert table(2, [make_run(tmp_path / "a", **other)]).rows[0].paper is None


@pytest.mark.parametrize("number", [2, 3, 4])
@pytest.mark.parametrize("form", ENDINGS)
def test_no_row_of_the_paper_is_beside_the_sample(tmp_path: Path, number: int, form: Form) -> None:
    """The paper's own rows stood below those of the sample, in LaTeX in the same table."""
    text = build_table(number, three_splits(tmp_path, dataset="sample"), tmp_path).text(form)
    assert "paper" not in text.replace(NOT_THE_PAPERS, "").replace(html.escape(NOT_THE_PAPERS), "").lower()
    assert ("not the paper" in text) == (form != "csv")


def test_the_papers_pool_is_beside_ours_only_over_all_three_splits(tmp_path: Path) -> None:
    runs = three_splits(tmp_path)
    papers = [table(4, some).rows[0].paper for some in (runs, runs[:2])]
    assert [paper and paper["figures"]["pooled"] for paper in papers] == [[3.3, 12.2, 37.8], None]


def test_the_papers_figures_are_those_of_the_shared_file() -> None:
    path = SHARED_DATA / "paper_tables.json"
    if not path.is_file():
        pytest.skip("the paper's tables are not here: ../shared/data/paper_tables.json, beside the checkout")
    shared = json.loads(path.read_text())
    rows = {number: paper_table(number)["rows"] for number in (2, 3, 4)}
    assert {row["method"]: [row["figures"][split] for split in SPLITS] for row in rows[2]} == shared["table2"]
    of_groundings = {row["grounding"]: [row["figures"][split][0] for split in SPLITS] for row in rows[3]}
    assert of_groundings == shared["table3_step_success_rate_30_tasks"]
    of_tasks = {row["method"]: row["figures"]["pooled"] for row in rows[4]}
    assert of_tasks == {name: row for name, row in shared["table4_whole_task"].items() if name != "columns"}


# --- what parts runs, and where figures come from ---


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
def test_runs_that_do_not_compare_are_marked(tmp_path: Path, other: dict[str, Any], said: str) -> None:
    assert f"\n{said}" in notes(2, two_runs(tmp_path, model="openai/b", **other), tmp_path)


def test_runs_over_the_same_steps_are_not_marked(tmp_path: Path) -> None:
    assert table(2, two_runs(tmp_path, model="openai/b")).differences == []


def test_other_pools_are_marked(tmp_path: Path) -> None:
    runs = [*three_splits(tmp_path / "a"), make_run(tmp_path / "b", model="b")]
    assert table(4, runs).differences[0].startswith("Pooled over different splits")


def test_every_run_is_named_with_the_hash_of_its_results(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "a")
    source = TableInput("2", [run], tmp_path).runs[0].source
    digest = hashlib.sha256((run / "results.json").read_bytes()).hexdigest()
    assert (source["run"], source["results_sha256"]) == ("runs/a", digest)
    assert (source["dataset_fingerprint"], source["protocol"], source["seed"]) == ("f00d", "seeact", 0)


@pytest.mark.parametrize(
    ("name", "spoilt", "expected"),
    [
        *(("results.json", text, r"expected .*results\.json") for text in ("", "{", "[]", '{"split": "cross_task"}')),
        ("steps.jsonl", '{"annotation_id": 1}\n', "expected annotation_id to be a text, got 1 in line 1"),
        ("results.json", None, r"expected a run folder with a results\.json, or a folder of such"),
    ],
)
def test_damaged_runs_are_one_sentence(tmp_path: Path, name: str, spoilt: str | None, expected: str) -> None:
    run = make_run(tmp_path / "a")
    if spoilt is None:
        (run / name).unlink()
    else:
        (run / name).write_text(spoilt)
    with pytest.raises(InputError, match=f"^runs: {expected}"):
        table(2, [run])


# --- Table 6 ---

ARENA = {
    "grounding": "visualwebarena", "observation": "tree", "ceiling": figure(0.8),
    "element_by_rule": {"strict": figure(0.4), "lenient": figure(0.6)},
}  # fmt: skip


def side_by_side(folder: Path, **other: Any) -> list[Path]:
    """A grounding that the paper has too, and a web agent."""
    return [make_run(folder / "choice", ceiling=figure(0.7)), make_run(folder / "arena", **ARENA | other)]


def test_groundings_and_agents_have_their_ceilings_beside_them_and_no_papers_figures(tmp_path: Path) -> None:
    made = build_table(6, side_by_side(tmp_path), tmp_path)
    values = {
        (one["method"].split(",")[0], one["metric"]): one for one in csv.DictReader(made.text("csv").splitlines())
    }
    assert [float(values[name, "ceiling"]["value"]) for name in ("choice", "visualwebarena")] == [0.7, 0.8]
    assert [values["visualwebarena", rule]["value"] for rule in ("strict", "lenient")] == ["0.4", "0.6"]
    assert (values["choice", "lenient"]["value"], values["visualwebarena", "lenient"]["low"]) == ("", "0.5")
    for form in ENDINGS:
        text = made.text(form)
        assert "paper" not in text.lower().replace("those of papers", "")
        assert "no success rates of tasks" in text or form == "csv"


def test_a_ceiling_is_never_the_best(tmp_path: Path) -> None:
    runs = side_by_side(tmp_path, step_success_rate=figure(0.5))
    latex = build_table(6, runs, tmp_path).text("latex")
    assert r"\bfseries 50.0" in latex
    assert r"\bfseries 80.0" not in latex


@pytest.mark.parametrize(
    ("other", "got"),
    [
        ({"steps": 3}, r"runs over the same steps of cross_task, got choice \(4\) and arena \(3\)"),
        ({"dataset_fingerprint": "beef"}, "runs over the same steps of cross_task"),
        ({"protocol": "mindact"}, "runs scored by one protocol"),
    ],
)
def test_runs_that_are_not_of_the_same_steps_are_not_put_side_by_side(
    tmp_path: Path, other: dict[str, Any], got: str
) -> None:
    with pytest.raises(InputError, match=got):
        build_table(6, side_by_side(tmp_path, **other), tmp_path)


def test_different_models_are_said_and_have_no_best(tmp_path: Path) -> None:
    runs = side_by_side(tmp_path, model="openai/other", step_success_rate=figure(0.5))
    assert "By different models" in notes(6, runs, tmp_path)
    assert "bfseries" not in build_table(6, runs, tmp_path).text("latex")


def test_on_a_screen_splits_are_columns_and_no_equal_figure_is_the_best(tmp_path: Path) -> None:
    document = build_table(2, two_runs(tmp_path, {"merge": "single"}), tmp_path)
    text = document.screen_text()
    assert "Provenance" not in text
    assert "<!--" not in text
    (header,) = [line for line in text.splitlines() if line.startswith("| metric")]
    assert [cell.strip() for cell in header.strip("|").split("|")] == ["metric", "method", "Cross-Task"]
    assert (text.count(" tied "), text.count(" best ")) == (0, 0)
