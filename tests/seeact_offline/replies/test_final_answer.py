"""What models write, and what is read from it. A case is a text and the fields that a person would read."""

from __future__ import annotations

import gc
import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seeact_offline.records import OPERATIONS, GroundingReply, letter
from seeact_offline.replies.field_values import letter_index
from seeact_offline.replies.final_answer import GROUNDINGS, PARSE_FAILURES, parse_grounding_reply

SHARED = Path(__file__).parents[4] / "shared" / "data"
# options A to P; Q says "none of them"
N = 16
H = 7
NONE = "none"


def read(text: str, n_choices: int = N) -> GroundingReply:
    return parse_grounding_reply(text, "choice", n_choices)


def picked(text: str, n_choices: int = N) -> int | str | None:
    """The option read from a text, NONE, or None where the element could not be read."""
    reply = read(text, n_choices)
    return NONE if reply.picked_none else reply.choice


def answer(element: str = "H", action: str = "CLICK", value: str = "None") -> str:
    return f"ELEMENT: {element}\n\nACTION: {action}\n\nVALUE: {value}"


def cases(table: str) -> list[str]:
    """The cases of a table, one or more on a line, with bars between."""
    return [case for line in table.strip().splitlines() for case in line.split("|")]


def pairs(table: str) -> list[tuple[str, str]]:
    """`case => expected`, one or more on a line, with bars between."""
    return [(case, expected) for case, expected in (pair.split(" => ") for pair in cases(table))]


# --- letters ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "label"), [(0, "A"), (25, "Z"), (26, "AA"), (27, "AB"), (51, "AZ"), (701, "ZZ"), (702, "AAA")]
)
def test_letters_go_on_after_z(index: int, label: str) -> None:
    assert letter(index) == label
    assert letter_index(label) == index


@given(st.integers(0, 10**6))
def test_letter_and_index_are_inverse(index: int) -> None:
    assert letter_index(letter(index)) == index


def test_a_negative_index_is_refused() -> None:
    with pytest.raises(ValueError, match="index must be 0 or more, got -1"):
        letter(-1)


@pytest.mark.parametrize("label", ["", "1", "A1", "Ä"])
def test_a_label_of_other_signs_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="label must be letters"):
        letter_index(label)


# --- layouts: each says option H, CLICK, no value ---------------------------------------------------------------------

