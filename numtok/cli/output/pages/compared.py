"""Experiments on one test set, with their reports and predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numtok.analysis.panels.numbers import SizePanel, size_panel
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.reports import REPORT
from numtok.stages.compare import Comparison
from numtok.store.artifact import Resolve


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """Experiments on one test set, with their reports and predictions.

    name, heading
        Name of the test set, which is used in ids on the page, and its heading, which is empty if
        there is only one test set.
    colours
        Palette index of each experiment, keyed by label.
    evaluations
        Reports of each experiment, one per seed, keyed by label.
    predictions
        Predictions of each experiment's first seed, keyed by label; empty if no numbers were
        predicted.
    sizes
        Panel of the prediction errors by magnitude of the true value, or None.
    """

    name: str
    heading: str
    colours: Mapping[str, int]
    evaluations: Mapping[str, Sequence[Evaluation]]
    predictions: Mapping[str, ReportPredictions]
    sizes: SizePanel | None

    @classmethod
    def read(
        cls,
        reports: Mapping[str, Sequence[str]],
        colours: Mapping[str, int],
        resolve: Resolve,
        name: str = "all",
        heading: str = "",
        target: str | None = None,
    ) -> "Compared":
        """Read the reports of each experiment. Predictions are limited to ``target``, if given.

        ``reports`` contains the report REFs of each experiment, one per seed, keyed by label.
        Raises the same errors as reading a report.
        """
        evaluations = {
            label: [read(resolve(ref, {REPORT})) for ref in refs] for label, refs in reports.items()
        }
        predictions: dict[str, ReportPredictions] = {}
        sizes = None
        if all(seeds[0].report.measures == "numbers" for seeds in evaluations.values()):
            predictions = {
                label: ReportPredictions.read(seeds[0]).of_target(target)
                for label, seeds in evaluations.items()
            }
            answers = {label: one.answers for label, one in predictions.items()}
            sizes = size_panel(answers, colours, kind=f"{name}-size")
        return cls(
            name=name,
            heading=heading,
            colours=colours,
            evaluations=evaluations,
            predictions=predictions,
            sizes=sizes,
        )

    @classmethod
    def of_comparison(
        cls, comparison: Comparison, resolve: Resolve, name: str = "all", heading: str = ""
    ) -> "Compared":
        """Build from the reports of the experiments in a comparison (see :meth:`read`)."""
        reports = {one.label: one.reports for one in comparison.experiments}
        return cls.read(reports, colours_of(comparison), resolve, name, heading)

    @property
    def firsts(self) -> dict[str, Evaluation]:
        """Report of each experiment's first seed, keyed by label."""
        return {label: seeds[0] for label, seeds in self.evaluations.items()}


def colours_of(comparison: Comparison) -> dict[str, int]:
    """Return the palette index of each experiment, keyed by label."""
    return {one.label: place for place, one in enumerate(comparison.experiments)}
