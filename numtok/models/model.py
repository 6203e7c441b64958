"""A text model: an embedder, a trunk, a token head and, if it predicts values, a value head.

A model that predicts labels has a class head instead of these heads. ``model.json`` contains the
:class:`ModelSettings` of a model; its weights are stored next to that file.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.schemes.base import Channel
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS, Embedder, NumberModule
from numtok.models.heads.base import HEADS, Head, ValueHead, projection
from numtok.models.inputs import ModelInputs, moved, single
from numtok.models.number_heads import NumberHeads
from numtok.models.number_terms.base import NumberTermModule
from numtok.models.objectives.base import (
    OBJECTIVES,
    FirstPass,
    LoggedFigure,
    Objective,
    OwnLosses,
    weighted,
)
from numtok.models.places.base import PLACES, DigitPlaces, PlaceTable
from numtok.models.settings import ModelSettings
from numtok.models.training_batch import TrainingBatch
from numtok.models.trunks.base import CachedModule, PretrainedTrunk, TrunkCache
from numtok.models.vocabulary import Vocabulary
from numtok.registry import name_of, spec_of


class Losses(NamedTuple):
    """Mean losses of a batch.

    token
        Mean cross-entropy, in nats, of the predicted tokens or labels, plus any number loss.
    value
        Mean loss of the value head, in its own units. It is averaged over the numbers, or over the
        tokens if the head has ``per_token``. It is 0 for a model without a value head.
    own
        Additional losses of the objective, in the same order as its ``figures``.
    """

    token: Tensor
    value: Tensor
    own: tuple[Tensor, ...] = ()


class Model(NumberHeads):
    """Text model. It maps tokens [B, L] and their values [B, L] to hidden states, and hidden states
    to predicted tokens, values or labels.

    vectors, outputs
        Names of the weights that contain the token vectors and that predict tokens; both can be
        the same weight. ``outputs`` is None if tokens are not predicted by a single weight.
    kept, first_kept
        Names of the weights with frozen rows, and the index of the first of these rows, which
        belong to the text tokens.
    """

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        *,
        objective: Objective,
        embedding: Embedder,
        head: Head | None,
        places: DigitPlaces | None,
    ) -> None:
        """Initialize the weights in the order in which they are stored."""
        super().__init__()
        width, trunk = settings.width, settings.of_trunk
        self.settings = settings
        self.scaling = settings.fitted_scaling
        self.objective, self.embedding, self.head = objective, embedding, head
        self.own_losses = objective if isinstance(objective, OwnLosses) else None
        self.embedder = embedding.build(vocabulary, width)
        self.ahead = self.embedder.ahead if isinstance(self.embedder, NumberModule) else None
        self.own = None if self.own_losses is None else self.own_losses.build(width)
        self.places = None if places is None else PlaceTable(places, vocabulary, width)
        self.trunk = trunk.build(objective.causal)
        self.vectors = self._name_of(self._table)
        self.outputs: str | None = None
        if settings.classes:
            self.class_head = projection(width, len(settings.classes), 1, bias=True)
        else:
            words = projection(width, vocabulary.size, settings.head_layers, bias=False)
            if settings.tied:
                cast(nn.Linear, words).weight = self._table
            self.token_head = self.token_module(words, vocabulary, width)
            if isinstance(words, nn.Linear):
                self.outputs = self._name_of(words.weight)
        self.first_kept = vocabulary.first_of_text
        self.kept: set[str] = set()
        if isinstance(trunk, PretrainedTrunk) and trunk.keeps_vectors:
            self.kept = {self.vectors} | ({self.outputs} if self.outputs else set())
        term = objective.number_term
        self.number_term = None
        if term is not None:
            self.number_term = NumberTermModule(term, vocabulary.valued, vocabulary.size)
        self.value_head = head.build(width) if isinstance(head, ValueHead) else None

    @property
    def figures(self) -> tuple[LoggedFigure, ...]:
        """Descriptions of the objective's additional losses; empty if it has none."""
        return self.own_losses.figures if self.own_losses is not None else ()

    @property
    def replaces_numbers(self) -> bool:
        """True if generated numbers are embedded as a learned replacement vector, because their own
        embedding depends on tokens that have not been generated yet."""
        return self.ahead is not None and self.own is not None

    @property
    def cached_trunk(self) -> CachedModule:
        """The trunk as a :class:`CachedModule`, for models that generate tokens."""
        return cast(CachedModule, self.trunk)

    @property
    def _table(self) -> nn.Parameter:
        return self.embedder.get_parameter("table.weight")

    def _name_of(self, weight: Tensor) -> str:
        return next(name for name, parameter in self.named_parameters() if parameter is weight)

    @property
    def first_head(self) -> nn.Module:
        """The class head if the model predicts labels, otherwise the token head."""
        return self.class_head if self.settings.classes else self.token_head

    # --- inputs, prepared on the host -------------------------------------------------------------

    def given(self, example: TrainingBatch) -> ModelInputs:
        """Convert a training batch to inputs on the model's device."""
        return self.on_host(example).to(self._table.device)

    def on_host(self, example: TrainingBatch) -> ModelInputs:
        """Convert a training batch to inputs on the host, including the targets of the value
        head."""
        values = example.number_values
        targets = single(values)[:, None]  # a device may have no float64
        if isinstance(self.head, ValueHead) and len(values):
            targets = self.head.targets(self.head_values(values, example.number_raw))
        of_host = self._of_host(example.tokens, example.values, None, example.moved_places)
        own = self.own_places(example)
        return ModelInputs.on_host(example, targets, own, of_host, self._of_term(example))

    def _of_term(self, example: TrainingBatch) -> tuple[NDArray[Any], ...]:
        """Return the further inputs of the number loss."""
        if self.number_term is None:
            return ()
        scale = self.with_number_scale(example).number_scale
        # A gap between rows, so that labels of two rows are never one run.
        apart = example.where + example.where // example.tokens.shape[1]
        places = self.number_term.places(example.labels, apart)
        return np.array(scale, np.float32), places

    def with_number_scale(self, example: TrainingBatch) -> TrainingBatch:
        """Return the batch with ``number_scale`` set, so that its number loss has the same scale in
        all parts of the batch.

        The batch is returned unchanged if its scale is already set, or if the objective has no
        number loss.
        """
        if self.number_term is None or example.number_scale is not None:
            return example
        return replace(example, number_scale=self.number_term.scale(example.labels))

    def of_host(
        self, tokens: NDArray[np.int64], values: Channel, before: NDArray[np.int64] | None = None
    ) -> tuple[Tensor, ...]:
        """Return the embedder's inputs that are computed on the host from tokens and values [B, L].

        The tensors are on the model's device. ``before`` [B, T] contains the preceding tokens of
        each row, padded on the left; it is only used by models with digit positions.
        """
        arrays = self._of_host(tokens, values, before)
        return tuple(moved(array, self._table.device) for array in arrays)

    def _of_host(
        self,
        tokens: NDArray[np.int64],
        values: Channel,
        before: NDArray[np.int64] | None,
        moved_places: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[Any], ...]:
        arrays: tuple[NDArray[Any], ...] = ()
        if isinstance(self.embedder, NumberModule):
            arrays = self.embedder.of_host(tokens, values)
        if self.places is None:
            return arrays
        return *arrays, self.places.numbers(tokens, before, moved_places)

    def own_places(self, example: TrainingBatch) -> NDArray[np.int64] | None:
        """Return the positions of the objective's additional losses, as flat indices int64[P] into
        [B, L]; None if it has no such losses.
        """
        if self.own_losses is None or example.own_from is None:
            return None
        from_start = np.arange(example.tokens.shape[1]) >= example.own_from[:, None]
        return np.flatnonzero((example.tokens == self.ahead) & from_start & example.real)

    def head_values(self, values: Channel, raw: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return float64[N]: the values that the value head is trained on.

        values, raw
            The numbers normalized as in the encoding, and the same numbers in raw units. Only some
            heads need raw units.

        Raises UsageError if the head needs ``raw`` and the objective does not provide it.
        """
        if self.is_exact:
            if raw is None:
                raise UsageError(
                    f"--head {spec_of(self.head)} is trained on raw numbers, but batches of "
                    f"--objective {spec_of(self.objective)} have no `number_raw`. Set it in the "
                    "objective, or use another head"
                )
            return raw
        return self.scaling.forward(values.astype(np.float64))

    # --- states and losses ------------------------------------------------------------------------

    def class_log_probabilities(self, example: TrainingBatch) -> Tensor:
        """Return float32[B, C]: the log-probability of each class, for a batch from
        :func:`row_end_batch`."""
        inputs = self.given(example)
        hidden = self.states_of(inputs)
        return F.log_softmax(self.class_head(inputs.predicting(hidden)).float(), dim=1)

    def hidden(
        self,
        tokens_BL: Tensor,
        values_BL: Tensor,
        real_BL: Tensor | None,
        asked_BQ: Tensor | None = None,
        of_host: Sequence[Tensor] = (),
    ) -> Tensor:
        """Return the hidden states [B, L, D], or [B, Q, D] at the positions ``asked_BQ``.

        State j predicts token j of the row (see ``models.training_batch``). ``real_BL`` is False
        for padding; None means that no token is padding. Pass the result of :meth:`of_host` as
        ``of_host``; otherwise this method computes it, which may block on the device.
        """
        embedded_BLD = self._embedded(tokens_BL, values_BL, of_host)
        return cast(Tensor, self.trunk(embedded_BLD, real_BL, asked_BQ))

    def _embedded(self, tokens_BL: Tensor, values_BL: Tensor, of_host: Sequence[Tensor]) -> Tensor:
        """[B, L, D]: the embeddings of tokens and of their digit positions, whose indices are the
        last item of ``of_host``."""
        if self.places is None:
            return cast(Tensor, self.embedder(tokens_BL, values_BL, *of_host))
        if not of_host:  # copies the tokens from the device
            numbers = self.places.numbers(tokens_BL.cpu().numpy())
            of_host = (moved(numbers, tokens_BL.device),)
        *of_embedder, numbers_BL = of_host
        embedded_BLD = self.embedder(tokens_BL, values_BL, *of_embedder)
        return cast(Tensor, embedded_BLD + self.places(numbers_BL))

    def states_of(self, inputs: ModelInputs) -> Tensor:
        """Return the hidden states of a batch, [B, Q, D] or [B, L, D] (see :meth:`hidden`)."""
        return self.hidden(inputs.tokens, inputs.values, inputs.real, inputs.asked, inputs.of_host)

    def extend(
        self,
        tokens_BL: Tensor,
        values_BL: Tensor,
        cache: TrunkCache,
        asked_BQ: Tensor | None = None,
        of_host: Sequence[Tensor] = (),
    ) -> Tensor:
        """Return the hidden states of tokens that continue the cached rows, and add these tokens to
        the cache.

        Shapes and the other parameters are the same as in :meth:`hidden`.
        """
        embedded_BLD = self._embedded(tokens_BL, values_BL, of_host)
        return self.cached_trunk.extend(embedded_BLD, cache, asked_BQ)

    def extend_written(
        self,
        tokens_B: Tensor,
        values_B: Tensor,
        cache: TrunkCache,
        states_BD: Tensor,
        of_host: Sequence[Tensor] = (),
    ) -> Tensor:
        """Return the hidden states [B, D] after one more generated token per row, and add these
        tokens to the cache.

        ``states_BD`` are the states from which the tokens were generated. If the embedding of a
        token depends on later tokens, the objective's learned replacement is used instead.
        """
        embedded_B1D = self._embedded(tokens_B[:, None], values_B[:, None], of_host)
        if self.ahead is not None and self.own is not None:
            is_ahead_B11 = (tokens_B == self.ahead)[:, None, None]
            learnt_BD = self.own(states_BD).to(embedded_B1D.dtype)
            embedded_B1D = torch.where(is_ahead_B11, learnt_BD[:, None], embedded_B1D)
        return self.cached_trunk.extend(embedded_B1D, cache)[:, 0]

    def losses(self, inputs: ModelInputs) -> Losses:
        """Return the token and value losses of a batch, and the objective's additional losses.

        Only the hidden states that predict something pass through the heads.
        """
        embedded_BLD = self._embedded(inputs.tokens, inputs.values, inputs.of_host)
        hidden = self.trunk(embedded_BLD, inputs.real, inputs.asked)
        losses = self.losses_of(hidden, inputs)
        if inputs.own is None or self.own_losses is None or self.own is None:
            return losses
        first_pass = FirstPass(
            embedded=embedded_BLD,
            hidden=hidden,
            places=inputs.own,
            trunk=lambda other_BLD: self.trunk(other_BLD, inputs.real, None),
            token_loss=lambda states_BLD: self._token_loss(states_BLD, inputs),
        )
        return losses._replace(own=self.own_losses.losses(self.own, first_pass))

    def total(self, losses: Losses) -> Tensor:
        """Return the training loss: the token loss, plus the value loss and the weighted additional
        losses."""
        total = losses.token + losses.value
        return total + weighted(self.figures, losses.own) if losses.own else total

    def _token_loss(self, hidden: Tensor, inputs: ModelInputs) -> Tensor:
        # The mean of an empty tensor is NaN. Its sum is 0 and gives every weight a gradient of 0,
        # so that the optimizer counts the same steps for all of them.
        logits: Tensor = self.first_head(inputs.predicting(hidden)).float()
        if not len(inputs.labels):
            return logits.sum()
        loss = _cross_entropy(logits, inputs.labels)
        if self.number_term is None:
            return loss
        added: Tensor = self.number_term(logits, inputs.labels, *inputs.of_term)
        return loss + added

    def losses_of(self, hidden: Tensor, inputs: ModelInputs) -> Losses:
        """Return the token and value losses, computed from the states [B, Q, D] that :meth:`hidden`
        returned."""
        token = self._token_loss(hidden, inputs)
        value = torch.zeros_like(token)
        if self.value_head is not None:
            states = inputs.predicting_numbers(hidden)
            value = self.value_loss(states, inputs.number_targets, len(inputs.labels))
        return Losses(token, value)

    def parameter_counts(self) -> tuple[int, int]:
        """Return the total number of parameters, and the number in the tables of token and position
        vectors."""
        total = sum(parameter.numel() for parameter in self.parameters())
        return total, self._table.numel() + self.trunk.position_weights()

    def rescale(self, times: float) -> None:
        """Multiply the newly initialized weights that embed numbers and digit positions by
        ``times``.

        This matches them to token vectors that are ``times`` as long as the default ones, such as
        the token vectors of a pretrained trunk.
        """
        self.embedding.rescale(self.embedder, times)
        if self.places is not None:
            self.places.table.weight.mul_(times)

    def trained_count(self) -> int:
        """Return the number of trainable parameters, without a frozen trunk and frozen text
        vectors."""
        trained = {
            name: parameter
            for name, parameter in self.named_parameters()
            if parameter.requires_grad
        }
        kept = sum(trained[name][self.first_kept :].numel() for name in self.kept)
        return sum(parameter.numel() for parameter in trained.values()) - kept


def build_model(settings: ModelSettings, vocabulary: Vocabulary) -> Model:
    """Build a text model with random weights.

    Raises UsageError if the parts of the model cannot be combined with each other or with the
    vocabulary.
    """
    objective = OBJECTIVES.from_settings(settings.objective)
    embedding = EMBEDDERS.from_settings(settings.embedder)
    if why := embedding.unsuited(settings.of_trunk, objective):
        raise UsageError(why)
    model = Model(
        settings,
        vocabulary,
        objective=objective,
        embedding=embedding,
        head=None if settings.head is None else HEADS.from_settings(settings.head),
        places=None if settings.places is None else PLACES.from_settings(settings.places),
    )
    if model.objective.causal and not settings.classes:
        _check_writes(model)
    if model.own_losses is not None and model.ahead is None:
        raise UsageError(
            f"--objective {spec_of(model.objective)} needs an embedder that reads a number before "
            f"it is generated. Use --embedder {model.own_losses.embedder}, or another --objective"
        )
    return model


def _check_writes(model: Model) -> None:
    """Raise UsageError if a model cannot generate token by token."""
    if not isinstance(model.trunk, CachedModule):
        raise UsageError(
            f"--objective {spec_of(model.objective)} generates token by token, but --preset "
            f"{name_of(model.settings.of_trunk)} has no cache for that. Use a masked "
            "objective, or another --preset, such as nano"
        )


def _cross_entropy(logits_KV: Tensor, labels_K: Tensor) -> Tensor:
    """``F.cross_entropy`` with less memory and time.

    The gradient of the logits overwrites the log-probabilities, instead of needing two more tables.
    """
    return cast(Tensor, _CrossEntropy.apply(logits_KV, labels_K))  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits_KV: Tensor, labels_K: Tensor) -> Tensor:
        log_KV = F.log_softmax(logits_KV, dim=1)
        context.save_for_backward(log_KV, labels_K)
        return F.nll_loss(log_KV, labels_K)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        log_KV, labels_K = context.saved_tensors
        gradient_KV = log_KV.exp_()  # the probability, minus 1 for the target
        gradient_KV.scatter_add_(1, labels_K[:, None], -torch.ones_like(log_KV[:, :1]))
        return gradient_KV.mul_(gradients[0] / len(labels_K)), None
