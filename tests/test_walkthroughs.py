"""README and how-to pages run as they stand: pasted from top to bottom into one shell, in an empty clone.

Two things are not those of a newcomer. `.venv` is this interpreter's, not made by pip; but a package that comes with an extra is
missing until the page has installed that extra. And `view`, which never ends, is opened, looked at and interrupted.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import documents
from tests.documents import PAGES, REPO, SHELL, WALKTHROUGHS, Block

pytestmark = pytest.mark.slow

NEEDS = {
    "a key": r"--model openai/gpt|OPENAI_API_KEY",
    "the hub": r"\b(osunlp|google)/|\bhf download",
    "a server": r"\b(vllm|ollama) |--base-url",
    "a GPU": r"\btorchrun |\baccelerate launch ",
    "minutes": r"\bfinetune\b|\btrain-ranker\b",
    "Ray": r"\[ray\]|\bray start\b",
    "a person's causes": r"\bscore \S+ --causes ",
    "your own": r"\b[A-Z]{4,}\b|hf/OUT\b|\braw_dump\b",
}
"""What a block that is not run may lack, and what in its text shows it. "Your own": files, folders or names to be filled in."""
MINUTES = {
    "docs/finetuning.md",
    "docs/how-to/compare-and-tables.md",
    "docs/how-to/improve.md",
    "docs/how-to/viewer.md",
}
"""Pages of half a minute or more of the processor: `make nightly` pastes them; the tests of their commands are in every suite."""
NOT_RUN = 24
"""Blocks that may be left out, of all pages together."""
PRELUDE = """\
# a newcomer's shell has nothing of the `make test ARGS=...` that this may be part of
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL ARGS EXTRAS
set -eEumo pipefail
trap 'echo "failed: $BASH_COMMAND"' ERR
# starts a server, waits for its link, opens it, interrupts it
opened() {
    # the link of the server before may still stand in it
    : > served
    "$@" > served & local served=$!
    until grep -q http served; do kill -0 $served; sleep 0.1; done
    python -c 'import sys, urllib.request as web; assert b"<title>" in web.urlopen(sys.argv[1]).read()' "$(cut -d '#' -f 1 served)"
    kill -INT $served
    wait $served
}
source .venv/bin/activate
"""
ACTIVATE = 'PATH="$PWD/.venv/bin:$PATH"\n'
PIP = """\
#!/bin/sh
# stands for pip: notes the extras
echo "$@" >> "$(dirname "$0")/../asked-of-pip"
"""
MISSING = """\
import re, sys
from importlib.machinery import PathFinder
from pathlib import Path

BROUGHT_BY = {brought_by!r}
asked = Path(__file__).with_name("asked-of-pip").read_text()
extras = {{extra for named in re.findall(r"\\[([a-z,]+)\\]", asked) for extra in named.split(",")}}


class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        found = extras & BROUGHT_BY[name] if name in BROUGHT_BY else True
        return super().find_spec(name, path, target) if found else None


sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
"""
MAIN = "#!{python}\nfrom seeact_offline.cli import main\nraise SystemExit(main())\n"


def with_dependencies(requirements: list[str]) -> set[str]:
    """Names of the distributions that an installation of these would leave, as far as they are here."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        asked = waiting.pop()
        key = (canonicalize_name(asked.name), frozenset(asked.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            needed = metadata.requires(asked.name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(key[0])
        for one in map(Requirement, needed):
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in asked.extras | {""}):
                waiting.append(one)
    return found


def project() -> dict[str, Any]:
    return tomllib.loads((REPO / "pyproject.toml").read_text())["project"]


def own_extras() -> dict[str, list[str]]:
    return project()["optional-dependencies"]


def brought_by() -> dict[str, set[str]]:
    """The extras that bring each package that only extras bring."""
    own = own_extras()

    def flat(extra: str) -> list[str]:
        named = re.compile(r"seeact-offline\[(.+)\]")
        return [one for text in own[extra] for found in [named.fullmatch(text)]
                for one in ([text] if found is None else [part for name in found[1].split(",") for part in flat(name)])]  # fmt: skip

    core = with_dependencies(project()["dependencies"])
    extras = {extra: with_dependencies(flat(extra)) for extra in own}
    named = {canonicalize_name(Requirement(text).name) for texts in own.values() for text in texts} - core
    homes = {package: {*map(canonicalize_name, found)} for package, found in metadata.packages_distributions().items()}
    return {
        package: {extra for extra, brought in extras.items() if brought & found}
        for package, found in homes.items()
        if found & named and not found & core
    }


@pytest.fixture(scope="module")
def missing() -> str:
    return MISSING.format(brought_by=brought_by())


@pytest.fixture
def clone(tmp_path: Path, missing: str) -> Path:
    """An empty clone: what is in the repository, with an environment that `make` takes for installed."""
    folder = tmp_path / "seeact-offline"
    venv = folder / ".venv"
    (venv / "bin").mkdir(parents=True)
    ignored = {line.strip("/") for line in (REPO / ".gitignore").read_text().splitlines()}
    for path in REPO.iterdir():
        if path.name[0] != "." and path.name not in ignored:
            (folder / path.name).symlink_to(path)
    if sys.prefix != sys.base_prefix:
        for name in ("pyvenv.cfg", "lib"):
            (venv / name).symlink_to(Path(sys.prefix) / name)
    (venv / "bin" / "python").symlink_to(sys.executable)
    programs = {"activate": ACTIVATE, "pip": PIP, "seeact-offline": MAIN.format(python=venv / "bin" / "python")}
    for name, text in programs.items():
        (venv / "bin" / name).write_text(text)
        (venv / "bin" / name).chmod(0o755)
    (venv / "sitecustomize.py").write_text(missing)
    (venv / "asked-of-pip").touch()
    (venv / ".installed").touch()
    return folder


def pasted(page: Path) -> Iterator[str]:
    """The page as the shell gets it. Blocks of Python that follow each other are one session."""
    session = ""
    for block in [*documents.blocks(page), None]:
        kind, _, what = block.mark.partition(": ") if block else ("", "", "")
        if block and kind == "run" and block.language == "python":
            session += block.text
            continue
        if session:
            yield f"python <<'END OF SESSION'\n{session}\nEND OF SESSION\n"
            session = ""
        if block and kind == "file":
            yield f"cat > {what} <<'END OF FILE'\n{block.text}END OF FILE\n"
        elif block and kind == "run":
            yield from (typed(line, what) for line in documents.lines(block))


def typed(line: str, what: str) -> str:
    if re.search(r"(\bseeact-offline view|/view\.py)\b(?!.*--bundle)", line):
        return f"opened {line}\n"
    return f"if {line}; then false; else test $? = 1; fi\n" if what == "exit status 1" else f"{line}\n"


def marked(page: Path, kind: str) -> list[Block]:
    return [block for block in documents.blocks(page) if block.mark.partition(": ")[0] == kind]


def has_browser() -> bool:
    found = any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return found and find_spec("playwright") is not None


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name, marks=pytest.mark.nightly if name in MINUTES else [])
        for page in WALKTHROUGHS
        if marked(page, "run")
        for name in [documents.name(page)]
    ],
)
def test_a_page_runs_from_top_to_bottom(page: Path, clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if any(block.mark == "run: browser" for block in documents.blocks(page)) and not has_browser():
        pytest.skip("no Chromium, or no playwright")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    # `view` opens the browser named here
    monkeypatch.setenv("BROWSER", "true")
    monkeypatch.setenv("PYTHONPATH", f"{clone / '.venv'}:{clone}")
    done = subprocess.run(
        ["bash"],
        input=PRELUDE + "".join(pasted(page)),
        cwd=clone,
        capture_output=True,
        text=True,
        timeout=280,
        # a job that was started in the background ignores interrupts, and so would what it starts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def test_arguments_of_make_do_not_reach_the_pages(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # as `make test ARGS=--leaked` leaves them
    monkeypatch.setenv("MAKEFLAGS", " -- ARGS=--leaked")
    monkeypatch.setenv("ARGS", "--leaked")
    done = subprocess.run(["bash"], input=f"{PRELUDE}make -n eval\n", cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "scripts/eval.py" in done.stdout
    assert "--leaked" not in done.stdout


def test_what_is_not_run_says_why_and_it_is_true() -> None:
    left_out = []
    for page in WALKTHROUGHS:
        for block in documents.blocks(page):
            if block.language not in {*SHELL, "python"}:
                continue
            kind, _, reasons = block.mark.partition(": ")
            assert kind in {"run", "file", "not run"}, f"{block.where}: neither run, nor said why not"
            if kind == "not run":
                left_out.append(block.where)
                false = [why for why in reasons.split(", ") if not re.search(NEEDS[why], block.text)]
                assert not false, f"{block.where}: {false}"
    assert len(left_out) <= NOT_RUN, left_out


@pytest.mark.parametrize("page", PAGES, ids=documents.name)
def test_each_extra_that_a_page_installs_exists(page: Path) -> None:
    asked = {extra for named in re.findall(r"(?:seeact-offline|'\.)\[([\w,]+)\]", page.read_text(encoding="utf-8"))
             for extra in named.split(",")}  # fmt: skip
    assert asked <= {*own_extras()}
