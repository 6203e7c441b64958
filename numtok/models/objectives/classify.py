"""classify: say which class the row belongs to."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from numtok.models.batches import Batch
from numtok.models.objectives.base import Objective
from numtok.models.training_batch import TrainingBatch, row_end_batch


@dataclass(frozen=True)
class Classify(Objective):
    """The row is seen as it is, and its label is read at its last real place, that of its last
    token and never a pad, by a linear map. A row without a label has no part in the loss; to learn
    from, `train` takes none.

    Tasks with labels are those of NumGPT, which does not say where one is read, so it is as in GPT.

    causal
        Whether each place sees the earlier ones alone, as those of an ``ar`` model do. Not unless
        said: there is nothing to be written, so nothing must be hidden. A model that begins with
        the weights of another (``--init-from``) looks as that one does.

    Of ``is 3.5 kg more than 1.2 kg`` the state at the second ``kg`` says ``yes``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Radford et al. (2018), Section 3.2"
    causal: bool = False

    def requires(self) -> str | None:
        return "label"

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        seen = row_end_batch(batch, self.causal)
        labelled = batch.label >= 0
        return replace(seen, where=seen.where[labelled], labels=batch.label[labelled])
