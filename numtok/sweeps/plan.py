"""What a sweep tries: the points of its axes, with the options of each stage there."""

from collections.abc import Mapping
from dataclasses import dataclass

from numtok.stages import compare, encode, eval, eval_table, fetch, fit, gen, table, train

BUDGETS = ("steps", "tokens", "minutes")
#: What data are: inputs of ``encode``, or one REF of a table; or what makes them.
Source = tuple[str, ...] | gen.Config | fetch.Config | table.Config
#: Where on the axes: the value of each, as written, by the name of its option.
Point = Mapping[str, str]


def label_of(point: Point) -> str:
    """``{"scheme": "xval", "lr": "1e-3"} -> "scheme=xval, lr=1e-3"``"""
    return ", ".join(f"{name}={value}" for name, value in point.items())


@dataclass(frozen=True)
class Select:
    """The table ``select``.

    Of ``head`` only heads of one kind are chosen among: the best ``riemann``, the best
    ``decoder:ud``. With ``reach`` the budgets of ``train`` are tried from the smallest on, until
    ``metric`` is ``reach`` or better; after each, the better half of the candidates goes on.
    """

    metric: str
    over: tuple[str, ...] = ()
    reach: float | None = None


@dataclass(frozen=True)
class Sweep:
    """A sweep as its file says it.

    Each list holds the points of one stage's axes with the options there, as a configuration
    without what comes from the stage before. Tables are not encoded: then ``encode`` is the one
    point None, and ``train`` and ``eval`` have the configurations of their stages. ``budget`` is
    the option of ``train`` that says how long, where that is an axis.
    """

    data: tuple[tuple[Point, Source], ...]
    encode: tuple[tuple[Point, encode.Config | None], ...]
    train: tuple[tuple[Point, train.Config | fit.Config], ...]
    eval: tuple[tuple[Point, eval.Config | eval_table.Config], ...]
    compare: compare.Config
    select: Select | None = None
    budget: str | None = None

    @property
    def size(self) -> int:
        """How many runs it is, before anything is chosen."""
        return len(self.data) * len(self.encode) * len(self.train) * len(self.eval)

    @property
    def timed(self) -> bool:
        """Whether some run trains for a time rather than for so many steps or tokens."""
        return any(
            "minutes" in one.budget for _, one in self.train if isinstance(one, train.Config)
        )

    @property
    def seeds(self) -> list[str]:
        """The name of the axis of training seeds, if there is one."""
        return [name for name in self.train[0][0] if name in ("seed", "train.seed")]
