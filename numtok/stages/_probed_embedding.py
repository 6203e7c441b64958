"""What the first block of a model sees of a number: its embedding after the first layer norm."""

from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from numtok.errors import UsageError
from numtok.numerals.column import Numerals
from numtok.probes import Embedding
from numtok.stages._models import LoadedModel

Floats = NDArray[np.float64]
_AT_ONCE = 8  # values, each at all positions
FORMULA = "offset + height * mean over positions of x / sqrt(r^2 + x^2), r = |p| / |u|"


def embedding(loaded: LoadedModel, low: float, high: float, points: int) -> "Probed":
    """The projection of LN(e(x) + p) on a direction, for values as they go in and all positions p.

    The direction is that of the vector u of ``[NUM]`` where e(x) = x u. Then, were u orthogonal to
    p, LN(x u + p) along u would be a multiple of x / sqrt(r^2 + x^2) with r = |p| / |u| (both less
    their mean over the coordinates, as layer norm has it; xVal, Section 2.1, has |p| = |u|). Else
    it is the first principal component of the mean of LN(e(x) + p) over the positions.

    Raises UsageError where the embedding does not depend on the value.
    """
    model, codec = loaded.model, loaded.codec
    name = model.settings.embedder["name"]
    x = np.linspace(low, high, points)
    with torch.no_grad():
        vectors_ND = _embedded(loaded, np.append(x, [0.0, 1.0]))
        if not codec.scheme.channel or bool((vectors_ND[:-2] == vectors_ND[0]).all()):
            raise UsageError(
                f"--embedding follows a value beside its token, and the embedder {name!r} of "
                f"{loaded.artifact.ref} looks up tokens alone; use --pca, which shows their vectors"
            )
        vectors_ND, zero_D, one_D = vectors_ND[:-2], vectors_ND[-2], vectors_ND[-1]
        positions_PD = _positions(loaded)
        norm = cast(nn.LayerNorm, model.trunk.get_submodule("blocks.0.norm_attention"))
        if is_multiple := bool((zero_D == 0).all()) and _on_line(vectors_ND, x, one_D):
            direction, told = one_D, "the vector of [NUM]"
        else:
            mean_ND = _mean(vectors_ND, positions_PD, norm)
            direction = _first_component(mean_ND)
            told = "the first principal component of the mean over positions"
        direction = direction / direction.norm()
        projected = _projected(vectors_ND, positions_PD, norm, direction)
    mean = projected.mean(axis=1)
    formula = _formula(x, mean, one_D, positions_PD, norm.eps) if is_multiple else None
    columns = {
        "x": x,
        "mean": mean,
        "deviation": projected.std(axis=1),
        "low": projected.min(axis=1),
        "high": projected.max(axis=1),
        "formula": formula.y if formula else pa.nulls(points, pa.float64()),
    }
    return Probed(
        Embedding(
            direction=told,
            positions=len(positions_PD),
            low=low,
            high=high,
            formula=FORMULA if formula else None,
            scale=formula and formula.scale,
            scale_deviation=formula and formula.scale_deviation,
            cosine=formula and formula.cosine,
            cosine_deviation=formula and formula.cosine_deviation,
            offset=formula and formula.offset,
            height=formula and formula.height,
            residual=formula and formula.residual,
            half=_half(x, mean),
        ),
        pa.table(columns),
    )


class Probed(NamedTuple):
    """The summary and its points."""

    found: Embedding
    points: "pa.Table"


class _Formula(NamedTuple):
    y: Floats
    scale: float
    scale_deviation: float
    cosine: float
    cosine_deviation: float
    offset: float
    height: float
    residual: float


def _embedded(loaded: LoadedModel, values: Floats) -> Tensor:
    """[N, D]: a number's token with each value beside it."""
    codec = loaded.codec
    token = int(codec.scheme.encode(Numerals(np.array([1.0]))).tokens[0]) + codec.number_first
    device = next(loaded.model.parameters()).device
    values_N1 = torch.from_numpy(values.astype(np.float32))[:, None].to(device)
    tokens_N1 = torch.full_like(values_N1, token, dtype=torch.int64)
    return cast(Tensor, loaded.model.embedder(tokens_N1, values_N1)[:, 0])


