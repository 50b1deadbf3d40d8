"""Say what could be released now."""

from common import given

print(f"fit for release: {given('steps.build.output.wheel')}")
