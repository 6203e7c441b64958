"""One table in a sweep file: the options of a stage, in which lists are axes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from numtok.declaration import Setting, SettingError, settings_in
from numtok.encoding.fit_codec import text_tokenizer_of
from numtok.encoding.scheme_spec import scheme_of
from numtok.errors import UsageError, unknown
from numtok.evaluation.comparison.tokens_to_target import Level
from numtok.evaluation.published import published
from numtok.models.presets import preset, trunk
from numtok.plugins import registries
from numtok.registry import registry_in
from numtok.setting_names import by_current_name, note_renamed
from numtok.setting_values import as_spec
from numtok.settings import compare, encode, eval, gen, table, train
from numtok.sweeps.plan import Point, Select

#: The settings that each table of a file holds; [fetch] holds those of its source.
SETTINGS: dict[str, Any] = {
    "gen": gen.Config,
    "table": table.Config,
    "encode": encode.Config,
    "train": train.Config,
    "eval": eval.Config,
    "compare": compare.Config,
    "select": Select,
}
#: Checks of values before anything runs, in addition to the names in registries.
_CHECKS: Mapping[str, Callable[[str], object]] = {
    "against": published,
    "tokens-to": Level.parse,
    "scheme": scheme_of,
    "text-tokenizer": text_tokenizer_of,
}


@dataclass(frozen=True, kw_only=True)
class StageTable:
    """The options of one stage in the sweep file at ``path``.

    of_tables
        True if the sweep trains on tables rather than on texts.
    ambiguous
        Options that are axes in several tables of the file. The name of such an axis includes its
        stage.
    """

    path: Path
    name: str
    options: Mapping[str, Any]
    of_tables: bool
    ambiguous: frozenset[str] = frozenset()

    @property
    def axes(self) -> dict[str, list[Any]]:
        """Options whose value is a list of values to try. Options that take a list themselves, such
        as the metrics of one evaluation, are not axes."""
        lists = _lists(SETTINGS[self.name]) if self.name in SETTINGS else ()
        return {
            key: values
            for key, values in self.options.items()
            if isinstance(values, list) and key not in lists
        }

    @property
    def size(self) -> int:
        """Number of combinations of axis values."""
        return prod(map(len, self.axes.values()))

    def axis(self, key: str) -> str:
        """Return the name of the axis for an option: the option itself, preceded by the stage if it
        is ambiguous."""
        return f"{self.name}.{key}" if key in self.ambiguous else key

    def grid(self) -> Iterator[tuple[Point, dict[str, Any]]]:
        """Yield a point for each combination of axis values, and all options at that point."""
        axes = self.axes
        for key, values in axes.items():
            if not values or len(set(map(as_spec, values))) < len(values):
                raise no_axis(self.path, f"[{self.name}] {key}", values)
        for chosen in product(*axes.values()):
            values_here = dict(zip(axes, chosen, strict=True))
            point = {self.axis(key): as_spec(value) for key, value in values_here.items()}
            yield point, {**self.options, **values_here}

    def points(self, **fields: Any) -> tuple[tuple[Point, Any], ...]:
        """Return a point for each combination of values on the axes, with the stage's configuration
        at that point."""
        return tuple((point, self.build(options, **fields)) for point, options in self.grid())

    def known(self) -> dict[str, Setting]:
        """Return the settings that this table may contain, keyed by option. Settings that only
        apply to the other kind of data (texts or tables) are left out."""
        kind = "tables" if self.of_tables else "texts"
        return {
            declared.flag: declared
            for declared in settings_in(SETTINGS[self.name]).values()
            if declared.swept and declared.of in (None, kind)
        }

    def build(self, options: Mapping[str, Any] | None = None, **fixed: Any) -> Any:
        """Build the configuration of the stage from ``options``, by default the options in the
        table.

        ``fixed`` contains fields that the file does not set. Raises UsageError if an option is
        invalid; the message names the file and the table.
        """
        options = self.options if options is None else options
        declared, fields = self.known(), dict[str, Any]()
        for key, value in options.items():
            if key not in declared:
                raise unknown(f"key in [{self.name}] of {self.path}", key, declared)
            try:
                fields[declared[key].name] = declared[key].read(value)
            except ValueError as error:
                where = f"{self.path}: [{self.name}] {key}"
                raise UsageError(f"{where} must be {error} (got {value!r})") from None
        with self.naming():
            built = SETTINGS[self.name](**fields, **fixed)
            for key in options:
                value = fields[declared[key].name]
                for spec in value if isinstance(value, tuple) else [value]:
                    self._check_spec(declared[key], spec)
        return built

    def _check_spec(self, setting: Setting, spec: str) -> None:
        """Raise UsageError for a spec that cannot be built."""
        if setting.name == "preset":
            _checked(trunk if self.of_tables else preset, spec)
        elif setting.flag in _CHECKS:
            _checked(_CHECKS[setting.flag], spec)
        elif setting.registry:
            _checked(registry_in(registries()[setting.registry]).build, spec)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Context manager that adds the file and the table to the message of a UsageError."""
        try:
            yield
        except SettingError as error:
            raise UsageError(error.at(f"{self.path}: [{self.name}]")) from None
        except UsageError as error:
            raise UsageError(f"{self.path}: [{self.name}] {error}") from None


def with_current_keys(path: Path, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a file with every option under its current name, and notify the user of
    former names."""
    return {name: _with_current_keys(path, name, table) for name, table in tables.items()}


def _with_current_keys(path: Path, name: str, table: Any) -> Any:
    if name == "also" and isinstance(table, list):
        return [with_current_keys(path, way) if isinstance(way, dict) else way for way in table]
    if not isinstance(table, dict) or name not in SETTINGS:
        return table
    settings = settings_in(SETTINGS[name]).values()
    former = _former(settings)
    for key in table.keys() & former.keys():
        note_renamed(f"{path}: [{name}] {key}", former[key])
    over = table.get("over")
    if name == "select" and isinstance(over, list):
        every = [one for kind in SETTINGS.values() for one in settings_in(kind).values()]
        # The current name of an option may be the earlier name of another one.
        renamed = _former(every) | {one.flag: one.flag for one in every}
        table = table | {"over": [renamed.get(axis, axis) for axis in over]}
    current = former | {alias: one.flag for one in settings for alias in one.aliases}
    where = f"{path}: [{name}] "
    return by_current_name(table, lambda key: current.get(key, key), where)


def _former(settings: Iterable[Setting]) -> dict[str, str]:
    """Return the current names of options by their earlier names."""
    return {old: setting.flag for setting in settings for old in setting.formerly}


def no_axis(path: Path, what: str, values: object) -> UsageError:
    """Return the error for a list that is empty or repeats a value."""
    return UsageError(f"{path}: {what} must be a list of distinct values (got {values!r})")


@cache
def _checked(check: Callable[[str], object], spec: str) -> None:
    """Check a spec once for all points of a grid that share it."""
    check(spec)


def _lists(settings: Any) -> set[str]:
    """Return the options whose values are lists."""
    return {field.flag for field in settings_in(settings).values() if field.default == ()}
