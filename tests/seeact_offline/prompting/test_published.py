"""Packs made from the source of the authors' two modules, which is read and never run."""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seeact_offline as so
from seeact_offline.grounding.mindact import question_text
from seeact_offline.grounding.strategies import open_pack
from seeact_offline.prompting import load_template, only_with
from seeact_offline.prompting.published import (
    ARENA_FILES,
    FRAME_FILE,
    PROMPT_FILE,
    PUBLISHED,
    import_agent_prompts,
    import_prompts,
)
from seeact_offline.records import PromptError
from tests.annexes import needs

KEYS = "system_prompt question_description referring_description element_format action_format value_format".split()

# Invented wording, in the places where the authors' modules have theirs, put together as theirs is.
PROMPTS = r'''
from .format_prompt_utils import format_options
sys_prompt = """You are a
\"tester\"."""
action_format = "ACT: one of {A, B}."
value_format: str = "VAL: a\n" \
    "or b."
question_description_new_exp4 = "Why {four}?"
question_description_new_exp3 = "Why three?"
question_description_new_exp2 = question_description_new_exp4
alias = value_format
exp4_prompt_dict = {"system_prompt": sys_prompt, "question_description": question_description_new_exp4,
    "referring_description": f"""Four: {{braces}} and {action_format}""", "element_format": "EL",
    "action_format": f"{action_format}", "value_format": f"{alias}"}
exp3_prompt_dict = {"system_prompt": sys_prompt, "question_description": question_description_new_exp3,
    "referring_description": f"", "element_format": "EL3", "action_format": action_format, "value_format": value_format}
exp2_prompt_dict = {"system_prompt": sys_prompt, "question_description": question_description_new_exp2,
    "referring_description": "Two", "element_format": "", "action_format": action_format, "value_format": value_format}
'''

LETTERS = """
import string
def label_of(index):
    if index < 26:
        return string.ascii_uppercase[index]
    return string.ascii_uppercase[(index - 26) // 26] + string.ascii_uppercase[(index - 26) % 26]
"""

QUERY = '''
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
'''
OPTIONS = """
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
"""
FRAMES = LETTERS + QUERY + OPTIONS


def write_checkout(folder: Path, prompts: str = PROMPTS, frames: str = FRAMES) -> Path:
    for file, source in ((PROMPT_FILE, prompts), (FRAME_FILE, frames)):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(source, encoding="utf-8")
    return folder


def refusal(folder: Path, prompts: str = PROMPTS, frames: str = FRAMES) -> str:
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
def test_turn1_renders_what_the_function_returns(tmp_path: Path, history: list[str]) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    given_texts = {"system_prompt": 'You are a\n"tester".', "question_description": "Why {four}?"}
    returned = run_frames(QUERY)["generate_new_query_prompt"](task="buy {tea}", previous_actions=history, **given_texts)
    pack = open_pack(tmp_path / "out", "choice")
    assert [pack.render_system(), pack.render_turn1("buy {tea}", history)] == returned


@pytest.mark.parametrize("count", [1, 2, 25])
def test_turn2_of_choice_holds_what_format_options_returns(tmp_path: Path, count: int) -> None:
    import_prompts(write_checkout(tmp_path), tmp_path / "out")
    choices = [[str(900 + i), f"<b id={i}>"] for i in range(count)]
    options = run_frames(FRAMES)["format_options"](choices)
    rendered = open_pack(tmp_path / "out", "choice").render_turn2([text for _, text in choices])
    start = "Four: {braces} and ACT: one of {A, B}.\n\n"
    assert rendered == start + options + "EL\n\nACT: one of {A, B}.\n\nVAL: a\nor b."


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
    write_checkout(tmp_path, trap + PROMPTS + trap, trap + FRAMES + trap)
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
    import_prompts(write_checkout(tmp_path / "a", PROMPTS + extra, extra + FRAMES), tmp_path / "noisy")
    import_prompts(write_checkout(tmp_path / "b"), tmp_path / "plain")
    assert open_pack(tmp_path / "noisy", "choice").digest == open_pack(tmp_path / "plain", "choice").digest


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("sys_prompt", "exp4_prompt_dict['system_prompt']"),
        ("action_format", "exp4_prompt_dict['referring_description']"),
        ("value_format", "exp4_prompt_dict['value_format']"),
        ("question_description_new_exp4", "exp4_prompt_dict['question_description']"),
        ("question_description_new_exp3", "exp3_prompt_dict['question_description']"),
        ("exp2_prompt_dict", "exp2_prompt_dict['system_prompt']"),
    ],
)
def test_a_missing_constant_is_named_by_the_first_text_that_needs_it(tmp_path: Path, name: str, entry: str) -> None:
    message = refusal(tmp_path, re.sub(rf"^{name}\b", "renamed", PROMPTS, flags=re.M))
    assert f"expected a text in {entry} of {PROMPT_FILE}, got none" in message


