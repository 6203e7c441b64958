"""``numtok explain`` and ``numtok schemes``: output and errors."""

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from numtok.cli.output.printing import SCHEMA
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import UsageError
from tests.cases import case
from tests.chain import csv_rows
from tests.cli.test_store_commands import process
from tests.messages import Says
from tests.shell import Shell

#: Tokens of -60.2 and their number: Table 1 of the xVal paper, with -60.2 as -6.02x10^1.
TABLE_1 = {
    "b1999": ("-602 E-1", 2),
    "bpe": ("- 6 0 . 2", 5),  # not trained
    "dice": ("E1", 1),  # from another paper
    "digits": ("- 6 0 . 2", 5),
    "fp15": ("-602E-1", 1),
    "hamming": (" ".join(["-OVERFLOW"] * 8), 8),  # only numbers in [0, 1]
    "nd": (" ".join(["-OVERFLOW"] * 4), 4),
    "numerologic": ("- { 2 . 1 : 6 0 . 2 }", 11),
    "numgpt": ("E1", 1),
    "numvalue": ("<num> - 6 0 . 2", 6),
    "p10": ("- 6 0 2 E-1", 5),
    "p1000": ("- 602 E-1", 3),
    "ud": ("- + 0 1 6 0 2 0", 8),  # from another paper
    "xval": ("[NUM]", 1),
}


def explained(numtok: Shell, *arguments: str) -> list[dict[str, object]]:
    ran = numtok("explain", "--json", *arguments)
    assert (ran.code, ran.err) == (0, "")
    told: dict[str, Any] = json.loads(ran.out)
    assert told["schema"] == SCHEMA
    return list(told["rows"])


# --- explain -----------------------------------------------------------------------------------


def test_relative_errors_of_long_numbers_and_zero(numtok: Shell) -> None:
    specs = ("--scheme", "bits", "--scheme", "digits")
    errors = [row["relative error"] for row in explained(numtok, *specs, "123456789012345678")]
    assert errors == [pytest.approx(2 / 123456789012345678), 0]
    rows = {row["scheme"]: row for row in explained(numtok, "0")}
    assert float(str(rows["nd"]["read back"])) != 0 and rows["nd"]["relative error"] is None
    assert rows["p1000"]["relative error"] == 0


def test_explain_prints_the_first_table_of_the_paper(numtok: Shell) -> None:
    rows = explained(numtok, "-60.2")
    found = {row["scheme"]: (row["tokens"], row["count"]) for row in rows}
    assert list(found) == list(SCHEMES)
    assert found | TABLE_1 == found
    read_back = {row["read back"] for row in rows if row["scheme"] in TABLE_1}
    assert read_back == {"-60.2", "-60.20000076293945", "overflow"}
    channels = {row["scheme"]: row["channel"] for row in rows if row["scheme"] in TABLE_1}
    mantissas = dict.fromkeys(("dice", "numgpt"), -6.019999980926514)
    assert channels == dict.fromkeys(TABLE_1) | mantissas | {"xval": -60.20000076293945}


@pytest.mark.parametrize(
    "number", ["-60.2", "1e400", "-1e-400", "nan", "-inf", "-0", "9" * 200, "1e-320"]
)
def test_the_table_fits_80_columns_and_loses_nothing(numtok: Shell, number: str) -> None:
    ran = numtok("explain", number)
    assert (ran.code, ran.err) == (0, "")
    title, *lines = ran.out.splitlines()
    assert title == number
    assert all(len(line) <= 80 for line in lines)
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted({name for name in names if name in SCHEMES}) == sorted(SCHEMES)


