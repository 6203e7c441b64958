"""Codec, batch, embedder and head in the user's own model: inputs and outputs."""

import copy
import pickle
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import numtok
from numtok.encoding.schemes.base import SCHEMES
from numtok.errors import DataError, StoreError, UsageError
from numtok.evaluation.predict import Options, Predictor
from numtok.library.codec import TextCodec
from numtok.library.head import NumberHead
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS, default_point
from numtok.models.model import Model
from numtok.reports import QUANTILES
from numtok.stages import encode
from numtok.store.store import Store
from numtok.training.model_files import LoadedModel
from numtok.training.model_json import Trained
from tests import fakemodels
from tests.cases import case, each
from tests.messages import Says

one_thread = fakemodels.one_thread

TEXTS = ("2.5 + 13 = 15.5", "7 times -8 is -56", "0.125 of it and 0.375", "41.5 - 0.4 = 41.1")
TRUTHS = [15.5, -56.0, 0.375, 41.1]
WIDTH = 16


@cache
def codec(scheme: str) -> TextCodec:
    return TextCodec.fit(TEXTS, scheme=scheme, text_tokenizer="bytes")


# --- codec ------------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["xval", "p1000", "bpe:300"])
def test_a_codec_is_that_of_encode(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS))
    store = Store(tmp_path / "artifacts")
    config = encode.Config((str(tmp_path / "a.jsonl"),), scheme=scheme)
    encoded = encode.run(config, store, lambda *_: None)
    fitted = numtok.Codec.fit(TEXTS, scheme=scheme)
    loaded = numtok.Codec.load(encoded.ref, store=store.root)
    assert loaded.digest == fitted.digest
    fitted.save(tmp_path / "codec")
    assert numtok.Codec.load(tmp_path / "codec").digest == fitted.digest


def test_a_text_comes_back_with_its_numbers_as_the_scheme_holds_them() -> None:
    p1000, digits = codec("p1000"), codec("digits")
    assert p1000.decode(p1000.encode(TEXTS[1:]))[0] == "7.0 times -8.0 is -56.0"
    assert digits.decode(digits.encode(TEXTS)) == list(TEXTS)
    assert p1000.tokens("of -60.2") == [*"of ", "[NUM:-]", "[NUM:602]", "[NUM:E-1]"]


def test_a_codec_that_cannot_be_is_refused() -> None:
    for given, words in [
        ({"scheme": "p100"}, ("scheme", "p1000")),
        ({"text_tokenizer": "word"}, ("words",)),
        ({"normalize": "scal"}, ("scale",)),
    ]:
        with case(words), pytest.raises(UsageError) as raised:
            numtok.Codec.fit(TEXTS, **given)
        assert all(word in str(raised.value) for word in words)
    with pytest.raises(DataError):
        numtok.Codec.fit([])
    with pytest.raises(DataError, match="finite numbers"):
        numtok.Codec.fit(["none here"], scheme="xval")
    with pytest.raises(StoreError, match=r"nowhere\. .* store or NUMTOK_STORE"):
        numtok.Codec.load("nowhere", store="nowhere")


# --- batch ------------------------------------------------------------------------------------


def test_a_batch_hides_the_last_number_of_each_text() -> None:
    made = numtok.batch(codec("xval"), TEXTS)
    rows, columns = made.where
    assert made.truths.dtype == torch.float64 and made.truths.tolist() == TRUTHS
    assert rows.tolist() == [0, 1, 2, 3]
    assert (made.tokens[rows, columns] == 1).all() and (made.values[rows, columns] == 1).all()
    assert made.attention_mask.sum(dim=1).tolist() == [
        len(codec("xval").tokens(text)) for text in TEXTS
    ]
    assert made.positions[1].tolist() == list(range(made.tokens.shape[1]))


def test_a_batch_names_every_token_of_a_number() -> None:
    made = numtok.batch(codec("p1000"), TEXTS)
    assert [one.shape for one in made.where] == [(4, 3), (4, 3)]
    assert (made.tokens[made.where] == 1).all()


def test_a_causal_batch_sees_the_text_before_each_number() -> None:
    made, whole = numtok.batch(codec("p1000"), TEXTS, causal=True), codec("p1000").encode(TEXTS)
    assert made.tokens[0, 0] == 2
    length = int(whole.token_rows[1])
    assert made.tokens[0, 1 : 1 + length].tolist() == whole.tokens[:length].tolist()
    assert made.where[1][0] == whole.number_start[2]


