"""What every evaluation of texts is of: a model, and rows of one split of encoded data."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import read_split
from numtok.evaluation.scoring import Scores
from numtok.records import CLUSTER, GROUP
from numtok.reports import Figures, Report
from numtok.store.artifact import Artifact
from numtok.training.model_files import LoadedModel, check_reads


@dataclass(frozen=True)
class EvaluatedSplit:
    """One model on the first rows of one split, in memory."""

    loaded: LoadedModel
    encoded: Artifact
    split: str
    samples: EncodedSplit

    @classmethod
    def of(
        cls, loaded: LoadedModel, encoded: Artifact, split: str, rows: int | None
    ) -> "EvaluatedSplit":
        """``rows`` of the split, or all for None. Raises DataError for rows that are too long."""
        one = cls(loaded, encoded, split, read_split(encoded, split).head(rows))
        check_reads(loaded, one.samples, str(one))
        return one

    def __str__(self) -> str:
        return f"split {self.split!r} of {self.encoded.ref}"

    def table(
        self,
        columns: Mapping[str, Any],
        schema: Callable[..., pa.Schema],
        rows: "pa.Array[Any] | None" = None,
    ) -> pa.Table:
        """The rows of predictions.parquet: columns of their own, and of the row of data that each
        belongs to (``rows``; all for None) the id, its groups and its cluster.

        ``schema`` is one of ``reports`` for what is predicted.
        """
        samples = self.samples
        of_rows = {"id": samples.ids} | {
            GROUP + name: column for name, column in samples.groups.items()
        }
        if samples.clusters is not None:
            of_rows[CLUSTER] = samples.clusters
        if rows is not None:
            of_rows = {name: column.take(rows) for name, column in of_rows.items()}
        found = {**of_rows, **columns}
        types = schema(list(samples.groups), clusters=samples.clusters is not None)
        return pa.table(
            [pa.array(found[name]).cast(types.field(name).type) for name in types.names],
            schema=types,
        )

    def report(
        self,
        scores: Scores,
        baselines: dict[str, Figures],
        lengths: NDArray[np.int32],
        notes: Iterable[str],
        **others: Any,
    ) -> Report:
        """The report of some scores; ``lengths`` are the tokens of each number that it is of, and
        ``others`` the fields of :class:`Report` that depend on what is predicted."""
        loaded = self.loaded
        fields: dict[str, Any] = {"off_grammar": None, "train_mean": None} | others
        return Report(
            model=loaded.artifact.ref,
            name=loaded.artifact.name,
            data=self.encoded.ref,
            split=self.split,
            scheme=loaded.codec.scheme.title,
            configuration=loaded.trained.configuration,
            seed=loaded.trained.seed,
            rows=len(self.samples),
            metrics=scores.metrics,
            valid_metrics=scores.valid_metrics,
            by_target=scores.by_target,
            groups=scores.groups,
            baselines=baselines,
            costs=loaded.costs(lengths),
            notes=[*scores.notes, *notes],
            **fields,
        )
