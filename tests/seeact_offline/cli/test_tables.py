"""`tables` as the shell would run it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.finished_runs import make_run
from tests.seeact_offline.conftest import Cli, Sample, read_json


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for split in ("cross_task", "cross_website"):
        make_run(tmp_path / "runs" / split, split=split)
    return tmp_path / "runs"


def change(run: Path, **entries: object) -> None:
    (run / "results.json").write_text(json.dumps(read_json(run / "results.json") | entries))


def test_a_folder_of_runs_is_a_table_in_one_command(cli: Cli, runs: Path) -> None:
    outcome = cli("tables", "--table", 2, runs)
    assert (outcome.status, outcome.err) == (0, "")
    assert "# Table 2: Methods by split" in outcome.out
    assert "40.2" in outcome.out


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_folder_gets_the_table_in_every_format_and_each_can_be_checked(
    cli: Cli, runs: Path, tmp_path: Path, number: int
) -> None:
    assert cli("tables", "--table", number, runs, "--out", tmp_path / "made").status == 0
    made = sorted((tmp_path / "made").iterdir())
    assert [path.suffix for path in made] == [".csv", ".html", ".md", ".tex"]
    for path in made:
        outcome = cli("tables", "--check", path)
        assert (outcome.status, outcome.err) == (0, "")
        assert "none of" in outcome.out


@pytest.mark.parametrize("words", [("--by", "website"), ("--stderr",)], ids=["by", "stderr"])
def test_a_table_of_options_is_checked_with_them(cli: Cli, runs: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    assert cli("tables", "--table", 2, runs, *words, "--out", tmp_path / "made").status == 0
    for path in sorted((tmp_path / "made").iterdir()):
        assert cli("tables", "--check", path).status == 0


@pytest.mark.parametrize("ending", [".csv", ".html", ".md", ".tex"])
def test_check_says_which_cells_have_moved(cli: Cli, runs: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"table{ending}"
    cli("tables", "--table", 3, runs, "--out", path)
    change(runs / "cross_website", step_success_rate={"macro": 0.5, "micro": 0.5, "ci95": [0.0, 1.0]})
    outcome = cli("tables", "--check", path)
    assert outcome.status == 1
    moved = [
        line for line in outcome.out.splitlines() if line.startswith("moved: choice, openai/gpt-4-vision-preview, ")
    ]
    assert moved
    assert "runs/cross_website has other results than when Table 3 was made" in outcome.err


def test_results_that_leave_every_cell_as_it_was_are_remarked_on(cli: Cli, runs: Path, tmp_path: Path) -> None:
    cli("tables", "--table", 3, runs, "--out", tmp_path / "t.md")
    change(runs / "cross_task", something_new=1)
    outcome = cli("tables", "--check", tmp_path / "t.md")
    assert (outcome.status, "has other results" in outcome.err) == (0, True)


def test_a_run_that_came_later_moves_no_cell(cli: Cli, runs: Path, tmp_path: Path) -> None:
    cli("tables", "--table", 3, runs, "--out", tmp_path / "t.md")
    make_run(runs / "later", model="openai/later")
    assert cli("tables", "--check", tmp_path / "t.md").status == 0


def test_a_table_and_its_runs_can_be_moved_together(cli: Cli, runs: Path, tmp_path: Path) -> None:
    cli("tables", "--table", 3, runs, "--out", runs / "t.tex")
    runs.rename(tmp_path / "elsewhere")
    assert cli("tables", "--check", tmp_path / "elsewhere" / "t.tex").status == 0


def test_what_is_printed_can_be_checked_from_where_it_was_printed(
    cli: Cli, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs.parent)
    Path("printed.md").write_text(cli("tables", "--table", 4, "runs").out)
    assert cli("tables", "--check", "printed.md").status == 0


def test_a_run_that_is_gone_is_one_sentence(cli: Cli, runs: Path, tmp_path: Path) -> None:
    cli("tables", "--table", 3, runs, "--out", tmp_path / "t.md")
    (runs / "cross_task" / "results.json").unlink()
    assert "expected a run folder with a results.json" in cli("tables", "--check", tmp_path / "t.md").error


def test_standalone_is_a_whole_document(cli: Cli, runs: Path) -> None:
    made = cli("tables", "--table", 2, runs, "--format", "latex", "--standalone").out
    assert made.startswith("\\documentclass{article}")
    assert made.endswith("\\end{document}\n")


def test_a_formula_in_a_models_name_is_a_text_in_csv(cli: Cli, tmp_path: Path) -> None:
    make_run(tmp_path / "a", grounding="=1+1", model="x")
    made = cli("tables", "--table", 2, tmp_path / "a", "--format", "csv").out
    assert next(csv.DictReader(io.StringIO(made)))["method"] == "'=1+1, x"


def test_the_bundled_sample_is_not_the_papers(cli: Cli, tmp_path: Path) -> None:
    make_run(tmp_path / "a", dataset="sample")
    assert "they are not the paper's" in cli("tables", "--table", 2, tmp_path / "a").out


# --- Tables 1 and 5 ---


def test_table_1_is_of_what_stats_prints(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "stats.json").write_text(
        cli("stats", "--dataset", sample.dataset, "--split", "cross_task", "--json").out
    )
    assert cli("tables", "--table", 1, tmp_path / "stats.json", "--out", tmp_path / "t.md").status == 0
    assert "| cross_task, paper | 177 " in (tmp_path / "t.md").read_text()
    assert cli("tables", "--check", tmp_path / "t.md").status == 0


def test_table_1_of_a_data_set_is_counted_as_stats_does(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "stats.json").write_text(cli("stats", "--dataset", sample.dataset, "--json").out)
    of_file = cli("tables", "--table", 1, tmp_path / "stats.json").out
    of_data = cli("tables", "--table", 1, "--dataset", sample.dataset).out
    rows = [[line for line in text.splitlines() if line.startswith("|")] for text in (of_file, of_data)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"tokenizer": "words", "splits": {"x": {"tasks": 1}}}'])
def test_a_file_that_stats_did_not_write_is_one_sentence(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "stats.json").write_text(text)
    assert "runs: expected" in cli("tables", "--table", 1, tmp_path / "stats.json").error


@pytest.mark.slow
def test_an_ablation_is_table_5_with_its_rows_hashes(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    few = (
        "--kinds",
        "number,letter",
        "--positions",
        "bottom-left",
        "--turn1",
        "plain",
        "--top-k",
        6,
        "--group-size",
        3,
    )
    assert cli("ablate-markup", *sample.words, *few, "--out", tmp_path / "ablation").status == 0
    for name in ("table.md", "table.tex", "table.csv"):
        assert cli("tables", "--check", tmp_path / "ablation" / name).status == 0
    by_runs = cli("tables", "--table", 5, *sorted((tmp_path / "ablation").glob("*-bottom-left"))).out
    assert by_runs.count("sha256 ") == 2


# --- a table of one's own ---

OWN = """
from seeact_offline.tables import Table


