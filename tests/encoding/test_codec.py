"""The codec: texts to tokens and back byte for byte, and Hugging Face reads the same tokens."""

import json
import re
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from numtok.encoding.codec import Codec, EncodedTexts
from numtok.encoding.normalizers.base import NORMALIZERS, Moments, fit
from numtok.encoding.schema import SPECIALS
from numtok.encoding.schemes.base import SCHEMES, Channel, ChannelScheme, Failure, Outcome
from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
from numtok.encoding.texts import Texts, unescape
from numtok.encoding.tokenizer_json import tokenizer_json
from numtok.errors import DataError, StoreError, UsageError
from numtok.numerals.column import Numerals
from numtok.numerals.find import Spans
from numtok.numerals.policy import NumeralPolicy
from tests.cases import each
from tests.known import unlisted
from tests.messages import Says

TEXT_SCHEMES = [name for name in SCHEMES.names() if not issubclass(SCHEMES[name], ChannelScheme)]
TEXT_TOKENIZER_SPECS = ["words", "bytes", "bpe:300"]
SAMPLE = [
    '{"temperature": [',
    ", ",
    "], the pressure of the air is the pressure of the air.\n",
    "[\\NUM] and [\\MASK] are words, äöü 日本語 🙂",
] * 3


@cache
def codec(
    scheme: str, text: str = "words", normalize: str = "none", numerals: str = "default"
) -> Codec:
    """Fit a codec on the sample, with a normalizer fitted on numbers up to 100."""
    tokenizer = TEXT_TOKENIZERS.build(text)
    return Codec(
        scheme=SCHEMES.build(scheme),
        policy=NumeralPolicy.parse(numerals),
        normalizer=fit(NORMALIZERS.build(normalize), Moments.of(np.array([-100.0, 0.0, 50.0]))),
        text_tokenizer=tokenizer,
        text=tokenizer.fit(column(SAMPLE)),
    )


def column(texts: list[str]) -> Texts:
    """Return texts in the form that the codec takes."""
    return Texts.of(pa.array(texts, pa.string()))


def encoded_row(
    encoded: EncodedTexts, row: int
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.int32], Channel | None]:
    """Return the arguments of ``decode`` for one row."""
    first, last = encoded.number_rows[row : row + 2]
    return (
        encoded.tokens[encoded.token_rows[row] : encoded.token_rows[row + 1]].astype(np.uint32),
        encoded.number_start[first:last],
        encoded.number_length[first:last],
        None if encoded.channel is None else encoded.channel[first:last],
    )


def encode(one: Codec, texts: list[str], marks: list[int] | None = None) -> EncodedTexts:
    """Encode a column; marks are byte offsets in it."""
    data = column(texts)
    places = None if marks is None else np.array(marks, np.int32)
    return one.encode(data, one.find(data), places)


def decoded(one: Codec, encoded: EncodedTexts) -> list[str]:
    """Decode every row to text."""
    return [one.decode(*encoded_row(encoded, row)) for row in range(len(encoded.token_rows) - 1)]


def expected(one: Codec, text: str) -> str:
    """Return the text with each number replaced by its decoded form, one number at a time."""
    data = column([text])
    spans = one.find(data)
    raw, parts, end = text.encode(), [], 0
    for index, (start, stop) in enumerate(
        zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
    ):
        numeral = Numerals.of_literals([spans.literals.at(index)])
        if not one.normalizer.normalizer.identity:
            numeral = numeral.with_values(one.normalizer.forward(numeral.values))
        tokens, lengths, _, channel = one.scheme.encode(numeral)
        number = one.scheme.decode(tokens, lengths, channel)
        if number.failures[0]:
            names = [one.scheme.vocabulary()[token] for token in tokens]
            literal = "".join(f"[NUM:{name}]" for name in names)
        elif one.normalizer.normalizer.identity:
            literal = number.literal(0)
        else:
            literal = repr(one.normalizer.inverse(number.values).tolist()[0])
        parts += [raw[end:start].decode(), literal]
        end = stop
    return "".join([*parts, raw[end:].decode()])


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=2).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["0", "-0.0", "1e400", "-1e-400", "007", "\u22125", ".5", "1,234", "23%"]),
)
keywords = st.sampled_from(
    [
        *("[NUM]", "[\\NUM]", "[\\\\NUM]", "[MASK]", "[PAD]", "[END]", "[NUM", "NUM]", "[", "\\"),
        *("]", "[NUM:-]", "[NUM:602][NUM:E-1]", "[\\", "[NUM:+OVERFLOW]", "[\\PAD", "nan", "inf"),
    ]
)
anything = st.text(st.characters(codec="utf-8"), max_size=12)
texts = st.lists(
    st.one_of(numbers, keywords, anything, st.sampled_from([" ", ", ", "\n", "\x00", "é", "the"])),
    max_size=10,
).map("".join)
columns = st.lists(texts, max_size=4)


