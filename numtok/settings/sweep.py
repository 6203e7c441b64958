"""``numtok sweep``: a file -> many runs, and their comparison."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields

MOST_RUNS = 10_000  # of a sweep, unless --max-runs says another


def _no_part(value: str) -> str | None:
    k, _, m = value.partition("/")
    if k.isdecimal() and m.isdecimal() and 1 <= int(k) <= int(m):
        return None
    return "is no part; it is K/M with K from 1 to M, such as 3/8"


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok sweep`` was asked for: ``changes`` of what the file says, as
    ``TABLE.KEY=VALUE``, how many runs go on side by side and where, how many there may be, and
    which of them this process does."""

    file: str = setting(
        help="What to try; see docs/guide/sweep.md.", metavar="FILE.toml", argument=True
    )
    _: KW_ONLY
    changes: tuple[str, ...] = setting(
        (),
        "In place of what the file says: train.steps=20, 'train.seed=[0, 1]'; repeatable.",
        flag="set",
        metavar="TABLE.KEY=VALUE",
    )
    jobs: int | None = setting(
        None,
        "Runs side by side. Default: one a GPU, or a core; one with a budget in minutes.",
        at_least=1,
    )
    engine: str = _fields.engine()
    part: str | None = setting(
        None,
        "Of the runs only every M-th model's, from the K-th on: a job array does K/M each, and "
        "the command without --part compares.",
        metavar="K/M",
        refuse=_no_part,
    )
    max_runs: int = setting(MOST_RUNS, "Refuse a file that asks for more runs.", at_least=1)
    html: Path | None = _fields.html()  # noqa: RUF009