@pytest.mark.parametrize("key", KEYS)
def test_a_missing_key_is_named_with_its_dictionary(tmp_path: Path, key: str) -> None:
    message = refusal(tmp_path, PROMPTS.replace(f'"{key}":', '"other":', 1))
    assert "exp4_prompt_dict" in message
    assert repr(key) in message


@pytest.mark.parametrize("name", ["generate_new_query_prompt", "format_options"])
def test_a_missing_function_is_named(tmp_path: Path, name: str) -> None:
    message = refusal(tmp_path, frames=FRAMES.replace(f"def {name}", "def other"))
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


def test_a_constant_that_is_computed_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, "sys_prompt = open('x').read()\n" + PROMPTS.replace("sys_prompt =", "unused ="))
    assert "exp4_prompt_dict['system_prompt']" in message


def test_a_value_of_a_dictionary_that_is_computed_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, PROMPTS.replace('"element_format": "EL"', '"element_format": pick("EL")', 1))
    assert "exp4_prompt_dict['element_format']" in message


def test_two_opening_braces_in_the_text_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, PROMPTS.replace("Why three?", "Why {{three}}?"))
    assert "exp3_prompt_dict['question_description']" in message
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
        (edit("prompt += task", "prompt += question_description"), "generate_new_query_prompt"),
        (edit("in previous_actions:", "in previous_actions[-5:]:"), "generate_new_query_prompt"),
        (edit("in previous_actions:", "in reversed(previous_actions):"), "generate_new_query_prompt"),
        (edit('prompt = ""', "prompt = open('x').read()"), "generate_new_query_prompt"),
        (edit("+= action", "+= '- ' + action"), "generate_new_query_prompt"),
        (edit("prompt += earlier", "pass"), "generate_new_query_prompt"),
        (edit("    prompt += task\n", "    prompt += task" + " + ''" * 2000 + "\n"), "generate_new_query_prompt"),
        (edit('earlier += "\\n"', 'earlier += ", "'), "each previous action"),
        (edit("(at)}. {choice[1]}", "(at)}) {choice[1]}"), "format_options"),
        (edit("(at)}. {choice[1]}", "(at + 1)}. {choice[1]}"), "format_options"),
        (edit("(at)}. {choice[1]}", "(at)}. {choice[0]}"), "format_options"),
        (edit("at + 1", "at"), "format_options"),
        (edit("enumerate(choices)", "enumerate(sorted(choices))"), "format_options"),
        (edit("    lines = ''", "    lines = ''\n    if choices: raise ValueError"), "format_options"),
    ],
)
def test_texts_that_are_put_together_in_another_way_are_refused_by_file_and_function(
    tmp_path: Path, change: Callable[[str], str], function: str
) -> None:
    message = refusal(tmp_path, frames=change(FRAMES))
    assert FRAME_FILE in message
    assert function in message


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
    frames = FRAMES.replace('"Your task, please: "', repr(wording))
    write_checkout(folder, prompts, frames)
    if "{{" in wording or "\r" in wording or not wording:
        with pytest.raises(PromptError):
            import_prompts(folder, folder / "out")
        return
    import_prompts(folder, folder / "out")
    rendered = open_pack(folder / "out", "choice").render_turn1("tea", ["a"])
    assert rendered == f"{wording}tea\n\nBefore:\na\n\n{wording}"


@pytest.mark.parametrize("file", [PROMPT_FILE, FRAME_FILE])
def test_a_long_source_is_refused_by_its_size(tmp_path: Path, file: str) -> None:
    os.truncate(write_checkout(tmp_path) / file, 100_000_000)
    with pytest.raises(PromptError) as caught:
        import_prompts(tmp_path, tmp_path / "out")
    assert str(caught.value) == (
        f"checkout: expected the file {file} in {tmp_path}, got {tmp_path / file}: more than 65,536 bytes"
    )


