"""Words of an answer as NLTK's `word_tokenize` finds them in lower-case English text (NLTK 3.10: Punkt's sentences, then Treebank's words).

A reference of one word must be one of these words, so that `0` is not found in `10`. Punkt's decisions are reproduced for lower-case
text, where its model of capitals never matters: after a word, a full stop ends the sentence unless the word is an abbreviation;
after a number or a single letter it does so unless a lower-case word or punctuation follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

ABBREVIATIONS = frozenset(
    "a.a a.c a.d a.g a.h a.m a.m.e a.s a.t adm ala ariz aug ave b.f b.v bros c c.i.t c.o.m.b c.v calif chg cie co col colo conn corp "
    "cos ct d d.c d.h d.w dec dr e e.f e.h e.l e.m f f.g f.j feb fla fri ft g g.d g.f g.k ga gen h h.c h.f h.m i.m.s ill inc j.b j.c "
    "j.j j.k j.p j.r jan jr k kan ky l l.a l.f l.p lt ltd m m.b.a m.d.c m.j maj messrs mg mich minn mr mrs ms n n.c n.d n.h n.j n.m "
    "n.v n.y nev nov oct ok okla ore p p.a.m p.m pa ph.d prof r r.a r.h r.i r.j r.k r.t rep reps s s.a s.a.y s.c s.g s.p.a s.s sen "
    "sep sept sr st sw t t.j tenn tues u.k u.n u.s u.s.a u.s.s.r v va vs vt w w.c w.r w.va w.w wash wed wis yr".split()
)
"""Abbreviations of Punkt's English model."""
_STOP = re.compile(r"""\.(?=(?P<near>[)";}\]*:@'({\[!?])|\s+(?P<next>\S{1,200}))""")
"""A full stop that may end a sentence: punctuation, or a space and something else, follows it."""
_WORD = re.compile(r"""['!?]?[^\s()"';}{\]\[*:@!?]*\Z""")
"""The word before a full stop."""
LONGEST = 200
"""Characters of a word that is looked at: abbreviations and numbers are short."""
_ENDED = re.compile(r"""\S[.?!][)";}\]*:@'({\[!?]""")
"""A word that ends its own sentence, whereupon Punkt ends the one before it too."""
_CLOSING = re.compile(r"""\s*["')\]}]+?(?=\s|--|\Z)\s*""")
"""Closing punctuation that belongs to the sentence before it."""
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*")
_LETTER = re.compile(r"[^\W\d]")
_NO_START = frozenset(";:,!?")
_BOUNDARIES = (
    # opening quotes
    (re.compile(r"([«“‘„]|`+)"), r" \1 "),
    (re.compile(r'^"'), " `` "),
    (re.compile(r"""([ (\[{<])("|'{2})"""), r"\1 `` "),
    (re.compile(r"(?i)(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)"), "' "),
    # punctuation; only the text's last full stop is a word of its own
    (re.compile(r"""([^.])(\.)([\])}>"'»”’ ]*)\s*$"""), r"\1 \2 \3 "),
    (re.compile(r"([:,])([^\d])"), r" \1 \2"),
    (re.compile(r"([:,])$"), r" \1 "),
    (re.compile(r"\.{2,}"), r" \g<0> "),
    (re.compile(r"[;@#$%&]"), r" \g<0> "),
    (re.compile(r"[\u2012-\u2015]"), r" \g<0> "),
    (re.compile(r"""([^.])(\.)([\])}>"']*)\s*$"""), r"\1 \2\3 "),
    (re.compile(r"[?!]"), r" \g<0> "),
    (re.compile(r"([^'])' "), r"\1 ' "),
    (re.compile(r"\*"), r" \g<0> "),
    (re.compile(r"[\]\[(){}<>]"), r" \g<0> "),
    (re.compile(r"--"), " -- "),
    # closing quotes and endings, which need a space on either side
    (re.compile(r"\A|\Z"), " "),
    (re.compile("([»”’])"), r" \1 "),
    (re.compile("''"), " '' "),
    (re.compile('"'), " '' "),
    (re.compile(r"\s+"), " "),
    (re.compile(r"(?i)([^' ])('s|'m|'d|') "), r"\1 \2 "),
    (re.compile(r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "), r"\1 \2 "),
    # two words written as one
    (re.compile(r"(?i)\b(can)(not)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(d)('ye)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(gim|lem)(me)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(gon)(na)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(got)(ta)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(more)('n)\b"), r" \1 \2 "),
    (re.compile(r"(?i)\b(wan)(na)(?=\s)"), r" \1 \2 "),
    (re.compile(r"(?i) ('t)(is|was)\b"), r" \1 \2 "),
)
"""What is put between words, in this order."""


def word_tokenize(text: str) -> list[str]:
    """Splits a text into words and punctuation."""
    return [word for sentence in _sentences(text) for word in _words(sentence)]


def _words(sentence: str) -> list[str]:
    for boundary, spaced in _BOUNDARIES:
        sentence = boundary.sub(spaced, sentence)
    return sentence.split()


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(text):
        if _ends_sentence(stop):
            closing = _CLOSING.match(text, stop.end())
            end = closing.end() if closing else stop.end()
            yield text[start:end].rstrip()
            start = end + len(text[end:]) - len(text[end:].lstrip())
    yield text[start:].rstrip()


def _ends_sentence(stop: re.Match[str]) -> bool:
    before = stop.string[max(stop.start() - LONGEST, 0) : stop.start()]
    found, after = _WORD.search(before), stop["near"] or stop["next"]
    word = found[0].lower().lstrip("&#,-`") if found else ""
    if _ENDED.search(after):
        return True
    if not word or word.endswith("."):
        return False
    if word in ABBREVIATIONS or word.rpartition("-")[2] in ABBREVIATIONS:
        return False
    if _NUMBER.fullmatch(word) or _LETTER.fullmatch(word):
        return not (after == "." or after[0] in _NO_START or after[0].islower())
    return True
