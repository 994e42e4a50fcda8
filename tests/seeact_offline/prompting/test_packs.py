"""Packs are checked when loaded and rendered in one pass."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seeact_offline.grounding.strategies import open_pack
from seeact_offline.prompting import PromptPack, shipped_packs
from seeact_offline.records import PromptError, letter

TURN1 = "Do {{task}}.\nDone ({{history_count}}):\n{{history}}Now?\n"
TURN2 = "Pick.\n{{choices}}{{none_label}}. none\n"


def write_pack(folder: Path, **changes: str | bytes | None) -> Path:
    """A small valid pack; a change is a turn's new content, or None to leave the file out."""
    files: dict[str, str | bytes | None] = {
        "choice_system": "Be brief.\n",
        "choice_turn1": TURN1,
        "choice_turn2": TURN2,
    }
    folder.mkdir(exist_ok=True)
    for name, content in (files | changes).items():
        if content is not None:
            data = content.encode() if isinstance(content, str) else content
            (folder / f"{name.replace('_', '.')}.txt").write_bytes(data)
    return folder


def refusal(folder: Path, grounding: str = "choice") -> str:
    with pytest.raises(PromptError) as caught:
        open_pack(folder, grounding)
    return str(caught.value)


def test_turns_render_with_the_steps_own_texts(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path / "mine"), "choice")
    assert pack.name == "mine"
    assert pack.render_system() == "Be brief."
    assert pack.render_turn1("buy tea", ["a -> CLICK", "b"]) == "Do buy tea.\nDone (2):\na -> CLICK\nb\nNow?"
    assert pack.render_turn2(["<a>", "<b>"]) == "Pick.\nA. <a>\nB. <b>\nC. none"


def test_history_is_empty_text_at_the_first_step(tmp_path: Path) -> None:
    assert open_pack(write_pack(tmp_path), "choice").render_turn1("t", []) == "Do t.\nDone (0):\nNow?"


def test_letters_go_on_after_z(tmp_path: Path) -> None:
    rendered = open_pack(write_pack(tmp_path), "choice").render_turn2(["x"] * 27)
    assert rendered.endswith("Z. x\nAA. x\nAB. none")


def test_history_lines_have_no_final_newline(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path, choice_turn1="{{task}}[{{history_lines}}]"), "choice")
    assert pack.render_turn1("t", ["a", "b"]) == "t[a\nb]"
    assert pack.render_turn1("t", []) == "t[]"


def test_a_fallback_stands_in_for_an_empty_history_only(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path, choice_turn1="{{task}}\n{{history|nothing yet}}end"), "choice")
    assert pack.render_turn1("t", []) == "t\nnothing yet\nend"
    assert pack.render_turn1("t", ["a"]) == "t\na\nend"


def test_inserted_text_is_not_searched_for_placeholders(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path), "choice")
    assert "Do {{history}}." in pack.render_turn1("{{history}}", ["{{task}}"])
    assert pack.render_turn2(["{{none_label}} \\1 \\g<0>"]) == "Pick.\nA. {{none_label}} \\1 \\g<0>\nB. none"


def test_single_braces_are_ordinary_text(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path, choice_turn1='{"a": {1}}\n{{{task}}} {{history}}'), "choice")
    assert pack.render_turn1("t", []) == '{"a": {1}}\n{t} '


def test_one_final_newline_is_dropped_and_no_more(tmp_path: Path) -> None:
    assert open_pack(write_pack(tmp_path, choice_system=" a \n\n"), "choice").system == " a \n"


def test_windows_line_ends_become_plain_ones(tmp_path: Path) -> None:
    crlf = write_pack(tmp_path / "crlf", choice_turn2=TURN2.replace("\n", "\r\n"))
    assert open_pack(crlf, "choice").turn2 == TURN2.removesuffix("\n")


def test_a_shared_file_serves_a_grounding_without_its_own(tmp_path: Path) -> None:
    folder = write_pack(tmp_path, choice_system=None, system="shared", attributes_turn1=TURN1, turn2="Say what it is.")
    assert open_pack(folder, "choice").system == "shared"
    assert open_pack(folder, "choice").turn2 == TURN2.removesuffix("\n")
    assert open_pack(folder, "attributes").render_turn2([]) == "Say what it is."


