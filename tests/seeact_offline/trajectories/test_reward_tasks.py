"""Whole tasks: evaluators over answers, stored pages and pictures, the slips of the released code, and what is not scored."""

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from seeact_offline.files.formats import typed
from seeact_offline.records import CallError, InputError, Message
from seeact_offline.trajectories import RULES, RewardTask, TaskState, Unscored, locators, read_state, read_tasks, reward
from seeact_offline.trajectories.locators import StoredPage, locate


def task(**evaluation: Any) -> RewardTask:
    return typed({"task_id": 1, "intent": "the task", "sites": ["x"], "eval": evaluation}, RewardTask)


def scores(
    one: RewardTask, answer: str | None = "", state: TaskState | None = None, ask: Callable[..., str] | None = None
) -> list[Any]:
    """Score, or the reason for which there is none, under each rule set in order."""
    found = [reward(rules, one, answer, state, ask) for rules in RULES.values()]
    return [one.unscored if one.score is None else int(one.score) for one in found]


def said(reply: str) -> Callable[[tuple[Message, ...]], str]:
    return lambda messages: reply


STRINGS = [
    # reference_answers, answer, reply of a model: visualwebarena, webarena, corrected
    ({"exact_match": "yes"}, "''yes''", None, [1, 1, 1]),
    ({"exact_match": "yes", "must_include": ["no"]}, "yes", None, [0, 0, 0]),
    ({"must_include": ["a", "b |OR| c"]}, "a c", None, [1, 0, 1]),
    ({"one_of": ["x"]}, "x", None, [1, "unsupported_evaluator", 1]),
    ({"required_values": ["> 5"], "exact_match": "1000"}, "1,000", None, [1, "unsupported_evaluator", 0]),
    ({"no_such_rule": "x"}, "x", None, ["unsupported_evaluator"] * 3),
    ({"exact_match": ["x"]}, "x", None, ["bad_task"] * 3),
    ({"fuzzy_match": ["x"]}, "x", None, ["no_model"] * 3),
    ({"fuzzy_match": ["x", "y"]}, "x", "correct", [1, 1, 1]),
    ({"fuzzy_match": ["x"]}, "x", "Partially correct", [0, 0, 0]),
    ({"fuzzy_match": ["x"]}, "x", "perhaps", ["no_verdict"] * 3),
    ({"fuzzy_match": ["x"]}, "", "correct", [1, 1, 1]),
    ({"fuzzy_match": [""]}, "", "incorrect", [0, 0, 0]),
    ({"fuzzy_match": "x"}, "x", "correct", ["bad_task"] * 3),
    ({"must_include": "x"}, "x", None, ["bad_task"] * 3),
    ({"must_exclude": "y"}, "x", None, ["bad_task", "unsupported_evaluator", "bad_task"]),
    ({"must_exclude": ["x |OR| y"]}, "x", None, [1, "unsupported_evaluator", 1]),
    ({"one_of": "x"}, "x", None, ["bad_task", "unsupported_evaluator", "bad_task"]),
    ({"required_values": "> 1"}, "5", None, ["bad_task", "unsupported_evaluator", "bad_task"]),
    ({"fuzzy_match": "N/A"}, "n/a", None, [1, 1, 1]),
    ({"fuzzy_match": "N/A"}, "it is sold out", "same", [1, 1, 1]),
    ({"fuzzy_match": "N/A"}, "it is sold out", "different", [0, 0, 0]),
    ({"must_include": ["zz"], "fuzzy_match": "N/A"}, "it is sold out", "same", [1, 1, 0]),
    (None, "x", None, ["bad_task"] * 3),
]  # fmt: skip


@pytest.mark.parametrize(("references", "answer", "reply", "expected"), STRINGS)
def test_answers(references: Any, answer: str, reply: str | None, expected: list[Any]) -> None:
    one = task(eval_types=["string_match"], reference_answers=references, string_note="sold out")
    assert scores(one, answer, ask=None if reply is None else said(reply)) == expected


