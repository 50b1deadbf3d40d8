"""`akm env` and `akm secret` as a user sees them (akm facts 13)."""

import json
import stat
import subprocess
import sys

ENV = "A=plain-value-1\nQ='it''s'\nB=\"two words\"\nK=pre-${secret:tok}\n"
SHOW = "import json, os; print(json.dumps({name: os.environ.get(name) for name in 'ABK'}))"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_create_list_path_remove(akm):
    akm.write("project/vars", "A=plain-value-1\nB=2\n")
    made = akm.json("env", "create", "team/deploy", "--from", "vars")
    path = akm.folder / "bundle/env/team/deploy.env"
    assert (made["ref"], made["path"], made["keys"]) == ("bundle//env/team/deploy", str(path), ["A", "B"])
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
    listed = akm("env", "list")
    assert "plain-value-1" not in listed.stdout
    assert json.loads(listed.stdout)["envs"] == [
        {"ref": "bundle//env/team/deploy", "path": str(path), "keys": ["A", "B"]}
    ]
    assert akm("env", "path", "env/team/deploy").stdout == f"{path}\n"
    assert akm.error("env", "create", "team/deploy", code=2)["code"] == "RESOURCE_ALREADY_EXISTS"
    assert akm.json("env", "create", "team/deploy", "--force")["keys"] == []
    akm.json("env", "remove", "env/team/deploy")
    assert not path.exists()
    assert "not found" in akm.error("env", "path", "team/deploy", code=1)["error"]


def test_names_and_files_that_cannot_be(akm):
    for name in ("../up", ".hidden", "a b", "x.sensitive", "secrets/x"):
        assert akm.error("env", "create", name, code=2)["ok"] is False
    akm.write("project/bad", "no assignment\n")
    assert ":1:" in akm.error("env", "create", "x", "--from", "bad", code=2)["error"]
    assert not (akm.folder / "bundle/env/x.env").exists()


def test_a_link_does_not_lead_out_of_the_bundle(akm, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "bundle/env").symlink_to(tmp_path / "elsewhere")
    assert akm.error("env", "create", "x", code=2)["code"] == "PATH_ESCAPE_VIOLATION"


def test_run_and_export(akm):
    akm.write("bundle/env/e.env", ENV.replace("Q='it''s'\n", ""))
    akm.write("bundle/secrets/tok", "hush$1")
    done = akm("env", "run", "env/e", "--", sys.executable, "-c", SHOW)
    assert json.loads(done.stdout) == {"A": "plain-value-1", "B": "two words", "K": "pre-hush$1"}
    assert akm("env", "run", "e", "sh", "-c", "exit 7").returncode == 7
    lines = akm("env", "export", "env/e").stdout
    shell = subprocess.run(["sh", "-c", f'{lines}printf %s "$K|$B"'], capture_output=True, text=True, check=True)
    assert shell.stdout == "pre-hush$1|two words"


def test_export_is_safe_for_a_shell(akm):
    akm.write("bundle/env/e.env", 'A="$(touch hit); `touch hit` \' \\n x"\nwith.dot=1\n')
    done = akm("env", "export", "e")
    assert "with.dot" in done.stderr
    shell = subprocess.run(
        ["sh", "-c", f'{done.stdout}printf %s "$A"'], capture_output=True, text=True, check=True, cwd=akm.folder
    )
    assert shell.stdout == "$(touch hit); `touch hit` ' \n x"
    assert not (akm.folder / "hit").exists()


def test_a_missing_secret_leaves_its_variable_out(akm):
    akm.write("bundle/env/e.env", "A=1\nK=${secret:none}\n")
    done = akm("env", "run", "e", "--", sys.executable, "-c", SHOW)
    assert json.loads(done.stdout) == {"A": "1", "B": None, "K": None}
    assert "K is left out" in done.stderr


def test_commands_that_cannot_be_run(akm):
    akm.write("bundle/env/e.env", "A=1\n")
    assert akm("env", "run", "e", "--", "no-such-program").returncode == 127
    assert akm.error("env", "run", "e", "--", code=2)["code"] == "MISSING_REQUIRED_ARGUMENT"


def test_dangerous_names(akm):
    akm.write("bundle/env/e.env", "BASH_FUNC_x=1\nA=1\n")
    own = akm("env", "run", "e", "--", "true")
    assert (own.returncode, "BASH_FUNC_x" in own.stderr) == (0, True)
    akm.write("other/env/o.env", "LD_PRELOAD=x\n")
    akm.json("config", "set", "bundles.other.path", str(akm.folder / "other"))
    for verb in (("run", "other//env/o", "--", "true"), ("export", "env/o")):
        error = akm.error("env", *verb, code=2)
        assert error["code"] == "DANGEROUS_ENV_KEY"
        assert "LD_PRELOAD" in error["error"]


def test_sensitive_hides_and_still_works(akm):
    akm.write("bundle/env/e.env", "A=1\n")
    akm.write("bundle/env/e.env.sensitive", "")
    akm.write("bundle/secrets/deep/s", "value")
    akm.write("bundle/secrets/deep/.sensitive", "")
    assert akm.json("env", "list")["envs"] == []
    assert akm.json("secret", "list")["secrets"] == []
    assert akm("env", "run", "e", "--", "sh", "-c", 'printf %s "$A"').stdout == "1"
    akm.json("env", "remove", "e")
    assert list((akm.folder / "bundle/env").iterdir()) == []


