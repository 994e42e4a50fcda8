"""What a small ranker is taught beside the steps' own answers: a teacher's scores.

Lessons are of two kinds: each step's page as it is, and other pages put to the step's query, with some of its words in
place of theirs and their parts mixed, so that words meet in more ways than a few hundred steps can show.
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ranker.pairs import Lesson, PairGroup
from ranker.processes import share_out
from seeact_offline.ranking.click_rates import ClickRates
from seeact_offline.ranking.pair_features import (
    COMMON,
    NAMING,
    TAGS,
    WordWeight,
    pair_features,
    word_weights,
)
from seeact_offline.ranking.placed_texts import Parts, split_text
from seeact_offline.ranking.teacher import Judged, Teacher

MIXED_PAGES = 4
"""Pages that each query is put to."""
MIXED_TEXTS = 100
UNPLACED = 0.15
"""Share of the mixed pages that do not say where anything lies, as pages of other sources may not."""
UNPLACED_EVERY = 4
"""One in so many of the steps' own pages is shown to the teachers without places too."""
PLANTED = 8
"""Words at most that such a page gets from the query."""
MIXED = 0.6
"""Share of its texts that are put together from parts of others."""
OTHER_MARKUP = 0.7
"""Share of the pages whose tags change names, as another site would have built them."""
RENAMED = 6
"""Tags at most that change names on such a page."""
REBUILT = "a button label li td th span div i b h3 h4 p option summary".split()
"""Tags that sites build from one another what can be clicked, and what cannot."""
BUILT_OF = "div div span span a button li td label".split()
LONG_WORD = re.compile(r"[A-Za-z]{4,}")
TAG = re.compile(r"([(/])(\w+)")
FIRST_TAG = re.compile(r"^\(\w+")
FRAME = frozenset(
    "ancestors after target html body task previous actions click type select option button link textbox combobox".split()
)
"""Words of the texts' form: they stay where they are."""


@dataclass(frozen=True, slots=True)
class TaughtStep:
    """A step as lessons are made of it."""

    task: str
    group: PairGroup

    @property
    def texts(self) -> tuple[str, ...]:
        return _each(self.group)

    @property
    def right(self) -> frozenset[str]:
        return frozenset(self.group.positives)


def with_lessons(steps: Sequence[TaughtStep], seed: int) -> list[PairGroup]:
    """The groups of steps that have an answer, then those of mixed pages, each with its lesson."""
    judged = [step for step in steps if step.right and len(step.right) < len(step.texts)]
    if not judged:
        return []
    teachers = _Teachers(judged, word_weights(step.texts for step in steps), seed)
    pages = [(step.task, step.group) for step in judged] + _mixed_pages(judged, steps, seed)
    found = share_out(lambda page: teachers.scores(*page), pages)
    return [_with_lesson(group, scores) for (_, group), scores in zip(pages, found, strict=True)]


def _with_lesson(group: PairGroup, scores: np.ndarray) -> PairGroup:
    """`scores`: shape (2, texts), as `_Teachers` have them."""
    places = {text: place for place, text in enumerate(_each(group))}
    return dataclasses.replace(group, lesson=Lesson(places, *scores))


def _each(group: PairGroup) -> tuple[str, ...]:
    """Its texts, each once, the right ones first."""
    return tuple(dict.fromkeys(group.texts))


class _Teachers:
    """Two: one knows how often a text was right in other tasks, which holds where words are as they were written; one does not.

    Where words stand as they were written, what both think counts alike: that is better than either on sites never seen, and
    nearly as good as the knowing one on sites that were. The ignorant one sees each page a second time, built of other tags.
    """

    def __init__(self, judged: Sequence[TaughtStep], weight: WordWeight, seed: int) -> None:
        """`judged`: steps that have right texts and wrong ones."""
        self._weight, self._rates = weight, ClickRates(judged)
        shown: list[tuple[TaughtStep, Sequence[str]]] = [(step, step.texts) for step in judged]
        shown += [(step, _without_places(step.texts)) for step in judged[::UNPLACED_EVERY]]
        rebuilt: list[tuple[TaughtStep, Sequence[str]]] = [
            (step, _rebuild(step.texts, random.Random(f"{seed}/rebuilt/{place}"))) for place, step in enumerate(judged)
        ]
        features = share_out(lambda page: pair_features(page[0].group.query, page[1], weight), shown + rebuilt)
        right = [np.array([text in step.right for text in step.texts]) for step, _ in shown + rebuilt]
        more = [
            np.hstack([own, self._rates.features(texts, step.task)])
            for (step, texts), own in zip(shown, features[: len(shown)], strict=True)
        ]
        self._ignorant = Teacher([Judged(*each) for each in zip(features, right, strict=True)], NAMING)
        self._knowing = Teacher([Judged(*each) for each in zip(more, right[: len(shown)], strict=True)], NAMING)

    def scores(self, task: str, group: PairGroup) -> np.ndarray:
        """Shape (2, texts), each text once: where words are disguised, and where they are as written.

        `task`: the query's, which the knowing one must not have seen.
        """
        texts = _each(group)
        own = pair_features(group.query, texts, self._weight)
        ignorant = self._ignorant.scores(own)
        knowing = self._knowing.scores(np.hstack([own, self._rates.features(texts, task)]))
        return np.stack([ignorant, (ignorant + knowing) / 2])