# --- round trips -------------------------------------------------------------------------------


@given(columns)
@example(["", "[NUM]", "[\\NUM] [\\\\MASK]", "\x00[PAD]\x001.5", "日本語 [END] -2e5 🙂"])
@each("text", TEXT_TOKENIZER_SPECS)
def test_digits_gives_every_text_back_as_it_was(text: str, texts: list[str]) -> None:
    one = codec("digits", text)
    assert decoded(one, encode(one, texts)) == texts


@given(columns)
@each("numerals", ["thousands,percent", "xval"])
def test_digits_gives_every_text_back_under_every_policy(numerals: str, texts: list[str]) -> None:
    one = codec("digits", numerals=numerals)
    assert decoded(one, encode(one, texts)) == texts


@pytest.mark.integration
@given(columns)
@each("scheme", SCHEMES.names())
def test_the_text_between_numbers_comes_back_and_numbers_as_decoded(
    scheme: str, texts: list[str]
) -> None:
    one = codec(scheme)
    assert decoded(one, encode(one, texts)) == [expected(one, text) for text in texts]


@given(columns)
@each("normalize", ["scale:5", "affine", "unit", "signed-log"])
@each("scheme", ["p10", "xval", "digits"])
def test_normalised_numbers_come_back_raw(scheme: str, normalize: str, texts: list[str]) -> None:
    one = codec(scheme, normalize=normalize)
    encoded = encode(one, texts)
    assert decoded(one, encoded) == [expected(one, text) for text in texts]
    assert encoded.numbers.tolist() == encode(codec(scheme), texts).numbers.tolist()


@given(columns)
@each("scheme", SCHEMES.names())
def test_rows_are_encoded_each_by_itself(scheme: str, texts: list[str]) -> None:
    one = codec(scheme)
    whole = encode(one, texts)
    for row, text in enumerate(texts):
        alone = encode(one, [text])
        assert whole.text[row].as_py() == alone.text[0].as_py()
        for mine, other in zip(encoded_row(whole, row), encoded_row(alone, 0), strict=True):
            assert (mine is None and other is None) or np.array_equal(mine, other)  # type: ignore[arg-type]


@given(columns)
def test_the_text_column_can_be_inverted(texts: list[str]) -> None:
    one = codec("p1000")
    encoded = encode(one, texts)
    for row, text in enumerate(texts):
        first, last = encoded.number_rows[row : row + 2]
        parts = encoded.text[row].as_py().split("[NUM]")
        literals = [encoded.literals.at(index) for index in range(first, last)]
        assert len(parts) == len(literals) + 1
        whole = "".join(map("".join, zip(map(unescape, parts), [*literals, ""], strict=True)))
        assert whole == text


@given(columns)
def test_no_text_is_taken_for_a_special_token(texts: list[str]) -> None:
    one = codec("p1000")
    encoded = encode(one, texts)
    for row in range(len(texts)):
        tokens, starts, lengths, _ = encoded_row(encoded, row)
        inside = np.zeros(len(tokens), np.bool_)
        for start, length in zip(starts, lengths, strict=True):
            inside[start : start + length] = True
        assert (tokens[~inside] >= one.text_first).all()
        assert (tokens[inside] >= one.number_first).all()
        assert (tokens[inside] < one.text_first).all()
        assert (tokens < one.vocabulary_size).all()


