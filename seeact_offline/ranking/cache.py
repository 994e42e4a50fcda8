"""Scores that a ranker has made, kept between runs: one SQLite file for a data set, ranker and version of the texts.

A cache and no result: it may be deleted at any time, a damaged one is begun anew, and a run that cannot have one goes on
without. Each step is kept the moment it is scored, beside a digest of all that was read of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seeact_offline.pages.dom import Page
from seeact_offline.ranking.scores import TEXT_VERSION, LiveScores, StepScores, ranker_digest, ranker_query
from seeact_offline.records import Step

_LOCK_WAIT_S = 30.0
"""Another run may be writing to the same file."""


class _Entry(NamedTuple):
    content: str
    scores: bytes
    """Float64, in the order of the ranks."""
    order: bytes
    """Int32: which candidate of the row has the rank."""


def cache_folder() -> Path:
    """`$SEEACT_CACHE`, or `seeact-offline` in the user's cache folder."""
    named = os.environ.get("SEEACT_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "seeact-offline"


class CachedScores:
    """A ranker's scores of the steps of one split, asked of it only when they are not kept yet."""

    def __init__(self, live: LiveScores, fingerprint: str, split: str) -> None:
        ranker = hashlib.sha256(ranker_digest(live.ranker).encode()).hexdigest()[:16]
        self.path = cache_folder() / "scores" / f"{split}-{fingerprint}-{ranker}-t{TEXT_VERSION}.sqlite"
        self.problem = ""
        # why nothing is kept
        self.hits = 0
        self._live = live
        self._entries = self._load()

    @property
    def digest(self) -> str:
        return self._live.digest

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        content = _content(step)
        entry = self._entries.get(str(step.key))
        if entry is not None and entry.content == content:
            self.hits += 1
            return _decoded(entry, step)
        scores = self._live.of(step, page)
        if scores is not None and not self.problem:
            self._keep(step, _encoded(scores, step, content))
        return scores

    def _load(self) -> dict[str, _Entry]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return self._read()
            except sqlite3.OperationalError:
                # locked, or it cannot be written
                raise
            except sqlite3.DatabaseError:
                self.path.unlink()
                return self._read()
        except (OSError, sqlite3.Error) as error:
            self.problem = f"scores are not kept: {self.path} cannot be used: {error}"
            return {}

    def _read(self) -> dict[str, _Entry]:
        with self._database() as db:
            return {key: _Entry(*rest) for key, *rest in db.execute("SELECT step, content, scores, ranked FROM scores")}

    def _keep(self, step: Step, entry: _Entry) -> None:
        self._entries[str(step.key)] = entry
        try:
            with self._database() as db:
                db.execute("INSERT OR REPLACE INTO scores VALUES (?, ?, ?, ?)", (str(step.key), *entry))
        except (OSError, sqlite3.Error) as error:
            self.problem = f"scores are no longer kept: {self.path} cannot be used: {error}"

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_LOCK_WAIT_S, isolation_level=None)) as db:
            # what the machine loses when it stops is scored again
            db.execute("PRAGMA synchronous = OFF")
            db.execute(
                "CREATE TABLE IF NOT EXISTS scores (step TEXT PRIMARY KEY, content TEXT NOT NULL, scores BLOB NOT NULL, ranked BLOB NOT NULL)"
            )
            yield db


def _content(step: Step) -> str:
    """A data set may be edited in a way that its fingerprint does not see."""
    read = [ranker_query(step), step.cleaned_html, [c.backend_node_id for c in step.candidates]]
    return hashlib.sha256(json.dumps(read).encode("ascii")).hexdigest()


def _encoded(scores: StepScores, step: Step, content: str) -> _Entry:
    places = {c.backend_node_id: i for i, c in enumerate(step.candidates)}
    order = np.array([places[node] for node in scores], dtype="<i4")
    return _Entry(content, np.array([score for score, _ in scores.values()], dtype="<f8").tobytes(), order.tobytes())


def _decoded(entry: _Entry, step: Step) -> StepScores:
    scores = np.frombuffer(entry.scores, dtype="<f8").tolist()
    order = np.frombuffer(entry.order, dtype="<i4").tolist()
    return {
        step.candidates[place].backend_node_id: (score, rank)
        for rank, (place, score) in enumerate(zip(order, scores, strict=True))
    }
