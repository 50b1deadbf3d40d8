"""What compiling and freezing ask of the asset bundles and of the configuration."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec


class Asset(msgspec.Struct, frozen=True):
    """A file found by ref: canonical `ref` (`bundle//type/name`), absolute `path`, its bytes."""

    ref: str
    path: str
    data: bytes
    bundle: str


class EnvNames(msgspec.Struct, frozen=True):
    """What freezing may know of an env asset: its canonical ref, its bundle, sorted names; never a value.

    `dangerous` are those of the keys that make programs run other code.
    """

    ref: str
    keys: tuple[str, ...]
    secret_names: tuple[str, ...]
    owner: str = ""
    dangerous: tuple[str, ...] = ()


class Catalog(Protocol):
    def find(self, ref: str) -> Asset:
        """The asset that a ref names; NotFound when there is none.

        A file that resolves outside its bundle raises NotFound with code PATH_ESCAPE_VIOLATION.
        """

    def env_names(self, ref: str) -> EnvNames:
        """The names in an env asset, for freezing."""

    def env_values(self, ref: str) -> dict[str, str | None]:
        """The variables of an env asset with its secrets filled in, in the file's order.

        One whose secret is missing is None: it is not given to anybody.
        """


class EngineConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What freezing reads of the configuration, once.

    `models` are the documents of models.json with their files' names, the packaged one first;
    `opencode` tells whether the program is there to fall back to. `setter` is the command that sets
    a key of the configuration, for hints; `key_names` are the variables that an engine's key is
    looked up in when it names none (`{}` stands for the engine), `schema_name` names a schema to a
    model's server, `agent_variables` are what an agent program gets of the host's environment,
    `context` begins the names of the variables that tell it where in a run it works; `allowed_tools`
    are those that an author may ask for.
    """

    engines: Any = None
    default_engine: str | None = None
    judge_engine: str | None = None
    map_width: int | None = None
    max_concurrency: int | None = None
    host_concurrency: int | None = None
    default_llm_engine: str | None = None
    models: tuple[tuple[str, Any], ...] = ()
    opencode: bool = False
    setter: str = "set"
    key_names: tuple[str, ...] = ()
    schema_name: str = "response"
    agent_variables: tuple[str, ...] = ()
    context: str | None = None
    allowed_tools: tuple[str, ...] = ()
