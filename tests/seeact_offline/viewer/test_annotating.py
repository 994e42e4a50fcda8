"""The answers of a person: what the page is sent, and what is on disk when it is told that it is saved."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.grounding.oracle import PersonAnswer, answer_line, read_answers, turn1_sha256
from seeact_offline.records import InputError, Prediction, StepKey
from seeact_offline.viewer.annotating import Annotating
from seeact_offline.viewer.index import step_name
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.viewer.conftest import read_json

TEXT = "The next step is to type 10203 into the field.\nACTION: TYPE\nVALUE: 10203"


def planner(messages: Any) -> str:
    return TEXT


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on three tasks of two steps, which asked turn 1 alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("judged")
        write_parquet(list(synthetic_rows(3, 2, 8, seed=5)), folder / "data" / "test_task-0.parquet")
        return so.evaluate(dataset=folder, split="cross_task", ungrounded=True, model=planner, out=folder / "run").path


Open = Callable[..., Annotating]


@pytest.fixture
def opened(judged: Path, tmp_path: Path) -> Iterator[Open]:
    """`opened(...)` begins or goes on with `answers.jsonl`."""
    made: list[Annotating] = []

    def open_site(out: Path | None = None, **options: Any) -> Annotating:
        for site in made:
            site.close()
        made.append(Annotating(judged, out or tmp_path / "answers.jsonl", **options))
        return made[-1]

    yield open_site
    for site in made:
        site.close()


def keys_of(judged: Path) -> list[StepKey]:
    return [prediction.key for prediction in so.load_run(judged).predictions()]


def some_element(site: Annotating, name: str) -> str:
    return str(read_json(site, f"annotate/{name}.json")["elements"][3]["id"])


def say(site: Annotating, name: str, **said: Any) -> dict[str, Any]:
    step = read_json(site, f"annotate/{name}.json")
    body = {"turn1_sha256": step["turn1_sha256"], "element_id": step["elements"][3]["id"], "op": "TYPE", "value": "x"}
    body |= {"skip": False, "seconds": 2.04} | said
    status, answer = site.post(f"annotate/{name}", body)
    assert status == 200, answer
    return answer


def test_what_is_said_is_saved_as_the_oracle_reads_it(judged: Path, opened: Open, tmp_path: Path) -> None:
    site, (first, second, *_) = opened(annotator="Ann"), keys_of(judged)
    name = step_name(first)
    element = some_element(site, name)
    assert say(site, name, value="New York") == {"saved": True, "done": {name: "answered"}}
    say(site, step_name(second), element_id=None, op="", value="")
    digest = turn1_sha256(TEXT)
    assert read_answers(tmp_path / "answers.jsonl") == {
        first: PersonAnswer(element, "TYPE", "New York", digest, "Ann", 2.0),
        second: PersonAnswer(None, "", "", digest, "Ann", 2.0),
    }


def test_nothing_that_is_sent_tells_the_truth_the_pick_or_the_ranks(judged: Path, opened: Open) -> None:
    site = opened()
    index = read_json(site, "index.json")
    assert {"cells", "runs", "truth", "coded"}.isdisjoint(index)
    for name in index["keys"]:
        step = read_json(site, f"annotate/{name}.json")
        assert set(step) == {
            "key", "annotation_id", "action_uid", "task", "history", "website", "domain", "picture", "elements", "turn1",
            "turn1_sha256", "plan", "answer", "other", "problems",
        }  # fmt: skip
        assert {name for one in step["elements"] for name in one} == {"id", "tag", "box", "text", "path"}


def test_elements_come_in_the_order_of_the_page(judged: Path, opened: Open) -> None:
    site = opened()
    for step in so.load_steps(judged.parent, "cross_task"):
        ids = [one["id"] for one in read_json(site, f"annotate/{step_name(step.key)}.json")["elements"]]
        places = [step.cleaned_html.index(f'backend_node_id="{one}"') for one in ids]
        assert (len(ids), places) == (8, sorted(places))


def test_a_step_has_its_text_digest_plan_and_picture(judged: Path, opened: Open) -> None:
    site = opened()
    step = read_json(site, f"annotate/{step_name(keys_of(judged)[0])}.json")
    assert (step["turn1"], step["turn1_sha256"]) == (TEXT, turn1_sha256(TEXT))
    assert step["plan"] == {"op": "TYPE", "value": "10203"}
    (part,) = step["picture"]["parts"]
    picture = site.get(part["src"])
    assert picture is not None
    assert (picture.mime, picture.content[:4], picture.content[8:12]) == ("image/webp", b"RIFF", b"WEBP")


@pytest.mark.parametrize(
    "name", ["annotate/none.json", "img/none.webp", "img/../index.json", "step/x.json", "agreement.json", ""]
)
def test_there_is_nothing_under_other_names(opened: Open, name: str) -> None:
    assert opened().get(name) is None


def test_every_name_has_a_file(opened: Open) -> None:
    site = opened()
    assert all(site.get(name) is not None for name in site.names())


def test_second_thoughts_take_the_place_of_the_first(judged: Path, opened: Open, tmp_path: Path) -> None:
    site, key = opened(), keys_of(judged)[0]
    say(site, step_name(key))
    say(site, step_name(key), element_id=None, op="CLICK", value="of no use")
    answer = read_answers(tmp_path / "answers.jsonl")[key]
    assert (answer.element_id, answer.op, answer.value) == (None, "CLICK", "")


def test_undo_takes_back_second_thoughts_skips_and_answers_in_turn(judged: Path, opened: Open, tmp_path: Path) -> None:
    site, (first, second, *_) = opened(), keys_of(judged)
    path, one, other = tmp_path / "answers.jsonl", step_name(first), step_name(second)
    say(site, one)
    before = read_answers(path)
    say(site, one, value="y")
    say(site, other, skip=True)
    assert read_json(site, "index.json")["done"] == {one: "answered", other: "skipped"}
    assert site.post("annotate/undo", {}) == (200, {"undone": other, "done": {other: None}})
    assert site.post("annotate/undo", {}) == (200, {"undone": one, "done": {one: "answered"}})
    assert read_answers(path) == before
    assert site.post("annotate/undo", {}) == (200, {"undone": one, "done": {one: None}})
    assert read_answers(path) == {}
    assert site.post("annotate/undo", {}) == (200, {"undone": None, "done": {}})


def test_a_step_that_is_skipped_loses_its_answer(judged: Path, opened: Open, tmp_path: Path) -> None:
    site, key = opened(), keys_of(judged)[0]
    say(site, step_name(key))
    say(site, step_name(key), skip=True)
    assert read_answers(tmp_path / "answers.jsonl") == {}


def test_a_file_is_gone_on_with_and_its_last_answer_can_be_taken_back(
    judged: Path, opened: Open, tmp_path: Path
) -> None:
    first, second, *_ = map(step_name, keys_of(judged))
    site = opened(annotator="Ann")
    say(site, first)
    say(site, second, element_id=None)
    site = opened()
    index = read_json(site, "index.json")
    assert (index["annotator"], index["done"]) == ("Ann", {first: "answered", second: "none"})
    assert index["seconds"] == {first: 2.0, second: 2.0}
    assert read_json(site, f"annotate/{first}.json")["answer"]["value"] == "x"
    assert site.post("annotate/undo", {})[1]["undone"] == second
    assert list(read_answers(tmp_path / "answers.jsonl")) == keys_of(judged)[:1]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"element_id": "no such"}, "expected element_id to be null or a candidate of the step, got 'no such'"),
        ({"element_id": 3}, "expected element_id to be a text or null, got 3"),
        ({"op": "HOVER"}, "expected op to be CLICK, TYPE, SELECT or empty, got 'HOVER'"),
        ({"value": "x" * 10_001}, "expected value to be a text"),
        ({"seconds": -1}, "expected seconds to be a number"),
        ({"truth": True}, "expected exactly the fields turn1_sha256, and perhaps"),
    ],
)
def test_what_cannot_be_saved_is_refused_and_changes_nothing(
    judged: Path, opened: Open, tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    site, name = opened(), step_name(keys_of(judged)[0])
    body = {"turn1_sha256": turn1_sha256(TEXT), "element_id": None, "op": "CLICK", "value": "", "seconds": 1} | said
    status, answer = site.post(f"annotate/{name}", body)
    assert status == 400
    assert answer["error"].startswith(message)
    assert not (tmp_path / "answers.jsonl").exists()
    assert read_json(site, "index.json")["done"] == {}


@pytest.mark.parametrize("said", [{"element_id": None, "op": "CLICK"}, {"skip": True}])
def test_an_answer_about_another_text_or_none_is_refused_and_changes_nothing(
    judged: Path, opened: Open, said: dict[str, Any]
) -> None:
    """A page that was opened before another run was served here would say of its step what it said of another."""
    site, name = opened(), step_name(keys_of(judged)[0])
    say(site, name, value="before")
    before = read_json(site, f"annotate/{name}.json")["answer"]
    assert site.post(f"annotate/{name}", {**said, "turn1_sha256": turn1_sha256("another")})[0] == 409
    assert site.post(f"annotate/{name}", said)[0] == 400
    assert read_json(site, f"annotate/{name}.json")["answer"] == before


@pytest.mark.parametrize("name", ["annotate/none", "index.json", "annotate/"])
def test_nothing_is_saved_under_other_names(opened: Open, name: str) -> None:
    assert opened().post(name, {})[0] == 404


def test_a_disk_that_refuses_is_said_and_nothing_counts_as_saved(
    judged: Path, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, (first, second, *_) = opened(), keys_of(judged)
    say(site, step_name(first))
    before = (tmp_path / "answers.jsonl").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        status, answer = site.post(f"annotate/{step_name(second)}", {"turn1_sha256": turn1_sha256(TEXT)})
    assert (status, answer["error"]) == (
        500,
        "nothing was saved: answers.jsonl cannot be written: No space left on device",
    )
    assert (tmp_path / "answers.jsonl").read_bytes() == before
    assert step_name(second) not in read_json(site, "index.json")["done"]


# --- what cannot be begun ---


def test_a_file_is_written_by_one_program_at_a_time(judged: Path, opened: Open, tmp_path: Path) -> None:
    opened()
    with pytest.raises(InputError, match=r"^out: expected a file that nobody else is writing"):
        Annotating(judged, tmp_path / "answers.jsonl")


def test_answers_of_another_annotator_are_not_mixed_with(judged: Path, opened: Open) -> None:
    say(opened(annotator="Ann"), step_name(keys_of(judged)[0]))
    with pytest.raises(InputError, match=r"^annotator: expected Ann, whose answers .* holds, got Bob"):
        opened(annotator="Bob")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"turn1_sha256": "0" * 64}, "about another text"),
        ({"turn1_sha256": None}, "about no text that it names"),
        ({"key": StepKey("another", "step")}, "expected answers about steps of"),
    ],
)
def test_answers_about_other_texts_are_not_mixed_with(
    judged: Path, opened: Open, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    key = changes.get("key", keys_of(judged)[0])
    answer = PersonAnswer(None, "", "", changes.get("turn1_sha256", turn1_sha256(TEXT)))
    (tmp_path / "answers.jsonl").write_text(answer_line(key, answer) + "\n")
    with pytest.raises(InputError, match=f"^out: .*{message}"):
        opened()
    with pytest.raises(InputError, match=f"^second: .*{message}"):
        opened(tmp_path / "others.jsonl", second=tmp_path / "answers.jsonl")


def test_a_run_with_several_texts_a_step_is_refused(judged: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(judged, run)
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    for row in rows:
        row["groups"].append(row["groups"][0] | {"group": 1, "replies": ["Another text."]})
    (run / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"^annotate: expected a run that asked turn 1 once a step"):
        Annotating(run, tmp_path / "answers.jsonl")


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^annotate: "):
        Annotating(tmp_path, tmp_path / "answers.jsonl")


def test_data_that_have_moved_are_refused_in_one_sentence(judged: Path, tmp_path: Path) -> None:
    write_parquet(list(synthetic_rows(3, 2, 8, seed=6)), tmp_path / "data" / "test_task-0.parquet")
    with pytest.raises(InputError, match=r"^dataset: expected the data that the run was made on"):
        Annotating(judged, tmp_path / "answers.jsonl", dataset=tmp_path)


# --- two annotators ---


@pytest.fixture
def both(judged: Path, opened: Open, tmp_path: Path) -> Annotating:
    """Ann and Bob on four steps: they agree on three; a fifth is Bob's alone."""
    names = list(map(step_name, keys_of(judged)))
    bob = opened(tmp_path / "bob.jsonl", annotator="Bob")
    for name in names[:5]:
        say(bob, name, value="New York")
    ann = opened(annotator="Ann", second=tmp_path / "bob.jsonl")
    for name in names[:3]:
        say(ann, name, value=" new york")
    say(ann, names[3], element_id=None)
    return ann


