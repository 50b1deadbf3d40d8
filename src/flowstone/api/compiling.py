"""Turns a target (a file, an asset ref, a remote reference) into a compiled or a frozen workflow; writes nothing."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from flowstone.api.model import Workflow
from flowstone.api.texts import is_path
from flowstone.diagnostics import errors_of
from flowstone.errors import CompileError, FreezeError, SourceError
from flowstone.source.remote import is_remote
from flowstone.wiring import DIALECTS, Wiring

if TYPE_CHECKING:
    from flowstone.formats.registry import Compiled
    from flowstone.freeze.composition import Composition
    from flowstone.freeze.frozen import Frozen
    from flowstone.plan.model import Plan
    from flowstone.source.file import SourceText


class Compiling:
    """The way from a target to a frozen plan; `language` has every target read as a file of that language."""

    def __init__(self, wiring: Wiring, language: str | None) -> None:
        self.wiring = wiring
        self.language = language

    def compile(self, target: str) -> Workflow:
        """Compile a file or an asset ref. Mistakes are in the result's `diagnostics`, not raised."""
        target = os.fspath(target)
        if is_remote(target):
            return self._compiled_remote(target)
        if self.language is not None or is_path(target):
            path = self.wiring.place(target)
            source = self._source(target, path)
            return Workflow(target, source, self._compiled(target, path, source), partial(self._ref_of, path))
        return self.stored(target)

    def stored(self, ref: str) -> Workflow:
        """Compile an asset of the bundles, whatever lies in the working folder; NotFound where there is none."""
        found = self.wiring.catalog.find(ref)
        source = self.wiring.source(found.path)
        shown = os.path.relpath(found.path, self.wiring.cwd)
        return Workflow(shown, source, self._compiled(shown, found.path, source), lambda: found.ref)

    def sound(self, target: str) -> Workflow:
        """Compile a source that must have no mistakes; else CompileError with all of them."""
        return self.without_mistakes(self.compile(target))

    def without_mistakes(self, workflow: Workflow) -> Workflow:
        """The workflow as it is; CompileError with all mistakes where it has some."""
        errors = errors_of(workflow.diagnostics)
        if errors or workflow.compiled.plan is None:
            from flowstone.formats.registry import dialect_of

            code = dialect_of(DIALECTS[0] if workflow.compiled.format.startswith("akm") else DIALECTS[1]).code
            raise CompileError(workflow.path, errors, code=code([d.code for d in errors]))
        return workflow

    def freeze(self, workflow: Workflow) -> Frozen:
        """Settle all that the configuration says about a sound workflow; FreezeError or ConfigError."""
        from flowstone.freeze.frozen import freeze

        plan: Plan = workflow.compiled.plan
        catalog = self.wiring.catalog if plan.limits.host_capped else None
        return freeze(plan, self.wiring.engines(plan), catalog, self._composition(workflow, plan))

    def unchanged(self, workflow: Workflow, plan: Plan) -> None:
        """The guard before publication: every file that compiling and freezing have read is what it was."""
        from flowstone.source.file import digest_of

        changed = None if self._source_digest(workflow) == workflow.source.digest else workflow.path
        for file in plan.read_set if plan.limits.host_capped else ():
            if changed is None and digest_of(self.wiring.place(file.path)) != file.digest:
                changed = os.path.relpath(file.path, self.wiring.cwd)
        if changed is not None:
            raise FreezeError(
                f"{changed} changed while the plan of {workflow.path} was frozen; nothing was published.",
                code="WORKFLOW_SOURCE_CHANGED",
                hint="Run the command again.",
            )

    def _source_digest(self, workflow: Workflow) -> str:
        digest: str = self.wiring.source(workflow.source.path).digest
        return digest

    def _composition(self, workflow: Workflow, plan: Plan) -> Composition | None:
        """What the steps of a workflow may compose; None for one that composes nothing."""
        from flowstone.plan.checks.structure import targets_of

        if not targets_of(plan):
            return None
        from flowstone.api.library import StoredFiles
        from flowstone.freeze.composition import Composition

        return Composition(StoredFiles(self), workflow.ref)

    def _source(self, target: str, path: str) -> SourceText:
        """The text of the file that `target` names; a complaint calls it by the same name."""
        try:
            return self.wiring.source(path)
        except SourceError as error:
            text = error.message.removeprefix(f"{path}: ")
            raise SourceError(f"{target}: {text}", code=error.code, hint=error.hint) from None

    def _compiled(self, shown: str, path: str, source: SourceText) -> Compiled:
        from flowstone.formats.registry import compile_source

        return compile_source(shown, path, source, self.language, self.wiring.source)

    def _compiled_remote(self, target: str) -> Workflow:
        """An orun workflow from elsewhere; what it nests lies beside it there."""
        from flowstone.formats.registry import ORUN, compile_source

        source = self.wiring.fetch(target).source
        compiled = compile_source(source.path, source.path, source, ORUN, self.wiring.source)
        return Workflow(source.path, source, compiled, lambda: source.path)

    def _ref_of(self, path: str) -> str:
        return self.wiring.catalog.ref_of(path) or os.path.realpath(path)
