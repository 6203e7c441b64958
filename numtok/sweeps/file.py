"""The sweep file: one TOML table per stage, with the options of its command; lists are axes.

::

    data = "mine.jsonl"             # input of encode; or [gen] instead, which makes data

    [gen]
    task = "arithmetic"
    operands = [2, 3]               # two data sets
    rows = 300000

    [encode]
    scheme = ["p1000", "xval"]

    [train]
    steps = 2000                    # or tokens, or minutes: the same budget for all
    lr = [5e-4, 1e-3, 2e-3]
    seed = [0, 1, 2]

    [select]                        # among runs that differ only in ``over``, the best one on the
    over = ["lr"]                   # validation split is evaluated on the test split
    metric = "median-relative-error"

    [[also]]                        # more combinations in the same comparison: only the changes
    encode.scheme = "xval"
    train.embedder = "fourier"

Every combination of list items is a run. A list within the list of ``data`` is one data set with
several inputs. Paths are relative to the working folder, as in commands. Options for names,
restarts and parallelism are not allowed, because the sweep sets them.

If there is no [encode], models are trained on tables, and [train] and [eval] take the options for
tables::

    [fetch]                         # or [gen] with a task that makes tables, or data: REFs of
    source = "uci"                  # tables, or files of tables with their target in [table]
    set = ["airfoil", "yacht"]

    [train]
    head = ["riemann:64", "riemann:256", "decoder:ud"]
    lr = [1e-4, 5e-4]

    [select]                        # the best riemann and the best decoder:ud
    over = ["head", "lr"]
    metric = "in-support-nll"
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from numtok import documents
from numtok.data.sources.base import SOURCES, TableSource, TextSource
from numtok.data.tables.file import FORMATS
from numtok.data.tasks.base import TASKS, TableTask
from numtok.declaration import settings_in
from numtok.errors import UsageError, unknown
from numtok.evaluation.published import published
from numtok.metrics.base import METRICS
from numtok.setting_values import as_spec
from numtok.settings import compare, fetch, gen
from numtok.settings.sweep import MOST_RUNS
from numtok.settings.train import BUDGETS
from numtok.stages.train import VALIDATION
from numtok.sweeps.plan import Encodings, Point, Select, Source, Sweep, Trainings
from numtok.sweeps.stage_table import StageTable, no_axis, with_current_keys

_MAKERS = ("gen", "fetch")  # tables that make data, if ``data`` does not name them
_STAGES = (*_MAKERS, "table", "encode", "train", "eval")
_TABLES = (*_STAGES, "compare", "select")


def read_sweep(path: Path, changes: Sequence[str] = (), most: int = MOST_RUNS) -> Sweep:
    """Read a sweep file. Each ``TABLE.KEY=VALUE`` in ``changes`` replaces a value in the file.

    Raises UsageError if the file is invalid or describes more than ``most`` runs.
    """
    tables = with_current_keys(path, _parsed(documents.read(path, str(path)), str(path)))
    for change in changes:
        _change_value(tables, change)
        tables = with_current_keys(path, tables)
    return _expand(_SweepFile.of(path, tables), most)


def _parsed(content: bytes, shown: str) -> dict[str, Any]:
    """Parse TOML; numbers with a point stay text, because 1.00 has two decimals."""
    return documents.toml(content, shown, str)


def _change_value(tables: dict[str, Any], change: str) -> None:
    """Set one value of a file. A value that is not TOML, such as a word or 1..4, needs no quotes.
    A budget replaces another one."""
    match = re.fullmatch(r"\s*(?:([a-z]+)\.)?([a-z-]+)\s*=(.*)", change, re.DOTALL)
    try:
        if match is None:
            raise ValueError
        table, key, text = match.groups()
        value = _value(text.strip())
        target = tables if table is None else tables.setdefault(table, {})
        target[key] = value
    except (TypeError, ValueError, UsageError):
        raise UsageError(
            f"--set must be TABLE.KEY=VALUE, with the value as in the file (got {change!r}). "
            "Examples: train.steps=2000, 'train.seed=[0, 1]'"
        ) from None
    for other in BUDGETS if table == "train" and key in BUDGETS else ():
        if other != key:
            target.pop(other, None)


def _value(text: str) -> Any:
    try:
        [value] = _parsed(f"value = {text}".encode(), "--set").values()
        return value
    except UsageError:
        if not text or set(text) & set("\"'[]{}#"):
            raise
        return text


@dataclass(frozen=True, kw_only=True)
class _SweepFile:
    """A sweep file whose layout has been checked, but not its options.

    data
        Value of ``data``; None if a table makes the data.
    ways
        The file's own tables, followed by the tables of each ``[[also]]``.
    """

    path: Path
    data: Any
    tables: Mapping[str, StageTable]
    ways: Sequence[Mapping[str, StageTable]]
    of_tables: bool

    @classmethod
    def of(cls, path: Path, tables: Mapping[str, Any]) -> "_SweepFile":
        """Check the layout; raises UsageError."""
        for name, content in tables.items():
            if name not in ("data", *_TABLES, "also"):
                raise unknown(f"table in {path}", name, ["data", *_TABLES, "also"])
            if name not in ("data", "also") and not isinstance(content, dict):
                raise UsageError(
                    f"{path}: {name} must be a table (got {content!r}). Write [{name}] with its "
                    "options below"
                )
        if sum(name in tables for name in ("data", *_MAKERS)) != 1:
            raise UsageError(
                f"{path} must have exactly one of data = INPUT, [gen] and [fetch]: the data to "
                "train on"
            )
        of_tables = "encode" not in tables
        own = _stage_tables(path, tables, of_tables)
        also = _also(path, tables, ("train",) if of_tables else ("encode", "train"))
        return cls(
            path=path,
            data=tables.get("data"),
            tables={name: own[name] for name in _TABLES if name in tables},
            ways=[own, *(_stage_tables(path, way, of_tables) for way in also)],
            of_tables=of_tables,
        )

    def table(self, name: str) -> StageTable:
        """Return a table of the file; an empty one if the file has none."""
        return self.ways[0][name]

    @property
    def size(self) -> int:
        """Number of runs, computed without creating them."""
        data = len(self.data) if isinstance(self.data, list) else 1
        ways = sum(
            (1 if self.of_tables else way["encode"].size) * way["train"].size for way in self.ways
        )
        makers = prod(self.table(name).size for name in (*_MAKERS, "table"))
        return data * makers * ways * self.table("eval").size


def _stage_tables(path: Path, tables: Mapping[str, Any], of_tables: bool) -> dict[str, StageTable]:
    """Return all tables by name; those that the file lacks are empty."""
    stages = {
        name: StageTable(path=path, name=name, options=tables.get(name, {}), of_tables=of_tables)
        for name in _TABLES
    }
    times = Counter(key for name in _STAGES for key in stages[name].axes)
    ambiguous = frozenset(key for key, count in times.items() if count > 1)
    return {name: replace(stage, ambiguous=ambiguous) for name, stage in stages.items()}


def _also(
    path: Path, tables: Mapping[str, Any], allowed: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the tables of each ``[[also]]``: those of the file, with its options replaced.

    An option in ``[[also]]`` is an axis even with a single value, since it identifies the
    combination.
    """
    ways = tables.get("also", [])
    if not isinstance(ways, list) or not all(isinstance(changes, dict) for changes in ways):
        raise UsageError(
            f"{path}: also must be a list of tables (got {ways!r}). Write [[also]] with options "
            'below, such as encode.scheme = "xval"'
        )
    for changes in ways:
        way = dict(tables)
        for name, options in changes.items():
            if name not in allowed or not isinstance(options, dict):
                raise unknown(f"table in [[also]] of {path}", name, allowed)
            axes = {
                key: value if isinstance(value, list) else [value] for key, value in options.items()
            }
            way[name] = tables.get(name, {}) | axes
        yield way


