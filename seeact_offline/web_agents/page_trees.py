"""Accessibility trees of recorded pages: from the browser's own tree where one was recorded, else from the cleaned HTML.

**From the HTML** a subset of HTML-AAM and accname, with the names of roles and properties that Chromium (150) gives them:

- Roles: the first known word of `role` (`presentation` and `none`: no node), else by tag and `type` (`_ROLES`, `_INPUT_ROLES`). Cleaned
  pages have no `href`, so that each `a` is a link. Header and footer are landmarks outside of `article`, `aside`, `main`, `nav` and
  `section`, and `section` and `form` only with a name. What has neither a role nor a name is no node, and its children take its place.
- Names: `aria_labelledby`, `aria_label`; then `alt`, a button's `value`, a field's `<label>`, the first `legend` or `caption`; for roles
  that are named by what is in them (`_NAMED_BY_CONTENT`) its texts and its images' names; then `title` and `placeholder`.
- Properties: those that Chromium always lists for a role, with the state that the page holds (`input_checked`, `option_selected`). What a
  field holds is a text in it. Not known, and so not listed: addresses, `aria-expanded` and the like, what was hidden by `aria-hidden`.
- Not looked at: what makes a table a mere layout, list markers, `before` and `after` in style sheets, popups of lists, insides of players
  and date fields.

**Boxes** that are not known are the union of those below; for what has none below either (texts), that of the node above. Entries of a
`select` have none, as in a browser where the list is closed. Nodes without a `backend_node_id` (the recorded root, insides of fields) get
numbers behind the largest of the page, and the box of the node above.

Start pages of the 16 bundled sites, printed as VisualWebArena does from the cleaned HTML and from Chromium's own tree: 88 % of the lines are the
same, indents aside (F1 of the two lists), and 86 % in a window of 1280 x 2048. Most others are cells of tables whose `<table>` cleaning
took out, states such as `expanded`, and names in capitals by style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from seeact_offline.dataset.recorded import AccessibleNode
from seeact_offline.pages.dom import ID, TEXT, Page, PageNode
from seeact_offline.pages.element_texts import BROWSER_WORDS
from seeact_offline.records import Box
from seeact_offline.web_agents.trees import TreeNode, Value

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class _Entry:
    parent: int
    """Place in the list of entries; -1 for the root."""
    role: str
    name: str
    id: str | None
    properties: tuple[tuple[str, Value], ...] = ()
    box: Box | None = None


# --- of a recording ---


def tree_of_recording(
    nodes: Iterable[AccessibleNode], boxes: Mapping[str, Box], names: Mapping[str, str] = NOTHING
) -> TreeNode:
    """The recorded tree. `boxes`: those of `fill_boxes`, which knows the places of texts. `names`: names of images with their captions, by
    id. Raises ValueError without a node."""
    entries: list[_Entry] = []
    open_at: list[int] = []
    for node in nodes:
        del open_at[node.depth :]
        name = names.get(node.id, node.name) if node.id is not None and node.role in ("img", "image") else node.name
        box = None if node.id is None else boxes.get(node.id)
        entries.append(
            _Entry(open_at[-1] if open_at else -1, node.role, name, node.id, tuple(node.properties.items()), box)
        )
        open_at.append(len(entries) - 1)
    filled = _filled([entry.parent for entry in entries], [entry.box for entry in entries])
    for entry, box in zip(entries, filled, strict=True):
        if entry.role not in _IN_CLOSED_LISTS:
            entry.box = box
    return _assembled(entries, boxes)


def fill_boxes(page: Page, boxes: Mapping[str, Box]) -> dict[str, Box]:
    """Boxes of all nodes of a page by id, from those that are known."""
    nodes = list(page.nodes())
    filled = zip(nodes, _page_boxes(nodes, boxes), strict=True)
    return {node.backend_node_id: box for node, box in filled if node.backend_node_id and box is not None}


def _page_boxes(nodes: Sequence[PageNode], boxes: Mapping[str, Box]) -> list[Box | None]:
    # entries of a closed list, and what is in them, have no place, whatever stands for it in the recording
    entries = [range(number, node.end) for number, node in enumerate(nodes) if node.tag in _LIST_TAGS]
    placeless = {number for entry in entries for number in entry}
    own = [None if number in placeless else boxes.get(node.backend_node_id) for number, node in enumerate(nodes)]
    filled = _filled([node.parent for node in nodes], own)
    return [None if number in placeless else box for number, box in enumerate(filled)]


def _filled(parents: Sequence[int], boxes: Sequence[Box | None]) -> list[Box | None]:
    """A box for each node, parents before children: its own, the union of those below, or that of the node above."""
    filled = list(boxes)
    for at in range(len(filled) - 1, 0, -1):
        box, above = filled[at], boxes[parents[at]]
        if box is not None and above is None:
            known = filled[parents[at]]
            filled[parents[at]] = box if known is None else Box.around((box, known))
    for at, box in enumerate(filled):
        if box is None and parents[at] >= 0:
            filled[at] = filled[parents[at]]
    return filled


def _assembled(entries: Sequence[_Entry], taken: Iterable[str]) -> TreeNode:
    """`taken`: ids of the page, which no entry without one may get."""
    if not entries:
        raise ValueError("expected a tree with a root")
    below: list[list[int]] = [[] for _ in entries]
    for at, entry in enumerate(entries[1:], 1):
        below[entry.parent].append(at)
    ids = chain(taken, (entry.id for entry in entries))
    # a longer one is never reached, and Python reads none of 4,300 digits
    number = max((int(one) for one in ids if one and one.isdecimal() and len(one) < 20), default=0)
    for entry in entries:
        if entry.id is None:
            number += 1
            entry.id = str(number)
    built: list[TreeNode | None] = [None] * len(entries)
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        children = tuple(node for child in below[at] if (node := built[child]) is not None)
        built[at] = TreeNode(entry.id or "", entry.role, entry.name, entry.properties, children, entry.box)
    root = built[0]
    assert root is not None
    return root


# --- of a page ---

_IN_CLOSED_LISTS = frozenset({"option", "MenuListPopup"})
_LIST_TAGS = frozenset({"option", "optgroup"})
_ROLES: Mapping[str, str] = {
    "a": "link", "address": "group", "area": "link", "article": "article", "aside": "complementary", "audio": "Audio",
    "blockquote": "blockquote", "button": "button", "canvas": "Canvas", "caption": "caption", "code": "code", "dd": "definition",
    "del": "deletion", "details": "group", "dialog": "dialog", "dl": "DescriptionList", "dt": "term", "em": "emphasis", "fieldset": "group",
    "figcaption": "Figcaption", "figure": "figure", "footer": "contentinfo", "form": "form", "h1": "heading", "h2": "heading",
    "h3": "heading", "h4": "heading", "h5": "heading", "h6": "heading", "header": "banner", "hr": "separator", "iframe": "Iframe",
    "img": "image", "ins": "insertion", "label": "LabelText", "legend": "Legend", "li": "listitem", "main": "main", "mark": "mark",
    "menu": "list", "meter": "meter", "nav": "navigation", "ol": "list", "optgroup": "group", "option": "option", "output": "status",
    "p": "paragraph", "progress": "progressbar", "section": "region", "select": "combobox", "strong": "strong", "sub": "subscript",
    "summary": "DisclosureTriangle", "sup": "superscript", "svg": "image", "table": "table", "td": "cell",
    "textarea": "textbox", "tfoot": "rowgroup", "th": "columnheader", "thead": "rowgroup", "time": "time", "tr": "row", "ul": "list",
    "video": "Video",
}  # fmt: skip
_INPUT_ROLES: Mapping[str, str] = {
    "button": "button", "checkbox": "checkbox", "color": "ColorWell", "date": "Date", "datetime-local": "DateTime", "file": "button",
    "hidden": "", "image": "button", "month": "DateTime", "number": "spinbutton", "radio": "radio", "range": "slider", "reset": "button",
    "search": "searchbox", "submit": "button", "time": "InputTime", "week": "DateTime",
}  # fmt: skip
"""Any other is a textbox."""
_ARIA_ROLES = frozenset("""
    alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox complementary
    contentinfo definition deletion dialog directory document emphasis feed figure form generic grid gridcell group heading img image
    insertion link list listbox listitem log main marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation
    none note option paragraph presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox
    separator slider spinbutton status strong subscript superscript switch tab table tablist tabpanel term textbox time timer toolbar
    tooltip tree treegrid treeitem
