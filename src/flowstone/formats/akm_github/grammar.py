"""The words of the GitHub-shaped YAML format: a closed subset, read by parser and published schema."""

from __future__ import annotations

ROOT_KEYS = ("name", "on", "jobs")
EVENT_KEYS = ("schedule", "workflow_dispatch")
SCHEDULE_KEYS = ("cron",)
JOB_KEYS = ("name", "needs", "runs-on", "steps")
STEP_KEYS = ("id", "name", "uses", "run", "with", "env", "shell", "working-directory")
RUN_ONLY_KEYS = ("shell", "working-directory")
COMMAND_KEYS = ("ref", "content", "arguments")
RUNNER = ("self-hosted",)
SHELLS = ("bash", "sh", "zsh", "pwsh", "powershell", "cmd")
UNSAFE_KEYS = ("__proto__", "prototype", "constructor")
EXPRESSION = "${{"
WITH_KEY = r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$"
