"""Number losses: values worked out by hand, and their use in an objective."""

import numpy as np
import pytest
import torch
from torch import Tensor

from numtok.errors import UsageError
from numtok.models.distributions.intervals import Intervals
from numtok.models.model import Model
from numtok.models.number_terms.base import NUMBER_TERMS, DigitLogits, NumberTermModule
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.training_batch import TrainingBatch
from numtok.models.vocabulary import Vocabulary
from numtok.registry import settings_of, spec_of
from numtok.seeds import generator
from tests.cases import case, each
from tests.fakemodels import batch, codec, model

P = torch.tensor([[0.02, 0.03, 0.10, 0.50, 0.15, 0.05, 0.05, 0.05, 0.03, 0.02]]).double()
DIGITS = torch.arange(10).double()


def module_of(spec: str, vocabulary: Vocabulary) -> NumberTermModule:
    return NumberTermModule(NUMBER_TERMS.build(spec), vocabulary.valued, vocabulary.size)


def given(
    logits_NT: Tensor, log_p_NT: Tensor, right: list[int], places: list[int], runs: list[int]
) -> DigitLogits:
    """Return logits of the ten digits at N positions; ``right`` has the correct digits."""
    return DigitLogits(
        logits_NT=logits_NT,
        log_p_NT=log_p_NT,
        values_T=DIGITS.to(logits_NT.dtype),
        forms_T=torch.zeros(10),
        right_N=torch.tensor(right),
        places_N=torch.tensor(places),
        runs_N=torch.tensor(runs),
    )


def loss(spec: str, p: Tensor = P, more: float = 0.0, place: int = 1) -> float:
    """Return the loss if 3 is correct; ``more`` is added to all logits."""
    said = given(p.log() + more, p.log(), [3], [place], [0])
    return NUMBER_TERMS.build(spec).losses(said).item()


@each(
    ("spec", "share", "expected"),
    [
        ("was", 1.0, 1.09),
        ("was", 0.9, 1.09),  # tokens other than digits have no effect
        ("mse", 1.0, 0.4225),
        ("was,reweigh=yes", 0.9, 1.89),
        ("mse,reweigh=yes", 0.9, 8.56125),
        ("was,squash=2", 1.0, 0.57375),
        ("was,squash=2,reweigh=yes", 0.9, 0.718375),  # 0.9 * 0.57375 + 0.1 * 1.01 * 2
        ("smooth", 1.0, 1.675043),
        ("dist2", 1.0, 0.258819),
        ("dist2,tau=2", 1.0, 0.257262),
        ("raft", 0.9, 0.081225),
    ],
)
def test_losses_are_those_worked_out_by_hand(spec: str, share: float, expected: float) -> None:
    assert loss(spec, P * share) == pytest.approx(expected, abs=2e-6)


def test_digit_entropy_is_of_logits_and_places() -> None:
    assert loss("digit-entropy") / 2 == pytest.approx(0.058969, abs=1e-6)
    assert loss("digit-entropy", more=5.0) / 2 == pytest.approx(0.123148, abs=1e-6)
    weights = [
        loss("digit-entropy", place=place) / loss("digit-entropy") * 2 for place in (3, 2, 1, 0, -1)
    ]
    assert weights == pytest.approx([6, 4, 2, 0.9612, 0.9423], abs=1e-4)


def test_digits_have_the_places_of_their_runs() -> None:
    """Digit positions count from the decimal point; runs end at other tokens and at gaps."""
    module = module_of("was", Vocabulary.of(codec("digits")))
    labels = batch("digits", ["12.34 123"]).tokens[0]
    places, runs = module.places(labels, np.arange(9)).T.tolist()
    assert places == [2, 1, 0, 0, -1, 0, 3, 2, 1]
    assert runs == [0, 0, -1, 1, 1, -1, 2, 2, 2]
    assert module.places(labels[:2], np.array([0, 2])).tolist() == [[1, 0], [1, 1]]
    assert module.places(labels[2:3], np.arange(1)).tolist() == [[0, -1]]
    assert module.places(labels[:0], np.arange(0)).tolist() == []


def test_ntil_is_of_digits_and_of_whole_numbers() -> None:
    """The model predicts 412 for 407 almost surely, and a correct 5."""
    logits = torch.full((4, 10), -40.0).double()
    logits[torch.arange(4), torch.tensor([4, 1, 2, 5])] = 0.0
    log_p = logits.log_softmax(dim=1)
    said = given(logits, log_p, [4, 0, 7, 5], [3, 2, 1, 0], [0, 0, 0, 1])

    def of(spec: str) -> list[float]:
        return [*NUMBER_TERMS.build(spec).losses(said).tolist()]

    assert of("ntil,relative=0,magnitude=0") == pytest.approx([0, 1.2 * 1, 5, 0], abs=1e-6)
    each = of("ntil,relative=1,magnitude=0")
    assert [each[0], each[3]] == pytest.approx([0.012107, 0], abs=1e-6)
    each = of("ntil,relative=0,magnitude=1")
    assert [each[0], each[3]] == pytest.approx([0.012180, 0], abs=1e-6)


