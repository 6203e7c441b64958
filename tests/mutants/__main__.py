"""``python -m tests.mutants``: ``run`` the tests on mutants, ``record`` which test runs what, so
that ``run`` is quick, or ``draw`` the second list anew."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants import running
from tests.mutants.coverage import Record
from tests.mutants.drawing import drawn
from tests.mutants.mutant import LISTS, ROOT, read, write


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--only", nargs="+", metavar="NAME", help="these mutants")
    run.add_argument("--list", choices=LISTS, action="append", help="of this list (both)")
    run.add_argument("--results", type=Path, help="goes on where this file of lines ends")
    run.add_argument("--record", type=Path, required=True, help="what `record` wrote")
    run.add_argument("--within", type=float, default=1e9, help="seconds of tests a mutant")
    run.add_argument(
        "--tests", nargs="+", default=[], metavar="EXPR", help="with this in their names"
    )
    record = commands.add_parser("record")
    record.add_argument("file", type=Path)
    draw = commands.add_parser("draw")
    draw.add_argument("--seed", type=int, default=1)
    draw.add_argument("--count", type=int, default=60)
    return parser.parse_args()


def main() -> int:
    asked = _parsed()
    if asked.command == "draw":
        write("drawn", drawn(asked.seed, asked.count))
        return 0
    # As from a terminal, also where this was begun in the background: tests send SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked.command == "record":
        part = asked.file.resolve().with_suffix(".part")
        part.unlink(missing_ok=True)
        plugins = ["-p", "no:cacheprovider", "-p", "tests.mutants.recording"]
        tests = [sys.executable, "-m", "pytest", "-q", *plugins]
        environment = os.environ | {"NUMTOK_MUTANTS_RECORD": str(part)}
        code = subprocess.run(tests, cwd=ROOT, env=environment, check=False).returncode
        part.rename(asked.file)
        return code
    mutants = [one for name in asked.list or LISTS for one in read(name)]
    if asked.only:
        mutants = [one for one in mutants if one.name in asked.only]
    with tempfile.TemporaryDirectory(prefix="numtok-mutants-") as folder:
        results = asked.results or Path(folder) / "results.jsonl"
        record = Record.read(asked.record)
        missed = running.run(mutants, results, record, Path(folder), asked.within, asked.tests)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