LAYOUTS = {
    "as asked": "ELEMENT: H\n\nACTION: CLICK\n\nVALUE: None",
    "after an analysis": "A. This is a link.\nH. This is a search button.\nP. A button.\n\n(Final Answer)\n\n"
    + answer(),
    "lower case": "element: h\naction: click\nvalue: none",
    "title case": "Element: H\nAction: Click\nValue: None",
    "bold label": "**ELEMENT:** H\n\n**ACTION:** CLICK\n\n**VALUE:** None",
    "bold label, colon outside": "**ELEMENT**: H\n**ACTION**: CLICK\n**VALUE**: None",
    "bold line": "**ELEMENT: H**\n\n**ACTION: CLICK**\n\n**VALUE: None**",
    "bold both": "**ELEMENT:** **H**\n**ACTION:** **CLICK**\n**VALUE:** **None**",
    "italic": "*ELEMENT:* H\n*ACTION:* CLICK\n*VALUE:* None",
    "underscores": "__ELEMENT__: H\n__ACTION__: CLICK\n__VALUE__: None",
    "bullets": "- **Element**: H\n- **Action**: CLICK\n- **Value**: None",
    "dots": "• ELEMENT: H\n• ACTION: CLICK\n• VALUE: None",
    "headings": "### ELEMENT: H\n### ACTION: CLICK\n### VALUE: None",
    "headings over text": "### ELEMENT\nH\n\n### ACTION\nCLICK\n\n### VALUE\nNone",
    "bold headings over text": "**ELEMENT**\nH\n\n**ACTION**\nCLICK\n\n**VALUE**\nNone",
    "quote": "> ELEMENT: H\n> ACTION: CLICK\n> VALUE: None",
    "numbers": "1. ELEMENT: H\n2. ACTION: CLICK\n3. VALUE: None",
    "numbers in bold": "1. **ELEMENT:** H\n2. **ACTION:** CLICK\n3. **VALUE:** None",
    "backticks": "`ELEMENT: H`\n`ACTION: CLICK`\n`VALUE: None`",
    "backticks round text": "ELEMENT: `H`\nACTION: `CLICK`\nVALUE: `None`",
    "fence": "```\nELEMENT: H\nACTION: CLICK\nVALUE: None\n```",
    "fence with a language": "```plaintext\nELEMENT: H\n\nACTION: CLICK\n\nVALUE: None\n```\n",
    "table of rows": "| ELEMENT | H |\n| ACTION | CLICK |\n| VALUE | None |",
    "table of rows with head": "| Field | Is |\n|--|--|\n| **ELEMENT** | H |\n| **ACTION** | CLICK |\n| **VALUE** | None |",
    "table with labels as head": "| ELEMENT | ACTION | VALUE |\n|---|---|---|\n| H | CLICK | None |",
    "json": '{"ELEMENT": "H", "ACTION": "CLICK", "VALUE": "None"}',
    "json with null": '{"ELEMENT": "H", "ACTION": "CLICK", "VALUE": null}',
    "json on lines": '```json\n{\n  "ELEMENT": "H",\n  "ACTION": "CLICK",\n  "VALUE": "None"\n}\n```',
    "json with other keys": '{"why": "the ELEMENT is H", "element": "H", "action": "CLICK", "value": ""}\nDone.',
    "python": "{'ELEMENT': 'H', 'ACTION': 'CLICK', 'VALUE': 'None'}",
    "braces without quotes": "{ELEMENT: H, ACTION: CLICK, VALUE: None}",
    "one line with commas": "ELEMENT: H, ACTION: CLICK, VALUE: None",
    "one line with spaces": "ELEMENT: H ACTION: CLICK VALUE: None",
    "one line with bars": "ELEMENT: H | ACTION: CLICK | VALUE: None",
    "one line in small letters": "Element: H; Action: Click; Value: None",
    "one line, bold": "**ELEMENT:** H **ACTION:** CLICK **VALUE:** None",
    "one line, after words": "(Final Answer) ELEMENT: H ACTION: CLICK VALUE: None",
    "after words": "So the final answer is: Element: H\nAction: CLICK\nValue: None",
    "in running text": "My answer would be this: element: H, action: click, value: none",
    "text under the labels": "ELEMENT:\nH\n\nACTION:\nCLICK\n\nVALUE:\nNone",
    "text two lines under": "ELEMENT:\n\nH\n\nACTION:\n\nCLICK\n\nVALUE:\n\nNone",
    "carriage returns": "ELEMENT: H\r\n\r\nACTION: CLICK\r\n\r\nVALUE: None\r\n",
    "no-break spaces": "ELEMENT:\u00a0H\nACTION:\u00a0CLICK\n\u00a0VALUE:\u00a0None\u00a0",
    "zero-width": "\ufeffELEMENT: \u200bH\u200b\nACTION: CLICK\u200b\nVALUE: None\u200b",
    "full width": "ELEMENT：Ｈ\nACTION：ＣＬＩＣＫ\nVALUE：Ｎｏｎｅ",
    "full-width labels": "ＥＬＥＭＥＮＴ：「Ｈ」\nＡＣＴＩＯＮ：CLICK。\nＶＡＬＵＥ：None。",
    "mathematical bold": "𝐄𝐋𝐄𝐌𝐄𝐍𝐓: 𝐇\n𝐀𝐂𝐓𝐈𝐎𝐍: 𝐂𝐋𝐈𝐂𝐊\n𝐕𝐀𝐋𝐔𝐄: 𝐍𝐨𝐧𝐞",
    "equals": "ELEMENT = H\nACTION = CLICK\nVALUE = None",
    "dash": "ELEMENT - H\nACTION - CLICK\nVALUE - None",
    "arrow": "ELEMENT -> H\nACTION -> CLICK\nVALUE -> None",
    "other order": "ACTION: CLICK\nELEMENT: H\nVALUE: None",
    "no value": "ELEMENT: H\nACTION: CLICK",
    "empty value": "ELEMENT: H\nACTION: CLICK\nVALUE:",
    "empty value, then an explanation": "ELEMENT: H\nACTION: CLICK\nVALUE:\n\nThis submits the search form.",
    "explanation between": "ELEMENT: H\nIt searches.\n\nACTION: CLICK\nIt submits.\n\nVALUE: None\nNothing to type.",
    "explanation after": answer()
    + "\n\nExplanation: The element: a button. Clicking it is the right action: it submits.",
    "explained in small letters": answer()
    + "\n\n- Element: H is the button\n- Action: Clicking submits\n- Value: nothing to type",
    "end token": "ELEMENT: H\nACTION: CLICK\nVALUE: None</s>",
    "chat token": "ELEMENT: H\nACTION: CLICK\nVALUE: None<|im_end|>",
    "final before label": "Final ELEMENT: H\nFinal ACTION: CLICK\nFinal VALUE: None",
    "words in brackets": "ELEMENT (letter): H\nACTION (one of three): CLICK\nVALUE (if any): None",
    "format in other words": "The capital letter of my choice: H\nACTION: CLICK\nVALUE: None",
    "emoji": "👉 ELEMENT: H\n👉 ACTION: CLICK\n👉 VALUE: None",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_answer(text: str) -> None:
    assert read(text) == GroundingReply(choice=H, op="CLICK")


# --- the element ------------------------------------------------------------------------------------------------------

NUMBERS = tuple(str(i + 1) for i in range(17))
SINGLE = tuple(letter(i) for i in range(17))
DOUBLE = tuple(letter(26 + i) for i in range(50))


def marked(element: str, labels: tuple[str, ...] = NUMBERS) -> str | None:
    """The label read from an answer, NONE, or None where it could not be read."""
    reply = parse_grounding_reply(answer(element), "annotation", len(labels), labels=labels)
    assert (reply.failure in ("unknown_choice", "several", "declined")) == (
        reply.choice is None and not reply.picked_none
    )
    assert reply.op == "CLICK"
    return NONE if reply.picked_none else None if reply.choice is None else labels[reply.choice]


def lettered(element: str) -> str | None:
    """As `marked`, for options by letters."""
    reply = read(answer(element))
    assert (reply.failure in ("unknown_choice", "several", "declined")) == (
        reply.choice is None and not reply.picked_none
    )
    assert reply.op == "CLICK"
    return NONE if reply.picked_none else None if reply.choice is None else letter(reply.choice)


OPTION_H = """
H|h|H.|H)|(H)|[H]|"H"|'H'|“H”|‘H’|「H」|【H】|**H**|`H`|*H*|__H__|<H>|{H}|H:|H。|Ｈ|h.|Ⓗ|H</s>|$\\boxed{H}$|\\boxed{H}
Option H|option H|Choice H|Element H|Choice: H|Option H.|Option (H)|Option "H"|**Option H**|letter H|Letter: H
H. <button id=7 submit search> Search </button>|H (the Search button)|H - Search|H – Search|H: Search|H) Search
H "Search"|H, the Search button|H.<button>|H.Search|H（搜索按钮）|H。搜索|H <button id=7>|Option H is the one|<b>H</b>
H. Sign in or register|H. Terms and conditions|Option H, a button|Choice H because it fits|H; Search|[H] Search
The letter of the correct element is H|Please select H|The letter for the best option is H.|H<eos>|H</s>|The capital letter of my choice: H|The correct choice is H|the answer is H.|My choice is (H)|The letter H
H - <button id=7 button or link>|H. None|H. A button|H. I agree|H (none of the others fit)|Element H is the search button
"""
OPTION_A = """
A|A.|a|(a)|"A"|A. <a id=0> Profile </a>|A <a id=0> Profile </a>|Option A|Option A link at the top
A - the link|A (Search)|A "Search"|A: a link|[A] Profile|A) a link|**A**
"""
FIRST_NAMED = """
H because it matches better than O => 7|H rather than G => 7|H, because it matches better than A or B => 7
H since it is closer to the task than G => 7|H over G => 7|H instead of F or G => 7|H not G => 7|H and not G => 7
H as opposed to G => 7|H is a better match than G => 7|H matches better than F or G => 7|H would be better than G => 7
H, not F or G => 7|H best matches the target => 7|H unlike G is a button => 7|H although G is similar => 7
A because it matches better than B => 0|A rather than B => 0|A is the search box => 0|A over B => 0
I because it is the search button => 8|I is the button => 8|I rather than G => 8|It is H => 7|I would choose H => 7
The best match is H, not G => 7|Most likely H => 7|Option H rather than option G => 7
"""
NOT_ONE_LETTER = """
A button|A link on the top|a search box|A "Search" button|a "Search" button|A (blue) button|a (blue) link
I think it is the button|I'm not sure|I, the user|A's link|A-Z index|I-94 form|X-ray|A/B|A & B|A or B|A and B|A, B
Option A or B|Option A or option B|A/B/C|H (or P)|H. <button> Go </button> or P. <button> Go </button>|H or none
Z|R|AA|Option Z|S. Something|H1|7|id=7|<button id=7> Search </button>|<a> Profile </a>|<b> Bold text|HH|H Search
The element is a button|Search|e.g. the button|U.S. map|choice a link|?|A. None of the other options match|A or B or C
A (None of the other options match the correct element)|E, i.e. none of the other options match|**E** — None of the other options match it
Input field labeled "Keyword"|T shirt|C# course|H & M store|A.com link|A **Search** button|the Search button
H is not the button|Option H isn't there|A rather large button|H because it fits, or P|A clearly visible link|I would say so
"""
NONE_OF_THEM = """
Q|Q.|q|(Q)|Option Q|Q. The one that I meant is not here|None|none|NONE|"None"|**None**|None.|(None)|NA|N/A|n/a|N/A.
None of the above|None of the other options match|none of the other options|None of these|Option: None|null
None (no matching element)|The answer is none of the above|No matching element|Not applicable|No option matches
The element I decided on is not listed here|R. None of the other options match|None - it is not there|Not listed
The correct choice is NA|Nothing matches|Neither of them fits
"""
MARK_12 = """
12|12.|(12)|[12]|<12>|{12}|"12"|“12”|「12」|**12**|`12`|#12|１２|12:|12)|mark 12|Mark #12|Mark: 12|label 12|Label "12"
box 12|number 12|No. 12|element 12|the mark 12|the box labelled 12|the box labelled "12"|the element labeled as [12]
the element marked with the number 12|the red box 12|Box number 12|mark [12] is the search button|12 is the search button
12. Search|12 (Search)|12 - Search|12 – the Search button|12 - 2 adults|12: Search|12 → Search|12, the Search button
The label is 12|My answer is 12|the chosen mark is 12, because it is the search field|12 since it is the field
"""
NOT_ONE_MARK = """
18|0|012|A|12 or 13|12, 13|12 and 13|12/13|12-14|12–14|12 to 14|12.5|12:30|12%|12 items|12th|twelve|1 2|12 or NA
12 or none|12, or mark 13|12 (or 13)|the search button|The search button (12)|The 12 button|date 12|?|Search 12
The target is not marked with 12 but with 13|12 is not the search button|The box without a label beside 12
"""
NO_MARK = """
NA|N/A|n/a|na|none|None|[NA]|"NA"|**NA**|N/A.|NA (it is not marked)|None of the marks|mark NA|label: NA|Not applicable
no mark|not marked|There is no mark on it|Ｎ/A|None of the boxes matches
The target is not marked|The target element is not labelled in the image|Target not boxed|The button isn't marked|unlabeled
The target has no mark|The field does not have a label|The element is missing a label|The target is not marked with a letter
It is unmarked|I cannot find a label, so NA|The target is not visible|The link lacks a red box
"""


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (OPTION_H, "H"),
        (OPTION_A, "A"),
        ("I|I.|I. <span id=8> , </span>|Option I|**I**|(I)|I - a span|i", "I"),
        (NOT_ONE_LETTER, None),
        (NONE_OF_THEM, NONE),
    ],
    ids=["H", "A", "I", "not one letter", "none of them"],
)
def test_the_letter_of_an_option_is_read_in_any_dress(table: str, expected: str | None) -> None:
    assert {element: lettered(element) for element in cases(table)} == dict.fromkeys(cases(table), expected)


