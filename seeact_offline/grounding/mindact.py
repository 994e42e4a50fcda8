"""Grounding by elimination, as MindAct does it: five candidates a question, the pick among
the next ones, until one is left.

The candidates ranked under k wait in an order that the seed and the step decide (`grounding.elimination`). A
question is the page's markup pruned around its candidates, the task, the last 5 actions, and the candidates as
options from B, with `A. None of the above` first. No picture is shown, unless `group_picture` is asked for: the part
of the page that the candidates are in, as BLIP-2 needs it. Chat models see brackets and worked examples before the
question; text-to-text models (T5) see parentheses, no example and no system message. Operation and value are those
of the answer that named the winner.

A step whose right element is not ranked under k is not asked, as in the released code, where it scores 0
whatever is answered: that saves its calls, and no model learns of it. `ask_all` asks it too, for
protocols that score its operation.

Source: Mind2Web (arXiv 2306.06070) and its released evaluation, commit 1b7c323. All wording is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from seeact_offline.files.formats import FormatError, read_json, typed
from seeact_offline.files.named import read_named
from seeact_offline.grounding import Grounding, GroundingResult, Order, PreparedStep, QuestionOptions
from seeact_offline.grounding.conversation import Question, Reader, Session, group_picture, in_thread, nonzero_notes
from seeact_offline.grounding.elimination import (
    GROUP_SIZE,
    OUT_OF_RANGE,
    RULES,
    Elimination,
    GroupAnswer,
    OutOfRange,
    Rule,
    first_groups,
    rules_differ,
)
from seeact_offline.grounding.groups import ranked_boxes
from seeact_offline.grounding.strategy import STRICT_READING, Option, Strategy, StrategyInputs, StrategyInstance
from seeact_offline.merging import Decision, decision
from seeact_offline.models import find_model
from seeact_offline.pages.dom import Style
from seeact_offline.pages.screenshots import Crop
from seeact_offline.prompting import PromptPack, shipped_packs
from seeact_offline.records import (
    OPERATIONS,
    InputError,
    Message,
    Model,
    Operation,
    PromptError,
    Reply,
    StepError,
    letter,
)
from seeact_offline.replies.answer_text import plain_answer
from seeact_offline.replies.elimination_answer import (
    BEYOND,
    LAYOUTS,
    NONE_LETTER,
    Layout,
    is_counted_back,
    parse_multichoice_reply,
)

STYLES: Mapping[Layout, Style] = {"chat": "brackets", "seq2seq": "parentheses"}
OUT_OF_RANGE_OF: Mapping[Layout, OutOfRange] = {"chat": "reset", "seq2seq": "keep"}
"""The released rule for either kind of model."""
PREVIOUS_ACTIONS = 5
"""The last so many are shown."""
DEMONSTRATIONS = "mindact.demonstrations.json"
"""File of the pack `seeact` with the examples that chat models are shown unless others are named."""


# --- texts, for asking and for training alike ---


def question_text(pack: PromptPack, html: str, choices: Sequence[str], task: str, history: Sequence[str]) -> str:
    """One question as the pack words it. `choices`: the texts of the options from B; `history`: oldest first."""
    options = "".join(f"{option_letter(place)}. {text}\n" for place, text in enumerate(choices))
    return replace(pack, values={"choices": options}).render_turn1(task, history[-PREVIOUS_ACTIONS:], html)


def answer_text(layout: Layout, place: int | None, operation: Operation) -> str:
    """The right answer. `place`: of the option, from 0; None: none of them. A value's line breaks become spaces.

    A CLICK of seq2seq ends in a line feed, as released (Mind2Web, src/action_prediction/dataloader.py at 1b7c323).
    """
    named = NONE_LETTER if place is None else option_letter(place)
    lines = [f"Answer: {named}." if layout == "chat" else f"{named}."]
    if place is not None:
        lines.append(f"Action: {operation.op}")
        if operation.op != "CLICK":
            lines.append(f"Value: {' '.join(operation.value.splitlines())}")
        elif layout == "seq2seq":
            lines.append("")
    return "\n".join(lines)


def option_letter(place: int) -> str:
    """Letter of the option at this place, from 0: options begin with B."""
    return letter(place + 1)


# --- worked examples ---


class Demonstration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question with its answer."""

    html: str
    """Markup in the style of the questions."""
    task: str
    history: tuple[str, ...]
    """Previous actions, oldest first."""
    choices: tuple[str, ...]
    """Texts of the options, from B."""
    answer: str
    """The right option's letter; `A` for none of them."""
    op: str = ""
    """One of OPERATIONS; empty with `A`."""
    value: str = ""

    def __post_init__(self) -> None:
        letters = [NONE_LETTER, *map(option_letter, range(len(self.choices)))]
        if self.answer not in letters:
            raise FormatError(f"answer to be one of {', '.join(letters)}", repr(self.answer[:20]))
        if self.op not in (("",) if self.answer == NONE_LETTER else OPERATIONS):
            raise FormatError(f"op to be {', '.join(OPERATIONS)}, or empty with the answer A", repr(self.op[:20]))

    def messages(self, pack: PromptPack, layout: Layout) -> tuple[Message, Message]:
        """The example as a model sees it: a user's question and the model's answer. As released, the
        question's last line feed is left out."""
        letters = [option_letter(place) for place in range(len(self.choices))]
        place = None if self.answer == NONE_LETTER else letters.index(self.answer)
        asked = question_text(pack, self.html, self.choices, self.task, self.history)
        answered = answer_text(layout, place, Operation(self.op, self.value))
        return Message("user", asked.removesuffix("\n")), Message("assistant", answered)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """A file of worked examples."""

    demonstrations: tuple[Demonstration, ...]


