"""Ranks candidates, up to a top k: the texts that a ranker reads, rankers by name, score files and recall."""

from seeact_offline.ranking.named_rankers import open_ranker
from seeact_offline.ranking.rankers import (
    BACKENDS,
    DTYPES,
    LEXICAL,
    AnyRanker,
    Ranker,
    StepScores,
    bundled_folder,
    parts_of,
    ranker_digest,
)
from seeact_offline.ranking.score_files import (
    FileScores,
    Origin,
    ScoreRow,
    check_dataset,
    read_scores,
    schema,
    write_official,
    write_scores,
)
from seeact_offline.ranking.texts import TEXT_VERSION, candidate_texts, check_candidates, ranker_query
from seeact_offline.ranking.top_k import LiveScores, Scores, top_k

__all__ = [
    "BACKENDS",
    "DTYPES",
    "LEXICAL",
    "TEXT_VERSION",
    "AnyRanker",
    "FileScores",
    "LiveScores",
    "Origin",
    "Ranker",
    "ScoreRow",
    "Scores",
    "StepScores",
    "bundled_folder",
    "candidate_texts",
    "check_candidates",
    "check_dataset",
    "open_ranker",
    "parts_of",
    "ranker_digest",
    "ranker_query",
    "read_scores",
    "schema",
    "top_k",
    "write_official",
    "write_scores",
]
