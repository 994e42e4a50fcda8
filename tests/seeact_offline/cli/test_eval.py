"""`eval` from end to end: the real step, the built-in models, a model behind HTTP."""

from __future__ import annotations

import base64
import gc
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from tests.chat_server import COMPLETION_TOKENS, IMAGE_TOKENS, PROMPT_TOKENS, Answer, ChatServer, script
from tests.seeact_offline.conftest import KEY, RESULT_FILES, Cli, Outcome, Sample, contents, read_json, read_lines

RESULT_KEYS = {
    *("schema", "split", "grounding", "model", "ranker", "protocol", "n_tasks", "n_steps"),
    *("element_accuracy", "operation_f1", "step_success_rate", "task_success_rate", "recall_at_k"),
    *("waterfall", "usage", "failures"),
}
METRICS = ("element_accuracy", "operation_f1", "step_success_rate")
SMALL = ("--top-k", "6", "--group-size", "3")
SOON = {"retry-after-ms": "1"}
FINAL = "ELEMENT: A\nACTION: CLICK\nVALUE: None"


def is_second_turn(body: dict[str, Any]) -> bool:
    return len(body["messages"]) == 4


def answer(body: dict[str, Any]) -> str:
    """Depends on all that was sent, so that a wrong message would show in the results."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    if not is_second_turn(body):
        return f"Plan {digest.hex()[:8]}."
    return f"ELEMENT: {'AB'[digest[0] % 2]}\nACTION: {'CLICK' if digest[1] % 3 else 'TYPE'}\nVALUE: red shoes"


def ask(cli: Cli, sample: Sample, server: ChatServer, out: Path, *words: object) -> Outcome:
    """`eval` with the model behind the server. Small questions, no retries."""
    given = (*sample.words, *SMALL, "--model", "openai/test", "--base-url", server.base_url, "--max-retries", 0)
    return cli("eval", *given, "--out", out, *words)


# --- the real step ---------------------------------------------------------------------------------------------------


def test_the_real_step_succeeds(cli: Cli, real: list[str], tmp_path: Path) -> None:
    assert cli("eval", *real, "--out", tmp_path / "run").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert [results[name]["macro"] for name in METRICS] == [1.0, 1.0, 1.0]
    assert (results["n_tasks"], results["n_steps"], results["failures"]) == (1, 1, {})


def test_the_real_step_is_grounded_to_the_right_element(cli: Cli, real: list[str], tmp_path: Path) -> None:
    cli("eval", *real, "--out", tmp_path / "run")
    (prediction,) = read_lines(tmp_path / "run" / "predictions.jsonl")
    assert (prediction["element_id"], prediction["op"], prediction["value"]) == ("8635", "CLICK", "")
    assert [group["element_id"] for group in prediction["groups"]] == ["8635", None, None]


def test_a_second_run_of_the_real_step_changes_no_byte(cli: Cli, real: list[str], tmp_path: Path) -> None:
    cli("eval", *real, "--out", tmp_path / "run")
    before = contents(tmp_path / "run")
    again = cli("eval", *real, "--out", tmp_path / "run")
    assert again.status == 0
    assert contents(tmp_path / "run") == before
    assert "1 step is done already" in again.err


# --- built-in models -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["builtin/lexical", "builtin/oracle"])
def test_concurrency_changes_no_byte_of_the_results(cli: Cli, sample: Sample, tmp_path: Path, model: str) -> None:
    for n in (1, 8):
        words = ("--model", model, "--concurrency", n, "--out", tmp_path / str(n))
        assert cli("eval", *sample.words, *SMALL, *words).status == 0
    assert contents(tmp_path / "1", RESULT_FILES) == contents(tmp_path / "8", RESULT_FILES)


def test_the_oracle_finds_every_element_that_is_offered(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("eval", *sample.words, "--top-k", 5, "--model", "builtin/oracle", "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    assert results["element_accuracy"]["micro"] == results["recall_at_k"]["5"]
    assert 0 < results["element_accuracy"]["micro"] < 1
    assert results["operation_f1"]["micro"] == 1


def test_results_hold_all_that_other_programs_rely_on(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("eval", *sample.words, *SMALL, "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    assert results.keys() >= RESULT_KEYS
    assert all(results[name].keys() >= {"macro", "micro", "ci95"} for name in METRICS)
    assert list(results["recall_at_k"]) == ["1", "3", "5", "10", "20", "50"]
    assert results["task_success_rate"].keys() == {"offline0", "offline1"}
    assert results["usage"].keys() == {"calls", "prompt_tokens", "completion_tokens", "image_tokens", "cost_usd"}
    assert (results["schema"], results["n_tasks"], results["n_steps"]) == (1, 4, 12)


def test_every_step_has_one_outcome(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("eval", *sample.words, *SMALL, "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    lost = results["waterfall"].values()
    assert sum(one["steps"] for one in lost) + results["n_succeeded"] == results["n_steps"]
    for kind in ("macro", "micro"):
        assert sum(one[kind] for one in lost) == pytest.approx(1 - results["step_success_rate"][kind], abs=1e-12)


def test_predictions_stand_in_data_set_order(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("eval", *sample.words, *SMALL, "--concurrency", 8, "--out", tmp_path / "run")
    uids = [line["action_uid"] for line in read_lines(tmp_path / "run" / "predictions.jsonl")]
    assert uids == [f"uid-1-{task}-{step}" for task in range(4) for step in range(3)]


def test_a_limit_counts_tasks(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("eval", *sample.words, *SMALL, "--limit", 2, "--out", tmp_path / "run")
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["n_tasks"], results["n_steps"]) == (2, 6)


def test_without_out_the_run_lies_below_runs(cli: Cli, sample: Sample) -> None:
    assert cli("eval", *sample.words, *SMALL).status == 0
    (folder,) = Path("runs").iterdir()
    assert "cross_task-choice-builtin-lexical" in folder.name
    assert (folder / "results.json").is_file()


def test_another_protocol_over_the_same_predictions_is_what_the_manifest_says(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    for protocol in ("seeact", "mindact"):
        cli("eval", *sample.words, *SMALL, "--protocol", protocol, "--out", tmp_path / "run")
        assert read_json(tmp_path / "run" / "results.json")["protocol"] == protocol
        assert read_json(tmp_path / "run" / "manifest.json")["settings"]["protocol"] == protocol


# --- HTTP ------------------------------------------------------------------------------------------------------------


def test_turn_one_is_system_then_text_then_picture(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        assert ask(cli, tall_sample, server, tmp_path / "run").status == 0
    system, user = next(body["messages"] for body in server.requests if not is_second_turn(body))
    assert system["role"] == "system"
    assert isinstance(system["content"], str)
    assert user["role"] == "user"
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]
    assert "Use the" in user["content"][0]["text"]


def test_turn_two_feeds_the_first_reply_back(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "run", "--concurrency", 1)
    first, second = server.requests[:2]
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": answer(first)}
    assert second["messages"][3]["role"] == "user"
    assert "\nA. " in second["messages"][3]["content"]


@pytest.mark.slow
def test_the_picture_is_the_file_that_show_writes(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "run", "--concurrency", 1)
    kind, data = sent_picture(server.requests[0])
    shown = json.loads(cli("show", *tall_sample.words, *SMALL, "--json").out)["groups"][0]
    x0, y0, x1, y1 = shown["crop"]
    picture = Image.open(io.BytesIO(data))
    assert (kind, data) == ("image/jpeg", Path(shown["image"]).read_bytes())
    assert (picture.format, picture.size) == ("JPEG", (x1 - x0, y1 - y0))
    assert picture.height < 3000, "the sample must be taller than its crops"


@pytest.mark.slow
@pytest.mark.parametrize(("text", "kind"), [("png", "PNG"), ("jpeg:40", "JPEG"), ("webp:80", "WEBP")])
def test_the_format_and_detail_asked_for_are_sent(
    cli: Cli, tall_sample: Sample, tmp_path: Path, text: str, kind: str
) -> None:
    with ChatServer(answer) as server:
        words = ("--image-format", text, "--image-detail", "low", "--max-tokens", 77, "--limit", 1)
        assert ask(cli, tall_sample, server, tmp_path / "run", *words).status == 0
    body = server.requests[0]
    mime, data = sent_picture(body)
    assert (mime, Image.open(io.BytesIO(data)).format) == (f"image/{kind.lower()}", kind)
    assert (body["messages"][1]["content"][1]["image_url"]["detail"], body["max_tokens"]) == ("low", 77)
    identity = read_json(tmp_path / "run" / "manifest.json")["identity"]
    assert (identity["image_format"], identity["image_detail"]) == (text, "low")


def test_the_request_for_the_real_step_is_as_released(cli: Cli, real: list[str], tmp_path: Path) -> None:
    """All but the texts, which are the prompt pack's."""
    with ChatServer(lambda body: FINAL.replace(" A", " ZZ") if is_second_turn(body) else "Plan.") as server:
        words = ("--model", "openai/test", "--base-url", server.base_url, "--out", tmp_path / "run")
        # a letter that was not offered: no reply can be read
        assert cli("eval", *real, *words, "--concurrency", 1).status == 1
    assert len(server.requests) == 6
    sizes = []
    for body in server.requests:
        assert {name: value for name, value in body.items() if name != "messages"} == {
            "model": "test", "max_tokens": 4096, "temperature": 0.0, "seed": 0,
        }  # fmt: skip
        text, image = body["messages"][1]["content"]
        assert (text["type"], image["type"], image["image_url"]["detail"]) == ("text", "image_url", "high")
        mime, data = sent_picture(body)
        picture = Image.open(io.BytesIO(data))
        assert (mime, picture.format) == ("image/jpeg", "JPEG")
        assert picture.quantization == quantization(95)
        sizes.append(picture.size)
    assert sizes == [size for size in ((1280, 2529), (1280, 5808), (1280, 3224)) for _ in range(2)]


