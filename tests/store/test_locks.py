"""Locks: at most one process holds a lock, even if another process releases it meanwhile."""

import os
from pathlib import Path

import pytest

from numtok import files
from numtok.store.locks import release, take_lock


def place(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


def test_the_lock_of_a_file_that_was_removed_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the holder deletes the lock file between open and lock, the new file is locked instead.
    Otherwise, another process could lock a new file at the same time."""
    path, opened = tmp_path / ".lock-1", files.system.open_lock
    first = True

    def open_lock(self: object, asked: Path) -> int:
        nonlocal first
        fd = opened(asked)
        if first:
            first = False
            path.unlink()
        return fd

    monkeypatch.setattr(files.FileSystem, "open_lock", open_lock)
    held = take_lock(path, place)
    assert held is not None
    assert os.fstat(held).st_ino == path.stat().st_ino
    assert take_lock(path, place) is None
    release(path, held)
