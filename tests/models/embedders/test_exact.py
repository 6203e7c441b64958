"""Embedders of all digits of a number: their features, and that no digit is lost on the way."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from numtok.arrays import Ints
from numtok.encoding.codec import Codec
from numtok.encoding.grammar import Grammar
from numtok.encoding.schemes.base import Channel
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS, FeatureModule
from numtok.models.generation import Writer
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.vocabulary import Vocabulary
from numtok.seeds import generator
from tests.cases import case, each
from tests.fakemodels import batch, codec, model


def built(spec: str, width: int = 128, scheme: str = "fone") -> FeatureModule:
    torch.manual_seed(0)
    made: nn.Module = EMBEDDERS.build(spec).build(Vocabulary.of(codec(scheme)), width)
    assert isinstance(made, FeatureModule)
    return made


def vectors(of: FeatureModule, text: str, scheme: str = "fone") -> Tensor:
    """Return the vectors [L, D] of a text."""
    one = batch(scheme, [text])
    known = of.of_host(one.tokens, one.values())
    given = [torch.from_numpy(x) for x in (one.tokens, one.values().astype(np.float32), *known)]
    with torch.no_grad():
        made: Tensor = of(*given)[0]
    return made


def test_the_published_form_of_fone() -> None:
    """Golden numbers of the public code for 17.5: two digits before the point, one after it.

    Cosines are not shifted, at T = 1, 10 and 100. With the bases 2 and 5, T = 0.2, 0.5, 2, ..., 200
    and 500.
    """
    [features] = built("fone,whole=2,decimals=1,shifted=no").features(np.array([17.5]))
    assert features == pytest.approx([0, -1, 0, 0, -1, 0.453990, 0.891007], abs=1e-6)
    [features] = built("fone,whole=2,decimals=1,shifted=no,bases=2+5").features(np.array([17.5]))
    periods = np.array([0.2, 0.5, 2, 5, 20, 50, 200, 500])
    expected = np.stack([np.cos(35 * np.pi / periods), np.sin(35 * np.pi / periods)], axis=1)
    assert features[1:] == pytest.approx(expected.ravel(), abs=1e-6)
    assert features[7:9] == pytest.approx([-1, 0], abs=1e-6)  # 17.5 is half a period of 5 above 15


def test_the_angles_of_fone_are_the_papers() -> None:
    """17.5 with two digits before the point and one after it: T = 1, 10 and 100."""
    [features] = built("fone,whole=2,decimals=1").features(np.array([17.5]))
    of_zero = np.array([0, 1, 0, 1, 0, 1, 0])
    assert features + of_zero == pytest.approx([0, -1, 0, 0, -1, 0.453990, 0.891007], abs=1e-6)


def test_places_that_numbers_do_not_use_add_nothing_in_fone() -> None:
    nothing, hundreds = built("fone").features(np.array([0.0, 700.0]))
    assert not nothing.any()
    assert not hundreds[: 1 + 2 * 7].any()  # five decimals, units and tens


@each("number", ["17.5", "-17.5", "0", "123456789.12345", "9999999999.99999"])
def test_all_digits_can_be_read_off_the_angles_of_fone(number: str) -> None:
    """Digits are read lowest first, corrected by those below (arXiv 2502.09741, issue 3)."""
    [features] = built("fone").features(np.array([float(number)]))
    cosines, sines = features[1::2].astype(np.float64) + 1, features[2::2].astype(np.float64)
    rest, digits = 0.0, []
    for phase in (np.arctan2(sines, cosines) / (2 * np.pi)) % 1:
        digits.append(round(10 * phase - rest) % 10)
        rest = (digits[-1] + rest) / 10
    read = int("".join(map(str, digits[::-1]))) / 10**5
    assert read * (-1) ** features[0] == float(number)


def test_fifteen_digits_reach_the_vector_of_a_number() -> None:
    """In float32 the two numbers are equal, but their vectors differ."""
    for scheme in ("fone", "xval"):
        with case(scheme):
            of = built("fone", scheme=scheme)
            first, second = (
                vectors(of, f"{x}", scheme)[0] for x in (1234567890.12345, 1234567890.12346)
            )
            assert not torch.equal(first, second)


def test_zero_and_signs_have_vectors_of_their_own() -> None:
    of = built("fone")
    made = [vectors(of, text)[0] for text in ("0", "1", "-1", "10")]
    assert all(not torch.allclose(a, b) for i, a in enumerate(made) for b in made[:i])


def test_numbers_alone_are_embedded_so() -> None:
    of = built("fone")
    made, tokens = vectors(of, "a 1e400 b"), batch("fone", ["a 1e400 b"]).tokens[0]
    assert torch.equal(made, of.get_parameter("table.weight").detach()[tokens])


def test_a_scheme_without_whole_numbers_is_refused() -> None:
    for scheme in ("p1000", "numgpt"):
        with case(scheme), pytest.raises(UsageError, match="--scheme fone"):
            built("fone", scheme=scheme)


def test_a_batch_carries_all_digits_to_the_embedder() -> None:
    """Digits survive the shift by one token (``ar``) and masking (``mlm``)."""
    number = 1234567890.12345
    for objective in ("ar", "mlm:targets"):
        with case(objective):
            of = model("fone", objective, size="nano,layers=1,heads=2,width=32", head="scalar")
            rows = batch("fone", [f"{number} a 2"], targets=[1])
            example = OBJECTIVES.build(objective).example(rows, generator(0))
            assert number in example.values
            at_P, features_PF = of.on_host(example).of_host
            [first] = built("fone").features(np.array([number]))
            assert np.array_equal(features_PF[0].numpy(), first), at_P


def test_what_a_model_writes_has_all_digits_and_is_seen_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a generated answer, each number is embedded with all digits of its prediction."""
    number = -1234567890.12345
    of = model("fone", "ar", size="nano,layers=1,heads=2,width=32")
    assert of.value_head is not None
    monkeypatch.setattr(of.value_head, "point", lambda given: np.full(len(given), number))
    seen = []
    of_host = of.of_host

    def watched(tokens: Ints, values: Channel, before: Ints | None = None) -> tuple[Tensor, ...]:
        seen.append(values)
        return of_host(tokens, values, before)

    monkeypatch.setattr(of, "of_host", watched)
    one = codec("fone")
    monkeypatch.setattr(of.token_head, "forward", lambda states: _only(one, len(states)))
    writer = Writer(model=of, codec=one, grammar=Grammar(one.scheme), constrained=True, longest=3)
    written, _ = writer.write(batch("fone", ["2="], answers=[2]))
    tokens, starts, lengths, channel = written.answer(0)
    assert one.literals(tokens, starts, lengths, channel) == [repr(number)] * 3
    assert [values.item() for values in seen[1:]] == [number] * 2


