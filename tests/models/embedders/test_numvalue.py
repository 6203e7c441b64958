"""NumValue: the vector of a number's prefix, and training in two passes, checked by hand."""

from collections.abc import Callable
from typing import Any, cast

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from numtok.encoding.channel import beyond_digits
from numtok.encoding.grammar import Grammar
from numtok.errors import UsageError
from numtok.models.batches import Batch
from numtok.models.decoding import Reader
from numtok.models.embedders.base import EMBEDDERS, NumberModule
from numtok.models.embedders.numvalue import DecimalParts
from numtok.models.generation import Writer
from numtok.models.likelihood import log_likelihoods
from numtok.models.model import Losses, Model
from numtok.models.objectives.base import OBJECTIVES
from numtok.models.steps import Prefill
from numtok.models.training_batch import END, TrainingBatch
from numtok.models.vocabulary import Vocabulary
from numtok.numerals.column import Numerals
from numtok.training.trainer import Execution, Recipe, Trainer, TrainerState
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import CPU, batch, codec, model
from tests.messages import Says

one_thread = fakemodels.one_thread

ENCODERS = ("rnn", "mlp", "scalar", "binary")
TEXTS = ["2*3.5=-7", "x 1.5e-3 and 5/6 z=12", "none"]
ANSWERS = [6, 19, 1]
SCHEME = "numvalue"


def embedder(spec: str, width: int = 8) -> Any:
    torch.manual_seed(0)
    return EMBEDDERS.build(spec).build(Vocabulary.of(codec(SCHEME)), width)


def tokens_of(*texts: str) -> Tensor:
    return torch.from_numpy(batch(SCHEME, texts).tokens)


def values_of(of: Any, *texts: str) -> Tensor:
    """Return f of every number, in order: [P, D]."""
    tokens = tokens_of(*texts)
    made = of(tokens, torch.ones_like(tokens, dtype=torch.float32))
    return cast(Tensor, made[tokens == of.ahead])


def digits_of(*texts: str, columns: tuple[int, int] | None = None) -> list[tuple[Any, ...]]:
    tokens = tokens_of(*texts).numpy()
    at = np.flatnonzero(tokens == embedder("numvalue").ahead)
    found = DecimalParts(Vocabulary.of(codec(SCHEME)))(tokens, at, columns)
    return [
        (
            "".join(str(digit) for digit in whole if digit >= 0),
            "".join(str(digit) for digit in decimals if digit >= 0),
            whole_count,
            decimal_count,
            negative,
        )
        for whole, decimals, whole_count, decimal_count, negative in zip(
            *(column.tolist() for column in found), strict=True
        )
    ]


OWN, OTHERS = "reconstruction_loss", "reconstruction_of_others"


def figures(of: Model, losses: Losses) -> dict[str, Tensor]:
    """Return the objective's own losses, by name."""
    return {one.name: loss for one, loss in zip(of.figures, losses.own, strict=True)}


def own_of(of: Model) -> nn.Module:
    """Return the projection."""
    assert of.own is not None
    return of.own


def example_of(objective: str = "numvalue") -> tuple[Batch, TrainingBatch]:
    rows = batch(SCHEME, TEXTS, answers=ANSWERS)
    return rows, OBJECTIVES.build(objective).example(rows, np.random.default_rng(0))


# --- digits after a prefix ----------------------------------------------------------------------


def test_digits_are_those_up_to_the_next_thing_that_is_none() -> None:
    assert digits_of("-60.25", "x 1.5e-30 = 5/16%", "") == [
        ("60", "25", 2, 2, True),
        ("1", "5", 1, 1, False),
        ("30", "", 2, 0, True),
        ("5", "", 1, 0, False),
        ("16", "", 2, 0, False),
    ]


def test_what_is_masked_or_not_yet_written_is_no_part_of_the_number() -> None:
    one = codec(SCHEME)
    vocabulary = one.scheme.vocabulary()
    prefix, four, point = (
        one.number_first + vocabulary.index(name) for name in ("<num>", "4", ".")
    )
    tokens = np.array([[prefix, four, 1, four, point], [prefix, prefix, four, point, four]])
    parts = DecimalParts(Vocabulary.of(one))
    found = parts(tokens, np.array([0, 5, 6]), None)
    assert found.whole_count.tolist() == [1, 0, 1]
    assert found.decimal_count.tolist() == [0, 0, 1]


