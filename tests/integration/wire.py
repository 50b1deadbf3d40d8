"""A server for tests that writes raw bytes: what it says to each path is a function of the test."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import msgspec


class Seen(msgspec.Struct):
    """A request as it came in; `headers` by lower-case name."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Reply = bytes | Callable[[socket.socket, Seen], None]


class WireServer:
    """Answers each path with fixed bytes, or leaves the socket to a function. `seen` are the requests."""

    def __init__(self, replies: dict[str, Reply], context: ssl.SSLContext | None = None) -> None:
        self.replies = replies
        self.seen: list[Seen] = []
        self._context = context
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.other_host = f"{scheme}://localhost:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> WireServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        connection.settimeout(10)
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            request = _read(connection)
            self.seen.append(request)
            reply = self.replies[request.path.partition("?")[0]]
            if callable(reply):
                reply(connection, request)
            else:
                connection.sendall(reply)
        except (OSError, KeyError, ValueError):
            pass
        finally:
            connection.close()


def page(body: bytes = b"", status: str = "200 OK", **headers: Any) -> bytes:
    """A whole answer; header names are written with underscores."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def moved(location: str, status: int = 302) -> bytes:
    return page(b"", f"{status} Moved", Location=location)


_TLS_HELLO = b"\x16\x03"


def _read(connection: socket.socket) -> Seen:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65_536)
        if not chunk:
            raise ValueError("no request")
        data += chunk
        if data.startswith(_TLS_HELLO):
            connection.sendall(page(b"plain HTTP is spoken here", "400 Bad Request"))
            raise ValueError("no HTTP")
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("utf-8").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65_536)
    method, path, _ = first.split(" ")
    return Seen(method, path, headers, body)
