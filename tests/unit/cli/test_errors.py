"""The outermost ring: errors to text and exit codes."""

import json

import pytest

from flowstone import errors
from flowstone.cli.errors import Exit, Voice, guarded
from flowstone.cli.exit_codes import exit_code, signal_exit


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound("x"), 1),
        (errors.UnknownRun("x"), 1),
        (errors.NotFound("x", code="PATH_ESCAPE_VIOLATION"), 2),
        (errors.InputError("x"), 2),
        (errors.UsageError("x", code="UNKNOWN_FLAG"), 2),
        (errors.IllegalTransition("x"), 2),
        (errors.CompileError("p", ()), 2),
        (errors.FreezeError("x", code="COMPOSITION_INVALID"), 2),
        (errors.DigestMismatch("x"), 2),
        (errors.ConfigError("x"), 78),
        (errors.FreezeError("x", code="INVALID_CONFIG_FILE"), 78),
        (errors.LeaseHeld("x", holder="pid 1"), 75),
        (errors.StoreError("x", code="STATE_DB_CONTENDED"), 75),
        (errors.StoreError("x"), 70),
        (errors.CorruptJournal("x"), 70),
        (errors.InternalError("x"), 70),
    ],
)
def test_exit_codes(error, code):
    assert exit_code(error) == code


def test_signals():
    assert [signal_exit(number) for number in (1, 2, 15)] == [129, 130, 143]


def raising(error):
    def body():
        raise error

    return body


def test_the_body_decides_when_nothing_goes_wrong():
    assert guarded(Voice.AKM, lambda: None) == 0
    assert guarded(Voice.AKM, lambda: 1) == 1
    assert guarded(Voice.AKM, raising(Exit(143))) == 143
    assert guarded(Voice.AKM, raising(KeyboardInterrupt())) == 130


def test_akm_prints_an_envelope(capsys):
    assert guarded(Voice.AKM, raising(errors.NotFound("no\x1b[2J é", hint="look"))) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err) == {"ok": False, "error": "no\x1b[2J é", "code": "ASSET_NOT_FOUND", "hint": "look"}
    assert err.startswith('{\n  "ok": false,')
    assert "\x1b" not in err


def test_the_others_print_text_without_control_characters(capsys):
    assert guarded(Voice.ORUN, raising(errors.ConfigError("bad\x1b[2J"))) == 1
    assert guarded(Voice.FLOWSTONE, raising(errors.ConfigError("bad\x1b[2J", hint="mend"))) == 78
    assert capsys.readouterr().err == "✕ bad\\x1b[2J\nerror: bad\\x1b[2J\n  hint: mend\n"


def test_an_unexpected_error_keeps_its_traceback(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("AKM_STATE_DIR", str(tmp_path))
    assert guarded(Voice.AKM, raising(ZeroDivisionError("ouch"))) == 70
    error = json.loads(capsys.readouterr().err)
    assert error["error"] == "Unexpected error: ZeroDivisionError: ouch"
    assert error["code"] == "INTERNAL"
    (kept,) = (tmp_path / "flowstone" / "crashes").iterdir()
    assert str(kept) in error["hint"]
    assert "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_an_unexpected_error_without_a_place_for_its_traceback(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AKM_STATE_DIR", str(tmp_path / "file"))
    assert guarded(Voice.FLOWSTONE, raising(ZeroDivisionError())) == 70
    assert "Unexpected error: ZeroDivisionError\n" in capsys.readouterr().err
