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
    "Labels are constructed: trajectories are right or wrong by the way in which they were made. The figures say how well a judge"
    " spots such damage, and no more."
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
    if any(one.n_repeats > 1 for one in found.judges):
        tables.append(_repeats(found.judges))
    tables += [_agents(one) for one in found.judges if one.ranking is not None]
    remark = CONSTRUCTED_REMARK if CONSTRUCTED in found.sources else ""
    return TableDocument(title="Judges against labels", remark=remark, lead=[_labels(found)], tables=tables)


def _labels(found: Agreements) -> str:
    text = f"{counted(found.n_labels, 'labelled trajectory', 'labelled trajectories')}, labels from {', '.join(found.sources)}"
    if found.people_kappa is not None:
        text += (
            f"; Fleiss' kappa of {found.n_people} labellers {_kappa(found.people_kappa)} over {found.people_kappa.n}"
        )
    if found.n_split:
        text += f"; {found.n_split} left out, on which they are split evenly"
    return f"{text}."


def _agreement(found: Agreements) -> Table:
    shares = ("success_rate", "label_rate", "agreement", "precision", "recall", "negative_predictive_value")
    rows = [
        (*_names(one), one.n_trajectories, one.n_tasks, *(_share(getattr(one, name)) for name in shares),
         _kappa(one.kappa), _cost(one.cost_per_verdict), NO_FIGURE if one.tokens_per_verdict is None else f"{one.tokens_per_verdict:.0f}")
        for one in found.judges
    ]  # fmt: skip
    header = (
        *NAMES, "trajectories", "tasks", "success by judge", "by labels", "agreement", "precision", "recall", "NPV", "kappa",
        "USD a verdict", "tokens a verdict",
    )  # fmt: skip
    missing = "are left out" if found.no_verdict == "left-out" else "count as failures"
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
            (f"{letters[number]}: {row.judge or NO_FIGURE}", row.model or NO_FIGURE, row.k or NO_FIGURE, _share(row.success_rate),
             _kappa(row.kappa), *map(_kappa, others), *(row.places.get(agent, NO_FIGURE) for agent in panel.agents),
             *([_kappa(row.tau)] if panel.agents else []), _cost(row.cost_per_verdict))
        )  # fmt: skip
    labels = panel.labels
    rows.append(
        ("labels", NO_FIGURE, NO_FIGURE, _share(labels.success_rate), NO_FIGURE, *(_kappa(row.kappa) for row in panel.judges),
         *(labels.places[agent] for agent in panel.agents), *([NO_FIGURE] if panel.agents else []), NO_FIGURE)
    )  # fmt: skip
    header = (
        *NAMES, "success", "kappa with labels", *(f"kappa with {letter}" for letter in letters),
        *(f"place of {agent}" for agent in panel.agents), *(["tau-b with labels"] if panel.agents else []), "USD a verdict",
    )  # fmt: skip
    notes = [
        f"Over the {counted(panel.n_trajectories, 'trajectory', 'trajectories')} of {counted(panel.n_tasks, 'task')} with a label and a verdict of"
        f" every judge; {panel.n_left_out} are left out. Kappa: Cohen's. {TASKS} A judge's repeats count by their majority."
    ]
    if panel.agents:
        moved = {
            agent: max(row.places[agent] for row in panel.judges) - min(row.places[agent] for row in panel.judges)
            for agent in panel.agents
        }
        notes.append(
            "Place: 1 and the number of agents with a higher rate of success. By the choice of judge the place of an agent moves by up to"
            f" {max(moved.values())}."
        )
    return Table(
        title="The same trajectories under every judge", header=header, rows=rows, n_labels=len(NAMES), notes=notes
    )


