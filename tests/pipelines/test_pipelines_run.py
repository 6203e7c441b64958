"""The scripts under pipelines/ at smoke scale: they run, draw, and reuse existing artifacts."""

import csv
import io
import json
from pathlib import Path

import pytest

from numtok.encoding.schemes.base import SCHEMES
from tests.pipelines.test_pipelines import (
    DRAWN,
    FIGURES,
    NUMGPT_FIGURE,
    NUMVALUE,
    OF_NUMGPT,
    OF_TABLES,
    OF_TEXTS,
    ROOT,
    shell,
)

UCI = ROOT.parent / "shared/data/uci"
ERA5 = ROOT.parent / "shared/data/era5/era5_t2m_uk_2019-03_cdslegacy.nc"


def headlines(path: Path, count: int = 600) -> None:
    """Write a generated Numeracy-600K in its published layout."""
    rows = []
    for k in range(count):
        number = str(10 ** (k % 8) * 3 // 10 + k % 3)
        text = f"{('Shares', 'Rain', 'A town')[k % 3]} of {number} in story {'abcdefgh'[k % 8]}"
        place = {"offset": text.index(number), "length": len(number)}
        rows.append({"id": k, "title": text, "publish_date": "20100101", "number": number} | place)
    path.write_text(json.dumps(rows))


def ran_twice(script: Path, folder: Path, settings: dict[str, str]) -> tuple[str, list[Path]]:
    """Run a script twice and check that the second run prints the same and makes no report.

    Return its output and its reports.
    """
    if drawn := DRAWN.get(script.name):
        pytest.importorskip("vl_convert")
        settings = settings | {"OUT": "figures"}
    first = shell(str(script), folder, **settings)
    assert first.returncode == 0, first.stderr
    assert len(list((folder / "figures").glob("*.png"))) == len(drawn or ())
    reports = sorted((folder / "artifacts/report").rglob("report.json"))
    times = [path.stat().st_mtime_ns for path in reports]
    assert shell(str(script), folder, **settings).stdout == first.stdout
    assert [path.stat().st_mtime_ns for path in reports] == times
    return first.stdout, reports


@pytest.mark.slow
@pytest.mark.parametrize("script", OF_NUMGPT, ids=lambda path: path.name)
def test_a_pipeline_of_numgpt_runs_and_goes_on_where_it_stood(script: Path, tmp_path: Path) -> None:
    headlines(tmp_path / "Numeracy_600K_article_title.json")
    corpus = [json.dumps({"text": f"In {1900 + k} there were {k % 7} ships."}) for k in range(200)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(corpus))
    small = {"SCALE": "smoke", "NUMTOK_THREADS": "1", "JOBS": "1", "JUDGED": "comparison"}
    small |= {"SIGMAS": "0.5 100", "NUMERACY": str(tmp_path / "Numeracy_600K_article_title.json")}
    small |= {"CORPUS": str(tmp_path / "corpus.jsonl")}
    printed, reports = ran_twice(script, tmp_path, small)
    assert "printed" in printed or script.name == "numgpt-figure3.sh"
    assert ("=== " in printed) == (script.name != "numgpt-figure3.sh")
    ways = {"numgpt-table1.sh": 7, "numgpt-table2.sh": 7, "numgpt-table3.sh": 6}
    assert len(reports) == 2 * ways.get(script.name, 2)


@pytest.mark.slow
def test_how_sure_the_models_of_numgpt_are_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    small = {"SCALE": "smoke", "NUMTOK_THREADS": "1", "FORMATS": "svg"}
    done = shell(str(NUMGPT_FIGURE), tmp_path, **small)
    assert done.returncode == 0, done.stderr
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    assert drawn == {"numgpt-figure1.svg", "numgpt-figure1-written.svg"}
    assert len(sorted((tmp_path / "artifacts/probe").rglob("probe.json"))) == 5


@pytest.mark.slow
def test_the_pipeline_of_value_aware_runs_and_goes_on_where_it_stood(tmp_path: Path) -> None:
    small = {"SCALE": "smoke", "NUMTOK_THREADS": "1", "JOBS": "1"}
    printed, reports = ran_twice(NUMVALUE, tmp_path, small)
    assert printed.count("\nexact>=0.9:\n") == 4
    for value in ("0.687", "0.633", "0.72", "0.864", "0.837", "0.545"):  # of Tables 1, 2 and 6
        assert f" {value}" in printed
    assert len(reports) == 2 * 8


@pytest.mark.slow
@pytest.mark.parametrize("script", OF_TABLES, ids=lambda path: path.name)
def test_a_pipeline_of_tables_runs_and_goes_on_where_it_stood(script: Path, tmp_path: Path) -> None:
    """Each takes less than a minute on one core."""
    text = script.with_suffix(".toml").read_text()
    if '"openml"' in text:
        pytest.skip("needs the tasks of OpenML, from the network or its cache")
    if '"bbob"' in text:
        pytest.importorskip("cocoex", reason="needs the package coco-experiment")
    if '"uci"' in text and not UCI.is_dir():
        pytest.skip(f"needs a copy of uci_datasets in {UCI}")
    small = {"SCALE": "smoke", "JOBS": "1", "UCI": str(UCI), "NUMTOK_THREADS": "1"}
    small |= {"CURVES": "sine", "DENSITIES": "ring", "FUNCTIONS": "1"}
    _, reports = ran_twice(script, tmp_path, small)
    assert reports


@pytest.mark.slow
@pytest.mark.parametrize("script", OF_TEXTS, ids=lambda path: path.name)
def test_a_pipeline_runs_and_goes_on_where_it_stood(script: Path, tmp_path: Path) -> None:
    small = {"SCALE": "smoke", "SCHEMES": "p1000 xval", "OPERANDS": "2", "DIGITS": "3"}
    if script.name == "xval-table4.sh":
        pytest.importorskip("zarr", reason="needs the package zarr")
        if not ERA5.exists():
            pytest.skip("needs ../shared/data/era5")
        small |= {"ERA5": str(ERA5)}
    if script.name == "xval-table5.sh":
        pytest.importorskip("rebound", reason="needs the package rebound")
    printed, reports = ran_twice(script, tmp_path, small)
    assert "xval" in printed and "printed" in printed
    # Two schemes and two seeds; at three budgets, or with three more variants of xval on three
    # splits.
    assert len(reports) == {"xval-table4.sh": 12, "xval-table5.sh": 30}.get(script.name, 4)


@pytest.mark.slow
def test_tokens_of_a_sample_are_counted_for_every_scheme(tmp_path: Path) -> None:
    """Each number takes the scheme's tokens per number; all schemes have equally many other
    tokens."""
    pytest.importorskip("zarr", reason="needs the package zarr")
    if not ERA5.exists():
        pytest.skip("needs ../shared/data/era5")
    script = f"python {ROOT}/pipelines/xval-tokens.py {ERA5} --samples 20 --format csv"
    done = shell(script, tmp_path, NUMTOK_THREADS="1", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["scheme"] for row in rows} == set(SCHEMES)
    found = {row["scheme"]: int(row["tokens per sample"].replace(",", "")) for row in rows}
    numbers = found["b1999"] - found["xval"]
    assert 60 * (8 + 3) <= numbers <= 90 * (16 + 3) + 4
    for scheme, width in (("p1000", 3), ("p10", 5), ("ud", 8), ("fp15", 1)):
        assert found[scheme] - found["xval"] == pytest.approx((width - 1) * numbers, abs=3)
    without = {row["scheme"]: int(row["without commas"].replace(",", "")) for row in rows}
    assert without["p10"] / without["xval"] == pytest.approx(4.5, abs=0.1)  # 4.4 in the paper
    paper = {row["scheme"]: row["in the paper"] for row in rows if row["in the paper"]}
    assert list(paper) == ["fp15", "xval", "p1000", "p10"]


@pytest.mark.slow
def test_the_figures_are_of_the_models_of_the_table(tmp_path: Path) -> None:
    """They are reused: the figures make no model that the table has not made."""
    pytest.importorskip("rebound", reason="needs the package rebound")
    small = {"SCALE": "smoke", "SCHEMES": "p1000 xval", "SEEDS": "0", "FORMATS": "png"}
    small |= {"NUMTOK_THREADS": "1"}
    for script in (ROOT / "pipelines/xval-table5.sh", FIGURES):
        done = shell(str(script), tmp_path, **small)
        assert done.returncode == 0, done.stderr
    assert len(sorted((tmp_path / "artifacts/model").rglob("manifest.json"))) == 5
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    told = {"figure2-xval", "figure5-stepsize", "figure6-a-xval-mdn", "figure7", "pca-p1000"}
    assert {f"xval-{name}" for name in told} <= drawn
    assert len(drawn) == 2 * (2 + 5) + 1 + 5
