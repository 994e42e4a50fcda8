"""The wheel's content, the cost of loading modules, and the direction of imports."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.specifiers import SpecifierSet

from tests.annexes import ANNEXES

REPO = Path(__file__).resolve().parents[1]
PACKAGES = ("seeact_offline", "ranker")
HEAVY = {"torch", "transformers", "datasets", "pandas", "openai", "cv2", "supervision", "matplotlib"}
# Lowest floor first: a module imports its own floor and those below it; on the ground, nothing.
FLOORS = (
    {"records", "sample"},
    {"files", "pages", "prompting", "replies", "merging"},
    {"dataset", "models"},
    {"ranking", "grounding", "scoring"},
    {"runs", "results"},
    {"tables"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
DISTRIBUTIONS = {
    "PIL": "pillow", "huggingface_hub": "huggingface-hub", "inspect_ai": "inspect-ai", "skimage": "scikit-image",
    "yaml": "pyyaml",
}  # fmt: skip
"""Imported name -> name of the distribution, if they differ."""


class Import(NamedTuple):
    """One imported module, as written or resolved, and where."""

    module: str
    path: Path
    line: int
    at_load: bool
    """Runs when the module is loaded, not inside a function or under TYPE_CHECKING."""

    @property
    def where(self) -> str:
        return f"{self.path.relative_to(REPO)}:{self.line}"


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (REPO / package).rglob("*.py"))


def test_module_names_are_unique() -> None:
    # a verb's module has the verb's name, whatever else is called so
    named = [path.stem for path in sources() if path.parent.name != "cli"]
    names = Counter(name for name in named if name not in ("__init__", "__main__"))
    assert [name for name, count in names.items() if count > 1] == []


def is_lazy(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def import_nodes(node: ast.AST, at_load: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, at_load
        else:
            yield from import_nodes(child, at_load and not is_lazy(child))


def imported_names(node: ast.Import | ast.ImportFrom, path: Path) -> list[str]:
    """Absolute dotted names; `from package import name` gives `package.name`, for `name` may be a module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    parents = path.relative_to(REPO).with_suffix("").parts
    base = [*parents[: -node.level]] if node.level else []
    stem = ".".join([*base, *([node.module] if node.module else [])])
    return [f"{stem}.{alias.name}" for alias in node.names]


def imports(path: Path) -> list[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        Import(name, path, node.lineno, at_load)
        for node, at_load in import_nodes(tree)
        for name in imported_names(node, path)
    ]


@cache
def all_imports() -> list[Import]:
    return [found for path in sources() for found in imports(path)]


def module_of(path: Path) -> str:
    """The module's room: `models/openai.py` belongs to `models`; empty for `__init__`."""
    first = path.relative_to(REPO).parts[1].removesuffix(".py")
    return "" if first == "__init__" else first


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=110, check=False
    )


