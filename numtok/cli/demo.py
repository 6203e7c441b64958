"""``numtok demo``: three schemes on arithmetic, from data to comparison, in minutes."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from numtok.cli._shared import Invocation

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
    commands = _Commands(context.obj)
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


class _Commands:
    """Runs commands in processes of their own, each printed as it can be copied.

    They get the global options of this one. One that fails ends this one with its exit code.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._store = ["--store", str(invocation.store)]
        self._told = self._store if invocation.store != Path("artifacts") else []

    def ref(self, *words: str, quiet: bool = False) -> str:
        """Run a command that makes an artifact, and return its REF."""
        done = self._run([*words, *(["-q"] if quiet else [])], subprocess.PIPE)
        ref = done.stdout.strip()
        print(ref, flush=True)
        return ref

    def show(self, *words: str) -> None:
        """Run a command that only prints."""
        self._run(list(words), None)

    def _run(self, words: list[str], stdout: int | None) -> "subprocess.CompletedProcess[str]":
        print(f"\n$ {shlex.join(['numtok', *words, *self._told])}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "numtok", *words, *self._store], stdout=stdout, text=True
        )
        if done.returncode:
            raise typer.Exit(done.returncode)
        return done
