"""Markdown text → document: the parser of akm Markdown workflows.

Shape, body and references are all checked in one pass, so that a file shows all its mistakes at once.
"""

from __future__ import annotations

import os.path
import re
from typing import Any

from flowstone.diagnostics import Place, Report
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common.fields import read_reference, read_schema, span_of
from flowstone.formats.akm_common.links import Links, Reading
from flowstone.formats.akm_markdown import grammar
from flowstone.formats.akm_markdown.body import check_title, join_body
from flowstone.formats.akm_markdown.envelope import read_envelope
from flowstone.formats.akm_markdown.steps import Draft, read_steps
from flowstone.formats.akm_markdown.unit import read_defaults
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.markdown import FrontMatter, Section, Sections, sections, split_front_matter
from flowstone.source.tree import Mapping, Node, Scalar
from flowstone.source.yaml import YamlRules, read_yaml
from flowstone.values import clip

YAML_RULES = YamlRules(aliases=True, anchors=True, tags=True, text_keys_only=False, max_depth=256)
"""The front matter is YAML 1.2; the bounds on depth that matter are those of schemas and values."""

_NAME = re.compile(bounds.PARAM_NAME)


def parse_markdown(text: str, path: str, report: Report) -> ir.Document | None:
    """The document of a workflow's text (line ends LF, no BOM); None when the report holds errors.

    `path` names the file in spans and, where the body has no level-1 heading, the workflow.
    """
    front = split_front_matter(text)
    if front is None:
        message = "A workflow must start with a YAML frontmatter block: --- on its first line and another ---."
        opened = text.startswith("---\n")
        hint = "end the front matter with a line that holds only ---" if opened else "begin the file with ---"
        report.error("frontmatter-missing", message, Place(1, 1), hint)
        return None
    root = read_yaml(front.yaml, YAML_RULES, report, front.yaml_line)
    if root is None or report.failed:
        return None
    if isinstance(root, Scalar) and root.value is None:
        root = Mapping((), Place(1, 1))
    return _Parser(front, path, report).parse(root)


