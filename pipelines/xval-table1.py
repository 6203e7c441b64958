#!/usr/bin/env python
"""Table 1 of xVal: five ways of writing a number, and what each takes.

The example is -6.02 x 10^1, and the counts are of the tokens of numbers alone: neither those
of the text, nor numtok's for zero, for what is too small or too large, and for what is no number.

    python pipelines/xval-table1.py
"""

import argparse
from collections.abc import Iterator, Sequence

from numtok.cli.output.printing import Format, print_table
from numtok.encoding.schemes.base import SCHEMES
from numtok.evaluation.published import published
from numtok.numerals.column import Numerals

EXAMPLE = "-60.2"
COLUMNS = ("scheme", f"tokens of {EXAMPLE}", "tokens a number", "printed", "vocabulary", "printed ")


def rows() -> Iterator[tuple[object, ...]]:
    """Of each scheme a row of the table, as the paper has them."""
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