def _letter(number: int) -> str:
    """A to Z, then AA and so on."""
    return (_letter(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def _counts(found: Agreements) -> Table:
    header = (
        *NAMES, "true positive", "false positive", "false negative", "true negative", "no verdict", "failed calls", "without label",
        "not judged",
    )  # fmt: skip
    rows = [
        (*_names(one), *one.cells, "; ".join(f"{name} {n}" for name, n in one.no_verdict.items()) or "0", one.failed,
         one.n_unlabelled, one.n_missing)
        for one in found.judges
    ]  # fmt: skip
    return Table(title="Verdicts by labels", header=header, rows=rows, n_labels=len(NAMES))


def _repeats(judges: Iterable[JudgeAgreement]) -> Table:
    header = (*NAMES, "repeats", "flip rate", "flipped trajectories", "Fleiss' kappa", "success sd", "agreement sd")
    rows = [
        (*_names(one), one.n_repeats, _share(one.flips), one.n_flipped, _kappa(one.repeats_kappa),
         percent(one.success_rate_sd), percent(one.agreement_sd))
        for one in judges
    ]  # fmt: skip
    note = "Flip rate: pairs of repeats of one trajectory with different verdicts."
    return Table(title="Repeats", header=header, rows=rows, n_labels=len(NAMES), notes=[note])


def _agents(judge: JudgeAgreement) -> Table:
    ranking = judge.ranking
    assert ranking is not None
    rows = [(one.agent, one.n, percent(one.by_judge), percent(one.by_labels)) for one in ranking.agents]
    stability = NO_FIGURE if ranking.stability is None else f"{ranking.stability:.2f}"
    note = (
        f"Kendall's tau-b of the two orders: {_kappa(ranking.tau)}. In resampled tasks the judge's order has tau-b {stability} with the one"
        f" here on average, and its best agent stays the best in {percent(ranking.best_kept)} %."
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
        *NAMES, "repeats", "trajectories", "success", "sd over repeats", "no answer", "no verdict", "failed calls", "screenshots",
        "USD a verdict", "tokens a verdict",
    )  # fmt: skip
    by_k: dict[tuple[str, str, str], list[Judgement]] = {}
    for one in judgements:
        by_k.setdefault((one.judge, one.model, one.k), []).append(one)
    note = f"Success: share of verdicts, those of unanswered tasks included; judgements without a verdict are left out. {TASKS}"
    return Table(
        header=header, rows=[_judgement_row(ones) for ones in by_k.values()], n_labels=len(NAMES), notes=[note]
    )


def _judgement_row(ones: Sequence[Judgement]) -> tuple[object, ...]:
    ran = [one for one in ones if one.ran]
    rate, sd = success_of(ran)
    asked = [one for one in ran if one.calls]
    return (
        ones[0].judge, ones[0].model, ones[0].k, len({one.repeat for one in ones}), len({one.trajectory for one in ones}),
        _share(rate), percent(sd), sum(one.outcome == NO_ANSWER for one in ran),
        "; ".join(f"{name} {n}" for name, n in sorted(Counter(one.outcome for one in ran if one.verdict is None).items())) or "0",
        len(ones) - len(ran),
        f"{fmean(one.n_pictures for one in asked):.1f}" if asked else NO_FIGURE,
        # what failed is paid for too
        _cost(cost_per_verdict(ones)),
        f"{fmean(one.prompt_tokens + one.completion_tokens for one in asked):.0f}" if asked else NO_FIGURE,
    )  # fmt: skip


# --- the figure ---


def draw_agreement(found: Mapping[str, Any]) -> Drawing:
    """`found`: `judge_agreement.Agreements` as a dictionary;
    a row for each judge, of agreement and of Cohen's kappa."""
    from matplotlib.figure import Figure

    judges = found["judges"]
    figure = Figure((INCHES[0], 2 + 0.42 * len(judges)), facecolor="white", layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name, title, scale in zip(
        panels, ("agreement", "kappa"), ("Agreement with labels", "Cohen's kappa"), (100, 1), strict=True
    ):
        for place, judge in enumerate(judges):
            if (one := judge[name]) is not None:
                value, (low, high) = one["value"], one["ci95"] or (one["value"], one["value"])
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
