"""``numtok nupa``."""

from typing import Annotated

import typer

from numtok.cli._shared import FormatOption, JsonOption, open_store
from numtok.cli.output.printing import Format


def command(
    context: typer.Context,
    ref: Annotated[
        str, typer.Argument(metavar="REF", help="A report on NUPA; with --answers the data.")
    ],
    answers: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help='What any model generated: JSONL of {"id": of the row, "answer": text or null}.',
        ),
    ] = None,
    split: Annotated[str, typer.Option(metavar="NAME", help="Of the data: what was asked.")] = (
        "test"
    ),
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How an answer is found in a text: published (default), published-chat, strict.",
        ),
    ] = None,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Print the tables of NUPA: exact match, digit match and d-length, by digits and by task.

    Three means, because the papers do not say which they print: of all answers, of the means of
    tasks, of the means of strata. What is no answer counts as wrong.

    Example: numtok nupa nupa-test@0123 --answers generated.jsonl
    """
    from numtok.cli.output.nupa import print_tables
    from numtok.stages.nupa import Config, run

    found = run(Config(ref, answers, split, rule), open_store(context))
    print_tables(found, Format.JSON if json else format)
