"""Amazon Q Developer: `q chat`. It prints the answer as text for a terminal, behind a prompt mark."""

from __future__ import annotations

from flowstone.dispatchers.agent.harness import Harness, Said, Task
from flowstone.dispatchers.agent.printed import plain


def arguments(task: Task) -> tuple[str, ...]:
    return (*task.args, "chat", "--no-interactive", "--trust-all-tools", *task.model_option, "--", task.whole)


def read(printed: str) -> Said:
    return Said(plain(printed).removeprefix("> "))


HARNESS = Harness(
    program="q",
    arguments=arguments,
    read=read,
    passed=("AWS_PROFILE", "AWS_REGION"),
    plain=("AWS_PROFILE", "AWS_REGION"),
)
