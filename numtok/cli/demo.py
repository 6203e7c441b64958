"""``numtok demo``: three schemes on arithmetic, from data to comparison, in minutes."""

from typing import Annotated

import typer

_SCHEMES = ("xval", "p1000", "digits")
_LESSON = """\
What to look at: all models saw the same sums and products for as many steps.
- r2 is ruled by the largest answers, median-relative-error by the typical one:
  a scheme can be good at one and poor at the other.
- tokens per number and seconds are what a scheme costs for that.
- the baselines need no model: linear is least squares on the two operands; the
  limit quantisation is what writing the truth in the scheme already loses.
Next: the same chain on your own data, which begins with
`numtok encode --scheme xval --split validation=0.1,test=0.1 data.jsonl`."""


def command(
    context: typer.Context,
    steps: Annotated[
        int, typer.Option(metavar="N", help="Of training, for each of three schemes.")
    ] = 500,
) -> None:
    """Make, encode, learn and compare in a few minutes: how three schemes write arithmetic.

    The commands are printed as they are run, to be copied.

    Example: numtok demo
    """
    from numtok.cli._commands import Commands

    commands = Commands(context.obj)
    data = commands.ref(
        *("gen", "arithmetic", "--operands", "2", "--low", "1.00", "--high", "9.99"),
        *("--samples", "100000", "--split", "validation=0.01,test=0.02", "--name", "demo"),
    )
    reports = []
    for scheme in _SCHEMES:
        encoded = commands.ref("encode", "--scheme", scheme, data)
        options = f"--preset nano --steps {steps}".split()
        model = commands.ref("train", encoded, *options)
        reports.append(commands.ref("eval", model, encoded, quiet=True))
    commands.show("compare", *reports)
    print(f"\n{_LESSON}")
