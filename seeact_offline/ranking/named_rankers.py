"""Opens rankers by name; among them a score file as a ranker, and several rankers or score files fused by their ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ranker.errors import RankerError
from ranker.fusion import CONSTANT, fuse
from seeact_offline.files import hub
from seeact_offline.files.extras import hide_broken_torchvision, install_command
from seeact_offline.ranking.rankers import (
    BUNDLED,
    FUSED,
    LEXICAL,
    AnyRanker,
    Ranker,
    StepScores,
    begin_ranking,
    best_first,
    bundled_folder,
    checkpoint_folder,
    is_on_hub,
    is_score_file,
    parts_of,
    ranker_digest,
)
from seeact_offline.ranking.score_files import read_scores
from seeact_offline.ranking.texts import RankerInput
from seeact_offline.records import InputError, RowError


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


def open_ranker(name: str, dtype: str = "auto", backend: str = "auto") -> AnyRanker:
    """Opens a ranker, score file or fusion by name. Raises InputError if it does not exist or cannot be used.

    `dtype`, `backend`: for a checkpoint's model by torch; the bundled one needs no torch unless one of them asks for it, and
    others ignore them.
    """
    parts = parts_of(name)
    if len(parts) > 1:
        if not all(parts):
            raise InputError("ranker", f"a ranker on both sides of each {FUSED}", name)
        return FusedRanker(name, [open_ranker(part, dtype, backend) for part in parts])
    if name == LEXICAL:
        from ranker import LexicalRanker

        return LexicalRanker()
    if is_score_file(name):
        return FileRanker(name)
    checkpoint = _find_checkpoint(name)
    if name == BUNDLED and dtype in ("auto", "float32") and backend == "auto":
        from ranker import PlainRanker

        return PlainRanker(checkpoint)
    return _open_cross_encoder(name, checkpoint, dtype, backend)


def _find_checkpoint(name: str) -> Path:
    if name == BUNDLED:
        folder = bundled_folder()
        if folder is None:
            found = f"{BUNDLED}, which has no weights in this installation"
            raise InputError("ranker", f"{LEXICAL}, a score file, a folder or a hub id OWNER/NAME", found)
        return folder
    if Path(name).is_dir():
        return Path(name)
    if not is_on_hub(name):
        wanted = f"{BUNDLED}, {LEXICAL}, a score file, a folder or a hub id OWNER/NAME, or several with {FUSED} between"
        raise InputError("ranker", wanted, name or "nothing")
    with hub.errors_as(InputError, "ranker"):
        return checkpoint_folder(name)


def _open_cross_encoder(name: str, model: Path, dtype: str, backend: str) -> Ranker:
    hide_broken_torchvision()
    try:
        from ranker import CrossEncoderRanker

        return CrossEncoderRanker(model, dtype=dtype, backend=backend)
    except ImportError as error:
        hint = install_command("hf")
        raise InputError("ranker", sentence=f"{name} needs torch and transformers ({error}): run {hint}") from error
    except RankerError as error:
        argument = error.argument if error.argument in ("dtype", "backend") else "ranker"
        raise InputError(argument, error.expected, error.got) from error
    except (ValueError, OSError) as error:
        raise InputError("ranker", sentence=f"cannot load {name}: {' '.join(str(error).split())[:400]}") from error
