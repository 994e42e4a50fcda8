"""The same tiny vision-language models over HTTP, behind `transformers serve`, and in this process through `hf/`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.run import Run
from tests.tiny_models import save_llava, save_qwen2_5_vl

COMMAND = Path(sys.executable).with_name("transformers")
MISSING = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
START_S = 60

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        bool(MISSING) or not COMMAND.exists(), reason=f"transformers serve needs {', '.join(MISSING) or COMMAND}"
    ),
]


@contextmanager
def serving(folder: Path, log: Path) -> Iterator[str]:
    """The base URL of a server that has the model loaded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with (
        log.open("wb") as out,
        subprocess.Popen([COMMAND, "serve", *where, folder], env=environment, stdout=out, stderr=out) as server,
    ):
        try:
            _wait(server, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def _wait(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(START_S * 5):
        assert server.poll() is None, log.read_text()
        try:
            opener.open(url, timeout=1).close()
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"transformers serve does not answer after {START_S} s: {log.read_text()}")


def run(model: str, out: Path, **options: Any) -> Run:
    sample: dict[str, Any] = {"dataset": "sample", "split": "cross_website", "limit": 1, "ranker": "bm25", "top_k": 10}
    return evaluate(model=model, max_tokens=64, out=out, **sample, **options)


def said(run: Run) -> dict[Any, list[tuple[str, ...]]]:
    """What the model said, group by group."""
    predictions = RunFolder(run.path).load()
    return {key: [group.replies for group in prediction.groups] for key, prediction in predictions.items()}


def test_a_server_and_this_process_say_the_same(tmp_path: Path) -> None:
    folder = save_llava(tmp_path / "tiny-llava")
    with serving(folder, tmp_path / "log.txt") as base_url:
        served = run(f"openai/{folder}", tmp_path / "served", base_url=base_url)
    local = run(f"hf/{folder}", tmp_path / "local")
    for finished in (served, local):
        assert finished.n_left == 0
        assert all(prediction.ran for prediction in RunFolder(finished.path).load().values())
        assert not {"truncated", "empty_reply"} & {*finished.results["failures"], *finished.results["reply_failures"]}
    assert said(served) == said(local)
    counted = ("calls", "prompt_tokens", "completion_tokens")
    assert [served.results["usage"][name] for name in counted] == [local.results["usage"][name] for name in counted]
    assert served.results["element_accuracy"] == local.results["element_accuracy"]
    assert local.results["usage"]["image_tokens"] == local.results["usage"]["calls"] * 16


CLICK = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [56, 280]}}\n</tool_call>'


@pytest.mark.skipif(find_spec("torchvision") is None, reason="the processor of Qwen2.5-VL needs torchvision")
@pytest.mark.parametrize(
    ("says", "options"), [(CLICK, {"max_pixels": 500_000}), (None, {})], ids=["a click", "nonsense"]
)
def test_qwen_sees_pictures_at_the_size_of_its_rule_and_each_reply_is_read_or_named(
    says: str | None, options: dict[str, Any], tmp_path: Path
) -> None:
    folder = save_qwen2_5_vl(tmp_path / "tiny-qwen", says=says)
    options = {"agent": "qwen2.5-vl", "split": "cross_website", "limit": 1, "max_tokens": 128, **options}
    local = evaluate(model=f"hf/{folder}", out=tmp_path / "local", **options)
    with serving(folder, tmp_path / "log.txt") as base_url:
        served = evaluate(model=f"openai/{folder}", base_url=base_url, out=tmp_path / "served", **options)
    for here, there in zip(local.predictions(), served.predictions(), strict=True):
        shown = here.groups[0].shown
        assert shown is not None
        assert shown == there.groups[0].shown
        width, height = shown.sent
        assert shown.resized == shown.sent != shown.part[2:]
        # a token is 28 x 28 pixels of what the model looks at: there are others where it resizes once more
        assert here.usage.image_tokens == width // 28 * (height // 28)
        assert there.usage.prompt_tokens == here.usage.prompt_tokens
        assert there.usage.completion_tokens == here.usage.completion_tokens
        for one in (here, there):
            assert one.ran
            if says is None:
                assert one.failure in {"no_act", "point_outside", "truncated", "empty_reply"}
            else:
                assert one.point == pytest.approx((56 * shown.part[2] / width, 280 * shown.part[3] / height))
