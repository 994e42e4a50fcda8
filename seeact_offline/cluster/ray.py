"""A Ray to work on, and on it a split through a ranker as a Ray Data pipeline, on one machine or many.

Workers read, describe and score rows (`ray_stages`); here each step goes into the journal as it comes. Ray repeats the work of a dead worker; a dead run resumes from its
journal. A step is scored in one call of the model, with as many threads as here, so the scores are those of a run
without Ray, to the bit.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from seeact_offline.cluster.ray_stages import (
    COLUMN,
    Describer,
    DescribeStage,
    Opener,
    ReadStage,
    Register,
    Scorer,
    ScoreStage,
    block,
    unpacked,
    worker_digest,
)
from seeact_offline.dataset import Shard, Split
from seeact_offline.files.extensions import loaded_modules
from seeact_offline.files.extras import install_command
from seeact_offline.ranking.pipeline import ScoreJournal, StepRanking
from seeact_offline.ranking.rankers import model_threads, open_ranker, parts_of, uses_torch
from seeact_offline.ranking.stage import Workers
from seeact_offline.records import InputError, StepKey
from seeact_offline.scoring.report import counted

STEPS_AT_ONCE = 8
"""Steps in one Ray task: some MB of pages, or a second of a GPU."""
OBJECT_STORE_BYTES = 512 << 20
"""Memory of a Ray of our own: room for a few dozen steps a worker."""
READER_CPUS = 0.5
"""CPUs of a reader, and not a whole one like the other stages', because Ray joins stages that ask for the same."""
DESCRIBERS_A_READER = 8
CHECK_S = 20.0
"""Seconds for a cluster to answer; Ray itself would try for minutes."""
CONNECT_S = 5.0
LOST_STATUS = 2
"""Exit status where Ray's process on this machine dies: that of an error in one sentence."""
Note = Callable[[str], None]
"""Hears of a remark."""
ATTEMPTS = 3
"""Times that work whose workers die is begun; Ray itself would never stop trying."""


@dataclass(frozen=True, slots=True)
class RankWorkers:
    """The workers that will be started."""

    score: int
    describe: int
    gpus_each: float

    def __str__(self) -> str:
        return f"Ray: {self.describe} describing and {self.score} scoring workers, {self.gpus_each:g} GPUs each of the latter"


class ClusterSize(NamedTuple):
    """The resources of a Ray."""

    cpus: int
    gpus: float
    machines: int


