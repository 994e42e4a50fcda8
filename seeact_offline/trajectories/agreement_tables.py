"""The tables of `agreement`: judges against labels, their 2 x 2 tables, their repeats, and the order of agents;
and its figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from textwrap import fill
from typing import TYPE_CHECKING, Any

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.scoring.agreement import Kappa
from seeact_offline.scoring.report import counted
from seeact_offline.tables.document import NO_FIGURE, TableDocument
from seeact_offline.tables.figures import COLOURS, FAINT, GRID, INCHES, INK, printable, shortened
from seeact_offline.trajectories.judge_agreement import (
    Agreements,
    Figure,
    JudgeAgreement,
    Panel,
    cost_per_verdict,
    success_of,
)
from seeact_offline.trajectories.judgements import CONSTRUCTED, NO_ANSWER, Judgement

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CONSTRUCTED_REMARK = (
    "Labels are constructed: trajectories are right or wrong by the way in which they were made. The figures say how"
    " well a judge spots such damage, and no more."
)
TASKS = "In brackets: 95 % intervals over tasks."
INTERVALS = (
    f"{TASKS} Kappa: Cohen's, of verdicts and labels. NPV: negative predictive value. Repeats of a verdict"
    " are pooled; sd: over repeats."
)
NAMES = ("judge", "model", "k")


def agreement_document(found: Agreements, panel: Panel | None = None) -> TableDocument:
    """Draws finished figures of agreement; `panel`: those of the judges together."""
    tables = [_agreement(found), *([panel_table(panel)] if panel else []), _counts(found)]
    if any(judge.n_repeats > 1 for judge in found.judges):
        tables.append(_repeats(found.judges))
    tables += [_agents(judge) for judge in found.judges if judge.ranking is not None]
    remark = CONSTRUCTED_REMARK if CONSTRUCTED in found.sources else ""
    return TableDocument(title="Judges against labels", remark=remark, lead=[_labels(found)], tables=tables)


def _labels(agreements: Agreements) -> str:
    labels = counted(agreements.n_labels, "labelled trajectory", "labelled trajectories")
    text = f"{labels}, labels from {', '.join(agreements.sources)}"
    if agreements.people_kappa is not None:
        kappa = agreements.people_kappa
        text += f"; Fleiss' kappa of {agreements.n_people} labellers {_kappa(kappa)} over {kappa.n}"
    if agreements.n_split:
        text += f"; {agreements.n_split} left out, on which they are split evenly"
    return f"{text}."


def _agreement(agreements: Agreements) -> Table:
    shares = ("success_rate", "label_rate", "agreement", "precision", "recall", "negative_predictive_value")
    rows = [
        (*_names(judge), judge.n_trajectories, judge.n_tasks, *(_share(getattr(judge, name)) for name in shares),
         _kappa(judge.kappa), _cost(judge.cost_per_verdict),
         NO_FIGURE if judge.tokens_per_verdict is None else f"{judge.tokens_per_verdict:.0f}")
        for judge in agreements.judges
    ]  # fmt: skip
    header = (
        *NAMES, "trajectories", "tasks", "success by judge", "by labels", "agreement", "precision", "recall", "NPV",
        "kappa", "USD a verdict", "tokens a verdict",
    )  # fmt: skip
    missing = "are left out" if agreements.no_verdict == "left-out" else "count as failures"
    notes = [INTERVALS, f"Judgements without a verdict {missing}."]
    return Table(title="Agreement", header=header, rows=rows, n_labels=len(NAMES), notes=notes)


def panel_table(panel: Panel) -> Table:
    """A row for each judge and one for the labels; a judge's letter heads the column of kappas with it."""
    letters = [_letter(number) for number in range(len(panel.judges))]
    kappas = {(pair.first, pair.second): pair.kappa for pair in panel.pairs}
    rows: list[tuple[object, ...]] = []
    for number, row in enumerate(panel.judges):
        others = [kappas.get((min(number, other), max(number, other))) for other in range(len(letters))]
        rows.append(
            (f"{letters[number]}: {row.judge or NO_FIGURE}", row.model or NO_FIGURE, row.k or NO_FIGURE,
             _share(row.success_rate),
             _kappa(row.kappa), *map(_kappa, others), *(row.places.get(agent, NO_FIGURE) for agent in panel.agents),
             *([_kappa(row.tau)] if panel.agents else []), _cost(row.cost_per_verdict))
        )  # fmt: skip
    labels = panel.labels
    rows.append(
        ("labels", NO_FIGURE, NO_FIGURE, _share(labels.success_rate), NO_FIGURE,
         *(_kappa(row.kappa) for row in panel.judges),
         *(labels.places[agent] for agent in panel.agents), *([NO_FIGURE] if panel.agents else []), NO_FIGURE)
    )  # fmt: skip
    header = (
        *NAMES, "success", "kappa with labels", *(f"kappa with {letter}" for letter in letters),
        *(f"place of {agent}" for agent in panel.agents), *(["tau-b with labels"] if panel.agents else []),
        "USD a verdict",
    )  # fmt: skip
    notes = [
        f"Over the {counted(panel.n_trajectories, 'trajectory', 'trajectories')} of {counted(panel.n_tasks, 'task')}"
        f" with a label and a verdict of every judge; {panel.n_left_out} are left out. Kappa: Cohen's. {TASKS} A"
        " judge's repeats count by their majority."
    ]
    if panel.agents:
        moved = {
            agent: max(row.places[agent] for row in panel.judges) - min(row.places[agent] for row in panel.judges)
            for agent in panel.agents
        }
        notes.append(
            "Place: 1 and the number of agents with a higher rate of success. By the choice of judge the place of an"
            f" agent moves by up to {max(moved.values())}."
        )
    return Table(
        title="The same trajectories under every judge", header=header, rows=rows, n_labels=len(NAMES), notes=notes
    )


