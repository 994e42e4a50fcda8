"""Counts the prompt tokens of a picture by a local model's own rule, from its settings alone: nothing is loaded.

Qwen2-VL and its successors: a token for each square of merged patches, once the picture is scaled by `smart_resize`. LLaVA: so many
a picture, whatever its size. BLIP-2: its query tokens. Source: the processors of transformers 5.23.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seeact_offline.models.hf_folder import find_parts, picture_settings, settings
from seeact_offline.models.image_tokens import ImageRule
from seeact_offline.models.provider import ModelOptions
from seeact_offline.pages.resizing import MOST_STRETCHED, smart_resize
from seeact_offline.records import ModelSpecError

QWEN_PIXELS = 56 * 56, 28 * 28 * 1280
"""Fewest and most pixels where a processor's settings say none."""


def picture_rule(name: str, options: ModelOptions) -> ImageRule | None:
    """The rule of the model in a folder or of a hub id; None: not known, or there is no such model."""
    try:
        folder = find_parts(name).folder
        model, pictures = settings(folder, name), picture_settings(folder, name)
    except ModelSpecError:
        return None
    kind = model.get("model_type")
    if str(pictures.get("image_processor_type", "")).startswith("Qwen2VLImageProcessor"):
        return _qwen_rule(pictures, options.model_args.get("max_pixels"))
    try:
        if kind == "llava":
            vision = model["vision_config"]
            n_patches = (int(vision["image_size"]) // int(vision["patch_size"])) ** 2
            return _fixed_rule("LLaVA", n_patches + (model.get("vision_feature_select_strategy") == "full"))
        if kind == "blip-2":
            return _fixed_rule("BLIP-2", int(model.get("num_query_tokens", 32)))
    # settings that say nothing of it are the defaults of a class, which only transformers knows
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        pass
    return None


def _fixed_rule(name: str, n_tokens: int) -> ImageRule:
    return ImageRule(f"{name}'s, {n_tokens:,} a picture", lambda size, _: n_tokens)


def _qwen_rule(pictures: Mapping[str, Any], max_pixels: int | None) -> ImageRule | None:
    """Builds the rule of a processor to which `limit_pixels` gives the budget."""
    size = pictures.get("size") or {}
    try:
        side = int(pictures.get("patch_size", 14)) * int(pictures.get("merge_size", 2))
        least = int(pictures.get("min_pixels") or size.get("shortest_edge") or QWEN_PIXELS[0])
        most = max_pixels or int(pictures.get("max_pixels") or size.get("longest_edge") or QWEN_PIXELS[1])
    except (TypeError, ValueError, AttributeError):
        return None
    if side < 1:
        return None

    def count(shown: tuple[int, int]) -> int:
        width, height = shown
        # the processor refuses longer ones; the most that it could be
        if max(shown) > MOST_STRETCHED * min(shown):
            return most // side**2
        across, down = smart_resize(width, height, side, min(least, most), most)
        return across * down // side**2

    return ImageRule(f"Qwen-VL's, {side} px a token, at most {most // side**2:,}", lambda shown, _: count(shown))
