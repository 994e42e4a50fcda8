"""Rules on the pictures of a page: structural similarity, and questions to a model (VisualWebArena 89f5af2, image_utils.py:64-84)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from seeact_offline.pages.screenshots import open_picture
from seeact_offline.records import RowError
from seeact_offline.trajectories.unscored import Unscored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

THRESHOLD = 0.8
WINDOW = 7
"""Pixels of a side of scikit-image's window, and so of the smallest picture."""
MOST_PIXELS = 64_000_000
"""Pixels of a pair of pictures after both are enlarged."""
AskPicture = Callable[[str, bytes], str]
"""Sends a question and the file of a picture to a model and returns its reply. Raises CallError."""


def ssim(first: bytes, second: bytes) -> float:
    """Mean structural similarity of two picture files, at most 1: both enlarged to the larger width and height (Lanczos), in grey.

    Wang et al. 2004 by scikit-image with its defaults, as in the released code. Needs the extra `rewards`. Raises Unscored `missing_picture` for a file that
    is no picture, or a pair that is too small or too large.
    """
    from skimage.metrics import structural_similarity

    one, other = _opened(first), _opened(second)
    size = max(one.width, other.width), max(one.height, other.height)
    if min(size) < WINDOW or size[0] * size[1] > MOST_PIXELS:
        raise Unscored("missing_picture", f"pictures of {size[0]} x {size[1]} pixels cannot be compared")
    return float(structural_similarity(_grey(one, size), _grey(other, size)))


def is_similar(picture: bytes, reference: bytes, threshold: float = THRESHOLD) -> float:
    """Passes pictures that are more similar than the threshold."""
    return float(ssim(picture, reference) > threshold)


def answers_question(pictures: Sequence[bytes], question: str, answer: str, ask: AskPicture) -> float:
    """Passes if the expected text is in a model's reply about any picture; every picture is asked about."""
    replies = [ask(f"Q: {question} A:", picture) for picture in pictures]
    return float(any(answer.lower() in reply.lower() for reply in replies))


def _opened(data: bytes) -> Image.Image:
    try:
        picture = open_picture(data)
        picture.load()
    except (RowError, OSError, ValueError, SyntaxError) as error:
        raise Unscored("missing_picture", str(error)) from None
    return picture


def _grey(picture: Image.Image, size: tuple[int, int]) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image

    return np.asarray(picture.resize(size, Image.Resampling.LANCZOS).convert("L"))
