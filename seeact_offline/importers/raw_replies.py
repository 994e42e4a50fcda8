"""Raw replies of a GUI model, JSON lines or a table, read in its agent's language.

Columns: `annotation_id`, `action_uid`, `reply` (a text, or a server's whole answer), and, where they are not as the
agent's own rule makes them, `width` and `height`, the size of the picture as sent, and `left`, `top`, `right` and
`bottom`, the part of the page that it showed; without `left` it begins at the page's left edge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seeact_offline.agents import Agent, find_agent
from seeact_offline.agents.reply_pictures import PARTS, SIZES, shown_of
from seeact_offline.importers.answer_table import IDS, table_rows
from seeact_offline.importers.importer import Answer, ImportedAnswers, Importer, Problem, Source, WrongFormat
from seeact_offline.importers.reading import reply_text
from seeact_offline.records import InputError, Prediction, Reply, Truth

NOTES = {
    "bad_geometry": "sizes or parts of the page that are no numbers; taken as the agent's own rule makes them",
    "no_offset": "replies to a part of the page that do not say which; read as if the picture began at the page's top",
}


def read(sources: Mapping[str, Source], agent: str | None = None, strict: bool = False) -> ImportedAnswers:
    """Reads raw replies. `agent`: the agent whose language they are in. `strict`: read them as its released code
    does."""
    source = sources["run"]
    table = table_rows(source, (*IDS, "reply"))
    if table.rows and not any(reply_text(row.values.get("reply", "-")).strip() for row in table.rows):
        raise InputError("run", sentence=f"{source.path} holds no replies")
    columns = {name for row in table.rows for name in row.values}
    if not columns.issuperset((*IDS, "reply")):
        raise WrongFormat(source, "a table with the columns annotation_id, action_uid and reply")
    if agent is None:
        raise InputError("agent", sentence="`format` replies needs `agent`, whose language they are in")
    language, code = find_agent(agent)
    first, problems = table.first_of_each()
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
        action = agent.read_answer(reply, shown, strict=strict)[1]
        group = Reply(
            0, (), (reply,), None, action.op, action.value, action.failure, action.detail, shown=agent.picture(shown)
        )
        return Prediction(
            *truth.key,
            None,
            action.op,
            action.value,
            groups=(group,),
            failure=action.failure,
            detail=action.detail,
            point=action.place if truth.picture_size else None,
            notes=notes,
        )

    return answer


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
