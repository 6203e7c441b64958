"""Which data a report is of, whatever scheme they were encoded with."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from numtok.errors import UsageError
from numtok.evaluation.report_files import Evaluation
from numtok.store.artifact import ENCODED, Resolve


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
