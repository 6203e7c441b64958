"""Shared setup: hypothesis (the same examples each time), the disk, signals, plugin folders."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from numtok import plugin_checks
from numtok import plugins as folders_of_plugins

_COMMON = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.register_profile("default", _COMMON, max_examples=25)
#: For tests marked slow: ``@settings(settings.get_profile("long"))``.
settings.register_profile("long", _COMMON, max_examples=3000)
settings.load_profile("default")

# Run on CPUs only, where results are the same everywhere; `just test-gpu` exposes a GPU.
if "NUMTOK_TESTS_GPU" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
for _name in ("NUMTOK_STORE", "NUMTOK_TABICL"):  # set by the user
    os.environ.pop(_name, None)
os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as numtok/cli/main.py sets it
# The test workers already occupy all cores: more threads would only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Keep test folders in memory if there is room: deleting a file from disk takes milliseconds.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

pytest_plugins = ["tests.messages", "tests.shell", "tests.tiers"]


def pytest_collection_finish() -> None:
    """Freeze the million imported objects, so that no garbage collection scans them again."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Freeze all objects: pytest collects garbage ten times at exit to find late warnings."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Skip ``fsync``: it is slow, and only needed if the power fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        yield


@pytest.fixture(autouse=True)
def _no_signal_is_left_blocked_or_handled() -> Iterator[None]:
    """Check that each test restores signals; otherwise a later test fails for no visible reason."""

    def state() -> list[object]:
        handlers = map(signal.getsignal, (signal.SIGINT, signal.SIGTERM, signal.SIGALRM))
        return [signal.pthread_sigmask(signal.SIG_BLOCK, ()), *handlers]

    before = state()
    yield
    assert state() == before


@pytest.fixture
def plugins(tmp_path: Path) -> Iterator[Path]:
    """Provide a plugin folder with an empty ``schemes``; forget its plugins after the test."""
    folder = tmp_path / "plugins"
    (folder / "schemes").mkdir(parents=True)
    folders, path = folders_of_plugins._folders.copy(), sys.path.copy()
    folders_of_plugins.on_use = None  # a command of an earlier test may have set it
    yield folder
    sys.path[:] = path
    folders_of_plugins.on_use = None
    plugin_checks._known.clear()
    added = [str(one) for one in folders_of_plugins._folders if one not in folders]
    folders_of_plugins._folders[:] = folders
    for name, module in list(sys.modules.items()) if added else ():
        if name.startswith("numtok.") and (places := getattr(module, "__path__", None)):
            places[:] = [place for place in places if not place.startswith(tuple(added))]
        package, _, last = name.rpartition(".")
        if (getattr(module, "__file__", None) or "").startswith(tuple(added)):
            del sys.modules[name]
            if package:
                delattr(sys.modules[package], last)
