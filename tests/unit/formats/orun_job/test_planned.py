"""Plan files: the same bytes for the same files, and nothing in them can be altered unseen."""

from __future__ import annotations

import json

import pytest

from flowstone.errors import PlanVersionError
from flowstone.formats.orun_job.planned import decode, encode
from flowstone.plan.codec import encode_plan
from tests.unit.formats.orun_job.jobs import planned

JOB = "  - { name: a, run: x, outputs: { n: '1' } }\n  - { name: b, workflow: release.yaml, with: { image: i } }\n"


@pytest.fixture
def text(tmp_path):
    return encode(planned(tmp_path, JOB), "ci/job.yaml")


def test_what_people_look_for_stands_in_front(text):
    document = json.loads(text)
    assert list(document) == ["apiVersion", "kind", "job", "workflows", "planDigest", "plan"]
    assert (document["kind"], document["job"]["path"]) == ("Plan", "ci/job.yaml")
    assert [pin["path"] for pin in document["workflows"]] == ["release.yaml"]
    assert all(pin["digest"].startswith("sha256:") for pin in (document["job"], *document["workflows"]))


def test_there_and_back(tmp_path, text):
    found = decode(text)
    assert encode_plan(found.plan) == encode_plan(planned(tmp_path, JOB)) == found.text
    assert found.job == "ci/job.yaml"
    assert encode(found.plan, found.job) == text


def _altered(text: str, change) -> str:
    document = json.loads(text)
    change(document)
    return json.dumps(document)


ALTERATIONS = {
    "a pinned digest": lambda d: d["workflows"][0].update(digest="sha256:" + "0" * 64),
    "a pin less": lambda d: d["workflows"].clear(),
    "the job's digest": lambda d: d["job"].update(digest="sha256:" + "0" * 64),
    "a command": lambda d: d["plan"]["steps"][0]["action"]["unit"]["spec"]["argv"].__setitem__(2, "rm -rf /"),
    "a digest in the plan": lambda d: d["plan"]["read_set"][1].update(digest="0" * 64),
    "a key more": lambda d: d.update(more=1),
    "a key less": lambda d: d.pop("planDigest"),
    "another kind": lambda d: d.update(kind="Job"),
    "another language": lambda d: d["plan"].update(dialect="orun"),
    "no plan at all": lambda d: d.update(plan=3),
    "no job": lambda d: d.update(job="job.yaml"),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_an_altered_file_is_refused(text, what):
    with pytest.raises(PlanVersionError):
        decode(_altered(text, ALTERATIONS[what]))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"apiVersion": "orun.dev/v1", "kind": "Plan"}', "{}{}"])
def test_what_is_no_plan_file(text):
    with pytest.raises(PlanVersionError):
        decode(text)