def read_demonstrations(path: Path | None) -> tuple[tuple[Demonstration, ...], str]:
    """The examples of a file, in order, and the file's SHA-256; None: those of the pack `seeact`. Raises InputError."""
    file = shipped_packs()["seeact"].joinpath(DEMONSTRATIONS) if path is None else path
    data = read_named("demonstrations", file) if isinstance(file, Path) else file.read_bytes()
    try:
        file_content = typed(read_json(data), _File)
    except FormatError as error:
        raise InputError("demonstrations", error.expected, f"{error.got} in {file}") from None
    return file_content.demonstrations, hashlib.sha256(data).hexdigest()


# --- grounding ---


@dataclass(frozen=True, slots=True)
class EliminationOptions:
    """Rules and size of the elimination."""

    layout: Layout = "chat"
    rule: Rule = "released"
    out_of_range: OutOfRange | None = None
    """None: the released rule for the layout."""
    size: int = GROUP_SIZE
    """Candidates a question."""
    ask_all: bool = False
    """Steps whose right element is not ranked under k too."""
    picture: bool = False
    """True if each question shows the part of the page that its candidates are in."""
    strict: bool = False
    """True if thoughts in tags are read like the rest, as the released code does."""

    @property
    def beyond(self) -> OutOfRange:
        return self.out_of_range or OUT_OF_RANGE_OF[self.layout]

    def elimination(self, ids: Sequence[str]) -> Elimination:
        return Elimination(ids, self.size, self.rule, self.beyond)


