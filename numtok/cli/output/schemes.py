"""Descriptions of schemes: their kind, what the model sees, range and precision.

``numtok schemes`` prints a table of all schemes or the page of one; ``numtok explain`` prints how
each scheme writes a number.
"""

import math
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from numtok.analysis.profiling.short_values import short_value
from numtok.cli._options import COLUMNS, Kind
from numtok.cli.output.figures import Formatted, share
from numtok.cli.output.printing import (
    Format,
    Part,
    Sheet,
    Verbatim,
    print_parts,
    print_table,
    width,
)
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme, Scheme, needs_sample
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import name_in
from numtok.stages.explain import ExplainedNumber, relative_error, run

EXAMPLE = "-60.2"
#: Kinds of schemes, in the order in which they are listed.
IDEAS = (
    "digits as text, of any length",
    "sign, digits and exponent, rounded",
    "a fixed range in equal steps",
    "one token plus a value",
    "needs settings",
)
_LEAST_RANGE = 100.0  # smallest bound of the example range
_SHOWN_TOKENS = 16  # tokens of a number; longer lists are abbreviated
_SHOWN_DIGITS = 26  # characters of a literal
_FLOATS = {  # largest value of each type
    float(np.finfo(np.float64).max): "any float64",
    float(np.finfo(np.float32).max): "any float32",
}


def idea_of(scheme: Scheme) -> str:
    """Return the kind of a scheme, one of :data:`IDEAS`."""
    if isinstance(scheme, ChannelScheme):
        return IDEAS[3]
    if scheme.unit_interval:
        return IDEAS[2]
    return IDEAS[0] if scheme.tokens_per_number is None else IDEAS[1]


def range_of(scheme: Scheme) -> str:
    """Return the magnitudes that a scheme can represent, as text: ``1e-6 to 9.99e9``."""
    low, high = scheme.bounds
    if math.isinf(high):
        return "any"
    if name := _FLOATS.get(high):
        return name
    return f"{compact_number(low)} to {_highest(high)}"


def _highest(bound: float) -> str:
    """Format an upper bound, rounded up if all of its digits are 9."""
    exponent = math.ceil(math.log10(bound))
    above = float(f"1e{exponent}")  # infinite for the largest floats
    return compact_number(above if bound >= 0.99 * above else bound)


def precision_of(scheme: Scheme) -> str:
    """Return the precision of a scheme as text: ``3 digits``, ``exact``, ``±5e-6``."""
    error = scheme.error
    if not error.size:
        return "exact"
    if scheme.unit_interval:
        return f"±{share(error.size)}"
    if error.absolute:
        return f"±{compact_number(error.size)}"
    return f"{math.floor(-math.log10(2 * error.size) + 1e-9) + 1} digits"


def compact_number(number: float) -> str:
    """Format a number with three significant digits: ``1e-6``, ``9.99e9``, ``0.005``."""
    mantissa, _, exponent = f"{number:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def paper_of(source: str) -> str:
    """Return the name of the first paper in a ``source``, without its section and address."""
    return re.split("[,;(]", source)[0].strip()


# --- numtok schemes ----------------------------------------------------------------------------


def schemes_parts() -> Iterator[Part]:
    """Yield a table of all schemes, grouped by kind, then sentences that explain the columns."""
    rows: dict[str, list[list[object]]] = {idea: [] for idea in IDEAS}
    needed = {name: SCHEMES.required(name) for name in SCHEMES}
    usable = [name for name, needs in needed.items() if not needs]
    for name, written in zip(usable, explained(EXAMPLE, usable)[0], strict=True):
        scheme = SCHEMES.build(name)
        tokens = scheme.tokens_per_number
        count = "varies" if tokens is None else Formatted(str(tokens), tokens)
        paper = paper_of(scheme.source).removesuffix(" Regression")
        row: list[object] = [f"  {name}", _tokens(written.tokens), count, range_of(scheme)]
        row += [precision_of(scheme), paper.replace("language models", "LLMs")]
        rows[idea_of(scheme)].append(row)
    for name, needs in needed.items():
        if needs:
            rows[IDEAS[-1]].append([f"  {name}", f"needs {', '.join(needs)}", *[None] * 4])
    listed = _under_ideas(rows, 6)
    columns = ("scheme", f"{EXAMPLE} as tokens", "count", "range", "precision", "paper")
    yield Sheet("", columns, listed, words=columns[-1:], in_lists=True)
    yield [
        "count: tokens per number",
        "range: magnitudes besides 0, which every scheme represents",
        "precision: significant digits; ±: absolute error; ±%: error in percent of the range",
        "Fixed-range schemes first scale the data to [0, 1]; the example uses -100 to 100.",
    ]