def test_a_sliced_arrow_column_is_read_from_its_offset() -> None:
    one = codec("p1000")
    whole = pa.array(["1 a", "-2.5 bc", "", "[NUM] 3"], pa.string())
    data = Texts.of(whole.slice(1))
    assert decoded(one, one.encode(data, one.find(data))) == ["-2.5 bc", "", "[NUM] 3.0"]


def test_no_rows_give_empty_columns() -> None:
    encoded = encode(codec("p1000"), [])
    assert encoded.token_rows.tolist() == encoded.number_rows.tolist() == [0]
    assert len(encoded.tokens) == len(encoded.numbers) == len(encoded.text) == 0


def test_an_example_reads_as_the_documentation_says() -> None:
    one = codec("p1000", "bytes")
    encoded = encode(one, ["[1.5, -2] [NUM]"])
    assert encoded.text.to_pylist() == ["[[NUM], [NUM]] [\\NUM]"]
    assert encoded.numbers.tolist() == [1.5, -2.0]
    tokens, starts, lengths, _ = encoded_row(encoded, 0)
    assert (starts.tolist(), lengths.tolist()) == ([1, 6], [3, 3])
    assert one.written_number(tokens[1:4]) == "[NUM:+][NUM:150][NUM:E-2]"
    assert one.decode(*encoded_row(encoded, 0)) == "[1.5, -2.0] [NUM]"


def test_a_number_without_a_value_is_written_by_its_tokens() -> None:
    one = codec("fp15")
    encoded = encode(one, ["x = 1e400, [NUM:+OVERFLOW]"])
    assert decoded(one, encoded) == ["x = [NUM:+OVERFLOW], [NUM:+OVERFLOW]"]
    assert one.decode_numbers(np.array([99_999], np.uint32), np.array([1], np.int32)).failures == [
        Failure.MALFORMED
    ]


@each(
    ("scheme", "tokens", "expected"),
    [
        ("digits", "8 8 3 e", "883e"),
        ("digits", "8 8 3 , 5", "883,5"),
        ("digits:3", "883 .", "883."),
        ("digits:3,reverse=yes", "345 12 e", "12345e"),
        ("numvalue", "8 8 3", "883"),
        ("numvalue", "<num> 1 . 5 e 1 2", "1.5e12"),
        ("numerologic", "{ 3 : 8 8 3", "883"),
        ("p1000", "602 E-1", "[NUM:602][NUM:E-1]"),  # tokens without characters
    ],
)
def test_what_is_no_number_is_read_by_its_characters(
    scheme: str, tokens: str, expected: str
) -> None:
    """Without a grammar, a model can write malformed numbers; their characters count as text."""
    one = codec(scheme)
    names = one.scheme.vocabulary()
    local = np.array([names.index(token) for token in tokens.split()], np.uint32)
    length = np.array([len(local)], np.int32)
    assert one.decode_numbers(local, length).failures == [Failure.MALFORMED]
    assert one.decode(local + np.uint32(one.number_first), 0 * length, length) == expected


def test_a_special_token_within_the_text_is_an_error() -> None:
    nothing = np.empty(0, np.int32)
    for token in (0, codec("p10").number_first):
        with pytest.raises(ValueError, match="expected a text token"):
            codec("p10").decode(np.array([token], np.uint32), nothing, nothing)


@given(st.text("[]\\NUMPADEKS:", max_size=40))
def test_the_escape_of_special_tokens_can_be_undone(text: str) -> None:
    written: str = encode(codec("p10", "bytes"), [text]).text[0].as_py()
    assert unescape(written) == text
    assert re.search(r"\[(NUM|PAD|END|MASK)", written) is None


# --- marks -------------------------------------------------------------------------------------