@pytest.mark.parametrize(
    ("labels", "table", "expected"),
    [
        (NUMBERS, MARK_12, "12"),
        (NUMBERS, NOT_ONE_MARK, None),
        (SINGLE, 'H|h|[H]|mark H|the box labelled "H"|H. Search', "H"),
        (SINGLE, "A|label A|A (the search)", "A"),
        (SINGLE, "R|AB|A button|I think it is H|H or I|H, I|12|the search button", None),
        (DOUBLE, 'AB|ab|[AB]|mark AB|the box labelled "AB"', "AB"),
        (DOUBLE, "ABC|A|BY|AB or AC|AB/AC|as the box|12|at the top", None),
        *((labels, NO_MARK, NONE) for labels in (NUMBERS, SINGLE, DOUBLE)),
    ],
)
def test_a_mark_is_read_in_any_dress(labels: tuple[str, ...], table: str, expected: str | None) -> None:
    assert {element: marked(element, labels) for element in cases(table)} == dict.fromkeys(cases(table), expected)


def test_two_letters_are_a_label_even_where_they_spell_a_word() -> None:
    table = "AS => AS|AS (search box) => AS|AN => AN|the mark AT => AT|AX: the search => AX"
    assert [(element, marked(element, DOUBLE)) for element, _ in pairs(table)] == pairs(table)
    assert marked("I", SINGLE) == "I"


