"""The agent programs that script/agents installs, and how each is told to use a model server here.

Nothing but a home folder tells it: that is what a program that flowstone starts can read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec

INSTALLED = Path(__file__).parent / "packages" / "node_modules"
MODEL = "m1"


class Program(msgspec.Struct, frozen=True):
    """One program: `binary` below INSTALLED (a pattern), the variable and the header of its key.

    `home` are the files that point it to a server, `as_json` the engine's args that have it answer
    in JSON for a text unit too, and `shell` its tool that runs a command, with `allowing` for args.
    `patience` are the seconds after which it runs such a command, on a machine that is not busy.
    """

    platform: str
    binary: str
    key: str
    header: str
    home: Callable[[str], dict[str, str]]
    model: str = MODEL
    as_json: tuple[str, ...] = ()
    allowing: tuple[str, ...] = ()
    patience: int = 4
    shell: Callable[[str], tuple[str, dict[str, str]]] = lambda command: ("bash", {"command": command})

    @property
    def path(self) -> Path:
        found = sorted(INSTALLED.glob(self.binary))
        if not found:
            raise FileNotFoundError(
                f"{self.platform} is not installed below {INSTALLED}: run script/agents "
                "(packages/package.json says for which machines there is one)"
            )
        return found[0]


def _claude_home(url: str) -> dict[str, str]:
    env = {
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
    }
    agent = "---\nname: reviewer\ndescription: Reviews\n---\nYou are the native reviewer.\n"
    return {".claude/settings.json": json.dumps({"env": env}), ".claude/agents/reviewer.md": agent}


def _codex_home(url: str) -> dict[str, str]:
    return {
        ".codex/config.toml": f"""
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "Scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    }


def _gemini_home(url: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"maxAttempts": 1, "enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return {".gemini/settings.json": json.dumps(settings), ".gemini/.env": f"GOOGLE_GEMINI_BASE_URL={url}\n"}


def _opencode_home(url: str) -> dict[str, str]:
    options = {"baseURL": f"{url}/v1", "apiKey": "{env:OPENCODE_API_KEY}"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: {}}}
    config = {
        "autoupdate": False,
        "share": "disabled",
        "provider": {"scripted": provider},
        "agent": {"reviewer": {"mode": "primary", "prompt": "You are the native reviewer."}},
    }
    # A list of models and a library for plugins that are there already are not fetched.
    plugin = {"dependencies": {"@opencode-ai/plugin": "*"}}
    return {
        ".config/opencode/opencode.json": json.dumps(config),
        ".config/opencode/package.json": json.dumps(plugin),
        ".config/opencode/package-lock.json": json.dumps({"packages": {"": plugin}}),
        ".config/opencode/node_modules/.keep": "",
        ".cache/opencode/models.json": "{}",
    }


PROGRAMS = {
    program.platform: program
    for program in (
        Program(
            "opencode",
            "opencode-*/bin/opencode",
            key="OPENCODE_API_KEY",
            header="authorization",
            home=_opencode_home,
            model=f"scripted/{MODEL}",
            as_json=("--format", "json"),
            patience=12,
            shell=lambda command: ("bash", {"command": command, "description": "run it"}),
        ),
        Program(
            "gemini",
            "@google/gemini-cli/bundle/gemini.js",
            key="GEMINI_API_KEY",
            header="x-goog-api-key",
            home=_gemini_home,
            as_json=("--output-format", "json"),
            allowing=("--approval-mode", "yolo"),
            patience=7,
            shell=lambda command: ("run_shell_command", {"command": command}),
        ),
        Program(
            "codex",
            "@openai/codex-*/vendor/*/bin/codex",
            key="OPENAI_API_KEY",
            header="authorization",
            home=_codex_home,
            shell=lambda command: ("exec_command", {"cmd": command}),
        ),
        Program(
            "claude",
            "@anthropic-ai/claude-code-*/claude",
            key="ANTHROPIC_API_KEY",
            header="x-api-key",
            home=_claude_home,
            as_json=("--output-format", "json"),
            allowing=("--allowedTools", "Bash"),
            shell=lambda command: ("Bash", {"command": command}),
        ),
    )
}