@st.composite
def marked(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """Generate texts, and for each a code point where an answer begins, or -1."""
    some = draw(columns)
    return some, [draw(st.integers(-1, len(text))) for text in some]


def _outside_numbers(spans: Spans, marks: list[int]) -> list[int]:
    """Replace marks within numbers by -1."""
    starts, ends, *_ = spans
    return [-1 if ((starts < mark) & (mark < ends)).any() else mark for mark in marks]


@given(marked())
@example((["see [NUM]", "1.5 2", "[\\\\PAD]", "[MASK", ""], [5, 0, 2, 2, 0]))
@example((["12 3", "4", "ab"], [2, 1, 2]))
@each("text", TEXT_TOKENIZER_SPECS)
def test_a_token_begins_at_every_mark(text: str, given_: tuple[list[str], list[int]]) -> None:
    texts, points = given_
    one = codec("digits", text)
    data = column(texts)
    rows = data.rows.tolist()
    marks = [
        -1 if point < 0 else rows[row] + len(texts[row][:point].encode())
        for row, point in enumerate(points)
    ]
    spans = one.find(data)
    marks = _outside_numbers(spans, marks)
    plain = one.encode(data, spans)
    encoded = one.encode(data, spans, np.array(marks, np.int32))
    assert decoded(one, encoded) == texts
    assert encoded.text.to_pylist() == plain.text.to_pylist()
    assert encoded.numbers.tolist() == plain.numbers.tolist()
    assert [mark >= 0 for mark in marks] == (encoded.marks >= 0).tolist()

    for row, (mark, place) in enumerate(zip(marks, encoded.marks.tolist(), strict=True)):
        if mark < 0:
            continue
        tokens, starts, lengths, _ = encoded_row(encoded, row)
        before = starts < place
        assert (starts[before] + lengths[before] <= place).all()
        prefix = one.decode(tokens[:place], starts[before], lengths[before])
        content = texts[row].encode()[: mark - rows[row]].decode()
        # If the mark is within "[NUM", the escape of the whole is before the mark.
        opening = content.rfind("[") + 1
        assert prefix in (content, f"{content[:opening]}\\{content[opening:]}")


# --- Hugging Face ------------------------------------------------------------------------------


@cache
def read_by_huggingface(scheme: str, text: str) -> Tokenizer:
    """Read the codec's ``tokenizer.json`` with Hugging Face's library."""
    content = tokenizer_json(codec(scheme, text))
    assert content is not None
    return Tokenizer.from_str(content.decode())


@settings(max_examples=20)
@given(columns)
@example(["[NUM] 1.5 [NUM:-] -2", "[PAD]1[MASK]2[END]", "the 5 the pressure of the air 6 the"])
@each("text", TEXT_TOKENIZER_SPECS)
@each("scheme", TEXT_SCHEMES)
def test_huggingface_reads_the_text_column_as_the_same_tokens(
    scheme: str, text: str, texts: list[str]
) -> None:
    one, theirs = codec(scheme, text), read_by_huggingface(scheme, text)
    encoded = encode(one, texts)
    for row in range(len(texts)):
        tokens, starts, lengths, _ = encoded_row(encoded, row)
        numbers = [
            one.written_number(tokens[start : start + length])
            for start, length in zip(starts, lengths, strict=True)
        ]
        parts = encoded.text[row].as_py().split("[NUM]")
        written = "".join(map("".join, zip(parts, [*numbers, ""], strict=True)))
        assert theirs.encode(written, add_special_tokens=False).ids == tokens.tolist()


@each("scheme", TEXT_SCHEMES)
def test_huggingface_knows_the_special_tokens_by_their_ids(scheme: str) -> None:
    theirs = read_by_huggingface(scheme, "words")
    assert [theirs.token_to_id(token) for token in SPECIALS] == list(range(len(SPECIALS)))
    assert theirs.get_vocab_size() == codec(scheme).vocabulary_size


def test_a_scheme_with_a_value_channel_has_no_tokenizer_json() -> None:
    assert tokenizer_json(codec("xval")) is None


# --- scheme.json -------------------------------------------------------------------------------

CODECS = [
    ("p1000,exponents=-10..10", "words", "none", "thousands"),
    ("p10,digits=5", "bpe:300", "unit", "default"),
    ("digits", "bytes", "signed-log", "xval"),
    ("xval", "words:3", "scale:5", "percent"),
    ("b1999", "words", "affine", "default"),
]


@each("settings_", CODECS)
def test_a_codec_is_what_its_scheme_json_holds(settings_: tuple[str, str, str, str]) -> None:
    one = codec(*settings_)
    again = Codec.from_json(one.to_json())
    assert again.to_json() == one.to_json()
    assert again.digest == one.digest
    assert tokenizer_json(again) == tokenizer_json(one)
    texts = ["the air, 1,234.5 and 23% of -7e-3", "[NUM] äöü 0"]
    assert decoded(again, encode(again, texts)) == decoded(one, encode(one, texts))


def test_different_codecs_have_different_digests() -> None:
    assert len({codec(*settings_).digest for settings_ in CODECS}) == len(CODECS)


def _changed(*path: str, value: Any) -> bytes:
    """Return the scheme.json of a codec with one value changed."""
    content = json.loads(codec("p1000", normalize="scale:5").to_json())
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    assert path[-1] in inner
    inner[path[-1]] = value
    return json.dumps(content).encode()


CHANGED = "without a new revision"


@each(
    ("path", "value", "parts"),
    [
        (("scheme", "revision"), 7, ("'p1000'", "revision 7", "encode the data again")),
        (("numerals", "revision"), 7, ("policy", "revision 7", "Encode the data again")),
        (("normalize", "revision"), 7, ("'scale'", "revision 7", "encode the data again")),
        (("text_tokenizer", "revision"), 7, ("'words'", "revision 7", "encode the data again")),
        (("scheme", "name"), "p2000", ("'p2000'", "this numtok does not have")),
        (("vocabulary", "special"), ["[MASK]", "[PAD]", "[END]"], (CHANGED,)),
        (("vocabulary", "number"), ["+"], (CHANGED,)),
        (("vocabulary", "text"), [], (CHANGED,)),
        (("scheme", "exponents"), "-8..8", (CHANGED,)),
        (("text_tokenizer", "state", "words"), ["the"], (CHANGED,)),
    ],
)
def test_a_scheme_json_that_does_not_fit_is_refused(
    path: tuple[str, ...], value: Any, parts: tuple[str, ...], says: Says
) -> None:
    with pytest.raises(UsageError) as caught:
        Codec.from_json(_changed(*path, value=value))
    says(unlisted(caught, "scheme"), *parts)


@each(
    ("path", "value"),
    [
        (("normalize", "constants"), []),
        (("normalize", "constants"), {}),
        (("normalize", "constants"), {"factor": None}),
        (("normalize", "constants"), {"factor": 0}),
        (("normalize", "constants"), {"factor": -1}),
        (("normalize", "constants"), {"factor": 1, "more": 2}),
        (("normalize", "constants", "factor"), 10**400),
        (("normalize",), None),
        (("scheme",), []),
        (("scheme", "exponents"), [1]),
        (("numerals", "spec"), 3),
        (("numerals", "spec"), None),
        (("numerals", "not_numbers"), "[1]"),
        (("text_tokenizer", "state"), []),
        (("text_tokenizer", "state", "words"), "the"),
        (("text_tokenizer", "state", "words"), [1]),
        (("vocabulary",), []),
        (("vocabulary", "text"), [1]),
    ],
)
def test_a_scheme_json_of_other_types_is_damaged(
    path: tuple[str, ...], value: Any, says: Says
) -> None:
    with says.raises(StoreError, "scheme.json is damaged: ", "numtok verify"):
        Codec.from_json(_changed(*path, value=value))


@each("content", [b"", b"[]", b"[" * 100_000, b'{"format": 1}', b'{"format": NaN}', b'"\\ud800"'])
def test_what_is_no_scheme_json_is_damaged(content: bytes) -> None:
    with pytest.raises(StoreError, match=r"^scheme\.json is damaged"):
        Codec.from_json(content)


def test_a_setting_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match=r"exponents must be a range .*\(got 'None'\)"):
        Codec.from_json(_changed("scheme", "exponents", value=None))


