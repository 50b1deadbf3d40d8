"""Codex: `codex exec --json`. It prints one event a line and takes the schema of its answer as a file."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, NoAnswer, Said, Task
from flowstone.dispatchers.agent.printed import Object, Tokens, at, events, more, text_at, told


def arguments(task: Task) -> tuple[str, ...]:
    schema = () if task.schema_file is None else ("--output-schema", task.schema_file)
    form = ("--sandbox", "workspace-write", *task.model_option, "--json", *schema)
    return (*task.args, "exec", *form, "--", task.whole)


def read(printed: str) -> Said:
    """The last message of the agent, in the events of today's and of earlier versions."""
    text: str | None = None
    tokens: Tokens = (None, None)
    session: str | None = None
    failure: str | None = None
    for event in events(printed):
        said = _message(event)
        text = text if said is None else said
        session = session or _session(event)
        failure = _failure(event, failure)
        tokens = _tokens(event, tokens)
    if text is None and failure is None:
        raise NoAnswer("none of its events is a message of the agent")
    return Said(text or "", session=session, failure=failure, **told(tokens))


def _message(event: Object) -> str | None:
    item, earlier = event.get("item"), event.get("msg", event)
    if event.get("type") == "item.completed" and text_at(item, "type") in ("agent_message", "assistant_message"):
        return text_at(item, "text")
    match text_at(earlier, "type"):
        case "agent_message":
            return text_at(earlier, "message") or text_at(earlier, "text")
        case "task_complete":
            return text_at(earlier, "last_agent_message")
    return None


def _session(event: Object) -> str | None:
    if event.get("type") == "thread.started":
        return text_at(event, "thread_id")
    if text_at(event, "msg", "type") == "session_configured":
        return text_at(event, "msg", "session_id")
    return None


def _failure(event: Object, before: str | None) -> str | None:
    """A turn that fails is one; an error event is only a message of a turn that may yet go on."""
    match event.get("type"):
        case "turn.failed":
            return text_at(event, "error", "message") or "the turn failed"
        case "turn.completed":
            return None
    return before


def _tokens(event: Object, before: Tokens) -> Tokens:
    """Turns are summed; earlier versions told the sum themselves."""
    if event.get("type") == "turn.completed":
        return more(before, at(event, "usage", "input_tokens"), at(event, "usage", "output_tokens"))
    if text_at(event, "msg", "type") == "token_count":
        total = at(event, "msg", "info", "total_token_usage")
        now = more((None, None), at(total, "input_tokens"), at(total, "output_tokens"))
        return before if now == (None, None) else now
    return before


HARNESS = Harness(
    program="codex",
    arguments=arguments,
    read=read,
    passed=("OPENAI_API_KEY", "CODEX_CONFIG"),
    plain=("CODEX_CONFIG",),
    takes_schema=True,
)
