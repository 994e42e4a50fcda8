"""The configuration of a run: one field for each option of `eval`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from seeact_offline.files.named import read_text
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.grounding.strategies import UNGROUNDED, agents, find_strategy, groundings, own_options
from seeact_offline.grounding.strategy import GROUPING_OPTIONS, Strategy
from seeact_offline.models import Price
from seeact_offline.models.prices import PriceTable, read_given
from seeact_offline.records import IMAGE_DETAILS, JPEG_95, MERGE_RULES, ImageDetail, ImageFormat, InputError, MergeRule
from seeact_offline.runs.engines import ENGINES

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])
SEEACT = "seeact"
"""Names the agent that a grounding belongs to."""
BATCHINGS = ("per-group", "shared-turn1")
CHOICES: dict[str, tuple[object, ...]] = {
    "merge": MERGE_RULES,
    "turns": (1, 2),
    "batching": BATCHINGS,
    "engine": ENGINES,
    "image_detail": IMAGE_DETAILS,
}
"""Fields of few values."""
LEAST = {
    "limit": 1, "sample": 1, "top_k": 1, "group_size": 1, "max_image_side": 16, "max_tokens": 1, "max_retries": 0, "concurrency": 1,
    "repeats": 0, "temperature": 0, "timeout": 0, "max_cost": 0, "max_wait": 0, "fail_on_error": 0, "rpm": 0, "tpm": 0,
}  # fmt: skip
"""Fields that are numbers, and how small each may be."""
MOST_REPEATS = 1000
REFUSABLE = frozenset({"temperature", "max_tokens", "image_detail", "seed"})
"""Fields that servers may refuse."""


def _takes_own_options(config: type[C]) -> type[C]:
    """Lets the class take the options that one grounding alone has like fields; they go to `grounding_options`."""
    init: Any = config.__init__

    @wraps(init)
    def take(self: C, **options: Any) -> None:
        known = {field.name for field in fields(self)}  # type: ignore[arg-type]
        strategy = _strategy(options.get("agent", SEEACT), options.get("grounding", "choice"))
        names = [name for name in options if name not in known and _is_own(name, strategy)]
        own = {**options.pop("grounding_options", {}), **{name: options.pop(name) for name in names}}
        init(self, **options, grounding_options=own)

    config.__init__ = take  # type: ignore[method-assign, assignment]
    return config


@_takes_own_options
@dataclass(frozen=True, slots=True, kw_only=True)
class EvalConfig:
    """Everything that decides a run. The defaults run on the bundled sample, offline and without a key.

    Options that one grounding alone has (`marks`, `coordinates`, ...) are taken like fields, and kept in `grounding_options`; a
    grounding refuses those that it does not have.
    """

    dataset: Any = "sample"
    """A folder, a .parquet or .jsonl file, a hub id, `sample`, or a `datasets` object."""
    split: str = "cross_task"
    """train, cross_task, cross_website, cross_domain, their names on the hub, or `all` for the three test splits."""
    limit: int | None = None
    """Number of tasks to take, from the first; None for all."""
    sample: int | None = None
    """Number of tasks to draw at random, in equal shares by website, as `seed` decides; None for all."""
    tasks: Path | Collection[str] | None = None
    """Tasks to take: ids, or a file with one `annotation_id` a line; None for all."""

    agent: str = SEEACT
    """The way of looking and answering: `seeact`, with its grounding, or the name of an agent that brings its own."""
    grounding: str = "choice"
    """choice, annotation, attributes, pixel, mindact or oracle; FILE.py:NAME or an entry point's name for others."""
    ungrounded: bool = False
    """Turn 1 only: its operation and value are scored alone."""
    ranker: str | None = None
    """bundled, bm25, a score file, a checkpoint's folder or hub id, or several of these with a + between, which are fused. None: `bundled+bm25`
    for the sample; for other data the published DeBERTa, from the hub."""
    dtype: str = "auto"
    """Number format of a checkpoint."""
    backend: str = "auto"
    """A checkpoint's forward pass."""
    scores: Path | None = None
    """A score file instead of a ranker."""
    top_k: int = 50
    """Candidates offered."""
    group_size: int = 17
    """Candidates in a question."""
    merge: MergeRule = "final-round"
    prompts: str = "seeact"
    """A shipped pack's name, or a folder."""
    turns: Literal[1, 2] = 2
    """1: both turns in one message."""
    no_image: bool = False
    """Pruned HTML in the picture's place."""
    max_image_side: int = MAX_SIDE
    """Pixels of the longest side of a picture sent."""
    batching: str = BATCHINGS[0]
    grounding_options: Mapping[str, Any] = field(default_factory=dict)
    """Options that the grounding alone has, by name; `changed` and `evaluate` take them like fields."""

    engine: str = "local"
    """Engine of ranking and asking: local or ray."""
    address: str | None = None
    score_workers: int | None = None
    describe_workers: int | None = None
    gpus_per_worker: float | None = None

    model: Any = "builtin/lexical"
    """PROVIDER/NAME, an object with `complete`, or any function, async or not, from messages to text."""
    grounder: Any = None
    """A second model, as `model`, that finds the elements which an agent describes; None: the model does so itself."""
    grounder_base_url: str | None = None
    """The grounder's server."""
    base_url: str | None = None
    temperature: float = 0.0
    max_tokens: int = 4096
    """Most tokens of a reply."""
    image_detail: ImageDetail = "high"
    """Detail at which a server looks at a picture."""
    image_format: str = str(JPEG_95)
    """Format of the pictures sent: png, jpeg:Q or webp:Q."""
    timeout: float = 120.0
    """Seconds of a call."""
    max_retries: int | None = None
    """Most repetitions of a failed call; None: as many as `max_wait` has room for."""
    max_wait: float = 600.0
    """Seconds that a call may take with all its attempts and pauses."""
    fail_on_error: float | None = None
    """The run stops once more than this share (0 to 1) of its calls fails, or of its steps ends in an error of the model."""
    rpm: float | None = None
    """Most requests a minute."""
    tpm: float | None = None
    """Most tokens a minute."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """Further parameters of a request, by the server's names for them; for `hf/`, settings of the local model."""
    typed: frozenset[str] = frozenset()
    """Names among `REFUSABLE` that were given: a server that refuses one of them fails the call; others are left out."""
    cache: Path | Literal["off"] | None = None
    """Folder in which paid replies are kept for other runs too; `off`: none, so that they are kept for this run alone. None: the
    user's own at temperature 0, none for a server that `base_url` names."""
    ask_equal: bool = False
    """Equal requests are each asked, as the released code does. False: at temperature 0 they are asked once."""
    model_version: str | None = None
    """Your name for the weights behind the model's name; replies of another version are not used."""
    price: Price | PriceTable | str | None = None
    """USD per million prompt and completion tokens, `IN,OUT`, or a file of such; None: the bundled table's, where it has the model."""

    protocol: str | None = None
    """Scoring rules; None: the agent's own."""
    seed: int = 0
    """Seed of the bootstrap, the model and other orders."""
    concurrency: int = 4
    """Calls in flight, and steps under way."""
    max_cost: float | None = None
    """USD that the run's calls never exceed; needs a price, or a model that reports what each call costs."""
    step: str | Collection[str] | None = None
    """Steps to ask, answered before or not: ids, separated by commas, or @FILE with one a line; None: those without an answer."""
    retry_failed: bool = False
    """Asks only the steps that failed to run before."""
    predict_only: bool = False
    """Nothing is scored; `score` does so later."""
    label: str | None = None
    """The run's name in tables, legends and comparisons; None: its grounding and model, or its folder."""
    tags: Collection[str] = ()
    """Words of one's own, for the manifest."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Names and values of one's own, for the manifest."""
    exclude_flagged: Path | None = None
    """Findings of `lint-data`: the figures are given without these rows too."""
    repeats: int = 0
    """Number of further runs with groups and choices in a random order."""
    out: Path | None = None
    """The run directory; None: one below `runs/` in the working folder."""
    command: str | None = None
    """The command line that asks for all this, for the manifest; None: it is asked for in Python."""

    def __post_init__(self) -> None:
        """Raises InputError for a value that a field cannot have."""
        if self.grounding == UNGROUNDED or self.grounding in agents():
            raise InputError("grounding", f"one of {', '.join(groundings())}", repr(self.grounding))
        find_strategy(self.grounding)
        if self.agent != SEEACT:
            _check_agent(self)
        for name, known in CHOICES.items():
            _check_choice(name, getattr(self, name), known)
        own = dict(self.grounding_options)
        for option in self.strategy.options:
            # a text is read as the command does
            text = own.get(option.name)
            if isinstance(text, str) and option.read not in (str, bool):
                try:
                    own[option.name] = option.read(text)
                except ValueError as error:
                    raise InputError(option.name, "a value of this option", f"{text!r}: {error}") from None
            if option.choices and own.get(option.name) is not None:
                _check_choice(option.name, own[option.name], option.choices)
        object.__setattr__(self, "grounding_options", own)
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value >= least):
                raise InputError(name, f"a number of at least {least}", repr(value))
        if self.limit is not None and self.sample is not None:
            raise InputError("sample", "tasks drawn at random, or limit, the first ones", "both")
        if self.repeats > MOST_REPEATS:
            raise InputError("repeats", f"at most {MOST_REPEATS:,}", f"{self.repeats:,}")
        if self.fail_on_error is not None and self.fail_on_error > 1:
            raise InputError("fail_on_error", "a share from 0 to 1", repr(self.fail_on_error))
        image_format = ImageFormat.read(str(self.image_format))
        longest = image_format.longest_side
        if longest is not None and self.max_image_side > longest:
            wanted = f"at most {longest} with image_format {image_format}"
            raise InputError("max_image_side", wanted, str(self.max_image_side))
        object.__setattr__(self, "image_format", str(image_format))
        object.__setattr__(self, "tasks", _task_ids(self.tasks))
        if isinstance(self.price, str):
            object.__setattr__(self, "price", read_given(self.price))
        if self.step is not None and self.retry_failed:
            raise InputError("step", "steps by name, or retry_failed", "both")
        for name in ("scores", "exclude_flagged", "out"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))
        # YAML reads a bare `off` as false
        cache = "off" if self.cache in (False, "off") else self.cache
        object.__setattr__(self, "cache", cache if cache in (None, "off") else Path(cache))

    def changed(self, **options: Any) -> EvalConfig:
        """Sets some fields, or a grounding's own options, to other values. Raises InputError; TypeError for an unknown name."""
        known = {name.name for name in fields(self)}
        strategy = _strategy(options.get("agent", self.agent), options.get("grounding", self.grounding))
        own = {name: options.pop(name) for name in [*options] if name not in known and _is_own(name, strategy)}
        if unknown := sorted(options.keys() - known):
            near = get_close_matches(unknown[0], [*known, *own_options()], 1)
            meant = f": did you mean {near[0]}?" if near else ""
            raise TypeError(f"no option of a run is named {unknown[0]}{meant}")
        typed = options.pop("typed", self.typed) | (REFUSABLE & options.keys())
        return replace(self, **options, typed=typed, grounding_options={**self.grounding_options, **own})

    def own(self, name: str) -> Any:
        """The value given for an option that only some groundings have; None where nothing was given."""
        return self.grounding_options.get(name)

    @property
    def strategy_name(self) -> str:
        """The strategy as `find_strategy` takes it."""
        if self.agent != SEEACT:
            return self.agent
        return UNGROUNDED if self.ungrounded else self.grounding

    @property
    def strategy(self) -> Strategy:
        """The declaration of the grounding strategy. Raises InputError."""
        return find_strategy(self.strategy_name)

    @property
    def strategy_title(self) -> str:
        """The strategy as results name it. Raises InputError."""
        return self.strategy.label or self.strategy.name

    @property
    def ignored(self) -> list[str]:
        """Grouping options that the strategy ignores."""
        return [name for name in GROUPING_OPTIONS if name not in self.strategy.grouping_options]

    @property
    def task_ids(self) -> tuple[str, ...] | None:
        """The ids in `tasks`, each once, in ascending order; None for all."""
        return self.tasks  # type: ignore[return-value]


