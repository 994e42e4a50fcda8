"""`builtin/lexical` and `builtin/oracle`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from seeact_offline.models import ModelOptions, open_model
from seeact_offline.models.model_call import call_model
from seeact_offline.records import (
    Candidate,
    Completion,
    Message,
    ModelSpecError,
    Operation,
    Request,
    Step,
    Usage,
    letter,
)

NONE = "Nothing in this list"
STEP = Step("task", "step", "wrong", (), "shop", "Shopping", "<html/>", Operation("CLICK"), (), None)


def ask(model: str, request: Request) -> str:
    completion = asyncio.run(open_model(model, ModelOptions()).complete(request))
    assert completion.usage == Usage(calls=1)
    return completion.text


def conversation(task: str, *options: str, history: tuple[str, ...] = ()) -> tuple[Message, ...]:
    done = "\n".join(history) or "None"
    lines = "\n".join(f"{letter(i)}. {text}" for i, text in enumerate((*options, NONE)))
    return (
        Message("system", "You use web pages for people, one action at a time."),
        Message("user", f"Your task: {task}\n\nPrevious actions:\n{done}\n\nThink: what next?"),
        Message("assistant", "I would click something."),
        Message(
            "user", f"Choose one.\n\n{lines}\n\nEnd with:\nELEMENT: letter\nACTION: one of CLICK, TYPE\nVALUE: text"
        ),
    )


def lexical(task: str, *options: str, history: tuple[str, ...] = ()) -> list[str]:
    """The values of the three final lines."""
    text = ask("builtin/lexical", Request(conversation(task, *options, history=history), STEP.key, 0, 2))
    lines = [line.split(": ", 1) for line in text.splitlines()]
    assert [name for name, _ in lines] == ["ELEMENT", "ACTION", "VALUE"]
    return [value for _, value in lines]


def test_the_option_that_shares_words_with_the_task_is_chosen() -> None:
    chosen = lexical(
        "Open the store locator", "<a id=0> Help </a>", "<a id=1> Store Locator </a>", "<a id=2> Cart </a>"
    )
    assert chosen == ["B", "CLICK", "None"]


def test_without_a_shared_word_none_is_chosen() -> None:
    assert lexical("Open the store locator", "<a id=0> Help </a>", "<a id=1> Cart </a>")[0] == "C"


def test_where_nothing_is_offered_none_is_chosen() -> None:
    assert lexical("Open the store locator")[0] == "A"


def test_tag_names_and_numbers_of_the_markup_are_no_words() -> None:
    assert lexical("Select button 3 of the form", "<form id=3 > Other </form>", "<a id=1> Help </a>")[0] == "C"


def test_words_that_all_options_share_decide_less_than_rare_ones() -> None:
    options = [f"<a id={i}> Cheap flights to {city} </a>" for i, city in enumerate(("Rome", "Oslo", "Cairo"))]
    assert lexical("Cheap flights to Oslo", *options)[0] == "B"


def test_what_was_done_already_is_not_done_again() -> None:
    options = ("<a id=0> Weddings </a>", "<a id=1> Photographers </a>")
    history = ("[link]  Weddings -> CLICK",)
    assert lexical("Photographers for weddings", *options, history=history)[0] == "B"


def test_an_element_that_was_used_already_is_chosen_less_readily() -> None:
    options = ("<a id=0> Weddings Oslo </a>", "<div id=1> Cheap Oslo Hotels </div>")
    assert lexical("A place in Oslo", *options)[0] == "A"
    assert lexical("A place in Oslo", *options, history=("[link]  Weddings -> CLICK",))[0] == "B"


def test_after_typing_the_form_is_sent() -> None:
    options = ("<input id=0 city />", "<button id=1 submit> Search </button>")
    assert lexical("Hotels in Oslo", *options, history=("[textbox]  City -> TYPE: Oslo",)) == ["B", "CLICK", "None"]


def test_of_equal_options_the_first_is_chosen() -> None:
    assert lexical("Open the cart", "<a id=0> Cart </a>", "<a id=1> Cart </a>")[0] == "A"


def test_more_than_26_options_are_read() -> None:
    options = [f"<a id={i}> item </a>" for i in range(30)]
    assert lexical("Open the cart", *options, "<a id=30> Cart </a>")[0] == "AE"


@pytest.mark.parametrize(
    "option", ["<input id=0 destination city />", "<textarea id=0 destination />", "(input id=0 destination city )"]
)
def test_a_text_field_is_typed_into(option: str) -> None:
    assert lexical("Set the destination to Oslo", option) == ["A", "TYPE", "Oslo"]


@pytest.mark.parametrize("option", ["<select id=0 destination />", "<div id=0 combobox destination />"])
def test_a_list_is_selected_from(option: str) -> None:
    assert lexical("Set the destination to Oslo", option) == ["A", "SELECT", "Oslo"]


@pytest.mark.parametrize("kind", ["checkbox", "radio", "submit", "button"])
def test_an_input_without_text_is_clicked(kind: str) -> None:
    assert lexical("Set the destination to Oslo", f"<input id=0 {kind} destination />") == ["A", "CLICK", "None"]


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ('Put a note that says "ring twice" on the order for Oslo', "ring twice"),
        ("Fly from New York to Oslo, put a note", "Oslo"),
        ("Note 12 tickets", "12"),
        ("Put a note on the order from Rome", "Rome"),
    ],
)
def test_a_value_is_quoted_or_stands_near_the_fields_words(task: str, value: str) -> None:
    assert lexical(task, "<input id=0 note />") == ["A", "TYPE", value]


def test_a_value_is_not_used_twice() -> None:
    history = ("[textbox]  From -> TYPE: New York",)
    assert lexical("Fly from New York to city Oslo", "<input id=0 city />", history=history)[2] == "Oslo"


def test_a_field_for_which_the_task_names_no_value_is_clicked() -> None:
    assert lexical("Change the destination", "<input id=0 destination />") == ["A", "CLICK", "None"]


def test_the_task_may_stand_below_its_heading() -> None:
    messages = conversation("\nOpen the cart", "<a id=0> Help </a>", "<a id=1> Cart </a>")
    assert ask("builtin/lexical", Request(messages, STEP.key, 0, 2)).startswith("ELEMENT: B")


def test_a_prompt_without_a_task_is_answered() -> None:
    messages = (Message("user", "A. <a id=0> Help </a>\nB. none"),)
    assert ask("builtin/lexical", Request(messages, STEP.key, 0, 2)).startswith("ELEMENT: B")


def test_a_message_without_options_is_answered_with_one_sentence() -> None:
    messages = conversation("Open the cart", "<a id=0> Cart </a>")[:2]
    assert (
        ask("builtin/lexical", Request(messages, STEP.key, 0, 1))
        == "The next target should have to do with: cart, open."
    )


def test_the_truth_is_never_looked_up() -> None:
    messages = conversation("Open the cart", "<a id=0> Help </a>", "<a id=1> Cart </a>")
    truth = Step("a", "b", "", (), "", "", "", Operation("TYPE", "x"), (Candidate("9", "a", None, True),), None)
    answers = {
        ask("builtin/lexical", Request(messages, step.key, 0, 2, offered))
        for step, offered in ((truth, ("9", "8")), (STEP, ()))
    }
    assert answers == {"ELEMENT: B\nACTION: CLICK\nVALUE: None"}


def test_the_answer_is_the_same_in_every_process(shared_step: Path) -> None:
    program = (
        "import asyncio, json, sys\n"
        "from seeact_offline.models import ModelOptions, open_model\n"
        "from seeact_offline.records import Candidate, Completion, Message, Request\n"
        "model = open_model('builtin/lexical', ModelOptions())\n"
        "for line in open(sys.argv[1], encoding='utf-8'):\n"
        "    prompt = json.loads(line)['prompt']\n"
        "    messages = tuple(Message('user', text) for text in prompt)\n"
        "    print(asyncio.run(model.complete(Request(messages, None, 0, 2))).text)\n"
    )
    path = str(shared_step / "replies_choice.jsonl")
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, path], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_a_published_prompt_is_understood(shared_step: Path) -> None:
    first = (shared_step / "replies_choice.jsonl").read_text(encoding="utf-8").splitlines()[0]
    system, turn_1, turn_2 = json.loads(first)["prompt"]
    messages = (Message("system", system), Message("user", turn_1), Message("assistant", ""), Message("user", turn_2))
    assert ask("builtin/lexical", Request(messages, STEP.key, 0, 2)) == "ELEMENT: H\nACTION: CLICK\nVALUE: None"


def test_the_oracle_says_what_the_strategy_expects_of_one_who_knows() -> None:
    told = asyncio.run(
        call_model(open_model("builtin/oracle", ModelOptions()), Request((), STEP.key, 0, 2), "ELEMENT: 12")
    )
    assert told.text == "ELEMENT: 12"


def test_the_oracle_never_answers_with_nothing() -> None:
    assert ask("builtin/oracle", Request((), STEP.key, 0, 1)).strip()


FINAL = "\n\nELEMENT: your answer\nACTION: CLICK, TYPE or SELECT\nVALUE: text"


@pytest.mark.parametrize(
    ("asked", "element"),
    [
        ("one label from the picture (NA if there is none)", "NA"),
        ("<point>A B</point> in pixels of the picture, which is 1280 wide and 7413 high", "<point>640 3706</point>"),
        ("coordinates as fractions of width and height, from 0 to 1", "<point>0.5 0.5</point>"),
        ("<box>..</box> in thousandths, from 0 to 1000", "<point>500 500</point>"),
    ],
)
def test_without_eyes_the_answer_is_no_mark_and_the_middle_of_the_picture(asked: str, element: str) -> None:
    messages = (
        Message("user", "Your task: Open the cart"),
        Message("assistant", "Ok."),
        Message("user", asked + FINAL),
    )
    text = ask("builtin/lexical", Request(messages, STEP.key, 0, 2))
    assert text == f"ELEMENT: {element}\nACTION: CLICK\nVALUE: None"


def attributes(task: str, *history: str) -> tuple[str, str]:
    """The type and the text that are guessed."""
    done = "\n".join(history)
    asked = "ELEMENT: words\nELEMENT TYPE: BUTTON or LINK\nELEMENT TEXT: words\nACTION: one\nVALUE: text"
    messages = (Message("user", f"Your task: {task}\n\nDone:\n{done}"), Message("user", asked))
    fields = dict(
        line.split(": ", 1) for line in ask("builtin/lexical", Request(messages, STEP.key, 0, 2)).splitlines()
    )
    return fields["ELEMENT TYPE"], fields["ELEMENT TEXT"]


def test_an_element_is_described_by_the_first_name_of_the_task() -> None:
    assert attributes("Open the Store Locator of the shop") == ("LINK", "Store Locator")


def test_a_task_without_a_name_gives_its_first_words() -> None:
    assert attributes("open the cheapest flight")[1] == "open cheapest flight"


def test_after_typing_the_described_element_sends_the_form() -> None:
    assert attributes("Hotels in Oslo", "[textbox]  City -> TYPE: Oslo") == ("BUTTON", "Search")


def test_an_unknown_name_lists_those_that_are_known() -> None:
    with pytest.raises(ModelSpecError, match=r"^model: .*builtin/lexical, builtin/oracle, got builtin/gpt"):
        open_model("builtin/gpt", ModelOptions())


def test_no_other_model_is_told_the_truth() -> None:
    """A request holds nothing of the answer, and what a person passes as a model gets nothing but requests."""
    seen: list[Request] = []

    class Curious:
        async def complete(self, request: Request) -> Completion:
            seen.append(request)
            return Completion("ELEMENT: A")

        async def complete_with_ideal(self, request: Request, ideal: str) -> Completion:
            raise AssertionError("told the truth")

        async def aclose(self) -> None:
            pass

    asyncio.run(call_model(open_model(Curious(), ModelOptions()), Request((), STEP.key, 0, 2), "ELEMENT: 12"))
    assert {field.name for field in dataclasses.fields(seen[0])} == {"messages", "key", "group", "turn", "offered"}
