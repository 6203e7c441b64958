"""``numtok encode s3://...``: the same artifact as from files on disk, even if requests fail."""

import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3fs import S3FileSystem

from numtok import files
from numtok.data.fetching import file_systems
from numtok.data.reading import objects, units
from numtok.stages import encode as stage
from tests.cases import case
from tests.messages import Says
from tests.s3server import S3Server, s3_server
from tests.shell import Ran, Shell

FILES, ROWS = 3, 300
ENDINGS = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files ``part-0.jsonl`` and so on, in every format."""
    folder = tmp_path_factory.mktemp("objects") / "data"
    folder.mkdir()
    draw = random.Random(1)
    for file in range(FILES):
        texts = [f"row {draw.random()} of {draw.randint(-9, 10**6)}" for _ in range(ROWS)]
        content = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
        path = folder / f"part-{file}"
        path.with_suffix(".jsonl").write_bytes(content)
        path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(content, mtime=0))
        with pa.CompressedOutputStream(str(path.with_suffix(".jsonl.zst")), "zstd") as packed:
            packed.write(content)
        table = pa.table({"text": texts})
        pq.write_table(table, path.with_suffix(".parquet"), row_group_size=100)
    return folder


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[S3Server]:
    """Yield a server that has the same files in ``data/``."""
    with s3_server() as server:
        for path in data.iterdir():
            server.put(f"data/{path.name}", path.read_bytes())
        yield server


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each file consist of several units and pieces, and do not wait between attempts."""
    monkeypatch.setattr(units, "UNIT", 4000)
    monkeypatch.setattr(objects, "PIECE", 3000)
    monkeypatch.setattr(files, "PIECE", 3000)
    monkeypatch.setattr(file_systems, "PAUSE", 0.001)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")


def encode(numtok: Shell, *arguments: str, store: str = "remote") -> Ran:
    return numtok("--store", store, "-q", "encode", "--scheme", "p1000", *arguments)


def made(ran: Ran, store: str = "remote") -> tuple[str, bytes]:
    """Return the REF that was printed, and the list of all files with their digests."""
    assert (ran.code, ran.err) == (0, "")
    name, _, version = ran.out.strip().partition("@")
    return ran.out, Path(store, "encoded", name, version, "files.jsonl").read_bytes()


def local(numtok: Shell, data: Path, ending: str) -> tuple[str, bytes]:
    names = [str(data / f"part-{file}{ending}") for file in range(FILES)]
    return made(encode(numtok, *names, store="local"), "local")


def failed(says: Says, ran: Ran, code: int, *parts: str) -> None:
    err = re.sub(r"127\.0\.0\.1:[0-9]+", "HOST", ran.err)
    says.refused(ran._replace(err=err), code, *parts)


def counted(server: S3Server, work: Callable[[], object]) -> int:
    """Return the number of requests that the work makes."""
    before = server.requests
    work()
    return server.requests - before


@contextmanager
def meanwhile(server: S3Server, before: Callable[[dict[str, Any]], Any]) -> Iterator[None]:
    """Call a function before each request within the block."""
    server.before = before
    try:
        yield
    finally:
        server.before = lambda environ: None


@contextmanager
def failing(server: S3Server, *ways: str) -> Iterator[None]:
    server.failing, server.failed = ways, 0
    try:
        yield
    finally:
        server.failing = ()


@pytest.mark.usefixtures("small")
def test_objects_are_encoded_as_files(numtok: Shell, data: Path, server: S3Server) -> None:
    ranges: list[int] = []

    def note(environ: dict[str, Any]) -> None:
        if given := environ.get("HTTP_RANGE"):
            begin, _, end = given.removeprefix("bytes=").partition("-")
            ranges.append(int(end) - int(begin) + 1)

    for ending in ENDINGS:
        with case(ending=ending), meanwhile(server, note):
            ranges.clear()
            ran = encode(numtok, f"s3://bucket/data/part-*{ending}")
            assert ending == ".parquet" or max(ranges) == 3000
            assert made(ran) == local(numtok, data, ending)
    whole = made(encode(numtok, "s3://bucket/data", store="of folder"), "of folder")
    assert whole == made(encode(numtok, str(data), store="of disk"), "of disk")


