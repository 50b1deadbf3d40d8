from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.errors import CorruptJournal, StoreError
from flowstone.run.events import AttemptEnded, AttemptStarted, RunStatus, Status, StepClosed, StepOpened
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.stores import codec

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**300), max_value=2**300),
    st.sampled_from([2**63, 2**64, -(2**63) - 1, 2**70, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1.0, -0.0, 1e16, 1e22, 5e-324, 1.7976931348623157e308]),
    TEXT,
    st.just("nul \0 and \u2028 and 😀"),
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


def exactly(value):
    """Spells types and signs, which == does not tell apart."""
    return repr(value)


@given(JSON)
def test_every_json_value_survives_in_an_artifact(value):
    event = StepClosed("a", 1, Status.SUCCEEDED, value)
    assert exactly(codec.decode_event(codec.encode_event(event))) == exactly(event)


@given(JSON, TEXT, st.one_of(st.none(), st.sampled_from(Reason)))
def test_every_json_value_survives_in_an_outcome(value, error, reason):
    outcome = Outcome(reason, value, error=error, warnings=(error,))
    assert exactly(codec.decode_outcome(codec.encode_outcome(outcome))) == exactly(outcome)
    event = AttemptEnded("a", "a:0", 1, outcome, 2, 3)
    assert exactly(codec.decode_event(codec.encode_event(event))) == exactly(event)
    apart = codec.decode_event(codec.encode_end(event), codec.encode_outcome(outcome))
    assert exactly(apart) == exactly(event)


@given(JSON)
def test_every_json_value_survives_in_a_row(value):
    record = RunRecord("r", "akm", "ref", "t", "s", "c", "{}", "h", 1, params=value)
    summary = RunSummary(RunStatus.HELD, outputs=value)
    found = codec.decode_row(codec.encode_header(record), codec.encode_summary(summary), "{}")
    assert exactly(found) == exactly(RunRow(record, summary))


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf], {"a": math.nan}, "\udfff", object()])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises(StoreError, match="cannot be stored as JSON"):
        codec.encode_event(StepClosed("a", 1, Status.SUCCEEDED, value))


def test_an_integer_too_long_to_spell_is_refused():
    with pytest.raises(StoreError, match="StepClosed cannot be stored"):
        codec.encode_event(StepClosed("a", 1, Status.SUCCEEDED, 10**5000))


def test_unknown_fields_of_a_later_version_are_ignored():
    body = '{"type":"step-opened","step":"a","at":1,"color":"red","count":3}'
    assert codec.decode_event(body) == StepOpened("a", 1, count=3)


@pytest.mark.parametrize(
    "body",
    [
        '{"type":"step-painted","step":"a","at":1}',
        '{"step":"a","at":1}',
        '{"type":"step-opened","step":"a","at":"1"}',
        '{"type":"step-opened","step":"a"}',
        '{"type":"step-closed","step":"a","at":1,"status":"painted"}',
        '{"type":"step-opened","step":"a","at":1',
        '{"type":"step-opened","step":"a","at":1} {}',
        "",
        "[]",
        "[" * 100_000,
    ],
)
def test_what_cannot_be_understood_is_a_corrupt_journal(body):
    with pytest.raises(CorruptJournal):
        codec.decode_event(body)


def test_an_end_without_its_outcome_is_a_corrupt_journal():
    body = codec.encode_end(AttemptEnded("a", "a:0", 1, Outcome(), 2))
    with pytest.raises(CorruptJournal, match='attempt 2 of unit "a:0" is lost'):
        codec.decode_event(body)


def test_an_event_is_kept_under_its_tag():
    assert codec.kind_of(AttemptStarted("a", "a:0", 1, "h")) == "attempt-started"
    assert msgspec.json.decode(codec.encode_event(StepOpened("a", 1)))["type"] == "step-opened"
