"""The cross-encoder against transformers asked one pair at a time, and each input it has to refuse."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from ranker import CrossEncoderRanker, RankerError
from ranker.checkpoint import find_folder, open_base
from ranker.cross_encoder import batch_bounds
from tests.lazily import torch, transformers

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = ["alpha", "one", "two", "beta", "gamma", "search", "flight", "cart", "button", "a", "task", "is", "(", ")", "/"]
MAX_TOKENS = 48
QUERY = "task is search a flight"

WORD = st.sampled_from([*WORDS, "unheard", "é"])
TEXT = st.lists(WORD, max_size=20).map(" ".join)


def make_tokenizer(pair: str | None = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", truncation_side: str = "right") -> Any:
    vocab = {word: place for place, word in enumerate([*SPECIAL, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if pair:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=MAX_TOKENS,
        truncation_side=truncation_side,
    )


def tiny_config(**settings: Any) -> Any:
    """DeBERTa-v3's architecture; the large spread of the weights makes scores differ."""
    shape: dict[str, Any] = {
        "vocab_size": len(SPECIAL + WORDS),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
        "relative_attention": True,
        "position_buckets": 8,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
        "num_labels": 1,
    }
    return transformers.DebertaV2Config(**shape | settings)


def save(folder: Path, model: Any, tokenizer: Any = None) -> Path:
    model.save_pretrained(folder)
    (tokenizer or make_tokenizer()).save_pretrained(folder)
    return folder


def make_checkpoint(folder: Path, **settings: Any) -> Path:
    torch.manual_seed(0)
    return save(folder, transformers.DebertaV2ForSequenceClassification(tiny_config(**settings)))


@pytest.fixture(scope="module")
def ranker(folder: Path) -> CrossEncoderRanker:
    return CrossEncoderRanker(folder, device="cpu")


def edit_config(folder: Path, **settings: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return folder


def one_by_one(model: Any, tokenizer: Any, pairs: list[tuple[str, str]]) -> np.ndarray:
    """transformers' own words: one pair, no padding; all logits. (Lists, for an empty second text makes no pair otherwise.)"""
    model.eval()
    inputs = [tokenizer([first], [second], return_tensors="pt") for first, second in pairs]
    with torch.no_grad():
        return np.concatenate([model(**values).logits.numpy() for values in inputs])


# Right scores


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(TEXT, min_size=1, max_size=8))
def test_scores_equal_those_of_each_pair_alone(folder: Path, ranker: CrossEncoderRanker, texts: list[str]) -> None:
    model, tokenizer = transformers.DebertaV2ForSequenceClassification.from_pretrained(folder), make_tokenizer()
    expected = one_by_one(model, tokenizer, [(QUERY, text) for text in texts])[:, 0]
    assert ranker.score(QUERY, texts) == pytest.approx(expected, abs=1e-4)


@settings(max_examples=50)
@given(TEXT.filter(lambda text: len(text.split()) < 12), st.lists(st.one_of(TEXT, st.text()), max_size=8))
def test_rows_are_the_tokenizers_own_pairs(ranker: CrossEncoderRanker, query: str, texts: list[str]) -> None:
    tokenizer = make_tokenizer()
    expected = [tokenizer([query], [text], truncation="only_second")["input_ids"][0] for text in texts]
    encoded = ranker.encode([(query, texts)])
    assert [list(encoded.rows[place].ids) for place in encoded.places[0]] == expected


@pytest.mark.parametrize("side", ["left", "right"])
def test_long_texts_are_cut_as_the_tokenizer_cuts_them(copy: Path, side: str) -> None:
    tokenizer = make_tokenizer(truncation_side=side)
    tokenizer.save_pretrained(copy)
    text = " ".join(WORDS * 5)
    encoded = CrossEncoderRanker(copy, device="cpu").encode([(QUERY, [text])])
    assert list(encoded.rows[0].ids) == tokenizer(QUERY, text, truncation="only_second")["input_ids"]


def test_a_model_with_token_types_gets_them(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=19, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=1
    )
    config.initializer_range = 0.5
    model = transformers.BertForSequenceClassification(config)
    texts = ["search button", "cart", "a flight is a flight ( one )"]
    expected = one_by_one(model, make_tokenizer(), [(QUERY, text) for text in texts])[:, 0]
    scores = CrossEncoderRanker(save(tmp_path, model), device="cpu").score(QUERY, texts)
    assert scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("backend", ["packed", "transformers"])
