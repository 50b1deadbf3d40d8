"""Flags of `task run` → values of the declared inputs, read by their types (akm facts 21.2 and 27)."""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.errors import InputError
from flowstone.formats.akm_common.flags import Flag, coerce_flags
from flowstone.formats.akm_task.document import TaskInput
from flowstone.formats.akm_task.inputs import BindingProblem, Bound, bind
from flowstone.plan.model import Param

INVALID = "INPUT_BINDING_INVALID"


def bind_flags(inputs: Sequence[TaskInput], flags: Sequence[Flag], origin: str = "flag") -> Bound:
    """The values of all inputs. InputError: UNKNOWN_FLAG, else INPUT_BINDING_INVALID with every fault."""
    try:
        given = coerce_flags([Param(name=one.name, schema=one.schema) for one in inputs], flags)
    except InputError as error:
        if error.code == "UNKNOWN_FLAG":
            raise InputError(error.message, code=error.code, hint=_hint(inputs)) from None
        raise InputError(error.message, code=INVALID, hint=error.hint) from None
    try:
        return bind(inputs, given, origin)
    except BindingProblem as problem:
        raise InputError(f"The inputs of the task do not fit:\n{problem}", code=INVALID, hint=_hint(inputs)) from None


def _hint(inputs: Sequence[TaskInput]) -> str:
    names = ", ".join(f"--{one.name}" for one in inputs)
    return f"The task declares {names}." if names else "The task declares no inputs."
