"""Puts the values of secrets in the place of their references in what a caller grants to a run."""

from __future__ import annotations

import msgspec

from flowstone.errors import InputError
from flowstone.plan.model import Plan
from flowstone.ports.dialect import Given
from flowstone.ports.secrets import SCHEME
from flowstone.wiring import Wiring


def granted(wiring: Wiring, given: Given, plan: Plan) -> Given:
    """The same with what the plan itself grants, and the value of each secret that a field names.

    InputError tells every secret that there is not.
    """
    own = {connection.name: dict(connection.fields) for connection in plan.connections if connection.fields}
    given = msgspec.structs.replace(given, connections={**given.connections, **own})
    complaints: list[str] = []
    connections: dict[str, dict[str, str]] = {}
    for name, fields in given.connections.items():
        for field, value in fields.items():
            try:
                found = wiring.secrets.resolve(value) if value.startswith(SCHEME) else value
            except InputError as error:
                complaints.append(f"connection {name}.{field}: {error.message}")
            else:
                connections.setdefault(name, {})[field] = found
    if complaints:
        raise InputError("\n".join(complaints))
    return msgspec.structs.replace(given, connections=connections)
