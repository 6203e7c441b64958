"""Numbers split by trained merges: by hand, for any literal, and fitted on data."""

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from numtok.data.reading import units
from numtok.encoding import train_numbers
from numtok.encoding.grammar import Grammar
from numtok.encoding.scheme_spec import scheme_of
from numtok.encoding.schemes._contract import CHECKS
from numtok.encoding.schemes._contract_of_tokens import sample
from numtok.encoding.schemes.base import SCHEMES, Encoded, Failure, title_of
from numtok.encoding.schemes.bpe import BpeScheme
from numtok.encoding.train_numbers import NumberSample
from numtok.errors import UsageError
from numtok.evaluation.report_files import read
from numtok.models.decoding import LONGEST, Reader
from numtok.models.model import Model
from numtok.numerals.column import Literals, Numerals
from numtok.registry import settings_of, spec_of
from numtok.stages import eval, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from tests import fakemodels
from tests.cases import each
from tests.encoding.schemes.test_schemes import written
from tests.fakemodels import codec
from tests.messages import Says
from tests.models.test_decoding import Told, shares
from tests.shell import Shell
from tests.stages.test_encode import codec_of, decoded, encode, table, texts

one_thread = fakemodels.one_thread

#: The form of a numeral, independent of numtok.
NUMERAL = re.compile(
    "[-+\u2212]?"
    r"(?:(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)(?:\.[0-9]+|\.(?=[eE]))?|\.[0-9]+)"
    r"(?:[eE][-+]?[0-9]+)?%?"
)
LITERALS = st.from_regex(NUMERAL, fullmatch=True)
CORPUS = {
    repr(round(value, 2)): 3 for value in np.random.default_rng(0).normal(0, 100, 500).tolist()
}


# --- training ----------------------------------------------------------------------------------


def test_merges_of_a_tiny_corpus_by_hand() -> None:
    # Pair counts in 12 12 12 | 112 | 3.12 3.12: "12" 6, "11" 1, "3." 2, ".1" 2, so "12" is first.
    # Then "3." and ".12" tie at 2, and the smaller codes win: "." is before "3". Then "3.12".
    # "1" before "12" occurs once and is not merged.
    learnt = BpeScheme().fit({"12": 3, "112": 1, "3.12": 2})
    assert learnt.merges == "1 2;. 12;3 .12"
    assert learnt.paper_vocabulary_size == 18 + 3
    assert learnt.vocabulary() == (*BpeScheme().pieces, "12", ".12", "3.12", "NAN", "+INF", "-INF")
    assert written(learnt, "112.12") == ["1", "12", ".12"]
    assert written(learnt, "-3.123") == ["-", "3.12", "3"]
    assert written(learnt, "21") == ["2", "1"]


def test_a_count_weighs_as_much_as_the_numbers_it_stands_for() -> None:
    assert BpeScheme(19).fit({"12": 3, "34": 4}).merges == "3 4"
    assert BpeScheme(19).fit({"12": 5, "34": 4}).merges == "1 2"


def test_counts_that_are_scaled_down_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numtok.encoding.schemes.bpe._TRAINED_ON", 100)
    assert BpeScheme(20).fit({"12": 3_000_000, "34": 4_000_000, "5": 10**8}).merges == "3 4;1 2"


def test_of_many_numbers_rare_literals_weigh_as_much_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numtok.encoding.schemes.bpe._TRAINED_ON", 1000)
    rare = {f"{k}.5": 1 for k in range(10_000, 20_000)}  # 1% of all numbers: 10 of 1,000
    learnt = BpeScheme(19).fit({"12": 980_000, "34": 10_000, **rare})
    assert learnt.merges == "1 2"
    assert BpeScheme(20).fit({"12": 980_000, "34": 25_000, **rare}).merges == "1 2;3 4"
    assert BpeScheme(20).fit({"12": 980_000, "34": 5_000, **rare}).merges == "1 2;. 5"


def test_a_piece_that_two_merges_make_is_one_token() -> None:
    learnt = replace(BpeScheme(), merges="1 2;2 3;12 3;1 23")
    assert learnt.pieces[18:] == ("12", "23", "123")
    assert written(learnt, "123") == ["123"]
    assert written(learnt, "-23.123") == ["-", "23", ".", "123"]


