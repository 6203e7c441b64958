"""``numtok.Codec``: texts to tokens and values and back, fitted on texts or read again."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numtok import files
from numtok.encoding.codec import Codec, EncodedTexts
from numtok.encoding.fit_codec import Unfitted
from numtok.encoding.number_sizes import NumberSizes, is_sized
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.splits import read_codec
from numtok.encoding.texts import Texts
from numtok.errors import DataError
from numtok.library.arguments import as_arguments, open_store, typed
from numtok.registry import spec_of
from numtok.store.artifact import ENCODED, MODEL


class TextCodec:
    """How texts become tokens: a scheme for the numbers, a tokenizer for the text between them.

    Texts are whatever holds strings: a list, a NumPy array, an Arrow array of any layout, a column
    of polars or pandas. A null, and what is no string, is refused by its place.

    >>> codec = numtok.Codec.fit(["2.5 * -2 = -5"], scheme="p1000", text_tokenizer="bytes")
    >>> codec.tokens("2.5 =")
    ['[NUM:+]', '[NUM:250]', '[NUM:E-2]', ' ', '=']

    inner
        The codec as the rest of numtok has it.
    """

    def __init__(self, inner: Codec) -> None:
        self.inner = inner

    @classmethod
    @as_arguments()
    @typed
    def fit(
        cls,
        texts: Any,
        *,
        scheme: str = "xval",
        text_tokenizer: str | None = None,
        normalize: str | None = None,
        numerals: str | None = None,
    ) -> "TextCodec":
        """Learn from texts what ``numtok encode`` learns from a train split: the words, the
        constants by which numbers are scaled, and what a scheme such as ``bpe`` learns of numbers.

        The settings are specs, as on the command line, or the path of a ``tokenizer.json``; None is
        the default: ``words``, the normalisation of the scheme, and ``default``.

        Raises UsageError for a spec that does not exist, DataError for what is no column of texts,
        or has no number where numbers are learnt from.
        """
        unfitted = Unfitted.of(
            scheme_of(scheme),
            numerals=numerals,
            normalize=normalize,
            text_tokenizer=text_tokenizer,
        )
        data = Texts.of(texts)
        if len(data.rows) == 1:
            raise DataError("there are no texts to fit a codec on; give one at least")
        if is_sized(scheme):
            unfitted = unfitted.suited(NumberSizes.of_texts(data, unfitted.policy))
        return cls(unfitted.fit_texts(data))

    @classmethod
    @as_arguments()
    @typed
    def load(cls, where: str | Path, *, store: str | Path | None = None) -> "TextCodec":
        """The codec of encoded data or of a model, by its REF in a store; or of a folder that holds
        a ``scheme.json``, as :meth:`save` leaves it.

        Raises UsageError for what is not there, StoreError for a file that is damaged.
        """
        for path in (Path(where), Path(where) / SCHEME_FILE):
            if path.name == SCHEME_FILE and path.is_file():
                return cls(Codec.read(path))
        return cls(read_codec(open_store(store).resolve(str(where), kinds={ENCODED, MODEL})))

    @typed
    def save(self, folder: str | Path) -> None:
        """Write it into a folder, which is made if it is not there, as ``scheme.json``.

        Raises StoreError where that cannot be written.
        """
        path = Path(folder)
        if not files.is_folder(path):
            with files.reporting("make", path):
                files.system.mkdir(path)
        files.write_atomic(path / SCHEME_FILE, self.inner.to_json())

    @property
    def scheme(self) -> str:
        """The spec of how numbers are written."""
        return spec_of(self.inner.scheme)

    @property
    def vocabulary_size(self) -> int:
        """Special tokens, tokens of numbers and tokens of text."""
        return self.inner.vocabulary_size

    @property
    def digest(self) -> str:
        """The same for two codecs only where the same text becomes the same tokens."""
        return self.inner.digest

    def encode(self, texts: Any) -> EncodedTexts:
        """Texts as flat columns: tokens, numbers, where these begin, values beside them.

        Raises DataError for what is no column of texts.
        """
        data = Texts.of(texts)
        return self.inner.encode(data, self.inner.find(data))

    def tokens(self, text: str) -> list[str]:
        """The tokens of one text by their names; ``[NUM:...]`` are those of numbers."""
        return [self.inner.written_number(token) for token in self.encode([text]).tokens[:, None]]

    @typed
    def decode(self, encoded: EncodedTexts) -> list[str]:
        """Texts from columns as :meth:`encode` gives them: what lies between numbers byte for byte,
        and each number as the scheme holds it."""
        bounds, places = encoded.token_rows.tolist(), encoded.number_rows.tolist()
        found = []
        for row in range(len(bounds) - 1):
            numbers = slice(places[row], places[row + 1])
            tokens: NDArray[np.uint32] = encoded.tokens[bounds[row] : bounds[row + 1]].astype(
                np.uint32
            )
            channel = None if encoded.channel is None else encoded.channel[numbers]
            starts, lengths = encoded.number_start[numbers], encoded.number_length[numbers]
            found.append(self.inner.decode(tokens, starts, lengths, channel))
        return found

    def __repr__(self) -> str:
        size, text = self.vocabulary_size, spec_of(self.inner.text_tokenizer)
        return f"numtok.Codec(scheme={self.scheme!r}, text_tokenizer={text!r}, {size:,} tokens)"
