"""OpenCode: `opencode run`. It prints the answer as text, or JSON events where the engine's args ask for them."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import Tokens, at, count, events, more, text_at, told


def arguments(task: Task) -> tuple[str, ...]:
    options = (*task.system_option, *task.model_option, *task.agent_option)
    return (*task.args, "run", *options, "--", task.prompt)


def read(printed: str) -> Said:
    """The texts of the events behind the last tool call; without events the output is the answer, to the byte."""
    found = [event for event in events(printed) if isinstance(event.get("sessionID"), str)]
    if not found:
        return Said(printed)
    texts: list[str] = []
    tokens: Tokens = (None, None)
    failure: str | None = None
    for event in found:
        match event.get("type"):
            case "text":
                texts.append(text_at(event, "part", "text") or "")
            case "tool_use":
                texts.clear()
            case "step_finish":
                used = at(event, "part", "tokens")
                tokens = more(tokens, at(used, "input"), count(at(used, "output"), at(used, "reasoning")))
            case "error":
                failure = text_at(event, "error", "data", "message") or text_at(event, "error", "name") or "an error"
    return Said("".join(texts), session=found[0]["sessionID"], failure=failure, **told(tokens))


HARNESS = Harness(
    program="opencode",
    arguments=arguments,
    read=read,
    passed=("OPENCODE_API_KEY", "OPENCODE_CONFIG"),
    plain=("OPENCODE_CONFIG",),
    persona_in_prompt=True,  # today's program has no option --system-prompt
)