@each(
    "literals",
    [{}, {"5": 9}, {"12": 1}, {"nan": 5, "inf": 5}],
)
def test_where_no_pair_comes_twice_characters_are_the_tokens(literals: dict[str, int]) -> None:
    assert BpeScheme().fit(literals) == BpeScheme(merges="")
    assert not BpeScheme().fit(literals).needs_sample


def test_the_size_is_a_limit() -> None:
    assert BpeScheme(40).fit(CORPUS).paper_vocabulary_size == 40
    assert BpeScheme(18).fit(CORPUS) == BpeScheme(18)


@pytest.mark.integration
@settings(max_examples=10)
@given(st.dictionaries(LITERALS, st.integers(1, 5), max_size=30), st.randoms())
def test_the_order_of_the_literals_is_nothing(literals: dict[str, int], rng: random.Random) -> None:
    shuffled = list(literals.items())
    rng.shuffle(shuffled)
    assert BpeScheme(60).fit(dict(shuffled)) == BpeScheme(60).fit(literals)


def test_what_is_learnt_is_kept_with_the_settings_and_is_no_part_of_the_spec() -> None:
    learnt = BpeScheme(30).fit(CORPUS)
    assert spec_of(learnt) == "bpe:30"
    assert SCHEMES.from_settings(json.loads(json.dumps(settings_of(learnt)))) == learnt
    assert not learnt.needs_sample and BpeScheme(30).needs_sample
    assert learnt.fit({"77": 9}) is learnt
    for nothing in (BpeScheme(30), BpeScheme(30).fit({})):
        assert SCHEMES.from_settings(json.loads(json.dumps(settings_of(nothing)))) == nothing


@each(
    ("spec", "parts"),
    [
        ("bpe:17", ("size must be from 18 to 1,000,000",)),
        ("bpe:1000001", ("size must be from 18 to 1,000,000",)),
        ("bpe:many", ("size must be an integer (got 'many')", "an integer")),
        ("bpe,merges=1 2", ("'merges'", "known")),
    ],
)
def test_a_spec_that_cannot_be_is_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with says.raises(UsageError, *parts):
        SCHEMES.build(spec)


# --- writing and reading -----------------------------------------------------------------------


@pytest.mark.integration
@settings(max_examples=10)
@given(st.lists(LITERALS, max_size=20), st.dictionaries(LITERALS, st.integers(1, 9), max_size=20))
def test_any_literal_comes_back_whatever_was_learnt(
    literals: list[str], corpus: dict[str, int]
) -> None:
    scheme = BpeScheme(40).fit(corpus)
    names = scheme.vocabulary()
    encoded = scheme.encode(Numerals.of_literals(literals))
    decoded = scheme.decode(encoded.tokens, encoded.lengths)
    assert decoded.written == tuple(literals)
    assert not decoded.failures.any()
    ends = np.cumsum(encoded.lengths)
    for literal, end, length in zip(literals, ends, encoded.lengths, strict=True):
        tokens = encoded.tokens[end - length : end].tolist()
        assert "".join(names[token] for token in tokens) == literal
        for place, token in enumerate(tokens):
            assert scheme.next(tuple(tokens[:place])).allowed[token]
        assert scheme.next(tuple(tokens)).may_end


def test_numbers_that_are_no_numerals_stand_between_others() -> None:
    scheme = BpeScheme(40).fit(CORPUS)
    literals = ["-inf", "12", "nan", "inf", "3.5", "nan"]
    encoded = scheme.encode(Numerals.of_literals(literals))
    assert scheme.decode(encoded.tokens, encoded.lengths).written == tuple(literals)
    assert encoded.lengths[[0, 2, 3, 5]].tolist() == [1, 1, 1, 1]
    empty: Encoded = scheme.encode(Numerals.of_literals([]))
    assert len(empty.tokens) == len(empty.lengths) == 0


@each("name", list(CHECKS))
def test_the_contract_holds_for_what_was_learnt_from_other_numbers(name: str) -> None:
    CHECKS[name](BpeScheme(300).fit(Counter(sample(BpeScheme(), 1))), 0)


@given(st.text("0123456789+-.eE,%\u2212", max_size=9))
def test_a_numeral_is_what_the_rule_says_and_its_beginnings_go_on(text: str) -> None:
    scheme = SCHEMES.build("digits")
    names = scheme.vocabulary()
    state = scheme.next(())
    for place, character in enumerate(text):
        so_far = text[: place + 1]
        tails = ("", "0", "00", "000", "e0")  # one of these completes any prefix of a numeral
        goes_on = any(NUMERAL.fullmatch(so_far + tail) for tail in tails)
        assert state.allowed[names.index(character)] == goes_on
        if not goes_on:
            return
        state = scheme.next(tuple(names.index(one) for one in so_far))
        assert state.may_end == (NUMERAL.fullmatch(so_far) is not None)


