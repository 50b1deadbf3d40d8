"""The documentation is true: links resolve, files are quoted as they are, commands print what is shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, commands, environment, replay, settled

LINK = re.compile(r"\[[^\]]*\]\((?!https?://)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
FENCE = re.compile(r"^(`{3,}).*?^\1$", re.M | re.S)
WORKPLACE = re.compile(rf"{re.escape(str(ROOT))}|/tmp/|/root/|index-url")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def with_blocks(*kinds: str) -> list[Path]:
    return [page for page in PAGES if any(block["kind"] in kinds for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_resolve(page: Path) -> None:
    prose = FENCE.sub("", page.read_text("utf-8"))
    broken = []
    for link in LINK.finditer(prose):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        if not target.exists() or (link["anchor"] and target.suffix == ".md" and link["anchor"] not in anchors(target)):
            broken.append(link[0])
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_knows_the_machine_that_it_was_written_on(page: Path) -> None:
    assert WORKPLACE.findall(page.read_text("utf-8")) == []


@pytest.mark.parametrize("page", with_blocks("file"), ids=name_of)
def test_quoted_files_are_the_files(page: Path) -> None:
    for block in blocks(page):
        if block["kind"] == "file":
            assert block["body"] == (ROOT / block["name"]).read_text("utf-8"), block["name"]


@pytest.mark.parametrize("page", with_blocks("run"), ids=name_of)
def test_commands_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    for block, done in replay(page, tmp_path):
        for shown, real in zip(commands(block["body"]), done, strict=True):
            assert settled(real.output) == settled(shown.output), f"$ {real.text}\n{real.output}"


@pytest.mark.parametrize("page", with_blocks("python"), ids=name_of)
def test_scripts_run(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block["kind"] == "write":
            (tmp_path / block["name"]).write_text(block["body"])
    for block in blocks(page):
        if block["kind"] == "python":
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", block["body"]],
                cwd=tmp_path,
                env=environment(tmp_path),
                capture_output=True,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (0, ""), block["body"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_and_benchmarks_that_are_named_exist(page: Path) -> None:
    named = set(re.findall(r"\b(?:script|benchmarks)/[a-z_.]+[a-z]", page.read_text("utf-8")))
    assert {name for name in named if not (ROOT / name).is_file()} == set()


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").read_text("utf-8").count("\n") < 150


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    linked = {(ROOT / "docs" / link["path"]).resolve() for link in LINK.finditer(index)}
    pages = {page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.name != "README.md"}
    assert pages - linked == set()


def test_every_feature_is_quoted() -> None:
    quoted = {block["name"] for page in PAGES for block in blocks(page) if block["kind"] == "file"}
    features = {f"examples/features/{path.name}" for path in (ROOT / "examples" / "features").iterdir()}
    assert features - quoted == set()


def test_generated_tables_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "script/reference.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def anchors(page: Path) -> set[str]:
    """The anchors that headings of a page get."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
