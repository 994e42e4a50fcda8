"""Packs made from the source of the authors' two modules, which is read and never run."""

from __future__ import annotations

import ast
import json
import os
import re
import string
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seeact_offline.grounding.strategies import open_pack
from seeact_offline.prompt_import import FRAME_FILE, PROMPT_FILE, import_prompts
from seeact_offline.prompt_import.text_code import Budget, module_names
from seeact_offline.prompting import only_with
from seeact_offline.records import PromptError

KEYS = "system_prompt question_description referring_description element_format action_format value_format".split()

# Invented wording, in the places where the authors' modules have theirs.
PROMPTS = r'''
from .format_prompt_utils import format_options
sys_prompt = """You are a
\"tester\"."""
action_format = "ACT: one of {A, B}."
value_format: str = "VAL: a\n" \
    "or b" + "."
question_description_new_exp4 = "Why {four}?"
question_description_new_exp3 = "Why three?"
question_description_new_exp2 = question_description_new_exp4
alias = value_format
exp4_prompt_dict = {"system_prompt": sys_prompt, "question_description": question_description_new_exp4,
    "referring_description": f"""Four: {{braces}} and {action_format}""", "element_format": "EL",
    "action_format": f"{action_format}", "value_format": f"{alias}"}
exp3_prompt_dict = {**exp4_prompt_dict, "question_description": question_description_new_exp3,
    "referring_description": f"", "element_format": "EL3"}
exp2_prompt_dict = dict(system_prompt=sys_prompt, question_description=question_description_new_exp2,
    referring_description="Two", element_format="", action_format=action_format, value_format=value_format)
'''

LETTERS = """
import string
def label_of(index):
    if index < 26:
        return string.ascii_uppercase[index]
    return string.ascii_uppercase[(index - 26) // 26] + string.ascii_uppercase[(index - 26) % 26]
"""

QUERIES = {
    "pieces appended one by one": '''
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
    """Some words."""
    role = "" + system_prompt
    prompt = ""
    prompt += "Your task, please: "
    prompt += task
    prompt += "\\n\\n"
    earlier = "Before:\\n"
    if previous_actions is None:
        previous_actions = []
    for action in previous_actions:
        earlier += action
        earlier += "\\n"
    prompt += earlier
    prompt += "\\n"
    prompt += question_description
    return [role, prompt]
''',
    "one f-string, parameters in another order": """
def generate_new_query_prompt(question_description, previous_actions, task, system_prompt, debug=False):
    actions = "".join(f"{action}\\n" for action in previous_actions or [])
    text = f"Your task, please: {task}\\n\\nBefore:\\n{actions}\\n{question_description}"
    print(text)
    return system_prompt, text
""",
    "sums and a helper": """
HEAD = "Your task, please: "
def _lines(actions, end="\\n"):
    text: str = ""
    for number, action in enumerate(actions):
        text = text + action + end
    return text
def generate_new_query_prompt(task="", question_description="", *, system_prompt="", previous_actions=None):
    previous_actions = [] if previous_actions is None else list(previous_actions)
    text = HEAD + task + "\\n" * 2 + "Before:\\n" + _lines(previous_actions) + "\\n" + question_description
    return {"system": system_prompt, "user": text}
""",
    "newline before each action": """
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
    text = "Your task, please: {}\\n\\nBefore:".format(task)
    for i in range(len(previous_actions)):
        text += "\\n" + previous_actions[i]
    return [system_prompt, text + "\\n\\n" + question_description]
""",
    "joined lines": """
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
    parts = ["Your task, please: " + task, "", "Before:\\n" + "\\n".join(previous_actions)]
    if question_description != "":
        parts.append("\\n" + question_description)
    return [system_prompt, "\\n".join(parts)]
""",
    "a list that a loop adds to": """
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
    parts = []
    parts += ["Your task, please: ", task, "\\n\\nBefore:\\n"]
    for action in previous_actions:
        parts.append(action)
        parts.append("\\n")
    parts.extend(["\\n", question_description])
    return [system_prompt, "".join(parts)]
""",
    "another text when there is no action": """
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
    text = "Your task, please: " + task + "\\n\\nBefore:\\n"
    if len(previous_actions) > 0:
        for action in previous_actions:
            text += f"{action}\\n"
    else:
        text += "Nothing.\\n"
    return [system_prompt, text + "\\n" + question_description]
""",
    "the system text inside the turn, the number of actions shown": """
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
    text = system_prompt + "\\n" + task + f"\\n{len(previous_actions)} before:\\n"
    for action in previous_actions:
        text += action + "\\n"
    return ["", text + question_description]
""",
}

