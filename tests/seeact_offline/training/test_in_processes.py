"""Each baseline trained by two processes, as `torchrun` starts them, without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.seeact_offline.training.in_processes import RECIPES, save_bases, train_each
from tests.together import run_together

pytestmark = [
    pytest.mark.slow,
    # trl 1.16.0 asks by the old name
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning"),
    # a busy machine may take long to start three Pythons
    pytest.mark.timeout(600),
]


STAYS = "flan-t5"
"""What `make test` trains; all others go through the same trainer."""
each_name = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == STAYS else pytest.mark.nightly) for name in RECIPES]
)


class Trained(NamedTuple):
    """The folders of the trainings of RECIPES that are asked for."""

    bases: Path
    one: Path
    two: Path


@pytest.fixture(scope="module")
def trained(request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("processes")
    chosen = {item.callspec.params["name"] for item in request.session.items if item.path == request.path}
    names = [name for name in RECIPES if name in chosen]
    found = Trained(save_bases(folder / "bases"), folder / "one", folder / "two")
    train_each(dataset, found.bases, found.one, names)
    run_together(2, "-m", "tests.seeact_offline.training.in_processes", dataset, found.bases, found.two, *names)
    return found


@each_name
def test_two_processes_train_as_one_does(trained: Trained, name: str) -> None:
    """Up to rounding: gradients are added up in another order. The last batch of the epoch is not full."""
    one, two = (load_file(folder / name / "model.safetensors") for folder in (trained.one, trained.two))
    before = load_file(trained.bases / RECIPES[name][0] / "model.safetensors")
    assert one.keys() == two.keys()
    # the gradient of a key's bias is nothing but rounding
    compared = [key for key in one if not key.endswith("key.bias")]
    assert max(np.abs(one[key] - two[key]).max() for key in compared) < 2e-4
    assert max(np.abs(one[key] - before[key]).max() for key in compared) > 1e-3


@each_name
def test_two_processes_leave_the_files_of_one(trained: Trained, name: str) -> None:
    one, two = ({path.name for path in (folder / name).iterdir()} for folder in (trained.one, trained.two))
    assert one == two
    prepared = [sorted((folder / name / "data").glob("*.arrow")) for folder in (trained.one, trained.two)]
    assert [path.read_bytes() for path in prepared[0]] == [path.read_bytes() for path in prepared[1]]
