"""Prompt packs: folders of plain text, one file a turn, with `{{name}}` where a step's own text goes.

`choice.turn1.txt` is turn 1 of the grounding `choice`; `turn1.txt` serves every grounding that lacks its own. One final
newline of a file is not part of the text. Single braces are ordinary characters.

Variants: `turn1.single.txt` serves models that are asked both turns in one message, `turn1.text.txt` questions without
a picture, `turn1.single.text.txt` both at once. The most specific file there is counts, the plain one is the last
resort.

Placeholders of turn 1: `task`; `history` (each previous action followed by a newline) or `history_lines` (the same
without the last newline); `history_count`; `html`, the page's markup, required where no picture is shown.
`{{history|TEXT}}` shows TEXT as the only line where nothing was done yet. A pack may have a `pack.json`:
`{"reply_prefix": TEXT, "only_with": {GROUNDING: {OPTION: VALUE}}}`. TEXT stands before the model's first reply where it
is handed back; the options are those that the wording fits, and no others.

`GROUNDING.examples.json`, `{"examples": [{"user": TEXT, "assistant": TEXT}]}`, holds worked examples, which stand
before turn 1 as they are.

Placeholders of turn 2 are the grounding's own (`grounding.strategy`): of choice `choices` (each option as `A. text`,
followed by a newline) and `none_label` (the letter after the last option), of annotation `labels` and `none_label`, and
so on.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Literal

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_text
from seeact_offline.records import PromptError, letter

MANIFEST, LIVE_ENDING, OURS = "pack.json", "turn2.live.txt", "seeact"
_PLACEHOLDER = re.compile(r"\{\{([^{}|\n]*)(?:\|([^{}\n]*))?\}\}")
_HISTORY = ("history", "history_lines")
# most bytes of one file of a pack, and most placeholders in it; the shipped files have 1,700 and four
MOST_BYTES = 256 * 1024
MOST_PLACEHOLDERS = 100


@dataclass(frozen=True, slots=True)
class Placeholders:
    """Placeholders of one turn."""

    known: tuple[str, ...] = ()
    required: tuple[tuple[str, ...], ...] = ()
    """One of each inner tuple must be there."""


_TURN1 = Placeholders(("task", *_HISTORY, "history_count"), (("task",), _HISTORY))
_TURN1_TEXT = Placeholders((*_TURN1.known, "html"), (*_TURN1.required, ("html",)))


class WorkedExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question and its answer, shown before the questions of a run."""

    user: str
    assistant: str


class _Examples(msgspec.Struct, forbid_unknown_fields=True):
    examples: tuple[WorkedExample, ...]


