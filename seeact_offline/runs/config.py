"""The configuration of a run: one field for each option of `eval`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from seeact_offline.files.named import read_text
from seeact_offline.files.options import ABOVE_0, COUNT, FROM_0, POSITIVE, SHARE, Number, help_of, option, words_of
from seeact_offline.grounding import MAX_SIDE
from seeact_offline.grounding.strategies import STRATEGIES, UNGROUNDED, agents, find_strategy, groundings, own_options
from seeact_offline.grounding.strategy import Strategy
from seeact_offline.merging import RELEASED_SIZE
from seeact_offline.models import ModelOptions, Price, usage
from seeact_offline.models.parameters import read_model_args
from seeact_offline.models.prices import PriceTable, read_given
from seeact_offline.ranking.stage import DATA, RANKING, RankConfig
from seeact_offline.records import IMAGE_DETAILS, MERGE_RULES, ImageDetail, ImageFormat, InputError, MergeRule

SEEACT = "seeact"
"""Names the agent that a grounding belongs to."""
_MODEL = ModelOptions()
"""The defaults of a model."""
BATCHINGS = ("per-group", "shared-turn1")
MOST_REPEATS = 1000
QUESTIONS, MODEL, RUN, RESUMING = "questions", "model", "run", "resuming"
"""Groups of options."""
OWN_WORDS = ("label", "tags", "metadata")
"""Settings that are the user's own words about a run."""
SIDE = Number(int, 16, "a whole number from 16 to 100000", most=100_000)


def _named_text(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"expected NAME=VALUE, got {text}")
    return name, value


def _named(names: Callable[[], Iterable[str]]) -> Callable[[], str]:
    return lambda: f"{', '.join(names())}, or FILE.py:NAME"


