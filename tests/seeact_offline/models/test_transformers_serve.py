"""The same tiny vision-language model over HTTP, behind `transformers serve`, and in this process through `hf/`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.runs.evaluate import evaluate
from seeact_offline.runs.folder import RunFolder
from seeact_offline.runs.run import Run
from tests.tiny_models import save_llava

COMMAND = Path(sys.executable).with_name("transformers")
MISSING = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
START_S = 60

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(MISSING) or not COMMAND.exists(), reason=f"transformers serve needs {', '.join(MISSING) or COMMAND}"
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llava(tmp_path_factory.mktemp("models") / "tiny-llava")


@pytest.fixture(scope="module")
def base_url(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server that has the model loaded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log.txt"
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


def test_a_server_and_this_process_say_the_same(folder: Path, base_url: str, tmp_path: Path) -> None:
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
