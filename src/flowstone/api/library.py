"""The stored workflows and tasks that steps compose, compiled by ref: implements `ports.library.Library`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowstone.errors import NotFound
from flowstone.ports.library import StoredTask, StoredWorkflow

if TYPE_CHECKING:
    from flowstone.api.compiling import Compiling
    from flowstone.formats.akm_task.document import TaskInput
    from flowstone.plan.model import Param


class StoredFiles:
    """Reads each file once, so that all that one freeze embeds of it is of one piece."""

    def __init__(self, compiling: Compiling) -> None:
        self._compiling = compiling
        self._workflows: dict[str, StoredWorkflow] = {}
        self._tasks: dict[str, StoredTask] = {}

    def workflow(self, ref: str) -> StoredWorkflow:
        if ref not in self._workflows:
            found = self._compiling.without_mistakes(self._compiling.stored(ref))
            self._workflows[ref] = StoredWorkflow(found.ref, found.compiled.plan)
        return self._workflows[ref]

    def task(self, ref: str) -> StoredTask:
        if ref not in self._tasks:
            self._tasks[ref] = self._read(ref)
        return self._tasks[ref]

    def _read(self, ref: str) -> StoredTask:
        from flowstone.formats.akm_common.targets import Family
        from flowstone.formats.akm_task.lower import lower_task
        from flowstone.formats.akm_task.parse import read_task
        from flowstone.plan.model import SourceFile

        wiring = self._compiling.wiring
        try:
            found = wiring.catalog.find(ref)
        except NotFound as error:
            if error.code != NotFound.code:
                raise
            raise NotFound(f"Task not found for ref: {ref}", hint=error.hint) from None
        source = wiring.source(found.path)
        task, _ = read_task(found.path, source)
        file = SourceFile(found.path, source.digest, source.size)
        name = found.ref.rpartition("/")[2]
        target = task.target.uses if task.target.family is Family.WORKFLOW else None
        inputs = tuple(_param(one) for one in task.inputs)
        return StoredTask(found.ref, lower_task(task, name, file), file, target, inputs, task.declares_inputs)


def _param(one: TaskInput) -> Param:
    from flowstone.plan.model import Param

    return Param(one.name, one.schema, required=one.required, has_default=one.has_default, default=one.default)
