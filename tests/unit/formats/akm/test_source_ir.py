"""Source IR v1: encoded, decoded strictly, and equal for equal meaning in both formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flowstone.diagnostics import Report
from flowstone.errors import SourceError
from flowstone.formats.akm_common.document import Document
from flowstone.formats.akm_common.lower import lower
from flowstone.formats.akm_common.source_ir import decode, encode, portable_bytes
from flowstone.formats.akm_github.parse import parse_github
from flowstone.formats.akm_markdown.parse import parse_markdown
from tests.unit.formats.akm.test_lower import BODY, RICH

GITHUB = """name: W
on: { schedule: [{ cron: '0 6 * * *' }], workflow_dispatch: }
jobs:
  j:
    runs-on: [self-hosted]
    steps:
      - { id: z, run: echo 1, shell: bash, env: { A: 1 }, working-directory: sub }
      - { id: a, uses: tasks/t, with: { n: { from: steps.z.output }, m: {} } }
      - { id: b, uses: akm/command, with: { ref: commands/c, arguments: x } }
"""


def _document(text: str) -> Document:
    report = Report()
    parse = parse_github if text.startswith("name") else parse_markdown
    found = parse(text, "w", report)
    assert found is not None, report.sorted()
    return found


MARKDOWN = f"---{RICH}---\n\n# T\n\nMore.\n\n{BODY}"


@pytest.mark.parametrize("text", [MARKDOWN, GITHUB])
def test_a_round_trip_loses_nothing(text: str) -> None:
    document = _document(text)
    again = decode(encode(document))
    assert encode(again) == encode(document)
    assert lower(again) == lower(document)


def test_equal_meaning_has_equal_portable_bytes() -> None:
    markdown = _document("---\nsteps:\n  - id: a\n  - id: b\n---\n\n# W\n\n## a\n\nDo a.\n\n## b\n\nDo b.\n")
    github = _document(
        "name: W\non: { workflow_dispatch: }\njobs:\n  any:\n    runs-on: [self-hosted]\n    steps:\n"
        "      - { id: a, uses: akm/command, with: { content: Do a. } }\n"
        "      - { id: b, uses: akm/command, with: { content: Do b. } }\n"
    )
    assert portable_bytes(markdown) == portable_bytes(github)
    assert encode(markdown) != encode(github)


def test_absent_parts_are_left_out() -> None:
    value = json.loads(encode(_document("---\nsteps:\n  - id: a\n---\n\n## a\n\nDo a.\n")))
    assert value["sourceIrVersion"] == 1
    assert value["jobs"][0]["id"] == "contract"
    assert set(value) == {"sourceIrVersion", "name", "triggers", "jobs", "source", "extensions"}
    step = value["jobs"][0]["steps"][0]
    assert step["uses"] == "akm/command"
    assert step["commandMode"] == "literal"


def _changed(text: str, path: str, new: Any) -> bytes:
    value = json.loads(encode(_document(text)))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at = value
    for part in parents:
        at = at[part]
    at[last] = new
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("text", "path", "new", "has"),
    [
        (MARKDOWN, "extra", 1, "extra"),
        (MARKDOWN, "sourceIrVersion", 2, "sourceIrVersion"),
        (MARKDOWN, "jobs", [], "exactly one job"),
        (MARKDOWN, "extensions", {"nohost": 1}, "no owner"),
        (MARKDOWN, "params.a-b", {}, "no name"),
        (MARKDOWN, "params.xs", {"const": 1}, "const"),
        (MARKDOWN, "budget.maxUnits", 10_001, "maxUnits"),
        (MARKDOWN, "jobs.0.needs", ["k"], "needs"),
        (MARKDOWN, "jobs.0.steps.0.id", "a.b", "no step id"),
        (MARKDOWN, "jobs.0.steps.0.run", "echo x", "exactly one of"),
        (MARKDOWN, "jobs.0.steps.0.commandMode", "stored-ref", "commandMode"),
        (MARKDOWN, "jobs.0.steps.1.map.over", "steps.u.output", "comes later"),
        (MARKDOWN, "jobs.0.steps.1.map.concurrency", 65, "concurrency"),
        (MARKDOWN, "jobs.0.steps.1.unit.retry.on", ["zz"], "retry.on"),
        (MARKDOWN, "jobs.0.steps.2.exec.command", [""], "non-empty"),
        (MARKDOWN, "jobs.0.steps.2.exec.cwd", "../x", "cwd"),
        (MARKDOWN, "jobs.0.steps.2.gate.maxLoops", 101, "maxLoops"),
        (MARKDOWN, "jobs.0.steps.3.route.defaultStepId", "a", "back to step"),
        (MARKDOWN, "outputs.z.from", "params.y", "output of a step"),
        (GITHUB, "triggers.0.cron", "@daily", "@daily"),
        (GITHUB, "triggers.0.ordinal", 1, "ordinals"),
        (GITHUB, "jobs.0.steps.0.run", "a && b", "'&'"),
        (GITHUB, "jobs.0.steps.0.shell", "fish", "fish"),
        (GITHUB, "jobs.0.steps.1.uses", "docker://x", "Docker"),
        (GITHUB, "jobs.0.steps.1.with", {"__proto__": 1}, "__proto__"),
        (GITHUB, "jobs.0.steps.0.env", {"A": 1}, "env"),
    ],
)
def test_every_rule_is_applied_again(text: str, path: str, new: Any, has: str) -> None:
    with pytest.raises(SourceError, match="The source IR is not valid") as refused:
        decode(_changed(text, path, new))
    assert has in refused.value.message


def test_bounds() -> None:
    with pytest.raises(SourceError, match="2 MiB"):
        decode(b" " * (2 * 1024 * 1024 + 1))
    with pytest.raises(SourceError, match="nodes"):
        decode(b"[" + b"1," * 50_001 + b"1]")
    with pytest.raises(SourceError, match="levels deep"):
        decode(b"[" * 140 + b"]" * 140)
    with pytest.raises(SourceError, match="not valid"):
        decode(b'{"name": "\\ud800"}')


@pytest.mark.parametrize("inner", ["items: {", "properties: { z: {"])
def test_what_lints_clean_can_be_decoded(inner: str) -> None:
    schema = f"{{ {inner * 60} type: string {'}' * (60 * inner.count('{'))} }}"
    document = _document(f"---\nsteps:\n  - id: a\n    unit: {{ output: {schema} }}\n---\n\n## a\n\nDo a.\n")
    assert encode(decode(encode(document))) == encode(document)
