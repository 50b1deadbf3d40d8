"""GitHub-shaped YAML text → document: the parser of akm's `.yml` workflows, a closed subset.

Every mistake is reported, each with a code, the path of the value and its place.
"""

from __future__ import annotations

import re

import msgspec

from flowstone.diagnostics import Diagnostic, Place, Report
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common.fields import span_of
from flowstone.formats.akm_common.links import Links
from flowstone.formats.akm_common.rules import utf8_size
from flowstone.formats.akm_github import grammar
from flowstone.formats.akm_github.steps import ReadStep, read_steps
from flowstone.formats.akm_github.triggers import read_triggers
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Node, Scalar, Sequence, plain
from flowstone.source.yaml import YamlRules, read_yaml
from flowstone.values import clip

YAML_RULES = YamlRules(
    max_nodes=bounds.YAML_NODES,
    max_depth=bounds.YAML_DEPTH,
    codes={"second-document": "invalid-yaml", "merge-key": "invalid-yaml"},
)
_JOB_ID = re.compile(bounds.GITHUB_ID)
_OUTRANKING = frozenset({"unsupported-github-expression", "unsafe-key", "yaml-custom-tag"})


def parse_github(text: str, path: str, report: Report) -> ir.Document | None:
    """The document of a workflow's text; None when the report holds errors.

    Messages begin with the code, since scripts read it there too.
    """
    own = Report()
    found = _read(text, path, own)
    report.extend(_spell(own))
    return None if own.failed else found


def owns(text: str) -> bool:
    """Whether a text is a workflow of this format at all: a mapping with both `on` and `jobs`."""
    root = read_yaml(text, YAML_RULES, Report())
    return isinstance(root, Mapping) and root.get("on") is not None and root.get("jobs") is not None


def _read(text: str, path: str, report: Report) -> ir.Document | None:
    if utf8_size(text) > bounds.SOURCE_BYTES:
        report.error("source-size-limit", "the file has over 1 MiB", Place())
        return None
    root = read_yaml(text, YAML_RULES, report)
    if root is None:
        return None
    _scan(root, "", report)
    if not isinstance(root, Mapping):
        report.error("mapping-required", "the document must be a mapping of name, on and jobs", root.place)
        return None
    return _Parser(path, report).parse(root)


def _spell(report: Report) -> list[Diagnostic]:
    """The diagnostics with their code in front; where a text is refused as such, only that is said."""
    found = report.sorted()
    refused = {d.place for d in found if d.code in _OUTRANKING}
    return [
        msgspec.structs.replace(d, message=f"{d.code}: {d.message}")
        for d in found
        if d.place not in refused or d.code in _OUTRANKING
    ]


def _scan(node: Node, path: str, report: Report) -> None:
    """Refuse expressions and unsafe keys anywhere in the tree."""
    match node:
        case Scalar():
            _refuse_expression(node, path, report)
        case Sequence(items=items):
            for index, item in enumerate(items):
                _scan(item, f"{path}[{index}]", report)
        case Mapping(entries=entries):
            for entry in entries:
                inner = f"{path}.{entry.name}" if path else entry.name
                _refuse_expression(entry.key, inner, report)
                if entry.name in grammar.UNSAFE_KEYS:
                    message = f'"{clip(inner, 200)}" is not allowed as a key'
                    report.error("unsafe-key", message, entry.key.place)
                _scan(entry.value, inner, report)


def _refuse_expression(scalar: Scalar, path: str, report: Report) -> None:
    if grammar.EXPRESSION in scalar.text:
        message = f'"{clip(path, 200)}" holds "${{{{": expressions and contexts are not evaluated'
        hint = "write the value itself, or read it from the environment in a script"
        report.error("unsupported-github-expression", message, scalar.place, hint)


class _Parser:
    def __init__(self, path: str, report: Report) -> None:
        self._path = path
        self._report = report
        self._links = Links()

    def parse(self, root: Mapping) -> ir.Document | None:
        top = Cursor(root, "", self._report, root.place)
        found = top.mapping(grammar.ROOT_KEYS)
        for key in grammar.ROOT_KEYS:
            if key not in found:
                top.error("missing-key", f'the document requires "{key}"')
        name = found["name"].text(empty=False) if "name" in found else None
        triggers = read_triggers(found["on"], self._path, self._report) if "on" in found else ()
        job = self._read_jobs(found["jobs"]) if "jobs" in found else None
        if self._report.failed or name is None or job is None:
            return None
        return ir.Document(
            source_ir_version=1,
            name=name,
            triggers=triggers,
            jobs=(job,),
            source=span_of(self._path, root),
        )

    def _read_jobs(self, at: Cursor) -> ir.Job | None:
        jobs = at.mapping()
        if not isinstance(at.node, Mapping):
            return None
        hint = "split it into workflows of one job and compose them with uses: workflows/<ref>"
        if len(jobs) != 1:
            odd = list(jobs.values())[1].key_place if jobs else at.place
            message = f"{at.what} must hold exactly one job, got {len(jobs)}"
            self._report.error("multi-job-unsupported", message, odd, hint)
        if not jobs:
            return None
        job_id, job = next(iter(jobs.items()))
        if not _JOB_ID.fullmatch(job_id):
            message = f'"{clip(job_id, 140)}" is no job id'
            rule = 'use letters, digits, "_" and "-", no digit or dash first, at most 128 characters'
            self._report.error("invalid-job-id", message, job.key_place, rule)
        return self._read_job(job_id, job)

    def _read_job(self, job_id: str, at: Cursor) -> ir.Job | None:
        found = at.mapping(grammar.JOB_KEYS)
        if not isinstance(at.node, Mapping):
            return None
        for key in ("runs-on", "steps"):
            if key not in found:
                at.error("missing-key", f'{at.what} requires "{key}"')
        if "needs" in found:
            _check_needs(found["needs"])
        if "runs-on" in found and plain(found["runs-on"].node) != list(grammar.RUNNER):
            message = f"{found['runs-on'].what} must be exactly [self-hosted]: akm runs on this machine"
            found["runs-on"].error("unsupported-runner", message, "write runs-on: [self-hosted]")
        name = found["name"].text(empty=False) if "name" in found else None
        steps = self._read_steps(found["steps"]) if "steps" in found else ()
        self._links.check([step.id for step in steps], frozenset(), self._report)
        extensions = {ir.GITHUB_EXTENSION: {"runsOn": list(grammar.RUNNER)}}
        made = tuple(step.step for step in steps if step.step is not None)
        span = span_of(self._path, at.node)
        return ir.Job(id=job_id, name=name, needs=(), steps=made, extensions=extensions, source=span)

    def _read_steps(self, at: Cursor) -> tuple[ReadStep, ...]:
        return read_steps(at, self._path, self._links, self._report)


def _check_needs(at: Cursor) -> None:
    if isinstance(at.node, Sequence) and not at.node.items:
        return
    if isinstance(at.node, Mapping) or at.is_null:
        at.items()
        return
    message = f"{at.what} must be empty: a workflow has one job, so there is nothing that it can need"
    hint = "leave needs out; the steps of the one job run in order"
    at.error("multi-job-unsupported", message, hint)
