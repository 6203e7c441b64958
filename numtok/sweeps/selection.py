"""Selection of the best candidates by a metric on the validation split.

Candidates differ on the axes in ``over``; all candidates of a group have the same values on the
other axes. The mean of the metric over all seeds, or over the first few, decides.

With ``reach``, selection is successive halving: all candidates of a group train at the smallest
budget. The better half then trains from scratch at the next budget, with a new schedule, and so on,
until the best candidate reaches the target. The reported cost is the cost of reaching the target
with known settings.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from numtok.errors import DataError
from numtok.evaluation.comparison.experiments import ExperimentCosts, costs_of
from numtok.evaluation.prediction_table import check_measures
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.metrics.base import METRICS
from numtok.registry import spec_of
from numtok.reports import REPORT
from numtok.stages.train import VALIDATION
from numtok.store.store import Store
from numtok.sweeps.plan import Select, Shared, Sweep, label_of
from numtok.sweeps.runs import Failed, Run

#: Executes runs and returns the report of each by its index.
Evaluate = Callable[[Sequence[Run]], Mapping[int, Path]]


class Choice(NamedTuple):
    """Result of selection in one group of candidates.

    group
        Values that all candidates of the group share.
    chosen
        Values that distinguish the best candidate; None if no candidate has a metric.
    figure
        Mean of its metric on the validation split, over the seeds used for selection; None if
        ``chosen`` is None.
    reached
        True if it reached the target ``reach``; None if ``reach`` is not set.
    costs
        Costs of its training runs; None if ``chosen`` is None.
    """

    group: str
    chosen: str | None
    figure: float | None
    reached: bool | None
    costs: ExperimentCosts | None


class _Candidate(NamedTuple):
    """Runs that differ only in the seed, with their evaluations on the validation split."""

    runs: list[Run]
    evaluations: list[Evaluation]
    figure: float


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Selects the best candidates among the runs of a sweep (see :meth:`choose`)."""

    sweep: Sweep
    select: Select
    evaluate: Evaluate
    store: Store
    failed: list[Failed]  # candidates without a metric are appended

    def choose(self, runs: Sequence[Run]) -> tuple[list[Run], list[Choice]]:
        """Return the runs of the selected candidates, and the choice in each group."""
        groups = _grouped(self._deciding(runs), lambda run: self.sweep.shared(run.point))
        best: dict[Shared, _Candidate] = {}
        for budget in sorted({self._budget(run) for run in runs}):
            waiting = {
                shared: [run for run in group if self._budget(run) == budget]
                for shared, group in groups.items()
                if not self._reached(best.get(shared))
            }
            if not waiting:
                break
            for shared, ranked in self._ranked(waiting).items():
                survivors = ranked[: -(-len(ranked) // 2)]
                better = {self._candidate(candidate.runs[0]) for candidate in survivors}
                groups[shared] = [run for run in groups[shared] if self._candidate(run) in better]
                if ranked:
                    best[shared] = ranked[0]
        seeds = _grouped(runs, self._way)
        chosen = [run for candidate in best.values() for run in seeds[self._way(candidate.runs[0])]]
        return chosen, [self._choice(shared, best.get(shared)) for shared in groups]

    def _deciding(self, runs: Sequence[Run]) -> Sequence[Run]:
        """Return the runs of the seeds that decide."""
        if self.select.seeds is None or not self.sweep.seeds:
            return runs
        [axis] = self.sweep.seeds
        first = list(dict.fromkeys(run.point.get(axis) for run in runs))[: self.select.seeds]
        return [run for run in runs if run.point.get(axis) in first]

    def _way(self, run: Run) -> Shared:
        """Return the point of a run on all axes except that of seeds."""
        return tuple(item for item in run.point.items() if item[0] not in self.sweep.seeds)

    def _budget(self, run: Run) -> tuple[float, ...]:
        return tuple(float(run.point[axis]) for axis in self.sweep.climbed)

    def _candidate(self, run: Run) -> Shared:
        """Return the values that distinguish the candidate of a run within its group."""
        return tuple((axis, run.point[axis]) for axis in self.select.over)

    def _ranked(self, groups: Mapping[Shared, Sequence[Run]]) -> dict[Shared, list[_Candidate]]:
        """Execute all runs; return the candidates of each group that have a metric, best first."""
        runs = [run for group in groups.values() for run in group]
        reports = self.evaluate(
            [replace(run, eval=replace(run.eval, split=VALIDATION)) for run in runs]
        )
        evaluations = {
            index: read(self.store.resolve(str(path), {REPORT})) for index, path in reports.items()
        }
        ranked = {}
        for shared, group in groups.items():
            measured = [
                candidate
                for runs_of in _grouped(group, self._candidate).values()
                if (candidate := self._measured(runs_of, evaluations))
            ]
            ranked[shared] = sorted(measured, key=lambda candidate: self._badness(candidate.figure))
        return ranked

    def _measured(
        self, runs: list[Run], evaluations: Mapping[int, Evaluation]
    ) -> _Candidate | None:
        """Return the candidate of the given runs; None if a seed failed or has no metric."""
        metric = METRICS.build(self.select.metric)
        evaluated = [(run, evaluations[run.index]) for run in runs if run.index in evaluations]
        values = []
        for run, evaluation in evaluated:
            check_measures([metric], evaluation.report.measures, evaluation.ref)
            answers = ReportPredictions.read(evaluation).answers
            if why := metric.why_undefined(answers):
                message = f"{evaluation.ref} cannot be selected: {spec_of(metric)} is undefined "
                message += f"({why})"
                self.failed.append(Failed(label_of(run.point), DataError(message)))
                continue
            values.append(metric.plain(answers))
        if len(values) < len(runs):
            return None
        used = [evaluation for _, evaluation in evaluated]
        return _Candidate(runs, used, sum(values) / len(values))

    def _badness(self, figure: float) -> float:
        return -figure if METRICS.build(self.select.metric).better == "higher" else figure

    def _reached(self, best: _Candidate | None) -> bool:
        if self.select.reach is None or best is None:
            return False
        return self._badness(best.figure) <= self._badness(self.select.reach)

    def _choice(self, shared: Shared, best: _Candidate | None) -> Choice:
        group = label_of(dict(shared))
        reached = None if self.select.reach is None else self._reached(best)
        if best is None:
            return Choice(group, None, None, reached, None)
        point = best.runs[0].point
        chosen = {axis: point[axis] for axis in (*self.select.over, *self.sweep.climbed)}
        return Choice(group, label_of(chosen), best.figure, reached, costs_of(best.evaluations))


def _grouped(runs: Iterable[Run], key: Callable[[Run], Shared]) -> dict[Shared, list[Run]]:
    groups: dict[Shared, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups
