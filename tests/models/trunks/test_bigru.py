"""A trunk of gated recurrent units: its states, training on labels, and rejected options."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from numtok.encoding.schemes.base import SCHEMES
from numtok.encoding.splits import read_split
from numtok.errors import UsageError
from numtok.models.model import Model, build_model
from numtok.models.presets import preset
from numtok.models.training_batch import row_end_batch
from numtok.models.trunks.base import TrunkModule
from numtok.models.trunks.bigru import Bigru
from numtok.models.vocabulary import Vocabulary
from numtok.stages import compare, train
from numtok.store.artifact import Artifact
from numtok.store.store import Store
from numtok.training.model_files import read_model
from numtok.training.warm_start import copy_weights
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import embedded, real, states
from tests.messages import Says
from tests.shell import Shell
from tests.stages import test_labels as test_classify
from tests.stages.test_labels import CPU, contents, encoded, evaluated, report_of, trained, weights

TINY = "bigru,width=32"

one_thread, store, threads = fakemodels.one_thread, test_classify.store, test_classify.threads


def trunk(layers: int = 2, dropout: float = 0.0) -> TrunkModule:
    """Return random weights, large enough that every token matters."""
    torch.manual_seed(0)
    made = Bigru(layers, 16, dropout).build(causal=False)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)
    return made.eval()


def in_model(model: Artifact) -> Model:
    return read_model(model, CPU).model


# --- the state of a row ------------------------------------------------------------------------


def read_in_turn(gru: torch.nn.Module, x_LD: Tensor) -> Tensor:
    """Return the states [L, U] of one direction by the equations of a gated recurrent unit."""
    of = dict(gru.named_parameters())
    state, found = torch.zeros(8), []
    for x_D in x_LD:
        new_r, new_z, new_n = (of["weight_ih_l0"] @ x_D + of["bias_ih_l0"]).chunk(3)
        old_r, old_z, old_n = (of["weight_hh_l0"] @ state + of["bias_hh_l0"]).chunk(3)
        reset, update = (new_r + old_r).sigmoid(), (new_z + old_z).sigmoid()
        state = (1 - update) * (new_n + reset * old_n).tanh() + update * state
        found.append(state)
    return torch.stack(found)


@torch.no_grad()
def test_a_row_is_read_from_both_ends_and_its_last_states_are_kept() -> None:
    of, x_LD = trunk(), embedded(6)
    expected = x_LD
    layers = (cast(nn.ModuleList, one) for one in (of.onward, of.back))
    for onward, back in zip(*layers, strict=True):
        ends = read_in_turn(onward, expected), read_in_turn(back, expected.flip(0)).flip(0)
        expected = torch.cat(ends, dim=1)
    expected = torch.cat([expected[5, :8], expected[0, 8:]])
    torch.testing.assert_close(states(of, x_LD[None])[0, 0], expected, rtol=0, atol=1e-6)


def test_pads_and_other_rows_change_nothing() -> None:
    of, x, lengths = trunk(), embedded(4, 11), [11, 3, 7, 1]
    mask = real(lengths, 11)
    together = states(of, x, mask)
    other = states(of, torch.where(mask[:, :, None], x, embedded(4, 11, seed=2)), mask)
    assert torch.equal(together, other)
    for row, length in enumerate(lengths):
        alone = states(of, x[row : row + 1, :length])[0, 0]
        torch.testing.assert_close(together[row, 0], alone, rtol=0, atol=1e-6)


def test_the_state_stands_at_each_place_that_is_asked_for() -> None:
    of, x, mask = trunk(), embedded(3, 9), real([9, 4, 1], 9)
    everywhere = states(of, x, mask)
    assert everywhere.shape == (3, 9, 16)
    assert torch.equal(everywhere, everywhere[:, :1].expand_as(everywhere))
    asked = torch.tensor([[8, 0], [3, 3], [0, 0]])
    assert torch.equal(states(of, x, mask, asked), everywhere[:, :2])


@each("changed", [0, 3, 8])
def test_both_halves_of_the_state_depend_on_every_token_and_on_the_order(changed: int) -> None:
    of, x = trunk(1), embedded(2, 9)
    other = x.clone()
    other[:, changed] *= -1
    halves = (states(of, one)[:, 0].chunk(2, dim=1) for one in (x, other))
    for before, after in zip(*halves, strict=True):
        assert not torch.isclose(before, after).all(dim=1).any()
    assert not torch.isclose(states(of, x.flip(1)), states(of, x)).all(dim=2).any()


def test_states_are_carried_over_without_the_rounding_of_bfloat16() -> None:
    of, x = trunk(), embedded(3, 7)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = states(of, x)
    assert torch.equal(rounded, states(of, x))


def test_dropout_is_of_training_only() -> None:
    of, x = trunk(dropout=0.5), embedded(1, 6)
    assert torch.equal(states(of, x), states(trunk(), x))
    found = states(of.train(), x)
    assert not torch.equal(found, states(of, x))
    assert (found[0, 0] == 0).any() and torch.equal(found[:, 0], found[:, 5])


@each("scheme", sorted(SCHEMES))
def test_padded_rows_are_read_as_rows_alone(scheme: str) -> None:
    model = fakemodels.model(scheme, "classify", size=TINY, classes=("a", "b", "c"))
    one = SCHEMES.build(scheme)
    numbers = ("0.25", "0.5") if one.unit_interval else ("3.5", "-12.25")
    texts = [f"is {numbers[0]} kg", "", f"is {numbers[0]} kg more than {numbers[1]} kg", "no"]
    with torch.no_grad():
        found = model.class_log_probabilities(row_end_batch(fakemodels.batch(scheme, texts), False))
        for row, text in enumerate(texts):
            alone = row_end_batch(fakemodels.batch(scheme, [text]), False)
            torch.testing.assert_close(
                model.class_log_probabilities(alone)[0], found[row], rtol=0, atol=1e-5
            )
    assert torch.unique(found, dim=0).shape[0] == len(texts)


# --- training ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_learns_to_compare_numbers_that_it_never_saw(
    numtok: Shell, store: Store, tmp_path: Path
) -> None:
    data = encoded(store, tmp_path, weights(1500))
    options: dict[str, Any] = {
        "preset": "bigru,width=64", "steps": 150, "learning_rate": 1e-2, "batch": 128,
    }  # fmt: skip
    report = report_of(evaluated(store, trained(store, data, **options), data, name="report"))
    accuracy = report.metrics["accuracy"]
    assert accuracy.value is not None and accuracy.value > 0.95 and accuracy.n == 300
    assert report.configuration["preset"] == "bigru,width=64"
    costs = report.costs
    in_both = 2 * (3 * 32 * (64 + 32) + 2 * 3 * 32)
    assert costs.parameters - costs.embedding_parameters == in_both + 64 * 2 + 2
    assert "bigru" in numtok("show", "texts-xval-bigru").out


@pytest.mark.integration
def test_what_failed_or_was_killed_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole, broken = (Store(tmp_path / name) for name in ("whole", "broken"))
    options: dict[str, Any] = {
        "preset": TINY + ",layers=2,dropout=0.1", "checkpoint_steps": 1, "name": "model",
        "steps": 5, "batch": 16,
    }  # fmt: skip
    first = trained(whole, encoded(whole, tmp_path, weights(60)), **options)
    data = encoded(broken, tmp_path, weights(60))
    seen: list[int] = []

    def stops(update: Any) -> None:
        seen.append(update.step)
        if len(seen) == 3:
            raise KeyboardInterrupt

    config = train.Config(data.ref, objective="classify", **options)
    with pytest.raises(KeyboardInterrupt):
        train.run(config, broken, stops)
    second = train.run(config, broken, stops)
    assert seen == [1, 2, 3, 3, 4, 5]
    assert contents(second.artifact) == contents(first)


@pytest.mark.integration
def test_bfloat16_is_for_what_is_not_carried_over(store: Store, tmp_path: Path) -> None:
    data = encoded(store, tmp_path, weights(60))
    found = [
        in_model(trained(store, data, preset=TINY, precision=precision, name=precision))
        for precision in ("float32", "bfloat16")
    ]
    pairs = list(zip(*(model.parameters() for model in found), strict=True))
    assert not all(torch.equal(*pair) for pair in pairs)  # the classification layer is rounded
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=0, atol=0.02)


@pytest.mark.integration
def test_rows_may_be_longer_than_any_that_was_learnt(store: Store, tmp_path: Path) -> None:
    rows = weights(60)
    rows[-1]["text"] += ", says the kilogram of Paris" * 20
    data = encoded(store, tmp_path, rows)
    report = report_of(evaluated(store, trained(store, data, preset=TINY), data))
    assert report.numbers == 12


@pytest.mark.integration
def test_seeds_are_one_experiment_and_presets_are_told_apart(store: Store, tmp_path: Path) -> None:
    data = encoded(store, tmp_path, weights(60))

    def report(name: str, **options: Any) -> str:
        model = trained(store, data, name=f"model-{name}", **options)
        return evaluated(store, model, data, name=f"report-{name}").ref

    refs = [report(f"s{seed}", preset=TINY, seed=seed) for seed in (0, 1)]
    refs.append(report("nano"))
    found = compare.run(compare.Config((*refs,)), store)
    assert [(one.label, one.seeds) for one in found.experiments] == [
        ("xval, preset=bigru,width=32", [0, 1]),
        ("xval", [0]),
    ]


# --- another model's weights -------------------------------------------------------------------


@pytest.mark.integration
def test_init_brings_embedder_and_trunk_bit_for_bit(store: Store, tmp_path: Path) -> None:
    data = encoded(store, tmp_path, weights(60))
    first = trained(store, data, preset=TINY, name="first")
    again = trained(store, data, preset=TINY, init=first.ref, steps=1, name="again")
    there = read_model(first, CPU)
    assert read_model(again, CPU).trained.configuration["init.preset"] == TINY
    torch.manual_seed(7)
    model = build_model(in_model(again).settings, Vocabulary.of(there.codec))
    copy_weights(model, there)
    batch = fakemodels.batches(read_split(data, "test"), 12).of(np.arange(12))
    given = model.given(row_end_batch(batch, False))
    with torch.no_grad():
        found = [
            one.eval().hidden(given.tokens, given.values, given.real)
            for one in (model, there.model)
        ]
    assert torch.equal(*found)


@pytest.mark.integration
def test_init_of_another_trunk_or_shape_is_refused(
    numtok: Shell, store: Store, tmp_path: Path, says: Says
) -> None:
    data = encoded(store, tmp_path, weights(60))
    gru = trained(store, data, preset=TINY, name="gru").ref
    ar = trained(store, data, "ar", name="ar").ref
    tokens = in_model(store.resolve("gru")).settings.vocabulary
    for init, spec, *parts in (
        (ar, TINY, "transformer", f"--preset {TINY} has bigru", "Remove --preset"),
        (gru, "nano", "bigru", "--preset nano has transformer", "Remove --preset"),
        (gru, "bigru,width=48", "embedder.table.weight", f"({tokens}, 32)", f"({tokens}, 48)"),
        (gru, TINY + ",layers=2", "trunk.back.1.bias_hh_l0", "(48,)", "--preset and --embedder"),
    ):
        ran = numtok("train", data.ref, "--objective", "classify", "--steps", "1",
                     "--init-from", init,
                     "--preset", spec)  # fmt: skip
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        says(ran.err.replace(init, "MODEL"), "--init-from MODEL", *parts)


# --- rejected options --------------------------------------------------------------------------

LABELS = "--objective classify"
REFUSED = {
    (): ("--objective mlm", LABELS, "nano"),
    ("--objective", "ar"): ("--objective ar", LABELS, "nano"),
    ("--objective", "mlm:tokens"): ("--objective mlm:tokens", LABELS, "nano"),
    ("--objective", "classify,causal=yes"): (f"{LABELS},causal=yes", "Omit causal"),
    ("--objective", "classify", "--recompute"): ("--recompute", "Remove --recompute"),
    ("--objective", "classify", "--compile"): ("--compile", "Remove --compile"),
    ("--objective", "classify", "--head", "token"): ("--head token", "Remove --head"),
}


def test_what_it_cannot_do_is_told_in_one_line(
    numtok: Shell, store: Store, tmp_path: Path, says: Says
) -> None:
    encoded(store, tmp_path, weights(20))
    for options, parts in REFUSED.items():
        ran = numtok("train", "texts-xval", "--preset", "bigru", "--steps", "1", *options)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        says(ran.err, "--preset bigru" if "--head" not in options else LABELS, *parts)
    (tmp_path / "table.csv").write_text(
        "a,b\n" + "".join(f"{n},{n % 7}\n" for n in range(40)), "utf-8"
    )
    ran = numtok("train", "table.csv", "--target", "b", "--preset", "bigru")
    assert (ran.code, ran.out) == (2, "")
    [told] = ran.err.splitlines()[1:]
    says(told, "'bigru'", "For a table, use mlp")


@each(
    ("spec", "parts"),
    [
        ("bigru,heads=4", ("'heads'", "known")),
        ("bigru,positions=rotary", ("'positions'", "known")),
        ("bigru,context=64", ("'context'", "known")),
        ("bigru,tied=yes", ("'tied'", "known")),
        ("bigru,layers=0", ("layers", "at least 1", "got 0")),
        ("bigru,width=33", ("width", "got 33", "even")),
        ("bigru,width=0", ("width", "got 0", "even")),
        ("bigru,dropout=1", ("dropout", "at least 0 and below 1", "got 1")),
        ("bigru,width=wide", ("width must be an integer", "got 'wide'")),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_are_refused(spec: str, parts: tuple[str, ...], says: Says) -> None:
    with says.raises(UsageError, *parts):
        preset(spec)


@pytest.mark.integration
def test_the_embedding_of_a_number_has_no_norm_to_be_looked_at_after(
    numtok: Shell, store: Store, tmp_path: Path, says: Says
) -> None:
    data = encoded(store, tmp_path, weights(20))
    model = trained(store, data, preset=TINY, steps=1, name="gru")
    ran = numtok("probe", "embedding", "gru")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    says(ran.err.replace(model.ref, "MODEL"), "probe embedding", "bigru of MODEL", "Use probe pca")
