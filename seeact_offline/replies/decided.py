"""Does an answer count? One place for every reader: where a call, place or letter must stand, and which words around it
say that it is none.

An answer counts where it fills its line, block or field. Inside a sentence it is prose; one that its lead or the words
behind it deny, take back, quote or only suppose is `declined`. The words are those of English.
"""

from __future__ import annotations

import re

DECLINED = "declined"
"""The failure of an answer that the reply itself sets aside."""
SEVERAL = "several"
"""The failure of different answers that nothing chooses from."""
_NEGATED = r"(?:not|never|cannot|\w+n['\u2019]t|no longer|unable|neither|nor|nothing|nicht|kein\w*|pas)"
_DID = r"(?:answered|clicked|chose|used|called|typed|selected|tried|gave|said|pressed|picked|replied|pointed)"
_ANY = r"(?:option|choice|element|mark|candidate|button|answer|target|action|act|click)s?"
_UNDECIDED = re.compile(
    rf"(?<![\w'\u2019])(?:{_NEGATED}|no {_ANY}|wrong|incorrect|avoid(?:ed)?|failed|disabled|sorry|ignored?|if|unless|once|perhaps|maybe"
    r"|might|could|should appear|normal(?:ly)?|otherwise|usually|circumstances|(?:should|shall|may) I|instead of|rather than|such as"
    rf"|for (?:example|instance)|examples?|e\.g|i\.e|in (?:the|this) form(?:at)?|of the form|would (?:have|look|need)"
    rf"|(?:the|a|of) (?:size|resolution)|was|were|had|did|been|I (?:have |just )*{_DID}"
    r"|says|said|(?:asks|asked|told|instructed) (?:me|us|to|for))(?!\w)|[\u4e0d\u65e0\u6ca1]|\?\W*$|^\W*(?:previous|last|earlier|old|former|history)\b",
    re.IGNORECASE,
)
"""Words of a clause that denies, supposes, quotes, gives an example, asks or tells of the past."""
_DOUBT = re.compile(r"^.{0,80}\b(?:not|n['\u2019]t) (?:\w+ )?(?:sure|certain)\b[^.;]{0,20}\bbut\b", re.IGNORECASE)
"""Words that say how sure the model is of what it says next."""
_OFFERS = re.compile(
    r"\W*(?:either|or|(?:option|alternative|possibility|candidate|variant|answer) (?:\d|[a-c]\b|one|two|three)|alternatively"
    r"|possibly|maybe)\W*$",
    re.IGNORECASE,
)
"""The lead of one answer among others."""
_MAY_NOT = (
    r"(?:can['\u2019]t|cannot|can not|could(?: not|n['\u2019]t)|(?:am|['\u2019]m|was) (?:unable|not (?:able|allowed|permitted)) to|will not"
    r"|won['\u2019]t|would(?: not|n['\u2019]t)|do(?: not|n['\u2019]t))"
)
_REFUSES = (
    rf"I(?: really| still| just| therefore)? ?{_MAY_NOT} (?:really )?(?:tell|determine|decide|proceed|continue|go on|find|help|assist|identify"
    r"|pick|choose|do|make|perform|carry|execute|complete|confirm|locate|answer|know|recommend|click|follow|solve|bet|trust"
    r"|see (?:what|which|how|the (?:element|target|right|correct|one|page|screenshot|screen|button|field)))\b"
)
_ITSELF = r"(?:this|that|it|which|(?:the|my) (?:answer|above|choice|element|action|click|letter|place|mark|option|target|button)(?: above)?|[A-Z]|\d{1,4})"
_TAKES_BACK = re.compile(
    r"\W*(?:(?:however|but|and|so|well|actually|hmm|oh|sorry|unfortunately|still|yet|now|then|note|edit|update|also|here|though|please)\b\W*"
    r"|(?:up)?on (?:[\w'-]{1,20} ?){1,3},\s*)*(?:"
    # the model refuses, or has no answer
    rf"{_REFUSES}|I(?: am|['\u2019]m)(?: very)? (?:sorry|afraid)\b|(?:my )?apologies|I apologi[sz]e|I have no (?:other|answer|element)"
    r"|I (?:must |have to |will )?(?:decline|refuse|stop here|pass|misread|was wrong|made (?:a|that|this) )"
    # the answer is wrong
    rf"|(?:no|nope)(?=\s*(?:[,.:;!]|$))|no {_ANY} (?:is|are|fits?|match\w*|seems?|can|here|on)\b|correction\b|wait\b(?!\s(?:for|until))"
    r"|scratch that|never mind|disregard|(?:ignore|forget|(?:do not|don['\u2019]t) (?:use|click|do|execute|run|follow)) (?:this|that|the|it|my|any)\b"
    rf"|{_ITSELF}(?:['\u2019]s| is| was| would be| seems| looks| may be| might be| must be)(?: \w+ly)? (?:wrong|incorrect|invalid"
    r"|a mistake|an? (?:mere |only |hypothetical )?(?:example|guess)|not (?:right|correct|it|there|visible|possible|what)\b)"
    rf"|{_ITSELF} (?:is|was|does)n['\u2019]t (?:right|correct|it|there|visible|possible|what|hold)\b"
    r"|please (?:send|provide|upload|share|clarify|specify)|(?:send|provide|upload|share|clarify|specify) (?:the|a|your|which)\b"
    # there is none, or more than one
    r"|(?:none|neither)(?: of (?:the|these|them|those|its?)(?! others?\b)[\w ]{0,40}?)? (?:is|are|was|fits?|match\w*|works?|seems?|looks?)\b"
    r"|both (?:[\w ]{0,30} )?(?:may|might|could|are|seem|look|would|work|fit)\b|either (?:[\w ]{0,30} )?(?:may|might|could|is|would|works|fits)\b"
    rf"|(?:any|each|all|several|two) of (?:these|them|those|the {_ANY})"
    rf"|(?:at the moment )?there (?:is|are) (?:no (?:such|matching|suitable|{_ANY})\b|nothing|several|two|many))",
    re.IGNORECASE,
)
"""The beginning of a sentence that takes an answer back."""
_RETRACTED = re.compile(
    rf"\bnone of (?:the|these|them|those)(?! others?\b)[\w ]{{0,30}} (?:is|are|fits?|match\w*)\b|\bno {_ANY} (?:here )?(?:is|are|fits?|match\w*)\b"
    r"|\bshould (?:be|have been) [\w\"']{1,20}\W{1,3}not\b|\b(?:is|was) the wrong (?:one|element|place|answer)\b"
    rf"|(?:,|\band|\bbut|\bso) (?:so )?{_REFUSES}|answer (?:doesn['\u2019]t|does not) hold\b",
    re.IGNORECASE,
)
"""Words anywhere in such a sentence."""
_QUOTED = re.compile(r"\"[^\"\n\d]{0,200}\"|\u201c[^\u201d\n\d]{0,200}\u201d|(?<!\w)'[^'\n\d]{0,200}'(?!\w)")
"""Words of the page, which decide nothing."""
_SENTENCES = re.compile(r"(?<=[.!?;\u3002])\s+|\n+")
_CLAUSE = re.compile(r".*(?:[,;:.!?\u3002]|\b(?:so|but|hence|therefore|thus|then)\b)\s", re.DOTALL)
_CONTRAST = re.compile(r",\s*(?:and |but )?(?:not|rather than|instead of|unlike)\b[^,;.:]*\Z", re.IGNORECASE)
_MOST = 1_500
"""Characters around an answer that are looked at."""


