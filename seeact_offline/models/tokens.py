"""Counts the tokens of texts and pictures by rules that need no download: OpenAI's for any model, and the one that a
model's own provider publishes.

Read on 2026-11-23 in stored copies of the providers' pages:

- OpenAI, "Images and vision", models of tiles: fit into 2048 px, shorter side to 768 px, a base and so much for each 512 px tile; in low
  detail the base alone. Models of patches: a patch is 32 px; beyond 1,536 patches the picture is made smaller until it fits;
  patches times a factor, rounded up, whatever the detail. For gpt-5-mini and gpt-5-nano the guide says 1.62 and 2.46, OpenAI's own price
  calculator 1.2 and 1.5, and what people were billed agrees with the calculator (community.openai.com/t/1344040); so do we.
- Anthropic, "Vision": a token for each patch of 28 px once the picture is fitted into 1568 px and 1,568 tokens, from Opus 4.7 on into
  2576 px and 4,784 tokens. Earlier editions said width x height / 750, which is 5 % more.
- Qwen, Qwen2-VL and Qwen2.5-VL: a token for each patch of 28 px, between 4 and 16,384 (`max_pixels` of the released processors), and a
  mark at either end. Later ones have patches of 32 px, which are fewer.
- Google, "Image understanding", Gemini 2: 258 tokens up to 384 px, else for each tile, whose side is the shorter side / 1.5: "a rough
  formula". "Media resolution", Gemini 3: at most 1,120 tokens unless another resolution is asked for.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import ceil, floor, prod, sqrt

from seeact_offline.records import ImageDetail, Message

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


# --- by the model ---

_DAY = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
# the providers' own numbers, from the pages named above
PATCH, MOST_PATCHES = 32, 1536
CLAUDE_PATCH = 28
GEMINI_TOKENS, GEMINI_SMALL = 258, 384
GEMINI_3_TOKENS = 1120
QWEN_PATCH, QWEN_TOKENS = 28, 16_384


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A rule by which a model counts pictures."""

    name: str
    """Name in a few words, for people."""
    count: Callable[[Size, ImageDetail], int]
    """Tokens of a picture of this width and height. `auto` counts as `high`: the most that it can be."""

    def most(self, size: Size) -> int:
        """Tokens of a picture in any detail: a server may not heed the one that was asked for."""
        return self.count(size, "high")


def rule_named(name: str) -> ImageRule | None:
    """The rule for a model's name, or for the name without a day at its end; None: none is known."""
    return RULES.get(name) or RULES.get(undated(name))


def undated(name: str) -> str:
    """Removes the day at the end of a model's name, if there is one."""
    return _DAY.sub("", name)


def tile_rule(base: int, tile: int) -> ImageRule:
    """OpenAI's models that look at tiles."""
    name = f"OpenAI's tiles, {base} + {tile} each"
    return ImageRule(name, lambda size, detail: base if detail == "low" else base + tile * tiles(size))


def patch_rule(factor: float) -> ImageRule:
    """OpenAI's models that look at patches."""
    return ImageRule(f"OpenAI's patches, {factor:g} each", lambda size, _: ceil(round(patches(size) * factor, 6)))


def claude_rule(side: int, most: int) -> ImageRule:
    """Anthropic's models; `side` in pixels, `most` in tokens. The longer side is the largest number of pixels that both
    limits allow."""

    def count(size: Size, _: ImageDetail) -> int:
        longest = max(size)

        def tokens(pixels: int) -> int:
            return _grid([max(1, round(length * pixels / longest)) for length in size], CLAUDE_PATCH)

        pixels = range(1, min(longest, side) + 1)
        # 0 pixels are none
        return tokens(max(1, bisect_right(pixels, most, key=tokens)))

    return ImageRule(f"Anthropic's, at most {side} px and {most:,} tokens", count)


def patches(size: Size) -> int:
    """32 px patches of a picture, once it is small enough."""
    if (whole := _grid(size, PATCH)) <= MOST_PATCHES:
        return whole
    # so much smaller that one side is whole patches
    scale = sqrt(PATCH**2 * MOST_PATCHES / prod(size))
    across, down = (pixels * scale / PATCH for pixels in size)
    shrink = min(max(floor(across), 1) / across, max(floor(down), 1) / down, 1.0)
    return min(ceil(round(across * shrink, 6)) * ceil(round(down * shrink, 6)), MOST_PATCHES)


def _gemini(size: Size, _: ImageDetail) -> int:
    unit = GEMINI_SMALL if max(size) <= GEMINI_SMALL else max(1, floor(min(size) / 1.5))
    return GEMINI_TOKENS * _grid(size, unit)


