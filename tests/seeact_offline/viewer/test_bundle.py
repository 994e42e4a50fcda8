"""A run as a folder of files: complete, safe to write into, and without what must not be given away."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import seeact_offline as so
from seeact_offline.records import InputError
from seeact_offline.viewer.bundle import LIST, RESULTS, SETTINGS, public_index, write_bundle
from seeact_offline.viewer.site import Site
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import make_sample
from tests.seeact_offline.viewer.conftest import read_json

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def foreign_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on data that are not the sample."""
    folder = tmp_path_factory.mktemp("foreign")
    sample = make_sample(folder / "data", list(synthetic_rows(1, 2, 12, seed=1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(folder / "cache"))
        return so.evaluate(dataset=str(sample.dataset), scores=sample.scores, out=folder / "run").path


@pytest.fixture(scope="module")
def sample_site(other_run: Path) -> Site:
    """One task, as every picture of it is encoded."""
    return Site([other_run])


def texts_of(folder: Path) -> str:
    """All JSON of a bundle."""
    return "\n".join(path.read_text() for path in sorted(folder.rglob("*.json")))


def test_the_files_are_the_sites(sample_site: Site, tmp_path: Path) -> None:
    n = write_bundle(sample_site, tmp_path / "bundle")
    written = {
        str(path.relative_to(tmp_path / "bundle")): path for path in (tmp_path / "bundle").rglob("*") if path.is_file()
    }
    assert written.keys() == {*sample_site.names(), "robots.txt", LIST}
    assert n == len(written) - 1
    assert written["robots.txt"].read_text() == "User-agent: *\nDisallow: /\n"
    bundled, whole = json.loads(written["index.json"].read_bytes()), read_json(sample_site, "index.json")
    (run,), (own,) = bundled.pop("runs"), whole.pop("runs")
    assert bundled == whole | {"with_data": True}
    # of settings, those that can name no server and no file
    assert run == own | {"settings": {name: own["settings"][name] for name in SETTINGS if name in own["settings"]}}


def test_other_peoples_data_are_left_out(foreign_run: Path, tmp_path: Path) -> None:
    """Mind2Web's test sets must not be published: no task, page, picture, prompt, reply or value."""
    whole = Site([foreign_run])
    step = read_json(whole, f"step/{read_json(whole, 'index.json')['keys'][0]}.json")
    group = step["runs"][0]["groups"][0]
    secrets = [step["task"], step["elements"][0]["text"], group["prompts"][0], group["replies"][0]]
    assert all(secrets)
    write_bundle(whole, tmp_path / "bundle")
    said = texts_of(tmp_path / "bundle")
    assert [secret for secret in secrets if json.dumps(secret)[1:-1] in said] == []
    assert not (tmp_path / "bundle" / "img").exists()
    assert not (tmp_path / "bundle" / "replies.json").exists()
    assert "are left out of this copy" in said


def test_scores_and_ids_stay_in(foreign_run: Path, tmp_path: Path) -> None:
    site = Site([foreign_run])
    write_bundle(site, tmp_path)
    index, whole = json.loads((tmp_path / "index.json").read_text()), read_json(site, "index.json")
    assert (index["with_data"], index["cells"]) == (False, whole["cells"])
    name = f"step/{index['keys'][0]}.json"
    left, full = json.loads((tmp_path / name).read_text())["runs"][0], read_json(site, name)["runs"][0]
    assert left["outcome"] == full["outcome"]
    assert left.keys() == full.keys()
    assert left["groups"][0].keys() == full["groups"][0].keys()
    assert left["groups"][0]["offered"] == full["groups"][0]["offered"]


def test_a_run_that_calls_its_data_the_sample_is_not_believed(foreign_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(foreign_run, run)
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["settings"]["dataset"] = "sample"
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert Site([run]).is_sample is False


SECRET = "/home/ann/secret place"
"""A folder of this machine, which none has to know of."""


def paths_of(folder: Path) -> list[str]:
    """Every text of the index and the steps that says where something lies; what pages and models say may."""
    found: list[str] = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                found.extend([name] if SECRET in name else [])
                look(inner if name not in ("prompts", "replies", "system") else None)
        elif isinstance(value, list):
            for inner in value:
                look(inner)
        elif isinstance(value, str) and ("secret" in value or str(folder.parent) in value):
            found.append(value)

    for path in folder.rglob("*.json"):
        look(json.loads(path.read_text()))
    return found


@pytest.mark.parametrize("with_data", [True, False])
def test_no_bundle_says_where_anything_lies(foreign_run: Path, tmp_path: Path, with_data: bool) -> None:
    """The index had all of results.json, the names of runs, and reasons why something cannot be shown."""
    runs = [shutil.copytree(foreign_run, tmp_path / name / "run") for name in ("secret one", "secret two")]
    for name, changed in {
        "results.json": {
            "model": f"hf/{SECRET}/model",
            "ranker": f"{SECRET}/ranker",
            "oracle_file": f"{SECRET}/x.jsonl",
        },
        "manifest.json": {"settings": {"dataset": f"{SECRET}/data", "split": "cross_task"}},
    }.items():
        found = json.loads((runs[1] / name).read_text())
        (runs[1] / name).write_text(json.dumps(found | changed))
    lines = [json.loads(line) for line in (runs[0] / "predictions.jsonl").read_text().splitlines()]
    lines[0] |= {"ran": False, "failure": "bad_screenshot", "detail": f"expected a picture, got '{SECRET}/page.png'"}
    (runs[0] / "predictions.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    broken = shutil.copytree(foreign_run, tmp_path / "secret three" / "broken")
    (broken / "results.json").write_text("[]")
    write_bundle(Site([*runs, broken]), tmp_path / "bundle", with_data=with_data)
    assert paths_of(tmp_path / "bundle") == []
    index = json.loads((tmp_path / "bundle" / "index.json").read_text())
    assert index["title"] == "run (1) | run (2) | broken"
    assert (index["runs"][1]["model"], index["runs"][1]["ranker"]) == ("hf/model", "ranker")
    assert index["runs"][1]["problems"] == ["Pages, pictures, prompts and earlier actions of run (2) cannot be shown."]
    assert index["runs"][2]["problems"] == ["This run cannot be read."]
    assert index["runs"][0]["results"].keys() == set(RESULTS)


@pytest.mark.parametrize(
    "name",
    ["openai/gpt-4o", "hf/org/model", "openai/meta-llama/Llama-3", "org/name", "bm25", "cross_task", "", "a and/or b"],
)
def test_what_is_no_path_stays_in(foreign_run: Path, name: str) -> None:
    index = read_json(Site([foreign_run]), "index.json")
    run = {**index["runs"][0], "model": name, "ranker": name}
    left = public_index({**index, "runs": [run]}, True)["runs"][0]
    assert (left["model"], left["ranker"]) == (name, name)


def test_a_folder_of_something_else_and_a_file_are_refused(sample_site: Site, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(InputError, match=r"holds other files; name a new folder"):
        write_bundle(sample_site, tmp_path)
    with pytest.raises(InputError, match="is a file; name a folder"):
        write_bundle(sample_site, tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_bundle_is_written_anew(sample_site: Site, foreign_run: Path, tmp_path: Path) -> None:
    write_bundle(sample_site, tmp_path / "bundle")
    site = Site([foreign_run])
    write_bundle(site, tmp_path / "bundle")
    steps = {path.name for path in (tmp_path / "bundle" / "step").iterdir()}
    assert steps == {f"{key}.json" for key in read_json(site, "index.json")["keys"]}
    assert not list((tmp_path / "bundle" / "img").iterdir())


def test_a_list_that_is_not_ours_removes_nothing(sample_site: Site, tmp_path: Path) -> None:
    (tmp_path / "precious.bin").write_text("...")
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / LIST).write_text(json.dumps({"schema": 1, "files": ["../precious.bin", "/etc/passwd", 7]}))
    write_bundle(sample_site, folder)
    assert (tmp_path / "precious.bin").exists()


def test_a_check_is_told_without_values_and_paths(foreign_run: Path, tmp_path: Path) -> None:
    write_bundle(Site([foreign_run]), tmp_path)
    (check,) = json.loads((tmp_path / "checks.json").read_text())["runs"]
    assert (check["status"], check["differences"], check["not_proved"]) == ("verified in part", [], [])
