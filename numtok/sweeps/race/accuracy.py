"""The accuracy of the returned model and of the best baselines on the test split."""

from collections.abc import Iterator

import msgspec

from numtok.metrics.base import METRICS, Predictions, figures
from numtok.reports import Figure
from numtok.sweeps.race.leaderboard import COVERAGE, ERROR, R2, WIDTH, Leaderboard


class AccuracyRow(msgspec.Struct, frozen=True, kw_only=True):
    """The accuracy of a model or a baseline, in the units of the target.

    label, seed
        Label on the leaderboard, and the seed of the model; None for a baseline.
    coverage, width
        Coverage and mean width of the calibrated 90% intervals. Values are None without
        calibration rows.
    """

    label: str
    seed: int | None
    r2: Figure
    mae: Figure
    coverage: Figure
    width: Figure


def accuracies(board: Leaderboard, model: Predictions, seed: int) -> Iterator[AccuracyRow]:
    """Yield the accuracy of the winner and of the best baseline.

    If the best baseline has no intervals, the accuracy of the best one with intervals follows.
    Yields nothing if there are several fields, whose errors have different units.

    model
        Predictions of the winner with the returned ``seed``.
    """
    if len(board.fields) != 1:
        return
    metrics = [METRICS.build(name) for name in (R2, ERROR, COVERAGE, WIDTH)]
    r2, mae, coverage, width = figures(metrics, model).values()
    yield AccuracyRow(label=board.winner, seed=seed, r2=r2, mae=mae, coverage=coverage, width=width)
    baselines = [board.place(board.baseline)]
    if baselines[0].width.value is None:
        calibrated = [
            each for each in board.places if not each.is_model and each.width.value is not None
        ]
        baselines += calibrated[:1]  # places are sorted by skill
    for each in baselines:
        [error] = each.errors.values()
        yield AccuracyRow(
            label=each.label,
            seed=None,
            r2=each.r2,
            mae=error,
            coverage=each.coverage,
            width=each.width,
        )