class MindactGrounding(Grounding):
    """Asks about a few candidates at a time until one is left."""

    def __init__(
        self,
        pack: PromptPack,
        demonstrations: Sequence[Demonstration] = (),
        options: EliminationOptions | None = None,
        form: QuestionOptions | None = None,
    ) -> None:
        """`demonstrations`: shown before every question. `form`: of it the order
        counts, and how large a picture may be.

        Raises PromptError for prompts without the options.
        """
        self.options = options or EliminationOptions()
        self.form = replace(form or QuestionOptions(), image=self.options.picture)
        self._order = self.form.order or Order(seed=0, repeat=0)
        self._pack = pack
        for placeholder in ("html", "choices"):
            if f"{{{{{placeholder}}}}}" not in pack.turn1:
                wanted = (
                    f"{{{{{placeholder}}}}} in a file mindact.turn1.{self.options.layout}.txt of the pack {pack.name!r}"
                )
                raise PromptError("prompts", wanted, "a first turn without it")
        self._examples = tuple(
            message for shown in demonstrations for message in shown.messages(pack, self.options.layout)
        )

    def questions(self, prepared: PreparedStep) -> list[Question]:
        """The questions that depend on no answer. Raises RowError."""
        groups = first_groups(self.queue(prepared), self.options.size, self.options.rule)
        return [self.question(prepared, group, index) for index, group in enumerate(groups)]

    def queue(self, prepared: PreparedStep) -> list[str]:
        """The ranked candidates in the order in which they wait."""
        return self._order.shuffled([c.backend_node_id for c in prepared.ranked], prepared.step.key, "candidates")

    def read(self, question: Question) -> Reader:
        counts_back = self.options.rule == "released"
        layout, n = self.options.layout, len(question.offered)
        return lambda text: parse_multichoice_reply(self._said(text), layout, n, counts_back=counts_back)

    def _said(self, text: str) -> str:
        """The part of a reply that is read: without thoughts, which the released patterns do not know."""
        return text if self.options.strict else plain_answer(text)

    async def ground(self, prepared: PreparedStep, model: Model) -> GroundingResult:
        ids, positives = self.queue(prepared), prepared.step.truth.positives
        session = Session(model, prepared.step.key)
        if positives.isdisjoint(ids) and not self.options.ask_all:
            return session.ended(Decision(None, "", ""), notes=nonzero_notes(positive_not_ranked=1))
        try:
            ended = await self._eliminate(prepared, ids, session)
        except StepError as error:
            return session.failed(error)
        notes = nonzero_notes(**self._counts(ids, ended, session.replies))
        return session.ended(_decide(ended, session.replies), notes=notes)

    async def _eliminate(self, prepared: PreparedStep, ids: Sequence[str], session: Session) -> Elimination:
        """The queue at its end. Raises StepError."""
        # these depend on no answer
        await session.ask_all(await in_thread(self.questions, prepared), self.read)
        elimination = self.options.elimination(ids)
        for reply in session.replies:
            elimination.record(_group_answer(reply))
        while group := elimination.next_group():
            question = await in_thread(self.question, prepared, group, len(session.replies))
            elimination.record(_group_answer(await session.ask(question, self.read(question))))
        return elimination

    def _counts(self, ids: Sequence[str], ended: Elimination, replies: Sequence[Reply]) -> dict[str, int]:
        layout, elimination = self.options.layout, self.options.elimination(ids)
        # groups in the order of the queue, which is not that of their options
        asked = []
        for reply in replies:
            asked.append((elimination.next_group(), _group_answer(reply)))
            elimination.record(asked[-1][1])
        counted_back = sum(
            is_counted_back(self._said(text), layout, len(r.offered)) for r in replies for text in r.replies
        )
        differ = rules_differ(ids, self.options.size, self.options.beyond, asked)
        return {
            "letter_beyond_choices": sum(reply.failure == BEYOND for reply in replies),
            "letter_counted_back": counted_back,
            "lone_candidate_unasked": int(ended.lone is not None),
            "winner_taken_back": int(ended.taken_back),
            "elimination_rules_part": int(differ or counted_back > 0),
        }

    def reaches(self, prepared: PreparedStep) -> bool:
        """Tells whether ideal answers would end with a positive."""
        ids, positives = self.queue(prepared), prepared.step.truth.positives
        if positives.isdisjoint(ids):
            return False
        # raises where a question cannot be shown
        self._picture(prepared, ids)
        elimination = self.options.elimination(ids)
        picks = []
        while group := elimination.next_group():
            picks.append(next((node for node in group if node in positives), None))
            elimination.record(GroupAnswer(picks[-1]))
        return elimination.winner is not None and picks[elimination.winner] is not None

    def question(self, prepared: PreparedStep, ids: Sequence[str], index: int) -> Question:
        """The question about these candidates, whatever was answered before. Raises StepError."""
        step, pack = prepared.step, self._pack
        group = prepared.page.describe_group(ids, STYLES[self.options.layout])
        offered = tuple(choice.backend_node_id for choice in group.choices)
        texts = tuple(choice.text for choice in group.choices)
        right = next((place for place, node in enumerate(offered) if node in step.truth.positives), None)
        return Question(
            index=index,
            offered=offered,
            system=pack.render_system(),
            turns=(question_text(pack, group.html, texts, step.task, step.history),),
            markup=len(group.html) if pack.turn1.startswith("{{html}}") else 0,
            pictures=(self._picture(prepared, ids),),
            examples=self._examples,
            ideal=(answer_text(self.options.layout, right, step.operation),),
            texts=texts,
            labels=tuple(map(option_letter, range(len(offered)))),
        )

    def _picture(self, prepared: PreparedStep, ids: Sequence[str]) -> Crop | None:
        """The part of the page that the candidates are in; None where no picture is shown. Raises RowError
        `missing_box`, `bad_screenshot`."""
        if not self.form.image:
            return None
        boxes = ranked_boxes(prepared.step, prepared.ranked)
        return group_picture(prepared, [boxes[node] for node in ids], self.form)


