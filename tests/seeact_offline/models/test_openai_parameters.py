"""The parameters of a request: the user's, and ours, which give way to a server that refuses them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seeact_offline.models import ModelOptions, find_model
from seeact_offline.models.openai import OpenAIModel
from seeact_offline.models.parameters import read_model_args
from seeact_offline.records import CallError, Completion, ImageFormat, Message, ModelSpecError, ModelStopped
from tests.chat_server import COMPLETION_TOKENS, PROMPT_TOKENS, Answer, ChatServer, script
from tests.seeact_offline.models.asking import HELLO, ask_in_turn, ask_many, ask_one, opened, quick, request

KEY = "sk-test-0123456789abcdef"


class Picture:
    key = "p"

    def encoded(self, image_format: ImageFormat) -> bytes:
        return b"pixels"


LOOK = (Message("user", "Look", Picture()),)


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def sent(server: ChatServer, number: int = -1) -> dict[str, Any]:
    return {
        name: value for name, value in server.requests[number].items() if name not in ("model", "messages", "input")
    }


# --- the user's own ---


OURS = {"max_tokens": 4096, "temperature": 0.0, "seed": 0}
GIVEN = {"top_p": 0.5, "reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": False}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (GIVEN, OURS | GIVEN),
        ({"max_tokens": 9, "temperature": 1.0}, {"max_tokens": 9, "temperature": 1.0, "seed": 0}),
        ({"max_completion_tokens": 9}, {"max_completion_tokens": 9, "temperature": 0.0, "seed": 0}),
        ({"temperature": None, "seed": None, "max_tokens": None}, {}),
    ],
    ids=["any can be sent", "in place of ours", "in place of ours by another name", "null is not sent"],
)
def test_a_parameter_of_the_users(given: dict[str, Any], expected: dict[str, Any]) -> None:
    with ChatServer(script("Hi.")) as server:
        ask_one(opened(server, model_args=given))
    assert sent(server) == expected


@pytest.mark.parametrize("name", ["messages", "model", "input", "stream", "n"])
def test_what_makes_the_request_is_no_parameter(name: str) -> None:
    with pytest.raises(ModelSpecError, match=rf"^model_args: expected .*, got {name}$"):
        OpenAIModel("m", ModelOptions(model_args={name: 1}))


@pytest.mark.parametrize(
    ("option", "name"),
    [("temperature", "temperature"), ("max_tokens", "max_tokens"), ("max_tokens", "max_completion_tokens")],
)
def test_a_parameter_given_twice_is_refused(option: str, name: str) -> None:
    with pytest.raises(ModelSpecError, match=rf"use {option} or {name}, not both"):
        OpenAIModel("m", ModelOptions(base_url="http://h/v1", model_args={name: 1}, typed=frozenset({option})))


def test_values_are_read_as_json_where_they_are() -> None:
    texts = ["a=1", "b=0.5", "c=true", "d=null", "e=low", 'f={"g": [1]}', "h=x=y", 'i="3"', "j="]
    assert read_model_args(texts) == {
        **{"a": 1, "b": 0.5, "c": True, "d": None, "e": "low"},
        **{"f": {"g": [1]}, "h": "x=y", "i": "3", "j": ""},
    }


@pytest.mark.parametrize("text", ["temperature", "=1", ""])
def test_a_parameter_needs_a_name_and_a_value(text: str) -> None:
    with pytest.raises(ModelSpecError, match="expected NAME=VALUE"):
        read_model_args([text])


def test_parameters_are_part_of_what_replies_depend_on() -> None:
    plain, chosen = (
        ModelOptions(base_url="http://h/v1"),
        ModelOptions(base_url="http://h/v1", model_args={"top_p": 0.5}),
    )
    assert "model_args" not in find_model("openai/m").identity(plain)
    assert find_model("openai/m").identity(chosen)["model_args"] == {"top_p": 0.5}
    assert OpenAIModel("m", chosen).identity["top_p"] == 0.5


# --- ours, which give way ---


def openais(name: str, more: str = "", **error: Any) -> Answer:
    message = f"Unsupported parameter: '{name}' is not supported with this model.{more}"
    return Answer(message, status=400, param=name, code="unsupported_parameter", **error)


REFUSALS = {
    "OpenAI, temperature": (
        "temperature",
        Answer(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
            status=400,
            param="temperature",
            code="unsupported_value",
        ),
    ),
    "vLLM, seed": (
        "seed",
        Answer(
            status=422,
            body=b'{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}',
        ),
    ),
    "Gemini, seed": (
        "seed",
        Answer(
            status=400,
            body=b'[{"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \\"seed\\": Cannot find field.", "status": "INVALID_ARGUMENT"}}]',
        ),
    ),
    "Claude, seed": ("seed", Answer("seed: Extra inputs are not permitted", status=400)),
    "TGI, temperature": ("temperature", Answer("`temperature` must be strictly positive", status=422)),
    "plain": ("temperature", Answer(status=400, body=b"unknown parameter temperature")),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_parameter_of_ours_that_is_refused_is_left_out_from_then_on(name: str) -> None:
    refused, answer = REFUSALS[name]
    with ChatServer(lambda body: answer if refused in body else "Hi.") as server:
        model = opened(server)
        found = ask_in_turn(model, 3)
    assert all(isinstance(one, Completion) for one in found)
    assert [refused in body for body in server.requests] == [True, False, False, False]
    assert model.dropped == (refused,)


@pytest.mark.parametrize(
    "answer",
    [
        openais("max_tokens", " Use 'max_completion_tokens' instead."),
        Answer("this model is new: use max_completion_tokens", status=400),
        Answer("max_tokens: no longer supported", status=400),
    ],
)
def test_the_limit_of_new_tokens_is_sent_by_its_other_name(answer: Answer) -> None:
    with ChatServer(lambda body: answer if "max_tokens" in body else "Hi.") as server:
        model = opened(server, max_tokens=9)
        ask_one(model)
    assert sent(server) == {"max_completion_tokens": 9, "temperature": 0.0, "seed": 0}
    assert model.dropped == ("max_tokens -> max_completion_tokens",)


def test_a_limit_refused_by_both_names_is_left_out() -> None:
    names = ("max_tokens", "max_completion_tokens")

    def answer(body: dict[str, Any]) -> Answer | str:
        return next((openais(name) for name in names if name in body), "Hi.")

    with ChatServer(answer) as server:
        model = opened(server)
        ask_one(model)
    assert sent(server) == {"temperature": 0.0, "seed": 0}
    assert model.dropped == ("max_tokens -> max_completion_tokens", "max_completion_tokens")


def test_a_limit_that_the_user_typed_is_renamed_but_never_left_out() -> None:
    names = ["max_tokens", "max_completion_tokens"]

    def answer(body: dict[str, Any]) -> Answer | str:
        return next((openais(name) for name in names if name in body), "Hi.")

    with ChatServer(answer) as server:
        (found,) = ask_in_turn(opened(server, max_tokens=9, typed=frozenset({"max_tokens"})), 1)
        assert isinstance(found, CallError)
        assert sent(server)["max_completion_tokens"] == 9
        names.pop()
        assert ask_one(opened(server, max_tokens=9, typed=frozenset({"max_tokens"}))).text == "Hi."


def test_how_closely_to_look_is_left_out_where_it_is_refused() -> None:
    where = "messages[0].content[1].image_url.detail"

    def answer(body: dict[str, Any]) -> Answer | str:
        image = body["messages"][0]["content"][1]["image_url"]
        return Answer(f"Unknown parameter: '{where}'.", status=400, param=where) if "detail" in image else "Hi."

    with ChatServer(answer) as server:
        model = opened(server)
        assert ask_one(model, LOOK).text == "Hi."
    assert model.dropped == ("detail",)


def test_that_a_server_may_not_look_as_closely_is_said() -> None:
    def remarks(url: str | None, *typed: str) -> tuple[str, ...]:
        return OpenAIModel("m", ModelOptions(base_url=url, typed=frozenset(typed))).remarks

    assert remarks("http://h/v1", "image_detail") == ("image_detail is OpenAI's own: http://h/v1 may ignore it",)
    assert remarks("http://h/v1") == remarks(None, "image_detail") == ()


def test_all_of_ours_can_be_refused_one_after_the_other() -> None:
    def answer(body: dict[str, Any]) -> Answer | str:
        return next((openais(name) for name in ("temperature", "seed", "max_tokens") if name in body), "Hi.")

    with ChatServer(answer) as server:
        model = opened(server, max_retries=0)
        found = ask_many(model, map(request, range(20)))
    assert all(isinstance(one, Completion) for one in found)
    assert sorted(model.dropped) == ["max_tokens -> max_completion_tokens", "seed", "temperature"]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("temperature", {"typed": frozenset({"temperature"})}),
        ("seed", {"typed": frozenset({"seed"})}),
        ("temperature", {"model_args": {"temperature": 0.3}}),
    ],
)
def test_one_that_the_user_chose_stays_an_error(name: str, options: dict[str, Any]) -> None:
    with ChatServer(lambda body: openais(name) if name in body else "Hi.") as server:
        model = opened(server, **options)
        (found,) = ask_in_turn(model, 1)
    assert isinstance(found, CallError)
    assert f"'{name}' is not supported" in found.detail
    assert model.dropped == ()


@pytest.mark.parametrize(
    "message",
    [
        "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens",
        "Invalid image: temperature chart unsupported",
        "the seed of doubt",
        "something else is not supported",
    ],
)
def test_other_words_leave_the_parameters_as_they_are(message: str) -> None:
    with ChatServer(script(Answer(message, status=400), "Hi.")) as server:
        model = opened(server)
        (found,) = ask_in_turn(model, 1)
    assert isinstance(found, CallError)
    assert model.dropped == ()
    assert len(server.requests) == 1


def test_what_replies_depend_on_does_not_change_under_way() -> None:
    with ChatServer(lambda body: openais("seed") if "seed" in body else "Hi.") as server:
        model = opened(server)
        before = model.identity
        ask_one(model)
    assert model.identity == before


# --- responses ---


def test_the_responses_api_is_asked_in_its_own_words() -> None:
    talk = (*HELLO, Message("assistant", "Hi."), *LOOK)
    with ChatServer(script("Done.")) as server:
        completion = ask_one(opened(server, model_args={"api": "responses", "reasoning": {"effort": "low"}}), talk)
    assert server.paths == ["/v1/responses"]
    assert server.requests == [
        {
            "model": "m",
            "input": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hi."},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Look"},
                        {"type": "input_image", "image_url": "data:image/jpeg;base64,cGl4ZWxz", "detail": "high"},
                    ],
                },
            ],
            "max_output_tokens": 4096,
            "temperature": 0.0,
            "store": False,
            "reasoning": {"effort": "low"},
        }
    ]
    assert completion.text == "Done."
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (PROMPT_TOKENS, COMPLETION_TOKENS)


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (Answer("cut", finish_reason="length"), "truncated"),
        (Answer("", finish_reason="content_filter"), "refused"),
        (Answer("", refusal="I cannot help."), "refused"),
        (Answer(" "), "empty_reply"),
        (Answer(body=b'{"status": "failed", "error": {"code": "server_error", "message": "oh"}}'), "api_error"),
    ],
)
def test_a_response_without_a_usable_text_is_a_named_failure(answer: Answer, name: str) -> None:
    with ChatServer(script(answer)) as server:
        (found,) = ask_in_turn(opened(server, model_args={"api": "responses"}), 1)
    assert isinstance(found, CallError)
    assert found.name == name


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(ModelSpecError, match="expected api=chat or api=responses, got api=completions"):
        OpenAIModel("m", ModelOptions(base_url="http://h/v1", model_args={"api": "completions"}))


# --- where and with which key ---


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a server of Azure's, which a proxy on this machine stands in for: see `through`."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-0123456789")
    monkeypatch.delenv("NO_PROXY", raising=False)
    return "http://shop.openai.azure.com/openai/v1"


def through(monkeypatch: pytest.MonkeyPatch, server: ChatServer) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.base_url.removesuffix("/v1"))


def test_azure_is_sent_its_own_key_in_its_own_header(azure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(script("Hi.")) as server:
        through(monkeypatch, server)
        ask_one(opened(server, base_url=f"{azure}?api-version=2024-10-21"))
    assert server.paths == [f"{azure}/chat/completions?api-version=2024-10-21"]
    assert server.headers[0]["api-key"] == "azure-0123456789"
    assert "authorization" not in server.headers[0]


def test_azures_key_is_sent_to_nobody_else(azure: str) -> None:
    with ChatServer(script("Hi.")) as server:
        ask_one(opened(server))
    assert "azure-0123456789" not in json.dumps(server.headers)


def test_azures_key_is_not_quoted(azure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer(script(Answer("wrong key azure-0123456789", status=401))) as server:
        through(monkeypatch, server)
        with pytest.raises(ModelStopped) as caught:
            ask_one(opened(server, base_url=azure))
    assert "azure-0123456789" not in str(caught.value)
