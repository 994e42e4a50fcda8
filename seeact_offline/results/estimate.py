"""Estimates the calls, tokens and cost of a run; sends nothing.

The estimate follows `evaluate` up to the calls: the split streams, pages are read, questions are put. A call that
the run's folder or the kept replies answer is answered by them, so that what follows from it is real. Any other is
counted, and a stand-in takes the place of its reply: it has the assumed length wherever a later prompt holds it,
and names an element wherever a group's last reply is read. So all final rounds that there can be are met; how many
are expected follows from `Assumptions.picks`. Where the further question depends on what a reply says (attributes),
the stand-in is the ideal reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import comb, sqrt
from typing import Any

from seeact_offline.dataset.split import with_earlier
from seeact_offline.grounding import Grounding
from seeact_offline.grounding.conversation import Question, Reader
from seeact_offline.grounding.groups import GroupStrategy
from seeact_offline.models.reply_cache import ReplyCache, ReplyStore, request_key
from seeact_offline.models.tokens import TILES, ImageRule, count_words
from seeact_offline.ranking import Scores
from seeact_offline.ranking.tokenizers import Tokenizer, is_fetched, open_tokenizer
from seeact_offline.records import (
    CAPTION_GROUP,
    PICTURE,
    CallError,
    Completion,
    GroundingReply,
    Model,
    ModelSpecError,
    Prediction,
    Request,
    Step,
    StepKey,
    Usage,
)
from seeact_offline.results.estimate_report import Amount, Assumptions, Estimate, SecondModel
from seeact_offline.runs.ablate import Axis, Variant, open_ablation
from seeact_offline.runs.ask import ask_each, predict, run_coroutine
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.model_settings import ModelSettings
from seeact_offline.runs.opening import OpenRun, open_run
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.watch import Watch
from seeact_offline.scoring import inference

STAND_IN = "\0the reply that nobody knows yet\0"
"""Stands for an unknown reply. No page holds NUL characters."""
USUAL_CAPTION = "a person stands in front of a building with a sign above its door"
"""Stands for a caption that is not there yet."""
ENOUGH_STEPS = 5
"""Steps with replies, from which on lengths are measured in them."""
TOKENS_A_WORD, TOKENS_A_WORD_OF_MARKUP = 1.0, 0.955
"""Tokens in o200k_base, as measured on 402 prompts (docs/cost.md)."""


def dry_run(
    config: EvalConfig | None = None,
    *,
    watch: Watch | None = None,
    assumed: Assumptions | None = None,
    tokenizer: Tokenizer | None = None,
    **options: Any,
) -> Estimate:
    """Estimates calls, tokens, cost and statistical power of `evaluate` with the same configuration. Ranks if need be,
    and keeps the scores as `evaluate` does; sends nothing.

    `assumed`: None: measured in the run's own folder where it has ENOUGH_STEPS, else as
    `Assumptions` has it. `tokenizer`: None: the one of `local_tokenizer`. Raises InputError as
    `evaluate` does; a missing API key is no error.

    >>> estimated = dry_run(limit=1, grounding="pixel", model="openai/gpt-4o", out="runs/planned", cache="off")
    >>> estimated.n_steps, estimated.expected.calls, estimated.expected.image_tokens
    (7, 14.0, 10710.0)
    """
    watch = watch or Watch()
    return estimate(open_run(EvalConfig.of(config, **options), watch), watch, assumed, tokenizer)


def estimate(
    run: OpenRun, watch: Watch, assumed: Assumptions | None = None, tokenizer: Tokenizer | None = None
) -> Estimate:
    """Estimates an opened run as `dry_run` does."""
    form = run.grounding.form
    tokenizer = tokenizer or local_tokenizer(has_markup=not form.image)
    predictions = _known(run)
    assumed = assumed or _measured(predictions.values(), tokenizer) or Assumptions().for_turns(form.turns)
    asked = run.to_ask(predictions)
    repeats = [run.repeat(number) for number in range(1, len(run.repeats) + 1)]
    passes = [(run, asked), *((again, again.to_ask(_known(again))) for again in repeats)]
    remarks = [run.estimate_remark] if run.estimate_remark else []
    models = [run.model, *([] if run.model.grounder is None else [run.model.grounder])]
    for model in models[::-1]:
        if model.image_rule is None:
            remarks.insert(0, f"How {model.name} counts pictures is not known: they are counted as GPT-4o does.")
    scores, count = run.scores(), lru_cache(1024)(tokenizer.count)
    with ExitStack() as opened, rare_collections():
        kept = [opened.enter_context(_kept_replies(model)) for model in models]
        kept_remarks = list(dict.fromkeys(remark for _, cache_remarks in kept for remark in cache_remarks))
        calls = [_CountedCalls(model, cache, count, assumed) for model, (cache, _) in zip(models, kept, strict=True)]
        counting = _CountingModel(calls[0], calls[1] if len(calls) > 1 else None)
        for opened_run, left in passes:
            if left:
                _count(opened_run, left, scores, counting, watch)
    tasks = Counter(key.annotation_id for key in run.split.keys)
    return Estimate(
        model=str(run.manifest.settings["model"]),
        n_tasks=len(tasks),
        n_steps=len(run.split.keys),
        n_asked=len(asked),
        n_done=len(predictions.keys() - asked),
        n_not_askable=len(counting.not_askable),
        n_kept=len(counting.first.kept_keys),
        least=counting.least,
        expected=counting.expected,
        most=counting.most,
        quote=run.model.quote,
        tokenizer=tokenizer.name,
        image_rule=counting.first.rule.name,
        assumed=assumed,
        detectable=detectable(list(tasks.values()), assumed),
        remarks=(*remarks[:-1], *kept_remarks, *remarks[-1:]),
        second=counting.counted_second,
    )


def estimate_ablation(
    config: EvalConfig, axis: Axis, variants: Sequence[Variant], watch: Watch | None = None
) -> dict[str, Estimate]:
    """Estimates calls, tokens and cost of each variant by itself; sends nothing. Raises InputError."""
    watch = watch or Watch()
    _, _, runs = open_ablation(config, axis, variants, watch)
    return {variant.name: estimate(run, watch) for variant, run in zip(variants, runs, strict=True)}


def detectable(steps_of_tasks: Sequence[int], assumed: Assumptions) -> float | None:
    """The smallest difference in Step SR that two runs over tasks of so many steps show; None for fewer than six tasks.

    At a step the two differ by 1, 0 or -1, with a variance of `disagreement` where there is no difference on average.
    The mean of a task of m steps then varies by disagreement x ((1 - correlation) / m + correlation).
    """
    rho = assumed.correlation
    variances = [assumed.disagreement * ((1 - rho) / m + rho) for m in steps_of_tasks]
    sd = sqrt(sum(variances) / len(variances)) if variances else 0.0
    return inference.detectable(sd, len(steps_of_tasks))


def local_tokenizer(has_markup: bool = False) -> Tokenizer:
    """OpenAI's o200k_base, where tiktoken is installed and has fetched it before; else words, of which `has_markup`
    (prompts hold pruned markup) says how many tokens they are."""
    if is_fetched("o200k_base"):
        return open_tokenizer("tiktoken:o200k_base")
    tokens = TOKENS_A_WORD_OF_MARKUP if has_markup else TOKENS_A_WORD
    return Tokenizer(f"words, at {tokens:g} tokens each (o200k_base)", lambda text: round(tokens * count_words(text)))


# --- what is known already ---


def _known(run: OpenRun) -> dict[StepKey, Prediction]:
    """The predictions in a run's folder. Raises InputError for a folder of another run; makes none."""
    if not run.folder.manifest.exists():
        return {}
    run.folder.check(run.manifest.identity)
    return run.known()


