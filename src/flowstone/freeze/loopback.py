"""An endpoint's text → whether it is on this machine: by syntax alone, no name is ever looked up.

A frozen plan must come out the same everywhere, so only what a URL says counts (akm facts 3.10).
What cannot be understood counts as local, which is the careful answer: local engines run one call
at a time.
"""

from __future__ import annotations

import re
import unicodedata

_URL = re.compile(r"(?i:https?):[/\\]*(?P<authority>[^/\\?#]*)")
_FORBIDDEN = re.compile(r"[\x00-\x20#/:<>?@\[\\\]^|%\x7f]")
_PORT = re.compile(r"[0-9]*")
_DIGITS = {8: "01234567", 10: "0123456789", 16: "0123456789abcdef"}
_V4_MAPPED = range(0xFFFF_0000_0000, 0x1_0000_0000_0000)


def is_loopback(endpoint: str) -> bool:
    """Whether an http or https endpoint names this machine, or nothing that can be understood."""
    host = _host(endpoint)
    if host is None:
        return True
    if host.startswith("["):
        return _is_local_v6(host[1:-1])
    name = host.removesuffix(".")
    if _ends_in_number(name):
        address = _v4(name)
        return address is None or _is_local_v4(address)
    return name == "localhost" or name.endswith(".localhost")


def _host(endpoint: str) -> str | None:
    """The host in lower case and decoded; None where a URL parser would find none."""
    match = _URL.match(re.sub(r"[\t\r\n]", "", endpoint.strip()))
    if match is None:
        return None
    rest = match["authority"].rpartition("@")[2]
    if rest.startswith("["):
        host, bracket, port = rest.partition("]")
        return f"{host}]".lower() if bracket and _is_port(port) else None
    name, colon, port = rest.partition(":")
    host = unicodedata.normalize("NFKC", _decoded(name)).lower().replace("。", ".")
    if not host or _FORBIDDEN.search(host) or not _is_port(colon + port):
        return None
    return host


def _decoded(name: str) -> str:
    from urllib.parse import unquote

    return unquote(name)


def _is_port(text: str) -> bool:
    if not text:
        return True
    return text[0] == ":" and bool(_PORT.fullmatch(text[1:])) and int(text[1:] or 0) <= 65_535


def _ends_in_number(name: str) -> bool:
    last = name.rpartition(".")[2]
    return last.isascii() and (last.isdigit() or _number(last) is not None)


def _v4(name: str) -> int | None:
    """An address of one to four parts, each decimal, octal (`0…`) or hexadecimal (`0x…`)."""
    parts = name.split(".")
    if len(parts) > 4:
        return None
    numbers = [_number(part) for part in parts]
    if any(number is None for number in numbers):
        return None
    *front, last = [number for number in numbers if number is not None]
    if any(number > 255 for number in front) or last >= 256 ** (4 - len(front)):
        return None
    return last + sum(number << (8 * (3 - place)) for place, number in enumerate(front))


def _number(part: str) -> int | None:
    base, digits = 10, part
    if part[:2] in ("0x", "0X"):
        base, digits = 16, part[2:]
    elif len(part) > 1 and part.startswith("0"):
        base, digits = 8, part[1:]
    if not part or any(digit not in _DIGITS[base] for digit in digits):
        return None
    return int(digits, base) if digits else 0


def _is_local_v4(address: int) -> bool:
    return address >> 24 == 127 or address == 0


def _is_local_v6(text: str) -> bool:
    from ipaddress import AddressValueError, IPv6Address

    if "%" in text:
        return True
    try:
        address = int(IPv6Address(text))
    except AddressValueError:
        return True
    if address in _V4_MAPPED:
        return _is_local_v4(address & 0xFFFF_FFFF)
    return address in (0, 1)
