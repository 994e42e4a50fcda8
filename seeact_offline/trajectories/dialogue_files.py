"""Dialogues that an agent is trained on, as OpenWebVoyager's files have them: one JSONL line an action,
pictures in files beside.

`<image>` in a text is the place of a picture. Texts of pages that spell it out are made harmless when they are written,
and a reader puts each picture behind the text that it belongs to, as models are asked.

Source: MinorJerry/OpenWebVoyager e907cef: WebVoyager/convert_trajectories_to_json.py.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from seeact_offline.files.named import read_rows
from seeact_offline.files.whole import write_whole
from seeact_offline.records import InputError, Message, Picture, RowError, StepKey

IMAGES = "images"
"""The folder of pictures, beside the file."""
IMAGE = "<image>"
HARMLESS_IMAGE = "< image>"
Speaker = Literal["system", "human", "gpt"]
OF_ROLES: dict[str, Speaker] = {"system": "system", "user": "human", "assistant": "gpt"}
"""Our names of roles -> the files'."""
ROLES = {theirs: ours for ours, theirs in OF_ROLES.items()}
GOLD = "gold"
"""The source of dialogues of recorded actions."""
NONE = "none"
"""Stands for a model's name where none has written the thoughts."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One action of an agent, with everything that it was shown before."""

    key: StepKey
    messages: tuple[Message, ...]
    reply: str
    """The reply that is learnt."""
    source: str
    """`gold`, or the name of the model that has acted."""
    thoughts: str = NONE
    """The model that has written the thoughts of gold actions; `none` for a neutral line."""


class DialogueMessage(msgspec.Struct, frozen=True, rename={"by": "from"}):
    """A message of a line."""

    by: Speaker
    value: str


class DialogueLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a file."""

    id: str
    """`TASK--rROUND--stepNN`, NN counting the task's actions from 0."""
    annotation_id: str
    action_uid: str
    source: str
    thoughts: str = NONE
    images: tuple[str, ...] = ()
    """Paths below the file's folder, in the order in which they are shown."""
    conversations: tuple[DialogueMessage, ...]

    @property
    def key(self) -> StepKey:
        return StepKey(self.annotation_id, self.action_uid)


@dataclass(frozen=True, slots=True)
class DialogueCounts:
    """The extent of a file."""

    tasks: int
    steps: int
    items: int
    """Lines: the actions of the steps, those that scroll included."""


def write_dialogues(path: Path, dialogues: Iterable[Dialogue], number: int) -> Counter[str]:
    """Writes dialogues in order, whole or not at all, equal pictures once. `number`: the round, part of every id.

    Returns the number of those left out because a picture cannot be encoded, by the failure's name.
    """
    images, n_of_task, left_out = path.parent / IMAGES, Counter[str](), Counter[str]()
    images.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}

    def kept(picture: Picture) -> str:
        if picture.key not in files:
            data = picture.encoded()
            file = images / f"{hashlib.sha256(data).hexdigest()[:32]}.png"
            if not file.exists():
                write_whole(file, lambda draft: draft.write_bytes(data))
            files[picture.key] = f"{IMAGES}/{file.name}"
        return files[picture.key]

    def lines() -> Iterator[DialogueLine]:
        for dialogue in dialogues:
            task = dialogue.key.annotation_id
            try:
                shown = tuple(kept(message.picture) for message in dialogue.messages if message.picture is not None)
            except RowError as error:
                left_out[error.name] += 1
                continue
            messages = [DialogueMessage(OF_ROLES[message.role], _text(message)) for message in dialogue.messages]
            yield DialogueLine(
                id=f"{task}--r{number}--step{n_of_task[task]:02}", annotation_id=task,
                action_uid=dialogue.key.action_uid, source=dialogue.source, thoughts=dialogue.thoughts, images=shown,
                conversations=(*messages, DialogueMessage("gpt", _text(Message("assistant", dialogue.reply)))),
            )  # fmt: skip
            n_of_task[task] += 1

    _write(path, lines())
    return left_out


def _text(message: Message) -> str:
    text = message.text.replace(IMAGE, HARMLESS_IMAGE)
    return text if message.picture is None else f"{text}\n{IMAGE}"


def write_lines(path: Path, lines: Iterable[tuple[Path, DialogueLine]]) -> None:
    """Writes lines of other files, whole or not at all. Their pictures stay in those files' folders."""

    def moved(file: Path, line: DialogueLine) -> DialogueLine:
        there = Path(os.path.relpath(file.parent, path.parent))
        return msgspec.structs.replace(line, images=tuple((there / name).as_posix() for name in line.images))

    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, (moved(file, line) for file, line in lines))


def _write(path: Path, lines: Iterable[DialogueLine]) -> None:
    def write(draft: Path) -> None:
        with draft.open("w", encoding="ascii") as file:
            for line in lines:
                # a page's text may hold half of a surrogate pair, which JSON alone can spell
                file.write(json.dumps(msgspec.to_builtins(line)) + "\n")

    write_whole(path, write)


def read_dialogues(path: Path, argument: str = "dialogues") -> Iterator[DialogueLine]:
    """Yields the lines of a file in order. Raises InputError for `argument`: one that is no dialogue ending with a
    reply, or whose pictures and their places differ in number."""
    for line, where in read_rows(argument, path, DialogueLine):
        places = [message.value.count(IMAGE) for message in line.conversations]
        if not line.conversations or line.conversations[-1].by != "gpt":
            raise InputError(argument, "a dialogue that ends with a message from gpt", f"another in {where}")
        if sum(places) != len(line.images) or max(places) > 1:
            wanted = f"as many {IMAGE} as images, at most one a message"
            raise InputError(argument, wanted, f"{sum(places)} for {len(line.images)} in {where} ({line.id:.60})")
        yield line


def messages_of(line: DialogueLine) -> Iterator[tuple[str, str, bool]]:
    """Yields role, text and whether a picture follows, of each message of a line."""
    for message in line.conversations:
        text = (
            message.value.replace(f"\n{IMAGE}", "", 1)
            if f"\n{IMAGE}" in message.value
            else message.value.replace(IMAGE, "", 1)
        )
        yield ROLES[message.by], text, IMAGE in message.value


def count_dialogues(path: Path) -> DialogueCounts:
    """Counts the tasks, steps and lines of a file. Raises InputError as `read_dialogues`."""
    keys = [line.key for line in read_dialogues(path)]
    return DialogueCounts(len({key.annotation_id for key in keys}), len(set(keys)), len(keys))