PAGE = """<html><head><title>Shop</title><script>var price = "9 &lt;"</script></head><body>
<h1 id="top">Hello &amp; <b>welcome</b></h1><p class="price now">$1,200</p><p class="count">12</p><p class="quoted">'12'</p><p hidden>secret</p>
<input name="q" value="red shoes"><select id="size"><option value="s">Small<option value="l" selected>Large</select>
<ul><li class="item">One</li><li class="item">Two</li></ul><textarea id="note">a note</textarea></body></html>"""
STATE = TaskState("http://127.0.0.1/item", PAGE)
PAGES = [
    # locator, required_contents: visualwebarena, webarena, corrected
    ("", {"must_include": ["hello &amp; "]}, [1, 0, 1]),
    ("", {"must_include": ["Hello & <b>welcome"]}, [0, 1, 0]),
    ("", {"must_exclude": ["goodbye"]}, [1, "bad_task", 1]),
    ("", {"must_exclude": ["goodbye", "so long |OR| farewell"]}, ["bad_task"] * 3),
    ("", {"must_exclude": "goodbye"}, ["bad_task"] * 3),
    ("", {"must_include": "hello"}, ["bad_task"] * 3),
    ("document.querySelector('.quoted').textContent", {"required_values": "== 12"}, ["bad_task"] * 3),
    ("document.title", {"fuzzy_match": ["shop"]}, ["bad_task"] * 3),
    ("document.querySelector('#top').outerText", {"exact_match": "hello & welcome"}, [1, 1, 1]),
    ("document.querySelector(\"[name='q']\").value", {"must_include": ["shoes |OR| boots"]}, [1, 1, 1]),
    ("document.getElementById('size').value", {"exact_match": "l"}, [1, 1, 1]),
    ("document.querySelector('#size').selectedIndex", {"exact_match": "1"}, [1, 1, 1]),
    ("document.getElementById(\"note\").value", {"exact_match": "a note"}, [1, 1, 1]),
    ("document.querySelector('.missing').outerText", {"exact_match": ""}, [1, 1, 1]),
    ("document.querySelector('.missing')", {"exact_match": "None"}, [1, 1, 1]),
    ("document.querySelectorAll('ul > .item').length", {"exact_match": "2"}, [1, 1, 1]),
    ("document.getElementsByClassName('item')[1].innerText", {"exact_match": "two"}, [1, 1, 1]),
    ("[...document.querySelectorAll('li')].map(x => x.textContent).join(', ')", {"exact_match": "One, Two"}, [1, 1, 1]),
    ("[...document.querySelectorAll('li')].map(x=>x.outerText)", {"exact_match": "['One', 'Two']"}, [1, 1, 1]),
    ("document.body.innerText", {"must_include": ["secret"]}, [0, 0, 0]),
    ("document.querySelector('.count').textContent", {"required_values": ["> 12"]}, [1, "bad_task", 0]),
    ("document.querySelector('.quoted').textContent", {"required_values": ["== 12"]}, [0, "bad_task", 0]),
    ("document.title", {"must_include": ["shop"], "exact_match": "Shop!"}, [0, 0, 0]),
    ("func:get_query_text(__page__, 'p.price.now')", {"must_include": ["1,200"]}, [1, 1, 1]),
    ("lambda:() => document.querySelector('.missing').outerText", {"must_exclude": ["x"]}, [0, "bad_task", 0]),
    ("lambda:(() => { try { return document.querySelector('#top').outerText } catch { return '' } })()", {"exact_match": "hello & welcome"}, [1, 1, 1]),
    ("lambda:(() => { try { return document.querySelector('.missing').id; } catch (e) { return '' } })()", {"exact_match": ""}, [0, 0, 0]),
    ("document.querySelector('[name=\"q\"').value", {"exact_match": "red shoes"}, [1, 1, 1]),
    ("document.querySelector('ul').lastElementChild.outerText", {"exact_match": "two"}, [1, 1, 1]),
    ("lambda:(() => { let x = 1; return x })()", {"exact_match": "1"}, [1, 1, 1]),
    ("func:shopping_get_sku_latest_review_rating('B1')", {"exact_match": "5"}, ["unsupported_locator"] * 3),
    ("document.querySelector('p:hover').outerText", {"exact_match": ""}, ["unsupported_locator"] * 3),
    ("document.querySelector('iframe').contentDocument.body.outerText", {"exact_match": "x"}, ["unsupported_locator"] * 3),
    ("document.querySelector('li:contains(\"Two\")').innerText", {"exact_match": "two"}, ["unsupported_locator"] * 3),
    ("alert(1)", {"exact_match": "x"}, ["unsupported_locator"] * 3),
    ("", {"no_such_rule": "x"}, ["bad_task"] * 3),
]  # fmt: skip


