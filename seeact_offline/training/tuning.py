"""Fine-tuning of a baseline: checks, questions made once, training, evaluation and card.

The steps are the same for all; each baseline's module declares its own parts.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from seeact_offline.dataset import TEST_SPLITS, Split, open_split
from seeact_offline.files.digest import file_digest
from seeact_offline.files.whole import replace_text, write_whole
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.ranking.stage import ranking_stage
from seeact_offline.records import InputError
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.opening import selected_split
from seeact_offline.runs.strategy_opening import check_pages, check_ranking, open_strategy
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.report import Extent, data_in_words
from seeact_offline.tables.table_input import EVALUATION, RECORD
from seeact_offline.training.baseline import PROMPTS, Baseline, FineTuning, OpenBaseline, find_baseline
from seeact_offline.training.bases import train_tokenizer
from seeact_offline.training.card import FineTuningResult, learning_curve_png, render
from seeact_offline.training.checks import check_separate, check_settings
from seeact_offline.training.mindact_rows import MultiChoice, words_of
from seeact_offline.training.recipe import NEW_TOKENS, SmallBase
from seeact_offline.training.trainer import (
    CHECKPOINTS,
    DATA,
    FIGURES,
    check_out,
    claim_out,
    is_main_process,
    prepare_torch,
    prepared_once,
    release_memory,
    reporting,
    room_to_write,
    save_once,
    train,
    train_what_fits,
)
from seeact_offline.training.training_rows import RowCounts, held_out_tasks, open_rows, parts_of, prepare, prepared

CARD = "README.md"
CURVE = "learning_curve.png"
NAMED_PACKAGES = ("seeact-offline", "torch", "transformers", "accelerate", "datasets", "tokenizers")


def fine_tune(asked: FineTuning, watch: Watch | None = None) -> FineTuningResult:
    """Fine-tunes a baseline and asks it about the test splits. Steps that cannot be learnt from are counted.

    Raises InputError for what cannot be used.
    """
    watch, baseline = watch or Watch(), find_baseline(asked.baseline)
    watch.note(f"fine-tuning {asked.baseline} on {asked.split} of {asked.dataset}, into {asked.out}")
    _tell_published(asked, watch)
    _check_options(asked, baseline)
    check_settings(asked.resolved_recipe, asked.running, baseline.packages)
    split = open_split(asked.dataset, asked.split, limit=asked.limit)
    compared = check_separate(split, asked.test_data)
    held_out = held_out_tasks(split, asked.resolved_recipe)
    asked_identity = _identity(asked, baseline, split)
    check_out(asked.out, asked_identity, asked.resume, is_whole=False)
    how = baseline.evaluation(asked)
    _check_evaluation(asked, how, compared, watch)
    prepare_torch(asked.resolved_recipe.seed, asked.running.threads)
    with room_to_write(asked.out):
        based = _with_base(asked, baseline, split, held_out)
    opened = _opened(asked, baseline, based, split)
    scores = None if asked.scores is None else file_digest(asked.scores)
    identity = {**asked_identity, "scores": scores, **opened.identity, **asked_identity}
    check_out(asked.out, identity, asked.resume)
    maker, made = _questions(asked, opened, split, held_out, identity, watch)
    began, ready = time.monotonic(), [opened]
    # the model is let go of with the first attempt to train it
    del opened

    def attempt(per_device: int | None) -> Any:
        resume = asked.resume
        if not ready:
            watch.note(f"that did not fit in memory: {per_device} questions at once")
            resume = True
            prepare_torch(asked.resolved_recipe.seed, asked.running.threads)
        running = dataclasses.replace(asked.running, per_device=per_device)
        again = dataclasses.replace(based, running=running)
        model = ready.pop() if ready else _opened(asked, baseline, again, split)
        reload = None
        if asked.resolved_recipe.quantised:
            recipe = dataclasses.replace(asked.resolved_recipe, quantised=None)
            reload = partial(baseline.load, dataclasses.replace(based, recipe=recipe))
        with warnings.catch_warnings():
            # what libraries have to tell each other of names to come
            warnings.filterwarnings("ignore", category=FutureWarning, module=r"(transformers|trl|peft|accelerate)\b")
            # a FLAN-T5's never were, and `save_settings` says so
            warnings.filterwarnings("ignore", "Input and output embeddings are no longer tied", module=r"peft\b")
            trainer = model.trainer(maker, open_rows(asked.out / DATA))
            with reporting(trainer, watch, FIGURES):
                return train(trainer, model.settings, asked.out, resume, reload)

    with room_to_write(asked.out, CHECKPOINTS):
        history = train_what_fits(attempt, asked)
    tuned = FineTuningResult(asked.out, made, history, time.monotonic() - began)
    if is_main_process():
        _write(asked, baseline, tuned, identity, compared)
        release_memory()
        # splits that were not compared with the training data may be the same
        splits = [split for split in asked.evaluate if split in compared]
        runs = [evaluate(_evaluation(asked, split, how), watch=watch) for split in splits]
        tuned = dataclasses.replace(tuned, results=tuple(run.results for run in runs))
        _write(asked, baseline, tuned, identity, compared)
    return tuned


# --- before ---


def _check_options(asked: FineTuning, baseline: Baseline) -> None:
    """Raises InputError for options that the baseline does not use, and for what its own lack."""
    unused = f"nothing with baseline {asked.baseline}, which does not use it"
    for name in sorted(baseline.ignores):
        if getattr(asked.resolved_recipe, name) != getattr(baseline.recipe, name):
            raise InputError(name, unused, str(getattr(asked.resolved_recipe, name)))
    for name in sorted(asked.own.keys() - set(baseline.own)):
        value = asked.own[name]
        raise InputError(name, unused, ",".join(map(str, value)) if isinstance(value, tuple) else str(value))
    baseline.check_own(asked)


def _tell_published(asked: FineTuning, watch: Watch) -> None:
    """Says what a published recipe decides, and what was given in its place.
    Raises InputError where it is not the baseline's."""
    published = asked.published_recipe()
    if published is None:
        return
    ours, theirs = asdict(asked.resolved_recipe), asdict(published.recipe)
    decided = {name: value for name, value in theirs.items() if value is not None and ours[name] == value}
    watch.note(f"recipe {asked.published}: " + ", ".join(f"{name} {value}" for name, value in decided.items()))
    ranked = asked.eval_scores or asked.resolved_ranker
    watch.note(
        f"prompts {asked.prompts}; evaluated on candidates ranked by {ranked}, questions cut at"
        f" {published.input_tokens} tokens of page and rest, {NEW_TOKENS} new tokens, protocol mindact, elimination"
        " released"
    )
    changed = [
        f"{name} {ours[name]}" + ("" if value is None else f" instead of {value}")
        for name, value in theirs.items()
        if ours[name] != value
    ]
    if asked.prompts == PROMPTS:
        changed.append(f"prompts {asked.prompts} instead of the released wording")
    if asked.eval_scores is None and ranked != published.ranker:
        changed.append(f"eval_ranker {ranked} instead of {published.ranker}")
    if changed:
        watch.note(f"not as in recipe {asked.published}: {', '.join(changed)}")


