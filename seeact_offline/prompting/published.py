"""Makes a prompt pack from a checkout of the authors' repository (OSU-NLP-Group/SeeAct), or of a GUI agent's, without
running any of it.

The wording is spread over two modules: named texts in `prompts.py`, and the texts inside two functions of
`format_prompt_utils.py` that put the turns together (at 1477420; `generate_new_query_prompt` and `format_options`). How
those two put them together is known here: only their texts are read, and a function that does anything else is refused.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from seeact_offline.files.formats import FormatError, typed
from seeact_offline.files.named import read_named
from seeact_offline.records import PromptError

PROMPT_FILE = "src/data_utils/prompts.py"
FRAME_FILE = "src/data_utils/format_prompt_utils.py"
EXPERIMENTS = {"choice": "exp4", "attributes": "exp3", "annotation": "exp2"}
MANIFEST = {
    "reply_prefix": "\n\n",
    "only_with": {"annotation": {"marks": "letter", "mark_position": "bottom-left", "mark_turn1": True}},
}
"""The released code hands the first reply back after two line feeds, and its prompts speak of letters at the bottom
left corners of boxes, in the picture of the first turn too."""
SHAPES = {"generate_new_query_prompt": "7872f56a92822d30", "format_options": "6e3f03dd7ea81a20"}
"""The `_shape` of each function of the known release."""
N_TEXTS = 5
"""Texts in each of these functions, empty ones aside."""
MOST_BYTES = 64 * 1024
"""Size limit of a source file, and of every text made from it. The published sources have 21,000 and 9,000 bytes, the
turns 4,000."""
_SLOT = "\ufdd0"
"""Stands for what a function fills in: a code point that no text holds."""


def import_prompts(checkout: Path, out: Path) -> list[Path]:
    """Writes the turns of choice, attributes and annotation, `pack.json`, and `ORIGIN.txt` with digests of what was
    read.

    Returns the paths written. Raises PromptError, before anything is written, for a file, name or key that the checkout
    lacks, for texts put together in another way than in the known release, for a text that a pack cannot hold, and for
    an `out` that holds something else than a pack.
    """
    prompts, frames = Source(Path(checkout), PROMPT_FILE), Source(Path(checkout), FRAME_FILE)
    texts = prompts.texts()
    # the choices of turn 2: the letter of none of them in a sentence, a line for each, the last for none
    line, _, none, sentence, end = _known_texts(frames, "format_options")
    if line != f"{_SLOT}. {_SLOT}\n" or none.count(_SLOT) != 1 or sentence.count(_SLOT) != 1 or _SLOT in end:
        wanted = (
            f"a line `A. text` for every choice, and the letter after the last one, in {FRAME_FILE}, format_options"
        )
        raise PromptError("checkout", wanted, "another text")
    # turn 1 up to the question: the task after its lead, an empty line, a heading, and a line for each previous action
    lead, gap, heading, line_end, query_end = _known_texts(frames, "generate_new_query_prompt")
    if line_end != "\n":
        raise PromptError("checkout", f"a line for each previous action in {FRAME_FILE}", repr(line_end))
    files: dict[str, str] = {}
    for grounding, experiment in EXPERIMENTS.items():
        keys = ("system_prompt", "question_description", "referring_description", "element_format", "action_format")
        names = [f"{experiment}_prompt_dict[{key!r}]" for key in (*keys, "value_format")]
        system, question, referring, element, action, value = (
            _storable(texts.get(name), f"{name} of {PROMPT_FILE}") for name in names
        )
        options = f"{sentence}{{{{choices}}}}{none}{end}".replace(_SLOT, "{{none_label}}")
        files[f"{grounding}.system.txt"] = system
        files[f"{grounding}.turn1.txt"] = f"{lead}{{{{task}}}}{gap}{heading}{{{{history}}}}{query_end}{question}"
        parts = [
            f"{referring}\n\n" * bool(referring),
            options * (grounding == "choice"),
            f"{element}\n\n" * bool(element),
        ]
        files[f"{grounding}.turn2.txt"] = f"{''.join(parts)}{action}\n\n{value}"
    files = {name: f"{text}\n" for name, text in files.items()}
    manifest = {"pack.json": json.dumps(MANIFEST, indent=2) + "\n"}
    return _write(Path(out), files | _origin(prompts, frames) | manifest)


@dataclass(frozen=True, slots=True)
class PublishedPrompt:
    """The prompt of a GUI agent, as texts that its repository gives names to."""

    file: str
    """Python source inside the checkout."""
    turn1: str
    """Turn 1, with `[NAME]` where a text of that name goes."""
    system: str = ""
    """The name of the system text; empty for none."""
    fields: tuple[tuple[str, str], ...] = ()
    """Field that the repository fills in -> our placeholder, in the order in which they stand in turn 1."""
    beside: tuple[str, ...] = ()
    """Files of our own pack that belong to it, without their ending."""
    function: str = ""
    """The function whose own names these are; empty for those of the module."""


_UGROUND = PublishedPrompt(
    "offline_evaluation/Multimodal-Mind2Web/gpt_plan.py",
    "Task: {{task}}\n\nPrevious Actions:\n{{history}}\n[question_description]\n\n[action_format]\n\n[element_format]\n\n[value_format]",
    system="system_prompt",
    beside=("uground-grounder.turn1",),
)
PUBLISHED = {
    "aguvis": PublishedPrompt(
        "src/aguvis/constants.py", "[user_instruction]", "grounding_system_message",
        (("{overall_goal}", "{{task}}"), ("{previous_actions}", "{{history_lines|None}}")),
    ),
    "seeclick": PublishedPrompt(
        "agent_tasks/mind2web_test.py", "[prompt_origin]", fields=(("{}", "{{task}}"), ("{}", "{{history_lines}}"))
    ),
    "showui": PublishedPrompt("data/template/mind2web.py", "[_MIND2WEB_SYSTEM]Task: {{task}}\n{{history}}"),
    "uground": _UGROUND,
    "uground-blind": _UGROUND,
    "judge-webvoyager": PublishedPrompt(
        "evaluation/auto_eval.py", "[USER_PROMPT]", "SYSTEM_PROMPT",
        (("<task>", "{{task}}"), ("<answer>", "{{answer}}"), ("<num>", "{{count}}")), beside=("judge-webvoyager.turn2",),
    ),
    "judge-agenttrek": PublishedPrompt(
        "src/methods/agenttrek_eval.py", "[prompt]", "system_msg",
        (("{task}", "{{task}}"), ("{thoughts_and_actions}", "{{actions}}")), function="AgentTrek_eval",
    ),
    "judge-autonomouseval": PublishedPrompt(
        "src/methods/automomous_eval.py", "[prompt]", "system_msg",
        (("{task}", "{{task}}"), ("{last_actions}", "{{actions}}")), function="Autonomous_eval",
    ),
}  # fmt: skip
"""GUI agents whose prompts are constants of their repositories.

