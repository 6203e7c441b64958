"""Text tokenizers: they are lossless, and Hugging Face's library reads the same tokens."""

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from numtok.encoding.byte_alphabet import ALPHABET, from_alphabet, to_alphabet
from numtok.encoding.codec import Codec
from numtok.encoding.fit_codec import text_tokenizer_of
from numtok.encoding.normalizers.base import no_scaling
from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.segments import Segments, cut
from numtok.encoding.text_tokenizers._contract import SAMPLE
from numtok.encoding.text_tokenizers._words import WORD_PATTERN, WordTable
from numtok.encoding.text_tokenizers.base import (
    TEXT_TOKENIZERS,
    FittedTokenizer,
    NumberTokens,
)
from numtok.encoding.text_tokenizers.file import File
from numtok.encoding.texts import Texts
from numtok.encoding.tokenizer_json import tokenizer_json
from numtok.errors import DataError, UsageError
from numtok.numerals.column import Literals
from numtok.numerals.policy import NumeralPolicy
from numtok.registry import settings_of, spec_of
from tests.cases import each
from tests.messages import Says

ROOT = Path(__file__).resolve().parents[3]
LONG = settings(settings.get_profile("long"))
WORDS = ["words", "words:0", "words:40", "structure", "structure:40"]
SPECS = [*WORDS, "bytes", "bpe:256", "bpe:300", "file"]


@cache
def tokenizer(spec: str) -> FittedTokenizer:
    """Return a tokenizer fitted on the sample; ``file`` is loaded from another one's state."""
    if spec == "file":
        return TEXT_TOKENIZERS.build("file,sha256=0").load(tokenizer("bpe:300").state())
    return TEXT_TOKENIZERS.build(spec).fit(Texts.of(SAMPLE))


@cache
def huggingface(spec: str) -> Tokenizer:
    """Return the same tokenizer, read by Hugging Face's library."""
    return Tokenizer.from_str(json.dumps(tokenizer(spec).huggingface()))


characters = st.one_of(
    st.sampled_from(list("ab_ 09[]'\":-\\.,\n\t\x00\x7fßé日🙂\u00a0\u2212\u200d")),
    st.characters(codec="utf-8"),
)
texts = st.one_of(
    st.text(characters),
    st.lists(
        st.sampled_from([*SAMPLE, "[NUM]", "[\\NUM]", "[MASK]", " the", "the ", "'m'", ": "])
    ).map("".join),
)
columns = st.lists(texts, max_size=6)


def check(spec: str, column: list[str]) -> None:
    """Check that the tokens of every piece decode to it and equal those of Hugging Face."""
    fitted = tokenizer(spec)
    ids, bounds = fitted.encode(Texts.of(column))
    assert len(bounds) == len(column) + 1
    assert bounds[0] == 0
    assert bounds[-1] == len(ids)
    assert ids.dtype == np.uint32
    for index, text in enumerate(column):
        own = ids[bounds[index] : bounds[index + 1]]
        assert fitted.decode(own) == text.encode()
        # Text is never read as one of Hugging Face's own special tokens.
        assert huggingface(spec).encode(text, add_special_tokens=False).ids == own.tolist()


@given(columns)
@each("spec", SPECS)
def test_every_text_comes_back_and_huggingface_reads_the_same(spec: str, column: list[str]) -> None:
    check(spec, column)


@pytest.mark.slow
@pytest.mark.parametrize("spec", SPECS)
@LONG
@given(columns)
def test_every_text_comes_back_and_huggingface_reads_the_same_for_many(
    spec: str, column: list[str]
) -> None:
    check(spec, column)


PIECE = st.sampled_from(
    [*SAMPLE, ", 'm': ", "[NUM]", "[", "[\\NUM]", " [MASK", "]", " the", "", "é", " "]
)


