from __future__ import annotations

import os
import stat
import subprocess

import pytest

from flowstone.errors import InputError, StoreError, UsageError
from flowstone.run.record import RunSummary
from flowstone.stores.directory.store import DirectoryStore
from flowstone.testing.store_contract import RUN, record


@pytest.fixture
def root(tmp_path):
    return tmp_path / ".orun"


@pytest.fixture
def store(root):
    store = DirectoryStore.open(str(root))
    store.create(record(), RunSummary())
    yield store
    store.close()


@pytest.fixture
def folder(root, store):
    return root / "wfruns" / RUN


FILES = (("metadata.json", b"{}\n"), ("steps/build.json", b'{"name":"build"}\n'))


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_a_run_has_its_folder_from_the_start(store, folder):
    assert folder.is_dir()
    assert store.run_folder(RUN) == str(folder)
    assert os.path.isabs(store.run_folder(RUN))


def test_files_are_published_where_they_are_documented(store, folder):
    assert store.publish(RUN, FILES) == ()
    assert names(folder) == ["metadata.json", "steps/build.json"]
    assert (folder / "steps/build.json").read_bytes() == b'{"name":"build"}\n'
    assert store.publish(RUN, [("steps/build.json", b"new")]) == ()
    assert (folder / "steps/build.json").read_bytes() == b"new"
    assert stat.S_IMODE((folder / "steps/build.json").stat().st_mode) == 0o600


def test_the_journal_is_no_file_of_the_run_folder(store, root, folder):
    store.publish(RUN, FILES)
    for path in (folder / "metadata.json", folder / "steps/build.json"):
        path.write_text("clobbered")
    assert store.load(RUN).record == record()
    assert (root / "journal" / "state.db").is_file()


def test_a_planted_link_is_replaced_and_not_followed(store, folder, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / "steps").mkdir()
    (folder / "steps/build.json").symlink_to(victim)
    assert store.publish(RUN, FILES) == ()
    assert victim.read_text() == "precious"
    assert (folder / "steps/build.json").read_bytes() == FILES[1][1]
    assert not (folder / "steps/build.json").is_symlink()


def test_a_link_in_place_of_a_folder_is_moved_aside(store, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "steps").symlink_to(outside)
    assert store.publish(RUN, FILES) == ()
    assert list(outside.iterdir()) == []
    assert (folder / "steps/build.json").is_file()
    moved = [path for path in folder.iterdir() if path.name.startswith("steps.moved-")]
    assert [path.is_symlink() for path in moved] == [True]


def test_a_link_in_place_of_the_run_folder_is_moved_aside(store, folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder.rmdir()
    folder.symlink_to(outside)
    assert store.publish(RUN, FILES) == ()
    assert list(outside.iterdir()) == []
    assert (folder / "metadata.json").is_file()


def test_a_file_in_place_of_a_folder_is_moved_aside(store, folder):
    (folder / "steps").write_text("somebody's work")
    assert store.publish(RUN, FILES) == ()
    assert (folder / "steps/build.json").is_file()
    moved = [path for path in folder.iterdir() if path.name.startswith("steps.moved-")]
    assert [path.read_text() for path in moved] == ["somebody's work"]


def test_a_folder_in_place_of_a_file_is_moved_aside(store, folder):
    (folder / "steps/build.json/deep").mkdir(parents=True)
    (folder / "steps/build.json/deep/file").write_text("somebody's work")
    assert store.publish(RUN, FILES) == ()
    assert (folder / "steps/build.json").read_bytes() == FILES[1][1]
    assert any(name.endswith("/deep/file") for name in names(folder))


def test_a_removed_folder_is_made_again(store, root, folder):
    folder.rmdir()
    (root / "wfruns").rmdir()
    assert store.publish(RUN, FILES) == ()
    assert names(folder) == ["metadata.json", "steps/build.json"]


def test_what_cannot_be_written_is_a_warning_and_the_others_are_written(store, folder):
    long = "steps/" + "x" * 300 + ".json"
    warnings = store.publish(RUN, [(long, b""), *FILES])
    assert len(warnings) == 1
    assert "was not written" in warnings[0]
    assert names(folder) == ["metadata.json", "steps/build.json"]


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a//b", "", ".", "a/../../b", "a\0b"])
def test_a_path_that_leads_out_is_not_written(store, root, path):
    (warning,) = store.publish(RUN, [(path, b"x")])
    assert "does not name a file of the run folder" in warning
    assert names(root / "wfruns") == []


@pytest.mark.parametrize("run_id", ["../x", "a/b", "..", ".", "a\0b", ""])
def test_an_id_that_leads_out_is_refused(store, run_id):
    for call in (store.run_folder, store.shim_folder, lambda name: store.publish(name, FILES)):
        with pytest.raises(UsageError, match="cannot name a file"):
            call(run_id)


def test_a_shim_runs_a_command_line_with_any_words_in_it(store, folder):
    words = ["printf", "%s|", "it's", 'a "b" $HOME `x`', "new\nline", "\\", "ü", ""]
    path = store.write_shim(RUN, "orun", words)
    assert path == str(folder / ".orun-bin" / "orun")
    assert store.shim_folder(RUN) == str(folder / ".orun-bin")
    done = subprocess.run([path, "more words", "*"], capture_output=True, check=True)
    assert done.stdout.decode() == "|".join([*words[2:], "more words", "*"]) + "|"
    assert names(folder) == [".orun-bin/orun"]


def test_a_shim_is_written_anew(store, folder, tmp_path):
    store.write_shim(RUN, "orun", ["false"])
    (folder / ".orun-bin/orun").unlink()
    (folder / ".orun-bin/orun").symlink_to(tmp_path / "elsewhere")
    path = store.write_shim(RUN, "orun", ["echo", "yes"])
    assert subprocess.run([path], capture_output=True, check=True).stdout == b"yes\n"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("name", "argv"), [("a/b", ["x"]), ("", ["x"]), ("..", ["x"]), ("orun", []), ("orun", ["a\0"])]
)
def test_a_shim_that_cannot_be_is_refused(store, name, argv):
    with pytest.raises(InputError):
        store.write_shim(RUN, name, argv)


def test_a_shim_that_cannot_be_written_is_an_error(store):
    with pytest.raises(StoreError, match="File name too long"):
        store.write_shim(RUN, "x" * 300, ["true"])


def test_a_deleted_run_takes_its_folder_along(store, folder):
    store.publish(RUN, FILES)
    store.delete(RUN)
    assert not folder.exists()


def test_a_run_without_its_folder_is_not_begun(tmp_path):
    root = tmp_path / ".orun"
    store = DirectoryStore.open(str(root))
    (root / "wfruns").write_text("in the way")
    with pytest.raises(StoreError, match="wfruns"):
        store.create(record(), RunSummary())
    assert list(store.find()) == []
    store.close()
