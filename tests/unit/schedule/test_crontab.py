"""Rows of ours in a crontab: written, read back, and everything else left alone byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.errors import StoreError
from flowstone.ports.activation import Row, Unschedulable
from flowstone.schedule.crontab import Crontab, line_of, row_of, with_row
from flowstone.schedule.programs import Ended

OWNER = "0123abcd"
ROW = Row("main//tasks/nightly#0", "0 6 * * MON", ("/opt/bin/akm", "task", "run", "nightly"), "/home/ada/akm")
FOREIGN = (
    b"# my jobs\nPATH=/usr/bin\r\n\n   \n0 5 * * * /usr/bin/backup 100\\% \xff\xfe\n"
    b"@reboot true\n1 1 * * * cd /a && x >/dev/null # flowstone[other123] main//tasks/nightly#0\n"
    b"* * * * * tail without line feed"
)


class Table:
    """A crontab in memory behind the words of the program, whose `-l` escapes as Debian's does."""

    def __init__(self, text: bytes | None) -> None:
        self.text = text
        self.installed: list[bytes] = []

    def run(self, argv, given=None):
        match argv[-1]:
            case "-l" if self.text is None:
                return Ended(1, b"", b"no crontab for ada\n")
            case "-l":
                return Ended(0, self.text.replace(b"\r", b"\\r"), b"")
            case "-e":
                assert "EDITOR=cat" in argv
                return Ended(0, self.text, b"No modification made\n")
            case "-r":
                self.text = None
            case "-":
                assert given.endswith(b"\n"), "cron refuses a table without a line feed at its end"
                self.text = given
                self.installed.append(given)
        return Ended(0, b"", b"")


def crontab(table, which=lambda name: f"/usr/bin/{name}"):
    return Crontab(OWNER, table.run, which)


def test_a_row_is_one_line_with_our_mark():
    assert line_of(ROW, OWNER) == (
        b"0 6 * * 1 cd /home/ada/akm && /opt/bin/akm task run nightly >/dev/null "
        b"# flowstone[0123abcd] main//tasks/nightly#0\n"
    )


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        Row("b//tasks/ünï x#12", "5/15 0-6 * JAN *", ("/o p/akm", "it's", '"', "50%", "a\\b", "$HOME"), "/a dir/%"),
        Row("b//tasks/t#0", "* * * * *", ("p", "--a", "x=y"), "/", (("AKM_CONFIG_DIR", "/c d"), ("X", ""))),
    ],
)
def test_a_row_reads_back_as_it_was(row):
    found = row_of(line_of(row, OWNER), OWNER)
    assert found is not None
    assert (found.key, found.argv, found.cwd, found.env) == (row.key, row.argv, row.cwd, row.env)


@pytest.mark.parametrize(
    "row",
    [
        Row("k#0", "* * * * *", ("p", "two\nlines"), "/"),
        Row("k#0", "* * * * *", ("p", "bell\x07"), "/"),
        Row("k#0", "* * * * *", ("p", "x" * 1000), "/"),
    ],
)
def test_what_no_crontab_holds_is_refused(row):
    with pytest.raises(Unschedulable):
        line_of(row, OWNER)


def test_lines_of_others_are_not_ours():
    for line in FOREIGN.split(b"\n"):
        assert row_of(line + b"\n", OWNER) is None


def test_rows_come_and_go_beside_a_foreign_crontab():
    table = Table(FOREIGN)
    rows = crontab(table)
    rows.put(ROW)
    assert table.text == FOREIGN + b"\n" + line_of(ROW, OWNER)
    assert [row.key for row in rows.rows()] == [ROW.key]
    rows.put(ROW)
    assert len(table.installed) == 1, "an unchanged table is not installed again"
    changed = Row(ROW.key, "7 7 * * *", ROW.argv, ROW.cwd)
    rows.put(changed)
    assert table.text == FOREIGN + b"\n" + line_of(changed, OWNER)
    rows.remove(ROW.key)
    rows.remove("main//tasks/none#0")
    assert table.text == FOREIGN + b"\n"


def test_a_row_is_replaced_where_it_stands_and_a_double_goes():
    other = Row("main//tasks/b#0", "1 1 * * *", ("b",), "/")
    table = Table(line_of(ROW, OWNER) + b"# mine\r\n" + line_of(other, OWNER) + line_of(ROW, OWNER))
    changed = Row(ROW.key, "7 7 * * *", ROW.argv, ROW.cwd)
    crontab(table).put(changed)
    assert table.text == line_of(changed, OWNER) + b"# mine\r\n" + line_of(other, OWNER)


def test_the_last_row_leaves_no_crontab_behind():
    table = Table(None)
    rows = crontab(table)
    assert rows.rows() == []
    rows.put(ROW)
    rows.remove(ROW.key)
    assert table.text is None


@pytest.mark.parametrize(
    "line",
    [
        b"0 6 * * 1 /opt/bin/akm something else # flowstone[0123abcd] main//tasks/nightly#0\n",
        b"0 6 * * 1 cd 'open # flowstone[0123abcd] main//tasks/nightly#0\n",
        b"nonsense # flowstone[0123abcd] main//tasks/nightly#0\r\n",
    ],
)
def test_a_row_that_somebody_altered_is_still_ours(line):
    found = row_of(line, OWNER)
    assert found is not None
    assert found.key == ROW.key
    assert found != ROW


def test_a_commented_row_is_not_ours():
    assert row_of(b"# " + line_of(ROW, OWNER), OWNER) is None


@given(st.lists(st.binary(max_size=60), max_size=8).map(b"\n".join))
def test_foreign_bytes_survive(text):
    line = line_of(ROW, OWNER)
    before = text if not text or text.endswith(b"\n") else text + b"\n"
    with_ours = with_row(text, ROW.key, line, OWNER)
    assert with_ours == before + line
    assert with_row(with_ours, ROW.key, b"", OWNER) == before


def test_without_the_program_it_says_what_to_install():
    rows = crontab(Table(None), lambda name: None)
    assert "apt-get install cron" in str(rows.problem())
    with pytest.raises(StoreError, match="no crontab program"):
        rows.rows()


def test_what_the_program_says_reaches_the_user():
    def run(argv, given=None):
        return Ended(1, b"", b"You (ada) are not allowed to use this program (crontab)\n")

    with pytest.raises(StoreError, match="not allowed to use this program"):
        Crontab(OWNER, run, lambda name: name).rows()


def test_a_table_that_changes_meanwhile_is_noticed():
    table = Table(b"")

    def run(argv, given=None):
        ended = table.run(argv, given)
        if argv[-1] == "-":
            table.text += b"# somebody else\n"
        return ended

    with pytest.raises(StoreError, match="changed by someone else"):
        Crontab(OWNER, run, lambda name: name).put(ROW)
