"""The report of `improve` for people, and its figure: attempts, test splits and differences, with intervals.
Computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.scoring.metrics import METRICS
from seeact_offline.scoring.report import NOT_THE_PAPERS, Extent, counted, data_in_words
from seeact_offline.tables.figures import COLOURS, FAINT, GRID, INK, MARKERS, drawn, interval_ends, printable
from seeact_offline.trajectories.dialogue_files import GOLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OFFLINE = (
    "Offline: attempts are made over recorded tasks, each step with the recorded steps before it (teacher forcing)."
    " Nothing here is the success of an agent that acts on live websites, and no figure may stand beside published ones"
    " as their reproduction."
)
OF_ATTEMPTS = (
    "S@k: share of all train tasks with an accepted attempt among the first k, by the model of the cycle before."
    " completed@1: share of tasks whose first attempt has a readable action at every step, right or wrong, or one that"
    " leaves the page. Turns: actions of the accepted attempts, those that scroll included."
)
OF_STEPS = (
    "pass@k: share of all steps that some attempt among the first k has right. It is not S@k: the steps of a task may"
    " be right in different attempts. A task that is accepted is not attempted again."
)
OF_CONTROL = (
    "Control: trained as long from the same first weights, on recorded actions alone, as many as the cycle's data had."
    " Where the scorer gives the feedback, attempts cannot teach more than these."
)


def improvement_report(results: Mapping[str, Any]) -> str:
    """The report as Markdown. `results`: as `improvement.json` holds them."""
    cycles, imitation = results["cycles"], results["imitation"]
    left_out = ", ".join(f"{n} {name}" for name, n in imitation["left_out"].items())
    thoughts = "no thoughts" if imitation["thoughts"] == "none" else f"thoughts by {imitation['thoughts']}"
    by = "as recorded"
    if imitation["source"] != GOLD:
        by, thoughts = f"by {imitation['source']}", "with its own thoughts"
    texts = [
        f"Model {results['model']}, train tasks of {results['dataset']}, feedback by {results['feedback']}, up to"
        f" {counted(results['attempts'], 'attempt')} at temperature"
        f" {results['temperature']}{', guided' if results['guided'] else ''}.",
        f"Imitated: {counted(imitation['items'], 'action')} of {counted(imitation['steps'], 'step')} and"
        f" {counted(imitation['tasks'], 'task')}, {by}, {thoughts}; steps left out: {left_out or 'none'}.",
        *([] if (usd := results["judge_cost_usd"]) is None else [f"Spent on the judge: {usd:.4f} USD."]),
        *results["remarks"],
        *(
            f"Cycle {cycle['cycle']}: {counted(n, 'step')} failed to run and count as wrong."
            for cycle in cycles
            if (n := n_not_run(cycle))
        ),
    ]
    explored = [cycle for cycle in cycles if "exploration" in cycle]
    tables = [_attempts(explored, results["attempts"]), _steps(explored, results["attempts"])] if explored else []
    if cycles[0]["tests"]:
        tables += [_tests(cycles), *([_differences(explored)] if explored else [])]
    head = "# An agent improved from its own attempts"
    opening = Table(header=("", ""), rows=(), notes=texts).markdown().split("\n\n")[1:]
    remarks = [OFFLINE, *([NOT_THE_PAPERS] if results["dataset"] == "sample" else [])]
    drawings = [table.markdown() for table in tables]
    return "\n\n".join([head, *remarks, *opening, *drawings, "![](improvement.png)"]) + "\n"


def n_not_run(cycle: Mapping[str, Any]) -> int:
    """Steps of a cycle's attempts and test splits that failed to run."""
    attempts = cycle.get("exploration", {}).get("attempts", ())
    tests = [split[who] for split in cycle["tests"].values() for who in ("model", "control") if who in split]
    return int(sum(attempt["not_run"] for attempt in attempts) + sum(test["n_not_run"] for test in tests))


def _attempts(cycles: list[Mapping[str, Any]], most: int) -> Table:
    rows = []
    for cycle in cycles:
        exploration = cycle["exploration"]
        accepted = f"{exploration['accepted_tasks']} ({exploration['accepted_turns']})"
        shares = [_figure(at) for at in exploration["s_at"]]
        of_cycle = [str(cycle["cycle"]), str(exploration["n_tasks"])]
        rows.append([*of_cycle, *shares, accepted, _figure(exploration["completed_at_1"])])
    header = ["Cycle", "Tasks", *(f"S@{k}" for k in range(1, most + 1)), "Accepted (turns)", "completed@1"]
    return Table(title="Attempts at train tasks", header=header, rows=rows, notes=[OF_ATTEMPTS])


def _steps(cycles: list[Mapping[str, Any]], most: int) -> Table:
    rows = [
        [str(cycle["cycle"]), str(cycle["exploration"]["n_steps"]), *map(_figure, cycle["exploration"]["pass_at"])]
        for cycle in cycles
    ]
    header = ["Cycle", "Steps", *(f"pass@{k}" for k in range(1, most + 1))]
    return Table(title="Steps of train tasks", header=header, rows=rows, notes=[OF_STEPS])