@pytest.mark.parametrize("order", ["query-text", "text-query"])
def test_the_types_are_the_tokenizers_in_either_order_and_backend(tmp_path: Path, order: str, backend: str) -> None:
    folder = make_checkpoint(tmp_path, type_vocab_size=2, pair_order=order)
    texts = ["a cart\nsearch button", "one"]
    pairs = [(QUERY, text) if order == "query-text" else (text, QUERY) for text in texts]
    model = transformers.DebertaV2ForSequenceClassification.from_pretrained(folder)
    expected = one_by_one(model, make_tokenizer(), pairs)[:, 0]
    scores = CrossEncoderRanker(folder, device="cpu", backend=backend).score(QUERY, texts)
    assert scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("texts", [[], ["cart"], ["cart", "button"]])
def test_scores_are_float32_one_a_text(ranker: CrossEncoderRanker, texts: list[str]) -> None:
    scores = ranker.score(QUERY, texts)
    assert (scores.dtype, scores.shape) == (np.float32, (len(texts),))


def test_queries_without_candidates_stand_among_others(ranker: CrossEncoderRanker) -> None:
    scores = ranker.score_many([(QUERY, []), (QUERY, ["cart"]), ("a task", [])])
    assert [len(values) for values in scores] == [0, 1, 0]


def test_bf16_stays_near_fp32(folder: Path, ranker: CrossEncoderRanker) -> None:
    texts = ["cart", "search flight button", "alpha beta gamma"]
    half = CrossEncoderRanker(folder, device="cpu", dtype="bf16")
    assert half.dtype == "bfloat16"
    assert half.score(QUERY, texts) == pytest.approx(ranker.score(QUERY, texts), abs=0.2)


def test_the_loaded_tokenizer_is_the_saved_one(folder: Path) -> None:
    loaded = transformers.AutoTokenizer.from_pretrained(folder)
    assert loaded("Search", "a Button")["input_ids"] == make_tokenizer()("Search", "a Button")["input_ids"]


# Batching and order


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@settings(max_examples=15)
@given(texts=st.lists(TEXT, min_size=1, max_size=30), batch_tokens=st.integers(1, 400))
def test_scores_do_not_depend_on_the_batches(folder: Path, dtype: str, texts: list[str], batch_tokens: int) -> None:
    whole = CrossEncoderRanker(folder, device="cpu", dtype=dtype, batch_tokens=100_000)
    parts = CrossEncoderRanker(folder, device="cpu", dtype=dtype, batch_tokens=batch_tokens)
    assert parts.score(QUERY, texts) == pytest.approx(whole.score(QUERY, texts), abs=1e-3)


@settings(max_examples=25)
@given(st.lists(TEXT, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_the_order_at_all(ranker: CrossEncoderRanker, texts: list[str], random: Any) -> None:
    order = list(range(len(texts)))
    random.shuffle(order)
    shuffled = ranker.score(QUERY, [texts[place] for place in order])
    assert shuffled.tolist() == ranker.score(QUERY, texts)[order].tolist()


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from([QUERY, "a task", ""]), st.lists(TEXT, max_size=6)), max_size=5))
def test_many_queries_score_as_each_alone(ranker: CrossEncoderRanker, pairs: list[tuple[str, list[str]]]) -> None:
    together = ranker.score_many(pairs)
    assert len(together) == len(pairs)
    for (query, texts), scores in zip(pairs, together, strict=True):
        assert scores == pytest.approx(ranker.score(query, texts), abs=1e-3)


def test_the_order_of_queries_changes_no_score(ranker: CrossEncoderRanker) -> None:
    pairs = [(QUERY, ["cart", "a button"]), ("a task", ["cart", "search flight", "one"])]
    forwards, backwards = ranker.score_many(pairs), ranker.score_many(pairs[::-1])
    assert [values.tolist() for values in forwards] == [values.tolist() for values in backwards[::-1]]


def test_equal_texts_are_scored_once_and_alike(ranker: CrossEncoderRanker) -> None:
    encoded = ranker.encode([(QUERY, ["cart", "button", "cart"]), (QUERY, ["cart", "Cart "])])
    assert len(encoded.rows) == 2
    scores = ranker.score(QUERY, ["cart", "button", "cart"])
    assert scores[0] == scores[2] != scores[1]


def test_a_batch_holds_rows_of_one_width() -> None:
    assert batch_bounds([33, 32, 17, 16, 16, 16], 32) == [0, 1, 2, 3, 5, 6]


@given(st.lists(st.integers(1, 60), min_size=1).map(lambda lengths: sorted(lengths, reverse=True)), st.integers(1, 500))
def test_batches_cover_all_rows_within_the_budget(lengths: list[int], budget: int) -> None:
    bounds = batch_bounds(lengths, budget)
    assert (bounds[0], bounds[-1]) == (0, len(lengths))
    for start, stop in pairwise(bounds):
        assert stop - start == 1 or (stop - start) * lengths[start] <= budget


