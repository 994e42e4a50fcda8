"""Repositories of the hub: the commit that a name means, its files, and their bytes, whole or in part.

Files lie where the hub's own tools keep theirs, so that what `hf download` fetched is found here, and the other way round. Where the hub does
not answer, or `HF_HUB_OFFLINE` is set, the commit that was downloaded last serves.
"""

from __future__ import annotations

import errno
import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any, Literal, TypeVar

from seeact_offline.files.digest import cache_folder, cached_file_digest
from seeact_offline.files.redaction import redact
from seeact_offline.records import InputError, SeeActError

T = TypeVar("T")
Kind = Literal["dataset", "model"]
WORDS: dict[Kind, str] = {"dataset": "data set", "model": "model"}
BRANCH = "main"
ANSWER_S, LISTED_S = 4.0, 60.0
"""Seconds in which the hub has to answer, and to list the files of a repository; its own client tries for minutes."""
_FETCHING: defaultdict[str, Lock] = defaultdict(Lock)
"""Place of a file -> held while a thread of this process fetches it."""
MOST_WAITS, LONGEST_WAIT_S = 3, 600
"""How often and how long a wait that the hub asks for is kept."""
_SPEC = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w.][\w./-]{0,120}))?")
_COMMIT = re.compile("[0-9a-f]{40}")


class Listener:
    """Hears nothing. Override what is of interest."""

    def note(self, text: str) -> None:
        """One remark, a sentence."""

    def fetching(self, name: str, n_bytes: int, is_ahead: bool) -> AbstractContextManager[Callable[[int], None]]:
        """A file of so many bytes is fetched; the result is entered for as long as it takes, and hears of bytes as they come.

        `is_ahead`: nobody waits for it yet.
        """
        return nullcontext(lambda n_more: None)


listener = Listener()
"""The one that hears; the command sets its own."""


class HubError(InputError):
    """Says in one sentence what the hub did not give, and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__("hub", sentence=sentence)
        self.args = (sentence,)


class HubSilent(HubError):
    """The hub gave nothing, and refused nothing: what was downloaded before may serve."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a repository."""

    name: str
    """Its path there."""
    size: int
    """Bytes."""
    sha256: str | None = None
    """Of its content; None for small files, of which the hub does not say it."""


@dataclass(frozen=True, slots=True)
class HubRepo:
    """A repository at one commit. Made by `open_repo`."""

    kind: Kind
    name: str
    commit: str
    files: tuple[HubFile, ...]
    is_listed: bool = True
    """True for all files of the commit; False for those that were downloaded, where the hub could never be asked for the others."""

    def local(self, file: HubFile) -> Path | None:
        """The file on this machine; None if it was not downloaded, or is not the hub's."""
        path = self.place(file)
        # another thread may be replacing it
        with suppress(OSError):
            if path.stat().st_size == file.size and file.sha256 in (None, cached_file_digest(path)):
                return path
        return None

    def place(self, file: HubFile) -> Path:
        """Returns the path at which the file lies once it is here."""
        return _folder(self.kind, self.name) / "snapshots" / self.commit / file.name

    def fetch(self, file: HubFile, is_ahead: bool = False) -> Path:
        """The file on this machine, downloaded where it is not here yet; a download that was cut off is resumed. Raises HubError.

        `is_ahead`: nobody waits for it yet.
        """
        with _FETCHING[str(self.place(file))]:
            return self.local(file) or self._downloaded(file, is_ahead)

    def _downloaded(self, file: HubFile, is_ahead: bool) -> Path:
        if reason := unreachable():
            what = "differs from the hub's" if self.place(file).exists() else "was not downloaded"
            raise HubError(
                f"{file.name} of {self.name} {what}, and {reason}; fetch it where there is a network: {self.command(file.name)}"
            )
        self._discard(file)
        from huggingface_hub import hf_hub_download
        from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

        with listener.fetching(file.name, file.size, is_ahead) as hear:

            class Heard(tqdm):
                """Passes on what the client counts, and draws nothing."""

                def __init__(self, *args: Any, **options: Any) -> None:
                    super().__init__(*args, **{**options, "disable": True})  # type: ignore[no-untyped-call]
                    hear(options.get("initial") or 0)

                def update(self, n: float | None = 1) -> None:
                    hear(int(n or 0))

            download = partial(hf_hub_download, self.name, file.name, repo_type=self.kind, revision=self.commit)
            path = Path(_asked(self.kind, self.name, self.commit, partial(download, tqdm_class=Heard)))
        if self.local(file) is None:
            # the next attempt must not find it
            self._discard(file)
            raise HubError(
                f"{file.name} of {self.name} arrived other than the hub says (its checksum differs); run the command again"
            )
        return path

    def _discard(self, file: HubFile) -> None:
        path = self.place(file)
        with suppress(OSError):
            for place in (path.resolve(), path):
                place.unlink(missing_ok=True)

    def read_parts(self, file: HubFile, read: Callable[[Any], T]) -> T:
        """Returns what `read` makes of a stream of the file, which fetches the parts that are read. Raises HubError."""
        from huggingface_hub import HfFileSystem

        path = f"{'datasets/' if self.kind == 'dataset' else ''}{self.name}@{self.commit}/{file.name}"

        def opened() -> T:
            with HfFileSystem(skip_instance_cache=True).open(path, cache_type="none") as stream:
                return read(stream)

        return _asked(self.kind, self.name, self.commit, opened)

    def command(self, what: str) -> str:
        """The hub's command that downloads a file of it, or what an option names."""
        return _command(self.kind, self.name, f"{what} ", self.commit)


