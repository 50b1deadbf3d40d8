"""What one `Flowstone` object keeps between calls: its parts, its frozen plans, the leases of the runs it published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowstone.api.compiling import Compiling
from flowstone.wiring import Wiring

if TYPE_CHECKING:
    from flowstone.plan.model import Plan
    from flowstone.ports.store import Lease


class Session:
    """`plans` and `held` are by run id; a held lease is handed to the drive that takes the run up."""

    def __init__(self, wiring: Wiring, language: str | None) -> None:
        self.wiring = wiring
        self.compiling = Compiling(wiring, language)
        self.plans: dict[str, Plan] = {}
        self.held: dict[str, Lease] = {}

    def close(self) -> None:
        for lease in self.held.values():
            lease.release()
        self.held.clear()
        self.wiring.close()
