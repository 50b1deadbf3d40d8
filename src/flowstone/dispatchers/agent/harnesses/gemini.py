"""Gemini CLI: `gemini -p`. As JSON it prints one object with the response and the statistics of each model."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import Object, at, count, document, plain, text_at

_FORM = "--output-format"


def arguments(task: Task) -> tuple[str, ...]:
    # An option that is given twice is a list to the program, which then prints text.
    asked = task.structured and not any(arg.startswith(_FORM) for arg in task.args)
    form = (_FORM, "json") if asked else ()
    return (*task.args, *task.model_option, *form, "-p", task.whole)


def read(printed: str) -> Said:
    # The program tells about its credentials and extensions in front of the object.
    start = printed.find("\n{")
    found = document(printed)
    if found is None and start >= 0:
        found = document(printed[start:])
    if not isinstance(found, dict) or not ("response" in found or "error" in found):
        return Said(plain(printed))
    failure = None
    if found.get("error") is not None:
        failure = text_at(found, "error", "message") or "an error"
    return Said(text_at(found, "response") or "", _tokens(found), text_at(found, "session_id"), failure)


def _tokens(found: Object) -> int | None:
    models = at(found, "stats", "models")
    used = [at(model, "tokens") for model in models.values()] if isinstance(models, dict) else []
    return count(*(at(tokens, "total") for tokens in used))


HARNESS = Harness(program="gemini", arguments=arguments, read=read, passed=("GEMINI_API_KEY", "GOOGLE_API_KEY"))
