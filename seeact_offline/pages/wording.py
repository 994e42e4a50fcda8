"""Words as they are compared: those written on a page, and those that a reply says are written there."""

from __future__ import annotations

import re
import unicodedata

MAX_WORDS = 60
MAX_LENGTH = 1000
"""Characters of a text."""

_JOINED = str.maketrans(dict.fromkeys("'`\u2018\u2019\u02bc\u00b4\u00ad\u200b\u200c\u200d\ufeff", ""))
"""Apostrophes and invisible characters part no words."""
_ALIKE = str.maketrans(
    {sign: plain for plain, signs in {"x": "×✕✖✗✘╳⨯", ">": "›»→▶❯⟩▸", "<": "‹«←◀❮⟨◂", "-": "−–—‐‑"}.items() for sign in signs}
)  # fmt: skip
"""What a text of signs alone is written with, and what one types for it."""
_SIGNS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def collapsed(text: str) -> str:
    """The first words, with single spaces between them."""
    # cut early: a reply may hold megabytes, with or without spaces
    return " ".join(text.split(maxsplit=MAX_WORDS)[:MAX_WORDS])[:MAX_LENGTH].rstrip()


def normalised(text: str) -> str:
    """The words in their plain form, with single spaces; of a text of signs alone the signs, those that look alike as one."""
    if text.isascii():
        plain = text.lower().replace("'", "").replace("`", "")
        words = " ".join(_SIGNS.sub(" ", plain).split())
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        plain = folded.translate(_JOINED)
        words = " ".join("".join(c if _is_of_word(c) else " " for c in plain).split())
    return words or " ".join(unicodedata.normalize("NFKC", text).translate(_ALIKE).split())


def _is_of_word(char: str) -> bool:
    """Marks belong to words: in Hindi or Thai they are the vowels."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def spelt_out(name: str) -> str:
    """A name of code as words: `addToCart`, `add_to_cart` and `btn$addToCart`."""
    return " ".join(_SIGNS.sub(" ", _HUMP.sub(" ", name)).split())
