"""A prompt target and the configuration → the spec that is dispatched, with its engine frozen in it.

Which engine, model, timeout and tuning: akm facts 9.1, the first hit wins. Nothing of it is read
again by a started run but the key, whose place alone is frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.errors import ConfigError, FreezeError
from flowstone.freeze.inference import merged, of_engine
from flowstone.freeze.loopback import is_loopback
from flowstone.freeze.models import Chosen, ModelMap
from flowstone.plan.bounds import CONCURRENCY
from flowstone.plan.model import Step, Unit
from flowstone.plan.units import AgentSpec, Credential, EngineSpec, EnvRef, LlmSpec, PromptTarget
from flowstone.ports.catalog import EngineConfig

LLM_TIMEOUT_MS = 600_000
LOCAL_CONCURRENCY = 1
REMOTE_CONCURRENCY = 4
SDK = "opencode-sdk"
AGENT_PLATFORMS = ("claude", "opencode", SDK)
"""Those that have agents of their own, chosen by name."""
TOOL_PLATFORMS = ("claude",)
"""Those that are told which tools they may use without asking."""
LLM_SHAPE = '{"kind": "llm", "endpoint": "…", "model": "…"}'
SYNTHESIZED: dict[str, Any] = {"kind": "agent", "platform": SDK}
"""The engine of an installation that has configured none but has the program."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that an author asked for and that has no effect; the run goes on."""

    code: str
    step: str
    adapter: str
    field: str
    message: str
    severity: str = "warning"


