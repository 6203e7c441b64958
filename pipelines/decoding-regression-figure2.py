#!/usr/bin/env python
"""Figures 2 and 3 of Decoding-based Regression: the risk of estimating one density.

Three estimators learn a truncated Gaussian on [0, 1] from N samples: a histogram of 2^k cells, a
Riemann head with 2^k bins, and a decoder that generates k bits (``nd,base=2``). Neither head uses
early stopping.

The risk is the integral of (f - estimate)^2, computed exactly over the cells. The table has its
mean and standard deviation over runs, by number of rows and bits. Next to it are the formula of
Theorem 1 and the exact expectation for the histogram, where p_j is the mass of cell j and w its
width:

    integral of f^2 - sum of p_j^2 / w + (1 - sum of p_j^2) / (N w).

    python pipelines/decoding-regression-figure2.py --rows 1024,16384 --bits 1,3,5,7,9,11 --runs 10

``--figure FILE`` draws Figure 3 instead. One decoder, with the largest number of ``--bits``, is an
estimator for each smaller number of bits: its first k bits select one of 2^k cells.

    python pipelines/decoding-regression-figure2.py --rows 16384 --bits 7 --figure figure3.png
"""

import argparse
from collections.abc import Callable
from functools import partial
from math import erf, sqrt
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from numtok.analysis.drawing import image
from numtok.analysis.picture import Axis, LineMark, Mark, Panel, Picture
from numtok.cli.output.figures import number
from numtok.cli.output.printing import print_table
from numtok.data.tasks.base import TaskSplit
from numtok.data.tasks.truncated_gaussian import TruncatedGaussian
from numtok.encoding.normalizers.base import NORMALIZERS
from numtok.models.heads.base import ValueHead
from numtok.models.trunks.mlp import Mlp
from numtok.training.features import Features
from numtok.training.trained_table import FittedTable, FittingRecipe, Preparation, table_head

TASK = TruncatedGaussian()
HEAD = {"riemann": "riemann:{cells}", "decoder": "decoder:nd,base=2,length={bits}"}


def masses(bits: int) -> NDArray[np.float64]:
    """Return the true probability of each cell, float64[2^bits]."""
    edges = np.linspace(0, 1, 2**bits + 1)
    cumulative = np.array([erf((edge - 0.5) / 0.25 / sqrt(2)) for edge in edges])
    return np.asarray(np.diff(cumulative) / (cumulative[-1] - cumulative[0]))


def risk(estimate: NDArray[np.float64]) -> float:
    """Return the integral of (f - g)^2 for a density g, float64[2^k], that is constant in each
    cell."""
    true = masses(int(np.log2(len(estimate))))
    return float(TASK.squared - 2 * true @ estimate + np.square(estimate).mean())


def expected(bits: int, rows: int) -> float:
    """Return the exact expected risk of the histogram."""
    mass, cells = masses(bits), 2**bits
    squares = float(np.square(mass).sum())
    return float(TASK.squared - squares * cells + (1 - squares) * cells / rows)


def formula(bits: int, rows: int) -> float:
    """Return the risk by Theorem 1, without the terms that the theorem omits."""
    return float(TASK.slope_squared / 12 / 4**bits + 2**bits / rows)


def drawn(rows: int, seed: int) -> NDArray[np.float64]:
    """Return samples from the density, float64[rows]."""
    return TASK.unit(seed, TaskSplit("train", rows), 0)[1]


