"""The words and signs that several readers look for, and the plain form of a model's characters.

A word is a piece of a regular expression, to be compiled with `re.IGNORECASE` and put into `(?:...)` unless its docstring
says otherwise. Only words that mean the same to all readers are here; those that only one reader takes for an
introduction, an order or a label are in that reader's module.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from seeact_offline.records import OPERATIONS

MAX_READ = 50_000
"""Characters of free text that are read, from the end, where the decision is."""

# --- words -----------------------------------------------------------------------------------------------------------

OPERATION = "|".join(OPERATIONS)
"""Any operation that can be carried out."""

NOTHING = "none|n/?a|null"
"""Written where there is no element, and where there is no value."""
NO_ELEMENT = rf"{NOTHING}|n\.a|nil"
"""Written where no option, mark or element is the right one."""
NO_VALUE = rf"[\s({{\[<]*(?:{NOTHING}|not applicable|no value)"
"""Written where there is no value; with brackets that may open before it. Needs no `(?:...)`."""

# --- signs -----------------------------------------------------------------------------------------------------------

MARKUP = re.compile(r"\\[a-z]{1,10}\{|</?(?:b|strong)>")
"""LaTeX and HTML around a word, as in `\\boxed{H}` or `<b>H</b>`."""
NUMBERING = r"\d{1,2}[.)][ ]?"
"""The number of a list item, such as `2. `. Works in a verbose expression too."""
DASHES = "-\u2013\u2014"
"""Hyphen, en dash and em dash. They may stand in `[...]`, at the beginning."""
QUOTES = "\"'\u201c\u201d\u2018\u2019"
"""The quotes that a key may have."""
CLOSING_QUOTES = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d",
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u300a": "\u300b",
    "\uff02": "\uff02",
}
"""Each opening quote with the quotes that may close it."""
STRAIGHT_QUOTES = str.maketrans(
    dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"') | dict.fromkeys("\u2018\u2019", "'")
)
"""Table for `str.translate`: curly quotes and guillemets become straight ones."""

# --- characters ------------------------------------------------------------------------------------------------------

# look-alikes that Unicode does not fold
_COLONS = {"\u2236": ":", "\ua789": ":", "\u02d0": ":"}
_INVISIBLE = dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad", " ")
_LOOK_ALIKES = {**_COLONS, **_INVISIBLE}


def plain(text: str) -> str:
    """The text in compatibility form, of the same length: full-width, bold and no-break characters become plain.

    A position found in it is the same position in the text as the model wrote it.
    """
    return text if text.isascii() else "".join(map(_plain_char, text))


def folded(text: str) -> str:
    """The text in compatibility form, of any length: for readers that never go back to the text as written."""
    return unicodedata.normalize("NFKC", text)


@lru_cache(maxsize=4096)
def _plain_char(char: str) -> str:
    one = _LOOK_ALIKES.get(char) or folded(char)
    return one if len(one) == 1 else char


# --- thoughts ---

# Tags: Tongyi-MAI/MAI-UI src/prompt.py, QwenLM/Qwen3-VL#732, trycua/cua loops/uitars2.py, likaixin2000/ScreenSpot-Pro models/kimivl.py,
# stepfun-ai/gelab-zero parser_0920_summary.py, Mistral's `[THINK]`.
_NAMES = r"(?:gui_|grounding_|seed:)?think(?:ing)?(?:_never_used_\w{1,64})?|thoughts?|reasoning"
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAMES})>|◁(?P<bar>/?)(?P<triangle>think)▷|\[(?P<slash>/?)(?P<square>THINK)\]",
    re.IGNORECASE,
)
_TAGGED_CALL = r"<(?:seed:|minimax:)?tool_call>|<function[=\s]|<invoke\s|<\|tool_calls?(?:_section)?_begin\|>"
_CALL = re.compile(_TAGGED_CALL, re.IGNORECASE)
_ANSWER = re.compile(
    rf"{_TAGGED_CALL}|<answer>|<action>|<\|begin_of_box\|>|```|^[ \t>*#]*(?:(?:grounded )?operation|actions?|final answer|answer|element|point|status)\b[ \t*]*[:\uff1a]"
    r"|^explain:|^[ \t]*[\[{][ \t]*[{\"']|^(?:pyautogui|computer)\.",
    re.IGNORECASE | re.MULTILINE,
)
"""Where an answer begins, and with it ends a thought that nothing closes."""


_ANALYSIS = re.compile(r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)", re.DOTALL)
"""The thoughts of gpt-oss (openai/harmony)."""
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>|</?answer>", re.IGNORECASE)
_FIRST_TOKEN = re.compile(r"\s*(?:<pad>|<s>|<bos>)")
_LAST_TOKEN = re.compile(
    r"(?:</s>|<(?:eos|pad|end_of_turn|end_of_utterance)>|\[(?:EOS|/INST)\]|<[|\uff5c]end\u2581of\u2581sentence[|\uff5c]>"
    r"|<\|(?:im_end|end|endoftext|end_of_text|end_of_turn|eot|eot_id|eom_id|eos|pad|return|call|user|observation)\|>)\Z"
)
"""A token that ends a reply, which servers give out when they are told to keep special tokens."""
_LONGEST_TOKEN = 24


def without_end_tokens(text: str) -> str:
    """The reply without the special tokens at its end, and those that T5 and Llama begin with.

    >>> without_end_tokens("VALUE: New York<|im_end|>\\n<|endoftext|>"), without_end_tokens("<pad>B.</s>")
    ('VALUE: New York', 'B.')
    """
    start, end = 0, len(text)
    while (first := _FIRST_TOKEN.match(text, start)) is not None:
        start = first.end()
    bare = len(text.rstrip())
    while (last := _LAST_TOKEN.search(text, max(start, bare - _LONGEST_TOKEN), bare)) is not None:
        bare = end = last.start()
        while bare > start and text[bare - 1].isspace():
            bare -= 1
    return text[start:end]


def plain_answer(text: str) -> str:
    """The reply without its thoughts, its end tokens, and the boxes and tags that some models put around an answer (GLM-4.5V).

    >>> plain_answer("<think>A or B</think>ELEMENT: <|begin_of_box|>B<|end_of_box|>")
    'ELEMENT: B'
    """
    return _BOX.sub("", without_end_tokens(without_thoughts(text)))


def without_thoughts(text: str) -> str:
    """The reply without its thoughts in tags, in time linear in its length.

    The tag that opens the first thought may be part of the prompt. A thought that nothing closes ends where a call or an answer begins;
    without one it is the rest of the reply. Where nothing but thoughts is there, a call between tags in the last one is the reply
    (vllm-project/vllm#39056).

    >>> without_thoughts("Is it A? Answer: A</think>Answer: C"), without_thoughts("<THINK>Answer: A</THINK> Answer: C")
    ('Answer: C', ' Answer: C')
    >>> without_thoughts('<think>I click. <tool_call>{"action": "left_click"}')
    '<tool_call>{"action": "left_click"}'
    """
    text = _ANALYSIS.sub("", text) if "<|channel|>analysis" in text else text
    kept: list[str] = []
    thought, at = "", 0
    # names of the tags that are open, the outermost first
    opened: list[str] = []
    for n_before, tag in enumerate(_TAG.finditer(text)):
        name = (tag["name"] or tag["triangle"] or tag["square"]).lower()
        closes = tag["close"] or tag["bar"] or tag["slash"]
        if not closes and opened:
            opened += [name] * (name not in opened)
            continue
        if closes and opened:
            # models close a tag by another one's name
            opened = opened[: opened.index(name)] if name in opened else []
            if opened:
                continue
            thought = text[at : tag.start()]
        elif closes and not n_before:
            thought = text[: tag.start()]
        else:
            kept.append(text[at : tag.start()])
            opened = [] if closes else [name]
        at = tag.end()
    if opened:
        answer = _ANSWER.search(text, at)
        return "".join([*kept, text[answer.start() :] if answer else ""])
    reply = "".join([*kept, text[at:]])
    call = None if reply.strip() else _CALL.search(thought)
    return thought[call.start() :] if call else reply
