"""Make a prompt pack from a checkout of the authors' repository (OSU-NLP-Group/SeeAct), without running any of it.

The wording is spread over two modules: constants in `prompts.py`, and sentences inside two functions of
`format_prompt_utils.py` that put the turns together. `text_code` works out what those return for stand-in texts. A
template is read off what they return for two entries (previous actions, options) and for three, and refused unless it
gives what they return for every other number of entries too.

What a checkout can cost is bounded, whatever is in it: the size of each file, and the `Budget` of each.
"""

from __future__ import annotations

import ast
import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..records import PromptError, letter
from .text_code import COUNT, MARK, Budget, Refused, Value, at_most, call, module_names, parameters

PROMPT_FILE = "src/data_utils/prompts.py"
FRAME_FILE = "src/data_utils/format_prompt_utils.py"
QUERY_FUNCTION, OPTIONS_FUNCTION = "generate_new_query_prompt", "format_options"
EXPERIMENTS = {"choice": "exp4", "attributes": "exp3", "annotation": "exp2"}
MANIFEST: dict[str, Any] = {
    "reply_prefix": "\n\n",
    "only_with": {"annotation": {"marks": "letter", "mark_position": "bottom-left", "mark_turn1": True}},
}
"""What the released code does beside the wording: it hands the first reply back after two line feeds, and its prompts speak of
letters at the bottom left corners of boxes, in the picture of the first turn too."""
_CONSTANTS = ("sys_prompt", "action_format", "value_format", *(f"question_description_new_exp{n}" for n in (2, 3, 4)))
_KEYS = "system_prompt question_description referring_description element_format action_format value_format".split()
_ROLES = {"task": "task", "action": "history", "histor": "history", "question": "question", "descr": "question"}
_ROLES |= {"sys": "system", "role": "system"}
# a parameter plays the role of the first fragment that its name contains
_OPTIONS, _ACTIONS = range(1, 26), range(1, 41)
"""Numbers of entries that are tried; options no further than the letter Z."""

# Most bytes of a source file, and of a file of the pack that comes out. The published sources have 21,000 and 9,000
# bytes, the files 4,000. Python takes 0.5 s for the slowest source of this size, and 7 s for one four times as long.
MOST_BYTES = 64 * 1024
# Most placeholders of one turn: what a pack may have. The published turns have three.
MOST_PLACEHOLDERS = 100


def import_prompts(checkout: Path, out: Path, groundings: Sequence[str] = tuple(EXPERIMENTS)) -> list[Path]:
    """Write the turns of `groundings` and `ORIGIN.txt` (digests of what was read) to `out`; the paths written.

    Raises PromptError, before anything is written: a file, name or key that the checkout lacks, code that cannot be
    followed or costs more than its Budget, text that a pack cannot hold, or an `out` that holds something else than a
    pack.
    """
    prompts, frames = _read_module(Path(checkout), PROMPT_FILE), _read_module(Path(checkout), FRAME_FILE)
    published, options = _published(prompts), _options_template(frames)
    files: dict[str, str] = {}
    for grounding in groundings:
        texts = published[EXPERIMENTS[grounding]]
        system, turn1 = _query_templates(frames, texts["system_prompt"], texts["question_description"])
        turn2 = _turn2(texts, options if grounding == "choice" else "")
        turns = {"system": system, "turn1": turn1, "turn2": turn2}
        files |= {f"{grounding}.{turn}.txt": f"{text}\n" for turn, text in turns.items()}
    origin = "".join(f"{module.file} sha256 {module.digest}\n" for module in (prompts, frames))
    return _write(
        Path(out),
        files | {"ORIGIN.txt": f"Imported; the wording is its authors'.\n{origin}", "pack.json": _manifest(groundings)},
    )


def _manifest(groundings: Sequence[str]) -> str:
    """Of the groundings that are written."""
    only_with = {name: options for name, options in MANIFEST["only_with"].items() if name in groundings}
    return json.dumps({**MANIFEST, "only_with": only_with}, indent=2) + "\n"


def _turn2(texts: Mapping[str, str], options: str) -> str:
    before, element = texts["referring_description"], texts["element_format"]
    after = [*([element] if element else []), texts["action_format"], texts["value_format"]]
    return (f"{before}\n\n" if before else "") + options + "\n\n".join(after)


def _write(out: Path, files: Mapping[str, str]) -> list[Path]:
    try:
        content = {out / name: text.encode("utf-8") for name, text in files.items()}
        for path, data in content.items():
            at_most(MOST_BYTES, "bytes", len(data), path.name)
        if out.is_dir() and any(out.iterdir()) and not any(out.glob("*turn[12].txt")):
            raise PromptError("out", "a new folder, an empty one or a prompt pack", f"{out} with other files")
        out.mkdir(parents=True, exist_ok=True)
        for path, data in content.items():
            path.write_bytes(data)
    except OSError as error:
        raise PromptError("out", "a folder that a prompt pack can be written to", f"{out}: {error.strerror}") from error
    except UnicodeEncodeError as error:
        raise PromptError("checkout", f"text that UTF-8 can write in {PROMPT_FILE}", error.reason) from error
    return list(content)


