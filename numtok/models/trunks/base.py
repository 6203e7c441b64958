"""Base classes for trunks: the layers between the embedder (or the columns of a table) and the
head.

A trunk is a frozen dataclass of settings that builds a module. A :class:`TokenTrunk` maps the
vectors of an embedder to hidden states; state j predicts token j of the row. A :class:`ColumnTrunk`
maps the features of each row of a table to one state.

The following holds for every trunk:

- *Inputs are embeddings*: ``forward`` receives vectors, never ids.
- *A mask*: ``real`` is False where a token is padding after the end of a row.
- *Causal or bidirectional*: ``sight`` specifies what the trunk supports; ``build`` receives the
  choice.
- *Positions belong to the trunk*: the position of a token is its index in ``x``, plus the cache's
  ``length`` if there is a cache. ``context`` is the number of positions.

Optional features have their own base classes: :class:`CachedModule` for modules that generate text
token by token, and :class:`PretrainedTrunk` for pretrained models from a library.

``build`` initializes weights randomly. The weights of a stored model come from its artifact; a
pretrained trunk starts with the weights in the folder that its preset names.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, NamedTuple, cast

import msgspec
import torch
from torch import Tensor, nn

from numtok.declaration import settings_in
from numtok.registry import Registry, Settings

#: Which tokens a state may depend on: "earlier" ones up to its own, "all", or "either". "row": all,
#: and each state represents the whole row, so the trunk can only predict labels.
Sight = Literal["either", "earlier", "all", "row"]


class PretrainedWeights(NamedTuple):
    """The weights of a pretrained model, as float32 tensors on the host.

    trunk
        Tensors of the trunk, keyed by their names in the model.
    vectors
        [T, D]: input vectors of the tokenizer's IDs, followed by the vectors of unused IDs.
    outputs
        [T, D]: output vectors, which predict the IDs; None if the model uses ``vectors`` for this
        or predicts no tokens.
    """

    trunk: Mapping[str, Tensor]
    vectors: Tensor
    outputs: Tensor | None


class Trunk(ABC):
    """Base class for trunks. Subclasses are final frozen dataclasses; their fields are the settings
    of the trunk."""

    revision: ClassVar[int]
    source: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Width of the hidden states and of the embedder's vectors."""


class TokenTrunk(Trunk):
    """Base class for text trunks, which map vectors [B, L, D] to hidden states [B, L, D]."""

    #: True if its module can recompute states for their gradient (``TrunkModule.recompute``).
    recomputes: ClassVar[bool] = False

    @property
    def sight(self) -> Sight:
        """Tokens that each hidden state may depend on (see ``Sight``)."""
        return "either"

    @property
    def context(self) -> int | None:
        """Maximum number of tokens per row; None if unlimited. 0 means that :func:`with_context`
        sets it from the data."""
        return None

    @property
    def length_is_lost(self) -> str | None:
        """Message that explains why the length of an input vector has no effect and what to do
        about it; None if it has an effect."""
        return None

    def uses(self) -> Mapping[str, object]:
        """Return the settings that change how weights are used but not their shapes, keyed by the
        names used in messages."""
        return {}

    @abstractmethod
    def build(self, causal: bool) -> "TrunkModule":
        """Build the module. If ``causal``, each hidden state depends only on the tokens up to its
        own position."""


