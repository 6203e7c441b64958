#!/usr/bin/env python
"""Number of tokens per weather sample in each scheme, in the format of xVal (Section 3.2).

Rows are those of ``gen temperature`` with its defaults: 60 to 90 stations, 2 to 4 days in steps of
6 hours. ``'key':``, brackets and commas are one token each (``--text-tokenizer structure``); all
other tokens are those of numbers.

The paper states means of 8000 tokens for P1000, 5000 for P10, and 1800 for FP15 and xVal. The first
two must be swapped, since P10 has five tokens per number and P1000 three.

xVal's public code also drops the commas between numbers. numtok keeps them, because it restores
text byte for byte. The column "without commas" has the number of tokens without them.

    python pipelines/xval-tokens.py era5.nc               # any value of `numtok fetch era5 --from`
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from numtok.cli.output.printing import Format, print_table
from numtok.data.reading.split_rule import TRAIN
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.splits import read_codec, read_split
from numtok.stages import encode, fetch, gen
from numtok.store.store import Store

PAPER = {"p1000": 8000, "p10": 5000, "fp15": 1800, "xval": 1800}
COLUMNS = (
    "scheme", "tokens per number", "tokens per sample", "least", "most", "without commas",
    "in the paper",
)  # fmt: skip


def quiet(*_: object) -> None:
    """Discard progress."""


def rows(place: str, samples: int) -> list[tuple[object, ...]]:
    """Return a row of the table per scheme, the shortest samples first."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        list(fetch.run(fetch.Config("era5", options={"from_": place}, name="field"), store, quiet))
        config = gen.Config(
            "temperature", samples=samples, split="train=1", from_="field", name="rows"
        )
        gen.run(config, store, quiet)
        found = [_of(store, scheme) for scheme in SCHEMES.names()]
        return sorted(found, key=lambda row: (float(str(row[2])), str(row[0])))


def _of(store: Store, scheme: str) -> tuple[object, ...]:
    config = encode.Config(("rows",), scheme=scheme, text_tokenizer="structure", name=scheme)
    artifact = encode.run(config, store, quiet).artifact
    assert artifact is not None
    encoded = read_split(artifact, TRAIN)
    a_number = float(np.mean(encoded.number_length))
    codec = read_codec(artifact)
    commas = [token for token, name in enumerate(codec.names) if name in (",", ", ")]
    first = encoded.first_token(np.arange(len(encoded.numbers)))
    after = first + encoded.number_length
    between = after[:-1][first[1:] == after[:-1] + 1]  # one token between two numbers
    dropped = np.isin(encoded.tokens[between], commas).sum() / len(encoded)
    mean, least, most = (int(made) for made in (
        np.rint(encoded.lengths.mean()), encoded.lengths.min(), encoded.lengths.max()
    ))  # fmt: skip
    without = int(np.rint(encoded.lengths.mean() - dropped))
    return scheme, f"{a_number:.3g}", mean, least, most, without, PAPER.get(scheme, "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description="Tokens per sample of the weather data, by scheme."
    )
    parser.add_argument("place", help="of `numtok fetch era5 --from`")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--format", type=Format, default=Format.TABLE, choices=list(Format))
    options = parser.parse_args(arguments)
    print_table("tokens per sample", COLUMNS, rows(options.place, options.samples), options.format)


if __name__ == "__main__":
    main()
