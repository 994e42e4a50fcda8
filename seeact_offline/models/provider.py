"""The declaration of a provider of models: one `Provider` a module, listed in `PROVIDERS`. Objects of Python are models
of a provider too: a function from messages to text, or an object or class with `complete`.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import hashlib
import inspect
import re
import sys
import sysconfig
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from seeact_offline.records import (
    JPEG_95,
    CallError,
    Completion,
    ImageDetail,
    ImageFormat,
    Model,
    ModelSpecError,
    Request,
    Usage,
)

if TYPE_CHECKING:
    from seeact_offline.models.budget import Budget, Price
    from seeact_offline.models.tokens import ImageRule


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of a model. Providers ignore those that they do not list."""

    base_url: str | None = None
    """None: OpenAI itself."""
    max_tokens: int = 4096
    """Most tokens a reply may have."""
    image_detail: ImageDetail = "high"
    image_format: ImageFormat = JPEG_95
    """The format in which pictures are sent."""
    temperature: float | None = 0.0
    """None: not sent, the server decides."""
    timeout_s: float = 120.0
    """Seconds of one attempt, from its first byte to its last."""
    max_retries: int | None = None
    """Most attempts after the first; None: as many as `max_wait_s` has room for."""
    max_wait_s: float = 600.0
    """Seconds that a call may take with all its attempts and pauses."""
    fail_on_error: float | None = None
    """The run stops once more than this share (0 to 1) of its calls, or of its steps, has failed; None: never for
    that."""
    concurrency: int = 4
    """Most calls in flight."""
    rpm: float | None = None
    """Most requests a minute; None: no limit of ours."""
    tpm: float | None = None
    """Most tokens a minute, prompt and reply; None: no limit of ours."""
    model_args: Mapping[str, Any] = field(default_factory=dict)
    """More parameters of the request, by the name that the server gives them; None as a value: that one is not sent."""
    typed: frozenset[str] = frozenset()
    """Names of the options here that the user gave. A server that refuses one of them fails the call; others are left
    out."""
    cache: Path | None = None
    """File that keeps paid replies; None for none."""
    ask_equal: bool = False
    """Ask each of several equal requests, at temperature 0 too."""
    run: str = ""
    """Id of the run that pays, noted with each reply."""
    model_version: str | None = None
    """The user's name for the weights that stand behind the model's name now."""
    budget: Budget | None = None
    """The limit of what may be spent; None: no limit."""
    price: Price | None = None
    """None: the cost is not known."""
    seed: int = 0
    """Sent along; servers promise best effort only."""

    @property
    def asks_each(self) -> bool:
        """Equal requests of two places are two: a model that answers by chance is asked at each."""
        return self.ask_equal or self.temperature != 0.0


def version_of(options: ModelOptions) -> dict[str, str]:
    """The part of a model's identity that the user names."""
    return {} if options.model_version is None else {"model_version": options.model_version}


@dataclass(frozen=True, slots=True)
class Provider:
    """Everything that the rest of the program knows of one."""

    usage: tuple[str, ...]
    """The parts that may stand behind `PROVIDER/`, for people: `NAME`, `FILE`, or all names."""
    open: Callable[[str, ModelOptions], Any]
    """The part behind `PROVIDER/` -> a `Model`, or an object with `complete`. Raises ModelSpecError, InputError."""
    identity: Callable[[str, ModelOptions], Mapping[str, Any]]
    """The part behind `PROVIDER/` -> everything that replies depend on, for the manifest. Holds no secret."""
    options: tuple[str, ...] = ()
    """`ModelOptions` that it uses, besides those that every model has: price, cache and budget."""
    is_free: bool = False
    """Calls cost neither money nor time, so no reply is kept."""
    is_known: bool = True
    """Two models of one identity give the same replies."""
    is_loaded: bool = False
    """The model is held by the process that asks it, and wants its GPU."""
    is_file: bool = False
    """The part behind `PROVIDER/` is the path of a file."""
    reports_cost: bool = False
    """Each completion may say what it cost, so `max_cost` needs no price."""
    check_spending: Callable[[ModelOptions], None] = lambda options: None
    """Raises InputError for options with which a call may cost anything."""
    takes_batches: bool = False
    """Its models put requests into files, as `BatchCodec` needs them."""
    is_text_to_text: Callable[[str], bool] = lambda name: False
    """The part behind `PROVIDER/` -> True for a model that turns one text into another, as T5 does, and holds no
    conversation."""
    server: Callable[[str | None], str | None] = lambda base_url: base_url
    """A base URL, None for none -> the address of the server that the user names by it or in the environment; None:
    none."""
    is_listed: Callable[[str | None], bool] = lambda base_url: False
    """A base URL, None for none -> True where the bundled price table holds the prices of that server's models."""
    image_rule: Callable[[str, ModelOptions], ImageRule | None] = lambda name, options: None
    """The part behind `PROVIDER/` -> how the model counts pictures; None: not known."""
    picture_rules: Callable[[str], tuple[ImageRule, ...]] | None = None
    """The part behind `PROVIDER/` -> rules of which one is the model's, for reservations; None: that of `image_rule`,
    or GPT-4o's."""
    at_once: Callable[[ModelOptions], int] = lambda options: 1
    """Fewest calls in flight that keep the model busy: one that answers in batches wants a batch and the next. Raises
    ModelSpecError."""


