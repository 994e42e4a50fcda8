"""The JSON of another right answer to a step: in the column `also_right` of a data set, in a file of the user's, and in a run's targets."""

from __future__ import annotations

from seeact_offline.files.formats import FormatError
from seeact_offline.records import OPERATIONS, OtherAnswer


def check_other_answer(answer: OtherAnswer) -> OtherAnswer:
    """Raises FormatError for one that says nothing, or names no operation of ours."""
    if answer.op is not None and answer.op not in OPERATIONS:
        raise FormatError(f"op to be one of {', '.join(OPERATIONS)}", repr(answer.op)[:40])
    if not answer.element_ids and answer.op is None:
        raise FormatError("element_ids, op or both", "neither")
    if answer.value and answer.op is None:
        raise FormatError("the op of a value", "none")
    return answer
