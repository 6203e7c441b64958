"""Initial rows of a token table that extends the one of a pretrained model."""

import numpy as np
import torch
from torch import Tensor

from numtok.encoding.codec import Codec
from numtok.encoding.texts import Texts


@torch.no_grad()
def fill_rows(table_VD: Tensor, own_TD: Tensor, codec: Codec, *, by_digits: bool) -> None:
    """Fill the rows of text tokens with the model's own vectors.

    The rows of special tokens, before them, are drawn from the distribution of the model's vectors.
    Rows of the scheme's tokens are drawn as well, or averaged over the characters of each token.
    """
    text = codec.text_first
    table_VD[text:] = own_TD[: len(table_VD) - text]
    drawn_ND = torch.randn(text, own_TD.shape[1], device=own_TD.device)
    table_VD[:text] = own_TD.mean(dim=0) + own_TD.std(dim=0) * drawn_ND
    if by_digits:
        for row, token in enumerate(codec.vocabulary()["number"], codec.number_first):
            table_VD[row] = own_TD[_written(token, codec)].mean(dim=0)


def _written(token: str, codec: Codec) -> list[int]:
    """Return the ids of a token's characters, encoded separately: for ``602`` those of 6, 0, 2."""
    letters = [letter.encode() for letter in token]
    bounds = np.cumsum([0, *map(len, letters)]).astype(np.int32)
    ids = codec.text.encode(Texts(np.frombuffer(b"".join(letters), np.uint8), bounds)).ids
    return [int(token_id) for token_id in ids]