@dataclass(frozen=True, slots=True)
class PromptPack:
    """The checked templates of one grounding. Rendering is one pass: inserted text is never searched again."""

    name: str
    grounding: str
    system: str
    turn1: str
    turn2: str
    """Empty where a grounding asks no second turn."""
    digest: str
    """Sha256 over the three texts, and `reply_prefix` and examples where there are any."""
    turns: Literal[1, 2] = 2
    """1: both turns go into one message."""
    reply_prefix: str = ""
    """Stands before the model's first reply where it is handed back."""
    examples: tuple[WorkedExample, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """Texts of placeholders that are the same for every step."""

    def render_system(self) -> str:
        return self.system

    def render_turn1(self, task: str, history: Sequence[str], html: str = "") -> str:
        """`history`: texts of the previous actions, oldest first. `html`: the page, where no picture is shown."""
        fixed = {**self.values, "task": task, "history_count": str(len(history)), "html": html}

        def value(placeholder: re.Match[str]) -> str:
            name, fallback = placeholder.groups()
            if name not in _HISTORY:
                return fixed[name]
            lines = list(history) or ([fallback] if fallback is not None else [])
            return "\n".join(lines) if name == "history_lines" else "".join(f"{line}\n" for line in lines)

        return _PLACEHOLDER.sub(value, self.turn1)

    def render_turn2(self, choices: Sequence[str]) -> str:
        """`choices`: the options' texts in order, without letters and without the none option."""
        lines = "".join(f"{letter(i)}. {text}\n" for i, text in enumerate(choices))
        return self.fill_turn2({"choices": lines, "none_label": letter(len(choices))})

    def fill_turn2(self, values: Mapping[str, str]) -> str:
        """`values`: a text for every placeholder that the grounding's second turn may have."""
        texts = {**self.values, **values}
        return _PLACEHOLDER.sub(lambda placeholder: texts[placeholder[1]], self.turn2)

    def ending(self, text: str) -> PromptPack:
        """The pack with this text below its second turn."""
        digest = hashlib.sha256(json.dumps([self.digest, text]).encode()).hexdigest()
        return replace(self, turn2=f"{self.turn2}\n\n{text}", digest=digest)

    def messages(self, turn1: str, turn2: str) -> tuple[str, ...]:
        """The user's messages that carry these two rendered turns: two, or one that holds both."""
        return (turn1, turn2) if self.turns == 2 else (f"{turn1}\n\n{turn2}",)


def load_pack(
    name_or_dir: str | Path,
    grounding: str,
    turn2: Placeholders | None,
    *,
    turn1: Sequence[str] = (),
    lenders: Callable[[], Sequence[str]] = tuple,
    turns: Literal[1, 2] = 2,
    image: bool = True,
    variant: str = "",
    shared: bool = True,
    own: str = "",
) -> PromptPack:
    """The templates of `grounding` in a shipped pack (a name) or in a folder, checked.

    `turn2`: what its second turn may hold; None for a grounding that asks the first turn only, to which the first turn
    of any of the `lenders` belongs too. `turn1`: placeholders that the first turn may have beside the usual ones.
    `variant`: files that end in it, such as `turn1.VARIANT.txt`, come before the others. `shared`: False for one that
    uses no file which serves every grounding, and needs no system text. `own`: a template of its own for the first
    turn, where the pack has none.

    Raises PromptError: no such pack, no file for a turn, a file over MOST_BYTES or MOST_PLACEHOLDERS, not UTF-8, an
    unknown, missing or unclosed placeholder.
    """
    folder = _find(name_or_dir)
    pack = folder.name or str(name_or_dir)
    usual = _TURN1 if image else _TURN1_TEXT
    first = Placeholders((*usual.known, *turn1), usual.required)
    rules = {"system": Placeholders(), "turn1": first, "turn2": turn2 or Placeholders()}
    source = _Source(folder, pack, grounding, rules, turn2 is None, lenders, turns, image, variant, shared, own)
    system, first_turn, second_turn = texts = [source.load(turn) for turn in rules]
    prefix, examples = _manifest(folder).reply_prefix, source.load_examples()
    hashed = [*texts, *filter(None, [prefix]), *([example.user, example.assistant] for example in examples)]
    digest = hashlib.sha256(json.dumps(hashed).encode()).hexdigest()
    return PromptPack(pack, grounding, system, first_turn, second_turn, digest, turns, prefix, examples)


def only_with(name_or_dir: str | Path, grounding: str) -> Mapping[str, str | bool]:
    """The options of a grounding that the pack's wording fits; empty where it fits any. Raises PromptError."""
    return _manifest(_find(name_or_dir)).only_with.get(grounding, {})


def load_template(name_or_dir: str | Path, file: str, placeholders: Placeholders) -> str:
    """The text of one file of a pack, checked. Raises PromptError as `load_pack` does."""
    folder = _find(name_or_dir)
    where = f"{file} of the pack {folder.name or str(name_or_dir)!r}"
    if not folder.joinpath(file).is_file():
        raise PromptError("prompts", f"a file {where}", "none")
    text = _read(folder.joinpath(file), where)
    _check(text, placeholders, where)
    return text


def live_ending(name_or_dir: str | Path) -> str:
    """Reads the text that follows the second turn where an agent acts: the pack's own, else ours. Raises
    PromptError."""
    has_own = _find(name_or_dir).joinpath(LIVE_ENDING).is_file()
    return load_template(name_or_dir if has_own else OURS, LIVE_ENDING, Placeholders())


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fills a template in one pass: inserted text is never searched again. `values`: a text for each of its
    placeholders.

    >>> fill("Task: {{task}}. Choose {{none_label}} for none.", {"task": "buy {{none_label}}", "none_label": "C"})
    'Task: buy {{none_label}}. Choose C for none.'
    """
    return _PLACEHOLDER.sub(lambda placeholder: values[placeholder[1]], template)


class _Manifest(msgspec.Struct, forbid_unknown_fields=True):
    reply_prefix: str = ""
    only_with: dict[str, dict[str, str | bool]] = {}


def _manifest(folder: Traversable) -> _Manifest:
    file = folder.joinpath(MANIFEST)
    if not file.is_file():
        return _Manifest()
    try:
        return typed(read_json(_read(file, str(file))), _Manifest)
    except FormatError as error:
        raise PromptError("prompts", f"{error.expected} in {file}", error.got) from None


def shipped_packs() -> dict[str, Traversable]:
    """The packs that come with the project, by name: inside the package once installed, else those of the checkout."""
    roots: tuple[Traversable, ...] = (
        resources.files("seeact_offline").joinpath("_prompts"),
        Path(__file__).parents[2] / "prompts",
    )
    root = next((root for root in roots if root.is_dir()), None)
    folders = [f for f in root.iterdir() if f.is_dir() and f.name[:1] not in "._"] if root else []
    return {folder.name: folder for folder in sorted(folders, key=lambda f: f.name)}


def _find(name_or_dir: str | Path) -> Traversable:
    folder, shipped = Path(name_or_dir), shipped_packs()
    if isinstance(name_or_dir, Path) and folder.is_dir():  # `./seeact` as a Path has lost its `./`
        return folder.resolve()
    if str(name_or_dir) in shipped:
        return shipped[str(name_or_dir)]
    if str(name_or_dir) and folder.is_dir():
        return folder.resolve()
    names = ", ".join(shipped) or "none is shipped"
    raise PromptError("prompts", f"a folder or the name of a pack ({names})", repr(str(name_or_dir)))


@dataclass(frozen=True, slots=True)
class _Source:
    """A pack's folder, and the kind of question that its texts are for."""

    folder: Traversable
    pack: str
    grounding: str
    rules: Mapping[str, Placeholders]
    turn1_only: bool
    lenders: Callable[[], Sequence[str]]
    turns: Literal[1, 2]
    image: bool
    variant: str
    shared: bool
    own: str

    def load(self, turn: str) -> str:
        """The text of a turn, from the most specific file there is. Raises PromptError."""
        if turn == "turn2" and self.turn1_only:
            return ""
        names = self._names(turn)
        name = next((name for name in names if self.folder.joinpath(name).is_file()), None)
        if name is None and turn == "system" and not self.shared:
            return ""
        if name is None and turn == "turn1" and self.own:
            _check(self.own, self.rules[turn], f"the own template of {self.grounding}")
            return self.own
        if name is None:
            own = f"{self.grounding}.{turn}.txt"
            raise PromptError("prompts", f"a file {own} (or {turn}.txt) in the pack {self.pack!r}", "neither")
        where = f"{name} of the pack {self.pack!r}"
        text = _read(self.folder.joinpath(name), where)
        if (
            turn == "turn1"
            and not self.image
            and all(placeholder[1] != "html" for placeholder in _PLACEHOLDER.finditer(text))
        ):
            raise PromptError(
                "prompts", f"a file {names[0]} with {{{{html}}}}, as no picture is shown", f"{where}, which has none"
            )
        _check(text, self.rules[turn], where)
        if turn == "turn2" and not text.strip():
            raise PromptError("prompts", f"the text of the second turn in {where}", "an empty file")
        return text

    def load_examples(self) -> tuple[WorkedExample, ...]:
        """Reads the examples of the variant, else of the grounding, if there are any. Raises PromptError."""
        names = [f"{self.grounding}.examples.{self.variant}.json"] * bool(self.variant) + [
            f"{self.grounding}.examples.json"
        ]
        file = next((file for name in names if (file := self.folder.joinpath(name)).is_file()), None)
        if file is None:
            return ()
        where = f"{file.name} of the pack {self.pack!r}"
        try:
            return typed(read_json(_read(file, where)), _Examples).examples
        except FormatError as error:
            raise PromptError("prompts", f"{error.expected} in {where}", error.got) from None

    def _names(self, turn: str) -> list[str]:
        """Files that may hold the turn, the best first. The variant counts for more than whose file it is."""
        single, text = [".single"] * (self.turns == 1), [".text"] * (not self.image)
        variants = ["".join(single + text)] * bool(single and text) + text + single + [""]
        variants = [f"{usual}.{self.variant}" for usual in variants] * bool(self.variant) + variants
        prefixes = [f"{self.grounding}.", *([""] if self.shared else ())]
        if self.turn1_only and self.shared:
            prefixes += [f"{other}." for other in self.lenders()]
        return [f"{prefix}{turn}{variant}.txt" for variant in variants for prefix in prefixes]


def _read(file: Traversable, where: str) -> str:
    if isinstance(file, Path):
        text = read_text("prompts", file, where, largest=MOST_BYTES, kind=PromptError)
    else:
        # ours, in a zipped package
        text = file.read_text(encoding="utf-8")
    return text.replace("\r\n", "\n").removesuffix("\n")


def _check(text: str, rule: Placeholders, where: str) -> None:
    names = [placeholder[1] for placeholder in _PLACEHOLDER.finditer(text)]
    if len(names) > MOST_PLACEHOLDERS:
        raise PromptError("prompts", f"at most {MOST_PLACEHOLDERS} placeholders in {where}", f"{len(names):,}")
    for number, line in enumerate(text.split("\n"), start=1):
        if "{{" in line:
            _check_line(line, rule, f"line {number} of {where}")
    present = set(names)
    for either in rule.required:
        if present.isdisjoint(either):
            wanted = " or ".join(f"{{{{{name}}}}}" for name in either)
            raise PromptError("prompts", f"the placeholder {wanted} in {where}", "no line that has it")


def _check_line(line: str, rule: Placeholders, where: str) -> None:
    known = ", ".join(f"{{{{{name}}}}}" for name in rule.known) or "none, as this turn is fixed text"
    for placeholder in _PLACEHOLDER.finditer(line):
        name, fallback = placeholder.groups()
        shown = placeholder[0][:100]
        if name not in rule.known:
            raise PromptError("prompts", f"known placeholders ({known}) in {where}", shown)
        if fallback is not None and name not in _HISTORY:
            raise PromptError("prompts", f"a text for the empty case of {{{{history}}}} alone in {where}", shown)
    if "{{" in _PLACEHOLDER.sub("\n", line):
        raise PromptError("prompts", f"`}}}}` to close each placeholder in {where}", "`{{` without it")
