"""File operations and the code built on them, with and without failing disks."""

import errno
import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from numtok import files
from numtok.errors import StoreError, UsageError
from numtok.files import Sink
from tests.cases import case
from tests.faults import Plan, installed, points
from tests.messages import Says


def open_descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_sink_appears_under_its_name_only_when_complete(tmp_path: Path) -> None:
    with Sink(tmp_path / "a") as sink:
        assert sink.write(b"one") == 3
        assert not (tmp_path / "a").exists()
        sink.write(memoryview(b"two"))
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert os.listdir(tmp_path) == ["a"]
    assert (sink.bytes, sink.tell(), sink.closed) == (6, 6, True)
    assert sink.sha256 == hashlib.sha256(b"onetwo").hexdigest()
    with pytest.raises(ValueError, match="which is closed"):
        sink.write(b"x")


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed by its writer"])
def test_a_sink_left_by_an_exception_leaves_no_file(tmp_path: Path, closed: bool) -> None:
    with pytest.raises(KeyError), Sink(tmp_path / "a") as sink:
        sink.write(b"one")
        if closed:
            sink.close()
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_pyarrow_writes_into_a_sink(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(1000))})
    with Sink(tmp_path / "a.parquet") as sink:
        pq.write_table(table, sink)
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
    assert files.sha256_file(tmp_path / "a.parquet") == (sink.sha256, sink.bytes)


def test_an_error_of_the_disk_comes_through_pyarrow_as_it_is(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(1000))})
    for at in range(2, 8):
        with (
            installed(Plan("enospc", at=at)),
            pytest.raises(StoreError, match=r"No space left on device.*Free some space"),
            Sink(tmp_path / "a.parquet") as sink,
        ):
            pq.write_table(table, sink)
        assert os.listdir(tmp_path) == []


def test_an_error_of_the_disk_is_not_hidden_by_what_a_writer_does_after_it(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(1000))})
    for kind in ("eio", "torn"):
        for at in range(2, 12):
            with (
                installed(Plan(kind, at=at)) as faults,
                suppress(StoreError),
                Sink(tmp_path / "a.parquet") as sink,
                pq.ParquetWriter(sink, table.schema) as writer,
            ):
                for _ in range(3):
                    writer.write_table(table)
            assert not (faults.reached and (tmp_path / "a.parquet").exists())
            assert not list(tmp_path.glob(".*"))


def test_a_failed_write_fails_the_sink_even_where_a_writer_hides_it(tmp_path: Path) -> None:
    with (
        installed(Plan("torn", at=2)),
        pytest.raises(StoreError, match="No space left"),
        Sink(tmp_path / "a") as sink,
    ):
        with suppress(StoreError):
            sink.write(b"half of this")
        with pytest.raises(StoreError, match="No space left"):
            sink.write(b"more")
    assert os.listdir(tmp_path) == []


def test_every_byte_is_written_however_short_the_writes(tmp_path: Path) -> None:
    with installed(Plan("short", at=1, onward=True)) as faults:
        files.write_atomic(tmp_path / "a", b"0123456789" * 100)
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 100
    assert faults.trace.count("write") > 5


@pytest.mark.parametrize("there", [False, True], ids=["none before", "one before"])
@pytest.mark.parametrize("kind", ["eio", "enospc", "torn"])
def test_a_file_is_the_old_or_the_new_one_whatever_fails(
    tmp_path: Path, kind: str, there: bool
) -> None:
    with installed(Plan("trace")) as traced:
        files.write_atomic(tmp_path / "trial", b"new")
    left = set()
    for at in points(kind, traced.trace):
        path = tmp_path / f"a{at}"
        if there:
            path.write_bytes(b"old")
        before = open_descriptors()
        with installed(Plan(kind, at=at)) as faults, pytest.raises(StoreError):
            files.write_atomic(path, b"new")
        assert faults.reached
        assert open_descriptors() == before
        # After the rename, only the durability of the name is uncertain.
        left.add(path.read_bytes() if path.exists() else b"")
        assert not list(tmp_path.glob(".*"))
    # A torn write happens before the file gets its name.
    assert left == {b"old" if there else b""} | ({b"new"} if kind != "torn" else set())


def test_no_write_goes_through_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / ".a.part").symlink_to(tmp_path / "target")
    with pytest.raises(StoreError, match="cannot write"):
        files.write_atomic(tmp_path / "a", b"new")
    assert (tmp_path / "target").read_bytes() == b"kept"


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert files.read_bytes(tmp_path / "a", 5) == b"12345"
    with (
        installed(Plan("trace")) as traced,
        pytest.raises(StoreError, match="has 5 bytes; the limit is 4"),
    ):
        files.read_bytes(tmp_path / "a", 4)
    assert "read" not in traced.trace


def test_a_file_that_has_no_size_is_read_up_to_the_limit() -> None:
    with pytest.raises(StoreError, match="grew beyond 100 bytes"):
        files.read_bytes(Path("/proc/self/status"), 100)  # a regular file that reports size 0


def test_reading_is_whole_however_short_the_reads(tmp_path: Path) -> None:
    data = bytes(range(256)) * 8192  # two chunks
    (tmp_path / "a").write_bytes(data)
    with installed(Plan("short", at=1, onward=True)):
        assert files.read_bytes(tmp_path / "a", len(data)) == data
        assert files.sha256_file(tmp_path / "a") == (hashlib.sha256(data).hexdigest(), len(data))


def test_an_error_is_one_line_with_what_to_do(says: Says) -> None:
    for what, number, advice in [
        ("write", errno.ENOSPC, "Free some space"),
        ("write", errno.EDQUOT, "Free some space"),
        ("write", errno.EACCES, "Check its permissions, or use another store with --store"),
        ("write", errno.EROFS, "another store with --store"),
        ("write", errno.ENOLCK, "another store"),
        ("write", errno.ENOENT, "Check the path"),
        ("write", errno.EIO, "Check the disk"),
        ("read", errno.EACCES, "Check its permissions"),
    ]:
        with case(what, number, advice):
            with pytest.raises(StoreError) as caught, files.reporting(what, Path("a/b")):
                raise OSError(number, os.strerror(number))
            says(caught, f"cannot {what} a/b: {os.strerror(number)}. ", advice)
            assert "\n" not in str(caught.value)
            assert caught.value.exit_code == 4


def test_a_folder_that_cannot_be_synced_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(system: files.FileSystem, fd: int) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(files.FileSystem, "fsync", refuse)
    files.fsync_path(tmp_path)


def test_a_tree_is_removed_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(b"123")
    (tmp_path / "gone" / "deep").mkdir(parents=True)
    (tmp_path / "gone" / "deep" / "file").write_bytes(b"12345")
    (tmp_path / "gone" / "link").symlink_to(tmp_path / "kept")
    assert files.remove_tree(tmp_path / "gone") >= 5
    assert (tmp_path / "kept" / "file").exists()
    assert not (tmp_path / "gone").exists()


def test_a_path_of_no_file_is_refused_before_there_is_anything_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = dict.fromkeys(("", ".", "..", "/", str(tmp_path)), "is a folder")
    for path, part in (folders | {"none/page.html": "none is not a folder"}).items():
        with case(path=path):
            with pytest.raises(UsageError) as caught:
                files.check_output("--html", Path(path))
            says(caught, "--html", part)
    (tmp_path / "there.html").write_text("an earlier page")
    for name in ("page.html", "there.html"):
        files.check_output("--html", Path(name))
