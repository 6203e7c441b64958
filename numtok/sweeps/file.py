"""The file of a sweep: one table a stage, with the options of its command; a list is an axis.

::

    data = "mine.jsonl"             # what encode reads; instead of it, [gen] makes data

    [gen]
    task = "arithmetic"
    operands = [2, 3]               # two data sets
    rows = 300000

    [encode]
    scheme = ["p1000", "xval"]

    [train]
    steps = 2000                    # or tokens, or minutes: what is equal for all
    lr = [5e-4, 1e-3, 2e-3]
    seed = [0, 1, 2]

    [select]                        # of the runs that differ only in these, the best one
    over = ["lr"]                   # on the validation split is evaluated on the test split
    metric = "median-relative-error"

    [[also]]                        # ways of their own, in the same tables: what differs from above
    encode.scheme = "xval"
    train.embedder = "fourier"

Every combination is a run. A list within the list of ``data`` is one data set of
several inputs; paths begin at the working folder, as in commands. What names,
redoes or parallelises is the sweep's own business, and no option here.

A file without [encode] is of tables, and [train] and [eval] have the options for
these::

    [fetch]                         # or [gen] of a task that makes tables, or data: REFs of
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
from numtok.declaration import as_spec, settings_in
from numtok.errors import UsageError, unknown
from numtok.evaluation.published import published
from numtok.metrics.base import METRICS
from numtok.settings import compare, fetch, gen
from numtok.settings.sweep import MOST_RUNS
from numtok.settings.train import BUDGETS
from numtok.stages.train import VALIDATION
from numtok.sweeps.plan import Encodings, Point, Select, Source, Sweep, Trainings
from numtok.sweeps.stage_table import StageTable, no_axis, with_current_keys

_MAKERS = ("gen", "fetch")  # what makes data, where ``data`` does not name them
_STAGES = (*_MAKERS, "table", "encode", "train", "eval")
_TABLES = (*_STAGES, "compare", "select")


def read_sweep(path: Path, changes: Sequence[str] = (), most: int = MOST_RUNS) -> Sweep:
    """Read the sweep in a file, with ``TABLE.KEY=VALUE`` of ``changes`` in place of what it says.

    Raises UsageError for whatever is not understood, and for more than ``most`` runs.
    """
    tables = with_current_keys(path, _parsed(documents.read(path, str(path)), str(path)))
    for change in changes:
        _change_value(tables, change)
        tables = with_current_keys(path, tables)
    return _expand(_SweepFile.of(path, tables), most)


def _parsed(content: bytes, shown: str) -> dict[str, Any]:
    """Numbers with a point stay as they are written: 1.00 has two decimals."""
    return documents.toml(content, shown, str)


def _change_value(tables: dict[str, Any], change: str) -> None:
    """Set one value of a file; what is nothing else there, as a word or 1..4, needs no quotes. A
    budget takes the place of another."""
    match = re.fullmatch(r"\s*(?:([a-z]+)\.)?([a-z-]+)\s*=(.*)", change, re.DOTALL)
    try:
        if match is None:
            raise ValueError
        table, key, text = match.groups()
        value = _value(text.strip())
        place = tables if table is None else tables.setdefault(table, {})
        place[key] = value
    except (TypeError, ValueError, UsageError):
        raise UsageError(
            f"--set {change!r} is not understood; write TABLE.KEY=VALUE with the value as in the "
            "file, such as train.steps=2000 or 'train.seed=[0, 1]'"
        ) from None
    for other in BUDGETS if table == "train" and key in BUDGETS else ():
        if other != key:
            place.pop(other, None)


def _value(text: str) -> Any:
    try:
        return _parsed(f"value = {text}".encode(), "--set")["value"]
    except UsageError:
        if not text or set(text) & set("\"'[]{}#"):
            raise
        return text


@dataclass(frozen=True, kw_only=True)
class _SweepFile:
    """A sweep's file whose layout has been checked, but none of its options.

    data
        As the file gives it; None where a table makes the data.
    ways
        What is encoded and trained: the file's own tables, then those of each ``[[also]]``.
    """

    path: Path
    data: Any
    tables: Mapping[str, StageTable]
    ways: Sequence[Mapping[str, StageTable]]
    of_tables: bool

    @classmethod
    def of(cls, path: Path, tables: Mapping[str, Any]) -> "_SweepFile":
        """Check the layout. Raises UsageError."""
        for name, content in tables.items():
            if name not in ("data", *_TABLES, "also"):
                raise unknown(f"table in {path}", name, ["data", *_TABLES, "also"])
            if name not in ("data", "also") and not isinstance(content, dict):
                raise UsageError(
                    f"{path}: {name} = {content!r} is no table; write [{name}] and its options "
                    "below it"
                )
        if sum(name in tables for name in ("data", *_MAKERS)) != 1:
            raise UsageError(
                f"{path} needs data = INPUT, a table [gen] or a table [fetch], one of them: what "
                "is learnt from"
            )
        of_tables = "encode" not in tables
        own = _stage_tables(path, tables, of_tables)
        also = _also(path, tables, ("train",) if of_tables else ("encode", "train"))
        return cls(
            path=path,
            data=tables.get("data"),
            tables={name: own[name] for name in _TABLES if name in tables},
            ways=[own, *(_stage_tables(path, one, of_tables) for one in also)],
            of_tables=of_tables,
        )

    def table(self, name: str) -> StageTable:
        """A table of the file; an empty one where the file has none."""
        return self.ways[0][name]

    @property
    def size(self) -> int:
        """How many runs there are, counted without making one."""
        data = len(self.data) if isinstance(self.data, list) else 1
        ways = sum(
            (1 if self.of_tables else way["encode"].size) * way["train"].size for way in self.ways
        )
        makers = prod(self.table(name).size for name in (*_MAKERS, "table"))
        return data * makers * ways * self.table("eval").size


def _stage_tables(path: Path, tables: Mapping[str, Any], of_tables: bool) -> dict[str, StageTable]:
    """All tables by name, of which those that the file lacks are empty."""
    made = {
        name: StageTable(path=path, name=name, options=tables.get(name, {}), of_tables=of_tables)
        for name in _TABLES
    }
    times = Counter(key for name in _STAGES for key in made[name].axes)
    ambiguous = frozenset(key for key, count in times.items() if count > 1)
    return {name: replace(one, ambiguous=ambiguous) for name, one in made.items()}


def _also(
    path: Path, tables: Mapping[str, Any], allowed: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The tables of each ``[[also]]``: those of the file, with other options in their place.

    An option there is an axis even with a single value, since it sets the way apart.
    """
    given = tables.get("also", [])
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise UsageError(
            f"{path}: also = {given!r} is no list of ways; write [[also]] and below it options "
            'such as encode.scheme = "xval"'
        )
    for one in given:
        way = dict(tables)
        for name, options in one.items():
            if name not in allowed or not isinstance(options, dict):
                raise unknown(f"table in [[also]] of {path}", name, allowed)
            axes = {
                key: value if isinstance(value, list) else [value] for key, value in options.items()
            }
            way[name] = tables.get(name, {}) | axes
        yield way


