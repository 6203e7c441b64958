"""Paths that are not files, intended pipes, and small files that demand huge resources."""

import gzip
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch import nn

from numtok import config, documents, files
from numtok.data.reading import streams
from numtok.data.tables.table import TABLE_FILE, Feature, TableFile, read_table, write_table_file
from numtok.data.tasks._templates import Templates
from numtok.data.weather.field import Field
from numtok.encoding import splits, stored_codec
from numtok.encoding.dataset import EncodedSplit, bytes_of
from numtok.encoding.schema import TokenIds
from numtok.encoding.schemes.bpe import BpeScheme
from numtok.encoding.text_tokenizers.file import File
from numtok.errors import DataError, NumtokError, StoreError, UsageError
from numtok.evaluation.text_rows import read_rows
from numtok.stages.encode import Config, run
from numtok.store.artifact import Artifact
from numtok.store.quota import Quota
from numtok.store.store import Store
from numtok.sweeps.file import read_sweep
from numtok.training.curriculum import Curriculum
from numtok.training.weights import WEIGHTS, load_weights
from tests import fakefields
from tests.cases import case
from tests.messages import Says
from tests.shell import Shell
from tests.stages.test_encode import encode, shards, table, texts


@pytest.fixture(autouse=True)
def _never_waits() -> Iterator[None]:
    """Fail instead of waiting forever for a pipe that is never written to."""

    def give_up(*_: object) -> None:
        pytest.fail("it waits")  # not an OSError, which numtok would report

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_pipe(path: Path) -> None:
    elsewhere = Path(mkdtemp()) / "pipe"
    os.mkfifo(elsewhere)
    path.symlink_to(elsewhere)


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


NO_FILES = [pipe, link_to_pipe, link_to_device]
no_file = pytest.mark.parametrize("make", NO_FILES)
Make = Callable[[Path], None]