MINE = "of the pack 'mine'"
REFUSED: list[tuple[dict[str, str | bytes | None], str]] = [
    *(
        ({f"choice_{turn}": None}, f"expected a file choice.{turn}.txt (or {turn}.txt) in the pack 'mine', got neither")
        for turn in ("system", "turn1", "turn2")
    ),
    ({"choice_system": "a\n\n{{task}}"}, f"in line 3 of choice.system.txt {MINE}, got {{{{task}}}}"),
    ({"choice_turn1": TURN1 + "{{choices}}"}, f"in line 4 of choice.turn1.txt {MINE}, got {{{{choices}}}}"),
    ({"choice_turn1": "{{ task }}" + TURN1}, f"in line 1 of choice.turn1.txt {MINE}, got {{{{ task }}}}"),
    ({"choice_turn2": TURN2 + "\n{{}}"}, f"in line 4 of choice.turn2.txt {MINE}, got {{{{}}}}"),
    # a placeholder of markup, where a picture is shown
    ({"choice_turn1": TURN1 + "{{html}}"}, ", got {{html}}"),
    ({"choice_turn1": "{{history}}"}, f"expected the placeholder {{{{task}}}} in choice.turn1.txt {MINE}, got no line"),
    ({"choice_turn1": "{{task}}"}, "expected the placeholder {{history}} or {{history_lines}} in choice.turn1.txt"),
    ({"choice_turn2": "{{none_label}}"}, f"expected the placeholder {{{{choices}}}} in choice.turn2.txt {MINE}"),
    ({"choice_turn2": "{{choices}}"}, f"expected the placeholder {{{{none_label}}}} in choice.turn2.txt {MINE}"),
    *(
        (
            {"choice_turn1": TURN1 + text},
            f"expected `}}}}` to close each placeholder in line 4 of choice.turn1.txt {MINE}, got `{{{{` without it",
        )
        for text in ("{{task", "{{{{task}}", "{{task\n}}", "{{a{b}}")
    ),
    (
        {"choice_turn1": TURN1 + "{{task|x}}"},
        f"expected a text for the empty case of {{{{history}}}} alone in line 4 of choice.turn1.txt {MINE}, got {{{{task|x}}}}",
    ),
    ({"choice_system": b"caf\xe9"}, "0xe9"),
    (
        {"choice_turn1": TURN1 + "{{task}}" * 98},
        f"expected at most 100 placeholders in choice.turn1.txt {MINE}, got 101",
    ),
]


@pytest.mark.parametrize(("changes", "problem"), REFUSED)
def test_a_pack_that_cannot_be_used_is_refused_with_file_and_line(
    tmp_path: Path, changes: dict[str, str | bytes | None], problem: str
) -> None:
    message = refusal(write_pack(tmp_path / "mine", **changes))
    assert message.startswith("prompts: expected ")
    assert next(iter(changes)).replace("_", ".") + ".txt" in message
    assert problem in message


def test_an_empty_second_turn_is_refused(tmp_path: Path) -> None:
    assert "turn2.txt" in refusal(
        write_pack(tmp_path, attributes_system="", attributes_turn1=TURN1, turn2="\n"), "attributes"
    )


def test_a_long_file_is_refused_by_its_size(tmp_path: Path) -> None:
    os.truncate(write_pack(tmp_path / "mine") / "choice.turn1.txt", 100_000_000)
    assert refusal(tmp_path / "mine") == (
        "prompts: expected choice.turn1.txt of the pack 'mine', got"
        f" {tmp_path / 'mine' / 'choice.turn1.txt'}: more than 262,144 bytes"
    )


def test_a_file_of_the_most_bytes_is_read(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path, choice_turn1=TURN1.ljust(262_144, "x")), "choice")
    assert len(pack.turn1) == 262_144


def test_a_turn_of_the_most_placeholders_is_read(tmp_path: Path) -> None:
    assert open_pack(write_pack(tmp_path / "mine", choice_turn1=TURN1 + "{{task}}" * 97), "choice").turn1


