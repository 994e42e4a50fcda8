"""Run folders that somebody else made: one sentence a run, and the other runs are shown."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.records import InputError
from seeact_offline.viewer import site as sites
from seeact_offline.viewer.run_data import FILES
from seeact_offline.viewer.site import Site
from tests.seeact_offline.viewer.conftest import read_json

DEEP = "[" * 100_000


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 200 << 20)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": device,
    "folder": os.mkdir,
    "deep": lambda path: path.write_text(DEEP + "\n") and None,
    "deep field": lambda path: path.write_text('{"x": ' * 1000 + "1" + "}" * 1000 + "\n") and None,
    "list": lambda path: path.write_text("[1]\n") and None,
    "no text": lambda path: path.write_bytes(b"\xff\xfe{\n") and None,
}


@pytest.fixture
def run(sample_run: Path, tmp_path: Path) -> Path:
    """A run to be spoilt."""
    return Path(shutil.copytree(sample_run, tmp_path / "bad"))


def shown_beside(good: Path, bad: Path) -> str:
    """Both are looked at; all is shown of the good one. What is said of the bad one."""
    index = read_json(Site([bad, good], baseline=bad), "index.json")
    assert [len(run["problems"]) for run in index["runs"]] == [1, 0]
    assert index["runs"][1]["results"] is not None
    assert -1 not in index["cells"][1]["outcome"]["row"]
    step = read_json(Site([bad, good], baseline=bad), f"step/{index['keys'][0]}.json")
    assert [one is None for one in step["runs"]] == [True, False]
    return str(index["runs"][0]["problems"][0])


@pytest.mark.parametrize(
    ("name", "kind"),
    # a ledger is read as far as it can be
    [
        (name, kind)
        for name in FILES
        for kind in KINDS
        if name != "spending.jsonl" or kind in ("pipe", "device", "folder")
    ],
)
def test_what_is_no_file_of_a_run_is_one_sentence(sample_run: Path, run: Path, name: str, kind: str) -> None:
    if name == "spending.jsonl":
        # what a finished run has cost is in its results
        (run / "results.json").unlink()
    (run / name).unlink(missing_ok=True)
    KINDS[kind](run / name)
    sentence = shown_beside(sample_run, run)
    assert sentence.startswith("This run cannot be read: ")
    assert name in sentence
    assert len(sentence) < 1000
    with pytest.raises(InputError) as caught:
        Site([run])
    assert sentence == f"This run cannot be read: {caught.value}."


@pytest.mark.parametrize("name", ["manifest.json", "results.json"])
def test_a_small_file_of_200_mb_is_not_read(sample_run: Path, run: Path, name: str) -> None:
    (run / name).unlink()
    huge(run / name)
    assert "more than 16,777,216 bytes" in shown_beside(sample_run, run)


def odd(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.update(changed)


def odd_setting(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda found: found["settings"].update(changed)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("manifest.json", odd(settings=[]), "settings to be an object or null, got []"),
        ("manifest.json", odd(identity="x"), "identity to be an object or null, got 'x'"),
        ("manifest.json", odd(packages=[1]), "packages to be an object or null, got [1]"),
        ("manifest.json", odd_setting(split=["all"]), "settings.split to be a text or null"),
        ("manifest.json", odd_setting(grounding={}), "settings.grounding to be a text or null"),
        ("manifest.json", odd_setting(protocol=1), "settings.protocol to be a text or null"),
        ("manifest.json", odd_setting(dataset=["x"]), "settings.dataset to be a text or null"),
        ("manifest.json", odd_setting(limit=-1), "settings.limit to be a whole number"),
        ("manifest.json", odd_setting(tasks=7), "settings.tasks to be a list or null"),
        ("manifest.json", odd_setting(model={"a": 1}), "settings.model to be a text or null"),
        ("results.json", odd(model={"a": 1}), "model to be a text"),
        ("results.json", odd(element_accuracy="high"), "element_accuracy to be an object or null"),
        ("results.json", odd(element_accuracy={"macro": "1"}), "element_accuracy.macro to be a number"),
        ("results.json", odd(operation_f1={"macro": 0, "micro": 0, "ci95": 3}), "operation_f1.ci95 to be"),
        ("results.json", odd(usage=[]), "usage to be an object"),
        ("results.json", odd(complete="yes"), "complete to be true or false"),
    ],
)
def test_an_odd_manifest_or_result_is_one_sentence(
    sample_run: Path, run: Path, name: str, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    found = json.loads((run / name).read_text())
    change(found)
    (run / name).write_text(json.dumps(found))
    assert said in shown_beside(sample_run, run)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2, "1"])
def test_a_score_that_is_no_share_is_one_sentence(sample_run: Path, run: Path, value: Any) -> None:
    lines = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    lines[3]["element"] = value
    (run / "steps.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "in line 4 of " in shown_beside(sample_run, run)


@pytest.mark.parametrize("dataset", ["\0", "x" * 5000, "/dev/zero", "{pipe}", "{pipes}"])
def test_odd_data_of_a_run_leave_its_answers(sample_run: Path, run: Path, dataset: str) -> None:
    os.mkfifo(run / "pipe.jsonl")
    (run / "pipes").mkdir()
    os.mkfifo(run / "pipes" / "test_task-0.parquet")
    found = json.loads((run / "manifest.json").read_text())
    found["settings"]["dataset"] = dataset.format(pipe=run / "pipe.jsonl", pipes=run / "pipes")
    (run / "manifest.json").write_text(json.dumps(found))
    index = read_json(Site([run]), "index.json")
    assert "cannot be shown: " in index["runs"][0]["problems"][0]
    assert read_json(Site([run]), f"step/{index['keys'][0]}.json")["runs"][0]["groups"]


@pytest.mark.parametrize("name", ["model", "grounding", "protocol"])
@pytest.mark.parametrize("finished", [True, False])
def test_no_code_is_loaded_that_a_manifest_names(sample_run: Path, run: Path, name: str, finished: bool) -> None:
    """A run of somebody else is only looked at."""
    marker, code = run.parent / "loaded", run.parent / "code.py"
    code.write_text(f"open({str(marker)!r}, 'w').close()\nTHING = 1\n")
    for file in ("manifest.json", "results.json"):
        found = json.loads((run / file).read_text())
        (found if file == "results.json" else found["settings"])[name] = f"{code}:THING"
        (run / file).write_text(json.dumps(found))
    if not finished:
        (run / "results.json").unlink()
    index = read_json(Site([sample_run, run]), "index.json")
    read_json(Site([sample_run, run]), f"step/{index['keys'][0]}.json")
    assert not marker.exists()


def test_the_runs_that_can_be_read_are_compared(sample_run: Path, other_run: Path, run: Path) -> None:
    (run / "results.json").write_text("[]")
    comparison = read_json(Site([other_run, run, sample_run], baseline=other_run), "index.json")["comparison"]
    assert [(pair["a"], pair["b"]) for pair in comparison["pairs"]] == [(0, 2)]
    assert (
        comparison["pairs"][0]["metrics"]
        == (
            read_json(Site([other_run, sample_run], baseline=other_run), "index.json")["comparison"]["pairs"][0][
                "metrics"
            ]
        )
    )


def test_a_run_that_is_mended_is_shown(sample_run: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "RELOAD_AFTER", 0.0)
    good = (run / "results.json").read_bytes()
    (run / "results.json").write_text("[]")
    site = Site([run, sample_run], baseline=run)
    assert read_json(site, "index.json")["cells"][0]["outcome"]["values"] == []
    (run / "results.json").write_bytes(good)
    index = read_json(site, "index.json")
    assert index["cells"][0] == index["cells"][1]
    assert read_json(site, f"step/{index['keys'][0]}.json")["runs"][0]["groups"][0]["prompts"]


def test_a_run_that_is_being_written_does_not_keep_others_from_going_on(
    sample_run: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "RELOAD_AFTER", 0.0)
    other = Path(shutil.copytree(run, run.parent / "other"))
    site = Site([run, other])
    (run / "results.json").write_text("{")
    lines = (other / "steps.jsonl").read_text().splitlines(keepends=True)
    results = json.loads((other / "results.json").read_text()) | {"model": "another"}
    (other / "results.json").write_text(json.dumps(results))
    index = read_json(site, "index.json")
    assert [one["model"] for one in index["runs"]] == ["builtin/lexical", "another"]
    assert len(lines) == index["n"]