def sent_picture(body: dict[str, Any]) -> tuple[str, bytes]:
    """The MIME type and the bytes of a request's first picture."""
    url = next(part["image_url"]["url"] for part in body["messages"][1]["content"] if part["type"] == "image_url")
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return kind, base64.b64decode(data)


def quantization(quality: int) -> dict[int, list[int]]:
    """The tables of a JPEG of this quality."""
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "JPEG", quality=quality)
    picture = Image.open(out)
    assert isinstance(picture, JpegImageFile)
    return picture.quantization


def test_another_format_or_detail_is_another_run(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        assert ask(cli, sample, server, tmp_path / "run", "--limit", 1).status == 0
        calls, before = len(server.requests), contents(tmp_path / "run")
        for words in (("--image-format", "png"), ("--image-detail", "low"), ("--max-tokens", "2048")):
            outcome = ask(cli, sample, server, tmp_path / "run", "--limit", 1, *words)
            assert (outcome.status, "another configuration" in outcome.err) == (2, True)
            assert words[0].lstrip("-").replace("-", "_") in outcome.err
    assert len(server.requests) == calls
    assert contents(tmp_path / "run") == before


def test_a_servers_run_from_before_there_were_formats_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    """It was sent PNG before the text, which no options ask for now."""
    with ChatServer(answer) as server:
        ask(cli, sample, server, tmp_path / "run", "--limit", 1)
        manifest = read_json(tmp_path / "run" / "manifest.json")
        del manifest["identity"]["image_format"], manifest["identity"]["image_detail"]
        (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
        for words in ((), ("--image-format", "png", "--image-detail", "auto")):
            outcome = ask(cli, sample, server, tmp_path / "run", "--limit", 1, *words)
            assert outcome.status == 2
            assert "image_detail, image_format differ: image_detail was None" in outcome.err


def test_models_that_see_no_picture_go_on_whatever_its_format(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    command = ("eval", *sample.words, *SMALL, "--out", tmp_path / "run")
    assert cli(*command).status == 0
    before = contents(tmp_path / "run")
    outcome = cli(*command, "--image-format", "png", "--image-detail", "low", "--max-tokens", 99)
    assert outcome.status == 0
    assert "12 steps are done already" in outcome.err
    assert "builtin/lexical ignores image_format" in outcome.err
    assert contents(tmp_path / "run") == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--image-format gif", "--image-format: expected png, jpeg:Q or webp:Q"),
        ("--image-format jpeg:0", "--image-format: expected png, jpeg:Q or webp:Q"),
        ("--image-detail medium", "--image-detail"),
        ("--image-format webp:90 --max-image-side 20000", "--max-image-side: expected at most 16383 with image_format webp:90"),
    ],
)  # fmt: skip
def test_a_picture_that_cannot_be_sent_so_is_refused(cli: Cli, sample: Sample, words: str, sentence: str) -> None:
    assert sentence in cli("eval", *sample.words, *words.split()).error


@pytest.mark.slow
def test_what_is_shown_is_what_is_sent(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "run", "--concurrency", 1)
    shown = json.loads(cli("show", *tall_sample.words, *SMALL, "--json").out)["groups"][0]
    messages = server.requests[1]["messages"]
    sent = [messages[0]["content"], messages[1]["content"][0]["text"], messages[3]["content"]]
    assert sent == [shown["system"], *shown["turns"]]


@pytest.mark.slow
def test_usage_is_summed_and_priced(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "run", "--price", "2,8")
    usage = read_json(tmp_path / "run" / "results.json")["usage"]
    n = len(server.requests)
    assert usage["calls"] == n
    assert usage["prompt_tokens"] == n * (PROMPT_TOKENS + IMAGE_TOKENS)
    assert usage["completion_tokens"] == n * COMPLETION_TOKENS
    assert usage["image_tokens"] == n * IMAGE_TOKENS
    assert usage["cost_usd"] == pytest.approx((usage["prompt_tokens"] * 2 + usage["completion_tokens"] * 8) / 1e6)


def test_without_a_price_the_cost_is_not_known(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "run", "--limit", 1)
    assert read_json(tmp_path / "run" / "results.json")["usage"]["cost_usd"] is None


def test_a_second_run_makes_no_call_and_changes_no_byte(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "run")
        before, calls = contents(tmp_path / "run"), len(server.requests)
        assert ask(cli, tall_sample, server, tmp_path / "run").status == 0
    assert len(server.requests) == calls
    assert contents(tmp_path / "run") == before


@pytest.mark.slow
def test_concurrency_changes_no_byte_of_a_servers_results(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        for n in (1, 8):
            ask(cli, tall_sample, server, tmp_path / str(n), "--concurrency", n)
    assert contents(tmp_path / "1", RESULT_FILES) == contents(tmp_path / "8", RESULT_FILES)


FAILING = {
    "server_error": Answer("broken", status=500, headers=SOON),
    "rate_limited": Answer("slow down", status=429, headers=SOON),
    "bad_request": Answer("too large", status=400),
    "timeout": Answer(FINAL, delay_s=60.0),
    "api_error": Answer(body=b"<html>this is no JSON</html>"),
}
GARBAGE = {
    "an empty object": b"{}",
    "a list": b"[1, 2]",
    "null": b"null",
    "a text for choices": b'{"choices": "none"}',
    "a choice that is null": b'{"choices": [null]}',
    "a number for the text": b'{"choices": [{"message": {"content": 7}}]}',
    "words for numbers": b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}',
    "nothing": b"",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAILING)
def test_a_failed_call_is_a_named_failure_and_the_run_goes_on(
    cli: Cli, sample: Sample, tmp_path: Path, name: str
) -> None:
    with ChatServer(script(FAILING[name], "Plan.", FINAL)) as server:
        # the first call fails; all later ones are answered, the second turns as the first ones
        words = ("--concurrency", 1, "--timeout", 1.0 if name == "timeout" else 60)
        assert ask(cli, sample, server, tmp_path / "run", *words).status == 1
    results = read_json(tmp_path / "run" / "results.json")
    assert results["failures"][name] == 1
    assert (results["n_steps"], results["n_not_run"]) == (12, 1)


@pytest.mark.slow
@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
def test_an_answer_that_makes_no_sense_ends_one_step_only(
    cli: Cli, sample: Sample, tmp_path: Path, body: bytes
) -> None:
    with ChatServer(script(Answer(body=body), "Plan.", FINAL)) as server:
        assert ask(cli, sample, server, tmp_path / "run", "--concurrency", 1).status in (0, 1)
    results = read_json(tmp_path / "run" / "results.json")
    assert results["n_steps"] == 12
    assert sum(results["failures"].values()) + sum(results["reply_failures"].values()) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_refused_key_ends_the_run_in_one_sentence(
    cli: Cli, sample: Sample, tmp_path: Path, caplog: pytest.LogCaptureFixture, concurrency: int
) -> None:
    with ChatServer(script(Answer("Incorrect API key", status=401))) as server:
        outcome = ask(cli, sample, server, tmp_path / "run", "--concurrency", concurrency)
    errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert outcome.status == 2
    assert len(errors) == 1
    assert "--model" in errors[0]
    assert "Incorrect API key" in errors[0]
    assert "Traceback" not in outcome.err
    assert len(server.requests) <= concurrency
    gc.collect()
    # asyncio complains of errors that nobody has looked at
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.slow
def test_the_same_command_asks_only_for_what_failed(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    broken = Answer("broken", status=500, headers=SOON)
    calls = 0

    def faulty(body: dict[str, Any]) -> Answer | str:
        nonlocal calls
        calls += 1
        return broken if calls in (2, 9) else answer(body)

    with ChatServer(answer) as server:
        ask(cli, tall_sample, server, tmp_path / "whole")
        wanted = len(server.requests)
    with ChatServer(faulty) as server:
        words = ("--concurrency", 1)
        assert ask(cli, tall_sample, server, tmp_path / "run", *words).status == 1
        assert ask(cli, tall_sample, server, tmp_path / "run", *words).status == 0
    assert len(server.requests) == wanted + 2
    assert contents(tmp_path / "run", RESULT_FILES) == contents(tmp_path / "whole", RESULT_FILES)


@pytest.mark.slow
def test_what_failed_is_said_to_be_tried_again(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(script(400, "Plan.", FINAL)) as server:
        outcome = ask(cli, sample, server, tmp_path / "run", "--concurrency", 1)
    assert "1 of 12 steps failed to run" in outcome.err


@pytest.mark.slow
def test_beyond_the_cost_limit_no_step_is_begun(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        words = ("--concurrency", 1, "--price", "1,100000", "--max-tokens", 10, "--max-cost", 18)
        outcome = ask(cli, tall_sample, server, tmp_path / "run", *words)
    results = read_json(tmp_path / "run" / "results.json")
    assert outcome.status == 1
    assert 0 < results["n_steps"] < 4
    assert f"stopped at --max-cost 18.0: {4 - results['n_steps']} of 4 steps were not started" in outcome.err
    assert not results["complete"]


@pytest.mark.slow
def test_a_step_by_name_within_the_cost_limit_stops_nothing(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        words = ("--price", "1,1", "--max-tokens", 10, "--max-cost", 18)
        ask(cli, tall_sample, server, tmp_path / "all", *words)
        step = read_lines(tmp_path / "all" / "predictions.jsonl")[1]
        outcome = ask(
            cli,
            tall_sample,
            server,
            tmp_path / "run",
            *words,
            "--step",
            f"{step['annotation_id']}_{step['action_uid']}",
        )
    assert "3 of 4 steps were not started" in outcome.err
    assert "stopped" not in outcome.err


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_cost_limit_is_never_exceeded(cli: Cli, tall_sample: Sample, tmp_path: Path, concurrency: int) -> None:
    with ChatServer(answer) as server:
        words = ("--concurrency", concurrency, "--price", "1000,1000", "--max-tokens", 16, "--max-cost", 3)
        ask(cli, tall_sample, server, tmp_path / "run", *words)
    a_call = (PROMPT_TOKENS + IMAGE_TOKENS + COMPLETION_TOKENS) / 1000
    assert len(server.requests) * a_call <= 3


@pytest.mark.slow
def test_a_limit_below_the_first_step_is_refused_and_what_was_paid_is_kept(
    cli: Cli, tall_sample: Sample, tmp_path: Path
) -> None:
    with ChatServer(answer) as server:
        words = ("--concurrency", 1, "--price", "1,100000", "--max-tokens", 10)
        outcome = ask(cli, tall_sample, server, tmp_path / "run", *words, "--max-cost", 6)
        assert outcome.status == 2
        assert "before any step was answered" in outcome.err
        n_asked = len(server.requests)
        assert ask(cli, tall_sample, server, tmp_path / "run", *words).status == 0
    assert 0 < n_asked < len(server.requests)
    assert len(server.requests) == read_json(tmp_path / "run" / "results.json")["usage"]["calls"]


def test_a_limit_below_the_first_call_is_refused(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(answer) as server:
        words = ("--price", "1000,1000", "--max-cost", 0.01)
        outcome = ask(cli, tall_sample, server, tmp_path / "run", *words)
        assert outcome.status == 2
        assert "--max-cost: expected at least" in outcome.err
        assert server.requests == []


# --- secrets and foreign text ----------------------------------------------------------------------------------------


def test_no_secret_reaches_a_file_or_the_terminal(
    cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    quoting = Answer(f"Incorrect API key provided: {KEY}", status=400)
    with ChatServer(script(quoting, "Plan.", FINAL)) as server:
        outcome = ask(cli, sample, server, tmp_path / "run", "--concurrency", 1)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert outcome.status == 1
    assert KEY not in outcome.out + outcome.err
    assert all(KEY.encode() not in data for data in contents(tmp_path / "run").values())


def test_a_refused_key_is_not_quoted(cli: Cli, sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(script(Answer(f"Incorrect API key provided: {KEY}", status=401))) as server:
        outcome = ask(cli, sample, server, tmp_path / "run")
    assert outcome.status == 2
    assert KEY not in outcome.err


NASTY = "\x1b[31mred \x9b2J <script>alert(1)</script> **bold** | [x](http://evil.example) \u202etxt"


@pytest.mark.slow
def test_a_models_text_reaches_the_report_as_plain_text_only(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    final = f"ELEMENT: A\nACTION: TYPE\nVALUE: {NASTY}"
    with ChatServer(lambda body: final if is_second_turn(body) else NASTY) as server:
        ask(cli, sample, server, tmp_path / "run")
    assert "red" in read_lines(tmp_path / "run" / "predictions.jsonl")[0]["value"]
    report = (tmp_path / "run" / "report.md").read_text()
    assert "alert" in report
    assert not {"\x1b", "\x9b", "\u202e"} & set(report)
    assert "<script>" not in report
    assert " **bold" not in report
    assert "[x](" not in report


def test_a_servers_text_reaches_the_terminal_without_control_characters(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    with ChatServer(script(Answer(f"no {NASTY}", status=401))) as server:
        outcome = ask(cli, sample, server, tmp_path / "run")
    assert "alert" in outcome.err
    assert not {"\x1b", "\x9b", "\u202e"} & set(outcome.err)


# --- --config --------------------------------------------------------------------------------------------------------


def test_options_are_read_from_a_file(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        f"dataset: {sample.dataset}\nscores: {sample.scores}\nsplit: cross_task\ntop-k: 6\ngroup_size: 3\nlimit: 2\n"
    )
    assert cli("eval", "--config", config, "--out", tmp_path / "run").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["top_k"], results["group_size"], results["n_tasks"]) == (6, 3, 2)


def test_the_command_line_wins_over_the_file(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("top-k: 6\nlimit: 2\n")
    words = ("--config", tmp_path / "run.yaml", "--limit", 1, "--out", tmp_path / "run")
    assert cli("eval", *sample.words, *words).status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["top_k"], results["n_tasks"]) == (6, 1)


def test_where_no_step_is_answered_there_is_no_table_of_zeros(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(lambda body: Answer("the picture is too large", status=400)) as server:
        outcome = ask(cli, sample, server, tmp_path / "run", "--limit", 1)
    assert outcome.status == 1
    assert "Element Accuracy" not in outcome.out
    assert "the picture is too large" in outcome.err
    assert "--retry-failed only them" in outcome.err


# --- what is kept of how it was asked --------------------------------------------------------------------------------


def test_manifest_and_report_say_when_and_how_it_was_run(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert (
        cli("eval", *sample.words, "--limit", 2, "--temperature", "0.5", "--max-tokens", 99, "--out", out).status == 0
    )
    made = read_json(out / "manifest.json")["made"]
    assert (made["temperature"], made["max_tokens"], made["base_url"]) == (0.5, 99, None)
    assert made["command"].startswith("seeact-offline eval --dataset ")
    assert made["command"].endswith(f"--max-tokens 99 --out {out}")
    section = (out / "report.md").read_text().partition("## How it was run")[2]
    shown = [*map(str, (made["date"], made["command"], 0.5, 99)), "the first 2 tasks"]
    assert [text for text in shown if text not in section] == []


def test_a_run_that_goes_on_keeps_the_date_of_its_beginning(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    made = []
    for limit in (1, 2):
        cli("eval", *sample.words, "--limit", limit, "--out", tmp_path / "run")
        made.append(read_json(tmp_path / "run" / "manifest.json")["made"])
    assert made[0] == made[1]


def test_the_first_line_says_what_a_limit_counts(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    err = cli("eval", *sample.words, "--limit", 2, "--out", tmp_path / "run").err
    assert f"6 steps of {sample.dataset} (cross_task), the first 2 tasks, model " in err


def test_a_run_that_could_not_begin_leaves_no_folder(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    for name in ("new", "mine"):
        assert "OPENAI_API_KEY" in cli("eval", *sample.words, "--model", "openai/x", "--out", tmp_path / name).error
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


# --- how replies end -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reply_that_the_server_broke_off_is_not_scored_nor_used_by_the_next_run(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    torn, cache = Answer("ELEMENT: A\nACTION: CLI", finish_reason="error"), tmp_path / "replies.sqlite"
    with ChatServer(lambda body: torn) as server:
        first = ask(cli, sample, server, tmp_path / "first", "--cache", cache)
    lines = read_lines(tmp_path / "first" / "predictions.jsonl") if first.status != 2 else []
    assert {line["failure"] for line in lines} <= {"server_error"}
    with ChatServer(answer) as server:
        assert ask(cli, sample, server, tmp_path / "second", "--cache", cache).status == 0
    calls = read_lines(tmp_path / "second" / "calls.jsonl")
    assert len(server.requests) == sum(not call.get("reused") for call in calls)


def test_a_reason_that_nobody_knows_is_in_results_report_and_calls(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(lambda body: Answer(answer(body), finish_reason="whim")) as server:
        done = ask(cli, sample, server, tmp_path / "run")
    n = len(server.requests)
    assert read_json(tmp_path / "run" / "results.json")["notes"]["unknown_finish_reason"] == n
    assert "ended for a reason that is not known" in (tmp_path / "run" / "report.md").read_text()
    assert {line["finish_reason"] for line in read_lines(tmp_path / "run" / "calls.jsonl")} == {"whim"}
    assert f"whim ({n})" in done.out + done.err
