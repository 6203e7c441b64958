"""Every way to damage a stored file, by file type.

``damages(path)`` yields the damages of one file:

- JSON: each value missing, null, of another type or out of range
- Parquet: each column missing, doubled, of another type, with a null, with integers out of range or
  with lists of another length
- safetensors: a changed header or changed data
- any file: changed bytes, or something that is not a regular file

Nothing here depends on what numtok reports about them.
"""

import json
import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_DEEP = 100_000  # nested brackets
_HUGE = 1 << 42  # bytes of a sparse file
_PLACES = 20  # damaged values per JSON value, evenly spread
_MOST = 2**31 - 1
_OTHERS: tuple[Any, ...] = (None, "text", "\ud800", 3, -1, 10**12, 10**30, 1e308, [], {})


class Damage(NamedTuple):
    """One way to damage a file; ``refused`` if no reader can take the result for an intact file."""

    name: str
    inflict: Callable[[Path], None]
    refused: bool


def damages(path: Path) -> Iterator[Damage]:
    """Yield all ways to damage an intact file; each puts another file in its place."""
    yield from _of_bytes(path)
    if path.suffix == ".json":
        yield from _of_json(json.loads(path.read_bytes()), _write_json)
    elif path.suffix == ".jsonl":
        lines = path.read_bytes().splitlines()
        for at in {0, len(lines) - 1}:
            yield from _of_json(
                json.loads(lines[at]), partial(_write_line, lines, at), f"line {at}"
            )
    elif path.suffix == ".parquet":
        yield from _of_table(pq.read_table(path))
    elif path.suffix == ".safetensors":
        yield from _of_weights(path.read_bytes())


def _replace(path: Path, content: bytes) -> None:
    """Replace the file instead of overwriting it: other stores may have links to it."""
    path.unlink()
    path.write_bytes(content)