# Length


def test_cut_texts_are_counted(folder: Path) -> None:
    ranker = CrossEncoderRanker(folder, device="cpu")
    long = " ".join(["cart"] * 60)
    ranker.score(QUERY, [long, "cart", long])
    assert ranker.truncated == 2


def test_a_query_is_never_cut(ranker: CrossEncoderRanker) -> None:
    encoded = ranker.encode([(QUERY, [" ".join(["cart"] * 60)])])
    expected = make_tokenizer()(QUERY)["input_ids"]
    assert list(encoded.rows[0].ids[: len(expected)]) == expected
    assert len(encoded.rows[0].ids) == MAX_TOKENS


def test_a_query_that_leaves_no_room_is_refused(ranker: CrossEncoderRanker) -> None:
    with pytest.raises(RankerError, match=r"query: expected at most 37 tokens, .* got 38"):
        ranker.score(" ".join(["task"] * 38), ["cart"])


# Order of the pair


@pytest.mark.parametrize(
    ("stated", "argument", "order"),
    [({}, None, "query-text"), ({"pair_order": "text-query"}, None, "text-query"),
     ({"pair_order": "text-query"}, "query-text", "query-text")],
    ids=["default", "config", "argument before config"],
)  # fmt: skip
def test_the_order_of_a_pair(copy: Path, stated: dict[str, str], argument: Any, order: str) -> None:
    ranker = CrossEncoderRanker(edit_config(copy, **stated), device="cpu", pair_order=argument)
    pair = (QUERY, "cart") if order == "query-text" else ("cart", QUERY)
    assert ranker.pair_order == order
    assert list(ranker.encode([(QUERY, ["cart"])]).rows[0].ids) == make_tokenizer()(*pair)["input_ids"]


# Labels


def two_labels(folder: Path, **settings: Any) -> CrossEncoderRanker:
    return CrossEncoderRanker(make_checkpoint(folder, num_labels=2, **settings), device="cpu")


@pytest.mark.parametrize(
    "labels",
    [{"positive_label": 0}, {"positive_label": "LABEL_0"}, {"id2label": {0: "Relevant", 1: "other"}}],
    ids=["number", "name", "a label that names itself"],
)
def test_the_positive_label_is_scored_by_its_log_odds(tmp_path: Path, labels: dict[str, Any]) -> None:
    ranker = two_labels(tmp_path, **labels)
    model = transformers.DebertaV2ForSequenceClassification.from_pretrained(tmp_path)
    logits = one_by_one(model, make_tokenizer(), [(QUERY, "cart")])[0]
    assert ranker.score(QUERY, ["cart"])[0] == pytest.approx(logits[0] - logits[1], abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({}, r"model: expected positive_label .*, which has 2 labels \(LABEL_0, LABEL_1\), got none"),
        *[
            (
                {"positive_label": stated},
                "model: expected one of LABEL_0, LABEL_1 or a number under 2 as positive_label",
            )
            for stated in (2, "relevant", True)
        ],
    ],
)
def test_two_labels_without_a_positive_one_are_refused(tmp_path: Path, labels: dict[str, Any], reason: str) -> None:
    with pytest.raises(RankerError, match=reason):
        two_labels(tmp_path, **labels)


# Checkpoints that cannot score pairs


@pytest.mark.parametrize("model", [Path("no/folder"), "./no", "/no/folder", "no/such/folder", "nothing"])
def test_a_missing_folder_is_refused(model: str | Path) -> None:
    with pytest.raises(
        RankerError, match=r"expected a checkpoint folder or a hub id OWNER/NAME, got .*, which is no folder"
    ):
        find_folder(model)


def test_a_hub_id_that_cannot_be_had_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        RankerError,
        match=r"model: expected .*, got nobody/nothing, which is no folder here and could not be had from the hub",
    ):
        CrossEncoderRanker("nobody/nothing")


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def broken_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no tensors here")


def no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()


def no_padding(folder: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)


