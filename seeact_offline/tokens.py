"""Counts the tokens of texts and pictures by rules that need no download."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

# OpenAI's published rule for a picture in high detail (GPT-4V, GPT-4 Turbo, GPT-4o)
SQUARE = 2048
SHORT_SIDE = 768
TILE = 512
TILE_TOKENS = 170
BASE_TOKENS = 85
WORD_PIECES = r"[^\W\d_]+|\d{1,3}|_|[^\w\s]"
"""A run of letters, up to three digits, or a single mark of punctuation."""

Size = tuple[int, int]


def visual_tokens(size: Size) -> int:
    """Counts the tokens that OpenAI bills for a picture of this width and height in high detail.

    Rule (platform.openai.com, Images and vision, GPT-4o): fit into a 2048 px square, then bring the shortest side to
    768 px, never enlarging; 170 tokens for each 512 px tile, and 85. No picture has more than 1,445 that way: the
    paper's averages (4,172 to 4,653 a page) are out of its reach, and in that of `full_size_visual_tokens`.

    >>> visual_tokens((1280, 720)), visual_tokens((1280, 5400)), full_size_visual_tokens((1280, 5400))
    (1105, 765, 5695)
    """
    return TILE_TOKENS * tiles(size) + BASE_TOKENS


def tiles(size: Size) -> int:
    """Counts the 512 px tiles of a picture that is fitted by that rule."""
    fitted = _shrunk(size, max(size), SQUARE)
    return _n_tiles(_shrunk(fitted, min(fitted), SHORT_SIDE))


def fitted_scale(size: Size) -> float:
    """The scale to which a server shrinks a picture by the same rule: shown pixels for each one sent."""
    within = min(1.0, SQUARE / max(size))
    return within * min(1.0, SHORT_SIDE / (min(size) * within))


def full_size_visual_tokens(size: Size) -> int:
    """170 tokens for each 512 px tile of the picture as it is, and 85."""
    return TILE_TOKENS * _n_tiles(size) + BASE_TOKENS


@lru_cache(maxsize=1024)
def count_words(text: str) -> int:
    """Counts the pieces that `WORD_PIECES` finds: a stand-in for a model's tokenizer that needs no download."""
    return len(re.findall(WORD_PIECES, text))


def cut_words(text: str, limit: int) -> str:
    """The text up to where the piece after the first `limit`, as `count_words` counts them, begins."""
    following = next(islice(re.finditer(WORD_PIECES, text), limit, None), None)
    return text if following is None else text[: following.start()]


def _n_tiles(size: Size) -> int:
    across, down = (-(-side // TILE) for side in size)
    return across * down


def _shrunk(size: Size, side: int, limit: int) -> Size:
    """The size once its `side` is brought down to `limit`, in whole pixels."""
    if side <= limit:
        return size
    width, height = size
    return max(1, width * limit // side), max(1, height * limit // side)
