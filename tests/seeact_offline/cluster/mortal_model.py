"""Models that end badly. In a module of their own, for Ray's workers to import."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from seeact_offline.models.replay import ReplayModel
from seeact_offline.records import Completion, ModelStopped, Request


@dataclass
class MortalModel:
    """A recording that writes down each call and who answered it, and dies by SIGKILL at one, `lives` times over all processes."""

    folder: Path
    recording: Path
    dies_at: int
    """The call at which a process dies, from 1; 0: none."""
    lives: int = 1

    async def complete(self, request: Request) -> Completion:
        with (self.folder / "calls").open("a") as file:
            file.write(f"{os.getpid()} {request.key} {request.turn}\n")
        mine = [line for line in self.calls() if line.startswith(f"{os.getpid()} ")]
        deaths = len(list(self.folder.glob("death*")))
        if len(mine) == self.dies_at and deaths < self.lives:
            (self.folder / f"death{deaths}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return await ReplayModel(self.recording).complete(request)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def calls(self) -> list[str]:
        """Process, step and turn of each."""
        return (self.folder / "calls").read_text().splitlines()


class StoppedModel:
    """One whose server answers nothing."""

    async def complete(self, request: Request) -> Completion:
        raise ModelStopped("model", "an answer from http://nowhere", "api_error: no such model")

    async def aclose(self) -> None:
        """Nothing is held open."""
