"""Prints probes: the model, the input and the results."""

from collections.abc import Iterator
from typing import Any

import msgspec

from numtok.analysis.probing.probe_records import (
    Along,
    Confidence,
    Embedding,
    LoadedProbe,
    ProbeCurves,
)
from numtok.cli.output.figures import number, percentage, share
from numtok.cli.output.printing import Format, Part, Rows, Sheet, print_result

_SHOWN = 13  # points of a curve in its table


def print_probe(probed: LoadedProbe, format: Format, *, quiet: bool = False) -> None:
    """Print a probe and its REF; CSV has one row per value, and JSON contains the whole summary."""
    records = _records("", msgspec.to_builtins(probed.probe.found))
    whole = {"ref": probed.ref, "probe": probed.probe}
    columns = ("figure", "value", "low", "high")
    parts = _parts(probed)
    print_result(format, whole, columns, records, parts, made=probed.ref, quiet=quiet)


def _parts(probed: LoadedProbe) -> Iterator[Part]:
    probe, found = probed.probe, probed.probe.found
    head = [f"probe {probed.ref}: {probe.scheme}, seed {probe.seed}", f"model {probe.model}"]
    if isinstance(found, Along | Embedding | Confidence):
        over = f"x from {number(found.low)} to {number(found.high)}"
    if isinstance(found, Along):
        what = f"split {found.split} of {found.data}: target {found.target}"
        order = "ordered by true value"
        if found.number is not None:
            order = f"while number {found.number} (counted from 0) of row {found.row} varies"
        yield [*head, f"{what}, {found.rows:,} predictions {order}", over]
        yield from _along(found)
    elif isinstance(found, Embedding):
        projected = f"projected on {found.direction}, {found.positions:,} positions"
        yield [*head, projected, f"{over} (as fed to the model)"]
        if rows := list(_embedding(found)):
            yield _pairs("after the first layer norm", rows)
    elif isinstance(found, Confidence):
        varied = f"x is number {found.number} (counted from 0), {found.values:,} values"
        yield [*head, found.asked, varied, over]
        x, y = (probed.points.column(name).to_pylist() for name in ("x", "confidence"))
        shown = sorted({round(k * (len(x) - 1) / (_SHOWN - 1)) for k in range(_SHOWN)})
        yield Sheet(found.measures, ("x", "confidence"), [(number(x[k]), y[k]) for k in shown])
        rows = [("lowest", found.least), ("highest", found.most), ("  at x", found.at)]
        yield _pairs("over all x", [*rows, ("variation / range", found.variation)])
        yield [
            "Variation / range is 1 for a monotonic curve, and 2 for one that rises and falls back."
        ]
    elif isinstance(found, ProbeCurves):
        yield [*head, f"{len(probed.points):,} points of {', '.join(found.columns)}"]
        yield _pairs("values", [*found.figures.items()])
    else:
        yield [*head, f"{found.tokens:,} number tokens"]
        columns = zip(found.explained, found.by_value, found.by_size, strict=True)
        names = ("component", "variance", "rank corr. with value", "with magnitude")
        components = [(str(k), *values) for k, values in enumerate(columns, 1)]
        yield Sheet("principal components", names, components)
        title = "distance between neighbours in value / between random pairs"
        yield _pairs(title, [("all dimensions", found.neighbours)])
    yield [f"Note: {note}" for note in probed.probe.notes]


def _pairs(title: str, rows: Rows) -> Sheet:
    return Sheet(title, ("item", "value"), rows)


def _along(curve: Along) -> Iterator[Sheet]:
    yield _pairs("continuity, with 95% intervals", list(_continuity(curve)))
    if curve.repeated is not None:
        baseline = "true values" if curve.number is None else "evenly spaced"
        one = curve.repeated
        digits = f"rounded to {curve.digits} digits"
        rows = [
            (digits, percentage(one.rounded), percentage(one.floor_rounded)),
            ("exactly", percentage(one.exact), percentage(one.floor_exact)),
        ]
        title = f"predictions equal to one of the {curve.seen:,} training values"
        yield Sheet(title, ("equal", "predictions", baseline), rows)
    if curve.errors:
        errors = [(name, one["mae"], one["mse"]) for name, one in curve.errors.items()]
        yield Sheet("errors", ("of", "mae", "mse"), errors)
    if curve.top:
        title = f"most probable numbers along x, of {curve.top_of}"
        top = [(candidate.literal, candidate.most) for candidate in curve.top]
        yield Sheet(title, ("number", "largest probability"), top)


def _continuity(curve: Along) -> Iterator[tuple[str, object]]:
    yield "different predictions", f"{curve.distinct:,}"
    yield f"  with {curve.digits} digits", f"{curve.distinct_rounded:,}"
    yield "invalid predictions", percentage(curve.invalid)
    yield "slope on x", curve.slope
    if (jump := curve.jump) is not None:
        yield "largest jump", jump.size
        yield "  at x from, to", f"{number(jump.from_x)}, {number(jump.to_x)}"
        yield "  prediction from, to", f"{number(jump.from_y)}, {number(jump.to_y)}"
        yield "  of the range of predictions", share(jump.of_range)
        many = (
            "- (most steps are 0)" if jump.of_median_step is None else number(jump.of_median_step)
        )
        yield "  times the median step", many
        if jump.of_truth is not None:
            yield "  times the largest true step", jump.of_truth
    if (ends := curve.saturation) is not None:
        if ends.low is not None and ends.high is not None:
            yield "at or below the training minimum", percentage(ends.low)
            yield "at or above the training maximum", percentage(ends.high)
        yield "flat part of x, lower end", ends.still_low
        yield "  upper end", ends.still_high


def _embedding(embedding: Embedding) -> Iterator[tuple[str, object]]:
    if embedding.formula is not None:
        yield "r = |p| / |u|", _spread(embedding.scale, embedding.scale_deviation)
        yield "cosine of p and u", _spread(embedding.cosine, embedding.cosine_deviation)
        yield "offset", embedding.offset
        yield "height", embedding.height
        yield "rms distance from the formula / range", embedding.residual
    if embedding.half is not None:
        yield "half height at x", embedding.half


def _spread(mean: float | None, deviation: float | None) -> str:
    return f"{number(mean)} ± {number(deviation)} over positions"


def _records(path: str, found: Any) -> Iterator[dict[str, Any]]:
    """Yield each number of a summary with its path, and with its interval if it has one."""
    if isinstance(found, dict) and {"value", "low", "high", "n"} == found.keys():
        yield {"figure": path, "value": found["value"], "low": found["low"], "high": found["high"]}
    elif isinstance(found, dict | list):
        parts = found.items() if isinstance(found, dict) else enumerate(found)
        for name, part in parts:
            yield from _records(f"{path}.{name}" if path else str(name), part)
    else:
        yield {"figure": path, "value": found}
