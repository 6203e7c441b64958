#!/usr/bin/env python
"""Figures 2 and 3 of Decoding-based Regression: the risk of estimating one density, by bits, rows.

A truncated Gaussian on [0, 1] is estimated from N draws as a histogram of 2^k cells, by a Riemann
head of as many bins and by a decoder that writes k bits (``nd,base=2``), neither with early
stopping. Risk is the integral of (f - estimate)^2, worked out exactly over the cells, its mean and
deviation over the runs. Beside it stand the formula of Theorem 1, and the exact expectation for
the empirical histogram, with p_j the mass of cell j and w its width:

    integral of f^2 - sum of p_j^2 / w + (1 - sum of p_j^2) / (N w).

    python pipelines/decoding-regression-figure2.py --rows 1024,16384 --bits 1,3,5,7,9,11 --runs 10

With ``--figure FILE`` it draws Figure 3 instead: one decoder of as many bits as the largest of
``--bits`` is an estimator with each number of bits up to that, as its first ones say in which of
2^k cells a number lies.

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
    """float64[2^bits]: the true probability of each cell."""
    edges = np.linspace(0, 1, 2**bits + 1)
    cumulative = np.array([erf((edge - 0.5) / 0.25 / sqrt(2)) for edge in edges])
    return np.asarray(np.diff(cumulative) / (cumulative[-1] - cumulative[0]))


def risk(estimate: NDArray[np.float64]) -> float:
    """The integral of (f - g)^2 for a density g, float64[2^k], that is constant in each cell."""
    true = masses(int(np.log2(len(estimate))))
    return float(TASK.squared - 2 * true @ estimate + np.square(estimate).mean())


def expected(bits: int, rows: int) -> float:
    """Of the empirical histogram, exactly."""
    mass, cells = masses(bits), 2**bits
    squares = float(np.square(mass).sum())
    return float(TASK.squared - squares * cells + (1 - squares) * cells / rows)


def formula(bits: int, rows: int) -> float:
    """Theorem 1, without the terms that it leaves out."""
    return float(TASK.slope_squared / 12 / 4**bits + 2**bits / rows)


def drawn(rows: int, seed: int) -> NDArray[np.float64]:
    """float64[rows] draws."""
    return TASK.unit(seed, TaskSplit("train", rows), 0)[1]


def histogram(values: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """The empirical density, float64[2^bits]."""
    counts, _ = np.histogram(values, bins=2**bits, range=(0, 1))
    return np.asarray(counts * (2**bits / len(values)))


def fitted(values: NDArray[np.float64], head: ValueHead, seed: int, epochs: int) -> FittedTable:
    """A head on one constant feature, its target not scaled: it lies in [0, 1] as it is."""
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
    """float64[2^bits]: the density in the middle of each cell."""
    centres = (np.arange(2**bits) + 0.5) / 2**bits
    columns = Features(np.zeros((2**bits, 1)), [])
    return np.exp(fit.predictive(columns).log_density(centres))


def levels(fit: FittedTable, bits: int) -> list[NDArray[np.float64]]:
    """Of one distribution its density with 1, 2, ... ``bits`` bits: float64[2^k] each."""
    found = []
    one = fit.predictive(Features(np.zeros((1, 1)), []))
    for level in range(1, bits + 1):
        edges = np.linspace(0, 1, 2**level + 1)
        cumulative = np.concatenate([one.cdf(np.array([edge])) for edge in edges])
        found.append(np.diff(cumulative) * 2**level)
    return found


def figure3(rows: int, bits: int, epochs: int) -> Picture:
    """A panel for each number of bits: the truth, and the decoder as it is with so many."""
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
    """The risk of each, from draws, bits and a seed."""

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
