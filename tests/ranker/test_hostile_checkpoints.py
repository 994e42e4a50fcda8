"""Checkpoints made to run something, to be read elsewhere, to be huge, or to be nothing at all: each is one sentence."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AlbertConfig, AlbertForSequenceClassification

from ranker import CrossEncoderRanker, RankerError
from ranker.checkpoint import open_base, open_tokenizer
from ranker.training import PairGroup, TrainingSettings, train
from ranker.untrusted import MAX_SETTINGS_BYTES
from tests.pages import synthetic_rows, write_parquet
from tests.ranker.test_cross_encoder import QUERY, edit_config, make_checkpoint, save

OWN_CODE = r"to need no code of its own, which is never run, got auto_map in its {}$"

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


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_checkpoint(tmp_path_factory.mktemp("deberta"))


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint that a test may spoil."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def add_own_code(folder: Path) -> Path:
    """Puts code into a checkpoint; gives the folder that it makes where it runs."""
    trace = folder.parent / "ran"
    (folder / "own.py").write_text(OWN.format(trace=str(trace)))
    return trace


def edit(path: Path, **settings: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def refusal(folder: Path) -> str:
    """The sentence of a checkpoint that is refused."""
    with pytest.raises(RankerError) as caught:
        CrossEncoderRanker(folder, device="cpu")
    message = str(caught.value)
    assert message.isprintable(), message
    assert len(message) < 700, message
    return message


def command(tmp_path: Path, folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """`rank` as the shell runs it, with an answer to whatever it may ask."""
    data = tmp_path / "data" / "test_task-00000-of-00001.parquet"
    data.parent.mkdir()
    write_parquet(synthetic_rows(1, 1, 3, seed=1), data)
    words = [
        "rank",
        "--dataset",
        tmp_path,
        "--split",
        "cross_task",
        "--ranker",
        folder,
        "--out",
        tmp_path / "s.parquet",
    ]
    return subprocess.run(
        [sys.executable, "-m", "seeact_offline.cli", *map(str, words)],
        input=answer,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"},
    )


# Code of its own


def test_every_checkpoint_is_opened_without_code_of_its_own(repo: Path) -> None:
    """For code to come as well: whoever opens a model, config, tokenizer or processor says so."""
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


def test_code_in_a_checkpoint_is_neither_offered_nor_run(copy: Path, tmp_path: Path) -> None:
    """transformers asked whether to run it, and ran it after y."""
    trace = add_own_code(copy)
    auto_map = {"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.Model"}
    edit_config(copy, model_type="never-heard-of", auto_map=auto_map)
    done = command(tmp_path, copy, "y\ny\ny\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == f"error: --ranker: expected {copy} to need no code of its own, which is never run, got auto_map in its config.json\n"
    )
    assert not trace.exists()


def test_a_tokenizer_class_that_is_a_model_is_refused(copy: Path, tmp_path: Path) -> None:
    """transformers opened whatever class had that name, and asked again whether to run the code for it."""
    trace = add_own_code(copy)
    edit_config(copy, auto_map={"AutoModelForCausalLM": "own.Model"})
    edit(copy / "tokenizer_config.json", tokenizer_class="AutoModelForCausalLM")
    done = command(tmp_path, copy, "y\ny\ny\n")
    assert not trace.exists()
    assert done.returncode == 2
    assert "expected a tokenizer of transformers as tokenizer_class" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["AutoModel", "AutoTokenizer", "AutoModelFast", "pipeline", "RagTokenizer"])
def test_only_tokenizers_are_opened_as_such(copy: Path, name: str) -> None:
    edit(copy / "tokenizer_config.json", tokenizer_class=name)
    assert f"as tokenizer_class of {copy}, got '{name}'" in refusal(copy)


def test_a_tokenizer_class_of_the_config_is_checked_too(copy: Path) -> None:
    edit(copy / "tokenizer_config.json", tokenizer_class=None)
    assert "got 'AutoModel'" in refusal(edit_config(copy, tokenizer_class="AutoModel"))


def test_a_known_kind_with_an_auto_map_is_loaded_by_transformers_own_class(copy: Path) -> None:
    trace = add_own_code(copy)
    edit_config(copy, auto_map={"AutoConfig": "own.Config", "AutoModelForSequenceClassification": "own.Model"})
    ranker = CrossEncoderRanker(copy, device="cpu")
    assert ranker.score(QUERY, ["cart"]).shape == (1,)
    assert not trace.exists()


def test_a_known_tokenizer_with_an_auto_map_is_transformers_own(copy: Path) -> None:
    trace = add_own_code(copy)
    edit(copy / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "own.OwnTokens"]})
    assert CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart"]).shape == (1,)
    assert not trace.exists()


def test_a_tokenizer_that_wants_code_of_its_own_is_refused(copy: Path) -> None:
    """Without a config.json there is no kind to tell which tokenizer it could be instead."""
    trace = add_own_code(copy)
    (copy / "config.json").write_text("{}")
    edit(
        copy / "tokenizer_config.json", auto_map={"AutoTokenizer": [None, "own.OwnTokens"]}, tokenizer_class="OwnTokens"
    )
    with pytest.raises(RankerError, match=OWN_CODE.format(r"tokenizer_config\.json")):
        open_tokenizer(str(copy))
    assert not trace.exists()


def test_a_base_that_wants_code_of_its_own_is_refused_by_training(copy: Path, tmp_path: Path) -> None:
    trace = add_own_code(copy)
    edit_config(copy, model_type="never-heard-of", auto_map={"AutoConfig": "own.Config"})
    groups = [PairGroup("find amber", ("a amber",), ("div cart",))]
    with pytest.raises(RankerError, match="^base: expected .* " + OWN_CODE.format(r"config\.json")):
        train(groups, tmp_path / "out", TrainingSettings(), base=copy)
    assert not trace.exists()


def test_pickled_weights_of_a_base_that_would_run_something_are_refused(copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    (copy / "pytorch_model.bin").write_bytes(b"cos\nmkdir\n(V" + str(copy / "ran").encode() + b"\ntR.")
    with pytest.raises(RankerError, match=r"expected .* to load as a sequence classifier, got "):
        open_base(copy)
    assert not (copy / "ran").exists()


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation", "experts_implementation"])
@pytest.mark.parametrize("value", ["kernels-community/flash-attn2", "flash_attention_2", {"": "owner/kernel"}])
def test_a_forward_pass_that_comes_from_the_hub_is_refused(copy: Path, key: str, value: object) -> None:
    assert f"expected {key} to be eager or sdpa" in refusal(edit_config(copy, **{key: value}))


def test_a_forward_pass_from_the_hub_is_refused_deeper_down(copy: Path) -> None:
    assert "eager or sdpa" in refusal(edit_config(copy, text_config={"attn_implementation": "owner/kernel"}))


def test_quantized_weights_are_refused(copy: Path) -> None:
    assert "that are not quantized, got a quantization_config" in refusal(
        edit_config(copy, quantization_config={"quant_method": "mxfp4"})
    )


# Files elsewhere


@pytest.mark.parametrize(
    ("key", "value"),
    [("transformers_weights", "other.safetensors"), ("configuration_files", ["config.4.0.0.json"])],
)
def test_a_config_that_names_other_files_is_refused(copy: Path, key: str, value: object) -> None:
    """The digest would not cover them, and no check would see them."""
    shutil.copy(copy / "model.safetensors", copy / "other.safetensors")
    shutil.copy(copy / "config.json", copy / "config.4.0.0.json")
    sentence = (
        f"model: expected the config.json of {copy} to name no other files to load, which are never read, got {key}"
    )
    assert refusal(edit_config(copy, **{key: value})) == sentence


@pytest.mark.parametrize("elsewhere", ["../elsewhere.safetensors", "other.safetensors", "elsewhere.bin"])
def test_an_index_that_leads_elsewhere_is_refused(copy: Path, elsewhere: str) -> None:
    weights = copy / "model.safetensors"
    names = list(load_file(weights))
    weights.rename(copy / elsewhere)
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, elsewhere)}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert f"expected model.safetensors.index.json of {copy} to name files beside it, got '{elsewhere}'" in refusal(
        copy
    )


@pytest.mark.parametrize("content", ["[]", "{", "", '{"weight_map": {"a": 5}}', "[" * 100_000])
def test_a_malformed_index_is_refused(copy: Path, content: str) -> None:
    (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
    (copy / "model.safetensors.index.json").write_text(content)
    assert "model.safetensors.index.json of" in refusal(copy)


def test_weights_in_several_files_are_read(copy: Path) -> None:
    expected = CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart"])
    weights = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    places = {name: f"model-0000{1 + place % 2}-of-00002.safetensors" for place, name in enumerate(weights)}
    for file in sorted(set(places.values())):
        save_file({name: weights[name] for name in weights if places[name] == file}, copy / file, {"format": "pt"})
    (copy / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
    assert CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart"]) == pytest.approx(expected, abs=1e-5)


def test_weights_that_transformers_would_take_instead_are_refused(copy: Path) -> None:
    """Files of that name went before model.safetensors, and the digest does not cover them."""
    name = "shard-00000-model-00001-of-00001.safetensors"
    shutil.copy(copy / "model.safetensors", copy / name)
    assert f"expected weights of {copy} in model.safetensors alone, got {name} beside it" in refusal(copy)


def test_an_adapter_is_refused(copy: Path) -> None:
    """Where peft is installed, it would be loaded on top."""
    (copy / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    assert "got adapter_config.json beside it" in refusal(copy)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("fast_tokenizer_files", ["../tokenizer.4.0.0.json"]),
        ("gguf_file", "../x.gguf"),
        ("init_inputs", ["../vocab.txt"]),
        ("vocab", "../vocab.json"),
        ("merges", "../merges.txt"),
    ],
)
def test_a_tokenizer_that_names_other_files_is_refused(copy: Path, key: str, value: object) -> None:
    edit(copy / "tokenizer_config.json", **{key: value})
    assert refusal(copy) == (
        f"model: expected the tokenizer_config.json of {copy} to name no other files to load, which are never read, got {key}"
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.timeout(30)
def test_a_pipe_is_not_waited_for(copy: Path) -> None:
    (copy / "config.json").unlink()
    os.mkfifo(copy / "config.json")
    assert "expected a readable config.json" in refusal(copy)


# Malformed


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
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_malformed_settings_are_refused(copy: Path, name: str, content: bytes) -> None:
    (copy / name).write_bytes(content)
    message = refusal(copy)
    assert message.startswith("model: ")
    assert name in message


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_tokenizer_is_refused(copy: Path, content: bytes) -> None:
    (copy / "tokenizer.json").write_bytes(content)
    assert "the tokenizer of" in refusal(copy)


@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
def test_files_that_are_cut_off_are_refused(copy: Path, name: str) -> None:
    (copy / name).write_bytes((copy / name).read_bytes()[:-40])
    assert f"{copy} to load" in refusal(copy)


WRONG: list[dict[str, Any]] = [
    {"architectures": 5},
    {"architectures": "DebertaV2ForSequenceClassification"},
    {"architectures": [1, 2]},
    {"id2label": []},
    {"id2label": {}},
    {"id2label": {"a": "b"}},
    {"id2label": {"0": ["x"]}},
    {"hidden_size": "32"},
    {"hidden_size": -32},
    {"hidden_size": 0},
    {"hidden_size": 32.5},
    {"num_attention_heads": 0},
    {"num_attention_heads": 3},
    {"model_type": 5},
    {"model_type": "never-heard-of"},
    {"model_type": "bert\x1b[2J\x00"},
    {"max_position_embeddings": "64"},
    {"max_position_embeddings": 5},
    {"type_vocab_size": "x"},
    {"pair_order": 5},
    {"text_form": 5},
    {"shared_words": "yes"},
    {"auto_map": 5},
    {"num_labels": -1, "id2label": None},
    {"hidden_act": "\x1b[2J"},
    {"pooler_hidden_act": "never-heard-of"},
    {"layer_norm_eps": "x"},
    {"attribute_map": 5},
    {"get_text_config": 5},
]


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_a_malformed_setting_is_refused(copy: Path, settings: dict[str, Any]) -> None:
    edit_config(copy, **settings)
    with pytest.raises(RankerError):
        CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart"])


NASTY: list[Any] = [None, 5, -1, 0, 1.5, True, "x", "", [], [5], {}, {"a": "b"}, 10**12, "\x00", ["x"]]


def test_every_setting_spoiled_in_every_way_loads_or_is_refused(copy: Path) -> None:
    good = json.loads((copy / "config.json").read_text())
    messages = []
    for key in good:
        for value in NASTY:
            (copy / "config.json").write_text(json.dumps(good | {key: value}))
            try:
                CrossEncoderRanker(copy, device="cpu").score(QUERY, ["cart"])
            except RankerError as error:
                messages.append(str(error))
    assert len(messages) > len(good)
    assert [message for message in messages if not message.isprintable()] == []


@pytest.mark.parametrize("dtype", ["nonsense", "\x00"])
def test_a_dtype_that_torch_does_not_know_is_refused(copy: Path, dtype: str) -> None:
    """The model is given one, but the tokenizer reads the config once more."""
    assert "the tokenizer of" in refusal(edit_config(copy, dtype=dtype))


@pytest.mark.parametrize("stated", [{"a": 1}, [], 1.5, "\x1b[2J", "x" * 10_000])
def test_a_malformed_positive_label_is_refused(tmp_path: Path, stated: object) -> None:
    folder = edit_config(make_checkpoint(tmp_path / "two", num_labels=2), positive_label=stated)
    expected = (
        f"model: expected one of LABEL_0, LABEL_1 or a number under 2 as positive_label in the config.json of {folder}"
    )
    assert refusal(folder).startswith(f"{expected}, got ")


def test_labels_may_be_numbers(copy: Path) -> None:
    assert CrossEncoderRanker(edit_config(copy, id2label={"0": 5}), device="cpu").score(QUERY, ["cart"]).shape == (1,)


def test_labels_that_leave_out_a_number_are_refused(tmp_path: Path) -> None:
    folder = make_checkpoint(tmp_path / "two", num_labels=2)
    edit_config(folder, id2label={"5": "no", "7": "yes"}, label2id=None)
    assert "expected id2label to number its labels from 0" in refusal(folder)


@pytest.mark.parametrize("length", [0, -5, "x", {}, float("nan")])
def test_a_tokenizer_of_no_length_is_refused(copy: Path, length: object) -> None:
    edit(copy / "tokenizer_config.json", model_max_length=length)
    assert "model_max_length" in refusal(copy)


def test_a_tokenizer_of_more_tokens_than_the_model_has_is_refused(copy: Path) -> None:
    """A text with one of them ended in a traceback, or in a CUDA device that was of no more use."""
    edit(copy / "tokenizer_config.json", extra_special_tokens=["<new>"])
    assert "expected a tokenizer of at most 19 tokens" in refusal(copy)


def test_a_tokenizer_that_panics_is_refused(copy: Path) -> None:
    """What the tokenizers library raises then is no Exception."""
    path = copy / "tokenizer.json"
    settings = json.loads(path.read_text())
    settings["post_processor"]["special_tokens"] = {}
    path.write_text(json.dumps(settings))
    assert "the tokenizer of" in refusal(copy)


def test_what_a_checkpoint_says_is_shown_without_what_a_terminal_obeys(copy: Path) -> None:
    assert r"is \x1b[2J\x00\nX" in refusal(edit_config(copy, architectures=["\x1b[2J\x00\nX"]))


# Huge


HUGE: list[dict[str, Any]] = [
    {"num_hidden_layers": 10_000_000},
    {"num_hidden_layers": 4096},
    {"vocab_size": 10**12},
    {"vocab_size": 10**9},
    {"hidden_size": 10**9},
    {"hidden_size": 40_000},
    {"intermediate_size": 10**8},
    {"num_labels": 10**7, "id2label": None},
    {"max_position_embeddings": 10**10},
    {"max_position_embeddings": 10**9},
    {"text_config": {"n_layer": 10**7}},
    {"block_sizes": [4, 10**7]},
    {"id2label": {str(place): "label" for place in range(20_000)}},
]


@pytest.mark.parametrize("settings", HUGE, ids=lambda settings: str(settings)[:60])
def test_a_model_too_large_for_its_weights_is_refused_before_it_is_built(copy: Path, settings: dict[str, Any]) -> None:
    edit_config(copy, **settings)
    started = time.monotonic()
    refusal(copy)
    # A tenth of a second on a quick machine; it took minutes, or all of the memory.
    assert time.monotonic() - started < 5


def test_a_config_of_many_bytes_is_refused_unread(copy: Path) -> None:
    (copy / "config.json").write_bytes(b" " * (MAX_SETTINGS_BYTES + 1))
    assert "expected at most 4,194,304 bytes, found 4,194,305" in refusal(copy)


def test_a_base_too_large_for_its_weights_is_refused(copy: Path) -> None:
    """Weights of another shape are made anew there, so that nothing else would stop it."""
    with pytest.raises(RankerError, match="to ask for no larger model than its weights can fill, got more than"):
        open_base(edit_config(copy, vocab_size=10**9))


def test_parts_are_counted_whatever_asks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ranker.untrusted.MAX_MODULES", 500)
    shape = {"embedding_size": 8, "hidden_size": 8, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 19}
    folder = save(tmp_path / "albert", AlbertForSequenceClassification(AlbertConfig(**shape, num_labels=1)))
    assert "to ask for a model of at most 500 parts, got more" in refusal(edit_config(folder, inner_group_num=10**7))
