"""The estimate of a run: calls, tokens, dollars, and the smallest difference that it could
show. Computed in `estimate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

from seeact_offline.files.markdown import percent
from seeact_offline.files.table import Table
from seeact_offline.models.prices import Quote
from seeact_offline.scoring.report import counted

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Amount:
    """Calls and their tokens; fractions where they are expectations. Adds up with `+`."""

    calls: float = 0.0
    text_tokens: float = 0.0
    """Text tokens of prompts."""
    image_tokens: float = 0.0
    """Picture tokens of prompts."""
    completion_tokens: float = 0.0

    @property
    def prompt_tokens(self) -> float:
        return self.text_tokens + self.image_tokens

    def __add__(self, other: Amount) -> Amount:
        return Amount(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))

    def times(self, factor: float) -> Amount:
        return Amount(*(quantity * factor for quantity in astuple(self)))

    def cost(self, quote: Quote | None) -> float | None:
        """USD; None where no price is known."""
        if quote is None:
            return None
        price = quote.price
        return (self.prompt_tokens * price.prompt + self.completion_tokens * price.completion) / MILLION


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Quantities that are unknown before the replies are there."""

    replies: tuple[float, ...] = (297.0, 158.0)
    """Tokens of a reply's text, turn by turn; further turns are as the last. As published: SeeAct's example step, means
    of GPT-4V's replies to its three groups, in tokens of o200k_base."""
    thought: float = 0.0
    """Completion tokens of a call beyond its reply's text: what a model thinks and does not show."""
    picks: float = 0.5
    """Share of groups that name an element, each for itself: two that do make a final round."""
    disagreement: float = 0.2
    """Share of steps that one of two runs gets right and the other wrong."""
    correlation: float = 0.1
    """Correlation between the differences at two steps of a task."""
    measured_in: int = 0
    """Steps of this run that replies, thought and picks were measured in; 0: they are assumptions."""

    def for_turns(self, turns: int) -> Assumptions:
        """Joins the replies to both turns where these are asked in one message."""
        return self if turns == 2 else replace(self, replies=(sum(self.replies),))

    def reply(self, turn: int) -> float:
        """Tokens of the text; `turn` from 1."""
        return self.replies[min(turn, len(self.replies)) - 1]


