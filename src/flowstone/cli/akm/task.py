"""The verbs of `akm task`: task files, their runs, and their schedules on this machine."""

from __future__ import annotations

from flowstone.cli.lazy import LazyGroup, Verb

_FILES, _RUN, _SCHEDULE = (f"flowstone.cli.akm.task_{part}" for part in ("files", "run", "schedule"))
VERBS = {
    "add": Verb(f"{_FILES}:add", "Write a new task, and enable its schedule here."),
    "disable": Verb(f"{_SCHEDULE}:disable", "Have a schedule not obeyed on this machine any more."),
    "doctor": Verb(f"{_SCHEDULE}:doctor", "Tell how the schedules of this machine stand."),
    "enable": Verb(f"{_SCHEDULE}:enable", "Have a schedule obeyed on this machine."),
    "explain": Verb(f"{_RUN}:explain", "Show what a run of a task would do; runs nothing."),
    "history": Verb(f"{_RUN}:history", "Show what the runs of tasks came to."),
    "list": Verb(f"{_FILES}:list_", "List tasks with their targets and schedules."),
    "prune": Verb(f"{_SCHEDULE}:prune", "Clear away what is left of tasks that are gone."),
    "run": Verb(f"{_RUN}:run", "Run a task."),
    "sync": Verb(f"{_SCHEDULE}:sync", "Bring this machine's scheduler in order with what is enabled."),
    "validate": Verb(f"{_FILES}:validate", "Tell whether a file is a sound task."),
}

command = LazyGroup(
    "task",
    VERBS,
    help="Write, run and schedule tasks (tasks/<id>.yml of a bundle).",
    epilog='Example: akm task add nightly --workflow workflows/release --schedule "0 3 * * *"',
)