def _known_protocols() -> str:
    from seeact_offline.scoring.protocols import PROTOCOLS

    return f"{', '.join(PROTOCOLS)} or FILE.py:NAME"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalConfig(RankConfig):
    """Everything that decides a run. The defaults run on the bundled sample, offline and without a key.

    Options that one grounding alone has (`marks`, `coordinates`, ...) are in `grounding_options`; `of` and `changed`
    take them like fields. A grounding refuses those that it does not have.

    >>> config = EvalConfig.of(grounding="annotation", marks="number")
    >>> config.grounding_options, config.top_k
    ({'marks': 'number'}, 50)
    """

    # fmt: off
    sample: int | None = option(
        None, "use only N random tasks, equally many by website",
        group=DATA, number=POSITIVE, metavar="N_TASKS", is_basic=True,
    )
    tasks: Path | str | Collection[str] | None = option(
        None, "use only these tasks: their annotation_ids with commas between them, or a file with one a line",
        group=DATA, metavar="NAMES|FILE",
    )
    """Also the ids themselves."""

    scores: Path | None = option(
        None, "score file in place of --ranker: .parquet or .pkl",
        group=RANKING, read=Path, metavar="FILE", is_basic=True,
    )
    top_k: int = option(
        50, "number of candidates offered (default: {default})",
        group=RANKING, number=POSITIVE, metavar="K", is_basic=True, decides_questions=True,
    )
    group_size: int = option(
        RELEASED_SIZE,
        "number of candidates a question (default: {default}, with 16 in the first, as in the released code)",
        group=RANKING, number=POSITIVE, metavar="N", decides_questions=True,
    )
    merge: MergeRule = option(
        "final-round", "rule that merges the groups' answers (default: {default})",
        group=RANKING, choices=MERGE_RULES, decides_questions=True,
    )
    prompts: str = option(
        "seeact", "prompt pack (default: {default})",
        group=RANKING, metavar="NAME|DIR", decides_questions=True,
    )
    grounding: str = option(
        "choice", "method that turns the plan into an element: {known} (default: {default})",
        group=RANKING, metavar="NAME", known=_named(groundings), is_basic=True,
    )
    agent: str = option(
        SEEACT, "who looks and answers: {known} (default: {default})",
        group=RANKING, metavar="NAME", known=_named(agents), is_basic=True,
    )

    turns: Literal[1, 2] = option(
        2, "1 sends both turns in one message (default: {default})",
        group=QUESTIONS, choices=(1, 2), read=int, decides_questions=True,
    )
    no_image: bool = option(
        False, "send pruned HTML instead of the picture",
        group=QUESTIONS, read=bool, decides_questions=True,
    )
    max_image_side: int = option(
        MAX_SIDE, "longest side of a picture sent, in pixels; larger pictures are reduced (default: {default})",
        group=QUESTIONS, number=SIDE, metavar="N", decides_questions=True,
    )
    batching: str = option(
        BATCHINGS[0], "choice, annotation: ask turn 1 for every group, or once a step about the"
        " whole page (default: {default})",
        group=QUESTIONS, choices=BATCHINGS, decides_questions=True,
    )
    grounding_options: Mapping[str, Any] = field(default_factory=dict)
    """Options that the grounding alone has, by name."""
    ungrounded: bool = option(False, "ask turn 1 only, and score its operation and value", group=QUESTIONS, read=bool)

    model: Any = option(
        "builtin/lexical", "{known} (default: {default}); openai/ needs OPENAI_API_KEY",
        group=MODEL, metavar="PROVIDER/NAME", known=usage, is_basic=True,
    )
    """Also an object with `complete`, or any function, async or not, from messages to text."""
    base_url: str | None = option(
        None, "URL of an OpenAI-compatible server (default: $OPENAI_BASE_URL, else OpenAI)",
        group=MODEL, metavar="URL", is_basic=True,
    )
    grounder: Any = option(
        None, "second model that finds what a planner such as --agent uground describes",
        group=MODEL, metavar="PROVIDER/NAME",
    )
    """As `model`; None: the model finds it itself."""
    grounder_base_url: str | None = option(None, "URL of the grounder's server", group=MODEL, metavar="URL")
    temperature: float = option(
        _MODEL.temperature, "sampling temperature (default: {default})",
        group=MODEL, number=FROM_0, metavar="T", is_basic=True, is_refusable=True,
    )
    max_tokens: int = option(
        _MODEL.max_tokens, "maximum number of tokens a reply (default: {default})",
        group=MODEL, number=POSITIVE, metavar="N", is_refusable=True,
    )
    model_args: Mapping[str, Any] = option(
        dict, "any other parameter of the request; repeatable; -M api=responses selects OpenAI's Responses API",
        group=MODEL, metavar="NAME=VALUE", flags=("--model-arg", "-M"), gather=read_model_args,
    )
    """By the server's names for them; for `hf/`, settings of the local model."""
    image_format: str = option(
        str(_MODEL.image_format), "format of pictures sent: png, jpeg:Q or webp:Q with a quality Q from 1"
        " to 100 (default: {default})",
        group=MODEL, metavar="FORMAT",
    )
    image_detail: ImageDetail = option(
        _MODEL.image_detail, "detail at which the server reads pictures (default: {default})",
        group=MODEL, choices=IMAGE_DETAILS, is_refusable=True,
    )
    timeout: float = option(
        _MODEL.timeout_s, "timeout of a call in seconds (default: {default})", group=MODEL, number=ABOVE_0, metavar="S"
    )
    max_retries: int | None = option(
        None, "number of retries of a failed call (default: as many as --max-wait allows)",
        group=MODEL, number=COUNT, metavar="N",
    )
    max_wait: float = option(
        _MODEL.max_wait_s, "seconds that a call may take with all its attempts and pauses (default: {default})",
        group=MODEL, number=ABOVE_0, metavar="S",
    )
    fail_on_error: float | None = option(
        None, "stop once more than this share (0 to 1) of the calls or of the steps has failed"
        " (default: stop only if every call fails)",
        group=MODEL, number=SHARE, metavar="SHARE",
    )
    rpm: float | None = option(None, "maximum number of requests a minute", group=MODEL, number=ABOVE_0, metavar="N")
    tpm: float | None = option(None, "maximum number of tokens a minute", group=MODEL, number=ABOVE_0, metavar="N")
    typed: frozenset[str] = frozenset()
    """Names among `REFUSABLE` that were given: a server that refuses one of them fails
    the call; others are left out."""
    cache: Path | Literal["off"] | None = option(
        None, "folder that stores paid replies for later runs (default: your cache folder;"
        " off with --base-url and at a temperature above 0)",
        group=MODEL, metavar="DIR|off",
    )
    ask_equal: bool = option(
        False, "send equal requests again, as the released code does (default: at temperature 0 each is sent once)",
        group=MODEL, read=bool,
    )
    model_version: str | None = option(
        None, "your name for the model's weights; stored replies of other versions are not used",
        group=MODEL, metavar="TEXT",
    )
    price: Price | PriceTable | str | None = option(
        None, "USD per million prompt and completion tokens, or a file of prices"
        " (default: the bundled list of 2026-11-23)",
        group=MODEL, metavar="IN,OUT|FILE",
    )

    protocol: str | None = option(
        None, "scoring rules: {known} (default: the agent's own, which are seeact's for most)",
        group=RUN, metavar="NAME", known=_known_protocols,
    )
    seed: int = option(
        _MODEL.seed, "seed of the bootstrap, the model and --sample (default: {default})",
        group=RUN, read=int, metavar="N", is_refusable=True, decides_questions=True,
    )
    concurrency: int = option(
        _MODEL.concurrency, "maximum number of simultaneous calls (default: {default})",
        group=RUN, number=POSITIVE, metavar="N", flags=("--concurrency", "--max-connections"), is_basic=True,
    )
    max_cost: float | None = option(
        None, "stop before an attempt that could exceed it; needs prices, or a server that names costs",
        group=RUN, number=ABOVE_0, metavar="USD", is_basic=True,
    )
    predict_only: bool = option(
        False, "write predictions without scores; `score` adds them later", group=RUN, read=bool
    )
    label: str | None = option(None, "name of the run in tables, legends and comparisons", group=RUN, metavar="TEXT")
    tags: Collection[str] = option(
        (), "tags for the manifest", group=RUN, metavar="WORD[,WORD]",
        read=lambda text: tuple(word.strip() for word in text.split(",") if word.strip()),
    )
    metadata: Mapping[str, str] = option(
        dict, "named text for the manifest; repeatable", group=RUN, read=_named_text, metavar="NAME=TEXT", gather=dict
    )
    exclude_flagged: Path | None = option(
        None, "findings of lint-data: also report the figures without these rows", group=RUN, read=Path, metavar="FILE"
    )
    repeats: int = option(
        0, "choice, annotation, mindact: repeat the run N times with groups and choices in random"
        " order, and report the spread",
        group=RUN, number=COUNT, metavar="N",
    )
    out: Path | None = option(
        None, "run folder; an interrupted run resumes from it (default: runs/...)",
        group=RUN, read=Path, metavar="DIR", is_basic=True,
    )
    retry_failed: bool = option(False, "ask only the steps that failed to run before", group=RESUMING, read=bool)
    step: str | Collection[str] | None = option(
        None, "ask only these steps (annotation_id_action_uid), even if answered before",
        group=RESUMING, metavar="ID[,ID]|@FILE",
    )
    command: str | None = None
    """The command line that asks for all this, for the manifest; None: it is asked for in Python."""
    # fmt: on

    def __post_init__(self) -> None:
        """Raises InputError for a value that a field cannot have."""
        # an agent is no grounding; those of SeeAct are known without loading the agents
        if self.grounding == UNGROUNDED or (self.grounding not in STRATEGIES and self.grounding in agents()):
            raise InputError("grounding", f"one of {', '.join(groundings())}", repr(self.grounding))
        find_strategy(self.grounding)
        if self.agent != SEEACT:
            _check_agent(self)
        for name, words in words_of(EvalConfig).items():
            words.check(name, getattr(self, name))
        own = dict(self.grounding_options)
        for named in self.find_strategy().options:
            # a text is read as the command does
            text = own.get(named.name)
            if isinstance(text, str) and named.read not in (str, bool):
                try:
                    own[named.name] = named.read(text)
                except ValueError as error:
                    raise InputError(named.name, "a value of this option", f"{text!r}: {error}") from None
            choice = own.get(named.name)
            if named.choices and choice is not None and choice not in named.choices:
                raise InputError(named.name, f"one of {', '.join(map(str, named.choices))}", repr(choice))
        object.__setattr__(self, "grounding_options", own)
        if self.limit is not None and self.sample is not None:
            raise InputError("sample", sentence="use `sample` or `limit`, not both")
        if self.repeats > MOST_REPEATS:
            raise InputError("repeats", f"at most {MOST_REPEATS:,}", f"{self.repeats:,}")
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
            raise InputError("step", sentence="use `step` or `retry_failed`, not both")
        for name in ("scores", "exclude_flagged", "out"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))
        # YAML reads a bare `off` as false
        cache = "off" if self.cache in (False, "off") else self.cache
        object.__setattr__(self, "cache", cache if cache in (None, "off") else Path(cache))

    @classmethod
    def of(cls, config: EvalConfig | None = None, **options: Any) -> EvalConfig:
        """Makes a configuration of options, which win over those of `config`. Raises as `changed`."""
        return (config or cls()).changed(**options)

    def changed(self, **options: Any) -> EvalConfig:
        """Sets some fields, or a grounding's own options, to other values. Raises InputError;
        TypeError for an unknown name."""
        field_names = {name.name for name in fields(self)}
        agent, grounding = options.get("agent", self.agent), options.get("grounding", self.grounding)
        strategy = find_strategy(grounding)
        if agent != SEEACT:
            # of an agent that does not exist the configuration says so
            with suppress(InputError):
                strategy = find_strategy(agent)
        # the run's own strategy is asked first, as no other is loaded then
        names = {option.name for option in strategy.options}
        own = {
            name: options.pop(name)
            for name in [*options]
            if name not in field_names and (name in names or name in own_options())
        }
        if unknown := sorted(options.keys() - field_names):
            near = get_close_matches(unknown[0], [*field_names, *own_options()], 1)
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

    def find_strategy(self) -> Strategy:
        """Loads the declaration of the grounding strategy. Raises InputError."""
        return find_strategy(self.strategy_name)

    @property
    def task_ids(self) -> tuple[str, ...] | None:
        """The ids in `tasks`, each once, in ascending order; None for all."""
        return self.tasks  # type: ignore[return-value]