def test_what_nobody_knows_is_a_hole() -> None:
    made = numtok.batch(codec("xval"), ["[?] and 2 and [?]", "3 [?]"], mask="holes")
    assert made.truths.isnan().all() and made.where[0].tolist() == [0, 0, 1]


def test_a_share_of_the_numbers_is_drawn_by_a_seed() -> None:
    one, same, other = (
        numtok.batch(codec("xval"), TEXTS * 8, mask="random", seed=seed) for seed in (1, 1, 2)
    )
    assert one.truths.tolist() == same.truths.tolist() != other.truths.tolist()
    assert 8 < len(one.truths) < 56
    # A batch of few numbers has at least one of them, which is any of them.
    few = [
        numtok.batch(codec("xval"), TEXTS[:1], mask="random", rate=0.01, seed=k) for k in range(9)
    ]
    assert {len(rows.truths) for rows in few} == {1}
    assert {rows.truths.item() for rows in few} == {2.5, 13.0, 15.5}


@each(
    ("texts", "given", "words"),
    [
        (["1", "no number"], {}, ("text 1", "no number", "Leave")),
        (["1 [?]", "2"], {"mask": "holes"}, ("text 1", "[?]")),
        (["x[?]"], {"mask": "holes"}, ("text 0", "[?]", "spaces")),
        (["none"], {"mask": "random"}, ("none", "texts")),
        ([], {}, ("texts", "empty")),
    ],
)
def test_a_batch_without_a_place_is_refused(
    texts: Any, given: dict[str, Any], words: Sequence[str]
) -> None:
    with pytest.raises(DataError) as raised:
        numtok.batch(codec("xval"), texts, **given)
    assert all(word in str(raised.value) for word in words), raised.value


def test_settings_of_a_batch_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="last"):
        numtok.batch(codec("xval"), TEXTS, mask="lasst")
    with pytest.raises(UsageError, match="rate"):
        numtok.batch(codec("xval"), TEXTS, mask="random", rate=2)


# --- embedders and heads of the registry ------------------------------------------------------


def schemes_for(made: Any) -> str:
    """Return the first of these schemes with few numbers that is accepted."""
    for scheme in ("xval", "p1000", "numgpt", "numvalue", "rt", "bits"):
        try:
            made(codec(scheme))
        except UsageError:
            continue
        return scheme
    raise AssertionError("every scheme is refused")


@pytest.mark.integration
def test_every_embedder_learns_through_the_public_name() -> None:
    for name in EMBEDDERS:
        spec = getattr(EMBEDDERS[name], "checked_at", name)
        with case(spec):
            scheme = schemes_for(partial(numtok.embedder, spec, width=128))
            embed = numtok.embedder(spec, codec(scheme), width=128)
            vectors = embed(numtok.batch(codec(scheme), TEXTS))
            assert vectors.shape[::2] == (4, 128)
            vectors.square().sum().backward()
            table = embed.get_parameter("module.table.weight").grad
            assert table is not None and bool(table.abs().sum() > 0)


@pytest.mark.integration
def test_every_head_learns_and_predicts_in_raw_units() -> None:
    truths = [510.0, 520.0, 530.0, 590.0]
    for name in HEADS:
        spec = getattr(HEADS[name], "checked_at", name)
        with case(spec):
            made = partial(numtok.head, spec, width=WIDTH, truths=truths)
            scheme = schemes_for(made)
            torch.manual_seed(0)
            head = made(codec(scheme))
            width = SCHEMES.build(scheme).tokens_per_number or 1
            hidden = nn.Parameter(torch.randn(4, width, WIDTH))
            optimizer = torch.optim.Adam([hidden, *head.parameters()], 0.05)
            losses = [step(head, hidden, truths, optimizer) for _ in range(60)]
            assert losses[-1] < losses[0]
            head.calibrate(hidden, truths)
            predicted = head.predict(hidden)
            assert ((predicted.median() > 400) & (predicted.median() < 700)).all()
            assert predicted.quantiles([0.1, 0.9]).shape == (4, 2)
            assert predicted.sample(3).shape == (4, 3)
            assert predicted.crps(truths).shape == predicted.log_density(truths).shape == (4,)
            check_kept(head, made(codec(scheme)), hidden)


def step(
    head: NumberHead, hidden: Tensor, truths: Sequence[float], optimizer: torch.optim.Optimizer
) -> float:
    loss = head.loss(hidden, truths)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.item()


