"""A model's text -> fields, or a named failure.

`final_answer`, `turn1` and `points` each read one kind of reply. The final answer takes five more modules: `fields`
(with `labels`), `blocks`, `element` and `operation`. Words that several of them look for are in `words`.
"""

from seeact_offline.records import GroundingReply
from seeact_offline.replies.final_answer import parse_grounding_reply

__all__ = ["GroundingReply", "parse_grounding_reply"]
