"""Checks that every number loss must pass: ``numtok check number-term NAME``.

Losses are computed from random logits for the tokens of each scheme that has digit tokens.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from numtok.contracts import (
    check_declared,
    check_settings,
    checks_of,
    expect,
    expect_kind,
    expect_tensor,
    require,
)
from numtok.models.made_up import accepted, made_up
from numtok.models.number_terms.base import NUMBER_TERMS, DigitLogits, NumberTerm, NumberTermModule
from numtok.models.vocabulary import Vocabulary


class _Checked:
    """A number loss whose results are checked against its contract."""

    def __init__(self, term: NumberTerm) -> None:
        self._term = term

    def __getattr__(self, name: str) -> Any:
        return getattr(self._term, name)

    def losses(self, digits: DigitLogits) -> Tensor:
        losses = self._term.losses(digits)
        return cast(Tensor, expect_tensor(self._term, "losses", losses, (len(digits.log_p_NT),)))


def _module(term: NumberTerm, vocabulary: Vocabulary) -> NumberTermModule:
    return NumberTermModule(term, vocabulary.valued, vocabulary.size)


def _modules(term: NumberTerm) -> Iterator[tuple[str, NumberTermModule, Vocabulary]]:
    """Yield one scheme for each distinct set of token values: its name, a module and its
    vocabulary."""
    seen_values: set[bytes] = set()
    modules = accepted(term, "losses", partial(_module, term))
    for scheme, vocabulary, module in modules:
        module.term = cast(NumberTerm, _Checked(term))
        values = module.get_buffer("values").numpy().tobytes()
        if values not in seen_values:
            seen_values.add(values)
            yield scheme, module, vocabulary


def _drawn(scheme: str, vocabulary: Vocabulary, seed: int) -> tuple[Tensor, Tensor]:
    labels = torch.from_numpy(made_up(scheme).tokens[0])
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(len(labels), vocabulary.size, generator=generator)
    return logits.requires_grad_(), labels


def _places(module: NumberTermModule, labels: Tensor) -> Tensor:
    return torch.from_numpy(module.places(labels.numpy(), np.arange(len(labels))))


def _loss(module: NumberTermModule, logits: Tensor, labels: Tensor) -> Any:
    """Return the loss [] of consecutive labels that are trained together."""
    return module(logits, labels, module.scale(labels.numpy()), _places(module, labels))


def check_declarations(term: NumberTerm, seed: int) -> None:
    """All declarations exist, and the weight, if any, is positive."""
    check_declared(term, "declarations", revision=int, source=str)
    weight = expect_kind(term, "weight", term.weight, float, type(None))
    above = weight is None or weight > 0
    require(term, "declarations", above, f"weight: got {weight}, expected a value above 0")
    check_settings(NUMBER_TERMS, term, "declarations")


def check_losses(term: NumberTerm, seed: int) -> None:
    """Losses and gradients are finite; the loss is 0 if no label has a value."""
    for scheme, module, vocabulary in _modules(term):
        logits, labels = _drawn(scheme, vocabulary, seed)
        loss = _loss(module, logits, labels)
        loss.backward()
        finite = bool(loss.isfinite()) and logits.grad is not None and logits.grad.isfinite().all()
        require(
            term, "losses", finite, f"{scheme}: got {loss.item()}, or a gradient that is not finite"
        )
        text = torch.full_like(labels, vocabulary.first_of_text)
        none = _loss(module, logits, text).item()
        expect(term, "losses", f"{scheme}: loss of text without numbers", none, 0.0)


def check_parts(term: NumberTerm, seed: int) -> None:
    """The loss of a batch does not change if the batch is split into parts."""
    for scheme, module, vocabulary in _modules(term):
        logits, labels = _drawn(scheme, vocabulary, seed)
        scale = module.scale(labels.numpy())
        places = _places(module, labels)
        runs = places[:, 1]  # do not cut within a run
        cut = next(at for at in range(2, len(runs)) if runs[at] < 0 or runs[at] != runs[at - 1])
        whole = module(logits, labels, scale, places).item()
        parts = [
            module(logits[part], labels[part], scale, places[part]).item()
            * len(labels[part])
            / len(labels)
            for part in (slice(0, cut), slice(cut, None))
        ]
        near = bool(np.isclose(sum(parts), whole, rtol=1e-4, atol=1e-6))
        message = f"{scheme}: got {sum(parts)} for two parts, expected {whole} as for the whole"
        require(term, "parts", near, message)


CHECKS = checks_of(__name__)
