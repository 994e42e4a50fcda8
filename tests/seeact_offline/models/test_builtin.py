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
from seeact_offline.models.client import call_model
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


CHOICES = {
    # task | options ... | history => element, operation, value
    "the option that shares words with the task": "Open the store locator | <a> Help </a>"
    " | <a> Store Locator </a> => B CLICK None",
    "none, without a shared word": "Open the store locator | <a> Help </a> | <a> Cart </a> => C",
    "none, where nothing is offered": "Open the store locator => A",
    "no tag names and numbers of the markup": "Select button 3 of the form | <form id=3 > Other </form>"
    " | <a id=1> Help </a> => C",
    "rare words before those of all": "Cheap flights to Oslo | <a> Cheap flights to Rome </a>"
    " | <a> Cheap flights to Oslo </a> | <a> Cheap flights to Cairo </a> => B",
    "nothing that is done": "Photographers for weddings | <a> Weddings </a> | <a> Photographers </a>"
    " | [link]  Weddings -> CLICK => B",
    "an element": "A place in Oslo | <a> Weddings Oslo </a> | <div> Cheap Oslo Hotels </div> => A",
    "less readily a used one": "A place in Oslo | <a> Weddings Oslo </a> | <div> Cheap Oslo Hotels </div>"
    " | [link]  Weddings -> CLICK => B",
    "after typing, what sends": "Hotels in Oslo | <input city /> | <button submit> Search </button>"
    " | [textbox]  City -> TYPE: Oslo => B CLICK None",
    "of equals the first": "Open the cart | <a> Cart </a> | <a> Cart </a> => A",
    "among more than 26": f"Open the cart {'| <a> item </a> ' * 30}| <a> Cart </a> => AE",
    "typing into an input": "Set the destination to Oslo | <input id=0 destination city /> => A TYPE Oslo",
    "typing into a text area": "Set the destination to Oslo | <textarea destination /> => A TYPE Oslo",
    "typing, in round markup": "Set the destination to Oslo | (input destination city ) => A TYPE Oslo",
    "selecting": "Set the destination to Oslo | <select destination /> => A SELECT Oslo",
    "selecting from a box": "Set the destination to Oslo | <div combobox destination /> => A SELECT Oslo",
    "clicking a checkbox": "Set the destination to Oslo | <input checkbox destination /> => A CLICK None",
    "clicking a radio": "Set the destination to Oslo | <input radio destination /> => A CLICK None",
    "clicking a submit": "Set the destination to Oslo | <input submit destination /> => A CLICK None",
    "clicking a button": "Set the destination to Oslo | <input button destination /> => A CLICK None",
    "a quoted value": 'Put a note that says "ring twice" on the order for Oslo | <input note /> => A TYPE ring twice',
    "the value nearest to the field": "Fly from New York to Oslo, put a note | <input note /> => A TYPE Oslo",
    "a number": "Note 12 tickets | <input note /> => A TYPE 12",
    "a name": "Put a note on the order from Rome | <input note /> => A TYPE Rome",
    "no value twice": "Fly from New York to city Oslo | <input city />"
    " | [textbox]  From -> TYPE: New York => A TYPE Oslo",
    "a click, without a value": "Change the destination | <input destination /> => A CLICK None",
}  # fmt: skip


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_the_lexical_model_chooses(case: str) -> None:
    asked, _, chosen = case.partition(" => ")
    task, *lines = asked.split(" | ")
    history = tuple(line for line in lines if " -> " in line)
    found = lexical(task, *(line for line in lines if line not in history), history=history)
    assert found[: len(chosen.split(" ", 2))] == chosen.split(" ", 2)


@pytest.mark.parametrize(
    "messages",
    [
        conversation("\nOpen the cart", "<a id=0> Help </a>", "<a id=1> Cart </a>"),
        (Message("user", "A. <a id=0> Help </a>\nB. none"),),
    ],
    ids=["the task below its heading", "no task"],
)
def test_other_forms_of_a_prompt_are_answered(messages: tuple[Message, ...]) -> None:
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    ("task", "history", "described"),
    [
        ("Open the Store Locator of the shop", (), ("LINK", "Store Locator")),
        ("open the cheapest flight", (), ("LINK", "open cheapest flight")),
        ("Hotels in Oslo", ["[textbox]  City -> TYPE: Oslo"], ("BUTTON", "Search")),
    ],
    ids=["first name", "first words", "after typing"],
)
def test_an_element_is_described(task: str, history: list[str], described: tuple[str, str]) -> None:
    assert attributes(task, *history) == described


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
    known = {"messages", "key", "group", "turn", "offered", "for_second", "coming"}
    assert {field.name for field in dataclasses.fields(seen[0])} == known


# --- labelled lines ---

ARENA, VOYAGER = "click [ID] presses it.\nOne action in backticks:\n```click [12]```", "Click [LABEL] presses it."
TREE = "[3] link 'Home'\n\t[7] textbox 'Search games'\n[9] button 'Strategy'"


@pytest.mark.parametrize(
    ("rules", "shown", "said"),
    [
        (ARENA, f"{TREE}\n\nTask: Browse strategy titles", "```click [9]```"),
        (ARENA, f"{TREE}\n\nTask: Search for 'Go'", "```type [7] [Go]```"),
        (ARENA, f"{TREE}\n\nTask: Buy a kettle", "```scroll [down]```"),
        (ARENA, "[1] [A] [Home]\n[2] [BUTTON] [Strategy]\nTask: Browse strategy titles", "```click [2]```"),
        (VOYAGER, 'Task: Find strategy\n[0]: "Home";\t[4]: <button> "Strategy"', "Action: Click [4]"),
        (VOYAGER, 'Task: Search for \'Go\'\n[0]: "Home";\t[4]: <input> "Search"', "Action: Type [4]; [Go]"),
        (VOYAGER, 'Task: Buy a kettle\n[0]: "Home"', "Action: Scroll [WINDOW]; [down]"),
        # the first is dealt with
        (
            ARENA,
            "[1] link 'Tea'\n[2] link 'Tea pot'\nTask: Tea, tea pot\nLast action: click [9] where [9] is link 'Tea'",
            "```click [2]```",
        ),
    ],
)
def test_of_labelled_lines_it_names_the_one_that_shares_words_with_the_task(rules: str, shown: str, said: str) -> None:
    messages = (Message("system", rules), Message("user", shown))
    assert ask("builtin/lexical", Request(messages, STEP.key, 0, 1)).splitlines()[-1] == said


def test_examples_before_labelled_lines_have_tasks_of_their_own() -> None:
    example = "Observation:\n[7] link 'Tables'\nTask: Buy tables"
    asked = "Observation:\n[1] link 'Tables'\n[2] link 'Ferries'\nTask: Find ferries"
    messages = [Message("system", ARENA)]
    messages += [Message("user", example), Message("assistant", "```click [7]```"), Message("user", asked)]
    assert ask("builtin/lexical", Request(tuple(messages), STEP.key, 0, 1)) == "```click [2]```"
