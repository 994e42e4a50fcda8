"""Words of an answer as `word_tokenize` of NLTK 3.8.1 finds them, the version that VisualWebArena pins: Punkt's
sentences, then Treebank's words.

For text in lower case, as answers are once they are cleaned: capitals would need Punkt's file. Later versions of NLTK
split more (dashes since 3.9.3, quotes since 3.10), so that rewards would depend on what is installed.
Both parts read in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

ABBREVIATIONS = frozenset(
    "a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t c.o.m.b c.v calif chg cie co col"
    " colo conn corp cos ct d d.c d.h d.w dec dr e e.f e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f g.k ga gen h h.c"
    " h.f h.m i.m.s ill inc j.b j.c j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a m.d.c m.j maj messrs"
    " mg mich minn mr mrs ms n n.c n.d n.h n.j n.m n.v n.y nev nov oct ok okla ore p p.a.m p.m pa ph.d prof r r.a r.h"
    " r.i r.j r.k r.t rep reps s s.a s.a.y s.c s.g s.p.a s.s sen "
    "sep sept sr st sw t t.j tenn tues u.k u.n u.s u.s.a u.s.s.r v va vs vt w w.c w.r w.va w.w wash wed wis yr".split()
)
"""Abbreviations of Punkt's English model."""
STARTERS = frozenset(["administrators", "b-week", "r-revised", "z-holiday"])
"""The only words that its English model has seen in lower case at the start of a sentence, and never with a capital."""

_MARK = r"""[)";}\]*:@'({\[?!]"""
"""Punctuation that ends a token wherever it stands."""
_ROW = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
"""Dashes or stops in a row are one token."""
_BLANKS_OR_STOP = re.compile(rf"[ \t\n\r\v\f]+|[.?!](?={_MARK}|\s+(?P<next>\S+))")
"""Blanks, or a stop that may end a sentence: before punctuation, or before white space and another word."""
_TOKEN = re.compile(rf"""{_ROW}|(?![("`{{\[:;&#*@)}}\]\-,])\S+?(?=\s|$|{_MARK}|{_ROW}|,(?=$|\s|{_MARK}|{_ROW}))|\S""")
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")
_INITIAL = re.compile(r"[^\W\d]\.")
_CLOSING = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)
"""Quotes and brackets behind a stop, which belong to the sentence before them."""

_OPENING = re.compile(r"[«“‘„]|``?")
_OPENING_QUOTE = re.compile(r"""([ (\[{<])(?:"|'')""")
_QUOTED_LETTER = re.compile(r"(?i)'(?!re|ve|ll|[mtsdn])(\w)\b")
_BEHIND_LAST_STOP = "]})>\"'»”’ "
_COMMA = re.compile(r"([:,])(\D)")
_STOPS_OR_SIGN = re.compile(r"\.{2,}|[;@#$%&?!]")
_APOSTROPHE = re.compile(r"([^'])' ")
_BRACKET = re.compile(r"[*\[\](){}<>]|--")
_CLOSING_QUOTE = re.compile(r"[»”’]")
_ENDINGS = re.compile(r"([^' ])('[smd]?) "), re.compile(r"([^' ])('ll|'re|'ve|n't) ")
_CONTRACTIONS = (
    re.compile(r"(?i)\b(?:(can)(not)|(d)('ye)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(more)('n)|(wan)(na)(?=\s))\b"),
    re.compile(r"(?i) ('t)(is)\b"),
    re.compile(r"(?i) ('t)(was)\b"),
)
"""Two words written as one; `wanna` only before white space."""
_APART = r" \g<0> "


def word_tokenize(text: str) -> list[str]:
    """Splits a text into words and punctuation: `0` is no word of `10`."""
    return [word for sentence in _sentences(text) for word in _words(sentence)]


