"""`stats`: the figures of the paper's Table 1."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from seeact_offline.dataset import load_steps
from seeact_offline.dataset.summary import DatasetStats, dataset_stats, paper_table1
from seeact_offline.models.tokens import count_words, full_size_visual_tokens, visual_tokens
from seeact_offline.ranking import tokenizers
from seeact_offline.ranking.tokenizers import open_tokenizer, tokenizer_of
from seeact_offline.records import InputError
from tests.conftest import SHARED_DATA
from tests.pages import synthetic_rows, write_parquet


def stats_of(rows: Iterable[Mapping[str, Any]], folder: Path) -> DatasetStats:
    path = write_parquet(rows, folder / "train-00000-of-00001.parquet")
    return dataset_stats(load_steps(path, "train"), "train", count_words)


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1024, 1024), 765),
        ((2048, 4096), 1105),
        # the two examples that OpenAI's guide works out
        ((1280, 7412), 765),
        ((512, 512), 255),
        ((513, 512), 425),
        ((1, 100_000), 765),
    ],
)
def test_visual_tokens_follow_the_published_rule(size: tuple[int, int], tokens: int) -> None:
    assert visual_tokens(size) == tokens


def test_no_picture_reaches_the_papers_figures_by_the_published_rule() -> None:
    sizes = [(width, height) for width in range(1, 4200, 61) for height in range(1, 12000, 173)]
    assert max(map(visual_tokens, sizes)) == 1445


def test_full_size_tokens_are_those_of_the_page_as_it_is() -> None:
    assert full_size_visual_tokens((1280, 7412)) == 3 * 15 * 170 + 85


def test_real_step_gives_the_figures_of_its_page(shared_step: Path) -> None:
    stats = dataset_stats(load_steps(shared_step, "cross_domain"), "cross_domain", count_words)
    assert (stats.tasks, stats.steps, stats.elements_a_page) == (1, 1, 468)
    assert (stats.visual_tokens, stats.visual_tokens_at_full_size) == (765, 7735)


def test_counts_tasks_sites_and_averages(tmp_path: Path) -> None:
    stats = stats_of(synthetic_rows(8, 3, 12, seed=1), tmp_path)
    assert (stats.tasks, stats.steps, stats.actions_a_task) == (8, 24, 3)
    assert (stats.domains, stats.subdomains, stats.websites, stats.elements_a_page) == (3, 3, 7, 12)


def test_html_tokens_are_those_of_the_named_tokenizer(tmp_path: Path) -> None:
    path = write_parquet(synthetic_rows(2, 1, 5, seed=1), tmp_path / "train.parquet")
    pages = [step.cleaned_html for step in load_steps(path, "train")]
    stats = dataset_stats(load_steps(path, "train"), "train", len)
    assert stats.html_tokens_a_page == sum(map(len, pages)) / 2


def test_words_are_letters_digits_by_three_and_single_marks() -> None:
    assert count_words('<a id="12345">Zürich now_</a>') == len('< a id = " 123 45 " > Zürich now _ < / a >'.split())


def test_no_picture_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Image.Image) -> None:
        raise AssertionError("decoded")

    rows = list(synthetic_rows(1, 2, 5, seed=1))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", refuse)
    assert stats_of(rows, tmp_path).visual_tokens is not None


def test_faulty_rows_are_counted_by_name_and_kept(tmp_path: Path) -> None:
    rows = list(synthetic_rows(1, 3, 5, seed=1))
    rows[0]["screenshot"] = None
    rows[1]["screenshot"] = {"bytes": b"no picture", "path": None}
    rows[1]["operation"] = "{}"
    stats = stats_of(rows, tmp_path)
    assert stats.faults == {"no_screenshot": 1, "bad_screenshot": 1, "bad_operation": 1}
    assert (stats.steps, stats.faulty_rows) == (3, 2)


def test_average_over_nothing_is_none(tmp_path: Path) -> None:
    rows = [{**row, "screenshot": None, "cleaned_html": ""} for row in synthetic_rows(1, 1, 5, seed=1)]
    stats = stats_of(rows, tmp_path)
    assert (stats.html_tokens_a_page, stats.visual_tokens, stats.visual_tokens_at_full_size) == (None, None, None)


def test_empty_data_set_has_no_averages() -> None:
    stats = dataset_stats([], "train", count_words)
    assert (stats.tasks, stats.actions_a_task, stats.elements_a_page) == (0, None, None)


def test_shipped_table_is_the_papers() -> None:
    if not (SHARED_DATA / "paper_tables.json").is_file():
        pytest.skip("the paper's tables are not here: ../shared/data/paper_tables.json does not exist")
    table = json.loads((SHARED_DATA / "paper_tables.json").read_text())["table1"]
    names = table.pop("columns")
    shipped = {split: dataclasses.asdict(figures) for split, figures in paper_table1().items()}
    assert shipped == {split: dict(zip(names, values, strict=True)) for split, values in table.items()}


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