def _expand(file: _SweepFile, most: int) -> Sweep:
    """Return every point of a file's axes; raises UsageError, also for more than ``most`` runs."""
    if (size := file.size) > most:  # before creating them one by one
        raise UsageError(
            f"{file.path}: the combinations of its lists give {size:,} runs, but at most {most:,} "
            f"are allowed. Shorten the lists, or pass --max-runs {size}"
        )
    data, compared, train = tuple(_data(file)), _compare(file), file.table("train")
    budgets = [] if file.of_tables else [key for key in BUDGETS if key in train.axes]
    (encodings, trainings), *also = (_way(file, way) for way in file.ways)
    sweep = Sweep(
        data=data,
        encode=encodings,
        train=trainings,
        eval=file.table("eval").points(model=""),
        compare=compared,
        budget=train.axis(budgets[0]) if budgets else None,
        also=tuple(also),
    )
    return replace(sweep, select=_select(file, sweep))


def _way(file: _SweepFile, way: Mapping[str, StageTable]) -> tuple[Encodings, Trainings]:
    encodings = (({}, None),) if file.of_tables else way["encode"].points(inputs=())
    return encodings, way["train"].points(data="")


# --- data --------------------------------------------------------------------------------------


def _data(file: _SweepFile) -> Iterator[tuple[Point, Source]]:
    """Yield the data of the runs, with their points."""
    for name in ("fetch", "table"):
        if name in file.tables and not file.of_tables:
            raise UsageError(
                f"{file.path}: [{name}] makes tables, which are not encoded. Remove [encode]"
            )
    if "table" in file.tables and file.data is None:
        raise UsageError(f"{file.path}: [table] needs files to read. Name them: data = FILE")
    if file.data is not None:
        yield from _named_data(file)
    for name, make in (("gen", _gen), ("fetch", _fetch)):
        if name in file.tables:
            table = file.tables[name]
            yield from ((point, make(table, options)) for point, options in table.grid())


