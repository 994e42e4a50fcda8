"""The size to which a model's processor scales a picture."""

from __future__ import annotations

import math

MOST_STRETCHED = 200
"""Longest side over shortest, beyond which `smart_resize` refuses a picture."""


def smart_resize(width: int, height: int, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size to which Qwen2-VL's processor scales a picture: both sides multiples of `factor`, at most `max_pixels` in all.

    Raises ValueError for a picture over 200 times as long as wide. Source: QwenLM/Qwen3-VL 9658872, qwen-vl-utils.

    >>> smart_resize(1280, 800, factor=28, min_pixels=3_136, max_pixels=12_845_056)
    (1288, 812)
    >>> smart_resize(1280, 5000, factor=28, min_pixels=3_136, max_pixels=1_003_520)
    (504, 1960)
    """
    if max(width, height) > MOST_STRETCHED * min(width, height):
        raise ValueError(f"expected a picture at most {MOST_STRETCHED} times as long as wide, got {width} x {height}")
    new = [max(factor, factor * round(side / factor)) for side in (width, height)]
    if new[0] * new[1] > max_pixels:
        scale = math.sqrt(width * height / max_pixels)
        new = [max(factor, factor * math.floor(side / scale / factor)) for side in (width, height)]
    elif new[0] * new[1] < min_pixels:
        scale = math.sqrt(min_pixels / (width * height))
        new = [factor * math.ceil(side * scale / factor) for side in (width, height)]
    return new[0], new[1]
