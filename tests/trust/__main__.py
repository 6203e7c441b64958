"""Run the tests of numtok's promises, and write docs/RELIABILITY.md: ``just trust``.

    just trust --minutes 60                     all promises share the time
    just trust faults kills --minutes 10
    just trust faults --seed 3 --case 17        repeat a case that failed
    just trust --again                          repeat every case that failed

Each run appends a line to tests/trust/runs.jsonl, and the page is made from that file. Each run has
its own seed, so the counts of all runs add up.
"""

import argparse
import datetime
import os
import subprocess
import sys
import time
from importlib.util import find_spec

from tests.trust.page import PAGE, PROMISES, ROOT, RUNS, Recorded, opened, page, recorded
from tests.trust.promise import Promise, Worlds


def main() -> int:
    """Run the promises that the arguments name, and return 1 if one was broken."""
    parser = argparse.ArgumentParser(prog="just trust", description="Test numtok's promises.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROMISES))
    parser.add_argument("--minutes", type=float, default=10, help="of all promises together")
    parser.add_argument("--seed", type=int, help="default: the next one of each promise")
    parser.add_argument("--case", type=int, help="repeat this case of the seed")
    parser.add_argument("--again", action="store_true", help="repeat every case that failed")
    parser.add_argument("--dry-run", action="store_true", help="record nothing")
    asked = parser.parse_args()
    if unknown := set(asked.names) - PROMISES.keys():
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(PROMISES)}")
    os.environ.setdefault("NUMTOK_THREADS", "1")
    runs, failed = recorded(), False
    names = asked.names or list(PROMISES)
    if "fuzzing" in names and not asked.again and find_spec("atheris") is None:
        print("trust: no fuzzing: atheris exists only for Linux on x86-64", file=sys.stderr)
        names.remove("fuzzing")
    jobs: list[tuple[str, int, list[int] | None]] = []
    for name in names:
        seed = 1 + max((run.seed for run in runs if run.promise == name), default=0)
        chosen = seed if asked.seed is None else asked.seed
        jobs.append((name, chosen, None if asked.case is None else [asked.case]))
    if asked.again:
        jobs = [(run.promise, run.seed, [one.case]) for run, one in opened(runs)]
    seconds = 60 * asked.minutes / max(1, len(jobs))
    with Worlds() as worlds:
        for name, seed, cases in jobs:
            run = _run(PROMISES[name], seed, seconds, worlds, cases)
            failed = failed or bool(run.broken)
            if not asked.dry_run:
                with RUNS.open("ab") as file:
                    file.write(run.line())
    if not asked.dry_run:
        PAGE.write_text(page(recorded()), encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return int(failed)


def _run(
    promise: Promise, seed: int, seconds: float, worlds: Worlds, cases: list[int] | None
) -> Recorded:
    begin, commit = time.monotonic(), _commit()
    count = promise.run(seed, seconds, worlds, cases)
    run = Recorded(
        promise=promise.name,
        seed=seed,
        seconds=round(time.monotonic() - begin, 1),
        date=datetime.date.today().isoformat(),
        commit=commit,
        done=count.done,
        broken=count.broken,
        cases=cases,
    )
    print(f"{promise.name}, seed {seed}: {run.done:,} {promise.unit} in {run.seconds:,.0f} s")
    for one in count.broken:
        print(f"  {one.kind}: {one.what}")
        print(f"  repeat: just trust {promise.name} --seed {seed} --case {one.case}", flush=True)
    return run


def _commit() -> str:
    def git(*words: str) -> str:
        told = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
        return told.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "numtok")
    return git("rev-parse", "--short=8", "HEAD") + "+" * bool(changed)


if __name__ == "__main__":
    sys.exit(main())
