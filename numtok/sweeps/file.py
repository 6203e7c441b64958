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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass, replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from numtok import documents
from numtok.class_settings import names_of_fields
from numtok.data.sources.base import SOURCES, TableSource, TextSource
from numtok.data.tables.file import FORMATS
from numtok.data.tasks.base import TASKS, TableTask
from numtok.declaration import SettingError, declaration_of, declarations, flag_of
from numtok.encoding.fit_codec import text_tokenizer_of
from numtok.encoding.scheme_spec import scheme_of
from numtok.errors import UsageError, unknown
from numtok.evaluation.comparison.tokens_to_target import Level
from numtok.evaluation.published import published
from numtok.metrics.base import METRICS
from numtok.models.presets import preset, trunk
from numtok.plugins import registries
from numtok.registry import registry_in
from numtok.settings import compare, encode, eval, fetch, gen, table, train
from numtok.settings.sweep import MOST_RUNS
from numtok.settings.train import BUDGETS
from numtok.stages.train import VALIDATION
from numtok.sweeps.changes import as_option, change_value, parsed
from numtok.sweeps.plan import (
    Encodings,
    Point,
    Select,
    Source,
    Sweep,
    Trainings,
)

Stage = TypeVar("Stage")

_MAKERS = ("gen", "fetch")  # what makes data, where ``data`` does not name them
_STAGES = (*_MAKERS, "table", "encode", "train", "eval")
_TABLES = (*_STAGES, "compare", "select")
#: The settings that a table of the file may set.
SETTINGS: Mapping[str, Any] = {
    "gen": gen.Config,
    "table": table.Config,
    "encode": encode.Config,
    "train": train.Config,
    "eval": eval.Config,
    "compare": compare.Config,
    "select": Select,
}
# What is refused before anything is made, rather than when its turn comes, beside names of
# registries.
_CHECKS: Mapping[str, Callable[[str], object]] = {
    "against": published,
    "until": Level.parse,
    "scheme": scheme_of,
    "text-tokenizer": text_tokenizer_of,
}


def read_sweep(path: Path, changes: Sequence[str] = (), most: int = MOST_RUNS) -> Sweep:
    """The sweep in a file, with ``TABLE.KEY=VALUE`` of ``changes`` in place of what it says.

    Raises UsageError for whatever is not understood, and for more than ``most`` runs.
    """
    tables = parsed(documents.read(path, str(path)), str(path))
    for change in changes:
        change_value(tables, change)
    return _SweepReader(path, tables).sweep(most)