def _under_ideas(rows: dict[str, list[list[object]]], width: int) -> list[list[object]]:
    """Return the rows of each kind of scheme below a heading."""
    listed: list[list[object]] = []
    for idea, own in rows.items():
        if own:
            listed += [[idea, *[""] * (width - 1)], *own]
    return listed


def scheme_parts(spec: str) -> Iterator[Part]:
    """Yield the page of one scheme: its description, an example, its settings and defaults."""
    scheme = scheme_of(spec)
    kind = Kind("schemes", name_in(spec))
    yield [f"{spec}: {idea_of(scheme)}"]
    room = width(sys.stdout)
    for paragraph in kind.text.split("\n\n"):
        yield Verbatim(textwrap.wrap(" ".join(paragraph.split()), room))
    (written,), example_range = explained(EXAMPLE, [spec])
    embedder, head = scheme.parts
    extras = len(scheme.vocabulary()) - scheme.paper_vocabulary_size
    words = "from data" if needs_sample(scheme) else f"{scheme.paper_vocabulary_size:,}"
    per_number = scheme.tokens_per_number
    rows = [
        ("example", f"{EXAMPLE} -> {_tokens(written.tokens)}"),
        ("model sees", what_model_sees(scheme, written) or "the tokens"),
        ("reads back", _read_back(scheme, written)),
        ("tokens per number", "varies" if per_number is None else f"{per_number}"),
        ("vocabulary", f"{words} + {extras} for NaN, infinities and numbers out of range"),
        ("range", range_of(scheme)),
        ("precision", precision_of(scheme)),
        ("embedder", embedder),
        ("head", head),
        ("normalization", scheme.defaults.normalizer),
        ("source", scheme.source),
    ]
    yield Sheet("", ("", ""), rows, words=None, in_lists=True)
    if example_range:
        yield [f"The example has a range of {example_range}."]
    if settings := list(kind.rows()):
        yield Sheet("settings", COLUMNS, settings, words=COLUMNS, in_lists=True)
    yield Verbatim([f"next: numtok encode --scheme {spec} DATA"])


def example_of(spec: str) -> str:
    """Return :data:`EXAMPLE` as a scheme writes it: tokens, and a value if it has a channel."""
    (written,), _ = explained(EXAMPLE, [spec])
    value = "" if written.channel is None else f" and {_channel(written)}"
    return f"{_tokens(written.tokens)}{value}"


# --- numtok explain ----------------------------------------------------------------------------

_EXPLAIN_COLUMNS = ("scheme", "tokens", "channel", "count", "read back", "relative error", "note")


def explained(number: str, specs: Sequence[str]) -> tuple[list[ExplainedNumber], str]:
    """Return a number as written by each scheme, and the example range (see
    :func:`in_example_range`)."""
    return in_example_range(run(number, tuple(specs), NumeralPolicy()))


def in_example_range(written: Sequence[ExplainedNumber]) -> tuple[list[ExplainedNumber], str]:
    """Return ``written``, recomputed for schemes that need a data range, and an example range.

    Schemes that represent only 0 to 1 need the range of the data. A single number does not define
    one, so an example range is used instead. It is returned as text; the text is empty if no scheme
    needs a range.
    """
    shown, stated = [], ""
    for item in written:
        most = _range_of(item.value)
        if scheme_of(item.scheme).unit_interval and math.isfinite(item.value + 2 * most):
            scaled = (item.value + most) / (2 * most)
            (own,) = run(repr(scaled), (item.scheme,), NumeralPolicy())
            item = _scaled_back(item, own, most)
            stated = f"{short_value(-most)} to {short_value(most)}"
        shown.append(item)
    return shown, stated


def _range_of(value: float) -> float:
    """Return the bound of the example range; infinite if the value is."""
    most = _LEAST_RANGE
    while most < abs(value):
        most *= 10
    return most


def _scaled_back(item: ExplainedNumber, own: ExplainedNumber, most: float) -> ExplainedNumber:
    back = float(own.decoded) * 2 * most - most
    error = relative_error(Decimal(item.value), Decimal(back))
    return replace(item, tokens=own.tokens, decoded=f"{back:.6g}", error=error, note="")


def print_explained(number: str, written: Sequence[ExplainedNumber], format: Format) -> None:
    """Print how schemes write a number: one table grouped by kind of scheme, or one row per scheme
    in CSV, JSON and Markdown."""
    if format is Format.TABLE:
        print_parts(explain_parts(number, written))
        return
    rows = []
    for one in written:
        read_back = (one.decoded, one.error, one.note)
        rows.append((one.scheme, " ".join(one.tokens), one.channel, len(one.tokens), *read_back))
    print_table(number, _EXPLAIN_COLUMNS, rows, format)


