"""Readers of text that others wrote, texts that make a slow reader slow, and the growth of the time that one takes over them.

Readers are found by rule: those that our tables list, and every public function of one text. The texts are made by
rule from the patterns and words of the modules that a reader is made of: what a pattern repeats is repeated behind what it begins with, and
each beginning is repeated.
"""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import json
import pkgutil
import re
import re._constants as sre_constants
import re._parser as sre_parse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import seeact_offline
from seeact_offline import importers
from seeact_offline.agents import AGENTS
from seeact_offline.files import redaction
from seeact_offline.importers import reading
from seeact_offline.models import builtin
from seeact_offline.records import Message, Request, StepKey, Truth
from seeact_offline.replies import final_answer
from seeact_offline.trajectories import foreign_folders, judgements, locators, rule_sets, stored_verdicts, verdict_rules

Read = Callable[[str], object]
TEXTS = frozenset({"text", "reply", "plain", "line", "code", "html", "cleaned_html", "tree", "answer"})
"""Names of the parameters that texts of others are given to."""
SIGNS = (
    *" \t\n\r\0\\\"'`()[]{}<>,;:=.|*_#-/&?%@$09aAé", "\\'", '\\"', "=>", "<a>", "</a>", "{}", "[]", "()", "\n\n", "\n ", "a ", "a\n",
)  # fmt: skip
"""Pieces that every reader meets."""
MOST = 2.6
"""Times as long as a text of half the size."""
FLOOR = 0.01
"""Seconds, shorter than which a clock says nothing."""
SMALL = 4_000
"""Characters. Work that has a bound, such as that on the first 200 brackets, still grows below; there a text must take less than SOON."""
SOON = 0.3
"""Seconds."""


@dataclass(frozen=True)
class Reader:
    """Something that reads a text, and the modules that its words are in."""

    read: Read
    modules: tuple[ModuleType, ...]
    heads: tuple[str, ...] = ("",)
    """Texts that open the door to it, such as `Action: `."""


