"""Checks that every embedder must pass: ``numtok check embedder NAME``.

Each embedder is built for the tokens of every scheme that it accepts, at the smallest width that it
accepts.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    described,
    expect,
    expect_kind,
    expect_tensor,
    fail,
    once_a_run,
    require,
    wrong,
)
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS, Embedder, NumberModule
from numtok.models.inputs import single
from numtok.models.made_up import accepted, made_up, on_another_device
from numtok.models.presets import TrainingDefaults
from numtok.models.vocabulary import Vocabulary

_WIDTHS = (8, 16, 32, 64, 128, 256, 512, 1024)


class _Built(NamedTuple):
    """A module for the tokens of a scheme, and the rows of :func:`made_up`."""

    scheme: str
    vocabulary: Vocabulary
    width: int
    module: nn.Module
    tokens_BL: Tensor
    values_BL: Tensor


def _build(embedder: Embedder, seed: int, vocabulary: Vocabulary) -> tuple[int, nn.Module]:
    """Return the smallest accepted width, and the module."""
    *narrower, widest = _WIDTHS
    for width in narrower:
        try:
            return width, _checked(embedder, seed, vocabulary, width)
        except UsageError as error:
            if type(error) is not UsageError:  # a plugin's fault
                raise
    return widest, _checked(embedder, seed, vocabulary, widest)


def _checked(embedder: Embedder, seed: int, vocabulary: Vocabulary, width: int) -> nn.Module:
    """Build the module, which must have one vector per token."""
    torch.default_generator.manual_seed(seed)
    module: nn.Module = expect_kind(embedder, "build", embedder.build(vocabulary, width), nn.Module)
    expected = "a module whose table.weight has one vector per token"
    try:
        table = module.get_parameter("table.weight")
    except AttributeError:
        wrong(embedder, "build", f"a {type(module).__name__} without table.weight", expected)
    if table.shape != (vocabulary.size, width):
        got = f"a {type(module).__name__} whose table.weight is {described(table)}"
        wrong(embedder, "build", got, f"{expected}: [{vocabulary.size}, {width}]")
    return module


@once_a_run
def _built(embedder: Embedder, seed: int) -> list[_Built]:
    """Build a module for each accepted scheme."""
    every = []
    for scheme, vocabulary, build in accepted(embedder, "build", partial(_build, embedder, seed)):
        batch = made_up(scheme)
        values = torch.from_numpy(single(batch.values()))
        tokens = torch.from_numpy(batch.tokens)
        every.append(_Built(scheme, vocabulary, *build, tokens, values))
    return every


def check_declarations(embedder: Embedder, seed: int) -> None:
    """All declarations exist."""
    check_declared(embedder, "declarations", revision=int, source=str)
    if isinstance(embedder, TrainingDefaults):
        expect_kind(embedder, "learning_rate", embedder.learning_rate, float)
    check_settings(EMBEDDERS, embedder, "declarations")


def check_table(embedder: Embedder, seed: int) -> None:
    """``table.weight`` has one vector per token, and equal seeds give equal weights."""
    for built in _built(embedder, seed):
        _, again = _build(embedder, seed, built.vocabulary)
        equal = all(
            map(torch.equal, built.module.state_dict().values(), again.state_dict().values())
        )
        expect(embedder, "table", f"{built.scheme}: equal weights for equal seeds", equal, True)


def check_vectors(embedder: Embedder, seed: int) -> None:
    """Vectors [B, L, D] are finite floats, also if a number has no value."""
    for built in _built(embedder, seed):
        vectors = built.module(built.tokens_BL, built.values_BL)
        expect_tensor(built.module, "forward", vectors, (*built.tokens_BL.shape, built.width))
        odd = (~vectors.isfinite().all(dim=2)).nonzero().tolist()
        if odd:
            token, value = (of[tuple(odd[0])].item() for of in (built.tokens_BL, built.values_BL))
            got = f"{built.scheme}: got {vectors[tuple(odd[0])].tolist()[:3]} ..."
            what = f"for token {token} with the value {value}, expected finite numbers"
            fail(embedder, "vectors", f"{got} {what}")


def check_device(embedder: Embedder, seed: int) -> None:
    """The embedder's module runs on devices other than the CPU."""
    for built in _built(embedder, seed):
        inputs = [built.tokens_BL, built.values_BL]
        if isinstance(built.module, NumberModule):
            host_inputs = built.module.of_host(built.tokens_BL.numpy(), built.values_BL.numpy())
            inputs += map(torch.from_numpy, host_inputs)
        on_another_device(built.module, partial(_on_device, inputs))