def test_a_scheme_json_of_another_format_is_refused(says: Says) -> None:
    with says.raises(StoreError, "scheme.json has format 2", "up to 1"):
        Codec.from_json(_changed("format", value=2))
    with says.raises(StoreError, "scheme.json is damaged"):
        Codec.from_json(b"{}")


def containers(texts: list[str]) -> dict[str, Any]:
    """Return the same texts in all containers of strings; slices have other texts around them."""
    plain = pa.array(texts, pa.string())
    framed = pa.array(["before 1", *texts, "behind 2"], pa.string())
    half = len(texts) // 2
    made: dict[str, Any] = {
        "list": texts,
        "tuple": tuple(texts),
        "chunks": pa.chunked_array([plain[:half], plain[half:]], pa.string()),
        "no chunks": plain if texts else pa.chunked_array([], pa.string()),
        "slice of chunks": pa.chunked_array([framed, framed]).slice(1, len(texts)),
        "polars": polars.Series(texts, dtype=polars.String),
        "polars to Arrow": polars.Series(texts, dtype=polars.String).to_arrow(),
        "pandas": pandas.Series(texts, dtype="string[pyarrow]"),
        "pandas with an index": pandas.Series(texts, range(7, 7 + len(texts)), dtype=object),
        "numpy": np.array(texts, object),
        "large chunks": pa.chunked_array([plain[:half], plain[half:]]).cast(pa.large_string()),
    }
    for kind in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ):
        made[str(kind)] = plain.cast(kind)
        made[f"slice of {kind}"] = framed.cast(kind).slice(1, len(texts))
    return made


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=5))
@example(["", "A 1"])
@example(["the 1st text of more than twelve bytes", "B 2"])
def test_texts_are_the_same_whatever_holds_them(texts: list[str]) -> None:
    for name, container in containers(texts).items():
        data, rows = Texts.of(container)
        assert (data.dtype, rows.dtype) == (np.dtype("u1"), np.dtype("i4")), name
        assert Texts(data, rows).strings() == texts, name


