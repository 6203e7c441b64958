"""``numtok predict``: predict unknown numbers, labels or answers with a model."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import typer

from numtok.cli._options import options_check
from numtok.cli._shared import open_store
from numtok.settings.predict import Config


def command(context: typer.Context, settings: Config) -> None:
    """Fill in unknown numbers, labels or answers.

    In a text, unknown numbers are written [?]. Each row is printed as JSON with a field
    "predicted". Rows of CSV and Parquet files are printed as CSV with additional columns. With
    --baseline, a baseline predicts instead of a model.

    Example: numtok predict mine-xval-nano --text "it is [?] degrees at noon"
    """
    from numtok.cli.output.progress import Count

    check = options_check(context, settings)
    store = open_store(context)
    if settings.baseline is None:
        from numtok.stages.predict import run

        rows = run(settings, store, check)
    else:
        from numtok.sweeps import baseline_rows

        rows = baseline_rows.run(settings, store)
    on_terminal = sys.stdout.isatty()
    readable = on_terminal and bool(settings.text)
    # In a terminal the lines are progress enough; a bar would be drawn between them.
    with Count(context.obj.quiet or on_terminal) as progress, closing(rows) as lines:
        for done, line in enumerate(lines, 1):
            if readable:
                for shown in readable_lines(json.loads(line)["predicted"], settings.interval):
                    print(shown)
            else:
                sys.stdout.buffer.write(line)
            progress.show("predicting", done, None)
    sys.stdout.flush()


def readable_lines(predicted: dict[str, Any], level: float | None = None) -> Iterator[str]:
    """Yield the lines that a terminal shows for a prediction: the completed text, then each number
    with its calibrated interval at ``level``, or with its quantiles if ``level`` is None.

    >>> number = {"literal": "6.7", "value": 6.7021, "q05": 6.4412, "q95": 6.9678}
    >>> list(readable_lines({"text": "it is 6.7 m", "numbers": [number]}))
    ['it is 6.7 m', '  6.70 (90%: 6.44 to 6.97)']
    >>> list(readable_lines({"numbers": [number | {"interval": [6.52, 6.88]}]}, 0.8))[1]
    '  6.70 (80%: 6.52 to 6.88)'
    """
    from numtok.cli.output.figures import interval
    from numtok.cli.output.printing import one_line

    yield one_line(str(predicted.get("text", predicted.get("label", ""))))
    for number in predicted.get("numbers", ()):
        if number["literal"] is None:
            yield "  no number: the output is not a number in range (for example, OVERFLOW or text)"
            continue
        low, high = number.get("interval", (number.get("q05"), number.get("q95")))
        if low is not None and high is not None:
            shown = interval(number["value"], low, high)
            percent = f"{100 * (0.9 if level is None else level):g}%"
            yield f"  {shown.value} ({percent}: {shown.between})" if shown.ends else f"  {shown}"
