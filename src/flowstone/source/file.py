"""Path or bytes → source text with its digest: where every source enters, before it is read.

Line ends become LF and a byte-order mark is skipped, so that a checkout's line endings never
change a plan; the digest is that of the raw bytes.
"""

from __future__ import annotations

import os
import stat

import msgspec

from flowstone.errors import SourceError
from flowstone.values import sha256_hex


class Origin(msgspec.Struct, frozen=True):
    """Where a fetched source came from.

    `base` is the reference from whose folder relative ones in it start: at a commit, where there is
    one; empty where that is not known. `provenance` are the variables that tell its commands.
    `pinned` tells that its bytes are those of the lock file.
    """

    base: str
    provenance: tuple[tuple[str, str], ...] = ()
    pinned: bool = False


class SourceText(msgspec.Struct, frozen=True):
    """`path` as the user gave it, `digest` 64 hex digits and `size` in bytes, both of the raw bytes."""

    path: str
    text: str
    digest: str
    size: int
    origin: Origin | None = None


def digest_of(path: str) -> str | None:
    """The SHA-256 of a file's bytes as they are now; None for one that cannot be read."""
    try:
        with open(path, "rb") as stream:
            return sha256_hex(stream.read())
    except OSError:
        return None


def read_source(path: str, limit: int) -> SourceText:
    """Read a regular file of at most `limit` bytes as strict UTF-8; anything else is a SourceError.

    So is a file whose name is no UTF-8 text: it could not be kept, shown or named again.
    """
    if not _is_text(path):
        raise SourceError(f"{path!a}: the name of the file is not UTF-8; rename it")
    try:
        # Without O_NONBLOCK the opening of a pipe would wait for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise SourceError(f"{path}: {_reason(error)}") from None
    except ValueError:
        raise SourceError(f"{path!r} is no file name: it holds a NUL or half a character") from None
    try:
        data = _read(handle, path, limit)
    except OSError as error:
        raise SourceError(f"{path}: {_reason(error)}") from None
    finally:
        os.close(handle)
    return text_of(data, path)


def text_of(data: bytes, path: str) -> SourceText:
    """The source text of bytes that come from elsewhere; `path` names them in messages."""
    if wide := _wide_encoding(data):
        raise SourceError(f"{path}: the file is {wide}, not UTF-8", hint="save it as UTF-8 in your editor")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path}: not UTF-8: byte {error.start} (0x{data[error.start]:02x}) begins no character"
        raise SourceError(message, hint="save the file as UTF-8") from None
    if "\0" in text:
        raise SourceError(f"{path}: not a text file: byte {data.index(0)} is NUL")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return SourceText(path, text.removeprefix("\ufeff"), sha256_hex(data), len(data))


def _read(handle: int, path: str, limit: int) -> bytes:
    found = os.fstat(handle)
    if stat.S_ISDIR(found.st_mode):
        raise SourceError(f"{path}: is a directory, not a file")
    if not stat.S_ISREG(found.st_mode):
        raise SourceError(f"{path}: is not a regular file (a pipe, socket or device cannot be a source)")
    if found.st_size > limit:
        raise _too_large(path, limit, f"{found.st_size:,}")
    data = bytearray()
    while chunk := os.read(handle, min(limit + 1 - len(data), 1 << 20)):
        data += chunk
        if len(data) > limit:
            raise _too_large(path, limit, f"more than {limit:,}")
    return bytes(data)


def _wide_encoding(data: bytes) -> str | None:
    """The encoding of two or four bytes a character that a file is in, by its mark or by its zeros."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    start = data[:64]
    for zeros, name in ((start[1::2], "UTF-16 (little-endian)"), (start[0::2], "UTF-16 (big-endian)")):
        if len(start) >= 8 and zeros.count(0) > len(zeros) * 3 // 4 and start.count(0) <= len(start) * 5 // 8:
            return name
    return None


_MARKS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def _too_large(path: str, limit: int, size: str) -> SourceError:
    return SourceError(f"{path}: the file has {size} bytes; at most {limit:,} are allowed")


def _reason(error: OSError) -> str:
    match error:
        case FileNotFoundError():
            return "no such file"
        case PermissionError():
            return "the file cannot be read (permission denied)"
        case NotADirectoryError():
            return "no such file (a part of the path is not a directory)"
        case _:
            return f"the file cannot be read ({error.strerror or error})"


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
