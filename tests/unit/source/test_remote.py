"""References to workflows elsewhere: what they name, and what is refused."""

from __future__ import annotations

import pytest

from flowstone.errors import SourceError
from flowstone.source.remote import is_remote, parse_remote


@pytest.mark.parametrize(
    ("text", "repo", "ref", "path"),
    [
        ("github:acme/base@v1.2.3//flows/wf.yaml", "acme/base", "v1.2.3", "flows/wf.yaml"),
        ("github:acme/base@feat/x//flow.yaml", "acme/base", "feat/x", "flow.yaml"),
        ("github:acme/base.js//a b.yaml", "acme/base.js", "", "a b.yaml"),
    ],
)
def test_files_of_repositories(text, repo, ref, path):
    found = parse_remote(text)
    assert (found.repo, found.ref, found.path, found.text) == (repo, ref, path, text)
    assert found.label == (f"{repo}@{ref}" if ref else repo)


def test_addresses():
    found = parse_remote("https://me:p%40ss@host:8443/a b.yaml?x=1".replace(" ", "%20"))
    assert found.user == ("me", "p@ss")
    assert found.text == found.label == "https://host:8443/a%20b.yaml?x=1"


def test_a_pin_belongs_to_the_reference_and_not_to_its_name():
    found = parse_remote(f"https://host/w.yaml#sha256:{'a' * 64}")
    assert (found.digest, found.label) == ("a" * 64, "https://host/w.yaml")
    assert found.text.endswith("a" * 64)


@pytest.mark.parametrize(
    "text",
    [
        "github:acme/base@v1",
        "github:acme/base",
        "github:acme//w.yaml",
        "github:acme/..//w.yaml",
        "github:acme/base//../w.yaml",
        "github:acme/base//a//w.yaml",
        "https:///w.yaml",
        "https://host/a b",
        "http://[::1/w.yaml",
        "https://host/w.yaml#sha256:12",
    ],
)
def test_what_is_no_reference(text):
    with pytest.raises(SourceError) as caught:
        parse_remote(text)
    assert text in caught.value.message


def test_a_password_is_in_no_message():
    with pytest.raises(SourceError) as caught:
        parse_remote("https://me:word@host:port/w.yaml")
    assert "word" not in caught.value.message


def test_only_the_known_forms_are_remote():
    assert not any(map(is_remote, ["w.yaml", "./github:a/b//w.yaml", "ftp://host/w.yaml", "workflows/http"]))
