"""Parse a page once, then describe any of its elements in time linear in what is described.

The rules are MindAct's (Mind2Web's released code, commit 1b7c323, `src/data_utils/dom_utils.py`), reproduced to the
byte: which nodes around a set of candidates are kept (`_Pruned`), how attributes become words (`_attribute_words`), how
the kept nodes are written (`_Pruned.pieces`, `_finish`). Upstream copies the whole tree for every description; here the
tree is flattened to arrays once, and a description touches only the nodes that it keeps.

Where upstream is undefined (it raises, or prints markup that is no element) this module decides: comments, processing
instructions and namespaces are dropped when parsing, elements in a `<text>` node are not looked at, and a candidate
must be an element, never a `<text>` node. Nodes that share an id are kept, numbered and listed together, as upstream
does.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from seeact_offline.records import RowError, Step

if TYPE_CHECKING:
    from lxml import etree

Style = Literal["brackets", "parentheses"]

ID = "backend_node_id"
TEXT = "text"
# MindAct's numbers: other ones give other texts than those that the published ranker was trained on
MAX_DEPTH = 5
"""Descendants are kept this many levels below the candidate's children."""
MAX_DESCENDANTS = 50
MAX_SIBLINGS = 3
"""Siblings that are kept on either side."""
MAX_VALUE_WORDS = 5
MAX_WORD_LENGTH = 15
"""Attribute words of this length or more are left out."""
MAX_WORDS = 20
"""Attribute words of a node, and words of a text node."""
CHOICE_WORDS = 10
TARGET_WORDS = 100
ANCESTOR_WORDS = 50

# Limits of a page, each at least 100 times what a released page of middling size has (106 KB, 2,400 tags, 6 attributes,
# 468 candidates described by 35,000 nodes): beyond them a row is a named failure instead of minutes and gigabytes.
MAX_CHARACTERS = 20_000_000
MAX_TAGS = 500_000
"""Opening and closing ones."""
MAX_NODE_ATTRIBUTES = 1_000
MAX_DESCRIBED = 5_000_000
"""Nodes around all candidates of a page, each as often as it is written."""

# in MindAct's order
ATTRIBUTES = (
    "role", "aria_role", "type", "alt", "aria_description", "aria_label", "label", "title", "name", "text_value", "value",
    "placeholder", "input_checked", "input_value", "option_selected", "class",
)  # fmt: skip
EMPTY_VALUES = frozenset({"hidden", "none", "presentation", "null", "undefined"})
ENTITIES = (
    ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&nbsp;", " "), ("&ndash;", "-"), ("&rsquo;", "'"), ("&lsquo;", "'"),
    ("&ldquo;", '"'), ("&rdquo;", '"'), ("&#39;", "'"), ("&#40;", "("), ("&#41;", ")"),
)  # fmt: skip

_IN_VALUES = (
    ("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\t", "&#9;"), ("\n", "&#10;"), ("\r", "&#13;"),
)  # fmt: skip

_OPENING = re.compile(r"\s*\(\s*")
_CLOSING = re.compile(r"\s*\)\s*")
_DECLARATION = re.compile(r"\ufeff?\s*<\?xml[^>]*\?>")


class Choice(NamedTuple):
    """One candidate as it is offered: its id and its first words."""

    backend_node_id: str
    text: str


class PageNode(NamedTuple):
    """One node of a page, as parsed. Nodes are numbered in document order."""

    backend_node_id: str
    """Empty where the page gives none."""
    tag: str
    parent: int
    """Its number; -1 for the root."""
    end: int
    """One past the last node below it."""
    attributes: Mapping[str, str]
    text: str
    """Right after the opening tag; pages keep their words in `<text>` nodes."""


@dataclass(frozen=True, slots=True)
class GroupText:
    """A group of candidates described together."""

    html: str
    """The page pruned around the group."""
    choices: tuple[Choice, ...]
    """Choices in document order."""


