"""Operations of a batch, compared with what PyTorch counts when the whole batch runs."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from numtok.models.flops import ModelFlops
from numtok.models.made_up import ANSWERS, TARGETS, TEXTS
from numtok.models.objectives.base import OBJECTIVES
from numtok.seeds import generator
from tests import fakemodels
from tests.cases import each
from tests.fakemodels import batch, model
from tests.fakepretrained import pretrained

one_thread = fakemodels.one_thread

SIZE = "nano,layers=2,heads=2,width=16"


def check(scheme: str, objective: str, **parts: Any) -> None:
    """Compare both counts of a small batch."""
    of = model(scheme, objective, size=parts.pop("size", SIZE), **parts)
    rows = batch(scheme, TEXTS, answers=ANSWERS, targets=TARGETS)
    if parts.get("classes"):
        rows.label[:] = 0
    given = of.given(OBJECTIVES.build(objective).example(rows, generator(0)))
    found = ModelFlops(of)(given).total
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        of.losses(given)
    assert found == counter.get_total_flops() > 0


@each("size", ["head_layers=1", "head_layers=2", "tied=yes", "positions=rotary"])
@each("objective", ["ar", "mlm:targets", "mlm:tokens"])
def test_sizes_and_objectives(objective: str, size: str) -> None:
    check("p1000", objective, size=f"nano,layers=2,heads=2,width=16,{size}")


@each("head", ["token", "scalar", "pointwise", "riemann:8", "mdn:2", "decoder:ud"])
def test_heads(head: str) -> None:
    check("xval", "ar" if head != "token" else "mlm", head=None if head == "token" else head)


@each("embedder", ["lookup", "scaled", "fourier"])
def test_embedders_of_one_scheme(embedder: str) -> None:
    check("xval", "mlm:targets", embedder=embedder)


@each("scheme", ["numgpt", "dice", "fone", "bits", "base10"])
def test_schemes_with_embedders_of_their_own(scheme: str) -> None:
    check(scheme, "ar")


@each("places", ["abacus", "coupling"])
def test_places(places: str) -> None:
    check("digits", "ar", places=places)


@each("size", [SIZE, "bigru,width=16,layers=2"])
def test_labels(size: str) -> None:
    check("p1000", "classify", classes=("a", "b"), size=size)


@each("encoder", ["rnn", "mlp", "scalar", "binary"])
@each("objective", ["numvalue", "numvalue:answer,project=answer", "numvalue,second=no"])
def test_two_passes(objective: str, encoder: str) -> None:
    check("numvalue", objective, embedder=f"numvalue:{encoder}")


def test_the_further_pass_is_told_apart() -> None:
    rows = batch("numvalue", TEXTS, answers=ANSWERS)
    found = {}
    for objective in ("numvalue", "numvalue,second=no"):
        of = model("numvalue", objective)
        given = of.given(OBJECTIVES.build(objective).example(rows, generator(0)))
        found[objective] = ModelFlops(of)(given)
    two, one = found["numvalue"], found["numvalue,second=no"]
    assert one.further == 0 < two.further == two.total - one.total


@each("kind", ["gpt2", "llama", "bert"])
def test_pretrained_trunks(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pretrained(kind, tmp_path / kind)
    check("p1000", "mlm" if kind == "bert" else "ar", size=f"hf:{kind}")


def test_a_backward_pass_takes_twice_as_many() -> None:
    of = model("p1000", "ar")
    given = of.given(OBJECTIVES.build("ar").example(batch("p1000", TEXTS), generator(0)))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        of.total(of.losses(given)).backward()  # type: ignore[no-untyped-call]
    assert counter.get_total_flops() == 3 * ModelFlops(of)(given).total


def test_counting_leaves_the_model_and_the_generator_as_they_were() -> None:
    of = model("fone", "ar").train()
    state, before = torch.get_rng_state(), [one.clone() for one in of.parameters()]
    ModelFlops(of.double())
    assert of.training and torch.equal(torch.get_rng_state(), state)
    assert all(map(torch.equal, before, [one.float() for one in of.parameters()]))
