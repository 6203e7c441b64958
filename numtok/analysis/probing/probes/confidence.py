"""confidence: a model's confidence in a text as one number in the text changes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from numtok.analysis.probing.continuity import variation
from numtok.analysis.probing.probe_records import Confidence
from numtok.analysis.probing.probes.base import (
    LEAST,
    ProbeInputs,
    ProbeKind,
    ProbeResult,
    check_ends,
    line_end,
    line_points,
)
from numtok.analysis.probing.swept_row import decimals_of, geometric, row_index, swept_row
from numtok.arrays import Floats, Ints
from numtok.declaration import setting
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.in_memory import row_of
from numtok.encoding.splits import check_split, learnt_values, read_split
from numtok.errors import UsageError, unknown
from numtok.evaluation.devices import Note
from numtok.models.batches import Batch, Batches
from numtok.models.likelihood import log_likelihoods
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.precision import on_host
from numtok.models.training_batch import TrainingBatch, masked_batch, row_end_batch
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.column import Numerals
from numtok.seeds import generator
from numtok.store.artifact import Artifact
from numtok.training.device import oom_advice
from numtok.training.model_files import LoadedModel, check_reads

_ROWS, _TOKENS = 256, 1 << 14  # largest batch
_REACH = 100.0  # default factor of the original number, to both sides
_SPLIT = "test"  # default


@dataclass(frozen=True)
class ConfidenceProbe(ProbeKind):
    """A model's confidence in a text or in a data row, as one number in it changes.

    For a label model, the confidence is the probability of a label. For an autoregressive model, it
    is the log-likelihood of the number and the text after it. Up to a constant, this equals the
    log-likelihood of the whole text. For a masked model, it is the log-likelihood of the number
    with all its tokens masked. If numbers are predicted by a value head, the likelihood is the
    density of the number itself, not of a mantissa or a normalized value.

    split
        Split of the data. Default: test.
    text
        A text in place of a row.
    row
        Id of the row. Default: the first.
    number
        Index of the number to change, from 0. Default: the last one, usually the answer.
    from_
        Smallest value. Default: a hundredth of the original number.
    to
        Largest value. Default: a hundred times the original number.
    points
        Number of values.
    label
        Label whose probability is measured (label models only). Default: the first.

    Raises UsageError if the row or label is unknown, if the index of the number is out of range, if
    the scheme cannot represent a value, or if the model defines no likelihood.
    """

    reads_rows: ClassVar[bool] = True
    revision: ClassVar[int] = 1
    source: ClassVar[str] = "NumGPT, Figure 1"
    split: str | None = None
    text: str | None = None
    row: str | None = None
    number: int | None = setting(None, at_least=0)
    from_: float | None = line_end()
    to: float | None = line_end()
    points: int = line_points()
    label: str | None = None

    def __post_init__(self) -> None:
        check_ends(self.from_, self.to)
        for option in ("split", "row"):
            value = getattr(self, option)
            if self.text is not None and value is not None:
                raise UsageError(f"--text cannot be combined with --{option} (got {value!r})")

    @property
    def stored(self) -> Mapping[str, Any]:
        if self.text is None:
            return {**super().stored, "split": self.split or _SPLIT}
        return {key: value for key, value in super().stored.items() if key not in ("split", "row")}

    def check(self, model: Artifact, data: Artifact | None) -> None:
        if self.text is None and data is None:
            raise UsageError("probe confidence needs encoded data after the model, or --text")
        if self.text is not None and data is not None:
            raise UsageError(f"--text cannot be combined with encoded data (got {data.ref!r})")
        if data is not None:
            check_split(data, self.split or _SPLIT)

    def run(self, inputs: ProbeInputs) -> ProbeResult:
        codec = inputs.loaded.codec
        if inputs.data is None:
            text = str(self.text)
            return self._of_row(inputs, _Row(row_of(text, codec), 0, text))
        split = self.split or _SPLIT
        samples = read_split(inputs.data, split)
        row = row_index(self.row, samples, f"split {split!r} of {inputs.data.ref}")
        description = f"row {samples.ids[row].as_py()!r} of split {split!r}"
        return self._of_row(inputs, _Row(samples, row, description))

    def _of_row(self, inputs: ProbeInputs, probed: "_Row") -> ProbeResult:
        """Measure the confidence in copies of a row that differ in one number."""
        loaded = inputs.loaded
        label = _label(loaded, self.label)
        number, original = probed.number(self.number)
        low, high, decimals = self._line(probed, number, original)
        x = geometric(low, high, self.points, decimals)
        if len(x) < LEAST:
            raise UsageError(
                f"--from {low:g} --to {high:g} has only {len(x)} values with {decimals} decimals; "
                f"at least {LEAST} are needed. Widen the range, or write more decimals"
            )
        written = Numerals.of_literals([f"{value:.{decimals}f}" for value in x.tolist()])
        rows = swept_row(probed.samples, probed.row, number, loaded.codec, written)
        check_reads(loaded, rows, f"{probed.description} with another number {number}")
        reader = _ConfidenceReader(loaded, rows, number, label)
        y = reader.read(x, inputs)
        notes = []
        if len(x) < self.points:
            notes.append(f"x is rounded to {decimals} decimals: {len(x)} distinct values.")
        if reader.reveals_length:
            notes.append("The number of masks reveals the length of each answer to the model.")
        best = int(np.argmax(y))
        summary = Confidence(
            asked=probed.description,
            number=number,
            measures=reader.measures,
            label=label,
            low=float(x[0]),
            high=float(x[-1]),
            values=len(x),
            least=float(y.min()),
            most=float(y[best]),
            at=float(x[best]),
            variation=variation(y),
        )
        return ProbeResult(summary, pa.table({"x": x, "confidence": y}), notes)

    def _line(self, probed: "_Row", number: int, original: float) -> tuple[float, float, int]:
        """Return the smallest and the largest value, and the number of decimals.

        The number of decimals is the maximum over the original number and the ends set by the user.
        """
        low, high = self.from_, self.to
        decimals = max(decimals_of(end) for end in (original, low, high) if end is not None)
        if (low is None or high is None) and not 0 < original < np.inf:
            raise UsageError(
                f"--from and --to are required: number {number} of {probed.description} is "
                f"{original:g}, and there are defaults only for numbers above 0"
            )
        if low is None:
            low = max(round(original / _REACH, decimals), 10.0**-decimals)
        high = original * _REACH if high is None else high
        check_ends(low, high)
        return low, high, decimals


class _Row(NamedTuple):
    """A row, with its description in messages and figures: the text, or the ID of the row."""

    samples: EncodedSplit
    row: int
    description: str

    def number(self, index: int | None) -> tuple[int, float]:
        """Return the index of the number to change, and its original value."""
        rows = self.samples.number_rows
        numbers = self.samples.numbers[rows[self.row] : rows[self.row + 1]]
        if not len(numbers):
            raise UsageError(
                f"{self.description} has no number to change. Pass a text with a number"
            )
        index = len(numbers) - 1 if index is None else index
        if index >= len(numbers):
            raise UsageError(
                f"--number must be 0 to {len(numbers) - 1} (got {index}): {self.description} has "
                f"{len(numbers):,} numbers"
            )
        return index, float(numbers[index])


@dataclass(frozen=True, eq=False)
class _ConfidenceReader:
    """Measures the confidence of a model in ``rows``, which are copies of one row with different
    numbers."""

    loaded: LoadedModel
    rows: EncodedSplit
    number: int
    label: str | None

    @property
    def measures(self) -> str:
        if self.label is not None:
            return f"probability of label {self.label}"
        model = self.loaded.model
        quantity = "density" if model.value_head is not None else "probability"
        event = "text from the number on" if model.objective.causal else "number, masked"
        return f"log-{quantity} of the {event} (nats)"

    @property
    def reveals_length(self) -> bool:
        masks = self.label is None and not self.loaded.model.objective.causal
        return masks and self.loaded.codec.scheme.tokens_per_number is None

    def read(self, x: Floats, inputs: ProbeInputs) -> Floats:
        """Return the confidence at each x, float64[n]."""
        size = max(1, min(_ROWS, _TOKENS // max(1, self.rows.longest)))
        every = np.arange(len(self.rows))
        batches = (every[first : first + size] for first in range(0, len(every), size))
        parts = []
        for part in inputs.devices.each(self, _ConfidenceReader.of, batches, inputs.note):
            parts.append(part)
            inputs.progress("reading", sum(map(len, parts)), len(x))
        confidence = np.concatenate(parts)
        if self.label is None and self.loaded.model.value_head is not None:
            confidence += self._log_slope(x)
        return confidence

    def of(self, rows: Ints, note: Note) -> Floats:
        """Return the confidence float64[k] of the rows with these indices int64[k]."""
        with oom_advice("so long a text; use a device with more"), torch.no_grad():
            values = learnt_values(self.rows, self.loaded.codec)
            batch = Batches(self.rows, values, len(rows)).of(rows)
            model = self.loaded.model
            if self.label is None:
                return log_likelihoods(model, self._example(batch))
            log_BC = model.class_log_probabilities(row_end_batch(batch, model.objective.causal))
            column = model.settings.classes.index(self.label)
            probabilities: Floats = np.exp(on_host(log_BC[:, column]))
            return probabilities

    def _example(self, batch: Batch) -> TrainingBatch:
        chosen = batch.number % (len(self.rows.numbers) // len(self.rows)) == self.number
        if not self.loaded.model.objective.causal:
            return masked_batch(batch, batch.number_tokens(chosen))
        begun = replace(batch, answer_start=batch.number_start[chosen])
        return OBJECTIVES.build("ar:answer").example(begun, generator(0))

    def _log_slope(self, x: Floats) -> Floats:
        """Return the log of the derivative of the head's value with respect to the number,
        float64[n]."""
        codec, scaling = self.loaded.codec, self.loaded.model.scaling
        count = len(self.rows.numbers) // len(self.rows)
        first = self.rows.token_rows[:-1] + self.rows.number_start[self.number :: count]
        factors = Vocabulary.of(codec).multipliers[self.rows.tokens[first]]
        slope: Floats = codec.normalizer.log_slope(x) - np.log(factors)
        return slope + scaling.log_slope(codec.normalizer.forward(x) / factors)


def _label(loaded: LoadedModel, label: str | None) -> str | None:
    """Return the label whose probability is measured; None for a model without labels."""
    ref, classes = loaded.artifact.ref, loaded.model.settings.classes
    if not classes:
        if label is not None:
            raise UsageError(
                f"--label only applies to label models; {ref} predicts tokens and numbers. Leave "
                f"out --label {label!r}"
            )
        return None
    if label is not None and label not in classes:
        raise unknown(f"label of {ref}", label, classes)
    return classes[0] if label is None else label
