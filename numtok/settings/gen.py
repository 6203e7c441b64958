"""``numtok gen``: a task and a seed -> data, or a table."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numtok.declaration import CommandSettings, setting
from numtok.settings import _fields

_MOST = 10**12  # rows
_SEEDS = 10**18


def _wrong_seed(value: int) -> str | None:
    within = abs(value) < _SEEDS
    return None if within else "is not possible; allowed are integers of at most 18 digits"


@dataclass(frozen=True)
class Config(CommandSettings):
    """What ``numtok gen`` was asked for; ``split`` are shares that add up to 1, ``from_`` is the
    artifact that a task reads, ``options`` are settings of the task beside those of its spec.
    Without ``samples`` or ``split`` they are the task's."""

    task: str = setting(
        help="A task, with its settings as options or as a spec: arithmetic,operands=3. "
        "numtok gen TASK --help lists them.",
        argument=True,
        expands=True,
        registry="tasks",
    )
    _: KW_ONLY
    samples: int | None = setting(
        None, "Rows of all splits. Default: the task's, mostly 10,000.", at_least=1, at_most=_MOST
    )
    seed: int = setting(0, "Another seed, other rows.", metavar="S", refuse=_wrong_seed)
    split: str | None = _fields.split_shares(
        "Adding up to 1, or train is what is left. Default: the task's, mostly "
        "train=0.8,validation=0.1,test=0.1."
    )
    from_: str | None = setting(
        None, "Of temperature: the field that it reads.", flag="from", metavar="REF"
    )
    name: str | None = _fields.name("Default: the task's.")
    workers: int | None = _fields.workers()
    engine: str = _fields.engine()
    restart: bool = _fields.restart()
    force: bool = _fields.force()
    dry_run: bool = _fields.dry_run()
    options: Mapping[str, Any] = field(default_factory=dict)
