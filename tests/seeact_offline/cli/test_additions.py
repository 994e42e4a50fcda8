"""A grounding and a provider of one's own: one line of a dict, or a file outside the package, and the program knows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import seeact_offline as so
from seeact_offline.grounding import strategies
from seeact_offline.grounding.strategies import STRATEGIES
from seeact_offline.models import PROVIDERS
from seeact_offline.records import Completion, InputError, Request
from seeact_offline.results.reading_again import open_grounding
from tests.pages import synthetic_rows
from tests.seeact_offline.conftest import Cli, Sample, make_sample, read_json
from tests.toys import nth, parrot

TOYS = ("--grounding", "nth", "--model", "parrot/ACTION: CLICK")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return make_sample(tmp_path_factory.mktemp("sample"), list(synthetic_rows(3, 2, 8, seed=7)))


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "ADDED", {})
    monkeypatch.setitem(STRATEGIES, "nth", nth.STRATEGY)
    monkeypatch.setitem(PROVIDERS, "parrot", parrot.PROVIDER)


def test_eval_runs_both(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    assert cli("eval", *sample.words, *TOYS, "--out", tmp_path / "run").status == 0
    results = read_json(tmp_path / "run" / "results.json")
    assert (results["grounding"], results["model"]) == ("nth", "parrot/ACTION: CLICK")
    assert results["usage"]["calls"] == 6


def test_an_option_of_its_own_is_one_of_the_command(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    for place in ("0", "1"):
        cli("eval", *sample.words, *TOYS, "--place", place, "--out", tmp_path / place)
    first, second = (so.load_run(tmp_path / place).predictions()[0] for place in ("0", "1"))
    assert (first.element_id, second.element_id) == first.ranked[:2]


def test_an_option_of_its_own_is_part_of_what_a_run_is(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    cli("eval", *sample.words, *TOYS, "--out", tmp_path)
    outcome = cli("eval", *sample.words, *TOYS, "--place", 1, "--out", tmp_path)
    assert outcome.status == 2
    assert "place differ" in outcome.error


def test_other_groundings_refuse_its_option(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    error = cli("eval", *sample.words, "--place", 1, "--out", tmp_path).error
    assert "--place is an option of nth alone" in error
    assert "nth" in error


def test_python_takes_its_option_by_name(sample: Sample, tmp_path: Path) -> None:
    given = {"dataset": sample.dataset, "scores": sample.scores, "split": "cross_task", "grounding": "nth", "place": 2}
    run = so.evaluate(model="parrot/x", out=tmp_path / "run", **given)
    assert all(p.element_id == p.ranked[2] for p in run.predictions())


def test_a_configuration_file_may_name_its_option(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    (tmp_path / "nth.yaml").write_text("grounding: nth\nplace: 1\n")
    cli("eval", *sample.words, "--config", tmp_path / "nth.yaml", "--out", tmp_path / "run")
    run = so.load_run(tmp_path / "run")
    assert all(p.element_id == p.ranked[1] for p in run.predictions())


def test_its_notes_are_explained(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = cli("eval", *sample.words, *TOYS, "--verbose", "--out", tmp_path)
    assert "the element was taken by its rank alone" in outcome.out
    assert "the element was taken by its rank alone" in cli("score", tmp_path).out


def test_help_names_both(cli: Cli) -> None:
    text = " ".join(cli("eval", "--help", "all").out.split())
    assert "nth: which of the ranking, from 0" in text
    assert "parrot/TEXT" in text


def test_show_shows_what_it_asks(cli: Cli, sample: Sample, tmp_path: Path) -> None:
    outcome = cli("show", *sample.words, "--grounding", "nth", "--out", tmp_path)
    assert outcome.status == 0, outcome.err


@pytest.mark.parametrize(("option", "value"), [("--group-size", "5"), ("--merge", "single")])
def test_a_grouping_option_that_it_does_not_declare_is_refused(
    cli: Cli, sample: Sample, tmp_path: Path, option: str, value: str
) -> None:
    outcome = cli("eval", *sample.words, *TOYS, option, value, "--out", tmp_path)
    assert outcome.status == 2
    assert f"{option}: grounding nth does not use it; remove it" in outcome.error


# --- a grounding from one file outside the package ---


@pytest.fixture
def file(tmp_path: Path) -> Path:
    code = Path(nth.__file__).read_text().replace('name="nth"', 'name="ninth"').replace('"place"', '"spot"')
    (tmp_path / "own.py").write_text(code)
    return tmp_path / "own.py"


def test_a_grounding_from_a_file_runs_with_its_own_option(cli: Cli, sample: Sample, tmp_path: Path, file: Path) -> None:
    words = ("eval", *sample.words, "--grounding", f"{file}:STRATEGY", "--out", tmp_path / "run")
    assert cli(*words, "--spot", 1).status == 0
    run = so.load_run(tmp_path / "run")
    assert run.results["grounding"] == "own.py:STRATEGY"
    assert all(p.element_id == p.ranked[1] for p in run.predictions())
    assert "--group-size: grounding own.py:STRATEGY does not use it" in cli(*words, "--group-size", 5).error


def test_a_run_is_not_resumed_by_changed_code(cli: Cli, sample: Sample, tmp_path: Path, file: Path) -> None:
    words = ("eval", *sample.words, "--grounding", f"{file}:STRATEGY", "--out", tmp_path / "run")
    cli(*words)
    file.write_text(file.read_text() + "# changed\n")
    assert "grounding_digest differ" in cli(*words).error


def test_a_configuration_file_may_name_a_file_and_its_option(
    cli: Cli, sample: Sample, tmp_path: Path, file: Path
) -> None:
    (tmp_path / "own.yaml").write_text(f"grounding: {file}:STRATEGY\nspot: 2\n")
    assert cli("eval", *sample.words, "--config", tmp_path / "own.yaml", "--out", tmp_path / "run").status == 0
    assert all(p.element_id == p.ranked[2] for p in so.load_run(tmp_path / "run").predictions())


def test_the_viewer_loads_no_code_that_a_run_names(cli: Cli, sample: Sample, tmp_path: Path, file: Path) -> None:
    cli("eval", *sample.words, "--grounding", f"{file}:STRATEGY", "--out", tmp_path / "run")
    manifest = read_json(tmp_path / "run" / "manifest.json")
    manifest["settings"]["grounding"] = f"{file}:STRATEGY"
    with pytest.raises(InputError, match="a grounding of this package"):
        open_grounding(manifest, tmp_path / "captions.jsonl")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("nowhere", "expected one of choice, annotation, attributes, pixel, mindact, oracle, nth, or FILE.py:NAME"),
        ("nowhere.py:STRATEGY", "cannot read nowhere.py: No such file"),
        ("{file}:_open", "expected a Strategy or an Agent in {file}:_open, got a function"),
    ],
)
def test_a_grounding_that_is_none_is_refused(
    cli: Cli, sample: Sample, tmp_path: Path, file: Path, spec: str, expected: str
) -> None:
    outcome = cli("eval", *sample.words, "--grounding", spec.format(file=file), "--out", tmp_path / "run")
    assert outcome.status == 2
    assert expected.format(file=file) in outcome.error


# --- a provider whose every call fails ---

BROKEN = "no step was answered: model_error at 6 of 6 steps, first: OSError: the wire is cut"


class Broken:
    async def complete(self, request: Request) -> Completion:
        raise OSError("the wire is cut")

    async def aclose(self) -> None:
        pass


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(PROVIDERS, "broken", replace(parrot.PROVIDER, open=lambda name, options: Broken()))
    return "broken/x"


@pytest.mark.parametrize("more", [(), ("--predict-only",), ("--model", "parrot/ACTION: CLICK")], ids=" ".join)
def test_eval_says_that_no_step_was_answered(
    cli: Cli, sample: Sample, tmp_path: Path, broken: str, more: tuple[str, ...]
) -> None:
    outcome = cli("eval", *sample.words, "--model", broken, *more, "--out", tmp_path / "run")
    assert outcome.status == 1
    assert outcome.err.count(BROKEN) == 1
    assert "other orders" not in outcome.err


def test_score_says_that_no_step_was_answered(cli: Cli, sample: Sample, tmp_path: Path, broken: str) -> None:
    cli("eval", *sample.words, "--model", broken, "--predict-only", "--out", tmp_path / "run")
    outcome = cli("score", tmp_path / "run")
    assert (outcome.status, f"Caution: {BROKEN}" in outcome.out) == (1, True)


def test_errors_of_a_provider_count_for_fail_on_error(cli: Cli, sample: Sample, tmp_path: Path, broken: str) -> None:
    outcome = cli("eval", *sample.words, "--model", broken, "--fail-on-error", 0.5, "--out", tmp_path / "run")
    assert outcome.status == 2
    assert (
        "at most 50% of steps to end in an error, not 6 of 6, got model_error: OSError: the wire is cut" in outcome.err
    )
    assert "ignores" not in outcome.err
    assert "takes no notice" not in outcome.err