@pytest.mark.parametrize(
    "put", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "folder", "device"]
)
@pytest.mark.parametrize("file", [PROMPT_FILE, FRAME_FILE])
def test_what_is_no_file_is_not_opened(tmp_path: Path, file: str, put: Callable[[Path], None]) -> None:
    (write_checkout(tmp_path) / file).unlink()
    put(tmp_path / file)
    with pytest.raises(
        PromptError, match=f"expected the file {file} in .*, got .*: (not a regular file|Is a directory)"
    ):
        import_prompts(tmp_path, tmp_path / "out")


def test_a_text_that_doubles_without_end_is_refused(tmp_path: Path) -> None:
    doubling = 'sys_prompt = "xx"\n' + 'sys_prompt = f"{sys_prompt}{sys_prompt}"\n' * 60
    assert "system_prompt" in refusal(
        tmp_path, PROMPTS.replace("exp4_prompt_dict =", doubling + "exp4_prompt_dict =", 1)
    )


def test_texts_that_make_too_long_a_turn_together_are_refused(tmp_path: Path) -> None:
    prompts = PROMPTS.replace('"EL"', repr("e" * 22000)).replace('"ACT: one of {A, B}."', repr("a" * 22000))
    message = refusal(tmp_path, prompts)
    assert re.search(r": expected at most 65,536 bytes in choice\.turn2\.txt, got 66,\d+$", message)


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
        "{none_label}. Nothing fits": f"{{none_label}}. {none_text}",
        "Say {none_label} if nothing fits.\\n": f"{before_label} {{none_label}}. {after_label}\\n".replace("\n", ""),
    }
    frames = FRAMES
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


# --- GUI agents ---

# Invented wording under the names of the authors' modules.
AGENT_SOURCES = {
    "aguvis": '''
import json
grounding_system_message = "You test."
agent_system_message = f"Functions: {json.dumps({})}"
user_instruction = """Go on.

Goal: {overall_goal}
Before:
{previous_actions}
"""
''',
    "seeclick": "import torch\nprompt_origin = 'Do {}. Done: {}'\nfor step in []:\n    prompt = prompt_origin.format(1, 2)\n",
    "showui": "_MIND2WEB_SYSTEM = \"\"\"Say {'action': 'A', 'position': [x,y]}\n\"\"\"\n_MIND2WEB_USER = '{system} {task}'\n",
    "uground": "system_prompt = '''You plan.'''\nquestion_description = '\\nWhat?'\naction_format = 'ACTION: {A, B}.'\n"
    "element_format = 'ELEMENT: it.'\nvalue_format = 'VALUE: ' \\\n    'x.'\nif __name__ == '__main__':\n    query = ''\n",
}
AGENT_SOURCES["uground-blind"] = AGENT_SOURCES["uground"]
RENDERED = {
    "aguvis": ("You test.", "Go on.\n\nGoal: Buy\nBefore:\n[a] b -> CLICK\n"),
    "seeclick": ("", "Do Buy. Done: [a] b -> CLICK"),
    "showui": ("", "Say {'action': 'A', 'position': [x,y]}\nTask: Buy\n[a] b -> CLICK\n"),
    "uground": ("You plan.", "Task: Buy\n\nPrevious Actions:\n[a] b -> CLICK\n\n\nWhat?\n\nACTION: {A, B}.\n\nELEMENT: it.\n\nVALUE: x."),
}  # fmt: skip
RENDERED["uground-blind"] = RENDERED["uground"]


def agent_checkout(folder: Path, agent: str, source: str | None = None) -> Path:
    file = folder / PUBLISHED[agent].file
    file.parent.mkdir(parents=True)
    file.write_text(AGENT_SOURCES[agent] if source is None else source)
    return folder


@needs("agents")
@pytest.mark.parametrize("agent", [name for name in PUBLISHED if not name.startswith("judge-")])
def test_the_published_prompt_of_an_agent_becomes_a_pack(agent: str, tmp_path: Path) -> None:
    import_agent_prompts(agent, agent_checkout(tmp_path / "checkout", agent), tmp_path / "out")
    pack = open_pack(tmp_path / "out", agent)
    assert (pack.system, pack.render_turn1("Buy", ["[a] b -> CLICK"])) == RENDERED[agent]
    run = so.evaluate(
        agent=agent,
        model="builtin/oracle",
        prompts=tmp_path / "out",
        split="cross_website",
        limit=1,
        out=tmp_path / "run",
    )
    assert run.results["n_steps"] >= 1


