"""Claude Code: `claude --print`. As JSON it prints one result object (or, verbose, a list that ends in one)."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import at, more, objects, text_at, told


def arguments(task: Task) -> tuple[str, ...]:
    form = ("--output-format", "json") if task.structured else ()
    tools = ("--allowedTools", ",".join(task.tools)) if task.tools else ()
    options = (*task.system_option, *task.model_option, *task.agent_option, *tools)
    return (*task.args, *options, *form, "--print", "--", task.prompt)


def read(printed: str) -> Said:
    """The result object's text; output of any other form is the answer itself, to the byte."""
    results = [found for found in objects(printed) if found.get("type") == "result"]
    if not results:
        return Said(printed)
    result = results[-1]
    text = text_at(result, "result") or ""
    failed = result.get("is_error") is True
    return Said(
        text,
        session=text_at(result, "session_id"),
        failure=(text or text_at(result, "subtype") or "an error") if failed else None,
        **told(more((None, None), at(result, "usage", "input_tokens"), at(result, "usage", "output_tokens"))),
    )


HARNESS = Harness(
    program="claude",
    arguments=arguments,
    read=read,
    passed=("ANTHROPIC_API_KEY", "CLAUDE_CONFIG"),
    plain=("CLAUDE_CONFIG",),
)
