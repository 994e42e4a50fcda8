"""`finetune --baseline flan-t5` from data to card, with a T5 so small that it takes a moment."""

from __future__ import annotations

import dataclasses
import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors.numpy import save_file

from seeact_offline.cli.finetune import _stopped
from seeact_offline.dataset import TEST_SPLITS, open_split
from seeact_offline.records import InputError
from seeact_offline.runs.watch import Watch
from seeact_offline.training import checks, trainer, tuning, vlm
from seeact_offline.training.baseline import FineTuning
from seeact_offline.training.card import SAMPLE
from seeact_offline.training.flan_t5 import multichoice_accuracy
from seeact_offline.training.recipe import Recipe, Running
from seeact_offline.training.training_rows import HELD_OUT, EpochRows
from seeact_offline.training.tuning import FineTuningResult, fine_tune
from tests import tiny_models
from tests.conftest import REPO
from tests.seeact_offline.training.conftest import SHAPE, of_card
from tests.seeact_offline.training.test_training_rows import write_ranks

# 8 steps, 2 of them held out: 10 optimizer steps an epoch
pytestmark = pytest.mark.slow

RECIPE = Recipe(epochs=2, draws=5, batch=3, learning_rate=1e-2, held_out=0.1)
SHORT = dataclasses.replace(RECIPE, epochs=1, draws=1, held_out=0)
RUNNING = Running(save_every=5, log_every=1, threads=1)


class Killed(Exception):
    """The training was ended from outside."""


class KilledAt(Watch):
    """Ends a training when it has done so many steps."""

    def __init__(self, n: int, end: Callable[[], None] | None = None) -> None:
        self.left, self._end = n, end
        self.figures: list[str] = []

    def counting(self, total: int, label: str, unit: str) -> Any:
        return nullcontext(self if label == "training" else None)

    def advance(self, figures: str, resumed: bool = False) -> None:
        self.figures.append(figures)
        self.left -= not resumed
        if self.left <= 0:
            if self._end is not None:
                self._end()
            raise Killed


