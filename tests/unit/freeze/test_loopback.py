"""What counts as an endpoint on this machine: by its text alone (akm facts 3.10)."""

from __future__ import annotations

import pytest

from flowstone.freeze.loopback import is_loopback

LOCAL = [
    "127.0.0.1", "127.0.0.2", "127.255.255.255", "127.1", "0x7f.1", "2130706433", "0177.0.0.1", "0x7F000001",
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.localhost.", "127.0.0.1.",
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::1%25eth0]", "[fe80::1%25eth0]", "0.0.0.0", "0", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::FFFF:127.1.2.3]", "%31%32%37.0.0.1", "１２７.0.0.1",
    "1.2.3.4.5", "x127.0.0.1", "256.1.1.1", "a b", "[::1", "[xyz]", "[1::2::3]",
]  # fmt: skip
REMOTE = [
    "8.8.8.8", "api.example.com", "127.0.0.1.nip.io", "localhost.evil", "notlocalhost", "host.docker.internal",
    "[::ffff:8.8.8.8]", "[fe80::1]", "[::127.0.0.1]", "[2001:db8::1]", "128.1", "0300.0.0.1", "1",
    "user@8.8.8.8", "127.0.0.1@8.8.8.8",
]  # fmt: skip


@pytest.mark.parametrize("port", ["", ":8080"])
@pytest.mark.parametrize("host", LOCAL)
def test_local(host, port):
    assert is_loopback(f"http://{host}{port}/v1/chat/completions")


@pytest.mark.parametrize("port", ["", ":443"])
@pytest.mark.parametrize("host", REMOTE)
def test_remote(host, port):
    assert not is_loopback(f"https://{host}{port}/v1/chat/completions")


@pytest.mark.parametrize("url", ["", "nonsense", "ftp://x/", "http://", "http://x:99999/", "http://x:8a/", "//x/"])
def test_what_cannot_be_understood_is_local(url):
    assert is_loopback(url)


def test_the_user_of_an_address_is_no_host():
    assert is_loopback("http://8.8.8.8@127.0.0.1/x")
    assert is_loopback("HTTP:\\\\127.0.0.1\\x")