@pytest.mark.parametrize(("locator", "required", "expected"), PAGES)
def test_pages(locator: str, required: dict[str, Any], expected: list[Any]) -> None:
    if "iframe" in locator:
        # a property of nothing fails in a browser as well, so that the page needs the element
        state = TaskState("", PAGE.replace("</ul>", "</ul><iframe></iframe>"))
    else:
        state = STATE
    target = {"url": "last", "locator": locator, "required_contents": required}
    assert scores(task(eval_types=["program_html"], program_html=[target]), state=state) == expected


BROWSED = """<!doctype html><title> A\n page </title><body onload="document.title = 'run'"><script>document.title = "run"</script>
<div id="main">Hello <b>big</b>   world<br>line<p>para</p>tail<span hidden>secret</span></div><table id="t"><tr><td> 1 </td><td>2</td></tr></table>
<input id="typed" value="old" input_value="new"><input id="box" type="checkbox" checked input_checked="false"><textarea id="note" input_value="b">
a</textarea><select id="size"><option>S</option><option option_selected="true">L</option></select></body>"""


@pytest.mark.parametrize(
    ("locator", "text"),
    [
        ("document.title", "A page"),
        ("document.URL", "http://x.test/"),
        ("document.querySelector('#main').innerText", "Hello big world\nline\n\npara\n\ntail"),
        ("document.querySelectorAll('#t > tbody > tr').length", "1"),
        # fields are as the recorder saw them
        ("document.querySelector('#typed').value", "new"),
        ("document.querySelector('#box').checked", "False"),
        ("document.querySelector('#note').value", "b"),
        ("document.querySelector('#size').selectedIndex", "1"),
        ("document.querySelector('#main').value", "None"),
        ("func:get_query_text(__page__, '#t > tbody td')", " 1 "),
    ],
)
def test_a_browser_says_what_is_on_a_stored_page(locator: str, text: str) -> None:
    assert locate(StoredPage("http://x.test/", BROWSED), locator) == text


@pytest.mark.slow
def test_an_expression_that_never_ends_is_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    page = StoredPage("", BROWSED)
    with monkeypatch.context() as patch:
        patch.setattr(locators, "DEADLINE_S", 1.0)
        with pytest.raises(Unscored, match="unsupported_locator"):
            locate(page, "lambda:() => { for (;;) {} }")
    assert locate(page, "document.title") == "A page"


def test_without_a_browser_an_expression_is_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(locators, "BROWSER", locators.PageBrowser())
    with pytest.raises(Unscored, match=r"unsupported_locator: .* needs a browser"):
        locate(StoredPage("", BROWSED), "document.title")


@pytest.mark.parametrize(
    ("locator", "expected"),
    [("document.title", "unsupported_locator"), ("", 1), ("func:get_query_text(__page__, 'title')", 1)],
)
def test_actions_before_a_look_matter_to_expressions_alone(locator: str, expected: Any) -> None:
    target = {
        "url": "last",
        "locator": locator,
        "required_contents": {"must_include": ["shop"]},
        "prep_actions": ["x()"],
    }
    assert scores(task(eval_types=["program_html"], program_html=[target]), state=STATE) == [expected] * 3


def test_alternatives_of_a_fuzzy_match_on_a_page() -> None:
    target = {"url": "last", "locator": "document.title", "required_contents": {"fuzzy_match": "shop |OR| market"}}
    one = task(eval_types=["program_html"], program_html=[target])

    def ask(messages: tuple[Message, ...]) -> str:
        return "correct" if "shop" in messages[-1].text else "incorrect"

    assert scores(one, state=STATE, ask=ask) == [0, "bad_task", 1]


def picture(colour: int) -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize((40, 40)).point(lambda value: (value * colour) % 256).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def pictured(tmp_path: Path) -> TaskState:
    for name, colour in (("a.png", 1), ("b.png", 7)):
        (tmp_path / name).write_bytes(picture(colour))
    inline = base64.b64encode(picture(1)).decode()
    html = f"<div class=one><img src=/a.png></div><img class=two src='data:image/png;base64,{inline}'><img><p class=none>x</p>"
    return TaskState(
        "http://s.test/x/", html, tmp_path, {"http://s.test/y": "y.html"}, {"http://s.test/a.png": "a.png"}, tmp_path
    )


