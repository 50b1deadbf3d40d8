"""How an agent program ended and what it printed, made into a reply of the agent or a failed outcome."""

from __future__ import annotations

import msgspec

from flowstone.dispatchers.agent.harness import Harness, NoAnswer, Said
from flowstone.dispatchers.answers.conversation import Reply
from flowstone.dispatchers.process.capture import decode
from flowstone.dispatchers.process.diagnostics import how_it_ended, not_started, seconds, tail_of, unit_diagnostic
from flowstone.dispatchers.process.failures import CannotStart
from flowstone.dispatchers.process.result import Performed
from flowstone.plan.bounds import STDERR_TAIL_CHARS
from flowstone.plan.units import AgentSpec
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason


def reply_of(performed: Performed, spec: AgentSpec, harness: Harness, redactor: Redactor) -> Reply | Outcome:
    """The agent's reply (not redacted yet); a program that failed or said nothing readable is a failure."""
    ending = performed.ending
    if ending.not_started is not None:
        text = not_started(*ending.not_started, performed.argv[0], performed.cwd)
        return refused(spec, Reason.SPAWN_FAILED, redactor.text(text))
    if ending.timed_out:
        return _failed(performed, spec, Reason.TIMEOUT, "was ended, because its time was over", redactor)
    if ending.aborted:
        return _failed(performed, spec, Reason.ABORTED, "was ended, because its driver stopped", redactor)
    if ending.guard_lost:
        what = "was ended, because the guard process that held it is gone"
        return _failed(performed, spec, Reason.DISPATCH_ERROR, what, redactor)
    if ending.status != 0:
        return _exited(performed, spec, harness, redactor)
    return _read(performed, spec, harness, redactor)


def refused(spec: AgentSpec, reason: Reason, text: str, *, of_step: bool = False) -> Outcome:
    """The outcome of a program that was not started; `text` is redacted."""
    error = f'engine "{spec.engine}": the agent was not started: {text}'
    return Outcome(reason, error=error, diagnostic=unit_diagnostic(error, ""), ran=False, of_step=of_step)


def not_begun(spec: AgentSpec, problem: CannotStart, redactor: Redactor) -> Outcome:
    """The outcome of a program that cannot be started."""
    return refused(spec, problem.reason, redactor.text(problem.text), of_step=problem.of_step)


def over_time(spec: AgentSpec, timeout_ms: int, outcome: Outcome) -> Outcome:
    """The same timeout with the bound of the whole attempt in its error."""
    error = f'engine "{spec.engine}": timed out after {seconds(timeout_ms)}'
    diagnostic = error if outcome.diagnostic is None else f"{error}\n{outcome.diagnostic}"
    return Outcome(Reason.TIMEOUT, error=error, diagnostic=unit_diagnostic(diagnostic, ""))


def _read(performed: Performed, spec: AgentSpec, harness: Harness, redactor: Redactor) -> Reply | Outcome:
    limit, written = performed.spec.capture.limit, performed.stdout.total
    if written > limit:
        what = f"exited 0 but wrote {written} bytes to stdout, of which at most {limit} are kept"
        return _failed(performed, spec, Reason.PARSE_ERROR, what, redactor)
    if "stdout" in performed.ending.held:
        what = "exited 0, but a process that it left running still holds its stdout, so its answer is incomplete"
        return _failed(performed, spec, Reason.PARSE_ERROR, what, redactor)
    try:
        said = harness.read(decode(performed.stdout.data))
    except NoAnswer as problem:
        return _failed(performed, spec, Reason.PARSE_ERROR, f"exited 0 but gave no answer: {problem}", redactor)
    if said.failure is not None:
        return _reported(performed, spec, said, redactor)
    text = said.text if said.text.strip() else ""
    return Reply(text, said.tokens, said.tokens_in, said.tokens_out, session=said.session)


def _exited(performed: Performed, spec: AgentSpec, harness: Harness, redactor: Redactor) -> Outcome:
    """A program with another exit code than 0, and what it printed about the reason, if it can be read."""
    try:
        said = harness.read(decode(performed.stdout.data))
    except NoAnswer:
        said = Said()
    what = how_it_ended(performed.ending.status)
    if said.failure is not None:
        what = f"{what} and {_reports(said, redactor)}"
    return _used(_failed(performed, spec, Reason.NON_ZERO_EXIT, what, redactor), said)


def _reported(performed: Performed, spec: AgentSpec, said: Said, redactor: Redactor) -> Outcome:
    """A program that exits 0 and says that it failed."""
    return _used(_failed(performed, spec, Reason.REPORTED_FAILURE, _reports(said, redactor), redactor), said)


def _reports(said: Said, redactor: Redactor) -> str:
    return f"reported a failure: {redactor.text(said.failure or '')}"


def _used(outcome: Outcome, said: Said) -> Outcome:
    """What a failed program used counts all the same."""
    return msgspec.structs.replace(
        outcome,
        tokens=said.tokens,
        tokens_in=said.tokens_in,
        tokens_out=said.tokens_out,
        session=said.session,
    )


def _failed(performed: Performed, spec: AgentSpec, reason: Reason, what: str, redactor: Redactor) -> Outcome:
    program = redactor.text(performed.argv[0])
    head = f'engine "{spec.engine}": the agent "{program}" {what}'
    stderr = redactor.text(decode(performed.stderr.data)).strip()
    error = f"{head}. stderr:\n{tail_of(stderr, STDERR_TAIL_CHARS)}" if stderr else head
    stdout = redactor.text(decode(performed.stdout.data))
    return Outcome(reason, error=error, diagnostic=unit_diagnostic(error, stdout), exit_code=performed.ending.status)