def test_the_encoding_is_the_same_whatever_holds_the_texts() -> None:
    one, texts = codec("p1000"), ["A is 1", "", "B is 2 and 3.5"]
    first = encode(one, texts)
    for name, container in containers(texts).items():
        column = Texts.of(container)
        other = one.encode(column, one.find(column))
        assert other.tokens.tolist() == first.tokens.tolist(), name
        assert other.text.to_pylist() == first.text.to_pylist(), name


@each(
    ("texts", "words"),
    [
        (pa.array(["a", None, None]), ["text 1", "got 2"]),
        (pa.array([None, "a"], pa.large_string()), ["text 0", "null"]),
        (pa.array(["a", "b", None]).dictionary_encode(), ["text 2", "null"]),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None])),
            ["text 1", "null"],
        ),
        (pa.chunked_array([["a"], ["b", None]]), ["text 2", "null"]),
        (["a", None], ["text 1", "null"]),
        ([None], ["text 0", "null"]),
        (pa.array([1, 2]), ["int64", "strings"]),
        (pa.array([b"a"]), ["binary", "strings"]),
        (pa.array([["a"]]), ["list<", "strings"]),
        ([1, "a"], ["text 0", "must be a string", "int"]),
        (["a", None, float("nan")], ["text 2", "must be a string", "float"]),
        (["a", "\ud800"], ["text 1", "UTF-8", "\\ud800"]),
        ("one text", ["one string", "[text]"]),
        (5, ["strings", "list of str"]),
        (np.array([1.5]), ["double", "strings"]),
        (np.array([["a"]]), ["strings", "1-dimensional"]),
        (polars.Series("note", ["a", None]), ["column 'note'", "text 1", "null"]),
        (pandas.Series(["a", np.nan], name="note"), ["column 'note'", "text 1", "null"]),
        (pandas.Series(["a", 5], name="note"), ["column 'note'", "text 1", "int"]),
        (polars.DataFrame({"note": ["a"]}), ["data frame", "columns"]),
        (pandas.DataFrame({"note": ["a"]}), ["data frame", "columns"]),
    ],
)
def test_what_is_no_column_of_strings_is_refused(texts: Any, words: list[str]) -> None:
    with pytest.raises(DataError) as error:
        Texts.of(texts)
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)


