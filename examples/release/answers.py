"""Run the installed command and see that it tells its version."""

import subprocess

from common import given

command = given("steps.install.output.command")
answer = subprocess.run([str(command), "--version"], check=True, capture_output=True, text=True).stdout
if "flowstone" not in answer:
    raise SystemExit(f"{command} answered {answer!r}")
print(answer.strip())
