"""``numtok schemes``: list all schemes, or print the page of one scheme."""

from typing import Annotated

import typer

from numtok.cli.output.printing import Format, print_json, print_parts, print_table

_COLUMNS = ("scheme", "tokens", "vocabulary", "magnitudes", "error", "source")


def command(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Scheme to describe, with its settings if any"),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Print only the names, one per line")
    ] = False,
    format: Format = Format.TABLE,
) -> None:
    """List all number encodings (schemes).

    For each scheme, shows an example, tokens per number, range, precision and paper. With NAME,
    prints the page of one scheme: its settings, an example, and its default embedder and head.

    Example: numtok schemes p1000
    """
    from numtok.encoding.schemes.base import SCHEMES

    if names:
        for one in SCHEMES:
            typer.echo(one)
        return
    if name is not None:
        _print_page(name, format)
        return
    if format is Format.TABLE:
        from numtok.cli.output.schemes import schemes_parts

        print_parts(schemes_parts())
        context.obj.next("numtok schemes NAME", "numtok explain NUMBER")
        return
    print_table("schemes", _COLUMNS, [_row(one, format) for one in SCHEMES], format)


def _row(name: str, format: Format) -> tuple[object, ...]:
    from numtok.cli.output.schemes import compact_number, paper_of
    from numtok.encoding.schemes.base import SCHEMES, needs_sample

    if needs := SCHEMES.required(name):
        return (name, None, None, None, None, f"needs {', '.join(needs)}")
    scheme = SCHEMES.build(name)
    extras = len(scheme.vocabulary()) - scheme.paper_vocabulary_size
    counted = "learnt" if needs_sample(scheme) else scheme.paper_vocabulary_size
    low, high = (compact_number(bound) for bound in scheme.bounds)
    return (
        name,
        scheme.tokens_per_number or "varies",
        f"{counted} + {extras}",
        f"{low}..{high}",
        "±" * scheme.error.absolute + compact_number(scheme.error.size),
        paper_of(scheme.source) if format is Format.MD else scheme.source,
    )


def _print_page(spec: str, format: Format) -> None:
    from numtok.cli.output.schemes import scheme_parts
    from numtok.encoding.scheme_spec import scheme_of

    if format is not Format.JSON:
        print_parts(scheme_parts(spec), Format.TABLE if format is Format.CSV else format)
        return
    scheme = scheme_of(spec)
    embedder, head = scheme.parts
    tokens, vocabulary = scheme.tokens_per_number, len(scheme.vocabulary())
    facts = {"scheme": spec, "source": scheme.source, "tokens_per_number": tokens}
    parts = {"embedder": embedder, "head": head, "normalizer": scheme.defaults.normalizer}
    print_json(facts | {"vocabulary": vocabulary} | parts)
