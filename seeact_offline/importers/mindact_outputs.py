"""MindAct's `*_outputs_topK.json`, every round of its elimination, and `*_predictions_topK.json`, their outcomes.

Both are lists with an entry a step, which begins with `ANNOTATION-ID_ACTION-UID`.
Source: Mind2Web's released evaluation, commit 1b7c323.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from seeact_offline.files.formats import FormatError, read_json
from seeact_offline.files.named import LARGE, read_named
from seeact_offline.importers.importer import Answer, ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.importers.reading import decoded, text
from seeact_offline.records import InputError, Prediction, Reply, Truth
from seeact_offline.replies.elimination_answer import BEYOND, Layout, parse_multichoice_reply

TOP_K = 50
"""The default where the file's name gives none."""
NOTES = {"letter_beyond_choices": "replies that name a letter that was not offered"}
_NAMED_K = re.compile(r"_top(\d{1,4})\.json$")


def read(sources: Mapping[str, Source]) -> ImportedAnswers:
    source = sources["run"]
    entries, is_utf8 = _entries(source)
    rounds = [one for one in entries if _is_output(one)]
    finals = [one for one in entries if _is_final(one)]
    if not rounds and not finals:
        raise WrongFormat(source, "MindAct's outputs or predictions: a list of entries that begin with a step")
    # replies of a chat model hold `Answer:`; those of T5 begin with their letter
    layout: Layout = (
        "chat" if any("Answer:" in one.reply for entry in rounds for one in _rounds(entry[1])) else "seq2seq"
    )
    named = _NAMED_K.search(source.path.name)
    top_k = int(named[1]) if named else TOP_K
    is_fitting = _is_output if len(rounds) > len(finals) else _is_final
    answers: dict[str, Answer] = {}
    problems = [] if is_utf8 else [Problem("not_utf8", source.path.name)]
    for place, entry in enumerate(entries, 1):
        where = f"entry {place} of {source.path.name}"
        if not is_fitting(entry):
            problems.append(Problem("bad_row", where))
        elif entry[0] in answers:
            problems.append(Problem("duplicate_step", f"{entry[0]} again in {where}"))
        else:
            answers[entry[0]] = (
                partial(_eliminated, _rounds(entry[1]), layout, top_k)
                if is_fitting is _is_output
                else partial(_final, entry)
            )
    return ImportedAnswers(answers, problems)


def _entries(source: Source) -> tuple[list[Any], bool]:
    """The file's list, and whether all of it is UTF-8."""
    content, is_utf8 = decoded(read_named(source.argument, source.path, largest=LARGE))
    try:
        value = read_json(content)
    except FormatError:
        raise InputError(
            source.argument, "a whole JSON file of MindAct", f"{source.path}, which is cut off or no JSON"
        ) from None
    if not isinstance(value, list):
        raise WrongFormat(source, "MindAct's outputs or predictions: a list")
    return value, is_utf8


def _is_final(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str) and not isinstance(entry[1], list)


def _is_output(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], list)


# --- final predictions ---


def _final(entry: Sequence[Any], truth: Truth) -> Prediction:
    """An empty element means no element, and its action is empty as well."""
    op, _, value = text(entry[2]).partition(" ")
    return Prediction(*truth.key, text(entry[1]) or None, op, value)


# --- every round ---


@dataclass(frozen=True, slots=True)
class _Round:
    """One question and its reply."""

    asked: tuple[str, ...]
    """Ids that were taken from the queue."""
    offered: tuple[str, ...]
    """Ids in the order of their letters, from B."""
    reply: str


def _rounds(found: Sequence[Any]) -> list[_Round]:
    """The rounds that can be read; a step that was not asked has none."""
    rounds = []
    for one in found:
        try:
            ids, (_, _, choices), reply = one
            offered = tuple(text(choice[0]) for choice in choices)
            rounds.append(_Round(tuple(map(text, ids)), offered, text(reply)))
        except (TypeError, ValueError, LookupError):
            continue
    return rounds


def _eliminated(rounds: Sequence[_Round], layout: Layout, top_k: int, truth: Truth) -> Prediction:
    """The winner of the rounds.

    Each round takes its candidates from the queue, and its winner goes to the queue's end. With nothing left in the queue
    there is no element; with one candidate left, whichever it is, the last winner stays the answer. A letter beyond the
    choices takes a chat model's winner away and leaves T5's.
    """
    asked = {node for one in rounds for node in one.asked}
    # all candidates ranked under k were in the queue; one that was never asked is left over
    n_left = max(0, min(top_k, truth.n_candidates) - len(asked)) if truth.n_candidates else 0
    waiting: set[str] = set()
    winner: Reply | None = None
    groups, beyond = [], 0
    for place, one in enumerate(rounds):
        waiting -= set(one.asked)
        answer = parse_multichoice_reply(one.reply, layout, len(one.offered), counts_back=True)
        element = None if answer.choice is None else one.offered[answer.choice]
        group = Reply(place, one.offered, (one.reply,), element, answer.op, answer.value, answer.failure)
        groups.append(group)
        if element is not None:
            waiting.add(element)
            winner = group
        elif answer.failure == BEYOND:
            beyond += 1
            winner = None if layout == "chat" else winner
    stands = winner if waiting or n_left else None
    return Prediction(
        *truth.key,
        groups=tuple(groups),
        element_id=stands.element_id if stands else None,
        op=stands.op if stands else "",
        value=stands.value if stands else "",
        notes={"letter_beyond_choices": beyond} if beyond else {},
        reachable=not truth.positives.isdisjoint(asked),
    )


IMPORTER = Importer(
    name="mindact",
    what="MindAct's outputs or predictions",
    protocol="mindact",
    read=read,
    looks=lambda first: _is_final(first) or _is_output(first),
    notes=NOTES,
)
