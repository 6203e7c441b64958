"""The points on a sweep's axes, with the options of each stage at every point."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from numtok.declaration import CommandSettings, setting
from numtok.models.heads.base import HEADS
from numtok.registry import name_of
from numtok.settings import compare, encode, eval, fetch, gen, table, train

#: Data of runs: inputs of ``encode``, one REF of a table, or settings of a stage that makes data.
Source = tuple[str, ...] | gen.Config | fetch.Config | table.Config
#: A point on the axes: the value on each axis as written, keyed by the name of the axis.
Point = Mapping[str, str]
#: The common values of a group of runs, as pairs of axis and value.
Shared = tuple[tuple[str, str], ...]
#: The axis of tables, if one configuration of ``fetch`` makes several tables.
FETCHED = "table"
_HEAD = "head"

#: Points of the axes of a stage, with the options at each.
Encodings = tuple[tuple[Point, encode.Config | None], ...]
Training = train.Config
Trainings = tuple[tuple[Point, Training], ...]


def label_of(point: Point) -> str:
    """Return a point as text: ``{"scheme": "xval", "lr": "1e-3"} -> "scheme=xval, lr=1e-3"``."""
    return ", ".join(f"{name}={value}" for name, value in point.items())


@cache
def kind_of(head: str) -> str:
    """Return the kind of a head, without its sizes and settings. Selection compares heads of the
    same kind.

    >>> kind_of("riemann:64"), kind_of("decoder:ud,base=4"), kind_of("decoder:nd,base=2")
    ('riemann', 'decoder:ud', 'decoder:nd')
    """
    built = HEADS.build(head)
    part = getattr(built, getattr(built, "positional", ""), None)
    return name_of(built) + (f":{part}" if isinstance(part, str) else "")


@dataclass(frozen=True)
class Select(CommandSettings):
    """Settings in the table ``[select]`` of a sweep file.

    Only heads of the same kind compete, so there is a best ``riemann`` and a best ``decoder:ud``.
    If ``reach`` is set, the budgets of ``train`` are tried in ascending order until ``metric``
    reaches ``reach``; after each budget, the better half of the candidates continues. Selection
    uses the first ``seeds`` seeds, or all seeds if ``seeds`` is None; the selected candidates run
    with all seeds.
    """

    metric: str = setting(help="Deciding metric.", registry="metrics")
    over: tuple[str, ...] = setting((), "Axes to take the best value of.")
    reach: float | None = setting(None, "Value of the metric to reach; budgets rise until then.")
    seeds: int | None = setting(None, "Number of seeds that decide. Default: all.", at_least=1)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep as described by its file.

    data, encode, train, eval
        Points on the axes of each stage, each with a configuration that lacks only the results of
        the previous stage. Tables are not encoded; for them, ``encode`` is a single point without a
        configuration (None).
    budget
        Name of the axis of training budgets, if there is one.
    also
        Further pairs of ``encode`` points and ``train`` points. The points of a pair are combined
        only with each other.
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
        """Pairs of encodings and the training configurations that they are combined with."""
        return ((self.encode, self.train), *self.also)

    @property
    def trainings(self) -> list[Training]:
        """All training configurations, regardless of the encodings that they are combined with."""
        return [training for _, trainings in self.ways for _, training in trainings]

    @property
    def size(self) -> int:
        """Number of runs before selection."""
        ways = sum(len(encodings) * len(trainings) for encodings, trainings in self.ways)
        return len(self.data) * ways * len(self.eval)

    @property
    def timed(self) -> bool:
        """True if a training budget is in minutes."""
        return not self.of_tables and any(
            "minutes" in training.budget for training in self.trainings
        )

    @property
    def of_tables(self) -> bool:
        """True if the sweep trains on tables, which are not encoded."""
        return self.encode[0][1] is None

    @property
    def climbed(self) -> list[str]:
        """Name of the axis of budgets that are tried in ascending order until a metric reaches its
        target, as a list; empty if budgets are not tried in this way."""
        reach = self.select is not None and self.select.reach is not None
        return [self.budget] if reach and self.budget is not None else []

    def shared(self, point: Point) -> Shared:
        """Return the values that a run shares with the candidates in its group: the values on all
        axes except seeds, budgets tried in ascending order, and ``select.over``. If heads compete,
        the kind of the head is kept."""
        over = self.select.over if self.select is not None else ()
        apart = {*over, *self.seeds, *self.climbed}
        return tuple(
            (axis, kind_of(value) if axis == _HEAD and axis in apart else value)
            for axis, value in point.items()
            if axis == _HEAD or axis not in apart
        )

    @property
    def seeds(self) -> list[str]:
        """Name of the axis of training seeds, as a list; empty if seeds are not an axis."""
        return [name for name in self.train[0][0] if name in ("seed", "train.seed")]
