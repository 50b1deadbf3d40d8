"""The words and bounds of a job: what parser, checks and published schema share."""

from __future__ import annotations

KIND = "Job"
PLAN_KIND = "Plan"
BLUEPRINT_KIND = "Blueprint"
LOCK_KIND = "ProvenanceLock"
ROOT_KEYS = ("apiVersion", "kind", "metadata", "steps")
VERBS = ("run", "workflow")
"""What a step does; one with neither only asks for an approval."""
RUN_KEYS = ("env", "envInherit", "cwd", "outputs")
"""Keys that only a step with `run` has."""
WORKFLOW_KEYS = ("with", "connections", "resume")
"""Keys that only a step with `workflow` has."""
WORK_KEYS = ("timeout", "retry")
"""Keys that a step without work of its own does not have."""
STEP_KEYS = ("name", *VERBS, *WORKFLOW_KEYS, *RUN_KEYS, *WORK_KEYS, "onFailure", "approval")
APPROVAL_KEYS = ("prompt", "timeout", "onTimeout")
BLUEPRINT_KEYS = ("apiVersion", "kind", "metadata", "hooks")
HOOK_KEYS = ("id", "phase", "workflow", "with", "connections", "timeout", "retry", "resume", "onFailure")
PHASE = r"^[a-z][a-zA-Z0-9-]*$"
ON_FAILURE = ("stop", "continue")
ON_TIMEOUT = ("reject", "approve")
APPROVAL_OUTPUTS = ("approved", "by", "at", "note")
"""What a step that only asks for an approval hands on."""
SHELL = ("sh", "-ec")
"""What runs the text of `run`: it ends at the first command that fails."""
APPROVAL_SUFFIX = "_approval"
"""Behind a step's name: the id of the wait in front of it. No author's name has an underscore."""
STEPS = 256