def test_the_published_prompt_of_a_judge_becomes_a_pack(tmp_path: Path) -> None:
    source = 'SYSTEM_PROMPT = """You judge."""\nUSER_PROMPT = """TASK: <task>\nSaid: <answer>\n<num> pictures: """\n'
    import_agent_prompts(
        "judge-webvoyager", agent_checkout(tmp_path / "checkout", "judge-webvoyager", source), tmp_path / "out"
    )
    judges = pytest.importorskip("seeact_offline.trajectories.judges").JUDGES
    texts = {file: load_template(tmp_path / "out", file, rule) for file, rule in judges["webvoyager"].templates.items()}
    assert texts["judge-webvoyager.system.txt"] == "You judge."
    assert texts["judge-webvoyager.turn1.txt"] == "TASK: {{task}}\nSaid: {{answer}}\n{{count}} pictures: "


@pytest.mark.parametrize(
    ("judge", "function", "field"),
    [("agenttrek", "AgentTrek_eval", "thoughts_and_actions"), ("autonomouseval", "Autonomous_eval", "last_actions")],
)
def test_the_published_prompt_of_a_judge_inside_a_function_becomes_a_pack(
    judge: str, function: str, field: str, tmp_path: Path
) -> None:
    source = f'''
system_msg = "of the module"
def other(task):
    system_msg = "of another"
def {function}(task, images_path):
    system_msg = """You judge.
Status: "success" or "failure"
"""
    prompt = """Do: {{task}}\n\nDone:\n{{{field}}}"""
    if not images_path:
        prompt = "another"
    text = prompt.format(task=task)
    return text
'''
    checkout = agent_checkout(tmp_path / "checkout", f"judge-{judge}", source)
    import_agent_prompts(f"judge-{judge}", checkout, tmp_path / "out")
    judges = pytest.importorskip("seeact_offline.trajectories.judges").JUDGES
    texts = {file: load_template(tmp_path / "out", file, rule) for file, rule in judges[judge].templates.items()}
    assert texts == {
        f"judge-{judge}.system.txt": 'You judge.\nStatus: "success" or "failure"\n',
        f"judge-{judge}.turn1.txt": "Do: {{task}}\n\nDone:\n{{actions}}",
    }


@pytest.mark.parametrize(
    ("agent", "source", "message"),
    [
        ("uitars", None, "an agent whose prompt is a constant of its repository (aguvis, seeclick"),
        ("aguvis", "grounding_system_message = 'a'", "a text in user_instruction of src/aguvis/constants.py"),
        ("aguvis", AGENT_SOURCES["aguvis"].replace("{overall_goal}", "{goal}"), "{overall_goal} in the prompt of"),
        ("seeclick", "prompt_origin = 'Do {}.'", "{} in the prompt of agent_tasks/mind2web_test.py"),
        ("showui", "_MIND2WEB_SYSTEM = str(1)", "a text in _MIND2WEB_SYSTEM"),
        (
            "judge-agenttrek",
            "prompt = system_msg = 'a'",
            "a text in prompt of AgentTrek_eval in src/methods/agenttrek_eval.py",
        ),
    ],
)
def test_another_agent_or_source_is_refused(agent: str, source: str | None, message: str, tmp_path: Path) -> None:
    checkout = tmp_path if source is None else agent_checkout(tmp_path / "checkout", agent, source)
    with pytest.raises(PromptError, match=re.escape(message)):
        import_agent_prompts(agent, checkout, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- MindAct's questions ---

MINDACT_CODE = r"""
import lxml
def helper(): pass
def format_input_multichoice(sample, candidate_ids, gt=-1, previous_k=5):
    choices = [["1", " ".join(["a", "b"])]]
    seq_input = (
        "Page above. Do:\nGoal: "
        f"{sample['confirmed_task']}\n"
        f"Before:\n"
    )
    if len(sample["previous_actions"]) > 0:
        for action in sample["previous_actions"][-previous_k:]:
            seq_input += f"{action}\n"
    else:
        seq_input += "Nothing\n"
    seq_input += "Next? " "Choose:\n\nA. none\n"
    for idx, choice in enumerate(choices):
        seq_input += f"{chr(66 + idx)}. {choice[1]}\n"
    seq_target = "A."
    return seq_input, seq_target
"""


def mindact_checkout(folder: Path, code: str = MINDACT_CODE) -> Path:
    path = folder / "src/action_prediction/dataloader.py"
    path.parent.mkdir(parents=True)
    path.write_text(code)
    return folder


@pytest.mark.parametrize("history", [[], ["[a] b -> CLICK", "[c] d -> TYPE: e"]])
def test_mindacts_questions_are_worded_as_its_code_does(tmp_path: Path, history: list[str]) -> None:
    import_agent_prompts("mindact", mindact_checkout(tmp_path / "checkout"), tmp_path / "out")
    pack = open_pack(tmp_path / "out", "mindact", variant="seq2seq")
    namespace: dict[str, Any] = {"lxml": None}
    exec(MINDACT_CODE.replace("import lxml", ""), namespace)
    expected, _ = namespace["format_input_multichoice"]({"confirmed_task": "Buy", "previous_actions": history}, [])
    assert question_text(pack, "(page", ["a b"], "Buy", history) == f"(page\n{expected}"
    assert pack.system == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format_input_multichoice", "other", "a function format_input_multichoice"),
        ('seq_input += "Nothing\\n"', "pass", "put together as in the known release"),
        ("{action}\\n", "- {action}\\n", "put together as in the known release"),
        ("Choose", "Choose {{x}}", "`{{`"),
    ],
)
def test_another_wording_of_mindacts_code_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MINDACT_CODE
    checkout = mindact_checkout(tmp_path / "checkout", MINDACT_CODE.replace(old, new))
    with pytest.raises(PromptError, match=re.escape(message)):
        import_agent_prompts("mindact", checkout, tmp_path / "out")
    assert not (tmp_path / "out").exists()