# --- objects of Python ---


class FunctionModel(Model):
    """Asks a function, which is given the request's messages and returns the reply's text, or an awaitable of it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    async def complete(self, request: Request) -> Completion:
        """Raises CallError `empty_reply` for no text. A plain function runs in a thread; what it raises fails its
        step."""

        def call() -> Any:
            try:
                return self._function(request.messages)
            except StopIteration as error:
                # a future takes none, and a caller that awaits it would wait forever
                raise RuntimeError("the function raised StopIteration") from error

        if inspect.iscoroutinefunction(self._function):
            text = await self._function(request.messages)
        else:
            text = await asyncio.to_thread(call)
            if inspect.isawaitable(text):
                text = await text
        # `call_model` refuses what is no text
        if isinstance(text, str) and not text.strip():
            raise CallError("empty_reply", "the model gave no text", Usage(calls=1))
        return Completion(text, Usage(calls=1))


class ObjectModel(Model):
    """An object with `complete`. It is given requests, and never the truth."""

    def __init__(self, wrapped: Any, is_own: bool = True) -> None:
        """`is_own`: made for the run, and closed with it. A caller's is used again by the next run, so closing it is
        the caller's business."""
        self._wrapped, self._is_own = wrapped, is_own

    async def complete(self, request: Request) -> Completion:
        return await self._wrapped.complete(request)  # type: ignore[no-any-return]

    @property
    def identity(self) -> Mapping[str, object] | None:
        return getattr(self._wrapped, "identity", None) if self._is_own else None

    async def aclose(self) -> None:
        if self._is_own:
            await self._wrapped.aclose()


def as_model(obj: Any) -> Model:
    """A model from an object with `complete`, a class of one, or a function. Raises ModelSpecError for anything
    else."""
    if isinstance(obj, type):
        made = obj()
        return ObjectModel(made) if hasattr(made, "complete") else as_model(made)
    if hasattr(obj, "complete"):
        return ObjectModel(obj, is_own=False)
    if callable(obj):
        return FunctionModel(obj)
    wanted = "PROVIDER/NAME, FILE.py:NAME, an object with `complete` or a function from messages to text"
    raise ModelSpecError("model", wanted, f"a {type(obj).__name__}")


def provider_of_object(obj: Any, name: str | None = None, digest: str | None = None) -> Provider:
    """The provider of one model, class or function. It is known by what it says itself (`identity`), and by its code.

    `name`, `digest`: as results name it, and of its code, where it comes from a file.
    """
    own = getattr(obj, "identity", None)
    code = digest or code_of(obj)
    # code that may have changed unnoticed is not known
    identity = {"model": name or f"python/{name_of_object(obj)}", "code": code or "not known"}
    return Provider(
        usage=(),
        open=lambda _, options: as_model(obj),
        identity=lambda _, options: identity | dict(own if isinstance(own, Mapping) else {}),
        is_known=code is not None or own not in (None, Model.identity),
        # it may do so, until its first call shows
        reports_cost=hasattr(obj, "complete"),
        is_text_to_text=lambda _: bool(getattr(obj, "is_text_to_text", False)),
    )


def is_function(obj: Any) -> bool:
    """Tells a function, or a class of one, from models and names of them."""
    return callable(obj) and not hasattr(obj, "complete")


def name_of_object(obj: Any) -> str:
    """A name that tells it from other objects, and is the same in the next process."""
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    return f"{named.__module__}.{named.__qualname__}"


# --- what a function is known by ---

