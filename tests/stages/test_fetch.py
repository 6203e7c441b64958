"""``numtok fetch``: public data sets from a local copy or a server, and failed downloads."""

import gzip
import hashlib
import http.server
import importlib
import json
import re
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from numtok.data.fetching import file_systems
from numtok.data.sources import uci
from numtok.data.sources.base import SOURCES
from numtok.data.sources.uci import Uci
from numtok.data.tables.table import Table, read_table
from numtok.errors import DataError, NegativeVerdict, StoreError, UsageError
from numtok.stages.fetch import Config, run
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.store.verification import verify
from tests.cases import case
from tests.chain import quiet
from tests.messages import Says
from tests.shell import Shell

COPY = Path(__file__).resolve().parents[3] / "shared" / "data" / "uci"
ABALONE = COPY.parent.joinpath(
    "openml", "openml-python-test-cache", "org", "openml", "test", "datasets", "30", "dataset_30.pq"
)
needs_abalone = pytest.mark.skipif(not ABALONE.is_file(), reason="no abalone set beside numtok")
needs_copy = pytest.mark.skipif(not COPY.is_dir(), reason="no copy of the UCI sets beside numtok")


SLOW = 0.6  # seconds


class Server:
    """An HTTP server of files. ``faults`` lists, for each path, faults of the next requests:

    a status, ``half`` (the connection breaks), ``short`` (one byte is missing, also in
    Content-Length), ``whole`` (the range is ignored), ``endless`` (no Content-Length), ``slow``,
    or ``held`` (no answer until the server is closed).
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[str]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self._closed = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = request.path.partition("?")[0]
        span = request.headers["Range"]
        self.asked.append((path, span))
        waiting = self.faults.get(path, [])
        fault = waiting.pop(0) if waiting else ""
        if path not in self.files or fault.isdigit():
            request.send_error(int(fault or 404))
            return
        if fault == "slow":
            time.sleep(SLOW)
        if fault == "held":
            self._closed.wait(60)
        content = self.files[path][: -1 if fault == "short" else None]
        begin = int(span.removeprefix("bytes=").rstrip("-")) if span and fault != "whole" else 0
        request.send_response(206 if begin else 200)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            request.send_header("Content-Encoding", "gzip")
            content = gzip.compress(content)
        if fault != "endless":
            request.send_header("Content-Length", str(len(content) - begin))
        request.end_headers()
        # Send half of the remaining bytes, then break the connection.
        end = begin + (len(content) - begin) // 2 if fault in ("half", "whole half") else None
        with suppress(ConnectionError):  # the client may have timed out
            request.wfile.write(content[begin:end])

    def close(self) -> None:
        self._closed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(file_systems, "PAUSE", 0.001)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Server()
    yield made
    made.close()


def packed(rows: "np.ndarray[Any, Any]") -> bytes:
    text = "\n".join(",".join(f"{value:g}" for value in row) for row in rows.tolist())
    return gzip.compress(text.encode() + b"\n", mtime=0)


def yacht() -> dict[str, bytes]:
    """Return invented files of the set yacht: 308 rows and 6 features, the second constant."""
    generator = np.random.default_rng(0)
    values = generator.normal(size=(308, 7)).round(3)
    values[:, 1] = 0
    masks = np.arange(308)[:, None] % 10 == np.arange(10)
    return {"data.csv.gz": packed(values), "test_mask.csv.gz": packed(masks.astype(int))}


def serve_yacht(server: Server) -> None:
    for name, content in yacht().items():
        server.files[f"/uci_datasets/yacht/{name}"] = content


def fetched_yacht(folder: Path, server: Server) -> Artifact:
    (artifact,) = fetched(Store(folder), "uci", set="yacht", from_=server.url)
    return artifact


def folder_of_yacht(root: Path) -> Path:
    (root / "uci_datasets" / "yacht").mkdir(parents=True)
    for name, content in yacht().items():
        (root / "uci_datasets" / "yacht" / name).write_bytes(content)
    return root


def says_of(server: Server, says: Says, message: object, *parts: str) -> None:
    """Check a message without the server's port, which varies."""
    says(str(message).replace(server.url, "URL"), *parts)


def fetched(store: Store, source: str, **options: Any) -> list[Artifact]:
    config = Config(source, options=options)
    made = [result.artifact for result in run(config, store, quiet)]
    return [artifact for artifact in made if artifact is not None]


