"""What a query and a candidate's text show without being understood: tags, places, shared words, what was done before.

Numbers that a tree can split. They serve to teach a ranker (`ranking.teacher`), never to rank by: a ranker reads texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ranker.endings import without_ending
from seeact_offline.ranking.placed_texts import N_CONTROLS, split_text
from seeact_offline.ranking.places import CLICKABLE
from seeact_offline.ranking.senses import SENSES

WORD = re.compile(r"[a-z]+|\d+")
OPENING = re.compile(r"\((\w+)")
RUNNING_NUMBER = re.compile(r"\bid=\d+ ?")
BAND = re.compile(r"\[[xywh](\d+)\]")
NO_PLACE = -1
ACTION = re.compile(r"\[(\w+)\]\s+(.*?) -> (CLICK|TYPE|SELECT|HOVER|ENTER)(?:: (.*))?$")
STEM = 5
"""Letters of a word that count, its ending left out: `reserve` and `reservation` are one word."""
_COMMON = "the a an of to in on for and or my me i with at by from is it this that be as"
COMMON = frozenset(f"{_COMMON} {without_ending(_COMMON)}".split())
"""Words that say nothing of a page, and what is left of them without endings."""
TAGS = (
    "a button input select option label li td span div p svg img h1 h2 h3 h4 ul ol nav form table tr th i b article "
    "section textarea header footer main canvas summary details strong em small dt dd dl fieldset legend aside figure "
    "tbody thead iframe"
).split()
KINDS = tuple(
    frozenset(tags.split())
    for tags in (
        "input select textarea",
        "a button label option summary",
        "svg img canvas",
        "h1 h2 h3 h4 p span b i strong em small",
        "li td th dt dd figure",
    )
)
"""Tags that serve alike, so that one never seen is not like none."""
SIGN = re.compile(r"[^\w\s()\[\]{}.,:;!?'\"/<>=@©·–—|#&%$£€*-]")
"""Of no word and no markup: an arrow, a box to tick, a plus."""
ROLES = (
    "button submit checkbox radio combobox text search option link tab menuitem date number email tel password dialog "
    "listbox textbox switch slider grid gridcell row image"
).split()
ACTED_ON = ("link button textbox combobox checkbox radio option div span svg input searchbox listitem tab").split()
OPERATIONS = ("CLICK", "TYPE", "SELECT")
ENCLOSING = "form nav header footer article table tr ul li select label dialog main a button".split()
ENCLOSING_ROLES = "dialog radiogroup listbox grid menu search".split()
HISTORY = 3
NOWHERE, FAR = 99, 30
"""Places in the task of what has no word of it."""

WordWeight = Callable[[str], float]


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def stems(text: str) -> list[str]:
    """Words in one sense, without their endings, cut to their first letters; numbers whole, without leading zeros."""
    found = WORD.findall(SENSES.replace(without_ending(text.lower())))
    return [word.lstrip("0") or "0" if word.isdigit() else word[:STEM] for word in found]


def word_weights(pages: Iterable[Iterable[str]]) -> WordWeight:
    """A weight from 0 to 1 for each stem, 1 where no text has it: log((n + 1) / (texts with it + 1)) / log(n + 1)."""
    counts: Counter[str] = Counter()
    n = 0
    for texts in pages:
        for text in set(texts):
            counts.update(set(stems(split_text(text).published)))
            n += 1
    return lambda stem: math.log((n + 1) / (counts[stem] + 1)) / math.log(n + 1)


@dataclass(frozen=True, slots=True)
class PastAction:
    """One of the query's previous actions."""

    element: str
    # its role, e.g. `textbox`
    name: frozenset[str]
    # stems of what the element is called
    operation: str
    value: frozenset[str]
    # stems of what was typed or selected


_SENSES = {sense[:STEM]: place for place, sense in enumerate(SENSES.words)}


