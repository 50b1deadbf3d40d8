"""pi: `pi -p`. In its JSON mode it prints one event a line, each message of the assistant with its usage."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import Tokens, at, events, more, parts_text, plain, text_at, told


def arguments(task: Task) -> tuple[str, ...]:
    form = ("--mode", "json") if task.structured else ()
    return (*task.args, *task.system_option, *task.model_option, *form, "-p", "--", task.prompt)


def read(printed: str) -> Said:
    """The last message of the assistant; output without events is the answer."""
    text: str | None = None
    tokens: Tokens = (None, None)
    session: str | None = None
    failure: str | None = None
    for event in events(printed):
        message = event.get("message")
        if event.get("type") == "session":
            session = text_at(event, "id") or session
        if event.get("type") == "message_end" and text_at(message, "role") == "assistant":
            text = parts_text(at(message, "content")) or text
            tokens = more(tokens, at(message, "usage", "input"), at(message, "usage", "output"))
            stopped = text_at(message, "stopReason") == "error"
            failure = (text_at(message, "errorMessage") or "an error") if stopped else None
    if text is None and failure is None:
        return Said(plain(printed), session=session)
    return Said(text or "", session=session, failure=failure, **told(tokens))


HARNESS = Harness(
    program="pi",
    arguments=arguments,
    read=read,
    passed=("PI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
)