def _group_answer(reply: Reply) -> GroupAnswer:
    """A model that declined picks nothing."""
    return GroupAnswer(reply.element_id, beyond=reply.failure == BEYOND)


def _decide(ended: Elimination, replies: Sequence[Reply]) -> Decision:
    """The winning answer; without one, the failure is that of the first reply that could not be read, if any."""
    if ended.winner is not None:
        return decision(replies[ended.winner])
    unread = next((reply for reply in replies if reply.element_id is None and reply.failure), None)
    return Decision(None, "", "", unread.failure, unread.detail) if unread else Decision(None, "", "")


def layout_of(model: object) -> Layout:
    """The layout that suits a model, as users name it. Raises ModelSpecError for one that cannot be found."""
    return "seq2seq" if find_model(model).is_text_to_text else "chat"


def _open(inputs: StrategyInputs) -> StrategyInstance:
    own = inputs.own
    if inputs.form.shared_turn1:
        raise InputError("batching", sentence="grounding mindact asks one turn a group; it needs `batching` per-group")
    if inputs.group_size < 2:
        raise InputError("group_size", "at least 2 with grounding mindact", str(inputs.group_size))
    # answers are read up to F
    size = min(inputs.group_size, GROUP_SIZE)
    options = EliminationOptions(
        own["layout"], own["elimination"], own["out_of_range"], size, own["ask_all"],
        own["group_picture"], own["strict_reading"],
    )  # fmt: skip
    if options.picture and not inputs.form.image:
        raise InputError("no_image", sentence="use `no_image` or `group_picture`, not both")
    if options.layout == "seq2seq" and own["demonstrations"] is not None:
        raise InputError("demonstrations", sentence="`demonstrations` needs `layout` chat; seq2seq shows none")
    shown, digest = read_demonstrations(own["demonstrations"]) if options.layout == "chat" else ((), None)
    identity = {
        "group_size": size,
        "layout": options.layout,
        "elimination": options.rule,
        "out_of_range": options.beyond,
        "ask_all": options.ask_all,
        "group_picture": options.picture,
        "demonstrations_digest": digest,
        **({"strict_reading": True} if options.strict else {}),
    }
    return StrategyInstance(MindactGrounding(inputs.pack, shown, options, inputs.form), identity)


STRATEGY = Strategy(
    name="mindact",
    open=_open,
    turn2=None,
    turn1=("html", "choices"),
    variant=lambda own, form: str(own["layout"]),
    options=(
        Option(
            "layout",
            "whose questions and answers: a chat model's, or a T5's (default: what the model is)",
            of_model=layout_of,
            choices=LAYOUTS,
        ),
        Option(
            "elimination",
            "as released, or with its edge cases corrected (default: released)",
            "released",
            choices=RULES,
        ),
        Option(
            "out_of_range",
            "a letter that was not offered takes the last pick back, or does not (default: reset; with seq2seq keep)",
            choices=OUT_OF_RANGE,
        ),
        Option("demonstrations", "worked examples for chat models, JSON (default: ours)", read=Path, metavar="FILE"),
        Option("ask_all", "ask where the right element is not among those ranked under k too", False, read=bool),
        Option(
            "group_picture", "show the part of the page that a question is about, as BLIP-2 needs it", False, read=bool
        ),
        STRICT_READING,
    ),
    always_shuffled=True,
    grouping_options=("top_k", "group_size"),
    is_grouped=True,
    notes={
        "letter_beyond_choices": "replies that name a letter that was not offered",
        "letter_counted_back": "mindact: a sign in a letter's place that the released code counts"
        " from the last option back",
        "lone_candidate_unasked": "mindact: one candidate was left alone before it was ever offered,"
        " and was not asked about",
        "winner_taken_back": "mindact: the candidate that was left had been picked,"
        " and a letter that was not offered took it back",
        "elimination_rules_part": "mindact: the released and the corrected elimination end"
        " differently, or need another question",
        "positive_not_ranked": "mindact: not asked, as the right element is not among those ranked under k",
    },
)
