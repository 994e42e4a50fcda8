"""Commands, links, code, files and names of README and docs are correct.

Marked commands run in a folder of their own, ours in this process. To be quick, the sample is cut to its first rows there, and the
default ranker is BM25.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib.util
import json
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seeact_offline import sample
from seeact_offline.agents import AGENTS, ENDINGS, Unreadable
from seeact_offline.cli import command
from seeact_offline.dataset import lint
from seeact_offline.grounding import strategies
from seeact_offline.grounding.oracle import ANSWER_FAILURES
from seeact_offline.grounding.strategies import STRATEGIES
from seeact_offline.grounding.strategies import notes as notes_of_strategy
from seeact_offline.importers import notes as notes_of_imports
from seeact_offline.records import ROW_FAILURES, CallError
from seeact_offline.replies.final_answer import PARSE_FAILURES
from seeact_offline.replies.points import POINT_FAILURES
from seeact_offline.scoring import results, waterfall
from tests import documents
from tests.annexes import needs
from tests.documents import DOCS, PAGES, REPO, WALKTHROUGHS, Block

README_WORDS = 900
ROWS = 4
"""Rows a split: enough for `show --step 3`."""
RANKED = frozenset({"eval", "show", "ablate-markup"})
OF_OTHERS = frozenset(
    {"--generation-config", "--mm-processor-kwargs", "--model-role", "--num_processes", "--tensor-parallel-size"}
)
"""Options of vLLM, accelerate and Inspect."""
NAMED = re.compile(
    r'(?:\b(?:RowError|CallError|ReplyError|StepError|Failure|Fault|log\.add)\(\s*|\bfailure=)"([a-z_0-9]+)"'
)
"""Names of failures in the code."""
SITE_BUILDER = Path(sys.executable).with_name("zensical")

BESIDE = (*PAGES, REPO / "CONTRIBUTING.md", REPO / "CHANGELOG.md")
"""Pages with links and paths, whether the site has them or not."""
ROOMS = "|".join(sorted(path.name for path in (REPO / "seeact_offline").iterdir() if path.is_dir()))
OURS = re.compile(
    rf"(?<![\w/.-])(?:seeact_offline|ranker|tests|scripts|prompts|docs|{ROOMS})(?:/\w+)*/[a-z_0-9]\w*\.py\b"
)
"""A file of code, from the root or from the package or its tests."""
ELSEWHERE = frozenset({"agents/mind2web.py"})
"""Synapse's."""

each_page = pytest.mark.parametrize("page", PAGES, ids=documents.name)


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


# --- commands ---


def of_shell(page: Path) -> Iterator[tuple[Block, list[str]]]:
    for block in documents.blocks(page):
        if block.language in documents.SHELL:
            for words in documents.commands(block):
                yield block, words


def write_files(page: Path) -> None:
    for block in documents.blocks(page):
        kind, _, what = block.mark.partition(": ")
        if kind == "file":
            Path(what).write_text(block.text, encoding="utf-8")