def heavy_modules_after(statement: str) -> list[str]:
    code = f"import sys; {statement}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = run(sys.executable, "-c", code, cwd=REPO)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a source distribution of this checkout, without the network."""
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(REPO), cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed wheel and nothing else; its dependencies come from the running interpreter."""
    target = tmp_path_factory.mktemp("installed")
    options = ("--quiet", "--no-deps", "--no-index", "--target", str(target))
    done = run(sys.executable, "-m", "pip", "install", *options, str(wheel), cwd=target)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.slow
def test_wheel_holds_the_prompt_packs(wheel: Path) -> None:
    packs = {path.relative_to(REPO / "prompts").as_posix() for path in (REPO / "prompts").rglob("*") if path.is_file()}
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "seeact_offline/_prompts/seeact/choice.turn2.txt" in names
    assert {f"seeact_offline/_prompts/{pack}" for pack in packs} <= names


@pytest.mark.slow
def test_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
    assert shipped == {path.relative_to(REPO).as_posix() for path in sources()}


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_wheel_says_that_it_is_typed(wheel: Path, package: str) -> None:
    assert f"{package}/py.typed" in zipfile.ZipFile(wheel).namelist()


@pytest.mark.slow
def test_installed_package_is_loaded_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    code = "import seeact_offline as s; print(s.__file__)"
    done = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(installed))
    assert Path(done.stdout.strip()).is_relative_to(installed), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("how", ["package", "module", "command"])
def test_installed_command_runs_from_another_directory(installed: Path, tmp_path: Path, how: str) -> None:
    command = {
        "package": [sys.executable, "-m", "seeact_offline"],
        "module": [sys.executable, "-m", "seeact_offline.cli"],
        "command": [str(installed / "bin" / "seeact-offline")],
    }[how]
    done = run(*command, "--help", cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.returncode == 0, done.stderr
    assert "eval" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("script", ["eval", "rank", "show", "score", "ablate_markup", "import_prompts"])
def test_script_runs_from_another_directory_without_being_installed(script: str, tmp_path: Path) -> None:
    # -S leaves site-packages out, where an editable install would be found; the dependencies come back by PYTHONPATH
    third_party = [path for path in sys.path if path.endswith("site-packages")]
    command = (sys.executable, "-S", str(REPO / "scripts" / f"{script}.py"), "--help")
    done = run(*command, cwd=tmp_path, PYTHONPATH=os.pathsep.join(third_party))
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()


def test_loading_the_command_loads_no_heavy_package() -> None:
    assert heavy_modules_after("import seeact_offline.cli") == []


@pytest.mark.slow
def test_loading_every_module_loads_no_heavy_package() -> None:
    names = [path.relative_to(REPO).with_suffix("").as_posix().replace("/", ".") for path in sources()]
    modules = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    assert heavy_modules_after(f"import importlib; [importlib.import_module(m) for m in {modules!r}]") == []


def test_public_names_are_loaded_on_first_use() -> None:
    code = "import sys, seeact_offline as s; print('seeact_offline.dataset' in sys.modules, callable(s.load_steps))"
    done = run(sys.executable, "-c", code, cwd=REPO)
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_unknown_name_is_an_attribute_error() -> None:
    import seeact_offline

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = seeact_offline.no_such_name


def test_every_room_is_on_a_floor_or_an_annex() -> None:
    rooms = {module_of(path) for path in sources() if path.is_relative_to(REPO / "seeact_offline")} - {""}
    assert rooms <= FLOOR.keys() | ANNEXES.keys(), "give the new room a floor in FLOORS, or make it an annex"


def may_import(path: Path, theirs: str) -> bool:
    mine = module_of(path)
    if theirs in ANNEXES:
        verbs = {
            *ANNEXES[theirs].verbs,
            *(verb for one in ANNEXES.values() if theirs in one.may_import for verb in one.verbs),
        }
        own = mine == "cli" and path.stem in verbs
        return own or mine == theirs or (mine in ANNEXES and theirs in ANNEXES[mine].may_import)
    if mine in ANNEXES:
        return theirs not in ("cli", "__main__")
    return (
        mine in ("", theirs) or theirs not in FLOOR or FLOOR[theirs] < FLOOR[mine] or FLOOR[theirs] == FLOOR[mine] > 0
    )


def imports_of_rooms() -> Iterator[tuple[Import, str]]:
    """Each import of a room of the toolkit by another module of it, and the room."""
    for imported in all_imports():
        if imported.path.is_relative_to(REPO / "seeact_offline") and imported.module.startswith("seeact_offline."):
            yield imported, imported.module.split(".")[1]


@pytest.mark.slow
def test_an_import_points_down_or_sideways_and_to_an_annex_from_its_own_verbs_only() -> None:
    wrong = [f"{one.where} {one.module}" for one, room in imports_of_rooms() if not may_import(one.path, room)]
    assert wrong == []


def test_no_verb_needs_a_verb_of_an_annex_but_of_its_own() -> None:
    annex_of = {f"seeact_offline.cli.{verb}": name for name, annex in ANNEXES.items() for verb in annex.verbs}
    needed = [(one, annex_of[one.module]) for one, _ in imports_of_rooms() if one.module in annex_of]
    assert [one.where for one, annex in needed if one.path.stem not in ANNEXES[annex].verbs] == []


@pytest.mark.slow
def test_rooms_import_each_other_in_no_circle() -> None:
    needs: dict[str, set[str]] = {}
    for one, room in imports_of_rooms():
        if module_of(one.path) not in ("", room):
            needs.setdefault(module_of(one.path), set()).add(room)
    assert list(TopologicalSorter(needs).static_order())


def modules_after(code: str) -> list[str]:
    """Modules of ours that are loaded once this code has run."""
    ours = "[name for name in sys.modules if name.partition('.')[0] in ('seeact_offline', 'ranker')]"
    done = run(sys.executable, "-c", f"import sys\n{code}\nprint(*{ours})", cwd=REPO)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_scoring_loads_no_page_model_or_grounding() -> None:
    rooms = {name.split(".")[1] for name in modules_after("import seeact_offline.scoring.assembling") if "." in name}
    assert not rooms & {"pages", "models", "grounding", "agents", "dataset", "runs", *ANNEXES}


@pytest.mark.slow
def test_a_default_run_loads_what_it_needs(tmp_path: Path) -> None:
    words = ["eval", "--limit", "1", "--out", str(tmp_path / "run")]
    loaded = modules_after(f"from seeact_offline.cli import main\nassert main({words!r}) == 0")
    assert len(loaded) <= 110, loaded
    assert not {name.split(".")[1] for name in loaded if "." in name} & ANNEXES.keys()


def test_ranker_imports_nothing_of_the_toolkit() -> None:
    ours = [found for found in all_imports() if found.path.is_relative_to(REPO / "ranker")]
    assert [found.where for found in ours if found.module.split(".")[0] == "seeact_offline"] == []


def test_only_ranking_imports_ranker() -> None:
    toolkit = [found for found in all_imports() if found.path.is_relative_to(REPO / "seeact_offline")]
    importers = {module_of(found.path) for found in toolkit if found.module.split(".")[0] == "ranker"}
    assert importers <= {"ranking"}


def test_heavy_packages_are_imported_inside_functions() -> None:
    found = [one for one in all_imports() if one.module.split(".")[0] in HEAVY and one.at_load]
    assert [f"{one.where} {one.module}" for one in found] == []


def test_third_party_imports_are_declared() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    extras = [name for extra, names in project["optional-dependencies"].items() if extra != "dev" for name in names]
    declared = {re.split(r"[<>=\[; ]", line)[0] for line in [*project["dependencies"], *extras]}
    roots = {found.module.split(".")[0] for found in all_imports()} - set(PACKAGES) - sys.stdlib_module_names
    assert {DISTRIBUTIONS.get(root, root) for root in roots} <= declared


def test_pins_hold_for_the_lowest_python() -> None:
    # a pin of another version than the installed one is left to .ci/pins, which asks the index
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    lowest = f"{project['requires-python'].removeprefix('>=')}.0"
    pins = dict(line.split("==") for line in (REPO / "constraints.txt").read_text().split())
    metadata = {distribution.name: distribution.metadata for distribution in importlib.metadata.distributions()}
    needs = {
        name: metadata[name]["Requires-Python"] or ""
        for name, version in pins.items()
        if name in metadata and metadata[name]["Version"] == version
    }
    assert len(needs) > 50
    assert {name: wanted for name, wanted in needs.items() if lowest not in SpecifierSet(wanted)} == {}
