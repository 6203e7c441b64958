"""A sweep: a grid of data, encodings, trainings and seeds -> reports, and a table a data set.

Data and encodings are made first, one after the other; then the runs (``runs``),
where something is to be chosen on the validation split first (``selection``). All
of it are artifacts, so a sweep that was stopped goes on where it stood, and
shares what it makes with other sweeps and with the commands.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from numtok.artifact import Artifact
from numtok.errors import NumtokError, unknown
from numtok.stages import compare, encode, gen
from numtok.stages._data import splits
from numtok.stages.train import VALIDATION
from numtok.store import Store
from numtok.sweeps.file import read_sweep
from numtok.sweeps.plan import Select, Sweep, label_of
from numtok.sweeps.runs import Failed, Progress, Run, Runner, Update, side_by_side
from numtok.sweeps.selection import Choice, Selection

# What sets test sets of one data set apart, and so tables.
_TEST_SETS = ("split", "eval.split", "rows")


@dataclass(frozen=True)
class Config:
    """What ``numtok sweep`` was asked for: ``changes`` of what the file says, as
    ``TABLE.KEY=VALUE``, and how many runs go on side by side."""

    file: str
    changes: tuple[str, ...] = ()
    jobs: int | None = None


class Table(NamedTuple):
    """The comparison of all runs on one test set, and where on the axes that is."""

    label: str
    comparison: compare.Comparison


class Result(NamedTuple):
    """All of a sweep; ``select`` is what was chosen by, None where nothing was."""

    select: Select | None
    choices: list[Choice]
    tables: list[Table]
    failed: list[Failed]


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Make whatever of a sweep is not there yet, and compare.

    Raises UsageError for a file that is not understood, StoreError where a worker died; what goes
    wrong with single runs is in the result.
    """
    sweep = read_sweep(Path(config.file), config.changes)
    side = side_by_side(sweep, config.jobs)
    store = Store(store.root, lambda note: None, any_name=True)
    failed: list[Failed] = []
    runs = list(_runs(sweep, store, progress, failed))
    runner = Runner(store.root, side, progress, failed)
    choices: list[Choice] = []
    if sweep.select is not None:
        runs, choices = Selection(sweep, sweep.select, runner, store).choose(runs)
    reports = runner(runs)
    progress(Update("comparing"))
    tables = []
    for label in dict.fromkeys(run.table for run in runs):
        paths = [reports[run.index] for run in runs if run.table == label and run.index in reports]
        if not paths:
            continue
        try:
            compared = replace(sweep.compare, reports=tuple(map(str, paths)))
            tables.append(Table(label, compare.run(compared, store)))
        except NumtokError as error:
            failed.append(Failed(label, error))
    return Result(sweep.select, choices, tables, failed)


def _runs(sweep: Sweep, store: Store, progress: Progress, failed: list[Failed]) -> Iterator[Run]:
    """Make the data and encode them; every run that this allows."""
    count = 0
    for data, source in sweep.data:
        try:
            progress(Update(f"data {label_of(data)}".rstrip()))
            inputs = _inputs(source, store)
        except NumtokError as error:
            failed.append(Failed(label_of(data), error))
            continue
        for encoding, how in sweep.encode:
            try:
                progress(Update(f"encoding {label_of({**data, **encoding})}".rstrip()))
                encoded = encode.run(replace(how, inputs=inputs), store, lambda *_: None).artifact
                assert encoded is not None  # it was no dry run
                _check_splits(encoded, sweep)
            except NumtokError as error:
                failed.append(Failed(label_of({**data, **encoding}), error))
                continue
            for training, learn in sweep.train:
                for evaluation, ask in sweep.eval:
                    apart = {axis: evaluation[axis] for axis in _TEST_SETS if axis in evaluation}
                    yield Run(
                        count,
                        label_of({**data, **apart}),
                        {**data, **encoding, **training, **evaluation},
                        replace(learn, encoded=str(encoded.path)),
                        replace(ask, encoded=str(encoded.path)),
                    )
                    count += 1


def _inputs(source: tuple[str, ...] | gen.Config, store: Store) -> tuple[str, ...]:
    """What ``encode`` reads."""
    if not isinstance(source, gen.Config):
        return source
    return (gen.run(source, store, lambda *_: None).ref,)


def _check_splits(encoded: Artifact, sweep: Sweep) -> None:
    """Refuse data without the splits that are asked for now, not after all the training."""
    there = splits(encoded)
    asked = {one.split for _, one in sweep.eval}
    for name in sorted(asked | ({VALIDATION} if sweep.select else set())):
        if name not in there:
            raise unknown(f"split of {encoded.ref}", name, there)
