"""Values against schemas, and schemas against the enforced subset."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowstone.expr.schema import validate
from flowstone.expr.schema_check import ENFORCED, check_schema

NOT_ENFORCED = (
    "$ref $defs definitions $anchor $dynamicRef $dynamicAnchor if then else const pattern format patternProperties "
    "propertyNames additionalItems prefixItems contains minContains maxContains uniqueItems multipleOf exclusiveMinimum "
    "exclusiveMaximum minProperties maxProperties dependencies dependentRequired dependentSchemas unevaluatedItems "
    "unevaluatedProperties contentEncoding contentMediaType contentSchema"
)


@pytest.mark.parametrize(
    ("value", "schema", "errors"),
    [
        ("x", {"type": "object"}, ["$: expected type object, got string"]),
        (1.0, {"type": "integer"}, []),
        (1, {"type": "number"}, []),
        (True, {"type": "integer"}, ["$: expected type integer, got boolean"]),
        (None, {"type": ["string", "null"]}, []),
        ({"a": "x"}, {"properties": {"a": {"enum": ["y"]}}}, ['$.a: value "x" is not one of ["y"]']),
        (True, {"enum": [1]}, ["$: value true is not one of [1]"]),
        (1.0, {"enum": [1]}, []),
        ([1], {"enum": [[1]]}, ["$: value [1] is not one of [[1]]"]),
        ("", {"minLength": 1}, ["$: string shorter than minLength 1"]),
        ("😀", {"minLength": 2}, []),
        ("😀", {"maxLength": 1}, ["$: string longer than maxLength 1"]),
        (5, {"minimum": 6}, ["$: 5 is below minimum 6"]),
        (5.5, {"maximum": 5}, ["$: 5.5 is above maximum 5"]),
        ([1], {"minItems": 2}, ["$: array has fewer than minItems 2"]),
        ([1, 2], {"maxItems": 1}, ["$: array has more than maxItems 1"]),
        ({}, {"required": ["x"]}, ['$: missing required property "x"']),
        (
            {"b": 1},
            {"additionalProperties": False},
            ['$: unexpected property "b" (additionalProperties: false)'],
        ),
        ({}, {"additionalProperties": False}, []),
        (
            {"a": {"b": [1, "x"]}},
            {"properties": {"a": {"properties": {"b": {"items": {"type": "integer"}}}}}},
            ["$.a.b[1]: expected type integer, got string"],
        ),
        (
            1,
            {"oneOf": [{}, {}]},
            ['$: value matches 2 "oneOf" schemas (branches 1, 2); exactly one must match'],
        ),
        (1, {"not": {"type": "integer"}}, ['$: value must not match the "not" schema']),
        (
            1,
            {"allOf": [{"minimum": 2}, {"maximum": 0}]},
            ["$: 1 is below minimum 2", "$: 1 is above maximum 0"],
        ),
        (1, {"title": "t", "default": 2, "x-own": {}}, []),
    ],
)
def test_validation(value, schema, errors):
    assert validate(value, schema) == errors


def test_no_branch_matches_tells_the_first_three():
    branches = [{"type": "string"}, {"minimum": 9}, {"enum": [2]}, {"type": "null"}, {"type": "array"}]
    assert validate(1, {"anyOf": branches}) == [
        '$: value matches none of the 5 "anyOf" schemas (1: $: expected type string, got integer; '
        "2: $: 1 is below minimum 9; 3: $: value 1 is not one of [2]; …2 more)"
    ]


def test_order_and_a_root_of_ones_own():
    schema = {"type": "object", "properties": {"p": {"type": "string"}}, "required": ["q"]}
    assert validate({"p": 1}, schema, "params") == [
        'params: missing required property "q"',
        "params.p: expected type string, got integer",
    ]


def test_type_and_enum_stop_the_node():
    assert len(validate(1, {"type": "string", "enum": ["a"], "not": {}})) == 1
    assert len(validate("b", {"enum": ["a"], "minLength": 5})) == 1


def test_too_many_checks_fail_closed_also_below_not():
    (error,) = validate([0] * 100_001, {"not": {"items": {"type": "string"}}})
    assert "100,000 checks" in error


def test_too_deep_a_schema_fails_closed():
    schema: dict = {}
    value: object = 0
    for _ in range(70):
        schema, value = {"items": schema}, [value]
    (error,) = validate(value, schema)
    assert "64 levels" in error


def test_exponential_schemas_end():
    schema: dict = {"type": "string"}
    for _ in range(40):
        schema = {"anyOf": [schema, schema]}
    start = time.process_time()
    assert "checks" in validate(1, schema)[0]
    assert time.process_time() - start < 3


def test_many_small_objects_are_checked_quickly():
    item = {
        "type": "object",
        "required": ["id", "n"],
        "properties": {
            "id": {"type": "string", "minLength": 1},
            "n": {"type": "integer", "minimum": 0},
            "t": {"enum": ["a", "b"]},
        },
        "additionalProperties": False,
    }
    value = [{"id": str(n), "n": n, "t": "a"} for n in range(10_000)]
    start = time.process_time()
    assert validate(value, {"type": "array", "items": item}) == []
    assert time.process_time() - start < 1


@pytest.mark.parametrize("keyword", NOT_ENFORCED.split())
def test_what_is_not_enforced_is_refused_by_name(keyword):
    (found,) = check_schema({"properties": {"z": {keyword: 1}}}, 'Param "p" schema')
    assert found.path == ("properties", "z", keyword)
    assert found.message.startswith(f'Param "p" schema (at $.properties.z): keyword "{keyword}" is not enforced')
    assert f"Supported JSON Schema keywords: {', '.join(ENFORCED)}." in found.message


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"const": 1}, '"enum"'),
        ({"$ref": "#/x"}, "inline"),
        ({"pattern": "a"}, '"enum"'),
        ({"items": [{}]}, 'tuple-form keyword "items"'),
        ({"additionalProperties": {}}, 'schema-form keyword "additionalProperties"'),
        ({"anyOf": [{}, {"const": 1}]}, "(at $.anyOf.1)"),
        (
            {"type": "strig"},
            'unknown type "strig"; the types are null, array, string, boolean, integer, number, object',
        ),
        ({"type": []}, "empty list"),
        ({"type": 1}, "string or a list of strings"),
        ({"enum": []}, "non-empty list"),
        ({"oneOf": []}, "non-empty list"),
        ({"allOf": [1]}, "schema objects"),
        ({"not": []}, "schema object"),
        ({"required": "a"}, "list of strings"),
        ({"properties": []}, "must be an object"),
        ({"properties": {"a": "string"}}, "(at $.properties.a): a schema must be an object, got string"),
        ({"items": "x"}, "schema object"),
        ({"additionalProperties": 1}, "true or false"),
        ({"minLength": -1}, "non-negative integer"),
        ({"maxItems": 1.5}, "non-negative integer"),
        ({"minimum": "1"}, "finite number"),
        ({"maximum": float("inf")}, "finite number"),
        ("string", "must be an object, got string"),
        (None, "must be an object, got null"),
    ],
)
def test_what_is_wrong_with_a_schema(schema, words):
    (found,) = check_schema(schema, "L")
    assert found.message.startswith("L ")
    assert words in found.message


def test_the_whole_subset_passes():
    schema = {
        "type": ["object", "null"],
        "properties": {
            "a": {"type": "array", "items": {"minLength": 0, "maxLength": 2.0}, "minItems": 0, "maxItems": 3}
        },
        "required": ["a"],
        "additionalProperties": True,
        "enum": [None],
        **{keyword: [{}] for keyword in ("allOf", "anyOf", "oneOf")},
        "not": {"minimum": 1, "maximum": 2.5},
        "title": "t",
        "$schema": "s",
        "x-own": 1,
    }
    assert check_schema(schema, "L") == []


def nested(levels: int) -> dict:
    schema: dict = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def test_depth_and_size_are_bounded():
    assert check_schema(nested(64), "L") == []
    (deep,) = check_schema(nested(500), "L")
    assert "64 levels" in deep.message
    (large,) = check_schema({"description": "x" * 262_144}, "L")
    assert "256 KiB" in large.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*ENFORCED, "a", "const", "default"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(JSON, JSON)
def test_a_checked_schema_never_makes_validation_raise(schema, value):
    if not check_schema(schema, "L"):
        validate(value, schema)
