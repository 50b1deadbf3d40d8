"""OpenHands: `openhands --headless`. It prints JSON events between other lines; the model is a variable."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import Object, at, parts_text, plain, text_at

_DECODE_FROM = "{"


def arguments(task: Task) -> tuple[str, ...]:
    return (*task.args, "--headless", "--json", f"--task={task.whole}")


def variables(task: Task) -> tuple[tuple[str, str], ...]:
    return () if task.model is None else (("LLM_MODEL", task.model),)


def read(printed: str) -> Said:
    """The agent's last message, or what it finished with; output without events is the answer."""
    text: str | None = None
    session: str | None = None
    for event in _events(printed):
        session = session or text_at(event, "conversation_id")
        if event.get("source") == "agent":
            text = _message(event) or text
    return Said(plain(printed) if text is None else text, session=session)


def _events(printed: str) -> list[Object]:
    """Objects may stand on one line or on several, with lines of other text between them."""
    from json import JSONDecoder

    decoder = JSONDecoder()
    found: list[Object] = []
    position = 0
    while (start := printed.find(_DECODE_FROM, position)) >= 0:
        at_line_start = not printed[printed.rfind("\n", 0, start) + 1 : start].strip()
        position = start + 1
        if at_line_start:
            try:
                value, position = decoder.raw_decode(printed, start)
            except (ValueError, RecursionError):
                continue
            found += [value] if isinstance(value, dict) else []
    return found


def _message(event: Object) -> str | None:
    finished = text_at(event, "action", "message")
    if finished is not None:
        return finished
    said = parts_text(at(event, "llm_message", "content"))
    if said is not None:
        return said
    if event.get("action") in ("message", "finish"):
        return text_at(event, "args", "final_thought") or text_at(event, "args", "content") or text_at(event, "message")
    return None


HARNESS = Harness(
    program="openhands",
    arguments=arguments,
    read=read,
    passed=("LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"),
    plain=("LLM_MODEL",),
    variables=variables,
)
