"""Figures: their values, every kind in every format, the same bytes for the same runs, whatever a model is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError
from seeact_offline.tables.figure_data import cost, difficulty, over_time, recall, waterfall
from seeact_offline.tables.figures import ENDINGS, FIGURES, Style, picture
from tests.finished_runs import figure, make_run

BEGINNING = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def rewrite_steps(run: Path, lines: list[dict[str, Any]]) -> None:
    (run / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_steps(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]


# --- values ---


def test_difficulty_parts_tasks_by_their_actions(tmp_path: Path) -> None:
    found = difficulty([make_run(tmp_path / "a")])
    bands = found["runs"][0]["bands"]
    figures = {band: (bands[band]["n_tasks"], bands[band]["macro"]) for band in found["bands"]}
    assert figures == {"1-4": (1, 0.5), "5-9": (1, 0.0)}


def test_difficulty_averages_as_the_protocol_does(tmp_path: Path) -> None:
    """Four steps of two tasks in one band: one task is right in 1 of 3, the other in 1 of 1."""
    run = make_run(tmp_path / "a", protocol="inspect-evals")
    changes = [{"annotation_id": f"t{i == 3:d}", "n_actions": 3, "success": float(i in (0, 3))} for i in range(4)]
    rewrite_steps(run, [line | change for line, change in zip(read_steps(run), changes, strict=True)])
    band = difficulty([run])["runs"][0]["bands"]["1-4"]
    assert (band["average"], band["value"], band["macro"]) == ("micro", 0.5, pytest.approx(2 / 3))


def test_difficulty_needs_to_know_the_actions(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a")
    rewrite_steps(run, [line | {"n_actions": 0} for line in read_steps(run)])
    with pytest.raises(InputError, match="n_actions"):
        difficulty([run])


def test_the_waterfall_ends_at_step_sr(tmp_path: Path) -> None:
    found = waterfall([make_run(tmp_path / "a", step_sr=0.25)])
    assert (found["losses"], found["rest"]) == ([{"cause": "ranker_miss", "share": 0.75, "steps": 3}], 0.25)


@pytest.mark.parametrize(("protocol", "share"), [("seeact", 0.131), ("inspect-evals", 0.143)])
def test_cost_and_waterfall_show_the_average_that_the_protocol_quotes(
    tmp_path: Path, protocol: str, share: float
) -> None:
    run = make_run(tmp_path / "a", protocol=protocol, step_success_rate=figure(0.131, micro=0.143))
    assert cost([run])["runs"][0]["step_success_rate"]["value"] == share
    assert waterfall([run])["rest"] == pytest.approx(share)


def test_the_waterfall_is_of_one_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="one run"):
        waterfall([make_run(tmp_path / name, model=name) for name in ("a", "b")])


def test_recall_counts_steps_without_a_right_element_and_draws_one_ranking_once(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, model=name) for name in ("a", "b")]
    assert recall(runs)["curves"] == [{"label": "bm25, cross_task", "recall": [0.0, 0.25, 0.5, 0.75, 0.75]}]


@pytest.mark.parametrize(("other_price", "expected"), [(3.0, ("cost_usd", 1.5)), (None, ("calls", 5.0))])
def test_cost_is_in_calls_unless_every_price_is_known(
    tmp_path: Path, other_price: float | None, expected: tuple[str, float]
) -> None:
    runs = [
        make_run(tmp_path / name, model=name, usage={"calls": 10, "cost_usd": price})
        for name, price in (("a", 3.0), ("b", other_price))
    ]
    found = cost(runs)
    assert (found["unit"], found["runs"][0]["a_task"]) == expected


# --- pictures ---


def test_over_time_has_a_line_a_tag_in_order_of_dates(tmp_path: Path) -> None:
    weeks = [("2026-03-09T10:00:00+02:00", 0.5), ("2026-03-02T10:00:00", 0.25), ("2026-03-16T10:00:00+00:00", 0.75)]
    runs = [
        make_run(tmp_path / str(week), date=date, step_sr=share, settings={"tags": ["nightly"]})
        for week, (date, share) in enumerate(weeks)
    ]
    runs += [make_run(tmp_path / "plain"), make_run(tmp_path / "more", steps=6, settings={"tags": ["nightly"]})]
    found = {line["label"]: [point["value"] for point in line["points"]] for line in over_time(runs)["lines"]}
    assert found == {
        "nightly, cross_task, 4 steps, macro": [0.25, 0.5, 0.75],
        "choice, openai/gpt-4-vision-preview": [0.25],
        "nightly, cross_task, 6 steps, macro": [0.25],
    }


def weekly(folder: Path, models: str = "aaaa", **more: Any) -> list[Path]:
    """A run a week with one tag, each with the model of its letter."""
    return [
        make_run(
            folder / str(week),
            date=f"2026-03-{2 + 7 * week:02}T09:00:00",
            model=model,
            settings={"tags": ["weekly"], **more},
        )
        for week, model in enumerate(models)
    ]


def test_a_line_breaks_where_anything_but_date_tag_or_metadata_changes(tmp_path: Path) -> None:
    """Three models were one line."""
    runs = weekly(tmp_path, "aabc")
    manifest = json.loads((runs[1] / "manifest.json").read_text())
    manifest["settings"] |= {"metadata": {"week": "2"}, "label": "second"}
    (runs[1] / "manifest.json").write_text(json.dumps(manifest))
    (line,) = over_time(runs)["lines"]
    assert [point["changed"] for point in line["points"]] == [[], [], ["model b"], ["model c"]]
    (axes,) = drawn("over-time", runs).axes
    connected = [len(one.get_xdata()) for one in axes.lines if one.get_linestyle() == "-" and len(one.get_xdata())]
    assert connected == [2, 1, 1]
    assert [text.get_text() for text in axes.texts[1:] if "model" in text.get_text()] == ["model b", "model c"]
    assert "second" in [text.get_text() for text in axes.texts]


def test_a_line_breaks_where_only_the_identity_changes(tmp_path: Path) -> None:
    runs = weekly(tmp_path, "aa")
    manifest = json.loads((runs[1] / "manifest.json").read_text())
    (runs[1] / "manifest.json").write_text(json.dumps(manifest | {"identity": {"prompts_digest": "f00d"}}))
    (line,) = over_time(runs)["lines"]
    assert line["points"][1]["changed"] == ["prompts_digest"]


@pytest.mark.parametrize(("tags", "hinted"), [(["one", "two"], True), (["one", "one"], False), (["one"], False)])
def test_runs_of_a_tag_each_have_a_hint(tmp_path: Path, tags: list[str], hinted: bool) -> None:
    runs = [
        make_run(tmp_path / str(n), date=f"2026-03-0{n + 1}T09:00:00", settings={"tags": [tag]})
        for n, tag in enumerate(tags)
    ]
    assert bool(over_time(runs)["hint"]) == hinted


def test_a_label_names_a_run_in_a_legend(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, settings={"label": name}) for name in ("step 1000", "step 2000")]
    assert [run["label"] for run in cost(runs)["runs"]] == ["step 1000", "step 2000"]
    assert [line["label"] for line in over_time(runs)["lines"]] == ["step 1000", "step 2000"]


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("osunlp/Multimodal-Mind2Web", "osunlp/Multimodal-Mind2Web, cross_task: 4 steps of 2 tasks"),
        ("sample", "bundled sample (fictional websites), cross_task: 4 steps of 2 tasks"),
        ("/home/me/pages", "pages, cross_task: 4 steps of 2 tasks"),
    ],
)
def test_a_picture_says_what_it_is_of(tmp_path: Path, kind: str, dataset: str, said: str) -> None:
    (axes,) = drawn(kind, [make_run(tmp_path / "a", dataset=dataset)]).axes
    assert said in [text.get_text() for text in axes.texts]


def test_a_picture_of_several_splits_names_each(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / split, split=split, steps=n) for split, n in (("cross_task", 4), ("cross_website", 6))]
    assert cost(runs)["about"] == (
        "osunlp/Multimodal-Mind2Web, cross_task: 4 steps of 2 tasks; cross_website: 6 steps of 2 tasks"
    )


def test_over_time_needs_dates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="when they began"):
        over_time([make_run(tmp_path / "a", date="")])


@pytest.mark.slow
@pytest.mark.parametrize("kind", FIGURES)
def test_the_same_runs_give_the_same_bytes(tmp_path: Path, kind: str) -> None:
    run = make_run(tmp_path / "a", model="x/$\\frac{1}$ \ud800 _^")
    for ending in ENDINGS:
        made = picture(kind, [run], ending)
        assert made.startswith(BEGINNING[ending])
        assert made == picture(kind, [run], ending)


def drawn(kind: str, runs: list[Path]) -> Any:
    return FIGURES[kind].draw(FIGURES[kind].gather(runs))


def test_difficulty_has_a_bar_a_run_and_band(tmp_path: Path) -> None:
    (axes,) = drawn("difficulty", [make_run(tmp_path / name, model=name) for name in ("a", "b", "c")]).axes
    assert [round(bar.get_height()) for bar in axes.patches] == [50, 0, 50, 0, 50, 0]


def test_the_waterfall_goes_down_to_step_sr(tmp_path: Path) -> None:
    (axes,) = drawn("waterfall", [make_run(tmp_path / "a", step_sr=0.25)]).axes
    assert [(bar.get_y(), bar.get_height()) for bar in axes.patches] == [(0, 100), (25, 75), (0, 25)]


def test_the_recall_curve_begins_at_one_candidate(tmp_path: Path) -> None:
    (axes,) = drawn("recall", [make_run(tmp_path / "a")]).axes
    assert axes.lines[0].get_xydata().tolist() == [[1, 0], [2, 25], [3, 50], [4, 75], [5, 75]]


def test_no_legend_is_wider_than_the_figure(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / str(number), model=f"openai/{'long-' * 30}{number}") for number in range(3)]
    made = drawn("cost", runs)
    made.draw_without_rendering()
    (legend,) = made.legends
    assert legend.get_window_extent().width <= made.bbox.width


def test_no_two_of_thirty_two_runs_look_alike() -> None:
    styles = [Style.of(number) for number in range(32)]
    for drawn_as in ("marker", "line", "hatch"):
        assert len({(style.colour, getattr(style, drawn_as)) for style in styles}) == 32
