"""The task `seeact_offline/mind2web`: one sample a step, asked as `eval` asks it and scored as `score` scores it.

Replies are kept in Inspect's log alone: there is no store of paid replies, no limit on cost and no resuming of ours.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from seeact_offline.dataset.split import with_earlier
from seeact_offline.files.options import words_of
from seeact_offline.grounding.conversation import in_thread
from seeact_offline.ranking import Scores
from seeact_offline.ranking.stage import DATA, RANKING
from seeact_offline.records import (
    CallError,
    Completion,
    ImageDetail,
    ImageFormat,
    InputError,
    Message,
    Model,
    Request,
    Step,
    Usage,
)
from seeact_offline.runs.ask import ask_step
from seeact_offline.runs.config import QUESTIONS, EvalConfig
from seeact_offline.runs.folder import prediction_line, read_prediction, read_target, target_line
from seeact_offline.runs.opening import OpenRun, open_run
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring.assembling import ScoringInput, assemble
from seeact_offline.scoring.protocols import find_protocol
from seeact_offline.scoring.step_scores import score_step

FIGURES = ("element_accuracy", "operation_f1", "step_success_rate")
DECLINED = {"content_filter": "refused", "max_tokens": "truncated", "model_length": "truncated"}
"""Reasons for which a model stopped -> the failures that `eval` names."""
TASKS_AT_ONCE = 8
"""Tasks whose pages are in memory: samples of a task are asked one after the other, of several tasks side by side."""
OWN_GROUPS = (DATA, RANKING, QUESTIONS)
OWN_OPTIONS = frozenset({"protocol", "seed", "image_format", "image_detail"})
PREDICTION, TRUTH = "prediction", "truth"
"""Names in the store of a sample and in the metadata of its score: lines of predictions.jsonl and targets.jsonl."""


@task
def mind2web(**options: Any) -> Task:
    """The steps of a split, asked by a grounding strategy or an agent, and scored by a protocol.

    `options` are those of `eval` that concern data, ranking, questions and rules, such as `dataset`, `split`,
    `grounding`, `agent`, `prompts` and `protocol`. Raises InputError.
    """
    groups = {name: words.group for name, words in words_of(EvalConfig).items()}
    for name in options:
        if groups.get(name, QUESTIONS) not in OWN_GROUPS and name not in OWN_OPTIONS:
            raise InputError(name, sentence=f"`{name}` is not an option of the task; see `inspect eval --help`")
    config = EvalConfig.of(model=lambda messages: "", out=Path("logs/seeact-offline"), **options)
    run = open_run(config, Watch())
    settings = run.manifest.settings
    return Task(
        dataset=MemoryDataset(
            [Sample(input=str(key), id=str(key), metadata={"task": key.annotation_id}) for key in run.split.keys],
            name=str(settings["split"]),
        ),
        solver=ask(run, ImageFormat.read(config.image_format), config.image_detail),
        scorer=step_success(run.protocol.name, {**settings, "model": "inspect"}, is_grounded=not config.ungrounded),
        config=GenerateConfig(temperature=config.temperature, max_tokens=config.max_tokens),
    )


# --- asking ---


class InspectModel(Model):
    """Asks the model of an Inspect evaluation, for one sample."""

    def __init__(self, state: TaskState, image_format: ImageFormat, detail: ImageDetail) -> None:
        self._state, self._format, self._detail = state, image_format, detail
        self.error: Exception | None = None
        """An error of Inspect or of its provider, by which the sample fails."""

    async def complete(self, request: Request) -> Completion:
        """Raises CallError where the model declined, and what Inspect raises."""
        messages = [await in_thread(self._message, message) for message in request.messages]
        # a planner's grounder may be another model: --model-role grounder=...
        model = get_model(role="grounder") if request.for_second else get_model()
        try:
            output = await model.generate(messages)
        # a provider may raise anything, and the loop would make it a failure of the step
        except Exception as error:
            self.error = error
            raise
        self._state.messages, self._state.output = [*messages, *output_message(output)], output
        counts = output.usage
        usage = (
            Usage(1, counts.input_tokens, counts.output_tokens, cost_usd=None) if counts else Usage(1, cost_usd=None)
        )
        failure = DECLINED.get(output.stop_reason) or ("" if output.completion.strip() else "empty_reply")
        if failure:
            raise CallError(failure, output.error or f"the model stopped: {output.stop_reason}", usage)
        return Completion(output.completion, usage)

    def _message(self, message: Message) -> ChatMessage:
        content: list[Content] = [ContentText(text=message.text)]
        if message.picture is not None:
            encoded = base64.b64encode(message.picture.encoded(self._format)).decode("ascii")
            content.append(ContentImage(image=f"data:{self._format.mime};base64,{encoded}", detail=self._detail))
        if message.role == "system":
            return ChatMessageSystem(content=message.text)
        return (ChatMessageAssistant if message.role == "assistant" else ChatMessageUser)(content=content)


def output_message(output: ModelOutput) -> list[ChatMessage]:
    """The model's last message; empty where it sent none."""
    return [output.message] if output.choices else []