def _on_device(inputs: Sequence[Tensor], module: nn.Module, device: str) -> None:
    module(*(tensor.to(device) for tensor in inputs))


def check_places(embedder: Embedder, seed: int) -> None:
    """A vector depends only on the token and the value at its own position.

    Each position is changed in turn; no other vector may change, except at the token that depends
    on later tokens (``ahead``), if the embedder has one.
    """
    for built in _built(embedder, seed):
        whole = built.module(built.tokens_BL, built.values_BL).detach()
        for row in range(len(built.tokens_BL)):
            tokens, values = built.tokens_BL[row : row + 1], built.values_BL[row : row + 1]
            near = torch.allclose(built.module(tokens, values)[0], whole[row], rtol=1e-4, atol=1e-5)
            expect(
                embedder,
                "places",
                f"{built.scheme}: a row has equal vectors in a batch",
                near,
                True,
            )
        _check_neighbors(embedder, built, whole)


def _check_neighbors(embedder: Embedder, built: _Built, whole_BLD: Tensor) -> None:
    """Change some positions in all rows, one at a time: first the token, then the value."""
    ahead = built.module.ahead if isinstance(built.module, NumberModule) else None
    elsewhere = built.tokens_BL != (-1 if ahead is None else ahead)
    text = built.vocabulary.first_of_text
    length = built.tokens_BL.shape[1]
    for position in range(0, length, max(1, length // 4)):
        tokens, values = built.tokens_BL.clone(), built.values_BL.clone()
        tokens[:, position] = torch.where(tokens[:, position] == text, text - 1, text)
        values[:, position] = values[:, position] * 0.5 + 0.25
        for changed in ((tokens, built.values_BL), (built.tokens_BL, values)):
            vectors = built.module(*changed).detach()
            unchanged = elsewhere.clone()
            unchanged[:, position] = False
            near = torch.isclose(vectors, whole_BLD, rtol=1e-4, atol=1e-5).all(dim=2) | ~unchanged
            message = (
                f"{built.scheme}: changing position {position} changed vectors at other positions"
            )
            require(
                embedder,
                "places",
                bool(near.all()),
                f"got {message}, expected only its own to change",
            )


def check_gradients(embedder: Embedder, seed: int) -> None:
    """Every weight has a gradient, from the tokens of at least one scheme."""
    trained: dict[str, bool] = {}
    for built in _built(embedder, seed):
        vectors = built.module(built.tokens_BL, built.values_BL)
        weights = torch.linspace(-1, 1, vectors.numel()).reshape(vectors.shape)
        (vectors * weights).sum().backward()
        for name, parameter in built.module.named_parameters():
            got = parameter.grad is not None and bool(parameter.grad.isfinite().all())
            trained[name] = trained.get(name, False) or got or not parameter.requires_grad
    unlearnt = sorted(name for name, reached in trained.items() if not reached)
    require(embedder, "gradients", not unlearnt, f"got no gradient for {', '.join(unlearnt)}")


def check_ahead(embedder: Embedder, seed: int) -> None:
    """The token whose vector depends on later tokens is in the vocabulary."""
    for built in _built(embedder, seed):
        if isinstance(built.module, NumberModule) and (ahead := built.module.ahead) is not None:
            message = f"{built.scheme}: got token {ahead}, expected below {built.vocabulary.size}"
            require(embedder, "ahead", 0 <= ahead < built.vocabulary.size, message)


CHECKS = checks_of(__name__)
