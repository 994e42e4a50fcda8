"""From candidates to a ranked top-k: the texts that a ranker reads, and the score files that it writes."""

from seeact_offline.ranking.files import (
    SCHEMA,
    FileScores,
    Origin,
    ScoreRow,
    check_dataset,
    check_match,
    read_scores,
    write_official,
    write_scores,
)
from seeact_offline.ranking.rankers import BACKENDS, DTYPES, bundled_folder, default_ranker, open_ranker
from seeact_offline.ranking.score_pickles import load_plain_pickle
from seeact_offline.ranking.scores import (
    TEXT_VERSION,
    LiveScores,
    Ranker,
    Scores,
    StepScores,
    candidate_texts,
    check_candidates,
    ranker_digest,
    ranker_query,
    tie_across_cut,
    top_k,
)

__all__ = [
    "BACKENDS",
    "DTYPES",
    "SCHEMA",
    "TEXT_VERSION",
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
    "check_match",
    "default_ranker",
    "load_plain_pickle",
    "open_ranker",
    "ranker_digest",
    "ranker_query",
    "read_scores",
    "tie_across_cut",
    "top_k",
    "write_official",
    "write_scores",
]
