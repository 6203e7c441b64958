"""How many answers a model writes exactly, looked at while it learns: of all, and of each group."""

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from numtok.encoding.codec import Codec
from numtok.encoding.dataset import EncodedSplit
from numtok.encoding.grammar import Grammar
from numtok.encoding.schemes.base import ChannelScheme
from numtok.models.batches import Batches
from numtok.models.generation import Writer
from numtok.models.model import Model
from numtok.seeds import generator
from numtok.training.log import EXACT
from numtok.training.ranks import ALONE, Ranks

_ROWS = 512  # at most: of 90% the standard error is 1.3%
_TOKENS = 1 << 14  # written at each look, at most
_VALUES = 12  # of a group at most; task names of a benchmark would be a log of their own
_ENOUGH = 20  # rows of a value at least: of fewer a share says little


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactAnswers:
    """Some rows and their answers; they are the same ones at each look, whatever the seed."""

    batches: Batches
    codec: Codec
    grammar: Grammar
    rows: NDArray[np.int64]  # [n], the shortest prompt first
    answers: list[str]  # n true ones, as the codec reads their tokens back
    longest: int  # tokens of the longest of them
    size: int  # rows that are written together
    parts: dict[str, NDArray[np.bool_]]  # [n] each: the rows of `group=value`

    @classmethod
    def of(
        cls, samples: EncodedSplit, batches: Batches, codec: Codec, size: int
    ) -> "ExactAnswers | None":
        """None where no row has an answer, and for schemes whose tokens do not say a number alone:
        what is said beside them is never exact."""
        asked = np.flatnonzero(samples.answer_start >= 0)
        if isinstance(codec.scheme, ChannelScheme) or not len(asked):
            return None
        width = int((samples.lengths[asked] - samples.answer_start[asked]).max())
        most = max(1, min(_ROWS, _TOKENS // (width + 1)))
        rows = asked[generator(0, "answers").permutation(len(asked))[:most]]
        rows = rows[np.argsort(samples.answer_start[rows], kind="stable")]
        answers = [codec.decode(*samples.answer(row)[:3]) for row in rows.tolist()]
        parts = _parts(samples, rows)
        return cls(
            batches=batches,
            codec=codec,
            grammar=Grammar(codec.scheme),
            rows=rows,
            answers=answers,
            longest=width,
            size=size,
            parts=parts,
        )

    def shares(self, model: Model, ranks: Ranks = ALONE) -> dict[str, float]:
        """Of the rows, those whose answer the model writes as it stands there, and then ends:
        ``{"exact": 0.5, "exact,operation=add": 0.25, ...}``. Numbers obey the scheme's grammar."""
        exact = ranks.total(torch.from_numpy(self._exact(model, ranks).astype(np.uint8))).numpy()
        parts = {f"{EXACT},{part}": float(exact[of].mean()) for part, of in self.parts.items()}
        return {EXACT: float(exact.mean())} | parts

    def _exact(self, model: Model, ranks: Ranks) -> NDArray[np.bool_]:
        """bool[n]: which of the rows, of several ranks those that this one writes."""
        model.eval()
        # One token more than any answer: who writes on is wrong.
        writer = Writer(
            model=model,
            codec=self.codec,
            grammar=self.grammar,
            constrained=True,
            longest=self.longest + 1,
        )
        exact, memory = np.zeros(len(self.rows), np.bool_), None
        for first in range(0, len(self.rows), self.size)[ranks.rank :: ranks.count]:
            some = slice(first, first + self.size)
            written, memory = writer.write(self.batches.of(self.rows[some]), memory)
            exact[some] = [
                ended and self.codec.decode(*written.answer(place), errors="replace") == true
                for place, (ended, true) in enumerate(
                    zip(written.ended.tolist(), self.answers[some], strict=True)
                )
            ]
        return exact


def _parts(samples: EncodedSplit, rows: NDArray[np.int64]) -> dict[str, NDArray[np.bool_]]:
    """Of each group with a few values: the rows of each value that enough of them have."""
    found = {}
    for group, column in samples.groups.items():
        values = column.take(rows)
        known = sorted(pc.unique(values.drop_null()).to_pylist())
        if 2 <= len(known) <= _VALUES:
            for value in known:
                of = np.asarray(pc.equal(values, value).fill_null(False))
                if np.count_nonzero(of) >= _ENOUGH:
                    found[f"{group}={value}"] = of
    return found
