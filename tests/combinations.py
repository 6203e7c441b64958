"""Combinations of embedders, trunks, heads, objectives and schemes that form a model.

All are read from the registries, so new files take part automatically.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from torch import nn

from numtok.declaration import settings_in
from numtok.encoding.schemes.base import SCHEMES, ChannelScheme
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS, NumberModule
from numtok.models.heads.base import HEADS, TokenHead, ValueHead
from numtok.models.model import Model
from numtok.models.objectives.base import OBJECTIVES, OwnLosses
from numtok.models.trunks.base import TRUNKS, PretrainedTrunk, TokenTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import Registry
from numtok.setting_values import as_spec
from tests import fakemodels

#: One scheme per kind: a fixed or variable number of tokens; a value with one token or with many; a
#: token that announces a number; digits with their decimal place.
SCHEMES_OF_A_KIND = ("p1000", "digits", "xval", "numgpt", "numvalue", "rt")
CLASSES = ("no", "yes")
_SMALL = {"layers": 2, "heads": 2, "width": 16}
CONTEXT = 96


@dataclass(frozen=True)
class Combination:
    """Specs of the parts of a model; ``head`` is None if the model predicts labels."""

    scheme: str
    trunk: str
    embedder: str
    head: str | None
    objective: str

    def __str__(self) -> str:
        return " ".join(str(one) for one in vars(self).values() if one is not None)

    def model(self) -> Model:
        """Build a model with random weights; raise UsageError if the parts do not fit together."""
        of_labels = OBJECTIVES.build(self.objective).requires() == "label"
        if of_labels is not (self.head is None):
            raise UsageError(f"{self.objective} with the head {self.head}")
        by_tokens = self.head and not isinstance(HEADS.build(self.head), ValueHead)
        if by_tokens and isinstance(SCHEMES.build(self.scheme), ChannelScheme):
            raise UsageError(f"{self.head} says no value")
        return fakemodels.model(
            self.scheme,
            self.objective,
            size=self.trunk,
            context=CONTEXT,
            embedder=self.embedder,
            head=self.head,
            classes=() if self.head is not None else CLASSES,
        )

    @property
    def possible(self) -> bool:
        """True if the parts form a model."""
        if not _embeds(self.embedder, self.scheme, self.objective):
            return False
        if not _speaks(self.head, self.scheme):
            return False
        try:
            self.model()
        except UsageError:
            return False
        return True


@cache
def _embeds(embedder: str, scheme: str, objective: str) -> bool:
    """Return whether an embedder fits; the cache saves building most of the models."""
    made, vocabulary = EMBEDDERS.build(embedder), Vocabulary.of(fakemodels.codec(scheme))
    try:
        module = made.build(vocabulary, _SMALL["width"])
    except UsageError:
        return False
    learnt, trunk = OBJECTIVES.build(objective), TRUNKS.build("transformer")
    assert isinstance(trunk, TokenTrunk)
    if made.unsuited(trunk, learnt):
        return False
    ahead = isinstance(module, NumberModule) and module.ahead is not None
    return ahead or not isinstance(learnt, OwnLosses)


@cache
def _speaks(head: str | None, scheme: str) -> bool:
    vocabulary, width = Vocabulary.of(fakemodels.codec(scheme)), _SMALL["width"]
    try:
        if isinstance(made := head and HEADS.build(head), TokenHead):
            made.tokens(nn.Linear(width, vocabulary.size), vocabulary, width)
    except UsageError:
        return False
    return True


def small(trunk: str) -> str:
    """Return a trunk's spec at a small size, as far as it has size settings."""
    known = settings_in(TRUNKS[trunk])
    sizes = {key: value for key, value in _SMALL.items() if key in known}
    return ",".join([trunk, *(f"{key}={value}" for key, value in sizes.items())])


# These need 210 coordinates, more than a small model has.
_WIDE = ("base10,combine=pad", "base10,combine=sum")


def specs(registry: Registry[Any]) -> list[str]:
    """Return one spec per name, at the settings at which contracts are checked."""
    return [registry.checked_at(name) for name in registry]


def variants(registry: Registry[Any]) -> list[str]:
    """Return each name with each other value of its flags and settings with choices."""
    found = []
    for name in registry:
        for key, one in settings_in(registry[name]).items():
            spec = registry.checked_at(name)
            if one.required or getattr(registry.build(spec), key) != one.default:
                continue
            others = [not one.default] if isinstance(one.default, bool) else one.choices
            found += [f"{spec},{key}={as_spec(to)}" for to in others if to != one.default]
    return found


def trunks() -> list[str]:
    """Return the specs of token trunks, except those that load a pretrained model."""
    kinds = {name: TRUNKS[name] for name in TRUNKS}
    return [
        small(name)
        for name, kind in kinds.items()
        if issubclass(kind, TokenTrunk) and not issubclass(kind, PretrainedTrunk)
    ]


def first_possible(*of: Any) -> Combination | None:
    """Return the combination with the first scheme that fits, or None."""
    every = (Combination(scheme, *of) for scheme in SCHEMES_OF_A_KIND)
    return next((one for one in every if one.possible), None)


def whole() -> Iterator[Combination]:
    """Yield every valid combination of trunk, embedder, head, objective and scheme."""
    for of in product(trunks(), specs(EMBEDDERS), [None, *specs(HEADS)], specs(OBJECTIVES)):
        for scheme in SCHEMES_OF_A_KIND:
            if (one := Combination(scheme, *of)).possible:
                yield one


def sample() -> Iterator[Combination]:
    """Yield a few combinations that together contain each name and each value of a setting."""
    every: list[list[str | None]] = [
        [*trunks()],
        [*specs(EMBEDDERS), *(spec for spec in variants(EMBEDDERS) if spec not in _WIDE)],
        [None, *specs(HEADS), *variants(HEADS)],
        [*specs(OBJECTIVES), *variants(OBJECTIVES)],
    ]
    left = [set(kind) for kind in every]
    while any(left):
        kind = max(range(len(left)), key=lambda one: len(left[one]))
        wanted = next(spec for spec in every[kind] if spec in left[kind])
        # Prefer specs that have not occurred yet.
        partners = [
            sorted(specs, key=lambda spec: spec not in new)
            for specs, new in zip(every, left, strict=True)
        ]
        partners[kind] = [wanted]
        found = next(filter(None, (first_possible(*of) for of in product(*partners))))
        for new, spec in zip(
            left, (found.trunk, found.embedder, found.head, found.objective), strict=True
        ):
            new.discard(spec)
        yield found
