"""Sizes of numbers in data, to which schemes such as fone are sized."""

from numtok.encoding.number_sizes import NumberSizes, is_sized
from numtok.encoding.texts import Texts
from numtok.library.codec import TextCodec
from numtok.numerals.policy import NumeralPolicy


def sizes(*texts: str) -> NumberSizes:
    return NumberSizes.of(Texts.of(list(texts)).find(NumeralPolicy()).numerals())


def test_sizes_are_the_largest_magnitude_and_the_most_decimals_as_written() -> None:
    assert sizes("a 12.5 and -340", "0.00") == (340.0, 1)
    assert sizes("1.50", "2e-3") == (1.5, 3)
    assert sizes("nothing") == (0.0, 0)
    assert sizes("1e400 and 7") == (7.0, 0)  # float64 cannot represent 1e400
    assert sizes("12.5").merged(sizes("340")) == sizes("12.5 340")


def test_only_specs_without_settings_are_sized() -> None:
    assert is_sized("fone") and is_sized("dice")
    assert not is_sized("fone,whole=10,decimals=5")
    assert not is_sized("xval")


def test_a_codec_fitted_on_texts_is_sized_to_them() -> None:
    texts = ["a 12.5 b -3"]
    assert TextCodec.fit(texts, scheme="fone").scheme == "fone,whole=2,decimals=1"
    assert TextCodec.fit(texts, scheme="fone,decimals=2").scheme == "fone,decimals=2"
    assert TextCodec.fit(texts, scheme="fone", normalize="affine").scheme == "fone"
