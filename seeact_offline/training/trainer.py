"""Training by transformers' Trainer: checks, arguments, checkpoints, resuming, saving; the same for every baseline.

`torchrun` and `accelerate launch` decide the number of machines, and the use of FSDP or DeepSpeed.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, TypeVar
from zipfile import is_zipfile

import numpy as np
from filelock import FileLock
from safetensors import SafetensorError, safe_open

from seeact_offline.files.markdown import percent
from seeact_offline.files.whole import replace_text
from seeact_offline.models.hf_folder import PICTURES, PROCESSOR, has_safetensors, holds_weights, settings_files
from seeact_offline.models.hf_loading import quiet
from seeact_offline.ranking.stage import JOURNAL
from seeact_offline.records import Diverged, InputError
from seeact_offline.runs.folder import check_no_run
from seeact_offline.runs.watch import RankListener, Watch
from seeact_offline.training.baseline import FineTuning, TrainedSettings
from seeact_offline.training.checks import n_processes

T = TypeVar("T")
CHECKPOINTS = "checkpoints"
DATA = "data"
ON_CPU = 4
"""Questions at once on a CPU. With more, each takes longer: their attention no longer fits into caches."""
IDENTITY = "training/recipe.json"
"""All that the weights depend on: a training is resumed only with the same.
Not beside the weights, whose settings identify the model."""
STATE = "trainer_state.json"
"""The last file of a checkpoint that the Trainer writes."""
RANKS = "ranks.parquet"
"""The file in the folder with the scores of the train split, if no score file is given."""
UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a disk that is full, or of a limit to its use."""
LORA_DROPOUT = 0.05
CONFIG, GENERATION, TEMPLATE = "config.json", "generation_config.json", "chat_template.jinja"
# the best one, and the last one, from which a killed training resumes
KEPT_CHECKPOINTS = 2
FIGURES: Mapping[str, Callable[[float], str]] = {
    "loss": lambda value: f"loss {value:.3g}",
    "eval_loss": lambda value: f"held-out loss {value:.3g}",
    "eval_letter_accuracy": lambda value: f"held out: right option {percent(value)} %",
    "eval_answer_accuracy": lambda value: f"right answer {percent(value)} %",
}
"""Entries of a fine-tuning's log that are shown with each step, and in which words."""


# --- before ---


def check_out(out: Path, identity: Mapping[str, Any], resume: bool, is_whole: bool = True) -> None:
    """Checks that the folder is free for this training, or claimed by the same one. Without a checkpoint it may begin
    anew, with any configuration. `is_whole`: False for the part of the identity that is known before the base is
    opened. Raises InputError.
    """
    problem, checkpoint = "", last_checkpoint(out)
    if not (out / IDENTITY).exists():
        check_no_run(out)
        if holds_weights(out):
            problem = f"{out} holds a model; name another folder for `out`"
        elif resume:
            problem = f"{out} holds no training to `resume`; the same command without it begins one"
    elif checkpoint is None and not has_safetensors(out):
        if resume:
            problem = f"{out / CHECKPOINTS} holds no checkpoint to `resume`; the same command without it begins anew"
    else:
        ours, theirs = json.loads(json.dumps(identity)), json.loads((out / IDENTITY).read_text("utf-8"))
        names = {*ours, *theirs} if is_whole else ours
        differing = next((name for name in sorted(names) if ours.get(name) != theirs.get(name)), None)
        if differing is not None:
            got = f"{differing} {ours.get(differing)!r:.80} where it was {theirs.get(differing)!r:.80}"
            again = f"name another folder, or delete {out} to begin anew"
            problem = f"{out} was begun with another configuration: {got}; {again}"
        elif checkpoint is None:
            problem = f"{out} holds a trained model and no checkpoint to `resume`; name another folder"
        elif not resume:
            problem = f"{out} holds a training; name another folder, or use `resume`, or delete {out} to begin anew"
    if problem:
        raise InputError("resume" if resume else "out", sentence=problem)


def claim_out(out: Path, identity: Mapping[str, Any]) -> None:
    """Marks the folder as that of this training; what another one without a checkpoint had ranked for itself goes."""
    file, text = out / IDENTITY, json.dumps(identity, indent=2) + "\n"
    if file.exists() and file.read_text("utf-8") != text:
        # they are reused without asking what made them
        for name in (RANKS, f"{RANKS}{JOURNAL}"):
            (out / name).unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, text)


