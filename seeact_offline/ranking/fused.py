"""Rankers that know which step is asked for: a score file, and several rankers or score files fused by their ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ranker.fusion import CONSTANT, fuse
from seeact_offline.ranking.rankers import AnyRanker, StepScores, begin_ranking, best_first, ranker_digest
from seeact_offline.ranking.score_files import read_scores
from seeact_offline.ranking.texts import RankerInput
from seeact_offline.records import RowError


class FileRanker:
    """A score file as a ranker."""

    def __init__(self, path: str | Path) -> None:
        """Raises ScoreFileError."""
        self.name = str(path)
        self.scores = read_scores(path)

    @property
    def digest(self) -> str:
        return self.scores.digest

    def begin(self, given: RankerInput) -> Callable[[], StepScores]:
        """The file's ranks, or those of its scores. Raises RowError `no_scores` for a step or candidate that the file lacks."""
        known = self.scores.at(given.key)
        if known is None:
            raise RowError("no_scores", f"{self.name} has no scores for this step")
        ids = best_first(known, sorted(given.texts, key=lambda node: given.places[node]))
        return lambda: {node: (known[node][0], rank) for rank, node in enumerate(ids)}


class FusedRanker:
    """Reciprocal rank fusion of rankers and score files."""

    def __init__(self, name: str, parts: Sequence[AnyRanker]) -> None:
        self.name, self.parts = name, tuple(parts)

    @property
    def digest(self) -> str:
        return f"rrf {CONSTANT} of {' + '.join(map(ranker_digest, self.parts))}"

    @property
    def truncated(self) -> int:
        """Texts cut so far by the part that cut most."""
        return max(getattr(part, "truncated", 0) for part in self.parts)

    def begin(self, given: RankerInput) -> Callable[[], StepScores]:
        """Ties rank in document order. Raises RowError where a part cannot rank the step."""
        begun = [begin_ranking(part, given) for part in self.parts]

        def finish() -> StepScores:
            nodes = sorted(given.texts, key=lambda node: given.places[node])
            found = [each() for each in begun]
            scores = fuse([[ranks[node][1] or 0 for node in nodes] for ranks in found]).tolist()
            scored = {node: (score, None) for node, score in zip(nodes, scores, strict=True)}
            return {node: (scored[node][0], rank) for rank, node in enumerate(best_first(scored, nodes))}

        return finish
