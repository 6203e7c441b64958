"""Runs tests on mutants: a copy of the tree, one change at a time, until a test fails."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

import pytest

from tests.mutants.coverage import Record
from tests.mutants.mutant import ROOT, Mutant

# Read before processes are forked: of most tests this is nearly all of the time.
_LIBRARIES: tuple[str, ...] = (
    "torch",
    "numba",
    "polars",
    "pyarrow.parquet",
    "scipy.stats",
    "tokenizers",
)
_LIBRARIES += ("safetensors.torch", "typer", "rich.table", "msgspec")
_FIRST = 10.0  # seconds of tests that are run first, by the record
_SLOWER = 8  # times, than in the record, before tests are taken for a loop
_START = 240.0  # seconds for a start and for kernels that are compiled again


@dataclass(frozen=True)
class Verdict:
    """``caught``, ``survived``, or ``undecided``: tests that ran it are left, or the one that
    failed fails without it too. ``test`` is the first that failed."""

    name: str
    outcome: str
    test: str = ""
    seconds: float = 0.0
    tests: int = 0
    left: int = 0


class Copy:
    """The files of the tree that git knows or would add, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).exists():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.root / name)
        self._listed, self._failed = folder / "tests", folder / "failed"
        self._told = folder / "told"
        self._environment = {
            "PYTHONPATH": str(self.root),
            "XDG_CACHE_HOME": str(folder / "cache"),  # of compiled kernels
            "TMPDIR": str(folder),
            "GOMP_SPINCOUNT": "1000",
            "NUMTOK_MUTANTS_TESTS": str(self._listed),
            "NUMTOK_MUTANTS_FAILED": str(self._failed),
        }

    def mutate(self, mutant: Mutant) -> None:
        path = self.root / mutant.file
        path.write_text(mutant.applied(path.read_text()))

    def restore(self, mutant: Mutant) -> None:
        """With the old time too, so that byte code and kernels are found again."""
        shutil.copy2(ROOT / mutant.file, self.root / mutant.file)

    def failing(self, tests: Sequence[str], limit: float, stop: bool = True) -> list[str]:
        """The tests that fail, run in that order; with ``stop`` the first one alone."""
        self._listed.write_text("\n".join(tests))
        self._failed.write_text("")
        arguments = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "tests.mutants.selection",
            *["-x"] * stop,
        ]
        arguments += dict.fromkeys(one.partition("::")[0] for one in tests)
        child = os.fork()
        if child == 0:
            code = 70
            try:
                code = self._tested(arguments)
            finally:
                os._exit(code)
        end = time.monotonic() + limit
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return [f"no end within {limit:.0f} s"]
            time.sleep(0.05)
        if failed := self._failed.read_text().splitlines():
            return list(dict.fromkeys(failed))
        if (code := os.waitstatus_to_exitcode(ended[1])) in (0, 5):  # 5: there is no such test
            return []
        return [f"pytest ended with {code}: {self._told.read_text(errors='replace')[-200:]!r}"]

    def _tested(self, arguments: list[str]) -> int:
        """pytest in a fork of this process, which has read the libraries, but not numtok."""
        os.setsid()
        out = os.open(self._told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(self.root)
        os.environ.update(self._environment)
        tempfile.tempdir = None
        sys.path[:] = [str(self.root), *(one for one in sys.path if one not in ("", str(ROOT)))]
        for name in [one for one in sys.modules if one.partition(".")[0] in ("tests", "numtok")]:
            del sys.modules[name]
        sys.modules["__main__"] = importlib.import_module("pytest.__main__")  # of what is spawned
        return int(pytest.main(arguments))


def judge(
    mutant: Mutant, copy: Copy, tests: Sequence[str], record: Record, within: float
) -> Verdict:
    """What tests say of a mutant, in that order. ``within``: seconds of them, by the record, after
    which the rest is left."""
    begin = time.monotonic()
    upto = [0.0, *accumulate(record.seconds[test] for test in tests)]
    kept = bisect_left(upto, within, hi=len(tests))
    first = min(kept, bisect_left(upto, _FIRST))
    failed: list[str] = []
    copy.mutate(mutant)
    try:
        for some in (slice(first), slice(first, kept)):
            if tests[some] and not failed:
                seconds = sum(record.seconds[test] for test in tests[some])
                failed = copy.failing(tests[some], _START + _SLOWER * seconds)
    finally:
        copy.restore(mutant)
    left = len(tests) - kept
    outcome = "caught" if failed else "undecided" if left else "survived"
    seconds = round(time.monotonic() - begin, 1)
    return Verdict(mutant.name, outcome, "".join(failed[:1]), seconds, kept, left)


def controlled(verdicts: Sequence[Verdict], copy: Copy) -> list[Verdict]:
    """Those whose test fails without the mutant too, as undecided."""
    tests = list(dict.fromkeys(one.test for one in verdicts if "::" in one.test))
    if not tests:
        return []
    anyway = set(copy.failing(tests, 3600.0, stop=False))
    return [
        Verdict(one.name, "undecided", f"fails without it too: {one.test}", one.seconds)
        for one in verdicts
        if one.test in anyway
    ]


def run(
    mutants: Sequence[Mutant],
    results: Path,
    record: Record,
    folder: Path,
    within: float,
    given: Sequence[str],
) -> int:
    """Judge those that the results lack; how many were not caught. ``given``: parts of the names of
    tests, of which alone to run those."""
    known = read_results(results)
    for library in _LIBRARIES:
        importlib.import_module(library)
    copy, found = Copy(folder), []
    for mutant in mutants:
        if mutant.name in known or mutant.equivalent:
            continue
        tests = record.tests(mutant)
        if given:
            tests = [test for test in record.seconds if any(part in test for part in given)]
        verdict = judge(mutant, copy, tests, record, within)
        found.append(verdict)
        _append(results, [verdict])
        print(f"{verdict.outcome:9} {mutant.name}  {verdict.test}", flush=True)
    _append(results, controlled(found, copy))
    known = read_results(results)
    asked = [known[one.name] for one in mutants if one.name in known]
    missed = [one for one in asked if one.outcome != "caught"]
    print(f"{len(asked) - len(missed)} of {len(asked)} are caught")
    for one in missed:
        print(f"{one.outcome}: {one.name} {one.test}")
    return len(missed)


def read_results(path: Path) -> dict[str, Verdict]:
    """The last verdict of each mutant, by its name."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {one["name"]: Verdict(**one) for one in map(json.loads, lines)}


def _append(path: Path, verdicts: Sequence[Verdict]) -> None:
    with path.open("a") as out:
        out.writelines(json.dumps(asdict(one)) + "\n" for one in verdicts)
