"""The tables of `agreement`: judges against labels, their 2 x 2 tables, their repeats, and the order of agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.scoring.report import counted
from seeact_offline.tables.document import NO_FIGURE, TableDocument
from seeact_offline.trajectories.judge_agreement import Agreements, Figure, JudgeAgreement, cost_per_verdict, success_of
from seeact_offline.trajectories.judgements import CONSTRUCTED, NO_ANSWER, Judgement

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


def agreement_document(found: Agreements) -> TableDocument:
    """Draws finished figures of agreement."""
    tables = [_agreement(found), _counts(found)]
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


def _kappa(figure: Figure | None) -> str:
    if figure is None:
        return NO_FIGURE
    interval = "" if figure.ci95 is None else " [{}, {}]".format(*map(_two_places, figure.ci95))
    return f"{_two_places(figure.value)}{interval}"


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