def test_long_numbers_are_cut_and_counted() -> None:
    long = "1" * 20 + "." + "2" * 25
    assert digits_of(long, columns=(18, 22)) == [("1" * 18, "2" * 22, 20, 25, False)]
    assert digits_of(long) == [("1" * 20, "2" * 25, 20, 25, False)]
    numerals = Numerals.of_literals([long, "5", "1" * 18, "0." + "1" * 23, f"1e{'0' * 19}1", "nan"])
    limit = codec(SCHEME).scheme.defaults.embedder_digits
    assert limit is not None and beyond_digits(numerals, limit) == 3
    for encoder in ENCODERS:
        made = embedder(f"numvalue:{encoder}")
        assert isinstance(made, NumberModule)
        assert made.sees_all == (encoder == "rnn")


# --- f ------------------------------------------------------------------------------------------


def test_the_mlp_sees_digits_filled_up_on_the_right_and_what_is_known_of_them() -> None:
    of = embedder("numvalue:mlp")
    seen = torch.zeros(43)
    seen[:2] = torch.tensor([0.7, 0.1])  # 6 and 0
    seen[18:20] = torch.tensor([0.3, 0.6])  # 2 and 5
    seen[40:] = torch.tensor([-1.0, 2 / 18, 2 / 22])
    out = cast(nn.Linear, of.get_submodule("encoder.out"))
    torch.testing.assert_close(values_of(of, "-60.25"), out(seen).tanh()[None])


def test_the_rnn_reads_each_part_from_left_to_right() -> None:
    of = embedder("numvalue:rnn")
    whole, decimals = (
        cast(nn.GRU, of.get_submodule(f"encoder.features.{part}")) for part in ("whole", "decimals")
    )
    out = cast(nn.Linear, of.get_submodule("encoder.out"))

    def last(gru: nn.GRU, digits: str) -> Tensor:
        if not digits:
            return torch.zeros(4)
        return cast(Tensor, gru(F.one_hot(torch.tensor([*map(int, digits)]), 10).float())[1][0])

    for text, parts, known in (
        ("-60.25", ("60", "25"), (-1, 2 / 18, 2 / 22)),
        ("7", ("7", ""), (1, 1 / 18, 0)),
        ("123456789012345678901234.5", ("123456789012345678901234", "5"), (1, 24 / 18, 1 / 22)),
    ):
        seen = torch.cat([last(whole, parts[0]), last(decimals, parts[1]), torch.tensor(known)])
        # In a batch with longer and shorter numbers.
        found = values_of(of, text, "1.123456789", "8")[0]
        torch.testing.assert_close(found, out(seen), atol=1e-6, rtol=1e-5)


def test_the_rnn_ends_with_tanh_if_wanted() -> None:
    """Golden number: with a bias of 1 and no weights, each coordinate is tanh(1)."""
    for setting, expected in (("", 1.0), (",tanh=yes", 0.7615942)):
        of = embedder(f"numvalue:rnn{setting}")
        out = cast(nn.Linear, of.get_submodule("encoder.out"))
        nn.init.zeros_(out.weight)
        nn.init.ones_(out.bias)
        assert values_of(of, "-60.25")[0].tolist() == pytest.approx([expected] * 8)


def test_the_scalar_is_the_number() -> None:
    of = embedder("numvalue:scalar,auxiliary=no")
    out = cast(nn.Linear, of.get_submodule("encoder.out"))
    for text, x in (
        ("-60.25", -60.25),
        ("0.001", 0.001),
        ("12345678901234567890", 1.2345678901234567e19),
        ("1" + 399 * "0", 1e38),  # capped at 1e38
    ):
        expected = out(torch.tensor([x])).tanh()
        torch.testing.assert_close(values_of(of, text)[0], expected)


@each("text", ["0", "1", "5.75", "999999999999999999.5", "0.1", "-3.000001"])
def test_bits_are_those_of_the_number(text: str) -> None:
    seen: list[Tensor] = []
    of = embedder("numvalue:binary,auxiliary=no")
    of.get_submodule("encoder.out").register_forward_pre_hook(
        lambda _, given: seen.append(given[0])
    )
    values_of(of, text)
    bits = seen[0][0].to(torch.int64).tolist()
    whole, _, decimals = text.lstrip("-").partition(".")
    assert int("".join(map(str, bits[:60])), 2) == int(whole)
    exact = int(decimals or "0") * 2**64 // 10 ** len(decimals)
    assert int("".join(map(str, bits[60:])), 2) == exact


