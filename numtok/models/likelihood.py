"""How probable a model finds whole rows, tokens and numbers together."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from numtok.errors import UsageError
from numtok.models.heads.base import ValueHead
from numtok.models.model import Model
from numtok.models.precision import on_host
from numtok.models.training_batch import TrainingBatch
from numtok.registry import spec_of


@torch.no_grad()
def log_likelihoods(model: Model, example: TrainingBatch) -> NDArray[np.float64]:
    """float64[B], nats: log p of all that an example asks for in each row.

    Of an autoregressive model that is log p of the row. With the head ``numgpt`` it is Equation 12
    of NumGPT with the opposite sign, so less the logarithms of the factors 10^e of a row's numbers
    it is the density of the numbers themselves. With other heads that learn by a density it is one
    of values as the model has them, normalised.

    >>> rows = batches.of(np.arange(8))
    >>> log_likelihoods(model, OBJECTIVES.build("ar").example(rows, generator(0)))

    Raises UsageError for a head that has no density, and for a model of labels.
    """
    head = model.head
    if model.settings.classes or (isinstance(head, ValueHead) and not head.has_density):
        told = "labels alone"
        if head is not None:
            told = f"numbers by {spec_of(head)}, which does not learn by a density,"
        raise UsageError(
            f"a model that says {told} has no likelihood of rows; train with a --head that has a "
            "density, such as mdn:5"
        )
    if model.stands_in:
        raise UsageError(
            f"a model of --objective {spec_of(model.objective)} sees each number before it is "
            "said, so one pass gives no likelihood of rows; take one with another --embedder"
        )
    given = model.given(example)
    hidden = model.states_of(given)
    asked, where, number_where = example.asked
    rows, places = example.tokens.shape if asked is None else asked.shape

    def summed(logs: Tensor, at: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = on_host(logs)
        return np.asarray(np.bincount(at // max(1, places), weights, minlength=rows), np.float64)

    log_p = model.token_head(given.predicting(hidden)).float().log_softmax(dim=1)
    total = summed(log_p.gather(1, given.labels[:, None])[:, 0], where)
    if model.value_head is not None and len(number_where):  # of none there is nothing to learn
        parameters = model.value_head(given.saying(hidden).float())
        total -= summed(model.value_head.losses(parameters, given.number_targets), number_where)
    return total
