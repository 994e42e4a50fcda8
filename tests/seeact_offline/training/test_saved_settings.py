"""A trained folder is the same model elsewhere: its settings are its base's, but for what training changed."""

from __future__ import annotations

import json
import subprocess
import venv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file

from seeact_offline.models.hf_folder import find_parts
from seeact_offline.models.hf_loading import LoadingOptions, load_model
from seeact_offline.records import ModelSpecError
from seeact_offline.training import tuning
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.recipe import Running
from seeact_offline.training.trainer import save_model
from seeact_offline.training.tuning import fine_tune
from tests.lazily import peft, torch, transformers
from tests.seeact_offline.training.in_processes import RECIPES
from tests.seeact_offline.training.logits import __file__ as SCRIPT
from tests.seeact_offline.training.logits import logits, logits_of
from tests.tiny_models import as_on_hub, save_blip2, save_llava, save_t5

pytestmark = pytest.mark.slow

SAVE = {"flan-t5": save_t5, "blip2": save_blip2, "vlm": save_llava}
SIDE = 48


class Trained(NamedTuple):
    base: Path
    folder: Path
    logits: Any
    """Of the model in memory, at the end of its training."""


@pytest.fixture(scope="module", params=["flan-t5", "flan-t5-lora", "blip2-lora", "blip2-language", "vlm"])
def trained(request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    name, folder, last = request.param, tmp_path_factory.mktemp("saved"), []
    baseline, recipe = RECIPES[name.removesuffix("-language")]
    base, really = as_on_hub(SAVE[baseline](folder / "base")), tuning.train

    def train(trainer: Any, *given: Any) -> Any:
        history = really(trainer, *given)
        last.append(logits(trainer.model))
        return history

    own: dict[str, Any] = {"side": SIDE} if baseline == "blip2" else {}
    if name == "blip2-language":
        own["language"] = str(as_on_hub(save_t5(folder / "t5", seed=1)))
    asked = FineTuning(
        folder / "out",
        baseline,
        str(base),
        dataset=dataset,
        recipe=recipe,
        running=Running(threads=1),
        own=own,
        evaluate=(),
        eval_ranker="bm25",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "train", train)
        fine_tune(asked)
    return Trained(base, folder / "out", last[0])


def test_a_trained_folder_opens_as_the_model_that_was_trained(trained: Trained) -> None:
    # LoRA's matrices are added to the weights: rounding
    assert np.abs(logits_of(str(trained.folder)) - trained.logits).max() < 1e-4


def test_settings_are_the_base_s_but_for_what_training_changed(trained: Trained) -> None:
    wanted = json.loads((trained.base / "config.json").read_text())
    if wanted["model_type"] == "blip-2":
        wanted["vision_config"]["image_size"] = SIDE
        pictures = json.loads((trained.folder / "processor_config.json").read_text())["image_processor"]
        assert pictures["size"] == {"height": SIDE, "width": SIDE}
    assert json.loads((trained.folder / "config.json").read_text()) == wanted
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (trained.folder / name).read_bytes() == (trained.base / name).read_bytes()


@pytest.mark.parametrize("trained", ["flan-t5-lora", "vlm"], indirect=True)
def test_the_adapter_makes_the_trained_model_of_its_base(trained: Trained) -> None:
    adapter = str(trained.folder / "adapter")
    _, model = load_model(adapter, find_parts(adapter), LoadingOptions())
    assert np.abs(logits(model) - trained.logits).max() < 1e-4


@pytest.mark.parametrize("trained", ["blip2-lora"], indirect=True)
def test_an_adapter_of_a_base_that_training_changed_besides_names_none(trained: Trained) -> None:
    with pytest.raises(ModelSpecError, match=r"the name of its base in the adapter_config\.json"):
        find_parts(str(trained.folder / "adapter"))


# peft asks by an old name
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_weights_that_several_processes_held_are_saved_under_the_base_s_names(tmp_path: Path) -> None:
    base = as_on_hub(save_llava(tmp_path / "base"))
    loaded = transformers.AutoModelForImageTextToText.from_pretrained(base)
    model = peft.get_peft_model(loaded, peft.LoraConfig(r=4, target_modules="all-linear"))
    save_model(model, tmp_path / "out", model.state_dict(), base_name=str(base))
    before, after = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / "out"))
    assert after.keys() == before.keys()
    adapter = json.loads((tmp_path / "out" / "adapter" / "adapter_config.json").read_text())
    assert adapter["base_model_name_or_path"] == str(base)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the last transformers 4, and the torch of this one."""
    folder = tmp_path_factory.mktemp("older")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    torch_here = torch.__version__.partition("+")[0]
    packages = ["transformers<5", f"torch=={torch_here}", "numpy", "pillow"]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


# installs another transformers
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_transformers_4_opens_a_trained_folder_as_the_same_model(trained: Trained, older: Path, tmp_path: Path) -> None:
    out = tmp_path / "logits.npy"
    subprocess.run([older, SCRIPT, trained.folder, out], check=True)
    difference = np.abs(np.load(out) - trained.logits).max()
    print(f"{trained.folder}: largest logit {np.abs(trained.logits).max():.3f}, largest difference {difference:.2e}")
    assert difference < 1e-3
    loads = "import sys, transformers; transformers.AutoTokenizer.from_pretrained(sys.argv[1])"
    subprocess.run([older, "-c", loads, trained.folder], check=True)