def _only(of: Codec, n: int) -> Tensor:
    """Return logits [n, V] that make the number token the most probable."""
    logits = torch.zeros(n, of.vocabulary_size)
    logits[:, of.number_first] = 9
    return logits


# --- bits --------------------------------------------------------------------------------------


def test_base10_in_the_published_form() -> None:
    """Golden numbers: sign class 0 for minus, exponent 501, mantissa 602..., then those of 1 / x.

    Digits are one-hot with 1 and -1, times sqrt(768 / 210).
    """
    number, _, zero = vectors(
        built("base10:pad,reciprocal=yes", 768, "base10"), "-60.2 0", "base10"
    )
    assert number[:420].abs().tolist() == pytest.approx([1.912366] * 420)
    assert not number[420:].any()
    for vector, written in ((number, "050160200000000000003"), (zero, "150000000000000000000")):
        hot = vector[:210].view(21, 10) > 0
        assert hot.sum(1).tolist() == [1] * 21
        assert "".join(map(str, hot.int().argmax(1).tolist())) == written
    inverse = (number[210:420].view(21, 10) > 0).int().argmax(1).tolist()
    assert "".join(map(str, inverse)) == "049816611295681063121"


def test_bits_stand_in_the_first_coordinates_in_place_of_the_token() -> None:
    """At width 768, each bit is 2.449490 or its negative."""
    of = built("bits:pad", 768, "bits")
    [number, *_] = vectors(of, "-60.2", "bits")
    signs = (number[:128] > 0).int().tolist()
    assert number[:128].abs().tolist() == pytest.approx([2.449490] * 128)
    assert not number[128:].any()
    written = [f"{int(''.join(map(str, part)), 2):016x}" for part in (signs[:64], signs[64:])]
    assert written == ["c04e19999999999a", "bf91028d2ec70440"]  # the number and 1 / number


def test_zero_has_the_reciprocal_infinity() -> None:
    [features] = built("bits", 128, "bits").features(np.array([0.0]))
    assert features.tolist() == [-1.0] * 65 + [1.0] * 11 + [-1.0] * 52


def test_bits_are_added_to_the_token_where_that_is_asked() -> None:
    padded, added = (
        vectors(built(f"bits:{how}", 130, "bits"), "7", "bits") for how in ("pad", "sum")
    )
    token = built("bits:sum", 130, "bits").get_parameter("table.weight")[codec("bits").number_first]
    torch.testing.assert_close(added[0], padded[0] + token.detach())


def test_bits_need_as_many_coordinates() -> None:
    with pytest.raises(UsageError, match="reciprocal=no"):
        built("bits:pad", 64, "bits")
    with pytest.raises(UsageError, match="64 coordinates; this model has 32"):
        built("bits:pad,reciprocal=no", 32, "bits")
    assert vectors(built("bits,reciprocal=no", 64, "bits"), "7", "bits").shape == (1, 64)