def test_more_bytes_than_offsets_can_count_are_refused_and_a_slice_of_them_is_read() -> None:
    size = 1 << 30
    bounds = np.array([0, size, 2 * size, 2 * size + 3], np.int64)
    data = pa.py_buffer(np.zeros(int(bounds[-1]), np.uint8))  # zeros that are never read or written
    whole = pa.LargeStringArray.from_buffers(3, pa.py_buffer(bounds), data)
    with pytest.raises(DataError, match=r"at most 2,147,483,647 .*2,147,483,651.*slices"):
        Texts.of(whole)
    assert Texts.of(whole.slice(2)).rows.tolist() == [0, 3]


def unit(literal: str) -> Decimal:
    """Return the value of one unit of the last nonzero digit."""
    _, _, power = Decimal(literal).normalize().as_tuple()
    assert isinstance(power, int)
    return Decimal(1).scaleb(power)


@given(
    st.lists(
        st.one_of(
            st.integers(-(10**12), 10**12).map(str),
            st.integers(-(10**6), 10**6).map(str),
            st.decimals(-1000, 1000, places=2).map(str),
            st.decimals(-100, 100, places=6).map("{:f}".format),
            st.floats(0.5, 1024, width=32).map("{:.17f}".format),
            st.floats(-1e300, 1e300).map(repr),
            st.integers(10**15, 10**19 - 1).map("{}e-30".format),
            st.integers(2**53, 2**63).map(str),
            st.sampled_from(["0", "1200000000", "12345678", "16777217", "0.1", "99999.9", "1e40"]),
        ),
        min_size=1,
        max_size=8,
    )
)
@example(["4.62786483764648438"])
@example(["0.001001"])
@example(["9007199254740993", "123456789012345678", "0.1000000000000000056", "3e-324"])
@each(
    ("scheme", "normalize"),
    [
        ("xval", "none"),
        ("xval", "scale:5"),
        ("xval", "affine"),
        ("xval", "signed-log"),
        ("numgpt", "none"),
        ("bits", "none"),
        ("fone,decimals=3", "none"),
    ],
)
def test_numbers_that_their_channel_does_not_hold_are_counted(
    scheme: str, normalize: str, literals: list[str]
) -> None:
    one = codec(scheme, normalize=normalize)
    encoded = encode(one, [" ".join(literals)])
    assert encoded.channel is not None
    tokens = encoded.tokens[encoded.number_start].astype(np.int64) - one.number_first
    assert isinstance(one.scheme, ChannelScheme)
    held = one.normalizer.inverse(one.scheme.factors[tokens] * encoded.channel.astype(np.float64))
    lost = 0
    for literal, value, outcome in zip(literals, held.tolist(), encoded.outcomes, strict=True):
        if outcome == Outcome.NUMBER:
            last = unit(literal) if Decimal(literal) else Decimal(1)
            lost += abs(Decimal(value) - Decimal(literal)) > last / 2
    assert encoded.inexact == lost


def test_a_scheme_that_rounds_digits_counts_none() -> None:
    assert encode(codec("p10"), ["123456789"]).inexact == 0
    assert encode(codec("p10"), ["9007199254740993"]).inexact == 0


@each("scheme", ["digits", "native", "numerologic", "triads", "tst"])
def test_text_schemes_count_values_that_the_column_numbers_does_not_hold(scheme: str) -> None:
    held = ["9007199254740992", "0.1", "1e23", "3.141592653589793", "1e400", "1e-400", "12"]
    rounded = ["9007199254740993", "-9007199254740995", "0.1234567890123456789"]
    literals = [*held, *rounded]
    encoded = encode(codec(scheme), [" ".join(literals)])
    wrong = [
        abs(Decimal(value) - Decimal(literal)) > unit(literal) / 2
        for literal, value in zip(literals, encoded.numbers.tolist(), strict=True)
        if literal not in ("1e400", "1e-400")
    ]
    assert encoded.inexact == sum(wrong) == len(rounded)
