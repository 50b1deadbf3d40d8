"""The lock file: one spelling, sound in every part, and places that lead nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowstone.errors import SourceError
from flowstone.source.lockfile import decode_lock, encode_lock, pin_of, place_of
from flowstone.source.remote import beside, parse_remote

COMMIT, DIGEST = "0123456789abcdef0123456789abcdef01234567", "ab" * 32


def place(reference: str) -> str:
    remote = parse_remote(reference)
    return place_of(remote, DIGEST, COMMIT if remote.repo else "")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("github:acme/flows@v1//a b/w.yaml", f"github/acme/flows/{COMMIT}/a b/w.yaml"),
        ("github:acme/flows@feat/x//w.yaml", f"github/acme/flows/{COMMIT}/w.yaml"),
        ("https://host:81/a/w.yaml", "https/host%3A81/abababababababab/a/w.yaml"),
        ("https://host/w.yaml?x=1&y=/", "https/host/abababababababab/w.yaml%3Fx=1&y=/%"),
        ("https://host/", "https/host/abababababababab/%"),
        ("https://host/a//b", "https/host/abababababababab/a/%/b"),
        ("https://host/%2e%2e/%2E/x.", "https/host/abababababababab/%252e%252e/%252E/x%2E"),
        ("https://host/../x", "https/host/abababababababab/%2E%2E/x"),
        ("https://host/a:b", "https/host/abababababababab/a%3Ab"),
    ],
)
def test_places(reference, expected):
    assert place(reference) == f"flowstone.vendor/{expected}"


def test_a_long_part_is_cut_and_stays_its_own():
    one, other = (place(f"https://host/{'x' * 300}{end}") for end in "ab")
    assert one != other
    assert max(len(part) for part in one.split("/")) <= 200


def test_the_page_shows_a_lock_as_it_is():
    page = (Path(__file__).parents[3] / "docs" / "reference" / "files-and-folders.md").read_text()
    text = page.partition("```json\n")[2].partition("```")[0]
    assert encode_lock(decode_lock(text.encode(), "flowstone.lock").files) == text


def test_the_same_pins_give_the_same_bytes():
    pins = [
        pin_of(parse_remote(f"github:acme/flows@v1//{name}.yaml"), DIGEST, COMMIT, ["t", "s"]) for name in ("b", "a")
    ]
    text = encode_lock(pins)
    assert text == encode_lock(pins[::-1])
    assert encode_lock(decode_lock(text.encode(), "l").files) == text
    assert [entry["reference"][-6:] for entry in json.loads(text)["files"]] == ["a.yaml", "b.yaml"]
    assert json.loads(text)["files"][0]["targets"] == ["s", "t"]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("reference", "https://me:pw@h/w.yaml", "neither a password nor a digest"),
        ("reference", f"github:acme/flows@{'f' * 40}//a.yaml", "pinned to another commit"),
        ("reference", "github:acme", "not a reference"),
        ("commit", "", "commit must be a full one"),
        ("targets", [], "nothing needs it"),
        ("digest", "sha256:12", "64 hex digits"),
        ("path", "flowstone.vendor/x", "its path must be flowstone.vendor/github/acme"),
        ("extra", 1, "unknown field"),
    ],
)
def test_what_is_no_lock(field, value, said):
    document = json.loads(encode_lock([pin_of(parse_remote("github:acme/flows@v1//a.yaml"), DIGEST, COMMIT, ["t"])]))
    document["files"][0][field] = value
    with pytest.raises(SourceError, match=said) as caught:
        decode_lock(json.dumps(document).encode(), "flowstone.lock")
    assert caught.value.message.startswith("flowstone.lock: ")
    assert "me:pw" not in caught.value.message


@pytest.mark.parametrize(
    ("base", "ref", "expected"),
    [
        ("github:a/b@v1//x/w.yaml", "../y/z.yaml", "github:a/b@v1//y/z.yaml"),
        ("github:a/b//w.yaml", "./z z.yaml", "github:a/b//z z.yaml"),
        ("https://h:8/x/w.yaml?token=1", "sub/a b.yaml", "https://h:8/x/sub/a%20b.yaml"),
        ("https://h/x/", "w.yaml", "https://h/x/w.yaml"),
        ("https://h", "w.yaml", "https://h/w.yaml"),
    ],
)
def test_what_lies_beside_a_remote_file(base, ref, expected):
    assert beside(base, ref) == expected
    parse_remote(expected)


@pytest.mark.parametrize("base", ["github:a/b@v1//x/w.yaml", "https://h/x/w.yaml"])
@pytest.mark.parametrize("ref", ["../../w.yaml", "/w.yaml", "//evil.test/w.yaml", "a\\b", "w?x", "w#x", "a\nb"])
def test_what_leads_away_from_it(base, ref):
    with pytest.raises(SourceError):
        beside(base, ref)
