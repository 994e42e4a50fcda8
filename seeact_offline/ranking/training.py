"""Steps -> what a ranker learns from. With `opening`, the only way from the toolkit into `ranker`."""

from __future__ import annotations

from ranker.errors import RankerError
from ranker.pairs import PairGroup
from ranker.training import SMALL, SmallModel, TrainingResult, TrainingSettings, train
from seeact_offline.ranking.scores import candidate_texts, ranker_query
from seeact_offline.records import Step

__all__ = [
    "MARKUP_WORDS",
    "SMALL",
    "PairGroup",
    "RankerError",
    "SmallModel",
    "TrainingResult",
    "TrainingSettings",
    "to_group",
    "train",
]

MARKUP_WORDS = (
    # elements
    *"a abbr address article aside audio b blockquote body br button canvas caption center cite code col dd details".split(),
    *"dialog div dl dt em fieldset figcaption figure font footer form frame h header hr html i iframe img input".split(),
    *"label legend li link main map menu meta nav ol optgroup option p picture pre section select small span".split(),
    *"strong sub summary sup svg table tbody td textarea tfoot th thead time tr u ul video".split(),
    # roles
    *"alert application banner cell checkbox columnheader combobox complementary document grid gridcell group".split(),
    *"heading image list listbox listitem menubar menuitem navigation none presentation progressbar radio".split(),
    *"radiogroup region row rowgroup search searchbox separator slider spinbutton status switch tab tablist".split(),
    *"tabpanel textbox toolbar tooltip tree treeitem".split(),
    # types and states of inputs
    *"checked color date datetime email false file hidden month number password range reset submit tel text".split(),
    *"true url week".split(),
    # operations, and the frames of query and text
    *"click enter hover type actions ancestors is previous target task".split(),
)
"""What a small ranker may learn by heart of its training pages: the words that any page has."""


def to_group(step: Step) -> PairGroup:
    """The texts of the step's candidates, by whether they are right."""
    texts = candidate_texts(step)
    right = [texts[c.backend_node_id] for c in step.candidates if c.is_positive]
    wrong = [texts[c.backend_node_id] for c in step.candidates if not c.is_positive]
    return PairGroup(ranker_query(step), tuple(right), tuple(wrong))
