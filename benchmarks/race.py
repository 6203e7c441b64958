"""Regret of a race: its loss against training every candidate for five times the time.

    python benchmarks/race.py --uci COPY --out regret.md 2>> regret.log    # two to three hours
    python benchmarks/race.py --only arithmetic --minutes 2

The same command resumes a stopped run, because all results are in the store.

The data sets below were chosen before anything was run. For each:

- *race*: ``numtok race --minutes 6``, with three seeds in its last round.
- *exhaustive*: each candidate of the race's plan with three seeds and equal time, five times the
  minutes of the race in total, on the test split.

Regret is the skill of the best exhaustive run minus that of the race's choice, also from the
exhaustive runs. Its interval is a paired bootstrap over samples and seeds. Regret is 0 if the race
chose the best. It is rather too large, because the best of many on one test split is partly luck.
*rank* is the rank of the race's choice among all candidates.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import msgspec

from numtok.evaluation.rivals import rivals
from numtok.reports import Figure
from numtok.settings.race import Config
from numtok.stages import fetch, gen
from numtok.store.store import Store
from numtok.sweeps.parallel import race_parallelism
from numtok.sweeps.race.leaderboard import Leaderboard
from numtok.sweeps.race.plan import Plan, RaceProgress, Round
from numtok.sweeps.race.race import RaceResult, run
from numtok.sweeps.race.rounds import Rounds

SEEDS, TIMES = 3, 5
MOST_STEPS = 100_000

#: Texts of sums and products, stories with answers, orbits as nested lists, and a table.
DATA: Mapping[str, Callable[[Store, Path | None], str]] = {
    "arithmetic": lambda store, _: made(store, "arithmetic", 6_000, operands=2),
    "wordproblems": lambda store, _: made(
        store, "wordproblems", 6_000, "train=0.7,validation=0.15,test=0.15", form="generate"
    ),
    "orbits": lambda store, _: made(store, "orbits", 3_000, "train=0.7,validation=0.15,test=0.15"),
    "airfoil": lambda store, copy: fetched(store, copy, "airfoil"),
}


def made(store: Store, task: str, samples: int, split: str | None = None, **options: Any) -> str:
    """Generate data of a task and return its REF."""
    config = gen.Config(task, samples=samples, split=split, options=options)
    return gen.run(config, store, lambda *_: None).ref


def fetched(store: Store, copy: Path | None, name: str) -> str:
    """Fetch a UCI set, from the copy if there is one, and return its REF."""
    config = fetch.Config("uci", options={"set": name} | ({"from_": str(copy)} if copy else {}))
    return next(iter(fetch.run(config, store, lambda *_: None))).ref


def exhaustive(config: Config, raced: RaceResult, store: Store) -> Leaderboard:
    """Train all candidates of a race's plan for ``TIMES`` its time in total, and evaluate them on
    the test split.
    """
    plan = raced.planned
    assert plan is not None
    count, several = len(plan.candidates), plan.tried > 1
    parallel = race_parallelism(config, ())._replace(threads=plan.threads)
    runs = count * (SEEDS + plan.tried * several)
    seconds = TIMES * config.seconds * parallel.jobs / runs
    steps = [min(MOST_STEPS, max(1, int(seconds / one.pace))) for one in plan.candidates]
    every = Round(count, seconds, steps)
    whole: Plan = msgspec.structs.replace(plan, rounds=[every] * several, last=every, seeds=SEEDS)
    artifacts = {ref: store.resolve(ref) for ref in {one.data for one in plan.candidates}}
    quiet = Store(store.root, lambda note: None, any_name=True)
    rounds = Rounds(
        config=config,
        plan=whole,
        data=artifacts,
        baselines=rivals(next(iter(artifacts.values())), plan.test, plan.rows[1]),
        store=quiet,
        parallel=parallel,
        progress=told,
    )
    return rounds.run().test


def told(update: RaceProgress) -> None:
    """Log a line of progress."""
    if update.line:
        log(update.line)


def log(line: str) -> None:
    """Print a line with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


def interval(found: Figure) -> str:
    """Return a value and its interval; "-" if it is undefined."""
    if found.value is None or found.low is None or found.high is None:
        return "-" if found.value is None else f"{found.value:.3f}"
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


class Regret(NamedTuple):
    """A row of the table. The regret is a number, or None if undefined; all else is text."""

    data: str
    candidates: str
    race_chose: str
    best_of_all: str
    regret: float | None
    told: str
    tie: str
    rank: str
    skill: str
    median: str
    over_baseline: str


def measured(name: str, raced: RaceResult, board: Leaderboard) -> Regret:
    """Return the row of the table for one data set."""
    winner = board.place(str(raced.winner))
    models = [one for one in board.places if one.is_model]
    skills = [one.skill.value for one in models if one.skill.value is not None]
    return Regret(
        name,
        str(len(models)),
        winner.label,
        board.best,
        0.0 if winner.behind is None else winner.behind.value,
        "0" if winner.behind is None else interval(winner.behind),
        "yes" if winner.tied else "no",
        f"{models.index(winner) + 1}",
        interval(winner.skill),
        f"{statistics.median(skills):.3f}",
        f"{interval(winner.over_baseline)} over {board.baseline}",
    )


HEADS = ["data", "candidates", "race chose", "best of all", "regret", "ties with the best", "rank"]
HEADS += ["skill of the choice", "of the median candidate", "over the best baseline"]


def markdown(rows: Sequence[Regret], minutes: float) -> str:
    """Return the table so far, and the mean of the defined regrets."""
    lines = [
        f"Races of {minutes:g} minutes against {TIMES} times that for all candidates.\n",
        f"| {' | '.join(HEADS)} |",
        f"|{'---|' * len(HEADS)}",
    ]
    for row in rows:
        cells = [*row[:4], *row[5:]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    regrets = [row.regret for row in rows if row.regret is not None]
    mean = f"{statistics.mean(regrets):.3f}" if regrets else "-"
    return "\n".join([*lines, f"\nMean regret {mean}."]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--rates", type=int, help="default: as races have it")
    parser.add_argument("--preset", help="the size of all models; default: by data and time")
    parser.add_argument("--only", choices=list(DATA), action="append")
    parser.add_argument("--uci", type=Path, help="a copy of uci_datasets")
    parser.add_argument("--store", type=Path, default=Path("artifacts"))
    parser.add_argument("--out", type=Path, help="the table, too; written after each data set")
    chosen = parser.parse_args()
    store = Store(chosen.store, lambda note: None)
    rows: list[Regret] = []
    for name in chosen.only or DATA:
        config = Config(
            (DATA[name](store, chosen.uci),),
            minutes=chosen.minutes,
            seeds=SEEDS,
            rates=chosen.rates,
            preset=chosen.preset,
        )
        log(f"== {name}: race")
        raced = run(config, store, told, lambda result: None)
        log(f"== {name}: exhaustive")
        rows.append(measured(name, raced, exhaustive(config, raced, store)))
        if chosen.out is not None:
            chosen.out.write_text(markdown(rows, chosen.minutes))
    print(markdown(rows, chosen.minutes), end="")


if __name__ == "__main__":
    main()
