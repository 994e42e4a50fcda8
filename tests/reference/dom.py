"""Slow, obvious description of elements: copy the tree, prune the copy, serialise it, once for every candidate.

An independent statement of Mind2Web's rules (its released code, commit 1b7c323) with lxml's own tree and
serialiser; nothing is shared with the fast one.
"""

from __future__ import annotations

import copy
import re

from lxml import etree

ATTRIBUTE_ORDER = """role aria_role type alt aria_description aria_label label title name text_value value placeholder
input_checked input_value option_selected class""".split()
UNESCAPES = [
    ("quot", '"'),
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("nbsp", " "),
    ("ndash", "-"),
    ("rsquo", "'"),
    ("lsquo", "'"),
    ("ldquo", '"'),
    ("rdquo", '"'),
    ("#39", "'"),
    ("#40", "("),
    ("#41", ")"),
]


def parse(html):
    root = etree.fromstring(html.encode(), etree.XMLParser(remove_comments=True, remove_pis=True, huge_tree=True))
    for text in root.iter("text"):
        for child in list(text):
            text.remove(child)
    return root


def find(tree, node_id):
    return next(e for e in tree.iter() if e.tag != "text" and e.get("backend_node_id") == node_id)


def below(node, levels):
    found = []
    for child in node:
        found.append(child)
        if levels > 0:
            found += below(child, levels - 1)
    return found


def kept_ids(tree, candidate_ids):
    ids = set()
    for candidate_id in candidate_ids:
        node = find(tree, candidate_id)
        ids.add(candidate_id)
        ids |= {a.get("backend_node_id", "") for a in node.iterancestors()}
        ids |= {d.get("backend_node_id", "") for d in below(node, 5)[:50] if d.tag != "text"}
        parent = node.getparent()
        if parent is not None:
            row = [s for s in parent if s.tag != "text"]
            at = row.index(node)
            ids |= {s.get("backend_node_id", "") for i, s in enumerate(row) if abs(i - at) <= 3}
    return ids


def prune(tree, candidate_ids):
    keep = kept_ids(tree, candidate_ids)
    tree = copy.deepcopy(tree)
    for node in reversed(list(tree.iter())):
        parent = node.getparent()
        owner = parent if node.tag == "text" and parent is not None else node
        if owner.get("backend_node_id", "") not in keep and parent is not None:
            parent.remove(node)
            continue
        if node.tag == "text" or node.get("backend_node_id") not in candidate_ids:
            node.attrib.pop("backend_node_id", None)
        if node.tag == "text" or parent is None or node.attrib or len(node) > 1 or any(c.tag == "text" for c in node):
            continue
        for child in list(node):
            node.addprevious(child)
        parent.remove(node)
    return tree


def attribute_text(node):
    seen, words = set(), []
    for name in ATTRIBUTE_ORDER:
        value = (node.get(name) or "").lower()
        if value in ("hidden", "none", "presentation", "null", "undefined") or value.startswith("http"):
            continue
        short = [w for w in value.split() if len(w) < 15][:5]
        if short and tuple(short) not in seen:
            seen.add(tuple(short))
            words += short
    return " ".join(words[:20])


def serialise(node, numbers, style):
    tree = copy.deepcopy(node)
    for element in tree.iter():
        if element.tag == "text":
            # its attributes stay, and with them its tag, below
            element.text = " ".join((element.text or "").split()[:20])
            continue
        node_id, words = element.get("backend_node_id"), attribute_text(element)
        element.attrib.clear()
        if node_id:
            element.set("id", str(numbers.setdefault(node_id, len(numbers))))
        if words:
            element.set("meta", words)
    out = etree.tostring(tree, encoding="unicode").replace('"', " ")
    out = out.replace("meta= ", "").replace("id= ", "id=").replace(" >", ">")
    out = re.sub("<text>(.*?)</text>", r"\1", out)
    if style == "parentheses":
        out = out.replace("/>", "$/$>")
        out = re.sub("</(.+?)>", ")", out)
        out = re.sub("<(.+?)>", r"(\1", out)
        out = out.replace("$/$", ")")
    for name, character in UNESCAPES:
        out = out.replace(f"&{name};", character)
    return re.sub(r"\s+", " ", out).strip()


def describe_group(html, candidate_ids, style="brackets"):
    tree = prune(parse(html), set(candidate_ids))
    numbers = {}
    text = serialise(tree, numbers, style)
    nodes = [e for e in tree.iter() if e.get("backend_node_id") is not None]
    return text, [(e.get("backend_node_id"), " ".join(serialise(e, numbers, style).split()[:10])) for e in nodes]


def ranker_text(html, candidate_id):
    tree = prune(parse(html), {candidate_id})
    node = next(e for e in tree.iter() if e.get("backend_node_id") is not None)
    ancestors = ""
    if node.getparent() is not None:
        node.getparent().remove(node)
        ancestors = serialise(tree, {}, "parentheses")
        ancestors = re.sub(r"\s*\)\s*", "", re.sub(r"\s*\(\s*", "/", ancestors))
        ancestors = " ".join(ancestors.split()[-50:])
    target = " ".join(serialise(node, {}, "parentheses").split()[:100])
    return f"ancestors: {ancestors}\ntarget: {target}"
