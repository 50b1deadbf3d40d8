"""The stored assets that steps use, read and compiled by ref: implements `ports.library.Library`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

from flowstone.errors import NotFound
from flowstone.ports.library import StoredAgent, StoredCommand, StoredScript, StoredTask, StoredWorkflow

if TYPE_CHECKING:
    from flowstone.api.model import Workflow
    from flowstone.formats.akm_prompts.asset import PromptAsset
    from flowstone.formats.akm_task.document import TaskInput
    from flowstone.plan.model import Param, SourceFile
    from flowstone.wiring import Wiring


class Sources(Protocol):
    """What compiles a file; `api.compiling` is it, which makes a library for each freeze."""

    wiring: Wiring

    def stored(self, ref: str) -> Workflow:
        """Compile an asset of the bundles."""

    def without_mistakes(self, workflow: Workflow) -> Workflow:
        """The workflow as it is; CompileError where it has mistakes."""


class StoredFiles:
    """Reads each file once, so that all that one freeze embeds of it is of one piece."""

    def __init__(self, compiling: Sources) -> None:
        self._compiling = compiling
        self._workflows: dict[str, StoredWorkflow] = {}
        self._tasks: dict[str, StoredTask] = {}
        self._prompts: dict[str, tuple[str, PromptAsset, SourceFile]] = {}

    def workflow(self, ref: str) -> StoredWorkflow:
        if ref not in self._workflows:
            found = self._compiling.without_mistakes(self._compiling.stored(ref))
            self._workflows[ref] = StoredWorkflow(found.ref, found.compiled.plan)
        return self._workflows[ref]

    def task(self, ref: str) -> StoredTask:
        if ref not in self._tasks:
            self._tasks[ref] = self._read(ref)
        return self._tasks[ref]

    def command(self, ref: str, arguments: str) -> StoredCommand:
        from flowstone.formats.akm_prompts.template import expand

        found, asset, source = self._prompt(ref)
        content = expand(asset.text, arguments)
        return StoredCommand(
            found, content, source, asset.agent, asset.engine, asset.model, asset.inference, asset.tools
        )

    def agent(self, ref: str) -> StoredAgent:
        found, asset, source = self._prompt(ref)
        return StoredAgent(found, asset.text, source, asset.engine, asset.model, asset.inference, asset.tools)

    def script(self, ref: str) -> StoredScript:
        from flowstone.plan.model import SourceFile
        from flowstone.values import sha256_hex

        found = self._compiling.wiring.catalog.find(ref)
        source = SourceFile(found.path, sha256_hex(found.data), len(found.data))
        return StoredScript(found.ref, os.path.basename(found.path), found.data, source)

    def _prompt(self, ref: str) -> tuple[str, PromptAsset, SourceFile]:
        """A command or an agent with its canonical ref and its file."""
        if ref not in self._prompts:
            from flowstone.formats.akm_prompts.asset import read_prompt
            from flowstone.plan.model import SourceFile
            from flowstone.source.file import text_of

            found = self._compiling.wiring.catalog.find(ref)
            source = text_of(found.data, found.path)
            shown = os.path.relpath(found.path, self._compiling.wiring.cwd)
            asset = read_prompt(shown, source, ref.rpartition("//")[2].partition("/")[0])
            self._prompts[ref] = (found.ref, asset, SourceFile(found.path, source.digest, source.size))
        return self._prompts[ref]

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
        plan = lower_task(task, name, file)
        return StoredTask(found.ref, plan, file, target, inputs, task.declares_inputs, task.redact)


def _param(one: TaskInput) -> Param:
    from flowstone.plan.model import Param

    return Param(one.name, one.schema, required=one.required, has_default=one.has_default, default=one.default)