@dataclass(frozen=True)
class _SweepReader:
    path: Path
    tables: dict[str, Any]

    def sweep(self, most: int) -> Sweep:
        for name, content in self.tables.items():
            if name not in ("data", *_TABLES, "also"):
                raise unknown(f"table in {self.path}", name, ["data", *_TABLES, "also"])
            if name not in ("data", "also") and not isinstance(content, dict):
                raise UsageError(
                    f"{self.path}: {name} = {content!r} is no table; write [{name}] and its "
                    "options below it"
                )
        if sum(name in self.tables for name in ("data", *_MAKERS)) != 1:
            raise UsageError(
                f"{self.path} needs data = INPUT, a table [gen] or a table [fetch], one of them: "
                "what is learnt from"
            )
        if (size := self._size()) > most:  # told before they are made one by one
            raise UsageError(
                f"{self.path} asks for {size:,} runs, every combination of its lists, and {most:,} "
                f"are allowed; give shorter lists, or --max-runs {size}"
            )
        data, compared = tuple(self._data()), self._compare()
        budgets = [] if self._of_tables else [key for key in BUDGETS if self._is_axis("train", key)]
        made = Sweep(
            data=data,
            encode=self._encodings(),
            train=self._trainings(),
            eval=tuple(self._points("eval", eval.Config, model="")),
            compare=compared,
            budget=self._named("train", budgets[0]) if budgets else None,
        )
        ways = tuple((one._encodings(), one._trainings()) for one in self._also())
        return replace(made, select=self._select(made), also=ways)

    def _size(self) -> int:
        """How many runs there are, without a look at any."""
        given = self.tables.get("data", "")
        data = len(given) if isinstance(given, list) else 1
        ways = 0
        for one in (self, *self._also()):
            encodings = 1 if self._of_tables else one._combinations("encode")
            ways += encodings * one._combinations("train")
        makers = (self._combinations(name) for name in (*_MAKERS, "table"))
        return data * prod(makers) * ways * self._combinations("eval")

    def _combinations(self, name: str) -> int:
        table = self._table(name)
        return prod(len(values) for key, values in table.items() if self._is_axis(name, key))

    def _also(self) -> Iterator["_SweepReader"]:
        """The ways of ``also``: the file's own options with others in their place.

        What is given there is an axis, even of one value, since it differs from the other ways.
        """
        given = self.tables.get("also", [])
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise UsageError(
                f"{self.path}: also = {given!r} is no list of ways; write [[also]] and below it "
                'options such as encode.scheme = "xval"'
            )
        ways = ("train",) if self._of_tables else ("encode", "train")
        for one in given:
            tables = dict(self.tables)
            for name, options in one.items():
                if name not in ways or not isinstance(options, dict):
                    raise unknown(f"table in [[also]] of {self.path}", name, ways)
                axes = {
                    key: value if isinstance(value, list) else [value]
                    for key, value in options.items()
                }
                tables[name] = self._table(name) | axes
            yield _SweepReader(self.path, tables)

    def _encodings(self) -> Encodings:
        if self._of_tables:
            return (({}, None),)
        return tuple(self._points("encode", encode.Config, inputs=()))

    def _trainings(self) -> Trainings:
        return tuple(self._points("train", train.Config, data=""))

    @property
    def _of_tables(self) -> bool:
        """Whether there are no texts, which are encoded."""
        return "encode" not in self.tables

    def _table(self, name: str) -> dict[str, Any]:
        table: dict[str, Any] = self.tables.get(name, {})
        return table

    def _is_axis(self, table: str, key: str) -> bool:
        """A list is one, but for options that are lists: several metrics of one evaluation."""
        listed = table in SETTINGS and key in _lists(SETTINGS[table])
        return not listed and isinstance(self._table(table).get(key), list)

    def _data(self) -> Iterator[tuple[Point, Source]]:
        for name in ("fetch", "table"):
            if name in self.tables and not self._of_tables:
                raise UsageError(
                    f"{self.path}: [{name}] makes tables, which are not encoded; leave [encode] out"
                )
        if "table" in self.tables and "data" not in self.tables:
            raise UsageError(
                f"{self.path}: [table] says how files are read; name them as data = FILE"
            )
        if "gen" in self.tables:
            yield from ((point, self._gen(options)) for point, options in self._grid("gen"))
        elif "fetch" in self.tables:
            yield from ((point, self._fetch(options)) for point, options in self._grid("fetch"))
        else:
            yield from self._named_data()

    def _named_data(self) -> Iterator[tuple[Point, Source]]:
        given = self.tables["data"]
        several = isinstance(given, list)
        if not given or (several and len(set(map(str, given))) < len(given)):
            raise self._no_axis("data", given)
        for one in given if several else [given]:
            inputs = one if isinstance(one, list) else [one]
            if not inputs or not all(isinstance(text, str) for text in inputs):
                raise UsageError(
                    f"{self.path}: data is an input, a list of them, or a list of lists of inputs "
                    f"that belong together, got {one!r}"
                )
            point = {"data": " ".join(inputs)} if several else {}
            if not self._of_tables:
                yield point, tuple(inputs)
            elif isinstance(one, list):
                raise UsageError(
                    f"{self.path}: of tables data is a REF, a file, or a list of these, got {one!r}"
                )
            elif one.endswith(FORMATS):
                if "target" not in self._table("table"):
                    raise UsageError(
                        f"{self.path}: {one} needs a table [table] with target, the column that "
                        "is predicted"
                    )
                for more, made in self._points("table", table.Config, path=one):
                    yield {**point, **more}, made
            elif Path(one).is_file():
                raise UsageError(
                    f"{self.path}: {one} is no table ({' or '.join(FORMATS)}), and texts "
                    "need [encode] with a scheme"
                )
            else:
                yield point, (one,)

    def _gen(self, options: dict[str, Any]) -> gen.Config:
        """The options of ``gen`` and those of its task, which become its spec."""
        if not isinstance(task := options.pop("task", None), str):
            raise UsageError(f"{self.path}: [gen] needs task, the name of what makes the data")
        own = {name: options.pop(name) for name in self._options(gen.Config) if name in options}
        settings = [f"{key.replace('-', '_')}={as_option(value)}" for key, value in options.items()]
        spec = ",".join([task, *settings])
        made = self._configured("gen", gen.Config, own | {"task": spec})
        if isinstance(TASKS.build(spec), TableTask) != self._of_tables:
            told = "texts, which need [encode] with a scheme"
            if not self._of_tables:
                told = "tables, which are not encoded; leave [encode] out"
            raise UsageError(f"{self.path}: [gen] task = {task!r} makes {told}")
        return made

    def _fetch(self, options: dict[str, Any]) -> fetch.Config:
        """The options of a source, as ``fetch`` takes them."""
        if not isinstance(source := options.pop("source", None), str):
            raise UsageError(f"{self.path}: [fetch] needs source, one of {', '.join(SOURCES)}")
        with self._naming("fetch"):
            kind: Any = SOURCES[source]
            if not issubclass(kind, TableSource):
                told = "texts: fetch them first, and give their REF as data"
                if not issubclass(kind, TextSource):
                    told = "a field, and a sweep is of tables or texts"
                raise UsageError(f"{source} brings {told}")
            known = names_of_fields(kind)
            for key in options:
                if key not in known:
                    raise unknown(f"option of fetch {source}", key, known)
            given = {known[key]: as_option(value) for key, value in options.items()}
            if lacking := [key for key in SOURCES.required(source) if key not in given]:
                raise UsageError(f"{source} needs {lacking[0]}")
            SOURCES.build(source, given)
        return fetch.Config(source, options=given)

    def _points(self, name: str, kind: type[Stage], **given: Any) -> Iterator[tuple[Point, Stage]]:
        for point, options in self._grid(name):
            yield point, self._configured(name, kind, options, **given)

    def _grid(self, name: str) -> Iterator[tuple[Point, dict[str, Any]]]:
        """Every combination of a table's axes, with the options there."""
        table = self._table(name)
        axes = {key: values for key, values in table.items() if self._is_axis(name, key)}
        for key, values in axes.items():
            if not values or len(set(map(as_option, values))) < len(values):
                raise self._no_axis(f"[{name}] {key}", values)
        for values in product(*axes.values()):
            here = dict(zip(axes, values, strict=True))
            point = {self._named(name, key): as_option(value) for key, value in here.items()}
            yield point, table | here

    def _no_axis(self, what: str, values: object) -> UsageError:
        return UsageError(
            f"{self.path}: {what} = {values!r} is no axis; it needs values, each of them once"
        )

    def _named(self, table: str, key: str) -> str:
        """An axis is called as its option, with the stage where two stages have it."""
        alone = sum(self._is_axis(other, key) for other in _STAGES) == 1
        return key if alone else f"{table}.{key}"

    def _configured(
        self, name: str, kind: type[Stage], options: Mapping[str, Any], **given: Any
    ) -> Stage:
        known = self._options(kind)
        for key in options:
            if key not in known:
                raise unknown(f"key in [{name}] of {self.path}", key, known)
        lists = _lists(kind)
        values = {
            key: [value] if key in lists and isinstance(value, str) else value
            for key, value in options.items()
        }
        try:
            with self._naming(name):
                fields = {known[key].name: value for key, value in values.items()}
                made = msgspec.convert(fields | given, kind, strict=False)
                for key, value in values.items():
                    for spec in value if isinstance(value, list) else [value]:
                        self._check(known[key], key, spec)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$.")
            field = re.split(r"[`\[]", where)[0]
            key = next(key for key, one in known.items() if one.name == field)
            what = what.replace(" | null", "").replace("`", "")
            raise UsageError(
                f"{self.path}: [{name}] {key} = {options[key]!r} cannot be used: {what}"
            ) from None
        return made

    def _check(self, field: "Field[Any]", key: str, spec: str) -> None:
        """Raise UsageError for a spec of which nothing can be built."""
        folder = declaration_of(field).registry
        if key == "preset":
            _checked(trunk if self._of_tables else preset, spec)
        elif key in _CHECKS:
            _checked(_CHECKS[key], spec)
        elif folder is not None:
            _checked(registry_in(registries()[folder]).build, spec)

    def _options(self, kind: Any) -> dict[str, "Field[Any]"]:
        """What the file can set of a command, by option: not what is of the other kind of data."""
        to = "tables" if self._of_tables else "texts"
        return {
            flag_of(field): field
            for field, declaration in declarations(kind)
            if declaration.swept and declaration.of in (None, to)
        }

    @contextmanager
    def _naming(self, table: str) -> Iterator[None]:
        """Say where it stands that an option cannot be used."""
        try:
            yield
        except SettingError as error:
            raise UsageError(error.at(f"{self.path}: [{table}]")) from None
        except UsageError as error:
            raise UsageError(f"{self.path}: [{table}] {error}") from None

    def _compare(self) -> compare.Config:
        made = self._configured("compare", compare.Config, self._table("compare"), reports=())
        if made.against is not None and made.column is not None:
            with self._naming("compare"):
                published(made.against).column(made.column)
        return made

    def _select(self, sweep: Sweep) -> Select | None:
        if "select" not in self.tables:
            return None
        if "metric" not in (table := self._table("select")):
            raise UsageError(f"{self.path}: [select] needs metric, the figure that decides")
        select = self._configured("select", Select, table)
        if METRICS.build(select.metric).better == "neither":
            raise UsageError(
                f"{self.path}: [select] metric = {select.metric!r} cannot decide, neither more nor "
                "less of it is better; choose by another"
            )
        if any(one.split == VALIDATION for _, one in sweep.eval):
            raise UsageError(
                f"{self.path}: [eval] split = {VALIDATION!r} is what [select] chooses on; "
                "what is chosen is evaluated on another split"
            )
        if select.reach is not None and self._of_tables:
            raise UsageError(
                f"{self.path}: [select] reach is for budgets, which models of tables have not: "
                "they end when their loss falls no more; leave it out"
            )
        if select.reach is not None and sweep.budget is None:
            raise UsageError(
                f"{self.path}: [select] reach needs several budgets to try; give [train] steps, "
                "tokens or minutes as a list"
            )
        if select.reach is None and not select.over:
            raise UsageError(
                f"{self.path}: [select] needs over, the axes of which the best is taken, or reach"
            )
        # The mean over seeds decides, so a seed is no choice; nor is a budget that is climbed.
        taken = {*sweep.seeds, sweep.budget if select.reach is not None else None}
        free = [axis for axis in (*sweep.encode[0][0], *sweep.train[0][0]) if axis not in taken]
        for name in select.over:
            if name not in free:
                raise unknown(f"axis in [select] over of {self.path}", name, free)
        return select


@cache
def _checked(check: Callable[[str], object], spec: str) -> None:
    """Once for all points of a grid that share it."""
    check(spec)


def _lists(kind: Any) -> set[str]:
    """The options that are lists themselves: several metrics of one evaluation."""
    return {flag_of(field) for field, _ in declarations(kind) if field.default == ()}
