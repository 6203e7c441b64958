"""The same rule for what to try first in ``profile``, in the grand table and in the guide."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from numtok.analysis.profiling.recommendation import MEASURED, advised_normalizer
from numtok.encoding.normalizers.base import Moments
from numtok.encoding.schemes.base import SCHEMES
from numtok.registry import name_in
from tests.chain import jsonl
from tests.shell import Shell
from tests.stages.test_profile import profile

DOCS = Path(__file__).resolve().parents[3] / "docs"


def measured_ranks() -> dict[str, float]:
    """Return the mean ranks at equal numbers of examples; xval is with signed-log."""
    text = (DOCS / "results" / "grand-table.csv").read_text("utf-8")
    rows = {
        (line["encoding"], line["rank"])
        for line in csv.DictReader(text.splitlines())
        if line["budget"] == "500 steps" and line["rank"]
    }
    names = {"xval, normalize=signed-log": "xval", "bpe:512": "bpe"}
    found = {names.get(label, label): float(rank) for label, rank in rows}
    return {name: found[name] for name in SCHEMES if name in found}


def test_schemes_are_in_the_order_of_their_measured_ranks() -> None:
    ranks = measured_ranks()
    assert set(ranks) == set(MEASURED)
    assert sorted(MEASURED, key=lambda name: ranks[name]) == list(MEASURED)


def test_the_guide_begins_with_what_profile_recommends() -> None:
    guide = (DOCS / "get-started/which-encoding.md").read_text("utf-8")
    begin = next(line for line in guide.splitlines() if line.startswith("| not sure yet"))
    advised = advised_normalizer(Moments.of(np.array([-3.0, 0.5, 2000.0])))
    assert f"--scheme {MEASURED[0]} --normalize {advised}`" in begin


@pytest.mark.parametrize(
    ("level", "advised"),
    # Means of two numbers within 10 of a level: xval learned them with signed-log at 25 (R2 0.995)
    # but not at 50 (-0.001), where affine reaches 0.9999.
    [(0, "signed-log"), (25, "signed-log"), (50, "affine"), (-50, "affine"), (1e6, "affine")],
)
def test_affine_is_advised_where_a_logarithm_hides_changes(level: float, advised: str) -> None:
    values = level + np.linspace(-10, 10, 101)
    assert advised_normalizer(Moments.of(values)) == advised


def test_constants_and_no_numbers_have_the_usual_advice() -> None:
    assert advised_normalizer(Moments.of(np.full(9, 7.0))) == "signed-log"
    assert advised_normalizer(Moments()) == "signed-log"


@pytest.mark.integration
@pytest.mark.parametrize(("target", "scheme"), [("price", "xval"), ("year", "fone")])
def test_a_year_decides_where_it_is_a_target_and_not_among_the_inputs(
    tmp_path: Path, target: str, scheme: str
) -> None:
    rows = []
    for k in range(200):
        numbers = {"year": str(1980 + k % 40), "rooms": str(k % 7), "price": str(k * k % 991)}
        last = numbers.pop(target)
        text = ", ".join(f"{name} {number}" for name, number in numbers.items()) + f", {target} "
        span = [len(text), len(text) + len(last)]
        rows.append({"text": text + last, "targets": {target: [span]}})
    found = profile(tmp_path, jsonl(tmp_path / "a.jsonl", rows))
    assert found.recommended is not None and name_in(found.recommended) == scheme


@pytest.mark.integration
@pytest.mark.parametrize(
    ("rare", "normalize"),
    [
        (5, "affine,by=answer"),  # every fifth row has another number, far from the targets
        (1000, "affine"),  # no row has one
    ],
)
def test_the_target_of_records_decides_and_has_a_scale_of_its_own(
    tmp_path: Path, numtok: Shell, rare: int, normalize: str
) -> None:
    lines = ["title,year,split"]
    for k in range(100):
        size = f" of {177_523 + k}" if k % rare == rare - 1 else ""
        split = "test" if k % 10 == 9 else "train"
        lines.append(f"{'oil' if k % 2 else 'ink'}{size},{1990 + k % 20},{split}")
    file = tmp_path / "works.csv"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    found = profile(tmp_path, file, target=("year",))
    assert (found.recommended, found.recommended_normalize) == ("xval", normalize)
    assert any(f"--normalize {normalize}" in note for note in found.notes)
    encode = f"encode --scheme xval --normalize {normalize} --target year {file}"
    assert numtok(*encode.split()).code == 0


@pytest.mark.integration
def test_a_target_is_never_merged_with_other_fields(tmp_path: Path) -> None:
    """Among many fields, those with the fewest numbers are merged."""
    texts = [{f"g{i}": {f"k{j}": i * j for j in range(9)}} for i in range(12)]
    rows: list[dict[str, object]] = [{"text": json.dumps(text)} for text in texts * 2]
    rows.append({"text": "in 1990", "targets": {"year": [[3, 7]]}})
    found = profile(tmp_path, jsonl(tmp_path / "a.jsonl", rows))
    assert found.folded and "year" in {field.name for field in found.fields}


@pytest.mark.integration
def test_schemes_of_all_digits_have_no_common_scale_and_lose_nothing(tmp_path: Path) -> None:
    """``bits`` and ``fone`` embed digits in float64, so no field is squeezed: they lose nothing."""
    rows = [{"text": f"{k % 40} and {50_000_000 + 7919 * k}"} for k in range(200)]
    file = jsonl(tmp_path / "a.jsonl", rows)
    exact = "bits", "fone,whole=8,decimals=0"
    found = profile(tmp_path, file, schemes=("xval", *exact))
    narrow = [warning for warning in found.warnings if warning.kind == "narrow"]
    assert {scheme for warning in narrow for scheme in warning.schemes} == {"xval"}
    assert set(exact) <= set(found.lossless)
    for scheme in found.schemes:
        if scheme.scheme in exact:
            assert [loss.channel_share for loss in scheme.fields] == [None, None]
    for name in exact:
        assert not [warning for warning in found.warnings if name in warning.schemes]
