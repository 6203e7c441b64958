"""Log-likelihoods of rows, computed from the predictions of both tokens and numbers."""

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
    """Return float64[B], in nats: the log-likelihood of everything that is predicted in each row.

    For an autoregressive model, this is the log-likelihood of the entire row. With the head
    ``numgpt``, it is the negative of NumGPT's Equation 12; to obtain the density of the numbers
    themselves, subtract the logarithm of the factor 10^e of each number in the row. With other
    heads whose loss is a negative log-density, it includes the density of the normalized values.

    >>> rows = batches.of(np.arange(8))
    >>> log_likelihoods(model, OBJECTIVES.build("ar").example(rows, generator(0)))

    Raises UsageError for a head without a density, for a model that predicts labels, and for a
    model that sees each number before it is predicted.
    """
    head = model.head
    if model.settings.classes or (isinstance(head, ValueHead) and not head.has_density):
        predictions = "labels only"
        if head is not None:
            predictions = f"numbers with {spec_of(head)}, whose loss is not a density,"
        raise UsageError(
            f"a model that predicts {predictions} has no likelihood of rows. "
            "Train with a --head that has a density, such as mdn:5"
        )
    if model.replaces_numbers:
        raise UsageError(
            f"a model with --objective {spec_of(model.objective)} sees each number before it is "
            "predicted, so it has no likelihood of rows. Use one with another --embedder"
        )
    inputs = model.given(example)
    hidden = model.states_of(inputs)
    queried, where, number_where = example.asked
    rows, places = example.tokens.shape if queried is None else queried.shape

    def summed(logs: Tensor, at: NDArray[np.int64]) -> NDArray[np.float64]:
        weights = on_host(logs)
        return np.asarray(np.bincount(at // max(1, places), weights, minlength=rows), np.float64)

    log_p = model.token_head(inputs.predicting(hidden)).float().log_softmax(dim=1)
    total = summed(log_p.gather(1, inputs.labels[:, None])[:, 0], where)
    if model.value_head is not None and len(number_where):
        parameters = model.value_head(inputs.predicting_numbers(hidden).float())
        total -= summed(model.value_head.losses(parameters, inputs.number_targets), number_where)
    return total