@pytest.mark.usefixtures("small")
def test_one_request_in_ten_may_fail(
    numtok: Shell, data: Path, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retries of botocore and s3fs suffice."""
    monkeypatch.setattr(file_systems, "ATTEMPTS", 1)
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    S3FileSystem.clear_instance_cache()  # cached instances would keep the number of attempts
    monkeypatch.setattr("botocore.retryhandler.delay_exponential", lambda **_: 0.001)
    with failing(server, "reset", "busy", "cut"):
        ran = encode(numtok, "s3://bucket/data/part-*.jsonl")
    assert made(ran) == local(numtok, data, ".jsonl")
    assert server.failed >= 6


def test_two_workers_give_the_same_from_a_server_that_fails_at_times(
    numtok: Shell, data: Path, server: S3Server
) -> None:
    with failing(server, "cut", "reset"):
        ran = encode(numtok, "--workers", "2", "s3://bucket/data/part-*.jsonl.gz")
    assert server.failed
    assert made(ran) == local(numtok, data, ".jsonl.gz")


@pytest.mark.usefixtures("small")
def test_a_server_that_is_gone_is_told_and_the_same_command_goes_on(
    numtok: Shell, data: Path, server: S3Server, says: Says
) -> None:
    source = "s3://bucket/data/part-*.jsonl.gz"
    count = counted(server, lambda: encode(numtok, source, store="counted"))
    server.requests = 0
    try:
        with meanwhile(server, lambda _: server.stop() if server.requests == count - 5 else None):
            failed(
                says, encode(numtok, source), 4, "cannot read s3://bucket/data/part-", "to resume"
            )
    finally:
        server.start()
    again = counted(server, lambda: made(encode(numtok, source)))
    assert again < count  # finished units are not read again, except for digests
    assert made(encode(numtok, source)) == local(numtok, data, ".jsonl.gz")


def _then(plan: Callable[..., Any], server: S3Server, url: str, new: bytes) -> Callable[..., Any]:
    """Return a function that plans, and then replaces an object."""

    def planned(*arguments: Any) -> Any:
        found = plan(*arguments)
        server.put(url.rpartition("/")[2], new)
        return found

    return planned


@pytest.mark.usefixtures("small")
def test_an_object_that_changes_before_it_is_encoded_is_refused(
    numtok: Shell, data: Path, server: S3Server, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ending in ENDINGS:
        content, other = ((data / f"part-{part}{ending}").read_bytes() for part in (0, 1))
        for new in (content[:-40], other):
            with case(ending=ending, size=len(new)):
                url = server.put(f"changing{ending}", content)
                with monkeypatch.context() as patch:
                    patch.setattr(stage, "plan", _then(units.plan, server, url, new))
                    failed(says, encode(numtok, url), 3, url, "changed while it was read")


@pytest.mark.usefixtures("small")
def test_an_object_that_changes_while_it_is_read_is_refused(
    numtok: Shell, data: Path, server: S3Server, says: Says
) -> None:
    times = 0

    def change(environ: dict[str, Any]) -> None:
        nonlocal times
        times += environ.get("HTTP_RANGE", "").startswith("bytes=3000-")
        if times == 2:  # the first read was for the digest
            server.put("changing.jsonl", (data / "part-1.jsonl").read_bytes())

    url = server.put("changing.jsonl", (data / "part-0.jsonl").read_bytes())
    with meanwhile(server, change):
        failed(says, encode(numtok, url), 3, url, "changed while it was read")


def test_an_address_that_is_none(
    numtok: Shell, server: S3Server, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_systems, "PAUSE", 0.001)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    server.put("other/a.txt", b"x")
    server.put("other/.a.jsonl", b"x")
    server.put("empty.jsonl", b"")
    for address, code, *parts in (
        ("s3://bucket/none.jsonl", 2, "no such bucket or object", "address"),
        ("s3://nowhere/none.jsonl", 2, "no such bucket or object"),
        ("s3://nowhere/*.jsonl", 2, "no object matches"),
        ("s3://bucket/data/none*.jsonl", 2, "no object matches"),
        ("test=s3://bucket/none.jsonl", 2, "no such bucket or object"),
        ("s3://bucket/other", 2, "no file in this folder ends in .jsonl"),
        ("s3://bucket/other/a.txt", 2, "unknown format", ".zst"),
        ("s3://bucket/empty.jsonl", 3, "is empty"),
        ("s3://", 2, "address"),
        ("s9://bucket/a.jsonl", 2, "unknown kind of address s9://", "s3://"),
        (f"{server.url}/bucket/data/part-0.jsonl?key=secret", 4, "403", "credentials"),
        (f"{server.url}/nowhere/part-0.jsonl", 2, "no such bucket or object"),
    ):
        with case(address=address):
            failed(says, encode(numtok, address), code, *parts)
    twice = ["s3://bucket/data/part-*.jsonl", "s3://bucket/data/part-1.jsonl"]
    failed(says, encode(numtok, *twice), 2, "part-1.jsonl is given twice")


def test_without_credentials_or_the_package_it_is_said_what_to_do(
    numtok: Shell, server: S3Server, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.registry import _registry as registry

    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", "nowhere")
    S3FileSystem.clear_instance_cache()
    url = "s3://bucket/data/part-0.jsonl"
    failed(says, encode(numtok, url), 4, "no credentials", "AWS_PROFILE", "FSSPEC_S3_ANON=true")
    S3FileSystem.clear_instance_cache()
    monkeypatch.delitem(registry, "s3")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    failed(says, encode(numtok, url), 2, "the package s3fs", 'pip install "numtok[s3]"')


def test_files_of_the_web_are_read_in_ranges_or_not_at_all(
    numtok: Shell, data: Path, server: S3Server, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "PIECE", 3000)
    server.put("open/part-0.jsonl", (data / "part-0.jsonl").read_bytes(), ACL="public-read")
    url = f"{server.url}/bucket/open/part-0.jsonl"
    ran = encode(numtok, f"{url}?signature=secret")
    assert made(ran) == made(encode(numtok, str(data / "part-0.jsonl"), store="local"), "local")
    manifest = next(Path("remote/encoded").glob("*/*/manifest.json")).read_text()
    assert url in manifest and "secret" not in manifest

    with meanwhile(server, lambda environ: environ.pop("HTTP_RANGE", None)):
        failed(
            says, encode(numtok, url, "--name", "again"), 4, "range requests", "Download the file"
        )
