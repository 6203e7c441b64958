#!/usr/bin/env python
"""Figure 4 of xVal in numbers: how often a scheme predicts 0.1 and 1.0.

0.1 combines the most frequent mantissa with the most frequent exponent; 1.0 is the most frequent
number. A magnitude from 0.100 to 0.109 counts as 0.1, and one from 1.00 to 1.09 as 1.0. Next to
each percentage is the percentage of the sum of squared errors that these predictions cause.

Reports of the same scheme are its seeds. The table has their mean with Student's interval; with one
seed, it has the bootstrap interval.

    python pipelines/xval-figure4.py REPORT...
"""

import argparse
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from numtok.cli.output.figures import figure
from numtok.cli.output.printing import Format, print_table
from numtok.evaluation.comparison.seeds import seed_statistics
from numtok.evaluation.report_files import ReportPredictions, read
from numtok.metrics.base import means
from numtok.reports import REPORT
from numtok.store.store import Store

RANGES = {"0.100 to 0.109": (0.09995, 0.1095), "1.00 to 1.09": (0.9995, 1.095)}
COLUMNS = (
    "scheme",
    "0.100 to 0.109, %",
    "errors of these, %",
    "1.00 to 1.09, %",
    "errors of those, %",
    "different",
)


def within(values: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return 1.0 for magnitudes in the named range and 0.0 for others, [n]."""
    low, high = RANGES[name]
    return ((np.abs(values) >= low) & (np.abs(values) < high)).astype(np.float64)


def rows(told: Sequence[ReportPredictions], schemes: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield a row per scheme: means over its seeds of the percentages and of the number of distinct
    predictions. The last row has the true values.
    """
    for scheme in dict.fromkeys(schemes):
        seeds = [one.answers for one, own in zip(told, schemes, strict=True) if own == scheme]
        row: list[str] = []
        for name in RANGES:
            fractions, of_errors = [], []
            for answers in seeds:
                inside = 100 * within(answers.prediction, name)
                errors = (answers.prediction - answers.truth) ** 2
                fractions += means([inside], answers)
                of_errors.append(float(errors @ inside / errors.sum()))
            row.append(figure(seed_statistics(fractions, (0, 100))))
            row.append(f"{np.mean(of_errors):.0f}")
        different = np.mean([len(np.unique(answers.prediction)) for answers in seeds])
        yield scheme, *row, int(np.rint(different))
    truth = told[0].answers.truth
    shares_of = [f"{100 * within(truth, name).mean():.1f}" for name in RANGES]
    yield "truth", shares_of[0], "", shares_of[1], "", len(np.unique(truth))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How often 0.1 and 1.0 are said, by scheme.")
    parser.add_argument("reports", nargs="+", metavar="REPORT")
    parser.add_argument("--format", type=Format, default=Format.TABLE, choices=list(Format))
    options = parser.parse_args(arguments)
    store = Store(Path(os.environ.get("NUMTOK_STORE", "artifacts")))
    found = [read(store.resolve(ref, {REPORT})) for ref in options.reports]
    told = [ReportPredictions.of_numbers(one) for one in found]
    for one in told[1:]:
        told[0].check_pairs(one)
    title = f"numbers said of {len(told[0].answers.truth):,}"
    table = list(rows(told, [one.report.scheme for one in found]))
    print_table(title, COLUMNS, table, options.format)


if __name__ == "__main__":
    main()