def _with_base(asked: FineTuning, baseline: Baseline, split: Split, held_out: frozenset[str]) -> FineTuning:
    """The same with the folder of its base: a small one is made in `out`, unless the same was made there before."""
    shape = asked.base
    if not isinstance(shape, SmallBase):
        return asked
    recipe, pack = asked.resolved_recipe, open_pack(PROMPTS, "mindact", variant="seq2seq")
    made_of = [asdict(shape), recipe.seed, sorted(held_out), split.content_digest, pack.digest]
    folder = asked.out / f"base-{sha256(json.dumps(made_of).encode()).hexdigest()[:16]}"

    def make() -> tuple[Any, Any]:
        words = words_of(parts_of(split), MultiChoice(recipe, pack, held_out=held_out), asked.processes)
        return baseline.small(shape, train_tokenizer(words, shape.vocab_size))

    save_once(folder, asked.out, recipe.seed, make)
    return dataclasses.replace(asked, base=str(folder), recipe=recipe)


def _opened(asked: FineTuning, baseline: Baseline, based: FineTuning, split: Split) -> OpenBaseline:
    """Raises InputError, for `small` where the base was made for the training."""
    try:
        return baseline.open(based, split)
    except InputError as error:
        if error.argument == "base" and isinstance(asked.base, SmallBase):
            raise error.renamed("small") from error
        raise


def _identity(asked: FineTuning, baseline: Baseline, split: Split) -> dict[str, Any]:
    """All that the weights depend on and that is known before the base is opened; machine and versions aside."""
    recipe = {name: value for name, value in asdict(asked.resolved_recipe).items() if name not in baseline.ignores}
    return {
        "baseline": asked.baseline,
        **recipe,
        "dataset_fingerprint": split.fingerprint,
        "dataset_version": split.content_digest,
        "limit": asked.limit,
        **({"base": asdict(asked.base)} if isinstance(asked.base, SmallBase) else {}),
    }


