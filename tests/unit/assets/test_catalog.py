"""Refs to files, and env assets to values."""

import os

import pytest

from flowstone.assets.bundles import Bundle, list_assets
from flowstone.assets.catalog import FileCatalog
from flowstone.assets.refs import is_ref, parse_ref
from flowstone.errors import FlowstoneError, InputError, NotFound, SourceError


@pytest.fixture
def catalog(tmp_path):
    files = {
        "one/workflows/release.md": "one",
        "one/workflows/deep/flow.yml": "deep",
        "one/workflows/both.md": "md",
        "one/workflows/both.yml": "yml",
        "one/workflows/z.yaml": "never",
        "one/scripts/go.sh": "echo",
        "one/env/app.env": "A=1\nB=pre-${secret:tok}\nC=${secret:none}\nD=$HOME ${X}\n",
        "one/env/plain": "P=1\n",
        "one/secrets/tok": "hush\n",
        "two/workflows/release.md": "two",
        "two/workflows/other.md": "other",
        "two/env/app2.env": "T=${secret:tok}",
        "two/secrets/tok": "of two",
        "outside.md": "out",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return FileCatalog((Bundle("one", str(tmp_path / "one")), Bundle("two", str(tmp_path / "two"))))


@pytest.mark.parametrize(
    ("ref", "canonical", "data"),
    [
        ("workflows/release", "one//workflows/release", b"one"),
        ("workflows/release.md", "one//workflows/release", b"one"),
        ("two//workflows/release", "two//workflows/release", b"two"),
        ("workflows/other", "two//workflows/other", b"other"),
        ("workflows/deep/flow", "one//workflows/deep/flow", b"deep"),
        ("workflows/both", "one//workflows/both", b"md"),
        ("workflows/both.yml", "one//workflows/both.yml", b"yml"),
        ("scripts/go", "one//scripts/go.sh", b"echo"),
        ("scripts/go.sh", "one//scripts/go.sh", b"echo"),
        ("secrets/tok", "one//secrets/tok", b"hush\n"),
    ],
)
def test_refs_find_files(catalog, ref, canonical, data):
    asset = catalog.find(ref)
    assert (asset.ref, asset.data, asset.bundle) == (canonical, data, canonical.split("//")[0])
    assert os.path.isabs(asset.path)
    assert catalog.find(asset.ref) == asset
    assert catalog.ref_of(asset.path) == canonical


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("workflows/nope", "Workflow not found for ref: workflows/nope"),
        ("workflows/z", "Workflow not found for ref: workflows/z"),
        ("workflows/z.yaml", "Workflow not found for ref: workflows/z.yaml"),
        ("workflows/deep", "Workflow not found for ref: workflows/deep"),
        ("three//workflows/release", "Workflow not found for ref: three//workflows/release"),
        ("one//workflows/other", "Workflow not found for ref: one//workflows/other"),
        ("env/nope", "Env not found: env/nope"),
        ("tasks/nope", "Workflow source target tasks/nope was not found."),
    ],
)
def test_what_is_not_there(catalog, ref, text):
    with pytest.raises(NotFound) as caught:
        catalog.find(ref)
    assert str(caught.value) == text
    assert caught.value.code == "ASSET_NOT_FOUND"
    assert caught.value.hint


def test_a_near_name_is_offered(catalog):
    with pytest.raises(NotFound) as caught:
        catalog.find("workflows/relase")
    assert "workflows/release" in caught.value.hint


@pytest.mark.parametrize(
    "ref", ["workflows/../../outside", "workflows/a//b", "workflows/", "workflows/./x", "/workflows/x"]
)
def test_refs_that_lead_outside_are_refused(catalog, ref):
    with pytest.raises(InputError):
        catalog.find(ref)


@pytest.mark.parametrize("ref", ["things/x", "x", "workflows/a:b", "workflows/a\\b", "b/c//workflows/x", "", "a\0b/c"])
def test_texts_that_are_no_refs(ref):
    with pytest.raises(InputError):
        parse_ref(ref)