Sources: xlang-ai/aguvis 178c418, MinorJerry/WebVoyager 5a78967, OSU-NLP-Group/Online-Mind2Web ccdeb0d,
njucckevin/SeeClick 0ef37ac, showlab/ShowUI 21ed7cb, OSU-NLP-Group/UGround 3a9b9f2.
"""


MINDACT, MINDACT_FILE = "mindact", "src/action_prediction/dataloader.py"
MINDACT_FUNCTION, MINDACT_TEXT = "format_input_multichoice", "seq_input"
"""The code that words MindAct's multi-choice questions, and its variable. Source: OSU-NLP-Group/Mind2Web 1b7c323."""


def _import_mindact(checkout: Path, out: Path) -> list[Path]:
    """A line feed follows the page, which T5's tokenizers read as nothing."""
    source = Source(checkout, MINDACT_FILE)
    function = source.function(MINDACT_FUNCTION)
    # assignments in the order of the code, those inside `if` and `for` too
    assigned = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AugAssign)
        and MINDACT_TEXT
        in [getattr(name, "id", "") for name in getattr(node, "targets", [getattr(node, "target", None)])]
    ]
    texts = ["".join(_texts_in(node.value)) for node in sorted(assigned, key=lambda node: node.lineno)]
    # the task, a previous action, none of them, the question, an option
    if [text.count(_SLOT) for text in texts] != [1, 1, 0, 0, 2] or texts[1] != f"{_SLOT}\n" or texts[2][-1:] != "\n":
        raise _other_code(source, function)
    task, _, nothing, question, _ = (_storable(text, f"{MINDACT_FUNCTION} of {MINDACT_FILE}") for text in texts)
    history = f"{{{{history|{nothing[:-1]}}}}}"
    turn1 = f"{{{{html}}}}\n{task.replace(_SLOT, '{{task}}')}{history}{question}{{{{choices}}}}"
    files = {"mindact.system.seq2seq.txt": "\n", "mindact.turn1.seq2seq.txt": f"{turn1}\n"}
    return _write(out, files | _origin(source))