def _measured(predictions: Collection[Prediction], tokenizer: Tokenizer) -> Assumptions | None:
    """Lengths and picks of the run so far; None for too few."""
    ran = [p for p in predictions if p.ran and any(group.replies for group in p.groups)]
    if len(ran) < ENOUGH_STEPS:
        return None
    groups = [group for p in ran for group in p.groups]
    counts = [[tokenizer.count(text) for text in group.replies] for group in groups]
    by_turn = [[c[turn] for c in counts if len(c) > turn] for turn in range(max(map(len, counts)))]
    paid = [p for p in ran if p.usage.completion_tokens and not p.usage.unreported]
    used = [_without_captions(p) for p in paid]
    hidden = sum(u.completion_tokens - sum(map(tokenizer.count, _texts(p))) for p, u in zip(paid, used, strict=True))
    first = [group for group in groups if not group.is_final_round]
    return Assumptions(
        replies=tuple(sum(tokens) / len(tokens) for tokens in by_turn),
        thought=max(0.0, hidden / max(1, sum(u.calls for u in used))),
        picks=sum(group.element_id is not None for group in first) / len(first),
        measured_in=len(ran),
    )


def _without_captions(prediction: Prediction) -> Usage:
    """The calls and completion tokens of the first model."""
    records = [call.record for call in prediction.calls if call.group == CAPTION_GROUP]
    captions = sum((record.usage for record in records if record.usage is not None and not record.reused), Usage())
    usage = prediction.usage
    return Usage(usage.calls - captions.calls, 0, usage.completion_tokens - captions.completion_tokens)