def is_spec(text: str) -> bool:
    """Tells whether a text has the form `OWNER/NAME` or `OWNER/NAME@REVISION`."""
    return _SPEC.fullmatch(text) is not None


def open_repo(kind: Kind, spec: str) -> HubRepo:
    """The repository that `OWNER/NAME` or `OWNER/NAME@REVISION` means: a branch, a tag or a commit, `main` by default. Raises HubError.

    A process asks once, so a branch that moves meanwhile makes no difference.
    """
    from huggingface_hub import constants

    return _open_repo(kind, spec, constants.ENDPOINT, constants.HF_HUB_CACHE, constants.HF_HUB_OFFLINE)


def pinned(kind: Kind, spec: str) -> str:
    """The same with the commit that it means now, `OWNER/NAME@COMMIT`. Raises HubError."""
    repo = open_repo(kind, spec)
    return f"{repo.name}@{repo.commit}"


def model_folder(spec: str, settings: Sequence[str], *weights: Sequence[str]) -> Path:
    """The folder of a model on this machine, with the files whose names match `settings`, and the first of `weights` that it has.

    Raises HubError.
    """
    repo = open_repo("model", spec)
    top = [file for file in repo.files if "/" not in file.name]

    def matching(patterns: Sequence[str]) -> list[HubFile]:
        return [file for file in top if any(fnmatch(file.name, pattern) for pattern in patterns)]

    of_weights = next(filter(None, map(matching, weights)), [])
    wanted = {*matching(settings), *of_weights}
    paths = [repo.fetch(file) for file in top if file in wanted]
    if not paths:
        raise HubError(f"the model {spec} has none of the files {', '.join(settings[:3])}; name another")
    return paths[0].parent


@lru_cache(64)
def _open_repo(kind: Kind, spec: str, endpoint: str, cache: str, is_offline: bool) -> HubRepo:
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise HubError(
            f"{spec} is no name of a {WORDS[kind]} on the hub: it should be OWNER/NAME or OWNER/NAME@REVISION"
        )
    name, revision = match["name"], match["revision"] or BRANCH
    is_commit = _COMMIT.fullmatch(revision) is not None
    if is_commit and (files := _kept_listing(kind, name, revision)):
        return HubRepo(kind, name, revision, files)
    reason = unreachable()
    if not reason:
        try:
            repo = _listed(kind, name, revision)
        except HubSilent as error:
            reason = error.sentence.partition(";")[0]
        else:
            _remember(repo, revision)
            return repo
    repo = _kept(kind, name, revision, reason)
    if not is_commit:
        listener.note(f"{reason}: {name} is read at {repo.commit}, which was downloaded before")
    return repo


