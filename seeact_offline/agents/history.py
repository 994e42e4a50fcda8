"""Clipping of conversations, as web agents forget what they saw: older observations of a conversation are replaced by a
note.

Clipping at every turn gives the same as clipping once, as the notes are observations themselves. The wording of the
notes is ours; their places are those of the released code. Its other note, on downloaded PDF files, has no use on
recorded pages.

Source: MinorJerry/WebVoyager 5a78967: utils.py:258-301; MinorJerry/OpenWebVoyager e907cef:
WebVoyager/utils_localhost.py:54-172.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from seeact_offline.records import Message

Counted = Literal["pictures", "all", "observations"]
OBSERVATION = "Observation:"
PICTURE_NOTE = f"{OBSERVATION} no longer shown (a screenshot and its texts)."
TREE_NOTE = f"{OBSERVATION} no longer shown (an accessibility tree)."
OPEN_OBSERVATION = "OBSERVATION:"
IMAGE = "<image>"
"""The place of a picture in the texts that OpenWebVoyager is trained on."""
OPEN_PICTURE_NOTE = f"{OPEN_OBSERVATION} {IMAGE} (accessibility tree no longer shown)"
OPEN_NOTE = f"{OPEN_OBSERVATION} no longer shown (a screenshot and its accessibility tree)"
LONGEST_LINE = 500
"""Pieces of a line of OpenWebVoyager's trees."""


def clip(messages: Sequence[Message], keep: int, counted: Counted = "pictures") -> tuple[Message, ...]:
    """WebVoyager's rule: the newest `keep` observations stay whole, and of each older one what stands before
    `Observation:` and a note.

    `counted`: the user messages that are observations. `pictures`: those with a picture, so that corrections stay as
    they are; `all`: as released for text-only runs, where a correction takes a place of an observation; `observations`:
    those that say `Observation:`.

    >>> observations = Message("user", "Observation: [1] From"), Message("user", "Observation: [2] To")
    >>> talk = [observations[0], Message("assistant", "Click [1]"), observations[1]]
    >>> [message.text for message in clip(talk, keep=1, counted="observations")]
    ['Observation: no longer shown (an accessibility tree).', 'Click [1]', 'Observation: [2] To']
    """
    rules: dict[Counted, Callable[[Message], bool]] = {
        "pictures": lambda message: message.picture is not None,
        "all": lambda message: True,
        "observations": lambda message: OBSERVATION in message.text,
    }
    counts = rules[counted]
    note = PICTURE_NOTE if counted == "pictures" else TREE_NOTE

    def clipped() -> Iterator[Message]:
        n_seen = 0
        for message in reversed(messages):
            if message.role != "user" or not counts(message):
                yield message
                continue
            n_seen += 1
            yield (
                message
                if n_seen <= keep
                else replace(message, text=message.text.split(OBSERVATION)[0].strip() + note, picture=None)
            )

    return tuple(clipped())[::-1]


def clip_open(messages: Sequence[Message], keep: int = 3) -> tuple[Message, ...]:
    """OpenWebVoyager's rule for its trained model: the newest observation stays whole, but for its long lines; the
    `keep` - 1 before it keep their pictures, those before them nothing.

    An observation is a user message with a line that begins with `OBSERVATION:`; what stands before that line always
    stays.
    """

    def clipped() -> Iterator[Message]:
        n_seen = 0
        for message in reversed(messages):
            if message.role != "user":
                yield message
                continue
            n_seen += 1
            before, mark, after = f"\n{message.text}".partition(f"\n{OPEN_OBSERVATION}")
            head = before[1:] + "\n" * bool(before)
            if n_seen == 1:
                yield replace(message, text=head + mark.strip() + shorten_lines(after)) if mark else message
            else:
                is_shown = n_seen <= keep
                note = OPEN_PICTURE_NOTE if is_shown else OPEN_NOTE
                yield replace(message, text=head + note, picture=message.picture if is_shown else None)

    return tuple(clipped())[::-1]


def shorten_lines(tree: str) -> str:
    """Cuts lines of more than LONGEST_LINE pieces between single blanks to as many words, without their indent."""
    lines = tree.split("\n")
    return "\n".join(
        " ".join(line.split()[:LONGEST_LINE]) if len(line.split(" ")) > LONGEST_LINE else line for line in lines
    )