ARENA_SOURCE = """prompt = {{
    "intro": '''Use {name}.
Answer.''',
    "examples": [("A page of {name}", "I press. ```click [3]```"{picture}), ("Another", "```stop [x]```"{picture})],
    "template": "PAGE: {{observation}}\\nAT: {{url}}\\nDO: {{objective}}\\nBEFORE: {{previous_action}}",
    "meta_data": {{"keywords": ["url"]}},
}}
"""


def arena_checkout(folder: Path, **changed: str) -> Path:
    """Invented prompts in the places of the published ones. `changed`: ending of the pack's files -> another source."""
    for ending, file in ARENA_FILES.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = ', "a.png"' if ending else ""
        path.write_text(changed.get(ending.lstrip("."), ARENA_SOURCE.format(name=ending or "tree", picture=picture)))
    return folder


@needs("web_agents")
def test_visualwebarenas_prompts_and_worked_examples_become_a_pack(tmp_path: Path) -> None:
    import_agent_prompts("visualwebarena", arena_checkout(tmp_path / "checkout"), tmp_path / "out")
    for variant, name in (("", "tree"), ("html", "tree"), ("som", ".som"), ("image", ".image")):
        pack = open_pack(tmp_path / "out", "visualwebarena", variant=variant)
        assert pack.system == f"Use {name}.\nAnswer."
        values = replace(pack, values={"observation": "[1] A", "address": "a.b"})
        assert values.render_turn1("Buy", []) == "PAGE: [1] A\nAT: a.b\nDO: Buy\nBEFORE: None"
        assert [(one.user, one.assistant) for one in pack.examples] == [
            (f"A page of {name}", "I press. ```click [3]```"), ("Another", "```stop [x]```"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("prompt = dict(intro='a')", "a literal `prompt` in agent/prompts/raw/p_som"),
        ("prompt = {'intro': 'a', 'examples': [], 'template': 3}", "in `prompt` of agent/prompts/raw/p_som"),
        ("prompt = {'intro': 'a', 'examples': [('b',)], 'template': ''}", "in `prompt` of agent/prompts/raw/p_som"),
        ("prompt = {'intro': 'a', 'examples': [], 'template': '{url}'}", "{observation} once in the template of"),
        ("other = 3", "a name `prompt` in agent/prompts/raw/p_som"),
    ],
)
def test_another_source_of_visualwebarena_is_refused(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PromptError, match=re.escape(message)):
        import_agent_prompts("visualwebarena", arena_checkout(tmp_path / "checkout", som=source), tmp_path / "out")
    assert not (tmp_path / "out").exists()