@pytest.mark.parametrize("part", ["{", "{{a", "{{a|", "{{a}", "a", "{{|a", "\n", "{\n"])
def test_a_long_file_of_braces_is_checked_at_once(tmp_path: Path, part: str) -> None:
    write_pack(tmp_path, choice_turn1=TURN1 + "{{" + part * ((262_100 - len(TURN1)) // len(part)))
    started = time.process_time()
    assert refusal(tmp_path).endswith(", got `{{` without it")
    assert time.process_time() - started < 0.5


def test_a_long_name_is_cut_where_it_is_refused(tmp_path: Path) -> None:
    assert len(refusal(write_pack(tmp_path, choice_turn1=TURN1 + "{{" + "a" * 100_000 + "}}"))) < 500


@pytest.mark.parametrize("put", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "device"])
def test_what_is_no_file_is_no_turn(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(write_pack(tmp_path, choice_turn1=None) / "choice.turn1.txt")
    assert "expected a file choice.turn1.txt" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["nosuchpack", "", "./nosuch/dir"])
def test_an_unknown_pack_lists_the_known_ones(name: str) -> None:
    with pytest.raises(PromptError, match=r"\(.*seeact.*\), got"):
        open_pack(name, "choice")


def test_a_shipped_pack_is_found_by_name_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seeact").mkdir()
    monkeypatch.chdir(tmp_path)
    assert open_pack("seeact", "choice").name == "seeact"


def test_a_path_means_the_folder_even_where_a_shipped_pack_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pack(tmp_path / "seeact")
    monkeypatch.chdir(tmp_path)
    assert open_pack(Path("seeact"), "choice").system == "Be brief."
    assert open_pack("./seeact", "choice").system == "Be brief."


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("grounding", ["choice", "annotation", "attributes", "pixel"])
def test_every_shipped_pack_loads(grounding: str, turns: Literal[1, 2]) -> None:
    for name in shipped_packs():
        pack = open_pack(name, grounding, turns=turns)
        assert pack.turn2
        assert len(pack.messages("a", "b")) == turns


@pytest.mark.parametrize("turns", [1, 2])
@pytest.mark.parametrize("grounding", ["choice", "attributes"])
def test_shipped_texts_for_no_picture_speak_of_none(grounding: str, turns: Literal[1, 2]) -> None:
    pack = open_pack("seeact", grounding, turns=turns, image=False)
    shown = [pack.system, pack.render_turn1("t", [], "<html />"), pack.turn2]
    assert "<html />" in shown[1]
    assert not any("picture" in text for text in shown)


@pytest.mark.parametrize("image", [True, False])
def test_shipped_texts_for_one_turn_promise_no_second(image: bool) -> None:
    single, two = (open_pack("seeact", "choice", turns=turns, image=image).turn1 for turns in (1, 2))
    assert "you will be asked for one afterwards" in two
    assert "you will be asked for one afterwards" not in single
    assert single.count("\n\n") == two.count("\n\n") + 1


VARIANTS = ("plain", "single", "text", "single.text")


@pytest.mark.parametrize("own", ["", "choice."])
@pytest.mark.parametrize(
    ("turns", "image", "order"),
    [
        (2, True, ["plain"]),
        (1, True, ["single", "plain"]),
        (2, False, ["text", "plain"]),
        (1, False, ["single.text", "text", "single", "plain"]),
    ],
)
def test_the_most_specific_file_counts(
    tmp_path: Path, own: str, turns: Literal[1, 2], image: bool, order: list[str]
) -> None:
    folder = write_pack(tmp_path, choice_turn1=None)
    for variant in VARIANTS:
        html = "" if image else "{{html}}"
        name = f"{own}turn1.txt" if variant == "plain" else f"{own}turn1.{variant}.txt"
        (folder / name).write_text(f"{variant}{html}{{{{task}}}}{{{{history}}}}")
    for expected in order:
        assert open_pack(folder, "choice", turns=turns, image=image).turn1.startswith(f"{expected}{{{{")
        (folder / (f"{own}turn1.txt" if expected == "plain" else f"{own}turn1.{expected}.txt")).unlink()


def test_a_variant_counts_for_more_than_whose_file_it_is(tmp_path: Path) -> None:
    folder = write_pack(tmp_path)
    (folder / "turn1.text.txt").write_text("{{html}}{{task}}{{history}}")
    assert open_pack(folder, "choice", image=False).turn1.startswith("{{html}}")


def test_a_pack_that_can_show_no_markup_is_refused_without_a_picture(tmp_path: Path) -> None:
    with pytest.raises(
        PromptError, match=r"a file choice\.turn1\.text\.txt with \{\{html\}\}.*, got choice\.turn1\.txt of"
    ):
        open_pack(write_pack(tmp_path), "choice", image=False)


@pytest.mark.parametrize(
    ("grounding", "text", "problem"),
    [
        ("annotation", "{{choices}}", ", got {{choices}}"),
        ("attributes", "{{labels}}", ", got {{labels}}"),
        ("pixel", "Point at it.", "expected the placeholder {{coordinates}}"),
    ],
)
def test_each_grounding_has_placeholders_of_its_own(tmp_path: Path, grounding: str, text: str, problem: str) -> None:
    folder = write_pack(tmp_path, system="", turn1=TURN1, turn2=text)
    assert problem in refusal(folder, grounding)


def test_a_second_turn_is_filled_by_name(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path, system="", turn1=TURN1, turn2="{{labels}} or {{none_label}}"), "annotation")
    assert pack.fill_turn2({"labels": "1 to 9", "none_label": "NA"}) == "1 to 9 or NA"


