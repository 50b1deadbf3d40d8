"""References to secrets: where they lead, and what is said when they lead nowhere."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from flowstone.config.secrets import HostSecrets
from flowstone.errors import InputError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("from-file\r\n")
    (tmp_path / "two lines").write_text("a\nb\n\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_text("x" * 70_000)
    return tmp_path


def resolve(folder: Path, reference: str) -> str:
    return HostSecrets(str(folder), {"TOKEN": "from-env", "BLANK": ""}).resolve(reference)


def test_a_file_is_read_without_the_line_feed_at_its_end(folder: Path) -> None:
    assert resolve(folder, "secret://file/token") == "from-file"
    assert resolve(folder, f"secret://file/{folder}/token") == "from-file"
    assert resolve(folder, "secret://file/two%20lines") == "a\nb\n"


def test_a_home_folder_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert resolve(Path("/"), "secret://file/~/token") == "from-file"


def test_a_variable_is_read() -> None:
    assert resolve(Path("/"), "secret://env/TOKEN") == "from-env"


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("secret://file/nowhere", "cannot be read: No such file or directory"),
        ("secret://file/empty", "the secret is empty"),
        ("secret://file/binary", "no UTF-8 text"),
        ("secret://file/large", "larger than 64 KiB"),
        ("secret://file/a%00b", "cannot be read"),
        ("secret://file/", "write secret://file/<path>"),
        ("secret://env/NOPE", "the environment has no variable NOPE"),
        ("secret://env/BLANK", "the secret is empty"),
        ("secret://env/", "write secret://file/<path>"),
        ("secret://vault/x", "no such secret reference"),
        ("secret://", "no such secret reference"),
        ("secret://keyring/onlyservice", "write secret://keyring/<service>/<user>"),
    ],
)
def test_what_leads_nowhere_says_why(folder: Path, reference: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve(folder, reference)
    assert caught.value.message.startswith(f"{reference}: ")
    assert text in caught.value.message


def test_without_the_keyring_library_it_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(InputError, match=r"flowstone\[keyring\]"):
        resolve(folder, "secret://keyring/github/me")


def test_the_keyring_is_asked_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def get_password(service: str, user: str) -> str | None:
        asked.append((service, user))
        return {"me/too": "from-keyring"}.get(user)

    library = ModuleType("keyring")
    library.__dict__["get_password"] = get_password
    monkeypatch.setitem(sys.modules, "keyring", library)
    secrets = HostSecrets(str(folder), {})
    assert secrets.resolve("secret://keyring/github/me%2Ftoo") == "from-keyring"
    assert secrets.resolve("secret://keyring/github/me%2Ftoo") == "from-keyring"
    assert asked == [("github", "me/too")]
    with pytest.raises(InputError, match='no password of "other"'):
        secrets.resolve("secret://keyring/github/other")