def _mixed_pages(asking: Sequence[TaughtStep], pages: Sequence[TaughtStep], seed: int) -> list[tuple[str, PairGroup]]:
    """The task whose query is asked, and the page that it is put to."""
    tags = [tag[0] for step in pages for text in step.texts[::7] if (tag := FIRST_TAG.match(_target(text)))]
    found = []
    for turn in range(MIXED_PAGES):
        for place, step in enumerate(asking):
            chance = random.Random(f"{seed}/mixed/{turn}/{place}")
            page, other = chance.choice(pages), chance.choice(pages)
            texts = sorted(chance.sample(page.texts, min(MIXED_TEXTS, len(page.texts))))
            texts = _plant(texts, step.group.query, chance)
            if chance.random() < OTHER_MARKUP:
                texts = _rename_tags(texts, chance)
            mixed = {
                _mix(text, texts if chance.random() < 0.5 else other.texts, tags, chance)
                if chance.random() < MIXED
                else text
                for text in texts
            }
            if chance.random() < UNPLACED:
                mixed = set(_without_places(mixed))
            found.append((step.task, PairGroup(step.group.query, (), tuple(sorted(mixed)))))
    return found


def _plant(texts: Sequence[str], query: str, chance: random.Random) -> list[str]:
    """Some words of the page, wherever they stand, give way to words of the query."""
    theirs = [word for word in LONG_WORD.findall(query) if _says_something(word)]
    some = chance.sample(texts, min(30, len(texts)))
    own = sorted(
        {word for text in some for word in LONG_WORD.findall(TAG.sub(" ", _target(text))) if _says_something(word)}
    )
    found = list(texts)
    for _ in range(chance.randint(1, PLANTED) if theirs and own else 0):
        there = re.compile(rf"(?<![(/\w]){chance.choice(own)}\b")
        word = chance.choice(theirs)
        found = [there.sub(word, text) for text in found]
    return found


def _rename_tags(texts: Sequence[str], chance: random.Random) -> list[str]:
    """Some tags of the page become other ones, the same wherever they stand."""
    own = sorted({tag for text in texts for _, tag in TAG.findall(text)} & set(TAGS))
    names = {tag: chance.choice(TAGS) for tag in chance.sample(own, min(len(own), chance.randint(1, RENAMED)))}
    return _renamed(texts, names)


def _rebuild(texts: Sequence[str], chance: random.Random) -> list[str]:
    """Half of the tags in `REBUILT` become another that serves as well, the same wherever they stand."""
    names = {tag: chance.choice(BUILT_OF) for tag in REBUILT if chance.random() < 0.5}
    return _renamed(texts, names)


def _without_places(texts: Iterable[str]) -> list[str]:
    return [str(split_text(text)._replace(place="")) for text in texts]


def _renamed(texts: Sequence[str], names: Mapping[str, str]) -> list[str]:
    return [TAG.sub(lambda found: found[1] + names.get(found[2], found[2]), text) for text in texts]


def _says_something(word: str) -> bool:
    return word.lower() not in FRAME and word.lower() not in COMMON


def _mix(text: str, others: Sequence[str], tags: Sequence[str], chance: random.Random) -> str:
    """Each part of the text, by chance: place, controls or surroundings of another one, the latter's beginning or end, fewer
    of them, another tag."""
    place, around, after, target = split_text(text)
    if chance.random() < 0.3:
        place = split_text(chance.choice(others)).place
    if chance.random() < 0.3:
        after = split_text(chance.choice(others)).after
    if chance.random() < 0.5:
        around = split_text(chance.choice(others)).ancestors
    if chance.random() < 0.3:
        nodes, more = around.split("/"), split_text(chance.choice(others)).ancestors.split("/")
        around = "/".join(nodes[: chance.randint(1, len(nodes))] + more[chance.randint(1, len(more)) :])
    if chance.random() < 0.3:
        nodes = around.split("/")
        cut = chance.randint(1, len(nodes))
        around = "/".join(nodes[:1] + nodes[cut:]) if chance.random() < 0.5 else "/".join(nodes[:cut])
    if chance.random() < 0.3:
        target = FIRST_TAG.sub(chance.choice(tags), target)
    return str(Parts(place, around, after, target))


def _target(text: str) -> str:
    return split_text(text).target