def _positions(loaded: LoadedModel) -> Tensor:
    """[P, D]: what is added at each position; one of zeros where nothing is."""
    trunk = loaded.model.trunk
    if trunk.shape.positions == "rotary":
        return torch.zeros(1, trunk.shape.width, device=next(trunk.parameters()).device)
    return cast(Tensor, trunk.positions).detach()


def _on_line(vectors_ND: Tensor, x: Floats, one_D: Tensor) -> bool:
    """Whether every vector is its x times that of 1."""
    expected = torch.from_numpy(x.astype(np.float32)).to(one_D.device)[:, None] * one_D
    return bool(torch.allclose(vectors_ND, expected, rtol=1e-5, atol=1e-7))


def _mean(vectors_ND: Tensor, positions_PD: Tensor, norm: nn.LayerNorm) -> Tensor:
    """[N, D], over the positions."""
    parts = [
        norm(part[:, None] + positions_PD).double().mean(dim=1)
        for part in torch.split(vectors_ND, _AT_ONCE)
    ]
    return torch.cat(parts)


def _projected(
    vectors_ND: Tensor, positions_PD: Tensor, norm: nn.LayerNorm, direction_D: Tensor
) -> Floats:
    """float64[N, P]: the length along a unit vector, after layer norm with its weights."""
    parts = [
        norm(part[:, None] + positions_PD).double() @ direction_D.double()
        for part in torch.split(vectors_ND, _AT_ONCE)
    ]
    return np.asarray(torch.cat(parts).cpu().numpy(), np.float64)


def _first_component(mean_ND: Tensor) -> Tensor:
    """[D]: pointing to where x is large."""
    centred_ND = mean_ND - mean_ND.mean(dim=0)
    first_D = torch.linalg.svd(centred_ND, full_matrices=False)[2][0]
    ends = centred_ND[-1] - centred_ND[0]
    return cast(Tensor, -first_D if bool(first_D @ ends < 0) else first_D)


def _formula(x: Floats, mean: Floats, u_D: Tensor, positions_PD: Tensor, eps: float) -> _Formula:
    """Its curve, with offset and height by least squares."""
    u = u_D.double().cpu().numpy()
    p = positions_PD.double().cpu().numpy()
    u, p = u - u.mean(), p - p.mean(axis=1, keepdims=True)  # what layer norm makes of them
    sizes = np.sqrt(np.square(p).sum(axis=1) + len(u) * eps)
    r = sizes / np.sqrt(np.square(u).sum())
    shape = (x[:, None] / np.sqrt(np.square(r) + np.square(x)[:, None])).mean(axis=1)
    design = np.column_stack([np.ones(len(x)), shape])
    (offset, height), *_ = np.linalg.lstsq(design, mean, rcond=None)
    y = design @ np.array([offset, height])
    cosine = p @ u / (sizes * np.sqrt(np.square(u).sum()))
    return _Formula(
        y,
        *(float(r.mean()), float(r.std()), float(cosine.mean()), float(cosine.std())),
        *(float(offset), float(height)),
        residual=float(np.sqrt(np.square(mean - y).mean()) / np.ptp(mean)),
    )


def _half(x: Floats, y: Floats) -> float | None:
    """The least x above 0 at which y is half way from 0 to the upper end.

    >>> _half(np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), np.array([-8.0, 0.0, 2.0, 6.0, 8.0]))
    1.5
    """
    if not x[0] <= 0 < x[-1]:
        return None
    start = float(np.interp(0.0, x, y))
    middle, end = (start + float(y[-1])) / 2, float(y[-1])
    if start == end:
        return None
    sign = 1.0 if end > start else -1.0
    right = np.flatnonzero((x > 0) & (sign * y >= sign * middle))
    at = int(right[0])
    return float(np.interp(sign * middle, sign * y[at - 1 : at + 1], x[at - 1 : at + 1]))
