"""http.request against a server that behaves well, badly, slowly or not at all."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import struct
import subprocess
import threading
import time
import warnings
import zlib
from pathlib import Path
from typing import Any

import pytest

from flowstone.dispatchers.http.answer import BODY_BYTES
from flowstone.dispatchers.http.dispatcher import HttpDispatcher
from flowstone.expr.model import Literal
from flowstone.plan.units import HttpSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import MARK, Redactor
from flowstone.run.outcome import Outcome, Reason
from tests.integration.wire import Seen, WireServer, moved, page

TOKEN = "tok-secret-4711"


@pytest.fixture(autouse=True)
def _direct(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def ask(arguments: dict[str, Any], timeout_ms: int = 10_000, connection: str | None = None) -> Outcome:
    async def main() -> Outcome:
        dispatcher = HttpDispatcher({"gh": {"bearerToken": TOKEN}}, Redactor([TOKEN]))
        try:
            spec = HttpSpec(Literal(arguments), connection)
            return await dispatcher.perform(Dispatch("r", "s", "s:solo", 0, 0, "", spec, timeout_ms=timeout_ms))
        finally:
            await dispatcher.close()

    return asyncio.run(main())


def value(outcome: Outcome) -> dict[str, Any]:
    assert outcome.ok, outcome.error
    found: dict[str, Any] = outcome.value
    return found


def broken(outcome: Outcome, *texts: str) -> None:
    assert outcome.reason is Reason.HTTP_ERROR
    assert not outcome.ran
    assert outcome.error is not None
    assert outcome.error.startswith("http.request: ")
    for text in texts:
        assert text in outcome.error


def test_every_status_is_a_success() -> None:
    with WireServer({"/": page(b"gone", "500 Oops")}) as server:
        assert value(ask({"url": server.url})) == {"status": 500, "body": "gone"}


def test_json_keeps_every_digit_and_every_number_its_kind() -> None:
    body = b'{"big":123456789012345678901234567890,"f":1.0,"i":1}'
    with WireServer({"/": page(body)}) as server:
        found = value(ask({"url": server.url}))
    assert found["json"]["big"] == 123456789012345678901234567890
    assert json.dumps(found["json"]) == '{"big": 123456789012345678901234567890, "f": 1.0, "i": 1}'


@pytest.mark.parametrize("body", [b"[" * 5000, b"[" * 100 + b"]" * 100, b"NaN", b"1e999", b"{", b"", b'"\\ud800"'])
def test_what_is_no_storable_json_is_text_only(body: bytes) -> None:
    with WireServer({"/": page(body)}) as server:
        assert value(ask({"url": server.url})) == {"status": 200, "body": body.decode()}


def test_bytes_that_are_no_text_are_replaced() -> None:
    with WireServer({"/": page(b"a\xff\xfeb")}) as server:
        assert value(ask({"url": server.url}))["body"] == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("arguments", "sent", "kind"),
    [
        ({"body": "plain é"}, "plain é", None),
        ({"body": {"b": 1, "a": [True, None]}}, '{"b":1,"a":[true,null]}', "application/json"),
        ({"body": [1]}, "[1]", "application/json"),
        (
            {"body": {"a": 1}, "headers": {"content-type": "application/vnd.x+json"}},
            '{"a":1}',
            "application/vnd.x+json",
        ),
        (
            {
                "body": {"a": "x y&z", "b": [1, 2], "c": None, "d": True},
                "headers": {"Content-Type": "application/x-www-form-urlencoded"},
            },
            "a=x+y%26z&b=1&b=2&d=true",
            "application/x-www-form-urlencoded",
        ),
        ({"body": 5}, "5", None),
        ({"body": None}, "", None),
    ],
)
def test_bodies(arguments: dict[str, Any], sent: str, kind: str | None) -> None:
    with WireServer({"/": page()}) as server:
        value(ask({"url": server.url, "method": "post", **arguments}))
    [seen] = server.seen
    assert (seen.method, seen.body.decode(), seen.headers.get("content-type")) == ("POST", sent, kind)


def test_header_values_become_text() -> None:
    with WireServer({"/": page()}) as server:
        value(ask({"url": server.url, "headers": {"X-A": 5, "X-B": True, "X-C": 1.5, "X-D": "é"}}))
    headers = server.seen[0].headers
    assert [headers[name] for name in ("x-a", "x-b", "x-c", "x-d")] == ["5", "true", "1.5", "é"]


@pytest.mark.parametrize("text", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
def test_a_header_cannot_smuggle_in_another(text: str) -> None:
    with WireServer({"/": page()}) as server:
        broken(ask({"url": server.url, "headers": {"X-A": text}}), "with.headers.X-A", "line break")
        broken(ask({"url": server.url, "headers": {text: "x"}}), "no name of a header")
        broken(ask({"url": f"{server.url}/{text}"}), "with.url", "control character")
        broken(ask({"url": server.url, "method": f"GET {text}"}), "with.method")
        assert server.seen == []


@pytest.mark.parametrize("url", ["ftp://x/", "/path", "x.test", "http://", "http://x:99999/", "file:///etc/passwd", 5])
def test_addresses_that_cannot_be_requested(url: Any) -> None:
    broken(ask({"url": url}), "with.url")


def test_the_token_is_sent_and_shown_nowhere() -> None:
    def echo(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(page(json.dumps(seen.headers["authorization"]).encode()))

    with WireServer({"/": echo}) as server:
        found = value(ask({"url": server.url, "headers": {"Authorization": "Basic x"}}, connection="gh"))
    assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert found == {"status": 200, "body": f'"Bearer {MARK}"', "json": f"Bearer {MARK}"}


def test_the_token_goes_before_the_user_of_the_address() -> None:
    with WireServer({"/": page()}) as server:
        value(ask({"url": server.url.replace("//", "//me:pw@")}, connection="gh"))
        value(ask({"url": server.url.replace("//", "//me:pw@")}))
    assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {TOKEN}", "Basic bWU6cHc="]


def test_a_password_in_the_address_is_in_no_error() -> None:
    outcome = ask({"url": "http://me:hunter2@127.0.0.1:1/"})
    broken(outcome, "127.0.0.1:1", "connection refused")
    assert "hunter2" not in (outcome.error or "")


@pytest.mark.parametrize(
    ("status", "method", "followed", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (307, "POST", "POST", b"x"),
        (308, "PUT", "PUT", b"x"),
        (302, "HEAD", "HEAD", b""),
    ],
)
def test_redirects(status: int, method: str, followed: str, body: bytes) -> None:
    with WireServer({"/a": moved("/b?q=1", status), "/b": page(b"" if method == "HEAD" else b"there")}) as server:
        arguments = {"url": f"{server.url}/a", "method": method, **({} if method == "HEAD" else {"body": "x"})}
        assert value(ask(arguments, connection="gh"))["status"] == 200
    seen = server.seen[-1]
    assert (seen.method, seen.path, seen.body) == (followed, "/b?q=1", body)
    assert seen.headers["authorization"] == f"Bearer {TOKEN}"


def test_another_host_gets_neither_token_nor_cookie_and_none_come_back() -> None:
    replies = {"/b": page()}
    with WireServer(replies) as server:
        replies["/a"] = moved(f"{server.other_host}/back")
        replies["/back"] = moved(f"{server.url}/b")
        value(ask({"url": f"{server.url}/a", "headers": {"Cookie": "c=1", "X-Kept": "1"}}, connection="gh"))
    first, *others = server.seen
    assert first.headers["authorization"] == f"Bearer {TOKEN}"
    assert [seen.path for seen in others] == ["/back", "/b"]
    for seen in others:
        assert "authorization" not in seen.headers
        assert "cookie" not in seen.headers
        assert seen.headers["x-kept"] == "1"


def test_another_port_is_another_place() -> None:
    with WireServer({"/": page()}) as target, WireServer({"/": moved(f"{target.url}/")}) as server:
        value(ask({"url": server.url}, connection="gh"))
    assert "authorization" not in target.seen[0].headers


def test_a_redirect_without_end_is_ended() -> None:
    with WireServer({"/": moved("/")}) as server:
        broken(ask({"url": server.url}), "stopped after 10 redirects")
        assert len(server.seen) == 11


def test_a_redirect_to_what_is_no_page_is_refused() -> None:
    with WireServer({"/": moved("file:///etc/passwd")}) as server:
        broken(ask({"url": server.url}), "302", "redirects")


def test_a_redirect_without_address_is_an_answer() -> None:
    with WireServer({"/": page(b"x", "304 Not Modified"), "/b": page(b"where", "302 Found")}) as server:
        assert value(ask({"url": f"{server.url}/b"})) == {"status": 302, "body": "where"}


def test_cookies_are_not_kept() -> None:
    replies = {"/a": page(b"", "302 Found", Location="/b", Set_Cookie="s=1; Path=/"), "/b": page()}
    with WireServer(replies) as server:
        value(ask({"url": f"{server.url}/a"}))
    assert all("cookie" not in seen.headers for seen in server.seen)


def test_of_a_huge_body_the_beginning_is_read() -> None:
    def endless(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + "é".encode() * 32_768 + b"\r\n"
        while True:
            connection.sendall(chunk)

    with WireServer({"/": endless}) as server:
        outcome = ask({"url": server.url})
    found = value(outcome)
    assert found.keys() == {"status", "body"}
    assert found["body"] == "é" * (BODY_BYTES // 2)
    assert outcome.warnings == ('unit "s:solo": the body was cut at 4 MiB, so it has no json',)


def test_a_character_that_the_cap_cuts_is_left_out() -> None:
    with WireServer({"/": page(b"x" + "é".encode() * (BODY_BYTES // 2))}) as server:
        assert value(ask({"url": server.url}))["body"] == "x" + "é" * (BODY_BYTES // 2 - 1)


def test_a_secret_that_the_cap_cuts_is_redacted_whole() -> None:
    with WireServer({"/": page(b"x" * (BODY_BYTES - 4) + TOKEN.encode() + b"yyyy")}) as server:
        assert value(ask({"url": server.url}))["body"] == "x" * (BODY_BYTES - 4) + MARK


def test_chunks_are_put_together() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"
    with WireServer({"/": chunked}) as server:
        assert value(ask({"url": server.url}))["json"] == [1, 2]


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"[1]", mtime=0)),
        ("gzip", gzip.compress(b"[", mtime=0) + gzip.compress(b"1]", mtime=0)),
        ("deflate", zlib.compress(b"[1]")),
        ("deflate", zlib.compress(b"[1]")[2:-4]),
        ("identity", b"[1]"),
    ],
)
def test_compressed_bodies(encoding: str, body: bytes) -> None:
    with WireServer({"/": page(body, Content_Encoding=encoding)}) as server:
        assert value(ask({"url": server.url})) == {"status": 200, "body": "[1]", "json": [1]}


def test_a_compressed_bomb_is_read_to_the_cap_only() -> None:
    bomb = gzip.compress(b"\x00" * (200 * 1024 * 1024), 9)
    started = time.monotonic()
    with WireServer({"/": page(bomb, Content_Encoding="gzip")}) as server:
        found = value(ask({"url": server.url}))
    assert len(found["body"]) == BODY_BYTES
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("body", [b"not gzip at all", gzip.compress(b"x" * 1000, mtime=0)[:-9]])
def test_a_damaged_compressed_body_fails(body: bytes) -> None:
    with WireServer({"/": page(body, Content_Encoding="gzip")}) as server:
        broken(ask({"url": server.url}), "compressed")


def test_a_drip_does_not_outlast_the_timeout() -> None:
    def drip(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b".")
            time.sleep(0.05)

    started = time.monotonic()
    with WireServer({"/": drip}) as server:
        outcome = ask({"url": server.url}, timeout_ms=300)
    assert outcome.reason is Reason.TIMEOUT
    assert not outcome.ran
    assert "timed out after 300ms" in (outcome.error or "")
    assert time.monotonic() - started < 3


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        port = silent.getsockname()[1]
        for url in (f"http://127.0.0.1:{port}/", f"https://127.0.0.1:{port}/"):
            outcome = ask({"url": url}, timeout_ms=200)
            assert outcome.reason is Reason.TIMEOUT
            assert f"timed out after 200ms: GET {url}" in (outcome.error or "")
        assert time.monotonic() - started < 3


def test_slow_redirects_share_one_timeout() -> None:
    def slow(connection: socket.socket, seen: Seen) -> None:
        time.sleep(0.15)
        connection.sendall(moved("/"))

    started = time.monotonic()
    with WireServer({"/": slow}) as server:
        assert ask({"url": server.url}, timeout_ms=400).reason is Reason.TIMEOUT
    assert time.monotonic() - started < 2


def test_the_body_of_a_redirect_is_not_read() -> None:
    def endless(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /b\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"10000\r\n" + b"x" * 65_536 + b"\r\n")

    with WireServer({"/": endless, "/b": page(b"there")}) as server:
        assert value(ask({"url": server.url}))["body"] == "there"


@pytest.mark.parametrize(
    "flood",
    [
        b"X-A: " + b"a" * 60_000 + b"\r\n",
        b"X-A: a\r\n",
        b"",
    ],
    ids=["huge headers", "many headers", "answers before the answer"],
)
def test_a_head_without_end_is_cut_off(flood: bytes) -> None:
    def pour(connection: socket.socket, seen: Seen) -> None:
        if flood:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall((flood or b"HTTP/1.1 103 Early Hints\r\n\r\n") * 20)

    started = time.monotonic()
    with WireServer({"/": pour}) as server:
        outcome = ask({"url": server.url}, timeout_ms=3_000)
    assert outcome.reason in (Reason.HTTP_ERROR, Reason.TIMEOUT)
    assert not outcome.ran
    assert time.monotonic() - started < 6


def test_a_server_that_hangs_up_on_a_large_upload_is_told() -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(10)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=lambda: refuse(listener.accept()[0]), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        broken(ask({"url": url, "method": "POST", "body": "x" * 20_000_000}), "POST", "broke")
        thread.join()


def test_a_reset_in_the_body_fails() -> None:
    def reset(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with WireServer({"/": reset}) as server:
        broken(ask({"url": f"{server.url}/"}), "broke", f"{server.url}/")


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", b"SSH-2.0-x\r\n\r\n"])
def test_an_answer_that_ends_early_or_is_none_fails(reply: bytes) -> None:
    with WireServer({"/": reply}) as server:
        broken(ask({"url": server.url}), "GET")


def test_a_refused_connection_is_told() -> None:
    broken(ask({"url": "http://127.0.0.1:1/x"}), "GET http://127.0.0.1:1/x", "connection refused")


def test_a_host_without_address_is_told() -> None:
    broken(ask({"url": "http://nowhere.invalid/"}), "nowhere.invalid", "resolved")


def test_the_argument_of_an_expression_is_checked_too() -> None:
    broken(ask({"url": "http://x/", "nope": 1}), "unknown with.nope")
    broken(ask({"url": "http://x/", "headers": [1]}), "with.headers", "array")
    broken(ask({"url": "http://x/", "headers": {"A": None}}), "with.headers.A", "null")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(path), "-out", str(path) + ".crt"]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def secured(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_a_certificate_that_nobody_knows_is_told(certificate: Path) -> None:
    with WireServer({"/": page()}, secured(certificate)) as server:
        broken(ask({"url": server.other_host}), "certificate", "not trusted", "SSL_CERT_FILE")
        assert server.seen == []


def test_a_certificate_of_the_environment_is_trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with WireServer({"/": page(b"safe")}, secured(certificate)) as server:
        assert value(ask({"url": server.other_host}))["body"] == "safe"
        broken(ask({"url": server.url}), "certificate")


def test_a_certificate_of_the_past_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, request = tmp_path / "old.pem", tmp_path / "old.csr"
    asked = ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*asked, "-keyout", str(path), "-out", str(request)], check=True, capture_output=True)
    (tmp_path / "names").write_text("subjectAltName=DNS:localhost")
    signed = ["openssl", "x509", "-req", "-in", str(request), "-signkey", str(path), "-days", "-1"]
    signed += ["-extfile", str(tmp_path / "names"), "-out", f"{path}.crt"]
    subprocess.run(signed, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    monkeypatch.setenv("SSL_CERT_FILE", f"{path}.crt")
    with WireServer({"/": page()}, secured(path)) as server:
        broken(ask({"url": server.other_host}), "certificate", "expired")
        assert server.seen == []


def test_an_outdated_protocol_is_refused(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    context = secured(certificate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with WireServer({"/": page()}, context) as server:
        broken(ask({"url": server.other_host}), "GET https://localhost")
        assert server.seen == []


def test_a_secure_connection_that_is_cut_is_no_end_of_a_body(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")

    def cut(connection: socket.socket, seen: Seen) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
        connection.shutdown(socket.SHUT_RDWR)

    with WireServer({"/": cut}, secured(certificate)) as server:
        broken(ask({"url": server.other_host}), "GET https://localhost")


def test_a_redirect_from_https_to_http_takes_no_token_along(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with (
        WireServer({"/b": page(b"plain")}) as plain,
        WireServer({"/": moved(f"{plain.other_host}/b")}, secured(certificate)) as server,
    ):
        assert value(ask({"url": server.other_host}, connection="gh"))["body"] == "plain"
    assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert "authorization" not in plain.seen[0].headers


def test_a_server_without_tls_is_told() -> None:
    with WireServer({"/": page()}) as server:
        broken(ask({"url": server.url.replace("http:", "https:")}), "no secure connection")


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with WireServer({"http://elsewhere.invalid/x": page(b"by proxy")}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        assert value(ask({"url": "http://elsewhere.invalid/x"}))["body"] == "by proxy"


def test_a_proxy_that_is_none_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "nonsense://x")
    broken(ask({"url": "http://127.0.0.1:1/"}), "nonsense")


def test_a_cancelled_request_ends_at_once() -> None:
    async def main(url: str) -> None:
        dispatcher = HttpDispatcher({}, Redactor())
        spec = HttpSpec(Literal({"url": url}))
        task = asyncio.ensure_future(dispatcher.perform(Dispatch("r", "s", "s:solo", 0, 0, "", spec)))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await dispatcher.close()
        await dispatcher.close()

    with WireServer({"/": lambda connection, seen: time.sleep(5)}) as server:
        started = time.monotonic()
        asyncio.run(main(server.url))
        assert time.monotonic() - started < 3
