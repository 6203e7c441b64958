"""``numtok figure``."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from numtok.cli._shared import open_store, refuse


def command(
    context: typer.Context,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="truth, error, frequencies, curve, density, lines, bars; of probes: sweep, "
            "confidence, embedding, pca.",
        ),
    ],
    refs: Annotated[
        list[str],
        typer.Argument(
            metavar="REF...", help="REFs of reports or probes; density: of models and a table."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Ends in .png or .svg.")],
    size: Annotated[
        str | None, typer.Option(metavar="WxH", help="In pixels. Default: 800x600, grids more.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="SPEC", help="lines, bars: kendall-tau ... Default: r2.")
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="lines: rows, head.layers, embedder.sigma, data.dimension ..."
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(help="lines, bars: intervals over seeds (the default) or folds."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="Of values: linear (the default), log or signed-log.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="truth, error, frequencies: of that target alone."),
    ] = None,
    seen: Annotated[
        bool | None, typer.Option("--seen", help="truth: mark the values of the train split.")
    ] = None,
    relative: Annotated[
        bool | None, typer.Option("--relative", help="error: over the size of the truth.")
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="frequencies: of the mantissa, exponent or number (the default)."),
    ] = None,
    digits: Annotated[
        int | None, typer.Option(metavar="N", help="frequencies: of the mantissa. Default: 3.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(metavar="K", help="frequencies: at most so many. Default: 20.")
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="density: whose rows. Default: test.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(metavar="N", help="density: at most so many. Default: 2000.")
    ] = None,
) -> None:
    """Draw reports and probes: predictions against truth, curves, a metric over a setting.

    Example: numtok figure truth sums-xval sums-p1000 --out truth.png
    """
    from numtok.analysis.figures.base import FIGURES
    from numtok.stages.figure import Config, run

    given: dict[str, Any] = {
        "metric": metric,
        "x": x,
        "over": over,
        "scale": scale,
        "target": target,
        "seen": seen,
        "relative": relative,
        "part": part,
        "digits": digits,
        "top": top,
        "split": split,
        "rows": rows,
    }
    chosen = FIGURES[kind]
    known = {field.name for field in fields(chosen)}  # type: ignore[arg-type]
    refuse(context, given.keys() - known, f"figure {kind}")
    options = {name: given[name] for name in known if given[name] is not None}
    run(Config(chosen(**options), tuple(refs), out, _size(size)), open_store(context))
    print(out)


def _size(text: str | None) -> tuple[int, int] | None:
    """``"800x600" -> (800, 600)``"""
    from numtok.errors import UsageError

    if text is None:
        return None
    if not re.fullmatch(r"\d{1,5}x\d{1,5}", text):
        raise UsageError(f"--size {text!r} is not width x height in pixels, such as 800x600")
    width, height = text.split("x")
    return int(width), int(height)