_PLAIN = (str, bytes, int, float, complex, bool, type(None), Enum, PurePath, re.Pattern)
_MUTATORS = frozenset(
    {
        *("append", "appendleft", "extend", "insert", "add", "update", "setdefault", "subtract", "remove", "discard"),
        *("pop", "popleft", "popitem", "clear", "write", "put", "acquire", "send"),
    }
)
"""Methods by which a function keeps count of something."""
_Source = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class _NotKnown(Exception):
    """Raised for a value that can change unnoticed."""


def code_of(obj: Any) -> str | None:
    """The digest of all that a function does: its code without comments, its defaults, what it closes over, and the
    functions, classes and constants that it uses, but for those of packages and those that it changes itself. None for
    a function that holds something else or has no source, and for an object."""
    try:
        described = "\n".join(_described(obj, []))
    except (_NotKnown, OSError, TypeError, ValueError, SyntaxError, RecursionError):
        return None
    return hashlib.sha256(described.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _described(function: Any, seen: list[object]) -> list[str]:
    """Raises _NotKnown, and what `inspect` raises for a function without source."""
    if isinstance(function, functools.partial):
        return [*_described(function.func, seen), _value([*function.args], seen), _value(function.keywords, seen)]
    if isinstance(function, type):
        return [inspect.getsource(function)]
    if not isinstance(function, FunctionType):
        raise _NotKnown
    if any(function is earlier for earlier in seen):
        return [function.__qualname__]
    seen.append(function)
    source, code = _source(function.__code__), function.__code__
    changed, defaults = _changed_names(source), function.__defaults__ or ()
    held = dict(zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True))
    held |= function.__kwdefaults__ or {}
    held |= {name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)}
    lines = [ast.unparse(source), *(f"{name} = {_value(held[name], seen)}" for name in sorted(held.keys() - changed))]
    for name in sorted(_global_names(code) & function.__globals__.keys() - changed):
        # clients and other objects are no part of its code
        with suppress(_NotKnown):
            lines.append(f"{name} = {_value(function.__globals__[name], seen)}")
    return lines


def _value(value: object, seen: list[object]) -> str:
    """Raises _NotKnown."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple | set | frozenset):
        parts = [_value(part, seen) for part in value]
        return f"{type(value).__name__}({', '.join(parts if isinstance(value, list | tuple) else sorted(parts))})"
    if isinstance(value, Mapping):
        return f"dict({', '.join(_value(pair, seen) for pair in value.items())})"
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, FunctionType | type):
        # code of Python itself, of an installed package, or of this one is known by its name
        file, paths = getattr(sys.modules.get(value.__module__), "__file__", None) or "", sysconfig.get_paths()
        places = [str(Path(__file__).parents[1]), *(paths[name] for name in ("stdlib", "purelib", "platlib"))]
        if any(Path(file).is_relative_to(place) for place in places):
            return f"{value.__module__}.{value.__qualname__}"
    return "\n".join(_described(value, seen))


def _source(code: CodeType) -> _Source:
    """The node of this code. Raises _NotKnown where several of a line could be it, OSError where the source is
    missing."""
    lines, _ = inspect.findsource(code)
    nodes: list[_Source] = [
        node
        for node in ast.walk(_parsed("".join(lines)))
        if isinstance(node, _Source)
        and getattr(node, "name", "<lambda>") == code.co_name
        and min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", ()))]) == code.co_firstlineno
    ]
    if len(nodes) > 1:
        # lambdas of one line: the place of the result tells which
        places, sides = set(code.co_positions()), ("lineno", "end_lineno", "col_offset", "end_col_offset")
        bodies = ((node, node.body) for node in nodes if isinstance(node, ast.Lambda))
        nodes = [node for node, body in bodies if tuple(getattr(body, side) for side in sides) in places]
    if len(nodes) != 1:
        raise _NotKnown
    return nodes[0]


_parsed = functools.lru_cache(64)(ast.parse)


def _global_names(code: CodeType) -> frozenset[str]:
    inner = [_global_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _changed_names(source: _Source) -> frozenset[str]:
    """Names whose values the function changes: by assignment, by a method that does, by `next`, or by `with`, as a
    lock."""
    names: set[str] = set()
    for node in ast.walk(source):
        if isinstance(node, ast.Nonlocal | ast.Global):
            names.update(node.names)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            names.add(_root(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            names.add(_root(node.func.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "next":
            names.update(map(_root, node.args[:1]))
        elif isinstance(node, ast.withitem):
            names.add(_root(node.context_expr))
    return frozenset(names)


def _root(node: ast.expr) -> str:
    """The name with which `a[b][c]` begins."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