def _texts(prediction: Prediction) -> list[str]:
    """The replies that were paid for: a turn 1 that groups share is recorded with each of them, and
    so is a reply that was reused."""
    reused = {(call.group, call.turn) for call in prediction.calls if call.record.reused}
    places = [(group, turn) for group in prediction.groups for turn in range(1, len(group.replies) + 1)]
    paid = [(group, turn) for group, turn in places if (group.group, turn) not in reused]
    if _without_captions(prediction).calls < len(paid):
        paid = [paid[0], *(place for place in paid[1:] if place[1] > 1)]
    return [group.replies[turn - 1] for group, turn in paid]


@contextmanager
def _kept_replies(model: ModelSettings) -> Iterator[tuple[ReplyCache | None, list[str]]]:
    """The replies that are paid for, and remarks on them. None: there are none."""
    path, identity = model.options.cache, None
    assert path is not None
    try:
        if path.is_file():
            identity = model.source.open(replace(model.options, cache=None)).identity
    except ModelSpecError as error:
        # everything else that a run needs is said as it is
        if error.argument != "model" or not model.name.partition("/")[2]:
            raise
        yield None, [f"Kept replies were not looked through: {error}"]
        return
    if identity is None:
        yield None, []
        return
    with closing(ReplyStore(path)) as store:
        yield ReplyCache(store, identity, model.options.asks_each), list(store.remarks)


# --- counting ---


@dataclass
class _CountedCalls:
    """A model's calls: those that kept replies answer, and the amounts of the others."""

    model: ModelSettings
    kept: ReplyCache | None
    count: Callable[[str], int]
    """The tokens of a text."""
    assumed: Assumptions
    kept_keys: list[str] = field(default_factory=list)
    """Keys of the requests that kept replies answered."""
    asked: set[str] = field(default_factory=set)
    """Keys of the requests that were counted."""

    @property
    def rule(self) -> ImageRule:
        return self.model.image_rule or TILES

    def look(self, request: Request) -> Completion | None:
        """The kept reply; None for none. Raises CallError for one with which the model declined."""
        if self.kept is None or any(STAND_IN in message.text for message in request.messages):
            return None
        try:
            reply = self.kept.look(request)
        except CallError:
            self.kept_keys.append(self._key(request))
            raise
        if reply is not None:
            self.kept_keys.append(self._key(request))
        return reply

    def amount(self, request: Request, reply_tokens: float) -> Amount | None:
        """The amount of a call; None for a request that was counted already."""
        if (key := self._key(request)) in self.asked:
            return None
        self.asked.add(key)
        text_tokens, turn = 0.0, 0
        for message in request.messages:
            turn += message.role == "assistant"
            before, stand_in, _ = message.text.partition(STAND_IN)
            text_tokens += self.count(before) + (self.assumed.reply(turn) if stand_in else 0)
        pictures: list[Any] = [message.picture for message in request.messages if message.picture is not None]
        detail = self.model.options.image_detail
        return Amount(1, text_tokens, sum(self.rule.count(picture.size, detail) for picture in pictures), reply_tokens)

    def _key(self, request: Request) -> str:
        return request_key({}, request, self.model.asks_each)


