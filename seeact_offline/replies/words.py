"""The words and signs that several readers look for, and the plain form of a model's characters.

A word is a piece of a regular expression, to be compiled with `re.IGNORECASE` and put into `(?:...)` unless its
docstring says otherwise. Only words that mean the same to all readers are here; those that only one reader takes for an
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
    alike = _LOOK_ALIKES.get(char) or folded(char)
    return alike if len(alike) == 1 else char
