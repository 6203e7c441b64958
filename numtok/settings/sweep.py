"""Settings of ``numtok sweep``, which trains and compares combinations of settings."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields

MOST_RUNS = 10_000  # the default of --max-runs


def _no_part(value: str) -> str | None:
    k, _, m = value.partition("/")
    if k.isdecimal() and m.isdecimal() and 1 <= int(k) <= int(m):
        return None
    return "must be K/M with K from 1 to M, such as 3/8"


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok sweep``.

    changes
        Changes to the sweep file, such as ``train.steps=20``.
    jobs, engine
        Number of parallel runs, and where they run.
    part
        ``K/M`` trains only every M-th model, starting with the K-th; None trains all.
    """

    file: str = setting(
        help="File of settings to try; see docs/how-to/sweep.md", metavar="FILE.toml", argument=True
    )
    _: KW_ONLY
    changes: tuple[str, ...] = setting(
        (),
        "Change a value of the file: train.steps=20 or 'train.seed=[0, 1]'; repeatable",
        flag="set",
        metavar="TABLE.KEY=VALUE",
    )
    jobs: int | None = setting(
        None,
        "Number of parallel runs",
        at_least=1,
        shown_default="one per GPU or core; 1 if the budget is in minutes",
    )
    engine: str = _fields.engine()
    part: str | None = setting(
        None,
        "Train every M-th model from the K-th on, as in a job array; run the command without "
        "--part to compare",
        metavar="K/M",
        advanced=True,
        refuse=_no_part,
    )
    max_runs: int = setting(MOST_RUNS, "Maximum number of runs", at_least=1, advanced=True)
    html: Path | None = _fields.html()  # noqa: RUF009
