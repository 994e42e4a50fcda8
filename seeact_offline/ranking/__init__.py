"""Ranks candidates, up to a top k: the texts that a ranker reads, rankers by name, score files, recall, and the stage
that makes a score file."""

from seeact_offline.ranking.rankers import (
    BACKENDS,
    DTYPES,
    LEXICAL,
    LiveScores,
    Ranker,
    StepRanker,
    bundled_folder,
    open_ranker,
    parts_of,
    top_k,
)
from seeact_offline.ranking.score_files import (
    FileScores,
    Origin,
    ScoreRow,
    Scores,
    StepScores,
    check_dataset,
    read_scores,
    schema,
    write_official,
    write_scores,
)
from seeact_offline.ranking.texts import TEXT_VERSION, candidate_texts, check_candidates, ranker_query

__all__ = [
    "BACKENDS",
    "DTYPES",
    "LEXICAL",
    "TEXT_VERSION",
    "FileScores",
    "LiveScores",
    "Origin",
    "Ranker",
    "ScoreRow",
    "Scores",
    "StepRanker",
    "StepScores",
    "bundled_folder",
    "candidate_texts",
    "check_candidates",
    "check_dataset",
    "open_ranker",
    "parts_of",
    "ranker_query",
    "read_scores",
    "schema",
    "top_k",
    "write_official",
    "write_scores",
]
