"""Env assets in a frozen plan: canonical ref, bundle and names; never a value."""

from __future__ import annotations

import pytest

from flowstone.assets.bundles import Bundle
from flowstone.assets.catalog import FileCatalog
from flowstone.errors import InputError
from flowstone.freeze.frozen import freeze
from flowstone.plan.model import Unit
from flowstone.plan.units import EnvRef, ExecSpec, LiteralEnv
from flowstone.ports.catalog import EngineConfig
from flowstone.testing.plans import fan_out, solo, spine


@pytest.fixture
def frozen(tmp_path):
    """Freezes a step that binds refs, over a bundle of one's own and a foreign one; files are written before."""

    def make(*bindings, files=None, step=solo):
        for path, text in (files or {}).items():
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        catalog = FileCatalog((Bundle("own", str(tmp_path / "own")), Bundle("other", str(tmp_path / "other"))))
        spec = ExecSpec(argv=("true",), env=tuple(EnvRef(b) if isinstance(b, str) else b for b in bindings))
        arguments = ("a",) if step is solo else ("a", "params.l")
        return freeze(spine(step(*arguments, unit=Unit(spec))), EngineConfig(), catalog)

    return make


def env_of(result):
    return result.plan.steps[0].unit.spec.env


@pytest.mark.parametrize("step", [solo, fan_out])
def test_names_are_frozen_and_values_are_not(frozen, step):
    files = {"own/env/z.env": "B=value-of-b\nA=x-${secret:team/tok}\n", "own/secrets/team/tok": "hush-hush"}
    result = frozen("env/z", files=files, step=step)
    assert env_of(result) == (EnvRef("own//env/z", ("A", "B"), ("team/tok",), "own"),)
    assert "value-of-b" not in result.text
    assert "hush" not in result.text


def test_the_same_asset_twice_is_bound_once_where_it_stands_first(frozen):
    literal = LiteralEnv("L", "1")
    result = frozen("env/z", literal, "own//env/z", "env/y", files={"own/env/z.env": "A=1\n", "own/env/y.env": "A=2\n"})
    assert [getattr(b, "ref", "literal") for b in env_of(result)] == ["own//env/z", "literal", "own//env/y"]


@pytest.mark.parametrize("ref", ["env/none", "secrets/x", "env/bad"])
def test_what_cannot_be_looked_up_is_told_by_the_unit(frozen, ref):
    assert env_of(frozen(ref, files={"own/env/bad.env": "no assignment\n"})) == (EnvRef(ref),)


def test_keys_that_make_programs_run_other_code(frozen):
    files = {"own/env/z.env": "PATH=/x\n", "other/env/o.env": "LD_PRELOAD=x\n"}
    assert frozen("env/z", files=files).warnings == ("own//env/z sets PATH, which makes programs run other code.",)
    with pytest.raises(InputError, match="other//env/o sets LD_PRELOAD"):
        frozen("env/o")


def test_an_empty_asset_is_frozen_too(frozen):
    assert env_of(frozen("env/z", files={"own/env/z.env": "# nothing\n"})) == (EnvRef("own//env/z", owner="own"),)
