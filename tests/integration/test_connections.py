"""Connections over real runs of the command: granted, missing, by reference, and never shown."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.wire import Seen, WireServer, page

SOURCE = Path(__file__).parents[2] / "src"
TOKEN = 'tok-"s3cret\\4711'
HEAD = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: x }\nconnections: { gh: { type: http.bearer } }\n"


def orun(folder: Path, text: str, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "w.yaml").write_text(HEAD + text)
    return subprocess.run(
        [sys.executable, "-c", "from flowstone.cli.orun.main import main; main()", "workflow", "run", "w.yaml", *argv],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(SOURCE), "LANG": "C.UTF-8", **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def nowhere(folder: Path, ended: subprocess.CompletedProcess[str]) -> None:
    """The token is neither printed nor kept, in whatever form."""
    forms = [TOKEN, json.dumps(TOKEN)[1:-1], base64.b64encode(TOKEN.encode()).decode().rstrip("=")]
    texts = {"printed": ended.stdout + ended.stderr}
    for path in (folder / ".orun").rglob("*"):
        if path.is_file():
            texts[str(path)] = path.read_bytes().decode("utf-8", "replace")
    assert len(texts) > 1
    for where, text in texts.items():
        for form in forms:
            assert form not in text, where


EVERYWHERE = """\
outputs: { o: "connections.gh.token" }
steps:
  - name: a
    run: [sh, -c, 'printf "%s\\n" "$T"; printf %s "$T" | base64; printf %s "$J" >&2']
    env: { T: "{{ connections.gh.token }}", J: "{{ [connections.gh.token] }}" }
    outputs: { t: stdout, m: "{'k': [connections.gh.token]}" }
  - name: b
    needs: [a]
    action: script
    with: { source: "JSON.stringify({ input })", input: "{{ connections.gh.token }}" }
  - name: c
    needs: [b]
    run: [sh, -c, 'printf %s "$T"; exit 3']
    env: { T: "{{ connections.gh.token }}" }
    continueOnError: true
"""


def test_a_token_is_shown_nowhere(tmp_path: Path) -> None:
    ended = orun(tmp_path, EVERYWHERE, "--connection", f"gh.token={TOKEN}")
    assert ended.returncode == 0, ended.stderr
    assert "o = [REDACTED]" in ended.stdout
    nowhere(tmp_path, ended)


def test_a_reference_grants_what_it_names(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")

    def echo(connection: object, seen: Seen) -> None:
        connection.sendall(page(json.dumps(seen.headers["authorization"]).encode()))  # type: ignore[attr-defined]

    with WireServer({"/": echo}) as server:
        text = f"steps: [{{ name: h, action: http.request, connection: gh, with: {{ url: '{server.url}/' }} }}]"
        ended = orun(tmp_path, text, "--connection", "gh.token=secret://file/token")
        assert ended.returncode == 0, ended.stderr
        nowhere(tmp_path, ended)
        ended = orun(tmp_path, text, "--connection", "gh.bearerToken=secret://env/MINE", MINE=TOKEN)
        assert ended.returncode == 0, ended.stderr
        nowhere(tmp_path, ended)
    assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {TOKEN}"] * 2


FIRST = "steps:\n  - { name: first, run: [echo, first ran] }\n"


@pytest.mark.parametrize(
    "use",
    [
        '  - { name: s, needs: [first], run: [echo, "{{ connections.gh.token }}"] }',
        "  - { name: s, needs: [first], run: [echo], env: { T: \"{{ connections['gh'].token }}\" } }",
        "  - { name: s, needs: [first], run: [echo], if: \"connections.gh.token != ''\" }",
        '  - { name: s, needs: [first], run: [echo], outputs: { o: "connections.gh.token" } }',
        '  - { name: s, needs: [first], action: script, with: { source: "1", input: [{ a: "{{ connections }}" }] } }',
        '  - { name: s, needs: [first], action: http.request, connection: gh, with: { url: "http://x.test" } }',
        "  - { name: s, needs: [first], run: [echo],"
        " poll: { interval: 1s, timeout: 2s, until: \"connections.gh.token == ''\" } }",
    ],
)
def test_a_use_without_grant_stops_the_run_before_it_starts(tmp_path: Path, use: str) -> None:
    ended = orun(tmp_path, FIRST + use)
    assert ended.returncode == 1
    assert 'step s: connection "gh" was not granted (--connection gh.bearerToken=...)' in ended.stderr
    assert "first ran" not in ended.stdout
    assert not list(tmp_path.glob(".orun/wfruns/*"))


def test_an_output_of_the_workflow_needs_its_grant_too(tmp_path: Path) -> None:
    ended = orun(tmp_path, 'outputs: { o: "connections.gh.token" }\n' + FIRST)
    assert ended.returncode == 1
    assert 'outputs.o: connection "gh" was not granted' in ended.stderr
    assert "first ran" not in ended.stdout


def test_a_text_that_looks_like_a_use_is_none(tmp_path: Path) -> None:
    ended = orun(tmp_path, FIRST + "  - { name: s, run: [echo, \"{{ 'connections.gh.token' }}\"] }")
    assert ended.returncode == 0, ended.stderr


def test_a_missing_secret_stops_the_run_before_it_starts(tmp_path: Path) -> None:
    use = '  - { name: s, needs: [first], run: [echo, "{{ connections.gh.token }}"] }'
    ended = orun(tmp_path, FIRST + use, "--connection", "gh.token=secret://env/NOPE")
    assert ended.returncode == 1
    assert "connection gh.token: secret://env/NOPE: the environment has no variable NOPE" in ended.stderr
    assert "first ran" not in ended.stdout
    assert not list(tmp_path.glob(".orun/wfruns/*"))


def test_a_resumed_run_needs_its_grants_again(tmp_path: Path) -> None:
    text = 'steps: [{ name: s, run: [sh, -c, "test -e go"], cwd: ".", env: { T: "{{ connections.gh.token }}" } }]'
    first = orun(tmp_path, text, "--connection", "gh.token=secret://env/MINE", MINE=TOKEN)
    assert first.returncode == 1
    [run] = (tmp_path / ".orun" / "wfruns").iterdir()
    (tmp_path / "go").touch()
    again = orun(tmp_path, text, "--resume", run.name)
    assert again.returncode == 1
    assert 'connection "gh" was not granted' in again.stderr
    again = orun(tmp_path, text, "--resume", run.name, "--connection", "gh.token=secret://env/MINE", MINE=TOKEN)
    assert again.returncode == 0, again.stderr
    nowhere(tmp_path, again)