""".split())  # fmt: skip
_SECTIONS = frozenset({"article", "aside", "main", "nav", "section"})
_NAMED_BY_CONTENT = frozenset({
    "button", "cell", "checkbox", "columnheader", "DisclosureTriangle", "gridcell", "heading", "link", "menuitem", "menuitemcheckbox",
    "menuitemradio", "option", "radio", "rowheader", "switch", "tab", "term", "tooltip", "treeitem",
})  # fmt: skip
_LEAVES = frozenset({"svg", "textarea", "iframe", "video", "audio"})
"""Tags whose insides are not looked at."""
_FIELDS = frozenset({"input", "select", "textarea"})
_TICKED = frozenset({"checkbox", "radio"})
_WRITTEN = frozenset({"textbox", "searchbox"})
_PROPERTIES: Mapping[str, tuple[tuple[str, Value], ...]] = {
    "alert": (("live", "assertive"), ("atomic", True), ("relevant", "additions text")),
    "columnheader": (("required", False),),
    "dialog": (("modal", False),),
    "DisclosureTriangle": (("expanded", False),),
    "grid": (("multiselectable", False),),
    "gridcell": (("required", False),),
    "listbox": (("multiselectable", False), ("orientation", "vertical"), ("required", False)),
    "menu": (("orientation", "vertical"),),
    "radiogroup": (("required", False),),
    "RootWebArea": (("focused", True),),
    "rowheader": (("required", False),),
    "separator": (("orientation", "horizontal"),),
    "slider": (("orientation", "horizontal"), ("valuemin", 0), ("valuemax", 100), ("valuetext", "")),
    "spinbutton": (("required", False), ("valuemin", 0), ("valuemax", 0), ("valuetext", "")),
    "status": (("live", "polite"), ("atomic", True), ("relevant", "additions text")),
    "tab": (("selected", False),),
    "tablist": (("multiselectable", False), ("orientation", "horizontal")),
    "textbox": (("required", False),),
    "treeitem": (("selected", False),),
}


def tree_of_page(page: Page, boxes: Mapping[str, Box], title: str = "", alts: Mapping[str, str] = NOTHING) -> TreeNode:
    """The tree of a cleaned page. `title`: of the page, which cleaned HTML lacks. `alts`: alternative texts with captions, by id."""
    return _assembled(_PageTree(page, boxes, alts).entries(title), (node.backend_node_id for node in page.nodes()))


def html_of_page(page: Page, boxes: Mapping[str, Box]) -> TreeNode:
    """The nodes of a cleaned page as `print_html` wants them: names of nodes in capitals, attributes without the id, words as values."""
    entries = []
    nodes = list(page.nodes())
    for node, box in zip(nodes, _page_boxes(nodes, boxes), strict=True):
        attributes = tuple((name, value) for name, value in node.attributes.items() if name != ID)
        role = "#text" if node.tag == TEXT else node.tag.upper()
        entries.append(_Entry(node.parent, role, node.text, node.backend_node_id or None, attributes, box))
    return _assembled(entries, ())


class _PageTree:
    def __init__(self, page: Page, boxes: Mapping[str, Box], alts: Mapping[str, str]) -> None:
        self._nodes = list(page.nodes())
        # cleaned pages write `aria_label`, others `aria-label`
        self._attributes = [
            {name.replace("-", "_"): value for name, value in node.attributes.items()} for node in self._nodes
        ]
        self._boxes, self._alts = _page_boxes(self._nodes, boxes), alts
        self._by_id = {a["id"]: n for n, a in reversed(list(enumerate(self._attributes))) if a.get("id")}
        self._labels: dict[int, int] = {}
        self._silent: set[int] = set()
        for number, node in enumerate(self._nodes):
            if node.tag == "label":
                inside = next((n for n in range(number + 1, node.end) if self._nodes[n].tag in _FIELDS), None)
                field = self._by_id.get(self._get(number, "for") or self._get(number, "html_for"), inside)
                if field is not None:
                    self._labels.setdefault(field, number)
                # its words are the name of the box alone
                if inside is not None and self._input_type(inside) in _TICKED:
                    self._silent.add(number)

    def entries(self, title: str) -> list[_Entry]:
        """Nodes of the tree, parents before children."""
        entries: list[_Entry] = []
        # node of the page -> entry that holds its children
        holder: list[int] = []
        # one past the last node of what is left out, of what has no texts, and of a sectioning element
        skipped_to = silent_to = in_section_to = 0
        for number, node in enumerate(self._nodes):
            above = holder[node.parent] if node.parent >= 0 else -1
            holder.append(above)
            if number < skipped_to:
                continue
            if number in self._silent:
                silent_to = max(silent_to, node.end)
            box = self._boxes[number]
            words = _collapsed(node.text)
            if node.tag == TEXT:
                if words and number >= silent_to:
                    entries.append(_Entry(above, "StaticText", words, node.backend_node_id or None, (), box))
                continue
            role = "RootWebArea" if node.parent < 0 else self._role(number, number < in_section_to)
            name = title if node.parent < 0 else self._name(number, role)
            if node.tag in _SECTIONS:
                in_section_to = max(in_section_to, node.end)
            if role == "region" and not name:
                role = ""
            is_leaf = role in ("image", "option") or node.tag in _LEAVES
            if is_leaf:
                skipped_to = node.end
            if not role and name and node.tag not in ("svg", *_FIELDS):
                role = "generic"
            if role and number not in self._silent:
                holder[number] = len(entries)
                properties = tuple(self._properties(number, role))
                entries.append(_Entry(above, role, name, node.backend_node_id or None, properties, box))
                if held := self._held(number, role):
                    entries.append(_Entry(holder[number], "StaticText", held, None, (), box))
            if words and not is_leaf and number >= silent_to:
                entries.append(_Entry(holder[number], "StaticText", words, None, (), box))
        return entries

    def _get(self, number: int, name: str) -> str:
        return _collapsed(self._attributes[number].get(name, ""))

    def _input_type(self, number: int) -> str:
        return self._get(number, "type").lower() if self._nodes[number].tag == "input" else ""

    def _role(self, number: int, is_in_section: bool) -> str:
        """Empty for none."""
        given = (self._get(number, "role") or self._get(number, "aria_role")).lower().split()
        if known := next((role for role in given if role in _ARIA_ROLES), ""):
            return {"none": "", "presentation": "", "generic": "", "img": "image", "directory": "list"}.get(
                known, known
            )
        tag = self._nodes[number].tag
        if tag == "input":
            return _INPUT_ROLES.get(self._input_type(number), "textbox")
        if tag == "img" and "alt" in self._attributes[number] and not self._alt(number):
            return ""
        if tag in ("header", "footer") and is_in_section:
            return f"section{tag}"
        return _ROLES.get(tag, "")

    def _alt(self, number: int) -> str:
        return _collapsed(self._alts.get(self._nodes[number].backend_node_id, self._get(number, "alt")))

    def _name(self, number: int, role: str) -> str:
        node = self._nodes[number]
        referred = [self._by_id[one] for one in self._get(number, "aria_labelledby").split() if one in self._by_id]
        if name := " ".join(self._content(n, self._nodes[n].end) for n in referred) or self._get(number, "aria_label"):
            return name
        if not role:
            return ""
        kind = self._input_type(number)
        if node.tag == "img" or kind == "image":
            return self._alt(number) or self._get(number, "title")
        if node.tag == "input" and role == "button":
            return (
                self._get(number, "input_value")
                or self._get(number, "value")
                or BROWSER_WORDS.get(kind, "")
                or self._get(number, "title")
            )
        if node.tag == "optgroup":
            return self._get(number, "label")
        if node.tag in _FIELDS:
            if (label := self._labels.get(number)) is not None:
                return self._content(label, self._nodes[label].end)
            return self._get(number, "title") or self._get(number, "placeholder")
        naming = {"fieldset": "legend", "table": "caption"}.get(node.tag)
        if naming and (at := next((n for n in range(number + 1, node.end) if self._nodes[n].tag == naming), None)):
            return self._content(at, self._nodes[at].end)
        if role in _NAMED_BY_CONTENT and (name := self._content(number, node.end)):
            return name
        return self._get(number, "title")

    def _content(self, begin: int, end: int) -> str:
        """The words in the nodes from `begin` to before `end`, with names of images and of what has a label of its own."""
        words = []
        at = begin
        while at < end:
            node = self._nodes[at]
            label = self._get(at, "aria_label") if at > begin or node.tag in ("img", "svg") else ""
            if not label and node.tag == "img":
                label = self._alt(at)
            if label or node.tag in ("select", "textarea"):
                words.append(label)
                at = max(node.end, at + 1)
            else:
                words.append(node.text)
                at += 1
        return _collapsed(" ".join(words))

    def _properties(self, number: int, role: str) -> Iterable[tuple[str, Value]]:
        node, attributes = self._nodes[number], self._attributes[number]
        if role in ("checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"):
            yield "checked", "true" if _is_true(attributes.get("input_checked")) else "false"
        elif role == "combobox":
            yield "hasPopup", "menu" if node.tag == "select" else "listbox"
            yield ("expanded", False) if node.tag == "select" else ("required", False)
        elif role == "option":
            yield "selected", _is_true(attributes.get("option_selected"))
        yield from _PROPERTIES.get(role, ())

    def _held(self, number: int, role: str) -> str:
        """The text in a field, or on an input that is a button."""
        node = self._nodes[number]
        if node.tag == "input" and role == "button":
            return "" if self._input_type(number) == "file" else self._name(number, role)
        if role not in _WRITTEN or node.tag not in _FIELDS or self._input_type(number) == "password":
            return ""
        inside = _collapsed(f"{node.text} {self._content(number + 1, node.end)}")
        return next(
            (text for name in ("input_value", "text_value", "value") if (text := self._get(number, name))), inside
        )


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _is_true(value: str | None) -> bool:
    return value is not None and value.strip().lower() not in ("false", "0", "no")