@given(st.lists(st.lists(PIECE, min_size=1, max_size=4), min_size=1, max_size=4), st.data())
@each("dtype", [np.uint16, np.uint32])
@each("spec", ["words:40", "structure:40"])
def test_words_are_woven_as_four_passes_do(
    spec: str, dtype: Any, rows: list[list[str]], data: st.DataObject
) -> None:
    """Each row has a number ``7``, of any number of tokens, between its pieces."""
    texts = ["7".join(row).encode() for row in rows]
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    # A "7" within a piece is not one of the numbers.
    ends = [
        begin + len("7".join(row[: k + 1]).encode()) + 1
        for begin, row in zip(bounds.tolist(), rows, strict=False)
        for k in range(len(row) - 1)
    ]
    lengths = data.draw(st.lists(st.integers(0, 3), min_size=len(ends), max_size=len(ends)))
    whole = np.frombuffer(b"".join(texts), np.uint8)
    segments = Segments(
        data=whole,
        bounds=bounds,
        limits=bounds[1:],
        counts=np.array([len(row) - 1 for row in rows], np.int32),
        starts=np.array(ends, np.int32) - np.int32(1),
        ends=np.array(ends, np.int32),
        literals=Literals.of(["7"] * len(ends)),
    )
    ids = np.arange(sum(lengths), dtype=np.uint32)
    numbers = NumberTokens(ids, np.array(lengths, np.int32), 3)
    fitted = tokenizer(spec)
    assert type(fitted).weave is not FittedTokenizer.weave
    quick = fitted.weave(segments, numbers, 900, dtype)
    plain = FittedTokenizer.weave(fitted, segments, numbers, 900, dtype)
    assert quick.tokens.dtype == plain.tokens.dtype == dtype
    for ours, theirs in zip(quick, plain, strict=True):
        assert ours.tolist() == theirs.tolist()


# --- words -------------------------------------------------------------------------------------


def test_words_are_kept_by_frequency_and_then_by_their_bytes() -> None:
    fitted = TEXT_TOKENIZERS.build("words").fit(Texts.of(["bb aa", " bb aa", " cc x", " cc x dd"]))
    # " aa", " cc" and " x" occur twice; single bytes and words seen once are left out.
    assert isinstance(fitted, WordTable)
    assert fitted.words == (" aa", " cc", " x")


def test_a_word_takes_the_one_space_before_it() -> None:
    text = "a the  the, the"
    fitted = tokenizer("words")
    names = fitted.vocabulary()
    found = [names[token] for token in fitted.encode(Texts.of([text])).ids]
    assert found[0] == "a"
    assert found[-1] == " the"
    assert WORD_PATTERN.startswith(" ?")


def test_a_word_longer_than_the_limit_is_not_learnt_but_written() -> None:
    long = "x" * 65
    fitted = TEXT_TOKENIZERS.build("words").fit(Texts.of([long, long]))
    assert len(fitted.vocabulary()) == 256
    assert fitted.decode(fitted.encode(Texts.of([long])).ids) == long.encode()


def test_more_distinct_words_than_the_first_table_holds_are_all_counted() -> None:
    words = [f" w{number}" for number in range(40_000)]
    fitted = TEXT_TOKENIZERS.build("words:100000").fit(Texts.of(["".join(words), "".join(words)]))
    assert isinstance(fitted, WordTable)
    assert fitted.words == tuple(sorted(words))


def test_a_vocabulary_with_a_word_twice_is_refused() -> None:
    for words in (["ab", "ab"], ["ab", ""]):
        with pytest.raises(ValueError, match="distinct and not empty"):
            WordTable(words)


@given(st.binary())
def test_the_byte_alphabet_can_be_undone(content: bytes) -> None:
    assert from_alphabet(to_alphabet(content)) == content


def test_the_byte_alphabet_is_that_of_huggingface() -> None:
    from tokenizers import pre_tokenizers

    assert sorted(ALPHABET) == sorted(pre_tokenizers.ByteLevel.alphabet())


# --- structure ---------------------------------------------------------------------------------

ORBITS = (
    "{'description': {'planet0': {'m': 2.38, 'a': 2.96, 'e': 1.73}, 'planet1': {'m': 1.35, "
    "'a': 2.96, 'e': 1.73}, 'stepsize': 0.2}, 'data': [[[2.60, -0.75], [0.81, 0.42]], "
    "[[2.63, -0.63], [0.70, 0.60]]]}"
)
"""The sample of xVal, Section 3.3, without its dots."""


def split(spec: str, text: str) -> list[list[str]]:
    """Return the tokens of each piece between numbers, with a vocabulary of the same text."""
    column = Texts.of(pa.array([text], pa.string()))
    found = cut(column, column.find(NumeralPolicy()))
    fitted = TEXT_TOKENIZERS.build(spec).fit(Texts.of(found.strings() * 2))
    names = fitted.vocabulary()
    ids, bounds = fitted.encode(found)
    return [[names[token] for token in ids[a:b]] for a, b in pairwise(bounds.tolist())]


