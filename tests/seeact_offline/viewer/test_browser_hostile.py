"""Texts that try to become code, to hide, or to freeze the page stay texts; and this would be seen if they did not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.seeact_offline.viewer import toy_site
from tests.seeact_offline.viewer.browsing import REAL_BROWSER, Tab
from tests.seeact_offline.viewer.toy_site import key_of

pytestmark = [pytest.mark.slow, *REAL_BROWSER]
ATTACKS = {
    "script": "<script>window.pwned = 1</script>",
    "handler": "<img src=x onerror='window.pwned = 1'>",
    "svg": "<svg onload='window.pwned = 1'><script>window.pwned = 1</script></svg>",
    "style": "</style><style>* { display: none !important }</style>",
    "breakout": "\"'`--></textarea></title></script><img src=x onerror=window.pwned=1>",
    "address": "javascript:window.pwned=1",
    "template": "${window.pwned = 1}{{constructor.constructor('window.pwned=1')()}}",
}
HIDDEN = "pay \u202egnp.exe\u202c now\u200b\U000e0041\x07\ud800"
SINK = "node.append(child instanceof Node ? child : plain(child));"
FRAGMENT = (
    "child instanceof Node ? node.append(child) : node.append(document.createRange().createContextualFragment(child));"
)
SINKS = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "javascript:", "srcdoc",
    "createContextualFragment", "DOMParser", "setHTMLUnsafe",
)  # fmt: skip


@pytest.fixture
def url() -> str:
    """Each test serves a site of its own."""
    return ""


def hostile(text: str) -> toy_site.Texts:
    return toy_site.Texts(task=text, element=text, prompt=text, reply=text, act=text)


def open_everything(tab: Tab) -> None:
    """Shows the list, then a step with everything unfolded."""
    tab.list().wait_for_selector(".window .row")
    page = tab.step(key_of(1))
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.get_by_label("Other candidates").check()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_hostile_texts_are_shown_as_they_are_and_do_nothing(tab: Tab, tmp_path: Path, attack: str) -> None:
    site = toy_site.write_site(tmp_path / "site", n=4, n_runs=2, texts=hostile(attack), title=attack)
    with toy_site.serve(site) as tab.url:
        open_everything(tab)
        assert (tab.page.evaluate("window.pwned"), tab.faults) == (None, [])
        for place in ("h1", ".turn pre", ".elements td.text", ".history li"):
            assert attack in tab.page.locator(place).first.inner_text()


def test_hostile_run_names_values_and_problems_do_nothing(tab: Tab, tmp_path: Path) -> None:
    attack = " ".join(ATTACKS.values())
    site = toy_site.write_site(tmp_path / "site", n=4, texts=hostile(attack))
    text = (site / "index.json").read_text()
    for name in ("run-0", "avelora", "Travel", "builtin/lexical", "wrong_element", "no_choice"):
        text = text.replace(f'"{name}"', json.dumps(attack))
    (site / "index.json").write_text(text.replace('"problems": []', f'"problems": [{json.dumps(attack)}]'))
    with toy_site.serve(site) as tab.url:
        open_everything(tab)
        assert (tab.page.evaluate("window.pwned"), tab.faults) == (None, [])


def test_characters_that_hide_or_turn_text_are_spelt_out(tab: Tab, tmp_path: Path) -> None:
    with toy_site.serve(toy_site.write_site(tmp_path / "site", n=4, texts=hostile(HIDDEN))) as tab.url:
        open_everything(tab)
        told = "pay ⟨U+202E⟩gnp.exe⟨U+202C⟩ now⟨U+200B⟩⟨U+E0041⟩⟨U+0007⟩⟨U+D800⟩"
        for place in ("h1", ".turn pre", ".elements td.text"):
            assert told in tab.page.locator(place).first.inner_text()
        assert not any(mark in tab.page.inner_text("body") for mark in "\u202e\u202c\u200b")
        tab.list()
        assert told in tab.page.locator(".window .row a").first.inner_text()


def test_text_of_another_direction_stays_in_its_place(tab: Tab, tmp_path: Path) -> None:
    with toy_site.serve(toy_site.write_site(tmp_path / "site", n=4, texts=toy_site.Texts(task="שלום"))) as tab.url:
        style = "getComputedStyle(document.querySelector('.row a bdi')).unicodeBidi"
        assert tab.list().evaluate(style) == "isolate"


def test_a_line_of_a_megabyte_is_shown_from_its_start_and_unfolds_in_parts(tab: Tab, tmp_path: Path) -> None:
    texts = toy_site.Texts(task="x" * 1_000_000, reply="y" * 1_000_000)
    with toy_site.serve(toy_site.write_site(tmp_path / "site", n=4, texts=texts)) as tab.url:
        open_everything(tab)
        page = tab.page
        assert page.evaluate("document.body.textContent.length") < 100_000
        group = page.locator(".group").last
        group.get_by_role("button", name="Show all: 998,800 of 1,000,000 characters left").click()
        assert group.locator(".turn").last.locator("pre").last.evaluate("one => one.textContent.length") == 51_200
        assert group.get_by_role("button", name="Show more: 948,800 of 1,000,000 characters left").is_visible()
        assert tab.faults == []


@pytest.mark.parametrize(
    ("sink", "seen"),
    [
        ("node instanceof HTMLElement ? node.innerHTML += child?.outerHTML ?? child : node.append(child);", "TrustedHTML"),
        (FRAGMENT, "TrustedHTML"),
        ("(node.append(child), child instanceof Node || new Function(`return '${child.length}'`)());", "TrustedScript"),
    ],
    ids=["innerHTML", "fragment", "function"],
)  # fmt: skip
def test_one_sink_put_in_on_purpose_is_seen(tab: Tab, tmp_path: Path, sink: str, seen: str) -> None:
    static = toy_site.static_with(tmp_path / "static", "dom.js", lambda code: code.replace(SINK, sink))
    site = toy_site.write_site(tmp_path / "site", n=4, texts=hostile(ATTACKS["handler"]))
    with toy_site.serve(site, static) as url:
        tab.page.goto(url)
        tab.until("window.reports.length > 0")
        assert any(seen in fault for fault in tab.faults), tab.faults


def test_without_the_policy_the_sink_would_have_run_the_text(tab: Tab, tmp_path: Path) -> None:
    """The texts are live: it is the page that keeps them from doing harm, not their spelling."""
    static = toy_site.static_with(tmp_path / "static", "dom.js", lambda code: code.replace(SINK, FRAGMENT))
    page_file = static / "index.html"
    lines = page_file.read_text().splitlines(True)
    page_file.write_text("".join(line for line in lines if "Content-Security-Policy" not in line))
    site = toy_site.write_site(tmp_path / "site", n=4, texts=hostile(ATTACKS["handler"]))
    with toy_site.serve(site, static, policy=None) as url:
        tab.page.goto(url)
        tab.until("window.pwned === 1")


def test_no_module_names_a_way_to_turn_text_into_code() -> None:
    modules = {path.name: path.read_text() for path in Path(toy_site.STATIC).glob("*.js")}
    assert [(name, sink) for name, text in modules.items() for sink in SINKS if sink in text] == []
