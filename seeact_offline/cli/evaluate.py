"""`eval`: a split through ranking, grounding and scoring, into a run directory."""

from __future__ import annotations

import argparse
import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seeact_offline import scoring, tables, variants
from seeact_offline.cli import options, strategies
from seeact_offline.cli.output import note, printable, say
from seeact_offline.cli.progress import RunProgress
from seeact_offline.dataset import canonical_split, fingerprint, load_steps, step_keys
from seeact_offline.grounding import Grounding, Order
from seeact_offline.lint import read_findings
from seeact_offline.models import ModelOptions, Price, open_model
from seeact_offline.models.address import address_of
from seeact_offline.protocols import Protocol, find_protocol
from seeact_offline.ranking import Scores, file_digest
from seeact_offline.records import InputError, Model, Prediction, Step, StepKey, Truth
from seeact_offline.runlog import RunDirectory, results_json
from seeact_offline.runner import Limits, predict
from seeact_offline.runner import run as run_steps

NOT_THE_PAPERS = (
    "These figures are of the bundled sample, fictional websites made to try the program; they are not the paper's."
)
FIGURES = ("n_tasks", "n_steps", "element_accuracy", "operation_f1", "step_success_rate")
OBJECTS_BETWEEN_COLLECTIONS = 50_000
# some ten steps


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_data_arguments(parser)
    options.add_question_arguments(parser)
    options.add_engine_arguments(parser)
    add_model_arguments(parser)
    runs = add_run_arguments(parser)
    runs.add_argument(
        "--exclude-flagged",
        type=Path,
        metavar="FILE",
        help="findings of lint-data: report the figures without these rows too",
    )
    runs.add_argument(
        "--shuffle-groups",
        type=options.count,
        default=0,
        metavar="N",
        help="choice, annotation: N more runs with groups and choices in a random order, and how far the figures vary",
    )
    runs.add_argument(
        "--out", type=Path, metavar="DIR", help="run directory; a killed run goes on from it (default: runs/...)"
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    model.add_argument(
        "--model", default="builtin/lexical", metavar="PROVIDER/NAME",
        help="openai/NAME, replay/FILE, builtin/lexical or builtin/oracle (default: %(default)s)",
    )  # fmt: skip
    model.add_argument(
        "--base-url", metavar="URL", help="an OpenAI-compatible server (default: $OPENAI_BASE_URL, else OpenAI)"
    )
    model.add_argument(
        "--temperature", type=options.non_negative_float, default=0.0, metavar="T", help="(default: %(default)s)"
    )
    model.add_argument(
        "--max-tokens", type=options.positive_int, default=2048, metavar="N", help="of a reply (default: %(default)s)"
    )
    model.add_argument(
        "--timeout", type=options.positive_float, default=120.0, metavar="S", help="of a call (default: %(default)s)"
    )
    model.add_argument(
        "--max-retries", type=options.count, default=5, metavar="N", help="of a failed call (default: %(default)s)"
    )
    model.add_argument("--price", type=_price, metavar="IN,OUT", help="USD per million prompt and completion tokens")


def add_run_arguments(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """What every verb that asks a model has; returns the group for what is its own."""
    runs = parser.add_argument_group("run")
    runs.add_argument(
        "--protocol", default="seeact", metavar="NAME", help="scoring rules: seeact or mindact (default: %(default)s)"
    )
    runs.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of the bootstrap and the model (default: %(default)s)"
    )
    runs.add_argument(
        "--concurrency", type=options.positive_int, default=4, metavar="N", help="steps at once (default: %(default)s)"
    )
    runs.add_argument(
        "--max-cost",
        type=options.positive_float,
        metavar="USD",
        help="begin no further step beyond this; needs --price",
    )
    return runs


def run(args: argparse.Namespace) -> int:
    job = open_job(args)
    flagged = read_findings(args.exclude_flagged) if args.exclude_flagged else None
    out = RunDirectory(args.out or default_out(args, strategies.name_of(args)))
    out.check(job.identity)
    state = State(done={key: p for key, p in out.load().items() if p.ran})
    model = open_model(args.model, model_options(args, out))
    # not before the model is known to be usable: a mistyped one must not claim the folder
    out.claim(job.identity, job.settings)
    if args.dataset == "sample":
        say(NOT_THE_PAPERS)
    note(
        f"{len(job.keys)} steps of {job.settings['dataset']} ({job.settings['split']}), model {args.model}, out {out.path}"
    )
    if state.done:
        note(f"{len(state.done)} steps are done already and are not asked again")
    with rare_collections():
        complete = asyncio.run(_run(args, job, model, out, state, spent=0.0))
        complete = complete and _run_repeats(args, job, out, state)
    return _finish(args, job, out, state, complete, flagged)


def _run_repeats(args: argparse.Namespace, job: Job, out: RunDirectory, state: State) -> bool:
    """The same steps in other orders, each in a folder of its own. False when the cost limit left some over."""
    spent = spent_by(state)
    for number in range(1, args.shuffle_groups + 1):
        again, folder = _repeat(args, job, number), RunDirectory(variants.repeat_folder(out.path, number))
        folder.claim(again.identity, again.settings)
        known = State(done={key: p for key, p in folder.load().items() if p.ran})
        note(f"order {number} of {args.shuffle_groups}: {len(job.keys) - len(known.done)} steps to ask")
        # replies are kept in the run's own file, whichever order they were for
        complete = asyncio.run(
            _run(args, again, open_model(args.model, model_options(args, out)), folder, known, spent)
        )
        order = [key for key in job.keys if key in known.done]
        write_results(again, folder, known, order, complete)
        spent += spent_by(known)
        state.failed_repeats += sum(not p.ran for p in known.done.values())
        if not complete:
            return False
    return True


def _repeat(args: argparse.Namespace, job: Job, number: int) -> Job:
    opened = strategies.open_strategy(args, Order(args.seed, number))
    mark = {"shuffled": number}
    identity, settings = job.identity | mark, job.settings | mark
    return replace(job, grounding=opened.grounding, identity=identity, settings=settings)


def spent_by(state: State) -> float:
    return sum(p.usage.cost_usd or 0.0 for p in state.done.values())


@contextmanager
def rare_collections() -> Iterator[None]:
    """A step is thousands of objects without a cycle: by default Python would search all of memory every few steps."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@dataclass(frozen=True)
class Job:
    """What is to be done, opened and checked."""

    keys: list[StepKey]
    scores: Scores | None
    # None where nothing is ranked
    grounding: Grounding
    protocol: Protocol
    identity: dict[str, Any]
    # what predictions depend on
    settings: dict[str, Any]
    # what the results name


@dataclass
class State:
    """What has been done."""

    done: dict[StepKey, Prediction]
    truths: dict[StepKey, Truth] = field(default_factory=dict)
    # of every step met so far, in data set order
    failed_repeats: int = 0
    # steps that failed to run in another order


def open_job(args: argparse.Namespace) -> Job:
    dataset = args.dataset
    split = canonical_split(args.split)
    protocol = find_protocol(args.protocol, grounded=not args.ungrounded)
    if args.max_cost is not None and args.price is None:
        raise InputError("--max-cost: expected --price as well, so that the cost is known; got none")
    opened = strategies.open_strategy(args)
    keys = step_keys(dataset, split, limit=args.limit)
    scores = options.open_scores_for(args, opened.grounding, keys)
    print_of_data = fingerprint(dataset, split)
    ranking = {} if scores is None else {"scores_digest": scores.digest, "top_k": args.top_k}
    identity = {
        "split": split, "dataset_fingerprint": print_of_data, "limit": args.limit, **ranking,
        **opened.identity, **_model_identity(args), "seed": args.seed,
    }  # fmt: skip
    grouped = {"merge": args.merge, "top_k": args.top_k, "group_size": args.group_size}
    settings = {
        "split": split, "grounding": strategies.name_of(args), "model": args.model,
        "ranker": options.ranker_named(args, opened.grounding), "protocol": protocol.name, "prompts": args.prompts,
        **(grouped if scores is not None else dict.fromkeys(grouped)),
        "seed": args.seed, "limit": args.limit, "dataset": dataset, "dataset_fingerprint": print_of_data, **opened.shown,
    }  # fmt: skip
    return Job(keys, scores, opened.grounding, protocol, identity, settings)


async def _run(args: argparse.Namespace, job: Job, model: Model, out: RunDirectory, state: State, spent: float) -> bool:
    """Asks for all steps that are not done; `spent` is what was paid beside them. False when the cost limit left some over."""

    async def work(step: Step) -> Prediction:
        return await predict(step, job.scores, args.top_k, job.grounding, model)

    def finished(prediction: Prediction) -> None:
        out.append(prediction)
        state.done[prediction.key] = prediction
        progress.add(prediction, score(job, state, prediction))

    limits = Limits(args.concurrency, args.max_cost, spent + spent_by(state))
    try:
        with out, RunProgress(len(job.keys), str(job.settings["split"])) as progress:
            steps = _open_steps(args, job, state, progress)
            complete = await run_steps(steps, work, finished, limits)
            for _ in steps:
                # what an earlier run has done beyond the first step left over stays in the files
                pass
            return complete
    finally:
        await model.aclose()


def _open_steps(args: argparse.Namespace, job: Job, state: State, progress: RunProgress) -> Iterator[Step]:
    """Streams the split, notes every truth, and gives the steps that still have to be asked."""
    for step in load_steps(args.dataset, job.settings["split"], limit=args.limit):
        state.truths[step.key] = step.truth
        if step.key in state.done:
            progress.add(state.done[step.key], score(job, state, state.done[step.key]), resumed=True)
        else:
            yield step


def score(job: Job, state: State, prediction: Prediction) -> Any:
    return scoring.score_step(prediction, state.truths[prediction.key], job.protocol)


def _finish(
    args: argparse.Namespace,
    job: Job,
    out: RunDirectory,
    state: State,
    complete: bool,
    flagged: frozenset[StepKey] | None,
) -> int:
    """Scores what was reached, writes it, prints it. Returns the exit status."""
    order = [key for key in job.keys if key in state.done and key in state.truths]
    predictions = [state.done[key] for key in order]
    results = write_results(job, out, state, order, complete, flagged)
    say(tables.short(results))
    say(f"\nReport: {out.path / 'report.md'}")
    failed = sum(not p.ran for p in predictions)
    if not complete:
        left = len(job.keys) - len(order)
        what = f"{left} of {len(job.keys)} steps were not begun" if left else "the other orders are not all done"
        note(f"stopped at --max-cost {args.max_cost}: {what}")
    if failed:
        note(
            f"{failed} of {len(order)} steps failed to run: see failures in {out.path / 'results.json'}; the same command tries them again"
        )
    if state.failed_repeats:
        note(f"{state.failed_repeats} steps failed to run in another order; the same command tries them again")
    return 1 if failed or state.failed_repeats or not complete else 0


def write_results(
    job: Job,
    out: RunDirectory,
    state: State,
    order: list[StepKey],
    complete: bool,
    flagged: frozenset[StepKey] | None = None,
) -> dict[str, Any]:
    """Scores the steps and writes all files of the run; returns `results.json`."""
    predictions, truths = [state.done[key] for key in order], [state.truths[key] for key in order]
    scores, results = score_all(predictions, truths, job.protocol, job.settings)
    results["complete"] = complete
    add_spread(results, out.path, truths, job.protocol)
    if flagged is not None:
        kept = [i for i, key in enumerate(order) if key not in flagged]
        pairs = [predictions[i] for i in kept], [truths[i] for i in kept]
        _, rest = score_all(*pairs, job.protocol, job.settings)
        results["without_flagged"] = {"n_flagged": len(order) - len(kept)} | {name: rest[name] for name in FIGURES}
    rows = scoring.rows(scores, predictions, truths)
    out.finish(predictions, rows, results, printable(tables.report(results, rows)))
    return results


def add_spread(results: dict[str, Any], folder: Path, truths: list[Truth], protocol: Protocol) -> None:
    """Adds `shuffle_spread` where all steps were also asked in other orders."""
    spread = variants.shuffle_spread(folder, truths, protocol)
    if spread is not None:
        results["shuffle_spread"] = spread


def score_all(
    predictions: list[Prediction], truths: list[Truth], protocol: Protocol, settings: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Step scores and `results.json`."""
    scores, summary = scoring.summarise(predictions, truths, protocol, settings["top_k"] or 0, settings["seed"])
    results = results_json(summary, {**settings, "protocol": protocol.name})
    results["merge_spread"] = scoring.merge_spread(predictions, truths, protocol, settings["merge"])
    price = variants.price_of_batching(predictions)
    if price is not None:
        results["batching_price"] = price
        results["notes"] = {name: n for name, n in results["notes"].items() if name not in variants.PRICE_NOTES}
    return scores, results


def model_options(args: argparse.Namespace, out: RunDirectory) -> ModelOptions:
    return ModelOptions(
        base_url=args.base_url,
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        timeout_s=args.timeout,
        max_retries=args.max_retries,
        cache=out.calls,
        price=args.price,
        seed=args.seed,
    )


def _model_identity(args: argparse.Namespace) -> dict[str, Any]:
    """A recording counts by its content, a server by its address and settings."""
    provider, _, name = args.model.partition("/")
    if provider == "replay" and Path(name).is_file():
        return {"model": "replay", "recording_digest": file_digest(Path(name))}
    if provider == "builtin":
        return {"model": args.model}
    return {
        "model": args.model,
        "base_url": address_of(args.base_url),
        "temperature": args.temperature,
        "max_tokens": args.max_tokens,
    }


def default_out(args: argparse.Namespace, what: str) -> Path:
    """A name that tells runs apart, below `runs/` in the working folder."""
    words = [
        Path(str(args.dataset)).name,
        canonical_split(args.split),
        what,
        *args.model.split("/")[-2:],
    ]
    safe = ["".join(c if c.isalnum() or c in "._" else "-" for c in word) for word in words]
    return Path("runs") / "-".join(safe)


def _price(text: str) -> Price:
    try:
        prompt, completion = map(options.non_negative_float, text.split(","))
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"expected two numbers of at least 0, IN,OUT, got {text}") from None
    return Price(prompt, completion)
