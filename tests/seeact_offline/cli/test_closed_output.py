"""A run outlives whatever reads what it prints, and its status says what was done."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seeact_offline.files.digest import cache_folder
from tests.seeact_offline.conftest import RESULT_FILES, Cli, Sample

REPO = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("{ COMMAND; echo $? >status; } | head -c 0", ""),
        ("{ COMMAND; echo $? >status; } 2>&1 | true", ""),
        ("COMMAND 2>/dev/full >/dev/null; echo $? >status", ""),
        ("COMMAND >/dev/full; echo $? >status", "standard output could not be written: No space left on device"),
        ("COMMAND >&- 2>&-; echo $? >status", ""),
    ],
)
def test_a_run_whose_output_is_closed_is_done_whole(shell: str, said: str, sample: Sample, tmp_path: Path) -> None:
    words = [sys.executable, str(REPO / "scripts" / "eval.py"), *sample.words, "--top-k", "6", "--out", "run"]
    script = shell.replace("COMMAND", shlex.join(words))
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    assert (tmp_path / "status").read_text() == "0\n"
    assert all((tmp_path / "run" / name).stat().st_size for name in RESULT_FILES)
    assert (done.stderr.splitlines() or [""])[-1] == said or not said
    assert "Traceback" not in done.stderr


def test_an_encoding_that_lacks_a_character_ends_nothing(sample: Sample) -> None:
    words = [
        sys.executable,
        "-c",
        "from seeact_offline.cli.output import lasting_output, say\nwith lasting_output(): say('caf\u00e9 \u2630')",
    ]
    done = subprocess.run(
        words, cwd=REPO, env={**os.environ, "PYTHONIOENCODING": "cp1252"}, capture_output=True, check=True
    )
    assert done.stdout.decode("cp1252").strip() == "caf\u00e9 \\u2630"


def test_a_user_without_a_home_folder_keeps_nothing(cli: Cli, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "SEEACT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    # without scores the candidates are ranked, and scores are kept
    assert cli("show", "--dataset", sample.dataset, "--split", "cross_task", "--ranker", "bm25").status == 0
    assert not cache_folder().exists()


@pytest.mark.slow
def test_a_terminated_run_says_what_an_interrupted_one_says(sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import time\ndef model(messages):\n    open('asked', 'w').close()\n    time.sleep(0.2)\n    return 'x'\n"
    )
    words = [
        sys.executable,
        str(REPO / "scripts" / "eval.py"),
        *sample.words,
        "--model",
        "slow.py:model",
        "--concurrency",
        "1",
    ]
    with subprocess.Popen([*words, "--out", "run"], cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "asked").exists() and process.poll() is None:
            time.sleep(0.05)
        process.terminate()
        said = process.communicate(timeout=60)[1]
    assert said.splitlines()[-1] == "interrupted: the same command resumes"
    assert " kept in run" in said
    assert process.returncode == 130
