"""Names of variables that make programs run other code: an asset of somebody else must not bring them."""

from __future__ import annotations

import re
from collections.abc import Iterable

NAMES = frozenset({
    "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS1", "PS2", "IFS",
    "ZDOTDIR", "NODE_OPTIONS", "NODE_PATH", "NODE_TLS_REJECT_UNAUTHORIZED", "PYTHONPATH", "PYTHONHOME",
    "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONEXECUTABLE", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "PYTHONWARNINGS",
    "RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB", "PERL5DB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "EDITOR", "VISUAL",
    "PAGER",
})  # fmt: skip
_FAMILIES = re.compile(r"DYLD_|BASH_FUNC_|GIT_CONFIG_")


def dangerous(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are, sorted (akm facts 13)."""
    return tuple(sorted(name for name in names if name in NAMES or _FAMILIES.match(name)))
