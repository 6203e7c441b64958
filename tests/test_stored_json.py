"""Reading damaged stored JSON always raises one StoreError that names the file."""

import os
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numtok import files
from numtok.errors import StoreError
from numtok.stored_json import REMAKE, Natural, StoredJson, StoredLines, decode
from tests import damage
from tests.cases import case
from tests.imports import tree

Kind = StoredJson[Any] | StoredLines[Any]
DEEP = 10_000  # nested lists or objects
GIGABYTE = 1 << 30


def kinds() -> Iterator[tuple[str, Kind]]:
    """Yield every kind of file that the package declares, with its module and name."""
    for module in sorted(tree()):
        if "StoredJson(" in tree()[module].text or "StoredLines(" in tree()[module].text:
            for name, one in vars(import_module(module)).items():
                if isinstance(one, StoredJson | StoredLines):
                    yield f"{module}.{name}", one


KINDS = dict(kinds())


def test_the_kinds_are_those_of_the_store() -> None:
    assert {one.name for one in KINDS.values()} == {
        *("manifest.json", "files.jsonl", "timing.json", "scheme.json", "model.json"),
        *("metrics.jsonl", "report.json", "probe.json", "table.json", "zarr.json"),
        *("plan.json", "rounds.json", "template.json", "features.json"),
    }


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        read()
    told = str(caught.value)
    assert "\n" not in told
    return told


# --- paths that are not readable files ------------------------------------------------------------


def a_gigabyte(path: Path) -> None:
    path.touch()
    os.truncate(path, GIGABYTE)


def a_link(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is a pipe; only regular files can be read here"),
    "a link to a pipe": (a_link, "is a pipe; only regular files can be read here"),
    "a socket": (damage.a_socket, "is a socket; only regular files can be read here"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a device; only regular files can"),
    "a folder": (Path.mkdir, "is a folder; only regular files can be read here"),
    "nothing": (lambda path: None, "No such file or directory. Check the path"),
    "a gigabyte of nothing": (a_gigabyte, f"has {GIGABYTE} bytes; the limit is "),
}


def test_what_is_no_file_of_json_is_refused_before_it_is_read(tmp_path: Path) -> None:
    for (what, (make, why)), (where, kind) in product(NO_FILES.items(), KINDS.items()):
        folder = tmp_path / f"{what} {where}"
        folder.mkdir()
        make(folder / kind.name)
        with case(what, where):
            tracemalloc.start()
            told = refusal(partial(kind.read, folder))
            taken = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert str(folder / kind.name) in told and why in told
            assert taken < 1 << 20


def test_a_file_that_becomes_a_pipe_as_it_is_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"{}")
    real = os.open

    def swapped(name: Path, *flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return real(name, *flags)

    monkeypatch.setattr(os, "open", swapped)
    for read in (lambda: files.read_bytes(path, 10), lambda: files.open_regular(path)):
        assert "is a pipe" in refusal(read)
    with pytest.raises(StoreError, match="is a pipe"), files.name_of_open(path):
        pass


def test_a_library_reads_the_file_that_was_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"first")
    with files.name_of_open(path) as name:
        path.unlink()
        os.mkfifo(path)
        assert Path(name).read_bytes() == b"first"


# --- contents that no kind of file allows ---------------------------------------------------------

NO_JSON: dict[str, tuple[bytes, str]] = {
    "cut short": (b'{"format": 1, "schema"', "it is not JSON ("),
    "two values": (b"{} {}", ""),
    "bytes": (bytes(range(256)), "it is not JSON ("),
    "not UTF-8": (b'{"a": "\xff\xfe"}', "it is not JSON ("),
    "NaN": (b'{"format": 1, "schema": 1, "a": NaN}', "it is not JSON ("),
    "infinity": (b'{"format": 1, "schema": 1, "a": -Infinity}', "it is not JSON ("),
    "lists": (b"[" * DEEP + b"]" * DEEP, ""),
    "objects": (b'{"format": 1, "schema": 1, "a":' * DEEP + b"1" + b"}" * DEEP, ""),
    "open objects": (b'{"format": 1, "schema": 1, "a":' * DEEP, ""),
    "a list": (b"[]", "Expected `object`, got `array`"),
    "null": (b"null", "Expected `object`, got `null`"),
    "a text": (b'"x"', "Expected `object`, got `str`"),
    "nothing of it": (b'{"format": 1, "schema": 1, "unheard of": []}', ""),
}


