"""The figures of the SeeAct paper's Table 1, for any data set: one pass over its steps, nothing decoded.

What the paper calls domains are the hub's subdomains: its train split has 17 of them, and 3 in the column `domain`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from seeact_offline.records import InputError, RowError, Step
from seeact_offline.screenshots import PagePicture
from seeact_offline.tokens import Size, count_words, full_size_visual_tokens, visual_tokens


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What counts the tokens of a text."""

    name: str
    # as the user names it
    count: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class DatasetStats:
    """One split in figures. Averages are None where no row has what is averaged."""

    split: str
    tasks: int
    steps: int
    domains: int
    # of the column `domain`
    subdomains: int
    # what the paper calls domains
    websites: int
    actions_a_task: float | None
    # rows a task
    elements_a_page: float | None
    # candidates listed, positive or not
    html_tokens_a_page: float | None
    # of cleaned_html, over the rows that have any
    visual_tokens: float | None
    # by the published rule, over the rows whose picture can be opened
    visual_tokens_at_full_size: float | None
    # the same tiles over the page as it is, without the two downscales
    faulty_rows: int
    faults: Mapping[str, int]
    # rows by what is wrong with them; a row may be in several


@dataclass(frozen=True, slots=True)
class PaperStats:
    """One split in the paper's Table 1."""

    tasks: int
    domains: int
    websites: int
    avg_actions: float
    avg_visual_tokens: int
    avg_elements: int
    avg_html_tokens: int


def dataset_stats(steps: Iterable[Step], split: str, count_tokens: Callable[[str], int]) -> DatasetStats:
    """The figures of a split, in one pass that keeps ids and names only."""
    totals = _Totals()
    for step in steps:
        totals.add(step, count_tokens)
    return totals.finished(split)


def open_tokenizer(spec: str) -> Tokenizer:
    """`words`, `tiktoken:ENCODING_OR_MODEL` or `hf:DIR_OR_ID`. Raises InputError when it cannot be had."""
    kind, _, name = spec.partition(":")
    if spec == "words":
        return Tokenizer(spec, count_words)
    if name and kind in _OPENERS:
        return Tokenizer(spec, _OPENERS[kind](name))
    raise InputError(f"--tokenizer: expected words, tiktoken:NAME or hf:DIR_OR_ID, got {spec!r}")


@cache
def paper_table1() -> Mapping[str, PaperStats]:
    """The paper's Table 1 by split. Source: SeeAct, arXiv 2401.01614v2."""
    text = (files("seeact_offline") / "paper" / "table1.json").read_text(encoding="utf-8")
    return {split: PaperStats(**figures) for split, figures in json.loads(text)["splits"].items()}


@dataclass(slots=True)
class _Mean:
    total: int = 0
    count: int = 0

    def add(self, value: int) -> None:
        self.total += value
        self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass(slots=True)
class _Totals:
    """What is known of a split so far."""

    tasks: set[str] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)
    subdomains: set[tuple[str, str]] = field(default_factory=set)
    websites: set[str] = field(default_factory=set)
    elements: _Mean = field(default_factory=_Mean)
    html_tokens: _Mean = field(default_factory=_Mean)
    visual: _Mean = field(default_factory=_Mean)
    visual_full: _Mean = field(default_factory=_Mean)
    faulty_rows: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, step: Step, count_tokens: Callable[[str], int]) -> None:
        faults = {fault.name for fault in step.faults}
        self.tasks.add(step.annotation_id)
        self._add_site(step)
        self.elements.add(len(step.candidates))
        if step.cleaned_html.strip():
            self.html_tokens.add(count_tokens(step.cleaned_html))
        if step.screenshot is not None:
            try:
                self._add_picture(PagePicture(step.screenshot).size)
            except RowError as error:
                faults.add(error.name)
        self.faults.update(faults)
        self.faulty_rows += bool(faults)

    def _add_site(self, step: Step) -> None:
        """A name that a row lacks is no further domain."""
        if step.domain:
            self.domains.add(step.domain)
        if step.subdomain:
            self.subdomains.add((step.domain, step.subdomain))
        if step.website:
            self.websites.add(step.website)

    def _add_picture(self, size: Size) -> None:
        self.visual.add(visual_tokens(size))
        self.visual_full.add(full_size_visual_tokens(size))

    def finished(self, split: str) -> DatasetStats:
        steps, tasks = self.elements.count, len(self.tasks)
        return DatasetStats(
            split=split,
            tasks=tasks,
            steps=steps,
            domains=len(self.domains),
            subdomains=len(self.subdomains),
            websites=len(self.websites),
            actions_a_task=steps / tasks if tasks else None,
            elements_a_page=self.elements.value,
            html_tokens_a_page=self.html_tokens.value,
            visual_tokens=self.visual.value,
            visual_tokens_at_full_size=self.visual_full.value,
            faulty_rows=self.faulty_rows,
            faults=dict(sorted(self.faults.items())),
        )


def _tiktoken(name: str) -> Callable[[str], int]:
    try:
        import tiktoken
    except ImportError:
        raise InputError(f"--tokenizer: tiktoken:{name} needs a package: pip install tiktoken") from None
    try:
        known = name in tiktoken.list_encoding_names()
        encoding = tiktoken.get_encoding(name) if known else tiktoken.encoding_for_model(name)
    except KeyError:
        names = ", ".join(tiktoken.list_encoding_names())
        raise InputError(f"--tokenizer: expected tiktoken:NAME of {names} or of a model, got {name!r}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"--tokenizer: tiktoken:{name} cannot be fetched: {_first_line(error)}") from None
    # text that looks like a control token is page text all the same
    return lambda text: len(encoding.encode_ordinary(text))


def _hugging_face(name: str) -> Callable[[str], int]:
    from seeact_offline.ranking.opening import open_tokenizer as open_checked

    try:
        tokenizer = open_checked(name)
    except ImportError:
        raise InputError(f"--tokenizer: hf:{name} needs a package: pip install transformers") from None
    except (OSError, ValueError) as error:
        raise InputError(f"--tokenizer: no tokenizer in {name!r}: {_first_line(error)}") from None
    # verbose: a page longer than the model's window is no mistake here
    return lambda text: len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


_OPENERS = {"tiktoken": _tiktoken, "hf": _hugging_face}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
