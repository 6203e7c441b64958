"""Runs tests on mutants: a copy of the tree, one change at a time, until a test fails."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

from tests.mutants.coverage import Record, nearest_files
from tests.mutants.mutant import ROOT, Mutant

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
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._environment = kept | {
            "PYTHONPATH": str(self.root),
            "XDG_CACHE_HOME": str(folder / "cache"),  # of compiled kernels
            "TMPDIR": str(folder),
            "NUMTOK_MUTANTS_TESTS": str(self._listed),
            "NUMTOK_MUTANTS_FAILED": str(self._failed),
        }

    def mutate(self, mutant: Mutant) -> None:
        path = self.root / mutant.file
        path.write_text(mutant.applied(path.read_text()))

    def restore(self, mutant: Mutant) -> None:
        """With the old time too, so that byte code and kernels are found again."""
        shutil.copy2(ROOT / mutant.file, self.root / mutant.file)

    def failing(
        self, tests: Sequence[str], limit: float, selected: bool = True, stop: bool = True
    ) -> list[str]:
        """The tests that fail, the first one alone with ``stop``; ``selected``: by their names in
        that order, else all that pytest makes of the arguments."""
        self._listed.write_text("\n".join(tests))
        self._failed.write_text("")
        files = dict.fromkeys(one.partition("::")[0] for one in tests) if selected else tests
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "tests.mutants.selection", *["-x"] * stop, *files]
        names = () if selected else ("NUMTOK_MUTANTS_TESTS",)
        with subprocess.Popen(
            command,
            cwd=self.root,
            env={k: v for k, v in self._environment.items() if k not in names},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                told = process.communicate(timeout=limit)[0]
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return [f"no end within {limit:.0f} s"]
        if failed := self._failed.read_text().splitlines():
            return list(dict.fromkeys(failed))
        if process.returncode in (0, 5):  # 5: there is no such test
            return []
        return [f"pytest ended with {process.returncode}: {' '.join(told.split())[-200:]}"]


def judge(
    mutant: Mutant, copy: Copy, record: Record, within: float, given: Sequence[str]
) -> Verdict:
    """What the tests say of a mutant, the nearest asked first. ``within``: seconds of tests, by the
    record, after which the rest is left; ``given``: the tests to run instead."""
    begin = time.monotonic()
    covering = [] if given else record.tests(mutant)
    upto = list(accumulate(record.seconds[test] for test in covering))
    first, kept = (1 + bisect_left(upto, seconds) for seconds in (min(_FIRST, within), within))
    parts: list[tuple[Sequence[str], bool, float]] = [(given or nearest_files(mutant), False, 1e3)]
    if covering:
        halves = covering[:first], covering[first:kept]
        parts = [
            (half, True, _START + _SLOWER * sum(record.seconds[one] for one in half))
            for half in halves
            if half
        ]
    copy.mutate(mutant)
    try:
        failed = next(
            (found[0] for part in parts if (found := copy.failing(part[0], part[2], part[1]))), ""
        )
    finally:
        copy.restore(mutant)
    left = max(0, len(covering) - kept)
    outcome = "caught" if failed else "undecided" if left else "survived"
    return Verdict(
        mutant.name,
        outcome,
        failed,
        round(time.monotonic() - begin, 1),
        min(kept, len(covering)),
        left,
    )


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
    """Judge those that the results lack; how many were not caught."""
    known = read_results(results)
    copy, found = Copy(folder), []
    for mutant in mutants:
        if mutant.name in known or mutant.equivalent:
            continue
        verdict = judge(mutant, copy, record, within, given)
        found.append(verdict)
        _append(results, [verdict])
        print(f"{verdict.outcome:9} {verdict.name}  {verdict.test}  {verdict.seconds:.0f} s")
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