@pytest.mark.parametrize("drawn", [False, True])
def test_whatever_is_read_under_the_grammar_is_a_numeral(drawn: bool) -> None:
    one = replace(codec("digits"), scheme=BpeScheme(60).fit(CORPUS))
    logits = np.random.default_rng(0).normal(size=(200, LONGEST, one.vocabulary_size))
    logits[:, :, one.number_first : one.text_first] += 2  # makes longer numbers likely
    silent = cast(Model, SimpleNamespace(token_head=torch.nn.Identity(), value_head=None))
    reader = Reader(model=silent, codec=one, grammar=Grammar(one.scheme), constrained=True)
    reading = reader.read(Told(logits), shares(200) if drawn else None)
    ended = reading.lengths > 0  # ended within the maximum length
    assert np.count_nonzero(ended) > 150 and len(np.unique(reading.lengths)) > 5
    tokens = reading.tokens[ended]
    decoded = one.scheme.decode(tokens[tokens >= 0].astype(np.uint32), reading.lengths[ended])
    assert set(decoded.failures.tolist()) <= {int(Failure.NONE)}


# --- fitted on data ----------------------------------------------------------------------------


def sampled(parts: Sequence[Sequence[int]], words: Sequence[str]) -> NumberSample:
    """Sample each part of the numbers separately, five at a time, then merge the samples."""
    whole = NumberSample()
    for part in parts:
        found = NumberSample()
        for first in range(0, len(part), 5):
            some = part[first : first + 5]
            keys = np.array([hash_of(number) for number in some], np.uint64)
            found.add(keys, Literals.of([words[number] for number in some]))
        whole.merge(found)
    return whole


def hash_of(number: int) -> int:
    return int.from_bytes(blake2b(str(number).encode(), digest_size=8).digest(), "big")


def test_all_numbers_are_taken_where_they_are_few() -> None:
    found = sampled([[0, 1, 2], [], [3]], ["12", "3.5", "12", "12"])
    assert found.literals() == {"12": 3, "3.5": 1}
    assert (found.count, found.sampled) == (4, 4)
    assert NumberSample().literals() == {}


def test_of_many_numbers_the_same_are_taken_however_they_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train_numbers, "KEPT", 50)
    rng = random.Random(0)
    words = [str(rng.randrange(60)) for _ in range(600)]
    every = list(range(600))
    whole = sampled([every], words)
    assert (whole.count, whole.sampled) == (600, 50)
    kept = sorted(every, key=hash_of)[:50]
    assert whole.literals() == Counter(words[number] for number in kept)
    for size in (7, 50, 333):
        parts = [every[first : first + size] for first in range(0, 600, size)]
        rng.shuffle(parts)
        assert sampled(parts, words).literals() == whole.literals()


def test_a_literal_counts_by_how_often_it_comes_whatever_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(train_numbers, "KEPT", 1000)
    frequent = ["0", "1", "2019", "100"]
    words = [frequent[k % 4] if k % 25 else repr(k / 7) for k in range(20_000)]
    literals = sampled([range(20_000)], words).literals()
    assert sum(literals.values()) == 1000
    for word in frequent:  # 24% of the numbers each
        assert 190 < literals[word] < 290


def test_a_number_of_many_bytes_is_counted_and_not_kept() -> None:
    found = sampled([range(2)], ["1" * 2000, "12"])
    assert (found.count, found.literals()) == (2, {"12": 1})


ROWS = [f"{a / 4} and {a * a % 91} give {-a * 1.5e-7}" for a in range(60)]


def merges_of(artifact: Artifact) -> str:
    scheme = codec_of(artifact).scheme
    assert isinstance(scheme, BpeScheme)
    assert scheme.merges is not None
    return scheme.merges


