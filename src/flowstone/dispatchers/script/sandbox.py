"""The worker process of scripts: frames of JSON in, JavaScript run in a fresh context, frames out.

A program of its own, run by `flowstone.dispatchers.script.worker`; it imports nothing of the
package. Its one argument is the path of the JavaScript library. A frame is a length of four bytes
and so many bytes. Each script gets a context without any host object; a script that is over its
time is ended by ending the process. When the driver is gone, however it went, its end of the pipe
closes and so ends the process, in the middle of a script too.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from queue import SimpleQueue
from threading import Thread
from typing import Any

MEMORY_BYTES = 128 * 1024 * 1024
"""What a script may hold at once."""
STACK_BYTES = 1024 * 1024
PROCESS_BYTES = 2 * 1024 * 1024 * 1024
"""Address space of the whole process, where the system can bound it: a net below the other bounds."""
JOBS = 100_000
"""Reactions of promises that a script may cause."""
VALUE_BYTES = 32 * 1024 * 1024
OVERTIME_S = 5.0
"""Seconds beyond a script's time after which the system ends the process, should no one else do."""


def main() -> None:
    quickjs = _library(sys.argv[1])
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sandbox.js"), encoding="utf-8") as file:
        prelude = file.read()
    _bound_process()
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        request = requests.get()
        if request["seconds"] is not None:
            signal.setitimer(signal.ITIMER_REAL, request["seconds"] + OVERTIME_S)
        reply = run(quickjs, prelude, request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write_all(len(reply).to_bytes(4, "big") + reply)


def run(quickjs: Any, prelude: str, request: dict[str, Any]) -> bytes:
    """The reply to a request: `{"value": …}`, or `{"error": text, "line": number}`; JSON in ASCII or UTF-8."""
    context = quickjs.Context()
    context.set_memory_limit(MEMORY_BYTES)
    context.set_max_stack_size(STACK_BYTES)
    try:
        functions = context.eval(prelude)
        context.set("functions", functions)
        evaluate, finish = context.eval("functions[0]"), context.eval("functions[1]")
        context.eval("delete globalThis.functions")
        begun = evaluate(request["script"])
        if begun != "{}":
            return _encoded(begun)
        for _ in range(JOBS):
            if not context.execute_pending_job():
                return _encoded(finish())
    except (quickjs.JSException, quickjs.StackOverflow, MemoryError) as error:
        first = str(error).strip().split("\n")[0] or "out of memory"
        return json.dumps({"error": first, "line": 0}).encode()
    return json.dumps({"error": f"more than {JOBS} reactions of promises", "line": 0}).encode()


def _encoded(text: Any) -> bytes:
    """The text of a reply, unless it is too long."""
    data = str(text).encode("utf-8", "replace")
    if len(data) > VALUE_BYTES:
        return json.dumps({"error": f"the value is larger than {VALUE_BYTES >> 20} MiB", "line": 0}).encode()
    return data


def _listen(requests: SimpleQueue[dict[str, Any]]) -> None:
    """Read requests until the pipe closes; then end the process at once."""
    try:
        while True:
            requests.put(json.loads(_read_exactly(int.from_bytes(_read_exactly(4), "big"))))
    finally:
        os._exit(0)


def _read_exactly(count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = os.read(0, min(count - len(data), 1 << 20))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _bound_process() -> None:
    """No core files, and no more memory than a script could need."""
    for name, limit in (("RLIMIT_CORE", 0), ("RLIMIT_AS", PROCESS_BYTES)):
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        try:
            resource.setrlimit(kind, (wanted, wanted))
        except (OSError, ValueError):
            continue


def _library(path: str) -> Any:
    loader = ExtensionFileLoader("_quickjs", path)
    spec = spec_from_loader("_quickjs", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
