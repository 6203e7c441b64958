"""Races on stored tables: heads that predict the target from the columns."""

from pathlib import Path

from numtok.data.reading.split_rule import TRAIN
from numtok.data.tables.table import VALIDATION, learnt_rows, read_table_of, twin_notes
from numtok.errors import DataError, NumtokError
from numtok.models.presets import trunk
from numtok.setting_scope import refuse
from numtok.settings.race import Config
from numtok.store.artifact import TABLE
from numtok.store.store import Store
from numtok.sweeps.race.candidates import judged_heads, table_entries
from numtok.sweeps.race.entrants import Entered, check_varies, few_rows, test_split
from numtok.sweeps.race.plan import Progress, RaceProgress
from numtok.sweeps.race.words import FieldSummary
from numtok.training.trained_table import FittingRecipe, held_back


def enter_table(config: Config, store: Store, progress: Progress) -> Entered:
    """Read a stored table, and return it with its candidates.

    Raises UsageError if a setting does not apply to a stored table, and DataError if it has too few
    rows or a constant target.
    """
    if config.preset is not None:
        trunk(config.preset)
    of_file = "target", "split", "fields", "drop", "on_error"
    refuse(config, of_file, f"{config.inputs[0]}, a stored table: numtok table sets it")
    refuse(config, ("numerals", "not_numbers", "text_field", "models"), "a table")
    progress(RaceProgress("", "reading the table"))
    artifact = store.resolve(config.inputs[0], {TABLE})
    rows_of = read_table_of(artifact)
    file, splits = rows_of.file, rows_of.splits(0)
    test = test_split(splits)
    if TRAIN not in splits or test is None:
        raise DataError(
            f"{artifact.ref} has the splits {', '.join(splits)}, but a race needs {TRAIN} and "
            "test. Make the table with both"
        )
    train = learnt_rows(rows_of, 0)
    named = filter(splits.__contains__, dict.fromkeys([TRAIN, VALIDATION, test]))
    values = {name: rows_of.target[rows_of.split(name)] for name in named}
    check_varies(artifact.ref, file.target, values)
    field = FieldSummary.of_column(file.target, rows_of.target[train])
    verdicts = judged_heads(config.schemes)
    if VALIDATION in splits:
        fitted, validation = len(train), len(rows_of.split(VALIDATION))
    else:  # each training run holds rows back
        recipe = FittingRecipe()
        parts = held_back(len(train), recipe.validation, recipe.seed)
        fitted, validation = map(len, parts)
    rows = fitted, validation, len(rows_of.split(test))
    few = few_rows(artifact.ref, rows, test)
    notes = [*file.notes, *few, *twin_notes(rows_of, [test])]
    return Entered(
        name=config.name or f"{artifact.name}-race",
        kind="rows of a table",
        config=config,
        table_preset=config.preset,
        fields=[field],
        verdicts=verdicts,
        entries=table_entries(field, verdicts),
        split=None,
        test=test,
        rows=rows,
        notes=notes,
        tables={"": artifact},
    )


def is_stored_table(name: str, store: Store) -> bool:
    """Return whether a name is the REF of a stored table."""
    if Path(name).is_file():
        return False
    try:
        store.resolve(name, {TABLE})
    except NumtokError:  # reading it as texts reports the error
        return False
    return True
