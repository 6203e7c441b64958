"""How much models had read when a figure of the validation split reached a level.

What is logged while a model learns is looked at a few times a run; between two looks the figure is
taken to go in a straight line.
"""

import math
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
from numtok.training.log import EXACT, Look, read_log


class TokensToTarget(msgspec.Struct, frozen=True):
    """Of one experiment: the tokens of each seed, in the order of its reports, None where the run
    ended before; their ``statistics``, undefined where one did not get there. ``tokens`` is None
    where a log lacks the figure: of schemes that write values no answer is exact, so it is not
    logged."""

    level: str
    label: str
    tokens: list[float | None] | None
    statistics: SeedStatistics


@dataclass(frozen=True)
class Level(Limit):
    """``key`` is a column of the log, as ``loss``."""

    @classmethod
    def parse(cls, text: str) -> "Level":
        """``Level.parse("loss<=0.5")``; UsageError for what has another form."""
        return cls.read(text, "--tokens-to", "FIGURE", "loss<=0.5")

    def tokens(self, looks: Sequence[tuple[float, float | None]]) -> float | None:
        """Tokens until the level, of (tokens, figure) one after the other; None where none has it.

        >>> Level.parse("loss<=0.5").tokens([(100, 2.0), (200, 1.0), (300, 0.0)])
        250.0
        """
        before: tuple[float, float] | None = None
        for tokens, value in looks:
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
    """Each experiment, given with its label, for one level after the other.

    Raises UsageError for models that are not at hand or of tables, and for a figure that is in none
    of their logs and could not be; DataError for runs that looked at no validation split.
    """
    if not levels:
        return []
    logs = [(label, [_looks(one, resolve) for one in group]) for label, group in experiments]
    known = {key for _, group in logs for looks in group for key in looks[-1].figures}
    for level in levels:
        may_lack = EXACT not in known and level.key.partition(",")[0] == EXACT
        if level.key not in known and not may_lack:
            raise unknown("figure of --tokens-to in the logs", level.key, known)
    return [_of_experiment(level, label, group) for level in levels for label, group in logs]


def _of_experiment(level: Level, label: str, group: Sequence[list[Look]]) -> TokensToTarget:
    """Of what was seen of each seed."""
    logged = all(level.key in one.figures for looks in group for one in looks)
    tokens = [
        level.tokens([(one.tokens, one.figures[level.key]) for one in looks]) if logged else None
        for looks in group
    ]
    statistics = seed_statistics(
        [Figure(value, None, None, len(group)) for value in tokens], (0.0, math.inf)
    )
    return TokensToTarget(str(level), label, tokens if logged else None, statistics)


def _looks(evaluation: Evaluation, resolve: Resolve) -> list[Look]:
    """What was seen of the validation split, one look after the other; at least one."""
    model = resolve(evaluation.report.model)
    if model.kind != MODEL:
        raise UsageError(
            f"--tokens-to is of models of texts, and {evaluation.ref} is of {model.ref}, of kind "
            f"{model.kind}; leave it out"
        )
    seen = [one for one in read_log(model.path) if one.split != TRAIN]
    if not seen:
        raise DataError(
            f"{model.ref} looked at no validation split while it learnt, so its log does not say "
            "when it reached anything; encode data with one"
        )
    return seen
