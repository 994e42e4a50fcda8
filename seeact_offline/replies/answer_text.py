"""A reply -> the text that is the model's answer: without thoughts, echoed turns, special tokens, and what is struck
out or commented out.

Every reader begins here, so that none of them takes an act from a thought, a quoted dialogue or a comment.
"""

from __future__ import annotations

import json
import re
from typing import Any

from seeact_offline.replies.calls import MOST_DEPTH, json_spans

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
    rf"{_TAGGED_CALL}|<answer>|<action>|<\|begin_of_box\|>|```|^[ \t>*#]*(?:(?:grounded )?operation|actions?|final answer"
    r"|answer|element|point|status)\b[ \t*]*[:\uff1a]|^explain:|^[ \t]*[\[{][ \t]*[{\"']|^(?:pyautogui|computer)\.",
    re.IGNORECASE | re.MULTILINE,
)
"""Where an answer begins, and with it ends a thought that nothing closes."""
_ANALYSIS = re.compile(r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)", re.DOTALL)
"""The thoughts of gpt-oss (openai/harmony)."""
_TURN = re.compile(
    r"(?:<\|(?:im_start\|>|start_header_id\|>)?|<start_of_turn>)(?P<token>system|user|assistant|model)(?:\|>|<\|end_header_id\|>)?"
    r"|(?P<end>\[/INST\])"
    r"|^[#*]*[ ]?(?P<word>system|user|human|instruction|assistant|response)[*]*[ \t]*(?::[*]*|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""The head of a turn: the tokens of chat templates, or a role that begins a line."""
_SPEAKS = frozenset({"assistant", "model", "response", "[/inst]"})
_FIRST_TOKEN = re.compile(r"\s*(?:<pad>|<s>|<bos>)")
_LAST_TOKEN = re.compile(
    r"(?:</s>|<(?:eos|pad|end_of_turn|end_of_utterance)>|\[(?:EOS|/INST)\]|<[|\uff5c]end\u2581of\u2581sentence[|\uff5c]>"
    r"|<\|(?:im_end|end|endoftext|end_of_text|end_of_turn|eot|eot_id|eom_id|eos|pad|return|call|user|observation)\|>)\Z"
)
"""A token that ends a reply, which servers give out when they are told to keep special tokens."""
# no such token is longer, so that only the end of a reply is searched, however long it is
_LONGEST_TOKEN = 24
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>|</?answer>", re.IGNORECASE)
_ASIDE = re.compile(
    r"~~[^~\n]{1,300}~~|<(?P<tag>del|strike)>[^<]{0,300}</(?P=tag)>|<!--[^>]{0,2000}-->"
    r"|<(?P<result>tool_response|tool_result|function_results?|observation)>.*?(?:</(?P=result)>|\Z)"
    r"|^[ \t]*(?:#+[ \t]*(?=[A-Za-z_][\w.]{0,60}\()|//)[^\n]*"
    r"|^[ \t>*#]*(?:(?:previous|past|earlier|prior) (?:actions?|steps?)|(?:action )?history)\b[^\n:]{0,40}:[ \t*]*\n"
    r"(?:[ \t]*(?:[-*\u2022]|(?:step )?\d{1,3}[.):])[^\n]*(?:\n|\Z))+",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
"""Text that is struck out; comments, a call behind a number sign among them, which no heading has; results; and lists
of what was done before."""
_CODE = re.compile(r"(^[ \t]*```(?:python|py|code)[ \t]*\n)(.*?)(?=^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_REMARK = re.compile(
    r"^[ \t]*(?:#[^\n]*|(?P<quote>\"\"\"|''')(?:(?!(?P=quote)).)*(?:(?P=quote)|\Z))", re.MULTILINE | re.DOTALL
)
"""A line of code that is a comment, and a text that begins a line: a docstring."""


def answer_text(reply: str) -> str:
    """The model's answer, for every reader that is not asked to read as released code does.

    >>> answer_text("<think>A or B?</think>ELEMENT: ~~A~~ B<|im_end|>")
    'ELEMENT:  B'
    """
    text = _without_others(_ASIDE.sub("", without_end_tokens(without_thoughts(_last_turn(reply)))))
    return _CODE.sub(lambda fence: fence[1] + _REMARK.sub("", fence[2]), text)


def plain_answer(reply: str) -> str:
    """The model's answer without the tokens and tags that some models put around it, or around a word of it (GLM-4.5V).

    >>> plain_answer("ELEMENT: <|begin_of_box|>B<|end_of_box|>")
    'ELEMENT: B'
    """
    return _BOX.sub("", answer_text(reply))


def _last_turn(text: str) -> str:
    """The last turn of the assistant that says something, where the reply is a dialogue: some models write their prompt
    again, or go on.

    >>> _last_turn("user\\nWhere?\\nassistant\\nELEMENT: B\\nuser\\nAnd now?")
    '\\nELEMENT: B\\n'
    """
    turns = [(turn, (turn["token"] or turn["end"] or turn["word"]).lower()) for turn in _TURN.finditer(text)]
    # a role in words may be a word of the answer, unless the other side speaks too
    is_dialogue = any(role not in _SPEAKS for _, role in turns)
    end = len(text)
    for turn, role in reversed(turns):
        answer = text[turn.end() : end]
        if role in _SPEAKS and (is_dialogue or (answer.strip() and not turn["word"])):
            return answer
        end = turn.start()
    return text


_OF_OTHERS = re.compile(
    r"prev|\blast|past|prior|history|example|earlier|alternative|fallback|reject|avoid|never|thought|reason|observation",
    re.IGNORECASE,
)
"""Keys behind which JSON has an act of another step, or none."""
_MAY_BE_OF_OTHERS = re.compile(
    rf"[\"'][\w ]{{0,20}}(?:{_OF_OTHERS.pattern}|error|action|tool_call)[\w ]{{0,20}}[\"']\s*:", re.IGNORECASE
)


def _without_others(text: str) -> str:
    """The text with its JSON without what is under keys of other steps, and without objects that say that there is no
    act.

    >>> _without_others('{"previous_action": {"x": 1}, "action": {"x": 2}} {"error": "none", "x": 3}')
    '{"action": {"x": 2}} '
    """
    if not _MAY_BE_OF_OTHERS.search(text):
        return text
    parts, at = [], 0
    for start, end, value in json_spans(text):
        pruned = _pruned(value)
        if pruned != value:
            parts += [text[at:start], json.dumps(pruned, ensure_ascii=False, default=str) if pruned else ""]
            at = end
    return "".join([*parts, text[at:]])


def _pruned(value: Any, depth: int = 0) -> Any:
    if depth > MOST_DEPTH:
        return value
    if isinstance(value, list | tuple):
        return type(value)(inner for item in value if (inner := _pruned(item, depth + 1)) != {} or item == {})
    if not isinstance(value, dict):
        return value
    lowered = {str(key).lower(): inside for key, inside in value.items()}
    acts = [lowered[key] for key in ("action", "tool_call") if key in lowered]
    has_none = bool(acts) and all(act is None or str(act).lower() in ("none", "null", "") for act in acts)
    if lowered.get("error") or (has_none and not any("element" in key for key in lowered)):
        return {}
    return {
        key: _pruned(inside, depth + 1)
        for key, inside in value.items()
        if not _OF_OTHERS.search(str(key)) or isinstance(inside, str)
    }


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


def without_thoughts(text: str) -> str:
    """The reply without its thoughts in tags, in time linear in its length.

    The tag that opens the first thought may be part of the prompt. A thought that nothing closes ends where a call or
    an answer begins; without one it is the rest of the reply. Where nothing but thoughts is there, a call between tags
    in the last one is the reply (vllm-project/vllm#39056).

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
