"""Data sets of the hub, through its own client and a server on this machine."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import seeact_offline as so
from seeact_offline import load_steps
from seeact_offline.dataset import open_split
from seeact_offline.files import hub as client
from seeact_offline.records import DatasetError, RowError
from tests.hub_server import HubServer, Refusal
from tests.lazily import datasets
from tests.pages import synthetic_rows, write_parquet

NAME = "owner/pages"
SPLIT = "cross_website"
N_SHARDS, N_TASKS, N_STEPS = 4, 2, 2
"""Of the split; tasks a shard, steps a task."""


def shard(at: int, split: str = "test_website", of: int = N_SHARDS) -> str:
    return f"data/{split}-{at:05}-of-{of:05}.parquet"


def noise() -> bytes:
    """A picture of some 250 kB."""
    file = io.BytesIO()
    Image.effect_noise((500, 500), 60).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The data set: a split in several files, and another."""
    folder = tmp_path_factory.mktemp("pages")
    for at in range(N_SHARDS):
        rows = list(synthetic_rows(N_TASKS, N_STEPS, 4, seed=at))
        # noise, which no compression makes small
        rows = [row | {"screenshot": {"bytes": noise(), "path": None}} for row in rows]
        write_parquet(rows, folder / shard(at))
    write_parquet(synthetic_rows(1, 1, 3, seed=9), folder / shard(0, "train", 1))
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


@pytest.fixture
def commit(hub: HubServer, files: dict[str, bytes]) -> str:
    return hub.publish("datasets", NAME, files)


def fetched(hub: HubServer) -> set[str]:
    """The files of which something was sent in a whole answer."""
    return {request.partition("/resolve/")[2][41:] for request in hub.requests if request.startswith("GET /datasets/")}