OPTIONS = {
    "pieces appended one by one": """
def format_options(choices):
    result = ""
    offered = ''
    none_label = ''
    lines = ''
    for at, choice in enumerate(choices):
        lines += f"{label_of(at)}. {choice[1]}\\n"
        offered += f"{label_of(at)}, "
        none_label = label_of(at + 1)
    lines += f"{none_label}. Nothing fits"
    result += f"Say {none_label} if nothing fits.\\n"
    result += (lines + '\\n\\n')
    return result
""",
    "joined lines": """
NONE = "Nothing fits"
def format_options(choices, unused=None):
    lines = [f"{label_of(i)}. {text}" for i, (_, text) in enumerate(choices)]
    last = label_of(len(choices))
    lines.append(f"{last}. {NONE}")
    return f"Say {last} if nothing fits.\\n" + "\\n".join(lines) + "\\n\\n"
""",
    "a running number": """
def format_options(choices):
    number = 0
    text = ""
    for choice in choices:
        letter = label_of(number)
        text = text + letter + ". " + choice[1] + "\\n"
        number += 1
    name = label_of(number)
    return "Say " + name + " if nothing fits.\\n" + text + name + ". Nothing fits" + "\\n\\n"
""",
    "character codes": """
def format_options(choices):
    text = ""
    for i in range(len(choices)):
        text += chr(ord("A") + i) + ". " + choices[i][-1] + "\\n"
    last = chr(65 + len(choices))
    return f"Say {last} if nothing fits.\\n{text}{last}. Nothing fits\\n\\n"
""",
}
PLAIN_QUERY, PLAIN_OPTIONS = QUERIES["pieces appended one by one"], OPTIONS["pieces appended one by one"]
PLAIN_FRAMES = LETTERS + PLAIN_QUERY + PLAIN_OPTIONS


