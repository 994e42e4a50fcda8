"""Removes a model's thoughts from its reply, for every reader: what stands in `<think>` and the like is no answer.

Tags: Tongyi-MAI/MAI-UI src/prompt.py, QwenLM/Qwen3-VL#732, trycua/cua loops/uitars2.py, likaixin2000/ScreenSpot-Pro models/kimivl.py,
stepfun-ai/gelab-zero parser_0920_summary.py, mistral's `[THINK]`.
"""

from __future__ import annotations

import re

_NAMES = r"(?:gui_|grounding_|seed:)?think(?:ing)?(?:_never_used_\w{1,64})?|thoughts?|reasoning"
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAMES})>|◁(?P<bar>/?)(?P<triangle>think)▷|\[(?P<slash>/?)(?P<square>THINK)\]",
    re.IGNORECASE,
)
_TAGGED_CALL = r"<(?:seed:|minimax:)?tool_call>|<function[=\s]|<invoke\s|<\|tool_calls?(?:_section)?_begin\|>"
_CALL = re.compile(_TAGGED_CALL, re.IGNORECASE)
_ANSWER = re.compile(
    rf"{_TAGGED_CALL}|<answer>|<action>|<\|begin_of_box\|>|```|^[ \t>*#]*(?:(?:grounded )?operation|actions?|final answer|answer|element|point|status)\b[ \t*]*:"
    r"|^explain:|^[ \t]*[\[{][ \t]*[{\"']|^(?:pyautogui|computer)\.",
    re.IGNORECASE | re.MULTILINE,
)
"""Where an answer begins, and with it ends a thought that nothing closes."""


_ANALYSIS = re.compile(r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)", re.DOTALL)
"""The thoughts of gpt-oss (openai/harmony)."""
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>|</?answer>", re.IGNORECASE)


def plain_answer(text: str) -> str:
    """The reply without its thoughts, and without the boxes and tags that some models put around an answer (GLM-4.5V).

    >>> plain_answer("<think>A or B</think>ELEMENT: <|begin_of_box|>B<|end_of_box|>")
    'ELEMENT: B'
    """
    return _BOX.sub("", without_thoughts(text))


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
