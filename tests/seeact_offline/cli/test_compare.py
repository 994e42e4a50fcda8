"""`compare` and `eval --baseline`: finished runs against each other, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.cli import main
from seeact_offline.files.markdown import percent
from tests.seeact_offline.conftest import Cli, Sample, read_json, read_lines

Change = Callable[[list[dict[str, Any]]], object]


@pytest.fixture(scope="module")
def finished(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs over the same steps, `lexical` and `oracle`. Not to be changed."""
    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(folder / "cache"))
        for model in ("lexical", "oracle"):
            assert main(["eval", *sample.words, "--model", f"builtin/{model}", "--out", str(folder / model)]) == 0
    return folder


@pytest.fixture
def runs(finished: Path, tmp_path: Path) -> tuple[Path, Path]:
    """The baseline and the oracle, to be changed."""
    for model in ("lexical", "oracle"):
        shutil.copytree(finished / model, tmp_path / model)
    return tmp_path / "lexical", tmp_path / "oracle"


def rewritten(run: Path, change: Change) -> None:
    """The run's step scores after a change to their rows."""
    rows = read_lines(run / "steps.jsonl")
    change(rows)
    (run / "steps.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def copied(run: Path, to: Path, *, asked_anew: bool = False) -> None:
    """`asked_anew`: as another run of the same settings."""
    shutil.copytree(run, to)
    if asked_anew:
        manifest = read_json(to / "manifest.json")
        manifest["made"]["run"] = "anew"
        (to / "manifest.json").write_text(json.dumps(manifest))


def reset(run: Path, **results: object) -> None:
    (run / "results.json").write_text(json.dumps(read_json(run / "results.json") | results))


def test_a_difference_is_that_of_the_runs_own_figures(cli: Cli, runs: tuple[Path, Path]) -> None:
    found = so.compare(*runs)
    ours, theirs = (read_json(run / "results.json") for run in runs)
    for pair in found.pairs:
        assert pair.gap.macro == pytest.approx(theirs[pair.metric]["macro"] - ours[pair.metric]["macro"])
        assert found.figures[pair.metric]["oracle"].ci95 == tuple(theirs[pair.metric]["ci95"])
    assert found.averaged_otherwise == ()


def test_runs_compare_as_their_folders_do(runs: tuple[Path, Path]) -> None:
    assert so.compare(*map(so.load_run, runs), by=["website"]) == so.compare(*runs, by=["website"])


def test_a_comparison_is_a_table_of_differences(runs: tuple[Path, Path]) -> None:
    found = so.compare(*runs, by=["website", "operation"])
    table = found.to_pandas().set_index(["metric", "by", "label"]).sort_index()
    for pair in found.pairs:
        row = table.loc[(pair.metric, "", "")]
        assert (row.second_macro - row.first_macro, row.p, row.p_holm) == (
            pytest.approx(row.difference), pair.gap.p, pair.p_holm,
        )  # fmt: skip
        for by, cells in found.breakdowns.items():
            differences = {cell.label: cell.gaps[pair.metric]["oracle"].macro for cell in cells}
            assert dict(table.loc[(pair.metric, by)].difference) == differences


def test_it_prints_the_report(cli: Cli, runs: tuple[Path, Path]) -> None:
    done = cli("compare", *runs)
    assert done.status == 0
    assert done.out == so.compare(*runs).report() + "\n"
    assert "## oracle against lexical, the baseline" in done.out


@pytest.mark.parametrize("name", ["found.json", "found.md"])
def test_it_is_written_by_the_ending_of_the_file(cli: Cli, runs: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    out = tmp_path / "new" / name
    done = cli("compare", *runs, "--by", "operation,website", "--out", out)
    found = so.compare(*runs, by=["operation", "website"])
    assert done.out == found.report() + "\n"
    text = out.read_text()
    assert (
        text == found.report() if name.endswith("md") else json.loads(text) == json.loads(json.dumps(found.to_dict()))
    )


def test_three_runs_are_written_as_json_latex_and_a_picture(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(runs[1], tmp_path / "twin")
    found = so.compare(*runs, tmp_path / "twin")
    for name in ("found.json", "found.tex", "found.svg"):
        done = cli("compare", *runs, tmp_path / "twin", "--out", tmp_path / name)
        assert (done.status, done.out) == (0, found.report() + "\n")
    assert read_json(tmp_path / "found.json")["overlap"]["alone"]["oracle"] == []
    latex = (tmp_path / "found.tex").read_text()
    assert latex.count("\\begin{tabular}") == len(found.tables())
    assert "% Steps solved by k of 3 runs" in latex
    assert "<svg" in (tmp_path / "found.svg").read_text()
    union = percent(found.overlap.union.macro)
    assert f"(a perfect router): {union} % macro" in done.out


def test_a_picture_of_two_runs_is_refused(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    error = cli("compare", *runs, "--out", tmp_path / "found.svg").error
    assert "a picture as --out needs 3 runs or more" in error


def test_the_same_call_writes_the_same_bytes(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    for name in ("1.json", "2.json"):
        cli("compare", *runs, "--by", "difficulty", "--out", tmp_path / name)
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


def test_a_new_run_is_compared_with_its_baseline(cli: Cli, sample: Sample, runs: tuple[Path, Path]) -> None:
    done = cli("eval", *sample.words, "--model", "builtin/oracle", "--out", runs[1], "--baseline", runs[0])
    assert done.status == 0
    new_minus_old = so.compare(*runs)
    assert new_minus_old.differences() in done.out
    assert f"More of it: compare {runs[0]} {runs[1]}" in done.out
    assert new_minus_old.pairs[0].gap.macro > 0


def test_a_baseline_and_compare_print_the_same_differences(cli: Cli, sample: Sample, runs: tuple[Path, Path]) -> None:
    """`eval --baseline` printed the opposite sign of `compare`."""
    done = cli("eval", *sample.words, "--model", "builtin/oracle", "--out", runs[1], "--baseline", runs[0])
    printed = [line for line in done.out.splitlines() if line.startswith("| Step SR")]
    assert "| oracle - lexical " in printed[-1]
    assert printed[-1] in cli("compare", *runs).out.splitlines()


def test_the_baselines_steps_are_checked_before_anything_is_asked(
    cli: Cli, sample: Sample, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    error = cli("eval", *sample.words, "--limit", 1, "--out", tmp_path / "new", "--baseline", runs[0]).error
    assert "--baseline" in error
    assert "steps" in error
    assert not (tmp_path / "new").exists()


def test_a_folder_of_runs_stands_for_them_split_by_split(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = (
        "--dataset",
        sample.dataset,
        "--scores",
        sample.scores,
        "--split",
        "cross_task",
        "--out",
        tmp_path / "grid",
    )
    cli("eval", *words, "--model", "builtin/lexical", "--model", "builtin/oracle")
    done = cli("compare", tmp_path / "grid")
    assert done.status == 0
    assert "cross_task-choice-builtin-oracle against cross_task-choice-builtin-lexical, the baseline" in done.out


def test_unfinished_and_single_runs_of_a_folder_are_left_out_with_a_note(
    cli: Cli, sample: Sample, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    for run in runs:
        run.rename(folder / run.name)
    shutil.copytree(folder / "lexical", folder / "killed")
    (folder / "killed" / "results.json").unlink()
    shutil.copytree(folder / "lexical", folder / "elsewhere")
    results = json.loads((folder / "lexical" / "results.json").read_text())
    (folder / "elsewhere" / "results.json").write_text(json.dumps(results | {"split": "cross_website"}))
    done = cli("compare", folder)
    assert (done.status, "## oracle against lexical, the baseline" in done.out) == (0, True)
    assert done.err.splitlines() == [
        f"{folder / 'killed'} is left out: it has no results yet",
        f"{folder / 'elsewhere'} is left out: no other run is of its split",
    ]


def test_equal_bests_are_tied(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(runs[1], tmp_path / "twin")
    lines = cli("compare", *runs, tmp_path / "twin").out.splitlines()
    places = [one.split("|")[-2].strip() for one in lines if one.startswith("| Step SR")]
    assert places[1:3] == ["tied", "tied"]


def test_a_baseline_that_is_no_run_is_refused_before_anything_is_asked(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    error = cli("eval", *sample.words, "--out", tmp_path / "new", "--baseline", tmp_path / "nowhere").error
    assert error.startswith(f"error: {tmp_path / 'nowhere'} has no results.json")
    assert not (tmp_path / "new").exists()


def test_repeats_in_another_order_show_where_the_variance_is(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    for seed in (1, 2):
        cli("eval", *sample.words, "--seed", seed, "--out", tmp_path / f"seed{seed}")
    found = so.compare(tmp_path / "seed1", tmp_path / "seed2")
    assert {one.runs for one in found.repeats} == {("seed1", "seed2")}
    assert "Where the variance is" in found.report()


def test_groups_are_compared_as_their_means(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    for run in runs:
        copied(run, tmp_path / f"{run.name}-2", asked_anew=True)
    groups = [[run, tmp_path / f"{run.name}-2"] for run in runs]
    done = cli("compare", "--group", *groups[0], "--group", *groups[1])
    assert (done.status, done.out) == (0, so.compare(*groups).report() + "\n")
    # twins have the mean of one
    assert so.compare(*groups).pairs[0].gap == so.compare(*runs).pairs[0].gap
    assert "group 1: lexical, lexical-2." in done.out


def test_a_copy_is_no_second_run_of_a_group(cli: Cli, sample: Sample, runs: tuple[Path, Path], tmp_path: Path) -> None:
    copied(runs[0], tmp_path / "copy")
    cli("score", runs[0], "--out", tmp_path / "scored")
    copied(tmp_path / "scored", tmp_path / "scored-copy")
    for first, second in (("lexical", "copy"), ("scored", "scored-copy")):
        error = cli("compare", "--group", runs[1], "--group", tmp_path / first, tmp_path / second).error
        assert error.endswith(f"{first} and {second} are the same run; name each run of a group once")
    cli("eval", *sample.words, "--repeats", 1, "--merge", "first", "--out", tmp_path / "run")
    repeat = tmp_path / "run" / "shuffled-1"
    cli("score", repeat, "--dataset", sample.dataset)
    assert cli("compare", "--group", runs[1], "--group", tmp_path / "run", repeat).status == 0


def test_runs_over_different_data_are_named(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    assert "data" not in so.compare(*runs).to_dict()
    reset(runs[1], dataset_fingerprint="feed")
    ours = read_json(runs[0] / "results.json")["dataset_fingerprint"]
    done = cli("compare", *runs, "--out", tmp_path / "found.json")
    assert f"Of different data: {ours}: lexical; feed: oracle." in done.out
    assert read_json(tmp_path / "found.json")["data"] == {ours: ["lexical"], "feed": ["oracle"]}
    assert so.compare([runs[0]], [runs[1]]).data == {ours: ("lexical",), "feed": ("oracle",)}


def test_labels_name_runs_and_groups(cli: Cli, runs: tuple[Path, Path]) -> None:
    for run, label in zip(runs, ("step 1000", "step 2000"), strict=True):
        manifest = read_json(run / "manifest.json")
        manifest["settings"]["label"] = label
        (run / "manifest.json").write_text(json.dumps(manifest))
    assert so.compare(*runs).runs == ("step 1000", "step 2000")
    assert so.compare([runs[0]], [runs[1]]).groups == {"step 1000": ("step 1000",), "step 2000": ("step 2000",)}


def test_groups_stand_alone_and_are_two_or_more(cli: Cli, runs: tuple[Path, Path]) -> None:
    assert "a run by itself is a --group of one" in cli("compare", runs[0], "--group", runs[1]).error
    assert "name two --group or more" in cli("compare", "--group", *runs).error
    assert "name two or more runs" in cli("compare").error
    assert "twice" in cli("compare", "--group", runs[0], "--group", runs[0]).error


# --- refused ---


def test_other_steps_are_refused_unless_only_the_shared_are_asked_for(cli: Cli, runs: tuple[Path, Path]) -> None:
    n = len(read_lines(runs[1] / "steps.jsonl"))
    rewritten(runs[1], lambda rows: rows.pop())
    reset(runs[1], n_steps=n - 1)
    assert f"lexical has 1 of {n} steps that another run lacks" in cli("compare", *runs).error
    done = cli("compare", *runs, "--intersect")
    assert done.status == 0
    assert "lexical: 1 steps that another run lacks" in done.out


def test_steps_that_a_protocol_leaves_out_are_none_of_the_run(cli: Cli, runs: tuple[Path, Path]) -> None:
    n = len(read_lines(runs[1] / "steps.jsonl"))
    left_out = {"outcome": "left_out", "element": None, "operation_f1": None, "success": None}
    for run in runs:
        rewritten(run, lambda rows: rows[0].update(left_out))
        reset(run, n_steps=n - 1)
    assert so.compare(*runs).n_steps == n - 1


def test_steps_that_never_ran_are_counted(cli: Cli, runs: tuple[Path, Path]) -> None:
    rewritten(runs[0], lambda rows: rows[0].update(outcome="call_failed"))
    assert so.compare(*runs).not_run == {"lexical": 1}


def test_other_protocols_are_refused_with_the_way_out(cli: Cli, runs: tuple[Path, Path]) -> None:
    reset(runs[1], protocol="mindact")
    error = cli("compare", *runs).error
    assert "score RUN --protocol" in error
    assert "oracle under mindact" in error


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda rows: rows.append(rows[0]), "every step once"),
        (lambda rows: rows[0].update(success=float("nan")), "success"),
        (lambda rows: rows[0].update(operation_f1=1.5), "operation_f1"),
        (lambda rows: rows[0].pop("target"), "target"),
        (lambda rows: rows.pop(), "score the run again"),
    ],
)
def test_damaged_scores_are_refused_by_name(cli: Cli, runs: tuple[Path, Path], change: Change, named: str) -> None:
    rewritten(runs[0], change)
    error = cli("compare", *runs).error
    assert named in error
    assert "lexical" in error


def test_a_torn_last_line_is_noticed(cli: Cli, runs: tuple[Path, Path]) -> None:
    for run in runs:
        text = (run / "steps.jsonl").read_text()
        (run / "steps.jsonl").write_text(text[:-20])
    assert "score the run again" in cli("compare", *runs).error


@pytest.mark.parametrize("missing", ["steps.jsonl", "results.json"])
def test_an_unfinished_run_is_refused_by_what_it_lacks(cli: Cli, runs: tuple[Path, Path], missing: str) -> None:
    (runs[1] / missing).unlink()
    error = cli("compare", *runs).error
    assert missing in error
    assert "oracle" in error


@pytest.mark.parametrize(
    ("words", "named"),
    [(("--by", "colour"), "--by"), (("--detect", "0"), "--detect"), (("--out", "found.txt"), "--out")],
)
def test_wrong_options_are_refused(cli: Cli, runs: tuple[Path, Path], words: tuple[str, str], named: str) -> None:
    assert named in cli("compare", *runs, *words).error


def test_one_run_is_no_comparison(cli: Cli, runs: tuple[Path, Path]) -> None:
    assert "two or more" in cli("compare", runs[0]).error
    assert "twice" in cli("compare", runs[0], runs[0]).error
