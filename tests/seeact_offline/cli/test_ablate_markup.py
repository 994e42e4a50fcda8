"""The markup ablation: equal questions are paid for once, kills included, and the table does not tell how it came about."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Answer, ChatServer
from tests.pages import synthetic_rows
from tests.seeact_offline.cli.test_resume import KillingAnswer, run_until_ended
from tests.seeact_offline.conftest import (
    RESULT_FILES,
    Cli,
    Outcome,
    Sample,
    contents,
    make_sample,
    read_json,
    read_lines,
    without_cost,
)

TABLES = ("table.json", "table.md", "table.csv", "table.tex")
BUNDLED = ("--split", "cross_task", "--limit", "1", "--top-k", "8", "--group-size", "4", "--max-image-side", "400")
"""Small pictures, for speed."""
FEW = ("--kinds", "number,letter", "--positions", "bottom-left", "--turn1", "both")
CELLS = ("number-bottom-left", "letter-bottom-left", "number-bottom-left-marked", "letter-bottom-left-marked")
SMALL = ("--top-k", "6", "--group-size", "3")
LABELS = re.compile(r"labels in use here are (\w+)(?: to (\w+))?\.")


def texts(body: dict[str, Any]) -> str:
    parts = [m["content"] if isinstance(m["content"], list) else [{"text": m["content"]}] for m in body["messages"]]
    return "\n".join(part.get("text", "") for content in parts for part in content)


def scripted(body: dict[str, Any]) -> str:
    """Depends on all that was sent; names the first or last mark, or none."""
    digest = hashlib.sha256(json.dumps(body["messages"]).encode()).digest()
    plan = f"Plan {digest.hex()[:8]}."
    if len(body["messages"]) < 4:
        return plan
    found = LABELS.search(texts(body))
    assert found is not None
    label = ("NA", found[1], found[2] or found[1])[digest[0] % 3]
    return f"{plan}\nELEMENT: {label}\nACTION: CLICK\nVALUE: None"


class KillingScript(KillingAnswer):
    """As KillingAnswer, with answers that name marks."""

    def __call__(self, body: dict[str, Any]) -> str:
        super().__call__(body)
        return scripted(body)


def words(server: ChatServer, out: Path, *more: object, data: tuple[object, ...]) -> list[str]:
    model = ["--model", "openai/test", "--base-url", server.base_url, "--price", "1,1"]
    return ["ablate-markup", *map(str, data), *model, *FEW, "--out", str(out), *map(str, more)]


def counted(requests: list[dict[str, Any]]) -> Counter[str]:
    """By digest: the pictures are long."""
    return Counter(hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() for body in requests)


def files(out: Path) -> dict[str, Any]:
    """The tables, and the files of every row but the manifest, which names the server."""
    return {".": contents(out, TABLES)} | {cell: contents(out / cell, RESULT_FILES) for cell in CELLS}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Two tasks of two steps on small pages."""
    return make_sample(tmp_path_factory.mktemp("small"), list(synthetic_rows(2, 2, 12, seed=1)))


@pytest.fixture(scope="module")
def whole(sample: Sample, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Path]:
    """The requests of an uninterrupted run, and its folder."""
    from seeact_offline.cli import main

    out = tmp_path_factory.mktemp("whole")
    with ChatServer(scripted) as server:
        assert main(words(server, out, data=(*sample.words, *SMALL))) == 0
    return server.requests, out


# --- killed and resumed ---


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.nightly), 4])
def test_a_run_killed_half_way_pays_for_nothing_twice_and_ends_with_the_same_table(
    cli: Cli, sample: Sample, tmp_path: Path, whole: tuple[list[dict[str, Any]], Path], concurrency: int
) -> None:
    requests, folder = whole
    half = len(requests) // 2
    script = KillingScript(half)
    with ChatServer(script) as server:
        command = words(server, tmp_path, "--concurrency", concurrency, data=(*sample.words, *SMALL))
        run_until_ended(command, script, -signal.SIGKILL)
        assert not (tmp_path / "table.json").exists()
        assert cli(*command).status == 0
    again = counted(server.requests) - counted(requests)
    assert counted(requests) - counted(server.requests) == Counter()
    # nothing but what was in flight when it was killed
    assert again.total() <= concurrency
    if concurrency == 1:
        assert again == counted(server.requests[half - 1 : half])
    for part, found in files(tmp_path).items():
        if part != ".":
            assert without_cost(found) == without_cost(files(folder)[part])
    # what was in flight is paid for, so the tables' costs differ
    tables = [without_cost({"": (out / "table.json").read_bytes()}) for out in (tmp_path, folder)]
    assert tables[0] == tables[1]


