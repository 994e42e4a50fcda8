"""Input that cannot be used: status 2 and one sentence that names the argument and says what was found."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seeact_offline.ranking import write_scores
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, contents, make_sample, read_json, score_rows

OTHER_ROWS = list(synthetic_rows(1, 2, 5, seed=99))
PACK = {
    "choice.system.txt": "You act.",
    "choice.turn1.txt": "Task: {{task}}\n{{history}}",
    "choice.turn2.txt": "{{choices}}{{none_label}}. none of these",
}


def write_pack(folder: Path, **changes: str | None) -> Path:
    """A prompt pack with turns changed, or left out."""
    folder.mkdir()
    for turn in ("system", "turn1", "turn2"):
        text = changes.get(turn, PACK[f"choice.{turn}.txt"])
        if text is not None:
            (folder / f"choice.{turn}.txt").write_text(text)
    return folder


# --- options alone ---------------------------------------------------------------------------------------------------

OPTIONS = {
    "unknown protocol": (["--protocol", "olympic"], ["--protocol", "seeact, mindact", "olympic"]),
    "max-cost without price": (["--max-cost", "5"], ["--max-cost", "price"]),
    "unknown provider": (["--model", "acme/x"], ["--model", "openai, replay, builtin", "acme/x"]),
    "no provider": (["--model", "gpt-4o"], ["--model", "PROVIDER/NAME", "gpt-4o"]),
    "no name": (["--model", "openai/"], ["--model", "openai/"]),
    "unknown builtin": (["--model", "builtin/genius"], ["--model", "builtin/lexical", "builtin/genius"]),
    "no API key": (["--model", "openai/gpt-4o"], ["--model", "OPENAI_API_KEY"]),
    "no recording": (["--model", "replay/absent.jsonl"], ["cannot read", "absent.jsonl"]),
    "no URL": (["--model", "openai/x", "--base-url", "localhost:8000"], ["--base-url", "localhost:8000"]),
    "half a URL": (["--model", "openai/x", "--base-url", "http://[bad"], ["--base-url", "http://[bad"]),
    "unknown pack": (["--prompts", "haiku"], ["--prompts", "seeact", "haiku"]),
    "unknown split": (["--split", "cross_planet"], ["--split", "cross_website", "cross_planet"]),
    "split that is not there": (["--split", "cross_domain"], ["--split", "cross_domain", "cross_task"]),
    "no such data": (["--dataset", "nowhere"], ["--dataset", "nowhere"]),
    "data of another kind": (["--dataset", __file__], ["--dataset", ".parquet", "test_bad_input.py"]),
    "no such scores": (["--scores", "absent.pkl"], ["--scores", "absent.pkl"]),
    "no such config": (["--config", "absent.yaml"], ["--config", "absent.yaml"]),
    "top-k of none": (["--top-k", "0"], ["--top-k", "at least 1", "0"]),
    "top-k in words": (["--top-k", "many"], ["--top-k", "whole number", "many"]),
    "no concurrency": (["--concurrency", "-3"], ["--concurrency", "at least 1", "-3"]),
    "unknown grounding": (["--grounding", "taste"], ["--grounding", "choice", "taste"]),
    "unknown merge rule": (["--merge", "coin"], ["--merge", "final-round", "coin"]),
    "one price": (["--price", "2.5"], ["--price", "IN,OUT", "2.5"]),
    "price in words": (["--price", "a,b"], ["--price", "IN,OUT", "a,b"]),
    "price that is no number": (["--price", "nan,1"], ["--price", "IN,OUT", "nan,1"]),
    "negative temperature": (["--temperature", "-1"], ["--temperature", "at least 0", "-1"]),
    "percent for a share": (["--fail-on-error", "30"], ["--fail-on-error", "0 to 1", "30"]),
    "model argument without a value": (["-M", "temperature"], ["--model-arg", "NAME=VALUE", "temperature"]),
    "unknown option": (["--colour", "red"], ["--colour", "--help"]),
    "abbreviated option": (["--conf", "x.yaml"], ["--conf", "--config"]),
}


@pytest.mark.parametrize(("words", "named"), OPTIONS.values(), ids=OPTIONS.keys())
def test_an_option_that_cannot_be_used_is_named_and_no_folder_claimed(
    cli: Cli, sample: Sample, tmp_path: Path, words: list[str], named: list[str]
) -> None:
    """A mistyped model once left a manifest, and the corrected command was then refused."""
    error = cli("eval", *sample.words, "--out", tmp_path / "run", *words).error
    assert [name for name in named if name not in error] == []
    assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--ungrounded --grounding pixel", "--ungrounded cannot be combined with --grounding pixel"),
        ("--grounding annotation --mark-turn1 --batching shared-turn1", "--mark-turn1 needs --batching per-group"),
        ("--step x --retry-failed", "use --step or --retry-failed, not both"),
        ("--sample 2 --limit 3", "use --sample or --limit, not both"),
    ],
)
def test_options_that_conflict_say_what_to_do(
    cli: Cli, sample: Sample, tmp_path: Path, words: str, sentence: str
) -> None:
    assert cli("eval", *sample.words, *words.split(), "--out", tmp_path / "run").error == f"error: {sentence}"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["evaluate"], ["evaluate", "eval"]),
        (["eval", "--dataset", "sample", "--ranker", "oracle"], ["bm25"]),
    ],
)
def test_a_verb_or_ranker_that_does_not_exist_is_refused(cli: Cli, words: list[str], named: list[str]) -> None:
    error = cli(*words).error
    assert [name for name in named if name not in error] == []


@pytest.mark.slow
def test_debug_shows_the_traceback(sample: Sample, repo: Path) -> None:
    command = [sys.executable, "-m", "seeact_offline.cli", "eval", *sample.words, "--protocol", "olympic", "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=repo, check=False)
    assert "Traceback" in done.stderr
    assert "olympic" in done.stderr


# --- data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["eval", "show", "rank", "ablate-markup"])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_data_without_rows_are_refused(cli: Cli, sample: Sample, tmp_path: Path, verb: str, ending: str) -> None:
    """A run of no steps once ended well, with figures of 0."""
    stored = sample.dataset / "data" / "test_task-00000-of-00001.parquet"
    if ending == "jsonl":
        (tmp_path / "test_task.jsonl").touch()
    else:
        pq.write_table(pq.read_table(stored).slice(0, 0), tmp_path / "test_task.parquet")
    out = ("--out", tmp_path / "out.parquet") if verb != "show" else ()
    error = cli(verb, "--dataset", tmp_path, "--split", "cross_task", "--ranker", "bm25", *out).error
    assert error == f"error: --dataset: expected rows of cross_task, got none in cross_task of {tmp_path}"
    assert not (tmp_path / "out.parquet").exists()


# --- scores ----------------------------------------------------------------------------------------------------------


def test_scores_of_other_steps_are_refused_with_how_many_matched(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    other = make_sample(tmp_path, OTHER_ROWS)
    error = cli("eval", *sample.words, "--scores", other.scores).error
    assert "--scores" in error
    assert "0 of 12 steps" in error


def test_steps_without_scores_are_counted_and_the_run_goes_on(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    rows = list(synthetic_rows(4, 3, 12, seed=1))
    write_scores(tmp_path / "some.parquet", [line for row in rows[:9] for line in score_rows(row)])
    outcome = cli("eval", *sample.words, "--scores", tmp_path / "some.parquet", "--out", tmp_path / "run")
    assert outcome.status == 0
    assert "3 rows without scores count as wrong." in outcome.out
    assert "9 of 12 steps" in outcome.err
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["n_steps"], results["failures"]) == (12, {"no_scores": 3})


class Trap:
    """Leaves a file behind when it is unpickled by a reader that runs code."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_code_in_a_pickle_is_refused_and_not_run(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "scores.pkl"
    path.write_bytes(pickle.dumps({"scores": Trap(tmp_path / "sprung")}))
    error = cli("eval", *sample.words, "--scores", path).error
    assert "--scores" in error
    assert "scores.pkl" in error
    assert not (tmp_path / "sprung").exists()