def test_the_label_first_named_is_chosen_over_others() -> None:
    expected = [(element, letter(int(choice))) for element, choice in pairs(FIRST_NAMED)]
    assert [(element, lettered(element)) for element, _ in expected] == expected
    assert [(element, marked(element, SINGLE)) for element, _ in expected] == expected


def test_labels_of_two_letters_follow_z() -> None:
    table = {
        (30, "AA"): 26, (30, "AB. <a>"): 27, (30, "Option AC"): 28, (30, "aa"): 26, (30, "AE"): NONE, (30, "AF"): None,
        (30, "A"): 0, (26, "AA"): NONE, (25, "AA"): None, (25, "Z"): NONE, (0, "A"): NONE, (50, "NA"): NONE,
        (400, "NA"): 364, (50, "AN"): 39, (50, "AN input field"): None,
    }  # fmt: skip
    assert {(n, element): picked(answer(element), n) for n, element in table} == table


def test_json_null_for_the_element_is_none_of_them() -> None:
    assert read('{"ELEMENT": null, "ACTION": null, "VALUE": null}').picked_none


# --- the action -------------------------------------------------------------------------------------------------------


ACTIONS = """
CLICK => CLICK|click => CLICK|Click on => CLICK|CLICK (to submit) => CLICK|{CLICK} => CLICK|**CLICK** => CLICK
"CLICK" => CLICK|CLICK. => CLICK|[CLICK] => CLICK|click() => CLICK|CLICK - opens the list => CLICK|CLICK。 => CLICK
Click on the Search button => CLICK|CLICK (open, then select later) => CLICK|CLICK on the type dropdown => CLICK
TYPE => TYPE|TYPE text => TYPE|Type => TYPE|TYPE the zip code => TYPE|TYPE: 10203 => TYPE|ＴＹＰＥ => TYPE
SELECT => SELECT|SELECT an option => SELECT|select_option => SELECT|The action is SELECT => SELECT|`SELECT` => SELECT
"""
OTHER_ACTIONS = """
HOVER|SCROLL|SCROLL DOWN|PRESS ENTER|CLICK or TYPE|CLICK/TYPE|CLICK, TYPE|CLICK and TYPE|CLICK then TYPE|CLICK and wait
CLICK (or TYPE)|CLICKING|None|N/A|the button|WAIT|SELECTBOX|CLICK on it and then TYPE|Type text and click|ENTER
TYPE and press ENTER
"""


def test_the_action_is_read_in_any_dress() -> None:
    for action, op in pairs(ACTIONS):
        assert read(answer(action=action, value="x")) == GroundingReply(choice=H, op=op, value="x"), action


