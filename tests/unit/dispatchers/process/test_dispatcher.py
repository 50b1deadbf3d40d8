"""What a user sees of a command: its artifact, its failure, its environment and its folder."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.errors import DispatchSetupError, NotFound
from flowstone.plan.units import CaptureRule, CwdRule, EnvironmentRule, EnvRef, LiteralEnv, PassEnv
from flowstone.ports.dispatcher import Workspace
from flowstone.run.outcome import Outcome, Reason
from tests.unit.dispatchers.process.conftest import STEP, Bench, gone, lives

OBJECT = {"type": "object"}
AKM = EnvironmentRule(base=("PATH", "HOME", "LANG"), context="AKM_")


class TestArtifact:
    def test_stdout_without_trailing_line_feeds(self, bench: Bench) -> None:
        outcome = bench.perform("printf", r"  one\n\ntwo \r\n\n")
        assert outcome.ok
        assert outcome.value == "  one\n\ntwo \r"

    def test_arguments_are_inert(self, bench: Bench) -> None:
        outcome = bench.perform("printf", "%s|", "; rm -rf x", "$(date)", "`id`", "*", "", "a  b")
        assert outcome.value == "; rm -rf x|$(date)|`id`|*||a  b|"

    def test_empty_stdout_is_no_output(self, bench: Bench) -> None:
        outcome = bench.perform("true")
        assert outcome.ok
        assert outcome.absent
        assert outcome.value is None

    def test_stderr_is_no_part_of_it(self, bench: Bench) -> None:
        assert bench.sh("echo noise >&2; echo good").value == "good"

    def test_a_very_long_line(self, bench: Bench) -> None:
        outcome = bench.sh("head -c 300001 /dev/zero | tr '\\0' x")
        assert outcome.value == "x" * 300_001

    def test_bytes_that_are_no_utf8_become_one_replacement_each(self, bench: Bench) -> None:
        assert bench.perform("printf", r"a\377\376\342\202b").value == "a\ufffd\ufffd\ufffd\ufffdb"

    def test_nul_bytes_are_kept(self, bench: Bench) -> None:
        assert bench.perform("printf", r"a\000b").value == "a\0b"

    def test_overflow_is_marked_with_its_numbers(self, bench: Bench) -> None:
        outcome = bench.sh("printf 0123456789", capture=CaptureRule(limit=4))
        head, _, marker = outcome.value.partition("\n\n")
        assert outcome.ok
        assert head == "0123"
        assert marker.startswith("[__akm_exec_output_truncated__] ")
        assert "10 bytes" in marker
        assert "4 bytes" in marker
        assert "6 bytes" in marker

    def test_overflow_splits_no_character(self, bench: Bench) -> None:
        outcome = bench.perform("printf", "aé€", capture=CaptureRule(limit=2))
        assert outcome.value.startswith("a\n\n[__akm")

    def test_exactly_the_limit_is_whole(self, bench: Bench) -> None:
        assert bench.sh("printf 0123", capture=CaptureRule(limit=4)).value == "0123"

    def test_stderr_overflow_fails_nothing(self, bench: Bench) -> None:
        outcome = bench.sh("head -c 25165824 /dev/zero >&2; echo done")
        assert outcome.ok
        assert outcome.value == "done"

    def test_both_streams_are_read_at_once(self, bench: Bench) -> None:
        script = "for i in 1 2 3 4; do head -c 200000 /dev/zero | tr '\\0' o; head -c 200000 /dev/zero >&2; done"
        assert len(bench.sh(script).value) == 800_000


class TestTyped:
    def test_one_json_value_with_blanks_around(self, bench: Bench) -> None:
        outcome = bench.perform("printf", r' \n{"a": [1, 2]}\n', has_schema=True, schema=OBJECT)
        assert outcome.ok
        assert outcome.value == {"a": [1, 2]}
        assert not outcome.absent

    @pytest.mark.parametrize("text", ["1\\n2\\n", "", "log {}", r"\357\273\277{}", '{"a": NaN}'])
    def test_anything_else_is_a_parse_error(self, bench: Bench, text: str) -> None:
        assert bench.perform("printf", text, has_schema=True, schema=OBJECT).reason is Reason.PARSE_ERROR

    def test_a_miss_of_the_schema_lists_the_errors(self, bench: Bench) -> None:
        outcome = bench.perform("printf", "1", has_schema=True, schema=OBJECT)
        assert outcome.reason is Reason.VALIDATION_ERROR
        assert "$: expected type object, got" in (outcome.diagnostic or "")

    def test_overflow_promotes_nothing(self, bench: Bench) -> None:
        outcome = bench.sh("echo '{}          '", has_schema=True, schema=OBJECT, capture=CaptureRule(limit=4))
        assert outcome.reason is Reason.EXEC_OUTPUT_LIMIT
        assert outcome.value is None

    def test_secrets_in_a_value_are_redacted(self, bench: Bench) -> None:
        outcome = bench.perform(
            "printf", '{"k": "sesame-open"}', has_schema=True, schema=OBJECT, secrets=("sesame-open",)
        )
        assert outcome.value == {"k": "[REDACTED]"}


class TestFailure:
    def test_a_unit_error_names_program_count_code_and_stderr(self, bench: Bench) -> None:
        outcome = bench.sh("echo out; echo why >&2; exit 3", unit="x:solo")
        assert outcome.reason is Reason.NON_ZERO_EXIT
        assert outcome.error == 'exec unit "x:solo" ran "sh" (2 arguments) and it exited 3. stderr:\nwhy'
        assert outcome.diagnostic == outcome.error + "\n--- unit output ---\nout"
        assert outcome.exit_code == 3
        assert outcome.stdout is None

    def test_one_argument(self, bench: Bench) -> None:
        assert '"false" (0 arguments) and it exited 1.' in (bench.perform("false").error or "")

    def test_a_long_stderr_keeps_its_end(self, bench: Bench) -> None:
        outcome = bench.sh("i=0; while [ $i -lt 900 ]; do echo line$i; i=$((i+1)); done >&2; exit 1")
        assert outcome.diagnostic is not None
        assert ". stderr (last 1500 chars):\n…" in outcome.diagnostic
        assert "line899" in outcome.diagnostic
        assert "line100\n" not in outcome.diagnostic
        assert len(outcome.diagnostic) <= 2001

    def test_a_step_keeps_its_streams(self, bench: Bench) -> None:
        outcome = bench.sh("echo out; echo why >&2; exit 3", capture=STEP)
        assert outcome.error == "run: sh exited 3: why"
        assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, "out\n", "why\n")

    def test_a_step_that_succeeds_keeps_them_too(self, bench: Bench) -> None:
        outcome = bench.sh("printf abc; echo err >&2", capture=STEP)
        assert outcome.ok
        assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (0, "abc", "err\n")

    def test_a_step_error_has_the_last_400_bytes_of_stderr(self, bench: Bench) -> None:
        outcome = bench.sh("head -c 1000 /dev/zero | tr '\\0' a >&2; echo end >&2; exit 2", capture=STEP)
        assert outcome.error == "run: sh exited 2: …" + "a" * 397 + "end"

    def test_a_signal_is_named(self, bench: Bench) -> None:
        outcome = bench.sh("kill -SEGV $$")
        assert outcome.reason is Reason.NON_ZERO_EXIT
        assert outcome.exit_code == 128 + 11
        assert "was killed by SIGSEGV" in (outcome.error or "")

    def test_a_secret_in_an_error_is_redacted_before_it_is_clipped(self, bench: Bench) -> None:
        secret = "S3CR3T-" + "-".join(f"{n:04}" for n in range(60))
        script = f"import os; os.write(2, b'x'*5000 + b'{secret}' + b'y'*1350); raise SystemExit(1)"
        for capture in (CaptureRule(), STEP):
            outcome = bench.perform(sys.executable, "-c", script, secrets=(secret,), capture=capture)
            assert "-00" not in (outcome.diagnostic or "")

    def test_a_secret_that_the_capture_limit_cuts_does_not_show_its_head(self, bench: Bench) -> None:
        outcome = bench.perform("printf", "1234sesame-open", secrets=("sesame-open",), capture=CaptureRule(limit=8))
        assert outcome.value.startswith("1234[REDACTED]\n\n")


class TestStart:
    @pytest.mark.parametrize(
        ("program", "why"),
        [
            ("no-such-program-x", "was not found"),
            ("./missing", "was not found"),
            ("./plain.txt", "may not be executed"),
            ("./folder", "is a folder"),
            ("./noline", "nor begins with a #! line"),
            ("./lost", "interpreter"),
            ("./plain.txt/x", "was not found"),
        ],
    )
    def test_a_program_that_cannot_start_is_named(self, bench: Bench, program: str, why: str) -> None:
        (bench.folder / "plain.txt").write_text("text")
        (bench.folder / "folder").mkdir()
        for name, text in (("noline", "echo hello\n"), ("lost", "#!/no/such/interpreter\n")):
            (bench.folder / name).write_text(text)
            (bench.folder / name).chmod(0o755)
        outcome = bench.perform(program)
        assert outcome.reason is Reason.SPAWN_FAILED
        assert not outcome.ran
        assert program in (outcome.error or "")
        assert why in (outcome.error or "")

    def test_a_step_error_for_a_missing_program(self, bench: Bench) -> None:
        outcome = bench.perform("no-such-program-x", capture=STEP)
        assert outcome.error == 'run: "no-such-program-x" was not found'
        assert outcome.exit_code == -1

    def test_a_missing_folder_is_named_instead_of_the_program(self, bench: Bench) -> None:
        outcome = bench.perform("true", spec={"cwd": "nope"})
        assert outcome.reason is Reason.SPAWN_FAILED
        assert "/nope does not exist" in (outcome.error or "")

    def test_a_file_as_folder(self, bench: Bench) -> None:
        (bench.folder / "f").write_text("")
        assert "/f is not a folder" in (bench.perform("true", spec={"cwd": "f"}).error or "")

    def test_nul_in_an_argument(self, bench: Bench) -> None:
        outcome = bench.perform("echo", "a\0b")
        assert outcome.reason is Reason.SPAWN_FAILED
        assert 'argument 1 of "echo" holds a NUL' in (outcome.error or "")

    @pytest.mark.parametrize("rule", list(CwdRule))
    @pytest.mark.parametrize("cwd", ["a\0b", "a\ud800b"])
    def test_a_folder_that_no_system_can_name(self, bench: Bench, cwd: str, rule: CwdRule) -> None:
        outcome = bench.perform("true", spec={"cwd": cwd, "cwd_rule": rule})
        assert outcome.reason is Reason.SPAWN_FAILED
        assert "the working directory holds" in (outcome.error or "")

    def test_too_large_for_the_system(self, bench: Bench) -> None:
        outcome = bench.perform("true", "x" * 200_000)
        assert outcome.reason is Reason.SPAWN_FAILED
        assert "larger than the system allows" in (outcome.error or "")

    def test_the_program_is_looked_up_on_the_childs_own_path(self, bench: Bench) -> None:
        tools = bench.folder / "tools"
        tools.mkdir()
        (tools / "greet").write_text("#!/bin/sh\necho hello\n")
        (tools / "greet").chmod(0o755)
        path = LiteralEnv("PATH", str(tools), secret=False)
        assert bench.perform("greet").reason is Reason.SPAWN_FAILED
        assert bench.perform("greet", spec={"env": (path,)}).value == "hello"

    def test_a_file_that_may_not_run_does_not_hide_one_further_on(self, bench: Bench) -> None:
        for folder, mode in (("one", 0o644), ("two", 0o755)):
            (bench.folder / folder).mkdir()
            (bench.folder / folder / "tool").write_text("#!/bin/sh\necho two\n")
            (bench.folder / folder / "tool").chmod(mode)
        path = f"{bench.folder}/one:{bench.folder}/two"
        assert bench.perform("tool", spec={"env": (LiteralEnv("PATH", path, secret=False),)}).value == "two"

    def test_a_relative_program_is_found_from_the_working_directory(self, bench: Bench) -> None:
        (bench.folder / "sub").mkdir()
        (bench.folder / "sub" / "tool.sh").write_text("#!/bin/sh\necho tool here\n")
        (bench.folder / "sub" / "tool.sh").chmod(0o755)
        assert bench.perform("./tool.sh", spec={"cwd": "sub"}).value == "tool here"


class TestFolder:
    def test_default_is_the_base(self, bench: Bench) -> None:
        assert bench.perform("pwd").value == str(bench.folder)

    @pytest.mark.parametrize("cwd", ["..", "a/../..", "/tmp", "~", "~/x", "out"])
    def test_nothing_is_spawned_outside(self, bench: Bench, cwd: str) -> None:
        base = bench.folder / "base"
        base.mkdir()
        (base / "out").symlink_to(bench.folder)
        bench.workspace = Workspace(base=str(base), cwd=str(base))
        outcome = bench.perform("touch", str(bench.folder / "hit"), spec={"cwd": cwd})
        assert outcome.reason is Reason.EXEC_CWD_ESCAPE
        assert not (bench.folder / "hit").exists()

    def test_a_sibling_with_the_same_beginning_is_outside(self, bench: Bench) -> None:
        (bench.folder / "base").mkdir()
        (bench.folder / "base-two").mkdir()
        (bench.folder / "base" / "out").symlink_to(bench.folder / "base-two")
        bench.workspace = Workspace(base=str(bench.folder / "base"), cwd="/")
        assert bench.perform("true", spec={"cwd": "out"}).reason is Reason.EXEC_CWD_ESCAPE

    def test_a_base_behind_a_link_and_a_link_inside(self, bench: Bench) -> None:
        (bench.folder / "real" / "sub").mkdir(parents=True)
        (bench.folder / "real" / "in").symlink_to("sub")
        (bench.folder / "link").symlink_to("real")
        bench.workspace = Workspace(base=str(bench.folder / "link"), cwd="/")
        assert bench.perform("pwd", spec={"cwd": "in"}).value == str(bench.folder / "real" / "sub")

    def test_run_folder_rule(self, bench: Bench) -> None:
        for name in ("run", "sub"):
            (bench.folder / name).mkdir()
        run = str(bench.folder / "run")
        bench.workspace = Workspace(base="/", cwd=str(bench.folder), run_folder=run)
        rule = {"cwd_rule": CwdRule.RUN_FOLDER}
        assert bench.perform("pwd", spec=rule).value == run
        assert bench.perform("pwd", spec={**rule, "cwd": "./sub"}).value == str(bench.folder / "sub")


class TestEnvironment:
    def names(self, bench: Bench, **fields: object) -> dict[str, str]:
        script = "import os, json; print(json.dumps(dict(os.environ)))"
        outcome = bench.perform(sys.executable, "-c", script, **fields)
        values: dict[str, str] = json.loads(outcome.value)
        return {k: v for k, v in values.items() if k != "LC_CTYPE"}

    def test_only_what_is_named(self, bench: Bench) -> None:
        bench.host |= {"TOKEN": "x", "ONE": "1", "LANG": "C.UTF-8"}
        bench.workspace = Workspace(base=str(bench.folder), cwd=str(bench.folder), provenance=(("SOURCE_REF", "main"),))
        spec = {
            "environment": AKM,
            "env": (
                LiteralEnv("LANG", "xx", secret=False),
                PassEnv("ONE"),
                PassEnv("GONE"),
                LiteralEnv("AKM_STEP_ID", "no"),
            ),
        }
        names = self.names(bench, spec=spec, context=(("AKM_STEP_ID", "a"), ("AKM_PARAMS", '{"é":1}')))
        assert set(names) == {"PATH", "HOME", "LANG", "ONE", "AKM_STEP_ID", "AKM_PARAMS", "SOURCE_REF"}
        assert (names["LANG"], names["ONE"]) == ("xx", "1")
        assert names["AKM_STEP_ID"] == "a"
        assert names["AKM_PARAMS"] == '{"é":1}'

    def test_the_shim_is_in_front_whoever_sets_path(self, bench: Bench) -> None:
        bench.workspace = Workspace(base=str(bench.folder), cwd=str(bench.folder), shim_folder="/shims")
        rule = EnvironmentRule(shim="tool")
        assert self.names(bench, spec={"environment": rule})["PATH"] == "/shims:" + bench.host["PATH"]
        path = LiteralEnv("PATH", "/usr/bin:/bin", secret=False)
        assert self.names(bench, spec={"environment": rule, "env": (path,)})["PATH"] == "/shims:/usr/bin:/bin"

    def test_bound_values_are_redacted_and_passed_ones_are_not(self, bench: Bench) -> None:
        bench.host["TOOL"] = "visible-tool"
        spec = {"env": (LiteralEnv("T", "hush-hush-9"), PassEnv("TOOL"), EnvRef("env/z"))}
        outcome = bench.sh(
            'echo "$T $TOOL $Z"',
            spec=spec,
            env_values=lambda ref: {"Z": "asset-secret"} if ref == "env/z" else {},
        )
        assert outcome.value == "[REDACTED] visible-tool [REDACTED]"

    def test_an_asset_that_is_missing_or_has_changed(self, bench: Bench) -> None:
        def missing(ref: str) -> dict[str, str]:
            raise NotFound(f"Env not found: {ref}")

        outcome = bench.perform("true", spec={"env": (EnvRef("env/z"),)}, env_values=missing)
        assert outcome.reason is Reason.DISPATCH_ERROR
        assert "Env not found: env/z" in (outcome.error or "")
        spec = {"env": (EnvRef("env/z", keys=("A",)),)}
        outcome = bench.perform("true", spec=spec, env_values=lambda ref: {"A": "1", "B": "2"})
        assert "B is new" in (outcome.error or "")

    def test_one_variable_too_large(self, bench: Bench) -> None:
        context = (("AKM_INPUTS", "y" * 98_305),)
        outcome = bench.perform("touch", "hit", spec={"environment": AKM}, context=context)
        assert outcome.reason is Reason.EXEC_CONTEXT_TOO_LARGE
        for part in ("AKM_INPUTS", "98305 bytes", "98304 bytes", "MAX_ARG_STRLEN"):
            assert part in (outcome.error or "")
        assert not (bench.folder / "hit").exists()

    def test_one_variable_at_the_limit(self, bench: Bench) -> None:
        context = (("AKM_INPUTS", "y" * 98_304),)
        assert bench.sh("echo ${#AKM_INPUTS}", spec={"environment": AKM}, context=context).value == "98304"

    def test_all_variables_too_large(self, bench: Bench) -> None:
        context = (("AKM_A", "y" * 70_000), ("AKM_B", "y" * 71_000))
        outcome = bench.perform("true", spec={"environment": AKM}, context=context)
        assert outcome.reason is Reason.EXEC_CONTEXT_TOO_LARGE
        assert "AKM_B" in (outcome.error or "")
        assert "131072" in (outcome.error or "")

    def test_nul_in_a_value(self, bench: Bench) -> None:
        outcome = bench.perform("true", spec={"env": (LiteralEnv("A", "x\0y"),)})
        assert outcome.reason is Reason.SPAWN_FAILED
        assert "variable A holds a NUL" in (outcome.error or "")


class TestHygiene:
    def test_stdin_is_empty(self, bench: Bench) -> None:
        assert bench.sh("wc -c").value.strip() == "0"

    def test_only_three_descriptors(self, bench: Bench) -> None:
        extra = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(extra, True)
        try:
            script = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
            assert bench.perform(sys.executable, "-c", script).value == "[0, 1, 2]"
        finally:
            os.close(extra)

    def test_not_even_with_a_lease_and_others_running(self, bench: Bench) -> None:
        async def work(dispatcher) -> list[str]:
            import asyncio

            script = "import os, time; time.sleep(0.1); print(len(os.listdir('/proc/self/fd')))"
            calls = (dispatcher.perform(bench.dispatch(sys.executable, "-c", script)) for _ in range(4))
            return [outcome.value for outcome in await asyncio.gather(*calls)]

        with open(bench.folder / "lock", "w") as lock:
            assert bench.using(work, lease_fd=lock.fileno()) == ["4"] * 4

    def test_session_group_and_signals_are_its_own(self, bench: Bench) -> None:
        script = (
            "import os, signal; p = os.getpid();"
            "print(os.getsid(0) == p, os.getpgid(0) == p,"
            "[s.name for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)"
            " if signal.getsignal(s) != signal.SIG_DFL],"
            "[l for l in open('/proc/self/status') if l.startswith('SigBlk')][0].split()[1].strip('0'))"
        )
        assert bench.perform(sys.executable, "-c", script).value.split() == ["True", "True", "[]"]

    def test_sigpipe_ends_a_writer(self, bench: Bench) -> None:
        assert bench.perform("bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}").value == "y\n141"

    def test_descriptors_of_the_driver_are_given_back(self, bench: Bench) -> None:
        async def work(dispatcher) -> None:
            await dispatcher.perform(bench.dispatch("true"))
            before = os.listdir("/proc/self/fd")
            for argv in (("true",), ("no-such-x",), ("sh", "-c", "echo x; exit 1")):
                await dispatcher.perform(bench.dispatch(*argv))
            assert os.listdir("/proc/self/fd") == before

        bench.using(work)

    def test_no_zombies_and_nothing_left_after_close(self, bench: Bench) -> None:
        async def work(dispatcher) -> int:
            for _ in range(5):
                await dispatcher.perform(bench.dispatch("true"))
            return dispatcher._guard.pid

        guard = bench.using(work)
        assert not Path(f"/proc/{guard}").exists()

    def test_a_background_process_with_redirected_streams_lives_on(self, bench: Bench) -> None:
        started = time.monotonic()
        outcome = bench.sh("sleep 20 >/dev/null 2>&1 & echo $! > pids; echo ok")
        assert outcome.value == "ok"
        assert time.monotonic() - started < 5
        (pid,) = bench.pids()
        assert lives(pid)
        os.kill(pid, 9)
        assert gone([pid])


def test_errno_texts_exist_for_what_the_guard_tells() -> None:
    from flowstone.dispatchers.process.diagnostics import not_started

    assert "cannot be started" in not_started(errno.ENOMEM, "program", "x", "/")


class TestWithoutATask:
    def test_each_attempt_is_told_of_once(self, bench: Bench) -> None:
        told: list[object] = []

        async def begin(dispatcher: ProcessDispatcher) -> None:
            for word in ("one", "two"):
                dispatcher.begin(bench.dispatch("printf", word), told.append)
            assert told == []
            dispatcher.push()
            await until(lambda: len(told) == 2)

        bench.using(begin)
        assert {outcome.value for outcome in told if isinstance(outcome, Outcome)} == {"one", "two"}

    def test_one_that_cannot_start_is_told_of_afterwards(self, bench: Bench) -> None:
        told: list[object] = []

        async def begin(dispatcher: ProcessDispatcher) -> None:
            dispatcher.begin(bench.dispatch("a\0b"), told.append)
            assert told == []
            await until(lambda: bool(told))

        bench.using(begin)
        assert isinstance(told[0], Outcome)
        assert told[0].reason is Reason.SPAWN_FAILED

    def test_ending_one_early_leaves_nothing_of_it(self, bench: Bench) -> None:
        told: list[object] = []

        async def begin(dispatcher: ProcessDispatcher) -> None:
            end = dispatcher.begin(bench.dispatch("sh", "-c", "echo $$ > pids; sleep 60"), told.append)
            await until(lambda: (bench.folder / "pids").exists() and bool(bench.pids()))
            end()
            end()
            await until(lambda: bool(told))

        bench.using(begin)
        assert isinstance(told[0], Outcome)
        assert told[0].reason is Reason.ABORTED
        assert gone(bench.pids())

    def test_after_the_end_it_is_told_that_nothing_can_start(self, bench: Bench) -> None:
        told: list[object] = []

        async def begin(dispatcher: ProcessDispatcher) -> None:
            await dispatcher.close()
            dispatcher.begin(bench.dispatch("true"), told.append)
            await until(lambda: bool(told))

        bench.using(begin)
        assert isinstance(told[0], DispatchSetupError)


def test_a_large_variable_reaches_every_command_as_it_is_then(bench: Bench) -> None:
    texts = ["a" * 5_000, "a" * 5_000, "b" * 5_000, "short", "b" * 5_000]

    async def several(dispatcher: ProcessDispatcher) -> list[Outcome]:
        spec = {"environment": AKM}
        return [
            await dispatcher.perform(
                bench.dispatch("sh", "-c", 'printf %s "$AKM_PARAMS"', spec=spec, context=(("AKM_PARAMS", text),))
            )
            for text in texts
        ]

    assert [outcome.value for outcome in bench.using(several)] == texts


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.005)