def check_kept(head: NumberHead, other: NumberHead, hidden: Tensor) -> None:
    """Check that the state of the module contains weights, scaling and calibration."""
    other.load_state_dict(head.state_dict())
    before, after = head.predict(hidden), other.predict(hidden)
    assert after.point().tolist() == before.point().tolist()
    assert after.median().tolist() == before.median().tolist()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("scheme", "spec"),
    [
        ("xval", "scalar"),
        ("xval", "decoder:ud"),
        ("p1000", "token"),
        ("p1000", "mdn:3"),
        ("numgpt", "numgpt"),
    ],
)
def test_a_head_learns_and_says_what_that_of_a_model_does(scheme: str, spec: str) -> None:
    model = fakemodels.model(scheme, "mlm:targets", head=spec)
    one = TextCodec(fakemodels.codec(scheme))
    head = numtok.head(spec, one, width=WIDTH)
    head.load_state_dict(model.state_dict(), strict=False)
    batch = numtok.batch(one, TEXTS)
    with torch.no_grad():
        hidden = model.hidden(batch.tokens, batch.values, batch.attention_mask)[batch.where]
        loss = float(head.loss(hidden, batch.truths))
    check_loss(model, head, scheme, loss)
    head.calibration = {"deviation": 0.7}
    predicted = head.predict(hidden)
    artifact: Any = None
    trained = Trained(
        configuration={},
        seed=0,
        calibration={"deviation": 0.7},
        calibrated_on="train",
        train_mean=0.0,
        samples=0,
        tokens=0,
        steps=0,
        flops=0.0,
    )
    loaded = LoadedModel(artifact=artifact, model=model, codec=one.inner, trained=trained)
    split = fakemodels.samples(scheme, TEXTS, targets=[2, 5, 7, 10])
    expected = Predictor(
        loaded,
        split,
        Options(
            fill="parallel",
            constrained=True,
            point=default_point(model.head),
            draws=0,
            batch=8,
        ),
    ).run(lambda done, total: None, print)
    # The tokens of a model may form no number; this cannot happen with a value head.
    valid = expected.valid | (predicted.reading.logits is not None)
    assert np.allclose(predicted.point()[valid], expected.values[valid], rtol=1e-4, equal_nan=True)
    assert np.allclose(
        predicted.quantiles(QUANTILES), expected.quantiles, rtol=1e-4, equal_nan=True
    )
    assert np.allclose(
        predicted.log_density(TRUTHS), expected.log_density, rtol=1e-4, equal_nan=True
    )
    assert np.allclose(predicted.crps(TRUTHS), expected.crps, rtol=1e-4, equal_nan=True)


def check_loss(model: Model, head: NumberHead, scheme: str, loss: float) -> None:
    example = model.objective.example(
        fakemodels.batch(scheme, TEXTS, targets=[2, 5, 7, 10]), np.random.default_rng(0)
    )
    with torch.no_grad():
        losses = model.losses(model.given(example))
    says_tokens = not isinstance(head.token_head, nn.Identity)
    expected = float(losses.value) + (float(losses.token) if says_tokens else 0.0)
    assert loss == pytest.approx(expected, rel=1e-4)


def test_what_cannot_be_learnt_as_a_value_is_left_out() -> None:
    head = numtok.head("scalar", codec("xval"), width=WIDTH)
    hidden = torch.randn(2, WIDTH, requires_grad=True)
    both = head.loss(hidden, [3.0, np.inf])
    assert both.item() == pytest.approx(head.loss(hidden[:1], [3.0]).item())
    nothing = head.loss(hidden, [np.inf, -np.inf])
    nothing.backward()
    assert nothing.item() == 0 and hidden.grad is not None and not hidden.grad.any()
    exact = numtok.head("scalar", codec("bits"), width=WIDTH)
    beyond = exact.loss(hidden, [3.0, 1e300])  # float32 ends at 3.4e38
    assert beyond.item() == pytest.approx(exact.loss(hidden[:1], [3.0]).item())


def test_a_state_without_scaling_replaces_that_of_the_new_head() -> None:
    """A head without ``truths`` loads the state of one with some, and the reverse."""
    bare = partial(numtok.head, "scalar", codec("p1000"), width=WIDTH)
    hidden = torch.randn(3, WIDTH)
    for saved, new in ((bare(), bare(truths=[5e5, 6e5])), (bare(truths=[5e5, 6e5]), bare())):
        new.load_state_dict(saved.state_dict())
        assert new.predict(hidden).point().tolist() == saved.predict(hidden).point().tolist()
        assert new.loss(hidden, [1.0, 2.0, 3.0]) == saved.loss(hidden, [1.0, 2.0, 3.0])
        new.load_state_dict(new.state_dict())