@pytest.mark.slow
def test_a_finished_run_asks_nothing_and_stays_as_it_is(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(scripted) as server:
        command = words(server, tmp_path, data=(*sample.words, *SMALL))
        assert cli(*command).status == 0
        before, n_asked = files(tmp_path), len(server.requests)
        outcome = cli(*command)
    assert (outcome.status, len(server.requests)) == (0, n_asked)
    assert "16 of 16 are done already" in outcome.err
    assert files(tmp_path) == before


@pytest.mark.slow
def test_a_run_stopped_by_its_cost_has_its_table_over_the_steps_of_all_rows_and_resumes(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    with ChatServer(scripted) as server:
        few, price = (*sample.words, *SMALL, "--max-tokens", "10"), ("--price", "0,100")
        assert cli(*words(server, tmp_path / "whole", *price, data=few)).status == 0
        n_asked, cost = len(server.requests), read_json(tmp_path / "whole" / "table.json")["usage"]["cost_usd"]
        command = words(server, tmp_path / "run", *price, data=few)
        # enough for all rows but a part of the last
        stopped = cli(*command, "--max-cost", 0.98 * cost, "--concurrency", 1)
        assert stopped.status == 1
        assert "stopped at --max-cost" in stopped.err
        table = read_json(tmp_path / "run" / "table.json")
        reached = [len(read_lines(tmp_path / "run" / cell / "predictions.jsonl")) for cell in CELLS]
        assert reached[0] == 4
        assert 0 < table["n_steps"] == min(reached) < 4
        assert cli(*command).status == 0
    assert len(server.requests) == 2 * n_asked
    assert files(tmp_path / "run") == files(tmp_path / "whole")


# --- sharing ---


def test_every_different_question_of_turn_1_is_asked_once(whole: tuple[list[dict[str, Any]], Path]) -> None:
    requests, folder = whole
    first = counted([body for body in requests if len(body["messages"]) == 2])
    assert set(first.values()) == {1}
    table = read_json(folder / "table.json")
    asked = [line for cell in CELLS for line in read_lines(folder / cell / "predictions.jsonl")]
    questions = sum(len(group["replies"]) for line in asked for group in line["groups"])
    assert table["usage"]["calls"] == len(requests)
    assert questions - len(requests) == sum(row["replies_reused"] for row in table["rows"]) > 0


@pytest.mark.slow
def test_rows_with_a_plain_turn_1_share_all_of_it_with_the_first(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    """Groups on other parts of the page: nothing is shared within a row, and all of turn 1 of the groups between rows."""
    with ChatServer(scripted) as server:
        options = ("--turn1", "plain", "--merge", "first")
        assert cli(*words(server, tmp_path, *options, data=(*tall_sample.words, *SMALL))).status == 0
    rows = read_json(tmp_path / "table.json")["rows"]
    assert [(row["usage"]["calls"], row["replies_reused"]) for row in rows] == [(16, 0), (8, 8)]


@pytest.mark.slow
def test_a_row_says_what_eval_says(cli: Cli, tall_sample: Sample, tmp_path: Path) -> None:
    with ChatServer(scripted) as server:
        assert cli(*words(server, tmp_path / "run", data=(*tall_sample.words, *SMALL))).status == 0
        marks = ("--grounding", "annotation", "--marks", "letter", "--mark-position", "bottom-left")
        model = ("--model", "openai/test", "--base-url", server.base_url)
        assert cli("eval", *tall_sample.words, *SMALL, *marks, *model, "--out", tmp_path / "eval").status == 0
    folders = tmp_path / "run" / CELLS[1], tmp_path / "eval"
    # rows share turn 1, and so its cost
    said = [[{**line, "cost_usd": None} for line in read_lines(folder / "steps.jsonl")] for folder in folders]
    assert said[0] == said[1]


@pytest.mark.slow
def test_the_result_does_not_depend_on_how_many_steps_are_asked_at_once(
    cli: Cli, sample: Sample, tmp_path: Path
) -> None:
    with ChatServer(scripted) as server:
        for n in (1, 8):
            command = words(server, tmp_path / str(n), "--concurrency", n, data=(*sample.words, *SMALL))
            assert cli(*command).status == 0
    assert files(tmp_path / "1") == files(tmp_path / "8")


@pytest.mark.slow
def test_rows_can_be_added_to_a_finished_run(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(scripted) as server:
        for kinds in ("number", "number,letter"):
            command = words(server, tmp_path / "run", "--kinds", kinds, data=(*sample.words, *SMALL))
            assert cli(*command).status == 0
        n_asked = len(server.requests)
        assert cli(*words(server, tmp_path / "whole", data=(*sample.words, *SMALL))).status == 0
    assert len(server.requests) == 2 * n_asked
    assert contents(tmp_path / "run", TABLES) == contents(tmp_path / "whole", TABLES)


def test_a_refusal_is_paid_for_once_and_counts_in_every_row(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    with ChatServer(lambda _: Answer("", refusal="No.")) as server:
        command = words(server, tmp_path, "--turn1", "plain", "--price", "1,1", data=(*sample.words, *SMALL))
        assert cli(*command).status == 0
    assert set(counted(server.requests).values()) == {1}
    rows = read_json(tmp_path / "table.json")["rows"]
    assert [row["usage"]["calls"] for row in rows] == [len(server.requests), 0]
    assert {row["step_success_rate"]["macro"] for row in rows} == {0.0}


# --- what is said ---


@pytest.mark.slow
def test_the_sample_says_that_its_figures_are_not_the_papers(cli: Cli, tmp_path: Path) -> None:
    assert cli("ablate-markup", *BUNDLED, *FEW, "--model", "builtin/oracle", "--out", tmp_path).status == 0
    for name in ("table.md", "table.tex"):
        assert "they are not the paper's" in (tmp_path / name).read_text()


def test_the_papers_seven_rows_are_the_default(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = cli("ablate-markup", *sample.words, *SMALL, "--model", "builtin/oracle", "--out", tmp_path)
    assert outcome.status == 0
    table = read_json(tmp_path / "table.json")
    assert len(table["rows"]) == 7
    assert all(row["paper"] for row in table["rows"])
    assert outcome.out.count("Differences: row minus the first, number, bottom-left, plain turn 1") == 1
    assert "7 ways of marking, 4 steps" in outcome.err


@pytest.mark.slow
def test_steps_that_failed_to_run_are_said_and_tried_again(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    is_down = [True]

    def failing_turn2(body: dict[str, Any]) -> Answer | str:
        return Answer("down", status=400) if is_down[0] and len(body["messages"]) > 2 else scripted(body)

    with ChatServer(failing_turn2) as server:
        broken = cli(*words(server, tmp_path, data=(*sample.words, *SMALL)))
        assert broken.status == 1
        assert "16 answers failed to run" in broken.err
        assert read_json(tmp_path / "table.json")["rows"][0]["failed_steps"] == 4
        is_down[0] = False
        assert cli(*words(server, tmp_path, data=(*sample.words, *SMALL))).status == 0


# --- what is refused ---


def refused(cli: Cli, sample: Sample, out: Path, *more: object) -> Outcome:
    return cli("ablate-markup", *sample.words, "--model", "builtin/oracle", "--out", out, *more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--group-size", "27"), "--kinds: expected at most 26 elements in one picture for letter, got 27"),
        (("--merge", "single"), "use kinds number,double-letter or another top_k"),
        (("--kinds", "number,roman"), "expected some of number,letter,double-letter, each once, got number,roman"),
        (("--kinds", "number,number"), "each once"),
        (("--positions", ""), "expected some of bottom-left,"),
        (("--turn1", "never"), "--turn1"),
        (("--max-cost", "1"), "--max-cost needs a --price"),
    ],
)
def test_cells_that_cannot_be_asked_are_refused_before_anything_is(
    cli: Cli, sample: Sample, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    assert said in refused(cli, sample, tmp_path / "run", *more).error
    assert not (tmp_path / "run").exists()


def test_a_folder_of_another_configuration_is_refused(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    assert refused(cli, sample, tmp_path, *SMALL, *FEW).status == 0
    assert "top_k" in refused(cli, sample, tmp_path, *FEW, "--top-k", "5", "--group-size", "3").error


def test_a_row_is_no_folder_of_eval(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    """Its replies are not all its own, so that eval would count their costs otherwise."""
    assert refused(cli, sample, tmp_path, *SMALL, *FEW).status == 0
    row = ("--grounding", "annotation", "--marks", "number", "--mark-position", "bottom-left")
    command = ("eval", *sample.words, *SMALL, *row, "--model", "builtin/oracle", "--out", tmp_path / CELLS[0])
    assert "another configuration (ablation differ" in cli(*command).error


def test_a_row_can_be_scored_again(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    assert refused(cli, sample, tmp_path, *SMALL, *FEW).status == 0
    before = contents(tmp_path / CELLS[0], RESULT_FILES)
    assert cli("score", tmp_path / CELLS[0]).status == 0
    assert contents(tmp_path / CELLS[0], RESULT_FILES) == before
