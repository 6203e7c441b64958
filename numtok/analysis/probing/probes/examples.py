"""examples: predictions over the rows of a split, in the order of the truth."""

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
    """Every truth of a target in a split of the data, in ascending order, and its prediction: is it
    continuous, or only values that were seen in training?

    Raises UsageError for an unknown target, DataError for fewer than three different truths.
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
        asked = predictor.asked
        truth = samples.numbers[asked.numbers]
        mine = is_of(asked.targets, samples, target)
        chosen = once(asked, mine & np.isfinite(truth))
        chosen = chosen[np.argsort(truth[chosen], kind="stable")]
        if (different := len(np.unique(truth[chosen]))) < LEAST:
            raise DataError(
                f"{rows.description} has {different} different values of target {target!r}; at "
                f"least {LEAST} are needed to see how predictions follow them"
            )
        places = pa.array(asked.rows[asked.queries[chosen]])
        line = Line(
            target=target,
            row=None,
            number=None,
            x=truth[chosen],
            truth=truth[chosen],
            ids=samples.ids.take(places).to_pylist(),
            chosen=chosen,
            clusters=None if samples.clusters is None else samples.clusters.take(places),
        )
        lost = int((mine & ~np.isfinite(truth)).sum())
        notes = [f"{lost:,} truths are not finite and were left out."] if lost else []
        return self.result(predictor, rows, line, notes, inputs)