def histogram(values: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """Return the empirical density, float64[2^bits]."""
    counts, _ = np.histogram(values, bins=2**bits, range=(0, 1))
    return np.asarray(counts * (2**bits / len(values)))


def fitted(values: NDArray[np.float64], head: ValueHead, seed: int, epochs: int) -> FittedTable:
    """Fit a head on one constant feature. The target lies in [0, 1] and is not scaled."""
    columns = Features(np.zeros((len(values), 1)), [])
    recipe = FittingRecipe(
        epochs=epochs,
        patience=0,
        batch=min(1024, len(values) // 8),
        learning_rate=1e-3,
        seed=seed,
    )
    preparation = Preparation.of(
        columns,
        values,
        (columns, values),
        head=head,
        trunk=Mlp(1, 64),
        normalizer=NORMALIZERS.build("none"),
        recipe=recipe,
        device=torch.device("cpu"),
    )
    return preparation.finished()


def estimated(fit: FittedTable, bits: int) -> NDArray[np.float64]:
    """Return the density at the center of each cell, float64[2^bits]."""
    centres = (np.arange(2**bits) + 0.5) / 2**bits
    columns = Features(np.zeros((2**bits, 1)), [])
    return np.exp(fit.predictive(columns).log_density(centres))


def levels(fit: FittedTable, bits: int) -> list[NDArray[np.float64]]:
    """Return the density of one distribution with 1, 2, ... ``bits`` bits, float64[2^k] each."""
    found = []
    one = fit.predictive(Features(np.zeros((1, 1)), []))
    for level in range(1, bits + 1):
        edges = np.linspace(0, 1, 2**level + 1)
        cumulative = np.concatenate([one.cdf(np.array([edge])) for edge in edges])
        found.append(np.diff(cumulative) * 2**level)
    return found


def figure3(rows: int, bits: int, epochs: int) -> Picture:
    """Return one panel per number of bits, with the true density, the samples and the decoder."""
    head = table_head(HEAD["decoder"].format(bits=bits))
    values = drawn(rows, 0)
    x = np.linspace(0, 1, 257)
    truth = np.diff([0, *np.cumsum(masses(8))]) * 2**8
    panels = []
    for level, density in enumerate(levels(fitted(values, head, 0, epochs), bits), 1):
        edges = np.linspace(0, 1, 2**level + 1)
        marks: list[Mark] = [
            LineMark(label="truth", x=(x[1:] + x[:-1]) / 2, y=truth),
            LineMark(
                label="draws",
                x=np.repeat(edges, 2)[1:-1],
                y=np.repeat(histogram(values, level), 2),
                colour=1,
            ),
            LineMark(
                label="decoder", x=np.repeat(edges, 2)[1:-1], y=np.repeat(density, 2), colour=0
            ),
        ]
        title = f"{level} bits" if level > 1 else "1 bit"
        panels.append(
            Panel(
                title=title, x=Axis(label="y"), y=Axis(label="density", low=0, high=2), marks=marks
            )
        )
    return Picture(panels)


def estimators(epochs: int) -> dict[str, Callable[[NDArray[np.float64], int, int], float]]:
    """Return functions from samples, bits and a seed to the risk of each estimator."""

    def learnt(spec: str, values: NDArray[np.float64], bits: int, seed: int) -> float:
        head = table_head(spec.format(bits=bits, cells=2**bits))
        return risk(estimated(fitted(values, head, seed, epochs), bits))

    found = {"histogram": lambda values, bits, seed: risk(histogram(values, bits))}
    return found | {name: partial(learnt, spec) for name, spec in HEAD.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", default="1024,16384")
    parser.add_argument("--bits", default="1,3,5,7,9,11")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--figure", type=Path, help="draw Figure 3 into this PNG, SVG or PDF")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.figure is not None:
        rows, bits = (max(map(int, text.split(","))) for text in (asked.rows, asked.bits))
        picture = figure3(rows, bits, asked.epochs)
        made = image(picture, asked.figure.suffix.removeprefix("."), None, f"{rows} rows")
        asked.figure.write_bytes(made)
        return
    runs = estimators(asked.epochs)
    columns = ("rows", "bits", "formula", "exact", *runs)
    table: list[tuple[str, ...]] = []
    for rows in map(int, asked.rows.split(",")):
        for bits in map(int, asked.bits.split(",")):
            told = []
            for name, run in runs.items():
                found = [run(drawn(rows, seed), bits, seed) for seed in range(asked.runs)]
                told.append(
                    f"{number(float(np.mean(found)))} ± {number(float(np.std(found, ddof=1)))}"
                )
                print(f"{rows} rows, {bits} bits, {name}: {told[-1]}", flush=True)
            known = (number(formula(bits, rows)), number(expected(bits, rows)))
            table.append((str(rows), str(bits), *known, *told))
    print_table("risk", columns, table)


if __name__ == "__main__":
    main()
