"""A unit of a model against a server on this machine that answers well, badly, slowly or not at all."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import struct
import subprocess
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from flowstone.dispatchers.llm.client import BODY_BYTES
from flowstone.dispatchers.llm.dispatcher import LlmDispatcher
from flowstone.plan.units import Credential, LlmSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import MARK, Redactor
from flowstone.run.outcome import Outcome, Reason
from flowstone.testing.model_server import Answer, ModelServer

SCHEMA = {"type": "object", "required": ["v"], "properties": {"v": {"type": "string"}}}
KEY = "k-12345678"


def perform(endpoint: str, *, env: dict[str, str] | None = None, times: int = 1, **fields: Any) -> Outcome:
    """One attempt (the last of `times` by the same dispatcher)."""
    spec = {name: fields.pop(name) for name in list(fields) if name in LlmSpec.__struct_fields__}
    fields.setdefault("messages", (("user", "Do a."),))
    if "schema" in fields:
        fields["has_schema"] = True

    async def main() -> Outcome:
        dispatcher = LlmDispatcher(env or {}, Redactor(["hidden-param"]))
        try:
            for _ in range(times):
                unit = LlmSpec("Do a.", "fake", endpoint, "m1", **spec)
                outcome = await dispatcher.perform(Dispatch("r", "a", "a:solo", 0, 0, "h", unit, **fields))
        finally:
            await dispatcher.close()
            await dispatcher.close()
        return outcome

    return asyncio.run(main())


def asked(*script: Answer, **fields: Any) -> tuple[Outcome, list[Any]]:
    with ModelServer(script) as server:
        return perform(server.endpoint, **fields), server.asked


def failed(reason: Reason, *script: Answer, calls: int = 1, says: str = "", **fields: Any) -> Outcome:
    outcome, requests = asked(*script, **fields)
    assert (outcome.reason, len(requests)) == (reason, calls), outcome.error
    assert says in (outcome.error or "")
    assert (outcome.error or "").startswith(('engine "fake": ', "the answer", "malformed"))
    assert outcome.value is None
    return outcome


def test_the_request() -> None:
    outcome, requests = asked(Answer(" an answer \n"))
    assert (outcome.value, outcome.absent, outcome.tokens, outcome.warnings) == ("an answer", False, 15, ())
    assert requests[0].body == {
        "model": "m1",
        "messages": [{"role": "user", "content": "Do a."}],
        "temperature": 0.3,
    }
    assert requests[0].headers["content-type"] == "application/json"
    assert "authorization" not in requests[0].headers
    assert [(e.request, e.answer) for e in outcome.exchange] == [("Do a.", "an answer")]


def test_the_tuning_is_in_the_request_and_extra_params_go_last() -> None:
    _, requests = asked(
        Answer("x"),
        temperature=1.0,
        max_tokens=7,
        enable_thinking=False,
        reasoning_effort="low",
        extra_params={"seed": 3, "temperature": 0.5},
    )
    body = requests[0].body
    assert (body["temperature"], body["max_tokens"], body["seed"], body["reasoning_effort"]) == (0.5, 7, 3, "low")
    assert (body["enable_thinking"], body["chat_template_kwargs"]) == (False, {"enable_thinking": False})


def test_the_reasoning_counts_where_there_is_no_content() -> None:
    assert asked(Answer(None, message={"reasoning_content": " r "}))[0].value == "r"
    assert asked(Answer("c", message={"reasoning_content": "r"}))[0].value == "c"
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert asked(Answer(None, message={"content": parts}))[0].value == "ab"


@pytest.mark.parametrize("reply", ["", "  \n", None])
def test_an_empty_answer_is_no_output(reply: str | None) -> None:
    outcome = asked(Answer(reply))[0]
    assert (outcome.ok, outcome.absent, outcome.value) == (True, True, None)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"total_tokens": 7}, 7),
        ({"prompt_tokens": 2, "completion_tokens": 3}, 5),
        ({"prompt_tokens": 2}, 2),
        (None, None),
        ({"total_tokens": "many"}, None),
        ({"total_tokens": -1, "prompt_tokens": True}, None),
    ],
)
def test_tokens(usage: Any, tokens: int | None) -> None:
    assert asked(Answer("x", usage=usage))[0].tokens == tokens


def test_a_cut_text_is_told_by_a_warning() -> None:
    outcome = asked(Answer("half a sent", finish="length"))[0]
    assert outcome.value == "half a sent"
    assert 'unit "a:solo"' in outcome.warnings[0]
    assert "max_tokens" in outcome.warnings[0]


def test_a_schema_is_sent_along_and_its_value_taken() -> None:
    outcome, requests = asked(Answer('Here: {"v": "x"}'), schema=SCHEMA, schema_name="named")
    assert outcome.value == {"v": "x"}
    sent = requests[0].body["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "named", "schema": SCHEMA, "strict": True}}
    assert "response_format" not in asked(Answer('{"v": "x"}'), schema=SCHEMA, supports_json_schema=False)[1][0].body


def test_a_server_that_takes_no_format_is_asked_without_and_remembered() -> None:
    def answer(request: Any) -> Answer:
        return Answer("bad format", status=400) if "response_format" in request.body else Answer('{"v": "x"}')

    with ModelServer(answer) as server:
        assert perform(server.endpoint, schema=SCHEMA, times=2).value == {"v": "x"}
    assert ["response_format" in request.body for request in server.asked] == [True, False, False]


def test_a_rate_limit_is_not_taken_for_a_refused_format() -> None:
    failed(Reason.LLM_RATE_LIMIT, Answer("slow", status=429), schema=SCHEMA)
    failed(Reason.DISPATCH_ERROR, Answer("no", status=422), schema=SCHEMA, calls=2)


def test_one_correction_lists_the_errors_and_counts_its_tokens() -> None:
    outcome, requests = asked(Answer('{"w": 1}'), Answer('{"v": "x"}'), schema=SCHEMA)
    assert (outcome.value, outcome.tokens, len(outcome.exchange)) == ({"v": "x"}, 30, 2)
    first, second = requests
    assert second.prompt.startswith(f"{first.prompt}\n\n")
    assert '- $: missing required property "v"' in second.prompt
    assert len(second.body["messages"]) == 1


@pytest.mark.parametrize(
    ("replies", "reason"),
    [
        (["no", "still no"], Reason.PARSE_ERROR),
        (["", ""], Reason.PARSE_ERROR),
        (["no", '{"w": 1}'], Reason.VALIDATION_ERROR),
        (['{"v": 1}', "no"], Reason.PARSE_ERROR),
        (["[]", "7"], Reason.VALIDATION_ERROR),
    ],
)
def test_a_second_bad_answer_fails(replies: list[str], reason: Reason) -> None:
    outcome = failed(reason, *map(Answer, replies), calls=2, schema=SCHEMA)
    assert outcome.tokens == 30
    assert (outcome.diagnostic or "").endswith(f"--- unit output ---\n{replies[-1]}")


def test_a_cut_value_is_never_promoted() -> None:
    cut = Answer('Well: {"v": "x"} and {"v', finish="length")
    failed(Reason.PARSE_ERROR, cut, cut, calls=2, schema=SCHEMA, says="max_tokens")
    outcome, _ = asked(Answer('{"v": "x"}', finish="length"), schema=SCHEMA)
    assert outcome.value == {"v": "x"}


def test_a_failure_of_the_correction_is_the_failure() -> None:
    failed(Reason.LLM_RATE_LIMIT, Answer("no"), Answer("slow", status=429), calls=2, schema=SCHEMA)


JUDGE = {"judges": True, "messages": (("system", "Audit."), ("user", "Rubric."))}


def test_a_verdict() -> None:
    outcome, requests = asked(Answer('```json\n{"complete": false, "missing": ["a"]}\n```'), **JUDGE)
    assert outcome.value == {"complete": False, "missing": ["a"], "feedback": "The judge gave no feedback."}
    assert [message["role"] for message in requests[0].body["messages"]] == ["system", "user"]
    assert "response_format" not in requests[0].body


def test_a_malformed_verdict_is_corrected_once() -> None:
    outcome, requests = asked(Answer("Looks fine."), Answer('{"complete": true}'), **JUDGE)
    assert outcome.value["complete"] is True
    assert requests[1].prompt.startswith("Rubric.\n\n")
    assert '"complete": boolean' in requests[1].prompt
    failed(Reason.PARSE_ERROR, Answer('{"complete": 1}'), calls=2, says='"complete" must be true or false', **JUDGE)


@pytest.mark.parametrize(
    ("status", "reason", "calls"),
    [
        (400, Reason.DISPATCH_ERROR, 1),
        (401, Reason.DISPATCH_ERROR, 1),
        (403, Reason.DISPATCH_ERROR, 1),
        (404, Reason.DISPATCH_ERROR, 1),
        (408, Reason.SPAWN_FAILED, 1),
        (429, Reason.LLM_RATE_LIMIT, 1),
        (500, Reason.SPAWN_FAILED, 2),
        (502, Reason.SPAWN_FAILED, 2),
        (503, Reason.SPAWN_FAILED, 2),
    ],
)
def test_statuses(status: int, reason: Reason, calls: int) -> None:
    outcome = failed(reason, Answer("why not", status=status), calls=calls, says=f"{status}: why not")
    assert outcome.tokens is None
    assert outcome.exchange[0].answer


def test_a_servers_failure_may_pass() -> None:
    outcome, requests = asked(Answer("x", status=503), Answer("fine"))
    assert (outcome.value, len(requests), len(outcome.exchange)) == ("fine", 2, 1)


def test_what_is_too_long_is_not_sent_again() -> None:
    failed(Reason.SPAWN_FAILED, Answer("the context length is exceeded", status=500))


def test_nothing_is_repeated_when_the_time_is_nearly_over() -> None:
    failed(Reason.SPAWN_FAILED, Answer("x", status=500, delay_s=0.95), timeout_ms=1_000)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"Retry-After": "3"}, 3_000), ({"Retry-After": "0.5"}, 500), ({"Retry-After": "soon"}, None), ({}, None)],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], wait: int | None) -> None:
    assert failed(Reason.LLM_RATE_LIMIT, Answer("slow", status=429, headers=headers)).retry_after_ms == wait


def test_a_server_may_ask_to_wait_until_a_time() -> None:
    later = formatdate(time.time() + 60, usegmt=True)
    outcome = failed(Reason.LLM_RATE_LIMIT, Answer("slow", status=429, headers={"Retry-After": later}))
    assert 50_000 < (outcome.retry_after_ms or 0) <= 60_000
    past = Answer("slow", status=429, headers={"Retry-After": formatdate(0, usegmt=True)})
    assert failed(Reason.LLM_RATE_LIMIT, past).retry_after_ms == 0


def test_content_filters() -> None:
    failed(Reason.LLM_CONTENT_FILTER, Answer("x", finish="content_filter"))
    body = json.dumps({"error": {"message": "no", "code": "content_policy_violation"}}).encode()
    failed(Reason.LLM_CONTENT_FILTER, Answer(status=400, body=body))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>x</html>",
        b"\xff\xfe{}",
        b"{}",
        b"[]",
        b"null",
        b'{"choices":[]}',
        b'{"choices":[null]}',
        b'{"choices":[{}]}',
        b'{"choices":[{"message":"x"}]}',
        b'{"error":{"message":"x"}}',
        b'{"choices":[{"message":{"content":"x"}}]',
        b"data: {}\n\n",
        b"[" * 100_000,
    ],
)
def test_bodies_that_are_no_answer(body: bytes) -> None:
    failed(Reason.LLM_INVALID_JSON, Answer(body=body))


def test_redirects_are_not_followed() -> None:
    outcome = failed(Reason.DISPATCH_ERROR, Answer("x", status=302, headers={"Location": "http://evil.test/"}))
    assert "http://evil.test/" in (outcome.error or "")


def test_an_error_is_redacted_before_it_is_clipped() -> None:
    text = "x" * 190 + KEY + "y" * 300
    outcome = failed(
        Reason.DISPATCH_ERROR, Answer(text, status=400), env={"MY_KEY": KEY}, credential=Credential(("MY_KEY",))
    )
    assert KEY[:6] not in str(outcome)
    assert len(outcome.error or "") < 300


def test_the_key_is_sent_and_shown_nowhere() -> None:
    reply = json.dumps({"v": f"your key is {KEY} and hidden-param"})
    with ModelServer([Answer(reply)]) as server:
        outcome = perform(
            server.endpoint,
            env={"FIRST": "", "SECOND": f" {KEY}\n"},
            credential=Credential(("FIRST", "SECOND"), required=True),
            schema=SCHEMA,
            messages=(("user", "Use hidden-param."),),
        )
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.asked[0].prompt == "Use hidden-param."
    assert outcome.value == {"v": f"your key is {MARK} and {MARK}"}
    assert KEY not in str(outcome)
    assert "hidden-param" not in str(outcome)


def test_without_a_required_key_nothing_is_sent(tmp_path: Path) -> None:
    required = Credential(("MY_KEY",), required=True)
    outcome = failed(Reason.DISPATCH_ERROR, Answer("x"), calls=0, credential=required, says="MY_KEY is not set")
    assert not outcome.ran
    missing = Credential(file=str(tmp_path / "none"), required=True)
    failed(Reason.DISPATCH_ERROR, Answer("x"), calls=0, credential=missing, says="cannot be read")
    bad = {"env": {"MY_KEY": "a\nb"}, "credential": required}
    failed(Reason.DISPATCH_ERROR, Answer("x"), calls=0, says="no header", **bad)


def test_a_key_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    _, requests = asked(Answer("x"), env={"HOME": str(tmp_path)}, credential=Credential(file="~/key", required=True))
    assert requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_connections_are_kept() -> None:
    with ModelServer([Answer("x")]) as server:
        perform(server.endpoint, times=5)
    assert (len(server.asked), server.connections) == (5, 1)


def test_cookies_are_not_kept() -> None:
    with ModelServer([Answer("x", headers={"Set-Cookie": "a=1; Path=/"})]) as server:
        perform(server.endpoint, times=2)
    assert "cookie" not in server.asked[1].headers


def test_a_large_answer_is_whole_and_a_larger_one_refused() -> None:
    assert len(asked(Answer("é" * 1_000_000))[0].value) == 1_000_000
    outcome = failed(Reason.LLM_INVALID_JSON, Answer("x" * (BODY_BYTES + 1)), says=f"more than {BODY_BYTES} bytes")
    assert len(str(outcome)) < 2_000


def test_a_body_without_end_is_left() -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()

    failed(Reason.LLM_INVALID_JSON, Answer(raw=endless))


def test_a_compressed_bomb_is_not_expanded() -> None:
    bomb = gzip.compress(b"\x00" * (300 * 1024 * 1024), 1)
    started = time.monotonic()
    failed(Reason.LLM_INVALID_JSON, Answer(body=bomb, headers={"Content-Encoding": "gzip"}), says="more than")
    assert time.monotonic() - started < 10


def test_compressed_answers_are_read() -> None:
    completion = {"choices": [{"message": {"content": "small"}}]}
    body = gzip.compress(json.dumps(completion).encode())
    assert asked(Answer(body=body, headers={"Content-Encoding": "gzip"}))[0].value == "small"
    failed(Reason.LLM_INVALID_JSON, Answer(body=b"no gzip", headers={"Content-Encoding": "gzip"}))


def test_a_drip_does_not_outlast_the_timeout() -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(200):
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    started = time.monotonic()
    failed(Reason.TIMEOUT, Answer(raw=drip), timeout_ms=300, says="timed out after 300 ms")
    assert time.monotonic() - started < 3


def test_the_timeout_bounds_both_questions_and_keeps_what_was_used() -> None:
    outcome = failed(
        Reason.TIMEOUT, Answer("no", delay_s=0.2), Answer("no", delay_s=5), calls=2, schema=SCHEMA, timeout_ms=600
    )
    assert outcome.tokens == 15
    assert [bool(exchange.answer) for exchange in outcome.exchange] == [True, False]


async def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    pass


async def _half(writer: asyncio.StreamWriter) -> None:
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"choices"')
    await writer.drain()


async def _other(writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-x\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize("raw", [_reset, _hang_up, _half, _other])
def test_a_broken_connection_is_tried_once_more(raw: Any) -> None:
    failed(Reason.SPAWN_FAILED, Answer(raw=raw), calls=2, says="cannot be reached")
    outcome, _ = asked(Answer(raw=raw), Answer("fine"))
    assert outcome.value == "fine"


@pytest.mark.parametrize(
    ("endpoint", "says"),
    [
        ("http://127.0.0.1:1/v1/chat/completions", "refused"),
        ("http://nowhere.invalid/v1/chat/completions", "lookup"),
        ("nonsense", "cannot be reached"),
    ],
)
def test_a_server_that_is_not_there(endpoint: str, says: str) -> None:
    outcome = perform(endpoint)
    assert outcome.reason is Reason.SPAWN_FAILED
    assert says in (outcome.error or "")


def test_a_cancelled_question_ends_at_once() -> None:
    async def main(endpoint: str) -> None:
        dispatcher = LlmDispatcher({}, Redactor())
        unit = LlmSpec("Do a.", "fake", endpoint, "m1")
        dispatch = Dispatch("r", "a", "a:solo", 0, 0, "h", unit, messages=(("user", "x"),))
        task = asyncio.ensure_future(dispatcher.perform(dispatch))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await dispatcher.close()

    with ModelServer([Answer("x", delay_s=20)]) as server:
        started = time.monotonic()
        asyncio.run(main(server.endpoint))
        assert time.monotonic() - started < 3


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([Answer("by proxy")]) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.endpoint.removesuffix("/v1/chat/completions"))
        assert perform("http://elsewhere.invalid/v1/chat/completions").value == "by proxy"
        monkeypatch.setenv("NO_PROXY", "elsewhere.invalid")
        assert perform("http://elsewhere.invalid/v1/chat/completions").reason is Reason.SPAWN_FAILED


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """The certificate of an authority of our own, and a server's context with one that it has signed."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=own", "-keyout", "ca.key",
            "-out", "ca.pem")  # fmt: skip
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "req.pem")
    (folder / "ext").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "cert.pem")  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "ca.pem", context


def test_certificates(certificates: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch) -> None:
    authority, context = certificates
    with ModelServer([Answer("safe")], tls=context) as server:
        stranger = perform(server.endpoint)
        assert stranger.reason is Reason.SPAWN_FAILED
        assert "certificate" in (stranger.error or "")
        assert "SSL_CERT_FILE" in (stranger.error or "")
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        assert perform(server.endpoint).value == "safe"
