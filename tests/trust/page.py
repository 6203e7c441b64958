"""Generate docs/RELIABILITY.md from the recorded runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.trust.damage import DAMAGE
from tests.trust.determinism import DETERMINISM
from tests.trust.faults import FAULTS, READ_ONLY
from tests.trust.fuzzing import FUZZING
from tests.trust.hostile import HOSTILE
from tests.trust.literals import LITERALS
from tests.trust.processes import PROCESSES
from tests.trust.promise import Broken
from tests.trust.round_trips import ROUND_TRIPS
from tests.trust.schedules import SCHEDULES
from tests.trust.signals import INTERRUPTS, KILLS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/RELIABILITY.md"
RUNS = Path(__file__).with_name("runs.jsonl")
_ALL = (
    *(FAULTS, KILLS, INTERRUPTS, READ_ONLY, PROCESSES, SCHEDULES, DAMAGE),
    *(LITERALS, ROUND_TRIPS, DETERMINISM, HOSTILE, FUZZING),
)
PROMISES = {promise.name: promise for promise in _ALL}
_KINDS = ("lost", "wrong", "traceback")
_HEAD = """# Reliability

Each promise of numtok has a test, and its checks are counted over all runs. `just trust` runs the \
tests, adds a line per run to `tests/trust/runs.jsonl`, and rewrites this page. `just trust faults \
--minutes 10` runs one promise. If a case fails, the command that repeats it is printed.

A case is a function of the promise, its seed and its number. *Lost* counts finished work that is \
gone or damaged, *wrong* any other broken promise. Cases that failed and pass now are listed at \
the end and not counted. Times are wall-clock times of one process on a machine that was shared."""


class Recorded(msgspec.Struct, frozen=True):
    """One run of a promise: new cases, or a repetition of the given ``cases``."""

    promise: str
    seed: int
    seconds: float
    date: str
    commit: str
    done: int
    broken: list[Broken]
    cases: list[int] | None = None

    def line(self) -> bytes:
        """Return this run as a line of runs.jsonl."""
        return msgspec.json.encode(self) + b"\n"


def recorded() -> list[Recorded]:
    """Return all recorded runs."""
    lines = RUNS.read_bytes().splitlines() if RUNS.exists() else []
    return [msgspec.json.decode(line, type=Recorded) for line in lines]


def opened(runs: Sequence[Recorded]) -> Iterator[tuple[Recorded, Broken]]:
    """Yield the failed cases that have not passed since."""
    for run, one, mended in _found(runs):
        if mended is None:
            yield run, one


def _found(runs: Sequence[Recorded]) -> Iterator[tuple[Recorded, Broken, Recorded | None]]:
    """Yield each failed case with its latest repetition if that passed, otherwise None."""
    for run in runs:
        for one in run.broken if run.cases is None else ():
            again = [
                later
                for later in runs
                if (later.promise, later.seed) == (run.promise, run.seed)
                and one.case in (later.cases or ())
            ]
            passed = bool(again) and not again[-1].broken
            yield run, one, again[-1] if passed else None


def page(runs: Sequence[Recorded]) -> str:
    """Return the page as Markdown."""
    still = [(run.promise, one.kind) for run, one in opened(runs)]
    head = ("promise", "checks", "aim", "lost", "wrong", "tracebacks", "time", "to the aim")
    rows = [head, ("---", *["---:"] * (len(head) - 1))]
    for promise in PROMISES.values():
        own = [run for run in runs if run.promise == promise.name and run.cases is None]
        done, seconds = sum(run.done for run in own), sum(run.seconds for run in own)
        left = max(0, promise.aim - done) * seconds / done if done else 0.0
        counts = [str(still.count((promise.name, kind))) for kind in _KINDS]
        ahead = (_time(left) if left else "reached") if done else "not begun"
        aim, checks = f"{promise.aim:,} {promise.unit}", f"{done:,}"
        rows.append((promise.name, checks, aim, *counts, _time(seconds), ahead))
    parts = [_HEAD, _table(rows)]
    for promise in PROMISES.values():
        parts += [f"## {promise.name}", promise.says, f"Test: {promise.how}"]
    parts += ["## Runs", _runs(runs), "## Found and mended", _mended(runs)]
    return "\n\n".join(parts) + "\n"


def _runs(runs: Sequence[Recorded]) -> str:
    head = ("date", "commit", "promise", "seed", "checks", "time", "failed cases")
    rows = [head, ("---", "---", "---", *["---:"] * 4)]
    for run in runs:
        if run.cases is None:
            counts = (str(run.seed), f"{run.done:,}", _time(run.seconds), str(len(run.broken)))
            rows.append((run.date, f"`{run.commit}`", run.promise, *counts))
    return _table(rows)


def _mended(runs: Sequence[Recorded]) -> str:
    rows = [
        ("promise", "seed", "case", "kind", "passes since"),
        ("---", "---:", "---:", "---", "---"),
    ]
    for run, one, mended in _found(runs):
        since = "open" if mended is None else f"`{mended.commit}`"
        rows.append((run.promise, str(run.seed), str(one.case), one.kind, since))
    return _table(rows) if rows[2:] else "No case failed."


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
