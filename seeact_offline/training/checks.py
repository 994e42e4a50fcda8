"""Settings of a training, tried before anything is prepared: packages, a GPU, the optimizer, the attention, the shares of a batch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from importlib.util import find_spec
from types import MappingProxyType, SimpleNamespace

from seeact_offline.files.extras import hide_broken_torchvision, install_command
from seeact_offline.models.hf_folder import first_line
from seeact_offline.records import InputError
from seeact_offline.training.recipe import Recipe, Running

REPORTERS = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow", "trackio": "trackio"}
"""Services by transformers' names, and the package that each needs."""
PACKAGES = {"torch": "train", "transformers": "train", "accelerate": "train", "datasets": "train"}
"""Packages that every training needs, each with the extra that installs it."""
FLASH = {"flash_attention_2": "flash_attn", "flash_attention_3": "flash_attn_interface"}
"""Implementations of attention that need a GPU, and the package of each."""


def check_settings(recipe: Recipe, running: Running, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises InputError for a setting that this machine cannot train with. `more`: packages of the baseline, each with its extra."""
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
        _check_quantised()
    if running.bf16:
        check_bf16()
    for name in running.report_to:
        if name not in REPORTERS:
            raise InputError("report_to", f"one of {', '.join(REPORTERS)}", name)
        if find_spec(REPORTERS[name]) is None:
            needed = f"the package {REPORTERS[name]}; install it"
            raise InputError("report_to", sentence=f"`report_to` {name} needs {needed}")


def check_installed(argument: str, more: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises InputError about `argument` for a package that every training needs. `more`: further ones, each with its extra."""
    for package, extra in {**PACKAGES, **more}.items():
        if find_spec(package) is None:
            raise _missing(argument, "training", package, extra)
    hide_broken_torchvision()


def _missing(argument: str, user: str, package: str, extra: str) -> InputError:
    return InputError(argument, sentence=f"{user} needs the package {package}: run {install_command(extra)}")


def _check_quantised() -> None:
    import torch

    if find_spec("bitsandbytes") is None:
        raise _missing("quantised", "`quantised`", "bitsandbytes", "quantised")
    if not torch.cuda.is_available():
        raise InputError("quantised", sentence="`quantised` needs a GPU of CUDA, and torch sees none")
    for name in ("FSDP", "DEEPSPEED"):
        if os.environ.get(f"ACCELERATE_USE_{name}", "false") == "true":
            raise InputError(
                "quantised", sentence=f"`quantised` needs a model that each GPU holds whole; launch without {name}"
            )


def check_bf16() -> None:
    """Raises InputError without a GPU: a processor computes slower in bfloat16, and worse."""
    import torch

    if not torch.cuda.is_available():
        raise InputError("bf16", sentence="`bf16` needs a GPU of CUDA, and torch sees none")


def _check_attention(name: str) -> None:
    import torch
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    # `paged|...` are for servers; a name of the hub's, OWNER/NAME, would be code
    known = ["eager", *sorted(one for one in ALL_ATTENTION_FUNCTIONS if "|" not in one and one != "eager")]
    if name not in known:
        raise InputError("attention", f"one of {', '.join(known)}", name)
    if name in FLASH and find_spec(FLASH[name]) is None:
        raise InputError(
            "attention", sentence=f"`attention` {name} needs the package {FLASH[name]}, and a GPU; install it"
        )
    if name in FLASH and not torch.cuda.is_available():
        raise InputError("attention", sentence=f"`attention` {name} needs a GPU of CUDA, and torch sees none")


def _check_optimizer(name: str) -> None:
    """Lets it take one step: only then do some say what they lack."""
    import torch
    from transformers import Trainer, TrainingArguments
    from transformers.training_args import OptimizerNames

    known = [one.value for one in OptimizerNames]
    if name not in known:
        raise InputError("optimizer", f"one of {', '.join(known)}", name)
    # no TrainingArguments, which would open the process group before the data are prepared
    usual = SimpleNamespace(
        **{one.name: None if one.default is MISSING else one.default for one in fields(TrainingArguments)}
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
