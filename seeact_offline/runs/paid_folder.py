"""A run's folder in which this process alone works, with the money that it may spend: the frame of
everything that asks a paid model."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from seeact_offline.models.budget import Budget
from seeact_offline.records import Model, Prediction
from seeact_offline.runs.ask import ask_each
from seeact_offline.runs.collecting import rare_collections
from seeact_offline.runs.folder import Manifest, RunFolder
from seeact_offline.runs.model_settings import ModelSettings, replies_of
from seeact_offline.runs.watch import RankListener, Watch
from seeact_offline.scoring.report import replies_in_words

T = TypeVar("T")
P = TypeVar("P")
K = TypeVar("K", bound=Hashable)


@dataclass
class PaidFolder:
    """A locked folder with its ledger open; made by `paid_folder`."""

    folder: RunFolder
    settings: ModelSettings
    budget: Budget
    watch: Watch
    _noted: set[str] = field(default_factory=set)

    def open_model(self, manifest: Manifest) -> Model:
        """Opens the model on this folder's money, then writes the manifest. Raises ModelSpecError and InputError."""
        model = self.another_model(self.settings, manifest)
        if self.settings.max_cost is not None and self.settings.quote is None and not self.settings.is_free:
            self.watch.note("no price is known: the first call, which is paid, shows whether the model names its costs")
        # a mistyped model must not claim the folder
        self.folder.claim(manifest)
        return model

    def another_model(self, settings: ModelSettings, manifest: Manifest) -> Model:
        """Opens one more model on this folder's money. Raises ModelSpecError and InputError."""
        began = self.folder.run_id if self.folder.manifest.exists() else manifest.made and manifest.made.run
        return settings.open(self.budget, began or "")

    async def ask_left(
        self,
        wanted: Mapping[K, T],
        done: Mapping[K, Any],
        work: Callable[[T], Coroutine[Any, Any, P]],
        keep: Callable[[P], None],
        progress: RankListener,
        concurrency: int,
    ) -> bool:
        """Asks what is wanted and not done yet: `ask_each` with this folder's money.
        False where that left some over."""
        for _ in wanted.keys() & done.keys():
            progress.advance("", resumed=True)
        left = (item for key, item in wanted.items() if key not in done)
        return await ask_each(left, work, keep, concurrency, has_room=self.budget.has_room)

    def note_once(self, remarks: Iterable[str]) -> None:
        """Tells the user each remark that was not told before."""
        for remark in remarks:
            if remark not in self._noted:
                self._noted.add(remark)
                self.watch.note(remark)

    def note_dropped(self, names: Iterable[str]) -> None:
        """Tells the user of parameters that the server refuses, if there are any."""
        if dropped := ", ".join(sorted(names)):
            self.watch.note(f"the server does not take {dropped}, which therefore went unsent")

    def note_replies(self, manifest: Manifest, predictions: Iterable[Prediction], *, is_said: bool = True) -> None:
        """Writes into the manifest where the replies of these predictions come from,
        and tells the user if `is_said`."""
        replies = replies_of(predictions, self.budget.known)
        self.folder.claim(msgspec.structs.replace(manifest, replies=replies))
        if replies and is_said:
            self.watch.note("; ".join(filter(None, (replies_in_words(replies), self.budget.since_resumed))))


@contextmanager
def paid_folder(
    folder: RunFolder, identity: Mapping[str, Any], settings: ModelSettings, watch: Watch
) -> Iterator[PaidFolder]:
    """Locks the folder and opens its ledger. Raises InputError where another process works
    in it, or it holds another run."""
    folder.check(identity)
    with folder.alone(), settings.spending(folder) as budget, rare_collections():
        yield PaidFolder(folder, settings, budget, watch)
