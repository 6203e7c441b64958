"""Examples to the inputs of a model, prepared on the host in NumPy."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.encoding.schemes.base import Channel
from numtok.errors import UsageError
from numtok.models.embedders.base import Embedder, NumberModule
from numtok.models.heads.base import ValueHead
from numtok.models.inputs import ModelInputs, moved, single
from numtok.models.number_heads import NumberHeads
from numtok.models.number_terms.base import NumberTermModule
from numtok.models.objectives.base import Objective
from numtok.models.own_losses import OwnLosses, own_places
from numtok.models.places.base import PlaceTable
from numtok.models.training_batch import TrainingBatch
from numtok.registry import spec_of


class ExampleInputs(NumberHeads):
    """The side of a model that works on the host, before a batch goes to a device.

    own_losses
        The objective, if it has losses of its own.
    ahead
        The token whose vector is made of the tokens after it (``NumberModule.ahead``).
    """

    objective: Objective
    own_losses: OwnLosses | None
    embedding: Embedder
    embedder: nn.Module
    ahead: int | None
    places: PlaceTable | None
    number_term: NumberTermModule | None

    @property
    def _table(self) -> nn.Parameter:
        return self.embedder.get_parameter("table.weight")

    def given(self, example: TrainingBatch) -> ModelInputs:
        """Put an example on the model's device."""
        return self.on_host(example).to(self._table.device)

    def on_host(self, example: TrainingBatch) -> ModelInputs:
        """Prepare an example, with its numbers as the value head is trained on them."""
        values = example.number_values
        learnt = single(values)[:, None]  # a device may have no float64
        if isinstance(self.head, ValueHead) and len(values):
            learnt = self.head.targets(self.head_values(values, example.number_raw))
        of_host = self._of_host(example.tokens, example.values, None, example.moved_places)
        own = self.own_places(example)
        return ModelInputs.on_host(example, learnt, own, of_host, self._of_term(example))

    def _of_term(self, example: TrainingBatch) -> tuple[NDArray[Any], ...]:
        """Prepare what the number loss needs besides logits and labels."""
        if self.number_term is None:
            return ()
        scale = self.with_number_scale(example).number_scale
        # Labels that follow each other across two rows are of two runs.
        apart = example.where + example.where // example.tokens.shape[1]
        places = self.number_term.places(example.labels, apart)
        return np.array(scale, np.float32), places

    def with_number_scale(self, example: TrainingBatch) -> TrainingBatch:
        """Note the number of labels with a value in an example, so that its parts know it, if the
        objective has a number loss."""
        if self.number_term is None or example.number_scale is not None:
            return example
        return replace(example, number_scale=self.number_term.scale(example.labels))

    def of_host(
        self, tokens: NDArray[np.int64], values: Channel, before: NDArray[np.int64] | None = None
    ) -> tuple[Tensor, ...]:
        """Compute what the embedder needs besides tokens and values [B, L], on the model's device.

        ``before``, [B, T]: the tokens before these in each row, padded on the left, for a model
        with digit places."""
        known = self._of_host(tokens, values, before)
        return tuple(moved(one, self._table.device) for one in known)

    def _of_host(
        self,
        tokens: NDArray[np.int64],
        values: Channel,
        before: NDArray[np.int64] | None,
        moved_places: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[Any], ...]:
        known: tuple[NDArray[Any], ...] = ()
        if isinstance(self.embedder, NumberModule):
            known = self.embedder.of_host(tokens, values)
        if self.places is None:
            return known
        return *known, self.places.numbers(tokens, before, moved_places)

    def own_places(self, example: TrainingBatch) -> NDArray[np.int64] | None:
        """int64[P]: flat indices into [B, L] of the positions of the objective's own losses; None
        if it has none."""
        if self.own_losses is None or example.own_from is None:
            return None
        return own_places(example, self.ahead)

    def head_values(self, values: Channel, raw: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """float64[N]: numbers as the value head is trained on them.

        values, raw
            The numbers of the encoding, and those of the text, which some heads need.

        Raises UsageError if the head needs ``raw`` and the objective does not provide it.
        """
        if self.is_exact:
            if raw is None:
                raise UsageError(
                    f"--head {spec_of(self.head)} learns numbers as they are in the text, and the "
                    f"examples of --objective {spec_of(self.objective)} have no `number_raw`; set "
                    "it where they are made, or give another head"
                )
            return raw
        return self.scaling.forward(values.astype(np.float64))