class Text(NamedTuple):
    """A text of any length: a beginning, what is repeated behind it, and an end."""

    head: str
    piece: str
    tail: str = ""

    def of(self, size: int) -> str:
        return self.head + self.piece * max(1, (size - len(self.head)) // len(self.piece)) + self.tail


# --- readers ---


def readers() -> dict[str, Reader]:
    """Every reader by its name."""
    found: dict[str, Reader] = {}
    for agent in AGENTS.values():
        # a reply of ours up to each of its words
        own = agent.writer("TYPE", "a", "3" if agent.name in AGENTS and "web" in agent.name else (1, 2))
        heads = tuple(dict.fromkeys(["", *(own[: place.end()] for place in re.finditer(r"[^\w\s]+\s*", own))]))[:12]
        module = importlib.import_module(type(agent).__module__)
        for way, read in (("", agent.reader), (" strictly", agent.strict_reader)):
            found[f"{agent.name}{way}"] = Reader(read, (module, *_modules(read)), heads)
    for judge, verdict in verdict_rules.READERS.items():
        found[f"judge {judge}"] = Reader(verdict, (verdict_rules,))
    for part, ask in _LEXICAL.items():
        found[f"lexical model, {part}"] = Reader(ask, (builtin,), ("", "Task: ", "Task: Buy\n[1] link a\n"))
    for kind in final_answer.GROUNDINGS:
        found[f"answer {kind}"] = Reader(_answer(kind), (final_answer, *_modules(final_answer.parse_grounding_reply)))
    for rules in rule_sets.RULES.values():
        for rule in sorted({*rules.answer_rules, "url_match"} - {"fuzzy_match"}):
            found[f"{rules.name} {rule}"] = Reader(lambda text, rule=rules[rule]: rule(text, "a"), (rule_sets,))
            found[f"{rules.name} {rule}, reference"] = Reader(
                lambda text, rule=rules[rule]: rule("a", text), (rule_sets,)
            )
    # of the others, the browser reads the page and ends what takes too long
    query = "func:get_query_text(__page__, '"
    for locator in ("", f"{query}a')"):
        found[f"page at {locator}"] = Reader(
            lambda text, at=locator: locators.locate(locators.StoredPage("", text), at), _modules(locators.locate)
        )
    found["locator"] = Reader(lambda text: locators.locate(PAGE, f"{query}{text}"), (locators,), ("", "a')", "["))
    for name, read_folder in foreign_folders.READERS.items():
        module = importlib.import_module(read_folder.__module__)
        found[f"folder of {name}"] = Reader(_folder(name), (module,), ("", "Action: ANSWER; ", "Now given a task:"))
    for name, write in IMPORTED.items():
        importer = importers.IMPORTERS[name.partition(" ")[0]]
        read_module = importlib.import_module(importer.read.__module__)
        found[f"import of {name}"] = Reader(_imported(importer, write), (read_module, reading))
    for name, written in VERDICTS.items():
        found[f"verdicts of {name}"] = Reader(_verdicts(name, written), (judgements, stored_verdicts))
    found["redact"] = Reader(_redacted, (redaction,), ("", SECRET[:-1], "%2525", "\\\\"))
    for module in _all_modules():
        for name, function in vars(module).items():
            if (
                isinstance(function, FunctionType)
                and function.__module__ == module.__name__
                and _takes_a_text(name, function)
            ):
                found[f"{module.__name__.removeprefix('seeact_offline.')}.{name}"] = Reader(function, (module,))
    return found


PAGE = locators.StoredPage("http://a/", "<a>a</a>")
FILES: Mapping[str, Callable[[str], object]] = {
    "interact_messages.json": lambda text: [{"role": role, "content": text} for role in ("user", "assistant")],
    "result.json": lambda text: {"task": text, "action_history": [text], "thoughts": [text], "final_result_response": text},
    "*.json": lambda text: {"benchmark": text, "agent": text, "goal": text, "steps": [{"action": f"{verb}{text}"} for verb in ("", "send_msg_to_user(")]},
}  # fmt: skip
"""File by which a format of trajectories is known -> one whose texts are this text."""


def _folder(name: str) -> Read:
    def read(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "trajectory").mkdir()
            Path(folder, name.replace("*", "a")).write_text(json.dumps(FILES[name](text)))
            return list(foreign_folders.READERS[name](Path(folder)))

    return read


def _lexical(system: str, user: str) -> Read:
    """A question to the lexical model, a text in the place of `{}`."""

    def read(text: str) -> None:
        shown = (Message(role, told.replace("{}", text)) for role, told in (("system", system), ("user", user)))
        # it never waits
        builtin.LexicalModel().complete(Request(tuple(shown), StepKey("a", "b"), 0, 1)).send(None)

    return read


_LEXICAL = {
    "rules": _lexical("{}", "Task: Buy"),
    "page": _lexical("click [ID]", "Task: Buy\n{}\n[1] link Buy"),
    "history": _lexical("click [ID]", "Task: Buy\nPrevious action: click [1]{} where [1] is a"),
    "options": _lexical("", "Task: Buy\n{}\nA. link Buy\nB. None of"),
    "task": _lexical("", "Task: {}\n\nA. input Buy\nB. None of"),
}


IMPORTED: Mapping[str, Callable[[str], Mapping[str, object]]] = {
    "seeact": lambda text: {
        "run/prediction-a.jsonl": {"multichoice_id": 0, "gpt_output": [text, text], "prompt": [text]},
        "run/queries.jsonl": {"annotation_id": "a", "action_uid": "b", "choices": [["1", text], ["2", "a"]]},
    },
    "mindact rounds": lambda text: {"run": [["a_b", [[["1", "2"], ["", "", [["1", text], ["2", "a"]]], text]]]]},
    "mindact results": lambda text: {"run": [["a_b", text, text]]},
    "uground": lambda text: {
        "samples": {"annotation_id": "a", "action_uid": "b", "operation": text, "bbox": text, "total_steps": 1},
        "plan": {"annotation_id": "a", "action_uid": "b", "gpt_action": text, "description": text},
        "answers": {"annotation_id": "a", "action_uid": "b", "id": "a", "output": text, "scale": 1},
    },
    "replies": lambda text: {"run": {"annotation_id": "a", "action_uid": "b", "reply": text}},
    "table rows": lambda text: {"run": {"annotation_id": "a", "action_uid": "b", "op": text, "value": text, "point": text, "box": text}},
    "table": lambda text: {"run": f"annotation_id,action_uid,op,value,point\na,b,CLICK,,{text}\n{text}"},
    "mindact": lambda text: {"run": text},
}  # fmt: skip
"""Importer -> files whose texts are this text: an object, or a text as it is."""
VERDICTS: Mapping[str, Callable[[str], str]] = {
    "rows.jsonl": lambda text: json.dumps({"trajectory": "a", "verdict": True, "judge": text, "reply": text}) + "\n",
    "text.jsonl": lambda text: text,
    "text.csv": lambda text: f"trajectory,verdict,reply\na,true,{text}\n{text}",
    "human_label.json": lambda text: json.dumps([{"task_id": text, "a_human_label": "1", f"{text}_human_label": "0"}]),
    "a/m_eval_b_score_threshold_3_auto_eval_results.json": lambda text: json.dumps(
        {"task_id": text, "predicted_label": 1, "evaluation_details": {"response": text}}
    ),
    **{
        f"b/a/{judge}/t.json": lambda text: json.dumps(
            {"judge_model_name": text, "response": {"choices": [{"message": {"content": text}}]}}
        )
        for judge in ("aer", "nnetnav", "gpt")
    },
}
SECRET = "a%\\a%25a" * 4
"""Of letters that redaction spells in several ways."""


def _imported(importer: Any, write: Callable[[str], Mapping[str, object]]) -> Read:
    def read(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            sources = {}
            for name, content in write(text).items():
                path = Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(content if isinstance(content, str) else json.dumps(content), errors="replace")
                argument = name.partition("/")[0]
                sources[argument] = importers.Source(argument, Path(folder, argument))
            options = {"agent": "uitars"} if importer.name == "replies" else {}
            importers.looks_like(sources[argument].path)
            found = importers.read(importer, sources, **options)
            truth = Truth("a", "b", op="CLICK", value="", positives=frozenset("1"), picture_size=(1280, 2000))
            return [answer(truth) for answer in found.answers.values()]

    return read


def _verdicts(name: str, written: Callable[[str], str]) -> Read:
    def read(text: str) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written(text), errors="replace")
            # judgments of other programs are known by their folders
            return judgements.read_judgements(Path(folder) if name.endswith("/t.json") else path, "verdicts")

    return read


def _redacted(text: str) -> None:
    hidden = set(redaction._hidden)
    redaction.hide(SECRET)
    try:
        redaction.redact_reported(text)
        redaction.redact_values([text])
    finally:
        redaction._hidden.clear()
        redaction._hidden.update(hidden)


def _answer(kind: str) -> Read:
    return lambda text: final_answer.parse_grounding_reply(text, kind, 26)


def _all_modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(seeact_offline.__path__, "seeact_offline."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _takes_a_text(name: str, function: FunctionType) -> bool:
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return not name.startswith("_") and len(needed) == 1 and needed[0].name in TEXTS and needed[0].annotation == "str"


def _modules(read: Any) -> tuple[ModuleType, ...]:
    """The module of a reader, and those that it takes functions from."""
    read = getattr(read, "func", read)
    own = importlib.import_module(read.__module__)
    used = {value.__module__ for value in vars(own).values() if isinstance(value, FunctionType)} - {own.__name__}
    return own, *(importlib.import_module(name) for name in sorted(used) if name.startswith("seeact_offline."))


# --- texts ---


def texts(reader: Reader) -> list[Text]:
    """The texts for a reader: of signs, and of the patterns and words of its modules, behind each of its beginnings."""
    found = dict.fromkeys(Text(head, piece, tail) for piece in SIGNS for head in reader.heads for tail in ("", "!a"))
    for module in dict.fromkeys(reader.modules):
        found.update(
            dict.fromkeys(text._replace(head=head + text.head) for text in _texts_of(module) for head in reader.heads)
        )
    return list(found)


@cache
def _texts_of(module: ModuleType) -> tuple[Text, ...]:
    """Without docstrings; words that are no pattern are one that fits itself."""
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in told]
    compiled = [pattern.pattern for value in vars(module).values() for pattern in _patterns(value)]
    patterns = [text for text in (*compiled, *constants) if isinstance(text, str) and 1 < len(text) < 3000]
    return tuple(dict.fromkeys(text for pattern in dict.fromkeys(patterns) for text in _attacks(pattern)))


def _patterns(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _patterns(one)


def _attacks(pattern: str) -> Iterator[Text]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = sre_parse.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return
    pieces = list(_sample(parsed, {}))
    before = ""
    for sample, repeats in pieces:
        if repeats:
            yield Text(before, sample, "!a")
            yield Text("", before + sample)
        before += sample
    if before:
        yield Text("", before)
        yield Text("", before + "\n")


def _sample(parsed: Any, groups: dict[int, str]) -> Iterator[tuple[str, bool]]:
    """Pieces of a text that the pattern fits, and whether the pattern repeats each without end."""
    for op, argument in parsed:
        match str(op):
            case "LITERAL":
                yield chr(argument), False
            case "ANY" | "NOT_LITERAL":
                yield "a", False
            case "IN":
                signs = "a1 -,;:.[]()'\"<>=*`\n|/_{}é" + _named(argument)
                yield next((sign for sign in signs if _holds(argument, sign)), "a"), False
            case "BRANCH":
                yield from _sample(argument[1][0], groups)
            case "SUBPATTERN":
                inside = list(_sample(argument[3], groups))
                groups[argument[0]] = "".join(text for text, _ in inside)
                yield from inside
            case "ATOMIC_GROUP":
                yield from _sample(argument, groups)
            case "GROUPREF":
                yield groups.get(argument, ""), False
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, inside = argument
                text = "".join(piece for piece, _ in _sample(inside, groups))
                yield text * max(1, min(least, 3)), bool(text) and most > 100


def _named(items: Any) -> str:
    return "".join(chr(one if str(op) == "LITERAL" else one[0]) for op, one in items if str(op) in ("LITERAL", "RANGE"))


def _holds(items: Any, sign: str) -> bool:
    """Tells whether a set of characters holds this one, by compiling the set alone."""
    state = sre_parse.State()
    one = sre_parse.SubPattern(state, [(sre_constants.IN, items)])
    state.str = ""
    return re._compiler.compile(one).fullmatch(sign) is not None  # type: ignore[attr-defined]


# --- growth ---


def growth(read: Read, text: Text, largest: int) -> float:
    """The worst ratio of the times of texts of which one is twice as long, from SMALL to `largest` characters. A ratio beyond MOST counts as far
    as the next one confirms it, since memory has steps of its own. Without end where a small text takes longer than SOON."""
    # what is opened once is no part of the growth
    seconds(read, text.of(1))
    size, before, worst = 32, 0.0, 0.0
    while size <= largest:
        spent = seconds(read, text.of(size))
        if size < SMALL and spent > SOON:
            return float("inf")
        if size >= SMALL and spent > FLOOR and spent > MOST * before:
            # noise is never in the smallest of several times
            half, whole, double = (
                min(seconds(read, text.of(n)) for _ in range(3)) for n in (size // 2, size, 2 * size)
            )
            worst = max(worst, min(whole / max(half, FLOOR / 4), double / max(whole, FLOOR / 4)))
            if worst > MOST:
                return worst
        size, before = 2 * size, spent
    return worst


def seconds(read: Read, text: str) -> float:
    """Of the processor, without the collector of garbage, whose time depends on what others have left."""
    gc.disable()
    try:
        start = time.process_time()
        with suppress(Exception):
            read(text)
        return time.process_time() - start
    finally:
        gc.enable()