def asked(dataset: Path, out: Path, **options: Any) -> FineTuning:
    usual = {"base": SHAPE, "recipe": RECIPE, "running": RUNNING, "evaluate": ()}
    return FineTuning(out, dataset=dataset, **{**usual, **options})


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def tuned(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> FineTuningResult:
    out = tmp_path_factory.mktemp("tuned") / "model"
    return fine_tune(
        asked(dataset, out, evaluate=("cross_task",), eval_ranker="bm25", eval_limit=1, command="finetune --small")
    )


def losses(history: tuple[Mapping[str, float], ...]) -> list[float]:
    return [entry["loss"] for entry in history if "loss" in entry]


def test_loss_falls(tuned: FineTuningResult) -> None:
    found = losses(tuned.history)
    assert len(found) == 20
    assert sum(found[-3:]) < 0.9 * sum(found[:3])


@pytest.fixture(scope="module")
def short(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> FineTuningResult:
    """Three steps of the optimizer."""
    return fine_tune(short_asked(dataset, tmp_path_factory.mktemp("short") / "model"))


def short_asked(dataset: Path, out: Path, **changes: Any) -> FineTuning:
    """`changes`: of the recipe."""
    running = dataclasses.replace(RUNNING, log_every=1000, save_every=None)
    return asked(dataset, out, recipe=dataclasses.replace(SHORT, **changes), running=running)


def test_a_short_training_logs_the_loss_of_its_first_and_last_step(short: FineTuningResult) -> None:
    assert [entry["step"] for entry in short.history if "loss" in entry] == [1, 3]


def test_held_out_tasks_are_asked_about_while_it_goes_on(tuned: FineTuningResult) -> None:
    found = [entry for entry in tuned.history if "eval_letter_accuracy" in entry]
    assert [entry["step"] for entry in found] == [5, 10, 15, 20]
    assert all(0 <= entry["eval_answer_accuracy"] <= entry["eval_letter_accuracy"] <= 1 for entry in found)


def test_as_many_questions_at_once_as_fit_in_memory_leave_the_same_weights(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, tried = trainer.train, []

    def short_of_memory(made: Any, *given: Any) -> Any:
        tried.append((made.args.per_device_train_batch_size, made.args.gradient_accumulation_steps))
        if made.args.per_device_train_batch_size > 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return whole(made, *given)

    usual = short_asked(dataset, tmp_path / "found", batch=4)
    single = dataclasses.replace(usual.running, per_device=1)
    fine_tune(dataclasses.replace(usual, out=tmp_path / "single", running=single))
    monkeypatch.setattr(tuning, "train", short_of_memory)
    fine_tune(usual)
    assert tried == [(4, 1), (2, 2), (1, 4)]
    assert weights(tmp_path / "found") == weights(tmp_path / "single")


def test_a_training_that_is_stopped_says_what_is_saved_to_its_end(tmp_path: Path) -> None:
    assert "nothing of the training is saved" in _stopped(tmp_path)
    checkpoints = tmp_path / trainer.CHECKPOINTS
    for number, state in ((4, "{}"), (5, "{}"), (10, '{"epoch": 1.')):
        (checkpoints / f"checkpoint-{number}").mkdir(parents=True)
        (checkpoints / f"checkpoint-{number}" / trainer.STATE).write_text(state)
        # a state alone is no checkpoint
        assert f"checkpoint-{number}" not in _stopped(tmp_path)
        save_file({"weight": np.zeros(1)}, checkpoints / f"checkpoint-{number}" / "model.safetensors")
    assert f"{checkpoints / 'checkpoint-5'} is saved" in _stopped(tmp_path)


def test_the_full_elimination_ends_it_and_is_a_run_like_any_other(tuned: FineTuningResult) -> None:
    (results,) = tuned.results
    manifest = json.loads((tuned.folder / "evaluation" / "cross_task" / "manifest.json").read_text())
    assert (results["split"], results["grounding"], results["layout"]) == ("cross_task", "mindact", "seq2seq")
    assert (results["n_steps"], results["n_not_run"]) == (2, 0)
    assert "hf/" in json.dumps(manifest)


def test_card_states_the_recipe_the_data_and_what_was_reached(tuned: FineTuningResult) -> None:
    card, values = (tuned.folder / "README.md").read_text(), of_card(tuned.folder)
    for name, value in dataclasses.asdict(RECIPE).items():
        assert values[name] == json.dumps(value)
    assert open_split(tuned_dataset(tuned), "train").fingerprint in card
    assert "finetune --small" in card
    assert "The averages that the protocol quotes" in card
    assert "| cross_task | mindact | bm25 | first task only | 2 |" in " ".join(card.split())
    assert SAMPLE not in card
    assert (tuned.folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def tuned_dataset(tuned: FineTuningResult) -> str:
    return str(json.loads((tuned.folder / "training" / "record.json").read_text())["data"]["dataset"])


def test_nothing_pickled_lies_in_the_folder_that_is_published(tuned: FineTuningResult) -> None:
    assert not [path.name for path in tuned.folder.iterdir() if path.suffix in (".bin", ".pt", ".pth")]


@pytest.mark.parametrize(
    "changes", [pytest.param({"seed": 1}, marks=pytest.mark.nightly), {"group_by_length": True}], ids=str
)
def test_another_seed_and_other_batches_give_other_weights(
    short: FineTuningResult, dataset: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    fine_tune(short_asked(dataset, tmp_path / "other", **changes))
    assert weights(tmp_path / "other") != weights(short.folder)


class Resumed(NamedTuple):
    """A training that was ended at a step, and resumed."""

    step: int
    checkpoint: Path | None
    epochs: list[int]
    """Each epoch that was begun, until it was ended."""
    epochs_after: list[int]
    result: FineTuningResult
    figures: list[str]
    """What was told of it, until it was ended."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(7, id="in the first epoch", marks=pytest.mark.nightly),
        pytest.param(17, id="in the second epoch"),
    ],
)
def resumed(request: pytest.FixtureRequest, dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Resumed:
    out, begun, really = tmp_path_factory.mktemp("resumed") / "out", list[int](), EpochRows.begin_epoch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochRows, "begin_epoch", lambda rows, epoch: (begun.append(epoch), really(rows, epoch))[1])
        with pytest.raises(Killed):
            fine_tune(asked(dataset, out), watch := KilledAt(request.param))
        checkpoint, epochs = trainer.last_checkpoint(out), list(begun)
        result = fine_tune(asked(dataset, out, resume=True))
    return Resumed(request.param, checkpoint, epochs, begun[len(epochs) :], result, watch.figures)


def test_a_training_that_was_ended_goes_on_to_the_same_weights(tuned: FineTuningResult, resumed: Resumed) -> None:
    assert resumed.checkpoint is not None
    assert resumed.checkpoint.name == f"checkpoint-{resumed.step // 5 * 5}"
    assert weights(resumed.result.folder) == weights(tuned.folder)
    assert losses(resumed.result.history) == losses(tuned.history)


def test_progress_tells_the_loss_and_the_answers_to_questions_held_out(resumed: Resumed) -> None:
    assert resumed.figures[1].startswith("loss ")
    # asked about at the fifth step
    assert "held out: right option " in resumed.figures[6]


def test_each_epoch_has_its_own_questions_also_where_a_training_goes_on(resumed: Resumed) -> None:
    epochs = [0] if resumed.step < 10 else [0, 1]
    # the first two: the rows are opened
    assert resumed.epochs == [0, HELD_OUT, *epochs]
    assert resumed.epochs_after == [0, HELD_OUT, *([0, 1] if resumed.step < 10 else [1])]


@pytest.mark.nightly
def test_batches_by_length_are_the_same_where_a_training_goes_on(dataset: Path, tmp_path: Path) -> None:
    recipe = dataclasses.replace(RECIPE, group_by_length=True)
    fine_tune(asked(dataset, tmp_path / "whole", recipe=recipe))
    with pytest.raises(Killed):
        fine_tune(asked(dataset, tmp_path / "out", recipe=recipe), KilledAt(17))
    fine_tune(asked(dataset, tmp_path / "out", recipe=recipe, resume=True))
    assert weights(tmp_path / "out") == weights(tmp_path / "whole")


@pytest.mark.nightly
# a busy machine may take long to start another Python
@pytest.mark.timeout(600)
def test_a_process_that_was_killed_goes_on_to_the_same_weights(
    tuned: FineTuningResult, dataset: Path, tmp_path: Path
) -> None:
    """By SIGKILL, in the middle of an epoch, as the machine might end it."""
    from tests.seeact_offline.training import killed

    command = [sys.executable, killed.__file__, str(dataset), str(tmp_path / "out")]
    ended = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    begun = trainer.last_checkpoint(tmp_path / "out")
    assert begun is not None
    assert begun.name == "checkpoint-10"
    fine_tune(asked(dataset, tmp_path / "out", resume=True))
    assert weights(tmp_path / "out") == weights(tuned.folder)


@pytest.mark.nightly
def test_a_step_is_the_same_however_few_questions_fit_at_once(dataset: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    shape = dataclasses.replace(SHAPE, dropout=0.0)
    recipe = dataclasses.replace(RECIPE, epochs=1, batch=6, held_out=0, learning_rate=1e-3)
    for each in (6, 1):
        running = dataclasses.replace(RUNNING, per_device=each, save_every=None)
        fine_tune(asked(dataset, tmp_path / str(each), base=shape, recipe=recipe, running=running))
    at_once, one_by_one = (load_file(tmp_path / name / "model.safetensors") for name in ("6", "1"))
    assert max(abs(at_once[name] - one_by_one[name]).max() for name in at_once) < 1e-4


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"recipe": dataclasses.replace(RECIPE, epochs=3)}, "epochs 3 where it was 2"),
        ({"recipe": dataclasses.replace(RECIPE, learning_rate=1e-3)}, "learning_rate 0.001 where it was 0.01"),
        ({"base": dataclasses.replace(SHAPE, d_ff=48)}, "base "),
        ({"limit": 3}, "limit 3 where it was None"),
    ],
)
def test_going_on_with_another_configuration_is_refused(
    tuned: FineTuningResult, dataset: Path, changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=r"was begun with another configuration") as caught:
        fine_tune(asked(dataset, tuned.folder, resume=True, **changed))
    assert named in str(caught.value)


def test_a_folder_with_a_training_is_not_begun_anew(tuned: FineTuningResult, dataset: Path) -> None:
    with pytest.raises(InputError, match="holds a training; name another folder, or use `resume`, or delete"):
        fine_tune(asked(dataset, tuned.folder))


@pytest.mark.nightly
def test_a_training_that_was_killed_before_its_first_checkpoint_begins_again(
    tuned: FineTuningResult, dataset: Path, tmp_path: Path
) -> None:
    """As one that begins in an empty folder: the same settings give the same weights."""
    with pytest.raises(Killed):
        fine_tune(asked(dataset, tmp_path / "out"), KilledAt(2))
    fine_tune(asked(dataset, tmp_path / "out"))
    assert weights(tmp_path / "out") == weights(tuned.folder)


@pytest.mark.parametrize(
    ("part", "done", "again"),
    [
        ("model.safetensors", 0, "without `resume` begins anew"),
        ("optimizer.pt", 2, "with `resume` continues from checkpoint-1"),
    ],
)
def test_a_disk_without_room_for_a_checkpoint_is_one_sentence(
    part: str, done: int, again: str, dataset: Path, tmp_path: Path
) -> None:
    """A limit on files fails as a full disk does. safetensors and torch tell of it in their own ways."""
    base, out = tiny_models.save_t5(tmp_path / "base"), tmp_path / "out"
    each_step = dataclasses.replace(RUNNING, save_every=1)
    options: dict[str, Any] = {"base": str(base), "recipe": SHORT, "running": each_step}
    if done:
        with pytest.raises(Killed):
            fine_tune(asked(dataset, out, **options), KilledAt(done))
    size = (base / "model.safetensors").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # the optimizer's state is twice the weights
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 100 if part == "model.safetensors" else size * 3 // 2, limits[1]))
    try:
        with pytest.raises(InputError) as caught:
            fine_tune(asked(dataset, out, **options, resume=bool(done)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    place, rest = str(caught.value).split(" cannot be written: ")
    assert place.startswith(str(out / "checkpoints"))
    assert rest.endswith(f"; with room there, the same command {again}")


def test_a_corrected_mistake_begins_anew_in_a_folder_without_a_checkpoint(
    short: FineTuningResult, dataset: Path, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        fine_tune(short_asked(dataset, tmp_path / "out", learning_rate=1.0, draws=2), KilledAt(2))
    fine_tune(short_asked(dataset, tmp_path / "out"))
    assert weights(tmp_path / "out") == weights(short.folder)


def test_nothing_to_go_on_from_is_refused(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no training to `resume`"):
        fine_tune(asked(dataset, tmp_path / "out", resume=True))


def test_a_published_t5_is_where_training_starts(dataset: Path, tmp_path: Path) -> None:
    base = tiny_models.save_t5(tmp_path / "base")
    recipe = dataclasses.replace(SHORT, learning_rate=1e-9)
    fine_tune(asked(dataset, tmp_path / "out", base=str(base), recipe=recipe))
    from safetensors.numpy import load_file

    before, after = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / "out"))
    assert before.keys() == after.keys()
    assert all(abs(before[name] - after[name]).max() < 1e-6 for name in before)


def test_a_checkpoint_of_another_architecture_is_refused(dataset: Path, tmp_path: Path) -> None:
    base = tiny_models.save_llama(tmp_path / "base")
    with pytest.raises(InputError, match=r"base: expected a T5 such as FLAN-T5, got .* of type llama"):
        fine_tune(asked(dataset, tmp_path / "out", base=str(base)))
    assert not (tmp_path / "out").exists()


def test_a_base_that_is_not_there_is_refused(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="base: expected"):
        fine_tune(asked(dataset, tmp_path / "out", base=str(tmp_path / "nothing")))


def test_test_tasks_are_refused_before_anything_is_written(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without test tasks"):
        fine_tune(asked(dataset / "test_task.parquet", tmp_path / "out", test_data=dataset))
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_trained_on_is_not_taken_for_a_test(dataset: Path, tmp_path: Path) -> None:
    heard: list[str] = []
    watch = Watch()
    watch.note = heard.append  # type: ignore[method-assign]
    tuned = fine_tune(asked(dataset / "train.parquet", tmp_path, recipe=SHORT, evaluate=TEST_SPLITS), watch)
    assert tuned.results == ()
    assert any(text.startswith("cross_task is not evaluated") for text in heard)


def test_hard_negatives_and_scores_belong_together(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`hard_negatives` needs `scores`"):
        fine_tune(asked(dataset, tmp_path, recipe=dataclasses.replace(RECIPE, hard_negatives=3)))
    scores = write_ranks(tmp_path / "s.parquet", open_split(dataset, "train"))
    with pytest.raises(InputError, match="`scores` needs `hard_negatives`"):
        fine_tune(asked(dataset, tmp_path, scores=scores))


def test_packages_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name in ("peft", "wandb") else name)
    with pytest.raises(InputError, match=r"`lora` needs the package peft: run .*\[lora\]"):
        checks.check_packages(Recipe(lora=8), Running())
    with pytest.raises(InputError, match="`report_to` wandb needs the package wandb"):
        checks.check_packages(Recipe(), Running(report_to=("wandb",)))
    with pytest.raises(InputError, match=r"report_to: expected one of tensorboard, .*got carrier-pigeon"):
        checks.check_packages(Recipe(), Running(report_to=("carrier-pigeon",)))
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == "trl" else name)
    with pytest.raises(InputError, match=r"training needs the package trl: run .*\[vlm\]"):
        checks.check_packages(Recipe(), Running(), vlm.BASELINE.packages)


def test_accuracy_counts_letters_and_whole_answers() -> None:
    right = ["B. Action: TYPE Value: a b", "C. Action: CLICK", "A.", "D. Action: CLICK"]
    said = ["B. Action: TYPE Value: a", "C. Action: CLICK", "A.", "nonsense"]
    assert multichoice_accuracy(said, right) == {"letter_accuracy": 0.75, "answer_accuracy": 0.5}
