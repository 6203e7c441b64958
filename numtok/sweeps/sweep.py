"""A complete sweep: runs on a grid of data, encodings, training settings and seeds, with a
comparison per data set.

Data sets are created and encoded first, one at a time. The runs are executed next (``runs``), with
selection on the validation split if the sweep file has a table ``[select]`` (``selection``). All
results are artifacts, so an interrupted sweep can be resumed, and results are shared with other
sweeps and with commands such as ``numtok train``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from numtok.data.tables.table import read_table_of
from numtok.encoding.splits import splits
from numtok.errors import NumtokError, unknown
from numtok.evaluation.comparison.seeds import FoldStatistics
from numtok.settings.sweep import Config as Config
from numtok.stages import compare, encode, fetch, gen, table
from numtok.stages.compare import Comparison
from numtok.stages.train import VALIDATION
from numtok.store.artifact import TABLE, Artifact
from numtok.store.engines.engine import LOCAL, connected
from numtok.store.store import Store
from numtok.sweeps.file import read_sweep
from numtok.sweeps.parallel import Parallelism, cluster_parallelism, sweep_parallelism
from numtok.sweeps.plan import FETCHED, Point, Select, Source, Sweep, Trainings, label_of
from numtok.sweeps.runs import Failed, OthersLeft, Progress, Run, Runner, SweepProgress, quiet_store
from numtok.sweeps.selection import Choice, Selection

# Axes that give different test sets of one data set, and so different tables.
_TEST_SETS = ("split", "eval.split", "rows", "eval.rows")


class Average(NamedTuple):
    """A combination of settings, with the metrics on each data set and their averages over the data
    sets.

    The runs of a combination differ only in the data set, the seed and the selected values. For
    example, the best ``decoder:ud`` is one combination, even if a different base is selected on
    each data set.
    """

    label: str
    metrics: dict[str, FoldStatistics]
    each: list[dict[str, float | None]]


class Ranking(NamedTuple):
    """Mean ranks of the combinations over data sets, as used by Demšar (2006) to compare
    classifiers.

    metric
        The metric that ranks the combinations on each data set. The best has rank 1; ties share a
        rank.
    ways
        Mean and standard deviation of the ranks of each combination that has a value on all data
        sets, best first.
    apart
        Critical difference of the Nemenyi test at the 5% level, for comparisons of all pairs. Mean
        ranks that differ by less do not differ significantly.
    """

    metric: str
    data_sets: int
    ways: dict[str, FoldStatistics]
    apart: float


class SweepTable(NamedTuple):
    """The comparison of all runs on one test set. ``label`` states the values on the axes that
    determine the test set."""

    label: str
    comparison: compare.Comparison


class Result(NamedTuple):
    """The result of a sweep.

    select
        The selection settings; None if the sweep file has no table ``[select]``.
    averages, ranks
        Averages and ranks over the data sets; empty and None if there is only one data set.
    left
        For a part of a sweep, the number of missing runs in other parts. Nothing is compared until
        it is 0.
    """

    select: Select | None
    choices: list[Choice]
    tables: list[SweepTable]
    averages: list[Average]
    failed: list[Failed]
    left: int = 0
    ranks: Ranking | None = None


def run(config: Config, store: Store, progress: Progress) -> Result:
    """Execute the missing runs of a sweep, and compare all runs.

    Raises UsageError if the sweep file is invalid, and StoreError if a worker died. If an
    individual run fails, its error is included in the result.
    """
    sweep = read_sweep(Path(config.file), config.changes, config.max_runs)
    with connected(config.engine) as nodes:
        if config.engine == LOCAL:
            parallel = sweep_parallelism(sweep, config.jobs)
        else:
            parallel = cluster_parallelism(sweep, config.jobs, config.engine, nodes)
        return _swept(sweep, parallel, config.part, quiet_store(store.root), progress)


def _swept(
    sweep: Sweep, parallel: Parallelism, part: str | None, store: Store, progress: Progress
) -> Result:
    failed: list[Failed] = []
    runs = list(_runs(sweep, parallel.engine, store, progress, failed))
    choices: list[Choice] = []
    try:
        with parallel.workers(store.spool) as engine:
            runner = Runner(
                root=store.root, parallel=parallel, progress=progress, failed=failed, part=part,
                engine=engine,
            )  # fmt: skip
            if sweep.select is not None:
                runs, choices = Selection(
                    sweep=sweep, select=sweep.select, evaluate=runner, store=store, failed=failed
                ).choose(runs)
            reports = runner(runs)
    except OthersLeft as waiting:
        return Result(sweep.select, [], [], [], failed, left=waiting.count)
    progress(SweepProgress("comparing"))
    tables = []
    for label in dict.fromkeys(run.table for run in runs):
        indices = [run.index for run in runs if run.table == label]
        # Two points may be one experiment, if one writes out a default.
        paths = list(dict.fromkeys(reports[index] for index in indices if index in reports))
        if not paths:
            continue
        try:
            compared = replace(sweep.compare, reports=tuple(map(str, paths)))
            tables.append(SweepTable(label, compare.run(compared, store)))
        except NumtokError as error:
            failed.append(Failed(label, error))
    over_data = averages(sweep, runs, reports, [table.comparison for table in tables])
    better = tables[0].comparison.metrics if tables else {}
    ranked = ranks(over_data, better, len(tables)) if over_data else None
    return Result(sweep.select, choices, tables, over_data, failed, ranks=ranked)


def _runs(
    sweep: Sweep, engine: str, store: Store, progress: Progress, failed: list[Failed]
) -> Iterator[Run]:
    """Create and encode the data; yield every run on them."""
    count = 0
    for data, encoding, artifact, trainings in _data(sweep, engine, store, progress, failed):
        for training, learn in trainings:
            for evaluation, ask in sweep.eval:
                apart = {axis: evaluation[axis] for axis in _TEST_SETS if axis in evaluation}
                apart |= {"fold": training["fold"]} if "fold" in training else {}
                yield Run(
                    index=count,
                    table=label_of({**data, **apart}),
                    point={**data, **encoding, **training, **evaluation},
                    train=replace(learn, data=str(artifact.path)),
                    eval=replace(ask, data=str(artifact.path)),
                )
                count += 1


def _data(
    sweep: Sweep, engine: str, store: Store, progress: Progress, failed: list[Failed]
) -> Iterator[tuple[Point, Point, Artifact, Trainings]]:
    """Yield the data of runs (encoded data or tables), their points, and the trainings on them."""
    for data, source in sweep.data:
        batches: list[tuple[str, ...]] = []
        try:
            progress(SweepProgress(f"data {label_of(data)}".rstrip()))
            for inputs in _inputs_of(source, engine, store):
                batches.append(inputs)
        except NumtokError as error:
            failed.append(Failed(label_of(data), error))
        for inputs in batches:
            location = {**data, FETCHED: inputs[0].partition("@")[0]} if len(batches) > 1 else data
            ways = (
                (*encoding, trainings)
                for encodings, trainings in sweep.ways
                for encoding in encodings
            )
            for encoding, config, trainings in ways:
                here = label_of({**location, **encoding})
                try:
                    if config is not None:
                        progress(SweepProgress(f"encoding {here}".rstrip()))
                    artifact = _encoded(config, inputs, engine, store)
                    _check_splits(artifact, sweep)
                except NumtokError as error:
                    failed.append(Failed(here, error))
                    continue
                yield location, encoding, artifact, trainings


def _inputs_of(source: Source, engine: str, store: Store) -> Iterator[tuple[str, ...]]:
    """Yield the data of one point; ``fetch`` may give several tables."""
    if isinstance(source, fetch.Config):
        for result in fetch.run(source, store, lambda *_: None):
            yield (result.ref,)
    elif isinstance(source, table.Config):
        yield (table.run(source, store).ref,)
    elif isinstance(source, gen.Config):
        yield (gen.run(replace(source, engine=engine), store, lambda *_: None).ref,)
    else:
        yield source


def _encoded(
    config: encode.Config | None, inputs: tuple[str, ...], engine: str, store: Store
) -> Artifact:
    """Return the artifact to train on: encoded data, or the table itself."""
    if config is None:
        return store.resolve(inputs[0], {TABLE})
    config = replace(config, inputs=inputs, engine=engine)
    artifact = encode.run(config, store, lambda *_: None).artifact
    assert artifact is not None  # only a dry run returns None
    return artifact


def _check_splits(artifact: Artifact, sweep: Sweep) -> None:
    """Raise an error for data without the needed splits before training, not after it.

    Tables need no VALIDATION: rows are held back for it.
    """
    of_table = artifact.kind == TABLE
    available = read_table_of(artifact).splits() if of_table else list(splits(artifact))
    needed = {evaluation.split for _, evaluation in sweep.eval}
    needed |= {VALIDATION} if sweep.select else set()
    for name in sorted(needed - ({VALIDATION} if of_table else set())):
        if name not in available:
            raise unknown(f"split of {artifact.ref}", name, available)


_LEVEL = 0.05  # significance level of the test of ranks


def averages(
    sweep: Sweep,
    runs: Sequence[Run],
    reports: Mapping[int, Path],
    comparisons: Sequence[Comparison],
) -> list[Average]:
    """Return the average of each combination of settings over the data sets.

    ``reports`` are keyed by the index of the run, and there is one comparison per data set.
    Comparisons by group, and combinations with values on only one data set, are left out.
    """
    of_data = {axis for point, _ in sweep.data for axis in point} | {FETCHED}
    ways = {}
    for run in runs:
        if (folder := reports.get(run.index)) is not None:
            way = {axis: value for axis, value in sweep.shared(run.point) if axis not in of_data}
            ways[f"{folder.parent.name}@{folder.name}"] = label_of(way)
    by_way: dict[str, list[dict[str, float | None]]] = {}  # values on each data set
    for comparison in comparisons:
        part = comparison.parts[0]
        for experiment in comparison.experiments if part.value is None else ():
            standings = part.standings[experiment.label]
            values = {metric: standing.figure.value for metric, standing in standings.items()}
            by_way.setdefault(ways[experiment.reports[0]], []).append(values)
    # Data sets may have different metrics; a metric that one lacks is undefined there.
    metrics = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(by_way.values()))))
    return [
        Average(
            label,
            {metric: FoldStatistics.of([on.get(metric) for on in each]) for metric in metrics},
            each,
        )
        for label, each in by_way.items()
        if len(each) > 1
    ]


def ranks(ways: Sequence[Average], better: Mapping[str, str], count: int) -> Ranking | None:
    """Rank the combinations by the first metric for which ``better`` is "higher" or "lower". Return
    None unless at least two combinations have a value on all ``count`` data sets."""
    from scipy.stats import rankdata, studentized_range  # takes half a second

    metric = next((metric for metric, which in better.items() if which != "neither"), None)
    if metric is None:
        return None
    by_label = {way.label: [on.get(metric) for on in way.each] for way in ways}
    whole = {
        label: values
        for label, values in by_label.items()
        if len(values) == count and None not in values
    }
    if len(whole) < 2:
        return None
    of_each = np.array(list(whole.values()), np.float64)  # [ways, data sets]
    order = -of_each if better[metric] == "higher" else of_each
    ranked = rankdata(order, axis=0)
    statistics = {
        label: FoldStatistics.of(row.tolist()) for label, row in zip(whole, ranked, strict=True)
    }
    best_first = sorted(statistics.items(), key=lambda item: item[1].mean or 0.0)
    many = len(whole)
    studentized = float(studentized_range.ppf(1 - _LEVEL, many, np.inf)) / math.sqrt(2)
    apart = studentized * math.sqrt(many * (many + 1) / (6 * count))
    return Ranking(metric, count, dict(best_first), apart)