def write_checkout(folder: Path, prompts: str = PROMPTS, frames: str = PLAIN_FRAMES) -> Path:
    for file, source in ((PROMPT_FILE, prompts), (FRAME_FILE, frames)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(source, encoding="utf-8")
    return folder


def refusal(folder: Path, prompts: str = PROMPTS, frames: str = PLAIN_FRAMES) -> str:
    with pytest.raises(PromptError) as caught:
        import_prompts(write_checkout(folder / "checkout", prompts, frames), folder / "out")
    assert not (folder / "out").exists()
    return str(caught.value)


def run_frames(source: str) -> dict[str, Any]:
    """What Python makes of invented frame code: the truth to compare with."""
    names: dict[str, Any] = {}
    exec(source, names)
    return names


@pytest.mark.parametrize("history", [[], ["a -> CLICK"], ["a", "{b}", "c"]])
@pytest.mark.parametrize("style", QUERIES)
def test_turn1_renders_what_the_function_returns(tmp_path: Path, style: str, history: list[str]) -> None:
    import_prompts(write_checkout(tmp_path, frames=LETTERS + QUERIES[style] + PLAIN_OPTIONS), tmp_path / "out")
    given_texts = {"system_prompt": 'You are a\n"tester".', "question_description": "Why {four}?"}
    returned = run_frames(QUERIES[style])["generate_new_query_prompt"](
        task="buy {tea}", previous_actions=history, **given_texts
    )
    expected = list(returned.values() if isinstance(returned, dict) else returned)
    pack = open_pack(tmp_path / "out", "choice")
    assert [pack.render_system(), pack.render_turn1("buy {tea}", history)] == expected


@pytest.mark.parametrize("count", [1, 2, 25])
@pytest.mark.parametrize("style", OPTIONS)
def test_turn2_of_choice_holds_what_format_options_returns(tmp_path: Path, style: str, count: int) -> None:
    frames = LETTERS + PLAIN_QUERY + OPTIONS[style]
    import_prompts(write_checkout(tmp_path, frames=frames), tmp_path / "out")
    choices = [[str(900 + i), f"<b id={i}>"] for i in range(count)]
    options = run_frames(frames)["format_options"](choices)
    rendered = open_pack(tmp_path / "out", "choice").render_turn2([text for _, text in choices])
    start = "Four: {braces} and ACT: one of {A, B}.\n\n"
    assert rendered == start + options + "EL\n\nACT: one of {A, B}.\n\nVAL: a\nor b."


def test_a_label_function_from_elsewhere_names_the_options(tmp_path: Path) -> None:
    frames = "from .letters import label_of\n" + PLAIN_QUERY + PLAIN_OPTIONS
    import_prompts(write_checkout(tmp_path, frames=frames), tmp_path / "out")
    assert "Say B if nothing fits.\nA. x\nB. Nothing" in open_pack(tmp_path / "out", "choice").render_turn2(["x"])


def test_turn2_leaves_out_empty_parts_and_options_for_the_other_groundings(tmp_path: Path) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    end = "ACT: one of {A, B}.\n\nVAL: a\nor b."
    assert open_pack(tmp_path / "out", "attributes").render_turn2([]) == f"EL3\n\n{end}"
    assert open_pack(tmp_path / "out", "annotation").render_turn2([]) == f"Two\n\n{end}"


def test_each_grounding_has_its_own_question(tmp_path: Path) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    assert open_pack(tmp_path / "out", "attributes").turn1.endswith("Why three?")
    assert open_pack(tmp_path / "out", "annotation").turn1.endswith("Why {four}?")


def test_the_written_files_are_returned_with_an_origin_that_holds_digests_only(tmp_path: Path) -> None:
    paths = import_prompts(write_checkout(tmp_path), tmp_path / "out")
    assert sorted(paths) == sorted((tmp_path / "out").iterdir())
    assert len(paths) == 11
    origin = (tmp_path / "out" / "ORIGIN.txt").read_text(encoding="utf-8")
    assert len(re.findall(r"^src/data_utils/\w+\.py sha256 [0-9a-f]{64}$", origin, re.M)) == 2


def test_the_pack_says_what_its_wording_fits(tmp_path: Path) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    expected = {"marks": "letter", "mark_position": "bottom-left", "mark_turn1": True}
    assert only_with(tmp_path / "out", "annotation") == expected
    assert only_with(tmp_path / "out", "choice") == {}


def test_the_first_reply_is_handed_back_after_two_line_feeds(tmp_path: Path) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    assert open_pack(tmp_path / "out", "choice").reply_prefix == "\n\n"


def test_nothing_of_the_checkout_is_executed(tmp_path: Path) -> None:
    trap = f"open({str(tmp_path / 'trace')!r}, 'w').close()\nimport nosuchmodule\nraise SystemExit(3)\n"
    write_checkout(tmp_path, trap + PROMPTS + trap, trap + PLAIN_FRAMES + trap)
    import_prompts(tmp_path, tmp_path / "out")
    assert open_pack(tmp_path / "out", "choice").turn2
    assert not (tmp_path / "trace").exists()


def test_code_beside_the_text_does_not_disturb(tmp_path: Path) -> None:
    extra = """
import logging
class Helper:
    def text(self): return 1
try:
    import torch
except ImportError:
    torch = None
sizes = [n for n in range(3) if n]
with open("x") as file:
    content = file.read()
def other(): yield content
while sizes: sizes.pop()
if __name__ == "__main__":
    sys_prompt = "no"
"""
    import_prompts(write_checkout(tmp_path / "a", PROMPTS + extra, extra + PLAIN_FRAMES), tmp_path / "noisy")
    import_prompts(write_checkout(tmp_path / "b"), tmp_path / "plain")
    assert open_pack(tmp_path / "noisy", "choice").digest == open_pack(tmp_path / "plain", "choice").digest


@pytest.mark.parametrize(
    "name",
    ["sys_prompt", "action_format", "value_format"]
    + [f"question_description_new_exp{n}" for n in (2, 3, 4)]
    + [f"exp{n}_prompt_dict" for n in (2, 3, 4)],
)
def test_a_missing_constant_is_named(tmp_path: Path, name: str) -> None:
    message = refusal(tmp_path, re.sub(rf"\b{name}\b", "renamed", PROMPTS))
    assert PROMPT_FILE in message
    assert name in message


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named_with_its_dictionary(tmp_path: Path, key: str) -> None:
    message = refusal(tmp_path, PROMPTS.replace(f'"{key}":', '"other":', 1))
    assert "exp4_prompt_dict" in message
    assert repr(key) in message


@pytest.mark.parametrize("name", ["generate_new_query_prompt", "format_options"])
def test_a_missing_function_is_named(tmp_path: Path, name: str) -> None:
    message = refusal(tmp_path, frames=PLAIN_FRAMES.replace(f"def {name}", "def other"))
    assert FRAME_FILE in message
    assert name in message


@pytest.mark.parametrize("file", [PROMPT_FILE, FRAME_FILE])
def test_a_missing_file_is_named(tmp_path: Path, file: str) -> None:
    (write_checkout(tmp_path) / file).unlink()
    with pytest.raises(PromptError, match=re.escape(file)):
        import_prompts(tmp_path, tmp_path / "out")


def test_a_file_that_is_not_python_is_named_with_its_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, "x = 1\ny = = 2\n") == (
        f"checkout: expected Python source in {PROMPT_FILE}, line 2, got invalid syntax"
    )