def _of_bytes(path: Path) -> Iterator[Damage]:
    whole = path.read_bytes()

    def other(make: Callable[[Path], object]) -> Callable[[Path], None]:
        def put(place: Path) -> None:
            place.unlink()
            make(place)

        return put

    def sparse(place: Path) -> None:
        place.write_bytes(whole)
        os.truncate(place, _HUGE)

    yield Damage("empty", partial(_replace, content=b""), True)
    yield Damage("half", partial(_replace, content=whole[: len(whole) // 2]), True)
    yield Damage("noise", partial(_replace, content=bytes(range(256)) * 40), True)
    yield Damage("missing", lambda place: place.unlink(), True)
    yield Damage("sparse", other(sparse), True)
    yield Damage("gigabyte", other(partial(_sparse, size=1 << 30)), True)
    yield Damage("pipe", other(os.mkfifo), True)
    yield Damage("socket", other(a_socket), True)
    yield Damage("link to a device", other(lambda place: place.symlink_to("/dev/zero")), True)
    yield Damage("folder", other(lambda place: place.mkdir()), True)


def _sparse(path: Path, size: int) -> None:
    path.touch()
    os.truncate(path, size)


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the path of a socket is limited to about a hundred bytes
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


# --- JSON ----------------------------------------------------------------------------------------


def _of_json(
    value: Any, write: Callable[[Any, Path], None], where: str = "value"
) -> Iterator[Damage]:
    def put(content: Any) -> Callable[[Path], None]:
        return partial(write, content)

    for name, raw in (
        ("deep", b"[" * _DEEP + b"]" * _DEEP),
        ("deep and open", b'{"a":' * _DEEP),
        ("not UTF-8", b'{"a": "\xff\xfe"}'),
        ("a list", b"[]"),
        ("null", b"null"),
        ("NaN", b'{"a": NaN}'),
    ):
        yield Damage(f"{where}: {name}", put(raw), True)
    places = list(_places(value))
    for place in places[:: -(-len(places) // _PLACES) or 1]:
        told = ".".join(map(str, place))
        yield Damage(f"{where}: {told} missing", put(_changed(value, place, missing=True)), False)
        there = _at(value, place)
        for other in _OTHERS:
            if type(other) is not type(there) or other in (-1, 10**12, 10**30, 1e308, "\ud800"):
                shown = "a surrogate" if other == "\ud800" else json.dumps(other)
                changed = put(_changed(value, place, other))
                yield Damage(f"{where}: {told} is {shown}", changed, False)
    if isinstance(value, dict):
        yield Damage(f"{where}: a key more", put(value | {"unheard of": 1}), False)


def _places(value: Any, *before: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of each value; of a list, only its first item."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = list(enumerate(value))[:1]
    for key, inner in items:
        yield *before, key
        yield from _places(inner, *before, key)


def _at(value: Any, place: tuple[str | int, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _changed(
    value: Any, place: tuple[str | int, ...], other: Any = None, missing: bool = False
) -> Any:
    whole = json.loads(json.dumps(value))
    inner = _at(whole, place[:-1])
    if missing:
        del inner[place[-1]]
    else:
        inner[place[-1]] = other
    return whole


def _write_json(content: Any, path: Path) -> None:
    _replace(path, content if isinstance(content, bytes) else json.dumps(content).encode())


def _write_line(lines: list[bytes], at: int, content: Any, path: Path) -> None:
    line = content if isinstance(content, bytes) else json.dumps(content).encode()
    _replace(path, b"\n".join([*lines[:at], line, *lines[at + 1 :]]) + b"\n")


# --- Parquet -------------------------------------------------------------------------------------


def _of_table(table: "pa.Table") -> Iterator[Damage]:
    def put(changed: "pa.Table") -> Callable[[Path], None]:
        return partial(_write_table, changed)

    yield Damage("no rows", put(table.slice(0, 0)), False)
    yield Damage("no columns", put(pa.table({})), True)
    for index, name in enumerate(table.column_names):
        column = table.column(index).combine_chunks()
        is_optional = name.startswith(("group_", "floor_", "cluster"))
        yield Damage(f"{name} missing", put(table.remove_column(index)), not is_optional)
        yield Damage(f"{name} doubled", put(table.append_column(name, column)), True)
        for what, changed, refused in _columns(name, column):
            yield Damage(f"{name}: {what}", put(table.set_column(index, name, changed)), refused)


def _write_table(table: "pa.Table", path: Path) -> None:
    path.unlink()
    pq.write_table(table, path, write_page_checksum=True)


def _columns(name: str, column: "pa.Array[Any]") -> Iterator[tuple[str, "pa.Array[Any]", bool]]:
    rows = column.to_pylist()
    kind = column.type
    others = np.arange(len(rows))
    yield "all of another type", pa.array(others if pa.types.is_boolean(kind) else others < 0), True
    yield "bytes", pa.array([b"\xff"] * len(rows)), True
    yield "lists of lists", pa.array([[["x"]]] * len(rows)), True
    if not rows:
        return
    yield "a null", pa.array([None, *rows[1:]], kind), False
    yield "all null", pa.nulls(len(rows), kind), False
    if pa.types.is_list(kind):
        element = kind.value_type
        yield "a null inside", pa.array([[*rows[0], None], *rows[1:]], kind), True
        yield "a longer list", pa.array([rows[0] * 2 + rows[0][:1] * 7, *rows[1:]], kind), False
        yield "an empty list", pa.array([[], *rows[1:]], kind), False
        for what, value in _out_of_range(element):
            yield what, pa.array([[value] * max(1, len(rows[0])), *rows[1:]], kind), False
    else:
        for what, value in _out_of_range(kind):
            yield what, pa.array([value, *rows[1:]], kind), False


def _out_of_range(kind: "pa.DataType") -> Iterator[tuple[str, Any]]:
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        if pa.types.is_signed_integer(kind):
            yield "negative", -1
            yield "the most", min(_MOST, 2 ** (bits - 1) - 1)
            yield "the least", -(2 ** (bits - 1))
        else:
            yield "the most", 2**bits - 1
    elif pa.types.is_floating(kind):
        yield "not a number", float("nan")
        yield "infinite", float("inf")
    elif pa.types.is_string(kind):
        yield "a long text", "9" * 100_000
        yield "another text", "\n\0[NUM]"


# --- safetensors ---------------------------------------------------------------------------------


def _of_weights(whole: bytes) -> Iterator[Damage]:
    size = int.from_bytes(whole[:8], "little")
    header, data = json.loads(whole[8 : 8 + size]), whole[8 + size :]

    def put(changed: dict[str, Any], content: bytes = data) -> Callable[[Path], None]:
        text = json.dumps(changed).encode()
        return partial(_replace, content=len(text).to_bytes(8, "little") + text + content)

    name = next(one for one in header if one != "__metadata__")
    first = header[name]
    yield Damage("a header of 2^60 bytes", partial(_replace, content=b"\0" * 7 + b"\x10"), True)
    yield Damage(
        "a deep header",
        partial(_replace, content=_DEEP.to_bytes(8, "little") + b"[" * _DEEP + data),
        True,
    )
    without = {key: value for key, value in header.items() if key != name}
    yield Damage("a tensor missing", put(without), True)
    yield Damage("a tensor more", put(header | {"more": first}), True)
    for what, other in (
        ("integers", {"dtype": "I32"}),
        ("halves", {"dtype": "F16"}),
        ("another shape", {"shape": [1, *first["shape"]]}),
        ("a huge shape", {"shape": [2**40, 2**40]}),
        ("a negative shape", {"shape": [-1, 4]}),
        ("beyond the end", {"data_offsets": [0, 2**50]}),
        ("backwards", {"data_offsets": first["data_offsets"][::-1]}),
    ):
        yield Damage(what, put(header | {name: first | other}), True)
    yield Damage("half of the data", put(header, data[: len(data) // 2]), True)
    yield Damage("not numbers", put(header, b"\xff" * len(data)), False)
