"""Text pairs in, scores out. Knows nothing of web pages.

Every ranker has `score(query, texts) -> np.ndarray` of shape `(len(texts),)`: higher is better, and equal texts score
equal. The modules are imported at first use, so importing a name does not load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranker.cross_encoder import CrossEncoderRanker
    from ranker.errors import RankerError
    from ranker.lexical import LexicalRanker
    from ranker.plain import PlainRanker

__all__ = ["CrossEncoderRanker", "LexicalRanker", "PlainRanker", "RankerError"]

_MODULES = {
    "CrossEncoderRanker": "ranker.cross_encoder",
    "LexicalRanker": "ranker.lexical",
    "PlainRanker": "ranker.plain",
    "RankerError": "ranker.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