@pytest.mark.integration
def test_merges_are_learnt_from_the_train_split_alone_whatever_the_order_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "artifacts")
    one, two = texts(tmp_path / "1.jsonl", *ROWS[:20]), texts(tmp_path / "2.jsonl", *ROWS[20:])
    other = texts(tmp_path / "3.jsonl", *["99999.25"] * 50)
    expected = BpeScheme(40).fit(Counter(NUMERAL.findall(" ".join(ROWS))))
    numbers = sum(len(NUMERAL.findall(row)) for row in ROWS)
    for inputs in ([one, two], [two, one], [f"train={one}", f"train={two}", f"test={other}"]):
        artifact = encode(store, *inputs, scheme="bpe:40", force=True)
        assert codec_of(artifact).scheme == expected
        counts = artifact.manifest.counts
        assert (counts["numbers_train"], counts["numbers_learnt_from"]) == (numbers, numbers)
        for row in table(artifact).to_pylist():
            assert decoded(codec_of(artifact), row) in ROWS
    monkeypatch.setattr(units, "UNIT", 300)
    artifact = encode(store, one, two, scheme="bpe:40", force=True, name="small-units")
    assert codec_of(artifact).scheme == expected
    monkeypatch.setattr(train_numbers, "KEPT", 100)
    found = [
        encode(store, one, two, scheme="bpe:40", force=True, workers=workers, name="sampled")
        for workers in (1, 2)
    ]
    assert len({merges_of(artifact) for artifact in found}) == 1
    [counts] = [found[0].manifest.counts]
    assert (counts["numbers_train"], counts["numbers_learnt_from"]) == (numbers, 100)