def _listed(kind: Kind, name: str, revision: str) -> HubRepo:
    """Asks the hub. Raises HubError, HubSilent among them."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    def ask() -> HubRepo:
        commit = str(HfApi().repo_info(name, repo_type=kind, revision=revision).sha)
        entries = HfApi().list_repo_tree(name, repo_type=kind, revision=commit, recursive=True)
        files = (
            HubFile(entry.path, entry.size, entry.lfs.sha256 if entry.lfs else None)
            for entry in entries
            if isinstance(entry, RepoFile)
        )
        return HubRepo(kind, name, commit, tuple(files))

    return _asked(kind, name, revision, lambda: _within(LISTED_S, ask))


def unreachable() -> str:
    """The reason why the hub cannot be asked, for people; empty where it answers, through whatever proxy is set. A process asks once."""
    from huggingface_hub import constants

    return _unreachable(constants.ENDPOINT, constants.HF_HUB_OFFLINE)


@lru_cache(8)
def _unreachable(endpoint: str, is_offline: bool) -> str:
    from huggingface_hub import get_session

    if is_offline:
        return "HF_HUB_OFFLINE is set"
    # its handler prints each line a second time
    logging.getLogger("huggingface_hub").handlers.clear()
    try:
        _within(ANSWER_S, lambda: get_session().head(endpoint, timeout=ANSWER_S))
    except HubSilent as error:
        return error.sentence
    # a proxy, a name, a certificate: whatever it is, the hub cannot be asked
    except Exception as error:
        return f"{endpoint} does not answer ({redact(_line(error))})"
    return ""


def _within(seconds: float, ask: Callable[[], T]) -> T:
    """Returns or raises as `ask` does. Raises HubSilent after so many seconds."""
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(ask())
        # raised again by who waits
        except Exception as error:
            answer.set_exception(error)

    # in a thread, because looking up a name has no timeout
    Thread(target=work, daemon=True).start()
    if not wait([answer], seconds).done:
        from huggingface_hub import constants

        raise HubSilent(f"{constants.ENDPOINT} does not answer within {seconds:g} s")
    return answer.result()


# --- what was downloaded before ---


def _folder(kind: Kind, name: str) -> Path:
    """The folder in which the hub's tools keep a repository."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE) / f"{kind}s--{name.replace('/', '--')}"


def _listing(kind: Kind, name: str, commit: str) -> Path:
    return cache_folder() / "hub" / f"{kind}s--{name.replace('/', '--')}" / f"{commit}.json"


def _remember(repo: HubRepo, revision: str) -> None:
    """Notes, as the hub's tools do, what the revision means, and lists the files for the time without a network."""
    listing = json.dumps([asdict(file) for file in repo.files])
    put(_listing(repo.kind, repo.name, repo.commit), lambda draft: draft.write_text(listing))
    if not _COMMIT.fullmatch(revision):
        put(_folder(repo.kind, repo.name) / "refs" / revision, lambda draft: draft.write_text(repo.commit))


