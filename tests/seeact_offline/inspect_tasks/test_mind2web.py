"""Inspect's task asks, reads and scores as `eval` does; Inspect itself runs, with its mock of a model."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.models.builtin import open_builtin
from seeact_offline.records import InputError, Message, Request, StepKey
from tests.lazily import Lazy

inspect_ai: Any = Lazy("inspect_ai")
models: Any = Lazy("inspect_ai.model")
# Inspect and its packages warn of their own code
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
FIGURES = ("element_accuracy", "operation_f1", "step_success_rate")
DATA = {"split": "cross_website", "limit": 4}
"""More than 20 steps of the sample."""


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Inspect leaves streams open, of which Python warns when it collects them: here, where that is ignored."""
    yield
    gc.collect()


def word_counting(messages: list[Any], *others: Any) -> Any:
    """The reply of `builtin/lexical` to a conversation of Inspect's, with its usage."""
    texts = tuple(Message(message.role, message.text) for message in messages)
    request = Request(texts, StepKey("task", "step"), 0, 1)
    text = asyncio.run(open_builtin("lexical").complete(request)).text
    output = models.ModelOutput.from_content("mock", text)
    output.usage = models.ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def evaluated(tmp_path: Path, reply: Callable[..., Any], **options: Any) -> Any:
    from seeact_offline.inspect_tasks.mind2web import mind2web

    async def answer(*words: Any) -> Any:
        return await asyncio.to_thread(reply, *words)

    model = models.get_model("mockllm/model", custom_outputs=answer, memoize=False)
    (log,) = inspect_ai.eval(
        mind2web(**DATA, **options), model=model, display="none", log_dir=str(tmp_path / "logs"), score_display=False
    )
    return log


@pytest.mark.parametrize("grounding", ["choice", "annotation", "attributes", "pixel", "mindact"])
def test_figures_equal_those_of_eval_on_the_same_replies(grounding: str, tmp_path: Path) -> None:
    log = evaluated(tmp_path, word_counting, grounding=grounding)
    run = so.evaluate(**DATA, grounding=grounding, model="builtin/lexical", out=tmp_path / "run")
    assert (log.status, len(log.samples), log.samples[0].error) == ("success", run.results["n_steps"], None)
    assert len(log.samples) >= 20
    (score,) = log.results.scores
    got = {name: metric.value for name, metric in score.metrics.items()}
    headlines = run.record.headlines
    assert {name: got[name] for name in FIGURES} == pytest.approx({name: headlines[name]["value"] for name in FIGURES})
    assert [got[f"{name}_low"] for name in FIGURES] == pytest.approx([headlines[name]["ci95"][0] for name in FIGURES])
    by_step = {
        str(step["annotation_id"]) + "_" + str(step["action_uid"]): step
        for step in run.to_pandas("steps").to_dict("records")
    }
    for sample in log.samples:
        assert {"website", "op"} <= sample.scores["step_success"].metadata.keys()
        assert sample.scores["step_success"].value == by_step[str(sample.id)]["success"]


def test_a_run_without_elements_has_the_figures_of_its_operations_alone(tmp_path: Path) -> None:
    log = evaluated(tmp_path, word_counting, ungrounded=True)
    run = so.evaluate(**DATA, ungrounded=True, model="builtin/lexical", out=tmp_path / "run")
    got = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
    quoted = run.record.headlines["operation_f1"]
    low, high = quoted["ci95"]
    expected = {"operation_f1": quoted["value"], "operation_f1_low": low, "operation_f1_high": high}
    assert got == pytest.approx(expected)


def test_a_model_that_declines_is_a_named_failure_of_its_step(tmp_path: Path) -> None:
    def refuse(*words: Any) -> Any:
        output = models.ModelOutput.from_content("mock", "", stop_reason="content_filter")
        output.usage = models.ModelUsage(input_tokens=1)
        return output

    log = evaluated(tmp_path, refuse)
    assert log.status == "success"
    assert {sample.scores["step_success"].metadata["failure"] for sample in log.samples} == {"refused"}


def test_an_error_of_the_provider_is_inspects_own(tmp_path: Path) -> None:
    def fail(*words: Any) -> Any:
        raise RuntimeError("the server is gone")

    log = evaluated(tmp_path, fail)
    assert (log.status, "the server is gone" in log.error.message) == ("error", True)


def test_the_right_answer_is_in_no_request(tmp_path: Path) -> None:
    seen: list[str] = []

    def note(messages: list[Any], *others: Any) -> Any:
        seen.append(str([message.model_dump() for message in messages]))
        return word_counting(messages)

    log = evaluated(tmp_path, note)
    assert seen
    assert not any(word in text for text in seen for word in ("positives", "action_uid"))
    assert {sample.target for sample in log.samples} == {""}


@pytest.mark.parametrize("name", ["temperature", "max_cost", "out", "model", "cache"])
def test_what_inspect_decides_is_no_option_of_the_task(name: str) -> None:
    from seeact_offline.inspect_tasks.mind2web import mind2web

    with pytest.raises(InputError, match=rf"`{name}` is not an option of the task"):
        mind2web(**{name: 1})