QUERIES = [
    # queries: visualwebarena, corrected
    ([{"eval_fuzzy_image_match": "a.png"}], [1, 1]),
    ([{"eval_fuzzy_image_match": "b.png"}], [0, 0]),
    ([{"eval_fuzzy_image_match": "b.png |OR| a.png"}], [1, 1]),
    ([{"eval_fuzzy_image_match": "b.png"}, {"eval_fuzzy_image_match": "a.png"}], [1, 0]),
    ([{"eval_fuzzy_image_match": "a.png", "ssim_threshold": 1.0}], [0, 0]),
    ([{"eval_image_class": ".none", "eval_fuzzy_image_match": "a.png"}, {"eval_fuzzy_image_match": "a.png"}], [0, 0]),
    ([{"eval_image_class": ".two", "eval_fuzzy_image_match": "a.png"}], [1, 1]),
    ([{"eval_image_class": "#one", "eval_fuzzy_image_match": "a.png"}], ["unsupported_locator"] * 2),
    ([{"eval_fuzzy_image_match": "../a.png"}], ["missing_picture"] * 2),
    ([{"eval_image_url": "http://s.test/z", "eval_fuzzy_image_match": "a.png"}], ["missing_page"] * 2),
    ([{"eval_image_url": "func:last()", "eval_fuzzy_image_match": "a.png"}], ["unsupported_address"] * 2),
    ([{"eval_vqa": [{"question": "What is it?", "answer": "Cat"}]}], [1, 1]),
    ([{"eval_vqa": [{"question": "What is it?", "answer": "Cat"}, {"question": "Is it?", "answer": "no"}]}], [0, 0]),
    ([{}], ["bad_task"] * 2),
]  # fmt: skip


@pytest.mark.parametrize(("queries", "expected"), QUERIES)
def test_pictures(pictured: TaskState, queries: list[dict[str, Any]], expected: list[Any]) -> None:
    def ask(messages: tuple[Message, ...]) -> str:
        assert messages[0].picture is not None
        assert messages[0].picture.encoded().startswith(b"\x89PNG")
        return {"Q: What is it? A:": "a CAT", "Q: Is it? A:": "yes"}[messages[0].text]

    one = task(eval_types=["page_image_query"], page_image_query=[{"eval_image_url": "last", **q} for q in queries])
    first, webarena, corrected = scores(one, state=pictured, ask=ask)
    assert ([first, corrected], webarena) == (expected, "unsupported_evaluator")


def test_a_zero_of_one_part_decides_whatever_the_others() -> None:
    one = task(
        eval_types=["string_match", "url_match"],
        reference_answers={"fuzzy_match": ["x"]},
        reference_url="http://a.test",
    )
    assert scores(one, "x", TaskState("http://b.test")) == [0, 0, 0]
    assert scores(one, "x", TaskState("http://a.test")) == ["no_model"] * 3
    assert scores(one, None, TaskState("http://a.test")) == ["no_answer"] * 3
    assert scores(one, "x") == ["no_model"] * 3
    assert scores(task(eval_types=["url_match"], reference_url="x")) == ["no_state"] * 3
    assert scores(task(eval_types=["unknown"])) == ["unsupported_evaluator"] * 3


def test_a_failed_call_is_no_zero() -> None:
    def ask(messages: tuple[Message, ...]) -> str:
        raise CallError("timeout", "too late")

    assert (
        scores(task(eval_types=["string_match"], reference_answers={"fuzzy_match": ["x"]}), "y", ask=ask)
        == ["call_failed"] * 3
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "JSON"), ('[{"task_id": 1}]', "intent"), ('{"task_id": 1, "intent": "", "eval": {}}', "eval_types"),
     ('[{"task_id": 1, "intent": "", "eval": {"eval_types": []}}, {"task_id": "1", "intent": "", "eval": {"eval_types": []}}]', "once")],
)  # fmt: skip
def test_task_file_that_cannot_be_used_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(InputError, match=message):
        list(read_tasks("config", tmp_path / "t.json"))


@pytest.mark.parametrize(
    "content", ["[]", '{"html": "../x.html"}', '{"html": "/etc/hostname"}', '{"unknown": 1}', '{"html": "no.html"}']
)
def test_state_that_cannot_be_used_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.html").write_text("<p>")
    (tmp_path / "1").mkdir()
    (tmp_path / "1/state.json").write_text(content)
    with pytest.raises(InputError, match="states"):
        read_state(tmp_path / "1")
    assert read_state(tmp_path / "2") is None


def test_an_entity_with_a_number_of_thousands_of_digits_is_no_error() -> None:
    state = TaskState("", f"<p>&amp;#{'9' * 4301}; a</p>")
    target = {
        "url": "last",
        "locator": "document.querySelector('p').innerText",
        "required_contents": {"must_include": ["a"]},
    }
    assert scores(task(eval_types=["program_html"], program_html=[target]), state=state) == [1, 1, 1]
