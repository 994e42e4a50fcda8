"""The ranker scores that a run is asked for: from a file, or made by a ranker and kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seeact_offline.dataset import canonical_split, fingerprint
from seeact_offline.grounding import Grounding
from seeact_offline.records import InputError, StepKey
from seeact_offline.runs.config import EvalConfig
from seeact_offline.runs.ranking import RankConfig, kept_scores, ranker_opener
from seeact_offline.runs.watch import Watch

if TYPE_CHECKING:
    from seeact_offline.ranking import Scores


def ranker_named(config: EvalConfig, grounding: Grounding) -> str | None:
    """What made the ranks, as results name it; None where nothing is ranked."""
    if not grounding.needs_ranking:
        return None
    return f"scores/{config.scores.name}" if config.scores is not None else ranker_name(config)


def ranker_name(config: EvalConfig) -> str:
    from seeact_offline.ranking import default_ranker

    return config.ranker or default_ranker()


def open_scores(
    config: EvalConfig, grounding: Grounding, watch: Watch, keys: Sequence[StepKey] | None = None
) -> Scores | None:
    """The score file, checked against the steps asked for where these are given, or else the ranker's own scores.

    None, and a remark where scores were named, for a grounding that ranks nothing. Raises InputError.
    """
    if not grounding.needs_ranking:
        if config.scores is not None:
            watch.note(f"--scores: {config.scores} is not read: this grounding ranks nothing")
        return None
    return _made_scores(config, watch) if config.scores is None else _read_scores(config, watch, keys)


def _read_scores(config: EvalConfig, watch: Watch, keys: Sequence[StepKey] | None) -> Scores:
    from seeact_offline.ranking import check_dataset, check_match, read_scores

    assert config.scores is not None
    if config.engine == "ray":
        raise InputError(f"--engine: expected no --scores beside ray, which is for ranking; got {config.scores}")
    scores = read_scores(config.scores)
    matched = check_match(scores, keys, str(config.scores)) if keys is not None else 0
    check_dataset(scores, config.dataset, str(config.scores))
    if keys is not None and matched < len(keys):
        watch.note(
            f"the score file has {matched} of {len(keys)} steps; the others cannot be asked and count as failures"
        )
    return scores


def _made_scores(config: EvalConfig, watch: Watch) -> Scores:
    """By the ranker, and kept for the next run."""
    if config.engine == "ray":
        return _ray_scores(config, watch)
    from seeact_offline.ranking import CachedScores, LiveScores

    split = canonical_split(config.split)
    live = LiveScores(ranker_opener(config.dtype, config.backend)(ranker_name(config)))
    scores = CachedScores(live, fingerprint(config.dataset, split), split)
    if scores.problem:
        watch.note(scores.problem)
    return scores


def _ray_scores(config: EvalConfig, watch: Watch) -> Scores:
    """All steps at once, by Ray's workers, before any is asked; kept like those of a step at a time."""
    from seeact_offline.ranking import cache_folder, read_scores

    return read_scores(kept_scores(RankConfig.of(config), cache_folder() / "scores", watch))
