"""`flowstone vendor`: fetched with all that is nested, pinned, verified, used offline, updated, and never elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from flowstone.api import Flowstone
from flowstone.errors import CompileError, DigestMismatch, SourceError, UsageError
from flowstone.source.lockfile import decode_lock, encode_lock
from tests.integration.github import Repository, Served
from tests.integration.wire import WireServer, page

HEAD = "apiVersion: orun.dev/v1\nkind: Workflow\n"
SOURCE = str(Path(__file__).parents[2] / "src")
REF = "github:acme/flows@v1//flows/release.yaml"
VERB = '["/bin/sh", "-c", "echo {} $ORUN_FLOW_SOURCE_REPO@$ORUN_FLOW_SOURCE_REF"]'


def flow_file(name: str, *nested: str, says: str = "hi") -> str:
    steps = [f"  - {{ name: n{place}, workflow: '{ref}' }}\n" for place, ref in enumerate(nested)]
    own = f"  - name: own\n    run: {VERB.format(says)}\n"
    return f"{HEAD}metadata: {{ name: {name} }}\nsteps:\n{own}{''.join(steps)}"


FILES = {
    "flows/release.yaml": flow_file("release", "parts/build.yaml", "../shared/tell.yaml"),
    "flows/parts/build.yaml": flow_file("build", "../../shared/tell.yaml", says="build"),
    "shared/tell.yaml": flow_file("tell", says="tell"),
}


@pytest.fixture
def repository():
    repository = Repository()
    repository.push("v1", FILES)
    return repository


@pytest.fixture
def server(repository):
    with WireServer(Served(repository)) as server:
        yield server


@pytest.fixture
def open_flow(tmp_path, server):
    folder = tmp_path / "work"
    folder.mkdir()

    def opened(**more: str) -> Flowstone:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
        return Flowstone(str(folder), {**env, "ORUN_GITHUB_API_URL": server.url, **more})

    opened.folder = folder
    return opened


OFFLINE = {"ORUN_GITHUB_API_URL": "http://127.0.0.1:1"}


def vendor(open_flow, *targets, **options):
    with open_flow() as flow:
        return flow.vendoring.vendor(targets, **options)


def written(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def lock_of(folder: Path):
    return decode_lock((folder / "flowstone.lock").read_bytes(), "flowstone.lock")


def test_a_fetched_workflow_nests_files_of_its_repository_at_its_commit(open_flow, repository, server):
    with open_flow() as flow:
        report = flow.run(REF)
        assert report.state.status == "succeeded"
        children = [child.row for child in flow.status(report.row.record.id).children]
    commit = repository.refs["v1"]
    assert sorted(str(row.record.source_path) for row in children) == [
        f"github:acme/flows@{commit}//flows/parts/build.yaml",
        f"github:acme/flows@{commit}//shared/tell.yaml",
    ]
    for row in children:
        assert dict(row.record.provenance)["ORUN_FLOW_SOURCE_REF"] == "v1"
        assert dict(row.record.provenance)["ORUN_FLOW_SOURCE_SHA"] == commit
    nested = [seen.path for seen in server.seen if "parts" in seen.path or "shared" in seen.path]
    assert nested
    assert all(path.endswith(f"?ref={commit}") for path in nested)
    read = [file.path for file in report.state.plan.read_set]
    assert read[0] == REF
    assert sorted(read[1:]) == [
        f"github:acme/flows@{commit}//flows/parts/build.yaml",
        f"github:acme/flows@{commit}//shared/tell.yaml",
    ]


def test_vendoring_pins_the_whole_family_and_runs_offline(open_flow, repository):
    commit = repository.refs["v1"]
    changes = vendor(open_flow, REF)
    assert [change.before for change in changes] == [None] * 3
    folder = f"flowstone.vendor/github/acme/flows/{commit}"
    assert written(open_flow.folder) == [
        "flowstone.lock",
        f"{folder}/flows/parts/build.yaml",
        f"{folder}/flows/release.yaml",
        f"{folder}/shared/tell.yaml",
    ]
    with open_flow(**OFFLINE) as flow:
        notices: list[str] = []
        flow.wiring.on_fetch = notices.append
        flow.wiring.frozen = True
        report = flow.run(REF)
        assert report.state.status == "succeeded"
        assert notices == [f"vendored workflow from acme/flows@v1 ({commit[:12]})"]
        assert dict(report.row.record.provenance)["ORUN_FLOW_SOURCE_SHA"] == commit
        assert flow.vendoring.check() == []


def test_the_lock_is_small_canonical_and_versioned(open_flow, repository):
    vendor(open_flow, REF)
    text = (open_flow.folder / "flowstone.lock").read_text()
    document = json.loads(text)
    assert document["version"] == 1
    assert [sorted(entry) for entry in document["files"]] == [["commit", "digest", "path", "reference", "targets"]] * 3
    assert {entry["commit"] for entry in document["files"]} == {repository.refs["v1"]}
    assert {tuple(entry["targets"]) for entry in document["files"]} == {(REF,)}
    assert encode_lock(lock_of(open_flow.folder).files) == text
    before = os.stat(open_flow.folder / "flowstone.lock").st_mtime_ns
    vendor(open_flow)
    assert os.stat(open_flow.folder / "flowstone.lock").st_mtime_ns == before


def test_a_changed_copy_is_never_run(open_flow):
    vendor(open_flow, REF)
    (copy,) = open_flow.folder.rglob("tell.yaml")
    copy.write_text(copy.read_text().replace("tell", "evil"))
    with open_flow() as flow:
        with pytest.raises(CompileError, match=r"tell\.yaml: it has digest sha256:\w+, not sha256:"):
            flow.run(REF)
        (problem,) = flow.vendoring.check()
        assert "shared/tell.yaml: it has digest" in problem
    (root,) = open_flow.folder.rglob("release.yaml")
    root.write_text(flow_file("evil"))
    with open_flow() as flow, pytest.raises(DigestMismatch, match=r"flowstone\.lock demands"):
        flow.run(REF)
    root.unlink()
    with open_flow() as flow, pytest.raises(SourceError, match="no such file"):
        flow.run(REF)
    vendor(open_flow)
    with open_flow() as flow:
        assert flow.vendoring.check() == []


def test_an_update_tells_what_changed_and_removes_what_is_old(open_flow, repository):
    old = repository.refs["v1"]
    vendor(open_flow, REF)
    new = repository.push("v1", {**FILES, "shared/tell.yaml": flow_file("tell", says="anew")})
    with open_flow(**OFFLINE) as flow:
        assert flow.sound(REF)
    changes = {change.reference: change for change in vendor(open_flow)}
    assert sorted(changes) == [
        f"github:acme/flows@{new}//flows/parts/build.yaml",
        f"github:acme/flows@{new}//shared/tell.yaml",
        REF,
    ]
    told = changes[f"github:acme/flows@{new}//shared/tell.yaml"]
    assert told.before.reference == f"github:acme/flows@{old}//shared/tell.yaml"
    assert ("echo tell" in told.old_text, "echo anew" in told.new_text) == (True, True)
    assert not list(open_flow.folder.rglob(old))
    assert len(list(open_flow.folder.rglob("*.yaml"))) == 3


def test_a_resume_of_a_run_from_before_the_update_is_refused(open_flow, repository):
    failing = {**FILES, "shared/tell.yaml": flow_file("tell", says="x; exit 3;")}
    repository.push("v1", failing)
    vendor(open_flow, REF)
    with open_flow(**OFFLINE) as flow:
        run_id = flow.run(REF).row.record.id
    with open_flow(**OFFLINE) as flow:
        assert flow.drive(run_id, reopen=True).state.status == "failed"
    repository.push("v1", FILES)
    vendor(open_flow)
    with open_flow() as flow, pytest.raises(DigestMismatch, match=r"tell\.yaml: workflow digest changed"):
        flow.drive(run_id, reopen=True)


def test_what_is_shared_is_renewed_for_all_that_need_it(open_flow, repository):
    other = "github:acme/flows@v1//flows/parts/build.yaml"
    vendor(open_flow, REF)
    vendor(open_flow, other)
    assert lock_of(open_flow.folder).targets == (other, REF)
    repository.push("v1", {**FILES, "flows/parts/build.yaml": flow_file("build", "../../shared/tell.yaml", says="b2")})
    vendor(open_flow, other)
    with open_flow(**OFFLINE) as flow:
        assert flow.vendoring.check() == []
    vendor(open_flow, removed=[other])
    assert lock_of(open_flow.folder).targets == (REF,)
    with open_flow(**OFFLINE) as flow:
        assert flow.vendoring.check() == []
    vendor(open_flow, removed=[REF])
    assert lock_of(open_flow.folder).files == ()
    assert written(open_flow.folder) == ["flowstone.lock"]
    with open_flow() as flow, pytest.raises(UsageError, match="is not vendored here"):
        flow.vendoring.vendor([], [REF])


def test_the_remote_workflows_that_a_local_file_nests(open_flow, repository):
    (open_flow.folder / "top.yaml").write_text(flow_file("top", REF, "near.yaml"))
    (open_flow.folder / "near.yaml").write_text(flow_file("near"))
    with open_flow() as flow:
        flow.wiring.frozen = True
        with pytest.raises(UsageError, match="may be another file tomorrow"):
            flow.run("top.yaml")
    vendor(open_flow, "top.yaml")
    with open_flow(**OFFLINE) as flow:
        flow.wiring.frozen = True
        report = flow.run("top.yaml")
        assert report.state.status == "succeeded"
        rows = {
            row.record.ref: dict(row.record.provenance)
            for row in (child.row for child in flow.status(report.row.record.id).children)
        }
    assert rows[REF]["ORUN_FLOW_SOURCE_REPO"] == "acme/flows"
    assert rows["near.yaml"] == {}
    with open_flow() as flow, pytest.raises(UsageError, match=r"near\.yaml nests no remote workflow"):
        flow.vendoring.vendor(["near.yaml"])


def test_addresses_are_vendored_too_and_a_password_is_not_kept(open_flow, server):
    server.replies["/w/a.yaml"] = page(flow_file("a", "sub/b.yaml").encode())
    server.replies["/w/sub/b.yaml"] = page(flow_file("b").encode())
    target = server.url.replace("://", "://me:secret-word@") + "/w/a.yaml"
    vendor(open_flow, target)
    assert {seen.headers["authorization"] for seen in server.seen} == {"Basic bWU6c2VjcmV0LXdvcmQ="}
    lock = lock_of(open_flow.folder)
    assert [pin.reference for pin in lock.files] == [f"{server.url}/w/a.yaml", f"{server.url}/w/sub/b.yaml"]
    assert not [path for path in open_flow.folder.rglob("*") if path.is_file() and b"secret-word" in path.read_bytes()]
    server.replies.clear()
    with open_flow() as flow:
        flow.wiring.frozen = True
        assert flow.run(f"{server.url}/w/a.yaml").state.status == "succeeded"


def test_nothing_is_changed_when_anything_is_wrong(open_flow, repository):
    vendor(open_flow, REF)
    before = {name: (open_flow.folder / name).read_bytes() for name in written(open_flow.folder)}
    repository.push("v1", {**FILES, "flows/parts/build.yaml": "apiVersion: nope\n"})
    with pytest.raises(CompileError, match="not a workflow"):
        vendor(open_flow)
    repository.push("v1", {"flows/release.yaml": FILES["flows/release.yaml"]})
    with pytest.raises(CompileError, match="404"):
        vendor(open_flow)
    assert {name: (open_flow.folder / name).read_bytes() for name in written(open_flow.folder)} == before


@pytest.mark.parametrize("part", ["flowstone.vendor", "flowstone.vendor/github", "flowstone.vendor/github/acme"])
def test_no_link_leads_out_of_the_folder(open_flow, tmp_path, part):
    outside = tmp_path / "outside"
    outside.mkdir()
    place = open_flow.folder / part
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    with pytest.raises(SourceError, match="symbolic link"):
        vendor(open_flow, REF)
    assert list(outside.iterdir()) == []
    assert not (open_flow.folder / "flowstone.lock").exists()


def test_a_folder_in_the_place_of_a_file_is_told_and_nothing_is_left_behind(open_flow, repository):
    folder = open_flow.folder / "flowstone.vendor/github/acme/flows" / repository.refs["v1"] / "shared"
    (folder / "tell.yaml").mkdir(parents=True)
    with pytest.raises(SourceError, match=r"tell\.yaml: "):
        vendor(open_flow, REF)
    assert [path.name for path in folder.iterdir()] == ["tell.yaml"]
    assert not (open_flow.folder / "flowstone.lock").exists()


def test_a_lock_that_is_a_link_is_not_followed(open_flow, tmp_path):
    target = tmp_path / "elsewhere.lock"
    target.write_text(encode_lock([]))
    (open_flow.folder / "flowstone.lock").symlink_to(target)
    with open_flow() as flow, pytest.raises(SourceError, match="symbolic link"):
        flow.sound(REF)


@pytest.mark.parametrize("ref", ["../../x.yaml", "/etc/x.yaml", "a/../../../x.yaml", "a\\\\b.yaml", "x.yaml?y=1"])
def test_a_path_never_leads_out_of_the_repository(open_flow, repository, ref):
    repository.push("v1", {"flows/release.yaml": flow_file("release", ref)})
    with pytest.raises(CompileError, match=r"leads out of the repository|named by a path relative to it"):
        vendor(open_flow, REF)


def test_cycles_of_remote_files(open_flow, repository):
    for nested in ("release.yaml", "parts/build.yaml", REF):
        back = "../release.yaml" if "parts" in nested else nested
        files = {"flows/release.yaml": flow_file("a", nested), "flows/parts/build.yaml": flow_file("b", back)}
        repository.push("v1", files)
        with open_flow() as flow, pytest.raises(CompileError, match="form a cycle"):
            flow.sound(REF)


def test_a_family_without_end_is_bounded(open_flow, server, monkeypatch):
    monkeypatch.setattr("flowstone.formats.orun.grammar.FETCHED_FILES", 5)
    for number in range(10):
        server.replies[f"/{number}.yaml"] = page(flow_file("a", f"{number + 1}.yaml").encode())
    with open_flow() as flow, pytest.raises(CompileError, match="at most 5 fetched files"):
        flow.sound(f"{server.url}/0.yaml")
    monkeypatch.setattr("flowstone.formats.orun.grammar.FETCHED_FILES", 100)
    monkeypatch.setattr("flowstone.formats.orun.grammar.FETCHED_BYTES", 600)
    with open_flow() as flow, pytest.raises(CompileError, match="600 bytes"):
        flow.sound(f"{server.url}/0.yaml")


def test_depth_is_bounded(open_flow, server):
    for number in range(40):
        server.replies[f"/{number}.yaml"] = page(flow_file("a", f"{number + 1}.yaml").encode())
    with open_flow() as flow, pytest.raises(CompileError, match="nested more than 32 levels deep"):
        flow.sound(f"{server.url}/0.yaml")


def test_a_file_that_the_lock_lacks_is_not_fetched_for_a_pinned_one(open_flow):
    vendor(open_flow, REF)
    path = open_flow.folder / "flowstone.lock"
    pins = [pin for pin in lock_of(open_flow.folder).files if "tell" not in pin.reference]
    path.write_text(encode_lock(pins))
    with open_flow() as flow:
        with pytest.raises(CompileError, match=r"is pinned in flowstone\.lock, and .*tell\.yaml is not"):
            flow.run(REF)
        (problem,) = flow.vendoring.check()
        assert "is not pinned" in problem


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace('"version": 1', '"version": 2'), "version 2"),
        (lambda text: text.replace("flowstone.vendor/", "flowstone.vendor/../../"), "its path must be"),
        (lambda text: text.replace("flowstone.vendor/", "/etc/"), "its path must be"),
        (lambda text: text.replace('"digest": "sha256:', '"digest": "md5:'), "digest must be"),
        (lambda text: text.replace('"targets"', '"target"'), "unknown field"),
        (lambda text: text[:-20], "truncated"),
        (lambda text: text.replace('"commit": "', '"commit": "00'), "commit must be a full one"),
        (lambda text: text.replace('"reference": "github:', '"reference": "'), "no remote reference"),
    ],
)
def test_a_damaged_lock_is_refused_as_a_whole(open_flow, change, said):
    vendor(open_flow, REF)
    path = open_flow.folder / "flowstone.lock"
    path.write_text(change(path.read_text()))
    with open_flow() as flow:
        with pytest.raises(SourceError, match=said):
            flow.sound(REF)
        with pytest.raises(SourceError, match=r"^flowstone\.lock: "):
            flow.vendoring.check()
        with pytest.raises(SourceError):
            flow.vendoring.vendor([])


def test_a_lock_in_another_spelling_is_told_by_check(open_flow):
    vendor(open_flow, REF)
    path = open_flow.folder / "flowstone.lock"
    path.write_text(json.dumps(json.loads(path.read_text())))
    with open_flow(**OFFLINE) as flow:
        assert flow.sound(REF)
        assert flow.vendoring.check() == [
            "flowstone.lock: it was not written by flowstone vendor, or changed after that"
        ]


def test_several_at_once_lose_nothing(open_flow, repository):
    files = {f"w{number}.yaml": flow_file("w") for number in range(6)}
    repository.push("v1", files)
    refs = [f"github:acme/flows@v1//{name}" for name in files]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda ref: vendor(open_flow, ref), refs))
    assert lock_of(open_flow.folder).targets == tuple(refs)
    with open_flow() as flow:
        assert flow.vendoring.check() == []


def test_a_crash_before_the_lock_leaves_the_old_pins_whole(open_flow, repository, monkeypatch):
    vendor(open_flow, REF)
    repository.push("v1", {**FILES, "shared/tell.yaml": flow_file("tell", says="anew")})
    from flowstone.source.vendored import Vendored

    write = Vendored.write

    def dying(self, path, data):
        if path == "flowstone.lock":
            raise KeyboardInterrupt
        write(self, path, data)

    monkeypatch.setattr(Vendored, "write", dying)
    with pytest.raises(KeyboardInterrupt):
        vendor(open_flow)
    monkeypatch.undo()
    with open_flow(**OFFLINE) as flow:
        assert flow.vendoring.check() == []
        assert flow.run(REF).state.status == "succeeded"
    vendor(open_flow)
    assert len(list(open_flow.folder.rglob("*.yaml"))) in (3, 6)


def test_the_commands(open_flow, server, tmp_path, repository):
    def said(*words: str, code: int = 0) -> str:
        program = "from flowstone.cli.flowstone.main import main; main()"
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": SOURCE,
            "ORUN_GITHUB_API_URL": server.url,
            "LANG": "C.UTF-8",
        }
        ended = subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=open_flow.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert ended.returncode == code, ended.stderr
        return ended.stdout + ended.stderr

    commit = repository.refs["v1"]
    assert "nothing is vendored here yet" in said("vendor", code=2)
    assert "there is no flowstone.lock here" in said("vendor", "--check", code=2)
    first = said("vendor", REF)
    assert f"+ {REF} ({commit[:12]})\n" in first
    assert f"fetched workflow from acme/flows@v1 ({commit[:12]})" in first
    assert said("vendor", "--check") == "ok: 3 pinned files\n"
    assert "nothing has changed" in said("vendor")
    new = repository.push("v1", {**FILES, "shared/tell.yaml": flow_file("tell", says="anew")})
    changed = said("vendor", "--diff")
    assert f"= {REF} ({commit[:12]} → {new[:12]}): the same bytes" in changed
    assert f"~ github:acme/flows@{new}//shared/tell.yaml ({commit[:12]} → {new[:12]}): +1 -1 lines" in changed
    assert "    +" in changed
    assert "echo anew" in changed
    assert "vendored workflow from acme/flows@v1" in said("orun", "workflow", "run", REF, "--frozen")
    next(open_flow.folder.rglob("tell.yaml")).write_text("x")
    assert "tell.yaml: it has digest" in said("vendor", "--check", code=1)
    assert "--check verifies all" in said("vendor", "--check", REF, code=2)
