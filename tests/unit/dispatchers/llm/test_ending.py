"""A process that used the model client ends in order, however soon after the last answer."""

from __future__ import annotations

import subprocess
import sys
import time

from flowstone.dispatchers.llm.ending import PATIENCE_S, come_to_rest
from flowstone.testing.model_server import ModelServer

ASK = """
import asyncio, sys
from flowstone.dispatchers.llm.client import ModelClient

async def main():
    client = ModelClient()
    await asyncio.gather(*(client.post(sys.argv[1], {}, b'{"messages": [{"content": "?"}]}') for _ in range(16)))
    await client.close()

asyncio.run(main())
"""


def test_a_process_may_end_right_after_its_client_is_closed():
    with ModelServer() as server:
        started = [
            subprocess.Popen([sys.executable, "-c", ASK, server.endpoint], stderr=subprocess.PIPE) for _ in range(6)
        ]
        ends = [(process.communicate()[1], process.returncode) for process in started]
    assert ends == [(b"", 0)] * 6


def test_a_process_without_such_threads_waits_for_none():
    began = time.monotonic()
    come_to_rest()
    assert time.monotonic() - began < PATIENCE_S
