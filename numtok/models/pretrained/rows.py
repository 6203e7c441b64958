"""Initial rows of a token table that extends a pretrained model's table."""

import numpy as np
import torch
from torch import Tensor

from numtok.encoding.codec import Codec
from numtok.encoding.texts import Texts


@torch.no_grad()
def fill_rows(table_VD: Tensor, own_TD: Tensor, codec: Codec, *, by_digits: bool) -> None:
    """Fill a new token table in place with vectors derived from a pretrained model's own table.

    Rows of text tokens are copied from the model's table. Rows of special tokens are sampled from
    the distribution of the model's vectors. Rows of the scheme's tokens are sampled as well or, if
    ``by_digits``, are the mean of the vectors of each token's characters.
    """
    text = codec.text_first
    table_VD[text:] = own_TD[: len(table_VD) - text]
    drawn_ND = torch.randn(text, own_TD.shape[1], device=own_TD.device)
    table_VD[:text] = own_TD.mean(dim=0) + own_TD.std(dim=0) * drawn_ND
    if by_digits:
        for row, token in enumerate(codec.vocabulary()["number"], codec.number_first):
            table_VD[row] = own_TD[_written(token, codec)].mean(dim=0)


def _written(token: str, codec: Codec) -> list[int]:
    """Return the IDs of a token's characters, encoded separately: of 6, 0 and 2 for ``602``."""
    letters = [letter.encode() for letter in token]
    bounds = np.cumsum([0, *map(len, letters)]).astype(np.int32)
    ids = codec.text.encode(Texts(np.frombuffer(b"".join(letters), np.uint8), bounds)).ids
    return [int(token_id) for token_id in ids]
