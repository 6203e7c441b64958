"""``numtok eval``."""

import sys
from typing import Annotated, Any

import typer

from numtok.cli._shared import (
    AgainstOption,
    ColumnOption,
    DecodeOption,
    DrawsOption,
    ForceOption,
    FormatOption,
    JsonOption,
    PointOption,
    RestartOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    open_store,
    refuse,
)
from numtok.cli.output.printing import Format
from numtok.errors import UsageError

_OF_TEXTS = ("fill", "decode", "batch", "compile")
_OF_TABLES = ("temperature", "top_k", "top_p")


def command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="REF of a model.")],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="REF of data encoded as the model's were, or of a table as its. Default: the "
            "data that it learnt from.",
        ),
    ] = None,
    split: Annotated[str, typer.Option(metavar="NAME", help="The split to predict.")] = "test",
    fill: Annotated[
        str | None,
        typer.Option(
            help="Masked models: parallel (the default, all at once), or left-to-right. "
            "Autoregressive ones: answers, which are written as text and compared as a whole."
        ),
    ] = None,
    decode: DecodeOption = "constrained",
    point: PointOption = None,
    draws: DrawsOption = 0,
    temperature: TemperatureOption = 1.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="Only the first rows of the split.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC", help="One more: adjusted-r2,p=4 ... (docs/guide/evaluate.md)."
        ),
    ] = None,
    batch: Annotated[
        int,
        typer.Option(
            metavar="ROWS",
            help="Rows at a time; fewer where memory is out, and of labels where rows are long.",
        ),
    ] = 256,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    compile: Annotated[
        bool,
        typer.Option(
            "--compile", help="Compile the model first: minutes. Did not pay on a CPU: measure."
        ),
    ] = False,
    against: AgainstOption = None,
    column: ColumnOption = None,
    name: Annotated[str | None, typer.Option(help="Default: the model's and the split's.")] = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Predict the numbers, the labels or the answers of a split, and print the report and its REF.

    Example: numtok eval era5-xval-nano era5-xval --split test
    """
    from numtok.cli._fitted import eval_table, options_of
    from numtok.cli.output.progress import Count
    from numtok.cli.output.report import print_report
    from numtok.evaluation.comparison.beside_published import beside_published
    from numtok.evaluation.published import published
    from numtok.evaluation.report_files import read
    from numtok.records import ENCODED, MODEL, TABLE
    from numtok.stages.eval import Config, run
    from numtok.training.regressor_files import is_regressor

    # First of all, so that nothing is done in vain.
    if column is not None and against is None:
        raise UsageError("--column chooses from a published table; name the table with --against")
    if against is not None:
        table = published(against)
        if column is not None:
            table.column(column)
    of_both: dict[str, Any] = {
        "model": model,
        "split": split,
        "rows": rows,
        "metrics": tuple(metric or ()),
        "device": device,
        "name": name,
        "restart": restart,
        "force": force,
    }

    def of_texts(encoded: str) -> Config:
        return Config(
            encoded=encoded,
            fill=fill,
            decode=decode,
            point=point or "mode",
            draws=draws,
            batch=batch,
            compile=compile,
            **of_both,
        )

    # What neither kind of model can do is refused before anything is looked for.
    if point != "raft":
        of_texts(data or "")
    options = options_of(point or "median", draws, temperature, top_k, top_p)
    with Count(context.obj.quiet) as progress:
        store = open_store(context)
        found = store.resolve(model, kinds={MODEL})
        learnt = data or found.made_from(ENCODED, TABLE).where
        if is_regressor(found):
            refuse(context, _OF_TEXTS, "a model of tables")
            artifact = eval_table(context, progress, table=learnt, options=options, **of_both)
        else:
            refuse(context, _OF_TABLES, "a model of texts")
            artifact = run(of_texts(learnt), store, progress).artifact
    evaluation = read(artifact)
    printed = (
        beside_published(against, [(evaluation.report.scheme, [evaluation])], column=column)
        if against
        else None
    )
    chosen = Format.JSON if json else format
    if chosen is not Format.TABLE:
        print_report(evaluation, chosen, printed)
        return
    if not context.obj.quiet:
        print_report(evaluation, chosen, printed, sys.stderr)
        print(file=sys.stderr)
    print(artifact.ref)
