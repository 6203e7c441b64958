"""Number of training tokens until a validation metric reaches a level.

Validation runs a few times per training run; between two validations the metric is interpolated
linearly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from numtok.data.reading.split_rule import TRAIN
from numtok.errors import DataError, UsageError, unknown
from numtok.evaluation.comparison.requirements import Limit
from numtok.evaluation.comparison.seeds import SeedStatistics, seed_statistics
from numtok.evaluation.report_files import Evaluation
from numtok.reports import Figure
from numtok.store.artifact import MODEL, Resolve
from numtok.training.log import EXACT, LoggedMetrics, read_log


class TokensToTarget(msgspec.Struct, frozen=True):
    """Number of training tokens after which an experiment reached a level.

    level, label
        The level as text, and the label of the experiment.
    tokens
        Number of tokens for each seed, in the order of the reports; None for a run that did not
        reach the level. The whole list is None if a log lacks the metric. For example, ``exact`` is
        not logged for schemes with a value channel, because their answers are never exact.
    statistics
        Statistics over the seeds. They are undefined if any seed did not reach the level.
    """

    level: str
    label: str
    tokens: list[float | None] | None
    statistics: SeedStatistics


@dataclass(frozen=True)
class Level(Limit):
    """Level that a logged metric must reach in training. ``key`` is a column of the log, such as
    ``loss``."""

    @classmethod
    def parse(cls, text: str) -> "Level":
        """Parse a level such as ``"loss<=0.5"``. Raises UsageError if it is invalid."""
        return cls.read(text, "--tokens-to", "METRIC", "loss<=0.5")

    def tokens(self, entries: Sequence[tuple[float, float | None]]) -> float | None:
        """Return the number of tokens at which the level is first reached, or None if it is not
        reached.

        ``entries`` contains a pair (tokens, value) for each validation, in order. The value is None
        if it is not finite. Between two validations, the value is interpolated linearly.

        >>> Level.parse("loss<=0.5").tokens([(100, 2.0), (200, 1.0), (300, 0.0)])
        250.0
        """
        before: tuple[float, float] | None = None
        for tokens, value in entries:
            if value is None:  # not finite
                before = None
                continue
            if self.holds(value):
                if before is None:
                    return float(tokens)
                share = (self.limit - before[1]) / (value - before[1])
                return before[0] + share * (tokens - before[0])
            before = tokens, value
        return None


def tokens_to_target(
    levels: Sequence[Level],
    experiments: Sequence[tuple[str, Sequence[Evaluation]]],
    resolve: Resolve,
) -> list[TokensToTarget]:
    """Return the number of training tokens until each level is reached, for each experiment.

    Each experiment is given as its label and its reports. ``resolve`` finds the models of the
    reports in the store. Raises UsageError for missing models, for table models, and for a metric
    that no log can contain, and DataError for runs without validation.
    """
    if not levels:
        return []
    logs = [
        (label, [_logged(evaluation, resolve) for evaluation in group])
        for label, group in experiments
    ]
    logged = {key for _, group in logs for entries in group for key in entries[-1].figures}
    for level in levels:
        may_lack = EXACT not in logged and level.key.partition(",")[0] == EXACT
        if level.key not in logged and not may_lack:
            raise unknown("metric of --tokens-to in the logs", level.key, logged)
    return [_of_experiment(level, label, group) for level in levels for label, group in logs]


def _of_experiment(
    level: Level, label: str, group: Sequence[list[LoggedMetrics]]
) -> TokensToTarget:
    """Compute the tokens to one level from the validation logs of each seed."""
    logged = all(level.key in entry.figures for entries in group for entry in entries)
    tokens = [
        level.tokens([(entry.tokens, entry.figures[level.key]) for entry in entries])
        if logged
        else None
        for entries in group
    ]
    statistics = seed_statistics([Figure(value, None, None, len(group)) for value in tokens])
    return TokensToTarget(str(level), label, tokens if logged else None, statistics)


def _logged(evaluation: Evaluation, resolve: Resolve) -> list[LoggedMetrics]:
    """Return the validation entries of the training log; there is at least one."""
    model = resolve(evaluation.report.model)
    if model.kind != MODEL:
        raise UsageError(
            f"--tokens-to only applies to text models; {evaluation.ref} evaluates {model.ref}, of "
            f"kind {model.kind}. Remove --tokens-to"
        )
    entries = [entry for entry in read_log(model.path) if entry.split != TRAIN]
    if not entries:
        raise DataError(
            f"--tokens-to needs validation losses, but {model.ref} was trained without validation. "
            "Train on data with a validation split"
        )
    return entries