@dataclass(frozen=True, slots=True)
class SecondModel:
    """A model beside the first, which finds what that one describes, or says what pictures show."""

    model: str
    amount: Amount
    """Everything that it would be asked."""
    n_kept: int
    """Calls that kept replies answer; they cost nothing."""
    quote: Quote | None
    """None: the price is not known."""

    @property
    def cost(self) -> float | None:
        """USD; None where no price is known."""
        return self.amount.cost(self.quote)

    def __str__(self) -> str:
        price = "its price is not known" if self.quote is None else f"price {_named(self.quote)}"
        return (
            f"{self.model} is asked beside it; kept replies answer {self.n_kept} calls of it that are"
            f" not counted above; {price}."
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated calls, tokens and cost of a run."""

    model: str
    n_tasks: int
    n_steps: int
    n_asked: int
    """Steps to ask."""
    n_done: int
    """Steps that the run's folder has answers to."""
    n_not_askable: int
    """Steps at fault: no call is made for them."""
    n_kept: int
    """Calls that kept replies answer; they cost nothing."""
    least: Amount
    """Amount without a final round, except those that kept replies make certain."""
    expected: Amount
    most: Amount
    """Amount with every final round that there can be."""
    quote: Quote | None
    """None: the price is not known."""
    tokenizer: str
    image_rule: str
    assumed: Assumptions
    detectable: float | None
    """The smallest difference in Step SR, 0 to 1, that this split shows with a power of 80 % at 5 %;
    None for fewer than six tasks."""
    remarks: tuple[str, ...] = ()
    """Sentences."""
    second: SecondModel | None = None

    def to_dict(self) -> dict[str, Any]:
        """The estimate as JSON. Amounts have `cost_usd` besides, None where the price is not known."""
        amounts = {"least": self.least, "expected": self.expected, "most": self.most}
        plain = {name: value for name, value in asdict(self).items() if name not in ("quote", "second", *amounts)}
        figures = {
            name: {**asdict(amount), "prompt_tokens": amount.prompt_tokens, "cost_usd": amount.cost(self.quote)}
            for name, amount in amounts.items()
        }
        price = None
        if self.quote is not None:
            usual = {"prompt": self.quote.price.prompt, "completion": self.quote.price.completion}
            tiers = {tier: {"prompt": of.prompt, "completion": of.completion} for tier, of in self.quote.price.tiers}
            price = {**asdict(self.quote), "price": usual | ({"tiers": tiers} if tiers else {})}
        content = {"schema": 1, **plain, **figures, "price": price}
        if (second := self.second) is None:
            return content
        amount = {**asdict(second.amount), "prompt_tokens": second.amount.prompt_tokens, "cost_usd": second.cost}
        return {**content, "second": {"model": second.model, "n_kept": second.n_kept, **amount}}

    def table(self) -> Table:
        """The estimate as a table for people."""
        amounts = (self.least, self.expected, self.most)
        rows: list[list[object]] = [
            ["calls", *(f"{amount.calls:,.0f}" for amount in amounts)],
            ["prompt tokens, text", *(f"{amount.text_tokens:,.0f}" for amount in amounts)],
            ["prompt tokens, pictures", *(f"{amount.image_tokens:,.0f}" for amount in amounts)],
            ["completion tokens", *(f"{amount.completion_tokens:,.0f}" for amount in amounts)],
            ["USD", *(_usd(amount.cost(self.quote)) for amount in amounts)],
        ]
        if (second := self.second) is not None:
            rows += [
                [f"calls of {second.model}", *[f"{second.amount.calls:,.0f}"] * 3],
                [f"USD of {second.model}", *[_usd(second.cost)] * 3],
                ["USD in all", *(_usd(_sum(amount.cost(self.quote), second.cost)) for amount in amounts)],
            ]
        left = (
            f"{counted(self.n_done, 'step is', 'steps are')} done already, {self.n_not_askable} cannot be asked;"
            f" kept replies answer {self.n_kept} calls that are not counted above. Nothing was sent."
        )
        notes = [left, *self.bases]
        steps, tasks = counted(self.n_steps, "step"), counted(self.n_tasks, "task")
        title = f"What {self.model} would be asked: {self.n_asked} of {steps}, {tasks}"
        return Table(title=title, header=["", "least", "expected", "most"], rows=rows, notes=notes)

    @property
    def bases(self) -> list[str]:
        """Sentences on prices, counts and assumptions."""
        rules = f"Text is counted by {self.tokenizer}, pictures by {self.image_rule}."
        second = [] if self.second is None else [str(self.second)]
        return [self._price(), *second, rules, self._assumptions(), self._power(), *self.remarks]

    def report(self) -> str:
        """The table as Markdown."""
        return self.table().markdown()

    def _price(self) -> str:
        quote = self.quote
        if quote is None:
            return (
                "The price of the model is not known: give it as IN,OUT, USD per million prompt and completion tokens."
            )
        per_reply = self.expected.calls * 100 * quote.price.completion / MILLION
        return f"Price: {_named(quote)}. Each 100 tokens that replies are longer cost {_usd(per_reply)} USD more."

    def _assumptions(self) -> str:
        assumed = self.assumed
        turns = " and ".join(f"{tokens:.0f}" for tokens in assumed.replies)
        thought = f" and {assumed.thought:.0f} more a call that are not shown" if assumed.thought else ""
        source = f"Measured in {counted(assumed.measured_in, 'step')} of this run" if assumed.measured_in else "Assumed"
        return (
            f"{source}: replies of {turns} tokens by turn{thought};"
            f" {100 * assumed.picks:.0f} % of groups name an element, and two that do make a final round."
            " The least has none, the most all that there can be."
        )

    def _power(self) -> str:
        assumed = self.assumed
        basis = (
            f"if two runs disagree on {100 * assumed.disagreement:.0f} % of steps,"
            f" and differences inside a task correlate by {assumed.correlation:g}"
        )
        if self.detectable is None or self.detectable > 1:
            return f"So few tasks show no difference in Step SR between two runs, {basis}."
        return (
            f"{counted(self.n_tasks, 'task shows', 'tasks show')} a difference in Step SR of {percent(self.detectable)}"
            f" points or more with a power of 80 % at 5 %, {basis}."
        )


def table_of_variants(estimates: Mapping[str, Estimate]) -> Table:
    """Tabulates what each variant of an ablation is expected to take, by name, and all of them together."""
    first = next(iter(estimates.values()))
    total = sum((estimate.expected for estimate in estimates.values()), Amount())
    amounts = {**{name: estimate.expected for name, estimate in estimates.items()}, "all": total}
    costs = {name: amount.cost(first.quote) for name, amount in amounts.items()}
    # the rows have it in common, so that each of its calls is paid for once
    seconds = [estimate.second for estimate in estimates.values() if estimate.second is not None]
    if seconds:
        second = max(seconds, key=lambda second: second.amount.calls)
        amounts = {**amounts, "all": total + second.amount, second.model: second.amount}
        costs = {**costs, "all": _sum(costs["all"], second.cost), second.model: second.cost}
    rows = [
        (
            name,
            *(f"{n:,.0f}" for n in (amount.calls, amount.text_tokens, amount.image_tokens, amount.completion_tokens)),
            _usd(costs[name]),
        )
        for name, amount in sorted(amounts.items(), key=lambda named: named[0] == "all")
    ]
    notes = [
        f"Expected for {counted(first.n_steps, 'step')} of {counted(first.n_tasks, 'task')}, each row by itself:"
        " a question that rows have in common is paid for once. Nothing was sent.",
        *first.bases,
    ]
    header = ("", "calls", "prompt tokens, text", "prompt tokens, pictures", "completion tokens", "USD")
    return Table(title=f"What {first.model} would be asked", header=header, rows=rows, notes=notes)


def _named(quote: Quote) -> str:
    source = f"of {quote.date}, {quote.source}" if quote.date else quote.source
    return (
        f"{quote.price.prompt:g} USD a million prompt tokens, {quote.price.completion:g} completion tokens ({source})"
    )


def _sum(*costs: float | None) -> float | None:
    known_costs = [cost for cost in costs if cost is not None]
    return sum(known_costs) if len(known_costs) == len(costs) else None


def _usd(cost: float | None) -> str:
    return "not known" if cost is None else f"{cost:,.2f}" if cost >= 1 else f"{cost:.4f}"