@each("encoder", ENCODERS)
def test_all_but_prefixes_are_looked_up(encoder: str) -> None:
    of = embedder(f"numvalue:{encoder}")
    tokens = tokens_of(*TEXTS)
    made = of(tokens, torch.ones_like(tokens, dtype=torch.float32))
    others = tokens != of.ahead
    torch.testing.assert_close(made[others], of.table(tokens)[others])
    first, second = values_of(of, "2", "3")
    assert not torch.allclose(first, second)


@each("encoder", ENCODERS)
def test_without_what_is_known_besides_the_sign_is_not_seen(encoder: str) -> None:
    plain, other = values_of(embedder(f"numvalue:{encoder},auxiliary=no"), "5", "-5")
    assert torch.allclose(plain, other) == (encoder != "scalar")
    plain, other = values_of(embedder(f"numvalue:{encoder}"), "5", "-5")
    assert not torch.allclose(plain, other)


@each("encoder", ENCODERS)
def test_rows_without_numbers_leave_gradients_of_zero(encoder: str) -> None:
    of = model(SCHEME, "numvalue", embedder=f"numvalue:{encoder}")
    rows = batch(SCHEME, ["a", "bc"], answers=[0, 0])
    losses = of.losses(of.given(of.objective.example(rows, np.random.default_rng(0))))
    of.total(losses).backward()  # type: ignore[no-untyped-call]
    assert figures(of, losses)["reconstruction_loss"].item() == 0
    assert all(parameter.grad is not None for parameter in of.parameters())


# --- the three losses ---------------------------------------------------------------------------


