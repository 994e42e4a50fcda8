"""One browser for the episodes of all tests of this folder: starting Chromium takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from seeact_offline.live import running
from seeact_offline.live.episodes import EpisodeOptions
from seeact_offline.recorder.browser import Chromium
from seeact_offline.recorder.origins import ANYWHERE, BrowserOptions

OWN = running._Lane
"""The lane whose browser ends with its run."""


class KeptThread(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """The thread of a browser that is kept goes on."""


class KeptLane(OWN):
    def __init__(self, path: str, options: EpisodeOptions, free: list[KeptLane]) -> None:
        super().__init__(path, options)
        self.thread, self._free = KeptThread(1), free

    def close(self) -> None:
        self._free.append(self)


@pytest.fixture(scope="session", autouse=True)
def kept_browsers() -> Iterator[None]:
    free: list[KeptLane] = []

    def lane(path: str, options: EpisodeOptions) -> Chromium:
        # a browser that reaches all is started with the environment's proxy, which tests set
        if ANYWHERE in options.allowed or options.browser != BrowserOptions():
            return OWN(path, options)
        kept = free.pop() if free else KeptLane(path, options, free)
        kept._allowed = options.allowed
        return kept

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_Lane", lane)
        yield
        for kept in free:
            kept.thread.submit(Chromium.close, kept).result()