def steps(runs):
    rows = [(run.name, run.results.n_steps) for run in runs]
    return Table(title="Steps & runs", header=("run", "steps"), rows=rows, notes=["Counted."])
"""


def test_a_function_in_any_file_is_a_table_in_every_format(cli: Cli, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    outcome = cli("tables", "--table", f"{tmp_path}/mine.py:steps", runs, "--out", tmp_path / "made")
    assert (outcome.status, outcome.err) == (0, "")
    made = {path.name: path.read_text() for path in (tmp_path / "made").iterdir()}
    assert made.keys() == {"steps.csv", "steps.html", "steps.md", "steps.tex"}
    assert "# Steps &amp; runs" in made["steps.md"]
    assert "| ../runs/cross_task    | 4     |" in made["steps.md"]
    assert "1. ../runs/cross_task: sha256 " in made["steps.md"]
    assert made["steps.csv"] == "run,steps\n../runs/cross_task,4\n../runs/cross_website,4\n"


def test_no_code_that_a_checked_file_names_is_loaded(cli: Cli, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit(99)")
    (tmp_path / "t.md").write_text(block(table=f"{tmp_path}/mine.py:steps"))
    error = cli("tables", "--check", tmp_path / "t.md").error
    assert error.startswith("error: --check: expected one of tables 1, 2, 3, 4, 5, 6, observations, rankers, got ")


# --- figures and usage ---


def test_tags_of_one_run_each_have_a_hint(cli: Cli, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / tag, settings={"tags": [tag]}) for tag in ("one", "two")]
    done = cli("tables", "--over-time", *runs, "--out", tmp_path / "f.svg")
    assert "give the runs of one line the same tag (eval --tags NAME)" in done.err


def test_a_table_of_one_of_several_weeks_is_checked_by_that_run(cli: Cli, tmp_path: Path) -> None:
    for day in (1, 2):
        make_run(tmp_path / "weeks" / str(day), date=f"2026-03-0{day}T09:00:00")
    cli("tables", "--table", 2, tmp_path / "weeks", "--which", "oldest", "--out", tmp_path / "t.md")
    assert cli("tables", "--check", tmp_path / "t.md").status == 0


@pytest.mark.parametrize("kind", ["difficulty", "waterfall", "recall", "cost"])
def test_a_figure_is_a_file(cli: Cli, tmp_path: Path, kind: str) -> None:
    make_run(tmp_path / "a")
    assert cli("tables", "--figure", kind, tmp_path / "a", "--out", tmp_path / "figures" / "f.svg").status == 0
    assert (tmp_path / "figures" / "f.svg").read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--table", "2"), "name at least one run folder"),
        (("--table", "2", "a", "--dataset", "sample"), "--dataset needs --table 1"),
        (("--table", "2", "a", "--out", "x.docx"), "--out: expected a file that ends with .md"),
        (("--figure", "cost", "a", "--by", "domain"), "--by cannot be combined with --figure; use it with --table"),
        (("--table", "4", "a", "--stderr", "--by", "domain"), "--by needs --table 2 or 3"),
        (
            ("--figure", "cost", "a", "--which", "oldest"),
            "--which cannot be combined with --figure; use it with --table",
        ),
        (("--figure", "cost", "a"), "--out: expected a file that ends with .png"),
        (("--figure", "cost", "a", "--out", "x.gif"), "--out: expected a file that ends with .png"),
        (("--check", "missing.md"), "missing.md"),
        (("a",), "one of the arguments --table --figure --over-time --check is required"),
    ],
)
def test_wrong_usage_is_one_sentence(cli: Cli, words: tuple[str, ...], said: str) -> None:
    make_run(Path("a"))
    assert said in cli("tables", *words).error


@pytest.mark.slow
def test_tables_of_finished_runs_load_no_heavy_package(runs: Path) -> None:
    heavy = ("torch", "PIL", "lxml", "pandas", "pyarrow", "datasets", "matplotlib", "scipy")
    code = f"import sys; from seeact_offline.cli import main; main(['tables', '--table', '2', {str(runs)!r}]); print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# --- a hostile file to check ---


def test_a_data_set_that_a_table_counted_is_opened_only_where_it_is_named(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    cli("tables", "--table", 1, "--dataset", sample.dataset, "--out", tmp_path / "t.md")
    error = cli("tables", "--check", tmp_path / "t.md").error
    assert error == "error: name the data set that Table 1 counts with --dataset"
    assert cli("tables", "--check", tmp_path / "t.md", "--dataset", sample.dataset).status == 0


def test_a_data_set_that_no_table_counted_is_refused(cli: Cli, runs: Path, tmp_path: Path) -> None:
    cli("tables", "--table", 3, runs, "--out", tmp_path / "t.md")
    assert (
        "counts a data set; remove --dataset" in cli("tables", "--check", tmp_path / "t.md", "--dataset", "x/y").error
    )


def block(**changes: object) -> str:
    """The line that says what a table was made of."""
    made_of = {"table": 3, "inputs": ["runs"], "dataset": None, "runs": [], **changes}
    return f"<!-- seeact-offline table {json.dumps(made_of)} -->\n"


REFUSED = {
    "a table of no number": block(table=99),
    "no runs": block(inputs=[]),
    "no runs of the ablation": block(table=5, inputs=[]),
    "a data set of the hub": block(table=1, dataset="owner/name", inputs=[]),
    "another table of a data set": block(table=3, dataset="owner/name", inputs=[]),
    "a data set that is a number": block(table=1, dataset=3),
    "a run with NUL": block(inputs=["a\0b"]),
    "a run of no name": block(inputs=["a" * 100_000]),
    "deep JSON": '<!-- seeact-offline table {"a":' + "[" * 100_000,
    "many tables": block() * 1000,
    "a large file": block() + "|" * 10_000_000,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_a_file_that_cannot_be_checked_is_one_sentence(cli: Cli, runs: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "t.md").write_text(text)
    assert len(cli("tables", "--check", tmp_path / "t.md").error) < 2100


HUGE = {
    "pipes.md": block() + "|" * 1_000_000,
    "grids.md": block() + "|a|\n\n" * 40_000,
    "rows.md": block() + "|a|\n" * 50_000,
    "tables.html": block() + "<table>" * 140_000,
    "rows.html": block() + "<table>" + "<tr>" * 50_000,
    "columns.html": block() + "<table><tr>" + '<td colspan="99">' * 60_000,
    "ends.tex": block().replace("<!--", "%").replace(" -->", "") + "\\toprule\n" + "\\\\[" * 340_000,
    "columns.tex": block().replace("<!--", "%").replace(" -->", "") + "\\toprule\n" + "\\multicolumn{99}{c}{x}&" * 40_000 + "\\\\\n",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", HUGE)
def test_a_file_of_nothing_but_marks_is_checked_in_linear_time(cli: Cli, runs: Path, tmp_path: Path, name: str) -> None:
    """Quadratic time would be hours."""
    (tmp_path / name).write_text(HUGE[name])
    outcome = cli("tables", "--check", tmp_path / name)
    assert (outcome.status, "none of 0 cells moved" in outcome.out) == (1, True)


@pytest.mark.parametrize("more", ['"' + "x" * 140_000 + '"\n', '"x,y\n', "\0\n", "x\n", ",,,\n"])
def test_a_csv_that_was_changed_is_checked_or_refused(cli: Cli, runs: Path, tmp_path: Path, more: str) -> None:
    cli("tables", "--table", 3, runs, "--out", tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text() + more)
    outcome = cli("tables", "--check", tmp_path / "t.csv")
    assert outcome.status == 1 or "--check" in outcome.error