def is_decided(sentence: str) -> bool:
    """Tells whether a sentence with an answer in it decides on it.

    >>> is_decided("The element is at (5, 6)."), is_decided("I would normally press (5, 6), but"), is_decided("The last click was at (5, 6)")
    (True, False, False)
    """
    return _UNDECIDED.search(_DOUBT.sub("", _QUOTED.sub(" ", sentence))) is None


def denies(clause: str) -> bool:
    """Tells whether the words before an answer deny it: `not at`."""
    return (
        re.search(
            rf"\b(?:{_NEGATED}|avoid|instead of|rather than)\W*(?:\w+\W+){{0,3}}$", clause[-_MOST:], re.IGNORECASE
        )
        is not None
    )


def sentence_at(text: str, at: int) -> str:
    """The sentence around a position."""
    first = max(0, at - _MOST)
    start = max((match.end() + first for match in _SENTENCES.finditer(text[first:at])), default=first)
    end = _SENTENCES.search(text, at, at + _MOST)
    return text[start : end.start() if end else at + _MOST]


def set_aside(text: str, start: int) -> str | None:
    """DECLINED or SEVERAL where the words before an answer say that it is none of this step; None where they do not.

    Its lead is what stands before it on its line; where that is empty, the line above, unless that ends a sentence.
    """
    lead = lead_of(text, start)
    if _OFFERS.fullmatch(lead.rstrip(": \t")):
        return SEVERAL
    last = lead.rstrip(" \t:\uff1a*_`\"'([{>-")
    # `in the middle, not in the header:` rejects another one
    while (contrast := _CONTRAST.search(last)) is not None:
        last = last[: contrast.start()]
    return None if is_decided(last[match.end() :] if (match := _CLAUSE.match(last)) else last) else DECLINED