class Page:
    """One parsed page. Nodes are numbered in document order; node 0 is the root."""

    def __init__(self, cleaned_html: str) -> None:
        """Raises RowError: `bad_html` when the text is not well-formed XML, `page_too_large` beyond a limit."""
        root = _parse(cleaned_html)
        # what is inside a `<text>` node is not looked at
        for text in list(root.iter("{*}" + TEXT)):
            del text[:]
        self._elements = list(root.iter())
        self._tags = [str(element.tag).rpartition("}")[2] for element in self._elements]
        self._ids = [element.get(ID, "") for element in self._elements]
        number: dict[etree._Element | None, int] = {element: node for node, element in enumerate(self._elements)}
        # -1 for the root
        self._parents = [number.get(element.getparent(), -1) for element in self._elements]
        # one past the last node of the subtree
        self._ends = list(range(1, len(self._elements) + 1))
        for node in range(len(self._elements) - 1, 0, -1):
            if self._ends[self._parents[node]] < self._ends[node]:
                self._ends[self._parents[node]] = self._ends[node]
        # these four are filled when a node is first asked for: most nodes of a page are never written
        self._children: dict[int, list[int]] = {}
        self._texts: dict[int, list[int]] = {}
        self._elements_in: dict[int, list[int]] = {}
        self._content: dict[int, _Content] = {}
        self._nodes, self._twins = self._indexed()

    @property
    def ids(self) -> frozenset[str]:
        """Ids of all elements."""
        return frozenset(self._nodes)

    @property
    def duplicate_ids(self) -> frozenset[str]:
        """Ids that more than one element carries."""
        return frozenset(self._twins) - {""}

    def position(self, backend_node_id: str) -> int:
        """Place in document order. Raises RowError `missing_candidate`."""
        return self._node(backend_node_id)

    def span(self, backend_node_id: str) -> tuple[int, int]:
        """Places in document order: its own, and one past the last node inside it. Raises RowError
        `missing_candidate`."""
        node = self._node(backend_node_id)
        return node, self._ends[node]

    def __len__(self) -> int:
        return len(self._elements)

    def nodes(self) -> Iterator[PageNode]:
        """All nodes in document order, `<text>` nodes included."""
        columns = self._elements, self._ids, self._tags, self._parents, self._ends
        for element, node_id, tag, parent, end in zip(*columns, strict=True):
            attributes = {str(name): str(value) for name, value in element.items()}
            yield PageNode(node_id, tag, parent, end, attributes, element.text or "")

    def relatives(self, backend_node_ids: Iterable[str]) -> frozenset[str]:
        """Ids of their parents, children and siblings. Raises RowError `missing_candidate`."""
        own = {self._node(node_id) for node_id in backend_node_ids}
        above = {self._parents[node] for node in own} - {-1}
        around = zip(self._ids, self._parents, strict=True)
        below = {node_id for node_id, parent in around if parent in above or parent in own}
        return frozenset(below | {self._ids[node] for node in above})

    def texts(self) -> Iterator[tuple[int, str]]:
        """The number and text of each `<text>` node."""
        return ((node, self._elements[node].text or "") for node, tag in enumerate(self._tags) if tag == TEXT)

    def values(self, names: Collection[str]) -> Iterator[tuple[int, str]]:
        """The number of each node with such attributes, and their values between spaces."""
        wanted = frozenset(names)
        for node, element in enumerate(self._elements):
            # few nodes have any, and `items` makes a pair of each attribute
            if not wanted.isdisjoint(element.keys()):
                yield node, " ".join(str(value) for name, value in element.items() if name in wanted)

    def describe_group(self, backend_node_ids: Iterable[str], style: Style = "brackets") -> GroupText:
        """The page pruned around these candidates and the candidates' own texts. Raises RowError
        `missing_candidate`."""
        pruned = _Pruned(self, [self._node(i) for i in backend_node_ids])
        pieces, spans = pruned.pieces(style)
        choices = tuple(
            Choice(self._ids[node], " ".join(_first_words(pieces[begin:end], CHOICE_WORDS, style)))
            for node, begin, end in spans
        )
        return GroupText(_finish("".join(pieces), style), choices)

    def ranker_text(self, backend_node_id: str) -> str:
        """`ancestors: A\\ntarget: T`, what the cross-encoder reads of one candidate."""
        node = self._node(backend_node_id)
        pruned = _Pruned(self, [node])
        style: Style = "parentheses"
        pieces, spans = pruned.pieces(style)
        # with twins, the first in the document is the target
        first, begin, end = spans[0]
        target = " ".join(_first_words(pieces[begin:end], TARGET_WORDS, style))
        around = "" if first == 0 else _finish("".join(pruned.pieces(style, without=first)[0]), style)
        ancestors = _CLOSING.sub("", _OPENING.sub("/", around)).split()
        return f"ancestors: {' '.join(ancestors[-ANCESTOR_WORDS:])}\ntarget: {target}"

    def _node(self, backend_node_id: str) -> int:
        node = self._nodes.get(backend_node_id)
        if node is None:
            raise RowError("missing_candidate", f"candidate {backend_node_id} is not in the HTML")
        return node

    def _indexed(self) -> tuple[dict[str, int], dict[str, list[int]]]:
        """Id -> its first element; and id -> all elements that carry it, where several do (or carry none, under "")."""
        numbered = [node for node, tag in enumerate(self._tags) if tag != TEXT]
        first = {self._ids[node]: node for node in reversed(numbered)}
        first.pop("", None)
        twins: dict[str, list[int]] = {}
        if len(first) < len(numbered):
            for node in numbered:
                twins.setdefault(self._ids[node], []).append(node)
        return first, {key: nodes for key, nodes in twins.items() if len(nodes) > 1 or not key}

    def check_describable(self, backend_node_ids: Iterable[str]) -> None:
        """Raises RowError `page_too_large` when all these candidates together take more than MAX_DESCRIBED nodes to
        describe.

        Each is written with its ancestors, all their text nodes, and whatever shares an id with one of these.
        """
        texts = Counter(parent for parent, tag in zip(self._parents, self._tags, strict=True) if tag == TEXT)
        above: list[int] = []
        for node, parent in enumerate(self._parents):
            above.append((above[parent] if parent >= 0 else 0) + 1 + texts[node])
        around = MAX_DESCENDANTS + 2 * MAX_SIBLINGS + max(map(len, self._twins.values()), default=0)
        written = sum(above[self._node(node)] + around for node in backend_node_ids)
        if written > MAX_DESCRIBED:
            raise _too_large(f"{written:,} nodes to describe its candidates", MAX_DESCRIBED)

    def _texts_of(self, node: int) -> list[int]:
        """The children that are text."""
        texts = self._texts.get(node)
        if texts is None:
            texts = self._texts[node] = [child for child in self._children_of(node) if self._tags[child] == TEXT]
        return texts

    def _elements_of(self, node: int) -> list[int]:
        """The children that are no text."""
        elements = self._elements_in.get(node)
        if elements is None:
            children = self._children_of(node)
            elements = self._elements_in[node] = [child for child in children if self._tags[child] != TEXT]
        return elements

    def _children_of(self, node: int) -> list[int]:
        children = self._children.get(node)
        if children is None:
            children = self._children[node] = []
            child, end = node + 1, self._ends[node]
            while child < end:
                children.append(child)
                child = self._ends[child]
        return children

    def _content_of(self, node: int) -> _Content:
        content = self._content.get(node)
        if content is None:
            content = self._content[node] = _content(self._elements[node], self._tags[node], is_root=node == 0)
        return content


