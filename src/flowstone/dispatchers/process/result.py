"""How a command ended and what it printed, made into an outcome: pure, and redacted here once."""

from __future__ import annotations

import msgspec

from flowstone.dispatchers.process.attempt import Ending
from flowstone.dispatchers.process.capture import decode, whole_characters
from flowstone.dispatchers.process.diagnostics import (
    how_it_ended,
    mebibytes,
    not_started,
    seconds,
    step_error,
    unit_diagnostic,
    unit_error,
)
from flowstone.dispatchers.process.failures import CannotStart
from flowstone.plan.units import Drain, ExecSpec, Overflow
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason
from flowstone.values import JsonError, decode_json

TRUNCATED = "[__akm_exec_output_truncated__]"
NO_EXIT_CODE = -1
"""The exit code of a command that has none: it never started, or was ended over its time."""


class Output(msgspec.Struct, frozen=True):
    """The captured beginning of a stream and the number of bytes that were written to it.

    `data` reaches somewhat beyond the capture limit, so that what the limit cuts in two is seen whole.
    """

    data: bytes = b""
    total: int = 0


class Performed(msgspec.Struct, frozen=True):
    """A command that has come to its end, with what it printed."""

    dispatch: Dispatch
    ending: Ending
    cwd: str
    stdout: Output
    stderr: Output

    @property
    def spec(self) -> ExecSpec:
        assert isinstance(self.dispatch.spec, ExecSpec)
        return self.dispatch.spec

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(str(argument) for argument in self.spec.argv)


def outcome_of(performed: Performed, redactor: Redactor) -> Outcome:
    """The outcome of an attempt, by akm facts 3.5 and 12, or orun facts 3 and 4."""
    ending = performed.ending
    if ending.not_started is not None:
        text = not_started(*ending.not_started, performed.argv[0], performed.cwd)
        return refused(performed.dispatch, CannotStart(Reason.SPAWN_FAILED, text), redactor)
    if ending.timed_out:
        return _failed(performed, Reason.TIMEOUT, _over_time(performed), redactor)
    if ending.aborted:
        return _failed(performed, Reason.ABORTED, "was ended, because its driver stopped", redactor)
    if ending.guard_lost:
        what = "was ended, because the guard process that held it is gone"
        return _failed(performed, Reason.DISPATCH_ERROR, what, redactor)
    if ending.status != 0:
        return _failed(performed, Reason.NON_ZERO_EXIT, how_it_ended(ending.status), redactor)
    if "stdout" in ending.held and performed.spec.capture.drain is Drain.STDOUT_FAILS:
        return _failed(performed, Reason.EXEC_CAPTURE_INCOMPLETE, _INCOMPLETE, redactor)
    if performed.dispatch.has_schema:
        return _typed(performed, redactor)
    return _text(performed, redactor)


def refused(dispatch: Dispatch, problem: CannotStart, redactor: Redactor) -> Outcome:
    """The outcome of a command that was not started."""
    spec = dispatch.spec
    assert isinstance(spec, ExecSpec)
    text = redactor.text(problem.text)
    if spec.capture.keep_streams:
        error = f"run: {text}"
        return Outcome(problem.reason, error=error, diagnostic=error, ran=False, exit_code=NO_EXIT_CODE)
    error = f'exec unit "{dispatch.unit}" was not started: {text}'
    diagnostic = unit_diagnostic(error, "")
    return Outcome(problem.reason, error=error, diagnostic=diagnostic, ran=False, of_step=problem.of_step)


_INCOMPLETE = (
    "exited 0, but a process that it left running still holds its stdout, so its output is incomplete "
    "(let the command wait for its children, or redirect their output)"
)


def _over_time(performed: Performed) -> str:
    return f"timed out after {seconds(performed.dispatch.timeout_ms or 0)}"


def _text(performed: Performed, redactor: Redactor) -> Outcome:
    """Without a schema the result is what the command printed to stdout."""
    capture = performed.spec.capture
    shown = _shown(performed.stdout, capture.limit, redactor)
    if capture.keep_streams:
        return _succeeded(performed, None, redactor, stdout=shown)
    text = shown.rstrip("\n") if capture.strip_newlines else shown
    written = performed.stdout.total
    if written > capture.limit and capture.overflow is Overflow.MARK:
        retained = whole_characters(performed.stdout.data, capture.limit)
        return _succeeded(performed, text + _marker(written, retained), redactor)
    return _succeeded(performed, text or None, redactor)


def _marker(written: int, retained: int) -> str:
    return (
        f"\n\n{TRUNCATED} The command wrote {written} bytes to stdout; the first {retained} bytes are "
        f"retained above and {written - retained} bytes were discarded."
    )


