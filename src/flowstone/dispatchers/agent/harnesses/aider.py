"""aider: `aider --message`. It prints the answer as text, with a line that tells the tokens it took."""

from __future__ import annotations

import re

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import Tokens, more, plain, told

_TOKENS = re.compile(r"^Tokens: ([0-9.,]+)([kM]?) sent\b.*?\b([0-9.,]+)([kM]?) received\b.*$", re.M)
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000}


def arguments(task: Task) -> tuple[str, ...]:
    form = ("--yes-always", "--no-pretty", f"--message={task.whole}")
    return (*task.args, "--no-auto-commits", *task.model_option, *form)


def read(printed: str) -> Said:
    text = plain(printed)
    tokens: Tokens = (None, None)
    for found in _TOKENS.findall(text):
        tokens = more(tokens, _number(*found[:2]), _number(*found[2:]))
    return Said(text, session=None, failure=None, **told(tokens))


def _number(digits: str, unit: str) -> int:
    """A count as it is printed, rounded by the program: 850, 1.2k, 3M."""
    try:
        return round(float(digits.replace(",", "")) * _SCALE[unit])
    except ValueError:
        return 0


HARNESS = Harness(
    program="aider",
    arguments=arguments,
    read=read,
    passed=("LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"),
    plain=("LLM_MODEL",),
)
