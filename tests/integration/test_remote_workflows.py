"""Workflows from elsewhere, against a server written for the test: tokens, bounds, pins, provenance."""

from __future__ import annotations

import hashlib
import os

import pytest

from flowstone.api import Flowstone
from flowstone.errors import CompileError, DigestMismatch, SourceError, UsageError
from flowstone.source.remote import require_pinned
from tests.integration.wire import WireServer, moved, page

FLOW = b"""apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: far }
outputs: { env: "steps.show.stdout.trim()" }
steps:
  - name: show
    run: ["/bin/sh", "-cu", "echo $ORUN_FLOW_SOURCE_REPO,$ORUN_FLOW_SOURCE_REF,$ORUN_FLOW_SOURCE_SHA"]
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONTENTS, COMMITS = "/repos/acme/flows/contents/a%20b/w.yaml", "/repos/acme/flows/commits/v1"
REF = "github:acme/flows@v1//a b/w.yaml"
GITHUB = {CONTENTS: page(FLOW), COMMITS: page(f'{{"sha":"{COMMIT}"}}'.encode())}


def flowstone(folder, server, **more):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    return Flowstone(str(folder), {**env, "ORUN_GITHUB_API_URL": f"{server.url}/", **more})


def test_github_tells_repository_ref_and_commit(tmp_path):
    with WireServer(GITHUB) as server, flowstone(tmp_path, server, GH_TOKEN="tok-2", GITHUB_TOKEN=" ") as flow:
        notices = []
        flow.wiring.on_fetch = notices.append
        report = flow.run(REF)
        assert report.state.outputs == {"env": f"acme/flows,v1,{COMMIT}"}
        assert notices == ["fetched workflow from acme/flows@v1 (0123456789ab)"]
        assert [seen.path for seen in server.seen] == [f"{CONTENTS}?ref=v1", COMMITS]
        assert {seen.headers["authorization"] for seen in server.seen} == {"Bearer tok-2"}
        record = report.row.record
        assert record.source_path == REF
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if b"tok-2" in path.read_bytes()]


def test_a_commit_that_cannot_be_told_is_left_out(tmp_path):
    replies = {**GITHUB, COMMITS: page(b"oops", "500 Internal Server Error")}
    with WireServer(replies) as server, flowstone(tmp_path, server) as flow:
        assert flow.run(REF).state.outputs == {"env": "acme/flows,v1,"}


def test_a_token_never_goes_to_another_host(tmp_path):
    with WireServer({"/there.yaml": page(FLOW)}) as server:
        server.replies[CONTENTS] = moved(f"{server.other_host}/there.yaml")
        server.replies[COMMITS] = page(b"{}")
        with flowstone(tmp_path, server, GITHUB_TOKEN="tok-1") as flow:
            assert flow.sound(REF)
            assert flow.sound(f"{server.url}/there.yaml")
        sent = [(seen.path, seen.headers.get("authorization")) for seen in server.seen]
    assert sent[0][1] == "Bearer tok-1"
    assert {auth for path, auth in sent if path == "/there.yaml"} == {None}


def test_a_failed_fetch_says_what_to_do(tmp_path):
    with WireServer({CONTENTS: page(b"", "404 Not Found")}) as server:
        with flowstone(tmp_path, server) as flow, pytest.raises(SourceError) as caught:
            flow.sound(REF)
        assert caught.value.message == (
            "fetch workflow from acme/flows@v1: the server answered 404 Not Found (private repo? set GITHUB_TOKEN)"
        )
        with flowstone(tmp_path, server, GITHUB_TOKEN="tok-1") as flow, pytest.raises(SourceError) as caught:
            flow.sound(REF)
        assert "GITHUB_TOKEN" not in caught.value.message


def test_bounds_of_a_fetch(tmp_path):
    with WireServer({"/big.yaml": page(b"#" * (4 * 1024 * 1024 + 1)), "/turn.yaml": moved("/turn.yaml")}) as server:
        server.replies["/squeezed.yaml"] = page(b"x", Content_Encoding="gzip")
        with flowstone(tmp_path, server) as flow:
            for name, said in (("big", "more than 4,194,304 bytes"), ("turn", "redirects"), ("squeezed", "compressed")):
                with pytest.raises(SourceError, match=said):
                    flow.sound(f"{server.url}/{name}.yaml")
            with pytest.raises(SourceError, match="nothing listens there"):
                flow.sound("http://127.0.0.1:1/x.yaml")


def test_a_digest_in_the_reference_is_kept(tmp_path):
    digest = hashlib.sha256(FLOW).hexdigest()
    with WireServer({"/w.yaml": page(FLOW)}) as server, flowstone(tmp_path, server) as flow:
        pinned = f"{server.url}/w.yaml#sha256:{digest}"
        require_pinned(pinned)
        assert flow.sound(pinned).source.digest == digest
        with pytest.raises(DigestMismatch, match=f"has digest sha256:{digest}, not sha256:{'0' * 64}"):
            flow.sound(f"{server.url}/w.yaml#sha256:{'0' * 64}")


def test_a_password_in_an_address_is_sent_and_not_kept(tmp_path):
    with WireServer({"/w.yaml": page(FLOW)}) as server, flowstone(tmp_path, server) as flow:
        report = flow.run(server.url.replace("://", "://me:secret-word@") + "/w.yaml")
        assert report.row.record.source_path == f"{server.url}/w.yaml"
        assert server.seen[0].headers["authorization"].startswith("Basic ")
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"secret-word" in path.read_bytes()]


def test_a_resume_fetches_again_and_checks(tmp_path):
    failing = FLOW.replace(b"echo ", b"test -e " + os.fsencode(tmp_path / "ready") + b"; exit $?; echo ")
    with WireServer({"/w.yaml": page(failing)}) as server:
        with flowstone(tmp_path, server) as flow:
            run_id = flow.run(f"{server.url}/w.yaml").row.record.id
        with flowstone(tmp_path, server) as flow:
            (tmp_path / "ready").touch()
            assert flow.drive(run_id, reopen=True).state.status == "succeeded"
        server.replies["/w.yaml"] = page(FLOW)
        with flowstone(tmp_path, server) as flow, pytest.raises(DigestMismatch):
            flow.check_source(run_id)


def test_files_that_a_fetched_one_nests_lie_beside_it_and_not_here(tmp_path):
    nesting = FLOW.partition(b"outputs")[0] + b"steps: [{ name: s, workflow: sub/kid.yaml }]\n"
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "kid.yaml").write_text("not this one")
    with WireServer({"/f/w.yaml": page(nesting)}) as server:
        server.replies["/f/sub/kid.yaml"] = page(b"", "404 Not Found")
        with flowstone(tmp_path, server) as flow, pytest.raises(CompileError, match="answered 404"):
            flow.run(f"{server.url}/f/w.yaml")
        server.replies["/f/sub/kid.yaml"] = page(FLOW)
        with flowstone(tmp_path, server) as flow:
            report = flow.run(f"{server.url}/f/w.yaml")
            assert report.state.status == "succeeded"
            (child,) = (nested.row for nested in flow.status(report.row.record.id).children)
    assert child.record.source_path == f"{server.url}/f/sub/kid.yaml"
    assert dict(child.record.provenance)["ORUN_FLOW_SOURCE_URL"] == f"{server.url}/f/w.yaml"


def test_a_local_file_nests_a_remote_one_and_a_resume_compares_it(tmp_path):
    head = FLOW.partition(b"outputs")[0].decode()
    with WireServer(GITHUB) as server:
        server.replies[CONTENTS] = page(FLOW.replace(b"echo ", b"exit 3; echo "))
        (tmp_path / "w.yaml").write_text(f"{head}steps: [{{ name: s, workflow: '{REF}' }}]\n")
        with flowstone(tmp_path, server) as flow:
            report = flow.run("w.yaml")
            assert report.state.status == "failed"
            run_id = report.row.record.id
            (child,) = (nested.row for nested in flow.status(run_id).children)
            assert dict(child.record.provenance)["ORUN_FLOW_SOURCE_SHA"] == COMMIT
            assert [file.path for file in report.state.plan.read_set] == ["w.yaml", REF]
        server.replies[CONTENTS] = page(FLOW)
        with flowstone(tmp_path, server) as flow, pytest.raises(DigestMismatch, match=r"a b/w\.yaml: workflow digest"):
            flow.drive(run_id, reopen=True)


def test_two_digests_of_one_address_are_both_checked(tmp_path):
    with WireServer({"/w.yaml": page(FLOW)}) as server, flowstone(tmp_path, server) as flow:
        head = FLOW.partition(b"outputs")[0].decode()
        good, bad = (f"{server.url}/w.yaml#sha256:{digest}" for digest in (hashlib.sha256(FLOW).hexdigest(), "0" * 64))
        (tmp_path / "w.yaml").write_text(
            f"{head}steps: [{{ name: a, workflow: '{good}' }}, {{ name: b, workflow: '{bad}' }}]"
        )
        with pytest.raises(CompileError, match=f"step b: .*not sha256:{'0' * 64}"):
            flow.sound("w.yaml")


def test_a_file_never_holds_a_password(tmp_path):
    head = FLOW.partition(b"outputs")[0].decode()
    with WireServer({}) as server, flowstone(tmp_path, server) as flow:
        (tmp_path / "w.yaml").write_text(f"{head}steps: [{{ name: a, workflow: 'https://me:word@h/w.yaml' }}]")
        with pytest.raises(CompileError, match="a workflow holds no user and password"):
            flow.sound("w.yaml")


def test_what_a_frozen_file_nests_must_be_pinned_too(tmp_path):
    nesting = FLOW.partition(b"outputs")[0] + b"steps: [{ name: s, workflow: kid.yaml }]\n"
    digest = hashlib.sha256(nesting).hexdigest()
    contents = "/repos/acme/flows/contents"
    replies = {**GITHUB, f"{contents}/top.yaml": page(nesting), f"{contents}/kid.yaml": page(FLOW)}
    with WireServer(replies) as server, flowstone(tmp_path, server) as flow:
        flow.wiring.frozen = True
        assert flow.sound(f"github:acme/flows@{COMMIT}//top.yaml")
        with pytest.raises(UsageError, match=r"--frozen: github:acme/flows@v1//kid\.yaml may be another"):
            flow.sound(f"github:acme/flows@v1//top.yaml#sha256:{digest}")


@pytest.mark.parametrize("target", ["w.yaml", f"github:a/b@{COMMIT}//w.yaml"])
def test_what_frozen_accepts(target):
    require_pinned(target)


@pytest.mark.parametrize("target", [REF, "github:a/b//w.yaml", "github:a/b@0123456//w.yaml", "https://h/w.yaml"])
def test_what_frozen_refuses(target):
    with pytest.raises(UsageError, match="may be another file tomorrow"):
        require_pinned(target)
