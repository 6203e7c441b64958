"""What a race of minutes loses against training everything for five times as long: its regret.

    python benchmarks/race.py --uci /path/to/uci_datasets    # hours; goes on where it stopped
    python benchmarks/race.py --only arithmetic --minutes 2

Of each data set, which stand below as they were chosen before anything was run:

- *race*: ``numtok race --minutes 6``, three seeds in its last round.
- *exhaustive*: each candidate that its plan entered, three seeds of each, all for the same time,
  and all together for five times the minutes of the race; on the test split.

Regret is the skill of the best of the exhaustive runs minus that of the race's choice, both from
the exhaustive runs, with the interval of its paired bootstrap over samples and seeds; 0 where the
race chose the best. It is rather too large: the best of many on one test split is partly the
luckiest. *rank* is the place of the race's choice among all candidates, *best baseline* the best of
what needs no model, with its skill.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import msgspec
from _shared import table  # type: ignore[import-not-found]
from rich.console import Console

from numtok.settings.race import Config
from numtok.stages import fetch, gen
from numtok.store.store import Store
from numtok.sweeps.race.leaderboard import Leaderboard
from numtok.sweeps.race.plan import Plan, Round
from numtok.sweeps.race.progress import RaceProgress
from numtok.sweeps.race.race import RaceResult, run
from numtok.sweeps.race.rounds import Rounds
from numtok.sweeps.side import race_side

SEEDS, TIMES = 3, 5
MOST_STEPS = 100_000

#: Texts of sums and products; stories with their answers; orbits as nested lists; a table.
DATA: Mapping[str, Callable[[Store, Path | None], str]] = {
    "arithmetic": lambda store, _: made(store, "arithmetic", 6_000, operands=2),
    "wordproblems": lambda store, _: made(
        store, "wordproblems", 6_000, "train=0.7,validation=0.15,test=0.15", form="generate"
    ),
    "orbits": lambda store, _: made(store, "orbits", 3_000, "train=0.7,validation=0.15,test=0.15"),
    "airfoil": lambda store, copy: fetched(store, copy, "airfoil"),
}


def made(store: Store, task: str, samples: int, split: str | None = None, **options: Any) -> str:
    """The REF of data that a task makes."""
    config = gen.Config(task, samples=samples, split=split, options=options)
    return gen.run(config, store, lambda *_: None).ref


def fetched(store: Store, copy: Path | None, name: str) -> str:
    """The REF of a set of UCI, from a copy where one is given."""
    config = fetch.Config("uci", options={"set": name} | ({"from_": str(copy)} if copy else {}))
    return next(iter(fetch.run(config, store, lambda *_: None))).ref


def exhaustive(config: Config, raced: RaceResult, store: Store) -> Leaderboard:
    """All candidates of a race's plan on the test split, for ``TIMES`` its time altogether."""
    plan = raced.planned
    assert plan is not None
    count = len(plan.candidates)
    seconds = TIMES * config.seconds / (count * SEEDS)
    steps = [min(MOST_STEPS, max(1, int(seconds / one.pace))) for one in plan.candidates]
    whole: Plan = msgspec.structs.replace(
        plan, rounds=[], last=Round(count, seconds, steps), seeds=SEEDS
    )
    artifacts = {ref: store.resolve(ref) for ref in {one.data for one in plan.candidates}}
    quiet = Store(store.root, lambda note: None, any_name=True)
    side = race_side(config, ())._replace(threads=plan.threads)
    rounds = Rounds(config, whole, artifacts, quiet, side, told)
    _, board = rounds.run()
    return board


def told(update: RaceProgress) -> None:
    """A line of the log."""
    if update.line:
        print(update.line, file=sys.stderr, flush=True)


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """A figure and its interval."""
    return "-" if value is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--only", choices=list(DATA), action="append")
    parser.add_argument("--uci", type=Path)
    parser.add_argument("--store", type=Path, default=Path("artifacts"))
    chosen = parser.parse_args()
    store = Store(chosen.store, lambda note: None)
    heads = ["regret", "rank", "skill of the choice", "best baseline"]
    shown = table(
        f"races of {chosen.minutes:g} minutes against {TIMES} times that",
        ["data", "race chose", "best of all"],
        heads,
    )
    for name in chosen.only or DATA:
        config = Config((DATA[name](store, chosen.uci),), minutes=chosen.minutes, seeds=SEEDS)
        print(f"== {name}: race", file=sys.stderr, flush=True)
        raced = run(config, store, told, lambda result: None)
        print(f"== {name}: exhaustive", file=sys.stderr, flush=True)
        board = exhaustive(config, raced, store)
        winner = board.place(str(raced.winner))
        models = [one.label for one in board.places if one.is_model]
        regret, skill, baseline = winner.behind, winner.skill, board.place(board.baseline).skill
        shown.add_row(
            name,
            winner.label,
            board.best,
            "0" if regret is None else interval(regret.value, regret.low, regret.high),
            f"{models.index(winner.label) + 1} of {len(models)}",
            interval(skill.value, skill.low, skill.high),
            f"{board.baseline} {baseline.value:.3f}",
        )
        Console(width=160).print(shown)


if __name__ == "__main__":
    main()
