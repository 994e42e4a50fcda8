"""Crops: where they are cut, what they hold, what happens to damaged pictures."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.lint import BLANK_BYTES
from seeact_offline.pages.screenshots import PagePicture, PixelCache, group_crop, is_crop_empty
from seeact_offline.records import PNG, Box, CropBox, ImageFormat, InputError, RowError
from tests.pages import Stored
from tests.reference.grouping import rows_shown


def png(width: int, height: int) -> bytes:
    """A picture whose every row has its own colour."""
    column = Image.frombytes("RGB", (1, height), bytes(b for y in range(height) for b in (y % 256, y // 256, 7)))
    out = io.BytesIO()
    column.resize((width, height), Image.Resampling.NEAREST).save(out, "PNG")
    return out.getvalue()


def test_crop_sizes_of_the_real_step_equal_the_golden_file(shared_step) -> None:
    step = next(load_steps(shared_step, "cross_domain"))
    boxes = {c.backend_node_id: c.box for c in step.candidates}
    size = PagePicture(step.screenshot).size
    for group in json.loads((shared_step / "expected_groups.json").read_text()):
        crop = group_crop([boxes[node] for node, _ in group["choices"]], size)
        assert list(crop.size) == group["crop_size"]


def test_a_crop_reaches_a_margin_above_and_below() -> None:
    assert group_crop([Box(0, 2000, 10, 100), Box(5, 1500, 10, 50)], (1280, 9000)) == CropBox(0, 476, 1280, 3124)


boxes = st.builds(Box, st.floats(-100, 2000), st.floats(-5000, 20000), st.floats(0, 3000), st.floats(0, 3000))


@given(st.lists(boxes, min_size=1, max_size=5), st.integers(1, 2000), st.integers(1, 10000))
def test_a_crop_is_never_empty_and_lies_in_the_picture(group: list[Box], width: int, height: int) -> None:
    x0, y0, x1, y1 = group_crop(group, (width, height))
    assert (x0, x1) == (0, width)
    assert 0 <= y0 < y1 <= height


@given(st.lists(boxes, min_size=1, max_size=5), st.integers(1, 10000))
def test_a_crop_is_empty_where_no_row_of_the_page_lies_near_the_group(group: list[Box], height: int) -> None:
    assert is_crop_empty(group, (1280, height)) == (rows_shown(group, height) == 0)


def test_a_crop_holds_the_pixels_of_its_rectangle() -> None:
    crop = PagePicture(Stored(png(4, 600))).crop(CropBox(0, 100, 4, 300))
    picture = Image.open(io.BytesIO(crop.encoded()))
    assert picture.size == (4, 200)
    assert (picture.getpixel((0, 0)), picture.getpixel((3, 199))) == ((100, 0, 7), (299 % 256, 1, 7))


def test_equal_crops_of_equal_files_have_equal_keys() -> None:
    box = CropBox(0, 0, 2, 2)
    one, same, other = (PagePicture(Stored(png(4, n))).crop(box).key for n in (8, 8, 9))
    assert one == same != other


def test_a_damaged_picture_is_a_named_failure() -> None:
    with pytest.raises(RowError, match="bad_screenshot"):
        _ = PagePicture(Stored(b"no picture")).size


# Pillow's other readers include one that starts a program


def every_format() -> dict[str, bytes]:
    """One file of each format that Pillow can write, by the name that it gives the format."""
    Image.init()
    files = {}
    for kind in sorted(Image.SAVE):
        for mode in ("RGB", "L", "1"):
            out = io.BytesIO()
            with contextlib.suppress(Exception):
                Image.new(mode, (32, 32)).save(out, kind)
                out.seek(0)
                files.setdefault(str(Image.open(out).format), out.getvalue())
    return files


def test_pictures_of_six_formats_are_opened_and_no_others() -> None:
    files = every_format()
    assert {"EPS", "PPM", "TGA", "ICNS"} < files.keys()
    opened = set()
    for content in files.values():
        with contextlib.suppress(RowError):
            opened.add(PagePicture(Stored(content)).format)
    assert opened == {"PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"}


def test_a_picture_of_another_format_is_a_failure_that_names_the_six() -> None:
    with pytest.raises(RowError, match=r"bad_screenshot: .*no readable PNG, JPEG, WEBP, GIF, BMP or TIFF$"):
        _ = PagePicture(Stored(every_format()["EPS"])).size


@pytest.mark.slow
def test_pictures_are_opened_in_one_place(repo: Path) -> None:
    """For code to come as well."""
    found = []
    for path in [file for top in ("seeact_offline", "ranker", "scripts") for file in (repo / top).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            opens = isinstance(node, ast.Attribute) and ast.unparse(node).endswith("Image.open")
            imports = isinstance(node, ast.ImportFrom) and node.module in ("PIL.Image", "PIL.ImageFile")
            if opens or (imports and {"open", "Parser"} & {alias.name for alias in node.names}):
                found.append(path.relative_to(repo).as_posix())
    assert found == ["seeact_offline/pages/screenshots.py"]


def test_a_picture_cut_short_is_a_named_failure_when_its_pixels_are_needed() -> None:
    picture = PagePicture(Stored(png(400, 900)[:-200]))
    # the size is known without decoding
    assert picture.size == (400, 900)
    assert "pixels" not in vars(picture)
    with pytest.raises(RowError, match="bad_screenshot"):
        picture.crop(CropBox(0, 0, 10, 10)).encoded()


def test_pages_used_longest_ago_forget_their_pixels_where_there_is_no_room_for_all() -> None:
    pages, kept = [PagePicture(Stored(png(4, 8 + i))) for i in range(3)], PixelCache(budget=20)
    for page in (*pages[:2], pages[0], pages[2]):
        assert page.pixels.size[0] == 4
        kept.used(page, 10)
    assert ["_opened" in vars(page) for page in pages] == [True, False, True]


def test_a_page_that_forgot_its_pixels_is_decoded_again() -> None:
    page = PagePicture(Stored(png(4, 600)))
    before = page.crop(CropBox(0, 100, 4, 300)).encoded()
    page.forget_pixels()
    assert page.crop(CropBox(0, 100, 4, 300)).encoded() == before


def test_a_page_cut_before_it_is_converted_has_the_same_pixels() -> None:
    """A palette is converted crop by crop."""
    out = io.BytesIO()
    Image.open(io.BytesIO(png(4, 600))).convert("P").save(out, "PNG")
    page, box = PagePicture(Stored(out.getvalue())), CropBox(0, 100, 4, 300)
    assert page.part(box).tobytes() == page.pixels.crop(box).tobytes()


def encoded(kind: str) -> bytes:
    out = io.BytesIO()
    Image.open(io.BytesIO(png(64, 300))).save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
def test_a_whole_file_passes_and_a_cut_one_does_not(kind: str) -> None:
    data = encoded(kind)
    PagePicture(Stored(data)).check_whole()
    with pytest.raises(RowError, match="bad_screenshot"):
        PagePicture(Stored(data[: len(data) * 2 // 3])).check_whole()


@pytest.mark.parametrize(("kind", "options"), [("PNG", {}), ("WEBP", {}), ("WEBP", {"lossless": True})])
@pytest.mark.parametrize("size", [(1280, 600), (1280, 7000)])
def test_a_picture_of_one_colour_is_small_enough_to_be_looked_at(
    kind: str, options: dict, size: tuple[int, int]
) -> None:
    out = io.BytesIO()
    Image.new("RGB", size, (250, 251, 249)).save(out, kind, **options)
    assert PagePicture(Stored(out.getvalue())).bytes_per_pixel < BLANK_BYTES[kind]


def test_a_crop_larger_than_allowed_is_made_smaller_and_shows_the_same() -> None:
    crop = PagePicture(Stored(png(40, 600))).crop(CropBox(0, 100, 40, 500), max_side=100)
    assert (crop.scale, crop.size, crop.resized) == (0.25, (10, 100), True)
    assert Image.open(io.BytesIO(crop.encoded())).size == (10, 100)
    colours = [crop.image().getpixel((5, y)) for y in (10, 50)]
    rows = [colour[0] + 256 * colour[1] for colour in colours]
    assert all(abs(row - (100 + 4 * y + 1.5)) <= 1 for row, y in zip(rows, (10, 50), strict=True))


@pytest.mark.parametrize("max_side", [None, 400, 10_000])
def test_a_crop_within_the_limit_is_shown_as_it_is(max_side: int | None) -> None:
    page = PagePicture(Stored(png(40, 600)))
    crop, plain = page.crop(CropBox(0, 100, 40, 500), max_side), page.crop(CropBox(0, 100, 40, 500))
    assert (crop.scale, crop.size, crop.resized, crop.key) == (1.0, (40, 400), False, plain.key)


def test_crops_shown_in_different_sizes_have_different_keys() -> None:
    page, box = PagePicture(Stored(png(40, 600))), CropBox(0, 100, 40, 500)
    assert len({page.crop(box, max_side).key for max_side in (None, 100, 200)}) == 3


def test_the_longest_side_must_be_a_pixel_at_least() -> None:
    with pytest.raises(ValueError, match="max_side must be 1 or more, got 0"):
        PagePicture(Stored(png(4, 4))).crop(CropBox(0, 0, 4, 4), max_side=0)


crop_boxes = st.builds(
    lambda x, y, w, h: CropBox(x, y, x + w, y + h),
    *(st.integers(0, 3000), st.integers(0, 9000), st.integers(1, 3000), st.integers(1, 9000)),
)


@given(crop_boxes, st.integers(1, 9000) | st.none(), st.floats(-1, 2), st.floats(-1, 2))
def test_points_go_to_the_page_and_back(box: CropBox, max_side: int | None, across: float, down: float) -> None:
    crop = PagePicture(Stored(b"not opened")).crop(box, max_side)
    x, y = box.x0 + across * box.size[0], box.y0 + down * box.size[1]
    assert crop.to_page(*crop.from_page(x, y)) == pytest.approx((x, y), abs=1e-6)


@given(crop_boxes, st.integers(1, 9000) | st.none())
def test_the_corners_of_what_is_shown_are_those_of_the_rectangle(box: CropBox, max_side: int | None) -> None:
    crop = PagePicture(Stored(b"not opened")).crop(box, max_side)
    assert crop.to_page(0, 0) == pytest.approx((box.x0, box.y0))
    assert crop.to_page(*crop.size) == pytest.approx((box.x1, box.y1))
    assert max(crop.size) <= (max_side or 9000)


# --- as files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "mime", "endings"),
    [
        ("png", "image/png", (".png",)),
        ("jpeg:95", "image/jpeg", (".jpg", ".jpeg")),
        ("jpeg:1", "image/jpeg", (".jpg", ".jpeg")),
        ("webp:100", "image/webp", (".webp",)),
    ],
)
def test_a_format_is_written_as_it_is_read(text: str, mime: str, endings: tuple[str, ...]) -> None:
    found = ImageFormat.read(text)
    assert (str(found), found.mime, found.endings) == (text, mime, endings)


@pytest.mark.parametrize(
    "text",
    ["", "jpeg", "jpg:95", "JPEG:95", "png:9", "jpeg:0", "jpeg:101", "jpeg:-5", "jpeg:9.5", "webp:", "gif", "jpeg:٩"],
)
def test_what_is_no_format_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(
        InputError, match=r"^image_format: expected png, jpeg:Q or webp:Q with Q from 1 to 100.*, got '"
    ):
        ImageFormat.read(text)


@pytest.mark.parametrize(("text", "kind"), [("png", "PNG"), ("jpeg:95", "JPEG"), ("webp:90", "WEBP")])
def test_a_crop_is_encoded_in_the_format_asked_for(text: str, kind: str) -> None:
    """The same picture gives the same bytes."""
    content, again = (
        PagePicture(Stored(png(40, 600))).crop(CropBox(0, 100, 40, 300)).encoded(ImageFormat.read(text))
        for _ in range(2)
    )
    assert content == again
    picture = Image.open(io.BytesIO(content))
    assert (picture.format, picture.size, picture.mode) == (kind, (40, 200), "RGB")


def test_png_loses_nothing_and_the_quality_of_others_is_heeded() -> None:
    noise = Image.effect_noise((64, 64), 80).convert("RGB")
    out = io.BytesIO()
    noise.save(out, "PNG")
    crop = PagePicture(Stored(out.getvalue())).crop(CropBox(0, 0, 64, 64))
    assert Image.open(io.BytesIO(crop.encoded())).tobytes() == noise.tobytes()
    for kind in ("jpeg", "webp"):
        sizes = [len(crop.encoded(ImageFormat.read(f"{kind}:{quality}"))) for quality in (20, 60, 95)]
        assert sizes == sorted(set(sizes))


@pytest.mark.parametrize(("text", "rows"), [("jpeg:5", 65_500), ("webp:1", 16_383)])
def test_a_format_holds_a_picture_of_its_longest_side_and_none_beyond(text: str, rows: int) -> None:
    image_format = ImageFormat.read(text)
    assert image_format.longest_side == rows
    assert PNG.longest_side is None
    page = PagePicture(Stored(png(1, rows + 1)))
    assert Image.open(io.BytesIO(page.crop(CropBox(0, 0, 1, rows)).encoded(image_format))).height == rows
    with pytest.raises((OSError, ValueError)):
        page.crop(CropBox(0, 0, 1, rows + 1)).encoded(image_format)