def _grid(size: Iterable[int], side: int) -> int:
    return prod(-(-pixels // side) for pixels in size)


TILES = tile_rule(BASE_TOKENS, TILE_TOKENS)
_MODELS: dict[ImageRule, str] = {
    TILES: "gpt-4o gpt-4.1 gpt-4-turbo gpt-4-vision-preview gpt-4.5-preview",
    tile_rule(2833, 5667): "gpt-4o-mini",
    tile_rule(70, 140): "gpt-5 gpt-5.1",
    tile_rule(75, 150): "o1 o3",
    patch_rule(1.62): "gpt-4.1-mini",
    patch_rule(2.46): "gpt-4.1-nano",
    patch_rule(1.72): "o4-mini",
    patch_rule(1.2): "gpt-5-mini",
    patch_rule(1.5): "gpt-5-nano",
    claude_rule(1568, 1568): """
        claude-3-haiku claude-3-opus claude-3-5-sonnet claude-3-5-haiku claude-3-7-sonnet
        claude-sonnet-4 claude-sonnet-4-0 claude-sonnet-4-5 claude-sonnet-4-6 claude-haiku-4-5
        claude-opus-4 claude-opus-4-0 claude-opus-4-1 claude-opus-4-5 claude-opus-4-6""",
    claude_rule(2576, 4784): """
        claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-opus-5-5 claude-sonnet-5 claude-sonnet-5-5""",
    ImageRule("Google's tiles, 258 each", _gemini): """
        gemini-2.0-flash gemini-2.5-flash-lite gemini-2.5-flash gemini-2.5-pro""",
    ImageRule("Google's, 1,120 a picture", lambda size, _: GEMINI_3_TOKENS): """
        gemini-3-flash-preview gemini-3-pro-preview gemini-3.1-pro-preview gemini-3.5-flash""",
}
RULES = {name: rule for rule, names in _MODELS.items() for name in names.split()}
"""Rules by the model's name."""

# --- what is reserved ---

# Anthropic's earlier rule, by which servers still count that do not make pictures smaller
_PIXELS = ImageRule("width x height / 750", lambda size, _: ceil(size[0] * size[1] / 750))
_QWEN = ImageRule(
    "Qwen's patches, at most 16,384", lambda size, _: 2 + min(max(4, _grid(size, QWEN_PATCH)), QWEN_TOKENS)
)
_FAMILIES: tuple[tuple[str, tuple[ImageRule, ...]], ...] = (
    (r"qwen|qwq|qvq|ui-tars|opencua|gui-owl|jedi|holo", (_QWEN,)),
    (r"claude", (_PIXELS, *(rule for rule in _MODELS if rule.name.startswith("Anthropic")))),
    (r"gemini|gemma", tuple(rule for rule in _MODELS if rule.name.startswith("Google"))),
    (r"gpt|chatgpt|o[134](?!\d)", tuple(rule for rule in _MODELS if rule.name.startswith("OpenAI"))),
)
"""Pattern that a model's name begins with -> rules of which one is the family's."""


def possible_rules(name: str) -> tuple[ImageRule, ...]:
    """The rules by which the model of this name may count pictures, whoever serves it: its own, those of its family, or
    all for a family that nobody knows.

    >>> [len(possible_rules(name)) for name in ("openai/gpt-4o", "Qwen/Qwen2.5-VL-7B-Instruct")]
    [1, 1]
    """
    own = name.rpartition("/")[2].partition(":")[0].lower()
    if rule := rule_named(own):
        return (rule, _PIXELS) if own.startswith("claude") else (rule,)
    every = (_PIXELS, _QWEN, *_MODELS)
    return next((rules for pattern, rules in _FAMILIES if re.match(pattern, own)), every)


# --- prompts that were cut ---

ENOUGH = 500
"""Words of a prompt, or tokens of a count, from which a count says something: no server cuts prompts shorter than
that."""
FAR_BELOW = 0.7
"""Tokens a word below which a prompt was cut: tokenizers make at least about one of each word, number and mark."""
EQUAL = 3
"""Prompts in a row of different lengths and one count that cannot be chance."""
DIFFERENT = 1.05
"""Ratio of the longest to the shortest of them."""


class PromptCounts:
    """The server's counts of the prompts that it has answered."""

    def __init__(self) -> None:
        self._n_cut = 0
        self._cut = (0, 0)
        """Words and tokens of the first prompt that was cut."""
        self._alike: list[int] = []
        """Words of the prompts in a row that the server counted alike."""
        self._count = 0

    def add(self, messages: Sequence[Message], tokens: int) -> None:
        """Notes the server's count, 0 where it gives none. Pictures only add to it."""
        words = sum(count_words(message.text) for message in messages)
        if not tokens:
            return
        self._alike = [*self._alike[-EQUAL:], words] if tokens == self._count else [words]
        self._count = tokens
        lengths = sorted(set(self._alike))
        are_equal = tokens >= ENOUGH and len(lengths) >= EQUAL and lengths[-1] >= DIFFERENT * lengths[0]
        if (words >= ENOUGH and tokens < FAR_BELOW * words) or are_equal:
            self._cut = self._cut if self._n_cut else (words, tokens)
            self._n_cut += 1

    @property
    def remarks(self) -> tuple[str, ...]:
        """One remark where prompts were cut."""
        if not self._n_cut:
            return ()
        words, tokens = self._cut
        which = f"a prompt of {words:,} words" if tokens < words else "each of several prompts of different lengths"
        return (
            f"the server seems to cut prompts in silence ({self._n_cut} so far): it counts {tokens:,} tokens of {which}."
            " Give it a longer context (Ollama: OLLAMA_CONTEXT_LENGTH=32768, or num_ctx in the Modelfile), or send less: --top-k,"
            " --group-size",
        )
