"""GitHub Copilot CLI: `copilot -p`. As JSON it prints one event a line, and the session in the last one."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import Tokens, at, more, objects, parts_text, plain, text_at, told


def arguments(task: Task) -> tuple[str, ...]:
    form = ("--output-format", "json") if task.structured else ()
    return (*task.args, *task.model_option, "--allow-all-tools", *form, "-p", task.whole)


def read(printed: str) -> Said:
    """The last message of the assistant; output without events is the answer."""
    text: str | None = None
    tokens: Tokens = (None, None)
    session: str | None = None
    failure: str | None = None
    for event in objects(printed):
        match event.get("type"):
            case "assistant.message":
                text = parts_text(at(event, "data", "content")) or text
                tokens = more(tokens, at(event, "data", "inputTokens"), at(event, "data", "outputTokens"))
            case "session.error":
                failure = text_at(event, "data", "message") or "an error"
            case "result":
                session = text_at(event, "sessionId") or session
    if text is None and failure is None:
        return Said(plain(printed), session=session)
    return Said(text or "", session=session, failure=failure, **told(tokens))


HARNESS = Harness(program="copilot", arguments=arguments, read=read, passed=("GH_TOKEN", "GITHUB_TOKEN"))
