"""``numtok schemes``: all schemes, with what each costs and covers."""

import re
from typing import Annotated

import typer

from numtok.cli.output.printing import Format, print_table


def command(
    names: Annotated[
        bool, typer.Option("--names", help="Print only the names, one per line")
    ] = False,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="SPEC", help="Scheme to run the contract suite on; repeatable"),
    ] = None,
    format: Format = Format.TABLE,
) -> None:
    """List all number schemes.

    Shows tokens per number, vocabulary, range, error bound and source. Errors are relative to the
    number; those with ± are absolute.

    Example: numtok schemes --check p1000
    """
    from numtok.encoding.schemes.base import SCHEMES, needs_sample

    if names:
        for name in SCHEMES:
            typer.echo(name)
        return
    if check:
        from numtok.cli.output.checks import print_checks

        print_checks("scheme", check, format)
        return
    rows: list[tuple[object, ...]] = []
    for name in SCHEMES:
        if needs := SCHEMES.required(name):
            rows.append((name, None, None, None, None, f"needs {', '.join(needs)}"))
            continue
        scheme = SCHEMES.build(name)
        extras = len(scheme.vocabulary()) - scheme.paper_vocabulary_size
        counted = "learnt" if needs_sample(scheme) else scheme.paper_vocabulary_size
        low, high = (_compact(bound) for bound in scheme.bounds)
        rows.append(
            (
                name,
                scheme.tokens_per_number or "varies",
                f"{counted} + {extras}",
                f"{low}..{high}",
                "±" * scheme.error.absolute + _compact(scheme.error.size),
                scheme.source if format in (Format.JSON, Format.CSV) else _short(scheme.source),
            )
        )
    columns = ("scheme", "tokens", "vocabulary", "magnitudes", "error", "source")
    print_table("schemes", columns, rows, format)


def _short(source: str) -> str:
    """The paper alone: without its place there, its address and other sources."""
    return re.split("[,;(]", source)[0].strip()


def _compact(number: float) -> str:
    """Three digits at most: ``1e-6``, ``9.99e9``, ``0.005``."""
    mantissa, _, exponent = f"{number:.3g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa
