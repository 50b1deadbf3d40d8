"""The published JSON Schemas: as generated, valid, and at one with the parsers."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import jsonschema_rs
import pytest

from flowstone.diagnostics import Report, errors_of
from flowstone.formats.akm_common.compile import compile_github, compile_markdown
from flowstone.formats.akm_github.parse import YAML_RULES as GITHUB_RULES
from flowstone.formats.akm_markdown.parse import YAML_RULES as MARKDOWN_RULES
from flowstone.formats.akm_task.parse import parse_task
from flowstone.formats.akm_task.tree import RULES as TASK_RULES
from flowstone.formats.orun.grammar import YAML as ORUN_RULES
from flowstone.formats.schemas import FILES, schema_for, schema_text
from flowstone.source.file import text_of
from flowstone.source.markdown import split_front_matter
from flowstone.source.tree import plain
from flowstone.source.yaml import YamlRules, read_yaml
from tests.unit.formats.akm_task.texts import TASKS

CORPUS = Path(__file__).parents[2] / "conformance" / "akm" / "cases.jsonl"
INEXPRESSIBLE = {
    "step-id-duplicate",
    "duplicate-step-id",
    "exec-cwd",
    "argv-entry",
    "invalid-llm",
    "invalid-schema",
    "unknown-section",
    "section-missing",
    "section-twice",
    "section-empty",
    "gate-twice",
    "input-later-step",
    "input-unknown-step",
    "reference-later-step",
    "output-unknown-step",
    "route-backward",
    "route-self",
    "route-unknown-step",
    "route-duplicate",
    "unsupported-github-expression",
    "builtin-command-inputs",
    "with-unsupported",
    "input-binding-invalid",
}
"""Codes of rules that join several places, look at bytes or at the body: beyond a JSON Schema."""


@pytest.mark.parametrize("language", FILES)
def test_the_files_are_the_generated_ones(language: str) -> None:
    committed = files("flowstone").joinpath("schemas", FILES[language]).read_text(encoding="utf-8")
    assert committed == schema_text(language), "run python -m flowstone.formats.schemas src/flowstone/schemas"


@pytest.mark.parametrize("language", FILES)
def test_they_are_valid_schemas(language: str) -> None:
    jsonschema_rs.meta.validate(schema_for(language))


def _tree(text: str, rules: YamlRules) -> object | None:
    report = Report()
    tree = read_yaml(text, rules, report)
    return None if tree is None or report.failed else plain(tree)


def test_parsers_and_schemas_agree_on_the_corpus() -> None:
    markdown = jsonschema_rs.validator_for(schema_for("akm-markdown"))
    github = jsonschema_rs.validator_for(schema_for("akm-github"))
    right = wrong = 0
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        for path, text in json.loads(line)["files"].items():
            if not path.startswith("bundle/workflows/") or not path.endswith((".md", ".yml")):
                continue
            source = text_of(text.encode(), path)
            if path.endswith(".md"):
                front = split_front_matter(source.text)
                value = _tree(front.yaml, MARKDOWN_RULES) if front else None
                valid, compiled = markdown.is_valid(value), compile_markdown(path, source, None)
            else:
                value = _tree(source.text, GITHUB_RULES)
                valid, compiled = github.is_valid(value), compile_github(path, source, None)
            told = {found.code for found in errors_of(compiled.diagnostics)}
            if value is None or (valid and told <= INEXPRESSIBLE):
                right += not told
                continue
            assert not valid, (path, told, text)
            assert told, (path, text)
            wrong += 1
    assert right > 250
    assert wrong > 80


TASK_INEXPRESSIBLE = {
    "invalid-cron",
    "schedule-inputs",
    "invalid-schema",
    "invalid-default",
    "invalid-timeout",
    "builtin-command-inputs",
    "with-unsupported",
    "env-unsupported",
    "output-unsupported",
    "secret-in-env",
    "working-directory-escape",
    "yaml-text-limit",
    "yaml-item-limit",
    "yaml-key-limit",
}
"""Rules of tasks that join several places or look into a text."""


@pytest.mark.parametrize("text", TASKS)
def test_the_schema_of_tasks_agrees_with_their_parser(text: str) -> None:
    value = _tree(text, TASK_RULES)
    if value is None:
        return
    report = Report()
    parse_task(text, report)
    told = {found.code for found in errors_of(report.sorted())}
    valid = jsonschema_rs.validator_for(schema_for("akm-task")).is_valid(value)
    assert valid is (not told) or (valid and told <= TASK_INEXPRESSIBLE), told


ORUN = """apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: w }}
inputs: {{ a: {{ type: string, default: x }} }}
connections: {{ gh: {{ type: http.bearer }} }}
maxParallel: 2
steps:
  - name: s
    {}
"""


@pytest.mark.parametrize(
    ("step", "valid"),
    [
        ("run: [echo, 1]", True),
        ("action: sleep\n    with: { duration: 1s }", True),
        ("workflow: x.yaml", True),
        ("run: [a]\n    retry: { maxRetries: 1, kind: fixed }", True),
        ("run: [a]\n    poll: { interval: 1s, timeout: 2s, until: 'true' }", True),
        ("run: [a]\n    poll: { interval: 1s }", False),
        ("run: echo", False),
        ("action: nope", False),
        ("needs: [a]", False),
        ("run: [a]\n    extra: 1", False),
        ("run: [a]\n    retry: { kind: other }", False),
    ],
)
def test_orun(step: str, valid: bool) -> None:
    validator = jsonschema_rs.validator_for(schema_for("orun"))
    assert validator.is_valid(_tree(ORUN.format(step), ORUN_RULES)) is valid


JOB = "apiVersion: orun.dev/v1\nkind: Job\nmetadata: {{ name: j }}\nsteps:\n  - name: s\n    {}\n"


@pytest.mark.parametrize(
    ("step", "valid"),
    [
        ("run: echo 1", True),
        ("approval: { prompt: Go? }", True),
        ("run: a\n    approval: { prompt: Go?, timeout: 1h, onTimeout: approve }", True),
        ("workflow: x.yaml\n    with: { a: 1 }\n    connections: { gh: { token: 'secret://env/A' } }", True),
        ("run: a\n    retry: { maxRetries: 1, kind: fixed }\n    onFailure: continue", True),
        ("timeout: 1m", False),
        ("run: [echo, 1]", False),
        ("run: a\n    needs: [b]", False),
        ("run: a\n    onFailure: explode", False),
        ("approval: {}", False),
        ("approval: { prompt: Go?, onTimeout: maybe }", False),
        ("workflow: x.yaml\n    connections: { gh: { token: abc } }", False),
    ],
)
def test_jobs(step: str, valid: bool) -> None:
    validator = jsonschema_rs.validator_for(schema_for("orun-job"))
    assert validator.is_valid(_tree(JOB.format(step), ORUN_RULES)) is valid


def test_the_examples_of_jobs_and_blueprints_are_valid() -> None:
    examples = Path(__file__).parents[3] / "examples"
    for schema, names in {
        "orun-job": ["deploy/job.yaml", "features/job.yaml", "features/approval.yaml"],
        "orun-blueprint": ["deploy/service.yaml"],
    }.items():
        validator = jsonschema_rs.validator_for(schema_for(schema))
        assert all(validator.is_valid(_tree((examples / name).read_text("utf-8"), ORUN_RULES)) for name in names)