def test_what_no_kind_of_file_says_is_refused(tmp_path: Path) -> None:
    for (what, (content, why)), (where, kind) in product(NO_JSON.items(), KINDS.items()):
        (tmp_path / kind.name).write_bytes(content)
        with case(what, where):
            told = refusal(partial(kind.read, tmp_path))
            assert told.startswith(f"{tmp_path / kind.name} is damaged: ")
            assert told.endswith(f". {kind.then}") and why in told


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.integration
@given(VALUES)
def test_any_json_is_of_its_kind_or_refused(value: Any) -> None:
    said = value if isinstance(value, dict) else {"value": value}
    content = msgspec.json.encode(said | {"format": 1, "schema": 1})
    for kind in KINDS.values():
        try:
            kind.of(content, Path("x") / kind.name)
        except StoreError as error:
            assert str(error).startswith(f"x/{kind.name} is damaged: ")


# --- types ----------------------------------------------------------------------------------------


class _Inner(msgspec.Struct, forbid_unknown_fields=True):
    rows: Natural
    share: float


class _Example(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    name: str
    inner: list[_Inner]


EXAMPLE = StoredJson(name="example.json", kind=_Example, newest=2, then=REMAKE)
LINES = StoredLines(name="example.jsonl", kind=_Inner)
WHOLE = b'{"schema":2,"name":"a","inner":[{"rows":3,"share":0.5}]}'
READ = _Example(2, "a", [_Inner(3, 0.5)])
WRONG: dict[str, tuple[bytes, bytes, str]] = {
    "a key more": (b'"rows"', b'"more":1,"rows"', "unknown field `more` - at `$.inner[0]`"),
    "a key that is missing": (b'"rows":3,', b"", "missing required field `rows`"),
    "a negative count": (b"3", b"-1", "Expected `int` >= 0 - at `$.inner[0].rows`"),
    "a count of 10^30": (b"3", b"1" + b"0" * 30, "Expected `int` <= 9223372036854775807"),
    "a text for a number": (b"3", b'"3"', "Expected `int`, got `str`"),
    "a number for a text": (b'"a"', b"1", "Expected `str`, got `int`"),
    "a number beyond float64": (b"0.5", b"1e999", "Number out of range"),
    "half a character": (b'"a"', b'"\\ud800"', "it is not JSON ("),
    "a newer version": (b":2", b":3", "has schema 3; this numtok reads up to 2"),
    "version 0": (b":2", b":0", "schema 0 does not exist"),
    "version -1": (b":2", b":-1", "schema -1 does not exist"),
    "a text for a version": (b":2", b':"2"', "Expected `int | null`, got `str` - at `$.schema`"),
    "no version": (b'"schema":2,', b"", "it has no version"),
}


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    EXAMPLE.write(tmp_path, READ)
    assert (tmp_path / "example.json").read_bytes().startswith(b'{\n "schema": 2,\n')
    assert EXAMPLE.read(tmp_path) == READ
    assert EXAMPLE.of(WHOLE, Path("x")) == READ


def test_what_is_not_of_the_type_is_refused_with_what_it_is() -> None:
    for what, (old, new, why) in WRONG.items():
        with case(what):
            assert (content := WHOLE.replace(old, new, 1)) != WHOLE
            assert why in refusal(partial(EXAMPLE.of, content, Path("x")))


def test_a_file_of_a_former_version_is_one_clear_line() -> None:
    kind = StoredJson(name="example.json", kind=_Example, newest=3)
    told = refusal(lambda: kind.of(WHOLE, Path("x")))
    assert told.startswith("x has the old schema 2; this numtok reads 3")


def test_of_lines_the_one_that_is_wrong_is_named() -> None:
    whole = b'{"rows":3,"share":0.5}\n'
    assert LINES.of(whole * 2, Path("x")) == [_Inner(3, 0.5)] * 2
    assert LINES.of(b"", Path("x")) == []
    told = refusal(lambda: LINES.of(whole + whole.replace(b"3", b"-3"), Path("x")))
    assert told.startswith("x is damaged: line 2: Expected `int` >= 0 - at `$.rows`. ")


def test_half_a_character_is_read_where_paths_are_kept() -> None:
    assert decode(b'"\\udcff"', str, any_text=True) == "\udcff"
    with pytest.raises(ValueError, match="it is not JSON"):
        decode(b'"\\udcff"', str)
