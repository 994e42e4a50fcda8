"""The golden files: what differs by nature is taken out of them, and what does not is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden import Command, chosen, cleaned, differences, golden_of

MANIFEST = '{"run": "%s", "date": "%s", "command": "eval --concurrency %d --out out", "git_commit": "%s", "n_steps": %d, "path": "%s"}\n'


def golden(folder: Path, seed: int, n_steps: int) -> Path:
    """The golden file of a command `a` that has written a manifest and a report."""
    nature = (f"{seed:032x}", f"2026-03-{seed:02d}T10:00:00+00:00", seed, f"{seed:040x}", n_steps, f"{folder}/played/a")
    for name, text in (("manifest.json", MANIFEST % nature), ("status", "0 ")):
        path = folder / "played" / "a" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        clean = folder / "clean" / "a" / name
        clean.parent.mkdir(parents=True, exist_ok=True)
        clean.write_text(cleaned(path, folder))
    (folder / "golden.json").write_text(json.dumps(golden_of(folder)))
    return folder / "golden.json"


@pytest.mark.parametrize(("n_steps", "differing"), [(7, []), (8, ["differs: a/manifest.json"])])
def test_a_changed_figure_is_seen_and_another_date_folder_and_run_are_not(
    tmp_path: Path, n_steps: int, differing: list[str]
) -> None:
    before, after = golden(tmp_path / "one", 1, 7), golden(tmp_path / "two", 2, n_steps)
    listed = list(differences(after, before))
    assert [text.splitlines()[0] for text in listed] == differing
    assert all('"n_steps": 7' in text and '"n_steps": 8' in text for text in listed)


def test_a_command_comes_behind_those_whose_files_it_names() -> None:
    commands = [Command("core", "c", (("compare", "../a/out", "../b/out"),)), Command("core", "b", (("score", "../a/out"),)), *(
        Command("core", name, (("eval",),)) for name in ("a", "z"))]  # fmt: skip
    assert [command.name for command in chosen(commands, ["c"])] == ["a", "b", "c"]