@dataclass
class _CountingModel(Model):
    """A model that answers from kept replies, counts the calls that they do not answer,
    and adds them up step by step."""

    first: _CountedCalls
    second: _CountedCalls | None = None
    """Calls of a second model, each counted once in a run: it describes a picture once."""
    least: Amount = field(default_factory=Amount)
    expected: Amount = field(default_factory=Amount)
    most: Amount = field(default_factory=Amount)
    of_second: Amount = field(default_factory=Amount)
    not_askable: set[StepKey] = field(default_factory=set)
    _calls: list[tuple[int, Amount]] = field(default_factory=list)
    """Group and amount of each call of the step that is being asked."""

    @property
    def counted_second(self) -> SecondModel | None:
        if self.second is None:
            return None
        model = self.second.model
        return SecondModel(model.name, self.of_second, len(set(self.second.kept_keys)), model.quote)

    async def complete(self, request: Request) -> Completion:
        return await self.complete_with_ideal(request, "")

    async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
        """The kept reply, or a stand-in. Raises CallError where the model is known to have declined."""
        calls = self.second if request.for_second and self.second is not None else self.first
        is_second = calls is not self.first
        if (reply := calls.look(request)) is not None:
            return reply
        is_caption = is_second and request.key.annotation_id == PICTURE
        tokens = calls.count(USUAL_CAPTION) if is_caption else calls.assumed.reply(request.turn)
        if (amount := calls.amount(request, tokens + (0.0 if is_second else calls.assumed.thought))) is not None:
            if is_second:
                self.of_second += amount
            else:
                self._calls.append((request.group, amount))
        return Completion(USUAL_CAPTION if is_caption else f"{STAND_IN}\n{ideal}")

    async def add(self, step: Step, scores: Scores | None, grounding: Grounding, top_k: int) -> None:
        """Asks a step, and adds up what that takes."""
        self._calls.clear()
        self.first.asked.clear()
        n_kept = len(self.first.kept_keys)
        asked = _picking(grounding) if isinstance(grounding, GroupStrategy) else grounding
        ready = partial(prepare, step, scores, top_k, grounding.form.image)
        prediction = await predict(step, ready, asked, self)
        if not self._calls and len(self.first.kept_keys) == n_kept:
            if not prediction.ran:
                self.not_askable.add(step.key)
            return
        finals = {group.group for group in prediction.groups if group.is_final_round}
        base = sum((amount for group, amount in self._calls if group not in finals), Amount())
        final = sum((amount for group, amount in self._calls if group in finals), Amount())
        certain, chance = _final_round(prediction, self.first.assumed.picks if asked is not grounding else 1.0)
        self.least += base + final if certain else base
        self.expected += base + final.times(chance)
        self.most += base + final


def _final_round(prediction: Prediction, picks: float) -> tuple[bool, float]:
    """Says whether a further question is certain, and how likely it is, if each unknown reply leads
    to an element with this chance."""
    first = [group for group in prediction.groups if not group.is_final_round]
    unknown = sum(STAND_IN in text for group in first for text in group.replies[-1:])
    needed = 2 - sum(
        group.element_id is not None for group in first if not any(STAND_IN in text for text in group.replies[-1:])
    )
    certain = needed <= 0 or not unknown
    below = sum(comb(unknown, k) * picks**k * (1 - picks) ** (unknown - k) for k in range(min(needed, unknown + 1)))
    return certain, 1.0 if certain or picks == 1.0 else 1.0 - below


def _picking(strategy: GroupStrategy) -> GroupStrategy:
    """The strategy, whose groups name their first element wherever a stand-in is read."""
    picking = copy(strategy)

    def read(question: Question) -> Reader:
        read_reply = strategy.read(question)
        return lambda text: GroundingReply(0, "CLICK") if STAND_IN in text else read_reply(text)

    picking.read = read  # type: ignore[method-assign]
    return picking


def _count(
    run: OpenRun, left: Collection[StepKey], scores: Scores | None, counting: _CountingModel, watch: Watch
) -> None:
    """Adds up one pass over the split."""

    async def ask(step: Step) -> None:
        await counting.add(step, scores, run.grounding, run.asking.top_k)

    with watch.ranking(len(left), str(run.manifest.settings["split"])) as progress:
        every = with_earlier(run.split.steps(), run.grounding.earlier)
        steps = (step for step in every if step.key in left)
        run_coroutine(
            ask_each(steps, ask, lambda _: progress.advance(f"{counting.expected.calls:,.0f} calls"), concurrency=1)
        )