def test_a_constant_that_is_computed_is_named_with_its_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, "sys_prompt = open('x').read()\n" + PROMPTS.replace("sys_prompt =", "unused ="))
    assert "sys_prompt" in message
    assert "line 1" in message


def test_a_value_of_a_dictionary_that_is_computed_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, PROMPTS.replace('"element_format": "EL"', '"element_format": pick("EL")', 1))
    assert "exp4_prompt_dict['element_format']" in message
    assert "line 1" in message


def test_two_opening_braces_in_the_text_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, PROMPTS.replace("Why three?", "Why {{three}}?"))
    assert "question_description_new_exp3" in message
    assert "`{{`" in message


def edit(old: str, new: str) -> Callable[[str], str]:
    def apply(source: str) -> str:
        assert old in source
        return source.replace(old, new)

    return apply


@pytest.mark.parametrize(
    ("change", "function"),
    [
        (edit("prompt += task", "prompt += shorten(task)"), "generate_new_query_prompt"),
        (edit("in previous_actions:", "in previous_actions[-5:]:"), "generate_new_query_prompt"),
        (edit("in previous_actions:", "in reversed(previous_actions):"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = open('x').read()"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = str(len(task))"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = 'long' if task == 'long' else ''"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = task[1]"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = task.strip()"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = f'{task:>40}'"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = '{:>40}'.format(task)"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = '%40s' % task"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = str(previous_actions)"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = 'Many' if len(previous_actions) == 7 else ''"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = previous_actions[-1] if previous_actions else ''"), "generate_new_query_prompt"),
        (edit("[role, prompt]", "{'system': role, 'user': shorten(prompt)}"), "generate_new_query_prompt"),
        (edit('"" + system_prompt', "system_prompt + previous_actions[0]"), "generate_new_query_prompt"),
        (edit('"" + system_prompt', 'f"{system_prompt}{len(previous_actions)}"'), "generate_new_query_prompt"),
        (edit("+= action", "+= '- ' + action"), "generate_new_query_prompt"),
        (edit("prompt += earlier", "pass"), "generate_new_query_prompt"),
        (edit("prompt += task", "pass"), "generate_new_query_prompt"),
        (edit("prompt += question_description", "pass"), "generate_new_query_prompt"),
        (
            edit("    prompt += task", "    while task:\n        return task\n    prompt += task"),
            "generate_new_query",
        ),
        (edit("(at)}. {choice[1]}", "(at)}) {choice[1]}"), "format_options"),
        (edit("(at)}. {choice[1]}", "(at + 1)}. {choice[1]}"), "format_options"),
        (edit("(at)}. {choice[1]}", "(at)}. {choice[0]}"), "format_options"),
        (edit("{label_of(at)}. ", "{str(at)}. "), "format_options"),
        (edit("{none_label}", "{'E'}"), "format_options"),
        (edit("at + 1", "at"), "format_options"),
        (edit("enumerate(choices)", "enumerate(sorted(choices))"), "format_options"),
        (edit("    none_label = ''", "    if len(choices) > 9: result += 'many'"), "format_options"),
        (
            edit("        offered +=", "        if at == 0: lines += '-'\n        offered +="),
            "format_options",
        ),
        (edit("        offered +=", "        if at > 9: break\n        offered +="), "format_options"),
        (edit("    lines = ''", "    lines = ''\n    if choices: raise ValueError"), "format_options"),
        (edit("    prompt += task\n", "    prompt += task" + " + ''" * 2000 + "\n"), "generate_new_query"),
    ],
)
def test_code_that_cannot_be_followed_is_refused_by_file_and_function(
    tmp_path: Path, change: Callable[[str], str], function: str
) -> None:
    message = refusal(tmp_path, frames=change(PLAIN_FRAMES))
    assert FRAME_FILE in message
    assert function in message


def test_the_line_that_cannot_be_followed_is_named(tmp_path: Path) -> None:
    frames = PLAIN_FRAMES.replace("prompt += task", "prompt += shorten(task)")
    line = frames.split("\n").index("    prompt += shorten(task)") + 1
    assert f"line {line}, generate_new_query_prompt" in refusal(tmp_path, frames=frames)


def test_a_pack_may_be_imported_over(tmp_path: Path) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    import_prompts(write_checkout(tmp_path, PROMPTS.replace("Why three?", "Why?")), tmp_path / "out")
    assert open_pack(tmp_path / "out", "attributes").turn1.endswith("Why?")


def test_a_folder_with_other_files_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(
        PromptError, match=r"^out: expected a new folder, an empty one or a prompt pack, got .* with other files"
    ):
        import_prompts(write_checkout(tmp_path), tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_an_out_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(
        PromptError, match=r"^out: expected a folder that a prompt pack can be written to, got .*out: ."
    ):
        import_prompts(write_checkout(tmp_path), tmp_path / "out")


@settings(max_examples=40, deadline=None)
@given(st.text(string.printable + "é{}", max_size=30))
def test_any_wording_comes_back_or_is_refused(tmp_path_factory: pytest.TempPathFactory, wording: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    prompts = PROMPTS.replace('"Why {four}?"', repr(wording))
    frames = PLAIN_FRAMES.replace('"Your task, please: "', repr(wording))
    write_checkout(folder, prompts, frames)
    if "{{" in wording or "\r" in wording:
        with pytest.raises(PromptError):
            import_prompts(folder, folder / "out")
        return
    import_prompts(folder, folder / "out")
    rendered = open_pack(folder / "out", "choice").render_turn1("tea", ["a"])
    assert rendered == f"{wording}tea\n\nBefore:\na\n\n{wording}"


# ---- sources that cost too much ------------------------------------------------------------------------------------

STEPS, CHARACTERS, BITS = "300,000 steps", "10,000,000 characters", "60 bits of a whole number"
TOO_MUCH = {
    "a text repeated": ("x = 'x' * 1000000000", CHARACTERS),
    "a text repeated, the number first": ("x = 1000000000 * 'x'", CHARACTERS),
    "a text repeated after credit": ("y = 'x' * -1000000000\nx = 'x' * 1000000000", CHARACTERS),
    "a list repeated": ("x = [0] * 1000000000", STEPS),
    "a tuple repeated": ("x = (0,) * 1000000000", STEPS),
    "a range as a list": ("x = list(range(1000000000000))", STEPS),
    "a range as long as there are numbers": ("x = list(range(-1000000000000000000, 1000000000000000000))", STEPS),
    "the length of a range": ("x = len(range(1000000000000))", STEPS),
    "a long loop": ("for i in range(1000000000000):\n    pass", STEPS),
    "a loop that is short, but run for each call": ("for i in range(2000):\n    pass", STEPS),
    "nested loops": (
        "for i in range(999):\n    for j in range(999):\n        for k in range(999):\n            pass",
        STEPS,
    ),
    "a text doubled by a sum": ("x = 'x'\nfor i in range(40):\n    x = x + x", CHARACTERS),
    "a text doubled in place": ("x = 'x'\nfor i in range(40):\n    x += x", CHARACTERS),
    "a text doubled without a loop": ("x = 'x'\n" + "x = x + x\n" * 40, CHARACTERS),
    "a text doubled by an f-string": ("x = 'x'\nfor i in range(40):\n    x = f'{x}{x}'", CHARACTERS),
    "a text doubled by format": ("x = 'x'\nfor i in range(40):\n    x = '{0}{0}{0}{0}'.format(x)", CHARACTERS),
    "a text doubled by a named format": ("x = 'x'\nfor i in range(40):\n    x = '{a}{a}'.format(a=x)", CHARACTERS),
    "a text doubled by a function": ("def doubled(t):\n    return doubled(t + t)\n", CHARACTERS),
    "a million fields": ("x = ('{0}' * 1000000).format('')", STEPS),
    "a list doubled by a sum": ("x = [1]\nfor i in range(40):\n    x = x + x", STEPS),
    "a list doubled in place": ("x = [1]\nfor i in range(40):\n    x += x", STEPS),
    "a list that is extended by itself": ("x = [1]\nfor i in range(40):\n    x.extend(x)", STEPS),
    "a list that a range is added to": ("x = []\nx += range(1000000000000)", STEPS),
    "a list that is appended to itself": (
        "x = []\nfor i in range(999):\n    for j in range(999):\n        x.append(x)",
        STEPS,
    ),
    "a long text joined": ("x = ', '.join(['x' * 100000] * 1000)", CHARACTERS),
    "a long text between joined ones": ("x = ('x' * 100000).join(['x'] * 1000)", CHARACTERS),
    "comprehensions in each other": (
        "x = [[[k for k in range(999)] for j in range(999)] for i in range(999)]",
        STEPS,
    ),
    "a comprehension over another": ("x = [j for j in [i for i in range(1000000000)]]", STEPS),
    "a number squared": ("x = 3\nfor i in range(40):\n    x = x * x", BITS),
    "a number doubled": ("x = 3\nfor i in range(99999):\n    x += x", BITS),
    "a number of 50,000 digits": ("x = 0x" + "f" * 50_000 + "\ny = x // 3", BITS),
    "a key of a tuple of tuples": (
        "x = ()\nfor i in range(99):\n    x = (x, x)\ny = {x: 1}",
        "code that can be followed",
    ),
    "a dictionary asked for such a key": (
        "x = ()\nfor i in range(99):\n    x = (x, x)\ny = {}[x]",
        "code that can be followed",
    ),
    "a dictionary that grows": ("x = {}\nfor i in range(9999):\n    x = {**x, i: i}", STEPS),
    "a dictionary copied": ("x = dict(enumerate([1] * 9999))\nfor i in range(9999):\n    x = dict(x)", STEPS),
    "a long text looked into": (
        "x = 'x' * 1000000\nfor i in range(999):\n    for j in range(999):\n        y = x[0]",
        CHARACTERS,
    ),
    "a long text compared": (
        "x = 'x' * 1000000\nfor i in range(999):\n    for j in range(999):\n        y = x == 'x'",
        CHARACTERS,
    ),
    "a long text stripped of many characters": (
        "x = ('a' * 1000000).strip('b' * 1000000 + 'a')",
        CHARACTERS,
    ),
    "a long text evaluated again and again": (
        f"for i in range(999):\n    for j in range(999):\n        '{'x' * 30_000}'",
        CHARACTERS,
    ),
    "a function that calls itself twice": ("def forked(t):\n    return {0: forked(t), 1: forked(t)}\n", STEPS),
    "a function of a thousand parameters": (
        f"def wide({', '.join(f'p{i}=0' for i in range(1000))}):\n    return wide\n",
        STEPS,
    ),
    "a text of 100 MB returned": ("return ['x', 'x' * 100000000]", CHARACTERS),
    "a million texts returned": ("return ['x'] * 1000000", STEPS),
    "one text returned many times": ("return ['x' * 60000] * 9999", CHARACTERS),
    "a longer text returned than a pack can hold": ("return ['x' * 70000]", "65,536 characters in "),
}
QUERY = """
def generate_new_query_prompt(system_prompt="", task="", previous_actions=None, question_description=""):
BODY
    lines = "".join(f"{action}\\n" for action in previous_actions)
    return [system_prompt, task + lines + question_description]
"""


def costly_frames(body: str) -> str:
    """The module with `body` in the function; a function in it stands beside, and is called once for each action."""
    helper = body if body.startswith("def ") else ""
    followed = f"for action in previous_actions:\n    {helper[4 : helper.index('(')]}('x')\n" if helper else body
    return LETTERS + PLAIN_OPTIONS + helper + QUERY.replace("BODY", textwrap.indent(followed, "    "))


@pytest.mark.parametrize("kind", TOO_MUCH)
def test_what_costs_too_much_inside_a_function_ends_the_import(tmp_path: Path, kind: str) -> None:
    body, limit = TOO_MUCH[kind]
    message = refusal(tmp_path, frames=costly_frames(body))
    assert message.startswith("checkout: expected ")
    assert f" in {FRAME_FILE}, " in message
    assert limit in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "kind",
    [
        "a text repeated",
        "a range as a list",
        "nested loops",
        "a text doubled by an f-string",
        "a list doubled in place",
        "a number squared",
    ],
)
def test_what_costs_too_much_at_the_top_level_ends_the_import(tmp_path: Path, kind: str) -> None:
    body, limit = TOO_MUCH[kind]
    message = refusal(tmp_path, PROMPTS + body)
    assert f" in {PROMPT_FILE}, line " in message
    assert limit in message


def test_a_number_that_cannot_be_shown_is_refused_with_its_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, frames=costly_frames(f"return lambda: 0x{'f' * 50_000}"))
    assert re.match(
        rf"checkout: expected code that can be followed in {FRAME_FILE}, line \d+, generate_new_query_prompt, got what is nested",
        message,
    )


def test_what_is_refused_keeps_no_frames_where_a_loop_raises_it_again() -> None:
    tree = ast.parse("lost = nowhere()\nfor i in range(9):\n    again = lost\n")
    assert module_names(tree, Budget("file"))["again"].__traceback__ is None


def test_too_much_is_named_with_its_line_and_both_numbers(tmp_path: Path) -> None:
    assert refusal(tmp_path, "x = 'x'\ny = x * 1000000000\n" + PROMPTS) == (
        f"checkout: expected at most 10,000,000 characters to work out its texts in {PROMPT_FILE}, line 2, "
        "got 1,000,000,001"
    )


def test_what_is_not_followed_is_looked_through_once_however_often_the_module_is_read(tmp_path: Path) -> None:
    unfollowed = "class Other:\n" + "    size = [1, 2]\n" * 1000
    assert import_prompts(write_checkout(tmp_path, frames=unfollowed + PLAIN_FRAMES), tmp_path / "out")


def test_a_text_may_be_formatted_with_any_name(tmp_path: Path) -> None:
    frames = PLAIN_FRAMES.replace("prompt += task", "prompt += '{text}{budget}'.format(text=task, budget='!')")
    import_prompts(write_checkout(tmp_path, frames=frames), tmp_path / "out")
    assert open_pack(tmp_path / "out", "choice").turn1.startswith("Your task, please: {{task}}!")


@pytest.mark.parametrize("file", [PROMPT_FILE, FRAME_FILE])
def test_a_long_source_is_refused_by_its_size(tmp_path: Path, file: str) -> None:
    os.truncate(write_checkout(tmp_path) / file, 100_000_000)
    with pytest.raises(PromptError) as caught:
        import_prompts(tmp_path, tmp_path / "out")
    assert str(caught.value) == f"checkout: expected at most 65,536 bytes in {file}, got 100,000,000"


@pytest.mark.parametrize(
    "put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "folder", "device"]
)
@pytest.mark.parametrize("file", [PROMPT_FILE, FRAME_FILE])
def test_what_is_no_file_is_not_opened(tmp_path: Path, file: str, put: Callable[[Path], None]) -> None:
    (write_checkout(tmp_path) / file).unlink()
    put(tmp_path / file)
    with pytest.raises(PromptError, match=f"expected the file {file} in .*, got something that is no file"):
        import_prompts(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (edit("+ question_description", "+ question_description * 3000"), r"65,536 characters in .*, got 90,0"),
        (edit("[system_prompt,", "[system_prompt * 5000,"), r"65,536 characters in .*, got 95,000"),
        (edit("task +", "task * 101 +"), r"100 placeholders in .*, got 102"),
    ],
)
def test_a_turn_that_no_pack_can_hold_is_refused(tmp_path: Path, change: Callable[[str], str], problem: str) -> None:
    prompts = PROMPTS.replace('"Why {four}?"', "'w' * 30")
    frames = change(costly_frames("pass"))
    assert re.search(f"expected at most {problem}", refusal(tmp_path, prompts, frames))


def test_texts_that_make_too_long_a_turn_together_are_refused(tmp_path: Path) -> None:
    prompts = PROMPTS.replace('"EL"', "'e' * 40000").replace('"ACT: one of {A, B}."', "'a' * 40000")
    message = refusal(tmp_path, prompts)
    assert re.search(r": expected at most 65,536 bytes in choice\.turn2\.txt, got 12\d,\d+$", message)


# ---- the published prompts, read from beside the checkout ----------------------------------------------------------


def published_sources(turns: list[str], choices: list[str]) -> tuple[str, str]:
    """The two modules, with the published wording cut out of one group's prompt at known anchors."""
    system, turn1, turn2 = turns
    first, actions, question = turn1.split("\n\n", 2)
    at = turn2.index(f"A. {choices[0]}\n")
    referring, sentence = turn2[:at].rsplit("\n\n", 1)
    final = turn2.index("(Final Answer)")
    none_line = turn2[at:final].rstrip("\n").rsplit("\n", 1)[1]
    label, none_text = none_line.split(". ", 1)
    before_label, after_label = sentence.split(f" {label}. ", 1)
    element, rest = turn2[final:].split("\n\nACTION:", 1)
    action, value = rest.split("\n\nVALUE:", 1)
    named = {
        "sys_prompt": system,
        "action_format": f"ACTION:{action}",
        "value_format": f"VALUE:{value}",
        **{f"question_description_new_exp{n}": question for n in (2, 3, 4)},
    }
    prompts = "".join(f"{name} = {text!r}\n" for name, text in named.items())
    for n in (2, 3, 4):
        prompts += f"""exp{n}_prompt_dict = {{"system_prompt": sys_prompt,
    "question_description": question_description_new_exp{n}, "referring_description": {referring!r},
    "element_format": {element!r}, "action_format": f"{{action_format}}", "value_format": f"{{value_format}}"}}\n"""
    edits = {
        '"Your task, please: "': repr(first.split(": ", 1)[0] + ": "),
        '"Before:\\n"': repr(actions.split("\n", 1)[0] + "\n"),
        'f"{none_label}. Nothing fits"': "none_label + " + repr(f". {none_text}"),
        'f"Say {none_label} if nothing fits.\\n"': f"{before_label + ' '!r} + none_label + {'. ' + after_label!r}",
    }
    frames = PLAIN_FRAMES
    for old, new in edits.items():
        frames = edit(old, new)(frames)
    return prompts, frames


@pytest.mark.parametrize("group", [0, 1, 2])
def test_an_imported_pack_renders_the_published_prompts_to_the_byte(
    tmp_path: Path, shared_step: Path, group: int
) -> None:
    lines = (shared_step / "replies_choice.jsonl").read_text(encoding="utf-8").splitlines()
    recorded = {row["group"]: row["prompt"] for row in map(json.loads, lines)}
    groups = json.loads((shared_step / "expected_groups.json").read_text(encoding="utf-8"))
    choices = {row["group"]: [text for _, text in row["choices"]] for row in groups}
    write_checkout(tmp_path, *published_sources(recorded[0], choices[0]))
    import_prompts(tmp_path, tmp_path / "out")
    pack = open_pack(tmp_path / "out", "choice")
    task_line, actions, _ = recorded[group][1].split("\n\n", 2)
    task, history = task_line.split(": ", 1)[1], actions.split("\n")[1:]
    rendered = [pack.render_system(), pack.render_turn1(task, history), pack.render_turn2(choices[group])]
    assert rendered == recorded[group]