def test_a_key_with_its_quotes_and_its_colon_is_one_token() -> None:
    assert split("structure", "{'planet0': {'m': 2.4, 'a': 3}}") == [
        ["{", "'planet0': ", "{", "'m': "],
        [", ", "'a': "],
        ["}}"],
    ]


def test_the_sample_of_the_paper_has_its_structure_tokens() -> None:
    flat = {
        name: [token for piece in split(name, ORBITS) for token in piece]
        for name in ("words", "structure")
    }
    assert {name: len(tokens) for name, tokens in flat.items()} == {"words": 38, "structure": 31}
    assert set(flat["structure"]) == {
        "'description': ", "'planet0': ", "'planet1': ", "'m': ", "'a': ", "'e': ", "'stepsize': ",
        "'data': ", "{", ", ", "}, ", "[[[", "], [", "]], [[", "]]]}",
    }  # fmt: skip


@each(
    ("text", "tokens"),
    [
        ("""{"a b-c/d.e_f": [""", ["{", '"a b-c/d.e_f": ', "["]),
        ("'é':'x'", ["'é':", "'", "x", "'"]),
        ("'a':  ]", ["'a': ", " ]"]),
        ("'a': None", ["'a':", " None"]),  # a word takes the space before it
        ("don't say 'a': ", ["don", "'", "t", " say", " ", "'a': "]),
        ("'a\": 'b' : ''::", ["'", "a", "\": '", "b", "' : ''::"]),
        ("'a, b': ", ["'", "a", ",", " b", "': "]),
    ],
)
def test_what_is_a_key_and_what_is_none(text: str, tokens: list[str]) -> None:
    assert split("structure", text) == [tokens]


@each("spec", ["words", "structure"])
def test_a_size_that_cannot_be_is_refused(spec: str, says: Says) -> None:
    with says.raises(UsageError, f"{spec}: size ", "0 to 1,000,000", "-1"):
        TEXT_TOKENIZERS.build(f"{spec}:-1")


# --- reproducible vocabularies -----------------------------------------------------------------

TRAIN = """if True:
    import hashlib, json, sys
    from numtok.encoding.text_tokenizers.base import TEXT_TOKENIZERS
    from numtok.encoding.texts import Texts
    # Many words, most of them equally frequent, so that ties have to be broken.
    words = [f"{'aeiou'[n % 5]}{'kstnhm'[n // 5 % 6]}{'aeiou'[n // 30 % 5]}{'kstr'[n // 150 % 4]}"
             for n in range(600)]
    texts = [" ".join(words[k::7]) + " " for k in range(7)] * 3
    sample = Texts.of(texts)
    for spec in ("bpe:300", "bpe:600", "structure", "words:50"):
        fitted = TEXT_TOKENIZERS.build(spec).fit(sample)
        content = json.dumps([fitted.vocabulary(), fitted.state()]).encode()
        print(spec, len(fitted.vocabulary()), hashlib.sha256(content).hexdigest())
"""


