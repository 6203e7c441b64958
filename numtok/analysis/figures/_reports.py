"""Labels for reports and metrics, and the sources of the data in reports."""

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
    "rmse": "root mean squared error (unit of the target)",
    "mae": "mean absolute error (unit of the target)",
    "relative-mse": "relative mean squared error",
    "kendall-tau": "Kendall's tau",
    "nll": "negative log-likelihood (nats)",
    "tailed-nll": "negative log-likelihood with tails (nats)",
    "in-support-nll": "negative log-likelihood within the train range (nats)",
    "range-nll": "negative log-likelihood on the train range as 1 (nats)",
    "interval-nll": "negative log-likelihood at the target's resolution (nats)",
    "token-nll": "cross-entropy per token (nats)",
    "crps": "CRPS (unit of the target)",
}


def metric_label(metric: Metric) -> str:
    """Return the name of a metric in words, with its unit and whether higher or lower is better.

    >>> from numtok.metrics.base import METRICS
    >>> metric_label(METRICS.build("r2"))
    'R², higher is better'
    """
    spec = spec_of(metric)
    words = _WORDS.get(spec) or spec.replace("-", " ").replace(",", ", ")
    return words if metric.better == "neither" else f"{words}, {metric.better} is better"


def settings_of(evaluation: Evaluation, *without: str) -> dict[str, str]:
    """Return the seed of a report and the settings that identify its experiment, excluding the
    names in ``without``.

    The kind of distribution is omitted, because it follows from the head.
    """
    settings = experiment_settings(evaluation) | {"seed": str(evaluation.report.seed)}
    left_out = {"decoding.distribution", *without}
    return {key: value for key, value in settings.items() if key not in left_out}


def report_labels(evaluations: Sequence[Evaluation], *without: str) -> list[str]:
    """Return a label for each report: its scheme and the settings that distinguish it, excluding
    the names in ``without``."""
    settings = [settings_of(evaluation, *without) for evaluation in evaluations]
    return labels_of([evaluation.report.scheme for evaluation in evaluations], settings)


def colours_of(labels: Iterable[str]) -> dict[str, int]:
    """Return a color index for each label, in the given order."""
    return {label: index for index, label in enumerate(dict.fromkeys(labels))}


def labels_of(schemes: Sequence[str], settings: Sequence[dict[str, str]]) -> list[str]:
    """Return a label for each scheme with its settings.

    Equal schemes with equal settings have equal labels. Labels are built by
    ``evaluation.comparison.experiments.labels``.

    >>> labels_of(["p10", "xval", "p10"], [{"lr": "1"}] * 3)
    ['p10', 'xval', 'p10']
    """
    keys = [
        (scheme, tuple(sorted(own.items()))) for scheme, own in zip(schemes, settings, strict=True)
    ]
    distinct = list(dict.fromkeys(keys))
    unique = labels([scheme for scheme, _ in distinct], [dict(items) for _, items in distinct])
    return [unique[distinct.index(key)] for key in keys]


class DataSource(NamedTuple):
    """Source of a report's data: an identifying key, a short name, and the settings that generated
    the data."""

    key: tuple[str, ...]
    name: str
    settings: Mapping[str, Any]


def source_of(ref: str, resolve: Resolve) -> DataSource:
    """Return the source of the data with the REF ``ref``.

    The source of encoded data is the file or artifact that was encoded. Other data, such as a
    table, are their own source.

    If the REF is no longer in the store, the REF itself identifies the data.
    """
    name = ref.partition("@")[0]
    try:
        artifact = resolve(ref)
    except UsageError:
        return DataSource((ref,), name, {})
    parents = [
        parent for parent in artifact.manifest.parents if parent.kind not in (ENCODED, "model")
    ]
    if artifact.kind != ENCODED or not parents:
        return DataSource((artifact.manifest.content,), name, artifact.manifest.settings)
    key = tuple(parent.digest for parent in parents)
    if parents[0].kind == "file":
        return DataSource(key, Path(parents[0].where).stem, {})
    return source_of(parents[0].where, resolve)._replace(key=key)


def sources_of(evaluations: Sequence[Evaluation], resolve: Resolve) -> list[DataSource]:
    """Return the source of each report's data. If different sources have the same name, each
    is named after its first REF instead."""
    refs = [evaluation.report.data for evaluation in evaluations]
    sources = [source_of(ref, resolve) for ref in refs]
    keys = {
        name: {source.key for source in sources if source.name == name} for _, name, _ in sources
    }
    first: dict[tuple[str, ...], str] = {}
    for ref, source in zip(refs, sources, strict=True):
        first.setdefault(source.key, ref)
    return [
        source if len(keys[source.name]) == 1 else source._replace(name=first[source.key])
        for source in sources
    ]


def by_data(
    things: Iterable[Thing], evaluations: Sequence[Evaluation], resolve: Resolve
) -> dict[str, list[Thing]]:
    """Group ``things``, one per report, by the name of the report's data."""
    groups: dict[str, list[Thing]] = {}
    for thing, source in zip(things, sources_of(evaluations, resolve), strict=True):
        groups.setdefault(source.name, []).append(thing)
    return groups


def one_feature(ref: str, file: TableFile) -> str:
    """Return the name of a table's only feature. Raises UsageError unless the table has
    exactly one feature and that feature is numeric.

    >>> feature = Feature("x", "number")
    >>> one_feature("t", TableFile(target="y", features=[feature], splits=[], notes=[]))
    'x'
    """
    if [feature.kind for feature in file.features] != ["number"]:
        names = ", ".join(f"{feature.name} ({feature.kind})" for feature in file.features)
        raise UsageError(
            f"this figure needs a table with one numeric feature, but {ref} has {names}. Use "
            "figure truth for any table"
        )
    return file.features[0].name