def test_a_state_without_the_scaling_that_a_head_needs_is_refused(says: Says) -> None:
    head = numtok.head("riemann:8", codec("p1000"), width=WIDTH, truths=[1.0, 2.0])
    state = numtok.head("scalar", codec("p1000"), width=WIDTH).get_extra_state()
    with says.raises(DataError, "no scaling", "riemann:8"):
        head.set_extra_state(state)


# --- invalid combinations -----------------------------------------------------------------------


def test_what_does_not_go_together_is_refused_in_one_line(says: Says) -> None:
    xval, p1000, digits = codec("xval"), codec("p1000"), codec("digits")
    scalar, states = numtok.head("scalar", xval, width=WIDTH), torch.zeros(2, WIDTH)
    token = numtok.head("token", p1000, width=WIDTH)
    other = numtok.Codec.fit(["5"], scheme="xval", text_tokenizer="bytes")
    embed = numtok.embedder("scaled", xval, width=WIDTH)
    cases: list[tuple[Any, tuple[str, ...]]] = [
        (lambda: numtok.embedder("scale", xval, width=8), ("embedder", "scaled")),
        (lambda: numtok.embedder("dice", p1000, width=8), ("dice", "xval")),
        (lambda: numtok.embedder("scaled", xval, width=0), ("width", "0")),
        (lambda: numtok.head("scaler", xval, width=8), ("head", "scalar")),
        (lambda: numtok.head("token", xval, width=8), ("token", "xval", "scalar")),
        (lambda: numtok.head("token", digits, width=8), ("token", "digits", "p1000")),
        (lambda: numtok.head("numgpt", xval, width=8), ("numgpt", "exponent")),
        (lambda: numtok.head("riemann:8", xval, width=8), ("riemann:8", "truths")),
        (lambda: numtok.head("scalar", xval, width=-1), ("width", "-1")),
        (lambda: scalar.predict(torch.zeros(2, 8)), ("[2, 8]", "[N, 16]")),
        (lambda: scalar.loss(states, [1.0]), ("truths", "1", "2")),
        (lambda: scalar.predict(states).mean(), ("scalar", "calibrate", ".point()")),
        (lambda: token.predict(states), ("[2, 16]", "[N, 3, 16]", "causal")),
        (lambda: embed(numtok.batch(other, ["5"])), ("another codec", "save")),
    ]
    for call, words in cases:
        with case(words):
            with pytest.raises(UsageError) as raised:
                call()
            says(str(raised.value), *words)
            assert "--" not in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(DataError, match=r"truths\[1\] is NaN"):
        scalar.loss(states, [1.0, np.nan])
    with pytest.raises(DataError, match="damaged"):
        scalar.set_extra_state(torch.zeros(3, dtype=torch.uint8))


def test_states_of_whole_rows_are_refused() -> None:
    for scheme, spec in [("xval", "scalar"), ("p1000", "mdn:2"), ("p1000", "token")]:
        head = numtok.head(spec, codec(scheme), width=WIDTH)
        for shape in [(2, 9, WIDTH), (2, 2, WIDTH), (WIDTH,), (2, 3, 3, WIDTH), (2, 3, WIDTH + 1)]:
            with case(spec, shape), pytest.raises(UsageError, match=r"hidden\[batch.where\]"):
                head.loss(torch.zeros(shape), [1.0, 2.0])


def test_predictions_are_not_rounded_by_autocast() -> None:
    """Trainer(bf16=True) predicts within autocast, in which values would have 8 bits."""
    for scheme, spec in (("xval", "scalar"), ("xval", "decoder:ud"), ("p1000", "token")):
        head = numtok.head(spec, codec(scheme), width=WIDTH)
        tokens = head.codec.scheme.tokens_per_number or 1
        states = torch.randn(4, tokens, WIDTH, generator=torch.Generator().manual_seed(0))
        head.calibrate(states, [1.0, 2.0, 3.0, 4.0])
        expected, calibration = head.predict(states).point().tolist(), head.calibration
        with case(spec), torch.autocast("cpu", torch.bfloat16):
            head.calibrate(states, [1.0, 2.0, 3.0, 4.0])
            assert head.calibration == calibration
            np.testing.assert_array_equal(head.predict(states).point(), expected)


