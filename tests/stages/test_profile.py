"""``numtok profile`` on real and synthetic data: results, checked by hand, and output."""

import ast
import gzip
import json
import math
import re
import shutil
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from rich.cells import cell_len

from numtok.analysis.profiling.field_profile import FieldProfile, shown_range
from numtok.analysis.profiling.scheme_error import LengthGroup, _decade, length_leakage
from numtok.analysis.profiling.short_values import short_value
from numtok.analysis.profiling.unit import Counted, ProfileUnit
from numtok.analysis.profiling.warnings import keeps, part, percent
from numtok.cli.output.printing import SCHEMA
from numtok.data.reading import units
from numtok.encoding.normalizers.base import Moments
from numtok.encoding.schemes.base import LOSSES, SCHEMES, LargestError, fitted
from numtok.errors import DataError, UsageError
from numtok.numerals.column import Literals, Numerals
from numtok.plugins import add_plugin_folders
from numtok.stages.profile import MOST_FIELDS, Config, Profile, SchemeProfile, run
from numtok.store.store import Store
from tests.cases import case
from tests.chain import csv_rows, encoded, quiet, standard_input, there
from tests.chain import jsonl as write
from tests.messages import Says
from tests.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
ERA5 = ROOT.parent / "shared/data/text/era5-uk-2019-03.jsonl"
SAMPLE = ROOT / "numtok/data/sample/era5-uk.jsonl"
PLUGINS = Path(__file__).parents[1] / "plugins"
ROUNDING = ("b1999", "fp15", "p10", "p1000")  # these round to three digits
needs_era5 = pytest.mark.skipif(not ERA5.exists(), reason=f"the full ERA5 file is not at {ERA5}")


def texts(path: Path, *values: str) -> Path:
    return write(path, [{"text": value} for value in values])


def profile(folder: Path, *inputs: object, **options: Any) -> Profile:
    return run(Config(tuple(map(str, inputs)), **options), Store(folder / "s"), quiet)


def fields(found: Profile) -> dict[str, FieldProfile]:
    return {field.name: field for field in found.fields}


def schemes(found: Profile) -> dict[str, SchemeProfile]:
    return {scheme.scheme: scheme for scheme in found.schemes}


def warnings(found: Profile, kind: str) -> list[str]:
    return [warning.text for warning in found.warnings if warning.kind == kind]


def test_targets_are_those_of_the_train_split(tmp_path: Path) -> None:
    spans = {"y": [[0, 1]], "x": [[2, 3], [4, 5]]}
    rows: list[dict[str, object]] = [
        {"text": "1 2 3", "targets": spans, "split": "train"},
        {"text": "4 0 9", "targets": spans, "split": "train"},
        {"text": "7 8 9", "split": "train"},
        {"text": "9 1 2", "targets": spans | {"z": [[4, 5]]}, "split": "test"},
    ]
    both = profile(tmp_path, write(tmp_path / "rows.jsonl", rows), schemes=("xval",))
    assert both.targets == {"x": (0, 9), "y": (1, 4)}
    test_only = profile(tmp_path, write(tmp_path / "test.jsonl", rows[3:]), schemes=("xval",))
    assert test_only.targets == {}


def test_other_numbers_are_counted_apart_from_targets(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": "1 2 30", "targets": {"y": [[4, 6]]}, "split": "train"},
        {"text": "4 50", "targets": {"y": [[2, 4]]}, "split": "test"},
        {"text": "7", "split": "train"},
    ]
    seen: list[Counted] = []
    config = Config((str(write(tmp_path / "rows.jsonl", rows)),), schemes=("xval",))
    run(config, Store(tmp_path / "s"), quiet, lambda names, counts, tried: seen.append(counts))
    assert seen[0].others == Moments.of(np.array([1.0, 2.0, 7.0]))
    assert seen[0].moments.count == 4


# --- the ERA5 file, checked by hand ------------------------------------------------------------


@cache
def era5_numbers() -> dict[str, list[str]]:
    """Return the literals of every field, read without numtok."""
    found: dict[str, list[str]] = {}
    for line in ERA5.read_text().splitlines():
        quoted = re.sub(r"-?[0-9]+\.[0-9]+", r"'\g<0>'", json.loads(line)["text"])
        row = ast.literal_eval(quoted)
        for point in row["description"]["coords"]:
            for k, literal in enumerate(point):
                found.setdefault(f"description.coords[][{k}]", []).append(literal)
        for k, literal in enumerate(row["description"]["start"]):
            found.setdefault(f"description.start[{k}]", []).append(literal)
        found.setdefault("data[][]", []).extend(x for series in row["data"] for x in series)
    return found


@cache
def era5_values(field: str) -> NDArray[np.float64]:
    return np.array(list(map(float, era5_numbers()[field])))


@cache
def era5_rounded(field: str) -> NDArray[np.float64]:
    """Return the values rounded to three digits, using Python's decimal arithmetic."""
    context = Context(prec=3, rounding=ROUND_HALF_EVEN)
    rounded = cache(lambda literal: float(context.plus(Decimal(literal))))
    return np.array(list(map(rounded, era5_numbers()[field])))


