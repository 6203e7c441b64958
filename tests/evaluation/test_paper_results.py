"""Measurements of published tables and claims of the papers: files under docs/results."""

import csv
import math
import tomllib
from pathlib import Path

import pytest

from numtok.evaluation.published import names, published

RESULTS = Path(__file__).parents[2] / "docs/results"
PAPERS = sorted({name.partition("/")[0] for name in names()})
COLUMNS = ["table", "row", "column", "setting", "examples", "n", "value", "sd", "source"]


@pytest.mark.parametrize("paper", PAPERS)
def test_each_measurement_is_a_number_of_a_published_cell(paper: str) -> None:
    with (RESULTS / f"papers/{paper}.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        lines = list(reader)
    assert reader.fieldnames == COLUMNS
    assert lines
    for line in lines:
        table = published(f"{paper}/{line['table']}")
        assert line["column"] in table.row(line["row"]), line
        assert line["setting"], line
        assert line["source"].partition("@")[2], line
        assert not line["examples"] or int(line["examples"]) > 0, line
        assert math.isfinite(float(line["value"])), line
        seeds = int(line["n"])
        assert seeds >= 1, line
        assert (line["sd"] != "") == (seeds > 1), line
        assert not line["sd"] or 0 <= float(line["sd"]) < math.inf, line


def test_each_check_of_a_claim_names_two_printed_cells() -> None:
    claims = tomllib.loads((RESULTS / "claims.toml").read_text("utf-8"))["claims"]
    assert {claim["paper"] for claim in claims} <= set(PAPERS)
    for claim in claims:
        assert bool(claim["checks"]) != ("verdict" in claim), claim["claim"]
        assert claim.get("verdict", "not run") in ("not run", "other setting"), claim["claim"]
        for check in claim["checks"]:
            table = published(check["table"])
            assert check["higher"] != check["lower"], check
            assert check["column"] in table.row(check["higher"]), check
            assert check["column"] in table.row(check["lower"]), check