def test_symlinks_are_followed_inside_the_bundle_only(catalog, tmp_path):
    folder = tmp_path / "one" / "workflows"
    (folder / "inner.md").symlink_to("release.md")
    (folder / "outer.md").symlink_to(tmp_path / "outside.md")
    (folder / "sibling").symlink_to(tmp_path / "two" / "workflows")
    assert catalog.find("workflows/inner").data == b"one"
    for ref in ("workflows/outer", "workflows/sibling/other"):
        with pytest.raises(NotFound) as caught:
            catalog.find(ref)
        assert caught.value.code == "PATH_ESCAPE_VIOLATION"


def test_a_neighbour_with_the_same_beginning_is_outside(tmp_path):
    (tmp_path / "one" / "workflows").mkdir(parents=True)
    (tmp_path / "one-more").mkdir()
    (tmp_path / "one-more" / "x.md").write_text("x")
    (tmp_path / "one" / "workflows" / "x.md").symlink_to(tmp_path / "one-more" / "x.md")
    with pytest.raises(NotFound):
        FileCatalog((Bundle("one", str(tmp_path / "one")),)).find("workflows/x")


def test_a_pipe_is_no_asset(catalog, tmp_path):
    os.mkfifo(tmp_path / "one" / "workflows" / "pipe.md")
    with pytest.raises(NotFound):
        catalog.find("workflows/pipe")


def test_env_values_are_filled_from_secrets(catalog):
    assert catalog.env_values("env/app") == {"A": "1", "B": "pre-hush\n", "C": None, "D": "$HOME ${X}"}
    assert catalog.env_values("env/plain") == {"P": "1"}
    assert catalog.env_values("env/app2") == {"T": "of two"}


def test_freezing_sees_names_only(catalog):
    names = catalog.env_names("env/app")
    assert names.ref == "one//env/app"
    assert names.keys == ("A", "B", "C", "D")
    assert names.secret_names == ("none", "tok")


@pytest.mark.parametrize("ref", ["secrets/tok", "app", "workflows/release"])
def test_only_env_refs_bind_variables(catalog, ref):
    with pytest.raises(InputError, match="Expected an env ref"):
        catalog.env_values(ref)


def test_a_secret_outside_the_bundle_is_refused_not_missing(catalog, tmp_path):
    (tmp_path / "one" / "env" / "bad.env").write_text("A=${secret:../../outside.md}")
    (tmp_path / "one" / "env" / "link.env").write_text("A=${secret:link}")
    (tmp_path / "one" / "secrets" / "link").symlink_to(tmp_path / "outside.md")
    for ref in ("env/bad", "env/link"):
        with pytest.raises(FlowstoneError) as caught:
            catalog.env_values(ref)
        assert caught.value.code == "PATH_ESCAPE_VIOLATION"


def test_a_secret_that_no_variable_can_hold(catalog, tmp_path):
    for data in (b"a\0b", b"\xff"):
        (tmp_path / "one" / "secrets" / "tok").write_bytes(data)
        with pytest.raises(SourceError):
            catalog.env_values("env/app")


def test_sensitive_assets_are_not_listed_and_still_usable(catalog, tmp_path):
    (tmp_path / "one" / "env" / "app.env.sensitive").write_text("")
    (tmp_path / "one" / "workflows" / "deep" / ".sensitive").write_text("")
    assert [found.relative for found in list_assets(catalog.bundles[:1], "env")] == ["plain"]
    assert [found.relative for found in list_assets(catalog.bundles[:1], "workflows")] == [
        "both.md",
        "both.yml",
        "release.md",
    ]
    assert catalog.env_values("env/app")["A"] == "1"
    assert catalog.find("workflows/deep/flow").data == b"deep"


def test_a_file_outside_every_bundle_has_no_ref(catalog, tmp_path):
    assert catalog.ref_of(str(tmp_path / "outside.md")) is None


def test_telling_refs_from_paths():
    assert is_ref("workflows/x")
    assert is_ref("team//workflows/x")
    assert not is_ref("./workflows/x.md")
    assert not is_ref("flow.md")
    assert not is_ref("/abs/workflows/x.md")
