"""Each check of each contract suite is shown to fail: for each there is a thing below that is right
but for one member. (Those of schemes: tests/encoding/schemes/test_contract.py.)"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from numtok.analysis.figures.curve import CurveFigure
from numtok.contracts import CheckResult, kinds, registry_of
from numtok.data.sources.base import Origin
from numtok.data.sources.numeracy600k import Numeracy600K
from numtok.data.sources.uci import Uci
from numtok.data.tasks.arithmetic import Arithmetic
from numtok.data.tasks.curves import Curves
from numtok.data.tasks.temperature import Temperature
from numtok.encoding.normalizers.affine import Affine
from numtok.encoding.text_tokenizers.bytes import BytesTokenizer
from numtok.errors import UsageError
from numtok.metrics.base import Metric, Predictions
from numtok.models.distributions.gaussian import Gaussian
from numtok.models.embedders.scaled import Scaled
from numtok.models.heads.scalar import Scalar
from numtok.models.objectives.mlm import Mlm
from tests.fakemodels import one_thread

__all__ = ["one_thread"]


def changed(base: type, **members: Any) -> Any:
    """An object of a class that differs from another in these members, at its defaults."""
    kind = type("Broken", (base,), {"__module__": __name__} | members)
    return kind(**({"set": "yacht"} if base is Uci else {}))


def made(base: type, member: str, change: Callable[[Any], Any], **members: Any) -> Any:
    """One whose member gives what ``change`` makes of the right answer."""

    def answer(self: Any, *given: Any, **named: Any) -> Any:
        return change(getattr(base, member)(self, *given, **named))

    return changed(base, **{member: answer}, **members)


class Reader(torch.nn.Module):
    """Before a reader: its members are replaced in the object, so that all else is right."""


def read(member: str, change: Callable[[Any], Any]) -> Any:
    """A head whose reader gives what ``change`` makes of the right answer."""

    def altered(reader: Any) -> Any:
        kind = type(reader)
        right = getattr(kind, member)
        broken = type(
            "BrokenReader",
            (kind,),
            {"__module__": __name__, member: lambda self, *given: change(right(self, *given))},
        )
        reader.__class__ = broken
        return reader

    return made(Scalar, "build", altered)


def predicted(member: str, change: Callable[[Any], Any]) -> Any:
    """A head whose distribution gives what ``change`` makes of the right answer."""
    right = getattr(Gaussian, member)
    kind = type(
        "BrokenGaussian",
        (Gaussian,),
        {"__module__": __name__, member: lambda self, *given: change(right(self, *given))},
    )

    def altered(one: Any) -> Any:
        object.__setattr__(one, "__class__", kind)
        return one

    return read("predictive", altered)


def embedded(change: Callable[[Any], Any]) -> Any:
    """An embedder whose vectors are what ``change`` makes of the right ones."""

    def altered(module: Any) -> Any:
        kind = type(module)
        module.__class__ = type(
            "BrokenModule",
            (kind,),
            {"__module__": __name__, "forward": lambda self, *at: change(kind.forward(self, *at))},
        )
        return module

    return made(Scaled, "build", altered)


def untrained(module: Any) -> Any:
    module.extra = torch.nn.Parameter(torch.zeros(3))
    return module


def drawn(module: Any) -> Any:
    module.seed = torch.nn.Parameter(torch.tensor(np.random.default_rng().random(3)))
    return module


@dataclass(frozen=True)
class Mine(Metric):
    """The mean of the absolute error.

    >>> Mine().plain(Predictions.of([1, 2], [1, 5]))
    1.5
    """

    revision = 1
    source = "a test"
    better = "lower"
    bounds = (0.0, float("inf"))
    undefined = "never"

    def statistic(self, answers: Predictions) -> Any:
        errors = np.abs(answers.prediction - answers.truth)
        with np.errstate(all="ignore"):
            return lambda weights: (weights * errors).sum(axis=1) / weights.sum(axis=1)


def metric(**members: Any) -> Any:
    """:class:`Mine` with other members, which derives from Metric alone."""
    own = {key: value for key, value in vars(Mine).items() if not key.startswith("__")}
    kind = type("Broken", (Metric,), own | {"__module__": __name__} | members)
    return dataclass(frozen=True)(kind)()


def statistic(of: Callable[[Any, Any], Any]) -> Any:
    """A metric whose figure is a function of errors [n] and weights [R, n]."""

    def one(self: Any, answers: Predictions) -> Any:
        errors = np.abs(answers.prediction - answers.truth)
        return lambda weights: np.asarray(of(errors, weights), np.float64)

    return metric(statistic=one)


def mean(errors: Any, weights: Any) -> Any:
    return (weights * errors).sum(axis=1) / weights.sum(axis=1)


def example(**columns: Callable[[Any], Any]) -> Any:
    """An objective of which some columns are what is made of the right ones."""
    return made(
        Mlm,
        "example",
        lambda one: replace(
            one, **{key: change(getattr(one, key)) for key, change in columns.items()}
        ),
    )


class _Odd(tuple[str, ...]):
    """Names that cannot be written down."""


def origin(**columns: Any) -> Any:
    return made(Uci, "origins", lambda found: [replace(one, **columns) for one in found])


def rows(change: Callable[[bytes], bytes]) -> Any:
    return made(Arithmetic, "unit", lambda one: one._replace(rows=change(one.rows)))


def encoded(change: Callable[[Any], Any]) -> Any:
    """A text tokenizer whose tokens are what ``change`` makes of the right ones."""
    return fitted("encode", change)


def fitted(member: str, change: Callable[[Any], Any]) -> Any:
    def altered(one: Any) -> Any:
        kind = type(one)
        right = getattr(kind, member)
        new = type(
            "Broken",
            (kind,),
            {"__module__": __name__, member: lambda self, *given: change(right(self, *given))},
        )
        object.__setattr__(one, "__class__", new)
        return one

    return made(BytesTokenizer, "fit", altered)


def _not_an_index_error(self: Any, sample: Any) -> Any:
    raise NotImplementedError
