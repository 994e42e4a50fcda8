"""Checks before anything is prepared: packages, a GPU, the optimizer, the attention,
and training data without a task of the tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

from seeact_offline.dataset import TEST_SPLITS, Split, open_split
from seeact_offline.dataset.split import SPLITS, split_of_file
from seeact_offline.files.extras import hide_broken_torchvision, install_command
from seeact_offline.models.hf_folder import first_line
from seeact_offline.records import DatasetError, InputError
from seeact_offline.training.recipe import Recipe, Running

REPORTERS = ("tensorboard", "wandb", "mlflow", "trackio")
"""Services by transformers' names, which are those of the packages that they need."""
PACKAGES = {"torch": "train", "transformers": "train", "accelerate": "train", "datasets": "train"}
"""Packages that every training needs, each with the extra that installs it."""
FLASH = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}
"""Implementations of attention that need a GPU, and the package of each."""

NEW_WEBSITES = ("cross_website", "cross_domain")
"""Splits whose websites no training page may come from."""


# --- settings ---


def check_settings(recipe: Recipe, running: Running, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises InputError for a setting that this machine cannot train with.
    `more`: packages of the baseline, each with its extra."""
    # the quickest first: the others load torch
    running.each(recipe.batch, n_processes())
    check_packages(recipe, running, more)
    if running.attention is not None:
        _check_attention(running.attention)
    if recipe.optimizer is not None:
        _check_optimizer(recipe.optimizer)


def n_processes() -> int:
    """Processes that train together, as the launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def check_packages(recipe: Recipe, running: Running, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises InputError for a package, or a GPU, that is needed and not there. `more`: as in `check_settings`."""
    check_installed("baseline", more)
    if recipe.lora is not None and find_spec("peft") is None:
        raise _missing("lora", "`lora`", "peft", "lora")
    if recipe.quantised:
        if find_spec("bitsandbytes") is None:
            raise _missing("quantised", "`quantised`", "bitsandbytes", "quantised")
        check_gpu("quantised")
        for name in ("FSDP", "DEEPSPEED"):
            if os.environ.get(f"ACCELERATE_USE_{name}", "false") == "true":
                sentence = f"`quantised` needs a model that each GPU holds whole; launch without {name}"
                raise InputError("quantised", sentence=sentence)
    if running.bf16:
        # a processor computes slower in bfloat16, and worse
        check_gpu("bf16")
    for name in running.report_to:
        if name not in REPORTERS:
            raise InputError("report_to", f"one of {', '.join(REPORTERS)}", name)
        if find_spec(name) is None:
            raise InputError("report_to", sentence=f"`report_to` {name} needs the package {name}; install it")


def check_installed(argument: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises InputError about `argument` for a package that every training needs.
    `more`: further ones, each with its extra."""
    for package, extra in {**PACKAGES, **more}.items():
        if find_spec(package) is None:
            raise _missing(argument, "training", package, extra)
    hide_broken_torchvision()


def _missing(argument: str, user: str, package: str, extra: str) -> InputError:
    return InputError(argument, sentence=f"{user} needs the package {package}: run {install_command(extra)}")


def check_gpu(argument: str) -> None:
    """Raises InputError about `argument` without a GPU."""
    import torch

    if not torch.cuda.is_available():
        raise InputError(argument, sentence=f"`{argument}` needs a GPU of CUDA, and torch sees none")


def _check_attention(name: str) -> None:
    import torch
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    # `paged|...` are for servers; a name of the hub's, OWNER/NAME, would be code
    others = {function for function in ALL_ATTENTION_FUNCTIONS if "|" not in function} - {"eager"}
    names = ["eager", *sorted(others)]
    if name not in names:
        raise InputError("attention", f"one of {', '.join(names)}", name)
    if name in FLASH and (find_spec(FLASH[name]) is None or not torch.cuda.is_available()):
        raise InputError("attention", sentence=f"`attention` {name} needs the package {FLASH[name]}, and a GPU of CUDA")


def _check_optimizer(name: str) -> None:
    """Raises InputError for an optimizer that cannot take one step here: only then do some say what they lack."""
    import torch
    from transformers import Trainer, TrainingArguments
    from transformers.training_args import OptimizerNames

    names = [optimizer.value for optimizer in OptimizerNames]
    if name not in names:
        raise InputError("optimizer", f"one of {', '.join(names)}", name)
    # no TrainingArguments, which would open the process group before the data are prepared
    usual = SimpleNamespace(
        **{field.name: None if field.default is MISSING else field.default for field in fields(TrainingArguments)}
    )
    usual.optim = OptimizerNames(name)
    device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if torch.cuda.is_available() else "cpu"
    try:
        kind, options = Trainer.get_optimizer_cls_and_kwargs(usual)
        weight = torch.nn.Parameter(torch.zeros(64, 64, device=device))
        weight.grad = torch.zeros_like(weight)
        kind([weight], **options).step()
    # other people's packages: nobody has listed how they fail, and the error is raised as our own
    except Exception as error:
        if "bitsandbytes" in str(error) and find_spec("bitsandbytes") is None:
            raise _missing("optimizer", f"`optimizer` {name}", "bitsandbytes", "quantised") from None
        raise InputError(
            "optimizer", sentence=f"`optimizer` {name} cannot be used here: {first_line(error)}"
        ) from error


# --- data ---


def check_separate(train: Split, tests: Any | None = None) -> tuple[str, ...]:
    """The names of the test splits that were compared.

    `tests`: the data set whose test splits count; None: the one that is trained on, if it has splits. Raises InputError
    for a split or a file that is itself a test, and where a task, or a website of NEW_WEBSITES, is trained on.
    """
    if train.name != "train":
        raise InputError("split", "train, as the others are for tests", train.name)
    (trained, trained_websites), compared = _tasks_and_websites(train), []
    # a file or a table, which is taken as the split asked for, has any split's name
    is_path = isinstance(train.dataset, (str, os.PathLike))
    is_single = Path(train.dataset).is_file() if is_path else not isinstance(train.dataset, Mapping)
    data = train.dataset if tests is None else tests
    for name in () if tests is None and is_single else TEST_SPLITS:
        try:
            test = open_split(data, name)
        except DatasetError as error:
            # of the hub a split may not have been downloaded
            if error.argument == "split" or not (isinstance(data, (str, os.PathLike)) and Path(data).exists()):
                continue
            raise (error if tests is None else error.renamed("test_data")) from None
        tasks, websites = _tasks_and_websites(test)
        if shared := sorted(trained & tasks):
            got = f"{len(shared)} tasks of {name}, {shared[0]} first"
            raise InputError("dataset", "training data without test tasks", got)
        if name in NEW_WEBSITES and (shared := sorted(trained_websites & websites)):
            got = f"{', '.join(shared[:3])}, which it shares with {name}"
            raise InputError("dataset", f"training data without the websites of {name}", got)
        compared.append(name)
    if is_single and (named := _named_test(train.dataset)) is not None:
        raise InputError("dataset", "training data without test tasks", named)
    if tests is not None and not compared:
        raise InputError("test_data", f"a data set with a split of {', '.join(TEST_SPLITS)}", str(tests))
    return tuple(compared)


def _named_test(dataset: Any) -> str | None:
    """Words for a file or a table that calls itself a test split; None for others."""
    if isinstance(dataset, (str, os.PathLike)):
        split = split_of_file(Path(dataset).name)
        return f"{dataset}, a file of {split}" if split in TEST_SPLITS else None
    split = {SPLITS[name]: name for name in TEST_SPLITS}.get(str(getattr(dataset, "split", None)))
    return None if split is None else f"a table of {split}"


def _tasks_and_websites(split: Split) -> tuple[frozenset[str], frozenset[str]]:
    """The tasks of a split and their websites. Reads no page and no picture."""
    tasks = frozenset(split.tasks)
    rows = (row for source in split.sources for row in source.light(("annotation_id", "website")))
    websites = (row.get("website") for row in rows if row.get("annotation_id") in tasks)
    return tasks, frozenset(str(website) for website in websites if website)
