"""One attempt with a model or an agent: ask, read the answer by what was asked for, correct it once.

Whoever can be asked is a function from messages to a reply, so that models and agents share these
rules (akm facts 10.2, decision 11).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import msgspec

from flowstone.dispatchers.answers.extraction import NoJson, find_json
from flowstone.dispatchers.answers.verdict import MalformedVerdict, verdict_of
from flowstone.plan.bounds import DIAGNOSTIC_CHARS, EXCHANGE_CHARS
from flowstone.plan.units import AgentSpec, LlmSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import Redactor
from flowstone.run.outcome import Exchange, Outcome, Reason
from flowstone.values import Json, clip

Messages: TypeAlias = tuple[tuple[str, str], ...]
SEPARATOR = "\n--- unit output ---\n"


class Reply(msgspec.Struct, frozen=True):
    """What was answered. `cut` tells that the answer stopped at a limit and may lack its end."""

    text: str
    tokens: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cut: bool = False
    session: str | None = None


Ask: TypeAlias = Callable[[Messages], Awaitable[Reply | Outcome]]
"""Puts messages to a model; a failed Outcome (its error redacted) when there is no answer."""


class Conversation:
    """The exchanges of one attempt; `ended` makes an outcome of whatever it came to."""

    def __init__(self, dispatch: Dispatch, ask: Ask, redactor: Redactor) -> None:
        self._dispatch = dispatch
        self._ask = ask
        self._redactor = redactor
        self._used: list[tuple[int | None, int | None, int | None]] = []
        self._session: str | None = None
        self._exchanges: list[Exchange] = []

    async def held(self) -> Outcome:
        """Ask, at most twice, and the outcome of it. It never raises for a bad answer."""
        messages = self._dispatch.messages
        reply = await self._told(messages)
        if isinstance(reply, Outcome):
            return self.ended(reply)
        outcome, correction = self._read(reply)
        if correction is not None:
            role, text = messages[-1]
            reply = await self._told((*messages[:-1], (role, f"{text}\n\n{correction}")))
            outcome = reply if isinstance(reply, Outcome) else self._read(reply)[0]
        return self.ended(outcome)

    def ended(self, outcome: Outcome) -> Outcome:
        """An outcome with what the attempt has used and said so far."""
        return msgspec.structs.replace(
            outcome,
            tokens=_sum(used[0] for used in self._used),
            tokens_in=self._part(1),
            tokens_out=self._part(2),
            session=outcome.session or self._session,
            exchange=tuple(self._exchanges),
        )

    def _part(self, part: int) -> int | None:
        """The sum of one part of the tokens; None where a call told its sum only."""
        split = [used for used in self._used if used[0] is not None]
        return None if any(used[part] is None for used in split) else _sum(used[part] for used in split)

    async def _told(self, messages: Messages) -> Reply | Outcome:
        request = clip_middle(self._redactor.text("\n\n".join(text for _, text in messages)), EXCHANGE_CHARS)
        self._exchanges.append(Exchange(request))
        reply = await self._ask(messages)
        self._used.append((reply.tokens, reply.tokens_in, reply.tokens_out))
        if isinstance(reply, Outcome):
            self._exchanges[-1] = Exchange(request, clip(reply.error or "", EXCHANGE_CHARS))
            return reply
        self._session = reply.session or self._session
        self._exchanges[-1] = Exchange(request, clip(self._redactor.text(reply.text), EXCHANGE_CHARS))
        return reply

    def _read(self, reply: Reply) -> tuple[Outcome, str | None]:
        """The outcome that a reply gives, and what to say to have it corrected (None: it is good)."""
        spec = self._dispatch.spec
        if isinstance(spec, (LlmSpec, AgentSpec)) and spec.judges:
            return self._verdict(reply)
        return self._typed(reply) if self._dispatch.has_schema else (self._text(reply), None)

    def _text(self, reply: Reply) -> Outcome:
        """Without a schema the answer is the result; an empty one is no output."""
        warnings = (f'unit "{self._dispatch.unit}": {_CUT}',) if reply.cut else ()
        text = self._redactor.text(reply.text)
        return Outcome(value=text or None, absent=not text, warnings=warnings)

    def _typed(self, reply: Reply) -> tuple[Outcome, str | None]:
        from flowstone.expr.schema import validate

        schema = self._dispatch.schema
        try:
            value: Json = find_json(reply.text, lambda found: not validate(found, schema), whole=reply.cut)
        except NoJson as problem:
            error = f"the answer is not one JSON value: {problem}{f' ({_CUT})' if reply.cut else ''}"
            return self._failed(Reason.PARSE_ERROR, error, reply), _NO_JSON
        errors = validate(value, schema)
        if errors:
            listed = "".join(f"- {error}\n" for error in errors)
            error = f"the answer does not fit the schema: {'; '.join(errors)}"
            return self._failed(Reason.VALIDATION_ERROR, error, reply), _MISFIT.format(listed)
        return Outcome(value=self._redactor.json(value)), None

    def _verdict(self, reply: Reply) -> tuple[Outcome, str | None]:
        try:
            verdict = verdict_of(reply.text)
        except MalformedVerdict as problem:
            error = f"malformed verdict: {problem}"
            return self._failed(Reason.PARSE_ERROR, error, reply), _NO_VERDICT.format(problem)
        return Outcome(value=self._redactor.json(verdict)), None

    def _failed(self, reason: Reason, error: str, reply: Reply) -> Outcome:
        error = self._redactor.text(error)
        shown = self._redactor.text(reply.text)
        return Outcome(reason=reason, error=error, diagnostic=clip(f"{error}{SEPARATOR}{shown}", DIAGNOSTIC_CHARS))


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def clip_middle(text: str, limit: int) -> str:
    """`text`, or its beginning and (three times as much of) its end, where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    head = limit // 4
    return f"{text[:head]}\n…\n{text[len(text) - (limit - head) :]}"


_CUT = "the model stopped at its token limit, so the answer lacks its end; raise max_tokens"
_NO_JSON = (
    "No parseable JSON was found in your previous answer. Answer again with ONLY the JSON value: "
    "no prose, no code fences."
)
_MISFIT = (
    "Your previous JSON response failed validation:\n{}"
    "Answer again with ONLY the corrected JSON value: no prose, no code fences."
)
_NO_VERDICT = (
    "Your previous answer was no well-formed verdict: {}. Answer again with ONLY the JSON object "
    '{{"complete": boolean, "missing": string[], "feedback": string}}: no prose, no code fences.'
)