def _letter(number: int) -> str:
    """A to Z, then AA and so on."""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _counts(agreements: Agreements) -> Table:
    header = (
        *NAMES, "true positive", "false positive", "false negative", "true negative", "no verdict", "failed calls",
        "without label", "not judged",
    )  # fmt: skip
    rows = [
        (*_names(judge), *judge.cells, "; ".join(f"{name} {n}" for name, n in judge.no_verdict.items()) or "0",
         judge.failed, judge.n_unlabelled, judge.n_missing)
        for judge in agreements.judges
    ]  # fmt: skip
    return Table(title="Verdicts by labels", header=header, rows=rows, n_labels=len(NAMES))


def _repeats(judges: Iterable[JudgeAgreement]) -> Table:
    header = (*NAMES, "repeats", "flip rate", "flipped trajectories", "Fleiss' kappa", "success sd", "agreement sd")
    rows = [
        (*_names(judge), judge.n_repeats, _share(judge.flips), judge.n_flipped, _kappa(judge.repeats_kappa),
         percent(judge.success_rate_sd), percent(judge.agreement_sd))
        for judge in judges
    ]  # fmt: skip
    note = "Flip rate: pairs of repeats of one trajectory with different verdicts."
    return Table(title="Repeats", header=header, rows=rows, n_labels=len(NAMES), notes=[note])


def _agents(judge: JudgeAgreement) -> Table:
    ranking = judge.ranking
    assert ranking is not None
    rows = [(agent.agent, agent.n, percent(agent.by_judge), percent(agent.by_labels)) for agent in ranking.agents]
    stability = NO_FIGURE if ranking.stability is None else f"{ranking.stability:.2f}"
    note = (
        f"Kendall's tau-b of the two orders: {_kappa(ranking.tau)}. In resampled tasks the judge's order has tau-b"
        f" {stability} with the one here on average, and its best agent stays the best in {percent(ranking.best_kept)}"
        " %."
    )
    name = " ".join(filter(None, (judge.judge, judge.model, judge.k and f"k {judge.k}")))
    return Table(
        title=f"Agents by {name}",
        header=("agent", "trajectories", "success by judge", "by labels"),
        rows=rows,
        notes=[note],
    )


def _names(judge: JudgeAgreement) -> tuple[str, str, str]:
    return judge.judge or NO_FIGURE, judge.model or NO_FIGURE, judge.k or NO_FIGURE


def _share(figure: Figure | None) -> str:
    if figure is None:
        return NO_FIGURE
    return percent(figure.value) + ("" if figure.ci95 is None else " [{}, {}]".format(*map(percent, figure.ci95)))


def _kappa(figure: Figure | Kappa | None) -> str:
    if figure is None:
        return NO_FIGURE
    value = figure.kappa if isinstance(figure, Kappa) else figure.value
    if value is None:
        return NO_FIGURE
    interval = "" if figure.ci95 is None else " [{}, {}]".format(*map(_two_places, figure.ci95))
    return f"{_two_places(value)}{interval}"