def test_two_files_give_agreement_and_what_to_settle(judged: Path, both: Annotating) -> None:
    found = read_json(both, "agreement.json")
    assert (found["n_both"], found["n_first"], found["n_second"], found["annotators"]) == (4, 4, 5, ["Ann", "Bob"])
    assert (found["agreement"], found["element"]["agreement"], found["operation"]["agreement"]) == (0.75, 0.75, 1.0)
    assert found["disagreements"] == [step_name(keys_of(judged)[3])]


def test_the_others_answer_is_shown_only_where_one_has_answered_otherwise(judged: Path, both: Annotating) -> None:
    said = [read_json(both, f"annotate/{step_name(key)}.json")["other"] for key in keys_of(judged)]
    assert [one is not None for one in said] == [False, False, False, True, False, False]
    assert (said[3]["annotator"], said[3]["value"]) == ("Bob", "New York")


# --- killed ---

ANSWERING = """
import sys
from pathlib import Path
from seeact_offline.viewer.durable import DurableLines
lines = DurableLines(Path(sys.argv[1]), "out")
for number in range(10**9):
    key = number % 50
    line = '{"annotation_id": "t", "action_uid": "%d", "element_id": null, "op": "", "value": "%s"}' % (key, "x" * 20000)
    lines.put(key, line)
    print(number, flush=True)
"""


