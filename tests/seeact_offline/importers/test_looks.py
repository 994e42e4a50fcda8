"""Which format a file looks like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seeact_offline.importers import IMPORTERS, looks_like, notes
from tests.seeact_offline.importers import test_seeact, test_uground
from tests.seeact_offline.importers.files import write_lines


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (test_uground.SAMPLE, "uground"),
        (test_uground.PLAN, "uground"),
        (test_uground.ANSWER, "uground"),
        (test_seeact.answer(0, "A"), "seeact"),
        (json.dumps(json.dumps(test_seeact.query("12"))), "seeact"),
        ([["t_a", "5", "CLICK"], ["t_b", "6"]], "mindact"),
        ([["t_a", []]], "mindact"),
        ('[["t_a", [[["1"', None),
        ({"annotation_id": "t", "action_uid": "a", "op": "CLICK"}, "table"),
        ("action_uid,annotation_id,op", "table"),
        ("x,y", None),
        ([[{"annot_id": "t", "img_path": "t-a.jpg", "sentence": "x"}]], "seeclick"),
        ({"test_task": {"0": [{"anno_id": 0, "img_path": "t-a.jpg", "sentence": ["x"]}]}}, "showui"),
        ({"annotation_id": "t", "action_uid": "a", "prompt": "x"}, None),
        ({"x": 1}, None),
        ("[3]", None),
        ("", None),
    ],
)
def test_a_file_is_known_by_its_beginning(tmp_path: Path, first: Any, name: str | None) -> None:
    found = looks_like(write_lines(tmp_path / "file", [first]))
    assert (found and found.name) == name


def test_a_folder_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    assert looks_like(tmp_path) is None
    test_seeact.step(tmp_path / "t_a", [], [])
    found = looks_like(tmp_path)
    assert found is not None
    assert found.name == "seeact"


def test_importers_are_listed_by_their_names() -> None:
    assert {name: importer.name for name, importer in IMPORTERS.items()} == {name: name for name in IMPORTERS}


def test_no_note_has_two_meanings() -> None:
    several = [importer.notes for importer in IMPORTERS.values()]
    assert len(notes()) == len({name for one in several for name in one} | (notes().keys() - set().union(*several)))
    assert sum(map(len, several)) == len(set().union(*several))