def put(path: Path, write: Callable[[Path], object]) -> None:
    """Replaces a file that several processes may write at once, by what `write` writes to its argument; leaves it where nothing can be written."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=path.parent) as folder:
            draft = Path(folder) / path.name
            write(draft)
            draft.replace(path)


def _kept_listing(kind: Kind, name: str, commit: str) -> tuple[HubFile, ...]:
    with suppress(OSError, ValueError, TypeError):
        return tuple(HubFile(**file) for file in json.loads(_listing(kind, name, commit).read_text()))
    return ()


def _kept(kind: Kind, name: str, revision: str, reason: str) -> HubRepo:
    """The repository as it was downloaded last. Raises HubError. `reason`: why the hub was not asked."""
    folder = _folder(kind, name)
    commit = revision
    if not _COMMIT.fullmatch(revision):
        with suppress(OSError):
            commit = (folder / "refs" / revision).read_text().strip()
    if files := _kept_listing(kind, name, commit):
        return HubRepo(kind, name, commit, files)
    snapshot = folder / "snapshots" / commit
    paths = sorted(path for path in snapshot.rglob("*") if path.is_file())
    if not paths:
        at = "" if revision == BRANCH else f" at {revision}"
        raise HubError(
            f"{name}{at} was not downloaded before, and {reason}; fetch it where there is a network:"
            f" {_command(kind, name, '', revision)}"
        )
    files = tuple(HubFile(path.relative_to(snapshot).as_posix(), path.stat().st_size) for path in paths)
    return HubRepo(kind, name, commit, files, is_listed=False)


def _command(kind: Kind, name: str, what: str, revision: str) -> str:
    repo_type = "--repo-type dataset " if kind == "dataset" else ""
    return f"hf download {name} {what}{repo_type}{'' if revision == BRANCH else f'--revision {revision}'}".rstrip()


# --- errors ---


@contextmanager
def errors_as(kind: type[InputError], argument: str) -> Iterator[None]:
    """Raises what the hub did not give as another error, about `argument`."""
    try:
        yield
    except HubError as error:
        raise kind(argument, sentence=error.sentence) from error


def _asked(kind: Kind, name: str, revision: str, ask: Callable[[], T]) -> T:
    """Returns what the hub's client gives, after the wait that the hub asks for. Raises HubError, which says what to do."""
    n_waits = 0
    while True:
        try:
            return ask()
        except SeeActError:
            raise
        # besides the client's own errors those of the libraries below it
        except Exception as error:
            headers = getattr(getattr(error, "response", None), "headers", {})
            limit, after = headers.get("ratelimit", ""), headers.get("retry-after", "")
            named = re.search(r"t=(\d+)", limit) or re.fullmatch(r"(\d+)", after)
            wait_s = int(named[1]) if named else LONGEST_WAIT_S + 1
            if wait_s > LONGEST_WAIT_S or n_waits == MOST_WAITS:
                raise _error(error, kind, name, revision) from error
        n_waits += 1
        listener.note(f"the hub limits how often it is asked: waiting {wait_s} s")
        time.sleep(wait_s)


def _error(error: Exception, kind: Kind, name: str, revision: str) -> HubError:
    """The error of the client in a sentence that says what to do."""
    import huggingface_hub.errors as hub
    from huggingface_hub import constants

    what, where = f"the {WORDS[kind]} {name}", constants.ENDPOINT
    status = getattr(getattr(error, "response", None), "status_code", None)
    number = error.errno if isinstance(error, OSError) else None
    log_in = "log in with `hf auth login`, or set HF_TOKEN"
    refusals = (
        (
            isinstance(error, hub.GatedRepoError) or status == 403,
            f"{what} is open to those who accepted its conditions on {where}/{kind}s/{name}; accept them, then {log_in}",
        ),
        (
            status == 401 and not isinstance(error, hub.RepositoryNotFoundError),
            f"{where} refused the token for {what}; {log_in} with one that is valid",
        ),
        (
            isinstance(error, hub.RevisionNotFoundError),
            f"{what} has no revision {revision}; name a branch, a tag, or a commit with its 40 digits behind @",
        ),
        (
            isinstance(error, hub.RepositoryNotFoundError),
            f"{where} has no {what[4:]}, or shows it to some users only: check the name, or {log_in}",
        ),
        (
            number in (errno.ENOSPC, errno.EDQUOT),
            f"the disk of {constants.HF_HUB_CACHE} is full; free some space, or set HF_HOME to another disk, and run the command again, which"
            " resumes",
        ),
        (
            number in (errno.EACCES, errno.EROFS, errno.EPERM, errno.ENOTDIR),
            f"{constants.HF_HUB_CACHE} cannot be written; set HF_HOME to a folder that can",
        ),
    )
    for applies, sentence in refusals:
        if applies:
            return HubError(sentence)
    if status == 429:
        return HubSilent(
            f"{where} limits how often it is asked; wait some minutes and run the command again, which resumes"
        )
    reason = redact(_line(error))
    return HubSilent(f"{what} could not be fetched from {where} ({reason}); run the command again, which resumes")


def _line(error: Exception) -> str:
    """The first line of an error."""
    line = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return " ".join(line.split()).rstrip(".:")[:200]