class _Parser:
    def __init__(self, front: FrontMatter, path: str, report: Report) -> None:
        self._front = front
        self._path = path
        self._report = report
        self._links = Links()

    def parse(self, root: Node) -> ir.Document | None:
        top = Cursor(root, "", self._report, root.place).named("The frontmatter")
        found = top.mapping(grammar.ROOT_KEYS, label="Unknown workflow frontmatter key")
        if not isinstance(root, Mapping):
            return None
        envelope = read_envelope(found)
        drafts = self._steps(top, found)
        fields = self._settings(found)
        body = sections(self._front.body, self._front.body_line)
        check_title(body.title, self._front.body_line, self._front.body, self._report)
        texts = join_body(drafts, body, self._report) if "steps" in found else {}
        ids = [draft.id or draft.authored for draft in drafts]
        self._links.check(ids, frozenset(fields["params"] or ()), self._report)
        if self._report.failed:
            return None
        span = span_of(self._path, root)
        return ir.Document(
            source_ir_version=1,
            name=body.title or _base_name(self._path),
            description=envelope.description,
            tags=envelope.tags,
            triggers=(ir.DispatchTrigger(source=span),),
            jobs=(self._job(drafts, texts, span),),
            preamble=_without_title(body) or None,
            extensions={ir.MARKDOWN_EXTENSION: _extension(body)},
            source=span,
            **fields,
        )

    def _steps(self, top: Cursor, found: dict[str, Cursor]) -> tuple[Draft, ...]:
        if "steps" not in found:
            top.error("steps-missing", 'A workflow must declare "steps": a list.', "write steps: [{ id: first }]")
            return ()
        return read_steps(found["steps"], self._links)

    def _settings(self, found: dict[str, Cursor]) -> dict[str, Any]:
        return {
            "params": self._params(found["params"]) if "params" in found else None,
            "defaults": read_defaults(found["defaults"]) if "defaults" in found else None,
            "budget": _read_budget(found["budget"]) if "budget" in found else None,
            "outputs": self._outputs(found["outputs"]) if "outputs" in found else None,
        }

    def _params(self, at: Cursor) -> dict[str, dict[str, Any]]:
        found = at.mapping()
        if len(found) > bounds.PARAMS:
            at.error("params-limit", f'"params" declares {len(found)} params; at most {bounds.PARAMS} are allowed.')
        params = {}
        for name, entry in found.items():
            if not _NAME.fullmatch(name):
                self._bad_name("param", name, entry)
            schema = read_schema(entry, f'Param "{clip(name, 80)}" schema')
            params[name] = schema if schema is not None else {}
        return params

    def _bad_name(self, kind: str, name: str, entry: Cursor) -> None:
        message = f'The {kind} name "{clip(name, 80)}" is not allowed.'
        hint = 'use letters, digits and "_", no digit first'
        self._report.error(f"invalid-{kind}-name", message, entry.key_place, hint)

    def _outputs(self, at: Cursor) -> dict[str, ir.Export] | None:
        found = at.mapping()
        if len(found) > bounds.OUTPUTS:
            message = f'"outputs" declares {len(found)} outputs; at most {bounds.OUTPUTS} are allowed.'
            at.error("outputs-limit", message)
        exports = {}
        for name, entry in found.items():
            if not _NAME.fullmatch(name):
                self._bad_name("output", name, entry)
            export = self._export(name, entry)
            if export is not None:
                exports[name] = export
        return exports or None

    def _export(self, name: str, at: Cursor) -> ir.Export | None:
        at = at.named(f'Output "{clip(name, 80)}"')
        found = at.mapping(grammar.EXPORT_KEYS)
        if not isinstance(at.node, Mapping):
            return None
        schema = read_schema(found["schema"], f'{at.what} "schema"') if "schema" in found else None
        if "from" not in found:
            at.error("missing-key", f'{at.what} requires "from".', "write from: steps.<id>.output")
            return None
        source = found["from"].named(f'{at.what} "from"')
        reference = read_reference(source, ("steps",))
        if reference is None:
            return None
        self._links.readings.append(Reading(source.what, reference, source.place, None, "output"))
        return ir.Export(from_=reference.text, schema=schema)

    def _job(self, drafts: tuple[Draft, ...], texts: dict[str, Section], span: ir.Span) -> ir.Job:
        steps = tuple(_finish(draft, texts.get(draft.id or ""), self._path) for draft in drafts)
        return ir.Job(id=ir.MARKDOWN_JOB, needs=(), steps=steps, source=span)


def _finish(draft: Draft, section: Section | None, path: str) -> ir.Step:
    """The step of a draft that has no mistakes."""
    fields = dict(draft.fields)
    gate: ir.GateOptions | None = fields.pop("gate", None)
    if section is not None and section.gate_text:
        gate = ir.GateOptions(max_loops=gate.max_loops if gate else None, rubric=section.gate_text)
    text = section.text if section is not None else None
    if draft.routes or draft.unit.exec is not None:
        fields |= {"exec": draft.unit.exec, "instructions": text or None}
    else:
        fields |= {"uses": ir.BUILTIN_COMMAND, "with_": {"content": text}, "command_mode": "literal"}
    return ir.Step(id=draft.id or "", unit=draft.unit.options, gate=gate, source=span_of(path, draft.node), **fields)


def _read_budget(at: Cursor) -> ir.Budget | None:
    found = at.mapping(grammar.BUDGET_KEYS)
    units = found["max_units"].integer(1, bounds.UNITS) if "max_units" in found else None
    tokens = found["max_tokens"].integer(1) if "max_tokens" in found else None
    return None if units is None and tokens is None else ir.Budget(max_units=units, max_tokens=tokens)


def _without_title(body: Sections) -> str:
    """The preamble without the level-1 heading that opens it: that is the document's name."""
    first, _, rest = body.preamble.partition("\n")
    return rest.strip("\n") if body.title is not None and first.startswith("#") else body.preamble


def _extension(body: Sections) -> dict[str, Any]:
    extension: dict[str, Any] = {"workflowSchemaVersion": grammar.SCHEMA_VERSION}
    return {**extension, "preamble": body.preamble} if body.preamble else extension


def _base_name(path: str) -> str:
    return os.path.splitext(os.path.basename(path))[0]
