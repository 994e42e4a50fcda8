"""Rankers: their names, how each ranks a step, and the top k that follows.

`bundled` and `bm25` come with the program; any other name is a score file or a checkpoint, and names with a + between
them are fused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ranker.errors import RankerError
from ranker.fusion import CONSTANT, fuse
from seeact_offline.files import hub
from seeact_offline.files.extras import hide_broken_torchvision, install_command
from seeact_offline.pages.dom import Page
from seeact_offline.ranking.score_files import SCORE_FILES, Scores, StepScores, read_scores
from seeact_offline.ranking.texts import TEXT_VERSION, RankerInput, ranker_input
from seeact_offline.records import InputError, RankedCandidate, RowError, Step

if TYPE_CHECKING:
    import numpy as np

BUNDLED = "bundled"
LEXICAL = "bm25"
PUBLISHED = "osunlp/MindAct_CandidateGeneration_deberta-v3-base"
"""Hub id of the ranker of the published figures."""
FUSED = "+"
"""Stands between the names of rankers that are fused."""
DTYPES = ("auto", "float32", "bfloat16", "mixed")
BACKENDS = ("auto", "packed", "transformers")
"""Explained in `ranker.CrossEncoderRanker`."""


class StepRanker(ABC):
    """Ranks the candidates of a step."""

    name: str

    @property
    def digest(self) -> str:
        """Identifies what its scores depend on, whatever its name and place: its files and its number format."""
        return self.name

    @property
    def truncated(self) -> int:
        """Texts that it has cut so far."""
        return 0

    @abstractmethod
    def begin(self, inputs: RankerInput) -> Callable[[], StepScores]:
        """Does the work that needs no model; calling the result does the rest and gives scores with ranks, best first.

        Equal scores rank in document order, which gives nothing away. Raises RowError for a step that it cannot rank;
        the result raises InputError if the ranker fails.
        """


class Ranker(Protocol):
    """Scores texts, as the rankers of the package `ranker` do."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Shape `(len(texts),)`, higher is better."""


