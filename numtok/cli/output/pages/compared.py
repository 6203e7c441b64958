"""A comparison with what its reports say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numtok.analysis.panels.numbers import SizePanel, size_panel
from numtok.evaluation.report_files import Evaluation, ReportPredictions, read
from numtok.reports import REPORT
from numtok.stages.compare import Comparison
from numtok.store.artifact import Resolve


@dataclass(frozen=True, eq=False)
class Compared:
    """What a page has of one comparison, read once.

    name, heading
        Set those of several on one page apart; the heading is empty where there is one.
    evaluations
        By the label of the experiment, one a seed.
    predictions
        Of the first seed of each; empty where no numbers were predicted.
    sizes
        Their errors by magnitude.
    """

    name: str
    heading: str
    comparison: Comparison
    evaluations: Mapping[str, Sequence[Evaluation]]
    predictions: Mapping[str, ReportPredictions]
    sizes: SizePanel | None

    @classmethod
    def read(
        cls, comparison: Comparison, resolve: Resolve, name: str = "all", heading: str = ""
    ) -> "Compared":
        """Raises as reading reports does."""
        evaluations = {
            one.label: [read(resolve(ref, {REPORT})) for ref in one.reports]
            for one in comparison.experiments
        }
        predictions: dict[str, ReportPredictions] = {}
        sizes = None
        if comparison.measures == "numbers":
            predictions = {
                label: ReportPredictions.read(seeds[0]) for label, seeds in evaluations.items()
            }
            answers = {label: one.answers for label, one in predictions.items()}
            sizes = size_panel(answers, colours_of(comparison), kind=f"{name}-size")
        return cls(name, heading, comparison, evaluations, predictions, sizes)

    @property
    def firsts(self) -> dict[str, Evaluation]:
        """Of each experiment its first seed."""
        return {label: seeds[0] for label, seeds in self.evaluations.items()}

    @property
    def colours(self) -> dict[str, int]:
        """As :func:`colours_of`."""
        return colours_of(self.comparison)


def colours_of(comparison: Comparison) -> dict[str, int]:
    """A place in the palette for each experiment, by its label."""
    return {one.label: place for place, one in enumerate(comparison.experiments)}