def _sentences(text: str) -> Iterator[str]:
    """Yields sentences: a text ends in one, and each stop that ends one takes closing quotes and brackets with it."""
    last, begin = len(text.rstrip()), 0
    stops = list(_sentence_ends(text))
    ends = [*(stop.end() for stop in stops), last]
    for stop, following_end in zip(stops, ends[1:], strict=True):
        following = stop.start("next") if stop["next"] else stop.end()
        closing = _CLOSING.match(text, following, following_end)
        yield text[begin : following + len(closing[0].rstrip()) if closing else stop.end()]
        begin = closing.end() if closing else following
    yield text[begin:last]


def _sentence_ends(text: str) -> Iterator[re.Match[str]]:
    """Yields the stops that end a sentence. Of several in one word the last is looked at,
    and one with which the word begins."""
    before: re.Match[str] | None = None
    word = word_before = 0
    for blank_or_stop in _BLANKS_OR_STOP.finditer(text):
        if blank_or_stop[0].isspace():
            # a text that begins with one blank begins its first word there
            word = blank_or_stop.end() if blank_or_stop.end() > 1 else 0
            continue
        if before and before.start() <= word and _ends_sentence(text, word_before, before):
            yield before
        before, word_before = blank_or_stop, word
    if before and _ends_sentence(text, word_before, before):
        yield before


def _ends_sentence(text: str, word: int, stop: re.Match[str]) -> bool:
    """Tells whether a stop, or another in its word, ends a sentence."""
    seen = text[word : stop.end("next") if stop["next"] else stop.end() + 1]
    tokens = [token for line in seen.split("\n") for token in _TOKEN.findall(line)]
    return any(_breaks(token, following) for token, following in pairwise(tokens))


def _breaks(token: str, following: str) -> bool:
    """Tells whether a sentence ends between two tokens: behind `.`, `?`, `!` and a word with a stop.

    None ends behind an abbreviation, nor behind a number or initial whose next word is in lower case or punctuation.
    """
    if token in (".", "?", "!"):
        return True
    if not token.endswith(".") or token.endswith(".."):
        return False
    name = token[:-1]
    if name in ABBREVIATIONS or name.rpartition("-")[2] in ABBREVIATIONS:
        return False
    initial = _INITIAL.fullmatch(token) is not None
    if not initial and not _NUMBER.fullmatch(token):
        return True
    if following in (";", ":", ",", ".", "!", "?") or (initial and following[0].isupper()):
        return False
    return not following[0].islower() or following.removesuffix(".") in STARTERS


def _words(sentence: str) -> list[str]:
    """Splits a sentence at white space, once it stands around all that is a word of its own."""
    text = _OPENING.sub(_APART, sentence)
    if text.startswith('"'):
        text = f" `` {text[1:]}"
    text = _OPENING_QUOTE.sub(r"\1 `` ", text)
    text = _QUOTED_LETTER.sub(r"' \1", text)
    # only the last stop of a sentence stands apart
    head = text.rstrip(_BEHIND_LAST_STOP)
    if len(head) > 1 and head[-1] == "." != head[-2]:
        text = f"{head[:-1]} . {text[len(head) :]} "
    text = _COMMA.sub(r" \1 \2", text)
    if text.endswith((":", ",")):
        text = f"{text[:-1]} {text[-1]} "
    text = _STOPS_OR_SIGN.sub(_APART, text)
    text = _APOSTROPHE.sub(r"\1 ' ", text)
    text = f" {_BRACKET.sub(_APART, text)} "
    text = _CLOSING_QUOTE.sub(_APART, text).replace("''", " '' ").replace('"', " '' ")
    for ending in _ENDINGS:
        text = ending.sub(r"\1 \2 ", text)
    for contraction in _CONTRACTIONS:
        text = contraction.sub(_in_two, text)
    return text.split()


def _in_two(contraction: re.Match[str]) -> str:
    second = contraction.lastindex or 0
    return f" {contraction[second - 1]} {contraction[second]} "
