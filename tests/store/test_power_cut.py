"""Power cuts: a file or folder is on disk before it gets its final name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numtok import files
from numtok.store.store import Store
from tests.fakestage import make

REAL = files.FileSystem()


class Disk:
    """Replacement for ``files.system`` that tracks files with unsynced bytes and folders with
    unsynced names."""

    def __init__(self) -> None:
        self.open: dict[int, Path] = {}
        self.bytes_of: set[Path] = set()
        self.names_in: set[Path] = set()
        self.lost: list[str] = []  # unsynced content at each rename: a power cut would lose it

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL, name)

    def open_write(self, path: Path) -> int:
        fd = REAL.open_write(path)
        self.open[fd] = path
        self.names_in.add(path.parent)
        return fd

    def open_to_sync(self, path: Path) -> int:
        fd = REAL.open_to_sync(path)
        self.open[fd] = path
        return fd

    def write(self, fd: int, data: "memoryview | bytes") -> int:
        self.bytes_of.add(self.open[fd])
        return REAL.write(fd, data)

    def fsync(self, fd: int) -> None:
        self.bytes_of.discard(self.open[fd])
        self.names_in.discard(self.open[fd])

    def mkdir(self, path: Path) -> None:
        REAL.mkdir(path)
        self.names_in.add(path.parent)

    def unlink(self, path: Path) -> None:
        REAL.unlink(path)
        self.bytes_of.discard(path)

    def rename(self, old: Path, new: Path) -> None:
        REAL.rename(old, new)
        inside = [one for one in self.bytes_of | self.names_in if one.is_relative_to(old)]
        self.lost += [f"{new.name}: {one.relative_to(old)}" for one in sorted(inside)]
        for known in (self.bytes_of, self.names_in):
            for one in [one for one in known if one.is_relative_to(old)]:
                known.remove(one)
                known.add(new / one.relative_to(old))
        self.names_in.add(new.parent)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(files, "system", disk)
    yield disk


def test_an_artifact_that_has_its_name_is_whole_after_a_power_cut(
    disk: Disk, tmp_path: Path
) -> None:
    artifact = make(Store(tmp_path / "artifacts"))
    assert disk.lost == []
    assert not disk.bytes_of
    # Its name is also on disk. Names of lock files need not be: no lock outlives a power cut.
    above = [one for one in artifact.path.parents if one.is_relative_to(tmp_path / "artifacts")]
    assert disk.names_in.isdisjoint([artifact.path, *above])


def test_a_file_that_takes_the_place_of_another_has_its_bytes(disk: Disk, tmp_path: Path) -> None:
    files.write_atomic(tmp_path / "a", b"old")
    files.write_atomic(tmp_path / "a", b"new")
    assert disk.lost == [] and not disk.bytes_of
    assert (tmp_path / "a").read_bytes() == b"new"


def test_the_disk_sees_what_is_not_synced(disk: Disk, tmp_path: Path) -> None:
    fd = files.system.open_write(tmp_path / "a")
    files.system.write(fd, b"1")
    files.system.close(fd)
    files.system.rename(tmp_path / "a", tmp_path / "b")
    assert disk.lost == ["b: ."]