ARENA = "visualwebarena"
ARENA_FILES = {
    "": "agent/prompts/raw/p_cot_id_actree_3s.py",
    ".image": "agent/prompts/raw/p_multimodal_cot_id_actree_3s.py",
    ".som": "agent/prompts/raw/p_som_cot_id_actree_3s.py",
}
"""Ending of the pack's files -> source whose name `prompt` holds system text, examples and the form of a question.

Source: web-arena-x/visualwebarena 89f5af2."""
ARENA_FIELDS = {
    "{observation}": "{{observation}}", "{url}": "{{address}}", "{objective}": "{{task}}", "{previous_action}": "{{history_lines|None}}",
}  # fmt: skip
IMPORTABLE = (*PUBLISHED, ARENA, MINDACT)
"""Agents, judges and baselines whose published prompts can be imported."""


def import_agent_prompts(agent: str, checkout: Path, out: Path) -> list[Path]:
    """Writes the published prompt of a GUI agent as a pack. Returns the paths written.

    Raises PromptError, before anything is written, for an agent that is not in IMPORTABLE, and as `import_prompts`.
    """
    if agent == MINDACT:
        return _import_mindact(Path(checkout), Path(out))
    if agent == ARENA:
        return _import_arena(Path(checkout), Path(out))
    if agent not in PUBLISHED:
        wanted = f"an agent whose prompt is a constant of its repository ({', '.join(IMPORTABLE)})"
        raise PromptError(
            "from", wanted, f"{agent}, whose prompt is put together by code, lies in data or is not released"
        )
    published = PUBLISHED[agent]
    source = Source(Path(checkout), published.file)
    texts = source.texts(published.function)
    where = f"{published.function} in {published.file}" if published.function else published.file

    def text(name: str) -> str:
        return _storable(texts.get(name), f"{name} of {where}")

    turn1 = re.sub(r"\[(\w+)\]", lambda name: text(name[1]), published.turn1)
    for field, placeholder in published.fields:
        if field not in turn1:
            raise PromptError("checkout", f"{field} in the prompt of {published.file}", "none")
        turn1 = turn1.replace(field, placeholder, 1)
    files = {f"{agent}.turn1.txt": f"{turn1}\n"}
    if published.system:
        files[f"{agent}.system.txt"] = f"{text(published.system)}\n"
    if published.beside:
        from seeact_offline.prompting import shipped_packs

        ours = shipped_packs()["seeact"]
        files |= {f"{name}.txt": ours.joinpath(f"{name}.txt").read_text("utf-8") for name in published.beside}
    return _write(Path(out), files | _origin(source))


def _import_arena(checkout: Path, out: Path) -> list[Path]:
    """The pictures of examples stay behind: a pack is text."""
    files: dict[str, str] = {}
    sources = []
    for ending, file in ARENA_FILES.items():
        source = Source(checkout, file)
        sources.append(source)
        prompt = _arena_prompt(source)
        turn1 = _storable(prompt.template, f"template of {file}")
        for field, placeholder in ARENA_FIELDS.items():
            if (count := turn1.count(field)) != 1:
                raise PromptError("checkout", f"{field} once in the template of {file}", f"it {count} times")
            turn1 = turn1.replace(field, placeholder)
        examples = [{"user": user, "assistant": answer} for user, answer, *_ in prompt.examples]
        files[f"{ARENA}.system{ending}.txt"] = _storable(prompt.intro, f"intro of {file}") + "\n"
        files[f"{ARENA}.turn1{ending}.txt"] = f"{turn1}\n"
        files[f"{ARENA}.examples{ending}.json"] = json.dumps({"examples": examples}, indent=1) + "\n"
    return _write(out, files | _origin(*sources))


class _ArenaPrompt(msgspec.Struct):
    """The parts of a prompt that are used. An example is a question, its answer and perhaps a picture's path."""

    intro: str
    examples: list[Annotated[list[str], msgspec.Meta(min_length=2, max_length=3)]]
    template: str


def _arena_prompt(source: Source) -> _ArenaPrompt:
    """The literal that the source names `prompt`. Raises PromptError."""
    for node in source.body:
        if isinstance(node, ast.Assign) and [getattr(name, "id", "") for name in node.targets] == ["prompt"]:
            try:
                return typed(ast.literal_eval(node.value), _ArenaPrompt)
            except FormatError as error:
                raise PromptError("checkout", f"{error.expected} in `prompt` of {source.file}", error.got) from None
            except (ValueError, TypeError, RecursionError, MemoryError) as error:
                raise PromptError("checkout", f"a literal `prompt` in {source.file}", type(error).__name__) from None
    raise PromptError("checkout", f"a name `prompt` in {source.file}", "none")


