"""What every evaluation of texts is of: a model, and rows of one split of encoded data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from numtok.arrays import Ints
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.schemes.base import title_of
from numtok.encoding.splits import read_split
from numtok.evaluation.devices import Devices
from numtok.evaluation.evaluation import predictions_table
from numtok.reports import Measures, predictions_schema
from numtok.row import CLUSTER, GROUP
from numtok.store.artifact import Artifact
from numtok.training.model_files import LoadedModel, check_reads, row_limit


@dataclass(frozen=True, kw_only=True)
class EvaluatedSplit:
    """One model on rows of one split, in memory, and the devices that predict them."""

    loaded: LoadedModel
    encoded: Artifact
    split: str
    rows: Ints  # indices in the split, ascending
    samples: EncodedSplit  # these rows
    skipped: int  # rows longer than the model reads
    devices: Devices

    @classmethod
    def of(
        cls,
        loaded: LoadedModel,
        encoded: Artifact,
        split: str,
        *,
        rows: int | None,
        devices: Devices,
        skip_long: bool = False,
    ) -> "EvaluatedSplit":
        """Draw ``rows`` of the split by their ids; None takes all. Rows longer than the model reads
        are skipped if ``skip_long`` is set; DataError if it is not, or if all are longer."""
        whole = read_split(encoded, split)
        drawn = whole.drawn(rows)
        fits = whole.lengths[drawn] <= row_limit(loaded.model)
        kept = drawn[fits] if skip_long and fits.any() else drawn
        one = cls(
            loaded=loaded,
            encoded=encoded,
            split=split,
            rows=kept,
            samples=whole.take(kept),
            skipped=len(drawn) - len(kept),
            devices=devices,
        )
        check_reads(loaded, one.samples, str(one), ", or skip such rows: --on-error skip")
        return one

    def notes(self) -> Iterator[str]:
        """A note about rows that were skipped, for reports."""
        if self.skipped:
            rows = "1 row is" if self.skipped == 1 else f"{self.skipped:,} rows are"
            limit = row_limit(self.loaded.model)
            yield f"{rows} longer than the {limit:,} tokens that the model reads, and skipped."

    def __str__(self) -> str:
        return f"split {self.split!r} of {self.encoded.ref}"

    def table(
        self,
        columns: Mapping[str, Any],
        measures: Measures,
        rows: "pa.Array[Any] | None" = None,
    ) -> pa.Table:
        """The rows of predictions.parquet: columns of their own, and of the row of data that each
        belongs to (``rows``; all for None) the id, its groups and its cluster."""
        samples = self.samples
        of_rows = {"id": samples.ids} | {
            GROUP + name: column for name, column in samples.groups.items()
        }
        if samples.clusters is not None:
            of_rows[CLUSTER] = samples.clusters
        if rows is not None:
            of_rows = {name: column.take(rows) for name, column in of_rows.items()}
        clusters = samples.clusters is not None
        schema = predictions_schema(list(samples.groups), measures=measures, clusters=clusters)
        return predictions_table({**of_rows, **columns}, schema)

    def facts(self, lengths: NDArray[np.int32]) -> dict[str, Any]:
        """Fields of every report of texts. ``lengths`` are the tokens of each of its numbers."""
        loaded = self.loaded
        return {
            "scheme": title_of(loaded.codec.scheme),
            "configuration": loaded.trained.configuration,
            "seed": loaded.trained.seed,
            "rows": len(self.samples),
            "costs": loaded.costs(lengths),
        }
