"""Schemes, compared with the paper and with decimal arithmetic; spec strings; the registry."""

import subprocess
import sys
from decimal import ROUND_HALF_EVEN, Context, Decimal
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from numtok.encoding.grid import GridScheme
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.encoding.schemes._radix import compose
from numtok.encoding.schemes.base import SCHEMES, Failure, Outcome, Scheme, names_of
from numtok.encoding.schemes.dice import DiceScheme
from numtok.encoding.schemes.fone import FoneScheme
from numtok.encoding.schemes.p10 import P10
from numtok.encoding.schemes.p1000 import P1000
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.numerals.column import Numerals
from numtok.plugins import add_plugin_folders, plugin_folders
from numtok.registry import name_of, parse_spec, settings_of, spec_of
from numtok.setting_values import Interval, Range
from tests.cases import each
from tests.known import unlisted
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[3]


def written(scheme: Scheme, literal: str) -> list[str]:
    """Return the tokens of one number."""
    names = scheme.vocabulary()
    return [names[token] for token in scheme.encode(Numerals.of_literals([literal])).tokens]


def read_back(scheme: Scheme, literal: str) -> str:
    """Return the decoded literal of one encoded number, or the name of its failure."""
    encoded = scheme.encode(Numerals.of_literals([literal]))
    decoded = scheme.decode(encoded.tokens, encoded.lengths, encoded.channel)
    failure = Failure(decoded.failures[0])
    return failure.name.lower() if failure else decoded.literal(0)


# --- Table 1 of the xVal paper -----------------------------------------------------------------

TABLE_1 = [
    ("p10", 28, ["-", "6", "0", "2", "E-1"]),
    ("p1000", 918, ["-", "602", "E-1"]),
    ("b1999", 1816, ["-602", "E-1"]),
    ("fp15", 28800, ["-602E-1"]),
    ("xval", 1, ["[NUM]"]),
]


@each(("name", "counted", "tokens"), TABLE_1)
def test_table_1_of_xval_is_reproduced(name: str, counted: int, tokens: list[str]) -> None:
    scheme = SCHEMES.build(name)
    assert scheme.paper_vocabulary_size == counted
    assert scheme.tokens_per_number == len(tokens)
    assert written(scheme, "-6.02e1") == tokens


def test_the_declared_extras_come_after_the_counted_tokens() -> None:
    scheme = SCHEMES.build("p1000")
    extras = scheme.vocabulary()[scheme.paper_vocabulary_size :]
    signed = ("INF", "UNDERFLOW", "OVERFLOW")
    assert extras == ("ZERO", "NAN", *(f"{sign}{name}" for name in signed for sign in "+-"))


@each("name", ["p10", "p1000", "b1999", "fp15"])
def test_the_default_range_is_that_of_the_paper(name: str) -> None:
    assert SCHEMES.build(name).bounds == (1e-6, 9.99e9)


LOSSES = [
    ("p1000", "9.995e9", "overflow"),  # rounds up beyond the last exponent
    ("p1000", "9.994e9", "9990000000.0"),
    ("p1000", "9.994e-7", "underflow"),
    ("p1000", "9.995e-7", "1e-06"),
    ("p1000", "1e400", "overflow"),
    ("p1000", "-1e-400", "underflow"),
    ("p1000", "-0.0", "0.0"),
    ("p1000", "nan", "nan"),
    ("p1000", "-inf", "-inf"),
    ("xval", "-0.0", "-0.0"),
    ("xval", "3.5e38", "overflow"),
    ("xval", "1e-40", "underflow"),
    ("digits", "-0.0", "-0.0"),
    ("digits", "1e-400", "1e-400"),
    ("digits", "-\u0031,234.50%", "-1,234.50%"),
]


@each(("name", "literal", "expected"), LOSSES)
def test_what_cannot_be_written_is_named(name: str, literal: str, expected: str) -> None:
    assert read_back(SCHEMES.build(name), literal) == expected


def test_outcomes_are_counted_by_name() -> None:
    literals = ["0", "-0", "1", "1e400", "-1e-9", "nan"]
    outcomes = SCHEMES.build("p10").encode(Numerals.of_literals(literals)).outcomes
    assert names_of(outcomes) == {
        "zero": 1,
        "negative_zero": 1,
        "nan": 1,
        "negative_underflow": 1,
        "positive_overflow": 1,
    }


