"""``numtok sweep``: a file -> many runs, and their comparison."""

from dataclasses import dataclass

from numtok.declaration import check, setting

MOST_RUNS = 10_000  # of a sweep, unless --max-runs says another


@dataclass(frozen=True)
class Config:
    """What ``numtok sweep`` was asked for: ``changes`` of what the file says, as
    ``TABLE.KEY=VALUE``, how many runs go on side by side, and how many there may be."""

    file: str = setting(
        help="What to try; see docs/guide/sweep.md.", metavar="FILE.toml", argument=True
    )
    changes: tuple[str, ...] = setting(
        (),
        "In place of what the file says: train.steps=20, 'train.seed=[0, 1]'; repeatable.",
        flag="set",
        metavar="TABLE.KEY=VALUE",
    )
    jobs: int | None = setting(
        None,
        "Runs side by side. Default: one a core; one with a GPU or a budget in minutes.",
        metavar="N",
        at_least=1,
    )
    max_runs: int = setting(
        MOST_RUNS, "Refuse a file that asks for more runs.", metavar="N", at_least=1
    )

    def __post_init__(self) -> None:
        check(self)
