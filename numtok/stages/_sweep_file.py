"""The file of a sweep: one table a stage, with the options of its command; a list is an axis.

::

    data = "mine.jsonl"             # what encode reads; instead of it, [gen] makes data

    [gen]
    task = "arithmetic"
    operands = [2, 3]               # two data sets
    samples = 300000

    [encode]
    scheme = ["p1000", "xval"]

    [train]
    steps = 2000
    lr = [5e-4, 1e-3, 2e-3]
    seed = [0, 1, 2]

    [select]                        # of the runs that differ only in these, the best one
    over = ["lr"]                   # on the validation split is evaluated on the test split
    metric = "median-relative-error"

Every combination is a run. A list within the list of ``data`` is one data set of
several inputs. What names or redoes artifacts is the sweep's own business, and no
option here.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from numtok.errors import UsageError, unknown
from numtok.metrics.base import METRICS
from numtok.stages import compare, encode, eval, gen, train

BUDGETS = ("steps", "tokens", "minutes")
Stage = TypeVar("Stage")
#: The value of each axis, by the name of its option.
Point = Mapping[str, str]

# Options whose field has another name, and fields that are not for a sweep to set.
_NAMES = {"learning_rate": "lr", "metrics": "metric"}
_MANAGED = {
    "name", "restart", "force", "dry_run", "inputs", "like", "encoded", "model", "init", "reports",
    "require", "workers", "checkpoint_steps", "batch_workers",
}  # fmt: skip


@dataclass(frozen=True)
class Select:
    """The table ``select``.

    With ``reach`` the budgets of ``train`` are tried from the smallest on, until ``metric`` is
    ``reach`` or better; after each, the better half of the candidates goes on.
    """

    metric: str
    over: tuple[str, ...] = ()
    reach: float | None = None
    split: str = "validation"


@dataclass(frozen=True)
class Sweep:
    """A sweep as its file says it.

    Each list holds the points of one stage's axes with the options there, as a configuration
    without what comes from the stage before. Of ``data`` these are the inputs of ``encode``, or
    a configuration of ``gen``.
    """

    data: tuple[tuple[Point, tuple[str, ...] | gen.Config], ...]
    encode: tuple[tuple[Point, encode.Config], ...]
    train: tuple[tuple[Point, train.Config], ...]
    eval: tuple[tuple[Point, eval.Config], ...]
    compare: compare.Config
    select: Select | None = None
    budget: str | None = None  # of BUDGETS, where it is an axis

    @property
    def seeds(self) -> list[str]:
        """The name of the axis of training seeds, if there is one."""
        return [name for name in self.train[0][0] if name in ("seed", "train.seed")]


def read_sweep(path: Path) -> Sweep:
    """The sweep in a file; UsageError for whatever is not understood."""
    try:
        # Numbers stay as they are written: 1.00 has two decimals.
        tables = tomllib.loads(path.read_text("utf-8"), parse_float=str)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    return _Reader(path, tables).sweep()


@dataclass(frozen=True)
class _Reader:
    path: Path
    tables: dict[str, Any]

    def sweep(self) -> Sweep:
        stages = ("gen", "encode", "train", "eval", "compare", "select")
        for name, table in self.tables.items():
            if name != "data" and not (name in stages and isinstance(table, dict)):
                raise unknown(f"table in {self.path}", name, ["data", *stages])
        if ("data" in self.tables) == ("gen" in self.tables):
            raise UsageError(
                f"{self.path} needs data = INPUT or a table [gen], one of the two: what the "
                "schemes are tried on"
            )
        made = Sweep(
            data=tuple(self._data()),
            encode=tuple(self._points("encode", encode.Config, inputs=())),
            train=tuple(self._points("train", train.Config, encoded="")),
            eval=tuple(self._points("eval", eval.Config, model="", encoded="")),
            compare=self._configured("compare", compare.Config, self._table("compare"), reports=()),
            budget=next((key for key in BUDGETS if self._is_axis("train", key)), None),
        )
        return replace(made, select=self._select(made))

    def _table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = self.tables.get(name, {})
        return table

    def _is_axis(self, table: str, key: str) -> bool:
        return isinstance(self._table(table).get(key), list)

    def _data(self) -> Iterator[tuple[Point, tuple[str, ...] | gen.Config]]:
        if "gen" in self.tables:
            for point, options in self._grid("gen", lists=()):
                yield point, self._gen(options)
            return
        given = self.tables["data"]
        for one in given if isinstance(given, list) else [given]:
            inputs = one if isinstance(one, list) else [one]
            if not inputs or not all(isinstance(text, str) for text in inputs):
                raise UsageError(
                    f"{self.path}: data is an input, a list of them, or a list of lists of inputs "
                    f"that belong together, got {one!r}"
                )
            yield ({"data": " ".join(inputs)} if isinstance(given, list) else {}), tuple(inputs)

    def _gen(self, options: dict[str, Any]) -> gen.Config:
        """The options of ``gen`` and those of its task, which become its spec."""
        if not isinstance(task := options.pop("task", None), str):
            raise UsageError(f"{self.path}: [gen] needs task, the name of what makes the data")
        own = {name: options.pop(name) for name in _options(gen.Config) if name in options}
        settings = [f"{key.replace('-', '_')}={_written(value)}" for key, value in options.items()]
        return self._configured("gen", gen.Config, own, task=",".join([task, *settings]))

    def _points(self, name: str, kind: type[Stage], **given: Any) -> Iterator[tuple[Point, Stage]]:
        lists = [one.name for one in fields(kind) if "tuple" in str(one.type)]  # type: ignore[arg-type]
        for point, options in self._grid(name, lists=[_NAMES.get(one, one) for one in lists]):
            yield point, self._configured(name, kind, options, **given)

    def _grid(self, name: str, lists: Sequence[str]) -> Iterator[tuple[Point, dict[str, Any]]]:
        """Every combination of a table's axes, with the options there."""
        table = self._table(name)
        axes = {key: value for key, value in table.items() if self._is_axis(name, key)}
        for key in lists:
            axes.pop(key, None)
        for key, values in axes.items():
            told = [_written(value) for value in values]
            if not values or len(set(told)) < len(told):
                raise UsageError(
                    f"{self.path}: [{name}] {key} = {values!r} is no axis; it needs values, each "
                    "of them once"
                )
        for values in product(*axes.values()):
            here = dict(zip(axes, values, strict=True))
            point = {self._named(name, key): _written(value) for key, value in here.items()}
            yield point, table | here

    def _named(self, table: str, key: str) -> str:
        """An axis is called as its option, with the stage where two stages have it."""
        stages = ("gen", "encode", "train", "eval")
        alone = sum(self._is_axis(other, key) for other in stages) == 1
        return key if alone else f"{table}.{key}"

    def _configured(
        self, name: str, kind: type[Stage], options: Mapping[str, Any], **given: Any
    ) -> Stage:
        known = _options(kind)
        for key in options:
            if key not in known:
                raise unknown(f"key in [{name}] of {self.path}", key, known)
        values = {known[key]: value for key, value in options.items()}
        if "metrics" in values and isinstance(values["metrics"], str):
            values["metrics"] = [values["metrics"]]
        try:
            return msgspec.convert(values | given, kind, strict=False)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            where = _NAMES.get(where.rstrip("`"), where.rstrip("`").replace("_", "-"))
            raise UsageError(f"{self.path}: [{name}] {where}: {what}") from None

    def _select(self, sweep: Sweep) -> Select | None:
        if "select" not in self.tables:
            return None
        select = self._configured("select", Select, self._table("select"))
        METRICS.build(select.metric)
        trained = list(sweep.train[0][0]) + list(sweep.encode[0][0])
        for name in select.over:
            if name not in trained:
                raise unknown(f"axis in [select] over of {self.path}", name, trained)
        if select.reach is not None and sweep.budget is None:
            raise UsageError(
                f"{self.path}: [select] reach needs several budgets to try; give [train] steps, "
                "tokens or minutes as a list"
            )
        if select.reach is None and not select.over:
            raise UsageError(
                f"{self.path}: [select] needs over, the axes of which the best is taken, or reach"
            )
        return select


def _options(kind: type) -> dict[str, str]:
    """The options of a command that a sweep can set, and their fields."""
    names = [one.name for one in fields(kind) if one.name not in _MANAGED]
    return {_NAMES.get(name, name).replace("_", "-"): name for name in names}


def _written(value: Any) -> str:
    """A value as it would be written on a command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
