"""The part of GitHub's API that fetching uses, over a `WireServer`: files by commit, commits by ref."""

from __future__ import annotations

import hashlib
import json
import socket
from urllib.parse import parse_qs, unquote, urlsplit

from tests.integration.wire import Reply, Seen, page


class Repository:
    """`push` makes a commit of some files and points a ref to it; `replies` serve what was pushed."""

    def __init__(self, name: str = "acme/flows") -> None:
        self.name = name
        self._files: dict[str, dict[str, bytes]] = {}
        self.refs: dict[str, str] = {}

    def push(self, ref: str, files: dict[str, str]) -> str:
        commit = hashlib.sha1(json.dumps([ref, files]).encode(), usedforsecurity=False).hexdigest()
        self._files[commit] = {path: text.encode() for path, text in files.items()}
        self.refs[ref] = self.refs[commit] = commit
        return commit

    def replies(self) -> dict[str, Reply]:
        return Served(self)

    def answer(self, connection: socket.socket, seen: Seen) -> None:
        address = urlsplit(seen.path)
        kind, _, rest = unquote(address.path).removeprefix(f"/repos/{self.name}/").partition("/")
        if kind == "commits":
            commit = self.refs.get(rest)
            found = None if commit is None else json.dumps({"sha": commit}).encode()
        else:
            ref = parse_qs(address.query).get("ref", ["HEAD"])[0]
            found = self._files.get(self.refs.get(ref, ""), {}).get(rest)
        connection.sendall(page(b"", "404 Not Found") if found is None else page(found))


class Served(dict[str, Reply]):
    """Every path of a repository, and what else is put in."""

    def __init__(self, *repositories: Repository) -> None:
        super().__init__()
        self._repositories = {repository.name: repository for repository in repositories}

    def __missing__(self, path: str) -> Reply:
        owner, name = path.removeprefix("/repos/").split("/")[:2]
        return self._repositories[f"{owner}/{name}"].answer