def last_checkpoint(out: Path) -> Path | None:
    """The last checkpoint that is complete."""
    checkpoints = [path for path in (out / CHECKPOINTS).glob("checkpoint-*") if _is_whole(path)]
    return max(checkpoints, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _is_whole(checkpoint: Path) -> bool:
    tensors = [*checkpoint.rglob("*.safetensors")]
    try:
        json.loads((checkpoint / STATE).read_text("utf-8"))
        for path in tensors:
            # it compares the file's length with its header
            with safe_open(path, "numpy"):
                pass
    except (OSError, ValueError, SafetensorError):
        return False
    # FSDP and DeepSpeed keep shares of the weights in folders; torch writes zip files, whose directory is at their end
    has_weights = bool(tensors) or any(path.is_dir() for path in checkpoint.iterdir())
    return has_weights and all(map(is_zipfile, checkpoint.rglob("*.pt*")))


def is_main_process() -> bool:
    """True for the one of several training processes that writes files and reports."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def prepared_once(out: Path, is_done: Callable[[], bool]) -> Iterator[None]:
    """Lets one process of each machine prepare a training, one machine after another,
    while the others wait for `is_done`.

    They meet at files and not at a process group, whose processes may wait no longer than some minutes for each other.
    """
    if os.environ.get("LOCAL_RANK", "0") != "0":
        # where preparing fails, the launcher ends those that wait
        while not is_done():
            time.sleep(0.2)
    (out / DATA).mkdir(parents=True, exist_ok=True)
    with FileLock(out / DATA / ".lock"):
        yield


def save_once(folder: Path, out: Path, seed: int, make: Callable[[], Iterable[Any]]) -> None:
    """Lets one process save the parts of a base with random weights, which depend on the seed alone. `folder`: in
    `out`, named by all that the parts are made of."""
    import torch

    with prepared_once(out, folder.exists):
        if not folder.exists():
            with quiet(), TemporaryDirectory(dir=out) as draft, torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                for part in make():
                    part.save_pretrained(Path(draft) / "base")
                (Path(draft) / "base").rename(folder)


@contextmanager
def room_to_write(out: Path, part: str = "") -> Iterator[None]:
    """Turns a full disk, as each library puts it, into one sentence with the path; that of this part of the folder
    where the library names none. Raises InputError."""
    try:
        yield
    # safetensors, torch and pyarrow each have errors of their own
    except Exception as error:
        reason = _unwritten(error)
        if not reason:
            raise
        place, checkpoint = getattr(error, "filename", None) or out / part, last_checkpoint(out)
        again = "without `resume` begins anew"
        if checkpoint is not None:
            again = f"with `resume` continues from {checkpoint.name}"
        sentence = f"{place} cannot be written: {reason}; with room there, the same command {again}"
        raise InputError("out", sentence=sentence) from error


def _unwritten(error: BaseException | None) -> str:
    """The reason that kept a file from being written to its end; empty for any other error."""
    while error is not None:
        named = re.search(r"(?i)\b(?:os error|errno) (\d+)", str(error))
        for number in (getattr(error, "errno", None), int(named[1]) if named else None):
            if number in UNWRITTEN:
                return os.strerror(number)
        # torch does not say why
        if "inline_container.cc" in str(error):
            return "a file was cut short"
        error = error.__cause__ or error.__context__
    return ""


def prepare_torch(seed: int, threads: int | None) -> None:
    """Seeds all generators, and silences transformers' progress bars and remarks."""
    import torch
    from transformers import set_seed
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if threads is not None:
        torch.set_num_threads(threads)
    set_seed(seed)


def release_memory() -> None:
    """Gives back what no longer has a name: a Trainer and its model hold each other."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


# --- training ---


def train(
    trainer: Any, settings: TrainedSettings, out: Path, resume: bool = False, reload: Callable[[], Any] | None = None
) -> tuple[Mapping[str, float], ...]:
    """Trains the trainer's model, saves it with these settings into `out`, and returns the Trainer's log.

    `resume`: from the last checkpoint in `out`. `reload`: as in `save_model`. Raises Diverged.
    """
    checkpoint = last_checkpoint(out) if resume else None
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    history = checked_log(trainer)
    weights = None
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
        # all processes send their shares; the first holds the whole, on the CPU
        weights = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    if is_main_process():
        save_model(trainer.accelerator.unwrap_model(trainer.model), out, weights, reload, settings.name)
        save_settings(settings, out)
    # the first process evaluates alone
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
    return history


def checked_log(trainer: Any) -> tuple[Mapping[str, float], ...]:
    """The log of a training that has ended. Raises Diverged, naming the checkpoint with the lowest loss."""
    history, best = tuple(dict(entry) for entry in trainer.state.log_history), trainer.state.best_model_checkpoint
    losses = [entry["loss"] for entry in history if "loss" in entry]
    end = float(np.mean(losses[-max(1, len(losses) // 10) :])) if losses else 0.0
    # single batches vary
    if np.isfinite(end) and (len(losses) < 2 or end <= 1.25 * losses[0] + 0.1):
        return history
    what = (
        f"ended at {end:.3g}, far above the {losses[0]:.3g} of its first step" if np.isfinite(end) else "is no number"
    )
    kept = f"; {best} had the lowest" if best else ""
    raise Diverged(
        "learning_rate",
        sentence=f"the training diverged, and no model is saved: its loss {what}{kept}; lower `learning_rate`, and name"
        " another `out`",
    )


def save_model(
    model: Any,
    out: Path,
    weights: Mapping[str, Any] | None = None,
    reload: Callable[[], Any] | None = None,
    base_name: str = "",
) -> None:
    """Saves a model in the hub's format. With LoRA: the matrices in `adapter`, and the weights with them added.

    `weights`: all of the model's, where it holds only this process's share of them. `reload`: loads the base as it was
    before it was quantised, for the matrices to be added to. `base_name`: as in `TrainedSettings`.
    """
    if not hasattr(model, "merge_and_unload"):
        model.save_pretrained(out, state_dict=weights)
        return
    if weights is not None:
        from peft import get_peft_model

        # a share cannot be merged: the same model once more, with all weights
        base = model.get_base_model()
        whole = type(base)(base.config)
        # by which its weights are saved under the names that they had in the base's files
        whole._weight_conversions = base._weight_conversions
        model = get_peft_model(whole, model.peft_config["default"])
        model.load_state_dict(weights, assign=True)
    adapter, folder = model.peft_config["default"], Path(base_name).expanduser()
    adapter.base_model_name_or_path, _, adapter.revision = base_name.partition("@")
    if base_name and folder.is_dir():
        adapter.base_model_name_or_path, adapter.revision = str(folder.resolve()), ""
    model.save_pretrained(out / "adapter")
    if reload is not None:
        from peft import PeftModel

        model = PeftModel.from_pretrained(reload(), out / "adapter", trust_remote_code=False)
    model.merge_and_unload().save_pretrained(out)


def save_settings(settings: TrainedSettings, out: Path) -> None:
    """Puts the settings, and the base's tokenizer and processor,
    in the place of those that transformers saved with the weights.

    transformers 5 saves other fields than it read, of which transformers 4 makes another model or none: a T5's
    embeddings are always tied, `rope_theta` has another name, and so has the tokenizer's class.
    """
    saved = json.loads((out / CONFIG).read_text("utf-8"))
    (out / GENERATION).unlink(missing_ok=True)
    for path in settings_files(settings.base):
        shutil.copyfile(path, out / path.name)
    config = _in_dtype(json.loads((settings.base / CONFIG).read_text("utf-8")), saved.get("dtype"))
    for part, entries in settings.config.items():
        config[part] = {**config.get(part, {}), **entries}
    _write_json(out / CONFIG, config)
    for path in (out / PROCESSOR, out / PICTURES):
        if settings.pictures and path.is_file():
            content = json.loads(path.read_text("utf-8"))
            # empty where the other file has them
            part = content.get("image_processor", {}) if path.name == PROCESSOR else content
            part |= settings.pictures
            _write_json(path, content)
    if settings.chat_template is not None:
        (out / TEMPLATE).write_text(settings.chat_template, "utf-8")


def _in_dtype(config: dict[str, Any], dtype: Any) -> dict[str, Any]:
    """The config of the same model with weights in this number format."""
    parts = {name: _in_dtype(value, dtype) for name, value in config.items() if isinstance(value, dict)}
    return {**config, **parts, **{name: dtype for name in ("dtype", "torch_dtype") if config.get(name) is not None}}


def _write_json(path: Path, content: object) -> None:
    replace_text(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def train_what_fits(attempt: Callable[[int | None], T], asked: FineTuning) -> T:
    """Calls `attempt` with as many questions at once on a device as fit in its memory:
    with the next smaller number after each lack of it.

    With several processes, or a number that was given, it is called once.
    Raises InputError if one question does not fit.
    """
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    recipe, running = asked.resolved_recipe, asked.running
    if running.per_device is not None or n_processes() > 1:
        return attempt(running.per_device)
    most = running.each(recipe.batch, 1, None if torch.cuda.is_available() else ON_CPU)
    for size in (size for size in range(most, 0, -1) if recipe.batch % size == 0):
        release_memory()
        try:
            return attempt(size)
        except RuntimeError as error:
            if not should_reduce_batch_size(error):
                raise
    wanted = "a device with memory for one question; gradient_checkpointing or lora need less"
    raise InputError("per_device", wanted, "too little memory")


def lora_config(rank: int, task: str, **more: Any) -> Any:
    """peft's configuration for a task by its name there. Alpha is twice the rank."""
    from peft import LoraConfig

    return LoraConfig(task_type=task, r=rank, lora_alpha=2 * rank, lora_dropout=LORA_DROPOUT, **more)


@contextmanager
def reporting(
    trainer: Any, watch: Watch, figures: Mapping[str, Callable[[float], str]] = MappingProxyType({})
) -> Iterator[None]:
    """Reports the trainer's steps to `watch` instead of printing them, keeps its best checkpoint, and ends a training
    without a loss. `figures`: entries of its log that are shown with each step, and in which words."""
    import transformers

    shown: dict[str, str] = {}

    class Reports(transformers.TrainerCallback):  # type: ignore[misc]
        listener: RankListener | None = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.listener = stack.enter_context(watch.counting(state.max_steps, "training", "optimizer steps"))
            # of an earlier training that is resumed
            for _ in range(state.global_step):
                self.listener.advance("", resumed=True)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            assert self.listener is not None
            self.listener.advance("  ".join(shown.values()))
            # short trainings, too, log a loss, and all log their last
            control.should_log |= args.logging_strategy == "steps" and state.global_step >= state.max_steps

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            shown.update((name, figures[name](logs[name])) for name in figures if name in logs)
            # a loss that is no number stays none
            control.should_training_stop |= not math.isfinite(logs.get("loss", 0.0))

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            # the checkpoint outlives those after it if its loss is the lowest
            losses = [entry["loss"] for entry in state.log_history if "loss" in entry]
            if losses and (state.best_metric is None or losses[-1] < state.best_metric):
                state.best_metric = losses[-1]
                state.best_model_checkpoint = str(Path(args.output_dir) / f"checkpoint-{state.global_step}")

    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Reports())
    with ExitStack() as stack:
        yield