def no_head(folder: Path) -> None:
    edit_config(save(folder, transformers.DebertaV2Model(tiny_config())), architectures=None)


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda folder: (folder / "config.json").unlink(), r"expected a readable config\.json"),
    "another kind": (
        lambda folder: save(folder, transformers.DebertaV2Model(tiny_config())),
        "which is DebertaV2Model",
    ),
    "never trained": (no_head, r"got .*, which lacks 4 of its weights, classifier\.bias first"),
    "no weights": (no_weights, r"expected weights in .* \(model.safetensors or pytorch_model.bin\), got none"),
    "broken weights": (broken_weights, "expected .* to load as a sequence classifier, got "),
    "weights of another shape": (
        lambda folder: edit_config(folder, intermediate_size=48),
        "expected .* to load as a sequence classifier, got ",
    ),
    "no tokenizer": (no_tokenizer, r"expected a tokenizer in .* \(tokenizer\.json.*\), got none"),
    **{
        f"pairs {pair}": (
            lambda folder, pair=pair: make_tokenizer(pair).save_pretrained(folder),  # type: ignore[misc]
            "expected a tokenizer that",
        )
        for pair in (None, "[CLS] $A $B [SEP]", "[CLS] $B [SEP] $A [SEP]")
    },
    "no padding": (no_padding, "expected a padding token in the tokenizer of .*, got none"),
    "unknown order": (
        lambda folder: edit_config(folder, pair_order="sideways"),
        "pair_order: expected query-text or text-query .* 'sideways'",
    ),
    **{
        f"texts no longer made: {stated}": (
            lambda folder, stated=stated: edit_config(folder, **stated),  # type: ignore[misc]
            "model: expected a checkpoint trained on the published texts, .* again$",
        )
        for stated in ({"text_form": "placed"}, {"shared_words": True})
    },
}


@pytest.mark.parametrize(("spoil", "reason"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_checkpoint_that_cannot_score_pairs_is_refused(
    copy: Path, spoil: Callable[[Path], object], reason: str
) -> None:
    spoil(copy)
    with pytest.raises(RankerError, match=reason):
        CrossEncoderRanker(copy, device="cpu")


def test_nothing_is_trained_from_a_checkpoint_of_texts_that_are_no_longer_made(copy: Path) -> None:
    with pytest.raises(RankerError, match="model: expected a checkpoint trained on the published texts"):
        open_base(edit_config(copy, text_form="placed"))


def test_a_checkpoint_that_says_it_reads_the_published_texts_is_opened(copy: Path) -> None:
    edit_config(copy, text_form="plain", shared_words=False)
    assert CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart"]).shape == (1,)


# Pickled weights


def test_pickled_tensors_are_read(copy: Path, ranker: CrossEncoderRanker) -> None:
    from safetensors.torch import load_file

    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    texts = ["cart", "search flight"]
    assert CrossEncoderRanker(copy, device="cpu").score(QUERY, texts) == pytest.approx(
        ranker.score(QUERY, texts), abs=1e-5
    )


# Settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        *[
            (
                {"dtype": dtype},
                f"expected bfloat16 or float32 for .* of type deberta-v2, got {dtype}, in which it gives NaN",
            )
            for dtype in ("fp16", "float16")
        ],
        ({"dtype": "int3"}, "dtype: expected one of auto, .* got 'int3'"),
        ({"batch_tokens": 0}, "batch_tokens: expected a positive number, got 0"),
        ({"exact_top": 0}, "exact_top: expected a positive number, got 0"),
        ({"backend": "onnx"}, "backend: expected one of auto, packed, transformers, got 'onnx'"),
    ],
)
def test_an_unknown_setting_is_refused(folder: Path, settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(RankerError, match=reason):
        CrossEncoderRanker(folder, **settings)


@pytest.mark.skipif("torch.cuda.is_available()", reason="needs a machine without CUDA")
def test_cuda_where_there_is_none_is_refused(folder: Path) -> None:
    with pytest.raises(
        RankerError, match="device: expected one that torch sees here, got cuda:0, and it sees no CUDA device"
    ):
        CrossEncoderRanker(folder, device="cuda:0")


def test_scores_that_are_not_finite_are_an_error(copy: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "model.safetensors")
    weights["classifier.bias"].fill_(float("nan"))
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        RankerError,
        match=r"model: expected finite scores from .* in float32, got 3 of 3 that are not: try dtype float32 or bf",
    ):
        CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart", "button", "cart"])


# What identifies a ranker


def test_the_digest_is_that_of_weights_settings_and_tokenizer(copy: Path, ranker: CrossEncoderRanker) -> None:
    assert CrossEncoderRanker(copy, device="cpu").digest == ranker.digest
    (copy / "README.md").write_text("A card.")
    assert CrossEncoderRanker(copy, device="cpu").digest == ranker.digest
    edit_config(copy, pair_order="text-query")
    assert CrossEncoderRanker(copy, device="cpu").digest != ranker.digest


def test_the_name_is_the_model_as_given(folder: Path, ranker: CrossEncoderRanker) -> None:
    assert ranker.name == str(folder)


def test_importing_the_class_does_not_load_torch(repo: Path) -> None:
    code = "import sys; from ranker import CrossEncoderRanker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=repo, check=False).returncode == 0
