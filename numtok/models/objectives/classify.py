"""classify: predict the label of a row, for example ``yes`` or ``no``."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from numtok.models.batches import Batch
from numtok.models.objectives.base import Objective
from numtok.models.training_batch import TrainingBatch, row_end_batch


@dataclass(frozen=True)
class Classify(Objective):
    """Classifies each row with a linear map from the hidden state of its last token.

    Nothing is masked. Rows without a label do not contribute to the loss; ``train`` rejects them in
    training data. The NumGPT paper has such tasks but does not specify which state is used; this
    implementation follows GPT.

    causal
        Let each token attend only to itself and earlier tokens, as in an ``ar`` model. Default: no,
        because nothing is generated. A model that is initialized from another one
        (``--init-from``) keeps the attention of that model.

    For ``is 3.5 kg more than 1.2 kg``, the state at the second ``kg`` predicts ``yes``.
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "Radford et al. (2018), Section 3.2"
    causal: bool = False

    def requires(self) -> str | None:
        return "label"

    def example(self, batch: Batch, random: np.random.Generator) -> TrainingBatch:
        example = row_end_batch(batch, self.causal)
        labelled = batch.label >= 0
        return replace(example, where=example.where[labelled], labels=batch.label[labelled])
