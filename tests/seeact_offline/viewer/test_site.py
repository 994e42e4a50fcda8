"""The site as a whole: which names there are, and that no other name leads anywhere."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import seeact_offline as so
from seeact_offline.records import InputError
from seeact_offline.results.recompute import rescore
from seeact_offline.viewer import site as sites
from seeact_offline.viewer.notes import AlsoRightNotes, CauseNotes
from seeact_offline.viewer.run_data import read_run
from seeact_offline.viewer.server import Address
from seeact_offline.viewer.site import Site
from seeact_offline.viewer.site_files import json_file
from tests.seeact_offline.conftest import Sample
from tests.seeact_offline.viewer.conftest import ask, read_json


@pytest.mark.slow
def test_there_is_something_under_every_name(other_run: Path) -> None:
    site = Site([other_run])
    names = list(site.names())
    assert {name.partition("/")[0] for name in names if "/" in name} == {"step", "img"}
    assert len(set(names)) == len(names)
    assert all(site.get(name) is not None for name in names)


@pytest.mark.parametrize(
    "path",
    [
        "/step/../../etc/passwd",
        "/step/%2e%2e/%2e%2e/etc/passwd",
        "/step/..%2f..%2fetc%2fpasswd",
        "/..%5c..%5cmanifest.json",
        "//etc/passwd",
        "/%2fetc%2fpasswd",
        "/site.py",
        "/static/main.js",
        "/../site.py",
        "/index.json%00",
        "/index.json/",
        "/step/%00.json",
        "/step/.json",
        "/img/",
        "/img/..%2f..%2fpredictions.jsonl",
        "/predictions.jsonl",
        "/step/" + "a" * 5000 + ".json",
    ],
)
def test_no_path_leads_out_of_the_index(served: Address, path: str) -> None:
    assert ask(served, path).status == 404


def test_the_server_gives_the_files_of_the_site(served: Address, sample_site: Site) -> None:
    key = read_json(sample_site, "index.json")["keys"][0]
    picture = read_json(sample_site, f"step/{key}.json")["picture"]["parts"][0]["src"]
    for name, kind in (
        ("index.json", "application/json"),
        (f"step/{key}.json", "application/json"),
        (picture, "image/webp"),
    ):
        found = sample_site.get(name)
        assert found is not None
        answer = ask(served, f"/{name}?ignored=1")
        assert (answer.status, answer.content) == (200, found.content)  # type: ignore[attr-defined]
        assert answer.headers["Content-Type"] == kind
    assert (found.content[:4], found.content[8:12]) == (b"RIFF", b"WEBP")


def test_one_run_twice_and_a_folder_without_a_run_are_refused(sample_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="twice"):
        Site([sample_run, sample_run])
    with pytest.raises(InputError, match=r" has no manifest\.json; name the folder of a run$"):
        Site([tmp_path])


def test_runs_of_one_name_are_called_by_their_paths(sample_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / sample_run.name
    shutil.copytree(sample_run, copy)
    names = [run["name"] for run in read_json(Site([sample_run, copy]), "index.json")["runs"]]
    assert names == [str(sample_run), str(copy)]


@pytest.mark.parametrize(("named", "expected"), [(None, ["b", "a", "c"]), ("c", ["c", "a", "b"])])
def test_the_oldest_run_stands_first_unless_a_baseline_is_named(
    sample_run: Path, tmp_path: Path, named: str | None, expected: list[str]
) -> None:
    for name, date in {"a": "2026-03-02", "b": "2026-03-01", "c": None}.items():
        manifest = json.loads((shutil.copytree(sample_run, tmp_path / name) / "manifest.json").read_text())
        (tmp_path / name / "manifest.json").write_text(json.dumps(manifest | {"made": {"date": date}}))
    site = Site([tmp_path / name for name in "abc"], baseline=None if named is None else tmp_path / named)
    index = read_json(site, "index.json")
    assert [run["name"] for run in index["runs"]] == expected
    assert [(pair["a"], pair["b"]) for pair in index["comparison"]["pairs"]] == [(0, 1), (0, 2)]


def test_data_named_by_a_relative_path_are_found_from_elsewhere(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sample.dataset, tmp_path / "work" / "data")
    monkeypatch.chdir(tmp_path / "work")
    run = so.evaluate(dataset="data", scores=sample.scores, limit=1, out="runs/a").path.resolve()
    monkeypatch.chdir(tmp_path)
    assert Site([run]).data_problems == []
    shutil.rmtree(tmp_path / "work" / "data")
    (problem,) = Site([run]).data_problems
    assert problem.endswith("name the data with `view --dataset DIR`.")


def test_data_with_other_rows_are_named_once_the_first_step_is_opened(sample: Sample, tmp_path: Path) -> None:
    shutil.copytree(sample.dataset, tmp_path / "data")
    run = so.evaluate(dataset=str(tmp_path / "data"), scores=sample.scores, limit=1, out=tmp_path / "run").path
    path = next((tmp_path / "data").rglob("test_task*.parquet"))
    pq.write_table(pq.read_table(path).slice(1), path)
    site = Site([run])
    assert read_json(site, "index.json")["runs"][0]["problems"] == []
    (problem,) = site.prepare()
    assert "other rows in " in problem
    assert read_json(site, "index.json")["runs"][0]["problems"] == [problem]
    assert site.prepare() == []


def test_a_run_is_read_again_when_a_file_changes_unless_it_is_half_written(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "RELOAD_AFTER", 0.0)
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    for name in ("results.json", "steps.jsonl", "report.md"):
        (run / name).unlink()
    lines = (run / "predictions.jsonl").read_text().splitlines(keepends=True)
    (run / "predictions.jsonl").write_text("".join(lines[:3]))
    site = Site([run])
    for n in (3, 5):
        (run / "predictions.jsonl").write_text("".join(lines[:n]))
        assert read_json(site, "index.json")["runs"][0]["progress"]["done"] == n
    before = read_json(site, "index.json")
    (run / "results.json").write_text("{")
    assert read_json(site, "index.json") == before


def test_others_are_answered_while_one_request_reads_the_runs_again(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "RELOAD_AFTER", 0.0)
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    site = Site([run])
    before, reading, end = read_json(site, "index.json"), threading.Event(), threading.Event()
    monkeypatch.setattr(sites, "read_run", lambda *_: (reading.set(), end.wait(20), read_run(run))[-1])
    (run / "manifest.json").touch()
    slow = threading.Thread(target=site.get, args=("index.json",))
    slow.start()
    assert reading.wait(20)
    assert read_json(site, "index.json") == before
    end.set()
    slow.join()


def test_json_holds_what_browsers_can_read() -> None:
    """Python writes NaN and half characters, for which JSON has no word."""
    content = json_file({"x": float("nan"), "text": "half \ud83d"}).content
    assert json.loads(content.decode("ascii"), parse_constant=pytest.fail) == {"x": None, "text": "half \ud83d"}


# --- a person's causes of loss ---


@pytest.fixture
def judged_site(sample_run: Path, tmp_path: Path) -> Iterator[Site]:
    """One that keeps what a person says, in `causes.jsonl`."""
    with closing(Site([sample_run], causes=CauseNotes(tmp_path / "causes.jsonl", "Ann"))) as site:
        yield site


def save(site: Site, key: str, **said: str) -> int:
    """The status of a cause that the page sends about what it shows."""
    digest = read_json(site, f"step/{key}.json")["runs"][0]["answer_sha256"]
    return site.post(f"cause/{key}", {"run": 0, "answer_sha256": digest, **said})[0]


def test_a_persons_cause_is_shown_with_the_step(judged_site: Site, tmp_path: Path) -> None:
    key = read_json(judged_site, "index.json")["keys"][0]
    assert read_json(judged_site, f"step/{key}.json")["runs"][0]["relabelled"] is None
    assert save(judged_site, key, cause="wrong_op", note="both would do") == 200
    said = read_json(judged_site, f"step/{key}.json")["runs"][0]["relabelled"]
    assert said == {"cause": "wrong_op", "note": "both would do", "annotator": "Ann"}
    assert len((tmp_path / "causes.jsonl").read_text().splitlines()) == 1


def test_a_persons_cause_stands_in_the_list_beside_the_outcome(judged_site: Site) -> None:
    before = read_json(judged_site, "index.json")
    assert before["cells"][0]["person_cause"] == {"values": [], "row": [-1] * before["n"]}
    save(judged_site, before["keys"][2], cause="data_fault")
    index = read_json(judged_site, "index.json")
    persons = index["cells"][0].pop("person_cause")
    assert persons == {"values": ["data_fault"], "row": [0 if row == 2 else -1 for row in range(index["n"])]}
    del before["cells"][0]["person_cause"]
    assert index == before


def test_a_cause_that_was_scored_is_shown_without_the_file(sample_run: Path, tmp_path: Path) -> None:
    """As `score --causes` kept it: the step is still one that was answered."""
    run = tmp_path / "run"
    shutil.copytree(sample_run, run)
    with closing(Site([run], causes=CauseNotes(tmp_path / "causes.jsonl"))) as site:
        before = read_json(site, "index.json")
        row = before["cells"][0]["success"].index(0)
        save(site, before["keys"][row], cause="data_fault", note="of no use")
    rescore(run, causes=tmp_path / "causes.jsonl")
    site = Site([run])
    index = read_json(site, "index.json")
    assert index["cells"][0]["outcome"] == before["cells"][0]["outcome"]
    assert index["cells"][0]["person_cause"]["row"][row] == 0
    found = read_json(site, f"step/{index['keys'][row]}.json")["runs"][0]
    assert found["relabelled"]["cause"] == "data_fault"
    assert not found["cause"].startswith("never asked")


def test_the_list_names_the_causes_that_a_person_may_give(judged_site: Site, sample_site: Site) -> None:
    assert "wrong_element" in read_json(judged_site, "index.json")["causes"]
    assert read_json(sample_site, "index.json")["causes"] is None


@pytest.mark.parametrize(
    ("name", "run", "status"),
    [
        *[("cause/{key}", run, 400) for run in (-1, 1, "0", True, None)],
        *[(name, 0, 404) for name in ("cause/none", "step/{key}", "cause/{key}/x", "{key}")],
    ],
)
def test_causes_of_no_run_and_other_names_are_refused(judged_site: Site, name: str, run: object, status: int) -> None:
    key = read_json(judged_site, "index.json")["keys"][0]
    assert judged_site.post(name.format(key=key), {"run": run, "cause": "wrong_op"})[0] == status


def test_an_answer_that_is_right_too_is_shown_with_the_step_and_kept(sample_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "also.jsonl"
    with closing(Site([sample_run], also_right=AlsoRightNotes(file, "Ann"))) as site:
        keys = read_json(site, "index.json")["keys"]
        held = {key: read_json(site, f"step/{key}.json")["runs"][0] for key in keys}
        assert {one["also_right"] for one in held.values()} <= {None, False}
        key = next(key for key in keys if held[key]["also_right"] is False and held[key]["outcome"] != "success")
        body = {"run": 0, "answer_sha256": held[key]["answer_sha256"], "right": True}
        assert site.post(f"also/{key}", body) == (200, {"saved": True, "also_right": True})
        assert read_json(site, f"step/{key}.json")["runs"][0]["also_right"] is True
        assert site.post(f"cause/{key}", {"run": 0, "cause": "wrong_op"})[0] == 404
    second = rescore(sample_run, also_right=file, out=tmp_path / "scored").results["also_right"]
    assert (second["n_steps"], second["n_gained"]) == (1, 1)


def test_without_a_file_nothing_is_kept(sample_site: Site) -> None:
    key = read_json(sample_site, "index.json")["keys"][0]
    assert sample_site.post(f"cause/{key}", {"run": 0, "cause": "wrong_op"})[0] == 404


def test_a_run_is_checked_when_that_is_asked_for_and_again_once_it_changes(
    sample_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    monkeypatch.setattr("seeact_offline.viewer.site.RELOAD_AFTER", -1)
    site = Site([run])
    (whole,) = read_json(site, "checks.json")["runs"]
    assert (whole["status"], whole["differences"]) == ("verified in part", [])
    results = json.loads((run / "results.json").read_text())
    results["step_success_rate"]["macro"] = 0.695
    (run / "results.json").write_text(json.dumps(results, indent=2))
    (edited,) = read_json(site, "checks.json")["runs"]
    assert edited["status"] == "not verified"
    assert edited["differences"][0].startswith("results.json: step_success_rate.macro is 0.695")


@pytest.mark.slow
def test_a_large_run_is_checked_in_a_process_of_its_own(sample_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read_json(Site([sample_run]), "checks.json")
    begun: list[str] = []
    start = multiprocessing.context.SpawnProcess.start
    monkeypatch.setattr(
        multiprocessing.context.SpawnProcess, "start", lambda process: (begun.append(process.name), start(process))[-1]
    )
    monkeypatch.setattr(sites, "MANY_STEPS", 1)
    assert read_json(Site([sample_run]), "checks.json") == whole
    assert len(begun) == 1


def test_an_unfinished_run_is_not_checked(sample_run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    (run / "results.json").unlink()
    assert read_json(Site([run]), "checks.json") == {"runs": [None]}