def page_of(step: Step) -> Page:
    """The page of a step without faults; an empty one where the step has none. Raises RowError as `Page` does."""
    return Page(step.cleaned_html if step.has_page else "<html/>")


class _Content(NamedTuple):
    """The words written of a node, besides its tag and number; escaped."""

    words: str
    """Words of its attributes; for a text node its opening tag, empty where it has no attribute other than the id."""
    text: str
    """Right after the opening tag."""
    tail: str
    """Right after the closing tag."""
    is_bare: bool
    """True if it has no attribute other than the id."""


class _Pruned:
    """The part of a page that is kept around some candidates.

    Kept are the candidates, their ancestors, their first descendants and nearest siblings, and the text nodes of all
    these. A kept node with no attribute, no text child and at most one kept child gives its place to that child.
    """

    def __init__(self, page: Page, candidates: Sequence[int]) -> None:
        self._page = page
        self._candidate_ids = {page._ids[node] for node in candidates}
        tags, parents = page._tags, page._parents
        elements = {node for node in self._kept(candidates) if tags[node] != TEXT or parents[node] < 0}
        texts = [child for node in elements for child in page._texts_of(node)]
        # all nodes to write, in document order
        self._order = sorted(elements.union(texts))
        self._spliced, self._n_children = self._splice()

    def _kept(self, candidates: Sequence[int]) -> set[int]:
        kept: set[int] = set()
        lineage = {0}
        for node in candidates:
            kept.add(node)
            kept.update(self._descendants(node))
            if (parent := self._page._parents[node]) >= 0:
                siblings = self._page._elements_of(parent)
                at = bisect_left(siblings, node)
                kept.update(siblings[max(0, at - MAX_SIBLINGS) : at + MAX_SIBLINGS + 1])
            while node not in lineage:
                lineage.add(node)
                node = self._page._parents[node]
        kept |= lineage
        return self._with_twins(kept) if self._page._twins else kept

    def _descendants(self, node: int) -> Iterator[int]:
        """The first in document order, not deeper than allowed. Text nodes count, but are kept by their parents."""
        children_of = self._page._children_of
        stack = [(child, 0) for child in reversed(children_of(node))]
        for _ in range(MAX_DESCENDANTS):
            if not stack:
                return
            child, depth = stack.pop()
            yield child
            if depth < MAX_DEPTH:
                stack.extend((grandchild, depth + 1) for grandchild in reversed(children_of(child)))

    def _with_twins(self, kept: set[int]) -> set[int]:
        """Upstream keeps by id: whatever shares an id with a kept node is kept, if all its ancestors are."""
        page = self._page
        ids = {page._ids[node] for node in kept if page._tags[node] != TEXT}
        wanted = kept.union(*(page._twins[key] for key in ids if key in page._twins))
        connected = {0}
        for node in sorted(wanted):
            if page._parents[node] in connected:
                connected.add(node)
        return connected

    def _splice(self) -> tuple[set[int], dict[int, int]]:
        """Finds the nodes that give their place to their children, and the number of children left to each other
        node."""
        page = self._page
        n_children = dict.fromkeys(self._order, 0)
        has_text: set[int] = set()
        spliced: set[int] = set()
        for node in reversed(self._order):
            parent = page._parents[node]
            if page._tags[node] == TEXT:
                has_text.add(parent)
            elif (
                n_children[node] <= 1
                and node not in has_text
                and parent >= 0
                and page._content_of(node).is_bare
                and page._ids[node] not in self._candidate_ids
            ):
                spliced.add(node)
                n_children[parent] += n_children[node]
                continue
            if parent >= 0:
                n_children[parent] += 1
        return spliced, n_children

    def pieces(self, style: Style, without: int | None = None) -> tuple[list[str], list[tuple[int, int, int]]]:
        """The markup as pieces to be joined, and (node, first piece, one past the last) of each candidate.

        `without` leaves out one candidate's subtree, after all was pruned.
        """
        page, out = self._page, _Pieces(style)
        numbers: dict[str, int] = {}
        starts: list[tuple[int, int]] = []
        # the written parent of what is left out
        bereft = None if without is None else page._parents[without]
        while bereft in self._spliced:
            bereft = page._parents[bereft]
        skip_to = -1
        for node in self._order:
            if node == without:
                skip_to = page._ends[node]
            if node in self._spliced or node < skip_to:
                continue
            out.close_before(node)
            number = None
            if page._tags[node] != TEXT and page._ids[node] in self._candidate_ids:
                number = numbers.setdefault(page._ids[node], len(numbers))
                starts.append((node, len(out.parts)))
            is_empty = self._n_children[node] - (node == bereft) == 0
            out.open(page, node, number, is_empty)
        out.close_before(len(page))
        return out.parts, [(node, begin, out.closed_at[node]) for node, begin in starts]