def test_any_other_action_is_unknown() -> None:
    for action in cases(OTHER_ACTIONS):
        assert read(answer(action=action, value="x")) == GroundingReply(H, "", "x", "unknown_action"), action


# --- the value --------------------------------------------------------------------------------------------------------


KEPT = [
    *"10203|7:30 PM|Doe, John|john@x.com|None of these|New York; NY|a - b|50%|-5|A|0|5.|https://x.com/a?b=c|C++ (3rd ed.)".split("|"),
    *"10203 (the zip code)|5' 10\"|O'Reilly|¿Qué?|C:\\|Lights, Camera, Action: The Movie|ACTION: A HISTORY|½ cup|ﬁne".split("|"),
    *"１０２０３|Ｈ|東京|a_b_c|[x]|\"a\" and \"b\"|\"New\" York|'Tis|2 * 3 * 4|Nonesuch|e.g. None".split("|"),
    "x | y",
]  # fmt: skip
UNWRAPPED = {
    "10203": [
        '"10203"', "'10203'", "**10203**", "*10203*", "_10203_", '**"10203"**', '"**10203**"', '"10203" (the zip code)',
        '"10203" - the zip code', '"10203".', "\u00a010203\u00a0", "10203</s>",
    ],
    "7:30 PM": ["“7:30 PM”"], "Doe, John": ["`Doe, John`"], "東京": ["「東京」"], "Paris": ["«Paris»"], "Köln": ["„Köln“"],
    "O'Reilly": ['"O\'Reilly"', "'O'Reilly'"], "'10203'": ["\"'10203'\""],
}  # fmt: skip


def test_the_value_survives_exactly() -> None:
    written = [(value, value) for value in KEPT] + [(one, value) for value, some in UNWRAPPED.items() for one in some]
    for one, value in written:
        assert read(answer(action="TYPE", value=one)) == GroundingReply(choice=H, op="TYPE", value=value), one


def test_no_value_is_empty_and_fails_where_one_is_needed() -> None:
    for value in cases('None|none|NONE|"None"|**None**|None.|(None)|N/A|n/a|null|-|—||""|`None`|Ｎｏｎｅ'):
        assert read(answer(value=value)) == GroundingReply(choice=H, op="CLICK"), value
        assert read(answer(action="TYPE", value=value)) == GroundingReply(H, "TYPE", failure="missing_value"), value


def test_none_with_a_reason_is_no_value_for_a_click_only() -> None:
    assert read(answer(value="None (a click needs no value)")).value == ""
    assert read(answer(action="SELECT", value="None (no bags)")).value == "None (no bags)"


VALUE_LAYOUTS = {
    "bold label": "**ELEMENT:** H\n**ACTION:** TYPE\n**VALUE:** {}",
    "bold line": "**ELEMENT: H**\n**ACTION: TYPE**\n**VALUE: {}**",
    "code line": "`ELEMENT: H`\n`ACTION: TYPE`\n`VALUE: {}`",
    "one line": "ELEMENT: H, ACTION: TYPE, VALUE: {}",
    "value first": "VALUE: {}, ELEMENT: H, ACTION: TYPE",
    "one bold line": "**ELEMENT: H, ACTION: TYPE, VALUE: {}**",
    "braces": "{{ELEMENT: H, ACTION: TYPE, VALUE: {}}}",
    "table": "| ELEMENT | H |\n| ACTION | TYPE |\n| VALUE | {} |",
    "table with head": "| ELEMENT | ACTION | VALUE |\n|---|---|---|\n| H | TYPE | {} |",
    "json": '{{"ELEMENT": "H", "ACTION": "TYPE", "VALUE": "{}"}}',
    "python": "{{'ELEMENT': 'H', 'ACTION': 'TYPE', 'VALUE': '{}'}}",
    "below": "ELEMENT: H\nACTION: TYPE\nVALUE:\n{}",
    "all below": "ELEMENT:\n\nH\n\nACTION:\n\nTYPE\n\nVALUE:\n\n{}",
    "explanation below": "ELEMENT: H\nACTION: TYPE\nVALUE: {}\nThis is what the task asks for.",
    "fence": "```\nELEMENT: H\nACTION: TYPE\nVALUE: {}\n```\nDone.",
    "full-width colon": "ELEMENT：H\nACTION：TYPE\nVALUE：{}",
}


@pytest.mark.parametrize("layout", VALUE_LAYOUTS.values(), ids=VALUE_LAYOUTS)
def test_the_value_survives_every_layout(layout: str) -> None:
    for value in cases("10203|7:30 PM|Doe, John|john@x.com|Best value: 3, say|a (b)|½ é 東京"):
        assert read(layout.format(value)) == GroundingReply(choice=H, op="TYPE", value=value), value


def test_json_escapes_and_numbers_are_decoded() -> None:
    assert read(r'{"ELEMENT": "H", "ACTION": "TYPE", "VALUE": "say \"hi\", Bj\u00f6rk"}').value == 'say "hi", Björk'
    assert read('{"ELEMENT": "H", "ACTION": "TYPE", "VALUE": 10203}').value == "10203"


