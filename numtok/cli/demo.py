"""``numtok demo``: generate arithmetic data, train models with three schemes, and compare them."""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from numtok.cli._shared import Invocation

_SCHEMES = ("xval", "p1000", "digits")
_LESSON = """\
How to read this: all models trained on the same sums and products for the same
number of steps.
- r2 depends on the largest answers, median-relative-error on typical ones: a
  scheme can be good at one and poor at the other.
- tokens per number and seconds are the cost of a scheme.
- baselines need no model: linear is least squares on the two operands, and
  quantization is the error of writing the true values in the scheme.
Next, find the best encoding for your own data: numtok race data.jsonl"""


def command(
    context: typer.Context,
    steps: Annotated[
        int, typer.Option(metavar="N", help="Training steps for each of three schemes")
    ] = 500,
) -> None:
    """Compare three encodings on arithmetic, in minutes.

    Generates data, encodes it, trains and evaluates three models, and compares them. Each command
    is printed before it runs, so that you can copy it.

    Example: numtok demo
    """
    commands = _Commands(context.obj)
    data = commands.ref(
        *("gen", "arithmetic", "--operands", "2", "--low", "1.00", "--high", "9.99"),
        *("--rows", "100000", "--split", "validation=0.01,test=0.02", "--name", "demo"),
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
    """Prints and runs commands in processes of their own, with the global options of this one.

    If a command fails, this one exits with its exit code.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._store = ["--store", str(invocation.store)]
        self._shown = self._store if invocation.store != Path("artifacts") else []

    def ref(self, *words: str, quiet: bool = False) -> str:
        """Run a command that creates an artifact, and return its REF."""
        done = self._run([*words, *(["-q"] if quiet else [])], subprocess.PIPE)
        ref = done.stdout.strip()
        print(ref, flush=True)
        return ref

    def show(self, *words: str) -> None:
        """Run a command that only prints."""
        self._run(list(words), None)

    def _run(self, words: list[str], stdout: int | None) -> "subprocess.CompletedProcess[str]":
        print(f"\n$ {shlex.join(['numtok', *words, *self._shown])}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "numtok", *words, *self._store], stdout=stdout, text=True
        )
        if done.returncode:
            raise typer.Exit(done.returncode)
        return done