class Engines:
    """The engines of one freeze. `notices` and `warnings` are what the selections had to say."""

    def __init__(self, config: EngineConfig, defaults: Any) -> None:
        """`defaults` are the document's own defaults."""
        self._config = config
        self._engines: Mapping[str, Any] = config.engines or {}
        self._models = ModelMap(config.models, config.setter)
        self._document_llm = (defaults or {}).get("llm")
        self.notices: list[Notice] = []
        self.warnings: list[str] = []

    def unit(self, step: Step, unit: Unit, target: PromptTarget) -> Unit:
        """The unit with its engine, model, tuning and timeout; ConfigError and FreezeError name the step."""
        name, engine = self._selected(step, target.engine)
        spec: EngineSpec
        _refuse_unknown_agent(step, target, name, engine)
        if engine["kind"] == "llm":
            _refuse_place(step, unit, target, name)
            spec = self._llm(step, name, engine, target)
        else:
            spec = self._agent(step, name, engine, target)
        timeout = unit.timeout_ms if unit.timeout_set else self._timeout(engine)
        return msgspec.structs.replace(unit, spec=spec, timeout_ms=timeout)

    def judge(self, name: str) -> tuple[EngineSpec, int | None]:
        """The spec of a judge and the bound of its calls; `name` is a configured engine."""
        engine = self._engine(name)
        target = PromptTarget(content="")
        spec: EngineSpec
        if engine["kind"] == "llm":
            spec = self._llm_spec(name, engine, target.content, engine.get("model"), of_engine(engine))
        else:
            spec = self._agent_spec(name, engine, target, engine.get("model"), {})
        return msgspec.structs.replace(spec, judges=True), self._timeout(engine)

    def _selected(self, step: Step, wanted: str | None) -> tuple[str, Mapping[str, Any]]:
        name = wanted or self._config.default_engine
        if name is not None:
            try:
                return name, self._engine(name)
            except ConfigError as error:
                raise ConfigError(f'{error.message} Step "{step.id}" needs it.', hint=error.hint) from None
        if not self._config.opencode:
            raise ConfigError(
                f'Step "{step.id}" needs an engine: none is selected, and no opencode program is installed.',
                hint=f"{self._set('engines.<name>', LLM_SHAPE)} and {self._set('defaults.engine', '<name>')}",
            )
        if not self.warnings:
            self.warnings.append(
                f"No engine is selected: {SDK} is used, since the program opencode is installed "
                f"({self._set('defaults.engine', '<name>')} selects another one)."
            )
        return SDK, self._engines.get(SDK) or SYNTHESIZED

    def _engine(self, name: str) -> Mapping[str, Any]:
        engine = self._engines.get(name)
        if engine is None:
            raise ConfigError(
                f'Engine "{name}" is not configured.',
                hint=self._set(f"engines.{name}", LLM_SHAPE),
            )
        needed = {"llm": ("endpoint",), "agent": ("platform",)}.get(engine.get("kind"), ("kind",))
        lacking = next((key for key in needed if not engine.get(key)), None)
        if lacking is not None:
            raise self._lacks(name, lacking)
        found: Mapping[str, Any] = engine
        return found

    def _llm(self, step: Step, name: str, engine: Mapping[str, Any], target: PromptTarget) -> LlmSpec:
        chosen = self._chosen(target, (name,))
        tuning = self._tuning(of_engine(engine), target, chosen)
        if target.tools:
            self.notices.append(_untaken(step, name, "llm", "tools"))
        spec = self._llm_spec(name, engine, target.content, chosen.model or engine.get("model"), tuning)
        return msgspec.structs.replace(spec, persona=target.persona)

    def _agent(self, step: Step, name: str, engine: Mapping[str, Any], target: PromptTarget) -> AgentSpec:
        chosen = self._chosen(target, tuple(dict.fromkeys((name, engine["platform"]))))
        tuning = self._tuning({}, target, chosen)
        spec = self._agent_spec(name, engine, target, chosen.model or engine.get("model"), tuning)
        if spec.fallback is None:
            self.notices += [_untaken(step, name, spec.platform, f"inference.{key}") for key in tuning]
        return self._with_tools(step, spec, target)

    def _with_tools(self, step: Step, spec: AgentSpec, target: PromptTarget) -> AgentSpec:
        """The spec with those of the wanted tools that the configuration lets an author ask for."""
        if target.tools and spec.platform not in TOOL_PLATFORMS:
            self.notices.append(_untaken(step, spec.engine, spec.platform, "tools"))
            return spec
        allowed = tuple(tool for tool in target.tools if tool in self._config.allowed_tools)
        if refused := [tool for tool in target.tools if tool not in allowed]:
            self.warnings.append(
                f'Step "{step.id}" asks for the tools {", ".join(refused)}, which are not granted '
                f"({self._set('execution.allowedTools', '<list>')} names those that may be)."
            )
        return msgspec.structs.replace(spec, tools=allowed)

    def _agent_spec(
        self,
        name: str,
        engine: Mapping[str, Any],
        target: PromptTarget,
        model: str | None,
        tuning: Mapping[str, Any],
    ) -> AgentSpec:
        fallback = self._fallback(name, engine, tuning)
        return AgentSpec(
            content=target.content,
            engine=name,
            platform=engine["platform"],
            bin=engine.get("bin"),
            args=tuple(engine.get("args") or ()),
            workspace=engine.get("workspace"),
            model=model or (fallback.model if fallback else None),
            agent=target.agent or engine.get("agent"),
            env=(*target.values, *(EnvRef(ref) for ref in target.env)),
            inference=dict(tuning) or None,
            fallback=fallback,
            concurrency=fallback.concurrency if fallback else None,
            passed=self._config.agent_variables,
            context=self._config.context,
            persona=target.persona,
        )

    def _fallback(self, name: str, engine: Mapping[str, Any], tuning: Mapping[str, Any]) -> LlmSpec | None:
        """The model engine that an opencode-sdk engine talks to; None where it names none."""
        other = self._fallback_name(engine)
        if other is None:
            return None
        configured = self._engine(other)
        if configured["kind"] != "llm":
            raise ConfigError(
                f'Engine "{name}" falls back to engine "{other}", which is no model engine (kind llm).',
                hint=self._set(f"engines.{name}.llmEngine", "<llm engine>"),
            )
        return self._llm_spec(other, configured, "", configured.get("model"), merged((of_engine(configured), tuning)))

    def _fallback_name(self, engine: Mapping[str, Any]) -> str | None:
        if engine["platform"] != SDK:
            return None
        name: str | None = engine.get("llmEngine") or self._config.default_llm_engine
        return name

    def _chosen(self, target: PromptTarget, columns: tuple[str, ...]) -> Chosen:
        if target.model is None:
            return Chosen(None)
        return self._models.choose(target.model, columns, self._engines)

    def _tuning(self, base: Mapping[str, Any], target: PromptTarget, chosen: Chosen) -> dict[str, Any]:
        """An alias's tuning counts at the layer that named the alias, and below what is written there."""
        if target.own_model:
            return merged((base, self._document_llm, chosen.inference, target.own_llm))
        return merged((base, chosen.inference, self._document_llm, target.own_llm))

    def _timeout(self, engine: Mapping[str, Any]) -> int | None:
        if engine["kind"] == "agent" and "timeoutMs" not in engine:
            other = self._fallback_name(engine)
            if other is None:
                return None
            engine = self._engine(other)
        bound = engine.get("timeoutMs", LLM_TIMEOUT_MS)
        return None if bound is None else int(bound)

    def _llm_spec(
        self, name: str, engine: Mapping[str, Any], content: str, model: str | None, tuning: Mapping[str, Any]
    ) -> LlmSpec:
        if not model:
            raise self._lacks(name, "model")
        temperature = tuning.get("temperature")
        return LlmSpec(
            content=content,
            engine=name,
            endpoint=engine["endpoint"],
            model=model,
            provider=engine.get("provider"),
            credential=self._credential(name, engine),
            temperature=None if temperature is None else float(temperature),
            max_tokens=_whole(tuning.get("max_tokens")),
            supports_json_schema=tuning.get("supports_json_schema"),
            extra_params=tuning.get("extra_params"),
            context_length=_whole(tuning.get("context_length")),
            enable_thinking=tuning.get("enable_thinking"),
            reasoning_effort=tuning.get("reasoning_effort"),
            concurrency=_concurrency(engine),
            schema_name=self._config.schema_name,
        )

    def _credential(self, name: str, engine: Mapping[str, Any]) -> Credential:
        """Where the key comes from: the variable that the engine names, else the common ones."""
        declared = engine.get("apiKey")
        if declared:
            return Credential((declared.strip("${}"),), required=True)
        if engine.get("apiKeyFile"):
            return Credential(file=engine["apiKeyFile"], required=True)
        if engine.get("apiKeySecretRef"):
            raise ConfigError(
                f'Engine "{name}" reads its key from apiKeySecretRef, which flowstone does not read.',
                hint=f"{self._set(f'engines.{name}.apiKey', '$NAME')} with the name of an environment variable",
            )
        spelt = name.upper().replace("-", "_")
        return Credential(tuple(text.format(spelt) for text in self._config.key_names))

    def _set(self, key: str, value: str) -> str:
        """The command that sets a key, for hints."""
        shown = f"'{value}'" if any(char in value for char in "{$") else value
        return f"{self._config.setter} {key} {shown}"

    def _lacks(self, name: str, key: str) -> ConfigError:
        return ConfigError(f'Engine "{name}" has no {key}.', hint=self._set(f"engines.{name}.{key}", f"<{key}>"))