def test_prose_after_an_empty_value_is_not_the_value() -> None:
    assert read("ELEMENT: H\nACTION: TYPE\nVALUE:\n\nThis fills in the form.").failure == "missing_value"
    assert read('{"ELEMENT": "H", "ACTION": "TYPE", "VALUE": ""}\nThis fills in the form.').failure == "missing_value"


# --- which answer -----------------------------------------------------------------------------------------------------


def test_the_last_complete_answer_wins() -> None:
    text = answer("A", "TYPE", "x") + "\n\nOn reflection:\n\n" + answer("H", "SELECT", "y")
    assert read(text) == GroundingReply(choice=H, op="SELECT", value="y")


def test_a_later_answer_replaces_the_earlier_as_a_whole() -> None:
    text = answer("A", "TYPE", "x") + "\n\nOn reflection:\n\nELEMENT: H\nACTION: CLICK"
    assert read(text) == GroundingReply(choice=H, op="CLICK")


def test_a_later_answer_without_its_value_does_not_borrow_one() -> None:
    text = answer("A", "TYPE", "x") + "\n\nELEMENT: H\nACTION: TYPE"
    assert read(text) == GroundingReply(choice=H, op="TYPE", failure="missing_value")


def test_a_later_unreadable_answer_is_not_replaced_by_an_earlier_one() -> None:
    assert read(answer("A") + "\n\n" + answer("H or P")).failure == "unknown_choice"


@pytest.mark.parametrize(
    "tail", ["ELEMENT: H", "So I choose ELEMENT: H.", "ACTION: TYPE", "VALUE: None", "Element: the search button"]
)
def test_a_part_repeated_after_the_answer_changes_nothing(tail: str) -> None:
    text = answer("H", "TYPE", "x") + "\n\n" + tail
    assert read(text) == GroundingReply(choice=H, op="TYPE", value="x")


@pytest.mark.parametrize(
    "prose",
    [
        "The element: a search box at the top.\nThe action: click.",
        "Element: the Search button\nAction: Click on it\nLocation: top right",
        "**Target element:** Search button\n**Action:** TYPE",
        "Action: TYPE the name.\n\nNext I go over the options.\nA. no\nB. no",
        "Element: A\nAction: CLICK",
        "Action: CLICK",
        "VALUE",
        "My next action: click the element: Search",
        "The action is to CLICK; the value: none.",
    ],
)
def test_fields_named_in_the_analysis_do_not_count_before_an_answer(prose: str) -> None:
    assert read(f"{prose}\n\n{answer('H', 'SELECT', 'y')}") == GroundingReply(choice=H, op="SELECT", value="y")


def test_an_action_far_above_does_not_complete_an_answer() -> None:
    text = "Action: TYPE\n" + "a line of analysis\n" * 20 + "ELEMENT: H"
    assert read(text) == GroundingReply(choice=H, failure="missing_action")


ECHOES = {
    "one letter": "ELEMENT: one letter from the list (Q if it is absent)\nACTION: CLICK, TYPE or SELECT\nVALUE: for TYPE, the "
    "text; for SELECT, the entry",
    "the letter": "ELEMENT: The letter of your option.\n\nACTION: one of {CLICK, TYPE, SELECT}.\n\nVALUE: Specify what ACTION needs.",
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_the_prompts_own_format_is_not_an_answer(echo: str) -> None:
    assert read(echo) == GroundingReply(choice=None, failure="no_final_answer")


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
def test_an_answer_beside_the_prompts_own_format_counts(echo: str) -> None:
    assert read(f"{echo}\n\n{answer()}") == GroundingReply(choice=H, op="CLICK")
    assert read(f"{answer()}\n\n{echo}") == GroundingReply(choice=H, op="CLICK")


# --- failures ---------------------------------------------------------------------------------------------------------


MISSING = {
    "": "no_final_answer",
    "\n\n": "no_final_answer",
    "I cannot help with that.": "no_final_answer",
    "H": "no_final_answer",
    "The element: a search box at the top": "no_final_answer",
    "ELEMENT:": "no_final_answer",
    "ACTION: CLICK\nVALUE: None": "missing_element",
    "ELEMENT:\nACTION: CLICK\nVALUE: None": "missing_element",
    "VALUE: x": "missing_element",
    "ELEMENT: ???\nACTION: CLICK": "unknown_choice",
    "ELEMENT: H": "missing_action",
    "ELEMENT: H\nVALUE: x": "missing_action",
    "ELEMENT: H\nACTION:\nVALUE: None": "missing_action",
    "ELEMENT: H\nACTION: HOVER": "unknown_action",
    "ELEMENT: H\nACTION: SELECT": "missing_value",
}


@pytest.mark.parametrize(("text", "failure"), MISSING.items())
def test_what_is_missing_has_a_name(text: str, failure: str) -> None:
    reply = read(text)
    assert reply.failure == failure
    assert not reply.picked_none


def test_fields_that_could_be_read_stand_beside_the_failure() -> None:
    assert read("ELEMENT: H\nVALUE: x") == GroundingReply(choice=H, value="x", failure="missing_action")
    assert read(answer("the button", "TYPE", "x")) == GroundingReply(None, "TYPE", "x", "unknown_choice")
    assert read("ACTION: TYPE\nVALUE: x") == GroundingReply(None, "TYPE", "x", "missing_element")


@pytest.mark.parametrize(
    "text", ["ELEMENT: Q", answer("Q", "HOVER"), answer("Q", "TYPE"), answer("Q", "None"), answer("Q", "")]
)
def test_none_of_them_needs_no_action_and_no_value(text: str) -> None:
    reply = read(text)
    assert (reply.picked_none, reply.failure, reply.choice) == (True, None, None)


def test_an_unknown_grounding_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"grounding must be one of choice, annotation, attributes, got 'pixel'"):
        parse_grounding_reply("", "pixel", N)


