"""The documentation as programs see it: its blocks of code, commands, links and headings.

What a reader of the sources does not see says what a block is, in a comment on the line before it:

- `<!-- run -->`: its commands are carried out by `test_walkthroughs`, on a page of reference by `test_docs`; `<!-- run: browser -->`:
  where there is a Chromium; `<!-- run: exit status 1 -->`: and end with it.
- `<!-- not run: REASON, REASON -->`: something is lacking (`test_walkthroughs.NEEDS`).
- `<!-- file: NAME -->`: its text stands in a file of that name for the commands below it.

`python -m tests.documents` lists the links that lead elsewhere, which no test fetches.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
DOCS = REPO / "docs"
PAGES = (REPO / "README.md", *sorted(DOCS.rglob("*.md")))
INDEX = (DOCS / "index.md").read_text(encoding="utf-8")
HOW_TO = re.findall(
    r"\(([\w/-]+\.md)\)", next(line for line in INDEX.splitlines() if line.startswith("| do one thing "))
)
WALKTHROUGHS = (REPO / "README.md", DOCS / "quick-start.md", *(DOCS / path for path in HOW_TO))
"""Pages that a reader follows from top to bottom; the others are looked up."""
SHELL = frozenset({"bash", ""})
"""Languages of blocks of commands; a block of none may be one."""
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^`]*$")
_MARK = re.compile(r"^\s*<!-- (?P<mark>[^>]*) -->\s*$")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *(?:\{ *#(?P<id>[\w-]+) *\})?$")
_CODE = re.compile(r"`[^`]*`")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    page: Path
    line: int
    """Number of its first line, from 1."""
    language: str
    text: str
    mark: str
    """The comment before it; empty for none."""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(REPO)}:{self.line}"


def name(page: Path) -> str:
    return str(page.relative_to(REPO))


def blocks(page: Path) -> list[Block]:
    """Yields code blocks in order. One indented inside a list loses its indent."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence:
            indent, begin = len(fence["indent"]), number + 1
            end = next(n for n in range(begin, len(lines)) if lines[n].strip() == "```")
            mark = _MARK.match(lines[number - 1]) if number else None
            text = "".join(f"{line[indent:]}\n" for line in lines[begin:end])
            found.append(Block(page, begin + 1, fence["language"], text, mark["mark"] if mark else ""))
            number = end
        number += 1
    return found


def lines(block: Block) -> list[str]:
    """Lines of a shell block, those joined that continue each other."""
    return re.sub(r"\\\n", " ", block.text).splitlines()


def commands(block: Block) -> list[list[str]]:
    """The words of each command of a shell block, without comments."""
    return [words for line in lines(block) if (words := shlex.split(line, comments=True))]


def ours(words: list[str]) -> list[str] | None:
    """Verb and options of a command of ours, however it is called; None for another program's."""
    match words:
        case ["seeact-offline" | ".venv/bin/seeact-offline", *rest] if rest:
            return rest
        case ["python" | ".venv/bin/python" | "python3", script, *rest] if re.fullmatch(r"scripts/\w+\.py", script):
            return [Path(script).stem.replace("_", "-"), *rest]
    return None


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    kept, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = _FENCE.match(line) or line.strip() == "```"
        if fence:
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def links(page: Path) -> list[str]:
    return [match["target"] for match in _LINK.finditer(_CODE.sub("", prose(page)))]


def anchors(page: Path) -> set[str]:
    """Returns the anchors that the site's builder makes from the headings."""
    found: set[str] = set()
    for line in prose(page).splitlines():
        heading = _HEADING.match(line)
        if heading:
            plain = re.sub(r"[^\w\s-]", "", heading["title"].replace("`", "")).strip().lower()
            found.add(heading["id"] or re.sub(r"[\s-]+", "-", plain))
    return found


def external_links() -> Iterator[tuple[str, str]]:
    """Each page with each link of it that leads elsewhere."""
    for page in PAGES:
        for target in links(page):
            if "://" in target:
                yield name(page), target


if __name__ == "__main__":
    for page_name, target in external_links():
        print(page_name, target)
