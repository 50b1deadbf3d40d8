"""Isolated commands with a real git: each works in a worktree of HEAD, and nothing of anybody is lost."""

import os
import subprocess
import time
from pathlib import Path

import msgspec
import pytest

from flowstone.dispatchers.process import git as git_module
from flowstone.dispatchers.process.git import Git, GitError
from flowstone.dispatchers.process.worktree import attempt_name
from flowstone.run.outcome import Reason

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@example.invalid", "-c", "protocol.file.allow=always")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *IDENTITY, *arguments], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main", ".")
    (folder / "sub").mkdir()
    (folder / "sub/f").write_text("committed")
    (folder / ".gitignore").write_text("ignored\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "c")
    return folder


@pytest.fixture
def trees(tmp_path):
    return tmp_path / "tmp" / "akm-worktrees"


@pytest.fixture
def isolated(bench, tmp_path):
    """Runs a shell text isolated in the repository `project`, which the test may change before."""
    (tmp_path / "tmp").mkdir()
    project = repository(tmp_path / "project")
    bench.host = {**bench.host, "TMPDIR": str(tmp_path / "tmp")}
    bench.workspace = msgspec.structs.replace(bench.workspace, base=str(project), cwd=str(project))
    return lambda text, **fields: bench.sh(text, isolation="worktree", **fields)


def registered(project: Path) -> int:
    return git(project, "worktree", "list", "--porcelain").count("worktree ")


def test_clean_tree_is_removed(isolated, tmp_path, trees):
    project = tmp_path / "project"
    (project / "sub/f").write_text("pending edit")
    outcome = isolated("pwd; cat sub/f; touch ignored")
    place, text = outcome.value.split("\n")
    assert place == str(trees / "run-1" / "a-solo-r1")
    assert text == "committed"
    assert outcome.warnings == ()
    assert not (trees / "run-1").exists()
    assert registered(project) == 1


def test_cwd_lies_in_the_tree_and_cannot_leave_it(isolated, tmp_path, trees):
    assert isolated("pwd", spec={"cwd": "sub"}).value == str(trees / "run-1/a-solo-r1/sub")
    assert isolated("pwd", spec={"cwd": ".."}).reason is Reason.EXEC_CWD_ESCAPE
    assert registered(tmp_path / "project") == 1


def test_changed_tree_is_kept_as_a_folder_and_named(isolated, tmp_path, trees):
    outcome = isolated("echo new > made; rm sub/f; exit 3")
    assert outcome.reason is Reason.NON_ZERO_EXIT
    kept = trees / "run-1/a-solo-r1"
    assert (kept / "made").read_text() == "new\n"
    assert str(kept) in outcome.warnings[0]
    assert "kept" in outcome.warnings[0]
    assert registered(tmp_path / "project") == 1
    assert not (tmp_path / "project/made").exists()


def test_untracked_files_count_whatever_the_settings_say(isolated, tmp_path, trees):
    git(tmp_path / "project", "config", "status.showUntrackedFiles", "no")
    isolated("touch made")
    assert (trees / "run-1/a-solo-r1/made").exists()


def test_commits_that_no_branch_holds_stay_reachable(isolated, tmp_path, trees):
    commit = "git -c user.name=n -c user.email=e@example.invalid commit -q --allow-empty -m own"
    outcome = isolated(f"{commit} && git rev-parse HEAD")
    assert "commits" in outcome.warnings[0]
    assert registered(tmp_path / "project") == 2
    assert git(trees / "run-1/a-solo-r1", "rev-parse", "HEAD").strip() == outcome.value
    on_a_branch = isolated(f"git checkout -q -b theirs && {commit}", unit="b:solo")
    assert on_a_branch.warnings == ()
    assert not (trees / "run-1/b-solo-r1").exists()


def test_unit_that_removes_its_own_folder(isolated, tmp_path):
    assert isolated('rm -rf "$PWD"').reason is None
    assert registered(tmp_path / "project") == 1


def test_submodule_blocks_nothing(isolated, tmp_path, trees):
    project, lib = tmp_path / "project", repository(tmp_path / "lib")
    git(project, "submodule", "--quiet", "add", str(lib), "lib")
    git(project, "commit", "-q", "-m", "s")
    before = git(project, "submodule", "status")
    outcome = isolated("git -c protocol.file.allow=always submodule update --init -q && cat lib/sub/f")
    assert (outcome.value, outcome.warnings) == ("committed", ())
    assert not (trees / "run-1").exists()
    assert registered(project) == 1
    assert git(project, "submodule", "status") == before


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "is not a git repository"),
        (lambda folder: git(folder, "init", "-q", "--bare", "."), "is a bare git repository"),
        (lambda folder: git(folder, "init", "-q", "."), "is a git repository without a commit"),
    ],
    ids=["none", "bare", "unborn"],
)
def test_without_a_worktree_nothing_runs(isolated, bench, tmp_path, make, said):
    place = tmp_path / "other"
    place.mkdir()
    make(place)
    bench.workspace = msgspec.structs.replace(bench.workspace, base=str(place))
    outcome = isolated(f"touch {tmp_path}/hit")
    assert outcome.reason is Reason.WORKTREE_FAILED
    assert f'cannot use isolation: worktree: "{place}" {said}' in outcome.error
    assert not (tmp_path / "hit").exists()
    assert not outcome.ran