def rank_workers(workers: Workers, room: ClusterSize, ranker: str) -> RankWorkers:
    """Fills in what is not asked for. Raises InputError if there is not enough room, for which Ray would wait forever.

    One scorer per GPU, or per machine, where it takes the processors that a run without Ray would take.
    """
    each = workers.gpus_each
    if each is None:
        each = 1.0 if room.gpus >= 1 and any(map(uses_torch, parts_of(ranker))) else 0.0
    score = workers.score or max(1, int(room.gpus / each) if each else min(room.machines, room.cpus // 2))
    if score * each > room.gpus:
        raise InputError(
            "gpus_per_worker", f"workers that fit {room.gpus:g} GPUs", f"{score} workers of {each:g} GPUs each"
        )
    describe = workers.describe or max(1, room.cpus - score - 1)
    if score + describe + READER_CPUS > room.cpus:
        raise InputError(
            "describe_workers" if workers.score is None else "score_workers",
            f"workers that fit {room.cpus} CPUs, of which reading takes one",
            f"{score} scoring and {describe} describing workers",
        )
    return RankWorkers(score, describe, each)


class RayEngine:
    """A ranker on a connected Ray. See `open_engine`."""

    def __init__(
        self,
        ranker: str,
        crew: RankWorkers,
        opener: Opener = open_ranker,
        steps_at_once: int = STEPS_AT_ONCE,
        attempts: int = ATTEMPTS,
        note: Note = lambda text: None,
    ) -> None:
        """Every scoring worker calls `opener`, so it must be importable there by its name."""
        self.crew = crew
        self._ranker = ranker
        self._opener = opener
        self._steps_at_once = steps_at_once
        self._attempts = attempts
        self._note = note
        self._threads = model_threads(ranker)

    @cached_property
    def digest(self) -> str:
        """The ranker's `StepRanker.digest`, taken on a worker: its scores depend on it. Raises InputError."""
        import ray

        # a process that has used a GPU keeps some of its memory
        task = ray.remote(num_cpus=1, num_gpus=self.crew.gpus_each, max_calls=1 if self.crew.gpus_each else 0)(
            worker_digest
        )
        with worded_errors():
            found = ray.get(task.remote(self._opener, self._ranker))
        if isinstance(found, InputError):
            raise found
        return str(found)

    def rank(self, split: Split, journal: ScoreJournal) -> Iterator[StepRanking]:
        """Every step, in the order in which they finish; new scores are in the journal. Raises InputError."""
        import ray

        register: Any = ray.remote(num_cpus=0, max_restarts=-1)(Register).remote(self._attempts)
        with worded_errors():
            pipeline = self._pipeline(split.shards(), journal.keys, register)
            for batch in pipeline.iter_batches(batch_size=None, batch_format="pyarrow"):
                for piece in batch.column(COLUMN):
                    for outcome in unpacked(piece.as_py()):
                        yield journal.keep(outcome)
            lost = int(ray.get(register.n_lost.remote()))
        if lost:
            self._note(f"{counted(lost, 'worker')} died and had a successor, to which unfinished work went")

    def _pipeline(self, parts: list[Shard], known: frozenset[StepKey], register: Any) -> Any:
        import ray.data

        describe = DescribeStage(known, register)
        score = ScoreStage(self._opener, self._ranker, self.digest, self._threads, register)
        pieces = sum(-(-len(some.places) // self._steps_at_once) for some in parts)
        readers = min(len(parts), -(-self.crew.describe // DESCRIBERS_A_READER))
        read = ray.data.TaskPoolStrategy(size=readers)
        every: dict[str, Any] = {"batch_size": 1, "batch_format": "pyarrow"}
        return (
            ray.data.from_arrow([block(some) for some in parts])
            .map_batches(ReadStage(self._steps_at_once), num_cpus=READER_CPUS, compute=read, **every)
            .map_batches(
                Describer,
                fn_constructor_args=(describe,),
                compute=_pool(self.crew.describe, pieces),
                num_cpus=1,
                **every,
            )
            .map_batches(
                Scorer,
                fn_constructor_args=(score,),
                compute=_pool(self.crew.score, pieces),
                num_cpus=1,
                num_gpus=self.crew.gpus_each,
                **every,
            )
        )


def _pool(workers: int, pieces: int) -> Any:
    """Actors, no more than there is work for; each is given its next piece in advance."""
    from ray.data import ActorPoolStrategy

    return ActorPoolStrategy(size=min(workers, pieces), max_tasks_in_flight_per_actor=2)


@contextmanager
def open_engine(
    ranker: str, workers: Workers, opener: Opener = open_ranker, note: Note = lambda text: None
) -> Iterator[RayEngine]:
    """Connects to Ray, or starts one on this machine, and disconnects at the end. Raises InputError. `opener`: see RayEngine. `note`:
    hears of lost workers."""
    cpus = (workers.score or 1) + (workers.describe or 1) + 1
    with connected(workers.address, cpus, note) as ray:
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        # every row is a block and a task of its own, already of the right size
        context.target_max_block_size = 1
        yield RayEngine(ranker, rank_workers(workers, cluster_size(ray), ranker), opener, note=note)


# --- Ray itself ------------------------------------------------------------------------------------------------------


@contextmanager
def connected(address: str | None, cpus: int, note: Note) -> Iterator[Any]:
    """The module `ray`, connected inside. See `Workers.address`; `cpus`: what a Ray of our own has at least, as to Ray these are
    shares, not processors. Where Ray's process on this machine dies, `note` says so, and this process ends. Raises InputError."""
    ray = _import_ray()
    _connect(ray, address, max(os.cpu_count() or 1, cpus))
    is_over = threading.Event()
    line = _line_to_raylet(ray)
    threading.Thread(target=_end_with_raylet, args=(line, is_over, note), daemon=True).start()
    try:
        yield ray
    finally:
        is_over.set()
        line.close()
        ray.shutdown()


def _line_to_raylet(ray: Any) -> socket.socket:
    """An open connection to Ray's process on this machine, which ends when that dies, however it does."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # it is said nothing
    line.connect(ray._private.worker.global_worker.node.raylet_socket_name)
    return line


def _end_with_raylet(line: socket.socket, is_over: threading.Event, note: Note) -> None:
    """Waits until the raylet is gone. Ray itself would end this process some seconds later, without a word."""
    with suppress(OSError):
        line.recv(1)
    if not is_over.is_set():
        note("Ray's process on this machine died, and with it this command: the same command resumes from here")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(LOST_STATUS)


def _import_ray() -> Any:
    """Turns off Ray's usage reports, and its own messages (one on standard output for each worker that dies)."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "^")
    try:
        # Ray warns of its own settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import ray
            import ray.data
    except ImportError as error:
        hint = install_command("ray")
        raise InputError("engine", sentence=f"Ray cannot be loaded ({error}): run {hint}") from error
    return ray


def _connect(ray: Any, address: str | None, own_cpus: int) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL, "runtime_env": {}}
    root = Path(__file__).resolve().parents[2]
    if "site-packages" not in root.parts:
        # workers import this very checkout
        paths = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
        options["runtime_env"] = {"env_vars": {"PYTHONPATH": paths}}
    if address is None:
        options |= {"address": "local", "include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
        options |= {"num_cpus": own_cpus}
    else:
        _check_address(address)
        options |= {"address": address}
    try:
        with _speechless():
            ray.init(**options)
        for module in loaded_modules():
            # workers cannot import it
            ray.cloudpickle.register_pickle_by_value(module)
    except Exception as error:
        # Ray raises a bare Exception where its processes do not start in time
        where = "a Ray on this machine" if address is None else f"the Ray at {address}"
        raise InputError(
            "address",
            sentence=f"cannot use {where}: {first_line(error)}",
        ) from error


@contextmanager
def _speechless() -> Iterator[None]:
    """Silences standard error, where Ray's C++ part says that it has been told to be silent."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _check_address(address: str) -> None:
    """Raises InputError unless a Ray of our version soon answers there."""
    if address != "auto":
        _check_listening(address)
    # in a separate process, because Ray's own attempt cannot be cut short
    command = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    problem = ""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
        if done.returncode:
            problem = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:300]
    except subprocess.TimeoutExpired:
        problem = f"silent for {CHECK_S:.0f} s"
    if problem:
        raise InputError("address", sentence=f"cannot use the Ray at {address}: {problem}")


def _check_listening(address: str) -> None:
    """Says so sooner and more clearly than Ray does."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host or not 0 < int(port) < 65536:
        wanted = "HOST:PORT of a cluster that this machine belongs to, or auto"
        raise InputError("address", wanted, address or "nothing")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        raise InputError("address", sentence=f"there is no Ray at {address}: {error.strerror or error}") from None


def cluster_size(ray: Any) -> ClusterSize:
    """The resources of a connected Ray."""
    total = ray.cluster_resources()
    machines = sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)
    return ClusterSize(int(total.get("CPU", 0)), float(total.get("GPU", 0)), machines)


@contextmanager
def worded_errors() -> Iterator[None]:
    """Turns Ray's final error into one sentence."""
    import ray

    try:
        yield
    except ray.exceptions.RayError as error:
        problem = f"{type(error).__name__}: {first_line(error)}; the same command resumes from here"
        raise InputError("engine", sentence=f"Ray failed: {problem}") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
