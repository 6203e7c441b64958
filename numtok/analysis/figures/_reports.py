"""Labels of reports and metrics, and the data that reports are of."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numtok.data.tables.table import TableFile
from numtok.errors import UsageError
from numtok.evaluation.comparison.experiments import experiment_settings, labels
from numtok.evaluation.report_files import Evaluation
from numtok.metrics.base import Metric
from numtok.registry import spec_of
from numtok.store.artifact import ENCODED, Resolve

Thing = TypeVar("Thing")

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


class DataSource(NamedTuple):
    """The data: what they are known by, a short name, and the settings they were made with."""

    key: tuple[str, ...]
    name: str
    settings: Mapping[str, Any]


def source_of(ref: str, resolve: Resolve) -> DataSource:
    """The table that a REF stands for, or what encoded data were made from.

    A REF that is no longer in the store is all that is known of such data.
    """
    name = ref.partition("@")[0]
    try:
        artifact = resolve(ref)
    except UsageError:
        return DataSource((ref,), name, {})
    parents = [one for one in artifact.manifest.parents if one.kind not in (ENCODED, "model")]
    if artifact.kind != ENCODED or not parents:
        return DataSource((artifact.manifest.content,), name, artifact.manifest.settings)
    key = tuple(one.digest for one in parents)
    if parents[0].kind == "file":
        return DataSource(key, Path(parents[0].where).stem, {})
    return source_of(parents[0].where, resolve)._replace(key=key)


def sources_of(evaluations: Sequence[Evaluation], resolve: Resolve) -> list[DataSource]:
    """That of each report; of data with one name each set is named by the first REF of it."""
    refs = [evaluation.report.data for evaluation in evaluations]
    found = [source_of(ref, resolve) for ref in refs]
    keys = {name: {one.key for one in found if one.name == name} for _, name, _ in found}
    first: dict[tuple[str, ...], str] = {}
    for ref, one in zip(refs, found, strict=True):
        first.setdefault(one.key, ref)
    return [one if len(keys[one.name]) == 1 else one._replace(name=first[one.key]) for one in found]


def by_data(
    things: Iterable[Thing], evaluations: Sequence[Evaluation], resolve: Resolve
) -> dict[str, list[Thing]]:
    """Group things by the name of the data of their reports."""
    found: dict[str, list[Thing]] = {}
    for thing, source in zip(things, sources_of(evaluations, resolve), strict=True):
        found.setdefault(source.name, []).append(thing)
    return found


def one_feature(ref: str, file: TableFile) -> str:
    """The name of the only feature, a number; UsageError where there are others.

    >>> feature = Feature("x", "number")
    >>> one_feature("t", TableFile(target="y", features=[feature], splits=[], notes=[]))
    'x'
    """
    if [one.kind for one in file.features] != ["number"]:
        told = ", ".join(f"{one.name} ({one.kind})" for one in file.features)
        raise UsageError(
            f"the x axis is a table's only feature, a number, and {ref} has {told}; "
            "figure truth takes any table"
        )
    return file.features[0].name
