"""Rows of texts to batches, and a model around one of transformers that learns their numbers.

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
from numtok.models.pretrained.architecture import learned_positions


class NumberCollator:
    """Rows to the arguments of :class:`NumberModel`: a ``data_collator`` of a ``Trainer``.

    Rows are texts, or mappings with a text under ``field``, whose other columns are left out. Data
    of the library ``datasets`` need ``remove_unused_columns=False`` of the ``TrainingArguments``,
    which would take the texts away.

    mask, causal, rate
        Which numbers are learnt, as :func:`numtok.batch` has it. ``random`` draws by PyTorch's
        generator, and so by the seed of the ``Trainer``.

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

    def __call__(self, rows: Sequence[str | Mapping[str, Any]]) -> dict[str, Tensor | str | bool]:
        """The arguments by name; DataError as :func:`numtok.batch`, and for a row without its
        field."""
        texts = [row if isinstance(row, str) else self._text(row) for row in rows]
        seed = int(torch.randint(1 << 31, ())) if self.mask == "random" else 0
        made = batch(
            self.codec, texts, mask=self.mask, causal=self.causal, rate=self.rate, seed=seed
        )
        row, column = made.where
        return {
            "tokens": made.tokens,
            "values": made.values,
            "exact": made.exact,
            "attention_mask": made.attention_mask,
            "positions": made.positions,
            "row": row,
            "column": column,
            "labels": made.truths,
            "digest": made.digest,
            "causal": made.causal,
        }

    def _text(self, row: Mapping[str, Any]) -> Any:
        if self.field not in row:
            raise DataError(
                f"a row has no field {self.field!r}, it has {', '.join(map(repr, row)) or 'none'}; "
                "give field=, and remove_unused_columns=False to the TrainingArguments"
            )
        return row[self.field]


class NumberModel(nn.Module):
    """A model of transformers between an embedder and a head of numtok, for ``Trainer``.

    Of rows it gives the ``loss``, and when it does not train the ``points`` as well, float64[N]:
    ``predictions`` of ``compute_metrics``, in the units of the text as the ``label_ids`` are.

    model
        One without a head of its own, as ``AutoModel`` loads it, whose width is that of both.

    The first causal batch goes through :func:`numtok.check_visibility`.
    """

    def __init__(self, model: nn.Module, embed: NumberEmbedding, head: NumberHead) -> None:
        super().__init__()
        self.model, self.embed, self.head = model, embed, head
        self._longest = learned_positions(model)
        self._is_checked = False

    def states(self, rows: NumberBatch) -> Tensor:
        """[N, D], or [N, W, D]: the last hidden states at the places of the numbers.

        Raises DataError for rows longer than the model reads, UsageError for rows of another codec,
        for a model that gives no such states, and for a causal batch if the model attends to later
        tokens.
        """
        length, longest = rows.tokens.shape[1], self._longest
        if longest is not None and length > longest:
            name = type(self.model).__name__
            raise DataError(
                f"a row has {length:,} tokens, {name} reads {longest:,}. Drop or shorten such rows"
            )
        if rows.causal and not self._is_checked:
            check_visibility(self._states, rows)
            self._is_checked = True
        return self._states(rows)

    def _states(self, rows: NumberBatch) -> Tensor:
        mask = rows.attention_mask.long()
        told = self.model(inputs_embeds=self.embed(rows), attention_mask=mask)
        states = getattr(told, "last_hidden_state", None)
        if not isinstance(states, Tensor):
            raise UsageError(
                f"{type(self.model).__name__} gives no last_hidden_state; give the model without a "
                "head of its own, as AutoModel loads it"
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
    ) -> dict[str, Tensor]:
        """``loss`` [] and, where it does not train, ``points`` float64[N], of what a
        :class:`NumberCollator` gives; ``labels``: float64[N]."""
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
        given = {"loss": self.head.loss(states, labels)}
        if not self.training:
            points = self.head.predict(states).point()
            given["points"] = torch.from_numpy(points).to(labels.device)
        return given

    @torch.no_grad()
    def calibrate(self, rows: NumberBatch) -> None:
        """Measure on numbers that were not learnt what the head's distribution needs."""
        rows = rows.to(self.embed.table.device)
        self.head.calibrate(self.states(rows), rows.truths)