def test_a_negative_number_of_choices_is_refused() -> None:
    with pytest.raises(ValueError, match="n_choices must be 0 or more, got -1"):
        read("", -1)


# --- marks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "echo", ["one label from the picture (NA if your element has no mark)", "the label of your chosen element"]
)
def test_the_prompts_own_line_is_no_mark(echo: str) -> None:
    text = answer(echo, "CLICK, TYPE or SELECT") + "\n\n" + answer("7")
    assert parse_grounding_reply(text, "annotation", 17, labels=NUMBERS).choice == 6
    assert parse_grounding_reply(answer(echo), "annotation", 17, labels=NUMBERS).choice is None


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_mark(text: str) -> None:
    assert parse_grounding_reply(text, "annotation", len(SINGLE), labels=SINGLE) == GroundingReply(H, op="CLICK")


def test_marks_are_numbers_from_1_unless_said_otherwise() -> None:
    assert parse_grounding_reply(answer("17"), "annotation", 17).choice == 16


def test_labels_must_be_as_many_as_choices() -> None:
    with pytest.raises(ValueError, match="labels must be n_choices = 3 texts, got 2"):
        parse_grounding_reply("", "annotation", 3, labels=("1", "2"))


# --- attributes -------------------------------------------------------------------------------------------------------

ATTRIBUTES = "ELEMENT: {}\n\nELEMENT TYPE: {}\n\nELEMENT TEXT: {}\n\nACTION: {}\n\nVALUE: {}"


def attributes(text: str) -> GroundingReply:
    return parse_grounding_reply(text, "attributes", 0)


def test_attributes_are_read_as_written() -> None:
    reply = attributes(
        ATTRIBUTES.format("the button right of the zip code", "BUTTON", '"Search: all"', "CLICK", "None")
    )
    assert reply == GroundingReply(None, "CLICK", element_type="BUTTON", element_text="Search: all")


def test_attributes_are_read_from_json() -> None:
    reply = attributes(
        '{"ELEMENT": "x", "ELEMENT_TYPE": "LINK", "ELEMENT_TEXT": "Sign in, now", "ACTION": "CLICK", "VALUE": null}'
    )
    assert reply == GroundingReply(None, "CLICK", element_type="LINK", element_text="Sign in, now")


@pytest.mark.parametrize(
    ("fields", "failure"),
    [
        (("x", "BUTTON", "", "CLICK", ""), "missing_element_text"),
        (("x", "BUTTON", "None", "CLICK", ""), "missing_element_text"),
        (("x", "", "Search", "CLICK", ""), "missing_element_type"),
        (("x", "BUTTON", "Go", "HOVER", ""), "unknown_action"),
        (("x", "TEXTBOX", "Go", "TYPE", ""), "missing_value"),
        (("", "", "", "CLICK", ""), "missing_element"),
    ],
)
def test_attributes_that_are_missing_have_a_name(fields: tuple[str, ...], failure: str) -> None:
    assert attributes(ATTRIBUTES.format(*fields)).failure == failure


def test_attributes_named_in_prose_are_no_answer() -> None:
    assert attributes("I mean the element: a search box.").failure == "no_final_answer"


def test_attributes_can_say_none_of_them() -> None:
    assert attributes(ATTRIBUTES.format("None", "None", "None", "None", "None")).picked_none


# --- untrusted text ---------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *"ELEMENT ACTION VALUE ELEMENT_TYPE element Value ELEMENT: ACTION: VALUE: : ： option letter or None N/A".split(),
        *"| || ** * _ ` ``` \" ' “ ” { } [ ] ( ) < > <b> - — , . # \\ \\boxed{ 「 」 H A Ｈ CLICK TYPE SELECT".split(),
        *("\n", "\r\n", " ", "\n\n", "\x00", "\ud800", "\u200b", "\u0301", '"VALUE":', "'ELEMENT':"),
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=())),
    st.lists(PIECES, max_size=60).map("".join),
    st.lists(PIECES, max_size=60).map(" ".join),
)


@given(TEXTS, st.sampled_from(GROUNDINGS), st.integers(0, 60))
@example("ELEMENT: \ud800\x00", "choice", 3)
@example('{"VALUE": "\\ud800", "ELEMENT": "H', "choice", 16)
def test_any_text_gives_a_reply_that_keeps_the_contract(text: str, grounding: str, n_choices: int) -> None:
    reply = parse_grounding_reply(text, grounding, n_choices)
    assert reply.failure is None or reply.failure in PARSE_FAILURES
    assert reply.op in ("", *OPERATIONS)
    assert "\n" not in reply.value
    if reply.choice is not None:
        assert 0 <= reply.choice < n_choices
        assert not reply.picked_none
    if reply.picked_none:
        assert (reply.choice, reply.failure) == (None, None)
    if reply.failure is None and grounding == "choice":
        assert reply.picked_none or (reply.choice is not None and reply.op and (reply.value or reply.op == "CLICK"))


