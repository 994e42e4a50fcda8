"""Rules on the text of an answer (VisualWebArena 89f5af2 and WebArena f62e0b9, evaluation_harness/evaluators.py). 1.0 passes, 0.0 does not.

`answer` and `reference` are cleaned by each function. The released evaluator cleans an answer once more before all of them, so that an
answer in two pairs of quotes loses both; `reward_tasks` does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from seeact_offline.trajectories.unscored import Unscored
from seeact_offline.trajectories.word_tokens import word_tokenize

OR = " |OR| "
TOLERANCE = 1e-8
QUOTES = ("'", '"')
Entries = str | Sequence[str]
"""One reference, or a list of them."""


def clean(text: str) -> str:
    """Removes one pair of equal quotes around a text, and its capitals. A single quote alone becomes empty. Raises Unscored for no text."""
    text = checked_text(text)
    quoted = any(text.startswith(quote) and text.endswith(quote) for quote in QUOTES)
    return (text[1:-1] if quoted else text).lower()


def clean_stripped(text: str) -> str:
    """Cleans a text after the white space around it is removed: WebArena's way."""
    return clean(checked_text(text).strip())


def checked_text(value: object) -> str:
    """The value, which should be a text. Raises Unscored `bad_task` for anything else."""
    if not isinstance(value, str):
        raise Unscored("bad_task", f"expected a text, got {value!r:.60}")
    return value


def exact_match(answer: str | int, reference: str) -> float:
    """Passes an equal answer."""
    return float(clean(str(answer) if isinstance(answer, int) else answer) == clean(reference))


def exact_match_stripped(answer: str | int, reference: str) -> float:
    """Passes an equal answer, without the white space around it: WebArena's way."""
    return float(clean_stripped(str(answer) if isinstance(answer, int) else answer) == clean_stripped(reference))


def must_include(answer: str, reference: Entries) -> float:
    """Passes if each entry is in the answer: one of its words if the entry is one word, else any part of it. ` |OR| ` separates alternatives."""
    return float(all(any(_includes(answer, one) for one in entry.split(OR)) for entry in entries(reference)))


def must_include_webarena(answer: str, reference: Entries) -> float:
    """Passes if each entry is a part of the answer; an only entry of one character must be one of its words. No alternatives."""
    found = entries(reference)
    return float(all(_includes_stripped(answer, one, as_word=len(found) == 1) for one in found))


def includes_anywhere(answer: str, reference: Entries) -> float:
    """Passes if each entry is a part of the answer, with alternatives: WebArena's way with pages."""
    return float(
        all(
            any(_includes_stripped(answer, one, as_word=False) for one in entry.split(OR))
            for entry in entries(reference)
        )
    )


def must_exclude(answer: str, reference: Entries) -> float:
    """Passes if no entry is in the answer, in the sense of `must_include`; an ` |OR| ` is a part of the entry."""
    return float(not any(_includes(answer, one) for one in entries(reference)))


def one_of(answer: str, reference: Entries) -> float:
    """Passes if any reference is a part of the answer."""
    said = clean(answer)
    return float(any(clean(one) in said for one in entries(reference)))


def required_values(answer: str | int, reference: Entries) -> float:
    """Passes a whole number that fulfils each entry, such as `>= 300` or `< 5 |OR| > 9`. `<` and `>` hold for equality too."""
    return _required(answer, reference, _RELATIONS)


def required_values_strict(answer: str | int, reference: Entries) -> float:
    """Passes as `required_values` does, where `<` and `>` exclude equality."""
    return _required(answer, reference, _STRICT_RELATIONS)


def whole_number(answer: str | int) -> int | None:
    """The number that an answer is, without commas; None for anything else."""
    try:
        return int(answer) if isinstance(answer, int) else int(clean(answer).strip().replace(",", ""))
    except ValueError:
        return None


def entries(reference: Entries) -> Sequence[str]:
    """The list of references. Raises Unscored `bad_task` for another value."""
    found = (reference,) if isinstance(reference, str) else reference
    if not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
        raise Unscored("bad_task", f"expected a text or a list of texts, got {reference!r:.60}")
    return found


def _includes(answer: str, entry: str) -> bool:
    said, wanted = clean(answer), clean(entry)
    return wanted in (word_tokenize(said) if len(word_tokenize(wanted)) == 1 else said)


def _includes_stripped(answer: str, entry: str, *, as_word: bool) -> bool:
    said, wanted = clean_stripped(answer), clean_stripped(entry)
    one_word = as_word and len(wanted) == 1 and len(word_tokenize(wanted)) == 1
    return wanted in (word_tokenize(said) if one_word else said)


_RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": lambda x, y: x <= y + TOLERANCE,
    ">=": lambda x, y: x >= y - TOLERANCE,
    "==": lambda x, y: abs(x - y) <= TOLERANCE,
    "<": lambda x, y: x < y + TOLERANCE,
    ">": lambda x, y: x > y - TOLERANCE,
}
"""Relations in the order in which they are looked for."""
_STRICT_RELATIONS = {**_RELATIONS, "<": lambda x, y: x < y - TOLERANCE, ">": lambda x, y: x > y + TOLERANCE}


def _required(answer: str | int, reference: Entries, relations: dict[str, Callable[[float, float], bool]]) -> float:
    number = whole_number(answer)
    parts = [entry.split(OR) for entry in entries(reference)]
    if number is None:
        return 0.0
    # each alternative is read, so that a wrong one is told of whatever the number
    holds = {one: _holds(number, one, relations) for one in chain.from_iterable(parts)}
    return float(all(any(holds[one] for one in entry) for entry in parts))


def _holds(number: int, condition: str, relations: dict[str, Callable[[float, float], bool]]) -> bool:
    """Tells whether a number fulfils one condition. Raises Unscored `bad_task`."""
    sign = next((sign for sign in relations if sign in condition), None)
    if sign is not None:
        _, _, limit = condition.partition(sign)
        try:
            return relations[sign](number, float(limit.strip()))
        except (ValueError, OverflowError):
            # an unknown sign is told of below
            pass
    raise Unscored("bad_task", f"expected one of {' '.join(relations)} and a number, got {condition!r:.60}")