@solver
def ask(run: OpenRun, image_format: ImageFormat, detail: ImageDetail) -> Solver:
    """Asks the step of a sample: prepares it, sends its questions, and keeps prediction and truth."""
    lock = asyncio.Lock()

    @lru_cache(TASKS_AT_ONCE)
    def steps_of(annotation_id: str) -> Mapping[str, Step]:
        keys = frozenset(key for key in run.split.keys if key.annotation_id == annotation_id)
        return {str(step.key): step for step in with_earlier(run.split.steps(keys), run.grounding.earlier)}

    @lru_cache(1)
    def scores() -> Scores | None:
        return run.scores()

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with lock:
            step = (await in_thread(steps_of, state.metadata["task"]))[str(state.sample_id)]
            ranked = await in_thread(scores)
        model = InspectModel(state, image_format, detail)
        answer = await ask_step(step, ranked, model, grounding=run.grounding, top_k=run.asking.top_k)
        if model.error is not None:
            raise model.error
        state.store.set(PREDICTION, prediction_line(answer.prediction))
        state.store.set(TRUTH, target_line(answer.truth))
        return state

    return solve


# --- scoring ---


@metric
def figures(protocol: str, settings: dict[str, Any], is_grounded: bool) -> Metric:
    """The figures of `results.json` as the protocol quotes them, each with its interval."""

    def compute(scores: Sequence[SampleScore]) -> dict[str, float]:
        kept = [score.score.metadata for score in scores if score.score.metadata]
        if not kept:
            return {}
        predictions = [read_prediction(lines[PREDICTION]) for lines in kept]
        truths = [read_target(lines[TRUTH]) for lines in kept]
        run = ScoringInput(settings, predictions, truths, complete=True)
        quoted = assemble(run, find_protocol(protocol, grounded=is_grounded)).results.headlines
        made: dict[str, float] = {}
        for name in FIGURES:
            if name in quoted:
                low, high = quoted[name]["ci95"]
                made |= {name: quoted[name]["value"], f"{name}_low": low, f"{name}_high": high}
        return made

    return compute


def step_success(protocol: str, settings: dict[str, Any], is_grounded: bool) -> Scorer:
    """Step success of each sample, 1 or 0, with element, operation and failure in its metadata."""

    @scorer(metrics=[figures(protocol, settings, is_grounded)], name="step_success")
    def made() -> Scorer:
        rules = find_protocol(protocol, grounded=is_grounded)

        async def score(state: TaskState, target: Target) -> Score:
            lines = {name: state.store.get(name) for name in (PREDICTION, TRUTH)}
            prediction, truth = read_prediction(lines[PREDICTION]), read_target(lines[TRUTH])
            scored = score_step(prediction, truth, rules)
            return Score(
                value=scored.success if scored.success is not None else scored.operation_f1 or 0.0,
                answer=f"{prediction.op} {prediction.value} at {prediction.element_id}",
                explanation=scored.outcome,
                metadata={
                    "website": truth.website, "domain": truth.domain, "op": truth.op, "element": scored.element,
                    "operation_f1": scored.operation_f1, "failure": prediction.failure, **lines,
                },
            )  # fmt: skip

        return score

    return made()
