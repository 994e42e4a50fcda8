"""English words without their endings, so that `hiring` is `hire` and `vans` are a `van`, for tokenizers and for counting.

Crude on purpose: two patterns that a tokenizer's normalizer can apply too. What is left need be no word, only the same for
the forms of one.
"""

from __future__ import annotations

import re

DOUBLED = r"([bdgmnprt])(?=\1(?:ing|ed)(?![a-z]))"
"""The first of two letters of which the ending is the cause: `shipping`."""
ENDING = r"(?<=[a-z]{3})(?:ing|ed|ies|ied|es|(?<=[a-z]{4})ly|e|(?<!s)s|(?<![aeiou])y)(?![a-z])"
"""After at least three letters of lower case; `address` and `play` have none."""
_DOUBLED, _ENDING = re.compile(DOUBLED), re.compile(ENDING)


def without_ending(text: str) -> str:
    """Each of its words, in lower case, cut; the rest as it is."""
    return _ENDING.sub("", _DOUBLED.sub("", text))