def _check_evaluation(asked: FineTuning, how: Mapping[str, Any], compared: Sequence[str], watch: Watch) -> None:
    """Opens the test splits and their ranking now, and not after hours of training. Raises InputError."""
    lacking = [name for name in asked.evaluate if name not in compared]
    if lacking and asked.evaluate != TEST_SPLITS:
        wanted = f"splits to evaluate that there are ({', '.join(compared) or 'none, unless `test_data` names some'})"
        raise InputError("evaluate", wanted, lacking[0])
    for split in lacking:
        watch.note(f"{split} is not evaluated: the training data has no such split; name test_data")
    if not is_main_process():
        return
    # options of `eval` -> their names here
    names = {"ranker": "eval_ranker", "scores": "eval_scores", "limit": "eval_limit", "split": "evaluate"}
    if asked.test_data is not None:
        names["dataset"] = "test_data"
    for split in asked.evaluate:
        if split in compared:
            # the model is not there yet
            config = dataclasses.replace(_evaluation(asked, split, how), model="builtin/oracle")
            try:
                check_ranking(config)
                test = selected_split(config)
                check_pages(config, test)
                if open_strategy(config).grounding.needs_ranking:
                    ranking_stage(config, config.scores, test, watch)
            except InputError as error:
                raise error.renamed(names.get(error.argument, error.argument)) from error


def _questions(
    asked: FineTuning, opened: OpenBaseline, split: Split, held_out: frozenset[str], identity: Mapping[str, Any],
    watch: Watch,
) -> tuple[Any, RowCounts]:  # fmt: skip
    """Makes the questions on disk, unless they are there. Returns their maker, and counts.
    Raises InputError where there are none."""
    with room_to_write(asked.out), prepared_once(asked.out, lambda: prepared(asked.out / DATA, identity) is not None):
        claim_out(asked.out, identity)
        maker = opened.maker(held_out, watch)
        with watch.counting(len(split.keys), "preparing questions", "steps") as listener:
            made = prepare(parts_of(split), maker, asked.out / DATA, identity, asked.processes, listener)
    watch.note(f"{made.steps} steps to train on, {made.held_out_steps} held out; left out: {made.reasons}")
    if lost := made.cuts["targets_lost_in_context"] + made.cuts["targets_lost_in_question"]:
        watch.note(f"{lost} of {made.questions} questions lost their right element when they were cut to the limits")
    if not made.steps:
        raise InputError("dataset", "steps with a right element to train on", f"none in {split.name}")
    return maker, made


# --- after ---


def _evaluation(asked: FineTuning, split: str, how: Mapping[str, Any]) -> EvalConfig:
    """The config of `eval --model hf/OUT` on one split, into the model's own folder.
    `how`: the baseline's fields of `EvalConfig`."""
    return EvalConfig(
        dataset=asked.dataset if asked.test_data is None else asked.test_data,
        split=split,
        limit=asked.eval_limit,
        scores=asked.eval_scores,
        ranker=asked.resolved_ranker,
        prompts=asked.prompts,
        model=f"hf/{asked.out}",
        cache="off",
        seed=asked.resolved_recipe.seed,
        out=asked.out / EVALUATION / split,
        **how,
    )


def _write(
    asked: FineTuning, baseline: Baseline, tuned: FineTuningResult, identity: Mapping[str, Any], compared: Sequence[str]
) -> None:
    """The record, the learning curve and the card."""
    base = "a small model with random weights"
    if not isinstance(asked.resolved_base, SmallBase):
        base = str(asked.resolved_base)
    machine = _machine(asked, baseline, tuned)
    data = {
        "dataset": str(asked.dataset),
        "split": asked.split,
        "fingerprint": identity["dataset_fingerprint"],
        "limit": asked.limit,
        "prompts": asked.prompts,
        "score file": identity["scores"],
        "compared with the tests": ", ".join(compared) or "no, as no test split was found",
    }
    counts = tuned.made.to_dict()
    record = {"recipe": identity, "machine": machine, "data": data | counts, "history": tuned.history}
    replace_text(asked.out / RECORD, json.dumps(record, indent=2) + "\n")
    of = data_in_words([Extent(asked.dataset, asked.split, tuned.made.steps, None)])
    picture = learning_curve_png(
        tuned.history, f"{baseline.title}, from {base}: {asked.resolved_recipe.epochs} epochs\n{of}"
    )
    write_whole(asked.out / CURVE, lambda draft: draft.write_bytes(picture))
    of_data = ("baseline", "dataset_fingerprint", "dataset_version", "limit", "scores")
    recipe = {name: value for name, value in identity.items() if name not in of_data}
    replace_text(asked.out / CARD, render(asked, baseline, base, tuned, recipe, data, machine))


def _machine(asked: FineTuning, baseline: Baseline, tuned: FineTuningResult) -> dict[str, Any]:
    import torch

    names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    versions = dict.fromkeys((*NAMED_PACKAGES, *baseline.packages), "a checkout")
    for name in versions:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "devices": ", ".join(names) or f"CPU, {torch.get_num_threads()} threads of {platform.machine()}",
        "processes": os.environ.get("WORLD_SIZE", "1"),
        "minutes since it was begun or resumed": round(tuned.seconds / 60, 1),
        **{name: value for name, value in asdict(asked.running).items() if value not in (None, False, ())},
        "python": ".".join(map(str, sys.version_info[:3])),
        **versions,
    }
