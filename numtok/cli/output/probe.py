"""What ``probe`` prints: what was looked at, and its figures in words and tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from numtok.cli.output.figures import figure, number, print_figures, print_lines
from numtok.cli.output.printing import SCHEMA, Format, print_data

if TYPE_CHECKING:
    from numtok.analysis.probing.probe_files import LoadedProbe
    from numtok.analysis.probing.probe_records import (
        Along,
        Confidence,
        Embedding,
        TokenComponents,
    )
    from numtok.reports import Figure

_COLUMNS = ("figure", "value", "low", "high")
Rows = list[tuple[str, str]]
_SHOWN = 13  # points of a curve in its table


def print_probe(probed: "LoadedProbe", format: Format, to: TextIO | None = None) -> None:
    """Print one probe, on stdout by default; CSV has one row a figure, JSON the whole summary."""
    import msgspec

    from numtok.analysis.probing.probe_records import Along, Confidence, Embedding, ProbeCurves

    probe = probed.probe
    whole, figures = {"ref": probed.ref, "probe": probe}, msgspec.to_builtins(probe.found)
    if print_data(format, whole, _COLUMNS, rows=_flat("", figures), to=to, schema=SCHEMA):
        return
    print_lines(list(_head(probed)), to)
    found = probe.found
    if isinstance(found, Along):
        _print_along(found, format, to)
    elif isinstance(found, Embedding):
        if rows := _embedding(found):
            _print_pairs("after the first layer norm", rows, format, to)
    elif isinstance(found, Confidence):
        _print_confidence(found, probed, format, to)
    elif isinstance(found, ProbeCurves):
        rows = [(name, number(one)) for name, one in found.figures.items()]
        _print_pairs("figures", rows, format, to)
    else:
        _print_tokens(found, format, to)
    print_lines([f"Note: {note}" for note in probe.notes], to)


def _head(probed: "LoadedProbe") -> Iterator[str]:
    from numtok.analysis.probing.probe_records import Along, Confidence, Embedding, ProbeCurves

    probe, found = probed.probe, probed.probe.found
    yield f"probe {probed.ref}: {probe.scheme}, seed {probe.seed}"
    yield f"model {probe.model}"
    if isinstance(found, Along):
        where = f"split {found.split} of {found.data}"
        what = f"target {found.target}, {found.rows:,} predictions"
        if found.number is None:
            yield f"{where}: {what} in the order of the truth"
        else:
            which = f"number {found.number} (the first is 0)"
            yield f"{where}: {what} as {which} of row {found.row} changes"
        yield f"x from {number(found.low)} to {number(found.high)}"
    elif isinstance(found, Embedding):
        yield f"projected on {found.direction}, {found.positions:,} positions"
        yield f"x from {number(found.low)} to {number(found.high)}, as it goes in"
    elif isinstance(found, Confidence):
        yield f"{found.asked}"
        yield f"its number {found.number} (the first is 0) is x, {found.values:,} values"
        yield f"x from {number(found.low)} to {number(found.high)}"
    elif isinstance(found, ProbeCurves):
        yield f"{len(probed.points):,} points of {', '.join(found.columns)}"
    else:
        yield f"{found.tokens:,} number tokens"


def _print_along(found: "Along", format: Format, to: TextIO | None) -> None:
    _print_pairs("continuity, with 95% intervals", list(_continuity(found)), format, to)
    if found.repeated is not None:
        floor = "truths" if found.number is None else "evenly spaced"
        rows = [
            (f"rounded to {found.digits} digits", *_percents(found.repeated, "rounded")),
            ("exactly", *_percents(found.repeated, "exact")),
        ]
        title = f"share that is one of the {found.seen:,} values seen in training"
        print_figures(title, ("equal", "predictions", floor), rows, format, to)
    if found.errors:
        rows_ = [
            (name, figure(one["mae"]), figure(one["mse"])) for name, one in found.errors.items()
        ]
        print_figures("errors", ("of", "mae", "mse"), rows_, format, to)
    if found.top:
        title = f"the most probable along it, of {found.top_of}"
        columns = ("number", "largest probability")
        print_figures(
            title, columns, [(top.literal, number(top.most)) for top in found.top], format, to
        )


def _continuity(found: "Along") -> Iterator[tuple[str, str]]:
    yield "different predictions", f"{found.distinct:,}"
    yield f"  with {found.digits} digits", f"{found.distinct_rounded:,}"
    yield "without a valid one", percent(found.invalid)
    yield "slope on x", figure(found.slope)
    if (jump := found.jump) is not None:
        yield "largest jump", number(jump.size)
        yield "  at x from, to", f"{number(jump.from_x)}, {number(jump.to_x)}"
        yield "  prediction from, to", f"{number(jump.from_y)}, {number(jump.to_y)}"
        yield "  share of the predictions' range", number(jump.of_range)
        many = "-, most steps are 0" if jump.of_median_step is None else number(jump.of_median_step)
        yield "  times the median step", many
        if jump.of_truth is not None:
            yield "  times the largest step of the truth", number(jump.of_truth)
    if (ends := found.saturation) is not None:
        if ends.low is not None and ends.high is not None:
            yield "at or below the least seen", percent(ends.low)
            yield "at or above the greatest seen", percent(ends.high)
        yield "share of x without a move, lower end", number(ends.still_low)
        yield "  upper end", number(ends.still_high)


def _percents(of: Any, what: str) -> tuple[str, str]:
    return percent(getattr(of, what)), percent(getattr(of, f"floor_{what}"))


def percent(found: "Figure") -> str:
    """A share with its interval.

    >>> percent(Figure(0.123, 0.1, 0.2, 50))
    '12.3% [10%, 20%]'
    """
    if found.value is None or found.low is None or found.high is None:
        return "-"
    value, low, high = (f"{100 * one:.3g}%" for one in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _embedding(found: "Embedding") -> Rows:
    rows: Rows = []
    if found.formula is not None:
        rows += [
            ("r = |p| / |u|", _spread(found.scale, found.scale_deviation)),
            ("cosine of p and u", _spread(found.cosine, found.cosine_deviation)),
            ("offset", number(found.offset)),
            ("height", number(found.height)),
            ("rms distance from the formula / range", number(found.residual)),
        ]
    if found.half is not None:
        rows.append(("half way up at x", number(found.half)))
    return rows


def _spread(mean: float | None, deviation: float | None) -> str:
    return f"{number(mean)} ± {number(deviation)} over positions"


def _print_confidence(
    found: "Confidence", probed: "LoadedProbe", format: Format, to: TextIO | None
) -> None:
    x, y = (probed.points.column(name).to_pylist() for name in ("x", "confidence"))
    shown = sorted({round(k * (len(x) - 1) / (_SHOWN - 1)) for k in range(_SHOWN)})
    rows = [(number(x[place]), number(y[place])) for place in shown]
    print_figures(found.measures, ("x", "confidence"), rows, format, to)
    figures = [
        ("least", number(found.least)),
        ("most", number(found.most)),
        ("  at x", number(found.at)),
        ("variation / range", number(found.variation)),
    ]
    _print_pairs("over all x", figures, format, to)
    print_lines(["Variation / range: 1 rises or falls throughout, 2 rises and falls back."], to)


def _print_tokens(found: "TokenComponents", format: Format, to: TextIO | None) -> None:
    columns = zip(found.explained, found.by_value, found.by_size, strict=True)
    rows = [(str(k + 1), *(number(one) for one in figures)) for k, figures in enumerate(columns)]
    head = ("component", "variance", "rank corr. with value", "with magnitude")
    print_figures("principal components", head, rows, format, to)
    title = "distance between neighbours in value / between random pairs"
    _print_pairs(title, [("all dimensions", number(found.neighbours))], format, to)


def _print_pairs(title: str, rows: Rows, format: Format, to: TextIO | None) -> None:
    print_figures(title, ("what", "value"), rows, format, to)


def _flat(prefix: str, found: Any) -> Iterator[tuple[object, ...]]:
    """Every number of a summary, by its path in it; a figure with its interval."""
    if isinstance(found, dict) and {"value", "low", "high", "n"} == found.keys():
        yield prefix, found["value"], found["low"], found["high"]
    elif isinstance(found, dict | list):
        parts = found.items() if isinstance(found, dict) else enumerate(found)
        for name, part in parts:
            yield from _flat(f"{prefix}.{name}" if prefix else str(name), part)
    else:
        yield prefix, found, None, None
