"""A token-safe `run:` text and its shell → the argv that is spawned."""

from __future__ import annotations


def argv_of_run(shell: str, text: str) -> tuple[str, ...]:
    match shell:
        case "cmd":
            return ("cmd", "/d", "/s", "/c", text)
        case "pwsh" | "powershell":
            return (shell, "-Command", text)
        case _:
            return (shell, "-c", text)
