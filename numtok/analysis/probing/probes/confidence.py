"""confidence: how sure a model is of a text as one of its numbers changes."""

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

_ROWS, _TOKENS = 256, 1 << 14  # of a batch, at most
_REACH = 100.0  # times the number that stands there, to both sides, unless said
_SPLIT = "test"  # unless said


@dataclass(frozen=True)
class ConfidenceProbe(ProbeKind):
    """How sure a model is of a text, or of a row of data, as one of its numbers changes.

    Of a model of labels that is the probability of one. Of an autoregressive model it is log p of
    the text from the number on, which is log p of the whole text less a constant; of a masked one
    log p of the number, all its tokens masked. Where a value head says the number, that is its
    density: of the number itself, not of a mantissa or a normalised value.

    split
        Of the data. Default: test.
    text
        A text in place of a row.
    row
        The id of the row. Default: the first.
    number
        Which number changes, counted from 0. Default: the last one, where answers are.
    from_
        The least value. Default: a hundredth of the number that stands there.
    to
        The greatest value. Default: a hundred times it.
    points
        Values between them.
    label
        Of a model of labels, whose probability. Default: the first.

    Raises UsageError for a number or a label that is not there, for values that the scheme cannot
    write, and for a model without a likelihood.
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
                raise UsageError(f"--text is what is asked; leave --{option} {value!r} out")

    @property
    def stored(self) -> Mapping[str, Any]:
        if self.text is None:
            return {**super().stored, "split": self.split or _SPLIT}
        return {key: one for key, one in super().stored.items() if key not in ("split", "row")}

    def check(self, model: Artifact, data: Artifact | None) -> None:
        if self.text is None and data is None:
            raise UsageError("probe confidence needs encoded data beside the model, or --text")
        if self.text is not None and data is not None:
            raise UsageError(f"--text is what is asked; leave encoded data {data.ref!r} out")
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

    def _of_row(self, inputs: ProbeInputs, one: "_Row") -> ProbeResult:
        """The row with other numbers in one of its places, and the confidence at each."""
        loaded = inputs.loaded
        label = _label(loaded, self.label)
        number, stands = one.number(self.number)
        low, high, decimals = self._line(one, number, stands)
        x = geometric(low, high, self.points, decimals)
        if len(x) < LEAST:
            raise UsageError(
                f"--from {low:g} --to {high:g} is not possible: with {decimals} decimals, as they "
                f"are written, there are {len(x)} values; at least {LEAST} are needed"
            )
        written = Numerals.of_literals([f"{value:.{decimals}f}" for value in x.tolist()])
        made = swept_row(one.samples, one.row, number, loaded.codec, written)
        check_reads(loaded, made, f"{one.description} with another number {number}")
        reader = _ConfidenceReader(loaded, made, number, label)
        y = reader.read(x, inputs)
        notes = []
        if len(x) < self.points:
            notes.append(f"x is rounded to {decimals} decimals: {len(x)} different values.")
        if reader.tells_length:
            notes.append("The number of masks tells the model how long each answer is.")
        best = int(np.argmax(y))
        found = Confidence(
            asked=one.description,
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
        return ProbeResult(found, pa.table({"x": x, "confidence": y}), notes)

    def _line(self, one: "_Row", number: int, stands: float) -> tuple[float, float, int]:
        """From where to where, and how many decimals values have: as many as the number that
        stands there, or the ends that were given."""
        low, high = self.from_, self.to
        decimals = max(decimals_of(end) for end in (stands, low, high) if end is not None)
        if (low is None or high is None) and not 0 < stands < np.inf:
            raise UsageError(
                f"--from and --to are needed: number {number} of {one.description} is {stands:g}, "
                f"and only of one above 0 they are a {_REACH:g}th and {_REACH:g} times it"
            )
        if low is None:
            low = max(round(stands / _REACH, decimals), 10.0**-decimals)
        high = stands * _REACH if high is None else high
        check_ends(low, high)
        return low, high, decimals


class _Row(NamedTuple):
    """A row, and what it is called in messages and above figures: the text, or which row it is."""

    samples: EncodedSplit
    row: int
    description: str

    def number(self, place: int | None) -> tuple[int, float]:
        """The place of the number that changes, and the number that stands there."""
        rows = self.samples.number_rows
        numbers = self.samples.numbers[rows[self.row] : rows[self.row + 1]]
        if not len(numbers):
            raise UsageError(
                f"{self.description} has no number that could change; give a text that has one"
            )
        place = len(numbers) - 1 if place is None else place
        if place >= len(numbers):
            raise UsageError(
                f"--number {place} is not possible: {self.description} has {len(numbers):,} "
                f"numbers, 0 to {len(numbers) - 1}"
            )
        return place, float(numbers[place])


@dataclass(frozen=True, eq=False)
class _ConfidenceReader:
    """Rows ``made`` of one text, and how sure a model is of each."""

    loaded: LoadedModel
    made: EncodedSplit
    number: int
    label: str | None

    @property
    def measures(self) -> str:
        if self.label is not None:
            return f"probability of label {self.label}"
        model = self.loaded.model
        what = "density" if model.value_head is not None else "probability"
        of = "text from the number on" if model.objective.causal else "number, masked"
        return f"log-{what} of the {of} (nats)"

    @property
    def tells_length(self) -> bool:
        masks = self.label is None and not self.loaded.model.objective.causal
        return masks and self.loaded.codec.scheme.tokens_per_number is None

    def read(self, x: Floats, inputs: ProbeInputs) -> Floats:
        """float64[n]: the confidence at each x."""
        size = max(1, min(_ROWS, _TOKENS // max(1, self.made.longest)))
        every = np.arange(len(self.made))
        batches = (every[first : first + size] for first in range(0, len(every), size))
        parts = []
        for part in inputs.devices.each(self, _ConfidenceReader.of, batches, inputs.note):
            parts.append(part)
            inputs.progress("reading", sum(map(len, parts)), len(x))
        found = np.concatenate(parts)
        if self.label is None and self.loaded.model.value_head is not None:
            found += self._log_slope(x)
        return found

    def of(self, rows: Ints, note: Note) -> Floats:
        """Return the confidence float64[k] of some rows, by their indices int64[k]."""
        with oom_advice("so long a text; ask where there is more of it"), torch.no_grad():
            values = learnt_values(self.made, self.loaded.codec)
            batch = Batches(self.made, values, len(rows)).of(rows)
            model = self.loaded.model
            if self.label is None:
                return log_likelihoods(model, self._example(batch))
            log_BC = model.class_log_probabilities(row_end_batch(batch, model.objective.causal))
            place = model.settings.classes.index(self.label)
            found: Floats = np.exp(on_host(log_BC[:, place]))
            return found

    def _example(self, batch: Batch) -> TrainingBatch:
        chosen = batch.number % (len(self.made.numbers) // len(self.made)) == self.number
        if not self.loaded.model.objective.causal:
            return masked_batch(batch, batch.number_tokens(chosen))
        begun = replace(batch, answer_start=batch.number_start[chosen])
        return OBJECTIVES.build("ar:answer").example(begun, generator(0))

    def _log_slope(self, x: Floats) -> Floats:
        """float64[n]: log of d(value as the head learns it) / d(number)."""
        codec, scaling = self.loaded.codec, self.loaded.model.scaling
        count = len(self.made.numbers) // len(self.made)
        first = self.made.token_rows[:-1] + self.made.number_start[self.number :: count]
        factors = Vocabulary.of(codec).multipliers[self.made.tokens[first]]
        found: Floats = codec.normalizer.log_slope(x) - np.log(factors)
        return found + scaling.log_slope(codec.normalizer.forward(x) / factors)


def _label(loaded: LoadedModel, label: str | None) -> str | None:
    """The label whose probability is looked at; None where the model has no labels."""
    ref, classes = loaded.artifact.ref, loaded.model.settings.classes
    if not classes:
        if label is not None:
            raise UsageError(
                f"--label {label!r} is for models of labels, and {ref} predicts tokens and "
                "numbers; leave it out"
            )
        return None
    if label is not None and label not in classes:
        raise unknown(f"label of {ref}", label, classes)
    return classes[0] if label is None else label