def refused(call: Callable[[], object], kind: type[NumtokError], *told: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    for words in told:
        assert words in message


# --- stored files -------------------------------------------------------------------------------

IDS = TokenIds(3, 21, 40, False)
READERS: dict[str, Callable[[Path], object]] = {
    "bytes": lambda path: files.read_bytes(path, 1000),
    "digest": files.sha256_file,
    "open": files.open_regular,
    "samples": lambda path: EncodedSplit.read([path], IDS),
    "size of samples": lambda path: bytes_of([path], IDS),
    "weights": lambda path: weights_at(path),
}


def weights_at(path: Path) -> nn.Module:
    path.rename(path.with_name(WEIGHTS))
    return load_weights(path.with_name("model.json"), {}, nn.Module)


def test_what_is_no_file_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    for make, reader in product(NO_FILES, READERS):
        with case(make, reader):
            folder = tmp_path / f"{make.__name__} {reader}"
            folder.mkdir()
            make(folder / "x")
            what = "is a device" if make is link_to_device else "is a pipe"
            name = WEIGHTS if reader == "weights" else "x"
            reading = partial(READERS[reader], folder / "x")
            refused(reading, StoreError, str(folder / name), what)


def test_an_artifact_with_what_is_no_file_is_refused(tmp_path: Path) -> None:
    artifact = encode(Store(tmp_path / "store"), texts(tmp_path / "a.jsonl", "it is 7", "and 8"))
    (shard,) = shards(artifact)

    def use() -> None:
        # A new object, because an artifact caches its manifest and its list of files.
        now = Artifact(artifact.path, artifact.kind, artifact.name, artifact.version)
        splits.read_split(now, "train")
        splits.read_labels(now, "train")
        stored_codec.read_codec(now)

    for name in ("manifest.json", "files.jsonl", "scheme.json", shard.name):
        path = artifact.path / name
        whole = path.read_bytes()
        for make in NO_FILES:
            with case(make, name):
                path.unlink()
                make(path)
                refused(use, StoreError, "only regular files can be read here")
                path.unlink()
                path.write_bytes(whole)
                use()


@no_file
def test_a_table_with_what_is_no_file_is_refused(tmp_path: Path, make: Make) -> None:
    file = TableFile(target="y", features=[Feature("x", "number")], splits=[], notes=[])
    write_table_file(tmp_path, file)
    make(tmp_path / "rows.parquet")
    refused(lambda: read_table(tmp_path, ["rows.parquet"]), StoreError, "rows.parquet")
    (tmp_path / TABLE_FILE).unlink()
    make(tmp_path / TABLE_FILE)
    refused(lambda: read_table(tmp_path, []), StoreError, TABLE_FILE)


@no_file
def test_a_field_with_what_is_no_file_is_refused(tmp_path: Path, make: Make) -> None:
    times = fakefields.hours(48)
    cells = len(fakefields.LATITUDES) * len(fakefields.LONGITUDES)
    made = fakefields.make(tmp_path, times, fakefields.waves(times, cells))
    chunk = max(
        (path for path in made.path.rglob("*") if path.is_file()),
        key=lambda one: one.stat().st_size,
    )
    chunk.unlink()
    make(chunk)
    refused(lambda: Field.open(made.path), StoreError, chunk.name)


def test_nothing_is_written_into_a_pipe_that_stands_where_a_file_is_made(tmp_path: Path) -> None:
    pipe(tmp_path / ".a.part")
    refused(lambda: files.write_atomic(tmp_path / "a", b"x"), StoreError, "cannot write")


# --- intended pipes -----------------------------------------------------------------------------


@contextmanager
def piped(*contents: bytes) -> Iterator[list[str]]:
    """Provide names like those of ``<(...)`` in a shell, each with content that is read once."""
    with ExitStack() as stack:
        names = []
        for content in contents:
            reader, writer = os.pipe()

            def write(writer: int = writer, content: bytes = content) -> None:
                with suppress(BrokenPipeError), os.fdopen(writer, "wb") as file:
                    file.write(content)

            thread = threading.Thread(target=write, daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(os.close, reader)
            names.append(f"/dev/fd/{reader}")
        yield names


def lines(*values: str) -> bytes:
    return b"".join(json.dumps({"text": value}).encode() + b"\n" for value in values)


def test_pipes_are_inputs_each_by_its_content(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    first, second = lines("it is 7"), lines("it is 8", "or 9")
    (tmp_path / "a.jsonl").write_bytes(first)
    (tmp_path / "b.jsonl").write_bytes(second)
    of_files = encode(store, tmp_path / "a.jsonl", f"test={tmp_path / 'b.jsonl'}")
    with piped(first, second) as (one, other):
        of_pipes = encode(store, one, f"test={other}")
    assert (of_pipes.name, of_pipes.version) == ("stdin-p1000", of_files.version)
    assert of_pipes.manifest.content == of_files.manifest.content
    assert len(table(of_pipes, "test")) == 2
    assert not list(store.root.glob(".spool*"))


@pytest.mark.integration
def test_a_pipe_with_a_name_is_read_as_its_name_says(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.jsonl.gz")

    def write() -> None:
        (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines("it is 7")))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    artifact = encode(Store(tmp_path / "store"), tmp_path / "rows.jsonl.gz")
    writer.join()
    assert artifact.name == "rows-p1000"
    assert table(artifact)["numbers"].to_pylist() == [[7.0]]


def test_a_pipe_is_given_once(tmp_path: Path) -> None:
    with piped(lines("it is 7")) as (one,):
        refused(lambda: encode(Store(tmp_path), one, one), UsageError, "read only once")


def test_a_pipe_can_be_asked_for_predictions(tmp_path: Path) -> None:
    with piped(lines("[?] and [?]", "[?]")) as (name,):
        assert [row.text for row in read_rows(name)] == ["[?] and [?]", "[?]"]


def test_a_device_is_no_input(tmp_path: Path) -> None:
    link_to_device(tmp_path / "x.jsonl")
    refused(lambda: encode(Store(tmp_path), tmp_path / "x.jsonl"), UsageError, "x.jsonl")
    refused(lambda: list(read_rows(str(tmp_path / "x.jsonl"))), DataError, "device")


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_LONGEST", 1000)
    with piped(b" " * 1001) as (name,):
        refused(lambda: list(read_rows(name)), DataError, "a line of more than 1,000 bytes")


# --- disk limits --------------------------------------------------------------------------------


class Disk:
    """``files.system`` for a disk with this many bytes, ``free`` of which are free."""

    def __init__(self, free: int, whole: int) -> None:
        self.free, self.whole = free, whole

    def __getattr__(self, name: str) -> Any:
        return getattr(files.FileSystem(), name)

    def room(self, folder: Path) -> tuple[int, int]:
        return self.free, self.whole

    def write(self, fd: int, data: Any) -> int:
        done = os.write(fd, data)
        self.free -= done
        return done


GIB = 1 << 30


@pytest.mark.parametrize(("whole", "kept"), [(10 * GIB, GIB), (100 * GIB, 5 * GIB)])
def test_a_disk_is_not_filled_by_what_is_piped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: int, kept: int
) -> None:
    monkeypatch.setattr("numtok.store.quota._ALWAYS", 1 << 20)
    disk = Disk(kept + (3 << 20), whole)
    monkeypatch.setattr(files, "system", disk)
    store = Store(tmp_path)
    with piped(lines("it is 7") + b" " * (8 << 20)) as (name,):
        refused(lambda: encode(store, name), UsageError, f"{kept:,}", "--disk-limit")
    assert kept <= disk.free < kept + (3 << 20)
    assert not list(store.root.glob(".spool*"))  # the partial copy is deleted
    with piped(lines("it is 7") + b"\n" * (8 << 20)) as (name,):
        assert encode(store, name, disk_limit="none").manifest.counts["rows"] == 1


def test_a_limit_of_bytes_holds_for_pipes_and_standard_input(numtok: Shell, says: Says) -> None:
    rows = lines(*["it is 7"] * 100)
    for command in (["encode", "--scheme", "p10"], ["profile"]):
        with piped(rows) as (name,):
            ran = numtok(*command, "--disk-limit", "1kB", name)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.count("\n") == 1
        says(ran.err.replace(name, "PIPE"), "numtok: PIPE", "1,000 bytes", "--disk-limit")
        with piped(rows) as (name,):
            assert numtok(*command, "--disk-limit", "10MB", name).code == 0


def test_sizes_have_the_usual_units() -> None:
    for text, most in [("5", 5), ("1.5kB", 1500), ("2 MiB", 2 << 20), ("1TB", 10**12)]:
        assert Quota.parse(text) == Quota(most), (text, most)


def test_what_is_no_size_is_refused() -> None:
    def limited(text: str) -> None:
        config = Config(("a",), scheme="p10", disk_limit=text)
        run(config, Store(Path()), lambda *_: None)

    for text in ["", "much", "-1", "1e9", "5 gb", "nan", "\u0665", "1" * 40]:
        with case(text):
            refused(partial(limited, text), UsageError, "--disk-limit")


# --- small files that a user names --------------------------------------------------------------


def read_config(path: Path) -> object:
    path.rename(path.with_name("numtok.toml"))
    return config.load(path.parent)


NAMED: dict[str, Callable[[Path], object]] = {
    "numtok.toml": read_config,
    "curriculum": Curriculum.read,
    "sweep": read_sweep,
    "templates": lambda path: Templates(str(path), ""),
    "tokenizer.json": File.read,
    "bpe": BpeScheme.read,
}


def test_a_small_file_that_is_none_is_refused(tmp_path: Path) -> None:
    for make, (what, read) in product(NO_FILES, NAMED.items()):
        with case(make, what):
            folder = tmp_path / f"{make.__name__} {what}"
            folder.mkdir()
            make(folder / "x")
            refused(partial(read, folder / "x"), UsageError, "only regular files can be read")


def test_a_small_file_that_is_large_is_refused(tmp_path: Path) -> None:
    for what, read in NAMED.items():
        with (tmp_path / "x").open("wb") as file:
            file.truncate(1 << 40)  # sparse, so it takes no disk space
        with case(what):
            refused(partial(read, tmp_path / "x"), UsageError, f"{1 << 40} bytes", "the limit is")


def test_what_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    for deep, (what, read) in product([documents.DEEPEST + 1, 100_000], NAMED.items()):
        with case(deep, what):
            is_json = what in ("tokenizer.json", "bpe")
            nested = "[" * deep + "]" * deep
            (tmp_path / "x").write_text(nested if is_json else f"data = {nested}")
            refused(partial(read, tmp_path / "x"), UsageError, "nested too deeply", "32")


def test_numbers_are_finite(tmp_path: Path) -> None:
    for what in ["numtok.toml", "curriculum", "sweep", "templates"]:
        for number in ["nan", "-inf", "1e999", "1" * 20, "1" * 5000]:
            with case(what, number):
                (tmp_path / "x").write_text(f"store = {number}")
                refused(partial(NAMED[what], tmp_path / "x"), UsageError, "cannot be read")
    for what in ["tokenizer.json", "bpe"]:
        for number in ["NaN", "-Infinity", "1e999"]:
            with case(what, number):
                (tmp_path / "x").write_text(f"[{number}]")
                refused(partial(NAMED[what], tmp_path / "x"), UsageError, "is not JSON", number)


def test_phases_have_lengths_that_can_be_added(tmp_path: Path) -> None:
    for length in ["1e308", "1e13", "1e-13"]:
        for what in ["length", "weight"]:
            with case(length, what):
                path = tmp_path / "phases.toml"
                phase = f"[[phase]]\nrows = [{{ {what} = {length} }}]\n"
                if what == "length":
                    phase = f"[[phase]]\nrows = [{{}}]\nlength = {length}\n"
                path.write_text(2 * phase)
                reading = partial(Curriculum.read, path)
                refused(reading, UsageError, f"phase 1: {what}", "1e-12 to 1e+12")


def test_a_sweep_of_too_many_runs_is_refused_before_they_are_made(
    tmp_path: Path, numtok: Shell, says: Says
) -> None:
    seeds = list(range(1000))
    (tmp_path / "s.toml").write_text(
        'data = ["a.jsonl", "b.jsonl"]\n[encode]\nscheme = ["p10", "xval"]\n'
        f"[train]\nsteps = 1\nseed = {seeds}\nlr = [{', '.join(f'1e-{k}' for k in range(250))}]\n"
    )
    ran = numtok("sweep", "s.toml")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    says(ran.err, "numtok: s.toml", "1,000,000 runs", "10,000", "--max-runs 1000000")
    text = 'data = "a.jsonl"\n[encode]\nscheme = "p10"\n[train]\nsteps = 1\nseed = [1, 2, 3]\n'
    text += '[[also]]\nencode.scheme = ["xval", "fp15"]\n'
    (tmp_path / "s.toml").write_text(text)
    refused(lambda: read_sweep(Path("s.toml"), most=8), UsageError, "9 runs, but at most 8 ")
    assert read_sweep(Path("s.toml"), most=9).size == 9
    refused(lambda: read_sweep(Path("s.toml"), ["train.seed=[1]"], most=2), UsageError, "3 runs")


# --- more rows than 32 bits count ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz"])
def test_rows_are_counted_beyond_two_to_the_31(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The first line is read with a row number close to the limit."""
    from numtok.data.reading import jsonl

    late = (1 << 31) - 2
    original = jsonl._decode_block

    def shifted(part: Any, decoder: Any, block: Any, row: int, offset: int, how: Any) -> Any:
        return original(part, decoder, block, row + late, offset, how)

    monkeypatch.setattr(jsonl, "_decode_block", shifted)
    content = lines("it is 1", "it is 2", "it is 3", "it is 4") + b"[]\n"
    path = tmp_path / f"a.{kind}"
    path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    artifact = encode(Store(tmp_path / "store"), path, on_error="skip")
    assert artifact.manifest.counts["rows"] == 4
    (rejected,) = artifact.path.rglob("rejected*.jsonl")
    assert json.loads(rejected.read_text())["row"] == late + 5
    config = Config((str(path),), scheme="p10", on_clip="error", on_error="skip")
    assert run(config, Store(tmp_path / "store"), lambda *_: None).artifact is not None


def test_rows_of_parquet_are_counted_beyond_two_to_the_31(tmp_path: Path) -> None:
    from numtok.data.reading import parquet
    from numtok.data.reading.sources import InputFile
    from numtok.data.reading.units import unread

    late = (1 << 31) - 1
    rows = pa.RecordBatch.from_pydict({"text": ["it is 7", None, "8"]})
    pq.write_table(pa.Table.from_batches([rows]), tmp_path / "a.parquet")
    ((part,),) = (unit.parts for unit in unread([InputFile(tmp_path / "a.parquet", None, "a")]))
    batch = parquet._parquet_batch(part, rows, "text", [], late)
    assert batch.numbers.tolist() == [late, late + 2]
    assert [bad.number for bad in batch.rejected] == [late + 1]
    assert batch.rows.ids.to_pylist() == [f"0:{late}", f"0:{late + 2}"]


def test_empty_lines_cost_nothing_but_their_count() -> None:
    from numtok.data.reading.lines import find_lines

    found = find_lines(b"\n" * 1000 + b'{"text": "1"}\n' + b"\n \n\n" + b'{"text": "2"}' + b"\n")
    assert found.total == 1000 + 1 + 3 + 1
    assert found.numbers.tolist() == [1000, 1004]
    assert not found.suspicious.any()