def shared_arguments(out: Path, recipe: Any, cuda: bool) -> dict[str, Any]:
    """Training arguments of a baseline and of a ranker alike. `recipe`: of either."""
    return {
        "output_dir": str(out / CHECKPOINTS),
        "num_train_epochs": recipe.epochs,
        "learning_rate": recipe.learning_rate,
        "weight_decay": recipe.weight_decay,
        "max_grad_norm": recipe.clip,
        "lr_scheduler_type": "linear",
        "seed": recipe.seed,
        "use_cpu": not cuda,
        "dataloader_pin_memory": cuda,
        "logging_first_step": True,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "remove_unused_columns": False,
        "ddp_find_unused_parameters": False,
    }


def arguments(kind: Any, asked: FineTuning, evaluates: bool, **more: Any) -> Any:
    """Training arguments of this class. `more`: arguments that only it has."""
    import torch

    recipe, running = asked.resolved_recipe, asked.running
    cuda = torch.cuda.is_available()
    share = recipe.batch, n_processes(), None if cuda else ON_CPU
    workers = min(4, (os.cpu_count() or 1) // 2) if cuda else 0
    # newer versions of transformers have another name for it
    names = {field.name for field in fields(kind)}
    recompute = "activation_checkpointing" if "activation_checkpointing" in names else "gradient_checkpointing"
    when: dict[str, Any] = {"save_strategy": "epoch", recompute: running.gradient_checkpointing}
    if running.save_every is not None:
        when |= {"save_strategy": "steps", "save_steps": running.save_every, "eval_steps": running.save_every}
    made = kind(
        **shared_arguments(asked.out, recipe, cuda),
        per_device_train_batch_size=running.each(*share),
        per_device_eval_batch_size=running.each(*share),
        gradient_accumulation_steps=running.accumulate(*share),
        **({} if recipe.optimizer is None else {"optim": recipe.optimizer}),
        # a number below 1 is a share of all steps
        warmup_steps=recipe.warmup,
        bf16=running.bf16 if running.bf16 is not None else cuda and torch.cuda.is_bf16_supported(),
        data_seed=recipe.seed,
        tf32=(cuda and torch.cuda.get_device_capability() >= (8, 0)) or None,
        dataloader_num_workers=workers if running.loader_workers is None else running.loader_workers,
        save_total_limit=KEPT_CHECKPOINTS,
        eval_strategy=when["save_strategy"] if evaluates else "no",
        logging_strategy="steps",
        logging_steps=running.log_every,
        report_to=list(running.report_to),
        **when,
        **more,
    )
    # one process, one device: the Trainer would spread a batch over all it sees, and split means with it
    made._n_gpu = min(1, made.n_gpu)
    return made