class Checkpoint(Protocol):
    """A ranker that works in two parts, so that the first can be done for one step while the model scores another."""

    @property
    def name(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def dtype(self) -> str: ...

    @property
    def truncated(self) -> int: ...

    def encode(self, pairs: Sequence[tuple[str, Sequence[str]]]) -> Any: ...

    def predict(self, encoded: Any) -> list[np.ndarray]: ...


class TextRanker(StepRanker):
    """A `Ranker` that reads each step's texts."""

    def __init__(self, ranker: Ranker) -> None:
        self.name, self._ranker = ranker.name, ranker

    def begin(self, inputs: RankerInput) -> Callable[[], StepScores]:
        return lambda: _ranked(inputs, self.name, lambda: self._ranker.score(inputs.query, list(inputs.texts.values())))


class CheckpointRanker(StepRanker):
    """A `Checkpoint` that reads each step's texts."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.name, self._checkpoint = checkpoint.name, checkpoint

    @property
    def digest(self) -> str:
        return f"{self._checkpoint.digest} {self._checkpoint.dtype}"

    @property
    def truncated(self) -> int:
        return self._checkpoint.truncated

    def begin(self, inputs: RankerInput) -> Callable[[], StepScores]:
        """Raises RowError `unrankable` for refused texts."""
        try:
            encoded = self._checkpoint.encode([(inputs.query, list(inputs.texts.values()))])
        except ValueError as error:
            raise RowError("unrankable", str(error)) from error
        return lambda: _ranked(inputs, self.name, lambda: self._checkpoint.predict(encoded)[0])


class FileRanker(StepRanker):
    """A score file as a ranker."""

    def __init__(self, path: str | Path) -> None:
        """Raises ScoreFileError."""
        self.name, self.scores = str(path), read_scores(path)

    @property
    def digest(self) -> str:
        return self.scores.digest

    def begin(self, inputs: RankerInput) -> Callable[[], StepScores]:
        """The file's ranks, or those of its scores. Raises RowError `no_scores` for a step or candidate that the file
        lacks."""
        scores = self.scores.at(inputs.key)
        if scores is None:
            raise RowError("no_scores", f"{self.name} has no scores for this step")
        ids = best_first(scores, inputs.in_document_order)
        return lambda: {node: (scores[node][0], rank) for rank, node in enumerate(ids)}


class FusedRanker(StepRanker):
    """Reciprocal rank fusion of rankers and score files."""

    def __init__(self, name: str, parts: Sequence[StepRanker]) -> None:
        self.name, self.parts = name, tuple(parts)

    @property
    def digest(self) -> str:
        return f"rrf {CONSTANT} of {' + '.join(part.digest for part in self.parts)}"

    @property
    def truncated(self) -> int:
        """Texts cut so far by the part that cut most."""
        return max(part.truncated for part in self.parts)

    def begin(self, inputs: RankerInput) -> Callable[[], StepScores]:
        begun = [part.begin(inputs) for part in self.parts]

        def finish() -> StepScores:
            nodes = inputs.in_document_order
            rankings = [finish_part() for finish_part in begun]
            scores = fuse([[ranks[node][1] or 0 for node in nodes] for ranks in rankings]).tolist()
            return _best_first_of(dict(zip(nodes, scores, strict=True)), inputs)

        return finish


def _ranked(inputs: RankerInput, name: str, score: Callable[[], np.ndarray]) -> StepScores:
    """The step's scores with ranks. Raises InputError where `score` fails or gives no finite numbers."""
    import numpy as np

    try:
        scores = score()
    except ValueError as error:
        raise InputError("ranker", f"scores from {name}", str(error)) from error
    if not np.isfinite(scores).all():
        raise InputError("ranker", "finite scores", f"NaN or infinity from {name}")
    return _best_first_of(dict(zip(inputs.texts, scores.tolist(), strict=True)), inputs)


def _best_first_of(scores: dict[str, float], inputs: RankerInput) -> StepScores:
    # ties by place in the page: a row lists its positives first, which would give them away
    order = sorted(scores, key=lambda node: (-scores[node], inputs.places[node]))
    return {node: (scores[node], rank) for rank, node in enumerate(order)}


# --- by name ---------------------------------------------------------------------------------------------------------


def open_ranker(name: str, dtype: str = "auto", backend: str = "auto") -> StepRanker:
    """Opens a ranker, score file or fusion by name. Raises InputError if it does not exist or cannot be used.

    `dtype`, `backend`: for a checkpoint's model by torch; the bundled one needs no torch unless one of them asks for
    it, and others ignore them.
    """
    parts = parts_of(name)
    if len(parts) > 1:
        if not all(parts):
            raise InputError("ranker", f"a ranker on both sides of each {FUSED}", name)
        return FusedRanker(name, [open_ranker(part, dtype, backend) for part in parts])
    if name == LEXICAL:
        from ranker import LexicalRanker

        return TextRanker(LexicalRanker())
    if is_score_file(name):
        return FileRanker(name)
    checkpoint = _find_checkpoint(name)
    if name == BUNDLED and dtype in ("auto", "float32") and backend == "auto":
        from ranker import PlainRanker

        return CheckpointRanker(PlainRanker(checkpoint))
    return _open_cross_encoder(name, checkpoint, dtype, backend)


def _find_checkpoint(name: str) -> Path:
    if name == BUNDLED:
        folder = bundled_folder()
        if folder is None:
            got = f"{BUNDLED}, which has no weights in this installation"
            raise InputError("ranker", f"{LEXICAL}, a score file, a folder or a hub id OWNER/NAME", got)
        return folder
    if Path(name).is_dir():
        return Path(name)
    if not is_on_hub(name):
        wanted = f"{BUNDLED}, {LEXICAL}, a score file, a folder or a hub id OWNER/NAME, or several with {FUSED} between"
        raise InputError("ranker", wanted, name or "nothing")
    with hub.errors_as(InputError, "ranker"):
        return checkpoint_folder(name)


def _open_cross_encoder(name: str, model: Path, dtype: str, backend: str) -> StepRanker:
    hide_broken_torchvision()
    try:
        from ranker import CrossEncoderRanker

        return CheckpointRanker(CrossEncoderRanker(model, dtype=dtype, backend=backend))
    except ImportError as error:
        hint = install_command("hf")
        raise InputError("ranker", sentence=f"{name} needs torch and transformers ({error}): run {hint}") from error
    except RankerError as error:
        argument = error.argument if error.argument in ("dtype", "backend") else "ranker"
        raise InputError(argument, error.expected, error.got) from error
    except (ValueError, OSError) as error:
        raise InputError("ranker", sentence=f"cannot load {name}: {' '.join(str(error).split())[:400]}") from error


def bundled_folder() -> Path | None:
    """The folder of the bundled ranker; None if its weights are not installed."""
    folder = Path(str(resources.files("ranker"))) / BUNDLED
    return folder if (folder / "model.safetensors").is_file() else None


def lacks_published() -> str:
    """Fetches the published ranker, unless this machine has it; returns the reason where it cannot be had, else
    nothing."""
    lacking = [package for package in ("torch", "transformers") if find_spec(package) is None]
    if lacking:
        return f"no {' and no '.join(lacking)} to run {PUBLISHED} (run {install_command('hf')})"
    try:
        checkpoint_folder(PUBLISHED)
    except hub.HubError as error:
        return str(error)
    return ""


def checkpoint_folder(name: str) -> Path:
    """The folder of a checkpoint of the hub, downloaded at first use: OWNER/NAME or OWNER/NAME@REVISION. Raises
    HubError."""
    from ranker.untrusted import PICKLED_WEIGHTS, SAFE_WEIGHTS, SETTINGS_FILES

    return hub.model_folder(name, SETTINGS_FILES, SAFE_WEIGHTS, PICKLED_WEIGHTS)


def pinned(name: str) -> str:
    """The ranker's name with the commit of each part that is on the hub. Raises HubError."""
    return FUSED.join(hub.pinned("model", part) if is_on_hub(part) else part for part in parts_of(name))


def is_on_hub(name: str) -> bool:
    """Tells whether a ranker, which is no fusion, is a checkpoint of the hub."""
    return uses_torch(name) and hub.is_spec(name) and not Path(name).is_dir()


def parts_of(name: str) -> tuple[str, ...]:
    """The names that a ranker's name fuses: its own alone, unless a + stands in it and nothing on disk has this
    name."""
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


def scores_digest(ranker_digest: str) -> str:
    """Identifies what scores depend on: the ranker and the texts."""
    return f"{ranker_digest}, texts {TEXT_VERSION}"


# --- the top k -------------------------------------------------------------------------------------------------------


class LiveScores:
    """Scores that a ranker makes on request."""

    def __init__(self, ranker: StepRanker) -> None:
        self.ranker = ranker

    @property
    def digest(self) -> str:
        return scores_digest(self.ranker.digest)

    def of(self, step: Step, page: Page | None = None) -> StepScores | None:
        return self.ranker.begin(ranker_input(step, page))()


def best_first(scores: StepScores, ids: Sequence[str]) -> list[str]:
    """The ids by rank; where ranks are not known, by descending score, and equal scores in the given order.

    Raises RowError `no_scores` for an id without a score.
    """
    if not scores.keys() >= set(ids):
        missing = [node for node in ids if node not in scores]
        raise RowError("no_scores", f"the score file lacks {len(missing)} of {len(ids)} candidates, first {missing[0]}")
    if all(scores[node][1] is not None for node in ids):
        return sorted(ids, key=lambda node: (scores[node][1], -scores[node][0]))
    return sorted(ids, key=lambda node: -scores[node][0])


def top_k(step: Step, scores: Scores, k: int, page: Page | None = None) -> tuple[RankedCandidate, ...]:
    """The step's k best candidates, best first. Raises RowError `no_scores` if the file lacks the step or a candidate.

    Ranks in the file decide; without ranks, descending score, with ties in the row's order (as in the published ranks).
    """
    step_scores = scores.of(step, page)
    if step_scores is None:
        raise RowError("no_scores", "the score file has no scores for this step")
    ids = [c.backend_node_id for c in step.candidates]
    ids = best_first(step_scores, ids)[:k]
    return tuple(RankedCandidate(node, step_scores[node][0], place) for place, node in enumerate(ids))
