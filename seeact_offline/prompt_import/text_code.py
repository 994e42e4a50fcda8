"""Works out what text-building Python source makes of given values, itself: Python never runs any of that source.

Only what is listed here is followed. Anything else in a function is refused; at the top level of a module it costs the
names that it may change.

The source is somebody else's and may never end or double a text forever: a `Budget` is charged before each step is
taken and before each text or list is made, and ends it all.

A text that holds `MARK` stands for one that is not known, but not empty. It may be added to others, formatted into
them and tested for being there; whatever looks inside is refused.
"""

from __future__ import annotations

import ast
import operator
import string
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from ..records import PromptError, letter

MARK, COUNT = "\ufdd0", "\ufdd1"
"""Code points that no text holds; COUNT is left to the users of this module."""
Value = Any
"""Str, int, bool, None, list, tuple, range, dict, a function as its ast.FunctionDef, or Refused where it is not
known."""

# Most that may be spent on one source file, however often it is followed: statements, expressions and entries of lists
# count as steps, and every character that is written or searched. The published files take some 52,000 and 1,150,000.
STEPS, CHARACTERS = 300_000, 10_000_000
# Most bits of a whole number. The published files count options, which takes five.
BITS = 60


def at_most(limit: int, unit: str, got: int, where: str) -> None:
    """Raises PromptError where `got` is more than `limit`."""
    if got > limit:
        raise PromptError("checkout", f"at most {limit:,} {unit} in {where}", f"{got:,}")


class Budget:
    """What was spent on one source file. Raises PromptError, with the line that is followed, for more than is allowed."""

    def __init__(self, file: str) -> None:
        self.file, self.line, self.steps, self.characters = file, 0, 0, 0
        # a module is followed a hundred times: what is not followed in it is looked through once
        self.names = cache(partial(_names, self))

    def start(self, node: ast.stmt | ast.expr) -> None:
        self.line = node.lineno
        self.charge(steps=1)

    def charge(self, steps: int = 0, characters: int = 0) -> None:
        self.steps, self.characters = self.steps + steps, self.characters + characters
        if self.steps > STEPS or self.characters > CHARACTERS:
            at_most(STEPS, "steps to work out its texts", self.steps, self._where())
            at_most(CHARACTERS, "characters to work out its texts", self.characters, self._where())

    def make(self, like: str | list[Value] | tuple[Value, ...], length: int) -> None:
        """Charge for a text of `length` characters where `like` is a text, else for a list of as many entries."""
        if isinstance(like, str):
            self.charge(characters=length)
        else:
            self.charge(steps=length)

    def whole(self, number: int) -> int:
        """`number`, if it is small enough."""
        at_most(BITS, "bits of a whole number", number.bit_length(), self._where())
        return number

    def _where(self) -> str:
        return f"{self.file}, line {self.line}"


class Refused(Exception):
    """Something that is not followed; it may stand as a name's value until that is needed."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(node)
        self.node, self.line = node, getattr(node, "lineno", 0)

    def __str__(self) -> str:
        try:
            return f"`{ast.unparse(self.node).splitlines()[0][:60]}`"
        except (RecursionError, ValueError):
            # Python writes no number of more than 4,300 digits
            return "what is nested this deep or has such a number"


class _Returned(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


def module_names(tree: ast.Module, budget: Budget) -> dict[str, Value]:
    """What the names at the top level of a module hold after it was imported. Raises PromptError for its Budget."""
    names = {name: partial(follow, budget) for name, follow in _BUILTINS.items()} | {"__name__": "imported"}
    _Follower(names, budget).run(tree.body)
    return names


def parameters(function: ast.FunctionDef) -> list[str]:
    return [name.arg for name in function.args.posonlyargs + function.args.args + function.args.kwonlyargs]


def call(function: ast.FunctionDef, given: Mapping[str, Value], names: dict[str, Value], budget: Budget) -> Value:
    """What `function` returns where its module's names are `names`. Raises Refused, and PromptError for its Budget."""
    budget.charge(steps=len(parameters(function)))
    ends, module = [*function.args.defaults, *function.args.kw_defaults], _Follower(names, budget)
    pairs = zip(reversed(parameters(function)), reversed(ends), strict=False)
    defaults = {name: module.attempt(module.value, end) for name, end in pairs if end}
    missing = dict.fromkeys(parameters(function), Refused(function))
    try:
        _Follower(names, budget, missing | defaults | dict(given)).run(function.body)
    except _Returned as returned:
        return returned.value
    return None