class PretrainedTrunk(TokenTrunk):
    """Base class for trunks that are pretrained models from a library. In the preset, the model's
    location follows ``:``, as in ``hf:gpt2``.

    The text tokens of the encoding are the model's own tokens; they follow the special tokens and
    the scheme's tokens. The embedder's table starts with the model's vectors
    (``training.warm_start``).
    """

    @abstractmethod
    def of(self, source: str) -> "PretrainedTrunk":
        """Return a copy of these settings for the model at ``source``, the part of the preset after
        ``:``."""

    @abstractmethod
    def weights(self, source: str) -> PretrainedWeights | None:
        """Read the weights of the model at ``source``. Return None if the trunk starts with random
        weights."""

    @property
    @abstractmethod
    def words(self) -> int:
        """Number of token vectors in the model; 0 if they are not used."""

    @property
    @abstractmethod
    def by_digits(self) -> bool:
        """True if the vector of each number token is initialized to the mean of its characters'
        vectors.

        Otherwise it is sampled from the distribution of the model's own vectors, like all other new
        vectors.
        """

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the model, independent of its location, such as ``gpt2-1a2b3c4d``."""

    @property
    @abstractmethod
    def tied(self) -> bool:
        """True if the table of token vectors is also used to predict tokens, unless a preset
        overrides this."""

    @property
    @abstractmethod
    def keeps_vectors(self) -> bool:
        """True if the input and output vectors of text tokens are frozen."""

    @abstractmethod
    def begin(self, module: "TrunkModule", weights: PretrainedWeights) -> None:
        """Copy pretrained weights into a module of this trunk. Raises ValueError if their names or
        shapes differ."""

    @abstractmethod
    def whole(
        self, module: "TrunkModule", vectors_VD: Tensor, outputs_VD: Tensor
    ) -> nn.Module | None:
        """Return a language model from the library, built from a module of this trunk and tables of
        input and output vectors; None if the library has no such model."""


def with_context(trunk: TokenTrunk, longest: int) -> TokenTrunk:
    """Return a copy of the trunk with ``longest`` as its context if it takes the context from the
    data; otherwise the trunk itself."""
    return replace(cast(Any, trunk), context=longest) if trunk.context == 0 else trunk


def stored_trunk(settings: Settings) -> Trunk:
    """Build a trunk from the settings in a file.

    Raises ValueError for missing settings (defaults must not replace lost values), unknown
    settings, and values of the wrong type. Raises UsageError in the same cases as
    ``Registry.from_settings``.
    """
    trunk = TRUNKS.from_settings(settings)
    fields = [
        (key, setting.type) for key, setting in settings_in(type(trunk), learned=True).items()
    ]
    own = {key: value for key, value in settings.items() if key not in ("name", "revision")}
    try:
        msgspec.convert(own, msgspec.defstruct("Trunk", fields, forbid_unknown_fields=True))
    except msgspec.ValidationError as error:
        raise ValueError(f"the trunk {settings['name']}: {error}") from None
    return trunk


class ColumnTrunk(Trunk):
    """Base class for table trunks, which map features [N, inputs] to hidden states [N, D], one per
    row."""

    @abstractmethod
    def build(self, inputs: int) -> "ColumnModule":
        """Return the module for the given number of features, ``inputs``."""


class TrunkCache(ABC):
    """Base class for caches of the tokens that a causal trunk has read: B rows of up to T tokens
    each.

    Rows may differ in length. ``length`` int64[B] is the number of cached tokens per row, and
    ``longest`` is their maximum, stored so that the device need not be queried. Contents beyond
    ``length`` are ignored and later overwritten.
    """

    length: Tensor
    longest: int

    @property
    @abstractmethod
    def rows(self) -> int:
        """Number of rows, B."""

    @property
    @abstractmethod
    def tokens(self) -> int:
        """Maximum number of tokens per row, T."""

    @abstractmethod
    def take(self, rows: Tensor, tokens: int) -> "TrunkCache":
        """Return a copy of the given rows (int64[B], possibly with repetitions) with room for
        ``tokens`` tokens per row."""

    def rewind(self, length: Tensor, longest: int) -> None:
        """Set the number of cached tokens of each row (int64[B]), and the maximum over the rows."""
        self.length, self.longest = length, longest


class FirstNorm(NamedTuple):
    """The first operation of a trunk on embeddings e: LN(e + p), where p are position vectors.

    ``positions`` [P, D] contains p, or a single row of zeros if nothing is added.
    """

    norm: nn.LayerNorm
    positions: Tensor


class TrunkModule(nn.Module, ABC):
    """Base class for the modules that a :class:`TokenTrunk` builds.

    Shapes: B rows, L tokens, Q of them queried, D width.

    recompute
        Recompute hidden states in the backward pass instead of storing them, which saves memory.
        This has an effect only if the trunk's ``recomputes`` is True.
    """

    recompute = False

    @abstractmethod
    def forward(
        self, x_BLD: Tensor, real_BL: Tensor | None, asked_BQ: Tensor | None = None
    ) -> Tensor:
        """Return hidden states [B, L, D], or [B, Q, D] at the positions ``asked_BQ`` (int64).

        ``real_BL`` is a bool tensor, False for tokens that are padding after the end of a row; None
        without padding. The states of real tokens depend neither on padding nor on other rows.
        """

    def in_turn(self) -> list[nn.Module]:
        """Return the parts that run one after the other, for devices that cannot hold all of them
        at once. The list is empty if the module is not divided into parts."""
        return []

    def position_weights(self) -> int:
        """Return the number of trained position weights. Reports add this number to the number of
        token weights."""
        return 0

    def first_norm(self) -> FirstNorm | None:
        """Return the first operation of the trunk as a :class:`FirstNorm`; None if it is not a
        layer norm."""
        return None


class CachedModule(TrunkModule):
    """Base class for causal modules that cache the tokens read so far, so that they can generate
    text token by token."""

    @abstractmethod
    def cache(self, rows: int, tokens: int, spent: TrunkCache | None = None) -> TrunkCache:
        """Return an empty cache for ``rows`` rows of up to ``tokens`` tokens, or of up to the
        trunk's context if that is smaller.

        The memory of the cache ``spent`` is reused if it is large enough.
        """

    @abstractmethod
    def extend(self, x_BLD: Tensor, cache: TrunkCache, asked_BQ: Tensor | None = None) -> Tensor:
        """Return the hidden states [B, L, D] or [B, Q, D] of the next tokens of each row, and add
        these tokens to the cache.

        If the cache is empty, the tokens are the first L of each row; the caller then sets how many
        of them are real with ``cache.rewind``. Otherwise there is one token per row. ``asked_BQ``
        works as in :meth:`forward`, but only if the cache is empty.
        """


class ColumnModule(nn.Module, ABC):
    """Base class for the modules that a :class:`ColumnTrunk` builds."""

    @abstractmethod
    def forward(self, x_NI: Tensor) -> Tensor:
        """Return the hidden states [N, D] of features [N, inputs]. Each state depends only on its
        own row."""


def asked_states(x_BLD: Tensor, asked_BQ: Tensor) -> Tensor:
    """Return the hidden states [B, Q, D] at the queried positions of each row."""
    rows, length, width = x_BLD.shape
    first_B1 = torch.arange(0, rows * length, length, device=x_BLD.device)[:, None]
    flat = x_BLD.reshape(rows * length, width)
    return flat.index_select(0, (first_B1 + asked_BQ).flatten()).view(rows, -1, width)


TRUNKS = Registry[Trunk]("numtok.models.trunks", "trunk", Trunk)