def table(artifact: Artifact) -> Table:
    assert verify(artifact).problems == []
    return read_table(artifact.path, ["rows-00000.parquet"])


# --- uci ---------------------------------------------------------------------------------------


def test_the_25_sets_of_the_paper_are_known_by_both_names() -> None:
    assert all(isinstance(SOURCES[name].revision, int) for name in SOURCES.names())
    assert len(uci._SETS) == 25
    for folder, one in uci._SETS.items():
        for name in (folder, one.title):
            (origin,) = Uci(name).origins()
            assert origin.name == f"uci-{folder}"
            assert origin.files["data.csv.gz"].endswith(f"/uci_datasets/{folder}/data.csv.gz")
    assert len(list(Uci("all").origins())) == 25


def test_a_set_has_ten_folds_in_which_the_masks_are_the_test_rows(tmp_path: Path) -> None:
    (artifact,) = fetched(Store(tmp_path), "uci", set="Yacht", from_=str(folder_of_yacht(tmp_path)))
    assert (artifact.kind, artifact.name) == ("table", "uci-yacht")
    assert artifact.manifest.counts == {"rows": 308, "features": 6}
    found = table(artifact)
    assert found.file.splits == [f"split_{k}" for k in range(10)]
    assert [feature.name for feature in found.file.features] == [f"x{k}" for k in range(1, 7)]
    for fold in range(10):
        assert found.split("test", fold).tolist() == list(range(fold, 308, 10))
        assert len(found.split("train", fold)) + len(found.split("test", fold)) == 308
    assert any("MIT licence" in note for note in found.file.notes)
    assert found.file.notes[-1] == "constant in every row: x2"


@needs_copy
@pytest.mark.parametrize(
    ("name", "rows", "note"),
    [
        ("airfoil", 1503, "the original magnitudes are lost"),
        ("challenger", 23, "the target has only 3 distinct values"),
        ("wine", 1599, "the target is alcohol, not quality"),
        ("sml", 4137, "constant in every row: x3, x21, x22, x23"),
    ],
)
def test_real_sets_are_read_as_by_numpy(tmp_path: Path, name: str, rows: int, note: str) -> None:
    (artifact,) = fetched(Store(tmp_path), "uci", set=name, from_=str(COPY))
    found = table(artifact)
    folder = COPY / "uci_datasets" / name
    values = np.loadtxt(folder / "data.csv.gz", delimiter=",")
    masks = np.loadtxt(folder / "test_mask.csv.gz", delimiter=",")
    assert len(found) == rows
    assert np.array_equal(found.numbers, values[:, :-1])
    assert np.array_equal(found.target, values[:, -1])
    for k in range(10):
        assert np.array_equal(found.split("test", k), np.flatnonzero(masks[:, k]))
    assert any(note in one for one in found.file.notes)


def test_a_download_is_kept_and_equals_the_copy(tmp_path: Path, server: Server) -> None:
    serve_yacht(server)
    store = Store(tmp_path / "store")
    artifact = fetched_yacht(store.root, server)
    copy = str(folder_of_yacht(tmp_path))
    (same,) = fetched(Store(tmp_path / "other"), "uci", set="yacht", from_=copy)
    assert artifact.version == same.version
    kept = store.resolve("download/uci-yacht")
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in yacht().items()}
    assert {output.path: output.sha256 for output in kept.files()} == hashes
    where = [f"{server.url}/uci_datasets/yacht/{name}" for name in yacht()]
    assert [parent.where for parent in artifact.manifest.parents] == where
    server.files.clear()  # nothing is requested again
    asked = len(server.asked)
    assert fetched_yacht(store.root, server).ref == artifact.ref
    assert len(server.asked) == asked


