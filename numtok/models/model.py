"""A whole model: embedder, trunk, token head and, for schemes with a value, a value head.

One that says labels has a class head in place of these heads.

``model.json`` holds its :class:`ModelSettings`; the weights lie beside it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.normalizers.base import (
    Undone,
    no_scaling,
    stored_normalizer,
)
from numtok.encoding.schemes.base import Channel
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS, ValueHead, linear_flops, projection
from numtok.models.inputs import ModelInputs, moved, single
from numtok.models.number_heads import NumberHeads
from numtok.models.number_terms.base import NumberTermModule
from numtok.models.objectives.base import OBJECTIVES, FirstPass, TrainingBatch
from numtok.models.places.base import PLACES, PlaceTable
from numtok.models.settings import ModelSettings
from numtok.models.trunks.base import TrunkCache, TrunkModule
from numtok.models.vocabulary import Vocabulary
from numtok.registry import name_of, spec_of


class Losses(NamedTuple):
    """Means over what is predicted: tokens in nats, values in units of their head's own, over the
    numbers or, where the head says so (``per_token``), over the tokens.

    Without a value head ``value`` is 0. Labels count as tokens. ``own`` are the objective's own, by
    its ``figures``.
    """

    token: Tensor
    value: Tensor
    own: tuple[Tensor, ...] = ()


class Model(NumberHeads):
    """Tokens [B, L] and the values beside them [B, L] to hidden states, tokens and values."""

    def __init__(self, settings: ModelSettings, vocabulary: Vocabulary) -> None:
        """Raises UsageError where embedder or head cannot be with such a vocabulary."""
        super().__init__()
        self.settings = settings
        width = settings.width
        self.objective = OBJECTIVES.from_settings(settings.objective)
        self.head = None if settings.head is None else HEADS.from_settings(settings.head)
        self.embedding = EMBEDDERS.from_settings(settings.embedder)
        self.embedder = self.embedding.build(vocabulary, width)
        #: The token whose vector is made of what stands behind it (``Embedder.tells_ahead``).
        self.ahead = self.embedding.tells_ahead(vocabulary)
        self._check_ahead(vocabulary)
        self.parts = self.objective.parts(width)  #: the objective's own
        for name, part in self.parts.items():
            self.add_module(name, part)
        self.places: PlaceTable | None = None
        if settings.places is not None:
            self.places = PlaceTable(PLACES.from_settings(settings.places), vocabulary, width)
        self.trunk: TrunkModule = settings.of_trunk.build(self.objective.causal)
        #: The table of the vectors of tokens, by its name.
        self.vectors = self._name_of(self._table)
        #: The table by which tokens are predicted, be it their vectors; None where there is none.
        self.outputs: str | None = None
        if settings.classes:
            self.class_head = projection(width, len(settings.classes), 1, bias=True)
        else:
            words = projection(width, vocabulary.size, settings.head_layers, bias=False)
            if settings.tied:
                cast(nn.Linear, words).weight = self._table
            self.token_head = (
                words if self.head is None else self.head.tokens(words, vocabulary, width)
            )
            if isinstance(words, nn.Linear):
                self.outputs = self._name_of(words.weight)
        #: The tables whose rows from ``first_kept`` on, those of text, are not trained.
        self.kept: set[str] = set()
        self.first_kept = vocabulary.first_of_text
        if settings.of_trunk.keeps_vectors:
            self.kept = {self.vectors} | ({self.outputs} if self.outputs else set())
        self.number_term: NumberTermModule | None = None
        if (term := self.objective.number_term) is not None:
            self.number_term = NumberTermModule(term, vocabulary)
        self.value_head = None
        if isinstance(self.head, ValueHead):
            self.value_head = self.head.build(width)
        scaling = settings.scaling
        fitted = (
            no_scaling()
            if scaling is None
            else stored_normalizer(scaling.normalizer, scaling.constants)
        )
        self.scaling = Undone(fitted) if scaling and scaling.undone else fitted

    @property
    def _table(self) -> nn.Parameter:
        return self.embedder.get_parameter("table.weight")

    def _check_ahead(self, vocabulary: Vocabulary) -> None:
        """Raise UsageError where tokens that tell ahead would have to be written and nothing
        teaches that, or where that is to be learnt and there are none."""
        objective, embedding = self.objective, self.embedding
        if (why := objective.refuses(self.ahead is not None)) is not None:
            raise UsageError(why)
        writes = objective.causal and not self.settings.classes
        if self.ahead is not None and writes and not objective.stands_in:
            token = vocabulary.names[self.ahead - vocabulary.first]
            raise UsageError(
                f"--embedder {name_of(embedding)} shows each number at its {token}, before it is "
                f"written, and --objective {spec_of(objective)} teaches nothing to stand there "
                f"when the model writes; give --objective {embedding.objective}"
            )

    @property
    def stands_in(self) -> bool:
        """Whether something learnt stands where the model has written a token that tells ahead."""
        return self.ahead is not None and self.objective.stands_in

    def _name_of(self, weight: Tensor) -> str:
        return next(name for name, one in self.named_parameters() if one is weight)

    @property
    def _first_head(self) -> nn.Module:
        """What is always there: the head of the classes where there are some, else of tokens."""
        return self.class_head if self.settings.classes else self.token_head

    def class_log_probabilities(self, example: TrainingBatch) -> Tensor:
        """[B, C], float32: of each class, for a batch whose rows are all asked (``ended``)."""
        given = self.given(example)
        hidden = self.states_of(given)
        return F.log_softmax(self.class_head(given.predicting(hidden)).float(), dim=1)

    def hidden(
        self,
        tokens_BL: Tensor,
        values_BL: Tensor,
        real_BL: Tensor | None,
        asked_BQ: Tensor | None = None,
        of_host: Sequence[Tensor] = (),
    ) -> Tensor:
        """[B, L, D]: state j predicts token j of the row (``nn.objectives.base``).

        [B, Q, D] of the places asked for, where those are given. ``of_host``: what
        :meth:`of_host` says of the tokens; without it the device may be waited for.
        """
        embedded_BLD = self._embedded(tokens_BL, values_BL, of_host)
        return cast(Tensor, self.trunk(embedded_BLD, real_BL, asked_BQ))

    def _embedded(self, tokens_BL: Tensor, values_BL: Tensor, of_host: Sequence[Tensor]) -> Tensor:
        """[B, L, D]: vectors of tokens, and of their places, whose numbers come last of what the
        host says."""
        if self.places is None:
            return cast(Tensor, self.embedder(tokens_BL, values_BL, *of_host))
        if not of_host:  # the device is asked for its tokens
            numbers = self.places.numbers(tokens_BL.cpu().numpy())
            of_host = (moved(numbers, tokens_BL.device),)
        *of_embedder, numbers_BL = of_host
        embedded_BLD = self.embedder(tokens_BL, values_BL, *of_embedder)
        return cast(Tensor, embedded_BLD + self.places(numbers_BL))

    def states_of(self, given: ModelInputs) -> Tensor:
        """[B, Q, D] or [B, L, D] as :meth:`hidden`, of a batch."""
        return self.hidden(given.tokens, given.values, given.real, given.asked, given.of_host)

    def extend(
        self,
        tokens_BL: Tensor,
        values_BL: Tensor,
        cache: TrunkCache,
        asked_BQ: Tensor | None = None,
        of_host: Sequence[Tensor] = (),
    ) -> Tensor:
        """[B, L, D] or [B, Q, D] as :meth:`hidden`: of rows that go on from those in the cache."""
        embedded_BLD = self._embedded(tokens_BL, values_BL, of_host)
        return self.trunk.extend(embedded_BLD, cache, asked_BQ)

    def extend_written(
        self,
        tokens_B: Tensor,
        values_B: Tensor,
        cache: TrunkCache,
        said_BD: Tensor,
        of_host: Sequence[Tensor] = (),
    ) -> Tensor:
        """[B, D]: the states behind tokens that the model itself has written, in the states
        ``said``. Where one of them tells ahead, what the objective has learnt stands for it."""
        embedded_B1D = self._embedded(tokens_B[:, None], values_B[:, None], of_host)
        if self.ahead is not None and self.objective.stands_in:
            is_ahead_B11 = (tokens_B == self.ahead)[:, None, None]
            learnt_BD = self.objective.stand_in(self.parts, said_BD).to(embedded_B1D.dtype)
            embedded_B1D = torch.where(is_ahead_B11, learnt_BD[:, None], embedded_B1D)
        return self.trunk.extend(embedded_B1D, cache)[:, 0]

    def losses(self, given: ModelInputs) -> Losses:
        """Token and value losses of a batch, and the objective's own.

        Only the hidden states that predict something go through the heads.
        """
        embedded_BLD = self._embedded(given.tokens, given.values, given.of_host)
        hidden = self.trunk(embedded_BLD, given.real, given.asked)
        losses = self.losses_of(hidden, given)
        if given.own is None:
            return losses
        seen = FirstPass(
            embedded=embedded_BLD,
            hidden=hidden,
            places=given.own,
            parts=self.parts,
            trunk=lambda other_BLD: self.trunk(other_BLD, given.real, None),
            token_loss=lambda states_BLD: self._token_loss(states_BLD, given),
        )
        return losses._replace(own=self.objective.losses(seen))

    def total(self, losses: Losses) -> Tensor:
        """[]: what is learnt, the token and value losses and the weighted ones of the objective."""
        total = losses.token + losses.value
        return total + self.objective.weighted(losses.own) if losses.own else total

    def _token_loss(self, hidden: Tensor, given: ModelInputs) -> Tensor:
        # Where nothing is predicted a mean is not defined. The sum of nothing is 0 and gives every
        # weight a gradient of 0, so that the optimizer counts the same steps for all of them.
        logits: Tensor = self._first_head(given.predicting(hidden)).float()
        if not len(given.labels):
            return logits.sum()
        loss = _cross_entropy(logits, given.labels)
        if self.number_term is None:
            return loss
        added: Tensor = self.number_term(logits, given.labels, *given.of_term)
        return loss + added

    def losses_of(self, hidden: Tensor, given: ModelInputs) -> Losses:
        """As :meth:`losses`, of the states [B, Q, D] that :meth:`hidden` gave."""
        token = self._token_loss(hidden, given)
        value = torch.zeros_like(token)
        if self.value_head is not None:
            states = given.saying(hidden)
            value = self.value_loss(states, given.number_targets, len(given.labels))
        return Losses(token, value)

    def given(self, example: TrainingBatch) -> ModelInputs:
        """An example on the model's device."""
        return self.on_host(example).to(self._table.device)

    def on_host(self, example: TrainingBatch) -> ModelInputs:
        """An example with its numbers as the value head learns them, not yet on a device."""
        values = example.number_values
        learnt = single(values)[:, None]  # a device may have no float64
        if isinstance(self.head, ValueHead) and len(values):
            learnt = self.head.targets(self.head_values(values, example.number_raw))
        of_host = self._of_host(example.tokens, example.values, None, example.moved_places)
        own = self.own_places(example)
        return ModelInputs.on_host(example, learnt, own, of_host, self._of_term(example))

    def _of_term(self, example: TrainingBatch) -> tuple[NDArray[Any], ...]:
        """What the number loss is given of an example besides logits and labels."""
        if self.number_term is None:
            return ()
        scale = self.with_number_scale(example).number_scale
        # Labels that follow each other across two rows are of two runs.
        apart = example.where + example.where // example.tokens.shape[1]
        places = self.number_term.places(example.labels, apart)
        return np.array(scale, np.float32), places

    def with_number_scale(self, example: TrainingBatch) -> TrainingBatch:
        """An example that knows how many of its labels have a value, for its parts, where the
        objective has a number loss."""
        if self.number_term is None or example.number_scale is not None:
            return example
        return replace(example, number_scale=self.number_term.scale(example.labels))

    def of_host(
        self, tokens: NDArray[np.int64], values: Channel, before: NDArray[np.int64] | None = None
    ) -> tuple[Tensor, ...]:
        """What vectors are made of besides tokens and values, [B, L] each, on the model's device.

        ``before``, [B, T]: the tokens that the rows begin with, behind pads where they are shorter,
        for a model that looks at places."""
        known = self._of_host(tokens, values, before)
        return tuple(moved(one, self._table.device) for one in known)

    def _of_host(
        self,
        tokens: NDArray[np.int64],
        values: Channel,
        before: NDArray[np.int64] | None,
        moved_places: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[Any], ...]:
        known = self.embedding.of_host(self.embedder, tokens, values)
        if self.places is None:
            return known
        return *known, self.places.numbers(tokens, before, moved_places)

    def own_places(self, example: TrainingBatch) -> NDArray[np.int64] | None:
        """int64[P]: flat indices into [B, L] of the places of which the objective has losses of
        its own; None where it has none."""
        if example.own_from is None or not self.objective.figures:
            return None
        behind = np.arange(example.tokens.shape[1]) >= example.own_from[:, None]
        return np.flatnonzero((example.tokens == self.ahead) & behind & example.real)

    def head_values(self, values: Channel, raw: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """float64[N]: numbers as the value head has them, from those of the encoding, and as they
        are in the text: a head that learns these is given all their digits.

        Raises UsageError where it is, and the objective does not say them.
        """
        if isinstance(self.head, ValueHead) and self.head.raw:
            if raw is None:
                raise UsageError(
                    f"--head {spec_of(self.head)} learns numbers as they are in the text, and the "
                    f"examples of --objective {spec_of(self.objective)} have no `number_raw`; set "
                    "it where they are made, or give another head"
                )
            return raw
        return self.scaling.forward(values.astype(np.float64))

    def parameter_counts(self) -> tuple[int, int]:
        """Parameters in all, and of these in the tables of tokens and positions."""
        total = sum(parameter.numel() for parameter in self.parameters())
        return total, self._table.numel() + self.trunk.position_weights()

    def rescale(self, times: float) -> None:
        """Begin with number parts that suit vectors so many times as long as drawn ones."""
        self.embedding.rescale(self.embedder, times)
        if self.places is not None:
            self.places.table.weight.mul_(times)

    def trained_count(self) -> int:
        """Parameters that training changes: not those of a trunk that is kept as it is, nor the
        vectors of text that go with it."""
        trained = {name: one for name, one in self.named_parameters() if one.requires_grad}
        kept = sum(trained[name][self.first_kept :].numel() for name in self.kept)
        return sum(one.numel() for one in trained.values()) - kept

    def flops(self, example: TrainingBatch) -> int:
        """Of a forward pass, and of those that the objective has besides: multiplications and
        additions of matrix products.

        Pads count, and so do the pairs that causal attention leaves out: what is counted is the
        same for every kernel. A backward pass is two of the forward.
        """
        rows, length = example.tokens.shape
        asked, _, _ = example.asked
        heads = linear_flops(self._first_head, len(example.where))
        if self.value_head is not None:
            heads += self.value_head.flops(len(example.number_where))
        if self.objective.figures:  # the states of all places are needed
            ahead = int((example.tokens == self.ahead).sum())
            heads += self.objective.flops(self.parts, ahead)
            asked = None
        trunk = self.trunk.flops(rows, length, length if asked is None else asked.shape[1])
        embedder = self.embedding.flops(self.embedder, example.tokens)
        return embedder + trunk + heads + self.second_flops(example)

    def second_flops(self, example: TrainingBatch) -> int:
        """Of :meth:`flops` those of further passes; 0 where there is none."""
        rows, length = example.tokens.shape
        heads = linear_flops(self._first_head, len(example.where))
        return self.objective.further_passes * (self.trunk.flops(rows, length, length) + heads)


def _cross_entropy(logits_KV: Tensor, labels_K: Tensor) -> Tensor:
    """As ``F.cross_entropy``, for less memory and time: the gradient of the logits takes the place
    of the log-probabilities, instead of a table of zeros and another of the gradient."""
    return cast(Tensor, _CrossEntropy.apply(logits_KV, labels_K))  # type: ignore[no-untyped-call]


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits_KV: Tensor, labels_K: Tensor) -> Tensor:
        log_KV = F.log_softmax(logits_KV, dim=1)
        context.save_for_backward(log_KV, labels_K)
        return F.nll_loss(log_KV, labels_K)

    @staticmethod
    def backward(context: Any, *given: Tensor) -> tuple[Tensor, None]:
        log_KV, labels_K = context.saved_tensors
        gradient_KV = log_KV.exp_()  # the probability, less 1 for what is right
        gradient_KV.scatter_add_(1, labels_K[:, None], -torch.ones_like(log_KV[:, :1]))
        return gradient_KV.mul_(given[0] / len(labels_K)), None
