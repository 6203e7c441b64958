"""Projections of number embeddings onto a direction, after a model's first layer norm.

The first block of a model reads LN(e(x) + p), where e(x) is the embedding of a number token with
the value x, p is the vector added at its position, and LN is the first layer norm with its weights.
"""

from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.models.model import Model
from numtok.models.precision import in_float64, on_host

Floats = NDArray[np.float64]
_AT_ONCE = 8  # values per batch, each at all positions


class Projections(NamedTuple):
    """Projections of the embeddings of N values, at P positions, onto one direction.

    e(x) is the embedding of the value x, p is the vector added at a position, and LN is the model's
    first layer norm. D is the embedding width.

    lengths
        float64[N, P]: coordinates of LN(e(x) + p) along the direction, a unit vector.
    unit
        float64[D]: the vector u if e(x) = x u, which defines the direction. Otherwise None; in that
        case, the direction is the first principal component of LN(e(x) + p), averaged over the
        positions.
    positions
        float64[P, D]: the position vectors p; a single row of zeros if none are added.
    epsilon
        Constant that LN adds to the variance.
    """

    lengths: Floats
    unit: Floats | None
    positions: Floats
    epsilon: float


@torch.no_grad()
def projections(model: Model, token: int, x: Floats) -> Projections | None:
    """Project the embeddings of values float64[N], at all positions of the context, onto one
    direction.

    ``token`` is the id of the number token. Return None if its embedding does not depend on the
    value, or if the trunk does not start with a norm (``TrunkModule.first_norm``).
    """
    first = model.trunk.first_norm()
    vectors_ND = _embedded(model, token, x)
    one_D = _embedded(model, token, np.array([1.0]))[0]
    if first is None or bool((vectors_ND == vectors_ND[0]).all()):
        return None
    norm, positions_PD = first
    scaled_ND = torch.from_numpy(x.astype(np.float32)).to(one_D.device)[:, None] * one_D
    is_multiple = torch.allclose(vectors_ND, scaled_ND, rtol=1e-5, atol=1e-7)
    if is_multiple:
        direction_D = in_float64(one_D)
    else:
        parts = [normed.mean(dim=1) for normed in _normed(vectors_ND, positions_PD, norm)]
        direction_D = _first_component(torch.cat(parts))
    direction_D = direction_D / direction_D.norm()
    lengths = [normed @ direction_D for normed in _normed(vectors_ND, positions_PD, norm)]
    return Projections(
        on_host(torch.cat(lengths)),
        on_host(one_D) if is_multiple else None,
        on_host(positions_PD),
        norm.eps,
    )


def _embedded(model: Model, token: int, values: Floats) -> Tensor:
    """Return the embeddings, [N, D]."""
    device = next(model.parameters()).device
    values_N1 = torch.from_numpy(values.astype(np.float32))[:, None].to(device)
    tokens_N1 = torch.full_like(values_N1, token, dtype=torch.int64)
    return cast(Tensor, model.embedder(tokens_N1, values_N1)[:, 0])


def _normed(vectors_ND: Tensor, positions_PD: Tensor, norm: nn.LayerNorm) -> "map[Tensor]":
    """Yield [n, P, D] for a few values at a time."""
    parts: tuple[Tensor, ...] = torch.split(vectors_ND, _AT_ONCE)
    return map(lambda part: in_float64(norm(part[:, None] + positions_PD)), parts)


def _first_component(means_ND: Tensor) -> Tensor:
    """Return the first principal component [D], oriented towards large x."""
    centred_ND = means_ND - means_ND.mean(dim=0)
    first_D = torch.linalg.svd(centred_ND, full_matrices=False)[2][0]
    ends = centred_ND[-1] - centred_ND[0]
    return cast(Tensor, -first_D if bool(first_D @ ends < 0) else first_D)
