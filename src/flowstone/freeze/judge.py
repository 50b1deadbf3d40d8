"""Freezes the judge of a gate: which engine it is, how long a call may take. Only for a rubric."""

from __future__ import annotations

import msgspec

from flowstone.errors import ConfigError
from flowstone.freeze.engines import Engines
from flowstone.plan.model import Gate, Step
from flowstone.ports.catalog import EngineConfig


def freeze_gate(step: Step, engines: Engines, config: EngineConfig) -> Gate | None:
    """The gate with its judge; ConfigError where a rubric has none (akm facts 9.1, 9.2)."""
    gate = step.gate
    if gate is None or not gate.rubric or gate.judge is not None:
        return gate
    judge = config.judge_engine
    if judge is None:
        raise ConfigError(
            f'Step "{step.id}" has a gate rubric and no judge is configured.',
            hint=f"{config.setter} workflow.judgeEngine <engine>",
        )
    try:
        spec, timeout = engines.judge(judge)
    except ConfigError as error:
        text = f'{error.message} It is the judge of step "{step.id}" (workflow.judgeEngine).'
        raise ConfigError(text, hint=error.hint) from None
    return msgspec.structs.replace(gate, judge=spec, judge_timeout_ms=timeout)