@each("name", ["xval", "p1000", "p10,exponents=-300..300"])
def test_normalised_values_beyond_float64_are_losses_and_nothing_else(name: str) -> None:
    scheme = SCHEMES.build(name)
    numerals = Numerals.of_literals(["1e300", "-1e300", "1e400", "-1e-400", "inf", "2"])
    values = np.array([np.inf, -np.inf, np.inf, -0.0, np.inf, 2.0])
    assert scheme.encode(numerals.with_values(values)).outcomes.tolist() == [
        Outcome.POSITIVE_OVERFLOW,
        Outcome.NEGATIVE_OVERFLOW,
        Outcome.POSITIVE_OVERFLOW,
        Outcome.NEGATIVE_UNDERFLOW,
        Outcome.POSITIVE_INFINITY,
        Outcome.NUMBER,
    ]


# --- against decimal arithmetic ----------------------------------------------------------------

literals = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{whole}{fraction}{exponent}",
    st.sampled_from(["", "-", "+", "\u2212"]),
    st.text("0123456789", min_size=1, max_size=20),
    st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=20).map(".{}".format)),
    st.one_of(st.just(""), st.integers(-30, 30).map("e{}".format)),
)
ranges = st.tuples(st.integers(-30, 20), st.integers(0, 25)).map(
    lambda pair: Interval(pair[0], pair[0] + pair[1])
)


def expected_tokens(literal: str, digits: int, exponents: Interval) -> list[str]:
    """Return the tokens of P10, computed with Python's decimal module."""
    exact = Decimal(literal.replace("\u2212", "-"))
    sign = "-" if exact.is_signed() else "+"
    if exact == 0:
        return ["ZERO"] * (digits + 2)
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(exact)
    exponent = rounded.adjusted() - digits + 1
    if exponent not in exponents:
        name = "UNDERFLOW" if exponent < exponents.first else "OVERFLOW"
        return [f"{sign}{name}"] * (digits + 2)
    mantissa = str(int(abs(rounded).scaleb(-exponent)))
    return [sign, *mantissa, f"E{exponent:+d}"]


def check_p10(literal: str, digits: int, exponents: Interval) -> None:
    scheme = P10(digits, exponents)
    tokens = expected_tokens(literal, digits, exponents)
    assert written(scheme, literal) == tokens
    if tokens[0] in "+-":
        value = float(f"{tokens[0]}{''.join(tokens[1:-1])}{tokens[-1]}")
        assert read_back(scheme, literal) == repr(value)
    else:
        name = tokens[0].lstrip("+-")
        assert read_back(scheme, literal) == {"ZERO": "0.0"}.get(name, name.lower())


@given(literals, st.integers(1, 8), ranges)
def test_p10_rounds_as_the_decimal_module_does(
    literal: str, digits: int, exponents: Interval
) -> None:
    check_p10(literal, digits, exponents)


@given(st.integers(0, 10**8 - 1), st.integers(1, 7), st.integers(-12, 12))
def test_ties_go_to_the_even_digit(mantissa: int, digits: int, exponent: int) -> None:
    kept = str(mantissa)[:digits].ljust(digits, "0")
    assume(kept[0] != "0")
    check_p10(f"-{kept}5e{exponent}", digits, Interval(-20, 20))


@given(literals, ranges)
def test_the_three_digit_schemes_say_the_same_in_fewer_tokens(
    literal: str, exponents: Interval
) -> None:
    spelt = "".join(written(P10(3, exponents), literal))
    for name in ("p1000", "b1999", "fp15"):
        scheme = SCHEMES.build(f"{name},exponents={exponents}")
        tokens = written(scheme, literal)
        if len(set(tokens)) == 1 and not tokens[0][-1].isdigit():
            assert spelt == tokens[0] * 5
        else:
            assert "".join(tokens) == spelt


@given(literals)
def test_digits_gives_every_literal_back_as_written(literal: str) -> None:
    scheme = SCHEMES.build("digits")
    assert written(scheme, literal) == list(literal)
    assert read_back(scheme, literal) == literal


