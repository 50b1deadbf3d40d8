"""Languages → their published JSON Schemas (draft 2020-12), generated from the parsers' own tables.

`python -m flowstone.formats.schemas FOLDER` writes them; the ones in the package are its output.
"""

from __future__ import annotations

from typing import Any

from flowstone.formats.registry import AKM_GITHUB, AKM_MARKDOWN, AKM_TASK, ORUN, ORUN_JOB

ORUN_BLUEPRINT = "orun-blueprint"
"""No language of its own: its hooks are a job."""

FILES = {
    AKM_MARKDOWN: "akm-workflow.json",
    AKM_GITHUB: "akm-github-workflow.json",
    AKM_TASK: "akm-task.json",
    ORUN: "orun-workflow.json",
    ORUN_JOB: "orun-job.json",
    ORUN_BLUEPRINT: "orun-blueprint.json",
}


def schema_for(language: str) -> dict[str, Any]:
    """The JSON Schema of a language; KeyError for one that there is not."""
    match language:
        case "akm-markdown":
            from flowstone.formats.akm_markdown.schema import markdown_schema

            return markdown_schema()
        case "akm-github":
            from flowstone.formats.akm_github.schema import github_schema

            return github_schema()
        case "akm-task":
            from flowstone.formats.akm_task.schema import task_schema

            return task_schema()
        case "orun":
            from flowstone.formats.orun.schema import orun_schema

            return orun_schema()
        case "orun-job":
            from flowstone.formats.orun_job.schema import job_schema

            return job_schema()
        case "orun-blueprint":
            from flowstone.formats.orun_job.schema import blueprint_schema

            return blueprint_schema()
        case _:
            raise KeyError(language)


def schema_text(language: str) -> str:
    """The schema as it stands in its file."""
    from flowstone.values import pretty_json

    return pretty_json(schema_for(language)) + "\n"


def main(folder: str) -> None:
    import os

    for language, name in FILES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as out:
            out.write(schema_text(language))


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