@each("spec", ["smooth:0.01", "dist2,tau=0.01", "digit-entropy"])
def test_a_token_as_long_as_the_right_one_is_meant(spec: str) -> None:
    """001 is correct. 1 and 01 have the same value but are as wrong as 2."""
    vocabulary = Vocabulary.of(codec("triads"))
    module = module_of(spec, vocabulary)
    ids = {
        name: vocabulary.first + vocabulary.names.index(name) for name in ("1", "2", "01", "001")
    }
    labels = torch.tensor([ids["001"]])
    places = torch.from_numpy(module.places(labels.numpy(), np.arange(1)))

    def of(name: str) -> float:
        logits = torch.zeros(1, vocabulary.size)
        logits[0, ids[name]] = 20.0
        loss: Tensor = module(logits, labels, 1.0, places)
        return (loss + torch.nn.functional.cross_entropy(logits, labels)).item()

    assert of("001") < of("1") / 2
    assert of("1") == pytest.approx(of("01")) == pytest.approx(of("2"))


@each(("scheme", "values"), [("nd,base=16", [*range(16)]), ("digits", [*range(10)])])
def test_digits_of_every_base_have_their_values(scheme: str, values: list[int]) -> None:
    module = module_of("was", Vocabulary.of(codec(scheme)))
    assert module.get_buffer("values").tolist() == values


def test_the_squared_form_does_not_see_what_lies_around_the_truth() -> None:
    half = torch.full((1, 10), 1e-12).double()
    half[0, [0, 6]] = 0.5
    assert loss("mse", half) == pytest.approx(0, abs=1e-9)
    assert loss("was", half) == pytest.approx(3)


def test_mean_and_median_are_regression_aware_predictions() -> None:
    """The same digits have the mean 3.65 and the median 3; each digit has its own cell."""
    edges = np.linspace(-0.5, 9.5, 11)
    one = Intervals(
        low=edges[:-1], high=edges[1:], values=np.arange(10.0), log_mass=P.log().numpy()
    )
    assert one.mean() == pytest.approx([3.65])
    assert np.rint(one.median()).tolist() == [3]


# --- in an objective ---------------------------------------------------------------------------


def learnt(of: Model, objective: str, texts: list[str]) -> TrainingBatch:
    answers = [text.index("=") + 1 for text in texts]
    rows = batch("digits", texts, answers=answers)
    return OBJECTIVES.build(objective).example(rows, generator(0))


def test_a_term_is_the_mean_over_digits_beside_the_cross_entropy() -> None:
    texts = ["1+2=3", "12+3=15", "a=b"]
    plain, both = (model("digits", f"ar:answer{more}") for more in ("", ",number-loss=was:0.3"))
    seen = learnt(plain, "ar:answer", texts)
    with torch.no_grad():
        token = plain.losses(plain.given(seen)).token
        logits = plain.token_head(plain.given(seen).predicting(plain.states_of(plain.given(seen))))
        term = both.number_term
        assert term is not None
        digits = np.flatnonzero(term.scale(seen.labels) and term._is_valued[seen.labels])
        assert len(digits) == 3
        first = codec("digits").number_first
        log_p = logits[digits].log_softmax(dim=1)[:, first : first + 10]
        right = (seen.labels[digits] - first).tolist()
        said = given(log_p, log_p, right, right, right)
        expected = token + 0.3 * term.term.losses(said).mean()
        torch.testing.assert_close(both.losses(both.given(seen)).token, expected)


def test_smoothed_labels_stand_in_place_of_the_cross_entropy_of_digits() -> None:
    """With almost no smoothing, the loss equals the cross-entropy."""
    texts = ["1+2=3", "a=b"]
    plain, smooth = (model("digits", f"ar{more}") for more in ("", ",number-loss=smooth:0.01"))
    seen = learnt(plain, "ar", texts)
    with torch.no_grad():
        one, other = (of.losses(of.given(seen)).token for of in (plain, smooth))
    torch.testing.assert_close(one, other)


def test_a_batch_in_parts_has_the_same_loss() -> None:
    texts = ["1+2=3", "12+3=15", "a=b", "7=777"]
    of = model("digits", "ar:answer,number-loss=was:0.3")
    seen = of.with_number_scale(learnt(of, "ar:answer", texts))
    with torch.no_grad():
        whole = of.losses(of.given(seen)).token
        parts = [
            of.losses(of.given(part)).token * len(part.labels) / len(seen.labels)
            for part in seen.parts(3)
        ]
    torch.testing.assert_close(sum(parts), whole)


def test_a_number_loss_is_a_setting_of_its_objective() -> None:
    for name in ("ar", "mlm"):
        with case(name):
            assert settings_of(OBJECTIVES.build(name))["number_loss"] is None
            made = OBJECTIVES.build(f"{name},number-loss=mse:0.8")
            assert settings_of(made)["number_loss"] == "mse:0.8"
            assert spec_of(made) == f"{name},number-loss=mse:0.8"


def test_what_has_no_digits_and_what_is_no_loss_are_refused() -> None:
    for scheme in ("xval", "tst", "numerologic"):  # no digits, marks between digits, digit counts
        with case(scheme), pytest.raises(UsageError, match="--scheme digits"):
            model(scheme, "ar,number-loss=was")
    with pytest.raises(UsageError, match=r"unknown number loss 'wass'\. Did you mean 'was'"):
        OBJECTIVES.build("ar,number-loss=wass")