def names_options(function: F) -> F:
    """Gives a function of `**options` a signature that names every field of `EvalConfig`, and every option of a grounding, with
    its type and default."""
    given = signature(function)
    named = [one for one in given.parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    for one in (known for known in fields(EvalConfig) if known.name not in given.parameters):
        default = one.default if one.default_factory is MISSING else one.default_factory()
        named.append(Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=one.type))
    function.__signature__ = _EvalSignature(named, return_annotation=given.return_annotation)  # type: ignore[attr-defined]
    return function


class _EvalSignature(Signature):
    """A signature that also names the groundings' own options. They are looked up when somebody reads it, as that loads all groundings."""

    __slots__ = ()

    @property
    def parameters(self) -> MappingProxyType[str, Parameter]:
        own = {name: Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Any) for name in own_options()}
        return MappingProxyType({**super().parameters, **own})


def _strategy(agent: str, grounding: str) -> Strategy:
    """The strategy that the two name; `choice` for an agent that does not exist, about which the configuration says so."""
    if agent != SEEACT:
        with suppress(InputError):
            return find_strategy(agent)
    return find_strategy(grounding)


def _is_own(name: str, strategy: Strategy) -> bool:
    """Tells whether some grounding has an option of this name; the run's own strategy is asked first, as no other is loaded then."""
    return any(option.name == name for option in strategy.options) or name in own_options()