@given(st.floats(width=32, allow_subnormal=False))
def test_xval_keeps_every_float32(value: float) -> None:
    assert read_back(SCHEMES.build("xval"), repr(value)) == repr(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_xval_reads_back_the_nearest_float32(value: float) -> None:
    scheme = SCHEMES.build("xval")
    assume(scheme.bounds.low <= abs(value) <= scheme.bounds.high)
    assert read_back(scheme, repr(value)) == repr(float(np.float32(value)))


@given(st.integers(1, 10**15 - 1), st.integers(-322, 293), st.booleans())
def test_a_mantissa_and_an_exponent_make_the_nearest_float(
    mantissa: int, exponent: int, negative: bool
) -> None:
    value = compose(np.array([negative]), np.array([mantissa]), np.array([exponent]))[0]
    assert value == float(f"{'-' * negative}{mantissa}E{exponent}")


def test_the_intervals_of_a_small_scheme_cover_the_line_without_overlap() -> None:
    scheme = SCHEMES.build("p10,digits=2,exponents=-1..0")
    assert isinstance(scheme, GridScheme)
    ordinary = list(product(*(ids.tolist() for ids in scheme.ids)))
    extras = [
        (token,) * 4 for token in range(scheme.paper_vocabulary_size, len(scheme.vocabulary()))
    ]
    intervals = [scheme.interval(tokens) for tokens in ordinary + extras]
    proper = sorted(one for one in intervals if one.low < one.high)
    assert proper[0].low == -np.inf
    assert proper[-1].high == np.inf
    assert all(one.high == other.low for one, other in pairwise(proper))


# --- spec strings ------------------------------------------------------------------------------


@each(
    ("spec", "expected"),
    [
        ("p10", ("p10", None, {})),
        ("words:4096", ("words", "4096", {})),
        ("words:4096,lower=no", ("words", "4096", {"lower": "no"})),
        ("p10,digits=5,exponents=-8..7", ("p10", None, {"digits": "5", "exponents": "-8..7"})),
        ("a,b=c=d", ("a", None, {"b": "c=d"})),
    ],
)
def test_a_spec_is_a_name_a_value_and_options(
    spec: str, expected: tuple[str, str | None, dict[str, str]]
) -> None:
    assert parse_spec(spec, "thing") == expected


@each(
    ("spec", "canonical"),
    [
        ("p10", "p10"),
        ("p10,digits=3", "p10"),
        ("p10,exponents=-8..7,digits=5", "p10,digits=5"),
        ("p10,exponents=+0..+3", "p10,exponents=0..3"),
        ("xval", "xval"),
    ],
)
def test_the_canonical_spec_is_the_shortest(spec: str, canonical: str) -> None:
    scheme = SCHEMES.build(spec)
    assert spec_of(scheme) == canonical
    assert SCHEMES.build(canonical) == scheme


@given(st.integers(1, 15), ranges)
def test_settings_and_spec_build_an_equal_scheme(digits: int, exponents: Interval) -> None:
    scheme = P10(digits, exponents)
    assert SCHEMES.build(spec_of(scheme)) == scheme
    assert SCHEMES.from_settings(settings_of(scheme)) == scheme


def test_settings_are_complete_and_ready_for_json() -> None:
    assert settings_of(P10(5)) == {
        "name": "p10",
        "revision": 1,
        "digest": P10.digest,
        "digits": 5,
        "exponents": "-8..7",
    }


KNOWN = ", ".join(SCHEMES)
SPEC_ERRORS = [
    ("p1001", ("'p1001'", "'p1000'")),
    ("P1000", ("'P1000'", "'p1000'")),
    ("base", ("'base'", "'base10'")),
    ("_decimal", ("'_decimal'", "Known: every scheme")),
    ("../p10", ("'../p10'", "'p10'")),
    ("p10,digit=3", ("'digit'", "'digits'")),
    ("xval,a=1", ("'a'", "Known: none")),
    ("p10,digits=three", ("p10: digits", "an integer", "got 'three'")),
    ("p10,exponents=3", ("p10: exponents", "a range like -8..7", "got '3'")),
    ("p10,exponents=3..1", ("3..1", "must not exceed the last")),
    ("p10,digits=0", ("p10: digits", "from 1 to 15", "got 0")),
    ("p10,exponents=-400..0", ("exponents", "got -400..0", "-309..305")),
    ("fp15,exponents=0..306", ("exponents", "got 0..306", "-309..305")),
    ("p10:5", ("takes no value after ':'", "'p10:5'")),
    ("p10,digits", ("digits needs a value", "digits=VALUE")),
    ("p10,digits=", ("'digits=' is not key=value", "name[:value]")),
    ("p10,digits=3,digits=4", ("'digits' twice",)),
    ("xval,on-what=3,on_what=4", ("'on-what' twice",)),
    ("", ("''", "name[:value]")),
    ("p10:", ("'p10:'", "name[:value]")),
]


@each(("spec", "parts"), SPEC_ERRORS)
def test_a_spec_that_cannot_be_used_is_refused_by_name(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with pytest.raises(UsageError) as caught:
        SCHEMES.build(spec)
    says(unlisted(caught, "scheme"), *parts)


@each(
    ("spec", "parts"),
    [
        ("words:5,size=6", ("'size' twice",)),
        ("bpe", ("'size'", "bpe,size=VALUE")),
        ("bpe:255", ("size must be from 256 to 1,000,000",)),
        ("words:-1", ("size must be from 0 to 1,000,000",)),
        ("bytes:3", ("takes no value after ':'", "'bytes:3'")),
    ],
)
def test_a_text_tokenizer_that_cannot_be_used_is_refused(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        TEXT_TOKENIZERS.build(spec)


@each(
    ("spec", "parts"),
    [
        ("scale:wide", ("limit must be a number", "'wide'")),
        ("scale:0", ("limit must be above 0 and finite",)),
        ("scale:nan", ("limit must be above 0 and finite",)),
        ("signed", ("'signed'", "'signed-log'", "Known: every normalizer")),
    ],
)
def test_a_normaliser_that_cannot_be_used_is_refused(
    spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with pytest.raises(UsageError) as caught:
        NORMALIZERS.build(spec)
    says(unlisted(caught, "normalizer"), *parts)


def test_settings_of_another_revision_are_refused(says: Says) -> None:
    with says.raises(UsageError, "revision 2", "revision 1", "encode the data again"):
        SCHEMES.from_settings({"name": "p1000", "revision": 2, "exponents": "-8..7"})


def test_settings_with_an_unknown_key_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown setting of 'p1000' 'digits'"):
        SCHEMES.from_settings(settings_of(P1000()) | {"digits": 3})


def test_an_interval_has_a_length_and_members() -> None:
    interval = Interval.parse("-8..7")
    assert (str(interval), len(interval), -8 in interval, 8 in interval) == (
        "-8..7",
        16,
        True,
        False,
    )
    with pytest.raises(ValueError, match=r"1\.\.x"):
        Interval.parse("1..x")


@each(
    ("text", "ends", "written"),
    [
        ("1e-5..5e-5", (1e-5, 5e-5), "1e-05..5e-05"),
        ("-2..0.5", (-2, 0.5), "-2..0.5"),
        ("2", (2, 2), "2"),
        ("2..2.0", (2, 2), "2"),
    ],
)
def test_a_range_is_read_and_written(text: str, ends: tuple[float, float], written: str) -> None:
    read = Range.parse(text)
    assert (read.low, read.high) == ends
    assert str(read) == written
    assert Range.parse(written) == read


@each("text", ["", "..", "1..", "..1", "a", "1..2..3"])
def test_what_is_no_range_is_not_read_as_one(text: str) -> None:
    with pytest.raises(ValueError):
        Range.parse(text)


@each("text", ["2..1", "nan..1", "1..nan"])
def test_a_range_does_not_run_backwards(text: str, says: Says) -> None:
    with says.raises(UsageError, text, "must not exceed the last"):
        Range.parse(text)


# --- the registry ------------------------------------------------------------------------------


@pytest.mark.integration
def test_a_look_up_imports_one_scheme_and_listing_none() -> None:
    program = """if True:
        import sys
        from numtok.encoding.schemes.base import SCHEMES
        loaded = lambda: sorted(m for m in sys.modules if m.startswith("numtok.encoding.schemes.")
            and "._" not in m)
        print(*SCHEMES.names())
        print(*loaded())
        SCHEMES["xval"]
        print(*loaded())
    """
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        KNOWN.replace(",", ""),
        "numtok.encoding.schemes.base",
        "numtok.encoding.schemes.base numtok.encoding.schemes.xval",
    ]


def test_a_name_is_a_file_name() -> None:
    assert [name_of(SCHEMES.build(name)) for name in SCHEMES] == list(SCHEMES.names())
    assert name_of(NORMALIZERS.build("signed-log")) == "signed-log"


SOURCE = (ROOT / "numtok/encoding/schemes/p1000.py").read_text("utf-8").replace("P1000", "Mine")


def test_a_file_in_a_plugin_folder_is_a_scheme(plugins: Path) -> None:
    (plugins / "schemes/my_own.py").write_text(SOURCE, "utf-8")
    add_plugin_folders([plugins, plugins])
    assert plugin_folders()[-1] == plugins.resolve()
    assert len(set(plugin_folders())) == len(plugin_folders())
    scheme = SCHEMES.build("my-own,exponents=0..3")
    assert "my-own" in SCHEMES.names()
    assert spec_of(scheme) == "my-own,exponents=0..3"
    assert SCHEMES.from_settings(settings_of(scheme)) == scheme
    assert written(scheme, "602") == ["+", "602", "E+0"]


def test_a_plugin_is_forgotten_with_its_folder() -> None:
    assert "my-own" not in SCHEMES.names()


def test_a_plugin_with_the_name_of_another_scheme_is_refused(plugins: Path, says: Says) -> None:
    (plugins / "schemes/p10.py").write_text(SOURCE, "utf-8")
    add_plugin_folders([plugins])
    with says.raises(UsageError, "'p10'", str(plugins.resolve() / "schemes"), "Rename"):
        SCHEMES.build("p1000")


@pytest.mark.parametrize(("classes", "count"), [("", 0), ("class A: pass\nclass B: pass\n", 2)])
def test_a_plugin_file_with_other_than_one_class_is_refused(
    plugins: Path, classes: str, count: int, says: Says
) -> None:
    file = plugins / "schemes/mine.py"
    imported = (
        "from numtok.encoding.schemes.p1000 import P1000\n\n\nclass _Private:\n    pass\n\n\n"
    )
    file.write_text(imported + classes, "utf-8")
    add_plugin_folders([plugins])
    with says.raises(UsageError, str(file), "exactly one", f"defines {count}"):
        SCHEMES.build("mine")


def test_a_setting_of_yes_or_no_is_read_and_written(plugins: Path) -> None:
    field = "    exponents: Interval = Interval(-8, 7)\n"
    assert field in SOURCE
    source = SOURCE.replace(field, f"{field}    rough: bool = False\n")
    (plugins / "schemes/mine.py").write_text(source, "utf-8")
    add_plugin_folders([plugins])
    scheme = SCHEMES.build("mine,rough=yes")
    assert spec_of(scheme) == "mine,rough=yes"
    assert SCHEMES["mine"]() != scheme
    with pytest.raises(UsageError, match=r"mine: rough must be yes or no .*'maybe'"):
        SCHEMES.build("mine,rough=maybe")


def test_a_plugin_folder_that_is_none_is_refused(tmp_path: Path, says: Says) -> None:
    before = plugin_folders()
    with says.raises(UsageError, str(tmp_path / "absent"), "[plugins] in numtok.toml"):
        add_plugin_folders([tmp_path / "absent"])
    assert plugin_folders() == before


@pytest.mark.parametrize(
    ("largest", "decimals", "spec"),
    [
        (99.5, 1, "fone,whole=2,decimals=1"),
        (100, 0, "fone,whole=3,decimals=0"),
        (0.25, 2, "fone,whole=1,decimals=2"),
        (9_999_999_999.0, 5, "fone"),
        (1e10, 5, "fone"),  # more digits than fone has
        (0.3, 17, "fone,whole=1"),  # full float64 precision: the default of five decimals
    ],
)
def test_places_suit_the_numbers_and_are_those_of_embedder_and_head(
    largest: float, decimals: int, spec: str
) -> None:
    suited = FoneScheme().suited(largest, decimals)
    assert spec_of(suited) == spec
    assert suited.parts == (spec, spec)
    assert SCHEMES.build("xval").parts == ("scaled", "scalar")


def test_the_range_of_dice_is_its_embedders_and_suits_the_numbers() -> None:
    dice = DiceScheme()
    assert dice.parts == ("dice", "numgpt") == dice.suited(0, 0).parts
    suited = dice.suited(199.5, 1)
    assert spec_of(suited) == "dice,range=-199.5..199.5"
    assert suited.parts == ("dice,range=-199.5..199.5", "numgpt")
    assert spec_of(EMBEDDERS.build(suited.parts[0])) == suited.parts[0]


def test_equal_settings_make_equal_schemes() -> None:
    assert P1000() == SCHEMES.build("p1000")
    assert hash(P1000()) == hash(SCHEMES.build("p1000"))
