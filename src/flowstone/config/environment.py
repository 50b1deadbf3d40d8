"""What the process's surroundings say: the only reader of `os.environ` besides the child environment.

Turns variables, the processors and the terminal into plain values, which everything else gets as
arguments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

SCHEDULED_SOURCES = frozenset({"task", "schedule", "scheduled", "scheduler", "cron"})
"""Values of AKM_EVENT_SOURCE that tell of a start by the machine's scheduler."""

SESSIONS = (
    ("CLAUDE_SESSION_ID", "claude"),
    ("OPENCODE_SESSION_ID", "opencode"),
    ("COPILOT_SESSION_ID", "copilot"),
    ("PI_SESSION_ID", "pi"),
)
PRESENCE = (("CODEX_SANDBOX", "codex"), ("GEMINI_CLI", "gemini"))
"""Variables that only tell which harness runs us, without a session (akm facts 11)."""


LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""The variables that name the characters of the terminal, the strongest first."""
USER_PROGRAMS = (
    "~/.local/bin", "~/bin", "~/.bun/bin", "~/.deno/bin", "~/.cargo/bin", "~/go/bin", "~/.npm-global/bin",
    "~/.volta/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/usr/local/bin",
)  # fmt: skip
"""Where users' programs lie, which the bare PATH of a machine's scheduler does not name."""


class Surroundings(msgspec.Struct, frozen=True):
    """`harness` and `session` name the agent that started us, where one did."""

    no_color: bool = False
    ascii_locale: bool = False
    ci: bool = False
    term: str | None = None
    scheduled: bool = False
    harness: str | None = None
    session: str | None = None


def variables() -> Mapping[str, str]:
    """The variables of this process, live."""
    return os.environ


def widened(env: Mapping[str, str]) -> Mapping[str, str]:
    """`env` itself; in a scheduler's context with the folders of users' programs behind its PATH."""
    if env.get("AKM_EVENT_SOURCE", "").lower() not in SCHEDULED_SOURCES:
        return env
    home = env.get("HOME") or os.path.expanduser("~")
    given = [part for part in env.get("PATH", os.defpath).split(os.pathsep) if part]
    more = [path.replace("~", home, 1) for path in USER_PROGRAMS]
    known = [path for path in more if path not in given and os.path.isdir(path)]
    return {**env, "PATH": os.pathsep.join([*given, *known])}


def surroundings(env: Mapping[str, str] | None = None) -> Surroundings:
    """Read the surroundings from `env`, by default the variables of this process."""
    env = variables() if env is None else env
    harness, session = agent_identity(env)
    return Surroundings(
        no_color=bool(env.get("NO_COLOR")),
        ascii_locale=next((env[name] for name in LOCALE if env.get(name)), "") in ("C", "POSIX"),
        ci=env.get("CI", "").lower() not in ("", "0", "false"),
        term=env.get("TERM") or None,
        scheduled=env.get("AKM_EVENT_SOURCE", "").lower() in SCHEDULED_SOURCES,
        harness=harness,
        session=session,
    )


def agent_identity(env: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(harness, session id) of the agent that started this process; None for what is unknown."""
    harness, session = env.get("AKM_AGENT_HARNESS") or None, env.get("AKM_SESSION_ID") or None
    if harness or session:
        return harness, session
    for name, known in SESSIONS:
        if env.get(name):
            return known, env[name]
    for name, known in PRESENCE:
        if name in env:
            return known, None
    return None, None


def cores() -> int:
    """Processors that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
