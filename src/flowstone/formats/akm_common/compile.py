"""Source text → compiled plan or diagnostics, for both akm formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from flowstone.diagnostics import Diagnostic, Place, Report, errors_of
from flowstone.formats.akm_common.codes import usage_code_of
from flowstone.formats.akm_common.document import Document
from flowstone.formats.akm_common.lower import lower
from flowstone.formats.registry import AKM_GITHUB, AKM_MARKDOWN, Compiled
from flowstone.plan import bounds
from flowstone.plan.model import SourceFile
from flowstone.source.file import SourceText


def compile_markdown(path: str, source: SourceText, load: Callable[[str], SourceText]) -> Compiled:
    """Compile a Markdown workflow; `path` names it, and nothing further is loaded."""
    from flowstone.formats.akm_markdown.parse import parse_markdown

    return _compile(path, source, AKM_MARKDOWN, parse_markdown)


def compile_github(path: str, source: SourceText, load: Callable[[str], SourceText]) -> Compiled:
    """Compile a GitHub-shaped YAML workflow; `path` names it, and nothing further is loaded."""
    from flowstone.formats.akm_github.parse import parse_github

    return _compile(path, source, AKM_GITHUB, parse_github)


def usage_code(diagnostics: Iterable[Diagnostic]) -> str:
    """The error code under which a command refuses a source: that of its first mistake."""
    return usage_code_of([found.code for found in errors_of(diagnostics)])


@lru_cache(maxsize=2)
def _compile(
    path: str, source: SourceText, language: str, parse: Callable[[str, str, Report], Document | None]
) -> Compiled:
    """Kept for a moment: a command reads a file once for the flags that it declares, and once to run it."""
    report = Report()
    if source.size > bounds.SOURCE_BYTES:
        message = f"source-size-limit: the file has {source.size:,} bytes; at most 1 MiB are allowed"
        report.error("source-size-limit", message, Place())
        document = None
    else:
        document = parse(source.text, path, report)
    file = SourceFile(source.path, source.digest, source.size)
    plan = None if document is None or report.failed else lower(document, file)
    return Compiled(plan, report.sorted(), language, f"sha256:{source.digest}")
