"""Speed of sampling from decoder heads, and time to fit a small table.

    python benchmarks/decoder.py
    python benchmarks/decoder.py --threads 2 --skip-fits

Sampling: 128 samples for each of 1,000 rows, from decoders after a few epochs on a small table and
from decoders with random weights. numtok computes each common prefix once; with random weights,
hardly any two numbers share one.

The table compares this with plain loops, by row or by number. These cache nothing between tokens
and query the scheme in Python for each number, so only a few rows or numbers are timed. It also has
a lower limit: the time of one pass over all tokens of all numbers at the speed of a large matrix
product.

Fits: 1,500 rows of 10 features, with the recipe of `numtok train`.

Times are wall-clock times, the best of several tries. The script prints tables and asserts nothing.
"""

import argparse
import os
import time
from functools import partial

os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import numpy as np
import torch
from _shared import best, table  # type: ignore[import-not-found]
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor

from numtok.encoding.normalizers.base import NORMALIZERS, FittedNormalizer
from numtok.models.distributions.decoded import DecoderDistribution
from numtok.models.flops import value_flops
from numtok.models.heads._decoder import DecoderReader
from numtok.models.trunks.mlp import Mlp
from numtok.training.device import MatmulRate, tune_malloc
from numtok.training.features import Features
from numtok.training.trained_table import FittedTable, FittingRecipe, Preparation, table_head

CPU = torch.device("cpu")
PLAIN = FittedNormalizer(NORMALIZERS.build("none"), {})
DECODERS = "decoder:ud,layers=3,heads=4,width=128;decoder:ud,layers=1,heads=1,width=32"
FITTED = "pointwise;riemann:256;mdn:5;decoder:nd;decoder:ud;decoder:ud,layers=3,heads=4,width=128"
WIDTH = 256  # of the trunk


@torch.no_grad()
def naive(reader: DecoderReader, parameters: Tensor, count: int) -> NDArray[np.float64]:
    """Return samples from a loop that recomputes all tokens at every token, float64[n * count]."""
    n, scheme = len(parameters) * count, reader.scheme
    first = parameters.repeat_interleave(count, dim=0)[:, None]
    tokens = torch.empty((n, 0), dtype=torch.int64)
    for _ in range(reader.tokens_per_number):
        x = torch.cat([first, reader.table(tokens)], dim=1)
        scores = reader.out(reader.trunk(x, None))[:, -1]
        for number, prefix in enumerate(tokens.tolist()):
            allowed = scheme.next(tuple(prefix)).allowed.copy()
            if not prefix:
                allowed[scheme.paper_vocabulary_size + 1 :] = False  # NaN and other non-numbers
            scores[number, torch.from_numpy(~allowed)] = -torch.inf
        tokens = torch.cat([tokens, scores.softmax(dim=1).multinomial(1)], dim=1)
    return reader.values(tokens)


def small_table() -> tuple[Features, NDArray[np.float64]]:
    """Return 1,500 rows of 10 features, and a target that depends on two of them."""
    random = np.random.default_rng(0)
    numbers = random.standard_normal((1500, 10))
    target = numbers[:, 0] ** 2 + numbers[:, 1] + random.standard_normal(1500) / 5
    return Features(numbers, []), target


def fitted_to_it(spec: str, recipe: FittingRecipe) -> FittedTable:
    """Fit a head on the small table until training stops."""
    head, (columns, target) = table_head(spec), small_table()
    return Preparation.of(
        columns,
        target,
        None,
        head=head,
        trunk=Mlp(3, WIDTH),
        normalizer=NORMALIZERS.build(head.normalizer),
        recipe=recipe,
        device=CPU,
    ).finished()


def drawing(options: argparse.Namespace) -> Table:
    """Return the table of sampling times, with the plain loops and the limit."""
    title = f"{options.draws} draws for each of {options.rows:,} rows, seconds"
    figures = ("drawn", "by rows", "x", "by numbers", "x", "limit", "of it")
    made: Table = table(title, ("head", "weights"), figures)
    features = small_table()[0].take(np.arange(options.rows))
    for spec in options.decoders.split(";"):
        fitted = fitted_to_it(spec, FittingRecipe(epochs=options.epochs))
        with torch.no_grad():
            head = table_head(spec)
            random = head.build(WIDTH)
            drawn_from = random(torch.randn(options.rows, WIDTH))
        each = value_flops(head, random, WIDTH)
        learnt = fitted.model.reader, fitted.parameters(fitted.inputs.of(features))
        for weights, (reader, parameters) in (("fitted", learnt), ("random", (random, drawn_from))):
            assert isinstance(reader, DecoderReader)
            one = DecoderDistribution(reader, parameters, PLAIN)
            draw = partial(one.sample, options.draws, np.random.default_rng(0))
            seconds = best(draw, options.tries)
            row, all_draws = parameters[:1], options.rows * options.draws
            by_rows = best(partial(naive, reader, row, options.draws), 5) * options.rows
            by_numbers = best(partial(naive, reader, row, 1), 20) * all_draws
            limit = all_draws * each / MatmulRate(CPU, bfloat16=False).per_second
            made.add_row(
                spec.removeprefix("decoder:"),
                weights,
                f"{seconds:.2f}",
                f"{by_rows:.0f}",
                f"{by_rows / seconds:.0f}",
                f"{by_numbers:.0f}",
                f"{by_numbers / seconds:.0f}",
                f"{limit:.2f}",
                f"{limit / seconds:.2f}",
            )
    return made


def fitting(options: argparse.Namespace) -> Table:
    """Return the table of times to fit a small table."""
    title = f"1,500 rows of 10 features, 3 layers of {WIDTH}, at most 300 epochs"
    made: Table = table(title, ("head",), ("seconds", "epochs", "ms an epoch"))
    for spec in options.fitted.split(";"):
        started = time.perf_counter()
        epochs = fitted_to_it(spec, FittingRecipe()).fit.epochs
        seconds = time.perf_counter() - started
        made.add_row(spec, f"{seconds:.1f}", str(epochs), f"{1000 * seconds / epochs:.0f}")
    return made


def main() -> None:
    """Measure with the given options and print the tables."""
    parser = argparse.ArgumentParser(description="Measure decoder heads and small fits.")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=128)
    parser.add_argument(
        "--epochs", type=int, default=10, help="of the decoders that are drawn from"
    )
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--decoders", default=DECODERS)
    parser.add_argument("--fitted", default=FITTED)
    parser.add_argument("--skip-draws", action="store_true")
    parser.add_argument("--skip-fits", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tune_malloc()
    rate = MatmulRate(CPU, bfloat16=False).per_second / 1e9
    Console().print(f"{options.threads} threads; a large matrix product: {rate:.0f} GFLOP/s")
    if not options.skip_draws:
        Console().print(drawing(options))
    if not options.skip_fits:
        Console().print(fitting(options))


if __name__ == "__main__":
    main()