REFUSABLE = frozenset(name for name, words in words_of(EvalConfig).items() if words.is_refusable)
"""Fields that servers may refuse."""


def own_words(label: str | None, tags: Collection[str], metadata: Mapping[str, str]) -> dict[str, Any]:
    """The entries of a run's settings that are the user's own words about it."""
    words = zip(OWN_WORDS, (label, sorted(set(tags)), dict(sorted(metadata.items()))), strict=True)
    return {name: value for name, value in words if value}


def options_in_words() -> str:
    """Lists every option of a run with its meaning, for the docstring of `evaluate`."""
    helps = [(name, help_of(EvalConfig, name), words.metavar) for name, words in words_of(EvalConfig).items()]
    return "\n".join(
        ["    Options:", *(f"    {name}: {text.replace('{known}', str(metavar))}" for name, text, metavar in helps)]
    )


def _check_agent(config: EvalConfig) -> None:
    """Raises InputError for an agent that does not exist, and for a grounding or `ungrounded`
    beside one that brings its own."""
    expected = f"one of {_named(agents)()}"
    if config.agent in groundings() or config.agent == UNGROUNDED:
        raise InputError("agent", expected, repr(config.agent))
    try:
        find_strategy(config.agent)
    except InputError as error:
        if error.sentence:
            raise error.renamed("agent") from None
        raise InputError("agent", expected, error.got) from None
    if config.grounding != "choice" or config.ungrounded:
        other = "ungrounded" if config.ungrounded else "grounding"
        raise InputError(other, f"none beside agent {config.agent}, which brings its own", config.grounding)


def _task_ids(tasks: Path | str | Collection[str] | None) -> tuple[str, ...] | None:
    """The ids in a file, or with commas between them. Raises InputError for a file that
    cannot be read, or holds no id."""
    if tasks is None:
        return None
    if isinstance(tasks, Path) or (isinstance(tasks, str) and ("/" in tasks or Path(tasks).is_file())):
        tasks = read_text("tasks", Path(tasks), "a file with one annotation_id a line").splitlines()
    elif isinstance(tasks, str):
        tasks = tasks.split(",")
    ids = {line.strip() for line in tasks if line.strip()}
    if not ids:
        raise InputError("tasks", "at least one annotation_id", "none")
    return tuple(sorted(ids))
