"""``numtok train``."""

from pathlib import Path
from typing import Annotated

import typer

from numtok.cli._shared import (
    ForceOption,
    FormatOption,
    JsonOption,
    RestartOption,
    given,
    open_store,
    refuse,
    typed,
)
from numtok.cli.output.printing import Format

_OF_TABLES = ("normalize", "fold", "rows", "epochs", "patience", "validation")
_OF_TEXTS = (
    "objective", "embedder", "steps", "tokens", "minutes", "accumulate", "recompute", "compile",
    "lr_end", "warmup", "curriculum", "clip", "init", "precision", "checkpoint_steps",
    "batch_workers", "profile",
)  # fmt: skip


def command(
    context: typer.Context,
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="REF of encoded data or of a table; or a table's FILE, --target."
        ),
    ],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a file: what is predicted.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="nano, micro, small, xval, gpt2; nano,layers=2 ... "
            "Labels: bigru, too. Tables: mlp,layers=3,width=256. Default: nano or mlp.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="mlm:targets, mlm:numbers,rate=0.3, ar[:all|answer], numvalue, classify ... "
            "Default: mlm:targets where rows have targets, else mlm.",
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="lookup, scaled, fourier, numgpt, dice, numvalue[:rnn|mlp]. Default: the "
            "scheme's.",
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="token, scalar, numgpt, pointwise, riemann:256, mdn:5, decoder:ud ... Default: "
            "the scheme's; tables: pointwise.",
        ),
    ] = None,
    normalize: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Tables: of the target. Default: the head's.")
    ] = None,
    fold: Annotated[
        int | None, typer.Option(metavar="K", help="Tables: one fold. Default: all.")
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tables: so many of the train split. Default: all."),
    ] = None,
    epochs: Annotated[int, typer.Option(metavar="N", help="Tables: at most.")] = 300,
    patience: Annotated[
        int, typer.Option(metavar="N", help="Tables: epochs without a better loss. 0: never stop.")
    ] = 5,
    validation: Annotated[
        float, typer.Option(metavar="SHARE", help="Tables: held back where no split is for that.")
    ] = 0.1,
    steps: Annotated[int | None, typer.Option(metavar="N", help="Train for so many steps.")] = None,
    tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Train until so many tokens went in.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            metavar="M",
            help="Train about so long: measured, then frozen to steps; looks at the validation "
            "split come on top. Default: 5.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="ROWS", help="Rows a step.")] = 128,
    accumulate: Annotated[
        int,
        typer.Option(metavar="N", help="Learn a batch in N parts: the same step, less memory."),
    ] = 1,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", help="Less memory for long rows, and a third more work."),
    ] = False,
    compile: Annotated[
        bool,
        typer.Option("--compile", help="Compile the model first: minutes; for long runs on a GPU."),
    ] = False,
    lr: Annotated[
        float | None, typer.Option(metavar="RATE", help="Learning rate. Default: the preset's.")
    ] = None,
    lr_end: Annotated[
        float, typer.Option(metavar="RATE", help="To which the learning rate falls.")
    ] = 0.0,
    warmup: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the steps; a cosine follows.")
    ] = 0.05,
    curriculum: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Phases with rows of their own, in TOML; with --steps."),
    ] = None,
    weight_decay: Annotated[
        float | None,
        typer.Option(
            metavar="W", help="Of matrices and embeddings. Default: 0.01; tables: 0, of all."
        ),
    ] = None,
    clip: Annotated[float, typer.Option(metavar="NORM", help="Of the gradient; 0: none.")] = 1.0,
    seed: Annotated[int, typer.Option(metavar="S", help="Of weights, order and masks.")] = 0,
    init: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Begin with the weights of this model; classify: its trunk's. Preset, embedder "
            "and head are its own, too.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[
        str, typer.Option(help="auto (bfloat16 where the GPU has it), float32 or bfloat16.")
    ] = "auto",
    checkpoint_steps: Annotated[
        int | None,
        typer.Option("--checkpoint-every", metavar="STEPS", help="Default: once a minute."),
    ] = None,
    batch_workers: Annotated[
        int, typer.Option(metavar="N", help="Threads that prepare batches.")
    ] = 0,
    profile: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a Chrome trace of 5 steps, print their costs."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Default: the data's and the preset's; tables: the head's.")
    ] = None,
    restart: RestartOption = False,
    force: ForceOption = False,
    format: FormatOption = Format.TABLE,
    json: JsonOption = False,
) -> None:
    """Train a model on encoded data or on a table, and print the model's REF.

    A killed run goes on where it stood when the same command is given again; Ctrl-C writes a
    checkpoint first.

    Example: numtok train era5-xval --minutes 5
    """
    from numtok.cli._fitted import is_table, table_of, train_table

    chosen = Format.JSON if json else format
    if target is not None:
        data = table_of(context, data, target)
    if is_table(context, data):
        refuse(context, _OF_TEXTS, "a table")
        options = {
            "preset": preset,
            "head": head,
            "learning_rate": lr,
            "weight_decay": weight_decay,
        }
        train_table(
            context,
            chosen,
            table=data,
            normalize=normalize,
            fold=fold,
            rows=rows,
            epochs=epochs,
            patience=patience,
            validation=validation,
            batch=batch,
            seed=seed,
            device=device,
            name=name,
            restart=restart,
            force=force,
            **{key: value for key, value in options.items() if value is not None},
        )
        return
    refuse(context, _OF_TABLES, "encoded data")
    from numtok.cli.output.train import TrainingBar, print_result
    from numtok.stages.train import BUDGETS, Config, run

    if typed(context, BUDGETS):  # takes the place of another one in numtok.toml
        steps = given(context, "steps", steps)
        tokens = given(context, "tokens", tokens)
        minutes = given(context, "minutes", minutes)
    config = Config(
        encoded=data,
        preset=preset,
        objective=objective,
        embedder=embedder,
        head=head,
        steps=steps,
        tokens=tokens,
        minutes=minutes,
        batch=batch,
        accumulate=accumulate,
        recompute=recompute,
        compile=compile,
        learning_rate=lr,
        final_rate=lr_end,
        warmup=warmup,
        curriculum=curriculum,
        weight_decay=0.01 if weight_decay is None else weight_decay,
        clip=clip,
        seed=seed,
        init=init,
        device=device,
        precision=precision,
        checkpoint_steps=checkpoint_steps,
        batch_workers=batch_workers,
        profile=profile,
        name=name,
        restart=restart,
        force=force,
    )
    with TrainingBar(context.obj.quiet) as progress:
        result = run(config, open_store(context), progress)
    print_result(result, chosen, context.obj.quiet)
