"""Raw replies of a GUI model, JSON lines or a table, read in its agent's language.

Columns: `annotation_id`, `action_uid`, `reply` (a text, or a server's whole answer), and, where they are not as the agent's own rule makes them, `width` and `height`, the
size of the picture as sent, and `left`, `top`, `right` and `bottom`, the part of the page that it showed; without `left` it begins at the page's left edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seeact_offline.agents import Agent, Unreadable, find_agent
from seeact_offline.agents import Answer as AgentAnswer
from seeact_offline.agents.screens import Rectangle, Shown
from seeact_offline.records import InputError, Prediction, Reply, Truth
from seeact_offline.scoring.importers.answer_table import IDS, table_rows
from seeact_offline.scoring.importers.importer import Answer, ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.scoring.importers.reading import number, reply_text

SIZES = ("width", "height")
PARTS = ("left", "top", "right", "bottom")
NOTES = {
    "bad_geometry": "sizes or parts of the page that are no numbers; taken as the agent's own rule makes them",
    "no_offset": "replies to a part of the page that do not say which; read as if the picture began at the page's top",
}


def read(sources: Mapping[str, Source], agent: str | None = None, strict: bool = False) -> ImportedAnswers:
    """`agent`: whose language the replies are in. `strict`: read them as its released code does."""
    source = sources["run"]
    found = table_rows(source, (*IDS, "reply"))
    if found.rows and not any(reply_text(row.values.get("reply", "-")).strip() for row in found.rows):
        raise InputError("run", sentence=f"{source.path} holds no replies")
    columns = {name for row in found.rows for name in row.values}
    if not columns.issuperset((*IDS, "reply")):
        raise WrongFormat(source, "a table with the columns annotation_id, action_uid and reply")
    if agent is None:
        raise InputError("agent", sentence="`format` replies needs `agent`, whose language they are in")
    language, code = find_agent(agent)
    first, problems = found.first_of_each()
    unknown = sorted(columns - {*IDS, "reply", *SIZES, *PARTS})
    return ImportedAnswers(
        {
            key: answer_to(reply_text(row.values.get("reply")), language, row.values, strict)
            for key, row in first.items()
        },
        [*problems, *(Problem("unknown_column", name, of_step=False) for name in unknown)],
        settings={"agent": code.get("name", agent), **({"agent_digest": code["digest"]} if code else {})},
    )


def answer_to(reply: str, agent: Agent, geometry: Mapping[str, Any], strict: bool) -> Answer:
    """The answer that a reply is. `geometry`: holds any of SIZES and PARTS."""

    def answer(truth: Truth) -> Prediction:
        shown, notes = shown_of(geometry, agent, truth.picture_size)
        try:
            action = agent.answer(agent.read(reply, shown, strict), shown, strict=strict)
        except Unreadable as error:
            action = AgentAnswer(failure=error.name, detail=str(error))
        group = Reply(
            0, (), (reply,), None, action.op, action.value, action.failure, action.detail, shown=agent.picture(shown)
        )
        return Prediction(
            truth.key,
            (group,),
            None,
            action.op,
            action.value,
            failure=action.failure,
            detail=action.detail,
            point=action.place if truth.picture_size else None,
            notes=notes,
        )

    return answer


def shown_of(
    values: Mapping[str, Any], agent: Agent, page: tuple[int, int] | None
) -> tuple[Shown, tuple[tuple[str, int], ...]]:
    """Returns the picture that the reply is about, and counts of what is odd about it."""
    page = page or (1000, 1000)
    sent, part = _numbers(values, SIZES), _numbers(values, PARTS)
    given = {name for name in (*SIZES, *PARTS) if values.get(name) not in (None, "")}
    # blocks and windows begin at the left
    corner = _numbers(values if "left" in given else {**values, "left": 0}, PARTS[:2])
    is_bad = (given & {*SIZES} and sent is None) or (given & {*PARTS} and part is None and corner is None)
    notes = ["bad_geometry"] if is_bad else []
    if part is None and corner is not None:
        width, height = sent or (page[0] - corner[0], page[1] - corner[1])
        part = (*corner, corner[0] + width, corner[1] + height)
    if part is None and agent.view.part != "page":
        notes.append("no_offset")
        part = (0, 0, *(sent or page))
    rectangle: Rectangle = (0, 0, *page) if part is None else (part[0], part[1], part[2], part[3])
    if rectangle[2] <= rectangle[0] or rectangle[3] <= rectangle[1]:
        rectangle, notes = (0, 0, *page), ["bad_geometry"]
    size = (rectangle[2] - rectangle[0], rectangle[3] - rectangle[1])
    try:
        shown = Shown(page, (sent[0], sent[1]) if sent else agent.view.resize.apply(size), rectangle)
    except ValueError:
        shown = Shown(page, size, rectangle)
    return shown, tuple((name, 1) for name in notes)


def _numbers(values: Mapping[str, Any], names: tuple[str, ...]) -> tuple[int, ...] | None:
    """The whole numbers of these columns; None where one is missing or is no number."""
    found = [number(values.get(name)) for name in names]
    known = [int(one) for one in found if one is not None and 0 <= one < 1_000_000]
    return tuple(known) if len(known) == len(names) and (names != SIZES or min(known) > 0) else None


IMPORTER = Importer(
    name="replies",
    what="raw replies of a GUI model",
    protocol="seeact",
    read=read,
    looks=lambda first: (
        (isinstance(first, dict) and first.keys() >= {*IDS, "reply"})
        or (isinstance(first, tuple) and {*IDS, "reply"} <= {*first})
    ),
    options=("agent", "strict"),
    notes=NOTES,
)
