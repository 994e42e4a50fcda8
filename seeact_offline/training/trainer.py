"""Training by transformers' Trainer: checks, arguments, checkpoints, resuming, saving; the same for every baseline.

`torchrun` and `accelerate launch` decide the number of machines, and the use of FSDP or DeepSpeed.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from zipfile import is_zipfile

import numpy as np
from filelock import FileLock
from safetensors import SafetensorError, safe_open

from seeact_offline.files.whole import replace_text
from seeact_offline.models.hf_folder import PICTURES, PROCESSOR, has_safetensors, holds_weights, settings_files
from seeact_offline.models.hf_loading import quiet
from seeact_offline.ranking.pair_groups import mark_best, stop_without_loss
from seeact_offline.ranking.stage import JOURNAL
from seeact_offline.records import Diverged, InputError
from seeact_offline.replies.elimination_answer import read_answer
from seeact_offline.runs.folder import check_no_run
from seeact_offline.training.baseline import FineTuning, TrainedSettings
from seeact_offline.training.checks import n_processes
from seeact_offline.training.draws import HELD_OUT
from seeact_offline.training.progress import TrainingProgress
from seeact_offline.training.recipe import NEW_TOKENS, Recipe, Running
from seeact_offline.training.training_rows import EpochRows, LengthGroupedOrder

T = TypeVar("T")
CHECKPOINTS = "checkpoints"
DATA = "data"
IGNORED = -100
"""The label of tokens outside an answer."""
ON_CPU = 4
"""Questions at once on a CPU. With more, each takes longer: their attention no longer fits into caches."""
IDENTITY = "training/recipe.json"
"""All that the weights depend on: a training is resumed only with the same. Not beside the weights, whose settings identify the model."""
LOCK = f"{DATA}/.lock"
"""Held by the process that prepares a training in the folder."""
STATE = "trainer_state.json"
"""The last file of a checkpoint that the Trainer writes."""
RANKS = "ranks.parquet"
"""The file in the folder with the scores of the train split, if no score file is given."""
OF_CLAIM = (RANKS, f"{RANKS}{JOURNAL}")
"""Files that are reused without asking what made them."""
UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of a disk that is full, or of a limit to its use."""
NO_ROOM = 2**20
"""Bytes; a disk with fewer is full."""
LORA_DROPOUT = 0.05
CONFIG, GENERATION, TEMPLATE = "config.json", "generation_config.json", "chat_template.jinja"
KEPT_CHECKPOINTS = 2


# --- before ---


def check_out(out: Path, identity: Mapping[str, Any], resume: bool, is_whole: bool = True) -> None:
    """Checks that the folder is free for this training, or claimed by the same one. Without a checkpoint it may begin anew, with
    any configuration. `is_whole`: False for the part of the identity that is known before the base is opened. Raises InputError.
    """
    file = out / IDENTITY
    if not file.exists():
        check_no_run(out)
        if holds_weights(out):
            raise InputError("out", sentence=f"{out} holds a model; name another folder for `out`")
        if resume:
            raise InputError(
                "resume", sentence=f"{out} holds no training to `resume`; the same command without it begins one"
            )
        return
    checkpoint = last_checkpoint(out)
    if checkpoint is None and not is_trained(out):
        if resume:
            sentence = f"{out / CHECKPOINTS} holds no checkpoint to `resume`; the same command without it begins anew"
            raise InputError("resume", sentence=sentence)
        return
    ours, theirs = json.loads(json.dumps(identity)), _claimed(out)
    differing = sorted(name for name in ({*ours, *theirs} if is_whole else ours) if ours.get(name) != theirs.get(name))
    if differing:
        name = differing[0]
        got = f"{name} {ours.get(name)!r:.80} where it was {theirs.get(name)!r:.80}"
        raise InputError(
            "resume" if resume else "out",
            sentence=f"{out} was begun with another configuration: {got}; name another folder, or delete {out} to begin anew",
        )
    if checkpoint is None:
        sentence = f"{out} holds a trained model and no checkpoint to `resume`; name another folder"
        raise InputError("resume" if resume else "out", sentence=sentence)
    if not resume:
        raise InputError(
            "out",
            sentence=f"{out} holds a training; name another folder, or use `resume`, or delete {out} to begin anew",
        )


def is_trained(out: Path) -> bool:
    """Tells whether the folder holds a model that was trained to its end, of one file or several."""
    return has_safetensors(out)