class _Follower:
    """Follows the statements of one module, or of one call with its `local` names."""

    def __init__(self, module: dict[str, Value], budget: Budget, *local: dict[str, Value]) -> None:
        self.module, self.budget, self.local = module, budget, local
        self.names: ChainMap[str, Value] = ChainMap(*local, module)

    def run(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            result = self.attempt(self.statement, node)
            if isinstance(result, Refused):
                if self.local:
                    raise result
                mentioned, bound = self.budget.names(node), self.budget.names(node, bound=True)
                self.budget.charge(steps=len(mentioned))
                changed = [name for name in mentioned if isinstance(self.names.get(name), list | dict)]
                self.names.update(dict.fromkeys([*changed, *bound], result))

    def attempt(self, follow: Callable[[Any], Value], node: ast.AST) -> Value:
        """What `follow(node)` returns, or Refused."""
        try:
            return follow(node)
        except Refused as refused:
            # without the frames that it came through: it may be kept, and raised again at every turn of a loop
            return refused.with_traceback(None)
        except (TypeError, ValueError, LookupError, ArithmeticError, RecursionError):
            return Refused(node)

    def statement(self, node: ast.stmt) -> None:
        self.budget.start(node)
        match node:
            case ast.Pass() | ast.Assert():
                pass
            case ast.Expr(value):
                self.value(value)
            case ast.Assign(targets, value):
                result = self.value(value)
                for target in targets:
                    self.bind(target, result)
            case ast.AnnAssign(target, _, ast.expr() as value):
                self.bind(target, self.value(value))
            case ast.AugAssign(ast.Name(name) as target, ast.Add() as op, value):
                held, more = self.value(target), self.value(value)
                if isinstance(held, list):
                    # in place, as its other names see too
                    held += _entries(self.budget, more)
                else:
                    held = _combined(self.budget, op, held, more)
                self.names[name] = held
            case ast.If(test, body, orelse):
                self.run(body if self.value(test) else orelse)
            case ast.For(target, entries, body, []):
                for entry in _entries(self.budget, self.value(entries)):
                    self.bind(target, entry)
                    self.run(body)
            case ast.Return(value) if self.local:
                raise _Returned(self.value(value) if value else None)
            case ast.FunctionDef(name, ast.arguments(vararg=None, kwarg=None), decorator_list=[]) if not self.local:
                self.names[name] = node
            case _:
                raise Refused(node)

    def bind(self, target: ast.expr, value: Value) -> None:
        self.budget.start(target)
        match target:
            case ast.Name(name):
                self.names[name] = value
            case ast.Tuple(targets):
                for part, entry in zip(targets, _entries(self.budget, value), strict=True):
                    self.bind(part, entry)
            case _:
                raise Refused(target)

    def value(self, node: ast.expr) -> Value:
        self.budget.start(node)
        match node:
            case ast.Constant(str(text)):
                return _plain(self.budget, text)
            case ast.Constant(int(number)):
                return self.budget.whole(number)
            case ast.Constant(None):
                return None
            case ast.Name(name) if name in self.names:
                return _known(self.names[name])
            case ast.Attribute(ast.Name("string"), "ascii_uppercase"):
                return string.ascii_uppercase
            case ast.Attribute(held, name):
                return _method(self.budget, self.value(held), name)
            case ast.Subscript(held, key):
                return _item(self.budget, self.value(held), self.value(key))
            case ast.JoinedStr(pieces):
                return _joined(self.budget, "", [_text(self.value(piece)) for piece in pieces])
            case ast.FormattedValue(value, -1, None):
                return self.value(value)
            case ast.BinOp(left, op, right):
                return _combined(self.budget, op, self.value(left), self.value(right))
            case ast.UnaryOp(op, operand):
                return _OPERATIONS[type(op)](self.value(operand))
            case ast.BoolOp(op, values):
                for value in values:
                    held = self.value(value)
                    if bool(held) == isinstance(op, ast.Or):
                        break
                return held
            case ast.Compare(left, [op], [right]):
                return _compared(self.budget, op, self.value(left), self.value(right))
            case ast.IfExp(test, body, orelse):
                return self.value(body if self.value(test) else orelse)
            case ast.List(elements):
                return [self.value(element) for element in elements]
            case ast.Tuple(elements):
                return tuple(self.value(element) for element in elements)
            case ast.Dict(keys, values):
                return self.table(keys, values)
            case ast.ListComp(element, [loop]) | ast.GeneratorExp(element, [loop]) if not loop.ifs:
                return self.each(element, loop)
            case ast.Call(ast.Name(name), [index], []) if isinstance(self.names.get(name, Refused(node)), Refused):
                # not defined in this file (imported, say): of a number such a function makes an option's label
                return _label(self.value(index))
            case ast.Call(function, arguments, keywords) if all(keyword.arg for keyword in keywords):
                called, given = self.value(function), [self.value(argument) for argument in arguments]
                named = {str(keyword.arg): self.value(keyword.value) for keyword in keywords}
                if not isinstance(called, ast.FunctionDef):
                    return called(*given, **named)
                named = dict(zip(parameters(called), given, strict=False)) | named
                return call(called, named, self.module, self.budget)
        raise Refused(node)

    def table(self, keys: Sequence[ast.expr | None], values: Sequence[ast.expr]) -> dict[Value, Value]:
        table: dict[Value, Value] = {}
        for key, value in zip(keys, values, strict=True):
            if key:
                table[_key(self.value(key))] = self.attempt(self.value, value)
            else:
                table |= _table(self.budget, self.value(value))
        return table

    def each(self, element: ast.expr, loop: ast.comprehension) -> list[Value]:
        inner, results = _Follower(self.module, self.budget, {}, *self.local), []
        for entry in _entries(self.budget, self.value(loop.iter)):
            inner.bind(loop.target, entry)
            results.append(inner.value(element))
        return results


# ---- operations; each raises some error of Python for what is not followed, and charges what it makes or searches ---


def _known(value: Value) -> Value:
    if isinstance(value, Refused):
        raise value
    return value


def _entries(budget: Budget, value: Value = ()) -> list[Value]:
    if not isinstance(value, list | tuple | range):
        raise TypeError
    budget.charge(steps=len(value))
    return list(value)


def _text(value: Value) -> str:
    if type(value) not in (str, int):
        raise TypeError
    return str(value)


def _plain(budget: Budget, value: str) -> str:
    budget.charge(characters=len(value))
    if MARK in value or COUNT in value:
        raise ValueError
    return value


def _label(index: Value) -> str:
    if type(index) is not int:
        raise TypeError
    return letter(index)


def _key(value: Value) -> Value:
    if isinstance(value, tuple):
        # the hash of one is worked out anew each time, from all that is in it
        raise TypeError
    return value


def _table(budget: Budget, pairs: Value = (), /, **named: Value) -> dict[Value, Value]:
    if isinstance(pairs, dict):
        budget.charge(steps=len(pairs))
        return pairs | named
    return {_key(key): value for key, value in _entries(budget, pairs)} | named


def _item(budget: Budget, held: Value, key: Value) -> Value:
    return _known((_plain(budget, held) if isinstance(held, str) else held)[_key(key)])


def _combined(budget: Budget, op: ast.operator, left: Value, right: Value) -> Value:
    match op, left, right:
        case ast.Add(), str() | list() | tuple(), str() | list() | tuple():
            budget.make(left, len(left) + len(right))
        case ast.Mult(), str() | list() | tuple(), int():
            budget.make(left, len(left) * max(right, 0))
        case ast.Mult(), int(), str() | list() | tuple():
            budget.make(right, len(right) * max(left, 0))
    result = _OPERATIONS[type(op)](left, right)
    return budget.whole(result) if isinstance(result, int) else result


def _compared(budget: Budget, op: ast.cmpop, left: Value, right: Value) -> Value:
    if left and right:
        # of a text with MARK no more is known than that there is one
        _plain(budget, _text(left))
        _plain(budget, _text(right))
    return _OPERATIONS[type(op)](left, right)


def _method(budget: Budget, held: Value, name: str) -> Callable[..., Value]:
    match held, name:
        case list(), "append":
            return held.append
        case list(), "extend":
            return lambda more: held.extend(_entries(budget, more))
        case str(), "join":
            return partial(_joined, budget, held)
        case str(), "format":
            return partial(_formatted, budget, held)
        case str(), "strip" | "lstrip" | "rstrip":
            return partial(_stripped, budget, held, name)
    raise TypeError


def _joined(budget: Budget, between: str, parts: Value) -> str:
    texts = _entries(budget, parts)
    budget.charge(characters=sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _stripped(budget: Budget, text: str, name: str, characters: str | None = None) -> str:
    # each end is compared with every one of the characters
    budget.charge(characters=len(text) * len(characters or " "))
    stripped: str = getattr(_plain(budget, text), name)(characters)
    return stripped


def _formatted(budget: Budget, text: str, /, *arguments: Value, **keywords: Value) -> str:
    shown, named = [_text(value) for value in arguments], {name: _text(value) for name, value in keywords.items()}
    longest = max(map(len, [*shown, *named.values()]), default=0)
    for _, field, spec, conversion in string.Formatter().parse(_plain(budget, text)):
        budget.charge(steps=1, characters=longest)
        if spec or conversion or set(field or "") & set(".["):
            raise ValueError
    return text.format(*shown, **named)


def _names(budget: Budget, node: ast.stmt, bound: bool = False) -> set[str]:
    """The names that a statement mentions, or only those that it binds."""
    names = set()
    for part in ast.walk(node):
        budget.charge(steps=1)
        if isinstance(part, ast.Name) and not (bound and isinstance(part.ctx, ast.Load)):
            names.add(part.id)
        name = getattr(part, "asname", None) or getattr(part, "name", None)  # of imports, functions, classes, `except`
        if isinstance(name, str):
            names.add(name.split(".")[0])
    return names


_BUILTINS: dict[str, Callable[..., Value]] = {
    "print": lambda budget, *values, **options: None,
    "str": lambda budget, value: _text(value),
    "len": lambda budget, values: len(_entries(budget, values)),
    "range": lambda budget, *ends: range(*ends),
    "enumerate": lambda budget, values, start=0: list(enumerate(_entries(budget, values), start)),
    "list": _entries,
    "dict": _table,
    "chr": lambda budget, code: _plain(budget, chr(code)),
    "ord": lambda budget, text: ord(_plain(budget, text)),
}
_Operations = dict[type, Callable[..., Value]]
_SUMS: _Operations = {ast.Add: operator.add, ast.Sub: operator.sub, ast.USub: operator.neg, ast.Mult: operator.mul}
_PARTS: _Operations = {ast.FloorDiv: operator.floordiv, ast.Mod: int.__mod__}  # `%` of a text is none
_SAME: _Operations = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not}
_ORDER: _Operations = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
_OPERATIONS: _Operations = {**_SUMS, **_PARTS, **_SAME, **_ORDER, ast.Not: operator.not_}
