"""A command on a terminal of its own, and what it draws there."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios


def on_a_terminal(project, environment, *argv, columns=80, **variables):
    """Run flowstone on a pseudo-terminal; returns exit code and what was drawn."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", "from flowstone.cli.flowstone.main import main; main()", *argv],
        cwd=project,
        env={**environment, "TERM": "xterm-256color", **variables},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    drawn = b""
    while select.select([master], [], [], 60)[0]:
        try:
            chunk = os.read(master, 65_536)
        except OSError:
            break
        if not chunk:
            break
        drawn += chunk
    os.close(master)
    return process.wait(timeout=60), drawn.decode()