class _Open(NamedTuple):
    """A node that is written but not closed."""

    end: int
    """One past the last node of its subtree."""
    node: int
    closing: str
    """Its closing tag."""
    tail: str


class _Pieces:
    """Writes nodes in document order, closing each when its subtree has passed."""

    def __init__(self, style: Style) -> None:
        self.parts: list[str] = []
        # node -> one past its last piece, the tail included as upstream's serialiser does
        self.closed_at: dict[int, int] = {}
        self._open: list[_Open] = []
        self._parentheses = style == "parentheses"

    def close_before(self, node: int) -> None:
        while self._open and self._open[-1].end <= node:
            _, closed, tag, tail = self._open.pop()
            self.parts += (tag, tail)
            self.closed_at[closed] = len(self.parts)

    def open(self, page: Page, node: int, number: int | None, is_empty: bool) -> None:
        words, text, tail, _ = page._content_of(node)
        is_text = page._tags[node] == TEXT
        closes_itself = is_empty and not text and not is_text
        opening = words if is_text else _opening_tag(page._tags[node], number, words, closes_itself)
        # a text node without attributes has no tag
        closing = f"</{page._tags[node]}>" if opening and not closes_itself else ""
        if opening and self._parentheses:
            # as upstream, a tag whose last attribute word ends in a slash counts as closing itself
            opening = "(" + (opening[1:-2] + "$/$" if opening.endswith("/>") else opening[1:-1])
            closing = closing and ")"
        self.parts.append(opening + text)
        self._open.append(_Open(page._ends[node], node, closing, tail))


