"""Notices servers that cut long prompts without a word: their count of a prompt's tokens gives them away."""

from __future__ import annotations

from collections.abc import Sequence

from seeact_offline.records import Message
from seeact_offline.tokens import count_words

ENOUGH = 500
"""Words of a prompt, or tokens of a count, from which a count says something: no server cuts prompts shorter than that."""
FAR_BELOW = 0.7
"""Tokens a word below which a prompt was cut: tokenizers make at least about one of each word, number and mark."""
EQUAL = 3
"""Prompts in a row of different lengths and one count that cannot be chance."""
DIFFERENT = 1.05
"""Ratio of the longest to the shortest of them."""


class PromptCounts:
    """The server's counts of the prompts that it has answered."""

    def __init__(self) -> None:
        self._n_cut = 0
        self._cut = (0, 0)
        """Words and tokens of the first prompt that was cut."""
        self._alike: list[int] = []
        """Words of the prompts in a row that the server counted alike."""
        self._count = 0

    def add(self, messages: Sequence[Message], tokens: int) -> None:
        """Notes the server's count, 0 where it gives none. Pictures only add to it."""
        words = sum(count_words(message.text) for message in messages)
        if not tokens:
            return
        self._alike = [*self._alike[-EQUAL:], words] if tokens == self._count else [words]
        self._count = tokens
        lengths = sorted(set(self._alike))
        are_equal = tokens >= ENOUGH and len(lengths) >= EQUAL and lengths[-1] >= DIFFERENT * lengths[0]
        if (words >= ENOUGH and tokens < FAR_BELOW * words) or are_equal:
            self._cut = self._cut if self._n_cut else (words, tokens)
            self._n_cut += 1

    @property
    def remarks(self) -> tuple[str, ...]:
        """One remark where prompts were cut."""
        if not self._n_cut:
            return ()
        words, tokens = self._cut
        which = f"a prompt of {words:,} words" if tokens < words else "each of several prompts of different lengths"
        return (
            f"the server seems to cut prompts in silence ({self._n_cut} so far): it counts {tokens:,} tokens of {which}."
            " Give it a longer context (Ollama: OLLAMA_CONTEXT_LENGTH=32768, or num_ctx in the Modelfile), or send less: --top-k,"
            " --group-size",
        )
