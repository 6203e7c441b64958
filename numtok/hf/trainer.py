"""Collator and model for training a transformers model on numbers with ``Trainer``.

::

    model = numtok.hf.NumberModel(AutoModel.from_pretrained(...), embed, head)
    Trainer(model, arguments, data_collator=numtok.hf.NumberCollator(codec, causal=True), ...)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from numtok.errors import DataError, UsageError
from numtok.library.batch import NumberBatch, batch, check_visibility
from numtok.library.codec import TextCodec
from numtok.library.embedder import NumberEmbedding
from numtok.library.head import NumberHead
from numtok.models.modes import in_evaluation_mode
from numtok.models.pretrained.architecture import learned_positions


class NumberCollator:
    """``data_collator`` for ``Trainer`` that turns rows into the arguments for
    :class:`NumberModel`.

    Rows are texts, or mappings with a text under the key ``field``; other keys are ignored. With
    the ``datasets`` library, pass ``remove_unused_columns=False`` to ``TrainingArguments``;
    otherwise ``Trainer`` drops the texts. For an iterable dataset, also pass
    ``accelerator_config={"dispatch_batches": False}``, because numbers cannot be divided by rows.

    mask, causal, rate
        Which numbers to train on, as in :func:`numtok.batch`. ``mask="random"`` uses PyTorch's
        generator and therefore depends on the seed of the ``Trainer``.

    >>> NumberCollator(codec, causal=True)([{"text": "2 * 3 = 6"}])["labels"]
    tensor([6.], dtype=torch.float64)
    """

    def __init__(
        self,
        codec: TextCodec,
        *,
        field: str = "text",
        mask: str = "last",
        causal: bool = False,
        rate: float = 0.3,
    ) -> None:
        self.codec, self.field = codec, field
        self.mask, self.causal, self.rate = mask, causal, rate

    def __call__(self, rows: Sequence[str | Mapping[str, Any]]) -> dict[str, Tensor | str | int]:
        """Return the arguments of :meth:`NumberModel.forward` by name.

        Raises DataError under the same conditions as :func:`numtok.batch`, and if a row has no key
        ``field``.
        """
        texts = [row if isinstance(row, str) else self._text(row) for row in rows]
        seed = int(torch.randint(1 << 31, ())) if self.mask == "random" else 0
        encoded = batch(
            self.codec, texts, mask=self.mask, causal=self.causal, rate=self.rate, seed=seed
        )
        row, column = encoded.where
        return {
            "tokens": encoded.tokens,
            "values": encoded.values,
            "exact": encoded.exact,
            "attention_mask": encoded.attention_mask,
            "positions": encoded.positions,
            "row": row,
            "column": column,
            "labels": encoded.truths,
            "digest": encoded.digest,
            "causal": encoded.causal,
            "count": len(encoded.truths),
        }

    def _text(self, row: Mapping[str, Any]) -> Any:
        if self.field not in row:
            raise DataError(
                f"a row has no field {self.field!r} (it has {', '.join(map(repr, row)) or 'none'})"
                ". Pass field=..., and remove_unused_columns=False to TrainingArguments"
            )
        return row[self.field]


class NumberModel(nn.Module):
    """Transformers model between a numtok embedder and a numtok head, for use with ``Trainer``.

    A call returns the ``loss`` and, in evaluation mode, the predicted numbers ``points``,
    float64[N]. In ``compute_metrics`` they are the ``predictions``; like the ``label_ids``, they
    are in the units of the text.

    model
        Model without a head, as loaded by ``AutoModel``, with the same width as the embedder and
        the head.

    The first causal batch is checked with :func:`numtok.check_visibility`. ``Trainer`` cannot
    switch on gradient checkpointing; call ``model.gradient_checkpointing_enable()`` first.
    """

    def __init__(self, model: nn.Module, embed: NumberEmbedding, head: NumberHead) -> None:
        super().__init__()
        self.model, self.embed, self.head = model, embed, head
        self._longest = learned_positions(model)
        self._is_checked = False

    def states(self, rows: NumberBatch) -> Tensor:
        """Return the last hidden states at the numbers, [N, D], or [N, W, D] if each number has W
        tokens.

        Raises DataError if a row exceeds the model's context. Raises UsageError if the rows were
        encoded with another codec, if the model returns no hidden states, or if it attends to later
        tokens in a causal batch.
        """
        length, longest = rows.tokens.shape[1], self._longest
        if longest is not None and length > longest:
            name = type(self.model).__name__
            raise DataError(
                f"a row has {length:,} tokens, but the context of {name} is {longest:,}. Drop or "
                "shorten such rows"
            )
        if rows.causal and not self._is_checked:
            check_visibility(self._states, rows)
            self._is_checked = True
        return self._states(rows)

    def _states(self, rows: NumberBatch) -> Tensor:
        mask = rows.attention_mask.long()
        embedded = self.embed(rows).to(getattr(self.model, "dtype", torch.float32))
        output = self.model(inputs_embeds=embedded, attention_mask=mask)
        states = getattr(output, "last_hidden_state", None)
        if not isinstance(states, Tensor):
            raise UsageError(
                f"{type(self.model).__name__} returns no last_hidden_state. Use a model without a "
                "head, as AutoModel loads it"
            )
        return states[rows.where]

    def forward(
        self,
        tokens: Tensor,
        values: Tensor,
        exact: Tensor,
        attention_mask: Tensor,
        positions: Tensor,
        row: Tensor,
        column: Tensor,
        labels: Tensor,
        digest: str,
        causal: bool,
        count: int,
    ) -> dict[str, Tensor]:
        """Compute the ``loss`` [] and, in evaluation mode, the predicted numbers ``points``
        float64[N].

        The arguments are returned by a :class:`NumberCollator`; ``labels`` float64[N] are the true
        numbers, and ``count`` is N. In evaluation mode, the loss is NaN if a number is unknown
        (``[?]``, with ``mask="holes"``).

        Raises UsageError if the batch was divided, and under the same conditions as :meth:`states`.
        """
        if len(labels) != count:
            raise UsageError(
                f"a batch was divided by rows and has {len(labels):,} of its {count:,} numbers. "
                'For an iterable dataset, pass accelerator_config={"dispatch_batches": False} to '
                "TrainingArguments; for several GPUs, start one process per GPU"
            )
        rows = NumberBatch(
            tokens=tokens,
            values=values,
            exact=exact,
            attention_mask=attention_mask,
            positions=positions,
            where=(row, column),
            truths=labels,
            digest=digest,
            causal=causal,
        )
        states = self.states(rows)
        if not self.training and labels.isnan().any():
            outputs = {"loss": states.new_tensor(torch.nan)}
        else:
            outputs = {"loss": self.head.loss(states, labels)}
        if not self.training:
            points = self.head.predict(states).point()
            outputs["points"] = torch.from_numpy(points).to(labels.device)
        return outputs

    @torch.no_grad()
    def calibrate(self, rows: NumberBatch) -> None:
        """Calibrate the head's distribution on rows that were not used for training, with dropout
        off."""
        with in_evaluation_mode(self):
            rows = rows.to(self.embed.table.device)
            self.head.calibrate(self.states(rows), rows.truths)