@dataclass(frozen=True)
class Module:
    """One parsed source file."""

    file: str
    """Its path inside the checkout."""
    tree: ast.Module
    digest: str
    budget: Budget

    def names(self) -> dict[str, Value]:
        """What its names hold: read anew each time, so that no call can leave anything to the next."""
        return module_names(self.tree, self.budget)

    def function(self, name: str) -> ast.FunctionDef:
        function = self.names().get(name)
        if not isinstance(function, ast.FunctionDef):
            raise PromptError("checkout", f"a function {name} in {self.file}", _described(function))
        return function

    def returned(self, name: str, given: Mapping[str, Value]) -> list[str]:
        """The texts that the function returns for the values of its parameters."""
        names = self.names()
        try:
            value = call(names[name], given, names, self.budget)
        except Refused as refused:
            where = f"{self.file}, line {refused.line}, {name}"
            raise PromptError("checkout", f"code that can be followed in {where}", str(refused)) from refused
        entries = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        # one text may stand there any number of times, and each is looked through
        self.budget.charge(len(entries), sum(len(entry) for entry in entries if isinstance(entry, str)))
        return [_text(entry, f"{self.file}, {name}") for entry in entries]


def _read_module(checkout: Path, file: str) -> Module:
    path = checkout / file
    try:
        if path.exists() and not path.is_file():
            # a pipe would be waited for, a device read forever
            raise PromptError("checkout", f"the file {file} in {checkout}", "something that is no file")
        with path.open("rb") as stream:
            source = stream.read(MOST_BYTES + 1)
            at_most(MOST_BYTES, "bytes", max(len(source), path.stat().st_size), file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in other people's strings are not ours to report
            return Module(file, ast.parse(source), hashlib.sha256(source).hexdigest(), Budget(file))
    except OSError as error:
        raise PromptError("checkout", f"the file {file} in {checkout}", f"{error.strerror}") from error
    except SyntaxError as error:
        raise PromptError("checkout", f"Python source in {file}, line {error.lineno}", error.msg) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise PromptError("checkout", f"Python source in {file}", str(error) or type(error).__name__) from error


def _published(module: Module) -> dict[str, dict[str, str]]:
    """The texts of the three prompt dictionaries, by experiment and key."""
    names = module.names()
    for name in _CONSTANTS:
        _text(names.get(name), f"{module.file}, {name}")
    return {name: _dictionary(names, f"{name}_prompt_dict", module.file) for name in EXPERIMENTS.values()}


def _dictionary(names: Mapping[str, Value], name: str, file: str) -> dict[str, str]:
    table = names.get(name)
    if not isinstance(table, dict):
        raise PromptError("checkout", f"a dictionary of texts in {file}, {name}", _described(table))
    return {key: _text(table.get(key), f"{file}, {name}[{key!r}]") for key in _KEYS}


def _text(value: Value, where: str) -> str:
    if not isinstance(value, str):
        raise PromptError("checkout", f"a text put together from texts in {where}", _described(value))
    at_most(MOST_BYTES, "characters", len(value), where)
    return _storable(value, where)


def _described(value: Value) -> str:
    if isinstance(value, Refused):
        return f"{value} on line {value.line}, which is not followed"
    return "none" if value is None else f"a value of type {type(value).__name__}"


def _storable(text: str, where: str) -> str:
    for mark, name in (("{{", "`{{`"), ("\r", "a carriage return")):
        if mark in text:
            raise PromptError("checkout", f"text that a prompt pack can hold in {where}", name)
    return text


# ---- templates from what the two functions return ------------------------------------------------------------------

_TASK, _SYSTEM, _QUESTION, _LINES = (f"{MARK}{name}{MARK}" for name in ("task", "system", "question", "lines"))
Sized = Callable[[int], str]
"""A text by the number of entries."""


def _entries(size: int) -> list[str]:
    return [f"{MARK}entry {i}{MARK}" for i in range(size)]


def _template(returned: Sized, lines: Sized, count: Sized, sizes: Sequence[int]) -> str | None:
    """What is returned, with _LINES for `lines` and COUNT for `count`; None unless that holds for all `sizes`."""
    pair = [returned(size).replace(lines(size), _LINES) for size in (2, 3)]
    template = "".join(low if low == high else COUNT for low, high in zip(*pair, strict=False))
    fits = all(returned(n) == template.replace(COUNT, count(n)).replace(_LINES, lines(n)) for n in sizes)
    return template if fits and _LINES in template else None


def _notation(template: str, placeholders: Mapping[str, str], where: str) -> str:
    text = _storable(template, where)
    at_most(MOST_PLACEHOLDERS, "placeholders", sum(map(text.count, placeholders)), where)
    for mark, name in placeholders.items():
        text = text.replace(mark, f"{{{{{name}}}}}")
    if {MARK, COUNT} & set(text):
        raise PromptError(
            "checkout", f"nothing but what a prompt pack has placeholders for in {where}", repr(text[:200])
        )
    return text


def _inserted(template: str, texts: Mapping[str, str], where: str) -> str:
    """The template with the texts in place of their marks."""
    added = sum(template.count(mark) * (len(text) - len(mark)) for mark, text in texts.items())
    at_most(MOST_BYTES, "characters", len(template) + added, where)
    for mark, text in texts.items():
        template = template.replace(mark, text)
    return template


def _options_template(module: Module) -> str:
    """The template of the choices; it starts after the referring description and ends before the answer's format."""
    function = module.function(OPTIONS_FUNCTION)
    names, where = parameters(function), f"{module.file}, line {function.lineno}, {OPTIONS_FUNCTION}"
    name = next((name for name in names if "choice" in name or "option" in name), "choices")

    def returned(size: int) -> str:
        choices = [[f"{MARK}id {i}{MARK}", text] for i, text in enumerate(_entries(size))]  # upstream: [id, text]
        texts = module.returned(OPTIONS_FUNCTION, {name: choices})
        return texts[0] if len(texts) == 1 else ""

    def lines(size: int) -> str:
        return "".join(f"{letter(i)}. {text}\n" for i, text in enumerate(_entries(size)))

    template = _template(returned, lines, letter, _OPTIONS)
    if template is None or COUNT not in template:
        wanted = "a line `A. text` for every choice, and the letter after the last one"
        raise PromptError("checkout", f"{wanted}, in {where}", "another text")
    return _notation(template, {_LINES: "choices", COUNT: "none_label"}, where)


def _query_templates(module: Module, system: str, question: str) -> tuple[str, str]:
    """The system text and the template of turn 1."""
    function = module.function(QUERY_FUNCTION)
    where = f"{module.file}, line {function.lineno}, {QUERY_FUNCTION}"
    roles = {name: next((r for part, r in _ROLES.items() if part in name.lower()), "") for name in parameters(function)}
    known: dict[str, Value] = {"task": _TASK, "system": system and _SYSTEM, "question": question and _QUESTION}

    @cache
    def texts(size: int) -> list[str]:
        values = known | {"history": _entries(size)}
        return module.returned(QUERY_FUNCTION, {name: values[role] for name, role in roles.items() if role})

    at = next((i for i, text in enumerate(texts(2)) if _TASK in text and known["question"] in text), None)
    if at is None:
        wanted = "a returned text with its parameters for the task and the question"
        raise PromptError("checkout", f"{wanted}, in {where}", "none")
    others = [text for i, text in enumerate(texts(2)) if i != at and known["system"] in text]
    told = others[0] if others else "" if _SYSTEM in texts(2)[at] else system
    if others and not all(told in texts(size) for size in (0, *_ACTIONS)):
        wanted = "a system text that is the same for any number of previous actions"
        raise PromptError("checkout", f"{wanted}, in {where}", "one that changes")
    turn1, history = _history(lambda size: "".join(texts(size)[at : at + 1]), where)
    told, turn1 = (_inserted(text, {_SYSTEM: system, _QUESTION: question}, where) for text in (told, turn1))
    return _notation(told, {}, where), _notation(turn1, {_TASK: "task", _LINES: history, COUNT: "history_count"}, where)


def _history(query: Sized, where: str) -> tuple[str, str]:
    """The template of turn 1, and the placeholder for its _LINES with what is written where there is none."""
    template = _template(query, lambda size: "".join(f"{text}\n" for text in _entries(size)), str, _ACTIONS)
    if template is None:
        wanted = "a line for each previous action, and nothing else that depends on them"
        raise PromptError("checkout", f"{wanted}, in {where}", "another text")
    empty, (before, _, after) = query(0), template.replace(COUNT, "0").partition(_LINES)
    if before + after == empty:
        return template, "history"
    line = empty[len(before) : len(empty) - len(after) - 1]
    if f"{before}{line}\n{after}" != empty or set(line) & {*"{}\n\r", MARK, COUNT}:
        wanted = "at most one line in place of the actions where there is none"
        raise PromptError("checkout", f"{wanted}, in {where}", "another text")
    return template, f"history|{line}"
