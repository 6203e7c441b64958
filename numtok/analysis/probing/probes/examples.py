"""examples: predictions for the rows in a split, in ascending order of the true values."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from numtok.analysis.probing.probes._along import AlongProbe, Line, is_of, once, predictor_of
from numtok.analysis.probing.probes.base import LEAST, ProbeInputs, ProbeResult
from numtok.errors import DataError
from numtok.training.model_files import check_reads


@dataclass(frozen=True, kw_only=True)
class SamplesProbe(AlongProbe):
    """Predictions of a target in a split, in ascending order of the true values.

    The result shows whether predictions are continuous or only repeat values seen in training.

    Raises UsageError for an unknown target, and DataError if the target has fewer than three
    distinct true values.
    """

    revision: ClassVar[int] = 2
    source: ClassVar[str] = "xVal, Section 3.3"

    @property
    def suffix(self) -> str:
        return self.split

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        rows = self.rows(inputs)
        samples = rows.samples
        target = self.target_in(samples, rows.description)
        check_reads(inputs.loaded, samples, rows.description)
        predictor = predictor_of(inputs.loaded, samples)
        queries = predictor.asked
        truth = samples.numbers[queries.numbers]
        of_target = is_of(queries.targets, samples, target)
        chosen = once(queries, of_target & np.isfinite(truth))
        chosen = chosen[np.argsort(truth[chosen], kind="stable")]
        if (different := len(np.unique(truth[chosen]))) < LEAST:
            raise DataError(
                f"{rows.description} has {different} distinct values of target {target!r}; at "
                f"least {LEAST} are needed"
            )
        row_indices = pa.array(queries.rows[queries.queries[chosen]])
        line = Line(
            target=target,
            row=None,
            number=None,
            x=truth[chosen],
            truth=truth[chosen],
            ids=samples.ids.take(row_indices).to_pylist(),
            chosen=chosen,
            clusters=None if samples.clusters is None else samples.clusters.take(row_indices),
        )
        lost = int((of_target & ~np.isfinite(truth)).sum())
        notes = [f"{lost:,} true values are not finite and were left out."] if lost else []
        return self.result(predictor, rows, line, notes, inputs)