class Asked:
    """A query, taken apart."""

    def __init__(self, query: str) -> None:
        task, _, past = query.partition("\nPrevious actions: ")
        self.words = words(task.removeprefix("task is: "))
        self._stems = stems(task.removeprefix("task is: "))
        matches = (ACTION.match(part.strip()) for part in past.split("; "))
        self.actions = tuple(
            PastAction(m[1], frozenset(stems(m[2])), m[3], frozenset(stems(m[4] or ""))) for m in matches if m
        )

    @cached_property
    def stems(self) -> frozenset[str]:
        """Of the task, the commonest words left out."""
        return frozenset(self._stems) - COMMON

    @cached_property
    def open(self) -> frozenset[str]:
        """Stems of the task that no previous action has to do with."""
        return self.stems - {stem for action in self.actions for stem in action.name | action.value}

    @cached_property
    def past(self) -> tuple[frozenset[str], ...]:
        """What the last `HISTORY` actions' elements are called, the latest first; empty where there were fewer."""
        names = [action.name for action in reversed(self.actions)][:HISTORY]
        return (*names, *[frozenset[str]()] * (HISTORY - len(names)))

    @cached_property
    def last_value(self) -> frozenset[str]:
        """Stems of what the last action typed or selected."""
        return self.actions[-1].value if self.actions else frozenset()

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where in the task each stem stands first."""
        found: dict[str, int] = {}
        for place, stem in enumerate(self._stems):
            found.setdefault(stem, place)
        return found

    @cached_property
    def reached(self) -> int:
        """How far into the task the actions have come: the last word that the latest action to share any shares with it."""
        for action in reversed(self.actions):
            done = [self.places[stem] for stem in (action.name | action.value) & self.stems]
            if done:
                return max(done)
        return 0

    @cached_property
    def neighbours(self) -> frozenset[tuple[str, str]]:
        return frozenset(pairwise(self._stems))

    @cached_property
    def typed(self) -> frozenset[str]:
        return frozenset(stem for action in self.actions for stem in action.value)


class Found:
    """A candidate's text, taken apart."""

    def __init__(self, text: str) -> None:
        place, ancestors, after, target = split_text(text)
        bands = BAND.findall(place)
        self.bands = list(map(int, bands)) if bands else [NO_PLACE] * 4
        # across, down, width and height
        self.clickable = CLICKABLE in place if place else NO_PLACE
        self.tags = OPENING.findall(target)
        self.tag = self.tags[0] if self.tags else ""
        said = RUNNING_NUMBER.sub("", OPENING.sub(" ", target))
        self.words, self._stems = words(said), stems(said)
        self.signs = len(SIGN.findall(target))
        nodes = [node.strip().split(" ") for node in ancestors.removeprefix("ancestors: ").split("/")]
        self.around = [node[0] for node in nodes]
        # tags, outermost first, what stands beside them included
        self.said_around = [words(" ".join(node[1:])) for node in nodes]
        self._stems_around = [stems(" ".join(node[1:])) for node in nodes]
        controls = [control.partition(" ") for control in reversed(after.split("/")[1:])][:N_CONTROLS]
        self.controls = [(tag, frozenset(stems(said)) - COMMON) for tag, _, said in controls]
        # before it, the nearest first: tag and stems
        self.controls += [("", frozenset())] * (N_CONTROLS - len(controls))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(self._stems) - COMMON

    @cached_property
    def neighbours(self) -> frozenset[tuple[str, str]]:
        return frozenset(pairwise(self._stems))

    @cached_property
    def stems_around(self) -> frozenset[str]:
        return frozenset(stem for said in self._stems_around for stem in said) - COMMON

    @cached_property
    def sense(self) -> int:
        """The first of `SENSES` that its words have."""
        return next((_SENSES[stem] for stem in self._stems if stem in _SENSES), -1)

    @cached_property
    def senses(self) -> int:
        return len(self.stems & _SENSES.keys())

    @cached_property
    def stems_near(self) -> frozenset[str]:
        """Of the last two nodes before it."""
        return frozenset(stem for said in self._stems_around[-2:] for stem in said) - COMMON


def pair_features(query: str, texts: Sequence[str], weight: WordWeight) -> np.ndarray:
    """Shape `(len(texts), len(NAMES))`, float32."""
    asked = Asked(query)
    known = {text: list(_features(asked, Found(text), weight).values()) for text in set(texts)}
    return np.array([known[text] for text in texts], dtype=np.float32).reshape(len(texts), len(NAMES))


def _features(asked: Asked, found: Found, weight: WordWeight) -> Mapping[str, float]:
    own = _kind(found) | _place(found) | _shared(asked, found, weight) | _past(asked, found)
    return own | _before(asked, found, weight) | _asked(asked, weight)


def _kind(found: Found) -> dict[str, float]:
    inner = found.tags[1:]
    return {
        "clickable": found.clickable,
        "tag": _index(TAGS, found.tag),
        "role": _index(ROLES, found.words[0] if found.words else ""),
        "kind": _kind_of(found.tag),
        "signs": found.signs,
        "early_role": _index(ROLES, next((word for word in found.words[:3] if word in ROLES), "")),
        "sense": found.sense,
        "senses": found.senses,
        "tags": len(found.tags),
        "words": len(found.words),
        "wordless": not found.words,
        "icon_inside": "svg" in inner,
        "controls_inside": sum(tag in ("a", "button", "input", "select") for tag in inner),
        "is_number": bool(found.stems) and all(stem.isdigit() for stem in found.stems),
        "has_number": any(stem.isdigit() for stem in found.stems),
    }


def _place(found: Found) -> dict[str, float]:
    named = [tag for tag in found.around if tag]
    said = {word for said in found.said_around for word in said}
    return {
        **dict(zip(("across", "down", "wide", "high"), found.bands, strict=True)),
        "nodes_around": len(found.around),
        "before": _index(TAGS, found.around[-1]),
        "kind_before": _kind_of(found.around[-1]),
        "second_before": _index(TAGS, named[-2] if len(named) > 1 else ""),
        "numbers_around": sum(bool(each) and all(word.isdigit() for word in each) for each in found.said_around),
        "same_before": sum(other == found.tag for other in named[-5:]),
        **{f"{tag}_around": named.count(tag) for tag in ENCLOSING},
        **{f"role_{role}_around": role in said for role in ENCLOSING_ROLES},
    }


