"""The library datasets, without network access."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the library, with its caches in the test's folder; skip if it is not installed."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return pytest.importorskip("datasets")
