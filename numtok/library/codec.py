"""``numtok.Codec``: converts texts to tokens and values, and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from numtok import files
from numtok.encoding.codec import Codec, EncodedTexts
from numtok.encoding.fit_codec import Unfitted
from numtok.encoding.number_sizes import NumberSizes, is_sized
from numtok.encoding.schema import SCHEME_FILE
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.stored_codec import read_codec
from numtok.encoding.texts import Texts
from numtok.errors import DataError
from numtok.library.arguments import as_arguments, open_store, typed
from numtok.registry import spec_of
from numtok.store.artifact import ENCODED, MODEL

if TYPE_CHECKING:
    from numtok.numerals.reading import TextReading


class TextCodec:
    """Converts texts to tokens and back, with a scheme for numbers and a tokenizer for the other
    text.

    Texts can be any column of strings: a list, a NumPy array, an Arrow array of any layout, or a
    polars or pandas column. A null or a value that is not a string raises DataError with its index.

    Attributes
    ----------
    inner : numtok.encoding.codec.Codec
        Codec object that numtok commands use.

    Examples
    --------
    >>> codec = numtok.Codec.fit(["2.5 * -2 = -5"], scheme="p1000", text_tokenizer="bytes")
    >>> codec.tokens("2.5 =")
    ['[NUM:+]', '[NUM:250]', '[NUM:E-2]', ' ', '=']
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
        not_numbers: Sequence[str] = (),
    ) -> "TextCodec":
        """Fit a codec on texts, as ``numtok encode`` does on a train split.

        The codec learns the vocabulary of the text tokenizer, the scaling of the numbers, and the
        tokens of a scheme such as ``bpe``.

        Parameters
        ----------
        texts : sequence of str, NumPy array, Arrow array, or polars or pandas column
            Training texts.
        scheme : str
            Spec of the number scheme, such as ``p1000``.
        text_tokenizer : str, optional
            Spec of the text tokenizer, or path to a ``tokenizer.json``. Default: ``words``.
        normalize : str, optional
            Spec of the normalization of numbers. Default: the scheme's own.
        numerals : str, optional
            Spec of the numeral policy, which defines what counts as a number. Default: ``default``.
        not_numbers : sequence of str, optional
            Zones whose digits are never numbers: names such as ``dates``, or regular expressions.

        Raises
        ------
        UsageError
            If a spec is unknown or invalid.
        DataError
            If ``texts`` is not a column of texts, or if it contains no numbers and the scheme is
            fitted on numbers.
        """
        unfitted = Unfitted.of(
            scheme_of(scheme),
            numerals=numerals,
            not_numbers=not_numbers,
            normalize=normalize,
            text_tokenizer=text_tokenizer,
        )
        data = Texts.of(texts)
        if len(data.rows) == 1:
            raise DataError("texts is empty. Pass at least one text to fit a codec")
        if is_sized(scheme):
            unfitted = unfitted.suited(NumberSizes.of(data.find(unfitted.policy).numerals()))
        return cls(unfitted.fit_texts(data))

    @classmethod
    @as_arguments()
    @typed
    def load(cls, where: str | Path, *, store: str | Path | None = None) -> "TextCodec":
        """Load the codec of encoded data or of a model, or one that was saved to a folder.

        Parameters
        ----------
        where : str or path
            REF of encoded data or of a model, or a folder with a ``scheme.json`` from :meth:`save`.
        store : str or path, optional
            Folder of the store.

        Raises
        ------
        UsageError
            If ``where`` refers to no artifact or folder.
        StoreError
            If a file is damaged.
        """
        for path in (Path(where), Path(where) / SCHEME_FILE):
            if path.name == SCHEME_FILE and path.is_file():
                return cls(Codec.read(path))
        return cls(read_codec(open_store(store).resolve(str(where), kinds={ENCODED, MODEL})))

    @typed
    def save(self, folder: str | Path) -> None:
        """Write the codec to ``scheme.json`` in a folder, which is created if it does not exist.

        Raises StoreError if the file cannot be written.
        """
        path = Path(folder)
        if not files.is_folder(path):
            with files.reporting("make", path):
                files.system.mkdir(path)
        files.write_atomic(path / SCHEME_FILE, self.inner.to_json())

    @property
    def scheme(self) -> str:
        """Spec of the number scheme, such as ``p1000``."""
        return spec_of(self.inner.scheme)

    @property
    def vocabulary_size(self) -> int:
        """Number of tokens: special tokens, number tokens and text tokens."""
        return self.inner.vocabulary_size

    @property
    def digest(self) -> str:
        """Hash of the codec.

        Two codecs have the same hash only if they encode every text identically.
        """
        return self.inner.digest

    def encode(self, texts: Any) -> EncodedTexts:
        """Encode texts, and return their tokens and numbers as flat columns.

        Raises DataError if ``texts`` is not a column of texts.
        """
        data = Texts.of(texts)
        return self.inner.encode(data, self.inner.find(data))

    def find(self, text: str) -> "TextReading":
        """Return the numbers that the codec finds in a text, and the words whose digits are not
        part of any number.

        Offsets are in characters. Each word comes with a reason and advice on rewriting it.

        Examples
        --------
        >>> [number.literal for number in codec.find("pH6.5, dose 8 mg").numbers]
        ['8']
        """
        from numtok.numerals.reading import read_text

        return read_text(text, self.inner.policy)

    def tokens(self, text: str) -> list[str]:
        """Return the names of the tokens in a text. Number tokens are named ``[NUM:...]``."""
        return [self.inner.written_number(token) for token in self.encode([text]).tokens[:, None]]

    @typed
    def decode(self, encoded: EncodedTexts) -> list[str]:
        """Decode the result of :meth:`encode` to a list of texts.

        Text between numbers is restored byte for byte, and each number as precisely as the scheme
        represents it.
        """
        bounds, number_bounds = encoded.token_rows.tolist(), encoded.number_rows.tolist()
        texts = []
        for row in range(len(bounds) - 1):
            numbers = slice(number_bounds[row], number_bounds[row + 1])
            tokens: NDArray[np.uint32] = encoded.tokens[bounds[row] : bounds[row + 1]].astype(
                np.uint32
            )
            channel = None if encoded.channel is None else encoded.channel[numbers]
            starts, lengths = encoded.number_start[numbers], encoded.number_length[numbers]
            literals = self.inner.literals(tokens, starts, lengths, channel)
            if self.inner.keeps_literals:
                # A number in a notation that the tokens do not keep comes back as in the text.
                for index, number in enumerate(range(numbers.start, numbers.stop)):
                    if literals[index] == encoded.literals.at(number):
                        literals[index] = encoded.written.at(number)
            texts.append(self.inner.joined(tokens, starts, lengths, literals))
        return texts

    def __repr__(self) -> str:
        size, text = self.vocabulary_size, spec_of(self.inner.text_tokenizer)
        return f"numtok.Codec(scheme={self.scheme!r}, text_tokenizer={text!r}, {size:,} tokens)"
