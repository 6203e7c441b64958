"""What a sweep tries: the points of its axes, with the options of each stage there."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from numtok.declaration import CommandSettings, setting
from numtok.models.heads.base import HEADS
from numtok.registry import name_of
from numtok.settings import compare, encode, eval, fetch, gen, table, train

#: What data are: inputs of ``encode``, or one REF of a table; or what makes them.
Source = tuple[str, ...] | gen.Config | fetch.Config | table.Config
#: Where on the axes: the value of each, as written, by the name of its option.
Point = Mapping[str, str]
#: What some runs share: the value of each axis in which they do not differ.
Shared = tuple[tuple[str, str], ...]
#: The axis of the tables, where one configuration of ``fetch`` makes several.
FETCHED = "table"
_HEAD = "head"

#: Points of the axes of a stage, and the options there.
Encodings = tuple[tuple[Point, encode.Config | None], ...]
Training = train.Config
Trainings = tuple[tuple[Point, Training], ...]


def label_of(point: Point) -> str:
    """``{"scheme": "xval", "lr": "1e-3"} -> "scheme=xval, lr=1e-3"``"""
    return ", ".join(f"{name}={value}" for name, value in point.items())


@cache
def kind_of(head: str) -> str:
    """The kind of a head, without sizes and settings: what a choice of heads is among.

    >>> kind_of("riemann:64"), kind_of("decoder:ud,base=4"), kind_of("decoder:nd,base=2")
    ('riemann', 'decoder:ud', 'decoder:nd')
    """
    built = HEADS.build(head)
    part = getattr(built, getattr(built, "positional", ""), None)
    return name_of(built) + (f":{part}" if isinstance(part, str) else "")


@dataclass(frozen=True)
class Select(CommandSettings):
    """The table ``select``.

    Of ``head`` only heads of one kind are chosen among: the best ``riemann``, the best
    ``decoder:ud``. With ``reach`` the budgets of ``train`` are tried from the smallest on, until
    ``metric`` is ``reach`` or better; after each, the better half of the candidates goes on. Of
    several seeds the first ``seeds`` decide, None for all; what is chosen is done with every one.
    """

    metric: str = setting(help="The figure that decides.", registry="metrics")
    over: tuple[str, ...] = setting((), "The axes of which the best is taken.")
    reach: float | None = setting(None, "The figure that a budget is raised for.")
    seeds: int | None = setting(None, "How many seeds decide. Default: all.", at_least=1)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep as its file says it.

    Each list holds the points of one stage's axes with the options there, as a configuration
    without what comes from the stage before. Tables are not encoded: then ``encode`` is the one
    point None. ``budget`` is
    the option of ``train`` that says how long, where that is an axis. ``also`` are further ways:
    points of ``encode`` and of ``train`` that are combined with each other alone.
    """

    data: tuple[tuple[Point, Source], ...]
    encode: Encodings
    train: Trainings
    eval: tuple[tuple[Point, eval.Config], ...]
    compare: compare.Config
    select: Select | None = None
    budget: str | None = None
    also: tuple[tuple[Encodings, Trainings], ...] = ()

    @property
    def ways(self) -> tuple[tuple[Encodings, Trainings], ...]:
        """Which encodings are learnt in which ways."""
        return ((self.encode, self.train), *self.also)

    @property
    def trainings(self) -> list[Training]:
        """All of them, whatever is learnt."""
        return [one for _, trainings in self.ways for _, one in trainings]

    @property
    def size(self) -> int:
        """How many runs it is, before anything is chosen."""
        ways = sum(len(encodings) * len(trainings) for encodings, trainings in self.ways)
        return len(self.data) * ways * len(self.eval)

    @property
    def timed(self) -> bool:
        """Whether some run trains for a time rather than for so many steps or tokens."""
        return not self.of_tables and any("minutes" in one.budget for one in self.trainings)

    @property
    def of_tables(self) -> bool:
        """Whether nothing is encoded."""
        return self.encode[0][1] is None

    @property
    def climbed(self) -> list[str]:
        """The axis of budgets, where they are tried one after the other."""
        reach = self.select is not None and self.select.reach is not None
        return [self.budget] if reach and self.budget is not None else []

    def shared(self, point: Point) -> Shared:
        """Where a run stands on the axes, but for its seed and what is chosen among."""
        over = self.select.over if self.select is not None else ()
        apart = {*over, *self.seeds, *self.climbed}
        return tuple(
            (axis, kind_of(value) if axis == _HEAD and axis in apart else value)
            for axis, value in point.items()
            if axis == _HEAD or axis not in apart
        )

    @property
    def seeds(self) -> list[str]:
        """The name of the axis of training seeds, if there is one."""
        return [name for name in self.train[0][0] if name in ("seed", "train.seed")]
