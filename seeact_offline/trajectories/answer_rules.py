"""Rules on answers, addresses and pictures (VisualWebArena 89f5af2 and WebArena f62e0b9, evaluation_harness).
1.0 passes, 0.0 does not.

What cannot be scored raises Unscored: a name that is counted, never a 0.

Rules on text clean `answer` and `reference` themselves. The released evaluator cleans an answer once more before all of
them, so that an answer in two pairs of quotes loses both; `rewarding` does the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlparse

from seeact_offline.pages.screenshots import open_picture
from seeact_offline.records import Message, RowError, SeeActError
from seeact_offline.trajectories.word_tokens import word_tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

REASONS: Mapping[str, str] = {
    "no_answer": "the answers have none for this task",
    "no_state": "the states have no address or page for this task",
    "bad_state": "the state of this task cannot be read",
    "missing_page": "the states lack a page that the task opens",
    "missing_picture": "the states lack a picture of the page or of the task",
    "unsupported_locator": "the element is found by code that needs a browser",
    "unsupported_address": "the address of the page is computed by code that needs a site",
    "unsupported_evaluator": "the rule set has no such evaluator",
    "no_model": "a model has to judge it, and none is given",
    "no_verdict": "the model's reply holds none of the words that are looked for",
    "call_failed": "the model gave no answer",
    "program_failed": "the task's program cannot be applied to this answer or page",
    "bad_task": "the task does not say what to look for",
}
"""Name -> meaning."""


class Unscored(SeeActError):
    """A part of a task cannot be scored. `name` is one of REASONS, `detail` one sentence about it."""

    def __init__(self, name: str, detail: str = "") -> None:
        super().__init__(f"{name}: {detail}" if detail else name)
        self.name, self.detail = name, detail


# --- the text of an answer (evaluators.py) ---

OR = " |OR| "
TOLERANCE = 1e-8
QUOTES = ("'", '"')
Entries = str | Sequence[str]
"""One reference, or a list of them."""


def clean(text: str) -> str:
    """Removes one pair of equal quotes around a text, and its capitals. A single quote alone becomes empty.
    Raises Unscored for no text."""
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
    """Passes if each entry is in the answer: one of its words if the entry is one word, else any part of it.
    ` |OR| ` separates alternatives."""
    return float(
        all(any(_includes(answer, alternative) for alternative in entry.split(OR)) for entry in entries(reference))
    )


def must_include_webarena(answer: str, reference: Entries) -> float:
    """Passes if each entry is a part of the answer; an only entry of one character must be one of its words.
    No alternatives."""
    wanted = entries(reference)
    return float(all(_includes_stripped(answer, entry, as_word=len(wanted) == 1) for entry in wanted))


def includes_anywhere(answer: str, reference: Entries) -> float:
    """Passes if each entry is a part of the answer, with alternatives: WebArena's way with pages."""
    return float(
        all(
            any(_includes_stripped(answer, alternative, as_word=False) for alternative in entry.split(OR))
            for entry in entries(reference)
        )
    )


def must_exclude(answer: str, reference: Entries) -> float:
    """Passes if no entry is in the answer, in the sense of `must_include`; an ` |OR| ` is a part of the entry."""
    return float(not any(_includes(answer, entry) for entry in entries(reference)))


def one_of(answer: str, reference: Entries) -> float:
    """Passes if any reference is a part of the answer."""
    text = clean(answer)
    return float(any(clean(entry) in text for entry in entries(reference)))


def required_values(answer: str | int, reference: Entries) -> float:
    """Passes a whole number that fulfils each entry, such as `>= 300` or `< 5 |OR| > 9`.
    `<` and `>` hold for equality too."""
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
    texts = (reference,) if isinstance(reference, str) else reference
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise Unscored("bad_task", f"expected a text or a list of texts, got {reference!r:.60}")
    return texts