# --- recordings, prompts, configuration ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("turns", "named"),
    [
        ({"turn2": None}, ["'pack'", "choice.turn2.txt"]),
        ({"turn1": "{{task}} {{history}} {{weather}}"}, ["choice.turn1.txt"]),
        ({"turn1": "ok\n{{task}} {{history"}, ["choice.turn1.txt"]),
        ({"turn1": "{{history}}"}, ["choice.turn1.txt"]),
    ],
)
def test_a_pack_that_cannot_be_used_is_named(
    cli: Cli, sample: Sample, tmp_path: Path, turns: dict[str, str | None], named: list[str]
) -> None:
    error = cli("eval", *sample.words, "--prompts", write_pack(tmp_path / "pack", **turns)).error
    assert [name for name in ("--prompts", *named) if name not in error] == []


def parquet(**columns: list[str]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


# option, file, content, and what the error names besides both
FILES: list[tuple[str, str, bytes, list[str]]] = [
    ("--dataset", "test_task.parquet", parquet(annotation_id=["a"], action_uid=["b"]), ["cleaned_html", "screenshot"]),
    ("--dataset", "test_task.parquet", b"no parquet", []),
    ("--dataset", "test_task.jsonl", b"{torn\n", ["line 1"]),
    ("--scores", "empty.pkl", b"", []),
    ("--scores", "torn.pkl", pickle.dumps({"scores": {"a_b": {"1": 0.5}}})[:-9], []),
    ("--scores", "text.pkl", b"these are no scores", []),
    ("--scores", "list.pkl", pickle.dumps([1, 2]), []),
    ("--scores", "no-scores.pkl", pickle.dumps({"ranks": {}}), []),
    ("--scores", "no-steps.pkl", pickle.dumps({"scores": [1]}), []),
    ("--scores", "words.pkl", pickle.dumps({"scores": {"a_b": {"1": "high"}}}), []),
    ("--scores", "nan.pkl", pickle.dumps({"scores": {"a_b": {"1": float("nan")}}}), []),
    ("--scores", "empty.parquet", b"", []),
    ("--scores", "text.parquet", b"these are no scores", []),
    ("--scores", "other.parquet", parquet(id=["a"]), ["backend_node_id"]),
    ("--model", "replies.jsonl", b"", []),
    ("--model", "replies.jsonl", b"no json\n", []),
    ("--model", "replies.jsonl", b"[]\n", []),
    ("--model", "replies.jsonl", b'{"annotation_id": "a"}\n', []),
    ("--model", "replies.jsonl", b'{"annotation_id": 1, "x": 2}\n', []),
    ("--config", "run.yaml", b"colour: red\n", ["colour"]),
    ("--config", "run.yaml", b"top-k: many\n", ["top_k", "many"]),
    ("--config", "run.yaml", b"merge: coin\n", ["merge", "final-round", "coin"]),
    ("--config", "run.yaml", b"debug: perhaps\n", ["debug", "true or false", "perhaps"]),
    ("--config", "run.yaml", b"- top-k\n", ["list"]),
    ("--config", "run.yaml", b"a: [1\n", []),
    ("--config", "run.yaml", b"config: other.yaml\n", ["config"]),
]


@pytest.mark.parametrize(("option", "file", "content", "named"), FILES)
def test_a_file_that_cannot_be_used_is_named(
    cli: Cli, sample: Sample, tmp_path: Path, option: str, file: str, content: bytes, named: list[str]
) -> None:
    (tmp_path / file).write_bytes(content)
    value = {"--dataset": tmp_path, "--model": f"replay/{tmp_path / file}"}.get(option, tmp_path / file)
    error = cli("eval", *sample.words, option, value, "--out", tmp_path / "run").error
    # a file that is not of its format at all is named alone
    options = () if error.startswith("error: cannot read ") else (option,)
    assert [name for name in (*options, file, *named) if name not in error] == []


# --- show and --out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["12", "-1", "uid-of-nobody"])
def test_an_unknown_step_is_named(cli: Cli, sample: Sample, step: str) -> None:
    error = cli("show", *sample.words, f"--step={step}").error
    assert [name for name in ("--step", "under 12", step) if name not in error] == []


def test_a_step_that_cannot_be_shown_says_why(cli: Cli, tmp_path: Path) -> None:
    row = {**OTHER_ROWS[0], "cleaned_html": "<html"}
    sample = make_sample(tmp_path, [row])
    error = cli("show", *sample.words).error
    assert [name for name in ("cannot be shown", row["action_uid"], "bad_html") if name not in error] == []


@pytest.mark.parametrize("verb", ["eval", "show"])
def test_a_file_in_place_of_the_folder_is_named(cli: Cli, sample: Sample, tmp_path: Path, verb: str) -> None:
    (tmp_path / "file").write_text("here first")
    error = cli(verb, *sample.words, "--out", tmp_path / "file").error
    assert "--out" in error
    assert str(tmp_path / "file") in error


DIFFERENT = {
    "top_k": ["--top-k", "4"],
    "group_size": ["--group-size", "2"],
    "merge": ["--merge", "first"],
    "model": ["--model", "builtin/oracle"],
    "seed": ["--seed", "7"],
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_folder_of_another_configuration_is_refused_naming_what_differs(
    cli: Cli, sample: Sample, tmp_path: Path, name: str
) -> None:
    words = (*sample.words, "--top-k", 6, "--out", tmp_path / "run")
    cli("eval", *words)
    before = contents(tmp_path / "run")
    error = cli("eval", *words, *DIFFERENT[name]).error
    assert "--out" in error
    assert name in error
    assert contents(tmp_path / "run") == before


def test_a_folder_of_other_data_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    words = ("--top-k", 5, "--out", tmp_path / "run")
    cli("eval", *sample.words, *words)
    other = make_sample(tmp_path / "other", OTHER_ROWS)
    error = cli("eval", *other.words, *words).error
    assert [name for name in ("--out", "dataset_fingerprint", "scores_digest") if name not in error] == []


def test_changed_prompts_are_another_configuration(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    pack = write_pack(tmp_path / "pack")
    words = (*sample.words, "--prompts", pack, "--out", tmp_path / "run")
    cli("eval", *words)
    (pack / "choice.turn1.txt").write_text("Your task: {{task}}\n{{history}}")
    assert "prompts_digest" in cli("eval", *words).error


def test_predictions_without_a_manifest_are_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "predictions.jsonl").write_text(json.dumps({}) + "\n")
    error = cli("eval", *sample.words, "--out", tmp_path).error
    assert "--out" in error
    assert "manifest.json" in error