def test_a_killed_server_leaves_a_whole_file_with_all_that_it_said_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    for _ in range(3):
        path.unlink(missing_ok=True)
        with subprocess.Popen(
            [sys.executable, "-c", ANSWERING, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(20)]
            process.send_signal(signal.SIGKILL)
            said += process.stdout.readlines()
        whole = [line for line in said if line.endswith("\n")]
        assert {key.action_uid for key in read_answers(path)} >= {str(int(line) % 50) for line in whole}


def test_what_a_killed_server_left_locked_is_free_again(tmp_path: Path, judged: Path) -> None:
    test_a_killed_server_leaves_a_whole_file_with_all_that_it_said_was_saved(tmp_path)
    (tmp_path / "answers.jsonl").unlink()
    Annotating(judged, tmp_path / "answers.jsonl").close()


def test_the_texts_said_are_those_of_the_run(judged: Path, opened: Open) -> None:
    site = opened()
    predictions: list[Prediction] = so.load_run(judged).predictions()
    for prediction in predictions:
        step = read_json(site, f"annotate/{step_name(prediction.key)}.json")
        assert step["turn1"] == prediction.groups[0].replies[0]
    assert json.dumps(read_json(site, "index.json")["keys"]) == json.dumps([step_name(p.key) for p in predictions])
