"""Checkpoints made to run something, to be read elsewhere, to be huge, or to be nothing at all: each is one sentence."""

from __future__ import annotations

import ast
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranker import CrossEncoderRanker, RankerError
from ranker.checkpoint import open_base, open_tokenizer
from ranker.untrusted import MAX_SETTINGS_BYTES
from tests.lazily import safetensors_torch, torch, transformers
from tests.ranker.test_cross_encoder import QUERY, edit_config, make_checkpoint, save

OWN_CODE = {"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.Model"}

OWN = """
from pathlib import Path
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
Path(__file__).exists() and Path({trace!r}).mkdir(exist_ok=True)
class Config(BertConfig):
    model_type = "never-heard-of"
class Model(BertForSequenceClassification):
    config_class = Config
class OwnTokens(PreTrainedTokenizerFast):
    pass
"""
"""A module that leaves a folder behind where it is imported."""


@pytest.fixture
def trace(copy: Path) -> Path:
    """The folder that the checkpoint's own code makes where it runs."""
    made = copy.parent / "ran"
    (copy / "own.py").write_text(OWN.format(trace=str(made)))
    return made


def edit(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def refusal(folder: Path, open_it: Callable[[Path], object] | None = None) -> str:
    """The sentence of a checkpoint that is refused."""
    with pytest.raises(RankerError) as caught:
        (open_it or (lambda path: CrossEncoderRanker(path, device="cpu").score(QUERY, ["cart"])))(folder)
    message = str(caught.value)
    assert message.isprintable(), message
    assert len(message) < 700, message
    return message


def score(folder: Path) -> float:
    return float(CrossEncoderRanker(folder, device="cpu").score(QUERY, ["cart"])[0])


# Code of its own


@pytest.mark.slow
def test_every_checkpoint_is_opened_without_code_of_its_own(repo: Path) -> None:
    """Holds for code to come as well: each call that opens a model, config, tokenizer or processor says so."""
    careless = []
    for path in [file for top in ("seeact_offline", "ranker", "scripts") for file in (repo / top).rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("from_pretrained", "from_config"):
                continue
            told = {word.arg: word.value for word in node.keywords}.get("trust_remote_code")
            if not isinstance(told, ast.Constant) or told.value is not False:
                careless.append(f"{path.relative_to(repo)}:{node.lineno}")
    assert careless == []


def no_questions(prompt: str = "") -> str:
    raise AssertionError(f"asked {prompt!r}")


@pytest.mark.parametrize(
    ("config", "tokenizer", "reason"),
    [
        ({"model_type": "never-heard-of", "auto_map": OWN_CODE}, {}, "got 'never-heard-of'"),
        (
            {"auto_map": {"AutoModelForCausalLM": "own.Model"}},
            {"tokenizer_class": "AutoModelForCausalLM"},
            "a tokenizer of transformers as tokenizer_class",
        ),
    ],
)
def test_code_in_a_checkpoint_is_neither_offered_nor_run(
    copy: Path, trace: Path, monkeypatch: pytest.MonkeyPatch, config: dict[str, Any], tokenizer: Any, reason: str
) -> None:
    """transformers asked whether to run it, and ran it after y."""
    monkeypatch.setattr("builtins.input", no_questions)
    edit_config(copy, **config)
    edit(copy / "tokenizer_config.json", **tokenizer)
    assert reason in refusal(copy)
    assert not trace.exists()


def test_a_known_kind_with_code_of_its_own_is_opened_by_transformers_classes(copy: Path, trace: Path) -> None:
    expected = score(copy)
    edit_config(copy, auto_map=OWN_CODE)
    edit(copy / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "own.OwnTokens"]})
    assert score(copy) == expected
    assert not trace.exists()


def test_a_tokenizer_that_wants_code_of_its_own_is_refused(copy: Path, trace: Path) -> None:
    """Without a config.json there is no kind to tell which tokenizer it could be instead."""
    (copy / "config.json").write_text("{}")
    edit(
        copy / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "own.OwnTokens"]}, tokenizer_class="OwnTokens"
    )
    assert "the tokenizer of" in refusal(copy, lambda path: open_tokenizer(path))
    assert not trace.exists()


def test_a_base_that_wants_code_of_its_own_is_refused(copy: Path, trace: Path) -> None:
    edit_config(copy, model_type="never-heard-of", auto_map=OWN_CODE)
    assert refusal(copy, open_base).startswith("model: expected ")
    assert not trace.exists()