def test_a_head_is_pickled_after_it_has_predicted() -> None:
    states = torch.ones(2, 3, WIDTH)
    head = numtok.head("token", codec("p1000"), width=WIDTH)
    expected = head.predict(states)
    for again in (pickle.loads(pickle.dumps(head)).predict(states), copy.deepcopy(expected)):
        assert again.quantiles([0.1, 0.9]).tolist() == expected.quantiles([0.1, 0.9]).tolist()
    assert len(pickle.loads(pickle.dumps(expected))) == 2


def test_a_loss_of_no_numbers_is_zero() -> None:
    head = numtok.head("scalar", codec("xval"), width=WIDTH)
    assert head.loss(torch.zeros(0, WIDTH), []).item() == 0


def test_values_of_another_type_are_refused_by_the_name_of_the_argument() -> None:
    xval = codec("xval")
    head = numtok.head("mdn:2", xval, width=np.int64(WIDTH))
    predicted = head.predict(torch.zeros(2, WIDTH))
    cases: list[tuple[Any, str]] = [
        (lambda: numtok.head("mdn:2", xval, width="64"), "width must be an integer .*'64'"),
        (lambda: numtok.embedder("lookup", xval, width=8.0), "width must be an integer"),
        (lambda: numtok.head("mdn:2", "xval", width=8), "codec must be .* TextCodec"),
        (lambda: numtok.head("mdn:2", xval, width=8, truths=5.0), "truths"),
        (lambda: numtok.batch(xval, TEXTS, mask="random", rate="a"), "rate must be a number"),
        (lambda: numtok.Codec.fit(TEXTS, normalize=5), "normalize must be a string or None"),
        (lambda: numtok.Codec.load(5), "where must be a string or a path"),
        (lambda: numtok.embedder("lookup", xval, width=8)(torch.zeros(2, 3)), "batch"),
        (lambda: predicted.quantiles(0.5), "levels"),
        (lambda: predicted.quantiles([]), "levels"),
        (lambda: predicted.quantiles([0.5, 1.0]), "levels"),
        (lambda: predicted.sample(2.5), "count must be an integer"),
        (lambda: predicted.sample(seed=-1), "seed"),
        (lambda: predicted.cdf(["a", "b"]), "values"),
        (lambda: head.loss(np.zeros((2, WIDTH)), [1.0, 2.0]), "hidden"),
        (lambda: numtok.gen("arithmetic", rows="20"), "rows must be an integer"),
        (lambda: numtok.train("x", learning_rate="1e-3"), "learning_rate must be a number"),
        (lambda: numtok.encode(5), "inputs must be a string"),
        (lambda: numtok.gen("arithmetic", store=5), "store must be a string or a path"),
    ]
    for call, words in cases:
        with case(words), pytest.raises(UsageError, match=f"^{words}"):
            call()


def test_a_name_that_is_not_there_is_told_as_python_does() -> None:
    with pytest.raises(AttributeError, match=r"numtok.*'encoder'"):
        _ = numtok.encoder


# --- all digits -------------------------------------------------------------------------------

EXACT = ("0.1234567890123456 here", "0.1234567890123457 there", "-98765432.10987654 and 5")


@pytest.mark.parametrize("scheme", ["bits", "xval"])
def test_an_exact_embedder_sees_all_digits(scheme: str) -> None:
    exact = TextCodec.fit(EXACT, scheme=scheme, text_tokenizer="bytes", normalize="none")
    rows = numtok.batch(exact, [f"{text[:18]} = 1" for text in EXACT[:2]])
    embed = numtok.embedder("bits", exact, width=128)
    first, second = embed(rows)[:, 0]
    assert not torch.equal(first, second)
    assert not torch.equal(embed(rows)[0, 0], embed(rows)[0, -1])


@pytest.mark.integration
def test_an_exact_head_says_all_digits() -> None:
    torch.manual_seed(0)
    exact = TextCodec.fit(EXACT, scheme="bits", text_tokenizer="bytes")
    head = numtok.head("bits", exact, width=WIDTH)
    truths = np.array([0.1234567890123456, 0.1234567890123457, -98765432.10987654])
    states = nn.Parameter(torch.randn(3, WIDTH))
    optimizer = torch.optim.Adam([states, *head.parameters()], 0.1)
    for _ in range(60):
        optimizer.zero_grad()
        head.loss(states, truths).backward()
        optimizer.step()
    assert head.predict(states).point().tolist() == truths.tolist()


def test_exact_parts_are_refused_where_numbers_are_scaled() -> None:
    for part in (numtok.embedder, numtok.head):
        with case(part), pytest.raises(UsageError, match="normalize='none'"):
            part("bits", codec("xval"), width=WIDTH)
