"""Tokenizers by name, and that of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seeact_offline.ranking import tokenizers
from seeact_offline.ranking.tokenizers import open_tokenizer, tokenizer_of
from seeact_offline.records import InputError


@pytest.mark.slow
def test_hugging_face_tokenizer_is_read_from_a_folder(tmp_path: Path) -> None:
    library = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    vocabulary = library.models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]")
    model = library.Tokenizer(vocabulary)
    model.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]").save_pretrained(tmp_path)
    tokenizer = open_tokenizer(f"hf:{tmp_path}")
    assert tokenizer.count("a b <a>") == 3
    # the text itself, with the white space between
    assert [tokenizer.cut("a \n b <a>", n) for n in range(5)] == ["", "a", "a \n b", "a \n b <a>", "a \n b <a>"]
    assert tokenizer_of(f"hf/{tmp_path}") == f"hf:{tmp_path}"


def test_characters_are_cut_as_visualwebarena_does_for_gemini() -> None:
    tokenizer = open_tokenizer("characters")
    assert (tokenizer.count("a" * 9), tokenizer.cut("ab" * 9_000, 3_840)) == (3, "ab" * 7_680)


@pytest.mark.parametrize(
    ("model", "is_fetched", "expected"),
    [
        ("openai/gpt-4o", True, "tiktoken:o200k_base"),
        ("openai/gpt-4o", False, "words"),
        ("openai/google/gpt-4o", True, "tiktoken:o200k_base"),
        ("openai/gemini-2.5-pro", False, "characters"),
        ("openai/google/gemini-2.5-pro", True, "characters"),
        ("openai/Qwen/Qwen2.5-VL-7B-Instruct", True, "words"),
        ("hf/no-such-folder", True, "words"),
        ("builtin/lexical", True, "words"),
        (len, True, "words"),
    ],
)
def test_a_models_tokenizer_is_its_own_where_it_is_at_hand(
    model: Any, is_fetched: bool, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Encoding:
        def encode_ordinary(self, text: str) -> bytes:
            return text.encode()

        def decode(self, tokens: bytes) -> str:
            return tokens.decode(errors="replace")

    encodings = {"gpt-4o": "o200k_base"}
    fake = SimpleNamespace(
        encoding_name_for_model=encodings.__getitem__,
        list_encoding_names=lambda: ["o200k_base"],
        get_encoding=lambda name: Encoding(),
    )
    monkeypatch.setitem(sys.modules, "tiktoken", fake)
    monkeypatch.setattr(tokenizers, "find_spec", lambda name: object())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    if is_fetched:
        (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").touch()
    open_tokenizer.cache_clear()
    assert tokenizer_of(model) == expected
    if expected.startswith("tiktoken"):
        assert open_tokenizer(expected).cut("aä", 2) == "a\N{REPLACEMENT CHARACTER}"
    open_tokenizer.cache_clear()


@pytest.mark.parametrize(("spec", "package"), [("tiktoken:o200k_base", "tiktoken"), ("hf:some/model", "transformers")])
def test_missing_package_is_named_with_its_install_line(
    spec: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"needs the package {package}: run .* -m pip install"):
        open_tokenizer(spec)


@pytest.mark.parametrize("spec", ["", "word", "tiktoken", "tiktoken:", "gpt:4"])
def test_unknown_tokenizer_is_refused(spec: str) -> None:
    with pytest.raises(
        InputError, match=r"^tokenizer: expected words, characters, tiktoken:NAME or hf:DIR_OR_ID, got "
    ):
        open_tokenizer(spec)
