"""How hypothesis runs (the same examples each time), and folders of plugins for one test."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from numtok import registry, schemes

_COMMON = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.register_profile("default", _COMMON, max_examples=80)
#: For tests marked slow: ``@settings(settings.get_profile("long"))``.
settings.register_profile("long", _COMMON, max_examples=3000)
settings.load_profile("default")

os.environ.pop("NUMTOK_STORE", None)  # the store of whoever runs the tests is not theirs


@pytest.fixture
def plugins(tmp_path: Path) -> Iterator[Path]:
    """An empty folder for schemes, ``FOLDER/schemes``; plugins are forgotten after the test."""
    folder = tmp_path / "plugins"
    (folder / "schemes").mkdir(parents=True)
    folders, places = list(registry._plugin_folders), list(schemes.__path__)
    yield folder
    registry._plugin_folders[:] = folders
    schemes.__path__[:] = places
    for name, module in list(sys.modules.items()):
        package, _, last = name.rpartition(".")
        if package == "numtok.schemes" and str(Path(module.__file__ or "").parent) not in places:
            del sys.modules[name]
            delattr(schemes, last)
