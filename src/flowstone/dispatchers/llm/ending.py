"""Ends a process in order that has used the model client: its thread comes to rest first.

The client's library does its work in a thread of its own that calls back into the interpreter. An
interpreter that is taken down while such a call is on its way aborts the process; when a client has
been closed the last of them may still be to come.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from functools import cache

LOOK_S = 0.002
"""Seconds between two looks at threads; one that did nothing in between, and wants nothing, is at rest."""
UNSEEN_S = 0.02
"""Seconds to wait where threads cannot be looked at; far more than a last call takes."""
PATIENCE_S = 0.5
_TASKS = "/proc/self/task"


@cache
def end_in_order() -> None:
    """Have this process, when it ends, wait for threads that are not Python's own. Asking again does nothing.

    One that leaves without taking its interpreter down (`os._exit`) has nothing to wait for.
    """
    atexit.register(come_to_rest)


def come_to_rest() -> None:
    """Wait until foreign threads sleep and have done nothing for a moment."""
    if not os.path.isdir(_TASKS):
        time.sleep(UNSEEN_S)
        return
    deadline = time.monotonic() + PATIENCE_S
    before = _work()
    while time.monotonic() < deadline:
        time.sleep(LOOK_S)
        now = _work()
        if now == before and all(asleep for asleep, _ in now.values()):
            return
        before = now


def _work() -> dict[str, tuple[bool, str]]:
    """By foreign thread: whether it sleeps, and what it has used of its processor so far."""
    own = {str(thread.native_id) for thread in threading.enumerate()}
    found = {}
    for task in os.listdir(_TASKS):
        if task not in own:
            try:
                with open(f"{_TASKS}/{task}/stat") as stat, open(f"{_TASKS}/{task}/schedstat") as used:
                    found[task] = (stat.read().rpartition(")")[2].split()[0] == "S", used.read())
            except OSError:
                continue
    return found
