"""Settings of ``numtok gen``, which generates the data of a task from a seed."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields

_MOST = 10**12  # rows
_SEEDS = 10**18


def _wrong_seed(value: int) -> str | None:
    within = abs(value) < _SEEDS
    return None if within else "must be an integer of at most 18 digits"


@dataclass(frozen=True)
class Config(CommandSettings):
    """Settings of ``numtok gen``.

    samples, split
        Total number of rows, and the fractions of the splits; None for the defaults of the task.
    from_
        REF of the artifact that the task reads, if it reads one.
    options
        Settings of the task, in addition to those in the spec ``task``.
    """

    task: str = _fields.part(
        "tasks",
        "Task, with settings as options or in a spec such as arithmetic,operands=3; "
        "numtok gen TASK --help lists them",
    )
    _: KW_ONLY
    samples: int | None = setting(
        None,
        "Number of rows of all splits together",
        flag="rows",
        formerly=("samples",),
        at_least=1,
        at_most=_MOST,
        shown_default="depends on the task, mostly 10,000",
    )
    seed: int = setting(0, "Seed of the rows", metavar="S", refuse=_wrong_seed)
    split: str | None = _fields.split_shares(
        "Fractions of the splits; train is the rest",
        default="the task's, mostly validation=0.1,test=0.1",
    )
    from_: str | None = setting(
        None, "Weather field that the task temperature reads", flag="from", metavar="REF"
    )
    name: str | None = _fields.name("TASK")
    workers: int | None = _fields.workers()
    engine: str = _fields.engine()
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    dry_run: bool = _fields.dry_run()
    options: Mapping[str, Any] = field(default_factory=dict)