@pytest.mark.parametrize("columns", ["60", "80", "100"])
@pytest.mark.parametrize("number", ["-60.2", "602214076000000000000000", "1.5e-300"])
def test_no_number_is_folded(
    numtok: Shell, monkeypatch: pytest.MonkeyPatch, columns: str, number: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = numtok("explain", number).out
    assert all(len(line) <= int(columns) for line in out.splitlines())
    whole = {line.strip() for line in out.splitlines()}
    assert not any(re.fullmatch(r"\d", line) for line in whole)
    literal = next(row for row in explained(numtok, number) if row["scheme"] == "digits")
    assert str(literal["read back"]) in out
    assert "any float32" in numtok("schemes").out and "1e-6 to 1e10" in numtok("schemes").out


def test_schemes_of_a_fixed_range_show_a_number_in_a_stated_one(numtok: Shell) -> None:
    for number, stated in (("-60.2", "-100 to 100"), ("2500", "-10,000 to 10,000")):
        out = numtok("explain", number, "--scheme", "nd", "--scheme", "chronos").out
        assert "OVERFLOW" not in out and stated in " ".join(out.split())
    out = numtok("explain", "2.500,5", "--numbers", "eu", "--scheme", "nd").out
    assert "-10,000 to 10,000" in " ".join(out.split()) and "2501" in out
    out = numtok("explain", "0", "--scheme", "nd").out
    assert "0.01" in out and "%" not in out  # an error relative to 0 is undefined
    # JSON output shows the scheme without an example range.
    assert explained(numtok, "-60.2", "--scheme", "nd")[0]["read back"] == "overflow"


def test_value_schemes_show_what_the_model_sees(numtok: Shell) -> None:
    for scheme, seen in (
        ("xval", "value -60.2"),
        ("bits", "bits 1 10000000100"),
        ("base10", "- 6.02 E1"),
        ("numgpt", "mantissa -6.02"),
        ("dice", "angle -1.08°"),
        ("fone", "angles 72°, 7°, 217°"),
    ):
        line = numtok("explain", "-60.2", "--scheme", scheme).out.splitlines()[3]
        assert seen in line, scheme


def test_a_column_that_no_row_needs_is_left_out_of_the_table(numtok: Shell) -> None:
    header = numtok("explain", "5", "--scheme", "p10").out.splitlines()[1]
    assert " ".join(header.split()) == "scheme count the model sees reads back rel. error"
    header = numtok("explain", "1e400", "--scheme", "xval").out.splitlines()[1]
    assert "error" not in header


def test_a_number_can_be_anything(numtok: Shell) -> None:
    for number, tokens, back, error, note in (
        ("-60.2", "- 602 E-1", "-60.2", 0.0, ""),
        ("-5", "- 500 E-2", "-5.0", 0.0, ""),
        ("-.5", "- 500 E-3", "-0.5", 0.0, ""),
        ("-1e-3", "- 100 E-5", "-0.001", 0.0, ""),
        ("+7", "+ 700 E-2", "7.0", 0.0, ""),
        ("\u22125", "- 500 E-2", "-5.0", 0.0, ""),
        ("-0.1435", "- 144 E-3", "-0.144", 0.0005 / 0.1435, ""),
        ("9.996", "+ 100 E-1", "10.0", 0.004 / 9.996, ""),
        ("0", "ZERO ZERO ZERO", "0.0", 0.0, "zero"),
        ("-0", "ZERO ZERO ZERO", "0.0", 0.0, "negative zero"),
        ("nan", "NAN NAN NAN", "nan", None, "nan"),
        ("inf", "+INF +INF +INF", "inf", None, "positive infinity"),
        ("-inf", "-INF -INF -INF", "-inf", None, "negative infinity"),
        ("1e10", "+OVERFLOW +OVERFLOW +OVERFLOW", "overflow", None, "positive overflow"),
        ("-1e-7", "-UNDERFLOW -UNDERFLOW -UNDERFLOW", "underflow", None, "negative underflow"),
        ("1e+99999999999", "+OVERFLOW +OVERFLOW +OVERFLOW", "overflow", None, "positive overflow"),
    ):
        with case(number):
            (row,) = explained(numtok, number, "--scheme", "p1000")
            off = row.pop("relative error")
            assert off == (None if error is None else pytest.approx(error, rel=1e-6))
            same = {"scheme": "p1000", "channel": None, "count": 3}
            assert row == same | {"tokens": tokens, "read back": back, "note": note}


def test_options_can_stand_on_either_side_of_a_negative_number(numtok: Shell) -> None:
    before = numtok("explain", "--scheme", "p10", "-60.2")
    after = numtok("explain", "-60.2", "--scheme", "p10")
    apart = numtok("explain", "--scheme", "p10", "--", "-60.2")
    assert (before.code, before.out) == (0, after.out)
    assert apart == after
    # Schemes are listed in the given order.
    rows = explained(numtok, "1e9", "--scheme", "p1000,exponents=-10..10", "--scheme", "fp15")
    assert [row["scheme"] for row in rows] == ["p1000,exponents=-10..10", "fp15"]
    assert [row["tokens"] for row in rows] == ["+ 100 E+7", "+100E+7"]


def test_the_numeral_policy_decides_what_a_number_is(numtok: Shell) -> None:
    for number, policy, tokens in (
        ("1,234", "thousands", "1 , 2 3 4"),
        ("23%", "percent", "2 3 %"),
        ("-5", "xval", "- 5"),
    ):
        (row,) = explained(numtok, number, "--numbers", policy, "--scheme", "digits")
        assert row["tokens"] == tokens


def test_only_people_are_told_a_rounded_value_in_short(numtok: Shell) -> None:
    (row,) = explained(numtok, "123.456", "--scheme", "xval")
    assert row["read back"] == "123.45600128173828"
    assert row["relative error"] == pytest.approx(1.28173828e-6 / 123.456)
    line = numtok("explain", "123.456", "--scheme", "xval").out.splitlines()[3]
    assert line.split()[3:5] == ["value", "123.456"]
    assert line.split()[-2:] == ["123.456001", "<0.0001%"]
    long = "0.12345678901234567"
    assert long in numtok("explain", long, "--scheme", "digits").out
    assert "0.30000000000000004" in numtok("explain", "0.30000000000000004", "--scheme", "bits").out


def test_explain_prints_csv_and_md(numtok: Shell) -> None:
    rows = csv_rows(numtok("explain", "-60.2", "--format", "csv").out)
    found = {row["scheme"]: (row["tokens"], int(row["count"])) for row in rows}
    assert found | TABLE_1 == found
    ran = numtok("explain", "-60.2", "--format", "md", "--scheme", "xval")
    assert ran.out.splitlines()[2].startswith("| xval | [NUM] | -60.2")


RULES, THOUSANDS = "docs/reference/numbers.md", "--numbers thousands"


def test_what_is_not_one_number_is_one_line(numtok: Shell, says: Says) -> None:
    for number, reads, remedy, *policy in (
        ("five", "no number", RULES),
        ("", "no number", RULES),
        ("1 2", "1, 2", RULES),
        ("5 ", "5", RULES),
        ("5.", "5", RULES),
        ("1.2.3", "no number", RULES),
        ("1,234", "1, 234", THOUSANDS),
        ("x5", "no number", RULES),
        ("é5", "no number", RULES),
        ("NaN", "no number", RULES),
        ("--5", "-5", RULES),
        ("+5", "5", RULES, "--numbers", "xval"),
    ):
        with case(number):
            told = f"numtok: {number!r} ", "is not exactly one number: "
            reading = f"--numbers {policy[-1] if policy else 'default'} reads {reads} in it. "
            says.refused(numtok("explain", number, *policy), 2, *told, reading, remedy)
    # Bytes that are not UTF-8 are not a number.
    says.refused(numtok("explain", os.fsdecode(b"5\xff")), 2, r"numtok: '5\udcff' ")


def test_what_cannot_be_explained_is_one_line(numtok: Shell, says: Says) -> None:
    for option, given, *told in (
        ("--scheme", "p100", "'p100'. Did you mean 'p1000'?"),
        ("--scheme", "p10,exponent=0..4", "'p10' 'exponent'", "'exponents'? Known: digits, "),
        ("--scheme", "p10,exponents=7..-8", "interval 7..-8", "must not exceed the last"),
        ("--scheme", "", "--scheme must not be empty (got '')"),
        ("--numbers", "python", "unknown numeral policy 'python'", "'thousands'"),
        ("--numbers", "default,percent=true", "percent is yes or no", "'true'"),
        ("--numbers", "default:5", "'default:5'", "'default'"),
    ):
        with case(given):
            says.refused(numtok("explain", "5", option, given), UsageError.exit_code, *told)


def test_explain_used_wrongly_is_one_line(numtok: Shell, says: Says) -> None:
    for words, told in (
        ("1 2", "(2)"),
        ("-1 -2", "(-2)"),
        ("1 --schem p10", "(--schem p10)"),
        ("1 --format xml", "--format must be table, json, csv or md (got 'xml')"),
    ):
        with case(words):
            says.refused(numtok("explain", *words.split()), 2, told, "`numtok explain --help`")


def test_explain_runs_as_a_program(tmp_path: Path) -> None:
    with process("explain", "-60.2", "--scheme", "p1000", cwd=tmp_path, COLUMNS="80") as running:
        out, err = running.communicate()
    assert (running.returncode, err) == (0, b"")
    assert b"- 602 E-1" in out
    assert list(tmp_path.iterdir()) == []


# --- schemes -----------------------------------------------------------------------------------


def test_schemes_prints_what_the_paper_counts(numtok: Shell) -> None:
    rows = {row["scheme"]: row for row in json.loads(numtok("schemes", "--json").out)["rows"]}
    assert list(rows) == list(SCHEMES)
    assert {name: str(rows[name]["vocabulary"]).split(" + ")[0] for name in TABLE_1} == {
        "b1999": "1816", "bpe": "learnt", "dice": "23", "digits": "18", "fp15": "28800",
        "hamming": "2", "nd": "10", "numerologic": "21", "numgpt": "23", "numvalue": "19",
        "p10": "28", "p1000": "918", "ud": "12", "xval": "1",
    }  # fmt: skip
    varying = dict.fromkeys(("bpe", "digits", "numerologic", "numvalue"), "varies")
    counts = {name: count for name, (_, count) in TABLE_1.items()} | varying
    assert {name: rows[name]["tokens"] for name in TABLE_1} == counts
    for name in ("b1999", "fp15", "p10", "p1000"):
        assert (rows[name]["magnitudes"], rows[name]["error"]) == ("1e-6..9.99e9", "0.005")
        assert rows[name]["source"] == "xVal, Table 1"
    assert rows["digits"]["error"] == "0"
    assert (rows["ud"]["magnitudes"], rows["ud"]["error"]) == ("1e-99..1e100", "0.0005")
    assert (rows["nd"]["magnitudes"], rows["nd"]["error"]) == ("0..1", "±5e-5")
    assert rows["fone"]["error"] == "±5e-6"


def test_the_table_of_schemes_fits_80_columns(numtok: Shell) -> None:
    ran = numtok("schemes")
    assert (ran.code, ran.err) == (0, "")
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "p1000" in ran.out and "- 602 E-1" in ran.out and "3 digits" in ran.out
    names = [line.split()[0] for line in ran.out.splitlines() if line.startswith("  ")]
    assert sorted({name for name in names if name in SCHEMES}) == sorted(SCHEMES)
    assert numtok("schemes", "--names").out.split() == list(SCHEMES)


def test_check_checks_a_scheme(numtok: Shell, says: Says) -> None:
    ran = numtok("check", "scheme", "xval", "--json")
    assert (ran.code, ran.err) == (0, "")
    rows = json.loads(ran.out)["rows"]
    assert len(rows) > 5
    assert {(row["scheme"], row["result"]) for row in rows} == {("xval", "ok")}
    told = "numtok: unknown scheme 'p11'. Did you mean 'p10'?"
    says.refused(numtok("check", "scheme", "p11"), 2, *told)


@pytest.mark.parametrize("name", [*SCHEMES, "p10,digits=5"])
def test_schemes_prints_the_page_of_one(numtok: Shell, name: str) -> None:
    ran = numtok("schemes", name)
    assert (ran.code, ran.err) == (0, "")
    for fact in ("example", "precision", "embedder", "head", f"--scheme {name}"):
        assert fact in ran.out
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    page = json.loads(numtok("schemes", name, "--json").out)
    assert page["scheme"] == name and page["embedder"] in ran.out


def test_an_unknown_scheme_has_no_page(numtok: Shell, says: Says) -> None:
    says.refused(numtok("schemes", "p11"), 2, "'p11'", "'p10'")


# --- explain --text ------------------------------------------------------------------------------


def test_a_text_is_shown_with_its_numbers_and_what_is_not_read(numtok: Shell) -> None:
    ran = numtok("explain", "--text", "flow 1,250.5 at T40 and 7%", "--numbers", "thousands")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "flow «1,250.5» at T40 and «7»%"
    assert ["1,250.5", "1250.5", "5-12", "thousands"] in [line.split() for line in lines]
    assert any(line.startswith("T40 ") and "follow a letter" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert "no digits" in numtok("explain", "--text", "none").out


def test_lines_of_standard_input_are_texts(numtok: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = io.TextIOWrapper(io.BytesIO(b"a 1\nb x2\xff\n\n3.50"))
    monkeypatch.setattr("sys.stdin", lines)
    rows = csv_rows(numtok("explain", "--text", "-", "--format", "csv").out)
    assert [list(row.values())[:6] for row in rows] == [
        ["0", "number", "1", "1.0", "2", "3"],
        ["1", "unread", "x2", "", "2", "4"],
        ["3", "number", "3.50", "3.5", "0", "4"],
    ]
    assert [row["reason"] for row in rows] == ["", "the digits follow a letter", ""]
    shown = json.loads(numtok("explain", "--text", "7% x1", "--numbers", "percent", "--json").out)
    (text,) = shown["texts"]
    assert text["numbers"] == [
        {"literal": "7%", "value": 0.07, "start": 0, "end": 2, "flags": ["percent"]}
    ]
    assert [word["text"] for word in text["unread"]] == ["x1"]


def test_a_number_or_a_text_is_explained(numtok: Shell, says: Says) -> None:
    says.refused(numtok("explain"), 2, "a number", "--text")
    says.refused(numtok("explain", "3", "--text", "a"), 2, "--text", "a number")
    says.refused(numtok("explain", "--text", "a", "--scheme", "p10"), 2, "--text", "--scheme")
