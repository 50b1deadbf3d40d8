"""What went wrong on the wire → one sentence for people: what, and what to do about it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator


def reason_of(error: BaseException) -> str:
    """The sentence for an exception of the client; it goes on from the name of the request."""
    chain = list(_chain(error))
    for cause in chain:
        match cause:
            case ssl.SSLCertVerificationError():
                message = cause.verify_message or str(cause)
                return (
                    f"the certificate of the server is not trusted: {message} "
                    "(SSL_CERT_FILE names a file of further certificates to trust)"
                )
            case ssl.SSLError():
                return f"no secure connection: {_tls_text(cause)}"
            case socket.gaierror():
                return f"the name of the host cannot be resolved ({cause.strerror})"
            case ConnectionRefusedError():
                return "connection refused: nothing listens there"
            case ConnectionResetError() | BrokenPipeError():
                return "the server broke the connection off"
            case OSError() if cause.strerror:
                return f"no connection: {cause.strerror}"
    return _own_words(error)


def _own_words(error: BaseException) -> str:
    kind, text = type(error).__name__, str(error)
    match kind:
        case "RemoteProtocolError":
            return f"the server broke off or does not speak HTTP: {text}"
        case "LocalProtocolError":
            return f"no such request can be sent: {text}"
        case "ProxyError":
            return f"the proxy refused: {text}"
        case "ReadError" | "WriteError" | "CloseError":
            return "the server broke the connection off"
    return f"{kind}: {text}" if text else kind


def _tls_text(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and all that led to it, those of groups too."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
        waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