def _expand(file: _SweepFile, most: int) -> Sweep:
    """Every point of a file's axes. Raises UsageError, also for more than ``most`` runs."""
    if (size := file.size) > most:  # before they are made one by one
        raise UsageError(
            f"{file.path} asks for {size:,} runs, every combination of its lists, and {most:,} "
            f"are allowed; give shorter lists, or --max-runs {size}"
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
    """What the runs learn from."""
    for name in ("fetch", "table"):
        if name in file.tables and not file.of_tables:
            raise UsageError(
                f"{file.path}: [{name}] makes tables, which are not encoded; leave [encode] out"
            )
    if "table" in file.tables and file.data is None:
        raise UsageError(f"{file.path}: [table] says how files are read; name them as data = FILE")
    if file.data is not None:
        yield from _named_data(file)
    for name, make in (("gen", _gen), ("fetch", _fetch)):
        if name in file.tables:
            table = file.tables[name]
            yield from ((point, make(table, options)) for point, options in table.grid())


def _named_data(file: _SweepFile) -> Iterator[tuple[Point, Source]]:
    given = file.data
    several = isinstance(given, list)
    if not given or (several and len(set(map(str, given))) < len(given)):
        raise no_axis(file.path, "data", given)
    for one in given if several else [given]:
        inputs = one if isinstance(one, list) else [one]
        if not inputs or not all(isinstance(text, str) for text in inputs):
            raise UsageError(
                f"{file.path}: data is an input, a list of them, or a list of lists of inputs "
                f"that belong together, got {one!r}"
            )
        point = {"data": " ".join(inputs)} if several else {}
        if not file.of_tables:
            yield point, tuple(inputs)
        elif isinstance(one, list):
            raise UsageError(
                f"{file.path}: of tables data is a REF, a file, or a list of these, got {one!r}"
            )
        elif one.endswith(FORMATS):
            table = file.table("table")
            if "target" not in table.options:
                raise UsageError(
                    f"{file.path}: {one} needs a table [table] with target, the column that is "
                    "predicted"
                )
            yield from (({**point, **more}, made) for more, made in table.points(path=one))
        elif Path(one).is_file():
            raise UsageError(
                f"{file.path}: {one} is no table ({' or '.join(FORMATS)}), and texts need "
                "[encode] with a scheme"
            )
        else:
            yield point, (one,)


def _gen(table: StageTable, options: dict[str, Any]) -> gen.Config:
    """The options of ``gen`` and those of its task, which become the task's spec."""
    if not isinstance(task := options.pop("task", None), str):
        raise UsageError(f"{table.path}: [gen] needs task, the name of what makes the data")
    own = {name: options.pop(name) for name in table.known() if name in options}
    settings = [f"{key.replace('-', '_')}={as_spec(value)}" for key, value in options.items()]
    spec = ",".join([task, *settings])
    made: gen.Config = table.build(own | {"task": spec})
    if isinstance(TASKS.build(spec), TableTask) != table.of_tables:
        told = "texts, which need [encode] with a scheme"
        if not table.of_tables:
            told = "tables, which are not encoded; leave [encode] out"
        raise UsageError(f"{table.path}: [gen] task = {task!r} makes {told}")
    return made


def _fetch(table: StageTable, options: dict[str, Any]) -> fetch.Config:
    """The options of a source, as ``fetch`` takes them."""
    if not isinstance(source := options.pop("source", None), str):
        raise UsageError(f"{table.path}: [fetch] needs source, one of {', '.join(SOURCES)}")
    with table.naming():
        kind: Any = SOURCES[source]
        if not issubclass(kind, TableSource):
            told = "texts: fetch them first, and give their REF as data"
            if not issubclass(kind, TextSource):
                told = "a field, and a sweep is of tables or texts"
            raise UsageError(f"{source} brings {told}")
        known = {one.flag: key for key, one in settings_in(kind).items()}
        for key in options:
            if key not in known:
                raise unknown(f"option of fetch {source}", key, known)
        given = {known[key]: as_spec(value) for key, value in options.items()}
        if lacking := [key for key in SOURCES.required(source) if key not in given]:
            raise UsageError(f"{source} needs {lacking[0]}")
        SOURCES.build(source, given)
    return fetch.Config(source, options=given)


# --- what is compared and chosen ---------------------------------------------------------------


def _compare(file: _SweepFile) -> compare.Config:
    table = file.table("compare")
    made: compare.Config = table.build(reports=())
    if made.against is not None and made.column is not None:
        with table.naming():
            published(made.against).column(made.column)
    return made


def _select(file: _SweepFile, sweep: Sweep) -> Select | None:
    """How the best of several runs is chosen, if the file asks for it."""
    if (table := file.tables.get("select")) is None:
        return None

    def refuse(told: str) -> NoReturn:
        raise UsageError(f"{file.path}: [select] {told}")

    if "metric" not in table.options:
        refuse("needs metric, the figure that decides")
    select: Select = table.build()
    if METRICS.build(select.metric).better == "neither":
        refuse(
            f"metric = {select.metric!r} cannot decide, neither more nor less of it is better; "
            "choose by another"
        )
    if any(one.split == VALIDATION for _, one in sweep.eval):
        raise UsageError(
            f"{file.path}: [eval] split = {VALIDATION!r} is what [select] chooses on; "
            "what is chosen is evaluated on another split"
        )
    if select.reach is not None and file.of_tables:
        refuse(
            "reach is for budgets, which models of tables have not: they end when their loss "
            "falls no more; leave it out"
        )
    if select.reach is not None and sweep.budget is None:
        refuse(
            "reach needs several budgets to try; give [train] steps, tokens or minutes as a list"
        )
    if select.reach is None and not select.over:
        refuse("needs over, the axes of which the best is taken, or reach")
    # The mean over seeds decides, so a seed is no choice; nor is a budget that is climbed.
    taken = {*sweep.seeds, sweep.budget if select.reach is not None else None}
    free = [axis for axis in (*sweep.encode[0][0], *sweep.train[0][0]) if axis not in taken]
    for name in select.over:
        if name not in free:
            raise unknown(f"axis in [select] over of {file.path}", name, free)
    return select
