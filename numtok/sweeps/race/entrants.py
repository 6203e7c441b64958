"""Data as they are entered into a race: looked at, with splits, encoded for each that takes part.

Texts and tables differ in this alone; afterwards candidates learn from artifacts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from numtok.data.reading.sources import find_sources
from numtok.data.reading.split_rule import TRAIN
from numtok.data.reading.streams import Spool, is_stream
from numtok.data.tables.columns import SPLIT_COLUMN
from numtok.data.tables.file import FORMATS, parsed, read_file
from numtok.data.tables.table import VALIDATION, learnt_rows, read_table_of, twin_notes
from numtok.declaration import settings_in
from numtok.encoding.splits import read_split
from numtok.errors import DataError, NumtokError, UsageError, meaningless, unknown
from numtok.evaluation.slots import LEAST as LEAST_OF_SLOT
from numtok.models.presets import preset, trunk
from numtok.settings.race import Config
from numtok.stages import encode, profile, table
from numtok.store.artifact import TABLE, Artifact
from numtok.store.quota import Quota
from numtok.store.store import Store
from numtok.sweeps.race.candidates import (
    Entrant,
    Verdict,
    judged,
    judged_heads,
    table_entries,
    text_entries,
)
from numtok.sweeps.race.plan import Progress, RaceProgress
from numtok.sweeps.race.splitting import SHARES, TimeSplit, split_of_columns, split_of_texts
from numtok.sweeps.race.words import Slot
from numtok.training.trained_table import FittingRecipe, held_back

#: Rows of the train split, and of the two others, below which a race is refused, or warned of.
LEAST, FEW = (40, 10), (200, 30)
_PREDICTED = 2_000  # numbers of the validation split, at most; of the test split so many times more
_MORE = 5
_MOST_NAMED = 5  # fields in a message


@dataclass(frozen=True, kw_only=True)
class Entered:
    """Data and what may race on them.

    of_table
        Whether the data are a table.
    split
        How rows were split, as an option; None where they have splits of their own.
    test
        The split of the last round.
    rows
        Of the train, validation and test split.
    """

    name: str
    of_table: bool
    slots: list[Slot]
    verdicts: list[Verdict]
    entries: list[Entrant]
    split: str | None
    test: str
    rows: tuple[int, int, int]
    notes: list[str]
    table: Artifact | None = None


def is_table(config: Config, store: Store) -> bool:
    """Whether the data are a table: a CSV file, Parquet with a target, or the REF of one.

    Raises UsageError for a table among several inputs, and a file without a target.
    """
    first = config.inputs[0]
    file = Path(first).is_file() and first.endswith(FORMATS)
    if file and (first.endswith(".csv") or config.target is not None):
        found = True
    else:
        found = not Path(first).exists() and _is_table_ref(first, store)
    if found and len(config.inputs) > 1:
        raise UsageError(f"{first} is a table, of which a race takes one; name it alone")
    return found


def _is_table_ref(ref: str, store: Store) -> bool:
    try:
        store.resolve(ref, {TABLE})
    except NumtokError:  # what is wrong is told where it is read as texts
        return False
    return True


# --- texts -------------------------------------------------------------------------------------


def enter_texts(config: Config, store: Store, progress: Progress) -> Entered:
    """Raises UsageError, and DataError for texts without numbers to learn or with too few rows."""
    if config.preset is not None:
        preset(config.preset)
    _refuse(config, ("drop",), "texts")
    rule, name, split_notes = _rule(config, store)
    progress(RaceProgress("", "reading the data"))
    found = profile.run(
        profile.Config(
            config.inputs,
            schemes=config.schemes,
            split=rule,
            numerals=config.numerals,
            text_field=config.text_field,
            on_error=config.on_error,
            engine=config.engine,
        ),
        store,
        lambda what, done, total, rows: progress(RaceProgress("", what, done, total)),
    )
    shown = ", ".join(config.inputs)
    if not found.numbers:
        raise DataError(
            ". ".join(
                [
                    f"{shown}: {found.rows:,} rows, and no number in them; a race needs numbers to "
                    "predict",
                    *found.notes,
                ]
            )
        )
    if rule is not None and config.split is None:  # else splits are theirs
        _few(shown, _counted(found.splits, "test"), "test")
    test = _test_split(shown, found.splits, rule)
    rows = _counted(found.splits, test)
    _check_targets(shown, found, config.target)
    verdicts = judged(found, config.schemes)
    notes = [*found.notes, *split_notes]
    return Entered(
        name=config.name or f"{name}-race",
        of_table=False,
        slots=[Slot.of_profile(slot) for slot in found.slots],
        verdicts=verdicts,
        entries=text_entries(found, verdicts),
        split=rule,
        test=test,
        rows=rows,
        notes=notes + _few(shown, rows, test),
    )


def _counted(splits: Mapping[str, int], test: str) -> tuple[int, int, int]:
    """Rows of the train, validation and test split."""
    return splits.get(TRAIN, 0), splits.get(VALIDATION, 0), splits.get(test, 0)


def _rule(config: Config, store: Store) -> tuple[str | None, str, list[str]]:
    """Return the split of rows whose input names none, a name for the data, and notes on the
    split."""
    for one in config.inputs:
        if is_stream(one.partition("=")[2] or one) or is_stream(one):
            raise UsageError(
                f"{one} can be read only once, and a race reads its data again for each scheme; "
                "give a file"
            )
    spool = Spool(_no_folder, Quota.parse(None))
    sources, name = find_sources(config.inputs, store.resolve, lambda note: None, spool)
    if config.split is not None or all(source.split is not None for source in sources):
        return config.split, name, []
    by_time = split_of_texts(sources, config.text_field, config.on_error == "skip")
    return by_time.rule or SHARES, name, by_time.notes


def _no_folder() -> Path:
    raise AssertionError("only streams are spooled, and they are refused")


def _test_split(shown: str, splits: Mapping[str, int], rule: str | None) -> str:
    """The split that texts are tested on; DataError where one of the three is lacking."""
    test = _tested(splits)
    if TRAIN in splits and VALIDATION in splits and test is not None:
        return test
    lacking = [name for name in (TRAIN, VALIDATION) if name not in splits]
    lacking += [] if test else ["test"]
    remedy = "leave --split out" if rule else f"name files without split= (--split {SHARES})"
    raise DataError(
        f"{shown}: no row is in the split{'s' * (len(lacking) > 1)} {' or '.join(lacking)} (there "
        f"are {', '.join(splits)}); a race learns on {TRAIN}, chooses on {VALIDATION} and is "
        f"decided on test: {remedy}"
    )


def _tested(splits: Iterable[str]) -> str | None:
    """``test``, or the first that is neither learnt nor looked at; None where there is none."""
    others = [name for name in splits if name not in (TRAIN, VALIDATION)]
    return "test" if "test" in others else next(iter(others), None)


class Encodings:
    """What candidates learn from: of texts encoded in the scheme of each when it is first asked
    for, so that what is left out for want of time costs none; of a table the table."""

    def __init__(self, config: Config, entered: Entered, store: Store, progress: Progress) -> None:
        self._config, self._entered, self._store = config, entered, store
        self._progress = progress
        self._made: dict[tuple[str, str | None], Artifact] = {}

    def of(self, entry: Entrant) -> Artifact:
        """Made where it is not there."""
        if self._entered.table is not None:
            return self._entered.table
        key = entry.scheme, entry.normalize
        if key not in self._made:
            entries = self._entered.entries
            done = entries.index(entry)
            self._progress(RaceProgress("", f"encoding {entry.label}", done, len(entries)))
            self._made[key] = self._encoded(*key)
        return self._made[key]

    def _encoded(self, scheme: str, normalize: str | None) -> Artifact:
        config = self._config
        made = encode.run(
            encode.Config(
                config.inputs,
                scheme=scheme,
                split=self._entered.split,
                numerals=config.numerals,
                normalize=normalize,
                text_field=config.text_field,
                on_error=config.on_error,
                engine=config.engine,
            ),
            self._store,
            lambda *_: None,
        ).artifact
        assert made is not None  # it was no dry run
        return made


def predicted_rows(data: Artifact, entered: Entered) -> tuple[int | None, int | None]:
    """How many rows of the validation and of the test split are predicted; None for all. A text
    that is asked for each of its numbers in turn is asked many times."""
    if data.kind == TABLE:
        return None, None
    samples = read_split(data, VALIDATION)
    asked = len(samples.targets) or len(samples.numbers)
    a_row = max(1.0, asked / len(samples))
    most = max(LEAST_OF_SLOT, int(_PREDICTED / a_row))
    _, validation, test = entered.rows
    return (
        most if validation > most else None,
        _MORE * most if test > _MORE * most else None,
    )


def _check_targets(shown: str, found: profile.Profile, target: str | None) -> None:
    """Raise UsageError for a target that no row of the train split has, and DataError for numbers
    to predict that are constant."""
    if target is not None and not found.targets:
        raise meaningless("target", "rows that have no targets")
    if target is not None and target not in found.targets:
        raise unknown("target", target, found.targets)
    ranges = {slot.name: (slot.low, slot.high) for slot in found.slots}
    if found.targets:
        ranges = {name: ends for name, ends in found.targets.items() if target in (None, name)}
    if all(low == high is not None for low, high in ranges.values()):
        names = ", ".join(list(ranges)[:_MOST_NAMED])
        raise DataError(
            f"{shown}: all numbers to predict are constant ({names}). Pass data in which they vary"
        )


# --- tables ------------------------------------------------------------------------------------


def enter_table(config: Config, store: Store, progress: Progress) -> Entered:
    """Raises UsageError, also for an unknown target column, and DataError for too few rows or a
    constant target."""
    if config.preset is not None:
        trunk(config.preset)
    _refuse(config, ("numerals", "text_field"), "a table")
    progress(RaceProgress("", "reading the table"))
    artifact, told = _table(config, store)
    rows_of = read_table_of(artifact)
    file, splits = rows_of.file, rows_of.splits(0)
    test = _tested(splits)
    if TRAIN not in splits or test is None:
        raise DataError(
            f"{artifact.ref} has the splits {', '.join(splits)}; a race learns on {TRAIN} and is "
            "decided on test: make the table with both"
        )
    train = learnt_rows(rows_of, 0, None, 0)
    median = np.median(rows_of.target[train])
    for name in filter(splits.__contains__, dict.fromkeys([TRAIN, VALIDATION, test])):
        if (rows_of.target[rows_of.split(name)] == median).all():
            raise DataError(
                f"{artifact.ref}: the target {file.target!r} is {median:g}, the training median, "
                f"in every row of the split {name}. Pass other splits with --split"
            )
    slot = Slot.of_column(file.target, rows_of.target[train])
    verdicts = judged_heads(config.schemes)
    if VALIDATION in splits:
        learnt, validation = len(train), len(rows_of.split(VALIDATION))
    else:  # each training holds rows back
        usual = FittingRecipe()
        parts = held_back(len(train), usual.validation, usual.seed)
        learnt, validation = map(len, parts)
    rows = learnt, validation, len(rows_of.split(test))
    few = _few(artifact.ref, rows, test)
    notes = [*told, *file.notes, *few, *twin_notes(rows_of, [test])]
    return Entered(
        name=config.name or f"{artifact.name}-race",
        of_table=True,
        slots=[slot],
        verdicts=verdicts,
        entries=table_entries(slot, verdicts),
        split=None,
        test=test,
        rows=rows,
        notes=notes,
        table=artifact,
    )


def _table(config: Config, store: Store) -> tuple[Artifact, list[str]]:
    """The table, and what is to be said of how it was made."""
    path = config.inputs[0]
    if not Path(path).is_file():
        of_file = "target", "split", "drop", "on_error"
        _refuse(config, of_file, f"{path}, a table made already: numtok table sets it")
        return store.resolve(path, {TABLE}), []
    content = parsed(path, read_file(Path(path)))
    if config.target is None:
        raise UsageError(
            f"{path} is a table; say which column is to be predicted with --target, one of "
            f"{', '.join(content.column_names)}"
        )
    by_time, dates = split_of_columns(content, config.target)
    given = any(SPLIT_COLUMN.fullmatch(name) for name in content.column_names)
    if given or config.split is not None:
        by_time = TimeSplit(None)
    split = config.split or by_time.rule
    drop = tuple(dict.fromkeys([*config.drop, *dates]))
    settings = table.Config(
        path, target=config.target, split=split, drop=drop, on_error=config.on_error
    )
    return table.run(settings, store).artifact, [*by_time.notes, *_dropped(dates)]


def _refuse(config: Config, names: Sequence[str], told: str) -> None:
    """Raise UsageError for the first of these settings that is not at its default, since it would
    be ignored."""
    for key, one in settings_in(type(config)).items():
        if key in names and getattr(config, key) != one.default:
            raise meaningless(one.flag, told)


def _dropped(dates: Sequence[str]) -> list[str]:
    return [f"{', '.join(map(repr, dates))}: dates are no features, and left out."] if dates else []


def _few(shown: str, rows: Sequence[int], test: str) -> list[str]:
    """What is to be said of few rows; DataError for too few."""
    named = [(TRAIN, rows[0], 0), (VALIDATION, rows[1], 1), (test, rows[2], 1)]
    told = ", ".join(f"{name} {count:,}" for name, count, _ in named)
    if any(count < LEAST[place] for _, count, place in named):
        raise DataError(
            f"{shown}: too few rows to tell encodings apart ({told}); a race needs {LEAST[0]} to "
            f"learn from and {LEAST[1]} in each of the other splits at least, and {FEW[0]} and "
            f"{FEW[1]} to say much"
        )
    if any(count < FEW[place] for _, count, place in named):
        return [
            f"Few rows ({told}): intervals are wide, and ties likely; {FEW[0]} to learn from and "
            f"{FEW[1]} in each of the other splits say more."
        ]
    return []