def _includes(answer: str, entry: str) -> bool:
    text, wanted = clean(answer), clean(entry)
    return wanted in (word_tokenize(text) if len(word_tokenize(wanted)) == 1 else text)


def _includes_stripped(answer: str, entry: str, *, as_word: bool) -> bool:
    text, wanted = clean_stripped(answer), clean_stripped(entry)
    one_word = as_word and len(wanted) == 1 and len(word_tokenize(wanted)) == 1
    return wanted in (word_tokenize(text) if one_word else text)


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
    holds = {condition: _holds(number, condition, relations) for condition in chain.from_iterable(parts)}
    return float(all(any(holds[condition] for condition in entry) for entry in parts))


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


# --- the address of the last page (VisualWebArena :302-338, WebArena :71-241) ---

EXACT = "EXACT"
PART = "GOLD in PRED"


def url_match(address: str, reference: str, note: str | None = None) -> float:
    """Passes an address that equals any reference (`EXACT`, the default), or holds one (`GOLD in PRED`);
    ` |OR| ` separates references.

    `localhost` counts as 127.0.0.1, one slash at the end as none; the order of the query counts.
    Raises Unscored for another note, and for no text.

    >>> url_match("http://localhost:7770/cart/", "http://127.0.0.1:7770/cart")
    1.0
    >>> url_match("http://shop/cart?page=2", "http://shop/cart")
    0.0
    >>> url_match("http://shop/cart?page=2", "/cart", "GOLD in PRED")
    1.0
    """
    page, wanted = _cleaned(address), [_cleaned(url) for url in checked_text(reference).split(OR)]
    note = EXACT if note is None else note
    if note == EXACT:
        return float(page in wanted)
    if note == PART:
        return float(any(url in page for url in wanted))
    raise Unscored("bad_task", f"expected url_note {EXACT} or {PART}, got {note!r:.60}")


def url_match_by_parts(address: str, reference: str, note: str | None = None) -> float:
    """Passes an address whose host and path hold those of any reference,
    and which has one of the references' values of each query key.

    WebArena's way; the values of all references count together. Slashes at the end of a whole address count as none,
    those before its query count. Raises Unscored for a note other than `GOLD in PRED`, the default.
    """
    if note not in (None, PART):
        raise Unscored("bad_task", f"expected url_note {PART}, got {note!r:.60}")
    page_place, page_query = _parts(checked_text(address).rstrip("/"))
    wanted = [_parts(url.rstrip("/")) for url in checked_text(reference).split(OR)]
    values: dict[str, set[str]] = defaultdict(set)
    for _, query in wanted:
        for key, allowed in query.items():
            values[key].update(allowed)
    in_place = any(place in page_place for place, _ in wanted)
    return float(in_place and all(allowed & set(page_query.get(key, ())) for key, allowed in values.items()))


def _cleaned(address: str) -> str:
    return checked_text(address).replace("localhost", "127.0.0.1").removesuffix("/")


def _parts(address: str) -> tuple[str, dict[str, list[str]]]:
    """Host and path as one text, and the values of each key of the query. Raises Unscored for what is no address."""
    try:
        parsed = urlparse(address)
        return parsed.netloc + parsed.path, parse_qs(parsed.query)
    except ValueError as error:
        raise Unscored("bad_task", f"expected an address, got {address!r:.60}: {error}") from None


# --- a model's opinion (VisualWebArena, helper_functions.py:556-611) ---

# The released prompts were written for gpt-4-1106-preview at temperature 0; these say the same in our words. Figures by
# another model or wording are no figures of the paper.

Ask = Callable[[tuple[Message, ...]], str]
"""Sends messages to a model and returns the text of its reply. Raises CallError."""
SYSTEM = "You compare answers with care."
FUZZY = """A question was answered, and the right answer is known. Decide whether the given answer means the same as \
the right one; other words for the same thing are fine. Wherever "N/A" stands, it means that the task cannot be done.
Question: {intent}
Right answer: {reference}
Given answer: {answer}
Reply with exactly one of: correct, incorrect, partially correct."""
UNACHIEVABLE = """A task cannot be done. You are given the true reason and the reason that somebody reported after \
trying. Decide whether the reported reason amounts to the true one, even if it only implies it.
Task: {intent}
True reason: {reference}
Reported reason: {answer}
Reply with "same" if it does, otherwise with "different"."""


