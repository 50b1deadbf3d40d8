"""The files of model aliases: the packaged models.json and the user's, read and not yet judged."""

from __future__ import annotations

import os

from flowstone.config.file import read_config
from flowstone.config.paths import Paths
from flowstone.values import Json

PACKAGED = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "freeze", "models.json")


def read_models(paths: Paths) -> tuple[tuple[str, Json], ...]:
    """The documents with their files, the packaged one first; ConfigError for a file that is no JSON object."""
    layers = [(os.path.basename(PACKAGED), read_config(PACKAGED))]
    if os.path.exists(paths.models_file):
        layers.append((paths.models_file, read_config(paths.models_file)))
    return tuple(layers)