def _shared(asked: Asked, found: Found, weight: WordWeight) -> dict[str, float]:
    shared, still_open = found.stems & asked.stems, found.stems & asked.open
    around, near = found.stems_around & asked.stems, found.stems_near & asked.stems

    return {
        "shared": len(shared),
        "shared_weight": _total(shared, weight),
        "shared_best": max((weight(stem) for stem in shared), default=0),
        "shared_of_text": len(shared) / max(1, len(found.stems)),
        "shared_of_task": _total(shared, weight) / max(1e-6, _total(asked.stems, weight)),
        "open_shared": len(still_open),
        "open_weight": _total(still_open, weight),
        "open_best": max((weight(stem) for stem in still_open), default=0),
        "open_of_text": len(still_open) / max(1, len(found.stems)),
        "open_number": any(stem.isdigit() for stem in still_open),
        "open_first": min((asked.places[stem] for stem in still_open), default=NOWHERE) / max(1, len(asked.words)),
        "open_from_reached": min((abs(asked.places[stem] - asked.reached) for stem in still_open), default=FAR),
        "shared_neighbours": len(found.neighbours & asked.neighbours),
        "shared_number": any(stem.isdigit() for stem in shared),
        "around": len(around),
        "around_weight": _total(around, weight),
        "near": len(near),
        "near_weight": _total(near, weight),
        "open_around_weight": _total(found.stems_around & asked.open, weight),
        "open_near_weight": _total(found.stems_near & asked.open, weight),
    }


def _past(asked: Asked, found: Found) -> dict[str, float]:
    features: dict[str, float] = {}
    for back, name in enumerate(asked.past, 1):
        features[f"past_{back}_in_text"] = _share(name & found.stems, name)
        features[f"past_{back}_of_text"] = _share(name & found.stems, found.stems)
        features[f"past_{back}_around"] = _share(name & found.stems_around, name)
    last = asked.last_value
    return features | {
        "typed_in_text": _share(asked.typed & found.stems, asked.typed),
        "typed_of_text": _share(asked.typed & found.stems, found.stems),
        "typed_around": _share(asked.typed & found.stems_around, asked.typed),
        "last_typed_in_text": len(last & found.stems),
        "last_typed_around": len(last & found.stems_around),
    }


def _before(asked: Asked, found: Found, weight: WordWeight) -> dict[str, float]:
    """How the controls before it have to do with the task, and whether they were acted on."""
    last = asked.last_value
    features: dict[str, float] = {}
    for near, (tag, said) in enumerate(found.controls, 1):
        features |= {
            f"past_{back}_in_control_{near}": _share(name & said, name) for back, name in enumerate(asked.past, 1)
        }
        features |= {
            f"control_{near}": _index(TAGS, tag),
            f"last_typed_in_control_{near}": _share(last & said, last),
            f"control_{near}_weight": _total(said & asked.stems, weight),
            f"control_{near}_open_weight": _total(said & asked.open, weight),
        }
    said = frozenset(stem for _, each in found.controls for stem in each)
    return features | {
        "past_in_controls": max(_share(name & said, name) for name in asked.past),
        "controls_weight": _total(said & asked.stems, weight),
        "controls_open_weight": _total(said & asked.open, weight),
        "numbers_in_controls": sum(stem.isdigit() for stem in said),
    }


def _asked(asked: Asked, weight: WordWeight) -> dict[str, float]:
    last = asked.actions[-1] if asked.actions else None
    left, whole = _total(asked.open, weight), _total(asked.stems, weight)
    return {
        "actions": len(asked.actions),
        "last_operation": _index(OPERATIONS, last.operation if last else ""),
        "last_sense": min((_SENSES[stem] for stem in last.name & _SENSES.keys()), default=-1) if last else -1,
        "last_element": _index(ACTED_ON, last.element if last else ""),
        "task_words": len(asked.words),
        "task_open": left / max(1e-6, whole),
        "numbers_open": sum(stem.isdigit() for stem in asked.open),
        "task_numbers": sum(word.isdigit() for word in asked.words),
    }


def _total(some: Iterable[str], weight: WordWeight) -> float:
    return sum(weight(stem) for stem in sorted(some))


def _share(part: frozenset[str], whole: frozenset[str]) -> float:
    return len(part) / max(1, len(whole))


def _kind_of(tag: str) -> int:
    return next((place for place, tags in enumerate(KINDS) if tag in tags), len(KINDS))


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


NAMES = tuple(_features(Asked(""), Found(""), lambda stem: 0.0))
NAMING = tuple(
    NAMES.index(name)
    for name in (
        "tag",
        "role",
        "kind",
        "early_role",
        "sense",
        "before",
        "kind_before",
        "second_before",
        *(f"control_{near}" for near in range(1, N_CONTROLS + 1)),
        "last_operation",
        "last_element",
    )
)
"""Those that are the place of a name in a list, -1 for none of them."""