def _parse(cleaned_html: str) -> etree._Element:
    from lxml import etree

    # counted before they become objects of Python
    if len(cleaned_html) > MAX_CHARACTERS:
        raise _too_large(f"{len(cleaned_html):,} characters", MAX_CHARACTERS)
    if (tags := cleaned_html.count("<")) > MAX_TAGS:
        raise _too_large(f"{tags:,} tags", MAX_TAGS)
    # page HTML is untrusted: no entities, no network, no DTD
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, huge_tree=True
    )
    # the declaration may name an encoding, which text that is decoded already no longer has
    declaration = _DECLARATION.match(cleaned_html)
    html = cleaned_html[declaration.end() :] if declaration else cleaned_html
    try:
        root = etree.fromstring(html.encode(), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        reason = " ".join(str(error).split())[:200] or "no element in it"
        raise RowError("bad_html", f"cleaned_html is not well-formed: {reason}") from None
    if root.xpath(f"boolean(descendant-or-self::*[count(@*) > {MAX_NODE_ATTRIBUTES}])"):
        raise _too_large("a node of more attributes", MAX_NODE_ATTRIBUTES)
    etree.strip_tags(root, etree.Entity)
    return root


def _too_large(excess: str, limit: int) -> RowError:
    return RowError("page_too_large", f"cleaned_html has {excess}, expected {limit:,} at most")


def _content(element: etree._Element, tag: str, is_root: bool) -> _Content:
    tail = "" if is_root else _between(element.tail)
    if tag == TEXT:
        text = _escape(" ".join((element.text or "").split()[:MAX_WORDS]))
        return _Content(_text_tag(element), text, tail, is_bare=False)
    if len(element.attrib) <= len(ATTRIBUTES):
        attributes = {str(name): str(value) for name, value in element.items() if name != ID}
    else:
        # `items` would take a time that grows with the square of their number: of those not read, only the names
        names = [str(name) for name in element.attrib if name != ID]
        attributes = {name: element.get(name, "") if name in ATTRIBUTES else "" for name in names}
    return _Content(_attribute_words(attributes), _between(element.text), tail, not attributes)


def _text_tag(element: etree._Element) -> str:
    """The opening tag of a text node that has attributes (`<text role= x title= y z>`), else empty.

    Upstream turns attributes into words for elements only and takes out only text tags without any. So of these the
    names and whole values are written, and each quote is a space.
    """
    named = [(str(name), str(value)) for name, value in element.items() if name != ID]
    if not named:
        return ""
    written = "".join(f" {name.rpartition('}')[2]}= {_escape_value(value)} " for name, value in named)
    tag = _mend(f"<{TEXT}{written}>").replace(" >", ">")
    return "" if tag == f"<{TEXT}>" else tag


def _attribute_words(attributes: dict[str, str]) -> str:
    """The node's attributes as a plain word list, escaped."""
    if not attributes:
        return ""
    values: list[str] = []
    for name in ATTRIBUTES:
        value = attributes.get(name)
        if not value or (value := value.lower()) in EMPTY_VALUES or value.startswith("http"):
            continue
        value = " ".join([word for word in value.split() if len(word) < MAX_WORD_LENGTH][:MAX_VALUE_WORDS])
        if value and value not in values:
            values.append(value)
    words = " ".join(" ".join(values).split()[:MAX_WORDS])
    return _escape_value(words)


def _escape_value(value: str) -> str:
    """Escapes a value as the serialiser writes an attribute."""
    for character, entity in _IN_VALUES:
        value = value.replace(character, entity)
    return value


def _opening_tag(tag: str, number: int | None, words: str, closes_itself: bool) -> str:
    """`<tag id=N words>`. Upstream writes `id="N" meta="words"`, turns quotes into spaces and takes the names out
    again."""
    end = "/>" if closes_itself else ">"
    if "=" in words:
        head = f"<{tag}" + (f" id= {number} " if number is not None else "") + f" meta= {words} {end}"
        return _mend(head).replace(" >", ">")
    head = f"<{tag}" if number is None else f"<{tag} id={number}"
    if words:
        head = f"{head} {words}"
    # the quote before a closing slash leaves its space behind
    return f"{head} {end}" if closes_itself and (words or number is not None) else head + end


def _escape(text: str) -> str:
    """Escapes text as the serialiser writes it, with quotes turned into spaces."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;").replace('"', " ")
    return _mend(text)


def _mend(text: str) -> str:
    return text.replace("meta= ", "").replace("id= ", "id=") if "= " in text else text


def _between(text: str | None) -> str:
    """Text between tags; only whether white space is there matters."""
    if not text:
        return ""
    return _escape(text) if text.strip() else " "


def _finish(markup: str, style: Style) -> str:
    """The last steps, on the whole text: what closes itself, entities, white space."""
    if style == "parentheses":
        markup = markup.replace("$/$", ")")
    if "&" in markup:
        for entity, character in ENTITIES:
            markup = markup.replace(entity, character)
    return " ".join(markup.split())


def _first_words(pieces: Sequence[str], n: int, style: Style) -> list[str]:
    """The first words of the joined pieces, without joining more of them than needed."""
    for taken in (8 * n, len(pieces)):
        words = _finish("".join(pieces[:taken]), style).split()
        if len(words) > n:
            break
    return words[:n]