def _named_data(file: _SweepFile) -> Iterator[tuple[Point, Source]]:
    value = file.data
    several = isinstance(value, list)
    if not value or (several and len(set(map(str, value))) < len(value)):
        raise no_axis(file.path, "data", value)
    for item in value if several else [value]:
        inputs = item if isinstance(item, list) else [item]
        if not inputs or not all(isinstance(text, str) for text in inputs):
            raise UsageError(
                f"{file.path}: data must be an input, a list of inputs, or a list of lists of "
                f"inputs that form one data set (got {item!r})"
            )
        point = {"data": " ".join(inputs)} if several else {}
        if not file.of_tables:
            yield point, tuple(inputs)
        elif isinstance(item, list):
            raise UsageError(
                f"{file.path}: for tables, data must be a REF, a file, or a list of these (got "
                f"{item!r})"
            )
        elif item.endswith(FORMATS):
            table = file.table("table")
            if "target" not in table.options:
                raise UsageError(
                    f"{file.path}: {item} needs the column to predict. Add [table] with target = "
                    "COLUMN"
                )
            yield from (({**point, **more}, config) for more, config in table.points(path=item))
        elif Path(item).is_file():
            raise UsageError(
                f"{file.path}: {item} is not a table ({', '.join(FORMATS)}). For texts, add "
                "[encode] with a scheme"
            )
        else:
            yield point, (item,)


def _gen(table: StageTable, options: dict[str, Any]) -> gen.Config:
    """Build the settings of ``gen``, with the options of its task as the task's spec."""
    if not isinstance(task := options.pop("task", None), str):
        raise UsageError(f"{table.path}: [gen] needs task, one of {', '.join(TASKS)}")
    own = {name: options.pop(name) for name in table.known() if name in options}
    settings = [f"{key.replace('-', '_')}={as_spec(value)}" for key, value in options.items()]
    spec = ",".join([task, *settings])
    config: gen.Config = table.build(own | {"task": spec})
    if isinstance(TASKS.build(spec), TableTask) != table.of_tables:
        problem = "texts. Add [encode] with a scheme"
        if not table.of_tables:
            problem = "tables, which are not encoded. Remove [encode]"
        raise UsageError(f"{table.path}: [gen] task = {task!r} makes {problem}")
    return config


def _fetch(table: StageTable, options: dict[str, Any]) -> fetch.Config:
    """Build the settings of ``fetch``, with the options of its source."""
    if not isinstance(source := options.pop("source", None), str):
        raise UsageError(f"{table.path}: [fetch] needs source, one of {', '.join(SOURCES)}")
    with table.naming():
        kind: Any = SOURCES[source]
        if not issubclass(kind, TableSource):
            problem = "provides texts. Fetch them first, and set data to their REF"
            if not issubclass(kind, TextSource):
                problem = "provides a field, but sweeps need tables or texts"
            raise UsageError(f"{source} {problem}")
        fields = {field.flag: key for key, field in settings_in(kind).items()}
        for key in options:
            if key not in fields:
                raise unknown(f"option of fetch {source}", key, fields)
        values = {fields[key]: as_spec(value) for key, value in options.items()}
        if lacking := [key for key in SOURCES.required(source) if key not in values]:
            raise UsageError(f"{source} needs {lacking[0]}")
        SOURCES.build(source, values)
    return fetch.Config(source, options=values)


# --- comparison and selection ------------------------------------------------------------------


def _compare(file: _SweepFile) -> compare.Config:
    table = file.table("compare")
    config: compare.Config = table.build(reports=())
    if config.against is not None and config.column is not None:
        with table.naming():
            published(config.against).column(config.column)
    return config


def _select(file: _SweepFile, sweep: Sweep) -> Select | None:
    """Return the selection settings; None if the file has none."""
    if (table := file.tables.get("select")) is None:
        return None

    def refuse(problem: str) -> NoReturn:
        raise UsageError(f"{file.path}: [select] {problem}")

    if "metric" not in table.options:
        refuse("needs metric, the deciding metric")
    select: Select = table.build()
    if METRICS.build(select.metric).better == "neither":
        refuse(
            f"metric = {select.metric!r} cannot decide: neither higher nor lower is better. "
            "Choose another metric"
        )
    if any(evaluation.split == VALIDATION for _, evaluation in sweep.eval):
        raise UsageError(
            f"{file.path}: [eval] split = {VALIDATION!r} is the split that [select] uses. Evaluate "
            "on another split"
        )
    if select.reach is not None and file.of_tables:
        refuse(
            "reach only applies to text models; table models have no budget and stop when their "
            "loss stops improving. Leave it out"
        )
    if select.reach is not None and sweep.budget is None:
        refuse("reach needs several budgets. Set [train] steps, tokens or minutes to a list")
    if select.reach is None and not select.over:
        refuse("needs over, the axes to take the best value of, or reach")
    # The mean over seeds decides, so seeds are not an option; nor are budgets that rise.
    taken = {*sweep.seeds, sweep.budget if select.reach is not None else None}
    free = [axis for axis in (*sweep.encode[0][0], *sweep.train[0][0]) if axis not in taken]
    for name in select.over:
        if name not in free:
            raise unknown(f"axis in [select] over of {file.path}", name, free)
    return select
