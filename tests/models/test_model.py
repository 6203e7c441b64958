"""Models: xVal's equations, losses and sizes computed by hand, and invalid settings."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.schemes.base import SCHEMES, ChannelScheme
from numtok.errors import UsageError
from numtok.models.embedders.base import EMBEDDERS
from numtok.models.heads.base import HEADS, ValueHead
from numtok.models.inputs import single
from numtok.models.likelihood import log_likelihoods
from numtok.models.model import Losses, Model, _cross_entropy, build_model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.presets import Preset, preset, shortest
from numtok.models.settings import ModelSettings
from numtok.models.sizes import PRESETS
from numtok.models.training_batch import TrainingBatch
from numtok.models.trunks.base import TRUNKS
from numtok.models.trunks.transformer import TransformerTrunk
from numtok.models.vocabulary import Vocabulary
from numtok.registry import settings_of
from numtok.seeds import generator
from tests import fakemodels
from tests.cases import each
from tests.fakeheads import value_head
from tests.fakemodels import batch, codec, model, transformer
from tests.known import unlisted
from tests.messages import Says

one_thread = fakemodels.one_thread

TEXTS = ["(2 * 3.5) = -7", "", "no number", "8", "x 0 y 12.25 z"]


def example(
    scheme: str, objective: str, texts: list[str] = TEXTS, **of: list[int]
) -> TrainingBatch:
    made = batch(scheme, texts, **of)
    return OBJECTIVES.build(objective).example(made, generator(0))


def hidden(of: Model, one: TrainingBatch) -> Tensor:
    """Return the states [B * L, D]."""
    given = of.given(one)
    return of.hidden(given.tokens, given.values, given.real).flatten(0, 1)


def losses(of: Model, one: TrainingBatch) -> Losses:
    return of.losses(of.given(one))


def learn(found: Losses) -> None:
    (found.token + found.value).backward()  # type: ignore[no-untyped-call]


# --- embedding of numbers ----------------------------------------------------------------------


@each("large", ["1e22", "-3e38"])
def test_a_number_of_any_size_leaves_what_stands_before_it_alone(large: str) -> None:
    of = model("xval", "ar")
    one, two = (
        example("xval", "ar", [f"first 0.255 then {number} end"]) for number in ("5", large)
    )
    plain, other = hidden(of, one), hidden(of, two)
    assert torch.isfinite(other).all()
    _, at = np.flatnonzero(two.values[0] != 1)
    assert torch.equal(plain[:at], other[:at])
    assert not torch.equal(plain[at], other[at])


def test_lookup_does_not_look_at_values() -> None:
    built = EMBEDDERS.build("lookup").build(Vocabulary(size=5), 4)
    tokens = torch.tensor([[1, 2]])
    assert torch.equal(built(tokens, torch.tensor([[7.0, 0.0]])), built(tokens, torch.ones(1, 2)))


def test_xval_multiplies_the_vector_of_a_number_by_its_value() -> None:
    """Section 2.1: h_emb = h_num x h_text."""
    of = model("xval", "mlm")
    one = batch("xval", ["a -60.2 b 0"])
    seen = of.embedder(torch.from_numpy(one.tokens), torch.from_numpy(single(one.values())))[0]
    table = of.embedder.get_parameter("table.weight")
    number = table[codec("xval").number_first]
    torch.testing.assert_close(seen[2], torch.tensor(-60.2) * number)
    assert not seen[6].any()
    text = [token for token in one.tokens[0].tolist() if token >= codec("xval").text_first]
    assert torch.equal(seen[[0, 1, 3, 4, 5]], table[text])


@each("value", [-60.2, -1.0, -0.125, 0.0, 0.5, 3.0])
def test_layer_norm_leaves_of_a_value_x_its_share_x_over_sqrt_1_plus_x_squared(
    value: float,
) -> None:
    """Section 2.1: u . (x u + p) / |x u + p|, for a position p orthogonal to u and as long."""
    of = model("xval", "mlm", size="nano,layers=1,heads=2,width=16")
    u, p = torch.zeros(2, 16)
    u[0], u[1], p[2], p[3] = 10, -10, 10, -10  # both have mean 0
    with torch.no_grad():
        of.embedder.get_parameter("table.weight")[codec("xval").number_first] = u
        of.trunk.get_parameter("positions")[0] = p
    seen: list[Tensor] = []
    norm = of.trunk.get_submodule("blocks.0.norm_attention")
    norm.register_forward_hook(lambda _module, _given, out: seen.append(out))
    one = batch("xval", [str(value)])
    of.hidden(torch.from_numpy(one.tokens), torch.from_numpy(single(one.values())), None)
    share = seen[0][0, 0].detach() @ u / (u.norm() * math.sqrt(16))
    assert float(share) == pytest.approx(value / math.sqrt(1 + value**2), abs=1e-5)


# --- predictions and losses --------------------------------------------------------------------


def by_hand(of: Model, one: TrainingBatch) -> tuple[float, float]:
    """Return both losses in float64 NumPy, from the states of the whole batch."""
    states = hidden(of, one).detach()
    logits = of.token_head(states).double().detach().numpy()[one.where]
    norms = np.log(np.exp(logits).sum(axis=1))
    token = float((norms - logits[np.arange(len(one.labels)), one.labels]).mean())
    if of.value_head is None:
        return token, 0.0
    values = of.value_head(states).double().detach().numpy()[one.number_where, 0]
    return token, float(np.mean((values - one.number_values.astype(np.float64)) ** 2))


@each("objective", ["mlm", "mlm:tokens", "ar"])
@each("scheme", ["digits", "p1000", "xval"])
def test_the_loss_is_cross_entropy_and_squared_error_one_to_one(
    scheme: str, objective: str
) -> None:
    of, one = model(scheme, objective), example(scheme, objective, TEXTS * 5)
    assert len(one.number_where) > 3
    token, value = by_hand(of, one)
    found = losses(of, one)
    assert found.token.item() == pytest.approx(token, rel=1e-5)
    assert found.value.item() == pytest.approx(value, rel=1e-5)
    assert (value > 0) == (scheme == "xval")


def test_a_value_head_can_stand_beside_the_tokens_of_a_text_scheme() -> None:
    of = model("p1000", "mlm", head="scalar")
    one = example("p1000", "mlm", TEXTS * 5)
    assert losses(of, one).value.item() == pytest.approx(by_hand(of, one)[1], rel=1e-5)
    assert set(one.number_values.tolist()) <= {2, 3.5, -7, 8, 0, 12.25}


@each(("states", "tokens"), [(1, 2), (7, 1), (40, 300)])
def test_the_gradient_of_cross_entropy_is_that_of_torch(states: int, tokens: int) -> None:
    torch.manual_seed(0)
    labels = torch.randint(tokens, (states,))
    logits = (20 * torch.randn(states, tokens)).requires_grad_()
    found = _cross_entropy(logits, labels)
    (3 * found).backward()  # type: ignore[no-untyped-call]
    again = logits.detach().double().requires_grad_()
    expected = F.cross_entropy(again, labels)
    (3 * expected).backward()  # type: ignore[no-untyped-call]
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    assert logits.grad is not None and again.grad is not None
    torch.testing.assert_close(logits.grad.double(), again.grad, rtol=1e-5, atol=1e-7)


@each("head", [None, "token"])
def test_a_model_without_a_value_head_has_no_loss_of_values(head: str | None) -> None:
    of = model("p1000" if head is None else "xval", "mlm", head=head)
    assert of.value_head is None
    one = example("p1000" if head is None else "xval", "mlm", TEXTS * 5)
    found = losses(of, one)
    assert found.value.item() == 0


@each("objective", ["mlm", "ar:answer"])
def test_only_what_is_predicted_counts(objective: str) -> None:
    """States at which nothing is predicted have zero gradient."""
    of = model("xval", objective, size="nano,layers=1,heads=2,width=16")
    one = example("xval", objective, TEXTS, answers=[11, 0, 2, 0, 4])
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, out: Tensor) -> None:
        out.retain_grad()
        kept.append(out)

    of.trunk.register_forward_hook(keep)
    learn(losses(of, one))
    assert kept[0].grad is not None
    learnt = kept[0].grad.flatten(0, 1).any(dim=1).nonzero()[:, 0].tolist()
    assert learnt == one.asked[1].tolist()
    assert len(learnt) < one.tokens.size


@each("objective", ["mlm:targets", "ar:answer"])
def test_losses_are_those_of_all_states_where_only_some_are_worked_out(objective: str) -> None:
    of = model("xval", objective, size="nano,layers=2,heads=2,width=16")
    one = example("xval", objective, TEXTS, answers=[11, -1, -1, 0, 10], targets=[2, 5])
    given = of.given(one)
    assert given.asked is not None
    found, flat = losses(of, one), hidden(of, one)
    label = torch.from_numpy(one.labels)
    token = F.cross_entropy(of.token_head(flat[one.where]), label)
    assert of.value_head is not None
    parameters = of.value_head(flat[one.number_where])
    expected = of.value_head.losses(parameters, given.number_targets).mean()
    torch.testing.assert_close(found.token, token)
    torch.testing.assert_close(found.value, expected)


@each("texts", [["ab", "c"], ["", ""], ["1 2"]])
@each("scheme", ["p1000", "xval", "numgpt"])
def test_where_nothing_is_predicted_the_loss_is_zero_and_every_weight_has_a_gradient(
    scheme: str, texts: list[str]
) -> None:
    of, one = model(scheme, "mlm:targets"), example(scheme, "mlm:targets", texts)
    assert (len(one.where), len(one.number_where)) == (0, 0)
    found = losses(of, one)
    assert [found.token.item(), found.value.item()] == [0, 0]
    learn(found)
    for parameter in of.parameters():
        assert parameter.grad is not None
        assert not parameter.grad.any()


def test_without_numbers_the_value_head_has_a_gradient_of_zero() -> None:
    of, one = model("xval", "ar"), example("xval", "ar", ["no number"])
    found = losses(of, one)
    assert found.value.item() == 0
    assert found.token.item() > 0
    learn(found)
    assert of.value_head is not None
    assert all(p.grad is not None and not p.grad.any() for p in of.value_head.parameters())


@each("objective", ["ar", "mlm:targets"])
def test_where_every_state_predicts_something_none_is_picked(objective: str) -> None:
    alike = ["1 + 2 = 3", "4 + 5 = 9"]
    of, one = model("p1000", objective), example("p1000", objective, alike, targets=[2, 5])
    given = of.given(one)
    assert given.where is None
    found, picked = of.losses(given), of.losses(given._replace(where=torch.tensor(one.asked[1])))
    assert torch.equal(found.token, picked.token)
    uneven = example("p1000", objective, [*alike, "7"], targets=[2, 5, 6])
    assert (of.given(uneven).where is None) == (objective == "mlm:targets")


def test_pads_are_hidden_only_where_there_are_some() -> None:
    of = model("p1000", "mlm")
    assert of.given(example("p1000", "mlm", ["ab", "cd"])).real is None
    assert of.given(example("p1000", "mlm", ["ab", "c"])).real is not None


def test_everything_that_a_model_is_given_goes_to_its_device() -> None:
    of = model("numvalue", "numvalue")
    one = example("numvalue", "numvalue")
    here = of.on_host(one)
    there = here.to(torch.device("meta"))
    assert np.shares_memory(here.tokens.numpy(), one.tokens)
    assert len(here.of_host) == 6  # positions of prefixes, and the digits after them
    found, expected = ([*given[:-2], *given.of_term, *given.of_host] for given in (there, here))
    assert {each.device.type for each in found if each is not None} == {"meta"}
    assert [None if each is None else (each.shape, each.dtype) for each in found] == [
        None if each is None else (each.shape, each.dtype) for each in expected
    ]


def test_rows_without_numbers_have_a_likelihood_with_any_head() -> None:
    one = example("p1000", "ar", ["ab", "c"])
    for head in ("riemann:8", "mdn:2", "token"):
        found = log_likelihoods(model("p1000", "ar", head=head), one)
        assert (np.isfinite(found) & (found < 0)).all()


# --- heads -------------------------------------------------------------------------------------


@each("layers", [1, 2])
def test_the_scalar_head_learns_by_the_squared_error(layers: int) -> None:
    head = value_head(f"scalar,layers={layers}")
    built, states = head.build(8), torch.randn(5, 8)
    parameters = built(states)
    assert parameters.shape == (5, 1)
    values = [1.0, -2.0, 0.0, 3.5, 4.0]
    expected = (parameters[:, 0] - torch.tensor(values)).square()
    learnt = torch.from_numpy(head.targets(np.array(values)))
    torch.testing.assert_close(built.losses(parameters, learnt), expected)
    found = built.point(parameters.detach())
    assert found.dtype == np.float64
    assert found.tolist() == parameters[:, 0].tolist()


def test_a_head_of_two_layers_is_wide_between_them_with_gelu() -> None:
    built, states = value_head("scalar").build(8), torch.randn(5, 8)
    weights = dict(built.named_parameters())
    assert [tuple(weights[f"module.{k}.weight"].shape) for k in (0, 2)] == [(32, 8), (1, 32)]
    inner = F.gelu(F.linear(states, weights["module.0.weight"], weights["module.0.bias"]))
    expected = F.linear(inner, weights["module.2.weight"], weights["module.2.bias"])
    torch.testing.assert_close(built(states), expected)


@each("name", SCHEMES.names())
def test_the_embedder_and_the_head_that_a_scheme_names_exist(name: str) -> None:
    scheme = SCHEMES.build(name).defaults
    assert settings_of(EMBEDDERS.build(scheme.embedder))["name"] == scheme.embedder
    assert settings_of(HEADS.build(scheme.head))["name"] == scheme.head
    assert isinstance(HEADS.build(scheme.head), ValueHead) == issubclass(
        SCHEMES[name], ChannelScheme
    )


# --- sizes -------------------------------------------------------------------------------------


def sized(
    size: str, vocabulary: int, *, context: int = 100, embedder: str = "lookup", head: str = "token"
) -> Model:
    """Return the model of a preset, without memory for its weights."""
    settings = ModelSettings.of(
        preset(size),
        vocabulary=vocabulary,
        context=context,
        embedder=EMBEDDERS.build(embedder),
        head=HEADS.build(head),
        objective=OBJECTIVES.build("ar"),
    )
    with torch.device("meta"):
        return build_model(settings, Vocabulary(size=vocabulary))


def in_blocks(layers: int, width: int) -> int:
    """Count weights and biases of attention (3 + 1), MLP (4 + 4), two norms and the last norm."""
    a_block = 12 * width**2 + (3 + 1 + 4 + 1) * width + 2 * 2 * width
    return layers * a_block + 2 * width


def test_nano_has_about_a_million_parameters() -> None:
    total, tables = sized("nano", 1000).parameter_counts()
    assert in_blocks(4, 128) == 793_344
    assert tables == (1000 + 100) * 128
    assert total == 793_344 + 1100 * 128 + 1000 * 128 == 1_062_144


@each(
    ("size", "layers", "width", "context"),
    [("micro", 6, 256, 100), ("small", 8, 512, 100), ("nano,context=7", 4, 128, 7)],
)
def test_the_token_head_of_the_small_presets_is_one_map(
    size: str, layers: int, width: int, context: int
) -> None:
    total, _ = sized(size, 1000).parameter_counts()
    assert total == in_blocks(layers, width) + (2 * 1000 + context) * width


def test_the_xval_preset_is_that_of_the_paper() -> None:
    of = sized("xval", 1000, embedder="scaled", head="scalar")
    shape = transformer(of).shape
    assert (shape.layers, shape.heads, shape.width, shape.context) == (6, 6, 768, 1024)
    total, tables = of.parameter_counts()
    assert tables == (1000 + 1024) * 768
    token_head = 768 * 4 * 768 + 4 * 768 * 1000
    value_head = 768 * 4 * 768 + 4 * 768 + 4 * 768 + 1
    assert total == in_blocks(6, 768) + tables + token_head + value_head


def test_gpt2_predicts_by_the_table_that_it_reads_by() -> None:
    of = sized("gpt2", 50_257)
    assert of.get_parameter("token_head.weight") is of.get_parameter("embedder.table.weight")
    assert of.parameter_counts() == (124_439_808, (50_257 + 1024) * 768)


@each("positions", ["sinusoidal", "rotary", "none"])
def test_positions_that_are_not_learnt_are_no_parameters(positions: str) -> None:
    total, tables = sized(f"nano,positions={positions}", 1000).parameter_counts()
    assert (total, tables) == (1_062_144 - 100 * 128, 1000 * 128)


# --- settings ----------------------------------------------------------------------------------


@each("name", PRESETS)
def test_a_preset_is_built_by_its_name(name: str) -> None:
    assert preset(name) == preset(PRESETS[name])


def test_a_preset_can_be_changed() -> None:
    trunk = TransformerTrunk(
        layers=2, heads=6, width=768, context=1024, positions="rotary", dropout=0.25
    )
    expected = Preset(trunk, head_layers=1, tied=True, learning_rate=1e-4)
    spec = "xval,layers=2,positions=rotary,dropout=0.25,head_layers=1,tied=yes"
    assert preset(spec) == expected
    trunk = TransformerTrunk(12, 12, 768, 1024, dropout=0.1)
    assert preset("gpt2,tied=no") == Preset(trunk, learning_rate=2.5e-4)


def test_a_trunk_is_a_preset_by_its_own_name() -> None:
    assert preset("transformer,tied=yes") == Preset(TransformerTrunk(), tied=True)
    assert preset("bigru,layers=2").trunk == TRUNKS.build("bigru,layers=2")
    assert preset("bigru").learning_rate == 5e-3
    assert shortest("transformer,heads=4,layers=2,tied=yes") == "transformer,layers=2,tied=yes"


def test_what_versions_depend_on_of_a_preset() -> None:
    assert list(preset("nano").settings().items()) == [
        *(
            ("name", "transformer"),
            ("revision", 1),
            ("layers", 4),
            ("heads", 4),
            ("width", 128),
            ("context", 0),
            ("positions", "learned"),
        ),
        *(("dropout", 0.0), ("head_layers", 1), ("tied", False), ("learning_rate", 2e-3)),
    ]
    bigru = {"name": "bigru", "revision": 1, "layers": 1, "width": 256, "dropout": 0.0}
    assert preset("bigru").settings() == bigru


@each(
    ("spec", "parts"),
    [
        ("nanno", ("'nanno'", "'nano'")),
        ("nano,layer=2", ("'layer'", "'layers'")),
        ("nano:2", ("takes no value after ':'", "'nano:2'")),
        ("nano,layers=two", ("layers must be an integer", "got 'two'")),
        ("nano,dropout=little", ("dropout must be a number", "got 'little'")),
        ("nano,tied=maybe", ("tied must be yes or no", "got 'maybe'")),
        ("nano,head_layers=3", ("head_layers", "1 or 2", "got 3")),
        ("xval,tied=yes", ("tied=yes", "head_layers=1")),
        ("nano,learning_rate=0", ("learning_rate", "above 0 and below 1", "got 0.0")),
    ],
)
def test_a_preset_that_cannot_be_is_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with pytest.raises(UsageError) as found:
        preset(spec)
    every = ", ".join(sorted([*PRESETS, *TRUNKS]))
    says(str(found.value).replace(every, "every preset"), *parts)
    assert found.value.exit_code == 2


@each(
    ("size", "chosen", "parts"),
    [
        (
            "nano,positions=rotary",
            {"embedder": "scaled"},
            ("--embedder scaled", "positions=rotary", "positions=learned"),
        ),
        ("nano,positions=alibi", {}, ("positions", "'alibi'", "learned, sinusoidal, rotary, none")),
        ("nano,layers=0", {}, ("layers", "at least 1", "got 0")),
        ("nano", {"embedder": "scale"}, ("'scale'", "'scaled'")),
        ("nano", {"head": "scaler"}, ("'scaler'", "'scalar'")),
        ("nano", {"head": "scalar,layers=3"}, ("layers must be from 1 to 2",)),
    ],
)
def test_parts_that_do_not_go_together_are_refused(
    size: str, chosen: dict[str, str], parts: tuple[str, ...], says: Says
) -> None:
    with pytest.raises(UsageError) as found:
        sized(size, 100, **chosen)  # type: ignore[arg-type]
    says(unlisted(found, "embedder", "head"), *parts)
    assert found.value.exit_code == 2


@each(
    ("size", "embedder"),
    [("nano,positions=rotary", "lookup"), ("nano,positions=sinusoidal", "scaled")],
)
def test_positions_that_suit_an_embedder_are_accepted(size: str, embedder: str) -> None:
    assert sized(size, 100, embedder=embedder).settings.embedder["name"] == embedder


def test_the_context_is_that_of_the_preset_or_else_of_the_data() -> None:
    assert sized("nano", 100, context=77).settings.context == 77
    assert sized("xval", 100, context=77).settings.context == 1024


def test_a_model_is_a_pure_function_of_settings_and_seed() -> None:
    made = [model("xval", "mlm", seed=seed) for seed in (0, 0, 1)]
    weights = [torch.cat([p.flatten() for p in one.parameters()]) for one in made]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
