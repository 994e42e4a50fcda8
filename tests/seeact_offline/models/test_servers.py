"""Behaviours of real servers, each as a server on this machine plays it: what becomes of the call, and what it is charged."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.models import ModelOptions, Price, open_model
from seeact_offline.models.batch import BatchCodec, read_result
from seeact_offline.models.budget import Budget
from seeact_offline.models.failures import DETAIL_CHARS, ending, of_status
from seeact_offline.models.openai import OpenAIModel
from seeact_offline.records import CallError, Completion, ImageFormat, Message, ModelSpecError, ModelStopped
from tests.chat_server import COMPLETION_TOKENS, PROMPT_TOKENS, Answer, ChatServer, script
from tests.seeact_offline.models.asking import HELLO, ask_in_turn, ask_one, opened, quick, request

PRICE = Price(1000.0, 1000.0)
PAID = (PROMPT_TOKENS + COMPLETION_TOKENS) * 1000.0 / 1e6
"""USD of a reply whose usage is reported."""
MOST_TOKENS = 1000
USAGE = {
    "prompt_tokens": PROMPT_TOKENS,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": PROMPT_TOKENS + COMPLETION_TOKENS,
}
RESPONSES_USAGE = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    quick(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")


class Picture:
    key, size = "p", (10, 10)

    def encoded(self, image_format: ImageFormat) -> bytes:
        return b"pixels"


LOOK = (Message("system", "Be brief."), Message("user", "Look", Picture()))


def reply(content: Any, reason: Any = "stop", body: Mapping[str, Any] | None = None, **choice: Any) -> Answer:
    """A reply under status 200; `body`, `choice`: what stands in it besides."""
    message = {"role": "assistant", "content": content, **choice.pop("message", {})}
    entry = {"index": 0, "message": message, "finish_reason": reason, **choice}
    return Answer(body=json.dumps({"choices": [entry], "usage": USAGE, **(body or {})}).encode())


def choices(*listed: Any, **body: Any) -> Answer:
    """A body under status 200 with these choices."""
    return Answer(body=json.dumps({"choices": listed, "usage": USAGE, **body}).encode())


def response(status: str, text: str = "I would cli", **more: Any) -> Answer:
    """A reply of the Responses API."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
    return Answer(body=json.dumps({"status": status, "output": output, "usage": RESPONSES_USAGE, **more}).encode())


def error(status: int, body: Any, **headers: str) -> Answer:
    """An error as the server words it: JSON, or a text that is none."""
    content = body if isinstance(body, str) else json.dumps(body)
    return Answer(body=content.encode(), status=status, headers=headers)


def openai_error(status: int, message: str, code: Any = None, kind: str = "invalid_request_error") -> Answer:
    return error(status, {"error": {"message": message, "type": kind, "param": None, "code": code}})


@dataclass(frozen=True)
class Behaviour:
    """A first answer of a server, and what is to come of it when `Hi.` follows."""

    source: str
    """The server, and the public thread that reports it."""
    answer: Answer
    outcome: str
    """`Hi.`: asked again; any other text: read from this answer; else the name of the failure."""
    paid: int = 0
    """Replies that are charged by their usage."""
    reserved: int = 0
    """Attempts that are charged as reserved, for nobody knows what they cost."""
    kept: bool = False
    """The reply, or how the model declined, is in the store: the next run does not ask."""
    stops: bool = False
    """The run stops at this first call."""
    says: str = ""
    """Part of the failure's sentence."""
    options: Mapping[str, Any] = field(default_factory=dict)


