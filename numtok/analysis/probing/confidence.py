"""How sure a model is of a text as one of its numbers changes (NumGPT, Figure 1)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from numtok.analysis.probing.continuity import variation
from numtok.analysis.probing.probes import Confidence
from numtok.analysis.probing.swept_row import decimals_of, geometric, swept_row
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.splits import learnt_values
from numtok.errors import UsageError, unknown
from numtok.evaluation.scoring import Progress
from numtok.models.batches import Batch, Batches
from numtok.models.likelihood import log_likelihoods
from numtok.models.objectives.base import OBJECTIVES, TrainingBatch, masked_batch, row_end_batch
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.column import Numerals
from numtok.seeds import generator
from numtok.training.model_files import LoadedModel, check_reads
from numtok.training.trainer import oom_advice

LEAST = 3  # values
_ROWS, _TOKENS = 256, 1 << 14  # of a batch, at most
_REACH = 100.0  # times the number that stands there, to both sides, unless said

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ConfidenceQuery:
    """A row, and which number of it changes.

    description
        The text, or which row it is: what stands in messages and above figures.
    number
        Its place in the row; None: the last one, where answers are.
    low, high
        None: a hundredth and a hundred times the number that stands there.
    label
        Whose probability is looked at; None: the first of the model's labels.
    """

    samples: EncodedSplit
    row: int
    description: str
    number: int | None
    low: float | None
    high: float | None
    points: int
    label: str | None


class ConfidenceResult(NamedTuple):
    """The summary, its points (``probes.Confidence``), and what a reader must know."""

    found: Confidence
    points: "pa.Table"
    notes: list[str]


def confidence(loaded: LoadedModel, asked: ConfidenceQuery, progress: Progress) -> ConfidenceResult:
    """The text with other numbers in one of its places, and the model's confidence at each.

    Of a model of labels that is the probability of one. Of an autoregressive model it is log p of
    the text from the number on, which is log p of the whole text less a constant; of a masked one
    log p of the number, all its tokens masked. Where a value head says the number, that is its
    density: of the number itself, not of a mantissa or a normalised value.

    Raises UsageError for a number or a label that is not there, for values that the scheme cannot
    write, and for a model without a likelihood.
    """
    label = _label(loaded, asked.label)
    number, stands = _number(asked)
    low, high, decimals = _ends(asked, number, stands)
    x = geometric(low, high, asked.points, decimals)
    if len(x) < LEAST:
        raise UsageError(
            f"--from {low:g} --to {high:g} is not possible: with {decimals} decimals, as they are "
            f"written, there are {len(x)} values; at least {LEAST} are needed"
        )
    written = Numerals.of_literals([f"{value:.{decimals}f}" for value in x.tolist()])
    made = swept_row(asked.samples, asked.row, number, loaded.codec, written)
    check_reads(loaded, made, f"{asked.description} with another number {number}")
    reader = _ConfidenceReader(loaded, made, number, label)
    y = reader.read(x, progress)
    notes = []
    if len(x) < asked.points:
        notes.append(f"x is rounded to {decimals} decimals: {len(x)} different values.")
    if reader.tells_length:
        notes.append("The number of masks tells the model how long each answer is.")
    best = int(np.argmax(y))
    found = Confidence(
        asked=asked.description,
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
    return ConfidenceResult(found, pa.table({"x": x, "confidence": y}), notes)


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

    def read(self, x: Floats, progress: Progress) -> Floats:
        """float64[n]: the confidence at each x."""
        size = max(1, min(_ROWS, _TOKENS // max(1, self.made.longest)))
        parts = []
        with oom_advice("so long a text; ask where there is more of it"):
            for batch in self._batches(size):
                parts.append(self._of(batch))
                progress("reading", sum(map(len, parts)), len(x))
        found = np.concatenate(parts)
        if self.label is None and self.loaded.model.value_head is not None:
            found += self._log_slope(x)
        return found

    def _batches(self, size: int) -> Iterator[Batch]:
        batches = Batches(self.made, learnt_values(self.made, self.loaded.codec), size)
        for first in range(0, len(self.made), size):
            yield batches.of(np.arange(first, min(first + size, len(self.made))))

    @torch.no_grad()
    def _of(self, batch: Batch) -> Floats:
        model = self.loaded.model
        if self.label is None:
            return log_likelihoods(model, self._example(batch))
        log_BC = model.class_log_probabilities(row_end_batch(batch, model.objective.causal))
        place = model.settings.classes.index(self.label)
        found: Floats = np.exp(log_BC[:, place].double().cpu().numpy())
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


def _number(asked: ConfidenceQuery) -> tuple[int, float]:
    """The place of the number that changes, and the number that stands there."""
    rows = asked.samples.number_rows
    numbers = asked.samples.numbers[rows[asked.row] : rows[asked.row + 1]]
    if not len(numbers):
        raise UsageError(
            f"{asked.description} has no number that could change; give a text that has one"
        )
    number = len(numbers) - 1 if asked.number is None else asked.number
    if number >= len(numbers):
        raise UsageError(
            f"--sweep {number} is not possible: {asked.description} has {len(numbers):,} numbers, "
            f"0 to {len(numbers) - 1}"
        )
    return number, float(numbers[number])


def _ends(asked: ConfidenceQuery, number: int, stands: float) -> tuple[float, float, int]:
    """From where to where, and how many decimals values have: as many as the number that stands
    there, or the ends that were given."""
    given = [end for end in (asked.low, asked.high) if end is not None]
    decimals = max(map(decimals_of, [stands, *given]))
    low, high = asked.low, asked.high
    if (low is None or high is None) and not 0 < stands < np.inf:
        raise UsageError(
            f"--from and --to are needed: number {number} of {asked.description} is {stands:g}, "
            f"and only of one above 0 they are a {_REACH:g}th and {_REACH:g} times it"
        )
    if low is None:
        low = max(round(stands / _REACH, decimals), 10.0**-decimals)
    high = stands * _REACH if high is None else high
    if not low < high:
        raise UsageError(f"--from {low:g} --to {high:g} is not possible: --from is less than --to")
    return low, high, decimals
