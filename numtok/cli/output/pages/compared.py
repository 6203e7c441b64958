"""Experiments on one test set, with their reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numtok.analysis.panels.numbers import SizePanel, size_panel
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.reports import REPORT
from numtok.stages.compare import Comparison
from numtok.store.artifact import Resolve


@dataclass(frozen=True, eq=False, kw_only=True)
class Compared:
    """The reports and predictions of some experiments, read once.

    name, heading
        Identify the test set on a page with several; the heading is empty if there is one.
    colours
        Index in the palette for each experiment, by its label.
    evaluations
        By the label of the experiment, one per seed.
    predictions
        Predictions of the first seed of each; empty if no numbers were predicted.
    sizes
        Their errors by magnitude.
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
        """Read the reports of each experiment, of one ``target`` or of all.

        Raises as reading reports does.
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
        """Read the experiments of a comparison, as :meth:`read` does."""
        reports = {one.label: one.reports for one in comparison.experiments}
        return cls.read(reports, colours_of(comparison), resolve, name, heading)

    @property
    def firsts(self) -> dict[str, Evaluation]:
        """First seed of each experiment, by label."""
        return {label: seeds[0] for label, seeds in self.evaluations.items()}


def colours_of(comparison: Comparison) -> dict[str, int]:
    """A place in the palette for each experiment, by its label."""
    return {one.label: place for place, one in enumerate(comparison.experiments)}