def test_secrets(akm):
    akm.write("project/value", "line 1\nline 2\n")
    made = akm.json("secret", "set", "deploy-token", "--from", "value")
    path = akm.folder / "bundle/secrets/deploy-token"
    assert (made["ref"], path.read_text()) == ("bundle//secrets/deploy-token", "line 1\nline 2\n")
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    listed = akm("secret", "list").stdout
    assert "deploy-token" in listed
    assert "line 1" not in listed
    show = ("--", "sh", "-c", 'printf %s "$DEPLOY_TOKEN$X"')
    assert akm("secret", "run", "deploy-token", *show).stdout == "line 1\nline 2\n"
    assert akm("secret", "run", "secrets/deploy-token", "X", *show).stdout == "line 1\nline 2\n"
    assert "empty" in akm.error("secret", "set", "none", code=2)["error"]
    akm.json("secret", "remove", "deploy-token")
    assert not path.exists()


def test_lint_flags_keys_that_make_programs_run_other_code(akm):
    akm.write("bundle/env/team/a.env", "# PATH=no\nA='x\nPATH=inside'\nexport PATH=/x\nDYLD_X=1\n")
    akm.write("bundle/env/bad.env", "A=1\nsecret words\n")
    akm.write("bundle/env/hidden.env", "LD_PRELOAD=1\n")
    akm.write("bundle/env/hidden.env.sensitive", "")
    found = akm.json("lint", code=0)
    assert [(row["file"], row["issue"], row.get("line")) for row in found["flagged"]] == [
        ("env/bad.env", "invalid-env-file", None),
        ("env/team/a.env", "dangerous-env-key", 4),
        ("env/team/a.env", "dangerous-env-key", 5),
    ]
    assert "PATH makes programs run other code" in found["flagged"][1]["detail"]
    assert "secret words" not in str(found)
    assert akm.json("lint", "--type", "workflows")["flagged"] == []
    assert akm("lint", "--fail-on-flagged").returncode == 1
    assert "env/team/a.env:4: PATH makes" in akm("lint", "--format", "text").stdout


BINDING = """---
type: workflow
description: d
params: { l: { type: array } }
steps:
  - id: a
    map: { over: params.l, unit: { exec: { command: [sh, -c, "echo $K; touch hit"] }, env: [env/z], on_error: continue } }
  - id: b
    unit: { exec: { command: [cat, said] } }
---

# T

## a

Do a.

## b

Do b.
"""


def test_an_env_problem_fails_the_step_and_no_unit_alone(akm):
    akm.write("bundle/workflows/w.md", BINDING)
    done = akm.json("workflow", "run", "workflows/w", "--l", "[1,2]", code=1)
    assert (done["executed"][0]["unitCount"], done["executed"][0]["failedUnits"]) == (0, 0)
    assert "Env not found: env/z" in done["executed"][0]["summary"]
    step = akm.json("workflow", "status", done["run"]["id"])["workflow"]["steps"][0]
    assert list(step["evidence"]) == ["error"]
    assert "Env not found: env/z" in step["evidence"]["error"]
    assert not (akm.folder / "project/hit").exists()


def test_names_of_a_binding_are_frozen_and_logged_and_a_change_is_refused(akm):
    akm.write("bundle/workflows/w.md", BINDING)
    akm.write("bundle/env/z.env", "K=value-of-k\nPS1=x\n")
    akm.write("project/said", "nothing")
    shown = akm.json("workflow", "plan", "workflows/w")
    assert shown["steps"][0]["environment"] == [
        {
            "kind": "env-ref",
            "ref": "bundle//env/z",
            "owner": {"bundle": "bundle"},
            "keys": ["K", "PS1"],
            "secretNames": [],
        }
    ]
    done = akm.json("workflow", "run", "workflows/w", "--l", "[1]", "--max-steps", "1")
    assert "bundle//env/z sets PS1, which makes programs run other code." in done["warnings"]
    events = akm.json("log", "--run", done["run"]["id"], "--type", "env_access", "--detail", "full")["events"]
    assert [(e["metadata"]["envRef"], e["metadata"]["keys"]) for e in events] == [("bundle//env/z", ["K", "PS1"])]
    again = akm.json("workflow", "run", "workflows/w", "--new", "--l", "[]", "--max-steps", "1")
    akm.write("bundle/env/z.env", "K=value-of-k\n")
    assert again["run"]["status"] == "active"


def test_a_changed_set_of_names_is_refused_on_resume(akm):
    akm.write("bundle/workflows/w.md", BINDING.replace("touch hit", "exit 3").replace(", on_error: continue", ""))
    akm.write("bundle/env/z.env", "K=value-of-k\nL=${secret:none}\n")
    run = akm.json("workflow", "run", "workflows/w", "--l", "[1]", code=1)["run"]["id"]
    akm.write("bundle/env/z.env", "K=value-of-k\n")
    akm.json("workflow", "resume", run)
    done = akm.json("workflow", "run", run, code=1)
    assert "has other keys than when the run was started (L is gone)" in done["executed"][0]["summary"]


def test_what_a_step_was_given_is_hidden_in_the_output_of_another(akm):
    akm.write("bundle/workflows/w.md", BINDING)
    akm.write("bundle/env/z.env", "K=value-of-k\n")
    akm.write("project/said", "it is value-of-k")
    run = akm.json("workflow", "run", "workflows/w", "--l", "[]")["run"]["id"]
    step = akm.json("workflow", "status", run)["workflow"]["steps"][1]
    assert step["evidence"]["output"] == "it is [REDACTED]"
