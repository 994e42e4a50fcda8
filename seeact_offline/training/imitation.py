"""The dialogues of a run: what the agent was shown at each step, and what it answered, as items to learn from."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from seeact_offline.dataset import Split
from seeact_offline.dataset.split import with_earlier
from seeact_offline.files.whole import replace_text
from seeact_offline.grounding.conversation import messages
from seeact_offline.records import Prediction, Step, StepError, StepKey
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.prepare import prepare
from seeact_offline.runs.strategy_opening import open_strategy
from seeact_offline.training.attempts import AskedRun
from seeact_offline.trajectories.dialogue_files import (
    NONE,
    Dialogue,
    DialogueCounts,
    DialogueLine,
    count_dialogues,
    read_dialogues,
    write_dialogues,
    write_lines,
)
from seeact_offline.web_agents.systems import THOUGHT
from seeact_offline.web_agents.web_loop import CORRECTED, WebAgentGrounding


@dataclass(frozen=True, slots=True)
class Thoughts:
    """Thoughts that gold actions are told with."""

    of: str = NONE
    """The model that has written them."""
    texts: Mapping[StepKey, str] | None = None


@dataclass(frozen=True, slots=True)
class DialogueFile:
    """A file of dialogues."""

    path: Path
    counts: DialogueCounts
    left_out: Mapping[str, int]
    """Steps that are not learnt from, by reason."""


def write_run_dialogues(
    path: Path,
    split: Split,
    runs: Mapping[StepKey, AskedRun],
    config: EvalConfig,
    number: int,
    source: str,
    thoughts: Thoughts | None = None,
) -> DialogueFile:
    """Writes the dialogues of steps, each as the run that is named for it has asked it, unless they are there.

    `config`: how these runs ask. `number`: the cycle.
    """
    ready = path.with_suffix(".json")
    if ready.exists():
        return DialogueFile(path, count_dialogues(path), json.loads(ready.read_text("utf-8"))["left_out"])
    left_out: Counter[str] = Counter()

    def dialogues() -> Iterator[Dialogue]:
        grounding = open_strategy(config).grounding
        assert isinstance(grounding, WebAgentGrounding)
        tasks = {key.annotation_id for key in runs}
        for step in with_earlier(split.only(tasks).steps(), grounding.earlier) if tasks else ():
            if step.key in runs:
                try:
                    found = _dialogues_of_step(
                        grounding, step, runs[step.key].predictions[step.key], source, thoughts or Thoughts()
                    )
                except StepError as error:
                    left_out[error.name] += 1
                else:
                    yield from found

    left_out += write_dialogues(path, dialogues(), number)
    replace_text(ready, json.dumps({"left_out": left_out}) + "\n")
    return DialogueFile(path, count_dialogues(path), left_out)


def _dialogues_of_step(
    grounding: WebAgentGrounding, step: Step, prediction: Prediction, source: str, thoughts: Thoughts
) -> list[Dialogue]:
    """Makes a dialogue of each action of a step, without those that the agent was corrected for. Raises StepError."""
    prepared = prepare(step, None, 0, grounding.form.image)
    asked = grounding.past_questions(prepared, [group.replies for group in prediction.groups])
    found = []
    for past, group in zip(asked, prediction.groups, strict=False):
        if past.question.offered != group.offered:
            raise StepError("asked_otherwise")
        if group.replies and group.failure not in CORRECTED:
            found.append(Dialogue(step.key, messages(past.question), group.replies[-1], source))
    thought = (thoughts.texts or {}).get(step.key)
    if found and thought is not None:
        # the actions before the last one only scroll
        found[-1] = replace(found[-1], reply=found[-1].reply.replace(THOUGHT, thought, 1), thoughts=thoughts.of)
    return found


def write_control(path: Path, gold: Path, n_items: int, seed: str) -> DialogueCounts:
    """Writes as many gold dialogues as are asked for: all of them as often as they fit, and others drawn by the seed."""
    lines = list(read_dialogues(gold))
    times, rest = divmod(n_items, len(lines))
    drawn = frozenset(random.Random(seed).sample(range(len(lines)), rest))

    def chosen() -> Iterator[tuple[Path, DialogueLine]]:
        for place, line in enumerate(lines):
            for _ in range(times + (place in drawn)):
                yield gold, line

    write_lines(path, chosen())
    return count_dialogues(path)