def claim_out(out: Path, identity: Mapping[str, Any]) -> None:
    """Marks the folder as that of this training; what another one without a checkpoint had ranked for itself goes."""
    file = out / IDENTITY
    if file.exists() and _claimed(out) != json.loads(json.dumps(identity)):
        for name in OF_CLAIM:
            (out / name).unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps(identity, indent=2) + "\n")


def _claimed(out: Path) -> dict[str, Any]:
    """The identity of the training whose folder it is; empty where the file was cut short."""
    try:
        found = json.loads((out / IDENTITY).read_text("utf-8"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def last_checkpoint(out: Path) -> Path | None:
    """The last checkpoint that is complete."""
    found = [path for path in (out / CHECKPOINTS).glob("checkpoint-*") if _is_whole(path)]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


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
    """Lets one process of each machine prepare a training, one machine after another, while the others wait for `is_done`.

    They meet at files and not at a process group, whose processes may wait no longer than some minutes for each other.
    """
    if os.environ.get("LOCAL_RANK", "0") != "0":
        # where preparing fails, the launcher ends those that wait
        while not is_done():
            time.sleep(0.2)
    lock = out / LOCK
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        yield


def save_once(folder: Path, out: Path, seed: int, make: Callable[[], Iterable[Any]]) -> None:
    """Lets one process save the parts of a base with random weights, which depend on the seed alone. `folder`: in `out`, named by all that
    the parts are made of."""
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
    """Turns a full disk, as each library puts it, into one sentence with the path; that of this part of the folder where the library
    names none. Raises InputError."""
    try:
        yield
    # safetensors, torch and pyarrow each have errors of their own
    except Exception as error:
        reason = _unwritten(error, out)
        if not reason:
            raise
        place = getattr(error, "filename", None) or out / part
        checkpoint = last_checkpoint(out)
        again = (
            "without `resume` begins anew" if checkpoint is None else f"with `resume` continues from {checkpoint.name}"
        )
        sentence = f"{place} cannot be written: {reason}; with room there, the same command {again}"
        raise InputError("out", sentence=sentence) from error


def _unwritten(error: BaseException | None, out: Path) -> str:
    """The reason that kept a file in the folder from being written to its end; empty for any other error."""
    while error is not None:
        code = error.errno if isinstance(error, OSError) else None
        named = re.search(r"(?i)\b(?:os error|errno) (\d+)", str(error))
        for number in (code, int(named[1]) if named else None):
            if number in UNWRITTEN:
                return os.strerror(number)
        # torch does not say why
        if "inline_container.cc" in str(error):
            is_full = shutil.disk_usage(next(path for path in (out, *out.parents) if path.exists())).free < NO_ROOM
            return os.strerror(errno.ENOSPC) if is_full else "a file was cut short"
        error = error.__cause__ or error.__context__
    return ""


def prepare_torch(recipe: Recipe, running: Running) -> None:
    """Seeds all generators, and silences transformers' progress bars and remarks."""
    import torch
    from transformers import set_seed
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    if running.threads is not None:
        torch.set_num_threads(running.threads)
    set_seed(recipe.seed)


def free_memory() -> None:
    """Gives back what no longer has a name: a Trainer and its model hold each other."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# --- training ---


def train(
    trainer: Any, settings: TrainedSettings, out: Path, resume: bool = False, reload: Callable[[], Any] | None = None
) -> tuple[Mapping[str, float], ...]:
    """Trains the trainer's model, saves it with these settings into `out`, and returns the Trainer's log.

    `resume`: from the last checkpoint in `out`. `reload`: as in `save_model`. Raises Diverged.
    """
    checkpoint = last_checkpoint(out) if resume else None
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    history = tuple(dict(entry) for entry in trainer.state.log_history)
    check_loss(history, trainer.state.best_model_checkpoint)
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


def check_loss(history: Sequence[Mapping[str, float]], best: str | None) -> None:
    """Raises Diverged by the Trainer's log. `best`: the checkpoint with the lowest loss, if there is one."""
    losses = [entry["loss"] for entry in history if "loss" in entry]
    end = float(np.mean(losses[-max(1, len(losses) // 10) :])) if losses else 0.0
    # single batches vary
    if np.isfinite(end) and (len(losses) < 2 or end <= 1.25 * losses[0] + 0.1):
        return
    what = (
        f"ended at {end:.3g}, far above the {losses[0]:.3g} of its first step" if np.isfinite(end) else "is no number"
    )
    kept = f"; {best} had the lowest" if best else ""
    raise Diverged(
        "learning_rate",
        sentence=f"the training diverged, and no model is saved: its loss {what}{kept}; lower `learning_rate`, and name another `out`",
    )


def save_model(
    model: Any,
    out: Path,
    weights: Mapping[str, Any] | None = None,
    reload: Callable[[], Any] | None = None,
    base_name: str = "",
) -> None:
    """Saves a model in the hub's format. With LoRA: the matrices in `adapter`, and the weights with them added.

    `weights`: all of the model's, where it holds only this process's share of them. `reload`: loads the base as it was before it
    was quantised, for the matrices to be added to. `base_name`: as in `TrainedSettings`.
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
    """Puts the settings, and the base's tokenizer and processor, in the place of those that transformers saved with the weights.

    transformers 5 saves other fields than it read, of which transformers 4 makes another model or none: a T5's embeddings are always
    tied, `rope_theta` has another name, and so has the tokenizer's class.
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
    """Calls `attempt` with as many questions at once on a device as fit in its memory: with the next smaller number after each lack of it.

    With several processes, or a number that was given, it is called once. Raises InputError if one question does not fit.
    """
    import torch
    from accelerate.utils.memory import find_executable_batch_size

    recipe, running = asked.resolved_recipe, asked.running
    if running.per_device is not None or n_processes() > 1:
        return attempt(running.per_device)
    most = running.each(recipe.batch, 1, None if torch.cuda.is_available() else ON_CPU)
    fitting = iter([size for size in range(most - 1, 0, -1) if recipe.batch % size == 0])

    def tried(per_device: int) -> T:
        return attempt(per_device)

    def smaller() -> int:
        found = next(fitting, None)
        if found is None:
            wanted = "a device with memory for one question; gradient_checkpointing or lora need less"
            raise InputError("per_device", wanted, "too little memory")
        return found

    found: T = find_executable_batch_size(tried, starting_batch_size=most, reduce_batch_size_fn=smaller)()
    return found


def lora_config(rank: int, task: str, **more: Any) -> Any:
    """peft's configuration for a task by its name there. Alpha is twice the rank."""
    from peft import LoraConfig

    return LoraConfig(task_type=task, r=rank, lora_alpha=2 * rank, lora_dropout=LORA_DROPOUT, **more)


def seq2seq_trainer(
    model: Any, processor: Any, collator: Any, table: Any, asked: FineTuning, progress: TrainingProgress
) -> Any:
    """A Trainer for text-to-text models: each epoch has its own rows of the table, and those held out are answered meanwhile.

    `processor`: a tokenizer, or a processor of pictures that has one. `collator`: rows of the table -> the model's inputs.
    """
    import transformers

    recipe = asked.resolved_recipe
    train, held_out = EpochRows(table, batch=recipe.batch), EpochRows(table, HELD_OUT)
    tokenizer = getattr(processor, "tokenizer", processor)

    class TokenMeans(transformers.Seq2SeqTrainer):  # type: ignore[misc]
        def compute_loss(
            self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
        ) -> Any:
            outputs = model(**inputs)
            loss = outputs["loss"]
            if num_items_in_batch is not None:
                # T5 gives the mean over a batch's tokens, and ignores how many all batches of a step have: the Trainer would
                # add up such means, on several devices too, whose gradients it averages
                share = (inputs["labels"] != IGNORED).sum() / num_items_in_batch
                loss = loss * share * self.accelerator.num_processes
            return (loss, outputs) if return_outputs else loss

        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            # the Trainer's own order by length reads the lengths of the first epoch's questions for all epochs
            if recipe.group_by_length:
                return LengthGroupedOrder(train, recipe.batch, recipe.seed)
            return super()._get_train_sampler(train_dataset)

    class NewDraws(transformers.TrainerCallback):  # type: ignore[misc]
        def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            # a resumed training may begin in the middle of an epoch
            train.begin_epoch(int((state.epoch or 0) + 1e-6))

    if recipe.lora is not None:
        from peft import get_peft_model

        model = get_peft_model(model, lora_config(recipe.lora, "SEQ_2_SEQ_LM"))
    # of a generated answer, the token that a decoder starts with counts too
    generating = {"predict_with_generate": True, "generation_max_length": NEW_TOKENS + 1, "label_names": ["labels"]}
    trainer = TokenMeans(
        model=model,
        args=arguments(transformers.Seq2SeqTrainingArguments, asked, len(held_out) > 0, **generating),
        train_dataset=train,
        eval_dataset=held_out if len(held_out) else None,
        data_collator=collator,
        processing_class=processor,
        compute_metrics=answer_metrics(tokenizer),
        callbacks=[NewDraws()],
    )
    # so that it counts a step's tokens for `compute_loss`
    trainer.model_accepts_loss_kwargs = True
    return report_progress(trainer, progress)


def answer_metrics(tokenizer: Any) -> Callable[[Any], dict[str, float]]:
    """Measures the Trainer's generated answers by `multichoice_accuracy`."""

    def texts(ids: Any) -> list[str]:
        # -100 fills the room after an answer's end
        filled = np.where(ids < 0, tokenizer.pad_token_id, ids)
        return list(tokenizer.batch_decode(filled, skip_special_tokens=True))

    return lambda found: multichoice_accuracy(texts(found.predictions), texts(found.label_ids))


def multichoice_accuracy(said: Sequence[str], right: Sequence[str]) -> dict[str, float]:
    """`letter_accuracy`: the right option. `answer_accuracy`: the right operation and value too. Texts as T5 writes them."""
    pairs = [
        (read_answer(one, "seq2seq"), read_answer(other, "seq2seq")) for one, other in zip(said, right, strict=True)
    ]
    letters = sum(one.letter == other.letter for one, other in pairs)
    return {
        "letter_accuracy": letters / len(pairs),
        "answer_accuracy": sum(one == other for one, other in pairs) / len(pairs),
    }


def report_progress(trainer: Any, progress: TrainingProgress) -> Any:
    """Makes the trainer report its steps and logs to `progress` instead of printing them."""
    import transformers

    class Tells(transformers.TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            progress.begin(state.max_steps, state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            progress.advance()
            # short trainings, too, log a loss, and all log their last
            control.should_log |= state.global_step >= state.max_steps

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            progress.log(logs)
            stop_without_loss(control, logs)

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            mark_best(args, state)

    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(Tells())
    return trainer


def arguments(kind: Any, asked: FineTuning, evaluates: bool, **more: Any) -> Any:
    """Training arguments of this class. `more`: arguments that only it has."""
    import torch

    recipe, running = asked.resolved_recipe, asked.running
    cuda = torch.cuda.is_available()
    share = recipe.batch, n_processes(), None if cuda else ON_CPU
    # newer versions of transformers have another name for it
    names = {field.name for field in fields(kind)}
    recompute = "activation_checkpointing" if "activation_checkpointing" in names else "gradient_checkpointing"
    when: dict[str, Any] = {"save_strategy": "epoch", recompute: running.gradient_checkpointing}
    if running.save_every is not None:
        when |= {"save_strategy": "steps", "save_steps": running.save_every, "eval_steps": running.save_every}
    made = kind(
        output_dir=str(asked.out / CHECKPOINTS),
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=running.each(*share),
        per_device_eval_batch_size=running.each(*share),
        gradient_accumulation_steps=running.accumulate(*share),
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        **({} if recipe.optimizer is None else {"optim": recipe.optimizer}),
        max_grad_norm=recipe.clip,
        lr_scheduler_type="linear",
        # a number below 1 is a share of all steps
        warmup_steps=recipe.warmup,
        bf16=running.bf16 if running.bf16 is not None else cuda and torch.cuda.is_bf16_supported(),
        seed=recipe.seed,
        data_seed=recipe.seed,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        tf32=(cuda and torch.cuda.get_device_capability() >= (8, 0)) or None,
        dataloader_num_workers=running.workers_of(cuda),
        save_total_limit=KEPT_CHECKPOINTS,
        eval_strategy=when["save_strategy"] if evaluates else "no",
        logging_strategy="steps",
        logging_steps=running.log_every,
        logging_first_step=True,
        logging_nan_inf_filter=False,
        report_to=list(running.report_to),
        disable_tqdm=True,
        remove_unused_columns=False,
        ddp_find_unused_parameters=False,
        **when,
        **more,
    )
    # one process, one device: the Trainer would spread a batch over all it sees, and split means with it
    made._n_gpu = min(1, made.n_gpu)
    return made
