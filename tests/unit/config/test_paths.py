"""Where the folders lie."""

from flowstone.config.paths import locate


def test_defaults_lie_below_the_home_folder():
    paths = locate({"HOME": "/home/ann"})
    assert paths.config_file == "/home/ann/.config/akm/config.json"
    assert paths.data == "/home/ann/.local/share/akm"
    assert paths.state == "/home/ann/.local/state/akm"
    assert paths.cache == "/home/ann/.cache/akm"
    assert paths.bundle is None
    assert paths.default_bundle == "/home/ann/akm"


def test_xdg_variables_move_them_and_own_variables_win():
    paths = locate(
        {
            "HOME": "/h",
            "XDG_CONFIG_HOME": "/x/config",
            "XDG_DATA_HOME": "/x/data",
            "AKM_DATA_DIR": "/own/data",
            "AKM_BUNDLE_DIR": "~/assets",
        }
    )
    assert paths.config == "/x/config/akm"
    assert paths.data == "/own/data"
    assert paths.bundle == "/h/assets"


def test_a_relative_xdg_variable_is_ignored():
    assert locate({"HOME": "/h", "XDG_STATE_HOME": "state"}).state == "/h/.local/state/akm"


def test_the_database_is_no_file_of_an_installed_akm():
    assert locate({"HOME": "/h", "AKM_DATA_DIR": "/d"}).database == "/d/flowstone/state.db"