RESPONSES = {"model_args": {"api": "responses"}}
TORN = [
    Behaviour("OpenRouter, claudexor#144", reply("I would cli", "error", error={"code": 502, "message": "Upstream error"}), "Hi.", 2),
    Behaviour("OpenRouter, houston#1211", reply("I would cli", "error"), "Hi.", 2),
    Behaviour("OpenRouter: no message", reply(None, "error", error={"code": 502, "message": "Provider gone"}), "Hi.", 2),
    Behaviour("a gateway, genkit#6259", reply("I would cli", "stop", error={"message": "lost upstream"}), "Hi.", 2),
    Behaviour("a gateway: the error beside the choices", reply("I would cli", "stop", {"error": {"message": "lost"}}), "Hi.", 2),
    Behaviour("SGLang, sglang#2956", reply("I would cli", "abort"), "Hi.", 2),
    Behaviour("SGLang: a reason with a message", reply("I", {"type": "abort", "message": "Abort in waiting queue"}), "Hi.", 2),
    Behaviour("Zhipu, genkit#6259", reply("I would cli", "network_error"), "Hi.", 2),
    Behaviour("DeepSeek, genkit#6259", reply("I would cli", "insufficient_system_resource"), "Hi.", 2),
    Behaviour("OpenRouter: a limit in the middle", reply("I", "error", error={"code": 429, "message": "slow"}), "Hi.", 2),
    Behaviour("a gateway: an error that says nothing", reply("Click.", "stop", {"error": {"code": None, "message": ""}}, error=None), "Click.", 1, kept=True),
    *(
        Behaviour(f"Responses API, litellm#8448: {status}", response(status), "Hi.", 2, options=RESPONSES)
        for status in ("failed", "cancelled", "in_progress", "queued", "incomplete")
    ),
    Behaviour(
        "Responses API: failed with its error",
        response("failed", error={"code": "server_error", "message": "The server had an error"}), "Hi.", 2, options=RESPONSES,
    ),
]  # fmt: skip
ENDINGS = [
    *(
        Behaviour(f"cut off: {reason}", reply("I would cli", reason), "truncated", 1, kept=True)
        for reason in ("length", "max_tokens", "MAX_TOKENS", "FINISH_REASON_MAX_TOKENS", "maxTokens", "max_output_tokens", "model_length",
                       "model_context_window_exceeded", "context_length_exceeded")
    ),
    *(
        Behaviour(f"refused: {reason}", reply("I would cli", reason), "refused", 1, kept=True)
        for reason in ("content_filter", "content_filter: PROHIBITED_CONTENT", "content-filter", "contentFilter", "sensitive", "SAFETY",
                       "RECITATION", "BLOCKLIST", "SPII", "refusal", "guardrail_intervened", "ERROR_TOXIC", "MODEL_ARMOR")
    ),
    *(
        Behaviour(f"nothing usable: {reason}", reply(text, reason), "Hi.", 2)
        for reason, text in (("MALFORMED_FUNCTION_CALL", "I would cli"), ("function_call_filter: MALFORMED_FUNCTION_CALL", ""))
    ),
    Behaviour("Gemini: filtered, without a message, langchain-google#1207", choices({"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}), "refused", 1, kept=True),
    Behaviour("Gemini: a blocked prompt", choices(promptFeedback={"blockReason": "OTHER"}), "refused", 1, kept=True),
    Behaviour("Gemini: a blocked prompt that is not counted", Answer(body=b'{"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}'), "refused", reserved=1, kept=True),
    Behaviour("a gateway: nothing to read, with its usage", choices(), "Hi.", 2),
    Behaviour("a gateway: a text of another kind, with its usage", reply(7), "Hi.", 2),
    Behaviour("a gateway: calls that are none beside an older one", reply("", "stop", message={"tool_calls": 5, "function_call": {"name": "click"}}), '{"name": "click", "arguments": null}', 1, kept=True),
    Behaviour("xAI: ticks beyond any number", reply("Click.", "stop", {"usage": {**USAGE, "cost_in_usd_ticks": 10**400}}), "Click.", 1, kept=True),
    Behaviour("a gateway: an error that is none", reply("Click.", "stop", {"error": {"code": "0", "message": "success"}}), "Click.", 1, kept=True),
    Behaviour("OpenAI, older: a function's call", reply("", "function_call", message={"function_call": {"name": "click", "arguments": "{}"}}), '{"name": "click", "arguments": {}}', 1, kept=True),
    Behaviour("a gateway: a refusal among the parts", reply([{"type": "refusal", "refusal": "No."}]), "refused", 1, kept=True),
    Behaviour("a refusal that breaks off", reply(None, "error", message={"refusal": "I "}), "Hi.", 2),
    *(
        Behaviour(f"OpenRouter: a bare {code} in the middle", reply("I would cli", "error", error={"code": code, "message": "Provider returned error"}), "Hi.", 2)
        for code in (401, 402, 403)
    ),
    Behaviour("a gateway: counts as texts and floats", reply("Click.", "stop", {"usage": {"prompt_tokens": str(PROMPT_TOKENS), "completion_tokens": float(COMPLETION_TOKENS)}}), "Click.", 1, kept=True),
    Behaviour("a gateway: a total for the reply", reply("Click.", "stop", {"usage": {"prompt_tokens": PROMPT_TOKENS, "total_tokens": USAGE["total_tokens"]}}), "Click.", 1, kept=True),
    Behaviour("a gateway: another API's names", reply("Click.", "stop", {"usage": {"prompt_tokens": 0, "completion_tokens": 0, **RESPONSES_USAGE}}), "Click.", 1, kept=True),
    Behaviour("a gateway: an absurd bill", reply("Click.", "stop", {"usage": {**USAGE, "cost": 1e14}}), "Click.", 1, kept=True),
    Behaviour("a gateway: the second choice first", choices({"index": 1, "message": {"content": "No."}}, {"index": 0, "message": {"content": "Click."}, "finish_reason": "stop"}), "Click.", 1, kept=True),
    Behaviour("a gateway: an absurd total", reply("Click.", "stop", {"usage": {**USAGE, "total_tokens": 999_999_999_999}}), "Click.", 1, kept=True),
    *(
        Behaviour(f"done: {reason}", reply("Click.", reason), "Click.", 1, kept=True)
        for reason in ("stop", "STOP", "end_turn", "eos", "eos_token", "stop_sequence", "tool_calls", "toolUse", "COMPLETE", "", None, "whim")
    ),
    Behaviour("Gemini: moderated in the middle", reply("I", "error", error={"code": 403, "message": "flagged by moderation"}), "refused", 1, kept=True),
    Behaviour("Responses API: the limit", response("incomplete", incomplete_details={"reason": "max_output_tokens"}), "truncated", 1, kept=True, options=RESPONSES),
    Behaviour("Responses API: a commentary before the answer, langchain4j#6399", response("completed", output=[{"type": "message", "phase": phase, "content": [{"type": "output_text", "text": text}]} for phase, text in (("commentary", "I look."), ("final_answer", "Click."))]), "Click.", 1, kept=True, options=RESPONSES),
    Behaviour("Responses API: the filter", response("incomplete", incomplete_details={"reason": "content_filter"}), "refused", 1, kept=True, options=RESPONSES),
]  # fmt: skip
PARTS = [
    Behaviour(
        "Magistral, pydantic-ai#2713",
        reply([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Click."}]),
        "Click.", 1, kept=True,
    ),
    Behaviour("mistral-large-2512", reply([{"type": "text", "text": "Cli"}, {"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "ck."}]), "Click.", 1, kept=True),
    Behaviour("parts that are texts", reply(["Cli", "ck."]), "Click.", 1, kept=True),
    Behaviour("thoughts with a text of their own", reply([{"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "Click."}]), "Click.", 1, kept=True),
    Behaviour("thoughts alone", reply([{"type": "thinking", "thinking": []}]), "Hi.", 2, kept=True),
]  # fmt: skip
REFUSED = [
    Behaviour("OpenRouter: moderation, before any call got through", error(403, {"error": {"code": 403, "message": "meta/x requires moderation on Y. Your input was flagged for \"violence\". No credits were charged.", "metadata": {"reasons": ["violence"], "flagged_input": "quota per day"}}}), "refused", kept=True),
    Behaviour("DashScope, qwen-code#3145", error(400, {"error": {"message": "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content.", "type": "data_inspection_failed", "code": "data_inspection_failed"}}), "refused", kept=True),
    Behaviour("Zhipu 1301, langchain4j#1079", error(400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}), "refused", kept=True),
    Behaviour("Moonshot", openai_error(400, "The request was rejected because it was considered high risk", kind="content_filter"), "refused", kept=True),
    Behaviour("Azure", error(400, {"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}), "refused", kept=True),
    Behaviour("xAI", error(403, {"code": "permission-denied", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"}), "refused", kept=True),
    Behaviour("new-api, openai-cookbook#1224", openai_error(400, "input contains sensitive words: [x]", "sensitive_words_detected"), "refused", kept=True),
    Behaviour("Anthropic", openai_error(400, "Output blocked by content filtering policy"), "refused", kept=True),
    Behaviour("OpenAI", openai_error(400, "Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"), "refused", kept=True),
    Behaviour("DeepSeek, DeepSeek-V3#1054", openai_error(400, "Content Exists Risk"), "refused", kept=True),
    Behaviour("MiniMax, under 200", error(200, {"choices": None, "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}), "refused", reserved=1, kept=True),
]  # fmt: skip
NO_QUOTA = [
    Behaviour(f"no quota: {source}", answer, "no_quota", stops=True)
    for source, answer in {
        "Moonshot, continue#11443": openai_error(429, "Your account org-1 <ak-1> is suspended due to insufficient balance, please recharge your account or check your plan and billing details", kind="exceeded_current_quota_error"),
        "Moonshot by a gateway, opencode#25458": error(429, {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "{\"error\":{\"message\":\"Your account is suspended due to insufficient balance\",\"type\":\"exceeded_current_quota_error\"}}"}}}),
        "xAI, continue#10373": error(429, {"code": "Some resource has been exhausted", "error": "Your team 1 has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits."}),
        "xAI 403, koan#2412": error(403, {"code": "permission-denied", "error": "Your team 1 has either used all available credits or reached its monthly spending limit."}),
        "xAI, a new team, continue#12670": error(403, {"error": "Your newly created team doesn't have any credits or licenses yet. You can purchase those on https://console.x.ai/team/1."}),
        "Zhipu 1113, dify#5850": error(429, {"error": {"code": "1113", "message": "您的账户已欠费，请充值后重试。"}}),
        "Z.ai 1113, claude-code#9201": error(429, {"type": "error", "error": {"type": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}),
        "DashScope, supersonic#1572": error(400, {"error": {"message": "Access denied, please make sure your account is in good standing.", "code": "Arrearage", "type": "Arrearage"}}),
        "DashScope, the free tier": error(403, {"error": {"message": "The free tier of the model has been exhausted. If you wish to continue access the model on a paid basis, please disable the use free tier only mode.", "code": "AllocationQuota.FreeTierOnly"}}),
        "Gemini a day, agent-zero#403": error(429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.", "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}, {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "44s"}]}}]),
        "Gemini, a model that the plan lacks, continue#9689": error(429, [{"error": {"code": 429, "message": "You exceeded your current quota. Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-3-pro. Please retry in 50.4s.", "status": "RESOURCE_EXHAUSTED"}}]),
        "OpenRouter a day, openclaude#936": error(429, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", "code": 429}}),
        "OpenRouter in the body": error(200, {"error": {"message": "Insufficient credits. Add more using https://openrouter.ai/credits", "code": 402}}),
        "Anthropic": openai_error(400, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."),
        "Anthropic, the user's own limit": openai_error(400, "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."),
        "SiliconFlow, OpenManus#438": error(403, {"code": 30011, "message": "The selected model requires paid balance. Your paid balance is insufficient. Please top up and try again.", "data": None}),
        "one-api": openai_error(403, "user quota is not enough", "insufficient_user_quota"),
        "Fireworks": error(412, {"error": {"message": "Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.", "code": "PRECONDITION_FAILED"}}),
        "Cloudflare": error(429, {"errors": [{"message": "you have used up your daily free allocation of 10,000 neurons", "code": 4006}]}),
        "Groq a day, continue#10920": openai_error(429, "Rate limit reached for model `x` on tokens per day (TPD): Limit 100000, Used 97050, Requested 3619. Please try again in 9m38s.", "rate_limit_exceeded"),
        "LiteLLM": openai_error(400, "Budget has been exceeded! Current cost: 0.02, Max budget: 0.01", "400", "budget_exceeded"),
        "LiteLLM, under 429": openai_error(429, "Budget has been exceeded! Current cost: 0.02, Max budget: 0.01", "429", "budget_exceeded"),
        "Doubao": error(429, {"error": {"code": "SetLimitExceeded", "message": "Your account [1] has reached the set inference limit for the [x] model, and the model service has been paused.", "type": "TooManyRequests"}}),
        "GitHub Models": error(429, {"error": {"code": "RateLimitReached", "message": "Rate limit of 50 per 86400s exceeded for UserByModelByDay. Please wait 43111 seconds before retrying.", "details": "Rate limit of 50 per 86400s exceeded for UserByModelByDay."}}),
        "One API, a token's": openai_error(401, "该令牌额度已用尽 [sk-abc***xyz]", kind="one_api_error"),
        "One API, its account": openai_error(403, "用户额度不足", kind="one_api_error"),
        "DeepSeek": openai_error(402, "Insufficient Balance", "invalid_request_error"),
        "OpenAI": openai_error(429, "You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", "insufficient_quota"),
    }.items()
]  # fmt: skip
NO_KEY = [
    Behaviour(f"no key: {source}", answer, "auth_failed", stops=True)
    for source, answer in {
        "Google": error(400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}]),
        "Google, leaked": error(403, [{"error": {"code": 403, "message": "Your API key was reported as leaked. Please use another API key.", "status": "PERMISSION_DENIED"}}]),
        "xAI": error(400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai."}),
        "Zhipu, under 200": error(200, {"code": 401, "msg": "令牌已过期或验证不正确", "success": False}),
        "MiniMax, under 200": error(200, {"base_resp": {"status_code": 1004, "status_msg": "login fail: Please carry the API secret key in the 'Authorization' field of the request header"}}),
        "OpenAI": openai_error(401, "Incorrect API key provided", "invalid_api_key"),
        "Moonshot": openai_error(401, "Invalid Authentication", kind="invalid_authentication_error"),
    }.items()
]  # fmt: skip
PASSING = [
    Behaviour("MiniMax, under 200", error(200, {"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}}), "Hi.", 1),
    Behaviour("Groq a day, for a moment", openai_error(429, "Rate limit reached for model `x` on requests per day (RPD): Limit 1000, Used 1000, Requested 1. Please try again in 1.2s.", "rate_limit_exceeded"), "Hi.", 1),
    Behaviour("a day, with a pause", Answer("Too many requests per day", 429, {"retry-after-ms": "1"}), "Hi.", 1),
    Behaviour("LM Studio, lmstudio-bug-tracker#1079", error(400, {"error": "Model unloaded."}), "Hi.", 1),
    Behaviour("Bedrock", error(500, {"message": "The system encountered an unexpected error during processing. Try your request again."}), "Hi.", 1, 1),
    Behaviour("vLLM, CUDA", openai_error(500, "CUDA error: an illegal memory access was encountered; unsafe memory access"), "Hi.", 1, 1),
    Behaviour("Groq 498, laravel/ai#925", openai_error(498, "flex tier capacity exceeded", "capacity_exceeded"), "Hi.", 1),
    Behaviour("Hugging Face, Azure 424, langchain#26815", error(424, "Failed Dependency"), "Hi.", 1),
    Behaviour("Anthropic 529", openai_error(529, "Overloaded", kind="overloaded_error"), "Hi.", 1),
    Behaviour("llama.cpp", error(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}), "Hi.", 1),
    Behaviour("LM Studio", error(400, {"error": "The model is currently loading, try again in a moment"}), "Hi.", 1),
    Behaviour("Zhipu 1305", error(429, {"error": {"code": "1305", "message": "该模型当前访问量过大，请您稍后再试"}}), "Hi.", 1),
    Behaviour("OpenAI a minute", openai_error(429, "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 6ms. You can increase your rate limit by adding a payment method to your account at https://platform.openai.com/account/billing.", "rate_limit_exceeded", "tokens"), "Hi.", 1),
    Behaviour("Groq a minute, openinterpreter#408", openai_error(429, "Rate limit reached for model `x` in organization `org_1` on tokens per minute (TPM): Limit 6000, Used 3513, Requested 3166. Please try again in 6.78s. Need more tokens? Upgrade to Dev Tier today at https://console.groq.com/settings/billing", "rate_limit_exceeded", "tokens"), "Hi.", 1),
    Behaviour("Anthropic a minute", openai_error(429, "This request would exceed your organization's rate limit of 30,000 input tokens per minute. Please reduce the prompt length or the maximum tokens requested, or try again later.", kind="rate_limit_error"), "Hi.", 1),
    Behaviour("Azure a minute", error(429, {"error": {"code": "429", "message": "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after 9 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit."}}), "Hi.", 1),
    Behaviour("Gemini a minute", error(429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details.", "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}]), "Hi.", 1),
    Behaviour("Gemini with a pause", error(429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details. Please retry in 0.4s."}}]), "Hi.", 1),
    Behaviour("DashScope a minute", openai_error(429, "Requests rate limit exceeded, please try again later.", "limit_requests"), "Hi.", 1),
    Behaviour("Gemini", error(500, [{"error": {"code": 500, "message": "An internal error has occurred.", "status": "INTERNAL"}}]), "Hi.", 1, 1),
    Behaviour("Ollama", openai_error(500, "model runner has unexpectedly stopped, this may be due to resource limitations"), "Hi.", 1, 1),
    Behaviour("OpenAI", openai_error(500, "The server had an error while processing your request. Sorry about that!", kind="server_error"), "Hi.", 1, 1),
]  # fmt: skip
NO_IMAGE, CONTEXT, SMALLER, FEWER = "--no-image", "--max-tokens", "--max-image-side", "--history-pictures"
PERMANENT = [
    Behaviour("llama.cpp without mmproj", error(500, {"error": {"code": 500, "message": "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "type": "server_error"}}), "bad_request", says=NO_IMAGE),
    Behaviour("Ollama, a text model", openai_error(500, "Failed to create new sequence: failed to process inputs: this model is missing data required for image input", kind="api_error"), "bad_request", says=NO_IMAGE),
    Behaviour("Ollama cloud, ollama#17301", openai_error(400, "this model does not support image input (ref: b8bd)"), "bad_request", says=NO_IMAGE),
    Behaviour("DeepSeek, jcode#310", openai_error(400, "Failed to deserialize the JSON body into the target type: messages[7]: unknown variant `image_url`, expected `text` at line 1 column 114708", "invalid_request_error"), "bad_request", says=NO_IMAGE),
    Behaviour("DeepSeek, older, browser-use#159", error(422, "Failed to deserialize the JSON body into the target type: messages[2]: data did not match any variant of untagged enum ChatCompletionRequestContent at line 1 column 15700"), "bad_request", says=NO_IMAGE),
    Behaviour("vLLM, a text model", error(400, {"object": "error", "message": "google/gemma-2b is not a multimodal model None", "code": 400}), "bad_request", says=NO_IMAGE),
    Behaviour("OpenRouter, nexu#875", error(404, {"error": {"message": "No endpoints found that support image input", "code": 404}}), "bad_request", stops=True, says=NO_IMAGE),
    Behaviour("Groq, a text model", openai_error(400, "'messages.1' : for 'role:user' the following must be satisfied[('messages.1.content' : value must be a string)]"), "bad_request", says=NO_IMAGE),
    Behaviour("OpenAI, a text model", error(400, {"error": {"message": "Invalid content type. image_url is only supported by certain models.", "type": "invalid_request_error", "param": "messages.[1].content.[1].type"}}), "bad_request", says=NO_IMAGE),
    Behaviour("FastAPI, which quotes the page", error(422, {"detail": [{"loc": ["body", "messages", 1, "content", "str"], "msg": "Input should be a valid string", "input": [{"text": "insufficient balance"}]}]}), "bad_request", says=NO_IMAGE),
    Behaviour("OpenAI, the context", openai_error(400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.", "context_length_exceeded"), "bad_request", says=CONTEXT),
    Behaviour("vLLM, the context, vllm#20409", error(400, {"object": "error", "message": "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages, 10000 in the completion).", "code": 400}), "bad_request", says=CONTEXT),
    Behaviour("vLLM, with pictures, vllm#12165", error(400, {"object": "error", "message": "The prompt (total length 25938) is too long to fit into the model (context length 4096).", "code": 400}), "bad_request", says=CONTEXT),
    Behaviour("llama.cpp, the context", error(500, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "server_error"}}), "bad_request", says=CONTEXT),
    Behaviour("SGLang, the context", error(400, {"object": "error", "message": "The input (40000 tokens) is longer than the model's context length (32768 tokens).", "code": 400}), "bad_request", says=CONTEXT),
    Behaviour("Anthropic, the context", openai_error(400, "prompt is too long: 210000 tokens > 200000 maximum"), "bad_request", says=CONTEXT),
    Behaviour("Gemini, the context", error(400, [{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}]), "bad_request", says=CONTEXT),
    Behaviour("DashScope, the context", openai_error(400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]", "invalid_parameter_error"), "bad_request", says=CONTEXT),
    Behaviour("xAI, the context", error(400, {"code": "Client specified an invalid argument", "error": "This model's maximum prompt length is 131072 but the request contains 200000 tokens."}), "bad_request", says=CONTEXT),
    Behaviour("OpenAI, the reply's limit", openai_error(400, "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.", "invalid_value"), "bad_request", says=CONTEXT),
    Behaviour("OpenAI, more than a minute's tokens", openai_error(429, "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.", "rate_limit_exceeded", "tokens"), "bad_request", says=CONTEXT),
    Behaviour("Groq, more than a minute's tokens, koassistant#106", openai_error(413, "Request too large for model `x` in organization `org_1` on tokens per minute (TPM): Limit 8000, Requested 32979", "rate_limit_exceeded", "tokens"), "bad_request", says=CONTEXT),
    Behaviour("vLLM, pictures, vllm#17092", error(400, {"object": "error", "message": "At most 5 image(s) may be provided in one request.", "code": 400}), "bad_request", says=FEWER),
    Behaviour("Azure, pictures, vscode#306919", openai_error(400, "Too many images in request: 11 images provided, but the model supports a maximum of 10 images."), "bad_request", says=FEWER),
    Behaviour("Anthropic, pictures, claude-code#24541", openai_error(400, "too many images and documents: 120 + 0 > 100"), "bad_request", says=FEWER),
    Behaviour("a gateway, pictures, opencode#48647", openai_error(400, "request contains 52 images, exceeding the maximum of 50 allowed per request"), "bad_request", says=FEWER),
    Behaviour("new-api, pictures, new-api#1233", openai_error(500, "too many images in the message, max allowed is 16"), "bad_request", says=FEWER),
    Behaviour("nginx", error(413, "<html><head><title>413 Request Entity Too Large</title></head></html>"), "bad_request", says=SMALLER),
    Behaviour("Express", error(413, "<pre>Payload Too Large</pre>"), "bad_request", says="--image-format"),
    Behaviour("Anthropic, a picture", openai_error(400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"), "bad_request", says=SMALLER),
    Behaviour("Anthropic, its sides", openai_error(400, "messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"), "bad_request", says=SMALLER),
    Behaviour("OpenAI, a format", openai_error(400, "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].", "invalid_image_format"), "bad_request", says="--image-format"),
    Behaviour("nginx, a TLS port", error(400, "<center>The plain HTTP request was sent to HTTPS port</center>"), "bad_request", stops=True, says="https://"),
    Behaviour("Go, a TLS port", error(400, "Client sent an HTTP request to an HTTPS server.\n"), "bad_request", stops=True, says="https://"),
    Behaviour("OpenAI, a parameter of the user's", openai_error(400, "Unknown parameter: 'moderation'.", "unknown_parameter"), "bad_request"),
    Behaviour("new-api, no such model", openai_error(503, "No available channel for model gpt-9 under group default", "model_not_found", "new_api_error"), "server_error", stops=True),
    Behaviour("DeepSeek, no such model", openai_error(400, "Model Not Exist", "invalid_request_error"), "bad_request", stops=True),
    Behaviour("LM Studio, lmstudio-bug-tracker#618", error(200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}), "bad_request", stops=True),
]  # fmt: skip
TABLE = [*TORN, *ENDINGS, *PARTS, *REFUSED, *NO_QUOTA, *NO_KEY, *PASSING, *PERMANENT]
NAMES = {"server_error", "refused", "truncated", "no_quota", "auth_failed", "bad_request", "empty_reply"}


def asked(server: ChatServer, store: Path, **options: Any) -> tuple[Any, float]:
    """The outcome of one call, and the USD that it was charged."""
    budget = Budget(None, PRICE, MOST_TOKENS)
    client = opened(server, cache=store, price=PRICE, budget=budget, max_tokens=MOST_TOKENS, **options)
    try:
        return ask_one(client, LOOK), budget.spent
    except (CallError, ModelStopped) as failed:
        return failed, budget.spent


@pytest.mark.parametrize("row", TABLE, ids=[row.source for row in TABLE])
def test_a_behaviour_of_a_server(row: Behaviour, tmp_path: Path) -> None:
    store = tmp_path / "replies.sqlite"
    with ChatServer(script(row.answer, reply("Hi.") if row.options == {} else response("completed", "Hi."))) as server:
        outcome, spent = asked(server, store, **row.options)
        assert len(server.requests) == 1 + (row.outcome == "Hi.")
        again, _ = asked(server, store, **row.options)
        is_kept = len(server.requests) == 1 + (row.outcome == "Hi.")
    if row.outcome in NAMES:
        assert isinstance(outcome, ModelStopped if row.stops else CallError)
        assert row.outcome in str(outcome)
        assert row.says in str(outcome)
    else:
        assert isinstance(outcome, Completion)
        assert outcome.text == row.outcome
    # a reply that was asked for again is kept as the whole one that came
    assert is_kept == (row.kept or row.outcome == "Hi.")
    assert not isinstance(again, Completion) or again.text in ("Hi.", row.outcome)
    charged = row.paid * PAID
    if row.reserved:
        assert spent > charged + row.reserved * MOST_TOKENS * 1000 / 1e6
    else:
        assert spent == pytest.approx(charged)


# --- what is asked otherwise ---

NO_SYSTEM = {
    "OpenAI's o1, dspy#1627": openai_error(
        400, "Unsupported value: 'messages[0].role' does not support 'system' with this model.", "unsupported_value"
    ),
    "vLLM, Gemma": error(400, {"object": "error", "message": "System role not supported", "code": 400}),
    "SGLang, Gemma, sglang#892": error(500, {"error": {"message": "System role not supported"}}),
    "Google, Gemma": error(
        400, [{"error": {"code": 400, "message": "Developer instruction is not enabled for models/gemma-3-27b-it"}}]
    ),
    "vLLM, Mistral, autogen#1037": openai_error(
        400, "Conversation roles must alternate user/assistant/user/assistant/..."
    ),
    "llama.cpp, opencode#5034": error(
        500, {"error": {"code": 500, "message": "Only user, assistant and tool roles are supported, got system"}}
    ),
    "a gateway, claude-code#61412": openai_error(400, "role 'system' is not supported on this model"),
    "FastAPI, ogx#5982": error(
        400, {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Input should be 'user' or 'assistant'"}]}
    ),
}


@pytest.mark.parametrize("refusal", NO_SYSTEM.values(), ids=NO_SYSTEM.keys())
def test_a_system_role_that_is_refused_goes_into_the_users_turn(refusal: Answer) -> None:
    def answer(body: dict[str, Any]) -> Answer | str:
        return refusal if body["messages"][0]["role"] == "system" else "Hi."

    with ChatServer(answer) as server:
        model = opened(server)
        assert [getattr(one, "text", one) for one in ask_in_turn(model, 2)] == ["Hi.", "Hi."]
    assert [len(body["messages"]) for body in server.requests] == [2, 1, 1]
    assert server.requests[1]["messages"] == [{"role": "user", "content": "Be brief.\n\nHello"}]
    assert model.dropped == ("system -> user",)


def test_a_picture_stays_in_the_turn_that_the_system_goes_into() -> None:
    refusal = NO_SYSTEM["vLLM, Gemma"]
    with ChatServer(lambda body: refusal if body["messages"][0]["role"] == "system" else "Hi.") as server:
        ask_one(opened(server), LOOK)
    (message,) = server.requests[-1]["messages"]
    assert message["content"][0] == {"type": "text", "text": "Be brief.\n\nLook"}
    assert message["content"][1]["type"] == "image_url"


NO_TEMPERATURE = {
    "Moonshot, oh-my-ppt#45": "invalid temperature: only 1 is allowed for this model",
    "Moonshot, thinking off": "invalid temperature: only 0.6 is allowed for this model",
    "Anthropic, one-hub#529": "`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation",
    "Bedrock, aider#3720": "The model returned the following errors: temperature may only be set to 1 when thinking is enabled.",
    "Anthropic, newer": "`temperature` is deprecated for this model.",
    "OpenAI": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
    "litellm": "gpt-5 models don't support temperature=0.0. Only temperature=1 is supported.",
    "MiniMax": "invalid params, invalid temperature: should be in (0.0, 1.0]",
    "DashScope": "<400> InternalError.Algo.InvalidParameter: Temperature should be in (0.0, 2.0)",
    "TGI": "Input validation error: `temperature` must be strictly positive",
    "Zhipu": "temperature 参数非法。请检查文档。",
    "a gateway": "This model does not support the temperature parameter",
}


@pytest.mark.parametrize("words", NO_TEMPERATURE.values(), ids=NO_TEMPERATURE.keys())
def test_a_temperature_that_is_refused_in_any_words_is_dropped_and_noted(words: str) -> None:
    with ChatServer(lambda body: openai_error(400, words) if "temperature" in body else "Hi.") as server:
        model = opened(server)
        assert ask_one(model).text == "Hi."
    assert model.dropped == ("temperature",)


STREAMS = {
    "a gateway, openhuman#5165": error(400, {"detail": "Stream must be set to true"}),
    "DashScope": openai_error(400, "This model only support stream mode, please enable the stream parameter to access the model."),
    "DashScope, note-gen#319": openai_error(400, "parameter.enable_thinking must be set to false for non-streaming calls"),
    "ModelScope, claude-code-router#948": openai_error(400, "enable thinking can not be support when `stream=False`."),
}  # fmt: skip


def events(*pieces: Any, done: bool = True) -> Answer:
    lines = [f"data: {json.dumps(piece)}\n\n" for piece in pieces] + ["data: [DONE]\n\n"] * done
    return Answer(body=": comment\n\n".join(lines).encode(), headers={"Content-Type": "text/event-stream"})


def piece(reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


WHOLE = events(
    piece(role="assistant", content=""),
    piece(reasoning_content="Hm."),
    piece(content="Cli"),
    piece(content="ck."),
    piece("stop"),
    {"choices": [], "usage": USAGE},
)


@pytest.mark.parametrize("refusal", STREAMS.values(), ids=STREAMS.keys())
def test_a_model_that_only_streams_is_asked_to(refusal: Answer) -> None:
    with ChatServer(lambda body: WHOLE if body.get("stream") else refusal) as server:
        model = opened(server)
        completion = ask_one(model)
    assert completion.text == "Click."
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (PROMPT_TOKENS, COMPLETION_TOKENS)
    assert server.requests[-1]["stream_options"] == {"include_usage": True}
    assert model.dropped == ("stream=false -> true",)


@pytest.mark.parametrize(
    "stream",
    [
        WHOLE.body or b"",
        b": OPENROUTER PROCESSING\n\n" + (WHOLE.body or b""),
        b"retry: 3000\n\n" + (WHOLE.body or b""),
        b"\xef\xbb\xbf" + (WHOLE.body or b""),
        (WHOLE.body or b"").replace(b"data: {", b"id:1\nevent:result\n:HTTP_STATUS/200\ndata:{"),
        (WHOLE.body or b"").replace(b"data: {", b"data: {\ndata: "),
        (WHOLE.body or b"").replace(b"\n", b"\r\n"),
        b"data: keep-alive\n\n" + (WHOLE.body or b""),
        (WHOLE.body or b"").removesuffix(b"\n\n"),
    ],
    ids=[
        "plain",
        "a comment first",
        "a pause first",
        "a BOM",
        "DashScope's names",
        "several lines",
        "CRLF",
        "a word",
        "no last line",
    ],
)
def test_a_stream_that_nobody_asked_for_is_read(stream: bytes) -> None:
    with ChatServer(script(Answer(body=stream, headers={"Content-Type": "text/event-stream"}))) as server:
        completion = ask_one(opened(server, price=PRICE))
    assert (completion.text, completion.usage.cost_usd) == ("Click.", pytest.approx(PAID))
    assert len(server.requests) == 1


def test_a_blocked_prompt_in_a_stream_is_refused_at_once() -> None:
    blocked = events({"choices": [], "promptFeedback": {"blockReason": "OTHER"}})
    with ChatServer(script(blocked)) as server, pytest.raises(CallError) as caught:
        ask_one(opened(server))
    assert (caught.value.name, len(server.requests)) == ("refused", 1)


def test_counts_at_the_end_of_a_stream_are_not_asked_for_where_they_are_refused() -> None:
    def answer(body: dict[str, Any]) -> Answer:
        if not body.get("stream"):
            return STREAMS["a gateway, openhuman#5165"]
        refusal = "Unrecognized request argument supplied: stream_options"
        return openai_error(400, refusal) if "stream_options" in body else WHOLE

    with ChatServer(answer) as server:
        model = opened(server)
        assert ask_one(model).text == "Click."
    assert model.dropped == ("stream=false -> true", "stream_options")


def test_a_response_that_only_streams_is_its_last_event() -> None:
    whole = {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}],
    }
    stream = events({"type": "response.created", "response": {"status": "in_progress"}}, {"type": "response.completed", "response": whole})  # fmt: skip
    refusal = STREAMS["a gateway, openhuman#5165"]
    with ChatServer(lambda body: stream if body.get("stream") else refusal) as server:
        assert ask_one(opened(server, **RESPONSES)).text == "Hi."
    assert "stream_options" not in server.requests[-1]


@pytest.mark.parametrize(
    "torn",
    [
        events(piece(content="I would cli"), done=False),
        events(piece(content="I would cli"), {"error": {"message": "upstream lost", "code": 502}}, done=False),
        events(piece(content="I would cli"), {"choices": [], "error": {"message": "upstream lost"}}),
        Answer(
            body=(events(piece(content="I would cli"), done=False).body or b"")
            + b'event: error\ndata: {"message": "lost"}\n\n'
        ),
        Answer(
            body=(events(piece(content="I would cli"), done=False).body or b"")
            + b"event: error\ndata: lost\n\n"
            + (events(piece("stop")).body or b"")
        ),
    ],
    ids=["no end", "an error behind it", "an error beside no choice", "an event of that name", "and in plain words"],
)
def test_a_stream_that_breaks_off_is_asked_for_again(torn: Answer) -> None:
    with ChatServer(script(torn, WHOLE)) as server:
        assert ask_one(opened(server)).text == "Click."
    assert len(server.requests) == 2


# --- pauses, counts, sentences ---


@pytest.mark.parametrize("ahead_s", [-86_400, 0, 86_400])
def test_a_date_to_retry_after_counts_from_the_servers_own_clock(ahead_s: int) -> None:
    now = time.time() + ahead_s
    headers = {"retry-after": formatdate(now + 30, usegmt=True), "date": formatdate(now, usegmt=True)}
    assert of_status(429, headers, b"{}").retry_after_s == 30


@pytest.mark.parametrize("reason", ["whim", "OTHER", {"type": "whim"}])
def test_a_reason_that_nobody_knows_is_counted_and_shown(reason: Any, tmp_path: Path) -> None:
    assert ending("OTHER") == "unknown"
    store, named = tmp_path / "replies.sqlite", "OTHER" if reason == "OTHER" else "whim"
    with ChatServer(script(reply("Click.", reason))) as server:
        model = opened(server, cache=store)
        first = ask_one(model)
        kept = ask_one(opened(server, cache=store))
    assert [one.call.finish_reason for one in (first, kept) if one.call] == [named, named]
    assert any(f"{named} (1)" in remark for remark in model.remarks)
    assert len(server.requests) == 1


def counted(prompts: list[tuple[int, int]]) -> tuple[str, ...]:
    """The remarks on a server that counts so many tokens of prompts of so many words."""
    counts = [tokens for _, tokens in prompts]
    usage = [{"body": {"usage": {**USAGE, "prompt_tokens": count}}} for count in counts]
    with ChatServer(script(*(reply("Hi.", **one) for one in usage))) as server:
        model = opened(server)

        async def run() -> None:
            for words, _ in prompts:
                message = Message("user", "word " * words)
                await model.complete(request(0, (message,)))
            await model.aclose()

        asyncio.run(run())
    return model.remarks


@pytest.mark.parametrize(
    ("prompts", "is_cut"),
    [
        ([(8000, 4096)], True),
        ([(8000, 2050)], True),
        ([(3500, 3000), (3300, 3000), (3100, 3000)], True),
        ([(300, 2050), (350, 2050), (400, 2050)], True),
        ([(3000, 3300), (3100, 3400), (3300, 3600)], False),
        ([(3000, 3300), (3000, 3300), (3000, 3300)], False),
        ([(3500, 3000), (3300, 3000)], False),
        ([(100, 20)] * 3, False),
        ([(8000, 0)], False),
    ],
    ids=["Ollama's num_ctx", "half of it", "one count of three", "one count of three with pictures", "its own counts", "equal prompts", "two alike", "short", "none"],
)  # fmt: skip
def test_a_prompt_that_is_cut_in_silence_is_remarked(prompts: list[tuple[int, int]], is_cut: bool) -> None:
    remarks = counted(prompts)
    assert bool(remarks) == is_cut
    assert not is_cut or "OLLAMA_CONTEXT_LENGTH" in remarks[0]


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_thoughts_without_an_answer_name_the_option(reason: str) -> None:
    with ChatServer(script(reply("", reason, message={"reasoning_content": "Hm, so"}))) as server:
        (found,) = ask_in_turn(opened(server, max_retries=0), 1)
    assert isinstance(found, CallError)
    assert found.name == ("empty_reply" if reason == "stop" else "truncated")
    assert "--max-tokens" in found.detail


@pytest.mark.parametrize("answer", [error(404, "404 page not found"), error(200, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}), error(404, {"detail": "Not Found"})])  # fmt: skip
@pytest.mark.parametrize(("path", "advice"), [("", "/v1"), ("/v1/chat/completions", "leave /chat/completions off")])
def test_an_address_that_lacks_its_path_is_named(answer: Answer, path: str, advice: str) -> None:
    with ChatServer(lambda body: "Hi.", lambda method, url, content: answer) as server:
        base_url = server.base_url.removesuffix("/v1") + path
        # the scripted server knows every path that ends as its own does
        server._answer = lambda body: answer  # type: ignore[method-assign]
        with pytest.raises(ModelStopped) as caught:
            ask_one(opened(server, base_url=base_url))
    assert advice in str(caught.value)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_key_in_quotation_marks_is_refused_before_anything_is_sent(
    quote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{quote}sk-0123456789{quote}")
    with pytest.raises(ModelSpecError, match="OPENAI_API_KEY: expected the key alone, got one in quotation marks"):
        OpenAIModel("m", ModelOptions(base_url="http://localhost:1/v1"))


@pytest.mark.parametrize(
    ("scheme", "answer", "advice"),
    [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "the port speaks no TLS: write http:// in --base-url"),
        ("http", b"\x15\x03\x03\x00\x02\x02\x32", "if the port speaks TLS, write https:// in --base-url"),
    ],
    ids=["TLS to a plain port", "a TLS port that answers with an alert"],
)
def test_the_wrong_scheme_names_the_right_one(scheme: str, answer: bytes, advice: str) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        model = open_model("openai/m", ModelOptions(base_url=url, max_retries=0))
        try:
            await model.complete(request(0, HELLO))
        finally:
            await model.aclose()
            server.close()

    with pytest.raises((ModelStopped, CallError)) as caught:
        asyncio.run(run())
    assert advice in str(caught.value)


def test_a_server_that_hangs_up_is_not_taken_for_one_of_tls() -> None:
    with ChatServer(script(Answer(hang_up=True))) as server:
        (found,) = ask_in_turn(opened(server, max_retries=0), 1)
    assert "https" not in str(found)


def test_the_advice_is_not_what_is_cut() -> None:
    words = {"error": {"message": "prompt is too long: " + "tokens " * 500}}
    failure = of_status(400, {}, json.dumps(words).encode())
    assert len(failure.detail) <= DETAIL_CHARS
    assert "--max-tokens" in failure.detail


# --- batches ---


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.source)
def test_a_batch_names_it_alike(row: Behaviour) -> None:
    options = ModelOptions(base_url="http://localhost:1/v1", price=PRICE, **row.options)
    body = row.answer.body or b""
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    line = {"custom_id": "k", "response": {"status_code": row.answer.status, "body": parsed}, "error": None}
    result = read_result(json.dumps(line).encode(), BatchCodec("openai/m", options))
    if row.outcome != "Hi." or row in TORN:
        assert (result.kept is not None) == row.kept
    if parsed is not None and row.outcome in NAMES:
        assert getattr(result.outcome, "name", None) == row.outcome


def test_a_batch_asks_without_the_system_role_from_the_next_wave_on() -> None:
    codec = BatchCodec("openai/m", ModelOptions(base_url="http://localhost:1/v1"))
    refusal = NO_SYSTEM["vLLM, Gemma"]
    failure = of_status(refusal.status, {}, refusal.body or b"")
    assert codec.give_way(codec.parameters, failure)
    line = json.loads(asyncio.run(codec.line("k", request(0, HELLO))))
    assert [message["role"] for message in line["body"]["messages"]] == ["user"]