def test_an_earlier_encoding_cuts_other_data_in_the_same_way(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    first = encode(store, texts(tmp_path / "a.jsonl", *ROWS), scheme="bpe:40")
    later = encode(store, texts(tmp_path / "b.jsonl", *ROWS[:5], "7 of 8"), like=first.ref)
    assert merges_of(later) == merges_of(first) != ""
    assert table(later)["tokens"].to_pylist()[:5] == table(first)["tokens"].to_pylist()[:5]


def test_merges_of_normalised_numbers_are_those_of_what_is_written(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    data = texts(tmp_path / "a.jsonl", "[5.0] [1.0] [1.0] [1.0]", "[1.0] [2.5]")
    artifact = encode(store, data, scheme="bpe:20", normalize="scale:100")
    # 1.0 becomes 20.0. With "20.0" 4, "100.0" 1 and "50.0" 1, ".0" is merged first, then "0.0".
    assert merges_of(artifact) == ". 0;0 .0"


def test_data_without_numbers_to_learn_from_are_written_by_characters(tmp_path: Path) -> None:
    store = Store(tmp_path / "artifacts")
    artifact = encode(store, texts(tmp_path / "a.jsonl", "none at all", "7"), scheme="bpe")
    assert merges_of(artifact) == ""
    assert table(artifact)["number_length"].to_pylist() == [[], [1]]


def test_explain_says_that_nothing_is_learnt_yet(numtok: Shell) -> None:
    rows = json.loads(numtok("explain", "--json", "-60.2", "--scheme", "bpe").out)["rows"]
    assert [(row["tokens"], row["note"]) for row in rows] == [("- 6 0 . 2", "not fitted yet")]
    rows = json.loads(numtok("schemes", "--json").out)["rows"]
    assert {row["scheme"]: row["vocabulary"] for row in rows}["bpe"] == "learnt + 3"


# --- merges of a given tokenizer ---------------------------------------------------------------


def given_tokenizer(path: Path, *pre_tokenizers: Any) -> Path:
    """Train a byte-level tokenizer with GPT-2's pre-tokenizer on texts with numbers."""
    from tokenizers import Tokenizer, models, trainers
    from tokenizers import pre_tokenizers as cuts

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = cuts.Sequence([*pre_tokenizers, cuts.ByteLevel(add_prefix_space=False)])
    trainer = trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=cuts.ByteLevel.alphabet(), show_progress=False
    )
    texts = [f"in {1900 + k} it was {k / 8}-- and -{k * k}.. %%, eee" for k in range(150)]
    made.train_from_iterator([*texts, *map(str, range(100, 300))], trainer)
    path.write_text(made.to_str())
    return path


def test_numbers_are_cut_as_a_given_tokenizer_cuts_them(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    path = given_tokenizer(tmp_path / "tokenizer.json")
    theirs = Tokenizer.from_file(str(path))
    scheme = scheme_of(f"bpe,file={path}")
    assert isinstance(scheme, BpeScheme)
    longer = scheme.pieces[18:]
    assert len(longer) > 20 and all(piece.isdigit() for piece in longer)  # no "--", "%%", "ee"
    for literal in ("1912", "-144.25", "2025", "18.75", "1e-19", "1,912%"):
        assert written(scheme, literal) == theirs.encode(literal).tokens
    assert written(scheme, "\u22121912")[0] == "\u2212"
    assert (scheme.size, spec_of(scheme)) == (
        scheme.paper_vocabulary_size,
        f"bpe:{scheme.paper_vocabulary_size}",
    )


def test_the_same_file_elsewhere_gives_the_same_data(tmp_path: Path, numtok: Shell) -> None:
    path = given_tokenizer(tmp_path / "tokenizer.json")
    store, data = Store(tmp_path / "artifacts"), texts(tmp_path / "a.jsonl", *ROWS)
    first = encode(store, data, scheme=f"bpe,file={path}")
    copy = path.rename(tmp_path / "copy.json")
    assert encode(store, data, scheme=f"bpe,file={copy}").ref == first.ref
    copy.unlink()  # scheme.json contains all merges
    later = encode(store, data, like=first.ref, name="later")
    assert table(later)["tokens"].to_pylist() == table(first)["tokens"].to_pylist()
    assert codec_of(later).scheme == codec_of(first).scheme


def test_a_file_that_cannot_serve_is_refused(tmp_path: Path, says: Says) -> None:
    from tokenizers import Regex
    from tokenizers import pre_tokenizers as cuts

    path = tmp_path / "t.json"

    def refused(*parts: str, spec: str = f"bpe,file={path}") -> None:
        with says.raises(UsageError, str(path), *parts):
            scheme_of(spec)

    advice = "tokenizer.json of another model, or bpe:N"
    path.write_text("no JSON")
    refused("is not JSON (")
    for content in ("[]", '{"model": {"type": "WordPiece"}}', '{"model": null}'):
        path.write_text(content)
        refused("not a byte pair encoding", advice)
    path.write_text('{"model": {"type": "BPE", "merges": ["a b", "- -"]}}')
    refused("no merges of digits", advice)
    path.write_text('{"model": {"type": "BPE", "vocab": {"1": 0}, "merges": ["1 2"]}}')
    refused("cannot be read (", advice)
    given_tokenizer(path, cuts.Split(Regex(r"\p{N}{1,2}"), "isolated"))
    refused("splits 314159265358979 into '31 41 59 26 53 58 97 9'", "just merge", advice)
    for spec in (f"bpe:30,file={path}", f"bpe,size=30,file={path}"):
        refused(f"{spec!r}", "Use bpe,file=PATH", spec=spec)
    path.unlink()
    refused("file not found")


def test_a_path_may_have_commas_and_a_given_tokenizer_is_checked(
    tmp_path: Path, numtok: Shell
) -> None:
    path = given_tokenizer(tmp_path / "a,b.json")
    assert isinstance(scheme_of(f"bpe,file={path}"), BpeScheme)
    ran = numtok("check", "scheme", f"bpe,file={path}")
    assert ran.code == 0 and "BROKEN" not in ran.out


@pytest.mark.integration
def test_given_merges_are_told_by_what_they_are(tmp_path: Path) -> None:
    scheme = scheme_of(f"bpe,file={given_tokenizer(tmp_path / 't.json')}")
    assert isinstance(scheme, BpeScheme) and scheme.merges is not None
    other = replace(scheme, merges=scheme.merges.partition(";")[2])
    assert re.fullmatch(rf"bpe:{scheme.size} \(given [0-9a-f]{{8}}\)", scheme.title)
    assert other.title != scheme.title
    assert BpeScheme(30).fit(CORPUS).title == "bpe:30"
    store = Store(tmp_path / "artifacts")
    given = encode(store, texts(tmp_path / "a.jsonl", *ROWS), scheme=f"bpe,file={tmp_path}/t.json")
    assert title_of(codec_of(given).scheme) == scheme.title
    assert "numbers_learnt_from" not in given.manifest.counts
    preset = "nano,layers=1,width=32,heads=2"
    config = train.Config(given.ref, preset=preset, steps=1, batch=8, name="model")
    model = train.run(config, store, lambda *_: None).artifact
    found = eval.run(
        eval.Config(model.ref, given.ref, split="train", rows=4), store, lambda *_: None
    )
    report = read(found.artifact).report
    assert (report.scheme, report.configuration["scheme"]) == (scheme.title, scheme.title)