@pytest.mark.integration
@pytest.mark.slow
def test_fresh_processes_train_identical_vocabularies() -> None:
    outputs = []
    for seed, threads in (("1", "1"), ("2", "4")):
        environment = os.environ | {
            "PYTHONHASHSEED": seed,
            "RAYON_NUM_THREADS": threads,
            "TOKENIZERS_PARALLELISM": "true" if threads == "4" else "false",
        }
        done = subprocess.run(
            [sys.executable, "-c", TRAIN],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.append(done.stdout.splitlines())
    assert outputs[0] == outputs[1]
    assert [line.split()[:2] for line in outputs[0][::3]] == [
        ["bpe:300", "300"],
        ["words:50", "306"],
    ]


# --- a given tokenizer.json --------------------------------------------------------------------


def _usable() -> dict[str, Any]:
    return json.loads(json.dumps(tokenizer("bpe:300").huggingface()))  # type: ignore[no-any-return]


def _added(special: bool) -> dict[str, Any]:
    token = {"id": 300, "content": "<extra>", "single_word": False, "lstrip": False}
    return token | {"rstrip": False, "normalized": False, "special": special}


def _stored(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(content), "utf-8")
    return path


def _codec(folder: Path, content: dict[str, Any]) -> Codec:
    settings, text = File.read(_stored(folder, content))
    return Codec(
        scheme=SCHEMES.build("p1000"),
        policy=NumeralPolicy(),
        normalizer=no_scaling(),
        text_tokenizer=settings,
        text=text,
    )


def _merged(whole: Any, change: Any) -> Any:
    if not isinstance(whole, dict) or not isinstance(change, dict):
        return change
    return whole | {key: _merged(whole.get(key), value) for key, value in change.items()}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"model": {"type": "WordPiece"}}, "it is not a byte-level BPE (model 'WordPiece')"),
    ({"decoder": None}, "it is not a byte-level BPE (model 'BPE')"),
    ({"model": None}, "it is not a tokenizer.json (no model in it)"),
    ({"model": {"vocab": []}}, "its vocabulary has no token for any "),
    ({"model": {"dropout": 0.1}}, "its tokens are random (dropout is set)"),
    ({"pre_tokenizer": {"type": "Whitespace"}}, "it changes or drops characters"),
    ({"pre_tokenizer": None}, "it changes or drops characters"),
    ({"model": {"merges": [["a", "surely not there"]]}}, "it cannot be read ("),
    ({"model": {"vocab": {"a b": 300}}}, "it cannot be read ("),
    ({"normalizer": {"type": "NFKC"}}, "it changes the text first (a normalizer is set)"),
    (
        {"added_tokens": [_added(special=False) | {"lstrip": True}]},
        "it has added tokens that strip the spaces around them",
    ),
    ({"pre_tokenizer": {"add_prefix_space": True}}, "it adds a space before each piece"),
]


@each(("change", "objection"), REFUSED)
def test_a_tokenizer_that_loses_text_is_refused(
    change: dict[str, Any], objection: str, tmp_path: Path
) -> None:
    path = _stored(tmp_path, _merged(_usable(), change))
    with pytest.raises(UsageError) as caught:
        File.read(path)
    told = str(caught.value)
    assert told.startswith(f"text tokenizer {path} is not lossless: {objection}")
    assert told.endswith("byte-level BPE tokenizer.json, or words, bpe:N or bytes")
    assert "\n" not in told


def test_a_text_with_a_byte_that_the_tokenizer_lacks_is_refused(tmp_path: Path, says: Says) -> None:
    """Vocabularies of published models lack control bytes that are not in their training data."""
    content = _usable()
    for letter in (to_alphabet(b"\xff"), to_alphabet(b"\n"), to_alphabet(b"\x1b")):
        del content["model"]["vocab"][letter]
    codec = _codec(tmp_path, content)
    text = codec.text
    all_texts = ["sum 7 \t日", "a\nb 1", "plain", "x\x1b[0m\n 2"]
    problems = text.unwritable(Texts.of(all_texts))
    assert list(problems) == [1, 3]
    assert "0x0A" in problems[1] and "0x1B" in problems[3]
    assert text.unwritable(Texts.of(pa.array(all_texts).slice(2, 1))) == {}
    whole = Texts.of(all_texts)
    with says.raises(DataError, "text 1:", "0x0A"):
        codec.encode(whole, codec.find(whole))
    kept = Texts.of(all_texts[:1])
    assert codec.encode(kept, codec.find(kept)).text.to_pylist() == ["sum [NUM] \t日"]


def test_a_tokenizer_as_those_of_qwen_serves(tmp_path: Path) -> None:
    """Text is not normalized to NFC, and text that spells an added token becomes that token."""
    content = _usable()
    content.update(normalizer={"type": "NFC"}, added_tokens=[_added(special=False)])
    codec = _codec(tmp_path, content)
    settings, text = File.of_model(str(tmp_path))
    assert settings == codec.text_tokenizer
    ids = text.encode(Texts.of(["e\u0301 <extra> x"])).ids
    assert 300 in ids.tolist()
    assert text.decode(ids) == "e\u0301 <extra> x".encode()
    written = Tokenizer.from_str((tokenizer_json(codec) or b"").decode())
    assert written.encode("a<extra>").ids[-1] == codec.text_first + 300