def _check_agent(config: EvalConfig) -> None:
    """Raises InputError for an agent that does not exist, and for a grounding or `ungrounded` beside one that brings its own."""
    if config.agent in groundings() or config.agent == UNGROUNDED:
        raise InputError("agent", f"one of {', '.join(agents())}, or FILE.py:NAME", repr(config.agent))
    try:
        find_strategy(config.agent)
    except InputError as error:
        raise InputError("agent", f"one of {', '.join(agents())}, or FILE.py:NAME", error.got) from None
    if config.grounding != "choice" or config.ungrounded:
        other = "ungrounded" if config.ungrounded else "grounding"
        raise InputError(other, f"none beside agent {config.agent}, which brings its own", config.grounding)


def _check_choice(name: str, value: object, known: tuple[object, ...]) -> None:
    if value not in known:
        raise InputError(name, f"one of {', '.join(map(str, known))}", repr(value))


def _task_ids(given: Path | Collection[str] | None) -> tuple[str, ...] | None:
    """Raises InputError for a file that cannot be read, or holds no id."""
    if given is None:
        return None
    if isinstance(given, str | Path):
        given = read_text("tasks", Path(given), "a file with one annotation_id a line").splitlines()
    found = {line.strip() for line in given if line.strip()}
    if not found:
        raise InputError("tasks", "at least one annotation_id", "none")
    return tuple(sorted(found))