def _two_places(value: float) -> str:
    # + 0.0: no negative zero
    return f"{round(value, 2) + 0.0:.2f}"


def _cost(usd: float | None) -> str:
    return NO_FIGURE if usd is None else f"{usd:.4g}"


def judgement_table(judgements: Sequence[Judgement]) -> Table:
    """Counts a judge's verdicts for each number of screenshots."""
    header = (
        *NAMES, "repeats", "trajectories", "success", "sd over repeats", "no answer", "no verdict", "failed calls",
        "screenshots", "USD a verdict", "tokens a verdict",
    )  # fmt: skip
    by_k: dict[tuple[str, str, str], list[Judgement]] = {}
    for judgement in judgements:
        by_k.setdefault((judgement.judge, judgement.model, judgement.k), []).append(judgement)
    note = (
        "Success: share of verdicts, those of unanswered tasks included; judgements without a verdict are left out."
        f" {TASKS}"
    )
    return Table(
        header=header, rows=[_judgement_row(of_judge) for of_judge in by_k.values()], n_labels=len(NAMES), notes=[note]
    )


def _judgement_row(judgements: Sequence[Judgement]) -> tuple[object, ...]:
    ran = [judgement for judgement in judgements if judgement.ran]
    rate, sd = success_of(ran)
    asked = [judgement for judgement in ran if judgement.calls]
    tokens = [judgement.prompt_tokens + judgement.completion_tokens for judgement in asked]
    without_verdict = Counter(judgement.outcome for judgement in ran if judgement.verdict is None)
    return (
        judgements[0].judge, judgements[0].model, judgements[0].k,
        len({judgement.repeat for judgement in judgements}),
        len({judgement.trajectory for judgement in judgements}),
        _share(rate), percent(sd), sum(judgement.outcome == NO_ANSWER for judgement in ran),
        "; ".join(f"{name} {n}" for name, n in sorted(without_verdict.items())) or "0",
        len(judgements) - len(ran),
        f"{fmean(judgement.n_pictures for judgement in asked):.1f}" if asked else NO_FIGURE,
        # what failed is paid for too
        _cost(cost_per_verdict(judgements)),
        f"{fmean(tokens):.0f}" if asked else NO_FIGURE,
    )  # fmt: skip


# --- the figure ---


def draw_agreement(found: Mapping[str, Any]) -> Drawing:
    """Draws a row for each judge, of agreement and of Cohen's kappa.

    `found`: `judge_agreement.Agreements` as a dictionary.
    """
    from matplotlib.figure import Figure

    judges = found["judges"]
    figure = Figure((INCHES[0], 2 + 0.42 * len(judges)), facecolor="white", layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name, title, scale in zip(
        panels, ("agreement", "kappa"), ("Agreement with labels", "Cohen's kappa"), (100, 1), strict=True
    ):
        for place, judge in enumerate(judges):
            if (estimate := judge[name]) is not None:
                value, (low, high) = estimate["value"], estimate["ci95"] or (estimate["value"], estimate["value"])
                sides = [[scale * max(0.0, value - low)], [scale * max(0.0, high - value)]]
                axes.errorbar([scale * value], [place], xerr=sides, fmt="o", color=COLOURS[0], markersize=7, capsize=3)
        axes.set_title(title, loc="left", fontsize=12, color=INK)
        axes.set_xlim(right=scale)
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.grid(axis="x", color=GRID)
        axes.tick_params(axis="both", labelcolor=FAINT, length=0)
        axes.set_xlabel("% of verdicts" if scale == 100 else "0: as by chance", color=FAINT)
    n_tasks = max((judge["n_tasks"] for judge in judges), default=0)
    size = f"{counted(found['n_labels'], 'labelled trajectory', 'labelled trajectories')}, {counted(n_tasks, 'task')}"
    kind = "constructed labels (right or wrong by the way they were made)" if CONSTRUCTED in found["sources"] else ""
    others = ", ".join(source for source in found["sources"] if source != CONSTRUCTED)
    of = "; ".join(filter(None, [size, kind, others and f"labels from {others}"]))
    figure.suptitle(fill(printable(of), 120), x=0.01, ha="left", fontsize=9.5, color=FAINT)
    names = [shortened(f"{judge['judge']} {judge['model']}, k {judge['k'] or '-'}") for judge in judges]
    panels[0].set_yticks(range(len(judges)), [fill(name, 34) for name in names])
    panels[0].set_ylim(len(judges) - 0.5, -0.5)
    return figure