def by_hand(of: Model, rows: Batch, settings: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the three losses row by row and token by token."""
    emb, proj, rec = (list[Tensor]() for _ in range(3))
    for row, length in enumerate(rows.lengths.tolist()):
        start = int(rows.answer_start[row])
        tokens = torch.tensor([[END, *rows.tokens[row, :length].tolist()]])
        embedded = of.embedder(tokens, torch.ones(tokens.shape))
        hidden = of.trunk(embedded, None)
        seen = embedded.clone()
        for place in range(1, length + 1):
            if tokens[0, place] != of.ahead or (settings.project == "answer" and place - 1 < start):
                continue
            projected = own_of(of)(hidden[0, place - 1])
            seen[0, place] = projected
            rec.append(1 - F.cosine_similarity(projected, embedded[0, place], dim=0))
        labels = torch.tensor([*tokens[0, 1:].tolist(), END])
        kept = slice(start if settings.loss == "answer" else 0, None)
        for found, states in ((emb, hidden), (proj, of.trunk(seen, None))):
            logits = of.token_head(states[0])
            found += F.cross_entropy(logits, labels, reduction="none")[kept].unbind()
    return tuple(torch.stack(one).mean() for one in (emb, proj, rec))  # type: ignore[return-value]


@each(
    "objective",
    [
        "numvalue",
        "numvalue:answer",
        "numvalue,project=answer",
        "numvalue:answer,project=answer,reconstruction=2",
        "numvalue,second=no",
        "numvalue,reconstruction=0",
    ],
)
@each("encoder", ["rnn", "mlp"])
def test_the_losses_are_those_of_the_equations(objective: str, encoder: str) -> None:
    of = model(SCHEME, objective, embedder=f"numvalue:{encoder}")
    rows, example = example_of(objective)
    settings: Any = of.objective
    emb, proj, rec = by_hand(of, rows, settings)
    if not settings.second:
        proj = torch.zeros(())
    losses = of.losses(of.given(example))
    own = figures(of, losses)
    torch.testing.assert_close(losses.token, emb)
    torch.testing.assert_close(own["projected_loss"], proj)
    torch.testing.assert_close(own["reconstruction_loss"], rec)
    expected = emb + proj + settings.reconstruction * rec
    torch.testing.assert_close(of.total(losses), expected)
    gradients = torch.autograd.grad(of.total(losses), list(of.parameters()), retain_graph=True)
    for found, right in zip(
        gradients,
        torch.autograd.grad(expected, list(of.parameters()), allow_unused=True),
        strict=True,
    ):
        if right is not None:
            torch.testing.assert_close(found, right, rtol=1e-3, atol=1e-5)


def test_nothing_is_detached() -> None:
    """The second pass also trains f and the trunk; the cosine loss trains both of its inputs."""
    of = model(SCHEME, "numvalue,project=answer", embedder="numvalue:mlp")
    _, example = example_of("numvalue,project=answer")
    losses = of.losses(of.given(example))
    own, names = figures(of, losses), [name for name, _ in of.named_parameters()]

    def reached(loss: Tensor) -> set[str]:
        found = torch.autograd.grad(
            loss, list(of.parameters()), retain_graph=True, allow_unused=True
        )
        told = {
            name for name, one in zip(names, found, strict=True) if one is not None and one.any()
        }
        return {name.partition(".")[0] for name in told} | (
            {"f"} if "embedder.encoder.out.weight" in told else set()
        )

    assert reached(losses.token) == {"embedder", "f", "trunk", "token_head"}
    assert reached(own["projected_loss"]) == {"embedder", "f", "trunk", "token_head", "own"}
    assert reached(own["reconstruction_loss"]) == {"embedder", "f", "trunk", "own"}
    assert not own["reconstruction_of_others"].requires_grad
    assert not own["embedding_norm"].requires_grad
    assert not own["projection_norm"].requires_grad


def test_the_projection_is_a_gated_mlp_with_tanh() -> None:
    of = model(SCHEME, "numvalue")
    x, part = torch.randn(3, 16), own_of(of)
    gate, up, down = (getattr(part, name).weight for name in ("gate", "up", "down"))
    expected = (torch.tanh(x @ gate.T) * (x @ up.T)) @ down.T
    torch.testing.assert_close(part(x), expected)


def test_the_lengths_that_are_logged_are_those_of_the_vectors() -> None:
    of = model(SCHEME, "numvalue", embedder="numvalue:mlp")
    _, example = example_of()
    losses = of.losses(of.given(example))
    lengths = values_of(of.embedder, *TEXTS).norm(dim=1)
    torch.testing.assert_close(figures(of, losses)["embedding_norm"], lengths.mean())


def test_what_is_logged_tells_whether_the_vectors_of_numbers_are_alike() -> None:
    """If all numbers have the same vector, the loss is the same for another number's vector."""
    of = model(SCHEME, "numvalue", embedder="numvalue:mlp")
    _, example = example_of()
    told = figures(of, of.losses(of.given(example)))
    assert abs((told[OTHERS] - told[OWN]).item()) > 1e-3
    with torch.no_grad():
        for name, parameter in of.embedder.named_parameters():
            if name.startswith("encoder."):
                parameter.fill_(1.0 if name == "encoder.out.bias" else 0.0)
    told = figures(of, of.losses(of.given(example)))
    torch.testing.assert_close(told[OTHERS], told[OWN])


# --- training -----------------------------------------------------------------------------------


def trainer(objective: str = "numvalue", encoder: str = "mlp", **how: Any) -> Trainer:
    made = model(SCHEME, objective, embedder=f"numvalue:{encoder}", spread=0.1)
    steps = how.pop("steps", 40)
    return Trainer(made, Recipe(learning_rate=5e-3), Execution(device=CPU, **how), steps=steps)


@each(("rate", "times"), [(0.02, 4), (0.1, 20)])
def test_what_makes_the_vectors_has_a_rate_of_its_own(rate: float, times: float) -> None:
    """Other weights have a rate of 5e-3. The paper's factor is 20: 1e-3 and 5e-5 (Table 5)."""
    of = trainer(f"numvalue,rate={rate}")
    apart = {
        id(p) for name, p in of.model.named_parameters() if name.startswith("embedder.encoder")
    }
    for group in of._optimizer.groups:
        own = {id(parameter) in apart for parameter in group.parameters}
        assert len(own) == 1
        assert group.times == pytest.approx(times if own.pop() else 1)
    every = [p for group in of._optimizer.groups for p in group.parameters]
    assert {*map(id, every)} == {*map(id, of.model.parameters())}


@each("accumulate", [2, 3])
@each("objective", ["numvalue", "numvalue:answer,project=answer"])
def test_a_batch_in_parts_is_the_same_step(objective: str, accumulate: int) -> None:
    whole, parts = (trainer(objective, accumulate=count) for count in (1, accumulate))
    _, example = example_of(objective)
    for of in (whole, parts):
        of.advance(example)
    for found, expected in zip(parts.model.parameters(), whole.model.parameters(), strict=True):
        assert found.grad is not None and expected.grad is not None
        torch.testing.assert_close(found.grad, expected.grad, rtol=1e-3, atol=1e-6)
    told = [[of.validate([example]), of.means()] for of in (parts, whole)]
    for one in (*told[0], *told[1]):  # the next number differs at the end of a part
        assert one.pop("reconstruction_of_others") > 0
    for found_means, means in zip(*told, strict=True):
        assert found_means == pytest.approx(means, rel=1e-3)


def test_a_run_that_goes_on_is_the_run_that_never_stopped() -> None:
    _, example = example_of()
    straight, before = trainer("numvalue", "rnn"), trainer("numvalue", "rnn")
    for _ in range(3):
        straight.advance(example)
    before.advance(example)
    after = trainer("numvalue", "rnn")
    tensors, plain = before.state()
    after.load(
        {name: tensor.clone() for name, tensor in tensors.items()},
        msgspec.json.decode(msgspec.json.encode(plain), type=TrainerState),
    )
    for _ in range(2):
        after.advance(example)
    for found, expected in zip(after.model.parameters(), straight.model.parameters(), strict=True):
        assert torch.equal(found, expected)
    assert after.means() == straight.means()


def test_bfloat16_is_near() -> None:
    exact, rounded = trainer(), trainer(bfloat16=True)
    _, example = example_of()
    for of in (exact, rounded):
        of.advance(example)
    assert rounded.means()["loss"] == pytest.approx(exact.means()["loss"], rel=0.05)


def test_the_losses_that_are_told_add_up() -> None:
    of = trainer()
    _, example = example_of()
    of.advance(example)
    told = of.means()
    parts = told["token_loss"] + told["projected_loss"] + 0.5 * told["reconstruction_loss"]
    assert told["loss"] == pytest.approx(parts)
    seen = of.validate([example])
    assert seen["loss"] == pytest.approx(
        seen["token_loss"] + seen["projected_loss"] + 0.5 * seen["reconstruction_loss"]
    )


# --- writing ------------------------------------------------------------------------------------


@pytest.mark.integration
@pytest.mark.parametrize("encoder", ["mlp", pytest.param("rnn", marks=pytest.mark.slow)])
def test_answers_are_learnt_by_heart_and_written_without_seeing_them(encoder: str) -> None:
    texts = ["1+1=2", "20+7=27", "3*50=150", "1.5+1=2.5", "7-9=-2", "1/2+1/3=5/6"]
    answers = [text.index("=") + 1 for text in texts]
    rows = batch(SCHEME, texts, answers=answers)
    of = model(
        SCHEME,
        "numvalue:answer",
        embedder=f"numvalue:{encoder}",
        spread=0.05,
        size="nano,layers=2,heads=2,width=32",
    )
    learner = Trainer(of, Recipe(learning_rate=8e-3), Execution(device=CPU), steps=150)
    example = of.objective.example(rows, np.random.default_rng(0))
    for _ in range(150):
        learner.advance(example)
    written, _ = Writer(
        model=of.eval(),
        codec=codec(SCHEME),
        grammar=Grammar(codec(SCHEME).scheme),
        constrained=True,
        longest=16,
    ).write(rows)
    found = [codec(SCHEME).decode(*written.answer(row)) for row in range(len(texts))]
    assert found == [text[start:] for text, start in zip(texts, answers, strict=True)]
    assert written.ended.all()
    assert learner.means()["reconstruction_loss"] < 0.5


def test_a_prefix_that_was_written_is_seen_as_its_projection() -> None:
    """The number is not yet known, so text after the prompt does not affect the answer."""
    of = model(SCHEME, "numvalue", embedder="numvalue:mlp")
    plain = of.token_head.forward

    def prefixes_first(states: Tensor) -> Tensor:
        logits = plain(states)
        more = torch.zeros(logits.shape[-1])
        more[of.ahead] = 30
        return cast(Tensor, logits + more)

    of.token_head.forward = prefixes_first
    rows = batch(SCHEME, ["a=12,34", "bcd=5"], answers=[2, 4])
    other = batch(SCHEME, ["a=99.7,1", "bcd=123"], answers=[2, 4])
    grammar = Grammar(codec(SCHEME).scheme)
    first, second = (
        Writer(model=of, codec=codec(SCHEME), grammar=grammar, constrained=True, longest=12).write(
            one
        )[0]
        for one in (rows, other)
    )
    assert (first.tokens == of.ahead).sum() >= 4
    np.testing.assert_array_equal(first.tokens, second.tokens)


def test_a_number_is_scored_without_its_own_value_before_it() -> None:
    """Each token's probability equals that of a loop in which the number's prefix is projected."""
    of = model(SCHEME, "numvalue", embedder="numvalue:rnn")
    rows = batch(SCHEME, ["2*35=-7.5", "x 1.5e-3 z=12"])
    chosen = np.ones(len(rows.number), np.bool_)
    one, grammar = codec(SCHEME), Grammar(codec(SCHEME).scheme)
    steps = Prefill(of, rows, chosen, 16).steps(slice(0, None))
    spans = list(
        zip(
            rows.number_row.tolist(),
            rows.number_start.tolist(),
            rows.number_length.tolist(),
            strict=True,
        )
    )
    width = max(length for _, _, length in spans)
    true = np.full((len(spans), width), -1)
    for index, (row, start, length) in enumerate(spans):
        true[index, :length] = rows.tokens[row, start : start + length] - one.number_first
    found = Reader(model=of, codec=one, grammar=grammar, constrained=True).score(steps.true(), true)
    for index, (row, start, length) in enumerate(spans):
        total = 0.0
        tokens = [END, *rows.tokens[row, :start].tolist()]
        projected: dict[int, Tensor] = {}
        with torch.no_grad():
            for place in range(length):
                given = torch.tensor([tokens])
                embedded = of.embedder(given, torch.ones(given.shape))
                for where, vector in projected.items():
                    embedded[0, where] = vector
                state = of.trunk(embedded, None)[0, -1]
                logits = of.token_head(state)[one.number_first : one.text_first]
                allowed = one.scheme.next(tuple(true[index, :place].tolist())).allowed
                logits = torch.where(torch.from_numpy(allowed), logits, -torch.inf)
                token = int(true[index, place])
                total += float(logits.log_softmax(0)[token])
                if token + one.number_first == of.ahead:
                    projected[len(tokens)] = own_of(of)(state[None])[0]
                tokens.append(token + one.number_first)
        assert found[index] == pytest.approx(total, abs=1e-3)


# --- invalid settings ---------------------------------------------------------------------------


@each(
    ("build", "spec", "parts"),
    [
        (EMBEDDERS.build, "numvalue:gru", ("encoder must be ", "rnn, mlp, scalar or binary")),
        (OBJECTIVES.build, "numvalue:some", ("loss must be ", "all or answer")),
        (OBJECTIVES.build, "numvalue,project=no", ("project must be ", "all or answer")),
        (
            OBJECTIVES.build,
            "numvalue,reconstruction=-1",
            ("reconstruction must be at least 0 and finite",),
        ),
        (OBJECTIVES.build, "numvalue,rate=2", ("rate must be above 0 and below 1",)),
        (
            OBJECTIVES.build,
            "numvalue,second=no,reconstruction=0",
            ("second=no", "reconstruction=0", "Set one of them"),
        ),
    ],
)
def test_parts_that_cannot_be_are_one_line(
    build: Callable[[str], object], spec: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        build(spec)


@each(
    ("scheme", "objective", "embedder", "parts"),
    [
        (
            "numvalue",
            "numvalue",
            "lookup",
            ("--objective numvalue", "--embedder numvalue", "another --objective"),
        ),
        (
            "numvalue",
            "ar",
            "numvalue",
            ("--embedder numvalue", "--objective ar", "--objective numvalue"),
        ),
        (
            "digits",
            "numvalue",
            "numvalue",
            ("--embedder numvalue", "--embedder lookup", "--scheme numvalue"),
        ),
    ],
)
def test_models_that_cannot_be_are_one_line(
    scheme: str, objective: str, embedder: str, parts: tuple[str, ...], says: Says
) -> None:
    with says.raises(UsageError, *parts):
        model(scheme, objective, embedder=embedder)


def test_a_row_has_no_likelihood_in_one_pass(says: Says) -> None:
    of = model(SCHEME, "numvalue")
    with says.raises(UsageError, "--objective numvalue", "another --embedder"):
        log_likelihoods(of, example_of()[1])


def test_masked_models_and_models_of_labels_may_see_values() -> None:
    for of in (
        model(SCHEME, "mlm", embedder="numvalue"),
        model(SCHEME, "classify,causal=yes", embedder="numvalue", classes=["a", "b"]),
    ):
        assert (of.ahead is not None, of.replaces_numbers, of.own) == (True, False, None)
