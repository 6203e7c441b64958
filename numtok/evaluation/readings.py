"""Outputs of a model for the numbers in a split, decoded but not scored."""

from dataclasses import dataclass

import numpy as np

from numtok.arrays import Ints
from numtok.encoding.schemes.base import splits_numbers
from numtok.evaluation.devices import ONE, BatchSizer, Note
from numtok.evaluation.predict import Predictor
from numtok.models.decoding import NumberReadings


def read_numbers(predictor: Predictor, note: Note) -> NumberReadings:
    """Decode the numbers of a predictor, in the order of ``predictor.asked.numbers``.

    Each number may be queried only once. The result holds what predictive distributions need; all
    of it is kept in memory. Raises TrainingFailed if memory runs out.
    """
    numbers, parts = zip(
        *(read for _, read in ONE.batches(_NumberPass(predictor), note)), strict=True
    )
    index = np.searchsorted(predictor.asked.numbers, np.concatenate(numbers))
    return NumberReadings.joined(parts).take(np.argsort(index))


@dataclass(frozen=True)
class _NumberPass:
    """Reader of batches (:class:`numtok.evaluation.devices.BatchReader`)."""

    predictor: Predictor

    @property
    def room(self) -> BatchSizer:
        return self.predictor.room

    @property
    def lengths(self) -> Ints:
        return self.predictor.lengths

    def answers(self, queries: Ints) -> tuple[Ints, NumberReadings]:
        """Return the numbers of the queries, as indices in the split, and their readings."""
        predictor = self.predictor
        keep_logits = predictor.support is not None or (
            predictor.loaded.model.value_head is not None
            and splits_numbers(predictor.loaded.codec.scheme)
        )
        passes = [
            (numbers, predictor.reader.read(steps, keep_logits=keep_logits))
            for numbers, steps in predictor.passes(queries)
        ]
        numbers, readings = zip(*passes, strict=True)
        return np.concatenate(numbers), NumberReadings.joined(readings)

    def forget(self) -> None:
        self.predictor.forget()
