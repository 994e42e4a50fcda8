"""The bundled ranker by numpy, against torch's."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from ranker import CrossEncoderRanker, RankerError
from ranker.plain import SHAPE, PlainRanker, gelu
from seeact_offline import load_steps
from seeact_offline.ranking import bundled_folder
from seeact_offline.ranking.texts import ranker_input
from tests.lazily import torch

FOLDER = bundled_folder()
pytestmark = pytest.mark.skipif(FOLDER is None, reason="this checkout has no bundled ranker")
QUERY = "task is: book a room\nPrevious actions: None"


@pytest.fixture(scope="module")
def plain() -> PlainRanker:
    return PlainRanker(folder())


@pytest.fixture(scope="module")
def reference() -> CrossEncoderRanker:
    return CrossEncoderRanker(folder(), device="cpu", dtype="float32", backend="transformers")


def folder() -> Path:
    assert FOLDER is not None
    return FOLDER


@pytest.mark.slow
def test_scores_equal_those_of_transformers(plain: PlainRanker, reference: CrossEncoderRanker) -> None:
    for step in islice(load_steps("sample", "cross_website"), 0, 60, 30):
        described = ranker_input(step)
        texts = list(described.texts.values())[::4]
        expected = reference.score(described.query, texts)
        np.testing.assert_allclose(plain.score(described.query, texts), expected, atol=1e-5, rtol=0)


def test_distances_of_a_long_row_equal_those_of_transformers(plain: PlainRanker, reference: CrossEncoderRanker) -> None:
    texts = [" ".join(f"word{place * step % 97}" for place in range(150)) for step in (1, 2)] + ["", "x"]
    np.testing.assert_allclose(plain.score(QUERY, texts), reference.score(QUERY, texts), atol=1e-5, rtol=0)


def test_long_texts_are_cut_and_counted_as_by_the_reference(reference: CrossEncoderRanker) -> None:
    ranker, before = PlainRanker(folder()), reference.truncated
    texts = ["room " * 900, "room"]
    np.testing.assert_allclose(ranker.score(QUERY, texts), reference.score(QUERY, texts), atol=1e-5, rtol=0)
    assert (ranker.truncated, reference.truncated - before) == (1, 1)


def test_a_query_that_leaves_no_room_is_refused(plain: PlainRanker) -> None:
    with pytest.raises(RankerError, match="so that 8 are left for a text"):
        plain.score("room " * 600, ["a"])


def test_no_texts_have_no_scores(plain: PlainRanker) -> None:
    assert plain.score(QUERY, []).shape == (0,)


@pytest.mark.slow
def test_scores_have_the_same_bits_in_any_order_and_company(plain: PlainRanker) -> None:
    texts = ["button Search", "link Home", *(f"input Date {'of the journey ' * n}" for n in range(40)), "button Search"]
    found = plain.score(QUERY, texts)
    assert found[0] == found[-1]
    assert plain.score(QUERY, texts[::-1]).tolist() == found[::-1].tolist()
    assert [plain.score(QUERY, [text])[0] for text in texts] == found.tolist()


def test_scores_have_the_same_bits_with_any_number_of_blas_threads(plain: PlainRanker) -> None:
    texts = [f"option {n}: {'a room with a view ' * (n % 9)}" for n in range(60)]
    with threadpool_limits(1):
        alone = plain.score(QUERY, texts)
    with threadpool_limits(2):
        assert plain.score(QUERY, texts).tolist() == alone.tolist()


def test_digest_and_dtype_are_those_of_the_reference(plain: PlainRanker, reference: CrossEncoderRanker) -> None:
    assert (plain.digest, plain.dtype) == (reference.digest, reference.dtype)


def test_activation_equals_torch_s() -> None:
    values = torch.linspace(-9, 9, 20_001)
    expected = torch.nn.functional.gelu(values).numpy()
    np.testing.assert_allclose(gelu(values.numpy().copy()), expected, atol=2e-6, rtol=0)


@pytest.mark.parametrize("key", SHAPE)
def test_a_checkpoint_of_another_shape_is_refused(key: str, tmp_path: Path) -> None:
    shutil.copytree(folder(), tmp_path / "other")
    config = json.loads((folder() / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, key: "other"}))
    with pytest.raises(RankerError, match=key):
        PlainRanker(tmp_path / "other")