@pytest.mark.parametrize("grounding", ["oracle", "ungrounded"])
def test_where_turn_1_is_all_any_groundings_serves(tmp_path: Path, grounding: str) -> None:
    pack = open_pack(write_pack(tmp_path, choice_turn2=None), grounding)
    assert (pack.turn1, pack.turn2) == (TURN1.removesuffix("\n"), "")


def test_the_digest_follows_each_text_and_where_it_ends(tmp_path: Path) -> None:
    base = open_pack(write_pack(tmp_path / "a"), "choice").digest
    assert base == open_pack(write_pack(tmp_path / "b"), "choice").digest
    others = [{"choice_system": "x"}, {"choice_turn1": TURN1 + "x"}, {"choice_turn2": TURN2 + "x"}]
    changed = {open_pack(write_pack(tmp_path / str(i), **new), "choice").digest for i, new in enumerate(others)}
    assert len(changed | {base}) == 4


def test_a_pack_cannot_be_changed(tmp_path: Path) -> None:
    pack = open_pack(write_pack(tmp_path), "choice")
    with pytest.raises(dataclasses.FrozenInstanceError):
        pack.system = "other"  # type: ignore[misc]


def test_the_shipped_choice_pack_asks_for_the_three_answer_lines() -> None:
    rendered = open_pack("seeact", "choice").render_turn2(["<a>", "<b>"])
    assert "\nA. <a>\nB. <b>\nC. " in rendered
    assert re.findall(r"^(ELEMENT|ACTION|VALUE): ", rendered, re.M) == ["ELEMENT", "ACTION", "VALUE"]


def test_the_shipped_pack_is_in_our_own_words(repo: Path, shared_step: Path) -> None:
    published: set[tuple[str, ...]] = set()
    for line in (shared_step / "replies_choice.jsonl").read_text(encoding="utf-8").splitlines():
        for turn in json.loads(line)["prompt"]:
            published |= runs(turn, 6)
    for file in (repo / "prompts").rglob("*.*"):
        assert not runs(file.read_text(encoding="utf-8"), 6) & published, file.name


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    words = re.findall(r"[a-z']+", text.lower())
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


TEXTS = st.text(st.sampled_from("ab{}|\n \\") | st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["{{task}}", "{{history}}", "{{choices}}", "{{none_label}}", "{{", "}}"]
)
LITERALS = st.text("xy{}\n \\1", max_size=6).filter(lambda text: "{{" not in text)


def slowly(template: list[str], values: dict[str, str]) -> str:
    """Replace at parse: the template is known as pieces, odd ones are placeholder names."""
    return "".join(values[piece] if i % 2 else piece for i, piece in enumerate(template))


def as_file(template: list[str]) -> str:
    return "".join(f"{{{{{piece}}}}}" if i % 2 else piece for i, piece in enumerate(template))


def pack_of(turn1: str = "", turn2: str = "") -> PromptPack:
    return PromptPack("p", "choice", "", turn1, turn2, "")


@given(st.lists(LITERALS, min_size=3, max_size=3), TEXTS, st.lists(TEXTS, max_size=4))
def test_turn1_equals_replacing_at_parse(literals: list[str], task: str, history: list[str]) -> None:
    template = [literals[0], "task", literals[1], "history", literals[2]]
    expected = slowly(template, {"task": task, "history": "".join(line + "\n" for line in history)})
    assert pack_of(turn1=as_file(template)).render_turn1(task, history) == expected


@given(st.lists(LITERALS, min_size=4, max_size=4), st.lists(TEXTS, max_size=40))
def test_turn2_equals_replacing_at_parse(literals: list[str], choices: list[str]) -> None:
    template = [literals[0], "choices", literals[1], "none_label", literals[2], "none_label", literals[3]]
    lines = "".join(f"{letter(i)}. {choice}\n" for i, choice in enumerate(choices))
    expected = slowly(template, {"choices": lines, "none_label": letter(len(choices))})
    assert pack_of(turn2=as_file(template)).render_turn2(choices) == expected