def _refuse_place(step: Step, unit: Unit, target: PromptTarget, engine: str) -> None:
    """A model has no working folder and no environment: what asks for them is refused."""
    if unit.isolation != "none":
        raise FreezeError(
            f'Step "{step.id}" asks for isolation: {unit.isolation}, and its engine "{engine}" is a model, '
            "which has no working directory.",
            code="COMPOSITION_INVALID",
            hint="Remove isolation, or give the step an agent engine or a command (unit.exec).",
        )
    bound = (*target.env, *(value.name for value in target.values))
    if bound:
        raise FreezeError(
            f'Step "{step.id}" binds env: {", ".join(bound)}, and its engine "{engine}" is a model, '
            "which has no environment (env_unsupported).",
            code="COMPOSITION_INVALID",
            hint="Remove env, or give the step an agent engine or a command (unit.exec).",
        )


def _refuse_unknown_agent(step: Step, target: PromptTarget, name: str, engine: Mapping[str, Any]) -> None:
    """A name that no stored agent has is one of the engine's own agents, where it has some."""
    if target.agent is not None and engine.get("platform") not in AGENT_PLATFORMS:
        raise FreezeError(
            f'Step "{step.id}" wants the agent "{target.agent}": there is no agents/{target.agent} in the bundles, '
            f'and engine "{name}" has no agents of its own.',
            code="ASSET_NOT_FOUND",
            hint=f"Write agents/{target.agent}.md, or name another agent.",
        )


def _concurrency(engine: Mapping[str, Any]) -> int:
    authored = _whole(engine.get("concurrency"))
    if authored is not None:
        return max(1, min(CONCURRENCY, authored))
    return LOCAL_CONCURRENCY if is_loopback(engine["endpoint"]) else REMOTE_CONCURRENCY


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _untaken(step: Step, engine: str, adapter: str, field: str) -> Notice:
    return Notice(
        "untranslated-field",
        step.id,
        adapter,
        field,
        f'untranslated-field: step "{step.id}" sets {field}, which the {adapter} engine "{engine}" '
        "cannot take; it is not applied.",
    )
