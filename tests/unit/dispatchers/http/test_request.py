"""From `with:` to a request, and from a redirect to the next one, without a wire."""

from __future__ import annotations

import pytest

from flowstone.dispatchers.http.request import BadRequest, Request, redirected, request_of


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("http://x.test", "http://x.test/"),
        ("HTTPS://X.Test:8443/A b?q=é&r=%20#part", "https://x.test:8443/A%20b?q=%C3%A9&r=%20"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        (" http://x.test/a/../b ", "http://x.test/a/../b"),
        ("http://x.test/?a[]=1&u=http://y/?z", "http://x.test/?a[]=1&u=http://y/?z"),
        ("http://me:pw@x.test/", "http://x.test/"),
    ],
)
def test_addresses(written: str, sent: str) -> None:
    assert request_of({"url": written}, None).url == sent


def test_the_user_of_an_address_becomes_a_header() -> None:
    assert request_of({"url": "http://a%40b:p%3Aw@x/"}, None).headers == {"authorization": "Basic YUBiOnA6dw=="}


@pytest.mark.parametrize("token", ["a\nb", "a\0b", "a\rb"])
def test_a_token_that_no_header_can_carry_is_not_shown(token: str) -> None:
    with pytest.raises(BadRequest) as caught:
        request_of({"url": "http://x/"}, token)
    assert token not in str(caught.value)


@pytest.mark.parametrize("body", ["\ud800", {"a": "\ud800"}])
def test_half_a_character_cannot_be_sent(body: object) -> None:
    with pytest.raises(BadRequest, match="surrogate"):
        request_of({"url": "http://x/", "body": body}, None)


def test_a_form_takes_texts_only() -> None:
    arguments = {"url": "http://x/", "headers": {"content-type": "application/x-www-form-urlencoded"}}
    with pytest.raises(BadRequest, match=r"with\.body\.a"):
        request_of({**arguments, "body": {"a": {"b": 1}}}, None)


@pytest.mark.parametrize(
    ("before", "location", "kept"),
    [
        ("http://x/", "/b", True),
        ("http://x/", "http://x:80/b", True),
        ("http://x/", "http://X/b", True),
        ("http://x/", "https://x/b", True),
        ("https://x/", "http://x/b", False),
        ("http://x/", "http://x:81/b", False),
        ("http://x:81/", "https://x:82/b", False),
        ("http://x/", "http://y/b", False),
        ("http://x/", "http://y.x/b", False),
        ("http://x/", "//y/b", False),
    ],
)
def test_who_gets_the_token(before: str, location: str, kept: bool) -> None:
    following = redirected(Request("GET", before, {"authorization": "Bearer t", "x": "1"}), 302, location)
    assert following is not None
    assert following.headers == ({"authorization": "Bearer t", "x": "1"} if kept else {"x": "1"})


def test_a_body_that_is_dropped_takes_its_headers_along() -> None:
    request = Request("POST", "http://x/", {"content-type": "text/x", "x": "1"}, b"body")
    assert redirected(request, 303, "/b") == Request("GET", "http://x/b", {"x": "1"})
    assert redirected(request, 307, "/b") == Request("POST", "http://x/b", dict(request.headers), b"body")


@pytest.mark.parametrize(("status", "location"), [(200, "/b"), (304, "/b"), (300, "/b"), (302, None), (302, "")])
def test_what_is_no_redirect(status: int, location: str | None) -> None:
    assert redirected(Request("GET", "http://x/", {}), status, location) is None
