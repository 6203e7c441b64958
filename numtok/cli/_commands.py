"""Runs numtok's own commands one after the other, each printed as it can be copied."""

import shlex
import subprocess
import sys
from pathlib import Path

import typer

from numtok.cli._shared import Invocation


class Commands:
    """Commands in processes of their own, with the global options of this one.

    A command that fails ends this one with its exit code; it has said why.
    """

    def __init__(self, invocation: Invocation) -> None:
        self._store = ["--store", str(invocation.store)]
        self._told = self._store if invocation.store != Path("artifacts") else []

    def ref(self, *words: str, quiet: bool = False) -> str:
        """Run a command that makes an artifact, and give its REF; ``quiet``: without its table."""
        done = self._run([*words, *(["-q"] if quiet else [])], subprocess.PIPE)
        ref = done.stdout.strip()
        print(ref, flush=True)
        return ref

    def show(self, *words: str) -> None:
        """Run a command for what it prints."""
        self._run(list(words), None)

    def _run(self, words: list[str], stdout: int | None) -> "subprocess.CompletedProcess[str]":
        print(f"\n$ {shlex.join(['numtok', *words, *self._told])}", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "numtok", *words, *self._store], stdout=stdout, text=True
        )
        if done.returncode:
            raise typer.Exit(done.returncode)
        return done