def fuzzy_match(answer: str, reference: str, intent: str, ask: Ask) -> float:
    """Asks whether an answer means the reference. `incorrect` or `partially correct` fail, wherever they stand in the
    reply; then `correct` passes. Raises Unscored `no_verdict`, and what `ask` raises."""
    return _verdict(ask(_messages(FUZZY, answer, reference, intent)), ("partially correct", "incorrect"), "correct")


def ua_match(answer: str, reference: str, intent: str, ask: Ask) -> float:
    """Asks whether an answer gives the reason for which a task cannot be done. `different` fails; then `same` passes.
    Raises as `fuzzy_match` does."""
    return _verdict(ask(_messages(UNACHIEVABLE, answer, reference, intent)), ("different",), "same")


def _verdict(reply: str, failing: tuple[str, ...], passing: str) -> float:
    # a model that refuses may reply without a text
    text = (reply or "").lower()
    if any(word in text for word in failing):
        return 0.0
    if passing not in text:
        raise Unscored("no_verdict", f"expected {' or '.join((*failing, passing))}, got {reply!r:.60}")
    return 1.0


def _messages(template: str, answer: str, reference: str, intent: str) -> tuple[Message, ...]:
    return Message("system", SYSTEM), Message(
        "user", template.format(intent=intent, reference=reference, answer=answer)
    )


# --- the pictures of a page (VisualWebArena, image_utils.py:64-84) ---

THRESHOLD = 0.8
WINDOW = 7
"""Pixels of a side of scikit-image's window, and so of the smallest picture."""
MOST_PIXELS = 64_000_000
"""Pixels of a pair of pictures after both are enlarged."""
AskPicture = Callable[[str, bytes], str]
"""Sends a question and the file of a picture to a model and returns its reply. Raises CallError."""


def ssim(first: bytes, second: bytes) -> float:
    """Mean structural similarity of two picture files, at most 1:
    both enlarged to the larger width and height (Lanczos), in grey.

    Wang et al. 2004 by scikit-image with its defaults, as in the released code. Needs the extra `rewards`. Raises
    Unscored `missing_picture` for a file that is no picture, or a pair that is too small or too large.
    """
    from skimage.metrics import structural_similarity

    picture, other = _opened(first), _opened(second)
    size = max(picture.width, other.width), max(picture.height, other.height)
    if min(size) < WINDOW or size[0] * size[1] > MOST_PIXELS:
        raise Unscored("missing_picture", f"pictures of {size[0]} x {size[1]} pixels cannot be compared")
    return float(structural_similarity(_grey(picture, size), _grey(other, size)))


def is_similar(picture: bytes, reference: bytes, threshold: float = THRESHOLD) -> float:
    """Passes pictures that are more similar than the threshold."""
    return float(ssim(picture, reference) > threshold)


def answers_question(pictures: Sequence[bytes], question: str, answer: str, ask: AskPicture) -> float:
    """Passes if the expected text is in a model's reply about any picture; every picture is asked about."""
    replies = [ask(f"Q: {question} A:", picture) for picture in pictures]
    return float(any(answer.lower() in reply.lower() for reply in replies))


def _opened(data: bytes) -> Image.Image:
    try:
        picture = open_picture(data)
        picture.load()
    except (RowError, OSError, ValueError, SyntaxError) as error:
        raise Unscored("missing_picture", str(error)) from None
    return picture


def _grey(picture: Image.Image, size: tuple[int, int]) -> NDArray[np.uint8]:
    import numpy as np
    from PIL import Image

    return np.asarray(picture.resize(size, Image.Resampling.LANCZOS).convert("L"))