def restarted(monkeypatch: pytest.MonkeyPatch, is_offline: bool = False) -> None:
    """What the process knows of the hub is forgotten."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", is_offline)
    client._open_repo.cache_clear()
    client._unreachable.cache_clear()


def predictions(out: Path, dataset: object, **more: Any) -> bytes:
    so.evaluate(dataset=dataset, split=SPLIT, ranker="bm25", model="builtin/lexical", out=out, **more)
    return (out / "predictions.jsonl").read_bytes()


def refusal(hub_id: str = NAME, split: str = SPLIT) -> str:
    with pytest.raises(DatasetError) as refused:
        list(load_steps(hub_id, split))
    return str(refused.value)


# --- what is read -----------------------------------------------------------------------------------------------------


def test_a_split_is_fetched_alone(hub: HubServer, commit: str, files: dict[str, bytes]) -> None:
    assert len(list(load_steps(NAME, SPLIT))) == N_SHARDS * N_TASKS * N_STEPS
    assert fetched(hub) == {shard(at) for at in range(N_SHARDS)}


def test_the_same_predictions_come_from_the_hub_online_and_offline_a_folder_and_an_object(
    hub: HubServer, commit: str, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in files.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(content)
    paths = {"test_website": [str(tmp_path / "folder" / shard(at)) for at in range(N_SHARDS)]}
    made = {"online": predictions(tmp_path / "online", NAME)}
    restarted(monkeypatch, is_offline=True)
    made["offline"] = predictions(tmp_path / "offline", NAME)
    made["folder"] = predictions(tmp_path / "of-folder", tmp_path / "folder")
    table = datasets.load_dataset("parquet", data_files=paths, cache_dir=str(tmp_path / "arrow"))
    made["object"] = predictions(tmp_path / "object", table)
    assert len(made["online"].splitlines()) == N_SHARDS * N_TASKS * N_STEPS
    assert set(made.values()) == {made["online"]}


def test_the_commit_is_in_the_manifest_the_results_and_the_report(hub: HubServer, commit: str, tmp_path: Path) -> None:
    predictions(tmp_path, NAME)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["settings"]["dataset"] == f"{NAME}@{commit}"
    assert json.loads((tmp_path / "results.json").read_text())["dataset"] == f"{NAME}@{commit}"
    assert commit in (tmp_path / "report.md").read_text()


@pytest.mark.parametrize("named", ["branch", "commit"])
def test_a_revision_is_read_as_it_is_named(
    hub: HubServer, commit: str, files: dict[str, bytes], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = hub.publish("datasets", NAME, {shard(0, of=1): files[shard(3)]}, branch="v1/first")
    revision = {"branch": "v1/first", "commit": old}[named]
    for is_offline in (False, True):
        restarted(monkeypatch, is_offline)
        split = open_split(f"{NAME}@{revision}", SPLIT)
        assert split.dataset == f"{NAME}@{old}"
        assert [step.website for step in split.steps()] == [step.website for step in load_steps(NAME, SPLIT)][-4:]


def test_a_branch_that_moves_leaves_a_run_its_commit(
    hub: HubServer, commit: str, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictions(tmp_path / "a", NAME)
    moved = hub.publish("datasets", NAME, {**files, "README.md": b"changed"})
    restarted(monkeypatch)
    predictions(tmp_path / "b", NAME)
    found = so.compare(tmp_path / "a", tmp_path / "b")
    assert [commit[:12] in name or moved[:12] in name for name in found.data] == [True, True]


def test_raw_html_comes_from_the_hub_when_asked_for(hub: HubServer, commit: str) -> None:
    step = next(load_steps(NAME, "train", raw_html=True))
    assert step.raw_html is not None


def test_a_path_in_a_row_of_the_hub_opens_no_file(tmp_path: Path, hub: HubServer) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    row = next(synthetic_rows(1, 1, 3, seed=1)) | {"screenshot": {"bytes": None, "path": str(secret)}}
    hub.publish("datasets", NAME, {shard(0, of=1): write_parquet([row], tmp_path / "a.parquet").read_bytes()})
    step = next(load_steps(NAME, SPLIT))
    assert step.screenshot is not None
    with pytest.raises(RowError, match="bad_screenshot"):
        step.screenshot.read()


# --- what is fetched --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "n_shards"),
    [({"limit": 1}, 1), ({"limit": 3}, 2), ({"step": "task-2-1_uid-2-1-0"}, 1)],
    ids=["limit 1", "limit 3", "step"],
)
def test_files_without_a_wanted_task_are_not_fetched(
    hub: HubServer, commit: str, files: dict[str, bytes], chosen: dict[str, Any], n_shards: int, tmp_path: Path
) -> None:
    predictions(tmp_path, NAME, **chosen)
    whole = {name for name in files if hub.sent[name] >= len(files[name])}
    assert len(whole) == n_shards
    parts = sum(hub.sent[name] for name in files if name not in whole)
    assert parts < 0.2 * sum(len(files[shard(at)]) for at in range(N_SHARDS))


def test_the_disk_holds_the_files_once(hub: HubServer, commit: str, files: dict[str, bytes], tmp_path: Path) -> None:
    list(load_steps(NAME, SPLIT))
    places = (tmp_path / "hf", Path(os.environ["SEEACT_CACHE"]))
    kept = sum(path.stat().st_size for place in places for path in place.rglob("*") if not path.is_symlink())
    assert kept <= 1.3 * sum(len(files[shard(at)]) for at in range(N_SHARDS))


def test_nothing_is_fetched_twice(hub: HubServer, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    list(load_steps(NAME, SPLIT))
    before = dict(hub.sent)
    restarted(monkeypatch)
    list(load_steps(NAME, SPLIT))
    assert hub.sent == before


def test_what_another_tool_fetched_is_read_offline(
    hub: HubServer, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants, snapshot_download

    snapshot_download(NAME, repo_type="dataset", cache_dir=constants.HF_HUB_CACHE)
    restarted(monkeypatch, is_offline=True)
    split = open_split(NAME, SPLIT)
    assert split.dataset == f"{NAME}@{commit}"
    assert len(list(split.steps())) == N_SHARDS * N_TASKS * N_STEPS


def test_a_node_without_a_network_is_told_which_file_is_missing(
    hub: HubServer, commit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(load_steps(NAME, SPLIT, limit=1))
    restarted(monkeypatch, is_offline=True)
    assert len(list(load_steps(NAME, SPLIT, limit=1))) == N_STEPS
    assert refusal() == (
        f"{shard(1)} of {NAME} was not downloaded, and HF_HUB_OFFLINE is set; fetch it where there is a network:"
        f" hf download {NAME} {shard(1)} --repo-type dataset --revision {commit}"
    )


@pytest.mark.parametrize("status", [429, 500, 503, 407])
def test_what_is_here_is_read_where_the_hub_gives_only_errors(
    hub: HubServer, commit: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(load_steps(NAME, SPLIT))
    hub.refusal = Refusal(status)
    restarted(monkeypatch)
    assert open_split(NAME, SPLIT).dataset == f"{NAME}@{commit}"
    assert len(list(load_steps(NAME, SPLIT))) == N_SHARDS * N_TASKS * N_STEPS


def test_a_commit_that_is_here_needs_no_question(hub: HubServer, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    list(load_steps(NAME, SPLIT))
    restarted(monkeypatch)
    hub.requests.clear()
    list(load_steps(f"{NAME}@{commit}", SPLIT))
    assert [request for request in hub.requests if request != "HEAD /"] == []


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-100], lambda data: data[:5000] + b"x" + data[5001:]], ids=["cut", "changed"]
)
def test_a_file_that_was_changed_here_is_fetched_again_or_named(
    hub: HubServer, commit: str, spoil: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(load_steps(NAME, SPLIT))
    (place,) = (tmp_path / "hf").rglob(f"snapshots/{commit}/{shard(2)}")
    place.resolve().write_bytes(spoil(place.read_bytes()))
    restarted(monkeypatch, is_offline=True)
    assert refusal().startswith(f"{shard(2)} of {NAME} differs from the hub's, and HF_HUB_OFFLINE is set; fetch it")
    restarted(monkeypatch)
    assert len(list(load_steps(NAME, SPLIT))) == N_SHARDS * N_TASKS * N_STEPS


@pytest.mark.parametrize("pattern", ["*/test_website-00000-*", "*/train-*"], ids=["half a split", "another split"])
def test_part_of_a_data_set_is_told_from_all_of_it(
    hub: HubServer, commit: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants, snapshot_download

    snapshot_download(NAME, repo_type="dataset", cache_dir=constants.HF_HUB_CACHE, allow_patterns=pattern)
    restarted(monkeypatch, is_offline=True)
    assert refusal() == (
        f"{SPLIT} of {NAME} was not downloaded whole, and HF_HUB_OFFLINE is set; fetch it where there is a network:"
        f" hf download {NAME} --include *test_website-* --repo-type dataset --revision {commit}"
    )


def test_small_columns_that_were_spoilt_are_read_again(
    hub: HubServer, commit: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_split(NAME, SPLIT).keys
    for path in (own_cache / "hub" / "rows").iterdir():
        path.write_bytes(b"spoilt")
    restarted(monkeypatch)
    assert open_split(NAME, SPLIT).keys == before


def test_a_hub_that_says_nothing_is_not_waited_for(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and never answers, as behind some firewalls; its own client would try for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(client, "ANSWER_S", 0.1)
        assert f"{NAME} was not downloaded before, and http://127.0.0.1" in refusal()


# --- faults -----------------------------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[Refusal, str]] = {
    "gated": (Refusal(403, {"X-Error-Code": "GatedRepo"}, "/resolve/"), "is open to those who accepted its conditions"),
    "gated, without a token": (
        Refusal(401, {"X-Error-Code": "GatedRepo"}, "/resolve/"),
        "then log in with `hf auth login`",
    ),
    "a wrong token": (
        Refusal(401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
        "refused the token for the data set owner/pages; log in",
    ),
    "no access": (Refusal(403), "is open to those who accepted its conditions"),
    "a limit without a wait": (Refusal(429, paths="/api/"), "limits how often it is asked; fetch it where"),
    "a server's error": (Refusal(500, paths="/api/"), "could not be fetched from http://127.0.0.1"),
    "an answer that is none": (Refusal(200, paths="/api/"), "could not be fetched from http://127.0.0.1"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_hub_is_one_sentence(hub: HubServer, commit: str, fault: str) -> None:
    hub.refusal, sentence = FAULTS[fault]
    told = refusal()
    assert sentence in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("name", "split", "sentence"),
    [
        ("owner/none", SPLIT, "has no data set owner/none, or shows it to some users only: check the name"),
        (
            f"{NAME}@v9",
            SPLIT,
            f"the data set {NAME} has no revision v9; name a branch, a tag, or a commit with its 40 digits behind @",
        ),
        (NAME, "cross_domain", "expected cross_domain .* got only .*train"),
    ],
)
def test_what_the_hub_lacks_is_named(hub: HubServer, commit: str, name: str, split: str, sentence: str) -> None:
    with pytest.raises(DatasetError, match=sentence):
        load_steps(name, split)


def test_half_a_split_is_refused(hub: HubServer, files: dict[str, bytes]) -> None:
    hub.publish("datasets", NAME, {name: content for name, content in files.items() if name != shard(1)})
    assert f"{NAME} has 3 of 4 files of {SPLIT}" in refusal()


def test_a_limit_is_waited_for_as_told(hub: HubServer, commit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("seeact_offline.files.hub.time.sleep", waits.append)
    hub.refusal = Refusal(429, {"Retry-After": "7"}, "/revision/", times=2)
    assert next(load_steps(NAME, SPLIT)).website
    assert waits == [7, 7]


def test_a_download_that_was_cut_off_is_resumed(
    hub: HubServer, commit: str, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)
    hub.cut = {shard(0)}
    assert len(list(load_steps(NAME, SPLIT))) == N_SHARDS * N_TASKS * N_STEPS
    assert hub.sent[shard(0)] < 1.3 * len(files[shard(0)])


def test_a_file_with_another_checksum_is_not_kept(hub: HubServer, commit: str) -> None:
    hub.spoiled = {shard(0)}
    sentence = f"{shard(0)} of {NAME} arrived other than the hub says (its checksum differs); run the command again"
    assert refusal() == sentence
    hub.spoiled = set()
    assert len(list(load_steps(NAME, SPLIT))) == N_SHARDS * N_TASKS * N_STEPS


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (
            errno.ENOSPC,
            "is full; free some space, or set HF_HOME to another disk, and run the command again, which resumes",
        ),
        (errno.EROFS, "cannot be written; set HF_HOME to a folder that can"),
    ],
)
def test_a_disk_that_takes_nothing_is_named(
    hub: HubServer, commit: str, number: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    assert sentence in refusal()


def test_a_cache_that_is_no_folder_is_named(
    hub: HubServer, commit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "file" / "hub"))
    assert refusal().endswith("file/hub cannot be written; set HF_HOME to a folder that can")


# --- the command ------------------------------------------------------------------------------------------------------


def started(hub: HubServer, home: Path, out: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words = [
        "eval",
        "--dataset",
        NAME,
        "--split",
        SPLIT,
        "--ranker",
        "bm25",
        "--model",
        "builtin/lexical",
        "--out",
        str(out),
    ]
    environment = {
        **os.environ,
        "HF_HOME": str(home),
        "HF_ENDPOINT": hub.url,
        "SEEACT_CACHE": str(home / "ours"),
        **variables,
    }
    command = [sys.executable, "-m", "seeact_offline", *words, *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_command_runs_on_a_node_without_a_network_after_one_with_it(
    hub: HubServer, commit: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    online = started(hub, tmp_path, tmp_path / "a", "--limit", "3")
    assert online.returncode == 0, online.stderr
    lines = [line for line in online.stderr.splitlines() if "fetching" in line]
    assert lines == [f"fetching {shard(at)}, {len(files[shard(at)]) / 1e6:.1f} MB" for at in (0, 1)]
    assert "WARNING" not in online.stderr
    hub.stop()
    for variables in ({}, {"HF_HUB_OFFLINE": "1"}):
        again = started(hub, tmp_path, tmp_path / f"b{len(variables)}", "--limit", "3", **variables)
        assert again.returncode == 0, again.stderr
        reason = "HF_HUB_OFFLINE is set" if variables else f"{hub.url} does not answer ([Errno 111] Connection refused)"
        assert f"{reason}: {NAME} is read at {commit}, which was downloaded before\n" in again.stderr
        assert "WARNING" not in again.stderr
        assert (tmp_path / f"b{len(variables)}" / "predictions.jsonl").read_bytes() == (
            tmp_path / "a" / "predictions.jsonl"
        ).read_bytes()


@pytest.mark.slow
def test_two_commands_that_download_at_once_both_finish(
    hub: HubServer, commit: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda name: started(hub, tmp_path, tmp_path / name), ["a", "b"]))
    assert [one.returncode for one in both] == [0, 0], both[0].stderr + both[1].stderr
    assert (tmp_path / "a" / "predictions.jsonl").read_bytes() == (tmp_path / "b" / "predictions.jsonl").read_bytes()


@pytest.mark.slow
def test_a_refused_command_says_what_to_do_and_keeps_the_token_to_itself(
    hub: HubServer, commit: str, tmp_path: Path
) -> None:
    hub.refusal = Refusal(403, {"X-Error-Code": "GatedRepo"}, "/resolve/")
    done = started(hub, tmp_path, tmp_path / "a", HF_TOKEN="hf_secret")
    assert done.returncode == 2
    assert "accept them, then log in" in done.stderr.splitlines()[-1]
    assert "Bearer hf_secret" in hub.tokens
    assert "hf_secret" not in done.stderr + done.stdout