def test_variables_of_a_git_hook_lead_nowhere(isolated, bench, tmp_path):
    other = repository(tmp_path / "other")
    bench.host = {**bench.host, "GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": str(other / ".git/index")}
    assert isolated("git rev-parse --git-common-dir").value == str(tmp_path / "project/.git")


def left(project: Path, path: Path, *, changed: bool) -> None:
    """What a killed driver leaves behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    git(project, "worktree", "add", "--detach", "--quiet", str(path))
    if changed:
        (path / "work").write_text("half done")


@pytest.mark.parametrize("run", ["run-1", "run-0"], ids=["same-run", "other-run"])
def test_leftovers_give_way_and_changes_are_kept(isolated, tmp_path, trees, run):
    project = tmp_path / "project"
    left(project, trees / run / "a-solo-r1", changed=True)
    left(project, trees / run / "b-solo-r1", changed=False)
    outcome = isolated("cat sub/f")
    assert outcome.value == "committed"
    kept = [path for path in (trees / run).iterdir() if ".retained-" in path.name]
    assert [(path / "work").read_text() for path in kept] == ["half done"]
    assert any(str(kept[0]) in text for text in outcome.warnings)
    assert any("b-solo-r1" in text and "removed" in text for text in outcome.warnings)
    assert registered(project) == 1


def test_worktrees_of_others_are_let_be(isolated, tmp_path, trees):
    project = tmp_path / "project"
    git(project, "worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    (tmp_path / "theirs").rename(tmp_path / "away")
    left(repository(tmp_path / "other"), trees / "run-0" / "a-solo-r1", changed=True)
    isolated("true")
    assert "theirs" in git(project, "worktree", "list", "--porcelain")
    assert registered(tmp_path / "other") == 2


def test_folders_of_a_living_run_are_let_be(isolated, tmp_path, trees):
    from flowstone.dispatchers.process.worktree import claim

    left(tmp_path / "project", trees / "run-0" / "a-solo-r1", changed=False)
    held = claim(str(trees / "run-0"))
    assert held is not None
    isolated("true")
    assert (trees / "run-0/a-solo-r1").exists()
    os.close(held)


def test_what_is_older_than_seven_days_goes(isolated, tmp_path, trees):
    left(tmp_path / "project", trees / "run-0" / "a-solo-r1", changed=True)
    long_ago = time.time() - 8 * 24 * 3600
    os.utime(trees / "run-0" / "a-solo-r1", (long_ago, long_ago))
    outcome = isolated("true")
    assert "older than 7 days" in outcome.warnings[0]
    assert not (trees / "run-0").exists()
    assert registered(tmp_path / "project") == 1


def test_many_at_once_have_a_tree_each(bench, isolated, tmp_path):
    import asyncio

    async def all_of_them(dispatcher):
        dispatches = [
            bench.dispatch("sh", "-c", "pwd", isolation="worktree", unit=f"m:{name}") for name in ("a#2", "a-2", "b")
        ]
        return await asyncio.gather(*map(dispatcher.perform, dispatches))

    places = {outcome.value for outcome in bench.using(all_of_them)}
    assert len(places) == 3
    assert registered(tmp_path / "project") == 1


@pytest.mark.parametrize("changed", [False, True])
def test_ended_early_keeps_what_was_changed(bench, isolated, tmp_path, trees, changed):
    import asyncio

    async def one(dispatcher):
        ended = asyncio.get_running_loop().create_future()
        dispatch = bench.dispatch("sh", "-c", f"{'touch made;' if changed else ''} sleep 30", isolation="worktree")
        end = dispatcher.begin(dispatch, ended.set_result)
        await asyncio.sleep(1)
        end()
        return await asyncio.wait_for(ended, 10)

    outcome = bench.using(one)
    kept = trees / "run-1/a-solo-r1"
    assert outcome.reason is Reason.ABORTED
    assert [str(kept) in text for text in outcome.warnings] == [True] * changed
    assert kept.exists() is changed
    assert registered(tmp_path / "project") == 1


def test_git_that_hangs_is_ended_with_all_it_started(tmp_path, monkeypatch):
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nsleep 30 & echo $! > pid\nwait\n")
    program.chmod(0o755)
    monkeypatch.setattr(git_module, "GIT_S", 0.5)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GitError, match="longer than"):
        Git(dict(os.environ))(str(tmp_path), "status")
    stat = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    deadline = time.monotonic() + 5
    while stat.exists() and ") Z " not in stat.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not stat.exists() or ") Z " in stat.read_text()


def test_names():
    assert attempt_name("a.unit:12ab#2", 0) == "a.unit-12ab-2"
    assert attempt_name("a:solo", 2) == "a-solo-r2"
    assert len(attempt_name("x" * 500, 0)) < 200


WITH_LIB = "git -c protocol.file.allow=always submodule update --init --recursive -q"
COMMIT = "git -c user.name=n -c user.email=e@example.invalid commit -q"


@pytest.fixture
def with_submodules(isolated, tmp_path):
    """The project has a submodule `lib`, which has one called `inner`."""
    project, lib, inner = tmp_path / "project", repository(tmp_path / "lib"), repository(tmp_path / "inner")
    git(lib, "submodule", "--quiet", "add", str(inner), "inner")
    git(lib, "commit", "-q", "-m", "s")
    git(project, "submodule", "--quiet", "add", str(lib), "lib")
    git(project, "commit", "-q", "-m", "s")
    return isolated


def test_kept_tree_keeps_its_submodules_as_repositories(with_submodules, tmp_path, trees):
    outcome = with_submodules(f"{WITH_LIB} && echo more > lib/sub/f && echo more > lib/inner/sub/f")
    kept = trees / "run-1/a-solo-r1"
    assert "changed files" in outcome.warnings[0]
    assert registered(tmp_path / "project") == 1
    assert " M sub/f" in git(kept / "lib", "status", "--porcelain")
    assert git(kept / "lib/inner", "status", "--porcelain") == " M sub/f\n"
    assert git(kept / "lib/inner", "log", "--format=%s") == "c\n"


def test_commit_of_a_submodule_that_only_a_branch_of_the_project_names_is_not_lost(with_submodules, tmp_path, trees):
    outcome = with_submodules(
        f"{WITH_LIB} && cd lib && echo more > sub/f && {COMMIT} -a -m own && cd .. && git checkout -q -b theirs"
        f" && {COMMIT} -a -m up && git rev-parse HEAD:lib"
    )
    assert "commits" in outcome.warnings[0]
    assert git(trees / "run-1/a-solo-r1/lib", "rev-parse", "HEAD").strip() == outcome.value
