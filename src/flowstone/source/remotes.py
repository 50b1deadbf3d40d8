"""Remote references → their files, each once a process: the pinned copy where the lock has one, else fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from urllib.parse import urlsplit

import msgspec

from flowstone.errors import SourceError
from flowstone.source.fetch import Explain, Fetched, fetch, fetched, resolve_commit
from flowstone.source.file import Origin
from flowstone.source.lockfile import LOCK_NAME
from flowstone.source.remote import Remote, at_commit, parse_remote, require_pinned
from flowstone.source.vendored import Vendored


class _From(Enum):
    """Where files may come from."""

    BOTH = "the lock, else elsewhere"
    LOCK = "the lock"
    ELSEWHERE = "elsewhere"


class Remotes:
    """What one folder and environment make of references.

    `frozen` refuses what neither the lock nor the reference itself pins. `seen` are the files by the
    texts of their references.
    """

    def __init__(self, folder: str, env: Mapping[str, str], explain: Explain, *, frozen: bool = False) -> None:
        self.vendored = Vendored(folder)
        self.frozen = frozen
        self.seen: dict[str, Fetched] = {}
        self._env = env
        self._explain = explain
        self._commits: dict[tuple[str, str], str] = {}
        self._users: dict[str, tuple[str, str]] = {}
        self._from = _From.BOTH

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Within, pass over the lock, and fetch all files of a ref at one commit, which is found out first."""
        with self._only(_From.ELSEWHERE):
            yield

    @contextmanager
    def offline(self) -> Iterator[None]:
        """Within, refuse what the lock does not pin."""
        with self._only(_From.LOCK):
            yield

    @contextmanager
    def _only(self, source: _From) -> Iterator[None]:
        self.seen.clear()
        self._commits.clear()
        self._from = source
        try:
            yield
        finally:
            self._from = _From.BOTH
            self.seen.clear()
            self.vendored.forget()

    def get(self, target: str) -> Fetched:
        """The file behind a reference. SourceError, DigestMismatch; UsageError for an unpinned one when frozen."""
        remote = self._with_user(parse_remote(target))
        found = self.seen.get(remote.text)
        if found is None:
            found = self.seen[remote.text] = self._found(remote)
        return found

    def _found(self, remote: Remote) -> Fetched:
        match self._from:
            case _From.ELSEWHERE:
                return self._at_one_commit(remote)
            case _From.LOCK:
                pinned = self._pinned(remote)
                if pinned is None:
                    raise SourceError(f"{remote.text} is not pinned in {LOCK_NAME}")
                return pinned
            case _From.BOTH:
                return self._pinned(remote) or self._fetched(remote)

    def _pinned(self, remote: Remote) -> Fetched | None:
        pin = self.vendored.pin(remote)
        return None if pin is None else fetched(remote, self.vendored.read(pin), pin.commit, pinned=True)

    def _fetched(self, remote: Remote) -> Fetched:
        if not self.frozen:
            return fetch(remote, self._env, self._explain)
        require_pinned(remote.text)
        found = fetch(remote, self._env, self._explain)
        # A digest pins one file, and not what lies beside it: the commit behind a ref may be another tomorrow.
        return found if remote.commit or not remote.repo else _at(found, remote.name)

    def _at_one_commit(self, remote: Remote) -> Fetched:
        if not remote.repo:
            return fetch(remote, self._env, self._explain)
        key = (remote.repo, remote.ref)
        if key not in self._commits:
            self._commits[key] = remote.commit or resolve_commit(remote, self._env, self._explain)
        commit = self._commits[key]
        found = fetch(parse_remote(at_commit(remote, commit)), self._env, self._explain)
        return fetched(remote, found.data, commit)

    def _with_user(self, remote: Remote) -> Remote:
        """An address with the user and password that were given for its host before."""
        if remote.repo:
            return remote
        origin = urlsplit(remote.url)._replace(path="", query="").geturl()
        if remote.user is not None:
            self._users[origin] = remote.user
            return remote
        return msgspec.structs.replace(remote, user=self._users.get(origin))


def _at(found: Fetched, base: str) -> Fetched:
    origin = Origin(base, found.origin.provenance)
    return msgspec.structs.replace(found, source=msgspec.structs.replace(found.source, origin=origin))