def explain_parts(number: str, written: Sequence[ExplainedNumber]) -> Iterator[Part]:
    """Yield a table that shows how each scheme writes a number, grouped by kind of scheme, then
    notes."""
    written, example_range = in_example_range(written)
    rows: dict[str, list[list[object]]] = {idea: [] for idea in IDEAS}
    ideas = [idea_of(scheme_of(item.scheme)) for item in written]
    indent = "  " * (len(set(ideas)) > 1)
    unfitted = []
    for item, idea in zip(written, ideas, strict=True):
        scheme = scheme_of(item.scheme)
        if needs_sample(scheme):
            unfitted.append(item.scheme)
        sees = " ".join(filter(None, (_tokens(item.tokens), what_model_sees(scheme, item))))
        row: list[object] = [f"{indent}{item.scheme}", len(item.tokens), sees]
        rows[idea].append([*row, _read_back(scheme, item), _error(item)])
    listed = _under_ideas(rows, 5) if indent else [row for own in rows.values() for row in own]
    columns = ("scheme", "count", "the model sees", "reads back", "rel. error")
    sheet = Sheet(number, columns, listed, words=columns[2:3], in_lists=True)
    yield sheet.without_empty()
    remarks = []
    if example_range:
        remarks.append(
            "Fixed-range schemes first scale the data to [0, 1]; here the range is "
            f"{example_range}."
        )
    if unfitted:
        remarks.append(f"{', '.join(unfitted)} is fitted to data; here it has no merges.")
    yield remarks


def what_model_sees(scheme: Scheme, item: ExplainedNumber) -> str:
    """Return, as text, the value that the model receives along with the token, in the form that the
    embedder uses.

    The result is an empty string if the model receives only tokens.
    """
    if item.channel is None:
        return ""
    value, embedder = item.channel, name_in(scheme.parts[0])
    if item.tokens[0] != "[NUM]" and embedder not in ("numgpt", "dice"):
        return ""  # a special number has a token of its own
    if embedder == "bits":
        bits = f"{int(np.float64(value).view(np.uint64)):064b}"
        return f"bits {bits[0]} {bits[1:12]} {bits[12:20]}..."
    if embedder == "base10":
        digits = max(len(Decimal(repr(value)).normalize().as_tuple().digits), 1)
        mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
        return f"{'-' if value < 0 else '+'} {mantissa} E{int(exponent)}"
    if embedder == "fone":
        turns = [360 * math.fmod(abs(value), period) / period for period in (1, 10, 100)]
        return f"angles {', '.join(f'{turn:.0f}°' for turn in turns)} (periods 1, 10, 100)"
    if embedder == "numgpt":
        special = re.fullmatch(r"E-?\d+", item.tokens[0]) is None
        return "" if special else f"mantissa {_channel(item)}"
    if embedder == "dice":
        low, high = scheme.range.low, scheme.range.high  # type: ignore[attr-defined]
        if not (matched := re.fullmatch(r"E(-?\d+)", item.tokens[0])):
            return ""
        angle = 180 * value * 10.0 ** int(matched[1]) / (high - low)
        return f"angle {compact_number(angle)}° (180° = {high - low:,.0f})"
    scaled = "" if scheme.defaults.normalizer == "none" else " before scaling"
    return f"value {_channel(item)}{scaled}"


def _channel(item: ExplainedNumber) -> str:
    assert item.channel is not None
    return repr(item.channel) if item.exact else compact_float32(item.channel)


def compact_float32(value: float) -> str:
    """Return the shortest text that identifies a float32."""
    return str(np.float32(value)).replace("e+", "e")


def _tokens(tokens: tuple[str, ...]) -> str:
    """Join tokens; one token that is repeated is shown once, and long numbers are abbreviated."""
    if len(tokens) > 1 and len(set(tokens)) == 1 and not tokens[0].isdigit():
        return f"{tokens[0]}, {len(tokens)} times"
    if len(tokens) > _SHOWN_TOKENS:
        return " ".join((*tokens[: _SHOWN_TOKENS - 6], "...", *tokens[-3:]))
    return " ".join(tokens)


def _read_back(scheme: Scheme, item: ExplainedNumber) -> str:
    low, high = scheme.bounds
    if item.decoded == "overflow":
        return "too large" if math.isinf(high) else f"too large (max {_highest(high)})"
    if item.decoded == "underflow":
        return f"too small (min {compact_number(low)})"
    literal = item.decoded
    if item.error and not item.exact and len(literal) > 12:
        literal = f"{float(literal):.9g}"
    literal = literal.replace("e+", "e")
    if len(literal) > _SHOWN_DIGITS:
        count = sum(char.isdigit() for char in literal)
        return f"{literal[:12]}...{literal[-4:]} ({count} digits)"
    return literal


def _error(item: ExplainedNumber) -> Formatted | None:
    if item.error is None:
        return None
    if not item.error:
        return Formatted("0", 0.0)
    if item.error < 1e-6:
        return Formatted("<0.0001%", item.error)
    return share(item.error)