def test_a_broken_download_resumes_or_restarts(tmp_path: Path, server: Server) -> None:
    serve_yacht(server)
    path = "/uci_datasets/yacht/data.csv.gz"
    size = len(server.files[path])
    server.faults[path] = ["half", "503", "half"]
    assert len(table(fetched_yacht(tmp_path / "ranges", server))) == 308
    half = size // 2
    begins = [half, half, half + (size - half) // 2]
    spans = [span for asked, span in server.asked if asked == path]
    assert spans == [None, *(f"bytes={begin}-" for begin in begins)]
    server.faults[path] = ["half", "whole"]  # a server without ranges
    assert len(table(fetched_yacht(tmp_path / "whole", server))) == 308
    kept = Store(tmp_path / "whole").resolve("download/uci-yacht")
    assert (kept.path / "data.csv.gz").read_bytes() == yacht()["data.csv.gz"]


@pytest.mark.parametrize("fault", ["", "endless"])
def test_the_disk_limit_holds(tmp_path: Path, server: Server, says: Says, fault: str) -> None:
    path = "/uci_datasets/yacht/data.csv.gz"
    server.files[path] = bytes(3 << 20)
    server.faults[path] = [fault]
    config = Config("uci", options={"set": "yacht", "from_": server.url}, disk_limit="2MiB")
    with pytest.raises(UsageError) as caught:
        list(run(config, Store(tmp_path), quiet))
    says_of(server, says, caught.value, f"URL{path}", f"{2 << 20:,} bytes", "--disk-limit")
    assert len(server.asked) == 1  # a retry would not help
    assert not [one for one in tmp_path.rglob("*") if one.is_file() and one.stat().st_size > 99999]


def test_a_packed_set_that_unpacks_to_too_much_is_refused(tmp_path: Path, server: Server) -> None:
    path = "/uci_datasets/yacht/data.csv.gz"
    server.files[path] = gzip.compress(b"0" * (1 << 20))
    server.files["/uci_datasets/yacht/test_mask.csv.gz"] = gzip.compress(b"0")
    with pytest.raises(
        DataError, match="expands to more than 86,240 bytes, too many for 308 rows of 7"
    ):
        fetched_yacht(tmp_path, server)


def test_what_was_downloaded_before_a_failure_is_not_downloaded_again(
    tmp_path: Path, server: Server, says: Says
) -> None:
    serve_yacht(server)
    store, mask = Store(tmp_path), "/uci_datasets/yacht/test_mask.csv.gz"
    server.faults[mask] = ["half"] * 4
    with pytest.raises(StoreError) as caught:
        fetched_yacht(tmp_path, server)
    size, got = len(server.files[mask]), 0
    for _ in range(4):
        got += (size - got) // 2
    assert f"after {got} of {size} bytes" in str(caught.value)
    told = str(caught.value).replace(f"{got} of {size}", "SOME of ALL")  # the sizes depend on zlib
    says_of(server, says, told, f"cannot download URL{mask}", "--from")
    assert not store.artifacts()
    server.asked.clear()
    fetched_yacht(tmp_path, server)
    assert [asked for asked, _ in server.asked] == [mask]


def test_force_downloads_again_and_tells_what_changed(tmp_path: Path, server: Server) -> None:
    serve_yacht(server)
    store, config = Store(tmp_path), Config("uci", options={"set": "yacht", "from_": server.url})
    (first,) = run(config, store, quiet)
    (again,) = run(replace(config, force=True), store, quiet)
    assert again.ref == first.ref
    server.files["/uci_datasets/yacht/data.csv.gz"] += gzip.compress(b"\n")
    with pytest.raises(NegativeVerdict) as caught:
        list(run(replace(config, force=True), store, quiet))
    kept = store.resolve("download/uci-yacht").ref
    assert str(caught.value).startswith(f"made again, {kept} differs in data.csv.gz. ")


def test_a_failed_download_is_one_line(numtok: Shell, server: Server, says: Says) -> None:
    for why in ("404 Not Found", "Connection refused"):
        if why == "Connection refused":
            server.close()  # the port no longer accepts connections
        ran = numtok("fetch", "uci", "--set", "yacht", "--from", server.url)
        ran = ran._replace(err=ran.err.replace(server.url, "URL"))  # the port varies
        says.refused(ran, 4, "cannot download URL/uci", why, "--from")
        assert len(server.asked) == 1


def test_files_that_are_not_the_set_are_refused(tmp_path: Path, says: Says) -> None:
    copy = folder_of_yacht(tmp_path)
    folder, mask = copy / "uci_datasets" / "yacht", "test_mask.csv.gz"
    for name, content, *parts in (
        ("data.csv.gz", packed(np.ones((307, 7))), "308 rows", "307 rows"),
        ("data.csv.gz", gzip.compress(b"1,2,3,4,5,6\n" * 308), "Expected 7 columns, got 6"),
        ("data.csv.gz", gzip.compress(b"1,2,3,4,5,6,\n" * 308), "without empty fields"),
        ("data.csv.gz", gzip.compress(b"1,2,3,4,5,6,x\n" * 308), "cannot be read: In CSV column"),
        ("data.csv.gz", yacht()["data.csv.gz"][:-20], "cannot be read: "),
        ("data.csv.gz", b"<html>", "cannot be read: Not a gzipped file (b'<h')"),
        (mask, packed(np.full((308, 10), 2)), "masks must be 0 or 1"),
    ):
        with case(name=name, parts=parts):
            (folder / name).write_bytes(content)
            with says.raises(DataError, name, *parts, "Download it again"):
                fetched(Store(tmp_path / "store"), "uci", set="yacht", from_=str(copy))
            (folder / name).write_bytes(yacht()[name])


def test_a_set_that_is_missing_stops_no_other(numtok: Shell, tmp_path: Path, says: Says) -> None:
    copy = folder_of_yacht(tmp_path / "copy")
    ran = numtok("-q", "fetch", "uci", "--set", "wine,Yacht,sml", "--from", str(copy))
    assert (ran.code, ran.out.count("\n"), ran.err.count("\n")) == (3, 1, 1)
    assert ran.out.startswith("uci-yacht@")
    says(
        ran.err,
        "2 of 3 tables",
        f"{copy}/uci_datasets/wine/data.csv.gz not found",
        "a complete copy",
    )


def test_the_command_prints_refs_and_notes(numtok: Shell, tmp_path: Path) -> None:
    copy = folder_of_yacht(tmp_path / "copy")
    ran = numtok("fetch", "uci", "--set", "yacht", "--from", str(copy), "--name", "mine")
    assert ran.code == 0 and ran.out.startswith("mine@")
    lines = [line.split() for line in ran.err.splitlines()]
    assert ["rows", "308"] in lines and ["folds", "10"] in lines
    assert "numtok: constant in every row: x2\n" in ran.err
    made = Store(Path("artifacts")).resolve(ran.out.strip()).manifest.command
    assert shlex.join(made) == f"numtok fetch uci --name mine --set yacht --from {copy}"
    told = json.loads(numtok(*made[1:], "--json").out)
    assert (told["ref"], told["made"]) == (ran.out.strip(), False)


def test_what_cannot_be_fetched_is_told_in_one_line(numtok: Shell, says: Says) -> None:
    for arguments, *parts in (
        ("uzi", "'uzi'", "Did you mean 'uci'?", *SOURCES.names()),
        ("uci", "--set is missing", "`numtok fetch uci --help`"),
        ("uci --set airfoli", "'airfoli'", "Did you mean 'airfoil'?"),
        ("uci --set yacht,", "unknown set ''", "yacht", "all"),
        ("uci --set yacht --task 3", "--task", "`numtok fetch uci --help`"),
        ("uci --set yacht --dry-run", "--dry-run", "Remove --dry-run"),
        ("uci --set yacht --from nowhere", "--from nowhere", "omit --from"),
        ("uci --set all --name one", "--name one", "25 tables", "Remove --name"),
        ("openml", "--suite N or --task N", "353", "269"),
        ("openml --suite 353 --task 1", "--suite N or --task N"),
    ):
        with case(arguments=arguments):
            says.refused(numtok("fetch", *arguments.split()), 2, *parts)


# --- openml ------------------------------------------------------------------------------------

# The package openml leaves files open.
leaves_files_open = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
ARFF = """@RELATION houses
@ATTRIBUTE id STRING
@ATTRIBUTE rooms NUMERIC
@ATTRIBUTE street {elm,'oak lane'}
@ATTRIBUTE floor {1,2}
@ATTRIBUTE garden {TRUE,FALSE}
@ATTRIBUTE price {100,200,300}
@DATA
a,3,elm,1,TRUE,100
b,?,'oak lane',2,FALSE,200
c,5,?,1,TRUE,300
d,4,elm,2,FALSE,100
"""
DESCRIPTION = """<oml:data_set_description xmlns:oml="http://openml.org/openml">
<oml:id>7</oml:id><oml:name>houses</oml:name><oml:version>2</oml:version>
<oml:description>x</oml:description><oml:format>ARFF</oml:format><oml:licence>CC0</oml:licence>
<oml:url>{url}/data/houses.arff</oml:url><oml:row_id_attribute>id</oml:row_id_attribute>
<oml:md5_checksum>{md5}</oml:md5_checksum></oml:data_set_description>"""
TASK = """<oml:task xmlns:oml="http://openml.org/openml">
<oml:task_id>{id}</oml:task_id><oml:task_type_id>{type}</oml:task_type_id>
<oml:task_type>{words}</oml:task_type>
<oml:input name="source_data"><oml:data_set><oml:data_set_id>{data}</oml:data_set_id>
<oml:target_feature>{target}</oml:target_feature></oml:data_set></oml:input>
<oml:input name="estimation_procedure"><oml:estimation_procedure><oml:id>1</oml:id>
<oml:type>crossvalidation</oml:type>
<oml:data_splits_url>{url}/splits/{id}.arff</oml:data_splits_url>
<oml:parameter name="number_repeats">2</oml:parameter>
<oml:parameter name="number_folds">2</oml:parameter>
</oml:estimation_procedure></oml:input></oml:task>"""
FEATURES = """<oml:data_features xmlns:oml="http://openml.org/openml">
<oml:feature><oml:index>0</oml:index><oml:name>price</oml:name>
<oml:data_type>nominal</oml:data_type><oml:nominal_value>100</oml:nominal_value></oml:feature>
</oml:data_features>"""
SUITE = """<oml:study xmlns:oml="http://openml.org/openml"><oml:id>353</oml:id>
<oml:main_entity_type>task</oml:main_entity_type><oml:name>two</oml:name>
<oml:description>x</oml:description><oml:status>active</oml:status>
<oml:creation_date>2022</oml:creation_date><oml:creator>1</oml:creator>
<oml:data><oml:data_id>7</oml:data_id></oml:data>
<oml:tasks><oml:task_id>11</oml:task_id><oml:task_id>12</oml:task_id></oml:tasks></oml:study>"""


@pytest.fixture
def openml(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """Make the package openml use the server and a cache folder of this test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("OPENML_CACHE_DIR", str(tmp_path / "cache"))
    import openml

    monkeypatch.setattr(openml.config, "server", f"{server.url}/api/v1/xml")
    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "cache")
    monkeypatch.setattr(openml.config, "connection_n_retries", 1)
    md5 = hashlib.md5(ARFF.encode()).hexdigest()
    lines = ["@relation s", "@attribute type {TRAIN,TEST}"]
    lines += [f"@attribute {name} numeric" for name in ("rowid", "repeat", "fold")] + ["@data"]
    for repeat, fold, row in product(range(2), range(2), range(4)):
        tested = (row // (1 + repeat)) % 2 == fold
        lines.append(f"{'TEST' if tested else 'TRAIN'},{row},{repeat},{fold}")
    server.files |= {
        "/api/v1/xml/data/7": DESCRIPTION.format(url=server.url, md5=md5).encode(),
        "/api/v1/xml/data/features/7": FEATURES.encode(),
        "/data/houses.arff": ARFF.encode(),
        "/api/v1/xml/study/353": SUITE.encode(),
    }
    for task, kind, words in ((11, 2, "Regression"), (12, 1, "Classification")):
        words = f"Supervised {words}"
        text = TASK.format(id=task, type=kind, words=words, url=server.url, data=7, target="price")
        server.files[f"/api/v1/xml/task/{task}"] = text.encode()
        server.files[f"/splits/{task}.arff"] = "\n".join(lines).encode()
    return server


@leaves_files_open
def test_a_task_becomes_a_table_with_its_folds(tmp_path: Path, openml: Server) -> None:
    (artifact,) = fetched(Store(tmp_path / "store"), "openml", task=11)
    assert artifact.ref.startswith("openml-11@")
    found = table(artifact)
    kinds = {feature.name: feature.kind for feature in found.file.features}
    categories = dict.fromkeys(("street", "floor", "garden"), "category")
    assert kinds == {"rooms": "number"} | categories
    assert str(found.numbers[:, 0].tolist()) == "[3.0, nan, 5.0, 4.0]"
    street, floor, garden = (column.to_pylist() for column in found.categories)
    assert street == ["elm", "oak lane", None, "elm"]
    assert (floor, garden) == (["1", "2"] * 2, ["true", "false"] * 2)
    assert found.target.tolist() == [100, 200, 300, 100]
    assert found.file.splits == [f"split_{fold}" for fold in range(4)]
    tested = [found.split("test", fold).tolist() for fold in range(4)]
    assert tested == [[0, 2], [1, 3], [0, 1], [2, 3]]
    assert found.file.notes[:2] == [
        "OpenML data set 7, 'houses' (version 2), task 11; licence: CC0",
        "the target is stored as a category of numbers, and read as numbers",
    ]
    # Cached files are not requested again.
    assert list((tmp_path / "cache").rglob("dataset.arff"))
    openml.files.clear()
    (again,) = fetched(Store(tmp_path / "other"), "openml", task=11)
    assert again.version == artifact.version


@leaves_files_open
def test_a_suite_is_all_its_tasks_and_one_that_is_no_regression_stops_no_other(
    tmp_path: Path, openml: Server, says: Says
) -> None:
    made: list[str] = []
    config = Config("openml", options={"suite": 353})
    told = "1 of 2 tables", "task 12 (houses)", "Classification", "Supervised Regression"
    with says.raises(DataError, *told):
        for result in run(config, Store(tmp_path / "store"), quiet):
            made.append(result.ref.partition("@")[0])
    assert made == ["openml-11"]


@leaves_files_open
@needs_abalone
def test_a_target_of_strings_is_read_as_numbers(tmp_path: Path, openml: Server) -> None:
    """In OpenML's Parquet file of abalone, rings are an ordered category of strings."""
    cache = Path(importlib.import_module("openml").config.get_cache_directory())
    (cache / "datasets" / "30").mkdir(parents=True)
    (cache / "datasets" / "30" / "dataset_30.pq").write_bytes(ABALONE.read_bytes())
    described = DESCRIPTION.format(url=openml.url, md5="").replace(">7<", ">30<")
    described = described.replace("<oml:row_id_attribute>id</oml:row_id_attribute>", "")
    parquet = f"<oml:parquet_url>{openml.url}/30.pq</oml:parquet_url>"
    described = described.replace("<oml:url>", parquet + "<oml:url>")
    openml.files["/api/v1/xml/data/30"] = described.encode()
    openml.files["/api/v1/xml/task/13"] = TASK.format(
        id=13, type=2, words="Supervised Regression", url=openml.url, data=30,
        target="Class_number_of_rings",
    ).encode()  # fmt: skip
    openml.files["/splits/13.arff"] = openml.files["/splits/11.arff"]
    (artifact,) = fetched(Store(tmp_path / "store"), "openml", task=13)
    found = table(artifact)
    stored = pq.read_table(ABALONE)
    rings = [float(value) for value in stored["Class_number_of_rings"].to_pylist()]
    assert found.target.tolist() == rings
    assert found.categories[0].to_pylist() == stored["Sex"].to_pylist()
    assert found.numbers[:, 0].tolist() == stored["Length"].to_pylist()
    assert "the target is stored as a category of numbers, and read as numbers" in found.file.notes


def test_openml_out_of_reach_is_one_clear_line(tmp_path: Path, openml: Server, says: Says) -> None:
    openml.close()
    cache = importlib.import_module("openml").config.get_cache_directory()
    with pytest.raises(StoreError) as caught:
        fetched(Store(tmp_path / "store"), "openml", task=11)
    told = str(caught.value).replace(cache, "CACHE")  # the path contains the server's port
    says(told, "task 11 of OpenML", "Connection refused", "Check the network", "in CACHE")


def test_without_its_package_openml_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setitem(sys.modules, "openml", None)
    with says.raises(UsageError, "fetch openml", "`pip install openml`"):
        fetched(Store(tmp_path), "openml", task=11)


# --- the help ------------------------------------------------------------------------------------


def test_the_help_of_a_source_has_its_options_and_no_other_source_s(numtok: Shell) -> None:
    for source in SOURCES:
        told = numtok("fetch", source, "--help").out
        own = {field.name for field in fields(SOURCES[source])}  # type: ignore[arg-type]
        panel = told.partition(f"Options of {source}")[2].partition("╰")[0]
        flags = {name.rstrip("_").replace("_", "-") for name in own}
        assert set(re.findall(r"^│ \*? {0,3}--([a-z-]+)", panel, re.M)) == flags, source
