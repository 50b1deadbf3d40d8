"""A stored script → the command that runs it, by the interpreter of its ending; its bytes are frozen.

The table of interpreters is closed: what has another ending is refused before anything runs.
"""

from __future__ import annotations

from flowstone.errors import FreezeError
from flowstone.plan.model import Step
from flowstone.plan.units import AssetTarget, EnvironmentRule, ExecSpec, ScriptFile
from flowstone.ports.library import StoredScript

INTERPRETERS: dict[str, tuple[str, ...]] = {
    ".sh": ("sh",),
    ".ts": ("bun",),
    ".js": ("bun",),
    ".ps1": ("powershell", "-NoProfile", "-NonInteractive", "-File"),
    ".cmd": ("cmd", "/d", "/s", "/c"),
    ".bat": ("cmd", "/d", "/s", "/c"),
    ".py": ("python",),
    ".rb": ("ruby",),
    ".go": ("go", "run"),
    ".pl": ("perl",),
    ".php": ("php",),
    ".lua": ("lua",),
    ".r": ("rscript",),
    ".swift": ("swift",),
    ".kt": ("kotlin",),
    ".kts": ("kotlinc", "-script"),
}
"""The words in front of a script's path, by its ending (akm facts 28)."""

OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "python": ("python3",),
    "powershell": ("pwsh",),
    "rscript": ("Rscript",),
}
"""What else the program is called, where a machine does not know the first name."""


def script_spec(step: Step, target: AssetTarget, script: StoredScript) -> ExecSpec:
    """The command of a script; FreezeError for one that nothing here interprets."""
    ending = script.name[script.name.rfind(".") :].lower() if "." in script.name else ""
    words = INTERPRETERS.get(ending)
    if words is None:
        raise FreezeError(
            f'Step "{step.id}" uses {target.ref}: nothing interprets {script.name}, whose ending is '
            f"{ending or 'missing'}.",
            code="COMPOSITION_INVALID",
            hint=f"A script ends in one of {' '.join(INTERPRETERS)}.",
        )
    return ExecSpec(
        argv=words,
        env=target.env,
        environment=target.environment or EnvironmentRule(),
        script=ScriptFile(script.ref, script.name, script.data, OTHER_NAMES.get(words[0], ())),
    )