class Hostile:
    """Unpickled without care, it makes a folder."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("open_it", [None, open_base], ids=["ranker", "base"])
@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_pickled_weights_that_would_run_something_are_refused(copy: Path, kind: str, open_it: Any) -> None:
    (copy / "model.safetensors").unlink()
    torch.save(
        {"classifier.bias": Hostile(copy / "ran")},
        copy / "pytorch_model.bin",
        pickle_module=pickle,
        _use_new_zipfile_serialization=kind == "zip",
    )
    assert "to load as a sequence classifier, got " in refusal(copy, open_it)
    assert not (copy / "ran").exists()


# Settings of config.json

ELSEWHERE: list[tuple[dict[str, Any], str]] = [
    *[
        ({key: value}, f"got {key} ")
        for key in ("attn_implementation", "_attn_implementation", "experts_implementation")
        for value in ("kernels-community/flash-attn2", "flash_attention_2", {"": "owner/kernel"})
    ],
    ({"text_config": {"attn_implementation": "owner/kernel"}}, "got attn_implementation 'owner/kernel'"),
    ({"text_config": {"n_layer": 10**7}}, "got n_layer of"),
    ({"quantization_config": {"quant_method": "mxfp4"}}, "got quantization_config "),
    ({"fusion_config": {"a": 1}}, "got fusion_config "),
]
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"architectures": 5}, "well-formed config.json"),
    ({"architectures": "DebertaV2ForSequenceClassification"}, "well-formed config.json"),
    ({"architectures": [1, 2]}, "well-formed config.json"),
    ({"architectures": ["\x1b[2J\x00\nX"]}, r"is \x1b[2J\x00\nX"),
    ({"id2label": []}, "well-formed config.json"),
    ({"id2label": {}}, "well-formed config.json"),
    ({"id2label": {"a": "b"}}, "well-formed config.json"),
    ({"id2label": {"0": ["x"]}}, "well-formed config.json"),
    ({"hidden_size": "32"}, "config.json"),
    ({"hidden_size": -32}, ""),
    ({"hidden_size": 0}, ""),
    ({"hidden_size": 32.5}, ""),
    ({"num_attention_heads": 0}, ""),
    ({"num_attention_heads": 3}, ""),
    ({"model_type": 5}, "well-formed config.json"),
    ({"model_type": None}, "transformers' name of a sequence classifier as model_type"),
    ({"model_type": "bert\x1b[2J\x00"}, r"got 'bert\x1b[2J\x00'"),
    ({"model_type": "never-heard-of"}, "got 'never-heard-of'"),
    ({"max_position_embeddings": "64"}, ""),
    ({"max_position_embeddings": 5}, ""),
    ({"type_vocab_size": "x"}, ""),
    ({"pair_order": 5}, "well-formed config.json"),
    ({"text_form": 5}, "well-formed config.json"),
    ({"shared_words": "yes"}, "well-formed config.json"),
    ({"num_labels": -1, "id2label": None}, "well-formed config.json"),
    ({"hidden_act": "\x1b[2J"}, ""),
    ({"pooler_hidden_act": "never-heard-of"}, ""),
    ({"layer_norm_eps": "x"}, ""),
    ({"attribute_map": 5}, ""),
    ({"get_text_config": 5}, ""),
    ({"dtype": "nonsense"}, ""),
    ({"dtype": "\x00"}, ""),
    ({"tokenizer_class": 5}, "a name as tokenizer_class"),
    ({"tokenizer_class": "AutoModel"}, "got 'AutoModel'"),
]
HUGE: list[tuple[dict[str, Any], str]] = [
    ({"num_hidden_layers": 10_000_000}, "got num_hidden_layers of 10000000, more than 4,096"),
    ({"num_hidden_layers": 4096}, "a model of at most 5,000 parts, got more"),
    ({"vocab_size": 10**12}, "more than 1,073,741,824"),
    ({"vocab_size": 10**9}, "no larger model than its weights can fill, got "),
    ({"hidden_size": 10**9}, ""),
    ({"hidden_size": 40_000}, "no larger model than its weights can fill, got "),
    ({"intermediate_size": 10**8}, "no larger model than its weights can fill, got "),
    ({"num_labels": 10**7, "id2label": None}, "well-formed config.json"),
    ({"max_position_embeddings": 10**10}, "more than 1,073,741,824"),
    ({"max_position_embeddings": 10**9}, ""),
    ({"block_sizes": [4, 10**7]}, "got block_sizes of 10000000"),
    ({"id2label": {str(place): "label" for place in range(20_000)}}, "well-formed config.json"),
]


@pytest.mark.parametrize(
    ("settings", "reason"), [*ELSEWHERE, *WRONG, *HUGE], ids=lambda value: str(value)[:60].encode("ascii", "replace")
)
def test_a_hostile_or_malformed_setting_is_refused(copy: Path, settings: dict[str, Any], reason: str) -> None:
    """The huge ones before a model is built: it took minutes, or all of the memory."""
    assert reason in refusal(edit_config(copy, **settings))


@pytest.mark.parametrize(
    ("key", "value"), [("transformers_weights", "other.safetensors"), ("configuration_files", ["config.4.0.0.json"])]
)
def test_other_files_that_a_config_names_are_not_read(copy: Path, key: str, value: object) -> None:
    """The digest does not cover them."""
    expected = score(copy)
    weights = safetensors_torch.load_file(copy / "model.safetensors")
    safetensors_torch.save_file(
        {name: tensor + 1 for name, tensor in weights.items()}, copy / "other.safetensors", {"format": "pt"}
    )
    shutil.copy(copy / "config.json", copy / "config.4.0.0.json")
    edit(copy / "config.4.0.0.json", hidden_act="relu")
    assert score(edit_config(copy, **{key: value})) == expected


NASTY: list[Any] = [None, 5, -1, 0, 1.5, True, "x", "", [], [5], {}, {"a": "b"}, 10**12, "\x00", ["x"]]


@pytest.mark.slow
def test_settings_spoiled_in_any_way_load_or_are_refused(copy: Path) -> None:
    """Each in three ways; all fifteen are met."""
    good = json.loads((copy / "config.json").read_text())
    messages = []
    for place, key in enumerate(good):
        for value in NASTY[place % 5 :: 5]:
            (copy / "config.json").write_text(json.dumps(good | {key: value}))
            try:
                score(copy)
            except RankerError as error:
                messages.append(str(error))
    assert len(messages) > len(good)
    assert [message for message in messages if not message.isprintable()] == []


@pytest.mark.parametrize("stated", [{"a": 1}, [], 1.5, "\x1b[2J", "x" * 10_000], ids=lambda stated: repr(stated)[:9])
def test_a_malformed_positive_label_is_refused(tmp_path: Path, stated: object) -> None:
    folder = edit_config(make_checkpoint(tmp_path / "two", num_labels=2), positive_label=stated)
    expected = (
        f"model: expected one of LABEL_0, LABEL_1 or a number under 2 as positive_label in the config.json of {folder}"
    )
    assert refusal(folder).startswith(f"{expected}, got ")


def test_labels_may_be_numbers(copy: Path) -> None:
    expected = score(copy)
    assert score(edit_config(copy, id2label={"0": 5})) == expected


def test_labels_that_leave_out_a_number_are_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "two", num_labels=2)
    edit_config(folder, id2label={"5": "no", "7": "yes"}, label2id=None)
    assert "expected id2label to number its labels from 0" in refusal(folder)


def test_a_base_too_large_for_its_weights_is_refused(copy: Path) -> None:
    """Weights of another shape are made anew there, so that nothing else would stop it."""
    message = refusal(edit_config(copy, vocab_size=10**9), open_base)
    assert "to ask for no larger model than its weights can fill, got " in message


def test_parts_are_counted_whatever_setting_asks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranker.untrusted.MAX_MODULES", 500)
    shape = {"embedding_size": 8, "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 19}
    folder = save(
        tmp_path / "albert",
        transformers.AlbertForSequenceClassification(transformers.AlbertConfig(**shape, num_labels=1)),
    )
    assert "to ask for a model of at most 500 parts, got more" in refusal(edit_config(folder, inner_group_num=10**7))


# Weights


def test_weights_in_several_files_are_read(copy: Path) -> None:
    expected, weights = score(copy), safetensors_torch.load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + place % 2}-of-00002.safetensors" for place, name in enumerate(weights)}
    for file in sorted(set(places.values())):
        safetensors_torch.save_file(
            {name: weights[name] for name in weights if places[name] == file}, copy / file, {"format": "pt"}
        )
    (copy / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert score(copy) == pytest.approx(expected, abs=1e-5)
    shutil.copy(copy / "model-00001-of-00002.safetensors", copy / "model-00001-of-00003.safetensors")
    assert "each weight of" in refusal(copy)


@pytest.mark.parametrize("elsewhere", ["../elsewhere.safetensors", "other.safetensors", "elsewhere.bin"])
def test_an_index_leads_nowhere_else(copy: Path, elsewhere: str) -> None:
    weights = copy / "model.safetensors"
    index = {"metadata": {}, "weight_map": dict.fromkeys(safetensors_torch.load_file(weights), elsewhere)}
    weights.rename(copy / elsewhere)
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "expected weights in " in refusal(copy)


@pytest.mark.parametrize("name", ["shard-00000-model-00001-of-00001.safetensors", "model.other.safetensors"])
def test_weights_of_other_names_are_not_read(copy: Path, name: str) -> None:
    """transformers took the first before model.safetensors."""
    expected, weights = score(copy), safetensors_torch.load_file(copy / "model.safetensors")
    safetensors_torch.save_file({key: tensor + 1 for key, tensor in weights.items()}, copy / name, {"format": "pt"})
    assert score(copy) == expected


def test_an_adapter_is_not_read(copy: Path) -> None:
    """Where peft is installed, it would be loaded on top."""
    expected = score(copy)
    (copy / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "owner/other"}')
    assert score(copy) == expected


@pytest.mark.parametrize(
    "content", [lambda: [1], lambda: {"a": 5}, lambda: torch.ones(2)], ids=["list", "number", "tensor"]
)
def test_a_pickle_without_tensors_by_name_is_refused(copy: Path, content: Callable[[], object]) -> None:
    (copy / "model.safetensors").unlink()
    torch.save(content(), copy / "pytorch_model.bin")
    assert "expected tensors by name in pytorch_model.bin of" in refusal(copy)


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_files_that_are_cut_off_are_refused(copy: Path, name: str) -> None:
    (copy / name).write_bytes((copy / name).read_bytes()[:-40])
    assert f"{copy} to load" in refusal(copy)


# Files that are nothing at all, and tokenizers


MALFORMED = {
    "empty": b"",
    "a list": b"[]",
    "a number": b"5",
    "null": b"null",
    "cut off": b'{"architectures": [',
    "no UTF-8": b'{"a": "\xff\xfe"}',
    "NUL": b"\x00\x00\x00",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a number of 5,000 digits": b'{"hidden_size": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_malformed_settings_are_refused(copy: Path, name: str, content: bytes) -> None:
    (copy / name).write_bytes(content)
    assert ("the tokenizer of" if name == "tokenizer.json" else name) in refusal(copy)


def test_a_config_nested_as_deep_as_can_be_parsed_is_refused(copy: Path) -> None:
    (copy / "config.json").write_bytes(b'{"a":' * 5_000 + b"1" + b"}" * 5_000)
    assert "config.json" in refusal(copy)


def test_a_config_of_many_bytes_is_refused_unread(copy: Path) -> None:
    (copy / "config.json").write_bytes(b" " * (MAX_SETTINGS_BYTES + 1))
    assert "expected at most 4,194,304 bytes, found 4,194,305" in refusal(copy)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.timeout(30)
def test_a_pipe_is_not_waited_for(copy: Path) -> None:
    (copy / "config.json").unlink()
    os.mkfifo(copy / "config.json")
    assert "expected a readable config.json" in refusal(copy)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        *[
            ({"tokenizer_class": name}, f"got '{name}'")
            for name in ("AutoModel", "AutoTokenizer", "AutoModelFast", "pipeline", "RagTokenizer")
        ],
        *[
            ({key: value}, f"to name no other files to load, which are never read, got {key}")
            for key, value in (
                ("fast_tokenizer_files", ["../tokenizer.4.0.0.json"]),
                ("gguf_file", "../x.gguf"),
                ("init_inputs", ["../vocab.txt"]),
                ("vocab", "../vocab.json"),
                ("merges", "../merges.txt"),
            )
        ],
        *[({"model_max_length": length}, "model_max_length") for length in (0, -5, float("nan"))],
        *[({"model_max_length": length}, "") for length in ("x", {})],
        ({"extra_special_tokens": ["<new>"]}, "expected a tokenizer of at most 19 tokens"),
    ],
    ids=str,
)
def test_a_hostile_tokenizer_setting_is_refused(copy: Path, settings: dict[str, Any], reason: str) -> None:
    edit(copy / "tokenizer_config.json", **settings)
    assert reason in refusal(copy)


def test_a_tokenizer_that_panics_is_refused(copy: Path) -> None:
    """What the tokenizers library raises then is no Exception."""
    path = copy / "tokenizer.json"
    settings = json.loads(path.read_text())
    settings["post_processor"]["special_tokens"] = {}
    path.write_text(json.dumps(settings))
    assert "the tokenizer of" in refusal(copy)
