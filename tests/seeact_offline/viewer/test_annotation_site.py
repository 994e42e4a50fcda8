"""A person's groundings: what the page is sent, and what is on disk when it is told that it is saved."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import seeact_offline as so
from seeact_offline.grounding.oracle import PersonAnswer, answer_line, read_answers, turn1_sha256
from seeact_offline.records import InputError, StepKey
from seeact_offline.viewer.annotation_site import AnnotationSite
from seeact_offline.viewer.site_files import step_name
from tests.pages import synthetic_rows, write_parquet
from tests.seeact_offline.viewer.conftest import read_json

TEXT = "The next step is to type 10203 into the field.\nACTION: TYPE\nVALUE: 10203"
Open = Callable[..., AnnotationSite]


def planner(messages: Any) -> str:
    return TEXT


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on three tasks of two steps, which asked turn 1 alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEEACT_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("judged")
        write_parquet(list(synthetic_rows(3, 2, 8, seed=5)), folder / "data" / "test_task-0.parquet")
        return so.evaluate(dataset=folder, split="cross_task", ungrounded=True, model=planner, out=folder / "run").path


@pytest.fixture(scope="module")
def keys(judged: Path) -> list[StepKey]:
    return [prediction.key for prediction in so.load_run(judged).predictions()]


@pytest.fixture(scope="module")
def names(keys: list[StepKey]) -> list[str]:
    return list(map(step_name, keys))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


@pytest.fixture
def opened(judged: Path, out: Path) -> Iterator[Open]:
    """`opened(...)` begins or resumes `answers.jsonl`, or another file."""
    made: list[AnnotationSite] = []

    def open_site(path: Path | None = None, **options: Any) -> AnnotationSite:
        for site in made:
            site.close()
        made.append(AnnotationSite(judged, path or out, **options))
        return made[-1]

    yield open_site
    for site in made:
        site.close()


def save(site: AnnotationSite, name: str, **said: Any) -> dict[str, Any]:
    step = read_json(site, f"annotate/{name}.json")
    body = {"turn1_sha256": step["turn1_sha256"], "element_id": step["elements"][3]["id"], "op": "TYPE", "value": "x"}
    body |= {"skip": False, "seconds": 2.04} | said
    status, answer = site.post(f"annotate/{name}", body)
    assert status == 200, answer
    return answer


# --- what is sent ---


def test_nothing_that_is_sent_tells_the_truth_the_choice_or_the_ranks(opened: Open) -> None:
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


def test_a_step_has_its_text_digest_plan_picture_and_elements_in_the_order_of_the_page(
    judged: Path, keys: list[StepKey], names: list[str], opened: Open
) -> None:
    site = opened()
    assert read_json(site, "index.json")["keys"] == names
    texts = {prediction.key: prediction.groups[0].replies[0] for prediction in so.load_run(judged).predictions()}
    for step in so.load_steps(judged.parent, "cross_task"):
        found = read_json(site, f"annotate/{step_name(step.key)}.json")
        places = [step.cleaned_html.index(f'backend_node_id="{one["id"]}"') for one in found["elements"]]
        assert (len(places), places) == (8, sorted(places))
        assert (found["turn1"], found["turn1_sha256"]) == (texts[step.key], turn1_sha256(TEXT))
        assert (found["plan"], found["problems"]) == ({"op": "TYPE", "value": "10203"}, [])
        (part,) = found["picture"]["parts"]
        picture = site.get(part["src"])
        assert picture is not None
        assert (picture.mime, picture.content[:4], picture.content[8:12]) == ("image/webp", b"RIFF", b"WEBP")


def test_every_name_has_a_file_and_other_names_have_none(opened: Open) -> None:
    site = opened()
    others = ["annotate/none.json", "img/none.webp", "img/../index.json", "step/x.json", "agreement.json", ""]
    assert all(site.get(name) is not None for name in site.names(pictures=False))
    assert [site.get(name) for name in others] == [None] * len(others)


# --- what is saved ---


def test_an_answer_is_saved_as_the_oracle_reads_it_and_second_thoughts_replace_it(
    keys: list[StepKey], names: list[str], opened: Open, out: Path
) -> None:
    site, digest = opened(annotator="Ann"), turn1_sha256(TEXT)
    element = read_json(site, f"annotate/{names[0]}.json")["elements"][3]["id"]
    assert save(site, names[0], value="New York") == {"saved": True, "done": {names[0]: "answered"}}
    save(site, names[1], element_id=None, op="", value="")
    first = PersonAnswer(element, "TYPE", "New York", digest, "Ann", 2.0)
    assert read_answers(out) == {keys[0]: first, keys[1]: PersonAnswer(None, "", "", digest, "Ann", 2.0)}
    save(site, names[0], element_id=None, op="CLICK", value="of no use")
    assert read_answers(out)[keys[0]] == PersonAnswer(None, "CLICK", "", digest, "Ann", 2.0)


def test_undo_takes_back_second_thoughts_skips_and_answers_in_turn(names: list[str], opened: Open, out: Path) -> None:
    site, (one, other, *_) = opened(), names
    save(site, one)
    before = read_answers(out)
    save(site, one, value="y")
    save(site, other, skip=True)
    assert read_json(site, "index.json")["done"] == {one: "answered", other: "skipped"}
    assert site.post("annotate/undo", {}) == (200, {"undone": other, "done": {other: None}})
    assert site.post("annotate/undo", {}) == (200, {"undone": one, "done": {one: "answered"}})
    assert read_answers(out) == before
    assert site.post("annotate/undo", {}) == (200, {"undone": one, "done": {one: None}})
    assert read_answers(out) == {}
    assert site.post("annotate/undo", {}) == (200, {"undone": None, "done": {}})


def test_a_step_that_is_skipped_loses_its_answer(names: list[str], opened: Open, out: Path) -> None:
    site = opened()
    save(site, names[0])
    save(site, names[0], skip=True)
    assert read_answers(out) == {}


def test_a_file_is_resumed_and_its_last_answer_can_be_taken_back(
    keys: list[StepKey], names: list[str], opened: Open, out: Path
) -> None:
    site = opened(annotator="Ann")
    save(site, names[0])
    save(site, names[1], element_id=None)
    site = opened()
    index = read_json(site, "index.json")
    assert (index["annotator"], index["done"]) == ("Ann", {names[0]: "answered", names[1]: "none"})
    assert index["seconds"] == {names[0]: 2.0, names[1]: 2.0}
    assert read_json(site, f"annotate/{names[0]}.json")["answer"]["value"] == "x"
    assert site.post("annotate/undo", {})[1]["undone"] == names[1]
    assert list(read_answers(out)) == keys[:1]


@pytest.mark.parametrize(
    ("said", "status", "message"),
    [
        ({"element_id": "x"}, 400, "expected element_id to be null or a candidate of the step, got 'x'"),
        ({"element_id": 3}, 400, "expected element_id to be a text or null, got 3"),
        ({"op": "HOVER"}, 400, "expected op to be CLICK, TYPE, SELECT or empty, got 'HOVER'"),
        ({"value": "x" * 10_001}, 400, "expected value to be a text"),
        ({"seconds": -1}, 400, "expected seconds to be a number"),
        ({"truth": True}, 400, "expected exactly the fields turn1_sha256, and perhaps"),
        ({"turn1_sha256": None}, 400, "expected turn1_sha256 to be a text"),
        # a page that was opened before another run was served here
        ({"turn1_sha256": turn1_sha256("another")}, 409, "the page shows another text than this step has here"),
        ({"turn1_sha256": turn1_sha256("another"), "skip": True}, 409, "the page shows another text"),
    ],
)
def test_a_wrong_answer_is_refused_and_changes_nothing(
    names: list[str], opened: Open, out: Path, said: dict[str, Any], status: int, message: str
) -> None:
    site = opened()
    save(site, names[0], value="before")
    before = out.read_bytes()
    body = {"turn1_sha256": turn1_sha256(TEXT), "element_id": None, "op": "CLICK", "value": "", "seconds": 1} | said
    for name in names[:2]:
        found, answer = site.post(f"annotate/{name}", body)
        assert (found, answer["error"][: len(message)]) == (status, message)
    assert (out.read_bytes(), read_json(site, "index.json")["done"]) == (before, {names[0]: "answered"})


def test_nothing_is_saved_under_other_names(opened: Open) -> None:
    site = opened()
    assert [site.post(name, {})[0] for name in ("annotate/none", "index.json", "annotate/")] == [404] * 3


# --- what is refused before anything is written ---


def test_answers_of_another_annotator_are_not_mixed_with(names: list[str], opened: Open) -> None:
    save(opened(annotator="Ann"), names[0])
    with pytest.raises(InputError, match=r"holds answers of Ann, not of Bob; name another file$"):
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
    keys: list[StepKey], opened: Open, out: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    answer = PersonAnswer(None, "", "", changes.get("turn1_sha256", turn1_sha256(TEXT)))
    out.write_text(answer_line(changes.get("key", keys[0]), answer) + "\n")
    with pytest.raises(InputError, match=f"^out: .*{message}"):
        opened()
    with pytest.raises(InputError, match=f"^second: .*{message}"):
        opened(tmp_path / "others.jsonl", second=out)


def several_texts(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    for row in rows:
        row["groups"].append(row["groups"][0] | {"group": 1, "replies": ["Another text."]})
    (run / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (several_texts, "turn-1 texts; name a run that asked turn 1 once a step"),
        (lambda run: (run / "manifest.json").unlink(), "has no manifest.json; name the folder of a finished run$"),
        (
            lambda run: write_parquet(
                list(synthetic_rows(3, 2, 8, seed=6)), run.parent / "data" / "test_task-0.parquet"
            ),
            "^dataset: expected the data that the run was made on",
        ),
    ],
    ids=["several texts", "no run", "other data"],
)
def test_a_run_that_cannot_be_judged_is_refused_in_one_sentence(
    judged: Path, tmp_path: Path, out: Path, change: Callable[[Path], None], message: str
) -> None:
    shutil.copytree(judged.parent, tmp_path / "copy")
    change(tmp_path / "copy" / "run")
    with pytest.raises(InputError, match=message):
        AnnotationSite(tmp_path / "copy" / "run", out, dataset=tmp_path / "copy")


# --- two annotators ---


def test_two_files_give_the_agreement_and_the_steps_to_settle(names: list[str], opened: Open, tmp_path: Path) -> None:
    """Ann and Bob on four steps: they agree on three; a fifth is Bob's alone."""
    bob = opened(tmp_path / "bob.jsonl", annotator="Bob")
    for name in names[:5]:
        save(bob, name, value="New York")
    ann = opened(annotator="Ann", second=tmp_path / "bob.jsonl")
    for name in names[:3]:
        save(ann, name, value=" new york")
    save(ann, names[3], element_id=None)
    found = read_json(ann, "agreement.json")
    assert (found["n_both"], found["n_first"], found["n_second"], found["annotators"]) == (4, 4, 5, ["Ann", "Bob"])
    assert (found["agreement"], found["element"]["agreement"], found["operation"]["agreement"]) == (0.75, 0.75, 1.0)
    assert found["disagreements"] == [names[3]]
    # the other's answer is sent only where Ann has answered otherwise
    others = [read_json(ann, f"annotate/{name}.json")["other"] for name in names]
    assert [one is not None for one in others] == [False, False, False, True, False, False]
    assert (others[3]["annotator"], others[3]["value"]) == ("Bob", "New York")
