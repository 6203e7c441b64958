"""What stands beside an axis, above a panel or in the legend: metrics and settings in words."""

from collections.abc import Iterable, Sequence

from numtok.evaluation.comparison.experiments import experiment_settings, labels
from numtok.evaluation.report_files import Evaluation
from numtok.metrics.base import Metric
from numtok.registry import spec_of

_WORDS = {
    "r2": "R²",
    "adjusted-r2": "adjusted R²",
    "signed-log-r2": "R² of signed logarithms",
    "mse": "mean squared error (squared unit of the target)",
    "rmse": "root of the mean squared error (unit of the target)",
    "mae": "mean absolute error (unit of the target)",
    "relative-mse": "relative mean squared error",
    "kendall-tau": "Kendall's tau",
    "nll": "negative log-likelihood (nats)",
    "tailed-nll": "negative log-likelihood with tails (nats)",
    "in-support-nll": "negative log-likelihood within the train range (nats)",
    "range-nll": "negative log-likelihood on the train range as 1 (nats)",
    "interval-nll": "negative log-likelihood at the target's resolution (nats)",
    "token-nll": "cross-entropy a token (nats)",
    "crps": "CRPS (unit of the target)",
}


def metric_label(metric: Metric) -> str:
    """A metric in words, with its unit and which figures are good.

    >>> from numtok.metrics.base import METRICS
    >>> metric_label(METRICS.build("r2"))
    'R², higher is better'
    """
    spec = spec_of(metric)
    words = _WORDS.get(spec) or spec.replace("-", " ").replace(",", ", ")
    return words if metric.better == "neither" else f"{words}, {metric.better} is better"


def settings_of(evaluation: Evaluation, *without: str) -> dict[str, str]:
    """What a report's experiment is told by, and its seed; ``without`` some of it.

    What the distribution is follows from the head, so it is left out.
    """
    settings = experiment_settings(evaluation) | {"seed": str(evaluation.report.seed)}
    left_out = {"decoding.distribution", *without}
    return {key: value for key, value in settings.items() if key not in left_out}


def report_labels(evaluations: Sequence[Evaluation], *without: str) -> list[str]:
    """Of each report its scheme, and ``without`` some settings what tells it from the others."""
    settings = [settings_of(one, *without) for one in evaluations]
    return labels_of([one.report.scheme for one in evaluations], settings)


def colours_of(labels: Iterable[str]) -> dict[str, int]:
    """A colour for each label, in the order in which they come."""
    return {label: place for place, label in enumerate(dict.fromkeys(labels))}


def labels_of(schemes: Sequence[str], settings: Sequence[dict[str, str]]) -> list[str]:
    """As ``evaluation.comparison.experiments.labels``, with one label for what has one scheme and
    settings.

    >>> labels_of(["p10", "xval", "p10"], [{"lr": "1"}] * 3)
    ['p10', 'xval', 'p10']
    """
    keys = [
        (scheme, tuple(sorted(one.items()))) for scheme, one in zip(schemes, settings, strict=True)
    ]
    distinct = list(dict.fromkeys(keys))
    found = labels([scheme for scheme, _ in distinct], [dict(items) for _, items in distinct])
    return [found[distinct.index(key)] for key in keys]
