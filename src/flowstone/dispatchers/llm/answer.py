"""What a server sent → a reply of the model, or the failed outcome that it means (decision 10)."""

from __future__ import annotations

import re
from typing import Any

from flowstone.dispatchers.answers.conversation import Reply
from flowstone.dispatchers.llm.client import Received
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason
from flowstone.values import Json, JsonError, clip, decode_json

ERROR_CHARS = 200
"""Characters of an error body that are kept."""
_FILTERED = ("content_filter", "content_policy_violation", "content_policy", "responsible_ai")
_CONTEXT = re.compile(
    r"context.{0,24}(length|size|window|limit)|too (many|long).{0,24}(token|prompt|input)"
    r"|(prompt|input).{0,24}too long|maximum.{0,24}tokens",
    re.I | re.S,
)


def reply_of(received: Received, redactor: Redactor) -> Reply | Outcome:
    """The reply of a 2xx answer; every other one, and one without a choice, is a failure."""
    if not 200 <= received.status < 300:
        return _refused(received, redactor)
    try:
        body = decode_json(received.body)
    except JsonError:
        return failure(Reason.LLM_INVALID_JSON, f"the server answered with no JSON: {_start(received, redactor)}")
    choice = _first_choice(body)
    if choice is None:
        return failure(Reason.LLM_INVALID_JSON, f"the server answered without any choice: {_start(received, redactor)}")
    finish = choice.get("finish_reason")
    if finish == "content_filter":
        return failure(Reason.LLM_CONTENT_FILTER, "the provider's content filter stopped the answer")
    tokens, tokens_in, tokens_out = _tokens_of(body.get("usage"))
    return Reply(_text_of(choice["message"]), tokens, tokens_in, tokens_out, cut=finish == "length")


def failure(reason: Reason, error: str, retry_after_ms: int | None = None) -> Outcome:
    return Outcome(reason=reason, error=error, diagnostic=error, retry_after_ms=retry_after_ms)


def may_pass(received: Received) -> bool:
    """Whether the same request may well succeed a moment later: a server's own failure, not its refusal."""
    return received.status >= 500 and not _CONTEXT.search(_error_text(received))


def _refused(received: Received, redactor: Redactor) -> Outcome:
    status = received.status
    text = f"the server answered {status}: {_start(received, redactor)}"
    if 300 <= status < 400:
        target = redactor.text(received.headers.get("location", "nowhere"))
        text = f"the server answered {status} and redirects to {clip(target, ERROR_CHARS)}; name that endpoint itself"
        return failure(Reason.DISPATCH_ERROR, text)
    if status == 429:
        return failure(Reason.LLM_RATE_LIMIT, text, retry_after_ms(received))
    if status == 408 or status >= 500:
        return failure(Reason.SPAWN_FAILED, text)
    filtered = any(word in _error_code(received) for word in _FILTERED)
    return failure(Reason.LLM_CONTENT_FILTER if filtered else Reason.DISPATCH_ERROR, text)


def retry_after_ms(received: Received) -> int | None:
    """How long the server asks to wait: seconds, or a date."""
    written = received.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", written):
        return int(float(written) * 1000)
    return _until(written) if written else None


def _until(date: str) -> int | None:
    import time
    from email.utils import parsedate_to_datetime

    try:
        seconds = parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(0, int(seconds * 1000))


def _first_choice(body: Json) -> dict[str, Any] | None:
    choices = body.get("choices") if isinstance(body, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) and isinstance(first.get("message"), dict) else None


def _text_of(message: dict[str, Json]) -> str:
    """The content, or the reasoning where there is no content."""
    return _plain(message.get("content")) or _plain(message.get("reasoning_content"))


def _plain(content: Json) -> str:
    """A text, or the texts of a list of parts, without blanks at its ends."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        content = "".join(part for part in parts if isinstance(part, str))
    return content.strip() if isinstance(content, str) else ""


def _tokens_of(usage: Json) -> tuple[int | None, int | None, int | None]:
    """All tokens of a call, as the server counts them, and its parts; reasoning is in what was completed.

    A server that counts reasoning in the total only has it counted as written.
    """
    if not isinstance(usage, dict):
        return None, None, None
    total = _count(usage.get("total_tokens"))
    read, written = (_count(usage.get(key)) for key in ("prompt_tokens", "completion_tokens"))
    if read is None or written is None:
        known = [part for part in (read, written) if part is not None]
        return (total if total is not None else sum(known) if known else None), None, None
    total = read + written if total is None else total
    return total, read, max(written, total - read)


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _start(received: Received, redactor: Redactor) -> str:
    """The beginning of an error, redacted whole before it is clipped."""
    text = " ".join(redactor.text(_error_text(received)).split())
    return clip(text, ERROR_CHARS) or "an empty body"


def _error_text(received: Received) -> str:
    """The message of an error body in the usual shape, else the body."""
    error = _error_of(received)
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else received.body[:20_000].decode("utf-8", "replace")


def _error_code(received: Received) -> str:
    error = _error_of(received)
    codes = [error.get(key) for key in ("code", "type")] if isinstance(error, dict) else []
    return " ".join(code for code in codes if isinstance(code, str)).lower()


def _error_of(received: Received) -> Json:
    try:
        body = decode_json(received.body)
    except JsonError:
        return None
    return body.get("error") if isinstance(body, dict) else None