@each_page
def test_each_command_has_the_options_that_the_docs_give_it(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(strategies, "ADDED", {})
    write_files(page)
    for block, words in of_shell(page):
        asked = documents.ours(words)
        if asked is None:
            continue
        # what is left out may be anything; a file of settings is there when the command is run
        left_out = {"...", *(("--config", "run.yaml") if "run.yaml" in asked else ())}
        asked = [word for word in asked if word not in left_out]
        try:
            command._parser(asked).parse_args(asked)
        except SystemExit as stop:
            pytest.fail(f"{block.where}: {' '.join(words)}: exit status {stop.code}")


def test_each_option_of_one_grounding_is_explained() -> None:
    text = read(DOCS / "commands.md")
    names = [option.name for strategy in STRATEGIES.values() for option in strategy.options]
    assert [name for name in names if f"`--{name.replace('_', '-')}" not in text] == []


def test_each_option_named_in_the_docs_exists() -> None:
    known = {"--help", "--version", *OF_OTHERS} | {option for verb in command.VERBS for option in options_of(verb)}
    known |= {*re.findall('"(--[a-z-]+)"', read(REPO / "scripts" / "benchmarks" / "__main__.py"))}
    # the log may name removed options
    for page in [page for page in PAGES if page.name != "log.md"]:
        for code in re.findall(r"`([^`]+)`", documents.prose(page)):
            words = code.split()
            # `PROGRAM --option` is another program's
            if words[0].startswith("--") or words[0] in command.VERBS:
                unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - known
                assert not unknown, f"{documents.name(page)}: {code}"


def options_of(verb: str) -> set[str]:
    (verbs,) = (action for action in command._parser([verb, "--help", "all"])._actions if action.dest == "verb")
    assert isinstance(verbs.choices, dict)
    return {name for action in verbs.choices[verb]._actions for name in action.option_strings}


def test_each_verb_has_its_row_among_the_commands() -> None:
    assert names_in_tables("commands.md") >= {*command.VERBS}


@pytest.fixture(scope="session")
def small_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rows of each split of the sample, as a data set."""
    folder = tmp_path_factory.mktemp("sample")
    for path in (sample.DATA / "data").glob("*.parquet"):
        with pq.ParquetFile(path) as file:
            pq.write_table(file.read_row_group(0).slice(0, ROWS), folder / path.name)
    return folder


def looked_up() -> list[Path]:
    """Pages of reference whose commands run."""
    marked = [page for page in PAGES if any(block.mark.startswith("run") for block in documents.blocks(page))]
    return [page for page in marked if page not in WALKTHROUGHS]


@pytest.mark.slow
@pytest.mark.parametrize("page", looked_up(), ids=documents.name)
def test_the_commands_of_a_page_run(
    page: Path, small_sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample, "DATA", small_sample)
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(strategies, "ADDED", {})
    names: dict[str, object] = {"__name__": "__main__"}
    write_files(page)
    for block in documents.blocks(page):
        kind, _, what = block.mark.partition(": ")
        if kind == "run" and what == "browser" and not has_browser():
            pytest.skip("no Chromium, or no playwright")
        elif kind == "run" and block.language == "python":
            exec(compile(block.text, block.where, "exec"), names)
        elif kind == "run":
            for words in documents.commands(block):
                status = run_command(words)
                assert status == (1 if what == "exit status 1" else 0), f"{block.where}: {' '.join(words)}"


def run_command(words: list[str]) -> int:
    asked = documents.ours(words)
    if asked is None:
        # prints the commands only: set-up is tested on clean machines
        program, *rest = words
        assert program == "make", words
        return subprocess.run(["make", "-n", *rest], cwd=REPO, check=False, stdout=subprocess.DEVNULL).returncode
    verb, *options = asked
    if verb in RANKED and not {"--ranker", "--scores"} & {*options}:
        options += ["--ranker", "bm25"]
    return command.main([verb, *options])


def has_browser() -> bool:
    found = any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return found and importlib.util.find_spec("playwright") is not None


# --- Python ---


@each_page
def test_python_of_the_docs_is_python(page: Path) -> None:
    for block in documents.blocks(page):
        if block.language == "python":
            ast.parse(block.text, block.where)


@pytest.mark.parametrize("page", [page for page in PAGES if ">>>" in read(page)], ids=documents.name)
def test_worked_examples_come_out_as_written(page: Path) -> None:
    texts = [block.text for block in documents.blocks(page) if block.language == "pycon"]
    example = doctest.DocTestParser().get_doctest("\n".join(texts), {}, page.name, str(page), 0)
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


# --- links, and the site ---


@pytest.mark.parametrize("page", BESIDE, ids=documents.name)
def test_each_link_inside_the_project_leads_somewhere(page: Path) -> None:
    for target in documents.links(page):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in documents.anchors(found), target


@pytest.mark.parametrize("page", [page for page in PAGES if page.is_relative_to(DOCS)], ids=documents.name)
def test_no_link_leads_out_of_the_site(page: Path) -> None:
    inside = [target for target in documents.links(page) if "://" not in target and not target.startswith("#")]
    assert all((page.parent / target.partition("#")[0]).resolve().is_relative_to(DOCS) for target in inside), inside


def test_links_elsewhere_are_encrypted() -> None:
    assert [link for link in documents.external_links() if not link[1].startswith("https://")] == []


def test_each_page_is_in_the_navigation() -> None:
    navigation = read(REPO / "mkdocs.yml").partition("\nnav:\n")[2]
    # the log stays beside the manual, and is none of its pages
    pages = [str(page.relative_to(DOCS)) for page in PAGES if page.is_relative_to(DOCS) and page.name != "log.md"]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


@pytest.mark.skipif(not SITE_BUILDER.exists(), reason="the site's builder is not installed: pip install '.[docs]'")
@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    shutil.copy(REPO / "mkdocs.yml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")
    for name in ("seeact_offline", "ranker"):
        (tmp_path / name).symlink_to(REPO / name)
    done = subprocess.run(
        [SITE_BUILDER, "build", "--strict"], cwd=tmp_path, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "build" / "site" / "quick-start" / "index.html").exists()


# --- names ---


def names_in_tables(page: str) -> set[str]:
    """The names in the first column of the tables of a page."""
    cells = re.findall(r"^\|([^|]*)\|", read(DOCS / page), re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def sources() -> str:
    return "".join(read(path) for path in (REPO / "seeact_offline").rglob("*.py"))


def test_the_glossary_explains_each_outcome_failure_and_note() -> None:
    notes = {note for name in (*STRATEGIES, *AGENTS) for note in notes_of_strategy(name)}
    names = {
        *waterfall.CAUSES, waterfall.SUCCESS, waterfall.LEFT_OUT, *waterfall.KINDS, *ROW_FAILURES,
        *lint.FAULTS, *PARSE_FAILURES, *POINT_FAILURES, *ANSWER_FAILURES, *CallError.ANSWERED,
        *ENDINGS.values(), Unreadable.name, *notes, *notes_of_imports(), *NAMED.findall(sources()),
    }  # fmt: skip
    text = read(DOCS / "glossary.md")
    # some are explained in a sentence
    assert sorted(name for name in names if f"`{name}`" not in text) == []


def test_the_glossary_explains_nothing_that_there_is_not() -> None:
    code = sources()
    assert [name for name in sorted(names_in_tables("glossary.md")) if name not in code] == []


def test_the_formats_name_each_field_that_a_run_leaves(small_sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ["--dataset", str(small_sample), "--ranker", "bm25", "--grounding", "pixel", "--out", str(out)]
    assert command.main(["eval", *asked]) == 0
    manifest = json.loads(read(out / "manifest.json"))
    fields = {*manifest, *json.loads(read(out / "results.json"))} - {*manifest["settings"]}
    for name in ("predictions", "targets", "steps"):
        fields |= {field for line in read(out / f"{name}.jsonl").splitlines() for field in json.loads(line)}
    files = {path.name for path in out.iterdir()} - {".lock"}
    assert sorted((fields | files) - names_in_tables("formats.md")) == []


@pytest.mark.parametrize("page", BESIDE, ids=documents.name)
def test_each_file_of_code_that_is_named_exists(page: Path) -> None:
    named = {path for code in re.findall(r"`([^`\n]+)`", read(page)) for path in OURS.findall(code)} - ELSEWHERE
    roots = (REPO, REPO / "seeact_offline", REPO / "tests" / "seeact_offline")
    assert [path for path in sorted(named) if not any((root / path).exists() for root in roots)] == []


def test_the_formats_describe_results_as_their_record_declares_them() -> None:
    section = read(DOCS / "formats.md").partition("### `results.json`")[2].partition("\n### ")[0]
    cells = re.findall(r"^\|([^|]*)\|", section, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert sorted(named) == sorted([*results.ENTRIES, "quoted"])
    figure = section.partition("each `{")[2].partition("}`")[0]
    assert [*figure.split(", "), "quoted"] == [one.name for one in dataclasses.fields(results.ResultsFigure)]


def test_the_architecture_names_what_exists() -> None:
    text = read(DOCS / "architecture.md")
    for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", text):
        if not name.endswith((".json", ".jsonl", ".md")):
            pkgutil.resolve_name(f"seeact_offline.{name}")


def test_the_architecture_names_each_room() -> None:
    rows = re.findall(r"^\|(?: [0-6] \|)?((?: `[a-z_]+/?`,?)+) \|", read(DOCS / "architecture.md"), re.MULTILINE)
    rooms = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    package = REPO / "seeact_offline"
    folders = {f"{path.name}/" for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == folders | {path.stem for path in package.glob("[!_]*.py")}


def test_the_quick_start_names_each_extra() -> None:
    extras = tomllib.loads(read(REPO / "pyproject.toml"))["project"]["optional-dependencies"]
    assert {*extras} - {"dev", "docs"} <= names_in_tables("quick-start.md")


@needs("viewer")
def test_the_pictures_of_the_viewer_are_those_of_today() -> None:
    from tests import pictures

    made_from = json.loads(pictures.DIGEST.read_text())["made_from"]
    assert made_from == pictures.source_digest(), "the viewer has changed: run `make pictures`"


def test_the_readme_is_short() -> None:
    assert len(read(REPO / "README.md").split()) <= README_WORDS
