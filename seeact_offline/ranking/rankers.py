"""Names of rankers, and how a ranker ranks a step. `bundled` and `bm25` come with the program; any other name is a score file or a
checkpoint, and names with a + between them are fused. `named_rankers` opens them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from seeact_offline.files import hub
from seeact_offline.files.extras import install_command
from seeact_offline.ranking.texts import TEXT_VERSION, RankerInput
from seeact_offline.records import InputError, RowError

if TYPE_CHECKING:
    import numpy as np

BUNDLED = "bundled"
LEXICAL = "bm25"
PUBLISHED = "osunlp/MindAct_CandidateGeneration_deberta-v3-base"
"""Hub id of the ranker of the published figures."""
FUSED = "+"
"""Stands between the names of rankers that are fused."""
SCORE_FILES = (".parquet", ".pkl", ".pickle")
DTYPES = ("auto", "float32", "bfloat16", "mixed")
BACKENDS = ("auto", "packed", "transformers")
"""Explained in `ranker.CrossEncoderRanker`."""

StepScores = Mapping[str, tuple[float, int | None]]
"""backend_node_id -> (score, rank from 0 or None where ranks are not known)."""


class Ranker(Protocol):
    """Scores texts, as the rankers of the package `ranker` do.

    It may also have `digest` (what its scores depend on; its name if there is none) and `truncated` (texts cut so far).
    """

    @property
    def name(self) -> str: ...

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Shape `(len(texts),)`, higher is better."""


@runtime_checkable
class StepRanker(Protocol):
    """A ranker that reads more of a step than its texts. It may also have `truncated`."""

    name: str

    @property
    def digest(self) -> str: ...

    def begin(self, given: RankerInput) -> Callable[[], StepScores]:
        """Begins to score a step, as `begin_ranking` does."""


AnyRanker = Ranker | StepRanker


@runtime_checkable
class StagedRanker(Protocol):
    """A ranker that works in two parts, so that the first can be done for one step while the model scores another."""

    def encode(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> Any: ...

    def predict(self, encoded: Any) -> list[np.ndarray]: ...


def bundled_folder() -> Path | None:
    """The folder of the bundled ranker; None if its weights are not installed."""
    folder = Path(str(resources.files("ranker"))) / BUNDLED
    return folder if (folder / "model.safetensors").is_file() else None


def lacks_published() -> str:
    """Fetches the published ranker, unless this machine has it; returns the reason where it cannot be had, else nothing."""
    lacking = [package for package in ("torch", "transformers") if find_spec(package) is None]
    if lacking:
        return f"no {' and no '.join(lacking)} to run {PUBLISHED} (run {install_command('hf')})"
    try:
        checkpoint_folder(PUBLISHED)
    except hub.HubError as error:
        return str(error)
    return ""


def checkpoint_folder(name: str) -> Path:
    """The folder of a checkpoint of the hub, downloaded at first use: OWNER/NAME or OWNER/NAME@REVISION. Raises HubError."""
    from ranker.untrusted import PICKLED_WEIGHTS, SAFE_WEIGHTS, SETTINGS_FILES

    return hub.model_folder(name, SETTINGS_FILES, SAFE_WEIGHTS, PICKLED_WEIGHTS)


def pinned(name: str) -> str:
    """The ranker's name with the commit of each part that is on the hub. Raises HubError."""
    return FUSED.join(hub.pinned("model", part) if is_on_hub(part) else part for part in parts_of(name))


def is_on_hub(name: str) -> bool:
    """Tells whether a ranker, which is no fusion, is a checkpoint of the hub."""
    return uses_torch(name) and hub.is_spec(name) and not Path(name).is_dir()


def parts_of(name: str) -> tuple[str, ...]:
    """The names that a ranker's name fuses: its own alone, unless a + stands in it and nothing on disk has this name."""
    return (name,) if FUSED not in name or Path(name).exists() else tuple(name.split(FUSED))


def is_score_file(name: str) -> bool:
    return Path(name).suffix in SCORE_FILES and not Path(name).is_dir()


def uses_torch(name: str) -> bool:
    """Tells whether a ranker, which is no fusion, is a checkpoint to load into torch."""
    return name not in (LEXICAL, BUNDLED) and not is_score_file(name)


def model_threads(name: str) -> int | None:
    """CPU threads that the ranker's model would take in this process; None if it does not use torch."""
    if not any(uses_torch(part) for part in parts_of(name)) or find_spec("torch") is None:
        return None
    import torch

    return int(torch.get_num_threads())


def set_model_threads(threads: int) -> None:
    """Sets the CPU threads of models from now on: their number decides the last bits of a sum."""
    import torch

    torch.set_num_threads(threads)


def ranker_digest(ranker: AnyRanker) -> str:
    """Identifies what the ranker's scores depend on, whatever its name and place: its files and its number format."""
    parts = getattr(ranker, "digest", ranker.name), getattr(ranker, "dtype", "")
    return " ".join(part for part in parts if part)


def scores_digest(ranker_digest: str) -> str:
    """Identifies what scores depend on: the ranker and the texts."""
    return f"{ranker_digest}, texts {TEXT_VERSION}"


def best_first(known: StepScores, ids: Sequence[str]) -> list[str]:
    """The ids by rank; where ranks are not known, by descending score, and equal scores in the given order.

    Raises RowError `no_scores` for an id without a score.
    """
    if not known.keys() >= set(ids):
        missing = [node for node in ids if node not in known]
        raise RowError("no_scores", f"the score file lacks {len(missing)} of {len(ids)} candidates, first {missing[0]}")
    if all(known[node][1] is not None for node in ids):
        return sorted(ids, key=lambda node: (known[node][1], -known[node][0]))
    return sorted(ids, key=lambda node: -known[node][0])


def begin_ranking(ranker: AnyRanker, given: RankerInput) -> Callable[[], StepScores]:
    """Does the work that needs no model; calling the result does the rest and gives scores with ranks, best first.

    Equal scores rank in document order, which gives nothing away. Raises RowError `unrankable` for refused texts; the result
    raises InputError if the ranker fails.
    """
    if isinstance(ranker, StepRanker):
        return ranker.begin(given)
    query, texts = given.query, list(given.texts.values())
    encoded = None
    if isinstance(ranker, StagedRanker):
        try:
            encoded = ranker.encode([(query, texts)])
        except ValueError as error:
            raise RowError("unrankable", str(error)) from error

    def finish() -> StepScores:
        try:
            scores = ranker.predict(encoded)[0] if isinstance(ranker, StagedRanker) else ranker.score(query, texts)
        except ValueError as error:
            raise InputError("ranker", f"scores from {ranker.name}", str(error)) from error
        import numpy as np

        if not np.isfinite(scores).all():
            raise InputError("ranker", "finite scores", f"NaN or infinity from {ranker.name}")
        scored = dict(zip(given.texts, scores.tolist(), strict=True))
        order = sorted(scored, key=lambda node: (-scored[node], given.places[node]))
        return {node: (scored[node], rank) for rank, node in enumerate(order)}

    return finish
