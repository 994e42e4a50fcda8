"""The markup ablation's `table.json` as Markdown, CSV and LaTeX. Computes nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from seeact_offline.files.markdown import cell, percent, table
from seeact_offline.scoring.report import METRICS

PLACE = ("kind", "position", "turn 1")
SOURCE = "SeeAct, arXiv 2401.01614v2, Table 5"
_LATEX = {"&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_", "$": r"\$"}


def markdown(results: Mapping[str, Any], remark: str = "") -> str:
    """`table.md`. `remark`: a sentence that has to stand above the figures."""
    title = f"# Ways of marking, on {cell(results['split'])}"
    return "\n\n".join(part for part in (title, remark, body(results)) if part) + "\n"


def body(results: Mapping[str, Any]) -> str:
    """The tables and what has to be said of them."""
    return "\n\n".join([_head(results), _figures(results), _differences(results), _costs(results)])


def _head(results: Mapping[str, Any]) -> str:
    what = f"{cell(results['model'])}, ranker {cell(results['ranker'])}, protocol {results['protocol']}"
    size = f"{results['n_steps']} steps of {results['n_tasks']} tasks in every row"
    rest = "" if results["complete"] else ", not all that were asked for"
    return f"{what}: {size}{rest}."


def _figures(results: Mapping[str, Any]) -> str:
    header = (*PLACE, *(title for _, title in METRICS), *(f"paper: {title}" for _, title in METRICS))
    rows = [(*_place(row), *(_figure(row[name]) for name, _ in METRICS), *_paper(row)) for row in results["rows"]]
    note = (
        "Percent. Mean over tasks of the task's mean, with its 95 % bootstrap interval over tasks."
        f" Paper: {SOURCE}, whose figures are those of its own model and steps."
    )
    if results["n_tasks"] < 2:
        note += " One task says nothing of how tasks vary, so the intervals are everything."
    return table(header, rows) + "\n\n" + note


def _differences(results: Mapping[str, Any]) -> str:
    best = next(row for row in results["rows"] if row["folder"] == results["best"])
    rows = [
        (*_place(row), *(_signed(row["difference_to_best"][name]) for name, _ in METRICS))
        for row in results["rows"]
        if row["difference_to_best"] is not None
    ]
    if not rows:
        return "One row only: there is nothing to compare."
    note = (
        "Points, with the 95 % interval of tasks drawn together for both rows. The best row was found by these very"
        " figures (Step SR, then Element Accuracy), so that its lead is on the high side."
    )
    header = (*PLACE, *(title for _, title in METRICS))
    return f"## Difference to the best row: {', '.join(_named(best))}\n\n{table(header, rows)}\n\n{note}"


def _costs(results: Mapping[str, Any]) -> str:
    reused = sum(row["replies_reused"] for row in results["rows"])
    failed = sum(row["failed_steps"] for row in results["rows"])
    rows = [(*_place(row), *_cost(row["usage"], row["replies_reused"], row["failed_steps"])) for row in results["rows"]]
    rows.append(("all", "", "", *_cost(results["usage"], reused, failed)))
    header = (*PLACE, "calls", "replies reused", "prompt tokens", "completion tokens", "cost, USD", "failed steps")
    note = (
        "Equal questions of a step are asked once: the row and group that came first paid, the others reused the reply."
    )
    return f"## Calls and cost\n\n{table(header, rows)}\n\n{note}"


def csv_text(results: Mapping[str, Any]) -> str:
    """`table.csv`: one line a row, shares as fractions, an empty field where there is nothing."""
    lines = [_csv_row(row) for row in results["rows"]]
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue()


def _csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {name: row[name] for name in ("kind", "position", "turn1", "folder")}
    for name, _ in METRICS:
        line |= {name: row[name]["macro"], f"{name}_micro": row[name]["micro"]}
        line |= dict(zip((f"{name}_low", f"{name}_high"), row[name]["ci95"], strict=True))
        line |= _csv_difference(name, (row["difference_to_best"] or {}).get(name))
        line[f"{name}_paper"] = (row["paper"] or {}).get(name)
    usage = ("calls", "prompt_tokens", "completion_tokens", "cost_usd")
    return line | {name: row["usage"][name] for name in usage} | {k: row[k] for k in ("replies_reused", "failed_steps")}


def _csv_difference(name: str, gap: Mapping[str, Any] | None) -> dict[str, Any]:
    names = (f"{name}_difference", f"{name}_difference_low", f"{name}_difference_high")
    return dict.fromkeys(names) if gap is None else dict(zip(names, (gap["macro"], *gap["ci95"]), strict=True))


def latex(results: Mapping[str, Any], remark: str = "") -> str:
    """`table.tex`: the figures and the paper's as a plain `tabular`."""
    titles = [_escaped(title) for _, title in METRICS]
    group = f"\\multicolumn{{3}}{{c}}{{{_escaped(str(results['model']))}}} & \\multicolumn{{3}}{{c}}{{Paper}}"
    header = " & ".join(["Kind", "Position", "Turn 1", *titles, *titles])
    lines = [
        " & ".join([*map(_escaped, _place(row)), *(_tex_figure(row[name]) for name, _ in METRICS), *_paper(row)])
        for row in results["rows"]
    ]
    start = [f"% {' '.join(remark.split())}"] if remark else []
    top = ["\\begin{tabular}{lll" + "r" * 2 * len(METRICS) + "}", "\\hline", f"& & & {group} \\\\", f"{header} \\\\"]
    return "\n".join([*start, *top, "\\hline", *(f"{line} \\\\" for line in lines), "\\hline", "\\end{tabular}", ""])


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["kind"], row["position"], row["turn1"]


def _named(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["kind"], row["position"], f"{row['turn1']} turn 1"


def _figure(metric: Mapping[str, Any]) -> str:
    low, high = metric["ci95"]
    return f"{percent(metric['macro'])} ({percent(low)} to {percent(high)})"


def _tex_figure(metric: Mapping[str, Any]) -> str:
    low, high = metric["ci95"]
    return f"{percent(metric['macro'])} [{percent(low)}, {percent(high)}]"


def _signed(gap: Mapping[str, Any]) -> str:
    # rounded first, and 0.0 added, so that nothing reads -0.0
    middle, low, high = (f"{round(100 * value, 1) + 0.0:+.1f}" for value in (gap["macro"], *gap["ci95"]))
    return f"{middle} ({low} to {high})"


def _paper(row: Mapping[str, Any]) -> Sequence[str]:
    return [percent((row["paper"] or {}).get(name)) for name, _ in METRICS]


def _cost(usage: Mapping[str, Any], reused: int, failed: int) -> tuple[str, ...]:
    cost = "not known" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f}"
    counts = usage["calls"], reused, usage["prompt_tokens"], usage["completion_tokens"]
    return (*(f"{count:,}" for count in counts), cost, f"{failed:,}")


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(c, c) for c in text.replace("\\", "/"))