@pytest.fixture(scope="module")
def era5(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Profile the whole file with every scheme."""
    others = [name for name in SCHEMES if not SCHEMES[name].defaults.same_tokens_as]
    return profile(tmp_path_factory.mktemp("era5"), ERA5, schemes=(*others, "bpe:64"))


@needs_era5
@pytest.mark.slow
def test_the_era5_fields_are_named_and_counted(era5: Profile) -> None:
    found = era5
    assert (found.rows, found.numbers, found.rejected) == (300, 337_314, 0)
    # Per row: the latitude and the longitude (sine and cosine) of 60 to 90 points; the start within
    # the year and the day; and for each point a series of 8 to 16 temperatures.
    assert [(field.name, field.numbers) for field in found.fields] == [
        *((f"description.coords[][{k}]", 22_478) for k in range(3)),
        *((f"description.start[{k}]", 300) for k in range(4)),
        ("data[][]", 268_680),  # 3 * 22,478 + 4 * 300 + 268,680 = 337,314
    ]
    assert all(field.rows == 300 and field.rows_exact for field in found.fields)
    for field in found.fields:
        literals, values = era5_numbers()[field.name], era5_values(field.name)
        assert (field.low, field.high) == (values.min(), values.max())
        assert field.mean == pytest.approx(values.mean(), rel=1e-9, abs=1e-12)
        assert field.deviation == pytest.approx(values.std(), rel=1e-9)
        assert field.negative == (values < 0).mean()
        assert field.zero == (values == 0).mean()
        assert field.integer == (values == np.round(values)).mean()
        assert field.decimals_most == max(len(one.partition(".")[2]) for one in literals) == 4
        distinct, times = np.unique(values, return_counts=True)
        if field.distinct_exact:
            assert field.distinct == len(distinct)
            assert field.common_share == times.max() / len(values)
            assert field.common == distinct[times == times.max()].min()
        else:
            assert field.distinct == pytest.approx(len(distinct), rel=0.1)
    assert {field.name for field in found.fields if not field.distinct_exact} == {"data[][]"}


@needs_era5
def test_the_era5_warnings_are_right(tmp_path: Path, says: Says) -> None:
    found = profile(tmp_path, ERA5, schemes=(*ROUNDING, "digits", "xval"))
    # coords[][2] is the cosine of the longitude, 0.9848 to 1, with a spread of 0.00463. Three
    # digits are steps of 0.001, so the error is about uniform in +-0.0005. Its root mean square is
    # 0.001 / sqrt(12) = 0.00029, which is 6.2% of 0.00463. The values that remain are 0.985,
    # 0.986 ... 0.999 and 1.00: 15 + 1.
    # coords[][0] is the latitude, 0.766 to 0.848, with a spread of 0.0245, so 0.00029 is 1.2%.
    # start[2] has a spread of 0.0428, so 0.00029 is 0.7%, which causes no warning. Temperatures
    # are below 10 with steps of at most 0.01, so the error is at worst 0.0029 / 1.006 = 0.3%.
    rounding = "b1999, fp15, p10 and p1000 keep 3 digits: description."
    cosine, latitude = warnings(found, "rounded")
    says(cosine, f"{rounding}coords[][2] (0.9848 to 1)", "6.0%", "38 values become 16")
    says(latitude, f"{rounding}coords[][0] (0.766 to 0.848)", "1.2%")
    # The largest magnitude, 5.8433, is scaled to 5, so 4.3751 becomes 4.3751 * 5 / 5.8433 = 3.744.
    # The whole range is 5.8433 + 4.3751 = 10.2184. The cosine uses 1 - 0.9848 = 0.0152 of it
    # (0.15%), the latitude 0.848 - 0.766 = 0.082 (0.80%), start[2] 0.9978 - 0.8509 = 0.1469 (1.4%).
    cosine, latitude = warnings(found, "narrow")
    says(cosine, "xval", "-5 to 3.74", "description.coords[][2] (0.9848 to 1)", "0.1%")
    says(latitude, "xval", "-5 to 3.74", "description.coords[][0] (0.766 to 0.848)", "0.8%")
    assert len(found.warnings) == 4
    assert (found.lossless, found.recommended) == (("digits",), "digits")
    [note] = found.notes  # 0.0245 / 0.81 = 3%, 0.0046 / 0.996 = 0.5%, 0.043 / 0.94 = 5%
    fields = ("coords[][0] (0.8085", "coords[][2] (0.99567", "start[2] (0.9411")
    assert all(field in note for field in fields)


@needs_era5
@pytest.mark.slow
def test_the_era5_losses_are_those_of_all_numbers(era5: Profile) -> None:
    found = schemes(era5)
    literals = era5_numbers()
    for name in ROUNDING:
        for loss in found[name].fields:
            raw, back = era5_values(loss.field), era5_rounded(loss.field)
            error = math.sqrt(np.square(back - raw).mean()) / raw.std()
            held = raw != 0
            most = (np.abs(back - raw)[held] / np.abs(raw[held])).max()
            assert loss.error_exact == (loss.field != "data[][]")
            if loss.error_exact:
                assert loss.error_of_spread == pytest.approx(error, rel=1e-9)
                assert loss.largest_relative_error == pytest.approx(most, rel=1e-9)
            else:  # estimated from 1,024 numbers; the few above 1 cause most of the error
                assert loss.error_of_spread == pytest.approx(error, rel=0.1)
                assert loss.largest_relative_error is not None
                assert 0.5 * most <= loss.largest_relative_error <= most
            if loss.distinct_left is not None:
                assert loss.distinct_left == len(np.unique(back))
            assert (loss.clipped, loss.clipped_exact) == (0, True)
    for loss in found["digits"].fields:
        assert (loss.error_of_spread, loss.largest_relative_error) == (0.0, 0.0)
        length = np.mean([len(literal) for literal in literals[loss.field]])
        assert loss.tokens_per_number == pytest.approx(length, rel=0.03)
    assert all((loss.error_of_spread or 0) < 1e-4 for loss in found["xval"].fields)


@needs_era5
@pytest.mark.slow
@pytest.mark.parametrize("spec", ["digits", "bpe", "bpe:64"])
def test_what_the_lengths_of_the_era5_numbers_tell(era5: Profile, spec: str) -> None:
    found = schemes(era5)[spec]
    counts = Counter(chain.from_iterable(era5_numbers().values()))
    scheme = fitted(SCHEMES.build(spec), counts)  # all rows are in the train split
    for loss in found.fields:
        literals, values = era5_numbers()[loss.field], era5_values(loss.field)
        lengths = scheme.encode(Numerals.of_literals(literals)).lengths
        told = np.zeros(len(values))
        for length in np.unique(lengths):
            told[lengths == length] = values[lengths == length].mean()
        variance = told.var() / values.var()  # between lengths; the rest is within lengths
        shares = np.bincount(lengths)[np.unique(lengths)] / len(lengths)
        bits = -(shares * np.log2(shares)).sum()
        leakage = there(loss.length_leakage)
        exact = len(literals) == 300  # the sample contains all of them
        left = (1 - variance) * (leakage.numbers - 1)
        expected = max(0.0, 1 - left / (leakage.numbers - len(leakage.groups)))
        assert leakage.variance == pytest.approx(expected, abs=1e-9 if exact else 0.06)
        assert leakage.bits == pytest.approx(bits, abs=1e-9 if exact else 0.15)


def test_lengths_by_hand(tmp_path: Path, numtok: Shell, says: Says) -> None:
    some = ["a 1 b 1.5", "a 3 b 2.5", "a 12 b 3.5", "a 12 b 3.5"]
    found = schemes(profile(tmp_path, texts(tmp_path / "few.jsonl", *some), schemes=("digits",)))
    first, second = (there(loss.length_leakage) for loss in found["digits"].fields)
    # 1 and 3 have one token and a variance of 1; both 12s have two tokens. 0.5 of 25.5 remains.
    assert first.groups == (LengthGroup(1, 0.5, 2.0, 1.0), LengthGroup(2, 0.5, 12.0, 0.0))
    assert first.variance == pytest.approx(1 - 0.5 / 25.5 * 3 / 2)  # four numbers, two means
    assert (first.numbers, first.bits) == (4, 1.0)
    assert [of.tokens for of in second.groups] == [3]
    assert (second.variance, second.bits) == (0.0, 0.0)

    data = texts(tmp_path / "a.jsonl", *some * 75)
    found = schemes(profile(tmp_path, data, schemes=("digits", "p1000")))
    assert [loss.length_leakage for loss in found["p1000"].fields] == [None, None]
    ran = numtok("profile", str(data), "--scheme", "digits", "--scheme", "p1000")
    [told] = re.findall(r"^note: .*\n  .*", ran.out, re.M)
    says(told, "the token count", "98%", 'of after "a" (digits)', "--json")
    rows = csv_rows(numtok("profile", str(data), "--format", "csv").out)
    shown = {(row["scheme"], row["field"]): row["length_leakage"] for row in rows}
    assert float(shown["digits", 'after "a"']) == pytest.approx(0.98, abs=0.001)
    assert shown["p1000", 'after "a"'] == ""
    assert "length leak" not in numtok("profile", str(data), "--scheme", "p1000").out
    # Length leaks of fields with few numbers are not reported.
    few = [f"a {k % 7}{k % 3}" for k in range(400)] + ["rare 1", "rare 12"]
    texts(tmp_path / "b.jsonl", *few)
    out = numtok("profile", "b.jsonl", "--scheme", "digits").out
    assert "rare" in out and "length leak" not in out.replace("\n", " ")


def test_lengths_that_tell_nothing_are_said_to_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    for numbers in (5, 20, 300):
        shares = []
        for _ in range(400):
            lengths = rng.integers(1, 4, numbers).astype(np.int32)
            found = there(
                length_leakage(rng.normal(size=numbers), lengths, np.ones(numbers, np.int64))
            )
            shares += [] if found.variance is None else [found.variance]
        assert np.median(shares) < 0.02
    alone = there(
        length_leakage(np.array([1.0, 20.0]), np.array([1, 2], np.int32), np.array([1, 1]))
    )
    assert alone.variance is None


@needs_era5
def test_the_era5_page_is_good_to_read(numtok: Shell, says: Says) -> None:
    ran = numtok("profile", str(ERA5))
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert 24 <= len(lines) <= 4 * len(list(SCHEMES))
    assert lines[3].split()[:4] == ["field", "count", "from", "to"]
    assert lines[8].split()[:5] == ["coords[][2]", "22,478", "0.9848", "1", "0.00463"]
    says("\n".join(lines[3:15]))
    assert "The text adds 1,133 tokens per row and 272 to the vocabulary." in lines
    assert "~, and losses in large fields: estimated from 1,024 numbers per field" in lines
    fine = "ok: bits, bpe, digits, numerologic, numvalue, rt,whole=1,decimals=4, triads and tst"
    fine = f"{fine} lose nothing; every number is in the range of every scheme"
    assert fine in " ".join(ran.out.split())
    says(lines[-1].removesuffix(str(ERA5)), "next: numtok encode --scheme fone")


# --- costs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["p1000", "digits", "bpe:100", "xval"])
def test_tokens_are_those_that_encode_makes(tmp_path: Path, scheme: str) -> None:
    counts = encoded(Store(tmp_path / "store"), SAMPLE, scheme=scheme).manifest.counts
    found = profile(tmp_path, SAMPLE, schemes=(scheme,))
    assert found.text is not None and found.text.exact
    (own,) = found.schemes
    assert own.vocabulary + found.text.vocabulary == counts["vocabulary"]
    tokens = counts["tokens"] / counts["rows"]
    assert own.tokens_exact  # the sample contains all numbers
    assert own.tokens_per_row == pytest.approx(tokens, rel=1e-12)
    assert found.numbers == counts["numbers"]


def test_every_scheme_is_tried_and_plugins_too(tmp_path: Path, plugins: Path) -> None:
    shutil.copy(PLUGINS / "schemes/decade.py", plugins / "schemes")
    add_plugin_folders([plugins])
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *(f"[{k}.5]" for k in range(1, 99))))
    others = [name for name in SCHEMES if not SCHEMES[name].defaults.same_tokens_as]
    sized = {name: f"{name},whole=2,decimals=1" for name in ("fone", "rt")}  # sized as by encode
    assert [scheme.scheme for scheme in found.schemes] == [sized.get(one, one) for one in others]
    # These have the same tokens as bits, numgpt and, without text, digits.
    assert set(SCHEMES) - set(others) == {"base10", "dice", "native"}
    (error,) = (loss.error_of_spread for loss in schemes(found)["decade"].fields)
    assert error is not None and 0 < error < 1e-6
    assert keeps(SCHEMES.build("decade")) == "keeps 7 digits"  # 2^-24 is 6e-8


def test_exactness_is_told_in_digits_or_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = SCHEMES.build("p1000")
    for error, words in {
        0.0: "keeps all digits", 0.005: "keeps 3 digits", 0.5: "keeps 1 digit",
        5e-15: "keeps 15 digits", 0.0116: "rounds to 1.2%", 2.0**-24: "keeps 7 digits",
    }.items():  # fmt: skip
        monkeypatch.setattr(type(scheme), "error", LargestError(error))
        assert keeps(scheme) == words
    assert keeps(SCHEMES.build("fone,decimals=2")) == "rounds to 0.005"


def test_schemes_can_be_named(numtok: Shell, says: Says) -> None:
    path = texts(Path("a.jsonl"), *(f"[{k}.5]" for k in range(1000, 1099)))
    specs = ["--scheme", "p10,digits=5", "--scheme", "p10"]
    told = json.loads(numtok("profile", *specs, "--json", str(path)).out)
    assert [scheme["scheme"] for scheme in told["schemes"]] == ["p10,digits=5", "p10"]
    assert [scheme["tokens_per_number"] for scheme in told["schemes"]] == [7, 5]
    assert told["recommended"] == "p10,digits=5"
    # The 99 values from 1000.5 to 1098.5 are rounded to steps of 10, so 1000, 1010 ... 1100 remain:
    # 11 values. The error is 10 / sqrt(12) = 2.9, and the spread is 99 / sqrt(12) = 28.6.
    text = told["warnings"][0]["text"]
    says(text, "p10 keeps 3 digits: [0] (1,000 to 1,098)", "10%", "99 values become 11")


# --- losses ------------------------------------------------------------------------------------


def clips(found: Profile, scheme: str) -> list[tuple[int | float, bool]]:
    """Return the number of clipped numbers per field, and whether each count is exact."""
    return [(loss.clipped, loss.clipped_exact) for loss in schemes(found)[scheme].fields]


FEW = ["9.994e9", "9.996e9", "9.9949999e9", "9.995e9", "1e-6", "9.996e-7", "9.994e-7"]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        # 9.994e9 is rounded down into the range, and 9.996e9 up out of it. 9.996e-7 is rounded up
        # into it, and 9.99e-7 is below. So 9.996e9, 1e10, 1e400 and 9.99e-7 are lost.
        (["[9.99e9, 9.994e9, 9.996e9, 1e10, 1e-6, 9.996e-7, 9.99e-7, 0, 1e400]"], [(4, True)]),
        # The sample of 1,024 may contain neither number, but their decades are out of range.
        ([f"[{k}.25, {k}.5e-3]" for k in range(1, 3000)] + ["[3e15, 4e-12]"] * 2, [(2, True)] * 2),
        # 9.996e9 and 9.995e9 (a tie, to even) are rounded up to 1e10; 9.994e-7 to 9.99e-7
        ([f"[{FEW[k % 7]}]" for k in range(7 * 500)], [(3 * 500, True)]),
        (
            [f"zero 0 few {('1e-9', '5', '7', '8e12')[row % 4]} end" for row in range(3000)],
            [(0, True), (1500, True)],
        ),
    ],
    ids=["few", "far out", "few values", "beside zeros"],
)
def test_numbers_out_of_range_are_counted_exactly(
    tmp_path: Path, rows: list[str], wanted: list[tuple[int, bool]]
) -> None:
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    assert {name: clips(found, name) for name in ROUNDING} == dict.fromkeys(ROUNDING, wanted)
    whole = schemes(found)["p1000"]
    assert (whole.clipped, whole.clipped_exact) == (sum(lost for lost, _ in wanted), True)
    assert schemes(found)["digits"].clipped == 0


def test_numbers_out_of_range_are_told(tmp_path: Path, says: Says) -> None:
    literals = ["9.99e9", "9.994e9", "9.996e9", "1e10", "1e-6", "9.996e-7", "9.99e-7", "0", "1e400"]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", f"[{', '.join(literals)}]"))
    told = "b1999, fp15, p10 and p1000 cannot represent 4 numbers (44%) of [] (0 to 1e10)"
    says(next(one for one in warnings(found, "clipped") if "p10 " in one), told, "1e-6 to 9.99e9")
    [note] = found.notes
    says(note, "[]: 1 number out of range of float64", "1e400")


def test_numbers_near_the_edge_are_estimated_where_there_are_many(tmp_path: Path) -> None:
    rows = [f"[{k}e6]" for k in range(9001, 11001)]  # 9,991e6 to 9,994e6 are rounded to 9.99e9
    [(clipped, exact)] = clips(profile(tmp_path, texts(tmp_path / "a.jsonl", *rows)), "p10")
    lost = 11_000 - 9_995 + 1  # 9.995e9 is a tie and rounded to even, 1.00e10
    assert not exact and clipped == pytest.approx(lost, rel=0.02)  # 1,001 of them are certain
    # Numbers in the decade of a bound are estimated, separately for each bound. The two small
    # numbers are more than a decade below 1e-6.
    rows = [f"[{k}.25]" for k in range(3000)] + ["[4e-8]", "[5e-8]"]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    assert clips(found, "p10") == [(2, True)]
    near = [f"[1.{k:04d}e-7]" for k in range(3000)] + [f"[{k}.5e9]" for k in range(1, 9)] * 400
    found = profile(tmp_path, texts(tmp_path / "b.jsonl", *near, "[9.99e9]"))
    # All numbers from 1e-7 to 2e-7 are lost, and none at the upper end.
    assert clips(found, "p10") == [(3000, False)]


def test_the_decade_of_a_bound_is_that_of_its_literal() -> None:
    """A private function is tested, because a bound that is a decade off affects only estimates."""
    bounds = (1e-6, 1e-7, 1e-11, 9.99e9, 1e22, 5e-324, 0.0)
    assert list(map(_decade, bounds)) == [-6, -7, -11, 9, 22, -80, -81]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_losses_are_those_of_all_numbers_written_and_read_back(seed: int, tmp_path: Path) -> None:
    """All values reported as exact are correct, for fields of zeros, few values and many values."""
    rng = np.random.default_rng(seed)
    few = ["0", "1e-9", "-5", "7.25", "8e12", "-123456", "1e-6", "9.999e-7", "0.001"]
    pools = [
        ["0"],
        list(rng.choice(few, 4, replace=False)),
        [repr(one) for one in rng.normal(0, 10.0 ** rng.integers(-9, 11), 1400).tolist()],
        [str(value) for value in rng.integers(-999, 999, 1400)],
    ]
    names = ["alpha", "beta", "gamma", "delta"]
    columns = [rng.choice(pools[k], 1500).tolist() for k in rng.permutation(4)]
    rows = [
        " ".join(f"{name} {value}" for name, value in zip(names, row, strict=True))
        for row in zip(*columns, strict=True)
    ]
    found = schemes(profile(tmp_path, texts(tmp_path / "a.jsonl", *rows)))
    for spec in (*ROUNDING, "digits"):
        for loss in found[spec].fields:
            literals = columns[[f'after "{name}"' for name in names].index(loss.field)]
            numerals = Numerals.read(Literals.of(literals))
            encoded = SCHEMES.build(spec).encode(numerals)
            read = SCHEMES.build(spec).decode(encoded.tokens, encoded.lengths, encoded.channel)
            lost = np.isin(encoded.outcomes, [int(outcome) for outcome in LOSSES])
            if loss.clipped_exact:
                assert loss.clipped == lost.sum()
            else:
                assert loss.clipped == pytest.approx(lost.sum(), abs=0.1 * len(literals))
            off = (read.values - numerals.values)[~lost]
            if loss.error_exact and loss.error_of_spread is not None:
                error = np.sqrt(np.square(off).mean()) / (numerals.values.std() or 1.0)
                assert loss.error_of_spread == pytest.approx(error, rel=1e-6, abs=1e-12)
            if loss.tokens_exact:
                assert loss.tokens_per_number == pytest.approx(encoded.lengths.mean())


def test_digits_that_float64_cannot_hold_are_a_loss(tmp_path: Path) -> None:
    rows = [f"id {2**53 + 1 + 2 * k} of {k / 7}" for k in range(60)]  # k / 7 survives float64
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    assert "digits" in found.lossless and "bits" not in found.lossless
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *(f"of {k / 7}" for k in range(60))))
    assert {"digits", "bits"} <= {*found.lossless}


def test_nothing_is_called_fine_that_is_not_certain(tmp_path: Path, numtok: Shell) -> None:
    rows = [f"[{100 + k % 900}e{k // 900}]" for k in range(5000)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    # ud keeps four digits.
    written = ("bits", "bpe", "digits", "numerologic", "numvalue")
    whole = (*written, "rt,whole=8,decimals=0", "triads", "tst", "ud")
    assert found.lossless == tuple(sorted((*whole, *ROUNDING)))
    assert schemes(found)["p10"].fields[0].error_exact
    # An additional number has four digits, and the sample of 1,024 may not contain it.
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows, "[1.234]"))
    assert found.lossless == (*written, "rt,whole=8,decimals=3", "triads", "tst", "ud")
    assert not schemes(found)["p10"].fields[0].error_exact
    texts(tmp_path / "a.jsonl", *rows, "[1e-7]")
    fine = "ok: bits, bpe, digits, numerologic, numvalue, rt,whole=8,decimals=7, triads, tst and "
    assert f"{fine}ud lose nothing" in " ".join(numtok("profile", "a.jsonl").out.split())
    assert schemes(profile(tmp_path, tmp_path / "a.jsonl"))["p10"].clipped == 1


def test_bounds_beyond_counted_decades_are_estimated(tmp_path: Path, plugins: Path) -> None:
    shutil.copy(PLUGINS / "schemes/shortest.py", plugins / "schemes")
    add_plugin_folders([plugins])
    rows = [f"[{k}e300, {k}, {k}]" for k in range(1, 2000)]
    rows += [f"[1, {k}e400, 5]" for k in range(500)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows), schemes=("shortest", "digits"))
    estimate = pytest.approx(499, rel=0.2)  # 0e400 is 0
    # Numbers in the first field are at most 1.999e303.
    assert clips(found, "shortest") == [(0, True), (estimate, False), (0, True)]
    assert clips(found, "digits") == [(0, True)] * 3


def test_a_channel_that_float64_cannot_scale_is_told(tmp_path: Path, says: Says) -> None:
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", "[1e-310, -1e-310]"))
    (told,) = warnings(found, "unwritable")
    says(told, "xval: --normalize scale", "from -1e-310 to 1e-310")
    assert schemes(found)["xval"].problem
    assert found.recommended != "xval"


def test_whole_numbers_that_are_mixed_up_are_told(tmp_path: Path, says: Says) -> None:
    # 4-digit labels up to 9,990 in steps of 10 are exact; in steps of 1, they are rounded.
    rows = [f"[{1000 + 10 * k}, {9000 + k}, {k * 999_000}]" for k in range(900)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows), schemes=("p1000",))
    # 9,000 to 9,899 are rounded to steps of 10. The error is 10 / sqrt(12) = 2.9, or 1.1% of the
    # spread, 900 / sqrt(12) = 260. 9,000, 9,010 ... 9,900 are 91 values.
    [told] = warnings(found, "rounded")
    says(told, "p1000 keeps 3 digits: [1] (9,000 to 9,899)", "1.1%", "900 values become 91")
    labels = [f"[{10_000 + 97 * k}]" for k in range(900)]  # 10,000 to 97,203, in steps of 97
    found = profile(tmp_path, texts(tmp_path / "b.jsonl", *labels), schemes=("p10,digits=2",))
    told = " ".join(warnings(found, "rounded") + warnings(found, "merged"))
    assert "900 values become 88" in told


def test_a_field_that_is_small_in_the_channel_is_told(tmp_path: Path, says: Says) -> None:
    rows = [f"[{k}, {1000 * k}]" for k in range(-50, 51)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows), schemes=("xval",))
    # The largest magnitude, 50,000, is scaled to 5, and [0] uses 100 of the range of 100,000.
    [told] = warnings(found, "narrow")
    says(told, "xval", "-5 to 5", "[0] (-50 to 50)", "0.1%")
    (first, second) = schemes(found)["xval"].fields
    assert (first.channel_share, second.channel_share) == (0.001, 1.0)


def test_the_worse_kind_of_loss_decides_what_is_recommended(tmp_path: Path) -> None:
    rows = [f"[{k}e12, {k}, {k + 7}]" for k in range(1, 100)]
    path = texts(tmp_path / "a.jsonl", *rows)
    found = profile(tmp_path, path, schemes=("p10", "xval"))
    # p10 cannot represent [0] at all. xval has more warnings, but represents all numbers.
    told = [(one.kind, one.schemes) for one in found.warnings]
    assert told == [("clipped", ("p10",)), ("narrow", ("xval",)), ("narrow", ("xval",))]
    assert found.recommended == "xval"
    found = profile(
        tmp_path, texts(path, *(f"[{k}e15, {k}]" for k in range(1, 100))), schemes=("p10",)
    )
    # Clipped numbers are not also reported as merged.
    assert [(told.kind, told.field) for told in found.warnings] == [("clipped", "[0]")]


def test_affine_is_recommended_for_high_levels(tmp_path: Path, numtok: Shell) -> None:
    rows = [f"[{20_000 + k / 10}, {20_000 - k / 4}]" for k in range(-50, 51)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    [note] = found.notes
    # 101 values in steps of 0.1 and of 0.25 have the standard deviations 2.92 and 7.29.
    for part_of in ("[0] (20,000 ± 2.92)", "[1] (20,000 ± 7.29)", "xval --normalize affine"):
        assert part_of in note
    assert (found.recommended, found.recommended_normalize) == ("xval", "affine")
    command = "next: numtok encode --scheme xval --normalize affine"
    assert command in numtok("profile", "a.jsonl").out
    # A single scale for all fields does not resolve the changes of one of them.
    rows = [f"[{20_000 + k / 10}, {k}]" for k in range(-50, 51)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    [note] = found.notes
    assert "[0] (20,000 ± 2.92)" in note and "Subtract a constant" in note
    assert found.value_normalize == "signed-log"
    assert found.recommended == "fone,whole=5,decimals=1"  # xval barely resolves such changes


def test_small_numbers_beside_large_ones_are_for_a_logarithm(tmp_path: Path) -> None:
    """docs/get-started/which-encoding.md gives the same advice. numgpt used to be recommended."""
    rows = [f"[{k}, {1000 * k}, {k / 100}]" for k in range(-50, 51)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    assert (found.recommended, found.recommended_normalize) == ("xval", "signed-log")


def test_a_vocabulary_that_is_hardly_seen_is_told(tmp_path: Path, says: Says) -> None:
    rows = texts(tmp_path / "a.jsonl", *(f"[{k}]" for k in range(10)))
    few = profile(tmp_path, rows, schemes=("fp15", "b1999", "p1000", "p10"))
    [told] = warnings(few, "rare")
    says(told, "fp15 (28,800), b1999 (1,816) and p1000 (918)", "10 numbers")


def test_what_one_value_has_most_of_is_noted(tmp_path: Path, says: Says) -> None:
    rows = [f"[{0 if k % 4 else k}, 7, {k}]" for k in range(100)]
    found = profile(tmp_path, texts(tmp_path / "a.jsonl", *rows))
    most, always = found.notes
    says(most, "76% of the numbers in [0]", " 0")
    says(always, "the numbers in [1] are always 7")
    found = profile(tmp_path, texts(tmp_path / "b.jsonl", "[1e400]", "[1]"))
    [beyond] = found.notes
    says(beyond, "[0]: 1 number out of range of float64")
    assert shown_range(found.fields[0]) == "only 1"


def test_digits_beyond_float64_are_noted(tmp_path: Path, says: Says) -> None:
    rows = (f"[{10**17 + k}, {k / 7!r}, 0.{10**20 + k}]" for k in range(9))
    path = texts(tmp_path / "a.jsonl", *rows)
    ids, long = (note for note in profile(tmp_path, path).notes if "float64" in note)
    says(ids, "the numbers in [0] have up to 18 digits", "float64", "15 to 17")
    says(long, "the numbers in [2] have up to 20+ digits")


def test_numbers_with_commas_are_noted(tmp_path: Path, says: Says) -> None:
    cases: list[tuple[Callable[[int], str], list[str]]] = [
        (lambda k: f"dy {k},{k + 3} m", ['#2 after "dy"']),
        (lambda k: f"it cost {k},{100 + k} or {k},{200 + k},{300 + k}",
         ['#2 after "cost"', '#3 after "or"']),
        (lambda k: f"at {k},{k}, {k},{k}, and {k}.{k},{k}, 7",
         ['#2 after "at"', '#4 after "at"', '#2 after "and"']),
        (lambda k: f"x {k}, {k}", []),
        (lambda k: f"x {k},{k} y {k}" if k % 2 else f"x {k}, {k} y {k}", []),
        (lambda k: f"{k},{k + 1},{k + 2}", []),
        (lambda k: f"{k}.5,{k}.25,-{k}", []),
        (lambda k: f"[{k},{k}]", []),
    ]  # fmt: skip
    for rows, noted in cases:
        with case(rows(1)):
            path = texts(tmp_path / "a.jsonl", *(rows(k) for k in range(1, 60)))
            notes = [note for note in profile(tmp_path, path).notes if "comma" in note]
            for note, name in zip(notes, noted, strict=True):
                says(note, f"{name} always follow a comma", "--numbers thousands")


# --- rows, splits and inputs -------------------------------------------------------------------


def test_the_result_depends_on_no_division_of_the_rows_and_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(4)
    rows: list[dict[str, object]] = []
    for k in range(600):
        kind = k % 3
        if kind == 0:
            text = json.dumps({"x": generator.normal(0, 3, 1 + k % 4).round(3).tolist(), "n": k})
        elif kind == 1:
            text = f"Temperature {generator.normal(9, 3):.1f} C, of {k} values"
        else:
            text = f"({k % 7} + {k}) = {k % 7 + k}"
        rows.append({"id": k, "text": text})
    path = write(tmp_path / "a.jsonl", rows)
    whole = profile(tmp_path, path)
    monkeypatch.setattr(units, "UNIT", 7000)
    monkeypatch.setattr(units, "BLOCK", 2000)
    one, two = (profile(tmp_path, path, workers=workers) for workers in (1, 2))
    assert one == two
    after = ['A after "Temperature"', 'A after "of"']
    assert [field.name for field in one.fields] == ["x[]", "n", *after, "B #1", "B #2", "B #3"]
    shuffled = [rows[k] for k in generator.permutation(len(rows))]
    other = profile(tmp_path, write(tmp_path / "b.jsonl", shuffled))
    for changed in (one, other):
        for told, expected_told in zip(changed.warnings, whole.warnings, strict=True):
            assert told.figure == pytest.approx(expected_told.figure, rel=1e-12)
            assert replace(told, figure=0.0) == replace(expected_told, figure=0.0)
        for mine, theirs in zip(changed.fields, whole.fields, strict=True):
            figures, expected = (dict(vars(field)) for field in (mine, theirs))
            for name in ("mean", "deviation"):  # these depend on the order of summation
                assert figures.pop(name) == pytest.approx(expected.pop(name), rel=1e-12)
            assert figures == expected


def test_parts_are_merged_as_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: set[int] = set()
    most = 0
    count = ProfileUnit.__call__

    def counting(self: ProfileUnit, unit: units.Unit) -> tuple[int, Counted]:
        nonlocal most
        index, part = count(self, unit)
        held.add(index)
        weakref.finalize(part, held.discard, index)
        most = max(most, len(held))
        return index, part

    monkeypatch.setattr(ProfileUnit, "__call__", counting)
    for k in range(40):  # each is a unit
        (tmp_path / f"{k}.jsonl.gz").write_bytes(gzip.compress(b'{"text": "[1, 2.5]"}\n'))
    found = profile(tmp_path, tmp_path, workers=1)
    assert [field.numbers for field in found.fields] == [40, 40]
    assert most < 20


def test_fields_with_as_many_numbers_are_folded_in_the_same_way_in_any_order(
    tmp_path: Path,
) -> None:
    rows = [json.dumps({f"g{i}": {f"k{j}": i * j for j in range(9)}}) for i in range(12)]
    one, other = (
        [(field.name, field.numbers, field.low, field.distinct) for field in found.fields]
        for found in (
            profile(tmp_path, texts(tmp_path / "a.jsonl", *rows)),
            profile(tmp_path, texts(tmp_path / "b.jsonl", *rows[::-1])),
        )
    )
    assert one == other


def test_every_kind_of_input_is_read(numtok: Shell) -> None:
    lines = "".join(f'{{"words": "[{k}, {k}.5]"}}\n' for k in range(50))
    (Path("b.jsonl.gz")).write_bytes(gzip.compress(lines.encode()))
    table = pa.table({"words": [f"[{k}, {k}.5]" for k in range(50, 60)]})
    pq.write_table(table, Path("c.parquet"))
    options = ["--text-field", "words", "--json"]
    told = json.loads(numtok("profile", *options, "b.jsonl.gz", "test=c.parquet").out)
    assert told["splits"] == {"test": 10, "train": 50}
    fields = [(field["name"], field["numbers"], field["high"]) for field in told["fields"]]
    assert fields == [("[0]", 60, 59.0), ("[1]", 60, 59.5)]
    # The channel is scaled by the train split, whose largest number is 49.5.
    (xval,) = (scheme for scheme in told["schemes"] if scheme["scheme"] == "xval")
    assert xval["constants"] == {"factor": 5 / 49.5}
    ran = numtok("profile", "--text-field", "words", "b.jsonl.gz", "test=c.parquet")
    assert ran.out.splitlines()[-1].endswith("--text-field words b.jsonl.gz test=c.parquet")
    assert "test 10, train 50" in ran.out


def test_an_artifact_of_data_is_read(numtok: Shell) -> None:
    ref = numtok("gen", "arithmetic", "--rows", "200", "--operands", "2").out.strip()
    told = json.loads(numtok("profile", "--json", ref).out)
    assert told["rows"] >= 200
    assert "train" in told["splits"]
    names = [field["name"] for field in told["fields"]]
    assert names == ["#1", "#2", "answer"]
    assert [field["numbers"] for field in told["fields"]] == [told["rows"]] * 3


def test_splits_by_a_hash_are_those_of_encode(numtok: Shell) -> None:
    texts(Path("a.jsonl"), *(f"[{k}]" for k in range(300)))
    told = json.loads(numtok("profile", "--split", "test=0.2,seed=3", "--json", "a.jsonl").out)
    made = numtok("encode", "--scheme", "p10", "--split", "test=0.2,seed=3", "--json", "a.jsonl")
    counts = json.loads(made.out)["counts"]
    assert told["splits"] == {"test": counts["rows_test"], "train": counts["rows_train"]}
    last = numtok("profile", "--split", "test=0.2,seed=3", "a.jsonl").out.splitlines()[-1]
    assert "--split test=0.2,seed=3 a.jsonl" in last


def test_rows_of_other_splits_are_profiled(tmp_path: Path, numtok: Shell, says: Says) -> None:
    path = texts(tmp_path / "a.jsonl", "[1]", "[2]")
    found = profile(tmp_path, f"test={path}")
    assert found.text is None
    assert schemes(found)["xval"].constants == {"factor": 2.5}
    assert schemes(found)["p10"].tokens_per_row is None
    [note] = found.notes
    says(note, "split 'train' is empty", "fitted on all rows", "no merges")
    # A command that would fail is not suggested.
    assert numtok("encode", "--scheme", "p10", "test=a.jsonl").code != 0
    assert "next:" not in numtok("profile", "test=a.jsonl").out


def test_standard_input_is_read_and_nothing_is_left_behind(tmp_path: Path, numtok: Shell) -> None:
    path = texts(tmp_path / "a.jsonl", "[1, 2.5]")
    with standard_input(path):
        found = profile(tmp_path, "-")
    assert (found.numbers, found.inputs) == (2, ("-",))
    assert numtok("profile", "a.jsonl").code == 0
    assert list(tmp_path.iterdir()) == [path]


def test_bad_rows_stop_the_run_or_are_left_out(numtok: Shell, says: Says) -> None:
    Path("a.jsonl").write_text(
        '{"text": "[1]"}\n{"text": 5}\n{"text": "2", "targets": {"y": [[0, 5]]}}\n'
    )
    says.refused(numtok("profile", "a.jsonl"), DataError.exit_code, "numtok: a.jsonl:2: ")
    ran = numtok("profile", "--on-error", "skip", "a.jsonl")
    assert ran.code == 0
    assert "2 rows left out" in ran.out
    assert ran.out.splitlines()[-1].endswith(" --on-error skip a.jsonl")
    told = json.loads(numtok("profile", "--on-error", "skip", "--json", "a.jsonl").out)
    assert (told["rows"], told["rejected"], told["numbers"]) == (1, 2, 1)


def test_errors_are_one_line(numtok: Shell, says: Says) -> None:
    texts(Path("a.jsonl"), "[1]")
    (Path("bad.jsonl")).write_text('{"text": 5}\n')
    (Path("blank.jsonl")).write_text("\n\n")
    (Path("empty.jsonl")).write_text("")
    # This error is raised before any input is read.
    with pytest.raises(UsageError, match=r"--workers must be at least 1 \(got 0\)"):
        Config(("a.jsonl",), workers=0)
    for words, code, told in (
        ("b.jsonl", 2, ["b.jsonl: file not found"]),
        ("--on-error stop a.jsonl", 2, ["--on-error must be fail or skip", "'stop'"]),
        ("--workers 0 a.jsonl", 2, ["--workers must be at least 1 (got "]),
        ("--max-line 0 a.jsonl", 2, ["--max-line must be from 1 to 1,073,741,824 (got 0)"]),
        ("--numbers python a.jsonl", 2, ["unknown numeral policy 'python'"]),
        ("--scheme p11 a.jsonl", 2, ["'p11'. Did you mean 'p10'?"]),
        ("--text-field id a.jsonl", 2, ["--text-field 'id'", "Name the field that holds"]),
        ("--split test=0.1 train=a.jsonl", 2, ["--split has no effect", "inputs without split="]),
        ("--on-error skip bad.jsonl", 3, ["no row can be used (1 rejected)", "--on-error fail"]),
        ("blank.jsonl", 3, ["no rows, only blank lines"]),
        ("empty.jsonl", 3, ["empty.jsonl is empty", "at least one row"]),
    ):
        with case(words):
            says.refused(numtok("profile", *words.split()), code, *told)


# --- output ------------------------------------------------------------------------------------

_PAGES: dict[str, list[str]] = {
    "none": ["no number", ""],
    "one": ["{'a': [1, 2, 3], 'b': {'c': 1.5e300, 'd': 1e400}}"],
    "empty strings": ["", "", "5"],
    "wide characters": [
        f'{{"測定データ値の名": {{"時刻のデータ列": {(-1) ** k * 1.7e12 + k}}}, "x": 0}}'
        for k in range(40)
    ],
    "long figures": [
        json.dumps({"measurements": {
            "timestamp_in_ms": 1.7e12 + k, "balance_delta": k % 3 and -1.7e12 - k / 7,
            "other_delta": k % 4 and 1.3e12 - k / 7}}) for k in range(400)
    ],
    "unicode": [f'{{"Größe µ": {k}, "日本": {{"x.y": {k}.5, "z\\n": 1}}}}' for k in range(9)],
    "templates": [f"The {what} of {k} and 7 is {k * 1000}.5" for k in range(20) for what in "ab"],
    "prose": [" ".join(f"w{chr(97 + (k * j) % 26)} {k}" for j in range(9)) for k in range(30)],
    "long names": [json.dumps({"a" * 60: {"b" * 60: {"c" * k: k for k in range(1, 20)}}})],
    "wide": [json.dumps({f"g{i}": {f"k{j}": i * j for j in range(9)} for i in range(12)})],
}  # fmt: skip


@pytest.mark.parametrize("name", list(_PAGES))
@pytest.mark.parametrize("limit", [80, 100])
def test_a_page_fits_the_terminal(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, name: str, limit: int
) -> None:
    texts(Path("a.jsonl"), *_PAGES[name])
    if limit != 80:  # the default
        monkeypatch.setenv("COLUMNS", str(limit))
    ran = numtok("profile", "a.jsonl")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "a.jsonl"
    tables = lines[: lines.index("losses, worst first")] if name[:4] == "wide" else lines
    # A command is never wrapped, so that it can be copied.
    assert [line for line in tables if cell_len(line) > limit and line != lines[-1]] == []
    assert all(line == line.rstrip() for line in lines)
    if name == "none":
        assert lines[1] == "2 rows without a number: there is nothing to encode"
        assert len(lines) == 2
    else:
        assert lines[-1].startswith("next: numtok encode --scheme ")


def test_templates_have_an_example_and_warnings_are_merged(numtok: Shell) -> None:
    texts(Path("a.jsonl"), *_PAGES["templates"])
    lines = numtok("profile", "a.jsonl").out.splitlines()
    assert {"A: The a of 0 and 7 is 0.5", "B: The b of 0 and 7 is 0.5"} <= set(lines)
    rows = [f"[{k + 1000}.5, {k + 2000}.5, {k + 3000}.5]" for k in range(99)]
    texts(Path("a.jsonl"), *rows)
    out = " ".join(numtok("profile", "a.jsonl").out.split())
    assert out.count("keep 3 digits") == 1
    assert "; also [" in out


def test_more_fields_than_can_be_shown_are_folded_and_said(numtok: Shell) -> None:
    texts(Path("a.jsonl"), *_PAGES["wide"])
    told = json.loads(numtok("profile", "--json", "a.jsonl").out)
    assert len(told["fields"]) == MOST_FIELDS
    assert told["fields"][-1]["name"] == "(45 others)"  # 12 * 9 = 108 = 63 + 45
    assert sum(field["numbers"] for field in told["fields"]) == told["numbers"] == 108
    ran = numtok("profile", "a.jsonl")
    assert "45 fields with few numbers are merged" in ran.out


def test_columns_are_dropped_before_names(numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"Temperature {k % 9}.5 C, pressure {k + 101300} Pa" for k in range(-40, 40)]
    rows += [f"The sum of {k} and {k + 101300} is {k}" for k in range(-40, 20)]
    texts(Path("a.jsonl"), *rows)
    out = numtok("profile", "a.jsonl").out
    assert '\n  after "pressure"  ' in out
    assert " top" not in out.splitlines()[5]
    monkeypatch.setenv("COLUMNS", "100")
    wide = numtok("profile", "a.jsonl").out
    assert wide.splitlines()[5].split()[-2:] == ["top", "rows"]


def test_json_has_everything_under_keys_that_stay(numtok: Shell) -> None:
    texts(Path("a.jsonl"), "[1, 20000.5]", "[3, 30000.5]")
    told = json.loads(numtok("profile", "--json", "a.jsonl").out)
    assert told["schema"] == SCHEMA
    assert told["fields"][0] == {
        "name": "[0]", "numbers": 2, "rows": 2, "rows_exact": True, "low": 1.0, "high": 3.0,
        "mean": 2.0, "deviation": 1.0, "quartiles": [1.0, 1.0, 3.0], "smallest": 1.0,
        "largest": 3.0, "decades": pytest.approx(math.log10(3)), "negative": 0.0, "zero": 0.0,
        "integer": 1.0, "outside": 0, "after_comma": 0.0, "digits_median": 1, "digits_most": 1,
        "decimals_median": 0, "decimals_most": 0, "distinct": 2, "distinct_exact": True,
        "common": 1.0, "common_share": 0.5, "common_exact": True, "sampled": 2,
    }  # fmt: skip
    p1000 = next(scheme for scheme in told["schemes"] if scheme["scheme"] == "p1000")
    assert p1000["fields"][1] == {
        # 20,000 and 30,000 are read back, each with an error of 0.5, and the spread is 5,000
        "field": "[1]", "tokens_per_number": 3.0, "tokens_exact": True, "clipped": 0,
        "clipped_exact": True, "error_of_spread": 0.0001, "error_exact": True,
        "largest_relative_error": 0.5 / 20000.5, "distinct_left": 2, "channel_share": None,
        "length_leakage": None,
    }  # fmt: skip
    assert {key: p1000[key] for key in p1000 if key != "fields"} == {
        "scheme": "p1000", "normalize": "none", "constants": {}, "tokens_per_number": 3.0,
        "tokens_exact": True, "number_tokens_per_row": 6.0, "tokens_per_row": 9.0,
        "vocabulary": 926, "clipped": 0, "clipped_exact": True, "problem": "",
    }  # fmt: skip
    assert told["text"] == {
        "tokenizer": "words", "tokens_per_row": 3.0, "exact": True,
        "vocabulary": told["text"]["vocabulary"],
    }  # fmt: skip
    assert set(told["warnings"][0]) == {"kind", "schemes", "field", "figure", "text"}
    json_ = numtok("profile", "--json", "a.jsonl")
    assert numtok("profile", "--format", "json", "a.jsonl") == json_


def test_json_of_numbers_that_are_sampled_is_json(numtok: Shell) -> None:
    texts(Path("a.jsonl"), *(f"[{k % 3 and k}.5]" for k in range(6000)))
    (field,) = json.loads(numtok("profile", "--json", "a.jsonl").out)["fields"]
    assert (field["common"], field["common_exact"], field["sampled"]) == (0.5, False, 1024)
    assert field["common_share"] == pytest.approx(1 / 3, abs=0.05)


def test_a_loss_without_a_spread_is_unknown(numtok: Shell) -> None:
    # Squares of differences of 1e-300 underflow to 0 in float64, so the spread is unknown.
    texts(Path("a.jsonl"), *(f"[{k}.3e-300]" for k in range(1, 9)))
    lines = numtok("profile", "--scheme", "xval", "a.jsonl").out.splitlines()
    assert lines[3].split() == ["field", "count", "from", "to", "digits", "values", "top"]
    assert any(line.startswith("xval") and line.endswith("unknown") for line in lines)
    texts(Path("b.jsonl"), *(f"[{k % 9}, 1.2345]" for k in range(9)))
    assert "digits of [1]" in numtok("profile", "--scheme", "p10", "b.jsonl").out


def test_the_legend_and_the_command_say_what_is_there(numtok: Shell) -> None:
    write(Path("a.jsonl"), [{"text": f"[{k + 1000}]", "split": "test"} for k in range(99)])
    lines = numtok("profile", "--scheme", "p10", "a.jsonl").out.splitlines()
    assert "std: standard deviation; digits: maximum; values: distinct; top: commonest" in lines
    assert lines[lines.index("losses, worst first") - 1] == ""
    texts(Path("b.jsonl"), *(f"[{k}]" for k in range(300)))
    out = numtok("profile", "--max-line", "5000", "b.jsonl").out
    assert "std: standard deviation; digits: maximum; values: distinct\n" in out
    assert out.splitlines()[-1].endswith(" --max-line 5000 b.jsonl")


def test_csv_has_a_row_for_each_field_and_scheme(numtok: Shell) -> None:
    texts(Path("a.jsonl"), "[1, 2.5]", "[3, 4.5]")
    rows = csv_rows(numtok("profile", "--format", "csv", "a.jsonl").out)
    assert [(row["name"], row["scheme"]) for row in rows[:2]] == [("[0]", "b1999"), ("[0]", "bits")]
    assert len(rows) == 2 * sum(not SCHEMES[name].defaults.same_tokens_as for name in SCHEMES)
    assert rows[0]["tokens_per_number"] == "2.0"
    texts(Path("b.jsonl"), "none")
    assert numtok("profile", "--format", "csv", "b.jsonl").out == ",".join(rows[0]) + "\n"


def test_markdown_has_both_tables_and_the_warnings(numtok: Shell) -> None:
    texts(Path("a.jsonl"), *(f"[{k}.5]" for k in range(1000, 1099)))
    out = numtok("profile", "--format", "md", "a.jsonl").out
    assert "| [0] | 99 | 1,000 | 1,098 | 28.6 | 5 |" in out
    assert "| p1000 | 3 | 3 |" in out
    assert "- b1999, fp15, p10 and p1000 keep 3 digits: [0] (1,000 to 1,098) loses 10%" in out


def test_values_are_shown_as_short_as_they_differ() -> None:
    for value, step, text in [
        (0.0, 0.0, "0"), (101325.04, 0.0, "101,325"), (101325.04, 10.0, "101,325"),
        (101325.04, 0.1, "101,325.04"), (-0.98484, 0.0152, "-0.9848"), (5.67e-14, 1e-9, "5.67e-14"),
        (8.2e11, 1e12, "8.2e11"), (1234567.0, 2.0, "1,234,567"), (1e300, 0.0, "1e300"),
    ]:  # fmt: skip
        assert short_value(value, step) == text


def test_shares_are_shown_short() -> None:
    shares = (0.0, 0.00001, 0.0004, 0.0672, 0.41, 0.9999, 1.0)
    shown = ["under 0.01%", "under 0.01%", "0.04%", "6.7%", "41%", "99%", "100%"]
    assert list(map(percent, shares)) == shown
    assert (part(0.0672), part(1.0), part(27.0)) == ("6.7%", "all", "all")