def _typed(performed: Performed, redactor: Redactor) -> Outcome:
    """With a schema stdout is exactly one JSON value that fits it."""
    from flowstone.expr.schema import validate

    capture, stdout = performed.spec.capture, performed.stdout
    if stdout.total > capture.limit:
        what = (
            f"exited 0 but wrote {stdout.total} bytes to stdout; at most {capture.limit} are kept, and a "
            "part of a JSON value is none (write the data to a file and print its path)"
        )
        return _failed(performed, Reason.EXEC_OUTPUT_LIMIT, what, redactor)
    try:
        value = decode_json(stdout.data)
    except JsonError as error:
        what = f"exited 0 but its stdout is not exactly one JSON value: {redactor.text(str(error))}"
        return _failed(performed, Reason.PARSE_ERROR, what, redactor)
    errors = validate(value, performed.dispatch.schema)
    if errors:
        listed = redactor.text("; ".join(errors))
        what = f"exited 0 but its output does not fit the schema: {listed}"
        return _failed(performed, Reason.VALIDATION_ERROR, what, redactor)
    return _succeeded(performed, redactor.json(value), redactor, typed=True)


def _succeeded(
    performed: Performed, value: object, redactor: Redactor, *, typed: bool = False, stdout: str | None = None
) -> Outcome:
    capture = performed.spec.capture
    keep = capture.keep_streams
    if keep and stdout is None:
        stdout = _shown(performed.stdout, capture.limit, redactor)
    return Outcome(
        value=value,
        absent=value is None and not typed,
        exit_code=0,
        stdout=stdout,
        stderr=_shown(performed.stderr, capture.limit, redactor) if keep else None,
        warnings=_warnings(performed, capture.keep_streams),
    )


def _failed(performed: Performed, reason: Reason, what: str, redactor: Redactor) -> Outcome:
    capture, argv = performed.spec.capture, performed.argv
    stdout = _shown(performed.stdout, capture.limit, redactor)
    stderr = _shown(performed.stderr, capture.limit, redactor)
    program = redactor.text(argv[0])
    if not capture.keep_streams:
        error = unit_error(performed.dispatch.unit, (program, *argv[1:]), what, stderr)
        diagnostic = unit_diagnostic(error, stdout)
    elif reason is Reason.TIMEOUT:
        error = diagnostic = f"run: timed out (killed): {program}"
    else:
        error = diagnostic = step_error(program, what, stderr)
    return Outcome(
        reason,
        error=error,
        diagnostic=diagnostic,
        exit_code=_exit_code(performed),
        stdout=stdout if capture.keep_streams else None,
        stderr=stderr if capture.keep_streams else None,
        warnings=_warnings(performed, True),
    )


def _exit_code(performed: Performed) -> int:
    status = performed.ending.status
    if status is None or performed.ending.timed_out:
        return NO_EXIT_CODE
    return status if status >= 0 else 128 - status


def _warnings(performed: Performed, stderr_shown: bool) -> tuple[str, ...]:
    """What a user must know of the outcome besides it; what is cut of a stderr that nobody sees is no matter."""
    ending, unit = performed.ending, performed.dispatch.unit
    streams = [("stdout", performed.stdout), *([("stderr", performed.stderr)] if stderr_shown else [])]
    limit = performed.spec.capture.limit
    warnings = tuple(_cut(unit, name, output.total, limit) for name, output in streams if output.total > limit)
    if ending.held == ("stderr",) and performed.spec.capture.drain is Drain.STDOUT_FAILS:
        warnings += (f'unit "{unit}": its stderr may be incomplete, because a process that it left running holds it',)
    elif ending.held and performed.spec.capture.drain is Drain.KEEP:
        grace, who = performed.spec.capture.grace_ms, ", ".join(ending.holders) or "a process that has ended since"
        warnings += (
            f'unit "{unit}": its {" and ".join(ending.held)} was still held {seconds(grace)} after its end by '
            f"what it left running: {who}; what comes later is not read",
        )
    if ending.leftovers:
        pids = ", ".join(map(str, ending.leftovers))
        warnings += (f'unit "{unit}": these processes could not be ended: {pids}',)
    return warnings


def _cut(unit: str, stream: str, written: int, limit: int) -> str:
    return (
        f'unit "{unit}": its {stream} was cut at {mebibytes(limit)}: it wrote {written:,} bytes, '
        "and what lies beyond is lost (write large data to a file and print its path)"
    )


def _shown(output: Output, limit: int, redactor: Redactor) -> str:
    """The kept text of a stream. A secret that the limit cuts in two is redacted as a whole."""
    data = output.data
    if not data:
        return ""
    if len(data) <= limit:
        return redactor.text(decode(data))
    head = decode(data[: whole_characters(data, limit)])
    if redactor.empty:
        return head
    return redactor.text(decode(data), len(head))