class Source:
    """One parsed source file."""

    def __init__(self, checkout: Path, file: str) -> None:
        """`file`: its path inside the checkout. Raises PromptError for one that cannot be read."""
        self.file = file
        wanted = f"the file {file} in {checkout}"
        content = read_named("checkout", checkout / file, wanted, largest=MOST_BYTES, kind=PromptError)
        self.digest = hashlib.sha256(content).hexdigest()
        try:
            with warnings.catch_warnings():
                # odd escapes in other people's texts are not ours to report
                warnings.simplefilter("ignore")
                self.body = ast.parse(content).body
        except SyntaxError as error:
            raise PromptError("checkout", f"Python source in {file}, line {error.lineno}", error.msg) from error
        except (ValueError, RecursionError, MemoryError) as error:
            raise PromptError("checkout", f"Python source in {file}", str(error) or type(error).__name__) from error

    def function(self, name: str) -> ast.FunctionDef:
        """Raises PromptError for none."""
        for node in self.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        raise PromptError("checkout", f"a function {name} in {self.file}", "none")

    def texts(self, function: str = "") -> dict[str, str]:
        """Name -> text of the module's own assignments, or of a function's, and `TABLE[KEY]` -> text of those of
        dictionaries. Others, such as those inside `if`, are skipped."""
        texts: dict[str, str] = {}
        body = self.body
        if function:
            body = next((node.body for node in body if isinstance(node, ast.FunctionDef) and node.name == function), [])
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value):
                    entries = {name: value}
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    entries = {name: value}
                case _:
                    continue
            if isinstance(value, ast.Dict):
                pairs = zip(value.keys, value.values, strict=True)
                entries = {f"{name}[{key.value!r}]": entry for key, entry in pairs if isinstance(key, ast.Constant)}
            for entry, expression in entries.items():
                text = _text_of(expression, texts)
                # a name that is assigned something else is no longer known
                texts.pop(entry, None)
                if text is not None:
                    texts[entry] = text
        return texts


def _text_of(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """A literal, a known name, or an f-string of both; None for anything else, and for a text that no pack could
    hold."""
    match node:
        case ast.Constant(value=str(text)):
            resolved: str | None = text
        case ast.Name(id=name):
            resolved = known.get(name)
        case ast.JoinedStr(values=values):
            parts = [_text_of(value, known) for value in values]
            resolved = None if None in parts else "".join(part for part in parts if part is not None)
        case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
            resolved = _text_of(value, known)
        case _:
            resolved = None
    return resolved if resolved is not None and len(resolved) <= MOST_BYTES else None


def _known_texts(source: Source, name: str) -> list[str]:
    """The texts in a function of the known release, in order, with _SLOT for each place of an f-string; empty ones left
    out.

    Raises PromptError where the function lacks, or does anything else than the known one.
    """
    function = source.function(name)
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    is_known = _shape(function.args, *body) == SHAPES[name]
    # only a known function is walked through by recursion
    texts = [text for statement in body for text in _texts_in(statement) if text] if is_known else []
    if len(texts) != N_TEXTS:
        raise _other_code(source, function)
    return [_storable(text, f"{name} of {source.file}") for text in texts]


def _other_code(source: Source, function: ast.FunctionDef) -> PromptError:
    where = f"{source.file}, line {function.lineno}, {function.name}"
    return PromptError("checkout", f"texts put together as in the known release in {where}", "other code")


def _shape(*nodes: ast.AST) -> str:
    """16 hex digits of what code does, whatever its texts say and however its names are chosen."""
    numbers: dict[str, int] = {}
    words = []
    for node in (child for root in nodes for child in ast.walk(root)):
        name = getattr(node, "arg", None) or getattr(node, "id", None) or getattr(node, "attr", None)
        named = numbers.setdefault(name, len(numbers)) if isinstance(name, str) else ""
        value = getattr(node, "value", "")
        words.append(f"{type(node).__name__} {named} {value if isinstance(value, int) else ''}")
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]


def _texts_in(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        yield "".join(text if isinstance(text := getattr(part, "value", None), str) else _SLOT for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts_in(child)


def _storable(text: str | None, where: str) -> str:
    """The text, if a pack can hold it. Raises PromptError."""
    if text is None:
        raise PromptError("checkout", f"a text in {where}", "none, or one that is computed")
    for mark, name in (("{{", "`{{`"), ("\r", "a carriage return")):
        if mark in text:
            raise PromptError("checkout", f"text that a prompt pack can hold in {where}", name)
    return text


def _origin(*sources: Source) -> dict[str, str]:
    """`ORIGIN.txt`, with the digests of what was read."""
    digests = "".join(f"{source.file} sha256 {source.digest}\n" for source in sources)
    return {"ORIGIN.txt": f"Imported; the wording is its authors'.\n{digests}"}


def _write(out: Path, files: Mapping[str, str]) -> list[Path]:
    try:
        content = {out / name: text.encode("utf-8") for name, text in files.items()}
        for path, data in content.items():
            if len(data) > MOST_BYTES:
                raise PromptError("checkout", f"at most {MOST_BYTES:,} bytes in {path.name}", f"{len(data):,}")
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