def lead_of(text: str, start: int) -> str:
    """The words that lead to an answer; empty for none."""
    lines = text[max(0, start - _MOST) : start].split("\n")
    if lines[-1].strip(" \t*_`>#\"'([{|-"):
        return lines[-1].strip()
    above = [line.strip() for line in reversed(lines[:-1]) if not line.strip().startswith(("```", "<"))]
    n_blank = next((n for n, line in enumerate(above) if line.strip("`*_#>-")), 0)
    line = above[n_blank] if above else ""
    is_open = line.endswith((":", "\uff1a", "e.g.", "i.e.")) and line.count(" ") > 1
    is_ended = line.endswith((".", "!", "?", "\u3002", ")", "}", "]", ">", "|", '"'))
    # over an empty line a sentence leads only where it says so
    return line if is_open or (not n_blank and not is_ended) else ""


def takes_back(text: str, start: int = 0) -> bool:
    """Tells whether words from a position on take an answer back: `none of them fits`, `I cannot tell which`.

    >>> takes_back("ELEMENT: B. However, I cannot tell which one it is.", 11), takes_back("ELEMENT: B. I am not sure, but it fits.", 11)
    (True, False)
    """
    rest = _QUOTED.sub(" ", text[start : start + _MOST])
    return any(_TAKES_BACK.match(part) or _RETRACTED.search(part) for part in _SENTENCES.split(rest))


_OPENS_CALL = re.compile(r"(?:[=:\uff1a).>!|\]};]|->|\u2192|^[\w ]{0,2}[a-z]\w{2,30})[\s`*\"'(\[]*\Z", re.IGNORECASE)
"""The end of what may stand before a call on its line: a label, a sentence, a tag, another call; or one word alone,
such as the tool's name."""
_ANNOUNCES = re.compile(
    r"\b(?:action|answer|call|step|output|response|it)\b[^.!?]{0,40}\b(?:is|will be)\W*\Z"
    r"|\b(?:I|we)(?:['\u2019]ll| will| am going to|['\u2019]m going to)? (?:now )?(?:call|use|do|run|execute|issue|perform|output|answer with|choose)\W*\Z",
    re.IGNORECASE,
)
"""Words of a sentence that ends with the call which it announces."""
_NO_LEAD = re.compile(r"\b(?:e\.g\.|i\.e\.)\W*\Z", re.IGNORECASE)
_CLOSES_CALL = re.compile(
    r"[\s`*\"'.;)\]}]*+(?:\Z|(?<=\n)|[<#{]|//|,?\s*[A-Za-z_][\w.]*+\()|[`*\"')\]}]*(?:[.!;]\s|\s+(?:[(\u2013\u2014-]\s*\w|[A-Z]))"
)
"""Signs behind a call, up to the end of its line, a tag, a remark, the next call, or the next sentence or a remark in
brackets."""


def stands_alone(text: str, start: int, end: int, is_tagged: bool = False) -> bool:
    """Tells whether a call fills its line or block. `is_tagged`: it is between tags of its own, so that words may stand
    before it.

    >>> [stands_alone(text, text.find("click"), text.find(")") + 1) for text in ("Action: click(1, 2)", "I could click(1, 2), but no")]
    [True, False]
    """
    if not _CLOSES_CALL.match(text, end):
        return False
    before = text[max(text.rfind("\n", 0, start) + 1, start - _MOST) : start]
    if is_tagged or not before.strip(" \t*_`>\"'([{|\u2022-0123456789.)"):
        return True
    return not _NO_LEAD.search(before) and bool(_OPENS_CALL.search(before) or _ANNOUNCES.search(before))
