#!/usr/bin/env python
"""Table 1 of xVal: the tokens and the vocabulary of five number encodings.

The example is -6.02 x 10^1. Vocabularies include only tokens of numbers. They exclude tokens of
text, and numtok's tokens for zero, for numbers out of range, NaN and infinities.

    python pipelines/xval-table1.py
"""

import argparse
from collections.abc import Iterator, Sequence

from numtok.cli.output.printing import Format, print_table
from numtok.encoding.schemes.base import SCHEMES
from numtok.evaluation.published import published
from numtok.numerals.column import Numerals

EXAMPLE = "-60.2"
COLUMNS = (
    "scheme",
    f"tokens of {EXAMPLE}",
    "tokens per number",
    "printed",
    "vocabulary",
    "printed ",
)


def rows() -> Iterator[tuple[object, ...]]:
    """Yield a row of the table per scheme, in the order of the paper."""
    for name, printed in published("xval/table1").rows.items():
        scheme = SCHEMES.build(name)
        encoded = scheme.encode(Numerals.of_literals([EXAMPLE]))
        vocabulary = scheme.vocabulary()
        tokens = " ".join(vocabulary[token] for token in encoded.tokens.tolist())
        yield (
            name,
            tokens,
            int(encoded.lengths[0]),
            int(printed["tokens per number"].value),
            scheme.paper_vocabulary_size,
            int(printed["vocabulary"].value),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Tokens of a number and of numbers, by scheme.")
    parser.add_argument("--format", type=Format, default=Format.TABLE, choices=list(Format))
    options = parser.parse_args(arguments)
    print_table("five ways of writing a number", COLUMNS, list(rows()), options.format)


if __name__ == "__main__":
    main()
