"""Each check of each contract suite can fail: every part below is correct except for one member.

(Checks of schemes: tests/encoding/schemes/test_contract.py.)
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from torch import nn

from numtok.analysis.figures.curve import Curve
from numtok.analysis.probing.probes.examples import SamplesProbe
from numtok.contracts import results
from numtok.data.sources.era5 import Era5
from numtok.data.sources.numeracy600k import Numeracy600k
from numtok.data.sources.uci import Uci
from numtok.data.tasks.arithmetic import Arithmetic
from numtok.data.tasks.curves import Curves
from numtok.data.tasks.temperature import Temperature
from numtok.encoding.normalizers.affine import Affine
from numtok.encoding.text_tokenizers._words import WordTable
from numtok.encoding.text_tokenizers.bytes import Bytes
from numtok.metrics.base import MeanMetric, Metric, Predictions
from numtok.models.embedders.numvalue import NumValueEmbedder
from numtok.models.embedders.scaled import Scaled
from numtok.models.heads.riemann import Riemann
from numtok.models.heads.scalar import Scalar
from numtok.models.heads.token import Token
from numtok.models.number_terms.smooth import Smooth
from numtok.models.number_terms.was import Was
from numtok.models.objectives.mlm import Mlm
from numtok.models.objectives.numvalue import NumValueObjective
from numtok.models.places.abacus import Abacus
from numtok.models.trunks.mlp import Mlp
from numtok.models.trunks.transformer import TransformerTrunk
from numtok.plugin_checks import kinds, registry_of
from tests.cases import case
from tests.fakemodels import one_thread

__all__ = ["one_thread"]
Change = Callable[[Any], Any]
GIVEN: dict[type, dict[str, Any]] = {
    Uci: {"set": "yacht"},
    Era5: {"from_": "field.nc"},
    Riemann: {"bins": 8},
}


def changed(base: type, **members: Any) -> Any:
    """Return an object of a subclass of ``base`` with these members replaced."""
    kind = type("Broken", (base,), {"__module__": __name__} | members)
    return kind(**GIVEN.get(base, {}))


def gives(base: type, member: str, change: Change) -> Any:
    """Return an object whose member returns its right answer after ``change``."""
    right = getattr(base, member)
    return changed(base, **{member: lambda self, *given: change(right(self, *given))})


def altering(member: str, change: Change) -> Change:
    """Return a function that makes a member of an object return its right answer changed."""

    def altered(thing: Any) -> Any:
        right = getattr(type(thing), member)
        members = {"__module__": __name__, member: lambda self, *of: change(right(self, *of))}
        object.__setattr__(thing, "__class__", type("Broken", (type(thing),), members))
        return thing

    return altered


def read(member: str, change: Change) -> Any:
    """Return a head whose reader is changed."""
    return gives(Scalar, "build", altering(member, change))


def predicted(member: str, change: Change) -> Any:
    """Return a head whose distribution is changed."""
    return read("predictive", altering(member, change))


def fitted(member: str, change: Change) -> Any:
    """Return a text tokenizer that is changed after it is fitted."""
    return gives(Bytes, "fit", altering(member, change))


def embedded(change: Change) -> Any:
    """Return an embedder whose vectors are changed."""
    return gives(Scaled, "build", altering("forward", change))


def telling_at(token: int) -> Change:
    """Return a function that declares that another token depends on the tokens after it."""

    def change(module: Any) -> Any:
        module.ahead = token
        return module

    return change


def trunk(member: str, change: Change) -> Any:
    """Return a trunk whose module is changed."""
    return gives(TransformerTrunk, "build", altering(member, change))


def recomputing(module: Any) -> Any:
    """Make a module return other states when it recomputes them."""
    right = type(module).forward
    members = {
        "__module__": __name__,
        "forward": lambda self, *of: right(self, *of) * (1 + self.recompute),
    }
    module.__class__ = type("Broken", (type(module),), members)
    return module


def example(**columns: Change) -> Any:
    """Return an objective whose examples have changed columns."""

    def change(one: Any) -> Any:
        return replace(one, **{key: of(getattr(one, key)) for key, of in columns.items()})

    return gives(Mlm, "example", change)


def rows(change: Callable[[bytes], bytes]) -> Any:
    """Return a task whose rows are changed."""
    return gives(Arithmetic, "unit", lambda made: made._replace(rows=change(made.rows)))


def origins(**columns: Any) -> Any:
    """Return a source whose origins are changed."""
    return gives(Uci, "origins", lambda found: [replace(one, **columns) for one in found])


def with_weight(values: Callable[[], torch.Tensor]) -> Change:
    """Return a function that adds an unused weight to a module."""

    def change(module: Any) -> Any:
        module.more = nn.Parameter(values())
        return module

    return change


@dataclass(frozen=True)
class Mine(Metric):
    """The mean of the absolute errors.

    >>> Mine().plain(Predictions.of([1, 2], [1, 5]))
    1.5
    """

    revision: ClassVar[int] = 1
    source: ClassVar[str] = "a test"
    better: ClassVar[Literal["lower"]] = "lower"
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))
    undefined: ClassVar[str] = "never"

    def statistic(self, answers: Predictions) -> Any:
        errors = np.abs(answers.prediction - answers.truth)
        return lambda weights: mean(errors, weights)


def mean(errors: Any, weights: Any) -> Any:
    return (weights * errors).sum(axis=1) / weights.sum(axis=1)


def metric(base: type = Metric, **members: Any) -> Any:
    """Return a metric that differs from :class:`Mine` in these members."""
    own: Mapping[str, Any] = vars(Mine)
    kept = {key: own[key] for key in ("revision", "source", "better", "bounds", "undefined")}
    kept |= {"statistic": Mine.statistic} if base is Metric else {}
    kind: Any = type("Broken", (base,), kept | {"__module__": __name__} | members)
    return dataclass(frozen=True)(kind)()


def mean_of(values: Callable[[Any, Predictions], Any]) -> Any:
    """Return a metric that is the mean of these values."""
    return metric(MeanMetric, values=values)


def figure(of: Callable[[Any, Any], Any]) -> Any:
    """Return a metric whose value is this function of errors [n] and weights [R, n]."""

    def statistic(self: Any, answers: Predictions) -> Any:
        errors = np.abs(answers.prediction - answers.truth)
        return lambda weights: of(errors, weights)

    return metric(statistic=statistic)


def nowhere(self: Any, answers: Predictions) -> Any:
    return lambda weights: np.full(len(weights), np.nan)


#: By kind: a check, a part that breaks it, and part of the message.
BREAKS: dict[str, list[tuple[str, Callable[[], Any], str]]] = {
    "normalizer": [
        ("declarations", lambda: changed(Affine, revision=0), "revision: got 0"),
        ("shapes", lambda: gives(Affine, "forward", np.float32), "returned ndarray float32"),
        (
            "inverse",
            lambda: gives(Affine, "inverse", lambda v: v * 1.01),
            "after forward and inverse",
        ),
        ("odd values", lambda: gives(Affine, "forward", np.nan_to_num), "expected [nan"),
        (
            "monotone",
            lambda: gives(Affine, "forward", lambda v: -v),
            "a rise of -1.0, expected more than 0",
        ),
        ("slope", lambda: gives(Affine, "log_slope", lambda v: v + 1), "expected ["),
        ("facts", lambda: changed(Affine, keeps_zero=True), "what becomes 0"),
    ],
    "text-tokenizer": [
        ("declarations", lambda: changed(Bytes, revision=0), "revision: got 0"),
        ("vocabulary", lambda: fitted("decode", lambda _: b"x"), "the same bytes"),
        ("bytes", lambda: fitted("decode", lambda made: made[:-1]), "expected b'"),
        (
            "bytes",
            lambda: fitted("encode", lambda made: made._replace(ids=made.ids.astype(np.int64))),
            "Broken.encode, ids returned ndarray int64[",
        ),
        (
            "pieces",
            lambda: fitted("encode", lambda made: made._replace(ids=np.roll(made.ids, 1))),
            "among others",
        ),
        (
            "state",
            lambda: gives(Bytes, "load", lambda _: WordTable((" a",))),
            "loaded: the same vocabulary",
        ),
        (
            "hugging face",
            lambda: fitted("huggingface", lambda _: WordTable((" the",)).huggingface()),
            "expected [",
        ),
    ],
    "metric": [
        ("declarations", lambda: metric(better="less"), "better: got 'less'"),
        ("worked example", lambda: metric(__module__="tests.fakemodels"), "no example"),
        ("shapes", lambda: figure(lambda e, w: e.mean()), "Broken.statistic returned"),
        ("shapes", lambda: mean_of(lambda _, of: of.truth[:1]), "Broken.values returned"),
        ("missing", lambda: metric(missing=lambda self, of: None), "without rows: got never"),
        ("weights", lambda: figure(lambda e, w: np.sqrt(w) @ e), "versus repeated rows"),
        ("resamples", lambda: figure(lambda e, w: mean(e, w) + w.mean()), "alone"),
        ("order", lambda: figure(lambda e, w: w[:, 0] * e[0]), "after shuffling"),
        (
            "best",
            lambda: metric(better="higher"),
            "expected nothing better than the 0.0 of perfect",
        ),
        ("bounds", lambda: metric(bounds=(0.0, 0.01)), "expected 0.0 to 0.01"),
        (
            "equal truths",
            lambda: metric(statistic=nowhere, why_undefined=lambda self, of: None),
            "expected exactly one of them",
        ),
    ],
    "task": [
        (
            "declarations",
            lambda: changed(Arithmetic, shifted=property(lambda self: ("far",))),
            "shifted: got 'far', expected ood-",
        ),
        ("worked example", lambda: changed(Curves, __module__="tests.fakemodels"), "no example"),
        ("digest", lambda: changed(Arithmetic, digest="0" * 16), "expected '0000000000000000'"),
        (
            "units",
            lambda: changed(Curves, unit=lambda self, seed, *of: Curves.unit(self, 0, *of)),
            "another unit for another seed",
        ),
        ("rows", lambda: rows(lambda made: made[made.index(b"\n") + 1 :]), "rows: got"),
        (
            "targets",
            lambda: rows(lambda made: re.sub(rb'"targets":\{[^}]*\}', b'"targets":null', made)),
            "got nothing to predict",
        ),
        (
            "derived",
            lambda: gives(Temperature, "over", lambda made: made._replace(facts={})),
            "facts: got {}",
        ),
        (
            "tables",
            lambda: gives(Curves, "unit", lambda made: (made[0][:, :0], made[1])),
            "Broken.unit returned ndarray float64[300, 0]",
        ),
    ],
    "source": [
        ("declarations", lambda: changed(Uci, revision=0), "revision: got 0"),
        ("origins", lambda: origins(files={}), "expected a name, a key and files"),
        (
            "terms",
            lambda: changed(Numeracy600k, licence=property(lambda self: "")),
            "licence: got ''",
        ),
        (
            "texts",
            lambda: changed(Numeracy600k, skips=property(lambda self: 1)),
            "Broken.skips returned 1",
        ),
        ("field", lambda: changed(Era5, name=""), "name: got ''"),
    ],
    "figure": [
        ("declarations", lambda: changed(Curve, source=""), "source: got ''"),
        ("described", lambda: changed(Curve, __doc__=""), "got no docstring"),
        ("picture", lambda: changed(Curve, picture=lambda self: None), "parameters: got 0"),
    ],
    "probe": [
        ("declarations", lambda: changed(SamplesProbe, revision=0), "revision: got 0"),
        ("described", lambda: changed(SamplesProbe, __doc__=""), "got no docstring"),
        ("members", lambda: changed(SamplesProbe, run=lambda self: None), "parameters of run"),
        ("artifact", lambda: changed(SamplesProbe, suffix="A B"), "suffix: got 'A B'"),
    ],
    "embedder": [
        ("declarations", lambda: changed(Scaled, source=""), "source: got ''"),
        (
            "table",
            lambda: gives(
                Scaled,
                "build",
                with_weight(lambda: torch.tensor(np.random.default_rng().random(3))),
            ),
            "equal weights for equal seeds",
        ),
        ("vectors", lambda: embedded(lambda made: made * torch.inf), "expected finite"),
        ("device", lambda: embedded(lambda made: made + torch.zeros(1)), "on a GPU"),
        ("vectors", lambda: embedded(lambda made: made[0]), "Broken.forward returned Tensor"),
        ("places", lambda: embedded(lambda made: made + made.mean()), "in a batch"),
        (
            "places",
            lambda: embedded(lambda made: made + 0.1 * made.roll(-1, dims=1)),
            "changed vectors at other positions",
        ),
        (
            "gradients",
            lambda: gives(Scaled, "build", with_weight(lambda: torch.zeros(3))),
            "got no gradient for more",
        ),
        (
            "ahead",
            lambda: gives(NumValueEmbedder, "build", telling_at(1_000_000)),
            "got token 1000000",
        ),
    ],
    "trunk": [
        ("declarations", lambda: changed(TransformerTrunk, source=""), "source: got ''"),
        ("declarations", lambda: changed(TransformerTrunk, sight="none"), "returned 'none'"),
        ("states", lambda: trunk("forward", lambda made: made * torch.inf), "are finite"),
        ("states", lambda: trunk("forward", lambda made: made[0]), "Broken.forward returned"),
        (
            "states",
            lambda: gives(Mlp, "build", altering("forward", lambda made: made[0])),
            "Broken.forward returned Tensor float32[256], expected Tensor float[4, 256]",
        ),
        ("rows", lambda: trunk("forward", lambda made: made + made[:1, :1]), "a row of 4"),
        (
            "rows",
            lambda: gives(Mlp, "build", altering("forward", lambda made: made + made.mean())),
            "alone and in a batch",
        ),
        ("sight", lambda: trunk("forward", lambda made: made + made[:, -1:]), "causal: earlier"),
        (
            "sight",
            lambda: trunk("forward", lambda made: made * 0),
            "does not depend on the last token",
        ),
        (
            "asked",
            lambda: trunk("forward", lambda made: made + made.shape[1]),
            "at queried positions",
        ),
        ("cache", lambda: trunk("extend", lambda made: made + 1), "first tokens"),
        (
            "gradients",
            lambda: gives(TransformerTrunk, "build", with_weight(lambda: torch.zeros(3))),
            "got no gradient for more",
        ),
        ("recompute", lambda: gives(TransformerTrunk, "build", recomputing), "equal gradients"),
        ("device", lambda: trunk("forward", lambda made: made + torch.zeros(1)), "on a GPU"),
        ("facts", lambda: trunk("position_weights", lambda made: -1), "got -1 weights of"),
    ],
    "objective": [
        ("declarations", lambda: changed(Mlm, source=""), "source: got ''"),
        ("example", lambda: example(real=np.zeros_like), "a position that is padding"),
        (
            "example",
            lambda: example(labels=lambda made: made.astype(np.int32)),
            "Broken.example, labels returned ndarray int32[",
        ),
        ("labels", lambda: example(labels=lambda made: made + 1), "got labels ["),
        ("sight", lambda: example(tokens=lambda made: made + 1), "expected masks"),
        ("numbers", lambda: example(number_values=lambda made: made + 1), "got values ["),
        (
            "seeds",
            lambda: changed(
                Mlm, example=lambda self, of, _: Mlm.example(self, of, np.random.default_rng())
            ),
            "for the same seed",
        ),
        (
            "own",
            lambda: gives(NumValueObjective, "losses", lambda made: made[1:]),
            "one per figure: got 4, expected 5",
        ),
        (
            "own",
            lambda: gives(
                NumValueObjective, "losses", lambda made: tuple(one.detach() for one in made)
            ),
            "does not require grad",
        ),
        (
            "own",
            lambda: gives(NumValueObjective, "losses", lambda made: tuple(one / 0 for one in made)),
            "got the losses [",
        ),
        (
            "own",
            lambda: gives(NumValueObjective, "build", lambda made: nn.Linear(8, 4)),
            "got (3, 4), expected (3, 8)",
        ),
        (
            "example",
            lambda: gives(NumValueObjective, "example", lambda one: replace(one, own_from=None)),
            "Broken.example returned no own_from",
        ),
    ],
    "number-term": [
        ("declarations", lambda: changed(Smooth, weight=0.0), "weight: got 0.0"),
        ("losses", lambda: gives(Was, "losses", torch.sum), "Broken.losses returned Tensor"),
        ("losses", lambda: gives(Was, "losses", lambda made: made / 0), "not finite"),
        (
            "parts",
            lambda: gives(Was, "losses", lambda made: made - made.mean()),
            "for two parts, expected",
        ),
    ],
    "place": [
        ("declarations", lambda: changed(Abacus, source=None), "source: got None"),
        (
            "numbers",
            lambda: gives(Abacus, "numbered", lambda made: made > 0),
            "Broken.numbered returned ndarray bool[",
        ),
        (
            "cache",
            lambda: gives(Abacus, "numbered", lambda made: made[:, ::-1].cumsum(axis=1)[:, ::-1]),
            " cached ones: got [",
        ),
    ],
    "head": [
        ("declarations", lambda: gives(Scalar, "describe", lambda _: ""), "describe: got ''"),
        (
            "tokens",
            lambda: changed(Token, tokens=lambda self, *of: nn.Linear(of[2], 3)),
            "Tensor float32[5, 3]",
        ),
        ("targets", lambda: gives(Scalar, "targets", np.transpose), "Broken.targets returned"),
        ("device", lambda: read("forward", lambda made: made + torch.zeros(1)), "on a GPU"),
        ("losses", lambda: read("losses", torch.mean), "Broken.losses returned Tensor float32[]"),
        ("losses", lambda: read("losses", lambda made: made - made.mean()), "as in a batch"),
        (
            "gradients",
            lambda: gives(Scalar, "build", with_weight(lambda: torch.zeros(3))),
            "got none for more",
        ),
        (
            "token losses",
            lambda: gives(Riemann, "build", altering("token_losses", lambda made: -made)),
            "expected at least 0",
        ),
        ("point", lambda: read("point", lambda made: made - made.mean()), "as in a batch"),
        ("predictive", lambda: predicted("mean", lambda made: made[:, None]), "Broken.mean"),
        ("cdf", lambda: predicted("cdf", lambda made: 1 - made), "got a falling one"),
        ("scores", lambda: predicted("crps", lambda made: -1 - made), "expected at least 0"),
        ("read back", lambda: read("point", lambda made: made / 10), "other targets"),
        (
            "read back",
            lambda: gives(Scalar, "targets", lambda made: 0 * made),
            "got the same targets",
        ),
    ],
}


@pytest.mark.integration
@pytest.mark.parametrize("kind", [kind for kind in kinds() if kind != "scheme"])
def test_each_check_finds_its_break(kind: str) -> None:
    checks = registry_of(kind).contract().CHECKS
    assert {name for name, _, _ in BREAKS[kind]} == set(checks)
    for name, make, message in BREAKS[kind]:
        with case(name, message):
            [found] = results({name: checks[name]}, make(), 0)
            assert not found.passed
            assert message in found.message


def test_the_metric_that_all_others_are_made_of_keeps_the_contract() -> None:
    found = results(registry_of("metric").contract().CHECKS, Mine(), 0)
    assert [one for one in found if not one.passed] == []