WORDS = st.text(st.characters(categories=("L", "N"), max_codepoint=0x2E80), min_size=1, max_size=8)


@given(st.integers(0, 40), st.sampled_from(OPERATIONS), st.lists(WORDS, min_size=1, max_size=4).map(" ".join))
def test_a_plain_answer_is_read_back(index: int, op: str, value: str) -> None:
    reply = read(answer(letter(index), op, value), 40)
    expected = "" if value.lower() in ("none", "na", "null", "no value", "not applicable") else value
    if index == 40:
        assert reply.picked_none
    else:
        assert (reply.choice, reply.op, reply.value) == (index, op, expected)


@given(
    st.text(st.characters(codec="utf-8"), max_size=200).filter(
        lambda t: not any(w in t.upper() for w in ("ELEMENT", "ACTION"))
    )
)
def test_an_analysis_before_the_answer_changes_nothing(prose: str) -> None:
    assert read(f"{prose}\n\n{answer('H', 'TYPE', 'x y')}") == GroundingReply(choice=H, op="TYPE", value="x y")


HUGE = [
    *(
        "ELEMENT: H\nACTION: CLICK\nVALUE: x\n",
        "element: a button\naction: click\n",
        "ELEMENT: H ACTION: CLICK VALUE: x ",
    ),
    *("“ELEMENT”: x ", '"ELEMENT": "', "'VALUE': ' ", '"ELEMENT": {"ELEMENT": ', "ELEMENT\n", "ELEMENT:\n", "VALUE: "),
    *(
        "the element: a, ",
        "  ELEMENT: H | ",
        "\\boxed{",
        "[ELEMENT: ]",
        "_" * 50 + "ELEMENT",
        "ELEMENT " + "*" * 12,
        "or ",
    ),
    *("\n", " ", "*", "-", "|", '"', "(", "{", "<", "a", "é", "\u0301", "Ｈ", "\ud800", "| ELEMENT | ACTION |\n"),
]


def seconds(text: str) -> float:
    """Of the processor, without the collector of garbage, whose time depends on all that the tests before have left."""
    gc.disable()
    try:
        start = time.process_time()
        read(text)
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize(
    "head",
    ["", *(pytest.param(head, marks=pytest.mark.nightly) for head in ("ELEMENT: H", '{"VALUE": "', " | ELEMENT: "))],
)
def test_no_text_takes_more_than_linear_time(head: str) -> None:
    slow = {piece: spent for piece in HUGE if (spent := seconds(head + piece * (200_000 // len(piece)))) > 1}
    assert slow == {}


def test_a_reply_of_a_megabyte_takes_less_than_a_second() -> None:
    text = "A. This is a link, not the search button; the element: a link at the top.\n" * 14_000 + answer()
    assert len(text) > 1_000_000
    assert seconds(text) < 1
    assert picked(text) == H


# --- real replies -----------------------------------------------------------------------------------------------------


def records(path: Path) -> list[dict[str, object]]:
    if not path.is_file():
        pytest.skip(f"no real replies here: {path} does not exist")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_published_replies_of_the_real_step_are_read() -> None:
    replies = [row["replies"] for row in records(SHARED / "seeact_step" / "replies_choice.jsonl")]
    read_replies = [read(reply[1], n) for reply, n in zip(replies, (16, 17, 17), strict=True)]  # type: ignore[index]
    none = GroundingReply(choice=None, op="CLICK", picked_none=True)
    assert read_replies == [GroundingReply(choice=H, op="CLICK"), none, none]


def test_the_published_prompt_is_no_answer() -> None:
    for row in records(SHARED / "seeact_step" / "replies_choice.jsonl"):
        prompt = row["prompt"][2]  # type: ignore[index]
        assert read(prompt, 17) == GroundingReply(choice=None, failure="no_final_answer")
        assert read(f"{prompt}\n\n{answer()}", 17) == GroundingReply(choice=H, op="CLICK")


def test_published_plans_agree_in_action_and_value() -> None:
    """Not more than 2 of 1,337: a plan with two answers, and one that begins with the prompt's own format."""
    rows = records(SHARED / "uground" / "gpt4o_cross_task_plan.jsonl")
    differing = []
    for row in rows:
        reply = read(str(row["response"]))
        op = row["gpt_action"] if row["gpt_action"] in OPERATIONS else ""
        value = "" if row["gpt_value"] == "None" else row["gpt_value"]
        if (reply.op, reply.value) != (op, value):
            differing.append(row["action_uid"])
    assert len(rows) == 1337
    assert len(differing) <= 2, differing


def test_descriptions_in_published_plans_are_never_read_as_letters() -> None:
    rows = records(SHARED / "uground" / "gpt4o_cross_task_plan.jsonl")
    assert [row["description"] for row in rows if read(str(row["response"])).choice is not None] == []