def _tests(cycles: list[Mapping[str, Any]]) -> Table:
    rows = [
        [split, str(cycle["cycle"]), taught, *(_figure(figures[who][name]) for name in METRICS)]
        for split, cycle, figures in _by_split(cycles)
        for who, taught in (("model", "attempts" if cycle["cycle"] else "imitation"), ("control", "control"))
        if who in figures
    ]
    header = ["Split", "After cycle", "Trained on", *METRICS.values()]
    return Table(title="Test splits", header=header, rows=rows, notes=[OF_CONTROL])


def _differences(cycles: list[Mapping[str, Any]]) -> Table:
    rows = []
    for split, cycle, figures in _by_split(cycles):
        number = cycle["cycle"]
        for other, gaps in figures["minus"].items():
            baseline = f"cycle {number - 1}" if other == "previous" else other
            rows.append([split, f"cycle {number} - {baseline}", *(_difference(gaps.get(name)) for name in METRICS)])
    note = "Points, with 95 % interval and p by sign flips over tasks (Holm's adjustment for two comparisons)."
    header = ["Split", "Difference", *METRICS.values()]
    return Table(
        title="Differences, paired by step: the model after the cycle minus its baseline",
        header=header,
        rows=rows,
        notes=[note],
    )


def _by_split(cycles: list[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    for split in cycles[0]["tests"]:
        for cycle in cycles:
            yield split, cycle, cycle["tests"][split]


def _figure(figure: Mapping[str, Any]) -> str:
    """`41.2 (30.1 to 52.4)`."""
    if figure["value"] is None:
        return "-"
    return f"{percent(figure['value'])}{_interval(figure['ci95'])}"


def _difference(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "-"
    return f"{100 * figure['value']:+.1f}{_interval(figure['ci95'])}, p {figure['p']:.2g}"


def _interval(ci95: list[float] | None) -> str:
    return "" if ci95 is None else f" ({percent(ci95[0])} to {percent(ci95[1])})"


# --- the figure: cycle against S@k, and against Step SR on the test splits ---


def improvement_png(results: Mapping[str, Any]) -> bytes:
    """Draws the figure as PNG. `results`: as `improvement.json` holds them. The same results give the same bytes."""
    return drawn(draw_improvement, results, ".png")


def draw_improvement(results: Mapping[str, Any]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure((11, 5), facecolor="white", layout="constrained")
    left, right = figure.subplots(1, 2)
    cycles = results["cycles"]
    explored = [cycle for cycle in cycles if "exploration" in cycle]
    figure.suptitle(fill(printable(_data(results, explored)), 140), x=0.01, ha="left", fontsize=9.5, color=FAINT)
    for number, k in enumerate(dict.fromkeys((1, results["attempts"]))):
        figures = [cycle["exploration"]["s_at"][k - 1] for cycle in explored]
        _line(left, [cycle["cycle"] + number / 20 for cycle in explored], figures, number, f"S@{k}")
    _panel(left, "Train tasks with an accepted attempt", [cycle["cycle"] for cycle in cycles])
    for number, split in enumerate(cycles[0]["tests"]):
        for who, style, name in (("model", "-", split), ("control", ":", f"{split}, control")):
            with_it = [cycle for cycle in cycles if who in cycle["tests"][split]]
            figures = [cycle["tests"][split][who]["step_success_rate"] for cycle in with_it]
            shift = (number - 1) / 20 + (who == "control") / 40
            _line(right, [cycle["cycle"] + shift for cycle in with_it], figures, number, name, style)
    _panel(right, "Step SR on the test splits, after the cycle", [cycle["cycle"] for cycle in cycles])
    return figure


def _data(results: Mapping[str, Any], explored: Sequence[Mapping[str, Any]]) -> str:
    """The data of both panels in words."""
    trained = [
        Extent(results["dataset"], "train", cycle["exploration"]["n_steps"], cycle["exploration"]["n_tasks"])
        for cycle in explored[:1]
    ]
    tested = [
        Extent(results["test_data"], split, figures["model"]["n_steps"], figures["model"]["n_tasks"])
        for split, figures in results["cycles"][0]["tests"].items()
    ]
    return data_in_words([*trained, *tested])


def _line(
    axes: Axes, at: Sequence[float], figures: Sequence[Mapping[str, Any]], number: int, label: str, style: str = "-"
) -> None:
    points = [(place, figure) for place, figure in zip(at, figures, strict=True) if figure["value"] is not None]
    if not points:
        return
    values = [100 * figure["value"] for _, figure in points]
    axes.errorbar(
        [place for place, _ in points], values, interval_ends([figure for _, figure in points]), fmt=MARKERS[number % len(MARKERS)] + style,
        color=COLOURS[number % len(COLOURS)], capsize=3, elinewidth=1, markersize=6, label=label,
    )  # fmt: skip


def _panel(axes: Axes, title: str, cycles: Sequence[int]) -> None:
    axes.set_title(title, loc="left", fontsize=12, color=INK)
    axes.set_xticks(cycles)
    axes.set_xlim(min(cycles) - 0.4, max(cycles) + 0.4)
    axes.set_ylim(0, 103)
    axes.set_xlabel("cycle (0: imitation)", color=FAINT)
    axes.set_ylabel("%, 95 % interval", color=FAINT)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID)
    axes.tick_params(labelcolor=FAINT, length=0)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, labelcolor=INK, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