@each(
    ("source", "parts"),
    [
        ("{0}", ("tokenizer.json not found", "save_pretrained")),
        ("{0}/nothing/there", ("folder not found", "Check the path")),
        ("{0}/file", ("is a file", "config.json")),
        ("some/model", ("some/model", "folder not found", "no network", "hf download some/model")),
    ],
)
def test_a_model_without_a_tokenizer_is_refused(
    source: str, parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.utils._http.get_session", _no_network)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as caught:
        text_tokenizer_of("hf:" + source.format(tmp_path))
    assert all(part in str(caught.value) for part in parts) and "\n" not in str(caught.value)


def test_a_model_of_the_hub_is_read_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.utils._http.get_session", _no_network)
    model, commit = tmp_path / "models--some--model", "0" * 40
    (model / "snapshots" / commit).mkdir(parents=True)
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text(commit)
    (model / "snapshots" / commit / "README.md").touch()
    with pytest.raises(UsageError, match=r"tokenizer\.json not found"):
        text_tokenizer_of("hf:some/model")
    path = _stored(model / "snapshots" / commit, _usable())
    assert text_tokenizer_of("hf:some/model")[0] == File.read(path)[0]


def _no_network() -> NoReturn:
    raise OSError("Name or service not known")


def _splitting(pattern: str) -> dict[str, Any]:
    content = _usable()
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    steps = [split | {"invert": False}, content["pre_tokenizer"]]
    return content | {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}


@pytest.mark.parametrize("pattern", ["(a+)+$", "(?:[0-9]|[0-9][0-9])*x", "((((\\s+)+)+)+)+q"])
def test_a_pattern_that_goes_back_and_forth_is_refused(
    pattern: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = _stored(tmp_path, _splitting(pattern))
    with pytest.raises(UsageError) as caught:
        File.read(path)
    assert str(caught.value).startswith(
        f"text tokenizer {path} is not lossless: its pattern fails on a text ("
    )
    assert capfd.readouterr() == ("", "")  # the library prints nothing


def test_a_text_on_which_a_pattern_gives_up_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Checks at load time do not use this letter.
    _, given = File.read(_stored(tmp_path, _splitting("(q+)+$")))
    assert given.encode(Texts.of(["qqq", "a b"])).bounds[-1] > 0
    with pytest.raises(UsageError, match="pattern of the text tokenizer fails on a text"):
        given.encode(Texts.of(["q" * 50 + "!", "b"]))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("id", [10**9, 4 * 10**9, 900])
def test_an_id_far_from_the_others_is_refused(id: int, tmp_path: Path) -> None:
    content = _usable()
    first = next(token for token, own in content["model"]["vocab"].items() if own == 299)
    content["model"]["vocab"][first] = id
    path = _stored(tmp_path, content)
    with pytest.raises(UsageError) as caught:
        File.read(path)
    told = str(caught.value)
    assert f"text tokenizer {path}: " in told and "at most 855" in told and f"got {id:,}" in told
    content["model"]["vocab"][first] = 700
    _stored(tmp_path, content)
    assert len(File.read(path)[1].vocabulary()) == 701


@each("content", ["[]", "3", '{"model": []}', '{"model": {"type": "BPE"}}'])
def test_a_json_file_that_is_no_tokenizer_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content, "utf-8")
    with pytest.raises(UsageError, match="byte-level BPE"):
        File.read(path)


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{", "utf-8")
    with pytest.raises(UsageError) as caught:
        File.read(path)
    told = str(caught.value)
    assert told.startswith(f"text tokenizer {path} is not JSON (")
    assert told.endswith(")")


def test_a_given_tokenizer_is_known_by_its_content_alone(tmp_path: Path) -> None:
    content = json.dumps(_usable() | {"added_tokens": [_added(special=True)]}).encode()
    readings = []
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_bytes(content)
        readings.append(File.read(tmp_path / name))
    (one, fitted), (other, _) = readings
    assert one == other == File(hashlib.sha256(content).hexdigest())
    assert settings_of(one)["sha256"] == one.sha256
    assert spec_of(one) == f"file,sha256={one.sha256}"
    # Text is never read as one of the tokenizer's own special tokens.
    text = "a <extra> b"
    ids = fitted.encode(Texts.of([text])).ids
    assert 300 not in ids
    assert fitted.decode(ids) == text.encode()
    assert fitted.decode(np.array([300], np.uint32)) == b"<extra>"


def test_a_tokenizer_without_its_path_cannot_be_fitted(says: Says) -> None:
    with says.raises(UsageError, "'file'", "--text-tokenizer path/to/tokenizer.json"):
        TEXT_TOKENIZERS.build("file,sha256=0").fit(Texts.of([]))
